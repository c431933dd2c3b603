//! The machine as hwloc sees it.

use std::collections::BTreeSet;
use std::path::Path;

use hwlocality::object::types::ObjectType;
use hwlocality::topology::builder::{BuildFlags, TopologyBuilder};
use parking_lot::Mutex;

use super::mask::{cpus_online, process_mask};
use super::placement::{Bounds, CoreSeen, Machine, place};
use super::quota::cpu_quota;
use super::{Granularity, Topology, TopologyError};

/// hwloc's view of this machine, or of a described one whose cores are mapped onto this
/// machine's.
///
/// hwloc reads the whole machine, which takes milliseconds, when the set of cores that are
/// online has changed; mask and quota are read each time.
pub struct Hardware {
    described: Option<Vec<CoreSeen>>,
    granularity: Granularity,
    /// What the load has chosen in place of `auto`.
    chosen: Mutex<Option<Granularity>>,
    seen: Mutex<Option<Seen>>,
}

/// What hwloc saw while these were online.
struct Seen {
    online: Option<BTreeSet<usize>>,
    cores: Vec<CoreSeen>,
}

impl Hardware {
    /// This machine.
    pub fn real(granularity: Granularity) -> Self {
        Self { described: None, granularity, chosen: Mutex::new(None), seen: Mutex::new(None) }
    }

    /// A machine in hwloc's words for synthetic ones.
    pub fn synthetic(description: &str, granularity: Granularity) -> Result<Self, TopologyError> {
        let unreadable = |error: String| TopologyError::Unreadable(error);
        let topology = TopologyBuilder::new()
            .from_synthetic(description)
            .map_err(|error| unreadable(error.to_string()))?
            .build()
            .map_err(|error| unreadable(error.to_string()))?;
        let cores = cores(&topology);
        if cores.is_empty() {
            return Err(TopologyError::NoCores);
        }
        Ok(Self { described: Some(cores), granularity, chosen: Mutex::new(None), seen: Mutex::new(None) })
    }

    fn granularity(&self) -> Granularity {
        self.chosen.lock().unwrap_or(self.granularity)
    }

    fn read_real(&self) -> Result<Machine, TopologyError> {
        let online = cpus_online(Path::new("/"));
        let allowed = process_mask();
        let mut seen = self.seen.lock();
        if seen.as_ref().is_none_or(|seen| seen.online != online) {
            let cores = match whole_machine() {
                Ok(cores) => cores,
                Err(error) => guess(allowed.as_ref()).ok_or(error)?,
            };
            *seen = Some(Seen { online, cores });
        }
        let cores = seen.as_ref().map_or(&[][..], |seen| &seen.cores);
        let bounds = Bounds { allowed, quota: cpu_quota(Path::new("/")) };
        let machine = place(cores, &bounds, self.granularity());
        if machine.places.is_empty() { Err(TopologyError::NoCores) } else { Ok(machine) }
    }
}

impl Topology for Hardware {
    fn chooses_islands(&self) -> bool {
        self.granularity == Granularity::Auto
    }

    fn choose_islands(&self, size: Granularity) {
        if self.chooses_islands() {
            *self.chosen.lock() = Some(size);
        }
    }

    fn read(&self) -> Result<Machine, TopologyError> {
        let real = self.read_real()?;
        Ok(match &self.described {
            None => real,
            Some(cores) => place(cores, &Bounds::default(), self.granularity()).mapped_onto(&real),
        })
    }
}

/// All cores that are online, those outside the cpuset of now too: it may grow.
fn whole_machine() -> Result<Vec<CoreSeen>, TopologyError> {
    let unreadable = |error: String| TopologyError::Unreadable(error);
    let topology = TopologyBuilder::new()
        .with_flags(BuildFlags::INCLUDE_DISALLOWED)
        .map_err(|error| unreadable(error.to_string()))?
        .build()
        .map_err(|error| unreadable(error.to_string()))?;
    let cores = cores(&topology);
    if cores.is_empty() { Err(unreadable("it names no core".to_owned())) } else { Ok(cores) }
}

