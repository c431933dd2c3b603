//! Domains: their conditions around the values that become theirs.

use std::sync::Arc;

use archipel_sql::catalog::names::quote_qualified;
use archipel_sql::catalog::{Column, RoutineKind, RoutineRef, UserTypeRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlState};
use archipel_sql::function::Intrinsic;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};

use super::coerce::is_polymorphic;
use super::row_value::record_field;
use crate::bind::binder::{BindEnv, Binder};
use crate::bind::clause::Clause;
use crate::bind::function::argument_mode::is_input;
use crate::bind::scope::SET_BASE;
use crate::bind::stored_expression::About;
use crate::bound::{Accumulator, BoundExpr, DomainConditions, ExprKind, Ranking, SetCall};

/// The domain that expressions have in common: the one that all of them are of.
pub(crate) fn common_domain(exprs: &[BoundExpr]) -> Option<Oid> {
    let domain = exprs.first()?.domain?;
    exprs.iter().all(|expr| expr.domain == Some(domain)).then_some(domain)
}

/// Whether a function makes rows of what it reads, of whose domains it knows nothing.
pub(crate) fn reads_rows(function: Option<Intrinsic>) -> bool {
    matches!(function, Some(Intrinsic::JsonPopulate | Intrinsic::JsonToRecord))
}

