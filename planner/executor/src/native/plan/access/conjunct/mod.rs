//! Conditions taken apart: the conjuncts of WHERE, ON and HAVING, and what each one reads.
//!
//! A conjunct remembers the scope it was written in, so that it can be evaluated wherever the
//! slots it reads are filled: below a projection, on one side of a join, inside a scan.

pub(crate) mod derived;

use std::rc::Rc;

use archipel_sql::error::Result;
use rustc_hash::FxHashMap;

use crate::bind::visit::{effort, visit_expr_mut};
use crate::bound::{BoundExpr, ExprKind};
use crate::comparison::{Comparison, comparison};
use crate::native::plan::compiler::{Compiler, Layout};
use crate::native::plan::walk;

/// One condition that must hold.
#[derive(Clone)]
pub(crate) struct Conjunct<'b> {
    pub expr: &'b BoundExpr,
    /// The row it reads at depth 0.
    scope: Rc<Layout>,
    /// How many scopes were open outside that row.
    base: usize,
    /// The slots it reads of that row and of rows further out.
    pub slots: Rc<[u32]>,
    /// Whether nobody has written it: it follows from others.
    derived: bool,
}

/// How a conjunct restricts one column, if it does so in a way that an ordered tree can serve.
pub(crate) enum Restriction<'b> {
    Compare(Comparison, &'b BoundExpr),
    In(&'b [BoundExpr]),
    Any(&'b BoundExpr),
    IsNull,
}

/// Splits ANDs.
pub(crate) fn split<'b>(expr: &'b BoundExpr, out: &mut Vec<&'b BoundExpr>) {
    match &expr.kind {
        ExprKind::And(parts) => parts.iter().for_each(|part| split(part, out)),
        _ => out.push(expr),
    }
}

/// Conditions in the order in which they are asked.
pub(crate) fn in_order<'b>(conjuncts: &[Conjunct<'b>]) -> Vec<Conjunct<'b>> {
    let mut ordered = conjuncts.to_vec();
    ordered.sort_by_key(|conjunct| effort(conjunct.expr));
    ordered
}

impl<'b> Conjunct<'b> {
    /// Whether an expression in it is this one over the row of these slots.
    pub fn is_over(&self, expr: &BoundExpr, row: &[u32], wanted: &BoundExpr) -> bool {
        let mut own = expr.clone();
        let mut readable = true;
        visit_expr_mut(&mut own, 0, &mut |part, nesting| {
            if let ExprKind::Column { depth, index } = &mut part.kind {
                let slot = (*depth == 0 && nesting == 0).then(|| self.scope.get(usize::from(*index)));
                let place = slot.flatten().and_then(|slot| row.iter().position(|known| known == slot));
                match place {
                    Some(place) => *index = place as u16,
                    None => readable = false,
                }
            }
            readable
        });
        readable && own.is_same(wanted)
    }

    /// Whether it reads any of these slots.
    pub fn reads_any(&self, slots: &[u32]) -> bool {
        self.slots.iter().any(|slot| slots.contains(slot))
    }
}

