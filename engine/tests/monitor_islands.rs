//! The monitor on a virtual clock: the size of the islands, and cores that are not equally fast.

#[path = "common/clocked.rs"]
mod clocked;
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use archipel_engine::id::ExecutorId;
use archipel_engine::topology::{Granularity, Invented};
use archipel_engine::{
    Decision, ExecutorHandle, Mark, MonitorSettings, Reason, Repartition, SliceBudget, SubmitOptions, Told,
};
use clocked::*;
use common::*;

/// The way through a queue to the other socket.
const QUEUE_NANOS: u64 = 40_000;

/// Two islands whose executors this thread drives; programs are submitted on the first.
struct Islands {
    world: World,
    handles: Vec<ExecutorHandle>,
    /// What a run takes longer on the spot where it is not at home.
    far_nanos: u64,
}

impl Islands {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// `prepare` is done before anybody drives the executors.
    fn with(prepare: impl FnOnce(&World)) -> Self {
        let topology = Arc::new(Invented::of_sockets(2, 1, Granularity::Socket));
        let world = world_on(Some(topology), 2);
        prepare(&world);
        Self::of(world)
    }

    fn of(world: World) -> Self {
        let attach = |id| world.engine.attach_executor(ExecutorId(id)).expect("nobody drives it");
        let handles = (0..2).map(attach).collect();
        Self { world, handles, far_nanos: 0 }
    }

    fn read(&mut self, through_queue: &Arc<AtomicBool>) {
        let account = even(&mut self.world.random);
        let (clock, queue, far_nanos) = (self.world.clock.clone(), through_queue.clone(), self.far_nanos);
        let program = script(
            move |_, claims| claims.add_point(GROUP, &account_key(account)),
            move |txn| {
                if account >= ROWS / 2 && !queue.load(Ordering::Relaxed) {
                    clock.0.fetch_add(far_nanos, Ordering::Relaxed);
                }
                balance(txn, account)
            },
        );
        let mut submission = self.world.engine.submit(program, SubmitOptions::default());
        let done = submission.try_take().unwrap_or_else(|| {
            self.world.clock.0.fetch_add(QUEUE_NANOS, Ordering::Relaxed);
            through_queue.store(true, Ordering::Relaxed);
            self.handles[1].drain(SliceBudget::default());
            through_queue.store(false, Ordering::Relaxed);
            self.handles[0].seat();
            submission.try_take().expect("its executor has served it")
        });
        assert_eq!(finish(done).0, Ok(Some(100)));
    }

    fn load(&mut self, seconds: u64) {
        self.pass(seconds, ACTIONS);
    }

    /// Time without a load.
    fn pause(&mut self, seconds: u64) {
        self.pass(seconds, 0);
    }

    fn pass(&mut self, seconds: u64, actions: u64) {
        let through_queue = Arc::new(AtomicBool::new(false));
        self.handles[0].seat();
        for sample in 0..seconds * SAMPLES_A_SECOND {
            for _ in 0..actions {
                self.read(&through_queue);
            }
            self.world.clock.0.fetch_add(250_000_000, Ordering::Relaxed);
            while self.world.engine.step_monitor() <= Duration::from_millis(2) {
                self.world.clock.0.fetch_add(1_000_000, Ordering::Relaxed);
                for handle in &self.handles {
                    handle.drain(SliceBudget::default());
                }
                self.handles[0].seat();
            }
            // Its thread looks once a second.
            if sample % SAMPLES_A_SECOND == 0 {
                self.world.engine.look_at_topology().expect("it is there");
                self.handles[0].seat();
            }
        }
    }

    fn islands(&self) -> usize {
        let islands = self.world.engine.executors().into_iter().map(|executor| executor.island);
        islands.collect::<std::collections::BTreeSet<_>>().len()
    }

    fn choices(&self) -> Vec<Decision> {
        let decisions = self.world.engine.monitor_decisions().into_iter();
        decisions.filter(|decision| decision.reason == Reason::Communication).collect()
    }
}

#[test]
fn islands_grow_where_queues_cost_more_than_the_way() {
    let mut islands = Islands::new();
    assert_eq!(islands.islands(), 2);
    islands.load(20);
    let choices = islands.choices();
    assert_eq!(islands.islands(), 1, "{choices:?}");
    assert_eq!(choices.len(), 1, "{choices:?}");
    assert_eq!(choices[0].verdict, Told::Islands(Granularity::Machine));
    assert!(choices[0].predicted_gain > 0.5, "{choices:?}");
    assert!(choices[0].measured_gain.is_some_and(|gain| gain > 0.05), "{choices:?}");
    // What is chosen stays chosen while the load is the same.
    islands.load(60);
    assert_eq!(islands.choices().len(), 1, "{:?}", islands.choices());
}

/// No partition moves or changes its bounds.
fn mark_all(world: &World) {
    for (partition, _) in world.homes() {
        for mark in [Mark::Pinned, Mark::Frozen] {
            world.change(Repartition::Mark { partition, mark, set: true }).expect("marked");
        }
    }
}

#[test]
fn islands_that_did_no_good_are_taken_back_and_not_tried_again_soon() {
    // Nothing tells beforehand what the way is like, and no partition may go where it is short.
    let mut islands = Islands::with(mark_all);
    islands.far_nanos = 200_000;
    islands.load(20);
    let choices = islands.choices();
    assert_eq!(islands.islands(), 2, "{choices:?}");
    let verdicts: Vec<Told> = choices.iter().map(|choice| choice.verdict).collect();
    assert_eq!(verdicts, [Told::Islands(Granularity::Machine), Told::IslandsBack(Granularity::Socket)]);
    assert!(choices[0].measured_gain.is_some_and(|gain| gain < -0.05), "{choices:?}");
}

