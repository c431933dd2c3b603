//! Queues that are divided and united: every ticket once, in the order of ages.

use std::sync::Arc;

use super::*;
use crate::engine::Shared;
use crate::executor::Worker;
use crate::program::Stop;
use crate::storage::KeyBuf;

struct Idle(ClaimSet);

impl Job for Idle {
    fn run(self: Box<Self>, _: &Arc<Shared>, _: &mut Worker, _: HeldList) {}
    fn resubmit(self: Box<Self>, _: &Arc<Shared>, _: &mut Worker) {}
    fn end(self: Box<Self>, _: Stop) {}
    fn claims(&self) -> &ClaimSet {
        &self.0
    }
}

const GROUP: GroupId = GroupId(3);

fn partition(id: u32, low: &[u8], high: Option<&[u8]>) -> PartitionRef {
    let data = PartitionData::new(KeyBuf::from_slice(low), high.map(KeyBuf::from_slice));
    Partition::leak(PartitionId(id), GROUP, ExecutorId(0), data, true)
}

/// A ticket for these keys in the queues of these partitions, all of them held.
fn queue(keys: &[&[u8]], partitions: &[PartitionRef]) -> Arc<Ticket> {
    let mut claims = ClaimSet::new();
    for key in keys {
        claims.add_point(GROUP, key);
    }
    let ticket = Ticket::new(partitions.iter().copied().collect(), Box::new(Idle(claims)));
    assert!(Partition::enqueue_all(&ticket, partitions).is_empty());
    ticket
}

fn waiting(partition: PartitionRef, known: &[(&str, &Arc<Ticket>)]) -> String {
    let queue = partition.queue.lock();
    let name =
        |ticket: &Arc<Ticket>| known.iter().find(|(_, other)| Arc::ptr_eq(ticket, other)).map(|it| it.0);
    queue.tickets.iter().map(|ticket| name(ticket).unwrap_or("?")).collect()
}

/// Takes the next ticket off a queue and lends it the partition.
fn serve(partition: PartitionRef) -> Option<usize> {
    match partition.take_next()?.lend(partition) {
        Lend::Kept => Some(0),
        Lend::Run(_, held) => Some(held.len()),
        Lend::Refused => None,
    }
}

#[test]
fn tickets_go_where_their_keys_are_and_keep_their_place() {
    let lower = partition(1, b"", None);
    let a = queue(&[b"a"], &[lower]);
    let z = queue(&[b"z"], &[lower]);
    let both = queue(&[b"b", b"y"], &[lower]);
    let x = queue(&[b"x"], &[lower]);
    let c = queue(&[b"c"], &[lower]);
    let names = [("a", &a), ("z", &z), ("+", &both), ("x", &x), ("c", &c)];
    // SAFETY: this test holds the partition.
    let upper_data = unsafe { lower.data_mut() }.split_off(b"m");
    let upper = Partition::leak(PartitionId(2), GROUP, ExecutorId(0), upper_data, true);
    lower.divide_queue(upper, &SplitRanges { low: b"", at: b"m", high: None });
    assert_eq!((waiting(lower, &names), waiting(upper, &names)), ("a+c".into(), "z+x".into()));
    assert_eq!(serve(lower), Some(1));
    assert_eq!(serve(upper), Some(1));
    assert_eq!((serve(lower), serve(upper)), (Some(0), Some(2)), "lent one by one");
    assert_eq!((serve(upper), serve(lower)), (Some(1), Some(1)));
    assert!(lower.try_release() && upper.try_release(), "nothing is left behind");
}

#[test]
fn a_shell_covers_no_key_and_begins_anew() {
    let partition = partition(1, b"", Some(b"m"));
    partition.count_action(Some(5));
    partition.set_flags(PINNED);
    partition.vacate();
    // SAFETY: this test holds the partition; the reference ends with the statement.
    let covers = |key: &[u8]| unsafe { partition.data_mut() }.covers(key);
    assert!(!covers(b"") && !covers(b"a") && !covers(b"z"));
    partition.begin(GroupId(4), ExecutorId(1), PartitionData::new(KeyBuf::from_slice(b"m"), None));
    assert!(!covers(b"a") && covers(b"z"));
    assert_eq!(
        (partition.id, partition.group(), partition.home()),
        (PartitionId(1), GroupId(4), ExecutorId(1))
    );
    assert_eq!((partition.actions.load(Ordering::Relaxed), partition.flags()), (0, 0));
}

#[test]
fn a_shell_keeps_who_waits_for_what_it_was_when_a_split_uses_it() {
    // The shell has the smaller number: latches are taken in partition order.
    let shell = partition(1, b"", None);
    let lower = partition(2, b"", None);
    let a = queue(&[b"a"], &[lower]);
    let z = queue(&[b"z"], &[lower]);
    // By an old routing table: one wants the shell, the other both of them.
    let old = queue(&[b"c"], &[shell]);
    let both = queue(&[b"x"], &[shell, lower]);
    let x = queue(&[b"x"], &[lower]);
    let names = [("a", &a), ("z", &z), ("o", &old), ("+", &both), ("x", &x)];
    // SAFETY: this test holds the partition.
    let upper_data = unsafe { lower.data_mut() }.split_off(b"m");
    shell.begin(GROUP, ExecutorId(0), upper_data);
    lower.divide_queue(shell, &SplitRanges { low: b"", at: b"m", high: None });
    assert_eq!(waiting(lower, &names), "a");
    assert_eq!(waiting(shell, &names), "oz+x", "in the order of their ages, each once");
    assert_eq!((serve(lower), serve(shell)), (Some(1), Some(1)));
    assert_eq!([serve(shell), serve(shell), serve(shell)], [Some(1), Some(1), Some(1)]);
    assert!(lower.try_release() && shell.try_release(), "nothing is left behind");
}

#[test]
fn united_queues_stand_in_the_order_of_ages() {
    // The right partition has the smaller number: latches are taken in partition order.
    let right = partition(1, b"m", None);
    let left = partition(2, b"", Some(b"m"));
    let elsewhere = partition(3, b"", None);
    let a = queue(&[b"a"], &[left]);
    let y = queue(&[b"y"], &[right, elsewhere]);
    let z = queue(&[b"z"], &[right]);
    let both = queue(&[b"b", b"x"], &[right, left]);
    let c = queue(&[b"c"], &[left]);
    let names = [("a", &a), ("y", &y), ("z", &z), ("+", &both), ("c", &c)];
    assert_eq!((waiting(left, &names), waiting(right, &names)), ("a+c".into(), "yz+".into()));
    assert!(z.cancel().is_some());
    // SAFETY: this test holds both, and the references end with the statement.
    unsafe { left.data_mut().append(right.data_mut()) };
    left.unite_queues(right);
    assert_eq!(waiting(left, &names), "yaz+c", "a and y are of one age, and the right partition is first");
    assert_eq!(waiting(right, &names), "");
    assert!(right.try_release(), "the shell has no work");
    assert_eq!([serve(left), serve(left)], [Some(0), Some(1)], "y waits for the other one still");
    assert_eq!(serve(elsewhere), Some(2));
    assert_eq!(serve(left), None, "z was cancelled");
    assert_eq!((serve(left), serve(left)), (Some(1), Some(1)), "what meant both needs one now");
    assert!(left.try_release());
    // A late ticket, by an old routing table, is lent the shell: its program is sent on.
    let late = Ticket::new([right].into_iter().collect(), Box::new(Idle(ClaimSet::new())));
    assert_eq!(Partition::enqueue_all(&late, &[right]).len(), 1);
    assert_eq!(serve(right), Some(1));
}
