//! Recovery from a checkpoint of 1 M rows and a log of 2 M updates, in memory.
//!
//! `cargo bench -p archipel-engine --bench recovery`. Rows have 300 bytes, updates change 12 of
//! them, transactions have twenty updates, and batches hold a thousand: about the shape of a TPC-C log.

use std::sync::Arc;

use archipel_engine::id::{Epoch, TreeId};
use archipel_engine::log::store::CheckpointChange;
use archipel_engine::log::{Author, Log, LogLimits, LogStore, LogWriter, MemoryStore, recover, redo};
use archipel_engine::storage::Touched;
use divan::Bencher;
use divan::counter::ItemsCount;

const ROWS: u64 = 1_000_000;
const UPDATES: u64 = 2_000_000;
const UPDATES_OF_A_TRANSACTION: u64 = 20;
const TREE: TreeId = TreeId(20);

fn main() {
    divan::main();
}

fn key(n: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[4..].copy_from_slice(&n.to_be_bytes());
    key
}

fn store() -> Arc<MemoryStore> {
    let store = MemoryStore::new();
    let before = vec![7u8; 300];
    let mut tagged = vec![1, 1];
    tagged.extend_from_slice(&before);
    for chunk in 0..ROWS / 1_000 {
        let rows: Vec<CheckpointChange> = (chunk * 1_000..(chunk + 1) * 1_000)
            .map(|n| CheckpointChange { tree: TREE, key: key(n).into(), value: Some(tagged.clone()) })
            .collect();
        store.checkpoint_write(store.checkpoint_losses(), &rows).expect("memory");
    }
    let mut after = before.clone();
    after[100..112].fill(9);
    let recovered = recover(&MemoryStore::new(), 1, &|_| {}).expect("nothing to recover");
    let log = Log::new(LogLimits::default(), &recovered);
    let mut writer = LogWriter::new(log.clone(), Arc::new(store.clone()), &recovered, Box::new(|_| {}));
    let buffer = log.new_buffer();
    let mut records = Vec::new();
    for number in 0..UPDATES / UPDATES_OF_A_TRANSACTION {
        records.clear();
        for n in number * UPDATES_OF_A_TRANSACTION..(number + 1) * UPDATES_OF_A_TRANSACTION {
            let at = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % ROWS;
            redo::update(&mut records, TREE, &key(at), (&before, &after), &Touched::all(300));
        }
        let epoch = Epoch(2 + number * UPDATES_OF_A_TRANSACTION / 1_000);
        buffer.append(epoch, Author::Program, number + 2, &records);
        if (number + 1).is_multiple_of(1_000 / UPDATES_OF_A_TRANSACTION) {
            writer.step(epoch).expect("memory");
        }
    }
    println!("{} bytes of log", log.counters().bytes);
    Arc::new(store)
}

#[divan::bench(args = [1, 2, 4], sample_count = 2, sample_size = 1)]
fn recover_rows_and_updates(bencher: Bencher<'_, '_>, threads: usize) {
    let store = store();
    bencher
        .counter(ItemsCount::new(ROWS + UPDATES))
        .bench_local(|| recover(&*store, threads, &|_| {}).expect("a good store").log_records);
}
