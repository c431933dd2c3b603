//! Relations about relations.
//!
//! - [`relations`]     pg_class, pg_attribute, pg_index, pg_constraint, pg_sequence …
//! - [`inheritance`]   pg_inherits, pg_partitioned_table, pg_partition_tree …
//! - [`triggers`]      pg_trigger, information_schema.triggers, pg_get_triggerdef
//! - [`policies`]      pg_policy, pg_policies
//! - [`index_view`]    a table's indexes in one form; [`index_property`] what indexes and their columns can do
//! - [`relation_name`] names as the search path finds them

pub(super) mod index_property;
pub(super) mod index_view;
pub(super) mod inheritance;
pub(super) mod policies;
pub(super) mod relation_name;
pub(super) mod relations;
pub(super) mod triggers;
