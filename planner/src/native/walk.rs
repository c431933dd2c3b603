//! Walks over bound expressions, nested queries included.
//!
//! A visitor receives each expression with the number of nestings between it and the root
//! row: `Column { depth, .. }` reads the root row exactly when `depth` equals that number.

use crate::bound::{
    Accumulator, BoundExpr, BoundStatement, Cte, CteBody, ExprKind, FrameBound, Rel, Returning, SetCall,
    SetItem, SubqueryKind, Subscript, WindowFunction,
};

pub(crate) use crate::bind::visit::is_volatile;

type Visitor<'v> = dyn FnMut(&BoundExpr, u16) + 'v;

/// Calls `visit` on `expr` and everything inside it.
pub(crate) fn visit_expr(expr: &BoundExpr, nesting: u16, visit: &mut Visitor<'_>) {
    visit(expr, nesting);
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Variable(_) | ExprKind::Column { .. } => {}
        ExprKind::Call { args, .. } | ExprKind::Routine { args, .. } => visit_all(args, nesting, visit),
        ExprKind::And(args) | ExprKind::Or(args) | ExprKind::Coalesce(args) | ExprKind::Row(args, _) => {
            visit_all(args, nesting, visit);
        }
        ExprKind::Array { items, .. } => visit_all(items, nesting, visit),
        ExprKind::Extreme { args, .. } => visit_all(args, nesting, visit),
        ExprKind::Not(inner)
        | ExprKind::IsNull(inner)
        | ExprKind::IsNotNull(inner)
        | ExprKind::IsBool { expr: inner, .. }
        | ExprKind::Field { record: inner, .. }
        | ExprKind::Relabel(inner)
        | ExprKind::ConvertIo(inner) => visit_expr(inner, nesting, visit),
        ExprKind::ArrayConvert { array, element } => {
            visit_expr(array, nesting, visit);
            visit_expr(element, nesting + 1, visit);
        }
        ExprKind::RowConvert { record, fields } => {
            visit_expr(record, nesting, visit);
            visit_all(fields, nesting + 1, visit);
        }
        ExprKind::Domain { expr, conditions } => {
            visit_expr(expr, nesting, visit);
            for (_, check) in &conditions.checks {
                visit_expr(check, nesting + 1, visit);
            }
        }
        ExprKind::IsDistinctFrom { left, right, .. } | ExprKind::NullIf { left, right, .. } => {
            visit_expr(left, nesting, visit);
            visit_expr(right, nesting, visit);
        }
        ExprKind::Case { arms, otherwise } => {
            for (condition, value) in arms {
                visit_expr(condition, nesting, visit);
                visit_expr(value, nesting, visit);
            }
            if let Some(otherwise) = otherwise {
                visit_expr(otherwise, nesting, visit);
            }
        }
        ExprKind::ArrayOp { left, array, .. } => {
            visit_expr(left, nesting, visit);
            visit_expr(array, nesting, visit);
        }
        ExprKind::InList { left, list, .. } => {
            visit_expr(left, nesting, visit);
            visit_all(list, nesting, visit);
        }
        ExprKind::Subscript { array, subscripts } => {
            visit_expr(array, nesting, visit);
            for subscript in subscripts {
                match subscript {
                    Subscript::Index(index) => visit_expr(index, nesting, visit),
                    Subscript::Slice { lower, upper } => {
                        for bound in [lower, upper].into_iter().flatten() {
                            visit_expr(bound, nesting, visit);
                        }
                    }
                }
            }
        }
        ExprKind::Subquery(subquery) => {
            if let SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } = &subquery.kind {
                visit_all(left, nesting, visit);
            }
            visit_rel(&subquery.rel, nesting + 1, visit);
        }
    }
}

/// [`visit_expr`] over several.
pub(crate) fn visit_all(exprs: &[BoundExpr], nesting: u16, visit: &mut Visitor<'_>) {
    for expr in exprs {
        visit_expr(expr, nesting, visit);
    }
}

