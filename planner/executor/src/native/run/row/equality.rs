//! The `=` that keys are compared with.

use archipel_sql::cast;
use archipel_sql::cast::CastPath;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{CastContext, ResolvedFunction, lookup_operators};
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};

use crate::bound::{BoundExpr, ExprKind};

/// A value as one of a wider type, by its implicit cast.
pub(crate) fn widened(value: BoundExpr, to: Type) -> Option<BoundExpr> {
    let ty = Type::of(to.oid);
    match cast::find(value.ty.oid, to.oid, CastContext::Implicit)? {
        CastPath::Relabel => Some(BoundExpr::new(ExprKind::Relabel(Box::new(value)), ty)),
        CastPath::Function(function) if function.args.len() == 1 => {
            let relabels = cast::relabels(function.result, to.oid);
            let result = if relabels { Type::of(function.result) } else { ty };
            let function = ResolvedFunction { function, result };
            let call = BoundExpr::new(ExprKind::Call { function, args: vec![value] }, result);
            Some(if relabels { BoundExpr::new(ExprKind::Relabel(Box::new(call)), ty) } else { call })
        }
        _ => None,
    }
}

/// The `=` over two types, or over the text they both are.
pub fn equality(left: Oid, right: Oid) -> Result<ResolvedFunction> {
    let plain = |oid: Oid| match oid {
        Oid::VARCHAR | Oid::NAME => Oid::TEXT,
        Oid::CIDR => Oid::INET,
        other if other.names_object() => Oid::OID,
        other if left != right => other,
        other if element_of(other).is_some() => Oid::ANYARRAY,
        other => other.polymorphic().unwrap_or(other),
    };
    let (left, right) = (plain(left), plain(right));
    let operators = lookup_operators("=");
    let find = |l: Oid, r: Oid| operators.iter().find(|op| op.left == Some(l) && op.right == r);
    find(left, right).map(|op| ResolvedFunction { function: op.function, result: Type::BOOL }).ok_or_else(
        || SqlError::unsupported(format_args!("comparing types {left} and {right} for a constraint")),
    )
}
