//! What SQL functions and system views may ask of the session and the server.
//!
//! A host is made when a session's settings or its catalog change, and shared by the programs
//! it submits, which may run on other threads. Effects on the session (`set_config`) are kept
//! until the statement is over and take hold only if it succeeded.

use std::sync::{Arc, OnceLock};

use archipel_engine::Repartition;
use archipel_planner::ddl::DistributionCall;
use archipel_planner::native::SystemRows;
use archipel_sql::catalog::Table;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{FunctionContext, SessionHost, Style};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::catalog::CatalogState;
use crate::server::Server;
use crate::sessions::SessionEntry;
use crate::settings::session::Effective;

/// What functions keep for a session from one statement to the next.
#[derive(Default)]
pub struct Memory {
    /// `currval`, by sequence.
    pub sequence_values: Mutex<FxHashMap<u32, i64>>,
    /// `lastval`: the sequence used last.
    pub last_sequence: Mutex<Option<u32>>,
}

/// A change of a setting asked for by a function.
#[derive(Clone, Debug)]
pub struct PendingSetting {
    pub name: String,
    pub value: String,
    pub local: bool,
}

/// See the module's head.
pub struct Host {
    pub server: Arc<Server>,
    pub entry: Arc<SessionEntry>,
    pub settings: Arc<Effective>,
    pub catalog: Arc<CatalogState>,
    pub memory: Arc<Memory>,
    pub pending: Arc<Mutex<Vec<PendingSetting>>>,
    /// Distribution functions the statement called, to be run as definitions after it.
    pub pending_definitions: Arc<Mutex<Vec<DistributionCall>>>,
    /// Changes of partitions the statement asked for, likewise.
    pub pending_repartitions: Arc<Mutex<Vec<Repartition>>>,
    /// This host as routines with SET clauses see it.
    pub with_settings: OnceLock<Box<WithSettings>>,
}

/// A host with some settings changed, and the next such: a list that only grows, one entry for
/// each combination of SET clauses that was called.
pub struct WithSettings {
    settings: Vec<(String, String)>,
    host: Host,
    next: OnceLock<Box<WithSettings>>,
}

impl Host {
    /// A program starts (again): what an undone run asked for is forgotten.
    pub fn begin_run(&self) {
        let mut pending = self.pending.lock();
        if !pending.is_empty() {
            pending.clear();
        }
        drop(pending);
        self.pending_definitions.lock().clear();
        self.pending_repartitions.lock().clear();
    }

    /// A context for work outside any transaction: literals, parameters, constant folding.
    pub fn context(&self) -> FunctionContext<'_> {
        FunctionContext { now: crate::server::now(), session: self }
    }
}

impl SessionHost for Host {
    fn style(&self) -> &Style {
        &self.settings.style
    }

    fn clock(&self) -> Option<i64> {
        Some(crate::server::now())
    }

    fn interrupted(&self) -> bool {
        self.entry.is_cancelled()
    }

    fn setting(&self, name: &str) -> Option<String> {
        self.pending
            .lock()
            .iter()
            .rev()
            .find(|pending| pending.name.eq_ignore_ascii_case(name))
            .map(|pending| pending.value.clone())
            .or_else(|| self.server.live.show(name))
            .or_else(|| self.settings.show(name))
    }

    fn with_settings(&self, settings: &[(String, String)]) -> Result<Option<&dyn SessionHost>> {
        let mut place = &self.with_settings;
        loop {
            if let Some(known) = place.get() {
                if known.settings == settings {
                    return Ok(Some(&known.host));
                }
                place = &known.next;
                continue;
            }
            let host = Host {
                server: self.server.clone(),
                entry: self.entry.clone(),
                settings: Arc::new(self.settings.with(settings)?),
                catalog: self.catalog.clone(),
                memory: self.memory.clone(),
                pending: self.pending.clone(),
                pending_definitions: self.pending_definitions.clone(),
                pending_repartitions: self.pending_repartitions.clone(),
                with_settings: OnceLock::new(),
            };
            // Whoever was faster made the same or another; the list is looked through from here.
            let _ = place.set(Box::new(WithSettings {
                settings: settings.to_vec(),
                host,
                next: OnceLock::new(),
            }));
        }
    }

    fn random(&self) -> f64 {
        fastrand::f64()
    }

    fn call(&self, name: &str, args: &[Datum]) -> Result<Datum> {
        crate::functions::call(self, name, args)
    }
}

impl SystemRows for Host {
    fn rows(&self, table: &Table) -> Result<Vec<Vec<Datum>>> {
        crate::system::rows(self, table)
    }
}
