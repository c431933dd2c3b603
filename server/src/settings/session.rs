//! One session's settings.
//!
//! What statements read is an immutable [`Effective`] snapshot behind an `Arc`: a program that
//! runs on another thread keeps the one it started with. SET replaces it; ROLLBACK restores
//! what the transaction changed, COMMIT drops only what SET LOCAL changed.

mod names;
mod roles;
mod startup;
mod words;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_procedures::plpgsql::ast::Conflict;
use archipel_sql::ast::IsolationLevel;
use archipel_sql::catalog::SessionRoles;
use archipel_sql::catalog::names::path_with_temporary;
use archipel_sql::encoding::Encoding;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::ExtraChecks;
use archipel_sql::parser::StringSyntax;
use archipel_sql::stack::{DEPTH_DEFAULT_KB, DEPTH_MAX_KB};
use archipel_sql::style::{DateFormat, DateOrder, IntervalStyle, Quoting, Style};

use self::names::{custom_value, known_setting, named_for_good};
use self::words::{DATE_STYLE_DEFAULT, client_encoding, date_style, time_zone};
use super::foreign;
use super::identifiers::split_identifiers;
use super::table::{Context, REPORTED, SETTINGS, SettingId, find};
use super::value::{RoleValue, Value};
use crate::wire::output::Severity;

/// The values in force, with those the hot path reads decoded.
#[derive(Clone, Debug)]
pub struct Effective {
    /// Shared with the session's until something differs.
    values: Arc<Vec<Value>>,
    custom: BTreeMap<String, String>,
    /// The current transaction's, or those of the next one.
    pub isolation: IsolationLevel,
    pub transaction_read_only: bool,
    pub deadlock_timeout_ms: u64,
    pub search_path: Arc<[String]>,
    /// The same with `$user` as it stands there: whose name that is depends on who runs.
    pub written_path: Arc<[String]>,
    /// The schema of the session's temporary relations, once it has any: first in the path.
    temporary_schema: Option<String>,
    pub synchronous_commit: bool,
    pub require_route: bool,
    /// `archipel.atomic_copy`.
    pub atomic_copy: bool,
    /// `max_stack_depth`.
    pub stack_depth_kb: u32,
    pub statement_timeout_ms: u64,
    pub lock_timeout_ms: u64,
    pub idle_in_transaction_timeout_ms: u64,
    pub idle_session_timeout_ms: u64,
    /// Statements that take so long are logged, and with their plans.
    pub log_statement_ms: u64,
    pub log_plan_ms: u64,
    /// Which routines' calls are counted and timed.
    pub tracked: Tracked,
    pub client_min_messages: Severity,
    /// In whose name statements run.
    pub roles: SessionRoles,
    /// Of a routine that runs in its owner's name.
    acting: Option<RoleValue>,
    /// Whether a SECURITY DEFINER routine runs, or what it has called.
    pub within_definer: bool,
    /// Whether policies filter; if not, a statement that they would affect fails.
    pub row_security: bool,
    /// `session_replication_role = replica`.
    pub replica: bool,
    /// Who wins in PL/pgSQL when a name is both a variable and a column.
    pub variable_conflict: Conflict,
    /// How string constants are read.
    pub strings: StringSyntax,
    /// The checks of PL/pgSQL that are asked for.
    pub extra_checks: ExtraChecks,
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
    /// Whether the client had chosen that.
    chosen: bool,
    local: Option<Value>,
}

/// `track_functions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    None,
    /// Those in plpgsql.
    Procedural,
    All,
}

