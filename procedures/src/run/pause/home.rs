//! Registers that keep what a routine goes on with in another form of it ([`super::recompile`]).

use archipel_sql::types::Oid;

/// Where a variable, or a field of one, has its value.
#[derive(Clone, Debug)]
pub struct Home {
    pub variable: u32,
    /// Which of the structures a record takes in the routine; zero for others.
    pub shape: u32,
    /// Empty for a scalar.
    pub field: Box<str>,
    pub ty: Oid,
    pub register: u32,
}

impl Home {
    pub(super) fn is_same(&self, other: &Home) -> bool {
        self.variable == other.variable && self.ty == other.ty && self.field == other.field
    }
}
