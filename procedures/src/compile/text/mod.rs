//! The text of an EXECUTE: bound when it runs, and kept as long as it means the same.
//!
//! - [`prepared`] EXECUTE of an EXECUTE

mod prepared;

use std::cell::RefCell;
use std::sync::Arc;

use crate::rights::Rights;
use archipel_planner::bind::{self, VariableScope};
use archipel_planner::bound::{
    BoundCall, BoundExpr, BoundQuery, BoundStatement, ExprKind, OutputColumn, Rel, SetCall,
};
use archipel_planner::native::notify::Notification;
use archipel_planner::native::{self, CompileEnv, CompiledStatement, ExecResult, RoutineLinker};
use archipel_planner::prepared::bind_arguments;
use archipel_sql::ast::{Execute, Statement, Statement as SqlAst, StatementText};
use archipel_sql::catalog::{Catalog, LookupRecorder, Requirement, Validity};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::SessionHost;
use archipel_sql::interrupt;
use archipel_sql::parser::{Keeps, parse_statement, standard_strings};
use archipel_sql::types::Type;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::cast::{cast_columns, gather_columns, gather_record, may_refuse, row_of_record};
use super::statement::cursor_query::BoundCursor;

use super::environment::{bind_env, no_session};
use super::record::shape;
use super::record::variant;
use super::record::variant::Alternatives;
use super::statement::command_text;
use super::trigger::rows::Transitions;
use super::{Columns, Environment, Reader, explain};
use crate::query_routine::query_as_routine;
use crate::run::operation::expression::Compiled;
use crate::run::operation::*;
use crate::run::pause::Command;

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
pub(super) fn several(text: &str) -> Option<Vec<String>> {
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
        | SqlAst::Show(_)
        | SqlAst::Merge(_) => Ok(statement),
        SqlAst::Unsupported { what, .. } => Err(SqlAst::refusal(what)),
        other => Err(command_text::refused_text(other)),
    }
}

pub(super) fn bind_parsed(
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
    let names = environment.type_names();
    let context = no_session(&names);
    let mut env = bind_env(environment, &context, text);
    env.variables = transitions.map(|transitions| transitions as &dyn VariableScope);
    env.param_types = types.iter().copied().map(Some).collect();
    env.params_fixed = true;
    let bound = bind::bind_statement(statement, &mut env)?;
    Ok((bound, env.required))
}

/// Binds the query of an EXECUTE's arguments for parameters of these types.
pub(super) fn bind_arguments_text(
    environment: &Environment,
    text: &str,
    types: &[Type],
    transitions: Option<&Transitions>,
) -> Result<(BoundStatement, Vec<Requirement>)> {
    let names = environment.type_names();
    let context = no_session(&names);
    let mut env = bind_env(environment, &context, text);
    env.variables = transitions.map(|transitions| transitions as &dyn VariableScope);
    let bound = bind_arguments(&parse_text(text)?, (1, types), &mut env)?;
    Ok((bound, env.required))
}

/// The results of a CALL as the row of a query.
fn row_of_call(call: BoundCall) -> BoundStatement {
    let BoundCall { routine, args, columns } = call;
    let types = columns.iter().map(|column| column.ty).collect();
    let call = SetCall::Routine { routine, args };
    BoundStatement::Query(BoundQuery {
        rel: Rel::Function { call, ordinality: false, types, alias: None },
        columns,
    })
}

fn into_without_rows() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "INTO used with a command that cannot return data")
}

pub(super) fn is_constant(text: &BoundExpr) -> bool {
    // What an EXECUTE runs, its session knows.
    matches!(&text.kind, ExprKind::Const(Datum::Text(text)) if execute_of(text).is_none())
}

/// Statements of one EXECUTE kept by their text.
const DYNAMIC_KEPT_MAX: usize = 64;

