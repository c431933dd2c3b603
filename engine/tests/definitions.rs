//! Definitions claim the groups of their tables and no others, and indexes are filled beside everybody.

mod common;

use std::ops::ControlFlow;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{GroupId, SequenceId, TreeId};
use archipel_engine::log::memory::Survivors;
use archipel_engine::schema::{IndexDef, IndexPlacement, Placement, TableDef};
use archipel_engine::storage::KeyBuf;
use archipel_engine::txn::{BuildStep, FillIndex};
use archipel_engine::{
    DdlOp, Direction, Engine, Inserted, KeyRange, NextValue, REFERENCE_GROUP, Repartition, SequenceDef, Stop,
    SubmitOptions, Txn,
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

fn build(engine: &Engine, step: BuildStep) -> Result<(), Stop> {
    define(engine, DdlOp::BuildIndex { table: ACCOUNTS, step })
}

fn declare(engine: &Engine) {
    build(engine, BuildStep::Declare(balance_index_def())).expect("declared");
}

/// One slice of the index on balances.
fn fill_slice(engine: &Engine, from: &KeyBuf, rows_max: usize) -> Result<Option<KeyBuf>, Stop> {
    let table = engine.table(ACCOUNTS).expect("there");
    let index = table.declared().first().ok_or(Stop::Recompile)?;
    let slice = FillIndex::new(&table, index, from.clone(), rows_max);
    let done = engine.submit(slice, SubmitOptions::default()).wait();
    assert_eq!(done.outcome.result == Err(Stop::LockNotAvailable), done.program.refused.is_some());
    done.outcome.result.map(|()| done.program.next)
}

/// The slices to the end; how many there were.
fn fill(engine: &Engine, rows_max: usize, mut between: impl FnMut(usize)) -> Result<usize, Stop> {
    let mut from = KeyBuf::new();
    for slices in 1.. {
        match fill_slice(engine, &from, rows_max)? {
            Some(next) => from = next,
            None => return Ok(slices),
        }
        between(slices);
    }
    unreachable!("there are so many numbers")
}

/// The owners in the order of the index on balances, with those.
fn by_balance(engine: &Engine) -> Vec<(i64, i64)> {
    by_index(engine, BY_BALANCE)
}

/// The same by another index on balances.
fn by_index(engine: &Engine, id: TreeId) -> Vec<(i64, i64)> {
    let found = unpredicted(engine, move |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        let index = table.def.indexes.iter().find(|index| index.id == id).ok_or(Stop::Recompile)?;
        let mut keys = Vec::new();
        txn.scan_index(&table, index, KeyRange::ALL, Direction::Ascending, &mut |_, key| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        let mut rows = Vec::new();
        for key in keys {
            let row = txn.get(&table, &key)?.expect("an entry leads to a row");
            rows.push((int8(&table, row, 2), int8(&table, row, 0)));
        }
        Ok(rows)
    });
    found.0.expect("read")
}

/// The same by the rows.
fn balances(engine: &Engine) -> Vec<(i64, i64)> {
    let rows = unpredicted(engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    let mut rows: Vec<(i64, i64)> = rows.into_iter().map(|(id, _, balance)| (balance, id)).collect();
    rows.sort_unstable();
    rows
}

fn delete_account(txn: &mut Txn<'_>, id: i64) -> Result<bool, Stop> {
    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    txn.delete(&table, &account_key(id))
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

#[test]
fn an_index_is_filled_while_rows_are_read_and_written() {
    let (engine, store) = stepped();
    open_bank(&engine, 100);
    declare(&engine);
    let writer = engine.clone();
    let slices = fill(&engine, 8, |slice| {
        let slice = slice as i64;
        let (done, _) = unpredicted(&writer, move |txn| {
            // Behind the slices and before them: rows that change, go and come.
            for id in [slice, 99 - slice] {
                assert_eq!(set_balance(txn, id, 200 + id)?, Inserted::Ok);
            }
            assert!(delete_account(txn, 20 + slice)? && delete_account(txn, 80 - slice)?);
            let owner = |id| format!("new {id}");
            assert_eq!(insert_account(txn, 1_000 + slice, &owner(slice), slice)?, Inserted::Ok);
            assert_eq!(insert_account(txn, -slice, &owner(-slice), slice)?, Inserted::Ok);
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            assert!(table.def.indexes.iter().all(|index| index.id != BY_BALANCE), "nobody reads it");
            Ok(all_accounts(txn, Direction::Ascending)?.len())
        });
        assert_eq!(done, Ok(100));
    });
    let slices = slices.expect("filled");
    assert!(slices > 10, "{slices} slices");
    let split = Repartition::Split { group: GROUP, at: account_key(50) };
    engine.repartition(split, "test").wait().program.result.expect("split");
    build(&engine, BuildStep::Complete(BY_BALANCE)).expect("complete");
    assert_eq!(by_balance(&engine), balances(&engine));
    assert!(engine.table(ACCOUNTS).expect("there").declared().is_empty());
    engine.step_log().expect("written");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(by_balance(&again), balances(&engine));
}

#[test]
fn a_slice_stops_at_a_row_that_an_open_transaction_may_take_out() {
    let (engine, _store) = stepped();
    open_bank(&engine, 10);
    declare(&engine);
    for commits in [true, false] {
        let transaction = engine.begin();
        let id = if commits { 3 } else { 7 };
        assert_eq!(within(&engine, &transaction, move |txn| delete_account(txn, id)), Ok(true));
        // One that keeps its key is in nobody's way.
        let touched = within(&engine, &transaction, |txn| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            txn.update(&table, &account_key(1), &[(1, Cell::Bytes(b"other"))])
        });
        assert_eq!(touched, Ok(Inserted::Ok));
        let mut from = KeyBuf::new();
        assert_eq!(fill_slice(&engine, &from, 100), Ok(Some(account_key(id))), "up to there");
        from.extend_from_slice(&account_key(id));
        assert_eq!(fill_slice(&engine, &from, 100), Err(Stop::LockNotAvailable));
        if commits {
            engine.commit(&transaction).wait().outcome.result.expect("committed");
        } else {
            engine.rollback(&transaction).wait().outcome.result.expect("rolled back");
        }
        fill_slice(&engine, &from, 100).expect("nobody is in the way");
    }
    build(&engine, BuildStep::Complete(BY_BALANCE)).expect("complete");
    assert_eq!(by_balance(&engine), balances(&engine));
    assert_eq!(by_balance(&engine).len(), 9);
}

#[test]
fn a_unique_index_with_two_rows_of_one_key_is_not_filled() {
    let (engine, _store) = stepped();
    open_bank(&engine, 10);
    let unique = IndexDef { unique: true, ..balance_index_def() };
    build(&engine, BuildStep::Declare(unique)).expect("declared");
    assert_eq!(fill(&engine, 4, |_| {}), Err(Stop::Abort));
    build(&engine, BuildStep::GiveUp(BY_BALANCE)).expect("given up");
    assert!(engine.routes().iter().all(|route| route.group != GroupId(BY_BALANCE.0)));
    let (written, _) = unpredicted(&engine, |txn| set_balance(txn, 3, 7));
    assert_eq!(written, Ok(Inserted::Ok));
}

#[test]
fn an_index_is_given_up_beside_those_who_have_written_to_it() {
    let (engine, _store) = stepped();
    open_bank(&engine, 10);
    declare(&engine);
    let (one, other) = (engine.begin(), engine.begin());
    assert_eq!(within(&engine, &one, |txn| set_balance(txn, 3, 7)), Ok(Inserted::Ok));
    let savepoint = one.savepoint();
    assert_eq!(within(&engine, &one, |txn| set_balance(txn, 4, 8)), Ok(Inserted::Ok));
    assert_eq!(within(&engine, &other, |txn| set_balance(txn, 5, 9)), Ok(Inserted::Ok));
    build(&engine, BuildStep::GiveUp(BY_BALANCE)).expect("given up");
    engine.rollback_to(&one, savepoint).wait().outcome.result.expect("rolled back");
    engine.commit(&one).wait().outcome.result.expect("committed");
    engine.rollback(&other).wait().outcome.result.expect("rolled back");
    let of = |id: i64| balances(&engine).into_iter().find(|(_, of)| *of == id).map(|(balance, _)| balance);
    assert_eq!((of(3), of(4), of(5)), (Some(7), Some(100), Some(100)));
}

#[test]
fn a_start_knows_nothing_of_an_index_that_was_not_complete() {
    let (engine, store) = stepped();
    open_bank(&engine, 10);
    declare(&engine);
    fill(&engine, 4, |_| {}).expect("filled");
    engine.step_log().expect("written");
    for _ in 0..2 {
        let again = reopen_stepped(&store.crash(Survivors::Synced));
        let table = again.table(ACCOUNTS).expect("there");
        assert!(table.index(BY_BALANCE).is_none());
        assert!(again.routes().iter().all(|route| route.group != GroupId(BY_BALANCE.0)));
        assert_eq!(balances(&again).len(), 10);
        // The same number may be drawn again.
        declare(&again);
        fill(&again, 3, |_| {}).expect("filled");
        build(&again, BuildStep::Complete(BY_BALANCE)).expect("complete");
        assert_eq!(by_balance(&again), balances(&again));
    }
}

#[test]
fn an_index_comes_in_the_place_of_another_that_serves_until_then() {
    const BESIDE: TreeId = TreeId(301);
    let (engine, store) = stepped();
    open_bank(&engine, 30);
    declare(&engine);
    fill(&engine, 10, |_| {}).expect("filled");
    build(&engine, BuildStep::Complete(BY_BALANCE)).expect("complete");
    let group = GroupId(BESIDE.0);
    let beside = IndexDef { id: BESIDE, placement: IndexPlacement::Global { group }, ..balance_index_def() };
    build(&engine, BuildStep::Declare(beside)).expect("declared");
    let writer = engine.clone();
    fill(&engine, 8, |slice| {
        let (done, _) = unpredicted(&writer, move |txn| set_balance(txn, slice as i64, 500));
        assert_eq!(done, Ok(Inserted::Ok));
        assert_eq!(by_balance(&writer), balances(&writer));
    })
    .expect("filled");
    let steps = [
        DdlOp::BuildIndex { table: ACCOUNTS, step: BuildStep::Complete(BESIDE) },
        DdlOp::DropIndex { table: ACCOUNTS, index: BY_BALANCE },
    ];
    let exchange = move |txn: &mut Txn<'_>| {
        txn.claim_for(steps.iter(), [])?;
        steps.iter().try_for_each(|step| txn.ddl(step.clone()).map(drop))
    };
    let (done, _) = run(&engine, |_, claims| claims.add_group(REFERENCE_GROUP), exchange);
    assert_eq!(done, Ok(()));
    assert_eq!(by_index(&engine, BESIDE), balances(&engine));
    let (written, _) = unpredicted(&engine, |txn| set_balance(txn, 20, 501));
    assert_eq!(written, Ok(Inserted::Ok));
    let table = engine.table(ACCOUNTS).expect("there");
    assert!(table.index(BY_BALANCE).is_none() && table.declared().is_empty());
    assert!(engine.routes().iter().all(|route| route.group != GroupId(BY_BALANCE.0)));
    engine.step_log().expect("written");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(by_index(&again, BESIDE), balances(&engine));
}

#[test]
fn a_definition_keeps_an_index_that_is_being_filled() {
    let (engine, _store) = stepped();
    open_bank(&engine, 20);
    declare(&engine);
    let half = fill_slice(&engine, &KeyBuf::new(), 10).expect("filled").expect("there is more");
    // Columns change; it knows nothing of the index.
    let mut def = engine.table(ACCOUNTS).expect("there").def.clone();
    def.columns.push(ColumnKind::Int8);
    let mut columns: Vec<archipel_engine::ColumnSource> =
        (0..3).map(archipel_engine::ColumnSource::Kept).collect();
    columns.push(archipel_engine::ColumnSource::Constant(archipel_engine::OwnedCell::Int8(0)));
    define(&engine, DdlOp::AlterTable { def, columns }).expect("altered");
    assert_eq!(fill_slice(&engine, &half, 100), Ok(None));
    build(&engine, BuildStep::Complete(BY_BALANCE)).expect("complete");
    assert_eq!(by_balance(&engine), balances(&engine));
}
