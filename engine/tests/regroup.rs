//! Tables that change their co-location group, with their rows, beside what is in progress, and
//! after a crash.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::log::memory::Survivors;
use archipel_engine::schema::{IndexDef, IndexPlacement, Placement, TableDef};
use archipel_engine::txn::{BeginCopy, CopySlice};
use archipel_engine::{
    ColumnSource, DdlOp, Direction, Engine, EngineConfig, Inserted, KeyRange, RepartitionKind, Stop,
    SubmitOptions, Txn,
};
use common::*;

const BANK: GroupId = GroupId(ACCOUNTS.0);
const LEDGER: TreeId = TreeId(120);
const BY_AMOUNT: TreeId = TreeId(121);
const BY_NOTE: TreeId = TreeId(122);
const OWN: GroupId = GroupId(LEDGER.0);

/// `ledger (account int8 primary key, amount int8, note int8)` with a local and a global index.
fn ledger(placement: Placement) -> TableDef {
    let index = |id, name: &str, key: &[u16], placement| IndexDef {
        id,
        name: name.to_owned(),
        key: key.iter().map(|column| key_column(*column)).collect(),
        unique: false,
        nulls_equal: false,
        placement,
    };
    let global = match placement {
        Placement::Reference => IndexPlacement::Local,
        Placement::Distributed { .. } => IndexPlacement::Global { group: GroupId(BY_NOTE.0) },
    };
    TableDef {
        id: LEDGER,
        name: "ledger".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Int8, ColumnKind::Int8],
        key: vec![key_column(0)],
        placement,
        indexes: vec![
            index(BY_AMOUNT, "ledger_amount", &[0, 1], IndexPlacement::Local),
            index(BY_NOTE, "ledger_note", &[2], global),
        ],
    }
}

fn put(txn: &mut Txn<'_>, account: i64, amount: i64) -> Result<Inserted, Stop> {
    let table = txn.table(LEDGER).ok_or(Stop::Recompile)?;
    let row = table.layout.encode_row(&[Cell::Int8(account), Cell::Int8(amount), Cell::Int8(-account)]);
    txn.insert(&table, &account_key(account), &row)
}

fn amount(txn: &mut Txn<'_>, account: i64) -> Result<i64, Stop> {
    let table = txn.table(LEDGER).ok_or(Stop::Recompile)?;
    Ok(txn.get(&table, &account_key(account))?.map_or(i64::MIN, |row| int8(&table, row, 1)))
}

fn set_note(txn: &mut Txn<'_>, account: i64, note: i64) -> Result<(), Stop> {
    let table = txn.table(LEDGER).ok_or(Stop::Recompile)?;
    let done = txn.update(&table, &account_key(account), &[(2, Cell::Int8(note))])?;
    if done == Inserted::Ok { Ok(()) } else { Err(Stop::Abort) }
}

fn add(txn: &mut Txn<'_>, account: i64, more: i64) -> Result<(), Stop> {
    let have = amount(txn, account)?;
    let table = txn.table(LEDGER).ok_or(Stop::Recompile)?;
    let done = txn.update(&table, &account_key(account), &[(1, Cell::Int8(have + more))])?;
    if done == Inserted::Ok { Ok(()) } else { Err(Stop::Abort) }
}

/// Rows in order, checked against both indexes.
fn entries(engine: &Engine) -> Vec<(i64, i64)> {
    unpredicted(engine, |txn| {
        let table = txn.table(LEDGER).ok_or(Stop::Recompile)?;
        let mut rows = Vec::new();
        txn.scan(&table, KeyRange::ALL, Direction::Ascending, &mut |_, row| {
            rows.push((int8(&table, row, 0), int8(&table, row, 1)));
            ControlFlow::Continue(())
        })?;
        for index in [BY_AMOUNT, BY_NOTE] {
            let def = table.index(index).ok_or(Stop::Recompile)?.def.clone();
            let mut keys = Vec::new();
            txn.scan_index(&table, &def, KeyRange::ALL, Direction::Ascending, &mut |_, key| {
                keys.push(key.to_vec());
                ControlFlow::Continue(())
            })?;
            if index == BY_NOTE {
                keys.reverse();
            }
            let wanted: Vec<Vec<u8>> =
                rows.iter().map(|(account, _)| account_key(*account).to_vec()).collect();
            assert_eq!(keys, wanted, "index {index}");
        }
        Ok(rows)
    })
    .0
    .expect("scanned")
}

