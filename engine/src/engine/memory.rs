//! Memory follows its partition to another memory node, lazily and paced.
//!
//! What an executor inserts lies on its own memory node: its thread is pinned, it allocates from a
//! heap of its own, and the kernel places a page where it is touched first. A partition that gets a
//! home on another node (a move, a split whose upper part goes elsewhere, an executor that got
//! another core) leaves its rows behind, and every access fetches their lines across the
//! interconnect. They are taken along: piece by piece, each an action of its own in the partition's
//! queue ([`crate::txn`]'s `memory`) that a thread of the new island runs, so that what it
//! allocates lies there.
//!
//! **Pace.** One piece at a time in the whole engine, of some hundred kilobytes: some hundred
//! microseconds. After it comes a rest, by default fifty times as long or more; it is cut short
//! when nothing else has run at the home since, so that idle time is used first. A partition under
//! full load is slowed by the share of the pieces, a few percent of one executor, and no other
//! partition at all.
//!
//! **Nothing is copied where that is for nothing**: a partition knows the node its memory lies on,
//! and only one at home on another node is taken up. On a machine with one node there is none. An
//! island that spans several nodes has no node: whichever of its executors comes first serves.
//! After a start, nobody knows where recovery's threads have put the rows, so on a machine with
//! several nodes all of them are placed this way.
//!
//! What a transaction over partitions of several islands puts into one of them lies where that
//! transaction ran, as do rows that a definition has made anew, until the partition moves again: to
//! copy all of it for that would cost more than it brings.
//!
//! Reference tables, which all islands read, stay where they are. So do row locks, which are gone in
//! moments.
//!
//! Old memory goes back to the heap of the thread that asked for it, which uses it again. That heap
//! is the allocator's: what it has kept of pages that a thread elsewhere touched and gave back whole,
//! before they went to the kernel, it may hand out here, and they lie where they lay. The views say
//! who made the memory, and take that for where it lies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::{Engine, Shared, SubmitOptions, submit_on};
use crate::id::ExecutorId;
use crate::partition::{NO_NODE, PartitionRef};
use crate::submission::Submission;
use crate::table::REFERENCE_GROUP;
use crate::txn::FollowMemory;

/// How often to look whether there is something to do.
const LOOK: Duration = Duration::from_secs(1);
/// How soon to look whether a piece has ended, or whether the rest after it is cut short. After that,
/// each time twice as late: every look takes a core from an executor that has something to do. It
/// begins anew where an executor has nothing to do.
const FIRST_LOOK_NANOS: u64 = 500_000;
/// The latest of these looks.
const LAST_LOOK_NANOS: u64 = 4_000_000;

/// What has followed since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryFollowed {
    /// Actions.
    pub pieces: u64,
    pub bytes: u64,
    /// Partitions whose memory has arrived.
    pub partitions: u64,
}

/// What follows, and what has.
#[derive(Default)]
pub(crate) struct MemoryFollowing {
    state: Mutex<State>,
    pieces: AtomicU64,
    bytes: AtomicU64,
    partitions: AtomicU64,
}

#[derive(Default)]
struct State {
    under_way: Option<Submission<FollowMemory>>,
    /// The partition of the last piece; `true`: it could go on.
    last: Option<(PartitionRef, bool)>,
    /// When the next piece is due, at the latest and at the earliest.
    due: u64,
    due_idle: u64,
    /// The home of the last piece, and the actions counted there when the piece had ended.
    ran: Option<(ExecutorId, u64)>,
    /// How long until the next look; nothing: [`FIRST_LOOK_NANOS`].
    look_nanos: u64,
}

impl State {
    /// How long until the next look at the same.
    fn look_again(&mut self) -> u64 {
        let look = self.look_nanos.max(FIRST_LOOK_NANOS);
        self.look_nanos = (2 * look).min(LAST_LOOK_NANOS);
        look
    }
}

impl Engine {
    /// What of the partitions' memory has followed them to other memory nodes since the start.
    pub fn memory_followed(&self) -> MemoryFollowed {
        let following = &self.shared.memory_following;
        MemoryFollowed {
            pieces: following.pieces.load(Ordering::Relaxed),
            bytes: following.bytes.load(Ordering::Relaxed),
            partitions: following.partitions.load(Ordering::Relaxed),
        }
    }

    /// For drivers without background threads: memory's next step, if it is due; how long until
    /// the one after.
    pub fn step_memory(&self) -> Duration {
        tick(&self.shared)
    }
}

