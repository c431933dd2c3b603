//! Calls: which function is meant, and what becomes of the call.
//!
//! - [`call`] calls of functions, aggregates, window functions and routines
//! - [`call_syntax`] SQL's special call syntaxes
//! - [`argument`] arguments, and what routines answer with; [`argument_mode`] which parameters are given
//! - [`overload`] which function a call means
//! - [`default_argument`] what stands for arguments that are left out
//! - [`resolve`] the choice among signatures
//! - [`gather`] aggregates and sets on their way to a query
//! - [`aggregate`] aggregates that users defined
//! - [`window`] OVER, WINDOW and frames
//! - [`json`] what JSON functions must know of types
//! - [`support_function`] functions that definitions name
//! - [`type_call`] casts that are written as calls

pub(crate) mod aggregate;
pub mod argument;
pub(super) mod argument_mode;
pub mod call;
pub mod call_syntax;
pub(crate) mod default_argument;
pub(crate) mod gather;
pub(crate) mod json;
pub(crate) mod overload;
pub mod resolve;
pub mod support_function;
mod type_call;
pub mod window;
