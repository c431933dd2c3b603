//! Executors follow the machine.
//!
//! Once a second the topology is read again ([`crate::topology`]). If it names other cores than
//! the executors have, or other islands:
//!
//! 1. Places go to executors, see [`assign`]: who still has its core keeps it; who lost it takes
//!    another free one, which costs a new pin and nothing else; if there is none, it *retires*.
//!    Cores left over go to retired executors, then to seats that were never used.
//! 2. What stood on the lists of the retired goes to others (`crate::executor::ready`). From
//!    then on their threads count to no island: what their sessions submit goes through the
//!    queues, and runs on threads that have a core. So a thread that shares a core never holds
//!    a claim there, and no thread has to be stopped in the middle of anything.
//! 3. Whoever drives executors is told ([`TopologyListener`]): the server starts threads for new
//!    executors and moves sessions between them.
//! 4. Partitions whose home has retired get another one, and executors that are new get their
//!    share, see [`moves`]: each by an action in the partition's own queue, so that work goes
//!    on. A partition has one such move on its way at most; one that failed (a full disk) is
//!    tried again at the look after its end. What is queued meanwhile for a home that has
//!    retired is served by others of its island.
//!
//! **Why seats.** The executors are a fixed array with room for every core the machine may ever
//! have, so that the hot path indexes it without a latch; `Shared::executors` is the part in use.
//!
//! **Pins** are looked at every time, changed or not: `taskset -a`, and a cpuset that grows, set
//! the masks of all threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{Engine, ExecutorPlace, Shared, SubmitOptions, submit_on};
use crate::id::{ExecutorId, GroupId, IslandId, PartitionId};
use crate::submission::Submission;
use crate::table::REFERENCE_GROUP;
use crate::topology::mask::{bind_thread, thread_mask};
use crate::topology::{IslandDistance, Machine, TopologyError};
use crate::txn::{Repartition, Repartitioning};

/// What a look at the machine changed.
#[derive(Clone, Debug)]
pub struct TopologyChange {
    /// Executors that lost their core and got no other.
    pub retired: Vec<ExecutorId>,
    /// Executors that have a core and had none.
    pub activated: Vec<ExecutorId>,
    /// Executors that have another core, or belong to another island, than before.
    pub replaced: Vec<ExecutorId>,
    /// What was read.
    pub machine: Machine,
}

/// Who drives executors and wants to know when they come, go and move.
pub trait TopologyListener: Send + Sync {
    /// Called after the executors have their places, before partitions change their homes.
    fn changed(&self, change: &TopologyChange);

    /// Called after every look, changed or not: what failed can be tried again.
    fn looked(&self) {}
}

/// The state of the looks.
#[derive(Default)]
pub(crate) struct Following {
    listener: Mutex<Option<Arc<dyn TopologyListener>>>,
    changes: AtomicU64,
    /// One look after another.
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    machine: Option<Machine>,
    /// Executors that came and may not have their share of the partitions yet.
    new: Vec<ExecutorId>,
    /// Moves that have not ended yet.
    moves: Vec<UnderWay>,
    /// The last look failed, and that was told.
    failed: bool,
}

/// A move that waits for its turn.
struct UnderWay {
    partition: PartitionId,
    to: ExecutorId,
    submission: Submission<Repartitioning>,
}

impl Engine {
    /// Whom to tell of changes; one at a time. It is told of the next change first.
    pub fn on_topology_change(&self, listener: Option<Arc<dyn TopologyListener>>) {
        *self.shared.following.listener.lock() = listener;
    }

    /// What it costs to pass a cache line between islands, and inside each.
    pub fn island_distances(&self) -> Arc<[IslandDistance]> {
        self.shared.machine.island_distances()
    }

    /// How often the topology has changed so far.
    pub fn topology_changes(&self) -> u64 {
        self.shared.following.changes.load(Ordering::Relaxed)
    }

    /// Reads the topology once and follows it; an engine with background threads does so every
    /// second. `None`: nothing has changed, or the engine was opened without a topology.
    pub fn look_at_topology(&self) -> Result<Option<TopologyChange>, TopologyError> {
        look(&self.shared)
    }
}

/// A look in the background: what fails is told once, and the executors stay as they are.
pub(super) fn look_and_tell(shared: &Arc<Shared>) {
    if let Err(error) = look(shared) {
        let told = std::mem::replace(&mut shared.following.last.lock().failed, true);
        if !told {
            tracing::warn!(%error, "the topology cannot be read; the executors stay as they are");
        }
    }
}

fn look(shared: &Arc<Shared>) -> Result<Option<TopologyChange>, TopologyError> {
    let following = &shared.following;
    let mut last = following.last.lock();
    let Some(machine) = shared.machine.read()? else { return Ok(None) };
    last.failed = false;
    let change = match &last.machine {
        Some(known) if *known == machine => None,
        _ => {
            shared.machine.changed(&machine);
            follow(shared, &machine)
        }
    };
    last.machine = Some(machine);
    pin(shared, last.machine.as_ref());
    let listener = following.listener.lock().clone();
    if let Some(change) = &change {
        last.new.retain(|id| !change.retired.contains(id));
        last.new.extend(&change.activated);
        following.changes.fetch_add(1, Ordering::Relaxed);
        tell(change, shared.active_count());
        if let Some(listener) = &listener {
            listener.changed(change);
        }
    }
    if let Some(listener) = &listener {
        listener.looked();
    }
    settle_homes(shared, &mut last);
    Ok(change)
}

