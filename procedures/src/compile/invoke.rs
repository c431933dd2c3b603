//! CALL of procedures, and EXECUTE.

use std::cell::RefCell;
use std::sync::Arc;

use archipel_engine::cell::ColumnKind;
use archipel_engine::schema::KeyColumn;
use archipel_planner::bind::{self, VariableScope};
use archipel_planner::bound::{BoundCall, BoundExpr, BoundQuery, BoundStatement, ExprKind, Rel, SetCall};
use archipel_planner::native::notify::Notification;
use archipel_planner::native::{self, CompileEnv, CompiledStatement, ExecResult, RoutineLinker};
use archipel_planner::rights::Rights;
use archipel_planner::route::{Access, RouteKey};
use archipel_planner::row::Codec;
use archipel_sql::ast::{self, Statement as SqlAst, StatementText};
use archipel_sql::catalog::{ArgMode, Requirement};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::SessionHost;
use archipel_sql::parser::{parse_expression, parse_statement};
use archipel_sql::types::{Oid, Type};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::cursor::BoundCursor;
use super::into::{cast_columns, output_columns};
use super::prepared::execute_of;
use super::spoken::expression_line;
use super::storage::Storage;
use super::tagged::{self, Alternatives};
use super::trigger::Transitions;
use super::{Columns, Compiler, Environment, bind_env, command, explain, no_session, shape, trace};
use crate::plpgsql::ast::*;
use crate::registry::query_as_routine;
use crate::run::context;
use crate::run::operation::*;
use crate::run::pause::Command;

/// What is done with the text of an EXECUTE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFor {
    Statement,
    /// Its rows are the routine's.
    Result,
    Loop,
}

/// Statements of one EXECUTE kept by their text.
const DYNAMIC_KEPT_MAX: usize = 64;

