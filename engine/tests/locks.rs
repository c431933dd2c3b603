//! LOCK TABLE, advisory locks and locks of new rows: who waits for whom, one-shots included, and what is
//! left.

mod common;

use archipel_engine::id::GroupId;
use archipel_engine::txn::Isolation;
use archipel_engine::{
    Client, Engine, Inserted, Interactive, LockScope, LockTables, LockTag, LockWait, ObjectMode, Stop,
    Submission, SubmitOptions, Txn,
};
use common::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const KEY: LockTag = advisory(7);

/// An advisory lock of one number.
const fn advisory(number: u32) -> LockTag {
    LockTag::Advisory { database: 5, first: 0, second: number, two: false }
}

fn bank() -> Engine {
    let (engine, _) = stepped();
    open_bank(&engine, 20);
    engine.pre_split(GroupId(ACCOUNTS.0), vec![account_key(10)]).wait().outcome.result.expect("it splits");
    engine
}

fn lock(
    engine: &Engine,
    transaction: &Interactive,
    mode: ObjectMode,
    wait: LockWait,
) -> Submission<LockTables> {
    let options = SubmitOptions { transaction: Some(transaction), ..SubmitOptions::default() };
    engine.submit(LockTables::new(vec![ACCOUNTS], mode, wait), options)
}

fn finished<P: archipel_engine::Program>(submission: &mut Submission<P>) -> Option<Result<(), Stop>> {
    submission.try_take().map(|completed| completed.outcome.result)
}

