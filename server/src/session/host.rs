//! What SQL functions and system views may ask of the session and the server.
//!
//! A host is made when a session's settings or its catalog change, and shared by the programs
//! it submits, which may run on other threads. Effects on the session (`set_config`) are kept
//! until the statement is over and take hold only if it succeeded. A role that is set so counts at once for what
//! comes later in the statement ([`Host::roles`]): who is told, what is asked of rights. What the statement's own
//! tables need was asked before it ran, and the search path is the one that its names were looked up in.

mod answers;
pub mod asked;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use archipel_procedures::Environment;
use archipel_sql::catalog::{Authority, LookupRecorder, SessionRoles, TypesAlong};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::style::Quoting;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

pub use self::asked::PendingSetting;
use self::asked::{Asked, Requests};
pub use super::memory::{CursorsShown, Memory, PreparedByName};
use super::role_setting;
use crate::catalog::CatalogState;
use crate::database::Database;
use crate::server::Server;
use crate::sessions::SessionEntry;
use crate::settings::session::Effective;

/// See the module's head.
pub struct Host {
    pub server: Arc<Server>,
    pub database: Arc<Database>,
    pub entry: Arc<SessionEntry>,
    pub settings: Arc<Effective>,
    pub catalog: Arc<CatalogState>,
    /// Where names are looked up: as the settings say, without what the role may not look into.
    pub search_path: Arc<[String]>,
    /// Sequences the role was found to have a right on: the sequence and the rights asked for.
    allowed_sequences: Mutex<FxHashSet<(u32, u16)>>,
    pub memory: Arc<Memory>,
    /// What functions of the statement ask for beside it.
    pub asked: Arc<Asked>,
    /// Whether roles that functions have set are those of who asks this host: not where it serves a routine that
    /// runs in another's name.
    follows_asked: bool,
    /// This host as routines with SET clauses see it.
    pub with_settings: OnceLock<Box<WithSettings>>,
    /// Nobody waits any longer for the query that this host was made for; never set where it
    /// serves a session.
    given_up: Arc<AtomicBool>,
    /// Whether that query outlives the statement which began it: who asks a statement to stop does not
    /// mean the query.
    outlives: bool,
}

/// A host with some settings changed, or in another's name, and the next such: a list that only
/// grows, one entry for each combination of SET clauses and owners that was called.
pub struct WithSettings {
    acting: Option<Oid>,
    settings: Vec<(String, String)>,
    host: Host,
    next: OnceLock<Box<WithSettings>>,
}

impl Host {
    /// The host of a session's settings and catalog.
    pub fn new(
        (server, database, entry): (Arc<Server>, Arc<Database>, Arc<SessionEntry>),
        settings: Arc<Effective>,
        catalog: Arc<CatalogState>,
        memory: Arc<Memory>,
    ) -> Host {
        let authority = Authority { catalog: &catalog.catalog, role: settings.roles.current };
        let search_path = authority.path(&settings.written_path);
        Host {
            server,
            database,
            entry,
            settings,
            catalog,
            search_path,
            allowed_sequences: Mutex::default(),
            memory,
            asked: Default::default(),
            follows_asked: true,
            with_settings: Default::default(),
            given_up: Default::default(),
            outlives: false,
        }
    }

    /// This host for one query that goes on beside the session, until `given_up` says that nobody
    /// waits for it any longer: by then the session may run another statement.
    pub fn beside(&self, given_up: Arc<AtomicBool>) -> Host {
        Host { given_up, ..self.with(self.settings.clone()) }
    }

    /// The same for the query of a cursor, which goes on between the statements that fetch its rows.
    pub fn between_statements(&self, given_up: Arc<AtomicBool>) -> Host {
        Host { outlives: true, ..self.beside(given_up) }
    }

    /// Whether somebody has asked the statement to stop that this host serves.
    fn is_cancelled(&self) -> bool {
        !self.outlives && self.entry.is_cancelled()
    }

    /// A host with other settings that asks the same session.
    fn with(&self, settings: Arc<Effective>) -> Host {
        Host {
            asked: self.asked.clone(),
            follows_asked: self.follows_asked,
            given_up: self.given_up.clone(),
            outlives: self.outlives,
            ..Host::new(
                (self.server.clone(), self.database.clone(), self.entry.clone()),
                settings,
                self.catalog.clone(),
                self.memory.clone(),
            )
        }
    }

