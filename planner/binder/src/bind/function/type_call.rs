//! Casts to users' types that are written as calls: `mood('sad')` (FuncNameAsType).

use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::error::Result;
use archipel_sql::function::CastContext;
use archipel_sql::types::{Oid, Type};
use sqlparser::tokenizer::Span;

use super::argument::Argument;
use crate::bind::binder::Binder;
use crate::bind::expression::coerce::category;
use crate::bind::meaning::Named;
use crate::bound::BoundExpr;

impl Binder<'_, '_> {
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