/// A program of a client that does one thing.
fn as_client(
    engine: &Engine,
    client: &Arc<Client>,
    body: impl FnMut(&mut Txn<'_>) -> Result<bool, Stop> + Send + 'static,
) -> Submission<Script<bool>> {
    let options = SubmitOptions { client: Some(client), ..SubmitOptions::default() };
    engine.submit(script(|_, _| {}, body), options)
}

#[test]
fn one_shots_wait_for_a_locked_table_and_go_on_when_it_is_free() {
    let engine = bank();
    let transaction = engine.begin();
    assert_eq!(finished(&mut lock(&engine, &transaction, ObjectMode::Share, LockWait::Wait)), Some(Ok(())));
    let client = engine.client(1);
    let mut reads = as_client(&engine, &client, |txn| Ok(balance(txn, 3)?.is_some()));
    assert_eq!(finished(&mut reads), Some(Ok(())), "SHARE lets readers pass");
    let mut writes = as_client(&engine, &client, |txn| transfer(txn, 1, 15, 30).map(|()| true));
    assert_eq!(finished(&mut writes), None, "and no writers");
    assert!(client.wait().is_some_and(|wait| wait.blockers == [transaction.id()]));
    engine.commit(&transaction).wait().outcome.result.expect("committed");
    writes.wait().outcome.result.expect("it goes on");
    assert!(client.wait().is_none());
    assert!(engine.object_locks().is_empty(), "nothing is left");
}

#[test]
fn what_a_transaction_has_done_is_in_the_way_of_whoever_locks_the_table() {
    let engine = bank();
    let (reader, writer, strong) = (engine.begin(), engine.begin(), engine.begin());
    within(&engine, &reader, |txn| balance(txn, 3)).expect("read");
    within(&engine, &writer, |txn| transfer(txn, 1, 15, 30)).expect("moved");
    let mut refused = lock(&engine, &strong, ObjectMode::Share, LockWait::NoWait);
    assert_eq!(finished(&mut refused), Some(Err(Stop::LockNotAvailable)));
    let mut shares = lock(&engine, &strong, ObjectMode::Share, LockWait::Wait);
    assert_eq!(finished(&mut shares), None);
    engine.rollback(&writer).wait().outcome.result.expect("rolled back");
    shares.wait().outcome.result.expect("only the reader is left");
    let mut alone = lock(&engine, &strong, ObjectMode::AccessExclusive, LockWait::Wait);
    assert_eq!(finished(&mut alone), None, "the reader is in the way of that");
    drop(reader);
    alone.wait().outcome.result.expect("nobody is");
}

#[test]
fn nobody_overtakes_who_waits_for_a_table() {
    let engine = bank();
    let (reader, strong, late) = (engine.begin(), engine.begin(), engine.begin());
    within(&engine, &reader, |txn| balance(txn, 3)).expect("read");
    let mut waits = lock(&engine, &strong, ObjectMode::AccessExclusive, LockWait::Wait);
    assert_eq!(finished(&mut waits), None);
    let client = engine.client(1);
    let mut one_shot = as_client(&engine, &client, |txn| Ok(balance(txn, 3)?.is_some()));
    assert_eq!(finished(&mut one_shot), None);
    let mut later = lock(&engine, &late, ObjectMode::AccessShare, LockWait::Wait);
    assert_eq!(finished(&mut later), None);
    // Who uses the table already goes first.
    within(&engine, &reader, |txn| balance(txn, 4)).expect("read");
    engine.commit(&reader).wait().outcome.result.expect("committed");
    waits.wait().outcome.result.expect("its turn");
    assert_eq!(finished(&mut later), None);
    engine.commit(&strong).wait().outcome.result.expect("committed");
    later.wait().outcome.result.expect("its turn");
    one_shot.wait().outcome.result.expect("its turn");
}

#[test]
fn a_place_in_a_queue_makes_no_deadlock() {
    let engine = bank();
    // One holds the table weakly; two waits for all of it; one wants more, which only two's
    // place in the queue is in the way of: it goes first.
    let (one, two) = (engine.begin(), engine.begin());
    let locked = lock(&engine, &one, ObjectMode::RowExclusive, LockWait::Wait);
    locked.wait().outcome.result.expect("nobody is in the way");
    let mut all = lock(&engine, &two, ObjectMode::AccessExclusive, LockWait::Wait);
    assert_eq!(finished(&mut all), None);
    let more = lock(&engine, &one, ObjectMode::Exclusive, LockWait::Wait);
    more.wait().outcome.result.expect("who holds the table goes first");
    engine.commit(&one).wait().outcome.result.expect("committed");
    all.wait().outcome.result.expect("its turn");
}

#[test]
fn a_one_shot_reads_what_its_client_has_locked_whoever_waits_for_that() {
    let engine = bank();
    // As definitions do: a transaction beside holds the table while a one-shot goes over its rows.
    let client = engine.client(1);
    let (guard, other) = (engine.begin_for(&client, Isolation::ReadCommitted, false), engine.begin());
    let locked = lock(&engine, &guard, ObjectMode::AccessExclusive, LockWait::Wait);
    locked.wait().outcome.result.expect("nobody is in the way");
    let mut waits = lock(&engine, &other, ObjectMode::AccessExclusive, LockWait::Wait);
    assert_eq!(finished(&mut waits), None);
    let mut reads = as_client(&engine, &client, |txn| Ok(balance(txn, 3)?.is_some()));
    assert_eq!(finished(&mut reads), Some(Ok(())), "who waits for its client is behind it");
    let stranger = engine.client(2);
    let mut later = as_client(&engine, &stranger, |txn| Ok(balance(txn, 3)?.is_some()));
    assert_eq!(finished(&mut later), None);
    drop(guard);
    waits.wait().outcome.result.expect("its turn");
    drop(other);
    later.wait().outcome.result.expect("its turn");
    assert!(engine.object_locks().is_empty(), "nothing is left");
}

#[test]
fn a_cycle_of_advisory_locks_and_rows_is_found() {
    let engine = bank();
    let client = engine.client(1);
    as_client(&engine, &client, |txn| {
        txn.lock_object(KEY, ObjectMode::Exclusive, LockScope::Session, LockWait::Wait).map(|()| true)
    })
    .wait()
    .outcome
    .result
    .expect("free");
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| transfer(txn, 1, 15, 30)).expect("moved");
    // The client's one-shot waits for the row, holding its advisory lock.
    let waits = as_client(&engine, &client, |txn| transfer(txn, 1, 15, 1).map(|()| true));
    let mut submission = engine.submit(
        script(
            |_, _| {},
            |txn: &mut Txn<'_>| {
                txn.lock_object(KEY, ObjectMode::Exclusive, LockScope::Transaction, LockWait::Wait)
                    .map(|()| true)
            },
        ),
        SubmitOptions { transaction: Some(&transaction), ..SubmitOptions::default() },
    );
    assert_eq!(finished(&mut submission), None);
    let cycle = submission.canceller().and_then(|canceller| canceller.break_deadlock()).expect("a cycle");
    assert_eq!(cycle.len(), 2);
    assert_eq!(submission.wait().outcome.result, Err(Stop::Deadlock));
    engine.rollback(&transaction).wait().outcome.result.expect("rolled back");
    waits.wait().outcome.result.expect("it goes on");
    client.release();
    assert!(engine.object_locks().is_empty());
}

