//! How much memory the server may take, and a watch over what it has taken.
//!
//! The allocator knows what it has handed out ([`archipel_engine::heap`]), and whoever needs more asks
//! there. What it does not know of is looked at from outside, ten times a second: stacks, the log
//! store's buffers, what is lost between pieces of memory, and what was freed and has not gone back
//! to the system. If all of that takes the process beyond a ceiling, memory that nobody uses is given
//! back at once; if that does not help, statements are refused more (53200) until it is less.
//!
//! Where there is room, memory that was freed goes back some seconds later: the allocator looks for
//! it only when it is called, so a server that has become idle is helped here.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use archipel_engine::heap;
use archipel_sql::memory;
use archipel_sql::stack::THREAD_BYTES;

/// Between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Every so many looks, freed memory whose time has come goes back.
const LOOKS_PER_RETURN: u32 = 10;

/// What a process takes beside what is charged: code, stacks, the log store.
const BESIDE_BYTES: i64 = 256 << 20;

/// Threads that every server has, beside two for each core.
const THREADS_ALWAYS: usize = 12;

/// Addresses that are taken beside those of data and stacks: code, and what allocators reserve at a time.
const ADDRESSES_BESIDE: i64 = 1 << 30;

/// Bounds what the process takes, from now on, and answers those who ask for large values: where there is
/// less than they may have, none of them must find out by ending the process.
pub fn bound(max_memory: i64) {
    heap::set_limit(max_memory.min(machine_bytes() / 16 * 15));
    memory::install(|bytes| !heap::work_exceeds(bytes), heap::taken_bytes);
}

/// What the whole process may have in memory: a quarter more than is charged at most, and some for
/// what never is, but always less than the machine or container has.
fn ceiling_bytes(max_memory: i64, machine: i64) -> i64 {
    max_memory.saturating_add(max_memory / 4).saturating_add(BESIDE_BYTES).min(machine / 16 * 15)
}

/// What was mapped beside data when the server began to serve.
static BESIDE: OnceLock<Taken> = OnceLock::new();

/// Watches until it is dropped.
pub struct Watch {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch.
    pub fn begin(max_memory: i64) -> std::io::Result<Watch> {
        let ceiling = ceiling_bytes(max_memory, machine_bytes());
        if let Some(taken) = Taken::now() {
            let addresses = taken.addresses - heap::charged_bytes();
            // The first server of a process says it.
            let _ = BESIDE.set(Taken { addresses, ..taken });
        }
        let ended = Arc::new(AtomicBool::new(false));
        let asked = ended.clone();
        let thread = std::thread::Builder::new().name("memory".to_owned()).spawn(move || {
            let mut looks = 0u32;
            while !asked.load(Ordering::Acquire) {
                std::thread::park_timeout(LOOK_INTERVAL);
                looks = looks.wrapping_add(1);
                look(ceiling, looks.is_multiple_of(LOOKS_PER_RETURN));
            }
        })?;
        Ok(Watch { ended, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has told of a panic itself.
            let _ = thread.join();
        }
        heap::set_pressed(false);
    }
}

/// One look. `returns`: whether it is time for what was freed to go back.
fn look(ceiling: i64, returns: bool) {
    let Some(resident) = resident_bytes() else { return };
    let mut pressed = is_pressed(heap::is_pressed(), resident, ceiling);
    if pressed {
        give_back(true);
        pressed = resident_bytes().is_none_or(|resident| is_pressed(true, resident, ceiling));
    } else if returns {
        give_back(false);
    }
    if pressed != heap::is_pressed() {
        heap::set_pressed(pressed);
        let (resident, charged) = (resident >> 20, heap::charged_bytes() >> 20);
        if pressed {
            tracing::warn!(
                "the server takes {resident} MB of memory, {charged} of them for data and statements, which is more than {} MB: statements that need more are refused",
                ceiling >> 20
            );
        } else {
            tracing::info!("the server takes {resident} MB of memory again");
        }
    }
}

/// What has begun ends when there is some room.
fn is_pressed(before: bool, resident: i64, ceiling: i64) -> bool {
    resident > if before { ceiling / 16 * 15 } else { ceiling }
}

/// Gives memory that was freed back to the system: all of it, or what was free for long enough.
fn give_back(all: bool) {
    // SAFETY: it takes a flag, and looks after the memory of this thread and what nobody uses; other
    // threads may go on meanwhile.
    unsafe { libmimalloc_sys::mi_collect(all) };
}

/// What the process has: addresses, memory but for files that are mapped, and threads.
#[derive(Clone, Copy, Debug)]
struct Taken {
    addresses: i64,
    resident: i64,
    threads: i64,
}

impl Taken {
    fn now() -> Option<Taken> {
        let text = std::fs::read_to_string("/proc/self/statm").ok()?;
        let mut pages = text.split_whitespace().map(|number| number.parse::<i64>().ok());
        let (all, resident, shared) = (pages.next()??, pages.next()??, pages.next()??);
        // SAFETY: it takes a number and touches no memory.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let threads = threads_in(&std::fs::read_to_string("/proc/self/stat").ok()?)?;
        Some(Taken { addresses: all * page, resident: (resident - shared) * page, threads })
    }

