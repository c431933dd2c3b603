//! information_schema: what the SQL standard's part 11 shows of a catalog.
//!
//! - [`views`]      the views, by name; [`cells`] cells that several have
//! - [`types`]      those about domains and composite types
//! - [`rights`]     who was granted what; [`visibility`] what of the tables a role sees

mod cells;
mod rights;
mod types;
pub(super) mod views;
pub(super) mod visibility;
