//! Machines that were made up: for tests, the simulator and experiments.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::placement::{Bounds, CoreSeen, Granularity, Machine, place};
use super::{Topology, TopologyError};

/// What a usual core takes for the work by which its speed is measured.
const USUAL_WORK_NANOS: f64 = 10_000.0;

/// A machine whose cores come and go, and whose islands have the size that was chosen.
pub struct Invented {
    cores: Vec<CoreSeen>,
    chooses: bool,
    now: Mutex<Now>,
}

struct Now {
    there: BTreeSet<usize>,
    /// By core; others are usual ones.
    speeds: BTreeMap<usize, f64>,
    size: Granularity,
}

impl Invented {
    /// All cores are there, and the load may choose the size of the islands.
    pub fn new(cores: Vec<CoreSeen>, size: Granularity) -> Self {
        let there = (0..cores.len()).collect();
        Self { cores, chooses: true, now: Mutex::new(Now { there, speeds: BTreeMap::new(), size }) }
    }

    /// Sockets of so many cores each, which share no cache.
    pub fn of_sockets(sockets: usize, cores: usize, size: Granularity) -> Self {
        let core = |core: usize, package: usize| CoreSeen {
            threads: vec![core],
            cache: None,
            package,
            memory_node: package,
        };
        Self::new((0..sockets * cores).map(|number| core(number, number / cores)).collect(), size)
    }

    /// Cores of one cache.
    pub fn of_one_cache(cores: usize, size: Granularity) -> Self {
        let core = |core: usize| CoreSeen { threads: vec![core], cache: Some(0), package: 0, memory_node: 0 };
        Self::new((0..cores).map(core).collect(), size)
    }

    /// The size of the islands stays.
    pub fn with_fixed_islands(self) -> Self {
        Self { chooses: false, ..self }
    }

    /// A core has another speed from now on; 1 is usual.
    pub fn set_speed(&self, core: usize, speed: f64) {
        self.now.lock().speeds.insert(core, speed);
    }

    /// Just these cores are there.
    pub fn set_there(&self, there: impl IntoIterator<Item = usize>) {
        self.now.lock().there = there.into_iter().collect();
    }

    /// The cores that are there, or those that are not.
    pub fn those(&self, there: bool) -> Vec<usize> {
        let now = self.now.lock();
        (0..self.cores.len()).filter(|core| now.there.contains(core) == there).collect()
    }
}

impl Topology for Invented {
    fn read(&self) -> Result<Machine, TopologyError> {
        let now = self.now.lock();
        let bounds = Bounds { allowed: Some(now.there.clone()), quota: None };
        let machine = place(&self.cores, &bounds, now.size);
        if machine.places.is_empty() { Err(TopologyError::NoCores) } else { Ok(machine) }
    }

    fn work_nanos(&self, core: Option<usize>) -> Option<u64> {
        let speed = core.and_then(|core| self.now.lock().speeds.get(&core).copied()).unwrap_or(1.0);
        Some((USUAL_WORK_NANOS / speed) as u64)
    }

    fn chooses_islands(&self) -> bool {
        self.chooses
    }

    fn choose_islands(&self, size: Granularity) {
        self.now.lock().size = size;
    }
}
