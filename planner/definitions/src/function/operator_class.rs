//! Operator classes that keys name: whether there is one of that name for the access method, whether
//! it takes the type, and whether it orders values as keys are ordered here (ResolveOpClass).

use std::sync::Arc;

use archipel_sql::ast::{IndexElement, QualifiedName};
use archipel_sql::catalog::Object;
use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::names::undefined_schema;
use archipel_sql::catalog::operator_class::{HASH_WITH_SEED, OperatorClass, OperatorClassRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::system::{default_operator_class, operator_class_named};
use archipel_sql::type_table::{TypeNames, element_of};
use archipel_sql::types::{Oid, Type};

use crate::bind::support_function::is_binary_coercible;
use crate::relation::collation::check_collatable;
use crate::work::Work;

/// Classes that order text as the type's own class does under the C collation.
const PATTERN: [&str; 4] = ["text_ops", "varchar_ops", "text_pattern_ops", "varchar_pattern_ops"];
/// As before, of blank-padded text.
const PADDED_PATTERN: [&str; 2] = ["bpchar_ops", "bpchar_pattern_ops"];

/// What a class says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decides {
    /// By which way rows are found: any order will do.
    Path,
    /// Which values are equal, or where rows lie.
    Rows,
}

/// Errors: 42704 for a class that is not there, 42804 for one of other types, 0A000 for one that decides
/// by an order that no key has.
pub(super) fn check(
    class: &QualifiedName,
    method: &str,
    ty: Type,
    decides: Decides,
    work: &Work<'_>,
) -> Result<()> {
    let catalog = &work.catalog;
    let (schema, name) = (class.schema.as_deref(), class.name.as_str());
    if let Some(schema) = schema.filter(|schema| !catalog.schema_exists(schema)) {
        return Err(undefined_schema(schema));
    }
    if let Some(defined) = catalog.operator_class(schema, name, method, work.search_path()) {
        return check_defined(&defined, ty, decides, work);
    }
    let found = schema.is_none_or(|schema| schema == "pg_catalog");
    let Some(input) = found.then(|| operator_class_named(method, name)).flatten() else {
        let written = schema.map_or_else(|| name.to_owned(), |schema| format!("{schema}.{name}"));
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("operator class \"{written}\" does not exist for access method \"{method}\""),
        ));
    };
    let own = input == own_input(ty);
    let coerces = ty.oid == input
        || input == Oid::BPCHAR && matches!(ty.oid, Oid::TEXT | Oid::VARCHAR)
        || input == Oid::ANYARRAY && element_of(ty.oid).is_some();
    if !own && !coerces {
        let ty = work.type_name(ty.oid);
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("operator class \"{name}\" does not accept data type {ty}"),
        ));
    }
    let ordered_alike = own
        && match input {
            Oid::TEXT => PATTERN.contains(&name),
            Oid::BPCHAR => PADDED_PATTERN.contains(&name),
            _ => name != "record_image_ops",
        };
    if ordered_alike || decides == Decides::Path {
        return Ok(());
    }
    let ty = work.type_name(ty.oid);
    Err(SqlError::unsupported(format_args!("operator class \"{name}\" over values of type {ty}")))
}

/// A class that somebody defined: the order of keys is not its, but hash partitions are.
fn check_defined(class: &OperatorClass, ty: Type, decides: Decides, names: &Work<'_>) -> Result<()> {
    let name = &class.name;
    if !is_binary_coercible(ty.oid, class.input.oid) {
        let ty = names.type_name(ty.oid);
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("operator class \"{name}\" does not accept data type {ty}"),
        ));
    }
    if decides == Decides::Path {
        return Ok(());
    }
    if class.method != "hash" {
        let what = format_args!("operator class \"{name}\" as the order of partitions or of unique keys");
        return Err(SqlError::unsupported(what));
    }
    if names.catalog.class_function(class, HASH_WITH_SEED).is_none() {
        let ty = names.type_name(ty.oid);
        return Err(SqlError::new(
            SqlState::INVALID_OBJECT_DEFINITION,
            format!(
                "operator class \"{name}\" of access method hash is missing support function 2 for type {ty}"
            ),
        ));
    }
    Ok(())
}

