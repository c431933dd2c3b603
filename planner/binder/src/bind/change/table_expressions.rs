//! Whether what a table consists of can be bound, for definitions to report when it is declared.
//!
//! What the table said before, of the same columns, is none of a definition's: one more condition is bound by
//! itself, and a table of a thousand is made one definition after the other without binding half a million.

use std::sync::Arc;

use archipel_sql::catalog::{Column, Index, Table, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bind::binder::{BindEnv, Binder};
use crate::bind::expression::volatility::is_mutable;

/// Binds a table's defaults and conditions as statements will. `before`: the table as it was, where nothing but
/// tables has changed since; what it has said already is not bound again.
///
/// Errors: those of binding; 42P17 for a column that is computed from what may change.
pub fn check_table_expressions(
    table: &TableRef,
    before: Option<&Table>,
    env: &mut BindEnv<'_>,
) -> Result<()> {
    let mut binder = Binder::new(env);
    for (place, column) in table.columns.iter().enumerate() {
        let known = before.and_then(|before| before.columns.get(place));
        if !known.is_some_and(|known| defaults_alike(known, column)) {
            binder.default_value(table, place)?;
        }
    }
    let table = &match before.filter(|before| begins_like(table, before)) {
        Some(before) => with_what_is_new(table, before),
        None => table.clone(),
    };
    binder.checks(table)?;
    if binder.generated(table)?.iter().any(|(_, expr)| is_mutable(expr)) {
        let message = "generation expression is not immutable";
        return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    for predicate in table.indexes.iter().filter_map(|index| index.predicate.as_ref()) {
        binder.index_predicate(table, predicate)?;
    }
    binder.index_expressions(table).map(drop)
}

/// Whether two columns get the same where a row says nothing of them.
fn defaults_alike(before: &Column, after: &Column) -> bool {
    (&before.default, before.ty, before.domain, &before.identity)
        == (&after.default, after.ty, after.domain, &after.identity)
}

/// Whether a row of a table begins with what one was made of before.
fn begins_like(table: &Table, before: &Table) -> bool {
    let alike = |(before, after): (&Column, &Column)| {
        (&before.name, before.ty, before.domain, &before.generated)
            == (&after.name, after.ty, after.domain, &after.generated)
    };
    before.columns.len() <= table.columns.len() && before.columns.iter().zip(&table.columns).all(alike)
}

/// A table with those conditions and indexes that it did not have before.
fn with_what_is_new(table: &Table, before: &Table) -> TableRef {
    let conditions: FxHashSet<&str> = before.checks.iter().map(|check| check.condition.as_str()).collect();
    let indexes: FxHashMap<Oid, &Index> = before.indexes.iter().map(|index| (index.oid, index)).collect();
    let mut new = table.clone();
    new.checks.retain(|check| !conditions.contains(check.condition.as_str()));
    new.indexes.retain(|index| {
        let known = indexes.get(&index.oid);
        !known.is_some_and(|known| {
            (&known.predicate, &known.expressions) == (&index.predicate, &index.expressions)
        })
    });
    Arc::new(new)
}
