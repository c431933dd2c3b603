//! A transaction as those know it who meet what it has written.
//!
//! Images name their writer by its id, and each root lists the writers of its images ([`crate::partition`]).
//! What has become of a writer is one word, which all of them share:
//!
//! ```text
//!   running ──► deciding ──► committed in E
//!      └──────► aborted
//! ```
//!
//! Only what is running becomes something else but committed, by compare-and-swap: nobody aborts what is
//! being logged. Images of a writer that is running or deciding lock their rows; those of one that has ended
//! lock nothing. COMMIT and ROLLBACK of few changes put images in place, or take them out, under one claim of
//! all their partitions, and this word changes before the claim is given back: nobody meets one. Those of many
//! do so in slices once the word has changed ([`crate::txn::Commit`]); when the last one is through, the writer
//! is *over*.

use crate::id::{Epoch, TxnId};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// What has become of a [`Writer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Running,
    /// It is about to commit, and nobody aborts it any more.
    Deciding,
    Committed(Epoch),
    Aborted,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Writer {
    pub id: TxnId,
    outcome: AtomicU64,
    /// It has no image any more.
    over: AtomicBool,
}

const RUNNING: u64 = 0;
const DECIDING: u64 = 1;
const ABORTED: u64 = 2;
/// The epoch stands above these bits.
const COMMITTED: u64 = 3;
const EPOCH_SHIFT: u32 = 2;

impl Writer {
    /// A transaction that runs.
    pub fn new(id: TxnId) -> Self {
        Self { id, outcome: AtomicU64::new(RUNNING), over: AtomicBool::new(false) }
    }

    /// What has become of it so far.
    pub fn outcome(&self) -> Outcome {
        match self.outcome.load(Ordering::SeqCst) {
            RUNNING => Outcome::Running,
            DECIDING => Outcome::Deciding,
            ABORTED => Outcome::Aborted,
            committed => Outcome::Committed(Epoch(committed >> EPOCH_SHIFT)),
        }
    }

    /// Whether its images lock nothing any more.
    pub fn has_ended(&self) -> bool {
        !matches!(self.outcome(), Outcome::Running | Outcome::Deciding)
    }

    fn change(&self, from: u64, to: u64) -> bool {
        self.outcome.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Whether it is about to commit from now on; not if it has been aborted.
    pub fn decide(&self) -> bool {
        self.change(RUNNING, DECIDING)
    }

    /// It was about to commit, and has.
    ///
    /// # Panics
    /// If it was not: what it has written would be kept and taken out.
    pub fn commit(&self, epoch: Epoch) {
        let committed = self.change(DECIDING, epoch.0 << EPOCH_SHIFT | COMMITTED);
        assert!(committed, "a writer commits that has decided to, and once");
    }

    /// It has ended, and none of its images is left.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether it has ended and has no image any more.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Whether it is aborted from now on; not if it commits or has ended.
    pub fn abort(&self) -> bool {
        self.change(RUNNING, ABORTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_aborts_who_decides_and_nobody_commits_who_is_aborted() {
        let writer = Writer::new(TxnId(7));
        assert_eq!((writer.outcome(), writer.has_ended()), (Outcome::Running, false));
        assert!(writer.decide() && !writer.decide() && !writer.abort());
        assert_eq!((writer.outcome(), writer.has_ended()), (Outcome::Deciding, false));
        writer.commit(Epoch(12));
        assert_eq!((writer.outcome(), writer.has_ended()), (Outcome::Committed(Epoch(12)), true));
        assert!(!writer.abort() && !writer.decide());
        let other = Writer::new(TxnId(8));
        assert!(other.abort() && !other.abort() && !other.decide());
        assert_eq!((other.outcome(), other.has_ended()), (Outcome::Aborted, true));
        // The first epoch, and one that is none, are told from the states without one.
        for epoch in [0, 1, 2, 3] {
            let writer = Writer::new(TxnId(9));
            assert!(writer.decide());
            writer.commit(Epoch(epoch));
            assert_eq!(writer.outcome(), Outcome::Committed(Epoch(epoch)));
        }
    }

    #[test]
    #[should_panic(expected = "decided")]
    fn committing_without_a_decision_is_refused() {
        Writer::new(TxnId(7)).commit(Epoch(3));
    }
}
