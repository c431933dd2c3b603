//! The protocol's two ways to say something, and what lies between a socket and a statement.
//!
//! - [`connection`] the loop: bytes in, messages handled in order, replies out; [`dispatch`] which message may come
//!   when; [`startup_settings`] what a session begins with, [`command_line`] as options
//! - [`simple`]     the simple query protocol: scripts
//! - [`extended`]   Parse, Bind, Describe, Execute, Close; [`describe`] what Describe answers; [`fastpath`] function calls
//! - [`pipeline`]   statements that wait for Sync, and run as one
//! - [`pipeline_state`] how far a pipeline has come; [`script`] what is left of a text while a COPY of it runs

mod command_line;
pub mod connection;
mod describe;
mod dispatch;
mod extended;
mod fastpath;
pub(super) mod pipeline;
pub(super) mod pipeline_state;
pub(super) mod script;
pub(super) mod simple;
mod startup_settings;
