//! Walks over the bound tree that keep count of nesting.
//!
//! A visitor sees every expression before its children, together with the number of nestings
//! (subqueries, right sides of lateral joins) entered since the walk began: a column whose
//! depth equals the nesting reads the row the walk began at, a larger depth reads further out.
//! The visitor answers whether to go into the children.

use archipel_sql::datum::Datum;
use archipel_sql::function::Volatility;

use crate::bound::*;

macro_rules! visitors {
    ($expr:ident, $rel:ident, $statement:ident, $children:ident, $sort:ident, $accumulator:ident, $expressions:ident, [$($mutability:tt)*], $iter:ident, $as_option:ident) => {
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
            match &$($mutability)* expr.kind {
                ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Variable(_) | ExprKind::Column { .. } => {}
                ExprKind::Call { args: list, .. }
                | ExprKind::Routine { args: list, .. }
                | ExprKind::And(list)
                | ExprKind::Or(list)
                | ExprKind::Coalesce(list)
                | ExprKind::Extreme { args: list, .. }
                | ExprKind::Array { items: list, .. }
                | ExprKind::Row(list, _) => {
                    for item in list.$iter() {
                        $expr(item, nesting, visit);
                    }
                }
                ExprKind::Not(inner)
                | ExprKind::IsNull(inner)
                | ExprKind::IsNotNull(inner)
                | ExprKind::IsBool { expr: inner, .. }
                | ExprKind::Field { record: inner, .. }
                | ExprKind::Relabel(inner)
                | ExprKind::ConvertIo(inner)
                // The element expression reads nothing but the element, what fields become but the
                // record, conditions but the value.
                | ExprKind::ArrayConvert { array: inner, .. }
                | ExprKind::RowConvert { record: inner, .. }
                | ExprKind::Domain { expr: inner, .. } => $expr(inner, nesting, visit),
                ExprKind::IsDistinctFrom { left, right, .. }
                | ExprKind::NullIf { left, right, .. }
                | ExprKind::ArrayOp { left, array: right, .. } => {
                    $expr(left, nesting, visit);
                    $expr(right, nesting, visit);
                }
                ExprKind::Case { arms, otherwise } => {
                    for (condition, result) in arms.$iter() {
                        $expr(condition, nesting, visit);
                        $expr(result, nesting, visit);
                    }
                    if let Some(otherwise) = otherwise {
                        $expr(otherwise, nesting, visit);
                    }
                }
                ExprKind::InList { left, list, .. } => {
                    $expr(left, nesting, visit);
                    for item in list.$iter() {
                        $expr(item, nesting, visit);
                    }
                }
                ExprKind::Subscript { array, subscripts } => {
                    $expr(array, nesting, visit);
                    for subscript in subscripts.$iter() {
                        match subscript {
                            Subscript::Index(index) => $expr(index, nesting, visit),
                            Subscript::Slice { lower, upper } => {
                                for bound in [lower, upper].into_iter().filter_map(|bound| bound.$as_option()) {
                                    $expr(bound, nesting, visit);
                                }
                            }
                        }
                    }
                }
                ExprKind::Subquery(subquery) => {
                    match &$($mutability)* subquery.kind {
                        SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } => {
                            for item in left.$iter() {
                                $expr(item, nesting, visit);
                            }
                        }
                        SubqueryKind::Scalar | SubqueryKind::Exists | SubqueryKind::Array { .. } => {}
                    }
                    $rel(&$($mutability)* subquery.rel, nesting + 1, visit);
                }
            }
        }

        fn $sort(
            keys: &$($mutability)* [SortKey],
            nesting: u16,
            visit: &mut dyn FnMut(&$($mutability)* BoundExpr, u16) -> bool,
        ) {
            for key in keys.$iter() {
                $expr(&$($mutability)* key.expr, nesting, visit);
            }
        }

        /// Visits what a defined aggregate calls: over a row of its own, one nesting further in.
        fn $accumulator(
            function: &$($mutability)* Accumulator,
            nesting: u16,
            visit: &mut dyn FnMut(&$($mutability)* BoundExpr, u16) -> bool,
        ) {
            if let Accumulator::Defined(defined) = function {
                for expr in defined.$expressions() {
                    $expr(expr, nesting + 1, visit);
                }
            }
        }

        /// Visits every expression of a relational operator and of its inputs.
        pub fn $rel(
            rel: &$($mutability)* Rel,
            nesting: u16,
            visit: &mut dyn FnMut(&$($mutability)* BoundExpr, u16) -> bool,
        ) {
            match rel {
                Rel::Unit | Rel::Scan { .. } | Rel::Family { .. } | Rel::CteScan { .. } => {}
                Rel::Values { rows, .. } => {
                    for expr in rows.$iter().flatten() {
                        $expr(expr, nesting, visit);
                    }
                }
                Rel::Function { call, .. } => {
                    let list = match call {
                        SetCall::Builtin { args, .. } | SetCall::Routine { args, .. } => args,
                        SetCall::Scalar(expr) => return $expr(expr, nesting, visit),
                    };
                    for expr in list.$iter() {
                        $expr(expr, nesting, visit);
                    }
                }
                Rel::Explained { statement, .. } => $statement(statement, nesting, visit),
                Rel::Filter { input, predicate } => {
                    $rel(input, nesting, visit);
                    $expr(predicate, nesting, visit);
                }
                Rel::Project { input, exprs } => {
                    $rel(input, nesting, visit);
                    for expr in exprs.$iter() {
                        $expr(expr, nesting, visit);
                    }
                }
                Rel::ProjectSet { input, items } => {
                    $rel(input, nesting, visit);
                    for item in items.$iter() {
                        match item {
                            SetItem::Scalar(expr) => $expr(expr, nesting, visit),
                            SetItem::Set { call: SetCall::Scalar(expr), .. } => $expr(expr, nesting, visit),
                            SetItem::Set { call: SetCall::Builtin { args, .. } | SetCall::Routine { args, .. }, .. } => {
                                for expr in args.$iter() {
                                    $expr(expr, nesting, visit);
                                }
                            }
                        }
                    }
                }
                Rel::Join { left, right, on, lateral, .. } => {
                    $rel(left, nesting, visit);
                    $rel(right, nesting + u16::from(*lateral), visit);
                    if let Some(on) = on {
                        $expr(on, nesting, visit);
                    }
                }
                Rel::Aggregate { input, group_by, aggregates, .. } => {
                    $rel(input, nesting, visit);
                    for expr in group_by.$iter() {
                        $expr(expr, nesting, visit);
                    }
                    for call in aggregates.$iter() {
                        $accumulator(&$($mutability)* call.function, nesting, visit);
                        for expr in call.args.$iter() {
                            $expr(expr, nesting, visit);
                        }
                        if let Some(filter) = call.filter.$as_option() {
                            $expr(filter, nesting, visit);
                        }
                        $sort(&$($mutability)* call.order_by, nesting, visit);
                    }
                }
                Rel::Window { input, calls } => {
                    $rel(input, nesting, visit);
                    for call in calls.$iter() {
                        if let WindowFunction::Aggregate(function) = &$($mutability)* call.function {
                            $accumulator(function, nesting, visit);
                        }
                        for expr in call.args.$iter() {
                            $expr(expr, nesting, visit);
                        }
                        for expr in call.partition_by.$iter() {
                            $expr(expr, nesting, visit);
                        }
                        $sort(&$($mutability)* call.order_by, nesting, visit);
                        for bound in [&$($mutability)* call.frame.start, &$($mutability)* call.frame.end] {
                            if let FrameBound::Preceding(expr) | FrameBound::Following(expr) = bound {
                                $expr(expr, nesting, visit);
                            }
                        }
                        if let Some(filter) = call.filter.$as_option() {
                            $expr(filter, nesting, visit);
                        }
                    }
                }
                Rel::Sort { input, keys } => {
                    $rel(input, nesting, visit);
                    $sort(keys, nesting, visit);
                }
                Rel::Distinct { input, on } => {
                    $rel(input, nesting, visit);
                    for expr in on.$iter().flatten() {
                        $expr(expr, nesting, visit);
                    }
                }
                Rel::Lock { input } => $rel(input, nesting, visit),
                Rel::Limit { input, limit, offset, .. } => {
                    $rel(input, nesting, visit);
                    for expr in [limit, offset].into_iter().filter_map(|bound| bound.$as_option()) {
                        $expr(expr, nesting, visit);
                    }
                }
                Rel::SetOp { left, right, .. } => {
                    $rel(left, nesting, visit);
                    $rel(right, nesting, visit);
                }
                Rel::With { ctes, body } => {
                    for cte in ctes.$iter() {
                        match &$($mutability)* cte.body {
                            CteBody::Query(rel) => $rel(rel, nesting, visit),
                            CteBody::Recursive { initial, recursive, .. } => {
                                $rel(initial, nesting, visit);
                                $rel(recursive, nesting, visit);
                            }
                            CteBody::Modify(statement) => $statement(statement, nesting, visit),
                        }
                    }
                    $rel(body, nesting, visit);
                }
            }
        }

        /// Visits every expression of a statement.
        pub fn $statement(
            statement: &$($mutability)* BoundStatement,
            nesting: u16,
            visit: &mut dyn FnMut(&$($mutability)* BoundExpr, u16) -> bool,
        ) {
            match statement {
                BoundStatement::Query(query) => $rel(&$($mutability)* query.rel, nesting, visit),
                BoundStatement::Insert(insert) => {
                    $rel(&$($mutability)* insert.source, nesting, visit);
                    for check in insert.checks.$iter() {
                        $expr(&$($mutability)* check.expr, nesting, visit);
                    }
                    if let Some(OnConflict { update: Some((set, filter)), .. }) = insert.on_conflict.$as_option() {
                        for (_, value) in set.$iter() {
                            $expr(value, nesting, visit);
                        }
                        if let Some(filter) = filter {
                            $expr(filter, nesting, visit);
                        }
                    }
                    for expr in insert.returning.$iter().flat_map(|returning| returning.exprs.$iter()) {
                        $expr(expr, nesting, visit);
                    }
                }
                BoundStatement::Update(update) => {
                    if let Some(from) = update.from.$as_option() {
                        $rel(from, nesting, visit);
                    }
                    for expr in update.filter.$iter() {
                        $expr(expr, nesting, visit);
                    }
                    for (_, value) in update.set.$iter() {
                        $expr(value, nesting, visit);
                    }
                    for check in update.checks.$iter() {
                        $expr(&$($mutability)* check.expr, nesting, visit);
                    }
                    for expr in update.returning.$iter().flat_map(|returning| returning.exprs.$iter()) {
                        $expr(expr, nesting, visit);
                    }
                }
                BoundStatement::Delete(delete) => {
                    if let Some(using) = delete.using.$as_option() {
                        $rel(using, nesting, visit);
                    }
                    for expr in delete.filter.$iter() {
                        $expr(expr, nesting, visit);
                    }
                    for expr in delete.returning.$iter().flat_map(|returning| returning.exprs.$iter()) {
                        $expr(expr, nesting, visit);
                    }
                }
                BoundStatement::Merge(merge) => {
                    if let CteBody::Query(rel) = &$($mutability)* merge.source.body {
                        $rel(rel, nesting, visit);
                    }
                    for action in merge.actions.$iter() {
                        $statement(action, nesting, visit);
                    }
                }
                BoundStatement::Call(call) => {
                    for expr in call.args.$iter() {
                        $expr(expr, nesting, visit);
                    }
                }
                BoundStatement::With { ctes, statement } => {
                    for cte in ctes.$iter() {
                        match &$($mutability)* cte.body {
                            CteBody::Query(rel) => $rel(rel, nesting, visit),
                            CteBody::Recursive { initial, recursive, .. } => {
                                $rel(initial, nesting, visit);
                                $rel(recursive, nesting, visit);
                            }
                            CteBody::Modify(statement) => $statement(statement, nesting, visit),
                        }
                    }
                    $statement(statement, nesting, visit);
                }
            }
        }
    };
}

visitors!(
    visit_expr,
    visit_rel,
    visit_statement,
    visit_children,
    visit_sort,
    visit_accumulator,
    expressions,
    [],
    iter,
    as_ref
);
visitors!(visit_expr_mut, visit_rel_mut, visit_statement_mut, visit_children_mut, visit_sort_mut, visit_accumulator_mut, expressions_mut, [mut], iter_mut, as_mut);

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
