//! CREATE and DROP DATABASE, which run outside of any transaction block, each one commit; and what the session
//! knows of the settings that databases and roles begin with.
//!
//! ALTER DATABASE changes the catalog alone and is planned like other definitions
//! ([`archipel_planner::ddl::database`]).

use std::sync::Arc;

use archipel_engine::DdlOp;
use archipel_engine::id::{SequenceId, TreeId};
use archipel_migrations::STEPS;
use archipel_planner::ddl::database::{
    DatabaseOptions, require_creator, require_droppable, require_free, require_free_oid, require_template,
    undefined_database,
};
use archipel_planner::ddl::sequence_definition;
use archipel_sql::ast::{CreateDatabase, DropDatabase, Set, SetValue, SettingChange};
use archipel_sql::catalog::{
    Authority, Catalog, CatalogChange, Database as DatabaseRow, DatabaseCopy, DrawnOids, Migration, Numbered,
    Object, ObjectKind, ObjectNumbers,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::database::Database;
use crate::run::definition::DefinitionRun;
use crate::session::{Session, role_setting, utility};
use crate::settings::foreign;
use crate::wire::output::Severity;

/// The number of a new database. One that is asked for must lie ahead of those that were given out: numbers of
/// databases and of objects come from one source.
fn number_for(options: &DatabaseOptions, numbers: &ObjectNumbers, drawn: &DrawnOids) -> Result<Oid> {
    let Some(oid) = options.oid else {
        let message = "there are no numbers left for new objects";
        let none = || SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
        return numbers.draw_oids(Some(drawn), 0, 1).map(Oid).ok_or_else(none);
    };
    if numbers.choose(oid.0, Some(drawn)) {
        return Ok(oid);
    }
    let end = Numbered::Oid.end();
    if oid.0 >= end {
        return Err(SqlError::unsupported(format_args!("a database OID of {end} or more")));
    }
    let message = format!("database OID {oid} is already in use");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        .with_hint("Choose one that is greater than those of all objects."))
}

impl Session {
    /// CREATE DATABASE: its options, then what they ask for.
    pub(super) async fn run_create_database(&mut self, create: &CreateDatabase) -> Result<()> {
        let mut warn = |warning: &SqlError| self.notice(Severity::Warning, warning);
        let options = DatabaseOptions::read(&create.options, &mut warn)?;
        self.create_database(create, &options).await
    }

    /// Makes a database of its template, in which nobody else is meanwhile.
    async fn create_database(&mut self, create: &CreateDatabase, options: &DatabaseOptions) -> Result<()> {
        let host = self.host();
        let known = host.catalog.catalog.clone();
        self.check_create(create, options, &known)?;
        self.commit_implicit().await?;
        let template = require_template(options, &host.rights())?.oid;
        let Some(template) = self.server.databases.numbered(template) else {
            return Err(undefined_database(&options.template));
        };
        let _shut = self.shut_door(&template).await?;
        self.wait_for_others(&template, "source ").await?;
        let drawn = DrawnOids::default();
        let oid = number_for(options, template.catalog.numbers(), &drawn)?;
        let made = match self.copy_database(&template, &create.name, oid).await {
            Ok(copy) => {
                let made = self.open_database((create, options), &template, &copy).await;
                if made.is_err() {
                    self.drop_copied_rows(&copy).await;
                }
                made
            }
            Err(error) => Err(error),
        };
        if made.is_err() {
            template.catalog.numbers().give_back(oid.0);
        }
        made
    }

    /// Copies a template's catalog, and its rows. Nobody is in it; its latch keeps the server's own work out.
    async fn copy_database(
        &mut self,
        template: &Arc<Database>,
        name: &str,
        oid: Oid,
    ) -> Result<DatabaseCopy> {
        let _latch = self.latch_own(template).await?;
        if template.has_ended() {
            return Err(undefined_database(&template.name()));
        }
        let catalog = template.catalog.current().catalog.clone();
        let copy = catalog.copied(oid, name, template.catalog.numbers())?;
        if let Err(error) = self.copy_template_rows(&copy).await {
            self.drop_copied_rows(&copy).await;
            return Err(error);
        }
        Ok(copy)
    }

    /// What stands against CREATE DATABASE, in PostgreSQL's order; answers the owner.
    fn check_create(
        &self,
        create: &CreateDatabase,
        options: &DatabaseOptions,
        catalog: &Catalog,
    ) -> Result<Oid> {
        let authority = Authority { catalog, role: self.roles().current };
        let owner = require_creator(options, &authority)?;
        require_template(options, &authority)?;
        options.require_like_template(&authority)?;
        require_free(&create.name, catalog)?;
        require_free_oid(options, catalog)?;
        Ok(owner)
    }

