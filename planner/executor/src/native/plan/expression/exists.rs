//! EXISTS of a query that asks for partners of a row by equalities that no key serves: its rows are kept by
//! what is equal once a run of the statement, instead of being read again for each row around it.
//!
//! ```text
//! DELETE FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.x = o.x AND t.y > 1 AND t.z <> o.z)
//!     kept: t's rows with y > 1, by x; asked of each row of o: those of its x, whether z <> o.z
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::catalog::{Distribution, Table, TableKind};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::Type;
use rustc_hash::FxHashMap;

use crate::bind::visit::{calls_volatile, visit_expr, visit_expr_mut};
use crate::bound::{BoundExpr, ExprKind, Rel, Subquery};
use crate::comparison::{Comparison, comparison};
use crate::explain::plan::SUB_PLAN;
use crate::native::plan::access::conjunct::{comparable, split};
use crate::native::plan::compiler::Compiler;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::node::{Node, hash_key};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::{HashKey, HashTable};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::state::frame::Cache;

/// What such a query comes to.
struct Partners {
    /// The rows of its table that meet what does not read the row around it.
    rows: Rel,
    /// What is equal: of these rows, and of the row around them.
    theirs: Vec<BoundExpr>,
    ours: Vec<BoundExpr>,
    /// What has to hold of both besides.
    rest: Option<BoundExpr>,
}

/// The rows that an expression reads, if there are no others than that of the table and the one around it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Reads {
    table: bool,
    around: bool,
}

fn reads(expr: &BoundExpr) -> Option<Reads> {
    let mut reads = Reads { table: false, around: false };
    let mut plain = true;
    visit_expr(expr, 0, &mut |part, _| {
        match part.kind {
            ExprKind::Column { depth: 0, .. } => reads.table = true,
            ExprKind::Column { depth: 1, .. } => reads.around = true,
            ExprKind::Column { .. } | ExprKind::Subquery(_) | ExprKind::Routine { .. } => plain = false,
            _ => {}
        }
        plain
    });
    plain.then_some(reads)
}

/// The two sides of an equality between the table's row and the one around it, in this order.
fn equal(part: &BoundExpr) -> Option<(&BoundExpr, &BoundExpr)> {
    let ExprKind::Call { function, args } = &part.kind else { return None };
    let [left, right] = &args[..] else { return None };
    if comparison(function.function) != Some(Comparison::Eq) || !comparable(left, right) {
        return None;
    }
    let (theirs, ours) = (Reads { table: true, around: false }, Reads { table: false, around: true });
    match (reads(left)?, reads(right)?) {
        (left_reads, right_reads) if left_reads == theirs && right_reads == ours => Some((left, right)),
        (left_reads, right_reads) if left_reads == ours && right_reads == theirs => Some((right, left)),
        _ => None,
    }
}

/// Whether a table may be reached by the value of an expression over its row, or its rows' places be known
/// by it: reading it for each row is no matter then.
fn may_lead(table: &Table, expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::Relabel(inner) => may_lead(table, inner),
        ExprKind::Column { index, .. } => {
            let by_key = table.primary_key.as_ref().is_some_and(|key| key.columns.contains(index));
            let mut columns = table.indexes.iter().flat_map(|other| &other.columns);
            let by_place =
                matches!(table.distribution, Distribution::Column { column, .. } if column == *index);
            by_key || by_place || columns.any(|column| column.column == *index)
        }
        _ => table.indexes.iter().any(|index| !index.expressions.is_empty()),
    }
}

/// Whether a projection is nothing but the first columns of its input.
fn is_prefix(exprs: &[BoundExpr]) -> bool {
    exprs.iter().enumerate().all(|(place, expr)| {
        matches!(expr.kind, ExprKind::Column { depth: 0, index } if usize::from(index) == place)
    })
}

impl Partners {
    fn of(subquery: &Subquery) -> Option<Partners> {
        if !subquery.correlated || calls_volatile(&subquery.rel) {
            return None;
        }
        let mut input = &subquery.rel;
        let mut conditions = Vec::new();
        loop {
            match input {
                Rel::Filter { input: below, predicate } => {
                    // The inner ones are asked first.
                    let outer = std::mem::take(&mut conditions);
                    split(predicate, &mut conditions);
                    conditions.extend(outer);
                    input = below;
                }
                // What a row shows is nobody's matter, nor how many there are beyond the first.
                Rel::Project { input: below, .. } if conditions.is_empty() => input = below,
                Rel::Limit { input: below, limit: Some(limit), offset: None, .. }
                    if conditions.is_empty()
                        && matches!(limit.kind, ExprKind::Const(Datum::Int8(rows)) if rows > 0) =>
                {
                    input = below;
                }
                // A view, or a query in FROM, that shows its table's columns as they are.
                Rel::Project { input: below, exprs } if is_prefix(exprs) => input = below,
                _ => break,
            }
        }
        let Rel::Scan { table, lock: None, .. } = input else { return None };
        if table.kind != TableKind::Table {
            return None;
        }
        let (mut inner, mut rest) = (Vec::new(), Vec::new());
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for part in conditions {
            if !reads(part)?.around {
                inner.push(part.clone());
            } else if let Some((their, our)) = equal(part) {
                if may_lead(table, their) {
                    return None;
                }
                theirs.push(their.clone());
                ours.push(at_home(our));
            } else {
                rest.push(part.clone());
            }
        }
        if theirs.is_empty() {
            return None;
        }
        let rows = match all_of(inner) {
            None => input.clone(),
            Some(predicate) => Rel::Filter { input: Box::new(input.clone()), predicate },
        };
        Some(Partners { rows, theirs, ours, rest: all_of(rest) })
    }
}

