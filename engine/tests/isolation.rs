//! REPEATABLE READ and SERIALIZABLE: snapshots of transactions, conflicts, validation.

mod common;

use std::ops::{Bound, ControlFlow};

use archipel_engine::cell::Cell;
use archipel_engine::id::GroupId;
use archipel_engine::{
    DdlOp, Direction, Engine, Inserted, Interactive, Isolation, KeyRange, LockMode, LockWait,
    REFERENCE_GROUP, Stop, SubmitOptions,
};
use common::*;

fn bank() -> Engine {
    let (engine, _store) = stepped();
    ddl(&engine, DdlOp::CreateTable(accounts_table(true))).expect("the table is made");
    run(
        &engine,
        |_, claims| claims.add_group(GroupId(ACCOUNTS.0)),
        |txn| {
            for id in 0..20 {
                assert_eq!(insert_account(txn, id, &format!("owner {id}"), 100 + id)?, Inserted::Ok);
            }
            Ok(())
        },
    )
    .0
    .expect("the accounts are opened");
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(10)]).wait().outcome.result.expect("it splits");
    engine
}

fn begin(engine: &Engine, isolation: Isolation) -> Interactive {
    let transaction = engine.begin_at(isolation, false);
    // The first statement takes the snapshot.
    within(engine, &transaction, |_| Ok(())).expect("nothing to do");
    transaction
}

fn commit(engine: &Engine, transaction: &Interactive) -> Result<(), Stop> {
    let result = engine.commit(transaction).wait().outcome.result;
    if result.is_err() {
        engine.rollback(transaction).wait().outcome.result.expect("rolled back");
    }
    result
}

/// Writes an account, and commits; either may tell that the transaction cannot be serialized.
fn write_and_commit(engine: &Engine, transaction: &Interactive, id: i64) -> Result<(), Stop> {
    let written = within(engine, transaction, move |txn| set_balance(txn, id, 1)).map(drop);
    match written {
        Ok(()) => commit(engine, transaction),
        Err(stop) => {
            engine.rollback(transaction).wait().outcome.result.expect("rolled back");
            Err(stop)
        }
    }
}

fn set(engine: &Engine, id: i64, balance: i64) {
    unpredicted(engine, move |txn| set_balance(txn, id, balance)).0.map(drop).expect("set");
}

fn read(engine: &Engine, id: i64) -> Option<i64> {
    unpredicted(engine, move |txn| balance(txn, id)).0.expect("read")
}

/// Account numbers by balance, through the index.
fn by_balance(txn: &mut archipel_engine::Txn<'_>, direction: Direction) -> Result<Vec<i64>, Stop> {
    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    let index = table.index(BY_BALANCE).ok_or(Stop::Recompile)?.def.clone();
    let mut keys = Vec::new();
    txn.scan_index(&table, &index, KeyRange::ALL, direction, &mut |_, key| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    let mut ids = Vec::new();
    for key in keys {
        let row = txn.get(&table, &key)?.expect("an entry has its row");
        ids.push(int8(&table, row, 0));
    }
    Ok(ids)
}

#[test]
fn a_snapshot_holds_for_points_scans_and_indexes_beside_own_writes() {
    let engine = bank();
    let transaction = begin(&engine, Isolation::RepeatableRead);
    let all = |txn: &mut archipel_engine::Txn<'_>| {
        let up = all_accounts(txn, Direction::Ascending)?;
        let mut down = all_accounts(txn, Direction::Descending)?;
        down.reverse();
        assert_eq!(up, down);
        let mut index = by_balance(txn, Direction::Descending)?;
        index.reverse();
        assert_eq!(index, by_balance(txn, Direction::Ascending)?);
        assert_eq!(index.len(), up.len());
        Ok((up, index))
    };
    let before = within(&engine, &transaction, all).expect("read");
    set(&engine, 3, 1_000);
    unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert!(txn.delete(&table, &account_key(5))?);
        assert!(txn.delete(&table, &account_key(19))?);
        assert_eq!(insert_account(txn, 99, "late", 1)?, Inserted::Ok);
        insert_account(txn, -1, "early", 1)
    })
    .0
    .map(drop)
    .expect("written");
    engine
        .pre_split(GroupId(ACCOUNTS.0), vec![account_key(3), account_key(5)])
        .wait()
        .outcome
        .result
        .expect("split");
    assert_eq!(within(&engine, &transaction, all).expect("read"), before);
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 3)), Ok(Some(103)));
    assert_eq!(within(&engine, &transaction, |txn| account_of(txn, "late")), Ok(None));
    assert!(within(&engine, &transaction, |txn| account_of(txn, "owner 5")).expect("read").is_some());
    // Own writes are above the snapshot.
    within(&engine, &transaction, |txn| set_balance(txn, 7, 0)).map(drop).expect("set");
    let mut expected = before.clone();
    expected.0.iter_mut().filter(|row| row.0 == 7).for_each(|row| row.2 = 0);
    expected.1.retain(|id| *id != 7);
    expected.1.insert(0, 7);
    assert_eq!(within(&engine, &transaction, all).expect("read"), expected);
    commit(&engine, &transaction).expect("committed");
    assert_eq!((read(&engine, 3), read(&engine, 7), read(&engine, 5)), (Some(1_000), Some(0), None));
}

