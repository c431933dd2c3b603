//! Subscripts of jsonb (jsonbsubs.c): keys and numbers of elements lead into a value as a path does.

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CastContext, ResolvedFunction, lookup_functions};
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::Subscript as WrittenSubscript;

use crate::bind::binder::{BindEnv, Binder};
use crate::bind::level::{Level, LevelKind};
use crate::bound::{BoundExpr, ExprKind, Subscript};

/// A value of jsonb with a part assigned, for assignments to variables: the steps are of any type
/// that can be one.
pub fn assign_json_part(
    base: BoundExpr,
    steps: Vec<BoundExpr>,
    value: BoundExpr,
    env: &mut BindEnv<'_>,
) -> Result<BoundExpr> {
    let mut binder = Binder::new(env);
    binder.levels.push(Level::new(LevelKind::Plain, Vec::new()));
    let steps = steps.into_iter().map(|step| binder.json_step(step)).collect::<Result<_>>()?;
    json_assigned(base, steps, value)
}

/// The part of a value that steps lead to; the value itself where there are none.
pub(super) fn json_element(value: BoundExpr, steps: Vec<BoundExpr>) -> Result<BoundExpr> {
    if steps.is_empty() {
        return Ok(value);
    }
    let mut args = vec![value];
    args.extend(steps);
    call("archipel_json_element", args)
}

/// A value with the part that steps lead to replaced.
pub(crate) fn json_assigned(base: BoundExpr, steps: Vec<BoundExpr>, value: BoundExpr) -> Result<BoundExpr> {
    let mut args = vec![base, value];
    args.extend(steps);
    call("archipel_json_assign", args)
}

fn call(name: &str, args: Vec<BoundExpr>) -> Result<BoundExpr> {
    let function =
        lookup_functions(name).first().ok_or_else(|| SqlError::internal("jsonb has no subscripts"))?;
    let function = ResolvedFunction { function, result: Type::of(Oid::JSONB) };
    Ok(BoundExpr::new(ExprKind::Call { function, args }, Type::of(Oid::JSONB)))
}

impl Binder<'_, '_> {
    pub(crate) fn json_subscript(&mut self, subscript: &WrittenSubscript) -> Result<BoundExpr> {
        let index = match subscript {
            WrittenSubscript::Index { index } => index,
            WrittenSubscript::Slice { lower_bound, upper_bound, .. } => {
                let message = "jsonb subscript does not support slices";
                let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message);
                return Err(match upper_bound.as_ref().or(lower_bound.as_ref()) {
                    Some(bound) => error.at(self.start(bound)),
                    // Without bounds there is nothing to point at.
                    None => error.placeless(),
                });
            }
        };
        let position = self.start(index);
        let bound = self.expr(index)?;
        self.json_step(bound).map_err(|error| error.at(position))
    }

    /// As [`Self::json_subscript`], of what is bound.
    pub(crate) fn bound_json_subscript(&mut self, subscript: &Subscript) -> Result<BoundExpr> {
        match subscript {
            Subscript::Index(index) => self.json_step(index.clone()),
            Subscript::Slice { .. } => {
                let message = "jsonb subscript does not support slices";
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
            }
        }
    }

    /// A subscript as an integer or a text: it must be one of them by an implicit cast.
    fn json_step(&mut self, step: BoundExpr) -> Result<BoundExpr> {
        let given = step.ty;
        if given.oid == Oid::UNKNOWN {
            return self.coerce_or_fail(step, Type::TEXT, CastContext::Implicit);
        }
        let number = self.coerce(step.clone(), Type::INT4, CastContext::Implicit)?;
        let hint = match (number, self.coerce(step, Type::TEXT, CastContext::Implicit)?) {
            (Some(step), None) | (None, Some(step)) => return Ok(step),
            (Some(_), Some(_)) => "jsonb subscript must be coercible to only one type, integer or text.",
            (None, None) => "jsonb subscript must be coercible to either integer or text.",
        };
        let message = format!("subscript type {} is not supported", self.type_name(given.oid));
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).with_hint(hint))
    }
}
