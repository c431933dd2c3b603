//! What a foreign key does to the rows that reference one which goes or changes: CASCADE, SET
//! NULL, SET DEFAULT.
//!
//! An action is a DELETE or UPDATE of the referencing table, compiled into the frame of the
//! statement that sets it off, over slots that hold the key's old values (and its new ones). Its
//! own rows may set off more, so what a row sets off is not run at once but waits in a queue until
//! the statement has written all its rows, as PostgreSQL's triggers do: checks of rows that a later
//! action takes away then pass, and a chain of rows that reference each other costs no stack.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use archipel_sql::ast::ReferentialAction;
use archipel_sql::catalog::{ForeignKey, Table, TableRef, TriggerEvent};
use archipel_sql::datum::{Array, Datum, Dimension};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;

use crate::bind::reference::{ReferenceChange, bind_reference_change};
use crate::native::plan::compiler::Compiler;
use crate::native::plan::constraint::ReferenceCheck;
use crate::native::run::change::delete::Delete;
use crate::native::run::change::inheritance::Members;
use crate::native::run::change::row_trigger::Triggering;
use crate::native::run::change::trigger::Fire;
use crate::native::run::change::update::Update;
use crate::native::run::state::context::{ExecContext, ExecError, ExecResult};
use crate::route::RouteKey;

/// What waits until a statement has written all its rows, in the order it came.
#[derive(Default)]
pub(crate) struct Queue {
    entries: VecDeque<Waiting>,
    /// The tables and events whose BEFORE STATEMENT triggers have fired: once for the statement and
    /// all that its foreign keys do.
    begun: Vec<(Oid, TriggerEvent)>,
    /// The rows that came and went, for triggers that name them.
    transitions: Vec<Transitions>,
}

/// The rows of one table that an event has changed.
struct Transitions {
    table: Oid,
    event: TriggerEvent,
    /// Old and new.
    rows: [Vec<Datum>; 2],
    /// The same as arrays, as triggers are given them.
    arrays: [Option<Datum>; 2],
}

pub(crate) enum Waiting {
    /// A check or an action of a foreign key, and the values of its slots.
    Reference(Arc<ReferenceCheck>, Vec<Datum>),
    /// An AFTER trigger, with the rows it is about; NULL for those there are not.
    Trigger(Arc<Fire>, Datum, Datum),
}

impl Queue {
    pub fn push(&mut self, waiting: Waiting) {
        self.entries.push_back(waiting);
    }

    /// Whether this is the first time that a table meets an event.
    pub fn begin(&mut self, table: Oid, event: TriggerEvent) -> bool {
        let first = !self.begun.contains(&(table, event));
        if first {
            self.begun.push((table, event));
        }
        first
    }

    fn transitions_of(&mut self, table: Oid, event: TriggerEvent) -> &mut Transitions {
        let known = self.transitions.iter().position(|known| known.table == table && known.event == event);
        let at = known.unwrap_or_else(|| {
            self.transitions.push(Transitions {
                table,
                event,
                rows: Default::default(),
                arrays: [None, None],
            });
            self.transitions.len() - 1
        });
        &mut self.transitions[at]
    }

    /// Keeps a row that came, went or changed.
    pub fn keep(&mut self, table: Oid, event: TriggerEvent, [old, new]: [Datum; 2]) {
        let transitions = self.transitions_of(table, event);
        for ((rows, array), row) in transitions.rows.iter_mut().zip(&mut transitions.arrays).zip([old, new]) {
            if !row.is_null() {
                rows.push(row);
                *array = None;
            }
        }
    }

    /// The rows kept, old or new, as an array.
    pub fn transition_table(&mut self, table: Oid, event: TriggerEvent, new: bool) -> Datum {
        let place = usize::from(new);
        let transitions = self.transitions_of(table, event);
        let rows = &transitions.rows[place];
        transitions.arrays[place].get_or_insert_with(|| rows_as_table(rows.iter().cloned())).clone()
    }

