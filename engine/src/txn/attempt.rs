//! Running a program: on the spot, from a queue, again after a wrong prediction, and after a
//! wait for a row. One that is known to run long gets a thread of its own when its turn comes:
//! it keeps its claims from others, but no executor.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::commit::Committed;
use super::{
    Allowance, Claimed, InteractiveState, Isolation, LockWait, Rollback, RowWaiter, StatementView, Txn,
};
use crate::client::Client;
use crate::engine::{Paging, Point, Shared, Start, submit_on};
use crate::executor::{Worker, with_worker};
use crate::heap;
use crate::id::{Epoch, ExecutorId};
use crate::monitor::{MEASURE_EVERY, Run, is_one_in, measure};
use crate::panics::NoUnwind;
use crate::partition::{ClaimSet, HeldList, Job, SAMPLE_EVERY, Ticket};
use crate::program::{Completed, Outcome, Program, Stop};
use crate::submission::Pending;
use crate::table::REFERENCE_GROUP;

/// After this many restarts a program takes its whole groups.
const RESTARTS_BEFORE_WIDENING: u32 = 3;
/// After this many, everything: the set can grow no further, so this ends.
const RESTARTS_BEFORE_EVERYTHING: u32 = 8;
/// After this many waits for rows a program keeps those it got past locked.
const WAITS_BEFORE_LOCKING: u32 = 3;

/// Under what a program runs.
#[derive(Clone, Default)]
pub(crate) struct RunOptions {
    pub interactive: Option<Arc<InteractiveState>>,
    /// A starved one-shot's locks.
    pub locker: Option<Arc<InteractiveState>>,
    /// It waited often enough to keep the rows it gets past locked.
    pub keeps_locks: bool,
    pub lock_wait: LockWait,
    pub read_only: bool,
    pub client: Option<Arc<Client>>,
    pub start: Start,
    pub paging: Paging,
    /// What the statement saw before it waited.
    pub view: Option<Arc<StatementView>>,
    /// What it has waited for last, and others may wait for behind it.
    pub woken_at: Option<Arc<RowWaiter>>,
}

impl RunOptions {
    fn is_cancelled(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.is_cancelled())
    }

    /// The program has ended for good: it wants nothing any more.
    fn withdraw(&self, shared: &Arc<Shared>) {
        let of_transaction = self.interactive.as_ref().map(|interactive| &interactive.client);
        if let Some(client) = self.client.as_ref().or(of_transaction) {
            client.end_wait();
            shared.withdraw(client);
        }
    }

    /// The program waits no more.
    fn end_wait(&self) {
        if let Some(client) = &self.client {
            client.end_wait();
        }
    }

    /// Under whose id rows are locked.
    fn lock_owner(&self) -> Option<&Arc<InteractiveState>> {
        self.interactive.as_ref().or(self.locker.as_ref())
    }
}

/// How one run ended. In every case the partitions are released.
pub(crate) enum Ran {
    Done(Outcome),
    /// The prediction was wrong; the worker's scratch holds what was missing.
    Restart,
    /// Rows changed that the statement had seen: it looks again.
    Reevaluate,
    /// Enqueued at a row; with what the statement saw, if it goes on with that.
    Wait(Arc<RowWaiter>, Option<Arc<StatementView>>),
}

