//! From text to a [`Prepared`] statement: parse, bind, compile; remembered per thread. And what runs
//! without a text of its own: the body of a DO, a trigger's function, the rows of a TRUNCATE.

use std::sync::Arc;

use archipel_planner::bind::policy_reader::PolicyReader;
use archipel_planner::bind::{BindEnv, VariableScope, bind_statement};
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind, OutputColumn, Rel, SetCall, SetItem};
use archipel_planner::ddl::Written;
use archipel_planner::native::{
    CompileEnv, CompiledStatement, compile_explained, compile_statement, is_outdated,
};
use archipel_planner::prepared::bind_arguments;
use archipel_planner::route::{Class, classify};
use archipel_procedures::Environment;
use archipel_sql::ast::{ExplainOptions, Statement, StatementText};
use archipel_sql::catalog::{Lookups, Required, Requirement, RoutineRef, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::interrupt;
use archipel_sql::types::{Oid, Type};

use super::basis::Basis;
use super::planning::Planning;
use super::{Body, Code, Effect, Origin, Prepared, RowPlan};
use crate::run::call::CallPlan;
use crate::session::Session;
use crate::session::execute::RECOMPILES_MAX;
use crate::session::host::Host;

/// See [`Session::bind_rows_in`].
type BoundRows = (BoundStatement, BoundParams, bool, Vec<Requirement>);

/// The parameters of a bound statement.
pub(crate) struct BoundParams {
    pub types: Vec<Type>,
    /// What clients are told of them, where some are of domains.
    told: Option<Arc<[Type]>>,
}

impl Session {
    /// What routines are compiled against.
    pub(crate) fn environment(&self) -> Environment {
        let environment = Environment::new(
            self.catalog_state().catalog.clone(),
            Arc::new(self.server.engine.clone()),
            self.settings.effective().written_path.clone(),
            self.roles().current,
        );
        let settings = self.settings.effective();
        let (conflict, row_security) = (settings.variable_conflict, settings.row_security);
        Environment { conflict, row_security, strings: settings.strings, ..environment }
    }

    /// The same as of the last binding. The catalog may have changed since: a routine of one version
    /// must not be compiled against another, where those that it calls are new.
    fn environment_of_binding(&self) -> Environment {
        match &self.host {
            Some(host) => host.environment(),
            None => self.environment(),
        }
    }

    /// A statement of the extended protocol: at most one in the text.
    pub(crate) async fn prepare_text(&mut self, text: &Arc<str>, declared: &[Oid]) -> Result<Arc<Prepared>> {
        let key = self.cache_key(text, declared);
        self.count(|counters| &counters.statements_sought, 1);
        if let Some(prepared) = self.cached(&key) {
            self.count(|counters| &counters.found_by_text, 1);
            self.allowed_now(&prepared)?;
            return Ok(prepared);
        }
        let statements = self.read(text).await?;
        if statements.len() > 1 {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "cannot insert multiple commands into a prepared statement",
            ));
        }
        let prepared = self.prepare_settled(text, statements, declared).await?;
        self.remember(key, &prepared);
        Ok(prepared)
    }

    /// The INSERT that gives a table the rows that it was just made for. It is not remembered: anybody
    /// else's of the same text needs the right to insert.
    pub(crate) async fn prepare_filling(
        &mut self,
        text: &Arc<str>,
        declared: &[Oid],
        table: Oid,
    ) -> Result<Arc<Prepared>> {
        let statements = self.read(text).await?;
        self.prepare_settled_as(Origin::Filling(table), text, statements, declared).await
    }

    /// As [`Session::prepare_parsed`]; waits for whoever is just defining what the statement uses.
    pub(crate) async fn prepare_settled(
        &mut self,
        text: &Arc<str>,
        statements: Vec<StatementText>,
        declared: &[Oid],
    ) -> Result<Arc<Prepared>> {
        self.prepare_settled_as(Origin::Text, text, statements, declared).await
    }

    pub(super) async fn prepare_settled_as(
        &mut self,
        origin: Origin,
        text: &Arc<str>,
        statements: Vec<StatementText>,
        declared: &[Oid],
    ) -> Result<Arc<Prepared>> {
        let mut prepared = self.prepare_as(origin.clone(), text, statements, declared, None).await;
        for _ in 0..RECOMPILES_MAX {
            if !prepared.as_ref().is_err_and(is_outdated) {
                break;
            }
            self.await_definitions().await;
            let statements = self.read(text).await?;
            prepared = self.prepare_as(origin.clone(), text, statements, declared, None).await;
        }
        prepared
    }

    /// Binds and compiles the only statement of `text` (or the empty text).
    pub(crate) async fn prepare_parsed(
        &mut self,
        text: &Arc<str>,
        statements: Vec<StatementText>,
        declared: &[Oid],
    ) -> Result<Arc<Prepared>> {
        self.prepare_as(Origin::Text, text, statements, declared, None).await
    }

    /// The same of the text of a shape.
    pub(super) async fn prepare_shaped(
        &mut self,
        text: &Arc<str>,
        statements: Vec<StatementText>,
        declared: &[Oid],
    ) -> Result<Arc<Prepared>> {
        self.prepare_as(Origin::Shape, text, statements, declared, None).await
    }

    /// `within`: where its names are looked up, if not where the session looks.
    pub(crate) async fn prepare_as(
        &mut self,
        origin: Origin,
        text: &Arc<str>,
        mut statements: Vec<StatementText>,
        declared: &[Oid],
        within: Option<&Arc<[String]>>,
    ) -> Result<Arc<Prepared>> {
        // Compiling takes longer than replies should wait.
        self.executor.outbox.write();
        let search_path = within.cloned().unwrap_or_else(|| self.search_path());
        let statement = statements.pop().map(|only| only.statement);
        let mut prepared = Prepared {
            text: text.clone(),
            origin,
            tag: statement.as_ref().map_or("", Statement::tag),
            params: Arc::from([]),
            told: None,
            columns: None,
            body: Body::Empty,
            catalog_version: self.catalog_version(),
            basis: None,
            search_path,
            session_path: self.settings.effective().search_path.clone(),
            declared: declared.into(),
            session_dependent: false,
            role: self.roles().current,
            denied: None,
            pace: Default::default(),
        };
        match statement {
            None => {}
            Some(Statement::Unsupported { what }) => return Err(Statement::refusal(&what)),
            Some(
                statement @ (Statement::Query(_)
                | Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::Merge(_)
                | Statement::Call(_)),
            ) => {
                if self.in_failed_transaction() {
                    return Err(failed_transaction());
                }
                prepared = self.prepare_rows(statement, prepared, within).await?;
            }
            Some(Statement::Positioned(positioned)) => {
                Box::pin(self.prepare_positioned(positioned, declared, &mut prepared)).await?;
            }
            Some(statement) => {
                prepared.columns = self.utility_columns(&statement)?.map(Arc::from);
                // Names of this session decide what these answer.
                prepared.session_dependent = matches!(statement, Statement::Execute(_) | Statement::Fetch(_));
                // Its query's are found by preparing that.
                prepared.params = Box::pin(self.utility_parameters(&statement, text, declared)).await?;
                prepared.body = Body::Utility(Arc::new(statement));
            }
        }
        self.allowed_now(&prepared)?;
        // Where something was only tried, its end may have looked like a failure.
        interrupt::check()?;
        Ok(Arc::new(prepared))
    }

    /// What runs code that no statement's text was compiled to.
    pub(crate) fn prepared_code(
        &self,
        origin: Origin,
        text: &str,
        bound: BoundStatement,
        code: Code,
    ) -> Arc<Prepared> {
        let plan = Arc::new(RowPlan::new(bound, code, Effect::Writes));
        let session_path = self.settings.effective().search_path.clone();
        Arc::new(Prepared {
            text: text.into(),
            tag: if matches!(origin, Origin::Block) { "DO" } else { "" },
            origin,
            params: Arc::from([]),
            told: None,
            columns: None,
            body: Body::Rows(plan),
            catalog_version: self.catalog_version(),
            basis: None,
            search_path: session_path.clone(),
            session_path,
            declared: Arc::from([]),
            session_dependent: true,
            role: self.roles().current,
            denied: None,
            pace: Default::default(),
        })
    }

    /// The same in pieces: as a run can take that has to stop for the session.
    pub(crate) async fn renew_in_pieces(&mut self, prepared: &Prepared) -> Result<Arc<Prepared>> {
        if matches!(prepared.origin, Origin::Block) {
            return self.prepare_block(&prepared.text, true).await;
        }
        let renewed = self.renew(prepared).await?;
        if matches!(prepared.origin, Origin::Part) {
            return Ok(renewed);
        }
        renewed.allowed()?;
        let environment = Environment { in_pieces: true, ..self.environment_of_binding() };
        let environment = environment.around_calls(renewed.search_path.clone());
        let Body::Rows(plan) = &renewed.body else { return Ok(renewed) };
        let routines = self.database.routines.clone();
        let linker = routines.linker(&environment);
        let compile = CompileEnv {
            tables: &self.server.engine,
            catalog: &environment.catalog,
            search_path: &environment.search_path,
            routines: &*linker,
        };
        let call = match &plan.bound {
            BoundStatement::Call(call) => {
                CallPlan::new(call, routines.program(&call.routine, &environment)?, &compile)?
            }
            BoundStatement::Query(_) => {
                let program = routines.query_in_pieces(&renewed.text, &renewed.params, &environment)?;
                CallPlan::of_query(program, &renewed.params, &compile)?
            }
            bound => {
                let (text, params) = (&renewed.text, &renewed.params);
                match routines.statement_in_pieces(text, bound, params, &environment)? {
                    Some(program) => CallPlan::of_query(program, params, &compile)?,
                    None => return Ok(renewed),
                }
            }
        };
        let counts = plan.counts.clone();
        let plan = RowPlan::new(plan.bound.clone(), Code::Call(call), Effect::Writes).counting(counts);
        Ok(Arc::new(Prepared {
            body: Body::Rows(Arc::new(plan)),
            basis: None,
            session_dependent: true,
            denied: None,
            pace: Default::default(),
            ..Prepared::clone(&renewed)
        }))
    }

    /// Prepares a statement again after the engine found its plan outdated.
    pub(crate) async fn renew(&mut self, prepared: &Prepared) -> Result<Arc<Prepared>> {
        match (&prepared.origin, &prepared.body) {
            (
                origin @ (Origin::Text
                | Origin::Shape
                | Origin::Filling(_)
                | Origin::Arguments(..)
                | Origin::Cursor(_)),
                _,
            ) => {
                if let Some(renewed) = self.recompiled(prepared).await {
                    let renewed = renewed?;
                    // Its names may mean something else to those who find it by its text.
                    if matches!(origin, Origin::Text)
                        && let Some(renewed) = self.still_meant(&renewed)
                    {
                        let key = self.cache_key(&renewed.text, &renewed.declared);
                        self.remember(key, &renewed);
                    }
                    return Ok(renewed);
                }
                let statements = self.read(&prepared.text).await?;
                let (text, within) = (&prepared.text, Some(&prepared.search_path));
                let renewed =
                    self.prepare_as(origin.clone(), text, statements, &prepared.declared, within).await?;
                if renewed.params != prepared.params {
                    // The values that wait for it are of the types that were told.
                    let told: Vec<Oid> = prepared.params.iter().map(|ty| ty.oid).collect();
                    let statements = self.read(&prepared.text).await?;
                    return self.prepare_as(origin.clone(), text, statements, &told, within).await;
                }
                if matches!(origin, Origin::Text) && renewed.search_path == self.search_path() {
                    let key = self.cache_key(&prepared.text, &prepared.declared);
                    self.remember(key, &renewed);
                }
                Ok(renewed)
            }
            (Origin::Block, _) => self.prepare_block(&prepared.text, false).await,
            (Origin::Trigger { table, trigger, event, asked }, Body::Rows(plan)) => {
                let Code::Trigger(call) = &plan.code else { return Err(not_a_call()) };
                let table = self.as_it_is(table);
                self.prepare_trigger(&table, *trigger, *event, call.rows.clone(), *asked)
            }
            (Origin::Trigger { .. }, _) => Err(not_a_call()),
            (Origin::Part, Body::Rows(plan)) => {
                let plan = self.planning().compile_part(plan.bound.clone())?;
                Ok(Arc::new(Prepared { body: Body::Rows(Arc::new(plan)), ..Prepared::clone(prepared) }))
            }
            (Origin::Part, _) => Err(not_a_call()),
            (Origin::Emptied(table), _) => {
                let table = self.as_it_is(table);
                self.prepare_emptying(&table)
            }
        }
    }

    /// A table's definition by now.
    fn as_it_is(&self, table: &TableRef) -> TableRef {
        self.catalog_state().catalog.table_by_oid(table.oid).unwrap_or_else(|| table.clone())
    }

    /// Binds and compiles a row statement, elsewhere if its text is long. `within` is as for
    /// [`Session::prepare_as`].
    async fn prepare_rows(
        &mut self,
        statement: Statement,
        prepared: Prepared,
        within: Option<&Arc<[String]>>,
    ) -> Result<Prepared> {
        let (text, statement, within) = (prepared.text.clone(), Arc::new(statement), within.cloned());
        let work = move |planning: &Planning| -> Result<Prepared> {
            let mut prepared = prepared.clone();
            // What the role may look into may be another when it is planned once more.
            prepared.search_path = match &within {
                Some(path) => path.clone(),
                None => planning.host.search_path.clone(),
            };
            planning.prepare(&statement, &mut prepared)?;
            Ok(prepared)
        };
        let good = |prepared: Prepared, host: &Host| -> Option<Prepared> {
            prepared.if_meant(host).map(Arc::unwrap_or_clone)
        };
        let (prepared, _) = self.plan(&text, work, good).await?;
        Ok(prepared)
    }

    /// Binds a row statement with names looked up along this path: the tree, its parameters' types,
    /// whether it is this session's only, and what whoever runs it must be allowed.
    pub(crate) fn bind_rows_in(
        &mut self,
        statement: &Statement,
        text: &str,
        declared: &[Oid],
        search_path: &[String],
    ) -> Result<BoundRows> {
        self.planning().bind(statement, text, declared, (search_path, &Origin::Text))
    }

    /// Compiles a bound row statement.
    pub(crate) fn compile_rows(&mut self, bound: BoundStatement) -> Result<RowPlan> {
        self.planning().compile(bound)
    }
}

