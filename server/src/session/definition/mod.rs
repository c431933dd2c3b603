//! DDL: plan on the newest catalog, run as one program, publish.
//!
//! Definitions run one at a time. Outside a block one commits on its own: in a text of several
//! statements, what came before it is committed first. Inside BEGIN … COMMIT they wait for the
//! COMMIT ([`block_definition`]).
//!
//! - [`block_definition`]   those of a block, until COMMIT; [`operations`] what they do to the engine's tables; [`rebase`] onto a
//!   catalog that others have changed
//! - [`create_as`] CREATE TABLE AS; [`temporary`] what goes with the session
//! - [`database`]  databases that come and go; [`template`] the rows they begin with; [`vacancy`] until nobody else
//!   is in one
//! - [`lock`]      LOCK TABLE, and the locks of definitions; [`latch`] one definition at a time
//! - [`index_build`] indexes of tables with many rows
//! - [`maintenance`] VACUUM, ANALYZE, REINDEX, CLUSTER
//! - [`staged`]    the definitions of a block; [`source`] where one stands

pub(super) mod block_definition;
mod create_as;
mod database;
mod index_build;
mod latch;
mod lock;
mod maintenance;
mod operations;
mod rebase;
pub(super) mod source;
pub(super) mod staged;
mod template;
pub(crate) mod temporary;
mod vacancy;

use std::sync::Arc;

use archipel_engine::{Client, Completed, Interactive, Refused, Start, Stop, SubmitOptions};
use archipel_planner::bind::policy_reader::PolicyReader;
use archipel_planner::ddl::{Computed, ComputedValue, Copies, DdlEnv, DdlPlan, DistributionCall, Validation};
use archipel_planner::native::{CompileEnv, Notice, compile_statement};
use archipel_procedures::Environment;
use archipel_procedures::plpgsql::lexer::long_names;
use archipel_procedures::plpgsql::shadowed_variables;
use archipel_sql::ast::{
    AlterDatabase, AlterRole, DatabaseAction, Grant, GrantObjects, Rename, RenameAction, RoleAction,
    RoutineClauses, RoutineSetting, Statement,
};
use archipel_sql::catalog::{Authority, Catalog, Language, Required, Requirement, Routine, RoutineRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CheckLevel, ExtraCheck};
use parking_lot::Mutex;

use super::execute::severity_of;
use super::{Session, role_setting};
use crate::run::computed_value::{ComputedRun, ValueRun};
use crate::run::definition::{DefinitionRun, Described, Extent, ValidationRun, WrittenRows};
use crate::settings::setting_name;
use crate::statement::Prepared;
use crate::wire::output::Severity;
use latch::Scope;
use lock::weaker_mode;
use source::Source;

/// Definitions that have failed.
struct Failed {
    error: SqlError,
    /// What can say more of it.
    telling: Option<Box<DefinitionRun>>,
    /// What somebody else has locked that they have ended at.
    refused: Option<Refused>,
}

