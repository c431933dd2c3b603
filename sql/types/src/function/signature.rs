//! What functions are: scalar functions, aggregates, set-returning functions, each by its signature as in
//! pg_proc and what evaluates it.

use super::host::FunctionContext;
use super::intrinsic::{Aggregate, Comparison, Intrinsic, Operands};
use crate::datum::Datum;
use crate::error::Result;
use crate::types::{Oid, Type};

/// How freely a call may be moved or folded (pg_proc.provolatile).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
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

impl ScalarFunction {
    /// The comparison it is of integers of any widths, or of values stored alike by the order of
    /// [`crate::compare::compare`].
    pub fn comparison(&self) -> Option<Comparison> {
        match self.intrinsic {
            Some(Intrinsic::Compare(comparison, Operands::Integers | Operands::Alike)) => Some(comparison),
            _ => None,
        }
    }

    /// Whether it is this.
    pub fn is(&self, intrinsic: Intrinsic) -> bool {
        self.intrinsic == Some(intrinsic)
    }
}

impl ResolvedFunction {
    /// As [`ScalarFunction::intrinsic`].
    pub fn intrinsic(&self) -> Option<Intrinsic> {
        self.function.intrinsic
    }

    /// As [`ScalarFunction::is`].
    pub fn is(&self, intrinsic: Intrinsic) -> bool {
        self.function.is(intrinsic)
    }
}

impl AggregateFunction {
    /// Whether it is this.
    pub fn is(&self, aggregate: Aggregate) -> bool {
        self.aggregate == aggregate
    }
}

/// Makes the running state of an aggregate over the given argument types.
pub type Factory = fn(&[Type]) -> Box<dyn AggregateState>;
