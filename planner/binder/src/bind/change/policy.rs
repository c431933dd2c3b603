//! What policies demand of changes (`row_security`): of the rows that are changed, and of new ones.

use archipel_sql::catalog::PolicyCommand;
use archipel_sql::error::Result;

use super::target::ChangeTarget;
use crate::bind::binder::Binder;
use crate::bind::row_security::{ChangeGuard, reads_row, required_where};
use crate::bound::*;

impl Binder<'_, '_> {
    /// What policies demand of an UPDATE or DELETE, which reads what is written in it.
    pub(super) fn policies_of_change<'e>(
        &mut self,
        target: &ChangeTarget,
        command: PolicyCommand,
        written: impl IntoIterator<Item = &'e BoundExpr>,
        returning: Option<&'e Returning>,
    ) -> Result<ChangeGuard> {
        if !target.table.row_security.enabled {
            return Ok(ChangeGuard::default());
        }
        let shown = returning.into_iter().flat_map(|returning| &returning.exprs);
        let reads = reads_row(written.into_iter().chain(shown), target.row_width());
        let acting = target.acting(self.env.acting);
        self.change_guard(&target.table, acting, command, reads)
    }

    /// What policies demand of new rows; what they do of those that ON CONFLICT changes goes into its condition.
    pub(super) fn policies_of_insert(
        &mut self,
        target: &ChangeTarget,
        on_conflict: Option<&mut OnConflict>,
        returning: Option<&Returning>,
    ) -> Result<BoundChecks> {
        if !target.table.row_security.enabled {
            return Ok(Vec::new());
        }
        let (width, acting) = (target.row_width(), target.acting(self.env.acting));
        let shown = returning.into_iter().flat_map(|returning| &returning.exprs);
        let mut reads = reads_row(shown, width);
        let mut update = None;
        if let Some(conflict) = on_conflict {
            reads |= conflict.target.is_some();
            update = conflict.update.as_mut();
        }
        if let Some((set, filter)) = &update {
            reads |= reads_row(set.iter().map(|(_, value)| value).chain(filter), width);
        }
        let guard = self.insert_guard(&target.table, acting, (reads, update.is_some()))?;
        if let Some((_, filter)) = update {
            *filter = required_where(filter.take(), guard.using);
        }
        Ok(guard.checks)
    }
}
