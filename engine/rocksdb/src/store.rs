//! The databases and what the log does with them.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;

use archipel_engine::id::{TreeId, TxnId};
use archipel_engine::log::checkpoint::{MARK_KEY, require_whole};
use archipel_engine::log::store::{
    BatchVisitor, CheckpointChange, CheckpointKey, LogStore, Losses, PartVisitor, RowVisitor, Space,
    StoreError,
};
use archipel_engine::log::watermark::WAYS_OUT;
use archipel_engine::log::{BatchNumber, Watermark};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, DBRecoveryMode, Error, ErrorKind, Options,
    WriteBatch, checkpoint::Checkpoint,
};

use crate::directory::{CHECKPOINT, Directory, REDO, SORTED, require_file, require_files};
use crate::options::{
    RocksOptions, checkpoint_options, database_options, family_options, streaming, synced, without_log,
};
use crate::sorted::SortedRows;
use crate::watermark::WatermarkFile;
use crate::{allocator, batches, parts, space, wal};

/// The families of the log's database.
const LOG: &str = "log";
const META: &str = "meta";
/// Made by a start for writing, behind the directory's mark: older directories have none.
const PARTS: &str = "parts";

/// A [`LogStore`] in a directory.
pub struct RocksLogStore {
    directory: Directory,
    options: RocksOptions,
    access: Access,
    /// `None` where one is only read that has none.
    watermark: Option<WatermarkFile>,
    /// Held while a part is appended, or parts are dropped; taken before `life`.
    part_latch: Mutex<parts::Listed>,
    life: RwLock<Life>,
}

/// The databases, opened and closed.
struct Life {
    /// `None` after a full disk, until an attempt to open them again succeeds.
    databases: Option<Databases>,
    /// How often they were closed, and rows of a checkpoint went: it must not pass for whole.
    losses: Losses,
}

fn store_error(error: Error) -> StoreError {
    let message = error.to_string();
    // Of the disk, of whoever pays for it, and of what one file may take (`ulimit -f`).
    let full = ["No space left on device", "Disk quota exceeded", "File too large"];
    if full.iter().any(|told| message.contains(told)) {
        return StoreError::Full(message);
    }
    match error.kind() {
        ErrorKind::Corruption => StoreError::Damaged(message),
        // A file that its manifest lists.
        _ if message.contains("No such file or directory") => StoreError::Damaged(message),
        // Another database, in the place of ours.
        _ if message.contains("Column family not found") => StoreError::Damaged(message),
        _ => StoreError::Failed(message),
    }
}

/// The same of opening the log, whose manifest lists every file that is closed, and how long it was.
fn log_error(error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged(told) if told.contains("Missing WAL") || told.contains("Size mismatch: WAL") => {
            StoreError::Damaged(format!("the log has lost a file or the end of one: {told}; {WAYS_OUT}"))
        }
        error => error,
    }
}

/// What a store is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// A server.
    Write,
    /// A look that leaves everything as it is.
    Read,
    /// Somebody who goes on with what is left of the log.
    Reset,
}

impl Access {
    fn open(
        self,
        options: &Options,
        path: &Path,
        families: Vec<ColumnFamilyDescriptor>,
    ) -> Result<DB, StoreError> {
        match self {
            Access::Write | Access::Reset => DB::open_cf_descriptors(options, path, families),
            Access::Read => DB::open_cf_descriptors_read_only(options, path, families, false),
        }
        .map_err(store_error)
    }
}

/// Both databases of a store.
struct Databases {
    log: DB,
    rows: DB,
    /// Rows on their way into the second; a store that is only read has none.
    sorted: Option<Mutex<SortedRows>>,
}

/// Of batches and of parts. Files of either overlap little: leaving the first level, where whole files cannot be
/// removed, costs no rewriting.
fn log_options(options: &RocksOptions) -> Options {
    family_options(options.log_buffer_bytes, 2, DBCompressionType::None)
}

/// The newest batch in a log.
fn last_batch(log: &DB) -> Result<Option<BatchNumber>, StoreError> {
    let mut batches = log.raw_iterator_cf(log.cf_handle(LOG).expect("opened with its families"));
    batches.seek_to_last();
    batches.status().map_err(store_error)?;
    batches.key().map(batches::number_of).transpose()
}