/// See the module's head.
pub struct SessionSettings {
    effective: Arc<Effective>,
    /// The server's values, as the session knows them, and their version.
    server: Arc<Vec<Value>>,
    version: u64,
    /// What RESET goes back to: the server's values, then the startup packet's.
    reset: Arc<Vec<Value>>,
    /// Which of these the client has chosen, in the startup packet; the server's may change.
    reset_chosen: Vec<bool>,
    /// Shared with `reset` until SET makes a difference: most sessions keep what they began with.
    session: Arc<Vec<Value>>,
    /// Which of these the client has chosen, then or since.
    chosen: Vec<bool>,
    session_custom: BTreeMap<String, String>,
    temporary_schema: Option<String>,
    local: Vec<(Name, Value)>,
    undo: Vec<Undo>,
    /// Whether what only superusers may set is set ([`SessionSettings::trusting`]).
    trusts: bool,
}

/// 42704 for a name that no setting has, nor one of an application's own may have.
pub fn require_setting(name: &str) -> Result<()> {
    known_setting(name, |_| false).map(drop)
}

/// Puts a value where it stands among values that may be shared.
fn put(values: &mut Arc<Vec<Value>>, at: usize, value: Value) {
    if values[at] != value {
        Arc::make_mut(values)[at] = value;
    }
}

/// The search path of a session that has set nothing, as it is written.
pub fn default_search_path(values: &[Value]) -> Arc<[String]> {
    Effective::new(Arc::new(values.to_vec()), BTreeMap::new(), None).written_path
}

