//! Routines: PL/pgSQL and SQL functions, compiled to one-shot programs.
//!
//! - [`plpgsql`] the language: lexer, grammar, tree
pub mod plpgsql;