    /// Commits a new database and opens it. What the checks have read may have changed while rows were copied;
    /// from here on it cannot.
    async fn open_database(
        &mut self,
        (create, options): (&CreateDatabase, &DatabaseOptions),
        template: &Arc<Database>,
        copy: &DatabaseCopy,
    ) -> Result<()> {
        let _latches = self.latch_database(template).await?;
        let owner = self.check_create(create, options, &self.database.catalog.current().catalog)?;
        let oid = copy.catalog.database_oid();
        let row = DatabaseRow {
            is_template: options.is_template,
            allow_connections: options.allow_connections,
            connection_limit: options.connection_limit,
            ..DatabaseRow::new(oid, &create.name, owner)
        };
        let shared = [CatalogChange::Put(Object::Database(row))];
        let step = STEPS.iter().find(|step| step.version == copy.catalog.migration());
        let step = step.map(|step| {
            let (version, name) = (step.version, step.name.to_owned());
            CatalogChange::Put(Object::Migration(Migration { version, name }))
        });
        let changes = copy.changes.iter().cloned().chain(shared.clone()).chain(step).collect();
        let operations = copy.sequences.iter().map(|(old, new)| DdlOp::AlterSequence {
            def: sequence_definition(new),
            restart: None,
            from: SequenceId(old.file),
        });
        let run = DefinitionRun::of_operations(oid, operations.collect(), changes);
        self.run_definitions(run, None).await?;
        let database = self.server.databases.add(copy.catalog.clone());
        database.catalog.publish(copy.catalog.clone(), &shared);
        let follow = crate::design::follow(self.server.clone(), database);
        self.server.analytical_threads.spawn(follow);
        self.host = None;
        Ok(())
    }

    /// DROP DATABASE: nobody may be in it, and WITH (FORCE) nobody else stays.
    pub(super) async fn drop_database(&mut self, drop: &DropDatabase) -> Result<()> {
        let host = self.host();
        let row = match require_droppable(&drop.name, &host.rights()) {
            Ok(row) => row,
            Err(undefined) if drop.if_exists && undefined.state() == SqlState::INVALID_CATALOG_NAME => {
                let message = format!("database \"{}\" does not exist, skipping", drop.name);
                let notice = SqlError::new(SqlState::SUCCESSFUL_COMPLETION, message);
                self.notice(Severity::Notice, &notice);
                return Ok(());
            }
            Err(refused) => return Err(refused),
        };
        self.commit_implicit().await?;
        let Some(database) = self.server.databases.numbered(row.oid) else {
            return Err(undefined_database(&drop.name));
        };
        let _shut = self.shut_door(&database).await?;
        if drop.force {
            self.end_others(&database)?;
        }
        self.wait_for_others(&database, "").await?;
        // Sessions that end need this latch: only now.
        let _latches = self.latch_database(&database).await?;
        let known = self.database.catalog.current().catalog.clone();
        let authority = Authority { catalog: &known, role: self.roles().current };
        if require_droppable(&drop.name, &authority)?.oid != database.oid {
            return Err(undefined_database(&drop.name));
        }
        self.erase_database(&database, &known).await
    }

    /// Takes a database away, in one commit. The caller holds its latch, and nobody is in it.
    async fn erase_database(&mut self, database: &Arc<Database>, known: &Catalog) -> Result<()> {
        let catalog = database.catalog.current().catalog.clone();
        let tables = catalog.tables().filter(|table| table.is_stored());
        let sequences = catalog.sequences().map(|sequence| DdlOp::DropSequence(SequenceId(sequence.file)));
        let operations = tables.map(|table| DdlOp::DropTable(TreeId(table.tree))).chain(sequences).collect();
        let mut changes = vec![CatalogChange::Drop(ObjectKind::Database, database.oid)];
        if known.shared_comments(database.oid).is_some() {
            changes.push(CatalogChange::Drop(ObjectKind::SharedComments, database.oid));
        }
        let run = DefinitionRun::of_operations(database.oid, operations, changes.clone());
        self.run_definitions(DefinitionRun { drops_database: true, ..run }, None).await?;
        self.server.databases.remove(database.oid);
        database.catalog.numbers().give_back(database.oid.0);
        database.catalog.publish(catalog, &changes);
        self.server.sessions.note_dropped_database();
        self.host = None;
        Ok(())
    }

    /// REINDEX DATABASE and SYSTEM are of the database that the session is in, and its owner's.
    pub(super) fn require_own_database(&mut self, name: &str) -> Result<()> {
        let host = self.host();
        let own = host.rights().catalog.database_oid();
        if host.rights().catalog.database_named(name).is_none_or(|database| database.oid != own) {
            let message = "can only reindex the currently open database";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        host.rights().require_owner(own)
    }

    /// What a role or a database is to begin its sessions with: the setting must exist, the role in force
    /// may set it, and it must take the value.
    pub(super) fn check_setting_change(&self, change: &SettingChange) -> Result<()> {
        match change {
            SettingChange::Set(set) => self.check_set(set),
            SettingChange::Reset(name) => self.require_resettable(name),
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
            // Whether it may be given was asked above.
            Some(text) => match foreign::find(&set.name) {
                Some(known) => known.canonical(&text, true).map(drop),
                None => self.settings.effective().with(&[(set.name.clone(), text)], None).map(drop),
            },
            None => Ok(()),
        }
    }
}
