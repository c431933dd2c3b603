//! BEGIN … COMMIT: uncommitted images, row locks, waits, deadlocks, savepoints.

mod common;

use std::sync::{Arc, Mutex};

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::log::memory::Survivors;
use archipel_engine::schema::{IndexDef, IndexPlacement, Placement, TableDef};
use archipel_engine::txn::{Commit, SettleEarly};
use archipel_engine::{
    ColumnSource, DdlOp, Direction, Engine, EngineConfig, Inserted, Interactive, Interleave, Isolation,
    LockMode, LockWait, OwnedCell, Point, Program, REFERENCE_GROUP, Seams, Stop, Submission, SubmitOptions,
    WaitEdge,
};
use common::*;

fn bank() -> (Engine, archipel_engine::log::MemoryStore) {
    let (engine, store) = stepped();
    open_bank(&engine, 20);
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(10)]).wait().outcome.result.expect("it splits");
    (engine, store)
}

fn commit(engine: &Engine, transaction: archipel_engine::Interactive) {
    engine.commit(&transaction).wait().outcome.result.expect("committed");
}

fn read(engine: &Engine, id: i64) -> Option<i64> {
    unpredicted(engine, move |txn| balance(txn, id)).0.expect("read")
}

#[test]
fn writes_are_seen_inside_and_nowhere_else_until_commit() {
    let (engine, store) = bank();
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| transfer(txn, 1, 15, 30)).expect("moved");
    within(&engine, &transaction, |txn| insert_account(txn, 100, "hundred", 1)).map(drop).expect("inserted");
    within(&engine, &transaction, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.delete(&table, &account_key(2))
    })
    .expect("deleted");
    let inside = within(&engine, &transaction, |txn| {
        Ok((balance(txn, 1)?, balance(txn, 100)?, balance(txn, 2)?, account_of(txn, "hundred")?))
    });
    assert_eq!(inside, Ok((Some(70), Some(1), None, Some(account_key(100).to_vec()))));
    for direction in [Direction::Ascending, Direction::Descending] {
        let rows = within(&engine, &transaction, move |txn| all_accounts(txn, direction)).expect("scanned");
        assert_eq!(rows.len(), 20);
        assert!(rows.iter().any(|row| row.0 == 100) && rows.iter().all(|row| row.0 != 2));
        let mut sorted = rows.clone();
        sorted.sort();
        if direction == Direction::Descending {
            sorted.reverse();
        }
        assert_eq!(rows, sorted);
    }
    assert_eq!((read(&engine, 1), read(&engine, 100), read(&engine, 2)), (Some(100), None, Some(100)));
    commit(&engine, transaction);
    assert_eq!((read(&engine, 1), read(&engine, 15), read(&engine, 100)), (Some(70), Some(130), Some(1)));
    assert_eq!(read(&engine, 2), None);
    engine.step_log().expect("written");
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!((read(&after, 1), read(&after, 15), read(&after, 100)), (Some(70), Some(130), Some(1)));
}

#[test]
fn a_failed_statement_takes_back_only_itself() {
    let (engine, _store) = bank();
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| set_balance(txn, 1, 1)).map(drop).expect("set");
    let failed = within(&engine, &transaction, |txn| {
        set_balance(txn, 1, 2).map(drop)?;
        set_balance(txn, 3, 2).map(drop)?;
        Err::<(), _>(Stop::Abort)
    });
    assert_eq!(failed, Err(Stop::Abort));
    assert_eq!(
        within(&engine, &transaction, |txn| Ok((balance(txn, 1)?, balance(txn, 3)?))),
        Ok((Some(1), Some(100)))
    );
    // The row the failed statement locked is free again.
    unpredicted(&engine, |txn| set_balance(txn, 3, 33)).0.map(drop).expect("set");
    commit(&engine, transaction);
    assert_eq!((read(&engine, 1), read(&engine, 3)), (Some(1), Some(33)));
}

#[test]
fn rollback_and_disappearing_clients_leave_nothing() {
    let (engine, _store) = bank();
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| transfer(txn, 1, 15, 30)).expect("moved");
    engine.rollback(&transaction).wait().outcome.result.expect("rolled back");
    let gone = engine.begin();
    within(&engine, &gone, |txn| transfer(txn, 1, 15, 30)).expect("moved");
    drop(gone);
    unpredicted(&engine, |txn| transfer(txn, 1, 15, 1)).0.expect("nothing is locked");
    assert_eq!((read(&engine, 1), read(&engine, 15)), (Some(99), Some(101)));
    let ended = within(&engine, &transaction, |txn| balance(txn, 1));
    assert_eq!(ended, Err(Stop::TransactionEnded));
}