impl Databases {
    /// Sees that the log goes as far as it is known to have gone, before it is opened for writing:
    /// RocksDB then moves on to new files, and takes none any more that is put back.
    fn look(
        directory: &Directory,
        options: &RocksOptions,
        watermark: Option<&WatermarkFile>,
    ) -> Result<(), StoreError> {
        let Some(watermark) = watermark.map(WatermarkFile::newest) else { return Ok(()) };
        Databases::require_there(directory)?;
        let log = Databases::open_log(directory, options, Access::Read)?;
        let family = |name| log.cf_handle(name).expect("opened with its families");
        let mark = log.get_cf(family(META), MARK_KEY).map_err(store_error)?;
        require_whole(watermark, mark, last_batch(&log)?)
    }

    /// Whether a server has written to the log, or ended a checkpoint.
    fn are_used(&self) -> Result<bool, StoreError> {
        let meta = self.log.cf_handle(META).expect("opened with its families");
        let mark = self.log.get_cf(meta, MARK_KEY).map_err(store_error)?;
        Ok(mark.is_some() || last_batch(&self.log)?.is_some())
    }

    fn require_there(directory: &Directory) -> Result<(), StoreError> {
        for database in [directory.log(), directory.store(CHECKPOINT)] {
            let current = database.join("CURRENT");
            if !directory.is_new && !current.exists() {
                return Err(StoreError::Damaged(format!("{} is missing", current.display())));
            }
        }
        Databases::require_room(directory)
    }

    /// What stands where a writer makes files and folders of its own would stop a start. Whoever only
    /// reads makes none, and refuses it all the same: it tells whether a start will do.
    fn require_room(directory: &Directory) -> Result<(), StoreError> {
        for database in [directory.log(), directory.store(CHECKPOINT)] {
            require_file(&database.join("LOCK"))?;
            require_files(&database)?;
        }
        let sorted = directory.store(SORTED);
        match fs::symlink_metadata(&sorted) {
            Ok(found) if !found.is_dir() && !found.is_symlink() => {
                Err(StoreError::Damaged(format!("{} is no folder", sorted.display())))
            }
            _ => Ok(()),
        }
    }

    fn open_log(directory: &Directory, options: &RocksOptions, access: Access) -> Result<DB, StoreError> {
        let path = directory.log();
        if access != Access::Reset {
            wal::check(&path)?;
        }
        let mut database = database_options(&directory.path, access == Access::Write).map_err(store_error)?;
        database.create_if_missing(directory.is_new);
        database.set_recycle_log_file_num(4);
        database.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        // What a reader finds in the manifest it must verify, too: RocksDB forgets it otherwise.
        database.set_track_and_verify_wals_in_manifest(access != Access::Reset);
        // A start reads all of it.
        database.set_max_total_wal_size(4 * options.log_buffer_bytes as u64);
        let mut families = vec![
            ColumnFamilyDescriptor::new(LOG, log_options(options)),
            ColumnFamilyDescriptor::new(META, family_options(1 << 20, 4, DBCompressionType::None)),
        ];
        // What cannot be listed cannot be opened either, which is told below.
        let listed = DB::list_cf(&Options::default(), &path).unwrap_or_default();
        if listed.iter().any(|family| family == PARTS) {
            families.push(ColumnFamilyDescriptor::new(PARTS, log_options(options)));
        }
        access.open(&database, &path, families).map_err(log_error)
    }

    /// Gives the log its family of parts, if it has none. The directory's mark says by now that it may have one: no
    /// older version opens a database with families that it does not know.
    fn make_parts(&mut self, options: &RocksOptions) -> Result<(), StoreError> {
        if self.log.cf_handle(PARTS).is_some() {
            return Ok(());
        }
        self.log.create_cf(PARTS, &log_options(options)).map_err(store_error)
    }

    fn open(directory: &Directory, options: &RocksOptions, access: Access) -> Result<Databases, StoreError> {
        Databases::require_there(directory)?;
        let log = Databases::open_log(directory, options, access)?;
        let mut database = database_options(&directory.path, access == Access::Write).map_err(store_error)?;
        database.create_if_missing(directory.is_new);
        let rows = checkpoint_options(options.checkpoint_buffer_bytes);
        let families = vec![ColumnFamilyDescriptor::new(CHECKPOINT, rows)];
        let rows = access.open(&database, &directory.store(CHECKPOINT), families)?;
        let sorted = match access {
            Access::Write | Access::Reset => Some(Mutex::new(Databases::sorted(directory, options)?)),
            Access::Read => None,
        };
        Ok(Databases { log, rows, sorted })
    }

