//! How deep a thread's stack may grow: `max_stack_depth`.
//!
//! Whatever recurses over what somebody made (statements, plans, routines that call each other,
//! values) asks [`check`] on the way down and answers 54001 where the stack has grown too deep.
//! What cannot answer an error (clones, comparisons, drops, walks that only look) does not ask: it
//! is never deeper than what had asked when the thing was made, and takes less for each level. So
//! a thread's stack is twice what may be used of it:
//!
//! ```text
//! top │ used by those that ask, at most max_stack_depth │ left to those that do not ask │ end
//! ```
//!
//! PostgreSQL's bytes are not ours: frames of this server are larger. Each byte of
//! `max_stack_depth` stands for several bytes of a stack, so that about as much nests as there.
//!
//! Asking is cheap: the address of something on the stack is compared with bounds that the thread
//! keeps. They are found at the first question, and anew on another stack, where a library that
//! grows stacks of its own has gone on.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::types::Oid;

/// `max_stack_depth` where nobody says otherwise, in kilobytes.
pub const DEPTH_DEFAULT_KB: u32 = 2 << 10;

/// The most that `max_stack_depth` may be, in kilobytes: as on platforms with 8 MB for a stack.
pub const DEPTH_MAX_KB: u32 = 7_680;

/// How many bytes of a stack stand for one of `max_stack_depth`.
const SCALE: usize = if cfg!(debug_assertions) { 48 } else { 16 };

/// The stack of a thread that runs statements of all sessions that there may be. Addresses alone are
/// taken: memory follows as far as a stack is used.
pub const THREAD_BYTES: usize = bytes_for(DEPTH_MAX_KB);

/// The deepest `max_stack_depth` that anybody has had, in kilobytes.
static DEEPEST_KB: AtomicU32 = AtomicU32::new(DEPTH_DEFAULT_KB);

const fn bytes_for(depth_kb: u32) -> usize {
    2 * SCALE * depth_kb as usize * 1024
}

/// The stack of a thread that starts now and runs what there is until now. Addresses are bounded, too,
/// where `ulimit -v` or the kernel says so, and most servers never leave the default: so a thread of which
/// there may be many is not made for the deepest that could be asked for.
pub fn thread_bytes() -> usize {
    bytes_for(DEEPEST_KB.load(Ordering::Relaxed).min(DEPTH_MAX_KB))
}

/// How many levels of a nested value stand for one kilobyte of `max_stack_depth`.
const VALUE_LEVELS: usize = 2;

/// A value holds no more others. Two fields may be one value, which takes no memory twice, but twice
/// the time of whoever walks over it: PostgreSQL, which copies, comes to the end of 1 GB there.
const VALUES_MAX: usize = 1 << 27;

/// As much may lie above the first place that was looked at.
const ABOVE_BYTES: usize = 64 << 10;

/// How exactly the end of a stack is found.
const END_BYTES: usize = 4 << 10;

/// What a thread knows of the stack it is on.
struct Stack {
    /// Below this nobody may be who asks.
    floor: Cell<usize>,
    /// What lies between that and the top.
    span: Cell<usize>,
    top: Cell<usize>,
    end: Cell<usize>,
    depth_kb: Cell<u32>,
}

thread_local! {
    static STACK: Stack = const {
        Stack {
            floor: Cell::new(0),
            span: Cell::new(0),
            top: Cell::new(0),
            end: Cell::new(0),
            depth_kb: Cell::new(DEPTH_DEFAULT_KB),
        }
    };
}

/// About where the stack is now.
#[inline(always)]
fn here() -> usize {
    let mark = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&mark)).addr()
}

impl Stack {
    #[inline]
    fn holds(&self, here: usize) -> bool {
        here.wrapping_sub(self.floor.get()) < self.span.get()
    }

