//! Memory follows a partition to another memory node: shown by the allocator, which remembers the
//! thread that asked for every piece of memory. No test needs a machine with several nodes: they
//! are invented, and so are the threads of their islands.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Mutable;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use archipel_engine::executor::run_plain;
use archipel_engine::id::{ExecutorId, GroupId, PartitionId};
use archipel_engine::log::MemoryStore;
use archipel_engine::log::memory::Survivors;
use archipel_engine::random::RandomStream;
use archipel_engine::storage::{KeyBuf, Tree};
use archipel_engine::topology::{Granularity, Invented, Topology};
use archipel_engine::{
    Direction, Engine, EngineConfig, MemoryFollowed, MonitorSettings, REFERENCE_GROUP, Repartition, Seams,
    SliceBudget, Stop, SubmitOptions,
};
use common::*;

/// Writes the number of the thread that asks before every piece of memory.
struct Remembering;

#[global_allocator]
static ALLOCATOR: Remembering = Remembering;

thread_local! {
    static NUMBER: Mutable<u64> = const { Mutable::new(0) };
}

/// Room for the number, that leaves what follows aligned.
fn ahead(layout: Layout) -> usize {
    layout.align().max(16)
}

fn with_room(layout: Layout) -> Option<Layout> {
    let size = layout.size().checked_add(ahead(layout))?;
    Layout::from_size_align(size, layout.align().max(16)).ok()
}

// SAFETY: memory is the system's, with room before it that is aligned as it is; sizes and alignments
// are those it was asked for with. `realloc` is the trait's own, of these two.
unsafe impl GlobalAlloc for Remembering {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(whole) = with_room(layout) else { return std::ptr::null_mut() };
        // SAFETY: the size is not zero; the number lies in the room before what is given out.
        unsafe {
            let start = System.alloc(whole);
            if start.is_null() {
                return start;
            }
            let given = start.add(ahead(layout));
            given.cast::<u64>().sub(1).write(NUMBER.try_with(Mutable::get).unwrap_or(0));
            given
        }
    }

    // SAFETY: the caller gives back what `alloc` gave out, with the layout it asked for.
    unsafe fn dealloc(&self, given: *mut u8, layout: Layout) {
        let Some(whole) = with_room(layout) else { return };
        // SAFETY: it was given out by `alloc` with this layout.
        unsafe { System.dealloc(given.sub(ahead(layout)), whole) }
    }
}

/// The number of the thread that asked for a piece of memory which is in use.
fn made_by(address: usize) -> u64 {
    // SAFETY: every piece in use was given out by `alloc`, with the number before it.
    unsafe { std::ptr::with_exposed_provenance::<u64>(address).sub(1).read() }
}

/// What threads of executors are numbered from.
const EXECUTORS_FROM: u64 = 100;
const ACCOUNTS_COUNT: i64 = 3_000;
const GROUP: GroupId = GroupId(ACCOUNTS.0);

/// Two sockets of two cores each, or one of four.
fn cores(sockets: usize) -> Arc<Invented> {
    Arc::new(Invented::of_sockets(sockets, 4 / sockets, Granularity::Socket).with_fixed_islands())
}

fn config_on(cores: &Invented) -> EngineConfig {
    EngineConfig {
        executors: cores.read().expect("all are there").executors(),
        executors_max: 4,
        split_rows: 400,
        monitor: MonitorSettings {
            adapts: false,
            memory_follow_bytes: 16 << 10,
            memory_follow_delay_nanos: 100_000,
            ..MonitorSettings::default()
        },
        ..config(1)
    }
}

fn open(config: EngineConfig, cores: &Arc<Invented>, store: &MemoryStore) -> Engine {
    let seams = Seams { topology: Some(cores.clone()), ..Seams::default() };
    Engine::open_with(config, Arc::new(store.clone()), seams, &|_| {}).expect("the engine opens")
}

