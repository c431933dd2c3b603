//! Threads beside the executors, for what computes long or waits for a disk: as many as there is work at
//! a time, each kept for a while after its work in case more comes.
//!
//! Where no thread can be started (`ulimit -v`, a kernel that overcommits nothing, a limit of processes)
//! the work is refused at once, and the statement that it was for answers 53200: behind others it could
//! wait for as long as somebody keeps a cursor open.
//!
//! A stack takes its addresses before anybody knows how much of it will be used. So it is made for the
//! deepest `max_stack_depth` that there has been ([`stack::thread_bytes`]), not for the deepest that there
//! may be; threads that wait with smaller ones are passed over.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::time::{Duration, Instant};

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::stack;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::memory;

/// How long a thread waits for more work before it ends.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// What is said when work has ended and its thread is free again.
type Said = Box<dyn FnOnce() + Send>;
type Work = Box<dyn FnOnce() -> Said + Send>;

/// Threads of one name.
#[derive(Clone)]
pub struct Threads(Arc<Shared>);

struct Shared {
    name: &'static str,
    on_start: fn(),
    state: Mutex<State>,
    /// Work has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Idle>,
    /// How many have work.
    busy: usize,
    /// The number of the next that becomes idle.
    next: u64,
}

/// A thread that waits for work.
struct Idle {
    number: u64,
    stack_bytes: usize,
    work: Sender<Work>,
}

impl Threads {
    /// None yet; each will begin with a call of `on_start`.
    pub fn new(name: &'static str, on_start: fn()) -> Threads {
        let (state, ended) = (Mutex::default(), Condvar::new());
        Threads(Arc::new(Shared { name, on_start, state, ended }))
    }

    /// Runs `work`; 53200 if there can be no thread for it.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let work = move || -> Said {
            work();
            Box::new(|| ())
        };
        self.give(Box::new(work), stack::thread_bytes())
    }

    /// The same; what comes of it is received, unless it panics.
    pub fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>> {
        let (sender, done) = oneshot::channel();
        // Whoever hears of it may have more work, for which the thread is free by then.
        let work = move || -> Said {
            let done = work();
            Box::new(move || {
                // Nobody may want to know any more.
                let _ = sender.send(done);
            })
        };
        self.give(Box::new(work), stack::thread_bytes())?;
        Ok(done)
    }

    /// Waits until there is no work any more, but for so long at most.
    pub fn finish(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let mut state = self.0.state.lock();
        while state.busy > 0 {
            if self.0.ended.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }

    fn give(&self, mut work: Work, stack_bytes: usize) -> Result<()> {
        {
            let mut state = self.0.state.lock();
            state.busy += 1;
            let fits = |idle: &Idle| idle.stack_bytes >= stack_bytes;
            while let Some(at) = state.idle.iter().rposition(fits) {
                // It looks whether it is still listed before it stops listening.
                match state.idle.swap_remove(at).work.send(work) {
                    Ok(()) => return Ok(()),
                    Err(SendError(refused)) => work = refused,
                }
            }
        }
        // However it ends, and if there can be no thread.
        let busy = Busy(self.0.clone());
        if !memory::fits_stack(stack_bytes) {
            return Err(no_thread(&ErrorKind::OutOfMemory.into()));
        }
        let thread = std::thread::Builder::new().name(self.0.name.to_owned()).stack_size(stack_bytes);
        match thread.spawn(move || serve(work, busy, stack_bytes)) {
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::warn!(%error, "a thread could not be started");
                Err(no_thread(&error))
            }
        }
    }
}

/// The stack of a thread that the engine starts for a program; an error where it would take the addresses
/// of what memory may still be taken.
pub fn stack_for_program() -> std::io::Result<usize> {
    let stack_bytes = stack::thread_bytes();
    if memory::fits_stack(stack_bytes) { Ok(stack_bytes) } else { Err(ErrorKind::OutOfMemory.into()) }
}

