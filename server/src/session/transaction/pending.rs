//! What a transaction says and listens to, until its commit ([`super::notification`]).

use std::sync::Arc;

use archipel_engine::id::Epoch;
use archipel_planner::native::notify::Notifications;
use archipel_sql::error::Result;

/// What takes hold with the commit.
#[derive(Default)]
pub(in crate::session) struct Pending {
    pub(super) notifications: Notifications,
    /// What the notifications were computed from is durable with this epoch.
    pub(super) depends_on: Option<Epoch>,
    pub(super) changes: Vec<Change>,
}

/// A change of what a session listens to.
pub(super) enum Change {
    Listen(Arc<str>),
    Unlisten(Arc<str>),
    UnlistenAll,
}

/// A point to go back to.
#[derive(Clone, Copy, Default)]
pub(in crate::session) struct PendingMark {
    pub(super) notifications: usize,
    pub(super) changes: usize,
}

impl Pending {
    pub fn mark(&self) -> PendingMark {
        PendingMark { notifications: self.notifications.mark(), changes: self.changes.len() }
    }

    /// ROLLBACK TO.
    pub fn back_to(&mut self, mark: PendingMark) {
        self.notifications.rollback_to(mark.notifications);
        self.changes.truncate(mark.changes);
    }

    /// Adds what a part of the transaction has said.
    pub fn append(&mut self, said: Notifications, depends_on: Epoch) -> Result<()> {
        self.depends_on = self.depends_on.max(Some(depends_on));
        self.notifications.append(said)
    }

    /// Takes what was said so far.
    pub fn take_notifications(&mut self) -> Notifications {
        std::mem::take(&mut self.notifications)
    }
}
