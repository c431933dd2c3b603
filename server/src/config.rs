//! What a server starts with: defaults, then the configuration file, then environment
//! variables, then the command line; later ones win.
//!
//! The defaults are those of [`crate::settings::table`], but for four that depend on the
//! machine: `max_memory` is three quarters of the memory of the machine or container, the data
//! directory lies in the user's data folder (`/var/lib/archipel` for root), never in the
//! current directory, `unix_socket_directories` is where libpq looks, and `archipel.executors`
//! is one per core allowed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::listen_addresses::ListenAddresses;
use crate::memory::machine_bytes;
use crate::settings::live::AUTO_FILE;
use crate::settings::session::defaults;
use crate::settings::table::{Context, SETTINGS, find};
use crate::settings::value::Value;

/// Where the server listens unless told otherwise, as [`ListenAddresses::default`] has it.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:5432";
/// Where health, metrics and the live page are served unless told otherwise.
pub const HTTP_DEFAULT: &str = "127.0.0.1:8432";

/// Who may come in, in the data directory unless `hba_file` says otherwise.
pub const HBA_FILE: &str = "pg_hba.conf";
/// Who may come in as whom, in the data directory unless `ident_file` says otherwise.
pub const IDENT_FILE: &str = "pg_ident.conf";

/// The environment variables with the superuser's first password, and with the name of a file that holds it:
/// programs that the server starts have no need of them.
pub const PASSWORD_VARIABLES: [&str; 2] = ["ARCHIPEL_PASSWORD", "ARCHIPEL_PASSWORD_FILE"];

/// The path from the root, for whoever asks later or from elsewhere.
pub fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// A complete configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub data_directory: PathBuf,
    pub listen: ListenAddresses,
    /// `None`: no HTTP (`--http off`).
    pub http: Option<SocketAddr>,
    /// Where the Unix sockets lie.
    pub socket_directories: Vec<PathBuf>,
    /// Whether the directories were asked for; the default one may be unusable.
    pub sockets_required: bool,
    /// Values of all settings, in the order of [`SETTINGS`].
    pub values: Arc<Vec<Value>>,
    /// What the command line gave, to read all sources again.
    given: Given,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read configuration file {path}: {reason}")]
    Unreadable { path: PathBuf, reason: String },
    #[error("{origin}: unknown setting \"{name}\"")]
    Unknown { origin: String, name: String },
    #[error("{origin}: {reason}")]
    Invalid { origin: String, reason: String },
    #[error(
        "refusing to serve HTTP on {0}: without archipel.http_tls or archipel.http_token_file that is safe on loopback addresses only"
    )]
    HttpNotLoopback(SocketAddr),
}

/// What the command line gave.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub data_directory: Option<PathBuf>,
    pub listen: Option<String>,
    pub http: Option<String>,
    pub file: Option<PathBuf>,
    pub set: Vec<String>,
}

