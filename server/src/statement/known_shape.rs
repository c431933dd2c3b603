//! What an executor knows of a shape ([`super::shapes`]).

use std::sync::Arc;

use super::Prepared;
use super::basis::Basis;

/// What is known of a shape.
#[derive(Clone)]
pub enum Known {
    /// A statement of it has been prepared.
    Met,
    /// Its literals are more than values, as of the catalog of this version, and for as long as a
    /// statement of it means the same.
    Literal(u64, Option<Basis>),
    /// The plan for all of its statements.
    Plan(Arc<Prepared>),
}
