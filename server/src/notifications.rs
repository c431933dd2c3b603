//! NOTIFY from one session to those that listen.
//!
//! A transaction that has something to tell draws a [`Ticket`] before it commits: a one-shot
//! while it holds its partitions, so that of two transactions that met, the one that committed
//! first drew first. Tickets are worked off in their order: what comes with one waits until those
//! before it are over, committed or not. A notification goes into the [`Mailbox`] of every
//! session that listens to its channel, and the session takes it out when it stands in no
//! transaction; like any answer, its message leaves when the epoch of the commit is durable.
//!
//! What waits in mailboxes is bounded, over all of them: a listener that takes nothing makes
//! NOTIFY fail in the end, as in PostgreSQL, where the queue is larger and on disk.
//!
//! Sessions and transactions that neither listen nor notify never come here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

use archipel_engine::id::Epoch;
use archipel_planner::native::notify::{Notifications, QUEUE_BYTES_MAX, queue_full};
use archipel_sql::error::Result;
use futures::task::AtomicWaker;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// A notification on its way.
pub struct Delivery {
    /// Who has sent it.
    pub process_id: i32,
    pub channel: Arc<str>,
    pub payload: Arc<str>,
    /// The commit it came with.
    pub epoch: Epoch,
    _held: Held,
}