#[test]
fn an_undone_run_has_taken_nothing_and_a_failed_one_keeps_what_is_the_sessions() {
    let engine = bank();
    let (client, other) = (engine.client(1), engine.client(2));
    let take = |scope| move |txn: &mut Txn<'_>| txn.try_lock_object(KEY, ObjectMode::Exclusive, scope);
    let completed = as_client(&engine, &client, move |txn| {
        txn.lock_object(KEY, ObjectMode::Exclusive, LockScope::Session, LockWait::Wait)?;
        Err(Stop::Interactive)
    })
    .wait();
    assert_eq!(completed.outcome.result, Err(Stop::Interactive));
    assert!(engine.object_locks().is_empty(), "it is going to run again");
    let completed = as_client(&engine, &client, move |txn| {
        txn.lock_object(KEY, ObjectMode::Exclusive, LockScope::Session, LockWait::Wait)?;
        Err(Stop::Abort)
    })
    .wait();
    assert_eq!(completed.outcome.result, Err(Stop::Abort));
    let tried = as_client(&engine, &other, take(LockScope::Transaction)).wait();
    assert_eq!(tried.program.value, Some(false));
    as_client(&engine, &client, |txn| Ok(txn.unlock_object(KEY, ObjectMode::Exclusive)))
        .wait()
        .outcome
        .result
        .expect("given back");
    let tried = as_client(&engine, &other, take(LockScope::Transaction)).wait();
    assert_eq!(tried.program.value, Some(true));
    assert!(engine.object_locks().is_empty(), "a one-shot's own transaction is over");
}

#[test]
fn locks_of_one_number_in_two_databases_are_two() {
    let engine = bank();
    let (client, other) = (engine.client(1), engine.client(2));
    let try_lock = |client: &Arc<Client>, tag| {
        let body =
            move |txn: &mut Txn<'_>| txn.try_lock_object(tag, ObjectMode::Exclusive, LockScope::Session);
        as_client(&engine, client, body).wait().program.value
    };
    let elsewhere = LockTag::Advisory { database: 6, first: 0, second: 7, two: false };
    assert_eq!(try_lock(&client, KEY), Some(true));
    assert_eq!(try_lock(&other, KEY), Some(false));
    assert_eq!(try_lock(&other, elsewhere), Some(true));
}

#[test]
fn a_cycle_over_places_in_a_queue_is_rearranged_and_nobody_gives_up() {
    let engine = bank();
    let (first, second) = (advisory(1), advisory(2));
    let [one, two, three, four] = [(); 4].map(|()| engine.begin());
    let lock = |transaction: &Interactive, tag, mode| {
        let options = SubmitOptions { transaction: Some(transaction), ..SubmitOptions::default() };
        let body = move |txn: &mut Txn<'_>| {
            txn.lock_object(tag, mode, LockScope::Transaction, LockWait::Wait).map(|()| true)
        };
        engine.submit(script(|_, _| {}, body), options)
    };
    lock(&one, first, ObjectMode::ShareUpdateExclusive).wait().outcome.result.expect("free");
    lock(&two, second, ObjectMode::AccessShare).wait().outcome.result.expect("free");
    let mut waits = vec![
        lock(&two, first, ObjectMode::ShareUpdateExclusive),
        lock(&three, second, ObjectMode::AccessExclusive),
        lock(&four, second, ObjectMode::AccessExclusive),
        lock(&one, second, ObjectMode::ShareUpdateExclusive),
    ];
    assert!(waits.iter_mut().all(|submission| finished(submission).is_none()));
    // One waits only behind three and four, who wait for two, who waits for one.
    let last = waits.pop().expect("there are four");
    assert_eq!(last.canceller().and_then(|canceller| canceller.break_deadlock()), None);
    last.wait().outcome.result.expect("it went ahead");
    for (transaction, submission) in [one, two, three].into_iter().zip(waits) {
        engine.commit(&transaction).wait().outcome.result.expect("committed");
        submission.wait().outcome.result.expect("its turn");
    }
    engine.commit(&four).wait().outcome.result.expect("committed");
    assert!(engine.object_locks().is_empty());
}

