//! Runs that read in pages: as of one snapshot, holding nothing between two pages.

mod common;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::txn::TakeImages;
use archipel_engine::{
    ClaimSet, DdlOp, Direction, Engine, EngineConfig, Inserted, Interactive, Interleave, Isolation, KeyRange,
    LockTables, LockWait, ObjectMode, Paging, Point, Program, Repartition, RoutingTable, Seams, Stop,
    Submission, SubmitOptions, TableMeta, Txn,
};
use common::*;

/// Runs a statement of a transaction in pages.
fn paged<T: Send + 'static>(
    engine: &Engine,
    transaction: &Interactive,
    body: impl FnMut(&mut Txn<'_>) -> Result<T, Stop> + Send + 'static,
) -> Result<T, Stop> {
    let options =
        SubmitOptions { transaction: Some(transaction), paging: Paging::Locking, ..SubmitOptions::default() };
    finish(engine.submit(script(|_, _| {}, body), options).wait()).0
}

/// The balances of some accounts, in the order of a scan.
fn balances(txn: &mut Txn<'_>, range: KeyRange<'_>, direction: Direction) -> Result<Vec<(i64, i64)>, Stop> {
    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    let mut rows = Vec::new();
    txn.scan(&table, range, direction, &mut |_, row| {
        rows.push((int8(&table, row, 0), int8(&table, row, 2)));
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

fn change_everything(engine: &Engine, accounts: i64) {
    unpredicted(engine, move |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        for id in 0..accounts {
            match id % 3 {
                0 => assert!(txn.delete(&table, &account_key(id))?),
                _ => assert_eq!(set_balance(txn, id, 7)?, Inserted::Ok),
            }
        }
        assert_eq!(insert_account(txn, accounts + 5, "late", 7)?, Inserted::Ok);
        Ok(())
    })
    .0
    .expect("nothing is held between two pages");
    let cuts = vec![account_key(accounts / 4), account_key(accounts / 2)];
    engine.pre_split(GroupId(ACCOUNTS.0), cuts).wait().outcome.result.expect("it splits");
}

#[test]
fn others_write_between_two_pages_and_the_reader_sees_its_snapshot() {
    const ACCOUNTS_OPENED: i64 = 5_000;
    for direction in [Direction::Ascending, Direction::Descending] {
        let (engine, _store) = stepped();
        open_bank(&engine, ACCOUNTS_OPENED);
        let cuts = vec![account_key(1_000), account_key(4_000)];
        engine.pre_split(GroupId(ACCOUNTS.0), cuts).wait().outcome.result.expect("it splits");
        let reader = engine.begin();
        let of_reader = engine.clone();
        let rows = paged(&engine, &reader, move |txn| {
            let middle = account_key(1_500);
            let upper = KeyRange { low: Bound::Included(&middle), high: Bound::Unbounded };
            let lower = KeyRange { low: Bound::Unbounded, high: Bound::Excluded(&middle) };
            let (first, second) = match direction {
                Direction::Ascending => (lower, upper),
                Direction::Descending => (upper, lower),
            };
            let mut rows = balances(txn, first, direction)?;
            assert_eq!(txn.partitions_held(), 0);
            change_everything(&of_reader, ACCOUNTS_OPENED);
            rows.extend(balances(txn, second, direction)?);
            assert_eq!(balance(txn, 3)?, Some(100), "deleted since");
            assert_eq!(balance(txn, ACCOUNTS_OPENED + 5)?, None, "inserted since");
            assert!(account_of(txn, "owner 3")?.is_some(), "its entry is there as well");
            assert!(account_of(txn, "late")?.is_none());
            Ok(rows)
        });
        let mut expected: Vec<(i64, i64)> = (0..ACCOUNTS_OPENED).map(|id| (id, 100)).collect();
        if direction == Direction::Descending {
            expected.reverse();
        }
        assert_eq!(rows.expect("read"), expected);
        // READ COMMITTED: the next statement sees what is there now.
        let now = paged(&engine, &reader, |txn| balances(txn, KeyRange::ALL, Direction::Ascending));
        let now = now.expect("read");
        assert!(now.iter().all(|(id, balance)| id % 3 != 0 && *balance == 7));
        engine.commit(&reader).wait().outcome.result.expect("committed");
    }
}

#[test]
fn two_partitions_may_become_one_between_two_pages() {
    const ACCOUNTS_OPENED: i64 = 3_000;
    const CUT: i64 = 1_500;
    for (direction, last) in [(Direction::Ascending, CUT - 1), (Direction::Descending, CUT)] {
        let (engine, _store) = stepped();
        open_bank(&engine, ACCOUNTS_OPENED);
        engine
            .pre_split(GroupId(ACCOUNTS.0), vec![account_key(CUT)])
            .wait()
            .outcome
            .result
            .expect("it splits");
        let reader = engine.begin();
        let of_reader = engine.clone();
        let rows = paged(&engine, &reader, move |txn| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            let mut rows = Vec::new();
            txn.scan(&table, KeyRange::ALL, direction, &mut |_, row| {
                let id = int8(&table, row, 0);
                if id == last {
                    // The turn of this comes when the page has been read.
                    let routing = of_reader.routing();
                    let ids: Vec<_> =
                        routing.routes(GroupId(ACCOUNTS.0)).iter().map(|route| route.partition()).collect();
                    drop(of_reader.repartition(Repartition::Merge(ids[0], ids[1]), "test"));
                }
                rows.push(id);
                ControlFlow::Continue(())
            })?;
            Ok(rows)
        });
        let mut expected: Vec<i64> = (0..ACCOUNTS_OPENED).collect();
        if direction == Direction::Descending {
            expected.reverse();
        }
        assert_eq!(rows.expect("read"), expected, "{direction:?}");
        assert_eq!(engine.routing().routes(GroupId(ACCOUNTS.0)).len(), 1, "they are one");
        engine.commit(&reader).wait().outcome.result.expect("committed");
    }
}

#[test]
fn rows_that_came_later_are_passed_over_in_pages_too() {
    const ACCOUNTS_OPENED: i64 = 100;
    const LATER: i64 = 10_000;
    for direction in [Direction::Ascending, Direction::Descending] {
        let (engine, _store) = stepped();
        open_bank(&engine, ACCOUNTS_OPENED);
        let reader = engine.begin();
        let of_reader = engine.clone();
        let rows = paged(&engine, &reader, move |txn| {
            assert_eq!(balance(txn, 1)?, Some(100));
            unpredicted(&of_reader, |txn| {
                for id in (1..=LATER).flat_map(|id| [-id, ACCOUNTS_OPENED + id]) {
                    assert_eq!(insert_account(txn, id, &format!("later {id}"), 7)?, Inserted::Ok);
                }
                Ok(())
            })
            .0
            .expect("inserted");
            let ids = balances(txn, KeyRange::ALL, direction)?.into_iter().map(|(id, _)| id);
            Ok(ids.collect::<Vec<_>>())
        });
        let mut expected: Vec<i64> = (0..ACCOUNTS_OPENED).collect();
        if direction == Direction::Descending {
            expected.reverse();
        }
        assert_eq!(rows.expect("read"), expected);
        engine.commit(&reader).wait().outcome.result.expect("committed");
    }
}

/// Counts pages that are about to be claimed.
#[derive(Default)]
struct PagesSeen(AtomicUsize);

impl Interleave for PagesSeen {
    fn at(&self, point: Point) {
        if point == Point::BeforePage {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_page_has_as_many_rows_as_the_configuration_says() {
    let pages = Arc::new(PagesSeen::default());
    let config = EngineConfig { background: false, page_rows_max: 4, ..config(2) };
    let seams = Seams { interleave: Some(pages.clone()), ..Seams::default() };
    let engine = Engine::open_with(config, Arc::new(MemoryStore::new()), seams, &|_| {}).expect("it opens");
    open_bank(&engine, 10);
    for direction in [Direction::Ascending, Direction::Descending] {
        let reader = engine.begin();
        let before = pages.0.load(Ordering::Relaxed);
        let rows = paged(&engine, &reader, move |txn| balances(txn, KeyRange::ALL, direction));
        assert_eq!(rows.expect("read").len(), 10);
        assert_eq!(pages.0.load(Ordering::Relaxed) - before, 3, "four, four and two");
    }
}

#[test]
fn a_run_in_pages_that_writes_or_locks_is_run_again_without() {
    let (engine, _store) = stepped();
    open_bank(&engine, 10);
    let own = engine.begin();
    type Write = fn(&mut Txn<'_>) -> Result<(), Stop>;
    let writes: [Write; 3] = [
        |txn| set_balance(txn, 1, 5).map(drop),
        |txn| insert_account(txn, 77, "new", 5).map(drop),
        |txn| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            let mode = archipel_engine::LockMode::Update;
            txn.lock_row(&table, &account_key(1), mode, archipel_engine::LockWait::Wait).map(drop)
        },
    ];
    for write in writes {
        let stopped = paged(&engine, &own, move |txn| {
            assert_eq!(balance(txn, 1)?, Some(100));
            write(txn)
        });
        assert_eq!(stopped, Err(Stop::Interactive));
    }
    assert!(own.is_empty());
}

#[test]
fn a_transaction_sees_its_own_images_above_the_snapshot() {
    let (engine, _store) = stepped();
    open_bank(&engine, 3_000);
    let own = engine.begin();
    within(&engine, &own, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert_eq!(set_balance(txn, 10, 1)?, Inserted::Ok);
        assert!(txn.delete(&table, &account_key(2_000))?);
        assert_eq!(insert_account(txn, 9_000, "own", 2)?, Inserted::Ok);
        Ok(())
    })
    .expect("written");
    let of_reader = engine.clone();
    let rows = paged(&engine, &own, move |txn| {
        assert_eq!(balance(txn, 10)?, Some(1));
        unpredicted(&of_reader, |txn| set_balance(txn, 11, 3)).0.map(drop).expect("of somebody else");
        assert_eq!(balance(txn, 11)?, Some(100));
        balances(txn, KeyRange::ALL, Direction::Ascending)
    })
    .expect("read");
    assert_eq!(rows.len(), 3_000);
    assert_eq!((rows[10], rows[11], rows[2_999]), ((10, 1), (11, 100), (9_000, 2)));
    assert!(rows.iter().all(|(id, _)| *id != 2_000));
}

/// A cursor's reader sees what the transaction that has opened it had written by then; not what that writes
/// later, nor what becomes of it.
#[test]
fn a_reader_sees_what_another_had_written() {
    let (engine, _store) = stepped();
    open_bank(&engine, 3_000);
    let writer = engine.begin();
    within(&engine, &writer, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert_eq!(set_balance(txn, 10, 1)?, Inserted::Ok);
        assert!(txn.delete(&table, &account_key(2_000))?);
        assert_eq!(insert_account(txn, 9_000, "own", 2)?, Inserted::Ok);
        Ok(())
    })
    .expect("written");
    let take = TakeImages::new(&writer, vec![ACCOUNTS, BY_OWNER]).expect("they are few");
    let options = take.options();
    let images = engine.submit(take, options).wait().program.images.expect("they are copied");
    assert!(images.bytes() > 0);
    let reader = engine.begin_at(Isolation::RepeatableRead, true);
    assert!(reader.take_snapshot_of(&[ACCOUNTS]).is_some());
    reader.read_over(images);
    let read = |direction: Direction| {
        paged_over(&engine, &reader, move |txn| {
            assert_eq!((balance(txn, 10)?, balance(txn, 11)?), (Some(1), Some(100)));
            assert_eq!((balance(txn, 2_000)?, balance(txn, 9_000)?), (None, Some(2)));
            assert!(account_of(txn, "own")?.is_some(), "through an index, too");
            assert!(account_of(txn, "owner 2000")?.is_none());
            balances(txn, KeyRange::ALL, direction)
        })
        .expect("read")
    };
    let mut expected: Vec<(i64, i64)> =
        (0..3_000).filter(|id| *id != 2_000).map(|id| (id, if id == 10 { 1 } else { 100 })).collect();
    expected.push((9_000, 2));
    assert_eq!(read(Direction::Ascending), expected);
    within(&engine, &writer, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert_eq!(set_balance(txn, 10, 5)?, Inserted::Ok);
        assert_eq!(set_balance(txn, 11, 5)?, Inserted::Ok);
        assert!(txn.delete(&table, &account_key(9_000))?);
        assert_eq!(insert_account(txn, 2_000, "again", 5)?, Inserted::Ok);
        Ok(())
    })
    .expect("written");
    assert_eq!(read(Direction::Ascending), expected);
    engine.rollback(&writer).wait().outcome.result.expect("rolled back");
    change_everything(&engine, 3_000);
    assert_eq!(read(Direction::Ascending), expected);
    expected.reverse();
    assert_eq!(read(Direction::Descending), expected);
}

#[test]
fn an_index_may_be_made_between_two_pages() {
    let (engine, _store) = stepped();
    open_bank(&engine, 3_000);
    let own = engine.begin();
    let of_reader = engine.clone();
    let rows = paged_over(&engine, &own, move |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        let before = balance(txn, 1)?;
        ddl(&of_reader, DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() }).expect("made");
        let again = txn.get(&table, &account_key(1))?.map(|row| int8(&table, row, 2));
        assert_eq!(again, before);
        let mut rows = 0;
        txn.scan(&table, KeyRange::ALL, Direction::Ascending, &mut |_, _| {
            rows += 1;
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    });
    assert_eq!(rows, Ok(3_000));
}

/// The page that comes next waits behind the definition, and has taken the tables as they were before.
#[test]
fn an_index_may_be_made_while_a_page_is_waited_for() {
    let (engine, _store) = stepped();
    open_bank(&engine, 3_000);
    let own = engine.begin();
    let of_reader = engine.clone();
    let rows = paged_over(&engine, &own, move |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        let mut rows = 0;
        txn.scan(&table, KeyRange::ALL, Direction::Ascending, &mut |_, _| {
            if rows == 0 {
                let make = |txn: &mut Txn<'_>| {
                    txn.ddl(DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() }).map(drop)
                };
                let program = script(|_, claims: &mut ClaimSet| claims.everything(), make);
                drop(of_reader.submit(program, SubmitOptions::default()));
            }
            rows += 1;
            ControlFlow::Continue(())
        })?;
        assert!(txn.table(ACCOUNTS).is_some_and(|now| now.version > table.version), "it has been made");
        Ok(rows)
    });
    assert_eq!(rows, Ok(3_000));
}