impl Compiler<'_> {
    /// `CALL procedure(…)`: OUT arguments are variables and take the results.
    pub(super) fn call(&mut self, call: &ast::Call, text: &Fragment) -> Result<OperationKind> {
        let bound = self.bind_ast(text, &SqlAst::Call(call.clone()))?;
        let BoundStatement::Call(bound) = bound else {
            return Err(SqlError::internal("CALL bound to something else"));
        };
        let routine = self.linker.link(&bound.routine)?;
        for access in routine.accesses() {
            let access = trace::bind_arguments(access, &bound.args);
            let access = self.trace.access(&access);
            self.note(access);
        }
        let mut args = Vec::new();
        for arg in &bound.args {
            args.push(self.plan_expression(arg)?);
        }
        let mut registers = Vec::new();
        let mut not_null = Vec::new();
        let mut taken_apart = Vec::new();
        let outs = bound
            .routine
            .args
            .iter()
            .enumerate()
            .filter(|(_, arg)| matches!(arg.mode, ArgMode::Out | ArgMode::InOut));
        for (position, arg) in outs {
            let given = call
                .args
                .iter()
                .find(|given| given.name.is_some() && given.name == arg.name)
                .or_else(|| call.args.get(position).filter(|given| given.name.is_none()));
            let Some(given) = given else {
                // Left out, its default taken: the result goes nowhere.
                registers.push(self.scratch());
                continue;
            };
            let target = self.out_target(&given.value.text, text, arg.name.as_deref(), position)?;
            if let (Storage::Row { ty, fields, present }, []) =
                (self.storage[target.variable as usize].clone(), &target.path[..])
            {
                if ty.oid != arg.ty.oid {
                    return Err(SqlError::unsupported(format_args!(
                        "an OUT argument of another type than its variable \"{}\"",
                        target.text
                    )));
                }
                // The row is taken apart when the procedure has ended.
                let register = self.scratch();
                registers.push(register);
                let value = BoundExpr { kind: ExprKind::Variable(register), ty };
                let value = self.plan_expression(&value)?;
                for field in &fields {
                    self.trace.forget(field.register, "the result of a procedure");
                }
                let own = fields.iter().map(|field| field.register).collect();
                let targets = Targets { present, ..Targets::of(own) };
                taken_apart.push(OperationKind::AssignRecord { targets, value });
                continue;
            }
            let (register, ty) = self.scalar_target(&target)?;
            if ty.oid != arg.ty.oid && ty.oid != arg.declared().oid {
                // PostgreSQL finds a cast where it wants a variable.
                let named = match &arg.name {
                    Some(name) => format!("\"{name}\""),
                    None => (position + 1).to_string(),
                };
                let message = format!(
                    "procedure parameter {named} is an output parameter but corresponding argument is not writable"
                );
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            if let Some(name) = self.not_null(target.variable) {
                not_null.push((registers.len() as u32, name));
            }
            registers.push(register);
        }
        for register in &registers {
            self.trace.forget(*register, "the result of a procedure");
        }
        let targets = (!registers.is_empty()).then(|| Targets { not_null, ..Targets::of(registers) });
        let call = OperationKind::Call { routine, args, targets, text: text.text.as_str().into() };
        if taken_apart.is_empty() {
            return Ok(call);
        }
        let site = Compiler::site(text.line, "CALL");
        let operation = |kind| Operation { site, rights: None, kind };
        Ok(OperationKind::Sequence([call].into_iter().chain(taken_apart).map(operation).collect()))
    }

    /// The variable given for an OUT argument.
    fn out_target(
        &self,
        given: &str,
        text: &Fragment,
        name: Option<&str>,
        position: usize,
    ) -> Result<Target> {
        let refused = || {
            let name = name.map_or_else(|| format!("${}", position + 1), str::to_string);
            SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "procedure parameter \"{name}\" is an output parameter but corresponding argument is not writable"
                ),
            )
        };
        let parts: Vec<String> = match parse_expression(given)? {
            sqlparser::ast::Expr::Identifier(ident) => vec![bind::name::ident_name(&ident)],
            sqlparser::ast::Expr::CompoundIdentifier(idents) => {
                idents.iter().map(bind::name::ident_name).collect()
            }
            sqlparser::ast::Expr::Value(value) => match value.value {
                sqlparser::ast::Value::Placeholder(number) => vec![number],
                _ => return Err(refused()),
            },
            _ => return Err(refused()),
        };
        let names: Vec<&str> = parts.iter().map(String::as_str).collect();
        let is_record = |id: VariableId| self.storage[id as usize].is_record();
        let Some((variable, used)) = self.body.names.find(text.names, &names, &is_record) else {
            return Err(refused());
        };
        let path = parts[used..].iter().map(|part| Step::Field(part.clone())).collect();
        Ok(Target { variable, path, text: given.to_string(), start: text.start })
    }

    pub(super) fn execute(&mut self, query: &Dynamic, into: Option<&Into>) -> Result<OperationKind> {
        Ok(OperationKind::Dynamic(Box::new(self.dynamic_plan(query, into, TextFor::Statement)?)))
    }

    /// EXECUTE and its relatives: bound when it runs, because its text is known only then.
    pub(super) fn dynamic_plan(
        &mut self,
        query: &Dynamic,
        into: Option<&Into>,
        used: TextFor,
    ) -> Result<DynamicPlan> {
        let bound_text = self.bind(&query.text, Some(Type::TEXT))?;
        let mut using = Vec::new();
        let mut types = Vec::new();
        for value in &query.using {
            let bound = self.bind(value, None)?;
            types.push(bound.ty);
            using.push(self.plan_spoken(&bound, expression_line(value))?);
        }
        let mut wanted = None;
        let mut found = None;
        let into = match into {
            None => None,
            Some(into) => {
                let place = shape::Place::new(self.routine, query.text.start as u64);
                let structures = match &into.targets[..] {
                    [_] if self.takes_record(&into.targets) => {
                        self.structures_of_text(place, &bound_text, &types)
                    }
                    _ => None,
                };
                let (targets, types) = match (&into.targets[..], structures) {
                    ([target], Some(structures)) => {
                        let (registers, types) = self.one_of(target.variable, &structures)?;
                        found = Some((place, structures));
                        (Targets::of(registers), types)
                    }
                    (targets, _) => {
                        let columns = match self.takes_record(targets) {
                            true => self.text_columns(&bound_text, &types)?,
                            false => Vec::new(),
                        };
                        let (targets, types) = self.places(targets, &columns)?;
                        (targets, vec![(0, types)])
                    }
                };
                for register in &targets.registers {
                    self.trace.forget(*register, "read by dynamic SQL");
                }
                wanted = Some(types);
                let parameters = StrictParameters {
                    told: self.body.print_strict,
                    values: self.using_values(&query.using)?,
                };
                Some(IntoPlan {
                    strict: into.strict,
                    modifies: false,
                    targets,
                    parameters,
                    surplus: 0,
                    casts: Vec::new(),
                    direct: false,
                })
            }
        };
        let returns = used == TextFor::Result;
        let result = returns.then(|| self.columns.clone());
        // What it touches shows only when it runs.
        self.note(unknown_access("dynamic SQL", "EXECUTE is bound when it runs"));
        let text = self.plan_expression(&bound_text)?;
        let binder = Arc::new(TextBinder {
            environment: self.environment.clone(),
            linker: self.shared_linker(),
            types,
            transitions: self.transitions().cloned(),
            wanted,
            looped: used == TextFor::Loop,
            result,
            found,
            kept: Default::default(),
            pieces: Default::default(),
            cursors: Default::default(),
        });
        Ok(DynamicPlan { text, using, into, returns, looped: used == TextFor::Loop, binder })
    }

    /// USING as text, for what INTO STRICT tells.
    fn using_values(&mut self, using: &[Fragment]) -> Result<Vec<(Box<str>, Compiled)>> {
        let mut values = Vec::new();
        for (index, value) in using.iter().enumerate() {
            let value = self.bind(value, None)?;
            let text = match value.ty.oid {
                Oid::TEXT | Oid::UNKNOWN => value,
                _ => BoundExpr { kind: ExprKind::ConvertIo(Box::new(value)), ty: Type::TEXT },
            };
            values.push((format!("${}", index + 1).into(), self.plan_expression(&text)?));
        }
        Ok(values)
    }

    /// Whether one of the targets is a variable that takes the structure of the rows.
    pub(super) fn takes_record(&self, targets: &[Target]) -> bool {
        targets.iter().any(|target| {
            target.path.is_empty() && matches!(self.storage[target.variable as usize], Storage::Record { .. })
        })
    }

    /// The tables that the trigger names whose function this is.
    fn transitions(&self) -> Option<&Transitions> {
        self.trigger.as_ref().map(|rows| &rows.transitions)
    }

    /// The columns of an EXECUTE whose text is a constant.
    pub(super) fn constant_columns(&self, query: &Dynamic) -> Option<Vec<(String, Type)>> {
        let text = self.bind(&query.text, Some(Type::TEXT)).ok()?;
        let types: Result<Vec<Type>> =
            query.using.iter().map(|value| Ok(self.bind(value, None)?.ty)).collect();
        self.text_columns(&text, &types.ok()?).ok()
    }

    /// The structures of the rows at a place where a text is executed: those that earlier runs have found,
    /// and that of a constant text. `None` where that one is all there is.
    fn structures_of_text(
        &self,
        place: shape::Place,
        text: &BoundExpr,
        types: &[Type],
    ) -> Option<Vec<shape::Structure>> {
        if !is_constant(text) {
            return Some(self.environment.shapes.get(place));
        }
        let columns = self.text_columns(text, types).ok()?;
        let structures = self.environment.shapes.with(place, columns);
        (structures.len() > 1).then_some(structures)
    }

    fn text_columns(&self, text: &BoundExpr, types: &[Type]) -> Result<Vec<(String, Type)>> {
        let (ExprKind::Const(Datum::Text(text)), true) = (&text.kind, is_constant(text)) else {
            return Err(SqlError::unsupported("EXECUTE of computed text into a record variable"));
        };
        let within = (self.environment, self.linker.as_ref());
        // The last statement answers.
        let several = several(text).and_then(|mut statements| statements.pop());
        let text = several.as_deref().unwrap_or(text);
        let bound = match parse_statement(text) {
            Ok(call @ SqlAst::Call(_)) => bind_parsed(within, &call, text, types, self.transitions()),
            _ => bind_text(within, text, types, self.transitions()),
        };
        let (bound, _) = bound.map_err(|error| context::of_statement(error, text))?;
        Ok(output_columns(&bound).iter().map(|c| (c.name.clone(), c.ty)).collect())
    }
}

