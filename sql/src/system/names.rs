//! Names and numbers: input and output of the reg* types, visibility, privileges.

use super::SystemSource;
use super::definition::{signature, type_text};
use super::type_functions;
use crate::catalog::names::{is_temporary_schema, parse_name_text, quote_identifier, quote_qualified};
use crate::catalog::{Authority, Privileges, Relation, RoutineRef};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function;
use crate::types::{Oid, Type};

/// The name of a relation, qualified if the search path does not find it.
pub(super) fn relation_name(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    let Some(relation) = source.catalog().relation_by_oid(oid) else {
        let composite = source.catalog().table_of_row_type(Oid::row_type_of(oid))?;
        return Some(match type_is_found(source, &composite) {
            true => quote_identifier(&composite.name),
            false => quote_qualified(&composite.schema, &composite.name),
        });
    };
    Some(if source.catalog().is_visible(&relation, source.search_path()) {
        quote_identifier(relation.name())
    } else {
        quote_qualified(relation.schema(), relation.name())
    })
}

/// 42501 for names in schemas that the role in force may not look into, whether they are there or
/// not (LookupExplicitNamespace).
fn check_schema(source: &dyn SystemSource, text: &str) -> Result<()> {
    let Ok(name) = parse_name_text(text) else { return Ok(()) };
    let rights = Authority { catalog: source.catalog(), role: source.roles().current };
    match name.schema.filter(|schema| !is_temporary_schema(schema)) {
        Some(schema) => rights.require_schema(&schema, Privileges::USAGE),
        None => Ok(()),
    }
}

pub(super) fn relation_oid(source: &dyn SystemSource, text: &str) -> Result<Oid> {
    check_schema(source, text)?;
    source.catalog().regclass(text, source.search_path())
}

/// The relation of a name.
pub(super) fn named_relation(source: &dyn SystemSource, text: &str) -> Result<Relation> {
    check_schema(source, text)?;
    source.catalog().relation_by_text(text, source.search_path())
}

fn undefined_function(text: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function \"{text}\" does not exist"))
}

/// Deployed routines and built-in functions of a name.
fn functions_named(source: &dyn SystemSource, text: &str) -> Result<(Vec<Oid>, Vec<RoutineRef>)> {
    let name = parse_name_text(text)?;
    check_schema(source, text)?;
    let schema = name.schema.as_deref();
    let routines = source.catalog().routines(schema, &name.name, source.search_path());
    let builtins = if schema.is_none_or(|s| s == "pg_catalog") {
        let scalar = function::lookup_functions(&name.name).iter().map(|f| f.oid);
        let sets = function::lookup_set_functions(&name.name).iter().map(|f| f.oid);
        let aggregates = function::lookup_aggregates(&name.name).iter().map(|f| f.oid);
        let of_types = type_functions::all().iter().filter(|f| f.name == name.name).map(|f| f.oid);
        scalar.chain(sets).chain(aggregates).chain(of_types).collect()
    } else {
        Vec::new()
    };
    Ok((builtins, routines))
}

pub(super) fn function_oid(source: &dyn SystemSource, text: &str) -> Result<Oid> {
    let (builtins, routines) = functions_named(source, text)?;
    match builtins.iter().copied().chain(routines.iter().map(|r| r.oid)).collect::<Vec<_>>()[..] {
        [] => Err(undefined_function(text)),
        [one] => Ok(one),
        _ => Err(SqlError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("more than one function named \"{text}\""),
        )),
    }
}

fn builtin_args(oid: Oid) -> Option<&'static [Oid]> {
    let function = function::function_by_oid(oid).map(|function| function.args);
    function.or_else(|| type_functions::by_oid(oid).map(|of_type| &of_type.args[..]))
}

/// `name(type, …)`.
pub(super) fn procedure_oid(source: &dyn SystemSource, text: &str) -> Result<Oid> {
    let Some((name, rest)) = text.split_once('(') else {
        // Citus takes the bare name of a routine where it is unambiguous; so do we.
        return function_oid(source, text);
    };
    let list = rest.trim_end().strip_suffix(')').ok_or_else(|| {
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected a right parenthesis")
    })?;
    let types: Vec<Oid> = if list.trim().is_empty() {
        Vec::new()
    } else {
        list.split(',').map(|name| type_oid(source, name)).collect::<Result<_>>()?
    };
    let (builtins, routines) = functions_named(source, name.trim())?;
    let builtin = builtins.into_iter().find(|oid| builtin_args(*oid).is_some_and(|args| args == types));
    builtin
        .or_else(|| routines.iter().find(|r| r.input_types() == types).map(|r| r.oid))
        .ok_or_else(|| undefined_function(text))
}

