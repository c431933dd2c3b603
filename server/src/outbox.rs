//! Replies of one turn leave together.
//!
//! An executor thread works off what has arrived on its connections, one after the other. Were
//! each reply written on the spot, a client that shares the machine would be woken, and would
//! interrupt the thread, once a call; a pipelining one would cost a system call a Sync. So ready
//! replies gather here until the turn ends, a few connections have some, or a statement begins
//! that is not known to be quick, whatever is first: the wait is bounded by a handful of quick
//! statements, and a lone client waits for nothing.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::Notify;

/// So many connections with replies are written at once: no reply waits for more than this many
/// statements of others.
const WAITING_MAX: usize = 8;

/// A connection with replies to write.
pub trait Ready {
    /// Writes them.
    fn write_ready(&self);
}

/// The connections of one thread that have replies to write.
#[derive(Default)]
pub struct Outbox {
    waiting: RefCell<Vec<Rc<dyn Ready>>>,
    filled: Notify,
}

impl Outbox {
    /// Adds a connection; one that is there twice finds nothing to write the second time.
    pub fn add(&self, connection: Rc<dyn Ready>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.push(connection);
        match waiting.len() {
            1 => self.filled.notify_one(),
            WAITING_MAX.. => {
                drop(waiting);
                self.write();
            }
            _ => {}
        }
    }

    /// Writes what is ready.
    pub fn write(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        for connection in waiting.drain(..) {
            connection.write_ready();
        }
        // Writing adds nothing: the memory goes back.
        self.waiting.replace(waiting);
    }

    /// The task that ends a turn: woken by the first reply, it runs after every task that was
    /// ready before it.
    pub async fn run(&self) {
        loop {
            self.filled.notified().await;
            self.write();
        }
    }
}
