//! COPY.
//!
//! - [`copy_in`]    FROM STDIN; [`target`] what its rows go to; [`copy_batch`] they, batch by batch
//! - [`copy_out`]   TO STDOUT
//! - [`source`], [`sink`] files and programs of the server instead of the client; [`server_file`] what both
//!   have in common, [`program`] programs, [`stop`] how their threads end
//! - [`state`]      a COPY that is underway

mod copy_batch;
pub(super) mod copy_in;
mod copy_out;
mod program;
pub(super) mod server_file;
mod sink;
mod source;
pub(super) mod state;
mod stop;
mod target;
