//! How much memory there is, and who has taken it: the one budget of the process.
//!
//! **What is charged** is what the allocator hands out: every byte of rows, undo, redo, images, old
//! versions, messages, results, values of routines, sorts and hash tables, whoever asked for it. It
//! is given back when it is freed, so an error, a cancellation or a panic leaves nothing charged.
//! Each thread counts for itself, and settles with the process when its count has moved by
//! [`STEP_BYTES`]: the hot path writes to its thread's own memory only, and the shared number is
//! wrong by no more than that for each thread.
//!
//! **What is refused.** An allocator cannot refuse a piece of memory without ending the process, so
//! those ask who are about to take more, at points where an error can be answered: writes
//! ([`rows_exceed`]), and whatever a statement computes ([`work_exceeds`]), which may go a little
//! further: where rows take all there is, they can still be read and deleted.
//!
//! **What is not charged** (stacks, the log store's buffers, memory that was freed and has not gone
//! back to the system, what is lost between pieces) is measured from outside by whoever can:
//! [`set_pressed`] says that the process as a whole has become too large, and then the same
//! questions are answered alike.
//!
//! A run of a statement stays on one thread, so what its thread has taken since its beginning
//! ([`taken_bytes`]) is its own.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crossbeam::utils::CachePadded;

/// By so much a thread's count moves before it settles with the process.
pub const STEP_BYTES: i64 = 1 << 20;

/// The first time it settles earlier: only then does it see to it that nothing is forgotten when it
/// ends, which threads that hardly take anything do not need, unless many of them come and go
/// ([`settle_at_end`]).
const FIRST_STEP_BYTES: u64 = 64 << 10;

/// What statements may take beyond the limit of rows: this part of it.
const WORK_SHARE: i64 = 16;

/// And no less than this.
const WORK_BYTES_MIN: i64 = 16 << 20;

/// A thread's count.
struct Count {
    /// All it has taken and not given back.
    taken: Cell<i64>,
    /// What the process has not heard of yet.
    unsettled: Cell<i64>,
    /// How far that may go.
    step: Cell<u64>,
}

/// Settles what its thread still has to.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        COUNT.with(|count| {
            // What other destructors give back from now on is settled at once.
            count.step.set(0);
            settle(count);
        });
    }
}

thread_local! {
    static COUNT: Count = const {
        Count { taken: Cell::new(0), unsettled: Cell::new(0), step: Cell::new(FIRST_STEP_BYTES) }
    };
    static END: End = const { End };
}

/// What all threads have settled.
static CHARGED: CachePadded<AtomicI64> = CachePadded::new(AtomicI64::new(0));

/// Read by everybody who asks, written hardly ever.
struct Limits {
    rows: AtomicI64,
    work: AtomicI64,
    pressed: AtomicBool,
}

static LIMITS: CachePadded<Limits> = CachePadded::new(Limits {
    rows: AtomicI64::new(i64::MAX),
    work: AtomicI64::new(i64::MAX),
    pressed: AtomicBool::new(false),
});

/// An allocator that counts. The binary installs it around its own.
pub struct Counting<A>(pub A);

#[inline]
fn note(bytes: i64) {
    COUNT.with(|count| {
        count.taken.set(count.taken.get() + bytes);
        let unsettled = count.unsettled.get() + bytes;
        count.unsettled.set(unsettled);
        if unsettled.unsigned_abs() >= count.step.get() {
            settle(count);
        }
    });
}

#[cold]
#[inline(never)]
fn settle(count: &Count) {
    CHARGED.fetch_add(count.unsettled.replace(0), Ordering::Relaxed);
    if count.step.get() == FIRST_STEP_BYTES {
        // Before the line below, which may come here again where the system's way to note
        // destructors takes memory.
        count.step.set(STEP_BYTES as u64);
        // Refused at the end of the thread: then what comes is settled by steps.
        let _ = END.try_with(|_| ());
    }
}

/// Has this thread settle all of its count when it ends, however little that is: for threads of which
/// many come and go, each of which would leave a little charged or forgotten.
pub fn settle_at_end() {
    COUNT.with(|count| {
        if count.step.get() == FIRST_STEP_BYTES {
            settle(count);
        }
    });
}

/// Bytes that this thread has taken and not given back; what it gave back for others counts, too.
/// Zero in a program without [`Counting`].
#[inline]
pub fn taken_bytes() -> i64 {
    COUNT.with(|count| count.taken.get())
}

