//! Checkpoint rows written straight into table files.
//!
//! A checkpoint hands over its rows in key order, so they need no write buffer to be sorted in:
//! they go into a table file as they come, and the finished file joins the database. (By way of
//! a write buffer each row is copied twice more and looked up a place in a skip list.)
//!
//! Rows in a file that has not joined are invisible: whoever reads, or writes a key past them,
//! seals it first.

use std::cmp::Ordering;
use std::fs;
use std::path::PathBuf;

use archipel_engine::id::TreeId;
use archipel_engine::log::store::CheckpointChange;
use rocksdb::{ColumnFamily, DB, Error, IngestExternalFileOptions, Options, SstFileWriter};

use crate::store::checkpoint_key;

/// A file of fewer bytes is not worth its sync.
const FIRST_BYTES_MIN: usize = 64 << 10;

/// Table files of a checkpoint under way.
pub(crate) struct SortedRows {
    folder: PathBuf,
    options: &'static Options,
    /// A file joins the database at this size.
    bytes_max: usize,
    files: u64,
    open: Option<OpenFile>,
}

struct OpenFile {
    path: PathBuf,
    writer: SstFileWriter<'static>,
    /// The last key in it, as the engine knows it.
    last: (TreeId, Box<[u8]>),
    bytes: usize,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // Gone already if it has joined; otherwise nobody will ask for it.
        let _ = fs::remove_file(&self.path);
    }
}

fn in_order(changes: &[CheckpointChange]) -> bool {
    changes.iter().all(|change| change.value.is_some())
        && changes.is_sorted_by(|a, b| compare(a, (b.tree, &b.key)) == Ordering::Less)
}

fn compare(a: &CheckpointChange, b: (TreeId, &[u8])) -> Ordering {
    (a.tree, &a.key[..]).cmp(&b)
}

impl SortedRows {
    /// Writes its files in `folder`, where those of an earlier process are removed.
    pub(crate) fn new(
        folder: PathBuf,
        options: &'static Options,
        bytes_max: usize,
    ) -> std::io::Result<SortedRows> {
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir(&folder)?,
        }
        Ok(SortedRows { folder, options, bytes_max, files: 0, open: None })
    }

    /// Takes changes that are rows in key order. False, with every file sealed, if they are not:
    /// they must go another way.
    pub(crate) fn append(
        &mut self,
        db: &DB,
        family: &ColumnFamily,
        changes: &[CheckpointChange],
    ) -> Result<bool, Error> {
        let bytes = |change: &CheckpointChange| change.key.len() + change.value.as_ref().map_or(0, Vec::len);
        let continues = match (&self.open, changes.first()) {
            (Some(open), Some(first)) => compare(first, (open.last.0, &open.last.1)) == Ordering::Greater,
            _ => false,
        };
        let in_order = in_order(changes);
        if !continues || !in_order {
            self.seal(db, family)?;
        }
        if !in_order || !continues && changes.iter().map(bytes).sum::<usize>() < FIRST_BYTES_MIN {
            return Ok(false);
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        for change in changes {
            let Some(value) = &change.value else { continue };
            open.writer.put(checkpoint_key(change.tree, &change.key), value)?;
            open.bytes += bytes(change);
        }
        if let Some(last) = changes.last() {
            open.last = (last.tree, last.key.clone());
        }
        let full = open.bytes >= self.bytes_max;
        self.open = Some(open);
        if full {
            self.seal(db, family)?;
        }
        Ok(true)
    }

    fn begin(&mut self) -> Result<OpenFile, Error> {
        self.files += 1;
        let path = self.folder.join(format!("{:06}.sst", self.files));
        let writer = SstFileWriter::create(self.options);
        writer.open(&path)?;
        Ok(OpenFile { path, writer, last: (TreeId(0), Box::default()), bytes: 0 })
    }

    /// Makes the rows so far part of the database.
    pub(crate) fn seal(&mut self, db: &DB, family: &ColumnFamily) -> Result<(), Error> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.writer.finish()?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        db.ingest_external_file_cf_opts(family, &options, vec![&open.path])
    }
}