fn regroup(engine: &Engine, group: GroupId) -> Result<(), Stop> {
    ddl(engine, alter(Placement::Distributed { group }))
}

fn alter(placement: Placement) -> DdlOp {
    let columns = (0..3).map(ColumnSource::Kept).collect();
    DdlOp::AlterTable { def: ledger(placement), columns }
}

/// The bank in four partitions, the ledger in three of its own.
fn world() -> (Engine, MemoryStore) {
    let (engine, store) = stepped();
    fill(&engine);
    (engine, store)
}

fn fill(engine: &Engine) {
    open_bank(engine, 40);
    ddl(engine, DdlOp::CreateTable(ledger(Placement::Distributed { group: OWN }))).expect("made");
    let made = unpredicted(engine, |txn| {
        for account in 0..40 {
            assert_eq!(put(txn, account, account)?, Inserted::Ok);
        }
        Ok(())
    });
    made.0.expect("filled");
    for (group, keys) in [(BANK, [10, 20, 30].as_slice()), (OWN, &[5, 25])] {
        let keys = keys.iter().map(|key| account_key(*key)).collect();
        engine.pre_split(group, keys).wait().outcome.result.expect("split");
    }
}

fn expected() -> Vec<(i64, i64)> {
    (0..40).map(|account| (account, account)).collect()
}

#[test]
fn a_table_takes_over_the_boundaries_of_its_new_group() {
    let (engine, store) = world();
    regroup(&engine, BANK).expect("regrouped");
    assert!(engine.routing().routes(OWN).is_empty(), "nothing is left of its group");
    assert_eq!(engine.routing().routes(BANK).len(), 4);
    assert_eq!(entries(&engine), expected());
    // One partition holds what belongs together now.
    let (done, outcome) = run(
        &engine,
        |_, claims| claims.add_point(BANK, &account_key(15)),
        |txn| {
            set_balance(txn, 15, 7).map(drop)?;
            add(txn, 15, 100)
        },
    );
    assert_eq!((done, outcome.partitions, outcome.restarts), (Ok(()), 1, 0));
    let history = engine.repartitions();
    let last = history.last().expect("it is told");
    assert_eq!((last.kind, last.group, last.table), (RepartitionKind::Regroup, BANK, Some(LEDGER)));
    // Splits and the way back.
    let merged: Vec<_> = engine.routing().routes(BANK).iter().map(|route| route.partition()).collect();
    let merge = archipel_engine::Repartition::Merge(merged[0], merged[1]);
    engine.repartition(merge, "test").wait().program.result.expect("merged");
    regroup(&engine, OWN).expect("and back");
    let mut now = expected();
    now[15].1 = 115;
    assert_eq!(entries(&engine), now);
    assert_eq!(engine.routing().routes(OWN).len(), 1);
    engine.step_log().expect("written");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(entries(&again), now);
    assert_eq!(again.routing().routes(BANK).len(), 3);
}

#[test]
fn a_change_of_groups_that_fails_leaves_nothing() {
    let (engine, store) = world();
    let before: Vec<_> = engine.routing().routes(OWN).iter().map(|route| route.low.to_vec()).collect();
    for placement in [Placement::Distributed { group: BANK }, Placement::Reference] {
        let (failed, _) = run(
            &engine,
            |_, claims| claims.everything(),
            move |txn| {
                assert_eq!(txn.ddl(alter(placement))?, Inserted::Ok);
                Err::<(), _>(Stop::Abort)
            },
        );
        assert_eq!(failed, Err(Stop::Abort));
        let lows: Vec<_> = engine.routing().routes(OWN).iter().map(|route| route.low.to_vec()).collect();
        assert_eq!(lows, before);
        assert_eq!(entries(&engine), expected());
    }
    assert_eq!(unpredicted(&engine, |txn| add(txn, 7, 1)).0, Ok(()));
    engine.step_log().expect("written");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(unpredicted(&again, |txn| amount(txn, 7)).0, Ok(8));
}

