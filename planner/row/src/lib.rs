//! Between SQL values and the engine's cells.
//!
//! The engine stores eight physical kinds. How a SQL type maps onto them is decided here and
//! nowhere else, once a column, as a [`Codec`]; reading and writing a value is then one match.
//!
//! - integers, floats, bool, date, time, timestamps, uuid, oid: the kind of the same width;
//! - `timetz`: an `Int8` in the order of the type ([`TimeTz::packed`]);
//! - `numeric(p,s)` with p ≤ 18: an `Int8` counting units of 10⁻ˢ; NaN, which PostgreSQL
//!   sorts above every number, is `i64::MAX`;
//! - every other numeric: bytes whose order is the numeric order ([`encode_numeric`]);
//! - text-likes and bytea: their bytes (the C collation); `char(n)` without the blanks at its end, which
//!   reading gives back, `bpchar` without a length with them;
//! - bit strings: bytes in the order of their bits ([`encode_bits`]);
//! - `inet` and `cidr`: bytes in the order of networks and hosts ([`encode_inet`]); `macaddr` and `macaddr8`: an
//!   `Int8` in the order of their bytes;
//! - the rest (arrays, intervals, composites): a self-describing byte form.
//!
//! What is stored otherwise than it sorts stands in keys in another form (see [`derived`]). Tables and
//! indexes as the engine sees them are made in [`table`].

mod bit_string;
mod derived;
mod generic;
mod network;
mod numeric;
mod table;
mod text;

use std::sync::Arc;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::schema::{KeyColumn, KeyForm, TableDef};
use archipel_engine::storage::key::{append_int2, append_int4, append_int8};
use archipel_engine::storage::{ColumnPlace, KeyBuf, RowWriter};
use archipel_sql::datetime::TimeTz;
use archipel_sql::datum::Datum;
pub use archipel_sql::datum::integer;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::network::{MacAddress, MacAddress8};
use archipel_sql::numeric::Numeric;
use archipel_sql::type_kind::Held;
use archipel_sql::types::{Oid, Type};
use archipel_sql::typmod::{padded, padded_elements, padded_length, without_blanks};
use archipel_sql::written_size;

use crate::text::text_of;

pub use bit_string::{decode_bits, encode_bits};
pub use derived::{in_keys, install_key_forms, key_form};
pub use generic::{read_generic, write_generic};
pub use network::{decode_inet, encode_inet};
pub use numeric::{decode_numeric, encode_numeric};
pub use table::{has_hidden_id, index_def, other_key, storage_key, stored_name, stored_type, table_def};

/// How values of one SQL type are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    /// `numeric(p, s)` with p ≤ 18, as units of 10⁻ˢ.
    Scaled(u16),
    /// Any other numeric.
    Numeric,
    Text,
    /// `char(n)`: without the blanks at the end, which reading gives back. As nothing is lost, it stands in
    /// keys as it is stored.
    Padded(u32),
    /// `bpchar` without a length: as it is given.
    Blanks,
    /// Arrays of `char(n)`, as [`Codec::Generic`]. Their elements were stored without blanks once, and get
    /// them back.
    PaddedArray(u32),
    /// The canonical text, which does not sort as the values do.
    Jsonb,
    Bytea,
    Bits,
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
    Uuid,
    Inet,
    MacAddress,
    MacAddress8,
    Oid,
    /// Everything else, self-describing.
    Generic,
}

/// What stands for NaN in a scaled column: above every number, as PostgreSQL sorts it.
const SCALED_NAN: i64 = i64::MAX;

/// The bit by which an integer with a sign sorts otherwise than one without.
const SIGN: u64 = 1 << 63;