#[test]
fn savepoints_take_back_images_and_locks() {
    let (engine, _store) = bank();
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| set_balance(txn, 1, 1)).map(drop).expect("set");
    let savepoint = transaction.savepoint();
    within(&engine, &transaction, |txn| set_balance(txn, 1, 2)).map(drop).expect("set");
    within(&engine, &transaction, |txn| set_balance(txn, 15, 2)).map(drop).expect("set");
    engine.rollback_to(&transaction, savepoint).wait().outcome.result.expect("taken back");
    unpredicted(&engine, |txn| set_balance(txn, 15, 50)).0.map(drop).expect("not locked any more");
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 1)), Ok(Some(1)));
    commit(&engine, transaction);
    assert_eq!((read(&engine, 1), read(&engine, 15)), (Some(1), Some(50)));
}

type Waiting<T> = Submission<Script<T>>;

fn one_shot_add(engine: &Engine, id: i64, amount: i64) -> Waiting<()> {
    let program = script(
        move |_, claims| claims.add_point(GroupId(ACCOUNTS.0), &account_key(id)),
        move |txn| {
            let have = balance(txn, id)?.ok_or(Stop::Abort)?;
            set_balance(txn, id, have + amount).map(drop)
        },
    );
    engine.submit(program, SubmitOptions::default())
}

#[test]
fn a_one_shot_waits_for_a_row_and_reads_it_anew() {
    let (engine, _store) = bank();
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| set_balance(txn, 1, 500)).map(drop).expect("set");
    let mut waiting = one_shot_add(&engine, 1, 7);
    assert!(waiting.try_take().is_none());
    // The partition itself is free: others go on.
    unpredicted(&engine, |txn| set_balance(txn, 2, 5)).0.map(drop).expect("set");
    commit(&engine, transaction);
    waiting.wait().outcome.result.expect("it ran after the commit");
    assert_eq!(read(&engine, 1), Some(507), "the row was evaluated again after the wait");
}

#[test]
fn an_interactive_statement_waits_for_another_transaction() {
    let (engine, _store) = bank();
    let (first, second) = (engine.begin(), engine.begin());
    within(&engine, &first, |txn| set_balance(txn, 1, 500)).map(drop).expect("set");
    let add = script(
        |_, _| {},
        |txn| {
            let have = balance(txn, 1)?.ok_or(Stop::Abort)?;
            set_balance(txn, 1, have + 1).map(drop)
        },
    );
    let mut waiting =
        engine.submit(add, SubmitOptions { transaction: Some(&second), ..SubmitOptions::default() });
    assert!(waiting.try_take().is_none());
    let canceller = waiting.canceller().expect("it waits");
    assert_eq!(canceller.row_wait().expect("for a row").blockers, [first.id()]);
    engine.rollback(&first).wait().outcome.result.expect("rolled back");
    waiting.wait().outcome.result.expect("it ran");
    commit(&engine, second);
    assert_eq!(read(&engine, 1), Some(101));
}

#[test]
fn a_cycle_of_waits_has_one_victim_who_asks_first() {
    let (engine, _store) = bank();
    let (first, second) = (engine.begin(), engine.begin());
    within(&engine, &first, |txn| set_balance(txn, 1, 1)).map(drop).expect("set");
    within(&engine, &second, |txn| set_balance(txn, 15, 1)).map(drop).expect("set");
    let options = |transaction| SubmitOptions { transaction: Some(transaction), ..SubmitOptions::default() };
    let waiting = engine.submit(script(|_, _| {}, |txn| set_balance(txn, 15, 2)), options(&first));
    let waits = waiting.canceller().expect("it waits");
    assert_eq!(waits.break_deadlock(), None, "a chain is no cycle");
    let closing = engine.submit(script(|_, _| {}, |txn| set_balance(txn, 1, 2)), options(&second));
    let closes = closing.canceller().expect("it waits");
    let (a, b) = (first.id(), second.id());
    let edge = |waiter, blocker| WaitEdge { waiter, blocker };
    assert_eq!(closes.break_deadlock(), Some(vec![edge(b, a), edge(a, b)]));
    assert_eq!(waits.break_deadlock(), None, "the victim is gone");
    assert_eq!(closing.wait().outcome.result, Err(Stop::Deadlock));
    engine.rollback(&second).wait().outcome.result.expect("rolled back");
    waiting.wait().outcome.result.expect("the other one goes on");
    commit(&engine, first);
    assert_eq!((read(&engine, 1), read(&engine, 15)), (Some(1), Some(2)));
}

