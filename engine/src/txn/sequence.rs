//! Sequences and hidden row ids.
//!
//! A value is never handed out again after a crash: before values beyond the logged bound are
//! used, a new bound (PostgreSQL's 32 values ahead) goes to the log, in an epoch that whoever
//! uses the values depends on. Gaps are allowed, as in PostgreSQL: an undone transaction does
//! not give its values back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::Txn;
use crate::engine::Shared;
use crate::executor::Worker;
use crate::id::{Epoch, SequenceId};
use crate::log::redo;
use crate::program::Stop;
use crate::table::SequenceDef;

/// How many values ahead the log is.
const LOG_AHEAD: i128 = 32;

/// A running sequence. Its id in the log and its definition never change together: ALTER makes
/// a new one.
#[derive(Debug)]
pub struct Sequence {
    pub def: SequenceDef,
    incarnation: u64,
    state: Mutex<SequenceState>,
}

#[derive(Debug)]
struct SequenceState {
    /// The next value to hand out; beyond min or max when exhausted.
    next: i128,
    /// The last value handed out or set, for `currval` of a session and `last_value`.
    last: Option<i64>,
    /// Values up to here (in the direction of the increment) may be used: the log says so.
    bound: i128,
    bound_epoch: Epoch,
}

/// What the log and the checkpoint keep of a sequence.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SequenceRecord {
    pub next: i128,
    /// Orders the records of one epoch.
    pub at: u64,
}

/// The result of asking for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextValue {
    Value(i64),
    /// The sequence reached its maximum (or minimum) and does not cycle (2200H).
    Exhausted,
}

impl Sequence {
    pub(crate) fn new(def: SequenceDef, next: Option<i128>) -> Arc<Self> {
        let next = next.unwrap_or_else(|| i128::from(def.start));
        // The bound lies before the next value, so the first use logs.
        let bound = next - i128::from(def.increment);
        let state = SequenceState { next, last: None, bound, bound_epoch: Epoch(0) };
        static INCARNATIONS: AtomicU64 = AtomicU64::new(0);
        let incarnation = INCARNATIONS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { def, incarnation, state: Mutex::new(state) })
    }

    /// Tells running sequences apart: one that is restarted or altered is another one, and gives
    /// numbers again that this one gave.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The value handed out last, if any since the start.
    pub fn last_value(&self) -> Option<i64> {
        self.state.lock().last
    }

    /// What a `SELECT` from the sequence shows: a value, whether the next one comes after it or is
    /// itself it, and how many more are logged. The next value is what counts: which one was the last
    /// is not kept over a restart.
    pub fn shown(&self) -> (i64, bool, i64) {
        let state = self.state.lock();
        let step = i128::from(self.def.increment);
        let within = i128::from(self.def.min)..=i128::from(self.def.max);
        let next = i64::try_from(state.next).ok().filter(|_| within.contains(&state.next));
        match (state.last, next) {
            (Some(last), _) => {
                let ahead = (state.bound - i128::from(last)) / step;
                (last, true, i64::try_from(ahead.max(0)).unwrap_or(0))
            }
            (None, Some(next)) => (next, false, 0),
            (None, None) => (if step > 0 { self.def.max } else { self.def.min }, true, 0),
        }
    }

    /// The next value that would be handed out.
    pub(crate) fn peek(&self) -> i128 {
        self.state.lock().next
    }

    pub(crate) fn take(&self, shared: &Arc<Shared>, worker: &mut Worker, count: i128) -> (NextValue, Epoch) {
        let mut state = self.state.lock();
        let def = &self.def;
        let step = i128::from(def.increment);
        let exhausted = |value: i128| value > i128::from(def.max) || value < i128::from(def.min);
        if exhausted(state.next) {
            if !def.cycle {
                return (NextValue::Exhausted, state.bound_epoch);
            }
            state.next = i128::from(if step > 0 { def.min } else { def.max });
            state.bound = state.next - step;
        }
        let value = state.next;
        let last = value + (count - 1) * step;
        if (last - state.bound) * step.signum() > 0 {
            state.bound = last + LOG_AHEAD * step;
            state.bound_epoch = log_bound(shared, worker, def.id, state.bound + step);
        }
        state.next = last + step;
        state.last = Some(value as i64);
        (NextValue::Value(value as i64), state.bound_epoch)
    }

    pub(crate) fn set(&self, shared: &Arc<Shared>, worker: &mut Worker, value: i64, called: bool) -> Epoch {
        let mut state = self.state.lock();
        let step = i128::from(self.def.increment);
        state.next = if called { i128::from(value) + step } else { i128::from(value) };
        state.last = called.then_some(value);
        state.bound = state.next - step;
        state.bound_epoch = log_bound(shared, worker, self.def.id, state.next);
        state.bound_epoch
    }
}

