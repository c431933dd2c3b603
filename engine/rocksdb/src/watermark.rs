//! The watermark's file: a few words that do not go with the log's files.
//!
//! ```text
//! [slot][zeros up to 512][slot][zeros up to 512]
//! slot: [magic 4][crc32c of what follows 4][turn 8][batch 8][epoch 8][first batch to replay 8]
//! ```
//!
//! It is written in place, once a second and without a sync, each time into the other slot: a
//! disk writes a sector whole or not, and if it does not, the slot before is still there. Of two
//! slots that check the one with the greater turn holds.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use archipel_engine::id::Epoch;
use archipel_engine::log::{BatchNumber, StoreError, Watermark};
use parking_lot::Mutex;

use crate::directory::{failed, require_file};
use crate::private::private_file;

/// Its name in the data directory.
pub(crate) const WATERMARK: &str = "WATERMARK";

const MAGIC: [u8; 4] = *b"ARW1";
const SLOT: usize = 40;
/// What a disk writes in one piece.
const SECTOR: usize = 512;

/// The file, open.
pub(crate) struct WatermarkFile {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    file: File,
    turn: u64,
    newest: Watermark,
}

fn encode(turn: u64, watermark: Watermark) -> [u8; SLOT] {
    let mut slot = [0; SLOT];
    slot[..4].copy_from_slice(&MAGIC);
    let words = [turn, watermark.batch.0, watermark.epoch.0, watermark.replay_from.0];
    for (place, word) in words.into_iter().enumerate() {
        slot[8 + place * 8..16 + place * 8].copy_from_slice(&word.to_le_bytes());
    }
    let crc = crc32c::crc32c(&slot[8..]);
    slot[4..8].copy_from_slice(&crc.to_le_bytes());
    slot
}

fn decode(slot: &[u8]) -> Option<(u64, Watermark)> {
    let slot = slot.get(..SLOT)?;
    let crc = u32::from_le_bytes(slot.get(4..8)?.try_into().ok()?);
    if slot[..4] != MAGIC || crc != crc32c::crc32c(&slot[8..]) {
        return None;
    }
    let word = |at: usize| Some(u64::from_le_bytes(slot.get(at..at + 8)?.try_into().ok()?));
    let watermark = Watermark {
        batch: BatchNumber(word(16)?),
        epoch: Epoch(word(24)?),
        replay_from: BatchNumber(word(32)?),
    };
    Some((word(8)?, watermark))
}

impl WatermarkFile {
    /// Opens the one of a directory that must have one.
    pub(crate) fn open(directory: &Path, write: bool) -> Result<WatermarkFile, StoreError> {
        let path = directory.join(WATERMARK);
        require_file(&path)?;
        let mut file = match OpenOptions::new().read(true).write(write).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(StoreError::Damaged(format!(
                    "{} is missing, which says how far the log goes; put it back or restore a backup; \
                     \"archipel reset-log\" takes the log for whole as it is",
                    path.display()
                )));
            }
            Err(error) => return Err(failed("could not open", &path, &error)),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| failed("could not read", &path, &error))?;
        let slots = [bytes.get(..SLOT), bytes.get(SECTOR..)];
        let newest = slots.into_iter().flatten().filter_map(decode).max_by_key(|(turn, _)| *turn);
        let Some((turn, newest)) = newest else {
            return Err(StoreError::Damaged(format!(
                "{} does not say how far the log goes; put it back or restore a backup; \
                 \"archipel reset-log\" takes the log for whole as it is",
                path.display()
            )));
        };
        Ok(WatermarkFile { path, state: Mutex::new(State { file, turn, newest }) })
    }

    /// Makes the one of a directory that has none, or one that says nothing.
    pub(crate) fn create(directory: &Path, first: Watermark) -> Result<WatermarkFile, StoreError> {
        let path = directory.join(WATERMARK);
        let file = private_file(&path).map_err(|error| failed("could not create", &path, &error))?;
        let file = WatermarkFile { path, state: Mutex::new(State { file, turn: 0, newest: first }) };
        {
            let state = file.state.lock();
            // Its length is what it will be: nothing but its own bytes changes from here on.
            let sized = state.file.set_len(2 * SECTOR as u64);
            sized.map_err(|error| failed("could not write", &file.path, &error))?;
        }
        file.put(first, true)?;
        let synced = File::open(directory).and_then(|folder| folder.sync_all());
        synced.map_err(|error| failed("could not sync", directory, &error))?;
        Ok(file)
    }

    pub(crate) fn newest(&self) -> Watermark {
        self.state.lock().newest
    }

    /// Writes one slot; with `sync` both, each made safe before the other is touched.
    pub(crate) fn put(&self, watermark: Watermark, sync: bool) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let slots = if sync { 2 } else { 1 };
        for _ in 0..slots {
            let turn = state.turn + 1;
            let at = if turn.is_multiple_of(2) { 0 } else { SECTOR as u64 };
            let written = state.file.write_all_at(&encode(turn, watermark), at);
            written.map_err(|error| failed("could not write", &self.path, &error))?;
            if sync {
                state.file.sync_data().map_err(|error| failed("could not sync", &self.path, &error))?;
            }
            state.turn = turn;
            state.newest = watermark;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn mark(batch: u64) -> Watermark {
        Watermark { batch: BatchNumber(batch), epoch: Epoch(batch * 2), replay_from: BatchNumber(1) }
    }

    #[test]
    fn the_newest_comes_back_and_a_torn_one_leaves_the_one_before() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(WATERMARK);
        let file = WatermarkFile::create(folder.path(), mark(1)).expect("made");
        for batch in 2..7 {
            file.put(mark(batch), false).expect("written");
        }
        let newest = || WatermarkFile::open(folder.path(), false).map(|file| file.newest());
        assert_eq!(newest().expect("readable"), mark(6));
        let whole = fs::read(&path).expect("readable");
        assert_eq!(whole.len(), 2 * SECTOR);
        for at in (0..SLOT).chain(SECTOR..SECTOR + SLOT) {
            let mut bad = whole.clone();
            bad[at] ^= 0x10;
            fs::write(&path, bad).expect("written");
            assert!([mark(5), mark(6)].contains(&newest().expect("one slot is whole")), "byte {at}");
        }
    }

    #[test]
    fn after_a_sync_both_slots_say_the_same() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(WATERMARK);
        let file = WatermarkFile::create(folder.path(), mark(1)).expect("made");
        file.put(mark(2), false).expect("written");
        file.put(mark(9), true).expect("written");
        drop(file);
        for at in [10, SECTOR + 10] {
            let mut bytes = fs::read(&path).expect("readable");
            bytes[at] ^= 1;
            fs::write(&path, &bytes).expect("written");
            assert_eq!(WatermarkFile::open(folder.path(), true).expect("readable").newest(), mark(9));
            bytes[at] ^= 1;
            fs::write(&path, &bytes).expect("written");
        }
    }

    #[test]
    fn one_that_is_missing_or_says_nothing_is_damage() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let told = || WatermarkFile::open(folder.path(), false).err().expect("refused").to_string();
        assert!(told().contains("WATERMARK is missing"), "{}", told());
        for bytes in [&b""[..], &[0; 1024], b"nonsense"] {
            fs::write(folder.path().join(WATERMARK), bytes).expect("written");
            assert!(told().contains("does not say how far the log goes"), "{}", told());
        }
    }
}
