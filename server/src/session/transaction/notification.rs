//! LISTEN, UNLISTEN and NOTIFY.
//!
//! What a transaction has to say, and what it begins and stops to listen to, waits in its
//! [`Pending`] for the commit. A one-shot commits in the engine: what it says comes back with its
//! run, and the [`Ticket`] it has drawn there. What others say is told to the client between
//! transactions: before ReadyForQuery, or at once while the session waits for its client.

use archipel_engine::id::Epoch;
use archipel_planner::native::notify::{Notification, Notifications};
use archipel_sql::ast::Statement;
use archipel_sql::error::Result;

use super::pending::{Change, Pending};
use crate::notifications::{Listener, Ticket};
use crate::session::Session;
use crate::wire::output::Severity;

/// So much is told before the session looks whether the client reads.
const PORTION_BYTES: usize = 64 << 10;

impl Session {
    /// Notes what a statement says or listens to; it takes hold with the commit.
    pub(in crate::session) fn note_notification(&mut self, statement: &Statement) -> Result<()> {
        let pending = self.transaction.pending_mut();
        match statement {
            Statement::Notify { channel, payload } => {
                let said = Notification::new(channel, payload.as_deref().unwrap_or_default())?;
                pending.notifications.add(said)?;
            }
            Statement::Listen(channel) => pending.changes.push(Change::Listen(channel.as_str().into())),
            Statement::Unlisten(Some(channel)) => {
                pending.changes.push(Change::Unlisten(channel.as_str().into()));
            }
            _ => pending.changes.push(Change::UnlistenAll),
        }
        Ok(())
    }

    /// Listens to nothing any more once this is committed: DISCARD ALL.
    pub(in crate::session) fn unlisten_all(&mut self) {
        if self.listener.is_some() {
            self.transaction.pending_mut().changes.push(Change::UnlistenAll);
        }
    }

    /// A turn for what a transaction says that is about to commit.
    pub(in crate::session) fn draw_ticket(&self, said: &Notifications) -> Result<Option<Ticket>> {
        if said.is_empty() { Ok(None) } else { self.database.notifications.ticket(said).map(Some) }
    }

    /// The same for the session's transaction.
    pub(super) fn draw_own_ticket(&self) -> Result<Option<Ticket>> {
        match self.transaction.pending() {
            Some(pending) => self.draw_ticket(&pending.notifications),
            None => Ok(None),
        }
    }

    /// What a part of a transaction has said: delivered, if that was all of a transaction, and
    /// else kept for the commit.
    pub(in crate::session) fn take_said(
        &mut self,
        said: Notifications,
        ticket: Option<Ticket>,
        depends_on: Epoch,
    ) -> Result<()> {
        match ticket {
            Some(ticket) => ticket.deliver(self.entry().process_id, said, depends_on),
            None if said.is_empty() => {}
            None => self.transaction.pending_mut().append(said, depends_on)?,
        }
        Ok(())
    }

    /// The transaction has committed, in this epoch.
    pub(super) fn settle_pending(&mut self, pending: Pending, ticket: Option<Ticket>, committed: Epoch) {
        for change in pending.changes {
            self.change_listening(change);
        }
        if let Some(ticket) = ticket {
            let epoch = pending.depends_on.map_or(committed, |epoch| epoch.max(committed));
            ticket.deliver(self.entry().process_id, pending.notifications, epoch);
        }
    }

    /// What was noted outside of any transaction takes hold.
    pub(super) fn commit_pending(&mut self) -> Result<()> {
        if self.transaction.pending().is_some() {
            let ticket = self.draw_own_ticket()?;
            let pending = self.transaction.take_pending();
            self.settle_pending(*pending.unwrap_or_default(), ticket, Epoch(0));
        }
        Ok(())
    }

    fn change_listening(&mut self, change: Change) {
        let (hub, channels) = (&self.database.notifications, &self.memory.listening);
        match change {
            Change::Listen(channel) => {
                let new = || Listener::new(hub.clone(), channels.clone());
                self.listener.get_or_insert_with(new).listen(&channel);
            }
            Change::Unlisten(channel) => {
                if let Some(listener) = &self.listener {
                    listener.unlisten(&channel);
                }
            }
            Change::UnlistenAll => self.listener = None,
        }
        if channels.lock().is_empty() {
            self.listener = None;
        }
    }

    /// Whether there is something to tell the client, and this is the time.
    pub(in crate::session) fn has_deliveries(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| listener.mailbox.is_filled())
            && !self.transaction.is_open()
            && self.copy_in.is_none()
    }

    /// Tells the client what others have said.
    pub(in crate::session) async fn deliver(&mut self) {
        let Some(mailbox) = self.listener.as_ref().map(|listener| listener.mailbox.clone()) else { return };
        while let Some(delivery) = mailbox.take() {
            // It may have stopped to listen since.
            if !self.memory.listening.lock().contains(&delivery.channel) {
                continue;
            }
            let told = self.output.notification(delivery.process_id, &delivery.channel, &delivery.payload);
            if let Err(untranslatable) = told {
                // Between two statements an error has nobody to end but the session, as in PostgreSQL.
                self.output.report(Severity::Fatal, &untranslatable);
                self.client_gone.set(true);
                return;
            }
            self.depend_on(delivery.epoch);
            drop(delivery);
            if self.output.len() > PORTION_BYTES {
                self.flush().await;
            }
        }
    }
}