/// Whether keys of this type have the class without being told.
pub(crate) fn is_own(class: &str, method: &str, ty: Type) -> bool {
    match own_input(ty) {
        Oid::ANYENUM => class == "enum_ops",
        Oid::ANYARRAY => class == "array_ops",
        Oid::RECORD => class == "record_ops",
        input => default_operator_class(method, input) == Some(class),
    }
}

/// The input type of a type's own operator class.
fn own_input(ty: Type) -> Oid {
    match ty.oid {
        Oid::VARCHAR => Oid::TEXT,
        Oid::CIDR => Oid::INET,
        array if element_of(array).is_some() => Oid::ANYARRAY,
        other => other.class_input().unwrap_or(other),
    }
}

/// The tables whose partition keys it decides.
pub(super) fn users(class: &OperatorClass, work: &Work<'_>) -> Vec<Dependent> {
    let uses = |table: &&archipel_sql::catalog::TableRef| {
        table.partitioned_by.as_ref().is_some_and(|key| key.classes.contains(&class.oid))
    };
    work.catalog.tables().filter(uses).cloned().map(Dependent::PartitionKey).collect()
}

/// The classes that are nothing without a function, and the tables whose partitions it tells.
pub(crate) fn users_of_function(function: Oid, work: &Work<'_>) -> Vec<Dependent> {
    let mut found = Vec::new();
    for class in work.catalog.operator_classes() {
        let mut numbers = class.functions.iter().filter(|of| of.function == function).map(|of| of.number);
        let Some(first) = numbers.next() else { continue };
        // PostgreSQL forgets what a class need not have, and with it what it knew of partitions.
        if first == 1 || numbers.any(|number| number == 1) {
            found.push(Dependent::OperatorClass(class.clone()));
        }
        found.extend(users(class, work));
    }
    let families = work.catalog.operator_families();
    for family in families.filter(|family| family.functions.iter().any(|of| of.function == function)) {
        for class in work.catalog.operator_classes().filter(|class| class.family() == family.oid) {
            found.extend(users(class, work));
        }
    }
    found
}

/// Takes a function that goes out of the classes that need not have it.
pub(super) fn forget_function(function: Oid, work: &mut Work<'_>) {
    let names = |class: &&OperatorClassRef| class.functions.iter().any(|of| of.function == function);
    for class in work.catalog.operator_classes().filter(names).cloned().collect::<Vec<_>>() {
        let mut changed = (*class).clone();
        changed.functions.retain(|of| of.function != function);
        work.put(Object::OperatorClass(Arc::new(changed)));
    }
    for family in work.catalog.operator_families().cloned().collect::<Vec<_>>() {
        if family.functions.iter().any(|of| of.function == function) {
            let mut changed = (*family).clone();
            changed.functions.retain(|of| of.function != function);
            work.put(Object::OperatorFamily(Arc::new(changed)));
        }
    }
}

/// The classes over a type.
pub(crate) fn users_of_type(uses: &dyn Fn(Oid) -> bool, work: &Work<'_>) -> Vec<Dependent> {
    let over = |class: &&OperatorClassRef| uses(class.input.oid);
    work.catalog.operator_classes().filter(over).cloned().map(Dependent::OperatorClass).collect()
}

/// How a part of a key of this type is compared: as here, or refused.
pub(crate) fn check_collation_and_class(
    element: &IndexElement,
    method: &str,
    ty: Type,
    decides: Decides,
    work: &Work<'_>,
) -> Result<()> {
    if let Some(collation) = &element.collation
        && !matches!(collation.name.as_str(), "default" | "C" | "POSIX" | "ucs_basic")
    {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("collation \"{}\" for encoding \"UTF8\" does not exist", collation.name),
        ));
    }
    if element.collation.is_some() {
        check_collatable(ty, work)?;
    }
    match &element.operator_class {
        Some(class) => check(class, method, ty, decides, work),
        None => Ok(()),
    }
}