/// An expression of the nested query that reads the row around it alone, as one of that row.
fn at_home(expr: &BoundExpr) -> BoundExpr {
    let mut expr = expr.clone();
    visit_expr_mut(&mut expr, 0, &mut |part, _| {
        if let ExprKind::Column { depth, .. } = &mut part.kind {
            *depth = depth.saturating_sub(1);
        }
        true
    });
    expr
}

fn all_of(mut parts: Vec<BoundExpr>) -> Option<BoundExpr> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(BoundExpr::new(ExprKind::And(parts), Type::BOOL)),
    }
}

impl Compiler<'_> {
    /// Compiles EXISTS as a look at rows kept by what is equal; `None` where that is not what it asks.
    pub fn partner(&mut self, subquery: &Subquery) -> Result<Option<CompiledPredicate>> {
        let Some(Partners { rows, theirs, ours, rest }) = Partners::of(subquery) else { return Ok(None) };
        let ours = self.exprs(&ours)?;
        let (node, theirs, on, kept) = self.forgetting(|c| -> Result<_> {
            let layout = c.declare(&rows);
            c.open(SUB_PLAN);
            let node = c.relation(&rows);
            c.close();
            let node = node?;
            let (theirs, on) = c.scoped(&layout, |c| {
                let on = rest.as_ref().map(|rest| c.predicate(rest)).transpose()?;
                Ok((c.exprs(&theirs)?, on))
            })?;
            let mut kept = rest.as_ref().map(|rest| c.slots_read(rest, &layout)).unwrap_or_default();
            kept.retain(|slot| layout.contains(slot));
            Ok((node, theirs, on, kept))
        })?;
        let cache = self.cache();
        let partner: CompiledPredicate = Box::new(move |ctx| {
            if matches!(ctx.frame.caches[cache], Cache::Empty) {
                ctx.frame.caches[cache] = Cache::Value(Datum::Null);
                return Ok(Some(is_found(ctx, &node, &theirs, &ours, on.as_ref())?));
            }
            let table = by_key(ctx, cache, &node, &theirs, on.is_some().then_some(&kept[..]))?;
            if table.index.is_empty() {
                return Ok(Some(false));
            }
            // NULL equals nothing.
            let key = hash_key(&ours, ctx)?;
            let places = if key.has_null() { None } else { table.index.get(&key) };
            let Some(places) = places else { return Ok(Some(false)) };
            let Some(on) = &on else { return Ok(Some(true)) };
            for place in places {
                ctx.tick()?;
                table.rows.restore(*place as usize, &mut ctx.frame, &kept);
                if on(ctx)? == Some(true) {
                    return Ok(Some(true));
                }
            }
            Ok(Some(false))
        });
        Ok(Some(partner))
    }
}

/// Whether a node has a partner, for the first who asks: a row that comes alone is not worth keeping those of
/// others.
fn is_found(
    ctx: &mut ExecContext<'_, '_>,
    node: &Node,
    theirs: &[Source],
    ours: &[Source],
    on: Option<&CompiledPredicate>,
) -> ExecResult<bool> {
    let (mut key, mut found): (Option<HashKey>, bool) = (None, false);
    let _ = node.run(ctx, &mut |ctx| {
        if key.is_none() {
            key = Some(hash_key(ours, ctx)?).filter(|key| !key.has_null());
        }
        // NULL equals nothing.
        let Some(key) = &key else { return Ok(ControlFlow::Break(())) };
        found = hash_key(theirs, ctx)? == *key
            && match on {
                None => true,
                Some(on) => on(ctx)? == Some(true),
            };
        Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// The rows of a node by their keys, made by the second who asks; `kept`: the slots of them that
/// count, if it matters which rows have a key.
fn by_key(
    ctx: &mut ExecContext<'_, '_>,
    cache: usize,
    node: &Node,
    keys: &[Source],
    kept: Option<&[u32]>,
) -> ExecResult<Arc<HashTable>> {
    if let Cache::Keyed(table) = &ctx.frame.caches[cache] {
        return Ok(table.clone());
    }
    let rows = RowBuffer::new(kept.map_or(0, <[u32]>::len));
    let mut table = HashTable { rows, index: FxHashMap::default() };
    let _ = node.run(ctx, &mut |ctx| {
        let key = hash_key(keys, ctx)?;
        if !key.has_null() {
            let places = table.index.entry(key).or_default();
            if let Some(kept) = kept {
                places.push(table.rows.len() as u32);
                table.rows.push_slots(&ctx.frame, kept);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let table = Arc::new(table);
    ctx.frame.caches[cache] = Cache::Keyed(table.clone());
    Ok(table)
}
