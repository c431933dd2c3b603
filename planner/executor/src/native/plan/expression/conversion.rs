//! Conversions that are no functions: through the text form, of arrays and rows part by part, and into a
//! domain.

use std::sync::Arc;

use archipel_sql::datum::{Array, Datum};
use archipel_sql::error::Result;
use archipel_sql::types::{Oid, Type};
use archipel_sql::typmod::coerce_typmod;

use crate::bound::{BoundExpr, DomainConditions};
use crate::construct::convert_io;
use crate::native::plan::compiler::Compiler;
use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::source::eval_all;

impl Compiler<'_> {
    /// Compiles a conversion through the text form (PostgreSQL's CoerceViaIO).
    pub fn io_conversion(&mut self, inner: &BoundExpr, to: Type) -> Result<CompiledExpr> {
        let from = inner.ty;
        let inner = self.source(inner)?;
        let is_text_form = matches!(from.oid, Oid::TEXT | Oid::VARCHAR);
        if is_text_form && matches!(to.oid, Oid::TEXT | Oid::VARCHAR | Oid::BPCHAR) {
            return Ok(Box::new(move |ctx| match inner.eval(ctx)? {
                text @ Datum::Text(_) if to.oid == Oid::TEXT => Ok(text),
                text @ Datum::Text(_) => Ok(coerce_typmod(text, to, false)?),
                value => Ok(convert_io(&value, from, to, &ctx.functions)?),
            }));
        }
        Ok(Box::new(move |ctx| {
            let value = inner.eval(ctx)?;
            Ok(convert_io(&value, from, to, &ctx.functions)?)
        }))
    }

    /// Compiles the conversion of every element of an array.
    pub fn array_conversion(&mut self, array: &BoundExpr, element: &BoundExpr) -> Result<CompiledExpr> {
        let array = self.source(array)?;
        let item = self.slot();
        let to = element.ty.oid;
        let element = self.scoped(&[item], |c| c.source(element))?;
        Ok(Box::new(move |ctx| {
            let Datum::Array(array) = array.eval(ctx)? else { return Ok(Datum::Null) };
            let mut values = Vec::with_capacity(array.values.len());
            for value in &array.values {
                ctx.frame.slots[item as usize] = value.clone();
                values.push(element.eval(ctx)?);
            }
            Ok(Datum::Array(Arc::new(Array { element: to, dimensions: array.dimensions.clone(), values })))
        }))
    }

    /// Compiles the conversion of every field of a record that is not NULL.
    pub fn row_conversion(&mut self, record: &BoundExpr, fields: &[BoundExpr]) -> Result<CompiledExpr> {
        let record = self.source(record)?;
        let slot = self.slot();
        let fields = self.scoped(&[slot], |c| c.exprs(fields))?;
        Ok(Box::new(move |ctx| {
            let record = record.eval(ctx)?;
            if record.is_null() {
                return Ok(Datum::Null);
            }
            ctx.frame.slots[slot as usize] = record;
            Ok(Datum::Record(eval_all(&fields, ctx)?.into_vec().into()))
        }))
    }

    /// Compiles a value that its domain has to let through (PostgreSQL's CoerceToDomain).
    pub fn domain_value(
        &mut self,
        expr: &BoundExpr,
        conditions: &Arc<DomainConditions>,
    ) -> Result<CompiledExpr> {
        let value = self.source(expr)?;
        let slot = self.slot();
        let checks = conditions
            .checks
            .iter()
            .map(|(_, check)| self.scoped(&[slot], |c| c.predicate(check)))
            .collect::<Result<Vec<_>>>()?;
        let conditions = conditions.clone();
        Ok(Box::new(move |ctx| {
            let value = value.eval(ctx)?;
            if conditions.not_null && value.is_null() {
                return Err(conditions.null_refused().into());
            }
            if !checks.is_empty() {
                ctx.frame.slots[slot as usize] = value.clone();
            }
            for (check, (name, _)) in checks.iter().zip(&conditions.checks) {
                if check(ctx)? == Some(false) {
                    return Err(conditions.violated(name).into());
                }
            }
            Ok(value)
        }))
    }
}
