//! Domains: their conditions around the values that become theirs.

use std::sync::Arc;

use archipel_sql::catalog::names::quote_qualified;
use archipel_sql::catalog::{Column, UserTypeRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlState};
use archipel_sql::function::Intrinsic;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::Expr;
use sqlparser::tokenizer::Span;

use super::expr::unnest;
use super::kept::About;
use super::record::record_field;
use super::span::type_span;
use super::{Binder, Clause};
use crate::bound::{BoundExpr, DomainConditions, ExprKind};

/// Whether a function makes rows of what it reads, of whose domains it knows nothing.
pub(super) fn reads_rows(function: Option<Intrinsic>) -> bool {
    matches!(function, Some(Intrinsic::JsonPopulate | Intrinsic::JsonToRecord))
}

/// The conditions of a domain over rows: what is made of a row of it has to meet them, too.
pub(super) fn populated_domain(
    function: Option<Intrinsic>,
    args: &[BoundExpr],
) -> Option<Arc<DomainConditions>> {
    let base = args.first().filter(|_| function == Some(Intrinsic::JsonPopulate))?;
    match &base.kind {
        ExprKind::Domain { conditions, .. } => Some(conditions.clone()),
        _ => None,
    }
}

/// Rows in rows in rows: a type may not be its own part, at any depth.
const ROWS_DEPTH_MAX: u32 = 64;

impl Binder<'_, '_> {
    /// A value of the plain type of a domain (or of an array of one) as a value of that: with the
    /// conditions to be met.
    pub(crate) fn coerce_domain(&mut self, mut value: BoundExpr, domain: Option<Oid>) -> Result<BoundExpr> {
        let Some(oid) = domain else { return Ok(value) };
        self.remember_domain(&mut value, oid);
        let domains = self.env.catalog.domains_of(oid);
        let of_array = domains.last().is_some_and(|own| own.array_type() == oid);
        if !of_array {
            return self.guarded(value, &domains);
        }
        let Some(element) = element_of(value.ty.oid) else { return Ok(value) };
        let item = BoundExpr::column(0, Type { oid: element, typmod: value.ty.typmod });
        let element = self.guarded(item, &domains)?;
        if matches!(element.kind, ExprKind::Column { .. }) {
            return Ok(value);
        }
        let ty = value.ty;
        let kind = ExprKind::ArrayConvert { array: Box::new(value), element: Box::new(element) };
        Ok(BoundExpr::new(kind, ty))
    }

    /// A row, or an array of rows, that was read from text or came from elsewhere: with the conditions
    /// that the fields have to meet, of which whoever reads a value knows nothing.
    pub(crate) fn guarded_row(&mut self, value: BoundExpr) -> Result<BoundExpr> {
        if matches!(value.kind, ExprKind::Const(Datum::Null)) || !self.has_guarded_fields(value.ty.oid, 0) {
            return Ok(value);
        }
        let ty = value.ty;
        if let Some(element) = element_of(ty.oid) {
            let element = Box::new(self.guarded_row(BoundExpr::column(0, Type::of(element)))?);
            let kind = ExprKind::ArrayConvert { array: Box::new(value), element };
            return Ok(BoundExpr::new(kind, ty));
        }
        let Some(relation) = self.env.catalog.table_of_row_type(ty.oid) else { return Ok(value) };
        // A constant's fields are at hand; those of any other value are read from it once it is there.
        let is_constant = matches!(value.kind, ExprKind::Const(_));
        let record = if is_constant { value.clone() } else { BoundExpr::column(0, ty) };
        let mut fields = Vec::with_capacity(relation.columns.len());
        for (place, column) in relation.columns.iter().enumerate() {
            let field = self.guarded_row(record_field(record.clone(), place, column.ty))?;
            fields.push(self.coerce_domain(field, column.domain)?);
        }
        let kind = match is_constant {
            true => ExprKind::Row(fields, None),
            false => ExprKind::RowConvert { record: Box::new(value), fields },
        };
        Ok(BoundExpr::new(kind, ty))
    }

    /// What a function made of rows that it was not told of: with the conditions of a domain it is of
    /// and of its fields.
    pub(super) fn guarded_result(
        &mut self,
        row: BoundExpr,
        domain: Option<Arc<DomainConditions>>,
    ) -> Result<BoundExpr> {
        let row = self.guarded_row(row)?;
        let ty = row.ty;
        Ok(match domain {
            Some(conditions) => BoundExpr::new(ExprKind::Domain { expr: Box::new(row), conditions }, ty),
            None => row,
        })
    }

