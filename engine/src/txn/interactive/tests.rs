//! Mistakes that the simulator meets too rarely to find, each planted where it would do harm.

use std::sync::Arc;

use super::ending::Commit;
use super::*;
use crate::engine::EngineConfig;
use crate::log::MemoryStore;
use crate::log::memory::Survivors;
use crate::planted::{self, Bug};
use crate::simulation::common::*;
use crate::submission::Submission;
use crate::txn::WriterOutcome;
use crate::{Engine, Inserted, Start, SubmitOptions};

/// An engine with 30 accounts that ends transactions of more than two changes in slices of two.
fn bank() -> (Engine, MemoryStore) {
    let store = MemoryStore::new();
    let config = EngineConfig { background: false, ended_at_once: 2, slice_changes_max: 2, ..config(1) };
    let engine = Engine::open(config, Arc::new(store.clone())).expect("the engine opens");
    open_bank(&engine, 30);
    (engine, store)
}

/// A transaction that has committed accounts 0 to 9 with a balance of 7, and a new one, 70, with another, and is
/// about to settle the first of them.
fn unsettled(engine: &Engine) -> (Interactive, Submission<Commit>) {
    let transaction = engine.begin();
    within(engine, &transaction, |txn| {
        for id in 0..10 {
            assert_eq!(set_balance(txn, id, 7)?, Inserted::Ok);
        }
        assert_eq!(insert_account(txn, 70, "seventy", 7)?, Inserted::Ok);
        Ok(())
    })
    .expect("written");
    let ending = engine.commit(&transaction);
    while !matches!(transaction.state.writer.outcome(), WriterOutcome::Committed(_)) {
        step(engine);
    }
    (transaction, ending)
}

/// Serves what is ready by now.
fn step(engine: &Engine) {
    let last = script(|_, claims| claims.add_group(crate::REFERENCE_GROUP), |_| Ok(()));
    let options = SubmitOptions { start: Start::Queued, ..SubmitOptions::default() };
    engine.submit(last, options).wait().outcome.result.expect("it does nothing");
}

/// What is there after a crash behind a checkpoint of what is not settled yet.
fn after_checkpoint_and_crash() -> Vec<i64> {
    let (engine, store) = bank();
    let _ending = unsettled(&engine);
    planted::arm();
    engine.step_log().expect("written");
    engine.checkpoint().expect("it ends");
    let reopened = reopen_stepped(&store.crash(Survivors::Synced));
    let found = unpredicted(&reopened, |txn| (0..10).chain([70]).map(|id| balance(txn, id)).collect());
    let found: Vec<Option<i64>> = found.0.expect("read");
    found.into_iter().flatten().collect()
}

#[test]
fn a_checkpoint_writes_what_is_committed_and_not_what_is_beneath() {
    assert_eq!(after_checkpoint_and_crash(), [7; 11]);
    let (found, times) = planted::with(Bug::SliceBeneath, after_checkpoint_and_crash);
    assert!(times > 0 && found != [7; 11], "not found: {found:?}");
}

/// Whether a snapshot sees a committed row that is settled after its neighbours came.
fn sees_between_new_neighbours() -> bool {
    let (engine, _) = bank();
    let (_transaction, ending) = unsettled(&engine);
    planted::arm();
    let snapshot = engine.snapshot();
    unpredicted(&engine, |txn| {
        for id in [68, 69, 71, 72] {
            assert_eq!(insert_account(txn, id, &format!("new {id}"), 1)?, Inserted::Ok);
        }
        Ok(())
    })
    .0
    .expect("written");
    ending.wait().outcome.result.expect("committed");
    let table = engine.table(ACCOUNTS).expect("it is there");
    let page = snapshot.scan(&table, &account_key(60), None, 100).wait();
    page.outcome.result.expect("read");
    let seen: Vec<i64> = page.program.rows.iter().map(|row| int8(&table, row, 0)).collect();
    assert!(seen.is_empty() || seen == [70], "{seen:?}");
    !seen.is_empty()
}

#[test]
fn a_row_that_is_settled_between_new_ones_is_no_new_one() {
    assert!(sees_between_new_neighbours());
    let (sees, times) = planted::with(Bug::RunsOverUnsettled, sees_between_new_neighbours);
    assert!(times > 0 && !sees, "not found");
}