/// Binds the text of one EXECUTE and keeps what it bound.
pub(super) struct TextBinder {
    pub(super) environment: Environment,
    pub(super) linker: Arc<dyn RoutineLinker + Send + Sync>,
    pub(super) types: Vec<Type>,
    /// The tables that the trigger names whose function this is.
    pub(super) transitions: Option<Transitions>,
    /// What its columns must become; where it is found out at run time, of one of these.
    pub(super) wanted: Option<Alternatives>,
    /// The composite type whose domain the only variable is of that takes the rows.
    pub(super) row: Option<Type>,
    /// Whether a loop goes over the rows.
    pub(super) looped: bool,
    pub(super) result: Option<Columns>,
    /// Where the structure of the rows shows at run time: the place, and what was compiled for.
    pub(super) found: Option<(shape::Place, Vec<shape::Structure>)>,
    pub(super) known: Known,
}

/// What texts were bound to.
#[derive(Default)]
pub(super) struct Known {
    statements: Kept<Bound<BoundText>>,
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

/// One for each of some texts, and until when it is good.
struct Kept<T>(Mutex<FxHashMap<String, Valid<T>>>);

/// Something, how long it is good, and for whom alone if policies went into it.
struct Valid<T> {
    validity: Arc<Validity>,
    reader: Option<Reader>,
    known: Arc<T>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept(Mutex::default())
    }
}

impl<T> Kept<T> {
    /// What a text was bound to, if it means the same in this catalog and to this reader.
    fn get(&self, text: &str, (catalog, reader): (&Catalog, Reader)) -> Option<Arc<T>> {
        let (validity, known) = {
            let kept = self.0.lock();
            let Valid { validity, reader: of, known } = kept.get(text)?;
            if of.is_some_and(|of| of != reader) {
                return None;
            }
            (validity.clone(), known.clone())
        };
        validity.holds(catalog).then_some(known)
    }

    /// Keeps one that was bound within `within`; beyond the limit, all are bound again.
    fn keep(&self, text: &str, bound: T, within: &Within) -> Arc<T> {
        let bound = Arc::new(bound);
        let asked = within.asked.finish();
        let reader = asked.have_row_security().then(|| within.environment.reader());
        let validity = Arc::new(Validity::of(asked, &within.environment.catalog));
        let mut kept = self.0.lock();
        if kept.len() >= DYNAMIC_KEPT_MAX {
            kept.clear();
        }
        kept.insert(text.to_string(), Valid { validity, reader, known: bound.clone() });
        bound
    }
}

/// What a text is bound against: the catalog that the statement under way sees, and whatever is asked
/// of that is written down.
pub(super) struct Within {
    environment: Environment,
    linker: Arc<dyn RoutineLinker + Send + Sync>,
    asked: Arc<LookupRecorder>,
}

impl Within {
    pub(super) fn parts(&self) -> (&Environment, &(dyn RoutineLinker + Send + Sync)) {
        (&self.environment, self.linker.as_ref())
    }

    fn compile_env(&self) -> CompileEnv<'_> {
        CompileEnv {
            tables: self.environment.tables.as_ref(),
            catalog: &self.environment.catalog,
            search_path: &self.environment.search_path,
            routines: self.linker.as_ref(),
        }
    }

    pub(super) fn compiled(
        &self,
        bound: &BoundStatement,
        needed: Vec<Requirement>,
    ) -> Result<Bound<CompiledStatement>> {
        let compiled = Arc::new(native::compile_statement(bound, &self.compile_env())?);
        Ok(Bound { rights: Rights::of(needed), compiled })
    }

    fn compiled_text(
        &self,
        bound: &BoundStatement,
        needed: Vec<Requirement>,
        stored: Stored,
    ) -> Result<Bound<BoundText>> {
        let statement = native::compile_statement(bound, &self.compile_env())?;
        let compiled = Arc::new(BoundText { statement, stored: Arc::new(stored) });
        Ok(Bound { rights: Rights::of(needed), compiled })
    }
}

impl TextBinder {
    /// The catalog that a session's statement sees.
    fn catalog<'b>(&'b self, session: &'b dyn SessionHost) -> &'b Catalog {
        Catalog::of_session(session).unwrap_or(&self.environment.catalog)
    }

