//! Real threads: executors, queues, stealing, group commit, checkpoints in the background.

mod common;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use archipel_engine::id::GroupId;
use archipel_engine::log::LogStore;
use archipel_engine::log::MemoryStore;
use archipel_engine::log::memory::Survivors;
use archipel_engine::random::RandomStream;
use archipel_engine::spawn::{Spawn, SystemSpawn};
use archipel_engine::{
    CheckpointState, Direction, Engine, EngineConfig, Inserted, KeyRange, OpenError, Paging, Seams, Start,
    Stop, SubmitOptions,
};
use common::*;

#[test]
fn a_fan_out_visits_every_row_of_its_range_once() {
    let config = EngineConfig { background: false, ..config(3) };
    let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("opens");
    open_bank(&engine, 200);
    let keys = (1..10).map(|part| account_key(part * 20)).collect();
    engine.pre_split(GroupId(ACCOUNTS.0), keys).wait().outcome.result.expect("it splits");
    let (stop, executors) = start_executors(&engine, 3);
    for _ in 0..200 {
        let (parts, outcome) = unpredicted(&engine, |txn| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            let (low, high) = (account_key(30), account_key(170));
            let range = KeyRange { low: Bound::Included(&low[..]), high: Bound::Excluded(&high[..]) };
            txn.fan_out(&table, range, &|rows| {
                let mut ids = Vec::new();
                rows.scan(&mut |_, row| {
                    ids.push(int8(&table, row, 0));
                    ControlFlow::Continue(())
                });
                ids
            })
        });
        let parts = parts.expect("it runs");
        assert_eq!(parts.len(), 8);
        assert_eq!(parts.concat(), (30..170).collect::<Vec<_>>());
        assert_eq!(outcome.partitions, 8);
    }
    stop.store(true, Ordering::Relaxed);
    for executor in executors {
        executor.join().expect("ends");
    }
}

