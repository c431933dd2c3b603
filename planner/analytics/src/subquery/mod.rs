//! What is read more than once, or as a value, runs first, once: queries of WITH that several places read
//! ([`with`]), and uncorrelated subqueries. What they answer takes their place in the tree.
//!
//! PostgreSQL runs a subquery when a row asks for it, if one does. One that fails here leaves the query to
//! the native executor, which does the same.
//!
//! - [`semi_join`] conditions with EXISTS or IN of a query that reads the row around it, as joins
//! - [`correlated_aggregate`] aggregates of the rows that belong to a row, for all rows together
//! - [`with`]      queries of WITH; [`attempt`] parts that are run ahead, and which of their errors count

mod attempt;
mod correlated_aggregate;
mod semi_join;
mod with;

use std::collections::VecDeque;

use archipel_planner::bind::visit::{visit_rel, visit_rel_mut};
use archipel_planner::bound::*;
use archipel_planner::native::visit_all_relations;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::array_of_values;
use archipel_sql::type_table::array_of;
use archipel_sql::types::Type;

use crate::{Analytics, AnalyticsError, Environment};
use attempt::{is_told_later, limited};
use correlated_aggregate::grouped;
use semi_join::is_joinable;
use with::{keep_shared, runs_anew, within};

/// More values than this are searched row by row too slowly: the native executor hashes them.
const VALUES_MAX: usize = 10_000;

/// How many conditions of one AND go to DataFusion, whose optimizer compares each of them with each.
const CONDITIONS_MAX: usize = 200;

/// More arms of a CASE than this are walked through row by row too slowly: the native executor compiles them.
const ARMS_MAX: usize = 64;

/// Answers the tree without subqueries, but for those that can be joined: those that are aggregates of the rows
/// that belong to a row are joined already.
pub async fn resolve(
    analytics: &Analytics,
    rel: &Rel,
    environment: &Environment,
) -> Result<Rel, AnalyticsError> {
    let mut rel = grouped(rel.clone());
    if let Some(what) = hindrance(&rel) {
        return Err(AnalyticsError::Unsupported(what.to_owned()));
    }
    keep_shared(analytics, &mut rel, environment).await?;
    if runs_anew(&rel) {
        return Err(AnalyticsError::Unsupported("a query with effects that is read twice".to_owned()));
    }
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
        // A subquery may read the query names of the query around it.
        let inner = within(&ctes, rows_wanted(&subquery.kind, subquery.rel));
        match Box::pin(answer(analytics, subquery.kind, inner, environment)).await {
            Err(AnalyticsError::Sql(error)) if is_told_later(&error) => {
                return Err(AnalyticsError::Unsupported("a subquery that fails".to_owned()));
            }
            answered => answers.push_back(answered?),
        }
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

/// Whether a condition just above these rows may be that of policies.
fn has_policies(rel: &Rel) -> bool {
    match rel {
        Rel::Scan { table, .. } => table.row_security.enabled,
        Rel::Family { family, .. } => family.root.row_security.enabled,
        _ => false,
    }
}

/// What a look at a query shows that keeps it from running here, before any part of it has run in vain.
fn hindrance(rel: &Rel) -> Option<&'static str> {
    let mut found = None;
    visit_all_relations(rel, &mut |rel| {
        let what = match rel {
            Rel::Window { .. } => "a window function",
            // Conditions are not asked one after the other there, and hidden rows could fail those of others.
            Rel::Filter { input, .. } if has_policies(input) => "conditions on a table with row security",
            Rel::Join { lateral: true, .. } => "a lateral join",
            Rel::SetOp { op, .. } if *op != SetOp::Union => "INTERSECT and EXCEPT",
            Rel::Distinct { on: Some(_), .. } => "DISTINCT ON",
            Rel::With { ctes, .. } if !ctes.iter().all(|cte| matches!(cte.body, CteBody::Query(_))) => {
                "a query of WITH that is recursive or changes data"
            }
            _ => return,
        };
        found = Some(what);
    });
    let (mut correlated, mut conditions, mut arms) = (false, false, false);
    visit_rel(rel, 0, &mut |expr, _| {
        match &expr.kind {
            ExprKind::And(parts) => conditions |= parts.len() > CONDITIONS_MAX,
            ExprKind::Case { arms: all, .. } => arms |= all.len() > ARMS_MAX,
            ExprKind::Subquery(subquery) => correlated |= subquery.correlated && !is_joinable(subquery),
            _ => {}
        }
        true
    });
    found
        .or(correlated.then_some("a correlated subquery"))
        .or(conditions.then_some("hundreds of conditions that all have to hold"))
        .or(arms.then_some("a CASE of many arms"))
}

/// What stands in a subquery's place.
type Answer = ExprKind;

fn collect_ctes(rel: &Rel, into: &mut Vec<Cte>) {
    if let Rel::With { ctes, body } = rel {
        into.extend(ctes.iter().cloned());
        collect_ctes(body, into);
    }
}

/// A subquery, but for rows that its answer does not depend on.
fn rows_wanted(kind: &SubqueryKind, rel: Rel) -> Rel {
    let rows = match kind {
        SubqueryKind::Exists => 1,
        SubqueryKind::Scalar => 2,
        _ => VALUES_MAX as i64 + 1,
    };
    limited(rel, rows)
}

async fn answer(
    analytics: &Analytics,
    kind: SubqueryKind,
    rel: Rel,
    environment: &Environment,
) -> Result<Answer, AnalyticsError> {
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
