//! The numbers of the languages of routines (pg_language).

use crate::types::Oid;

/// Languages: internal, c, sql, and plpgsql under a number of our own.
pub(super) const INTERNAL: Oid = Oid(12);

pub(super) const SQL: Oid = Oid(14);

pub(super) const PLPGSQL: Oid = Oid(13_600);
