//! COPY.
//!
//! - [`copy_in`]    FROM STDIN; [`target`] what its rows go to; [`copy_batch`] they, batch by batch
//! - [`copy_out`]   TO STDOUT
//! - [`source`], [`sink`] files and programs of the server instead of the client; [`server_file`] what both
//!   have in common, [`program`] programs
//! - [`state`]      a COPY FROM that is taking data

mod copy_batch;
pub(super) mod copy_in;
mod copy_out;
mod program;
mod server_file;
pub(super) mod sink;
mod source;
pub(super) mod state;
mod target;
