//! How long a statement takes, as far as others on its thread must know.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Replies of others may wait for a statement that takes no longer than this.
const QUICK_MAX: Duration = Duration::from_micros(200);

/// Whether a statement's last run was quick; before the first one it was not.
#[derive(Debug, Default)]
pub struct Pace {
    quick: AtomicBool,
}

impl Pace {
    pub fn is_quick(&self) -> bool {
        self.quick.load(Ordering::Relaxed)
    }

    /// Notes how long a run took.
    pub fn note(&self, took: Duration) {
        let quick = took <= QUICK_MAX;
        // Written only when it changes: the statement is shared.
        if quick != self.is_quick() {
            self.quick.store(quick, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_tells_the_pace() {
        let pace = Pace::default();
        assert!(!pace.is_quick());
        pace.note(Duration::from_micros(30));
        assert!(pace.is_quick());
        pace.note(Duration::from_millis(3));
        assert!(!pace.is_quick());
    }
}