    /// The same, and for whom it looks at policies.
    fn sight<'b>(&'b self, session: &'b dyn SessionHost) -> (&'b Catalog, Reader) {
        (self.catalog(session), self.environment.reader_of(session))
    }

    /// What a text is bound against that a session runs now.
    pub(super) fn within(&self, session: &dyn SessionHost) -> Within {
        let (catalog, asked) = self.catalog(session).noting();
        let reader = self.environment.reader_of(session);
        let linker = self.linker.at(&catalog, Some(reader)).unwrap_or_else(|| self.linker.clone());
        let environment = Environment { catalog, ..self.environment.read_by(reader) };
        Within { environment, linker, asked }
    }

    /// A text as the statement that wants its rows takes it, and what it needs to be allowed. With
    /// `late`, what a conversion may refuse is left to the row that INTO stores.
    fn bound(
        &self,
        text: &str,
        late: bool,
        within: &Within,
    ) -> ExecResult<(BoundStatement, Vec<Requirement>, Stored)> {
        let into = self.wanted.is_some() && !self.looped;
        let statement = match parse_statement(text)? {
            call @ SqlAst::Call(_) if into => call,
            other if into && command_text::is_plain_command(&other) => return Err(into_without_rows().into()),
            other => with_rows(other)?,
        };
        let (mut bound, needed) =
            bind_parsed(within.parts(), &statement, text, &self.types, self.transitions.as_ref())?;
        if let BoundStatement::Call(call) = bound {
            bound = row_of_call(call);
        }
        let mut stored = Stored::default();
        let mut at = 0;
        if let Some((place, compiled)) = &self.found
            && !bound.columns().is_empty()
        {
            at = self.environment.shapes.check(*place, compiled, bound.columns())?;
        }
        if let Some(wanted) = &self.wanted {
            if bound.columns().is_empty() && self.looped {
                let tag = parse_statement(text)?.tag();
                let message = format!("cannot open {tag} query as cursor");
                return Err(SqlError::new(SqlState(*b"42P11"), message).into());
            }
            if bound.columns().is_empty() {
                return Err(into_without_rows().into());
            }
            if let Some(row) = self.row {
                let environment = &within.environment;
                if into && late {
                    let columns = gather_record(&mut bound);
                    let record = BoundExpr::new(ExprKind::Param(0), Type::RECORD);
                    let gathered = row_of_record(&record, &columns, row, environment)?;
                    let declared = wanted.first().and_then(|(_, types)| types.first());
                    let cast =
                        crate::compile::cast::cast(gathered, declared.copied().unwrap_or(row), environment)?;
                    stored.casts = vec![(0, native::compile_expr(&cast, &within.compile_env())?)];
                    return Ok((bound, needed, stored));
                }
                gather_columns(&mut bound, row, environment)?;
            }
            if let Some((number, types)) = wanted.get(at) {
                let mut types = types.clone();
                if into && late {
                    let before = wanted[..at].iter().map(|(_, types)| types.len()).sum();
                    stored.casts = casts(bound.columns(), &mut types, before, within)?;
                }
                cast_columns(&mut bound, &types, &within.environment)?;
                stored.structure = self.found.is_some().then_some(*number);
            }
            if self.found.is_some() {
                variant::widen(&mut bound, at, wanted);
            }
        }
        if let Some(result) = &self.result {
            crate::compile::statement::result_columns::check_columns(
                &bound,
                result,
                "structure of query does not match function result type",
                &within.environment.type_names(),
            )?;
            if *result == Columns::Record {
                crate::compile::cast::as_records(&mut bound);
            }
        }
        Ok((bound, needed, stored))
    }
}

/// What a conversion may refuse becomes another type when the row is there that is stored: the
/// conversions, by places in a row with so many columns before; the statement leaves those as they are.
fn casts(
    columns: &[OutputColumn],
    types: &mut [Type],
    before: usize,
    within: &Within,
) -> Result<Vec<(usize, Compiled)>> {
    let environment = &within.environment;
    let mut casts = Vec::new();
    for (place, (ty, column)) in types.iter_mut().zip(columns).enumerate() {
        let of_domain = environment.catalog.domain_of(column.source).is_some();
        if of_domain || !may_refuse(column.ty, *ty, environment) {
            continue;
        }
        let value = BoundExpr::new(ExprKind::Param(0), column.ty);
        let cast = crate::compile::cast::cast(value, *ty, environment)?;
        casts.push((before + place, native::compile_expr(&cast, &within.compile_env())?));
        *ty = column.ty;
    }
    Ok(casts)
}

