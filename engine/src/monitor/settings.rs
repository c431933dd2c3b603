//! The thresholds of the monitor. The server shows each as a setting.

/// See the fields; defaults are those of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MonitorSettings {
    /// Whether runs are measured (`archipel.monitor`).
    pub measures: bool,
    /// Whether decisions are carried out (`archipel.adaptive`); otherwise they are only told.
    pub adapts: bool,
    /// Between two looks at throughput, mix and balance.
    pub sample_interval_nanos: u64,
    /// Between two full evaluations: the interval starts here …
    pub interval_min_nanos: u64,
    /// … and doubles up to here while nothing changes.
    pub interval_max_nanos: u64,
    /// How far throughput may be from the mean of the last five intervals.
    pub deviation: f64,
    /// How much more than the average the busiest executor may have.
    pub imbalance: f64,
    /// What part of the load may shift between partitions.
    pub mix_shift: f64,
    /// What a repartitioning must promise, as a part of the throughput.
    pub gain_min: f64,
    /// Fewer measured runs are no trace.
    pub samples_min: u64,
    /// Standard deviations of chance that a gain must be above.
    pub confidence: f64,
    /// A key with more than this part of its partition's transactions is looked at on its own.
    pub hot_key_share: f64,
    /// Partitions a group may have for each executor before cold ones are merged.
    pub partitions_per_executor_max: usize,
    /// Between two actions of one repartitioning.
    pub action_delay_nanos: u64,
    /// Whether the speeds of the cores are measured (`archipel.core_speeds`); otherwise they count
    /// as equal.
    pub measures_cores: bool,
    /// Between two measurements of a core's speed.
    pub core_interval_nanos: u64,
    /// Whether memory follows a partition to another memory node (`archipel.memory_follows`) …
    pub memory_follows: bool,
    /// … about so many bytes at a time …
    pub memory_follow_bytes: usize,
    /// … with a rest in between while the executor has something else to do.
    pub memory_follow_delay_nanos: u64,
}

impl Default for MonitorSettings {
    fn default() -> Self {
        Self {
            measures: true,
            adapts: true,
            sample_interval_nanos: 250_000_000,
            interval_min_nanos: 1_000_000_000,
            interval_max_nanos: 8_000_000_000,
            deviation: 0.10,
            imbalance: 0.25,
            mix_shift: 0.20,
            gain_min: 0.05,
            samples_min: 100,
            confidence: 2.0,
            hot_key_share: 0.30,
            partitions_per_executor_max: 16,
            action_delay_nanos: 1_000_000,
            measures_cores: true,
            core_interval_nanos: 2_000_000_000,
            memory_follows: true,
            memory_follow_bytes: 128 << 10,
            memory_follow_delay_nanos: 10_000_000,
        }
    }
}
