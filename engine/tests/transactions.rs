//! One-shot transactions: reads, writes, indexes, undo, claims, DDL, recovery.

mod common;

use std::ops::{Bound, ControlFlow};

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{Epoch, GroupId, SequenceId};
use archipel_engine::log::memory::Survivors;
use archipel_engine::schema::IndexDef;
use archipel_engine::{
    ColumnSource, DdlOp, Direction, Inserted, KeyRange, NextValue, OwnedCell, REFERENCE_GROUP, SequenceDef,
    Stop, SubmitOptions,
};
use common::*;

#[test]
fn an_aborted_program_leaves_nothing_behind() {
    let (engine, _store) = stepped();
    open_bank(&engine, 4);
    let (result, _) = unpredicted(&engine, |txn| {
        assert_eq!(insert_account(txn, 9, "new", 5)?, Inserted::Ok);
        set_balance(txn, 1, 0).map(drop)?;
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert!(txn.delete(&table, &account_key(2))?);
        Err::<(), _>(Stop::Abort)
    });
    assert_eq!(result, Err(Stop::Abort));
    let (rows, _) = unpredicted(&engine, |txn| all_accounts(txn, Direction::Ascending));
    let rows = rows.expect("the scan runs");
    assert_eq!(
        rows.iter().map(|row| (row.0, row.2)).collect::<Vec<_>>(),
        [(0, 100), (1, 100), (2, 100), (3, 100)]
    );
    let (found, _) = unpredicted(&engine, |txn| Ok((account_of(txn, "new")?, account_of(txn, "owner 2")?)));
    assert_eq!(found, Ok((None, Some(account_key(2).to_vec()))));
}

#[test]
fn a_savepoint_takes_back_what_followed_it() {
    let (engine, _store) = stepped();
    open_bank(&engine, 2);
    let (result, _) = unpredicted(&engine, |txn| {
        set_balance(txn, 0, 1).map(drop)?;
        let savepoint = txn.savepoint();
        set_balance(txn, 0, 2).map(drop)?;
        set_balance(txn, 1, 2).map(drop)?;
        assert_eq!(insert_account(txn, 7, "seven", 7)?, Inserted::Ok);
        txn.rollback_to(savepoint);
        Ok((balance(txn, 0)?, balance(txn, 1)?, balance(txn, 7)?))
    });
    assert_eq!(result, Ok((Some(1), Some(100), None)));
}

#[test]
fn unique_indexes_refuse_duplicates_and_follow_updates() {
    let (engine, _store) = stepped();
    open_bank(&engine, 2);
    let (result, _) = unpredicted(&engine, |txn| {
        assert_eq!(insert_account(txn, 0, "other", 0)?, Inserted::DuplicateKey(None));
        assert_eq!(insert_account(txn, 5, "owner 1", 0)?, Inserted::DuplicateKey(Some(BY_OWNER)));
        assert_eq!(balance(txn, 5)?, None, "the refused row is gone");
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        let rename = |owner: &'static str| [(1, Cell::Bytes(owner.as_bytes()))];
        assert_eq!(
            txn.update(&table, &account_key(0), &rename("owner 1"))?,
            Inserted::DuplicateKey(Some(BY_OWNER))
        );
        assert_eq!(account_of(txn, "owner 0")?, Some(account_key(0).to_vec()));
        assert_eq!(txn.update(&table, &account_key(0), &rename("fresh"))?, Inserted::Ok);
        assert_eq!(account_of(txn, "owner 0")?, None);
        assert_eq!(account_of(txn, "fresh")?, Some(account_key(0).to_vec()));
        assert_eq!(txn.update(&table, &account_key(77), &rename("nobody"))?, Inserted::Missing);
        assert!(txn.delete(&table, &account_key(0))?);
        assert_eq!(account_of(txn, "fresh")?, None);
        Ok(())
    });
    assert_eq!(result, Ok(()));
}

