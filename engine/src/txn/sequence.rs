//! Sequences and hidden row ids.
//!
//! A value is never handed out again after a crash: before values beyond the logged bound are
//! used, a new bound (PostgreSQL's 32 values ahead) goes to the log, in an epoch that whoever
//! uses the values depends on. Gaps are allowed, as in PostgreSQL: an undone transaction does
//! not give its values back.
//!
//! A sequence has a number under its latch, as a partition has ([`crate::log::transaction`]): the record of
//! each bound gets one more, and one more than all that whoever draws has met; and whoever uses a value comes
//! behind the record of its bound. So no prefix of the log has a value without its bound.
//!
//! Whoever draws changes the sequence, and waits for others who do. A session whose sequence has a CACHE
//! draws as many at once, and then neither writes nor locks what others see until they are used up: what
//! it asks for with each of them ([`Txn::lean_on_value`], [`Txn::sequence_incarnation`]) lies apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::utils::CachePadded;
use parking_lot::{Mutex, MutexGuard};
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
    /// The epoch in which the bound was logged, and the number of its record, which grow; beside `state`,
    /// under whose lock they change.
    bound_epoch: AtomicU64,
    bound_number: AtomicU64,
    state: CachePadded<Mutex<SequenceState>>,
}

/// When a bound was logged: what whoever uses a value beneath depends on, and comes behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedBound {
    pub epoch: Epoch,
    pub number: u64,
}

impl LoggedBound {
    /// None was logged since the start.
    pub const NONE: Self = Self { epoch: Epoch(0), number: 0 };
}

/// Where a sequence stands, as PostgreSQL keeps it. What comes next is not kept: another increment
/// leads from the same place to another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequencePosition {
    pub last: i64,
    /// Whether `last` was handed out; else it comes next.
    pub called: bool,
}

impl SequencePosition {
    /// The value that `def` has come next; beyond its bounds when it is exhausted.
    fn next(self, def: &SequenceDef) -> i128 {
        let last = i128::from(self.last);
        if self.called { last + i128::from(def.increment) } else { last }
    }
}

#[derive(Debug)]
pub(super) struct SequenceState {
    position: SequencePosition,
    /// Values up to here (in the direction of the increment) may be used: the log says so.
    bound: i128,
    /// It was dropped, or another one is in its place: it gives no number and logs no bound any more.
    ended: bool,
}

impl SequenceState {
    fn new(def: &SequenceDef, position: SequencePosition) -> Self {
        // The bound lies before the next value, so the first use logs.
        let bound = position.next(def) - i128::from(def.increment);
        Self { position, bound, ended: false }
    }

    /// Where the sequence stands.
    pub fn position(&self) -> SequencePosition {
        self.position
    }

    /// The sequence, which is new, goes on from where another one stood.
    pub fn go_on_from(&mut self, def: &SequenceDef, position: SequencePosition) {
        *self = Self::new(def, position);
    }

    /// The sequence ends.
    pub fn end(&mut self) {
        self.ended = true;
    }
}

/// What the log and the checkpoint keep of a sequence.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SequenceRecord {
    /// The value after those that may have been used. Records of older versions have nothing else.
    next: i128,
    /// Orders the records of one epoch.
    at: u64,
    /// Where it stands once all values that may have been used are.
    #[serde(default)]
    position: Option<SequencePosition>,
}

impl SequenceRecord {
    /// A record of where a sequence stands.
    pub fn new(position: SequencePosition, def: &SequenceDef, at: u64) -> SequenceRecord {
        SequenceRecord { next: position.next(def), at, position: Some(position) }
    }

    /// Where the sequence stands.
    pub fn position(&self, def: &SequenceDef) -> SequencePosition {
        if let Some(position) = self.position {
            return position;
        }
        let within = i128::from(def.min)..=i128::from(def.max);
        let before = self.next - i128::from(def.increment);
        let is_first = self.next == i128::from(def.start);
        match (i64::try_from(before), i64::try_from(self.next)) {
            (Ok(last), _) if within.contains(&before) && !is_first => SequencePosition { last, called: true },
            (_, Ok(next)) if within.contains(&self.next) => SequencePosition { last: next, called: false },
            // Beyond its end: there its last value is.
            _ => SequencePosition { last: if def.increment > 0 { def.max } else { def.min }, called: true },
        }
    }
}

