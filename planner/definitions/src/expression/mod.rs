//! Expressions that the catalog keeps, as texts.
//!
//! - [`check`] defaults and conditions as the catalog keeps them
//! - [`stored_expression`] the names in them
//! - [`rename`] other names for what they mean
//! - [`literal`] their dates and times
//! - [`names_to_ids`] texts of catalogs that were written before ids stood in them
//! - [`relabel`] other numbers of labels in them
//! - [`schema_usage`] whether their schemas may be looked into

pub(crate) mod check;
pub(crate) mod literal;
pub(crate) mod names_to_ids;
pub(crate) mod relabel;
pub(crate) mod rename;
pub(crate) mod schema_usage;
pub(crate) mod stored_expression;
