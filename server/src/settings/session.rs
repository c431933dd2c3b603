//! One session's settings.
//!
//! What statements read is an immutable [`Effective`] snapshot behind an `Arc`: a program that
//! runs on another thread keeps the one it started with. SET replaces it; ROLLBACK restores
//! what the transaction changed, COMMIT drops only what SET LOCAL changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_sql::ast::IsolationLevel;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::style::{DateOrder, IntervalStyle, Style};

use super::table::{Context, REPORTED, SETTINGS, SettingId, find};
use super::value::Value;
use crate::wire::output::Severity;

/// The values in force, with those the hot path reads decoded.
#[derive(Clone, Debug)]
pub struct Effective {
    values: Vec<Value>,
    custom: BTreeMap<String, String>,
    /// The current transaction's, or those of the next one.
    pub isolation: IsolationLevel,
    pub transaction_read_only: bool,
    pub deadlock_timeout_ms: u64,
    pub search_path: Arc<[String]>,
    /// The schema of the session's temporary relations, once it has any: first in the path.
    temporary_schema: Option<String>,
    pub synchronous_commit: bool,
    pub require_route: bool,
    /// `archipel.atomic_copy`.
    pub atomic_copy: bool,
    pub statement_timeout_ms: u64,
    pub lock_timeout_ms: u64,
    pub idle_in_transaction_timeout_ms: u64,
    pub idle_session_timeout_ms: u64,
    pub client_min_messages: Severity,
    /// How values become text.
    pub style: Arc<Style>,
}

/// A setting of [`SETTINGS`], or a custom one (`myapp.user_id`).
#[derive(Clone, Debug, PartialEq)]
enum Name {
    Known(SettingId),
    Custom(String),
}

#[derive(Clone, Debug)]
struct Undo {
    name: Name,
    session: Option<Value>,
    local: Option<Value>,
}

/// See the module's head.
pub struct SessionSettings {
    effective: Arc<Effective>,
    /// The server's values, as the session knows them, and their version.
    server: Arc<Vec<Value>>,
    version: u64,
    /// What RESET goes back to: the server's values, then the startup packet's.
    reset: Arc<Vec<Value>>,
    session: Vec<Value>,
    session_custom: BTreeMap<String, String>,
    temporary_schema: Option<String>,
    local: Vec<(Name, Value)>,
    undo: Vec<Undo>,
}

/// Splits a search_path (or DateStyle) list into its names, quotes removed, unquoted names
/// folded to lower case.
pub fn split_identifiers(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut chars = quoted.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (_, '"') if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                        chars.next();
                        name.push('"');
                    }
                    (at, '"') => break at + 1,
                    (_, other) => name.push(other),
                }
            };
            names.push(name);
            rest = quoted[end..].trim_start();
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let name = rest[..end].trim();
            if name.is_empty() {
                return None;
            }
            names.push(name.to_lowercase());
            rest = &rest[end..];
        }
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if rest.is_empty() => return Some(names),
            None => return None,
        }
    }
}

impl Effective {
    fn new(
        values: Vec<Value>,
        custom: BTreeMap<String, String>,
        temporary_schema: Option<String>,
    ) -> Effective {
        let mut effective = Effective {
            values,
            custom,
            isolation: IsolationLevel::ReadCommitted,
            transaction_read_only: false,
            deadlock_timeout_ms: 1_000,
            search_path: Arc::from(Vec::new()),
            temporary_schema,
            synchronous_commit: true,
            require_route: false,
            atomic_copy: false,
            statement_timeout_ms: 0,
            lock_timeout_ms: 0,
            idle_in_transaction_timeout_ms: 0,
            idle_session_timeout_ms: 0,
            client_min_messages: Severity::Notice,
            style: Arc::default(),
        };
        effective.decode();
        effective
    }