    /// Whether some field of a row, at any depth, is of a domain.
    fn has_guarded_fields(&self, ty: Oid, depth: u32) -> bool {
        let row = if ty.is_composite_array() { element_of(ty) } else { Some(ty) };
        let row = row.filter(|row| row.is_composite() && depth < ROWS_DEPTH_MAX);
        let relation = row.and_then(|row| self.env.catalog.table_of_row_type(row));
        relation.is_some_and(|relation| {
            let mut columns = relation.columns.iter();
            columns.any(|column| column.domain.is_some() || self.has_guarded_fields(column.ty.oid, depth + 1))
        })
    }

    /// The domain that an expression is of as it is written: by a cast to it, or as what a function answers.
    pub(super) fn domain_of_value(&self, expr: &Expr, bound: &BoundExpr) -> Option<Oid> {
        let cast = match unnest(expr) {
            Expr::Cast { data_type, .. } => Some(data_type),
            Expr::TypedString(typed) => Some(&typed.data_type),
            _ => None,
        };
        if let Some(data_type) = cast {
            // None that the grammar has words for is one.
            let named = type_span(data_type) != Span::empty();
            return if named { self.declared_type(data_type).ok()?.1 } else { None };
        }
        let mut bound = bound;
        loop {
            bound = match &bound.kind {
                ExprKind::Domain { expr, .. } => expr,
                ExprKind::Routine { routine, .. } => return routine.result_domain,
                _ => return None,
            };
        }
    }

    /// The plain type of a declared one, and the domain that it may be.
    pub(crate) fn plain_type(&self, declared: Type) -> (Type, Option<Oid>) {
        self.env.catalog.plain_type(declared)
    }

    /// The value under the conditions of these domains, each over the one before it.
    fn guarded(&mut self, value: BoundExpr, domains: &[UserTypeRef]) -> Result<BoundExpr> {
        let Some(named) = domains.last() else { return Ok(value) };
        let (mut not_null, mut checks) = (false, Vec::new());
        for (ty, domain) in domains.iter().filter_map(|ty| Some((ty, ty.domain.as_ref()?))) {
            not_null |= domain.not_null;
            for check in &domain.checks {
                checks.push((
                    check.name.clone(),
                    self.domain_condition(&check.condition, &ty.schema, domain.base)?,
                ));
            }
        }
        if !not_null && checks.is_empty() {
            return Ok(value);
        }
        let visible = self.env.catalog.user_type(None, &named.name, self.env.search_path);
        let domain = match visible.is_some_and(|found| found.oid == named.oid) {
            true => named.name.clone(),
            false => quote_qualified(&named.schema, &named.name),
        };
        let (schema, name) = (named.schema.clone(), named.name.clone());
        let conditions = Arc::new(DomainConditions { schema, name, domain, not_null, checks });
        let ty = value.ty;
        Ok(BoundExpr::new(ExprKind::Domain { expr: Box::new(value), conditions }, ty))
    }

    /// The CHECK of a domain in a schema over VALUE.
    pub(crate) fn domain_condition(
        &mut self,
        condition: &str,
        schema: &str,
        base: Type,
    ) -> Result<BoundExpr> {
        let bound = self.kept(condition, schema, &About::Value(base), Clause::DomainCheck)?;
        self.boolean(bound, "CHECK")
    }

    /// A value for a column, converted as by assignment.
    pub(crate) fn assign_column(&mut self, value: BoundExpr, column: &Column) -> Result<BoundExpr> {
        let value = self.assign(value, column.ty, &column.name)?;
        self.coerce_domain(value, column.domain)
    }

    /// As [`Binder::assign_column`], for a column's default.
    pub(crate) fn assign_default(&mut self, value: BoundExpr, column: &Column) -> Result<BoundExpr> {
        self.assign_column(value, column).map_err(|mut error| {
            if error.state() == SqlState::DATATYPE_MISMATCH {
                let message = &mut error.fields_mut().message;
                *message = message.replacen(" but expression is ", " but default expression is ", 1);
            }
            error
        })
    }
}

/// Binds a domain's condition as its values will meet it, for DDL to report what is wrong with it.
pub fn check_domain_condition(
    condition: &str,
    schema: &str,
    base: Type,
    env: &mut super::BindEnv<'_>,
) -> Result<()> {
    Binder::new(env).domain_condition(condition, schema, base).map(drop)
}
