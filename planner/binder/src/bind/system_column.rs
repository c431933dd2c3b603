//! System columns: what their names mean of a row (chapter 5.5). Rows have no heads here, so each is made of
//! what a row is:
//!
//! - `tableoid` is the table's number, for rows of several tables a column of the scan;
//! - `ctid` stands for the row's key ([`Binder::row_place`]), or is the number of a row that has none; rows of the
//!   system's catalog have the keys that they have in PostgreSQL, and INSERT tells the number that it has given;
//! - `xmin` is a number that changes with what is in the row, which is what it is compared for;
//! - `xmax`, `cmin` and `cmax` are zero: nobody has deleted a row that a query sees, and commands are not counted.
//!   INSERT tells by a column of its own which rows ON CONFLICT has changed (`xmax`).

use archipel_sql::catalog::{Catalog, KeyConstraint, Relation as Object};
use archipel_sql::catalog::{ROW_PLACE, SYSTEM_COLUMNS, Table, TableKind, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{
    ResolvedFunction, ScalarFunction, internal_function, is_place_integer, lookup_functions,
};
use archipel_sql::system::is_settled;
use archipel_sql::types::{Oid, Type};
use sqlparser::tokenizer::Span;

use super::binder::{Binder, RowNumbers};
use super::clause::Clause;
use super::level::{FoundColumn, Relation, TABLE_NUMBER};
use crate::bound::{BoundExpr, ExprKind};

/// The one that applications take for the version of a row.
const ROW_VERSION: &str = "xmin";

impl Relation {
    /// Whether its rows have a system column that is none of its columns: those of views and queries have none.
    pub(super) fn has_system_column(&self, name: &str) -> bool {
        if !SYSTEM_COLUMNS.contains(&name) {
            return false;
        }
        match self.table.as_ref().map(|table| table.kind) {
            Some(TableKind::Table) => true,
            Some(TableKind::System) => self.table.as_ref().is_some_and(|table| is_catalog(table)),
            _ => false,
        }
    }
}

/// Whether a relation of the system's is a table, and no view.
fn is_catalog(table: &Table) -> bool {
    table.schema == "pg_catalog" && is_settled(table)
}

/// What tells the rows of a table of the system's catalog apart: their numbers, or the columns that are the key in
/// PostgreSQL, none of which is NULL.
fn catalog_key(table: &Table) -> Option<Vec<usize>> {
    let of = |names: &[&str]| names.iter().map(|name| table.column_index(name).map(usize::from)).collect();
    if let Some(key) = of(&["oid"]) {
        return Some(key);
    }
    let names: &[&str] = match table.name.as_str() {
        "pg_aggregate" => &["aggfnoid"],
        "pg_attribute" => &["attrelid", "attnum"],
        "pg_auth_members" => &["roleid", "member"],
        "pg_db_role_setting" => &["setdatabase", "setrole"],
        "pg_depend" => &["classid", "objid", "objsubid", "refclassid", "refobjid", "refobjsubid", "deptype"],
        "pg_description" | "pg_init_privs" => &["objoid", "classoid", "objsubid"],
        "pg_foreign_table" => &["ftrelid"],
        "pg_index" => &["indexrelid"],
        "pg_inherits" => &["inhrelid", "inhseqno"],
        "pg_largeobject" => &["loid", "pageno"],
        "pg_partitioned_table" => &["partrelid"],
        "pg_range" => &["rngtypid"],
        "pg_sequence" => &["seqrelid"],
        "pg_shdepend" => &["dbid", "classid", "objid", "objsubid", "refclassid", "refobjid", "deptype"],
        "pg_shdescription" => &["objoid", "classoid"],
        "pg_statistic" => &["starelid", "staattnum", "stainherit"],
        _ => return None,
    };
    of(names)
}

/// A call of `archipel_row_place`: the place of the row with these values in columns that are the key of a
/// constraint.
fn place_call(constraint: Oid, values: Vec<BoundExpr>) -> Result<BoundExpr> {
    let integers = values.iter().all(|value| is_place_integer(value.ty.oid));
    let mut args = vec![
        BoundExpr::constant(Datum::Oid(constraint), Type::OID),
        BoundExpr::constant(Datum::Bool(integers), Type::BOOL),
    ];
    args.extend(values);
    own_call("archipel_row_place", args, Type::TID)
}

/// The key of the partitioned table that a key is a part of: rows have one place, whoever reads them.
fn topmost(catalog: &Catalog, key: &KeyConstraint) -> Oid {
    let (mut oid, mut parent) = (key.oid, key.parent);
    while let Some(above) = parent {
        oid = above;
        parent = match catalog.relation_by_oid(above) {
            Some(Object::PrimaryKey(table)) => table.primary_key.as_ref().and_then(|key| key.parent),
            _ => None,
        };
    }
    oid
}

/// The place of a row of a table that keeps its rows by a key, over the row; `None` for another table.
pub fn place_by_key(catalog: &Catalog, table: &Table) -> Result<Option<BoundExpr>> {
    let Some(key) = &table.primary_key else { return Ok(None) };
    let columns = key.columns.iter().map(|column| usize::from(*column));
    let values = columns.map(|column| BoundExpr::column(column, table.columns[column].ty)).collect();
    place_call(topmost(catalog, key), values).map(Some)
}

/// A function of our own.
fn own_function(name: &str) -> Result<&'static ScalarFunction> {
    let named = || lookup_functions(name).first().copied();
    let found = internal_function(name).or_else(named);
    found.ok_or_else(|| SqlError::internal(format!("there is no function {name}")))
}

