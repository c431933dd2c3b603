//! COMMIT and ROLLBACK of many changes, which go in slices: what others meet between them.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_engine::id::GroupId;
use archipel_engine::log::memory::Survivors;
use archipel_engine::log::{LogLimits, LogStore, MemoryStore};
use archipel_engine::txn::{Commit, Rollback};
use archipel_engine::{
    Direction, Engine, EngineConfig, Inserted, Interactive, Isolation, LockMode, LockWait, REFERENCE_GROUP,
    Snapshot, Start, Stop, Submission, SubmitOptions,
};
use common::*;

const ACCOUNTS_COUNT: i64 = 60;

/// Two partitions of 60 accounts with 100 each; slices of three changes, which nobody runs by himself.
fn bank() -> (Engine, MemoryStore) {
    bank_with(EngineConfig::default())
}

/// The same, with these bounds of memory and parts.
fn bank_with(bounds: EngineConfig) -> (Engine, MemoryStore) {
    let store = MemoryStore::new();
    let config = EngineConfig {
        background: false,
        ended_at_once: 10,
        slice_changes_max: 3,
        max_memory_bytes: bounds.max_memory_bytes,
        log: bounds.log,
        ..config(1)
    };
    let engine = Engine::open(config, Arc::new(store.clone())).expect("the engine opens");
    open_bank(&engine, ACCOUNTS_COUNT);
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(30)]).wait().outcome.result.expect("it splits");
    (engine, store)
}

/// A transaction that has given all accounts from 10 on 1 less, has made account 1000 of these, and has
/// deleted account 5, which had 100.
fn many_changes(engine: &Engine, isolation: Isolation) -> Interactive {
    let transaction = engine.begin_at(isolation, false);
    within(engine, &transaction, |txn| {
        for id in 10..ACCOUNTS_COUNT {
            let now = balance(txn, id)?.unwrap_or_default();
            assert_eq!(set_balance(txn, id, now - 1)?, Inserted::Ok);
        }
        assert_eq!(insert_account(txn, 1_000, "thousand", 150)?, Inserted::Ok);
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert!(txn.delete(&table, &account_key(5))?);
        Ok(())
    })
    .expect("written");
    transaction
}

type Balances = BTreeMap<i64, i64>;

fn before() -> Balances {
    (0..ACCOUNTS_COUNT).map(|id| (id, 100)).collect()
}

fn after() -> Balances {
    let changed = before().into_iter().filter(|(id, _)| *id != 5);
    let mut all: Balances = changed.map(|(id, had)| (id, if id >= 10 { had - 1 } else { had })).collect();
    all.insert(1_000, 150);
    all
}

fn balances(rows: Vec<(i64, String, i64)>) -> Balances {
    rows.into_iter().map(|(id, _, balance)| (id, balance)).collect()
}

/// All accounts, as a one-shot sees them.
fn all(engine: &Engine, direction: Direction) -> Balances {
    balances(unpredicted(engine, move |txn| all_accounts(txn, direction)).0.expect("read"))
}

fn as_of(engine: &Engine, snapshot: &Snapshot) -> Balances {
    let table = engine.table(ACCOUNTS).expect("it is there");
    let (mut low, mut all) = (Vec::new(), Balances::new());
    loop {
        let page = snapshot.scan(&table, &low, None, 7).wait();
        page.outcome.result.expect("read");
        all.extend(page.program.rows.iter().map(|row| (int8(&table, row, 0), int8(&table, row, 2))));
        match page.program.next {
            Some(next) => low = next.to_vec(),
            None => return all,
        }
    }
}

/// Takes one step of what is on its way, and says whether it has ended.
fn step(engine: &Engine, ending: &mut Submission<Commit>) -> Option<Result<(), Stop>> {
    if let Some(done) = ending.try_take() {
        return Some(done.outcome.result);
    }
    step_queues(engine);
    None
}

/// Serves what is ready by now, and nothing that becomes so meanwhile: there is one list, and nobody else.
fn step_queues(engine: &Engine) {
    let last = script(|_, claims| claims.add_group(REFERENCE_GROUP), |_| Ok(()));
    let options = SubmitOptions { start: Start::Queued, ..SubmitOptions::default() };
    engine.submit(last, options).wait().outcome.result.expect("it does nothing");
}