fn advisory_lock(engine: &Engine, options: SubmitOptions<'_>, tag: LockTag) -> Submission<Script<bool>> {
    let body = move |txn: &mut Txn<'_>| {
        txn.lock_object(tag, ObjectMode::Exclusive, LockScope::Transaction, LockWait::Wait).map(|()| true)
    };
    engine.submit(script(|_, _| {}, body), options)
}

fn of(transaction: &Interactive) -> SubmitOptions<'_> {
    SubmitOptions { transaction: Some(transaction), ..SubmitOptions::default() }
}

#[test]
fn of_many_who_wait_for_one_lock_each_waits_for_the_one_before_it() {
    let engine = bank();
    let holder = engine.begin();
    advisory_lock(&engine, of(&holder), KEY).wait().outcome.result.expect("free");
    let clients: Vec<Arc<Client>> = (1..=100).map(|number| engine.client(number)).collect();
    let begin = |client| engine.begin_for(client, Isolation::ReadCommitted, false);
    let mut waiting: Vec<Interactive> = clients.iter().map(begin).collect();
    let ask = |(transaction, client)| {
        let options = SubmitOptions {
            transaction: Some(transaction),
            client: Some(client),
            ..SubmitOptions::default()
        };
        advisory_lock(&engine, options, KEY)
    };
    let mut submissions: Vec<_> = waiting.iter().zip(&clients).map(ask).collect();
    assert!(submissions.iter_mut().all(|submission| finished(submission).is_none()));
    let graph = |transaction: &Interactive| engine.waits().blockers_of(transaction.id());
    assert_eq!(graph(&waiting[0]), [holder.id()]);
    assert!(waiting.windows(2).all(|pair| graph(&pair[1]) == [pair[0].id()]));
    let all = clients[99].wait().expect("it waits").blockers;
    assert_eq!(all.len(), 100, "those ahead of it and the holder are told");

    // Who gives up in the middle leaves those behind it to the one before it.
    submissions.remove(50).canceller().expect("it waits").cancel(Stop::Cancelled);
    let gone = waiting.remove(50);
    engine.rollback(&gone).wait().outcome.result.expect("it held nothing");
    assert_eq!(graph(&waiting[50]), [waiting[49].id()]);
    assert_eq!(clients[99].wait().expect("it waits").blockers.len(), 99);

    engine.commit(&holder).wait().outcome.result.expect("committed");
    for (transaction, submission) in waiting.iter().zip(submissions) {
        submission.wait().outcome.result.expect("its turn");
        engine.commit(transaction).wait().outcome.result.expect("committed");
    }
    assert!(engine.object_locks().is_empty());
}

#[test]
fn a_cycle_is_found_behind_somebody_who_holds_nothing() {
    let engine = bank();
    let (one, two) = (engine.begin(), engine.begin());
    advisory_lock(&engine, of(&one), advisory(1)).wait().outcome.result.expect("free");
    advisory_lock(&engine, of(&two), advisory(2)).wait().outcome.result.expect("free");
    // A one-shot that holds nothing waits for two, and one behind it.
    let client = engine.client(1);
    let options = SubmitOptions { client: Some(&client), ..SubmitOptions::default() };
    let mut between = advisory_lock(&engine, options, advisory(2));
    assert_eq!(finished(&mut between), None);
    let mut behind = advisory_lock(&engine, of(&one), advisory(2));
    assert_eq!(finished(&mut behind), None);
    let mut closing = advisory_lock(&engine, of(&two), advisory(1));
    assert_eq!(finished(&mut closing), None);
    let cycle = closing.canceller().and_then(|canceller| canceller.break_deadlock()).expect("a cycle");
    assert_eq!(cycle.len(), 2);
    assert_eq!(closing.wait().outcome.result, Err(Stop::Deadlock));
    engine.rollback(&two).wait().outcome.result.expect("rolled back");
    between.wait().outcome.result.expect("its turn");
    behind.wait().outcome.result.expect("its turn");
    engine.commit(&one).wait().outcome.result.expect("committed");
    assert!(engine.object_locks().is_empty());
}