#[test]
fn rows_of_any_age_survive_a_crash_after_it() {
    // A checkpoint before the change, after it, and none.
    for checkpoints in [(false, false), (true, false), (false, true), (true, true)] {
        let (engine, store) = world();
        let step = |engine: &Engine| engine.step_log().expect("written");
        step(&engine);
        if checkpoints.0 {
            engine.checkpoint().expect("taken");
        }
        assert_eq!(unpredicted(&engine, |txn| add(txn, 3, 10)).0, Ok(()));
        regroup(&engine, BANK).expect("regrouped");
        assert_eq!(unpredicted(&engine, |txn| add(txn, 3, 100)).0, Ok(()));
        assert_eq!(unpredicted(&engine, |txn| add(txn, 33, 1)).0, Ok(()));
        step(&engine);
        if checkpoints.1 {
            engine.checkpoint().expect("taken");
        }
        assert_eq!(unpredicted(&engine, |txn| add(txn, 20, 5)).0, Ok(()));
        step(&engine);
        let again = reopen_stepped(&store.crash(Survivors::Synced));
        let mut now = expected();
        (now[3].1, now[33].1, now[20].1) = (113, 34, 25);
        assert_eq!(entries(&again), now, "{checkpoints:?}");
    }
}

#[test]
fn a_snapshot_reads_on_in_the_new_group() {
    let (engine, _) = world();
    let table = engine.table(LEDGER).expect("there");
    let snapshot = engine.snapshot();
    let first = snapshot.scan(&table, &[], None, 7).wait().program;
    assert_eq!(unpredicted(&engine, |txn| add(txn, 30, 1_000)).0, Ok(()));
    regroup(&engine, BANK).expect("regrouped");
    assert_eq!(unpredicted(&engine, |txn| add(txn, 31, 1_000)).0, Ok(()));
    let mut rows: Vec<Vec<u8>> = first.rows.iter().map(<[u8]>::to_vec).collect();
    let mut next = first.next;
    while let Some(low) = next {
        let done = snapshot.scan(&table, &low, None, 7).wait();
        assert_eq!(done.outcome.result, Ok(()));
        rows.extend(done.program.rows.iter().map(<[u8]>::to_vec));
        next = done.program.next;
    }
    let seen: Vec<_> = rows.iter().map(|row| (int8(&table, row, 0), int8(&table, row, 1))).collect();
    assert_eq!(seen, expected(), "the past is as it was");
}

#[test]
fn a_small_table_becomes_a_reference_table_and_comes_back() {
    let (engine, store) = world();
    engine.step_log().expect("written");
    engine.checkpoint().expect("taken");
    assert_eq!(unpredicted(&engine, |txn| add(txn, 3, 10)).0, Ok(()));
    ddl(&engine, alter(Placement::Reference)).expect("changed");
    let (read, outcome) = unpredicted(&engine, |txn| amount(txn, 3));
    assert_eq!((read, outcome.partitions), (Ok(13), 0), "read without a claim");
    assert_eq!(unpredicted(&engine, |txn| add(txn, 4, 10)).0, Ok(()));
    let mut now = expected();
    (now[3].1, now[4].1) = (13, 14);
    assert_eq!(entries(&engine), now);
    engine.step_log().expect("written");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(entries(&again), now);
    engine.checkpoint().expect("taken");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(entries(&again), now);
    regroup(&again, BANK).expect("distributed again");
    assert_eq!(entries(&again), now);
}

