//! How many rows the specification asks for.

pub(super) const DISTRICTS: i32 = 10;

pub(super) const CUSTOMERS: i32 = 3_000;

pub(super) const ITEMS: i32 = 100_000;
