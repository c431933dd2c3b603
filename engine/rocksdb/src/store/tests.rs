use std::fs;

use archipel_engine::id::Epoch;
use archipel_engine::log::{batch, recover, redo};

use super::*;

const TREE: TreeId = TreeId(20);
/// Of a store that never was closed.
const NONE: Losses = Losses(0);

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
    assert_eq!(store.last_batch().expect("readable"), Some(BatchNumber(19)));
    assert_eq!(store.meta_get("word").expect("readable").as_deref(), Some(&b"kept"[..]));
    store.truncate(BatchNumber(10)).expect("cut");
    store.truncate_tail(BatchNumber(15)).expect("cut");
    let mut numbers = Vec::new();
    let mut visit = |number: BatchNumber, _: &[u8]| {
        numbers.push(number.0);
        ControlFlow::Continue(())
    };
    store.read_log(BatchNumber(10), &mut visit).expect("readable");
    assert_eq!(numbers, (10..15).collect::<Vec<_>>());
    assert_eq!(store.last_batch().expect("readable"), Some(BatchNumber(14)));
}

/// A checkpoint gives the log's space back without anything having been written twice.
#[test]
fn log_files_go_whole_and_are_never_merged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    let sizes = || -> Vec<usize> {
        let opened = store.opened().expect("open");
        let files = opened.log().0.live_files().expect("listed");
        files.iter().filter(|file| file.column_family_name == LOG).map(|file| file.size).collect()
    };
    for round in 0..12 {
        fill(&store, 1 + round * 10..11 + round * 10);
        let opened = store.opened().expect("open");
        let (db, family) = opened.log();
        db.flush_cf(family).expect("flushed");
    }
    let began = std::time::Instant::now();
    store.truncate(BatchNumber(100)).expect("cut");
    while sizes().len() > 4 && began.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        store.truncate(BatchNumber(100)).expect("cut");
    }
    let left = sizes();
    assert!(left.len() <= 4, "{left:?}");
    let one = left.iter().min().expect("the newest stays");
    assert!(left.iter().all(|size| *size < one * 2), "files were merged: {left:?}");
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
    store.checkpoint_write(NONE, &changes).expect("written");
    store.checkpoint_flush(NONE).expect("flushed");
    store.checkpoint_drop(TreeId(7)).expect("dropped");
    store.checkpoint_write(NONE, &[change(2, b"b", None)]).expect("removed");
    store.checkpoint_flush(NONE).expect("flushed");
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

/// A slice of rows large enough for a file of its own.
fn slice(tree: u32, keys: std::ops::Range<u32>, fill: u8) -> Vec<CheckpointChange> {
    let change = |key: u32| CheckpointChange {
        tree: TreeId(tree),
        key: key.to_be_bytes().into(),
        value: Some(vec![fill; 1_000]),
    };
    keys.map(change).collect()
}

#[test]
fn the_newest_of_a_row_stands_whichever_way_it_was_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let small = RocksOptions { checkpoint_buffer_bytes: 256 << 10, ..options() };
    let store = RocksLogStore::open(folder.path(), small).expect("a new directory");
    let write = |changes: &[CheckpointChange]| store.checkpoint_write(NONE, changes).expect("written");
    let first = |key: u32| {
        let row = store.checkpoint_get(TreeId(2), &key.to_be_bytes()).expect("readable");
        row.map(|row| row[0])
    };
    // Several files, the last of them open.
    for start in (0..2_000).step_by(100) {
        write(&slice(2, start..start + 100, 1));
    }
    assert_eq!((first(0), first(1_999), first(2_000)), (Some(1), Some(1), None));
    // Again from the middle, as after a merge of partitions.
    write(&slice(2, 1_000..1_100, 2));
    write(&slice(2, 1_100..1_110, 2));
    // A few rows and a removal, out of order.
    let removal = CheckpointChange { tree: TreeId(2), key: 5u32.to_be_bytes().into(), value: None };
    write(&[slice(2, 1_050..1_051, 3), vec![removal]].concat());
    write(&slice(2, 1_060..1_061, 4));
    store.checkpoint_flush(NONE).expect("flushed");
    drop(store);
    let store = RocksLogStore::open(folder.path(), small).expect("opens again");
    let mut seen = Vec::new();
    let mut visit = |_: TreeId, key: &[u8], value: &[u8]| {
        seen.push((u32::from_be_bytes(key.try_into().expect("four bytes")), value[0]));
        ControlFlow::Continue(())
    };
    store.checkpoint_scan(None, None, &mut visit).expect("readable");
    let expected = |key| match key {
        1_050 => 3,
        1_060 => 4,
        1_000..1_110 => 2,
        _ => 1,
    };
    let keys = (0..2_000).filter(|&key| key != 5);
    assert_eq!(seen, keys.map(|key| (key, expected(key))).collect::<Vec<_>>());
}

#[test]
fn rows_of_an_unfinished_checkpoint_leave_no_file_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    store.checkpoint_write(NONE, &slice(2, 0..200, 1)).expect("written");
    let files = || fs::read_dir(folder.path().join("sorted")).expect("readable").count();
    assert_eq!(files(), 1);
    drop(store);
    assert_eq!(files(), 0);
    fs::write(folder.path().join("sorted/000001.sst"), "of a process that was killed").expect("written");
    let store = RocksLogStore::open(folder.path(), options()).expect("opens again");
    assert_eq!(files(), 0);
    assert_eq!(store.checkpoint_get(TreeId(2), &0u32.to_be_bytes()).expect("readable"), None);
}

#[test]
fn a_checkpoint_whose_rows_went_with_a_full_disk_does_not_pass_for_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    store.checkpoint_write(NONE, &slice(2, 0..200, 1)).expect("written");
    // An append of the log met the full disk, and space has returned.
    store.close_until_space_returns(NONE);
    fill(&store, 1..2);
    assert!(matches!(store.checkpoint_write(NONE, &slice(2, 200..400, 1)), Err(StoreError::RowsLost)));
    for _ in 0..2 {
        assert!(matches!(store.checkpoint_flush(NONE), Err(StoreError::RowsLost)));
    }
    let now = store.checkpoint_losses();
    store.checkpoint_write(now, &slice(2, 0..200, 2)).expect("begun anew");
    // Another writer found them closed, too, and comes later; another one met the full disk before.
    store.reopen().expect("open already");
    store.close_until_space_returns(NONE);
    store.checkpoint_flush(now).expect("flushed");
    let row = store.checkpoint_get(TreeId(2), &0u32.to_be_bytes()).expect("readable");
    assert_eq!(row.map(|row| row[0]), Some(2));
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
    assert!(store.nearly_full());
}
