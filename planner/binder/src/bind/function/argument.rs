//! Arguments: of a call, and those that a routine answers with.

use archipel_sql::catalog::{ArgMode, Routine, RoutineKind};
use archipel_sql::function::ScalarFunction;
use archipel_sql::types::Type;

use crate::bound::BoundExpr;

/// An argument of a call.
pub(crate) struct Argument {
    pub name: Option<String>,
    pub value: BoundExpr,
    /// VARIADIC: the array itself, not its elements.
    pub variadic: bool,
    /// Where it stands, if an error may say so.
    pub position: Option<u32>,
}

/// Whether a function has one result, of a composite type: then its rows have the fields of that.
pub fn answers_fields(routine: &Routine) -> bool {
    let is_out = |mode| matches!(mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table);
    let mut outs = routine.args.iter().filter(|arg| is_out(arg.mode));
    let only = outs.next().filter(|_| outs.next().is_none());
    routine.kind == RoutineKind::Function && only.is_some_and(|arg| arg.ty.oid.is_composite())
}

/// OUT, INOUT and TABLE columns of a routine, as names and types.
pub fn output_arguments(routine: &Routine) -> Vec<(String, Type)> {
    if answers_fields(routine) {
        return Vec::new();
    }
    routine
        .args
        .iter()
        .filter(|arg| matches!(arg.mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table))
        .enumerate()
        .map(|(i, arg)| (arg.name.clone().unwrap_or_else(|| format!("column{}", i + 1)), arg.ty))
        .collect()
}

/// The fields of the record that a function answers, as they are declared.
pub(crate) fn declared_fields(function: &ScalarFunction) -> Vec<(String, Type)> {
    function.columns.iter().map(|(name, ty)| ((*name).to_owned(), Type::of(*ty))).collect()
}
