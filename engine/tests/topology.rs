//! Real threads on a machine whose cores come and go.

mod common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use archipel_engine::executor::run_plain;
use archipel_engine::id::{ExecutorId, GroupId};
use archipel_engine::log::MemoryStore;
use archipel_engine::random::RandomStream;
use archipel_engine::topology::{Granularity, Invented, Topology};
use archipel_engine::{
    Direction, Engine, EngineConfig, Repartition, RepartitionRefused, Seams, Stop, SubmitOptions,
    TopologyChange, TopologyListener,
};
use common::*;

/// Two sockets of two cores, of which some are there.
fn cores(there: impl IntoIterator<Item = usize>) -> Arc<Invented> {
    let cores = Invented::of_sockets(2, 2, Granularity::Auto).with_fixed_islands();
    cores.set_there(there);
    Arc::new(cores)
}

fn open(cores: &Arc<Invented>, background: bool) -> Engine {
    let config = EngineConfig {
        executors: cores.read().expect("there are some").executors(),
        executors_max: 4,
        background,
        split_rows: 40,
        ..config(1)
    };
    let seams = Seams { topology: Some(cores.clone()), ..Seams::default() };
    Engine::open_with(config, Arc::new(MemoryStore::new()), seams, &|_| {}).expect("opens")
}

fn active(engine: &Engine) -> Vec<(u16, Option<usize>)> {
    let active = engine.executors().into_iter().filter(|executor| executor.active);
    active.map(|executor| (executor.id.0, executor.core)).collect()
}

/// Starts a thread for every executor that comes.
struct Starts {
    engine: Engine,
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

impl Starts {
    fn start(&self, id: ExecutorId) {
        let stop = self.stop.clone();
        let body = Box::new(move |handle| run_plain(&handle, &stop));
        // One that was retired has its thread still.
        if let Ok(thread) = self.engine.start_executor(id, body) {
            self.threads.lock().expect("no panic").push(thread);
        }
    }
}

impl TopologyListener for Starts {
    fn changed(&self, change: &TopologyChange) {
        change.activated.iter().for_each(|id| self.start(*id));
    }
}

/// Counts the looks it is told of.
#[derive(Default)]
struct Looks(AtomicU64);

impl TopologyListener for Looks {
    fn changed(&self, _change: &TopologyChange) {}