/// Binds a text, and says what it needs to be allowed.
pub(super) fn bind_text(
    (environment, linker): (&Environment, &(dyn RoutineLinker + Send + Sync)),
    text: &str,
    types: &[Type],
    transitions: Option<&Transitions>,
) -> Result<(BoundStatement, Vec<Requirement>)> {
    bind_parsed((environment, linker), &parse_text(text)?, text, types, transitions)
}

fn parse_text(text: &str) -> Result<SqlAst> {
    with_rows(parse_statement(text)?)
}

/// The statements of a text that has several, all such as EXECUTE binds itself. Each stands where it
/// stands in the text: what is said of it has a place there.
fn several(text: &str) -> Option<Vec<String>> {
    let statements = archipel_sql::parser::parse(text).ok().filter(|statements| statements.len() > 1)?;
    let alone = |statement: StatementText| {
        with_rows(statement.statement).ok()?;
        let before = text[..statement.range.start].chars().map(|_| ' ');
        Some(before.chain(text[statement.range].chars()).collect())
    };
    statements.into_iter().map(alone).collect()
}

/// A statement that EXECUTE binds itself: one that can have rows.
fn with_rows(statement: SqlAst) -> Result<SqlAst> {
    match &statement {
        SqlAst::Query(_)
        | SqlAst::Insert(_)
        | SqlAst::Update(_)
        | SqlAst::Delete(_)
        | SqlAst::Explain(_)
        | SqlAst::Merge(_) => Ok(statement),
        SqlAst::Unsupported { what, .. } => Err(SqlAst::refusal(what)),
        other => Err(command::refused_text(other)),
    }
}