#[test]
fn scans_cross_partitions_in_both_directions() {
    let (engine, _store) = stepped();
    open_bank(&engine, 50);
    let split =
        engine.pre_split(GroupId(ACCOUNTS.0), (1..5).map(|part| account_key(part * 10)).collect()).wait();
    assert_eq!(split.program.added, 4);
    for direction in [Direction::Ascending, Direction::Descending] {
        let (rows, outcome) = unpredicted(&engine, move |txn| all_accounts(txn, direction));
        let mut ids: Vec<i64> = rows.expect("the scan runs").iter().map(|row| row.0).collect();
        if direction == Direction::Descending {
            ids.reverse();
        }
        assert_eq!(ids, (0..50).collect::<Vec<_>>());
        assert_eq!(outcome.partitions, 5);
    }
    let (ids, outcome) = unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        let (low, high) = (account_key(8), account_key(12));
        let mut ids = Vec::new();
        let range = KeyRange { low: Bound::Excluded(&low), high: Bound::Included(&high) };
        txn.scan(&table, range, Direction::Descending, &mut |_, row| {
            ids.push(int8(&table, row, 0));
            ControlFlow::Continue(())
        })?;
        Ok(ids)
    });
    assert_eq!(ids, Ok(vec![12, 11, 10, 9]));
    assert_eq!(outcome.partitions, 2);
}

#[test]
fn a_wrong_prediction_is_never_answered_from_what_happens_to_be_there() {
    let (engine, _store) = stepped();
    open_bank(&engine, 20);
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(10)]).wait().outcome.result.expect("it splits");
    // Predicts the lower partition, reads from the upper one.
    let (found, outcome) = run(
        &engine,
        |_, claims| claims.add_point(GroupId(ACCOUNTS.0), &account_key(0)),
        |txn| balance(txn, 15),
    );
    assert_eq!(found, Ok(Some(100)));
    assert_eq!(outcome.partitions, 2);
}

#[test]
fn work_on_a_held_partition_waits_and_work_on_others_goes_on() {
    let (engine, _store) = stepped();
    open_bank(&engine, 20);
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(10)]).wait().outcome.result.expect("it splits");
    let inner = engine.clone();
    let (result, _) = run(
        &engine,
        |_, claims| claims.add_point(GroupId(ACCOUNTS.0), &account_key(0)),
        move |_| {
            // Submitted while this transaction holds the lower partition.
            let read = |id| {
                script(
                    move |_, claims| claims.add_point(GroupId(ACCOUNTS.0), &account_key(id)),
                    move |txn| balance(txn, id),
                )
            };
            let mut upper = inner.submit(read(15), SubmitOptions::default());
            let done = upper.try_take().expect("the other partition is free");
            assert_eq!(done.program.value, Some(Some(100)));
            let mut lower = inner.submit(read(5), SubmitOptions::default());
            assert!(lower.try_take().is_none());
            Ok(lower)
        },
    );
    let waited = result.expect("the holder finishes").wait();
    assert_eq!(waited.program.value, Some(Some(100)));
    assert!(!waited.outcome.inline);
}

#[test]
fn committed_rows_survive_a_crash_and_uncommitted_ones_do_not() {
    let (engine, store) = stepped();
    open_bank(&engine, 3);
    engine.step_log().expect("the log is written");
    let (result, outcome) = unpredicted(&engine, |txn| transfer(txn, 0, 1, 30));
    assert_eq!(result, Ok(()));
    assert!(!engine.is_durable(outcome.depends_on));
    let before = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(unpredicted(&before, |txn| balance(txn, 0)).0, Ok(Some(100)), "not yet durable");
    engine.step_log().expect("the log is written");
    assert!(engine.is_durable(outcome.depends_on));
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    let read =
        unpredicted(&after, |txn| Ok((balance(txn, 0)?, balance(txn, 1)?, account_of(txn, "owner 2")?)));
    assert_eq!(read.0, Ok((Some(70), Some(130), Some(account_key(2).to_vec()))));
    assert_eq!(read.1.depends_on, Epoch(0), "recovered rows are durable");
}

#[test]
fn a_reader_depends_on_the_epoch_of_what_it_saw() {
    let (engine, _store) = stepped();
    open_bank(&engine, 3);
    engine.step_log().expect("the log is written");
    let (_, written) = unpredicted(&engine, |txn| set_balance(txn, 1, 5));
    let (_, read) = unpredicted(&engine, |txn| balance(txn, 1));
    assert_eq!(read.depends_on, written.depends_on);
    let (_, absent) = unpredicted(&engine, |txn| balance(txn, 2_000));
    assert_eq!(absent.depends_on, written.depends_on, "an absence depends on its leaf");
    engine.step_log().expect("the log is written");
    let (_, later) = unpredicted(&engine, |txn| balance(txn, 1));
    assert!(engine.is_durable(later.depends_on));
}