#[test]
fn a_wait_that_was_given_up_is_in_no_cycle() {
    let (engine, _store) = bank();
    let [holder, first, elsewhere, late] = [(); 4].map(|()| engine.begin());
    let share = |transaction: &Interactive, id: i64| {
        within(&engine, transaction, move |txn| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            txn.lock_row(&table, &account_key(id), LockMode::Share, LockWait::Wait)
        })
    };
    assert_eq!(share(&holder, 1), Ok(true));
    within(&engine, &elsewhere, |txn| set_balance(txn, 2, 1)).map(drop).expect("set");
    within(&engine, &first, |txn| set_balance(txn, 15, 1)).map(drop).expect("set");
    // It gives up waiting for one row, and waits for another.
    let given_up = writes(&engine, &first, 1);
    assert!(given_up.canceller().expect("it waits").cancel_wait(Stop::LockNotAvailable));
    assert_eq!(given_up.wait().outcome.result, Err(Stop::LockNotAvailable));
    let waiting = writes(&engine, &first, 2);
    // Who comes in the way of the first wait now is in nobody's way.
    assert_eq!(share(&late, 1), Ok(true));
    assert_eq!(engine.waits().blockers_of(first.id()), [elsewhere.id()]);
    let queued = writes(&engine, &late, 15);
    assert_eq!(queued.canceller().expect("it waits").break_deadlock(), None, "a chain is no cycle");
    for transaction in [elsewhere, holder] {
        commit(&engine, transaction);
    }
    waiting.wait().outcome.result.expect("it goes on");
    commit(&engine, first);
    queued.wait().outcome.result.expect("it goes on");
}

#[test]
fn a_weak_lock_does_not_show_the_writers_image() {
    let (engine, _store) = bank();
    let (reader, writer) = (engine.begin(), engine.begin());
    within(&engine, &reader, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.lock_row(&table, &account_key(1), LockMode::KeyShare, LockWait::Wait)
    })
    .expect("locked");
    within(&engine, &writer, |txn| set_balance(txn, 1, 5)).map(drop).expect("the modes do not conflict");
    assert_eq!(within(&engine, &reader, |txn| balance(txn, 1)), Ok(Some(100)));
    commit(&engine, reader);
    assert_eq!(read(&engine, 1), Some(100), "who only locked commits nothing");
    commit(&engine, writer);
    assert_eq!(read(&engine, 1), Some(5));
}

#[test]
fn a_starved_one_shot_locks_what_it_got_past() {
    let (engine, _store) = bank();
    // It needs accounts 1 and 15; whenever it comes, one of them is locked.
    let program = script(
        |_, _| {},
        |txn| {
            set_balance(txn, 1, 1_000).map(drop)?;
            set_balance(txn, 15, 1_000).map(drop)
        },
    );
    let lock = |id: i64| {
        let transaction = engine.begin();
        within(&engine, &transaction, move |txn| set_balance(txn, id, 7)).map(drop).expect("set");
        transaction
    };
    let mut holder = lock(15);
    let mut waiting = engine.submit(program, SubmitOptions::default());
    for id in [1, 15, 1] {
        let next = lock(id);
        commit(&engine, holder);
        assert!(waiting.try_take().is_none(), "account {id} was locked meanwhile");
        holder = next;
    }
    let last = lock(15);
    commit(&engine, holder);
    assert!(waiting.try_take().is_none());
    // By now it keeps account 1: a writer queues behind it.
    let overtaking = engine.begin();
    let add = script(|_, _| {}, |txn| set_balance(txn, 1, 9));
    let options = SubmitOptions { transaction: Some(&overtaking), ..SubmitOptions::default() };
    let mut second = engine.submit(add, options);
    assert!(second.try_take().is_none());
    commit(&engine, last);
    waiting.wait().outcome.result.expect("it got its turn");
    assert_eq!((read(&engine, 1), read(&engine, 15)), (Some(1_000), Some(1_000)));
    second.wait().outcome.result.expect("and then the other one");
    commit(&engine, overtaking);
    assert_eq!(read(&engine, 1), Some(9));
    unpredicted(&engine, |txn| set_balance(txn, 15, 1)).0.map(drop).expect("no lock is left");
}