#[test]
fn the_first_updater_wins() {
    let engine = bank();
    let delete = |txn: &mut archipel_engine::Txn<'_>| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.delete(&table, &account_key(1)).map(drop)
    };
    let lock = |txn: &mut archipel_engine::Txn<'_>| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.lock_row(&table, &account_key(1), LockMode::Share, LockWait::Wait).map(drop)
    };
    let update = |txn: &mut archipel_engine::Txn<'_>| set_balance(txn, 1, 7).map(drop);
    type Body = fn(&mut archipel_engine::Txn<'_>) -> Result<(), Stop>;
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        for body in [delete as Body, lock as Body, update as Body] {
            let transaction = begin(&engine, isolation);
            set(&engine, 1, 50);
            assert_eq!(within(&engine, &transaction, body), Err(Stop::ConcurrentUpdate));
            // A row nobody touched is free.
            within(&engine, &transaction, |txn| set_balance(txn, 2, 8)).map(drop).expect("set");
            assert!(commit(&engine, &transaction).is_ok());
        }
    }
    let (first, second) =
        (begin(&engine, Isolation::RepeatableRead), begin(&engine, Isolation::RepeatableRead));
    within(&engine, &first, delete).expect("deleted");
    commit(&engine, &first).expect("committed");
    assert_eq!(within(&engine, &second, update), Err(Stop::ConcurrentDelete));
    // READ COMMITTED sees what is there now.
    let third = begin(&engine, Isolation::ReadCommitted);
    assert_eq!(within(&engine, &third, |txn| balance(txn, 1)), Ok(None));
}

#[test]
fn write_skew_fails_under_serializable_only() {
    let engine = bank();
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        let (first, second) = (begin(&engine, isolation), begin(&engine, isolation));
        // Each reads what the other writes.
        within(&engine, &first, |txn| {
            balance(txn, 15)?;
            set_balance(txn, 1, 0)
        })
        .map(drop)
        .expect("set");
        within(&engine, &second, |txn| {
            balance(txn, 1)?;
            set_balance(txn, 15, 0)
        })
        .map(drop)
        .expect("set");
        assert_eq!(commit(&engine, &first), Ok(()));
        let expected = if isolation == Isolation::Serializable { Err(Stop::NotSerializable) } else { Ok(()) };
        assert_eq!(commit(&engine, &second), expected);
    }
}

#[test]
fn serializable_sees_phantoms_and_forgives_neighbours() {
    let engine = bank();
    let count_below = |high: i64| {
        move |txn: &mut archipel_engine::Txn<'_>| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            let (low, high) = (account_key(5), account_key(high));
            let mut count = 0;
            let range = KeyRange { low: Bound::Included(&low), high: Bound::Excluded(&high) };
            txn.scan(&table, range, Direction::Ascending, &mut |_, _| {
                count += 1;
                ControlFlow::Continue(())
            })?;
            Ok(count)
        }
    };
    let insert = |id: i64| {
        unpredicted(&engine, move |txn| insert_account(txn, id, &format!("new {id}"), 1))
            .0
            .map(drop)
            .expect("inserted");
    };
    // A range without the new key, and a point beside a changed one.
    let transaction = begin(&engine, Isolation::Serializable);
    assert_eq!(within(&engine, &transaction, count_below(12)), Ok(7));
    within(&engine, &transaction, |txn| balance(txn, 17)).expect("read");
    insert(50);
    set(&engine, 18, 1);
    set(&engine, 12, 1);
    assert_eq!(write_and_commit(&engine, &transaction, 0), Ok(()));
    // A phantom in a range over two partitions.
    let transaction = begin(&engine, Isolation::Serializable);
    assert_eq!(within(&engine, &transaction, count_below(60)), Ok(16));
    insert(51);
    assert_eq!(write_and_commit(&engine, &transaction, 0), Err(Stop::NotSerializable));
    // An absent key that was asked for.
    let transaction = begin(&engine, Isolation::Serializable);
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 70)), Ok(None));
    insert(70);
    assert_eq!(write_and_commit(&engine, &transaction, 0), Err(Stop::NotSerializable));
    // Through a unique index.
    let transaction = begin(&engine, Isolation::Serializable);
    assert_eq!(within(&engine, &transaction, |txn| account_of(txn, "new 71")), Ok(None));
    insert(71);
    assert_eq!(write_and_commit(&engine, &transaction, 0), Err(Stop::NotSerializable));
    // Who wrote nothing stands at its snapshot.
    let transaction = begin(&engine, Isolation::Serializable);
    assert_eq!(within(&engine, &transaction, count_below(60)), Ok(17));
    insert(52);
    assert_eq!(commit(&engine, &transaction), Ok(()));
    // A read of a statement that failed counts, too: its client has learnt from it.
    let transaction = begin(&engine, Isolation::Serializable);
    let failed = within(&engine, &transaction, |txn| {
        balance(txn, 3)?;
        Err::<(), _>(Stop::Abort)
    });
    assert_eq!(failed, Err(Stop::Abort));
    set(&engine, 3, 1);
    assert_eq!(write_and_commit(&engine, &transaction, 0), Err(Stop::NotSerializable));
}

