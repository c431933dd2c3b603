//! A session that goes to another executor: its core came or went.
//!
//! A session leaves between two transactions, when every reply has left and nothing of it is
//! bound to its thread: what it has set and prepared, its place among the sessions, its locks
//! and what its client has sent already go along, and the client notices nothing. A session in
//! the middle of a transaction goes after it; one with a cursor that is held, after that.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use archipel_engine::id::Epoch;
use rustc_hash::FxHashMap;

use super::Session;
use super::belongings::{Belongings, MovingSession};
use super::transaction::Transaction;
use crate::executor::Executor;
use crate::replies::Replies;
use crate::server::{EngineDurability, Server};
use crate::wire::frame::Input;
use crate::wire::output::Output;
use crate::wire::socket::Transport;

impl Session {
    /// Whether the session is asked to go, and nothing keeps it here.
    pub(super) fn may_leave(&self) -> bool {
        self.entry().destination().is_some()
            && !self.transaction.is_open()
            && self.copy_in.is_none()
            && !self.skip_until_sync
            && self.portals.is_empty()
            && self.unnamed_portal.is_none()
            && self.cursors.is_empty()
            && !self.server.closing.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Gets everything on its way out of the door. The connection for the other thread, or `None` if
    /// it cannot go along, or shall not any more: then the session stays.
    pub(super) async fn pack(&mut self) -> Option<Transport> {
        self.flush().await;
        self.replies.drained().await;
        // The client may take its time to read; the server may go down meanwhile.
        if !self.may_leave() {
            return None;
        }
        // What the outbox knows of this connection must not outlive the move.
        self.executor.outbox.write();
        let transport = if self.replies.is_broken() { None } else { self.replies.socket().second().ok() };
        if transport.is_none() {
            self.entry().stay();
        }
        transport
    }

    /// Ends the session here; the rest of it travels.
    pub(super) fn depart(self, transport: Transport, input: Input) -> MovingSession {
        self.entry().arrive_at_destination();
        let belongings = Box::new(Belongings {
            registered: self.registered,
            database: self.database,
            settings: self.settings,
            statements: self.statements,
            unnamed_statement: self.unnamed_statement,
            cursors: self.cursors,
            memory: self.memory,
            listener: self.listener,
        });
        MovingSession { transport, input, belongings }
    }

    /// The session on its new thread.
    pub(super) fn arrive(
        server: Arc<Server>,
        executor: Rc<Executor>,
        replies: Rc<Replies<EngineDurability>>,
        belongings: Box<Belongings>,
    ) -> Session {
        let told_settings = belongings.settings.effective().clone();
        Session {
            server,
            executor,
            registered: belongings.registered,
            catalog: RefCell::new(belongings.database.catalog.current()),
            database: belongings.database,
            settings: belongings.settings,
            output: Output::in_encoding(told_settings.style.encoding),
            replies,
            depends_on: Epoch(0),
            transaction: Transaction::default(),
            statements: belongings.statements,
            unnamed_statement: belongings.unnamed_statement,
            portals: FxHashMap::default(),
            unnamed_portal: None,
            pipeline: Default::default(),
            cursors: belongings.cursors,
            deadlock: Default::default(),
            beside: Default::default(),
            skip_until_sync: false,
            message_start: None,
            copy_in: None,
            copy_to: None,
            host: None,
            memory: belongings.memory,
            timer: None,
            told: Arc::default(),
            took: None,
            overheard: None,
            client_gone: Default::default(),
            leaves: Default::default(),
            listener: belongings.listener,
            told_settings,
            told_notice: false,
            late_notices: 0,
            in_script: false,
            reshaped: false,
            flushes: 0,
        }
    }
}