#[test]
fn a_starved_writer_is_not_overtaken_by_sharers() {
    let (engine, _store) = bank();
    let share = |engine: &Engine| {
        let transaction = engine.begin();
        let program = script(
            |_, _| {},
            |txn| {
                let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
                txn.lock_row(&table, &account_key(1), LockMode::Share, LockWait::Wait)
            },
        );
        let options = SubmitOptions { transaction: Some(&transaction), ..SubmitOptions::default() };
        let submission = engine.submit(program, options);
        (transaction, submission)
    };
    let (mut holder, _) = share(&engine);
    let mut writer = one_shot_add(&engine, 1, 1);
    for round in 0..3 {
        let (next, mut shared) = share(&engine);
        assert!(shared.try_take().is_some(), "round {round}: sharers may come in at first");
        commit(&engine, holder);
        assert!(writer.try_take().is_none());
        holder = next;
    }
    let (late, mut shared) = share(&engine);
    assert!(shared.try_take().is_none(), "this one waits behind the writer");
    commit(&engine, holder);
    writer.wait().outcome.result.expect("it wrote");
    shared.wait().outcome.result.expect("it locked");
    commit(&engine, late);
    assert_eq!(read(&engine, 1), Some(101));
}

#[test]
fn waits_can_be_refused_and_cancelled() {
    let (engine, _store) = bank();
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| set_balance(txn, 1, 1)).map(drop).expect("set");
    let refused = unpredicted(&engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.lock_row(&table, &account_key(1), LockMode::Update, LockWait::NoWait)
    });
    assert_eq!(refused.0, Err(Stop::LockNotAvailable));
    let waiting = one_shot_add(&engine, 1, 7);
    waiting.canceller().expect("it waits").cancel(Stop::LockNotAvailable);
    assert_eq!(waiting.wait().outcome.result, Err(Stop::LockNotAvailable));
    commit(&engine, transaction);
    assert_eq!(read(&engine, 1), Some(1));
}

#[test]
fn an_uncommitted_unique_key_makes_others_wait() {
    let (engine, _store) = bank();
    for commits in [true, false] {
        let id = if commits { 200 } else { 300 };
        let owner = if commits { "taken" } else { "free again" };
        let transaction = engine.begin();
        within(&engine, &transaction, move |txn| insert_account(txn, id, owner, 1))
            .map(drop)
            .expect("inserted");
        let insert = script(|_, _| {}, move |txn| insert_account(txn, id + 1, owner, 1));
        let mut waiting = engine.submit(insert, SubmitOptions::default());
        assert!(waiting.try_take().is_none());
        let expected = if commits {
            commit(&engine, transaction);
            Inserted::DuplicateKey(Some(BY_OWNER))
        } else {
            drop(transaction);
            Inserted::Ok
        };
        assert_eq!(waiting.wait().program.value, Some(expected));
    }
}

#[test]
fn share_locks_meet_and_exclude_writers() {
    let (engine, _store) = bank();
    let (first, second) = (engine.begin(), engine.begin());
    for transaction in [&first, &second] {
        let locked = within(&engine, transaction, |txn| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            txn.lock_row(&table, &account_key(1), LockMode::Share, LockWait::Wait)
        });
        assert_eq!(locked, Ok(true));
    }
    let mut waiting = one_shot_add(&engine, 1, 1);
    commit(&engine, first);
    assert!(waiting.try_take().is_none(), "the second share lock is still there");
    commit(&engine, second);
    waiting.wait().outcome.result.expect("it ran");
    assert_eq!(read(&engine, 1), Some(101));
}

#[test]
fn reference_tables_are_written_and_read_inside_a_transaction() {
    let (engine, _store) = bank();
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    let transaction = engine.begin();
    let price = |engine: &Engine, transaction: Option<&archipel_engine::Interactive>| {
        let program = script(
            |_, _| {},
            |txn| {
                let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
                let price = txn.get(&table, &item_key(1))?.map(|row| int8(&table, row, 1));
                Ok(price)
            },
        );
        let options = SubmitOptions { transaction, ..SubmitOptions::default() };
        finish(engine.submit(program, options).wait()).0.expect("read")
    };
    within(&engine, &transaction, |txn| {
        let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
        let row = table.layout.encode_row(&[Cell::Int4(1), Cell::Int8(10)]);
        txn.insert(&table, &item_key(1), &row)
    })
    .map(drop)
    .expect("inserted");
    assert_eq!((price(&engine, Some(&transaction)), price(&engine, None)), (Some(10), None));
    commit(&engine, transaction);
    assert_eq!(price(&engine, None), Some(10));
    let _ = REFERENCE_GROUP;
}

