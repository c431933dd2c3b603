//! Transaction ids and snapshots (`xid8`, `pg_snapshot`, `txid_snapshot`) as values: which
//! transactions were over when a snapshot was taken. What they are at the moment, the session
//! knows ([`super::session`]).

use crate::datum::Datum;
use crate::error::Result;
use crate::function::Eval;
use crate::function::args::*;
use crate::io::snapshot::Snapshot;
use crate::types::Oid;

fn snapshot(v: &[Datum], at: usize) -> Result<Snapshot> {
    Snapshot::parse(text(v, at)?)
}

/// A transaction id of 32 bits; a plain integer may stand for one.
fn short_id(v: &[Datum], at: usize) -> Result<u32> {
    match any(v, at)? {
        Datum::Int4(id) => Ok(*id as u32),
        _ => oid(v, at).map(|oid| oid.0),
    }
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("xid8toxid", |_, v| Ok(Datum::Oid(Oid(int8(v, 0)? as u32)))),
    ("xideq", |_, v| Ok(Datum::Bool(short_id(v, 0)? == short_id(v, 1)?))),
    ("xidneq", |_, v| Ok(Datum::Bool(short_id(v, 0)? != short_id(v, 1)?))),
    ("pg_snapshot_xmin", |_, v| Ok(Datum::Int8(snapshot(v, 0)?.xmin))),
    ("pg_snapshot_xmax", |_, v| Ok(Datum::Int8(snapshot(v, 0)?.xmax))),
    ("pg_visible_in_snapshot", |_, v| Ok(Datum::Bool(snapshot(v, 1)?.sees(int8(v, 0)?)))),
];

pub(in crate::function) const SETS: &[(&str, crate::function::SetEval)] = &[("pg_snapshot_xip", |_, v| {
    Ok(snapshot(v, 0)?.under_way.into_iter().map(|id| vec![Datum::Int8(id)]).collect())
})];
