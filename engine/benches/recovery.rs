//! Recovery from a checkpoint of 1 M rows and a log of 2 M updates, in memory.
//!
//! `cargo bench -p archipel-engine --bench recovery`. Rows have 300 bytes, updates change 12 of
//! them, batches hold a thousand: about the shape of a TPC-C log.

use std::sync::Arc;

use archipel_engine::id::{Epoch, TreeId};
use archipel_engine::log::store::CheckpointChange;
use archipel_engine::log::{BatchNumber, LogStore, MemoryStore, batch, recover, redo};
use archipel_engine::storage::Touched;
use divan::Bencher;
use divan::counter::ItemsCount;

const ROWS: u64 = 1_000_000;
const UPDATES: u64 = 2_000_000;
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
    for number in 1..=UPDATES / 1_000 {
        let mut records = Vec::new();
        for n in (number - 1) * 1_000..number * 1_000 {
            let at = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % ROWS;
            redo::update(&mut records, TREE, n + 2, &key(at), (&before, &after), &Touched::all(300));
        }
        let epoch = Epoch(number + 1);
        let batch =
            batch::encode(BatchNumber(number), epoch, epoch, [(epoch, records.as_slice())].into_iter());
        store.append(BatchNumber(number), &batch, false).expect("memory");
    }
    store.sync().expect("memory");
    Arc::new(store)
}

#[divan::bench(args = [1, 2, 4], sample_count = 2, sample_size = 1)]
fn recover_rows_and_updates(bencher: Bencher<'_, '_>, threads: usize) {
    let store = store();
    bencher
        .counter(ItemsCount::new(ROWS + UPDATES))
        .bench_local(|| recover(&*store, threads, &|_| {}).expect("a good store").log_records);
}