#[test]
fn islands_do_not_flip_where_throughput_shows_nothing() {
    // Runs take half as long again on the spot, and their clients ask for no more than they get.
    let mut islands = Islands::with(mark_all);
    islands.far_nanos = 60_000;
    islands.load(60);
    let choices = islands.choices();
    let verdicts: Vec<Told> = choices.iter().map(|choice| choice.verdict).collect();
    assert_eq!(verdicts, [Told::Islands(Granularity::Machine), Told::IslandsBack(Granularity::Socket)]);
    assert_eq!(islands.islands(), 2, "{choices:?}");
}

#[test]
fn a_choice_is_proved_by_runs_and_not_by_their_end() {
    let mut islands = Islands::new();
    while islands.choices().is_empty() {
        islands.load(1);
    }
    // The load ends, and nothing is measured for a while.
    islands.pause(10);
    for measures in [false, true] {
        islands.world.engine.set_monitor(MonitorSettings { measures, ..MonitorSettings::default() });
        islands.pause(10);
    }
    assert_eq!(islands.choices().len(), 1, "{:?}", islands.choices());
    assert_eq!(islands.choices()[0].measured_gain, None);
    islands.load(20);
    let choices = islands.choices();
    assert_eq!((choices.len(), islands.islands()), (1, 1), "{choices:?}");
    assert!(choices[0].measured_gain.is_some_and(|gain| gain > 0.05), "{choices:?}");
}

#[test]
fn islands_are_only_told_of_where_nothing_may_be_changed() {
    let mut islands = Islands::new();
    islands.world.engine.set_monitor(MonitorSettings { adapts: false, ..MonitorSettings::default() });
    islands.load(20);
    let choices = islands.choices();
    assert_eq!(choices.len(), 1, "{choices:?}");
    assert_eq!((choices[0].verdict, islands.islands()), (Told::Static, 2));
}

/// Two executors of one cache, one of which has a core of another speed.
fn unequal(speed: f64) -> Islands {
    let topology = Arc::new(Invented::of_one_cache(2, Granularity::L3).with_fixed_islands());
    topology.set_speed(1, speed);
    Islands::of(world_on(Some(topology), 4))
}

/// Reads that take as long as the core of the account's home needs.
fn load_unequal(islands: &mut Islands, seconds: u64, speed: f64) {
    for _ in 0..seconds * SAMPLES_A_SECOND {
        islands.handles[0].seat();
        for _ in 0..ACTIONS {
            let account = even(&mut islands.world.random);
            let routing = islands.world.engine.routing();
            let routes = routing.routes(GROUP);
            let home = routes[routes.partition_point(|route| route.low <= account_key(account)) - 1].home();
            let nanos = if home == ExecutorId(1) { (100_000.0 / speed) as u64 } else { 100_000 };
            islands.handles[usize::from(home.0)].seat();
            islands.world.read(account, nanos);
        }
        for handle in &islands.handles {
            handle.drain(SliceBudget::default());
        }
        islands.handles[0].seat();
        islands.world.pass();
    }
}

#[test]
fn a_slow_core_is_measured_and_gets_its_share() {
    let mut islands = unequal(0.5);
    load_unequal(&mut islands, 60, 0.5);
    let speeds: Vec<f64> = islands.world.engine.executors().iter().map(|executor| executor.speed).collect();
    assert_eq!(speeds, [1.0, 0.5]);
    let shares = islands.world.shares();
    // A third would be fair; a quarter is as near as whole partitions come.
    assert!((0.22..0.42).contains(&shares[1]), "{shares:?}");
    let before = islands.world.repartitions();
    assert!(before > 0, "it was spread evenly");
    load_unequal(&mut islands, 60, 0.5);
    assert_eq!(islands.world.repartitions(), before, "and is left alone then");
}

#[test]
fn equal_cores_are_measured_and_nothing_follows() {
    let mut islands = unequal(1.0);
    load_unequal(&mut islands, 120, 1.0);
    assert!(islands.world.engine.executors().iter().all(|executor| executor.speed == 1.0));
    assert_eq!(islands.world.repartitions(), 0, "{:?}", islands.world.engine.monitor_decisions());
}

#[test]
fn cores_count_as_equal_while_they_are_not_to_be_measured() {
    let mut islands = unequal(0.5);
    let settings = islands.world.engine.monitor_settings();
    islands.world.engine.set_monitor(MonitorSettings { measures_cores: false, adapts: false, ..settings });
    load_unequal(&mut islands, 30, 0.5);
    assert!(islands.world.engine.executors().iter().all(|executor| executor.speed == 1.0));
    islands.world.engine.set_monitor(MonitorSettings { adapts: false, ..settings });
    load_unequal(&mut islands, 30, 0.5);
    assert_eq!(islands.world.engine.executors()[1].speed, 0.5);
    islands.world.engine.set_monitor(MonitorSettings { measures_cores: false, adapts: false, ..settings });
    load_unequal(&mut islands, 1, 0.5);
    assert_eq!(islands.world.engine.executors()[1].speed, 1.0, "switched off it is forgotten");
}
