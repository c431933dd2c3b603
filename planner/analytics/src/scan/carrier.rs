//! SQL values in Arrow arrays.
//!
//! A column of a plan is carried by the Arrow type of its storage form ([`Codec`]): integers,
//! dates and timestamps by integers, `numeric(p, s)` with p ≤ 18 by 64-bit units of 10⁻ˢ, text
//! by Utf8 (`char(n)` without the blanks at its end), everything without an Arrow form of equal
//! meaning by the bytes the engine stores. So scanned cells go into arrays without a detour, and a
//! native comparison of carriers is used only where [`comparable`] says that their order is
//! PostgreSQL's.

use std::sync::Arc;

use archipel_engine::cell::Cell;
use archipel_planner::row::Codec;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::memory;
use archipel_sql::types::Type;
use datafusion::arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryBuilder, BooleanArray, BooleanBuilder, FixedSizeBinaryArray,
    FixedSizeBinaryBuilder, Float32Array, Float32Builder, Float64Array, Float64Builder, Int16Array,
    Int16Builder, Int32Array, Int32Builder, Int64Array, Int64Builder, StringArray, StringBuilder,
};
use datafusion::arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;

/// The Arrow type that carries a SQL type.
pub fn data_type(ty: Type) -> DataType {
    match Codec::of(ty) {
        Codec::Bool => DataType::Boolean,
        Codec::Int2 => DataType::Int16,
        Codec::Int4 | Codec::Date => DataType::Int32,
        Codec::Int8
        | Codec::Scaled(_)
        | Codec::Time
        | Codec::TimeTz
        | Codec::Timestamp
        | Codec::TimestampTz
        | Codec::MacAddress
        | Codec::MacAddress8
        | Codec::Oid => DataType::Int64,
        Codec::Float4 => DataType::Float32,
        Codec::Float8 => DataType::Float64,
        Codec::Uuid => DataType::FixedSizeBinary(16),
        Codec::Text | Codec::Padded(_) | Codec::Blanks | Codec::Jsonb => DataType::Utf8,
        Codec::Bytea | Codec::Bits | Codec::Inet => DataType::Binary,
        Codec::Numeric | Codec::Generic | Codec::PaddedArray(_) => DataType::Binary,
    }
}

/// Whether carriers of the type compare, group and sort as the values do. Not so for floats
/// (negative zero), for numerics without a fixed scale (1.0 and 1.00), for `bpchar` without a length, whose
/// blanks do not count, and for byte forms.
pub fn comparable(ty: Type) -> bool {
    let by_value = matches!(Codec::of(ty), Codec::Float4 | Codec::Float8 | Codec::Numeric | Codec::Blanks);
    !by_value && !matches!(Codec::of(ty), Codec::Jsonb | Codec::Generic | Codec::PaddedArray(_))
}

/// Whether values of two types are carried alike: `char(n)` of any length is, without its blanks.
pub fn carried_alike(one: Type, other: Type) -> bool {
    let (one, other) = (Codec::of(one), Codec::of(other));
    one == other || matches!((one, other), (Codec::Padded(_), Codec::Padded(_)))
}

