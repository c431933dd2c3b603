//! The built-in types as rows of pg_type, and what follows from them: names, arrays,
//! categories and the text form of a type with its modifier.
//!
//! The rows are recorded from PostgreSQL 15 (`sql/data/record.sh`).

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::style::Quoting;
use crate::type_kind::Layout;
use crate::types::{Oid, Type};

/// One built-in type: a row of pg_type.
#[derive(Debug)]
pub struct TypeInfo {
    pub oid: Oid,
    pub name: &'static str,
    /// Bytes; -1 is variable, -2 is a C string.
    pub length: i16,
    pub by_value: bool,
    /// typcategory: 'N' numeric, 'S' string, 'D' date and time, 'A' array, 'P' pseudo …
    pub category: u8,
    pub preferred: bool,
    /// What subscripting yields; zero for types that are not arrays.
    pub element: Oid,
    /// The array type over this type; zero for none.
    pub array: Oid,
    pub align: u8,
    pub storage: u8,
    pub delimiter: u8,
    /// typtype: 'b' base, 'p' pseudo, 'r' range.
    pub kind: u8,
    pub input: Oid,
    pub output: Oid,
    pub receive: Oid,
    pub send: Oid,
    pub typmod_in: Oid,
    pub typmod_out: Oid,
    pub collation: Oid,
}

impl TypeInfo {
    /// The columns that types of users have, too.
    pub fn layout(&self) -> Layout {
        Layout {
            letter: self.kind,
            category: self.category,
            length: self.length,
            by_value: self.by_value,
            align: self.align,
            storage: self.storage,
        }
    }

    /// Whether it is an array type proper (int2vector and oidvector count, as in PostgreSQL
    /// when they are read as arrays; `name` does not).
    pub fn is_array(&self) -> bool {
        self.category == b'A'
    }
}

struct Table {
    rows: Vec<TypeInfo>,
    by_oid: FxHashMap<Oid, usize>,
    by_name: FxHashMap<&'static str, usize>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let rows: Vec<TypeInfo> = include_str!("../../data/type.tsv").lines().map(parse_row).collect();
        let by_oid = rows.iter().enumerate().map(|(i, row)| (row.oid, i)).collect();
        let by_name = rows.iter().enumerate().map(|(i, row)| (row.name, i)).collect();
        Table { rows, by_oid, by_name }
    })
}

fn parse_row(line: &'static str) -> TypeInfo {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let oid = |text: &str| Oid(text.parse().unwrap_or(0));
    let byte = |text: &str| text.as_bytes().first().copied().unwrap_or(0);
    TypeInfo {
        oid: oid(next()),
        name: next(),
        length: next().parse().unwrap_or(-1),
        by_value: next() == "t",
        category: byte(next()),
        preferred: next() == "t",
        element: oid(next()),
        array: oid(next()),
        align: byte(next()),
        storage: byte(next()),
        delimiter: byte(next()),
        kind: byte(next()),
        input: oid(next()),
        output: oid(next()),
        receive: oid(next()),
        send: oid(next()),
        typmod_in: oid(next()),
        typmod_out: oid(next()),
        collation: oid(next()),
    }
}

/// All built-in types, by rising oid.
pub fn all_types() -> &'static [TypeInfo] {
    &table().rows
}

/// The built-in type with this oid.
pub fn type_info(oid: Oid) -> Option<&'static TypeInfo> {
    let table = table();
    table.by_oid.get(&oid).map(|&row| &table.rows[row])
}

/// The built-in type with this name: pg_type's (`int4`), or SQL's spelling (`integer`,
/// `double precision`, `timestamp with time zone`); a suffix `[]` makes it an array.
pub fn type_by_name(name: &str) -> Option<&'static TypeInfo> {
    let name = name.trim();
    if let Some(element) = name.strip_suffix("[]") {
        return type_info(array_of(type_by_name(element)?.oid)?);
    }
    let name = match name {
        "boolean" => "bool",
        "smallint" => "int2",
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "real" => "float4",
        "float" | "double precision" => "float8",
        "decimal" | "dec" => "numeric",
        "bit varying" => "varbit",
        "character varying" => "varchar",
        "character" => "bpchar",
        "\"char\"" => "char",
        "char" => "bpchar",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        other => other,
    };
    type_named(name)
}

/// The built-in type of this name in pg_type, and no other spelling.
pub fn type_named(name: &str) -> Option<&'static TypeInfo> {
    let table = table();
    table.by_name.get(name).map(|&row| &table.rows[row])
}

/// Whether it only stands for others or for nothing, so that no column may have it: typtype 'p'.
pub fn is_pseudo_type(ty: Oid) -> bool {
    type_info(ty).is_some_and(|info| info.kind == b'p')
}

/// Whether it is a date, a time or a moment: typcategory 'D'.
pub fn is_date_or_time(ty: Oid) -> bool {
    type_info(ty).is_some_and(|info| info.category == b'D')
}

