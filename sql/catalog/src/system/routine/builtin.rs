//! Arguments and results of built-in functions by their numbers, as pg_proc and its functions tell them.

use super::function_name::{built_in_name, window};
use super::type_functions;
use crate::catalog::routine::language_object::PLPGSQL_FUNCTIONS;
use crate::error::{Result, SqlError, SqlState};
use crate::function::{self, Volatility};
use crate::ordered_set::HYPOTHETICAL;
use crate::system::SystemSource;
use crate::system::definition::bare_type_text;
use crate::types::Oid;

/// Where PostgreSQL has the functions of PL/pgSQL (pg_proc.probin).
pub(super) const PLPGSQL_LIBRARY: &str = "$libdir/plpgsql";

/// pg_get_functiondef of a built-in function, of what pg_proc says of it; `None`: there is none of this number.
/// Errors: 42809 for an aggregate.
pub(in crate::system) fn definition(source: &dyn SystemSource, oid: Oid) -> Result<Option<String>> {
    let (Some(name), Some(arguments), Some(result)) =
        (built_in_name(oid), arguments(source, oid), result(source, oid))
    else {
        return Ok(None);
    };
    if function::all_aggregates().iter().any(|aggregate| aggregate.oid == oid) {
        let message = format!("\"{name}\" is an aggregate function");
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    let in_library = PLPGSQL_FUNCTIONS.contains(&oid);
    let (strict, volatility) = traits(oid);
    let mut words = Vec::new();
    if window(oid).is_some() {
        words.push("WINDOW");
    }
    match volatility {
        "i" => words.push("IMMUTABLE"),
        "s" => words.push("STABLE"),
        _ => {}
    }
    if !in_library {
        words.push("PARALLEL SAFE");
    }
    if strict {
        words.push("STRICT");
    }
    let words = if words.is_empty() { String::new() } else { format!(" {}\n", words.join(" ")) };
    let language = if in_library { "c" } else { "internal" };
    let body = window(oid).map_or(name, |window| window.source);
    let library = if in_library { format!("'{PLPGSQL_LIBRARY}', ") } else { String::new() };
    let name = source.quoting().qualified("pg_catalog", name);
    Ok(Some(format!(
        "CREATE OR REPLACE FUNCTION {name}({arguments})\n RETURNS {result}\n LANGUAGE {language}\n\
         {words}AS {library}$function${body}$function$\n"
    )))
}

/// Whether a built-in function is strict, and its volatility, as pg_proc has them.
fn traits(oid: Oid) -> (bool, &'static str) {
    if let Some(f) = function::function_by_oid(oid) {
        let volatility = match f.volatility {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        };
        return (f.strict, volatility);
    }
    if let Some(of_type) = type_functions::by_oid(oid) {
        return (of_type.strict, of_type.volatility);
    }
    let set = function::all_set_functions().iter().find(|f| f.oid == oid).map(|f| f.strict);
    (set.or_else(|| window(oid).map(|f| f.strict)).unwrap_or(false), "i")
}

/// The types of a function's arguments.
pub(in crate::system) fn args(oid: Oid) -> Option<&'static [Oid]> {
    let scalar = function::function_by_oid(oid).map(|f| f.args);
    let aggregate = || function::all_aggregates().iter().find(|f| f.oid == oid).map(|f| f.args);
    let set = || function::all_set_functions().iter().find(|f| f.oid == oid).map(|f| f.args);
    let of_type = || type_functions::by_oid(oid).map(|of_type| &of_type.args[..]);
    let window = || window(oid).map(|window| window.args);
    scalar.or_else(aggregate).or_else(set).or_else(of_type).or_else(window)
}

/// pg_aggregate.aggkind, and how many of the arguments are direct ones.
pub(super) fn aggregate_kind(name: &str) -> (&'static str, i16) {
    match name {
        "percentile_cont" | "percentile_disc" => ("o", 1),
        "mode" => ("o", 0),
        name if HYPOTHETICAL.contains(&name) => ("h", 1),
        _ => ("n", 0),
    }
}

/// pg_get_function_arguments.
pub(in crate::system) fn arguments(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    let types: Vec<String> = args(oid)?.iter().map(|arg| bare_type_text(source, *arg)).collect();
    let aggregate = function::all_aggregates().iter().find(|f| f.oid == oid);
    let (kind, direct) = aggregate.map_or(("n", 0), |f| aggregate_kind(f.name));
    let list = |types: &[String]| types.join(", ");
    Some(match kind {
        // Whatever is given is of the types of what is ordered.
        "h" => format!("VARIADIC {0} ORDER BY VARIADIC {0}", list(&types)),
        "o" => {
            let (given, ordered) = types.split_at(usize::from(direct.unsigned_abs()).min(types.len()));
            format!("{} ORDER BY {}", list(given), list(ordered)).trim_start().to_owned()
        }
        _ => list(&types),
    })
}

/// pg_get_function_result.
pub(in crate::system) fn result(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    let shown = |ty: Oid| bare_type_text(source, ty);
    let scalar = function::function_by_oid(oid).map(|f| shown(f.result));
    let aggregate = || function::all_aggregates().iter().find(|f| f.oid == oid).map(|f| shown(f.result));
    let set = || {
        let f = function::all_set_functions().iter().find(|f| f.oid == oid)?;
        let ty = if let [(_, only)] = f.columns { *only } else { Oid::RECORD };
        Some(format!("SETOF {}", shown(ty)))
    };
    let of_type = || type_functions::by_oid(oid).map(|of_type| shown(of_type.result));
    let window = || window(oid).map(|window| shown(window.result));
    scalar.or_else(aggregate).or_else(set).or_else(of_type).or_else(window)
}
