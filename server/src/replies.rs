//! Replies on their way to one client, held until what they depend on is durable.
//!
//! The session appends messages to its [`Output`] and hands them over with the newest epoch
//! they depend on. If that epoch is durable and nothing is queued before them, they are ready
//! and leave with the other replies of the turn ([`crate::outbox`]); otherwise they wait in
//! order, while the session goes on with the next pipelined messages, and a small task of the
//! same thread writes them when their turn comes.
//!
//! Invariant: bytes leave in the order they were handed over, and none before its epoch is
//! durable (invariant 4 of ARCHITECTURE.md).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use archipel_engine::id::Epoch;
use tokio::sync::Notify;

use crate::outbox::{Outbox, Ready};
use crate::wire::output::Output;
use crate::wire::socket::Socket;

/// Past this many bytes underway, the session waits before it produces more.
pub const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Past this many ready bytes a connection does not wait for the end of the turn.
const READY_BYTES_MAX: usize = 32 << 10;

/// What tells when an epoch is durable.
pub trait Durability {
    fn is_durable(&self, epoch: Epoch) -> bool;
    /// Resolves when `epoch` is durable.
    fn durable(&self, epoch: Epoch) -> impl Future<Output = ()>;
}

struct Held {
    depends_on: Epoch,
    bytes: Vec<u8>,
}

/// The state of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    Open,
    /// The writer task ends once the queue is empty.
    Closing,
    /// Writing has failed: the client is gone.
    Gone,
}

/// One connection's outgoing side. Lives on one thread.
pub struct Replies<D> {
    socket: Socket,
    durability: D,
    outbox: Rc<Outbox>,
    /// Replies that may leave. They come before all in `queue`.
    ready: RefCell<Vec<u8>>,
    in_outbox: Cell<bool>,
    queue: RefCell<VecDeque<Held>>,
    queued_bytes: Cell<usize>,
    /// The writer task holds bytes it took from the queue.
    writing: Cell<bool>,
    state: Cell<ConnectionState>,
    queued: Notify,
    progress: Notify,
}

impl<D: Durability + 'static> Replies<D> {
    pub fn new(socket: Socket, durability: D, outbox: Rc<Outbox>) -> Rc<Replies<D>> {
        Rc::new(Replies {
            socket,
            durability,
            outbox,
            ready: RefCell::default(),
            in_outbox: Cell::new(false),
            queue: RefCell::default(),
            queued_bytes: Cell::new(0),
            writing: Cell::new(false),
            state: Cell::new(ConnectionState::Open),
            queued: Notify::new(),
            progress: Notify::new(),
        })
    }

    /// The connection's socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Hands over everything in `output`. `depends_on` is `Epoch(0)` for replies that need not
    /// wait.
    pub fn send(self: &Rc<Self>, output: &mut Output, depends_on: Epoch) {
        if output.is_empty() {
            return;
        }
        if self.is_broken() {
            output.clear();
            return;
        }
        if self.queue.borrow().is_empty() && !self.writing.get() && self.durability.is_durable(depends_on) {
            let ready_bytes = {
                let mut ready = self.ready.borrow_mut();
                output.move_to(&mut ready);
                ready.len()
            };
            if ready_bytes >= READY_BYTES_MAX {
                self.write_ready();
            } else if !self.in_outbox.replace(true) {
                self.outbox.add(self.clone());
            }
            return;
        }
        let bytes = output.take();
        self.queued_bytes.set(self.queued_bytes.get() + bytes.len());
        self.queue.borrow_mut().push_back(Held { depends_on, bytes });
        self.queued.notify_one();
    }

    fn fail(&self) {
        self.state.set(ConnectionState::Gone);
        self.ready.borrow_mut().clear();
        self.queue.borrow_mut().clear();
        self.queued_bytes.set(0);
        self.progress.notify_one();
    }

    /// Whether writing has failed: the client is gone.
    pub fn is_broken(&self) -> bool {
        self.state.get() == ConnectionState::Gone
    }

    /// Whether too much is underway.
    pub fn presses(&self) -> bool {
        self.queued_bytes.get() > QUEUED_BYTES_MAX && !self.is_broken()
    }

    /// Waits while too much is underway.
    pub async fn back_pressure(&self) {
        while self.presses() {
            self.progress.notified().await;
        }
    }

    /// Waits until everything handed over has left (or the client has).
    pub async fn drained(&self) {
        self.write_ready();
        while (!self.queue.borrow().is_empty() || self.writing.get()) && !self.is_broken() {
            self.progress.notified().await;
        }
    }

    /// Ends the writer task once the queue is empty.
    pub fn close(&self) {
        if !self.is_broken() {
            self.state.set(ConnectionState::Closing);
        }
        self.queued.notify_one();
    }

    /// The writer task.
    pub async fn write_queued(self: Rc<Self>) {
        loop {
            self.write_ready();
            let Some(first) = self.queue.borrow_mut().pop_front() else {
                if self.state.get() != ConnectionState::Open {
                    return;
                }
                self.queued.notified().await;
                continue;
            };
            self.writing.set(true);
            if !self.durability.is_durable(first.depends_on) {
                self.durability.durable(first.depends_on).await;
            }
            let mut bytes = first.bytes;
            // Whatever became durable together leaves in one system call.
            while bytes.len() < 256 * 1024 {
                let mut queue = self.queue.borrow_mut();
                match queue.front() {
                    Some(next) if self.durability.is_durable(next.depends_on) => {
                        bytes.extend_from_slice(&next.bytes);
                        queue.pop_front();
                    }
                    _ => break,
                }
            }
            let written = self.socket.write_all(&bytes).await;
            self.writing.set(false);
            if written.is_err() {
                return self.fail();
            }
            self.queued_bytes.set(self.queued_bytes.get().saturating_sub(bytes.len()));
            self.progress.notify_one();
        }
    }
}

