//! From cores to islands and executors.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::ExecutorPlace;
use crate::id::IslandId;

/// One physical core, as the hardware reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSeen {
    /// The numbers the operating system gives its hardware threads, ascending.
    pub threads: Vec<usize>,
    /// The last-level cache it shares, if the hardware tells.
    pub cache: Option<usize>,
    /// Its socket.
    pub package: usize,
    /// Its memory node.
    pub memory_node: usize,
}

/// What limits the use of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Hardware threads this process may run on; `None` is all.
    pub allowed: Option<BTreeSet<usize>>,
    /// Processor time a second, in cores; `None` is unlimited.
    pub quota: Option<f64>,
}

/// A core to run an executor on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The hardware thread to pin to, as the operating system numbers it.
    pub cpu: usize,
    /// Its island.
    pub island: IslandId,
}

/// Cores that communicate cheaply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Island {
    /// Dense from zero.
    pub id: IslandId,
    /// Its socket.
    pub package: usize,
    /// Its memory node.
    pub memory_node: usize,
    /// Positions in [`Machine::places`].
    pub places: Vec<usize>,
}

/// What there is to run on.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// One place an executor, island by island.
    pub places: Vec<Place>,
    /// The islands that have places.
    pub islands: Vec<Island>,
    /// Physical cores before the bounds.
    pub cores_seen: usize,
    /// The quota that applied.
    pub quota: Option<f64>,
    /// Whether the cores are invented.
    pub synthetic: bool,
}

/// Groups the usable cores into islands. Empty if the bounds leave none.
pub fn place(cores: &[CoreSeen], bounds: &Bounds) -> Machine {
    let usable: Vec<(usize, &CoreSeen)> = cores
        .iter()
        .filter_map(|core| {
            let allowed = |cpu: &&usize| bounds.allowed.as_ref().is_none_or(|allowed| allowed.contains(*cpu));
            Some((*core.threads.iter().find(allowed)?, core))
        })
        .collect();
    // Judged on the whole machine: which cores a mask leaves does not change what they share.
    let by_cache = caches_group_cores(cores);
    let mut groups: BTreeMap<(usize, usize), Vec<(usize, &CoreSeen)>> = BTreeMap::new();
    for (cpu, core) in usable {
        let cache = if by_cache { core.cache.unwrap_or(0) } else { 0 };
        groups.entry((core.package, cache)).or_default().push((cpu, core));
    }
    let mut rest = executors_max(bounds.quota);
    let mut machine = Machine {
        places: Vec::new(),
        islands: Vec::new(),
        cores_seen: cores.len(),
        quota: bounds.quota,
        synthetic: false,
    };
    // A quota fills whole islands first: fewer islands are cheaper than thin ones.
    for ((package, _), cores) in groups {
        if rest == 0 {
            break;
        }
        let id = IslandId(machine.islands.len() as u16);
        let memory_node = cores[0].1.memory_node;
        let first = machine.places.len();
        machine.places.extend(cores.iter().take(rest).map(|&(cpu, _)| Place { cpu, island: id }));
        let places: Vec<usize> = (first..machine.places.len()).collect();
        rest -= places.len();
        machine.islands.push(Island { id, package, memory_node, places });
    }
    machine
}

/// Whether last-level caches say which cores belong together: every core has one, and they
/// join more than single cores (virtual machines may report a cache for each).
fn caches_group_cores(cores: &[CoreSeen]) -> bool {
    let mut sharers: BTreeMap<usize, usize> = BTreeMap::new();
    for core in cores {
        let Some(cache) = core.cache else { return false };
        *sharers.entry(cache).or_default() += 1;
    }
    sharers.values().any(|&count| count > 1)
}

/// A quota below a core count means fewer executors: a thread that is throttled while it holds
/// a claim stalls everybody. At least one.
fn executors_max(quota: Option<f64>) -> usize {
    match quota {
        Some(quota) if quota.is_finite() => (quota as usize).max(1),
        _ => usize::MAX,
    }
}

impl Machine {
    /// The executors of an engine on this machine.
    pub fn executors(&self) -> Vec<ExecutorPlace> {
        self.places
            .iter()
            .map(|place| ExecutorPlace { island: place.island, core: Some(place.cpu) })
            .collect()
    }

