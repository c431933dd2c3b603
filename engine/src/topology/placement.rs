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

/// How large an island is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Granularity {
    /// What the hardware suggests: the cores of a last-level cache, or of a socket where caches
    /// tell nothing.
    #[default]
    Auto,
    /// Every core is an island of its own.
    Core,
    /// The cores of a last-level cache; of a socket where the hardware names no caches.
    L3,
    Socket,
    Machine,
}

impl Granularity {
    /// All of them, as the setting spells them.
    pub const NAMES: [(&str, Granularity); 5] = [
        ("auto", Granularity::Auto),
        ("core", Granularity::Core),
        ("l3", Granularity::L3),
        ("socket", Granularity::Socket),
        ("machine", Granularity::Machine),
    ];

    /// As a sentence has it.
    pub fn name(self) -> &'static str {
        match self {
            Granularity::Core => "a core",
            Granularity::Auto | Granularity::L3 => "a last-level cache",
            Granularity::Socket => "a socket",
            Granularity::Machine => "the machine",
        }
    }

    /// The granularity of a setting's word.
    pub fn from_name(name: &str) -> Option<Granularity> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, granularity)| *granularity)
    }
}

/// What a core shares with others, by numbers that mean nothing but the same or another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Near {
    /// Its last-level cache, or its socket where the hardware names no caches.
    pub cache: u16,
    pub package: u16,
}

/// The least that two executors have in common; ordered by how far that reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// They are one.
    Core,
    Cache,
    Socket,
    Machine,
}

impl Near {
    /// What a core has in common with another one.
    pub fn reach(self, other: Near) -> Reach {
        match (self.package == other.package, self.cache == other.cache) {
            (true, true) => Reach::Cache,
            (true, false) => Reach::Socket,
            (false, _) => Reach::Machine,
        }
    }
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
    /// What it shares with other places, whatever the islands are.
    pub near: Near,
}

/// Cores that communicate cheaply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Island {
    /// Dense from zero over the whole machine, so that it stays the same whatever the bounds
    /// leave of it.
    pub id: IslandId,
    /// Its socket; of an island that spans several, the first.
    pub package: usize,
    /// Its memory node.
    pub memory_node: usize,
    /// Whether all of its cores have that one, those outside the bounds too.
    pub one_memory_node: bool,
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
    /// How large they are: never [`Granularity::Auto`].
    pub granularity: Granularity,
    /// Physical cores before the bounds.
    pub cores_seen: usize,
    /// The quota that applied.
    pub quota: Option<f64>,
    /// The hardware threads the process may use, if the system tells.
    pub allowed: Option<BTreeSet<usize>>,
    /// Whether the cores are invented.
    pub synthetic: bool,
    /// Whether executors are pinned to their places. Those that share a core are left to the
    /// operating system.
    pub pinned: bool,
}

