//! Arguments and results of built-in functions by their numbers, as pg_proc and its functions tell them.

use super::function_name::window;
use super::type_functions;
use crate::function;
use crate::ordered_set::HYPOTHETICAL;
use crate::system::SystemSource;
use crate::system::definition::bare_type_text;
use crate::types::Oid;

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