    /// Whether there is room after all: nobody has looked on this stack, or not from so far up.
    #[cold]
    #[inline(never)]
    fn look(&self) -> bool {
        // Where nothing is known of stacks, nothing can be refused.
        let Some(left) = stacker::remaining_stack() else { return true };
        let here = here();
        let end = here.saturating_sub(left);
        if end.abs_diff(self.end.get()) > END_BYTES {
            self.end.set(end);
            self.top.set(here + ABOVE_BYTES);
            self.measure();
        } else if here >= self.top.get() {
            self.top.set(here + ABOVE_BYTES);
            self.measure();
        }
        here >= self.floor.get()
    }

    /// Finds the floor: by `max_stack_depth`, and half the stack is left at the least.
    fn measure(&self) {
        let (top, end) = (self.top.get(), self.end.get());
        let allowed = self.depth_kb.get() as usize * 1024 * SCALE;
        let floor = top.saturating_sub(allowed).max(end + (top - end) / 2);
        self.floor.set(floor);
        self.span.set(top - floor);
    }
}

/// 54001 where the stack is deeper than `max_stack_depth`.
#[inline]
pub fn check() -> Result<()> {
    let here = here();
    match STACK.with(|stack| stack.holds(here) || stack.look()) {
        true => Ok(()),
        false => Err(too_deep()),
    }
}

/// Whether more than half of what [`check`] allows is used: for who can do with less, and later.
#[inline]
pub fn is_half_used() -> bool {
    let here = here();
    STACK.with(|stack| {
        let room = stack.holds(here) || stack.look();
        !room || here.saturating_sub(stack.floor.get()) < stack.span.get() / 2
    })
}

/// 54001, with PostgreSQL's hint.
#[cold]
pub fn too_deep() -> SqlError {
    let depth_kb = STACK.with(|stack| stack.depth_kb.get());
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").with_hint(format!(
        "Increase the configuration parameter \"max_stack_depth\" (currently {depth_kb}kB), after ensuring \
         the platform's stack depth limit is adequate."
    ))
}

/// Sets what `max_stack_depth` is for this thread, in kilobytes; answers what it was.
pub fn set_depth(depth_kb: u32) -> u32 {
    STACK.with(|stack| {
        let before = stack.depth_kb.replace(depth_kb);
        if before != depth_kb {
            if depth_kb > DEEPEST_KB.load(Ordering::Relaxed) {
                DEEPEST_KB.fetch_max(depth_kb, Ordering::Relaxed);
            }
            stack.measure();
        }
        before
    })
}

/// `max_stack_depth` of a session, for as long as this thread runs something of it.
pub struct Depth {
    before_kb: u32,
}

impl Depth {
    /// Of so many kilobytes, until this is dropped.
    #[must_use]
    pub fn of(depth_kb: u32) -> Depth {
        Depth { before_kb: set_depth(depth_kb) }
    }

    /// What it is now, which may have been set meanwhile.
    pub fn now_kb(&self) -> u32 {
        STACK.with(|stack| stack.depth_kb.get())
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        set_depth(self.before_kb);
    }
}

/// 54001 if a record of these fields nests deeper than a value may, 54000 if it holds more values.
/// Each level of a value is one of a stack for whoever clones, compares, shows or drops it: so it is
/// refused when it is made.
#[inline]
pub fn check_fields(fields: &[Datum]) -> Result<()> {
    if fields.iter().any(is_nested) { check_levels(fields) } else { Ok(()) }
}

fn is_nested(value: &Datum) -> bool {
    inner(value).is_some()
}

/// The values that one is made of, where these may be made of others.
fn inner(value: &Datum) -> Option<&[Datum]> {
    match value {
        Datum::Record(fields) => Some(&fields[..]),
        // An array of anything else is no deeper than its type, which is made by hand.
        Datum::Array(array) if array.element == Oid::RECORD => Some(&array.values[..]),
        _ => None,
    }
}

