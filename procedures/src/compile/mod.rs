//! From the tree of a body to a [`Program`].
//!
//! - this file:    the state of one compilation, the entry points
//! - [`storage`]   types of variables, registers, shapes of records
//! - [`scope`]     what names in SQL mean; binding of fragments
//! - [`statement`] statements; [`initial`] values; [`control`] blocks and branches; [`loops`]; [`into`] rows into variables;
//!   [`result`] RETURN; [`invoke`] CALL and EXECUTE; [`text`] of an EXECUTE; [`prepared`] EXECUTE of an EXECUTE; [`cursor`]; [`explain`]; [`raise`]
//! - [`shape`]     structures of rows that show only at run time; [`tagged`] records that take several; [`found`] those that values tell
//! - [`append`]    values that grow in place; [`lower`] loops to machines
//! - [`spoken`]    how CONTEXT lines name expressions
//! - [`trace`]     what is known of each register's value beforehand: routing; [`symbols`] of all of them
//! - [`flow`]      what depends on what: the flow graph; [`hint`] where calls go that prove nothing
//! - [`hoist`]     calls made before the statements they stand in
//! - [`sql`]       LANGUAGE sql
//! - [`trigger`]   functions of triggers, and their conditions
//!
//! Every variable is a register of the routine's frame, every field of a record too.
//! Statements are bound and planned here, once. What does not bind (a table that does not
//! exist yet) becomes an operation that fails when it is reached, as PostgreSQL finds such
//! errors only then; grammar errors were reported by the parser, at CREATE.

mod ahead;
mod append;
mod command;
mod control;
mod cursor;
mod explain;
pub(crate) mod flow;
mod found;
pub(crate) mod hint;
mod hoist;
mod initial;
mod into;
mod invoke;
mod loops;
mod lower;
mod prepared;
mod raise;
mod result;
mod scope;
pub(crate) mod shape;
mod spoken;
mod sql;
mod statement;
mod storage;
mod symbols;
mod tagged;
mod text;
pub(crate) mod trace;
mod trigger;

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::rights::Rights;
use archipel_planner::bind::BindEnv;
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind};
use archipel_planner::native::{self, CompileEnv, CompiledStatement, RoutineLinker, TableSource};
use archipel_planner::route::{Access, RouteKey, key_candidates};
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{
    ArgMode, Authority, Catalog, Language, Requirement, RoutineRef, TypesAlong, ViewReference,
};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::system::bare_type_along;
use archipel_sql::types::{Oid, Type};

use crate::plpgsql::ast::*;
use crate::plpgsql::parser::{self, Signature};
use crate::run::operation::*;
pub use cursor::{ChangedTable, changed_table, with_row_keys};
use flow::Flow;
pub(crate) use invoke::unknown_access;
pub use result::{Columns, result_columns};
pub(crate) use sql::compile_bound;
pub(crate) use sql::statements_text;
use storage::Storage;
use trace::Trace;
pub(crate) use trigger::{Condition, TriggerRows, compile_condition, compile_trigger};

/// What routines are compiled against: one version of the catalog, and the engine's tables.
#[derive(Clone)]
pub struct Environment {
    pub catalog: Catalog,
    pub tables: Arc<dyn TableSource + Send + Sync>,
    /// Where names are looked up.
    pub search_path: Arc<[String]>,
    /// As the settings have it, `$user` and what the role may not look into included.
    pub written_path: Arc<[String]>,
    /// In whose name they are looked up.
    pub role: Oid,
    /// Structures of rows that runs have found.
    pub shapes: Arc<shape::Shapes>,
    /// Whether routines are compiled for runs that stop for their session wherever they can.
    pub in_pieces: bool,
    /// Who wins when a name is both a variable and a column, unless the routine says it.
    pub conflict: Conflict,
    /// What a body that is kept as it was understood names.
    pub references: Arc<[ViewReference]>,
    /// Whether the text is one that was understood when it was defined ([`BindEnv::is_settled`]).
    pub is_settled: bool,
    /// Where routines that are called look names up, if elsewhere than the statement that calls them.
    pub path_of_calls: Option<Arc<[String]>>,
}

