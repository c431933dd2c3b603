//! What dropped, undone and rewritten definitions leave behind: nothing that grows.

mod common;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{ExecutorId, GroupId, TreeId};
use archipel_engine::log::memory::Survivors;
use archipel_engine::schema::{IndexDef, Placement, TableDef};
use archipel_engine::{
    ClaimSet, DdlOp, Direction, Engine, Inserted, REFERENCE_GROUP, Repartition, SliceBudget, Stop,
    SubmitOptions,
};
use common::*;

const GROUP: GroupId = GroupId(ACCOUNTS.0);
const FACTS: TreeId = TreeId(300);
/// A thread keeps some of its counts to itself; what is below this is no more than that.
const UNREPORTED_BYTES: i64 = 1 << 20;

/// Makes accounts whose balances are their numbers, but for the last one's, which is that of the
/// one before.
fn fill(engine: &Engine, accounts: i64) {
    let filled = run(
        engine,
        |_, claims| claims.add_group(GROUP),
        move |txn| {
            for id in 0..accounts {
                let balance = id.min(accounts - 2);
                assert_eq!(insert_account(txn, id, &format!("owner {id}"), balance)?, Inserted::Ok);
            }
            Ok(())
        },
    );
    filled.0.expect("filled");
}

fn create(engine: &Engine, balance_index: bool) {
    ddl(engine, DdlOp::CreateTable(accounts_table(balance_index))).expect("made");
}

fn drop_accounts(engine: &Engine) {
    ddl(engine, DdlOp::DropTable(ACCOUNTS)).expect("dropped");
}

fn change(engine: &Engine, change: Repartition) {
    engine.repartition(change, "test").wait().program.result.expect("done");
}

fn split(engine: &Engine, at: i64) {
    change(engine, Repartition::Split { group: GROUP, at: account_key(at) });
}

