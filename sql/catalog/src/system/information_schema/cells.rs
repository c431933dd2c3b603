//! Cells that several views of information_schema have.

use crate::datum::Datum;
use crate::system::SystemSource;
use crate::system::shape::text;
use crate::type_table::{BuiltIn, TypeNames, element_of, numeric_typmod, type_info};
use crate::types::{Oid, Type};

pub(super) fn yes_no(value: bool) -> Datum {
    text(if value { "YES" } else { "NO" })
}

/// The cells that describe a type, in columns, parameters and routines.
pub(super) fn type_cells(source: &dyn SystemSource, ty: Type) -> Vec<(&'static str, Datum)> {
    let info = type_info(ty.oid);
    let data_type = if element_of(ty.oid).is_some() {
        "ARRAY".to_owned()
    } else if info.is_none() {
        "USER-DEFINED".to_owned()
    } else if ty.oid == Oid::BPCHAR {
        "character".to_owned()
    } else {
        BuiltIn.type_name(ty.oid)
    };
    let mut cells = vec![("data_type", text(data_type)), ("udt_catalog", text(source.database()))];
    match info {
        Some(info) => {
            cells.push(("udt_schema", text("pg_catalog")));
            cells.push(("udt_name", text(info.name)));
        }
        None => {
            let (schema, name) = user_type_name(source, ty.oid).unwrap_or_default();
            cells.push(("udt_schema", text(schema)));
            cells.push(("udt_name", text(name)));
        }
    }
    cells
}

/// Schema and name of a type that somebody made, as pg_type has them.
fn user_type_name(source: &dyn SystemSource, oid: Oid) -> Option<(String, String)> {
    let catalog = source.catalog();
    let told = |schema: &String, name: &String, is_array: bool| {
        (schema.clone(), if is_array { format!("_{name}") } else { name.clone() })
    };
    if let Some(ty) = catalog.user_type_of(oid) {
        return Some(told(&ty.schema, &ty.name, oid == ty.array_type()));
    }
    let array_of = || catalog.table_of_row_type(Oid(oid.0.wrapping_sub(1)));
    let table = catalog.table_of_row_type(oid).or_else(array_of)?;
    Some(told(&table.schema, &table.name, oid == table.row_array_type()))
}

/// Lengths and precisions of a column's type.
pub(super) fn size_cells(ty: Type) -> Vec<(&'static str, Datum)> {
    let number = Datum::Int4;
    match ty.oid {
        Oid::VARCHAR | Oid::BPCHAR | Oid::TEXT => {
            let length = if ty.typmod >= 4 { number(ty.typmod - 4) } else { Datum::Null };
            let octets = if ty.typmod >= 4 { (ty.typmod - 4).saturating_mul(4) } else { 1 << 30 };
            vec![("character_maximum_length", length), ("character_octet_length", number(octets))]
        }
        Oid::BIT | Oid::VARBIT => {
            let length = if ty.typmod >= 0 { number(ty.typmod) } else { Datum::Null };
            vec![("character_maximum_length", length)]
        }
        Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::FLOAT4 | Oid::FLOAT8 => {
            let bits = match ty.oid {
                Oid::INT2 => 16,
                Oid::INT4 => 32,
                Oid::INT8 => 64,
                Oid::FLOAT4 => 24,
                _ => 53,
            };
            let scale = if matches!(ty.oid, Oid::FLOAT4 | Oid::FLOAT8) { Datum::Null } else { number(0) };
            vec![
                ("numeric_precision", number(bits)),
                ("numeric_precision_radix", number(2)),
                ("numeric_scale", scale),
            ]
        }
        Oid::NUMERIC => {
            let mut cells = vec![("numeric_precision_radix", number(10))];
            if ty.typmod >= 4 {
                let (precision, scale) = numeric_typmod(ty.typmod);
                cells.push(("numeric_precision", number(precision)));
                cells.push(("numeric_scale", number(scale)));
            }
            cells
        }
        Oid::DATE => vec![("datetime_precision", number(0))],
        Oid::TIME | Oid::TIMETZ | Oid::TIMESTAMP | Oid::TIMESTAMPTZ => {
            vec![("datetime_precision", number(if ty.typmod >= 0 { ty.typmod } else { 6 }))]
        }
        Oid::INTERVAL => vec![("datetime_precision", number(6))],
        _ => Vec::new(),
    }
}
