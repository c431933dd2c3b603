//! The CPU quota of the container, from the control groups' files.
//!
//! A process sits in one group of version 2, or in one group for each controller of version 1;
//! each ancestor may set a quota of its own, and the least one holds. Files are read below a
//! root folder, so that recorded trees serve as tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Processor time this process may use a second, in cores; `None` if unlimited. `root` is `/`
/// but in tests.
pub fn cpu_quota(root: &Path) -> Option<f64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = root.join("sys/fs/cgroup");
    let mut quotas: Vec<f64> = Vec::new();
    for group in parse_groups(&groups) {
        match group {
            Group::Version2(path) => {
                // With both versions mounted, the second lives in a folder of its own.
                for mount in [mounts.clone(), mounts.join("unified")] {
                    quotas.extend(
                        ancestors(&mount, &path)
                            .iter()
                            .filter_map(|folder| quota_v2(&fs::read_to_string(folder.join("cpu.max")).ok()?)),
                    );
                }
            }
            Group::Version1Cpu(path) => {
                for mount in [mounts.join("cpu"), mounts.join("cpu,cpuacct")] {
                    quotas.extend(ancestors(&mount, &path).iter().filter_map(|folder| {
                        let quota = fs::read_to_string(folder.join("cpu.cfs_quota_us")).ok()?;
                        let period = fs::read_to_string(folder.join("cpu.cfs_period_us")).ok()?;
                        quota_v1(&quota, &period)
                    }));
                }
            }
        }
    }
    quotas.into_iter().min_by(f64::total_cmp)
}

#[derive(Debug, PartialEq, Eq)]
enum Group {
    Version2(String),
    Version1Cpu(String),
}

/// The groups of a process that may limit its processor time: lines `id:controllers:path`.
fn parse_groups(text: &str) -> Vec<Group> {
    text.lines()
        .filter_map(|line| {
            let (id, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let path = path.trim_start_matches('/').to_owned();
            if id == "0" && controllers.is_empty() {
                return Some(Group::Version2(path));
            }
            controllers.split(',').any(|controller| controller == "cpu").then_some(Group::Version1Cpu(path))
        })
        .collect()
}

/// A group's folder and those above it, up to the mount. In a container the path may be that
/// of the host; then the mount itself is the group.
fn ancestors(mount: &Path, path: &str) -> Vec<PathBuf> {
    let group = mount.join(path);
    group.ancestors().take_while(|folder| folder.starts_with(mount)).map(Path::to_owned).collect()
}

/// `cpu.max`: "max 100000", or "quota period".
fn quota_v2(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next().map_or(Some(100_000.0), |period| period.parse().ok())?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// `cpu.cfs_quota_us` (-1: none) and `cpu.cfs_period_us`.
fn quota_v1(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("inside the root")).expect("created");
            fs::write(path, text).expect("written");
        }
        root
    }

    fn quota(files: &[(&str, &str)]) -> Option<f64> {
        cpu_quota(tree(files).path())
    }

    #[test]
    fn version_2_takes_the_least_of_the_ancestors() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        assert_eq!(quota(&[group, ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")]), None);
        assert_eq!(quota(&[group, ("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n")]), Some(1.5));
        let files = [
            group,
            ("sys/fs/cgroup/a/cpu.max", "200000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"),
        ];
        assert_eq!(quota(&files), Some(2.0));
    }

    #[test]
    fn version_1_reads_quota_and_period_of_the_cpu_controller() {
        let group = ("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/1\n0::/\n");
        let period = ("sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "50000\n");
        assert_eq!(quota(&[group, period, ("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "-1\n")]), None);
        assert_eq!(
            quota(&[group, period, ("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "100000\n")]),
            Some(2.0)
        );
    }

    #[test]
    fn a_container_that_sees_only_its_own_group_is_limited_by_it() {
        let files = [
            ("proc/self/cgroup", "1:cpu:/docker/0123\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(quota(&files), Some(3.0));
    }

    #[test]
    fn no_control_groups_and_nonsense_limit_nothing() {
        assert_eq!(quota(&[]), None);
        let files = [("proc/self/cgroup", "0::/a\nnonsense\n"), ("sys/fs/cgroup/a/cpu.max", "many\n")];
        assert_eq!(quota(&files), None);
        assert_eq!(quota_v1("100000", "0"), None);
    }
}