impl Planning {
    /// Binds and compiles a row statement into what has been prepared of it.
    fn prepare(&self, statement: &Statement, prepared: &mut Prepared) -> Result<()> {
        match prepared.origin {
            Origin::Cursor(_) => self.prepare_keyed(statement, prepared),
            _ => self.prepare_as_written(statement, prepared),
        }
    }

    pub(super) fn prepare_as_written(&self, statement: &Statement, prepared: &mut Prepared) -> Result<()> {
        let origin = prepared.origin.clone();
        let (text, declared) = (prepared.text.clone(), prepared.declared.clone());
        let search_path = prepared.search_path.clone();
        let (noting, asked) = self.noting();
        let (bound, params, session_dependent, needed) =
            noting.bind(statement, &text, &declared, (&search_path[..], &origin))?;
        prepared.denied = self.host.rights().require_all(&needed).err().map(Box::new);
        prepared.columns = result_columns(&bound).map(Arc::from);
        prepared.catalog_version = self.host.catalog.version;
        let plan = match self.compile_noting(bound) {
            Ok((plan, compiled)) => {
                prepared.basis = Some(Basis::new(asked.finish(), compiled, needed, self.host.reader()));
                plan
            }
            // PostgreSQL looks into the bodies of functions when the statement runs.
            Err(error) if is_of_body(&error) => {
                prepared.denied.get_or_insert_with(|| Box::new(error));
                // Nothing says until when, and for whom: it is analysed again before it runs again.
                prepared.catalog_version = 0;
                self.compile(empty_query())?
            }
            Err(error) => return Err(error),
        };
        prepared.session_dependent = session_dependent;
        prepared.params = params.types.into();
        prepared.told = params.told;
        prepared.body = Body::Rows(Arc::new(plan));
        Ok(())
    }

