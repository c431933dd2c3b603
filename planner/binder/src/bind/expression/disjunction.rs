//! Conditions with OR, in the form that is best served. What they say stays the same, NULLs included.
//!
//! - What all arms ask for is asked for once, beside the OR (find_duplicate_ors in prepqual.c): so a
//!   join finds its key in `(a.id = b.id AND …) OR (a.id = b.id AND …)`.
//! - Arms that compare one value with given ones are one list: `a = 1 OR a = 2` is `a IN (1, 2)`.
//! - What the arms of an OR over several tables ask of one of them is asked of that alone, too
//!   (orclauses.c): its rows are fewer before they are joined.
//!
//! Nothing here depends on the values of literals beyond whether two are alike.

use archipel_sql::function::ResolvedFunction;
use archipel_sql::types::Type;

use crate::bind::visit::{is_volatile, same_expr, visit_expr};
use crate::bound::*;
use crate::comparison::{Comparison, comparison};

/// So many kinds of comparisons are looked through for one that another arm joins.
const KINDS_MAX: usize = 16;

/// A condition in its best form.
pub(crate) fn simplified(condition: BoundExpr) -> BoundExpr {
    let ty = condition.ty;
    match condition.kind {
        ExprKind::And(parts) => all_of(parts.into_iter().map(simplified).flat_map(conjuncts).collect()),
        ExprKind::Or(arms) => factored(arms.into_iter().map(simplified).flat_map(disjuncts).collect()),
        kind => BoundExpr::new(kind, ty),
    }
}

/// The same of a condition over rows that are joined of tables with so many columns each.
pub(crate) fn simplified_over(condition: BoundExpr, widths: &[usize]) -> BoundExpr {
    let condition = simplified(condition);
    if widths.len() < 2 {
        return condition;
    }
    let mut parts = conjuncts(condition);
    let mut found = Vec::new();
    for part in &parts {
        let ExprKind::Or(arms) = &part.kind else { continue };
        let mut start = 0;
        for width in widths {
            found.extend(asked_of(arms, start, start + width));
            start += width;
        }
    }
    parts.extend(found);
    all_of(parts)
}

/// How many columns the tables of a join have, from left to right.
pub(crate) fn widths(rel: &Rel) -> Vec<usize> {
    let mut widths = Vec::new();
    // From right to left.
    let mut rest = vec![rel];
    while let Some(rel) = rest.pop() {
        match rel {
            Rel::Join { left, right, .. } => rest.extend([&**right, &**left]),
            rel => widths.push(rel.width()),
        }
    }
    widths
}

fn conjuncts(expr: BoundExpr) -> Vec<BoundExpr> {
    match expr.kind {
        ExprKind::And(parts) => parts,
        kind => vec![BoundExpr::new(kind, expr.ty)],
    }
}

fn disjuncts(expr: BoundExpr) -> Vec<BoundExpr> {
    match expr.kind {
        ExprKind::Or(arms) => arms,
        kind => vec![BoundExpr::new(kind, expr.ty)],
    }
}

fn all_of(mut parts: Vec<BoundExpr>) -> BoundExpr {
    match parts.len() {
        1 => parts.swap_remove(0),
        _ => BoundExpr::new(ExprKind::And(parts), Type::BOOL),
    }
}

fn any_of(mut arms: Vec<BoundExpr>) -> BoundExpr {
    match arms.len() {
        1 => arms.swap_remove(0),
        _ => BoundExpr::new(ExprKind::Or(arms), Type::BOOL),
    }
}

/// Takes out what all arms ask for.
fn factored(arms: Vec<BoundExpr>) -> BoundExpr {
    let mut arms: Vec<Vec<BoundExpr>> = arms.into_iter().map(conjuncts).collect();
    let shortest = arms.iter().enumerate().min_by_key(|(_, parts)| parts.len()).map(|(place, _)| place);
    let Some(shortest) = shortest else { return any_of(Vec::new()) };
    let asked_by_all = |part: &&BoundExpr| {
        !is_volatile(part) && arms.iter().all(|parts| parts.iter().any(|other| same_part(other, part)))
    };
    let mut common: Vec<BoundExpr> = Vec::new();
    for part in arms[shortest].iter().filter(asked_by_all) {
        if !common.iter().any(|known| same_part(known, part)) {
            common.push(part.clone());
        }
    }
    if common.is_empty() {
        return any_of(listed(arms.into_iter().map(all_of).collect()));
    }
    for parts in &mut arms {
        parts.retain(|part| !common.iter().any(|known| same_part(known, part)));
    }
    // An arm that asks for nothing else lets pass what the others do.
    if arms.iter().all(|parts| !parts.is_empty()) {
        let rest = listed(arms.into_iter().map(all_of).flat_map(disjuncts).collect());
        common.extend(conjuncts(any_of(rest)));
    }
    all_of(common)
}

