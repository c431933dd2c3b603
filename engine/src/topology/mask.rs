//! Which hardware threads the operating system lets a thread of this process run on.
//!
//! The mask of the process is that of its first thread: the engine pins only threads of its
//! own, so what that one may use is what somebody outside decided, by `taskset` or through a
//! control group's cpuset. The kernel leaves out of it what the cpuset forbids, of either
//! version, and what is offline.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Hardware threads a mask can name.
const CPUS_MAX: usize = 8 << 10;

/// As the kernel has it: one bit a hardware thread.
#[repr(C)]
struct Mask([u64; CPUS_MAX / 64]);

/// The process's mask; `None` if the system does not tell.
pub fn process_mask() -> Option<BTreeSet<usize>> {
    // SAFETY: takes nothing and cannot fail.
    thread_mask(unsafe { libc::getpid() })
}

/// The mask of a thread of this process; 0 is the calling one.
pub fn thread_mask(thread: i32) -> Option<BTreeSet<usize>> {
    let mut mask = Mask([0; CPUS_MAX / 64]);
    // SAFETY: the kernel writes at most the size given, which is that of the mask; any bits
    // are a valid mask.
    let failed = unsafe {
        libc::sched_getaffinity(thread, size_of::<Mask>(), std::ptr::from_mut(&mut mask).cast()) != 0
    };
    let is_in = |cpu: &usize| mask.0[cpu / 64] >> (cpu % 64) & 1 == 1;
    (!failed).then(|| (0..CPUS_MAX).filter(is_in).collect())
}

/// Lets a thread of this process (0 is the calling one) run on these hardware threads only;
/// whether the system agreed. A refusal (a smaller cpuset, a thread that ended) leaves it as it is.
pub fn bind_thread(thread: i32, cpus: &BTreeSet<usize>) -> bool {
    let mut mask = Mask([0; CPUS_MAX / 64]);
    for &cpu in cpus.iter().filter(|cpu| **cpu < CPUS_MAX) {
        mask.0[cpu / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads at most the size given, which is that of the mask.
    unsafe { libc::sched_setaffinity(thread, size_of::<Mask>(), std::ptr::from_ref(&mask).cast()) == 0 }
}

/// How long a thread that shares its core keeps it, in nanoseconds, before another one has its
/// turn; the kernel's own choice is a millisecond or three.
const SLICE_NANOS: u64 = 300_000;

/// `struct sched_attr`, its first version.
#[repr(C)]
#[derive(Clone, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The slice, in nanoseconds; 0 from a kernel that does not know of it (before 6.12).
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Attributes {
    /// Those of the calling thread; `None` if the system does not tell.
    fn of_this_thread() -> Option<Attributes> {
        let size = size_of::<Attributes>() as u32;
        let mut attributes = Attributes { size, ..Attributes::default() };
        let at = std::ptr::from_mut(&mut attributes);
        // SAFETY: the kernel writes at most the size given, which is that of the structure; any
        // bits are valid integers.
        let failed = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, at, size, 0) != 0 };
        (!failed).then_some(attributes)
    }
}

/// Has the calling thread take turns of [`SLICE_NANOS`] with others that want its core. Where
/// executors have cores to themselves this changes nothing; where clients and queries run beside
/// them, they are not kept waiting for a slice that an executor fills. A kernel that does not
/// know of it leaves the slice as it is.
pub fn take_short_turns() {
    let Some(attributes) = Attributes::of_this_thread() else { return };
    if attributes.policy != libc::SCHED_OTHER as u32 {
        return;
    }
    let size = size_of::<Attributes>() as u32;
    let attributes = Attributes { size, runtime: SLICE_NANOS, flags: 0, ..attributes };
    // SAFETY: the kernel reads as many bytes as the structure says it has. A refusal changes
    // nothing.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(&attributes), 0) };
}

/// The kernel's number of the calling thread.
pub fn this_thread() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

/// The threads of this process.
pub fn threads() -> Vec<i32> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// How many hardware threads the machine may ever have, plugged in or not; at least one.
pub fn cpus_possible() -> usize {
    let list = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    parse_cpu_list(&list).map_or(1, |cpus| cpus.len()).clamp(1, CPUS_MAX)
}

/// The hardware threads that are online, below `root` (`/` but in tests); `None` if the system
/// does not tell.
pub fn cpus_online(root: &Path) -> Option<BTreeSet<usize>> {
    parse_cpu_list(&fs::read_to_string(root.join("sys/devices/system/cpu/online")).ok()?)
}

/// The kernel's lists: `0-3,5,8-9`.
fn parse_cpu_list(text: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
        if low > high || high >= CPUS_MAX {
            return None;
        }
        cpus.extend(low..=high);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_read() {
        let read = |text| parse_cpu_list(text).map(|cpus| cpus.into_iter().collect::<Vec<_>>());
        assert_eq!(read("0-3\n"), Some(vec![0, 1, 2, 3]));
        assert_eq!(read("0-1,4,7-8\n"), Some(vec![0, 1, 4, 7, 8]));
        assert_eq!(read("\n"), Some(vec![]));
        for nonsense in ["a", "3-1", "0-", "0-99999999999", "0-9000"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn the_kernel_tells_what_is_online() {
        let root = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(cpus_online(root.path()), None);
        let folder = root.path().join("sys/devices/system/cpu");
        fs::create_dir_all(&folder).expect("created");
        fs::write(folder.join("online"), "0-2,5\n").expect("written");
        assert_eq!(cpus_online(root.path()), Some(BTreeSet::from([0, 1, 2, 5])));
    }

    #[test]
    fn a_thread_is_bound_and_set_free() {
        std::thread::spawn(|| {
            let all = thread_mask(0).expect("linux tells");
            let one = BTreeSet::from([*all.first().expect("it runs somewhere")]);
            assert!(bind_thread(this_thread(), &one));
            assert_eq!(thread_mask(0), Some(one));
            assert!(!bind_thread(0, &BTreeSet::new()), "nowhere is no place to run");
            assert!(bind_thread(0, &all));
            assert!(threads().contains(&this_thread()));
        })
        .join()
        .expect("the thread ends");
    }

    #[test]
    fn turns_become_short_and_nothing_else_changes() {
        std::thread::spawn(|| {
            let before = Attributes::of_this_thread().expect("linux tells");
            take_short_turns();
            let after = Attributes::of_this_thread().expect("linux tells");
            let knows_slices = before.runtime != 0;
            assert_eq!(after.runtime, if knows_slices { SLICE_NANOS } else { 0 });
            assert_eq!((after.policy, after.nice), (before.policy, before.nice));
        })
        .join()
        .expect("the thread ends");
    }
}
