//! Text of other character sets as binary strings (chapter 9.5): `convert` and its kin.

use crate::datum::Datum;
use crate::encoding::{Encoding, convert};
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::function::length::check_value;
use crate::interrupt;

/// The character set of a name; `what` is what PostgreSQL calls it.
fn named(name: &str, what: &str) -> Result<Encoding> {
    Encoding::named(name).ok_or_else(|| {
        let message = format!("invalid {what} name \"{name}\"");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

fn source(name: &str) -> Result<Encoding> {
    named(name, "source encoding")
}

fn destination(name: &str) -> Result<Encoding> {
    named(name, "destination encoding")
}

fn converted(bytes: &[u8], from: Encoding, to: Encoding) -> Result<Vec<u8>> {
    interrupt::steps(bytes.len())?;
    let converted = convert(bytes, from, to)?;
    check_value(converted.len())?;
    Ok(converted)
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("pg_convert", |_, v| {
        let (from, to) = (source(text(v, 1)?)?, destination(text(v, 2)?)?);
        Ok(Datum::Bytea(converted(bytea(v, 0)?, from, to)?.into()))
    }),
    ("pg_convert_to", |_, v| {
        let to = destination(text(v, 1)?)?;
        Ok(Datum::Bytea(converted(text(v, 0)?.as_bytes(), Encoding::UTF8, to)?.into()))
    }),
    ("pg_convert_from", |_, v| {
        let converted = converted(bytea(v, 0)?, source(text(v, 1)?)?, Encoding::UTF8)?;
        Ok(Datum::text(crate::encoding::utf8(&converted)?))
    }),
    ("length_in_encoding", |_, v| {
        let encoding = named(text(v, 1)?, "encoding")?;
        let bytes = bytea(v, 0)?;
        interrupt::steps(bytes.len())?;
        Ok(Datum::Int4(encoding.characters(bytes)? as i32))
    }),
];
