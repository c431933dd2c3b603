//! Names and numbers: input and output of the reg* types, visibility, privileges.

use super::SystemSource;
use super::definition::{bare_type_text, signature};
use super::relation::relation_name::type_is_found;
use super::routine::builtin;
use super::routine::function_name::built_in_name;
use super::routine::type_functions;
use crate::ast::QualifiedName;
use crate::catalog::names::{is_own_temporary_schema, parse_name_text, too_many_dots, undefined_schema};
use crate::catalog::{Authority, Privileges, Relation, RoutineRef};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function;
use crate::types::Oid;

/// 42501 for names in schemas that the role in force may not look into, whether they are there or
/// not (LookupExplicitNamespace).
fn check_schema(source: &dyn SystemSource, text: &str) -> Result<()> {
    match parse_name_text(text) {
        Ok(name) => name.schema.map_or(Ok(()), |schema| may_look_into(source, &schema)),
        Err(_) => Ok(()),
    }
}

fn may_look_into(source: &dyn SystemSource, schema: &str) -> Result<()> {
    if is_own_temporary_schema(schema, source.search_path()) {
        return Ok(());
    }
    let rights = Authority { catalog: source.catalog(), role: source.roles().current };
    rights.require_schema(schema, Privileges::USAGE)
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

/// The name of a function, whose schema there must be.
fn function_name_of(source: &dyn SystemSource, text: &str) -> Result<QualifiedName> {
    let name = parse_name_text(text).map_err(|error| match error.state() {
        SqlState::SYNTAX_ERROR => too_many_dots(text.trim()),
        _ => error,
    })?;
    let other = name.catalog.as_deref().is_some_and(|database| database != source.database());
    if let (Some(database), true) = (&name.catalog, other) {
        let whole = format!("{database}.{}.{}", name.schema.as_deref().unwrap_or_default(), name.name);
        let message = format!("cross-database references are not implemented: {whole}");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    match &name.schema {
        Some(schema) if schema != "pg_temp" && !source.catalog().schema_exists(schema) => {
            Err(undefined_schema(schema))
        }
        _ => Ok(name),
    }
}

/// Deployed routines and built-in functions of a name.
fn functions_named(source: &dyn SystemSource, text: &str) -> Result<(Vec<Oid>, Vec<RoutineRef>)> {
    let name = function_name_of(source, text)?;
    check_schema(source, text)?;
    let schema = name.schema.as_deref();
    let routines = source.catalog().routines(schema, &name.name, source.search_path());
    let builtins = if schema.is_none_or(|s| s == "pg_catalog") {
        let scalar = function::lookup_functions(&name.name).iter().map(|f| f.oid);
        let sets = function::lookup_set_functions(&name.name).iter().map(|f| f.oid);
        let aggregates = function::lookup_aggregates(&name.name).iter().map(|f| f.oid);
        let of_types = type_functions::all().iter().filter(|f| f.name == name.name).map(|f| f.oid);
        let windows = function::all_windows().iter().filter(|f| f.name == name.name).map(|f| f.oid);
        scalar.chain(sets).chain(aggregates).chain(of_types).chain(windows).collect()
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

/// `name(type, …)` taken apart: commas and parentheses within quotes and modifiers are the types' own
/// (parseNameAndArgTypes).
fn signature_parts(text: &str) -> Result<(&str, Vec<&str>)> {
    let missing = |side: &str| {
        let message = format!("expected a {side} parenthesis");
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    };
    let mut quoted = false;
    let open = text.find(|c: char| {
        quoted ^= c == '"';
        c == '(' && !quoted
    });
    let open = open.ok_or_else(|| missing("left"))?;
    let list = text[open + 1..].trim_end().strip_suffix(')').ok_or_else(|| missing("right"))?;
    if list.trim().is_empty() {
        return Ok((text[..open].trim(), Vec::new()));
    }
    let (mut quoted, mut depth) = (false, 0_i32);
    let parts = list.split(|c: char| {
        quoted ^= c == '"';
        depth += i32::from(!quoted && matches!(c, '(' | '[')) - i32::from(!quoted && matches!(c, ')' | ']'));
        c == ',' && !quoted && depth == 0
    });
    Ok((text[..open].trim(), parts.collect()))
}

/// `name(type, …)`.
pub(super) fn procedure_oid(source: &dyn SystemSource, text: &str) -> Result<Oid> {
    if !text.contains('(') {
        // Citus takes the bare name of a routine where it is unambiguous; so do we.
        return function_oid(source, text);
    }
    let (name, types) = signature_parts(text)?;
    let types: Vec<Oid> = types.into_iter().map(|name| type_oid(source, name)).collect::<Result<_>>()?;
    let (builtins, routines) = functions_named(source, name)?;
    let builtin = builtins.into_iter().find(|oid| builtin::args(*oid).is_some_and(|args| args == types));
    let declared = |routine: &RoutineRef| {
        routine.input_args().map(|arg| arg.declared().oid).eq(types.iter().copied())
            || routine.input_types() == types
    };
    builtin
        .or_else(|| routines.iter().find(|routine| declared(routine)).map(|routine| routine.oid))
        .ok_or_else(|| undefined_function(text))
}

/// The word without quotes that a text begins with.
fn first_word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(text.len());
    Some(&text[..end]).filter(|word| !word.is_empty())
}

/// The type of a name as statements write one: with a modifier, which does not matter, and brackets
/// (parseTypeString).
pub(super) fn type_oid(source: &dyn SystemSource, text: &str) -> Result<Oid> {
    let trimmed = text.trim();
    if let Some(info) = crate::type_table::type_by_name(&trimmed.to_ascii_lowercase()) {
        return Ok(info.oid);
    }
    let invalid = || SqlError::new(SqlState::SYNTAX_ERROR, format!("invalid type name \"{text}\""));
    if trimmed.is_empty() {
        return Err(invalid());
    }
    // Places in the text are none in the statement.
    let nowhere = |mut error: SqlError| {
        error.fields_mut().position = None;
        error
    };
    let parsed = match first_word(trimmed).filter(|word| function::is_no_type_name(word)) {
        Some(word) => {
            let message = format!("syntax error at or near \"{word}\"");
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
        None => crate::parser::parse_type_name(trimmed),
    };
    let mut named = parsed.map_err(|error| {
        let mut error = nowhere(error);
        // What is wrong with a name alone is found out later, and not by the grammar.
        if !error.fields().message.starts_with("improper qualified name") {
            error.fields_mut().context = Some(format!("invalid type name \"{text}\""));
        }
        error
    })?;
    if named.setof || named.percent_type {
        return Err(invalid());
    }
    let catalog = source.catalog();
    if let Some(database) = named.name.catalog.as_deref().filter(|name| *name != source.database()) {
        let whole =
            format!("{database}.{}.{}", named.name.schema.as_deref().unwrap_or_default(), named.name.name);
        let message = format!("cross-database references are not implemented: {whole}");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    named.name.catalog = None;
    if let Some(schema) = named.name.schema.as_deref().filter(|name| *name != "pg_temp") {
        if !catalog.schema_exists(schema) {
            return Err(crate::catalog::names::undefined_schema(schema));
        }
        may_look_into(source, schema)?;
    }
    let resolve = |named: &crate::ast::TypeName| {
        let (plain, domain) = catalog.resolve_declared(named, source.search_path())?;
        Ok::<_, SqlError>(domain.unwrap_or(plain.oid))
    };
    resolve(&named).or_else(|error| {
        let builtin = || {
            let known = crate::type_table::all_types().iter().find(|known| known.name == named.name.name);
            let unqualified = named.name.schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
            let known = known.filter(|_| unqualified)?;
            match named.dimensions {
                0 => Some(known.oid),
                _ => crate::type_table::array_of(known.oid),
            }
        };
        // An array type's own name.
        let element = || {
            let mut of_element = named.clone();
            of_element.name.name = named.name.name.strip_prefix('_')?.to_owned();
            of_element.dimensions += 1;
            resolve(&of_element).ok()
        };
        builtin().or_else(element).ok_or_else(|| nowhere(error))
    })
}

/// The name of a function alone, with its schema if that does not lead to it and no other (regprocout).
pub(super) fn lone_function_name(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    let name = function_name(source, oid)?;
    match function_oid(source, &name) {
        Ok(found) if found == oid => Some(name),
        _ => Some(match source.catalog().routine_by_oid(oid) {
            Some(routine) => source.quoting().qualified(&routine.schema, &routine.name),
            None => format!("{}.{name}", source.quoting().name("pg_catalog")),
        }),
    }
}

pub(super) fn function_name(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    if let Some(name) = built_in_name(oid) {
        return Some(source.quoting().name(name));
    }
    let routine = source.catalog().routine_by_oid(oid)?;
    let visible =
        source.catalog().routines(None, &routine.name, source.search_path()).iter().any(|r| r.oid == oid);
    Some(if visible {
        source.quoting().name(&routine.name)
    } else {
        source.quoting().qualified(&routine.schema, &routine.name)
    })
}

pub(super) fn procedure_name(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    let name = function_name(source, oid)?;
    let types = match builtin::args(oid) {
        Some(args) => args.iter().map(|a| bare_type_text(source, *a)).collect::<Vec<_>>().join(","),
        None => signature(source, &*source.catalog().routine_by_oid(oid)?),
    };
    Some(format!("{name}({types})"))
}

/// An operator's name without the one schema that has any.
fn bare_operator(text: &str) -> &str {
    let name = text.trim();
    name.strip_prefix("pg_catalog.").or_else(|| name.strip_prefix("\"pg_catalog\".")).unwrap_or(name)
}

fn undefined_operator(text: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {text}"))
}

pub(super) fn operator_oid(text: &str) -> Result<Oid> {
    match function::lookup_operators(bare_operator(text)) {
        [] => Err(undefined_operator(text)),
        [one] => Ok(one.oid),
        _ => Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("more than one operator named {text}"))),
    }
}

/// `name(type, type)`; NONE stands for the operand that a prefix operator has not.
pub(super) fn operator_signature_oid(source: &dyn SystemSource, text: &str) -> Result<Oid> {
    let (name, types) = signature_parts(text)?;
    let wrong = |state, message: &str, hint: &str| Err(SqlError::new(state, message).with_hint(hint));
    let [left, right] = types[..] else {
        return match types.len() {
            0 | 1 => wrong(
                SqlState::UNDEFINED_PARAMETER,
                "missing argument",
                "Use NONE to denote the missing argument of a unary operator.",
            ),
            _ => wrong(
                SqlState::TOO_MANY_ARGUMENTS,
                "too many arguments",
                "Provide two argument types for operator.",
            ),
        };
    };
    let operand = |name: &str| match name.trim().eq_ignore_ascii_case("none") {
        true => Ok(None),
        false => type_oid(source, name).map(Some),
    };
    let (left, right) = (operand(left)?, operand(right)?);
    let known = function::lookup_operators(bare_operator(name));
    let found = known.iter().find(|known| known.left == left && Some(known.right) == right);
    found.map(|found| found.oid).ok_or_else(|| undefined_operator(text))
}

/// regoperout: with the schema where the name alone leads to several.
pub(super) fn operator_name(oid: Oid) -> Option<String> {
    let operator = function::operator_by_oid(oid)?;
    let alone = function::lookup_operators(operator.name).len() == 1;
    Some(if alone { operator.name.to_owned() } else { format!("pg_catalog.{}", operator.name) })
}

/// regoperatorout.
pub(super) fn operator_signature(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    let operator = function::operator_by_oid(oid)?;
    let left = operator.left.map_or_else(|| "NONE".to_owned(), |left| bare_type_text(source, left));
    Some(format!("{}({left},{})", operator.name, bare_type_text(source, operator.right)))
}

/// pg_table_is_visible: NULL for an oid that is no relation.
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