/// Whether two parts ask for the same; an equality does from either side.
fn same_part(one: &BoundExpr, other: &BoundExpr) -> bool {
    if same_expr(one, other) {
        return true;
    }
    let (ExprKind::Call { function, args }, ExprKind::Call { function: same, args: others }) =
        (&one.kind, &other.kind)
    else {
        return false;
    };
    let ([a, b], [c, d]) = (&args[..], &others[..]) else { return false };
    let alike = function.function.args.windows(2).all(|pair| pair[0] == pair[1]);
    let equality = comparison(function.function) == Some(Comparison::Eq);
    equality && alike && std::ptr::eq(function.function, same.function) && same_expr(a, d) && same_expr(b, c)
}

/// A comparison of a value with given ones.
struct Equality {
    value: BoundExpr,
    equality: ResolvedFunction,
    given: Vec<BoundExpr>,
}

impl Equality {
    /// What an arm is, if it is one; else the arm.
    fn of(arm: BoundExpr) -> Result<Equality, BoundExpr> {
        let ty = arm.ty;
        match arm.kind {
            ExprKind::Call { function, args } if comparison(function.function) == Some(Comparison::Eq) => {
                let alike = function.function.args.windows(2).all(|pair| pair[0] == pair[1]);
                match <[BoundExpr; 2]>::try_from(args) {
                    Ok([value, given]) if is_read(&value) && is_given(&given) => {
                        Ok(Equality { value, equality: function, given: vec![given] })
                    }
                    Ok([given, value]) if alike && is_read(&value) && is_given(&given) => {
                        Ok(Equality { value, equality: function, given: vec![given] })
                    }
                    Ok(args) => Err(BoundExpr::new(ExprKind::Call { function, args: args.into() }, ty)),
                    Err(args) => Err(BoundExpr::new(ExprKind::Call { function, args }, ty)),
                }
            }
            ExprKind::InList { left, list, equality, negated: false }
                if comparison(equality.function) == Some(Comparison::Eq)
                    && is_read(&left)
                    && list.iter().all(is_given) =>
            {
                Ok(Equality { value: *left, equality, given: list })
            }
            kind => Err(BoundExpr::new(kind, ty)),
        }
    }

    fn into_arm(self) -> BoundExpr {
        let Equality { value, equality, mut given } = self;
        let ty = Type::BOOL;
        match (given.pop(), given.is_empty()) {
            (Some(only), true) => {
                BoundExpr::new(ExprKind::Call { function: equality, args: vec![value, only] }, ty)
            }
            (last, _) => {
                given.extend(last);
                let left = Box::new(value);
                BoundExpr::new(ExprKind::InList { left, list: given, equality, negated: false }, ty)
            }
        }
    }
}

/// Whether it reads rows, and answers alike however often it is asked.
fn is_read(expr: &BoundExpr) -> bool {
    let mut reads = false;
    let mut plain = true;
    visit_expr(expr, 0, &mut |part, _| {
        reads |= matches!(part.kind, ExprKind::Column { .. });
        plain &= !matches!(part.kind, ExprKind::Subquery(_) | ExprKind::Routine { .. });
        plain
    });
    reads && plain && !is_volatile(expr)
}

/// Whether it is there before the statement runs: to compute it costs nothing and cannot fail.
fn is_given(expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::Const(_) => !expr.is_null_constant(),
        ExprKind::Param(_) | ExprKind::Variable(_) => true,
        ExprKind::Relabel(inner) => is_given(inner),
        _ => false,
    }
}

/// Puts the comparisons of one value into one list, where the first of them stands.
fn listed(arms: Vec<BoundExpr>) -> Vec<BoundExpr> {
    let mut out: Vec<Result<Equality, BoundExpr>> = Vec::with_capacity(arms.len());
    // Where in `out` comparisons stand.
    let mut kinds: Vec<usize> = Vec::new();
    for arm in arms {
        let arm = match Equality::of(arm) {
            Ok(arm) => arm,
            Err(other) => {
                out.push(Err(other));
                continue;
            }
        };
        let same = |place: &usize| match &out[*place] {
            Ok(known) => known.equality == arm.equality && same_expr(&known.value, &arm.value),
            Err(_) => false,
        };
        match kinds.iter().rev().take(KINDS_MAX).copied().find(same) {
            Some(place) => {
                if let Ok(known) = &mut out[place] {
                    known.given.extend(arm.given);
                }
            }
            None => {
                kinds.push(out.len());
                out.push(Ok(arm));
            }
        }
    }
    out.into_iter().map(|arm| arm.map_or_else(|other| other, Equality::into_arm)).collect()
}

