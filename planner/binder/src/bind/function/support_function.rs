//! Functions that definitions name for what runs without being called by a statement: those that
//! aggregates are made of, those of operator classes (lookup_agg_function).

use archipel_sql::ast::QualifiedName;
use archipel_sql::catalog::operator_class::HASH_WITH_SEED;
use archipel_sql::catalog::{PartitionStrategy, RoutineKind, RoutineRef, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function;
use archipel_sql::function::{CastContext, CastMethod, ScalarFunction};
use archipel_sql::partition_hash::SEED;
use archipel_sql::type_table::{TypeNames, element_of};
use archipel_sql::types::{Oid, Type};

use super::argument::Argument;
use super::overload::{Callee, Candidate, Slot};
use super::resolve::{Choice, choose, type_list};
use crate::bind::binder::{BindEnv, Binder};
use crate::bind::expression::coerce::{is_composite, is_polymorphic};
use crate::bind::expression::polymorphic::resolve_polymorphic;
use crate::bound::{BoundExpr, ExprKind};

/// A function that a definition names.
#[derive(Clone, Debug)]
pub struct SupportFunction {
    pub oid: Oid,
    /// Polymorphic where the types that it is for are.
    pub result: Oid,
    pub strict: bool,
}

/// The function of a name over arguments of these types, polymorphic ones among them.
///
/// Errors: 42883 if there is none, 42804 if it is none for an aggregate.
pub fn support_function(
    name: &QualifiedName,
    inputs: &[Oid],
    of_any_number: bool,
    env: &mut BindEnv<'_>,
) -> Result<SupportFunction> {
    let names = env.type_names();
    let binder = Binder::new(env);
    let callees = binder.callees(name.schema.as_deref(), &name.name);
    let mut candidates: Vec<(Callee, Vec<Oid>)> = Vec::new();
    for callee in callees {
        let (parameters, variadic) = callee.parameters(false);
        let mut types: Vec<Oid> = parameters.iter().map(|parameter| parameter.ty).collect();
        if variadic && types.last() == Some(&Oid::ANY) && types.len() <= inputs.len() {
            types.resize(inputs.len(), Oid::ANY);
        }
        if types.len() == inputs.len() && !candidates.iter().any(|(_, known)| *known == types) {
            candidates.push((callee, types));
        }
    }
    let shown = |types: &[Oid]| {
        let types: Vec<Type> = types.iter().map(|oid| Type::of(*oid)).collect();
        format!("{name}({})", type_list(&types, &names))
    };
    let signatures: Vec<Vec<Oid>> = candidates.iter().map(|(_, types)| types.clone()).collect();
    let missing = || {
        if candidates.is_empty() && function::known_but_missing(&name.name) {
            return SqlError::unsupported(format_args!("function {}", shown(inputs)));
        }
        let message = format!("function {} does not exist", shown(inputs));
        SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
    };
    let Choice::One(chosen) = choose(inputs, &signatures) else { return Err(missing()) };
    let (callee, declared) = &candidates[chosen];
    let wrong = |message: String| SqlError::new(SqlState::DATATYPE_MISMATCH, message);
    let (oid, strict) = match callee {
        Callee::Scalar(function) => (function.oid, function.strict),
        Callee::Routine(routine) if routine.kind == RoutineKind::Function => {
            if routine.returns_set {
                return Err(wrong(format!("function {} returns a set", shown(inputs))));
            }
            (routine.oid, routine.strict)
        }
        Callee::Set(_) => return Err(wrong(format!("function {} returns a set", shown(inputs)))),
        _ => return Err(missing()),
    };
    if of_any_number && !matches!(callee, Callee::Scalar(ScalarFunction { variadic: true, .. })) {
        let message =
            format!("function {} must accept VARIADIC ANY to be used in this aggregate", shown(inputs));
        return Err(wrong(message));
    }
    let (concrete, result) = consistent(declared, inputs, callee.result(), &names)?;
    if inputs.iter().zip(&concrete).any(|(from, to)| !is_binary_coercible(*from, *to)) {
        return Err(wrong(format!("function {} requires run-time type coercion", shown(&concrete))));
    }
    Ok(SupportFunction { oid, result, strict })
}

/// What polymorphic parameters become over types that may be polymorphic themselves
/// (enforce_generic_type_consistency with allow_poly).
fn consistent(
    declared: &[Oid],
    inputs: &[Oid],
    result: Oid,
    names: &dyn TypeNames,
) -> Result<(Vec<Oid>, Oid)> {
    // What is said of a parameter by itself tells nothing.
    let told = |(wanted, given): (&Oid, &Oid)| wanted != given || !is_polymorphic(*wanted);
    if declared.iter().zip(inputs).all(told) {
        let actual: Vec<Type> = inputs.iter().map(|oid| Type::of(*oid)).collect();
        return resolve_polymorphic(declared, &actual, result, names);
    }
    let pairs = || declared.iter().zip(inputs).filter(|pair| told(*pair));
    let wanted: Vec<Oid> = pairs().map(|(wanted, _)| *wanted).collect();
    let given: Vec<Type> = pairs().map(|(_, given)| Type::of(*given)).collect();
    if pairs().any(|(wanted, given)| is_polymorphic(*wanted) && is_polymorphic(*given)) {
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, "polymorphic types that do not agree"));
    }
    let concrete = |oid: Oid| match is_polymorphic(oid) {
        true => resolve_polymorphic(&wanted, &given, oid, names).map_or(oid, |(_, concrete)| concrete),
        false => oid,
    };
    Ok((declared.iter().map(|oid| concrete(*oid)).collect(), concrete(result)))
}

