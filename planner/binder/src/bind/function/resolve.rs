//! Overload resolution: operators and functions by PostgreSQL's rules (chapters 10.2 and 10.3;
//! func_select_candidate).

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function;
use archipel_sql::function::{CastContext, Intrinsic, Operator, ResolvedFunction, ScalarFunction};
use archipel_sql::type_table::{BuiltIn, TypeNames, is_vector};
use archipel_sql::types::{Oid, Type};

use crate::bind::binder::Binder;
use crate::bind::expression::coerce::{can_coerce, category, is_polymorphic, is_preferred};
use crate::bind::expression::polymorphic::resolve_polymorphic;
use crate::bound::{BoundExpr, ExprKind};

/// What resolution found among several signatures.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    One(usize),
    None,
    Ambiguous,
}

/// Chooses the best of several signatures for the actual argument types. All signatures have
/// as many types as there are arguments.
pub fn choose(actual: &[Oid], candidates: &[Vec<Oid>]) -> Choice {
    if let Some(exact) = candidates.iter().position(|candidate| candidate == actual) {
        return Choice::One(exact);
    }
    let mut left: Vec<usize> = (0..candidates.len()).filter(|&i| fits(actual, &candidates[i])).collect();
    if let Some(choice) = settled(&left) {
        return choice;
    }
    let known = |i: usize| actual[i] != Oid::UNKNOWN;
    // Those with the most exact matches on known types.
    keep_best(&mut left, |candidate| {
        (0..actual.len()).filter(|&i| known(i) && candidates[candidate][i] == actual[i]).count()
    });
    if let Some(choice) = settled(&left) {
        return choice;
    }
    // Those with the most exact matches or preferred types of the argument's category.
    keep_best(&mut left, |candidate| {
        (0..actual.len())
            .filter(|&i| {
                let to = candidates[candidate][i];
                known(i) && (to == actual[i] || (category(to) == category(actual[i]) && is_preferred(to)))
            })
            .count()
    });
    if let Some(choice) = settled(&left) {
        return choice;
    }
    if (0..actual.len()).all(known) {
        return Choice::Ambiguous;
    }
    // Unknown arguments take the category that the remaining candidates agree on, strings first.
    let mut agreed: Vec<Option<(u8, bool)>> = vec![None; actual.len()];
    let mut resolved = true;
    for i in (0..actual.len()).filter(|&i| !known(i)) {
        let mut slot: Option<(u8, bool)> = None;
        let mut conflict = false;
        for &candidate in &left {
            let to = candidates[candidate][i];
            let (to_category, to_preferred) = (category(to), is_preferred(to));
            match slot {
                None => slot = Some((to_category, to_preferred)),
                Some((known, preferred)) if known == to_category => {
                    slot = Some((known, preferred || to_preferred))
                }
                Some(_) if to_category == b'S' => slot = Some((b'S', to_preferred)),
                Some((b'S', _)) => {}
                Some(_) => conflict = true,
            }
        }
        if conflict && slot.is_none_or(|(known, _)| known != b'S') {
            resolved = false;
            break;
        }
        agreed[i] = slot;
    }
    if resolved {
        let narrowed: Vec<usize> = left
            .iter()
            .copied()
            .filter(|&candidate| {
                agreed.iter().enumerate().all(|(i, slot)| match slot {
                    None => true,
                    Some((wanted, preferred)) => {
                        let to = candidates[candidate][i];
                        category(to) == *wanted && (!preferred || is_preferred(to))
                    }
                })
            })
            .collect();
        if !narrowed.is_empty() {
            left = narrowed;
        }
        if let Some(choice) = settled(&left) {
            return choice;
        }
    }
    // All known arguments of one type: try the unknown ones as that type, too.
    let mut types = (0..actual.len()).filter(|&i| known(i)).map(|i| actual[i]);
    if let Some(first) = types.next()
        && types.all(|ty| ty == first)
    {
        let assumed = vec![first; actual.len()];
        let fitting: Vec<usize> = left.iter().copied().filter(|&i| fits(&assumed, &candidates[i])).collect();
        if let [only] = fitting[..] {
            return Choice::One(only);
        }
    }
    Choice::Ambiguous
}

