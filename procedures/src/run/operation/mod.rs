//! The compiled form of a routine.
//!
//! - [`expression`]  compiled expressions over the registers of a routine
//! - [`into`]        INTO; [`cursor_plan`] FETCH, MOVE and WHERE CURRENT OF
//! - [`site`]        where in the text something happens

pub(crate) mod cursor_plan;
pub(crate) mod expression;
pub(crate) mod into;
pub(crate) mod site;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::rights::Rights;
use archipel_planner::bound::OutputColumn;
use archipel_planner::native::ExecResult;
use archipel_planner::native::cursor::CursorKey;
use archipel_planner::native::notify::Notification;
use archipel_planner::native::prefetch::RowAhead;
use archipel_planner::native::scalar::SharedExpr;
use archipel_planner::native::{CompiledRoutine, CompiledStatement};
use archipel_planner::route::Access;
use archipel_sql::catalog::{FiresIn, RoutineRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{ResolvedFunction, SessionHost};
use archipel_sql::types::{Oid, Type};
use compact_str::CompactString;

use super::context_line;
pub use super::place::{OutColumn, Place, Targets};
pub use super::sink::Stored;

use super::flow_draft::Drafts;
use super::machine::instruction::{Instruction, Variable};
use super::pause::Command;
use super::pause::recompile::Home;
use crate::compile::record::shape::{self, Shapes, Structure};
use crate::plpgsql::ast::{Condition, Diagnostic, Level, RaiseOption};
use cursor_plan::{CurrentOfPlan, CursorPlace, FetchPlan};
use expression::{Compiled, Expression};
use into::IntoPlan;
use site::Site;

/// A routine ready to run.
pub struct Program {
    pub routine: RoutineRef,
    /// Its SET clauses, as far as a call runs with them.
    pub settings: Vec<(String, String)>,
    /// `f(integer,text)`, for CONTEXT lines.
    pub signature: String,
    /// How many registers a call needs.
    pub registers: u32,
    /// Where the arguments go.
    pub arguments: Vec<Place>,
    /// The arguments are the first registers, in order.
    pub plain_arguments: bool,
    pub found: u32,
    /// Rows whose keys the arguments tell.
    pub ahead: Vec<RowAhead>,
    /// What is fetched ahead, for EXPLAIN: tables, by what tells their keys.
    pub ahead_text: Vec<String>,
    pub body: Operation,
    /// The OUT, INOUT and TABLE columns.
    pub columns: Vec<OutColumn>,
    /// The registers of these, if they are each a register, in order.
    pub columns_at: Option<Range<usize>>,
    /// Columns of a result row.
    pub width: u32,
    pub at_end: AtEnd,
    /// What it will touch, over its arguments and, behind them, `reference_reads`.
    pub accesses: Vec<Access>,
    /// One access for each different key of a group: what predictions evaluate.
    pub routes: Vec<Access>,
    /// Values read from reference tables that keys depend on, over the arguments.
    pub reference_reads: Vec<ReferenceRead>,
    /// Statements that could not be bound, by line, and why: they fail when they are reached.
    pub failures: Vec<(u32, String)>,
    /// What depends on what.
    pub(crate) flow: Drafts,
    /// Where its variables live.
    pub homes: Vec<Home>,
    /// How CONTEXT lines name it.
    pub language: ContextLanguage,
    /// See [`CompiledRoutine::dissolved`].
    pub dissolved: Option<bool>,
    /// Whether it asks where its callers are; and something that it calls, as far as is known by now.
    pub asks: bool,
    pub asked_below: Arc<AtomicBool>,
}

/// A value of a reference table that a key depends on: read before the call is routed.
pub struct ReferenceRead {
    pub value: Compiled,
    /// The query as written, on one line.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextLanguage {
    PlPgSql,
    Sql,
    /// A SQL function of one expression.
    Inlined,
}

impl Program {
    /// Appends this routine's line to an error's context.
    pub fn add_context(&self, error: SqlError, site: Option<Site>) -> SqlError {
        match self.context_line(site) {
            Some(line) => context_line::add_line(error, &line),
            None => error,
        }
    }

    /// This routine's line of a context; none for one that PostgreSQL would have dissolved in the
    /// query that calls it.
    pub fn context_line(&self, site: Option<Site>) -> Option<String> {
        let line = match (self.language, site) {
            (ContextLanguage::Inlined, _) => return None,
            (ContextLanguage::Sql, Some(site)) if site.is_phase() => {
                format!("SQL function \"{}\" {}", self.routine.name, site.what)
            }
            (ContextLanguage::Sql, Some(site)) => {
                format!("SQL function \"{}\" statement {}", self.routine.name, site.line)
            }
            (ContextLanguage::Sql, None) => format!("SQL function \"{}\"", self.routine.name),
            (ContextLanguage::PlPgSql, Some(site)) if site.line > 0 => {
                format!(
                    "PL/pgSQL function {} line {}{}{}",
                    self.signature,
                    site.line,
                    if site.is_phase() { " " } else { " at " },
                    site.what
                )
            }
            (ContextLanguage::PlPgSql, Some(site)) if site.is_phase() => {
                format!("PL/pgSQL function {} {}", self.signature, site.what)
            }
            (ContextLanguage::PlPgSql, _) => format!("PL/pgSQL function {}", self.signature),
        };
        Some(line)
    }

    /// Whether it has to tell where it is: something that it calls may ask.
    pub fn tells(&self) -> bool {
        self.asked_below.load(Ordering::Relaxed)
    }
}

/// What happens when control reaches the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    Nothing,
    /// A function returning void: one row of it.
    Void,
    /// OUT columns as they stand.
    Columns,
    /// An error: RETURN was not reached.
    Missing,
    /// The same, in the function of a trigger.
    MissingOfTrigger,
}