impl Codec {
    /// The codec of a column type.
    pub fn of(ty: Type) -> Codec {
        match ty.oid {
            Oid::BOOL => Codec::Bool,
            Oid::INT2 => Codec::Int2,
            Oid::INT4 => Codec::Int4,
            Oid::INT8 | Oid::XID8 | Oid::PG_LSN | Oid::TID => Codec::Int8,
            Oid::FLOAT4 => Codec::Float4,
            Oid::FLOAT8 => Codec::Float8,
            Oid::NUMERIC => match numeric_typmod(ty.typmod) {
                Some((precision, scale)) if precision <= 18 && (0..=18).contains(&scale) => {
                    Codec::Scaled(scale as u16)
                }
                _ => Codec::Numeric,
            },
            Oid::TEXT
            | Oid::VARCHAR
            | Oid::NAME
            | Oid::JSON
            | Oid::JSONPATH
            | Oid::CHAR
            | Oid::UNKNOWN
            | Oid::CSTRING
            | Oid::REFCURSOR => Codec::Text,
            Oid::BPCHAR => padded_length(ty).map_or(Codec::Blanks, |length| Codec::Padded(length as u32)),
            Oid::BPCHAR_ARRAY => {
                let element = Type { oid: Oid::BPCHAR, ..ty };
                padded_length(element).map_or(Codec::Generic, |length| Codec::PaddedArray(length as u32))
            }
            Oid::JSONB => Codec::Jsonb,
            Oid::BYTEA => Codec::Bytea,
            Oid::BIT | Oid::VARBIT => Codec::Bits,
            Oid::DATE => Codec::Date,
            Oid::TIME => Codec::Time,
            Oid::TIMETZ => Codec::TimeTz,
            Oid::TIMESTAMP => Codec::Timestamp,
            Oid::TIMESTAMPTZ => Codec::TimestampTz,
            Oid::UUID => Codec::Uuid,
            Oid::INET | Oid::CIDR => Codec::Inet,
            Oid::MACADDR => Codec::MacAddress,
            Oid::MACADDR8 => Codec::MacAddress8,
            Oid::OID
            | Oid::REGCLASS
            | Oid::REGPROC
            | Oid::REGPROCEDURE
            | Oid::REGTYPE
            | Oid::REGROLE
            | Oid::REGNAMESPACE
            | Oid::REGOPER
            | Oid::REGOPERATOR => Codec::Oid,
            other => match other.held() {
                Some(Held::Label) => Codec::Oid,
                Some(Held::Fields) | None => Codec::Generic,
            },
        }
    }

    /// The physical kind the engine stores.
    #[inline]
    pub fn kind(self) -> ColumnKind {
        match self {
            Codec::Bool => ColumnKind::Bool,
            Codec::Int2 => ColumnKind::Int2,
            Codec::Int4 | Codec::Date => ColumnKind::Int4,
            Codec::Int8
            | Codec::Scaled(_)
            | Codec::Time
            | Codec::TimeTz
            | Codec::Timestamp
            | Codec::TimestampTz
            | Codec::MacAddress
            | Codec::MacAddress8
            | Codec::Oid => ColumnKind::Int8,
            Codec::Float4 => ColumnKind::Float4,
            Codec::Float8 => ColumnKind::Float8,
            Codec::Uuid => ColumnKind::Fixed16,
            Codec::Numeric
            | Codec::Text
            | Codec::Padded(_)
            | Codec::Blanks
            | Codec::PaddedArray(_)
            | Codec::Jsonb
            | Codec::Bytea
            | Codec::Bits
            | Codec::Inet
            | Codec::Generic => ColumnKind::Bytes,
        }
    }

    /// Whether the stored order is the SQL order and equal values are stored alike, so that
    /// keys over the column serve comparisons as they are; or, of `bpchar`, all but the blanks at the end,
    /// which are in no key.
    pub fn ordered(self) -> bool {
        !matches!(self, Codec::Generic | Codec::PaddedArray(_) | Codec::Numeric | Codec::Jsonb)
    }

    /// The codec of what is looked for by a column of a key. `bpchar` without a length that stands in a key
    /// as it is stored is of a table that was made when it was stored without its blanks.
    pub fn in_key(self, column: &KeyColumn) -> Codec {
        match (self, column.form) {
            (Codec::Blanks, KeyForm::Stored) => Codec::Padded(0),
            (codec, _) => codec,
        }
    }

    /// The codec by which values of a stored column of a table are written: without blanks where a key
    /// holds them as they are stored, since it would tell them apart (see [`Codec::in_key`]).
    pub fn written(self, def: &TableDef, place: u16) -> Codec {
        if self != Codec::Blanks {
            return self;
        }
        let keys = def.key.iter().chain(def.indexes.iter().flat_map(|index| &index.key));
        keys.filter(|column| column.column == place).fold(self, |codec, column| codec.in_key(column))
    }

