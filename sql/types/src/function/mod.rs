//! Scalar functions, operators and casts: signatures as in pg_proc, evaluated row-wise.
//!
//! Each is implemented once, here; the planner wraps them for DataFusion.

use std::sync::Arc;

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::record::RowType;
use crate::rights::{Privileges, Requirement};
pub use crate::style::Style;
use crate::type_table::{BuiltIn, TypeNames};
use crate::types::{Oid, Type};

mod accumulate;
mod advanced;
mod angles;
mod args;
mod array;
mod array_assign;
mod binary_match;
mod binary_string;
mod comparison;
mod convert;
mod crypto;
mod decimal;
mod dissection;
mod enumeration;
mod extra_checks;
mod float;
mod hash;
mod identifier;
mod integer;
mod intrinsic;
mod json;
mod jsonpath;
pub mod length;
mod letters;
mod lsn;
mod matches;
mod normal_form;
mod number_text;
mod part_assign;
mod pattern;
mod point;
mod preference;
mod record;
mod record_image;
mod reference;
mod regexp;
mod registry;
mod search;
mod send;
mod series;
mod session;
mod snapshot;
mod string;
mod temporal;
mod tid;
mod variadic;

pub use array::from_values as array_of_values;
pub use extra_checks::{CheckLevel, ExtraCheck, ExtraChecks};
pub use lsn::{lsn_place, lsn_value, parse_lsn, show_lsn};
pub use pattern::{like, regular_expression};
pub use point::{parse_point, point_of, point_value, show_point};
pub use record_image::column_types;
pub use reference::is_no_type_name;
pub use search::Pattern;
pub use session::VERSION_TEXT;
pub use snapshot::{Snapshot, parse_transaction_id};
pub use string::{quote_identifier, quote_literal};
pub use tid::{parse_tid, show_tid, tid_place, tid_value};
pub use variadic::OF_ARRAY;

/// `(pg_proc.prosrc, implementation)` of scalar functions, by topic.
type ScalarTable = &'static [(&'static str, Eval)];
/// What functions are, by the same names.
type IntrinsicTable = &'static [(&'static str, Intrinsic)];
/// The implementations of set-returning functions.
type SetTable = &'static [(&'static str, registry::SetEval)];

const SCALAR_TABLES: &[ScalarTable] = &[
    comparison::OPERATORS,
    comparison::SUPPORT,
    integer::ARITHMETIC,
    integer::ONE_WIDTH,
    integer::OTHERS,
    float::DOUBLES,
    float::SINGLES,
    float::MATHEMATICS,
    float::OTHERS,
    decimal::FUNCTIONS,
    convert::FUNCTIONS,
    string::FUNCTIONS,
    binary_match::FUNCTIONS,
    binary_string::FUNCTIONS,
    pattern::FUNCTIONS,
    regexp::FUNCTIONS,
    number_text::FUNCTIONS,
    temporal::FUNCTIONS,
    array::FUNCTIONS,
    array_assign::FUNCTIONS,
    part_assign::FUNCTIONS,
    variadic::FUNCTIONS,
    accumulate::FUNCTIONS,
    record::FUNCTIONS,
    json::FUNCTIONS,
    jsonpath::FUNCTIONS,
    enumeration::FUNCTIONS,
    hash::FUNCTIONS,
    send::FUNCTIONS,
    session::HOSTED,
    session::FUNCTIONS,
    lsn::FUNCTIONS,
    point::FUNCTIONS,
    snapshot::FUNCTIONS,
    identifier::FUNCTIONS,
    normal_form::FUNCTIONS,
    crypto::FUNCTIONS,
];
const INTRINSIC_TABLES: &[IntrinsicTable] = &[
    comparison::INTRINSICS,
    integer::ARITHMETIC_INTRINSICS,
    integer::ONE_WIDTH_INTRINSICS,
    intrinsic::INTRINSICS,
];
const SET_TABLES: &[SetTable] = &[
    series::SETS,
    temporal::SETS,
    array::SETS,
    pattern::SETS,
    json::SETS,
    jsonpath::SETS,
    session::SETS,
    snapshot::SETS,
    reference::SETS,
];

pub use float::{Operation as FloatOperation, apply as float_arithmetic};
pub use integer::{Arithmetic, IntegerWidth};
pub use intrinsic::{AdvisoryLock, Aggregate, Comparison, Intrinsic, Operands};
pub use string::{
    char_count as text_length, chr as text_chr, left as text_left, position as text_position,
    right as text_right, substring as text_substring,
};

