//! Splits, merges and moves beside what is in progress, and after a crash.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{ExecutorId, GroupId, PartitionId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::log::memory::Survivors;
use archipel_engine::random::RandomStream;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::txn::Commit;
use archipel_engine::{
    ClaimSet, DdlOp, Direction, Engine, EngineConfig, Inserted, Interactive, LockMode, LockWait, Repartition,
    RepartitionKind, RepartitionRefused, SliceBudget, Stop, SubmitOptions, Txn,
};
use common::*;

const GROUP: GroupId = GroupId(ACCOUNTS.0);

fn bank() -> (Engine, MemoryStore) {
    let (engine, store) = stepped();
    open_bank(&engine, 40);
    engine
        .pre_split(GROUP, vec![account_key(10), account_key(20), account_key(30)])
        .wait()
        .outcome
        .result
        .expect("split");
    (engine, store)
}

fn partitions(engine: &Engine) -> Vec<PartitionId> {
    engine.routing().routes(GROUP).iter().map(|route| route.partition()).collect()
}

fn change(engine: &Engine, change: Repartition) -> Result<(), RepartitionRefused> {
    let done = engine.repartition(change, "test").wait();
    done.outcome.result.expect("an action ends");
    done.program.result
}

fn boundaries(engine: &Engine) -> Vec<(Vec<u8>, ExecutorId)> {
    engine.routing().routes(GROUP).iter().map(|route| (route.low.to_vec(), route.home())).collect()
}

fn all(engine: &Engine) -> Vec<(i64, String, i64)> {
    let up = unpredicted(engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
    let mut down = unpredicted(engine, |txn| all_accounts(txn, Direction::Descending)).0.expect("scanned");
    down.reverse();
    assert_eq!(up, down);
    up
}

#[test]
fn merged_partitions_hold_the_rows_of_both() {
    let (engine, _) = bank();
    let before = all(&engine);
    let ids = partitions(&engine);
    // In either order.
    change(&engine, Repartition::Merge(ids[2], ids[1])).expect("neighbours");
    assert_eq!(partitions(&engine), [ids[0], ids[1], ids[3]]);
    assert_eq!(all(&engine), before);
    assert_eq!(unpredicted(&engine, |txn| transfer(txn, 15, 25, 7)).0, Ok(()));
    assert_eq!(
        unpredicted(&engine, |txn| Ok((balance(txn, 15)?, balance(txn, 25)?))).0,
        Ok((Some(93), Some(107)))
    );
    change(&engine, Repartition::Split { group: GROUP, at: account_key(25) }).expect("split");
    change(&engine, Repartition::Merge(ids[0], ids[1])).expect("neighbours");
    assert_eq!(all(&engine).len(), 40);
    assert_eq!(engine.routing().routes(GROUP).len(), 3);
    let history: Vec<_> = engine.repartitions().iter().map(|done| (done.kind, done.reason)).collect();
    let split = (RepartitionKind::Split, "test");
    let merge = (RepartitionKind::Merge, "test");
    assert_eq!(history[3..], [merge, split, merge]);
}

/// Accounts in no order.
fn shuffled(accounts: i64, random: &mut RandomStream) -> Vec<i64> {
    let mut order: Vec<(u64, i64)> = (0..accounts).map(|id| (random.below(1 << 40), id)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, id)| id).collect()
}

/// A bank with a partition for each of its 40 accounts, whose numbers stand in no order.
fn scattered_bank(random: &mut RandomStream) -> Engine {
    let (engine, _) = bank();
    for _ in 0..100 {
        let at = account_key(1 + random.below(39) as i64);
        let _ = change(&engine, Repartition::Split { group: GROUP, at });
        let ids = partitions(&engine);
        let left = random.below(ids.len() as u64 - 1) as usize;
        if random.below(2) == 0 {
            change(&engine, Repartition::Merge(ids[left + 1], ids[left])).expect("neighbours");
        }
    }
    // The first one begins at the least key.
    for account in shuffled(40, random).into_iter().filter(|account| *account > 0) {
        let _ = change(&engine, Repartition::Split { group: GROUP, at: account_key(account) });
    }
    let ids = partitions(&engine);
    assert!(ids.len() == 40 && !ids.is_sorted(), "{ids:?}");
    engine
}

