//! Types.
//!
//! - [`user_type`] types that users make: enums, and all of them
//! - [`composite`] types of several fields
//! - [`domain`] domains
//! - [`domain_form`] domains over a domain
//! - [`type_name`] whether a name is free

pub(crate) mod composite;
pub(crate) mod domain;
pub(crate) mod domain_form;
pub(crate) mod type_name;
pub(crate) mod user_type;
