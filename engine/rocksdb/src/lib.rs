//! The RocksDB log store: `archipel_engine::log::LogStore` over one directory.
//!
//! ```text
//! DIR/FORMAT          the on-disk format version, as text
//! DIR/archipel.lock   held while a server runs; names its process
//! DIR/WATERMARK       how far the log has come, apart from the log
//! DIR/redo/           RocksDB: log batches, parts of large transactions, and a few words about them
//! DIR/checkpoint/     RocksDB: checkpoint rows
//! DIR/sorted/         table files of a checkpoint under way; emptied at every start
//! ```
//!
//! - [`allocator`] freed memory goes back
//! - [`batches`]   log batches as keys and values
//! - [`directory`] the directory: lock, format, refusals
//! - [`options`]   what RocksDB is told
//! - [`parts`]     parts of large transactions as keys and values
//! - [`private`]   nobody but the owner reads it
//! - [`store`]     the databases and the trait
//! - [`sorted`]    checkpoint rows, written straight into table files
//! - [`space`]     what the file system has and takes
//! - [`watermark`] its file, written in place
//! - [`wal`]       whether the write-ahead log is damaged in the middle, which RocksDB alone
//!   would take for its end
//!
//! RocksDB is used as a log and a bag of rows, nothing more: no reads in the hot path, one
//! writer that appends. Two databases, because they want opposite things of a write-ahead log:
//! that of the log recycles its files, so that a sync need not write metadata; that of the
//! checkpoint writes none (a checkpoint that did not finish is worth nothing, and the log still
//! has its rows) and is flushed once at the end. RocksDB does not do both in one.
//!
//! Invariant: nothing is read of a directory before its format is known and its lock is held.

mod allocator;
mod batches;
mod directory;
mod options;
mod parts;
mod private;
mod sorted;
mod space;
mod store;
mod wal;
mod watermark;

pub use directory::{FORMAT, parse_format};
pub use options::RocksOptions;
pub use private::{make_private, private_file, private_folder};
pub use store::RocksLogStore;
