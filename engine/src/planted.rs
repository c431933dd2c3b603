//! Bugs planted on purpose, so that the simulation can prove that it would find them.
//!
//! Compiled into the engine's own tests only. A bug is switched on for one thread; the code it
//! breaks asks [`is`] at the place where the mistake would be made.

use std::cell::Cell;

/// One mistake each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A partition that somebody else holds is used without a claim.
    SkipClaim,
    /// A transaction commits in the epoch in which it began, which may be closed by now.
    EarlyEpoch,
    /// Commits count as durable before the sync.
    EarlyAcknowledgement,
    /// A ticket whose range moved is forgotten instead of forwarded.
    DropForwarded,
    /// A queue is divided when others know the upper part of the split, as if nobody stood in both.
    LateDivision,
    /// A held partition is used for a key that it does not cover any more.
    StaleRouting,
    /// A long read that goes backwards keeps its upper bound when it comes to the next partition, which
    /// by then may be one with the last.
    StaleBound,
    /// A transaction leaves its number in no partition that it has held.
    NumberNotStored,
    /// The log's thread writes the parts that a batch names behind it.
    CommitBeforeParts,
    /// A start takes in all parts there are, whether or not a commit names them.
    UndecidedApplied,
    /// A checkpoint drops the parts below its cut before its mark is written.
    PartsGoEarly,
    /// Who replaces a reference table takes no account of the numbers of those who have read it.
    ReferenceNumberAlone,
    /// Who uses a value of a sequence does not come behind the record of its bound.
    BoundBehindUser,
    /// Who only reads leaves what it has met in nothing that it has held.
    ReadersRaiseNothing,
    /// A client's next program knows nothing of what the one before has met.
    ClientForgets,
    /// A sequence that has another one in its place still gives values.
    EndedSequenceGivesOn,
    /// A page of a long read shows what is committed now, and not what its snapshot shows.
    NewerPage,
    /// A partition that is split keeps the images of rows that go to the upper part.
    SplitLeavesImages,
    /// Writers leave an index alone that is still being filled.
    DeclaredUnattended,
    /// Who fills an index makes entries of rows that an open transaction is about to change.
    FilledOverImages,
    /// A start takes an index that was only declared for one that was complete.
    DeclaredKept,
    /// Who reads passes beneath images of a transaction that has committed.
    UnsettledSkipped,
    /// Who puts such an image in place keeps nothing of what was there before the commit.
    SettleForgetsPast,
    /// A slice of a checkpoint writes what is beneath such images.
    SliceBeneath,
    /// A run of new rows goes over a key whose image is still to be put in place.
    RunsOverUnsettled,
    /// The upper part of a split does not know that there are such images in it.
    SplitForgetsUnsettled,
    /// Not a mistake in a protocol, but a panic where none may be survived.
    PanicAtCommit,
    PanicInStorage,
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static REACHED: Cell<u64> = const { Cell::new(0) };
}

/// Whether this bug is planted.
pub(crate) fn has(bug: Bug) -> bool {
    PLANTED.with(|planted| planted.get() == Some(bug))
}

/// Whether the mistake is to be made here and now.
pub(crate) fn is(bug: Bug) -> bool {
    let planted = ARMED.with(Cell::get) && has(bug);
    if planted {
        REACHED.with(|reached| reached.set(reached.get() + 1));
    }
    planted
}

/// From now on the planted bug does harm: what comes before only prepares the world.
pub(crate) fn arm() {
    ARMED.with(|armed| armed.set(true));
}

/// Runs `body` with the bug planted on this thread; and how often its place was reached.
pub(crate) fn with<R>(bug: Bug, body: impl FnOnce() -> R) -> (R, u64) {
    REACHED.with(|reached| reached.set(0));
    PLANTED.with(|planted| planted.set(Some(bug)));
    let result = body();
    PLANTED.with(|planted| planted.set(None));
    ARMED.with(|armed| armed.set(false));
    (result, REACHED.with(Cell::get))
}

/// Whether any bug is planted: checks beside the mutated code keep quiet then, so that what is
/// found is found from histories and recovered state.
pub(crate) fn any() -> bool {
    PLANTED.with(|planted| planted.get().is_some())
}
