//! Queries of WITH: those that several places read run once, and a subquery that runs before the query around
//! it takes along those that it reads.
//!
//! Invariant: a query of WITH that may answer differently each time runs once, or the native executor runs it.

use std::collections::BTreeMap;

use archipel_planner::bind::visit::{calls_volatile, is_correlated};
use archipel_planner::bound::*;
use archipel_planner::native::visit_all_relations;
use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use super::attempt::{is_told_later, limited};
use crate::{Analytics, AnalyticsError, Environment};

/// So many rows of a query that is read more than once stand in the tree.
const KEPT_ROWS_MAX: usize = 32_768;
/// So many bytes beyond the rows themselves.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Runs queries of the outermost WITH that several places read, if they answer few rows: others are lowered
/// once for each place, and so is one that fails, where its error is told if somebody reads it.
pub(crate) async fn keep_shared(
    analytics: &Analytics,
    rel: &mut Rel,
    environment: &Environment,
) -> Result<(), AnalyticsError> {
    let Rel::With { ctes, body } = rel else { return Ok(()) };
    let reads = all_reads(ctes, body);
    for place in 0..ctes.len() {
        let CteBody::Query(query) = &ctes[place].body else { continue };
        let readers = reads.get(&ctes[place].id).copied().unwrap_or(0);
        if readers < 2 || is_correlated(query) {
            continue;
        }
        let types = query.types();
        let query = limited(query.clone(), KEPT_ROWS_MAX as i64 + 1);
        let query = within(&ctes[..place], query);
        let rows = match Box::pin(few_rows(analytics, &query, &types, environment)).await {
            Err(AnalyticsError::Sql(error)) if is_told_later(&error) => None,
            rows => rows?,
        };
        if let Some(rows) = rows {
            ctes[place].body = CteBody::Query(Rel::Values { rows, types });
        }
    }
    Ok(())
}

/// All rows of a query as constants, unless they are too many.
async fn few_rows(
    analytics: &Analytics,
    query: &Rel,
    types: &[Type],
    environment: &Environment,
) -> Result<Option<Vec<Vec<BoundExpr>>>, AnalyticsError> {
    let mut rows = analytics.execute_rel(query, environment).await?;
    let (mut kept, mut bytes) = (Vec::new(), 0);
    while let Some(batch) = rows.next().await? {
        for row in batch {
            bytes += row.iter().map(bytes_of).sum::<usize>();
            if kept.len() == KEPT_ROWS_MAX || bytes > KEPT_BYTES_MAX {
                return Ok(None);
            }
            let row = row.into_iter().zip(types).map(|(value, ty)| BoundExpr::constant(value, *ty));
            kept.push(row.collect::<Vec<_>>());
        }
    }
    Ok(Some(kept))
}

/// What a value has besides itself, about.
fn bytes_of(value: &Datum) -> usize {
    match value {
        Datum::Text(text) | Datum::Bpchar(text) | Datum::Jsonb(text) => text.len(),
        Datum::Bytea(bytes) => bytes.len(),
        Datum::Bits(bits) => bits.bytes().len(),
        Datum::Array(array) => {
            array.values.iter().map(|value| size_of::<Datum>() + bytes_of(value)).sum::<usize>()
        }
        Datum::Record(record) => {
            record.iter().map(|value| size_of::<Datum>() + bytes_of(value)).sum::<usize>()
        }
        _ => 0,
    }
}

/// A query beside those of WITH that it reads, itself or through one another.
pub(crate) fn within(ctes: &[Cte], rel: Rel) -> Rel {
    if ctes.is_empty() {
        return rel;
    }
    let mut reads = Reads::new();
    count_reads(&rel, &mut reads);
    let mut wanted: Vec<Cte> = Vec::new();
    // Each reads none but those before it.
    for cte in ctes.iter().rev() {
        if reads.contains_key(&cte.id) {
            count_reads_of(cte, &mut reads);
            wanted.push(cte.clone());
        }
    }
    if wanted.is_empty() {
        return rel;
    }
    wanted.reverse();
    Rel::With { ctes: wanted, body: Box::new(rel) }
}

/// Whether a query of WITH that may answer differently each time would run for each place that reads it.
pub(crate) fn runs_anew(rel: &Rel) -> bool {
    let mut found = false;
    visit_all_relations(rel, &mut |rel| {
        if let Rel::With { ctes, body } = rel {
            found |= varies_between_readers(ctes, body);
        }
    });
    found
}

fn varies_between_readers(ctes: &[Cte], body: &Rel) -> bool {
    let reads = all_reads(ctes, body);
    let mut varying: Vec<u32> = Vec::new();
    for cte in ctes {
        let CteBody::Query(query) = &cte.body else { continue };
        let mut own = Reads::new();
        if !varying.is_empty() {
            count_reads(query, &mut own);
        }
        if calls_volatile(query) || varying.iter().any(|id| own.contains_key(id)) {
            if reads.get(&cte.id).is_some_and(|places| *places > 1) {
                return true;
            }
            varying.push(cte.id);
        }
    }
    false
}

/// How many places read which query of WITH.
type Reads = BTreeMap<u32, usize>;

fn all_reads(ctes: &[Cte], body: &Rel) -> Reads {
    let mut reads = Reads::new();
    ctes.iter().for_each(|cte| count_reads_of(cte, &mut reads));
    count_reads(body, &mut reads);
    reads
}

fn count_reads_of(cte: &Cte, reads: &mut Reads) {
    cte.body.for_each_child(|child, _| {
        if let BoundChild::Rel(rel) = child {
            count_reads(rel, reads);
        }
    });
}

fn count_reads(rel: &Rel, reads: &mut Reads) {
    visit_all_relations(rel, &mut |rel| {
        if let Rel::CteScan { id, .. } = rel {
            *reads.entry(*id).or_default() += 1;
        }
    });
}
