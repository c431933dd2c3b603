//! Settings that change while the server runs: ALTER SYSTEM writes them into a file of the data
//! directory, and pg_reload_conf() or SIGHUP takes them up, as in PostgreSQL: those of the server
//! at once, those of sessions in each when it is between two transactions and has not set them
//! itself. What needs a restart is marked as pending (`pg_settings.pending_restart`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use archipel_sql::error::{Result, SqlError, SqlState};
use parking_lot::Mutex;

use super::session::canonical;
use super::table::{Context, SettingId, find};
use super::value::Value;

/// The file that ALTER SYSTEM writes. It is read after the configuration file, and before the
/// environment and the command line.
pub const AUTO_FILE: &str = "archipel.auto.toml";

/// The server's values, as of the last reload.
pub struct Live {
    /// All of one reload together.
    now: ArcSwap<Reloaded>,
    /// One reload after another, from reading the files to taking them up: what was read last
    /// stands.
    reloads: Mutex<()>,
    /// One change of the file after another.
    file: Mutex<()>,
}

/// What a reload left behind.
pub struct Reloaded {
    /// Moves with every reload, for sessions to see that there was one.
    pub version: u64,
    /// What new sessions begin with.
    pub values: Arc<Vec<Value>>,
    /// What was found changed and could not be taken up.
    pending: Vec<SettingId>,
}

impl Live {
    pub fn new(values: Arc<Vec<Value>>) -> Live {
        Live {
            now: ArcSwap::from_pointee(Reloaded { version: 0, values, pending: Vec::new() }),
            reloads: Mutex::default(),
            file: Mutex::default(),
        }
    }

    /// The newest reload.
    pub fn now(&self) -> Arc<Reloaded> {
        self.now.load_full()
    }

    /// Which reload that is.
    pub fn version(&self) -> u64 {
        self.now.load().version
    }

    /// What new sessions begin with.
    pub fn values(&self) -> Arc<Vec<Value>> {
        self.now.load().values.clone()
    }

    /// Reads the sources anew and takes up what they say, with nobody else doing so in between;
    /// `read` may take up more on the way. What needs a restart stays, and is told by name.
    pub fn reload<E>(
        &self,
        read: impl FnOnce() -> std::result::Result<Arc<Vec<Value>>, E>,
    ) -> std::result::Result<Vec<&'static str>, E> {
        let _one_after_another = self.reloads.lock();
        Ok(self.take_up(&read()?))
    }

    fn take_up(&self, found: &[Value]) -> Vec<&'static str> {
        let before = self.now.load();
        let mut pending = Vec::new();
        let mut taken = Vec::with_capacity(found.len());
        for (at, (now, found)) in before.values.iter().zip(found).enumerate() {
            let id = SettingId(at);
            taken.push(match id.setting().context {
                Context::User | Context::Superuser | Context::SuperuserBackend | Context::Reload => {
                    found.clone()
                }
                Context::Internal | Context::Server => now.clone(),
            });
            if id.setting().context == Context::Server && found != now {
                pending.push(id);
            }
        }
        let names = pending.iter().map(|id| id.setting().name).collect();
        let version = before.version + 1;
        self.now.store(Arc::new(Reloaded { version, values: Arc::new(taken), pending }));
        names
    }

    /// Whether a change of this setting waits for a restart.
    pub fn is_pending(&self, id: SettingId) -> bool {
        self.now.load().pending.contains(&id)
    }

    /// What SHOW answers for a setting that is the same in all sessions and may change.
    pub fn show(&self, name: &str) -> Option<String> {
        let id = find(name)?;
        let setting = id.setting();
        (setting.context == Context::Reload).then(|| setting.kind.show(&self.now.load().values[id.0]))
    }

    /// ALTER SYSTEM SET `name` to `text`, or back to what the other sources say; `starts` says why a
    /// server would not start with what would then be in the file.
    pub fn alter(
        &self,
        data_directory: &Path,
        name: &str,
        text: Option<&str>,
        starts: &dyn Fn(&toml::Table) -> std::result::Result<(), String>,
    ) -> Result<()> {
        let _one_at_a_time = self.file.lock();
        alter(data_directory, name, text, starts)
    }

    /// ALTER SYSTEM RESET ALL.
    pub fn reset_all(&self, data_directory: &Path) -> Result<()> {
        let _one_at_a_time = self.file.lock();
        write(&data_directory.join(AUTO_FILE), &toml::Table::new())
    }
}

fn alter(
    data_directory: &Path,
    name: &str,
    text: Option<&str>,
    starts: &dyn Fn(&toml::Table) -> std::result::Result<(), String>,
) -> Result<()> {
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
    // Each value may be fine, and all of them together not.
    starts(&table).map_err(|reason| {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{}\": the server would not start with it", setting.name),
        )
        .with_detail(reason)
    })?;
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
        let alter = |name, text| live.alter(folder.path(), name, text, &|_| Ok(())).unwrap();
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
        let state =
            |name, text| live.alter(folder.path(), name, Some(text), &|_| Ok(())).unwrap_err().state();
        assert_eq!(state("nonsense", "1"), SqlState::UNDEFINED_OBJECT);
        assert_eq!(state("server_version", "1"), SqlState::CANT_CHANGE_RUNTIME_PARAM);
        assert_eq!(state("archipel.adaptive_imbalance", "1000"), SqlState::INVALID_PARAMETER_VALUE);
        assert!(!folder.path().join(AUTO_FILE).exists());
    }

    #[test]
    fn what_no_server_starts_with_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let live = Live::new(Arc::new(defaults()));
        let two = |table: &toml::Table| if table.len() < 2 { Ok(()) } else { Err("two are too many".into()) };
        live.alter(folder.path(), "work_mem", Some("8MB"), &two).unwrap();
        let error = live.alter(folder.path(), "max_connections", Some("7"), &two).unwrap_err();
        assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
        assert_eq!(error.fields().detail.as_deref(), Some("two are too many"));
        let text = std::fs::read_to_string(folder.path().join(AUTO_FILE)).unwrap();
        assert!(text.contains("work_mem") && !text.contains("max_connections"), "{text}");
    }

    #[test]
    fn the_configuration_that_was_read_last_stays() {
        let live = Arc::new(Live::new(Arc::new(defaults())));
        let reload = |work_mem: i64, live: &Live, before: &dyn Fn()| {
            live.reload(|| {
                before();
                let mut found = defaults();
                found[find("work_mem").unwrap().0] = Value::Integer(work_mem);
                Ok::<_, ()>(Arc::new(found))
            })
        };
        let (reads, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                reload(8 << 20, &live, &|| {
                    reads.wait();
                    go_on.wait();
                })
            });
            reads.wait();
            // The first has read, and takes its time to take it up.
            let second = threads.spawn(|| reload(9 << 20, &live, &|| ()));
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!second.is_finished(), "one after the other");
            go_on.wait();
        });
        assert_eq!(live.values()[find("work_mem").unwrap().0], Value::Integer(9 << 20));
        assert_eq!(live.version(), 2);
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
