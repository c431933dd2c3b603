//! What PostgreSQL declares, joined with what is implemented here.
//!
//! `sql/data/proc.tsv` holds the signatures of PostgreSQL's built-in functions, each with the
//! name of the C function behind it (pg_proc.prosrc); `own.tsv` holds those of our own. The
//! modules beside this one hold `(key, implementation)` pairs under the same names. A function
//! exists when both sides do, so oids, strictness, volatility and argument names are
//! PostgreSQL's by construction, and an implementation serves every overload that shares it.

use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Aggregate, AggregateFunction, Eval, Intrinsic, ScalarFunction, SetEval, SetFunction, Volatility,
};
use crate::datum::Datum;
use crate::types::Oid;

/// An operator: a name over one or two operand types, and the function behind it.
#[derive(Debug)]
pub struct Operator {
    pub oid: Oid,
    pub name: &'static str,
    /// `None` for prefix operators.
    pub left: Option<Oid>,
    pub right: Oid,
    pub result: Oid,
    pub function: &'static ScalarFunction,
    /// Oid of the operator with its operands swapped, or zero.
    pub commutator: Oid,
    /// Oid of the operator with the opposite answer, or zero.
    pub negator: Oid,
    /// Whether sorted inputs can be merged by it, and hashed ones joined.
    pub merges: bool,
    pub hashes: bool,
    /// PostgreSQL's estimators of restrictions and joins by it, or zero.
    pub restriction: Oid,
    pub join: Oid,
}

/// Where a cast applies by itself (pg_cast.castcontext), narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    Explicit,
    Assignment,
    Implicit,
}

/// How a cast is done.
#[derive(Clone, Copy, Debug)]
pub enum CastMethod {
    Function(&'static ScalarFunction),
    /// The value stays as it is.
    Binary,
    /// Through the text forms of both types (`io::text_out`, then `io::text_in`).
    InOut,
}

/// A cast between two built-in types.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    pub source: Oid,
    pub target: Oid,
    pub context: CastContext,
    pub method: CastMethod,
}

/// What the catalog tells of a window function; queries know what it does.
#[derive(Clone, Copy, Debug)]
pub struct WindowSignature {
    pub oid: Oid,
    pub name: &'static str,
    /// The function of PostgreSQL's source behind it (pg_proc.prosrc).
    pub source: &'static str,
    pub args: &'static [Oid],
    pub result: Oid,
    pub strict: bool,
}

#[derive(Default)]
struct Registry {
    functions: Vec<&'static ScalarFunction>,
    sets: Vec<&'static SetFunction>,
    aggregates: Vec<&'static AggregateFunction>,
    windows: Vec<WindowSignature>,
    operators: Vec<&'static Operator>,
    casts: Vec<Cast>,
    functions_by_name: FxHashMap<&'static str, Vec<&'static ScalarFunction>>,
    functions_by_oid: FxHashMap<Oid, &'static ScalarFunction>,
    sets_by_name: FxHashMap<&'static str, Vec<&'static SetFunction>>,
    aggregates_by_name: FxHashMap<&'static str, Vec<&'static AggregateFunction>>,
    operators_by_name: FxHashMap<&'static str, Vec<&'static Operator>>,
    operators_by_oid: FxHashMap<Oid, &'static Operator>,
    casts_by_types: FxHashMap<(Oid, Oid), Cast>,
    missing: FxHashMap<&'static str, Oid>,
    /// What only the binder calls.
    internal: FxHashMap<&'static str, &'static ScalarFunction>,
    written_in_sql: FxHashSet<Oid>,
    /// The functions behind casts.
    casting: FxHashSet<Oid>,
}

/// What this crate knows of functions, by pg_proc.prosrc.
struct Known {
    evals: FxHashMap<&'static str, Eval>,
    sets: FxHashMap<&'static str, SetEval>,
    intrinsics: FxHashMap<&'static str, Intrinsic>,
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(build)
}

/// A function that only the binder calls, by its name: no statement can name it.
pub fn internal_function(name: &str) -> Option<&'static ScalarFunction> {
    registry().internal.get(name).copied()
}

/// A field of a `.tsv` row as an oid; empty and unreadable are zero.
fn oid(text: &str) -> Oid {
    Oid(text.parse().unwrap_or(0))
}

