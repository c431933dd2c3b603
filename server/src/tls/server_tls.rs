//! The TLS of a server as it is in force, from the start on and after reloads.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use archipel_engine::heap;
use tokio::sync::Semaphore;

use super::context::{self, Moment, TlsContext};
use super::error::TlsError;
use crate::config::Config;
use crate::threads::Threads;

/// Handshakes that compute at once, at most.
const HANDSHAKES_MAX: usize = 8;

/// See the module's head.
pub struct ServerTls {
    /// `None`: it is off.
    now: ArcSwapOption<TlsContext>,
    /// Room for handshakes that compute.
    computing: Arc<Semaphore>,
    /// Where they do.
    threads: Threads,
}

/// It is off.
impl Default for ServerTls {
    fn default() -> ServerTls {
        ServerTls::with(None, 1)
    }
}

impl ServerTls {
    /// As a start's configuration says it. Reads files.
    pub fn start(config: &Config) -> Result<ServerTls, TlsError> {
        check_settings(config)?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(ServerTls::with(context::read(config, Moment::Start)?, cores.div_ceil(2).min(HANDSHAKES_MAX)))
    }

    fn with(context: Option<TlsContext>, handshakes_max: usize) -> ServerTls {
        ServerTls {
            now: ArcSwapOption::from(context.map(Arc::new)),
            computing: Arc::new(Semaphore::new(handshakes_max)),
            threads: Threads::new("handshake", heap::settle_at_end),
        }
    }

    /// As a reload's configuration says it; the old one stays if that cannot be. Reads files.
    pub fn reload(&self, config: &Config) {
        match context::read(config, Moment::Reload) {
            Ok(context) => self.now.store(context.map(Arc::new)),
            Err(error) => {
                tracing::error!("{error}");
                tracing::error!("SSL configuration was not reloaded");
            }
        }
    }

    /// What new connections are encrypted with; `None`: TLS is off.
    pub fn context(&self) -> Option<Arc<TlsContext>> {
        self.now.load_full()
    }

    /// Computes a step of a handshake on a thread of its own, when it is its turn in the order in which
    /// they ask; why not, if that cannot be.
    pub(super) async fn compute<T: Send + 'static>(
        &self,
        step: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let room = self.computing.clone().acquire_owned().await.map_err(|error| error.to_string())?;
        // A client that goes meanwhile gives its room back when the step is done, and no sooner.
        let step = move || {
            let _room = room;
            step()
        };
        let computed = self.threads.begin(step).map_err(|error| error.to_string())?;
        computed.await.map_err(|error| error.to_string())
    }
}

/// Whether the settings that name no files can be honoured.
pub fn check_settings(config: &Config) -> Result<(), TlsError> {
    context::versions(config)?;
    context::provider(config).map(drop)
}
