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

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::error::{Result, SqlError};
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
}

/// So many steps of work are done, or about to be; fails when the statement shall end.
#[inline]
pub fn steps(count: usize) -> Result<()> {
    let left = LEFT.get();
    if count < left {
        LEFT.set(left - count);
        return Ok(());
    }
    check()
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
            fits
        }
    }
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
    use crate::error::SqlState;
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
