//! The access methods that operator classes and families are for.

use archipel_sql::error::{Result, SqlError};

use crate::relation::access_method::refuse_for_index;

/// What an access method knows: how many operators and support functions.
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) operators: i64,
    pub(super) functions: i64,
}

const METHODS: [Method; 2] = [
    Method { name: "btree", operators: 5, functions: 5 },
    Method { name: "hash", operators: 1, functions: 3 },
];

pub(super) fn method_named(name: &str) -> Result<&'static Method> {
    if let Some(found) = METHODS.iter().find(|method| method.name == name) {
        return Ok(found);
    }
    if matches!(name, "gist" | "gin" | "spgist" | "brin") {
        return Err(SqlError::unsupported(format_args!("an operator class for access method \"{name}\"")));
    }
    Err(refuse_for_index(name))
}
