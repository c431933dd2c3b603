//! Snapshots: a consistent past beside writers, splits and reference tables.

mod common;

use std::collections::BTreeMap;

use archipel_engine::cell::Cell;
use archipel_engine::id::GroupId;
use archipel_engine::{DdlOp, Engine, Inserted, REFERENCE_GROUP, Snapshot, Stop};
use common::*;

fn read_all(engine: &Engine, snapshot: &Snapshot, page: usize) -> BTreeMap<i64, i64> {
    let table = engine.table(ACCOUNTS).expect("there");
    let mut rows = BTreeMap::new();
    let mut low = Vec::new();
    loop {
        let completed = snapshot.scan(&table, &low, None, page).wait();
        completed.outcome.result.expect("the page is read");
        for (_, row) in &completed.program.rows {
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
        page.program.rows.iter().map(|(_, row)| int8(&table, row, 1)).collect::<Vec<_>>()
    };
    assert_eq!((seen(&first), seen(&second)), (vec![10], vec![11]));
    drop(first);
    assert_eq!(seen(&second), [11]);
}
