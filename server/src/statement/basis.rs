//! What a plan was made of, and so until when it is good ([`super::validity`]).

use std::sync::Arc;

use archipel_sql::catalog::{Catalog, Lookups, Requirement};
use archipel_sql::types::Oid;

/// A role and its setting of `row_security`.
pub(crate) type Reader = (Oid, bool);

/// What a plan was made of.
#[derive(Clone)]
pub struct Basis {
    /// What binding it asked of the catalog.
    pub bound: Arc<Lookups>,
    /// And what compiling it did, with the routines it calls.
    pub compiled: Arc<Lookups>,
    /// What whoever runs it must be allowed.
    pub needed: Arc<[Requirement]>,
    /// For whom it was made, if tables with row security went into it: to others it means something else.
    reader: Option<Reader>,
}

impl Basis {
    /// Of a plan that was made for a reader.
    pub fn new(
        bound: Arc<Lookups>,
        compiled: Arc<Lookups>,
        needed: Vec<Requirement>,
        reader: Reader,
    ) -> Basis {
        let is_for_one = bound.have_row_security() || compiled.have_row_security();
        Basis { bound, compiled, needed: needed.into(), reader: is_for_one.then_some(reader) }
    }

    /// The same of a plan that was compiled anew.
    pub fn compiled_anew(&self, compiled: Arc<Lookups>, reader: Reader) -> Basis {
        Basis::new(self.bound.clone(), compiled, self.needed.to_vec(), reader)
    }

    /// Whether it was made for this reader, or for everybody: then nobody is asked who it is.
    #[inline]
    pub fn is_for(&self, reader: impl FnOnce() -> Reader) -> bool {
        self.reader.is_none_or(|of| of == reader())
    }

    /// Whether a new analysis would come to the same.
    pub fn holds(&self, catalog: &Catalog, reader: Reader) -> bool {
        self.is_for(|| reader) && self.bound.hold(catalog) && self.compiled.hold(catalog)
    }
}
