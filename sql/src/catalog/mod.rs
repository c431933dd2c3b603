//! Catalog objects: immutable descriptions, shared by `Arc`, replaced as a whole by DDL.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::types::{Oid, Type};

/// A table, or a view over the server's own state, as statements see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub kind: TableKind,
    /// Visible columns, attnum order.
    pub columns: Vec<Column>,
    pub primary_key: Option<KeyConstraint>,
    /// Secondary indexes, those behind UNIQUE constraints included, the primary key's not.
    pub indexes: Vec<Index>,
    pub checks: Vec<Check>,
    pub foreign_keys: Vec<ForeignKey>,
    pub distribution: Distribution,
    /// The engine's number for the table's rows.
    pub tree: u32,
    /// Grows with every change of the definition; plans compare it after claiming.
    pub version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableKind {
    Table,
    /// Rows computed from server or catalog state: pg_catalog, information_schema, archipel.
    System,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub ty: Type,
    pub not_null: bool,
    /// SQL text of the default expression.
    pub default: Option<String>,
}

/// A primary key or unique constraint's columns, as indexes into [`Table::columns`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyConstraint {
    pub oid: Oid,
    pub name: String,
    pub columns: Vec<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    pub oid: Oid,
    pub name: String,
    pub columns: Vec<IndexColumn>,
    pub unique: bool,
    /// Created by a UNIQUE constraint of the same name.
    pub constraint: bool,
    /// The engine's number for the index's entries.
    pub tree: u32,
    /// `None`: in the table's partitions; else the group the entries are distributed in.
    pub global_group: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    pub column: u16,
    pub descending: bool,
    pub nulls_first: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub oid: Oid,
    pub name: String,
    /// SQL text of the condition.
    pub condition: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    pub oid: Oid,
    pub name: String,
    pub columns: Vec<u16>,
    pub references: Oid,
    pub referenced_columns: Vec<u16>,
}

/// Where a table's rows live, in the words of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    /// By this column, in this co-location group. The storage key begins with it.
    Column {
        column: u16,
        group: u32,
    },
    /// A table without a primary key: by a hidden row number, in a group of its own.
    HiddenId {
        group: u32,
    },
    Reference,
    /// System views have no rows of their own.
    None,
}

/// How a parameter of a routine is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArgMode {
    In,
    Out,
    InOut,
    Variadic,
    Table,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoutineArg {
    pub name: Option<String>,
    pub mode: ArgMode,
    pub ty: Type,
    /// SQL text of the default expression.
    pub default: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoutineKind {
    Function,
    Procedure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    PlPgSql,
    Sql,
}

/// A deployed routine: its declaration and source; the compiled form lives in `procedures`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Routine {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub kind: RoutineKind,
    pub language: Language,
    pub args: Vec<RoutineArg>,
    /// Functions: the declared result (RECORD where OUT or TABLE columns give several).
    pub result: Type,
    pub returns_set: bool,
    pub strict: bool,
    /// 'i', 's' or 'v'.
    pub volatility: char,
    /// The body, as written between the quotes.
    pub source: String,
    /// Set by `create_distributed_function`: the argument that routes calls.
    pub distribution_arg: Option<u16>,
    pub version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub start: i64,
    pub increment: i64,
    pub min_value: i64,
    pub max_value: i64,
    pub cycle: bool,
    pub cache: i64,
    /// The column that owns it (serial): table and column index.
    pub owned_by: Option<(Oid, u16)>,
}

/// Shared handles, as the binder and the plans keep them.
pub type TableRef = Arc<Table>;
pub type RoutineRef = Arc<Routine>;