/// Calls `visit` on every expression of a relation. Its operators' own input rows are at
/// depth 0; `nesting` counts from the root row as in [`visit_expr`].
pub(crate) fn visit_rel(rel: &Rel, nesting: u16, visit: &mut Visitor<'_>) {
    match rel {
        Rel::Unit | Rel::Scan { .. } | Rel::Family { .. } | Rel::CteScan { .. } => {}
        Rel::Values { rows, .. } => rows.iter().for_each(|row| visit_all(row, nesting, visit)),
        Rel::Function { call, .. } => visit_call(call, nesting, visit),
        Rel::Explained { statement, .. } => visit_statement(statement, nesting, visit),
        Rel::Filter { input, predicate } => {
            visit_rel(input, nesting, visit);
            visit_expr(predicate, nesting, visit);
        }
        Rel::Project { input, exprs } => {
            visit_rel(input, nesting, visit);
            visit_all(exprs, nesting, visit);
        }
        Rel::ProjectSet { input, items } => {
            visit_rel(input, nesting, visit);
            for item in items {
                match item {
                    SetItem::Scalar(expr) => visit_expr(expr, nesting, visit),
                    SetItem::Set { call, .. } => visit_call(call, nesting, visit),
                }
            }
        }
        Rel::Join { left, right, on, lateral, .. } => {
            visit_rel(left, nesting, visit);
            visit_rel(right, nesting + u16::from(*lateral), visit);
            if let Some(on) = on {
                visit_expr(on, nesting, visit);
            }
        }
        Rel::Aggregate { input, group_by, aggregates, .. } => {
            visit_rel(input, nesting, visit);
            visit_all(group_by, nesting, visit);
            for call in aggregates {
                visit_accumulator(&call.function, nesting, visit);
                visit_all(&call.args, nesting, visit);
                call.filter.iter().for_each(|filter| visit_expr(filter, nesting, visit));
                call.order_by.iter().for_each(|key| visit_expr(&key.expr, nesting, visit));
            }
        }
        Rel::Window { input, calls } => {
            visit_rel(input, nesting, visit);
            for call in calls {
                if let WindowFunction::Aggregate(function) = &call.function {
                    visit_accumulator(function, nesting, visit);
                }
                visit_all(&call.args, nesting, visit);
                visit_all(&call.partition_by, nesting, visit);
                call.filter.iter().for_each(|filter| visit_expr(filter, nesting, visit));
                call.order_by.iter().for_each(|key| visit_expr(&key.expr, nesting, visit));
                for bound in [&call.frame.start, &call.frame.end] {
                    if let FrameBound::Preceding(expr) | FrameBound::Following(expr) = bound {
                        visit_expr(expr, nesting, visit);
                    }
                }
            }
        }
        Rel::Sort { input, keys } => {
            visit_rel(input, nesting, visit);
            keys.iter().for_each(|key| visit_expr(&key.expr, nesting, visit));
        }
        Rel::Distinct { input, on } => {
            visit_rel(input, nesting, visit);
            on.iter().for_each(|on| visit_all(on, nesting, visit));
        }
        Rel::Lock { input } => visit_rel(input, nesting, visit),
        Rel::Limit { input, limit, offset, .. } => {
            visit_rel(input, nesting, visit);
            [limit, offset].into_iter().flatten().for_each(|expr| visit_expr(expr, nesting, visit));
        }
        Rel::SetOp { left, right, .. } => {
            visit_rel(left, nesting, visit);
            visit_rel(right, nesting, visit);
        }
        Rel::With { ctes, body } => {
            visit_ctes(ctes, nesting, visit);
            visit_rel(body, nesting, visit);
        }
    }
}

/// What a defined aggregate calls, over a row of its own.
fn visit_accumulator(function: &Accumulator, nesting: u16, visit: &mut Visitor<'_>) {
    if let Accumulator::Defined(defined) = function {
        defined.expressions().for_each(|expr| visit_expr(expr, nesting + 1, visit));
    }
}

fn visit_ctes(ctes: &[Cte], nesting: u16, visit: &mut Visitor<'_>) {
    for cte in ctes {
        match &cte.body {
            CteBody::Query(rel) => visit_rel(rel, nesting, visit),
            CteBody::Recursive { initial, recursive, .. } => {
                visit_rel(initial, nesting, visit);
                visit_rel(recursive, nesting, visit);
            }
            CteBody::Modify(statement) => visit_statement(statement, nesting, visit),
        }
    }
}

fn visit_call(call: &SetCall, nesting: u16, visit: &mut Visitor<'_>) {
    match call {
        SetCall::Builtin { args, .. } | SetCall::Routine { args, .. } => visit_all(args, nesting, visit),
        SetCall::Scalar(expr) => visit_expr(expr, nesting, visit),
    }
}

