//! Which casts exist beyond pg_cast's rows, and how each is done (the manual's chapter 10).

use std::sync::Arc;

use crate::datum::{Array, Datum};
use crate::error::{Result, SqlError, SqlState};
use crate::function::{self, CastContext, CastMethod, FunctionContext};
use crate::record::RecordDescriptor;
use crate::type_kind::Held;
use crate::type_table::{TypeNames, element_of, type_info};
use crate::types::{Oid, Type};

/// A way from one type to another.
#[derive(Clone, Copy, Debug)]
pub enum CastPath {
    /// The value stays; only its type changes (identity, varchar to text).
    Relabel,
    Function(&'static function::ScalarFunction),
    /// Text out, text in.
    InOut,
    /// Element by element, by the cast of the elements.
    Array {
        source: Oid,
        target: Oid,
    },
}

/// A value whose type changes while its bits stay: the number of an object is an integer with a sign,
/// a text that becomes `bpchar` is one whose blanks do not count, an array shows its elements as what it says
/// that they are, and a row of a named type says so itself where it becomes a `record`.
pub fn relabel(value: Datum, from: Oid, to: Oid) -> Datum {
    match value {
        Datum::Oid(number) if to == Oid::INT4 => Datum::Int4(number.0 as i32),
        Datum::Int4(number) if is_object(to) => Datum::Oid(Oid(number as u32)),
        Datum::Text(text) if to == Oid::BPCHAR => Datum::Bpchar(text),
        Datum::Record(record) if to == Oid::RECORD && from.held() == Some(Held::Fields) => {
            Datum::Record(record.or_described(|| Arc::new(RecordDescriptor::Named(from))))
        }
        Datum::Array(array) if to == Oid::OIDVECTOR && from != to => Datum::Array(as_vector(array)),
        Datum::Array(mut array) if from == Oid::CIDR_ARRAY && to == Oid::INET_ARRAY => {
            Arc::make_mut(&mut array).element = Oid::INET;
            Datum::Array(array)
        }
        value => value,
    }
}

/// `oidvectoreq` asks for the values alone, while arrays that begin elsewhere differ: so all of this type
/// begin where those do that are read. PostgreSQL's `ARRAY[…]::oidvector` begins at 1.
fn as_vector(mut array: Arc<Array>) -> Arc<Array> {
    if array.dimensions.iter().any(|dimension| dimension.lower_bound != 0) {
        for dimension in &mut Arc::make_mut(&mut array).dimensions {
            dimension.lower_bound = 0;
        }
    }
    array
}

/// Whether [`relabel`] makes another value of it.
pub fn relabels(from: Oid, to: Oid) -> bool {
    (from == Oid::INT4 && is_object(to))
        || (to == Oid::OIDVECTOR && from != to)
        || (from == Oid::CIDR_ARRAY && to == Oid::INET_ARRAY)
        || (to == Oid::INT4 && is_object(from))
        || (to == Oid::BPCHAR && from != Oid::BPCHAR)
        || (to == Oid::RECORD && from.held() == Some(Held::Fields))
}

/// `oid` itself, too.
fn is_object(oid: Oid) -> bool {
    oid == Oid::OID || oid.names_object()
}

/// Whether every string type reads and writes every other type through text.
fn is_string(oid: Oid) -> bool {
    type_info(oid).is_some_and(|info| info.category == b'S')
}

/// The cast from `source` to `target` that `context` allows, as find_coercion_pathway finds it.
/// The target's modifier is a second step: [`crate::typmod::coerce_typmod`].
pub fn find(source: Oid, target: Oid, context: CastContext) -> Option<CastPath> {
    // A cast applies where its own context is at least as free as what is asked.
    let allowed = |own: CastContext| own >= context;
    if source == target || source == Oid::UNKNOWN {
        return Some(if source == target { CastPath::Relabel } else { CastPath::InOut });
    }
    if let Some(cast) = function::cast(source, target) {
        if allowed(cast.context) {
            return Some(match cast.method {
                CastMethod::Function(function) => CastPath::Function(function),
                // Values of char(n) are held otherwise than texts.
                CastMethod::Binary if target == Oid::BPCHAR => CastPath::InOut,
                CastMethod::Binary => CastPath::Relabel,
                CastMethod::InOut => CastPath::InOut,
            });
        }
        return None;
    }
    if let (Some(from), Some(to)) = (element_of(source), element_of(target)) {
        return find(from, to, context).map(|path| match path {
            CastPath::Relabel => CastPath::Relabel,
            _ => CastPath::Array { source: from, target: to },
        });
    }
    // Automatic I/O conversions: to strings on assignment, from strings explicitly.
    if is_string(target) && context <= CastContext::Assignment {
        return Some(CastPath::InOut);
    }
    if is_string(source) && context == CastContext::Explicit {
        return Some(CastPath::InOut);
    }
    None
}

/// Casts a value that is not NULL along a path, without the target's modifier.
pub fn apply(
    path: CastPath,
    value: &Datum,
    source: Type,
    target: Type,
    ctx: &FunctionContext<'_>,
) -> Result<Datum> {
    match path {
        CastPath::Relabel => Ok(relabel(value.clone(), source.oid, target.oid)),
        CastPath::Function(function) => {
            Ok(relabel(call(function, value, target, ctx)?, function.result, target.oid))
        }
        CastPath::InOut => {
            // A boolean's name, unlike its text form, is spelled out only by its own cast.
            let text = crate::io::text_of(value, source, ctx)?;
            crate::io::text_in(&text, Type::of(target.oid), ctx)
        }
        CastPath::Array { source: from, target: to } => {
            let Datum::Array(array) = value else {
                return Err(SqlError::internal("array cast of a value that is no array"));
            };
            let path = find(from, to, CastContext::Explicit).ok_or_else(|| {
                SqlError::new(
                    SqlState::CANNOT_COERCE,
                    format!(
                        "cannot cast type {} to {}",
                        ctx.type_name(source.oid),
                        ctx.type_name(target.oid)
                    ),
                )
            })?;
            let values = array
                .values
                .iter()
                .map(|v| {
                    if v.is_null() {
                        Ok(Datum::Null)
                    } else {
                        apply(path, v, Type::of(from), Type { oid: to, typmod: target.typmod }, ctx)
                    }
                })
                .collect::<Result<Vec<_>>>()?;
            Ok(Datum::Array(std::sync::Arc::new(Array {
                element: to,
                dimensions: array.dimensions.clone(),
                values,
            })))
        }
    }
}

/// Calls a cast function. Some take the modifier, as those of integers to `bit(n)`, whose last bits it takes;
/// those that are told whether the cast is explicit get "none", as the modifier comes later.
fn call(
    function: &function::ScalarFunction,
    value: &Datum,
    target: Type,
    ctx: &FunctionContext<'_>,
) -> Result<Datum> {
    match function.args.len() {
        1 => (function.eval)(ctx, std::slice::from_ref(value)),
        2 => (function.eval)(ctx, &[value.clone(), Datum::Int4(target.typmod)]),
        _ => (function.eval)(ctx, &[value.clone(), Datum::Int4(-1), Datum::Bool(true)]),
    }
}

/// Casts explicitly, modifier included: for callers that hold values rather than plans.
pub fn cast_value(value: &Datum, source: Type, target: Type, ctx: &FunctionContext<'_>) -> Result<Datum> {
    cast_in(value, source, target, CastContext::Explicit, ctx)
}

/// Casts as an assignment does, modifier included (22001 for what does not fit).
pub fn assign_value(value: &Datum, source: Type, target: Type, ctx: &FunctionContext<'_>) -> Result<Datum> {
    cast_in(value, source, target, CastContext::Assignment, ctx)
}

fn cast_in(
    value: &Datum,
    source: Type,
    target: Type,
    context: CastContext,
    ctx: &FunctionContext<'_>,
) -> Result<Datum> {
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let path = find(source.oid, target.oid, context).ok_or_else(|| {
        SqlError::new(
            SqlState::CANNOT_COERCE,
            format!("cannot cast type {} to {}", ctx.type_name(source.oid), ctx.type_name(target.oid)),
        )
    })?;
    let cast = apply(path, value, source, target, ctx)?;
    crate::typmod::coerce_typmod(cast, target, context == CastContext::Explicit)
}
