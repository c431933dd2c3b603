//! CREATE, ALTER and DROP OPERATOR CLASS (opclasscmds.c).

use std::sync::Arc;

use archipel_sql::ast::{
    AlterOperatorClass, ClassItem, CreateOperatorClass, DropOperatorClass, QualifiedName, RenameAction,
    RoutineSignature, RoutineWord, TypeName,
};
use archipel_sql::catalog::dependency::{Dependent, still_depended_on};
use archipel_sql::catalog::operator_class::{
    ClassFunction, ClassOperator, HASH_WITH_SEED, OperatorClass, OperatorClassRef, OperatorFamily,
};
use archipel_sql::catalog::{Object, ObjectKind};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function;
use archipel_sql::function::ScalarFunction;
use archipel_sql::type_table::{BuiltIn, TypeNames};
use archipel_sql::types::{Oid, Type};

use super::access_method::{Method, method_named};
use super::operator_class::users;
use super::{family_lookup, routine};
use crate::drop::{cascade, relation};
use crate::namespace;
use crate::work::Work;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

pub(crate) fn create_operator_class(create: &CreateOperatorClass, work: &mut Work<'_>) -> Result<()> {
    let schema = work.target_schema(&create.name)?;
    let method = method_named(&create.method)?;
    if !work.env.system && !work.authority().is_superuser() {
        let message = "must be superuser to create an operator class";
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    let family = match &create.family {
        Some(name) => Some(family_lookup::require(name, method.name, work)?),
        None => work.catalog.operator_family(Some(&schema), &create.name.name, method.name, &[]),
    };
    let input = Type::of(work.catalog.resolve_type(&create.ty, work.search_path())?.oid);
    let mut class = OperatorClass {
        oid: Oid(0),
        schema,
        name: create.name.name.clone(),
        method: method.name.to_owned(),
        input,
        default: create.default,
        operators: Vec::new(),
        functions: Vec::new(),
        in_family: family.map(|family| family.oid),
    };
    for item in &create.items {
        add_item(item, method, &mut class, work)?;
    }
    let same = |known: &&OperatorClassRef| {
        known.schema == class.schema && known.name == class.name && known.method == class.method
    };
    if work.catalog.operator_classes().any(|known| same(&known)) {
        let message = format!(
            "operator class \"{}\" for access method \"{}\" already exists",
            class.name, class.method
        );
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    if class.default {
        check_default(&class, &create.ty, work)?;
    }
    // One for itself, one for a family of its name.
    class.oid = work.oids(2);
    match class.in_family {
        Some(family) => family_lookup::check_room(&class, family, work)?,
        None => {
            let oid = Oid(class.oid.0 + 1);
            class.in_family = Some(oid);
            work.put(Object::OperatorFamily(Arc::new(OperatorFamily {
                oid,
                schema: class.schema.clone(),
                name: class.name.clone(),
                method: class.method.clone(),
                operators: Vec::new(),
                functions: Vec::new(),
            })));
        }
    }
    work.put(Object::OperatorClass(Arc::new(class)));
    Ok(())
}

pub(super) fn add_item(
    item: &ClassItem,
    method: &Method,
    class: &mut OperatorClass,
    work: &Work<'_>,
) -> Result<()> {
    let check = |number: i64, max: i64, what: &str| match number {
        number if (1..=max).contains(&number) => Ok(number as i16),
        _ => Err(invalid(format!("invalid {what} number {number}, must be between 1 and {max}"))),
    };
    match item {
        ClassItem::Operator { number, name, types } => {
            let strategy = check(*number, method.operators, "operator")?;
            let (left, right) = pair_of(types, class.input, work)?;
            let operator = operator(name, left, right, work)?;
            if class
                .operators
                .iter()
                .any(|known| (known.strategy, known.left, known.right) == (strategy, left, right))
            {
                return Err(twice(("operator", strategy), left, right, work));
            }
            class.operators.push(ClassOperator { strategy, left, right, operator });
        }
        ClassItem::Function { number, types, function } => {
            let number = check(*number, method.functions, "function")?;
            let found = support_function(function, work)?;
            let (left, right) = check_function(method, number, types, &found, class.input, work)?;
            if class
                .functions
                .iter()
                .any(|known| (known.number, known.left, known.right) == (number, left, right))
            {
                return Err(twice(("function", number), left, right, work));
            }
            class.functions.push(ClassFunction { number, left, right, function: found.oid });
        }
        ClassItem::Storage(ty) => {
            let ty = work.catalog.resolve_type(ty, work.search_path())?;
            if ty.oid != class.input.oid {
                return Err(invalid(format!(
                    "storage type cannot be different from data type for access method \"{}\"",
                    method.name
                )));
            }
        }
    }
    Ok(())
}

fn twice((what, number): (&str, i16), left: Oid, right: Oid, names: &dyn TypeNames) -> SqlError {
    let (left, right) = (names.type_name(left), names.type_name(right));
    let message = format!("{what} number {number} for ({left},{right}) appears more than once");
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

/// The two types of an operator, the class's own where none are said.
pub(super) fn pair_of(types: &[TypeName], own: Type, work: &Work<'_>) -> Result<(Oid, Oid)> {
    let read = |ty: &TypeName| work.catalog.resolve_type(ty, work.search_path()).map(|ty| ty.oid);
    match types {
        [] => Ok((own.oid, own.oid)),
        [only] => read(only).map(|ty| (ty, ty)),
        [left, right] => Ok((read(left)?, read(right)?)),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "one or two argument types must be specified")),
    }
}

fn operator(name: &QualifiedName, left: Oid, right: Oid, names: &dyn TypeNames) -> Result<Oid> {
    let known = name.schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
    let operators = if known { function::lookup_operators(&name.name) } else { &[] };
    let found = operators.iter().find(|operator| operator.left == Some(left) && operator.right == right);
    let Some(found) = found else {
        let (left, right) = (names.type_name(left), names.type_name(right));
        let message = format!("operator does not exist: {left} {name} {right}");
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
    };
    if found.result != Oid::BOOL {
        return Err(invalid("index search operators must return boolean"));
    }
    Ok(found.oid)
}

/// A function that a class names.
struct Support {
    oid: Oid,
    args: Vec<Oid>,
    result: Oid,
}

fn support_function(signature: &RoutineSignature, work: &Work<'_>) -> Result<Support> {
    let missing = match routine::find(&work.catalog, signature, RoutineWord::Function, work.search_path()) {
        Ok(found) => {
            let (args, result) = (found.input_types(), found.result.oid);
            return Ok(Support { oid: found.oid, args, result });
        }
        Err(error) => error,
    };
    let name = &signature.name;
    if missing.state() != SqlState::UNDEFINED_FUNCTION
        || name.schema.as_deref().is_some_and(|schema| schema != "pg_catalog")
    {
        return Err(missing);
    }
    let overloads = function::lookup_functions(&name.name);
    let of = |function: &ScalarFunction| Support {
        oid: function.oid,
        args: function.args.to_vec(),
        result: function.result,
    };
    let Some(args) = &signature.args else {
        return if let [only] = overloads { Ok(of(only)) } else { Err(missing) };
    };
    let mut types = Vec::with_capacity(args.len());
    for arg in args {
        types.push(work.catalog.resolve_type(&arg.ty, work.search_path())?.oid);
    }
    overloads.iter().find(|function| function.args == types).map(|function| of(function)).ok_or(missing)
}

/// What a support function must take and answer, and the types it is for (assignProcTypes).
fn check_function(
    method: &Method,
    number: i16,
    types: &[TypeName],
    found: &Support,
    own: Type,
    work: &Work<'_>,
) -> Result<(Oid, Oid)> {
    let words = |count: usize| match count {
        1 => "one argument",
        2 => "two arguments",
        _ => "another number of arguments",
    };
    let must = |what: &str, count: usize, result: Oid| {
        if found.args.len() != count {
            return Err(invalid(format!("{what} must have {}", words(count))));
        }
        if found.result != result {
            return Err(invalid(format!("{what} must return {}", BuiltIn.type_name(result))));
        }
        Ok(())
    };
    match (method.name, number) {
        ("btree", 1) => must("btree comparison functions", 2, Oid::INT4)?,
        ("hash", 1) => must("hash function 1", 1, Oid::INT4)?,
        ("hash", HASH_WITH_SEED) => must("hash function 2", 2, Oid::INT8)?,
        _ => {
            let what = format_args!("support function {number} of access method {}", method.name);
            return Err(SqlError::unsupported(what));
        }
    }
    if !types.is_empty() {
        return pair_of(types, own, work);
    }
    let first = found.args.first().copied().unwrap_or(own.oid);
    let second = if method.name == "btree" { found.args.get(1).copied() } else { None };
    Ok((first, second.unwrap_or(first)))
}

/// There is one default class for a type and a method.
fn check_default(class: &OperatorClass, written: &TypeName, work: &Work<'_>) -> Result<()> {
    let same = |known: &&OperatorClassRef| {
        known.default && known.method == class.method && known.input.oid == class.input.oid
    };
    let defined = work.catalog.operator_classes().find(same).map(|known| known.name.clone());
    let taken = defined.or_else(|| {
        archipel_sql::system::default_operator_class(&class.method, class.input.oid).map(str::to_owned)
    });
    let Some(taken) = taken else {
        // Nothing would ask for it.
        return Err(SqlError::unsupported("a default operator class that somebody defines"));
    };
    let message = format!("could not make operator class \"{}\" be default for type {written}", class.name);
    Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message)
        .with_detail(format!("Operator class \"{taken}\" already is the default.")))
}

