//! Definitions claim the groups of their tables and no others.

mod common;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{GroupId, SequenceId, TreeId};
use archipel_engine::log::memory::Survivors;
use archipel_engine::schema::{IndexDef, Placement, TableDef};
use archipel_engine::{
    DdlOp, Direction, Engine, Inserted, NextValue, REFERENCE_GROUP, Repartition, SequenceDef, Stop,
    SubmitOptions,
};
use common::*;

const GROUP: GroupId = GroupId(ACCOUNTS.0);
const FACTS: TreeId = TreeId(300);

/// A table in a group of its own.
fn facts_table() -> TableDef {
    TableDef {
        id: FACTS,
        name: "facts".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Int8],
        key: vec![key_column(0)],
        placement: Placement::Distributed { group: GroupId(FACTS.0) },
        indexes: Vec::new(),
    }
}

/// Changes a definition with the claim that it needs and no more.
fn define(engine: &Engine, op: DdlOp) -> Result<(), Stop> {
    run(
        engine,
        |_, claims| claims.add_group(REFERENCE_GROUP),
        move |txn| if txn.ddl(op.clone())? == Inserted::Ok { Ok(()) } else { Err(Stop::Abort) },
    )
    .0
}

/// The balances, with whose they are.
fn balances(engine: &Engine) -> Vec<(i64, i64)> {
    let rows = unpredicted(engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    let mut rows: Vec<(i64, i64)> = rows.into_iter().map(|(id, _, balance)| (balance, id)).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn tables_are_defined_while_anothers_partitions_are_held() {
    let (engine, _store) = stepped();
    open_bank(&engine, 10);
    let inner = engine.clone();
    let (held, _) = run(
        &engine,
        |_, claims| claims.add_group(GROUP),
        move |txn| {
            let before = txn.partitions_held();
            define(&inner, DdlOp::CreateTable(facts_table())).expect("made");
            let (written, _) = unpredicted(&inner, |txn| {
                let table = txn.table(FACTS).ok_or(Stop::Recompile)?;
                let row = table.layout.encode_row(&[Cell::Int8(1), Cell::Int8(2)]);
                txn.insert(&table, &account_key(1), &row)
            });
            assert_eq!(written, Ok(Inserted::Ok));
            let index = IndexDef { key: vec![key_column(1)], id: TreeId(301), ..balance_index_def() };
            define(&inner, DdlOp::CreateIndex { table: FACTS, index }).expect("made");
            define(&inner, DdlOp::Truncate(FACTS)).expect("emptied");
            define(&inner, DdlOp::DropTable(FACTS)).expect("dropped");
            Ok((before, balance(txn, 3)?))
        },
    );
    assert_eq!(held, Ok((1, Some(100))));
    assert!(engine.routes().iter().all(|route| route.group != GroupId(FACTS.0)));
}

#[test]
fn partitions_of_other_tables_are_split_beside_a_definition() {
    let (engine, store) = stepped();
    open_bank(&engine, 10);
    let inner = engine.clone();
    let (made, _) = run(
        &engine,
        |_, claims| claims.add_group(REFERENCE_GROUP),
        move |txn| {
            let made = txn.ddl(DdlOp::CreateTable(facts_table()))?;
            let split = Repartition::Split { group: GROUP, at: account_key(5) };
            inner.repartition(split, "test").wait().program.result.expect("split");
            Ok(made)
        },
    );
    assert_eq!(made, Ok(Inserted::Ok));
    let count = |engine: &Engine, group| engine.routes().iter().filter(|route| route.group == group).count();
    assert_eq!((count(&engine, GROUP), count(&engine, GroupId(FACTS.0))), (2, 1));
    assert_eq!(balances(&engine).len(), 10);
    engine.step_log().expect("written");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!((count(&again, GROUP), count(&again, GroupId(FACTS.0))), (2, 1));
    assert_eq!(balances(&again).len(), 10);
}

#[test]
fn a_definition_waits_for_its_own_table() {
    let (engine, _store) = stepped();
    open_bank(&engine, 10);
    let inner = engine.clone();
    let (held, _) = run(
        &engine,
        |_, claims| claims.add_group(GROUP),
        move |txn| {
            let truncate = script(
                |_, claims| claims.add_group(REFERENCE_GROUP),
                |txn| txn.ddl(DdlOp::Truncate(ACCOUNTS)),
            );
            let mut truncating = inner.submit(truncate, SubmitOptions::default());
            assert!(truncating.try_take().is_none(), "somebody holds its rows");
            Ok((balance(txn, 3)?, truncating))
        },
    );
    let (balance, truncating) = held.expect("read");
    assert_eq!(balance, Some(100));
    assert!(truncating.wait().outcome.result.is_ok());
    assert!(balances(&engine).is_empty());
}

#[test]
fn no_number_comes_twice_while_its_sequence_is_altered() {
    const THREADS: i64 = 3;
    let (engine, _store) = stepped();
    let id = SequenceId(5);
    let def = SequenceDef { id, start: 1, increment: 1, min: 1, max: i64::MAX, cycle: false };
    ddl(&engine, DdlOp::CreateSequence(def)).expect("made");
    let mut all: Vec<i64> = std::thread::scope(|scope| {
        let draw = || {
            let numbers = (0..2_000).map(|_| {
                let drawn = unpredicted(&engine, move |txn| txn.next_value(id)).0.expect("drawn");
                let NextValue::Value(number) = drawn else { panic!("exhausted") };
                number
            });
            numbers.collect::<Vec<i64>>()
        };
        let drawing: Vec<_> = (0..THREADS).map(|_| scope.spawn(draw)).collect();
        for increment in (1..=3).cycle().take(300) {
            let def = SequenceDef { increment, ..def };
            define(&engine, DdlOp::AlterSequence { def, restart: None, from: id }).expect("altered");
        }
        drawing.into_iter().flat_map(|thread| thread.join().expect("drawn")).collect()
    });
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "each once");
}
