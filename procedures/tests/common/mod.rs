//! A database in memory, without a server: definitions, statements and calls as text.
#![allow(dead_code)]

use std::sync::Arc;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::schema::{IndexPlacement, KeyColumn};
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::{
    ClaimSet, Engine, EngineConfig, Inserted, Outcome, Program as EngineProgram, RoutingTable, Stop,
    SubmitOptions, Txn,
};
use archipel_planner::bind::{self, BindEnv};
use archipel_planner::ddl::{self, DdlEnv, DdlPlan, DistributionCall};
use archipel_planner::native::{self, CompileEnv, StatementProgram, SystemRows, TableSource, stop_error};
use archipel_procedures::{CallProgram, Classification, Environment, Program, Registry, classify};
use archipel_sql::ast::Statement;
use archipel_sql::catalog::{Catalog, ObjectNumbers, Privileges, Requirement, RoutineRef, SUPERUSER, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::io;
use archipel_sql::parser;
use archipel_sql::types::{Oid, Type};

/// A session that knows the catalog, if that, and nothing else, and may do everything.
#[derive(Default)]
pub struct Host {
    catalog: Option<Catalog>,
}

impl SessionHost for Host {
    fn current_catalog(&self) -> Option<&(dyn std::any::Any + Send + Sync)> {
        self.catalog.as_ref().map(|catalog| catalog as _)
    }

    // There are no roles: whoever tests may do everything.
    fn require(&self, _needed: &[Requirement]) -> Result<()> {
        Ok(())
    }

    fn require_sequence(&self, _sequence: Oid, _one_of: Privileges) -> Result<()> {
        Ok(())
    }
}

impl SystemRows for Host {
    fn rows(&self, table: &Table) -> Result<Vec<Vec<Datum>>> {
        Err(SqlError::unsupported(format_args!("reading {}", table.name)))
    }
}

struct Tables(Engine);
impl TableSource for Tables {
    fn table(&self, tree: TreeId) -> Option<Arc<archipel_engine::TableMeta>> {
        self.0.table(tree)
    }
}

/// Runs a definition's operations.
struct Define {
    plan: DdlPlan,
    error: Option<SqlError>,
}

impl EngineProgram for Define {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.everything();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> std::result::Result<(), Stop> {
        for operation in &self.plan.operations {
            if let Inserted::DuplicateKey(tree) = txn.ddl(operation.clone())? {
                self.error = tree.map(|tree| self.plan.duplicate_key(tree));
                return Err(Stop::Abort);
            }
        }
        Ok(())
    }
}

/// What a statement answered.
#[derive(Debug)]
pub struct Answer {
    pub rows: Vec<Vec<String>>,
    pub notices: Vec<String>,
    pub outcome: Outcome,
}

pub struct Database {
    pub engine: Engine,
    /// What the engine logs to.
    pub store: MemoryStore,
    pub catalog: Catalog,
    pub registry: Arc<Registry>,
    pub host: Arc<Host>,
    pub search_path: Arc<[String]>,
}

impl Database {
    pub fn new() -> Database {
        Database::on(1)
    }

    /// A database for this many executors.
    pub fn on(executors: u16) -> Database {
        let config = EngineConfig {
            pin_threads: false,
            abort_on_log_failure: false,
            background: false,
            // Nothing here can go on as an interactive transaction.
            one_shot_budget_micros: 60_000_000,
            max_memory_bytes: (4 + i64::from(executors)) << 30,
            ..EngineConfig::with_executors(executors.into())
        };
        let store = MemoryStore::new();
        let engine = Engine::open(config, Arc::new(store.clone())).expect("an empty store opens");
        Database {
            engine,
            store,
            catalog: Catalog::initial(Vec::new()),
            registry: Registry::new(),
            host: Arc::default(),
            search_path: Arc::from(vec!["public".to_string()]),
        }
    }

    /// A database with a script run.
    pub fn with(script: &str) -> Database {
        let mut database = Database::new();
        database.script(script);
        database
    }

    pub fn environment(&self) -> Environment {
        let tables = Arc::new(Tables(self.engine.clone()));
        Environment::new(self.catalog.clone(), tables, self.search_path.clone(), SUPERUSER)
    }

    /// Runs statements that must succeed; answers the last one's rows.
    #[track_caller]
    pub fn script(&mut self, script: &str) -> Vec<Vec<String>> {
        let statements = parser::parse(script).unwrap_or_else(|e| panic!("{e}\n{script}"));
        let mut rows = Vec::new();
        for statement in statements {
            let text = &script[statement.range.clone()];
            rows = match self.statement(&statement.statement, text) {
                Ok(answer) => answer.rows,
                Err(error) => panic!("{error} {:?}\n{text}", error.fields()),
            };
        }
        rows
    }

    /// Runs one statement.
    pub fn run(&mut self, text: &str) -> Result<Answer> {
        let statement = parser::parse_statement(text)?;
        self.statement(&statement, text)
    }

    /// The plan of a statement.
    pub fn plan(&self, text: &str) -> Result<Vec<String>> {
        let statement = parser::parse_statement(text)?;
        let context = FunctionContext::detached();
        let mut env = BindEnv::new(&self.catalog, &self.search_path, &context);
        let bound = bind::bind_statement(&statement, &mut env)?;
        let environment = self.environment();
        let linker = self.registry.linker(&environment);
        let compile = CompileEnv {
            tables: environment.tables.as_ref(),
            catalog: &self.catalog,
            search_path: &self.search_path,
            routines: linker.as_ref(),
        };
        let compiled = native::compile_statement(&bound, &compile)?;
        Ok(archipel_planner::explain::statement(&compiled))
    }

    /// Rows as `a|b` lines.
    #[track_caller]
    pub fn lines(&mut self, text: &str) -> Vec<String> {
        match self.run(text) {
            Ok(answer) => answer.rows.iter().map(|row| row.join("|")).collect(),
            Err(error) => panic!("{error} {:?}\n{text}", error.fields()),
        }
    }

    /// The SQLSTATE and message a statement fails with.
    #[track_caller]
    pub fn failure(&mut self, text: &str) -> (String, String) {
        let error = self.run(text).expect_err(text);
        (error.state().as_str().to_string(), error.message().to_string())
    }

    fn statement(&mut self, statement: &Statement, text: &str) -> Result<Answer> {
        if ddl::is_definition(statement) {
            let catalog = self.catalog.clone();
            let env = DdlEnv {
                catalog: &catalog,
                search_path: &self.search_path,
                context: &FunctionContext::detached(),
                system: false,
                temporary_schema: "pg_temp_1",
                copies: &Default::default(),
                numbers: &ObjectNumbers::new(catalog.numbers()),
                roles: Default::default(),
                others: &[],
            };
            let plan = ddl::plan(statement, &env)?;
            return self.define(plan);
        }
        if let Statement::Do(block) = statement {
            let program = self.registry.block(&block.body, &self.environment())?;
            return self.submit(program, Vec::new(), &[]);
        }
        let context = FunctionContext::detached();
        let mut env = BindEnv::new(&self.catalog, &self.search_path, &context);
        env.text = text;
        let bound = bind::bind_statement(statement, &mut env)?;
        let environment = self.environment();
        let linker = self.registry.linker(&environment);
        let compile = CompileEnv {
            tables: environment.tables.as_ref(),
            catalog: &self.catalog,
            search_path: &self.search_path,
            routines: linker.as_ref(),
        };
        let compiled = Arc::new(native::compile_statement(&bound, &compile)?);
        let types: Vec<Type> = compiled.columns.iter().map(|c| c.ty).collect();
        let program = StatementProgram::new(compiled, Vec::new(), self.host.clone());
        let completed = self.engine.submit(program, SubmitOptions::default()).wait();
        let program = completed.program;
        if let Err(stop) = completed.outcome.result {
            return Err(program.error.unwrap_or_else(|| stop_error(stop)));
        }
        let rows = program.result_rows().map(|row| texts(row, &types)).collect();
        let notices = program.notices.iter().map(notice).collect();
        Ok(Answer { rows, notices, outcome: completed.outcome })
    }

    fn define(&mut self, plan: DdlPlan) -> Result<Answer> {
        let changes = plan.changes.clone();
        let routines = plan.routines.clone();
        let next = self.catalog.apply(&changes);
        let environment = Environment { catalog: next.clone(), ..self.environment() };
        for routine in &routines {
            self.registry.validate(routine, &environment)?;
        }
        let completed = self.engine.submit(Define { plan, error: None }, SubmitOptions::default()).wait();
        if let Err(stop) = completed.outcome.result {
            return Err(completed.program.error.unwrap_or_else(|| stop_error(stop)));
        }
        self.host = Arc::new(Host { catalog: Some(next.clone()) });
        self.catalog = next;
        Ok(Answer { rows: Vec::new(), notices: Vec::new(), outcome: completed.outcome })
    }

    /// Calls of the distribution functions, one a line, as in `distribution.sql`.
    #[track_caller]
    pub fn distribute(&mut self, script: &str) {
        for line in script.lines() {
            let line = line.split("--").next().unwrap_or_default().trim();
            let Some(call) = line.strip_prefix("SELECT ") else { continue };
            let (name, rest) = call.split_once('(').expect("a call");
            let mut args: Vec<Datum> = Vec::new();
            for arg in rest.trim_end_matches([';', ')']).split(',') {
                if let Some((_, value)) = arg.split_once("colocate_with =>") {
                    args.resize(3, Datum::Null);
                    args.push(Datum::text(value.trim().trim_matches('\'')));
                } else {
                    args.push(Datum::text(arg.trim().trim_matches('\'')));
                }
            }
            let call = DistributionCall::from_function(name.trim(), &args).expect("a distribution function");
            let catalog = self.catalog.clone();
            let env = DdlEnv {
                catalog: &catalog,
                search_path: &self.search_path,
                context: &FunctionContext::detached(),
                system: false,
                temporary_schema: "pg_temp_1",
                copies: &Default::default(),
                numbers: &ObjectNumbers::new(catalog.numbers()),
                roles: Default::default(),
                others: &[],
            };
            let plan = call.and_then(|call| ddl::plan_distribution(&call, &env));
            plan.and_then(|plan| self.define(plan)).unwrap_or_else(|e| panic!("{e}: {line}"));
        }
    }

    /// Splits the group of a table with an integer key at these values.
    pub fn split(&self, table: &str, at: &[i32]) {
        let table = self.catalog.table(None, table, &self.search_path).expect("the table");
        let meta = self.engine.table(TreeId(table.tree)).expect("its rows");
        let group = GroupId(table.group().expect("a distributed table"));
        let column = &meta.def.key[0];
        let kind = meta.def.columns[usize::from(column.column)];
        self.split_group(group, column, kind, at.iter().map(|value| Cell::Int4(*value)));
    }

    /// Splits the groups of a table's global indexes with a text key at these values.
    pub fn split_indexes(&self, table: &str, at: &[String]) {
        let table = self.catalog.table(None, table, &self.search_path).expect("the table");
        let meta = self.engine.table(TreeId(table.tree)).expect("its rows");
        for index in &meta.def.indexes {
            let IndexPlacement::Global { group } = index.placement else { continue };
            let cells = at.iter().map(|value| Cell::Bytes(value.as_bytes()));
            self.split_group(group, &index.key[0], ColumnKind::Bytes, cells);
        }
    }

    fn split_group<'v>(
        &self,
        group: GroupId,
        column: &KeyColumn,
        kind: ColumnKind,
        at: impl Iterator<Item = Cell<'v>>,
    ) {
        let key = |cell| {
            let mut key = KeyBuf::new();
            encode_cell(&mut key, cell, column, kind);
            key
        };
        let keys: Vec<KeyBuf> = at.map(key).collect();
        let count = keys.len();
        let split = self.engine.pre_split(group, keys).wait();
        split.outcome.result.expect("a split");
        assert_eq!(split.program.added, count, "each value begins a partition");
    }

    pub fn routine(&self, name: &str) -> RoutineRef {
        let found = self.catalog.routines(None, name, &self.search_path);
        found.first().unwrap_or_else(|| panic!("no routine {name}")).clone()
    }

    #[track_caller]
    pub fn program(&self, name: &str) -> Arc<Program> {
        self.registry
            .program(&self.routine(name), &self.environment())
            .unwrap_or_else(|e| panic!("{name}: {e} {:?}", e.fields()))
    }

    pub fn classification(&self, name: &str) -> Classification {
        classify(&self.program(name))
    }

    /// Calls a routine with its arguments at hand, as the server does.
    pub fn call(&self, name: &str, args: Vec<Datum>) -> Result<Answer> {
        let program = self.program(name);
        let columns = archipel_procedures::result_columns(&program.routine, &self.catalog)?.named();
        let types: Vec<Type> = columns.iter().map(|(_, ty)| *ty).collect();
        self.submit(program, args, &types)
    }

    fn submit(&self, program: Arc<Program>, args: Vec<Datum>, types: &[Type]) -> Result<Answer> {
        let call = CallProgram::new(program, args, self.host.clone(), self.engine.clone());
        let completed = self.engine.submit(call, SubmitOptions::default()).wait();
        let call = completed.program;
        if let Err(stop) = completed.outcome.result {
            return Err(call.error.unwrap_or_else(|| stop_error(stop)));
        }
        let rows = call.rows.iter().map(|row| texts(row, types)).collect();
        let notices = call.notices.iter().map(notice).collect();
        Ok(Answer { rows, notices, outcome: completed.outcome })
    }
}

fn notice(notice: &native::Notice) -> String {
    format!("{}: {}", notice.severity, notice.error.message())
}

fn texts(row: &[Datum], types: &[Type]) -> Vec<String> {
    let context = FunctionContext::detached();
    row.iter()
        .zip(types.iter().copied().chain(std::iter::repeat(Type::TEXT)))
        .map(|(value, ty)| match value {
            Datum::Null => "NULL".to_string(),
            value => io::to_text(value, ty, &context),
        })
        .collect()
}

/// An integer array argument.
pub fn integers(values: &[i32]) -> Datum {
    use archipel_sql::datum::{Array, Dimension};
    Datum::Array(Arc::new(Array {
        element: Oid::INT4,
        dimensions: vec![Dimension { length: values.len(), lower_bound: 1 }],
        values: values.iter().map(|v| Datum::Int4(*v)).collect(),
    }))
}
