//! How fast a checkpoint goes: no faster than it must, so that transactions keep the machine,
//! and as fast as it can once the log nears its limit.
//!
//! ```text
//! log     │ begin ───────────────────── 0.7 ─────── limit
//! rows    │ 0 ─────────────────────────── 1
//! ```
//!
//! The share of rows looked at is held against the share of the log's room used up, as
//! PostgreSQL's `checkpoint_completion_target` does; while the log stands still, against time.
//! A checkpoint that is ahead rests between slices; one that is behind does not.

use std::time::Duration;

/// Of the room between the log's length at the begin and its limit, a checkpoint takes this.
const ROOM_TAKEN: f64 = 0.7;

/// A checkpoint takes no longer than this, however quiet the log.
const LONGEST: Duration = Duration::from_secs(60);

/// One rest; the pace is looked at again after it.
const REST: Duration = Duration::from_millis(2);

/// The pace of one checkpoint.
pub(crate) struct Pace {
    log_at_begin: u64,
    log_max: u64,
    began_nanos: u64,
    /// Entries there are to look at, by estimate.
    entries: u64,
    looked_at: u64,
    hurried: bool,
}

impl Pace {
    /// The pace of a checkpoint that begins now, and should end before the log has `log_max`
    /// bytes.
    pub fn new(log_at_begin: u64, log_max: u64, began_nanos: u64, entries: u64) -> Pace {
        Pace { log_at_begin, log_max, began_nanos, entries: entries.max(1), looked_at: 0, hurried: false }
    }

    /// Somebody waits for the checkpoint: no rests.
    pub fn hurry(&mut self) {
        self.hurried = true;
    }

    /// Notes that a slice looked at this many entries.
    pub fn advance(&mut self, looked_at: u64) {
        self.looked_at += looked_at;
    }

    /// Corrects the estimate of how many entries there are.
    pub fn expect(&mut self, entries: u64) {
        self.entries = entries.max(1);
    }

    /// Entries looked at so far.
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// How far the checkpoint is, from 0 to 1.
    pub fn progress(&self) -> f64 {
        (self.looked_at as f64 / self.entries as f64).min(1.0)
    }

    /// How far it should be.
    fn wanted(&self, log_now: u64, nanos: u64) -> f64 {
        let room = self.log_max.saturating_sub(self.log_at_begin) as f64 * ROOM_TAKEN;
        let grown = log_now.saturating_sub(self.log_at_begin) as f64;
        let by_log = if room > 0.0 { grown / room } else { 1.0 };
        let by_time = nanos.saturating_sub(self.began_nanos) as f64 / LONGEST.as_nanos() as f64;
        by_log.max(by_time)
    }

    /// The rest to take now, if the checkpoint is ahead.
    pub fn rest(&self, log_now: u64, nanos: u64) -> Option<Duration> {
        (!self.hurried && self.progress() > self.wanted(log_now, nanos)).then_some(REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_checkpoint_ahead_of_the_log_rests_and_one_behind_does_not() {
        let mut pace = Pace::new(100, 1_100, 0, 1_000);
        pace.advance(300);
        assert!(pace.rest(200, SECOND).is_some(), "30% done at a seventh of the room");
        assert!(pace.rest(400, SECOND).is_none(), "30% done at three sevenths");
        assert!(pace.rest(200, 40 * SECOND).is_none(), "time passes even if the log does not grow");
        pace.hurry();
        assert!(pace.rest(200, SECOND).is_none(), "somebody waits");
    }

    #[test]
    fn a_log_beyond_its_limit_leaves_no_rest() {
        let mut pace = Pace::new(2_000, 1_000, 0, 10);
        pace.advance(9);
        assert!(pace.rest(2_000, 0).is_none());
    }

    #[test]
    fn more_entries_than_estimated_count_as_all() {
        let mut pace = Pace::new(0, 100, 0, 10);
        pace.advance(50);
        assert_eq!(pace.progress(), 1.0);
        assert!(pace.rest(90, SECOND).is_none(), "the room is used up");
    }
}