    /// These settings with some changed, as SET would change them.
    pub fn with(&self, changes: &[(String, String)]) -> Result<Effective> {
        let mut values = self.values.clone();
        let mut custom = self.custom.clone();
        for (name, text) in changes {
            match known_setting(name, |_| true)? {
                Some(id) => values[id.0] = canonical(id, text)?,
                None => {
                    custom.insert(name.to_ascii_lowercase(), text.clone());
                }
            }
        }
        Ok(Effective::new(values, custom, self.temporary_schema.clone()))
    }

    fn decode(&mut self) {
        let path = split_identifiers(&self.text("search_path")).unwrap_or_default();
        let user = self.text("session_authorization");
        // The superuser's name is the name of the system's own schema, which "$user" never means.
        let named = path.into_iter().filter_map(|name| match name.as_str() {
            "$user" => (user != "archipel").then(|| user.clone()),
            "pg_temp" => None,
            _ => Some(name),
        });
        self.search_path = self.temporary_schema.iter().cloned().chain(named).collect();
        self.isolation = IsolationLevel::parse(&self.text("transaction_isolation"))
            .unwrap_or(IsolationLevel::ReadCommitted);
        self.transaction_read_only = self.value("transaction_read_only") == Some(&Value::Bool(true));
        self.deadlock_timeout_ms = self.integer("deadlock_timeout") as u64;
        self.synchronous_commit = self.text("synchronous_commit") != "off";
        self.require_route = self.value("archipel.require_route") == Some(&Value::Bool(true));
        self.atomic_copy = self.value("archipel.atomic_copy") == Some(&Value::Bool(true));
        self.statement_timeout_ms = self.integer("statement_timeout") as u64;
        self.lock_timeout_ms = self.integer("lock_timeout") as u64;
        self.idle_in_transaction_timeout_ms = self.integer("idle_in_transaction_session_timeout") as u64;
        self.idle_session_timeout_ms = self.integer("idle_session_timeout") as u64;
        self.client_min_messages = match self.text("client_min_messages").as_str() {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            "notice" => Severity::Notice,
            "info" => Severity::Info,
            "log" => Severity::Log,
            _ => Severity::Debug,
        };
        self.style = Arc::new(self.decode_style());
    }

    fn decode_style(&self) -> Style {
        let date_order = match self.text("DateStyle").rsplit(' ').next() {
            Some("DMY") => DateOrder::Dmy,
            Some("YMD") => DateOrder::Ymd,
            _ => DateOrder::Mdy,
        };
        let interval = match self.text("IntervalStyle").as_str() {
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => IntervalStyle::Postgres,
        };
        Style {
            // The name was looked up when it was set.
            time_zone: archipel_sql::datetime::zone::for_setting(&self.text("TimeZone"))
                .unwrap_or(Style::standard().time_zone.clone()),
            date_order,
            interval,
            bytea_escape: self.text("bytea_output") == "escape",
            extra_float_digits: self.integer("extra_float_digits") as i32,
        }
    }

    /// The value of a setting of [`SETTINGS`].
    pub fn value(&self, name: &str) -> Option<&Value> {
        find(name).map(|id| &self.values[id.0])
    }

    fn text(&self, name: &str) -> String {
        match self.value(name) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        }
    }

    /// An integer setting, in its unit; zero if there is none of the name.
    pub fn integer(&self, name: &str) -> i64 {
        match self.value(name) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    /// What SHOW answers, custom settings included.
    pub fn show(&self, name: &str) -> Option<String> {
        match find(name) {
            Some(id) => Some(id.setting().kind.show(&self.values[id.0])),
            None => self.custom.get(&name.to_ascii_lowercase()).cloned(),
        }
    }

    /// The value in the setting's own unit, as `pg_settings` shows it.
    pub fn plain(&self, id: SettingId) -> String {
        id.setting().kind.plain(&self.values[id.0])
    }
}

/// The modes of the current transaction, and where a new one gets them from.
pub const TRANSACTION_MODES: [(&str, &str); 3] = [
    ("transaction_isolation", "default_transaction_isolation"),
    ("transaction_read_only", "default_transaction_read_only"),
    ("transaction_deferrable", "default_transaction_deferrable"),
];

