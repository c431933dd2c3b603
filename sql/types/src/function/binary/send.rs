//! Values as the wire has them in binary (`int4send` and its kin).

use crate::datum::Datum;
use crate::error::Result;
use crate::function::args::*;
use crate::function::{Eval, FunctionContext};
use crate::types::Type;

fn send(ty: Type, c: &FunctionContext<'_>, v: &[Datum]) -> Result<Datum> {
    let mut bytes = Vec::new();
    crate::written_size::check(any(v, 0)?)?;
    crate::io::binary_out(any(v, 0)?, ty, c, &mut bytes)?;
    crate::interrupt::steps(bytes.len())?;
    Ok(Datum::Bytea(bytes.into()))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("boolsend", |c, v| send(Type::BOOL, c, v)),
    ("byteasend", |c, v| send(Type::BYTEA, c, v)),
    ("bit_send", |c, v| send(Type::BIT, c, v)),
    ("varbit_send", |c, v| send(Type::VARBIT, c, v)),
    ("varcharsend", |c, v| send(Type::VARCHAR, c, v)),
    ("textsend", |c, v| send(Type::TEXT, c, v)),
    ("namesend", |c, v| send(Type::NAME, c, v)),
    ("int2send", |c, v| send(Type::INT2, c, v)),
    ("int4send", |c, v| send(Type::INT4, c, v)),
    ("int8send", |c, v| send(Type::INT8, c, v)),
    ("float4send", |c, v| send(Type::FLOAT4, c, v)),
    ("float8send", |c, v| send(Type::FLOAT8, c, v)),
    ("numeric_send", |c, v| send(Type::NUMERIC, c, v)),
    ("oidsend", |c, v| send(Type::OID, c, v)),
    ("date_send", |c, v| send(Type::DATE, c, v)),
    ("time_send", |c, v| send(Type::TIME, c, v)),
    ("timetz_send", |c, v| send(Type::TIMETZ, c, v)),
    ("timestamp_send", |c, v| send(Type::TIMESTAMP, c, v)),
    ("timestamptz_send", |c, v| send(Type::TIMESTAMPTZ, c, v)),
    ("interval_send", |c, v| send(Type::INTERVAL, c, v)),
    ("xid8send", |c, v| send(Type::XID8, c, v)),
    ("tidsend", |c, v| send(Type::TID, c, v)),
    ("pg_lsn_send", |c, v| send(Type::PG_LSN, c, v)),
    ("point_send", |c, v| send(Type::POINT, c, v)),
    ("pg_snapshot_send", |c, v| send(Type::PG_SNAPSHOT, c, v)),
    ("uuid_send", |c, v| send(Type::UUID, c, v)),
    ("inet_send", |c, v| send(Type::INET, c, v)),
    ("cidr_send", |c, v| send(Type::CIDR, c, v)),
    ("macaddr_send", |c, v| send(Type::MACADDR, c, v)),
    ("macaddr8_send", |c, v| send(Type::MACADDR8, c, v)),
    ("json_send", |c, v| send(Type::JSON, c, v)),
    ("jsonb_send", |c, v| send(Type::JSONB, c, v)),
];
