//! What a bound statement or expression touches, and which executor it is for.

use archipel_sql::catalog::TableKind;
use archipel_sql::error::Result;
use archipel_sql::function::{Intrinsic, Volatility};

use super::{Access, RouteKey};
use crate::bound::{Accumulator, BoundExpr, BoundStatement, CteBody, ExprKind, Rel, SetCall, SetItem};
use crate::native::run::function::sleep::sleeps;
use crate::native::{CompileEnv, CompiledStatement, compile_expression};

/// What an expression touches through nested queries and routine calls.
pub fn accesses_of_expression(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<Vec<Access>> {
    Ok(compile_expression(expr, env)?.accesses)
}

/// Where a SELECT runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// As a one-shot over claimed partitions.
    Native,
    /// Over a snapshot, by DataFusion; and why.
    Analytic(String),
}

/// Decides between the two executors. Whatever writes, locks rows, calls routines or reads
/// only keys, key ranges, reference tables and system views is native. A query that reads a
/// distributed table whole is analytic, and so is one that sleeps over any rows of it: nobody is to
/// wait for that.
pub fn classify(statement: &BoundStatement, compiled: &CompiledStatement) -> Class {
    let BoundStatement::Query(query) = statement else { return Class::Native };
    if compiled.writes || needs_native(&query.rel) {
        return Class::Native;
    }
    if let Some(access) = compiled.accesses.iter().find(|access| access.group.is_some())
        && sleeps_in(&query.rel)
    {
        return Class::Analytic(format!("the statement sleeps while it reads {}", access.table));
    }
    for access in &compiled.accesses {
        if access.group.is_some()
            && matches!(
                access.key,
                RouteKey::All | RouteKey::Range { low: None, .. } | RouteKey::Range { high: None, .. }
            )
            && !compiled.stops_early
        {
            return Class::Analytic(format!("{} is read without a bound on {}", access.table, access.column));
        }
    }
    Class::Native
}

/// Whether a statement is a query that calls no routine and waits for nobody on its way: it takes no
/// advisory locks, and draws from no sequence.
pub fn is_plain_query(statement: &BoundStatement) -> bool {
    let BoundStatement::Query(query) = statement else { return false };
    let mut is_plain = !calls_routines(&query.rel);
    crate::native::visit_expressions(&query.rel, &mut |expr| match &expr.kind {
        ExprKind::Routine { .. } => is_plain = false,
        ExprKind::Call { function, .. } => {
            let function = function.function;
            is_plain &= function.volatility != Volatility::Volatile || function.is(Intrinsic::Fresh);
        }
        _ => {}
    });
    is_plain
}

/// Whether a query calls routines otherwise than in its expressions.
fn calls_routines(rel: &Rel) -> bool {
    let mut calls = false;
    crate::native::visit_all_relations(rel, &mut |rel| match rel {
        Rel::Function { call: SetCall::Routine { .. }, .. } => calls = true,
        Rel::ProjectSet { items, .. } => {
            let is_routine =
                |item: &SetItem| matches!(item, SetItem::Set { call: SetCall::Routine { .. }, .. });
            calls |= items.iter().any(is_routine);
        }
        Rel::Aggregate { aggregates, .. } => {
            calls |= aggregates.iter().any(|call| matches!(call.function, Accumulator::Defined(_)));
        }
        _ => {}
    });
    calls
}

fn sleeps_in(rel: &Rel) -> bool {
    let mut found = false;
    crate::native::visit_expressions(rel, &mut |expr| {
        found |= matches!(&expr.kind, ExprKind::Call { function, .. } if sleeps(function.function));
    });
    found
}

/// Whether a query contains what only the native executor does.
fn needs_native(rel: &Rel) -> bool {
    let mut needed = false;
    crate::native::visit_relations(rel, &mut |rel| match rel {
        Rel::Family { lock, .. } => needed |= lock.is_some(),
        Rel::Scan { table, lock, .. } => needed |= lock.is_some() || table.kind == TableKind::System,
        Rel::Function { call: SetCall::Routine { .. }, .. } => needed = true,
        Rel::Explained { .. } => needed = true,
        Rel::Aggregate { aggregates, .. } => {
            needed |= aggregates.iter().any(|call| matches!(call.function, Accumulator::Defined(_)));
        }
        Rel::With { ctes, .. } => {
            needed |= ctes.iter().any(|cte| matches!(cte.body, CteBody::Modify(_)));
        }
        _ => {}
    });
    crate::native::visit_expressions(rel, &mut |expr| {
        needed |= match &expr.kind {
            ExprKind::Routine { .. } => true,
            ExprKind::Call { function, .. } => {
                matches!(function.function.intrinsic, Some(Intrinsic::LargeObject(_)))
            }
            _ => false,
        };
    });
    needed
}
