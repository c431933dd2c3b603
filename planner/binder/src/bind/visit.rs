//! Walks over the bound tree that keep count of nesting.
//!
//! A visitor sees every expression before its children, together with the number of nestings
//! (subqueries, right sides of lateral joins) entered since the walk began: a column whose
//! depth equals the nesting reads the row the walk began at, a larger depth reads further out.
//! The visitor answers whether to go into the children. What conversions and domains evaluate for a
//! value at hand is not visited. The children themselves are [`BoundExpr::for_each_child`]'s to know.

use archipel_sql::datum::Datum;
use archipel_sql::function::Volatility;

use crate::bound::*;

macro_rules! visitors {
    ($expr:ident, $children:ident, $rel:ident, $statement:ident, $child_of:ident, $child:ident, $each:ident, [$($mutability:tt)*]) => {
        /// Visits an expression and everything in it.
        pub fn $expr(
            expr: &$($mutability)* BoundExpr,
            nesting: u16,
            visit: &mut dyn FnMut(&$($mutability)* BoundExpr, u16) -> bool,
        ) {
            if visit(expr, nesting) {
                $children(expr, nesting, visit);
            }
        }

        /// Visits the parts of an expression, not the expression itself.
        pub fn $children(
            expr: &$($mutability)* BoundExpr,
            nesting: u16,
            visit: &mut dyn FnMut(&$($mutability)* BoundExpr, u16) -> bool,
        ) {
            expr.$each(|child, scope| $child_of(child, scope, nesting, visit));
        }

        /// Visits every expression of a relational operator and of its inputs.
        pub fn $rel(
            rel: &$($mutability)* Rel,
            nesting: u16,
            visit: &mut dyn FnMut(&$($mutability)* BoundExpr, u16) -> bool,
        ) {
            rel.$each(|child, scope| $child_of(child, scope, nesting, visit));
        }

        /// Visits every expression of a statement.
        pub fn $statement(
            statement: &$($mutability)* BoundStatement,
            nesting: u16,
            visit: &mut dyn FnMut(&$($mutability)* BoundExpr, u16) -> bool,
        ) {
            statement.$each(|child, scope| $child_of(child, scope, nesting, visit));
        }

        /// Visits a part of what is nested so deep.
        fn $child_of(
            child: $child<'_>,
            scope: ChildScope,
            nesting: u16,
            visit: &mut dyn FnMut(&$($mutability)* BoundExpr, u16) -> bool,
        ) {
            // What is made of a value at hand reads nothing but that.
            if scope.row == ChildRow::Value {
                return;
            }
            let nesting = nesting + scope.nesting();
            match child {
                $child::Expr(expr) => $expr(expr, nesting, visit),
                $child::Rel(rel) => $rel(rel, nesting, visit),
                $child::Statement(statement) => $statement(statement, nesting, visit),
            }
        }
    };
}

visitors!(
    visit_expr,
    visit_children,
    visit_rel,
    visit_statement,
    visit_child,
    BoundChild,
    for_each_child,
    []
);
visitors!(
    visit_expr_mut,
    visit_children_mut,
    visit_rel_mut,
    visit_statement_mut,
    visit_child_mut,
    BoundChildMut,
    for_each_child_mut,
    [mut]
);

/// Moves the columns at depth `nesting` by `offset` places: the row they read was appended to
/// one of that width.
pub fn shift_columns(expr: &mut BoundExpr, offset: u16) {
    if offset == 0 {
        return;
    }
    visit_expr_mut(expr, 0, &mut |expr, nesting| {
        if let ExprKind::Column { depth, index } = &mut expr.kind
            && *depth == nesting
        {
            *index += offset;
        }
        true
    });
}

/// Moves an expression `levels` nestings further in.
pub fn raise_depth(expr: &mut BoundExpr, levels: u16) {
    if levels == 0 {
        return;
    }
    visit_expr_mut(expr, 0, &mut |expr, nesting| {
        if let ExprKind::Column { depth, .. } = &mut expr.kind
            && *depth >= nesting
        {
            *depth += levels;
        }
        true
    });
}

/// Moves an expression `levels` nestings out. It must not read the rows it leaves.
pub fn lower_depth(expr: &mut BoundExpr, levels: u16) {
    if levels == 0 {
        return;
    }
    visit_expr_mut(expr, 0, &mut |expr, nesting| {
        if let ExprKind::Column { depth, .. } = &mut expr.kind
            && *depth >= nesting + levels
        {
            *depth -= levels;
        }
        true
    });
}

