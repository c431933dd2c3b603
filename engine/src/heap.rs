//! How much memory the threads have taken: what bounds the values of a statement.
//!
//! Rows are accounted where they are written, against `max_memory`. What a routine's variables hold
//! nobody counts but the allocator, which counts for each thread what it hands out and takes back.
//! A run of a statement stays on one thread, so the difference since its beginning is its own.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

thread_local! {
    static TAKEN: Cell<i64> = const { Cell::new(0) };
}

/// An allocator that counts. The binary installs it around its own.
pub struct Counting<A>(pub A);

#[inline]
fn note(bytes: i64) {
    TAKEN.with(|taken| taken.set(taken.get() + bytes));
}

/// Bytes that this thread has taken and not given back; what it gave back for others counts, too.
/// Zero in a program without [`Counting`].
#[inline]
pub fn taken_bytes() -> i64 {
    TAKEN.with(Cell::get)
}

// SAFETY: every call goes to the other allocator as it came, and its answer back. The counter is a
// thread-local number without a destructor: reading and writing it allocates nothing, cannot panic,
// and works until the thread's last instruction.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        // SAFETY: the caller's promises are those of this call.
        unsafe { self.0.alloc(layout) }
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
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { self.0.realloc(at, layout, size) }
    }
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
}
