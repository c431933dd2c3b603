//! How a tree holds its nodes: alone, or shared with published versions of itself.
//!
//! The partitions' trees own their nodes ([`Exclusive`]). A reference table's tree shares them
//! ([`Shared`]): cloning it is one reference count, and a write copies the nodes on its path
//! that a published version still holds. One implementation of the tree serves both.

use std::ops::Deref;
use std::sync::Arc;

/// A way of holding nodes.
pub trait Pointer: Clone + 'static {
    /// The pointer to one node.
    type Of<T: Clone>: Deref<Target = T>;
    /// Puts a node behind a pointer.
    fn new<T: Clone>(value: T) -> Self::Of<T>;
    /// Write access; a shared node is copied first.
    fn to_mut<T: Clone>(pointer: &mut Self::Of<T>) -> &mut T;
    /// The node itself; a shared node is copied.
    fn take<T: Clone>(pointer: Self::Of<T>) -> T;
    /// A second pointer to an equal node.
    fn share<T: Clone>(pointer: &Self::Of<T>) -> Self::Of<T>;
}

/// Every node has one owner: writes are in place.
#[derive(Clone)]
pub struct Exclusive;

/// Nodes are shared between versions: writes copy what is shared.
#[derive(Clone)]
pub struct Shared;

impl Pointer for Exclusive {
    type Of<T: Clone> = Box<T>;

    fn new<T: Clone>(value: T) -> Box<T> {
        Box::new(value)
    }
    #[inline]
    fn to_mut<T: Clone>(pointer: &mut Box<T>) -> &mut T {
        pointer
    }
    fn take<T: Clone>(pointer: Box<T>) -> T {
        *pointer
    }
    fn share<T: Clone>(pointer: &Box<T>) -> Box<T> {
        pointer.clone()
    }
}

impl Pointer for Shared {
    type Of<T: Clone> = Arc<T>;

    fn new<T: Clone>(value: T) -> Arc<T> {
        Arc::new(value)
    }
    fn to_mut<T: Clone>(pointer: &mut Arc<T>) -> &mut T {
        Arc::make_mut(pointer)
    }
    fn take<T: Clone>(pointer: Arc<T>) -> T {
        Arc::unwrap_or_clone(pointer)
    }
    fn share<T: Clone>(pointer: &Arc<T>) -> Arc<T> {
        Arc::clone(pointer)
    }
}
