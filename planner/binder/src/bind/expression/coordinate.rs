//! Subscripts of values of a fixed length, which are arrays to them: of points, of two numbers, and of
//! names, of bytes.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{ResolvedFunction, lookup_functions};
use archipel_sql::types::{Oid, Type};

use crate::bound::{BoundExpr, ExprKind, Subscript};

/// `point[n]`: a coordinate. More subscripts than one lead nowhere.
pub(super) fn coordinate(point: BoundExpr, subscripts: Vec<Subscript>) -> Result<BoundExpr> {
    let ty = Type::of(Oid::FLOAT8);
    match index(subscripts)? {
        Some(index) => call("archipel_point_coordinate", vec![point, index], ty),
        None => Ok(BoundExpr::constant(Datum::Null, ty)),
    }
}

/// `name[n]`: a byte, counted from zero.
pub(super) fn name_byte(name: BoundExpr, subscripts: Vec<Subscript>) -> Result<BoundExpr> {
    let ty = Type::of(Oid::CHAR);
    match index(subscripts)? {
        Some(index) => call("archipel_name_byte", vec![name, index], ty),
        None => Ok(BoundExpr::constant(Datum::Null, ty)),
    }
}

/// A point with the coordinate that a subscript means replaced by a double.
pub(crate) fn with_coordinate(
    point: BoundExpr,
    subscripts: Vec<Subscript>,
    value: BoundExpr,
) -> Result<BoundExpr> {
    let Some(index) = index(subscripts)? else {
        return Err(
            SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts").placeless()
        );
    };
    call("archipel_point_assign", vec![point, value, index], Type::of(Oid::POINT))
}

/// The one subscript, if it is one. PostgreSQL refuses a slice when it is evaluated: nothing is pointed at.
fn index(mut subscripts: Vec<Subscript>) -> Result<Option<BoundExpr>> {
    if subscripts.iter().any(|subscript| matches!(subscript, Subscript::Slice { .. })) {
        let message = "slices of fixed-length arrays not implemented";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).placeless());
    }
    Ok(match (subscripts.pop(), subscripts.is_empty()) {
        (Some(Subscript::Index(index)), true) => Some(index),
        _ => None,
    })
}

fn call(name: &str, args: Vec<BoundExpr>, ty: Type) -> Result<BoundExpr> {
    let function = lookup_functions(name)
        .first()
        .ok_or_else(|| SqlError::internal("nothing answers these subscripts"))?;
    let function = ResolvedFunction { function, result: ty };
    Ok(BoundExpr::new(ExprKind::Call { function, args }, ty))
}