/// An array of carriers, read value by value.
pub enum Reader<'a> {
    Bool(&'a BooleanArray),
    Int2(&'a Int16Array),
    Int4(&'a Int32Array, Codec),
    Int8(&'a Int64Array, Codec),
    Float4(&'a Float32Array),
    Float8(&'a Float64Array),
    Uuid(&'a FixedSizeBinaryArray),
    Text(&'a StringArray),
    /// Of `bpchar`.
    Padded(&'a StringArray, Codec),
    Jsonb(&'a StringArray),
    Bytes(&'a BinaryArray, Codec),
}

impl<'a> Reader<'a> {
    /// Reads an array as carriers of a type.
    pub fn new(array: &'a dyn Array, ty: Type) -> Result<Reader<'a>> {
        fn cast<T: 'static>(array: &dyn Array) -> Result<&T> {
            array.as_any().downcast_ref::<T>().ok_or_else(|| {
                SqlError::internal(format!("a column carried as {} by mistake", array.data_type()))
            })
        }
        let codec = Codec::of(ty);
        Ok(match data_type(ty) {
            DataType::Boolean => Reader::Bool(cast(array)?),
            DataType::Int16 => Reader::Int2(cast(array)?),
            DataType::Int32 => Reader::Int4(cast(array)?, codec),
            DataType::Int64 => Reader::Int8(cast(array)?, codec),
            DataType::Float32 => Reader::Float4(cast(array)?),
            DataType::Float64 => Reader::Float8(cast(array)?),
            DataType::FixedSizeBinary(_) => Reader::Uuid(cast(array)?),
            DataType::Utf8 if codec == Codec::Jsonb => Reader::Jsonb(cast(array)?),
            DataType::Utf8 if matches!(codec, Codec::Padded(_) | Codec::Blanks) => {
                Reader::Padded(cast(array)?, codec)
            }
            DataType::Utf8 => Reader::Text(cast(array)?),
            _ => Reader::Bytes(cast(array)?, codec),
        })
    }

    /// The value at a place.
    pub fn get(&self, row: usize) -> Datum {
        match self {
            Reader::Bool(array) if array.is_valid(row) => Datum::Bool(array.value(row)),
            Reader::Int2(array) if array.is_valid(row) => Datum::Int2(array.value(row)),
            Reader::Int4(array, codec) if array.is_valid(row) => codec.decode(Cell::Int4(array.value(row))),
            Reader::Int8(array, codec) if array.is_valid(row) => codec.decode(Cell::Int8(array.value(row))),
            Reader::Float4(array) if array.is_valid(row) => Datum::Float4(array.value(row)),
            Reader::Float8(array) if array.is_valid(row) => Datum::Float8(array.value(row)),
            Reader::Text(array) if array.is_valid(row) => Datum::text(array.value(row)),
            Reader::Padded(array, codec) if array.is_valid(row) => {
                codec.decode(Cell::Bytes(array.value(row).as_bytes()))
            }
            Reader::Jsonb(array) if array.is_valid(row) => Datum::jsonb(array.value(row)),
            Reader::Bytes(array, codec) if array.is_valid(row) => codec.decode(Cell::Bytes(array.value(row))),
            Reader::Uuid(array) if array.is_valid(row) => match <[u8; 16]>::try_from(array.value(row)) {
                Ok(bytes) => Datum::Uuid(Box::new(bytes)),
                Err(_) => Datum::Null,
            },
            _ => Datum::Null,
        }
    }
}

impl Reader<'_> {
    /// About how many bytes the value at a place takes.
    pub fn width(&self, row: usize) -> usize {
        let bytes = match self {
            Reader::Text(array) | Reader::Padded(array, _) | Reader::Jsonb(array) => array.value_length(row),
            Reader::Bytes(array, _) => array.value_length(row),
            _ => 0,
        };
        size_of::<Datum>() + usize::try_from(bytes).unwrap_or(0)
    }
}

/// Builds an array of carriers.
pub struct Writer {
    codec: Codec,
    builder: Builder,
    space: Vec<u8>,
}

enum Builder {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Uuid(FixedSizeBinaryBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Writer {
    pub fn new(ty: Type, capacity: usize) -> Writer {
        let builder = match data_type(ty) {
            DataType::Boolean => Builder::Bool(BooleanBuilder::with_capacity(capacity)),
            DataType::Int16 => Builder::Int2(Int16Builder::with_capacity(capacity)),
            DataType::Int32 => Builder::Int4(Int32Builder::with_capacity(capacity)),
            DataType::Int64 => Builder::Int8(Int64Builder::with_capacity(capacity)),
            DataType::Float32 => Builder::Float4(Float32Builder::with_capacity(capacity)),
            DataType::Float64 => Builder::Float8(Float64Builder::with_capacity(capacity)),
            DataType::FixedSizeBinary(width) => {
                Builder::Uuid(FixedSizeBinaryBuilder::with_capacity(capacity, width))
            }
            DataType::Utf8 => Builder::Text(StringBuilder::with_capacity(capacity, capacity * 16)),
            _ => Builder::Bytes(BinaryBuilder::with_capacity(capacity, capacity * 16)),
        };
        Writer { codec: Codec::of(ty), builder, space: Vec::new() }
    }

    /// Appends a stored cell of the column's kind.
    pub fn push_cell(&mut self, cell: Cell<'_>) -> Result<()> {
        let codec = self.codec;
        push(&mut self.builder, cell, codec)
    }

    /// Appends a value.
    pub fn push(&mut self, value: &Datum) -> Result<()> {
        let codec = self.codec;
        match codec.encode_plain(value) {
            Some(cell) => push(&mut self.builder, cell, codec),
            None => {
                let mut space = std::mem::take(&mut self.space);
                let result =
                    codec.encode(value, &mut space).and_then(|cell| push(&mut self.builder, cell, codec));
                self.space = space;
                result
            }
        }
    }

    /// Bytes of the texts, or of what is carried by its bytes, that have been appended.
    pub fn bytes(&self) -> usize {
        match &self.builder {
            Builder::Text(builder) => builder.values_slice().len(),
            Builder::Bytes(builder) => builder.values_slice().len(),
            _ => 0,
        }
    }

    pub fn finish(self) -> ArrayRef {
        match self.builder {
            Builder::Bool(mut builder) => Arc::new(builder.finish()),
            Builder::Int2(mut builder) => Arc::new(builder.finish()),
            Builder::Int4(mut builder) => Arc::new(builder.finish()),
            Builder::Int8(mut builder) => Arc::new(builder.finish()),
            Builder::Float4(mut builder) => Arc::new(builder.finish()),
            Builder::Float8(mut builder) => Arc::new(builder.finish()),
            Builder::Uuid(mut builder) => Arc::new(builder.finish()),
            Builder::Text(mut builder) => Arc::new(builder.finish()),
            Builder::Bytes(mut builder) => Arc::new(builder.finish()),
        }
    }
}

/// Refuses what an array of texts or bytes has no offsets for: they have 31 bits; or no memory, where it is
/// copied to twice its size.
#[inline]
fn check_offset(held: usize, more: usize) -> Result<()> {
    let needed = held + more;
    if needed <= i32::MAX as usize {
        let grows = needed.next_power_of_two() > held.next_power_of_two();
        return if grows { memory::check(2 * needed) } else { Ok(()) };
    }
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory")
        .with_detail("A batch of one column of an analytical query would exceed 2 GB."))
}

fn push(builder: &mut Builder, cell: Cell<'_>, codec: Codec) -> Result<()> {
    match (builder, cell) {
        (Builder::Bool(builder), Cell::Bool(value)) => builder.append_value(value),
        (Builder::Int2(builder), Cell::Int2(value)) => builder.append_value(value),
        (Builder::Int4(builder), Cell::Int4(value)) => builder.append_value(value),
        (Builder::Int8(builder), Cell::Int8(value)) => builder.append_value(value),
        (Builder::Float4(builder), Cell::Float4(value)) => builder.append_value(value),
        (Builder::Float8(builder), Cell::Float8(value)) => builder.append_value(value),
        (Builder::Uuid(builder), Cell::Fixed16(value)) => {
            builder.append_value(value).map_err(|error| SqlError::internal(error.to_string()))?;
        }
        (Builder::Text(builder), Cell::Bytes(bytes)) => {
            let text =
                std::str::from_utf8(bytes).map_err(|_| SqlError::internal("stored text is not UTF8"))?;
            check_offset(builder.values_slice().len(), bytes.len())?;
            builder.append_value(text);
        }
        (Builder::Bytes(builder), Cell::Bytes(bytes)) => {
            check_offset(builder.values_slice().len(), bytes.len())?;
            builder.append_value(bytes);
        }
        (Builder::Bool(builder), Cell::Null) => builder.append_null(),
        (Builder::Int2(builder), Cell::Null) => builder.append_null(),
        (Builder::Int4(builder), Cell::Null) => builder.append_null(),
        (Builder::Int8(builder), Cell::Null) => builder.append_null(),
        (Builder::Float4(builder), Cell::Null) => builder.append_null(),
        (Builder::Float8(builder), Cell::Null) => builder.append_null(),
        (Builder::Uuid(builder), Cell::Null) => builder.append_null(),
        (Builder::Text(builder), Cell::Null) => builder.append_null(),
        (Builder::Bytes(builder), Cell::Null) => builder.append_null(),
        (_, cell) => return Err(SqlError::internal(format!("a {codec:?} column cannot carry {cell:?}"))),
    }
    Ok(())
}

/// One value as a DataFusion literal.
pub fn scalar(value: &Datum, ty: Type) -> Result<ScalarValue> {
    let mut writer = Writer::new(ty, 1);
    writer.push(value)?;
    ScalarValue::try_from_array(&writer.finish(), 0).map_err(|error| SqlError::internal(error.to_string()))
}
