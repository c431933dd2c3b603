//! Whoever submits programs one after the other: a session of the server.
//!
//! A client carries what others may ask about, or of, its running program: a flag that asks it
//! to stop, the interactive transaction it has open, and what it waits for. The last is written
//! only by programs that wait, so a program that runs through costs nothing here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::id::{TreeId, TxnId};
use crate::txn::InteractiveState;

/// See the module's head.
pub struct Client {
    /// What the caller knows it by; the server's process id.
    number: i32,
    /// Under what it holds locks that outlive a transaction.
    owner: TxnId,
    cancel: AtomicBool,
    wait: Mutex<Option<Wait>>,
    transaction: Mutex<Weak<InteractiveState>>,
}

/// What a program waits for, holding no partition.
#[derive(Clone, Debug)]
pub struct Wait {
    pub on: WaitOn,
    /// Who is in the way.
    pub blockers: Vec<TxnId>,
    /// Microseconds since 2000-01-01 UTC.
    pub since: i64,
}

/// The kind of thing waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitOn {
    /// A row of this table, or an entry of this index, that a transaction locks.
    Row(TreeId),
}

impl Client {
    pub(crate) fn new(number: i32, owner: TxnId) -> Arc<Self> {
        Arc::new(Self {
            number,
            owner,
            cancel: AtomicBool::new(false),
            wait: Mutex::new(None),
            transaction: Mutex::new(Weak::new()),
        })
    }

    /// A client of no engine, for tests of what is around one.
    pub fn detached(number: i32) -> Arc<Self> {
        Self::new(number, TxnId(0))
    }

    pub fn number(&self) -> i32 {
        self.number
    }

    /// The owner of what it holds beyond transactions.
    pub fn owner(&self) -> TxnId {
        self.owner
    }

    /// Asks the running program to stop, or takes that back. Scans look at it, and commits;
    /// a program that waits must be cancelled through its submission too.
    pub fn set_cancelled(&self, cancelled: bool) {
        self.cancel.store(cancelled, Ordering::Release);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// What its program waits for.
    pub fn wait(&self) -> Option<Wait> {
        self.wait.lock().clone()
    }

    /// The id of its open interactive transaction, and whether it has written or locked rows.
    pub fn transaction(&self) -> Option<(TxnId, bool)> {
        let state = self.transaction.lock().upgrade()?;
        state.is_active().then(|| (state.id, state.has_notes()))
    }

    /// Whether what this id holds is this client's.
    pub fn holds_as(&self, id: TxnId) -> bool {
        id == self.owner || self.transaction.lock().upgrade().is_some_and(|state| state.id == id)
    }

    pub(crate) fn begin(&self, state: &Arc<InteractiveState>) {
        *self.transaction.lock() = Arc::downgrade(state);
    }

    pub(crate) fn begin_wait(&self, wait: Wait) {
        *self.wait.lock() = Some(wait);
    }

    pub(crate) fn end_wait(&self) {
        *self.wait.lock() = None;
    }
}