fn bind_parsed(
    (environment, linker): (&Environment, &(dyn RoutineLinker + Send + Sync)),
    statement: &SqlAst,
    text: &str,
    types: &[Type],
    transitions: Option<&Transitions>,
) -> Result<(BoundStatement, Vec<Requirement>)> {
    if let SqlAst::Explain(explained) = statement {
        let needed = RefCell::new(Vec::new());
        let bound = explain::rows(explained, environment, linker, &|inner| {
            let (bound, required) = bind_parsed((environment, linker), inner, text, types, transitions)?;
            *needed.borrow_mut() = required;
            Ok(bound)
        })?;
        return Ok((bound, needed.into_inner()));
    }
    let context = no_session();
    let mut env = bind_env(environment, &context, text);
    env.variables = transitions.map(|transitions| transitions as &dyn VariableScope);
    env.param_types = types.iter().copied().map(Some).collect();
    env.params_fixed = true;
    let bound = bind::bind_statement(statement, &mut env)?;
    Ok((bound, env.required))
}

/// The results of a CALL as the row of a query.
fn row_of_call(call: BoundCall) -> BoundStatement {
    let BoundCall { routine, args, columns } = call;
    let types = columns.iter().map(|column| column.ty).collect();
    let call = SetCall::Routine { routine, args };
    BoundStatement::Query(BoundQuery { rel: Rel::Function { call, ordinality: false, types }, columns })
}

fn into_without_rows() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "INTO used with a command that cannot return data")
}

fn is_constant(text: &BoundExpr) -> bool {
    // What an EXECUTE runs, its session knows.
    matches!(&text.kind, ExprKind::Const(Datum::Text(text)) if execute_of(text).is_none())
}

