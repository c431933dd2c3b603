//! How long a restart would take, and so how long the log may grow.
//!
//! A restart loads the checkpoint's rows, then applies the log. Both speeds are measured at
//! each recovery large enough to tell and kept in the store, so that the bound fits the machine
//! rather than a guess; a directory that has not recovered yet takes the guess, a careful one: where it
//! is too low the log is a little shorter for a while, where it is too high the first restart is too late.
//! The longest log that fits the target beside the rows is the limit that checkpoints are paced against,
//! as PostgreSQL paces them against `max_wal_size`.

use std::time::Duration;

use crate::log::{LogStore, RecoveryCost, StoreError};

/// How fast this machine recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoverySpeed {
    /// Bytes of log read and applied a second.
    pub log_bytes_per_second: u64,
    /// Rows loaded from the checkpoint a second, their index entries made.
    pub rows_per_second: u64,
}

/// What one thread of a small machine does, which has other things to do besides.
const GUESS: RecoverySpeed = RecoverySpeed { log_bytes_per_second: 45 << 20, rows_per_second: 900_000 };
/// More of them wait for the disk and for memory.
const GUESS_THREADS_MAX: u64 = 8;

/// A shorter log says little about the speed.
const MEASURED_LOG_BYTES_MIN: u64 = 32 << 20;
const MEASURED_ROWS_MIN: u64 = 100_000;

const SPEED_KEY: &str = "recovery-speed";

impl RecoverySpeed {
    /// What the store remembers, or the guess for so many threads.
    pub fn read(store: &dyn LogStore, threads: usize) -> Result<RecoverySpeed, StoreError> {
        let threads = (threads as u64).clamp(1, GUESS_THREADS_MAX);
        let word = |at: usize, bytes: &[u8]| {
            bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        Ok(match store.meta_get(SPEED_KEY)? {
            None => RecoverySpeed {
                log_bytes_per_second: GUESS.log_bytes_per_second * threads,
                rows_per_second: GUESS.rows_per_second * threads,
            },
            Some(bytes) => RecoverySpeed {
                log_bytes_per_second: word(0, &bytes).max(1 << 20),
                rows_per_second: word(8, &bytes).max(1_000),
            },
        })
    }

    fn write(self, store: &dyn LogStore) -> Result<(), StoreError> {
        let mut bytes = self.log_bytes_per_second.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.rows_per_second.to_le_bytes());
        store.meta_put(SPEED_KEY, &bytes)
    }

    /// Takes what a recovery showed: `rebuild_nanos` went into index entries and partitions.
    pub fn learn(
        self,
        store: &dyn LogStore,
        cost: &RecoveryCost,
        rebuild_nanos: u64,
    ) -> Result<RecoverySpeed, StoreError> {
        let mut learned = self;
        // Rows and records go through the same merge.
        let share = |part: u64| {
            let all = (cost.checkpoint_rows + cost.log_records).max(1);
            (u128::from(cost.build_nanos) * u128::from(part) / u128::from(all)) as u64
        };
        let a_second =
            |amount: u64, nanos: u64| (u128::from(amount) * 1_000_000_000 / u128::from(nanos.max(1))) as u64;
        let log_nanos = cost.log_nanos + share(cost.log_records);
        if cost.log_bytes >= MEASURED_LOG_BYTES_MIN && log_nanos > 0 {
            learned.log_bytes_per_second = a_second(cost.log_bytes, log_nanos);
        }
        let rows_nanos = rebuild_nanos + share(cost.checkpoint_rows);
        if cost.checkpoint_rows >= MEASURED_ROWS_MIN && rows_nanos > 0 {
            learned.rows_per_second = a_second(cost.checkpoint_rows, rows_nanos);
        }
        if learned != self {
            learned.write(store)?;
        }
        Ok(learned)
    }
}

/// Of `checkpoint_bytes`, the log may have this part whatever the target, and so much as replays in this part
/// of the time that the rows take.
const LEAST_PART: u64 = 4;

/// The bound on the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestartBound {
    pub speed: RecoverySpeed,
    pub target: Duration,
    /// A checkpoint begins at this length of log at the latest.
    pub checkpoint_bytes: u64,
    /// Memory there is: replay holds the log in it beside the rows.
    pub memory_max_bytes: u64,
}

impl RestartBound {
    /// How long a restart would take with this many rows and this much log.
    pub fn estimate(&self, rows: u64, log_bytes: u64) -> Duration {
        let load = rows as f64 / self.speed.rows_per_second as f64;
        let replay = log_bytes as f64 / self.speed.log_bytes_per_second as f64;
        Duration::from_secs_f64(load + replay)
    }