/// As [`paged`], of a statement that says which table it reads.
fn paged_over<T: Send + 'static>(
    engine: &Engine,
    transaction: &Interactive,
    body: impl FnMut(&mut Txn<'_>) -> Result<T, Stop> + Send + 'static,
) -> Result<T, Stop> {
    let options =
        SubmitOptions { transaction: Some(transaction), paging: Paging::Locking, ..SubmitOptions::default() };
    let program = OverAccounts(script(|_, _| {}, body));
    let completed = engine.submit(program, options).wait();
    completed.outcome.result.map(|()| completed.program.0.value.expect("it has a value"))
}

struct OverAccounts<T>(Script<T>);

impl<T: Send + 'static> Program for OverAccounts<T> {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        self.0.predict(routing, claims);
    }

    fn tables(&self) -> Vec<TreeId> {
        vec![ACCOUNTS]
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.0.run(txn)
    }
}

#[test]
fn a_reader_waits_in_the_queue_of_a_busy_partition() {
    let (engine, _store) = stepped();
    open_bank(&engine, 3_000);
    let (stop, threads) = start_executors(&engine, 2);
    let writers: Vec<_> = (0..2)
        .map(|number| {
            let engine = engine.clone();
            std::thread::spawn(move || {
                for turn in 0..3_000 {
                    let id = number * 1_000 + turn % 1_000;
                    unpredicted(&engine, move |txn| transfer(txn, id, id + 1, 0)).0.expect("moved");
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let own = engine.begin();
        let rows = paged(&engine, &own, |txn| balances(txn, KeyRange::ALL, Direction::Ascending));
        assert_eq!(rows.expect("read").len(), 3_000);
    }
    for writer in writers {
        writer.join().expect("it ends");
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("it ends");
    }
}

/// The rows of a cursor are read under the locks of the transaction that has opened it, behind which
/// somebody may wait; and its snapshot is for all of its reads.
#[test]
fn a_reader_whose_tables_are_locked_for_it_stands_in_no_queue() {
    const ACCOUNTS_OPENED: i64 = 2_000;
    let (engine, _store) = stepped();
    open_bank(&engine, ACCOUNTS_OPENED);
    let lock = |transaction: &Interactive, mode: ObjectMode| -> Submission<LockTables> {
        let options = SubmitOptions { transaction: Some(transaction), ..SubmitOptions::default() };
        engine.submit(LockTables::new(vec![ACCOUNTS], mode, LockWait::Wait), options)
    };
    let (holder, waiter) = (engine.begin(), engine.begin());
    lock(&holder, ObjectMode::AccessShare).wait().outcome.result.expect("nobody else has it");
    let mut waits = lock(&waiter, ObjectMode::AccessExclusive);
    assert!(waits.try_take().is_none());
    let reader = engine.begin_at(Isolation::RepeatableRead, true);
    let epoch = reader.take_snapshot_of(&[ACCOUNTS]).expect("it has none yet");
    assert_eq!(reader.take_snapshot_of(&[ACCOUNTS]), None);
    let read = || {
        let body = move |txn: &mut Txn<'_>| {
            assert_eq!(txn.pages_at(), Some(epoch));
            assert!(account_of(txn, "owner 3")?.is_some(), "through an index, too");
            balances(txn, KeyRange::ALL, Direction::Ascending)
        };
        let options = SubmitOptions {
            transaction: Some(&reader),
            read_only: true,
            paging: Paging::Locked,
            ..SubmitOptions::default()
        };
        let completed = engine.submit(OverAccounts(script(|_, _| {}, body)), options).wait();
        completed.outcome.result.map(|()| completed.program.0.value.expect("it has a value"))
    };
    let expected: Vec<(i64, i64)> = (0..ACCOUNTS_OPENED).map(|id| (id, 100)).collect();
    assert_eq!(read().expect("read"), expected);
    engine.commit(&holder).wait().outcome.result.expect("committed");
    waits.wait().outcome.result.expect("its turn has come");
    engine.rollback(&waiter).wait().outcome.result.expect("rolled back");
    change_everything(&engine, ACCOUNTS_OPENED);
    assert_eq!(read().expect("read"), expected);
}

/// Whoever knows a table as it was finds it each time, though others have defined an index meanwhile.
#[test]
fn a_reader_finds_the_tables_again_that_it_has_read_once() {
    const ACCOUNTS_OPENED: i64 = 2_000;
    let (engine, _store) = stepped();
    open_bank(&engine, ACCOUNTS_OPENED);
    let reader = engine.begin_at(Isolation::RepeatableRead, true);
    assert!(reader.take_snapshot_of(&[ACCOUNTS]).is_some());
    let read = |known: Option<Arc<TableMeta>>| {
        let body = move |txn: &mut Txn<'_>| {
            let table = match &known {
                Some(table) => table.clone(),
                None => txn.table(ACCOUNTS).ok_or(Stop::Recompile)?,
            };
            let mut balances = Vec::new();
            txn.scan(&table, KeyRange::ALL, Direction::Ascending, &mut |_, row| {
                balances.push(int8(&table, row, 2));
                ControlFlow::Continue(())
            })?;
            Ok::<_, Stop>((table, balances))
        };
        let options = SubmitOptions {
            transaction: Some(&reader),
            read_only: true,
            paging: Paging::Locked,
            ..SubmitOptions::default()
        };
        let completed = engine.submit(OverAccounts(script(|_, _| {}, body)), options).wait();
        completed.outcome.result.map(|()| completed.program.0.value.expect("it has a value"))
    };
    let (table, balances) = read(None).expect("read");
    assert_eq!(balances.len(), ACCOUNTS_OPENED as usize);
    ddl(&engine, DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() }).expect("made");
    change_everything(&engine, ACCOUNTS_OPENED);
    let (table, again) = read(Some(table)).expect("found again");
    assert_eq!(again, balances);
    let (_, once_more) = read(Some(table)).expect("and again");
    assert_eq!(once_more, balances);
}