    /// As [`Session::bind_rows_in`]; what the statement was made from may say more of it.
    pub(crate) fn bind(
        &self,
        statement: &Statement,
        text: &str,
        declared: &[Oid],
        (search_path, origin): (&[String], &Origin),
    ) -> Result<BoundRows> {
        let host = &self.host;
        let context = self.context();
        let mut environment = BindEnv::new(&host.catalog.catalog, search_path, &context);
        environment.text = text;
        environment.filled = match origin {
            Origin::Filling(table) => Some(*table),
            _ => None,
        };
        let (role, row_security) = host.reader();
        environment.reader = PolicyReader::Role { role, row_security };
        environment.params_are_literals = matches!(origin, Origin::Shape);
        for (number, oid) in declared.iter().enumerate() {
            let is_declared = oid.0 != 0 && *oid != Oid::UNKNOWN;
            let (plain, domain) = host.catalog.catalog.plain_type(Type::of(*oid));
            environment.param_types.push(is_declared.then_some(plain));
            environment.param_domains.extend(domain.map(|domain| (number as u16, domain)));
        }
        let bound = match origin {
            Origin::Arguments(first, types) => bind_arguments(statement, (*first, types), &mut environment),
            _ => bind_statement(statement, &mut environment),
        };
        if bound.is_err() {
            // What is in a schema is not told to those who may not look into it.
            let schemas = |needed: &&Requirement| matches!(needed.what, Required::Schema(_));
            let schemas: Vec<Requirement> = environment.required.iter().filter(schemas).cloned().collect();
            host.rights().require_all(&schemas)?;
        }
        let bound = bound?;
        let types = environment.parameter_types()?;
        let told = (!environment.param_domains.is_empty()).then(|| {
            let mut told = types.clone();
            for (number, domain) in &environment.param_domains {
                if let Some(ty) = told.get_mut(usize::from(*number)) {
                    *ty = Type::of(*domain);
                }
            }
            told.into()
        });
        let params = BoundParams { types, told };
        Ok((bound, params, environment.session_dependent, environment.required))
    }

