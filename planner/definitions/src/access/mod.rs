//! Roles, owners and privileges.
//!
//! - [`role`] roles
//! - [`owner`] whose objects are
//! - [`grant`] GRANT and REVOKE
//! - [`default_privileges`] ALTER DEFAULT PRIVILEGES

pub(crate) mod default_privileges;
pub(crate) mod grant;
pub(crate) mod owner;
pub(crate) mod role;
