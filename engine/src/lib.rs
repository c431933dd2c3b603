//! Archipel's engine: partitions of ordered trees, claimed one thread at a time,
//! with epochs, a redo log and recovery underneath.
//!
//! Invariant: the engine knows bytes and typed rows ([`cell::Cell`], [`schema::TableDef`]);
//! it knows no SQL and no tokio. Clock, randomness, thread spawning, topology and the log
//! store are traits, so that the simulator can run all of it on one thread from one seed.
//!
//! The life of a transaction, module by module:
//!
//! - [`client`]     who submits: its cancel flag, its open transaction, what it waits for
//! - [`program`]    what a caller submits, and why it may be stopped; [`submission`] what it gets
//! - [`engine`]     the front: open, submit, begin, snapshot, views; recovery and checkpoints
//! - [`partition`]  the routing table, the state word, claims, queues and lending
//! - [`executor`]   one pinned thread per core; drains the queues of its partitions
//! - [`txn`]        what a claimed program may do: read, scan, write, undo, commit point;
//!   interactive transactions, sequences, definitions, splits, merges and moves
//! - [`locks`]      LOCK TABLE and advisory locks
//! - [`snapshot`]   the past, read in pages
//! - [`table`]      definitions as the running engine knows them; [`index_uses`] what indexes are used for
//! - [`storage`]    rows, memcomparable keys, the B+tree, uncommitted images, old versions
//! - [`log`]        redo, group commit, checkpoints, recovery
//! - [`monitor`]    what is measured, and what follows: partitions that split, merge and move
//! - [`heap`]       the budget of memory: what is charged, and who is refused
//! - [`topology`]   which cores, islands and memory nodes there are
//! - [`clock`], [`random`], [`spawn`], [`Interleave`]  the seams of the simulator
//! - `simulation`   all of it under a seeded scheduler; `planted` bugs it must find; `models` of the lock-free
//!   parts, for loom, and `sync` what they run over
//!
//! Counters for the views are kept where they are counted: in partitions and executors, on
//! their owner's cache lines.

#[cfg(test)]
extern crate self as archipel_engine;

pub mod cell;
pub mod client;
pub mod clock;
pub mod engine;
pub mod executor;
pub mod heap;
pub mod id;
pub mod index_uses;
pub mod locks;
pub mod log;
#[cfg(test)]
mod models;
pub mod monitor;
mod pages;
mod panics;
mod parallel;
pub mod partition;
#[cfg(test)]
mod planted;
pub mod program;
pub mod random;
pub mod schema;
#[cfg(test)]
mod simulation;
pub mod snapshot;
pub mod spawn;
pub mod storage;
pub mod submission;
mod sync;
pub mod table;
pub mod topology;
pub mod txn;

pub use client::{Client, Refused, Wait, WaitOn};
pub use engine::{
    CheckpointReason, CheckpointState, CheckpointView, Durable, Engine, EngineConfig, ExecutorPlace,
    Interleave, LogView, MemoryFollowed, OpenError, PAGE_ROWS_MAX, PARTITIONS_PER_EXECUTOR, Paging,
    PartitionView, Point, RecoverySpeed, RouteView, Seams, Start, SubmitOptions, TopologyChange,
    TopologyListener,
};
pub use executor::{Drained, ExecutorHandle, ExecutorInfo, SliceBudget};
pub use locks::{
    LockAdvisory, LockScope, LockSequence, LockTables, LockTag, LockView, ObjectLock, ObjectMode,
};
pub use log::Wake;
pub use monitor::{Advice, Decision, MonitorSettings, PartitionLoad, Reason, RunCounts, SyncPointView, Told};
pub use partition::{ClaimSet, Route, Routes, RoutesIter, RoutingTable};
pub use program::{Completed, Outcome, Program, Stop};
pub use snapshot::{PageRows, ScanPage, Snapshot, SnapshotView};
pub use storage::tree::AHEAD_MAX;
pub use submission::{Canceller, RowWait, Submission};
pub use table::{
    CATALOG_TREE, EARLIER_CATALOG_TREE, FIRST_FREE_TREE, IndexMeta, REFERENCE_GROUP, SequenceDef, TableMeta,
};
pub use txn::{
    ColumnSource, CopyReader, Cut, DdlOp, Direction, Inserted, Interactive, InteractiveSavepoint, Isolation,
    KeyRange, LockMode, LockWait, Mark, NextValue, OwnedCell, PartRows, Repartition, RepartitionKind,
    RepartitionRefused, RepartitionView, Repartitioning, Savepoint, Sequence, TransactionLimits, Txn, Visit,
    WaitEdge, WaitGraph,
};