    /// Addresses that the allocator has and nobody uses: it keeps them for what comes when memory that was
    /// freed has gone back to the system. `charged` is what is used of what it has, `beside` what there was
    /// from the beginning; threads that have come since have their stacks.
    fn kept(self, charged: i64, beside: Taken) -> i64 {
        let stacks = (self.threads - beside.threads).max(0).saturating_mul(THREAD_BYTES as i64);
        (self.addresses - beside.addresses - stacks - charged).max(0)
    }

    /// Whether there are addresses for a stack beside all memory that may still be taken (`left`), under
    /// this limit.
    fn fits(self, stack: usize, (charged, left): (i64, i64), beside: Option<Taken>, limit: i64) -> bool {
        let stack = i64::try_from(stack).unwrap_or(i64::MAX);
        let kept = beside.map_or(0, |beside| self.kept(charged, beside));
        let more = (left - kept).max(0);
        self.addresses.saturating_add(stack).saturating_add(more) <= limit
    }
}

/// How many threads a process has, by its `/proc/self/stat`: the name in it may have blanks.
fn threads_in(stat: &str) -> Option<i64> {
    let (_, numbers) = stat.rsplit_once(')')?;
    numbers.split_whitespace().nth(17)?.parse().ok()
}

fn resident_bytes() -> Option<i64> {
    Taken::now().map(|taken| taken.resident)
}

/// Whether another stack leaves addresses for the memory that may still be taken: where there are none, an
/// allocation ends the process, and a thread that cannot be started one statement.
pub fn fits_stack(bytes: usize) -> bool {
    static LIMIT: OnceLock<i64> = OnceLock::new();
    let limit = *LIMIT.get_or_init(|| address_limit(&process_limits()));
    let fits = || {
        let memory = (heap::charged_bytes(), heap::left_bytes());
        Taken::now().is_none_or(|taken| taken.fits(bytes, memory, BESIDE.get().copied(), limit))
    };
    if limit == i64::MAX || fits() {
        return true;
    }
    // Large pieces that were freed are mapped by themselves, and go back whole.
    give_back(true);
    fits()
}

fn process_limits() -> String {
    std::fs::read_to_string("/proc/self/limits").unwrap_or_default()
}

/// Memory of the machine; or of the container, or what `ulimit` leaves, if that is less.
pub fn machine_bytes() -> i64 {
    let total = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
            line.split_whitespace().nth(1)?.parse::<i64>().ok()
        })
        .map_or(4 << 30, |kilobytes| kilobytes << 10);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    total
        .min(group_bytes(Path::new("/sys/fs/cgroup"), &groups))
        .min(address_bytes(&process_limits(), cores))
        .max(256 << 20)
}

/// The addresses for data under the limits of a process, its `/proc/self/limits`, when the threads of a
/// server with so many cores have their stacks.
fn address_bytes(limits: &str, cores: usize) -> i64 {
    let stacks = (THREADS_ALWAYS + 2 * cores).saturating_mul(THREAD_BYTES) as i64;
    match address_limit(limits) {
        i64::MAX => i64::MAX,
        limit => limit.saturating_sub(stacks).saturating_sub(ADDRESSES_BESIDE).max(0),
    }
}

/// How many addresses a process may take.
fn address_limit(limits: &str) -> i64 {
    let limits = limits.lines().filter_map(|line| {
        let of = ["Max address space", "Max data size"];
        let numbers = of.iter().find_map(|name| line.strip_prefix(name))?;
        // The soft one comes first; "unlimited" is none.
        numbers.split_whitespace().next()?.parse::<i64>().ok()
    });
    limits.min().unwrap_or(i64::MAX)
}

