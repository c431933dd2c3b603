//! What is read more than once, or as a value, runs first, once: queries of WITH that several places read, and
//! uncorrelated subqueries. What they answer takes their place in the tree.

use std::collections::VecDeque;

use archipel_planner::bind::visit::{calls_volatile, is_correlated, visit_rel, visit_rel_mut};
use archipel_planner::bound::*;
use archipel_planner::native::visit_relations;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::array_of_values;
use archipel_sql::type_table::array_of;
use archipel_sql::types::Type;

use crate::nested::is_joinable;
use crate::{Analytics, AnalyticsError, Environment};

/// More values than this are searched row by row too slowly: the native executor hashes them.
const VALUES_MAX: usize = 10_000;

/// So many rows of a query that is read more than once stand in the tree.
const KEPT_ROWS_MAX: usize = 32_768;

/// Answers the tree without subqueries, but for those that can be joined.
pub async fn resolve(
    analytics: &Analytics,
    rel: &Rel,
    environment: &Environment,
) -> Result<Rel, AnalyticsError> {
    let mut rel = rel.clone();
    keep_shared(analytics, &mut rel, environment).await?;
    let mut found: Vec<Subquery> = Vec::new();
    let mut ctes: Vec<Cte> = Vec::new();
    collect_ctes(&rel, &mut ctes);
    visit_rel(&rel, 0, &mut |expr, _| match &expr.kind {
        // It is joined later; there may be others in it.
        ExprKind::Subquery(subquery) if is_joinable(subquery) => true,
        ExprKind::Subquery(subquery) => {
            found.push((**subquery).clone());
            false
        }
        _ => true,
    });
    if found.is_empty() {
        return Ok(rel);
    }
    let mut answers: VecDeque<Answer> = VecDeque::with_capacity(found.len());
    for subquery in found {
        if subquery.correlated {
            return Err(AnalyticsError::Unsupported("a correlated subquery".to_owned()));
        }
        // A subquery may read the query names of the query around it.
        let inner = if ctes.is_empty() {
            subquery.rel
        } else {
            Rel::With { ctes: ctes.clone(), body: Box::new(subquery.rel) }
        };
        answers.push_back(Box::pin(answer(analytics, subquery.kind, inner, environment)).await?);
    }
    visit_rel_mut(&mut rel, 0, &mut |expr, _| {
        if let ExprKind::Subquery(subquery) = &expr.kind {
            if is_joinable(subquery) {
                return true;
            }
            // Both walks meet the subqueries in the same order.
            if let Some(answer) = answers.pop_front() {
                expr.kind = answer;
            }
            return false;
        }
        true
    });
    Ok(rel)
}

/// Runs queries of the outermost WITH that several places read, if they answer few rows: others are lowered
/// once for each place.
async fn keep_shared(
    analytics: &Analytics,
    rel: &mut Rel,
    environment: &Environment,
) -> Result<(), AnalyticsError> {
    let Rel::With { ctes, body } = rel else { return Ok(()) };
    for place in 0..ctes.len() {
        let CteBody::Query(query) = &ctes[place].body else { continue };
        let later = ctes[place + 1..].iter().filter_map(|cte| match &cte.body {
            CteBody::Query(rel) => Some(rel),
            _ => None,
        });
        let readers: usize = later.chain([&**body]).map(|rel| readers_in(rel, ctes[place].id)).sum();
        if readers < 2 || is_correlated(query) {
            continue;
        }
        let types = query.types();
        let query = Rel::With { ctes: ctes[..place].to_vec(), body: Box::new(query.clone()) };
        let once = calls_volatile(&query);
        let query = limited(query, KEPT_ROWS_MAX as i64 + 1);
        let mut rows = Box::pin(analytics.execute_rel(&query, environment)).await?;
        let mut kept: Vec<Vec<BoundExpr>> = Vec::new();
        while let Some(batch) = rows.next().await? {
            kept.extend(batch.into_iter().map(|row| {
                row.into_iter().zip(&types).map(|(value, ty)| BoundExpr::constant(value, *ty)).collect()
            }));
        }
        if kept.len() <= KEPT_ROWS_MAX {
            ctes[place].body = CteBody::Query(Rel::Values { rows: kept, types });
        } else if once {
            return Err(AnalyticsError::Unsupported("a query with effects that is read twice".to_owned()));
        }
    }
    Ok(())
}

