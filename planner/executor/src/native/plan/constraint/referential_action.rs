//! What a foreign key does to the rows that reference one which goes or changes, compiled.

use std::sync::{Arc, OnceLock};

use archipel_sql::ast::ReferentialAction;
use archipel_sql::catalog::{ForeignKey, Table, TableRef};
use archipel_sql::error::{Result, SqlError};

use crate::bind::reference::{ReferenceChange, bind_reference_change};
use crate::native::plan::compiler::Compiler;
use crate::native::run::constraint::referential_action::{Action, ActionBody, Event};
use crate::route::RouteKey;

impl Compiler<'_> {
    /// The action of a foreign key on an event of the row it references; `None` where the event
    /// is only checked. `sources` are the slots of the old values, then of the new ones.
    pub fn reference_action(
        &mut self,
        child: &TableRef,
        key: &ForeignKey,
        parent: &TableRef,
        event: Event,
        sources: &[u32],
    ) -> Result<Option<Arc<Action>>> {
        let action = match event {
            Event::Delete => key.on_delete,
            Event::Update => key.on_update,
        };
        if matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict) {
            return Ok(None);
        }
        if let Some(known) = self.actions.get(&(key.oid, event)).cloned() {
            // It sets itself off: whose rows it meets then cannot be told beforehand.
            for table in self.rows_in(child)? {
                let meta = self.table(&table)?;
                let unknown = RouteKey::Unknown("a foreign key leads back to its own table".to_owned());
                self.note_table(&table, &meta, true, unknown);
            }
            return Ok(Some(known));
        }
        let inputs: Vec<u32> = sources.iter().map(|_| self.slot()).collect();
        self.mark_all(&inputs);
        for (input, source) in inputs.iter().zip(sources) {
            if let Some(value) = self.known.get(source).cloned() {
                self.known.insert(*input, value);
            }
            if let Some(values) = self.in_turn.get(source).cloned() {
                self.in_turn.insert(*input, values);
            }
        }
        let text = statement_text(child, key, event, action);
        let action_of = Arc::new(Action { text, inputs: inputs.clone(), body: OnceLock::new() });
        self.actions.insert((key.oid, event), action_of.clone());
        let lines = self.plan.lines.len();
        // Who sees to the partitions of this statement's rows does not see to those.
        let placing = std::mem::take(&mut self.placing);
        let (keeping, shown_as) = (std::mem::take(&mut self.keeping), self.shown_as.take());
        let body = self.action_body(child, key, parent, event, action, &inputs);
        self.placing = placing;
        (self.keeping, self.shown_as) = (keeping, shown_as);
        // PostgreSQL shows no plan of them either.
        self.plan.lines.truncate(lines);
        self.actions.remove(&(key.oid, event));
        let body = body?;
        if action_of.body.set(body).is_err() {
            return Err(SqlError::internal("an action was compiled twice"));
        }
        Ok(Some(action_of))
    }

    fn action_body(
        &mut self,
        child: &TableRef,
        key: &ForeignKey,
        parent: &TableRef,
        event: Event,
        action: ReferentialAction,
        inputs: &[u32],
    ) -> Result<ActionBody> {
        let types: Vec<_> =
            key.referenced_columns.iter().map(|column| parent.columns[usize::from(*column)].ty).collect();
        let filter = self.key_conditions(child, &key.columns, types.iter().copied())?;
        let deletes = event == Event::Delete;
        match bind_reference_change(self.env.catalog, child, key, &types, deletes, action, filter)? {
            ReferenceChange::Delete(delete) => {
                if let Some(family) = &delete.family {
                    let compiled = self.scoped(inputs, |c| c.delete_members(&delete, family))?;
                    return Ok(ActionBody::Members(Box::new(compiled)));
                }
                let compiled = self.scoped(inputs, |c| c.delete(&delete))?;
                Ok(ActionBody::Delete(Box::new(compiled)))
            }
            ReferenceChange::Update(update) => {
                if let Some(family) = &update.family {
                    let compiled = self.scoped(inputs, |c| c.update_members(&update, family))?;
                    return Ok(ActionBody::Members(Box::new(compiled)));
                }
                let compiled = self.scoped(inputs, |c| c.update(&update))?;
                Ok(ActionBody::Update(Box::new(compiled)))
            }
        }
    }
}

/// The statement of an action as PostgreSQL writes it.
fn statement_text(child: &Table, key: &ForeignKey, event: Event, action: ReferentialAction) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let column = |place: u16| quoted(&child.columns[usize::from(place)].name);
    let table = format!("{}.{}", quoted(&child.schema), quoted(&child.name));
    let only = if child.is_partitioned() { "" } else { "ONLY " };
    let cascades = action == ReferentialAction::Cascade;
    let (begins, first) = match (event, cascades) {
        (Event::Delete, true) => (format!("DELETE FROM {only}{table}"), 1),
        _ => {
            let value = |number: usize| match action {
                ReferentialAction::Cascade => format!("${number}"),
                ReferentialAction::SetNull => "NULL".to_owned(),
                _ => "DEFAULT".to_owned(),
            };
            let named = &key.on_delete_columns;
            let all = event == Event::Update || named.is_empty();
            let set: Vec<String> = key
                .columns
                .iter()
                .enumerate()
                .filter(|(_, of)| all || named.contains(of))
                .map(|(place, of)| format!("{} = {}", column(*of), value(place + 1)))
                .collect();
            let first = if cascades { key.columns.len() + 1 } else { 1 };
            (format!("UPDATE {only}{table} SET {}", set.join(", ")), first)
        }
    };
    let conditions: Vec<String> = key
        .columns
        .iter()
        .enumerate()
        .map(|(place, of)| format!("${} OPERATOR(pg_catalog.=) {}", first + place, column(*of)))
        .collect();
    format!("{begins} WHERE {}", conditions.join(" AND "))
}