pub struct Operation {
    pub site: Site,
    pub kind: OperationKind,
    /// What whoever runs it must be allowed, asked for when it is reached.
    pub rights: Option<Arc<Rights>>,
}

impl Operation {
    /// The statement it runs, for CONTEXT lines.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            OperationKind::Sql { statement, .. }
            | OperationKind::Perform(statement)
            | OperationKind::ReturnQuery { statement, .. }
            | OperationKind::FirstRow { statement, .. } => statement.text.as_deref(),
            OperationKind::Hoisted { statement, .. } => statement.text(),
            _ => None,
        }
    }
}

pub enum OperationKind {
    Assign {
        register: u32,
        value: Expression,
    },
    AssignChecked {
        register: u32,
        value: Expression,
        name: Box<str>,
    },
    /// `text := text || part || …`: the parts, in order.
    AppendText {
        register: u32,
        parts: Vec<Expression>,
    },
    /// `array := array || element`.
    AppendElement {
        register: u32,
        element: Oid,
        value: Expression,
    },
    /// `array := array || other`.
    AppendArray {
        register: u32,
        value: Expression,
        function: ResolvedFunction,
    },
    /// Fields, evaluated first and stored then.
    AssignRow {
        targets: Targets,
        values: Vec<Compiled>,
    },
    /// From a record value.
    AssignRecord {
        targets: Targets,
        value: Compiled,
    },
    /// From a record value that tells its structure.
    AssignFound(Box<FoundRecord>),
    /// `array[i][j] := value`.
    AssignElement {
        register: u32,
        element: Oid,
        subscripts: Vec<Expression>,
        value: Expression,
    },
    /// `array[i:j] := value`; a bound left out is the array's.
    AssignSlice {
        register: u32,
        bounds: (Option<Compiled>, Option<Compiled>),
        value: Compiled,
    },
    If {
        arms: Vec<(Expression, Vec<Operation>)>,
        otherwise: Vec<Operation>,
    },
    Sequence(Vec<Operation>),
    Block {
        number: u32,
        body: Vec<Operation>,
        handlers: Option<Handlers>,
    },
    Loop(Box<Looping>),
    Leave {
        exit: bool,
        target: u32,
        when: Option<Expression>,
    },
    Return,
    ReturnColumns,
    /// RETURN of a value that is cast when the routine has ended, out of a register.
    ReturnCast {
        value: Compiled,
        register: u32,
        cast: Arc<Compiled>,
    },
    ReturnRow {
        values: Vec<Compiled>,
    },
    ReturnRecord {
        value: Compiled,
        /// How many columns are answered; the record itself where the routine is declared so.
        width: Option<u32>,
    },
    NextColumns,
    NextRow {
        values: Vec<Compiled>,
    },
    NextRecord {
        value: Compiled,
        width: Option<u32>,
    },
    ReturnQuery {
        statement: SqlStatement,
        /// Whether the only column is the row that is answered.
        spread: bool,
    },
    /// The last statement of a SQL function that returns one row: its first row, or NULLs.
    FirstRow {
        statement: SqlStatement,
        /// Whether the only column is the row that is answered.
        spread: bool,
    },
    Sql {
        statement: SqlStatement,
        into: Option<IntoPlan>,
    },
    Perform(SqlStatement),
    Call {
        routine: Arc<dyn CompiledRoutine>,
        args: Vec<Compiled>,
        targets: Option<Targets>,
        /// As written.
        text: Box<str>,
    },
    /// Lets the session take over settings that the statement before has changed.
    TakeSettings,
    Dynamic(Box<DynamicPlan>),
    Raise(Box<RaisePlan>),
    Assert {
        condition: Compiled,
        message: Option<Compiled>,
    },
    GetDiagnostics {
        items: Vec<(DiagnosticTarget, Diagnostic)>,
        stacked: bool,
    },
    /// COMMIT or ROLLBACK.
    EndTransaction {
        commit: bool,
        /// AND CHAIN.
        chain: bool,
        /// In a loop over the rows of a statement that changes them.
        changing: bool,
    },
    /// A definition or another statement that the session runs.
    Command {
        text: Arc<str>,
        /// As CONTEXT lines show it.
        written: Arc<str>,
        tag: &'static str,
        /// It follows a COMMIT or ROLLBACK: no query comes between.
        begins: bool,
        /// Types and registers of what it calls `$1` and so on.
        params: Box<[(Oid, u32)]>,
    },
    Notify {
        notification: Notification,
        /// As written.
        text: Box<str>,
    },
    Open(Box<OpenPlan>),
    /// FETCH and MOVE.
    Fetch(Box<FetchPlan>),
    Close {
        cursor: CursorPlace,
    },
    /// Before a statement with WHERE CURRENT OF.
    CurrentOf(Box<CurrentOfPlan>),
    /// A statement that the tree and a machine share.
    Shared(Arc<Operation>),
    /// A statement, and calls that are made before it.
    Hoisted {
        calls: Vec<Hoisted>,
        statement: Box<Operation>,
    },
    /// A statement that could not be bound.
    Fail {
        error: Box<SqlError>,
    },
}

