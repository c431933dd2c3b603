//! What PL/pgSQL asks of the binder beyond SQL's own rules: its assignment casts, and the
//! comparison of its CASE statement.

use archipel_sql::error::Result;
use archipel_sql::function::CastContext;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::Expr;

use super::binder::{BindEnv, Binder};
use super::clause::Clause;
use super::level::{Level, LevelKind};
use crate::bind::expression::row_value::is_variable_row;
use crate::bound::{BoundExpr, ExprKind};

/// Converts a value as PL/pgSQL assigns it to a variable (COERCION_PLPGSQL): by the assignment
/// cast, else through the text form. The target may be a domain.
pub fn coerce_plpgsql(expr: BoundExpr, target: Type, env: &mut BindEnv<'_>) -> Result<BoundExpr> {
    let mut binder = Binder::new(env);
    binder.levels.push(Level::new(LevelKind::Plain, Vec::new()));
    let (target, domain) = binder.plain_type(target);
    let value = convert(&mut binder, expr, target)?;
    binder.coerce_domain(value, domain)
}

fn convert(binder: &mut Binder<'_, '_>, expr: BoundExpr, target: Type) -> Result<BoundExpr> {
    // A record whose fields are not known becomes something else through its text alone.
    let is_unknown =
        expr.ty.oid == Oid::RECORD && (!matches!(expr.kind, ExprKind::Row(..)) || is_variable_row(&expr));
    if (!is_unknown || target.oid == Oid::RECORD)
        && let Some(expr) = binder.coerce(expr.clone(), target, CastContext::Assignment)?
    {
        return Ok(expr);
    }
    let text = BoundExpr::new(ExprKind::ConvertIo(Box::new(expr)), Type::of(target.oid));
    let text = binder.guarded_row(text)?;
    binder.coerce_or_fail(text, target, CastContext::Assignment)
}

/// `left = right`, for the arms of a CASE statement.
pub fn bind_equality(left: BoundExpr, right: &Expr, env: &mut BindEnv<'_>) -> Result<BoundExpr> {
    let mut binder = Binder::new(env);
    binder.levels.push(Level::new(LevelKind::Plain, Vec::new()));
    let right = binder.clause_expr(right, Clause::Expression)?;
    binder.compare_values(left, "=", right)
}