/// Whether arguments of these types can be passed. `any…` types must also agree among
/// themselves, as far as nothing is unknown.
fn fits(actual: &[Oid], candidate: &[Oid]) -> bool {
    actual.iter().zip(candidate).all(|(&from, &to)| can_coerce(from, to, CastContext::Implicit))
        && (!candidate.iter().any(|&oid| is_polymorphic(oid)) || actual.contains(&Oid::UNKNOWN) || {
            let types: Vec<Type> = actual.iter().map(|&oid| Type::of(oid)).collect();
            resolve_polymorphic(candidate, &types, Oid::VOID, &BuiltIn).is_ok()
        })
}

fn settled(left: &[usize]) -> Option<Choice> {
    match left {
        [] => Some(Choice::None),
        [only] => Some(Choice::One(*only)),
        _ => None,
    }
}

fn keep_best(left: &mut Vec<usize>, score: impl Fn(usize) -> usize) {
    let best = left.iter().map(|&candidate| score(candidate)).max().unwrap_or(0);
    left.retain(|&candidate| score(candidate) == best);
}

/// The types of a failed call, for its error message.
pub fn type_list(types: &[Type], names: &dyn TypeNames) -> String {
    types.iter().map(|ty| names.type_name(ty.oid)).collect::<Vec<_>>().join(", ")
}

/// Functions that show values of any type as text: of numbers of objects only the type says that they show
/// as names, and of bytes, places in the log and in tables, networks and lists of numbers how they show.
pub(super) fn shown_by_name(function: &ScalarFunction, args: Vec<BoundExpr>) -> Vec<BoundExpr> {
    if !function.is(Intrinsic::ShowsArguments) {
        return args;
    }
    let shown = |arg: BoundExpr| {
        let ty = arg.ty.oid;
        if ty.names_object() || is_vector(ty) || matches!(ty, Oid::CHAR | Oid::PG_LSN | Oid::TID | Oid::CIDR)
        {
            return BoundExpr::new(ExprKind::ConvertIo(Box::new(arg)), Type::TEXT);
        }
        arg
    };
    args.into_iter().map(shown).collect()
}

impl Binder<'_, '_> {
    /// Finds a binary operator and converts its operands.
    pub(crate) fn binary_operator(
        &mut self,
        name: &str,
        left: BoundExpr,
        right: BoundExpr,
    ) -> Result<BoundExpr> {
        let (operator, args, result) = self.find_binary(name, left, right)?;
        let args = self.image_arguments(operator.function.intrinsic, args);
        let declared = [operator.left.unwrap_or(Oid::UNKNOWN), operator.right];
        let domain = self.polymorphic_domain(&declared, operator.result, &args);
        let function = ResolvedFunction { function: operator.function, result };
        Ok(BoundExpr::new(ExprKind::Call { function, args }, result).of_domain(domain))
    }

    /// As [`Self::binary_operator`], leaving the call to the caller: IN lists, ANY, row comparison.
    pub(crate) fn find_binary(
        &mut self,
        name: &str,
        left: BoundExpr,
        right: BoundExpr,
    ) -> Result<(&'static Operator, Vec<BoundExpr>, Type)> {
        let types = [left.ty, right.ty];
        let operator = lookup_binary(name, left.ty.oid, right.ty.oid).map_err(|choice| {
            undefined_operator(choice, (name, Some(left.declared()), right.declared()), self)
        })?;
        let declared = [operator.left.unwrap_or(Oid::UNKNOWN), operator.right];
        let (concrete, result) = resolve_polymorphic(&declared, &types, operator.result, self)?;
        let left = self.coerce_or_fail(left, Type::of(concrete[0]), CastContext::Implicit)?;
        let right = self.coerce_or_fail(right, Type::of(concrete[1]), CastContext::Implicit)?;
        let mut args = shown_by_name(operator.function, vec![left, right]);
        if declared == [Oid::RECORD; 2] {
            args = self.compared_rows(args);
        }
        Ok((operator, args, Type::of(result)))
    }