impl Environment {
    /// What routines are compiled against where settings have this search path and names are
    /// looked up for this role.
    pub fn new(
        catalog: Catalog,
        tables: Arc<dyn TableSource + Send + Sync>,
        written_path: Arc<[String]>,
        role: Oid,
    ) -> Environment {
        let search_path = Authority { catalog: &catalog, role }.path(&written_path);
        Environment {
            catalog,
            tables,
            search_path,
            written_path,
            role,
            shapes: Default::default(),
            in_pieces: false,
            conflict: Conflict::Error,
            references: Arc::from([]),
            is_settled: false,
            path_of_calls: None,
        }
    }

    /// The same for a statement whose own names are looked up in another path than those of the
    /// routines it calls.
    #[must_use]
    pub fn around_calls(mut self, search_path: Arc<[String]>) -> Environment {
        if self.search_path != search_path {
            self.path_of_calls = Some(std::mem::replace(&mut self.search_path, search_path));
        }
        self
    }

    /// The same for the catalog that the statement under way sees. What is looked up only when a routine
    /// runs is looked up there: the routine is good for more catalogs than it was compiled of.
    pub(crate) fn of_session(&self, session: &dyn SessionHost) -> Cow<'_, Environment> {
        match Catalog::of_session(session) {
            Some(catalog) if !catalog.same_as(&self.catalog) => {
                Cow::Owned(Environment { catalog: catalog.clone(), ..self.clone() })
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Who names types in messages.
    pub(crate) fn type_names(&self) -> TypesAlong<'_> {
        TypesAlong { catalog: &self.catalog, search_path: &self.search_path }
    }

    /// A routine as it was declared: an instance of a polymorphic one is named by that.
    fn declared(&self, routine: &RoutineRef) -> RoutineRef {
        self.catalog.routine_by_oid(routine.oid).unwrap_or_else(|| routine.clone())
    }

    /// What this routine is compiled against: its SET clauses may name a search path, and a
    /// SECURITY DEFINER routine looks where its owner may look.
    pub(crate) fn of(&self, routine: &RoutineRef) -> Environment {
        let traits = &routine.traits;
        let set = traits.settings.iter().find(|(name, _)| name == "search_path");
        let mut environment = self.clone();
        if let Some(path) = environment.path_of_calls.take() {
            environment.search_path = path;
        }
        if let Some(stored) = &traits.stored {
            environment.references = stored.references.clone().into();
        } else if !self.references.is_empty() {
            environment.references = Arc::from([]);
        }
        let conflict = traits.settings.iter().find(|(name, _)| name == "plpgsql.variable_conflict");
        if let Some((_, value)) = conflict {
            environment.conflict = Conflict::of_setting(value);
        }
        if traits.security_definer {
            environment.role = self.catalog.owner(routine.oid);
        }
        if let Some((_, value)) = set {
            let names = value.split(',').map(|name| name.trim().trim_matches('"').to_string());
            environment.written_path = names.collect();
        }
        if set.is_some() || traits.security_definer {
            let authority = Authority { catalog: &environment.catalog, role: environment.role };
            environment.search_path = authority.path(&environment.written_path);
        }
        environment.is_settled = traits.stored.is_some();
        match &traits.stored {
            // Whoever runs it, its own names are found where they were found when it was made.
            Some(stored) => environment.around_calls(stored.search_path.clone().into()),
            None => environment,
        }
    }
}

/// Compiles a routine of either language.
pub fn compile(
    routine: &RoutineRef,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Program> {
    let mut program = match routine.language {
        Language::PlPgSql => {
            let body = parser::parse(&routine.source, &Signature::of(routine))?;
            plpgsql(routine, &body, environment, linker)
        }
        Language::Sql => sql::compile(routine, environment, linker),
    }?;
    hint::follow(&mut program, environment, linker.as_ref());
    Ok(program)
}

/// Compiles an anonymous block (DO).
pub fn compile_block(
    source: &str,
    routine: &RoutineRef,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Program> {
    let signature = Signature { anonymous: true, ..Signature::of(routine) };
    let body = parser::parse(source, &signature)?;
    plpgsql(routine, &body, environment, linker)
}

fn plpgsql(
    routine: &RoutineRef,
    body: &Body,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Program> {
    // A record that is not only passed on has registers for its fields.
    let mut structured = tagged::given(body, |target, assigned| !assigned || !target.path.is_empty());
    loop {
        let compiler = Compiler::with(routine, body, environment, linker, &structured)?;
        let asked = compiler.asked.clone();
        let program = finish(compiler);
        let before = structured.len();
        for variable in asked.take() {
            if !structured.contains(&variable) {
                structured.push(variable);
            }
        }
        if structured.len() == before {
            return program;
        }
    }
}

/// Compiles the body, all names being known.
fn finish(mut compiler: Compiler<'_>) -> Result<Program> {
    let (routine, body, linker) = (compiler.routine, compiler.body, compiler.linker);
    let arrivals = compiler.take_records()?;
    let mut block = compiler.block(&body.block)?;
    block.rights = Rights::of(compiler.needed.take()).map(Arc::new);
    let columns = compiler.out_columns();
    let width = compiler.columns.width();
    let at_end = if compiler.trigger.is_some() {
        AtEnd::MissingOfTrigger
    } else if routine.returns_set {
        AtEnd::Nothing
    } else if !columns.is_empty() {
        AtEnd::Columns
    } else if routine.kind == archipel_sql::catalog::RoutineKind::Procedure {
        AtEnd::Nothing
    } else if routine.result == Type::VOID {
        AtEnd::Void
    } else {
        AtEnd::Missing
    };
    let found = compiler.register_of(body.found);
    lower::loops(&mut block, found);
    if !arrivals.is_empty() {
        let site = block.site;
        let kind = OperationKind::Sequence(arrivals.into_iter().chain([block]).collect());
        block = Operation { site, rights: None, kind };
    }
    let arguments = compiler.argument_places();
    let mut homes = compiler.homes();
    homes.append(&mut compiler.homes_of_answers());
    Ok(Program {
        routine: routine.clone(),
        settings: hint::settings_to_run_with(routine),
        signature: signature_text(&compiler.environment.declared(routine), compiler.environment),
        registers: compiler.registers,
        plain_arguments: is_plain(&arguments),
        arguments,
        found,
        ahead: compiler.rows_of_arguments(),
        ahead_text: compiler.ahead_text,
        body: block,
        columns_at: together(&columns),
        columns,
        width: width as u32,
        at_end,
        routes: trace::routes(&compiler.accesses),
        accesses: compiler.accesses,
        reference_reads: compiler.reference_reads,
        failures: compiler.failures,
        flow: compiler.flow.into_inner().finish(),
        homes,
        language: ContextLanguage::PlPgSql,
        asks: compiler.asks,
        dissolved: None,
        asked_below: linker.asked_below(),
    })
}

/// Whether the arguments are the first registers, in order.
fn is_plain(arguments: &[Place]) -> bool {
    arguments
        .iter()
        .enumerate()
        .all(|(index, place)| matches!(place, Place::Scalar { register, .. } if *register as usize == index))
}

/// The registers of some columns, if they are neighbours.
fn together(columns: &[OutColumn]) -> Option<std::ops::Range<usize>> {
    let register = |column: &OutColumn| match column {
        OutColumn::Register(register) => Some(*register as usize),
        OutColumn::Row { .. } | OutColumn::Spread(_) => None,
    };
    let first = register(columns.first()?)?;
    let follow = columns.iter().enumerate().all(|(at, column)| register(column) == Some(first + at));
    follow.then(|| first..first + columns.len())
}

/// `f(integer,text)`, as format_procedure prints it.
pub fn signature_text(routine: &archipel_sql::catalog::Routine, environment: &Environment) -> String {
    if routine.name.is_empty() {
        return "inline_code_block".to_string();
    }
    let args: Vec<String> = routine
        .args
        .iter()
        .filter(|arg| is_input(arg.mode))
        .map(|arg| bare_type_along(&environment.catalog, &environment.search_path, arg.declared().oid))
        .collect();
    let name = quote_identifier(&routine.name);
    let found = environment.catalog.routines(None, &routine.name, &environment.search_path);
    let same = found.iter().find(|other| other.input_types() == routine.input_types());
    let schema = match same {
        Some(visible) if visible.oid == routine.oid => String::new(),
        // Before it is there at all, nobody calls it.
        _ if routine.oid == Oid(0) => String::new(),
        _ => format!("{}.", quote_identifier(&routine.schema)),
    };
    format!("{schema}{name}({})", args.join(","))
}

pub(crate) fn is_input(mode: ArgMode) -> bool {
    matches!(mode, ArgMode::In | ArgMode::InOut | ArgMode::Variadic)
}

/// The state of one compilation.
pub(crate) struct Compiler<'a> {
    pub routine: &'a RoutineRef,
    pub body: &'a Body,
    pub environment: &'a Environment,
    pub linker: &'a Arc<dyn RoutineLinker + Send + Sync>,
    /// Where each variable lives.
    pub storage: Vec<Storage>,
    pub registers: u32,
    pub columns: Columns,
    /// The record variables that several statements give rows.
    pub given_often: Vec<VariableId>,
    pub trace: Trace,
    pub accesses: Vec<Access>,
    /// Rows whose keys are known before their statements run.
    pub foreseen: Vec<ahead::Foreseen>,
    /// Which of them are fetched ahead, for EXPLAIN.
    pub ahead_text: Vec<String>,
    pub reference_reads: Vec<ReferenceRead>,
    pub failures: Vec<(u32, String)>,
    /// Loops and labelled blocks around the statement, innermost last.
    pub labels: Vec<OpenLabel>,
    pub numbers: u32,
    /// How often a record variable was made NULL, in the registers known by then.
    pub nulled: u32,
    /// Set for the function of a trigger.
    pub trigger: Option<trigger::Rows>,
    /// Told by name look-ups, too.
    pub flow: RefCell<Flow>,
    /// Whether GET DIAGNOSTICS asks for callers.
    pub asks: bool,
    /// Values under names no SQL can spell.
    pub hidden: Vec<BoundExpr>,
    /// What the statement being compiled needs to be allowed.
    pub needed: RefCell<Vec<Requirement>>,
    /// Calls that are made before their statements.
    pub answers: hoist::Answers,
    /// Whether the statement follows a COMMIT or ROLLBACK.
    pub begins: bool,
    /// Whether it is an assignment, not a declaration's.
    pub assigns: bool,
    /// Which parameters of type `record` have registers for their fields.
    pub structured: Vec<VariableId>,
    /// The registers where the values of such come.
    pub arrivals: Vec<(VariableId, u32)>,
    /// What puts fields that the statement at hand is given back into the rows that they are parts of: the
    /// values of domains over composite types, each in one register.
    pub parts_put: Vec<OperationKind>,
    /// Those of which fields were asked for without that.
    pub asked: Rc<RefCell<Vec<VariableId>>>,
}

pub(crate) struct OpenLabel {
    pub label: Option<String>,
    pub number: u32,
    pub is_loop: bool,
    /// The structures of the records where it is left, and where its next round is begun.
    pub left: Vec<Vec<storage::RecordState>>,
    pub continued: Vec<Vec<storage::RecordState>>,
    /// Whether it is a loop over the rows of a statement that changes them.
    pub changing: bool,
}

impl<'a> Compiler<'a> {
    pub fn new(
        routine: &'a RoutineRef,
        body: &'a Body,
        environment: &'a Environment,
        linker: &'a Arc<dyn RoutineLinker + Send + Sync>,
    ) -> Result<Compiler<'a>> {
        Compiler::with(routine, body, environment, linker, &[])
    }

    /// As [`Compiler::new`], with registers for the fields of these parameters if they are records.
    fn with(
        routine: &'a RoutineRef,
        body: &'a Body,
        environment: &'a Environment,
        linker: &'a Arc<dyn RoutineLinker + Send + Sync>,
        structured: &[VariableId],
    ) -> Result<Compiler<'a>> {
        let columns = result_columns(routine, &environment.catalog)?;
        let mut given_often = tagged::given_often(body);
        // What comes with the call counts, too.
        given_often.extend(structured.iter().filter(|variable| body.parameters.contains(variable)));
        given_often.sort_unstable();
        given_often.dedup();
        let mut compiler = Compiler {
            routine,
            body,
            environment,
            linker,
            storage: Vec::new(),
            registers: 0,
            columns,
            given_often,
            trace: Trace::default(),
            accesses: Vec::new(),
            foreseen: Vec::new(),
            ahead_text: Vec::new(),
            reference_reads: Vec::new(),
            failures: Vec::new(),
            labels: Vec::new(),
            numbers: 0,
            nulled: 0,
            trigger: None,
            flow: RefCell::default(),
            asks: false,
            hidden: Vec::new(),
            needed: RefCell::default(),
            answers: Default::default(),
            begins: false,
            assigns: false,
            structured: structured.to_vec(),
            arrivals: Vec::new(),
            parts_put: Vec::new(),
            asked: Rc::default(),
        };
        compiler.allocate()?;
        Ok(compiler)
    }

    /// Who wins when a name is both a variable and a column.
    pub fn conflict(&self) -> Conflict {
        self.body.conflict.unwrap_or(self.environment.conflict)
    }

    /// A fresh register nobody names.
    pub fn scratch(&mut self) -> u32 {
        self.registers += 1;
        self.trace.reserve(self.registers);
        self.registers - 1
    }

    /// The register of a scalar variable.
    pub fn register_of(&self, variable: VariableId) -> u32 {
        match &self.storage[variable as usize] {
            Storage::Scalar { register, .. } => *register,
            Storage::Row { fields, .. } => fields.first().map_or(0, |f| f.register),
            Storage::Record { .. } => 0,
        }
    }

    /// Places of the IN and INOUT arguments, in their order among themselves.
    fn argument_places(&self) -> Vec<Place> {
        self.routine
            .args
            .iter()
            .zip(&self.body.parameters)
            .filter(|(arg, _)| is_input(arg.mode))
            .map(|(_, variable)| match &self.storage[*variable as usize] {
                Storage::Scalar { register, .. } => Place::Scalar { register: *register, not_null: None },
                Storage::Row { fields, present, .. } => Place::Record {
                    base: fields.first().map_or(0, |f| f.register),
                    width: fields.len() as u32,
                    present: *present,
                },
                Storage::Record { .. } => {
                    let arrival = self.arrivals.iter().find(|(id, _)| id == variable);
                    let register = arrival.map_or(0, |(_, register)| *register);
                    Place::Scalar { register, not_null: None }
                }
            })
            .collect()
    }

    /// Where OUT, INOUT and TABLE columns come from.
    fn out_columns(&self) -> Vec<OutColumn> {
        let outs = self.routine.args.iter().zip(&self.body.parameters);
        let outs = outs.filter(|(arg, _)| matches!(arg.mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table));
        let outs: Vec<&Storage> = outs.map(|(_, variable)| &self.storage[*variable as usize]).collect();
        let registers = |fields: &[storage::Field]| fields.iter().map(|field| field.register).collect();
        // A function with one result of a composite type answers the fields of that.
        if let ([Storage::Row { fields, present, .. }], true) =
            (&outs[..], archipel_planner::bind::answers_fields(self.routine))
        {
            return vec![OutColumn::Row { registers: registers(fields), present: *present, spread: true }];
        }
        if let ([Storage::Scalar { register, .. }], true) =
            (&outs[..], archipel_planner::bind::answers_fields(self.routine))
        {
            return vec![OutColumn::Spread(*register)];
        }
        let column = |storage: &&Storage| match storage {
            Storage::Scalar { register, .. } => OutColumn::Register(*register),
            Storage::Row { fields, present, .. } => {
                OutColumn::Row { registers: registers(fields), present: *present, spread: false }
            }
            Storage::Record { .. } => match storage.fields() {
                Some(fields) => OutColumn::Row { registers: registers(fields), present: None, spread: false },
                None => OutColumn::Register(0),
            },
        };
        outs.iter().map(column).collect()
    }

    pub fn site(line: u32, what: &'static str) -> Site {
        Site { line, what }
    }

    /// What an operation becomes when it cannot be bound: it fails when reached.
    pub fn or_fail(&mut self, site: Site, result: Result<OperationKind>) -> Operation {
        let kind = match result {
            Ok(kind) => kind,
            Err(mut error) => {
                self.failures.push((site.line, error.message().to_string()));
                error.fields_mut().position = None;
                OperationKind::Fail { error: Box::new(error) }
            }
        };
        Operation { site, rights: None, kind }
    }

    /// Runs `work` with what native compilation needs.
    pub fn native<T>(&self, work: impl FnOnce(&CompileEnv<'_>) -> Result<T>) -> Result<T> {
        let linker = hoist::Answering { linker: self.linker.as_ref(), answers: &self.answers };
        let environment = CompileEnv {
            tables: self.environment.tables.as_ref(),
            catalog: &self.environment.catalog,
            search_path: &self.environment.search_path,
            routines: &linker,
        };
        work(&environment)
    }

    /// Compiles a bound statement and notes what it will touch.
    pub fn plan(&mut self, bound: &BoundStatement) -> Result<CompiledStatement> {
        let hoisted = self.hoist_statement(bound)?;
        self.plan_whole(hoisted.as_ref().unwrap_or(bound))
    }

    /// The same with all of its calls in it.
    pub fn plan_whole(&mut self, bound: &BoundStatement) -> Result<CompiledStatement> {
        let compiled = self.native(|env| native::compile_statement(bound, env))?;
        for access in &compiled.accesses {
            let access = self.trace.access(access);
            self.note(access);
        }
        for row in &compiled.known_rows {
            self.foresee(row);
        }
        Ok(compiled)
    }

    /// Adds an access unless an equal one is there.
    pub fn note(&mut self, access: Access) {
        self.flow.get_mut().add(&access);
        let known = self.accesses.iter_mut().find(|known| {
            known.group == access.group
                && known.table == access.table
                && trace::same_key(&known.key, &access.key)
        });
        match known {
            Some(known) => {
                known.write |= access.write;
                for column in &access.joined {
                    if !known.joined.contains(column) {
                        known.joined.push(*column);
                    }
                }
                let same = |(column, key): &(u16, RouteKey), (other, by): &(u16, RouteKey)| {
                    column == other && trace::same_key(key, by)
                };
                let table = self.environment.catalog.table_by_oid(access.oid);
                if table.is_some_and(|table| !key_candidates(&table).is_empty()) {
                    // Each way in which the rows are met says something of where they belong.
                    for found in access.candidates {
                        if !known.candidates.iter().any(|own| same(own, &found)) {
                            known.candidates.push(found);
                        }
                    }
                } else {
                    // What every INSERT puts in, and alike, could route them all.
                    known.candidates.retain(|own| access.candidates.iter().any(|found| same(own, found)));
                }
            }
            None => self.accesses.push(access),
        }
    }

    /// Compiles a bound expression; routines and subqueries inside it count as accesses.
    pub fn plan_expression(&mut self, bound: &BoundExpr) -> Result<Compiled> {
        let hoisted = self.hoist_expression(bound)?;
        let bound = hoisted.as_ref().unwrap_or(bound);
        let mut accesses = Vec::new();
        let compiled = self.native(|env| {
            accesses = archipel_planner::route::accesses_of_expression(bound, env)?;
            native::compile_expr(bound, env)
        })?;
        for access in &accesses {
            let access = self.trace.access(access);
            self.note(access);
        }
        Ok(compiled)
    }

    /// The initial value of every variable on entry to its block.
    pub fn constant(value: archipel_sql::datum::Datum, ty: Type) -> BoundExpr {
        BoundExpr::new(ExprKind::Const(value), ty)
    }
}

/// A binding environment without variables and parameters.
pub(crate) fn bind_env<'b>(
    environment: &'b Environment,
    context: &'b FunctionContext<'b>,
    text: &'b str,
) -> BindEnv<'b> {
    let mut env = BindEnv::new(&environment.catalog, &environment.search_path, context);
    env.text = text;
    env.references = &environment.references;
    env.is_settled = environment.is_settled;
    env.late_literals = true;
    // Parameters are variables: whatever else `$n` says is not there.
    env.params_fixed = true;
    env
}

/// A context for reading literals at compile time, without a session: it only names types.
pub(crate) fn no_session<'n>(names: &'n TypesAlong<'_>) -> FunctionContext<'n> {
    FunctionContext { now: 0, session: names }
}

pub(crate) fn unsupported(what: &str) -> SqlError {
    SqlError::unsupported(what)
}
