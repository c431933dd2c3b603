//! A routine's accesses, over the arguments of one call.

use std::sync::Arc;

use super::{Access, RouteKey};
use crate::bound::{BoundExpr, ExprKind, Subscript};

/// A routine's access over its parameters, as one over the arguments of one call.
pub fn access_over_arguments(access: &Access, args: &[Option<BoundExpr>], routine: &str) -> Access {
    let mut own = Access { key: over_arguments(&access.key, args, routine), ..access.clone() };
    if let Some((among, _)) = &mut own.among {
        *among = Arc::new(among.over(&mut |value| substitute(value, args)));
    }
    own
}

/// A routine's key over its parameters, as a key over the arguments of one call. `None` among
/// the arguments is one that is not known beforehand.
fn over_arguments(key: &RouteKey, args: &[Option<BoundExpr>], routine: &str) -> RouteKey {
    let replace = |expr: &BoundExpr| substitute(expr, args);
    let unknown = || RouteKey::Unknown(format!("computed inside {routine}"));
    match key {
        RouteKey::Point(expr) => replace(expr).map_or_else(unknown, RouteKey::Point),
        RouteKey::EachOf(expr) => replace(expr).map_or_else(unknown, RouteKey::EachOf),
        RouteKey::List(exprs) => {
            exprs.iter().map(replace).collect::<Option<Vec<_>>>().map_or_else(unknown, RouteKey::List)
        }
        RouteKey::Each { from, to } => match (replace(from), replace(to)) {
            (Some(from), Some(to)) => RouteKey::Each { from, to },
            _ => unknown(),
        },
        RouteKey::Range { low, high } => {
            let side = |bound: &Option<(BoundExpr, bool)>| match bound {
                None => Some(None),
                Some((expr, inclusive)) => replace(expr).map(|expr| Some((expr, *inclusive))),
            };
            match (side(low), side(high)) {
                (Some(low), Some(high)) => RouteKey::Range { low, high },
                _ => unknown(),
            }
        }
        RouteKey::All => RouteKey::All,
        RouteKey::Unknown(reason) => RouteKey::Unknown(reason.clone()),
    }
}

fn substitute(expr: &BoundExpr, args: &[Option<BoundExpr>]) -> Option<BoundExpr> {
    let all =
        |exprs: &[BoundExpr]| exprs.iter().map(|expr| substitute(expr, args)).collect::<Option<Vec<_>>>();
    let one = |expr: &BoundExpr| substitute(expr, args).map(Box::new);
    let kind = match &expr.kind {
        ExprKind::Const(_) => return Some(expr.clone()),
        ExprKind::Param(index) => return args.get(usize::from(*index))?.clone(),
        ExprKind::Call { function, args: inner } => ExprKind::Call { function: *function, args: all(inner)? },
        ExprKind::Relabel(inner) | ExprKind::Domain { expr: inner, .. } => ExprKind::Relabel(one(inner)?),
        ExprKind::ConvertIo(inner) => ExprKind::ConvertIo(one(inner)?),
        ExprKind::Coalesce(inner) => ExprKind::Coalesce(all(inner)?),
        ExprKind::Array { element, items } => ExprKind::Array { element: *element, items: all(items)? },
        ExprKind::Subscript { array, subscripts } => ExprKind::Subscript {
            array: one(array)?,
            subscripts: subscripts
                .iter()
                .map(|subscript| match subscript {
                    Subscript::Index(index) => substitute(index, args).map(Subscript::Index),
                    Subscript::Slice { .. } => None,
                })
                .collect::<Option<Vec<_>>>()?,
        },
        ExprKind::Field { record, index } => ExprKind::Field { record: one(record)?, index: *index },
        _ => return None,
    };
    Some(BoundExpr::new(kind, expr.ty))
}