/// 53200, as for memory that is not there.
fn no_thread(error: &std::io::Error) -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .with_detail(format!("A thread for the statement could not be started: {error}."))
}

/// Counts among those that have work, until this is dropped.
struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.state.lock().busy -= 1;
        self.0.ended.notify_all();
    }
}

/// The body of a thread.
fn serve(first: Work, busy: Busy, stack_bytes: usize) {
    let shared = busy.0.clone();
    (shared.on_start)();
    let (sender, given) = channel();
    let (mut work, mut busy) = (first, Some(busy));
    loop {
        let said = work();
        let number = shared.wait(stack_bytes, sender.clone());
        drop(busy.take());
        said();
        let Some(more) = shared.next_work(number, &given) else { return };
        work = more;
        // It was counted when it was given.
        busy = Some(Busy(shared.clone()));
    }
}

impl Shared {
    /// Lists a thread among those that wait.
    fn wait(&self, stack_bytes: usize, work: Sender<Work>) -> u64 {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.idle.push(Idle { number, stack_bytes, work });
        number
    }

    /// What a thread is given that waits under this number; `None` if nothing comes.
    fn next_work(&self, number: u64, given: &Receiver<Work>) -> Option<Work> {
        match given.recv_timeout(KEPT_FOR) {
            Ok(work) => return Some(work),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        {
            let mut state = self.state.lock();
            if let Some(at) = state.idle.iter().position(|idle| idle.number == number) {
                state.idle.swap_remove(at);
                return None;
            }
        }
        // Somebody has taken it from the list, with work in hand.
        given.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn nothing() {}

    #[tokio::test]
    async fn a_thread_is_free_again_when_its_work_is_heard_of() {
        let threads = Threads::new("test", nothing);
        let mut seen = Vec::new();
        for _ in 0..20 {
            let done = threads.begin(|| std::thread::current().id()).unwrap();
            seen.push(done.await.unwrap());
        }
        assert!(seen.iter().all(|thread| *thread == seen[0]), "{seen:?}");
    }

    #[test]
    fn work_waits_for_no_other_work() {
        let threads = Threads::new("test", nothing);
        let (all_here, here) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        for _ in 0..8 {
            let (all_here, wait) = (all_here.clone(), wait.clone());
            threads
                .run(move || {
                    all_here.send(()).unwrap();
                    // Until nobody can send any more.
                    let _ = wait.lock().recv();
                })
                .unwrap();
        }
        for _ in 0..8 {
            here.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        assert_eq!(threads.0.state.lock().busy, 8);
        drop(go);
        threads.finish(Duration::from_secs(60));
        assert_eq!(threads.0.state.lock().busy, 0);
    }

    #[tokio::test]
    async fn work_that_panics_is_not_heard_of_and_holds_nothing_up() {
        let threads = Threads::new("test", nothing);
        let done = threads.begin(|| -> i32 { panic!("as asked for") }).unwrap();
        assert!(done.await.is_err());
        threads.finish(Duration::from_secs(60));
        assert_eq!(threads.0.state.lock().busy, 0);
        assert_eq!(threads.begin(|| 7).unwrap().await, Ok(7));
    }

    #[tokio::test]
    async fn where_there_can_be_no_thread_the_work_is_refused_and_nothing_else() {
        let threads = Threads::new("test", nothing);
        let never = Box::new(|| -> Said { panic!("there is no thread for it") });
        // More addresses than there are.
        let error = threads.give(never, 1 << 60).unwrap_err();
        assert_eq!(threads.0.state.lock().busy, 0);
        assert_eq!(threads.begin(|| 7).unwrap().await, Ok(7));
        assert_eq!((error.state(), error.message()), (SqlState::OUT_OF_MEMORY, "out of memory"));
        let detail = error.fields().detail.as_deref().unwrap_or_default().to_owned();
        assert!(detail.starts_with("A thread for the statement could not be started: "), "{detail}");
    }
}