impl Effective {
    fn new(
        values: Arc<Vec<Value>>,
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
            written_path: Arc::from(Vec::new()),
            temporary_schema,
            synchronous_commit: true,
            require_route: false,
            atomic_copy: false,
            stack_depth_kb: DEPTH_DEFAULT_KB,
            statement_timeout_ms: 0,
            lock_timeout_ms: 0,
            idle_in_transaction_timeout_ms: 0,
            idle_session_timeout_ms: 0,
            log_statement_ms: u64::MAX,
            log_plan_ms: u64::MAX,
            tracked: Tracked::None,
            client_min_messages: Severity::Notice,
            roles: SessionRoles::default(),
            acting: None,
            within_definer: false,
            row_security: true,
            replica: false,
            variable_conflict: Conflict::Error,
            strings: StringSyntax::default(),
            extra_checks: ExtraChecks::default(),
            style: Arc::default(),
        };
        effective.decode();
        effective
    }

    /// These settings with some changed, as SET would change them; in the name of another role, if
    /// one is given.
    pub fn with(&self, changes: &[(String, String)], acting: Option<RoleValue>) -> Result<Effective> {
        let mut values = self.values.clone();
        let mut custom = self.custom.clone();
        for (name, text) in changes {
            match known_setting(name, |_| true)? {
                Some(id) => put(&mut values, id.0, canonical(id, text)?),
                None => {
                    let superuser = self.value("is_superuser") == Some(&Value::Bool(true));
                    custom.insert(name.to_ascii_lowercase(), custom_value(name, text, superuser)?);
                }
            }
        }
        let mut changed = Effective::new(values, custom, self.temporary_schema.clone());
        changed.acting = acting.or_else(|| self.acting.clone());
        changed.within_definer = self.within_definer;
        if changed.acting.is_some() {
            changed.decode();
        }
        Ok(changed)
    }

    /// How string constants are read.
    fn string_syntax(&self) -> StringSyntax {
        let is_off = |name: &str| self.value(name) == Some(&Value::Bool(false));
        StringSyntax {
            standard: !is_off("standard_conforming_strings"),
            backslash_quote: match self.text("backslash_quote").as_str() {
                "on" => true,
                "off" => false,
                // In other encodings a byte that looks like a quote may be part of a character.
                _ => self.style.encoding.is_of_servers(),
            },
            warns: !is_off("escape_string_warning"),
        }
    }

    fn decode(&mut self) {
        let path = split_identifiers(&self.text("search_path")).unwrap_or_default();
        let current = self.current_role();
        let superuser = SessionRoles::default().session;
        self.roles = SessionRoles {
            current: current.as_ref().map_or(superuser, |role| role.oid),
            session: self.role("session_authorization").map_or(superuser, |role| role.oid),
        };
        if let Some(id) = find("is_superuser") {
            let superuser = Value::Bool(current.as_ref().is_none_or(|role| role.superuser));
            put(&mut self.values, id.0, superuser);
        }
        let user = current.map_or_else(|| "archipel".to_owned(), |role| role.name);
        let written_path: Arc<[String]> = path_with_temporary(path, self.temporary_schema.as_ref()).into();
        // The superuser's name is the name of the system's own schema, which "$user" never means.
        let named = written_path.iter().filter_map(|name| match name.as_str() {
            "$user" => (user != "archipel").then(|| user.clone()),
            _ => Some(name.clone()),
        });
        self.search_path = named.collect();
        self.written_path = written_path;
        self.isolation = IsolationLevel::parse(&self.text("transaction_isolation"))
            .unwrap_or(IsolationLevel::ReadCommitted);
        self.transaction_read_only = self.value("transaction_read_only") == Some(&Value::Bool(true));
        self.deadlock_timeout_ms = self.integer("deadlock_timeout") as u64;
        self.synchronous_commit = self.text("synchronous_commit") != "off";
        self.require_route = self.value("archipel.require_route") == Some(&Value::Bool(true));
        self.atomic_copy = self.value("archipel.atomic_copy") == Some(&Value::Bool(true));
        let depth_kb = self.integer("max_stack_depth");
        self.stack_depth_kb = u32::try_from(depth_kb).map_or(DEPTH_MAX_KB, |kb| kb.min(DEPTH_MAX_KB));
        self.statement_timeout_ms = self.integer("statement_timeout") as u64;
        self.lock_timeout_ms = self.integer("lock_timeout") as u64;
        self.idle_in_transaction_timeout_ms = self.integer("idle_in_transaction_session_timeout") as u64;
        self.idle_session_timeout_ms = self.integer("idle_session_timeout") as u64;
        // -1 is never.
        let least = |name: &str| u64::try_from(self.integer(name)).unwrap_or(u64::MAX);
        (self.log_statement_ms, self.log_plan_ms) =
            (least("log_min_duration_statement"), least("auto_explain.log_min_duration"));
        self.tracked = match self.text("track_functions").as_str() {
            "pl" => Tracked::Procedural,
            "all" => Tracked::All,
            _ => Tracked::None,
        };
        self.client_min_messages = match self.text("client_min_messages").as_str() {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            "notice" => Severity::Notice,
            "info" => Severity::Info,
            "log" => Severity::Log,
            _ => Severity::Debug,
        };
        self.row_security = self.value("row_security") != Some(&Value::Bool(false));
        self.replica = self.text("session_replication_role") == "replica";
        self.variable_conflict = Conflict::of_setting(&self.text("plpgsql.variable_conflict"));
        self.extra_checks =
            ExtraChecks::of(&self.text("plpgsql.extra_warnings"), &self.text("plpgsql.extra_errors"));
        self.style = Arc::new(self.decode_style());
        self.strings = self.string_syntax();
    }

    fn decode_style(&self) -> Style {
        let date_format = match self.text("DateStyle").split(',').next() {
            Some("SQL") => DateFormat::Sql,
            Some("Postgres") => DateFormat::Postgres,
            Some("German") => DateFormat::German,
            _ => DateFormat::Iso,
        };
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
            date_format,
            date_order,
            interval,
            bytea_escape: self.text("bytea_output") == "escape",
            extra_float_digits: self.integer("extra_float_digits") as i32,
            quoting: match self.custom.get("quote_all_identifiers").map(String::as_str) {
                Some("on") => Quoting::All,
                _ => Quoting::WhereNeeded,
            },
            // It has been looked up when it was set.
            encoding: Encoding::named(&self.text("client_encoding")).unwrap_or_default(),
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
            None => {
                let own = self.custom.get(&name.to_ascii_lowercase());
                match foreign::find(name) {
                    Some(known) => Some(known.show(own.map(String::as_str))),
                    None => own.cloned(),
                }
            }
        }
    }

    /// The reported settings with their values, for ParameterStatus.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        REPORTED.iter().map(|name| (*name, self.show(name).unwrap_or_default()))
    }

    /// What the session has given a setting that is none of [`SETTINGS`].
    pub fn own_text(&self, name: &str) -> Option<&str> {
        self.custom.get(&name.to_ascii_lowercase()).map(String::as_str)
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
        "client_encoding" => client_encoding(text, invalid),
        "DateStyle" => date_style(text, DATE_STYLE_DEFAULT).map(Value::Text).ok_or_else(invalid),
        "plpgsql.extra_errors" | "plpgsql.extra_warnings" => {
            ExtraChecks::require_valid(setting.name, text)?;
            Ok(Value::Text(text.to_owned()))
        }
        "max_stack_depth" => words::stack_depth(setting, text),
        "TimeZone" => time_zone(text).map(Value::Text).ok_or_else(invalid),
        "search_path" => {
            split_identifiers(text).ok_or_else(invalid)?;
            Ok(Value::Text(text.to_owned()))
        }
        // Longer names are cut, non-ASCII replaced, as PostgreSQL does.
        "application_name" => {
            let name = &text.as_bytes()[..text.floor_char_boundary(63)];
            let clean = name.iter().map(|&b| if matches!(b, b' '..=b'~') { char::from(b) } else { '?' });
            Ok(Value::Text(clean.collect()))
        }
        name => setting.kind.parse(name, text),
    }
}

