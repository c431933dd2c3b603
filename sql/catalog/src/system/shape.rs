//! Columns of the system relations, and rows built by column name.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::catalog::large_object::STORED;
use crate::catalog::selection::Asked;
use crate::catalog::{Column, Comments, RoutineRef, SequenceRef, Table, TableKind, TableRef, UserTypeRef};
use crate::datum::Datum;
use crate::types::{Oid, Type};

use super::sought::Sought;
use super::source::SystemSource;

/// One system relation.
pub(super) struct Shape {
    pub schema: &'static str,
    pub name: &'static str,
    pub oid: Oid,
    /// 'r' for a catalog table, 'v' for a view.
    pub kind: u8,
    pub columns: Vec<ShapeColumn>,
    by_name: FxHashMap<&'static str, usize>,
}

pub(super) struct ShapeColumn {
    pub name: &'static str,
    pub ty: Type,
    pub not_null: bool,
}

fn shapes() -> &'static [Shape] {
    static SHAPES: OnceLock<Vec<Shape>> = OnceLock::new();
    SHAPES.get_or_init(|| include_str!("../../../data/relation.tsv").lines().filter_map(read_shape).collect())
}

fn read_shape(line: &'static str) -> Option<Shape> {
    let mut fields = line.split('\t');
    let (schema, name, oid, kind, columns) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let columns: Vec<ShapeColumn> = columns
        .split(' ')
        .filter_map(|column| {
            let mut parts = column.split(':');
            let (name, oid, typmod, not_null) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            Some(ShapeColumn {
                name,
                ty: Type { oid: Oid(oid.parse().ok()?), typmod: typmod.parse().ok()? },
                not_null: not_null == "t",
            })
        })
        .collect();
    let by_name = columns.iter().enumerate().map(|(i, c)| (c.name, i)).collect();
    Some(Shape { schema, name, oid: Oid(oid.parse().ok()?), kind: kind.as_bytes()[0], columns, by_name })
}

/// The shape of a relation by schema and name.
pub(super) fn shape(schema: &str, name: &str) -> Option<&'static Shape> {
    shapes().iter().find(|shape| shape.schema == schema && shape.name == name)
}

/// 'r' or 'v' as PostgreSQL has it; relations that are not here are views.
pub(super) fn relation_kind(schema: &str, name: &str) -> u8 {
    shape(schema, name).map_or(b'v', |shape| shape.kind)
}

/// Every computed relation of pg_catalog and information_schema, for [`crate::catalog::Catalog::new`].
pub fn tables() -> Vec<Table> {
    shapes()
        .iter()
        .filter(|shape| !STORED.contains(&shape.oid))
        .map(|shape| {
            let columns = shape.columns.iter();
            let column = |column: &ShapeColumn| Column {
                not_null: column.not_null,
                ..Column::new(column.name, column.ty)
            };
            Table {
                columns: columns.map(column).collect(),
                ..Table::new(shape.oid, shape.schema, shape.name, TableKind::System)
            }
        })
        .collect()
}

/// Rows of one relation while they are made.
pub(super) struct Sheet<'s> {
    shape: &'static Shape,
    blank: Vec<Datum>,
    rows: Vec<Vec<Datum>>,
    sought: &'s Sought,
    asked: Option<Vec<Asked<'s>>>,
}

