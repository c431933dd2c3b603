//! What RocksDB frees goes back to the operating system.
//!
//! RocksDB allocates through the C library, whose arenas keep freed blocks per thread: after a
//! bulk load they held a quarter of a gigabyte of write buffers that were long flushed. Two
//! arenas, and blocks of a write buffer's size mapped on their own, so that freeing unmaps.

use std::sync::Once;

/// A write buffer grows by blocks of this size or larger.
#[cfg(target_env = "gnu")]
const MAPPED_FROM_BYTES: libc::c_int = 256 << 10;

/// Tunes the C library's allocator, once a process.
pub(crate) fn give_back_what_is_freed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(target_env = "gnu")]
        // SAFETY: mallopt only sets parameters of the allocator; both are documented, and the
        // allocator takes them at any time.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 2);
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
        }
    });
}