#[test]
fn a_checkpoint_and_the_log_after_it_recover_together() {
    let (engine, store) = stepped();
    open_bank(&engine, 30);
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    set_item(&engine, 1, 10);
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(10)]).wait().outcome.result.expect("it splits");
    engine.step_log().expect("written");
    engine.checkpoint().expect("taken");
    unpredicted(&engine, |txn| transfer(txn, 3, 25, 40)).0.expect("moved");
    unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.delete(&table, &account_key(7))
    })
    .0
    .expect("deleted");
    set_item(&engine, 2, 20);
    engine.step_log().expect("written");
    for _ in 0..2 {
        let after = reopen_stepped(&store.crash(Survivors::Synced));
        let rows = unpredicted(&after, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
        assert_eq!(rows.len(), 29);
        assert_eq!(rows.iter().map(|row| row.2).sum::<i64>(), 2_900);
        assert_eq!(
            unpredicted(&after, |txn| Ok((balance(txn, 3)?, balance(txn, 25)?))).0,
            Ok((Some(60), Some(140)))
        );
        assert_eq!((item(&after, 1), item(&after, 2)), (Some(10), Some(20)));
        assert_eq!(after.routing().routes(GroupId(ACCOUNTS.0)).len(), 2);
        // The second round recovers from a second checkpoint.
        engine.checkpoint().expect("taken");
    }
}

#[test]
fn what_was_deleted_and_written_again_before_a_crash_outlives_the_next_checkpoint() {
    let (engine, store) = stepped();
    open_bank(&engine, 3);
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    set_item(&engine, 1, 10);
    let gone = unpredicted(&engine, |txn| {
        let (accounts, items) = (txn.table(ACCOUNTS), txn.table(ITEMS));
        let (accounts, items) = accounts.zip(items).ok_or(Stop::Recompile)?;
        Ok((txn.delete(&accounts, &account_key(1))?, txn.delete(&items, &item_key(1))?))
    });
    assert_eq!(gone.0, Ok((true, true)));
    let put = unpredicted(&engine, |txn| insert_account(txn, 1, "again", 5));
    assert_eq!(put.0, Ok(Inserted::Ok));
    set_item(&engine, 1, 20);
    engine.step_log().expect("written");
    // Nothing commits before the checkpoint, which cuts the log with the deletes: the rows it wrote are
    // newer than these.
    let mut store = store.crash(Survivors::Synced);
    for _ in 0..3 {
        let after = reopen_stepped(&store);
        assert_eq!((unpredicted(&after, |txn| balance(txn, 1)).0, item(&after, 1)), (Ok(Some(5)), Some(20)));
        after.checkpoint().expect("taken");
        store = store.crash(Survivors::Synced);
    }
}

#[test]
fn what_one_transaction_deletes_and_writes_again_outlives_a_checkpoint() {
    let (engine, store) = stepped();
    open_bank(&engine, 3);
    let again = unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert!(txn.delete(&table, &account_key(1))?);
        insert_account(txn, 1, "again", 5)
    });
    assert_eq!(again.0, Ok(Inserted::Ok));
    engine.step_log().expect("written");
    engine.checkpoint().expect("taken");
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    let read =
        unpredicted(&after, |txn| Ok((balance(txn, 1)?, all_accounts(txn, Direction::Ascending)?.len())));
    assert_eq!(read.0, Ok((Some(5), 3)));
}

#[test]
fn a_checkpoint_keeps_the_rows_of_a_table_whose_drop_a_crash_may_take_back() {
    let (engine, store) = stepped();
    open_bank(&engine, 3);
    engine.step_log().expect("written");
    ddl(&engine, DdlOp::DropTable(ACCOUNTS)).expect("dropped");
    engine.checkpoint().expect_err("the drop is not durable");
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(unpredicted(&after, |txn| balance(txn, 1)).0, Ok(Some(100)));
    engine.step_log().expect("written");
    engine.checkpoint().expect("taken");
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    assert!(after.table(ACCOUNTS).is_none());
}

fn set_item(engine: &archipel_engine::Engine, id: i32, price: i64) {
    let (result, _) = run(
        engine,
        |_, claims| claims.add_group(REFERENCE_GROUP),
        move |txn| {
            let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
            let row = table.layout.encode_row(&[Cell::Int4(id), Cell::Int8(price)]);
            if txn.insert(&table, &item_key(id), &row)? != Inserted::Ok {
                assert_eq!(txn.update(&table, &item_key(id), &[(1, Cell::Int8(price))])?, Inserted::Ok);
            }
            Ok(())
        },
    );
    result.expect("the item is set");
}