#[test]
fn readers_see_all_of_a_commit_or_nothing_whichever_way_they_look() {
    let (engine, _) = bank();
    let old = engine.snapshot();
    let transaction = many_changes(&engine, Isolation::ReadCommitted);
    let mut ending = engine.commit(&transaction);
    let (mut seen_before, mut seen_after) = (0, 0);
    let mut snapshots = Vec::new();
    for round in 0.. {
        if let Some(result) = step(&engine, &mut ending) {
            result.expect("committed");
            break;
        }
        let seen = match round % 4 {
            0 => all(&engine, Direction::Ascending),
            1 => all(&engine, Direction::Descending),
            2 => {
                let now = engine.snapshot();
                let seen = as_of(&engine, &now);
                snapshots.push((now, seen.clone()));
                seen
            }
            _ => {
                // Keys alone, each looked for by itself.
                let keys: Vec<i64> = (0..ACCOUNTS_COUNT).chain([1_000]).collect();
                let found = unpredicted(&engine, move |txn| {
                    keys.iter().map(|id| Ok((*id, balance(txn, *id)?))).collect::<Result<Vec<_>, Stop>>()
                });
                let found = found.0.expect("read").into_iter();
                found.filter_map(|(id, balance)| Some((id, balance?))).collect()
            }
        };
        match seen {
            seen if seen == before() => {
                assert_eq!(seen_after, 0, "what is committed is not taken back");
                seen_before += 1;
            }
            seen if seen == after() => seen_after += 1,
            seen => panic!("half of a transaction: {seen:?}"),
        }
        assert_eq!(as_of(&engine, &old), before(), "an older snapshot sees what it saw");
    }
    assert!(seen_before > 0 && seen_after > 0, "{seen_before} looks, and {seen_after}");
    assert_eq!(all(&engine, Direction::Ascending), after());
    for (snapshot, seen) in &snapshots {
        assert_eq!(as_of(&engine, snapshot), *seen);
    }
    assert_eq!(as_of(&engine, &old), before());
}

#[test]
fn what_is_committed_is_settled_in_slices_and_whoever_comes_before_settles_his_own() {
    let (engine, store) = bank();
    let transaction = many_changes(&engine, Isolation::ReadCommitted);
    let mut ending = engine.commit(&transaction);
    let one = || unpredicted(&engine, |txn| balance(txn, 40)).0.expect("read");
    while one() == Some(100) {
        assert_eq!(step(&engine, &mut ending), None, "it is not over before anybody sees it");
    }
    assert_eq!(one(), Some(99));
    // Nobody has settled these: they are written over, locked, deleted and made anew all the same.
    let add = |id| unpredicted(&engine, move |txn| set_balance(txn, id, 7)).0.expect("written");
    assert_eq!(add(50), Inserted::Ok);
    assert_eq!(add(5), Inserted::Missing);
    let other = engine.begin();
    let locked = within(&engine, &other, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.lock_row(&table, &account_key(51), LockMode::Update, LockWait::NoWait)
    });
    assert_eq!(locked, Ok(true));
    let deleted = within(&engine, &other, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.delete(&table, &account_key(52))
    });
    assert_eq!(deleted, Ok(true));
    assert_eq!(
        within(&engine, &other, |txn| insert_account(txn, 1_001, "thousand", 1)),
        Ok(Inserted::DuplicateKey(Some(BY_OWNER)))
    );
    assert_eq!(within(&engine, &other, |txn| insert_account(txn, 5, "five", 1)), Ok(Inserted::Ok));
    while step(&engine, &mut ending).is_none() {}
    engine.commit(&other).wait().outcome.result.expect("committed");
    let mut now = after();
    now.insert(50, 7);
    now.insert(5, 1);
    now.remove(&52);
    assert_eq!(all(&engine, Direction::Descending), now);
    engine.step_log().expect("written");
    let reopened = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(all(&reopened, Direction::Ascending), now);
}