/// What ALTER SYSTEM has written, or is about to.
enum Auto<'a> {
    File(&'a Path),
    Values(&'a toml::Table),
}

/// The environment, as far as it is text.
fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

#[derive(Default)]
struct Builder {
    data_directory: Option<PathBuf>,
    listen: ListenAddresses,
    http: Option<String>,
    sockets: Option<String>,
    values: Vec<Value>,
}

impl Builder {
    fn set(&mut self, origin: &str, name: &str, text: &str) -> Result<(), ConfigError> {
        let invalid = |reason: String| ConfigError::Invalid { origin: origin.to_owned(), reason };
        match name {
            "data_dir" | "data_directory" => self.data_directory = Some(PathBuf::from(text)),
            "listen" => self.listen = ListenAddresses::parse(text).map_err(invalid)?,
            "http" => self.http = Some(text.to_owned()),
            "unix_socket_directories" => self.sockets = Some(text.to_owned()),
            "listen_addresses" => self.listen.set_hosts(text).map_err(|reason| {
                invalid(format!("invalid value for parameter \"listen_addresses\": \"{text}\": {reason}"))
            })?,
            "port" => {
                let port = text
                    .trim()
                    .parse()
                    .map_err(|_| invalid(format!("invalid value for parameter \"port\": \"{text}\"")))?;
                self.listen = std::mem::take(&mut self.listen).with_port(port);
            }
            _ => {
                let id = find(name).ok_or_else(|| ConfigError::Unknown {
                    origin: origin.to_owned(),
                    name: name.to_owned(),
                })?;
                let setting = id.setting();
                if setting.context == Context::Internal {
                    return Err(invalid(format!("parameter \"{}\" cannot be changed", setting.name)));
                }
                let value = setting
                    .kind
                    .parse(setting.name, text)
                    .map_err(|error| invalid(error.message().to_owned()))?;
                self.values[id.0] = value;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let unreadable = |reason: String| ConfigError::Unreadable {
            path: path.to_owned(),
            reason: reason.trim().to_owned(),
        };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| unreadable(error.to_string()))?;
        self.table(&path.display().to_string(), "", &table)
    }

    fn table(&mut self, origin: &str, prefix: &str, table: &toml::Table) -> Result<(), ConfigError> {
        for (key, value) in table {
            let name = format!("{prefix}{key}");
            match value {
                toml::Value::Table(inner) => self.table(origin, &format!("{name}."), inner)?,
                toml::Value::String(text) => self.set(origin, &name, text)?,
                toml::Value::Boolean(flag) => self.set(origin, &name, if *flag { "on" } else { "off" })?,
                toml::Value::Integer(number) => self.set(origin, &name, &number.to_string())?,
                toml::Value::Float(number) => self.set(origin, &name, &number.to_string())?,
                _ => {
                    return Err(ConfigError::Invalid {
                        origin: origin.to_owned(),
                        reason: format!("setting \"{name}\" is neither text, number nor boolean"),
                    });
                }
            }
        }
        Ok(())
    }

    /// `ARCHIPEL_MAX_CONNECTIONS` sets `max_connections`, `ARCHIPEL_REQUIRE_ROUTE`
    /// `archipel.require_route`; variables that name no setting are somebody else's.
    fn environment(&mut self, variables: impl Iterator<Item = (String, String)>) -> Result<(), ConfigError> {
        for (variable, text) in variables {
            let Some(name) = variable.strip_prefix("ARCHIPEL_") else { continue };
            let name = name.to_ascii_lowercase();
            let origin = format!("environment variable {variable}");
            let ours = format!("archipel.{name}");
            if matches!(name.as_str(), "data_dir" | "listen" | "http") || find(&name).is_some() {
                self.set(&origin, &name, &text)?;
            } else if find(&ours).is_some() {
                self.set(&origin, &ours, &text)?;
            }
        }
        Ok(())
    }
}

impl Config {
    /// The configuration of this process, from all four sources.
    pub fn load(given: &Given) -> Result<Config, ConfigError> {
        Config::from_sources(given, variables().into_iter())
    }

    fn from_sources(
        given: &Given,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        let variables: Vec<(String, String)> = variables.collect();
        // Where the data directory is, only the other sources say.
        let first = Config::build(given, &variables, None)?;
        let auto = first.data_directory.join(AUTO_FILE);
        if auto.exists() { Config::build(given, &variables, Some(Auto::File(&auto))) } else { Ok(first) }
    }

    /// The same as it would be with these values in the file that ALTER SYSTEM writes.
    pub fn with_altered(&self, values: &toml::Table) -> Result<Config, ConfigError> {
        Config::build(&self.given, &variables(), Some(Auto::Values(values)))
    }

    /// The same from all sources as they are now.
    pub fn reload(&self) -> Result<Config, ConfigError> {
        Config::load(&self.given)
    }

    fn build(
        given: &Given,
        variables: &[(String, String)],
        auto: Option<Auto<'_>>,
    ) -> Result<Config, ConfigError> {
        let mut builder = Builder { values: defaults(), ..Builder::default() };
        if let Some(id) = find("max_memory") {
            builder.values[id.0] = Value::Integer(machine_bytes() / 4 * 3);
        }
        if let Some(file) = &given.file {
            builder.file(file)?;
        }
        match auto {
            Some(Auto::File(path)) => builder.file(path)?,
            Some(Auto::Values(values)) => builder.table("ALTER SYSTEM", "", values)?,
            None => {}
        }
        builder.environment(variables.iter().cloned())?;
        let flag = "command line";
        for (name, text) in [("listen", &given.listen), ("http", &given.http)] {
            if let Some(text) = text {
                builder.set(flag, name, text)?;
            }
        }
        if let Some(path) = &given.data_directory {
            builder.data_directory = Some(path.clone());
        }
        for assignment in &given.set {
            let (name, text) = assignment.split_once('=').ok_or_else(|| ConfigError::Invalid {
                origin: flag.into(),
                reason: format!("--set takes name=value, not \"{assignment}\""),
            })?;
            builder.set(flag, name.trim(), text.trim())?;
        }
        builder.finish(given)
    }

    /// An integer setting, in its unit.
    pub fn integer(&self, name: &str) -> i64 {
        match find(name).map(|id| &self.values[id.0]) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    /// A boolean setting.
    pub fn boolean(&self, name: &str) -> bool {
        find(name).is_some_and(|id| self.values[id.0] == Value::Bool(true))
    }

    /// A real setting.
    pub fn real(&self, name: &str) -> f64 {
        match find(name).map(|id| &self.values[id.0]) {
            Some(Value::Real(number)) => *number,
            _ => 0.0,
        }
    }

    /// A text setting.
    pub fn text(&self, name: &str) -> &str {
        match find(name).map(|id| &self.values[id.0]) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }
}

impl Builder {
    fn finish(mut self, given: &Given) -> Result<Config, ConfigError> {
        let address = |name: &str, text: &str| -> Result<SocketAddr, ConfigError> {
            let text = text.replacen("localhost:", "127.0.0.1:", 1).replacen("*:", "0.0.0.0:", 1);
            text.parse().map_err(|_| ConfigError::Invalid {
                origin: name.to_owned(),
                reason: format!("\"{text}\" is not ADDRESS:PORT"),
            })
        };
        let http = match self.http.as_deref().unwrap_or(HTTP_DEFAULT) {
            "off" | "" => None,
            text => Some(address("http", text)?),
        };
        let is_set = |name: &str, unset: Value| find(name).is_some_and(|id| self.values[id.0] != unset);
        let guarded = is_set("archipel.http_tls", Value::Bool(false))
            || is_set("archipel.http_token_file", Value::Text(String::new()));
        if let Some(http) = http.filter(|http| !http.ip().is_loopback() && !guarded) {
            return Err(ConfigError::HttpNotLoopback(http));
        }
        let data_directory = self.data_directory.take().unwrap_or_else(default_data_directory);
        let sockets = self.sockets.clone().unwrap_or_else(|| default_socket_directory().to_owned());
        let facts = [
            ("unix_socket_directories", Value::Text(sockets.clone())),
            ("data_directory", Value::Text(data_directory.display().to_string())),
            ("listen_addresses", Value::Text(self.listen.shown())),
            ("port", Value::Integer(i64::from(self.listen.port))),
        ];
        for (name, value) in facts {
            if let Some(id) = find(name) {
                self.values[id.0] = value;
            }
        }
        for (name, file) in [("hba_file", HBA_FILE), ("ident_file", IDENT_FILE)] {
            let Some(id) = find(name) else { continue };
            let path = match &self.values[id.0] {
                Value::Text(path) if !path.is_empty() => absolute(PathBuf::from(path)),
                _ => absolute(data_directory.join(file)),
            };
            self.values[id.0] = Value::Text(path.display().to_string());
        }
        debug_assert_eq!(self.values.len(), SETTINGS.len());
        let directories = sockets.split(',').map(|name| name.trim().trim_matches('"'));
        Ok(Config {
            data_directory,
            listen: self.listen,
            http,
            socket_directories: directories.filter(|name| !name.is_empty()).map(PathBuf::from).collect(),
            sockets_required: self.sockets.is_some(),
            values: Arc::new(self.values),
            given: given.clone(),
        })
    }
}

/// Where libpq looks for a server without being told: Debian's and Red Hat's directory if this
/// server may write there, else PostgreSQL's own default.
fn default_socket_directory() -> &'static str {
    const PACKAGED: &str = "/var/run/postgresql";
    // SAFETY: access reads a string that ends in a zero byte, and nothing else.
    let writable = unsafe { libc::access(c"/var/run/postgresql".as_ptr(), libc::W_OK | libc::X_OK) } == 0;
    if writable { PACKAGED } else { "/tmp" }
}

fn default_data_directory() -> PathBuf {
    // SAFETY: geteuid has no preconditions and touches no memory.
    if unsafe { libc::geteuid() } == 0 {
        return PathBuf::from("/var/lib/archipel");
    }
    let home = |path: &str| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(path));
    std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| home(".local/share"))
        .unwrap_or_else(|| PathBuf::from("/var/tmp"))
        .join("archipel")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(given: &Given, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::from_sources(given, variables.iter().map(|(name, text)| (name.to_string(), text.to_string())))
    }

    #[test]
    fn later_sources_win() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("archipel.toml");
        std::fs::write(&file, "max_connections = 10\nport = 6000\n[archipel]\nrequire_route = true\n")
            .unwrap();
        let given = Given {
            file: Some(file),
            set: vec!["wal_writer_delay=50ms".into(), "max_connections=12".into()],
            ..Given::default()
        };
        let config =
            load(&given, &[("ARCHIPEL_MAX_CONNECTIONS", "11"), ("ARCHIPEL_EXECUTORS", "3")]).unwrap();
        assert_eq!(config.integer("max_connections"), 12);
        assert_eq!(config.integer("archipel.executors"), 3);
        assert_eq!(config.integer("wal_writer_delay"), 50);
        assert_eq!(config.listen.port, 6000);
    }

    #[test]
    fn unix_sockets_are_where_they_were_asked_for() {
        let set = |text: &str| Given { set: vec![text.into()], ..Given::default() };
        let config = load(&set("unix_socket_directories=/run/a, \"/run/b\""), &[]).unwrap();
        assert_eq!(config.socket_directories, [Path::new("/run/a"), Path::new("/run/b")]);
        assert!(config.sockets_required);
        let none = load(&set("unix_socket_directories="), &[]).unwrap();
        assert!(none.socket_directories.is_empty());
        let unasked = load(&Given::default(), &[]).unwrap();
        assert!(unasked.socket_directories.len() == 1 && !unasked.sockets_required);
        assert_eq!(unasked.text("unix_socket_directories"), unasked.socket_directories[0].to_str().unwrap());
    }

    #[test]
    fn addresses_and_their_port_are_set_together_or_apart() {
        let set = |texts: &[&str]| Given {
            set: texts.iter().map(|text| (*text).to_owned()).collect(),
            ..Given::default()
        };
        assert_eq!(
            load(&Given::default(), &[]).unwrap().listen,
            ListenAddresses::parse(LISTEN_DEFAULT).unwrap()
        );
        let config = load(&set(&["port=6000", "listen_addresses=localhost, ::1"]), &[]).unwrap();
        assert_eq!(config.text("listen_addresses"), "localhost,::1");
        assert_eq!((config.listen.port, config.integer("port")), (6000, 6000));
        let given = Given { listen: Some("10.0.0.1:7000,[::1]:7000".into()), ..Given::default() };
        let config = load(&given, &[("ARCHIPEL_LISTEN_ADDRESSES", "*")]).unwrap();
        assert_eq!((config.text("listen_addresses"), config.integer("port")), ("10.0.0.1,::1", 7000));
    }

    #[test]
    fn bad_configurations_are_named() {
        let set = |text: &str| Given { set: vec![text.into()], ..Given::default() };
        assert!(matches!(load(&set("nonsense=1"), &[]), Err(ConfigError::Unknown { .. })));
        assert!(matches!(load(&set("max_connections=0"), &[]), Err(ConfigError::Invalid { .. })));
        assert!(matches!(load(&set("max_connections"), &[]), Err(ConfigError::Invalid { .. })));
        for listen in ["listen=127.0.0.1", "listen_addresses=a,", "port=x", "port=65536", "listen=a:1,b:2"] {
            assert!(matches!(load(&set(listen), &[]), Err(ConfigError::Invalid { .. })), "{listen}");
        }
        for address in ["0.0.0.0:8432", "[::]:8432", "192.0.2.1:8432"] {
            let open = Given { http: Some(address.into()), ..Given::default() };
            assert!(matches!(load(&open, &[]), Err(ConfigError::HttpNotLoopback(_))), "{address}");
        }
        for guard in ["archipel.http_tls=on", "archipel.http_token_file=token"] {
            let guarded = Given { http: Some("0.0.0.0:8432".into()), ..set(guard) };
            assert!(load(&guarded, &[]).is_ok(), "{guard}");
        }
        let off = Given { http: Some("off".into()), ..Given::default() };
        assert_eq!(load(&off, &[]).unwrap().http, None);
    }
}