    /// As [`Planning::bind`], for a query of a definition that names relations of rows which this is to
    /// write: its text, and those. They come in the first registers. Most look at all rows, whoever makes them.
    pub(crate) fn bind_over_written(
        &self,
        statement: &Statement,
        (text, written): (&str, &[Written]),
        (search_path, reader): (&[String], PolicyReader),
    ) -> Result<(BoundStatement, Vec<Requirement>)> {
        let (context, scope) = (self.context(), WrittenScope(written));
        let mut environment = BindEnv::new(&self.host.catalog.catalog, search_path, &context);
        environment.text = text;
        environment.variables = Some(&scope);
        environment.reader = reader;
        let bound = bind_statement(statement, &mut environment)?;
        Ok((bound, environment.required))
    }

    /// The plan of a row statement as an EXPLAIN with these options tells it.
    pub(crate) fn explained_plan(
        &self,
        bound: &BoundStatement,
        options: ExplainOptions,
    ) -> Result<CompiledStatement> {
        let (server, environment) = (&self.host.server, self.host.environment());
        let linker = self.host.database.routines.linker(&environment);
        let compile = CompileEnv {
            tables: &server.engine,
            catalog: &environment.catalog,
            search_path: &environment.search_path,
            routines: &*linker,
        };
        compile_explained(bound, options, &compile)
    }

