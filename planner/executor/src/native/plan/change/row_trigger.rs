//! UPDATE and DELETE of a table with triggers, compiled.

use archipel_sql::catalog::{TableRef, TriggerEvent};
use archipel_sql::error::Result;

use super::target::has_subquery;
use crate::bind::reference::bind_generated;
use crate::bound::{BoundExpr, Returning};
use crate::native::plan::compiler::Compiler;
use crate::native::plan::walk::root_columns;
use crate::native::run::access::path::Meta;
use crate::native::run::change::row_trigger::Triggered;
use crate::native::run::change::trigger::Triggers;
use crate::native::run::expression::source::Source;

impl Compiler<'_> {
    /// What SET amounts to where BEFORE triggers may change any column: the others are set to
    /// what they are. Columns of the storage key stay as they are, unless SET names them.
    pub(crate) fn set_with_triggers(
        &self,
        table: &TableRef,
        meta: &Meta,
        set: &[(u16, BoundExpr)],
    ) -> Result<Vec<(u16, BoundExpr)>> {
        let columns = self.updated_columns(table, set)?;
        let mut set = set.to_vec();
        let changes = table.triggers.iter().any(|trigger| {
            trigger.before && trigger.row && trigger.answers(TriggerEvent::Update, table, Some(&columns))
        });
        if !changes {
            return Ok(set);
        }
        let columns: Vec<u16> = set.iter().map(|(column, _)| *column).collect();
        for (place, column) in table.columns.iter().enumerate() {
            let number = place as u16;
            if !columns.contains(&number) && !meta.def.key.iter().any(|part| part.column == number) {
                set.push((number, BoundExpr::column(place, column.ty)));
            }
        }
        Ok(set)
    }

    /// The columns an UPDATE changes, for triggers that ask for some: those of SET, and those
    /// generated from them; all of the latter where a trigger may change what they are made of.
    pub(crate) fn updated_columns(&self, table: &TableRef, set: &[(u16, BoundExpr)]) -> Result<Vec<u16>> {
        let mut columns: Vec<u16> = set.iter().map(|(column, _)| *column).collect();
        let any = table
            .triggers
            .iter()
            .any(|trigger| trigger.before && trigger.row && trigger.events.contains(&TriggerEvent::Update));
        for (column, expr) in bind_generated(self.env.catalog, table)? {
            let follows = any || root_columns(&expr).iter().any(|read| columns.contains(read));
            if follows && !columns.contains(&column) {
                columns.push(column);
            }
        }
        Ok(columns)
    }

    /// Keeps what triggers need of the rows; RETURNING then waits for them.
    pub(crate) fn triggered(
        &mut self,
        triggers: Option<Box<Triggers>>,
        old: &[u32],
        scope: &[u32],
        returning: Option<Vec<Source>>,
        returned: Option<&Returning>,
        kept: &mut Vec<u32>,
    ) -> (Option<Box<Triggered>>, Option<Vec<Source>>) {
        let Some(triggers) = triggers else { return (None, returning) };
        let needed = if returning.is_some() { scope } else { old };
        self.mark_all(needed);
        kept.extend(needed);
        let asks = returned.is_some_and(|returned| returned.exprs.iter().any(has_subquery));
        (Some(Box::new(Triggered { triggers, old: old.to_vec(), returning, asks })), None)
    }
}
