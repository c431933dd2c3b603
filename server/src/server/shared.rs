//! What all threads of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use archipel_analytics::Analytics;
use archipel_engine::Engine;
use archipel_engine::id::Epoch;

use super::engine_settings::{check_config, monitor_settings};
use super::snapshot_export::ExportedSnapshots;
use crate::authentication::rules::{Rules, Sources};
use crate::authentication::state::{self, Authentication};
use crate::catalog::CatalogState;
use crate::config::Config;
use crate::database::Databases;
use crate::front::Doors;
use crate::http::token::Token;
use crate::replies::Durability;
use crate::server::row_places::RowPlaces;
use crate::sessions::Sessions;
use crate::settings::live::Live;
use crate::settings::value::Value;
use crate::statement::planning_threads::PlanningThreads;
use crate::threads::Threads;
use crate::tls::ServerTls;
use crate::transaction_ids::TransactionIds;

/// What all threads of a server share.
pub struct Server {
    /// As of the start; what may change since is in `live`.
    pub config: Config,
    pub live: Live,
    pub authentication: Authentication,
    pub engine: Engine,
    pub databases: Databases,
    pub sessions: Arc<Sessions>,
    pub transaction_ids: Arc<TransactionIds>,
    pub row_places: Arc<RowPlaces>,
    pub exported: ExportedSnapshots,
    pub doors: Arc<Doors>,
    pub started: Instant,
    pub started_at: i64,
    /// What the values of a statement's routines may take, in bytes.
    pub statement_memory_max: i64,
    /// Transactions and statements that have ended well, by executor.
    pub counters: Vec<Counters>,
    pub closing: Arc<AtomicBool>,
    pub tls: Arc<ServerTls>,
    pub http_token: ArcSwapOption<Token>,
    /// The thread of the front door, and timers.
    pub front: tokio::runtime::Handle,
    pub analytics: Analytics,
    /// Niced threads of what analytical queries compute together, and of the server's own work.
    pub analytical_threads: tokio::runtime::Handle,
    /// Niced threads, one for each analytical query and for each long text that is planned: they take what
    /// transactions leave.
    pub niced: Threads,
    /// Threads for whatever waits for a disk.
    pub waiting: Threads,
    /// Niced threads too, for long texts.
    pub planning: PlanningThreads,
}

/// One executor's counters, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
pub struct Counters {
    pub statements: std::sync::atomic::AtomicU64,
    pub errors: std::sync::atomic::AtomicU64,
    /// Statements asked for that one cache or the other of prepared statements could hold.
    pub statements_sought: std::sync::atomic::AtomicU64,
    /// Those of them that were found by their text.
    pub found_by_text: std::sync::atomic::AtomicU64,
    /// Those that were found by their shape: another statement's but for the literals.
    pub found_by_shape: std::sync::atomic::AtomicU64,
}

impl Server {
    /// Reads the configuration again and takes up what does not need a restart. `false`: a source
    /// cannot be used, and everything stays as it is. Reads files.
    pub fn reload(&self) -> bool {
        let read = || -> Result<_, String> {
            let config = self.config.reload().map_err(|error| error.to_string())?;
            check_config(&config).map_err(|error| error.to_string())?;
            let monitor = monitor_settings(&config).map_err(|error| error.to_string())?;
            // Where they are does not change while the server runs.
            let sources = Sources::of(&self.config, config.boolean("ssl"));
            self.authentication.set_rules(Rules::read(&sources)?);
            self.engine.set_monitor(monitor);
            self.tls.reload(&config);
            match Token::read(&config) {
                Ok(token) => self.http_token.store(token.map(Arc::new)),
                Err(error) => tracing::error!("{error}"),
            }
            Ok(config.values)
        };
        match self.live.reload(read) {
            Ok(waiting) => {
                for name in waiting {
                    tracing::warn!("parameter \"{name}\" cannot be changed without restarting the server");
                }
                self.databases.all().iter().for_each(|database| database.catalog.note_change());
                tracing::info!("the configuration was read again");
                true
            }
            Err(error) => {
                tracing::error!(%error, "the configuration was not changed");
                false
            }
        }
    }

    /// Statements that have ended well, on all executors.
    pub fn statements(&self) -> u64 {
        self.counters.iter().map(|counters| counters.statements.load(Ordering::Relaxed)).sum()
    }
}

impl state::Host for Server {
    fn catalog(&self) -> Option<Arc<CatalogState>> {
        self.databases.catalog_of_roles()
    }

    fn settings(&self) -> Arc<Vec<Value>> {
        self.live.values()
    }

    fn authentication(&self) -> &Authentication {
        &self.authentication
    }
}

/// The engine's durability, as replies see it.
pub struct EngineDurability(pub Engine);

impl Durability for EngineDurability {
    fn is_durable(&self, epoch: Epoch) -> bool {
        epoch.0 == 0 || self.0.is_durable(epoch)
    }

    async fn durable(&self, epoch: Epoch) {
        if !self.0.durable(epoch).await {
            // The log has failed: nothing is acknowledged any more. The engine ends the process.
            std::future::pending::<()>().await;
        }
    }
}