fn oids(text: &str) -> &'static [Oid] {
    text.split(' ').filter(|t| !t.is_empty()).map(oid).collect::<Vec<_>>().leak()
}

fn build() -> Registry {
    let known = Known {
        evals: crate::function::tables::SCALAR_TABLES.iter().flat_map(|t| t.iter().copied()).collect(),
        sets: crate::function::tables::SET_TABLES.iter().flat_map(|t| t.iter().copied()).collect(),
        intrinsics: crate::function::tables::INTRINSIC_TABLES
            .iter()
            .flat_map(|t| t.iter().copied())
            .collect(),
    };
    let mut registry = Registry::default();
    for line in
        include_str!("../../../data/proc.tsv").lines().chain(include_str!("../../../data/own.tsv").lines())
    {
        registry.add_proc(line, &known);
    }
    for line in include_str!("../../../data/operator.tsv").lines() {
        registry.add_operator(line);
    }
    for line in include_str!("../../../data/cast.tsv").lines() {
        registry.add_cast(line);
    }
    registry
}

/// A line of `proc.tsv`.
struct ProcLine {
    oid: Oid,
    name: &'static str,
    /// What implements it.
    key: &'static str,
    /// As pg_proc.prokind.
    kind: &'static str,
    returns_set: bool,
    strict: bool,
    /// As pg_proc.provolatile.
    volatile: &'static str,
    variadic: bool,
    result: Oid,
    args: &'static [Oid],
    /// The names of all arguments, and of those that are passed.
    names: Vec<&'static str>,
    arg_names: &'static [&'static str],
    /// How many of the last arguments have defaults.
    defaults: usize,
    /// As pg_proc.proallargtypes and pg_proc.proargmodes.
    all_args: &'static str,
    modes: &'static str,
}

impl ProcLine {
    fn read(line: &'static str) -> Option<ProcLine> {
        let fields: Vec<&'static str> = line.split('\t').collect();
        let [
            proc_oid,
            name,
            key,
            kind,
            retset,
            strict,
            volatile,
            variadic,
            result,
            args,
            names,
            defaults,
            all_args,
            modes,
        ] = fields[..]
        else {
            return None;
        };
        let args = oids(args);
        let names: Vec<&'static str> = if names.is_empty() { Vec::new() } else { names.split(',').collect() };
        let arg_names: &'static [&'static str] =
            names.iter().copied().take(args.len()).collect::<Vec<_>>().leak();
        Some(ProcLine {
            oid: oid(proc_oid),
            name,
            key,
            kind,
            returns_set: retset == "t",
            strict: strict == "t",
            volatile,
            variadic: variadic != "0",
            result: oid(result),
            args,
            names,
            arg_names,
            defaults: defaults.parse().unwrap_or(0),
            all_args,
            modes,
        })
    }

    /// The columns that it answers.
    fn columns(&self) -> &'static [(&'static str, Oid)] {
        set_columns(self.name, self.result, self.all_args, self.modes, &self.names)
    }
}

/// A function of one value, if it is implemented.
fn scalar(signature: &ProcLine, known: &Known) -> Option<&'static ScalarFunction> {
    let &ProcLine { oid, name, key, args, arg_names, result, strict, variadic, .. } = signature;
    let &eval = known.evals.get(key)?;
    Some(leak(ScalarFunction {
        oid,
        name,
        args,
        arg_names,
        defaults: default_values(name, signature.defaults),
        variadic,
        result,
        columns: match result == Oid::RECORD && !signature.modes.is_empty() {
            true => signature.columns(),
            false => &[],
        },
        strict,
        volatility: match signature.volatile {
            "i" => Volatility::Immutable,
            "s" => Volatility::Stable,
            _ => Volatility::Volatile,
        },
        eval,
        intrinsic: known.intrinsics.get(key).copied(),
    }))
}

impl Registry {
    fn add_proc(&mut self, line: &'static str, known: &Known) {
        let Some(signature) = ProcLine::read(line) else { return };
        if signature.key.starts_with("sql_") {
            self.written_in_sql.insert(signature.oid);
        }
        let added = match signature.kind {
            "a" => self.add_aggregate(&signature),
            "w" => {
                self.windows.push(WindowSignature {
                    oid: signature.oid,
                    name: signature.name,
                    source: signature.key,
                    args: signature.args,
                    result: signature.result,
                    strict: signature.strict,
                });
                true
            }
            "f" if signature.returns_set => self.add_set(&signature, known),
            "f" => self.add_scalar(&signature, known),
            // Of the binder alone: no statement can name it.
            "i" => scalar(&signature, known)
                .map(|function| self.internal.insert(function.name, function))
                .is_some(),
            _ => false,
        };
        if !added {
            self.missing.insert(signature.name, signature.oid);
        }
    }

