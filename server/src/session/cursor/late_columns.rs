//! Columns of a cursor that are computed as its rows are fetched, where some call `nextval`, `random`,
//! `clock_timestamp` or other volatile functions of the server. What they are computed of is read when the
//! cursor is opened, and kept.
//!
//! Functions that users have made are called when it is opened: they may have to stop for their session.
//!
//! A row that was fetched is kept, and is the same when it is fetched again. PostgreSQL computes such columns anew
//! where its plan can go backwards, draws from sequences once more, and keeps them elsewhere (UNION, for one); its
//! manual warns that they may differ.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use archipel_planner::bind::visit::{calls_volatile, is_volatile, visit_children_mut, visit_expr};
use archipel_planner::bound::{BoundExpr, BoundQuery, BoundStatement, ExprKind, Rel};
use archipel_planner::native::cursor::{MoreRows, OpenCursor};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Type;

use crate::encode::RowsTo;
use crate::session::Session;
use crate::statement::cursor::cursor_over;
use crate::statement::{Body, Origin, Prepared, RowPlan};

/// A query in two parts.
struct Parts {
    /// What is read when the cursor is opened.
    early: BoundQuery,
    /// The query's columns of one such row, which is given by parameters behind those of the query.
    late: BoundQuery,
    /// Their types.
    types: Vec<Type>,
}

impl Parts {
    /// Those of a query with so many parameters; `None` where nothing is to be computed late, or cannot be.
    fn of(query: &BoundQuery, params: usize) -> Option<Parts> {
        let Rel::Project { input, exprs } = &query.rel else { return None };
        if !exprs.iter().any(is_volatile) || calls_volatile(input) {
            return None;
        }
        let mut early: Vec<BoundExpr> = Vec::new();
        let mut late = Vec::with_capacity(exprs.len());
        for expr in exprs {
            if !is_simple(expr) {
                if is_volatile(expr) {
                    return None;
                }
                late.push(given(params, &mut early, expr.clone())?);
                continue;
            }
            let mut expr = expr.clone();
            let mut places = Some(());
            take_columns(&mut expr, &mut |column| match given(params, &mut early, column) {
                Some(param) => param,
                None => {
                    places = None;
                    BoundExpr::constant(Datum::Null, Type::UNKNOWN)
                }
            });
            places?;
            late.push(expr);
        }
        let types = early.iter().map(|expr| expr.ty).collect();
        let late = Rel::Project { input: Box::new(Rel::Unit), exprs: late };
        let early = Rel::Project { input: input.clone(), exprs: early };
        let columns = query.columns.clone();
        Some(Parts {
            early: BoundQuery { rel: early, columns: Vec::new() },
            late: BoundQuery { rel: late, columns },
            types,
        })
    }
}

/// The parameter that a value which is read early is to whom it is given.
fn given(params: usize, early: &mut Vec<BoundExpr>, expr: BoundExpr) -> Option<BoundExpr> {
    let known = early.iter().position(|other| *other == expr);
    let place = known.unwrap_or(early.len());
    let param = ExprKind::Param(u16::try_from(params + place).ok()?);
    let param = BoundExpr::new(param, expr.ty).of_domain(expr.domain);
    if known.is_none() {
        early.push(expr);
    }
    Some(param)
}

/// Whether an expression reads nothing but its row, and calls nothing of users'.
fn is_simple(expr: &BoundExpr) -> bool {
    let mut simple = true;
    visit_expr(expr, 0, &mut |part, _| {
        simple &= !matches!(
            part.kind,
            ExprKind::Routine { .. }
                | ExprKind::Subquery(_)
                | ExprKind::Variable(_)
                | ExprKind::ArrayConvert { .. }
                | ExprKind::RowConvert { .. }
                | ExprKind::Domain { .. }
        ) && !matches!(part.kind, ExprKind::Column { depth, .. } if depth > 0);
        simple
    });
    simple
}

