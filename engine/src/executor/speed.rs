//! How fast a core is: the time of a piece of work that is always the same.
//!
//! The work is done by the executor's own thread, where it is pinned, so that what is measured is
//! the core it has and nothing else: a chain of dependent multiplications and loads from a table
//! that fits the first-level cache, as a walk down a tree is. It takes about ten microseconds, and
//! the shortest of several times counts: an interrupt, or a neighbour on the core, makes some of
//! them longer and none shorter. Only a core that has been working is measured: an idle one may
//! have slowed its clock, and would be taken for a slow one until it is given work.

use std::hint::black_box;

use crate::clock::Clock;

/// Times that the work is done.
const ROUNDS: usize = 6;
/// Steps of the work.
const STEPS: usize = 4_000;
/// Entries of the table: 4 kB.
const TABLE: usize = 512;

/// Nanoseconds of the work on this thread's core.
pub(super) fn measure(clock: &dyn Clock) -> u64 {
    let mut table = [0_u64; TABLE];
    for (at, entry) in table.iter_mut().enumerate() {
        *entry = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    let mut shortest = u64::MAX;
    for _ in 0..ROUNDS {
        let began = clock.monotonic_nanos();
        black_box(work(black_box(&table)));
        shortest = shortest.min(clock.monotonic_nanos().saturating_sub(began));
    }
    shortest
}

fn work(table: &[u64; TABLE]) -> u64 {
    let mut sum = 1_u64;
    for _ in 0..STEPS {
        sum = (sum ^ table[(sum >> 55) as usize % TABLE]).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn a_measurement_is_short() {
        let clock = SystemClock::new();
        let nanos = measure(&clock);
        // On any core, however busy: the shortest of six.
        assert!((500..5_000_000).contains(&nanos), "{nanos} ns");
    }
}
