//! Deferrable constraints: when they are checked, and what is left to check at COMMIT.

use std::sync::Arc;

use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::catalog::{ForeignKey, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::type_table::format_type;
use archipel_sql::types::{Oid, Type};

/// What SET CONSTRAINTS has said in the transaction.
#[derive(Clone, Debug, Default)]
pub struct ConstraintModes {
    /// ALL: deferred or immediate.
    all: Option<bool>,
    /// Constraints named since.
    named: Vec<(Oid, bool)>,
}

impl ConstraintModes {
    /// Whether a foreign key is checked at COMMIT.
    pub fn is_deferred(&self, key: &ForeignKey) -> bool {
        if !key.deferrable {
            return false;
        }
        let named = self.named.iter().rev().find(|(oid, _)| *oid == key.oid).map(|(_, deferred)| *deferred);
        named.or(self.all).unwrap_or(key.initially_deferred)
    }

    /// SET CONSTRAINTS ALL.
    pub fn set_all(&mut self, deferred: bool) {
        *self = ConstraintModes { all: Some(deferred), named: Vec::new() };
    }

    /// SET CONSTRAINTS name.
    pub fn set(&mut self, constraint: Oid, deferred: bool) {
        self.named.push((constraint, deferred));
    }
}

/// A foreign key that did not hold when a statement ended.
#[derive(Clone, Debug)]
pub struct DeferredCheck {
    pub constraint: Oid,
    /// Answers a row if it still does not hold.
    pub query: Arc<str>,
    pub error: SqlError,
}

impl DeferredCheck {
    /// The check of one key: `values` are of the parent's columns (`of_parent`) or of the child's.
    pub fn new(
        key: &ForeignKey,
        child: &Table,
        parent: &Table,
        of_parent: bool,
        values: &[Datum],
        error: SqlError,
        functions: &FunctionContext<'_>,
    ) -> DeferredCheck {
        let mut conditions = Vec::with_capacity(values.len());
        let mut joins = Vec::with_capacity(values.len());
        for ((&own, &other), value) in key.columns.iter().zip(&key.referenced_columns).zip(values) {
            let (own, other) = (&child.columns[usize::from(own)], &parent.columns[usize::from(other)]);
            let given = if of_parent { other.ty } else { own.ty };
            let text = archipel_sql::io::to_text(value, given, functions).replace('\'', "''");
            let name = quote_identifier(&own.name);
            // Another type's text may be no value of the column's: numeric's 1.0 is no integer.
            conditions.push(if given.oid == own.ty.oid {
                format!("c.{name} = '{text}'")
            } else {
                format!("c.{name} = '{text}'::{}", format_type(Type::of(given.oid)))
            });
            joins.push(format!("p.{} = c.{name}", quote_identifier(&other.name)));
        }
        let query = format!(
            "SELECT 1 FROM {} c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} p WHERE {}) LIMIT 1",
            quote_qualified(&child.schema, &child.name),
            conditions.join(" AND "),
            quote_qualified(&parent.schema, &parent.name),
            joins.join(" AND ")
        );
        DeferredCheck { constraint: key.oid, query: query.into(), error }
    }
}
