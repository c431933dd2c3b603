//! Cores taken from a running process and given back, from outside: by affinity masks, as
//! `taskset` does it, and by control groups of either version.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

type Cpus = BTreeSet<usize>;

/// The cores this test may use.
pub fn mine() -> Cpus {
    // SAFETY: `cpu_set_t` is plain data for which zero is valid, and outlives the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let got = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        assert_eq!(got, 0, "the mask of this thread can be read");
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

fn bind(thread: i32, cpus: &Cpus) -> io::Result<()> {
    // SAFETY: as above; every number is below the size of the set, as it came out of one.
    let bound = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|cpu| libc::CPU_SET(*cpu, &mut set));
        libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set)
    };
    if bound == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `taskset -p`: the mask of the process's first thread.
pub fn taskset(process: u32, cpus: &Cpus) {
    bind(process as i32, cpus).expect("a process of ours can be bound");
}

/// `taskset -a -p`: the masks of all its threads.
pub fn taskset_all(process: u32, cpus: &Cpus) {
    let mut bound = Cpus::new();
    // One that comes meanwhile has the mask of whoever made it.
    loop {
        let threads = threads(process);
        if threads.is_subset(&bound) {
            return;
        }
        for thread in threads {
            bound.insert(thread);
            match bind(thread as i32, cpus) {
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                other => other.expect("a thread of ours can be bound"),
            }
        }
    }
}

fn threads(process: u32) -> BTreeSet<usize> {
    fs::read_dir(format!("/proc/{process}/task"))
        .expect("it runs")
        // One that ends while it is listed is an error, or no thread any more.
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// A control group of its own for a process, removed at the end.
pub struct ControlGroup {
    /// With the controller for cores, and the one for time; the same folder in version 2.
    cores: PathBuf,
    time: PathBuf,
    version: u8,
}

impl ControlGroup {
    /// Makes one; or says why that cannot be done here.
    pub fn new(name: &str) -> Result<ControlGroup, String> {
        let mounts = Path::new("/sys/fs/cgroup");
        let make = |folder: PathBuf| match fs::create_dir(&folder) {
            Ok(()) => Ok(folder),
            Err(error) => Err(format!("{}: {error}", folder.display())),
        };
        if mounts.join("cpuset").is_dir() && mounts.join("cpu").is_dir() {
            let time = make(mounts.join("cpu").join(name))?;
            let cores = make(mounts.join("cpuset").join(name)).inspect_err(|_| {
                let _ = fs::remove_dir(&time);
            })?;
            let group = ControlGroup { cores, time, version: 1 };
            let memory = fs::read_to_string(mounts.join("cpuset/cpuset.mems"));
            let memory = memory.map_err(|error| format!("cpuset.mems: {error}"))?;
            group.write(&group.cores, "cpuset.mems", memory.trim())?;
            return Ok(group);
        }
        let controllers = fs::read_to_string(mounts.join("cgroup.controllers"))
            .map_err(|error| format!("there are no control groups: {error}"))?;
        for controller in ["cpu", "cpuset"] {
            if !controllers.split_whitespace().any(|there| there == controller) {
                return Err(format!("the controller {controller} is not there: {controllers}"));
            }
        }
        fs::write(mounts.join("cgroup.subtree_control"), "+cpu +cpuset")
            .map_err(|error| format!("cgroup.subtree_control: {error}"))?;
        let folder = make(mounts.join(name))?;
        Ok(ControlGroup { cores: folder.clone(), time: folder, version: 2 })
    }

    fn write(&self, folder: &Path, file: &str, text: &str) -> Result<(), String> {
        fs::write(folder.join(file), text).map_err(|error| format!("{file} = {text:?}: {error}"))
    }

    /// The cores its processes may use.
    pub fn set_cores(&self, cpus: &Cpus) -> Result<(), String> {
        let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        self.write(&self.cores, "cpuset.cpus", &cpus.join(","))
    }

    /// Processor time a second, in hundredths of a core; `None` is unlimited.
    pub fn set_quota(&self, hundredths: Option<u32>) -> Result<(), String> {
        let micros = hundredths.map(|hundredths| hundredths * 1_000);
        match self.version {
            1 => {
                let quota = micros.map_or("-1".to_owned(), |micros| micros.to_string());
                self.write(&self.time, "cpu.cfs_quota_us", &quota)
            }
            _ => {
                let quota = micros.map_or("max".to_owned(), |micros| micros.to_string());
                self.write(&self.time, "cpu.max", &format!("{quota} 100000"))
            }
        }
    }

    /// Puts a process into the group.
    pub fn take_in(&self, process: u32) -> Result<(), String> {
        for folder in [&self.cores, &self.time] {
            self.write(folder, "cgroup.procs", &process.to_string())?;
        }
        Ok(())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for folder in [&self.cores, &self.time] {
            // A group goes when its last process has; the kernel takes a moment.
            for _ in 0..50 {
                if fs::remove_dir(folder).is_ok() || !folder.exists() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
}
