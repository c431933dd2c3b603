//! Transaction ids and snapshots (`xid8`, `pg_snapshot`, `txid_snapshot`) as values: which
//! transactions were over when a snapshot was taken. What they are at the moment, the session
//! knows ([`super::session`]).

use super::Eval;
use super::args::*;
use crate::datum::Datum;
use crate::error::Result;
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

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("xid8toxid", |_, v| Ok(Datum::Oid(Oid(int8(v, 0)? as u32)))),
    ("xideq", |_, v| Ok(Datum::Bool(short_id(v, 0)? == short_id(v, 1)?))),
    ("xidneq", |_, v| Ok(Datum::Bool(short_id(v, 0)? != short_id(v, 1)?))),
    ("pg_snapshot_xmin", |_, v| Ok(Datum::Int8(snapshot(v, 0)?.xmin))),
    ("pg_snapshot_xmax", |_, v| Ok(Datum::Int8(snapshot(v, 0)?.xmax))),
    ("pg_visible_in_snapshot", |_, v| Ok(Datum::Bool(snapshot(v, 1)?.sees(int8(v, 0)?)))),
];

pub(super) const SETS: &[(&str, super::SetEval)] = &[("pg_snapshot_xip", |_, v| {
    Ok(snapshot(v, 0)?.under_way.into_iter().map(|id| vec![Datum::Int8(id)]).collect())
})];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::snapshot::Snapshot;

    #[test]
    fn a_snapshot_reads_what_it_writes() {
        let read = |text| Snapshot::parse(text).map(|snapshot| snapshot.to_string());
        assert_eq!(read("12:20:13,15,15,18").ok().as_deref(), Some("12:20:13,15,18"));
        assert_eq!(read("12:12:").ok().as_deref(), Some("12:12:"));
        for wrong in ["", "12", "12:18", "0:1:", "31:12:", "12:16:14,13", "12:16:11", "12:16:16", "1:2:a"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_snapshot_survives_the_wire() {
        let snapshot = Snapshot { xmin: 12, xmax: 20, under_way: vec![13, 18] };
        let mut bytes = Vec::new();
        snapshot.write_binary(&mut bytes);
        assert_eq!(Snapshot::from_binary(&bytes), Some(snapshot));
        assert_eq!(Snapshot::from_binary(&bytes[..20]), None);
    }

    #[test]
    fn what_was_over_is_seen() {
        let snapshot = Snapshot { xmin: 12, xmax: 20, under_way: vec![13, 18] };
        let seen: Vec<i64> = (10..24).filter(|id| snapshot.sees(*id)).collect();
        assert_eq!(seen, [10, 11, 12, 14, 15, 16, 17, 19]);
    }

    #[test]
    fn ids_are_read_as_c_does() {
        let read: Vec<i64> =
            ["42", " 42x", "0x1f", "017", "", "-", "99999999999999999999"].map(parse_transaction_id).to_vec();
        assert_eq!(read, [42, 42, 31, 15, 0, 0, i64::MAX]);
    }
}