pub use registry::{
    Cast, CastContext, CastMethod, Operator, WindowSignature, aggregates, all_aggregates, all_casts,
    all_functions, all_operators, all_set_functions, all_windows, cast, function_by_oid, is_cast,
    is_written_in_sql, known_but_missing, lookup_aggregates, lookup_functions, lookup_operators,
    lookup_set_functions, operator_by_oid,
};

/// How a set is made in pages, by the name of its function.
fn page_of(key: &str) -> Option<SetPage> {
    let mut pages = series::PAGES.iter().chain(temporal::PAGES);
    pages.find(|(name, _)| *name == key).map(|(_, page)| *page)
}

/// How freely a call may be moved or folded (pg_proc.provolatile).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
}

/// What a function may ask of the statement and session it runs in.
#[derive(Clone, Copy)]
pub struct FunctionContext<'a> {
    /// Transaction start, microseconds since 2000-01-01 UTC: `now()`.
    pub now: i64,
    pub session: &'a dyn SessionHost,
}

impl<'a> FunctionContext<'a> {
    /// The session's rules for text.
    pub fn style(&self) -> &'a Style {
        self.session.style()
    }

    /// Fails with 57014 when the statement was asked to stop. Loops within one call count
    /// [`crate::interrupt::steps`].
    pub fn check_interrupts(&self) -> Result<()> {
        self.session.interruption().map_or(Ok(()), Err)
    }
}

/// As the session names them.
impl TypeNames for FunctionContext<'_> {
    fn user_type(&self, ty: Type) -> Option<String> {
        self.session.type_names().user_type(ty)
    }
}

impl FunctionContext<'static> {
    /// A context without a session or a clock: constant folding, tests.
    pub fn detached() -> FunctionContext<'static> {
        FunctionContext { now: 0, session: &NoSession }
    }
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub struct PreparedText {
    /// As the client wrote it: for PREPARE, with that word.
    pub text: Arc<str>,
    /// Of its parameters.
    pub types: Arc<[Type]>,
}

/// Numbers that a session has drawn ahead from a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedNumbers {
    /// Which running sequence they are of.
    pub incarnation: u64,
    /// How many were drawn at once: where that is another number now, they are good no more.
    pub cache: i64,
    pub next: i64,
    pub last: i64,
    pub increment: i64,
}

impl CachedNumbers {
    /// The next number, and what is left behind it.
    #[must_use]
    pub fn taken(self) -> (i64, Option<CachedNumbers>) {
        let next = self.next.checked_add(self.increment).filter(|_| self.next != self.last);
        (self.next, next.map(|next| CachedNumbers { next, ..self }))
    }
}

