//! The monitor on a virtual clock: what it does about skew, hot keys and lost executors, and that
//! it does nothing about a load that is steady.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use archipel_engine::cell::Cell;
use archipel_engine::clock::Clock;
use archipel_engine::id::{ExecutorId, GroupId, PartitionId};
use archipel_engine::log::MemoryStore;
use archipel_engine::random::RandomStream;
use archipel_engine::topology::{Granularity, Invented, Topology};
use archipel_engine::{
    Advice, DdlOp, Decision, Engine, EngineConfig, ExecutorHandle, Inserted, Mark, MonitorSettings,
    REFERENCE_GROUP, Reason, Repartition, RepartitionRefused, Seams, SliceBudget, Stop, SubmitOptions, Told,
};
use common::*;

const GROUP: GroupId = GroupId(ACCOUNTS.0);
const ROWS: i64 = 2_000;
/// Actions between two samples of 250 ms.
const ACTIONS: u64 = 2_000;
const SAMPLES_A_SECOND: u64 = 4;

/// Moves when told to, and by a microsecond a look.
#[derive(Default)]
struct VirtualClock(AtomicU64);

impl Clock for VirtualClock {
    fn wall_micros(&self) -> i64 {
        self.monotonic_nanos() as i64 / 1_000
    }

    fn monotonic_nanos(&self) -> u64 {
        self.0.fetch_add(1_000, Ordering::Relaxed)
    }
}

struct World {
    engine: Engine,
    clock: Arc<VirtualClock>,
    random: RandomStream,
    store: MemoryStore,
}

fn open(store: &MemoryStore, clock: &Arc<VirtualClock>) -> Engine {
    let config = EngineConfig { background: false, ..config(2) };
    let seams = Seams { clock: clock.clone(), ..Seams::default() };
    Engine::open_with(config, Arc::new(store.clone()), seams, &|_| {}).expect("the engine opens")
}

/// Accounts in four partitions, two an executor.
fn world() -> World {
    let (store, clock) = (MemoryStore::new(), Arc::<VirtualClock>::default());
    let engine = open(&store, &clock);
    open_bank(&engine, ROWS);
    let cuts = (1..4).map(|at| account_key(at * ROWS / 4)).collect();
    engine.pre_split(GROUP, cuts).wait().outcome.result.expect("split");
    let world = World { engine, clock, random: RandomStream::new(4), store };
    for (at, (partition, _)) in world.homes().into_iter().enumerate() {
        world.change(Repartition::Move { partition, to: ExecutorId(at as u16 / 2) }).expect("moved");
    }
    world
}

impl World {
    fn homes(&self) -> Vec<(PartitionId, ExecutorId)> {
        let routing = self.engine.routing();
        routing.routes(GROUP).iter().map(|route| (route.partition(), route.home())).collect()
    }

    fn change(&self, change: Repartition) -> Result<(), RepartitionRefused> {
        let done = self.engine.repartition(change, "test").wait();
        done.outcome.result.expect("an action ends");
        done.program.result
    }

    /// So many seconds of reads of accounts that `draw` chooses.
    fn load(&mut self, seconds: u64, draw: impl FnMut(&mut RandomStream) -> i64) {
        self.load_samples(seconds * SAMPLES_A_SECOND, draw);
    }

    fn load_samples(&mut self, samples: u64, mut draw: impl FnMut(&mut RandomStream) -> i64) {
        for _ in 0..samples {
            for _ in 0..ACTIONS {
                let account = draw(&mut self.random);
                self.read(account, 0);
            }
            self.pass();
        }
    }

    /// Reads an account, which takes so much longer.
    fn read(&self, account: i64, nanos: u64) {
        let clock = self.clock.clone();
        let found = run(
            &self.engine,
            move |_, claims| claims.add_point(GROUP, &account_key(account)),
            move |txn| {
                clock.0.fetch_add(nanos, Ordering::Relaxed);
                balance(txn, account)
            },
        );
        assert_eq!(found.0, Ok(Some(100)));
    }

