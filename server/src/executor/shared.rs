//! What the sessions of one executor thread share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::catalog::CatalogState;
use crate::outbox::Outbox;
use crate::server::Server;
use crate::statement::Prepared;
use crate::statement::cache::Cache;
use crate::statement::known_shape::Known;

/// What the sessions of one executor thread share.
pub struct Executor {
    pub number: u16,
    pub statements: RefCell<Cache<Arc<Prepared>>>,
    pub shapes: RefCell<Cache<Known>>,
    pub outbox: Rc<Outbox>,
    pub(super) catalog: RefCell<Arc<CatalogState>>,
}

impl Executor {
    /// The newest catalog; the thread's copy is renewed only when DDL has published another.
    pub fn catalog(&self, server: &Server) -> Arc<CatalogState> {
        let mut cached = self.catalog.borrow_mut();
        if cached.version != server.catalog.version() {
            *cached = server.catalog.current();
        }
        cached.clone()
    }
}
