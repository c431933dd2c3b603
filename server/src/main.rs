//! The binary `archipel`.

use std::process::ExitCode;

use archipel_engine::heap::Counting;
use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// `mi_option_purge_delay` of mimalloc.h, which the bindings do not name.
const PURGE_DELAY: mi_option_t = 15;

/// How long memory that was freed stays ours, in milliseconds. What old versions and pages of
/// queries leave is taken again soon, and memory that went back to the kernel must be cleared
/// anew by the executor that takes it. `MIMALLOC_PURGE_DELAY` says otherwise.
const FREED_MEMORY_STAYS_MS: std::ffi::c_long = 10_000;

fn main() -> ExitCode {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: it takes integers and stores one, atomically, among the allocator's options.
        unsafe { mi_option_set(PURGE_DELAY, FREED_MEMORY_STAYS_MS) };
    }
    archipel::cli::main()
}
