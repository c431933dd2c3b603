//! Conditions with EXISTS or IN of a query that reads the row around it, as joins.
//!
//! Run for each row, `EXISTS (SELECT … WHERE t.x = o.x)` reads a table as often as another one has rows. It
//! asks whether a row of `o` has a partner in `t`: a semi-join, and an anti-join where NOT stands before it.
//!
//! ```text
//! Filter [own parts AND EXISTS (Filter [inner AND outer] over input)] over rows
//!     rows, filtered by own parts ⋉ input, filtered by inner, ON outer
//! ```

use archipel_planner::bind::visit::{calls_volatile, is_correlated, visit_expr, visit_expr_mut};
use archipel_planner::bound::{BoundExpr, ExprKind, Rel, Subquery, SubqueryKind};
use archipel_sql::function::ResolvedFunction;
use archipel_sql::types::Type;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, JoinType};
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast};

use crate::aggregate::keys::{Apart, compared_apart};
use crate::evaluate::is_volatile;
use crate::failure::fails_by_range_alone;
use crate::lower::condition::conjuncts;
use crate::lower::lowering::{Lowering, planned};
use crate::lower::operator::native_operator;
use crate::lower::statement_constant::settled;
use crate::lower::{Lowered, Lowerer};

/// A nested query: what it answers of rows that meet conditions.
struct Parts<'s> {
    outputs: &'s [BoundExpr],
    conditions: Vec<&'s BoundExpr>,
    input: &'s Rel,
}

fn parts(rel: &Rel) -> Parts<'_> {
    let (mut input, outputs) = match rel {
        Rel::Project { input, exprs } => (&**input, &exprs[..]),
        other => (other, &[][..]),
    };
    let mut conditions = Vec::new();
    while let Rel::Filter { input: below, predicate } = input {
        conditions.extend(conjuncts(predicate));
        input = below;
    }
    Parts { outputs, conditions, input }
}

/// Whether a nested query can be joined with the rows around it where it is a part of a condition on them:
/// nothing but its own conditions reads these rows, nothing reads others further out, and something is equal.
pub(crate) fn is_joinable(subquery: &Subquery) -> bool {
    // What may answer differently each time is asked for each row.
    if !subquery.correlated || calls_volatile(&subquery.rel) {
        return false;
    }
    let Parts { outputs, conditions, input } = parts(&subquery.rel);
    if input.width() == 0 || is_correlated(input) {
        return false;
    }
    if !conditions.iter().all(|part| !reads_outside(part) || is_plain(part, 1)) {
        return false;
    }
    let found = conditions.into_iter().any(|part| match &part.kind {
        ExprKind::Call { function, args } => match &args[..] {
            [left, right] => {
                let depths = [left, right].map(depth_read);
                finds_partners(function, [left, right])
                    && (depths == [Some(0), Some(1)] || depths == [Some(1), Some(0)])
            }
            _ => false,
        },
        _ => false,
    });
    match &subquery.kind {
        SubqueryKind::Exists => found,
        SubqueryKind::Any { left, operators } => {
            let mut pairs = left.iter().zip(operators).zip(outputs);
            let found = found
                || pairs.any(|((left, operator), output)| {
                    finds_partners(operator, [left, output])
                        && [left, output].map(depth_read) == [Some(0), Some(0)]
                });
            found
                && left.len() == outputs.len()
                && left.len() == operators.len()
                && left.iter().all(|expr| is_plain(expr, 0))
                && outputs.iter().all(|expr| is_plain(expr, 1))
        }
        SubqueryKind::Scalar | SubqueryKind::All { .. } | SubqueryKind::Array { .. } => false,
    }
}

/// Whether a join can find partners by a hash of what is equal. Where it cannot, it looks at all pairs of rows:
/// the native executor stops at the first partner, and may have an index.
fn finds_partners(function: &ResolvedFunction, sides: [&BoundExpr; 2]) -> bool {
    native_operator(function) == Some(Operator::Eq) && sides.into_iter().all(fails_by_range_alone)
}

/// How far out the rows are that an expression reads, if they are all one row.
pub(crate) fn depth_read(expr: &BoundExpr) -> Option<u16> {
    let (mut read, mut one) = (None, true);
    visit_expr(expr, 0, &mut |part, _| {
        if let ExprKind::Column { depth, .. } = part.kind {
            one &= *read.get_or_insert(depth) == depth;
        }
        one
    });
    read.filter(|_| one)
}

/// Whether a part of a nested query's condition reads rows outside of the query.
pub(crate) fn reads_outside(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit_expr(expr, 0, &mut |part, nesting| {
        found |= matches!(part.kind, ExprKind::Column { depth, .. } if depth > nesting);
        !found
    });
    found
}

/// Whether an expression means the same over joined rows: it has no query in it, no effects, and reads no
/// row further out than that.
fn is_plain(expr: &BoundExpr, outermost: u16) -> bool {
    let mut plain = !is_volatile(expr);
    visit_expr(expr, 0, &mut |part, _| {
        plain &= match part.kind {
            ExprKind::Subquery(_) => false,
            ExprKind::Column { depth, .. } => depth <= outermost,
            _ => true,
        };
        plain
    });
    plain
}