impl DynamicBinder for TextBinder {
    fn standard(&self, text: &str) -> Result<Arc<str>> {
        Ok(standard_strings(text, self.environment.strings, Keeps::Characters).text?.into())
    }

    fn bind(&self, text: &str, session: &dyn SessionHost) -> ExecResult<Arc<BoundText>> {
        if let Some(known) = self.known.statements.get(text, self.sight(session)) {
            return Ok(known.checked(session)?);
        }
        let within = self.within(session);
        let (bound, needed, stored) = self.bound(text, true, &within)?;
        let compiled = within.compiled_text(&bound, needed, stored)?;
        Ok(self.known.statements.keep(text, compiled, &within).checked(session)?)
    }

    fn prepared(&self, text: &str, session: &dyn SessionHost) -> Option<Result<PreparedStatement>> {
        Some(self.prepared_statement(&execute_of(text)?, session))
    }

    fn several(&self, text: &str, session: &dyn SessionHost) -> Option<ExecResult<Vec<Arc<BoundText>>>> {
        let statements = several(text)?;
        let bind = |(place, statement): (usize, &String)| {
            if place + 1 == statements.len() {
                return self.bind(statement, session);
            }
            let within = self.within(session);
            let (bound, needed) =
                bind_text(within.parts(), statement, &self.types, self.transitions.as_ref())?;
            Ok(within.compiled_text(&bound, needed, Stored::default())?.checked(session)?)
        };
        Some(statements.iter().enumerate().map(bind).collect())
    }

    fn pieces(&self, text: &str, session: &dyn SessionHost) -> ExecResult<Option<Arc<Pieces>>> {
        if !self.environment.in_pieces {
            return Ok(None);
        }
        if let Some(known) = self.known.pieces.get(text, self.sight(session)) {
            return Ok((*known).clone());
        }
        let within = self.within(session);
        // It may go on after its text has come to mean something else: it converts its rows itself.
        let (bound, _, stored) = self.bound(text, false, &within)?;
        let width = bound.columns().len();
        let routine = query_as_routine(text, &self.types);
        let program = super::sql::compile_bound(bound, &routine, &within.environment, &within.linker)?;
        // What ends the statement now is not to be kept as a failure of the text.
        interrupt::check()?;
        let pieces = program
            .map(|program| Arc::new(Pieces { program: Arc::new(program), width, stored: Arc::new(stored) }));
        Ok((*self.known.pieces.keep(text, pieces, &within)).clone())
    }

    fn command(&self, text: &Arc<str>, params: &[Datum]) -> Option<(Command, &'static str)> {
        command_text::of_text(text, &self.types, params)
    }

    fn notification(&self, text: &str) -> Option<Result<Notification>> {
        command_text::notification_of(text)
    }

    fn bind_cursor(&self, text: &str, session: &dyn SessionHost) -> Result<Arc<CursorQuery>> {
        if let Some(known) = self.known.cursors.get(text, self.sight(session)) {
            return known.checked(session);
        }
        let statement = parse_text(text)?;
        let needed = RefCell::new(Vec::new());
        let within = self.within(session);
        let bound = BoundCursor::of(&statement, &within.environment, &|statement| {
            let (bound, required) =
                bind_parsed(within.parts(), statement, text, &self.types, self.transitions.as_ref())?;
            *needed.borrow_mut() = required;
            Ok(bound)
        })?;
        let compiled = native::compile_statement(&bound.bound, &within.compile_env())?;
        let compiled = Arc::new(bound.compiled(compiled, text));
        let rights = Rights::of(needed.into_inner());
        self.known.cursors.keep(text, Bound { rights, compiled }, &within).checked(session)
    }
}

/// The EXECUTE that a text is.
fn execute_of(text: &str) -> Option<Execute> {
    let word = text.trim_start().get(..EXECUTE.len())?;
    if !word.eq_ignore_ascii_case(EXECUTE) {
        return None;
    }
    match parse_statement(text) {
        Ok(Statement::Execute(execute)) => Some(execute),
        _ => None,
    }
}

const EXECUTE: &str = "execute";
