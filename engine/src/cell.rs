//! The engine's value vocabulary: what a column may physically hold.

use serde::{Deserialize, Serialize};

/// The physical kind of a column. SQL types map onto these above the engine: `date` is
/// `Int4`, `timestamp` is `Int8`, `numeric(12,2)` is `Int8` scaled by 100, text is `Bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnKind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    /// Sixteen bytes, ordered as unsigned big-endian bytes (uuid).
    Fixed16,
    /// Any length, ordered as unsigned bytes (the C collation).
    Bytes,
}

impl ColumnKind {
    /// Bytes of a value that is not NULL in a key, if all have the same number.
    pub fn fixed_length(self) -> Option<usize> {
        match self {
            Self::Bool => Some(1),
            Self::Int2 => Some(2),
            Self::Int4 | Self::Float4 => Some(4),
            Self::Int8 | Self::Float8 => Some(8),
            Self::Fixed16 => Some(16),
            Self::Bytes => None,
        }
    }
}

/// One value of a row or a key, borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Fixed16([u8; 16]),
    Bytes(&'a [u8]),
}
