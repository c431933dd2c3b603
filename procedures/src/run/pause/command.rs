//! A statement that the session has to run.

use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::types::Oid;

/// A statement that a routine leaves to the session.
#[derive(Clone)]
pub struct Command {
    pub text: Arc<str>,
    /// As CONTEXT lines show it.
    pub written: Arc<str>,
    /// Its parameters, with their types.
    pub params: Vec<(Oid, Datum)>,
    /// The routines around it that run with settings or rights of their own, innermost first: the
    /// session runs it with those.
    pub within: Vec<Within>,
    /// Whether it follows the end of a transaction, with no query between.
    pub begins: bool,
}

/// A routine with SET clauses, or SECURITY DEFINER.
#[derive(Clone)]
pub struct Within {
    pub routine: Oid,
    pub definer: bool,
    pub settings: Vec<(String, String)>,
}