/// Binds the text of one EXECUTE and keeps what it bound.
pub(super) struct TextBinder {
    pub(super) environment: Environment,
    pub(super) linker: Arc<dyn RoutineLinker + Send + Sync>,
    pub(super) types: Vec<Type>,
    /// The tables that the trigger names whose function this is.
    pub(super) transitions: Option<Transitions>,
    /// What its columns must become; where it is found out at run time, of one of these.
    wanted: Option<Alternatives>,
    /// Whether a loop goes over the rows.
    looped: bool,
    result: Option<Columns>,
    /// Where the structure of the rows shows at run time: the place, and what was compiled for.
    found: Option<(shape::Place, Vec<shape::Structure>)>,
    kept: Kept<Bound<CompiledStatement>>,
    pieces: Kept<Option<Arc<Pieces>>>,
    cursors: Kept<Bound<CursorQuery>>,
}

/// What a text was bound to, and who may run it.
pub(super) struct Bound<T> {
    rights: Option<Rights>,
    compiled: Arc<T>,
}

impl<T> Bound<T> {
    pub(super) fn checked(&self, session: &dyn SessionHost) -> Result<Arc<T>> {
        if let Some(rights) = &self.rights {
            rights.check(session)?;
        }
        Ok(self.compiled.clone())
    }
}

/// What texts were bound to.
struct Kept<T>(Mutex<FxHashMap<String, Arc<T>>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept(Mutex::default())
    }
}

impl<T> Kept<T> {
    fn get(&self, text: &str) -> Option<Arc<T>> {
        self.0.lock().get(text).cloned()
    }

    /// Keeps one; beyond the limit, all are bound again.
    fn keep(&self, text: &str, bound: T) -> Arc<T> {
        let bound = Arc::new(bound);
        let mut kept = self.0.lock();
        if kept.len() >= DYNAMIC_KEPT_MAX {
            kept.clear();
        }
        kept.insert(text.to_string(), bound.clone());
        bound
    }
}

impl TextBinder {
    pub(super) fn compiled(
        &self,
        bound: &BoundStatement,
        needed: Vec<Requirement>,
    ) -> Result<Bound<CompiledStatement>> {
        let env = CompileEnv {
            tables: self.environment.tables.as_ref(),
            catalog: &self.environment.catalog,
            routines: self.linker.as_ref(),
        };
        let compiled = Arc::new(native::compile_statement(bound, &env)?);
        Ok(Bound { rights: Rights::of(needed), compiled })
    }

    /// A text as the statement that wants its rows takes it, and what it needs to be allowed.
    fn bound(&self, text: &str) -> ExecResult<(BoundStatement, Vec<Requirement>)> {
        let within = (&self.environment, self.linker.as_ref());
        let into = self.wanted.is_some() && !self.looped;
        let statement = match parse_statement(text)? {
            call @ SqlAst::Call(_) if into => call,
            other if into && command::is_plain_command(&other) => return Err(into_without_rows().into()),
            other => with_rows(other)?,
        };
        let (mut bound, needed) =
            bind_parsed(within, &statement, text, &self.types, self.transitions.as_ref())?;
        if let BoundStatement::Call(call) = bound {
            bound = row_of_call(call);
        }
        let mut at = 0;
        if let Some((place, compiled)) = &self.found
            && !output_columns(&bound).is_empty()
        {
            at = self.environment.shapes.check(*place, compiled, output_columns(&bound))?;
        }
        if let Some(wanted) = &self.wanted {
            if output_columns(&bound).is_empty() && self.looped {
                let tag = parse_statement(text)?.tag();
                let message = format!("cannot open {tag} query as cursor");
                return Err(SqlError::new(SqlState(*b"42P11"), message).into());
            }
            if output_columns(&bound).is_empty() {
                return Err(into_without_rows().into());
            }
            if let Some((_, types)) = wanted.get(at) {
                cast_columns(&mut bound, types, &self.environment)?;
            }
            if self.found.is_some() {
                tagged::widen(&mut bound, at, wanted);
            }
        }
        if let Some(result) = &self.result {
            super::result::check_columns(
                &bound,
                result,
                "structure of query does not match function result type",
            )?;
        }
        Ok((bound, needed))
    }
}

