//! The pseudo-types that stand for others: what they resolve to, and literals of no type for them.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::CastContext;
use archipel_sql::type_table::{TypeNames, array_of, element_of};
use archipel_sql::types::{Oid, Type};

use super::coerce::{ANYCOMPATIBLENONARRAY, can_coerce, common_type, is_polymorphic};
use crate::bind::binder::Binder;
use crate::bound::{BoundExpr, ExprKind};

impl Binder<'_, '_> {
    /// A literal of no type where a type that stands for others is wanted.
    pub(super) fn coerce_unknown_polymorphic(&self, expr: BoundExpr, to: Oid) -> Result<BoundExpr> {
        let is_array = matches!(to, Oid::ANYARRAY | Oid::ANYCOMPATIBLEARRAY);
        match &expr.kind {
            // NULL is not read: it is of the type, whose number a client sees.
            ExprKind::Const(Datum::Null) if is_array => Ok(BoundExpr::constant(Datum::Null, Type::of(to))),
            // An array of no type cannot be read (anyarray_in); anything else stays a text.
            ExprKind::Const(Datum::Text(text)) if is_array => {
                let shown = self.type_name(to);
                let message = format!("cannot accept a value of type {shown}");
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                Err(error.at(self.literal_position(text)))
            }
            _ => Ok(expr),
        }
    }
}

/// Whether a declaration belongs to the types that one element type decides.
fn is_of_element(declared: Oid) -> bool {
    matches!(declared, Oid::ANYELEMENT | Oid::ANYARRAY | Oid::ANYNONARRAY | Oid::ANYENUM)
}

/// Resolves `any…` declarations against actual argument types (enforce_generic_type_consistency):
/// the concrete argument types and the concrete result type.
pub(crate) fn resolve_polymorphic(
    declared: &[Oid],
    actual: &[Type],
    result: Oid,
    names: &dyn TypeNames,
) -> Result<(Vec<Oid>, Oid)> {
    if !declared.iter().any(|&oid| is_polymorphic(oid)) {
        return Ok((declared.to_vec(), result));
    }
    let mismatch = |message: String| SqlError::new(SqlState::DATATYPE_MISMATCH, message);
    let versus = |one: Oid, other: Oid| format!("{} versus {}", names.type_name(one), names.type_name(other));
    let mut element: Option<Oid> = None;
    let mut array: Option<Oid> = None;
    let mut compatible: Vec<Type> = Vec::new();
    for (&wanted, ty) in declared.iter().zip(actual) {
        if ty.oid == Oid::UNKNOWN {
            continue;
        }
        match wanted {
            Oid::ANYELEMENT | Oid::ANYNONARRAY | Oid::ANYENUM => match element {
                Some(known) if known != ty.oid => {
                    return Err(mismatch("arguments declared \"anyelement\" are not all alike".to_owned())
                        .with_detail(versus(known, ty.oid)));
                }
                _ => element = Some(ty.oid),
            },
            Oid::ANYARRAY => match array {
                Some(known) if known != ty.oid => {
                    return Err(mismatch("arguments declared \"anyarray\" are not all alike".to_owned())
                        .with_detail(versus(known, ty.oid)));
                }
                _ => array = Some(ty.oid),
            },
            Oid::ANYCOMPATIBLE | ANYCOMPATIBLENONARRAY => compatible.push(Type::of(ty.oid)),
            Oid::ANYCOMPATIBLEARRAY => match element_of(ty.oid) {
                Some(element) => compatible.push(Type::of(element)),
                None => {
                    return Err(mismatch(format!(
                        "argument declared anycompatiblearray is not an array but type {}",
                        names.type_name(ty.oid)
                    )));
                }
            },
            _ => {}
        }
    }
    if array == Some(Oid::ANYARRAY) {
        // NULL::anyarray, of whose elements nothing is known.
        let family = declared.iter().filter(|&&oid| is_of_element(oid)).count();
        if family != 1 || is_of_element(result) {
            let message = "cannot determine element type of \"anyarray\" argument";
            return Err(mismatch(message.to_owned()).placeless());
        }
        element = Some(Oid::ANYELEMENT);
    } else if let Some(array) = array {
        let of = element_of(array).ok_or_else(|| {
            mismatch(format!(
                "argument declared anyarray is not an array but type {}",
                names.type_name(array)
            ))
        })?;
        match element {
            Some(known) if known != of => {
                return Err(mismatch(
                    "argument declared anyarray is not consistent with argument declared anyelement"
                        .to_owned(),
                )
                .with_detail(versus(array, known)));
            }
            _ => element = Some(of),
        }
    } else if let Some(element) = element {
        array = array_of(element);
    }
    let uses = |oids: &[Oid]| declared.iter().any(|oid| oids.contains(oid)) || oids.contains(&result);
    if (declared.iter().any(|&oid| is_of_element(oid)) || is_of_element(result)) && element.is_none() {
        let message = "could not determine polymorphic type because input has type unknown";
        return Err(mismatch(message.to_owned()).placeless());
    }
    let mut compatible_element = None;
    if uses(&[Oid::ANYCOMPATIBLE, Oid::ANYCOMPATIBLEARRAY, ANYCOMPATIBLENONARRAY]) {
        let common = common_type(&compatible, "anycompatible", names)?.oid;
        // Of one category is not yet of one type (verify_common_type).
        if compatible.iter().any(|ty| !can_coerce(ty.oid, common, CastContext::Implicit)) {
            let message = "arguments of anycompatible family cannot be cast to a common type";
            return Err(mismatch(message.to_owned()));
        }
        compatible_element = Some(common);
    }
    let concrete = |oid: Oid| -> Result<Oid> {
        let missing = || {
            mismatch(format!(
                "could not find array type for data type {}",
                element.map_or_else(String::new, |element| names.type_name(element))
            ))
        };
        Ok(match oid {
            Oid::ANYELEMENT | Oid::ANYNONARRAY | Oid::ANYENUM => element.ok_or_else(missing)?,
            Oid::ANYARRAY => array.ok_or_else(missing)?,
            Oid::ANYCOMPATIBLE | ANYCOMPATIBLENONARRAY => compatible_element.ok_or_else(missing)?,
            Oid::ANYCOMPATIBLEARRAY => compatible_element.and_then(array_of).ok_or_else(missing)?,
            other => other,
        })
    };
    let args = declared.iter().map(|&oid| concrete(oid)).collect::<Result<Vec<_>>>()?;
    Ok((args, concrete(result)?))
}
