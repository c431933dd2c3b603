//! What a caller hands to the engine, and what it gets back.
//!
//! A [`Program`] is one transaction (or one statement of an interactive one): plain
//! single-threaded code over claimed partitions. It first predicts what it will touch, then
//! runs; a wrong prediction, a row wait or a layout change undoes it and runs it again from the
//! start, which is why `run` must be restartable.

use crate::id::{Epoch, ExecutorId, TreeId};
use crate::partition::{ClaimSet, RoutingTable};
use crate::txn::Txn;

/// One unit of transactional work.
pub trait Program: Send + 'static {
    /// Adds what this program expects to touch. A prediction may be wrong: every access is
    /// checked against the bounds of what was claimed, and a miss restarts the program with
    /// the larger set.
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet);

    /// Which class of transactions this is one of, for the monitor: a routine's number, 0 for
    /// single statements.
    fn class(&self) -> u32 {
        0
    }

    /// Whether its runs are actions on the partitions it holds, as their counters have them. What only
    /// changes partitions or definitions is none.
    fn counts(&self) -> bool {
        true
    }

    /// Whether it is one statement, which under READ COMMITTED goes on with what it saw when it had
    /// to wait. Others run anew and see what is committed then.
    fn keeps_view(&self) -> bool {
        false
    }

    /// The tables that it is known to read, which are locked before it reads in pages.
    fn tables(&self) -> Vec<TreeId> {
        Vec::new()
    }

    /// After a run that has committed: whether it runs once more, another slice of one work, with claims that are
    /// predicted anew. Others come in between. How far it is it keeps itself; a run that is undone leaves that as it
    /// was.
    fn goes_on(&self) -> bool {
        false
    }

    /// Whether what it has done stands, so that nobody cancels it any more.
    fn is_final(&self) -> bool {
        false
    }

    /// It has ended, for good: whatever it has taken it gives back.
    fn ended(&mut self) {}

    /// Runs to completion. Every call starts afresh: state left by an earlier, undone run must
    /// be reset here. Errors of [`Stop`] must be passed up untouched.
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop>;
}

/// A program that is large goes from hand to hand as a pointer.
impl<P: Program> Program for Box<P> {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        (**self).predict(routing, claims);
    }

    fn class(&self) -> u32 {
        (**self).class()
    }

    fn counts(&self) -> bool {
        (**self).counts()
    }

    fn keeps_view(&self) -> bool {
        (**self).keeps_view()
    }

    fn tables(&self) -> Vec<TreeId> {
        (**self).tables()
    }

    fn goes_on(&self) -> bool {
        (**self).goes_on()
    }

    fn is_final(&self) -> bool {
        (**self).is_final()
    }

    fn ended(&mut self) {
        (**self).ended();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        (**self).run(txn)
    }
}

/// Why a program stopped before its end. Control flow: never caught by an SQL handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Something outside the claimed partitions is needed; the engine has noted what, undoes
    /// the program and runs it again with the larger set. Never seen in an [`Outcome`].
    Restart,
    /// A row is locked by an interactive transaction; the engine has enqueued the program
    /// there and runs it again when woken. Never seen in an [`Outcome`].
    Wait,
    /// A row changed since the statement saw it and waited: the engine has noted which, undoes the
    /// program and runs it again, seeing the row as it is now. Never seen in an [`Outcome`].
    Reevaluate,
    /// The program cannot go on as a one-shot (it sleeps, or exceeded its budget): run it again
    /// as an interactive transaction. Or it cannot go on in pages (it writes): run it again without.
    Interactive,
    /// A table or index changed its layout since the program was compiled.
    Recompile,
    /// The program stored its own error and wants to be undone.
    Abort,
    /// The snapshot was cancelled, because the versions kept for it took too much memory (72000).
    SnapshotTooOld,
    /// There is no memory for what it writes (SQLSTATE 53200): see [`crate::heap`].
    OutOfMemory,
    /// There is none for a thread that it cannot do without (53200).
    NoThread,
    /// The transaction has written more than one can: [`crate::TransactionLimits`] (53200).
    TransactionTooLarge,
    /// A row is larger than one can be (54000).
    RowTooLarge,
    /// The key of a row or of an index entry is longer than one can be (54000).
    KeyTooLarge,
    /// The submission was cancelled (57014).
    Cancelled,
    /// Somebody committed a change of a row that this transaction, which reads at a snapshot,
    /// wants to write or lock (40001).
    ConcurrentUpdate,
    /// As before; the row is gone (40001).
    ConcurrentDelete,
    /// The row that a statement has waited for is another partition's of its table now (40001).
    MovedAway,
    /// What a SERIALIZABLE transaction read does not hold at its commit (40001).
    NotSerializable,
    /// This program waited for a row in a cycle of waiters (40P01).
    Deadlock,
    /// A row is locked and the caller asked not to wait (55P03).
    LockNotAvailable,
    /// The interactive transaction is over or doomed (25P02, or 25000).
    TransactionEnded,
    /// The operation is not possible inside an interactive transaction (25001).
    OneShotOnly,
    /// The program panicked and was undone (XX000).
    Panicked,
    /// The log's disk is full: writes are refused until there is space (53100).
    DiskFull,
    /// The log failed for good; the process is about to end (58030).
    LogFailed,
}

/// How a submission went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub result: Result<(), Stop>,
    /// The newest epoch this transaction wrote in or read from: its reply may leave when that
    /// epoch is durable. `Epoch(0)` depends on nothing.
    pub depends_on: Epoch,
    /// How often the program was undone and run again.
    pub restarts: u32,
    /// How many partitions were held at the end.
    pub partitions: u32,
    /// The executor whose thread ran it; `None` when the caller's own thread, no executor, did.
    pub ran_on: Option<ExecutorId>,
    /// Whether the submitting thread ran it on the spot.
    pub inline: bool,
}

/// A finished program, returned to its owner.
pub struct Completed<P> {
    pub program: P,
    pub outcome: Outcome,
}