/// Logs that values before `next` may have been used. A commit of its own: it must hold even
/// if the transaction that needs the value is undone, for others use the values that follow.
fn log_bound(shared: &Arc<Shared>, worker: &mut Worker, id: SequenceId, next: i128) -> Epoch {
    let epoch = shared.epochs.enter(&worker.slot);
    let record = SequenceRecord { next, at: shared.next_meta_sequence() };
    let bytes = serde_json::to_vec(&record).unwrap_or_default();
    let mut records = Vec::new();
    redo::meta(&mut records, record.at, sequence_key(id).as_bytes(), Some(&bytes));
    worker.log_bytes(epoch, &records);
    shared.epochs.leave(&worker.slot);
    epoch
}

/// The key of a sequence's bound in the log's meta space.
pub(crate) fn sequence_key(id: SequenceId) -> String {
    format!("value/{}", id.0)
}

/// Row ids a thread takes at once.
const ROW_ID_BLOCK: i128 = 4_096;

/// The sequence behind hidden row ids.
pub(crate) const ROW_ID_SEQUENCE: SequenceDef =
    SequenceDef { id: SequenceId(u32::MAX), start: 1, increment: 1, min: 1, max: i64::MAX, cycle: false };

/// The sequence behind the numbers of starts.
pub(crate) const START_SEQUENCE: SequenceDef =
    SequenceDef { id: SequenceId(u32::MAX - 1), start: 0, increment: 1, min: 0, max: i64::MAX, cycle: false };

impl Txn<'_> {
    /// A value no other row of any table has had, for tables without a primary key. Allocated
    /// in blocks per thread, so ids of one thread ascend and threads do not meet.
    pub fn hidden_row_id(&mut self) -> i64 {
        if self.worker.row_ids.is_empty() {
            let sequence = self.shared.row_ids.clone();
            let (taken, epoch) = sequence.take(self.shared, self.worker, ROW_ID_BLOCK);
            self.worker.row_ids_epoch = epoch;
            if let NextValue::Value(first) = taken {
                self.worker.row_ids = first..first + ROW_ID_BLOCK as i64;
            }
        }
        let epoch = self.worker.row_ids_epoch;
        self.depend(epoch);
        self.worker.row_ids.next().unwrap_or(i64::MAX)
    }

    /// `nextval`. [`Stop::Recompile`] if there is no such sequence.
    pub fn next_value(&mut self, id: SequenceId) -> Result<NextValue, Stop> {
        self.admit_sequence(id)?;
        let sequence = self.sequence(id)?;
        self.draws_under();
        let (value, epoch) = sequence.take(self.shared, self.worker, 1);
        self.depend(epoch);
        Ok(value)
    }

    /// A value that this transaction takes over from one that was undone, to be run again: as with
    /// [`Txn::next_value`], whoever uses it depends on what the log says of it.
    pub fn lean_on_value(&mut self, id: SequenceId) -> Result<(), Stop> {
        self.admit_sequence(id)?;
        self.draws_under();
        let epoch = self.sequence(id)?.state.lock().bound_epoch;
        self.depend(epoch);
        Ok(())
    }

    /// `setval(sequence, value, is_called)`; not undone with the transaction, as in PostgreSQL.
    pub fn set_value(&mut self, id: SequenceId, value: i64, is_called: bool) -> Result<(), Stop> {
        self.admit_sequence(id)?;
        let sequence = self.sequence(id)?;
        let epoch = sequence.set(self.shared, self.worker, value, is_called);
        self.depend(epoch);
        Ok(())
    }

    /// A number comes from a sequence as these definitions have it: see [`Txn::holds_too_late`].
    fn draws_under(&mut self) {
        self.drawn_under.get_or_insert(self.worker.definitions_version());
    }

    /// Whether the claim just made, the only one, came after definitions that came after a number
    /// was drawn. They may have restarted the sequence, and others may have the same number from it
    /// by now; while a claim is held, nobody defines anything.
    pub(super) fn holds_too_late(&self) -> bool {
        self.held.len() == 1
            && self.drawn_under.is_some_and(|version| version != self.shared.definitions_version())
    }

    /// The running sequence behind an id.
    pub fn sequence(&self, id: SequenceId) -> Result<Arc<Sequence>, Stop> {
        let schema = match &self.ddl {
            Some(work) => &work.schema,
            None => &*self.worker.schema,
        };
        schema.sequences.get(&id).cloned().ok_or(Stop::Recompile)
    }
}
