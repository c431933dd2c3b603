//! Where executors go: one per core this process may use, or as many as asked for.

use archipel_engine::ExecutorPlace;
use archipel_engine::id::IslandId;

/// The places of `count` executors; zero is one per core allowed.
pub fn executor_places(_topology: &str, count: usize) -> Vec<ExecutorPlace> {
    let cores = allowed_cores();
    let count = if count == 0 { cores.len().max(1) } else { count };
    (0..count)
        .map(|number| ExecutorPlace {
            island: IslandId(0),
            // More executors than cores share them, unpinned.
            core: if count <= cores.len() { cores.get(number).copied() } else { None },
        })
        .collect()
}

/// Cores in this process's affinity mask.
fn allowed_cores() -> Vec<usize> {
    // SAFETY: `cpu_set_t` is plain data for which zero is valid, and it outlives the call,
    // which writes at most the size given.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        set
    };
    // SAFETY: the core is below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|core| unsafe { libc::CPU_ISSET(*core, &set) }).collect()
}