#[test]
fn unique_keys_are_judged_by_what_is_committed() {
    let engine = bank();
    let transaction = begin(&engine, Isolation::RepeatableRead);
    unpredicted(&engine, |txn| insert_account(txn, 40, "forty", 1)).0.map(drop).expect("inserted");
    unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.delete(&table, &account_key(4))
    })
    .0
    .expect("deleted");
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 40)), Ok(None));
    let inserted = within(&engine, &transaction, |txn| insert_account(txn, 40, "other", 1));
    assert_eq!(inserted, Ok(Inserted::DuplicateKey(None)));
    let inserted = within(&engine, &transaction, |txn| insert_account(txn, 41, "forty", 1));
    assert_eq!(inserted, Ok(Inserted::DuplicateKey(Some(BY_OWNER))));
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 4)), Ok(Some(104)));
    let inserted = within(&engine, &transaction, |txn| insert_account(txn, 4, "owner 4", 1));
    assert_eq!(inserted, Ok(Inserted::Ok), "the old one is gone");
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 4)), Ok(Some(1)));
    let newest = within(&engine, &transaction, |txn| {
        txn.read_newest_from_now(true);
        balance(txn, 40)
    });
    assert_eq!(newest, Ok(Some(1)));
    commit(&engine, &transaction).expect("committed");
    assert_eq!(read(&engine, 4), Some(1));
}

#[test]
fn a_key_that_was_seen_free_and_is_taken_is_no_duplicate_but_a_conflict() {
    let engine = bank();
    let insert =
        |id: i64| move |txn: &mut archipel_engine::Txn<'_>| insert_account(txn, id, &format!("n{id}"), 1);
    for (id, reads, expected) in
        [(30, false, Ok(Inserted::DuplicateKey(None))), (31, true, Err(Stop::NotSerializable))]
    {
        let transaction = begin(&engine, Isolation::Serializable);
        if reads {
            assert_eq!(within(&engine, &transaction, move |txn| balance(txn, id)), Ok(None));
        }
        unpredicted(&engine, insert(id)).0.map(drop).expect("inserted");
        assert_eq!(within(&engine, &transaction, insert(id)), expected);
    }
}

#[test]
fn a_key_share_lock_forgives_changes_of_other_columns() {
    let engine = bank();
    let lock = |mode| {
        move |txn: &mut archipel_engine::Txn<'_>| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            txn.lock_row(&table, &account_key(1), mode, LockWait::Wait)
        }
    };
    let transaction = begin(&engine, Isolation::RepeatableRead);
    set(&engine, 1, 7);
    assert_eq!(within(&engine, &transaction, lock(LockMode::KeyShare)), Ok(true));
    assert_eq!(within(&engine, &transaction, lock(LockMode::Share)), Err(Stop::ConcurrentUpdate));
    drop(transaction);
    let transaction = begin(&engine, Isolation::RepeatableRead);
    unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.update(&table, &account_key(1), &[(1, Cell::Bytes(b"another"))])
    })
    .0
    .map(drop)
    .expect("renamed");
    assert_eq!(within(&engine, &transaction, lock(LockMode::KeyShare)), Err(Stop::ConcurrentUpdate));
}

#[test]
fn an_update_that_keeps_a_unique_key_leaves_the_key_to_others() {
    let engine = bank();
    let update = |owner: &'static [u8]| {
        move |txn: &mut archipel_engine::Txn<'_>| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            txn.update(&table, &account_key(1), &[(1, Cell::Bytes(owner))]).map(drop)
        }
    };
    let share = |txn: &mut archipel_engine::Txn<'_>| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.lock_row(&table, &account_key(1), LockMode::KeyShare, LockWait::NoWait)
    };
    let (writer, reader) = (engine.begin(), engine.begin());
    within(&engine, &writer, update(b"owner 1")).expect("updated");
    assert_eq!(within(&engine, &reader, share), Ok(true));
    drop(writer);
    let writer = engine.begin();
    drop(reader);
    within(&engine, &writer, update(b"somebody")).expect("updated");
    let reader = engine.begin();
    assert_eq!(within(&engine, &reader, share), Err(Stop::LockNotAvailable));
}