#[test]
fn whoever_holds_many_partitions_finds_each_of_them() {
    let mut random = RandomStream::new(17);
    let engine = scattered_bank(&mut random);
    for is_predicted in [true, false] {
        let predict = move |_: &archipel_engine::RoutingTable, claims: &mut ClaimSet| {
            if is_predicted {
                claims.add_group(GROUP);
            }
        };
        let (there, back) = (shuffled(40, &mut random), shuffled(40, &mut random));
        let (result, outcome) = run(&engine, predict, move |txn| {
            for account in &there {
                assert_eq!(balance(txn, *account)?, Some(100), "account {account}");
            }
            let up = all_accounts(txn, Direction::Ascending)?;
            let mut down = all_accounts(txn, Direction::Descending)?;
            down.reverse();
            assert!(up == down && up.len() == 40);
            for account in &back {
                transfer(txn, *account, (account + 17) % 40, 3)?;
            }
            Ok(txn.partitions_held())
        });
        assert_eq!((result, outcome.restarts), (Ok(40), 0), "each is claimed once");
    }
    assert!(all(&engine).iter().all(|(_, _, balance)| *balance == 100));
}

#[test]
fn a_commit_of_many_changes_claims_each_partition_once() {
    let mut random = RandomStream::new(18);
    let engine = scattered_bank(&mut random);
    let transaction = engine.begin();
    let order = shuffled(40, &mut random);
    within(&engine, &transaction, move |txn| {
        for round in 0..30 {
            for account in &order {
                assert_eq!(set_balance(txn, *account, round)?, Inserted::Ok);
            }
        }
        Ok(())
    })
    .expect("the statement runs");
    // In one piece, as with definitions: alone it would go in slices.
    let committed = engine.submit(Commit::of(&transaction), SubmitOptions::default()).wait().outcome;
    assert_eq!((committed.result, committed.restarts, committed.partitions), (Ok(()), 0, 40));
    assert!(all(&engine).iter().all(|(_, _, balance)| *balance == 29));
}

#[test]
fn contradictions_are_refused_and_change_nothing() {
    let (engine, _) = bank();
    let ids = partitions(&engine);
    let before = boundaries(&engine);
    let split = |at: i64| Repartition::Split { group: GROUP, at: account_key(at) };
    assert_eq!(change(&engine, split(10)), Err(RepartitionRefused::BoundaryExists(ids[1])));
    assert_eq!(
        change(&engine, Repartition::Split { group: GroupId(999), at: account_key(1) }),
        Err(RepartitionRefused::NoGroup(GroupId(999)))
    );
    assert_eq!(
        change(&engine, Repartition::Merge(ids[0], ids[2])),
        Err(RepartitionRefused::NotNeighbours(ids[0], ids[2]))
    );
    assert_eq!(
        change(&engine, Repartition::Merge(ids[1], ids[1])),
        Err(RepartitionRefused::NotNeighbours(ids[1], ids[1]))
    );
    let gone = PartitionId(9_999);
    assert_eq!(change(&engine, Repartition::Merge(ids[0], gone)), Err(RepartitionRefused::NoPartition(gone)));
    let to = ExecutorId(77);
    assert_eq!(
        change(&engine, Repartition::Move { partition: ids[0], to }),
        Err(RepartitionRefused::NoExecutor(to))
    );
    let references = engine.routing().routes(archipel_engine::REFERENCE_GROUP)[0].partition();
    assert_eq!(
        change(&engine, Repartition::Move { partition: references, to: ExecutorId(1) }),
        Err(RepartitionRefused::Reference)
    );
    assert_eq!(boundaries(&engine), before);
    // A partition that was merged away is no partition any more.
    change(&engine, Repartition::Merge(ids[0], ids[1])).expect("neighbours");
    assert_eq!(
        change(&engine, Repartition::Merge(ids[1], ids[2])),
        Err(RepartitionRefused::NoPartition(ids[1]))
    );
}