/// Runs a program once over `held`, which `claims` predicted, commits or undoes it, and releases.
pub(crate) fn run_held<P: Program>(
    shared: &Arc<Shared>,
    worker: &mut Worker,
    program: &mut P,
    options: &RunOptions,
    held: HeldList,
    claims: &ClaimSet,
) -> Ran {
    worker.refresh(shared);
    worker.tally.runs += 1;
    let sampled = is_one_in(SAMPLE_EVERY, worker.tally.runs);
    let stands_for = worker.measured.every();
    let measured = is_one_in(stands_for, worker.tally.runs) && shared.monitor.measures();
    worker.scratch.footprint.begin(measured);
    let began = if sampled || measured { shared.clock.monotonic_nanos() } else { 0 };
    let interactive = options.interactive.clone();
    if let Some(owner) = options.lock_owner() {
        shared.waits.forget(owner.id);
    }
    let mut txn =
        Txn::new(shared, worker, held, interactive, options.lock_wait, options.read_only, Claimed::Predicted);
    txn.run_under(options);
    let (result, redo_bytes) = run_until_ended(shared, &mut txn, program, options, measured);
    let whole = NoUnwind::new("at a release");
    if !matches!(result, Err(Stop::Restart | Stop::Wait | Stop::Reevaluate)) {
        txn.keep_reads();
        txn.leave_met();
    }
    txn.settle_objects(result);
    let look = sampled || txn.look;
    // Before the release: nobody changes what was read until the snapshot is registered.
    let view = match result {
        Err(Stop::Wait) if program.keeps_view() => txn.left_view(),
        _ => None,
    };
    let (held, depends_on, waiting, woken) = txn.into_parts();
    let took = (sampled || measured).then(|| shared.clock.monotonic_nanos().saturating_sub(began));
    let nanos = took.filter(|_| sampled);
    worker.tally.multi += u64::from(held.len() > 1);
    worker.tally.restarts += u64::from(result == Err(Stop::Restart));
    // What only changes partitions or definitions is nobody's load.
    let counts = program.counts() && !claims.is_everything();
    if let Some(nanos) = took.filter(|_| measured && result.is_ok() && program.counts()) {
        measure_run(shared, worker, (program.class(), claims), &held, (nanos, stands_for, redo_bytes));
    }
    for partition in &held {
        if counts {
            partition.count_action(nanos);
        }
        if look {
            shared.look_at(partition);
        }
    }
    let partitions = held.len() as u32;
    shared.point(Point::BeforeRelease);
    shared.release_all(worker, &held);
    whole.pass();
    for waiter in woken {
        if let Some(job) = waiter.wake(&shared.waits) {
            job.resubmit(shared, worker);
        }
    }
    if std::mem::take(&mut worker.look_at_versions) {
        crate::snapshot::bound_versions(shared);
    }
    match (result, waiting) {
        (Err(Stop::Restart), _) => Ran::Restart,
        (Err(Stop::Reevaluate), _) => Ran::Reevaluate,
        (Err(Stop::Wait), Some(waiter)) => Ran::Wait(waiter, view),
        (result, _) => Ran::Done(Outcome {
            result,
            // An error that was read from the data depends on it too.
            depends_on,
            restarts: 0,
            partitions,
            ran_on: worker.executor,
            inline: true,
        }),
    }
}

/// Runs a program until it has committed or is undone: once more on the same claims, where references have
/// changed. Answers how it ended, and how many bytes it logs if it is `measured`.
fn run_until_ended<P: Program>(
    shared: &Arc<Shared>,
    txn: &mut Txn<'_>,
    program: &mut P,
    options: &RunOptions,
    measured: bool,
) -> (Result<(), Stop>, u64) {
    let mut redo_bytes = 0;
    loop {
        if options.is_cancelled() {
            return (Err(Stop::Cancelled), redo_bytes);
        }
        let run = || {
            if options.paging != Paging::Off {
                txn.begin_pages(&program.tables(), options.paging == Paging::Locked)?;
            }
            program.run(txn)
        };
        let result = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => result,
            Err(_) => {
                crate::panics::survive();
                Err(Stop::Panicked)
            }
        };
        // What was seen otherwise than it is now is not what the statement ends with.
        let result = if txn.must_reevaluate(result) { Err(Stop::Reevaluate) } else { result };
        // From here to the release only the engine's own code runs.
        let whole = NoUnwind::new("at the commit point");
        if measured {
            redo_bytes = txn.worker.scratch.redo.len() as u64;
            txn.note_written();
        }
        let ended = commit_or_undo(shared, txn, options, result);
        whole.pass();
        if let Some(result) = ended {
            return (result, redo_bytes);
        }
    }
}