/// Where hwloc finds nothing: every hardware thread is a core of one socket.
fn guess(allowed: Option<&BTreeSet<usize>>) -> Option<Vec<CoreSeen>> {
    let core = |&cpu: &usize| CoreSeen { threads: vec![cpu], cache: None, package: 0, memory_node: 0 };
    Some(allowed?.iter().map(core).collect())
}

fn cores(topology: &hwlocality::Topology) -> Vec<CoreSeen> {
    // Some virtual machines show hardware threads without cores.
    let of_type = |kind| -> Vec<CoreSeen> {
        topology
            .objects_with_type(kind)
            .map(|object| {
                let ancestor =
                    |kind| object.first_ancestor_with_type(kind).map(|found| found.logical_index());
                let first_node = object.nodeset().and_then(|nodes| nodes.first_set());
                CoreSeen {
                    threads: object
                        .cpuset()
                        .into_iter()
                        .flat_map(|set| set.iter_set().collect::<Vec<_>>())
                        .map(usize::from)
                        .collect(),
                    cache: ancestor(ObjectType::L3Cache),
                    package: ancestor(ObjectType::Package).unwrap_or(0),
                    memory_node: first_node.map_or(0, usize::from),
                }
            })
            .filter(|core| !core.threads.is_empty())
            .collect()
    };
    let cores = of_type(ObjectType::Core);
    if cores.is_empty() { of_type(ObjectType::PU) } else { cores }
}

#[cfg(test)]
mod tests {
    use super::super::from_setting;
    use super::*;

    fn described(description: &str, granularity: Granularity) -> Machine {
        Hardware::synthetic(description, granularity).and_then(|it| it.read()).expect("a good description")
    }

    #[test]
    fn this_machine_has_a_place_inside_its_mask() {
        let hardware = Hardware::real(Granularity::Auto);
        let machine = hardware.read().expect("hwloc reads this machine");
        assert!(!machine.places.is_empty() && !machine.islands.is_empty());
        assert!(machine.places.len() <= machine.cores_seen);
        assert_eq!(hardware.read().expect("it is read again"), machine);
    }

    #[test]
    fn a_described_machine_has_its_islands_on_our_cores() {
        let real = Hardware::real(Granularity::Auto).read().expect("hwloc reads this machine");
        let machine = described("pack:2 l3:2 core:4 pu:2", Granularity::Auto);
        assert_eq!((machine.islands.len(), machine.places.len()), (4, 16));
        assert!(machine.synthetic);
        let cpus: BTreeSet<usize> = real.places.iter().map(|place| place.cpu).collect();
        assert!(machine.places.iter().all(|place| cpus.contains(&place.cpu)));
        let sockets = described("pack:8 core:10 pu:1", Granularity::Auto);
        assert_eq!((sockets.islands.len(), sockets.places.len()), (8, 80));
    }

    #[test]
    fn islands_are_as_large_as_asked_for() {
        let islands = |granularity| described("pack:2 l3:2 core:4 pu:2", granularity).islands.len();
        let sizes =
            [Granularity::Core, Granularity::L3, Granularity::Socket, Granularity::Machine].map(islands);
        assert_eq!(sizes, [16, 4, 2, 1]);
    }

    #[test]
    fn settings_are_checked() {
        let accepts = |setting| from_setting(setting, Granularity::Auto).is_ok();
        assert!(accepts("auto"));
        assert!(accepts("synthetic:pack:2 core:2 pu:1"));
        assert!(!accepts("synthetic:nonsense"));
        assert!(!accepts("synthetic:"));
        assert!(!accepts("manual"));
    }

    #[test]
    fn without_hwloc_every_hardware_thread_is_a_core() {
        let cores = guess(Some(&BTreeSet::from([0, 3]))).expect("a mask");
        let machine = place(&cores, &Bounds::default(), Granularity::Auto);
        assert_eq!((machine.islands.len(), machine.places.len()), (1, 2));
        assert!(guess(None).is_none());
    }
}