/// Its rows come to a partition that was written last in an older epoch than they were, and often.
#[test]
fn a_row_put_again_before_its_table_becomes_a_reference_table_outlives_the_checkpoint() {
    let (engine, store) = world();
    ddl(&engine, DdlOp::CreateTable(items_table())).expect("made");
    let filled = unpredicted(&engine, |txn| {
        let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
        for id in 0..50 {
            let row = table.layout.encode_row(&[Cell::Int4(id), Cell::Int8(1)]);
            assert_eq!(txn.insert(&table, &item_key(id), &row)?, Inserted::Ok);
        }
        Ok(())
    });
    filled.0.expect("filled");
    engine.step_log().expect("written");
    let deleted = unpredicted(&engine, |txn| {
        let table = txn.table(LEDGER).ok_or(Stop::Recompile)?;
        txn.delete(&table, &account_key(3))
    });
    assert_eq!(deleted.0, Ok(true));
    assert_eq!(unpredicted(&engine, |txn| put(txn, 3, 3)).0, Ok(Inserted::Ok));
    ddl(&engine, alter(Placement::Reference)).expect("changed");
    engine.step_log().expect("written");
    engine.checkpoint().expect("taken");
    assert_eq!(entries(&engine), expected());
    assert_eq!(entries(&reopen_stepped(&store.crash(Survivors::Synced))), expected());
}

const COPY: TreeId = TreeId(130);
const COPY_BY_NOTE: TreeId = TreeId(131);

/// The ledger by its amounts, beside the bank.
fn by_amount() -> TableDef {
    let mut def = ledger(Placement::Distributed { group: BANK });
    def.id = COPY;
    def.key = vec![key_column(1), key_column(0)];
    def.indexes.remove(0);
    def.indexes[0].id = COPY_BY_NOTE;
    def.indexes[0].placement = IndexPlacement::Global { group: GroupId(COPY_BY_NOTE.0) };
    def
}