#[test]
fn boundaries_and_homes_survive_a_crash() {
    let (engine, store) = bank();
    let ids = partitions(&engine);
    change(&engine, Repartition::Merge(ids[0], ids[1])).expect("neighbours");
    let to = ExecutorId(1 - engine.routing().routes(GROUP)[0].home().0);
    change(&engine, Repartition::Move { partition: ids[0], to }).expect("there");
    change(&engine, Repartition::Split { group: GROUP, at: account_key(35) }).expect("split");
    assert_eq!(engine.routing().routes(GROUP)[0].home(), to);
    let before = (boundaries(&engine), all(&engine));
    engine.step_log().expect("written");
    let again = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!((boundaries(&again), all(&again)), before);
}

#[test]
fn locks_images_and_waiters_move_along() {
    let (engine, _) = bank();
    let transaction = engine.begin();
    assert_eq!(within(&engine, &transaction, |txn| transfer(txn, 5, 15, 50)), Ok(()));
    let ids = partitions(&engine);
    // Somebody waits for a row that is locked in the partition to the right.
    let mut waiting =
        engine.submit(script(|_, _| {}, |txn| transfer(txn, 15, 25, 1)), SubmitOptions::default());
    assert!(waiting.try_take().is_none());
    change(&engine, Repartition::Merge(ids[0], ids[1])).expect("neighbours");
    change(&engine, Repartition::Merge(ids[0], ids[2])).expect("neighbours");
    assert!(waiting.try_take().is_none(), "the lock is still there");
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 15)), Ok(Some(150)), "and the image");
    change(&engine, Repartition::Split { group: GROUP, at: account_key(14) }).expect("split");
    engine.commit(&transaction).wait().outcome.result.expect("committed");
    assert_eq!(finish(waiting.wait()).0, Ok(()), "it was woken where the row is now");
    assert_eq!(
        unpredicted(&engine, |txn| Ok((balance(txn, 5)?, balance(txn, 15)?, balance(txn, 25)?))).0,
        Ok((Some(50), Some(149), Some(101)))
    );
}