/// The session and server as functions see them. Methods answer "not here" by default, so
/// that tests and constant folding can use [`NoSession`]; those that allow something refuse it.
pub trait SessionHost: Sync {
    /// Settings that govern text: time zone, date style, bytea output.
    fn style(&self) -> &Style {
        Style::standard()
    }
    /// What the literal of this number of a routine was read as, if the session has come to it.
    fn literal(&self, _number: i64) -> Option<Arc<str>> {
        None
    }
    /// Keeps that for the next time.
    fn keep_literal(&self, _number: i64, _read: &str) {}
    /// Fails on a label of an enum that is not committed. A host that cannot tell refuses every one;
    /// one whose catalog holds committed labels only says so.
    fn check_label(&self, _label: Oid) -> Result<()> {
        Err(SqlError::unsupported("a label of an enum in this context"))
    }
    /// The wall clock, microseconds since 2000-01-01 UTC: `clock_timestamp()`.
    fn clock(&self) -> Option<i64> {
        None
    }
    /// Whether the running statement was asked to stop: loops and scans look now and then, and
    /// answer the engine's cancellation.
    fn interrupted(&self) -> bool {
        false
    }
    /// The error of a statement that was asked to stop, whether a handler may take it or not.
    fn interruption(&self) -> Option<SqlError> {
        if !self.interrupted() {
            return None;
        }
        Some(self.cancellation().unwrap_or_else(|| {
            let message = "canceling statement due to user request";
            SqlError::new(SqlState::QUERY_CANCELED, message)
        }))
    }
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    /// A setting's value for who asks for it by name; 42501 where the role in force may not see it.
    fn examined_setting(&self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }
    /// A statement that the session has prepared under a name.
    fn prepared_statement(&self, _name: &str) -> Option<PreparedText> {
        None
    }
    /// Whether functions have changed settings that the server itself knows, and the session has not
    /// taken them over yet.
    fn has_settings_to_take(&self) -> bool {
        false
    }
    /// The checks of PL/pgSQL that the session asks for.
    fn extra_checks(&self) -> ExtraChecks {
        ExtraChecks::default()
    }
    /// This session with other values of some settings: what a routine with SET clauses sees.
    fn with_settings(&self, _settings: &[(String, String)]) -> Result<Option<&dyn SessionHost>> {
        Err(SqlError::unsupported("a routine with SET clauses in this context"))
    }
    /// This session in the name of a routine's owner: what a SECURITY DEFINER routine sees.
    fn as_owner_of(&self, _routine: Oid, _settings: &[(String, String)]) -> Result<Option<&dyn SessionHost>> {
        Err(SqlError::unsupported("a SECURITY DEFINER routine in this context"))
    }
    /// A number for the role in force and the version of the catalog: whoever has found out what
    /// it may need not ask again. 0: there is no such number, and every run asks.
    fn authority(&self) -> u64 {
        0
    }
    /// How many settings functions of the statement have changed: for [`SessionHost::undo_settings`].
    fn changed_settings(&self) -> usize {
        0
    }
    /// Takes back what was changed beyond the first so many: a block that did has failed.
    fn undo_settings(&self, _kept: usize) {}
    /// The error of a statement that was asked to stop, if a handler may take it.
    fn cancellation(&self) -> Option<SqlError> {
        None
    }
    /// A handler has taken it: the statement goes on.
    fn forget_cancellation(&self) {}
    /// 42501 unless the role in force may do all this. A host that knows no roles allows nothing;
    /// one that shall allow everything says so.
    fn require(&self, needed: &[Requirement]) -> Result<()> {
        if needed.is_empty() { Ok(()) } else { Err(nobody()) }
    }
    /// 42501 unless the role in force has one of these rights on a sequence. As with
    /// [`SessionHost::require`], whoever knows no roles allows nothing.
    fn require_sequence(&self, _sequence: Oid, _one_of: Privileges) -> Result<()> {
        Err(nobody())
    }
    /// The engine's number of a sequence.
    fn sequence_file(&self, sequence: Oid) -> u32 {
        sequence.0
    }
    /// How many numbers of a sequence its session draws at once.
    fn sequence_cache(&self, _sequence: Oid) -> i64 {
        1
    }
    /// The next of the numbers that the session has drawn ahead from a running sequence.
    fn take_cached(&self, _sequence: Oid, _incarnation: u64) -> Option<i64> {
        None
    }
    /// Keeps numbers that were drawn ahead from a running sequence for the session's next calls; without
    /// any, forgets those that it has.
    fn keep_cached(&self, _sequence: Oid, _numbers: Option<CachedNumbers>) {}
    /// The name of a relation, where the session knows it.
    fn relation_name(&self, _relation: Oid) -> Option<String> {
        None
    }
    /// The catalog that the running statement sees, where the session knows it: what is looked up
    /// only when a plan runs is looked up there.
    fn current_catalog(&self) -> Option<&(dyn std::any::Any + Send + Sync)> {
        None
    }
    /// Who names types in messages: along the session's path, where the session knows one.
    fn type_names(&self) -> &dyn TypeNames {
        &BuiltIn
    }
    /// The relation whose columns are the fields of a composite type, where the session knows it.
    fn row_type(&self, _ty: Oid) -> Option<Arc<dyn RowType>> {
        None
    }
    /// Whether a relation is the session's own: a temporary one.
    fn is_temporary(&self, _relation: Oid) -> bool {
        false
    }
    /// A random number in [0, 1), deterministic under the simulator.
    fn random(&self) -> f64 {
        0.0
    }
    /// Calls a function whose meaning lies outside this crate (sequences, catalog functions,
    /// distribution functions), by its registered name.
    fn call(&self, name: &str, _args: &[Datum]) -> Result<Datum> {
        Err(SqlError::unsupported(format_args!("function {name} in this context")))
    }
}

/// 42501 of hosts that know no roles.
fn nobody() -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, "permission denied: there is no role here")
}

/// A host that knows nothing, and in whose name nothing is allowed.
pub struct NoSession;
impl SessionHost for NoSession {
    // Nobody adds labels in no session.
    fn check_label(&self, _label: Oid) -> Result<()> {
        Ok(())
    }
}

