//! Deferrable constraints: when they are checked, and what is left to check at COMMIT.

use std::sync::Arc;

use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::catalog::{ForeignKey, Table, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};

use crate::native::run::routine::CompiledRoutine;
use crate::native::run::row::sink::NoRows;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// What waits for COMMIT.
#[derive(Clone)]
pub struct DeferredCheck {
    pub constraint: Oid,
    pub work: DeferredWork,
}

#[derive(Clone)]
pub enum DeferredWork {
    /// A foreign key that did not hold when a statement ended: a query that answers a row if it
    /// still does not. `table` has the row that was written.
    Key { table: Oid, query: Arc<str>, error: SqlError },
    /// A constraint trigger, with the old and the new row; its function as the statement had it.
    Trigger { table: Oid, event: TriggerEvent, rows: [Datum; 2], function: Arc<dyn CompiledRoutine> },
}

impl DeferredWork {
    /// The table whose rows it is about.
    pub fn table(&self) -> Oid {
        match self {
            DeferredWork::Key { table, .. } | DeferredWork::Trigger { table, .. } => *table,
        }
    }
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
                format!("c.{name} = '{text}'::{}", functions.format_type(Type::of(given.oid)))
            });
            joins.push(format!("p.{} = c.{name}", quote_identifier(&other.name)));
        }
        // Heirs neither have the key nor are referenced by it.
        let rows = |table: &Table| {
            let only = if table.is_partitioned() { "" } else { "ONLY " };
            format!("{only}{}", quote_qualified(&table.schema, &table.name))
        };
        let query = format!(
            "SELECT 1 FROM {} c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} p WHERE {}) LIMIT 1",
            rows(child),
            conditions.join(" AND "),
            rows(parent),
            joins.join(" AND ")
        );
        let table = if of_parent { parent.oid } else { child.oid };
        DeferredCheck { constraint: key.oid, work: DeferredWork::Key { table, query: query.into(), error } }
    }
}

/// Does what waits at the end of a transaction that is one run. False if some of it takes statements
/// of its own; nothing has been done then.
pub fn finish_deferred(ctx: &mut ExecContext<'_, '_>) -> ExecResult<bool> {
    let is_key = |check: &DeferredCheck| matches!(check.work, DeferredWork::Key { .. });
    while let Some(effects) = &mut ctx.effects
        && !effects.deferred.is_empty()
    {
        if effects.deferred.iter().any(is_key) {
            return Ok(false);
        }
        for check in std::mem::take(&mut effects.deferred) {
            if let DeferredWork::Trigger { rows, function, .. } = check.work {
                ctx.trigger_depth += 1;
                let called = function.call(ctx, &rows, &mut NoRows);
                ctx.trigger_depth -= 1;
                called?;
            }
        }
    }
    Ok(true)
}
