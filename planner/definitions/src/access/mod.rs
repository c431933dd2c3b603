//! Roles, owners and privileges.
//!
//! - [`role`] roles
//! - [`owner`] whose objects are
//! - [`grant`] GRANT and REVOKE
//! - [`default_privileges`] ALTER DEFAULT PRIVILEGES
//! - [`dependence`] what keeps a role from being dropped

pub(crate) mod default_privileges;
pub(crate) mod dependence;
pub(crate) mod grant;
pub(crate) mod owner;
pub(crate) mod role;
