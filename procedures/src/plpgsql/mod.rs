//! PL/pgSQL, the language: from the text of a body to a tree.
//!
//! - [`lexer`]      tokens with lines
//! - [`ast`]        the tree, and the chain of names
//! - [`parser`]     the grammar of PostgreSQL 15's pl_gram.y, with its messages
//! - [`conditions`] condition names of EXCEPTION and RAISE
//!
//! Invariant: nothing here asks a catalog or binds an expression.
pub mod ast;
pub mod conditions;
pub(crate) mod current_of;
pub mod lexer;
pub mod parser;
pub(crate) mod whole_row;

use archipel_sql::catalog::{Language, Routine};
use archipel_sql::error::SqlError;

/// What the check `shadowed_variables` finds in a body. Positions count its characters from one.
pub fn shadowed_variables(routine: &Routine) -> Vec<SqlError> {
    if routine.language != Language::PlPgSql {
        return Vec::new();
    }
    let body = parser::parse(&routine.source, &parser::Signature::of(routine));
    body.map(|body| body.shadowed).unwrap_or_default()
}