    /// Compiles a bound row statement.
    fn compile(&self, bound: BoundStatement) -> Result<RowPlan> {
        self.compile_in(bound, &self.host.environment())
    }

    /// The same; and what compiling it asks of the catalog.
    pub(super) fn compile_noting(&self, bound: BoundStatement) -> Result<(RowPlan, Arc<Lookups>)> {
        let (catalog, asked) = self.host.catalog.catalog.noting();
        let environment = Environment { catalog, ..self.host.environment() };
        let plan = self.compile_in(bound, &environment)?;
        Ok((plan, asked.finish()))
    }

    /// Compiles a part of a statement that is bound.
    pub(crate) fn compile_part(&self, bound: BoundStatement) -> Result<RowPlan> {
        self.compile_in(bound, &self.host.environment())
    }

    fn compile_in(&self, bound: BoundStatement, environment: &Environment) -> Result<RowPlan> {
        let (server, database) = (&self.host.server, &self.host.database);
        let linker = database.routines.linker(environment);
        let compile = CompileEnv {
            tables: &server.engine,
            catalog: &environment.catalog,
            search_path: &environment.search_path,
            routines: &*linker,
        };
        let code = match &bound {
            BoundStatement::Call(call) => Code::Call(CallPlan::new(
                call,
                database.routines.program(&call.routine, environment)?,
                &compile,
            )?),
            rows => Code::Native(compile_statement(rows, &compile)?),
        };
        let read_only = matches!(bound, BoundStatement::Query(_))
            && match &code {
                Code::Native(compiled) => !compiled.accesses.iter().any(|access| access.write),
                Code::Call(_) | Code::Trigger(_) => false,
            };
        let effect = match &code {
            Code::Native(compiled) if read_only => match classify(&bound, compiled) {
                Class::Analytic(_) => Effect::ReadsWhole,
                Class::Native => Effect::Reads,
            },
            _ => Effect::Writes,
        };
        let executors = server.engine.executors_max();
        // That is none of the plan's look-ups.
        let catalog = environment.catalog.without_notes();
        let counts = called(&bound).map(|routine| database.calls.of(routine.oid, executors, &catalog));
        Ok(RowPlan::new(bound, code, effect).counting(counts))
    }
}

