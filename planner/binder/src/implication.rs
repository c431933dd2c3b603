//! Whether one condition over a row says all that another one does (PostgreSQL's predtest.c), as far as that is
//! needed to find the partial index that ON CONFLICT means.
//!
//! What PostgreSQL proves with the values of parameters, as it plans with them, is proved here up to conditions on
//! these: `state = $1` says `state = 1` where `$1 = 1`.

use std::borrow::Cow;
use std::cmp::Ordering;

use archipel_sql::datum::Datum;
use archipel_sql::function::{FunctionContext, ResolvedFunction};
use archipel_sql::types::Type;

use crate::bind::visit::visit_expr;
use crate::bound::{BoundExpr, ExprKind};
use crate::comparison::{Comparison, comparison, order};
use crate::evaluate::{RouteInputs, evaluate, is_row_free};
use crate::known::is_known;

/// So many pairs of parts are compared: conditions of thousands of parts are taken for different ones.
const STEPS_MAX: usize = 20_000;

/// What must hold of parameters for a condition to say all that another one does: nothing of them where the
/// conditions alone tell it. `None` where it cannot be told.
pub fn implied(given: &BoundExpr, wanted: &BoundExpr) -> Option<Vec<BoundExpr>> {
    Proof { steps: 0 }.implied(given, wanted)
}

/// The conditions that a condition's value is made of.
enum Parts<'e> {
    All(Vec<Cow<'e, BoundExpr>>),
    Any(Vec<Cow<'e, BoundExpr>>),
    One,
}

fn parts(expr: &BoundExpr) -> Parts<'_> {
    match &expr.kind {
        ExprKind::And(parts) => Parts::All(parts.iter().map(Cow::Borrowed).collect()),
        ExprKind::Or(arms) => Parts::Any(arms.iter().map(Cow::Borrowed).collect()),
        ExprKind::InList { left, list, equality, negated: false } => {
            let equals = |item: &BoundExpr| {
                let args = vec![(**left).clone(), item.clone()];
                Cow::Owned(BoundExpr::new(ExprKind::Call { function: *equality, args }, Type::BOOL))
            };
            Parts::Any(list.iter().map(equals).collect())
        }
        _ => Parts::One,
    }
}

struct Proof {
    steps: usize,
}

impl Proof {
    /// predicate_implied_by_recurse.
    fn implied(&mut self, given: &BoundExpr, wanted: &BoundExpr) -> Option<Vec<BoundExpr>> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return None;
        }
        if given.is_same(wanted) {
            return Some(Vec::new());
        }
        match (parts(given), parts(wanted)) {
            (_, Parts::All(needed)) => self.each(&needed, |proof, part| proof.implied(given, part)),
            (Parts::Any(arms), _) => self.each(&arms, |proof, arm| proof.implied(arm, wanted)),
            (Parts::All(known), Parts::Any(arms)) => arms
                .iter()
                .find_map(|arm| self.implied(given, arm))
                .or_else(|| known.iter().find_map(|part| self.implied(part, wanted))),
            (Parts::All(known), Parts::One) => known.iter().find_map(|part| self.implied(part, wanted)),
            (Parts::One, Parts::Any(arms)) => arms.iter().find_map(|arm| self.implied(given, arm)),
            (Parts::One, Parts::One) => simply_implied(given, wanted),
        }
    }

    fn each(
        &mut self,
        parts: &[Cow<'_, BoundExpr>],
        mut implied: impl FnMut(&mut Self, &BoundExpr) -> Option<Vec<BoundExpr>>,
    ) -> Option<Vec<BoundExpr>> {
        let mut conditions = Vec::new();
        for part in parts {
            conditions.extend(implied(self, part)?);
        }
        Some(conditions)
    }
}

/// predicate_implied_by_simple_clause.
fn simply_implied(given: &BoundExpr, wanted: &BoundExpr) -> Option<Vec<BoundExpr>> {
    if let ExprKind::IsNotNull(of) = &wanted.kind {
        return is_strict_for(given, of).then(Vec::new);
    }
    if let (Some(one), Some(other)) = (truth_of(given), truth_of(wanted))
        && one.of.is_same(other.of)
    {
        return one.implies(&other);
    }
    let (one, other) = (compared(given)?, compared(wanted)?);
    if !one.of.is_same(other.of) {
        return None;
    }
    match (constant(one.with), constant(other.with)) {
        (Some(known), Some(limit)) => {
            let alike = one.with.ty.oid == other.with.ty.oid || is_integer(&known) && is_integer(&limit);
            let proved = alike
                && !known.is_null()
                && !limit.is_null()
                && follows(one.how, other.how, order(&known, &limit));
            proved.then(Vec::new)
        }
        // What is said of the value is to be found of the parameter that it equals.
        (None, Some(_)) if one.how == Comparison::Eq && one.with.ty.oid == other.of.ty.oid => {
            let args = match other.flipped {
                true => vec![other.with.clone(), one.with.clone()],
                false => vec![one.with.clone(), other.with.clone()],
            };
            Some(vec![BoundExpr::new(ExprKind::Call { function: other.function, args }, Type::BOOL)])
        }
        _ => None,
    }
}