    fn sorted(directory: &Directory, options: &RocksOptions) -> Result<SortedRows, StoreError> {
        // Writers borrow them; every store of a process writes its files alike.
        static FILE_OPTIONS: OnceLock<Options> = OnceLock::new();
        let bytes_max = 2 * options.checkpoint_buffer_bytes;
        let file_options = FILE_OPTIONS.get_or_init(|| checkpoint_options(bytes_max));
        SortedRows::new(directory.store(SORTED), file_options, bytes_max).map_err(|error| {
            let folder = directory.store(SORTED);
            StoreError::Failed(format!("could not make {} anew: {error}", folder.display()))
        })
    }
}

/// The open databases for the length of one call.
struct Opened<'s>(RwLockReadGuard<'s, Life>);

impl Opened<'_> {
    fn databases(&self) -> &Databases {
        self.0.databases.as_ref().expect("only handed out when it is open")
    }

    fn log(&self) -> (&DB, &ColumnFamily) {
        let db = &self.databases().log;
        (db, db.cf_handle(LOG).expect("opened with its families"))
    }

    /// `None` where one is only read that has no family of parts.
    fn parts(&self) -> Option<(&DB, &ColumnFamily)> {
        let db = &self.databases().log;
        Some((db, db.cf_handle(PARTS)?))
    }

    fn meta(&self) -> (&DB, &ColumnFamily) {
        let db = &self.databases().log;
        (db, db.cf_handle(META).expect("opened with its families"))
    }

    fn rows(&self) -> (&DB, &ColumnFamily) {
        let db = &self.databases().rows;
        (db, db.cf_handle(CHECKPOINT).expect("opened with its families"))
    }

    /// The rows database with nothing under way beside it.
    fn sealed_rows(&self) -> Result<(&DB, &ColumnFamily), Error> {
        let (db, family) = self.rows();
        if let Some(sorted) = &self.databases().sorted {
            sorted.lock().seal(db, family)?;
        }
        Ok((db, family))
    }
}

pub(crate) fn checkpoint_key(tree: TreeId, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + key.len());
    out.extend_from_slice(&tree.0.to_be_bytes());
    out.extend_from_slice(key);
    out
}

fn parse_checkpoint_key(key: &[u8]) -> Result<(TreeId, &[u8]), StoreError> {
    let (tree, key) = key
        .split_first_chunk::<4>()
        .ok_or_else(|| StoreError::Damaged("a checkpoint key is too short".into()))?;
    Ok((TreeId(u32::from_be_bytes(*tree)), key))
}

impl RocksLogStore {
    /// Opens or creates the store of a data directory.
    pub fn open(path: &Path, options: RocksOptions) -> Result<RocksLogStore, StoreError> {
        allocator::give_back_what_is_freed();
        let directory = Directory::open(path)?;
        RocksLogStore::with(directory, options, Access::Write)
    }

    /// Opens the store of a data directory that must be there, and leaves its files as they
    /// are: writes are refused, and a torn tail is passed over but stays.
    pub fn open_read_only(path: &Path, options: RocksOptions) -> Result<RocksLogStore, StoreError> {
        RocksLogStore::with(Directory::open_existing(path)?, options, Access::Read)
    }

    /// Opens the store of a data directory that must be there and whose log may lack files: what is
    /// missing is missed no more. For [`archipel_engine::log::reset`].
    pub fn open_to_reset(path: &Path, options: RocksOptions) -> Result<RocksLogStore, StoreError> {
        RocksLogStore::with(Directory::open_existing(path)?, options, Access::Reset)
    }

    fn with(
        mut directory: Directory,
        options: RocksOptions,
        access: Access,
    ) -> Result<RocksLogStore, StoreError> {
        let mut watermark = match access {
            Access::Read => directory.watermark(false)?,
            Access::Write => directory.watermark(true)?,
            Access::Reset => match directory.watermark(true) {
                Err(StoreError::Damaged(_)) => {
                    Some(WatermarkFile::create(&directory.path, Watermark::default())?)
                }
                found => found?,
            },
        };
        if access == Access::Write && !directory.is_new {
            Databases::look(&directory, &options, watermark.as_ref())?;
        }
        if access != Access::Read {
            directory.bring_up_to_date()?;
        }
        let mut databases = Databases::open(&directory, &options, access)?;
        if directory.is_new && databases.are_used()? {
            return Err(directory.without_mark());
        }
        if access != Access::Read
            && let Some(made) = directory.mark(Watermark::default())?
        {
            watermark = Some(made);
        }
        if access != Access::Read {
            databases.make_parts(&options)?;
        }
        Ok(RocksLogStore {
            directory,
            options,
            access,
            watermark,
            part_latch: Mutex::default(),
            life: RwLock::new(Life { databases: Some(databases), losses: Losses::default() }),
        })
    }

