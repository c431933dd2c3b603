//! What EXPLAIN ANALYZE tells of a run.

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

    /// What a document says of the node at the top. Times of the nodes below are not taken.
    pub(super) fn of_top(self, own: &mut Properties, answers_nothing: bool, options: ExplainOptions) {
        if options.timing != Some(false) {
            add(own, "Actual Startup Time", Value::decimal(milliseconds(self.elapsed), 3));
            add(own, "Actual Total Time", Value::decimal(milliseconds(self.elapsed), 3));
        }
        add(own, "Actual Rows", if answers_nothing { 0 } else { self.rows });
        add(own, "Actual Loops", 1u64);
    }
}

/// SUMMARY is on with ANALYZE unless it is said not to be.
pub(super) fn is_summed_up(options: ExplainOptions) -> bool {
    options.summary.unwrap_or(options.analyze)
}