#[test]
fn locks_and_images_move_with_a_split() {
    let (engine, _store) = bank();
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| transfer(txn, 3, 7, 30)).expect("moved");
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(5)]).wait().outcome.result.expect("it splits");
    let mut waiting = one_shot_add(&engine, 7, 1);
    assert!(waiting.try_take().is_none());
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 7)), Ok(Some(130)));
    commit(&engine, transaction);
    waiting.wait().outcome.result.expect("it ran");
    assert_eq!((read(&engine, 3), read(&engine, 7)), (Some(70), Some(131)));
}

#[test]
fn ddl_waits_for_the_locks_of_its_table() {
    let (engine, _store) = bank();
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| set_balance(txn, 3, 30)).map(drop).expect("set");
    let add_index = script(
        |_, claims| claims.everything(),
        |txn| txn.ddl(DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() }),
    );
    let mut waiting = engine.submit(add_index, SubmitOptions::default());
    assert!(waiting.try_take().is_none());
    commit(&engine, transaction);
    assert_eq!(waiting.wait().program.value, Some(Inserted::Ok));
    assert_eq!(read(&engine, 3), Some(30));
}

#[test]
fn a_statement_that_outlives_its_transaction_leaves_no_lock() {
    let (engine, _store) = bank();
    let transaction = engine.begin();
    let mut holder = Some(transaction);
    let (late, inner) = (std::sync::Arc::new(std::sync::Mutex::new(None)), engine.clone());
    let gone = late.clone();
    // The client goes while its first statement runs.
    let program = script(
        |_, _| {},
        move |txn| {
            set_balance(txn, 1, 1).map(drop)?;
            drop(gone.lock().expect("one thread").take());
            Ok(())
        },
    );
    let submission = {
        let transaction = holder.take().expect("begun above");
        let slot = late.clone();
        // The statement is queued behind this program, and runs when nobody has the handle.
        let (result, _) = run(&inner, |_, claims| claims.add_point(GroupId(ACCOUNTS.0), &account_key(1)), {
            let mut program = Some(program);
            let mut transaction = Some(transaction);
            let engine = engine.clone();
            move |_| {
                let transaction = transaction.take().expect("runs once");
                let options = SubmitOptions { transaction: Some(&transaction), ..SubmitOptions::default() };
                let submission = engine.submit(program.take().expect("runs once"), options);
                *slot.lock().expect("one thread") = Some(transaction);
                Ok(submission)
            }
        });
        result.expect("it ran")
    };
    assert_eq!(submission.wait().outcome.result, Err(Stop::TransactionEnded));
    unpredicted(&engine, |txn| set_balance(txn, 1, 7)).0.map(drop).expect("nothing is locked");
    assert_eq!(read(&engine, 1), Some(7));
}

