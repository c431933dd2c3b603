//! What `submit` returns: a finished program, or a future of one.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use parking_lot::{Condvar, Mutex};

use crate::engine::Shared;
use crate::id::{TreeId, TxnId};
use crate::partition::Ticket;
use crate::program::{Completed, Program, Stop};
use crate::txn::{LockMode, RowWaiter, WaitEdge};

/// A submitted program. Most are finished when `submit` returns; the others are futures that
/// need no runtime. Dropping a submission does not cancel it.
#[must_use = "the program may still be on its way"]
pub struct Submission<P: Program> {
    state: State<P>,
}

enum State<P: Program> {
    Ready(Option<Completed<P>>),
    Pending(Arc<Pending<P>>),
}

/// Where a queued program's result goes.
pub(crate) struct Pending<P: Program> {
    result: Mutex<PendingResult<P>>,
    done: Condvar,
    cancelled: AtomicBool,
    place: Mutex<Waiting>,
    shared: Weak<Shared>,
}

struct PendingResult<P: Program> {
    completed: Option<Completed<P>>,
    waker: Option<Waker>,
}

#[derive(Default)]
struct Waiting {
    ticket: Option<Arc<Ticket>>,
    row: Option<Arc<RowWaiter>>,
}

impl<P: Program> Submission<P> {
    pub(crate) fn ready(completed: Completed<P>) -> Self {
        Self { state: State::Ready(Some(completed)) }
    }

    pub(crate) fn pending(pending: Arc<Pending<P>>) -> Self {
        Self { state: State::Pending(pending) }
    }

    /// The result, if the program is finished.
    pub fn try_take(&mut self) -> Option<Completed<P>> {
        match &mut self.state {
            State::Ready(completed) => completed.take(),
            State::Pending(pending) => pending.result.lock().completed.take(),
        }
    }

    /// Waits on this thread, which lends itself to queued work of executors that nobody drives.
    pub fn wait(mut self) -> Completed<P> {
        loop {
            if let Some(completed) = self.try_take() {
                return completed;
            }
            if let State::Pending(pending) = &self.state {
                if pending.shared.upgrade().is_some_and(|shared| shared.help()) {
                    continue;
                }
                let mut result = pending.result.lock();
                if result.completed.is_none() {
                    pending.done.wait_for(&mut result, std::time::Duration::from_millis(1));
                }
            }
        }
    }

    /// A handle to cancel the program from elsewhere; `None` if it is finished.
    pub fn canceller(&self) -> Option<Canceller> {
        match &self.state {
            State::Ready(_) => None,
            State::Pending(pending) => Some(Canceller { pending: pending.clone() }),
        }
    }
}

impl<P: Program> Future for Submission<P> {
    type Output = Completed<P>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            State::Ready(completed) => match completed.take() {
                Some(completed) => Poll::Ready(completed),
                None => Poll::Pending,
            },
            State::Pending(pending) => {
                let mut result = pending.result.lock();
                match result.completed.take() {
                    Some(completed) => Poll::Ready(completed),
                    None => {
                        match &result.waker {
                            Some(waker) if waker.will_wake(context.waker()) => {}
                            _ => result.waker = Some(context.waker().clone()),
                        }
                        Poll::Pending
                    }
                }
            }
        }
    }
}

// A submission holds no reference into itself.
impl<P: Program> Unpin for Submission<P> {}

/// Cancels a queued or waiting program.
#[derive(Clone)]
pub struct Canceller {
    pending: Arc<dyn Cancel>,
}

/// What a program waits for, when it waits for a row.
#[derive(Clone, Debug)]
pub struct RowWait {
    /// The table or index.
    pub tree: TreeId,
    pub mode: LockMode,
    /// Under which id it holds locks itself, if it does.
    pub waiter: Option<TxnId>,
    /// Whose locks are in its way.
    pub blockers: Vec<TxnId>,
    /// Since when, in nanoseconds of the engine's monotonic clock.
    pub since_nanos: u64,
}

