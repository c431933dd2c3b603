//! What the sessions of one executor thread share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::outbox::Outbox;
use crate::statement::Prepared;
use crate::statement::cache::Cache;
use crate::statement::known_shape::Known;

/// What the sessions of one executor thread share.
pub struct Executor {
    pub number: u16,
    pub statements: RefCell<Cache<Arc<Prepared>>>,
    pub shapes: RefCell<Cache<Known>>,
    pub outbox: Rc<Outbox>,
}
