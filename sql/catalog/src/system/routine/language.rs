//! The numbers of the languages of routines (pg_language).

use crate::types::Oid;

/// Languages: internal, c, sql, and plpgsql under a number of our own.
pub(in crate::system) const INTERNAL: Oid = Oid(12);

pub(in crate::system) const SQL: Oid = Oid(14);

pub(in crate::system) const PLPGSQL: Oid = Oid(13_600);
