//! Equalities that follow from others: where `a = b` and `b = c` hold, `a = c` does.
//!
//! Columns that the same equality makes equal form a class. An equality of two of them that is not written lets
//! a join go straight from one table to the other. It says nothing that the written ones do not: one that
//! follows from what is already equal where it would be asked is left out ([`Compiler::without_implied`]).

use std::rc::Rc;

use archipel_sql::function::ResolvedFunction;
use archipel_sql::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Conjunct;
use crate::bound::{BoundExpr, ExprKind};
use crate::native::plan::compiler::{Compiler, Layout};

/// Of larger classes no equalities are derived: there is one for each pair.
const CLASS_MAX: usize = 8;

/// An equality that nobody has written.
pub(crate) struct Derived {
    expr: BoundExpr,
    scope: Rc<Layout>,
    base: usize,
    slots: Rc<[u32]>,
}

impl Derived {
    /// It as a conjunct among those that were written.
    pub fn conjunct(&self) -> Conjunct<'_> {
        Conjunct {
            expr: &self.expr,
            scope: self.scope.clone(),
            base: self.base,
            slots: self.slots.clone(),
            derived: true,
        }
    }
}

/// A column, and the side of an equality that it is.
struct Member<'b> {
    slot: u32,
    side: &'b BoundExpr,
}

/// Columns that are equal to each other.
struct Class<'b> {
    equality: ResolvedFunction,
    base: usize,
    members: Vec<Member<'b>>,
}

impl Class<'_> {
    fn holds(&self, equality: &ResolvedFunction, base: usize, slot: u32) -> bool {
        std::ptr::eq(self.equality.function, equality.function)
            && self.base == base
            && self.members.iter().any(|member| member.slot == slot)
    }

    /// The equality of two of its columns.
    fn equate(&self, left: &Member<'_>, right: &Member<'_>) -> Derived {
        let args = vec![renumbered(left.side, 0), renumbered(right.side, 1)];
        let mut slots = [left.slot, right.slot];
        slots.sort_unstable();
        Derived {
            expr: BoundExpr::new(ExprKind::Call { function: self.equality, args }, Type::BOOL),
            scope: Rc::new(vec![left.slot, right.slot]),
            base: self.base,
            slots: Rc::from(slots),
        }
    }
}

/// A column, be it under another name of its type, at another place of the row.
fn renumbered(side: &BoundExpr, place: u16) -> BoundExpr {
    let kind = match &side.kind {
        ExprKind::Relabel(inner) => ExprKind::Relabel(Box::new(renumbered(inner, place))),
        ExprKind::Column { .. } => ExprKind::Column { depth: 0, index: place },
        other => other.clone(),
    };
    BoundExpr { kind, ty: side.ty, domain: side.domain }
}

impl Compiler<'_> {
    /// The equalities between columns of different tables that follow from written ones. `tables`: the slots of
    /// each. Where a constant is known of a column, all of its class have it already.
    pub fn derived_equalities(
        &self,
        conjuncts: &[Conjunct<'_>],
        facts: &FxHashMap<u32, BoundExpr>,
        tables: &[&[u32]],
    ) -> Vec<Derived> {
        if tables.len() < 3 {
            return Vec::new();
        }
        let mut written: FxHashSet<(u32, u32)> = FxHashSet::default();
        let mut classes: Vec<Class<'_>> = Vec::new();
        for conjunct in conjuncts {
            let Some((a, b)) = self.column_equality(conjunct) else { continue };
            let ExprKind::Call { function, args } = &conjunct.expr.kind else { continue };
            let [left, right] = &args[..] else { continue };
            if a == b || facts.contains_key(&a) || facts.contains_key(&b) {
                continue;
            }
            written.insert((a.min(b), a.max(b)));
            let class_of = |slot| classes.iter().position(|class| class.holds(function, conjunct.base, slot));
            let (of_a, of_b) = (class_of(a), class_of(b));
            let (a, b) = (Member { slot: a, side: left }, Member { slot: b, side: right });
            match (of_a, of_b) {
                (None, None) => {
                    classes.push(Class { equality: *function, base: conjunct.base, members: vec![a, b] });
                }
                (Some(class), None) => classes[class].members.push(b),
                (None, Some(class)) => classes[class].members.push(a),
                (Some(one), Some(other)) if one != other => {
                    let moved = classes.swap_remove(one.max(other)).members;
                    classes[one.min(other)].members.extend(moved);
                }
                (Some(_), Some(_)) => {}
            }
        }
        let owner = |slot: u32| tables.iter().position(|table| table.contains(&slot));
        let mut derived = Vec::new();
        for class in classes.iter().filter(|class| (3..=CLASS_MAX).contains(&class.members.len())) {
            for (place, left) in class.members.iter().enumerate() {
                for right in &class.members[place + 1..] {
                    let (a, b) = (left.slot.min(right.slot), left.slot.max(right.slot));
                    let across = matches!((owner(a), owner(b)), (Some(one), Some(other)) if one != other);
                    if across && !written.contains(&(a, b)) {
                        derived.push(class.equate(left, right));
                    }
                }
            }
        }
        derived
    }

    /// The conditions under which a table is joined, less the derived ones that follow from the others and from
    /// what is equal among the rows joined before: one equality for each of its columns says all. `layout`: its
    /// slots.
    pub fn without_implied<'b>(&self, mut conjuncts: Vec<Conjunct<'b>>, layout: &[u32]) -> Vec<Conjunct<'b>> {
        if !conjuncts.iter().any(|conjunct| conjunct.derived) {
            return conjuncts;
        }
        let own = |conjunct: &Conjunct<'_>| {
            let (a, b) = self.column_equality(conjunct)?;
            match (layout.contains(&a), layout.contains(&b)) {
                (true, false) => Some(a),
                (false, true) => Some(b),
                _ => None,
            }
        };
        let written = conjuncts.iter().filter(|conjunct| !conjunct.derived);
        let mut equated: FxHashSet<u32> = written.filter_map(own).collect();
        conjuncts.retain(|conjunct| {
            !conjunct.derived || own(conjunct).is_some_and(|column| equated.insert(column))
        });
        conjuncts
    }
}
