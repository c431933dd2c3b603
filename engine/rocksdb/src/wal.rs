//! Looks for damage in the middle of RocksDB's write-ahead log.
//!
//! With recycled files RocksDB reads up to the first record that does not check and takes it
//! for the end: right for a torn tail, silent loss for a bad block that whole records follow.
//! Every batch is synced before the next record is written, so a record that *starts* after a bad
//! one proves that the bad one had been whole. This pass, made before RocksDB opens, tells the
//! two apart.
//!
//! Parts of large transactions are synced with the batch behind them, and a power cut leaves any of
//! their pages and not others. So behind a bad part it takes a record that starts after one that was synced:
//!
//! ```text
//! part │ bad part │ part │ batch             the power went while the batch was synced
//! part │ bad part │ part │ batch │ batch     damage: the first of them was synced, and all before it
//! ```
//!
//! The format (RocksDB, `db/log_format.h`): blocks of 32 KiB; a record never spans blocks but
//! in fragments; each fragment is
//!
//! ```text
//! [masked crc32c of type and all behind it 4][length 2][type 1][low word of the file number 4][bytes]
//! ```
//!
//! with the file number in the recyclable types only. In a recycled file older records follow
//! the newest; their file number tells them. What a record writes (`db/write_batch.cc`) begins with
//! `[sequence 8][count 4][operation 1][family varint]`.

use std::fs;
use std::path::{Path, PathBuf};

use archipel_engine::log::StoreError;
use archipel_engine::log::parts::PART_BYTES;

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;
const RECYCLABLE_HEADER: usize = 11;

/// A put into a family.
const PUT: u8 = 5;
/// The families of batches and of words have 1 and 2; that of parts was made behind them.
const FAMILY_BEFORE_PARTS_MAX: u8 = 2;

/// When a record is durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Synced {
    /// Before the next one is written.
    AtOnce,
    /// With the next one that is synced at once: a part.
    Later,
}

impl Synced {
    fn of(record: &[u8]) -> Synced {
        match record.get(12..14) {
            Some([PUT, family]) if *family > FAMILY_BEFORE_PARTS_MAX => Synced::Later,
            _ => Synced::AtOnce,
        }
    }
}

/// What stands at one place of a file.
enum Fragment {
    /// A whole fragment of this file; what begins with it, if a record does, and whether one ends with it.
    Whole { length: usize, starts: Option<Synced>, ends: bool },
    /// The rest of the block holds nothing.
    Padding,
    /// What an earlier use of the file has left: this use ended before.
    Stale { length: usize },
    /// Damage, or a torn write.
    Bad,
}

fn fragment(block: &[u8], file_number: u32) -> Fragment {
    let (Some(crc), Some(length)) = (block.first_chunk::<4>(), block.get(4..6)) else {
        return Fragment::Padding;
    };
    let Some(&kind) = block.get(6) else { return Fragment::Padding };
    let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
    if kind == 0 && length == 0 {
        return Fragment::Padding;
    }
    // 5 to 8: the recyclable forms of full, first, middle, last; 11: of the timestamp record;
    // 131: of the record about the file before.
    let recyclable = matches!(kind, 5..=8 | 11 | 131);
    let header = if recyclable { RECYCLABLE_HEADER } else { HEADER };
    let Some(checked) = block.get(6..header + length) else { return Fragment::Bad };
    let masked = u32::from_le_bytes(*crc);
    let unmasked = masked.wrapping_sub(0xa282_ead8).rotate_left(15);
    if unmasked != crc32c::crc32c(checked) {
        return Fragment::Bad;
    }
    if recyclable {
        let number =
            block.get(7..11).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        if number != file_number {
            return Fragment::Stale { length: header + length };
        }
    }
    let starts = matches!(kind, 1 | 2 | 5 | 6).then(|| Synced::of(&block[header..header + length]));
    Fragment::Whole { length: header + length, starts, ends: matches!(kind, 1 | 4 | 5 | 8) }
}

/// What was seen of a file.
#[derive(Default)]
struct Seen {
    /// The record whose end has not come.
    open: Option<Synced>,
    /// The first bad place, and the record that was open there; without one, another begins there.
    bad: Option<(usize, Option<Synced>)>,
    /// Whether it lies in a part, once something starts behind it.
    in_part: Option<bool>,
    /// A record that is synced at once has started behind it.
    synced_behind: bool,
}

impl Seen {
    fn bad(&mut self, place: usize) {
        let open = self.open;
        self.bad.get_or_insert((place, open));
    }

    /// A whole fragment. Answers the bad place that it proves to be damage.
    fn whole(&mut self, place: usize, starts: Option<Synced>, ends: bool) -> Option<usize> {
        if let (Some((bad, open)), Some(starts)) = (self.bad, starts) {
            // No part is shorter, and few other records are so long.
            let in_part = || open.map_or(place - bad >= PART_BYTES, |open| open == Synced::Later);
            let in_part = *self.in_part.get_or_insert_with(in_part);
            if !in_part || self.synced_behind {
                return Some(bad);
            }
            self.synced_behind = starts == Synced::AtOnce;
        }
        self.open = if ends { None } else { starts.or(self.open) };
        None
    }
}

