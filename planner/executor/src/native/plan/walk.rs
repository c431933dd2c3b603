//! Walks over bound expressions, nested queries included.
//!
//! A visitor receives each expression with the number of nestings between it and the root
//! row: `Column { depth, .. }` reads the root row exactly when `depth` equals that number.

use crate::bound::{BoundChild, BoundExpr, BoundStatement, ExprKind, Rel};

type Visitor<'v> = dyn FnMut(&BoundExpr, u16) + 'v;

/// Calls `visit` on `expr` and everything inside it.
pub(crate) fn visit_expr(expr: &BoundExpr, nesting: u16, visit: &mut Visitor<'_>) {
    visit(expr, nesting);
    visit_within(BoundChild::Expr(expr), nesting, visit);
}

/// Calls `visit` on every expression of a relation. Its operators' own input rows are at
/// depth 0; `nesting` counts from the root row as in [`visit_expr`].
pub(crate) fn visit_rel(rel: &Rel, nesting: u16, visit: &mut Visitor<'_>) {
    visit_within(BoundChild::Rel(rel), nesting, visit);
}

/// Calls `visit` on every expression of a statement.
pub(crate) fn visit_statement(statement: &BoundStatement, nesting: u16, visit: &mut Visitor<'_>) {
    visit_within(BoundChild::Statement(statement), nesting, visit);
}

fn visit_within(node: BoundChild<'_>, nesting: u16, visit: &mut Visitor<'_>) {
    node.for_each_child(|child, scope| {
        let nesting = nesting + scope.nesting();
        if let BoundChild::Expr(expr) = child {
            visit(expr, nesting);
        }
        visit_within(child, nesting, visit);
    });
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

/// Calls `visit` on a relation and every relation inside it, but for those of subqueries, of changes in
/// WITH and of statements that are explained.
pub fn visit_relations(rel: &Rel, visit: &mut dyn FnMut(&Rel)) {
    visit(rel);
    rel.for_each_child(|child, _| {
        if let BoundChild::Rel(rel) = child {
            visit_relations(rel, visit);
        }
    });
}

/// The same with those of subqueries, wherever these are.
pub fn visit_all_relations(rel: &Rel, visit: &mut dyn FnMut(&Rel)) {
    visit_relations(rel, visit);
    visit_expressions(rel, &mut |expr| {
        if let ExprKind::Subquery(subquery) = &expr.kind {
            visit_relations(&subquery.rel, visit);
        }
    });
}

/// Calls `visit` on every expression of a relation, at any depth, and on the relations of
/// nested queries through their expressions.
pub fn visit_expressions(rel: &Rel, visit: &mut dyn FnMut(&BoundExpr)) {
    visit_rel(rel, 0, &mut |expr, _| visit(expr));
}