/// Takes the next step if it is due; when to look again. Never waits.
pub(crate) fn tick(shared: &Arc<Shared>) -> Duration {
    // Somebody further down the stack of a simulation, or another caller, is at it.
    let Some(mut state) = shared.memory_following.state.try_lock() else {
        return Duration::from_nanos(FIRST_LOOK_NANOS);
    };
    let settings = shared.monitor.settings();
    let now = shared.clock.monotonic_nanos();
    if let Some(mut submission) = state.under_way.take() {
        let Some(completed) = submission.try_take() else {
            state.under_way = Some(submission);
            return Duration::from_nanos(state.look_again());
        };
        let (partition, followed) = (completed.program.partition, completed.program.followed);
        // Whoever stole it may be of no node, or the partition has gone.
        state.last = Some((partition, followed.bytes > 0));
        let following = &shared.memory_following;
        following.pieces.fetch_add(1, Ordering::Relaxed);
        following.bytes.fetch_add(followed.bytes as u64, Ordering::Relaxed);
        following.partitions.fetch_add(u64::from(followed.done), Ordering::Relaxed);
        state.due = now + settings.memory_follow_delay_nanos;
        state.due_idle = now + FIRST_LOOK_NANOS.min(settings.memory_follow_delay_nanos);
        state.ran = Some((partition.home(), actions_at(shared, partition.home())));
    }
    if !settings.memory_follows {
        return LOOK;
    }
    if now < state.due && !(now >= state.due_idle && is_idle(shared, state.ran)) {
        let next =
            if now < state.due_idle { state.due_idle } else { state.due.min(now + state.look_again()) };
        return Duration::from_nanos(next - now);
    }
    if now < state.due {
        // There is time to be used.
        state.look_nanos = 0;
    }
    let Some(partition) = pick(shared, state.last) else { return LOOK };
    let piece = FollowMemory {
        partition,
        bytes_max: settings.memory_follow_bytes,
        followed: crate::txn::Followed::default(),
    };
    let options = SubmitOptions { read_only: true, ..SubmitOptions::default() };
    state.under_way = Some(submit_on(shared, piece, options));
    Duration::from_nanos(state.look_again())
}

/// The memory node a partition should be on; `None`: there is none, or nobody is at home.
fn wanted(shared: &Shared, partition: PartitionRef) -> Option<u16> {
    let home = partition.home();
    let executor = shared.executors().get(usize::from(home.0))?;
    executor.memory_node().filter(|_| executor.is_served())
}

/// Where a partition's memory lies, and what part of it where it should; for the views.
pub(super) fn place(shared: &Shared, partition: PartitionRef) -> (Option<u16>, f64) {
    if partition.group() == REFERENCE_GROUP {
        return (None, 1.0);
    }
    let node = Some(partition.memory_node()).filter(|node| *node != NO_NODE);
    let executor = shared.executors().get(usize::from(partition.home().0));
    let rows = partition.rows.load(Ordering::Relaxed);
    let followed = match executor.and_then(|executor| executor.memory_node()) {
        home if home.is_none() || home == node => 1.0,
        _ if node.is_some() => 0.0,
        _ => (partition.followed.load(Ordering::Relaxed) as f64 / rows.max(1) as f64).min(1.0),
    };
    (node, followed)
}

/// The partition whose memory follows next: that of the last piece while it goes on, else the one
/// after it.
fn pick(shared: &Shared, last: Option<(PartitionRef, bool)>) -> Option<PartitionRef> {
    let away = |partition: PartitionRef| {
        wanted(shared, partition).is_some_and(|node| node != partition.memory_node())
    };
    let routing = shared.load_routing();
    let groups = routing.groups().into_iter().filter(|group| *group != REFERENCE_GROUP);
    let partitions: Vec<PartitionRef> =
        groups.flat_map(|group| routing.routes(group)).map(|route| route.partition).collect();
    let at = last.and_then(|(last, _)| partitions.iter().position(|partition| partition.id == last.id));
    let first = match (at, last) {
        (Some(at), Some((_, true))) => at,
        (Some(at), _) => at + 1,
        (None, _) => 0,
    };
    let (before, from) = partitions.split_at(first.min(partitions.len()));
    from.iter().chain(before).copied().find(|&partition| away(partition))
}

/// Actions on partitions that are at home at an executor, ever.
fn actions_at(shared: &Shared, home: ExecutorId) -> u64 {
    let routing = shared.load_routing();
    let routes = routing.groups().into_iter().flat_map(|group| routing.routes(group));
    let homes = routes.filter(|route| route.home() == home);
    homes.map(|route| route.partition.actions.load(Ordering::Relaxed)).sum()
}

/// Whether nothing has run there since the last piece, and nothing waits.
fn is_idle(shared: &Shared, ran: Option<(ExecutorId, u64)>) -> bool {
    let Some((home, actions)) = ran else { return true };
    let executor = shared.executors().get(usize::from(home.0));
    executor.is_some_and(|executor| executor.ready_len() == 0) && actions_at(shared, home) == actions
}
