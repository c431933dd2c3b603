//! The PostgreSQL frontend/backend protocol, version 3.0 (PostgreSQL 15, chapter 55).
//!
//! - [`frame`]   bytes from a client to messages: bounds are checked before anything is read; [`message`] what is
//!   in them, [`recode`] of clients that speak another encoding
//! - [`startup`] the untyped packets that open a connection
//! - [`socket`]  a connection, over TCP or a Unix socket alike, encrypted or not
//! - [`tls`]     its encryption, and what is known of it
//! - [`output`]  messages to a client, appended to one buffer and flushed by the session loop
//!
//! Decoding is ours because the decoder of `pgwire` trusts lengths and counts inside a message
//! (a truncated Bind panics it), replaces invalid UTF-8 and copies every field. Messages that
//! are not per row or per statement are encoded by `pgwire`'s types.
//!
//! Invariant: no byte sequence a client sends makes this module panic or allocate more than
//! the client has really sent.

pub mod frame;
pub mod message;
pub mod output;
mod recode;
pub mod socket;
pub mod startup;
pub mod tls;