/// An engine with its executors, whose threads have numbers.
struct World {
    engine: Engine,
    store: MemoryStore,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl World {
    fn new(sockets: usize) -> Self {
        let store = MemoryStore::new();
        let world = Self::on(sockets, store);
        open_bank(&world.engine, ACCOUNTS_COUNT);
        let keys = (1..8).map(|part| account_key(part * ACCOUNTS_COUNT / 8)).collect();
        world.engine.pre_split(GROUP, keys).wait().outcome.result.expect("split");
        // Partitions are split by their size after the load, which makes nodes and gives homes.
        let (mut before, mut quiet) = (0, 0);
        for _ in 0..1_000 {
            if quiet == 5 {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            let now = world.engine.partitions().len();
            quiet = if now == before { quiet + 1 } else { 0 };
            before = now;
        }
        assert_eq!(quiet, 5, "splits come to an end");
        world
    }

    fn on(sockets: usize, store: MemoryStore) -> Self {
        let cores = cores(sockets);
        let engine = open(config_on(&cores), &cores, &store);
        let stop = Arc::new(AtomicBool::new(false));
        let start = |id: u16| {
            let stop = stop.clone();
            let body = Box::new(move |handle| {
                NUMBER.set(EXECUTORS_FROM + u64::from(id));
                run_plain(&handle, &stop);
            });
            engine.start_executor(ExecutorId(id), body).expect("an executor starts")
        };
        let threads = (0..4).map(start).collect();
        Self { engine, store, stop, threads }
    }

    /// Moves every partition to one of two executors.
    fn move_all(&self, to: [u16; 2]) {
        for (at, partition) in self.engine.partitions().into_iter().enumerate() {
            if partition.group != REFERENCE_GROUP {
                let change = Repartition::Move { partition: partition.id, to: ExecutorId(to[at % 2]) };
                let done = self.engine.repartition(change, "test").wait();
                assert_eq!((done.outcome.result, done.program.result), (Ok(()), Ok(())));
            }
        }
    }

    fn followed(&self) -> f64 {
        let partitions = self.engine.partitions();
        let (mut there, mut rows) = (0.0, 0.0);
        for partition in partitions.iter().filter(|partition| partition.rows > 0) {
            there += partition.memory_followed * partition.rows as f64;
            rows += partition.rows as f64;
        }
        there / rows
    }

    /// Steps until all memory is where it should be; calls `between` between steps.
    fn follow(&self, mut between: impl FnMut(f64)) {
        let began = Instant::now();
        while self.engine.partitions().iter().any(|partition| partition.memory_followed < 1.0) {
            assert!(began.elapsed() < Duration::from_secs(60), "memory does not follow: {}", self.followed());
            self.engine.step_memory();
            between(self.followed());
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Who made how many pieces of each partition's memory.
    fn makers(&self) -> BTreeMap<PartitionId, BTreeMap<u64, usize>> {
        let count = |addresses: Vec<usize>| {
            let mut makers = BTreeMap::new();
            addresses.into_iter().for_each(|address| *makers.entry(made_by(address)).or_default() += 1);
            makers
        };
        self.engine.allocations().into_iter().map(|(id, addresses)| (id, count(addresses))).collect()
    }

    fn all(&self) -> Vec<(i64, String, i64)> {
        unpredicted(&self.engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned")
    }

    fn stop(mut self) -> MemoryStore {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("an executor ends"));
        self.engine.close();
        self.store.clone()
    }
}

#[test]
fn looks_come_half_as_often_until_an_executor_is_idle() {
    let cores = cores(2);
    let mut config = EngineConfig { background: false, split_rows: u64::MAX, ..config_on(&cores) };
    config.monitor.memory_follow_delay_nanos = 10_000_000_000;
    let engine = open(config, &cores, &MemoryStore::new());
    open_bank(&engine, ACCOUNTS_COUNT);
    for route in engine.routing().routes(GROUP) {
        let change = Repartition::Move { partition: route.partition(), to: ExecutorId(2) };
        engine.repartition(change, "test").wait().outcome.result.expect("an action ends");
    }
    let attach = |id| engine.attach_executor(ExecutorId(id)).expect("nobody drives it");
    let handles: Vec<_> = (0..4).map(attach).collect();
    handles[0].seat();
    // A piece waits for an executor of the other socket, which is busy.
    let looks: Vec<Duration> = (0..5).map(|_| engine.step_memory()).collect();
    assert_eq!(looks, [500, 1_000, 2_000, 4_000, 4_000].map(Duration::from_micros));
    handles[2].drain(SliceBudget::default());
    handles[0].seat();
    let rest = engine.step_memory();
    assert_eq!(engine.memory_followed().pieces, 1);
    assert!(rest <= Duration::from_micros(500), "{rest:?}");
    // Nothing else has run there: the rest is cut short, and the next piece looked for as soon as the first.
    std::thread::sleep(Duration::from_millis(1));
    assert_eq!(engine.step_memory(), Duration::from_micros(500));
}

#[test]
fn every_node_row_and_key_of_a_tree_is_made_again_by_the_thread_that_remakes_it() {
    let mut tree: Tree = Tree::new();
    for number in 0..20_000u32 {
        // Every third key has memory of its own.
        let mut key = vec![b'k'; if number % 3 == 0 { 30 } else { 3 }];
        key.extend(number.to_be_bytes());
        tree.insert(&key, vec![1; number as usize % 50].into(), u64::from(number));
    }
    let makers = |tree: &Tree| {
        let mut makers: BTreeMap<u64, usize> = BTreeMap::new();
        tree.allocations(&mut |address| {
            *makers.entry(made_by(address.expose_provenance())).or_default() += 1;
        });
        makers
    };
    let here = NUMBER.get();
    let pieces = makers(&tree);
    assert_eq!(pieces.keys().copied().collect::<Vec<_>>(), [here]);
    let (tree, walks) = std::thread::spawn(move || {
        NUMBER.set(7);
        let mut random = RandomStream::new(5);
        let (mut from, mut walks) = (None::<KeyBuf>, 0);
        loop {
            let mut left = 1 + random.below(40);
            from = tree.remake(from.as_deref(), &mut |_, _| {
                left -= 1;
                left > 0
            });
            walks += 1;
            if from.is_none() {
                return (tree, walks);
            }
        }
    })
    .join()
    .expect("the thread ends");
    assert!(walks > 20, "in many pieces: {walks}");
    assert_eq!(makers(&tree), BTreeMap::from([(7, pieces[&here])]), "all of it, and as much as before");
}

#[test]
fn after_a_move_to_another_socket_all_memory_was_made_by_threads_of_that_socket() {
    let world = World::new(2);
    // What a transaction over partitions of several islands put in was made where that ran: by the
    // second move everything has followed.
    world.move_all([2, 3]);
    world.follow(|_| {});
    for (to, from) in [([0, 1], [2, 3]), ([2, 3], [0, 1])] {
        world.move_all(to);
        // What old snapshots see lies there, too.
        let snapshot = world.engine.snapshot();
        let mut shares = vec![world.followed()];
        world.follow(|share| shares.push(share));
        assert!(shares.iter().any(|share| *share > 0.0 && *share < 1.0), "piece by piece: {shares:?}");
        drop(snapshot);
        let allowed = to.map(|id| EXECUTORS_FROM + u64::from(id));
        let makers = world.makers();
        assert!(makers.len() >= 9, "the accounts' partitions and the index's");
        let mut pieces = 0;
        for (partition, makers) in &makers {
            for (maker, count) in makers {
                assert!(allowed.contains(maker), "{count} pieces of {partition} are thread {maker}'s");
                pieces += count;
            }
        }
        assert!(pieces > 2 * ACCOUNTS_COUNT as usize, "rows of the accounts and of their index");
        let nodes: Vec<Option<u16>> = world.engine.partitions().iter().map(|it| it.memory_node).collect();
        let node = to[0] / 2;
        assert!(nodes.iter().filter(|found| **found == Some(node)).count() >= 9, "{nodes:?} of {from:?}");
    }
    let sum: i64 = world.all().iter().map(|account| account.2).sum();
    assert_eq!((world.all().len() as i64, sum), (ACCOUNTS_COUNT, ACCOUNTS_COUNT * 100));
    world.stop();
}

#[test]
fn on_one_memory_node_nothing_is_copied() {
    let world = World::new(1);
    let before = world.engine.allocations();
    world.move_all([2, 3]);
    for _ in 0..50 {
        world.engine.step_memory();
    }
    assert_eq!(world.engine.memory_followed(), MemoryFollowed::default());
    assert!(world.engine.allocations() == before, "every piece lies where it lay");
    assert_eq!(world.followed(), 1.0);
    world.stop();
}

#[test]
fn memory_stays_where_it_is_while_that_is_switched_off() {
    let world = World::new(2);
    let settings = world.engine.monitor_settings();
    world.engine.set_monitor(MonitorSettings { memory_follows: false, ..settings });
    world.move_all([2, 3]);
    for _ in 0..50 {
        world.engine.step_memory();
    }
    // A piece may have been on its way.
    let pieces = world.engine.memory_followed().pieces;
    std::thread::sleep(Duration::from_millis(20));
    for _ in 0..50 {
        world.engine.step_memory();
    }
    assert!(world.engine.memory_followed().pieces <= pieces + 1);
    assert!(world.followed() < 1.0);
    world.engine.set_monitor(settings);
    world.follow(|_| {});
    world.stop();
}

#[test]
fn readers_writers_and_snapshots_are_unharmed_while_memory_follows() {
    let world = World::new(2);
    let running = AtomicU64::new(3);
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (engine, running) = (&world.engine, &running);
            scope.spawn(move || {
                let mut random = RandomStream::new(thread);
                for _ in 0..3_000 {
                    let from = random.below(ACCOUNTS_COUNT as u64) as i64;
                    let to = (from + 1 + random.below(ACCOUNTS_COUNT as u64 - 1) as i64) % ACCOUNTS_COUNT;
                    let program = script(
                        move |_, claims| {
                            claims.add_point(GROUP, &account_key(from));
                            claims.add_point(GROUP, &account_key(to));
                        },
                        move |txn| transfer(txn, from, to, 3),
                    );
                    match engine.submit(program, SubmitOptions::default()).wait().outcome.result {
                        Ok(()) | Err(Stop::Abort) => {}
                        Err(other) => panic!("{other:?}"),
                    }
                }
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let (engine, running) = (&world.engine, &running);
        scope.spawn(move || {
            let table = engine.table(ACCOUNTS).expect("it is there");
            let mut rounds = 0;
            while running.load(Ordering::Relaxed) > 1 || rounds < 3 {
                let snapshot = engine.snapshot();
                let (mut low, mut rows, mut sum) = (Vec::new(), 0, 0);
                loop {
                    let page = snapshot.scan(&table, &low, None, 100).wait();
                    page.outcome.result.expect("a page is read");
                    rows += page.program.rows.len() as i64;
                    sum += page.program.rows.iter().map(|row| int8(&table, row, 2)).sum::<i64>();
                    match page.program.next {
                        Some(next) => low = next.to_vec(),
                        None => break,
                    }
                }
                assert_eq!(
                    (rows, sum),
                    (ACCOUNTS_COUNT, ACCOUNTS_COUNT * 100),
                    "all or nothing of a transfer"
                );
                rounds += 1;
            }
            running.fetch_sub(1, Ordering::Relaxed);
        });
        let mut to = [2, 3];
        while running.load(Ordering::Relaxed) > 0 {
            world.move_all(to);
            to = if to == [2, 3] { [0, 1] } else { [2, 3] };
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(30) {
                world.engine.step_memory();
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    });
    assert!(world.engine.memory_followed().pieces > 0);
    world.follow(|_| {});
    let sum: i64 = world.all().iter().map(|account| account.2).sum();
    assert_eq!(sum, ACCOUNTS_COUNT * 100);
    world.stop();
}

#[test]
fn a_crash_in_the_middle_loses_nothing() {
    let world = World::new(2);
    assert!(world.engine.flush());
    let before = world.all();
    world.move_all([2, 3]);
    assert!(world.engine.flush());
    let began = Instant::now();
    while world.engine.memory_followed().bytes == 0 {
        world.engine.step_memory();
        assert!(began.elapsed() < Duration::from_secs(60), "nothing follows");
    }
    let share = world.followed();
    let survivors = world.store.crash(Survivors::Synced);
    world.stop();
    let again = World::on(2, survivors);
    assert_eq!(again.all(), before, "at {share}");
    let homes = again.engine.partitions();
    assert!(homes.iter().filter(|it| it.group == GROUP).all(|it| [2, 3].contains(&it.home.0)));
    // Nobody knows where recovery has put it: it is placed.
    again.follow(|_| {});
    let allowed = |maker: &u64| [EXECUTORS_FROM + 2, EXECUTORS_FROM + 3].contains(maker);
    let accounts: Vec<PartitionId> = homes.iter().filter(|it| it.group == GROUP).map(|it| it.id).collect();
    let makers = again.makers();
    assert!(accounts.iter().all(|id| makers[id].keys().all(allowed)), "{makers:?}");
    again.stop();
}
