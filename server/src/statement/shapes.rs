//! Statements found again by their shape: a text that differs from another one in its literals
//! alone runs the other's plan, with its literals as parameters.
//!
//! Clients that write values into their texts (the simple protocol has no other way) send a new
//! text every time; none of them should be parsed and bound. The first text of a shape only makes
//! it known. The second one is prepared twice, as it is and with parameters, and the two are
//! compared: if one is an instance of the other ([`is_instance`]) and reaches its rows by the same
//! keys, the plan with parameters serves for every text of the shape. Whatever is not so sure is
//! read in full every time, as is a text whose literals are no values of the parameters' types: its
//! error has to tell where it stands.

use std::sync::Arc;

use archipel_planner::bind::generic_plan::is_instance;
use archipel_planner::bound::BoundStatement;
use archipel_sql::datum::Datum;
use archipel_sql::function::FunctionContext;
use archipel_sql::io;
use archipel_sql::parser::shape::{Literal, LiteralKind, Shape};
use archipel_sql::types::{Oid, Type};

use super::cache::Key;
use super::known_shape::Known;
use super::{Body, Code, Prepared, RowPlan};
use crate::session::Session;

impl Session {
    /// The plan for a text by its shape, and the text's literals as its parameters.
    pub(crate) fn found_by_shape(
        &mut self,
        text: &str,
        shape: &Shape,
        key: &Key,
    ) -> Option<(Arc<Prepared>, Vec<Datum>)> {
        let known = self.executor.shapes.borrow_mut().get(key);
        let Some(Known::Plan(prepared)) = known else { return None };
        let prepared = if self.is_of_now(&prepared) {
            prepared
        } else {
            let valid = self.still_meant(&prepared)?;
            self.executor.shapes.borrow_mut().insert(key.clone(), Known::Plan(valid.clone()));
            valid
        };
        let values = self.literal_values(text, shape, &prepared.params)?;
        Some((prepared, values))
    }

    /// Takes note of the shape of a text that has just been prepared; whether texts of this shape
    /// will be found by it from now on.
    pub(crate) async fn note_shape(
        &mut self,
        text: &str,
        shape: &Shape,
        key: Key,
        prepared: &Prepared,
    ) -> bool {
        let version = self.catalog_version();
        let known = self.executor.shapes.borrow_mut().get(&key);
        let next = match known {
            Some(Known::Literal(as_of, _)) if as_of == version => return false,
            Some(Known::Literal(_, Some(basis))) if self.holds(&basis) => {
                Known::Literal(version, Some(basis))
            }
            Some(Known::Met) => match self.prepare_shape(text, shape, prepared).await {
                Some(plan) => Known::Plan(plan),
                None => Known::Literal(version, prepared.basis.clone()),
            },
            _ => Known::Met,
        };
        let found = matches!(next, Known::Plan(_));
        self.executor.shapes.borrow_mut().insert(key, next);
        found
    }

    /// The plan for all statements of a shape, if one is: `prepared` is that of `text`.
    async fn prepare_shape(
        &mut self,
        text: &str,
        shape: &Shape,
        prepared: &Prepared,
    ) -> Option<Arc<Prepared>> {
        let Body::Rows(own) = &prepared.body else { return None };
        if prepared.denied.is_some() || own.is_analytic() || self.reads_partial_index(own) {
            return None;
        }
        let parameterized: Arc<str> = shape.parameterized().into();
        let statements = self.read(&parameterized).await.ok()?;
        let generic = self.prepare_shaped(&parameterized, statements, &shape.declared()).await.ok()?;
        let Body::Rows(plan) = &generic.body else { return None };
        let suits = !generic.session_dependent
            && generic.denied.is_none()
            && !plan.is_analytic()
            && generic.columns == prepared.columns
            && generic.params.len() == shape.literals.len()
            && generic.params.iter().all(|ty| reads_alike_anywhere(*ty));
        if !suits {
            return None;
        }
        let values = self.literal_values(text, shape, &generic.params)?;
        let reaches = match (&plan.code, &own.code) {
            (Code::Native(plan), Code::Native(own)) => plan.reaches_rows_as(own),
            (Code::Call(_), Code::Call(_)) => true,
            _ => false,
        };
        (reaches && is_instance(&plan.bound, &values, &own.bound)).then_some(generic)
    }

    /// Whether a statement looks for rows of a table that has partial indexes: which of them serve
    /// is a matter of its literals' values.
    fn reads_partial_index(&self, plan: &RowPlan) -> bool {
        let Code::Native(compiled) = &plan.code else { return false };
        if matches!(plan.bound, BoundStatement::Insert(_)) {
            return false;
        }
        let catalog = self.catalog_state();
        let has_partial = |oid: Oid| {
            let table = catalog.catalog.table_by_oid(oid);
            table.is_some_and(|table| table.indexes.iter().any(|index| index.predicate.is_some()))
        };
        compiled.accesses.iter().any(|access| has_partial(access.oid))
    }

    /// The values of a text's literals as parameters of these types; `None` if one is no such value.
    fn literal_values(&mut self, text: &str, shape: &Shape, types: &[Type]) -> Option<Vec<Datum>> {
        let host = self.host();
        // Only strings may say `now`, whose time is asked for.
        let says = shape.literals.iter().any(|literal| literal.kind == LiteralKind::String);
        let context = if says { self.context(&host) } else { FunctionContext { now: 0, session: &*host } };
        let value = |(literal, ty): (&Literal, &Type)| {
            literal.integer(text).or_else(|| io::text_in(&literal.value(text), *ty, &context).ok())
        };
        shape.literals.iter().zip(types).map(value).collect()
    }
}

/// Whether a literal of the type is a value and nothing more: no name that is looked up, no row
/// whose fields are, no interval, whose modifier says what its numbers mean.
fn reads_alike_anywhere(ty: Type) -> bool {
    ty.oid.is_enum()
        || matches!(
            ty.oid,
            Oid::BOOL
                | Oid::INT2
                | Oid::INT4
                | Oid::INT8
                | Oid::NUMERIC
                | Oid::FLOAT4
                | Oid::FLOAT8
                | Oid::TEXT
                | Oid::VARCHAR
                | Oid::BPCHAR
                | Oid::NAME
                | Oid::BYTEA
                | Oid::BIT
                | Oid::VARBIT
                | Oid::INET
                | Oid::CIDR
                | Oid::MACADDR
                | Oid::MACADDR8
                | Oid::DATE
                | Oid::TIME
                | Oid::TIMETZ
                | Oid::TIMESTAMP
                | Oid::TIMESTAMPTZ
                | Oid::UUID
                | Oid::JSON
                | Oid::JSONB
        )
}