    /// Whether equal values of two codecs have the same bytes in keys.
    pub fn keyed_alike(self, other: Codec) -> bool {
        let is_padded = |codec: Codec| matches!(codec, Codec::Padded(_) | Codec::Blanks);
        self == other || is_padded(self) && is_padded(other)
    }

    /// Whether keys serve comparisons of a column of this codec: they were made when such columns had
    /// another form in keys, or are in order. Keys over jsonb once told texts apart.
    pub fn ordered_in(self, column: &KeyColumn) -> bool {
        self.ordered() || column.form != KeyForm::Stored
    }

    /// The value of a column of a stored row, whose place is that of a column of this codec.
    #[inline]
    pub fn read(self, place: &ColumnPlace, row: &[u8]) -> Datum {
        // The commonest ones without a cell in between.
        match self {
            Codec::Int4 => match place.fixed(row) {
                Some(bytes) => Datum::Int4(i32::from_le_bytes(bytes)),
                None => Datum::Null,
            },
            Codec::Int8 => match place.fixed(row) {
                Some(bytes) => Datum::Int8(i64::from_le_bytes(bytes)),
                None => Datum::Null,
            },
            Codec::Int2 => match place.fixed(row) {
                Some(bytes) => Datum::Int2(i16::from_le_bytes(bytes)),
                None => Datum::Null,
            },
            Codec::Text => match place.variable(row) {
                Some(bytes) => Datum::Text(text_of(bytes)),
                None => Datum::Null,
            },
            Codec::Padded(length) => match place.variable(row) {
                Some(bytes) => Datum::Bpchar(padded(text_of(bytes), length as usize)),
                None => Datum::Null,
            },
            _ => self.decode(place.get(row)),
        }
    }

    /// Appends an integer to a key if it stands there as it is, as those of most keys do; else false.
    #[inline]
    pub fn append_integer(self, value: &Datum, column: &KeyColumn, key: &mut KeyBuf) -> bool {
        if !column.is_plain() {
            return false;
        }
        match (self, value) {
            (Codec::Int4, Datum::Int4(value)) => append_int4(key, *value),
            (Codec::Int8, Datum::Int8(value)) => append_int8(key, *value),
            (Codec::Int2, Datum::Int2(value)) => append_int2(key, *value),
            _ => return false,
        }
        true
    }

    /// Writes a value as the next column of a row; false if it needs bytes of its own.
    #[inline]
    pub fn write(self, value: &Datum, place: &ColumnPlace, row: &mut RowWriter<'_>) -> bool {
        // The commonest ones without a cell in between.
        match (self, value) {
            (_, Datum::Null) => row.null(place),
            (Codec::Int4, Datum::Int4(value)) => row.fixed(place, ColumnKind::Int4, value.to_le_bytes()),
            (Codec::Int8, Datum::Int8(value)) => row.fixed(place, ColumnKind::Int8, value.to_le_bytes()),
            (Codec::Int2, Datum::Int2(value)) => row.fixed(place, ColumnKind::Int2, value.to_le_bytes()),
            (Codec::Text, Datum::Text(text)) => row.bytes(place, text.as_bytes()),
            _ => match self.encode_plain(value) {
                Some(cell) => row.cell(place, cell),
                None => return false,
            },
        }
        true
    }