    /// The length the log should stay below: what the target leaves beside the rows, a fifth
    /// kept back; not so much that replaying it takes memory out of proportion. It is at least a
    /// part of `checkpoint_bytes`, and the longer the rows take the more, up to all of it: a target that
    /// they alone exceed cannot be met, and a shorter log would keep the machine writing them again and
    /// again for nothing.
    pub fn log_bytes_max(&self, rows: u64) -> u64 {
        let load = self.estimate(rows, 0);
        let left = self.target.saturating_sub(load).as_secs_f64();
        let fits = left * self.speed.log_bytes_per_second as f64 * 0.8;
        let in_memory = (self.memory_max_bytes / 8).max(self.checkpoint_bytes);
        let beside_rows = load.as_secs_f64() * self.speed.log_bytes_per_second as f64;
        let least = (self.checkpoint_bytes / LEAST_PART)
            .max((beside_rows as u64 / LEAST_PART).min(self.checkpoint_bytes));
        (fits as u64).max(least).min(self.checkpoint_bytes.saturating_mul(4)).min(in_memory)
    }

    /// The length of log at which a checkpoint begins.
    pub fn begin_at(&self, rows: u64) -> u64 {
        self.checkpoint_bytes.min(self.log_bytes_max(rows) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::MemoryStore;

    fn bound(target_seconds: u64) -> RestartBound {
        RestartBound {
            speed: RecoverySpeed { log_bytes_per_second: 100 << 20, rows_per_second: 1_000_000 },
            target: Duration::from_secs(target_seconds),
            checkpoint_bytes: 512 << 20,
            memory_max_bytes: 32 << 30,
        }
    }

    #[test]
    fn more_rows_leave_less_room_for_log() {
        let bound = bound(15);
        assert!(bound.log_bytes_max(1_000_000) > bound.log_bytes_max(5_000_000));
        let rows = 5_000_000;
        assert!(bound.estimate(rows, bound.log_bytes_max(rows)) < Duration::from_secs(15));
        assert!(bound.begin_at(rows) <= bound.log_bytes_max(rows) / 2);
    }

    #[test]
    fn a_slow_machine_keeps_a_shorter_log_than_a_checkpoint_is_worth() {
        // Ten warehouses of TPC-C on two cores that do something else, too.
        let speed = RecoverySpeed { log_bytes_per_second: 80 << 20, rows_per_second: 1_700_000 };
        let bound = RestartBound { speed, checkpoint_bytes: 1 << 30, ..bound(15) };
        let rows = 7_000_000;
        assert!(bound.log_bytes_max(rows) < 1 << 30);
        assert!(bound.estimate(rows, bound.log_bytes_max(rows)) < Duration::from_secs(15));
    }

    #[test]
    fn a_target_that_cannot_be_met_still_leaves_a_log_to_write() {
        assert_eq!(bound(1).log_bytes_max(1_000_000), 128 << 20);
        assert_eq!(bound(1).log_bytes_max(10_000_000), 250 << 20);
        assert_eq!(bound(15).log_bytes_max(50_000_000), 512 << 20);
        let small = RestartBound { checkpoint_bytes: 1 << 20, ..bound(15) };
        assert_eq!(small.log_bytes_max(0), 4 << 20);
        let poor = RestartBound { memory_max_bytes: 512 << 20, checkpoint_bytes: 32 << 20, ..bound(15) };
        assert_eq!(poor.log_bytes_max(0), 64 << 20);
    }

    #[test]
    fn what_a_recovery_showed_is_kept() {
        let store = MemoryStore::new();
        let guess = RecoverySpeed::read(&store, 2).expect("readable");
        let cost = RecoveryCost {
            log_bytes: 200 << 20,
            log_records: 1_000_000,
            checkpoint_rows: 1_000_000,
            log_nanos: 1_000_000_000,
            build_nanos: 2_000_000_000,
        };
        let learned = guess.learn(&store, &cost, 1_000_000_000).expect("written");
        assert_eq!(learned.log_bytes_per_second, 100 << 20);
        assert_eq!(learned.rows_per_second, 500_000);
        assert_eq!(RecoverySpeed::read(&store, 2).expect("readable"), learned);
        let small = RecoveryCost { log_bytes: 1 << 20, checkpoint_rows: 10, ..cost };
        assert_eq!(learned.learn(&store, &small, 5).expect("written"), learned);
    }
}
