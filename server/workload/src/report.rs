//! Latency histograms, the live line, the final table and its JSON form.

use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::error::Result;
use crate::workload::Call;

/// Counts and latencies of one kind of call.
#[derive(Clone)]
pub struct CallFigures {
    pub committed: u64,
    /// Failures the workload's specification provides for (TPC-C's unused item, TATP's misses).
    pub rejected: u64,
    pub errors: u64,
    /// Microseconds, committed and rejected calls.
    latency: Histogram<u64>,
}

impl CallFigures {
    fn new() -> Self {
        let latency =
            Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are constants in order");
        CallFigures { committed: 0, rejected: 0, errors: 0, latency }
    }
}

/// Figures of a run, or of one connection of it.
#[derive(Clone)]
pub struct Figures {
    pub calls: Vec<CallFigures>,
    /// The first unexpected error, for the report.
    pub first_error: Option<String>,
}

impl Figures {
    pub fn new(calls: usize) -> Self {
        Figures { calls: vec![CallFigures::new(); calls], first_error: None }
    }

    pub fn record(&mut self, call: usize, micros: u64, failed: Option<[u8; 5]>, expected: bool) {
        let figures = &mut self.calls[call];
        match failed {
            None => figures.committed += 1,
            Some(_) if expected => figures.rejected += 1,
            Some(state) => {
                figures.errors += 1;
                let text = String::from_utf8_lossy(&state).into_owned();
                self.first_error.get_or_insert(text);
                return;
            }
        }
        figures.latency.saturating_record(micros.max(1));
    }

    pub fn merge(&mut self, other: &Figures) {
        for (mine, theirs) in self.calls.iter_mut().zip(&other.calls) {
            mine.committed += theirs.committed;
            mine.rejected += theirs.rejected;
            mine.errors += theirs.errors;
            mine.latency.add(&theirs.latency).expect("all histograms have the same bounds");
        }
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
    }

    pub fn committed(&self) -> u64 {
        self.calls.iter().map(|call| call.committed).sum()
    }

    pub fn errors(&self) -> u64 {
        self.calls.iter().map(|call| call.errors).sum()
    }

    fn latency(&self) -> Histogram<u64> {
        let mut all = CallFigures::new().latency;
        for call in &self.calls {
            all.add(&call.latency).expect("all histograms have the same bounds");
        }
        all
    }

    /// One line a second while a run goes on.
    pub fn live_line(&self, second: u64, elapsed: Duration) -> String {
        let latency = self.latency();
        format!(
            "{second:>5} s  {:>9.0} tx/s   p50 {:>6} µs   p95 {:>6} µs   p99 {:>6} µs   errors {}",
            self.committed() as f64 / elapsed.as_secs_f64(),
            latency.value_at_quantile(0.50),
            latency.value_at_quantile(0.95),
            latency.value_at_quantile(0.99),
            self.errors(),
        )
    }

    /// The table at the end.
    pub fn table(&self, calls: &[Call], elapsed: Duration) -> String {
        let mut out = format!(
            "{:<24} {:>10} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9}\n",
            "transaction", "committed", "rejected", "errors", "p50 µs", "p95 µs", "p99 µs", "max µs"
        );
        for (call, figures) in calls.iter().zip(&self.calls) {
            let latency = &figures.latency;
            out += &format!(
                "{:<24} {:>10} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9}\n",
                call.name,
                figures.committed,
                figures.rejected,
                figures.errors,
                latency.value_at_quantile(0.50),
                latency.value_at_quantile(0.95),
                latency.value_at_quantile(0.99),
                latency.max(),
            );
        }
        out += &format!(
            "throughput {:.0} committed transactions a second over {:.1} s\n",
            self.committed() as f64 / elapsed.as_secs_f64(),
            elapsed.as_secs_f64()
        );
        if let Some(state) = &self.first_error {
            out += &format!("first unexpected error: SQLSTATE {state}\n");
        }
        out
    }

    /// The machine-readable form; latencies in microseconds.
    pub fn json(&self, calls: &[Call], elapsed: Duration, run: Value) -> Value {
        let summary = |latency: &Histogram<u64>| {
            json!({
                "p50": latency.value_at_quantile(0.50),
                "p95": latency.value_at_quantile(0.95),
                "p99": latency.value_at_quantile(0.99),
                "max": latency.max(),
            })
        };
        let transactions: serde_json::Map<String, Value> = calls
            .iter()
            .zip(&self.calls)
            .map(|(call, figures)| {
                let mut entry = summary(&figures.latency);
                entry["count"] = json!(figures.committed);
                entry["rejected"] = json!(figures.rejected);
                entry["errors"] = json!(figures.errors);
                (call.name.to_owned(), entry)
            })
            .collect();
        json!({
            "throughput": self.committed() as f64 / elapsed.as_secs_f64(),
            "seconds": elapsed.as_secs_f64(),
            "committed": self.committed(),
            "errors": self.errors(),
            "first_error": self.first_error,
            "latency_us": summary(&self.latency()),
            "transactions": transactions,
            "run": run,
        })
    }
}

/// Writes pretty JSON, whole or not at all.
pub fn write_json(path: &Path, value: &Value) -> Result<()> {
    let partial = path.with_extension("partial");
    std::fs::write(&partial, format!("{value:#}\n"))?;
    std::fs::rename(&partial, path)?;
    Ok(())
}