/// Rows of the copy by account.
fn copied(engine: &Engine) -> Vec<(i64, i64)> {
    let rows = unpredicted(engine, |txn| {
        let table = txn.table(COPY).ok_or(Stop::Recompile)?;
        let mut rows = Vec::new();
        txn.scan(&table, KeyRange::ALL, Direction::Ascending, &mut |_, row| {
            rows.push((int8(&table, row, 0), int8(&table, row, 1)));
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    });
    let mut rows = rows.0.expect("scanned");
    assert!(rows.is_sorted_by_key(|(account, amount)| (*amount, *account)));
    rows.sort_unstable();
    rows
}

/// Copies the ledger slice by slice, with something else in between; answers how it ended.
fn copy_with(engine: &Engine, between: impl Fn(usize)) -> Result<(), Stop> {
    let columns: Vec<ColumnSource> = (0..3).map(ColumnSource::Kept).collect();
    let begin = BeginCopy { from: LEDGER, def: by_amount(), since: 0 };
    let begun = engine.submit(begin, SubmitOptions::default()).wait();
    begun.outcome.result.expect("begun");
    let (mut after, mut slices) = (None, 0);
    loop {
        let slice = CopySlice {
            from: LEDGER,
            to: COPY,
            groups: Some((OWN, BANK)),
            columns: columns.clone(),
            after,
            rows_max: 7,
            last: None,
        };
        let done = engine.submit(slice, SubmitOptions::default()).wait();
        done.outcome.result.expect("copied");
        let Some(last) = done.program.last else { break };
        after = Some(last);
        between(slices);
        slices += 1;
    }
    let since = begun.program.since;
    let (ended, _) = run(
        engine,
        |_, claims| claims.everything(),
        move |txn| {
            let end = DdlOp::CatchUp { from: LEDGER, to: COPY, columns: columns.clone(), since };
            match txn.ddl(end)? {
                Inserted::Ok => txn.ddl(DdlOp::DropTable(LEDGER)).map(drop),
                _ => Err(Stop::Abort),
            }
        },
    );
    ended
}

#[test]
fn a_copy_made_beside_writers_is_what_they_left() {
    let (engine, store) = world();
    let snapshot = engine.snapshot();
    let ended = copy_with(&engine, |slice| {
        if slice >= 6 {
            return;
        }
        // Where the copy has been, and where it has not.
        let slice = slice as i64;
        for account in [slice, 39 - slice] {
            assert_eq!(unpredicted(&engine, move |txn| set_note(txn, account, slice)).0, Ok(()));
        }
        let made = unpredicted(&engine, move |txn| put(txn, 100 + slice, slice).map(drop));
        assert_eq!(made.0, Ok(()));
    });
    assert_eq!(ended, Ok(()));
    assert!(engine.table(LEDGER).is_none());
    let mut now = expected();
    now.extend((0..6).map(|slice| (100 + slice, slice)));
    assert_eq!(copied(&engine), now);
    let table = engine.table(COPY).expect("there");
    let seen = snapshot.scan(&table, &[], None, 100).wait().outcome.result;
    assert_eq!(seen, Err(Stop::ConcurrentUpdate), "its past is nobody's");
    drop(snapshot);
    let later = engine.snapshot();
    assert_eq!(later.scan(&table, &[], None, 100).wait().outcome.result, Ok(()));
    drop(later);
    engine.step_log().expect("written");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(copied(&again), now);
}

#[test]
fn a_copy_that_misses_a_deletion_is_given_up() {
    for moves in [false, true] {
        let (engine, store) = world();
        let ended = copy_with(&engine, |slice| {
            if slice == 3 {
                let changed = unpredicted(&engine, move |txn| match moves {
                    // The copy has the row under another key.
                    true => add(txn, 2, 1_000),
                    false => {
                        let table = txn.table(LEDGER).ok_or(Stop::Recompile)?;
                        assert!(txn.delete(&table, &account_key(2))?);
                        Ok(())
                    }
                });
                assert_eq!(changed.0, Ok(()));
            }
        });
        assert_eq!(ended, Err(Stop::Abort));
        let mut now = expected();
        match moves {
            true => now[2].1 += 1_000,
            false => drop(now.remove(2)),
        }
        assert_eq!(entries(&engine), now, "the table is as it was");
        ddl(&engine, DdlOp::DropTable(COPY)).expect("dropped");
        engine.step_log().expect("written");
        assert_eq!(entries(&reopen_stepped(&store.crash(Survivors::Synced))), now);
    }
}

/// Transactions over both tables, checkpoints, and a table that goes back and forth: nothing is
/// lost, nothing is done twice, in memory and after a crash.
#[test]
fn work_goes_on_while_a_table_changes_groups() {
    let store = MemoryStore::new();
    let engine = Engine::open(config(2), Arc::new(store.clone())).expect("opens");
    let (stop, executors) = start_executors(&engine, 2);
    fill(&engine);
    let done = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (0..2i64)
        .map(|client| {
            let (engine, stop, done) = (engine.clone(), stop.clone(), done.clone());
            std::thread::spawn(move || {
                let mut account = client;
                while !stop.load(Ordering::Relaxed) {
                    account = (account + 7) % 40;
                    let (moved, _) = run(
                        &engine,
                        move |_, claims| claims.add_point(BANK, &account_key(account)),
                        move |txn| {
                            let have = balance(txn, account)?.ok_or(Stop::Abort)?;
                            assert_eq!(set_balance(txn, account, have - 1)?, Inserted::Ok);
                            add(txn, account, 1)
                        },
                    );
                    match moved {
                        Ok(()) => {
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(Stop::Recompile) => {}
                        other => panic!("{other:?}"),
                    }
                }
            })
        })
        .collect();
    for round in 0..30 {
        let placement = match round % 3 {
            0 => Placement::Distributed { group: BANK },
            1 => Placement::Reference,
            _ => Placement::Distributed { group: OWN },
        };
        ddl(&engine, alter(placement)).expect("changed");
        if round % 5 == 0 {
            engine.checkpoint().expect("taken");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    stop.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().expect("a client ends well"));
    let moved = done.load(Ordering::Relaxed) as i64;
    assert!(moved > 0);
    let check = |engine: &Engine| {
        let taken: i64 = unpredicted(engine, |txn| all_accounts(txn, Direction::Ascending))
            .0
            .expect("scanned")
            .iter()
            .map(|(_, _, balance)| 100 - balance)
            .sum();
        let added: i64 = entries(engine).iter().map(|(account, amount)| amount - account).sum();
        assert_eq!((taken, added), (moved, moved));
    };
    check(&engine);
    executors.into_iter().for_each(|executor| executor.join().expect("ends"));
    drop(engine);
    let config = EngineConfig { background: false, ..config(2) };
    check(&Engine::open(config, Arc::new(store.crash(Survivors::All))).expect("opens again"));
}
