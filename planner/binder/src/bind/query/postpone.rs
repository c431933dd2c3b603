//! Output columns with effects under ORDER BY: as in PostgreSQL they are computed behind the sort, for
//! the rows up to the limit and in their order. `SELECT nextval('s'), name FROM t
//! ORDER BY name` numbers the rows as they are shown, and `SELECT take(id) FROM jobs ORDER BY id
//! LIMIT 1` takes one.

use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use crate::bind::visit::{is_volatile, visit_expr_mut};
use crate::bound::{BoundExpr, ExprKind, Rel};

/// Takes the output columns that have effects and are no sort keys out of what is computed before a
/// sort. What stays keeps its place; the answer is the list to compute behind it.
pub(super) fn postpone(exprs: &mut Vec<BoundExpr>, outputs: usize, keys: &[usize]) -> Option<Vec<BoundExpr>> {
    let late = |at: usize, expr: &BoundExpr| !keys.contains(&at) && is_volatile(expr);
    if keys.is_empty() || !exprs[..outputs].iter().enumerate().any(|(at, expr)| late(at, expr)) {
        return None;
    }
    let mut after = Vec::with_capacity(outputs);
    for at in 0..outputs {
        if !late(at, &exprs[at]) {
            after.push(BoundExpr::column(at, exprs[at].ty));
            continue;
        }
        // Its place is kept by something that costs nothing.
        let nothing = BoundExpr::constant(Datum::Null, exprs[at].ty);
        let mut expr = std::mem::replace(&mut exprs[at], nothing);
        let mut needed: Vec<(u16, u16)> = Vec::new();
        replace_columns(&mut expr, &mut |column, ty| {
            let known = needed.iter().find(|(below, _)| *below == column).map(|(_, place)| *place);
            known.unwrap_or_else(|| {
                exprs.push(BoundExpr::column(usize::from(column), ty));
                let place = (exprs.len() - 1) as u16;
                needed.push((column, place));
                place
            })
        });
        after.push(expr);
    }
    Some(after)
}

/// Computes columns behind a sort and its limit. Rows that OFFSET passes over are computed, those behind
/// the limit are not.
pub(super) fn project_behind(rel: &mut Rel, exprs: Vec<BoundExpr>) {
    let below = match rel {
        Rel::Limit { input, offset: Some(_), with_ties: false, .. } => &mut **input,
        rel => rel,
    };
    let input = Box::new(std::mem::replace(below, Rel::Unit));
    *below = Rel::Project { input, exprs };
}

/// Lets an expression read other columns of its row.
fn replace_columns(expr: &mut BoundExpr, place: &mut dyn FnMut(u16, Type) -> u16) {
    visit_expr_mut(expr, 0, &mut |part, nesting| {
        let ty = part.ty;
        if let ExprKind::Column { depth, index } = &mut part.kind
            && *depth == nesting
        {
            *index = place(*index, ty);
        }
        true
    });
}
