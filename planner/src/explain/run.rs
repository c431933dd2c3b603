//! What EXPLAIN ANALYZE tells of a run.

use std::time::Duration;

use archipel_sql::ast::ExplainOptions;
use serde_json::{Map, Value};

/// A run that came to its end.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Rows answered by a query, written by anything else.
    pub rows: u64,
    pub elapsed: Duration,
}

impl Run {
    /// To the microsecond.
    fn milliseconds(self) -> f64 {
        (self.elapsed.as_secs_f64() * 1_000_000.0).round() / 1_000.0
    }

    /// The lines after those of the plan.
    pub fn lines(self, options: ExplainOptions) -> Vec<String> {
        let mut lines = vec![format!("Rows: {}", self.rows)];
        lines.extend(self.time(options));
        lines
    }

    /// How long it took, as far as that is asked for.
    pub fn time(self, options: ExplainOptions) -> Option<String> {
        is_summed_up(options).then(|| format!("Execution Time: {:.3} ms", self.milliseconds()))
    }

    /// What JSON says of the whole, beside the plan.
    pub fn properties(self, options: ExplainOptions) -> Map<String, Value> {
        let mut whole = Map::new();
        whole.insert("Actual Rows".to_owned(), self.rows.into());
        if is_summed_up(options) {
            whole.insert("Execution Time".to_owned(), self.milliseconds().into());
        }
        whole
    }
}

/// SUMMARY is on with ANALYZE unless it is said not to be.
fn is_summed_up(options: ExplainOptions) -> bool {
    options.summary != Some(false)
}