fn item(engine: &archipel_engine::Engine, id: i32) -> Option<i64> {
    unpredicted(engine, move |txn| {
        let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
        let price = txn.get(&table, &item_key(id))?.map(|row| int8(&table, row, 1));
        Ok(price)
    })
    .0
    .expect("the item is read")
}

#[test]
fn reference_tables_are_read_without_a_claim_and_checked_at_the_commit_point() {
    let (engine, _store) = stepped();
    open_bank(&engine, 2);
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    set_item(&engine, 1, 10);
    let inner = engine.clone();
    let mut runs = 0;
    let (result, outcome) = unpredicted(&engine, move |txn| {
        let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
        let seen = txn.get(&table, &item_key(1))?.map(|row| int8(&table, row, 1));
        runs += 1;
        if runs == 1 {
            // Somebody publishes between the read and the commit point.
            set_item(&inner, 1, 11);
        }
        Ok((seen, runs))
    });
    assert_eq!(result, Ok((Some(11), 2)), "the first run read a version that is no longer current");
    assert_eq!(outcome.partitions, 0);
}

#[test]
fn an_undone_write_of_a_reference_table_is_not_published() {
    let (engine, _store) = stepped();
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    set_item(&engine, 1, 10);
    let (result, _) = run(
        &engine,
        |_, claims| claims.add_group(REFERENCE_GROUP),
        |txn| {
            let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
            assert_eq!(txn.update(&table, &item_key(1), &[(1, Cell::Int8(99))])?, Inserted::Ok);
            let seen = txn.get(&table, &item_key(1))?.map(|row| int8(&table, row, 1));
            assert_eq!(seen, Some(99), "a writer sees its own");
            Err::<(), _>(Stop::Abort)
        },
    );
    assert_eq!(result, Err(Stop::Abort));
    assert_eq!(item(&engine, 1), Some(10));
}

#[test]
fn ddl_is_undone_with_its_program_and_logged_with_its_rows() {
    let (engine, store) = stepped();
    open_bank(&engine, 3);
    let (result, _) = run(
        &engine,
        |_, claims| claims.everything(),
        |txn| {
            let _ = txn.ddl(DdlOp::CreateTable(items_table()))?;
            let _ = txn.ddl(DdlOp::DropTable(ACCOUNTS))?;
            Err::<(), _>(Stop::Abort)
        },
    );
    assert_eq!(result, Err(Stop::Abort));
    assert!(engine.table(ITEMS).is_none());
    assert_eq!(unpredicted(&engine, |txn| balance(txn, 2)).0, Ok(Some(100)));
    ddl(&engine, DdlOp::DropTable(ACCOUNTS)).expect("dropped");
    assert_eq!(unpredicted(&engine, |txn| balance(txn, 2)).0, Err(Stop::Recompile));
    engine.step_log().expect("written");
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    assert!(after.table(ACCOUNTS).is_none());
    assert_eq!(after.tables().len(), 1, "the catalog is there");
}

#[test]
fn programs_compiled_for_an_old_layout_are_told_to_recompile() {
    let (engine, _store) = stepped();
    open_bank(&engine, 3);
    let old = engine.table(ACCOUNTS).expect("there");
    ddl(&engine, DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() }).expect("made");
    let (result, _) = unpredicted(&engine, move |txn| txn.get(&old, &account_key(1)).map(drop));
    assert_eq!(result, Err(Stop::Recompile));
    let (ids, _) = unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        let mut found = 0;
        txn.scan_index(&table, &balance_index_def(), KeyRange::ALL, Direction::Ascending, &mut |_, _| {
            found += 1;
            ControlFlow::Continue(())
        })?;
        Ok(found)
    });
    assert_eq!(ids, Ok(3));
}

#[test]
fn a_unique_index_over_duplicates_is_refused_and_leaves_nothing() {
    let (engine, _store) = stepped();
    open_bank(&engine, 3);
    let mut unique = balance_index_def();
    unique.unique = true;
    assert_eq!(ddl(&engine, DdlOp::CreateIndex { table: ACCOUNTS, index: unique }), Err(Stop::Abort));
    assert_eq!(engine.table(ACCOUNTS).expect("there").indexes.len(), 1);
    assert_eq!(unpredicted(&engine, |txn| balance(txn, 2)).0, Ok(Some(100)));
}

