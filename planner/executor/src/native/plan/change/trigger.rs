//! Which of a table's triggers fire for a statement.

use std::sync::Arc;

use archipel_sql::catalog::{Table, TableRef, Trigger, TriggerEvent};
use archipel_sql::error::Result;

use crate::bound::BoundExpr;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::environment::TriggerPart;
use crate::native::run::change::trigger::{Fire, KeptFor, Triggers};
use crate::native::run::routine::CompiledRoutine;
use crate::partition::{Family, Member};

/// For which table's triggers the rows of a member are kept.
pub(crate) fn kept_for(
    family: &Family,
    member: &Member,
    event: TriggerEvent,
    triggers: &Option<Box<Triggers>>,
) -> Option<KeptFor> {
    triggers.as_ref().filter(|triggers| triggers.keeps_rows)?;
    let (root, mut columns) = (family.root.oid, member.columns.clone());
    if family.has_numbers() {
        columns.pop();
    }
    Some(KeptFor { root, member: member.table.oid, event, columns })
}

impl Compiler<'_> {
    /// The triggers of a table that a statement fires, over the slots of its old and new rows;
    /// `set` are the columns an UPDATE names.
    pub fn triggers(
        &mut self,
        table: &TableRef,
        event: TriggerEvent,
        set: Option<&[u16]>,
        old: Option<&[u32]>,
        new: Option<&[u32]>,
    ) -> Result<Option<Box<Triggers>>> {
        let mut keeping = self.keeping.iter();
        let kept_for = keeping.find(|kept| kept.member == table.oid && kept.event == event).cloned();
        if !table.fires(event, set) && kept_for.is_none() {
            return Ok(None);
        }
        let rows: Vec<Option<BoundExpr>> = [old, new]
            .into_iter()
            .flat_map(|row| match row {
                Some(row) => row.iter().map(|slot| self.known.get(slot).cloned()).collect(),
                None => vec![None; table.columns.len()],
            })
            .collect();
        let mut triggers = Triggers {
            table: table.clone(),
            event,
            before_statement: Vec::new(),
            before_row: Vec::new(),
            instead: Vec::new(),
            after_row: Vec::new(),
            after_statement: Vec::new(),
            keeps_rows: false,
            kept_for,
        };
        for trigger in table.triggers.iter().filter(|trigger| trigger.answers(event, table, set)) {
            let known = if trigger.row { &rows[..] } else { &[] };
            let function = self.trigger_part(table, trigger, event, TriggerPart::Function, known)?;
            let condition = match &trigger.condition {
                Some(_) => Some(self.trigger_part(table, trigger, event, TriggerPart::Condition, known)?),
                None => None,
            };
            let list = match (trigger.before, trigger.row) {
                _ if trigger.instead => &mut triggers.instead,
                (true, false) => &mut triggers.before_statement,
                (true, true) => &mut triggers.before_row,
                (false, true) => &mut triggers.after_row,
                (false, false) => &mut triggers.after_statement,
            };
            let transitions = trigger.transitions();
            triggers.keeps_rows |= !transitions.is_empty();
            let timing = trigger.constraint;
            let fire = Fire {
                trigger: trigger.oid,
                event,
                function,
                condition,
                table: table.oid,
                transitions,
                timing,
                fires_in: trigger.fires_in(),
            };
            list.push(Arc::new(fire));
        }
        for row in [old, new].into_iter().flatten() {
            self.mark_all(row);
        }
        Ok(Some(Box::new(triggers)))
    }

    /// The triggers that fire for a statement as such: its rows are others' than the table's.
    pub fn statement_triggers(
        &mut self,
        table: &TableRef,
        event: TriggerEvent,
        set: Option<&[u16]>,
    ) -> Result<Option<Box<Triggers>>> {
        let mut own = Table::clone(table);
        own.triggers.retain(|trigger| !trigger.row);
        self.triggers(&Arc::new(own), event, set, None, None)
    }

    fn trigger_part(
        &mut self,
        table: &TableRef,
        trigger: &Trigger,
        event: TriggerEvent,
        part: TriggerPart,
        known: &[Option<BoundExpr>],
    ) -> Result<Arc<dyn CompiledRoutine>> {
        let linked = self.env.routines.link_trigger(table, trigger, event, part)?;
        for access in linked.accesses() {
            self.accesses.push(crate::route::access_over_arguments(access, known, &trigger.name));
        }
        Ok(linked)
    }
}