impl Compiler<'_> {
    /// The conjuncts of a condition over a row.
    pub fn conjuncts<'b>(&self, expr: &'b BoundExpr, scope: &Layout) -> Vec<Conjunct<'b>> {
        let mut parts = Vec::new();
        split(expr, &mut parts);
        let scope = Rc::new(scope.clone());
        parts
            .into_iter()
            .map(|expr| {
                let slots = self.slots_read(expr, &scope);
                Conjunct {
                    expr,
                    scope: scope.clone(),
                    base: self.depth(),
                    slots: slots.into(),
                    derived: false,
                }
            })
            .collect()
    }

    /// The slots an expression over `scope` reads, of outer rows too.
    pub fn slots_read(&self, expr: &BoundExpr, scope: &[u32]) -> Vec<u32> {
        let mut slots = Vec::new();
        walk::visit_expr(expr, 0, &mut |inner, nesting| {
            if let ExprKind::Column { depth, index } = inner.kind {
                let slot = match depth.checked_sub(nesting) {
                    Some(0) => scope.get(usize::from(index)).copied(),
                    Some(outward) => self.peek(outward - 1, index),
                    None => None,
                };
                slots.extend(slot);
            }
        });
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Compiles something in the scope of a conjunct.
    pub fn in_conjunct<T>(
        &mut self,
        conjunct: &Conjunct<'_>,
        body: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let inner = self.cut_scopes(conjunct.base);
        let result = self.scoped(&conjunct.scope, body);
        self.restore_scopes(inner);
        result
    }

    /// A part of a conjunct, as a condition of its own.
    pub fn part_of<'b>(&mut self, conjunct: &Conjunct<'b>, part: &'b BoundExpr) -> Conjunct<'b> {
        let slots = self.value_slots(conjunct, part);
        let (scope, base) = (conjunct.scope.clone(), conjunct.base);
        Conjunct { expr: part, scope, base, slots: slots.into(), derived: false }
    }

    /// The column an expression of a conjunct is, as a slot.
    pub fn column_slot(&self, conjunct: &Conjunct<'_>, expr: &BoundExpr) -> Option<u32> {
        match &expr.kind {
            ExprKind::Column { depth: 0, index } => conjunct.scope.get(usize::from(*index)).copied(),
            ExprKind::Relabel(inner) => self.column_slot(conjunct, inner),
            _ => None,
        }
    }

    /// The slot behind a column reference of a conjunct.
    pub fn conjunct_slot(&self, conjunct: &Conjunct<'_>, depth: u16, index: u16) -> Option<u32> {
        if depth == 0 { conjunct.scope.get(usize::from(index)).copied() } else { None }
    }

    /// The slots an expression inside a conjunct reads.
    pub fn value_slots(&mut self, conjunct: &Conjunct<'_>, expr: &BoundExpr) -> Vec<u32> {
        let inner = self.cut_scopes(conjunct.base);
        let slots = self.slots_read(expr, &conjunct.scope);
        self.restore_scopes(inner);
        slots
    }

    /// How a conjunct restricts the column in `slot`.
    pub fn restriction<'b>(&self, conjunct: &Conjunct<'b>, slot: u32) -> Option<Restriction<'b>> {
        self.restriction_where(conjunct, &|expr| self.column_slot(conjunct, expr) == Some(slot))
    }

    /// How a conjunct restricts what `is_it` recognises.
    pub fn restriction_where<'b>(
        &self,
        conjunct: &Conjunct<'b>,
        is_it: &dyn Fn(&BoundExpr) -> bool,
    ) -> Option<Restriction<'b>> {
        match &conjunct.expr.kind {
            ExprKind::Call { function, args } if args.len() == 2 => {
                let comparison = comparison(function.function)?;
                if is_it(&args[0]) && comparable(&args[0], &args[1]) {
                    return Some(Restriction::Compare(comparison, &args[1]));
                }
                if is_it(&args[1]) && comparable(&args[1], &args[0]) {
                    return Some(Restriction::Compare(comparison.flip(), &args[0]));
                }
                None
            }
            ExprKind::InList { left, list, equality, negated: false }
                if comparison(equality.function) == Some(Comparison::Eq)
                    && is_it(left)
                    && list.iter().all(|item| comparable(left, item)) =>
            {
                Some(Restriction::In(list))
            }
            ExprKind::ArrayOp { left, array, operator, all: false }
                if comparison(operator.function) == Some(Comparison::Eq) && is_it(left) =>
            {
                Some(Restriction::Any(array))
            }
            ExprKind::IsNull(inner) if is_it(inner) => Some(Restriction::IsNull),
            _ => None,
        }
    }

    /// If the conjunct equates two columns: their slots.
    pub fn column_equality(&self, conjunct: &Conjunct<'_>) -> Option<(u32, u32)> {
        let ExprKind::Call { function, args } = &conjunct.expr.kind else { return None };
        if args.len() != 2 || comparison(function.function) != Some(Comparison::Eq) {
            return None;
        }
        if args[0].ty.oid != args[1].ty.oid {
            return None;
        }
        Some((self.column_slot(conjunct, &args[0])?, self.column_slot(conjunct, &args[1])?))
    }

    /// Notes the columns that conditions of a join compare with what others have, as evidence of where rows
    /// belong.
    pub fn note_joined(&mut self, conjuncts: &[Conjunct<'_>]) {
        for conjunct in conjuncts {
            let ExprKind::Call { function, args } = &conjunct.expr.kind else { continue };
            let [left, right] = &args[..] else { continue };
            if comparison(function.function) != Some(Comparison::Eq) {
                continue;
            }
            for (column, other) in [(left, right), (right, left)] {
                if let Some(slot) = self.column_slot(conjunct, column)
                    && !self.value_slots(conjunct, other).is_empty()
                {
                    self.joined.insert(slot);
                }
            }
        }
    }

    /// Columns that must equal something computable beforehand, directly or through other
    /// columns: `a.x = $1 AND b.x = a.x` says so of both.
    pub fn constants_of(&mut self, conjuncts: &[Conjunct<'_>]) -> FxHashMap<u32, BoundExpr> {
        let mut facts: FxHashMap<u32, BoundExpr> = FxHashMap::default();
        for conjunct in conjuncts {
            for slot in conjunct.slots.iter() {
                if let Some(Restriction::Compare(Comparison::Eq, value)) = self.restriction(conjunct, *slot) {
                    let value = self.in_conjunct(conjunct, |c| Ok(c.row_free(value))).ok().flatten();
                    if let Some(value) = value {
                        facts.entry(*slot).or_insert(value);
                    }
                }
            }
        }
        loop {
            let mut grown = false;
            for conjunct in conjuncts {
                let Some((a, b)) = self.column_equality(conjunct) else { continue };
                for (from, to) in [(a, b), (b, a)] {
                    if let Some(value) = facts.get(&from).cloned()
                        && !facts.contains_key(&to)
                    {
                        facts.insert(to, value);
                        grown = true;
                    }
                }
            }
            if !grown {
                return facts;
            }
        }
    }
}

/// Whether values of the two expressions compare as stored: the same type, or integers.
pub(crate) fn comparable(column: &BoundExpr, value: &BoundExpr) -> bool {
    use archipel_sql::types::Oid;
    let family = |oid: Oid| match oid {
        Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::OID => Oid::INT8,
        oid if oid.names_object() => Oid::INT8,
        Oid::TEXT | Oid::VARCHAR | Oid::NAME | Oid::BPCHAR | Oid::UNKNOWN => Oid::TEXT,
        Oid::CIDR => Oid::INET,
        other => other,
    };
    family(column.ty.oid) == family(value.ty.oid)
}
