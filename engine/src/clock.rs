//! Time as the engine sees it: a trait, so that the simulator owns the clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Seconds between 1970-01-01 and 2000-01-01, where PostgreSQL's timestamps start.
const POSTGRES_EPOCH_UNIX_SECONDS: i64 = 946_684_800;

/// A source of wall-clock and monotonic time.
pub trait Clock: Send + Sync {
    /// Microseconds since 2000-01-01 00:00 UTC.
    fn wall_micros(&self) -> i64;
    /// Nanoseconds since some fixed moment; never goes backwards.
    fn monotonic_nanos(&self) -> u64;
}

/// The machine's clocks.
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn wall_micros(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_micros() as i64 - POSTGRES_EPOCH_UNIX_SECONDS * 1_000_000,
            Err(before) => -(before.duration().as_micros() as i64) - POSTGRES_EPOCH_UNIX_SECONDS * 1_000_000,
        }
    }

    fn monotonic_nanos(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}