impl DynamicBinder for TextBinder {
    fn bind(&self, text: &str, session: &dyn SessionHost) -> ExecResult<Arc<CompiledStatement>> {
        if let Some(known) = self.kept.get(text) {
            return Ok(known.checked(session)?);
        }
        let (bound, needed) = self.bound(text)?;
        let kept = self.kept.keep(text, self.compiled(&bound, needed)?);
        Ok(kept.checked(session)?)
    }

    fn prepared(&self, text: &str, session: &dyn SessionHost) -> Option<Result<PreparedStatement>> {
        Some(self.prepared_statement(&execute_of(text)?, session))
    }

    fn several(
        &self,
        text: &str,
        session: &dyn SessionHost,
    ) -> Option<ExecResult<Vec<Arc<CompiledStatement>>>> {
        let statements = several(text)?;
        let bind = |(place, statement): (usize, &String)| {
            if place + 1 == statements.len() {
                return self.bind(statement, session);
            }
            let within = (&self.environment, self.linker.as_ref());
            let (bound, needed) = bind_text(within, statement, &self.types, self.transitions.as_ref())?;
            Ok(self.compiled(&bound, needed)?.checked(session)?)
        };
        Some(statements.iter().enumerate().map(bind).collect())
    }

    fn pieces(&self, text: &str) -> ExecResult<Option<Arc<Pieces>>> {
        if !self.environment.in_pieces {
            return Ok(None);
        }
        if let Some(known) = self.pieces.get(text) {
            return Ok((*known).clone());
        }
        let (bound, _) = self.bound(text)?;
        let width = output_columns(&bound).len();
        let routine = query_as_routine(text, &self.types);
        let program = super::sql::compile_bound(bound, &routine, &self.environment, &self.linker)?;
        let pieces = program.map(|program| Arc::new(Pieces { program: Arc::new(program), width }));
        Ok((*self.pieces.keep(text, pieces)).clone())
    }

    fn command(&self, text: &Arc<str>, params: &[Datum]) -> Option<(Command, &'static str)> {
        command::of_text(text, &self.types, params)
    }

    fn notification(&self, text: &str) -> Option<Result<Notification>> {
        command::notification_of(text)
    }

    fn bind_cursor(&self, text: &str, session: &dyn SessionHost) -> Result<Arc<CursorQuery>> {
        if let Some(known) = self.cursors.get(text) {
            return known.checked(session);
        }
        let statement = parse_text(text)?;
        let needed = RefCell::new(Vec::new());
        let within = (&self.environment, self.linker.as_ref());
        let bound = BoundCursor::of(&statement, &self.environment, &|statement| {
            let (bound, required) =
                bind_parsed(within, statement, text, &self.types, self.transitions.as_ref())?;
            *needed.borrow_mut() = required;
            Ok(bound)
        })?;
        let env = CompileEnv {
            tables: self.environment.tables.as_ref(),
            catalog: &self.environment.catalog,
            routines: self.linker.as_ref(),
        };
        let compiled = native::compile_statement(&bound.bound, &env)?;
        let compiled = Arc::new(bound.compiled(compiled, text));
        let rights = Rights::of(needed.into_inner());
        self.cursors.keep(text, Bound { rights, compiled }).checked(session)
    }
}

/// An access of which nothing is known beforehand.
pub(crate) fn unknown_access(what: &str, reason: &str) -> Access {
    Access {
        group: None,
        table: what.to_string(),
        oid: Oid(0),
        column: String::new(),
        write: true,
        key_column: KeyColumn {
            column: 0,
            descending: false,
            nulls_first: false,
            nullable: false,
            form: Default::default(),
        },
        kind: ColumnKind::Int8,
        codec: Codec::Int8,
        key: RouteKey::Unknown(reason.to_string()),
        among: None,
        candidates: Vec::new(),
    }
}
