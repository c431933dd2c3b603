//! The log: redo, group commit, checkpoints, recovery.
//!
//! ```text
//! executor thread        log writer                         store
//! ---------------        ----------                         -----
//! commit point, epoch 7
//!   append redo ───────▶ [its buffer: epoch 7 │ epoch 8 …]
//!   leave, release
//!                        epoch 7 closes: takes the segments
//!                        of 7 from every buffer, one batch ─▶ append, sync
//!                        durable = 7, wakes each subscriber
//! replies that depend
//! on 7 or less go out
//! ```
//!
//! - [`redo`]       one record: the after-image of a row, of its changed bytes, or a delete; `input` reads bytes
//! - [`transaction`] whose records they are: its number, which with the epoch is their tag
//! - [`buffer`]     a thread's transactions, segmented by epoch
//! - [`parts`]      what a large transaction has logged before it commits
//! - [`batch`]      one write of the log: closed epochs, numbered, with a checksum
//! - [`store`]      what the log needs of a disk, as a trait; [`memory`] keeps it in memory and
//!   injects faults; [`discard`] forgets at a kill what was never synced
//! - [`writer`]     group commit
//! - [`checkpoint`] rows of changed leaves, so that the log can be cut
//! - [`recovery`]   checkpoint and log back into trees, in parallel; `reader` reads the log,
//!   `by_key` finds a key's records
//! - [`watermark`]  how far the log has come, as known beside it: a log that has lost its end is
//!   refused; [`reset`] goes on with what is left of it; `stamp` tells an older checkpoint,
//!   `pair` that of another database
//! - [`verify`]     a look at every byte, for a report
//!
//! **What is durable.** The newest batch names its last epoch: every commit up to it is in the
//! log, whole. A crash leaves a prefix of batches, so a prefix of epochs, so (epoch order is
//! serial order) a prefix of the serial execution.
//!
//! **Why tags.** Replay applies the records of each *key* in tag order onto the checkpointed
//! row, which carries its own tag, and skips what the row already has. So it does not matter
//! how the data was partitioned when, and keys can be replayed in parallel. A tag is (epoch, number of the
//! transaction), and numbers come from partitions. When a partition splits both halves inherit its
//! number, a merge takes the greater one: along the life of a key tags only grow.
//!
//! **Why checkpoints need no snapshot.** A slice writes rows as they are, each tagged with its
//! partition's newest transaction, and only after that commit is durable. Replay starts at the
//! epoch in which the checkpoint began; for each key it continues from the row's own tag.
//!
//! Differences from SiloR, where epoch group commit comes from: one writer thread and one log
//! instead of many, because redo is small and one committer that batches beats many that sync;
//! checkpoints take changed leaves only.

pub mod batch;
pub mod buffer;
mod by_key;
pub mod checkpoint;
pub mod discard;
pub mod input;
pub mod memory;
mod pair;
pub mod parts;
mod reader;
pub mod recovery;
pub mod redo;
pub mod reset;
mod stamp;
pub mod store;
pub mod transaction;
pub mod verify;
pub mod watermark;
pub mod writer;

#[cfg(test)]
mod tests;

pub use batch::BatchNumber;
pub use buffer::CommitBuffer;
pub use checkpoint::{CheckpointDone, Checkpointer, SliceBuilder};
pub use memory::MemoryStore;
pub(crate) use pair::begin as begin_pair;
pub use recovery::{Progress, Recovered, RecoveryCost, recover, recover_timed};
pub use redo::{META_TREE, Tag};
pub use store::{LogStore, StoreError};
#[cfg(test)]
pub(crate) use transaction::Located;
pub use transaction::{Author, Parts};
pub use watermark::Watermark;
pub use writer::{Log, LogLimits, LogRefusal, LogWriter, Step, Wake};