/// Relations of rows that a definition is to write, each an array in a register.
struct WrittenScope<'w>(&'w [Written]);

impl VariableScope for WrittenScope<'_> {
    fn resolve(&self, _parts: &[&str]) -> Option<BoundExpr> {
        None
    }

    fn relation(&self, name: &str) -> Option<(BoundExpr, TableRef)> {
        let at = self.0.iter().position(|written| written.name == name)?;
        let rows = BoundExpr::new(ExprKind::Variable(at as u32), Type::of(Oid::RECORD_ARRAY));
        Some((rows, self.0[at].table.clone()))
    }
}

/// The routine that a statement is a call of: CALL, `SELECT f(…)`, `SELECT … FROM f(…)`.
fn called(bound: &BoundStatement) -> Option<&RoutineRef> {
    let mut rel = match bound {
        BoundStatement::Call(call) => return Some(&call.routine),
        BoundStatement::Query(query) => &query.rel,
        _ => return None,
    };
    loop {
        match rel {
            Rel::Function { call: SetCall::Routine { routine, .. }, .. } => return Some(routine),
            Rel::ProjectSet { input, items } if matches!(**input, Rel::Unit) => match &items[..] {
                [SetItem::Set { call: SetCall::Routine { routine, .. }, .. }] => return Some(routine),
                _ => return None,
            },
            Rel::Project { input, exprs } if matches!(**input, Rel::Unit) => match &exprs[..] {
                [BoundExpr { kind: ExprKind::Routine { routine, .. }, .. }] => return Some(routine),
                _ => return None,
            },
            Rel::Project { input, .. } | Rel::Sort { input, .. } | Rel::Limit { input, .. } => rel = input,
            _ => return None,
        }
    }
}

/// Whether it is the error of a body of a function of the language sql that means nothing now.
fn is_of_body(error: &SqlError) -> bool {
    let is_its_call = |line: &str| {
        line.starts_with("SQL function \"")
            && (line.ends_with("\" during startup") || line.ends_with("\" during inlining"))
    };
    let ended = [*b"53", *b"54", *b"57"].iter().any(|class| error.state().0.starts_with(class));
    !ended
        && !is_outdated(error)
        && error.fields().context.as_deref().is_some_and(|context| context.lines().any(is_its_call))
}

fn not_a_call() -> SqlError {
    SqlError::internal("a trigger that is not a call")
}

/// What stands in the place of a bound statement for a block or a trigger, which have none.
pub(crate) fn empty_query() -> BoundStatement {
    use archipel_planner::bound::BoundQuery;
    BoundStatement::Query(BoundQuery { rel: Rel::Unit, columns: Vec::new() })
}

/// 25P02.
pub(crate) fn failed_transaction() -> SqlError {
    SqlError::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

/// The columns a row statement answers; `None` if it answers no rows.
pub(crate) fn result_columns(bound: &BoundStatement) -> Option<Vec<OutputColumn>> {
    match bound {
        BoundStatement::Query(query) => Some(query.columns.clone()),
        BoundStatement::Call(call) => (!call.columns.is_empty()).then(|| call.columns.clone()),
        BoundStatement::With { statement, .. } => result_columns(statement),
        _ => bound.returning().map(|returning| returning.columns.clone()),
    }
}
