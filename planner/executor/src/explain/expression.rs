//! Expressions as EXPLAIN shows them.
//!
//! Plain text names operators and calls; what a document or VERBOSE shows is PostgreSQL's (ruleutils),
//! with the types of constants and casts said.

use archipel_sql::catalog::{ROW_PLACE, Table};
use archipel_sql::datum::Datum;
use archipel_sql::function::{FunctionContext, Intrinsic, ScalarFunction, SessionHost, lookup_operators};
use archipel_sql::io;
use archipel_sql::types::{Oid, Type};

use crate::bound::{
    AggregateCall, BoundExpr, ExprKind, SetCall, SortKey, SubqueryKind, Subscript, WindowCall, WindowFunction,
};

/// How columns are named, by their depth and place.
type Namer<'n> = &'n dyn Fn(u16, u16) -> String;

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
pub fn expression_over(expr: &BoundExpr, name: Namer<'_>) -> String {
    Writer { name, session: None }.text(expr)
}

/// The same with the types of constants and casts.
pub(crate) fn typed(expr: &BoundExpr, name: Namer<'_>, session: &dyn SessionHost) -> String {
    Writer { name, session: Some(session) }.text(expr)
}

/// Conditions that must all hold.
pub(crate) fn typed_all(conditions: &[String]) -> String {
    match conditions {
        [only] => only.clone(),
        several => format!("({})", several.join(" AND ")),
    }
}

/// `count(DISTINCT x) FILTER (WHERE (x > 1))`.
pub(crate) fn aggregate(call: &AggregateCall, name: Namer<'_>, session: &dyn SessionHost) -> String {
    let writer = Writer { name, session: Some(session) };
    let mut args = writer.list(&call.args);
    if call.args.is_empty() {
        args = "*".to_owned();
    }
    if !call.order_by.is_empty() {
        let keys: Vec<String> = call.order_by.iter().map(|key| sort_key(key, name, session)).collect();
        args = format!("{args} ORDER BY {}", keys.join(", "));
    }
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    let filter = call.filter.as_ref();
    let filter = filter.map(|filter| format!(" FILTER (WHERE {})", writer.text(filter))).unwrap_or_default();
    format!("{}({distinct}{args}){filter}", call.function.name())
}

/// `row_number() OVER (?)`.
pub(crate) fn window_call(call: &WindowCall, name: Namer<'_>, session: &dyn SessionHost) -> String {
    let writer = Writer { name, session: Some(session) };
    let (called, counts) = match &call.function {
        WindowFunction::Aggregate(function) => (function.name(), call.args.is_empty()),
        WindowFunction::Ranking(ranking) => (ranking.name(), false),
    };
    let args = if counts { "*".to_owned() } else { writer.list(&call.args) };
    let filter = call.filter.as_ref();
    let filter = filter.map(|filter| format!(" FILTER (WHERE {})", writer.text(filter))).unwrap_or_default();
    format!("{called}({args}){filter} OVER (?)")
}

/// A call in FROM.
pub(crate) fn set_call(call: &SetCall, name: Namer<'_>, session: &dyn SessionHost) -> String {
    let writer = Writer { name, session: Some(session) };
    match call {
        SetCall::Builtin { function, args } => format!("{}({})", function.name, writer.list(args)),
        SetCall::Routine { routine, args } => format!("{}({})", routine.name, writer.list(args)),
        SetCall::Scalar(expr) => writer.text(expr),
    }
}

/// `n DESC NULLS LAST` (show_sortorder_options).
pub(crate) fn sort_key(key: &SortKey, name: Namer<'_>, session: &dyn SessionHost) -> String {
    let mut text = Writer { name, session: Some(session) }.text(&key.expr);
    text.push_str(if key.descending { " DESC" } else { "" });
    match (key.descending, key.nulls_first) {
        (false, true) => text.push_str(" NULLS FIRST"),
        (true, false) => text.push_str(" NULLS LAST"),
        _ => {}
    }
    text
}