impl Session {
    /// Runs a definition or a maintenance statement; answers the command tag. `alone` says that
    /// nothing of the same implicit transaction comes after it.
    pub(super) async fn define(
        &mut self,
        statement: &Arc<Statement>,
        prepared: &Arc<Prepared>,
        params: Vec<Datum>,
        alone: bool,
    ) -> Result<String> {
        if self.transaction.is_open() {
            if !self.transaction.is_block() && !self.in_script {
                self.require_outside_of_pipeline(statement)?;
            }
            self.require_outside_of_block(statement)?;
            self.require_nothing_pending(statement)?;
        } else if self.is_behind_others() {
            self.require_outside_of_pipeline(statement)?;
        }
        if self.run_unplanned(statement, prepared.tag).await? {
            return Ok(prepared.tag.to_owned());
        }
        self.check_settings(statement)?;
        match &**statement {
            Statement::Truncate(truncate) if self.fires_truncate(truncate)? => {
                self.require_writable(prepared.tag)?;
                return Box::pin(self.truncate_with_triggers(truncate, alone)).await;
            }
            Statement::Truncate(truncate) if self.joins_transaction(alone) => {
                self.require_writable(prepared.tag)?;
                self.truncate_in_block(truncate).await?;
                return Ok(prepared.tag.to_owned());
            }
            Statement::CreateTableAs(create) => {
                let known = prepared.params.iter().map(|ty| ty.oid);
                let types: Vec<archipel_sql::types::Oid> = match prepared.params.len() {
                    told if told < prepared.declared.len() => prepared.declared.to_vec(),
                    _ => known.collect(),
                };
                if types.len() > params.len() {
                    let message = format!("there is no parameter ${}", params.len() + 1);
                    return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message));
                }
                return self.create_table_as(create, &types, params, alone).await;
            }
            other if self.makes_temporary(other) => self.use_temporary_schema()?,
            _ => {}
        }
        let source = Source::Statement(statement.clone(), prepared.text.clone());
        // Nobody is in a database, or comes into it, while it gets another name.
        let shut = self.vacate_renamed(statement, &source).await?;
        let ran = self.run_or_stage(source, prepared.tag, alone).await;
        if let (Ok(_), Some(shut), Some(staged)) = (&ran, shut, self.transaction.staged_mut()) {
            staged.doors.push(shut);
        }
        ran
    }

    /// Runs what needs no plan: maintenance, and databases that come and go. Whether it was such.
    async fn run_unplanned(&mut self, statement: &Statement, tag: &str) -> Result<bool> {
        match statement {
            Statement::Vacuum(vacuum) | Statement::Analyze(vacuum) => self.maintain(vacuum, tag).await?,
            Statement::Reindex { what, name, concurrently } => {
                self.reindex(what, name.as_ref(), *concurrently).await?;
            }
            Statement::Cluster { table: Some(table), index } => self.cluster(table, index.as_deref()).await?,
            Statement::Cluster { table: None, .. } => {}
            Statement::CreateDatabase(create) => {
                self.require_writable(tag)?;
                self.run_create_database(create).await?;
            }
            Statement::DropDatabase(drop) => {
                self.require_writable(tag)?;
                self.drop_database(drop).await?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What others are to begin with must be settings that the role in force may set, to values they take.
    fn check_settings(&self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::AlterDatabase(AlterDatabase { action: DatabaseAction::Setting(change), .. }) => {
                self.check_setting_change(change)
            }
            Statement::AlterRoleSetting(alter) => self.check_setting_change(&alter.change),
            Statement::AlterRole(AlterRole { action: RoleAction::Set(set), .. }) => self.check_set(set),
            Statement::AlterRole(AlterRole { action: RoleAction::Reset(name), .. }) => {
                self.require_resettable(name)
            }
            Statement::Grant(Grant { objects: GrantObjects::Parameters(names), revoke: false, .. }) => {
                names.iter().try_for_each(|name| role_setting::require_parameter(name))
            }
            Statement::CreateRoutine(create) => self.check_routine_settings(&create.clauses),
            Statement::Rename(Rename { action: RenameAction::Clauses(clauses), .. }) => {
                self.check_routine_settings(clauses)
            }
            _ => Ok(()),
        }
    }

    /// SET and RESET of a routine: what the role may not set, it may have no routine set.
    fn check_routine_settings(&self, clauses: &RoutineClauses) -> Result<()> {
        clauses.settings.iter().try_for_each(|setting| match setting {
            RoutineSetting::Set(set) => self.require_settable(&set.name),
            RoutineSetting::Reset(name) => self.require_settable(name),
            RoutineSetting::ResetAll => Ok(()),
        })
    }

    /// 42501 for a setting that the role in force may not have others begin with.
    fn require_settable(&self, name: &str) -> Result<()> {
        let state = self.catalog_state();
        let rights = Authority { catalog: &state.catalog, role: self.roles().current };
        role_setting::require_giver(&setting_name(name), &rights)
    }

    /// The same for one that they are not to begin with any more. What there is not can be taken away by all.
    fn require_resettable(&self, name: &str) -> Result<()> {
        match self.require_settable(name) {
            Err(error) if error.state() == SqlState::UNDEFINED_OBJECT => Ok(()),
            other => other,
        }
    }

    async fn run_or_stage(&mut self, source: Source, tag: &str, alone: bool) -> Result<String> {
        self.require_writable(tag)?;
        if self.joins_transaction(alone) {
            return Box::pin(self.stage_definition(&source)).await;
        }
        self.commit_implicit().await?;
        let deploys = matches!(&source, Source::Statement(statement, _) if is_deployment(statement));
        let tag = self.run_definition(source, true).await?;
        if deploys {
            crate::design::settle(&self.server, &self.database).await;
            self.host = None;
        }
        Ok(tag)
    }

    /// Runs the distribution functions a statement has called, after it.
    pub(super) async fn run_pending_definitions(&mut self, calls: Vec<DistributionCall>) -> Result<()> {
        for call in calls {
            self.run_or_stage(Source::Distribution(call), "a distribution function", true).await?;
        }
        Ok(())
    }

    /// Runs a definition on its own. `tell` says whether the client hears of its notices.
    pub(super) async fn run_definition(&mut self, source: Source, tell: bool) -> Result<String> {
        let database = self.database.clone();
        // Others may define while this waits for the tables it changes.
        let seen = database.catalog.current().catalog.clone();
        let mut first = self.plan_definition(&source, &seen, &Copies::default())?;
        if self.fills_in_slices(&first) {
            if let Some(tag) = Box::pin(self.build_indexes(&source, (first, &seen))).await? {
                return Ok(tag);
            }
            first = self.plan_definition(&source, &seen, &Copies::default())?;
        }
        let weaker = weaker_mode(&source);
        let named = self.named_table(&source);
        let wanted = self.locks_of(first.operations.iter().map(|operation| (operation, weaker)), named);
        let mut locks = self.lock_for_definitions(wanted).await?;
        let (mut first, mut tell) = (Some(first), tell);
        let mut scope = Scope::of(&source);
        loop {
            let latches = self.latch_definitions(scope).await?;
            // Nothing changes what is the database's own while its latch is held.
            let catalog = database.catalog.current().catalog.clone();
            let plan = match first.take().filter(|_| catalog.same_as(&seen)) {
                Some(first) => first,
                None => self.plan_definition(&source, &catalog, &Copies::default())?,
            };
            if !latches.cover(&plan.changes) {
                scope = Scope::of_changes(&plan.changes);
                continue;
            }
            if std::mem::take(&mut tell) {
                self.definition_notices(&plan);
            }
            let tag = plan.tag.to_owned();
            if plan.is_empty() {
                return Ok(tag);
            }
            let after = catalog.apply(&plan.changes);
            self.check_routines(&plan, &after, &source)?;
            let run = DefinitionRun { stops_at_locks: true, ..self.definition_run(plan)? };
            let ran = self.run_and_publish(run, after).await;
            drop(latches);
            let Err(failed) = ran else { return Ok(tag) };
            match failed.refused {
                // What functions read or lock: its holder may need the latch to end.
                Some(refused) => self.wait_at_refused(&mut locks, refused).await?,
                None => {
                    drop(locks);
                    return Err(self.told(failed).await);
                }
            }
        }
    }

    pub(super) fn definition_notices(&mut self, plan: &DdlPlan) {
        for implied in plan.implied_in_order() {
            self.notice(Severity::Debug, &implied);
        }
        for notice in &plan.notices {
            // Class 01, values that are not taken as they are, databases that are not there.
            let warns = notice.state().0.starts_with(b"01")
                || notice.state().0.starts_with(b"22")
                || notice.state() == SqlState::INVALID_CATALOG_NAME;
            self.notice(if warns { Severity::Warning } else { Severity::Notice }, notice);
        }
    }

    /// Runs definitions and publishes the catalog they lead to. The caller holds the latch of
    /// definitions.
    async fn run_and_publish(
        &mut self,
        run: DefinitionRun,
        after: Catalog,
    ) -> std::result::Result<(), Failed> {
        let changes = run.changes.clone();
        // What it has drawn is its own until the catalog has it.
        let _ran = self.try_definitions(run, None).await?;
        self.database.catalog.publish(after, &changes);
        self.database.routines.forget_changed(&changes);
        self.server.databases.take_up_names(&changes);
        self.host = None;
        Ok(())
    }

    /// Runs definitions, as a statement of an interactive transaction if there is one.
    pub(super) async fn run_definitions(
        &mut self,
        run: DefinitionRun,
        transaction: Option<&Interactive>,
    ) -> Result<()> {
        self.try_definitions(run, transaction).await.map(drop).map_err(|failed| failed.error)
    }

    /// Computes what definitions give the rows that are there and looks at those, as a statement of a
    /// transaction: answers what is left to do.
    pub(super) async fn foresee_definitions(
        &mut self,
        run: DefinitionRun,
        transaction: Option<&Interactive>,
    ) -> Result<DefinitionRun> {
        if !run.foresees() {
            return Ok(run);
        }
        let run = DefinitionRun { extent: Extent::Foresight, ..run };
        let run = self.try_definitions(run, transaction).await.map_err(|failed| failed.error)?;
        Ok(run.after_foresight())
    }

    async fn try_definitions(
        &mut self,
        run: DefinitionRun,
        transaction: Option<&Interactive>,
    ) -> std::result::Result<DefinitionRun, Failed> {
        let client = self.entry().engine.clone();
        let completed = self.submit_definitions(run, transaction, Some(&client)).await;
        self.depend_on(completed.outcome.depends_on);
        let mut program = completed.program;
        if program.refused.is_none() {
            self.tell_notices(std::mem::take(&mut program.notices));
        }
        let Err(stop) = completed.outcome.result else { return Ok(program) };
        let (telling, refused) = (program.telling().map(Box::new), program.refused);
        Err(Failed { error: program.error.unwrap_or_else(|| self.stop_error(stop)), telling, refused })
    }

    /// Tells the client what routines said. Each message goes when it is written: together they may be large.
    pub(super) fn tell_notices(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            self.tell_notice(&notice);
        }
    }

    pub(in crate::session) fn tell_notice(&mut self, notice: &Notice) {
        let severity = severity_of(notice.severity);
        if notice.heard && self.overheard.is_none() {
            self.output.report(severity, &notice.error);
            self.told_notice = true;
        } else {
            self.notice(severity, &notice.error);
        }
    }

    /// The error of definitions that have failed on their own, and hold no table any more.
    async fn told(&mut self, failed: Failed) -> SqlError {
        let Some(telling) = failed.telling else { return failed.error };
        self.submit_definitions(*telling, None, None).await.program.error.unwrap_or(failed.error)
    }

    /// Hands definitions to the engine and waits for them: apart from the executors if they are about
    /// many rows, or if what they compute turns out to take long.
    async fn submit_definitions(
        &self,
        mut run: DefinitionRun,
        transaction: Option<&Interactive>,
        client: Option<&Arc<Client>>,
    ) -> Completed<DefinitionRun> {
        let mut start = Start::apart_if(run.goes_far(&self.server.engine));
        loop {
            run.begins_anew = start != Start::Apart;
            let options = SubmitOptions { transaction, client, start, ..SubmitOptions::default() };
            let submission = self.server.engine.submit(run, options);
            let mut completed = self.cancellable(submission).await;
            if completed.outcome.result != Err(Stop::Interactive) || start == Start::Apart {
                completed.program.begins_anew = false;
                return completed;
            }
            (run, start) = (completed.program, Start::Apart);
        }
    }

    /// Plans a definition, with copies of some tables in the place of those.
    pub(super) fn plan_definition(
        &mut self,
        source: &Source,
        catalog: &Catalog,
        copies: &Copies,
    ) -> Result<DdlPlan> {
        let host = self.host();
        let context = self.context(&host);
        let (search_path, roles) = (self.search_path(), self.roles());
        let temporary_schema = &self.temporary_schema_name();
        let others = match Scope::of(source) {
            Scope::All => self.other_catalogs(),
            Scope::Own | Scope::Shared => Vec::new(),
        };
        let environment = DdlEnv {
            catalog,
            search_path: &search_path,
            context: &context,
            system: matches!(source, Source::System(_)),
            temporary_schema,
            copies,
            numbers: self.database.catalog.numbers(),
            roles,
            others: &others,
        };
        match source {
            Source::Statement(statement, text) => {
                archipel_planner::ddl::require_schemas(text, &environment)?;
                archipel_planner::ddl::plan(statement, &environment)
            }
            Source::System(statement) => archipel_planner::ddl::plan(statement, &environment),
            Source::Distribution(call) => archipel_planner::ddl::plan_distribution(call, &environment),
        }
    }

    /// Compiles new routines against the catalog as it will be: what PostgreSQL reports at
    /// CREATE is reported at CREATE.
    pub(super) fn check_routines(&mut self, plan: &DdlPlan, after: &Catalog, source: &Source) -> Result<()> {
        if !plan.triggers.is_empty() {
            let environment = Environment { catalog: after.clone(), ..self.environment() };
            for (table, name) in &plan.triggers {
                if let Some(table) = after.table_by_oid(*table)
                    && let Some(trigger) = table.trigger(name)
                {
                    self.database.routines.validate_trigger(&table, trigger, &environment)?;
                }
            }
        }
        if plan.routines.is_empty()
            || self.settings.effective().show("check_function_bodies").as_deref() == Some("off")
        {
            return Ok(());
        }
        let environment = Environment { catalog: after.clone(), ..self.environment() };
        for routine in &plan.routines {
            let settings = &routine.traits.settings;
            let (_, others) = role_setting::role_clause(after, self.roles(), settings)?;
            self.settings.effective().with(&others, None)?;
            self.tell_of_names(routine, source)?;
            let validated = self.database.routines.validate(routine, &environment);
            validated.map_err(|error| self.in_definition(error, routine, &environment, source))?;
        }
        Ok(())
    }

    /// An error of a new body, with its place in the statement. A body without quotes is kept otherwise than
    /// it is written, so the one as written is asked once more.
    fn in_definition(
        &self,
        error: SqlError,
        routine: &RoutineRef,
        environment: &Environment,
        source: &Source,
    ) -> SqlError {
        let Some(create) = source.unquoted_body().filter(|_| routine.traits.stored.is_some()) else {
            return source.place(error);
        };
        let mut written = Routine::clone(routine);
        written.traits.stored = None;
        match self.database.routines.validate(&Arc::new(written), environment) {
            Err(told) if told.state() == error.state() && told.message() == error.message() => {
                told.moved(create.before)
            }
            _ => source.place(error),
        }
    }

    /// What is said of the names in a body that is created: that they are too long, and what extra checks
    /// find.
    fn tell_of_names(&mut self, routine: &RoutineRef, source: &Source) -> Result<()> {
        if routine.language != Language::PlPgSql {
            return Ok(());
        }
        for long in long_names(&routine.source, &routine.name) {
            self.notice(Severity::Notice, &long);
        }
        let checks = self.settings.effective().extra_checks;
        let Some(level) = checks.level(ExtraCheck::ShadowedVariables) else { return Ok(()) };
        for found in shadowed_variables(routine) {
            let found = source.place(found);
            match level {
                CheckLevel::Error => return Err(found),
                CheckLevel::Warning => self.notice(Severity::Warning, &found),
            }
        }
        Ok(())
    }

    pub(super) fn definition_run(&mut self, plan: DdlPlan) -> Result<DefinitionRun> {
        let validations = plan.validations.iter().map(|validation| self.validation_run(validation));
        let validations = validations.collect::<Result<_>>()?;
        let mut operations = Vec::with_capacity(plan.operations.len());
        for (place, operation) in plan.operations.iter().enumerate() {
            let columns = plan.computed.get(place).into_iter().flatten();
            operations.push(Described {
                operation: operation.clone(),
                duplicates: plan.duplicate_keys(operation),
                duplicated: Vec::new(),
                computed: columns.map(|column| self.computed_run(column)).collect::<Result<_>>()?,
            });
        }
        for (tree, query) in &plan.duplicates {
            // It says sooner, or more, than the engine does: what it cannot ask keeps nobody from defining.
            let Ok(query) = self.validation_run(query) else { continue };
            let fills = |described: &&mut Described| described.duplicates.iter().any(|(of, _)| of == tree);
            if let Some(described) = operations.iter_mut().find(fills) {
                described.duplicated.push((*tree, query));
            }
        }
        Ok(DefinitionRun {
            validations,
            operations,
            host: Some(self.host()),
            drawn: vec![plan.drawn],
            ..DefinitionRun::of_changes(self.database.oid, plan.changes)
        })
    }

    fn validation_run(&mut self, validation: &Validation) -> Result<Arc<ValidationRun>> {
        let statement = archipel_sql::parser::parse_stored_statement(&validation.query)?;
        let search_path = match &validation.search_path {
            Some(path) => path.to_vec().into(),
            None => self.settings.effective().search_path.clone(),
        };
        let rows = (&validation.query[..], &validation.written[..]);
        let reader = match validation.by_policies {
            true => {
                let (role, row_security) = self.host().reader();
                PolicyReader::Role { role, row_security }
            }
            false => PolicyReader::Exempt,
        };
        let (bound, needed) = self.planning().bind_over_written(&statement, rows, (&search_path, reader))?;
        self.require_routines(&needed)?;
        let environment = self.environment();
        let linker = self.database.routines.linker(&environment);
        let compile = CompileEnv {
            tables: &self.server.engine,
            catalog: &environment.catalog,
            search_path: &search_path,
            routines: &*linker,
        };
        let written = validation.written.iter();
        let written =
            written.map(|rows| WrittenRows { types: rows.types.clone(), parts: rows.parts.clone() });
        Ok(Arc::new(ValidationRun {
            query: compile_statement(&bound, &compile)?,
            error: validation.error.clone(),
            key: validation.key.clone(),
            written: written.collect(),
            each: validation.each,
            rows: Mutex::default(),
        }))
    }

    /// A definition looks at its tables by itself, but functions are called by whoever defines.
    fn require_routines(&mut self, needed: &[Requirement]) -> Result<()> {
        let routines = needed.iter().filter(|needed| matches!(needed.what, Required::Routine(_)));
        let routines: Vec<Requirement> = routines.cloned().collect();
        self.host().rights().require_all(&routines)
    }

    /// Compiles what computes a column of rows that are there.
    fn computed_run(&mut self, column: &Computed) -> Result<ComputedRun> {
        let value = match &column.value {
            ComputedValue::Sequence(sequence) => ValueRun::Sequence(*sequence),
            ComputedValue::WithoutField { types, column, way } => {
                ValueRun::WithoutField { types: types.clone(), column: *column, way: way.clone() }
            }
            ComputedValue::Relabelled { column, ty, labels } => {
                ValueRun::Relabelled { column: *column, ty: *ty, labels: labels.clone() }
            }
            ComputedValue::Query { text, types, of_original, search_path } => {
                let statement = archipel_sql::parser::parse_stored_statement(text)?;
                let declared: Vec<archipel_sql::types::Oid> = types.iter().map(|ty| ty.oid).collect();
                let search_path = match search_path {
                    Some(path) => path.to_vec().into(),
                    None => self.search_path(),
                };
                let (bound, _, _, needed) = self.bind_rows_in(&statement, text, &declared, &search_path)?;
                self.require_routines(&needed)?;
                let environment = self.environment();
                let linker = self.database.routines.linker(&environment);
                let compile = CompileEnv {
                    tables: &self.server.engine,
                    catalog: &environment.catalog,
                    search_path: &search_path,
                    routines: &*linker,
                };
                ValueRun::Query {
                    query: Box::new(compile_statement(&bound, &compile)?),
                    types: types.clone(),
                    of_original: *of_original,
                }
            }
        };
        let (not_null, once) = (column.not_null.clone(), column.once);
        Ok(ComputedRun { column: column.column, ty: column.ty, not_null, once, value })
    }

    pub(super) async fn checkpoint(&mut self) -> Result<()> {
        let engine = self.server.engine.clone();
        let done = self.server.waiting.begin(move || engine.checkpoint())?.await;
        match done {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(SqlError::new(SqlState::IO_ERROR, format!("checkpoint failed: {error}"))),
            Err(error) => Err(SqlError::internal(format!("checkpoint failed: {error}"))),
        }
    }
}

/// Whether what follows from a definition should be there when its client goes on.
fn is_deployment(statement: &Statement) -> bool {
    match statement {
        Statement::CreateSchema(create) => create.elements.iter().any(is_deployment),
        other => matches!(other, Statement::CreateRoutine(_) | Statement::CreateTable(_)),
    }
}
