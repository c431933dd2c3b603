//! The atomics and locks of the parts that a model checker runs too.
//!
//! Those parts name what they use through their parent's `sync`. In the engine that is this
//! module; under the checker (`crate::models`) it is one of its own.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use std::thread::yield_now;

pub(crate) use crossbeam::utils::Backoff;
pub(crate) use parking_lot::Mutex;