/// The join that a part of a condition stands for.
fn as_join(part: &BoundExpr) -> Option<(&Subquery, JoinType)> {
    let (part, kind) = match &part.kind {
        ExprKind::Not(inner) => (&**inner, JoinType::LeftAnti),
        _ => (part, JoinType::LeftSemi),
    };
    let ExprKind::Subquery(subquery) = &part.kind else { return None };
    let subquery: &Subquery = subquery;
    // NOT IN is unknown beside a NULL, which keeps a row out that has no partner.
    let fits = kind == JoinType::LeftSemi || subquery.kind == SubqueryKind::Exists;
    (fits && is_joinable(subquery)).then_some((subquery, kind))
}

/// An expression of a nested query over the rows around it, beside which its own stand from a place on.
fn beside(expr: &BoundExpr, width: usize) -> BoundExpr {
    let mut expr = expr.clone();
    visit_expr_mut(&mut expr, 0, &mut |part, _| {
        if let ExprKind::Column { depth, index } = &mut part.kind {
            match *depth {
                0 => *index += width as u16,
                _ => *depth = 0,
            }
        }
        true
    });
    expr
}

/// Something that is compared of a row: its name, how it is computed, and as which integer it is compared.
type Key = (String, BoundExpr, Option<DataType>);

fn all_of(parts: Vec<BoundExpr>) -> BoundExpr {
    BoundExpr::new(ExprKind::And(parts), Type::BOOL)
}

impl Lowerer<'_> {
    /// The rows that meet a condition.
    pub(crate) fn filter(&mut self, input: Lowered, predicate: &BoundExpr) -> Lowering<Lowered> {
        let (joins, own): (Vec<_>, Vec<_>) =
            conjuncts(predicate).into_iter().partition(|part| as_join(part).is_some());
        let mut rows = input;
        if joins.is_empty() {
            return self.tested(rows, predicate);
        }
        if !own.is_empty() {
            rows = self.tested(rows, &all_of(own.into_iter().cloned().collect()))?;
        }
        for (subquery, kind) in joins.into_iter().filter_map(as_join) {
            rows = self.joined(rows, subquery, kind)?;
        }
        Ok(rows)
    }

    fn tested(&mut self, mut rows: Lowered, predicate: &BoundExpr) -> Lowering<Lowered> {
        for test in self.tests(predicate, &rows.columns)? {
            rows.plan = planned(rows.plan.filter(test))?;
        }
        Ok(rows)
    }

    /// The rows that have a partner among those of a nested query, or those that have none.
    fn joined(&mut self, rows: Lowered, subquery: &Subquery, kind: JoinType) -> Lowering<Lowered> {
        let Parts { outputs, conditions, input } = parts(&subquery.rel);
        let (outer, inner): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|part| reads_outside(part));
        let partners = if inner.is_empty() {
            self.rel(input)?
        } else {
            let predicate = all_of(inner.into_iter().cloned().collect());
            self.rel(&Rel::Filter { input: Box::new(input.clone()), predicate })?
        };
        let width = rows.columns.len();
        let mut on: Vec<BoundExpr> = Vec::new();
        if let SubqueryKind::Any { left, operators } = &subquery.kind {
            for ((left, operator), output) in left.iter().zip(operators).zip(outputs) {
                let args = vec![left.clone(), beside(output, width)];
                on.push(BoundExpr::new(ExprKind::Call { function: *operator, args }, Type::BOOL));
            }
        }
        on.extend(outer.into_iter().map(|part| beside(part, width)));
        let mut columns = rows.columns.clone();
        columns.extend(partners.columns.iter().cloned());
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let (mut tests, mut rest) = (Vec::new(), Vec::new());
        for part in on {
            let part = settled(&part, &self.context);
            // What has a native form may be tested of many pairs.
            let apart = match self.native(&part, &columns)? {
                Some(_) => None,
                None => compared_apart(&part, width),
            };
            match apart {
                Some(Apart { operator, ours: our, theirs: their, wide }) => {
                    let names = [self.name(), self.name()];
                    let [left, right] = names.clone().map(|name| Expr::Column(Column::new_unqualified(name)));
                    tests.push(binary_expr(left, operator, right));
                    let [left, right] = names;
                    ours.push((left, our, wide.clone()));
                    theirs.push((right, their, wide));
                }
                None => rest.push(part),
            }
        }
        if tests.is_empty() || !rest.is_empty() {
            tests.extend(self.tests(&all_of(rest), &columns)?);
        }
        let with_keys = !ours.is_empty();
        let rows = self.with_keys(rows, ours)?;
        let partners = planned(self.with_keys(partners, theirs)?.plan.build())?;
        let mut plan = planned(rows.plan.join_on(partners, kind, tests))?;
        if with_keys {
            let own = rows.columns.iter().map(|(column, _)| Expr::Column(column.clone()));
            plan = planned(plan.project(own))?;
        }
        Ok(Lowered { plan, columns: rows.columns })
    }

    /// Rows with what is compared of them beside their columns, by names: computed once for each row, not for
    /// each pair.
    fn with_keys(&mut self, rows: Lowered, keys: Vec<Key>) -> Lowering<Lowered> {
        if keys.is_empty() {
            return Ok(rows);
        }
        let mut outputs: Vec<Expr> =
            rows.columns.iter().map(|(column, _)| Expr::Column(column.clone())).collect();
        for (name, key, wide) in keys {
            let value = match self.native(&key, &rows.columns)? {
                Some(native) => native,
                None => self.row_function(&key, None, &rows.columns)?,
            };
            let value = match wide {
                Some(wide) => cast(value, wide),
                None => value,
            };
            outputs.push(value.alias(name));
        }
        Ok(Lowered { plan: planned(rows.plan.project(outputs))?, columns: rows.columns })
    }
}