    /// An aggregate, if it is implemented.
    fn add_aggregate(&mut self, signature: &ProcLine) -> bool {
        let &ProcLine { oid, name, args, result, .. } = signature;
        let Some((state, strict)) = crate::aggregate::factory(name, args) else { return false };
        let aggregate = Aggregate::of(name);
        let function = leak(AggregateFunction { oid, name, args, result, strict, aggregate, state });
        self.aggregates.push(function);
        self.aggregates_by_name.entry(name).or_default().push(function);
        true
    }

    /// A function that returns a set, if it is implemented.
    fn add_set(&mut self, signature: &ProcLine, known: &Known) -> bool {
        let &ProcLine { oid, name, key, args, arg_names, strict, .. } = signature;
        let Some(&eval) = known.sets.get(key) else { return false };
        let function = leak(SetFunction {
            oid,
            name,
            args,
            columns: signature.columns(),
            arg_names,
            defaults: default_values(name, signature.defaults),
            strict,
            eval,
            intrinsic: known.intrinsics.get(key).copied(),
            page: crate::function::tables::page_of(key),
        });
        self.sets.push(function);
        self.sets_by_name.entry(name).or_default().push(function);
        true
    }

    /// A function of one value, if it is implemented.
    fn add_scalar(&mut self, signature: &ProcLine, known: &Known) -> bool {
        let Some(function) = scalar(signature, known) else { return false };
        self.functions.push(function);
        self.functions_by_oid.insert(function.oid, function);
        self.functions_by_name.entry(function.name).or_default().push(function);
        true
    }

    fn add_operator(&mut self, line: &'static str) {
        let fields: Vec<&'static str> = line.split('\t').collect();
        let [op, name, left, right, result, function, commutator, negator, merges, hashes, restriction, join] =
            fields[..]
        else {
            return;
        };
        let Some(&function) = self.functions_by_oid.get(&oid(function)) else { return };
        let left = oid(left);
        let operator = leak(Operator {
            oid: oid(op),
            name,
            left: (left.0 != 0).then_some(left),
            right: oid(right),
            result: oid(result),
            function,
            commutator: oid(commutator),
            negator: oid(negator),
            merges: merges == "t",
            hashes: hashes == "t",
            restriction: oid(restriction),
            join: oid(join),
        });
        self.operators.push(operator);
        self.operators_by_oid.insert(operator.oid, operator);
        self.operators_by_name.entry(name).or_default().push(operator);
    }

    fn add_cast(&mut self, line: &'static str) {
        let fields: Vec<&'static str> = line.split('\t').collect();
        let [_, source, target, function, context, method] = fields[..] else { return };
        let method = match method {
            "b" => CastMethod::Binary,
            "i" => CastMethod::InOut,
            _ => match self.functions_by_oid.get(&oid(function)) {
                Some(function) => {
                    self.casting.insert(function.oid);
                    CastMethod::Function(function)
                }
                None => return,
            },
        };
        let context = match context {
            "i" => CastContext::Implicit,
            "a" => CastContext::Assignment,
            _ => CastContext::Explicit,
        };
        let cast = Cast { source: oid(source), target: oid(target), context, method };
        self.casts.push(cast);
        self.casts_by_types.insert((cast.source, cast.target), cast);
    }
}

