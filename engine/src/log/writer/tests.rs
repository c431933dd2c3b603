use std::sync::atomic::{AtomicI64, AtomicUsize};
use std::time::Instant;

use super::super::memory::{Faults, MemoryStore, Survivors};
use super::super::recovery::recover;
use super::super::redo;
use super::super::transaction::Author;
use super::*;
use crate::id::TreeId;

struct Setup {
    store: MemoryStore,
    log: Arc<Log>,
    writer: LogWriter,
    failures: Arc<AtomicUsize>,
}

fn setup(limits: LogLimits) -> Setup {
    let store = MemoryStore::new();
    let recovered = recover(&store, 1, &|_| {}).expect("an empty store recovers");
    let log = Log::new(limits, &recovered);
    let failures = Arc::new(AtomicUsize::new(0));
    let hook = {
        let failures = Arc::clone(&failures);
        Box::new(move |_: &StoreError| {
            failures.fetch_add(1, Ordering::Relaxed);
        })
    };
    let writer = LogWriter::new(Arc::clone(&log), Arc::new(store.clone()), &recovered, hook);
    Setup { store, log, writer, failures }
}

fn commit(buffer: &CommitBuffer, epoch: u64, number: u64, key: &[u8]) {
    let mut records = Vec::new();
    redo::put(&mut records, TreeId(20), key, b"row");
    buffer.append(Epoch(epoch), Author::Program, number, &records);
}

fn recovered_keys(store: &MemoryStore) -> Vec<Vec<u8>> {
    let recovered = recover(store, 1, &|_| {}).expect("recovers");
    recovered.trees.get(&TreeId(20)).map_or_else(Vec::new, |tree| {
        tree.cursor(std::ops::Bound::Unbounded).map(|(key, _)| key.to_vec()).collect()
    })
}

#[test]
fn only_closed_epochs_are_written_and_they_survive() {
    let Setup { store, log, mut writer, .. } = setup(LogLimits::default());
    let (a, b) = (log.new_buffer(), log.new_buffer());
    commit(&a, 1, 1, b"one");
    commit(&b, 1, 2, b"two");
    commit(&a, 2, 3, b"later");
    let step = writer.step(Epoch(1)).expect("written");
    assert_eq!(step.durable, Epoch(1));
    assert!(log.is_durable(Epoch(1)) && !log.is_durable(Epoch(2)));
    assert_eq!(recovered_keys(&store.crash(Survivors::Synced)), [b"one".to_vec(), b"two".to_vec()]);
    assert!(a.pending_bytes() > 0);
    writer.step(Epoch(2)).expect("written");
    assert_eq!(a.pending_bytes(), 0);
    assert_eq!(recovered_keys(&store.crash(Survivors::Synced)).len(), 3);
}

#[test]
fn epochs_without_commits_cost_no_write() {
    let Setup { store, log, mut writer, .. } = setup(LogLimits::default());
    assert_eq!(writer.step(Epoch(9)).expect("nothing to do"), Step { durable: Epoch(9), bytes: 0 });
    assert_eq!(log.durable(), Epoch(9));
    assert!(store.batches().is_empty());
}

#[test]
fn a_full_disk_refuses_writes_and_recovers_with_nothing_lost() {
    let Setup { store, log, mut writer, failures } = setup(LogLimits::default());
    let buffer = log.new_buffer();
    commit(&buffer, 1, 1, b"one");
    store.set_faults(Faults { full: true, ..Faults::default() });
    assert!(matches!(writer.step(Epoch(1)), Err(StoreError::Full(_))));
    assert_eq!(log.admits(&buffer), Err(LogRefusal::DiskFull));
    assert!(!log.is_durable(Epoch(1)));
    store.set_faults(Faults::default());
    commit(&buffer, 2, 2, b"two");
    assert_eq!(writer.step(Epoch(2)).expect("space again").durable, Epoch(2));
    assert_eq!(log.admits(&buffer), Ok(()));
    assert_eq!(recovered_keys(&store.crash(Survivors::Synced)).len(), 2);
    assert_eq!(failures.load(Ordering::Relaxed), 0);
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_any_more() {
    let Setup { store, log, mut writer, failures } = setup(LogLimits::default());
    let buffer = log.new_buffer();
    commit(&buffer, 1, 1, b"one");
    store.set_faults(Faults { sync_fails: true, ..Faults::default() });
    assert!(writer.step(Epoch(1)).is_err());
    store.set_faults(Faults::default());
    assert!(writer.step(Epoch(2)).is_err());
    assert!(!log.is_durable(Epoch(1)));
    assert_eq!(log.admits(&buffer), Err(LogRefusal::Failed));
    assert_eq!(failures.load(Ordering::Relaxed), 1);
}

#[test]
fn a_thread_that_runs_ahead_of_the_disk_waits() {
    let limits = LogLimits { buffer_bytes_max: 100, ..LogLimits::default() };
    let Setup { log, mut writer, .. } = setup(limits);
    let buffer = log.new_buffer();
    let mut number = 0;
    while buffer.pending_bytes() <= 100 {
        assert_eq!(log.admits(&buffer), Ok(()));
        number += 1;
        commit(&buffer, 1, number, b"key");
    }
    assert_eq!(log.admits(&buffer), Err(LogRefusal::Behind));
    writer.step(Epoch(1)).expect("written");
    assert_eq!(log.wait_for_room(&buffer), Ok(()));
}

#[derive(Default)]
struct Hand {
    nanos: AtomicU64,
    wall_micros: AtomicI64,
}

impl Clock for Hand {
    fn wall_micros(&self) -> i64 {
        self.wall_micros.load(Ordering::Relaxed)
    }

    fn monotonic_nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }
}

