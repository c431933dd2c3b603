//! The databases and what the log does with them.

use std::ops::ControlFlow;
use std::path::Path;

use archipel_engine::id::TreeId;
use archipel_engine::log::BatchNumber;
use archipel_engine::log::store::{
    BatchVisitor, CheckpointChange, CheckpointKey, LogStore, RowVisitor, StoreError,
};
use parking_lot::{RwLock, RwLockReadGuard};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, DBRecoveryMode,
    Env, Error, ErrorKind, IteratorMode, LogLevel, Options, ReadOptions, WriteBatch, WriteOptions,
};

use crate::directory::Directory;
use crate::{allocator, space, wal};

const LOG: &str = "log";
const CHECKPOINT: &str = "checkpoint";
const META: &str = "meta";

/// Sizes of a store.
#[derive(Clone, Copy, Debug)]
pub struct RocksOptions {
    /// Free space below which appends are refused before RocksDB meets the full disk itself:
    /// room for its flushes to finish.
    pub space_reserve_bytes: u64,
    /// Memory for log batches before they move from the write-ahead log to a table file.
    pub log_buffer_bytes: usize,
    /// The same for checkpoint rows.
    pub checkpoint_buffer_bytes: usize,
}

impl Default for RocksOptions {
    fn default() -> Self {
        RocksOptions {
            space_reserve_bytes: 64 << 20,
            log_buffer_bytes: 16 << 20,
            checkpoint_buffer_bytes: 16 << 20,
        }
    }
}

/// A [`LogStore`] in a directory.
pub struct RocksLogStore {
    directory: Directory,
    options: RocksOptions,
    /// `None` after a full disk, until an attempt to open them again succeeds.
    databases: RwLock<Option<Databases>>,
}

fn store_error(error: Error) -> StoreError {
    let message = error.to_string();
    if message.contains("No space left on device") {
        return StoreError::Full(message);
    }
    match error.kind() {
        ErrorKind::Corruption => StoreError::Damaged(message),
        _ => StoreError::Failed(message),
    }
}

fn environment() -> Result<Env, Error> {
    let mut env = Env::new()?;
    env.set_background_threads(2);
    env.set_high_priority_background_threads(1);
    // Flushes and compactions give way to the executors.
    env.lower_thread_pool_cpu_priority();
    env.lower_high_priority_thread_pool_cpu_priority();
    Ok(env)
}

/// Both databases of a store.
struct Databases {
    log: DB,
    rows: DB,
}

fn database_options() -> Result<Options, Error> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_env(&environment()?);
    options.set_max_background_jobs(2);
    options.set_keep_log_file_num(3);
    options.set_log_level(LogLevel::Warn);
    options.set_bytes_per_sync(1 << 20);
    Ok(options)
}

fn family_options(buffer_bytes: usize, compression: DBCompressionType) -> Options {
    let mut options = Options::default();
    options.set_write_buffer_size(buffer_bytes);
    options.set_max_write_buffer_number(4);
    options.set_compression_type(compression);
    options.set_level_zero_file_num_compaction_trigger(4);
    options.set_level_zero_slowdown_writes_trigger(60);
    options.set_level_zero_stop_writes_trigger(120);
    options.set_target_file_size_base(32 << 20);
    options.set_max_bytes_for_level_base(256 << 20);
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(8 << 20));
    table.set_block_size(32 << 10);
    options.set_block_based_table_factory(&table);
    options
}

impl Databases {
    fn open(directory: &Directory, options: &RocksOptions) -> Result<Databases, StoreError> {
        let path = directory.store(LOG);
        wal::check(&path)?;
        let mut database = database_options().map_err(store_error)?;
        database.set_recycle_log_file_num(4);
        database.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        database.set_max_total_wal_size(16 * options.log_buffer_bytes as u64);
        let families = [
            ColumnFamilyDescriptor::new(
                LOG,
                family_options(options.log_buffer_bytes, DBCompressionType::None),
            ),
            ColumnFamilyDescriptor::new(META, family_options(1 << 20, DBCompressionType::None)),
        ];
        let log = DB::open_cf_descriptors(&database, path, families).map_err(store_error)?;
        let database = database_options().map_err(store_error)?;
        let families = [ColumnFamilyDescriptor::new(
            CHECKPOINT,
            family_options(options.checkpoint_buffer_bytes, DBCompressionType::Lz4),
        )];
        let path = directory.store(CHECKPOINT);
        let rows = DB::open_cf_descriptors(&database, path, families).map_err(store_error)?;
        Ok(Databases { log, rows })
    }
}

