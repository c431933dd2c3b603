//! What access methods, indexes and their columns can do: `pg_indexam_has_property` and its kin
//! (PostgreSQL's amutils.c). Indexes without entries answer for the method that they were asked for as.

use super::index_view::{IndexView, indexes};
use crate::catalog::operator_class::access_method;
use crate::datum::Datum;
use crate::system::SystemSource;
use crate::types::Oid;

/// What a method can do.
struct Method {
    name: &'static str,
    orders: bool,
    is_unique: bool,
    many_columns: bool,
    excludes: bool,
    includes: bool,
    clusters: bool,
    scans: bool,
    scans_backward: bool,
    returns_values: bool,
    searches_arrays: bool,
    searches_nulls: bool,
}

const NOTHING: Method = Method {
    name: "",
    orders: false,
    is_unique: false,
    many_columns: true,
    excludes: true,
    includes: false,
    clusters: false,
    scans: true,
    scans_backward: false,
    returns_values: false,
    searches_arrays: false,
    searches_nulls: false,
};

static METHODS: [Method; 6] = [
    Method {
        name: "btree",
        orders: true,
        is_unique: true,
        includes: true,
        clusters: true,
        scans_backward: true,
        returns_values: true,
        searches_arrays: true,
        searches_nulls: true,
        ..NOTHING
    },
    Method { name: "hash", many_columns: false, scans_backward: true, ..NOTHING },
    Method { name: "gist", includes: true, clusters: true, searches_nulls: true, ..NOTHING },
    Method { name: "gin", excludes: false, scans: false, ..NOTHING },
    Method { name: "spgist", many_columns: false, includes: true, searches_nulls: true, ..NOTHING },
    Method { name: "brin", excludes: false, scans: false, searches_nulls: true, ..NOTHING },
];

fn method(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

fn answer(value: Option<bool>) -> Datum {
    value.map_or(Datum::Null, Datum::Bool)
}

/// `pg_indexam_has_property(method, property)`.
pub(in crate::system) fn of_method(oid: Oid, property: &str) -> Datum {
    let Some(method) = METHODS.iter().find(|method| access_method(method.name) == oid) else {
        return Datum::Null;
    };
    answer(match property.to_ascii_lowercase().as_str() {
        "can_order" => Some(method.orders),
        "can_unique" => Some(method.is_unique),
        "can_multi_col" => Some(method.many_columns),
        "can_exclude" => Some(method.excludes),
        "can_include" => Some(method.includes),
        _ => None,
    })
}

/// What `look` says of an index and its method.
fn with_index(
    source: &dyn SystemSource,
    oid: Oid,
    look: impl Fn(&IndexView<'_>, &Method) -> Option<bool>,
) -> Datum {
    let table = source.catalog().table_of_part(oid);
    match table.and_then(|table| indexes(table).find(|index| index.oid == oid)) {
        Some(index) => answer(method(index.method).and_then(|method| look(&index, method))),
        None => Datum::Null,
    }
}

/// `pg_index_has_property(index, property)`.
pub(in crate::system) fn of_index(source: &dyn SystemSource, oid: Oid, property: &str) -> Datum {
    let property = property.to_ascii_lowercase();
    with_index(source, oid, |_, method| match property.as_str() {
        "clusterable" => Some(method.clusters),
        "index_scan" => Some(method.scans),
        "bitmap_scan" => Some(true),
        "backward_scan" => Some(method.scans_backward),
        _ => None,
    })
}

/// `pg_index_column_has_property(index, column, property)`.
pub(in crate::system) fn of_column(
    source: &dyn SystemSource,
    oid: Oid,
    column: i32,
    property: &str,
) -> Datum {
    let property = property.to_ascii_lowercase();
    with_index(source, oid, |index, method| {
        let place = usize::try_from(column).ok()?.checked_sub(1)?;
        if place >= index.columns.len() + index.include.len() {
            return None;
        }
        // Columns of INCLUDE are no part of the key.
        let part = index.columns.get(place);
        match property.as_str() {
            "asc" => part.map(|(_, descending, _)| method.orders && !descending),
            "desc" => part.map(|(_, descending, _)| method.orders && *descending),
            "nulls_first" => part.map(|(.., nulls_first)| method.orders && *nulls_first),
            "nulls_last" => part.map(|(.., nulls_first)| method.orders && !nulls_first),
            "orderable" => Some(part.is_some() && method.orders),
            "distance_orderable" => Some(false),
            "returnable" => Some(method.returns_values),
            "search_array" => part.map(|_| method.searches_arrays),
            "search_nulls" => part.map(|_| method.searches_nulls),
            _ => None,
        }
    })
}
