//! Roles, owners and privileges.
//!
//! - [`role`] roles
//! - [`owner`] whose objects are
//! - [`owned_objects`] DROP OWNED and REASSIGN OWNED
//! - [`setting_list`] settings that sessions begin with
//! - [`policy_role`] policies that are for a role
//! - [`grant`] GRANT and REVOKE
//! - [`default_privileges`] ALTER DEFAULT PRIVILEGES
//! - [`dependence`] what keeps a role from being dropped

pub(crate) mod default_privileges;
pub(crate) mod dependence;
pub(crate) mod grant;
pub(crate) mod owned_objects;
pub(crate) mod owner;
mod policy_role;
pub(crate) mod role;
pub(crate) mod setting_list;