/// Rows live as long as the process: they are the vocabulary of every plan.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Output columns of a set-returning function: its OUT and TABLE arguments, else one unnamed.
fn set_columns(
    name: &'static str,
    result: Oid,
    all_args: &str,
    modes: &str,
    names: &[&'static str],
) -> &'static [(&'static str, Oid)] {
    let all = oids(all_args);
    let mut columns: Vec<(&'static str, Oid)> = Vec::new();
    for (i, mode) in modes.bytes().enumerate() {
        if matches!(mode, b'o' | b't' | b'b')
            && let Some(&ty) = all.get(i)
        {
            columns.push((names.get(i).copied().unwrap_or(name), ty));
        }
    }
    if columns.is_empty() {
        columns.push((name, result));
    }
    columns.leak()
}

/// Defaults of the few built-ins that have them.
fn default_values(name: &str, count: usize) -> &'static [Datum] {
    match (name, count) {
        (_, 0) => &[],
        ("make_interval", 7) => {
            let mut values = vec![Datum::Int4(0); 6];
            values.push(Datum::Float8(0.0));
            values.leak()
        }
        ("create_distributed_table", _) => vec![Datum::text("range"), Datum::text("default"), Datum::Null]
            [3usize.saturating_sub(count)..]
            .to_vec()
            .leak(),
        ("move_partition", count) => vec![Datum::Null; count].leak(),
        ("create_distributed_function", _) => vec![Datum::Null, Datum::text("default"), Datum::Null]
            [3usize.saturating_sub(count)..]
            .to_vec()
            .leak(),
        (name, 2) if name.starts_with("jsonb_path_") => vec![Datum::text("{}"), Datum::Bool(false)].leak(),
        ("normalize" | "is_normalized", 1) => vec![Datum::text("NFC")].leak(),
        ("jsonb_set" | "parse_ident" | "pg_backup_stop", 1) => vec![Datum::Bool(true)].leak(),
        ("pg_terminate_backend", 1) => vec![Datum::Int8(0)].leak(),
        ("pg_promote", 2) => vec![Datum::Bool(true), Datum::Int4(60)].leak(),
        ("jsonb_set_lax", 2) => vec![Datum::Bool(true), Datum::text("use_json_null")].leak(),
        (_, count) => vec![Datum::Bool(false); count].leak(),
    }
}

/// Every overload of a scalar function.
pub fn lookup_functions(name: &str) -> &'static [&'static ScalarFunction] {
    registry().functions_by_name.get(name).map_or(&[], Vec::as_slice)
}

/// Whether PostgreSQL has the function in SQL.
pub fn is_written_in_sql(function: &ScalarFunction) -> bool {
    registry().written_in_sql.contains(&function.oid)
}

/// Whether a cast of pg_cast is done by the function.
pub fn is_cast(function: &ScalarFunction) -> bool {
    registry().casting.contains(&function.oid)
}

/// Every overload of a set-returning function.
pub fn lookup_set_functions(name: &str) -> &'static [&'static SetFunction] {
    registry().sets_by_name.get(name).map_or(&[], Vec::as_slice)
}

/// Every overload of an aggregate.
pub fn lookup_aggregates(name: &str) -> &'static [&'static AggregateFunction] {
    registry().aggregates_by_name.get(name).map_or(&[], Vec::as_slice)
}

/// As [`lookup_aggregates`].
pub fn aggregates(name: &str) -> &'static [&'static AggregateFunction] {
    lookup_aggregates(name)
}

/// Every operator with this name, prefix ones included.
pub fn lookup_operators(name: &str) -> &'static [&'static Operator] {
    let name = if name == "!=" { "<>" } else { name };
    registry().operators_by_name.get(name).map_or(&[], Vec::as_slice)
}

/// The operator with this oid (for commutators and negators).
pub fn operator_by_oid(oid: Oid) -> Option<&'static Operator> {
    registry().operators_by_oid.get(&oid).copied()
}

/// The scalar function with this oid.
pub fn function_by_oid(oid: Oid) -> Option<&'static ScalarFunction> {
    registry().functions_by_oid.get(&oid).copied()
}

/// The declared cast between two types, as pg_cast has it. The rules beyond pg_cast
/// (identity, unknown literals, any type to and from the string types through text, arrays
/// element by element) are [`crate::cast::find`]'s.
pub fn cast(source: Oid, target: Oid) -> Option<Cast> {
    registry().casts_by_types.get(&(source, target)).copied()
}

/// Whether PostgreSQL has a function of this name that is not offered here: an honest 0A000
/// instead of "does not exist".
pub fn known_but_missing(name: &str) -> bool {
    registry().missing.contains_key(name)
}