fn tell(change: &TopologyChange, executors: usize) {
    let list = |ids: &[ExecutorId]| {
        let ids: Vec<String> = ids.iter().map(ExecutorId::to_string).collect();
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
    };
    tracing::info!(
        "the topology changed: {executors} executors have a core (retired: {}; new: {}; moved: {}){}",
        list(&change.retired),
        list(&change.activated),
        list(&change.replaced),
        change.machine.quota.map(|quota| format!("; the CPU quota is {quota} cores")).unwrap_or_default(),
    );
}

/// Gives the executors their places; `None` if they have them already.
fn follow(shared: &Arc<Shared>, machine: &Machine) -> Option<TopologyChange> {
    let now_micros = shared.clock.wall_micros();
    let seats: Vec<Seat> = shared
        .seats()
        .iter()
        .map(|executor| Seat {
            active: executor.is_active(),
            place: ExecutorPlace {
                island: executor.island(),
                core: executor.core(),
                near: executor.near(),
                memory_node: executor.memory_node(),
            },
        })
        .collect();
    let places = assign(&seats, &machine.executors());
    let mut change = TopologyChange {
        retired: Vec::new(),
        activated: Vec::new(),
        replaced: Vec::new(),
        machine: machine.clone(),
    };
    // First those that come, so that there is always one to hand over to.
    for ((executor, seat), place) in shared.seats().iter().zip(&seats).zip(&places) {
        match place {
            Some(place) if !seat.active => {
                executor.activate(*place, now_micros);
                change.activated.push(executor.id);
            }
            Some(place) if *place != seat.place => {
                executor.activate(*place, now_micros);
                change.replaced.push(executor.id);
            }
            _ => {}
        }
    }
    shared.use_seats(places.iter().flatten().count());
    for ((executor, seat), place) in shared.seats().iter().zip(&seats).zip(&places) {
        if seat.active && place.is_none() {
            executor.retire(now_micros);
            change.retired.push(executor.id);
            shared.hand_over(executor);
        }
    }
    for id in change.activated.iter().chain(&change.replaced).chain(&change.retired) {
        if change.activated.contains(id) {
            shared.take_over(*id);
        }
        // Its thread learns of its new place.
        shared.seats()[usize::from(id.0)].signal();
    }
    let changed = change.retired.len() + change.activated.len() + change.replaced.len();
    (changed > 0).then_some(change)
}

/// Sets the masks of executor threads that are not where they belong.
fn pin(shared: &Shared, machine: Option<&Machine>) {
    if !shared.config.pin_threads {
        return;
    }
    let allowed = machine.and_then(|machine| machine.allowed.as_ref());
    for executor in shared.executors() {
        let core = executor.core().filter(|_| executor.is_active()).map(|core| BTreeSet::from([core]));
        let (thread, Some(wanted)) = (executor.thread(), core.as_ref().or(allowed)) else { continue };
        if thread != 0 && thread_mask(thread).is_some_and(|mask| mask != *wanted) {
            bind_thread(thread, wanted);
        }
    }
}

/// Submits the moves that are due and not on their way.
fn settle_homes(shared: &Arc<Shared>, Last { new, moves: under_way, .. }: &mut Last) {
    under_way.retain_mut(|it| it.submission.try_take().is_none());
    let targets: BTreeMap<PartitionId, ExecutorId> =
        under_way.iter().map(|it| (it.partition, it.to)).collect();
    let routing = shared.load_routing();
    let mut homes = Vec::new();
    for group in routing.groups() {
        for route in routing.routes(group) {
            // One that is on its way counts where it will be.
            let target = targets.get(&route.partition()).copied();
            let pinned = route.partition.is_pinned() || target.is_some();
            let executor = target.unwrap_or_else(|| route.home());
            homes.push(Home { group, partition: route.partition(), executor, pinned });
        }
    }
    let active: BTreeMap<ExecutorId, IslandId> = shared
        .executors()
        .iter()
        .filter(|executor| executor.is_active())
        .map(|executor| (executor.id, executor.island()))
        .collect();
    let island_of = |id: ExecutorId| shared.seats().get(usize::from(id.0)).map(|executor| executor.island());
    let due = moves(&homes, &active, new, &island_of);
    if due.is_empty() && under_way.is_empty() {
        new.clear();
    }
    for (home, to) in due {
        if targets.contains_key(&home.partition) {
            // Where it goes has retired meanwhile.
            continue;
        }
        if home.group == REFERENCE_GROUP {
            // Nothing is logged of its home, and nothing but the queue's service hangs on it.
            for route in routing.routes(REFERENCE_GROUP) {
                shared.set_home(route.partition, to);
            }
            continue;
        }
        let reason = if active.contains_key(&home.executor) { "core gained" } else { "core lost" };
        let change = Repartition::Move { partition: home.partition, to };
        // It runs when its turn comes; whether it did is seen at the look after that.
        let submission = submit_on(shared, Repartitioning::new(change, reason), SubmitOptions::default());
        under_way.push(UnderWay { partition: home.partition, to, submission });
    }
}