    /// The time between two samples passes.
    fn pass(&self) {
        self.clock.0.fetch_add(250_000_000, Ordering::Relaxed);
        // As its thread would: again at once while actions are to be done.
        for _ in 0..200 {
            let pause = self.engine.step_monitor();
            if pause > std::time::Duration::from_millis(2) {
                break;
            }
            self.clock.0.fetch_add(pause.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    fn repartitions(&self) -> usize {
        self.engine.repartitions().iter().filter(|done| done.decision > 0).count()
    }

    /// The share of each executor in the load of the accounts, as last evaluated.
    fn shares(&self) -> Vec<f64> {
        let loads = self.engine.partition_loads();
        let of = |executor| loads.iter().filter(|load| load.home == executor).map(|load| load.share).sum();
        [ExecutorId(0), ExecutorId(1)].map(of).to_vec()
    }
}

fn even(random: &mut RandomStream) -> i64 {
    random.below(ROWS as u64) as i64
}

/// Half of the load in a fifth of the keys.
fn skewed(random: &mut RandomStream) -> i64 {
    match random.below(2) {
        0 => random.below(ROWS as u64 / 5) as i64,
        _ => even(random),
    }
}

#[test]
fn a_steady_load_is_left_alone() {
    let mut world = world();
    world.load(120, even);
    let decisions = world.engine.monitor_decisions();
    assert_eq!(world.repartitions(), 0, "{decisions:?}");
    assert_eq!(decisions[0].reason, Reason::FirstTrace);
    assert!(decisions.len() <= 3, "{decisions:?}");
    let counts = world.engine.run_counts();
    assert!(counts.runs > 100_000, "{counts:?}");
}

/// Ten minutes as a machine shows them that others use, too: transactions take what they take, now
/// and then one is interrupted, either executor is slower for a while, and clients come more and
/// less often. Where the load lies does not change, and neither do the partitions.
#[test]
fn ten_steady_minutes_on_a_busy_machine_are_left_alone() {
    let mut world = world();
    let (mut slow, mut clients) = ([0; 2], ACTIONS);
    for sample in 0..600 * SAMPLES_A_SECOND {
        if sample % 3 == 0 {
            slow = [(); 2].map(|()| world.random.below(80));
        }
        if sample % 50 == 0 {
            clients = ACTIONS / 3 + world.random.below(ACTIONS);
        }
        let come = clients + world.random.below(clients / 4);
        for _ in 0..come {
            let account = even(&mut world.random);
            let takes = 2_000 + world.random.below(8_000);
            let interrupted = if world.random.below(2_000) == 0 { 2_000_000 } else { 0 };
            let slower = slow[usize::from(account >= ROWS / 2)];
            world.read(account, takes + takes * slower / 1_000 + interrupted);
        }
        world.pass();
    }
    let decisions = world.engine.monitor_decisions();
    assert_eq!(world.repartitions(), 0, "{decisions:?}");
    // They were looked at all the same.
    assert!(decisions.len() >= 5, "{decisions:?}");
    assert!(decisions.iter().any(|decision| decision.reason == Reason::Throughput), "{decisions:?}");
}

/// Fewer clients come, and for so many samples the second executor is slower. The world, and after how
/// many samples it was repartitioned.
fn slowed(slow_samples: u64) -> (World, Option<u64>) {
    const CLIENTS: u64 = 10_000;
    const LONGEST: u64 = 15 * SAMPLES_A_SECOND;
    let mut world = world();
    let sample = |world: &mut World, clients: u64, slower: u64| {
        for _ in 0..clients {
            let account = even(&mut world.random);
            world.read(account, if account < ROWS / 2 { 5_000 } else { 5_000 + slower });
        }
        world.pass();
    };
    for _ in 0..LONGEST {
        sample(&mut world, CLIENTS, 0);
    }
    assert_eq!(world.repartitions(), 0, "{:?}", world.engine.monitor_decisions());
    for number in 0..LONGEST {
        sample(&mut world, CLIENTS * 3 / 4, if number < slow_samples { 2_250 } else { 0 });
        if world.repartitions() > 0 {
            return (world, Some(number));
        }
    }
    (world, None)
}

#[test]
fn a_core_that_is_slower_for_a_moment_is_not_taken_for_load() {
    let (world, done) = slowed(u64::MAX);
    let decisions = world.engine.monitor_decisions();
    let decision = decisions.last().expect("there is one");
    assert_eq!(decision.reason, Reason::Throughput, "{decisions:?}");
    // Two windows of three samples, and two more: other changes are followed after the first two.
    assert!(decision.watched_nanos > 2_900_000_000, "{decision:?}");
    // The same again, but for the last six.
    let (world, again) = slowed(done.expect("what lasts is followed") - 6);
    assert_eq!(again, None, "{:?}", world.engine.monitor_decisions());
}

#[test]
fn a_change_while_a_repartitioning_is_measured_is_followed_and_not_held_against_it() {
    let mut world = world();
    world.load(10, even);
    let last = |random: &mut RandomStream| ROWS - 1 - skewed(random);
    while world.repartitions() == 0 {
        world.load_samples(1, skewed);
    }
    // Before anything of it was measured the load changes sides.
    world.load(5, last);
    let acted = |world: &World| -> Vec<Decision> {
        let decisions = world.engine.monitor_decisions().into_iter();
        decisions.filter(|decision| decision.verdict.name() == "repartitioned").collect()
    };
    let decisions = acted(&world);
    assert!(decisions.len() >= 2, "{:?}", world.engine.monitor_decisions());
    assert_eq!(decisions[0].measured_gain, None, "of the load it was made for nothing was left");
    for share in world.shares() {
        assert!((0.42..0.58).contains(&share), "{:?}", world.shares());
    }
    let told = world.engine.monitor_decisions();
    assert!(told.iter().all(|decision| decision.verdict != Told::HeldOff), "{told:?}");
}

#[test]
fn a_load_that_changes_while_it_is_watched_is_followed_by_its_next_two_windows() {
    let last = |random: &mut RandomStream| ROWS - 1 - skewed(random);
    // How long it was watched, if the load changes sides so many samples after it became skewed.
    let watched = |samples: u64| {
        let mut world = world();
        world.load(10, even);
        world.load_samples(samples, skewed);
        for _ in 0..10 * SAMPLES_A_SECOND {
            if world.repartitions() == 0 {
                world.load_samples(1, last);
            }
        }
        let decisions = world.engine.monitor_decisions();
        let decision = decisions.iter().rfind(|decision| decision.verdict.name() == "repartitioned");
        decision.expect("there is one").watched_nanos / 100_000_000
    };
    let watched: Vec<u64> = (2..6).map(watched).collect();
    // Two windows of three samples, or three of them where the first pair disagrees.
    assert!(watched.iter().all(|tenths| *tenths == 15 || *tenths == 22), "{watched:?}");
    assert!(watched.contains(&22), "{watched:?}");
}

#[test]
fn reference_tables_that_are_written_all_the_time_are_told_of() {
    let mut world = world();
    ddl(&world.engine, DdlOp::CreateTable(items_table())).expect("the table is made");
    let write = |world: &World, price: i64| {
        let clock = world.clock.clone();
        let written = run(
            &world.engine,
            |_, claims| claims.add_group(REFERENCE_GROUP),
            move |txn| {
                clock.0.fetch_add(20_000, Ordering::Relaxed);
                let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
                let row = table.layout.encode_row(&[Cell::Int4(1), Cell::Int8(price)]);
                if txn.insert(&table, &item_key(1), &row)? == Inserted::Ok {
                    return Ok(());
                }
                let _ = txn.update(&table, &item_key(1), &[(1, Cell::Int8(price))])?;
                Ok(())
            },
        );
        written.0.expect("written");
    };
    for sample in 0..8 * SAMPLES_A_SECOND {
        for price in 0..ACTIONS / 2 {
            let account = even(&mut world.random);
            world.read(account, 10_000);
            write(&world, (sample * ACTIONS + price) as i64);
        }
        world.pass();
    }
    let decisions = world.engine.monitor_decisions();
    let told = decisions.iter().find_map(|decision| decision.advice.as_ref());
    let Some(Advice::HotReference { share }) = told else { panic!("{decisions:?}") };
    assert!((0.4..0.9).contains(share), "{share}");
}

#[test]
fn skew_is_spread_and_the_gain_is_as_forecast() {
    let mut world = world();
    world.load(10, even);
    let before = world.engine.monitor_decisions().len();
    world.load(5, skewed);
    let decisions = world.engine.monitor_decisions();
    let acted: Vec<_> =
        decisions[before..].iter().filter(|decision| decision.verdict.name() == "repartitioned").collect();
    assert_eq!(acted.len(), 1, "{decisions:?}");
    let decision = acted[0];
    assert!(matches!(decision.reason, Reason::Imbalance | Reason::Mix), "{decision:?}");
    assert!(decision.watched_nanos <= 2_000_000_000, "{decision:?}");
    assert!(decision.before.imbalance > 0.2 && decision.after.imbalance < 0.05, "{decision:?}");
    assert!(decision.splits + decision.moves > 0 && decision.refused == 0, "{decision:?}");
    let measured = decision.measured_gain.expect("measured afterwards");
    assert!((measured / decision.predicted_gain - 1.0).abs() < 0.25, "{decision:?}");
    for share in world.shares() {
        assert!((0.45..0.55).contains(&share), "{:?}", world.shares());
    }
    let routing = world.engine.routing();
    for done in world.engine.repartitions().iter().filter(|done| done.decision > 0) {
        assert_eq!(done.decision, decision.id);
    }
    // What is settled stays so.
    world.load(60, skewed);
    assert_eq!(world.engine.routing().version, routing.version, "{:?}", world.engine.monitor_decisions());
    // And when the skew goes, that is followed too.
    world.load(5, even);
    for share in world.shares() {
        assert!((0.42..0.58).contains(&share), "{:?}", world.shares());
    }
}

#[test]
fn a_hot_key_gets_a_partition_of_its_own() {
    let mut world = world();
    let hot = |random: &mut RandomStream| if random.below(5) < 3 { 1_234 } else { even(random) };
    world.load(20, hot);
    let routing = world.engine.routing();
    let routes = routing.routes(GROUP);
    let at = routes.iter().position(|route| route.low == account_key(1_234));
    let at = at.unwrap_or_else(|| panic!("{:?}", world.engine.monitor_decisions()));
    assert_eq!(routes[at + 1].low, account_key(1_235));
    let decisions = world.engine.monitor_decisions();
    let told = decisions.iter().find_map(|decision| decision.advice.as_ref());
    let Some(Advice::HotKey { group, key, share }) = told else { panic!("{decisions:?}") };
    assert_eq!((*group, &key[..]), (GROUP, &account_key(1_234)[..]));
    assert!((0.5..0.7).contains(share), "{share}");
    let changes = world.repartitions();
    world.load(60, hot);
    assert_eq!(world.repartitions(), changes, "{:?}", world.engine.monitor_decisions());
}

#[test]
fn a_static_engine_only_tells() {
    let mut world = world();
    world.engine.set_monitor(MonitorSettings { adapts: false, ..MonitorSettings::default() });
    world.load(6, skewed);
    assert_eq!(world.repartitions(), 0);
    let decisions = world.engine.monitor_decisions();
    assert!(decisions.iter().any(|decision| decision.verdict == Told::Static), "{decisions:?}");

    // Once it may, it does, although the load is still the same.
    world.load(20, skewed);
    world.engine.set_monitor(MonitorSettings::default());
    world.load(5, skewed);
    assert!(world.repartitions() > 0, "{:?}", world.engine.monitor_decisions());

    world.engine.set_monitor(MonitorSettings { measures: false, ..MonitorSettings::default() });
    let before = world.engine.monitor_decisions().len();
    world.load(6, even);
    assert_eq!(world.engine.monitor_decisions().len(), before, "unmeasured, nothing is decided");
}

#[test]
fn marks_keep_everybody_away_and_survive_a_crash() {
    let mut world = world();
    let homes = world.homes();
    for &(partition, _) in &homes {
        for mark in [Mark::Pinned, Mark::Frozen] {
            world.change(Repartition::Mark { partition, mark, set: true }).expect("marked");
        }
    }
    let (first, second) = (homes[0].0, homes[1].0);
    let refused = |change| world.change(change).expect_err("marked");
    assert_eq!(
        refused(Repartition::Move { partition: first, to: ExecutorId(1) }),
        RepartitionRefused::Pinned(first)
    );
    assert_eq!(
        refused(Repartition::Split { group: GROUP, at: account_key(7) }),
        RepartitionRefused::Frozen(first)
    );
    assert_eq!(refused(Repartition::Merge(first, second)), RepartitionRefused::Frozen(first));
    world.load(8, skewed);
    assert_eq!(world.homes(), homes, "{:?}", world.engine.monitor_decisions());

    let World { engine, clock, store, .. } = world;
    engine.step_log().expect("written");
    drop(engine);
    let engine = open(&store, &clock);
    let world = World { engine, clock, random: RandomStream::new(1), store };
    let partition = world.homes()[0].0;
    let home = Repartition::Move { partition, to: ExecutorId(1) };
    assert_eq!(world.change(home.clone()), Err(RepartitionRefused::Pinned(partition)));
    world.change(Repartition::Mark { partition, mark: Mark::Pinned, set: false }).expect("unmarked");
    assert_eq!(world.change(home), Ok(()));
}

#[test]
fn partitions_of_a_lost_executor_find_another_home() {
    let world = world();
    let mut handles: Vec<ExecutorHandle> =
        (0..2).map(|id| world.engine.attach_executor(ExecutorId(id)).expect("nobody drives it")).collect();
    let step = || {
        world.clock.0.fetch_add(250_000_000, Ordering::Relaxed);
        for _ in 0..20 {
            world.engine.step_monitor();
            world.clock.0.fetch_add(1_000_000, Ordering::Relaxed);
        }
    };
    step();
    drop(handles.remove(0));
    for _ in 0..4 {
        step();
        handles[0].drain(SliceBudget::default());
        step();
    }
    let homes = world.homes();
    assert!(homes.iter().all(|(_, home)| *home == ExecutorId(1)), "{homes:?}");
    let decisions = world.engine.monitor_decisions();
    assert!(decisions.iter().any(|decision| decision.reason == Reason::Topology), "{decisions:?}");
}

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
        let (store, clock) = (MemoryStore::new(), Arc::<VirtualClock>::default());
        let topology = Arc::new(Invented::of_sockets(2, 1, Granularity::Socket));
        let executors = topology.read().expect("it is there").executors();
        let config = EngineConfig { background: false, executors, ..config(2) };
        let seams = Seams { clock: clock.clone(), topology: Some(topology), ..Seams::default() };
        let engine = Engine::open_with(config, Arc::new(store.clone()), seams, &|_| {}).expect("opens");
        open_bank(&engine, ROWS);
        let cuts = (1..4).map(|at| account_key(at * ROWS / 4)).collect();
        engine.pre_split(GROUP, cuts).wait().outcome.result.expect("split");
        let world = World { engine, clock, random: RandomStream::new(4), store };
        for (at, (partition, _)) in world.homes().into_iter().enumerate() {
            world.change(Repartition::Move { partition, to: ExecutorId(at as u16 / 2) }).expect("moved");
        }
        prepare(&world);
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
    let (store, clock) = (MemoryStore::new(), Arc::<VirtualClock>::default());
    let topology = Arc::new(Invented::of_one_cache(2, Granularity::L3).with_fixed_islands());
    topology.set_speed(1, speed);
    let executors = topology.read().expect("it is there").executors();
    let config = EngineConfig { background: false, executors, ..config(2) };
    let seams = Seams { clock: clock.clone(), topology: Some(topology), ..Seams::default() };
    let engine = Engine::open_with(config, Arc::new(store.clone()), seams, &|_| {}).expect("opens");
    open_bank(&engine, ROWS);
    let cuts = (1..8).map(|at| account_key(at * ROWS / 8)).collect();
    engine.pre_split(GROUP, cuts).wait().outcome.result.expect("split");
    let world = World { engine, clock, random: RandomStream::new(4), store };
    for (at, (partition, _)) in world.homes().into_iter().enumerate() {
        world.change(Repartition::Move { partition, to: ExecutorId(at as u16 / 4) }).expect("moved");
    }
    let attach = |id| world.engine.attach_executor(ExecutorId(id)).expect("nobody drives it");
    let handles = (0..2).map(attach).collect();
    Islands { world, handles, far_nanos: 0 }
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