/// Whether it is a date, a time, a moment or an interval.
pub fn is_of_time(ty: Oid) -> bool {
    is_date_or_time(ty) || ty == Oid::INTERVAL
}

/// How the values of a type are kept; `None` for what is no type's number, and for domains, which no
/// value is of.
pub fn layout(ty: Oid) -> Option<Layout> {
    match (ty.kind(), ty.element_kind()) {
        (Some(kind), _) => Some(kind.traits().layout),
        (None, Some(kind)) => Some(kind.traits().layout.of_array()),
        (None, None) => type_info(ty).map(TypeInfo::layout),
    }
}

/// Bytes of a type of a fixed length.
pub fn fixed_length(ty: Oid) -> Option<u32> {
    layout(ty).and_then(|layout| u32::try_from(layout.length).ok())
}

/// The array type over `element`.
pub fn array_of(element: Oid) -> Option<Oid> {
    if element.kind().is_some() {
        return Some(Oid(element.0 + 1));
    }
    type_info(element).map(|info| info.array).filter(|oid| oid.0 != 0)
}

/// The element type of an array type; `None` if it is no array.
pub fn element_of(array: Oid) -> Option<Oid> {
    if array.element_kind().is_some() {
        return Some(Oid(array.0 - 1));
    }
    // A pseudo-type, and an array all the same.
    if array == Oid::RECORD_ARRAY {
        return Some(Oid::RECORD);
    }
    type_info(array).filter(|info| info.is_array() && info.element.0 != 0).map(|info| info.element)
}

/// Whether array constructors take the type for a scalar, though it is an array (get_promoted_array_type).
pub fn is_vector(ty: Oid) -> bool {
    matches!(ty, Oid::INT2VECTOR | Oid::OIDVECTOR)
}

/// SQL's spelling of a type name, without a modifier.
fn sql_name(info: &TypeInfo) -> &'static str {
    match info.oid {
        Oid::BOOL => "boolean",
        Oid::INT2 => "smallint",
        Oid::INT4 => "integer",
        Oid::INT8 => "bigint",
        Oid::FLOAT4 => "real",
        Oid::FLOAT8 => "double precision",
        Oid::VARCHAR => "character varying",
        Oid::BPCHAR => "character",
        Oid::VARBIT => "bit varying",
        // Words that name something else without quotes, or nothing.
        Oid::CHAR => "\"char\"",
        Oid::ANY => "\"any\"",
        Oid::TIMESTAMP => "timestamp without time zone",
        Oid::TIMESTAMPTZ => "timestamp with time zone",
        Oid::TIME => "time without time zone",
        Oid::TIMETZ => "time with time zone",
        _ => info.name,
    }
}

/// Whether the grammar has words for a type, which are no names (format_type_extended).
pub fn has_words(ty: Oid) -> bool {
    matches!(
        ty,
        Oid::BIT
            | Oid::BOOL
            | Oid::BPCHAR
            | Oid::FLOAT4
            | Oid::FLOAT8
            | Oid::INT2
            | Oid::INT4
            | Oid::INT8
            | Oid::INTERVAL
            | Oid::NUMERIC
            | Oid::TIME
            | Oid::TIMETZ
            | Oid::TIMESTAMP
            | Oid::TIMESTAMPTZ
            | Oid::VARBIT
            | Oid::VARCHAR
    )
}

/// Who names types: the built-in ones by itself, those of users as a catalog and a search path say.
/// What makes a message has one at hand; that of a running function is its session's
/// ([`crate::function::SessionHost::type_names`]).
pub trait TypeNames {
    /// The name of a type that is not built in; `None` where there is none.
    fn user_type(&self, ty: Type) -> Option<String>;

    /// Which names it puts in quotes.
    fn quoting(&self) -> Quoting {
        Quoting::WhereNeeded
    }

    /// A type's name where nothing is said of a modifier: what messages call it, and `regtype`
    /// (format_type_be).
    fn type_name(&self, oid: Oid) -> String {
        match oid {
            Oid::BPCHAR => "character".to_owned(),
            Oid::BPCHAR_ARRAY => "character[]".to_owned(),
            Oid::BIT => "bit".to_owned(),
            Oid::BIT_ARRAY => "bit[]".to_owned(),
            oid => self.format_type(Type::of(oid)),
        }
    }

    /// `format_type(oid, typmod)`: `numeric(12,2)`, `character varying(20)[]`.
    fn format_type(&self, ty: Type) -> String {
        if ty.oid == Oid(0) {
            return "-".to_owned();
        }
        built_in_name(ty, self.quoting()).or_else(|| self.user_type(ty)).unwrap_or_else(|| "???".to_owned())
    }
}

/// Names the built-in types and no others: for what is never of another.
pub struct BuiltIn;