/// The open databases for the length of one call.
struct Opened<'s>(RwLockReadGuard<'s, Option<Databases>>);

impl Opened<'_> {
    fn databases(&self) -> &Databases {
        self.0.as_ref().expect("only handed out when it is open")
    }

    fn log(&self) -> (&DB, &ColumnFamily) {
        let db = &self.databases().log;
        (db, db.cf_handle(LOG).expect("opened with its families"))
    }

    fn meta(&self) -> (&DB, &ColumnFamily) {
        let db = &self.databases().log;
        (db, db.cf_handle(META).expect("opened with its families"))
    }

    fn rows(&self) -> (&DB, &ColumnFamily) {
        let db = &self.databases().rows;
        (db, db.cf_handle(CHECKPOINT).expect("opened with its families"))
    }
}

fn checkpoint_key(tree: TreeId, key: &[u8]) -> Vec<u8> {
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
        let databases = Databases::open(&directory, &options)?;
        Ok(RocksLogStore { directory, options, databases: RwLock::new(Some(databases)) })
    }

    fn opened(&self) -> Result<Opened<'_>, StoreError> {
        let guard = self.databases.read();
        if guard.is_some() {
            return Ok(Opened(guard));
        }
        drop(guard);
        Err(StoreError::Full("the store is closed until space returns".into()))
    }

    /// After a full disk RocksDB refuses everything until it is opened again.
    fn reopen(&self) -> Result<(), StoreError> {
        let mut databases = self.databases.write();
        // RocksDB's own lock: the old ones must be gone first.
        *databases = None;
        *databases = Some(Databases::open(&self.directory, &self.options)?);
        Ok(())
    }

    fn check_space(&self) -> Result<(), StoreError> {
        match space::free_bytes(&self.directory.path) {
            Some(free) if free < self.options.space_reserve_bytes => {
                Err(StoreError::Full(format!("{free} bytes are free in {}", self.directory.path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Writes; databases that met a full disk are opened again once there is space.
    fn write(&self, write: impl Fn(&Opened<'_>) -> Result<(), Error>) -> Result<(), StoreError> {
        self.check_space()?;
        if self.databases.read().is_none() {
            self.reopen()?;
        }
        let opened = self.opened()?;
        let result = write(&opened).map_err(store_error);
        drop(opened);
        if matches!(result, Err(StoreError::Full(_))) {
            *self.databases.write() = None;
        }
        result
    }
}

fn synced(sync: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(sync);
    options
}

/// Reads that pass once over much: not through the cache, with read-ahead.
fn streaming() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.fill_cache(false);
    options.set_readahead_size(4 << 20);
    options
}

fn without_log() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options
}

impl LogStore for RocksLogStore {
    fn append(&self, number: BatchNumber, batch: &[u8], sync: bool) -> Result<(), StoreError> {
        self.write(|opened| {
            let (db, family) = opened.log();
            db.put_cf_opt(family, number.0.to_be_bytes(), batch, &synced(sync))
        })
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.opened()?.log().0.flush_wal(true).map_err(store_error)
    }

    fn read_log(&self, from: BatchNumber, visit: &mut BatchVisitor<'_>) -> Result<(), StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.log();
        let mut options = streaming();
        options.set_iterate_lower_bound(from.0.to_be_bytes());
        for entry in db.iterator_cf_opt(family, options, IteratorMode::Start) {
            let (key, value) = entry.map_err(store_error)?;
            let number = <[u8; 8]>::try_from(&key[..])
                .map_err(|_| StoreError::Damaged("a log key is no batch number".into()))?;
            if visit(BatchNumber(u64::from_be_bytes(number)), &value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn truncate(&self, below: BatchNumber) -> Result<(), StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.log();
        let Some(last) = below.0.checked_sub(1) else { return Ok(()) };
        let (from, to) = (0u64.to_be_bytes(), below.0.to_be_bytes());
        // Whole files first: their space returns at once. Here the end belongs to the range, so
        // it is the last batch to go: a file may end exactly with the first one to stay.
        db.delete_file_in_range_cf(family, from, last.to_be_bytes()).map_err(store_error)?;
        db.delete_range_cf_opt(family, from, to, &synced(true)).map_err(store_error)
    }

    fn truncate_tail(&self, from: BatchNumber) -> Result<(), StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.log();
        let (from, to) = (from.0.to_be_bytes(), u64::MAX.to_be_bytes());
        db.delete_range_cf_opt(family, from, to, &synced(true)).map_err(store_error)
    }

    fn checkpoint_write(&self, changes: &[CheckpointChange]) -> Result<(), StoreError> {
        self.write(|opened| {
            let (db, family) = opened.rows();
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

    fn checkpoint_flush(&self) -> Result<(), StoreError> {
        self.write(|opened| {
            let (db, family) = opened.rows();
            db.flush_cf(family)
        })
    }

    fn checkpoint_get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.rows();
        db.get_cf(family, checkpoint_key(tree, key)).map_err(store_error)
    }

    fn checkpoint_scan(
        &self,
        low: Option<&CheckpointKey>,
        high: Option<&CheckpointKey>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), StoreError> {
        let opened = self.opened()?;
        let (db, family) = opened.rows();
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
            let (db, family) = opened.rows();
            db.delete_range_cf_opt(family, &from, &to, &without_log())
        })
    }

    fn checkpoint_cuts(&self) -> Result<Vec<CheckpointKey>, StoreError> {
        let mut cuts = Vec::new();
        for file in self.opened()?.rows().0.live_files().map_err(store_error)? {
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
        self.write(|opened| {
            let (db, family) = opened.meta();
            db.put_cf_opt(family, key, value, &synced(true))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use archipel_engine::id::Epoch;
    use archipel_engine::log::{batch, recover, redo};

    use super::*;

    const TREE: TreeId = TreeId(20);

    fn options() -> RocksOptions {
        RocksOptions { space_reserve_bytes: 0, ..RocksOptions::default() }
    }

    fn fill(store: &RocksLogStore, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let mut records = Vec::new();
            redo::put(&mut records, TREE, number, &number.to_be_bytes(), &[7; 3_000]);
            let epoch = Epoch(number);
            let segments = [(epoch, records.as_slice())];
            let bytes = batch::encode(BatchNumber(number), epoch, epoch, segments.iter().copied());
            store.append(BatchNumber(number), &bytes, true).expect("there is space");
        }
    }

    fn rows(store: &RocksLogStore) -> u64 {
        let recovered = recover(store, 2, &|_| {}).expect("recovers");
        recovered.trees.get(&TREE).map_or(0, |tree| tree.len())
    }

    #[test]
    fn batches_rows_and_words_survive_a_reopening() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
        fill(&store, 1..20);
        store.truncate(BatchNumber(1)).expect("nothing to do");
        store.meta_put("word", b"kept").expect("written");
        drop(store);
        let store = RocksLogStore::open(folder.path(), options()).expect("opens again");
        assert_eq!(rows(&store), 19);
        assert_eq!(store.meta_get("word").expect("readable").as_deref(), Some(&b"kept"[..]));
        store.truncate(BatchNumber(10)).expect("cut");
        store.truncate_tail(BatchNumber(15)).expect("cut");
        let mut numbers = Vec::new();
        let mut visit = |number: BatchNumber, _: &[u8]| {
            numbers.push(number.0);
            ControlFlow::Continue(())
        };
        store.read_log(BatchNumber(0), &mut visit).expect("readable");
        assert_eq!(numbers, (10..15).collect::<Vec<_>>());
    }

    /// Removing whole files takes both ends of its range: the batch at the cut must not go with
    /// a file that ends with it.
    #[test]
    fn the_first_batch_to_stay_survives_at_the_end_of_a_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
        fill(&store, 1..6);
        {
            let opened = store.opened().expect("open");
            let (db, family) = opened.log();
            db.flush_cf(family).expect("flushed");
            db.compact_range_cf(family, None::<&[u8]>, None::<&[u8]>);
        }
        fill(&store, 6..10);
        store.truncate(BatchNumber(5)).expect("cut");
        let mut numbers = Vec::new();
        let mut visit = |number: BatchNumber, _: &[u8]| {
            numbers.push(number.0);
            ControlFlow::Continue(())
        };
        store.read_log(BatchNumber(5), &mut visit).expect("readable");
        assert_eq!(numbers, (5..10).collect::<Vec<_>>());
    }

    #[test]
    fn checkpoint_rows_are_ordered_by_tree_and_key() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
        let change = |tree: u32, key: &[u8], value: Option<&[u8]>| CheckpointChange {
            tree: TreeId(tree),
            key: key.into(),
            value: value.map(<[u8]>::to_vec),
        };
        let changes = [
            change(300, b"a", Some(b"3")),
            change(2, b"b", Some(b"2")),
            change(2, b"a", Some(b"1")),
            change(7, b"x", Some(b"gone")),
        ];
        store.checkpoint_write(&changes).expect("written");
        store.checkpoint_flush().expect("flushed");
        store.checkpoint_drop(TreeId(7)).expect("dropped");
        store.checkpoint_write(&[change(2, b"b", None)]).expect("removed");
        store.checkpoint_flush().expect("flushed");
        drop(store);
        let store = RocksLogStore::open(folder.path(), options()).expect("opens again");
        let mut seen = Vec::new();
        let mut visit = |tree: TreeId, key: &[u8], value: &[u8]| {
            seen.push((tree.0, key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        store.checkpoint_scan(None, Some(&(TreeId(300), b"b".to_vec())), &mut visit).expect("readable");
        assert_eq!(seen, [(2, b"a".to_vec(), b"1".to_vec()), (300, b"a".to_vec(), b"3".to_vec())]);
        assert_eq!(store.checkpoint_get(TreeId(2), b"b").expect("readable"), None);
    }

    #[test]
    fn a_directory_in_use_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let _store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
        let error = RocksLogStore::open(folder.path(), options()).err().expect("refused");
        let expected = format!(
            "the data directory {} is in use by another server (process {})",
            folder.path().display(),
            std::process::id()
        );
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn newer_formats_and_strange_directories_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        drop(RocksLogStore::open(folder.path(), options()).expect("a new directory"));
        fs::write(folder.path().join("FORMAT"), "99\n").expect("written");
        let error = RocksLogStore::open(folder.path(), options()).err().expect("refused");
        assert!(matches!(error, StoreError::NewerFormat { found: 99, .. }), "{error}");
        fs::write(folder.path().join("FORMAT"), "nonsense").expect("written");
        let error = RocksLogStore::open(folder.path(), options()).err().expect("refused");
        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
        let stranger = tempfile::tempdir().expect("a temporary folder");
        fs::write(stranger.path().join("letters.txt"), "dear").expect("written");
        let error = RocksLogStore::open(stranger.path(), options()).err().expect("refused");
        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    }

    /// The write-ahead log with the batches, and where the batch of this number starts in it.
    fn find_batch(folder: &Path, number: u64) -> (std::path::PathBuf, usize) {
        let needle = [&b"ARL1"[..]].concat();
        for entry in fs::read_dir(folder.join("log")).expect("readable") {
            let path = entry.expect("readable").path();
            if path.extension().is_none_or(|extension| extension != "log") {
                continue;
            }
            let bytes = fs::read(&path).expect("readable");
            let found = bytes
                .windows(16)
                .position(|window| window[..4] == needle[..] && window[8..16] == number.to_le_bytes());
            if let Some(at) = found {
                return (path, at);
            }
        }
        panic!("batch {number} is in no write-ahead log");
    }

    fn flip(path: &Path, at: usize) {
        let mut bytes = fs::read(path).expect("readable");
        bytes[at] ^= 0x20;
        fs::write(path, bytes).expect("written");
    }

    #[test]
    fn damage_before_whole_batches_stops_the_start_and_at_the_end_is_cut() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
        fill(&store, 1..100);
        drop(store);
        let (path, at) = find_batch(folder.path(), 50);
        flip(&path, at + 500);
        let error = RocksLogStore::open(folder.path(), options()).err().expect("refused");
        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
        flip(&path, at + 500);
        let (path, at) = find_batch(folder.path(), 99);
        flip(&path, at + 500);
        let store = RocksLogStore::open(folder.path(), options()).expect("a torn tail is cut");
        assert_eq!(rows(&store), 98);
    }

    #[test]
    fn too_little_space_is_told_apart_from_failure() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let greedy = RocksOptions { space_reserve_bytes: u64::MAX, ..options() };
        let store = RocksLogStore::open(folder.path(), greedy).expect("a new directory");
        let error = store.append(BatchNumber(1), b"x", true).expect_err("refused");
        assert!(matches!(error, StoreError::Full(_)), "{error}");
    }
}
