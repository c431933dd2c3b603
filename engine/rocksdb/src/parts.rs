//! Parts of large transactions as keys and values.
//!
//! ```text
//! [transaction's id 8][part 4]             → the part
//! [transaction's id 8][part 4][piece 4]    → a piece of a long one; the last has the greatest number there is
//! ```
//!
//! All of a transaction is one range of keys, so that dropping it frees whole files; so is what several short ones
//! have that are neighbours. A part is a megabyte, or as long as the longest row: such a one is cut like a long batch
//! ([`crate::batches`]).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use archipel_engine::id::TxnId;
use archipel_engine::log::store::{PartVisitor, StoreError};
use rocksdb::{ColumnFamily, DB, DBRawIterator, Error};

use crate::batches::LAST_PIECE;
use crate::options::{synced, unverified};

/// The key of a part, and the first of its pieces.
pub(crate) fn key(id: TxnId, part: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&id.0.to_be_bytes());
    key[8..].copy_from_slice(&part.to_be_bytes());
    key
}

/// All keys of a transaction are below this one, which no part has.
pub(crate) fn first_key_behind(id: TxnId) -> [u8; 8] {
    id.0.saturating_add(1).to_be_bytes()
}

/// Whose a key is, which part, and which piece of it; `None`: all of it.
fn parse_key(key: &[u8]) -> Result<(TxnId, u32, Option<u32>), StoreError> {
    let parsed = key.split_first_chunk::<8>().and_then(|(id, rest)| {
        let (part, piece) = rest.split_first_chunk::<4>()?;
        let piece = match piece {
            [] => None,
            piece => Some(u32::from_be_bytes(piece.try_into().ok()?)),
        };
        Some((TxnId(u64::from_be_bytes(*id)), u32::from_be_bytes(*part), piece))
    });
    parsed.ok_or_else(|| StoreError::Damaged("the key of a part is none".into()))
}

/// Ranges of ids, from one to another, that hold all that are dropped and none that is kept. Both ascend.
pub(crate) fn ranges(dropped: &[TxnId], kept: &[TxnId]) -> Vec<(TxnId, TxnId)> {
    let mut ranges: Vec<(TxnId, TxnId)> = Vec::new();
    for id in dropped {
        match ranges.last_mut() {
            Some((_, last)) if below(kept, *last) == below(kept, *id) => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    ranges
}

/// How many of some ids, which ascend, are less than one.
fn below(ids: &[TxnId], id: TxnId) -> usize {
    ids.partition_point(|other| *other < id)
}

/// Drops the parts of ranges of transactions: whole files first, whose space returns at once, then what is left in
/// others. It is durable with the next sync.
pub(crate) fn drop_ranges(db: &DB, family: &ColumnFamily, ranges: &[(TxnId, TxnId)]) -> Result<(), Error> {
    for (first, last) in ranges {
        let (first, behind) = (key(*first, 0), first_key_behind(*last));
        // Here the end belongs to the range: no key of the next one is so short.
        db.delete_file_in_range_cf(family, &first[..], &behind[..])?;
        db.delete_range_cf_opt(family, &first[..], &behind[..], &synced(false))?;
    }
    Ok(())
}

/// Visits the parts of an iterator over one transaction's, from where it stands. One whose end is missing is not
/// shown.
pub(crate) fn visit(
    found: &mut DBRawIterator<'_>,
    visit: &mut PartVisitor<'_>,
    store_error: impl FnOnce(Error) -> StoreError,
) -> Result<(), StoreError> {
    let mut joined: (u32, Vec<u8>) = (0, Vec::new());
    while let Some((key, value)) = found.item() {
        let (_, part, piece) = parse_key(key)?;
        let flow = match piece {
            None => visit(part, value),
            Some(piece) => {
                if joined.0 != part {
                    joined = (part, Vec::new());
                }
                joined.1.extend_from_slice(value);
                match piece {
                    LAST_PIECE => visit(part, &std::mem::take(&mut joined.1)),
                    _ => ControlFlow::Continue(()),
                }
            }
        };
        if flow.is_break() {
            return Ok(());
        }
        found.next();
    }
    found.status().map_err(store_error)
}

/// The transactions that have parts. They are read once: each has a megabyte beside its key.
#[derive(Default)]
pub(crate) struct Listed(Option<BTreeSet<TxnId>>);

impl Listed {
    /// One more has a part, or is about to.
    pub(crate) fn add(&mut self, id: TxnId) {
        if let Some(ids) = &mut self.0 {
            ids.insert(id);
        }
    }

    /// These, which ascend, have none any more.
    pub(crate) fn remove(&mut self, dropped: &[TxnId]) {
        if let Some(ids) = &mut self.0 {
            ids.retain(|id| dropped.binary_search(id).is_err());
        }
    }

    /// All of them, ascending.
    pub(crate) fn ids(
        &mut self,
        db: &DB,
        family: &ColumnFamily,
        store_error: impl FnOnce(Error) -> StoreError,
    ) -> Result<&BTreeSet<TxnId>, StoreError> {
        let ids = match self.0.take() {
            Some(ids) => ids,
            None => read_ids(db, family, store_error)?,
        };
        Ok(self.0.insert(ids))
    }
}

fn read_ids(
    db: &DB,
    family: &ColumnFamily,
    store_error: impl FnOnce(Error) -> StoreError,
) -> Result<BTreeSet<TxnId>, StoreError> {
    // Keys alone: what a damaged part says is found by who reads it, and it is named then.
    let mut found = db.raw_iterator_cf_opt(family, unverified());
    let mut ids = BTreeSet::new();
    found.seek_to_first();
    while let Some(key) = found.key() {
        let (id, ..) = parse_key(key)?;
        ids.insert(id);
        found.seek(first_key_behind(id));
    }
    found.status().map_err(store_error)?;
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_dropped_together_and_what_is_kept_lies_between_ranges() {
        let ids = |ids: &[u64]| ids.iter().map(|id| TxnId(*id)).collect::<Vec<_>>();
        let found = |dropped: &[u64], kept: &[u64]| -> Vec<(u64, u64)> {
            ranges(&ids(dropped), &ids(kept)).into_iter().map(|(first, last)| (first.0, last.0)).collect()
        };
        assert_eq!(found(&[], &[3]), []);
        assert_eq!(found(&[3, 7, 20], &[]), [(3, 20)]);
        assert_eq!(found(&[3, 7, 20, 21], &[1, 8, 19, 22]), [(3, 7), (20, 21)]);
        assert_eq!(found(&[3, 5, 7], &[4, 6]), [(3, 3), (5, 5), (7, 7)]);
    }
}
