//! Where a session is between BEGIN and COMMIT.

use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_engine::txn::{Interactive, InteractiveSavepoint};
use archipel_planner::native::{ConstraintModes, DeferredCheck};
use archipel_sql::catalog::Table;
use archipel_sql::types::Oid;

use super::deferred::{Deferred, DeferredMark};
use super::pending::{Pending, PendingMark};
use crate::session::definition::staged::Staged;
use crate::sessions::TransactionActivity;
use crate::wire::output::Status;

/// Where a session is between BEGIN and COMMIT.
#[derive(Default)]
pub struct Transaction {
    pub(super) kind: Kind,
    /// The engine's transaction, once a statement needed one.
    pub(super) interactive: Option<Interactive>,
    pub(super) savepoints: Vec<Savepoint>,
    /// Definitions that wait for COMMIT.
    pub(super) staged: Option<Staged>,
    pub(super) failed: bool,
    /// The block was begun for a routine that needs one: the client has said no BEGIN.
    of_routine: bool,
    pub(super) start: i64,
    /// Whether a statement saw the database: its isolation can no longer change.
    pub(super) queried: bool,
    /// When its constraints are checked.
    pub(super) constraints: Arc<ConstraintModes>,
    /// What COMMIT has to check.
    pub(super) deferred: Deferred,
    /// What it tells and listens to, once a statement did.
    pub(super) pending: Option<Box<Pending>>,
    /// Tables that TRUNCATE has emptied, each with the number of savepoints it did so inside of.
    pub(super) emptied: Vec<(usize, Oid)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    None,
    Implicit,
    Block,
}

pub(super) struct Savepoint {
    pub(super) name: String,
    /// `None`: the engine's transaction had not begun; going back undoes all of it.
    pub(super) engine: Option<InteractiveSavepoint>,
    pub(super) settings: usize,
    pub(super) staged: usize,
    /// Cursors declared later go with a ROLLBACK TO.
    pub(super) cursors: u64,
    /// What SET CONSTRAINTS had said, and what COMMIT had to check.
    pub(super) constraints: Arc<ConstraintModes>,
    pub(super) deferred: DeferredMark,
    pub(super) pending: PendingMark,
    /// Whether the transaction was READ ONLY.
    pub(super) read_only: bool,
    /// What was there at this point cannot be brought back: definitions of tables made in the
    /// transaction changed since.
    pub(super) frozen: bool,
}

impl Transaction {
    pub(in crate::session) fn status(&self) -> Status {
        match (self.kind, self.failed) {
            (Kind::Block, true) => Status::Failed,
            (Kind::Block, false) => Status::InTransaction,
            _ => Status::Idle,
        }
    }

    /// Whether a transaction outlives the current statement.
    pub(in crate::session) fn is_open(&self) -> bool {
        self.kind != Kind::None
    }

    /// Whether the client said BEGIN.
    pub(in crate::session) fn is_block(&self) -> bool {
        self.kind == Kind::Block
    }

    /// Whether the block was begun for a routine alone.
    pub(in crate::session) fn is_of_routine(&self) -> bool {
        self.of_routine
    }

    /// The block has been begun for a routine.
    pub(in crate::session) fn begun_for_routine(&mut self) {
        self.of_routine = true;
    }

    /// Whether a statement of the transaction has seen the database.
    pub(in crate::session) fn has_queried(&self) -> bool {
        self.queried
    }

    /// A statement that is not alone begins the implicit transaction of a script or pipeline.
    pub(super) fn begin_implicit(&mut self, at: Option<i64>) {
        if self.kind == Kind::None {
            self.kind = Kind::Implicit;
            self.start = at.unwrap_or_else(crate::clock::now);
        }
    }

    /// Lets the implicit transaction of a script count as a block, or no longer.
    pub(in crate::session) fn pretend_block(&mut self, block: bool) {
        if self.kind != Kind::None {
            self.kind = if block { Kind::Block } else { Kind::Implicit };
        }
    }

    /// How many savepoints it stands inside of.
    pub(in crate::session) fn savepoints(&self) -> usize {
        self.savepoints.len()
    }

    /// Forgets the savepoints inside of so many.
    pub(in crate::session) fn release(&mut self, kept: usize) {
        self.savepoints.truncate(kept);
        // What was done inside of them is the outer transaction's now.
        self.emptied.iter_mut().for_each(|(inside, _)| *inside = (*inside).min(kept));
    }

