//! Batches of the log as keys and values.
//!
//! ```text
//! [number 8]             → the batch
//! [number 8][piece 4]    → a piece of a long one; the last has the greatest number there is
//! ```
//!
//! A batch is as long as what all threads committed in its epochs. RocksDB's lengths of values have
//! 32 bits, of what it keeps of an entry in memory too, and it is made for values far below that. So a
//! long batch is cut; its pieces are written at once, all or none.

use std::ops::ControlFlow;

use archipel_engine::log::BatchNumber;
use archipel_engine::log::store::{BatchVisitor, StoreError};
use rocksdb::{ColumnFamily, DBRawIterator, Error, WriteBatch};

/// The number of the last piece of a batch, or of a part.
pub(crate) const LAST_PIECE: u32 = u32::MAX;

/// No key of a batch is greater.
pub(crate) fn last_key_of(number: BatchNumber) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&number.0.to_be_bytes());
    key[8..].copy_from_slice(&LAST_PIECE.to_be_bytes());
    key
}

/// What writes the value of a key as pieces of so many bytes, each with its number behind the key.
pub(crate) fn in_pieces(family: &ColumnFamily, key: &[u8], value: &[u8], piece_bytes: usize) -> WriteBatch {
    let mut pieces = WriteBatch::default();
    let mut rest = value.chunks(piece_bytes.max(1)).zip(0u32..).peekable();
    while let Some((piece, place)) = rest.next() {
        let place = if rest.peek().is_some() { place } else { LAST_PIECE };
        pieces.put_cf(family, [key, &place.to_be_bytes()[..]].concat(), piece);
    }
    pieces
}

/// Which batch a key is of, and which piece of it; `None`: all of it.
fn parse_key(key: &[u8]) -> Result<(BatchNumber, Option<u32>), StoreError> {
    let parsed = key.split_first_chunk::<8>().and_then(|(number, piece)| {
        let number = BatchNumber(u64::from_be_bytes(*number));
        match piece {
            [] => Some((number, None)),
            piece => Some((number, Some(u32::from_be_bytes(piece.try_into().ok()?)))),
        }
    });
    parsed.ok_or_else(|| StoreError::Damaged("a log key is no batch number".into()))
}

/// Which batch a key is of.
pub(crate) fn number_of(key: &[u8]) -> Result<BatchNumber, StoreError> {
    parse_key(key).map(|(number, _)| number)
}

/// Visits the batches of an iterator, from where it stands. One whose end is missing is shown as far
/// as it goes.
pub(crate) fn visit(
    batches: &mut DBRawIterator<'_>,
    visit: &mut BatchVisitor<'_>,
    store_error: impl FnOnce(Error) -> StoreError,
) -> Result<(), StoreError> {
    let mut joined: Vec<u8> = Vec::new();
    let mut joining: Option<BatchNumber> = None;
    while let Some((key, value)) = batches.item() {
        let (number, piece) = parse_key(key)?;
        if let Some(before) = joining.take_if(|joining| *joining != number)
            && visit(before, &std::mem::take(&mut joined)) == ControlFlow::Break(())
        {
            return Ok(());
        }
        let flow = match piece {
            None => visit(number, value),
            Some(piece) => {
                joined.extend_from_slice(value);
                joining = Some(number);
                match piece {
                    LAST_PIECE => {
                        joining = None;
                        visit(number, &std::mem::take(&mut joined))
                    }
                    _ => ControlFlow::Continue(()),
                }
            }
        };
        if flow == ControlFlow::Break(()) {
            return Ok(());
        }
        batches.next();
    }
    batches.status().map_err(store_error)?;
    if let Some(number) = joining {
        let _ = visit(number, &joined);
    }
    Ok(())
}