#[test]
fn a_definition_that_fails_after_another_leaves_the_table_as_it_was() {
    let (engine, _store) = stepped();
    open_bank(&engine, 3);
    let mut def = accounts_table(false);
    def.columns.push(ColumnKind::Int4);
    let mut columns: Vec<ColumnSource> = (0..3).map(ColumnSource::Kept).collect();
    columns.push(ColumnSource::Constant(OwnedCell::Int4(42)));
    let index = IndexDef { unique: true, ..balance_index_def() };
    let (result, _) = run(
        &engine,
        |_, claims| claims.everything(),
        move |txn| {
            // The roots are replaced, and then get another version.
            let altered = txn.ddl(DdlOp::AlterTable { def: def.clone(), columns: columns.clone() })?;
            assert_eq!(altered, Inserted::Ok);
            let made = txn.ddl(DdlOp::CreateIndex { table: ACCOUNTS, index: index.clone() })?;
            if made == Inserted::Ok { Ok(()) } else { Err(Stop::Abort) }
        },
    );
    assert_eq!(result, Err(Stop::Abort), "two accounts have the same balance");
    assert_eq!(unpredicted(&engine, |txn| balance(txn, 2)).0, Ok(Some(100)));
    assert_eq!(unpredicted(&engine, |txn| account_of(txn, "owner 2")).0, Ok(Some(account_key(2).to_vec())));
}

#[test]
fn an_altered_table_is_rewritten_with_its_indexes_and_recovers() {
    let (engine, store) = stepped();
    open_bank(&engine, 10);
    let mut def = accounts_table(false);
    def.columns.push(ColumnKind::Int4);
    let columns = vec![
        ColumnSource::Kept(0),
        ColumnSource::Kept(1),
        ColumnSource::Kept(2),
        ColumnSource::Constant(OwnedCell::Int4(42)),
    ];
    ddl(&engine, DdlOp::AlterTable { def, columns }).expect("altered");
    let check = |engine: &archipel_engine::Engine| {
        unpredicted(engine, |txn| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            let row = txn.get(&table, &account_key(4))?.map(|row| table.layout.get(row, 3) == Cell::Int4(42));
            Ok((row, account_of(txn, "owner 4")?))
        })
        .0
    };
    assert_eq!(check(&engine), Ok((Some(true), Some(account_key(4).to_vec()))));
    engine.step_log().expect("written");
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(check(&after), Ok((Some(true), Some(account_key(4).to_vec()))));
}

