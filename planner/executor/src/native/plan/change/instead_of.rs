//! INSERT, UPDATE and DELETE on a view: INSTEAD OF triggers get the rows, and what they do with them
//! is theirs. The rows are found first, since the triggers may change what the view shows.
//!
//! An UPDATE of a system view's hints finds its rows the same way, and nobody gets them.

use archipel_sql::catalog::{TableKind, TableRef, TriggerEvent};
use archipel_sql::error::{Result, SqlError};

use crate::bound::{BoundDelete, BoundInsert, BoundUpdate, Rel, Returning};
use crate::native::plan::compiler::Compiler;
use crate::native::run::change::instead_of::Instead;
use crate::native::run::change::trigger::Triggers;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::node::Node;

fn no_rows() -> SqlError {
    SqlError::internal("a change of a view without the view's rows")
}

impl Compiler<'_> {
    pub fn instead_of_insert(&mut self, insert: &BoundInsert) -> Result<Instead> {
        let (source, kept) = self.rows_of_view("Insert", &insert.table, &insert.source)?;
        let new = self.own_slots(kept.len());
        let set = self.scoped(&kept, |c| {
            let columns = insert.table.columns.iter().enumerate();
            let columns: Vec<_> =
                columns.map(|(at, column)| crate::bound::BoundExpr::column(at, column.ty)).collect();
            c.exprs(&columns)
        })?;
        let set = new.iter().copied().zip(set).collect();
        let triggers = self.triggers_of_view(&insert.table, TriggerEvent::Insert, None, Some(&new))?;
        let returning = self.returned(&insert.returning, &new)?;
        Ok(Instead { source, kept, old: None, new: Some(new), set, triggers, returning })
    }

    pub fn instead_of_update(&mut self, update: &BoundUpdate) -> Result<Instead> {
        let rel = update.from.as_ref().ok_or_else(no_rows)?;
        let (source, kept) = self.rows_of_view("Update", &update.table, rel)?;
        let width = update.table.columns.len();
        let old = kept[..width].to_vec();
        let new = self.own_slots(width);
        let columns = update.table.columns.iter().enumerate();
        let values: Vec<_> = columns
            .map(|(at, column)| match update.set.iter().find(|(set, _)| usize::from(*set) == at) {
                Some((_, value)) => value.clone(),
                None => crate::bound::BoundExpr::column(at, column.ty),
            })
            .collect();
        let set = self.scoped(&kept, |c| c.exprs(&values))?;
        let set = new.iter().copied().zip(set).collect();
        let triggers = self.triggers_of_view(&update.table, TriggerEvent::Update, Some(&old), Some(&new))?;
        let shown: Vec<u32> = new.iter().chain(&kept[width..]).copied().collect();
        let returning = self.returned(&update.returning, &shown)?;
        Ok(Instead { source, kept, old: Some(old), new: Some(new), set, triggers, returning })
    }

    pub fn instead_of_delete(&mut self, delete: &BoundDelete) -> Result<Instead> {
        let rel = delete.using.as_ref().ok_or_else(no_rows)?;
        let (source, kept) = self.rows_of_view("Delete", &delete.table, rel)?;
        let old = kept[..delete.table.columns.len()].to_vec();
        let triggers = self.triggers_of_view(&delete.table, TriggerEvent::Delete, Some(&old), None)?;
        let returning = self.returned(&delete.returning, &kept)?;
        Ok(Instead { source, kept, old: Some(old), new: None, set: Vec::new(), triggers, returning })
    }

    fn rows_of_view(&mut self, what: &'static str, view: &TableRef, rel: &Rel) -> Result<(Node, Vec<u32>)> {
        let line = self.open_change(what, view, &None);
        let source = self.relation(rel);
        self.close();
        self.describe_change(line, view, None, &[], None);
        let slots = self.declare(rel);
        self.mark_all(&slots);
        Ok((source?, slots.to_vec()))
    }

    fn own_slots(&mut self, count: usize) -> Vec<u32> {
        let slots = self.slots(count);
        self.mark_all(&slots);
        slots.to_vec()
    }

    fn triggers_of_view(
        &mut self,
        view: &TableRef,
        event: TriggerEvent,
        old: Option<&[u32]>,
        new: Option<&[u32]>,
    ) -> Result<Option<Box<Triggers>>> {
        let triggers = self.triggers(view, event, None, old, new)?;
        if triggers.is_none() && view.kind == TableKind::View {
            return Err(SqlError::internal("a change of a view without triggers"));
        }
        Ok(triggers)
    }

    fn returned(&mut self, returning: &Option<Returning>, slots: &[u32]) -> Result<Option<Vec<Source>>> {
        let Some(returning) = returning else { return Ok(None) };
        self.scoped(slots, |c| c.exprs(&returning.exprs)).map(Some)
    }
}
