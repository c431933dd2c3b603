//! The names of built-in functions by their numbers.

use super::type_functions;
use crate::function;
use crate::function::WindowSignature;
use crate::types::Oid;

/// The window function of this number.
pub(super) fn window(oid: Oid) -> Option<&'static WindowSignature> {
    function::all_windows().iter().find(|window| window.oid == oid)
}

/// The name of a built-in function or aggregate.
pub fn built_in_name(oid: Oid) -> Option<&'static str> {
    let scalar = function::function_by_oid(oid).map(|function| function.name);
    let aggregate = || function::all_aggregates().iter().find(|f| f.oid == oid).map(|f| f.name);
    let set = || function::all_set_functions().iter().find(|f| f.oid == oid).map(|f| f.name);
    let of_type = || type_functions::by_oid(oid).map(|of_type| of_type.name);
    let window = || window(oid).map(|window| window.name);
    scalar.or_else(aggregate).or_else(set).or_else(of_type).or_else(window)
}