/// The values of all settings as a server starts, before its configuration.
pub fn defaults() -> Vec<Value> {
    let parse = |setting: &super::Setting| {
        // A test proves that every default parses; the computed one is overwritten at the start.
        setting.kind.parse(setting.name, setting.default).unwrap_or(Value::Integer(0))
    };
    SETTINGS.iter().map(parse).collect()
}

/// The setting of that name; `None` for a custom one. One that cannot change must not.
fn known_setting(name: &str, changes: impl Fn(SettingId) -> bool) -> Result<Option<SettingId>> {
    match find(name) {
        Some(id) => {
            let setting = id.setting();
            if setting.context != Context::User && changes(id) {
                let message = match setting.context {
                    Context::Internal => format!("parameter \"{}\" cannot be changed", setting.name),
                    Context::Reload => format!("parameter \"{}\" cannot be changed now", setting.name),
                    _ => format!(
                        "parameter \"{}\" cannot be changed without restarting the server",
                        setting.name
                    ),
                };
                return Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message));
            }
            Ok(Some(id))
        }
        None if name.contains('.') && !name.starts_with("archipel.") && !name.starts_with("plpgsql.") => {
            Ok(None)
        }
        None => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )),
    }
}

/// Parses a value as SET does.
pub(super) fn canonical(id: SettingId, text: &str) -> Result<Value> {
    let setting = id.setting();
    let invalid = || {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{}\": \"{text}\"", setting.name),
        )
    };
    match setting.name {
        "client_encoding" => {
            match text.to_ascii_lowercase().replace(['-', '_'], "").trim_matches(['"', '\'']) {
                "utf8" | "unicode" => Ok(Value::Text("UTF8".into())),
                "sqlascii" => Ok(Value::Text("SQL_ASCII".into())),
                "latin1" | "iso88591" | "win1252" | "latin9" => {
                    Err(SqlError::unsupported(format_args!("client encoding \"{text}\""))
                        .with_hint("Text is UTF8; set the client's encoding to UTF8."))
                }
                _ => Err(invalid()),
            }
        }
        "DateStyle" => date_style(text).map(Value::Text).ok_or_else(invalid),
        "TimeZone" => time_zone(text).map(Value::Text).ok_or_else(invalid),
        "search_path" => {
            split_identifiers(text).ok_or_else(invalid)?;
            Ok(Value::Text(text.to_owned()))
        }
        // Longer names are cut, non-ASCII replaced, as PostgreSQL does.
        "application_name" => {
            let clean: String =
                text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
            Ok(Value::Text(clean.chars().take(63).collect()))
        }
        name => setting.kind.parse(name, text),
    }
}

/// Output is ISO always; the input order may change.
fn date_style(text: &str) -> Option<String> {
    let mut order = "MDY";
    for word in split_identifiers(text)? {
        match word.as_str() {
            "iso" => {}
            "mdy" | "us" | "noneuro" | "noneuropean" => order = "MDY",
            "dmy" | "euro" | "european" => order = "DMY",
            "ymd" => order = "YMD",
            "default" => order = "MDY",
            _ => return None,
        }
    }
    Some(format!("ISO, {order}"))
}

fn time_zone(text: &str) -> Option<String> {
    let text = text.trim().trim_matches('\'');
    if text.eq_ignore_ascii_case("default") || text.eq_ignore_ascii_case("local") {
        return Some("UTC".into());
    }
    archipel_sql::datetime::time_zone_name(text)
}

impl SessionSettings {
    /// A session's settings: the server's, then those of the startup packet.
    pub fn new(server: Arc<Vec<Value>>) -> SessionSettings {
        let session = (*server).clone();
        let effective = Arc::new(Effective::new(session.clone(), BTreeMap::new(), None));
        let mut settings = SessionSettings {
            effective,
            server: server.clone(),
            version: 0,
            reset: server,
            session,
            session_custom: BTreeMap::new(),
            temporary_schema: None,
            local: Vec::new(),
            undo: Vec::new(),
        };
        settings.refresh();
        settings
    }