impl TypeNames for BuiltIn {
    fn user_type(&self, _ty: Type) -> Option<String> {
        None
    }
}

/// The name of a built-in type, with its modifier.
fn built_in_name(ty: Type, quoting: Quoting) -> Option<String> {
    let info = type_info(ty.oid)?;
    // Vectors keep their own names; every other array is its element with brackets.
    let array = info.is_array() || info.oid == Oid::RECORD_ARRAY;
    if array && info.element.0 != 0 && !matches!(info.oid, Oid::INT2VECTOR | Oid::OIDVECTOR) {
        let element = built_in_name(Type { oid: info.element, typmod: ty.typmod }, quoting)?;
        return Some(format!("{element}[]"));
    }
    let typmod = ty.typmod;
    // The bare words would read back as char(1) and bit(1).
    let is_short = typmod < 0 && matches!(info.oid, Oid::BPCHAR | Oid::BIT);
    if quoting == Quoting::All && (!has_words(info.oid) || is_short) {
        return Some(quoting.name(info.name));
    }
    let name = sql_name(info);
    if typmod < 0 {
        return Some(match info.oid {
            Oid::BPCHAR => "bpchar".to_owned(),
            // A word of the grammar without quotes.
            Oid::BIT => "\"bit\"".to_owned(),
            _ => name.to_owned(),
        });
    }
    Some(match info.oid {
        Oid::VARCHAR | Oid::BPCHAR if typmod >= 4 => format!("{name}({})", typmod - 4),
        Oid::BIT | Oid::VARBIT => format!("{name}({typmod})"),
        Oid::NUMERIC if typmod >= 4 => {
            let (precision, scale) = numeric_typmod(typmod);
            format!("{name}({precision},{scale})")
        }
        Oid::TIMESTAMP => format!("timestamp({typmod}) without time zone"),
        Oid::TIMESTAMPTZ => format!("timestamp({typmod}) with time zone"),
        Oid::TIME => format!("time({typmod}) without time zone"),
        Oid::TIMETZ => format!("time({typmod}) with time zone"),
        Oid::INTERVAL => format_interval_type(typmod),
        _ => name.to_owned(),
    })
}

/// Field mask and precision of an interval modifier (PostgreSQL's INTERVAL_RANGE).
fn format_interval_type(typmod: i32) -> String {
    let range = (typmod >> 16) & 0x7fff;
    let precision = typmod & 0xffff;
    let fields = match range {
        0x4 => " year",
        0x2 => " month",
        0x8 => " day",
        0x400 => " hour",
        0x800 => " minute",
        0x1000 => " second",
        0x6 => " year to month",
        0x408 => " day to hour",
        0xc08 => " day to minute",
        0x1c08 => " day to second",
        0xc00 => " hour to minute",
        0x1c00 => " hour to second",
        0x1800 => " minute to second",
        _ => "",
    };
    if precision == 0xffff { format!("interval{fields}") } else { format!("interval{fields}({precision})") }
}

/// Precision and scale of a numeric modifier; the scale may be negative.
pub fn numeric_typmod(typmod: i32) -> (i32, i32) {
    let bits = typmod - 4;
    let precision = (bits >> 16) & 0xffff;
    let scale = ((bits & 0x7ff) ^ 1024) - 1024;
    (precision, scale)
}

/// The modifier of `numeric(precision, scale)`.
pub fn make_numeric_typmod(precision: i32, scale: i32) -> i32 {
    ((precision << 16) | (scale & 0x7ff)) + 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_types_as_postgresql() {
        let check = |oid, typmod, text: &str| assert_eq!(BuiltIn.format_type(Type { oid, typmod }), text);
        check(Oid::NUMERIC, make_numeric_typmod(12, 2), "numeric(12,2)");
        check(Oid::NUMERIC, make_numeric_typmod(3, -2), "numeric(3,-2)");
        check(Oid::VARCHAR, 24, "character varying(20)");
        check(Oid::VARCHAR_ARRAY, 24, "character varying(20)[]");
        check(Oid::BPCHAR, 6, "character(2)");
        check(Oid::BIT, 3, "bit(3)");
        check(Oid::BIT, -1, "\"bit\"");
        check(Oid::BIT_ARRAY, -1, "\"bit\"[]");
        check(Oid::VARBIT, 3, "bit varying(3)");
        check(Oid::VARBIT, -1, "bit varying");
        assert_eq!(BuiltIn.type_name(Oid::BIT_ARRAY), "bit[]");
        check(Oid::TIMESTAMP, 3, "timestamp(3) without time zone");
        check(Oid::INT2VECTOR, -1, "int2vector");
        assert_eq!(type_by_name("timestamp with time zone").map(|t| t.oid), Some(Oid::TIMESTAMPTZ));
        assert_eq!(type_by_name("int4[]").map(|t| t.oid), Some(Oid::INT4_ARRAY));
    }
}