/// Commits what has run well, or undoes it; `None` if it is to run once more on the same claims.
fn commit_or_undo(
    shared: &Arc<Shared>,
    txn: &mut Txn<'_>,
    options: &RunOptions,
    result: Result<(), Stop>,
) -> Option<Result<(), Stop>> {
    match result {
        Ok(()) if options.is_cancelled() => {
            txn.undo_all();
            Some(Err(Stop::Cancelled))
        }
        // What it read was held, so a snapshot that ended before shows now.
        Ok(()) if options.interactive.as_ref().is_some_and(|own| own.snapshot_is_cancelled()) => {
            txn.undo_all();
            Some(Err(Stop::SnapshotTooOld))
        }
        Ok(()) => match commit(shared, txn) {
            Committed::Yes => {
                txn.drop_locks();
                Some(Ok(()))
            }
            Committed::Ended => {
                txn.undo_all();
                Some(Err(Stop::TransactionEnded))
            }
            Committed::Doomed => {
                txn.undo_all();
                Some(Err(Stop::NotSerializable))
            }
            Committed::Refused(stop) => {
                txn.undo_all();
                Some(Err(stop))
            }
            Committed::Stale => {
                // Undone and run again on the same claims, with the current references.
                txn.begin_anew();
                None
            }
        },
        // It may be others' use of the same numbers that it has ended at.
        Err(Stop::Abort) if !txn.numbers_hold(false) => {
            txn.begin_anew();
            None
        }
        Err(stop) => {
            txn.undo_all();
            if matches!(stop, Stop::Wait | Stop::Reevaluate)
                && options.keeps_locks
                && let Some(owner) = options.lock_owner()
            {
                txn.leave_locks(owner);
            }
            Some(Err(stop))
        }
    }
}

/// Counts a run over the partitions that it still holds.
fn measure_run(
    shared: &Arc<Shared>,
    worker: &mut Worker,
    (class, claims): (u32, &ClaimSet),
    held: &HeldList,
    (nanos, stands_for, redo_bytes): (u64, u64, u64),
) {
    let tally = worker.tally;
    if claims.is_everything() {
        // It tells nothing of where the load lies.
        if let Some(mut statistics) = worker.statistics.try_lock() {
            statistics.tally = tally;
        }
        return;
    }
    let on_the_spot = worker.executor.filter(|_| worker.nesting == 0);
    let nanos = shared.usual_nanos(worker.executor, nanos);
    worker.measured.note(nanos);
    let touched = &worker.scratch.footprint;
    let run = Run { class, claims, touched, nanos, stands_for, redo_bytes, tally, on_the_spot };
    measure(&run, held, &worker.statistics, &|group| {
        worker.schema.groups.get(&group).and_then(|meta| meta.distribution)
    });
}

fn commit(shared: &Arc<Shared>, txn: &mut Txn<'_>) -> Committed {
    shared.point(Point::BeforeCommit);
    txn.commit()
}

/// Runs `body` over reference tables as they are published now, claiming nothing beforehand and
/// committing nothing: for predictions, which may turn out wrong.
pub(crate) fn glance<R>(
    shared: &Arc<Shared>,
    worker: &mut Worker,
    body: impl FnOnce(&mut Txn<'_>) -> Result<R, Stop>,
) -> Result<R, Stop> {
    let mut txn = Txn::new(shared, worker, HeldList::new(), None, LockWait::NoWait, true, Claimed::Nothing);
    let result = body(&mut txn);
    txn.undo_all();
    let (held, ..) = txn.into_parts();
    worker.scratch.missing.clear();
    shared.release_all(worker, &held);
    result
}

impl Txn<'_> {
    /// Takes up what its run's options say.
    fn run_under(&mut self, options: &RunOptions) {
        self.client = options.client.clone();
        if options.start == Start::Apart {
            self.allowance = Allowance::Unlimited;
        }
        self.locker = options.locker.as_ref().map(|locker| locker.id);
        self.touched = options.keeps_locks.then(Vec::new);
        self.woken_at.clone_from(&options.woken_at);
        if let Some(view) = &options.view {
            view.begin_round();
            self.set_view(view.clone());
        }
    }

    /// Wakes those whose rows it has let go of, with nothing held.
    pub(super) fn wake_woken(&mut self) {
        // Not by this thread's worker, which is in the middle of a run.
        self.shared.wake(std::mem::take(&mut self.woken));
    }

    /// What this run read is what its client learns.
    fn keep_reads(&mut self) {
        if let (Some(reads), Some(interactive)) = (&mut self.reads, &self.interactive) {
            interactive.keep_reads(reads);
        }
    }

    /// Undoes everything, and takes up what is published now.
    fn begin_anew(&mut self) {
        self.undo_all();
        self.forget_reads();
        self.worker.refresh(self.shared);
    }

    fn forget_reads(&mut self) {
        self.settle_objects(Err(Stop::Restart));
        self.reevaluates = false;
        self.admitted.clear();
        self.drawn_from.clear();
        self.drawn_under = None;
        self.drawn.clear();
        self.reads = self.reads.take().map(|_| Default::default());
        self.past_references.clear();
        if let Some(touched) = &mut self.touched {
            touched.clear();
        }
        if let Some(references) = self.references.take() {
            self.worker.keep_references(references);
        }
        self.references_read.clear();
        self.depends_on = Epoch(0);
        self.after = 0;
    }

    fn into_parts(self) -> (HeldList, Epoch, Option<Arc<RowWaiter>>, Vec<Arc<RowWaiter>>) {
        self.worker.scratch.finish = None;
        if let Some(references) = self.references {
            self.worker.keep_references(references);
        }
        (self.held, self.depends_on, self.waiting, self.woken)
    }
}

