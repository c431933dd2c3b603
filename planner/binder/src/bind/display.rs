//! The bound tree as compact text: one operator a line, indented by nesting.
//!
//! Columns are `#index`, with one `^` for each nesting further out. A type follows where the
//! value alone does not tell it.

use std::fmt::Write;

use archipel_sql::datum::Datum;
use archipel_sql::function::{FunctionContext, ResolvedFunction};
use archipel_sql::io;
use archipel_sql::type_table::{BuiltIn, TypeNames};
use archipel_sql::types::{Oid, Type};

use crate::bound::*;

/// A statement as text.
pub fn statement_text(statement: &BoundStatement) -> String {
    let mut out = String::new();
    statement_lines(&mut out, statement, 0);
    out
}

/// An expression as text, on one line.
pub fn expr_text(expr: &BoundExpr) -> String {
    let mut out = String::new();
    write_expr(&mut out, expr);
    out
}

fn line(out: &mut String, indent: usize, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    for _ in 0..indent {
        out.push_str("  ");
    }
    out.push_str(text);
}

fn columns_text(columns: &[OutputColumn]) -> String {
    columns
        .iter()
        .map(|column| format!("{} {}", column.name, BuiltIn.format_type(column.ty)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn returning_line(out: &mut String, returning: Option<&Returning>, indent: usize) {
    if let Some(returning) = returning {
        line(
            out,
            indent,
            &format!("returning {} -> {}", list_text(&returning.exprs), columns_text(&returning.columns)),
        );
    }
}

fn set_text(set: &[(u16, BoundExpr)]) -> String {
    set.iter()
        .map(|(column, value)| format!("#{column} = {}", expr_text(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn statement_lines(out: &mut String, statement: &BoundStatement, indent: usize) {
    match statement {
        BoundStatement::With { ctes, statement } => {
            cte_lines(out, ctes, indent);
            statement_lines(out, statement, indent);
        }
        BoundStatement::Query(query) => {
            line(out, indent, &format!("query {}", columns_text(&query.columns)));
            rel_lines(out, &query.rel, indent + 1);
        }
        BoundStatement::Insert(insert) => {
            line(out, indent, &format!("insert {}", insert.table.name));
            for check in &insert.checks {
                line(out, indent + 1, &format!("check {} {}", check.name, expr_text(&check.expr)));
            }
            if let Some(conflict) = &insert.on_conflict {
                let target = conflict.target.map(|arbiter| format!(" {arbiter:?}")).unwrap_or_default();
                match &conflict.update {
                    None => line(out, indent + 1, &format!("on conflict{target} nothing")),
                    Some((set, filter)) => {
                        let filter = filter
                            .as_ref()
                            .map(|filter| format!(" where {}", expr_text(filter)))
                            .unwrap_or_default();
                        line(out, indent + 1, &format!("on conflict{target} set {}{filter}", set_text(set)));
                    }
                }
            }
            returning_line(out, insert.returning.as_ref(), indent + 1);
            rel_lines(out, &insert.source, indent + 1);
        }
        BoundStatement::Update(update) => {
            line(out, indent, &format!("update {} set {}", update.table.name, set_text(&update.set)));
            if let Some(filter) = &update.filter {
                line(out, indent + 1, &format!("where {}", expr_text(filter)));
            }
            for check in &update.checks {
                line(out, indent + 1, &format!("check {} {}", check.name, expr_text(&check.expr)));
            }
            returning_line(out, update.returning.as_ref(), indent + 1);
            if let Some(from) = &update.from {
                rel_lines(out, from, indent + 1);
            }
        }
        BoundStatement::Delete(delete) => {
            line(out, indent, &format!("delete {}", delete.table.name));
            if let Some(filter) = &delete.filter {
                line(out, indent + 1, &format!("where {}", expr_text(filter)));
            }
            returning_line(out, delete.returning.as_ref(), indent + 1);
            if let Some(using) = &delete.using {
                rel_lines(out, using, indent + 1);
            }
        }
        BoundStatement::Merge(merge) => {
            line(out, indent, &format!("merge {}", merge.table.name));
            cte_lines(out, std::slice::from_ref(&merge.source), indent + 1);
            for action in &merge.actions {
                statement_lines(out, action, indent + 1);
            }
        }
        BoundStatement::Call(call) => {
            let columns = if call.columns.is_empty() {
                String::new()
            } else {
                format!(" -> {}", columns_text(&call.columns))
            };
            line(out, indent, &format!("call {}({}){columns}", call.routine.name, list_text(&call.args)));
        }
    }
}

fn cte_lines(out: &mut String, ctes: &[Cte], indent: usize) {
    for cte in ctes {
        match &cte.body {
            CteBody::Query(rel) => {
                line(out, indent, &format!("cte {} {}", cte.id, cte.name));
                rel_lines(out, rel, indent + 1);
            }
            CteBody::Recursive { initial, recursive, all } => {
                let all = if *all { " all" } else { "" };
                line(out, indent, &format!("cte {} {} recursive{all}", cte.id, cte.name));
                rel_lines(out, initial, indent + 1);
                rel_lines(out, recursive, indent + 1);
            }
            CteBody::Modify(statement) => {
                line(out, indent, &format!("cte {} {}", cte.id, cte.name));
                statement_lines(out, statement, indent + 1);
            }
        }
    }
}

fn sort_text(keys: &[SortKey]) -> String {
    keys.iter()
        .map(|key| {
            let order = if key.descending { " desc" } else { "" };
            let nulls = match (key.descending, key.nulls_first) {
                (false, true) => " nulls first",
                (true, false) => " nulls last",
                _ => "",
            };
            format!("{}{order}{nulls}", expr_text(&key.expr))
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn set_call_text(call: &SetCall) -> String {
    match call {
        SetCall::Builtin { function, args } => format!("{}({})", function.name, list_text(args)),
        SetCall::Routine { routine, args } => format!("{}({})", routine.name, list_text(args)),
        SetCall::Scalar(expr) => expr_text(expr),
    }
}

fn rel_lines(out: &mut String, rel: &Rel, indent: usize) {
    match rel {
        Rel::Unit => line(out, indent, "unit"),
        Rel::Values { rows, .. } => {
            let rows: Vec<String> = rows.iter().map(|row| format!("({})", list_text(row))).collect();
            line(out, indent, &format!("values {}", rows.join(", ")));
        }
        Rel::Family { family, lock, .. } => {
            let lock =
                lock.map(|lock| format!(" lock {:?} {:?}", lock.strength, lock.wait)).unwrap_or_default();
            line(out, indent, &format!("family {}{lock}", family.root.name));
        }
        Rel::Scan { table, lock, .. } => {
            let lock =
                lock.map(|lock| format!(" lock {:?} {:?}", lock.strength, lock.wait)).unwrap_or_default();
            line(out, indent, &format!("scan {}{lock}", table.name));
        }
        Rel::Function { call, ordinality, .. } => {
            let ordinality = if *ordinality { " ordinality" } else { "" };
            line(out, indent, &format!("function {}{ordinality}", set_call_text(call)));
        }
        Rel::Explained { statement, .. } => {
            line(out, indent, "explained");
            statement_lines(out, statement, indent + 1);
        }
        Rel::Filter { input, predicate } => {
            line(out, indent, &format!("filter {}", expr_text(predicate)));
            rel_lines(out, input, indent + 1);
        }
        Rel::Project { input, exprs } => {
            line(out, indent, &format!("project {}", list_text(exprs)));
            rel_lines(out, input, indent + 1);
        }
        Rel::ProjectSet { input, items } => {
            let items: Vec<String> = items
                .iter()
                .map(|item| match item {
                    SetItem::Scalar(expr) => expr_text(expr),
                    SetItem::Set { call, .. } => format!("set {}", set_call_text(call)),
                })
                .collect();
            line(out, indent, &format!("project-set {}", items.join(", ")));
            rel_lines(out, input, indent + 1);
        }
        Rel::Join { kind, left, right, on, lateral } => {
            let lateral = if *lateral { " lateral" } else { "" };
            let on = on.as_ref().map(|on| format!(" on {}", expr_text(on))).unwrap_or_default();
            line(out, indent, &format!("{} join{lateral}{on}", format!("{kind:?}").to_lowercase()));
            rel_lines(out, left, indent + 1);
            rel_lines(out, right, indent + 1);
        }
        Rel::Aggregate { input, group_by, sets, aggregates, groupings } => {
            line(out, indent, &aggregate_text(group_by, sets, aggregates, groupings));
            rel_lines(out, input, indent + 1);
        }
        Rel::Window { input, calls } => {
            line(out, indent, &window_text(calls));
            rel_lines(out, input, indent + 1);
        }
        Rel::Sort { input, keys } => {
            line(out, indent, &format!("sort {}", sort_text(keys)));
            rel_lines(out, input, indent + 1);
        }
        Rel::Distinct { input, on } => {
            let on = on.as_ref().map(|on| format!(" on {}", list_text(on))).unwrap_or_default();
            line(out, indent, &format!("distinct{on}"));
            rel_lines(out, input, indent + 1);
        }
        Rel::Lock { input } => {
            line(out, indent, "lock rows");
            rel_lines(out, input, indent + 1);
        }
        Rel::Limit { input, limit, offset, with_ties } => {
            line(out, indent, &limit_text(limit.as_ref(), offset.as_ref(), *with_ties));
            rel_lines(out, input, indent + 1);
        }
        Rel::SetOp { op, all, left, right } => {
            let all = if *all { " all" } else { "" };
            line(out, indent, &format!("{}{all}", format!("{op:?}").to_lowercase()));
            rel_lines(out, left, indent + 1);
            rel_lines(out, right, indent + 1);
        }
        Rel::With { ctes, body } => {
            cte_lines(out, ctes, indent);
            rel_lines(out, body, indent);
        }
        Rel::CteScan { id, .. } => line(out, indent, &format!("cte-scan {id}")),
    }
}

fn aggregate_text(
    group_by: &[BoundExpr],
    sets: &[Vec<u16>],
    aggregates: &[AggregateCall],
    groupings: &[Vec<u16>],
) -> String {
    let mut text = "aggregate".to_owned();
    if !group_by.is_empty() {
        let _ = write!(text, " by {}", list_text(group_by));
    }
    if sets.len() != 1 || sets[0].len() != group_by.len() {
        let _ = write!(text, " sets {sets:?}");
    }
    if !groupings.is_empty() {
        let _ = write!(text, " grouping {groupings:?}");
    }
    for call in aggregates {
        let distinct = if call.distinct { "distinct " } else { "" };
        let star = if call.args.is_empty() { "*" } else { "" };
        let _ = write!(text, ", {}({distinct}{}{star}", call.function.name(), list_text(&call.args));
        if !call.order_by.is_empty() {
            let _ = write!(text, " order by {}", sort_text(&call.order_by));
        }
        text.push(')');
        if let Some(filter) = &call.filter {
            let _ = write!(text, " filter {}", expr_text(filter));
        }
    }
    text
}

fn window_text(calls: &[WindowCall]) -> String {
    let mut text = "window".to_owned();
    for call in calls {
        let name = match &call.function {
            WindowFunction::Aggregate(function) => function.name(),
            WindowFunction::Ranking(ranking) => ranking.name(),
        };
        let _ = write!(text, " {name}({})", list_text(&call.args));
        if !call.partition_by.is_empty() {
            let _ = write!(text, " partition by {}", list_text(&call.partition_by));
        }
        if !call.order_by.is_empty() {
            let _ = write!(text, " order by {}", sort_text(&call.order_by));
        }
        let _ = write!(
            text,
            " {:?} {}..{}",
            call.frame.units,
            bound_text(&call.frame.start),
            bound_text(&call.frame.end)
        );
    }
    text
}

fn limit_text(limit: Option<&BoundExpr>, offset: Option<&BoundExpr>, with_ties: bool) -> String {
    let mut text = "limit".to_owned();
    if let Some(limit) = limit {
        let _ = write!(text, " {}", expr_text(limit));
    }
    if let Some(offset) = offset {
        let _ = write!(text, " offset {}", expr_text(offset));
    }
    if with_ties {
        text.push_str(" with ties");
    }
    text
}

fn bound_text(bound: &FrameBound) -> String {
    match bound {
        FrameBound::UnboundedPreceding => "start".to_owned(),
        FrameBound::Preceding(expr) => format!("-{}", expr_text(expr)),
        FrameBound::CurrentRow => "current".to_owned(),
        FrameBound::Following(expr) => format!("+{}", expr_text(expr)),
        FrameBound::UnboundedFollowing => "end".to_owned(),
    }
}

fn list_text(list: &[BoundExpr]) -> String {
    list.iter().map(expr_text).collect::<Vec<_>>().join(", ")
}

/// A constant as SQL would write it with its type, which plain int4, bool and text do without.
pub fn constant_text(value: &Datum, ty: Type) -> String {
    let text = match value {
        Datum::Null => return format!("null::{}", BuiltIn.format_type(ty)),
        Datum::Int4(value) => return value.to_string(),
        Datum::Bool(value) => return value.to_string(),
        Datum::Record(_) => return "record".to_owned(),
        other => io::to_text(other, ty, &FunctionContext::detached()),
    };
    if ty.oid == Oid::TEXT { format!("'{text}'") } else { format!("'{text}'::{}", BuiltIn.format_type(ty)) }
}

fn call_text(function: &ResolvedFunction, args: &[BoundExpr]) -> String {
    format!("{}({})", function.function.name, list_text(args))
}

fn joined(list: &[BoundExpr], word: &str) -> String {
    format!("({})", list.iter().map(expr_text).collect::<Vec<_>>().join(&format!(" {word} ")))
}

fn case_text(arms: &[(BoundExpr, BoundExpr)], otherwise: Option<&BoundExpr>) -> String {
    let mut text = "case".to_owned();
    for (condition, result) in arms {
        let _ = write!(text, " when {} then {}", expr_text(condition), expr_text(result));
    }
    if let Some(otherwise) = otherwise {
        let _ = write!(text, " else {}", expr_text(otherwise));
    }
    text + " end"
}

fn subscript_text(array: &BoundExpr, subscripts: &[Subscript]) -> String {
    let mut text = expr_text(array);
    for subscript in subscripts {
        match subscript {
            Subscript::Index(index) => {
                let _ = write!(text, "[{}]", expr_text(index));
            }
            Subscript::Slice { lower, upper } => {
                let bound = |bound: &Option<BoundExpr>| bound.as_ref().map(expr_text).unwrap_or_default();
                let _ = write!(text, "[{}:{}]", bound(lower), bound(upper));
            }
        }
    }
    text
}

fn subquery_text(subquery: &Subquery) -> String {
    let mut rel = String::new();
    rel_lines(&mut rel, &subquery.rel, 0);
    let rel = rel.lines().map(str::trim).collect::<Vec<_>>().join(" < ");
    let correlated = if subquery.correlated { " correlated" } else { "" };
    let names = |operators: &[ResolvedFunction]| -> String {
        operators.iter().map(|operator| operator.function.name).collect::<Vec<_>>().join(" ")
    };
    match &subquery.kind {
        SubqueryKind::Scalar => format!("(scalar{correlated}: {rel})"),
        SubqueryKind::Exists => format!("(exists{correlated}: {rel})"),
        SubqueryKind::Array { .. } => format!("(array{correlated}: {rel})"),
        SubqueryKind::Any { left, operators } => {
            format!("({} {} any{correlated}: {rel})", list_text(left), names(operators))
        }
        SubqueryKind::All { left, operators } => {
            format!("({} {} all{correlated}: {rel})", list_text(left), names(operators))
        }
    }
}

fn write_expr(out: &mut String, expr: &BoundExpr) {
    let text = match &expr.kind {
        ExprKind::Const(value) => constant_text(value, expr.ty),
        ExprKind::Param(number) => format!("${}:{}", number + 1, BuiltIn.format_type(expr.ty)),
        ExprKind::Variable(register) => format!("@{register}"),
        ExprKind::Column { depth, index } => format!("{}#{index}", "^".repeat(usize::from(*depth))),
        ExprKind::Call { function, args } => call_text(function, args),
        ExprKind::Routine { routine, args } => format!("routine {}({})", routine.name, list_text(args)),
        ExprKind::And(list) => joined(list, "and"),
        ExprKind::Or(list) => joined(list, "or"),
        ExprKind::Not(inner) => format!("not {}", expr_text(inner)),
        ExprKind::IsNull(inner) => format!("{} is null", expr_text(inner)),
        ExprKind::IsNotNull(inner) => format!("{} is not null", expr_text(inner)),
        ExprKind::IsBool { expr, value, negated } => {
            format!("{} is {}{value}", expr_text(expr), if *negated { "not " } else { "" })
        }
        ExprKind::IsDistinctFrom { left, right, negated, .. } => {
            format!(
                "{} is {}distinct from {}",
                expr_text(left),
                if *negated { "not " } else { "" },
                expr_text(right)
            )
        }
        ExprKind::Case { arms, otherwise } => case_text(arms, otherwise.as_deref()),
        ExprKind::Coalesce(list) => format!("coalesce({})", list_text(list)),
        ExprKind::NullIf { left, right, .. } => format!("nullif({}, {})", expr_text(left), expr_text(right)),
        ExprKind::Extreme { greatest, args, .. } => {
            format!("{}({})", if *greatest { "greatest" } else { "least" }, list_text(args))
        }
        ExprKind::ArrayOp { left, array, operator, all } => format!(
            "{} {} {}({})",
            expr_text(left),
            operator.function.name,
            if *all { "all" } else { "any" },
            expr_text(array)
        ),
        ExprKind::InList { left, list, negated, equality } => {
            let not = if *negated { "not " } else { "" };
            format!("{} {not}{} in ({})", expr_text(left), equality.function.name, list_text(list))
        }
        ExprKind::Array { items, .. } => format!("array[{}]", list_text(items)),
        ExprKind::Row(items, _) => format!("row({})", list_text(items)),
        ExprKind::Subscript { array, subscripts } => subscript_text(array, subscripts),
        ExprKind::Field { record, index } => format!("{}.{index}", expr_text(record)),
        ExprKind::Relabel(inner) => format!("{}::{}", expr_text(inner), BuiltIn.format_type(expr.ty)),
        ExprKind::ConvertIo(inner) => format!("{}::text::{}", expr_text(inner), BuiltIn.format_type(expr.ty)),
        ExprKind::ArrayConvert { array, element } => {
            format!("map({}, {})", expr_text(array), expr_text(element))
        }
        ExprKind::RowConvert { record, fields } => {
            let fields: Vec<String> = fields.iter().map(expr_text).collect();
            format!("map({}, {})", expr_text(record), fields.join(", "))
        }
        ExprKind::Domain { expr, conditions } => format!("{}::{}", expr_text(expr), conditions.domain),
        ExprKind::Subquery(subquery) => subquery_text(subquery),
    };
    out.push_str(&text);
}