    /// The server's values of this version; which ones the session has seen.
    pub fn at_version(mut self, version: u64) -> SessionSettings {
        self.version = version;
        self
    }

    /// The newest of the server's values that the session has seen.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Between two transactions: the server's values have changed. What the client has chosen, at
    /// the startup or since, stays.
    pub fn take_up(&mut self, server: Arc<Vec<Value>>, version: u64) {
        let mut reset = (*self.reset).clone();
        for (at, found) in server.iter().enumerate() {
            let chosen_at_startup = self.reset[at] != self.server[at];
            if chosen_at_startup || self.server[at] == *found {
                continue;
            }
            if self.session[at] == reset[at] {
                self.session[at] = found.clone();
            }
            reset[at] = found.clone();
        }
        self.reset = Arc::new(reset);
        (self.server, self.version) = (server, version);
        self.refresh();
    }

    /// The values in force now.
    pub fn effective(&self) -> &Arc<Effective> {
        &self.effective
    }

    /// Applies a setting of the startup packet: it becomes the value RESET goes back to.
    pub fn set_at_startup(&mut self, name: &str, text: &str) -> Result<()> {
        self.set(name, Some(text), false)?;
        self.reset = Arc::new(self.session.clone());
        self.commit();
        Ok(())
    }

    /// Sets who the session is; clients cannot.
    pub fn set_internal(&mut self, name: &str, text: &str) {
        if let Some(id) = find(name) {
            self.session[id.0] = Value::Text(text.to_owned());
            self.reset = Arc::new(self.session.clone());
            self.refresh();
        }
    }

    /// Names the schema that relations are looked up in first.
    pub fn set_temporary_schema(&mut self, name: &str) {
        self.temporary_schema = Some(name.to_owned());
        self.refresh();
    }

