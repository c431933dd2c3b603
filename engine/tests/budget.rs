//! The budget of memory: what is taken is charged and given back, and what is too much is refused at
//! the write and leaves nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archipel_engine::heap::{self, Counting, STEP_BYTES, charged_bytes};
use archipel_engine::log::MemoryStore;
use archipel_engine::{Direction, Engine, EngineConfig, Inserted, Stop};
use common::*;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

/// What tests run beside each other would charge.
static ALONE: Mutex<()> = Mutex::new(());

/// The other tests wait; without a limit at the end.
struct Alone {
    _turn: MutexGuard<'static, ()>,
}

impl Alone {
    fn new() -> Alone {
        let turn = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // What the test before has dropped may be given back by its threads a little later.
        let mut known = i64::MAX;
        for _ in 0..100 {
            let now = charged_bytes();
            if now >= known {
                break;
            }
            known = now;
            std::thread::sleep(Duration::from_millis(100));
        }
        Alone { _turn: turn }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        heap::set_limit(i64::MAX);
        heap::set_pressed(false);
    }
}

/// What threads have not settled, and what stays for the next transaction.
const UNSETTLED_BYTES: i64 = 8 * STEP_BYTES;

/// Ten kilobytes.
fn owner(id: i64) -> String {
    format!("{id:010000}")
}

fn engine() -> Engine {
    let store = MemoryStore::new();
    let config = EngineConfig { background: true, ..config(1) };
    let engine = Engine::open(config, Arc::new(store)).expect("the engine opens");
    open_bank(&engine, 10);
    engine
}

fn count(engine: &Engine) -> usize {
    unpredicted(engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned").len()
}

/// What is charged beyond `before` once it is less than `bound`, or has had its time to become so: what
/// nobody sees any longer is given back when that is known, by whoever comes by.
fn left_since(before: i64, bound: i64, mut comes_by: impl FnMut()) -> i64 {
    for _ in 0..200 {
        let left = charged_bytes() - before;
        if left < bound {
            return left;
        }
        comes_by();
        std::thread::sleep(Duration::from_millis(50));
    }
    charged_bytes() - before
}

/// Lets so many bytes more be taken than are now.
fn allow(bytes: i64) {
    heap::set_limit(charged_bytes() + bytes);
}

#[test]
fn a_thread_settles_by_steps_and_when_it_ends() {
    let _alone = Alone::new();
    let before = charged_bytes();
    let layout = Layout::array::<u8>(64 << 20).expect("small");
    // SAFETY: the other thread gives it back below, by its layout.
    let taking = std::thread::spawn(move || unsafe { ALLOCATOR.alloc(layout).expose_provenance() });
    let address = taking.join().expect("nothing panics");
    let taken = charged_bytes() - before;
    assert!((taken - (64 << 20)).abs() < UNSETTLED_BYTES, "{taken} bytes are charged");
    let giving = std::thread::spawn(move || {
        // SAFETY: handed out above, given back once.
        unsafe { ALLOCATOR.dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
    });
    giving.join().expect("nothing panics");
    let left = charged_bytes() - before;
    assert!(left.abs() < UNSETTLED_BYTES, "{left} bytes are left");
}

#[test]
fn threads_that_come_and_go_leave_nothing_charged() {
    let _alone = Alone::new();
    let before = charged_bytes();
    // Each takes what another gives back, less than a step.
    for _ in 0..200 {
        let made = std::thread::spawn(|| vec![1u8; 700_000]).join().expect("nothing panics");
        std::thread::spawn(move || drop(made)).join().expect("nothing panics");
    }
    let left = charged_bytes() - before;
    assert!(left.abs() < UNSETTLED_BYTES, "{left} bytes are left");
}

#[test]
fn many_threads_that_hardly_take_anything_leave_nothing_charged_either() {
    let _alone = Alone::new();
    let before = charged_bytes();
    // Each gives back what this one has taken, far less than the first step.
    for _ in 0..2_000 {
        let made = vec![1u8; 20_000];
        let gives = move || {
            heap::settle_at_end();
            drop(made);
        };
        std::thread::spawn(gives).join().expect("nothing panics");
    }
    let left = charged_bytes() - before;
    assert!(left.abs() < UNSETTLED_BYTES, "{left} bytes are left");
}

#[test]
fn rows_beyond_the_budget_are_refused_at_the_write_and_nothing_of_them_is_left() {
    let _alone = Alone::new();
    let engine = engine();
    for round in 0..3 {
        allow(40 << 20);
        let before = charged_bytes();
        let (result, _) = unpredicted(&engine, |txn| {
            (100..20_000).try_for_each(|id| insert_account(txn, id, &owner(id), 0).map(drop))
        });
        assert_eq!(result, Err(Stop::OutOfMemory));
        assert_eq!(count(&engine), 10 + round);
        // What it needed is there for others.
        let id = 50 + round as i64;
        let small = format!("small {id}");
        let (written, _) = unpredicted(&engine, move |txn| insert_account(txn, id, &small, 0));
        assert_eq!(written, Ok(Inserted::Ok));
        let left = left_since(before, 20 << 20, || assert_eq!(count(&engine), 11 + round));
        assert!(left < 20 << 20, "{left} bytes are left");
    }
    allow(40 << 20);
    assert_eq!(unpredicted(&engine, |txn| insert_account(txn, 11, "small", 0)).0, Ok(Inserted::Ok));
}

#[test]
fn a_database_that_has_taken_all_there_is_can_be_read_and_made_smaller() {
    let _alone = Alone::new();
    let engine = engine();
    heap::set_limit(charged_bytes() - UNSETTLED_BYTES);
    assert_eq!(unpredicted(&engine, |txn| insert_account(txn, 11, "one", 0)).0, Err(Stop::OutOfMemory));
    let (changed, _) = unpredicted(&engine, |txn| set_balance(txn, 1, 5));
    assert_eq!(changed, Err(Stop::OutOfMemory));
    assert_eq!(count(&engine), 10);
    let (deleted, _) = unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.delete(&table, &account_key(3))
    });
    assert_eq!(deleted, Ok(true));
    assert_eq!(count(&engine), 9);
}

