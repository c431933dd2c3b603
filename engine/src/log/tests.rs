//! Commits, checkpoints and crashes against a model: after any of them the trees equal the
//! state at the end of the newest whole epoch, which is never older than the durable one.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use proptest::prelude::*;

use super::checkpoint::{Checkpointer, SliceBuilder, SliceRoom};
use super::memory::{Faults, MemoryStore, Survivors};
use super::parts::{Framer, cut};
use super::recovery::{Recovered, recover};
use super::store::{FORMAT, LogStore, StoreError, check_format, raise_format};
use super::writer::{Log, LogLimits, LogRefusal, LogWriter};
use super::{Author, BatchNumber, META_TREE, Tag, redo};
use crate::id::{Epoch, TreeId, TxnId};
use crate::storage::Touched;
use crate::storage::tree::Tree;

mod older;
pub(super) mod parts;

type Rows = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

const TABLES: [TreeId; 2] = [TreeId(20), TreeId(21)];
const PARTITIONS: usize = 3;

#[derive(Clone, Debug)]
enum Write {
    Put(u8, Vec<u8>),
    Patch(u8, usize, u8),
    Delete(u8),
    /// Deletes every row of the partition's table.
    Clear,
    Meta(u8, u8),
}

#[derive(Clone, Debug)]
enum Action {
    /// A commit in one partition, from one of two threads.
    Commit {
        partition: usize,
        thread: usize,
        table: usize,
        writes: Vec<Write>,
    },
    /// The epoch closes and is written.
    Group,
    CheckpointBegin,
    CheckpointSlice,
    CheckpointFinish,
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        4 => (0u8..40, proptest::collection::vec(any::<u8>(), 1..20)).prop_map(|(key, row)| Write::Put(key, row)),
        4 => (0u8..40, any::<usize>(), any::<u8>()).prop_map(|(key, at, byte)| Write::Patch(key, at, byte)),
        3 => (0u8..40).prop_map(Write::Delete),
        1 => Just(Write::Clear),
        1 => (0u8..4, any::<u8>()).prop_map(|(key, value)| Write::Meta(key, value)),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => (0..PARTITIONS, 0usize..2, 0usize..2, proptest::collection::vec(write(), 1..5))
            .prop_map(|(partition, thread, table, writes)| Action::Commit { partition, thread, table, writes }),
        5 => Just(Action::Group),
        1 => Just(Action::CheckpointBegin),
        6 => Just(Action::CheckpointSlice),
        2 => Just(Action::CheckpointFinish),
    ]
}

#[derive(Default)]
struct Partition {
    trees: [Tree; 2],
    sequence: u64,
    number: u64,
    epoch: u64,
    /// Sequence at the begin of the last finished checkpoint, and of the running one.
    checkpointed: u64,
    checkpointing: u64,
}

/// Where the running checkpoint is: partition, table, key.
type Position = (usize, usize, Option<Vec<u8>>);

struct Server {
    store: MemoryStore,
    log: Arc<Log>,
    writer: LogWriter,
    /// Of two threads, each with the last number it has given.
    buffers: Vec<(Arc<super::CommitBuffer>, u64)>,
    /// It writes as versions did that knew no transactions.
    is_older: bool,
    /// Redo that is longer has parts of so many bytes.
    part_bytes: usize,
    /// The id of the last transaction that had parts.
    transaction: TxnId,
    checkpointer: Checkpointer,
    position: Option<Position>,
    partitions: Vec<Partition>,
    meta: Rows,
    meta_sequence: u64,
    global: u64,
    /// State at the end of each epoch, by epoch.
    history: BTreeMap<u64, Rows>,
}

fn partition_of(key: u8) -> usize {
    usize::from(key) * PARTITIONS / 40
}

fn rows_of(recovered: &Recovered) -> Rows {
    let mut rows = Rows::new();
    for (id, tree) in &recovered.trees {
        for (key, row) in tree.cursor(Bound::Unbounded) {
            rows.insert((id.0, key.to_vec()), row.to_vec());
        }
    }
    for (key, value) in &recovered.meta {
        rows.insert((META_TREE.0, key.clone()), value.clone());
    }
    rows
}

