//! The catalog: what users have defined, and the system relations that tell of it.
//!
//! - [`catalog`] tables, indexes, routines, sequences, roles and their rights
//! - [`system`]  pg_catalog and information_schema over one

pub mod catalog;
pub mod system;

use archipel_syntax::{ast, parser};
use archipel_types::{
    compare, datum, error, function, io, ordered_set, record, rights, style, type_kind, type_table, types,
};
