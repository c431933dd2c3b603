//! CREATE and DROP DATABASE, which run outside of any transaction block; and what the session knows of the
//! settings that databases and roles begin with.
//!
//! ALTER DATABASE changes the catalog alone and is planned like other definitions
//! ([`archipel_planner::ddl::database`]).

use archipel_planner::ddl::database::{DatabaseOptions, require_creator, require_database, require_free};
use archipel_sql::ast::{CreateDatabase, DropDatabase, Set, SetValue, SettingChange};
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::session::{Session, role_setting, utility};
use crate::wire::output::Severity;

impl Session {
    /// CREATE DATABASE: its options, then what they ask for.
    pub(super) async fn run_create_database(&mut self, create: &CreateDatabase) -> Result<()> {
        let mut warn = |warning: &SqlError| self.notice(Severity::Warning, warning);
        let options = DatabaseOptions::read(&create.options, &mut warn)?;
        self.create_database(create, &options).await
    }

    /// Makes a database of its template.
    async fn create_database(&mut self, create: &CreateDatabase, options: &DatabaseOptions) -> Result<()> {
        let host = self.host();
        require_creator(options, &host.rights())?;
        options.require_like_template(&host.rights())?;
        require_free(&create.name)?;
        Err(SqlError::unsupported("CREATE DATABASE"))
    }

    /// DROP DATABASE. There is one so far, and whoever asks is in it.
    pub(super) async fn drop_database(&mut self, drop: &DropDatabase) -> Result<()> {
        let database = match require_database(&drop.name) {
            Ok(database) => database,
            Err(_) if drop.if_exists => {
                let message = format!("database \"{}\" does not exist, skipping", drop.name);
                let notice = SqlError::new(SqlState::SUCCESSFUL_COMPLETION, message);
                self.notice(Severity::Notice, &notice);
                return Ok(());
            }
            Err(undefined) => return Err(undefined),
        };
        self.host().rights().require_owner(database)?;
        Err(SqlError::new(SqlState::OBJECT_IN_USE, "cannot drop the currently open database"))
    }

    /// REINDEX DATABASE and SYSTEM are of the database that the session is in, and its owner's.
    pub(super) fn require_own_database(&mut self, name: &str) -> Result<()> {
        let Ok(database) = require_database(name) else {
            let message = "can only reindex the currently open database";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        };
        self.host().rights().require_owner(database)
    }

    /// What a role or a database is to begin its sessions with: the setting must exist, the role in force
    /// may set it, and it must take the value.
    pub(super) fn check_setting_change(&self, change: &SettingChange) -> Result<()> {
        match change {
            SettingChange::Set(set) => self.check_set(set),
            SettingChange::Reset(name) => self.require_settable(name),
            SettingChange::ResetAll => Ok(()),
        }
    }

    pub(super) fn check_set(&self, set: &Set) -> Result<()> {
        if role_setting::is_role_setting(&set.name) {
            return Ok(());
        }
        self.require_settable(&set.name)?;
        // What is in force is a value of it.
        if set.value == SetValue::Current {
            return Ok(());
        }
        match utility::setting_text(&set.name, &set.value)? {
            Some(text) => self.settings.effective().with(&[(set.name.clone(), text)], None).map(drop),
            None => Ok(()),
        }
    }
}