/// Whether the bytes of a file are damaged before a record that starts later.
fn damaged_at(bytes: &[u8], file_number: u32) -> Option<usize> {
    let mut seen = Seen::default();
    for (block_number, block) in bytes.chunks(BLOCK).enumerate() {
        let mut at = 0;
        while at < block.len() {
            let place = block_number * BLOCK + at;
            match fragment(&block[at..], file_number) {
                Fragment::Whole { length, starts, ends } => {
                    if let Some(bad) = seen.whole(place, starts, ends) {
                        return Some(bad);
                    }
                    at += length;
                }
                Fragment::Padding => break,
                Fragment::Stale { length } => {
                    seen.bad(place);
                    at += length;
                }
                // Fragments begin with every block, so the rest can be looked at there. Only
                // the first bad block is searched byte by byte: small records may follow in it.
                Fragment::Bad if seen.bad.is_some() => break,
                Fragment::Bad => {
                    seen.bad(place);
                    let whole = |&next: &usize| {
                        matches!(fragment(&block[next..], file_number), Fragment::Whole { .. })
                    };
                    match (at + 1..block.len()).find(whole) {
                        Some(next) => at = next,
                        None => break,
                    }
                }
            }
        }
    }
    None
}

/// Refuses a store whose write-ahead log is damaged before its end.
pub(crate) fn check(store: &Path) -> Result<(), StoreError> {
    for (number, path) in files(store) {
        let bytes = fs::read(&path)
            .map_err(|error| StoreError::Failed(format!("could not read {}: {error}", path.display())))?;
        if let Some(at) = damaged_at(&bytes, number as u32) {
            return Err(StoreError::Damaged(format!(
                "{} is damaged at byte {at}, and whole records follow",
                path.display()
            )));
        }
    }
    Ok(())
}

fn files(store: &Path) -> Vec<(u64, PathBuf)> {
    let mut files: Vec<(u64, PathBuf)> = fs::read_dir(store)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let number = path.file_name()?.to_str()?.strip_suffix(".log")?.parse().ok()?;
            Some((number, path))
        })
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: u32 = 9;

    /// Appends a record as RocksDB does to a recycled file, and answers where it begins.
    fn put(file: &mut Vec<u8>, record: &[u8]) -> usize {
        let room = |file: &Vec<u8>| BLOCK - file.len() % BLOCK;
        if room(file) < RECYCLABLE_HEADER {
            file.resize(file.len() + room(file), 0);
        }
        let (begin, mut rest, mut first) = (file.len(), record, true);
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(room(file) - RECYCLABLE_HEADER));
            let kind = match (first, behind.is_empty()) {
                (true, true) => 5,
                (true, false) => 6,
                (false, false) => 7,
                (false, true) => 8,
            };
            let checked = [&[kind][..], &NUMBER.to_le_bytes()[..], piece].concat();
            let masked = crc32c::crc32c(&checked).rotate_right(15).wrapping_add(0xa282_ead8);
            file.extend_from_slice(&masked.to_le_bytes());
            file.extend_from_slice(&(piece.len() as u16).to_le_bytes());
            file.extend_from_slice(&checked);
            if behind.is_empty() {
                return begin;
            }
            (rest, first) = (behind, false);
        }
    }

    fn record(family: u8, length: usize) -> Vec<u8> {
        [&[0; 12][..], &[PUT, family][..], &vec![7; length][..]].concat()
    }

    /// Where it is found damaged that has records of these families and a bad byte in one of them.
    fn found(families: &[u8], bad: usize, at: usize) -> bool {
        let mut file = Vec::new();
        let length = |family: u8| if family == 3 { PART_BYTES } else { 1_000 };
        let records = families.iter().map(|family| record(*family, length(*family)));
        let places: Vec<usize> = records.map(|record| put(&mut file, &record)).collect();
        assert_eq!(damaged_at(&file, NUMBER), None);
        file[places[bad] + at] ^= 1;
        damaged_at(&file, NUMBER).is_some()
    }

    #[test]
    fn a_bad_batch_before_any_record_is_damage() {
        for families in [&[1, 1, 1][..], &[2, 1, 1], &[3, 1, 1], &[1, 1, 3], &[1, 1, 3, 3]] {
            assert!(found(families, 1, 30), "{families:?}");
        }
        assert!(!found(&[1, 1], 1, 30), "a torn end");
    }

    /// Near its beginning, in a block of its own, near its end.
    #[test]
    fn a_bad_part_is_damage_if_something_behind_it_was_synced() {
        for at in [30, 500_000, PART_BYTES] {
            assert!(!found(&[1, 3, 3, 3], 1, at), "{at}");
            assert!(!found(&[1, 3, 3, 1], 2, at), "{at}");
            assert!(!found(&[1, 3, 3, 1], 1, at), "{at}");
            assert!(found(&[1, 3, 3, 1, 1], 1, at), "{at}");
            assert!(found(&[3, 1, 3], 0, at), "{at}");
        }
    }
}
