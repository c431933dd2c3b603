//! The machine as hwloc sees it.

use std::collections::BTreeSet;
use std::path::Path;

use hwlocality::cpu::binding::CpuBindingFlags;
use hwlocality::object::types::ObjectType;
use hwlocality::topology::builder::TopologyBuilder;

use super::placement::{Bounds, CoreSeen, Machine, place};
use super::quota::cpu_quota;
use super::{Topology, TopologyError};

/// hwloc's view.
pub enum Hardware {
    /// Of this machine.
    Real,
    /// Of a described one, its cores mapped onto this machine's.
    Synthetic(String),
}

impl Topology for Hardware {
    fn read(&self) -> Result<Machine, TopologyError> {
        let real = read_real()?;
        match self {
            Hardware::Real => Ok(real),
            Hardware::Synthetic(description) => {
                let topology = TopologyBuilder::new()
                    .from_synthetic(description)
                    .map_err(|error| TopologyError::Unreadable(error.to_string()))?
                    .build()
                    .map_err(|error| TopologyError::Unreadable(error.to_string()))?;
                let machine = place(&cores(&topology), &Bounds::default());
                if machine.places.is_empty() {
                    return Err(TopologyError::NoCores);
                }
                Ok(machine.mapped_onto(&real))
            }
        }
    }
}

fn read_real() -> Result<Machine, TopologyError> {
    let topology =
        hwlocality::Topology::new().map_err(|error| TopologyError::Unreadable(error.to_string()))?;
    // The mask of the process; the cpuset is in it already. Where it cannot be read, all the
    // cores hwloc may use.
    let allowed: BTreeSet<usize> = match topology.cpu_binding(CpuBindingFlags::PROCESS) {
        Ok(set) => set.iter_set().map(usize::from).collect(),
        Err(_) => topology.allowed_cpuset().iter_set().map(usize::from).collect(),
    };
    let bounds = Bounds { allowed: Some(allowed), quota: cpu_quota(Path::new("/")) };
    let machine = place(&cores(&topology), &bounds);
    if machine.places.is_empty() { Err(TopologyError::NoCores) } else { Ok(machine) }
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
    use super::*;

    #[test]
    fn this_machine_has_a_place_inside_its_mask() {
        let machine = Hardware::Real.read().expect("hwloc reads this machine");
        assert!(!machine.places.is_empty() && !machine.islands.is_empty());
        assert!(machine.places.len() <= machine.cores_seen);
    }

    #[test]
    fn a_described_machine_has_its_islands_on_our_cores() {
        let real = Hardware::Real.read().expect("hwloc reads this machine");
        let chiplets = Hardware::Synthetic("pack:2 l3:2 core:4 pu:2".to_owned());
        let machine = chiplets.read().expect("a good description");
        assert_eq!((machine.islands.len(), machine.places.len()), (4, 16));
        assert!(machine.synthetic);
        let cpus: BTreeSet<usize> = real.places.iter().map(|place| place.cpu).collect();
        assert!(machine.places.iter().all(|place| cpus.contains(&place.cpu)));
        let sockets =
            Hardware::Synthetic("pack:8 core:10 pu:1".to_owned()).read().expect("a good description");
        assert_eq!((sockets.islands.len(), sockets.places.len()), (8, 80));
    }

    #[test]
    fn settings_are_checked() {
        assert!(super::super::from_setting("auto").is_ok());
        assert!(super::super::from_setting("synthetic:pack:2 core:2 pu:1").is_ok());
        assert!(super::super::from_setting("synthetic:nonsense").is_err());
        assert!(super::super::from_setting("manual").is_err());
    }
}