/// What is called before the statement it stands in.
pub enum Hoisted {
    /// A call whose rows wait in a register.
    Call {
        call: HoistedCall,
        register: u32,
    },
    Rows(Box<HoistedRows>),
    Triggers(Box<HoistedTriggers>),
}

/// A call of a routine, or without one a value, which is the only argument.
pub struct HoistedCall {
    pub routine: Option<Arc<dyn CompiledRoutine>>,
    pub args: Vec<Compiled>,
    /// Not made at all where an argument is NULL.
    pub strict: bool,
    /// Made where this holds.
    pub when: Option<Compiled>,
}

/// Calls for each row of a query: the rows wait in a register, the answers behind their columns.
pub struct HoistedRows {
    pub input: CompiledStatement,
    pub width: usize,
    /// The columns that the calls read, answers of calls before them included, and where.
    pub columns: Vec<(u16, u32)>,
    pub calls: Vec<HoistedCall>,
    pub register: u32,
}

/// Triggers of a statement, which fire before it or after it.
pub struct HoistedTriggers {
    /// The rows that they fire for; once and for none without.
    pub input: Option<CompiledStatement>,
    pub places: RowPlaces,
    pub triggers: Vec<HoistedTrigger>,
    /// Whether what they answer is the row from then on; without an answer there is none.
    pub before: bool,
    /// Where the rows wait that they may name as tables, if these are not those of `input`.
    pub changed: Option<u32>,
    pub register: u32,
}