trait Cancel: Send + Sync {
    fn cancel(&self, reason: Stop);
    fn row_waiter(&self) -> Option<Arc<RowWaiter>>;
    fn shared(&self) -> Option<Arc<Shared>>;
}

impl Canceller {
    /// Withdraws the program if it waits for partitions or for a row: it ends with `reason`
    /// ([`Stop::Cancelled`], or [`Stop::LockNotAvailable`] for a lock timeout). A program that
    /// runs finishes first.
    pub fn cancel(&self, reason: Stop) {
        self.pending.cancel(reason);
    }

    /// What the program waits for, if it waits for somebody's row lock.
    pub fn row_wait(&self) -> Option<RowWait> {
        let waiter = self.pending.row_waiter()?;
        Some(RowWait {
            tree: waiter.tree,
            mode: waiter.mode,
            waiter: waiter.who,
            blockers: waiter.blockers(),
            since_nanos: waiter.since(),
        })
    }

    /// How long the program has been waiting for the row it waits for now: what `lock_timeout`
    /// counts.
    pub fn waited_nanos(&self) -> Option<u64> {
        let waiter = self.pending.row_waiter()?;
        Some(self.pending.shared()?.clock.monotonic_nanos().saturating_sub(waiter.since()))
    }

    /// Ends the program with `reason` if it is waiting for a row at this moment.
    pub fn cancel_wait(&self, reason: Stop) -> bool {
        let Some(shared) = self.pending.shared() else { return false };
        match self.pending.row_waiter().and_then(|waiter| waiter.wake(&shared.waits)) {
            Some(job) => {
                job.end(reason);
                true
            }
            None => false,
        }
    }

    /// If the program waits in a cycle of waiters, ends it with [`Stop::Deadlock`] and tells
    /// the cycle, beginning with its own wait. A starved one-shot begins anew instead.
    pub fn break_deadlock(&self) -> Option<Vec<WaitEdge>> {
        let waiter = self.pending.row_waiter()?;
        let shared = self.pending.shared()?;
        let alone = shared.waits.search();
        let cycle = shared.shortened(waiter.break_cycle(&shared.waits)?);
        if shared.overtake(&cycle, &waiter) {
            return None;
        }
        // This wait and no other: if somebody has ended it since, the cycle is no more.
        let job = waiter.wake(&shared.waits)?;
        drop(alone);
        job.end(Stop::Deadlock);
        Some(cycle)
    }
}

impl<P: Program> Pending<P> {
    pub fn new(shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            result: Mutex::new(PendingResult { completed: None, waker: None }),
            done: Condvar::new(),
            cancelled: AtomicBool::new(false),
            place: Mutex::new(Waiting::default()),
            shared: Arc::downgrade(shared),
        })
    }

    pub fn complete(&self, completed: Completed<P>) {
        *self.place.lock() = Waiting::default();
        let waker = {
            let mut result = self.result.lock();
            result.completed = Some(completed);
            self.done.notify_all();
            result.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    pub fn set_ticket(&self, ticket: Arc<Ticket>) {
        self.place.lock().ticket = Some(ticket);
    }

    pub fn set_row_waiter(&self, row: Option<Arc<RowWaiter>>) {
        self.place.lock().row = row;
    }

    pub fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.upgrade()
    }
}

impl<P: Program> Cancel for Pending<P> {
    fn cancel(&self, reason: Stop) {
        let Some(shared) = self.shared.upgrade() else { return };
        self.cancelled.store(true, Ordering::SeqCst);
        let (ticket, row) = {
            let place = self.place.lock();
            (place.ticket.clone(), place.row.clone())
        };
        if let Some(job) = row.and_then(|row| row.wake(&shared.waits)) {
            job.end(reason);
            return;
        }
        if let Some((job, lent)) = ticket.and_then(|ticket| ticket.cancel()) {
            shared.with_worker(|shared, worker| shared.release_all(worker, &lent));
            job.end(reason);
        }
    }

    fn row_waiter(&self) -> Option<Arc<RowWaiter>> {
        self.place.lock().row.clone()
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.upgrade()
    }
}
