//! Randomness as the engine sees it: seeds from a trait, streams from a small generator.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of seeds. The simulator gives a fixed sequence.
pub trait Entropy: Send + Sync {
    fn seed(&self) -> u64;
}

/// Seeds from the operating system (through the standard library's per-process keys).
#[derive(Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn seed(&self) -> u64 {
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    }
}

/// A counted sequence of seeds: the simulator's entropy.
pub struct SeededEntropy {
    next: AtomicU64,
}

impl SeededEntropy {
    pub fn new(seed: u64) -> Self {
        Self { next: AtomicU64::new(seed) }
    }
}

impl Entropy for SeededEntropy {
    fn seed(&self) -> u64 {
        let mut stream = RandomStream::new(self.next.fetch_add(1, Ordering::Relaxed));
        stream.next_u64()
    }
}

/// SplitMix64: one addition and a few shifts a number, good enough for `random()` and for
/// simulation schedules, and no state to share.
#[derive(Clone, Debug)]
pub struct RandomStream {
    state: u64,
}

impl RandomStream {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0..bound`; `bound` must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the multiply-shift method is below 2^-32 for the small bounds used here.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `0.0 .. 1.0`.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}