/// The conditions of a domain over rows: what is made of a row of it has to meet them, too.
pub(crate) fn populated_domain(
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
    /// conditions to be met. Without one it is of no domain from here on.
    pub(crate) fn coerce_domain(&mut self, value: BoundExpr, domain: Option<Oid>) -> Result<BoundExpr> {
        match domain {
            Some(oid) => Ok(self.guarded_by(value, oid)?.of_domain(domain)),
            None => {
                // A cast around this one gives its parameter no other type.
                self.typed_last = None;
                Ok(value.of_domain(None))
            }
        }
    }

    fn guarded_by(&mut self, mut value: BoundExpr, oid: Oid) -> Result<BoundExpr> {
        self.remember_domain(&mut value, oid);
        let domains = self.env.catalog.domains_of(oid);
        let of_array = domains.last().is_some_and(|own| own.array_type() == oid);
        if !of_array {
            // The elements come first where it is over an array of a domain.
            let array = domains.first().and_then(|first| first.domain.as_ref()?.parent);
            let value = match array {
                Some(array) => self.nested(|binder| binder.guarded_by(value, array))?,
                None => value,
            };
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
    pub(crate) fn guarded_result(
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
        let row = if ty.element_kind().is_some() { element_of(ty) } else { Some(ty) };
        let row = row.filter(|row| row.is_composite() && depth < ROWS_DEPTH_MAX);
        let relation = row.and_then(|row| self.env.catalog.table_of_row_type(row));
        relation.is_some_and(|relation| {
            let mut columns = relation.columns.iter();
            columns.any(|column| column.domain.is_some() || self.has_guarded_fields(column.ty.oid, depth + 1))
        })
    }

    /// The array of a domain; what holds arrays of one is such an array itself.
    pub(crate) fn array_of_domain(&self, domain: Option<Oid>) -> Option<Oid> {
        let found = self.env.catalog.user_type_of(domain?)?;
        if found.oid != domain? {
            return domain;
        }
        // An array of a domain over an array has elements of one type more, which no value has.
        let over_array = found.domain.as_ref().is_some_and(|domain| element_of(domain.base.oid).is_some());
        (!over_array).then(|| found.array_type())
    }

    /// The domain of the elements of an array of one, or of a domain over such an array.
    pub(super) fn element_of_domain(&self, domain: Option<Oid>) -> Option<Oid> {
        let array = self.env.catalog.array_of_domain(domain?)?;
        Some(self.env.catalog.user_type_of(array)?.oid)
    }

    /// The domain of a field of a composite value, or of a row that a function answers.
    pub(super) fn domain_of_field(&self, record: &BoundExpr, place: usize) -> Option<Oid> {
        if let Some(row) = self.env.catalog.table_of_row_type(record.ty.oid) {
            return row.columns.get(place)?.domain;
        }
        let routine = match record.kind {
            ExprKind::Routine { ref routine, .. } => routine,
            ExprKind::Column { depth: 0, index } if index >= SET_BASE => {
                match &self.levels.last()?.sets.get(usize::from(index - SET_BASE))?.0 {
                    SetCall::Routine { routine, .. } => routine,
                    _ => return None,
                }
            }
            _ => return None,
        };
        routine.output_args().nth(place)?.domain
    }

    /// The domain that a call answers whose declaration speaks of `any` types: the one that all arguments of
    /// such types are of, or an array of it, or its elements (enforce_generic_type_consistency).
    pub(crate) fn polymorphic_domain(
        &self,
        declared: &[Oid],
        result: Oid,
        args: &[BoundExpr],
    ) -> Option<Oid> {
        if !is_polymorphic(result) || args.iter().all(|arg| arg.domain.is_none()) {
            return None;
        }
        let is_array = |oid: Oid| matches!(oid, Oid::ANYARRAY | Oid::ANYCOMPATIBLEARRAY);
        let mut element = None;
        for (wanted, arg) in declared.iter().zip(args).filter(|(wanted, _)| is_polymorphic(**wanted)) {
            let own = if is_array(*wanted) { self.element_of_domain(arg.domain) } else { arg.domain };
            let is_unknown = arg.domain.is_none() && arg.is_null_constant();
            match (element, own) {
                _ if *wanted == Oid::ANY || is_unknown => {}
                (_, None) => return None,
                (Some(known), Some(own)) if known != own => return None,
                (_, own) => element = own,
            }
        }
        if is_array(result) { self.array_of_domain(element) } else { element }
    }

    /// The same of an aggregate.
    pub(crate) fn aggregated_domain(&self, function: &Accumulator, args: &[BoundExpr]) -> Option<Oid> {
        match function {
            Accumulator::Builtin(function) => self.polymorphic_domain(function.args, function.result, args),
            Accumulator::Defined(_) => None,
        }
    }

    /// The same of a window function that answers one of its first argument's values.
    pub(crate) fn ranked_domain(&self, function: Ranking, args: &[BoundExpr]) -> Option<Oid> {
        use Ranking::{FirstValue, Lag, LastValue, Lead, NthValue};
        if !matches!(function, Lag | Lead | FirstValue | LastValue | NthValue) {
            return None;
        }
        match args {
            [value, _, default] => value.domain.filter(|domain| default.domain == Some(*domain)),
            [value, ..] => value.domain,
            [] => None,
        }
    }

    /// A routine with polymorphic parameters, made for types, as it is for the domains that its arguments
    /// are of: those are the types that it is called with.
    pub(crate) fn for_domains(
        &self,
        declared: &RoutineRef,
        made: RoutineRef,
        filled: &[BoundExpr],
    ) -> RoutineRef {
        if Arc::ptr_eq(declared, &made) || filled.iter().all(|arg| arg.domain.is_none()) {
            return made;
        }
        let procedure = declared.kind == RoutineKind::Procedure;
        let inputs = declared.args.iter().filter(|arg| is_input(arg.mode, procedure));
        let inputs: Vec<Oid> = inputs.map(|arg| arg.ty.oid).collect();
        let domain_of = |oid: Oid| self.polymorphic_domain(&inputs, oid, filled);
        let mut concrete = (*made).clone();
        for (arg, as_declared) in concrete.args.iter_mut().zip(&declared.args) {
            if is_polymorphic(as_declared.ty.oid) {
                arg.domain = domain_of(as_declared.ty.oid);
            }
        }
        if is_polymorphic(declared.result.oid) {
            concrete.result_domain = domain_of(declared.result.oid);
        }
        Arc::new(concrete)
    }

    /// The plain type of a declared one, and the domain that it may be.
    pub(crate) fn plain_type(&self, declared: Type) -> (Type, Option<Oid>) {
        self.env.catalog.plain_type(declared)
    }

    /// The value under the conditions of these domains, each over the one before it.
    fn guarded(&mut self, value: BoundExpr, domains: &[UserTypeRef]) -> Result<BoundExpr> {
        let Some(named) = domains.last() else { return Ok(value) };
        let (mut not_null, mut checks) = (false, Vec::new());
        for domain in domains.iter().filter_map(|ty| ty.domain.as_ref()) {
            not_null |= domain.not_null;
            for check in &domain.checks {
                checks.push((check.name.clone(), self.domain_condition(&check.condition, domain.base)?));
            }
        }
        if !not_null && checks.is_empty() {
            return Ok(value);
        }
        let visible = self.env.catalog.user_type(None, &named.name, self.env.display_path());
        let domain = match visible.is_some_and(|found| found.oid == named.oid) {
            true => named.name.clone(),
            false => quote_qualified(&named.schema, &named.name),
        };
        let (schema, name) = (named.schema.clone(), named.name.clone());
        let conditions = Arc::new(DomainConditions { schema, name, domain, not_null, checks });
        let ty = value.ty;
        Ok(BoundExpr::new(ExprKind::Domain { expr: Box::new(value), conditions }, ty))
    }

    /// The CHECK of a domain over VALUE.
    pub(crate) fn domain_condition(&mut self, condition: &str, base: Type) -> Result<BoundExpr> {
        let bound = self.kept(condition, &About::Value(base), Clause::DomainCheck)?;
        self.boolean(bound, "CHECK")
    }

    /// A value for a column, converted as by assignment.
    pub(crate) fn assign_column(&mut self, value: BoundExpr, column: &Column) -> Result<BoundExpr> {
        let declared = column.domain.unwrap_or(column.ty.oid);
        let value = self.assign_declared(value, column.ty, declared, &column.name)?;
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
pub fn check_domain_condition(condition: &str, base: Type, env: &mut BindEnv<'_>) -> Result<()> {
    Binder::new(env).domain_condition(condition, base).map(drop)
}
