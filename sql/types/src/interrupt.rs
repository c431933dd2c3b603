//! How long work hears that nobody waits for it any longer: a statement that was cancelled, that ran
//! into `statement_timeout`, whose client has gone. By the same questions it hears that it has taken
//! what memory there was: documents, lists of matches and the like grow while they are read.
//!
//! A thread knows whose statement it works for ([`Watch`]), and whatever may take long says now and
//! then how far it has come ([`steps`]): a regular expression that goes through a text, a document
//! that is read, an expression that is bound. That subtracts from a counter of the thread; every some
//! ten thousand steps the session is asked, as PostgreSQL's CHECK_FOR_INTERRUPTS does. So functions and
//! the binder need nothing handed down to be ended, and pay nothing that could be measured for it.
//!
//! A step is a few nanoseconds of work: a byte that is copied, an element that is compared. What
//! costs more counts as more. Work that a library does in one piece cannot be asked: it is given to
//! it in pieces ([`PIECE`]) where that can be done.
//!
//! Where no session is known (tests, constant folding at the start), nobody asks for an end.
//!
//! By the same questions it hears that it has kept a thread that others wait for, too, longer than it may
//! ([`Budget`]): it fails with an error that is no SQL condition ([`SqlError::is_over_budget`]), and whoever
//! gave it that time begins it anew where nobody waits. Once it is spent every question fails until the
//! budget ends, so that it makes no difference who on the way took the first error for something else.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Result, SqlError, SqlState};
use crate::memory::{self, Grown};

/// Steps between two questions: some hundred microseconds of the cheapest work.
const ASKS_EVERY: usize = 1 << 16;

/// Bytes that are done in one piece between two questions.
pub const PIECE: usize = 1 << 20;

/// Who tells of the end of a statement: every session does ([`crate::function::SessionHost`]).
pub trait Interruptible {
    /// The error of a statement that was asked to stop.
    fn asked_to_stop(&self) -> Option<SqlError>;
}

/// Whom a thread asks.
pub type Session = Arc<dyn Interruptible + Send + Sync>;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(ASKS_EVERY) };
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
    static GROWN: Cell<Grown> = const { Cell::new(Grown::UNKNOWN) };
    static ALLOWED: Cell<Option<usize>> = const { Cell::new(None) };
    static TIME: Cell<Time> = const { Cell::new(Time::Unlimited) };
}

/// What a thread has of its [`Budget`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Unlimited,
    /// So much from the first question on: what asks nothing pays for no look at the clock.
    Lasts(Duration),
    Until(Instant),
    Spent,
    /// So it is for [`once`].
    ForOnce,
}

/// How long what this thread does may take, until this is dropped: for a thread that others wait for. What
/// runs under one must be such that it can begin anew; never on a thread that is its alone, where it would
/// do so for ever.
///
/// It counts from the first question, which comes within some hundred microseconds of work.
pub struct Budget {
    before: Time,
}

impl Budget {
    /// So much from now on, whatever there was before; that goes on when this is dropped.
    #[must_use]
    pub fn of(most: Duration) -> Budget {
        Budget { before: TIME.replace(Time::Lasts(most)) }
    }

    /// Whether it was over when somebody asked: whatever the work has come to since, it is not good.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        matches!(TIME.get(), Time::Spent | Time::ForOnce)
    }

    /// Whether it is over because of what is to be done [`once`]: the work is to go where it is not begun anew
    /// any more.
    #[must_use]
    pub fn is_spent_for_once(&self) -> bool {
        TIME.get() == Time::ForOnce
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        TIME.set(self.before);
    }
}

/// What is about to be done others will see, and it is not to be done twice: where there is a budget it is
/// not done at all, as if that were spent. What has none does it once, however long the rest takes.
pub fn once() -> Result<()> {
    if TIME.get() == Time::Unlimited {
        return Ok(());
    }
    TIME.set(Time::ForOnce);
    Err(over_budget())
}

/// What `work` comes to on a thread that it may keep so long; `None` if it takes longer.
pub fn within<T>(most: Duration, work: impl FnOnce() -> T) -> Option<T> {
    let budget = Budget::of(most);
    let done = work();
    (!budget.is_spent()).then_some(done)
}

/// So many steps of work are done, or about to be; fails when the statement shall end.
#[inline]
pub fn steps(count: usize) -> Result<()> {
    let left = LEFT.get();
    if count < left {
        LEFT.set(left - count);
        return Ok(());
    }
    spend(count)
}

#[cold]
#[inline(never)]
fn spend(count: usize) -> Result<()> {
    if let Some(allowed) = ALLOWED.get() {
        let Some(left) = allowed.checked_sub(count.max(ASKS_EVERY)) else { return Err(too_long()) };
        ALLOWED.set(Some(left));
    }
    check()
}

