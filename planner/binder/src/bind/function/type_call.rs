//! Casts that are written as calls: `int4('5')`, `mood('sad')` (FuncNameAsType; func_get_detail).

use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::error::Result;
use archipel_sql::function;
use archipel_sql::function::CastContext;
use archipel_sql::type_table::{TypeInfo, type_by_name};
use archipel_sql::types::{Oid, Type};
use sqlparser::tokenizer::Span;

use super::argument::Argument;
use super::overload::Resolved;
use crate::bind::binder::Binder;
use crate::bind::expression::coerce::category;
use crate::bind::meaning::Named;
use crate::bound::BoundExpr;

/// The type of the system that a call with one argument names, and the argument.
fn named<'a>(
    (schema, name): (Option<&str>, &str),
    args: &'a [Argument],
    procedure_call: bool,
) -> Option<(&'static TypeInfo, &'a BoundExpr)> {
    let [Argument { name: None, value, variadic: false, .. }] = args else { return None };
    let of_system = !procedure_call && schema.is_none_or(|schema| schema == "pg_catalog");
    Some((type_by_name(name).filter(|_| of_system)?, value))
}

impl Binder<'_, '_> {
    /// A call with a text that no function has exactly: a cast through what is written, before any function that
    /// would take the argument converted.
    pub(super) fn cast_from_text(
        &mut self,
        call: (Option<&str>, &str),
        args: &[Argument],
        procedure_call: bool,
    ) -> Result<Option<Resolved>> {
        let Some((info, value)) = named(call, args, procedure_call) else { return Ok(None) };
        let from = value.ty.oid;
        let is_text = category(from) == b'S';
        // What has a cast of its own is a function's, or nothing's.
        let written = from == Oid::UNKNOWN || is_text && function::cast(from, info.oid).is_none();
        if written && from != info.oid { self.cast_to(value, info).map(Some) } else { Ok(None) }
    }

    /// A call that no function fits.
    pub(super) fn cast_named(
        &mut self,
        call: (Option<&str>, &str),
        args: &[Argument],
        procedure_call: bool,
    ) -> Result<Option<Resolved>> {
        let Some((info, value)) = named(call, args, procedure_call) else { return Ok(None) };
        let from = value.ty.oid;
        // Rows become text by casts that are written as such.
        let is_row = from == Oid::RECORD || from.is_composite();
        let has_cast =
            from == Oid::UNKNOWN || function::cast(from, info.oid).is_some() || info.category == b'S';
        if has_cast && !is_row { self.cast_to(value, info).map(Some) } else { Ok(None) }
    }

    fn cast_to(&mut self, value: &BoundExpr, info: &TypeInfo) -> Result<Resolved> {
        self.coerce_or_fail(value.clone(), Type::of(info.oid), CastContext::Explicit).map(Resolved::Cast)
    }

    /// A call that no function fits as a cast to an enum or a domain; `None` if it is none.
    pub(super) fn type_call(
        &mut self,
        (schema, name): (Option<&str>, &str),
        args: &[Argument],
        span: Span,
    ) -> Result<Option<BoundExpr>> {
        let [Argument { name: None, value, variadic: false, .. }] = args else { return Ok(None) };
        // What is temporary is called by its schema alone.
        let path = self.env.search_path.iter().filter(|schema| !is_temporary_schema(schema));
        let path: Vec<String> = path.cloned().collect();
        let path = if schema.is_none() { &path[..] } else { self.env.search_path };
        let Some(ty) = self.env.catalog.user_type(schema, name, path) else { return Ok(None) };
        if ty.attributes.is_some() {
            return Ok(None);
        }
        let (target, domain) = match &ty.domain {
            Some(domain) => (domain.base, Some(ty.oid)),
            None => (Type::of(ty.oid), None),
        };
        // What needs no function: literals, values of that type, and texts.
        let from = value.ty.oid;
        if from != Oid::UNKNOWN && from != target.oid && category(from) != b'S' {
            return Ok(None);
        }
        self.note_meaning(span, Named::Type(ty.oid));
        let value = self.coerce_or_fail(value.clone(), target, CastContext::Explicit)?;
        self.coerce_domain(value, domain).map(Some)
    }
}