/// Room in the queue, given back when dropped.
struct Held {
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Held {
    /// Takes a part of the room.
    fn part(&mut self, bytes: usize) -> Held {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Held { bytes, all: self.all.clone() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What waits for one session.
#[derive(Default)]
pub struct Mailbox {
    waiting: Mutex<VecDeque<Arc<Delivery>>>,
    filled: AtomicBool,
    session: AtomicWaker,
}

impl Mailbox {
    /// Whether there is something in it.
    pub fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Wakes a task when something comes.
    pub fn wait(&self, waker: &Waker) {
        self.session.register(waker);
    }

    /// Takes the oldest that is there.
    pub fn take(&self) -> Option<Arc<Delivery>> {
        let mut waiting = self.waiting.lock();
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.filled.store(false, Ordering::Release);
        }
        first
    }

    fn put(&self, delivery: Arc<Delivery>) {
        let mut waiting = self.waiting.lock();
        waiting.push_back(delivery);
        self.filled.store(true, Ordering::Release);
    }
}

/// A transaction's turn: whether it is known yet what it says.
enum Turn {
    Open,
    Over(Vec<Delivery>),
}

#[derive(Default)]
struct State {
    /// The number of the first of `turns`.
    first: u64,
    turns: VecDeque<Turn>,
    channels: FxHashMap<Arc<str>, Mailboxes>,
}

/// Mailboxes by where they are, which tells one from another.
type Mailboxes = FxHashMap<usize, Arc<Mailbox>>;

fn place(mailbox: &Arc<Mailbox>) -> usize {
    Arc::as_ptr(mailbox).addr()
}

impl State {
    /// Nobody takes out of a mailbox what is said on a channel.
    fn forget(&mut self, channel: &str, mailbox: &Arc<Mailbox>) {
        if let Some(listeners) = self.channels.get_mut(channel) {
            listeners.remove(&place(mailbox));
            if listeners.is_empty() {
                self.channels.remove(channel);
            }
        }
    }
}

/// Who listens to what, and what is said. See the module's head.
#[derive(Default)]
pub struct Hub {
    state: Mutex<State>,
    bytes: Arc<AtomicUsize>,
}

impl Hub {
    /// A turn for a transaction that is about to commit; 54000 if the queue is full.
    pub fn ticket(self: &Arc<Self>, notifications: &Notifications) -> Result<Ticket> {
        let bytes = notifications.bytes();
        let held = Held { bytes, all: self.bytes.clone() };
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > QUEUE_BYTES_MAX {
            return Err(queue_full());
        }
        let mut state = self.state.lock();
        let number = state.first + state.turns.len() as u64;
        state.turns.push_back(Turn::Open);
        Ok(Ticket { hub: self.clone(), number, held, over: false })
    }

    /// How much of the queue is in use, from 0 to 1.
    pub fn usage(&self) -> f64 {
        self.bytes.load(Ordering::Relaxed) as f64 / QUEUE_BYTES_MAX as f64
    }

    fn over(&self, number: u64, deliveries: Vec<Delivery>) {
        let mut woken = Mailboxes::default();
        let mut state = self.state.lock();
        let at = (number - state.first) as usize;
        if let Some(turn) = state.turns.get_mut(at) {
            *turn = Turn::Over(deliveries);
        }
        while let Some(Turn::Over(deliveries)) = state.turns.front_mut() {
            let deliveries = std::mem::take(deliveries);
            state.turns.pop_front();
            state.first += 1;
            for delivery in deliveries {
                let Some(listeners) = state.channels.get(&delivery.channel) else { continue };
                let delivery = Arc::new(delivery);
                for (place, mailbox) in listeners {
                    mailbox.put(delivery.clone());
                    woken.entry(*place).or_insert_with(|| mailbox.clone());
                }
            }
        }
        drop(state);
        woken.values().for_each(|mailbox| mailbox.session.wake());
    }
}

/// See the module's head. Dropped unused, its transaction says nothing.
pub struct Ticket {
    hub: Arc<Hub>,
    number: u64,
    held: Held,
    over: bool,
}

impl Ticket {
    /// The transaction has committed.
    pub fn deliver(mut self, process_id: i32, notifications: Notifications, epoch: Epoch) {
        let held = &mut self.held;
        let deliveries = notifications
            .into_iter()
            .map(|said| Delivery {
                process_id,
                _held: held.part(said.bytes()),
                channel: said.channel,
                payload: said.payload,
                epoch,
            })
            .collect();
        self.over = true;
        self.hub.over(self.number, deliveries);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.over {
            self.hub.over(self.number, Vec::new());
        }
    }
}

/// A session that listens to something; it stops when this is dropped.
pub struct Listener {
    hub: Arc<Hub>,
    pub mailbox: Arc<Mailbox>,
    /// What it listens to, for whoever asks.
    channels: Arc<Mutex<Channels>>,
}

/// Channels, in the order in which somebody began to listen to them.
#[derive(Default)]
pub struct Channels {
    numbers: FxHashMap<Arc<str>, u64>,
    in_order: BTreeMap<u64, Arc<str>>,
    next: u64,
}

impl Channels {
    /// Adds one; whether it was not there.
    fn add(&mut self, channel: &Arc<str>) -> bool {
        if self.numbers.contains_key(channel) {
            return false;
        }
        self.numbers.insert(channel.clone(), self.next);
        self.in_order.insert(self.next, channel.clone());
        self.next += 1;
        true
    }

    /// Takes one out; whether it was there.
    fn remove(&mut self, channel: &str) -> bool {
        let number = self.numbers.remove(channel);
        number.is_some_and(|number| self.in_order.remove(&number).is_some())
    }

    /// Whether this is one of them.
    pub fn contains(&self, channel: &str) -> bool {
        self.numbers.contains_key(channel)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.in_order.values()
    }
}

impl Listener {
    /// One that listens to nothing yet; what it listens to it says in `channels`.
    pub fn new(hub: Arc<Hub>, channels: Arc<Mutex<Channels>>) -> Listener {
        Listener { hub, mailbox: Arc::default(), channels }
    }

    pub fn listen(&self, channel: &Arc<str>) {
        if self.channels.lock().add(channel) {
            let mut state = self.hub.state.lock();
            let listeners = state.channels.entry(channel.clone()).or_default();
            listeners.insert(place(&self.mailbox), self.mailbox.clone());
        }
    }

    pub fn unlisten(&self, channel: &str) {
        if self.channels.lock().remove(channel) {
            self.hub.state.lock().forget(channel, &self.mailbox);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let channels = std::mem::take(&mut *self.channels.lock());
        let mut state = self.hub.state.lock();
        channels.iter().for_each(|channel| state.forget(channel, &self.mailbox));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archipel_planner::native::notify::Notification;

    fn said(payload: &str) -> Notifications {
        let mut notifications = Notifications::default();
        notifications.add(Notification::new("c", payload).unwrap()).unwrap();
        notifications
    }

    fn taken(listener: &Listener) -> String {
        std::iter::from_fn(|| listener.mailbox.take()).map(|delivery| delivery.payload.to_string()).collect()
    }

    fn listening(hub: &Arc<Hub>) -> Listener {
        let listener = Listener::new(hub.clone(), Arc::default());
        listener.listen(&"c".into());
        listener
    }

    #[test]
    fn channels_are_told_in_the_order_they_came_and_left_when_their_listener_goes() {
        let hub = Arc::<Hub>::default();
        let channels = Arc::<Mutex<Channels>>::default();
        let listener = Listener::new(hub.clone(), channels.clone());
        let told = || channels.lock().iter().map(|name| name.to_string()).collect::<Vec<String>>().join(" ");
        for name in ["b", "a", "b", "c"] {
            listener.listen(&name.into());
        }
        assert_eq!(told(), "b a c");
        listener.unlisten("a");
        listener.unlisten("d");
        listener.listen(&"a".into());
        assert_eq!(told(), "b c a");
        let other = listening(&hub);
        drop(listener);
        assert!(channels.lock().is_empty());
        assert_eq!(hub.state.lock().channels.len(), 1, "the other one's");
        drop(other);
        assert!(hub.state.lock().channels.is_empty());
    }

    #[test]
    fn the_order_is_that_of_the_tickets_and_who_rolls_back_says_nothing() {
        let hub = Arc::<Hub>::default();
        let (one, other) = (listening(&hub), listening(&hub));
        let tickets: Vec<Ticket> = ["a", "b", "d"].map(|text| hub.ticket(&said(text)).unwrap()).into();
        let [first, second, third] = tickets.try_into().ok().unwrap();
        third.deliver(1, said("d"), Epoch(3));
        assert!(!one.mailbox.is_filled(), "those before it are not over");
        first.deliver(1, said("a"), Epoch(1));
        assert_eq!(taken(&one), "a");
        drop(second);
        assert_eq!((taken(&one).as_str(), taken(&other).as_str()), ("d", "ad"));
        assert!(!one.mailbox.is_filled());
        assert_eq!(hub.usage(), 0.0);
    }

    #[test]
    fn who_takes_nothing_fills_the_queue_until_it_goes() {
        let hub = Arc::<Hub>::default();
        let text = "x".repeat(7_000);
        // Nobody listens: nothing is kept.
        for _ in 0..2 * QUEUE_BYTES_MAX / text.len() {
            hub.ticket(&said(&text)).unwrap().deliver(1, said(&text), Epoch(0));
        }
        assert_eq!(hub.usage(), 0.0);
        let listener = listening(&hub);
        let refused = (0..2 * QUEUE_BYTES_MAX / text.len()).any(|_| match hub.ticket(&said(&text)) {
            Ok(ticket) => {
                ticket.deliver(1, said(&text), Epoch(0));
                false
            }
            Err(_) => true,
        });
        assert!(refused);
        assert!(hub.usage() > 0.99);
        drop(listener);
        assert_eq!(hub.usage(), 0.0);
        assert!(hub.ticket(&said("again")).is_ok());
    }
}