/// A trigger's function, and what its variables hold beside the rows.
pub struct HoistedTrigger {
    pub function: Arc<Program>,
    pub variables: Vec<Datum>,
    pub condition: Option<Arc<dyn CompiledRoutine>>,
    /// The tables it names: for each, whether its rows are the new ones.
    pub named: Vec<bool>,
    pub fires_in: FiresIn,
}

/// Where GET DIAGNOSTICS stores an item: through a scratch register, cast to the variable.
pub struct DiagnosticTarget {
    pub register: u32,
    pub scratch: u32,
    pub cast: Compiled,
}

/// A SQL statement of the body.
pub struct SqlStatement {
    pub compiled: CompiledStatement,
    /// As written, for CONTEXT lines; `None` where PostgreSQL prints none.
    pub text: Option<Box<str>>,
}

pub struct Handlers {
    pub sqlstate: u32,
    pub sqlerrm: u32,
    pub handlers: Vec<HandlerPlan>,
}

pub struct HandlerPlan {
    pub conditions: Vec<Condition>,
    pub body: Vec<Operation>,
}

pub struct Looping {
    pub number: u32,
    pub kind: LoopKind,
    pub body: Vec<Operation>,
    /// The whole of it for the machine, if that can run it.
    pub machine: Option<Box<Machine>>,
}

pub enum LoopKind {
    Forever,
    While {
        condition: Expression,
    },
    Integer {
        register: u32,
        lower: Expression,
        upper: Expression,
        step: Option<Box<Expression>>,
        reverse: bool,
        /// Rows whose keys depend on the counter.
        ahead: Vec<RowAhead>,
    },
    Rows {
        statement: Box<SqlStatement>,
        targets: Targets,
    },
    DynamicRows {
        plan: Box<DynamicPlan>,
    },
    Cursor {
        open: Box<OpenPlan>,
        targets: Targets,
    },
    Array {
        array: SharedExpr,
        /// The registers it reads.
        reads: Box<[u32]>,
        slice: u32,
        targets: Targets,
        /// The type of the target.
        element: Oid,
    },
}

/// The query of a cursor.
pub struct CursorQuery {
    pub compiled: CompiledStatement,
    /// Whether it fails where its rows are fetched, if it does.
    pub is_over_rows: bool,
    /// As written, for CONTEXT lines.
    pub text: Arc<str>,
    /// Those that FETCH answers; behind them stand the keys.
    pub columns: Arc<[OutputColumn]>,
    pub keys: Arc<[CursorKey]>,
    /// FOR UPDATE and the like.
    pub locks: bool,
}

/// OPEN.
pub struct OpenPlan {
    pub cursor: CursorPlace,
    /// Assignments to the arguments of a bound cursor.
    pub arguments: Vec<Operation>,
    pub query: OpenedQuery,
    pub scroll: Option<bool>,
}

pub enum OpenedQuery {
    Static(Box<CursorQuery>),
    Dynamic(Box<DynamicPlan>),
}

pub struct RaisePlan {
    pub level: Level,
    pub condition: Option<(String, archipel_sql::error::SqlState)>,
    pub format: Option<Vec<String>>,
    /// Parameters, as text; NULL prints as `<NULL>`.
    pub params: Vec<Compiled>,
    pub options: Vec<(RaiseOption, Compiled)>,
    pub again: bool,
}

/// A loop, compiled.
pub struct Machine {
    pub(crate) instructions: Vec<Instruction>,
    /// Where each of them stands in the source.
    pub(crate) sites: Vec<Site>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) codes: Vec<SharedExpr>,
    pub(crate) statements: Vec<Arc<Operation>>,
    pub(crate) rights: Vec<Arc<Rights>>,
    /// Registers of arrays that the loop changes, and the types of their elements.
    pub(crate) arrays: Vec<(u32, Oid)>,
    /// Constants.
    pub(crate) texts: Vec<Option<CompactString>>,
    /// How many strips and loops over arrays there are.
    pub(crate) strips: usize,
    pub(crate) eaches: usize,
    pub(crate) names: Vec<Box<str>>,
}

