//! The list of an executor: partitions with queued work, held on the list's behalf, and whether
//! anybody serves it.
//!
//! A list is served while a thread drives the executor and the executor has a place on the
//! machine. Either may end at any moment, and what stands on the list then goes to another one.
//! Nothing is left behind, because both sides go through the list's latch: who ends the service
//! changes the state first and empties the list after; who pushes pushes first and looks at the
//! state after, and hands the list over itself if it is served no longer. Whichever takes the
//! latch last sees what the other did. The same holds between a push to a list that nobody
//! serves, for want of another, and an executor that begins and takes over such lists.
//!
//! Written over `super::sync`, so that the model checker can run the same lines
//! (`crate::models`).

use std::collections::VecDeque;

use super::sync::{AtomicU32, AtomicUsize, Mutex, Ordering};

/// A thread drains the list.
const DRIVEN: u32 = 1;
/// The executor has a core.
const ACTIVE: u32 = 2;

/// See the module.
pub(crate) struct ReadyList<T> {
    state: AtomicU32,
    list: Mutex<VecDeque<T>>,
    len: AtomicUsize,
}

impl<T> ReadyList<T> {
    pub fn new(active: bool) -> Self {
        Self {
            state: AtomicU32::new(if active { ACTIVE } else { 0 }),
            list: Mutex::new(VecDeque::new()),
            len: AtomicUsize::new(0),
        }
    }

    /// Whether what is pushed here will be taken by a thread with a core.
    pub fn is_served(&self) -> bool {
        self.state.load(Ordering::SeqCst) == DRIVEN | ACTIVE
    }

    pub fn is_driven(&self) -> bool {
        self.state.load(Ordering::SeqCst) & DRIVEN != 0
    }

    pub fn is_active(&self) -> bool {
        self.state.load(Ordering::Relaxed) & ACTIVE != 0
    }

    /// Whether it was driven before.
    pub fn set_driven(&self, driven: bool) -> bool {
        self.set(DRIVEN, driven)
    }

    /// Whether it was active before.
    pub fn set_active(&self, active: bool) -> bool {
        self.set(ACTIVE, active)
    }

    fn set(&self, bit: u32, on: bool) -> bool {
        let before = if on {
            self.state.fetch_or(bit, Ordering::SeqCst)
        } else {
            self.state.fetch_and(!bit, Ordering::SeqCst)
        };
        before & bit != 0
    }

    /// Adds one; afterwards the caller looks whether the list is still served.
    pub fn push(&self, item: T) {
        let mut list = self.list.lock();
        list.push_back(item);
        self.len.store(list.len(), Ordering::Release);
    }

    /// Takes the oldest. May miss one that is being pushed: its pusher wakes the executor.
    pub fn pop(&self) -> Option<T> {
        if self.len() == 0 {
            return None;
        }
        let mut list = self.list.lock();
        let item = list.pop_front();
        self.len.store(list.len(), Ordering::Release);
        item
    }

    /// Takes all, missing none that was pushed before.
    pub fn take_all(&self) -> VecDeque<T> {
        let mut list = self.list.lock();
        self.len.store(0, Ordering::Release);
        std::mem::take(&mut *list)
    }

    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }
}
