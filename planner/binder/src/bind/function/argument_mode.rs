//! Which parameters of a routine a call gives values for.

use archipel_sql::catalog::ArgMode;

/// CALL names OUT parameters, too; their values are not used.
pub(crate) fn is_input(mode: ArgMode, procedure_call: bool) -> bool {
    match mode {
        ArgMode::In | ArgMode::InOut | ArgMode::Variadic => true,
        ArgMode::Out => procedure_call,
        ArgMode::Table => false,
    }
}