/// A program on its way through queues, restarts and waits.
pub(crate) struct Attempt<P: Program> {
    pub program: P,
    pub claims: ClaimSet,
    pub options: RunOptions,
    pub restarts: u32,
    pub waits: u32,
    /// The row it waited for last.
    pub waited_for: Option<Arc<RowWaiter>>,
    pub pending: Arc<Pending<P>>,
    /// When it entered the queues, if that is measured.
    pub queued_nanos: Option<u64>,
    /// The executor that submitted it.
    pub from: Option<ExecutorId>,
}

impl<P: Program> Attempt<P> {
    /// Enters the queues of all its partitions, or runs on the spot if there are none.
    pub fn enqueue(mut self, shared: &Arc<Shared>, worker: &mut Worker) {
        let is_final = self.program.is_final();
        if self.pending.cancelled() && !is_final {
            return self.finish(Stop::Cancelled);
        }
        worker.refresh(shared);
        let mut held = HeldList::new();
        worker.routing.resolve(&self.claims, &mut held);
        if held.is_empty() {
            return Box::new(self).run(shared, worker, held);
        }
        let measured = is_one_in(MEASURE_EVERY, worker.tally.queued) && shared.monitor.measures();
        self.queued_nanos = measured.then(|| shared.clock.monotonic_nanos());
        worker.tally.queued += 1;
        let pending = self.pending.clone();
        let here = self.options.start != Start::Queued;
        let note = |ticket: &Arc<Ticket>| {
            if !is_final {
                pending.set_ticket(ticket.clone());
            }
        };
        shared.enter_queues(worker, held, Box::new(self), here, &note);
    }

    /// The larger claim set after a wrong prediction.
    pub fn widen(claims: &mut ClaimSet, missing: &mut ClaimSet, restarts: u32) {
        claims.merge(missing);
        missing.clear();
        if restarts >= RESTARTS_BEFORE_EVERYTHING {
            claims.everything();
        } else if restarts >= RESTARTS_BEFORE_WIDENING {
            claims.widen();
        }
    }

    /// Another slice of the program: it stands behind whoever waits by now.
    pub fn go_on(mut self, shared: &Arc<Shared>, worker: &mut Worker) {
        (self.restarts, self.waits) = (0, 0);
        self.options.start = Start::Queued;
        worker.refresh(shared);
        self.claims.clear();
        self.program.predict(&worker.routing, &mut self.claims);
        self.enqueue(shared, worker);
    }

    fn finish(mut self, stop: Stop) {
        self.program.ended();
        if let Some(shared) = self.pending.shared() {
            self.options.withdraw(&shared);
            if let Some(waiter) = &self.waited_for {
                shared.wake(waiter.pass_on());
            }
        }
        if let Some(locker) = self.options.locker.take()
            && let Some(shared) = self.pending.shared()
        {
            unlock(&shared, locker);
        }
        let outcome = Outcome {
            result: Err(stop),
            depends_on: Epoch(0),
            restarts: self.restarts,
            partitions: 0,
            ran_on: None,
            inline: false,
        };
        self.pending.complete(Completed { program: self.program, outcome });
    }