#[test]
fn how_far_the_log_has_come_is_noted_once_a_second_and_at_the_end() {
    let Setup { store, log, writer, .. } = setup(LogLimits::default());
    let clock = Arc::new(Hand::default());
    let mut writer = writer.with_clock(clock.clone());
    let buffer = log.new_buffer();
    for (epoch, second, noted) in [(1, 0, 1), (2, 0, 1), (3, 1, 3), (4, 1, 3)] {
        clock.nanos.store(second * NOTED_EVERY_NANOS, Ordering::Relaxed);
        commit(&buffer, epoch, epoch, b"key");
        writer.step(Epoch(epoch)).expect("written");
        assert_eq!(store.watermark().expect("readable").map(|mark| mark.batch.0), Some(noted));
    }
    writer.run(&|| Epoch(4), &AtomicBool::new(true));
    let end = store.crash(Survivors::Synced).watermark().expect("readable").expect("noted");
    assert_eq!((end.batch, end.epoch), (BatchNumber(4), Epoch(4)));
}

#[test]
fn the_time_of_batches_never_goes_back_also_across_a_start() {
    let store = MemoryStore::new();
    let clock = Arc::new(Hand::default());
    for (life, moments) in [(1, [50, 70, 60]), (2, [10, 80, 75])] {
        let recovered = recover(&store, 1, &|_| {}).expect("recovers");
        let log = Log::new(LogLimits::default(), &recovered);
        let shared = Arc::new(store.clone());
        let mut writer =
            LogWriter::new(log.clone(), shared, &recovered, Box::new(|_| {})).with_clock(clock.clone());
        let buffer = log.new_buffer();
        for (at, moment) in moments.into_iter().enumerate() {
            clock.wall_micros.store(moment, Ordering::Relaxed);
            let epoch = life * 10 + at as u64;
            commit(&buffer, epoch, log.number_at_start() + 1 + at as u64, b"key");
            writer.step(Epoch(epoch)).expect("written");
        }
    }
    let mut closed = Vec::new();
    let mut visit = |_: BatchNumber, bytes: &[u8]| {
        closed.extend(batch::check(bytes).and_then(|header| header.closed_micros));
        std::ops::ControlFlow::Continue(())
    };
    store.read_log(BatchNumber(1), &mut visit).expect("readable");
    assert_eq!(closed, [50, 70, 70, 70, 80, 80]);
}

struct Count(AtomicUsize);
impl Wake for Count {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_thread_serves_waiters_at_once_and_the_others_within_the_delay() {
    let limits = LogLimits { asynchronous_delay: Duration::from_millis(50), ..LogLimits::default() };
    let Setup { store, log, mut writer, .. } = setup(limits);
    store.set_faults(Faults { sync_delay: Duration::from_millis(1), ..Faults::default() });
    let subscriber = Arc::new(Count(AtomicUsize::new(0)));
    log.subscribe(Arc::clone(&subscriber) as Arc<dyn Wake>);
    let global = AtomicU64::new(1);
    let stop = AtomicBool::new(false);
    let buffer = log.new_buffer();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Only this thread commits, and not while the epoch advances under it.
            writer.run(&|| Epoch(global.fetch_add(1, Ordering::SeqCst)), &stop);
        });
        let started = Instant::now();
        let epoch = global.load(Ordering::SeqCst);
        commit(&buffer, epoch, 1, b"waited for");
        log.want(Epoch(epoch));
        while !log.is_durable(Epoch(epoch)) {
            std::thread::yield_now();
        }
        assert!(subscriber.0.load(Ordering::Relaxed) <= 2);
        let epoch = global.load(Ordering::SeqCst);
        commit(&buffer, epoch, 2, b"asynchronous");
        while !log.is_durable(Epoch(epoch)) {
            assert!(started.elapsed() < Duration::from_secs(120));
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Release);
        log.nudge();
    });
    assert_eq!(recovered_keys(&store.crash(Survivors::Synced)).len(), 2);
}

#[test]
fn large_commits_share_the_space_there_is_and_none_takes_more_than_half() {
    let Setup { log, .. } = setup(LogLimits::default());
    *log.space.lock() = Some(Space { free_bytes: 1_000, room_bytes: 900 });
    assert_eq!(log.admits_parts(501), Err(LogRefusal::TooLarge));
    assert_eq!(log.admits_parts(500), Ok(()));
    // The first is still being cut.
    assert_eq!(log.admits_parts(401), Err(LogRefusal::DiskFull));
    assert_eq!(log.admits_parts(400), Ok(()));
    log.keep_promise(500);
    assert_eq!(log.admits_parts(501), Err(LogRefusal::DiskFull));
    assert_eq!(log.admits_parts(500), Ok(()), "whatever others have, it is half");
    log.keep_promise(900);
    assert_eq!(log.admits_parts(901), Err(LogRefusal::DiskFull));
}