    /// This machine's islands on the cores of a real one, in turn.
    pub(super) fn mapped_onto(mut self, real: &Machine) -> Machine {
        for (number, place) in self.places.iter_mut().enumerate() {
            place.cpu = real.places[number % real.places.len()].cpu;
        }
        self.synthetic = true;
        self.quota = real.quota;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cores of `packages` sockets with `caches` last-level caches each, `cores` a cache, and
    /// `threads` hardware threads a core, numbered as Linux does: first threads first.
    fn machine(packages: usize, caches: usize, cores: usize, threads: usize) -> Vec<CoreSeen> {
        let total = packages * caches * cores;
        (0..total)
            .map(|core| CoreSeen {
                threads: (0..threads).map(|thread| core + thread * total).collect(),
                cache: Some(core / cores),
                package: core / (cores * caches),
                memory_node: core / (cores * caches),
            })
            .collect()
    }

    fn islands(machine: &Machine) -> Vec<Vec<usize>> {
        machine
            .islands
            .iter()
            .map(|island| island.places.iter().map(|&at| machine.places[at].cpu).collect())
            .collect()
    }

    fn allowed(cpus: impl IntoIterator<Item = usize>) -> Bounds {
        Bounds { allowed: Some(cpus.into_iter().collect()), quota: None }
    }

    #[test]
    fn one_core_is_one_island() {
        assert_eq!(islands(&place(&machine(1, 1, 1, 2), &Bounds::default())), [[0]]);
    }

    #[test]
    fn sockets_are_islands_with_one_executor_a_core() {
        let placed = place(&machine(2, 1, 4, 2), &Bounds::default());
        assert_eq!(islands(&placed), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(placed.islands[1].memory_node, 1);
        assert_eq!(placed.places[5].island, IslandId(1));
    }

    #[test]
    fn chiplets_of_a_socket_are_islands() {
        let placed = place(&machine(2, 2, 2, 1), &Bounds::default());
        assert_eq!(islands(&placed), [[0, 1], [2, 3], [4, 5], [6, 7]]);
        assert_eq!(placed.islands.iter().map(|island| island.package).collect::<Vec<_>>(), [0, 0, 1, 1]);
    }

    #[test]
    fn eight_sockets_make_eight_islands() {
        let placed = place(&machine(8, 1, 10, 1), &Bounds::default());
        assert_eq!((placed.islands.len(), placed.places.len()), (8, 80));
    }

    #[test]
    fn caches_of_single_cores_or_unknown_ones_leave_the_socket() {
        assert_eq!(islands(&place(&machine(2, 4, 1, 1), &Bounds::default())), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        let mut cores = machine(1, 2, 2, 1);
        cores[3].cache = None;
        assert_eq!(islands(&place(&cores, &Bounds::default())), [[0, 1, 2, 3]]);
    }

    #[test]
    fn holes_in_the_mask_are_left_out() {
        let placed = place(&machine(2, 1, 4, 1), &allowed([1, 3, 6]));
        assert_eq!(islands(&placed), [vec![1, 3], vec![6]]);
        assert_eq!(placed.cores_seen, 8);
        assert!(place(&machine(1, 1, 2, 1), &allowed([7])).places.is_empty());
    }

    #[test]
    fn a_mask_of_second_threads_still_uses_their_cores_once() {
        let placed = place(&machine(1, 1, 4, 2), &allowed([4, 5, 1]));
        assert_eq!(islands(&placed), [[4, 1]]);
    }

    #[test]
    fn a_mask_that_leaves_one_core_a_chiplet_keeps_the_chiplets() {
        let placed = place(&machine(1, 4, 2, 1), &allowed([0, 2, 4]));
        assert_eq!(islands(&placed), [[0], [2], [4]]);
    }

    #[test]
    fn a_quota_means_fewer_executors_in_fewer_islands() {
        let quota = |quota| Bounds { allowed: None, quota: Some(quota) };
        assert_eq!(islands(&place(&machine(2, 1, 4, 1), &quota(5.9))), [vec![0, 1, 2, 3], vec![4]]);
        assert_eq!(islands(&place(&machine(2, 1, 4, 1), &quota(2.0))), [[0, 1]]);
        assert_eq!(islands(&place(&machine(2, 1, 4, 1), &quota(0.5))), [[0]]);
        assert_eq!(place(&machine(2, 1, 4, 1), &quota(64.0)).places.len(), 8);
    }

    #[test]
    fn a_synthetic_machine_keeps_its_islands_on_the_cores_there_are() {
        let real = place(&machine(1, 1, 2, 1), &allowed([0, 1]));
        let mapped = place(&machine(2, 1, 2, 1), &Bounds::default()).mapped_onto(&real);
        assert_eq!(islands(&mapped), [[0, 1], [0, 1]]);
        assert!(mapped.synthetic);
    }
}
