//! What EXPLAIN ANALYZE tells of a run: of the whole, and of each node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archipel_sql::ast::ExplainOptions;

use super::document::{Properties, Value, add};

/// A run that came to its end.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Rows answered by a query, written by anything else.
    pub rows: u64,
    pub elapsed: Duration,
}

/// Of a time, in milliseconds.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

impl Run {
    /// The lines after those of the plan.
    pub fn lines(self, options: ExplainOptions) -> Vec<String> {
        let mut lines = vec![format!("Rows: {}", self.rows)];
        lines.extend(self.time(options));
        lines
    }

    /// How long it took, as far as that is asked for.
    pub fn time(self, options: ExplainOptions) -> Option<String> {
        is_summed_up(options).then(|| format!("Execution Time: {:.3} ms", milliseconds(self.elapsed)))
    }

    /// What a document says of the whole, where no node is told.
    pub fn properties(self, options: ExplainOptions) -> Properties {
        let mut whole = Properties::new();
        add(&mut whole, "Actual Rows", self.rows);
        if is_summed_up(options) {
            add(&mut whole, "Execution Time", Value::decimal(milliseconds(self.elapsed), 3));
        }
        whole
    }

    /// What is told of the node at the top where it was not counted.
    pub(super) fn of_top(self, answers_nothing: bool) -> Figures {
        let rows = if answers_nothing { 0 } else { self.rows };
        let time = milliseconds(self.elapsed);
        Figures { startup: time, total: time, rows, loops: 1 }
    }
}

/// What a node has done in a run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    loops: AtomicU64,
    rows: AtomicU64,
    /// Until the first row of each loop, and for all that the node did itself and had done below it: in
    /// nanoseconds.
    startup: AtomicU64,
    total: AtomicU64,
}

/// The same as the plan and the node that runs share it.
#[derive(Clone, Debug)]
pub struct WatchedBy(pub(crate) Arc<Watch>);

impl PartialEq for WatchedBy {
    fn eq(&self, other: &WatchedBy) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for WatchedBy {}

/// What is told of a node: of a loop on average, and how many there were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    startup: f64,
    total: f64,
    rows: u64,
    pub(super) loops: u64,
}

impl Watch {
    /// Before a run: another one may have been undone.
    pub fn reset(&self) {
        for figure in [&self.loops, &self.rows, &self.startup, &self.total] {
            figure.store(0, Ordering::Relaxed);
        }
    }

    /// One loop more.
    pub fn add(&self, rows: u64, startup: Duration, total: Duration) {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.loops.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.startup.fetch_add(nanoseconds(startup), Ordering::Relaxed);
        self.total.fetch_add(nanoseconds(total), Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> Figures {
        let loops = self.loops.load(Ordering::Relaxed);
        let mean = |figure: &AtomicU64| figure.load(Ordering::Relaxed) as f64 / loops.max(1) as f64;
        Figures {
            startup: mean(&self.startup) / 1e6,
            total: mean(&self.total) / 1e6,
            rows: mean(&self.rows).round_ties_even() as u64,
            loops,
        }
    }
}

impl Figures {
    /// `(actual time=0.010..0.012 rows=3 loops=1)`.
    pub fn text(self, options: ExplainOptions) -> String {
        if self.loops == 0 {
            return "(never executed)".to_owned();
        }
        let time = match options.timing {
            Some(false) => String::new(),
            _ => format!("time={:.3}..{:.3} ", self.startup, self.total),
        };
        format!("(actual {time}rows={} loops={})", self.rows, self.loops)
    }

    /// Adds what a node of a plan did to what is told of it.
    pub fn add_to(self, own: &mut Properties, options: ExplainOptions) {
        if options.timing != Some(false) {
            add(own, "Actual Startup Time", Value::decimal(self.startup, 3));
            add(own, "Actual Total Time", Value::decimal(self.total, 3));
        }
        add(own, "Actual Rows", self.rows);
        add(own, "Actual Loops", self.loops);
    }
}

/// SUMMARY is on with ANALYZE unless it is said not to be.
pub(super) fn is_summed_up(options: ExplainOptions) -> bool {
    options.summary.unwrap_or(options.analyze)
}
