//! An executor thread as the server runs it: a current-thread tokio runtime that serves the
//! thread's share of the sessions, and one task that drains the thread's partitions in slices.
//!
//! Between two slices every session with something to do gets a turn, and between two turns
//! the partitions do. With nothing to do the thread parks in the runtime; the engine's wake
//! trait unparks it when another thread queues an action here.

mod shared;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use archipel_engine::{ExecutorHandle, SliceBudget, Wake};
use archipel_sql::interrupt::Watch;
use archipel_sql::stack::{DEPTH_DEFAULT_KB, Depth};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::front::Arrival;
use crate::server::Server;
use crate::session::protocol::connection;
use crate::session::protocol::connection::Closing;
use crate::sessions::CancelReason;
use crate::statement::cache::Cache;
pub use shared::Executor;

/// Statements an executor keeps prepared by their texts, and by their shapes.
const STATEMENTS_CACHED: usize = 1_000;

/// How long sessions may take to finish their statements at shutdown before they are cancelled.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Looks for more work this often before the thread parks.
const EMPTY_SLICES_BEFORE_PARKING: u32 = 3;

struct Unpark(Notify);

impl Wake for Unpark {
    fn wake(&self) {
        self.0.notify_one();
    }
}

/// The body of an executor thread; returns when the server has shut down.
pub fn run(
    server: Arc<Server>,
    handle: ExecutorHandle,
    arrivals: UnboundedReceiver<Arrival>,
    sessions: Arc<AtomicUsize>,
    stop: watch::Receiver<bool>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "an executor could not start its runtime");
            std::process::exit(1);
        }
    };
    let unpark = Arc::new(Unpark(Notify::new()));
    handle.set_waker(unpark.clone());
    let executor = Rc::new(Executor {
        number: handle.id().0,
        statements: RefCell::new(Cache::new(STATEMENTS_CACHED)),
        shapes: RefCell::new(Cache::new(STATEMENTS_CACHED)),
        outbox: Rc::default(),
    });
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async move {
        let drain = tokio::task::spawn_local(drain(handle, unpark));
        let outbox = executor.outbox.clone();
        let writer = tokio::task::spawn_local(async move { outbox.run().await });
        serve(server, executor, arrivals, sessions, stop).await;
        drain.abort();
        writer.abort();
    });
}

async fn drain(handle: ExecutorHandle, unpark: Arc<Unpark>) {
    let mut empty = 0;
    loop {
        let drained = handle.drain(SliceBudget::default());
        if drained.more || drained.served > 0 {
            empty = 0;
        } else {
            empty += 1;
        }
        if empty >= EMPTY_SLICES_BEFORE_PARKING {
            unpark.0.notified().await;
            empty = 0;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

/// Polls a session's work under the `max_stack_depth` that it has set, and asks of it alone whether to
/// go on: the thread has other sessions.
async fn in_own_depth<T>(work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut own_kb = DEPTH_DEFAULT_KB;
    let mut own_session = None;
    std::future::poll_fn(move |context| {
        let depth = Depth::of(own_kb);
        let watch = Watch::of_task(own_session.take());
        let polled = work.as_mut().poll(context);
        own_kb = depth.now_kb();
        own_session = watch.taken();
        polled
    })
    .await
}

async fn serve(
    server: Arc<Server>,
    executor: Rc<Executor>,
    mut arrivals: UnboundedReceiver<Arrival>,
    sessions: Arc<AtomicUsize>,
    mut stop: watch::Receiver<bool>,
) {
    let open: Rc<RefCell<Vec<std::rc::Weak<Closing>>>> = Rc::default();
    let mut requests = server.sessions.requests();
    let mut dropped = server.sessions.dropped_databases();
    loop {
        let arrival = tokio::select! {
            arrival = arrivals.recv() => arrival,
            // The sender lives as long as the server.
            _ = requests.changed() => {
                let dropped_now = server.sessions.dropped_databases();
                if std::mem::replace(&mut dropped, dropped_now) != dropped_now {
                    executor.forget_dropped(&server.databases);
                }
                for closing in open.borrow().iter().filter_map(std::rc::Weak::upgrade) {
                    closing.pass_on_requests();
                }
                continue;
            }
            _ = stop.wait_for(|stop| *stop) => None,
        };
        let Some(arrival) = arrival else { break };
        let arrival = match arrival {
            // The executor lost its core while the client was on its way.
            Arrival::Client(client) if !server.doors.is_open(executor.number) => {
                sessions.fetch_sub(1, Ordering::Relaxed);
                server.doors.welcome(client);
                continue;
            }
            arrival => arrival,
        };
        let closing = Rc::new(Closing::default());
        list(&mut open.borrow_mut(), &closing);
        let (server, executor, sessions) = (server.clone(), executor.clone(), sessions.clone());
        tokio::task::spawn_local(async move {
            // The count goes down even if the session's task panics or is dropped.
            let _place = Place(sessions);
            in_own_depth(connection::serve(server, executor, arrival, closing)).await;
        });
    }
    // Who is on the way here meets a closed door; who has come through it already is sent away.
    arrivals.close();
    while let Ok(arrival) = arrivals.try_recv() {
        sessions.fetch_sub(1, Ordering::Relaxed);
        arrival.turn_away();
    }
    for closing in open.borrow().iter().filter_map(std::rc::Weak::upgrade) {
        closing.ask();
    }
    let begun = Instant::now();
    let mut cancelled = false;
    // Partitions of this thread may be wanted by sessions of others: all leave together.
    while server.sessions.count() > 0 && begun.elapsed() < 2 * SHUTDOWN_GRACE {
        if !cancelled && begun.elapsed() > SHUTDOWN_GRACE {
            cancelled = true;
            for session in server.sessions.list() {
                session.cancel(CancelReason::Shutdown);
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Lists a session among those that are open, and forgets those that have ended.
fn list(open: &mut Vec<std::rc::Weak<Closing>>, closing: &Rc<Closing>) {
    open.retain(|closing| closing.strong_count() > 0);
    open.push(Rc::downgrade(closing));
}

struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