/// The result of asking for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextValue {
    Value(i64),
    /// The sequence reached its maximum (or minimum) and does not cycle (2200H).
    Exhausted,
}

impl Sequence {
    pub(crate) fn new(def: SequenceDef, position: Option<SequencePosition>) -> Arc<Self> {
        let position = position.unwrap_or(SequencePosition { last: def.start, called: false });
        let state = CachePadded::new(Mutex::new(SequenceState::new(&def, position)));
        static INCARNATIONS: AtomicU64 = AtomicU64::new(0);
        let incarnation = INCARNATIONS.fetch_add(1, Ordering::Relaxed);
        let (bound_epoch, bound_number) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { def, incarnation, bound_epoch, bound_number, state })
    }

    /// Tells running sequences apart: one that is restarted or altered is another one, and gives
    /// numbers again that this one gave.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The value handed out last, if any was.
    pub fn last_value(&self) -> Option<i64> {
        let position = self.position();
        position.called.then_some(position.last)
    }

    /// Where it stands.
    pub fn position(&self) -> SequencePosition {
        self.state.lock().position
    }

    /// What a `SELECT` from the sequence shows: where it stands, and how many more values are logged.
    pub fn shown(&self) -> (SequencePosition, i64) {
        let state = self.state.lock();
        let ahead = (state.bound - i128::from(state.position.last)) / i128::from(self.def.increment);
        (state.position, i64::try_from(ahead.max(0)).unwrap_or(0))
    }

    /// The next value that would be handed out.
    pub(crate) fn peek(&self) -> i128 {
        self.position().next(&self.def)
    }

    /// The greatest of so many values after one (the least, where they descend) that is within bounds.
    fn ahead(&self, value: i128, count: i128) -> i128 {
        let step = i128::from(self.def.increment);
        let end = i128::from(if step > 0 { self.def.max } else { self.def.min });
        value + count.min((end - value) / step).max(0) * step
    }

    /// Keeps everybody from drawing until the latch is given back.
    pub(super) fn latch(&self) -> MutexGuard<'_, SequenceState> {
        self.state.lock()
    }

    /// The first of so many values, as far as there are so many, and the bound that whoever uses them depends
    /// on; `met` is the greatest number of what whoever draws has met. `None`: the sequence has ended, and the
    /// definitions of now know what is in its place.
    pub(crate) fn take(
        &self,
        shared: &Arc<Shared>,
        worker: &mut Worker,
        count: i128,
        met: u64,
    ) -> Option<(NextValue, LoggedBound)> {
        let mut state = self.state.lock();
        if state.ended {
            return None;
        }
        let def = &self.def;
        let step = i128::from(def.increment);
        let mut value = state.position.next(def);
        if value > i128::from(def.max) || value < i128::from(def.min) {
            if !def.cycle {
                return Some((NextValue::Exhausted, self.bound()));
            }
            value = i128::from(if step > 0 { def.min } else { def.max });
            state.bound = value - step;
        }
        let last = self.ahead(value, count - 1);
        if (last - state.bound) * step.signum() > 0 {
            state.bound = self.ahead(last, LOG_AHEAD);
            self.log_bound(shared, worker, called_to(state.bound), met);
        }
        state.position = called_to(last);
        Some((NextValue::Value(value as i64), self.bound()))
    }

    /// What depends on a value that was drawn depends on this bound, or on one before it.
    fn bound(&self) -> LoggedBound {
        LoggedBound { epoch: Epoch(self.bound_epoch.load(Ordering::Acquire)), number: self.bound_number() }
    }

    /// The number of the record of its bound; the last one, if the latch is held.
    pub(super) fn bound_number(&self) -> u64 {
        self.bound_number.load(Ordering::Acquire)
    }

    /// Logs where it stands once all values that may be used are; the caller has the latch. A commit of its
    /// own: it must hold even if the transaction that needs the value is undone, for others use the values that
    /// follow.
    fn log_bound(&self, shared: &Arc<Shared>, worker: &mut Worker, position: SequencePosition, met: u64) {
        let greatest = met.max(self.bound_number());
        let epoch = shared.epochs.enter(&worker.slot);
        let record = SequenceRecord::new(position, &self.def, shared.next_meta_sequence());
        let bytes = serde_json::to_vec(&record).unwrap_or_default();
        let mut records = Vec::new();
        redo::meta(&mut records, record.at, sequence_key(self.def.id).as_bytes(), Some(&bytes));
        let number = worker.log_system(epoch, greatest, &records);
        shared.epochs.leave(&worker.slot);
        self.bound_epoch.store(epoch.0, Ordering::Release);
        self.bound_number.store(number, Ordering::Release);
    }

    /// Sets it to a value, which was handed out or comes next; the bound that whoever knows of it depends on.
    /// Else as [`Sequence::take`].
    pub(crate) fn set(
        &self,
        shared: &Arc<Shared>,
        worker: &mut Worker,
        (value, called): (i64, bool),
        met: u64,
    ) -> Option<LoggedBound> {
        let mut state = self.state.lock();
        if state.ended {
            return None;
        }
        state.position = SequencePosition { last: value, called };
        state.bound = state.position.next(&self.def) - i128::from(self.def.increment);
        self.log_bound(shared, worker, state.position, met);
        Some(self.bound())
    }
}