impl Server {
    fn start(store: MemoryStore, mut recovered: Recovered) -> Server {
        let meta =
            recovered.meta.iter().map(|(key, value)| ((META_TREE.0, key.clone()), value.clone())).collect();
        let state = rows_of(&recovered);
        let mut partitions: Vec<Partition> = Vec::new();
        for number in (0..PARTITIONS).rev() {
            let low = (0u8..40).find(|&key| partition_of(key) == number).expect("each has keys");
            let trees = TABLES.map(|id| recovered.trees.entry(id).or_default().split_off(&[low]));
            // As `PartitionData::start_at`: a row of a slice is as new as all that was replayed.
            let (number, epoch) = (recovered.number_max, recovered.epoch.0);
            let partition = Partition { trees, sequence: number, number, epoch, ..Partition::default() };
            partitions.insert(0, partition);
        }
        let log = Log::new(LogLimits::default(), &recovered);
        let store_dyn: Arc<dyn LogStore> = Arc::new(store.clone());
        let writer = LogWriter::new(Arc::clone(&log), Arc::clone(&store_dyn), &recovered, Box::new(|_| {}));
        Server {
            checkpointer: Checkpointer::new(Arc::clone(&log), store_dyn).expect("a good store"),
            buffers: vec![(log.new_buffer(), log.number_at_start()), (log.new_buffer(), 0)],
            is_older: false,
            part_bytes: usize::MAX,
            transaction: recovered.transaction_max,
            position: None,
            store,
            log,
            writer,
            partitions,
            meta,
            meta_sequence: recovered.number_max,
            global: recovered.epoch.0 + 1,
            history: BTreeMap::from([(recovered.epoch.0, state)]),
        }
    }

    fn state(&self) -> Rows {
        let mut rows = self.meta.clone();
        for partition in &self.partitions {
            for (id, tree) in TABLES.iter().zip(&partition.trees) {
                for (key, row) in tree.cursor(Bound::Unbounded) {
                    rows.insert((id.0, key.to_vec()), row.to_vec());
                }
            }
        }
        rows
    }

    fn commit(&mut self, number: usize, thread: usize, table: usize, writes: &[Write]) {
        let partition = &mut self.partitions[number];
        let mut records = Vec::new();
        let out = &mut records;
        let (tree, id, last) = (&mut partition.trees[table], TABLES[table], &mut partition.sequence);
        let mut next = || {
            *last += 1;
            *last
        };
        let (meta, meta_sequence) = (&mut self.meta, &mut self.meta_sequence);
        for write in writes {
            match write {
                Write::Put(key, row) if partition_of(*key) == number => {
                    let sequence = next();
                    tree.insert(&[*key], row.clone().into(), sequence);
                    redo::put(out, id, &[*key], row);
                }
                Write::Patch(key, at, byte) => {
                    let sequence = next();
                    tree.update(&[*key], sequence, |row| {
                        let before = row.clone();
                        let at = at % row.len();
                        row[at] = *byte;
                        redo::update(out, id, &[*key], (&before, row), &Touched::all(row.len()));
                    });
                }
                Write::Delete(key) => {
                    let sequence = next();
                    if tree.remove(&[*key], sequence).is_some() {
                        redo::delete(out, id, &[*key]);
                    }
                }
                Write::Clear => {
                    let keys: Vec<Vec<u8>> =
                        tree.cursor(Bound::Unbounded).map(|(key, _)| key.to_vec()).collect();
                    for key in keys {
                        let sequence = next();
                        tree.remove(&key, sequence);
                        redo::delete(out, id, &key);
                    }
                }
                Write::Meta(key, value) => {
                    *meta_sequence += 1;
                    let value = (*value > 100).then_some([*value]);
                    redo::meta(out, *meta_sequence, &[*key], value.as_ref().map(|value| &value[..]));
                    let key = (META_TREE.0, vec![*key]);
                    match value {
                        Some(value) => drop(meta.insert(key, value.to_vec())),
                        None => drop(meta.remove(&key)),
                    }
                }
                Write::Put(..) => {}
            }
        }
        if !records.is_empty() {
            self.log(number, thread, &records);
        }
    }