    /// What follows a run that was not on the submitter's stack.
    pub fn after(mut self: Box<Self>, shared: &Arc<Shared>, worker: &mut Worker, ran: Ran) {
        match ran {
            Ran::Done(outcome) if outcome.result.is_ok() && self.program.goes_on() => {
                self.go_on(shared, worker);
            }
            Ran::Done(mut outcome) => {
                self.program.ended();
                outcome.restarts = self.restarts;
                outcome.inline = false;
                self.options.withdraw(shared);
                if let Some(waiter) = &self.waited_for {
                    pass_on(shared, worker, waiter);
                }
                if let Some(locker) = self.options.locker.take() {
                    unlock(shared, locker);
                }
                let Self { program, pending, .. } = *self;
                pending.complete(Completed { program, outcome });
            }
            Ran::Restart => {
                self.restarts += 1;
                let mut missing = std::mem::take(&mut worker.scratch.missing);
                Self::widen(&mut self.claims, &mut missing, self.restarts);
                worker.scratch.missing = missing;
                self.enqueue(shared, worker);
            }
            Ran::Reevaluate => {
                // Over the rows that changed, or anew where that is not possible any more.
                if self.options.view.as_ref().is_some_and(|view| view.is_lost()) {
                    self.options.view = None;
                }
                self.enqueue(shared, worker);
            }
            Ran::Wait(waiter, view) => self.wait(shared, worker, waiter, view),
        }
    }

    /// Takes the place of the starved one-shot, if it is free.
    fn become_starved(&mut self, shared: &Arc<Shared>) -> bool {
        let id = shared.next_transaction();
        let free = shared.starved.compare_exchange(0, id.0, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if free {
            shared.counters.starved.fetch_add(1, Ordering::Relaxed);
            let client = self.options.client.clone().unwrap_or_else(|| shared.client(0));
            self.options.locker = Some(InteractiveState::new(id, 0, Isolation::ReadCommitted, false, client));
        }
        free
    }

    /// Parks at a row; runs again at once if the lock was dropped meanwhile.
    pub fn wait(
        mut self: Box<Self>,
        shared: &Arc<Shared>,
        worker: &mut Worker,
        waiter: Arc<RowWaiter>,
        view: Option<Arc<StatementView>>,
    ) {
        if view.is_some() {
            self.options.view = view;
            // What it has locked on its way stays so.
            self.options.keeps_locks = true;
        }
        if let Some(before) = self.waited_for.replace(waiter.clone()) {
            waiter.waits_since(&before);
            pass_on(shared, worker, &before);
        }
        self.waits += 1;
        if self.waits >= WAITS_BEFORE_LOCKING && !self.options.keeps_locks {
            self.options.keeps_locks = self.options.interactive.is_some() || self.become_starved(shared);
        }
        self.pending.set_row_waiter(Some(waiter.clone()));
        let pending = self.pending.clone();
        shared.point(Point::BeforePark);
        if let Some(job) = waiter.park(self, &shared.waits) {
            job.resubmit(shared, worker);
        } else if pending.cancelled()
            && let Some(job) = waiter.wake(&shared.waits)
        {
            job.end(Stop::Cancelled);
        }
    }

    /// Runs over `held` on this thread, and what follows.
    fn run_here(mut self: Box<Self>, shared: &Arc<Shared>, worker: &mut Worker, held: HeldList) {
        let queued = self.queued_nanos.take();
        let options = self.options.clone();
        let one = matches!(&held[..], [only] if only.group() != REFERENCE_GROUP);
        let ran = run_held(shared, worker, &mut self.program, &options, held, &self.claims);
        if let (true, Some(since), Some(from), Some(by)) = (one, queued, self.from, worker.executor)
            && matches!(&ran, Ran::Done(outcome) if outcome.result.is_ok())
            && let Some(mut statistics) = worker.statistics.try_lock()
        {
            let took = shared.clock.monotonic_nanos().saturating_sub(since);
            statistics.crossings.add_queued(by, from, took);
        }
        self.after(shared, worker, ran);
    }

    /// Runs over `held` on a thread of its own. If there can be none it runs here, which is late for others;
    /// but for what reads in pages, which could stand still here for ever and has no memory then.
    fn run_apart(self: Box<Self>, shared: &Arc<Shared>, worker: &mut Worker, held: HeldList) {
        // Whoever comes takes it: the thread, or this one if no thread came to be.
        let seat = Arc::new(parking_lot::Mutex::new(Some((self, held))));
        let (taken, of_thread) = (seat.clone(), shared.clone());
        let body = move || {
            heap::settle_at_end();
            let work = taken.lock().take();
            if let Some((attempt, held)) = work {
                with_worker(&of_thread, |shared, worker| attempt.run_here(shared, worker, held));
            }
        };
        let spawned = shared.spawn.spawn_for_program("statement".to_owned(), Box::new(body));
        let Err(error) = spawned else { return };
        let left = seat.lock().take();
        if let Some((attempt, held)) = left {
            // Where there are no threads at all, the simulator sees to it that nothing stands still.
            if attempt.options.paging != Paging::Off && error.kind() != ErrorKind::Unsupported {
                shared.release_all(worker, &held);
                return attempt.finish(Stop::NoThread);
            }
            attempt.run_here(shared, worker, held);
        }
    }
}

impl<P: Program> Job for Attempt<P> {
    fn run(self: Box<Self>, shared: &Arc<Shared>, worker: &mut Worker, held: HeldList) {
        if let Some(since) = self.queued_nanos {
            worker.tally.waited_nanos += shared.clock.monotonic_nanos().saturating_sub(since);
        }
        held.iter().for_each(|partition| partition.count_queued());
        let over = self.options.interactive.as_ref().is_some_and(|interactive| !interactive.is_active());
        if over {
            shared.release_all(worker, &held);
            return self.finish(Stop::TransactionEnded);
        }
        // What reads in pages may stand still: on no thread that somebody else's program has woken it on.
        let needs_thread = worker.executor.is_some() || self.options.paging != Paging::Off;
        if self.options.start == Start::Apart && needs_thread {
            self.run_apart(shared, worker, held);
        } else {
            self.run_here(shared, worker, held);
        }
    }