    fn opened(&self) -> Result<Opened<'_>, StoreError> {
        let guard = self.life.read();
        if guard.databases.is_some() {
            return Ok(Opened(guard));
        }
        drop(guard);
        Err(StoreError::Full("the store is closed until space returns".into()))
    }

    /// After a full disk RocksDB refuses everything until it is opened again.
    fn reopen(&self) -> Result<(), StoreError> {
        let mut life = self.life.write();
        // Somebody else may have come first, and have rows in them by now.
        if life.databases.is_none() {
            let mut databases = Databases::open(&self.directory, &self.options, self.access)?;
            databases.make_parts(&self.options)?;
            life.databases = Some(databases);
        }
        Ok(())
    }

    fn free_bytes(&self) -> Option<u64> {
        space::free_bytes(&self.directory.path)
    }

    /// With less than this free no new commits are taken.
    fn nearly_full_bytes(&self) -> u64 {
        self.options.space_reserve_bytes.saturating_add(self.options.space_reserve_bytes / 2)
    }

    fn check_space(&self) -> Result<(), StoreError> {
        match self.free_bytes() {
            Some(free) if free < self.options.space_reserve_bytes => {
                Err(StoreError::Full(format!("{free} bytes are free in {}", self.directory.path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Writes; databases that met a full disk are opened again once there is space.
    fn write(&self, write: impl FnOnce(&Opened<'_>) -> Result<(), Error>) -> Result<(), StoreError> {
        self.write_unless_lost(None, write)
    }

    /// The same for what must not be written once checkpoint rows have gone `since`.
    fn write_unless_lost(
        &self,
        since: Option<Losses>,
        write: impl FnOnce(&Opened<'_>) -> Result<(), Error>,
    ) -> Result<(), StoreError> {
        if self.access == Access::Read {
            return Err(StoreError::Failed("the data directory is opened for reading only".into()));
        }
        self.check_space()?;
        if self.life.read().databases.is_none() {
            self.reopen()?;
        }
        let opened = self.opened()?;
        // Nobody closes them while this guard is held.
        let losses = opened.0.losses;
        if since.is_some_and(|since| since != losses) {
            return Err(StoreError::RowsLost);
        }
        let result = write(&opened).map_err(store_error);
        drop(opened);
        if matches!(result, Err(StoreError::Full(_))) {
            self.close_until_space_returns(losses);
        }
        result
    }

    /// Closes the databases that met a full disk after so many losses, not those that somebody
    /// has opened since.
    fn close_until_space_returns(&self, losses: Losses) {
        let mut life = self.life.write();
        if life.losses == losses {
            life.databases = None;
            life.losses.0 += 1;
        }
    }
}

impl LogStore for RocksLogStore {
    fn append(&self, number: BatchNumber, batch: &[u8], sync: bool) -> Result<(), StoreError> {
        self.write(|opened| {
            let (db, family) = opened.log();
            let whole = self.options.log_value_bytes_max;
            if batch.len() > whole {
                let key = number.0.to_be_bytes();
                return db.write_opt(batches::in_pieces(family, &key, batch, whole), &synced(sync));
            }
            db.put_cf_opt(family, number.0.to_be_bytes(), batch, &synced(sync))
        })
    }

    fn nearly_full(&self) -> bool {
        self.free_bytes().is_some_and(|free| free < self.nearly_full_bytes())
    }

    fn space(&self) -> Option<Space> {
        let free_bytes = self.free_bytes()?;
        Some(Space { free_bytes, room_bytes: free_bytes.saturating_sub(self.nearly_full_bytes()) })
    }

    fn append_part(&self, id: TxnId, part: u32, value: &[u8]) -> Result<(), StoreError> {
        let mut listed = self.part_latch.lock();
        listed.add(id);
        self.write(|opened| {
            let (db, family) = opened.parts().expect("a store for writing has the family");
            let (key, whole) = (parts::key(id, part), self.options.log_value_bytes_max);
            if value.len() > whole {
                return db.write_opt(batches::in_pieces(family, &key, value, whole), &synced(false));
            }
            db.put_cf_opt(family, key, value, &synced(false))
        })
    }

    fn read_parts(&self, id: TxnId, from: u32, visit: &mut PartVisitor<'_>) -> Result<(), StoreError> {
        let opened = self.opened()?;
        let Some((db, family)) = opened.parts() else { return Ok(()) };
        let mut options = streaming();
        options.set_iterate_lower_bound(parts::key(id, from));
        options.set_iterate_upper_bound(parts::first_key_behind(id));
        let mut found = db.raw_iterator_cf_opt(family, options);
        found.seek_to_first();
        parts::visit(&mut found, visit, store_error)
    }

    fn part_ids(&self) -> Result<Vec<TxnId>, StoreError> {
        let mut listed = self.part_latch.lock();
        let opened = self.opened()?;
        let Some((db, family)) = opened.parts() else { return Ok(Vec::new()) };
        Ok(listed.ids(db, family, store_error)?.iter().copied().collect())
    }

    /// Many a transaction is shorter than a file, so neighbours go together.
    fn drop_parts(&self, ids: &[TxnId]) -> Result<(), StoreError> {
        if self.access == Access::Read || ids.is_empty() {
            // Whoever reads passes over them; the next server drops them.
            return Ok(());
        }
        let mut dropped = ids.to_vec();
        dropped.sort_unstable();
        // Nobody comes in between whose parts are not listed.
        let mut listed = self.part_latch.lock();
        if self.life.read().databases.is_none() {
            self.check_space()?;
            self.reopen()?;
        }
        let opened = self.opened()?;
        let Some((db, family)) = opened.parts() else { return Ok(()) };
        let listed_ids = listed.ids(db, family, store_error)?.iter().copied();
        let kept: Vec<TxnId> = listed_ids.filter(|id| dropped.binary_search(id).is_err()).collect();
        parts::drop_ranges(db, family, &parts::ranges(&dropped, &kept)).map_err(store_error)?;
        listed.remove(&dropped);
        db.flush_wal(true).map_err(store_error)
    }

    fn sync(&self) -> Result<(), StoreError> {
        if self.access == Access::Read {
            return Ok(());
        }
        self.opened()?.log().0.flush_wal(true).map_err(store_error)
    }

    fn read_log(&self, from: BatchNumber, visit: &mut BatchVisitor<'_>) -> Result<(), StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.log();
        let mut options = streaming();
        options.set_iterate_lower_bound(from.0.to_be_bytes());
        let mut batches = db.raw_iterator_cf_opt(family, options);
        batches.seek_to_first();
        batches::visit(&mut batches, visit, store_error)
    }

    fn last_batch(&self) -> Result<Option<BatchNumber>, StoreError> {
        last_batch(self.opened()?.log().0)
    }

    fn truncate(&self, below: BatchNumber) -> Result<(), StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.log();
        let Some(last) = below.0.checked_sub(1) else { return Ok(()) };
        let last = batches::last_key_of(BatchNumber(last));
        // Whole files only: their space returns at once, and without a tombstone over the range
        // the files that stay overlap nothing, so that they are never merged, only moved. Here
        // the end belongs to the range, so it is the last batch to go: a file may end exactly
        // with the first one to stay.
        db.delete_file_in_range_cf(family, &0u64.to_be_bytes()[..], &last[..]).map_err(store_error)
    }

    fn truncate_tail(&self, from: BatchNumber) -> Result<(), StoreError> {
        if self.access == Access::Read {
            // Whoever reads passes over it by its number; the next server cuts it.
            return Ok(());
        }
        let opened = self.opened()?;
        let (db, family) = opened.log();
        let (from, to) = (from.0.to_be_bytes(), u64::MAX.to_be_bytes());
        db.delete_range_cf_opt(family, from, to, &synced(true)).map_err(store_error)
    }

    fn checkpoint_losses(&self) -> Losses {
        self.life.read().losses
    }

    fn checkpoint_write(&self, since: Losses, changes: &[CheckpointChange]) -> Result<(), StoreError> {
        self.write_unless_lost(Some(since), |opened| {
            let (db, family) = opened.rows();
            if let Some(sorted) = &opened.databases().sorted
                && sorted.lock().append(db, family, changes)?
            {
                return Ok(());
            }
            let mut batch = WriteBatch::default();
            for change in changes {
                let key = checkpoint_key(change.tree, &change.key);
                match &change.value {
                    Some(value) => batch.put_cf(family, key, value),
                    None => batch.delete_cf(family, key),
                }
            }
            db.write_opt(batch, &without_log())
        })
    }

    fn checkpoint_flush(&self, since: Losses) -> Result<(), StoreError> {
        self.write_unless_lost(Some(since), |opened| {
            let (db, family) = opened.sealed_rows()?;
            db.flush_cf(family)
        })
    }

    fn checkpoint_get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.sealed_rows().map_err(store_error)?;
        db.get_cf(family, checkpoint_key(tree, key)).map_err(store_error)
    }

    fn checkpoint_scan(
        &self,
        low: Option<&CheckpointKey>,
        high: Option<&CheckpointKey>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.sealed_rows().map_err(store_error)?;
        let mut options = streaming();
        if let Some((tree, key)) = low {
            options.set_iterate_lower_bound(checkpoint_key(*tree, key));
        }
        if let Some((tree, key)) = high {
            options.set_iterate_upper_bound(checkpoint_key(*tree, key));
        }
        let mut rows = db.raw_iterator_cf_opt(family, options);
        rows.seek_to_first();
        while let Some((key, value)) = rows.item() {
            let (tree, key) = parse_checkpoint_key(key)?;
            if visit(tree, key, value) == ControlFlow::Break(()) {
                return Ok(());
            }
            rows.next();
        }
        rows.status().map_err(store_error)
    }

    fn checkpoint_drop(&self, tree: TreeId) -> Result<(), StoreError> {
        let (from, to) = (checkpoint_key(tree, &[]), checkpoint_key(TreeId(tree.0 + 1), &[]));
        self.write(|opened| {
            let (db, family) = opened.sealed_rows()?;
            db.delete_range_cf_opt(family, &from, &to, &without_log())
        })
    }

    fn checkpoint_cuts(&self) -> Result<Vec<CheckpointKey>, StoreError> {
        let mut cuts = Vec::new();
        for file in self.opened()?.sealed_rows().map_err(store_error)?.0.live_files().map_err(store_error)? {
            if file.column_family_name == CHECKPOINT
                && let Some(key) = &file.start_key
            {
                let (tree, key) = parse_checkpoint_key(key)?;
                cuts.push((tree, key.to_vec()));
            }
        }
        cuts.sort();
        cuts.dedup();
        Ok(cuts)
    }

    fn meta_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.meta();
        db.get_cf(family, key).map_err(store_error)
    }

    fn meta_put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        if self.access == Access::Read {
            // Whoever reads learns nothing that the next server would not.
            return Ok(());
        }
        self.write(|opened| {
            let (db, family) = opened.meta();
            db.put_cf_opt(family, key, value, &synced(true))
        })
    }

    fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        Ok(self.watermark.as_ref().map(WatermarkFile::newest))
    }

    fn put_watermark(&self, watermark: Watermark, sync: bool) -> Result<(), StoreError> {
        match &self.watermark {
            Some(file) if self.access != Access::Read => file.put(watermark, sync),
            _ => Ok(()),
        }
    }

    /// Table files are linked, not copied, if `directory` is on the same file system; so a copy
    /// costs little until the original has moved on.
    fn copy_to(&self, directory: &Path) -> Result<(), StoreError> {
        self.check_space()?;
        let known = self.watermark()?.unwrap_or_default();
        // The copy has this one, and all before.
        let batch = self.last_batch()?.map_or(known.batch, |last| last.max(known.batch));
        let opened = self.opened()?;
        let mut copy = Directory::open(directory)?;
        // The rows first: every commit they hold is in the log by now, so also in its copy.
        let rows = opened.sealed_rows().map_err(store_error)?.0;
        for (db, name) in [(rows, CHECKPOINT), (opened.log().0, REDO)] {
            let checkpoint = Checkpoint::new(db).map_err(store_error)?;
            checkpoint.create_checkpoint(copy.store(name)).map_err(store_error)?;
        }
        copy.mark(Watermark { batch, ..known })?;
        copy.unlock()
    }
}

#[cfg(test)]
mod tests;
