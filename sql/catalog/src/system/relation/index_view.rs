//! A table's indexes in one form, and the numbers that several relations give of tables and columns.

use crate::catalog::{EXPRESSION, Index, IndexExpression, NominalIndex, Sequence, Table};
use crate::datum::Datum;
use crate::system::SystemSource;
use crate::system::shape::{letter, text};
use crate::type_kind::Layout;
use crate::type_table::{layout, type_info};
use crate::types::{Oid, Type};

/// Oids of pg_class, pg_constraint, pg_proc and pg_namespace as object classes.
pub(in crate::system) const PG_CLASS: Oid = Oid(1259);

pub(in crate::system) const PG_CONSTRAINT: Oid = Oid(2606);

pub(in crate::system) const PG_PROC: Oid = Oid(1255);

pub(in crate::system) const PG_TYPE: Oid = Oid(1247);

pub(in crate::system) const PG_NAMESPACE: Oid = Oid(2615);

pub(in crate::system) fn schema_oid(source: &dyn SystemSource, name: &str) -> Datum {
    Datum::Oid(source.catalog().schema(name).map_or(Oid(0), |schema| schema.oid))
}

/// A table's indexes, the primary key's first, in one form: oid, name, columns, flags.
pub(in crate::system) struct IndexView<'t> {
    pub table: &'t Table,
    pub oid: Oid,
    pub name: &'t str,
    /// Column, descending, NULLs first.
    pub columns: Vec<(u16, bool, bool)>,
    pub unique: bool,
    pub nulls_equal: bool,
    pub primary: bool,
    pub constraint: Option<Oid>,
    pub include: &'t [u16],
    pub predicate: Option<&'t str>,
    pub expressions: &'t [IndexExpression],
    /// The index of the table that this one's table is a partition of.
    pub parent: Option<Oid>,
    pub method: &'t str,
    /// Storage parameters.
    pub options: &'t [(String, String)],
    /// The operator classes of its parts, where they are not the types' own.
    pub classes: &'t [Option<String>],
    /// The collations of its parts that are others than those of what they are over.
    pub collations: Vec<Option<Oid>>,
}

impl IndexView<'_> {
    /// The part of its key at a place, if it is no plain column.
    pub fn expression(&self, place: usize) -> Option<&IndexExpression> {
        let (column, ..) = self.columns.get(place)?;
        self.expressions.iter().find(|part| *column == EXPRESSION && usize::from(part.place) == place)
    }

    /// The name and type of a part of its key.
    pub(in crate::system) fn part(&self, place: usize) -> Option<(String, Type)> {
        if let Some(expression) = self.expression(place) {
            // Those of old databases have none.
            let name = if expression.name.is_empty() { "expr" } else { &expression.name };
            return Some((name.to_owned(), expression.ty));
        }
        let column = self.table.columns.get(usize::from(*self.all_columns().get(place)?))?;
        Some((column.name.clone(), column.ty))
    }

    /// The columns of its key, then those of INCLUDE.
    pub fn all_columns(&self) -> Vec<u16> {
        self.columns.iter().map(|(column, ..)| *column).chain(self.include.iter().copied()).collect()
    }
}

pub(in crate::system) fn indexes(table: &Table) -> impl Iterator<Item = IndexView<'_>> {
    let primary = table.primary_key.iter().map(move |key| IndexView {
        table,
        oid: key.oid,
        name: &key.name,
        columns: key.columns.iter().map(|c| (*c, false, false)).collect(),
        unique: true,
        nulls_equal: false,
        primary: true,
        constraint: Some(key.constraint_oid()),
        include: &key.include,
        predicate: None,
        expressions: &[],
        parent: key.parent,
        method: "btree",
        options: &key.options,
        classes: &[],
        collations: Vec::new(),
    });
    let secondary = table.indexes.iter().map(move |index| {
        let method = if index.hash { "hash" } else { "btree" };
        secondary_view(table, index, method, None)
    });
    let nominal = table.nominal.indexes.iter();
    let nominal = nominal.map(move |known| secondary_view(table, &known.index, &known.method, Some(known)));
    primary.chain(secondary).chain(nominal)
}

fn secondary_view<'t>(
    table: &'t Table,
    index: &'t Index,
    method: &'t str,
    nominal: Option<&'t NominalIndex>,
) -> IndexView<'t> {
    IndexView {
        table,
        oid: index.oid,
        name: &index.name,
        columns: index.columns.iter().map(|c| (c.column, c.descending, c.nulls_first)).collect(),
        unique: index.unique,
        nulls_equal: index.nulls_equal,
        primary: false,
        constraint: index.constraint_oid(),
        include: &index.include,
        predicate: index.predicate.as_deref(),
        expressions: &index.expressions,
        parent: index.parent,
        method,
        options: nominal.map_or(&index.options[..], |known| &known.options[..]),
        classes: nominal.map_or(&index.classes[..], |known| &known.classes[..]),
        collations: index.columns.iter().map(|part| part.collation).collect(),
    }
}

/// Oid of the pg_attrdef row of a column: the table's number with the column's below it, in
/// a half of the number space no object is drawn from.
pub(in crate::system) fn default_oid(table: Oid, attribute: usize) -> Oid {
    Oid(0x8000_0000 | (table.0 << 11) | attribute as u32)
}

/// The cells every attribute row has.
pub(in crate::system) fn attribute(
    relation: Oid,
    name: &str,
    ty: Type,
    number: usize,
) -> Vec<(&'static str, Datum)> {
    let info = type_info(ty.oid);
    let layout = layout(ty.oid).unwrap_or(Layout::UNKNOWN);
    vec![
        ("attrelid", Datum::Oid(relation)),
        ("attname", text(name)),
        ("atttypid", Datum::Oid(ty.oid)),
        ("attstattarget", Datum::Int4(-1)),
        ("attlen", Datum::Int2(layout.length)),
        ("attnum", Datum::Int2(number as i16)),
        ("attndims", Datum::Int4(i32::from(info.is_some_and(crate::type_table::TypeInfo::is_array)))),
        ("attcacheoff", Datum::Int4(-1)),
        ("atttypmod", Datum::Int4(ty.typmod)),
        ("attbyval", Datum::Bool(layout.by_value)),
        ("attalign", letter(layout.align)),
        ("attstorage", letter(layout.storage)),
        ("attislocal", Datum::Bool(true)),
        ("attcollation", Datum::Oid(info.map_or(Oid(0), |i| i.collation))),
    ]
}

/// The default btree operator class of a type, from PostgreSQL's pg_opclass.
pub(in crate::system) fn operator_class(ty: Oid) -> Oid {
    // Types without a class of their own use the one they are binary coercible to.
    let ty = match ty {
        Oid::VARCHAR => Oid::TEXT,
        Oid::CIDR => Oid::INET,
        other if crate::type_table::element_of(other).is_some() => Oid::ANYARRAY,
        other => other.class_input().unwrap_or(other),
    };
    crate::system::operator_class::builtin_class::operator_classes()
        .find(|class| class.input == ty && class.default)
        .map_or(Oid(0), |class| class.oid)
}

/// Whether the sequence of an identity column.
pub(in crate::system) fn is_identity(source: &dyn SystemSource, sequence: &Sequence) -> bool {
    sequence
        .owned_by
        .and_then(|(table, column)| {
            let table = source.catalog().table_by_oid(table)?;
            table.columns.get(usize::from(column)).map(|c| c.identity.is_some())
        })
        .unwrap_or(false)
}