    /// The function of an operator between two values of given types, which must fit as they are
    /// (the `=` of a common type).
    pub(crate) fn operator_of(&self, name: &str, left: Oid, right: Oid) -> Result<ResolvedFunction> {
        let operator = lookup_binary(name, left, right).map_err(|choice| {
            undefined_operator(choice, (name, Some(Type::of(left)), Type::of(right)), self)
        })?;
        Ok(ResolvedFunction { function: operator.function, result: Type::of(operator.result) })
    }

    /// Finds a prefix operator and converts its operand.
    pub(crate) fn prefix_operator(&mut self, name: &str, operand: BoundExpr) -> Result<BoundExpr> {
        let operators: Vec<&'static Operator> = function::lookup_operators(name)
            .iter()
            .copied()
            .filter(|operator| operator.left.is_none())
            .collect();
        let candidates: Vec<Vec<Oid>> = operators.iter().map(|operator| vec![operator.right]).collect();
        let operator = match choose(&[operand.ty.oid], &candidates) {
            Choice::One(i) => operators[i],
            choice => return Err(undefined_operator(choice, (name, None, operand.declared()), self)),
        };
        let (concrete, result) =
            resolve_polymorphic(&[operator.right], &[operand.ty], operator.result, self)?;
        let operand = self.coerce_or_fail(operand, Type::of(concrete[0]), CastContext::Implicit)?;
        let result = Type::of(result);
        let function = ResolvedFunction { function: operator.function, result };
        Ok(BoundExpr::new(ExprKind::Call { function, args: vec![operand] }, result))
    }
}

/// Operator lookup without conversion: exact, then "an unknown side is like the other", then
/// resolution.
fn lookup_binary(name: &str, left: Oid, right: Oid) -> Result<&'static Operator, Choice> {
    let operators = function::lookup_operators(name);
    let exact = |left: Oid, right: Oid| {
        operators.iter().copied().find(|operator| operator.left == Some(left) && operator.right == right)
    };
    let (assumed_left, assumed_right) = match (left, right) {
        (Oid::UNKNOWN, Oid::UNKNOWN) => (left, right),
        (Oid::UNKNOWN, other) => (other, other),
        (other, Oid::UNKNOWN) => (other, other),
        both => both,
    };
    if let Some(operator) = exact(left, right).or_else(|| exact(assumed_left, assumed_right)) {
        return Ok(operator);
    }
    let binary: Vec<&'static Operator> =
        operators.iter().copied().filter(|operator| operator.left.is_some()).collect();
    let candidates: Vec<Vec<Oid>> =
        binary.iter().map(|operator| vec![operator.left.unwrap_or(Oid::UNKNOWN), operator.right]).collect();
    match choose(&[left, right], &candidates) {
        Choice::One(i) => Ok(binary[i]),
        choice => Err(choice),
    }
}

fn undefined_operator(
    choice: Choice,
    (name, left, right): (&str, Option<Type>, Type),
    names: &dyn TypeNames,
) -> SqlError {
    let right = names.type_name(right.oid);
    let signature = match left {
        Some(left) => format!("{} {name} {right}", names.type_name(left.oid)),
        None => format!("{name} {right}"),
    };
    if choice == Choice::Ambiguous {
        return SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("operator is not unique: {signature}"))
            .with_hint(
                "Could not choose a best candidate operator. You might need to add explicit type casts.",
            );
    }
    let hint = match left {
        Some(_) => {
            "No operator matches the given name and argument types. You might need to add explicit type casts."
        }
        None => {
            "No operator matches the given name and argument type. You might need to add an explicit type cast."
        }
    };
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {signature}"))
        .with_hint(hint)
}
