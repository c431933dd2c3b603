//! What the checks of `plpgsql.extra_warnings` and `plpgsql.extra_errors` find.

use archipel_planner::native::{ExecContext, ExecResult};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::{CheckLevel, ExtraCheck};

use super::invocation::Invocation;
use super::operation::site::Site;

impl Invocation<'_, '_> {
    /// How many rows INTO looks at without STRICT.
    #[inline]
    pub(super) fn rows_wanted(&self, ctx: &ExecContext<'_, '_>) -> u64 {
        let checks = ctx.functions.session.extra_checks();
        if checks.level(ExtraCheck::TooManyRows).is_some() { 2 } else { 1 }
    }

    /// What a check has found, which is a warning, an error, or nothing.
    #[cold]
    pub(super) fn checked(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        check: ExtraCheck,
        found: SqlError,
        site: Site,
    ) -> ExecResult<()> {
        match ctx.functions.session.extra_checks().level(check) {
            None => Ok(()),
            Some(CheckLevel::Error) => Err(self.at(found.into(), site)),
            Some(CheckLevel::Warning) => {
                let found = self.program.add_context(found, Some(site));
                ctx.notice("WARNING", found, ctx.depth - 1);
                Ok(())
            }
        }
    }

    /// INTO with another number of columns than variables: each that lacks is told.
    #[cold]
    pub(super) fn check_columns(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        surplus: i32,
        site: Site,
    ) -> ExecResult<()> {
        let check = ExtraCheck::StrictMultiAssignment;
        let Some(level) = ctx.functions.session.extra_checks().level(check) else { return Ok(()) };
        for _ in 0..(-surplus).max(1) {
            let message = "number of source and target fields in assignment does not match";
            let found = SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .with_detail(format!("{} check of {} is active.", check.name(), level.setting()))
                .with_hint("Make sure the query returns the exact list of columns.");
            self.checked(ctx, check, found, site)?;
        }
        Ok(())
    }
}
