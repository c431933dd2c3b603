//! Ready lists: what is pushed while executors end and begin is taken exactly once.
//!
//! The model has two or three lists and the two ways between them, written as the engine's
//! `Shared` has them; it has no partitions and no threads that drain.

use loom::thread;

use super::{explore, sync};

#[path = "../executor/ready.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod code;

use code::ReadyList;

struct Executors(Vec<ReadyList<u32>>);

impl Executors {
    fn new(served: &[bool]) -> sync::Arc<Self> {
        let lists = served.iter().map(|&served| {
            let list = ReadyList::new(served);
            list.set_driven(true);
            list
        });
        sync::Arc::new(Self(lists.collect()))
    }

    fn stand_in(&self, gone: usize) -> Option<usize> {
        (0..self.0.len()).find(|&at| at != gone && self.0[at].is_served())
    }

    /// As the engine's `make_ready`.
    fn make_ready(&self, home: usize, item: u32) {
        let at = if self.0[home].is_served() { home } else { self.stand_in(home).unwrap_or(home) };
        self.0[at].push(item);
        if !self.0[at].is_served() {
            self.hand_over(at);
        }
    }

    /// As the engine's `hand_over`.
    fn hand_over(&self, mut from: usize) {
        while let Some(to) = self.stand_in(from) {
            let items = self.0[from].take_all();
            if items.is_empty() {
                return;
            }
            items.into_iter().for_each(|item| self.0[to].push(item));
            if self.0[to].is_served() {
                return;
            }
            from = to;
        }
    }

    fn retire(&self, at: usize) {
        self.0[at].set_active(false);
        self.hand_over(at);
    }

    /// As the engine's `take_over`.
    fn activate(&self, at: usize) {
        self.0[at].set_active(true);
        for other in (0..self.0.len()).filter(|&other| other != at) {
            if !self.0[other].is_served() {
                self.hand_over(other);
            }
        }
    }

    /// What stands on lists that are served; nothing may stand on the others.
    fn served(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for list in &self.0 {
            let items = list.take_all();
            assert!(items.is_empty() || list.is_served(), "{items:?} is left behind");
            found.extend(items);
        }
        found.sort_unstable();
        found
    }
}

#[test]
fn a_push_meets_the_end_of_its_executor() {
    explore(3, || {
        let executors = Executors::new(&[true, true]);
        let pusher = executors.clone();
        let pushes = thread::spawn(move || pusher.make_ready(0, 1));
        executors.make_ready(0, 2);
        executors.retire(0);
        pushes.join().expect("it ends");
        assert_eq!(executors.served(), [1, 2]);
    });
}

#[test]
fn two_executors_end_while_work_goes_from_one_to_the_other() {
    explore(2, || {
        let executors = Executors::new(&[true, true, true]);
        let other = executors.clone();
        let retires = thread::spawn(move || other.retire(1));
        executors.make_ready(0, 1);
        executors.retire(0);
        retires.join().expect("it ends");
        assert_eq!(executors.served(), [1]);
    });
}

#[test]
fn a_push_that_nobody_serves_is_found_by_whoever_begins() {
    explore(3, || {
        let executors = Executors::new(&[false, false]);
        let pusher = executors.clone();
        let pushes = thread::spawn(move || pusher.make_ready(0, 1));
        executors.activate(1);
        pushes.join().expect("it ends");
        assert_eq!(executors.served(), [1]);
    });
}