#[test]
fn money_is_conserved_by_threads_that_collide() {
    let store = MemoryStore::new();
    let config = EngineConfig { background: true, split_rows: 40, checkpoint_bytes: 64 << 10, ..config(2) };
    let engine = Engine::open(config, Arc::new(store.clone())).expect("opens");
    const ACCOUNTS_COUNT: i64 = 64;
    open_bank(&engine, ACCOUNTS_COUNT);
    let (stop, executors) = start_executors(&engine, 2);
    let newest = AtomicU64::new(0);
    let sums = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (engine, newest, sums) = (&engine, &newest, &sums);
            scope.spawn(move || {
                let mut random = RandomStream::new(thread);
                for round in 0..1_500 {
                    if round % 100 == 50 {
                        let (rows, _) = run(
                            engine,
                            |_, claims| claims.add_group(GroupId(ACCOUNTS.0)),
                            |txn| all_accounts(txn, Direction::Ascending),
                        );
                        let rows = rows.expect("scanned");
                        assert_eq!(rows.iter().map(|row| row.2).sum::<i64>(), ACCOUNTS_COUNT * 100);
                        sums.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let from = random.below(ACCOUNTS_COUNT as u64) as i64;
                    let to = random.below(ACCOUNTS_COUNT as u64) as i64;
                    if from == to {
                        continue;
                    }
                    // Every third one predicts half of what it needs.
                    let half = round % 3 == 0;
                    let program = script(
                        move |_, claims| {
                            claims.add_point(GroupId(ACCOUNTS.0), &account_key(from));
                            if !half {
                                claims.add_point(GroupId(ACCOUNTS.0), &account_key(to));
                            }
                        },
                        move |txn| transfer(txn, from, to, 3),
                    );
                    let done = engine.submit(program, SubmitOptions::default()).wait();
                    match done.outcome.result {
                        Ok(()) => {
                            newest.fetch_max(done.outcome.depends_on.0, Ordering::Relaxed);
                        }
                        Err(Stop::Abort) => {}
                        Err(other) => panic!("{other:?}"),
                    }
                }
            });
        }
    });
    assert!(engine.wait_durable(archipel_engine::id::Epoch(newest.load(Ordering::Relaxed))));
    let before = unpredicted(&engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    stop.store(true, Ordering::Relaxed);
    for executor in executors {
        executor.join().expect("ends");
    }
    assert!(engine.routing().routes(GroupId(ACCOUNTS.0)).len() > 1, "it has split");
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    let rows = unpredicted(&after, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    assert_eq!(rows, before);
    assert!(sums.load(Ordering::Relaxed) > 0);
}

/// Threads as usual, but whoever starts the watch over a checkpoint's time goes on when that is
/// over.
struct LateToCheckpoint;

impl Spawn for LateToCheckpoint {
    fn spawn(&self, name: String, body: Box<dyn FnOnce() + Send>) -> std::io::Result<JoinHandle<()>> {
        let watches = name == "shutdown";
        let thread = SystemSpawn.spawn(name, body)?;
        while watches && !thread.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(thread)
    }
}

/// More log than a machine as slow as the store remembers it would read in a second.
fn open_with_long_log(store: &MemoryStore, spawn: Arc<dyn Spawn>) -> Engine {
    const SLOWEST: u64 = 1;
    let speed = [SLOWEST.to_le_bytes(), SLOWEST.to_le_bytes()].concat();
    store.meta_put("recovery-speed", &speed).expect("written");
    let config = EngineConfig { background: true, ..config(2) };
    let seams = Seams { spawn, ..Seams::default() };
    let engine = Engine::open_with(config, Arc::new(store.clone()), seams, &|_| {}).expect("opens");
    open_bank(&engine, 10);
    for part in 1..=10i64 {
        let (written, _) = unpredicted(&engine, move |txn| {
            for id in 0..400 {
                let owner = format!("{:0>300}", part * 1_000 + id);
                assert_eq!(insert_account(txn, part * 1_000 + id, &owner, 100)?, Inserted::Ok);
            }
            Ok(())
        });
        written.expect("written");
    }
    engine
}

#[test]
fn an_orderly_end_leaves_no_log_to_read() {
    let store = MemoryStore::new();
    let engine = open_with_long_log(&store, Arc::new(SystemSpawn));
    engine.flush();
    assert!(engine.log().counters.bytes_since_checkpoint > 1 << 20);
    engine.shutdown(Duration::from_secs(600)).expect("there is time enough");
    let states: Vec<CheckpointState> = engine.checkpoints().into_iter().map(|it| it.state).collect();
    assert_eq!(states, [CheckpointState::Done]);
    drop(engine);
    let after = reopen_stepped(&store);
    assert!(after.log().counters.bytes_since_checkpoint < 1 << 10);
    let rows = unpredicted(&after, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    assert_eq!(rows.len(), 4_010);
}

#[test]
fn a_checkpoint_that_is_given_up_at_the_end_is_told() {
    let store = MemoryStore::new();
    let engine = open_with_long_log(&store, Arc::new(LateToCheckpoint));
    let began = Instant::now();
    let ended = engine.shutdown(Duration::from_millis(10));
    assert!(matches!(ended, Err(OpenError::Stopping)), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(60));
    let states: Vec<CheckpointState> = engine.checkpoints().into_iter().map(|it| it.state).collect();
    assert!(matches!(states[..], [CheckpointState::GivenUp(_)]), "{states:?}");
    drop(engine);
    // Nothing is lost by it.
    let after = reopen_stepped(&store);
    let rows = unpredicted(&after, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    assert_eq!(rows.len(), 4_010);
}

/// As where the operating system has no room for another thread.
struct NoRoom;

impl Spawn for NoRoom {
    fn spawn(&self, _name: String, _body: Box<dyn FnOnce() + Send>) -> std::io::Result<JoinHandle<()>> {
        Err(std::io::ErrorKind::WouldBlock.into())
    }
}

#[test]
fn where_no_thread_can_be_started_what_may_stand_still_is_refused_and_the_rest_runs() {
    let config = EngineConfig { background: false, ..config(1) };
    let seams = Seams { spawn: Arc::new(NoRoom), ..Seams::default() };
    let engine = Engine::open_with(config, Arc::new(MemoryStore::new()), seams, &|_| {}).expect("opens");
    open_bank(&engine, 20);
    let reader = engine.begin();
    for (paging, expected) in [(Paging::Locking, Err(Stop::NoThread)), (Paging::Off, Ok(Some(100)))] {
        let options = SubmitOptions {
            transaction: Some(&reader),
            start: Start::Apart,
            paging,
            ..SubmitOptions::default()
        };
        let read = script(|_, claims| claims.add_group(GroupId(ACCOUNTS.0)), |txn| balance(txn, 3));
        assert_eq!(finish(engine.submit(read, options).wait()).0, expected);
    }
    engine.rollback(&reader).wait().outcome.result.expect("rolled back");
    // Nobody holds what was claimed for what was refused.
    let rows = unpredicted(&engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    assert_eq!(rows.len(), 20);
}
