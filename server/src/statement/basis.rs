//! What a plan was made of, and so until when it is good ([`super::validity`]).

use std::sync::Arc;

use archipel_sql::catalog::{Catalog, Lookups, Requirement};

/// What a plan was made of.
#[derive(Clone)]
pub struct Basis {
    /// What binding it asked of the catalog.
    pub bound: Arc<Lookups>,
    /// And what compiling it did, with the routines it calls.
    pub compiled: Arc<Lookups>,
    /// What whoever runs it must be allowed.
    pub needed: Arc<[Requirement]>,
}

impl Basis {
    /// Whether a new analysis would come to the same.
    pub fn holds(&self, catalog: &Catalog) -> bool {
        self.bound.hold(catalog) && self.compiled.hold(catalog)
    }
}