/// Nobody is told of it: what is done in [`briefly`] can be done later.
fn too_long() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "this takes too many steps to be done beforehand")
}

/// Does work that need not be done now, unless it takes more steps than these, about: then it fails.
pub fn briefly<T>(steps: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    /// What was allowed before.
    struct Before(Option<usize>);
    impl Drop for Before {
        fn drop(&mut self) {
            ALLOWED.set(self.0);
        }
    }
    let _before = Before(ALLOWED.replace(Some(steps)));
    work()
}

/// One step.
#[inline]
pub fn step() -> Result<()> {
    steps(1)
}

/// Fails when the statement shall end, or has taken more memory than there is: for work of which one
/// step is long.
#[cold]
#[inline(never)]
pub fn check() -> Result<()> {
    LEFT.set(ASKS_EVERY);
    let asked = SESSION.with_borrow(|session| session.as_ref().map(|session| session.asked_to_stop()));
    match asked {
        // Nobody's work, which nobody would hear the end of.
        None => Ok(()),
        Some(Some(error)) => Err(error),
        Some(None) => {
            let mut grown = GROWN.get();
            let fits = grown.require();
            GROWN.set(grown);
            fits.and_then(|()| require_time())
        }
    }
}

/// Fails when the thread's budget is spent.
fn require_time() -> Result<()> {
    match TIME.get() {
        Time::Unlimited => return Ok(()),
        Time::Lasts(most) => {
            // One that cannot be told as a moment never ends.
            TIME.set(Instant::now().checked_add(most).map_or(Time::Unlimited, Time::Until));
            return Ok(());
        }
        Time::Until(end) if Instant::now() < end => return Ok(()),
        Time::Until(_) => TIME.set(Time::Spent),
        Time::Spent | Time::ForOnce => {}
    }
    Err(over_budget())
}

fn over_budget() -> SqlError {
    // The next step asks again.
    LEFT.set(0);
    SqlError::new(SqlState::OVER_BUDGET, "this takes longer than its thread may be kept")
}

/// Calls `take` with one piece of some bytes after the other.
pub fn in_pieces(bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<()> {
    for piece in bytes.chunks(PIECE) {
        steps(piece.len())?;
        take(piece);
    }
    Ok(())
}

/// The same of a text; no character is cut.
pub fn in_text_pieces(text: &str, mut take: impl FnMut(&str)) -> Result<()> {
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = PIECE.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, behind) = rest.split_at(end);
        steps(piece.len())?;
        take(piece);
        rest = behind;
    }
    Ok(())
}

/// Gathers what an iterator hands out, each of which takes so many steps.
pub fn gather<T>(items: impl Iterator<Item = T>, steps_each: usize) -> Result<Vec<T>> {
    let least = items.size_hint().0;
    memory::check(least.saturating_mul(size_of::<T>()))?;
    let mut gathered = Vec::with_capacity(least);
    for item in items {
        steps(steps_each)?;
        memory::push(&mut gathered, item)?;
    }
    Ok(gathered)
}

/// Names the session for which this thread works from now on, and not only for a time: what polls
/// tasks keeps one for each ([`Watch::taken`]).
pub fn work_for(session: Session) {
    GROWN.set(Grown::from_now());
    SESSION.with_borrow_mut(|current| *current = Some(session));
}

fn replace(session: Option<Session>) -> Option<Session> {
    GROWN.set(Grown::from_now());
    SESSION.with_borrow_mut(|current| std::mem::replace(current, session))
}

/// A session for which this thread works until this is dropped.
pub struct Watch {
    before: Option<Session>,
}

impl Watch {
    #[must_use]
    pub fn of(session: Session) -> Watch {
        Watch { before: replace(Some(session)) }
    }

    /// The same of a task, whose session may not be known yet.
    #[must_use]
    pub fn of_task(session: Option<Session>) -> Watch {
        Watch { before: replace(session) }
    }

