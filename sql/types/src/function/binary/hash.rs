//! Hash functions of the types, bit for bit PostgreSQL's: what applications make advisory locks and
//! shards of.

use crate::datum::Datum;
use crate::error::{Result, SqlError};
use crate::function::args::*;
use crate::function::{Eval, FunctionContext};
use crate::partition_hash::hash_value;

fn seeded(v: &[Datum], seed: u64) -> Result<u64> {
    hash_value(any(v, 0)?, seed).ok_or_else(|| SqlError::internal("a hash function of another type"))
}

/// The plain function of a type.
fn plain(_: &FunctionContext<'_>, v: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(seeded(v, 0)? as i32))
}

/// The one that takes a seed.
fn extended(_: &FunctionContext<'_>, v: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int8(seeded(v, int8(v, 1)? as u64)? as i64))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("hashint2", plain),
    ("hashint2extended", extended),
    ("hashint4", plain),
    ("hashint4extended", extended),
    ("hashint8", plain),
    ("hashint8extended", extended),
    ("hashoid", plain),
    ("hashoidextended", extended),
    ("hashfloat4", plain),
    ("hashfloat4extended", extended),
    ("hashfloat8", plain),
    ("hashfloat8extended", extended),
    ("hash_numeric", plain),
    ("hash_numeric_extended", extended),
    ("hashtext", plain),
    ("hashtextextended", extended),
    ("hashname", plain),
    ("hashnameextended", extended),
    ("hashbpchar", plain),
    ("hashbpcharextended", extended),
    ("time_hash", plain),
    ("time_hash_extended", extended),
    ("timetz_hash", plain),
    ("timetz_hash_extended", extended),
    ("timestamp_hash", plain),
    ("timestamp_hash_extended", extended),
    ("interval_hash", plain),
    ("interval_hash_extended", extended),
    ("hashinet", plain),
    ("hashinetextended", extended),
    ("hashmacaddr", plain),
    ("hashmacaddrextended", extended),
    ("hashmacaddr8", plain),
    ("hashmacaddr8extended", extended),
    ("uuid_hash", plain),
    ("uuid_hash_extended", extended),
];
