//! What the sessions of one executor thread share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::database::Databases;
use crate::outbox::Outbox;
use crate::statement::Prepared;
use crate::statement::cache::{Cache, Key};
use crate::statement::known_shape::Known;

/// What the sessions of one executor thread share.
pub struct Executor {
    pub number: u16,
    pub statements: RefCell<Cache<Arc<Prepared>>>,
    pub shapes: RefCell<Cache<Known>>,
    pub outbox: Rc<Outbox>,
}

impl Executor {
    /// Lets go of what is kept prepared for databases that are no more: it holds on to their catalogs.
    pub fn forget_dropped(&self, databases: &Databases) {
        let is_there = |key: &Key| databases.numbered(key.database).is_some();
        self.statements.borrow_mut().retain(is_there);
        self.shapes.borrow_mut().retain(is_there);
    }
}