#[test]
fn a_checkpoint_between_the_slices_has_what_is_committed() {
    let (engine, store) = bank();
    let transaction = many_changes(&engine, Isolation::ReadCommitted);
    let mut ending = engine.commit(&transaction);
    let one = || unpredicted(&engine, |txn| balance(txn, 40)).0.expect("read");
    while one() == Some(100) {
        assert_eq!(step(&engine, &mut ending), None, "it is not over before anybody sees it");
    }
    // Another one's images are in its way, and are not rows.
    let open = engine.begin();
    within(&engine, &open, |txn| {
        (0..10).filter(|id| *id != 5).try_for_each(|id| set_balance(txn, id, 0).map(drop))
    })
    .expect("written");
    engine.step_log().expect("written");
    engine.checkpoint().expect("it ends");
    engine.step_log().expect("written");
    let reopened = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(all(&reopened, Direction::Ascending), after());
    while step(&engine, &mut ending).is_none() {}
    assert_eq!(all(&engine, Direction::Ascending), after());
}

#[test]
fn a_rollback_frees_its_rows_at_once_and_leaves_none_of_them() {
    let (engine, _) = bank();
    let transaction = many_changes(&engine, Isolation::ReadCommitted);
    let waiting = engine.submit(script(|_, _| {}, |txn| set_balance(txn, 59, 1)), SubmitOptions::default());
    let mut ending: Submission<Rollback> = engine.rollback(&transaction);
    assert!(ending.try_take().is_none(), "it has gone a step, and has some before it");
    // Whoever comes takes out what is in its way.
    let other = engine.begin();
    assert_eq!(within(&engine, &other, |txn| set_balance(txn, 58, 2)), Ok(Inserted::Ok));
    assert_eq!(within(&engine, &other, |txn| insert_account(txn, 1_000, "thousand", 3)), Ok(Inserted::Ok));
    ending.wait().outcome.result.expect("rolled back");
    waiting.wait().outcome.result.expect("it waited for a row that is free");
    engine.commit(&other).wait().outcome.result.expect("committed");
    let mut now = before();
    now.extend([(59, 1), (58, 2), (1_000, 3)]);
    assert_eq!(all(&engine, Direction::Ascending), now);
}

#[test]
fn a_client_that_vanishes_leaves_its_transaction_to_whoever_ends_it() {
    let (engine, _) = bank();
    for steps in 0..60 {
        let transaction = many_changes(&engine, Isolation::ReadCommitted);
        let had = all(&engine, Direction::Ascending);
        let mut ending = engine.commit(&transaction);
        let mut ended = None;
        for _ in 0..steps {
            ended = ended.or_else(|| step(&engine, &mut ending));
        }
        drop((ending, transaction));
        (0..200).for_each(|_| step_queues(&engine));
        // It has committed: nobody has rolled back half of it.
        let now = all(&engine, Direction::Ascending);
        assert_eq!(now.get(&40), had.get(&40).copied().map(|had| had - 1).as_ref(), "after {steps} steps");
        assert_eq!(now.get(&1_000), Some(&150));
        // And back.
        unpredicted(&engine, |txn| {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            assert!(txn.delete(&table, &account_key(1_000))?);
            insert_account(txn, 5, "owner 5 again", 100)
        })
        .0
        .map(drop)
        .expect("no lock is left");
    }
}