/// EXECUTE: bound when it runs, kept by text.
pub struct DynamicPlan {
    pub text: Compiled,
    /// What `$1` and so on are.
    pub using: Vec<Compiled>,
    pub into: Option<IntoPlan>,
    /// RETURN QUERY EXECUTE: its rows are the function's.
    pub returns: bool,
    /// A loop goes over the rows: what fails in it is not said of the text.
    pub looped: bool,
    pub binder: Arc<dyn DynamicBinder>,
}

/// Turns the text of EXECUTE into a statement over parameters.
pub trait DynamicBinder: Send + Sync {
    /// A text with its string constants as they are read where standard_conforming_strings is on.
    fn standard(&self, text: &str) -> Result<Arc<str>>;

    /// Binds a text, which the session must be allowed to run.
    fn bind(&self, text: &str, session: &dyn SessionHost) -> ExecResult<Arc<BoundText>>;

    /// The prepared statement that this text runs, if it is an EXECUTE of SQL.
    fn prepared(&self, text: &str, session: &dyn SessionHost) -> Option<Result<PreparedStatement>>;

    /// Binds each statement of a text that has several, if none of them is the session's: what the
    /// last one answers is what the EXECUTE does.
    fn several(&self, text: &str, session: &dyn SessionHost) -> Option<ExecResult<Vec<Arc<BoundText>>>>;

    /// A text that calls routines, in the form that can stop where they do; `None` if there is none.
    fn pieces(&self, text: &str, session: &dyn SessionHost) -> ExecResult<Option<Arc<Pieces>>>;

    /// What the session has to run, if this text is such a statement, or several.
    fn command(&self, text: &Arc<str>, params: &[Datum]) -> Option<(Command, &'static str)>;

    /// What this text tells listeners, if it is a NOTIFY.
    fn notification(&self, text: &str) -> Option<Result<Notification>>;

    /// The same for OPEN.
    fn bind_cursor(&self, text: &str, session: &dyn SessionHost) -> Result<Arc<CursorQuery>>;
}

/// A text that was bound.
pub struct BoundText {
    pub statement: CompiledStatement,
    pub stored: Arc<Stored>,
}

/// A query as a routine whose arguments are its parameters.
pub struct Pieces {
    pub program: Arc<Program>,
    /// Columns of its rows.
    pub width: usize,
    pub stored: Arc<Stored>,
}

/// A statement that a session has prepared, and what an EXECUTE gives it.
pub struct PreparedStatement {
    pub text: Box<str>,
    /// Where it has parameters, in bytes, and which.
    pub params: Vec<(Range<usize>, usize)>,
    pub arguments: Option<PreparedArguments>,
}

/// Answers the values of the arguments, and what types those have.
pub struct PreparedArguments {
    pub compiled: Arc<CompiledStatement>,
    pub types: Arc<[Type]>,
}

/// Where in rows the columns of a table are, so many as `width` says: those of the old row, and the new.
#[derive(Default)]
pub struct RowPlaces {
    pub width: usize,
    pub old: Option<usize>,
    pub new: Option<usize>,
    /// Columns that BEFORE triggers leave as they are.
    pub fixed: Vec<(u16, Box<str>)>,
}

/// An assignment of a record to a variable that was compiled for some structures.
pub struct FoundRecord {
    pub(crate) value: Compiled,
    pub(crate) place: shape::Place,
    pub(crate) shapes: Arc<Shapes>,
    pub(crate) structures: Vec<Structure>,
    /// Where the fields of each structure go.
    pub(crate) targets: Vec<Targets>,
    /// All registers of the variable: NULL where the value is.
    pub(crate) registers: Vec<u32>,
    /// The variable's name, if it refuses NULL.
    pub(crate) not_null: Option<Box<str>>,
}