#[inline(never)]
fn check_levels(fields: &[Datum]) -> Result<()> {
    let levels_max = STACK.with(|stack| stack.depth_kb.get()) as usize * VALUE_LEVELS;
    let mut open = vec![fields.iter()];
    let mut values = 0_usize;
    while let Some(level) = open.last_mut() {
        let Some(value) = level.next() else {
            open.pop();
            continue;
        };
        values += 1;
        if values > VALUES_MAX {
            return Err(crate::io::text_too_long());
        }
        let Some(within) = inner(value) else { continue };
        if open.len() >= levels_max {
            return Err(too_deep());
        }
        open.push(within.iter());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth_of(reached: &mut usize) -> Result<()> {
        check()?;
        *reached += 1;
        let deeper = depth_of(reached);
        // Something is left to do behind the call: it is no loop.
        std::hint::black_box(&deeper);
        deeper
    }

    /// Runs `work` on a thread with a stack of so many bytes.
    fn on_stack<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::Builder::new()
            .stack_size(bytes)
            .spawn(work)
            .expect("a thread")
            .join()
            .expect("the stack was enough")
    }

    fn reached(bytes: usize, depth_kb: u32) -> usize {
        on_stack(bytes, move || {
            let _depth = Depth::of(depth_kb);
            let mut reached = 0;
            let error = depth_of(&mut reached).expect_err("endless");
            assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX);
            reached
        })
    }

    #[test]
    fn recursion_ends_before_the_stack_does() {
        assert!(reached(2 << 20, DEPTH_DEFAULT_KB) > 100);
        assert!(reached(THREAD_BYTES, DEPTH_DEFAULT_KB) > 10_000);
    }

    #[test]
    fn the_setting_says_how_deep() {
        let (less, more) = (reached(THREAD_BYTES, 100), reached(THREAD_BYTES, DEPTH_MAX_KB));
        assert!(less * 20 < more, "{less} {more}");
    }

    #[test]
    fn threads_get_larger_stacks_once_somebody_may_go_deeper() {
        // Other tests ask for more, too, and nobody asks for less.
        assert!((bytes_for(DEPTH_DEFAULT_KB)..=THREAD_BYTES).contains(&thread_bytes()));
        on_stack(2 << 20, || drop(Depth::of(DEPTH_MAX_KB - 80)));
        assert!(thread_bytes() >= bytes_for(DEPTH_MAX_KB - 80));
        assert!(reached(thread_bytes(), DEPTH_MAX_KB - 80) > reached(THREAD_BYTES, DEPTH_DEFAULT_KB));
    }

    #[test]
    fn a_stack_that_was_grown_has_bounds_of_its_own() {
        let (before, grown, after) = on_stack(8 << 20, || {
            let count = || {
                let mut reached = 0;
                let _ = depth_of(&mut reached);
                reached
            };
            let before = count();
            let grown = stacker::grow(1 << 20, count);
            (before, grown, count())
        });
        assert!(grown > 10 && grown < before, "{grown} {before}");
        assert!(after.abs_diff(before) < before / 10, "{before} {after}");
    }

    #[test]
    fn the_hint_names_the_setting() {
        let _depth = Depth::of(300);
        let error = too_deep();
        let hint = error.fields().hint.as_deref().unwrap_or_default();
        assert!(
            hint.contains("\"max_stack_depth\" (currently 300kB), after ensuring the platform's"),
            "{hint}"
        );
    }

    #[test]
    fn values_nest_so_deep_and_no_deeper() {
        on_stack(THREAD_BYTES, || {
            let mut value = Datum::Int4(1);
            let mut levels = 0;
            let error = loop {
                let fields = [value.clone(), Datum::Int4(1)];
                match check_fields(&fields) {
                    Ok(()) => value = Datum::Record(fields.into()),
                    Err(error) => break error,
                }
                levels += 1;
            };
            assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX);
            assert_eq!(levels, DEPTH_DEFAULT_KB as usize * VALUE_LEVELS);
            let copy = value.clone();
            assert!(value == copy);
        });
    }
}
