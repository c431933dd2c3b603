//! INTO: where the columns of a row go, and what is said where there is none, or another.

use super::expression::Compiled;
use crate::run::place::Targets;

/// INTO.
pub struct IntoPlan {
    pub strict: bool,
    /// INSERT, UPDATE or DELETE: a second row is an error even without STRICT.
    pub modifies: bool,
    pub targets: Targets,
    pub parameters: StrictParameters,
    /// How many columns more the query has than there are targets; less, if negative.
    pub surplus: i32,
    pub casts: Vec<IntoCast>,
    /// The query reads one row by its key, and the columns go into the variables as they are.
    pub direct: bool,
}

/// What a column becomes on its way into a variable.
pub struct IntoCast {
    pub place: usize,
    /// Where the value stands meanwhile.
    pub scratch: u32,
    pub cast: Compiled,
}

/// What an error of INTO STRICT tells of the query's parameters.
#[derive(Default)]
pub struct StrictParameters {
    /// What the routine itself says of it; else the session's setting does.
    pub told: Option<bool>,
    /// Names and values, as text.
    pub values: Vec<(Box<str>, Compiled)>,
}