    /// This host with what is looked up in its catalog written down: what is bound with it depends on
    /// that.
    pub fn noting(&self) -> (Host, Arc<LookupRecorder>) {
        let (catalog, asked) = self.catalog.catalog.noting();
        let added_labels = self.catalog.added_labels.clone();
        let catalog = Arc::new(CatalogState { catalog, version: self.catalog.version, added_labels });
        let host = Host {
            server: self.server.clone(),
            database: self.database.clone(),
            entry: self.entry.clone(),
            settings: self.settings.clone(),
            catalog,
            search_path: self.search_path.clone(),
            allowed_sequences: Mutex::default(),
            memory: self.memory.clone(),
            asked: self.asked.clone(),
            follows_asked: self.follows_asked,
            with_settings: Default::default(),
            given_up: self.given_up.clone(),
            outlives: self.outlives,
        };
        (host, asked)
    }

    /// Whose rights count: the session's roles, or those that functions of the statement have set.
    pub fn roles(&self) -> SessionRoles {
        let asked = if self.follows_asked { self.asked.look(Requests::roles) } else { None };
        asked.unwrap_or(self.settings.roles)
    }

    /// What the role in force may do.
    pub fn rights(&self) -> Authority<'_> {
        Authority { catalog: &self.catalog.catalog, role: self.roles().current }
    }

    /// For whom policies are looked at: the role in force, and its setting of `row_security`.
    pub fn reader(&self) -> (Oid, bool) {
        (self.roles().current, self.settings.row_security)
    }

    /// What routines are compiled against.
    pub fn environment(&self) -> Environment {
        let environment = Environment::new(
            self.catalog.catalog.clone(),
            Arc::new(self.server.engine.clone()),
            self.settings.written_path.clone(),
            self.roles().current,
        );
        let settings = &self.settings;
        let (conflict, row_security) = (settings.variable_conflict, settings.row_security);
        Environment { conflict, row_security, strings: settings.strings, ..environment }
    }

    /// This host with other settings, in the name of another role if one is given.
    fn changed(
        &self,
        settings: &[(String, String)],
        acting: Option<Oid>,
    ) -> Result<Option<&dyn SessionHost>> {
        let mut place = &self.with_settings;
        loop {
            if let Some(known) = place.get() {
                if known.settings == settings && known.acting == acting {
                    return Ok(Some(&known.host));
                }
                place = &known.next;
                continue;
            }
            let acting_role = acting.and_then(|role| self.catalog.catalog.role_by_oid(role));
            // Its owner's rights are to be no way to those of whoever has called it.
            let within_definer = acting.is_some() || self.settings.within_definer;
            if let Some((name, _)) = settings.iter().find(|(name, _)| role_setting::is_role_setting(name))
                && within_definer
            {
                let message = format!("cannot set parameter \"{name}\" within security-definer function");
                return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
            }
            let (role, others) = role_setting::role_clause(&self.catalog.catalog, self.roles(), settings)?;
            let role = role.or(acting_role.map(|role| role_setting::role_value(&role)));
            let follows_asked = self.follows_asked && role.is_none();
            let mut changed = self.settings.with(&others, role)?;
            changed.within_definer = within_definer;
            let host = Host { follows_asked, ..self.with(Arc::new(changed)) };
            // Whoever was faster made the same or another; the list is looked through from here.
            let next = WithSettings { acting, settings: settings.to_vec(), host, next: OnceLock::new() };
            let _ = place.set(Box::new(next));
        }
    }

    /// A program starts (again), or its statement has failed: what an undone run asked for is forgotten.
    pub fn forget_asked(&self) {
        drop(self.asked.take());
    }

    /// A context for work outside any transaction: literals, parameters, constant folding.
    pub fn context(&self) -> FunctionContext<'_> {
        FunctionContext { now: crate::clock::now(), session: self }
    }
}

impl TypeNames for Host {
    fn user_type(&self, ty: Type) -> Option<String> {
        TypesAlong { catalog: &self.catalog.catalog, search_path: &self.search_path }
            .quoted(ty, self.settings.style.quoting)
    }

    fn quoting(&self) -> Quoting {
        self.settings.style.quoting
    }
}