/// Calls `visit` on every expression of a statement.
pub(crate) fn visit_statement(statement: &BoundStatement, nesting: u16, visit: &mut Visitor<'_>) {
    let returning = |returning: &Option<Returning>, visit: &mut Visitor<'_>| {
        returning.iter().for_each(|r| visit_all(&r.exprs, nesting, visit));
    };
    match statement {
        BoundStatement::Query(query) => visit_rel(&query.rel, nesting, visit),
        BoundStatement::Insert(insert) => {
            visit_rel(&insert.source, nesting, visit);
            insert.checks.iter().for_each(|check| visit_expr(&check.expr, nesting, visit));
            if let Some((set, filter)) = insert.on_conflict.as_ref().and_then(|c| c.update.as_ref()) {
                set.iter().for_each(|(_, expr)| visit_expr(expr, nesting, visit));
                filter.iter().for_each(|expr| visit_expr(expr, nesting, visit));
            }
            returning(&insert.returning, visit);
        }
        BoundStatement::Update(update) => {
            update.from.iter().for_each(|from| visit_rel(from, nesting, visit));
            update.filter.iter().for_each(|filter| visit_expr(filter, nesting, visit));
            update.set.iter().for_each(|(_, expr)| visit_expr(expr, nesting, visit));
            update.checks.iter().for_each(|check| visit_expr(&check.expr, nesting, visit));
            returning(&update.returning, visit);
        }
        BoundStatement::Delete(delete) => {
            delete.using.iter().for_each(|using| visit_rel(using, nesting, visit));
            delete.filter.iter().for_each(|filter| visit_expr(filter, nesting, visit));
            returning(&delete.returning, visit);
        }
        BoundStatement::Merge(merge) => {
            if let CteBody::Query(rel) = &merge.source.body {
                visit_rel(rel, nesting, visit);
            }
            for action in &merge.actions {
                visit_statement(action, nesting, visit);
            }
        }
        BoundStatement::Call(call) => visit_all(&call.args, nesting, visit),
        BoundStatement::With { ctes, statement } => {
            visit_ctes(ctes, nesting, visit);
            visit_statement(statement, nesting, visit);
        }
    }
}

/// The columns of the root row that `expr` reads.
pub(crate) fn root_columns(expr: &BoundExpr) -> Vec<u16> {
    let mut columns = Vec::new();
    visit_expr(expr, 0, &mut |inner, nesting| {
        if let ExprKind::Column { depth, index } = inner.kind
            && depth == nesting
            && !columns.contains(&index)
        {
            columns.push(index);
        }
    });
    columns
}

/// Calls `visit` on a relation and every relation inside it, those of subqueries included.
pub fn visit_relations(rel: &Rel, visit: &mut dyn FnMut(&Rel)) {
    visit(rel);
    match rel {
        Rel::Unit
        | Rel::Scan { .. }
        | Rel::Family { .. }
        | Rel::CteScan { .. }
        | Rel::Values { .. }
        | Rel::Explained { .. }
        | Rel::Function { .. } => {}
        Rel::Filter { input, .. }
        | Rel::Project { input, .. }
        | Rel::ProjectSet { input, .. }
        | Rel::Aggregate { input, .. }
        | Rel::Window { input, .. }
        | Rel::Sort { input, .. }
        | Rel::Distinct { input, .. }
        | Rel::Lock { input }
        | Rel::Limit { input, .. } => visit_relations(input, visit),
        Rel::Join { left, right, .. } | Rel::SetOp { left, right, .. } => {
            visit_relations(left, visit);
            visit_relations(right, visit);
        }
        Rel::With { ctes, body } => {
            for cte in ctes {
                match &cte.body {
                    CteBody::Query(rel) => visit_relations(rel, visit),
                    CteBody::Recursive { initial, recursive, .. } => {
                        visit_relations(initial, visit);
                        visit_relations(recursive, visit);
                    }
                    CteBody::Modify(_) => {}
                }
            }
            visit_relations(body, visit);
        }
    }
}

/// Calls `visit` on every expression of a relation, at any depth, and on the relations of
/// nested queries through their expressions.
pub fn visit_expressions(rel: &Rel, visit: &mut dyn FnMut(&BoundExpr)) {
    visit_rel(rel, 0, &mut |expr, _| visit(expr));
}