    /// As `Txn::log_commit`, for a transaction that holds one partition.
    fn log(&mut self, partition: usize, thread: usize, records: &[u8]) {
        let partition = &mut self.partitions[partition];
        let (buffer, last) = &mut self.buffers[thread];
        let number = partition.number.max(*last) + 1;
        if records.len() > self.part_bytes {
            self.transaction.0 += 1;
            let mut framer = Framer::new(self.transaction);
            let rest = cut(records, self.part_bytes, |part| buffer.append_part(framer.frame(part)));
            buffer.append_with_parts(Epoch(self.global), number, &framer.parts(), &records[rest..]);
        } else {
            buffer.append(Epoch(self.global), Author::Program, number, records);
        }
        (*last, partition.number, partition.epoch) = (number, number, self.global);
    }

    /// As `PartitionData::newest_tag`.
    fn newest_tag(&self, partition: usize) -> Tag {
        let Partition { epoch, number, .. } = self.partitions[partition];
        Tag { epoch: Epoch(epoch), number: if self.is_older { older::newest(number) } else { number } }
    }

    fn group(&mut self) -> Result<(), StoreError> {
        self.history.insert(self.global, self.state());
        let closed = Epoch(self.global);
        self.global += 1;
        self.writer.step(closed)?;
        if self.is_older {
            older::rewrite_last(&self.store);
        }
        Ok(())
    }

    fn slice(&mut self) {
        let Some((number, table, low)) = self.position.take() else { return };
        let Some(partition) = self.partitions.get_mut(number) else { return };
        if table == 0 && low.is_none() {
            partition.checkpointing = partition.sequence;
        }
        let mut slice = SliceBuilder::new(self.newest_tag(number), 40, SliceRoom::default());
        let partition = &self.partitions[number];
        let next = slice.add(TABLES[table], &partition.trees[table], low.as_deref(), partition.checkpointed);
        self.checkpointer.write(slice.build()).expect("no faults yet");
        self.position = Some(match next {
            Some(key) => (number, table, Some(key)),
            None if table == 0 => (number, 1, None),
            None => (number + 1, 0, None),
        });
    }

    /// The slices that are left.
    fn slices(&mut self) {
        while self.position != Some((PARTITIONS, 0, None)) {
            self.slice();
        }
    }

    fn checkpoint(&mut self) {
        self.act(&Action::CheckpointBegin);
        self.slices();
        self.act(&Action::CheckpointFinish);
        assert_eq!(self.position, None, "finished");
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Commit { partition, thread, table, writes } => {
                self.commit(*partition, *thread, *table, writes);
            }
            Action::Group => self.group().expect("no faults yet"),
            Action::CheckpointBegin => {
                self.checkpointer.begin(Epoch(self.global));
                self.position = Some((0, 0, None));
            }
            Action::CheckpointSlice => self.slice(),
            Action::CheckpointFinish => {
                if self.position == Some((PARTITIONS, 0, None))
                    && self.checkpointer.finish().expect("no faults yet").is_some()
                {
                    self.position = None;
                    for partition in &mut self.partitions {
                        partition.checkpointed = partition.checkpointing;
                    }
                }
            }
        }
    }
}