    /// Notes that TRUNCATE has emptied a table.
    pub(in crate::session) fn note_emptied(&mut self, table: Oid) {
        self.emptied.push((self.savepoints.len(), table));
    }

    /// Whether the innermost savepoint, or the transaction without one, has made a table or emptied it
    /// (rd_createSubid, rd_newRelfilenodeSubid).
    pub(in crate::session) fn has_made_or_emptied(&self, table: &Table) -> bool {
        let since = self.savepoints.last().map_or(0, |savepoint| savepoint.staged);
        self.emptied.contains(&(self.savepoints.len(), table.oid))
            || self.staged.as_ref().is_some_and(|staged| staged.made_since(since, TreeId(table.tree)))
    }

    /// Whether it stands inside a savepoint.
    pub(in crate::session) fn is_inside_savepoint(&self) -> bool {
        !self.savepoints.is_empty()
    }

    pub(in crate::session) fn is_failed(&self) -> bool {
        self.failed
    }

    /// The engine's transaction, for a while.
    pub(in crate::session) fn take_interactive(&mut self) -> Option<Interactive> {
        self.interactive.take()
    }

    pub(in crate::session) fn put_interactive(&mut self, interactive: Option<Interactive>) {
        self.interactive = interactive;
    }

    /// A statement that is a transaction of its own begins: what it deferred is checked in it.
    pub(in crate::session) fn enter_own(&mut self, own: Interactive) {
        self.kind = Kind::Implicit;
        self.start = crate::clock::now();
        self.interactive = Some(own);
    }

    /// It is over, and the session is where it was.
    pub(in crate::session) fn leave_own(&mut self) -> Option<Interactive> {
        let over = std::mem::take(self);
        self.pending = over.pending;
        over.interactive
    }

    /// What takes hold with the commit, if there is something.
    pub(in crate::session) fn pending(&self) -> Option<&Pending> {
        self.pending.as_deref()
    }

    pub(in crate::session) fn pending_mut(&mut self) -> &mut Pending {
        self.pending.get_or_insert_default()
    }

    pub(in crate::session) fn take_pending(&mut self) -> Option<Box<Pending>> {
        self.pending.take()
    }

    pub(in crate::session) fn put_pending(&mut self, pending: Option<Box<Pending>>) {
        self.pending = pending;
    }

    /// The engine's transaction, if one has begun.
    pub(in crate::session) fn interactive(&self) -> Option<&Interactive> {
        self.interactive.as_ref()
    }

    pub(in crate::session) fn activity(&self) -> Option<TransactionActivity> {
        (self.kind == Kind::Block).then_some(TransactionActivity { start: self.start, failed: self.failed })
    }

    pub(in crate::session) fn staged(&self) -> Option<&Staged> {
        self.staged.as_ref()
    }

    pub(in crate::session) fn staged_mut(&mut self) -> Option<&mut Staged> {
        self.staged.as_mut()
    }

    pub(in crate::session) fn set_staged(&mut self, staged: Staged) {
        self.staged = Some(staged);
    }

    /// When constraints are checked.
    pub(in crate::session) fn constraint_modes(&self) -> Arc<ConstraintModes> {
        self.constraints.clone()
    }

    pub(in crate::session) fn constraints_mut(&mut self) -> &mut ConstraintModes {
        Arc::make_mut(&mut self.constraints)
    }

    /// Takes the checks that wait from a place on, all or those of some constraints; and where
    /// later ones will be.
    pub(in crate::session) fn take_due(
        &mut self,
        from: usize,
        only: Option<&[Oid]>,
    ) -> (Vec<DeferredCheck>, usize) {
        let due = self.deferred.take(from, only, !self.savepoints.is_empty());
        (due, self.deferred.len())
    }

    /// Whether something about a table's rows waits for COMMIT.
    pub(in crate::session) fn has_pending(&self, table: Oid) -> bool {
        self.deferred.waits_on(table)
    }

    pub(in crate::session) fn add_deferred(&mut self, checks: Vec<DeferredCheck>) {
        self.deferred.add(checks);
    }

    /// When the transaction began, for `now()`; `None` outside of one.
    pub(in crate::session) fn start(&self) -> Option<i64> {
        (self.kind != Kind::None).then_some(self.start)
    }
}
