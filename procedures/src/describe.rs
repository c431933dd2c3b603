//! What the server says of a routine: its class, the expression that routes it, and what it
//! touches. `archipel.routines`, `EXPLAIN CALL` and `archipel.require_route` read this.

use std::fmt::Write as _;

use archipel_planner::bound::{BoundExpr, ExprKind, Subscript};
use archipel_planner::route::{Access, RouteKey};
use archipel_sql::catalog::RoutineArg;
use archipel_sql::datum::Datum;
use archipel_sql::function;
use archipel_sql::io;
use archipel_sql::types::Oid;

use crate::run::operation::Program;

/// How many partitions a call reaches, from its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One key of one group.
    SinglePartition,
    /// Several keys, or keys found while it runs.
    MultiPartition,
    /// Some table is read or written as a whole.
    AllPartitions,
}

impl Class {
    /// As the views and EXPLAIN print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::SinglePartition => "single-partition",
            Class::MultiPartition => "multi-partition",
            Class::AllPartitions => "all-partitions",
        }
    }
}

/// A row of `archipel.routines`.
#[derive(Clone, Debug, PartialEq)]
pub struct Classification {
    pub class: Class,
    /// The keys, over the arguments' names.
    pub routing: String,
    /// Why it is not single-partition, or what is found only while it runs.
    pub reason: String,
    pub tables: Vec<String>,
}

/// Classifies a compiled routine.
pub fn classify(program: &Program) -> Classification {
    let names = key_names(program);
    let mut tables: Vec<String> = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    let mut claimed: Vec<(u32, String)> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    let mut class = Class::SinglePartition;
    for access in &program.accesses {
        if !access.table.is_empty() && !tables.contains(&access.table) {
            tables.push(access.table.clone());
        }
        let Some(group) = access.group else {
            // Reading a reference table needs no route.
            if let (RouteKey::Unknown(reason), true) = (&access.key, access.write) {
                class = class.max_with(Class::MultiPartition);
                push_new(&mut reasons, reason.clone());
            }
            continue;
        };
        match &access.key {
            RouteKey::Unknown(reason) => {
                class = class.max_with(Class::MultiPartition);
                push_new(&mut reasons, format!("{}: {reason}", access.table));
                continue;
            }
            RouteKey::All => {
                class = Class::AllPartitions;
                push_new(&mut reasons, format!("{}: all rows", access.table));
                continue;
            }
            RouteKey::Point(_) => {}
            _ => class = class.max_with(Class::MultiPartition),
        }
        let text = key_text(&access.key, &names);
        if !claimed.contains(&(group.0, text.clone())) {
            claimed.push((group.0, text.clone()));
        }
        push_new(&mut keys, text);
    }
    if claimed.len() > 1 {
        class = class.max_with(Class::MultiPartition);
    }
    if let Some((line, message)) = program.failures.first() {
        reasons.push(format!("line {line} does not bind: {message}"));
    }
    if class == Class::MultiPartition && reasons.is_empty() {
        reasons.push(if keys.len() > 1 {
            format!("reaches {} keys", keys.len())
        } else if claimed.len() > 1 {
            "tables of several co-location groups".to_string()
        } else {
            "reaches several keys".to_string()
        });
    }
    Classification { class, routing: keys.join(", "), reason: reasons.join("; "), tables }
}

/// Why a call would not be routed by its arguments: what `archipel.require_route` refuses.
pub fn unrouted(program: &Program) -> Option<String> {
    program.accesses.iter().find_map(|access| match &access.key {
        RouteKey::Unknown(reason) if access.group.is_some() || access.write => {
            Some(format!("{}: {reason}", access.table))
        }
        RouteKey::All if access.group.is_some() => Some(format!("{}: all rows", access.table)),
        _ => None,
    })
}

/// The lines of `EXPLAIN CALL`.
pub fn explain(program: &Program) -> Vec<String> {
    let classification = classify(program);
    let names = key_names(program);
    let mut lines = vec![format!("Call {}  ({})", program.signature, classification.class.as_str())];
    if !classification.routing.is_empty() {
        lines.push(format!("  Routing: {}", classification.routing));
    }
    if !classification.reason.is_empty() {
        lines.push(format!("  Reason: {}", classification.reason));
    }
    if !program.ahead_text.is_empty() {
        lines.push(format!("  Fetched ahead: {}", program.ahead_text.join("; ")));
    }
    for access in &program.accesses {
        lines.push(format!("  ->  {}", access_text(access, &names)));
    }
    lines
}

fn access_text(access: &Access, names: &[String]) -> String {
    let operation = if access.write { "Write" } else { "Read" };
    let table = &access.table;
    match (&access.group, &access.key) {
        (None, RouteKey::Unknown(reason)) if access.write => format!("{operation} {table}  ({reason})"),
        (None, _) => format!("{operation} {table}  (reference table)"),
        (Some(_), RouteKey::All) => format!("{operation} {table}  (all partitions)"),
        (Some(_), RouteKey::Unknown(reason)) => {
            format!("{operation} {table}  ({}: found while it runs: {reason})", access.column)
        }
        (Some(_), RouteKey::Range { .. }) => {
            format!("{operation} {table}  ({} {})", access.column, key_text(&access.key, names))
        }
        (Some(_), _) => {
            format!("{operation} {table}  ({} = {})", access.column, key_text(&access.key, names))
        }
    }
}

impl Class {
    fn max_with(self, other: Class) -> Class {
        if other as u8 > self as u8 { other } else { self }
    }
}