    /// The value a stored cell stands for.
    #[inline]
    pub fn decode(self, cell: Cell<'_>) -> Datum {
        match (self, cell) {
            (_, Cell::Null) => Datum::Null,
            (Codec::Int4, Cell::Int4(v)) => Datum::Int4(v),
            (Codec::Int8, Cell::Int8(v)) => Datum::Int8(v),
            (Codec::Scaled(scale), Cell::Int8(v)) => {
                Datum::Numeric(if v == SCALED_NAN { Numeric::NAN } else { Numeric::from_scaled(v, scale) })
            }
            (Codec::Text, Cell::Bytes(b)) => Datum::Text(text_of(b)),
            (Codec::Padded(length), Cell::Bytes(b)) => Datum::Bpchar(padded(text_of(b), length as usize)),
            (Codec::Blanks, Cell::Bytes(b)) => Datum::Bpchar(text_of(b)),
            (Codec::Jsonb, Cell::Bytes(b)) => Datum::Jsonb(text_of(b)),
            (Codec::Timestamp, Cell::Int8(v)) => Datum::Timestamp(v),
            (Codec::TimestampTz, Cell::Int8(v)) => Datum::TimestampTz(v),
            (Codec::Bool, Cell::Bool(v)) => Datum::Bool(v),
            (Codec::Int2, Cell::Int2(v)) => Datum::Int2(v),
            (Codec::Float4, Cell::Float4(v)) => Datum::Float4(v),
            (Codec::Float8, Cell::Float8(v)) => Datum::Float8(v),
            (Codec::Numeric, Cell::Bytes(b)) => Datum::Numeric(decode_numeric(b)),
            (Codec::Bytea, Cell::Bytes(b)) => Datum::Bytea(Arc::from(b)),
            (Codec::Bits, Cell::Bytes(b)) => Datum::Bits(decode_bits(b)),
            (Codec::Date, Cell::Int4(v)) => Datum::Date(v),
            (Codec::Time, Cell::Int8(v)) => Datum::Time(v),
            (Codec::TimeTz, Cell::Int8(v)) => Datum::TimeTz(TimeTz::from_packed(v)),
            (Codec::Uuid, Cell::Fixed16(v)) => Datum::Uuid(Box::new(v)),
            (Codec::Inet, Cell::Bytes(b)) => Datum::Inet(decode_inet(b)),
            (Codec::MacAddress, Cell::Int8(v)) => Datum::MacAddress(MacAddress::of_number(v as u64)),
            (Codec::MacAddress8, Cell::Int8(v)) => {
                Datum::MacAddress8(MacAddress8::of_number(v as u64 ^ SIGN))
            }
            (Codec::Oid, Cell::Int8(v)) => Datum::Oid(Oid(v as u32)),
            (Codec::Generic, Cell::Bytes(b)) => {
                let mut at = 0;
                read_generic(b, &mut at).unwrap_or(Datum::Null)
            }
            (Codec::PaddedArray(length), Cell::Bytes(b)) => {
                let mut at = 0;
                read_generic(b, &mut at).map_or(Datum::Null, |array| padded_elements(array, length as usize))
            }
            // A cell of another kind than its column's codec: the layout and the catalog
            // disagree, which the version check excludes.
            (codec, cell) => {
                debug_assert!(false, "{codec:?} column holds {cell:?}");
                Datum::Null
            }
        }
    }

    /// The cell a value is stored as. `space` keeps bytes that the value does not hold itself.
    /// Integers of a neighbouring width are accepted when they fit.
    pub fn encode<'d>(self, datum: &'d Datum, space: &'d mut Vec<u8>) -> Result<Cell<'d>> {
        if let Some(cell) = self.encode_plain(datum) {
            return Ok(cell);
        }
        space.clear();
        match (self, datum) {
            (Codec::Numeric, _) => {
                let number = as_numeric(datum).ok_or_else(|| mismatch(self, datum))?;
                encode_numeric(&number, space);
                Ok(Cell::Bytes(space))
            }
            (Codec::Scaled(scale), _) => {
                let number = as_numeric(datum).ok_or_else(|| mismatch(self, datum))?;
                if number.is_nan() {
                    return Ok(Cell::Int8(SCALED_NAN));
                }
                number.to_scaled(scale).map(Cell::Int8).ok_or_else(|| mismatch(self, datum))
            }
            (Codec::Bits, Datum::Bits(bits)) => {
                encode_bits(bits, space);
                Ok(Cell::Bytes(space))
            }
            (Codec::Inet, Datum::Inet(inet)) => {
                encode_inet(inet, space);
                Ok(Cell::Bytes(space))
            }
            (Codec::Generic | Codec::PaddedArray(_), _) => {
                written_size::check(datum)?;
                write_generic(datum, space);
                Ok(Cell::Bytes(space))
            }
            _ => Err(mismatch(self, datum)),
        }
    }

