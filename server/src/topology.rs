//! Where executors go: one per core this process may use, or as many as asked for.

use archipel_engine::ExecutorPlace;
use archipel_engine::topology::{TopologyError, from_setting};

/// The places of `count` executors on the machine of a `topology` setting; zero is one for
/// each core inside the affinity mask and the CPU quota.
pub fn executor_places(topology: &str, count: usize) -> Result<Vec<ExecutorPlace>, TopologyError> {
    let machine = from_setting(topology)?.read()?;
    let mut places = machine.executors();
    let cores = places.len();
    if count > 0 {
        places = (0..count).map(|number| places[number % cores]).collect();
        places.sort_by_key(|place| place.island);
    }
    // Executors that share a core, as asked for or on an invented machine, are left to the
    // operating system.
    if machine.synthetic || count > cores {
        for place in &mut places {
            place.core = None;
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_described_machines_are_followed() {
        let cores = executor_places("auto", 0).expect("this machine can be read").len();
        assert_eq!(executor_places("auto", 1).expect("one core").len(), 1);
        let crowded = executor_places("auto", cores + 3).expect("more than there are");
        assert_eq!(crowded.len(), cores + 3);
        assert!(crowded.iter().all(|place| place.core.is_none()));
        let sockets = executor_places("synthetic:pack:2 core:4 pu:1", 0).expect("a good description");
        assert_eq!((sockets.len(), sockets[7].island.0), (8, 1));
        assert!(executor_places("synthetic:nonsense", 0).is_err());
    }
}