/// Row-wise evaluation. Strict functions never see NULL: the caller answers NULL itself.
pub type Eval = fn(&FunctionContext<'_>, &[Datum]) -> Result<Datum>;

/// One overload of a scalar function (or the function behind an operator or a cast).
pub struct ScalarFunction {
    pub oid: Oid,
    pub name: &'static str,
    pub args: &'static [Oid],
    /// Names of the arguments, or empty: for `name => value`.
    pub arg_names: &'static [&'static str],
    /// Values of the last `defaults.len()` arguments when a call leaves them out.
    pub defaults: &'static [Datum],
    /// The last argument repeats. Its declared type is an array, or `any`; `eval` sees the
    /// repeated values one by one when it is `any`, and as one array otherwise.
    pub variadic: bool,
    pub result: Oid,
    /// Of a record, names and types of its fields where they are declared; else empty.
    pub columns: &'static [(&'static str, Oid)],
    pub strict: bool,
    pub volatility: Volatility,
    pub eval: Eval,
    /// What it is, where somebody knows more of it than how to call it.
    pub intrinsic: Option<Intrinsic>,
}

impl ScalarFunction {
    /// Its value; a strict one is not asked for NULL's.
    #[inline]
    pub fn call(&self, ctx: &FunctionContext<'_>, args: &[Datum]) -> Result<Datum> {
        match self.strict && args.iter().any(Datum::is_null) {
            true => Ok(Datum::Null),
            false => (self.eval)(ctx, args),
        }
    }
}

/// An overload is known by its name and its arguments.
impl PartialEq for ScalarFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.args == other.args
    }
}

impl std::fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.name, self.args)
    }
}

/// An implementation chosen by overload resolution, with the concrete result type (for
/// polymorphic functions it differs from the declared one).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResolvedFunction {
    pub function: &'static ScalarFunction,
    pub result: Type,
}

/// The running state of one aggregate over one group.
pub trait AggregateState: Send {
    /// Takes one input row's arguments; NULLs included unless the function is strict.
    fn update(&mut self, ctx: &FunctionContext<'_>, args: &[Datum]) -> Result<()>;
    /// Gives back a row's arguments that it has taken, as if it never had, where a window's frame has left the
    /// row behind; false if it cannot, and has to begin anew.
    fn give_back(&mut self, _args: &[Datum]) -> Result<bool> {
        Ok(false)
    }
    /// The group's result.
    fn finish(&mut self, ctx: &FunctionContext<'_>) -> Result<Datum>;
}

/// One overload of an aggregate function.
pub struct AggregateFunction {
    pub oid: Oid,
    pub name: &'static str,
    pub args: &'static [Oid],
    pub result: Oid,
    /// Rows with a NULL argument are skipped.
    pub strict: bool,
    pub aggregate: Aggregate,
    pub state: fn(&[Type]) -> Box<dyn AggregateState>,
}

/// An overload is known by its name and its arguments.
impl PartialEq for AggregateFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.args == other.args
    }
}

impl std::fmt::Debug for AggregateFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.name, self.args)
    }
}

/// Evaluation of a set-returning function: all its rows.
pub type SetEval = fn(&FunctionContext<'_>, &[Datum]) -> Result<Vec<Vec<Datum>>>;

/// A page of a set whose first argument is where it begins: so many rows at most. The rows after them
/// are those of a page that begins with the last of them, but for that one.
pub type SetPage = fn(&FunctionContext<'_>, &[Datum], usize) -> Result<Vec<Vec<Datum>>>;

/// A built-in set-returning function (`generate_series`, `unnest`): answers all its rows.
pub struct SetFunction {
    pub oid: Oid,
    pub name: &'static str,
    pub args: &'static [Oid],
    /// Column names and types; one unnamed column takes the alias.
    pub columns: &'static [(&'static str, Oid)],
    pub arg_names: &'static [&'static str],
    /// As [`ScalarFunction::defaults`].
    pub defaults: &'static [Datum],
    pub strict: bool,
    pub eval: SetEval,
    /// As [`ScalarFunction::intrinsic`].
    pub intrinsic: Option<Intrinsic>,
    /// Of a set that need not be made at once.
    pub page: Option<SetPage>,
}

/// An overload is known by its name and its arguments.
impl PartialEq for SetFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.args == other.args
    }
}

impl std::fmt::Debug for SetFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.name, self.args)
    }
}
