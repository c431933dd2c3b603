//! Sequences made, altered and dropped while others draw from them.
//!
//! Nobody claims anything to draw. So a sequence that is altered or dropped is ended: at the commit
//! point, with its latch held from before the epoch is entered until the new definitions are published.
//!
//! ```text
//! who defines    latch │ enter │ position, record │ ended │ publish │ leave │ unlatch
//! who draws                                                                 │ ended: looks again, by the
//!                                                                             definitions of now
//! ```
//!
//! So the altered one goes on exactly where the old one stood, the old one logs no bound behind the
//! new record, and who draws gets numbers of the one or of the other. Who has drawn from one that ended
//! before it commits itself runs again ([`Txn::numbers_hold`]): others may have the same number by then.

use std::sync::Arc;

use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::{MadeSequence, SequenceChanges, sequence_definition_key};
use crate::id::SequenceId;
use crate::log::redo;
use crate::program::Stop;
use crate::table::SequenceDef;
use crate::txn::sequence::{Sequence, SequencePosition, SequenceRecord, SequenceState, sequence_key};
use crate::txn::{Inserted, Txn};

/// Sequences that a commit ends or reads.
#[derive(Default)]
pub(in crate::txn) struct ToLatch(Vec<Arc<Sequence>>);

/// Their latches: whoever draws waits until they are given back.
pub(in crate::txn) struct Latched<'s> {
    sequences: &'s [Arc<Sequence>],
    states: SmallVec<[MutexGuard<'s, SequenceState>; 2]>,
}

impl ToLatch {
    /// Takes the latches.
    pub fn latch(&self) -> Latched<'_> {
        Latched { sequences: &self.0, states: self.0.iter().map(|sequence| sequence.latch()).collect() }
    }
}

impl Latched<'_> {
    /// The greatest number of their bounds: whoever ends them comes behind those.
    pub fn greatest_number(&self) -> u64 {
        self.sequences.iter().map(|sequence| sequence.bound_number()).max().unwrap_or(0)
    }

    /// Looks at, or changes, the state of a sequence, which may be one of these.
    fn with<R>(&mut self, sequence: &Arc<Sequence>, body: impl FnOnce(&mut SequenceState) -> R) -> R {
        let at = self.sequences.iter().position(|other| Arc::ptr_eq(other, sequence));
        match at.and_then(|at| self.states.get_mut(at)) {
            Some(state) => body(state),
            // Nobody else knows it yet.
            None => body(&mut sequence.latch()),
        }
    }
}

impl Txn<'_> {
    pub(super) fn make_sequence(&mut self, def: SequenceDef) -> Result<Inserted, Stop> {
        self.put_sequence(Sequence::new(def, None), None)
    }

    /// A sequence in the place of `from`, which is itself or another one. It goes on where that stands,
    /// unless `restart` says otherwise.
    pub(super) fn alter_sequence(
        &mut self,
        def: SequenceDef,
        restart: Option<i64>,
        from: SequenceId,
    ) -> Result<Inserted, Stop> {
        match restart {
            Some(value) => {
                let position = SequencePosition { last: value, called: false };
                self.put_sequence(Sequence::new(def, Some(position)), None)
            }
            None => {
                let from = self.sequence(from)?;
                self.put_sequence(Sequence::new(def, Some(from.position())), Some(from))
            }
        }
    }

    fn put_sequence(
        &mut self,
        sequence: Arc<Sequence>,
        from: Option<Arc<Sequence>>,
    ) -> Result<Inserted, Stop> {
        let work = self.work()?;
        let def = sequence.def;
        work.sequences.ended.extend(work.schema.sequences.get(&def.id).cloned());
        work.schema.sequences.insert(def.id, sequence.clone());
        work.note(sequence_definition_key(def.id), Some(&def));
        work.sequences.made.push(MadeSequence { sequence, from });
        Ok(Inserted::Ok)
    }

    pub(super) fn drop_sequence(&mut self, id: SequenceId) -> Result<Inserted, Stop> {
        let work = self.work()?;
        work.sequences.ended.extend(work.schema.sequences.remove(&id));
        work.sequences.made.retain(|made| made.sequence.def.id != id);
        work.note(sequence_definition_key(id), None::<&SequenceDef>);
        work.note(sequence_key(id), None::<&SequenceRecord>);
        Ok(Inserted::Ok)
    }

    /// The sequences that the commit of this transaction's definitions is to hold.
    pub(in crate::txn) fn sequences_to_latch(&self) -> ToLatch {
        let Some(work) = &self.ddl else { return ToLatch::default() };
        let changes = &work.sequences;
        let mut all: Vec<Arc<Sequence>> = changes.ended.clone();
        for from in changes.made.iter().filter_map(|made| made.from.as_ref()) {
            if !all.iter().any(|other| Arc::ptr_eq(other, from)) {
                all.push(from.clone());
            }
        }
        ToLatch(all)
    }
}

impl Txn<'_> {
    /// The redo of the definitions, whose sequences are latched: those end.
    pub(in crate::txn) fn log_definitions(&mut self, latched: &mut Latched<'_>) {
        if let Some(work) = &mut self.ddl {
            work.end_sequences(latched, || self.shared.next_meta_sequence());
            for (key, bytes) in work.meta.drain(..) {
                let at = self.shared.next_meta_sequence();
                redo::meta(&mut self.worker.scratch.redo, at, key.as_bytes(), bytes.as_deref());
            }
        }
    }
}

impl super::DdlWork {
    /// Ends sequences, and notes where those stand that come in their places. `next` numbers records.
    fn end_sequences(&mut self, latched: &mut Latched<'_>, mut next: impl FnMut() -> u64) {
        let SequenceChanges { made, ended } = std::mem::take(&mut self.sequences);
        for MadeSequence { sequence, from } in made {
            let def = sequence.def;
            if let Some(from) = from {
                let position = latched.with(&from, |state| state.position());
                latched.with(&sequence, |state| state.go_on_from(&def, position));
            }
            let position = latched.with(&sequence, |state| state.position());
            self.note(sequence_key(def.id), Some(&SequenceRecord::new(position, &def, next())));
        }
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::EndedSequenceGivesOn) {
            return;
        }
        for sequence in ended {
            latched.with(&sequence, SequenceState::end);
        }
    }
}