/// What writes expressions.
struct Writer<'n> {
    name: Namer<'n>,
    /// Who names types and what values stand for, if types are said.
    session: Option<&'n dyn SessionHost>,
}

/// What stands for a subquery, whose plan is shown by itself.
fn subplan(kind: &SubqueryKind) -> &'static str {
    if matches!(kind, SubqueryKind::Exists) { "EXISTS(SubPlan)" } else { "(SubPlan)" }
}

impl Writer<'_> {
    fn list(&self, exprs: &[BoundExpr]) -> String {
        exprs.iter().map(|expr| self.text(expr)).collect::<Vec<_>>().join(", ")
    }

    fn text(&self, expr: &BoundExpr) -> String {
        let show = |expr: &BoundExpr| self.text(expr);
        let list = |exprs: &[BoundExpr]| self.list(exprs);
        match &expr.kind {
            ExprKind::Const(value) => self.constant(value, expr.ty),
            ExprKind::Param(index) => format!("${}", index + 1),
            ExprKind::Variable(index) => format!("variable {index}"),
            ExprKind::Column { depth, index } => (self.name)(*depth, *index),
            ExprKind::Call { function, args } => {
                let symbol = self.operator_symbol(function.function.oid);
                match (symbol, args.as_slice()) {
                    (Some(symbol), [left, right, ..]) => format!("({} {symbol} {})", show(left), show(right)),
                    (Some(symbol), [right]) => format!("({symbol} {})", show(right)),
                    _ => self
                        .system_column(function.function, args)
                        .unwrap_or_else(|| format!("{}({})", function.function.name, list(args))),
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
            ExprKind::Case { arms, otherwise } => self.case(arms, otherwise.as_deref(), expr.ty),
            ExprKind::Coalesce(args) => format!("COALESCE({})", list(args)),
            ExprKind::NullIf { left, right, .. } => format!("NULLIF({}, {})", show(left), show(right)),
            ExprKind::Extreme { greatest, args, .. } => {
                format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, list(args))
            }
            ExprKind::ArrayOp { left, array, operator, all } => {
                let symbol = self.operator_symbol(operator.function.oid).unwrap_or("=");
                format!("({} {symbol} {} ({}))", show(left), if *all { "ALL" } else { "ANY" }, show(array))
            }
            ExprKind::InList { left, list: items, negated, .. } if self.session.is_some() => {
                let (symbol, which) = if *negated { ("<>", "ALL") } else { ("=", "ANY") };
                format!("({} {symbol} {which} (ARRAY[{}]))", show(left), list(items))
            }
            ExprKind::InList { left, list: items, negated, .. } => {
                format!("({} {}IN ({}))", show(left), if *negated { "NOT " } else { "" }, list(items))
            }
            ExprKind::Array { items, .. } => match self.session {
                Some(session) if items.is_empty() => {
                    format!("ARRAY[]::{}", session.type_names().format_type(expr.ty))
                }
                _ => format!("ARRAY[{}]", list(items)),
            },
            ExprKind::Row(fields, _) => format!("ROW({})", list(fields)),
            ExprKind::Subscript { array, subscripts } => self.subscripted(array, subscripts),
            ExprKind::Field { record, index } => format!("({}).{}", show(record), index + 1),
            ExprKind::Relabel(inner)
            | ExprKind::ConvertIo(inner)
            | ExprKind::ArrayConvert { array: inner, .. }
            | ExprKind::RowConvert { record: inner, .. }
            | ExprKind::Domain { expr: inner, .. } => match self.session {
                Some(session) => format!("({})::{}", show(inner), session.type_names().format_type(expr.ty)),
                None => show(inner),
            },
            ExprKind::Subquery(subquery) => subplan(&subquery.kind).to_owned(),
        }
    }

    /// A CASE, whose missing ELSE is a NULL of its type.
    fn case(&self, arms: &[(BoundExpr, BoundExpr)], otherwise: Option<&BoundExpr>, ty: Type) -> String {
        let mut text = "CASE".to_owned();
        for (condition, value) in arms {
            text.push_str(&format!(" WHEN {} THEN {}", self.text(condition), self.text(value)));
        }
        match (otherwise, self.session) {
            (Some(otherwise), _) => text.push_str(&format!(" ELSE {}", self.text(otherwise))),
            (None, Some(session)) => {
                text.push_str(&format!(" ELSE NULL::{}", session.type_names().format_type(ty)));
            }
            (None, None) => {}
        }
        text.push_str(" END");
        text
    }

    fn subscripted(&self, array: &BoundExpr, subscripts: &[Subscript]) -> String {
        let end = |end: &Option<BoundExpr>| end.as_ref().map(|end| self.text(end)).unwrap_or_default();
        let mut text = self.text(array);
        for subscript in subscripts {
            text.push_str(&match subscript {
                Subscript::Index(index) => format!("[{}]", self.text(index)),
                Subscript::Slice { lower, upper } => format!("[{}:{}]", end(lower), end(upper)),
            });
        }
        text
    }

    /// A constant: numbers as they are, anything else in quotes (get_const_expr).
    fn constant(&self, value: &Datum, ty: Type) -> String {
        if value.is_null() {
            return match self.session.filter(|_| ty.oid != Oid::UNKNOWN) {
                Some(session) => format!("NULL::{}", session.type_names().type_name(ty.oid)),
                None => "NULL".to_owned(),
            };
        }
        let told = |session| FunctionContext { now: 0, session };
        let context = self.session.map_or(FunctionContext::detached(), told);
        let text = io::to_text(value, ty, &context);
        let Some(session) = self.session else {
            return match value {
                Datum::Int8(_) if ty.oid != Oid::INT8 => format!("'{text}'"),
                Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Bool(_) | Datum::Numeric(_) => text,
                _ => format!("'{}'", text.replace('\'', "''")),
            };
        };
        match ty.oid {
            Oid::INT4 | Oid::NUMERIC if text.starts_with(|first: char| first.is_ascii_digit()) => text,
            Oid::BOOL => matches!(value, Datum::Bool(true)).to_string(),
            oid => {
                let escape = if text.contains('\\') { "E" } else { "" };
                let text = text.replace('\\', "\\\\").replace('\'', "''");
                match oid {
                    Oid::UNKNOWN => format!("{escape}'{text}'"),
                    oid => format!("{escape}'{text}'::{}", session.type_names().type_name(oid)),
                }
            }
        }
    }

    /// The system column that a call over a table's columns stands for.
    fn system_column(&self, function: &ScalarFunction, args: &[BoundExpr]) -> Option<String> {
        let column = match function.intrinsic {
            Some(Intrinsic::RowPlace) => ROW_PLACE,
            Some(Intrinsic::RowVersion) => "xmin",
            _ => return None,
        };
        let ExprKind::Column { depth, index } = args.last()?.kind else { return None };
        let beside = (self.name)(depth, index);
        match beside.rsplit_once('.') {
            Some((table, _)) => Some(format!("{table}.{column}")),
            None => (!beside.contains(' ')).then(|| column.to_owned()),
        }
    }

    /// The operator a function stands behind.
    fn operator_symbol(&self, function: Oid) -> Option<&'static str> {
        const SYMBOLS: [&str; 14] =
            ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "~~", "!~~"];
        const MORE: [&str; 18] = [
            "~", "!~", "~*", "!~*", "~~*", "!~~*", "->", "->>", "#>", "#>>", "@>", "<@", "?", "&&", "&", "|",
            "#", "^",
        ];
        let more = if self.session.is_some() { &MORE[..] } else { &[] };
        SYMBOLS
            .iter()
            .chain(more)
            .find(|symbol| lookup_operators(symbol).iter().any(|op| op.function.oid == function))
            .copied()
    }
}
