//! From the tree of a body to a [`Program`].
//!
//! - this file:    the entry points
//! - [`compiler`]  the state of one compilation; [`environment`] what routines are compiled against
//! - [`scope`]     what names in SQL mean; binding of fragments; [`cast`] values and rows to their types
//! - [`record`]    where variables live, and the structures of rows
//! - [`statement`] statements; [`text`] of an EXECUTE; [`explain`] EXPLAIN in a body
//! - [`lower`]     loops to machines
//! - [`error_context`]    how CONTEXT lines name expressions
//! - [`trace`]     what is known of each register's value beforehand: routing, the flow graph
//! - [`hoist`]     calls made before the statements they stand in
//! - [`sql`]       LANGUAGE sql
//! - [`trigger`]   functions of triggers, and their conditions
//!
//! Every variable is a register of the routine's frame, every field of a record too.
//! Statements are bound and planned here, once. What does not bind (a table that does not
//! exist yet) becomes an operation that fails when it is reached, as PostgreSQL finds such
//! errors only then; grammar errors were reported by the parser, at CREATE.

mod cast;
mod compiler;
mod environment;
mod error_context;
mod explain;
mod hoist;
mod lower;
pub(crate) mod record;
mod scope;
mod sql;
mod statement;
mod text;
pub(crate) mod trace;
mod trigger;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::rights::Rights;
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind};
use archipel_planner::native;
use archipel_planner::native::{CompileEnv, CompiledStatement, RoutineLinker};
use archipel_planner::route::{Access, RouteKey, key_candidates};
use archipel_sql::catalog::{ArgMode, Language, RoutineRef};
use archipel_sql::error::Result;
use archipel_sql::types::Type;

use crate::plpgsql::ast::*;
use crate::plpgsql::parser::{self, Signature};
use crate::run::operation::expression::Compiled;
use crate::run::operation::site::Site;
use crate::run::operation::*;
use compiler::{Compiler, is_plain};
pub(crate) use environment::Reader;
use environment::is_input;
pub use environment::{Environment, signature_text};
use hoist::answers;
use record::variable::Storage;
pub(crate) use sql::compile_bound;
pub(crate) use sql::statements_text;
pub use statement::cursor_query::{ChangedTable, changed_table, with_row_keys};
pub use statement::result_columns::{Columns, result_columns};
use trace::Trace;
pub(crate) use trace::unknown_access::unknown_access;
pub(crate) use trigger::rows::TriggerRows;
pub(crate) use trigger::{Condition, compile_condition, compile_trigger};

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
    trace::hint::follow(&mut program, environment, linker.as_ref());
    Ok(program)
}

/// Compiles an anonymous block (DO).
pub fn compile_block(
    routine: &RoutineRef,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Program> {
    let signature = Signature { anonymous: true, ..Signature::of(routine) };
    let body = parser::parse(&routine.source, &signature)?;
    plpgsql(routine, &body, environment, linker)
}

fn plpgsql(
    routine: &RoutineRef,
    body: &Body,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Program> {
    // A record that is not only passed on has registers for its fields.
    let mut structured =
        record::variant::given(body, |target, assigned| !assigned || !target.path.is_empty());
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
        settings: crate::compile::trace::route_setting::settings_to_run_with(routine),
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
        let mut given_often = record::variant::given_often(body);
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
        let registers = |fields: &[crate::compile::record::variable::Field]| {
            fields.iter().map(|field| field.register).collect()
        };
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
        let linker = answers::Answering { linker: self.linker.as_ref(), answers: &self.answers };
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
