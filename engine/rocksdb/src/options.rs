//! What RocksDB is told: sizes, levels, and how to read and write.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, DBCompressionType, Env, Error, LogLevel, Options, ReadOptions, WriteOptions,
};

use crate::space;

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
    /// A log batch of more bytes is cut into pieces of so many.
    pub log_value_bytes_max: usize,
}

impl Default for RocksOptions {
    fn default() -> Self {
        RocksOptions {
            space_reserve_bytes: 64 << 20,
            log_buffer_bytes: 16 << 20,
            checkpoint_buffer_bytes: 32 << 20,
            log_value_bytes_max: 64 << 20,
        }
    }
}

fn environment() -> Result<Env, Error> {
    let mut env = Env::new()?;
    env.set_background_threads(2);
    env.set_high_priority_background_threads(1);
    // Merging files is for idle cores: nobody waits for it before `family_options` says so.
    // Flushes are not niced: under a load that takes every core a niced thread gets next to
    // nothing, the write buffers fill, and commits and checkpoints wait for it.
    env.lower_thread_pool_cpu_priority();
    Ok(env)
}

/// Of one of the databases in this directory.
pub(crate) fn database_options(path: &Path, is_written: bool) -> Result<Options, Error> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_env(&environment()?);
    options.set_max_background_jobs(2);
    options.set_keep_log_file_num(3);
    options.set_log_level(LogLevel::Warn);
    options.set_bytes_per_sync(1 << 20);
    // What flushing and merging write is read again by the next start at the earliest: copying
    // it into the page cache costs as much as the rest of the work.
    options.set_use_direct_io_for_flush_and_compaction(is_written && space::takes_direct_writes(path));
    Ok(options)
}

/// Of a family whose first level may have so many files.
pub(crate) fn family_options(
    buffer_bytes: usize,
    files_at_first: i32,
    compression: DBCompressionType,
) -> Options {
    let mut options = Options::default();
    options.set_write_buffer_size(buffer_bytes);
    options.set_max_write_buffer_number(8);
    options.set_compression_type(compression);
    options.set_level_zero_file_num_compaction_trigger(files_at_first);
    options.set_level_zero_slowdown_writes_trigger(60);
    options.set_level_zero_stop_writes_trigger(120);
    options.set_target_file_size_base(64 << 20);
    // One level below the first: each checkpoint rewrites most of what is hot, and every level
    // between would be one more copy of it.
    options.set_max_bytes_for_level_base(64 << 30);
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(8 << 20));
    table.set_block_size(32 << 10);
    options.set_block_based_table_factory(&table);
    options
}

/// Of the family of checkpoint rows.
pub(crate) fn checkpoint_options(buffer_bytes: usize) -> Options {
    family_options(buffer_bytes, 8, DBCompressionType::Lz4)
}

/// Writes that are durable on return, or with the next that are.
pub(crate) fn synced(sync: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(sync);
    options
}

/// Reads that pass once over much: not through the cache, with read-ahead.
pub(crate) fn streaming() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.fill_cache(false);
    options.set_readahead_size(4 << 20);
    options
}

/// Reads of keys whose values do not matter, be they damaged: nothing of them stays in the cache.
pub(crate) fn unverified() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.fill_cache(false);
    options.set_verify_checksums(false);
    options
}

/// Writes that only a flush makes durable.
pub(crate) fn without_log() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options
}
