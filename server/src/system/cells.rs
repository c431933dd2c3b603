//! Cells of the rows of system views.

use std::net::IpAddr;

use archipel_sql::datum::{Array, Datum, Dimension};
use archipel_sql::network::Inet;
use archipel_sql::types::Oid;

pub(super) fn text(text: impl AsRef<str>) -> Datum {
    Datum::text(text.as_ref())
}

pub(super) fn optional(value: Option<impl AsRef<str>>) -> Datum {
    value.map_or(Datum::Null, text)
}

pub(super) fn count(number: usize) -> Datum {
    Datum::Int4(i32::try_from(number).unwrap_or(i32::MAX))
}

pub(super) fn big(number: u64) -> Datum {
    Datum::Int8(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The address of a host, of type `inet`.
pub(crate) fn address(address: Option<IpAddr>) -> Datum {
    address.map_or(Datum::Null, |address| Datum::Inet(Inet::host(address)))
}

/// An array of one dimension, or the empty one.
pub(crate) fn array(element: Oid, values: Vec<Datum>) -> Datum {
    let dimensions =
        if values.is_empty() { Vec::new() } else { vec![Dimension { length: values.len(), lower_bound: 1 }] };
    Datum::Array(std::sync::Arc::new(Array { element, dimensions, values }))
}

/// An array of texts.
pub(crate) fn text_array(items: &[&str]) -> Datum {
    array(Oid::TEXT, items.iter().map(|item| Datum::text(item)).collect())
}