/// How many places read a query of WITH.
fn readers_in(rel: &Rel, id: u32) -> usize {
    let mut readers = 0;
    let mut count = |rel: &Rel| {
        visit_relations(rel, &mut |rel| {
            readers += usize::from(matches!(rel, Rel::CteScan { id: read, .. } if *read == id));
        });
    };
    count(rel);
    visit_rel(rel, 0, &mut |expr, _| {
        if let ExprKind::Subquery(subquery) = &expr.kind {
            count(&subquery.rel);
        }
        true
    });
    readers
}

fn limited(rel: Rel, rows: i64) -> Rel {
    let limit = Some(BoundExpr::constant(Datum::Int8(rows), Type::INT8));
    Rel::Limit { input: Box::new(rel), limit, offset: None, with_ties: false }
}

/// What stands in a subquery's place.
type Answer = ExprKind;

fn collect_ctes(rel: &Rel, into: &mut Vec<Cte>) {
    if let Rel::With { ctes, body } = rel {
        into.extend(ctes.iter().cloned());
        collect_ctes(body, into);
    }
}

async fn answer(
    analytics: &Analytics,
    kind: SubqueryKind,
    rel: Rel,
    environment: &Environment,
) -> Result<Answer, AnalyticsError> {
    let rel = match kind {
        SubqueryKind::Exists => limited(rel, 1),
        SubqueryKind::Scalar => limited(rel, 2),
        _ => limited(rel, VALUES_MAX as i64 + 1),
    };
    let ty = rel.types().first().copied().unwrap_or(Type::INT4);
    let mut rows = analytics.execute_rel(&rel, environment).await?;
    let mut values: Vec<Datum> = Vec::new();
    let mut count = 0usize;
    while let Some(batch) = rows.next().await? {
        count += batch.len();
        values.extend(batch.into_iter().filter_map(|row| row.into_iter().next()));
    }
    Ok(match kind {
        SubqueryKind::Exists => ExprKind::Const(Datum::Bool(count > 0)),
        SubqueryKind::Scalar => {
            if count > 1 {
                return Err(SqlError::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "more than one row returned by a subquery used as an expression",
                )
                .into());
            }
            ExprKind::Const(values.pop().unwrap_or(Datum::Null))
        }
        _ if count > VALUES_MAX => {
            return Err(AnalyticsError::Unsupported("a subquery of many rows".to_owned()));
        }
        SubqueryKind::Array { element } => ExprKind::Const(array_of_values(element, values)),
        SubqueryKind::Any { left, operators } => quantified(left, operators, values, ty, false)?,
        SubqueryKind::All { left, operators } => quantified(left, operators, values, ty, true)?,
    })
}

fn quantified(
    left: Vec<BoundExpr>,
    operators: Vec<archipel_sql::function::ResolvedFunction>,
    values: Vec<Datum>,
    ty: Type,
    all: bool,
) -> Result<Answer, AnalyticsError> {
    let (Ok([left]), [operator], Some(array)) =
        (<[BoundExpr; 1]>::try_from(left), &operators[..], array_of(ty.oid))
    else {
        return Err(AnalyticsError::Unsupported("a subquery compared by rows".to_owned()));
    };
    let array = BoundExpr::constant(array_of_values(ty.oid, values), Type::of(array));
    Ok(ExprKind::ArrayOp { left: Box::new(left), array: Box::new(array), operator: *operator, all })
}