    fn looked(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn money_is_conserved_while_cores_come_and_go() {
    const ACCOUNTS_COUNT: i64 = 64;
    let cores = cores([0]);
    let engine = open(&cores, true);
    open_bank(&engine, ACCOUNTS_COUNT);
    let starts = Arc::new(Starts { engine: engine.clone(), stop: Arc::default(), threads: Mutex::default() });
    starts.start(ExecutorId(0));
    engine.on_topology_change(Some(starts.clone()));
    let running = AtomicU64::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (engine, running) = (&engine, &running);
            scope.spawn(move || {
                let mut random = RandomStream::new(thread);
                for round in 0..1_500 {
                    if round % 100 == 50 {
                        let (rows, _) = unpredicted(engine, |txn| all_accounts(txn, Direction::Ascending));
                        let rows = rows.expect("scanned");
                        assert_eq!(rows.iter().map(|row| row.2).sum::<i64>(), ACCOUNTS_COUNT * 100);
                        continue;
                    }
                    let from = random.below(ACCOUNTS_COUNT as u64) as i64;
                    let to = (from + 1 + random.below(ACCOUNTS_COUNT as u64 - 1) as i64) % ACCOUNTS_COUNT;
                    let program = script(
                        move |_, claims| {
                            claims.add_point(GroupId(ACCOUNTS.0), &account_key(from));
                            claims.add_point(GroupId(ACCOUNTS.0), &account_key(to));
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
        let mut random = RandomStream::new(99);
        while running.load(Ordering::Relaxed) > 0 {
            let first = random.below(4) as usize;
            let count = 1 + random.below(4) as usize;
            cores.set_there((first..first + count).map(|core| core % 4));
            engine.look_at_topology().expect("there are cores");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    assert!(engine.topology_changes() > 3, "{} changes", engine.topology_changes());
    let rows = unpredicted(&engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    assert_eq!(rows.iter().map(|row| row.2).sum::<i64>(), ACCOUNTS_COUNT * 100);
    engine.on_topology_change(None);
    starts.stop.store(true, Ordering::Relaxed);
    for thread in std::mem::take(&mut *starts.threads.lock().expect("no panic")) {
        thread.join().expect("ends");
    }
}

#[test]
fn executors_and_homes_follow_and_a_retired_executor_takes_no_partition() {
    let cores = cores(0..4);
    let engine = open(&cores, false);
    open_bank(&engine, 64);
    let keys = (1..8).map(|part| account_key(part * 8)).collect();
    engine.pre_split(GroupId(ACCOUNTS.0), keys).wait().outcome.result.expect("it splits");
    assert!(engine.look_at_topology().expect("read").is_none(), "nothing has changed");
    let homes =
        || -> BTreeSet<u16> { engine.partitions().into_iter().map(|partition| partition.home.0).collect() };
    assert_eq!(homes().len(), 4);

    cores.set_there([1, 2]);
    let change = engine.look_at_topology().expect("read").expect("two cores are gone");
    assert_eq!((change.retired.len(), change.activated.len(), change.replaced.len()), (2, 0, 0));
    assert_eq!(active(&engine), [(1, Some(1)), (2, Some(2))]);
    assert_eq!(homes(), BTreeSet::from([1, 2]));
    let moved = engine.repartitions().into_iter().filter(|done| done.reason == "core lost").count();
    assert_eq!(moved, 4);
    let change =
        Repartition::Move { partition: engine.partitions()[1].id, to: archipel_engine::id::ExecutorId(0) };
    let refused = engine.repartition(change, "test").wait().program.result;
    assert_eq!(refused, Err(RepartitionRefused::Retired(ExecutorId(0))));

    // Another core in place of one costs a pin.
    cores.set_there([1, 3]);
    let change = engine.look_at_topology().expect("read").expect("another core");
    assert_eq!((change.retired.len(), change.activated.len(), change.replaced.len()), (0, 0, 1));
    assert_eq!(active(&engine), [(1, Some(1)), (2, Some(3))]);

    // No core at all is an error, and changes nothing.
    cores.set_there([]);
    assert!(engine.look_at_topology().is_err());
    assert_eq!(active(&engine).len(), 2);

    cores.set_there(0..4);
    engine.look_at_topology().expect("read").expect("all are back");
    assert_eq!(active(&engine).len(), 4);
    assert_eq!(homes().len(), 4);
}

#[test]
fn a_partition_that_cannot_move_yet_is_asked_once() {
    let cores = cores(0..4);
    let engine = open(&cores, false);
    open_bank(&engine, 64);
    let keys = (1..8).map(|part| account_key(part * 8)).collect();
    engine.pre_split(GroupId(ACCOUNTS.0), keys).wait().outcome.result.expect("it splits");
    let (held, holds) = std::sync::mpsc::channel();
    let (go, goes) = std::sync::mpsc::channel::<()>();
    let goes = Mutex::new(goes);
    std::thread::scope(|scope| {
        let holder = engine.clone();
        scope.spawn(move || {
            let program = script(
                |_, claims| claims.add_group(GroupId(ACCOUNTS.0)),
                move |_| {
                    held.send(()).expect("somebody waits");
                    goes.lock().expect("no panic").recv().expect("it is sent");
                    Ok(())
                },
            );
            holder.submit(program, SubmitOptions::default()).wait().outcome.result.expect("it holds");
        });
        holds.recv().expect("it holds all partitions");
        cores.set_there([1, 2]);
        for _ in 0..5 {
            engine.look_at_topology().expect("read");
        }
        let queued: Vec<_> = engine.partitions().into_iter().map(|it| it.queued).collect();
        assert_eq!(queued.iter().filter(|queued| **queued == 1).count(), 4, "{queued:?}");
        assert_eq!(queued.iter().sum::<usize>(), 4, "{queued:?}");
        // Where one goes has no core any more before it is there.
        cores.set_there([1, 3]);
        engine.look_at_topology().expect("read");
        cores.set_there([3]);
        engine.look_at_topology().expect("read");
        go.send(()).expect("it waits");
    });
    for _ in 0..3 {
        unpredicted(&engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
        engine.look_at_topology().expect("read");
    }
    let active = active(&engine);
    assert_eq!(active.len(), 1);
    assert!(engine.partitions().into_iter().all(|it| it.home.0 == active[0].0), "{:?}", engine.partitions());
}

#[test]
fn only_an_executor_that_has_or_had_a_core_is_driven() {
    let cores = cores([0]);
    let engine = open(&cores, false);
    assert!(engine.attach_executor(ExecutorId(1)).is_none(), "the log would not wake it");
    let looks = Arc::new(Looks::default());
    engine.on_topology_change(Some(looks.clone()));
    engine.look_at_topology().expect("read");
    cores.set_there([0, 1]);
    engine.look_at_topology().expect("read");
    assert_eq!(looks.0.load(Ordering::Relaxed), 2, "every look is told");
    let handle = engine.attach_executor(ExecutorId(1)).expect("it has a core");
    assert!(engine.attach_executor(ExecutorId(1)).is_none(), "it is driven");
    drop(handle);
    cores.set_there([0]);
    engine.look_at_topology().expect("read");
    assert!(engine.attach_executor(ExecutorId(1)).is_some(), "it had a core");
}

#[test]
fn a_core_that_comes_back_gets_its_share_while_threads_serve() {
    let cores = cores([0, 1]);
    let engine = open(&cores, true);
    open_bank(&engine, 16);
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(8)]).wait().outcome.result.expect("it splits");
    let starts = Arc::new(Starts { engine: engine.clone(), stop: Arc::default(), threads: Mutex::default() });
    starts.start(ExecutorId(0));
    starts.start(ExecutorId(1));
    let homes = || -> Vec<u16> {
        let routing = engine.routing();
        routing.routes(GroupId(ACCOUNTS.0)).iter().map(|route| route.home().0).collect()
    };
    let until = |wanted: &dyn Fn(&[u16]) -> bool| {
        let began = std::time::Instant::now();
        while !wanted(&homes()) {
            assert!(began.elapsed() < std::time::Duration::from_secs(120), "{:?}", homes());
            engine.look_at_topology().expect("read");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    cores.set_there([0]);
    until(&|homes| homes == [0, 0]);
    cores.set_there([0, 1]);
    until(&|homes| homes.contains(&1));
    starts.stop.store(true, Ordering::Relaxed);
    for thread in std::mem::take(&mut *starts.threads.lock().expect("no panic")) {
        thread.join().expect("ends");
    }
}