/// Whether a value of one type is one of another as it is (IsBinaryCoercible).
pub fn is_binary_coercible(from: Oid, to: Oid) -> bool {
    if from == to || matches!(to, Oid::ANY | Oid::ANYELEMENT | Oid::ANYCOMPATIBLE) {
        return true;
    }
    match to {
        Oid::ANYARRAY | Oid::ANYCOMPATIBLEARRAY if element_of(from).is_some() => return true,
        Oid::ANYNONARRAY if element_of(from).is_none() => return true,
        Oid::ANYENUM if from.polymorphic() == Some(to) => return true,
        Oid::RECORD if is_composite(from) => return true,
        _ => {}
    }
    function::cast(from, to).is_some_and(|cast| {
        cast.context == CastContext::Implicit && matches!(cast.method, CastMethod::Binary)
    })
}

/// The arguments of satisfies_hash_partition behind the third must be a key of the table.
fn check_hash_key(oid: Oid, table: Option<&Table>, args: &[BoundExpr], names: &dyn TypeNames) -> Result<()> {
    let wrong = |message: String| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    let Some(table) = table else {
        let message = format!("could not open relation with OID {}", oid.0);
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
    };
    let by = table.partitioned_by.as_ref().filter(|by| by.strategy == PartitionStrategy::Hash);
    let Some(by) = by else {
        return wrong(format!("\"{}\" is not a hash partitioned table", table.name));
    };
    let given = args.len().saturating_sub(3);
    if by.parts.len() != given {
        let wanted = by.parts.len();
        return wrong(format!(
            "number of partitioning columns ({wanted}) does not match number of partition keys provided ({given})"
        ));
    }
    for (place, (ty, arg)) in by.types(table).into_iter().zip(args.iter().skip(3)).enumerate() {
        if !is_binary_coercible(arg.ty.oid, ty.oid) {
            let (wanted, given) = (names.type_name(ty.oid), names.type_name(arg.ty.oid));
            let place = place + 1;
            return wrong(format!(
                "column {place} of the partition key has type {wanted}, but supplied value is of type {given}"
            ));
        }
    }
    Ok(())
}

