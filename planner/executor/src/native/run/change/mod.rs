//! Changing rows.
//!
//! - [`insert`] INSERT
//! - [`insert_row`] one new row on its way into its table
//! - [`insert_foresight`] what will become of proposed rows
//! - [`tuple_routing`] new rows of partitioned tables
//! - [`update`] UPDATE
//! - [`delete`] DELETE
//! - [`assignment`] what an UPDATE makes of a row
//! - [`inheritance`] changes of tables whose rows are in others
//! - [`cross_partition`] rows that become another partition's
//! - [`merge`] MERGE
//! - [`target`] the rows an UPDATE or DELETE is about
//! - [`instead_of`] changes of a view
//! - [`trigger`] triggers
//! - [`row_trigger`] changes of tables with triggers
//! - [`fate`] what the parts of one statement are going to write
//! - [`write`] values to cells, cells to a row and its key

pub(crate) mod assignment;
pub(crate) mod cross_partition;
pub(crate) mod delete;
pub(crate) mod fate;
pub(crate) mod inheritance;
pub(crate) mod insert;
pub(crate) mod insert_foresight;
pub(crate) mod insert_row;
pub(crate) mod instead_of;
pub(crate) mod merge;
pub(crate) mod row_trigger;
pub(crate) mod target;
pub(crate) mod trigger;
pub(crate) mod tuple_routing;
pub(crate) mod update;
pub(crate) mod write;
