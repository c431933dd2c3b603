//! NOT NULL, CHECK and the bounds of partitions, asked of a new row.

use archipel_sql::catalog::TableRef;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};

use super::detail::{failing_row, of_table, with_detail};
use super::partition_bound::PartitionCheck;
use crate::bound::CheckKind;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// NOT NULL and CHECK over a new row.
pub(crate) struct RowChecks {
    pub(crate) table: TableRef,
    pub(crate) not_null: Vec<(u16, u32)>,
    pub(crate) checks: Vec<RowCheck>,
    /// The columns that the statement says the values of: nothing new to whoever runs it.
    pub(crate) given: Vec<u16>,
    /// That the row is one of the partition's.
    pub(crate) partition: Option<Box<PartitionCheck>>,
    /// The table that rows are shown as, and where they have its columns.
    pub(crate) shown_as: Option<(TableRef, Vec<u16>)>,
}

pub(crate) struct RowCheck {
    pub(crate) name: String,
    pub(crate) predicate: CompiledPredicate,
    pub(crate) kind: CheckKind,
}

impl RowChecks {
    /// Checks the new row in its slots. `row` answers all its columns for the error's detail.
    pub fn check(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Vec<Datum>>,
    ) -> ExecResult<()> {
        self.check_constraints(ctx, row)?;
        self.check_options(ctx, row)
    }

    /// As [`RowChecks::check`], but for what views say: that is asked of rows that are written.
    pub fn check_constraints(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Vec<Datum>>,
    ) -> ExecResult<()> {
        self.check_policies(ctx)?;
        for (column, slot) in &self.not_null {
            if ctx.frame.slots[*slot as usize].is_null() {
                let name = &self.table.columns[usize::from(*column)].name;
                let message = format!(
                    "null value in column \"{name}\" of relation \"{}\" violates not-null constraint",
                    self.table.name
                );
                let row = row(ctx)?;
                let error = SqlError::new(SqlState::NOT_NULL_VIOLATION, message);
                let mut error = with_detail(error, self.failing_row(&row, ctx));
                error.fields_mut().column = Some(name.clone());
                return Err(of_table(error, &self.table, None).into());
            }
        }
        for RowCheck { name, predicate, .. } in self.of_kind(CheckKind::Constraint) {
            if predicate(ctx)? == Some(false) {
                let message = format!(
                    "new row for relation \"{}\" violates check constraint \"{name}\"",
                    self.table.name
                );
                let row = row(ctx)?;
                let error = SqlError::new(SqlState::CHECK_VIOLATION, message);
                let error = with_detail(error, self.failing_row(&row, ctx));
                return Err(of_table(error, &self.table, Some(name)).into());
            }
        }
        if let Some(partition) = &self.partition
            && !partition.holds(ctx)?
        {
            let row = row(ctx)?;
            return Err(partition.violated(self.failing_row(&row, ctx)).into());
        }
        Ok(())
    }

    fn of_kind(&self, kind: CheckKind) -> impl Iterator<Item = &RowCheck> {
        self.checks.iter().filter(move |check| check.kind == kind)
    }

    /// What policies demand of the new row in its slots. They come first: errors of constraints could tell of
    /// rows that nobody may write (ExecInsert). What is not known is not allowed.
    fn check_policies(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        for RowCheck { name, predicate, kind } in &self.checks {
            let is_policy = matches!(kind, CheckKind::PolicyOfInsert | CheckKind::PolicyOfUpdate);
            if is_policy && predicate(ctx)? != Some(true) {
                return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, name.as_str()).into());
            }
        }
        Ok(())
    }

    /// Whether the new row in its slots is one of the partition's; any table's is.
    pub fn keeps_partition(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<bool> {
        self.partition.as_ref().map_or(Ok(true), |partition| partition.holds(ctx))
    }

    /// Whether all there is to check is that columns are not NULL that must not be.
    pub fn only_not_null(&self) -> bool {
        self.checks.is_empty() && self.partition.is_none()
    }

    /// Columns whose values the statement says elsewhere.
    pub fn also_given(&mut self, columns: &[u16]) {
        self.given.extend(columns);
    }

    fn failing_row(&self, row: &[Datum], ctx: &ExecContext<'_, '_>) -> Option<String> {
        let Some((root, columns)) = &self.shown_as else {
            return failing_row(&self.table, row, &self.given, &ctx.functions);
        };
        let value = |column: &u16| row.get(usize::from(*column)).cloned().unwrap_or(Datum::Null);
        let row: Vec<Datum> = columns.iter().map(value).collect();
        let given = (0..).zip(columns).filter(|(_, column)| self.given.contains(column));
        let given: Vec<u16> = given.map(|(place, _)| place).collect();
        failing_row(root, &row, &given, &ctx.functions)
    }

    /// What views demand of the new row in its slots.
    pub fn check_options(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Vec<Datum>>,
    ) -> ExecResult<()> {
        for RowCheck { name, predicate, .. } in self.of_kind(CheckKind::View) {
            if predicate(ctx)? == Some(false) {
                let message = format!("new row violates check option for view \"{name}\"");
                let row = row(ctx)?;
                let error = SqlError::new(SqlState(*b"44000"), message);
                return Err(with_detail(error, self.failing_row(&row, ctx)).into());
            }
        }
        Ok(())
    }
}
