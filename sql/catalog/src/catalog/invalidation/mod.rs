//! Until when something is good that was made of a catalog, as PostgreSQL's plan cache asks.
//!
//! - [`lookups`]         what a plan has asked of a catalog, and whether another one answers the same
//! - [`lookup_recorder`] who writes it down
//! - [`validity`]        the same for compiled routines and triggers, and texts that they bind
//! - [`dependents`]      whose answers may have changed between two catalogs, without a look at all;
//!   `difference` what differs between those

pub mod dependents;
mod difference;
pub(super) mod lookup_recorder;
pub mod lookups;
pub mod validity;
