//! Settings that change while the server runs: ALTER SYSTEM writes them into a file of the data
//! directory, and pg_reload_conf() or SIGHUP takes them up, as in PostgreSQL: those of the server
//! at once, those of sessions in each when it is between two transactions and has not set them
//! itself. What needs a restart is marked as pending (`pg_settings.pending_restart`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archipel_sql::error::{Result, SqlError, SqlState};
use parking_lot::{Mutex, RwLock};

use super::session::canonical;
use super::table::{Context, SettingId, find};
use super::value::Value;

/// The file that ALTER SYSTEM writes. It is read after the configuration file, and before the
/// environment and the command line.
pub const AUTO_FILE: &str = "archipel.auto.toml";

/// The server's values, as of the last reload.
pub struct Live {
    /// Counts reloads, for sessions to see that there was one.
    version: AtomicU64,
    values: RwLock<Arc<Vec<Value>>>,
    /// What a reload found changed and could not take up.
    pending: RwLock<Vec<SettingId>>,
    /// One change of the file after another.
    file: Mutex<()>,
}

impl Live {
    pub fn new(values: Arc<Vec<Value>>) -> Live {
        Live {
            version: AtomicU64::new(0),
            values: RwLock::new(values),
            pending: RwLock::default(),
            file: Mutex::default(),
        }
    }

    /// Moves with every reload.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// What new sessions begin with.
    pub fn values(&self) -> Arc<Vec<Value>> {
        self.values.read().clone()
    }

    /// Takes up what a reload found; what needs a restart stays, and is told by name.
    pub fn take_up(&self, found: &[Value]) -> Vec<&'static str> {
        let mut values = self.values.write();
        let mut pending = Vec::new();
        let mut taken = Vec::with_capacity(found.len());
        for (at, (now, found)) in values.iter().zip(found).enumerate() {
            let id = SettingId(at);
            taken.push(match id.setting().context {
                Context::User | Context::Reload => found.clone(),
                Context::Internal | Context::Server => now.clone(),
            });
            if id.setting().context == Context::Server && found != now {
                pending.push(id);
            }
        }
        *values = Arc::new(taken);
        let names = pending.iter().map(|id| id.setting().name).collect();
        *self.pending.write() = pending;
        self.version.fetch_add(1, Ordering::Release);
        names
    }

    /// Whether a change of this setting waits for a restart.
    pub fn is_pending(&self, id: SettingId) -> bool {
        self.pending.read().contains(&id)
    }

    /// What SHOW answers for a setting that is the same in all sessions and may change.
    pub fn show(&self, name: &str) -> Option<String> {
        let id = find(name)?;
        let setting = id.setting();
        (setting.context == Context::Reload).then(|| setting.kind.show(&self.values.read()[id.0]))
    }

    /// ALTER SYSTEM SET `name` to `text`, or back to what the other sources say.
    pub fn alter(&self, data_directory: &Path, name: &str, text: Option<&str>) -> Result<()> {
        let _one_at_a_time = self.file.lock();
        alter(data_directory, name, text)
    }

    /// ALTER SYSTEM RESET ALL.
    pub fn reset_all(&self, data_directory: &Path) -> Result<()> {
        let _one_at_a_time = self.file.lock();
        write(&data_directory.join(AUTO_FILE), &toml::Table::new())
    }
}

fn alter(data_directory: &Path, name: &str, text: Option<&str>) -> Result<()> {
    let Some(id) = find(name) else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        ));
    };
    let setting = id.setting();
    if setting.context == Context::Internal || setting.name == "data_directory" {
        return Err(SqlError::new(
            SqlState::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{}\" cannot be changed", setting.name),
        ));
    }
    let path = data_directory.join(AUTO_FILE);
    let mut table = read(&path)?;
    match text {
        Some(text) => {
            // The files know a time zone or a date style by its full name only.
            let text = match canonical(id, text)? {
                Value::Text(text) => text,
                _ => text.to_owned(),
            };
            table.insert(setting.name.to_owned(), toml::Value::String(text));
        }
        None => {
            table.remove(setting.name);
        }
    }
    write(&path, &table)
}

fn failed(path: &Path, what: &str, reason: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlState::IO_ERROR, format!("could not {what} file \"{}\": {reason}", path.display()))
}

fn read(path: &Path) -> Result<toml::Table> {
    match std::fs::read_to_string(path) {
        Ok(text) => text.parse().map_err(|error: toml::de::Error| failed(path, "parse", error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(toml::Table::new()),
        Err(error) => Err(failed(path, "read", error)),
    }
}

/// Writes a new file beside the old one and puts it in its place, so that a crash leaves either.
fn write(path: &Path, table: &toml::Table) -> Result<()> {
    let text = toml::to_string(table).map_err(|error| failed(path, "write", error))?;
    let beside: PathBuf = path.with_extension("toml.tmp");
    let write = || -> std::io::Result<()> {
        std::fs::write(&beside, format!("# Written by ALTER SYSTEM; changes by hand are lost.\n{text}"))?;
        std::fs::File::open(&beside)?.sync_all()?;
        std::fs::rename(&beside, path)?;
        path.parent().map_or(Ok(()), |folder| std::fs::File::open(folder)?.sync_all())
    };
    write().map_err(|error| failed(path, "write", error))
}

#[cfg(test)]
mod tests {
    use super::super::session::defaults;
    use super::*;

    #[test]
    fn what_is_altered_is_written_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let live = Live::new(Arc::new(defaults()));
        let text = || std::fs::read_to_string(folder.path().join(AUTO_FILE)).unwrap();
        let alter = |name, text| live.alter(folder.path(), name, text).unwrap();
        alter("Archipel.Adaptive", Some("off"));
        alter("work_mem", Some("8MB"));
        alter("timezone", Some("europe/berlin"));
        assert!(text().contains("\"archipel.adaptive\" = \"off\"") && text().contains("work_mem = \"8MB\""));
        assert!(text().contains("TimeZone = \"Europe/Berlin\""), "{}", text());
        alter("work_mem", None);
        assert!(!text().contains("work_mem"));
        live.reset_all(folder.path()).unwrap();
        assert!(!text().contains("adaptive"));
    }

    #[test]
    fn what_cannot_be_is_refused_and_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let live = Live::new(Arc::new(defaults()));
        let state = |name, text| live.alter(folder.path(), name, Some(text)).unwrap_err().state();
        assert_eq!(state("nonsense", "1"), SqlState::UNDEFINED_OBJECT);
        assert_eq!(state("server_version", "1"), SqlState::CANT_CHANGE_RUNTIME_PARAM);
        assert_eq!(state("archipel.adaptive_imbalance", "1000"), SqlState::INVALID_PARAMETER_VALUE);
        assert!(!folder.path().join(AUTO_FILE).exists());
    }

    #[test]
    fn what_needs_a_restart_waits_for_it_until_it_is_taken_back() {
        let before = defaults();
        let live = Live::new(Arc::new(before.clone()));
        let (restart, at_once) = (find("max_connections").unwrap(), find("archipel.adaptive").unwrap());
        let mut found = before.clone();
        found[restart.0] = Value::Integer(7);
        found[at_once.0] = Value::Bool(false);
        assert_eq!(live.take_up(&found), ["max_connections"]);
        assert!(live.is_pending(restart) && !live.is_pending(at_once));
        assert_eq!(live.values()[restart.0], before[restart.0]);
        assert_eq!(live.values()[at_once.0], Value::Bool(false));
        assert_eq!(live.take_up(&before), [""; 0]);
        assert!(!live.is_pending(restart));
    }
}