fn push_new(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

/// What keys are spelled with: names of the input arguments, `$n` for those without, then the
/// queries on reference tables.
pub(crate) fn key_names(program: &Program) -> Vec<String> {
    let arguments = program.routine.input_args().enumerate().map(|(index, arg): (usize, &RoutineArg)| {
        arg.name.clone().filter(|n| !n.is_empty()).unwrap_or_else(|| format!("${}", index + 1))
    });
    arguments.chain(program.reference_reads.iter().map(|read| format!("({})", read.text))).collect()
}

/// A key as the views show it.
pub fn key_text(key: &RouteKey, names: &[String]) -> String {
    let text = |expr: &BoundExpr| expression_text(expr, names);
    match key {
        RouteKey::Point(expr) => text(expr),
        RouteKey::EachOf(array) => format!("each of {}", text(array)),
        RouteKey::List(list) => format!("one of ({})", list.iter().map(text).collect::<Vec<_>>().join(", ")),
        RouteKey::Each { from, to } => format!("{} .. {}", text(from), text(to)),
        RouteKey::Range { low, high } => {
            let mut parts = Vec::new();
            if let Some((low, included)) = low {
                parts.push(format!("{} {}", if *included { ">=" } else { ">" }, text(low)));
            }
            if let Some((high, included)) = high {
                parts.push(format!("{} {}", if *included { "<=" } else { "<" }, text(high)));
            }
            parts.join(" and ")
        }
        RouteKey::All => "all".to_string(),
        RouteKey::Unknown(reason) => format!("unknown ({reason})"),
    }
}

/// An expression over arguments, in SQL's spelling.
pub fn expression_text(expr: &BoundExpr, names: &[String]) -> String {
    let text = |expr: &BoundExpr| expression_text(expr, names);
    let list = |items: &[BoundExpr]| items.iter().map(text).collect::<Vec<_>>().join(", ");
    match &expr.kind {
        ExprKind::Param(number) => {
            names.get(usize::from(*number)).cloned().unwrap_or_else(|| format!("${}", number + 1))
        }
        ExprKind::Const(Datum::Null) => "NULL".to_string(),
        ExprKind::Const(value) => constant_text(value, expr),
        ExprKind::Call { function, args } => call_text(function.function, args, names),
        ExprKind::Relabel(inner) | ExprKind::ConvertIo(inner) => text(inner),
        ExprKind::Coalesce(items) => format!("coalesce({})", list(items)),
        ExprKind::Subscript { array, subscripts } => {
            let mut out = text(array);
            for subscript in subscripts {
                match subscript {
                    Subscript::Index(index) => {
                        let _ = write!(out, "[{}]", text(index));
                    }
                    Subscript::Slice { lower, upper } => {
                        let bound = |b: &Option<BoundExpr>| b.as_ref().map(text).unwrap_or_default();
                        let _ = write!(out, "[{}:{}]", bound(lower), bound(upper));
                    }
                }
            }
            out
        }
        ExprKind::Array { items, .. } => format!("ARRAY[{}]", list(items)),
        ExprKind::Case { .. } => "CASE …".to_string(),
        ExprKind::Extreme { greatest, args, .. } => {
            format!("{}({})", if *greatest { "greatest" } else { "least" }, list(args))
        }
        ExprKind::And(items) => items.iter().map(text).collect::<Vec<_>>().join(" AND "),
        ExprKind::Or(items) => items.iter().map(text).collect::<Vec<_>>().join(" OR "),
        ExprKind::Not(inner) => format!("NOT {}", text(inner)),
        ExprKind::NullIf { left, right, .. } => format!("nullif({}, {})", text(left), text(right)),
        _ => "…".to_string(),
    }
}

fn constant_text(value: &Datum, expr: &BoundExpr) -> String {
    let context = archipel_sql::function::FunctionContext::detached();
    let mut out = String::new();
    if io::text_out(value, expr.ty, &context, &mut out).is_err() {
        return "…".to_string();
    }
    match value {
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Numeric(_) | Datum::Bool(_) => out,
        _ => format!("'{}'", out.replace('\'', "''")),
    }
}

/// Whether a function is a cast after which a value looks as before.
fn keeps_look(function: &function::ScalarFunction) -> bool {
    match (function.args, function.result) {
        // To a length.
        ([_, _, _], result) => matches!(result, Oid::VARCHAR | Oid::BPCHAR) && function::is_cast(function),
        ([_], Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::NUMERIC | Oid::FLOAT8 | Oid::TEXT | Oid::NAME)
        | ([_], Oid::DATE | Oid::INTERVAL | Oid::OID | Oid::XID | Oid::REGCLASS) => {
            function::is_cast(function)
        }
        _ => false,
    }
}

/// Operators between their operands, casts left out where they keep the value's look.
fn call_text(function: &'static function::ScalarFunction, args: &[BoundExpr], names: &[String]) -> String {
    let text = |expr: &BoundExpr| match &expr.kind {
        ExprKind::Call { args, .. } if args.len() == 2 => format!("({})", expression_text(expr, names)),
        _ => expression_text(expr, names),
    };
    if keeps_look(function) {
        return expression_text(&args[0], names);
    }
    let operator = function::all_operators().iter().find(|o| std::ptr::eq(o.function, function));
    match (operator, args) {
        (Some(operator), [left, right]) => format!("{} {} {}", text(left), operator.name, text(right)),
        (Some(operator), [only]) => format!("{}{}", operator.name, text(only)),
        _ => {
            let list: Vec<String> = args.iter().map(|arg| expression_text(arg, names)).collect();
            format!("{}({})", function.name, list.join(", "))
        }
    }
}