/// Groups the usable cores into islands. Empty if the bounds leave none.
pub fn place(cores: &[CoreSeen], bounds: &Bounds, granularity: Granularity) -> Machine {
    // Judged and numbered on the whole machine: which cores a mask leaves does not change what
    // they share.
    let by_cache = match granularity {
        Granularity::Auto => caches_group_cores(cores),
        Granularity::L3 => cores.iter().all(|core| core.cache.is_some()),
        Granularity::Core | Granularity::Socket | Granularity::Machine => false,
    };
    let mut groups: BTreeMap<(usize, usize), Vec<&CoreSeen>> = BTreeMap::new();
    for (number, core) in cores.iter().enumerate() {
        let key = match granularity {
            Granularity::Machine => (0, 0),
            Granularity::Core => (core.package, number),
            _ if by_cache => (core.package, core.cache.unwrap_or(0)),
            _ => (core.package, 0),
        };
        groups.entry(key).or_default().push(core);
    }
    let mut rest = executors_max(bounds.quota);
    let mut machine = Machine {
        places: Vec::new(),
        islands: Vec::new(),
        granularity: match granularity {
            Granularity::Auto | Granularity::L3 if by_cache => Granularity::L3,
            Granularity::Auto | Granularity::L3 => Granularity::Socket,
            asked => asked,
        },
        cores_seen: cores.len(),
        quota: bounds.quota,
        allowed: bounds.allowed.clone(),
        synthetic: false,
        pinned: true,
    };
    // A quota fills whole islands first: fewer islands are cheaper than thin ones.
    for (number, cores) in groups.values().enumerate() {
        let id = IslandId(number as u16);
        let allowed = |cpu: &&usize| bounds.allowed.as_ref().is_none_or(|allowed| allowed.contains(*cpu));
        let near = |core: &CoreSeen| Near {
            cache: core.cache.unwrap_or(core.package) as u16,
            package: core.package as u16,
        };
        let usable: Vec<(usize, Near)> = cores
            .iter()
            .filter_map(|core| Some((core.threads.iter().find(allowed).copied()?, near(core))))
            .take(rest)
            .collect();
        if usable.is_empty() {
            continue;
        }
        rest -= usable.len();
        let first = machine.places.len();
        machine.places.extend(usable.iter().map(|&(cpu, near)| Place { cpu, island: id, near }));
        let (package, memory_node) = (cores[0].package, cores[0].memory_node);
        let places = (first..machine.places.len()).collect();
        let one_memory_node = cores.iter().all(|core| core.memory_node == memory_node);
        machine.islands.push(Island { id, package, memory_node, one_memory_node, places });
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
            .map(|place| ExecutorPlace {
                island: place.island,
                core: self.pinned.then_some(place.cpu),
                near: place.near,
                memory_node: self.memory_node(place.island),
            })
            .collect()
    }

    /// The memory node of an island; `None`: it has several.
    fn memory_node(&self, island: IslandId) -> Option<u16> {
        let island = self.islands.iter().find(|known| known.id == island && known.one_memory_node)?;
        u16::try_from(island.memory_node).ok()
    }

    /// This machine with exactly so many places: its first ones, or several a core, which are
    /// then left to the operating system. There must be a place.
    pub fn with_places(mut self, count: usize) -> Self {
        let places = std::mem::take(&mut self.places);
        self.pinned &= count <= places.len();
        self.places = (0..count).map(|number| places[number % places.len()]).collect();
        self.places.sort_by_key(|place| place.island);
        for island in &mut self.islands {
            let here = |at: &usize| self.places[*at].island == island.id;
            island.places = (0..count).filter(here).collect();
        }
        self.islands.retain(|island| !island.places.is_empty());
        self
    }

    /// This machine's islands on the cores of a real one, in turn.
    pub(super) fn mapped_onto(mut self, real: &Machine) -> Machine {
        for (number, place) in self.places.iter_mut().enumerate() {
            place.cpu = real.places[number % real.places.len()].cpu;
        }
        self.synthetic = true;
        self.pinned = false;
        self.quota = real.quota;
        self.allowed = real.allowed.clone();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(cores: &[CoreSeen], bounds: &Bounds) -> Machine {
        super::place(cores, bounds, Granularity::Auto)
    }

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
    fn cores_of_the_mask_that_are_offline_are_left_out() {
        // The machine shows what is online: the first core of the second socket is not.
        let mut online = machine(2, 1, 2, 1);
        online.remove(2);
        let placed = place(&online, &allowed([0, 1, 2, 3, 99]));
        assert_eq!(islands(&placed), [vec![0, 1], vec![3]]);
        assert!(
            place(&online, &allowed([2])).places.is_empty(),
            "an error, and not a core that is not there"
        );
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

    #[test]
    fn an_island_is_as_large_as_asked_for_and_keeps_its_number() {
        let chiplets = machine(2, 2, 2, 1);
        let sized = |granularity| super::place(&chiplets, &Bounds::default(), granularity);
        assert_eq!(islands(&sized(Granularity::Core)).len(), 8);
        assert_eq!(islands(&sized(Granularity::L3)), [[0, 1], [2, 3], [4, 5], [6, 7]]);
        assert_eq!(islands(&sized(Granularity::Socket)), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(islands(&sized(Granularity::Machine)), [[0, 1, 2, 3, 4, 5, 6, 7]]);
        let left = super::place(&chiplets, &allowed([3, 6]), Granularity::L3);
        let ids: Vec<u16> = left.islands.iter().map(|island| island.id.0).collect();
        assert_eq!((islands(&left), ids), (vec![vec![3], vec![6]], vec![1, 3]));
        let mut unknown = chiplets.clone();
        unknown.iter_mut().for_each(|core| core.cache = None);
        let by_socket = super::place(&unknown, &Bounds::default(), Granularity::L3);
        assert_eq!(islands(&by_socket), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    }

    #[test]
    fn as_many_places_as_asked_for() {
        let four = place(&machine(2, 1, 2, 1), &Bounds::default());
        let three = four.clone().with_places(3);
        assert_eq!((islands(&three), three.pinned), (vec![vec![0, 1], vec![2]], true));
        let six = four.clone().with_places(6);
        assert_eq!((islands(&six), six.pinned), (vec![vec![0, 1, 0, 1], vec![2, 3]], false));
        assert_eq!(islands(&four.with_places(1)), [[0]]);
    }
}
