//! Tables, views, sequences, and what tables consist of.
//!
//! - [`table`] CREATE TABLE
//! - [`table_like`] LIKE; [`collation`] which types have collations
//! - [`inheritance`] what tables have from those they inherit from
//! - [`partition`] partitioned tables
//! - [`partition_keys`] the keys, indexes and triggers of partitions and heirs
//! - [`view`] views
//! - [`view_query`] their queries
//! - [`sequence`] sequences
//! - [`constraint`] keys, checks, foreign keys, and their names
//! - [`index`] CREATE and DROP INDEX, local and global
//! - [`index_entries`] what rows store for indexes
//! - [`index_placement`] where the entries of indexes were asked to be
//! - [`index_options`] ALTER INDEX … SET and RESET
//! - [`nominal`] definitions without an effect: indexes that serve no query, REPLICA IDENTITY
//! - [`storage_option`] storage parameters
//! - [`tablespace`] TABLESPACE clauses; [`access_method`] USING of tables
//! - [`column_storage`] how columns are stored and sampled
//! - [`trigger`] triggers; [`policy`] policies
//! - [`distribution`] where rows live: defaults, and Citus's functions

pub(crate) mod access_method;
pub(crate) mod collation;
pub(crate) mod column_storage;
pub(crate) mod constraint;
pub mod distribution;
pub(crate) mod index;
pub(crate) mod index_entries;
pub(crate) mod index_options;
pub(crate) mod index_placement;
pub(crate) mod inheritance;
pub(crate) mod nominal;
pub(crate) mod partition;
pub(crate) mod partition_keys;
pub(crate) mod policy;
pub(crate) mod policy_users;
pub(crate) mod sequence;
pub(crate) mod storage_option;
pub(crate) mod table;
pub(crate) mod table_like;
pub(crate) mod tablespace;
pub(crate) mod trigger;
pub(crate) mod view;
pub(crate) mod view_query;
