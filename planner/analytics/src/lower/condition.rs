//! Conditions, taken apart as far as their order does not show.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::row::Codec;
use archipel_sql::datum::Datum;
use archipel_sql::types::Type;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, cast, lit};

use super::lowering::Lowering;
use super::statement_constant::settled;
use crate::aggregate::keys::{sides_of_key, tables_of};
use crate::evaluate::is_volatile;
use crate::failure::can_fail;
use crate::lower::Lowerer;
use crate::scan::carrier::{carried_alike, comparable};

impl Lowerer<'_> {
    /// Lowers a condition to tests that must all hold, which DataFusion may move and may
    /// evaluate in any order, each over a whole batch. A part that can fail must not see a row
    /// that a part written before it rules out: such parts are one function, which goes through
    /// them in order and stops at the first that does not hold. What cannot fail is a test of
    /// its own besides. A function takes only parts over the tables it reads anyway, so that it
    /// is still tested below a join. What a join can hash ([`sides_of_key`]) is computed of all rows that
    /// come to the join, as PostgreSQL does.
    pub(crate) fn tests(&mut self, predicate: &BoundExpr, columns: &[(Column, Type)]) -> Lowering<Vec<Expr>> {
        let predicate = settled(predicate, &self.context);
        let (keys, parts): (Vec<_>, Vec<_>) = conjuncts(&predicate)
            .into_iter()
            .partition(|part| can_fail(part) && sides_of_key(part, columns).is_some());
        let parts: Vec<(&BoundExpr, bool, Vec<_>)> =
            parts.into_iter().map(|part| (part, can_fail(part), tables_of(part, columns))).collect();
        let within = |tables: &[_], of: &[_]| tables.iter().all(|table| of.contains(table));
        let mut tests = Vec::with_capacity(keys.len() + parts.len());
        for sides in keys.into_iter().filter_map(|part| sides_of_key(part, columns)) {
            tests.push(self.equal_keys(sides, columns)?);
        }
        for (place, (part, fails, tables)) in parts.iter().enumerate() {
            if !fails {
                tests.push(self.expr(part, columns)?);
                continue;
            }
            let same = |other: &[_]| within(other, tables) && within(tables, other);
            // The last part over these tables that can fail stands for all of them.
            if parts[place + 1..].iter().any(|(_, fails, other)| *fails && same(other)) {
                continue;
            }
            let mut list: Vec<BoundExpr> = parts[..=place]
                .iter()
                .filter(|(part, _, other)| same(other) || within(other, tables) && !is_volatile(part))
                .map(|(part, _, _)| (*part).clone())
                .collect();
            tests.push(match list.len() {
                1 => self.expr(&list.swap_remove(0), columns)?,
                _ => self.expr(&BoundExpr::new(ExprKind::And(list), Type::BOOL), columns)?,
            });
        }
        Ok(tests)
    }

    /// A side of a native comparison, in the carrier both sides share: integers of different
    /// widths meet in the widest, a numeric constant in the scale of the column beside it.
    pub(crate) fn comparand(
        &mut self,
        expr: &BoundExpr,
        other: Option<&BoundExpr>,
        columns: &[(Column, Type)],
    ) -> Lowering<Option<Expr>> {
        let Some(other) = other else { return Ok(None) };
        let (own, their) = (stored_type(expr, columns), stored_type(other, columns));
        if let (Codec::Numeric, Codec::Scaled(scale), ExprKind::Const(Datum::Numeric(value))) =
            (Codec::of(own), Codec::of(their), &expr.kind)
        {
            return Ok(match value.to_scaled(scale) {
                Some(units) if !value.is_nan() => Some(lit(units)),
                _ => None,
            });
        }
        let scaled_beside_constant =
            matches!((Codec::of(own), Codec::of(their)), (Codec::Scaled(_), Codec::Numeric))
                && matches!(other.kind, ExprKind::Const(_));
        if scaled_beside_constant {
            return self.native(expr, columns);
        }
        // A `bpchar` beside a `char(n)` is carried as that one is: without its blanks.
        let is_given = |expr: &BoundExpr| matches!(expr.kind, ExprKind::Const(_) | ExprKind::Param(_));
        match (Codec::of(own), Codec::of(their)) {
            (Codec::Blanks, Codec::Padded(_)) if is_given(expr) => {
                return self.native(&BoundExpr { ty: their, ..expr.clone() }, columns);
            }
            (Codec::Padded(_), Codec::Blanks) if is_given(other) => return self.native(expr, columns),
            _ => {}
        }
        let width = |ty: Type| match Codec::of(ty) {
            Codec::Int2 => Some(2),
            Codec::Int4 => Some(4),
            Codec::Int8 => Some(8),
            _ => None,
        };
        match (width(own), width(their)) {
            (Some(own_width), Some(their_width)) => {
                let native = self.native(expr, columns)?;
                Ok(match native {
                    Some(native) if own_width < their_width => {
                        let wide = if their_width == 8 { DataType::Int64 } else { DataType::Int32 };
                        Some(cast(native, wide))
                    }
                    other => other,
                })
            }
            (None, None) if carried_alike(own, their) && comparable(own) => self.native(expr, columns),
            _ => Ok(None),
        }
    }
}

/// The type an expression is carried by, looking through relabelling.
fn stored_type(expr: &BoundExpr, columns: &[(Column, Type)]) -> Type {
    match &expr.kind {
        ExprKind::Relabel(inner) if Codec::of(inner.ty) == Codec::of(expr.ty) => stored_type(inner, columns),
        ExprKind::Column { depth: 0, index } => {
            columns.get(usize::from(*index)).map_or(expr.ty, |(_, ty)| *ty)
        }
        _ => expr.ty,
    }
}

/// The operands of AND or OR as one expression, no deeper than it must be.
pub(crate) fn paired(mut list: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    while list.len() > 1 {
        let (mut pairs, mut rest) = (Vec::new(), list.into_iter());
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        list = pairs;
    }
    list.pop()
}

/// The parts of a condition that must all hold.
pub(crate) fn conjuncts(predicate: &BoundExpr) -> Vec<&BoundExpr> {
    match &predicate.kind {
        ExprKind::And(list) => list.iter().flat_map(conjuncts).collect(),
        _ => vec![predicate],
    }
}
