//! EXPLAIN: plans and expressions as text, in PostgreSQL's manner; [`json`] plans as JSON; [`plan`]
//! what both are made of; [`run`] what ANALYZE adds to them.

pub mod json;
pub mod plan;
pub mod run;

use archipel_sql::ast::ExplainFormat;
use archipel_sql::catalog::Table;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, lookup_operators};
use archipel_sql::io;

use crate::bound::{BoundExpr, ExprKind, SubqueryKind, Subscript};
use crate::native::CompiledStatement;
use crate::route::{Access, Classification, classify_accesses};
use plan::PlanLine;

/// The lines of EXPLAIN for a statement.
pub fn statement(statement: &CompiledStatement) -> Vec<String> {
    of_plan(&statement.plan, &statement.accesses)
}

/// The lines of a plan, of these accesses.
pub(crate) fn of_plan(plan: &[(usize, PlanLine)], accesses: &[Access]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (position, (indent, line)) in plan.iter().enumerate() {
        lines.push(match line {
            PlanLine::Detail { name, value } => format!("{}{name}: {value}", " ".repeat(indent * 6 + 2)),
            PlanLine::Node(node) if *indent == 0 || position == 0 => node.text(),
            PlanLine::Node(node) => format!("{}->  {}", " ".repeat(indent * 6 - 4), node.text()),
        });
    }
    if lines.is_empty() {
        lines.push("Result".to_owned());
    }
    lines.push(format!("Partitions: {}", partitions(&classify_accesses(accesses))));
    lines
}

/// What EXPLAIN says of a statement that has no plan.
pub fn utility(format: ExplainFormat) -> Result<Vec<String>> {
    match format {
        ExplainFormat::Text => Ok(vec!["Utility statements have no plan structure".to_owned()]),
        ExplainFormat::Json => Ok(vec![json::utility()]),
        other => Err(unsupported(other, "a utility statement")),
    }
}

/// That `what` is not explained in a format.
pub fn unsupported(format: ExplainFormat, what: &str) -> SqlError {
    let format = format!("{format:?}").to_uppercase();
    SqlError::unsupported(format_args!("EXPLAIN (FORMAT {format}) of {what}"))
}

/// `single-partition, routed by w_id = $1`.
fn partitions(classification: &Classification) -> String {
    let mut line = classification.class().to_string();
    if let Some(routing) = &classification.routing {
        line.push_str(&format!(", routed by {routing}"));
    }
    if let Some(reason) = &classification.reason {
        line.push_str(&format!(" ({reason})"));
    }
    line
}

/// An expression as text, its columns by position.
pub fn expression(expr: &BoundExpr) -> String {
    expression_over(expr, &|depth, index| format!("column {}{}", index + 1, "'".repeat(usize::from(depth))))
}

/// An expression over the columns of a table.
pub fn expression_of(expr: &BoundExpr, table: &Table) -> String {
    expression_over(expr, &|depth, index| match table.columns.get(usize::from(index)) {
        Some(column) if depth == 0 => column.name.clone(),
        _ => format!("column {}", index + 1),
    })
}

