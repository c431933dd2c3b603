//! What share of rows a condition keeps, guessed by its form.

use archipel_sql::function::Intrinsic;

use super::conjunct::Conjunct;
use crate::bound::{BoundExpr, ExprKind};
use crate::comparison::{Comparison, comparison};

/// The share of rows that one value of a column has.
const SHARE_EQUAL: f64 = 0.1;
/// The share on one side of a bound, or of a condition of which nothing is known.
const SHARE_BOUND: f64 = 0.33;
/// The most that a list of values is taken for.
const SHARE_LISTED_MAX: f64 = 0.5;

/// What share of some rows a condition on them keeps, by its form.
fn share(expr: &BoundExpr) -> f64 {
    let kept = match &expr.kind {
        ExprKind::And(parts) => parts.iter().map(share).product::<f64>(),
        ExprKind::Or(parts) => parts.iter().map(share).sum::<f64>(),
        ExprKind::Not(inner) => 1.0 - share(inner),
        ExprKind::IsNull(_) => SHARE_EQUAL,
        ExprKind::IsNotNull(_) => 1.0 - SHARE_EQUAL,
        ExprKind::InList { list, negated, .. } => {
            let listed = (SHARE_EQUAL * list.len() as f64).min(SHARE_LISTED_MAX);
            if *negated { 1.0 - listed } else { listed }
        }
        ExprKind::Call { function, .. } => match comparison(function.function) {
            Some(Comparison::Eq) => SHARE_EQUAL,
            Some(Comparison::Ne) => 1.0 - SHARE_EQUAL,
            Some(_) => SHARE_BOUND,
            None if function.is(Intrinsic::Like) => SHARE_EQUAL,
            None => SHARE_BOUND,
        },
        _ => SHARE_LISTED_MAX,
    };
    kept.clamp(0.0, 1.0)
}

/// What share of a table's rows the conditions on them alone keep. `layout`: its slots.
pub(in crate::native) fn share_kept(conjuncts: &[Conjunct<'_>], layout: &[u32]) -> f64 {
    let own = |c: &&Conjunct<'_>| !c.slots.is_empty() && c.slots.iter().all(|slot| layout.contains(slot));
    conjuncts.iter().filter(own).map(|c| share(c.expr)).product()
}
