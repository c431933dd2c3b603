//! The machine as an engine knows it: who reads it, what its distances are, how large its islands.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{CoreDistances, Granularity, IslandDistance, Machine, Topology, TopologyError};

/// What an engine knows of the machine. `crate::engine::follow` reads it anew; the monitor looks at
/// it and chooses the size of the islands.
pub(crate) struct WatchedMachine {
    topology: Option<Arc<dyn Topology>>,
    cores: CoreDistances,
    islands: Mutex<Islands>,
}

/// The islands as they are.
struct Islands {
    size: Granularity,
    distances: Arc<[IslandDistance]>,
}

impl Islands {
    fn of(machine: &Machine, cores: &CoreDistances) -> Self {
        Self { size: machine.granularity, distances: machine.island_distances(cores).into() }
    }
}

impl WatchedMachine {
    pub fn new(
        topology: Option<Arc<dyn Topology>>,
        (cores, machine): (CoreDistances, Option<Machine>),
    ) -> Self {
        let nobody_reads = Islands { size: Granularity::Machine, distances: Arc::default() };
        let islands = machine.map_or(nobody_reads, |machine| Islands::of(&machine, &cores));
        Self { topology, cores, islands: Mutex::new(islands) }
    }

    /// Whether it is read again and again.
    pub fn is_watched(&self) -> bool {
        self.topology.is_some()
    }

    /// The machine as it is now; `None` if nobody reads it.
    pub fn read(&self) -> Result<Option<Machine>, TopologyError> {
        self.topology.as_ref().map(|topology| topology.read()).transpose()
    }

    /// How long a piece of work takes on an invented core, in nanoseconds.
    pub fn work_nanos(&self, core: Option<usize>) -> Option<u64> {
        self.topology.as_ref().and_then(|topology| topology.work_nanos(core))
    }

    /// It is another one than before.
    pub fn changed(&self, machine: &Machine) {
        *self.islands.lock() = Islands::of(machine, &self.cores);
    }

    /// The size of the islands as they are.
    pub fn size(&self) -> Granularity {
        self.islands.lock().size
    }

    /// Whether the load may choose another size.
    pub fn chooses_islands(&self) -> bool {
        self.topology.as_ref().is_some_and(|topology| topology.chooses_islands())
    }

    /// Islands have this size when it is read next.
    pub fn choose_islands(&self, size: Granularity) {
        if let Some(topology) = &self.topology {
            topology.choose_islands(size);
        }
    }

    /// Nanoseconds of a line between two cores, if that was measured.
    pub fn core_distance(&self, one: usize, other: usize) -> Option<f64> {
        self.cores.nanos(one, other)
    }

    /// The distances of the islands there are; empty on a machine that nobody reads.
    pub fn island_distances(&self) -> Arc<[IslandDistance]> {
        self.islands.lock().distances.clone()
    }
}
