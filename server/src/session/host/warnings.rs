//! What functions of a statement warn of, to be told after it.

use std::sync::atomic::{AtomicBool, Ordering};

use archipel_sql::error::SqlError;
use parking_lot::Mutex;

/// A statement warns so often: a query may ask for ever more sessions that are not there.
const WARNINGS_MAX: usize = 10_000;

/// See the module. Hardly any statement has one, and every statement looks.
#[derive(Default)]
pub struct Warnings {
    any: AtomicBool,
    said: Mutex<Vec<SqlError>>,
}

impl Warnings {
    /// Warns, if that was not done too often already.
    pub fn add(&self, warning: SqlError) {
        let mut said = self.said.lock();
        if said.len() < WARNINGS_MAX {
            said.push(warning);
        }
        self.any.store(true, Ordering::Release);
    }

    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Takes them out. The statement has ended by then, or not begun: nobody adds any.
    pub fn take(&self) -> Vec<SqlError> {
        if self.is_empty() {
            return Vec::new();
        }
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.said.lock())
    }
}