#[test]
fn images_are_refused_when_their_commit_would_find_no_memory() {
    let _alone = Alone::new();
    let engine = engine();
    allow(40 << 20);
    let transaction = engine.begin();
    let mut fitted = 0;
    let refused = loop {
        let id = 100 + fitted;
        match within(&engine, &transaction, move |txn| insert_account(txn, id, &owner(id), 0)) {
            Ok(_) => fitted += 1,
            Err(stop) => break stop,
        }
    };
    assert_eq!(refused, Stop::OutOfMemory);
    assert!(fitted > 100, "only {fitted} rows fit");
    // What was accepted can be committed.
    engine.commit(&transaction).wait().outcome.result.expect("there is memory for it");
    assert_eq!(count(&engine), 10 + fitted as usize);
}

#[test]
fn a_process_that_is_too_large_takes_no_rows() {
    let _alone = Alone::new();
    let engine = engine();
    heap::set_pressed(true);
    assert_eq!(unpredicted(&engine, |txn| insert_account(txn, 11, "one", 0)).0, Err(Stop::OutOfMemory));
    assert_eq!(count(&engine), 10);
    heap::set_pressed(false);
    assert_eq!(unpredicted(&engine, |txn| insert_account(txn, 11, "one", 0)).0, Ok(Inserted::Ok));
}

#[test]
fn an_engine_that_is_gone_gives_everything_back() {
    let _alone = Alone::new();
    let before = charged_bytes();
    // A thread keeps what it needs to call the engine until it ends.
    let calls = std::thread::spawn(move || {
        let engine = engine();
        let (written, _) = unpredicted(&engine, |txn| {
            (100..2_000).try_for_each(|id| insert_account(txn, id, &owner(id), 0).map(drop))
        });
        assert_eq!(written, Ok(()));
        assert!(charged_bytes() - before > 15 << 20, "rows are charged");
    });
    calls.join().expect("nothing panics");
    let left = left_since(before, UNSETTLED_BYTES, || {});
    assert!(left < UNSETTLED_BYTES, "{left} bytes are left");
}