/// A session's lock, which stays beyond what takes it.
fn session_lock(engine: &Engine, options: SubmitOptions<'_>, tag: LockTag) -> Submission<Script<bool>> {
    let body = move |txn: &mut Txn<'_>| {
        txn.lock_object(tag, ObjectMode::Exclusive, LockScope::Session, LockWait::Wait).map(|()| true)
    };
    engine.submit(script(|_, _| {}, body), options)
}

#[test]
fn a_cycle_is_found_over_a_lock_that_a_session_got_in_its_turn() {
    // It asks for it outside of any transaction, or in one that is over when it asks for another.
    for within in [false, true] {
        let engine = bank();
        let (holder, other) = (engine.begin(), engine.begin());
        advisory_lock(&engine, of(&holder), advisory(1)).wait().outcome.result.expect("free");
        advisory_lock(&engine, of(&other), advisory(2)).wait().outcome.result.expect("free");
        let client = engine.client(1);
        let first = within.then(|| engine.begin_for(&client, Isolation::ReadCommitted, false));
        let options =
            SubmitOptions { client: Some(&client), transaction: first.as_ref(), ..SubmitOptions::default() };
        let mut session = session_lock(&engine, options, advisory(1));
        assert_eq!(finished(&mut session), None);
        let mut behind = advisory_lock(&engine, of(&other), advisory(1));
        assert_eq!(finished(&mut behind), None);
        engine.commit(&holder).wait().outcome.result.expect("committed");
        session.wait().outcome.result.expect("its turn");
        assert_eq!(engine.waits().blockers_of(other.id()), [client.owner()]);
        if let Some(first) = first {
            engine.commit(&first).wait().outcome.result.expect("committed");
        }
        let second = engine.begin_for(&client, Isolation::ReadCommitted, false);
        let mut closing = advisory_lock(&engine, of(&second), advisory(2));
        assert_eq!(finished(&mut closing), None);
        let cycle = closing.canceller().and_then(|canceller| canceller.break_deadlock());
        assert!(cycle.is_some(), "the session waits for whom its lock stops");
        assert_eq!(closing.wait().outcome.result, Err(Stop::Deadlock));
        engine.rollback(&second).wait().outcome.result.expect("rolled back");
        client.release();
        behind.wait().outcome.result.expect("its turn");
        engine.commit(&other).wait().outcome.result.expect("committed");
        assert!(engine.object_locks().is_empty());
    }
}

#[test]
fn a_place_in_a_queue_of_somebody_who_holds_nothing_makes_no_deadlock() {
    let engine = bank();
    let (one, two) = (engine.begin(), engine.begin());
    let share = |transaction| {
        let body = |txn: &mut Txn<'_>| {
            txn.lock_object(advisory(1), ObjectMode::Share, LockScope::Transaction, LockWait::Wait)
                .map(|()| true)
        };
        engine.submit(script(|_, _| {}, body), of(transaction))
    };
    share(&one).wait().outcome.result.expect("free");
    advisory_lock(&engine, of(&two), advisory(2)).wait().outcome.result.expect("free");
    let client = engine.client(1);
    let options = SubmitOptions { client: Some(&client), ..SubmitOptions::default() };
    let mut between = advisory_lock(&engine, options, advisory(1));
    assert_eq!(finished(&mut between), None);
    let mut behind = share(&two);
    assert_eq!(finished(&mut behind), None);
    let mut closing = advisory_lock(&engine, of(&one), advisory(2));
    assert_eq!(finished(&mut closing), None);
    // Two waits only behind the one-shot, which waits for one, who waits for two.
    assert_eq!(closing.canceller().and_then(|canceller| canceller.break_deadlock()), None);
    behind.wait().outcome.result.expect("it went ahead");
    engine.commit(&two).wait().outcome.result.expect("committed");
    closing.wait().outcome.result.expect("its turn");
    engine.commit(&one).wait().outcome.result.expect("committed");
    between.wait().outcome.result.expect("its turn");
    assert!(engine.object_locks().is_empty());
}