    /// The session that is known now, which nobody is asked for until this is dropped.
    pub fn taken(&self) -> Option<Session> {
        replace(None)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        replace(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::function::SessionHost;

    /// Says after so many questions that the statement was cancelled.
    struct Patience(AtomicUsize);

    impl SessionHost for Patience {
        fn interrupted(&self) -> bool {
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
        }
    }

    fn patience(questions: usize) -> Arc<Patience> {
        Arc::new(Patience(AtomicUsize::new(questions)))
    }

    #[test]
    fn long_work_is_ended_and_short_work_is_not_asked_about() {
        let session = patience(3);
        let _watch = Watch::of(session.clone());
        check().expect("two are left");
        for _ in 0..1_000 {
            step().expect("nobody was asked");
        }
        assert_eq!(session.0.load(Ordering::Relaxed), 2);
        let ended = (0..10 * ASKS_EVERY).find(|_| step().is_err()).expect("it is ended");
        assert!(ended > ASKS_EVERY, "{ended}");
        let error = steps(usize::MAX).expect_err("it stays ended");
        assert_eq!(error.state(), SqlState::QUERY_CANCELED);
        assert_eq!(error.to_string(), "canceling statement due to user request");
    }

    #[test]
    fn a_thread_works_for_one_session_at_a_time() {
        check().expect("nobody is known");
        let outer = Watch::of(patience(0));
        assert!(check().is_err());
        {
            let _inner = Watch::of(patience(10));
            check().expect("another's statement");
        }
        assert!(check().is_err());
        let taken = outer.taken();
        assert!(taken.is_some());
        check().expect("nobody is known");
        drop(outer);
        check().expect("nobody was known before");
        let task = Watch::of_task(taken);
        assert!(check().is_err());
        drop(task);
    }

    #[test]
    fn what_is_over_its_budget_stays_so_until_that_ends() {
        let _watch = Watch::of(patience(usize::MAX));
        assert_eq!(within(Duration::from_secs(3_600), || check().and_then(|()| check())), Some(Ok(())));
        let over = within(Duration::ZERO, || {
            check().expect("it counts from here");
            let error = check().expect_err("it is over");
            assert!(error.is_over_budget());
            // Somebody takes it for a failure of his own, and goes on.
            assert!(step().is_err_and(|error| error.is_over_budget()));
            // Another's time is not this one's.
            within(Duration::from_secs(3_600), || check().and_then(|()| check())).expect("in time")?;
            step()
        });
        assert_eq!(over, None);
        check().expect("nobody counts any more");
        step().expect("nor here");
    }

    #[test]
    fn what_cannot_be_undone_is_done_where_there_is_no_budget() {
        let _watch = Watch::of(patience(usize::MAX));
        let over = within(Duration::from_secs(3_600), || {
            assert!(once().is_err_and(|error| error.is_over_budget()));
            // So it stays, whoever takes that for a failure of his own.
            assert!(step().is_err_and(|error| error.is_over_budget()));
            once()
        });
        assert_eq!(over, None);
        let budget = Budget::of(Duration::ZERO);
        assert!(check().and_then(|()| check()).is_err() && budget.is_spent() && !budget.is_spent_for_once());
        assert!(once().is_err() && budget.is_spent() && budget.is_spent_for_once());
        drop(budget);
        once().expect("nobody waits for this thread");
        step().expect("nor counts");
    }

    #[test]
    fn a_cancelled_statement_is_that_whatever_its_budget() {
        let _watch = Watch::of(patience(1));
        let budget = Budget::of(Duration::ZERO);
        check().expect("it counts from here");
        assert_eq!(check().map_err(|error| error.state()), Err(SqlState::QUERY_CANCELED));
        assert!(!budget.is_spent());
    }

    #[test]
    fn what_need_not_be_done_now_ends_when_it_is_long() {
        let _watch = Watch::of(patience(1_000));
        let work = |pieces: usize| briefly(4 * PIECE, || (0..pieces).try_for_each(|_| steps(PIECE)));
        work(4).expect("it is short enough");
        assert_eq!(work(5).expect_err("it is too long").state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(briefly(PIECE, || steps(usize::MAX)).is_err());
        // It is allowed for that work alone.
        (0..100).try_for_each(|_| steps(PIECE)).expect("nobody has asked it to end");
    }

    #[test]
    fn pieces_come_whole_and_end_early() {
        let bytes = vec![7_u8; 2 * PIECE + 5];
        let mut seen = 0;
        in_pieces(&bytes, |piece| seen += piece.len()).expect("nobody is known");
        assert_eq!(seen, bytes.len());
        let text = "aäö".repeat(PIECE / 2);
        let mut same = String::new();
        in_text_pieces(&text, |piece| same.push_str(piece)).expect("nobody is known");
        assert!(same == text);
        assert_eq!(gather(0..5, 1).expect("nobody is known"), [0, 1, 2, 3, 4]);
        let _watch = Watch::of(patience(0));
        assert!(in_pieces(&bytes, |_| ()).is_err());
        assert!(in_text_pieces(&"a".repeat(2 * PIECE), |_| ()).is_err());
        assert!(gather(0..10 * ASKS_EVERY, 1).is_err());
    }
}