/// Cases are cheap, and what they find is rare.
fn cases() -> u32 {
    if std::env::var("ARCHIPEL_TEST_LONG").as_deref() == Ok("1") { 300_000 } else { 2_000 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn after_any_crash_the_state_is_that_of_the_newest_whole_epoch(
        lives in proptest::collection::vec(
            (
                proptest::collection::vec(action(), 1..80), 0u8..6, any::<u8>(), 1usize..4,
                prop_oneof![Just(usize::MAX), 1usize..60],
            ),
            1..4,
        ),
        older_lives in 0usize..3,
    ) {
        let mut store = MemoryStore::new();
        for (life, (actions, ending, share, threads, part_bytes)) in lives.into_iter().enumerate() {
            let recovered = recover(&store, 1, &|_| {}).expect("recovers");
            let is_older = life < older_lives;
            let part_bytes = if is_older { usize::MAX } else { part_bytes };
            let mut server = Server { is_older, part_bytes, ..Server::start(store, recovered) };
            for action in &actions {
                server.act(action);
            }
            let durable = server.log.durable();
            let survivors = match ending {
                0 => Survivors::Synced,
                1 => Survivors::All,
                _ => {
                    // The last batch is written but its sync fails; some of it may survive.
                    server.store.set_faults(Faults { sync_fails: true, ..Faults::default() });
                    let last = Action::Commit {
                        partition: 0, thread: 0, table: 0, writes: vec![Write::Put(1, vec![7; 9])],
                    };
                    server.act(&last);
                    prop_assert!(server.group().is_err());
                    prop_assert_eq!(server.log.durable(), durable);
                    let unsynced = server.store.unsynced_writes();
                    match ending {
                        2 => Survivors::First(unsynced),
                        3 => Survivors::First(unsynced - 1),
                        4 => Survivors::First(usize::from(share) % unsynced),
                        _ => Survivors::Torn(unsynced - 1, share),
                    }
                }
            };
            store = server.store.crash(survivors);
            let recovered = recover(&store, threads, &|_| {}).expect("recovers");
            prop_assert!(recovered.epoch >= durable || server.history.get(&recovered.epoch.0)
                == server.history.range(..=durable.0).next_back().map(|(_, state)| state),
                "recovered {} of {}", recovered.epoch, durable);
            let expected = server.history.range(..=recovered.epoch.0).next_back().map(|(_, state)| state);
            prop_assert_eq!(Some(&rows_of(&recovered)), expected);
        }
    }
}

fn written(batches: u64) -> MemoryStore {
    let store = MemoryStore::new();
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    let mut server = Server::start(store.clone(), recovered);
    for number in 0..batches {
        server.commit(0, 0, 0, &[Write::Put(number as u8, vec![1; 30])]);
        server.group().expect("no faults");
    }
    store
}

#[test]
fn a_damaged_batch_before_a_whole_one_stops_the_start() {
    let store = written(5);
    store.damage(BatchNumber(3), 50);
    let error = recover(&store, 2, &|_| {}).err().expect("refused");
    assert_eq!(
        error.to_string(),
        "the data directory is damaged: log batch 3 is damaged, but batch 4 after it is whole"
    );
}

#[test]
fn a_damaged_last_batch_is_a_torn_tail_and_new_batches_follow_it() {
    let store = written(5);
    store.damage(BatchNumber(5), 50);
    let recovered = recover(&store, 2, &|_| {}).expect("recovers");
    assert_eq!((recovered.epoch, recovered.next_batch), (Epoch(4), BatchNumber(5)));
    assert!(recovered.torn_bytes > 0);
    assert_eq!(store.batches().len(), 4);
}

#[test]
fn a_missing_batch_stops_the_start() {
    for lost in [1, 3] {
        let store = written(5);
        store.lose(BatchNumber(lost));
        let error = recover(&store, 2, &|_| {}).err().expect("refused");
        assert_eq!(error.to_string(), format!("the data directory is damaged: log batch {lost} is missing"));
    }
}

#[test]
fn an_update_without_its_row_stops_the_start() {
    let store = MemoryStore::new();
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    let mut server = Server::start(store.clone(), recovered);
    let mut records = Vec::new();
    redo::update(&mut records, TABLES[0], b"k", (b"aaaa", b"aaab"), &Touched::all(4));
    server.log(0, 0, &records);
    server.group().expect("no faults");
    let error = recover(&store, 1, &|_| {}).err().expect("no start");
    assert!(matches!(&error, StoreError::Damaged(what) if what.ends_with("that is not there")), "{error}");
}

#[test]
fn an_update_of_another_row_stops_the_start() {
    let store = written(1);
    let mut server = Server::start(store.clone(), recover(&store, 1, &|_| {}).expect("recovers"));
    server.checkpoint();
    // Of a row that is longer than the one in the checkpoint, and stays.
    let (old, new) = ([1; 40], [[1; 39].as_slice(), &[2]].concat());
    let mut records = Vec::new();
    redo::update(&mut records, TABLES[0], &[0], (&old, &new), &Touched::all(40));
    server.log(0, 0, &records);
    server.group().expect("no faults");
    let error = recover(&store, 1, &|_| {}).err().expect("no start");
    assert!(matches!(&error, StoreError::Damaged(what) if what.ends_with("that is another one")), "{error}");
}

#[test]
fn dropped_trees_stay_dropped_through_checkpoints() {
    let store = written(5);
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    let mut server = Server::start(store.clone(), recovered);
    server.checkpoint();
    let mut records = Vec::new();
    redo::drop_tree(&mut records, TABLES[0]);
    server.log(0, 0, &records);
    server.partitions[0].trees[0] = Tree::new();
    server.group().expect("no faults");
    assert!(!recover(&store, 1, &|_| {}).expect("recovers").trees.contains_key(&TABLES[0]));
    server.checkpoint();
    let mut rows = 0;
    store
        .checkpoint_scan(None, None, &mut |tree, _, _| {
            rows += u32::from(tree != META_TREE);
            ControlFlow::Continue(())
        })
        .expect("readable");
    assert_eq!(rows, 0);
    assert!(!recover(&store, 1, &|_| {}).expect("recovers").trees.contains_key(&TABLES[0]));
}

/// A row that is deleted while a checkpoint is on its way, before its slice.
#[test]
fn no_checkpoint_ends_before_the_deletes_its_slices_have_seen_are_durable() {
    let store = written(1);
    let mut server = Server::start(store.clone(), recover(&store, 1, &|_| {}).expect("recovers"));
    server.act(&Action::CheckpointBegin);
    server.commit(0, 0, 0, &[Write::Delete(0)]);
    server.slices();
    // Nothing of the row is left in the tree, and the log would go that has it.
    assert_eq!(server.checkpointer.finish().expect("no faults"), None);
    let after = recover(&store.crash(Survivors::Synced), 1, &|_| {}).expect("recovers");
    assert_eq!(after.trees[&TABLES[0]].len(), 1, "the delete has gone with the crash");
    server.group().expect("no faults");
    assert!(server.checkpointer.finish().expect("no faults").is_some());
    let after = recover(&store.crash(Survivors::Synced), 1, &|_| {}).expect("recovers");
    assert!(after.trees.values().all(Tree::is_empty));
}

/// A row has grown since the last checkpoint; the next one finds it changed and gone.
#[test]
fn a_change_of_a_row_that_went_before_its_slice_is_passed_over() {
    let store = written(1);
    let mut server = Server::start(store.clone(), recover(&store, 1, &|_| {}).expect("recovers"));
    server.checkpoint();
    server.commit(0, 0, 0, &[Write::Put(0, vec![2; 40])]);
    server.group().expect("no faults");
    server.act(&Action::CheckpointBegin);
    server.commit(0, 0, 0, &[Write::Patch(0, 35, 3)]);
    server.commit(0, 0, 0, &[Write::Delete(0)]);
    server.group().expect("no faults");
    server.slices();
    assert!(server.checkpointer.finish().expect("no faults").is_some());
    // The checkpoint has the short row and the log, behind it, a change of the long one.
    let after = recover(&store.crash(Survivors::Synced), 1, &|_| {}).expect("recovers");
    assert!(after.trees.values().all(Tree::is_empty));
}

#[test]
fn a_newer_format_is_refused_and_an_older_one_raised() {
    let store = MemoryStore::new();
    check_format(&store).expect("a new store gets this version's mark");
    check_format(&store).expect("and is accepted again");
    store.meta_put("format", &(FORMAT + 1).to_le_bytes()).expect("written");
    let error = check_format(&store).expect_err("refused");
    assert_eq!(error.to_string(), "the data directory has format 4, this version reads up to 3");
    store.meta_put("format", &1u32.to_le_bytes()).expect("written");
    check_format(&store).expect("an older one is read");
    assert_eq!(store.meta_get("format").expect("readable"), Some(vec![1, 0, 0, 0]), "a look changes nothing");
    raise_format(&store).expect("written");
    let store = store.crash(Survivors::Synced);
    assert_eq!(store.meta_get("format").expect("readable"), Some(FORMAT.to_le_bytes().to_vec()));
}

/// With one number for all that a transaction does, its delete must not take the row it has put.
#[test]
fn a_row_that_its_transaction_has_deleted_and_put_again_outlives_the_checkpoint() {
    for (before, writes, left) in [
        (true, vec![Write::Delete(0), Write::Put(0, vec![9; 30])], 1),
        (false, vec![Write::Put(0, vec![9; 30]), Write::Delete(0), Write::Put(0, vec![9; 30])], 1),
        (true, vec![Write::Put(0, vec![9; 30]), Write::Delete(0)], 0),
        (false, vec![Write::Put(0, vec![9; 30]), Write::Delete(0)], 0),
    ] {
        let store = written(u64::from(before));
        let mut server = Server::start(store.clone(), recover(&store, 1, &|_| {}).expect("recovers"));
        server.checkpoint();
        server.commit(0, 0, 0, &writes);
        server.group().expect("no faults");
        let with_log = store.crash(Survivors::Synced);
        server.checkpoint();
        assert_eq!(store.batches(), [], "the log was cut");
        for store in [with_log, store.crash(Survivors::Synced)] {
            let after = recover(&store, 1, &|_| {}).expect("recovers");
            let rows: Vec<_> = rows_of(&after).into_values().collect();
            assert_eq!(rows, vec![vec![9; 30]; left], "{writes:?}");
        }
    }
}

/// As an upgrade leaves it: the same keys before and behind, and nobody's checkpoint in between.
#[test]
fn a_log_may_be_of_the_older_format_up_to_a_batch() {
    let store = MemoryStore::new();
    let start = || Server::start(store.clone(), recover(&store, 2, &|_| {}).expect("recovers"));
    let mut server = Server { is_older: true, ..start() };
    for (thread, row) in [(0, 1), (1, 2), (0, 3)] {
        server.commit(0, thread, 0, &[Write::Put(0, vec![row; 9]), Write::Put(1, vec![row; 9])]);
    }
    server.commit(0, 1, 0, &[Write::Delete(1), Write::Meta(1, 200), Write::Put(2, vec![4; 9])]);
    server.group().expect("no faults");
    server.commit(0, 0, 0, &[Write::Patch(2, 3, 5)]);
    server.group().expect("no faults");
    let mut server = start();
    server.commit(0, 0, 0, &[Write::Patch(2, 4, 6), Write::Put(1, vec![7; 9]), Write::Meta(1, 201)]);
    server.group().expect("no faults");
    server.commit(0, 1, 0, &[Write::Delete(2)]);
    server.commit(0, 0, 0, &[Write::Put(2, vec![8; 9]), Write::Patch(0, 0, 9)]);
    server.group().expect("no faults");
    let mut magics = Vec::new();
    let mut visit = |_: BatchNumber, bytes: &[u8]| {
        magics.push(bytes[..4].to_vec());
        ControlFlow::Continue(())
    };
    store.read_log(BatchNumber(1), &mut visit).expect("readable");
    assert_eq!(magics, [b"ARL1", b"ARL1", b"ARL2", b"ARL2"]);
    let found = super::verify::verify(&store).expect("readable");
    assert_eq!((found.batches, found.records, found.problem_count), (4, 16, 0), "{:?}", found.problems);
    assert_eq!(super::reset::reset(&store).expect("resets").kept, 4);
    let expected = server.state();
    assert_eq!(rows_of(&recover(&store, 2, &|_| {}).expect("recovers")), expected);
    server.checkpoint();
    assert_eq!(store.batches(), []);
    assert_eq!(rows_of(&recover(&store, 2, &|_| {}).expect("recovers")), expected);
}

/// Somebody has written it so: it is neither torn nor passed over.
#[test]
fn what_later_versions_write_is_told_and_not_taken_for_a_torn_end() {
    let store = written(2);
    let mut last = Vec::new();
    let mut visit = |_: BatchNumber, bytes: &[u8]| {
        last = bytes.to_vec();
        ControlFlow::Continue(())
    };
    store.read_log(BatchNumber(2), &mut visit).expect("readable");
    let transaction = last.windows(4).position(|bytes| bytes == [0, 35, 1, 20]).expect("a put of 30 bytes");
    for (at, byte, told) in [
        (16, 1, "batch of kind 1, which this version does not know"),
        (transaction, 2, "transaction with flags 0x02, which this version does not know"),
        (transaction + 2, 5, "redo record of kind 5, which this version does not know"),
    ] {
        let mut later = last.clone();
        later[at] = byte;
        let crc = crc32c::crc32c(&later[8..]);
        later[4..8].copy_from_slice(&crc.to_le_bytes());
        store.append(BatchNumber(2), &later, true).expect("written");
        let error = recover(&store, 1, &|_| {}).err().expect("refused");
        assert!(matches!(&error, StoreError::Damaged(what) if what.contains(told)), "{error}");
        let found = super::verify::verify(&store).expect("readable");
        assert!(found.problems.iter().any(|problem| problem.contains(told)), "{:?}", found.problems);
        assert_eq!(store.batches().len(), 2, "nothing was cut off");
    }
}

#[test]
fn after_a_failed_checkpoint_the_next_one_is_whole_and_loses_nothing() {
    let store = written(5);
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    let mut server = Server::start(store.clone(), recovered);
    server.checkpointer.begin(Epoch(server.global));
    let slice = |server: &Server| {
        let mut slice = SliceBuilder::new(Tag { epoch: Epoch(5), number: 5 }, 1 << 20, SliceRoom::default());
        assert_eq!(slice.add(TABLES[0], &server.partitions[0].trees[0], None, 0), None);
        slice.build()
    };
    store.set_faults(Faults { full: true, ..Faults::default() });
    assert!(server.checkpointer.write(slice(&server)).is_err());
    store.set_faults(Faults::default());
    assert!(server.checkpointer.begin(Epoch(server.global)), "whole slices are asked for");
    assert!(server.checkpointer.finish().expect("space again").is_some());
    assert!(!server.checkpointer.begin(Epoch(server.global)));
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    assert_eq!(recovered.trees[&TABLES[0]].len(), 5, "the slice that failed was written after all");
}

#[test]
fn rows_that_went_with_a_full_disk_are_missed_and_written_again() {
    let store = written(5);
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    let mut server = Server::start(store.clone(), recovered);
    let slice = |server: &Server| {
        let mut slice = SliceBuilder::new(Tag { epoch: Epoch(5), number: 5 }, 1 << 20, SliceRoom::default());
        assert_eq!(slice.add(TABLES[0], &server.partitions[0].trees[0], None, 0), None);
        slice.build()
    };
    // Nothing was on its way: nothing is missed.
    store.lose_checkpoint_rows();
    assert!(!server.checkpointer.begin(Epoch(server.global)));
    store.lose_checkpoint_rows();
    // In the middle of a checkpoint.
    server.checkpointer.write(slice(&server)).expect("no faults");
    store.lose_checkpoint_rows();
    assert!(matches!(server.checkpointer.finish(), Err(StoreError::RowsLost)));
    assert!(server.checkpointer.begin(Epoch(server.global)), "whole slices are asked for");
    // Between one that was given up and the next.
    server.checkpointer.write(slice(&server)).expect("no faults");
    store.lose_checkpoint_rows();
    assert!(server.checkpointer.begin(Epoch(server.global)), "whole slices are asked for");
    server.checkpointer.write(slice(&server)).expect("no faults");
    assert!(server.checkpointer.finish().expect("nothing is missing").is_some());
    assert!(!server.checkpointer.begin(Epoch(server.global)));
    assert_eq!(store.batches(), [], "the log was cut");
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    assert_eq!(recovered.trees[&TABLES[0]].len(), 5);
}

/// Found by the property above: a checkpoint that ends while its epoch is still open must not
/// count that epoch as whole.
#[test]
fn a_checkpoint_does_not_close_the_epoch_it_began_in() {
    let store = MemoryStore::new();
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    let mut server = Server::start(store, recovered);
    server.checkpointer.begin(Epoch(server.global));
    assert!(server.checkpointer.finish().expect("no faults").is_some());
    server.commit(0, 0, 0, &[Write::Put(1, vec![7; 9])]);
    let store = server.store.crash(Survivors::Synced);
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    assert!(recovered.epoch < Epoch(server.global), "epoch {} was never written", server.global);
}
