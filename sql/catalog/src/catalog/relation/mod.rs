//! Anything that FROM may name.
//!
//! - [`index`]    indexes of a table; [`sequence`] sequences; [`view`] views' stored queries,
//!   [`view_reference`] what they read
//! - [`system_column`] columns that every table has, `ctid` among them
//! - [`policy`]   row-level security; [`policy_definition`] what a policy is
//! - [`nominal`]  what a table's definition says without any effect

pub(super) mod index;
pub mod nominal;
mod policy;
pub(super) mod policy_definition;
pub mod sequence;
pub(super) mod system_column;
pub mod view;
pub(super) mod view_definition;
pub(super) mod view_reference;

use super::{SequenceRef, TableRef};
use crate::types::Oid;

/// A relation: what shares PostgreSQL's pg_class namespace.
#[derive(Clone, Debug)]
pub enum Relation {
    Table(TableRef),
    Sequence(SequenceRef),
    /// A secondary index, by its place in [`Table::indexes`].
    Index(TableRef, usize),
    /// The index of a primary key.
    PrimaryKey(TableRef),
    /// An index without entries, by its place in [`super::Nominal::indexes`].
    Nominal(TableRef, usize),
}

impl Relation {
    pub fn oid(&self) -> Oid {
        match self {
            Relation::Table(table) => table.oid,
            Relation::Sequence(sequence) => sequence.oid,
            Relation::Index(table, index) => table.indexes[*index].oid,
            Relation::PrimaryKey(table) => table.primary_key.as_ref().map_or(Oid(0), |key| key.oid),
            Relation::Nominal(table, place) => table.nominal.indexes[*place].index.oid,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Relation::Table(table) => &table.name,
            Relation::Sequence(sequence) => &sequence.name,
            Relation::Index(table, index) => &table.indexes[*index].name,
            Relation::PrimaryKey(table) => table.primary_key.as_ref().map_or("", |key| &key.name),
            Relation::Nominal(table, place) => &table.nominal.indexes[*place].index.name,
        }
    }

    pub fn schema(&self) -> &str {
        match self {
            Relation::Table(table)
            | Relation::Index(table, _)
            | Relation::PrimaryKey(table)
            | Relation::Nominal(table, _) => &table.schema,
            Relation::Sequence(sequence) => &sequence.schema,
        }
    }
}
