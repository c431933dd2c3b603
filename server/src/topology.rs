//! Where executors go: one per core this process may use, or as many as asked for.
//!
//! A number of executors that somebody asked for is kept whatever the machine does: they are
//! pinned while each has a core, and left to the operating system otherwise. Without a number
//! there are as many as the affinity mask, the cpuset and the CPU quota leave cores, now and
//! later.

use archipel_engine::topology::mask::cpus_possible;
use archipel_engine::topology::{Granularity, Machine, Topology, TopologyError, from_setting};

/// The topology as the settings ask for it.
pub struct AskedFor {
    hardware: Box<dyn Topology>,
    /// Zero: one for each core.
    executors: usize,
}

impl AskedFor {
    /// By the settings `archipel.topology`, `archipel.island` and `archipel.executors`.
    pub fn new(topology: &str, island: &str, executors: usize) -> Result<AskedFor, TopologyError> {
        let granularity = Granularity::from_name(island).ok_or_else(|| TopologyError::Setting {
            setting: island.to_owned(),
            reason: "expected auto, core, l3, socket or machine".to_owned(),
        })?;
        Ok(AskedFor { hardware: from_setting(topology, granularity)?, executors })
    }

    /// How many executors there may ever be on this machine.
    pub fn executors_max(&self, machine: &Machine) -> usize {
        let fixed = machine.synthetic || self.executors > 0;
        if fixed { machine.places.len() } else { machine.places.len().max(cpus_possible()) }
    }
}

impl Topology for AskedFor {
    fn chooses_islands(&self) -> bool {
        self.hardware.chooses_islands()
    }

    fn work_nanos(&self, core: Option<usize>) -> Option<u64> {
        self.hardware.work_nanos(core)
    }

    fn choose_islands(&self, size: Granularity) {
        self.hardware.choose_islands(size);
    }

    fn read(&self) -> Result<Machine, TopologyError> {
        let machine = self.hardware.read()?;
        Ok(if self.executors > 0 { machine.with_places(self.executors) } else { machine })
    }
}

/// What `archipel topology` prints.
pub fn describe(topology: &str, island: &str, executors: usize) -> Result<String, TopologyError> {
    let machine = AskedFor::new(topology, island, executors)?.read()?;
    let mut text = String::new();
    for island in &machine.islands {
        text.push_str(&format!("island {}\n", island.id));
        for &number in &island.places {
            match machine.places[number].cpu {
                core if machine.pinned => text.push_str(&format!("  executor {number} on core {core}\n")),
                _ => text.push_str(&format!("  executor {number}\n")),
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(topology: &str, island: &str, count: usize) -> Machine {
        AskedFor::new(topology, island, count).and_then(|asked| asked.read()).expect("it can be read")
    }

    #[test]
    fn counts_and_described_machines_are_followed() {
        let cores = read("auto", "auto", 0).places.len();
        assert_eq!(read("auto", "auto", 1).places.len(), 1);
        let crowded = read("auto", "auto", cores + 3);
        assert_eq!((crowded.places.len(), crowded.pinned), (cores + 3, false));
        let sockets = read("synthetic:pack:2 core:4 pu:1", "auto", 0);
        assert_eq!((sockets.places.len(), sockets.places[7].island.0), (8, 1));
        assert!(AskedFor::new("synthetic:nonsense", "auto", 0).is_err());
        assert!(AskedFor::new("auto", "village", 0).is_err());
    }

    #[test]
    fn there_is_room_for_every_core_of_this_machine() {
        let asked = AskedFor::new("auto", "auto", 0).expect("good settings");
        let machine = asked.read().expect("it can be read");
        assert!(asked.executors_max(&machine) >= machine.cores_seen);
        let two = AskedFor::new("auto", "auto", 2).expect("good settings");
        assert_eq!(two.executors_max(&two.read().expect("it can be read")), 2);
    }

    #[test]
    fn a_description_names_islands_and_executors() {
        let described = describe("synthetic:pack:2 core:2 pu:1", "core", 0).expect("a good description");
        assert_eq!(described.lines().filter(|line| line.starts_with("island")).count(), 4);
    }
}
