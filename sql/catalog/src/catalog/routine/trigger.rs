//! Triggers: part of their table, in whose definition they are kept.

use super::trigger_definition::{FiresIn, Trigger, TriggerRole};
use crate::ast::TriggerFiring;
use crate::catalog::{Catalog, Routine, RoutineRef, Table, TableRef, TriggerEvent};
use crate::parser::{LexemeKind, lexemes};
use crate::types::Oid;

impl Table {
    /// Whether triggers of a view take such changes of its rows.
    pub fn has_instead_of(&self, event: TriggerEvent) -> bool {
        self.triggers.iter().any(|trigger| trigger.instead && trigger.answers(event, self, None))
    }
}

impl Trigger {
    /// The rows it names: for each, whether they are the new ones.
    pub fn transitions(&self) -> Vec<bool> {
        let named = [(&self.old_table, false), (&self.new_table, true)];
        named.into_iter().filter_map(|(name, new)| name.as_ref().map(|_| new)).collect()
    }

    /// As TG_WHEN has it.
    pub fn timing(&self) -> &'static str {
        match (self.instead, self.before) {
            (true, _) => "INSTEAD OF",
            (false, true) => "BEFORE",
            (false, false) => "AFTER",
        }
    }

    /// As TG_LEVEL has it.
    pub fn level(&self) -> &'static str {
        if self.row { "ROW" } else { "STATEMENT" }
    }

    /// In which sessions it fires.
    pub fn fires_in(&self) -> FiresIn {
        FiresIn {
            replica: self.role == TriggerRole::Replica || self.role == TriggerRole::Always && self.enabled,
            origin: self.role != TriggerRole::Replica && self.enabled,
        }
    }

    /// Whether it fires in some session when an event sets these columns (all for `None`).
    pub fn answers(&self, event: TriggerEvent, table: &Table, set: Option<&[u16]>) -> bool {
        let named = |name: &String| match (table.column_index(name), set) {
            (Some(column), Some(set)) => set.contains(&column),
            (column, None) => column.is_some(),
            (None, _) => false,
        };
        (self.enabled || self.role == TriggerRole::Replica)
            && self.events.contains(&event)
            && (event != TriggerEvent::Update || self.columns.is_empty() || self.columns.iter().any(named))
    }

    /// Says in which sessions it fires.
    pub fn fire_in(&mut self, firing: TriggerFiring) {
        self.enabled = matches!(firing, TriggerFiring::Origin | TriggerFiring::Always);
        self.role = match firing {
            TriggerFiring::Replica => TriggerRole::Replica,
            TriggerFiring::Always => TriggerRole::Always,
            TriggerFiring::Origin | TriggerFiring::Never => TriggerRole::Origin,
        };
    }

    /// pg_trigger.tgenabled.
    pub fn firing(&self) -> &'static str {
        match (self.role, self.enabled) {
            (TriggerRole::Replica, _) => "R",
            (TriggerRole::Always, true) => "A",
            (TriggerRole::Origin, true) => "O",
            (TriggerRole::Always | TriggerRole::Origin, false) => "D",
        }
    }

    /// pg_trigger.tgtype.
    pub fn type_bits(&self) -> i16 {
        let events = self.events.iter().map(|event| match event {
            TriggerEvent::Insert => 4,
            TriggerEvent::Delete => 8,
            TriggerEvent::Update => 16,
            TriggerEvent::Truncate => 32,
        });
        events.sum::<i16>() + i16::from(self.row) + 2 * i16::from(self.before) + 64 * i16::from(self.instead)
    }

    /// Whether its definition speaks of a column.
    pub fn uses_column(&self, column: &str) -> bool {
        let of_row = |text: &String| {
            lexemes(text).is_ok_and(|lexemes| {
                lexemes.windows(3).any(|part| {
                    matches!(&part[0].kind, LexemeKind::Word { value, .. } if value == "old" || value == "new")
                        && &text[part[1].range.clone()] == "."
                        && matches!(&part[2].kind, LexemeKind::Word { value, .. } if value == column)
                })
            })
        };
        self.columns.iter().any(|name| name == column) || self.condition.as_ref().is_some_and(of_row)
    }
}

impl Table {
    pub fn trigger(&self, name: &str) -> Option<&Trigger> {
        self.triggers.iter().find(|trigger| trigger.name == name)
    }

    /// Whether a statement that sets these columns fires anything, in some session.
    pub fn fires(&self, event: TriggerEvent, set: Option<&[u16]>) -> bool {
        self.triggers.iter().any(|trigger| trigger.answers(event, self, set))
    }

    /// Puts a trigger in the place of the one of its name; they stand in the order they fire in.
    pub fn put_trigger(&mut self, trigger: Trigger) {
        self.triggers.retain(|known| known.name != trigger.name);
        let place = self.triggers.partition_point(|known| known.name < trigger.name);
        self.triggers.insert(place, trigger);
    }
}

impl Catalog {
    /// The table of a trigger, and the trigger's place in it.
    pub fn trigger_by_oid(&self, oid: Oid) -> Option<(TableRef, usize)> {
        let table = self.table_of_part(oid)?;
        let place = table.triggers.iter().position(|trigger| trigger.oid == oid)?;
        Some((table.clone(), place))
    }

    /// The function of a trigger.
    pub fn trigger_function(&self, trigger: &Trigger) -> Option<RoutineRef> {
        self.routine_by_oid(trigger.function)
    }

    /// The triggers that call a routine: their tables, and their places there.
    pub fn triggers_calling(&self, routine: &Routine) -> Vec<(TableRef, usize)> {
        let mut found = Vec::new();
        for table in self.tables_saying(&[routine.oid]) {
            for (place, trigger) in table.triggers.iter().enumerate() {
                if trigger.function == routine.oid {
                    found.push((table.clone(), place));
                }
            }
        }
        found
    }
}
