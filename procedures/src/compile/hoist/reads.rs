//! What a statement reads: its relations, among them the answers of calls.

use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundChild, BoundExpr, BoundStatement, Cte, ExprKind, Rel};

/// Takes answers out of the middle of an operator's rows, behind so many columns.
pub(super) fn without_answers(rel: &mut Rel, columns: usize, answers: usize) {
    if answers == 0 {
        return;
    }
    let types = rel.types();
    let places = (0..columns).chain(columns + answers..types.len());
    let exprs = places.map(|place| BoundExpr::column(place, types[place])).collect();
    *rel = Rel::Project { input: Box::new(std::mem::replace(rel, Rel::Unit)), exprs };
}

/// Moves the columns of a row from one place on.
pub(super) fn shift_from(expr: &mut BoundExpr, from: usize, offset: usize) {
    visit::visit_expr_mut(expr, 0, &mut |part, nesting| {
        if let ExprKind::Column { depth, index } = &mut part.kind
            && *depth == nesting
            && usize::from(*index) >= from
        {
            *index += offset as u16;
        }
        true
    });
}

/// Whether a query reads the rows of tables.
pub(super) fn reads_tables(rel: &Rel) -> bool {
    let mut reads = false;
    relations(rel, &mut |rel| reads |= reads_table(rel));
    reads
}

pub(super) fn reads_table(rel: &Rel) -> bool {
    matches!(rel, Rel::Scan { .. } | Rel::Family { .. })
}

pub(super) fn reads_its_table(statement: &BoundStatement) -> bool {
    !matches!(statement, BoundStatement::Query(_) | BoundStatement::Insert(_))
}

/// Calls `visit` on a query and every relation in it, those of subqueries and of what it changes
/// included.
pub(super) fn relations(rel: &Rel, visit: &mut dyn FnMut(&Rel)) {
    relations_in(BoundChild::Rel(rel), visit);
}

pub(super) fn relations_of_cte(cte: &Cte, visit: &mut dyn FnMut(&Rel)) {
    cte.body.for_each_child(|child, _| relations_in(child, visit));
}

pub(super) fn relations_of(statement: &BoundStatement, visit: &mut dyn FnMut(&Rel)) {
    relations_in(BoundChild::Statement(statement), visit);
}

fn relations_in(node: BoundChild<'_>, visit: &mut dyn FnMut(&Rel)) {
    if let BoundChild::Rel(rel) = node {
        visit(rel);
    }
    node.for_each_child(|child, _| relations_in(child, visit));
}
