//! Relations and functions about roles and their rights.
//!
//! - [`roles`]      pg_authid, pg_auth_members, pg_default_acl …
//! - [`privileges`] has_table_privilege and its kin
//! - [`acl_functions`] makeaclitem, acldefault, aclexplode

pub(super) mod acl_functions;
pub(super) mod privileges;
pub(super) mod roles;