    /// The cell of a value that needs no space beyond its own.
    #[inline]
    pub fn encode_plain(self, datum: &Datum) -> Option<Cell<'_>> {
        Some(match (self, datum) {
            (_, Datum::Null) => Cell::Null,
            (Codec::Int4, Datum::Int4(v)) => Cell::Int4(*v),
            (Codec::Int8, Datum::Int8(v)) => Cell::Int8(*v),
            (Codec::Scaled(scale), Datum::Numeric(n)) => Cell::Int8(n.to_scaled(scale)?),
            (Codec::Text, Datum::Text(s)) | (Codec::Jsonb, Datum::Jsonb(s)) => Cell::Bytes(s.as_bytes()),
            (Codec::Blanks, Datum::Bpchar(s) | Datum::Text(s)) => Cell::Bytes(s.as_bytes()),
            (Codec::Padded(_), Datum::Bpchar(s) | Datum::Text(s)) | (Codec::Text, Datum::Bpchar(s)) => {
                Cell::Bytes(without_blanks(s).as_bytes())
            }
            (Codec::Timestamp, Datum::Timestamp(v)) => Cell::Int8(*v),
            (Codec::TimestampTz, Datum::TimestampTz(v)) => Cell::Int8(*v),
            (Codec::Bool, Datum::Bool(v)) => Cell::Bool(*v),
            (Codec::Int2, Datum::Int2(v)) => Cell::Int2(*v),
            (Codec::Float4, Datum::Float4(v)) => Cell::Float4(*v),
            (Codec::Float8, Datum::Float8(v)) => Cell::Float8(*v),
            (Codec::Bytea, Datum::Bytea(b)) => Cell::Bytes(b),
            (Codec::Date, Datum::Date(v)) => Cell::Int4(*v),
            (Codec::Time, Datum::Time(v)) => Cell::Int8(*v),
            (Codec::TimeTz, Datum::TimeTz(v)) => Cell::Int8(v.packed()),
            (Codec::Uuid, Datum::Uuid(v)) => Cell::Fixed16(**v),
            (Codec::MacAddress, Datum::MacAddress(v)) => Cell::Int8(v.number() as i64),
            (Codec::MacAddress8, Datum::MacAddress8(v)) => Cell::Int8((v.number() ^ SIGN) as i64),
            (Codec::Oid, Datum::Oid(v)) => Cell::Int8(i64::from(v.0)),
            // Comparisons across integer widths reach keys through here.
            (Codec::Int2, _) => Cell::Int2(integer(datum)?.try_into().ok()?),
            (Codec::Int4, _) => Cell::Int4(integer(datum)?.try_into().ok()?),
            (Codec::Int8 | Codec::Oid, _) => Cell::Int8(integer(datum)?),
            (Codec::Float8, Datum::Float4(v)) => Cell::Float8(f64::from(*v)),
            _ => return None,
        })
    }
}

/// PostgreSQL's numeric typmod: precision and scale.
fn numeric_typmod(typmod: i32) -> Option<(i32, i32)> {
    let packed = typmod.checked_sub(4).filter(|packed| *packed >= 0)?;
    // The scale is an eleven-bit signed number.
    let scale = ((packed & 0x7ff) ^ 1024) - 1024;
    Some((packed >> 16, scale))
}

fn as_numeric(datum: &Datum) -> Option<Numeric> {
    match datum {
        Datum::Numeric(n) => Some(n.clone()),
        _ => integer(datum).map(|v| Numeric::from_scaled(v, 0)),
    }
}

fn mismatch(codec: Codec, datum: &Datum) -> SqlError {
    SqlError::internal(format!("value {datum:?} cannot be stored as {codec:?}"))
}

/// The physical kind of a column type.
pub fn column_kind(ty: Type) -> ColumnKind {
    Codec::of(ty).kind()
}

/// The value a stored cell of a column of this type stands for.
pub fn cell_to_datum(cell: Cell<'_>, ty: Type) -> Datum {
    Codec::of(ty).decode(cell)
}

/// The cell a value is stored as in a column of this type. `space` keeps bytes that the value
/// does not hold itself.
pub fn datum_to_cell<'d>(datum: &'d Datum, ty: Type, space: &'d mut Vec<u8>) -> Result<Cell<'d>> {
    Codec::of(ty).encode(datum, space)
}

#[cfg(test)]
mod tests;