/// A call of a function of our own.
pub(super) fn own_call(name: &str, args: Vec<BoundExpr>, ty: Type) -> Result<BoundExpr> {
    let function = ResolvedFunction { function: own_function(name)?, result: ty };
    Ok(BoundExpr::new(ExprKind::Call { function, args }, ty))
}

impl Binder<'_, '_> {
    /// What a system column of a relation means that is none of its columns; `None` if it has none of this name,
    /// or none yet: then the statement is bound again.
    pub(super) fn system_column(
        &mut self,
        (place, relation): (usize, usize),
        name: &str,
        span: Span,
    ) -> Result<Option<FoundColumn>> {
        if let Some(refused) = self.refused_system_column(name, span) {
            return Err(refused);
        }
        let known = &self.levels[place].relations[relation];
        if !known.has_system_column(name) {
            return Ok(None);
        }
        let Some(table) = known.table.clone() else { return Ok(None) };
        let zero = |ty: Oid| BoundExpr::constant(Datum::Oid(Oid(0)), Type::of(ty));
        let expr = match name {
            TABLE_NUMBER => BoundExpr::constant(Datum::Oid(table.oid), Type::OID),
            ROW_VERSION => self.row_version((place, relation), &table, span)?,
            ROW_PLACE => match self.row_place((place, relation), &table, span)? {
                Some(expr) => expr,
                None => return Ok(None),
            },
            "xmax" => zero(Oid::XID),
            _ => zero(Oid::CID),
        };
        Ok(Some(FoundColumn { expr, source: None }))
    }

    /// What is said of a system column where a definition may have none (scanNSItemForColumn, DefineIndex).
    pub(super) fn refused_system_column(&self, name: &str, span: Span) -> Option<SqlError> {
        if !SYSTEM_COLUMNS.contains(&name) {
            return None;
        }
        let (state, message) = match self.levels.last()?.clause {
            Clause::Check if name != TABLE_NUMBER => {
                let message = format!("system column \"{name}\" reference in check constraint is invalid");
                return Some(
                    SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(self.position(span)),
                );
            }
            Clause::Generated if name != TABLE_NUMBER => {
                let message = format!("cannot use system column \"{name}\" in column generation expression");
                return Some(
                    SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(self.position(span)),
                );
            }
            Clause::IndexPredicate | Clause::IndexExpression => {
                (SqlState::FEATURE_NOT_SUPPORTED, "index creation on system columns is not supported")
            }
            Clause::PartitionKey => (
                SqlState::INVALID_OBJECT_DEFINITION,
                "partition key expressions cannot contain system column references",
            ),
            _ => return None,
        };
        Some(SqlError::new(state, message))
    }

    /// A number that changes with what is in a row. The system's relations change with the catalog.
    fn row_version(
        &mut self,
        (place, relation): (usize, usize),
        table: &TableRef,
        span: Span,
    ) -> Result<BoundExpr> {
        let ty = Type::of(Oid::XID);
        if table.kind == TableKind::System {
            return own_call("archipel_catalog_version", Vec::new(), ty);
        }
        let columns = &self.levels[place].relations[relation].columns;
        let shown: Vec<usize> = (0..columns.len()).filter(|column| !columns[*column].hidden).collect();
        let values = self.read_for((place, relation), &shown, ROW_VERSION, span);
        own_call("archipel_row_version", values, ty)
    }

    /// The place of a row that is kept by its key: a call of `archipel_row_place` over that, which conditions are
    /// led back to the key by (`expression/row_place.rs`). `None` where rows have numbers instead, which
    /// the statement does not read yet.
    fn row_place(
        &mut self,
        (place, relation): (usize, usize),
        table: &TableRef,
        span: Span,
    ) -> Result<Option<BoundExpr>> {
        if table.kind == TableKind::System {
            let Some(columns) = catalog_key(table) else { return Ok(None) };
            let values = self.read_for((place, relation), &columns, ROW_PLACE, span);
            return place_call(table.oid, values).map(Some);
        }
        let known = &self.levels[place].relations[relation];
        let of_all = table.primary_key.as_ref().filter(|_| !known.reads_heirs());
        let Some(key) = of_all else {
            if known.reads_family() && self.row_numbers == RowNumbers::BehindColumns {
                let what =
                    "ctid of a table with heirs or partitions of which some have primary keys of their own";
                return Err(SqlError::unsupported(what).at(self.position(span)));
            }
            self.row_numbers.ask();
            return Ok(None);
        };
        let columns: Vec<usize> = key.columns.iter().map(|column| usize::from(*column)).collect();
        // To a stored query that is older than the column it is not there.
        let is_there = |column: &usize| known.columns.get(*column).is_some_and(|column| !column.hidden);
        if !columns.iter().all(is_there) {
            return Err(SqlError::unsupported("ctid of a table whose key is younger than what is stored"));
        }
        let constraint = topmost(self.env.catalog, key);
        let values = self.read_for((place, relation), &columns, ROW_PLACE, span);
        place_call(constraint, values).map(Some)
    }

    /// Columns of a relation that a system column is made of; messages are about that.
    fn read_for(
        &mut self,
        (place, relation): (usize, usize),
        columns: &[usize],
        name: &str,
        span: Span,
    ) -> Vec<BoundExpr> {
        let before = self.levels[place].references.len();
        let read = |column: &usize| self.reference(place, relation, *column, span).expr;
        let values = columns.iter().map(read).collect();
        let level = &mut self.levels[place];
        let table = level.relations[relation].name.as_ref();
        let shown = table.map_or_else(|| name.to_owned(), |table| format!("{table}.{name}"));
        for reference in level.references.iter_mut().skip(before) {
            reference.name.clone_from(&shown);
        }
        values
    }
}