fn rows(engine: &Engine) -> usize {
    unpredicted(engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned").len()
}

/// A table without indexes, in a group of its own.
fn facts_table() -> TableDef {
    TableDef {
        id: FACTS,
        name: "facts".to_owned(),
        columns: vec![ColumnKind::Int8],
        key: vec![key_column(0)],
        placement: Placement::Distributed { group: GroupId(FACTS.0) },
        indexes: Vec::new(),
    }
}

#[test]
fn a_dropped_table_leaves_shells_that_the_next_one_uses() {
    let (engine, _store) = stepped();
    let (before, _) = engine.partition_counts();
    for round in 0..20 {
        create(&engine, true);
        assert_eq!(engine.partition_counts(), (before + 3, 0), "round {round}");
        fill(&engine, 1_000);
        assert_eq!(rows(&engine), 1_000);
        drop_accounts(&engine);
        assert_eq!(engine.partition_counts(), (before, 3), "round {round}");
        engine.step_log().expect("written");
    }
    assert!(engine.log().memory_used_bytes < UNREPORTED_BYTES, "{}", engine.log().memory_used_bytes);
}

#[test]
fn a_table_in_several_partitions_leaves_all_of_them() {
    let (engine, _store) = stepped();
    let (before, _) = engine.partition_counts();
    for _ in 0..3 {
        create(&engine, false);
        fill(&engine, 40);
        for at in [10, 20, 30] {
            split(&engine, at);
        }
        assert_eq!((engine.partition_counts(), rows(&engine)), ((before + 5, 0), 40));
        drop_accounts(&engine);
        assert_eq!(engine.partition_counts(), (before, 5));
    }
}

#[test]
fn a_split_uses_the_shell_of_a_merge() {
    let (engine, _store) = stepped();
    create(&engine, false);
    fill(&engine, 40);
    split(&engine, 20);
    let (in_use, _) = engine.partition_counts();
    for at in [5, 15, 25, 35] {
        let routing = engine.routing();
        let [left, right] = [0, 1].map(|at| routing.routes(GROUP)[at].partition());
        change(&engine, Repartition::Merge(left, right));
        assert_eq!(engine.partition_counts(), (in_use - 1, 1));
        split(&engine, at);
        assert_eq!((engine.partition_counts(), rows(&engine)), ((in_use, 0), 40));
        assert_eq!(engine.routing().routes(GROUP)[1].low[..], account_key(at)[..]);
    }
}

#[test]
fn a_definition_that_is_undone_leaves_one_shell_and_no_bytes() {
    let (engine, _store) = stepped();
    create(&engine, false);
    fill(&engine, 1_000);
    let (in_use, _) = engine.partition_counts();
    let unique = IndexDef { unique: true, ..balance_index_def() };
    for _ in 0..40 {
        let made = ddl(&engine, DdlOp::CreateIndex { table: ACCOUNTS, index: unique.clone() });
        assert_eq!(made, Err(Stop::Abort), "two balances are equal");
        assert_eq!(engine.partition_counts(), (in_use, 1));
    }
    assert_eq!(rows(&engine), 1_000);
    assert!(engine.log().memory_used_bytes < UNREPORTED_BYTES, "{}", engine.log().memory_used_bytes);
}

#[test]
fn truncated_tables_and_dropped_reference_tables_give_their_bytes_back() {
    let (engine, _store) = stepped();
    create(&engine, true);
    for _ in 0..20 {
        fill(&engine, 1_000);
        ddl(&engine, DdlOp::Truncate(ACCOUNTS)).expect("truncated");
        ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
        let filled = run(
            &engine,
            |_, claims| claims.add_group(REFERENCE_GROUP),
            |txn| {
                let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
                for id in 0..2_000 {
                    let row = table.layout.encode_row(&[Cell::Int4(id), Cell::Int8(1)]);
                    assert_eq!(txn.insert(&table, &item_key(id), &row)?, Inserted::Ok);
                }
                Ok(())
            },
        );
        filled.0.expect("filled");
        ddl(&engine, DdlOp::DropTable(ITEMS)).expect("dropped");
        engine.step_log().expect("written");
    }
    assert!(engine.log().memory_used_bytes < UNREPORTED_BYTES, "{}", engine.log().memory_used_bytes);
}

#[test]
fn a_table_that_was_recovered_gives_back_what_it_counts_for() {
    let (engine, store) = stepped();
    create(&engine, true);
    fill(&engine, 1_900);
    engine.step_log().expect("written");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    let used = again.log().memory_used_bytes;
    assert!(used > 256 << 10, "{used}");
    drop_accounts(&again);
    let left = again.log().memory_used_bytes;
    assert!((0..used / 2).contains(&left), "{left} of {used} bytes are left");
}

#[test]
fn old_versions_of_a_dropped_table_count_no_more() {
    let (engine, _store) = stepped();
    create(&engine, false);
    let accounts = 500;
    let filled = unpredicted(&engine, move |txn| {
        for id in 0..accounts {
            assert_eq!(insert_account(txn, id, &format!("{id:02000}"), 0)?, Inserted::Ok);
        }
        Ok(())
    });
    filled.0.expect("filled");
    let snapshot = engine.snapshot();
    for id in 0..accounts {
        unpredicted(&engine, move |txn| set_balance(txn, id, 1)).0.map(drop).expect("set");
    }
    assert!(engine.log().version_bytes > 512 << 10, "{}", engine.log().version_bytes);
    drop_accounts(&engine);
    assert_eq!(engine.log().version_bytes, 0);
    drop(snapshot);
    assert_eq!(engine.log().version_bytes, 0);
}

/// Who has queued by the old routing table takes a turn at a shell, and finds no table.
#[test]
fn work_that_queued_behind_a_drop_runs_over_a_shell() {
    let (engine, _store) = stepped();
    let (before, _) = engine.partition_counts();
    create(&engine, false);
    fill(&engine, 10);
    let handles: Vec<_> =
        (0..2).map(|id| engine.attach_executor(ExecutorId(id)).expect("nobody drives it")).collect();
    // Not on an executor's thread: everything queues until the executors are drained.
    let dropping = script(
        |_, claims: &mut ClaimSet| claims.everything(),
        |txn| txn.ddl(DdlOp::DropTable(ACCOUNTS)).map(drop),
    );
    let dropping = engine.submit(dropping, SubmitOptions::default());
    let deposits: Vec<_> = (0..10)
        .map(|id| {
            let deposit = script(
                move |_, claims: &mut ClaimSet| claims.add_point(GROUP, &account_key(id)),
                move |txn| set_balance(txn, id, 1),
            );
            engine.submit(deposit, SubmitOptions::default())
        })
        .collect();
    for _ in 0..50 {
        for handle in &handles {
            handle.drain(SliceBudget { actions: 1, micros: 1_000_000 });
        }
    }
    drop(handles);
    assert_eq!(finish(dropping.wait()).0, Ok(()));
    for deposit in deposits {
        assert_eq!(finish(deposit.wait()).0, Err(Stop::Recompile));
    }
    assert_eq!(engine.partition_counts(), (before, 2));
    ddl(&engine, DdlOp::CreateTable(facts_table())).expect("made");
    assert_eq!(engine.partition_counts(), (before + 1, 1), "a shell is used that others waited for");
    let inserted = unpredicted(&engine, |txn| {
        let table = txn.table(FACTS).ok_or(Stop::Recompile)?;
        txn.insert(&table, &account_key(7), &table.layout.encode_row(&[Cell::Int8(7)]))
    });
    assert_eq!(inserted.0, Ok(Inserted::Ok));
}
