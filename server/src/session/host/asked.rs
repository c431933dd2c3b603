//! What functions of a statement ask for beside it, to be done once it has succeeded.

use std::sync::atomic::{AtomicBool, Ordering};

use archipel_engine::Repartition;
use archipel_planner::ddl::DistributionCall;
use archipel_sql::error::SqlError;
use parking_lot::Mutex;

/// A statement warns so often: a query may ask for ever more sessions that are not there.
const WARNINGS_MAX: usize = 10_000;

/// A change of a setting asked for by a function.
#[derive(Clone, Debug)]
pub struct PendingSetting {
    pub name: String,
    pub value: String,
    pub local: bool,
}

/// All that was asked for.
#[derive(Default)]
pub struct Requests {
    pub settings: Vec<PendingSetting>,
    /// Distribution functions that were called, to be run as definitions.
    pub definitions: Vec<DistributionCall>,
    pub repartitions: Vec<Repartition>,
    /// The configuration is to be read again.
    pub reload: bool,
    /// To be told.
    pub warnings: Vec<SqlError>,
}

impl Requests {
    /// Warns, if that was not done too often already.
    pub fn warn(&mut self, warning: SqlError) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        }
    }
}

/// See the module. Hardly any statement asks for something, and every statement looks, several times: without a
/// lock as long as nobody has asked.
#[derive(Default)]
pub struct Asked {
    any: AtomicBool,
    requests: Mutex<Requests>,
}

impl Asked {
    /// Notes what is asked for. From any thread that works for the statement.
    pub fn note(&self, note: impl FnOnce(&mut Requests)) {
        note(&mut self.requests.lock());
        self.any.store(true, Ordering::Release);
    }

    /// Whether nothing has been asked for.
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// What is known of all that was asked for; the default where that is nothing.
    pub fn look<T: Default>(&self, look: impl FnOnce(&Requests) -> T) -> T {
        if self.is_empty() { T::default() } else { look(&self.requests.lock()) }
    }

    /// Takes all of it. The statement has ended by then, or not begun: nobody asks for more.
    pub fn take(&self) -> Requests {
        if self.is_empty() {
            return Requests::default();
        }
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.requests.lock())
    }

    /// Takes the settings, which take hold before the rest is done.
    pub fn take_settings(&self) -> Vec<PendingSetting> {
        if self.is_empty() { Vec::new() } else { std::mem::take(&mut self.requests.lock().settings) }
    }

    /// Takes back all settings but the first `kept`.
    pub fn undo_settings(&self, kept: usize) {
        if !self.is_empty() {
            self.requests.lock().settings.truncate(kept);
        }
    }
}