impl<D: Durability + 'static> Ready for Replies<D> {
    fn write_ready(&self) {
        self.in_outbox.set(false);
        let mut bytes = self.ready.take();
        if bytes.is_empty() {
            return;
        }
        let written = match self.socket.try_write(&bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => return self.fail(),
        };
        if written == bytes.len() {
            if bytes.capacity() <= 2 * READY_BYTES_MAX {
                bytes.clear();
                self.ready.replace(bytes);
            }
            return;
        }
        bytes.drain(..written);
        self.queued_bytes.set(self.queued_bytes.get() + bytes.len());
        self.queue.borrow_mut().push_front(Held { depends_on: Epoch(0), bytes });
        self.queued.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;
    use tokio::sync::watch;

    struct Gate(watch::Receiver<u64>);

    impl Durability for Gate {
        fn is_durable(&self, epoch: Epoch) -> bool {
            *self.0.borrow() >= epoch.0
        }
        async fn durable(&self, epoch: Epoch) {
            let _ = self.0.clone().wait_for(|durable| *durable >= epoch.0).await;
        }
    }

    fn message(tag: &str) -> Output {
        let mut output = Output::new();
        output.command_complete(tag);
        output
    }

    #[tokio::test]
    async fn replies_wait_for_their_epoch_and_keep_their_order() {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let (client, socket) = std::os::unix::net::UnixStream::pair().unwrap();
                client.set_nonblocking(true).unwrap();
                let mut client = tokio::net::UnixStream::from_std(client).unwrap();
                let socket = Socket::new(socket.into()).unwrap();
                let (durable, gate) = watch::channel(1);
                let outbox = Rc::<Outbox>::default();
                let writer = outbox.clone();
                let replies = Replies::new(socket, Gate(gate), outbox);
                tokio::task::spawn_local(replies.clone().write_queued());
                tokio::task::spawn_local(async move { writer.run().await });
                replies.send(&mut message("A"), Epoch(1));
                replies.send(&mut message("B"), Epoch(2));
                replies.send(&mut message("C"), Epoch(0));
                let mut got = [0; 7];
                client.read_exact(&mut got).await.unwrap();
                assert_eq!(got[5], b'A');
                let early =
                    tokio::time::timeout(std::time::Duration::from_millis(50), client.read(&mut got)).await;
                assert!(early.is_err(), "a reply left before its epoch was durable");
                durable.send(2).unwrap();
                client.read_exact(&mut got).await.unwrap();
                assert_eq!(got[5], b'B');
                client.read_exact(&mut got).await.unwrap();
                assert_eq!(got[5], b'C');
                replies.drained().await;
            })
            .await;
    }

    #[tokio::test]
    async fn replies_of_a_turn_leave_together_and_before_those_that_wait() {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let (client, socket) = std::os::unix::net::UnixStream::pair().unwrap();
                client.set_nonblocking(true).unwrap();
                let (durable, gate) = watch::channel(1);
                let outbox = Rc::<Outbox>::default();
                let replies = Replies::new(Socket::new(socket.into()).unwrap(), Gate(gate), outbox.clone());
                tokio::task::spawn_local(replies.clone().write_queued());
                tokio::task::spawn_local(async move { outbox.run().await });
                tokio::task::yield_now().await;
                let mut got = [0; 100];
                replies.send(&mut message("A"), Epoch(1));
                replies.send(&mut message("B"), Epoch(0));
                replies.send(&mut message("C"), Epoch(2));
                let early = std::io::Read::read(&mut &client, &mut got).unwrap_err();
                assert_eq!(early.kind(), io::ErrorKind::WouldBlock, "the turn is not over");
                tokio::task::yield_now().await;
                assert_eq!(std::io::Read::read(&mut &client, &mut got).unwrap(), 14);
                assert_eq!((got[5], got[12]), (b'A', b'B'));
                durable.send(2).unwrap();
                replies.drained().await;
                assert_eq!(std::io::Read::read(&mut &client, &mut got).unwrap(), 7);
                assert_eq!(got[5], b'C');
            })
            .await;
    }
}