/// Bytes that the process has taken and not given back, but for what its threads have not settled.
/// Zero in a program without [`Counting`].
pub fn charged_bytes() -> i64 {
    CHARGED.load(Ordering::Relaxed)
}

/// Bounds what the process may take: rows by `bytes`, all work on its way by a little more.
pub fn set_limit(bytes: i64) {
    let more = (bytes / WORK_SHARE).max(WORK_BYTES_MIN);
    LIMITS.rows.store(bytes, Ordering::Relaxed);
    LIMITS.work.store(bytes.saturating_add(more), Ordering::Relaxed);
}

/// Says whether the process as a whole, with what nobody is charged for, takes too much.
pub fn set_pressed(pressed: bool) {
    LIMITS.pressed.store(pressed, Ordering::Relaxed);
}

/// Whether the process as a whole takes too much.
pub fn is_pressed() -> bool {
    LIMITS.pressed.load(Ordering::Relaxed)
}

/// Whether there is no memory for more rows.
#[inline]
pub fn rows_exceed() -> bool {
    charged_bytes() > LIMITS.rows.load(Ordering::Relaxed) || is_pressed()
}

/// Bytes that may still be taken; none where nobody has said how many there may be.
pub fn left_bytes() -> i64 {
    match LIMITS.work.load(Ordering::Relaxed) {
        i64::MAX => 0,
        limit => limit.saturating_sub(charged_bytes()).max(0),
    }
}

/// Whether there is no memory for so many bytes more of what a statement needs on its way.
#[inline]
pub fn work_exceeds(bytes: usize) -> bool {
    let asked = i64::try_from(bytes).unwrap_or(i64::MAX);
    charged_bytes().saturating_add(asked) > LIMITS.work.load(Ordering::Relaxed) || is_pressed()
}

// SAFETY: every call goes to the other allocator as it came, and its answer back. The counter is a
// thread-local number without a destructor: reading and writing it allocates nothing, cannot panic,
// and works until the thread's last instruction. What settles the rest of it at a thread's end has a
// destructor, and is touched once, when that cannot come here again without end (`settle`).
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        // SAFETY: the caller's promises are those of this call.
        had(unsafe { self.0.alloc(layout) }, layout.size() as i64)
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { self.0.dealloc(at, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        // SAFETY: as above.
        had(unsafe { self.0.alloc_zeroed(layout) }, layout.size() as i64)
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let more = size as i64 - layout.size() as i64;
        note(more);
        // SAFETY: as above.
        had(unsafe { self.0.realloc(at, layout, size) }, more)
    }
}

/// Takes back what was counted for memory that the system has not given.
#[inline]
fn had(at: *mut u8, counted: i64) -> *mut u8 {
    if at.is_null() {
        note(-counted);
    }
    at
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    #[test]
    fn what_is_taken_and_given_back_is_counted() {
        let counting = Counting(System);
        let (small, large) =
            (Layout::array::<u64>(100).expect("small"), Layout::array::<u64>(300).expect("small"));
        let before = taken_bytes();
        // SAFETY: each piece is given back once, by the layout it has.
        unsafe {
            let one = counting.alloc(small);
            let zeroed = counting.alloc_zeroed(small);
            assert!(!one.is_null() && !zeroed.is_null());
            assert_eq!(*zeroed, 0);
            assert_eq!(taken_bytes(), before + 1_600);
            let grown = counting.realloc(one, small, large.size());
            assert!(!grown.is_null());
            assert_eq!(taken_bytes(), before + 3_200);
            counting.dealloc(grown, large);
            counting.dealloc(zeroed, small);
        }
        assert_eq!(taken_bytes(), before);
    }

    #[test]
    fn what_the_system_refuses_is_not_counted() {
        let counting = Counting(System);
        let (small, all) = (
            Layout::array::<u64>(100).expect("small"),
            Layout::from_size_align(isize::MAX as usize - 4096, 1).expect("a layout may be so large"),
        );
        let before = taken_bytes();
        // SAFETY: nothing is given but the small piece, which is given back by its layout.
        unsafe {
            assert!(std::hint::black_box(counting.alloc(all)).is_null());
            let piece = std::hint::black_box(counting.alloc(small));
            assert!(std::hint::black_box(counting.realloc(piece, small, all.size())).is_null());
            counting.dealloc(piece, small);
        }
        assert_eq!(taken_bytes(), before);
    }
}
