//! How fast a scan asks for pages: as fast as executors answer while they have nothing else to do,
//! and for a small share of their time while transactions wait for them.
//!
//! A page that waited long before it was copied met others: executors that rest take it up at
//! once, or as soon as the system has woken them. While the pages of late waited longer than
//! that, each is followed by a rest of [`REST`] times what copying it took: a query then takes no
//! more than about a ninth of the executor that it reads from, however long it runs.

use std::time::{Duration, Instant};

/// Waking an idle executor takes tens of microseconds; pages that waited longer than this, in
/// nanoseconds, met work.
const WAITED_MEETS_WORK: u64 = 100_000;

/// A rest is this many times as long as the page before it held an executor.
const REST: u32 = 8;

/// Rests are saved up until they are as long as a timer can measure.
const SHORTEST: Duration = Duration::from_millis(1);

/// The pace of one scan.
#[derive(Default)]
pub struct Pace {
    /// What pages waited of late, in nanoseconds: each one counts an eighth.
    waited_nanos: u64,
    /// Rest that is due, and since when.
    due: Duration,
    since: Option<Instant>,
}

impl Pace {
    /// Takes notice of a page: how long it waited, and how long it was copied, in nanoseconds.
    pub fn note(&mut self, waited_nanos: u64, held_nanos: u64) {
        self.waited_nanos = (7 * self.waited_nanos + waited_nanos) / 8;
        if self.waited_nanos <= WAITED_MEETS_WORK {
            self.due = Duration::ZERO;
            return;
        }
        if self.due.is_zero() {
            self.since = Some(Instant::now());
        }
        self.due += REST * Duration::from_nanos(held_nanos);
    }

    /// Whether a rest is due before the next page.
    pub fn is_resting(&self) -> bool {
        self.due >= SHORTEST
    }

    /// Rests, if a rest is due. What the scan did meanwhile counts as rest.
    pub async fn rest(&mut self) {
        if !self.is_resting() {
            return;
        }
        let passed = self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        let left = std::mem::take(&mut self.due).saturating_sub(passed);
        if left >= SHORTEST {
            tokio::time::sleep(left).await;
        }
    }
}
