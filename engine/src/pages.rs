//! Large pages for large buffers.
//!
//! A buffer of many megabytes is cleared by the kernel page by page, at the first touch of
//! each, and read at random it needs a translation for each. Pages of 2 MiB make both cheap.

/// Asks the kernel to back a buffer by large pages from now on, its unused room included. A hint:
/// the buffer serves as well without.
pub(crate) fn prefer_large(buffer: &Vec<u8>) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const PAGE_BYTES: usize = 4096;
        let from = (buffer.as_ptr() as usize).next_multiple_of(PAGE_BYTES);
        let to = (buffer.as_ptr() as usize + buffer.capacity()) / PAGE_BYTES * PAGE_BYTES;
        if from < to {
            // SAFETY: the range lies in one allocation that is ours; the advice changes neither its
            // content nor its protection, and a refusal is no fault.
            unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(any(not(target_os = "linux"), miri))]
    let _ = buffer;
}