/// Where a sequence stands that has handed out a value within its bounds, which are 64 bits wide.
fn called_to(value: i128) -> SequencePosition {
    SequencePosition { last: value as i64, called: true }
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
            let met = self.greatest_met();
            if let Some((taken, bound)) = sequence.take(self.shared, self.worker, ROW_ID_BLOCK, met) {
                self.worker.row_ids_bound = bound;
                if let NextValue::Value(first) = taken {
                    self.worker.row_ids = first..first + ROW_ID_BLOCK as i64;
                }
            }
        }
        self.use_value(self.worker.row_ids_bound);
        self.worker.row_ids.next().unwrap_or(i64::MAX)
    }

    /// `nextval`. [`Stop::Recompile`] if there is no such sequence.
    pub fn next_value(&mut self, id: SequenceId) -> Result<NextValue, Stop> {
        self.draw(id, 1).map(|(value, _)| value)
    }

    /// So many values at once, as far as there are so many before the sequence's end: the first and the
    /// last of them; `None` if there is none. Else as [`Txn::next_value`].
    pub fn next_values(&mut self, id: SequenceId, count: i64) -> Result<Option<(i64, i64)>, Stop> {
        let count = i128::from(count.max(1));
        let (value, sequence) = self.draw(id, count)?;
        Ok(match value {
            // Within the sequence's bounds, which are 64 bits wide.
            NextValue::Value(first) => Some((first, sequence.ahead(i128::from(first), count - 1) as i64)),
            NextValue::Exhausted => None,
        })
    }

    /// Draws from a sequence, or from the one that is in its place by now.
    fn draw(&mut self, id: SequenceId, count: i128) -> Result<(NextValue, Arc<Sequence>), Stop> {
        self.admit_sequence(id)?;
        loop {
            let sequence = self.sequence(id)?;
            let met = self.greatest_met();
            if let Some((value, bound)) = sequence.take(self.shared, self.worker, count, met) {
                self.note_drawn(id, sequence.incarnation());
                self.use_value(bound);
                return Ok((value, sequence));
            }
            // It has ended, and with its latch the definitions of now are published.
            self.worker.refresh(self.shared);
        }
    }

    /// A value that this transaction takes over from one that was undone, to be run again: as with
    /// [`Txn::next_value`], whoever uses it depends on what the log says of it.
    pub fn lean_on_value(&mut self, id: SequenceId) -> Result<(), Stop> {
        self.admit_sequence(id)?;
        let running = self.running(id)?;
        let (bound, incarnation) = (running.bound(), running.incarnation());
        self.note_drawn(id, incarnation);
        self.use_value(bound);
        Ok(())
    }

    /// `setval(sequence, value, is_called)`; not undone with the transaction, as in PostgreSQL.
    pub fn set_value(&mut self, id: SequenceId, value: i64, is_called: bool) -> Result<(), Stop> {
        self.admit_sequence(id)?;
        loop {
            let sequence = self.sequence(id)?;
            let met = self.greatest_met();
            if let Some(bound) = sequence.set(self.shared, self.worker, (value, is_called), met) {
                self.use_value(bound);
                return Ok(());
            }
            self.worker.refresh(self.shared);
        }
    }

    /// It uses a value beneath this bound.
    fn use_value(&mut self, bound: LoggedBound) {
        self.depend(bound.epoch);
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::BoundBehindUser) {
            return;
        }
        self.come_after(bound.number);
    }

    /// A number comes from a sequence as these definitions have it: see [`Txn::numbers_hold`].
    fn note_drawn(&mut self, id: SequenceId, incarnation: u64) {
        // Nobody else alters sequences while this transaction does, and of its own only it knows.
        if self.ddl.is_some() {
            return;
        }
        self.drawn_under.get_or_insert(self.worker.definitions_version());
        if !self.drawn.contains(&(id, incarnation)) {
            self.drawn.push((id, incarnation));
        }
    }

    /// Whether the sequences that numbers were drawn from are in force, and nobody is about to end one.
    /// Others may have the same numbers from what is in the place of one that is not, and have used them:
    /// then this transaction, which comes before that, must not come after it. `defines`: it may end some
    /// itself.
    pub(super) fn numbers_hold(&self, defines: bool) -> bool {
        let Some(version) = self.drawn_under else { return true };
        // First: whoever has ended some by now has published it before.
        if !defines && self.shared.references.defines() {
            return false;
        }
        if version == self.shared.definitions_version() {
            return true;
        }
        let schema = self.shared.load_schema();
        self.drawn.iter().all(|(id, incarnation)| {
            schema.sequences.get(id).is_some_and(|sequence| sequence.incarnation == *incarnation)
        })
    }

    /// The running sequence behind an id.
    pub fn sequence(&self, id: SequenceId) -> Result<Arc<Sequence>, Stop> {
        self.running(id).cloned()
    }

    /// [`Sequence::incarnation`] of the running sequence behind an id.
    pub fn sequence_incarnation(&self, id: SequenceId) -> Result<u64, Stop> {
        self.running(id).map(|sequence| sequence.incarnation())
    }

    /// The same without counting a reference, which would be one for all sessions.
    fn running(&self, id: SequenceId) -> Result<&Arc<Sequence>, Stop> {
        let schema = match &self.ddl {
            Some(work) => &work.schema,
            None => &*self.worker.schema,
        };
        schema.sequences.get(&id).ok_or(Stop::Recompile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEF: SequenceDef =
        SequenceDef { id: SequenceId(7), start: 5, increment: 10, min: 1, max: 100, cycle: false };

    fn read(record: &str) -> SequencePosition {
        serde_json::from_str::<SequenceRecord>(record).expect("a record").position(&DEF)
    }

    #[test]
    fn records_of_older_versions_say_what_comes_next() {
        assert_eq!(read(r#"{"next":5,"at":1}"#), SequencePosition { last: 5, called: false });
        assert_eq!(read(r#"{"next":45,"at":1}"#), SequencePosition { last: 35, called: true });
        assert_eq!(read(r#"{"next":7,"at":1}"#), SequencePosition { last: 7, called: false });
        assert_eq!(read(r#"{"next":105,"at":1}"#), SequencePosition { last: 95, called: true });
        assert_eq!(read(r#"{"next":325,"at":1}"#), SequencePosition { last: 100, called: true });
    }

    #[test]
    fn records_keep_where_a_sequence_stands() {
        for position in
            [SequencePosition { last: 5, called: true }, SequencePosition { last: 45, called: false }]
        {
            let record = serde_json::to_string(&SequenceRecord::new(position, &DEF, 3)).expect("written");
            assert_eq!(read(&record), position);
        }
    }
}