/// An expression with its columns named by `name(depth, index)`.
pub fn expression_over(expr: &BoundExpr, name: &dyn Fn(u16, u16) -> String) -> String {
    let show = |expr: &BoundExpr| expression_over(expr, name);
    let list = |exprs: &[BoundExpr]| exprs.iter().map(show).collect::<Vec<_>>().join(", ");
    match &expr.kind {
        ExprKind::Const(Datum::Null) => "NULL".to_owned(),
        ExprKind::Const(value) => {
            let text = io::to_text(value, expr.ty, &FunctionContext::detached());
            match value {
                Datum::Int8(_) if expr.ty.oid != archipel_sql::types::Oid::INT8 => format!("'{text}'"),
                Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Bool(_) | Datum::Numeric(_) => text,
                _ => format!("'{}'", text.replace('\'', "''")),
            }
        }
        ExprKind::Param(index) => format!("${}", index + 1),
        ExprKind::Variable(index) => format!("variable {index}"),
        ExprKind::Column { depth, index } => name(*depth, *index),
        ExprKind::Call { function, args } => {
            let symbol = operator_symbol(function.function.oid);
            match (symbol, args.as_slice()) {
                (Some(symbol), [left, right, ..]) => format!("({} {symbol} {})", show(left), show(right)),
                (Some(symbol), [right]) => format!("({symbol} {})", show(right)),
                _ => format!("{}({})", function.function.name, list(args)),
            }
        }
        ExprKind::Routine { routine, args } => format!("{}({})", routine.name, list(args)),
        ExprKind::And(args) => format!("({})", args.iter().map(show).collect::<Vec<_>>().join(" AND ")),
        ExprKind::Or(args) => format!("({})", args.iter().map(show).collect::<Vec<_>>().join(" OR ")),
        ExprKind::Not(inner) => format!("(NOT {})", show(inner)),
        ExprKind::IsNull(inner) => format!("({} IS NULL)", show(inner)),
        ExprKind::IsNotNull(inner) => format!("({} IS NOT NULL)", show(inner)),
        ExprKind::IsBool { expr, value, negated } => {
            let not = if *negated { "NOT " } else { "" };
            format!("({} IS {not}{})", show(expr), if *value { "TRUE" } else { "FALSE" })
        }
        ExprKind::IsDistinctFrom { left, right, negated, .. } => {
            let not = if *negated { "NOT " } else { "" };
            format!("({} IS {not}DISTINCT FROM {})", show(left), show(right))
        }
        ExprKind::Case { .. } => "CASE".to_owned(),
        ExprKind::Coalesce(args) => format!("COALESCE({})", list(args)),
        ExprKind::NullIf { left, right, .. } => format!("NULLIF({}, {})", show(left), show(right)),
        ExprKind::Extreme { greatest, args, .. } => {
            format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, list(args))
        }
        ExprKind::ArrayOp { left, array, operator, all } => {
            let symbol = operator_symbol(operator.function.oid).unwrap_or("=");
            format!("({} {symbol} {} ({}))", show(left), if *all { "ALL" } else { "ANY" }, show(array))
        }
        ExprKind::InList { left, list: items, negated, .. } => {
            format!("({} {}IN ({}))", show(left), if *negated { "NOT " } else { "" }, list(items))
        }
        ExprKind::Array { items, .. } => format!("ARRAY[{}]", list(items)),
        ExprKind::Row(fields, _) => format!("ROW({})", list(fields)),
        ExprKind::Subscript { array, subscripts } => {
            let mut text = show(array);
            for subscript in subscripts {
                text.push_str(&match subscript {
                    Subscript::Index(index) => format!("[{}]", show(index)),
                    Subscript::Slice { lower, upper } => format!(
                        "[{}:{}]",
                        lower.as_ref().map(show).unwrap_or_default(),
                        upper.as_ref().map(show).unwrap_or_default()
                    ),
                });
            }
            text
        }
        ExprKind::Field { record, index } => format!("({}).{}", show(record), index + 1),
        ExprKind::Relabel(inner) | ExprKind::ConvertIo(inner) => show(inner),
        ExprKind::ArrayConvert { array: inner, .. }
        | ExprKind::RowConvert { record: inner, .. }
        | ExprKind::Domain { expr: inner, .. } => show(inner),
        ExprKind::Subquery(subquery) => match subquery.kind {
            SubqueryKind::Exists => "EXISTS(SubPlan)".to_owned(),
            _ => "(SubPlan)".to_owned(),
        },
    }
}

/// The operator a function stands behind.
fn operator_symbol(function: archipel_sql::types::Oid) -> Option<&'static str> {
    const SYMBOLS: [&str; 14] = ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "~~", "!~~"];
    SYMBOLS.into_iter().find(|symbol| lookup_operators(symbol).iter().any(|op| op.function.oid == function))
}