    fn resubmit(mut self: Box<Self>, shared: &Arc<Shared>, worker: &mut Worker) {
        self.pending.set_row_waiter(None);
        self.options.end_wait();
        self.options.woken_at.clone_from(&self.waited_for);
        if self.options.start == Start::Apart || self.options.paging != Paging::Off {
            // Nobody knows when that will come to the row.
            if let Some(waiter) = &self.waited_for {
                pass_on(shared, worker, waiter);
            }
        }
        shared.counters.row_waits.fetch_add(1, Ordering::Relaxed);
        self.enqueue(shared, worker);
    }

    fn claims(&self) -> &ClaimSet {
        &self.claims
    }

    fn end(mut self: Box<Self>, reason: Stop) {
        let Some(shared) = self.pending.shared() else { return self.finish(reason) };
        if let Some(owner) = self.options.lock_owner() {
            shared.waits.forget(owner.id);
        }
        if reason == Stop::Deadlock
            && let Some(locker) = self.options.locker.take()
        {
            // A one-shot is nobody's victim: it lets go of its rows and begins anew.
            unlock(&shared, locker);
            self.options.keeps_locks = false;
            self.waits = 0;
            shared.with_worker(|shared, worker| self.resubmit(shared, worker));
            return;
        }
        self.options.end_wait();
        self.finish(reason);
    }
}

/// Whoever has waited for this has ended, or waits for something else: who has waited behind it for a row is next.
fn pass_on(shared: &Arc<Shared>, worker: &mut Worker, waited_for: &RowWaiter) {
    for next in waited_for.pass_on() {
        if let Some(job) = next.wake(&shared.waits) {
            job.resubmit(shared, worker);
        }
    }
}

/// Drops the locks of a one-shot that was starved, and gives its place to the next.
fn unlock(shared: &Arc<Shared>, locker: Arc<InteractiveState>) {
    shared.waits.forget(locker.id);
    let _ = shared.starved.compare_exchange(locker.id.0, 0, Ordering::SeqCst, Ordering::SeqCst);
    if locker.has_notes() {
        let rollback = Rollback::of(locker, shared);
        let options = rollback.options();
        drop(submit_on(shared, rollback, options));
    }
}