/// Takes away the nesting just outside of `rel`, which nothing in it reads.
pub fn remove_outer_nesting(rel: &mut Rel) {
    visit_rel_mut(rel, 0, &mut |expr, nesting| {
        if let ExprKind::Column { depth, .. } = &mut expr.kind
            && *depth > nesting
        {
            *depth -= 1;
        }
        true
    });
}

/// Puts another nesting just outside of `rel`, which nothing in it reads.
pub fn add_outer_nesting(rel: &mut Rel) {
    visit_rel_mut(rel, 0, &mut |expr, nesting| {
        if let ExprKind::Column { depth, .. } = &mut expr.kind
            && *depth > nesting
        {
            *depth += 1;
        }
        true
    });
}

/// Whether a call has effects, or may answer differently each time.
pub fn is_volatile_call(part: &BoundExpr) -> bool {
    match &part.kind {
        ExprKind::Routine { routine, .. } => routine.volatility == 'v',
        ExprKind::Call { function, .. } => function.function.volatility == Volatility::Volatile,
        _ => false,
    }
}

/// Whether an expression makes such a call.
pub fn is_volatile(expr: &BoundExpr) -> bool {
    let mut volatile = false;
    visit_expr(expr, 0, &mut |part, _| {
        volatile |= is_volatile_call(part);
        !volatile
    });
    volatile
}

/// What a condition does for each row that it is asked of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    Operators,
    Routine,
    Query,
}

/// The most that a condition does. PostgreSQL asks conditions that all have to hold in this order, and in the
/// one they are written in among those that do alike: who rules a row out spares the others it, and their
/// errors. A query that reads no row around it runs once.
pub fn effort(expr: &BoundExpr) -> Effort {
    let mut most = Effort::Operators;
    visit_expr(expr, 0, &mut |part, _| {
        match &part.kind {
            ExprKind::Subquery(subquery) => {
                if subquery.correlated {
                    most = Effort::Query;
                }
                return false;
            }
            ExprKind::Routine { .. } => most = most.max(Effort::Routine),
            _ => {}
        }
        true
    });
    most
}

/// Whether a condition is asked before whatever is written behind it.
pub(super) fn is_asked_at_once(condition: &BoundExpr) -> bool {
    effort(condition) == Effort::Operators && !is_volatile(condition)
}

/// Whether a relation makes such a call.
pub fn calls_volatile(rel: &Rel) -> bool {
    let mut volatile = false;
    visit_rel(rel, 0, &mut |part, _| {
        volatile |= is_volatile_call(part);
        !volatile
    });
    volatile
}

/// Whether a relation reads rows outside of itself.
pub fn is_correlated(rel: &Rel) -> bool {
    let mut found = false;
    visit_rel(rel, 0, &mut |expr, nesting| {
        if let ExprKind::Column { depth, .. } = &expr.kind {
            found |= *depth > nesting;
        }
        !found
    });
    found
}

/// The nearest row an expression reads, as a depth from where it stands; `None` if it reads none.
pub fn nearest_depth(expr: &BoundExpr) -> Option<u16> {
    let mut nearest: Option<u16> = None;
    visit_expr(expr, 0, &mut |expr, nesting| {
        if let ExprKind::Column { depth, .. } = &expr.kind
            && *depth >= nesting
        {
            let outer = *depth - nesting;
            nearest = Some(nearest.map_or(outer, |known| known.min(outer)));
        }
        true
    });
    nearest
}

/// Structural equality, which PostgreSQL uses to match expressions with GROUP BY, ORDER BY and
/// DISTINCT. The derived debug form spells out all of a node, so equal text is an equal tree.
pub fn same_expr(left: &BoundExpr, right: &BoundExpr) -> bool {
    if left.ty != right.ty || std::mem::discriminant(&left.kind) != std::mem::discriminant(&right.kind) {
        return false;
    }
    match (&left.kind, &right.kind) {
        (ExprKind::Column { depth: a, index: b }, ExprKind::Column { depth: c, index: d }) => {
            a == c && b == d
        }
        // Spelling them out costs much more than finding a difference.
        _ => (left == right || may_hold_nan(left)) && format!("{left:?}") == format!("{right:?}"),
    }
}

/// Whether an expression may hold a constant that is not equal to itself.
pub fn may_hold_nan(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit_expr(expr, 0, &mut |part, _| {
        found |= match &part.kind {
            ExprKind::Const(value) => {
                matches!(value, Datum::Float4(_) | Datum::Float8(_) | Datum::Array(_) | Datum::Record(_))
            }
            _ => false,
        };
        !found
    });
    found
}