#[test]
fn reference_tables_belong_to_the_snapshot() {
    let engine = bank();
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    let put = |id: i32, price: i64| {
        run(
            &engine,
            |_, claims| claims.add_group(REFERENCE_GROUP),
            move |txn| {
                let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
                let _ = txn.delete(&table, &item_key(id))?;
                let row = table.layout.encode_row(&[Cell::Int4(id), Cell::Int8(price)]);
                txn.insert(&table, &item_key(id), &row)
            },
        )
        .0
        .map(drop)
        .expect("put");
    };
    put(1, 10);
    put(2, 20);
    let price = |txn: &mut archipel_engine::Txn<'_>| {
        let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
        Ok(txn.get(&table, &item_key(1))?.map(|row| int8(&table, row, 1)))
    };
    let change = |txn: &mut archipel_engine::Txn<'_>| {
        let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
        txn.update(&table, &item_key(1), &[(1, Cell::Int8(11))]).map(drop)
    };
    let transaction = begin(&engine, Isolation::Serializable);
    assert_eq!(within(&engine, &transaction, price), Ok(Some(10)));
    put(2, 21);
    assert_eq!(within(&engine, &transaction, price), Ok(Some(10)));
    assert_eq!(write_and_commit(&engine, &transaction, 0), Ok(()), "the row it read is as it was");
    let transaction = begin(&engine, Isolation::Serializable);
    within(&engine, &transaction, price).expect("read");
    put(1, 12);
    assert_eq!(within(&engine, &transaction, price), Ok(Some(10)));
    assert_eq!(within(&engine, &transaction, change), Err(Stop::ConcurrentUpdate));
    assert_eq!(write_and_commit(&engine, &transaction, 0), Err(Stop::NotSerializable));
}

#[test]
fn savepoints_keep_the_snapshot_and_what_was_read() {
    let engine = bank();
    let transaction = begin(&engine, Isolation::Serializable);
    let savepoint = transaction.savepoint();
    within(&engine, &transaction, |txn| {
        balance(txn, 9)?;
        set_balance(txn, 1, 1)
    })
    .map(drop)
    .expect("set");
    engine.rollback_to(&transaction, savepoint).wait().outcome.result.expect("taken back");
    set(&engine, 9, 1);
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 9)), Ok(Some(109)));
    assert_eq!(write_and_commit(&engine, &transaction, 2), Err(Stop::NotSerializable));
}

#[test]
fn a_table_made_anew_cannot_be_read_at_an_older_snapshot() {
    let engine = bank();
    let transaction = begin(&engine, Isolation::RepeatableRead);
    ddl(&engine, DdlOp::Truncate(ACCOUNTS)).expect("emptied");
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 3)), Err(Stop::ConcurrentUpdate));
    let later = begin(&engine, Isolation::RepeatableRead);
    assert_eq!(within(&engine, &later, |txn| balance(txn, 3)), Ok(None));
}

#[test]
fn a_statement_that_waited_sees_one_row_anew_and_the_rest_as_it_was() {
    let engine = bank();
    let (blocker, waiter) = (engine.begin(), engine.begin());
    within(&engine, &blocker, |txn| set_balance(txn, 3, 1)).map(drop).expect("set");
    let mut program = script(
        |_, _| {},
        |txn| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            let elsewhere = balance(txn, 15)?;
            let all = all_accounts(txn, Direction::Ascending)?.len();
            let before = match txn.is_newer(&table, &account_key(3)) {
                true => txn.get_newer(&table, &account_key(3))?.map(|row| int8(&table, row, 2)),
                false => balance(txn, 3)?,
            };
            let written = set_balance(txn, 3, before.unwrap_or_default() + 7)?;
            assert!(matches!(written, archipel_engine::Inserted::Ok));
            let left = txn.leave_view(true);
            let now = balance(txn, 15)?;
            txn.leave_view(left);
            Ok((elsewhere, all, before, now))
        },
    );
    program.is_statement = true;
    let options = SubmitOptions { transaction: Some(&waiter), ..SubmitOptions::default() };
    let mut waiting = engine.submit(program, options);
    assert!(waiting.try_take().is_none());
    set(&engine, 15, 1_000);
    unpredicted(&engine, |txn| insert_account(txn, 40, "late", 1)).0.map(drop).expect("inserted");
    commit(&engine, &blocker).expect("committed");
    let (seen, _) = finish(waiting.wait());
    assert_eq!(seen, Ok((Some(115), 20, Some(1), Some(1_000))));
    assert!(engine.snapshots().is_empty(), "its view ends with it");
    commit(&engine, &waiter).expect("committed");
    assert_eq!(read(&engine, 3), Some(8));
}