pub fn all_functions() -> &'static [&'static ScalarFunction] {
    &registry().functions
}
pub fn all_set_functions() -> &'static [&'static SetFunction] {
    &registry().sets
}
pub fn all_aggregates() -> &'static [&'static AggregateFunction] {
    &registry().aggregates
}
/// The window functions that are no aggregates.
pub fn all_windows() -> &'static [WindowSignature] {
    &registry().windows
}
pub fn all_operators() -> &'static [&'static Operator] {
    &registry().operators
}
pub fn all_casts() -> &'static [Cast] {
    &registry().casts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::FunctionContext;

    /// Every implementation must stand behind a declared function: a misspelt key would
    /// otherwise be dead code.
    #[test]
    fn every_implementation_is_declared() {
        let declared: std::collections::HashSet<&str> = include_str!("../../../data/proc.tsv")
            .lines()
            .chain(include_str!("../../../data/own.tsv").lines())
            .filter_map(|line| line.split('\t').nth(2))
            .collect();
        let known = crate::function::tables::SCALAR_TABLES
            .iter()
            .flat_map(|t| t.iter().map(|(key, _)| *key))
            .chain(crate::function::tables::SET_TABLES.iter().flat_map(|t| t.iter().map(|(key, _)| *key)));
        let unknown: Vec<&str> = known.filter(|key| !declared.contains(key)).collect();
        assert_eq!(unknown, Vec::<&str>::new());
    }

    /// Numbers are what functions are known by in the catalog, whoever added which of our own.
    #[test]
    fn no_two_functions_have_one_number() {
        let lines = include_str!("../../../data/proc.tsv")
            .lines()
            .chain(include_str!("../../../data/own.tsv").lines());
        let mut met = std::collections::HashSet::new();
        let twice: Vec<&str> =
            lines.filter_map(|line| line.split('\t').next()).filter(|number| !met.insert(*number)).collect();
        assert_eq!(twice, Vec::<&str>::new());
    }

    /// The same of what is said of functions; and every function that is said to be something is there.
    #[test]
    fn every_intrinsic_is_implemented() {
        let tables = || crate::function::tables::INTRINSIC_TABLES.iter().flat_map(|t| t.iter());
        let keys: Vec<&str> = crate::function::tables::SCALAR_TABLES
            .iter()
            .flat_map(|t| t.iter().map(|(key, _)| *key))
            .chain(crate::function::tables::SET_TABLES.iter().flat_map(|t| t.iter().map(|(key, _)| *key)))
            .collect();
        let unknown: Vec<&str> = tables().map(|(key, _)| *key).filter(|key| !keys.contains(key)).collect();
        assert_eq!(unknown, Vec::<&str>::new());
        let mut said: Vec<&str> = tables().map(|(key, _)| *key).collect();
        let count = said.len();
        said.sort_unstable();
        said.dedup();
        assert_eq!(said.len(), count, "something is said twice");
    }

    /// Integers of every pair of widths compute at the wider one's, whoever computes.
    #[test]
    fn integer_arithmetic_is_known_as_such() {
        for name in ["+", "-", "*", "/", "%"] {
            for operator in lookup_operators(name) {
                let width = super::super::IntegerWidth::of;
                let (Some(left), Some(right)) = (operator.left.and_then(width), width(operator.right)) else {
                    continue;
                };
                let Some(Intrinsic::Integer(operation, wide)) = operator.function.intrinsic else {
                    panic!("{} is no arithmetic", operator.function.name);
                };
                assert_eq!(wide, left.max(right), "{}", operator.function.name);
                let args = [left.datum(7), right.datum(-2)];
                let computed = (operator.function.eval)(&FunctionContext::detached(), &args);
                assert_eq!(computed, operation.apply(wide, 7, -2).map(|value| wide.datum(value)));
                let args = [left.datum(7), right.datum(0)];
                let refused = (operator.function.eval)(&FunctionContext::detached(), &args).is_err();
                assert_eq!(refused, matches!(name, "/" | "%"));
            }
        }
    }

    #[test]
    fn operators_find_their_functions() {
        let plus =
            lookup_operators("+").iter().find(|o| o.left == Some(Oid::INT4) && o.right == Oid::INT4).unwrap();
        assert_eq!((plus.oid, plus.function.name), (Oid(551), "int4pl"));
        let sum = (plus.function.eval)(&FunctionContext::detached(), &[Datum::Int4(2), Datum::Int4(3)]);
        assert_eq!(sum, Ok(Datum::Int4(5)));
        assert!(lookup_operators("!=").iter().any(|o| o.name == "<>"));
    }
}