#[test]
fn who_gives_up_leaves_all_queues() {
    let engine = bank();
    let (holder, other, third) = (engine.begin(), engine.begin(), engine.begin());
    advisory_lock(&engine, of(&holder), advisory(2)).wait().outcome.result.expect("free");
    let client = engine.client(1);
    let mut both = as_client(&engine, &client, |txn| {
        for number in [1, 2] {
            txn.lock_object(advisory(number), ObjectMode::Exclusive, LockScope::Session, LockWait::Wait)?;
        }
        Ok(true)
    });
    assert_eq!(finished(&mut both), None, "it waits for the second and has not kept the first");
    advisory_lock(&engine, of(&other), advisory(1)).wait().outcome.result.expect("free");
    engine.commit(&holder).wait().outcome.result.expect("committed");
    assert_eq!(finished(&mut both), None, "its turn at the second has come while it waits for the first");
    both.canceller().expect("it waits").cancel(Stop::Cancelled);
    assert_eq!(both.wait().outcome.result, Err(Stop::Cancelled));
    let mut free = advisory_lock(&engine, of(&third), advisory(2));
    assert_eq!(finished(&mut free), Some(Ok(())), "nobody has a place there");
    engine.commit(&third).wait().outcome.result.expect("committed");
    engine.commit(&other).wait().outcome.result.expect("committed");
    assert!(engine.object_locks().is_empty());
}

#[test]
fn locks_given_back_in_the_order_they_were_taken_are_counted() {
    let engine = bank();
    let client = engine.client(1);
    let take = |txn: &mut Txn<'_>| {
        for number in (0..1_000).chain(0..1_000) {
            txn.lock_object(advisory(number), ObjectMode::Share, LockScope::Session, LockWait::Wait)?;
        }
        Ok(true)
    };
    as_client(&engine, &client, take).wait().outcome.result.expect("free");
    let give = |txn: &mut Txn<'_>| {
        let given =
            (0..1_000).filter(|number| txn.unlock_object(advisory(*number), ObjectMode::Share)).count();
        Ok(given == 1_000
            && txn.unlock_object(KEY, ObjectMode::Share)
            && !txn.unlock_object(KEY, ObjectMode::Share))
    };
    assert_eq!(as_client(&engine, &client, give).wait().program.value, Some(true));
    assert_eq!(engine.object_locks().len(), 999, "seven has been given back twice, the others once");
    client.release();
    assert!(engine.object_locks().is_empty());
}

/// Statements of so many transactions that write one row, which somebody has locked, and how often one of them
/// has begun to run; none writes it once nobody shall.
struct Crowd {
    transactions: Vec<Interactive>,
    statements: Vec<Submission<Script<bool>>>,
    runs: Arc<AtomicUsize>,
    shall: Arc<AtomicBool>,
}

fn crowd(engine: &Engine, count: usize) -> Crowd {
    let (runs, shall) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
    let transactions: Vec<Interactive> = (0..count).map(|_| engine.begin()).collect();
    let statement = |transaction| {
        let (runs, shall) = (runs.clone(), shall.clone());
        let body = move |txn: &mut Txn<'_>| {
            runs.fetch_add(1, Ordering::Relaxed);
            if shall.load(Ordering::Relaxed) {
                let before = balance(txn, 1)?.unwrap_or_default();
                let _ = set_balance(txn, 1, before + 1)?;
            }
            Ok(true)
        };
        engine.submit(
            script(|_, claims| claims.add_point(GroupId(ACCOUNTS.0), &account_key(1)), body),
            of(transaction),
        )
    };
    let statements = transactions.iter().map(statement).collect();
    Crowd { transactions, statements, runs, shall }
}

#[test]
fn of_many_who_wait_for_a_row_each_runs_once_more() {
    let engine = bank();
    let holder = engine.begin();
    within(&engine, &holder, |txn| set_balance(txn, 1, 0)).map(drop).expect("free");
    let mut crowd = crowd(&engine, 100);
    assert!(crowd.statements.iter_mut().all(|statement| finished(statement).is_none()));
    // One of them gives up while it waits.
    crowd.statements.remove(50).canceller().expect("it waits").cancel(Stop::Cancelled);
    engine.rollback(&crowd.transactions.remove(50)).wait().outcome.result.expect("it held nothing");
    engine.commit(&holder).wait().outcome.result.expect("committed");
    let mut before = None;
    for (transaction, statement) in crowd.transactions.iter().zip(crowd.statements) {
        statement.wait().outcome.result.expect("its turn");
        if let Some(before) = before.replace(transaction) {
            assert_eq!(engine.waits().blockers_of(before.id()), []);
        }
        engine.commit(transaction).wait().outcome.result.expect("committed");
    }
    assert_eq!(crowd.runs.load(Ordering::Relaxed), 100 + 99);
    assert_eq!(unpredicted(&engine, |txn| balance(txn, 1)).0, Ok(Some(99)));
}