/// What all arms together ask of the columns from `start` to `end` alone; `None` where one asks nothing.
fn asked_of(arms: &[BoundExpr], start: usize, end: usize) -> Option<BoundExpr> {
    let mut asked = Vec::with_capacity(arms.len());
    let mut whole = true;
    for arm in arms {
        let list = match &arm.kind {
            ExprKind::And(list) => &list[..],
            _ => std::slice::from_ref(arm),
        };
        let parts: Vec<BoundExpr> = list.iter().filter(|part| is_of(part, start, end)).cloned().collect();
        if parts.is_empty() {
            return None;
        }
        whole &= parts.len() == list.len();
        asked.push(all_of(parts));
    }
    // The OR itself is of one table.
    (!whole).then(|| simplified(any_of(asked)))
}

/// Whether an expression reads these columns, and else nothing of the row and no other rows.
fn is_of(expr: &BoundExpr, start: usize, end: usize) -> bool {
    let (mut reads, mut only) = (false, !is_volatile(expr));
    visit_expr(expr, 0, &mut |part, nesting| {
        match part.kind {
            ExprKind::Column { depth, index } if depth == nesting => {
                let own = (start..end).contains(&usize::from(index));
                reads |= own;
                only &= own;
            }
            ExprKind::Subquery(_) | ExprKind::Routine { .. } => only = false,
            _ => {}
        }
        only
    });
    reads && only
}

#[cfg(test)]
mod tests {
    use archipel_sql::datum::Datum;
    use archipel_sql::function::lookup_operators;

    use super::*;

    fn number(value: i32) -> BoundExpr {
        BoundExpr::constant(Datum::Int4(value), Type::INT4)
    }

    fn equal(column: usize, value: BoundExpr) -> BoundExpr {
        let found = lookup_operators("=").iter().find(|operator| operator.function.name == "int4eq");
        let function = ResolvedFunction { function: found.expect("int4eq").function, result: Type::BOOL };
        let args = vec![BoundExpr::column(column, Type::INT4), value];
        BoundExpr::new(ExprKind::Call { function, args }, Type::BOOL)
    }

    fn and(parts: Vec<BoundExpr>) -> BoundExpr {
        BoundExpr::new(ExprKind::And(parts), Type::BOOL)
    }

    fn or(arms: Vec<BoundExpr>) -> BoundExpr {
        BoundExpr::new(ExprKind::Or(arms), Type::BOOL)
    }

    #[test]
    fn what_all_arms_ask_for_is_taken_out() {
        let key = || equal(0, BoundExpr::column(4, Type::INT4));
        let arms = vec![and(vec![key(), equal(1, number(1))]), and(vec![equal(2, number(2)), key()])];
        let wanted = and(vec![key(), or(vec![equal(1, number(1)), equal(2, number(2))])]);
        assert_eq!(simplified(or(arms)), wanted);
        let turned = equal(4, BoundExpr::column(0, Type::INT4));
        let arms = vec![and(vec![key(), equal(1, number(1))]), and(vec![equal(2, number(2)), turned])];
        assert_eq!(simplified(or(arms)), wanted);
        let absorbed = or(vec![key(), and(vec![key(), equal(1, number(1))])]);
        assert_eq!(simplified(absorbed), key());
    }

    #[test]
    fn comparisons_of_one_value_are_a_list() {
        let arms = or(vec![equal(0, number(1)), equal(1, number(2)), equal(0, number(3))]);
        let ExprKind::Or(arms) = simplified(arms).kind else { panic!("no OR") };
        assert!(matches!(&arms[0].kind, ExprKind::InList { list, .. } if *list == [number(1), number(3)]));
        assert_eq!(arms[1], equal(1, number(2)));
        assert_eq!(arms.len(), 2);
    }

    #[test]
    fn each_table_is_asked_for_what_the_arms_ask_of_it() {
        let arm = |left, right| and(vec![equal(0, number(left)), equal(3, number(right))]);
        let ExprKind::And(parts) = simplified_over(or(vec![arm(1, 2), arm(3, 4)]), &[2, 2]).kind else {
            panic!("no AND")
        };
        assert!(matches!(&parts[..], [BoundExpr { kind: ExprKind::Or(_), .. }, left, right]
            if matches!(&left.kind, ExprKind::InList { list, .. } if *list == [number(1), number(3)])
                && matches!(&right.kind, ExprKind::InList { list, .. } if *list == [number(2), number(4)])));
    }
}