    /// Adds an AFTER STATEMENT trigger, taking it away where it waits already.
    pub fn push_once(&mut self, fire: &Arc<Fire>) {
        self.entries.retain(|waiting| !matches!(waiting, Waiting::Trigger(known, ..) if known.is_same(fire)));
        self.push(Waiting::Trigger(fire.clone(), Datum::Null, Datum::Null));
    }
}

/// Rows that came or went, as triggers that name them are given them.
pub fn rows_as_table(rows: impl Iterator<Item = Datum>) -> Datum {
    let values: Vec<Datum> = rows.collect();
    let dimensions = match values.len() {
        0 => Vec::new(),
        length => vec![Dimension { length, lower_bound: 1 }],
    };
    Datum::Array(Arc::new(Array { element: Oid::RECORD, dimensions, values }))
}

/// The statement a foreign key runs.
pub(crate) struct Action {
    /// As PostgreSQL writes it: CONTEXT lines name it.
    text: String,
    /// Where its values go before it runs.
    inputs: Vec<u32>,
    /// Set once it is compiled: on the way there it may have met itself.
    body: OnceLock<ActionBody>,
}

enum ActionBody {
    Delete(Box<Delete>),
    Update(Box<Update>),
    /// Of a partitioned table.
    Members(Box<Members>),
}

/// Which event of the referenced row an action answers to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Event {
    Delete,
    Update,
}

impl Action {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, values: &[Datum]) -> ExecResult<()> {
        for (slot, value) in self.inputs.iter().zip(values) {
            ctx.frame.slots[*slot as usize].clone_from(value);
        }
        let said = ctx.notices.len();
        // PostgreSQL's actions are triggers: what fires inside of one is a level deeper.
        ctx.trigger_depth += 1;
        let done = self.change(ctx);
        ctx.trigger_depth -= 1;
        for notice in ctx.notices.iter_mut().skip(said) {
            self.name_itself(&mut notice.error);
        }
        done.map_err(|error| match error {
            ExecError::Sql(mut error) => {
                self.name_itself(&mut error);
                ExecError::Sql(error)
            }
            stop => stop,
        })
    }

    /// Adds its line to what arose in it.
    #[cold]
    fn name_itself(&self, error: &mut SqlError) {
        let line = format!("SQL statement \"{}\"", self.text);
        let context = &mut error.fields_mut().context;
        *context = Some(match context.take() {
            Some(inner) => format!("{inner}\n{line}"),
            None => line,
        });
    }

    fn change(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        match self.body.get() {
            Some(ActionBody::Delete(delete)) => {
                let found = delete.find(ctx)?;
                delete.write(ctx, &found, None)?;
            }
            Some(ActionBody::Update(update)) => {
                let found = update.find(ctx)?;
                update.write(ctx, &found, None)?;
            }
            Some(ActionBody::Members(members)) => {
                let found = members.find(ctx)?;
                members.write(ctx, &found)?;
            }
            None => return Err(SqlError::internal("an action of a foreign key is not compiled").into()),
        }
        Ok(())
    }
}

/// Runs the writing part of a statement; what its rows set off waits until it is done, and is
/// done then. Inside of another statement's it joins that one's queue.
pub(crate) fn with_queue<T>(
    ctx: &mut ExecContext<'_, '_>,
    write: impl FnOnce(&mut ExecContext<'_, '_>) -> ExecResult<T>,
) -> ExecResult<T> {
    if ctx.waiting.is_some() {
        return write(ctx);
    }
    ctx.waiting = Some(Box::default());
    let result = write(ctx).and_then(|result| {
        while let Some(next) = ctx.waiting.as_mut().and_then(|queue| queue.entries.pop_front()) {
            ctx.tick()?;
            match next {
                Waiting::Reference(check, values) => check.run(ctx, &values)?,
                Waiting::Trigger(fire, old, new) => drop(fire.call(ctx, &old, &new)?),
            }
        }
        Ok(result)
    });
    ctx.waiting = None;
    result
}

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

/// The actions being compiled, by foreign key and event.
pub(crate) type ActionsUnderWay = rustc_hash::FxHashMap<(Oid, Event), Arc<Action>>;
