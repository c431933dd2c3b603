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