impl Binder<'_, '_> {
    /// A call of a function by its number.
    pub(crate) fn support_call(&mut self, oid: Oid, args: Vec<BoundExpr>) -> Result<BoundExpr> {
        let callee = match function::function_by_oid(oid) {
            Some(function) => Callee::Scalar(function),
            None => {
                let routine: Option<RoutineRef> = self.env.catalog.routine_by_oid(oid);
                let missing = || SqlError::internal(format!("function {oid} is gone"));
                Callee::Routine(routine.ok_or_else(missing)?)
            }
        };
        let (parameters, variadic) = callee.parameters(false);
        let mut types: Vec<Oid> = parameters.iter().map(|parameter| parameter.ty).collect();
        let mut slots: Vec<Slot> = (0..types.len()).map(Slot::Argument).collect();
        if variadic && types.last() == Some(&Oid::ANY) {
            let fixed = types.len() - 1;
            slots[fixed] = Slot::Spread((fixed..args.len()).collect());
            types.resize(args.len(), Oid::ANY);
        }
        if types.len() != args.len() {
            return Err(SqlError::internal("a function that takes other arguments"));
        }
        let candidate = Candidate { callee, slots, types, variadic: false, defaults: 0 };
        let args = args.into_iter().map(Argument::positional).collect();
        let resolved = self.complete(candidate, args)?;
        self.scalar_result(resolved, None)
    }

    /// A part of a partition key as the hash that its operator class tells, in a record
    /// ([`archipel_sql::partition_hash::partition_hash`]).
    pub(crate) fn hashed_part(&mut self, part: BoundExpr, class: Oid) -> Result<BoundExpr> {
        let class = self.env.catalog.operator_class_by_oid(class);
        let class = class.ok_or_else(|| SqlError::internal("an operator class that is gone"))?;
        let function = self.env.catalog.class_function(&class, HASH_WITH_SEED);
        let function = function.ok_or_else(|| SqlError::internal("an operator class without a hash"))?;
        let value = self.coerce_or_fail(part.clone(), class.input, CastContext::Implicit)?;
        let seed = BoundExpr::constant(Datum::Int8(SEED as i64), Type::INT8);
        let hash = self.support_call(function, vec![value, seed])?;
        let hash = BoundExpr::new(ExprKind::Row(vec![hash], None), Type::RECORD);
        let present = BoundExpr::new(ExprKind::IsNotNull(Box::new(part)), Type::BOOL);
        Ok(BoundExpr::new(ExprKind::Case { arms: vec![(present, hash)], otherwise: None }, Type::RECORD))
    }

    /// The arguments of satisfies_hash_partition: keys of classes that users defined become hashes.
    pub(crate) fn hash_arguments(&mut self, mut args: Vec<BoundExpr>) -> Result<Vec<BoundExpr>> {
        let Some(ExprKind::Const(Datum::Oid(table))) = args.first().map(|arg| &arg.kind) else {
            return Ok(args);
        };
        let oid = *table;
        // PostgreSQL looks at the numbers first: NULL, or wrong ones, say all there is to say.
        let number = |place: usize| match args.get(place).map(|arg| &arg.kind) {
            Some(ExprKind::Const(Datum::Int4(number))) => Some(Some(*number)),
            Some(ExprKind::Const(_)) => Some(None),
            _ => None,
        };
        let (modulus, remainder) = (number(1), number(2));
        let is_wrong = match (modulus, remainder) {
            (Some(None), _) | (_, Some(None)) => true,
            (Some(Some(modulus)), Some(Some(remainder))) => {
                modulus <= 0 || !(0..modulus).contains(&remainder)
            }
            (Some(Some(modulus)), None) => modulus <= 0,
            (None, _) => false,
        };
        if is_wrong {
            return Ok(args);
        }
        let found = self.env.catalog.table_by_oid(oid);
        check_hash_key(oid, found.as_deref(), &args, self)?;
        let Some(key) = found.as_ref().and_then(|table| table.partitioned_by.as_ref()) else {
            return Ok(args);
        };
        for (place, arg) in args.iter_mut().skip(3).enumerate() {
            if let Some(class) = key.class(place) {
                let part = std::mem::replace(arg, BoundExpr::constant(Datum::Null, Type::TEXT));
                *arg = self.hashed_part(part, class)?;
            }
        }
        Ok(args)
    }
}