pub(super) fn type_oid(source: &dyn SystemSource, text: &str) -> Result<Oid> {
    let undefined =
        || SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{}\" does not exist", text.trim()));
    let lower = text.trim().to_ascii_lowercase();
    let bare = lower.split('(').next().unwrap_or("").trim().trim_start_matches("pg_catalog.");
    if let Some(info) = crate::type_table::type_by_name(bare) {
        return Ok(info.oid);
    }
    if let Some(element) = text.trim().strip_suffix("[]") {
        return crate::type_table::array_of(type_oid(source, element)?).ok_or_else(undefined);
    }
    let name = parse_name_text(text.trim()).map_err(|_| undefined())?;
    check_schema(source, text.trim())?;
    let named = |name: &str, schema: Option<&str>| {
        let known = source.catalog().user_type(schema, name, source.search_path());
        let table = || source.catalog().table(schema, name, source.search_path());
        known.map(|known| known.oid).or_else(|| table().map(|table| table.row_type()))
    };
    let schema = name.schema.as_deref();
    if let Some(known) = named(&name.name, schema) {
        return Ok(known);
    }
    // An array type's own name.
    let element = name.name.strip_prefix('_').and_then(|element| named(element, schema));
    element.and_then(crate::type_table::array_of).ok_or_else(undefined)
}

pub(super) fn function_name(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    if let Some(function) = function::function_by_oid(oid) {
        return Some(function.name.to_owned());
    }
    if let Some(aggregate) = function::all_aggregates().iter().find(|f| f.oid == oid) {
        return Some(aggregate.name.to_owned());
    }
    if let Some(set) = function::all_set_functions().iter().find(|f| f.oid == oid) {
        return Some(set.name.to_owned());
    }
    if let Some(of_type) = type_functions::by_oid(oid) {
        return Some(of_type.name.to_owned());
    }
    let routine = source.catalog().routine_by_oid(oid)?;
    let visible =
        source.catalog().routines(None, &routine.name, source.search_path()).iter().any(|r| r.oid == oid);
    Some(if visible {
        quote_identifier(&routine.name)
    } else {
        quote_qualified(&routine.schema, &routine.name)
    })
}

pub(super) fn procedure_name(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    let name = function_name(source, oid)?;
    let types = match builtin_args(oid) {
        Some(args) => {
            args.iter().map(|a| type_text(source.catalog(), Type::of(*a))).collect::<Vec<_>>().join(",")
        }
        None => signature(source, &*source.catalog().routine_by_oid(oid)?),
    };
    Some(format!("{name}({types})"))
}

pub(super) fn operator_oid(text: &str) -> Result<Oid> {
    let name = text.trim().trim_start_matches("pg_catalog.");
    match function::lookup_operators(name) {
        [] => Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {text}"))),
        [one] => Ok(one.oid),
        _ => Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("more than one operator named {text}"))),
    }
}

/// pg_table_is_visible: NULL for an oid that is no relation.
/// Whether a plain name finds this composite type.
fn type_is_found(source: &dyn SystemSource, composite: &crate::catalog::Table) -> bool {
    let found = source.catalog().user_type(None, &composite.name, source.search_path());
    found.is_some_and(|ty| ty.oid == composite.row_type())
}

pub(super) fn relation_is_visible(source: &dyn SystemSource, oid: Oid) -> Datum {
    match source.catalog().relation_by_oid(oid) {
        Some(relation) => Datum::Bool(source.catalog().is_visible(&relation, source.search_path())),
        None => match source.catalog().table_of_row_type(Oid::row_type_of(oid)) {
            Some(composite) => Datum::Bool(type_is_found(source, &composite)),
            None => Datum::Null,
        },
    }
}

pub(super) fn function_is_visible(source: &dyn SystemSource, oid: Oid) -> Datum {
    if let Some(routine) = source.catalog().routine_by_oid(oid) {
        let found = source.catalog().routines(None, &routine.name, source.search_path());
        return Datum::Bool(found.iter().any(|r| r.oid == oid));
    }
    if function_name(source, oid).is_some() { Datum::Bool(true) } else { Datum::Null }
}

/// The relation a privilege function asks about, by name or number; `None` for an unknown number.
pub(super) fn relation_argument(source: &dyn SystemSource, value: &Datum) -> Result<Option<Relation>> {
    match value {
        Datum::Text(name) => named_relation(source, name).map(Some),
        Datum::Oid(oid) => Ok(source.catalog().relation_by_oid(*oid)),
        _ => Ok(None),
    }
}