#[test]
fn who_waits_behind_one_that_does_not_take_the_row_is_next() {
    let engine = bank();
    let holder = engine.begin();
    within(&engine, &holder, |txn| set_balance(txn, 1, 0)).map(drop).expect("free");
    let crowd = crowd(&engine, 300);
    crowd.shall.store(false, Ordering::Relaxed);
    engine.commit(&holder).wait().outcome.result.expect("committed");
    for statement in crowd.statements {
        statement.wait().outcome.result.expect("nobody is in its way");
    }
    assert_eq!(crowd.runs.load(Ordering::Relaxed), 600);
}

#[test]
fn a_cycle_is_found_behind_whoever_has_got_the_row() {
    let engine = bank();
    let [holder, one, two] = [(); 3].map(|()| engine.begin());
    within(&engine, &holder, |txn| set_balance(txn, 1, 0)).map(drop).expect("free");
    within(&engine, &two, |txn| set_balance(txn, 15, 0)).map(drop).expect("free");
    let write = |transaction, account| {
        engine
            .submit(script(|_, _| {}, move |txn| set_balance(txn, account, 5).map(|_| true)), of(transaction))
    };
    let (first, mut second) = (write(&one, 1), write(&two, 1));
    engine.commit(&holder).wait().outcome.result.expect("committed");
    first.wait().outcome.result.expect("its turn");
    assert_eq!(finished(&mut second), None, "one has it");
    assert_eq!(engine.waits().blockers_of(two.id()), [one.id()]);
    let closing = write(&one, 15);
    let cycle = closing.canceller().and_then(|canceller| canceller.break_deadlock()).expect("a cycle");
    assert_eq!(cycle.len(), 2);
    assert_eq!(closing.wait().outcome.result, Err(Stop::Deadlock));
    engine.rollback(&one).wait().outcome.result.expect("rolled back");
    second.wait().outcome.result.expect("its turn");
    engine.commit(&two).wait().outcome.result.expect("committed");
}

#[test]
fn a_new_row_goes_back_with_its_lock_and_its_entries() {
    let engine = bank();
    let transaction = engine.begin();
    let before = transaction.savepoint();
    within(&engine, &transaction, |txn| insert_account(txn, 100, "hundred", 1)).map(drop).expect("inserted");
    let after = transaction.savepoint();
    within(&engine, &transaction, |txn| set_balance(txn, 100, 2)).map(drop).expect("set");
    engine.rollback_to(&transaction, after).wait().outcome.result.expect("taken back");
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 100)), Ok(Some(1)));
    engine.rollback_to(&transaction, before).wait().outcome.result.expect("taken back");
    assert_eq!(within(&engine, &transaction, |txn| balance(txn, 100)), Ok(None));
    let inserted = unpredicted(&engine, |txn| insert_account(txn, 100, "hundred", 9)).0;
    assert_eq!(inserted, Ok(Inserted::Ok), "nobody is waited for");
    engine.commit(&transaction).wait().outcome.result.expect("committed");
    assert_eq!(unpredicted(&engine, |txn| balance(txn, 100)).0, Ok(Some(9)));
}

fn required(txn: &mut Txn<'_>, id: i64) -> Result<(), Stop> {
    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    txn.require_locked(&table, &account_key(id))
}

#[test]
fn a_row_that_was_not_locked_before_is_a_conflict_for_who_requires_it() {
    let engine = bank();
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| set_balance(txn, 1, 2)).map(drop).expect("set");
    assert_eq!(within(&engine, &transaction, |txn| required(txn, 1)), Ok(()));
    assert_eq!(within(&engine, &transaction, |txn| required(txn, 2)), Err(Stop::ConcurrentUpdate));
    let other = engine.begin();
    assert_eq!(within(&engine, &other, |txn| required(txn, 1)), Err(Stop::ConcurrentUpdate));
    engine.rollback(&other).wait().outcome.result.expect("over");
    engine.rollback(&transaction).wait().outcome.result.expect("over");
    assert_eq!(unpredicted(&engine, |txn| required(txn, 2)).0, Ok(()), "a one-shot holds what it reads");
}