#[test]
fn what_a_serializable_transaction_has_read_is_looked_at_above_what_is_unsettled() {
    let (engine, _) = bank();
    let reader = engine.begin_at(Isolation::Serializable, false);
    let seen = within(&engine, &reader, |txn| all_accounts(txn, Direction::Ascending)).expect("read");
    assert_eq!(balances(seen), before());
    let transaction = many_changes(&engine, Isolation::ReadCommitted);
    let mut ending = engine.commit(&transaction);
    let one = || unpredicted(&engine, |txn| balance(txn, 3)).0.expect("read");
    // It is committed when account 40 says so; nobody has looked at the others.
    while unpredicted(&engine, |txn| balance(txn, 40)).0 == Ok(Some(100)) {
        assert_eq!(step(&engine, &mut ending), None);
    }
    assert_eq!(one(), Some(100));
    let refused = within(&engine, &reader, |txn| set_balance(txn, 3, 1)).err();
    let result = match refused {
        Some(stop) => Err(stop),
        None => engine.commit(&reader).wait().outcome.result,
    };
    assert_eq!(result, Err(Stop::NotSerializable));
    while step(&engine, &mut ending).is_none() {}
    // A large one that has read what another one has changed does not commit either.
    let doomed = many_changes(&engine_with_five(&engine), Isolation::Serializable);
    unpredicted(&engine, |txn| set_balance(txn, 3, 1)).0.map(drop).expect("written");
    within(&engine, &doomed, |txn| balance(txn, 3)).map(drop).expect("read");
    unpredicted(&engine, |txn| set_balance(txn, 3, 2)).0.map(drop).expect("written");
    let had = all(&engine, Direction::Ascending);
    assert_eq!(engine.commit(&doomed).wait().outcome.result, Err(Stop::NotSerializable));
    engine.rollback(&doomed).wait().outcome.result.expect("rolled back");
    assert_eq!(all(&engine, Direction::Ascending), had);
}

/// The bank with account 5 there, and account 1000 not.
fn engine_with_five(engine: &Engine) -> Engine {
    unpredicted(engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        assert!(txn.delete(&table, &account_key(1_000))?);
        insert_account(txn, 5, "owner 5 again", 100)
    })
    .0
    .map(drop)
    .expect("written");
    engine.clone()
}

#[test]
fn a_commit_is_cancelled_before_it_is_decided_and_not_after() {
    let (engine, _) = bank();
    let cancel = |ending: &Submission<Commit>| {
        if let Some(canceller) = ending.canceller() {
            canceller.cancel(Stop::Cancelled);
        }
    };
    let transaction = many_changes(&engine, Isolation::ReadCommitted);
    let mut ending = engine.commit(&transaction);
    (0..3).for_each(|_| assert_eq!(step(&engine, &mut ending), None));
    cancel(&ending);
    assert_eq!(ending.wait().outcome.result, Err(Stop::Cancelled));
    engine.rollback(&transaction).wait().outcome.result.expect("rolled back");
    assert_eq!(all(&engine, Direction::Ascending), before());

    let transaction = many_changes(&engine, Isolation::ReadCommitted);
    let mut ending = engine.commit(&transaction);
    while unpredicted(&engine, |txn| balance(txn, 40)).0 == Ok(Some(100)) {
        assert_eq!(step(&engine, &mut ending), None);
    }
    cancel(&ending);
    assert_eq!(ending.wait().outcome.result, Ok(()));
    assert_eq!(all(&engine, Direction::Ascending), after());
}

#[test]
fn a_commit_beyond_the_memory_is_refused_and_leaves_nothing() {
    let log = LogLimits { part_bytes: 1_000, ..LogLimits::default() };
    let (engine, store) =
        bank_with(EngineConfig { max_memory_bytes: 600_000, log, ..EngineConfig::default() });
    engine.step_log().expect("written");
    let of_bank = store.part_ids().expect("readable");
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| {
        for id in 100..120 {
            let owner = format!("{id}{}", "x".repeat(50_000));
            assert_eq!(insert_account(txn, id, &owner, 1)?, Inserted::Ok);
        }
        Ok(())
    })
    .expect("images count when they become rows");
    let mut ending = engine.commit(&transaction);
    let mut parts_seen = 0;
    let result = loop {
        engine.step_log().expect("written");
        parts_seen = store.part_ids().expect("readable").len().max(parts_seen);
        if let Some(result) = step(&engine, &mut ending) {
            break result;
        }
    };
    assert_eq!(result, Err(Stop::OutOfMemory));
    engine.rollback(&transaction).wait().outcome.result.expect("rolled back");
    engine.step_log().expect("written");
    assert!(parts_seen > of_bank.len(), "it had sent some ahead");
    assert_eq!(store.part_ids().expect("readable"), of_bank, "and they are nobody's");
    assert_eq!(all(&engine, Direction::Ascending), before());
    let other = many_changes(&engine, Isolation::ReadCommitted);
    engine.commit(&other).wait().outcome.result.expect("there is room for it");
    assert_eq!(all(&engine, Direction::Ascending), after());
}
