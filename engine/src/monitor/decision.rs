//! What the monitor decided, and the numbers that led to it.

use std::borrow::Cow;
use std::collections::VecDeque;

use parking_lot::Mutex;

use super::decide::{Costs, Outcome};
use super::trigger::Reason;
use crate::id::{ExecutorId, GroupId, PartitionId};
use crate::topology::Granularity;

/// A row of `archipel.monitor_decisions`.
#[derive(Clone, Debug)]
pub struct Decision {
    /// From 1 on; rows of `archipel.repartitions` name it.
    pub id: u64,
    /// Microseconds since 2000-01-01 UTC.
    pub at: i64,
    pub reason: Reason,
    pub verdict: Told,
    /// Nanoseconds between the trigger and the decision.
    pub watched_nanos: u64,
    /// The evaluation interval when it was triggered.
    pub interval_nanos: u64,
    /// Actions a second while it was watched.
    pub throughput: f64,
    /// Measured runs in the trace.
    pub samples: u64,
    pub before: Costs,
    /// As forecast.
    pub after: Costs,
    /// As measured afterwards.
    pub measured: Option<Costs>,
    /// By which part throughput should rise.
    pub predicted_gain: f64,
    /// By which part the same formula says that it has risen, from a trace of afterwards. `None`
    /// if the load went, or went elsewhere, before that was known.
    pub measured_gain: Option<f64>,
    /// Actions a second afterwards.
    pub throughput_after: Option<f64>,
    /// What chance alone may show.
    pub noise: f64,
    /// What the actions were expected to cost.
    pub price_nanos: f64,
    pub splits: u32,
    pub merges: u32,
    pub moves: u32,
    /// Actions that did not apply any more when their turn came.
    pub refused: u32,
    /// From the first action to the last.
    pub acted_nanos: Option<u64>,
    pub advice: Option<Advice>,
}

impl Decision {
    /// A row with nothing but its name.
    pub(super) fn new(id: u64, at: i64, reason: Reason, verdict: Told) -> Self {
        Self {
            id,
            at,
            reason,
            verdict,
            watched_nanos: 0,
            interval_nanos: 0,
            throughput: 0.0,
            samples: 0,
            before: Costs::default(),
            after: Costs::default(),
            measured: None,
            predicted_gain: 0.0,
            measured_gain: None,
            throughput_after: None,
            noise: 0.0,
            price_nanos: 0.0,
            splits: 0,
            merges: 0,
            moves: 0,
            refused: 0,
            acted_nanos: None,
            advice: None,
        }
    }
}

/// What became of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Decided(Outcome),
    /// A better layout was found, and `archipel.adaptive` is off.
    Static,
    /// The last repartitionings brought less than was forecast: wait before the next.
    HeldOff,
    /// No two windows agreed: the load changes faster than it could be followed.
    Unstable,
    /// Islands have this size from now on.
    Islands(Granularity),
    /// Islands have this size again: runs took longer with the other one.
    IslandsBack(Granularity),
}

impl Told {
    /// As the views show it.
    pub fn name(self) -> Cow<'static, str> {
        let name = match self {
            Self::Decided(Outcome::Kept) => "kept",
            Self::Decided(Outcome::TooSmall) => "gain too small",
            Self::Decided(Outcome::Chance) => "gain within chance",
            Self::Decided(Outcome::TooDear) => "too dear",
            Self::Decided(Outcome::TooFew) => "too few samples",
            Self::Decided(Outcome::Repartition) => "repartitioned",
            Self::Static => "adaptive is off",
            Self::HeldOff => "held off",
            Self::Unstable => "unstable",
            Self::Islands(size) => return format!("an island is {}", size.name()).into(),
            Self::IslandsBack(size) => return format!("an island is {} again", size.name()).into(),
        };
        name.into()
    }
}

/// What no repartitioning can mend.
#[derive(Clone, Debug, PartialEq)]
pub enum Advice {
    /// One key carries more than a core's share, in a partition of its own or on its way there.
    HotKey { group: GroupId, key: Vec<u8>, share: f64 },
    /// The last keys of a group carry more than a core's share however finely they are told apart:
    /// rows are added behind them.
    GrowingEnd { group: GroupId, share: f64 },
    /// Reference tables are written so often that their one partition carries this share.
    HotReference { share: f64 },
}

/// What was measured of a partition in the last evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartitionLoad {
    pub partition: PartitionId,
    pub home: ExecutorId,
    /// Of all partitions together.
    pub share: f64,
}

/// A row of `archipel.sync_points`: sub-partitions that met in transactions of a class.
#[derive(Clone, Debug)]
pub struct SyncPointView {
    pub class: u32,
    /// Each with the first key of the sub-partition.
    pub participants: Vec<(PartitionId, GroupId, Vec<u8>)>,
    /// Bytes exchanged in the last evaluated window.
    pub bytes: u64,
    /// The islands they are on.
    pub islands: usize,
    /// (islands − 1) · distance · bytes.
    pub cost: f64,
}

const KEPT: usize = 1_000;

/// The last decisions, oldest first. Latched: they are rare.
#[derive(Default)]
pub(crate) struct Decisions {
    kept: Mutex<VecDeque<Decision>>,
}

impl Decisions {
    pub fn add(&self, decision: Decision) {
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(decision);
    }

    pub fn list(&self) -> Vec<Decision> {
        self.kept.lock().iter().cloned().collect()
    }

    pub fn change(&self, id: u64, change: impl FnOnce(&mut Decision)) {
        if let Some(decision) = self.kept.lock().iter_mut().rev().find(|decision| decision.id == id) {
            change(decision);
        }
    }
}
