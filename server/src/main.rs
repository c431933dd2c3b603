//! The binary `archipel`.

use std::process::ExitCode;

use archipel_engine::heap::Counting;
use archipel_sql::stack::THREAD_BYTES;
use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// `mi_option_purge_delay` of mimalloc.h, which the bindings do not name.
const PURGE_DELAY: mi_option_t = 15;

/// How long memory that was freed stays ours, in milliseconds. What old versions and pages of
/// queries leave is taken again soon, and memory that went back to the kernel must be cleared
/// anew by the executor that takes it. `MIMALLOC_PURGE_DELAY` says otherwise.
const FREED_MEMORY_STAYS_MS: std::ffi::c_long = 10_000;

/// As Rust's own runtime says it.
const PANICKED: u8 = 101;

fn main() -> ExitCode {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: it takes integers and stores one, atomically, among the allocator's options.
        unsafe { mi_option_set(PURGE_DELAY, FREED_MEMORY_STAYS_MS) };
    }
    // What a catalog holds, and what statements do, may nest deeper than the first thread's stack.
    let deep = std::thread::Builder::new().name("main".to_owned()).stack_size(THREAD_BYTES);
    match deep.spawn(archipel::cli::main) {
        Ok(thread) => thread.join().unwrap_or(ExitCode::from(PANICKED)),
        Err(_) => archipel::cli::main(),
    }
}
