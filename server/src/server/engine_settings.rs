//! The engine's configuration, as the server's settings ask for it; what a server does not start with.

use std::path::PathBuf;
use std::time::Duration;

use archipel_engine::log::store::StoreError;
use archipel_engine::topology::Topology;
use archipel_engine::{EngineConfig, MonitorSettings, OpenError};

use crate::catalog::CatalogError;
use crate::config::Config;
use crate::listen::ListenError;
use crate::tls::{self, TlsError};
use crate::topology::AskedFor;

/// Why a server did not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("the data directory {} is in use by another server{}", directory.display(), owner.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    DirectoryInUse { directory: PathBuf, owner: Option<u32> },
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    NewerFormat(String),
    /// Settings, or the files that they name, that no server starts with.
    #[error("{0}")]
    Configuration(String),
    #[error("{0}")]
    Other(String),
}

impl From<TlsError> for StartError {
    fn from(error: TlsError) -> StartError {
        StartError::Configuration(error.to_string())
    }
}

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> StartError {
        match error {
            StoreError::InUse { path, owner } => StartError::DirectoryInUse { directory: path, owner },
            StoreError::Damaged(_) => StartError::Damaged(error.to_string()),
            StoreError::NewerFormat { .. } => StartError::NewerFormat(error.to_string()),
            other => StartError::Other(other.to_string()),
        }
    }
}

impl From<OpenError> for StartError {
    fn from(error: OpenError) -> StartError {
        match error {
            OpenError::Store(error) => error.into(),
            error @ (OpenError::Definition { .. } | OpenError::Index { .. }) => {
                StartError::Damaged(error.to_string())
            }
            error => StartError::Other(error.to_string()),
        }
    }
}

impl From<CatalogError> for StartError {
    fn from(error: CatalogError) -> StartError {
        match error {
            CatalogError::Newer(_) => StartError::NewerFormat(error.to_string()),
            CatalogError::Damaged(_) | CatalogError::Contradicts(_) => StartError::Damaged(error.to_string()),
            CatalogError::Migration(_) => StartError::Other(error.to_string()),
        }
    }
}

pub(super) fn engine_config(config: &Config, topology: &AskedFor) -> Result<EngineConfig, StartError> {
    let machine = topology.read().map_err(|error| StartError::Other(error.to_string()))?;
    let mut engine = EngineConfig {
        executors: machine.executors(),
        executors_max: topology.executors_max(&machine),
        max_memory_bytes: config.integer("max_memory"),
        version_memory_max_bytes: config.integer("archipel.max_version_memory"),
        one_shot_budget_micros: config.integer("archipel.one_shot_budget") as u64 * 1_000,
        split_rows: config.integer("archipel.partition_rows_max") as u64,
        checkpoint_bytes: config.integer("archipel.checkpoint_bytes") as u64,
        restart_target: Duration::from_secs(config.integer("archipel.restart_target") as u64),
        monitor: monitor_settings(config)?,
        data_directory: Some(config.data_directory.clone()),
        ..EngineConfig::default()
    };
    engine.log.asynchronous_delay = Duration::from_millis(config.integer("wal_writer_delay") as u64);
    Ok(engine)
}

/// Whether a server would start with this configuration, as far as that can be told beforehand.
pub fn check_config(config: &Config) -> Result<(), StartError> {
    check_connections(config)?;
    tls::check_settings(config)?;
    engine_config(config, &asked_for(config)?).map(drop)
}

/// Whether places are left for those who are no superusers.
pub(super) fn check_connections(config: &Config) -> Result<(), StartError> {
    let (reserved, all) =
        (config.integer("superuser_reserved_connections"), config.integer("max_connections"));
    if reserved < all {
        return Ok(());
    }
    let message =
        format!("superuser_reserved_connections ({reserved}) must be less than max_connections ({all})");
    Err(StartError::Other(message))
}

/// The machine that the settings ask for.
pub(super) fn asked_for(config: &Config) -> Result<AskedFor, StartError> {
    AskedFor::new(
        config.text("archipel.topology"),
        config.text("archipel.island"),
        config.integer("archipel.executors") as usize,
    )
    .map_err(|error| StartError::Other(error.to_string()))
}

/// The monitor's thresholds.
pub(super) fn monitor_settings(config: &Config) -> Result<MonitorSettings, StartError> {
    let nanos = |name: &str| config.integer(name) as u64 * 1_000_000;
    let settings = MonitorSettings {
        measures: config.boolean("archipel.monitor"),
        adapts: config.boolean("archipel.adaptive"),
        sample_interval_nanos: nanos("archipel.adaptive_sample_interval"),
        interval_min_nanos: nanos("archipel.adaptive_interval_min"),
        interval_max_nanos: nanos("archipel.adaptive_interval_max"),
        deviation: config.real("archipel.adaptive_deviation"),
        imbalance: config.real("archipel.adaptive_imbalance"),
        mix_shift: config.real("archipel.adaptive_mix_shift"),
        gain_min: config.real("archipel.adaptive_gain_min"),
        samples_min: config.integer("archipel.adaptive_samples_min") as u64,
        confidence: config.real("archipel.adaptive_confidence"),
        hot_key_share: config.real("archipel.adaptive_hot_key_share"),
        partitions_per_executor_max: config.integer("archipel.adaptive_partitions_max") as usize,
        action_delay_nanos: nanos("archipel.adaptive_action_delay"),
        measures_cores: config.boolean("archipel.core_speeds"),
        core_interval_nanos: nanos("archipel.core_speed_interval"),
        memory_follows: config.boolean("archipel.memory_follows"),
        memory_follow_bytes: config.integer("archipel.memory_follow_size") as usize,
        memory_follow_delay_nanos: nanos("archipel.memory_follow_delay"),
    };
    if settings.interval_min_nanos > settings.interval_max_nanos {
        return Err(StartError::Other(
            "archipel.adaptive_interval_min must not be greater than archipel.adaptive_interval_max".into(),
        ));
    }
    Ok(settings)
}