#[test]
fn a_truncated_table_is_empty_also_after_a_crash() {
    let (engine, store) = stepped();
    open_bank(&engine, 10);
    ddl(&engine, DdlOp::Truncate(ACCOUNTS)).expect("truncated");
    unpredicted(&engine, |txn| insert_account(txn, 3, "again", 1)).0.map(drop).expect("inserted");
    engine.step_log().expect("written");
    for engine in [engine, reopen_stepped(&store.crash(Survivors::Synced))] {
        let rows = unpredicted(&engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
        assert_eq!(rows, [(3, "again".to_owned(), 1)]);
    }
}

#[test]
fn rows_asked_for_ahead_are_no_accesses() {
    let (engine, _store) = stepped();
    open_bank(&engine, 50);
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    let cuts = (1..5).map(|part| account_key(part * 10)).collect();
    assert_eq!(engine.pre_split(GroupId(ACCOUNTS.0), cuts).wait().program.added, 4);
    let (result, outcome) = unpredicted(&engine, |txn| {
        let accounts = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert_eq!(balance(txn, 5)?, Some(100));
        // Rows here and elsewhere, rows that are not there, and more of them than go at once.
        let keys: Vec<_> = (-5..60).map(account_key).collect();
        txn.fetch_ahead(&accounts, &keys);
        assert_eq!(txn.partitions_held(), 1, "nothing was claimed");
        let items = txn.table(ITEMS).ok_or(Stop::Recompile)?;
        txn.fetch_ahead(&items, &[item_key(1)]);
        set_balance(txn, 5, 7).map(drop)?;
        txn.fetch_ahead(&accounts, &keys);
        balance(txn, 5)
    });
    assert_eq!(result, Ok(Some(7)));
    assert_eq!(outcome.partitions, 1);
}

#[test]
fn sequences_never_repeat_after_a_crash_and_hidden_ids_neither() {
    let (engine, store) = stepped();
    let def = SequenceDef { id: SequenceId(5), start: 10, increment: 2, min: 1, max: 200, cycle: false };
    ddl(&engine, DdlOp::CreateSequence(def)).expect("made");
    let next = |engine: &archipel_engine::Engine| {
        unpredicted(engine, |txn| Ok((txn.next_value(SequenceId(5))?, txn.hidden_row_id())))
    };
    assert_eq!(next(&engine).0.map(|pair| pair.0), Ok(NextValue::Value(10)));
    let (second, outcome) = next(&engine);
    let second = second.expect("a value");
    assert_eq!(second.0, NextValue::Value(12));
    engine.step_log().expect("written");
    assert!(engine.is_durable(outcome.depends_on));
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    let (third, _) = next(&after);
    let third = third.expect("a value");
    let NextValue::Value(value) = third.0 else { panic!("not exhausted yet") };
    assert!(value > 12 && third.1 > second.1);
    let (last, _) = unpredicted(&after, |txn| {
        txn.set_value(SequenceId(5), 199, true)?;
        txn.next_value(SequenceId(5))
    });
    assert_eq!(last, Ok(NextValue::Exhausted));
}

#[test]
fn another_increment_acts_on_the_next_value_and_after_a_crash_too() {
    let (engine, store) = stepped();
    let id = SequenceId(5);
    let def = SequenceDef { id, start: 1, increment: 1, min: 1, max: 1_000, cycle: false };
    ddl(&engine, DdlOp::CreateSequence(def)).expect("made");
    let next = |engine: &archipel_engine::Engine| unpredicted(engine, move |txn| txn.next_value(id));
    assert_eq!(next(&engine).0, Ok(NextValue::Value(1)));
    assert_eq!(next(&engine).0, Ok(NextValue::Value(2)));
    let tens = SequenceDef { increment: 10, ..def };
    ddl(&engine, DdlOp::AlterSequence { def: tens, restart: None, from: id }).expect("altered");
    assert_eq!(next(&engine).0, Ok(NextValue::Value(12)));
    let down = SequenceDef { increment: -1, ..def };
    ddl(&engine, DdlOp::AlterSequence { def: down, restart: None, from: id }).expect("altered");
    let (_, outcome) = next(&engine);
    engine.step_log().expect("written");
    assert!(engine.is_durable(outcome.depends_on));
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    // All that the log said may be used is left out: down to the last that there is.
    assert_eq!(after.sequence(id).and_then(|sequence| sequence.last_value()), Some(1));
    assert_eq!(next(&after).0, Ok(NextValue::Exhausted));
    let up = SequenceDef { increment: 3, ..def };
    ddl(&after, DdlOp::AlterSequence { def: up, restart: None, from: id }).expect("altered");
    assert_eq!(next(&after).0, Ok(NextValue::Value(4)));
}

/// Whoever draws holds no claim yet, so that the sequence can be restarted before the row is written.
#[test]
fn a_number_of_a_sequence_that_was_restarted_meanwhile_is_not_written() {
    let (engine, _store) = stepped();
    open_bank(&engine, 2);
    let id = SequenceId(5);
    let def = SequenceDef { id, start: 10, increment: 1, min: 1, max: 200, cycle: false };
    ddl(&engine, DdlOp::CreateSequence(def)).expect("made");
    let inner = engine.clone();
    let mut runs = 0;
    let (written, _) = unpredicted(&engine, move |txn| {
        let NextValue::Value(number) = txn.next_value(id)? else { panic!("not exhausted yet") };
        runs += 1;
        if runs == 1 {
            ddl(&inner, DdlOp::AlterSequence { def, restart: Some(10), from: id })
                .expect("nothing is claimed");
            // Somebody else has the number now.
            let (other, _) = unpredicted(&inner, move |txn| {
                let NextValue::Value(number) = txn.next_value(id)? else { panic!("not exhausted yet") };
                insert_account(txn, number, "other", 0)
            });
            assert_eq!(other, Ok(Inserted::Ok));
        }
        Ok((number, insert_account(txn, number, "drawn", 0)?))
    });
    assert_eq!(written, Ok((11, Inserted::Ok)));
}

#[test]
fn memory_beyond_the_maximum_is_refused_and_the_database_stays_intact() {
    let store = archipel_engine::log::MemoryStore::new();
    let config = archipel_engine::EngineConfig { background: false, max_memory_bytes: 600_000, ..config(1) };
    let engine = archipel_engine::Engine::open(config, std::sync::Arc::new(store)).expect("opens");
    open_bank(&engine, 10);
    let (result, _) = unpredicted(&engine, |txn| {
        for id in 100..20_000 {
            let _ = insert_account(txn, id, &format!("a rather long owner's name {id}"), 0)?;
        }
        Ok(())
    });
    assert_eq!(result, Err(Stop::OutOfMemory));
    let rows = unpredicted(&engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    assert_eq!(rows.len(), 10);
    assert_eq!(unpredicted(&engine, |txn| insert_account(txn, 11, "small", 0)).0, Ok(Inserted::Ok));
}

#[test]
fn a_panicking_program_is_undone() {
    let (engine, _store) = stepped();
    open_bank(&engine, 2);
    let (result, _) = unpredicted(&engine, |txn| {
        set_balance(txn, 0, 1).map(drop)?;
        if txn.partitions_held() > 0 {
            panic!("a bug in a program");
        }
        Ok(())
    });
    assert_eq!(result, Err(Stop::Panicked));
    assert_eq!(unpredicted(&engine, |txn| balance(txn, 0)).0, Ok(Some(100)));
}

/// A group that grows at its end has so many partitions after each thousand rows.
fn partitions_as_rows_come(executors: usize, thousands: i64) -> Vec<usize> {
    let store = archipel_engine::log::MemoryStore::new();
    let config = archipel_engine::EngineConfig { background: false, split_rows: 250, ..config(executors) };
    let engine = archipel_engine::Engine::open(config, std::sync::Arc::new(store)).expect("opens");
    open_bank(&engine, 0);
    let count = |thousand: i64| {
        let all = move |txn: &mut archipel_engine::Txn<'_>| {
            for id in thousand * 1_000..(thousand + 1) * 1_000 {
                assert_eq!(insert_account(txn, id, &format!("owner {id}"), 100)?, Inserted::Ok);
            }
            Ok(())
        };
        unpredicted(&engine, all).0.expect("inserted");
        for _ in 0..8 {
            // Behind the splits that are queued, and those that follow from them.
            let everywhere = run(&engine, |_, claims| claims.add_group(GroupId(ACCOUNTS.0)), |_| Ok(())).0;
            everywhere.expect("all of it is claimed");
        }
        engine.routing().routes(GroupId(ACCOUNTS.0)).len()
    };
    (0..thousands).map(count).collect()
}

#[test]
fn partitions_of_a_group_that_grows_become_larger_instead_of_ever_more() {
    let counts = partitions_as_rows_come(1, 64);
    assert!(counts[15] >= 16, "{counts:?}");
    // Each time that the rows double the same number comes, not twice as many.
    let (first, second) = (counts[31] - counts[15], counts[63] - counts[31]);
    assert!(second <= first + 8 && counts[63] <= 80, "{counts:?}");
    let more = partitions_as_rows_come(3, 64);
    assert!(more[63] > counts[63], "{more:?}: more executors have more of them");
}

#[test]
fn a_growing_partition_splits_by_itself_and_queued_work_finds_its_rows() {
    let store = archipel_engine::log::MemoryStore::new();
    let config = archipel_engine::EngineConfig { background: false, split_rows: 500, ..config(3) };
    let engine = archipel_engine::Engine::open(config, std::sync::Arc::new(store)).expect("opens");
    open_bank(&engine, 0);
    for id in 0..4_000 {
        unpredicted(&engine, move |txn| insert_account(txn, id, &format!("owner {id}"), 100))
            .0
            .map(drop)
            .expect("in");
    }
    let routing = engine.routing();
    let routes = routing.routes(GroupId(ACCOUNTS.0));
    assert!(routes.len() >= 4, "{} partitions", routes.len());
    let homes: std::collections::BTreeSet<_> = routes.iter().map(|route| route.home()).collect();
    assert_eq!(homes.len(), 3, "spread over the executors");
    let rows = unpredicted(&engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    assert_eq!(rows.len(), 4_000);
}
