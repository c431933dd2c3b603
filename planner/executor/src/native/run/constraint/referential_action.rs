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

use archipel_sql::catalog::TriggerEvent;
use archipel_sql::datum::{Array, Datum, Dimension};
use archipel_sql::error::SqlError;
use archipel_sql::types::Oid;

use super::foreign_key::ReferenceCheck;
use crate::native::run::change::delete::Delete;
use crate::native::run::change::inheritance::Members;
use crate::native::run::change::row_trigger::Triggering;
use crate::native::run::change::trigger::Fire;
use crate::native::run::change::update::Update;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::{ExecError, ExecResult};

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
    pub(crate) text: String,
    /// Where its values go before it runs.
    pub(crate) inputs: Vec<u32>,
    /// Set once it is compiled: on the way there it may have met itself.
    pub(crate) body: OnceLock<ActionBody>,
}

pub(crate) enum ActionBody {
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

/// The actions being compiled, by foreign key and event.
pub(crate) type ActionsUnderWay = rustc_hash::FxHashMap<(Oid, Event), Arc<Action>>;