/// The least that the control groups of a process allow, of the second version or the first:
/// `groups` is its `/proc/self/cgroup`. Inside of a container the paths it says may lie outside of
/// what can be seen, and the container's own group is the root.
fn group_bytes(root: &Path, groups: &str) -> i64 {
    let mut files = vec![root.join("memory.max"), root.join("memory/memory.limit_in_bytes")];
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            list if list.split(',').any(|one| one == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // Groups around it bound it, too.
        let path = PathBuf::from(path.trim_start_matches('/'));
        files.extend(path.ancestors().map(|group| folder.join(group).join(file)));
    }
    let limits =
        files.iter().filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<i64>().ok());
    limits.filter(|limit| *limit > 0).fold(i64::MAX, i64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_is_below_what_the_container_has() {
        assert_eq!(ceiling_bytes(8 << 30, 64 << 30), (10 << 30) + BESIDE_BYTES);
        assert_eq!(ceiling_bytes(768 << 20, 1 << 30), 960 << 20);
        assert!(ceiling_bytes(i64::MAX, 1 << 30) < 1 << 30);
    }

    #[test]
    fn the_least_limit_of_all_groups_around_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().expect("it is in one")).expect("made");
            std::fs::write(file, text).expect("written");
        };
        assert_eq!(group_bytes(folder.path(), "0::/system.slice/archipel.service\n"), i64::MAX);
        write("system.slice/archipel.service/memory.max", "max\n");
        write("system.slice/memory.max", "3000\n");
        write("memory/docker/one/memory.limit_in_bytes", "2000\n");
        assert_eq!(group_bytes(folder.path(), "0::/system.slice/archipel.service\n"), 3000);
        assert_eq!(group_bytes(folder.path(), "5:cpu,cpuacct:/a\n4:memory:/docker/one\n"), 2000);
        write("memory.max", "1000\n");
        assert_eq!(group_bytes(folder.path(), "0::/../outside\n"), 1000);
    }

    #[test]
    fn limits_of_the_process_count_without_its_stacks() {
        let limits = |addresses: &str, data: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units\n\
                 Max data size             {data}            unlimited            bytes\n\
                 Max stack size            8388608              unlimited            bytes\n\
                 Max address space         {addresses}            unlimited            bytes\n"
            )
        };
        assert_eq!(address_bytes(&limits("unlimited", "unlimited"), 4), i64::MAX);
        let taken = (THREADS_ALWAYS + 8) as i64 * THREAD_BYTES as i64 + ADDRESSES_BESIDE;
        assert_eq!(address_bytes(&limits("90000000000", "unlimited"), 4), 90_000_000_000 - taken);
        assert_eq!(address_bytes(&limits("90000000000", "80000000000"), 4), 80_000_000_000 - taken);
        assert_eq!(address_bytes(&limits("1000", "unlimited"), 4), 0);
        assert!(machine_bytes() >= 256 << 20);
        assert!(!fits_stack(usize::MAX) || address_limit(&process_limits()) == i64::MAX);
    }

    #[test]
    fn addresses_that_the_allocator_keeps_are_not_counted_twice() {
        let stack = THREAD_BYTES as i64;
        let beside = Taken { addresses: 4 << 30, resident: 0, threads: 10 };
        // Two threads more, and three gigabytes of data, of which one is left.
        let taken = Taken { addresses: (7 << 30) + 2 * stack, resident: 0, threads: 12 };
        assert_eq!(taken.kept(1 << 30, beside), 2 << 30);
        assert_eq!(taken.kept(3 << 30, beside), 0);
        assert_eq!(Taken { threads: 4, ..taken }.kept(1 << 30, beside), (2 << 30) + 2 * stack);
        // What is kept serves what may still be taken; more than that is mapped anew.
        for (left, more) in [(0, 0), (2 << 30, 0), (5 << 30, 3 << 30)] {
            let needed = taken.addresses + stack + more;
            let fits = |limit| taken.fits(THREAD_BYTES, (1 << 30, left), Some(beside), limit);
            assert!(fits(needed) && !fits(needed - 1), "{left}");
            assert!(taken.fits(THREAD_BYTES, (1 << 30, left), None, needed + (2 << 30)), "{left}");
        }
    }

    #[test]
    fn threads_are_counted_whatever_the_name_is() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 17 0 12345 1000 200";
        assert_eq!(threads_in(stat), Some(17));
        assert_eq!(threads_in("7 (a"), None);
        assert!(Taken::now().is_some_and(|taken| taken.threads > 0));
    }

    #[test]
    fn a_process_sees_what_it_takes() {
        let before = resident_bytes().expect("Linux says so");
        let taken = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = resident_bytes().expect("Linux says so");
        assert!(after - before > 32 << 20, "{before} {after}");
        drop(taken);
        assert!(is_pressed(false, 101, 100) && !is_pressed(false, 99, 100));
        assert!(is_pressed(true, 1_599, 1_600) && !is_pressed(true, 1_400, 1_600));
    }
}