/// A class that a statement names, or 42704.
fn require(name: &QualifiedName, method: &str, work: &Work<'_>) -> Result<OperatorClassRef> {
    let method = method_named(method)?.name;
    if let Some(schema) = name.schema.as_deref().filter(|schema| !work.catalog.schema_exists(schema)) {
        return Err(archipel_sql::catalog::names::undefined_schema(schema));
    }
    let found = work.catalog.operator_class(name.schema.as_deref(), &name.name, method, work.search_path());
    found.ok_or_else(|| {
        let message = format!("operator class \"{name}\" does not exist for access method \"{method}\"");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

/// Classes are superusers'.
fn require_owner(class: &OperatorClass, work: &Work<'_>) -> Result<()> {
    if work.env.system || work.authority().is_superuser() {
        return Ok(());
    }
    let message = format!("must be owner of operator class {}", class.name);
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}

pub(crate) fn alter_operator_class(alter: &AlterOperatorClass, work: &mut Work<'_>) -> Result<()> {
    let class = require(&alter.name, &alter.method, work)?;
    require_owner(&class, work)?;
    let mut changed = (*class).clone();
    match &alter.action {
        RenameAction::RenameTo(name) => changed.name = name.clone(),
        RenameAction::SetSchema(schema) => {
            namespace::check_move(&class.schema, schema, work)?;
            changed.schema = schema.clone();
            if changed.schema == class.schema {
                return Ok(());
            }
        }
        RenameAction::OwnerTo(role) => return family_lookup::check_owner(role, "CLASS", work),
        RenameAction::Clauses(_) => return Err(SqlError::internal("clauses of an operator class")),
    }
    let same = |known: &OperatorClassRef| {
        known.schema == changed.schema && known.name == changed.name && known.method == changed.method
    };
    if work.catalog.operator_classes().any(same) {
        let message = format!(
            "operator class \"{}\" for access method \"{}\" already exists in schema \"{}\"",
            changed.name, changed.method, changed.schema
        );
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    work.put(Object::OperatorClass(Arc::new(changed)));
    Ok(())
}

pub(crate) fn drop_operator_class(drop: &DropOperatorClass, work: &mut Work<'_>) -> Result<()> {
    let class = match require(&drop.name, &drop.method, work) {
        Ok(class) => class,
        Err(error) if drop.if_exists && method_named(&drop.method).is_ok() => {
            work.notice(format!("{}, skipping", error.message()));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    require_owner(&class, work)?;
    let users = users(&class, work);
    if !users.is_empty() {
        if !drop.cascade {
            return Err(still_depended_on(&class.describe(), &users, work));
        }
        cascade::cascade_notice(&users, work);
    }
    drop_one(&class, work)
}

/// Drops a class and the tables whose partitions it tells.
pub(crate) fn drop_one(class: &OperatorClassRef, work: &mut Work<'_>) -> Result<()> {
    for user in users(class, work) {
        if let Dependent::PartitionKey(table) = user
            && let Some(table) = work.catalog.table_by_oid(table.oid)
        {
            relation::drop_tables(&[table], true, work)?;
        }
    }
    work.drop(ObjectKind::OperatorClass, class.oid);
    Ok(())
}