/// A step of a transaction at an account, as a caller knows it: what the account has then.
fn random_step(
    engine: &Engine,
    transaction: &Interactive,
    (id, balance): (i64, Option<i64>),
    random: &mut RandomStream,
) -> Option<i64> {
    let new = random.below(1_000) as i64;
    let (kind, table) = (random.below(5), |txn: &Txn<'_>| txn.table(ACCOUNTS).ok_or(Stop::Recompile));
    within(engine, transaction, move |txn| match (kind, balance) {
        (0, _) => {
            let table = table(txn)?;
            let there = txn.lock_row(&table, &account_key(id), LockMode::Update, LockWait::NoWait)?;
            assert_eq!(there, balance.is_some());
            Ok(balance)
        }
        (1, Some(_)) => {
            let table = table(txn)?;
            assert!(txn.delete(&table, &account_key(id))?);
            Ok(None)
        }
        (_, Some(_)) => {
            assert_eq!(set_balance(txn, id, new)?, Inserted::Ok);
            Ok(Some(new))
        }
        (_, None) => {
            assert_eq!(insert_account(txn, id, &format!("owner {id}"), new)?, Inserted::Ok);
            Ok(Some(new))
        }
    })
    .expect("nobody is in its way")
}

/// Splits the bank somewhere, or joins two neighbours.
fn random_change(engine: &Engine, random: &mut RandomStream) {
    let at = account_key(1 + random.below(39) as i64);
    let _ = change(engine, Repartition::Split { group: GROUP, at });
    let ids = partitions(engine);
    let left = random.below(ids.len() as u64 - 1) as usize;
    if random.below(2) == 0 {
        change(engine, Repartition::Merge(ids[left], ids[left + 1])).expect("neighbours");
    }
}

#[test]
fn what_a_transaction_has_done_moves_along_and_is_taken_back_anywhere() {
    let mut random = RandomStream::new(5);
    for round in 0..30 {
        let (engine, _) = bank();
        let before = all(&engine);
        let transaction = engine.begin();
        let mut now: BTreeMap<i64, Option<i64>> = (0..40).map(|id| (id, Some(100))).collect();
        let mut savepoint = (transaction.savepoint(), now.clone());
        for _ in 0..80 {
            match random.below(10) {
                0 => savepoint = (transaction.savepoint(), now.clone()),
                1 => {
                    let back = engine.rollback_to(&transaction, savepoint.0).wait();
                    back.outcome.result.expect("taken back");
                    now.clone_from(&savepoint.1);
                }
                2 | 3 => random_change(&engine, &mut random),
                _ => {
                    let id = random.below(40) as i64;
                    let after = random_step(&engine, &transaction, (id, now[&id]), &mut random);
                    now.insert(id, after);
                }
            }
        }
        let known: Vec<(i64, i64)> =
            now.iter().filter_map(|(id, balance)| Some((*id, (*balance)?))).collect();
        let balances =
            |rows: &[(i64, String, i64)]| rows.iter().map(|row| (row.0, row.2)).collect::<Vec<(i64, i64)>>();
        let own = within(&engine, &transaction, |txn| all_accounts(txn, Direction::Ascending));
        assert_eq!(balances(&own.expect("scanned")), known);
        assert_eq!(all(&engine), before, "nobody else sees any of it");
        let commits = round % 2 == 0;
        match commits {
            true => engine.commit(&transaction).wait().outcome.result.expect("committed"),
            false => engine.rollback(&transaction).wait().outcome.result.expect("rolled back"),
        }
        assert_eq!(balances(&all(&engine)), if commits { known } else { balances(&before) });
        // No lock is left behind, wherever the rows have gone.
        let other = engine.begin();
        for id in 0..40 {
            let locked = within(&engine, &other, move |txn| {
                let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
                txn.lock_row(&table, &account_key(id), LockMode::Update, LockWait::NoWait)
            });
            assert!(locked.is_ok(), "account {id}: {locked:?}");
        }
        engine.rollback(&other).wait().outcome.result.expect("rolled back");
    }
}

#[test]
fn a_snapshot_reads_on_across_merges_and_splits() {
    let (engine, _) = bank();
    let table = engine.table(ACCOUNTS).expect("there");
    let snapshot = engine.snapshot();
    let first = snapshot.scan(&table, &[], None, 7).wait().program;
    assert_eq!(unpredicted(&engine, |txn| transfer(txn, 15, 35, 99)).0, Ok(()));
    let ids = partitions(&engine);
    change(&engine, Repartition::Merge(ids[1], ids[2])).expect("neighbours");
    let mut rows: Vec<Vec<u8>> = first.rows.iter().map(<[u8]>::to_vec).collect();
    let mut next = first.next;
    while let Some(low) = next {
        let page = snapshot.scan(&table, &low, None, 7).wait().program;
        rows.extend(page.rows.iter().map(<[u8]>::to_vec));
        next = page.next;
        // The next page finds another shape.
        let at = account_key(12 + rows.len() as i64 / 2);
        let _ = change(&engine, Repartition::Split { group: GROUP, at });
    }
    assert_eq!(rows.len(), 40);
    assert!(rows.iter().all(|row| int8(&table, row, 2) == 100), "the past is as it was");
    drop(snapshot);
}

/// Work that waits for a partition while it is split, merged and moved is run once, in its
/// order, where its keys are then.
#[test]
fn queued_work_follows_its_keys() {
    let (engine, _) = bank();
    let handles: Vec<_> =
        (0..2).map(|id| engine.attach_executor(ExecutorId(id)).expect("nobody drives it")).collect();
    let ids = partitions(&engine);
    // Not on an executor's thread: everything queues until the executors are drained.
    let merge = engine.repartition(Repartition::Merge(ids[1], ids[2]), "test");
    let mut deposits = Vec::new();
    for id in [12, 25, 18, 22, 12, 25] {
        let deposit = script(
            move |_, claims: &mut ClaimSet| claims.add_point(GROUP, &account_key(id)),
            move |txn| {
                let have = balance(txn, id)?.ok_or(Stop::Abort)?;
                assert_eq!(set_balance(txn, id, have + 1)?, Inserted::Ok);
                Ok(have)
            },
        );
        deposits.push(engine.submit(deposit, SubmitOptions::default()));
    }
    let split = engine.repartition(Repartition::Split { group: GROUP, at: account_key(17) }, "test");
    let to = ExecutorId(1 - engine.routing().routes(GROUP)[1].home().0);
    let moved = engine.repartition(Repartition::Move { partition: ids[1], to }, "test");
    for _ in 0..50 {
        for handle in &handles {
            handle.drain(SliceBudget { actions: 1, micros: 1_000_000 });
        }
    }
    drop(handles);
    let results: Vec<_> = deposits.into_iter().map(|deposit| finish(deposit.wait())).collect();
    let seen: Vec<_> = results.iter().map(|(value, _)| value.expect("deposited")).collect();
    assert_eq!(seen, [100, 100, 100, 100, 101, 101], "each once, in the order they came");
    assert!(results.iter().all(|(_, outcome)| outcome.restarts == 0), "forwarded, not started again");
    for change in [merge, split, moved] {
        let done = change.wait();
        assert_eq!((done.outcome.result, done.program.result), (Ok(()), Ok(())));
    }
    assert_eq!(engine.routing().routes(GROUP)[1].home(), to);
}

#[test]
fn a_global_index_can_be_merged_too() {
    let (engine, _) = bank();
    let group = GroupId(BY_OWNER.0);
    engine
        .pre_split(group, vec![owner_key("owner 2"), owner_key("owner 3")])
        .wait()
        .outcome
        .result
        .expect("split");
    let ids: Vec<_> = engine.routing().routes(group).iter().map(|route| route.partition()).collect();
    assert_eq!(ids.len(), 3);
    change(&engine, Repartition::Merge(ids[1], ids[0])).expect("neighbours");
    for id in [0, 19, 20, 39] {
        let owner = format!("owner {id}");
        let found = unpredicted(&engine, move |txn| account_of(txn, &owner)).0;
        assert_eq!(found, Ok(Some(account_key(id).to_vec())));
    }
}

/// A table of scattered keys, in a group of its own.
fn facts() -> Engine {
    let config = EngineConfig { background: false, ..config(3) };
    let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("opens");
    let table = archipel_engine::schema::TableDef {
        id: FACTS,
        name: "facts".to_owned(),
        columns: vec![ColumnKind::Int8],
        key: vec![key_column(0)],
        placement: archipel_engine::schema::Placement::Distributed { group: GroupId(FACTS.0) },
        indexes: Vec::new(),
    };
    ddl(&engine, DdlOp::CreateTable(table)).expect("made");
    engine
}

const FACTS: TreeId = TreeId(300);

fn insert_facts(engine: &Engine, ids: std::ops::Range<i64>) {
    let made = unpredicted(engine, move |txn| {
        let table = txn.table(FACTS).ok_or(Stop::Recompile)?;
        for id in ids.clone() {
            let id = id.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
            let mut key = archipel_engine::storage::KeyBuf::new();
            encode_cell(&mut key, Cell::Int8(id), &key_column(0), ColumnKind::Int8);
            let row = table.layout.encode_row(&[Cell::Int8(id)]);
            assert_eq!(txn.insert(&table, &key, &row)?, Inserted::Ok);
        }
        Ok(())
    });
    assert_eq!(made.0, Ok(()));
}

/// About four partitions for each of three executors.
fn assert_spread(engine: &Engine) {
    let routing = engine.routing();
    let routes = routing.routes(GroupId(FACTS.0));
    assert!((10..=12).contains(&routes.len()), "{} partitions", routes.len());
    for executor in 0..3 {
        let homes = routes.iter().filter(|route| route.home() == ExecutorId(executor)).count();
        assert!((3..=4).contains(&homes), "executor {executor} has {homes}");
    }
    assert!(engine.repartitions().iter().all(|done| done.reason == "spread over executors"));
}

#[test]
fn a_group_that_fills_spreads_over_the_executors() {
    let engine = facts();
    (0..1_500).for_each(|id| insert_facts(&engine, id..id + 1));
    assert_eq!(engine.routing().routes(GroupId(FACTS.0)).len(), 1, "a small group stays in one piece");
    (1_500..60_000).for_each(|id| insert_facts(&engine, id..id + 1));
    assert_spread(&engine);
}

#[test]
fn a_group_filled_by_one_transaction_spreads_too() {
    let engine = facts();
    insert_facts(&engine, 0..50_000);
    // The splits are queued work, and this thread does it while it waits for work of its own.
    (50_000..50_050).for_each(|id| insert_facts(&engine, id..id + 1));
    assert_spread(&engine);
}
