//! Snapshots: a consistent past beside writers, splits and reference tables.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_engine::cell::Cell;
use archipel_engine::id::GroupId;
use archipel_engine::log::MemoryStore;
use archipel_engine::{DdlOp, Engine, EngineConfig, Inserted, Isolation, REFERENCE_GROUP, Snapshot, Stop};
use common::*;

fn read_all(engine: &Engine, snapshot: &Snapshot, page: usize) -> BTreeMap<i64, i64> {
    let table = engine.table(ACCOUNTS).expect("there");
    let mut rows = BTreeMap::new();
    let mut low = Vec::new();
    loop {
        let completed = snapshot.scan(&table, &low, None, page).wait();
        completed.outcome.result.expect("the page is read");
        for row in completed.program.rows.iter() {
            let twice = rows.insert(int8(&table, row, 0), int8(&table, row, 2));
            assert!(twice.is_none(), "no row is read twice");
        }
        match completed.program.next {
            Some(next) => low = next.to_vec(),
            None => return rows,
        }
    }
}

#[test]
fn a_snapshot_sees_all_or_nothing_of_every_transaction() {
    let (engine, _store) = stepped();
    open_bank(&engine, 40);
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(20)]).wait().outcome.result.expect("it splits");
    unpredicted(&engine, |txn| transfer(txn, 1, 30, 10)).0.expect("moved");
    let snapshot = engine.snapshot();
    let before = read_all(&engine, &snapshot, 7);
    unpredicted(&engine, |txn| transfer(txn, 1, 30, 10)).0.expect("moved");
    unpredicted(&engine, |txn| transfer(txn, 1, 30, 10)).0.expect("moved");
    unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert!(txn.delete(&table, &account_key(5))?);
        assert_eq!(insert_account(txn, 99, "late", 3)?, Inserted::Ok);
        assert!(txn.delete(&table, &account_key(6))?);
        insert_account(txn, 6, "six again", 1_000)
    })
    .0
    .map(drop)
    .expect("written");
    engine
        .pre_split(GroupId(ACCOUNTS.0), vec![account_key(5), account_key(30)])
        .wait()
        .outcome
        .result
        .expect("split");
    let again = read_all(&engine, &snapshot, 3);
    assert_eq!(before, again);
    assert_eq!((again[&1], again[&30], again[&5], again[&6]), (90, 110, 100, 100));
    assert!(!again.contains_key(&99));
    let later = engine.snapshot();
    let now = read_all(&engine, &later, 100);
    assert_eq!((now[&1], now[&30], now[&6], now[&99]), (70, 130, 1_000, 3));
    assert!(!now.contains_key(&5));
    drop(snapshot);
    assert_eq!(read_all(&engine, &later, 11), now);
}

#[test]
fn a_snapshot_sees_reference_tables_as_they_were() {
    let (engine, _store) = stepped();
    open_bank(&engine, 1);
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    let set = |price: i64| {
        run(
            &engine,
            |_, claims| claims.add_group(REFERENCE_GROUP),
            move |txn| {
                let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
                let _ = txn.delete(&table, &item_key(1))?;
                let row = table.layout.encode_row(&[Cell::Int4(1), Cell::Int8(price)]);
                txn.insert(&table, &item_key(1), &row)
            },
        )
        .0
        .map(drop)
        .expect("set");
    };
    set(10);
    let first = engine.snapshot();
    set(11);
    let second = engine.snapshot();
    set(12);
    let table = engine.table(ITEMS).expect("there");
    let seen = |snapshot: &Snapshot| {
        let page = snapshot.scan(&table, &[], None, 10).wait();
        page.program.rows.iter().map(|row| int8(&table, row, 1)).collect::<Vec<_>>()
    };
    assert_eq!((seen(&first), seen(&second)), (vec![10], vec![11]));
    drop(first);
    assert_eq!(seen(&second), [11]);
}