#[test]
fn rows_of_a_table_made_on_the_way_are_settled_early() {
    let (engine, _store) = bank();
    let transaction = engine.begin_at(Isolation::RepeatableRead, false);
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 1)), Ok(Some(100)));
    ddl(
        &engine,
        DdlOp::CreateTable(TableDef {
            placement: Placement::Distributed { group: GroupId(ITEMS.0) },
            ..items_table()
        }),
    )
    .expect("made");
    transaction.own([ITEMS]);
    let insert = |id: i32, price: i64| {
        move |txn: &mut archipel_engine::Txn<'_>| {
            let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
            let row = table.layout.encode_row(&[Cell::Int4(id), Cell::Int8(price)]);
            txn.insert(&table, &item_key(id), &row)
        }
    };
    assert_eq!(within(&engine, &transaction, insert(1, 10)), Ok(Inserted::Ok));
    within(&engine, &transaction, |txn| set_balance(txn, 1, 7)).map(drop).expect("set");
    let settled = engine
        .submit(
            SettleEarly::new(&transaction, Arc::new([ITEMS].into_iter().collect())),
            SubmitOptions::default(),
        )
        .wait();
    settled.outcome.result.expect("settled");
    assert_eq!(settled.program.settled, 1);
    let index = IndexDef {
        id: TreeId(111),
        name: "items_price".to_owned(),
        key: vec![key_column(1)],
        unique: true,
        nulls_equal: false,
        placement: IndexPlacement::Global { group: GroupId(111) },
    };
    ddl(&engine, DdlOp::CreateIndex { table: ITEMS, index }).expect("nothing is locked there");
    assert_eq!(within(&engine, &transaction, insert(2, 10)), Ok(Inserted::DuplicateKey(Some(TreeId(111)))));
    assert_eq!(within(&engine, &transaction, insert(3, 11)), Ok(Inserted::Ok));
    assert_eq!(read(&engine, 1), Some(100), "other tables wait for the commit");
    commit(&engine, transaction);
    assert_eq!(read(&engine, 1), Some(7));
    let items = unpredicted(&engine, |txn| {
        let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
        let mut ids = Vec::new();
        txn.scan(&table, archipel_engine::KeyRange::ALL, Direction::Ascending, &mut |_, row| {
            ids.push(int8(&table, row, 1));
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(ids)
    });
    assert_eq!(items.0, Ok(vec![10, 11]));
}

#[test]
fn a_commit_that_redefines_the_table_wakes_who_waits_for_its_rows() {
    for rewritten in [false, true] {
        let (engine, _store) = bank();
        let transaction = engine.begin();
        within(&engine, &transaction, |txn| set_balance(txn, 1, 500)).map(drop).expect("set");
        let mut waiting = one_shot_add(&engine, 1, 7);
        assert!(waiting.try_take().is_none());
        let mut committed = Commit::of(&transaction);
        let program = script(
            |_, claims| claims.everything(),
            move |txn| {
                committed.run(txn)?;
                let mut def = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?.def.clone();
                let mut columns: Vec<ColumnSource> = (0..3).map(ColumnSource::Kept).collect();
                if rewritten {
                    def.columns.push(ColumnKind::Int8);
                    columns.push(ColumnSource::Constant(OwnedCell::Int8(1)));
                }
                txn.ddl(DdlOp::AlterTable { def, columns })
            },
        );
        let (altered, _) = finish(engine.submit(program, SubmitOptions::default()).wait());
        assert_eq!(altered, Ok(Inserted::Ok));
        waiting.wait().outcome.result.expect("it was woken");
        assert_eq!(read(&engine, 1), Some(507));
        unpredicted(&engine, |txn| set_balance(txn, 1, 1)).0.map(drop).expect("no lock is left");
    }
}

#[test]
fn a_one_shot_does_not_refer_to_a_reference_row_that_is_going() {
    let (engine, _store) = bank();
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    run(
        &engine,
        |_, claims| claims.add_group(REFERENCE_GROUP),
        |txn| {
            let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
            let row = table.layout.encode_row(&[Cell::Int4(1), Cell::Int8(10)]);
            txn.insert(&table, &item_key(1), &row)
        },
    )
    .0
    .map(drop)
    .expect("inserted");
    let locked =
        |engine: &Engine| unpredicted(engine, |txn| Ok(txn.reference_keys_locked())).0.expect("asked");
    for commits in [false, true] {
        assert!(!locked(&engine));
        let transaction = engine.begin();
        within(&engine, &transaction, |txn| {
            let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
            txn.lock_row(&table, &item_key(1), LockMode::KeyShare, LockWait::Wait)
        })
        .expect("locked");
        assert!(!locked(&engine), "to refer to it is no reason to look");
        within(&engine, &transaction, |txn| {
            let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
            txn.delete(&table, &item_key(1))
        })
        .expect("deleted");
        assert!(locked(&engine));
        if commits { commit(&engine, transaction) } else { drop(transaction) }
    }
    assert!(!locked(&engine));
}

#[test]
fn a_copied_table_has_computed_values_in_key_order_whoever_wrote_the_rows() {
    const COPY: TreeId = TreeId(140);
    let (engine, _) = stepped();
    open_bank(&engine, 6);
    let transaction = engine.begin();
    // Of 0 to 5, the transaction has changed 1, deleted 3, and inserted -7.
    within(&engine, &transaction, |txn| set_balance(txn, 1, 7)).map(drop).expect("written");
    within(&engine, &transaction, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.delete(&table, &account_key(3))
    })
    .expect("deleted");
    within(&engine, &transaction, |txn| insert_account(txn, -7, "first", 1)).map(drop).expect("inserted");
    let def = TableDef {
        id: COPY,
        name: "copy".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Int8],
        key: vec![key_column(0)],
        placement: Placement::Distributed { group: GroupId(COPY.0) },
        indexes: Vec::new(),
    };
    let numbers: Vec<OwnedCell> = (1..=6).map(OwnedCell::Int8).collect();
    let columns = vec![ColumnSource::Kept(0), ColumnSource::Each(numbers.into())];
    let reader = Some(transaction.copies());
    ddl(&engine, DdlOp::CopyTable { from: ACCOUNTS, def, columns, reader }).expect("copied");
    let rows = unpredicted(&engine, |txn| {
        let table = txn.table(COPY).ok_or(Stop::Recompile)?;
        let mut rows = Vec::new();
        txn.scan(&table, archipel_engine::KeyRange::ALL, Direction::Ascending, &mut |_, row| {
            rows.push((int8(&table, row, 0), int8(&table, row, 1)));
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(rows)
    });
    assert_eq!(rows.0, Ok(vec![(-7, 1), (0, 2), (1, 3), (2, 4), (4, 5), (5, 6)]));
}

/// Does something once, the next time a program has entered the queues.
#[derive(Default)]
struct OnceQueued(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Interleave for OnceQueued {
    fn at(&self, point: Point) {
        let body = if point == Point::Enqueued { self.0.lock().expect("no panic").take() } else { None };
        if let Some(body) = body {
            body();
        }
    }
}

/// A statement of a transaction that writes an account.
fn writes(engine: &Engine, transaction: &Interactive, id: i64) -> Submission<Script<Inserted>> {
    let options = SubmitOptions { transaction: Some(transaction), ..SubmitOptions::default() };
    engine.submit(script(|_, _| {}, move |txn| set_balance(txn, id, 7)), options)
}

#[test]
fn a_wake_that_comes_late_does_not_hide_a_deadlock() {
    let hook = Arc::new(OnceQueued::default());
    let config = EngineConfig { background: false, ..config(2) };
    let seams = Seams { interleave: Some(hook.clone()), ..Seams::default() };
    let engine = Engine::open_with(config, Arc::new(MemoryStore::new()), seams, &|_| {}).expect("opens");
    open_bank(&engine, 20);
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(10)]).wait().outcome.result.expect("it splits");
    let (first, second, third) = (engine.begin(), Arc::new(engine.begin()), engine.begin());
    for (transaction, id) in [(&first, 1), (&first, 2), (&*second, 3), (&third, 15)] {
        within(&engine, transaction, move |txn| set_balance(txn, id, 1)).map(drop).expect("set");
    }
    // Two wait for rows of the first, whose commit wakes one after the other.
    let one_shot = one_shot_add(&engine, 1, 1);
    let cancelled = writes(&engine, &second, 2);
    // When the one has been woken, the other's statement is cancelled, and the next one of its
    // transaction waits for the third: all that before the wake that was meant for the old one.
    let canceller = cancelled.canceller().expect("it waits");
    let (sender, receiver) = std::sync::mpsc::channel();
    let (between, owner) = (engine.clone(), second.clone());
    *hook.0.lock().expect("no panic") = Some(Box::new(move || {
        assert!(canceller.cancel_wait(Stop::Cancelled));
        sender.send(writes(&between, &owner, 15)).expect("the test waits for it");
    }));
    engine.commit(&first).wait().outcome.result.expect("committed");
    one_shot.wait().outcome.result.expect("it ran after the commit");
    assert_eq!(cancelled.wait().outcome.result, Err(Stop::Cancelled));
    let waiting = receiver.try_recv().expect("it came between");
    assert_eq!(engine.waits().blockers_of(second.id()), [third.id()]);
    // The third closes the cycle.
    let closing = writes(&engine, &third, 3);
    let cycle = closing.canceller().expect("it waits").break_deadlock();
    assert_eq!(cycle.map(|edges| edges.len()), Some(2));
    assert_eq!(closing.wait().outcome.result, Err(Stop::Deadlock));
    engine.rollback(&third).wait().outcome.result.expect("rolled back");
    waiting.wait().outcome.result.expect("the other one goes on");
}
