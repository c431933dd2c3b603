//! A call that has stopped: where, and what it leaves to the session.

use std::sync::Arc;

use archipel_planner::native::cursor::CursorRows;
use archipel_sql::datum::{Array, Datum};
use archipel_sql::error::SqlError;

use super::command::Command;
use crate::Program;
use crate::run::operation::site::Site;

/// What a routine leaves to its session, in the transaction it is in.
#[derive(Clone)]
pub enum Left {
    Statement(Command),
    /// A savepoint for a block, inside of this many others.
    Savepoint(u32),
    /// That block has failed.
    RollbackTo(u32),
    /// Settings that functions have changed.
    Settings,
}

/// A call that has ended its transaction and wants to go on.
#[derive(Clone)]
pub struct Paused {
    /// COMMIT, or else ROLLBACK. Set for a command.
    pub commit: bool,
    /// Whether the next transaction has the modes of this one.
    pub chain: bool,
    /// The transaction does not end here: the session runs this in it.
    pub left: Option<Left>,
    pub(super) failure: Option<(Arc<str>, SqlError)>,
    /// COMMIT, ROLLBACK, or the CALL of who has said that.
    pub(super) site: Site,
    pub(in crate::run) frame: Vec<Datum>,
    pub(super) places: Vec<Resume>,
    pub(super) errors: Vec<SqlError>,
    pub(super) row_count: u64,
    pub(super) sent: u64,
}

/// The place of one statement around the one that ended the transaction.
#[derive(Clone)]
pub(crate) enum Resume {
    /// The statement of a list, or the arm of an IF.
    At(usize),
    /// The handler of a block.
    Handler(usize),
    /// The round of a FOR loop over integers.
    Counter { at: i32, upper: i32, step: i32 },
    /// Of a loop over rows.
    Rows(RowsLeft),
    /// Of a loop over an array.
    Array(Arc<Array>, usize),
    /// Another procedure, and the form it has run in: meanwhile it may have been compiled anew. The
    /// CALL as written.
    Call(Arc<Program>, Box<Paused>, Option<Box<str>>, Shown),
    /// The rows so far of a call that is made before its statement.
    Answer(Vec<Datum>),
    /// Of calls that are made for each row of a query.
    EachRow(EachRow),
    /// A block with a savepoint of the session's: whether its body has begun.
    Guarded(bool),
    /// The handler of one that has failed, and what it did is undone.
    Caught(usize),
}

/// The rows of a loop, and which one it is at: shared, so that ending a transaction in each round
/// copies none of them.
#[derive(Clone)]
pub(crate) struct RowsLeft {
    pub rows: Arc<CursorRows>,
    pub at: usize,
    /// What became of the query behind the last of them.
    pub failure: Option<Arc<SqlError>>,
}

/// Whether CONTEXT lines name the text of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Yes,
    No,
}

/// Where calls for each row of a query are.
#[derive(Clone)]
pub(crate) struct EachRow {
    pub rows: Arc<[Datum]>,
    /// Those with all their answers.
    pub done: Vec<Datum>,
    /// The one at hand, with the answers so far.
    pub row: Vec<Datum>,
}