#[test]
fn a_hot_row_costs_one_image_a_snapshot() {
    let (engine, _store) = stepped();
    open_bank(&engine, 10);
    let first = engine.snapshot();
    for _ in 0..5_000 {
        unpredicted(&engine, |txn| transfer(txn, 1, 2, 0)).0.expect("moved");
    }
    unpredicted(&engine, |txn| transfer(txn, 1, 2, 7)).0.expect("moved");
    let second = engine.snapshot();
    for _ in 0..5_000 {
        unpredicted(&engine, |txn| transfer(txn, 1, 2, 0)).0.expect("moved");
    }
    unpredicted(&engine, |txn| transfer(txn, 1, 2, 7)).0.expect("moved");
    // A thread tells of every 256 KiB it keeps; 20,000 images would be megabytes.
    assert_eq!(engine.log().version_bytes, 0);
    assert_eq!(read_all(&engine, &first, 3)[&1], 100);
    assert_eq!(read_all(&engine, &second, 3)[&1], 93);
    assert_eq!(engine.snapshots().len(), 2);
}

#[test]
fn old_rows_are_kept_only_of_the_tables_that_snapshots_read() {
    let (engine, _store) = stepped();
    let accounts = 20_000;
    open_bank(&engine, accounts);
    let table = engine.table(ACCOUNTS).expect("there");
    let set_all = |to: i64| {
        for id in 0..accounts {
            unpredicted(&engine, move |txn| set_balance(txn, id, to)).0.map(drop).expect("set");
        }
    };
    let elsewhere = engine.snapshot();
    elsewhere.narrow(&[]);
    set_all(1);
    assert_eq!(engine.log().version_bytes, 0, "nobody reads them");
    let refused = elsewhere.scan(&table, &[], None, 10).wait();
    assert_eq!(refused.outcome.result, Err(Stop::ConcurrentUpdate));
    let here = engine.snapshot();
    here.narrow(std::slice::from_ref(&table));
    set_all(2);
    assert!(engine.log().version_bytes > 0);
    let seen = read_all(&engine, &here, 1_000);
    assert_eq!(seen.len() as i64, accounts);
    assert!(seen.values().all(|balance| *balance == 1), "as they were");
    drop(here);
    let whole = engine.snapshot();
    set_all(3);
    assert!(read_all(&engine, &whole, 1_000).values().all(|balance| *balance == 2));
}

#[test]
fn old_versions_are_bounded_by_cancelling_the_oldest_snapshot() {
    const ACCOUNTS_COUNT: i64 = 12_000;
    const VERSION_BYTES_MAX: i64 = 1 << 20;
    let config = EngineConfig {
        background: false,
        version_memory_max_bytes: VERSION_BYTES_MAX,
        split_rows: 1_000,
        ..config(2)
    };
    let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("the engine opens");
    open_bank(&engine, ACCOUNTS_COUNT);
    let old = engine.snapshot_for(42);
    assert_eq!(engine.snapshots()[0].holder, 42);
    let table = engine.table(ACCOUNTS).expect("there");
    let transaction = engine.begin_at(Isolation::RepeatableRead, false);
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 5)), Ok(Some(100)));
    for id in 0..ACCOUNTS_COUNT / 2 {
        unpredicted(&engine, move |txn| set_balance(txn, id, 1)).0.map(drop).expect("set");
    }
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 5)), Ok(Some(100)));
    let young = engine.snapshot();
    old.scan(&table, &[], None, 10).wait().outcome.result.expect("there is room yet");
    for id in 0..ACCOUNTS_COUNT {
        unpredicted(&engine, move |txn| set_balance(txn, id, 2)).0.map(drop).expect("set");
    }
    assert!(old.is_cancelled());
    assert_eq!(old.scan(&table, &[], None, 10).wait().outcome.result, Err(Stop::SnapshotTooOld));
    drop(old);
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 5)), Err(Stop::SnapshotTooOld));
    engine.rollback(&transaction).wait().outcome.result.expect("rolled back");
    assert!(engine.log().version_bytes <= VERSION_BYTES_MAX, "{}", engine.log().version_bytes);
    if !young.is_cancelled() {
        let seen = read_all(&engine, &young, 1_000);
        assert!((0..ACCOUNTS_COUNT).all(|id| seen[&id] == if id < ACCOUNTS_COUNT / 2 { 1 } else { 100 }));
    }
    drop(young);
    assert!(engine.snapshots().is_empty());
    // What was not reported when it was kept shows as less than nothing, and nothing is shown.
    assert_eq!(engine.log().version_bytes, 0);
    let last = engine.snapshot();
    assert!(read_all(&engine, &last, 1_000).values().all(|balance| *balance == 2));
}