/// The objects that rows are made of: all of a kind, or those that could be meant.
macro_rules! objects {
    ($($(#[$about:meta])* $name:ident -> $object:ty = $all:ident or $asked:ident;)*) => {
        $($(#[$about])*
        pub fn $name<'c>(&self, source: &'c dyn SystemSource) -> Box<dyn Iterator<Item = &'c $object> + 'c> {
            match &self.asked {
                None => Box::new(source.catalog().$all()),
                Some(asked) => Box::new(source.catalog().$asked(asked).into_iter()),
            }
        })*
    };
}

impl<'s> Sheet<'s> {
    objects! {
        /// Tables and views, those of the system among them.
        tables -> TableRef = tables or tables_asked;
        /// What stands for composite types.
        composites -> TableRef = composites or composites_asked;
        sequences -> SequenceRef = sequences or sequences_asked;
        user_types -> UserTypeRef = user_types or types_asked;
        routines -> RoutineRef = routines_all or routines_asked;
        comments -> Arc<Comments> = comments_all or comments_asked;
    }

    /// An empty one for the rows that somebody wants.
    pub fn new(shape: &'static Shape, sought: &'s Sought, source: &dyn SystemSource) -> Sheet<'s> {
        let place = |name: &str| shape.by_name.get(name).copied();
        let asked = sought.asked(shape.name, place, source.catalog());
        let blank = shape
            .columns
            .iter()
            .map(|column| if column.not_null { zero(column.ty) } else { Datum::Null })
            .collect();
        Sheet { shape, blank, rows: Vec::new(), sought, asked }
    }

    /// Whether a row may be wanted in which a column has this value.
    pub fn wants(&self, column: &str, value: &Datum) -> bool {
        self.sought.is_everything()
            || self.shape.by_name.get(column).is_none_or(|place| self.sought.allows(*place, value))
    }

    /// Whether rows are wanted that belong to no object of their own.
    pub fn wants_all(&self) -> bool {
        self.asked.is_none()
    }

    /// Adds a row: the columns named, NULL or zero in the others.
    pub fn add(&mut self, cells: &[(&str, Datum)]) {
        // The last cell of a column counts.
        let said = |place: usize, name: &str| {
            !cells[place + 1..].iter().any(|(later, _)| *later == name) && !self.wants(name, &cells[place].1)
        };
        if !self.sought.is_everything()
            && cells.iter().enumerate().any(|(place, (name, _))| said(place, name))
        {
            return;
        }
        let mut row = self.blank.clone();
        for (name, value) in cells {
            debug_assert!(self.shape.by_name.contains_key(name), "{} has no column {name}", self.shape.name);
            if let Some(&index) = self.shape.by_name.get(name) {
                row[index] = value.clone();
            }
        }
        self.rows.push(row);
    }

    /// Adds rows that are complete already.
    pub fn extend(&mut self, rows: Vec<Vec<Datum>>) {
        self.rows.extend(rows);
    }

    pub fn into_rows(self) -> Vec<Vec<Datum>> {
        self.rows
    }
}

/// What a column that cannot be NULL holds when there is nothing to say.
fn zero(ty: Type) -> Datum {
    match ty.oid {
        Oid::BOOL => Datum::Bool(false),
        Oid::INT2 => Datum::Int2(0),
        Oid::INT4 => Datum::Int4(0),
        Oid::INT8 => Datum::Int8(0),
        Oid::FLOAT4 => Datum::Float4(0.0),
        Oid::NAME | Oid::TEXT | Oid::CHAR | Oid::PG_NODE_TREE => Datum::text(""),
        Oid::INT2VECTOR => vector(Oid::INT2, Vec::new()),
        Oid::OIDVECTOR => vector(Oid::OID, Vec::new()),
        Oid::OID | Oid::XID | Oid::REGPROC | Oid::REGCLASS | Oid::REGTYPE => Datum::Oid(Oid(0)),
        _ => Datum::Null,
    }
}

/// An int2vector or oidvector: counts from zero.
pub(super) fn vector(element: Oid, values: Vec<Datum>) -> Datum {
    let dimensions = vec![crate::datum::Dimension { length: values.len(), lower_bound: 0 }];
    Datum::Array(std::sync::Arc::new(crate::datum::Array { element, dimensions, values }))
}

/// An ordinary array.
pub(super) fn array(element: Oid, values: Vec<Datum>) -> Datum {
    crate::function::array_of_values(element, values)
}

/// Storage parameters, as pg_class has them.
pub(super) fn storage_options(options: &[(String, String)]) -> Datum {
    match options {
        [] => Datum::Null,
        options => {
            array(Oid::TEXT, options.iter().map(|(name, value)| text(format!("{name}={value}"))).collect())
        }
    }
}

pub(super) fn text(value: impl AsRef<str>) -> Datum {
    Datum::text(value.as_ref())
}

/// A "char" value.
pub(super) fn letter(value: u8) -> Datum {
    Datum::text(char::from(value).encode_utf8(&mut [0; 4]))
}