/// The notice of a value that is a name and too long to be kept whole (PostgreSQL's `GUC_IS_NAME`).
pub fn cut_notice(name: &str, text: &str) -> Option<SqlError> {
    if !name.eq_ignore_ascii_case("application_name") {
        return None;
    }
    archipel_sql::parser::truncation_notice(text)
}

impl SessionSettings {
    /// A session's settings: the server's, then those of the startup packet.
    pub fn new(server: Arc<Vec<Value>>) -> SessionSettings {
        let session = server.clone();
        let effective = Arc::new(Effective::new(session.clone(), BTreeMap::new(), None));
        let chosen = vec![false; session.len()];
        let mut settings = SessionSettings {
            effective,
            reset_chosen: chosen.clone(),
            chosen,
            server: server.clone(),
            version: 0,
            reset: server,
            session,
            session_custom: BTreeMap::new(),
            temporary_schema: None,
            local: Vec::new(),
            undo: Vec::new(),
            trusts: false,
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
            let is_of_start = SETTINGS[at].context == Context::SuperuserBackend;
            if self.reset_chosen[at] || self.server[at] == *found || is_of_start {
                continue;
            }
            if !self.chosen[at] {
                put(&mut self.session, at, found.clone());
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

    /// Names the schema that relations are looked up in first.
    pub fn set_temporary_schema(&mut self, name: &str) {
        self.temporary_schema = Some(name.to_owned());
        self.refresh();
    }

    /// Has settings set as a superuser sets them: whether that is allowed was looked at before.
    pub fn trusting<T>(&mut self, change: impl FnOnce(&mut SessionSettings) -> T) -> T {
        let before = std::mem::replace(&mut self.trusts, true);
        let changed = change(self);
        self.trusts = before;
        changed
    }

    fn is_superuser(&self) -> bool {
        self.trusts || self.effective.value("is_superuser") == Some(&Value::Bool(true))
    }

    /// SET (or SET LOCAL) `name` to `text`, or to its reset value.
    pub fn set(&mut self, name: &str, text: Option<&str>, local: bool) -> Result<()> {
        let changes = |id: SettingId| text.is_some_and(|text| !self.same(id, text));
        let (name, value) = match known_setting(name, changes)? {
            Some(id) => {
                if id.setting().context == Context::Superuser && !self.is_superuser() {
                    let name = id.setting().name;
                    let message = format!("permission denied to set parameter \"{name}\"");
                    return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
                }
                let value = match text {
                    Some(text) => canonical(id, &self.completed(id, text))?,
                    None => self.reset[id.0].clone(),
                };
                (Name::Known(id), Some(value))
            }
            None => {
                let value = text.map(|text| custom_value(name, text, self.is_superuser())).transpose()?;
                (Name::Custom(name.to_ascii_lowercase()), value.map(Value::Text))
            }
        };
        self.put(name, value, local, text.is_some());
        Ok(())
    }

    fn put(&mut self, name: Name, value: Option<Value>, local: bool, chosen: bool) {
        self.undo.push(Undo {
            session: self.session_value(&name),
            chosen: self.is_chosen(&name),
            local: self.local.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone()),
            name: name.clone(),
        });
        self.local.retain(|(other, _)| *other != name);
        match value {
            Some(value) if local => {
                if let Name::Custom(of) = &name
                    && named_for_good(of)
                {
                    self.session_custom.entry(of.clone()).or_default();
                }
                self.local.push((name, value));
            }
            value => {
                let reset = matches!(&name, Name::Known(id) if self.reset_chosen[id.0]);
                self.put_session_value(&name, value, chosen || reset);
            }
        }
        self.refresh();
    }

    /// The text of a setting with what it leaves as it is.
    fn completed<'t>(&self, id: SettingId, text: &'t str) -> Cow<'t, str> {
        match id.setting().name {
            "DateStyle" => {
                date_style(text, &self.effective.text("DateStyle")).map_or(Cow::Borrowed(text), Cow::Owned)
            }
            _ => Cow::Borrowed(text),
        }
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

    fn is_chosen(&self, name: &Name) -> bool {
        matches!(name, Name::Known(id) if self.chosen[id.0])
    }

    fn put_session_value(&mut self, name: &Name, value: Option<Value>, chosen: bool) {
        match (name, value) {
            (Name::Known(id), Some(value)) => {
                put(&mut self.session, id.0, value);
                self.chosen[id.0] = chosen;
            }
            (Name::Custom(name), Some(Value::Text(text))) => {
                self.session_custom.insert(name.clone(), text);
            }
            (Name::Custom(name), _) if !named_for_good(name) => drop(self.session_custom.remove(name)),
            // Once named it is there, as PostgreSQL's placeholders are, with nothing in it.
            (Name::Custom(name), _) => {
                self.session_custom.insert(name.clone(), String::new());
            }
            (Name::Known(_), None) => {}
        }
    }

    fn refresh(&mut self) {
        let mut values = self.session.clone();
        // A transaction is as the defaults say, unless it said otherwise for itself.
        for (of_transaction, default) in TRANSACTION_MODES {
            if let (Some(of_transaction), Some(default)) = (find(of_transaction), find(default)) {
                let default = values[default.0].clone();
                put(&mut values, of_transaction.0, default);
            }
        }
        let mut custom = self.session_custom.clone();
        for (name, value) in &self.local {
            match (name, value) {
                (Name::Known(id), value) => put(&mut values, id.0, value.clone()),
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
            let (before, chosen) = (&self.session[index], self.reset_chosen[index]);
            let resets = match setting.context {
                Context::User => true,
                Context::Superuser => self.is_superuser(),
                _ => false,
            };
            if resets && (*before != reset || self.chosen[index] != chosen) {
                let (session, was_chosen) = (self.session_value(&name), self.chosen[index]);
                self.undo.push(Undo { session, chosen: was_chosen, local: None, name });
                put(&mut self.session, index, reset);
                self.chosen[index] = chosen;
            }
        }
        self.session_custom.retain(|name, _| named_for_good(name));
        self.session_custom.values_mut().for_each(String::clear);
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
            self.put_session_value(&undo.name, undo.session, undo.chosen);
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
}

#[cfg(test)]
mod tests;
