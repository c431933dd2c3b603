//! What an experiment was to show, and whether it did.

use serde_json::{Value, json};

/// The targets of one experiment, as they were met or missed.
#[derive(Default)]
pub struct Verdicts(Vec<Value>);

impl Verdicts {
    /// Prints and keeps whether a target was met; `found` says by how much.
    pub fn judge(&mut self, target: &str, found: &str, met: bool) {
        println!("target: {target}: {found}: {}", if met { "met" } else { "MISSED" });
        self.0.push(json!({ "target": target, "found": found, "met": met }));
    }

    /// A target for the least of some numbers, of which there may be none.
    pub fn at_least(&mut self, target: &str, least: f64, numbers: &[f64]) {
        self.each(target, numbers, f64::min, |number| number >= least);
    }

    /// A target for the greatest of some numbers, of which there may be none.
    pub fn at_most(&mut self, target: &str, most: f64, numbers: &[f64]) {
        self.each(target, numbers, f64::max, |number| number <= most);
    }

    fn each(
        &mut self,
        target: &str,
        numbers: &[f64],
        worst: impl Fn(f64, f64) -> f64,
        met: impl Fn(f64) -> bool,
    ) {
        match numbers.iter().copied().reduce(worst) {
            Some(number) => {
                self.judge(target, &format!("{number:.3} of {} at worst", numbers.len()), met(number));
            }
            None => println!("target: {target}: there was nothing to measure"),
        }
    }

    /// For the file.
    pub fn told(&self) -> Value {
        Value::Array(self.0.clone())
    }
}
