//! Locks on things that are no rows: whole tables (LOCK TABLE, and what statements of
//! interactive transactions take without saying so) and numbers that applications agree on
//! (advisory locks). Modes and conflicts are PostgreSQL's (manual, 13.3.1).
//!
//! One-shot work must not pay for them. A statement of an interactive transaction notes the
//! weak mode it needs (`ACCESS SHARE`, `ROW SHARE`, `ROW EXCLUSIVE`) in its own transaction;
//! these never conflict with each other. Whoever wants a mode that does conflict with them
//! claims every partition of the table first, marks its roots, and moves the notes of all open
//! transactions into the lock table:
//!
//! ```text
//!   mark clear   one-shots run;                 statements note their weak mode at home
//!   mark set     one-shots look, wait or go on; statements take their mode in the lock table
//! ```
//!
//! A note is made and the mark is looked at under a claim of some partition of the table, and
//! the mark is set under claims of all of them: so no note is missed and no one-shot that saw
//! the mark clear is still running. The mark is cleared by whoever finds it without a reason.
//!
//! - [`table`]   the lock table: holders, queues, who is in whose way
//! - `access`    what statements and one-shots do at a table; advisory locks of a program
//! - `noted`     what a transaction has noted at home
//! - [`program`] LOCK TABLE, and what definitions of sequences lock
//!
//! Invariant: a program that waits here has been undone and holds no partition. The latches of
//! the lock table are held only to look and to change it.

mod access;
mod noted;
pub(crate) mod program;
pub(crate) mod table;

use crate::id::{SequenceId, TreeId};

pub use access::LockScope;
pub(crate) use access::{Notes, ObjectWork};
pub(crate) use noted::Noted;
pub use program::{LockAdvisory, LockSequence, LockTables};
pub use table::{LockView, ObjectLock};

/// PostgreSQL's eight table lock modes, weakest first; advisory locks use `Share` and
/// `Exclusive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

impl ObjectMode {
    /// Table 13.2 of PostgreSQL's manual: for each mode, those it conflicts with.
    const CONFLICTS: [u8; 8] = [
        0b1000_0000,
        0b1100_0000,
        0b1111_0000,
        0b1111_1000,
        0b1110_1100,
        0b1111_1100,
        0b1111_1110,
        0b1111_1111,
    ];

    const ALL: [Self; 8] = [
        Self::AccessShare,
        Self::RowShare,
        Self::RowExclusive,
        Self::ShareUpdateExclusive,
        Self::Share,
        Self::ShareRowExclusive,
        Self::Exclusive,
        Self::AccessExclusive,
    ];

    pub(crate) fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The modes of a set of bits.
    pub(crate) fn of_bits(bits: u8) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |mode| bits & mode.bit() != 0)
    }

    pub fn conflicts(self, other: Self) -> bool {
        Self::CONFLICTS[self as usize] & other.bit() != 0
    }

    /// Whether this mode conflicts with all that another one conflicts with.
    pub(crate) fn covers(self, other: Self) -> bool {
        Self::CONFLICTS[other as usize] & !Self::CONFLICTS[self as usize] == 0
    }

    /// Whether the mode may be noted at home: no two of these conflict.
    pub fn is_weak(self) -> bool {
        self <= Self::RowExclusive
    }

    /// Whether the mode is in the way of one-shot work.
    pub fn is_strong(self) -> bool {
        self >= Self::Share
    }

    /// As `pg_locks.mode` says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AccessShare => "AccessShareLock",
            Self::RowShare => "RowShareLock",
            Self::RowExclusive => "RowExclusiveLock",
            Self::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            Self::Share => "ShareLock",
            Self::ShareRowExclusive => "ShareRowExclusiveLock",
            Self::Exclusive => "ExclusiveLock",
            Self::AccessExclusive => "AccessExclusiveLock",
        }
    }
}

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockTag {
    Table(TreeId),
    Sequence(SequenceId),
    Advisory {
        /// Of which database: each has locks of its own.
        database: u32,
        /// The two halves of a number, and whether it was given as two (`pg_locks.objsubid` 2).
        first: u32,
        second: u32,
        two: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::ObjectMode as M;

    #[test]
    fn modes_conflict_as_in_the_manual() {
        // Table 13.2, row by row.
        let rows: [(M, &[M]); 8] = [
            (M::AccessShare, &[M::AccessExclusive]),
            (M::RowShare, &[M::Exclusive, M::AccessExclusive]),
            (M::RowExclusive, &[M::Share, M::ShareRowExclusive, M::Exclusive, M::AccessExclusive]),
            (
                M::ShareUpdateExclusive,
                &[M::ShareUpdateExclusive, M::Share, M::ShareRowExclusive, M::Exclusive, M::AccessExclusive],
            ),
            (
                M::Share,
                &[
                    M::RowExclusive,
                    M::ShareUpdateExclusive,
                    M::ShareRowExclusive,
                    M::Exclusive,
                    M::AccessExclusive,
                ],
            ),
            (
                M::ShareRowExclusive,
                &[
                    M::RowExclusive,
                    M::ShareUpdateExclusive,
                    M::Share,
                    M::ShareRowExclusive,
                    M::Exclusive,
                    M::AccessExclusive,
                ],
            ),
            (
                M::Exclusive,
                &[
                    M::RowShare,
                    M::RowExclusive,
                    M::ShareUpdateExclusive,
                    M::Share,
                    M::ShareRowExclusive,
                    M::Exclusive,
                    M::AccessExclusive,
                ],
            ),
            (M::AccessExclusive, &M::ALL),
        ];
        for (mode, conflicting) in rows {
            for other in M::ALL {
                assert_eq!(mode.conflicts(other), conflicting.contains(&other), "{mode:?} and {other:?}");
                assert_eq!(mode.conflicts(other), other.conflicts(mode));
                let covers = M::ALL.iter().all(|&it| mode.conflicts(it) || !other.conflicts(it));
                assert_eq!(mode.covers(other), covers, "{mode:?} and {other:?}");
            }
        }
    }
}
