//! Which cores there are, and which of them belong together.
//!
//! - [`hardware`]  the machine as hwloc sees it: real, or from a synthetic description
//! - [`synthetic`]  machines made up for tests, the simulator and experiments
//! - [`placement`] from cores to islands and executors: pure, tested on invented machines
//! - [`distance`]  what it costs to pass a cache line between cores and islands
//! - [`quota`]     the container's CPU quota, of either version of control groups
//! - [`current`]   what an engine knows of it
//! - [`mask`]      which hardware threads a thread may run on
//!
//! The machine is read again every second, because all of these may change while the process
//! runs; `crate::engine::follow` does what follows from it.
//!
//! An *island* is the cores that share a last-level cache, or a socket where caches tell
//! nothing (*OLTP on Hardware Islands*: communication inside is cheap, across it is not). Each
//! executor gets a core of its own, never a second hardware thread of one: two hot threads on
//! a core slow each other exactly while one holds a claim. The process's affinity mask and the
//! cpuset bound which cores, the quota how many.
//!
//! A synthetic machine (`synthetic:pack:2 l3:2 core:8 pu:2`) keeps its islands and maps its
//! cores onto the real ones in turn, so that placement and cost decisions for a large machine
//! can be run on a small one.

mod current;
pub(crate) mod distance;
mod hardware;
pub mod mask;
mod placement;
mod quota;
mod synthetic;

pub(crate) use current::WatchedMachine;
pub use distance::{CoreDistances, IslandDistance};
pub use hardware::Hardware;
pub use placement::{Bounds, CoreSeen, Granularity, Island, Machine, Near, Place, Reach, place};
pub use quota::cpu_quota;
pub use synthetic::Invented;

/// Why the machine could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// hwloc could not read the machine.
    #[error("the hardware topology could not be read: {0}")]
    Unreadable(String),
    /// The setting is neither `auto` nor a synthetic description hwloc understands.
    #[error("invalid topology \"{setting}\": {reason}")]
    Setting { setting: String, reason: String },
    /// No core is left inside the bounds.
    #[error("the affinity mask of the process leaves no core to run on")]
    NoCores,
}

/// A source of machines; read again every second, because cores come and go.
pub trait Topology: Send + Sync {
    /// The machine as it is now.
    fn read(&self) -> Result<Machine, TopologyError>;

    /// How long a piece of work takes on a core, in nanoseconds, if the core is invented; `None`:
    /// it is real, and executors measure it.
    fn work_nanos(&self, _core: Option<usize>) -> Option<u64> {
        None
    }

    /// Whether the load may choose the size of the islands.
    fn chooses_islands(&self) -> bool {
        false
    }

    /// Reads with islands of this size from now on, if it may be chosen.
    fn choose_islands(&self, _size: Granularity) {}
}

/// The topology a `topology` setting asks for: `auto`, or `synthetic:` and a description in
/// hwloc's words.
pub fn from_setting(setting: &str, granularity: Granularity) -> Result<Box<dyn Topology>, TopologyError> {
    if setting == "auto" {
        return Ok(Box::new(Hardware::real(granularity)));
    }
    let wrong = |reason: String| TopologyError::Setting { setting: setting.to_owned(), reason };
    let Some(description) = setting.strip_prefix("synthetic:") else {
        return Err(wrong("expected auto or synthetic:…".to_owned()));
    };
    let hardware =
        Hardware::synthetic(description.trim(), granularity).map_err(|error| wrong(error.to_string()))?;
    Ok(Box::new(hardware))
}