/// Whether `x one a` says `x other b`, where `a` stands to `b` as the order says (BT_implies_table).
fn follows(one: Comparison, other: Comparison, order: Ordering) -> bool {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    match (one, other) {
        (Eq, _) => other.holds(order),
        (Lt, Lt) | (Le, Le) | (Lt, Le) | (Lt, Ne) => order.is_le(),
        (Le, Lt) | (Le, Ne) => order.is_lt(),
        (Gt, Gt) | (Ge, Ge) | (Gt, Ge) | (Gt, Ne) => order.is_ge(),
        (Ge, Gt) | (Ge, Ne) => order.is_gt(),
        (Ne, Ne) => order.is_eq(),
        _ => false,
    }
}

/// A comparison of what rows are read for with what is the same for all of them.
struct Compared<'e> {
    of: &'e BoundExpr,
    how: Comparison,
    with: &'e BoundExpr,
    function: ResolvedFunction,
    /// Whether it is written the other way about.
    flipped: bool,
}

fn compared(expr: &BoundExpr) -> Option<Compared<'_>> {
    let ExprKind::Call { function, args } = &expr.kind else { return None };
    let [left, right] = &args[..] else { return None };
    let how = comparison(function.function)?;
    let function = *function;
    match (is_fixed(left), is_fixed(right)) {
        (false, true) => Some(Compared { of: left, how, with: right, function, flipped: false }),
        (true, false) => Some(Compared { of: right, how: how.flip(), with: left, function, flipped: true }),
        _ => None,
    }
}

/// A condition that says a truth value of something: `x`, `NOT x`, `x = true`, `x = $1`.
struct Truth<'e> {
    of: &'e BoundExpr,
    says: Says<'e>,
}

enum Says<'e> {
    Value(bool),
    Parameter(&'e BoundExpr),
}

impl Truth<'_> {
    fn implies(&self, wanted: &Truth<'_>) -> Option<Vec<BoundExpr>> {
        match (&self.says, &wanted.says) {
            (Says::Value(one), Says::Value(other)) => (one == other).then(Vec::new),
            (Says::Parameter(given), Says::Value(true)) => Some(vec![(*given).clone()]),
            (Says::Parameter(given), Says::Value(false)) => {
                Some(vec![BoundExpr::new(ExprKind::Not(Box::new((*given).clone())), Type::BOOL)])
            }
            (_, Says::Parameter(_)) => None,
        }
    }
}

fn truth_of(expr: &BoundExpr) -> Option<Truth<'_>> {
    if expr.ty.oid != Type::BOOL.oid {
        return None;
    }
    if let ExprKind::Not(inner) = &expr.kind {
        let Truth { of, says: Says::Value(value) } = truth_of(inner)? else { return None };
        return Some(Truth { of, says: Says::Value(!value) });
    }
    let Some(Compared { of, how, with, .. }) = compared(expr) else {
        let is_whole = matches!(expr.kind, ExprKind::Column { .. } | ExprKind::Call { .. });
        return is_whole.then_some(Truth { of: expr, says: Says::Value(true) });
    };
    if of.ty.oid != Type::BOOL.oid {
        return Some(Truth { of: expr, says: Says::Value(true) });
    }
    let says = match (constant(with).as_deref(), how) {
        (Some(Datum::Bool(value)), Comparison::Eq) => Says::Value(*value),
        (Some(Datum::Bool(value)), Comparison::Ne) => Says::Value(!value),
        (None, Comparison::Eq) => Says::Parameter(with),
        _ => return None,
    };
    Some(Truth { of, says })
}

/// Whether a condition that holds, or a value that is there, tells that another value is there
/// (clause_is_strict_for).
fn is_strict_for(expr: &BoundExpr, of: &BoundExpr) -> bool {
    if expr.is_same(of) {
        return true;
    }
    match &expr.kind {
        ExprKind::Call { function, args } => {
            function.function.strict && args.iter().any(|arg| is_strict_for(arg, of))
        }
        ExprKind::Relabel(inner) | ExprKind::ConvertIo(inner) | ExprKind::Not(inner) => {
            is_strict_for(inner, of)
        }
        ExprKind::ArrayOp { left, operator, all: false, .. } => {
            operator.function.strict && is_strict_for(left, of)
        }
        _ => false,
    }
}

fn is_integer(value: &Datum) -> bool {
    matches!(value, Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_))
}

/// Whether an expression is the same for all rows, and known when a statement is planned with its parameters.
fn is_fixed(expr: &BoundExpr) -> bool {
    matches!(expr.kind, ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Variable(_)) || is_settled(expr)
}

fn is_settled(expr: &BoundExpr) -> bool {
    is_row_free(expr) && is_known(expr)
}

/// The value of what is made of constants alone.
fn constant(expr: &BoundExpr) -> Option<Cow<'_, Datum>> {
    if let ExprKind::Const(value) = &expr.kind {
        return Some(Cow::Borrowed(value));
    }
    let mut of_constants = is_settled(expr);
    visit_expr(expr, 0, &mut |part, _| {
        of_constants &= !matches!(part.kind, ExprKind::Param(_));
        of_constants
    });
    let functions = FunctionContext::detached();
    let inputs = RouteInputs { params: &[], variables: &[], functions: &functions };
    of_constants.then(|| evaluate(expr, &inputs)).flatten().map(Cow::Owned)
}
