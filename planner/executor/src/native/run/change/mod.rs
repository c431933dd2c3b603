//! Changing rows.
//!
//! - [`insert_row`] one new row on its way into its table
//! - [`insert_foresight`] what will become of proposed rows
//! - [`cross_partition`] rows that become another partition's
//! - [`merge`] MERGE
//! - [`target`] the rows an UPDATE or DELETE is about
//! - [`trigger`] triggers
//! - [`row_trigger`] changes of tables with triggers
//! - [`fate`] what the parts of one statement are going to write
//! - [`write`] values to cells, cells to a row and its key

pub(crate) mod cross_partition;
pub(crate) mod fate;
pub(crate) mod insert_foresight;
pub(crate) mod insert_row;
pub(crate) mod merge;
pub(crate) mod row_trigger;
pub(crate) mod target;
pub(crate) mod trigger;
pub(crate) mod write;
