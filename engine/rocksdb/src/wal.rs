//! Looks for damage in the middle of RocksDB's write-ahead log.
//!
//! With recycled files RocksDB reads up to the first record that does not check and takes it
//! for the end: right for a torn tail, silent loss for a bad block that whole records follow.
//! Every batch is synced before the next one is written, so a record that *starts* after a bad
//! one proves that the bad one had been whole. This pass, made before RocksDB opens, tells the
//! two apart.
//!
//! The format (RocksDB, `db/log_format.h`): blocks of 32 KiB; a record never spans blocks but
//! in fragments; each fragment is
//!
//! ```text
//! [masked crc32c of type and all behind it 4][length 2][type 1][low word of the file number 4][bytes]
//! ```
//!
//! with the file number in the recyclable types only. In a recycled file older records follow
//! the newest; their file number tells them.

use std::fs;
use std::path::{Path, PathBuf};

use archipel_engine::log::StoreError;

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;
const RECYCLABLE_HEADER: usize = 11;

/// What stands at one place of a file.
enum Fragment {
    /// A whole fragment of this file; `starts` if a record begins with it.
    Whole { length: usize, starts: bool },
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
    Fragment::Whole { length: header + length, starts: matches!(kind, 1 | 2 | 5 | 6) }
}

/// Whether the bytes of a file are damaged before a record that starts later.
fn damaged_at(bytes: &[u8], file_number: u32) -> Option<usize> {
    let mut bad = None;
    for (block_number, block) in bytes.chunks(BLOCK).enumerate() {
        let mut at = 0;
        while at < block.len() {
            match fragment(&block[at..], file_number) {
                Fragment::Whole { length, starts } => {
                    if let (Some(bad), true) = (bad, starts) {
                        return Some(bad);
                    }
                    at += length;
                }
                Fragment::Padding => break,
                Fragment::Stale { length } => {
                    bad.get_or_insert(block_number * BLOCK + at);
                    at += length;
                }
                // Fragments begin with every block, so the rest can be looked at there. Only
                // the first bad block is searched byte by byte: small records may follow in it.
                Fragment::Bad if bad.is_some() => break,
                Fragment::Bad => {
                    bad = Some(block_number * BLOCK + at);
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