/// A seat, before a change.
#[derive(Clone, Copy, Debug)]
struct Seat {
    active: bool,
    /// Of a retired executor, the last one.
    place: ExecutorPlace,
}

/// Which seat gets which place: see the module. Places beyond the seats are not used.
fn assign(seats: &[Seat], places: &[ExecutorPlace]) -> Vec<Option<ExecutorPlace>> {
    let mut assigned: Vec<Option<ExecutorPlace>> = vec![None; seats.len()];
    let mut left: Vec<ExecutorPlace> = places.to_vec();
    let mut take = |assigned: &mut Vec<Option<ExecutorPlace>>,
                    of: &dyn Fn(&Seat) -> bool,
                    fits: &dyn Fn(&Seat, &ExecutorPlace) -> bool| {
        for (seat, assigned) in seats.iter().zip(assigned).filter(|(seat, _)| of(seat)) {
            if assigned.is_none()
                && let Some(at) = left.iter().position(|place| fits(seat, place))
            {
                *assigned = Some(left.remove(at));
            }
        }
    };
    let active = |seat: &Seat| seat.active;
    let retired = |seat: &Seat| !seat.active;
    let same_core = |seat: &Seat, place: &ExecutorPlace| seat.place.core == place.core;
    let same_island = |seat: &Seat, place: &ExecutorPlace| seat.place.island == place.island;
    // Places without a core are alike but for their island.
    take(&mut assigned, &active, &|seat, place| same_core(seat, place) && same_island(seat, place));
    take(&mut assigned, &active, &same_core);
    take(&mut assigned, &active, &same_island);
    take(&mut assigned, &active, &|_, _| true);
    take(&mut assigned, &retired, &|seat, place| place.core.is_some() && same_core(seat, place));
    take(&mut assigned, &retired, &|_, _| true);
    assigned
}

/// A partition and its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Home {
    group: GroupId,
    partition: PartitionId,
    executor: ExecutorId,
    /// It moves only if its home is gone.
    pinned: bool,
}

/// The moves that leave no partition at home where no core is, and give each executor of `new`
/// its share of every group. A partition goes to the executor with the fewest of its group, then
/// of all; of those, to one of the island it was on.
fn moves(
    homes: &[Home],
    active: &BTreeMap<ExecutorId, IslandId>,
    new: &[ExecutorId],
    island_of: &dyn Fn(ExecutorId) -> Option<IslandId>,
) -> Vec<(Home, ExecutorId)> {
    if active.is_empty() {
        return Vec::new();
    }
    let mut all: BTreeMap<ExecutorId, usize> = active.keys().map(|id| (*id, 0)).collect();
    let mut groups: BTreeMap<GroupId, Vec<Home>> = BTreeMap::new();
    for home in homes {
        groups.entry(home.group).or_default().push(*home);
        if let Some(count) = all.get_mut(&home.executor) {
            *count += 1;
        }
    }
    let mut moves = Vec::new();
    for partitions in groups.values_mut() {
        let mut counts: BTreeMap<ExecutorId, usize> = active.keys().map(|id| (*id, 0)).collect();
        for home in partitions.iter() {
            if let Some(count) = counts.get_mut(&home.executor) {
                *count += 1;
            }
        }
        let mut go = |home: &mut Home, to: ExecutorId, counts: &mut BTreeMap<ExecutorId, usize>| {
            moves.push((*home, to));
            for counted in [&mut *counts, &mut all] {
                if let Some(count) = counted.get_mut(&home.executor) {
                    *count -= 1;
                }
                *counted.entry(to).or_default() += 1;
            }
            home.executor = to;
        };
        for home in partitions.iter_mut().filter(|home| !active.contains_key(&home.executor)) {
            let island = island_of(home.executor);
            let to = active
                .iter()
                .min_by_key(|(id, at)| (counts[id], Some(**at) != island, **id))
                .map(|(id, _)| *id);
            if let Some(to) = to {
                go(home, to, &mut counts);
            }
        }
        let share = partitions.len() / active.len();
        for &to in new.iter().filter(|id| active.contains_key(id)) {
            while counts[&to] < share {
                let may_go = |home: &&mut Home| !home.pinned && counts[&home.executor] > share;
                let fullest = partitions
                    .iter_mut()
                    .filter(may_go)
                    .max_by_key(|home| (counts[&home.executor], home.executor));
                let Some(home) = fullest else { break };
                go(home, to, &mut counts);
            }
        }
    }
    moves
}

#[cfg(test)]
#[path = "follow/tests.rs"]
mod tests;
