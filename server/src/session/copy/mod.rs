//! COPY.
//!
//! - [`copy_in`]    FROM STDIN; [`copy_batch`] its rows, batch by batch; [`copy_file`] from a file
//! - [`copy_out`]   TO STDOUT
//! - [`state`]      a COPY FROM that is taking data

mod copy_batch;
mod copy_file;
pub(super) mod copy_in;
mod copy_out;
pub(super) mod state;