    /// SET (or SET LOCAL) `name` to `text`, or to its reset value.
    pub fn set(&mut self, name: &str, text: Option<&str>, local: bool) -> Result<()> {
        let changes = |id: SettingId| text.is_some_and(|text| !self.same(id, text));
        let (name, value) = match known_setting(name, changes)? {
            Some(id) => {
                let value = match text {
                    Some(text) => canonical(id, text)?,
                    None => self.reset[id.0].clone(),
                };
                (Name::Known(id), Some(value))
            }
            None => (Name::Custom(name.to_ascii_lowercase()), text.map(|text| Value::Text(text.to_owned()))),
        };
        self.undo.push(Undo {
            session: self.session_value(&name),
            local: self.local.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone()),
            name: name.clone(),
        });
        self.local.retain(|(other, _)| *other != name);
        match value {
            Some(value) if local => self.local.push((name, value)),
            value => self.put_session_value(&name, value),
        }
        self.refresh();
        Ok(())
    }

    fn same(&self, id: SettingId, text: &str) -> bool {
        canonical(id, text).is_ok_and(|value| value == self.session[id.0])
    }

    fn session_value(&self, name: &Name) -> Option<Value> {
        match name {
            Name::Known(id) => Some(self.session[id.0].clone()),
            Name::Custom(name) => self.session_custom.get(name).map(|text| Value::Text(text.clone())),
        }
    }

    fn put_session_value(&mut self, name: &Name, value: Option<Value>) {
        match (name, value) {
            (Name::Known(id), Some(value)) => self.session[id.0] = value,
            (Name::Custom(name), Some(Value::Text(text))) => {
                self.session_custom.insert(name.clone(), text);
            }
            (Name::Custom(name), _) => {
                self.session_custom.remove(name);
            }
            (Name::Known(_), None) => {}
        }
    }

    fn refresh(&mut self) {
        let mut values = self.session.clone();
        // A transaction is as the defaults say, unless it said otherwise for itself.
        for (of_transaction, default) in TRANSACTION_MODES {
            if let (Some(of_transaction), Some(default)) = (find(of_transaction), find(default)) {
                values[of_transaction.0] = values[default.0].clone();
            }
        }
        let mut custom = self.session_custom.clone();
        for (name, value) in &self.local {
            match (name, value) {
                (Name::Known(id), value) => values[id.0] = value.clone(),
                (Name::Custom(name), Value::Text(text)) => {
                    custom.insert(name.clone(), text.clone());
                }
                (Name::Custom(_), _) => {}
            }
        }
        self.effective = Arc::new(Effective::new(values, custom, self.temporary_schema.clone()));
    }

    /// RESET ALL.
    pub fn reset_all(&mut self) {
        for (index, setting) in SETTINGS.iter().enumerate() {
            let (name, reset) = (Name::Known(SettingId(index)), self.reset[index].clone());
            if setting.context == Context::User && self.session[index] != reset {
                self.undo.push(Undo { session: self.session_value(&name), local: None, name });
                self.session[index] = reset;
            }
        }
        self.session_custom.clear();
        self.local.clear();
        self.refresh();
    }

    /// A mark for [`rollback_to`](SessionSettings::rollback_to).
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Undoes what was set since `mark` (ROLLBACK TO SAVEPOINT, a failed statement).
    pub fn rollback_to(&mut self, mark: usize) {
        if self.undo.len() <= mark {
            return;
        }
        for undo in self.undo.split_off(mark).into_iter().rev() {
            self.local.retain(|(other, _)| *other != undo.name);
            if let Some(local) = undo.local {
                self.local.push((undo.name.clone(), local));
            }
            self.put_session_value(&undo.name, undo.session);
        }
        self.refresh();
    }

    /// The transaction committed: SET stays, SET LOCAL goes.
    pub fn commit(&mut self) {
        self.undo.clear();
        if !self.local.is_empty() {
            self.local.clear();
            self.refresh();
        }
    }

    /// The transaction was rolled back.
    pub fn rollback(&mut self) {
        self.rollback_to(0);
        self.commit();
    }

    /// The reported settings with their values, for ParameterStatus.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        REPORTED.iter().map(|name| (*name, self.effective.show(name).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> SessionSettings {
        SessionSettings::new(Arc::new(defaults()))
    }

    fn show(settings: &SessionSettings, name: &str) -> String {
        settings.effective().show(name).unwrap()
    }

    #[test]
    fn rollback_restores_and_commit_keeps_all_but_local() {
        let mut settings = settings();
        settings.set("search_path", Some("a"), false).unwrap();
        settings.commit();
        settings.set("search_path", Some("b"), false).unwrap();
        settings.set("search_path", Some("c"), true).unwrap();
        assert_eq!(show(&settings, "search_path"), "c");
        settings.commit();
        assert_eq!(show(&settings, "search_path"), "b");
        settings.set("search_path", Some("d"), false).unwrap();
        settings.rollback();
        assert_eq!(show(&settings, "search_path"), "b");
        settings.set("search_path", None, false).unwrap();
        assert_eq!(show(&settings, "search_path"), "\"$user\", public");
    }

    #[test]
    fn unknown_and_fixed_settings_are_refused_by_state() {
        let mut settings = settings();
        assert_eq!(
            settings.set("nonsense", Some("1"), false).unwrap_err().state(),
            SqlState::UNDEFINED_OBJECT
        );
        let fixed = settings.set("max_connections", Some("5"), false).unwrap_err();
        assert_eq!(fixed.state(), SqlState::CANT_CHANGE_RUNTIME_PARAM);
        settings.set("myapp.user", Some("x"), false).unwrap();
        assert_eq!(show(&settings, "MyApp.user"), "x");
    }

    #[test]
    fn search_paths_are_split_and_the_user_is_filled_in() {
        assert_eq!(split_identifiers("A, \"B\"\"c\" ,d").unwrap(), ["a", "B\"c", "d"]);
        assert!(split_identifiers("a,").is_none() && split_identifiers("\"a").is_none());
        assert_eq!(&settings().effective().search_path[..], ["public".to_owned()]);
    }
}