/// Puts something in the place of each column.
fn take_columns(expr: &mut BoundExpr, take: &mut dyn FnMut(BoundExpr) -> BoundExpr) {
    if matches!(expr.kind, ExprKind::Column { .. }) {
        *expr = take(expr.clone());
        return;
    }
    visit_children_mut(expr, 0, &mut |part, _| {
        take_columns(part, take);
        false
    });
}

/// Rows whose other columns are still to be computed.
pub(super) struct LateRows {
    prepared: Arc<Prepared>,
    params: Vec<Datum>,
    early: Arc<Vec<Vec<Datum>>>,
    /// What reading them has failed with.
    failure: Option<Arc<SqlError>>,
    next: AtomicUsize,
}

impl fmt::Debug for LateRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows with columns that are computed late")
    }
}

impl MoreRows for LateRows {
    fn poll_more(&self, _: &mut Context<'_>) -> Poll<Option<Result<Vec<Vec<Datum>>>>> {
        Poll::Ready(Some(Err(SqlError::internal("rows that their session computes"))))
    }

    fn repeats(&self) -> bool {
        false
    }

    fn again(&self) -> Arc<dyn MoreRows> {
        let next = AtomicUsize::new(0);
        let (prepared, params, early) = (self.prepared.clone(), self.params.clone(), self.early.clone());
        Arc::new(LateRows { prepared, params, early, failure: self.failure.clone(), next })
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl Session {
    /// A cursor whose volatile columns are computed as they are fetched; `None`: there are none, or they
    /// cannot be.
    pub(super) async fn open_late(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: &RowPlan,
        params: &[Datum],
        backward: bool,
    ) -> Result<Option<OpenCursor>> {
        let BoundStatement::Query(query) = &plan.bound else { return Ok(None) };
        let Some(parts) = Parts::of(query, prepared.params.len()) else { return Ok(None) };
        prepared.allowed()?;
        self.note_query();
        let types = prepared.params.iter().copied().chain(parts.types.iter().copied());
        let late = self.computed(prepared, parts.late, types.collect())?;
        let early = self.computed(prepared, parts.early, prepared.params.clone())?;
        let Body::Rows(early_plan) = &early.body else { return Ok(None) };
        // It belongs to the transaction that fetches from it.
        self.enter_transaction(false);
        let (rows, failure) =
            Box::pin(self.rows_or_failure(&early, early_plan, params.to_vec(), false)).await?;
        let cursor = cursor_over(prepared, Vec::new(), backward);
        let late = LateRows {
            prepared: late,
            params: params.to_vec(),
            early: Arc::new(rows),
            failure,
            next: AtomicUsize::new(0),
        };
        Ok(Some(cursor.with_more(Arc::new(late))))
    }

    /// A part of a query, to be run by itself.
    fn computed(
        &mut self,
        whole: &Prepared,
        query: BoundQuery,
        params: Arc<[Type]>,
    ) -> Result<Arc<Prepared>> {
        let plan = self.planning().compile_part(BoundStatement::Query(query))?;
        Ok(Arc::new(Prepared {
            origin: Origin::Part,
            params,
            columns: None,
            body: Body::Rows(Arc::new(plan)),
            basis: None,
            session_dependent: true,
            catalog_version: self.catalog_version(),
            ..Prepared::clone(whole)
        }))
    }

    /// The next row of such a cursor; `None` behind the last one.
    pub(super) async fn next_late(&mut self, late: &LateRows) -> Option<Result<Vec<Vec<Datum>>>> {
        let Some(early) = late.early.get(late.next.fetch_add(1, Ordering::Relaxed)) else {
            return late.failure.as_ref().map(|failure| Err(SqlError::clone(failure)));
        };
        let Body::Rows(plan) = &late.prepared.body else { return None };
        let params = late.params.iter().chain(early).cloned().collect();
        self.enter_transaction(false);
        let run = self.statement_run(plan.clone(), params, RowsTo::Kept);
        let ran = Box::pin(self.run_to_end(&late.prepared, run)).await;
        Some(ran.map(|(_, rows)| rows))
    }
}
