//! The gate of partitions: one holder at a time, and nothing that queued is left behind.
//!
//! The model has the state word, the queues and the tickets of the engine. It has no executors:
//! who finds work queued at a release serves it on the spot, where the engine puts the partition
//! on an executor's list and that executor does the same.

use loom::cell::UnsafeCell;
use loom::thread;
use smallvec::SmallVec;

use super::{explore, sync};
use crate::id::{GroupId, PartitionId};
use crate::partition::ClaimSet;

#[path = "../partition/gate.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod code;
#[path = "../partition/ticket.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod ticket;

use code::Queue;
use ticket::{Lend, SplitRanges, Ticket};

type PartitionRef = &'static Partition;
type HeldList = SmallVec<[PartitionRef; 4]>;

/// A partition whose data is a count of the transactions that held it.
struct Partition {
    state: sync::AtomicU32,
    queue: sync::Mutex<Queue>,
    id: PartitionId,
    group: GroupId,
    count: UnsafeCell<u32>,
}

impl Partition {
    fn group(&self) -> GroupId {
        self.group
    }
}

// SAFETY: what the model is to show: `count` has one holder at a time.
unsafe impl Sync for Partition {}

trait Job: Send {
    fn claims(&self) -> &ClaimSet;
}

/// A transaction that counts itself on every partition it holds.
struct Count(ClaimSet);

impl Job for Count {
    fn claims(&self) -> &ClaimSet {
        &self.0
    }
}

fn partition(id: u32) -> PartitionRef {
    Box::leak(Box::new(Partition {
        state: sync::AtomicU32::new(0),
        queue: sync::Mutex::new(Queue::default()),
        id: PartitionId(id),
        group: GroupId(1),
        count: UnsafeCell::new(0),
    }))
}

fn hold(held: &[PartitionRef]) {
    for partition in held {
        // SAFETY: checked by loom.
        partition.count.with_mut(|count| unsafe { *count += 1 });
    }
}

/// As the engine's `release_all`.
fn release(held: &[PartitionRef]) {
    for &partition in held {
        if !partition.try_release() {
            serve(partition);
        }
    }
}

/// As the engine's `executor::serve`.
fn serve(partition: PartitionRef) {
    loop {
        match partition.take_next() {
            Some(ticket) => match ticket.lend(partition) {
                Lend::Kept => return,
                Lend::Refused => {}
                Lend::Run(_, held) => {
                    hold(&held);
                    return release(&held);
                }
            },
            None => {
                if partition.try_release() {
                    return;
                }
            }
        }
    }
}

/// Enters the queues, and serves what was idle.
fn enter(wanted: &[PartitionRef], claims: ClaimSet) -> sync::Arc<Ticket> {
    let held: HeldList = wanted.iter().copied().collect();
    let ticket = Ticket::new(held, Box::new(Count(claims)));
    for gained in Partition::enqueue_all(&ticket, wanted) {
        serve(gained);
    }
    ticket
}

/// As the engine's `submit`: claim all, or enter all queues.
fn submit(wanted: &[PartitionRef]) -> Option<sync::Arc<Ticket>> {
    let claimed = wanted.iter().take_while(|partition| partition.try_claim()).count();
    if claimed == wanted.len() {
        hold(wanted);
        release(wanted);
        return None;
    }
    release(&wanted[..claimed]);
    Some(enter(wanted, ClaimSet::new()))
}

/// How often a partition was held; and it must be idle, with an empty queue.
fn held(partition: PartitionRef) -> u32 {
    assert!(partition.try_claim(), "somebody holds it still, or its queue is not empty");
    // SAFETY: claimed.
    let count = partition.count.with(|count| unsafe { *count });
    assert!(partition.try_release());
    // SAFETY: leaked by `partition`, and the model's other threads have ended.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(partition).cast_mut()) });
    count
}

#[test]
fn a_partition_has_one_holder_and_no_ticket_is_left() {
    explore(3, || {
        let one = partition(1);
        let other = thread::spawn(move || drop(submit(&[one])));
        submit(&[one]);
        submit(&[one]);
        other.join().expect("it ends");
        assert_eq!(held(one), 3);
    });
}

#[test]
fn partitions_are_lent_to_transactions_over_several_of_them() {
    explore(2, || {
        let (one, two) = (partition(1), partition(2));
        let both = thread::spawn(move || drop(submit(&[one, two])));
        submit(&[one, two]);
        submit(&[two]);
        both.join().expect("it ends");
        assert_eq!((held(one), held(two)), (2, 3));
    });
}

#[test]
fn a_cancelled_ticket_gives_back_what_it_was_lent() {
    explore(2, || {
        let (one, two) = (partition(1), partition(2));
        assert!(two.try_claim());
        let ticket = submit(&[one, two]).expect("two is held");
        let canceller = thread::spawn(move || match ticket.cancel() {
            Some((_, lent)) => {
                release(&lent);
                true
            }
            None => false,
        });
        // The holder of two comes to its end meanwhile.
        hold(&[two]);
        release(&[two]);
        let cancelled = canceller.join().expect("it ends");
        let ran = u32::from(!cancelled);
        assert_eq!((held(one), held(two)), (ran, ran + 1), "it ran, or was cancelled, not both");
    });
}

#[test]
fn a_split_divides_a_queue_that_others_enter() {
    explore(2, || {
        let (lower, upper) = (partition(1), partition(2));
        assert!(lower.try_claim() && upper.try_claim());
        let late = thread::spawn(move || {
            let mut claims = ClaimSet::new();
            claims.add_point(GroupId(1), b"x");
            drop(enter(&[lower], claims));
        });
        lower.divide_queue(upper, &SplitRanges { low: b"", at: b"m", high: None });
        release(&[lower, upper]);
        late.join().expect("it ends");
        // Where it ran depends on who was first; the engine's bounds check sends it on.
        assert_eq!(held(lower) + held(upper), 1);
    });
}

#[test]
fn a_split_into_a_shell_keeps_who_comes_for_what_the_shell_was() {
    explore(2, || {
        // The shell has the smaller number.
        let (upper, lower) = (partition(1), partition(2));
        assert!(lower.try_claim() && upper.try_claim());
        let late = thread::spawn(move || {
            let mut claims = ClaimSet::new();
            claims.add_point(GroupId(1), b"x");
            drop(enter(&[upper, lower], claims));
        });
        lower.divide_queue(upper, &SplitRanges { low: b"", at: b"m", high: None });
        release(&[lower, upper]);
        late.join().expect("it ends");
        // Over the upper part alone, or over both if it came after the split.
        let (below, above) = (held(lower), held(upper));
        assert!(above == 1 && below <= 1, "{below} and {above}");
    });
}

#[test]
fn a_merge_unites_queues_that_others_enter() {
    explore(2, || {
        let (left, right) = (partition(1), partition(2));
        assert!(left.try_claim() && right.try_claim());
        let late = thread::spawn(move || drop(submit(&[right])));
        left.unite_queues(right);
        release(&[left, right]);
        late.join().expect("it ends");
        assert_eq!(held(left) + held(right), 1);
    });
}
