use std::fs;

use archipel_engine::id::Epoch;
use archipel_engine::log::{batch, recover, redo};

use super::*;

mod parts;

const TREE: TreeId = TreeId(20);
/// Of a store that never was closed.
const NONE: Losses = Losses(0);

fn options() -> RocksOptions {
    RocksOptions { space_reserve_bytes: 0, ..RocksOptions::default() }
}

fn fill(store: &RocksLogStore, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut records = Vec::new();
        redo::put(&mut records, TREE, &number.to_be_bytes(), &[7; 3_000]);
        let epoch = Epoch(number);
        let bytes = batch::encode(BatchNumber(number), (epoch, epoch), [(epoch, number, records.as_slice())]);
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
    for mark in ["nonsense", "", "0\n", "-1\n", "+1\n", "1.5", "1 2\n", "99999999999\n"] {
        fs::write(folder.path().join("FORMAT"), mark).expect("written");
        for read_only in [false, true] {
            let opened = match read_only {
                true => RocksLogStore::open_read_only(folder.path(), options()),
                false => RocksLogStore::open(folder.path(), options()),
            };
            let error = opened.err().expect("refused");
            assert!(matches!(error, StoreError::Damaged(_)), "{mark:?}: {error}");
        }
    }
    let stranger = tempfile::tempdir().expect("a temporary folder");
    fs::write(stranger.path().join("letters.txt"), "dear").expect("written");
    let error = RocksLogStore::open(stranger.path(), options()).err().expect("refused");
    assert!(matches!(error, StoreError::Damaged(_)), "{error}");
}

/// The write-ahead log with the batches, and where the batch of this number starts in it.
fn find_batch(folder: &Path, number: u64) -> (std::path::PathBuf, usize) {
    let needle = [&b"ARL2"[..]].concat();
    for entry in fs::read_dir(folder.join("redo")).expect("readable") {
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

fn mark(batch: u64) -> Watermark {
    Watermark { batch: BatchNumber(batch), epoch: Epoch(batch), replay_from: BatchNumber(1) }
}

/// The write-ahead log's files, oldest first.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder.join("redo")).expect("readable");
    let mut found: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    found.sort();
    found
}

#[test]
fn a_log_cut_below_the_watermark_is_refused_and_one_cut_above_it_is_a_torn_tail() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    fill(&store, 1..50);
    store.put_watermark(mark(40), false).expect("noted");
    drop(store);
    let (path, _) = find_batch(folder.path(), 45);
    let whole = fs::read(&path).expect("readable");
    for (from, to, is_whole) in [(45, 44, true), (40, 39, false), (20, 19, false)] {
        let (_, at) = find_batch(folder.path(), from);
        fs::write(&path, &whole[..at]).expect("cut");
        let store = RocksLogStore::open_read_only(folder.path(), options()).expect("RocksDB takes it");
        match recover(&store, 2, &|_| {}) {
            Ok(recovered) => assert!(is_whole && recovered.next_batch == BatchNumber(to + 1)),
            Err(error) => {
                assert!(!is_whole && matches!(error, StoreError::Damaged(_)), "{error}");
                assert!(error.to_string().contains("batch 40 had been written"), "{error}");
            }
        }
        drop(store);
        fs::write(&path, &whole).expect("whole again");
    }
}

/// RocksDB knows the files that it has closed, and how long they are.
#[test]
fn a_closed_file_that_is_missing_or_cut_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    store.meta_put("word", b"kept in the first file until its family is flushed").expect("written");
    // The other family moves on to new files.
    for round in 0..3 {
        fill(&store, 1 + round * 10..11 + round * 10);
        let opened = store.opened().expect("open");
        let (db, family) = opened.log();
        db.flush_cf(family).expect("flushed");
    }
    fill(&store, 31..33);
    drop(store);
    let closed = files(folder.path()).first().cloned().expect("the first file is needed still");
    let whole = fs::read(&closed).expect("readable");
    fs::remove_file(&closed).expect("it was there");
    for bytes in [None, Some(&whole[..whole.len() / 2]), Some(&[][..])] {
        if let Some(bytes) = bytes {
            fs::write(&closed, bytes).expect("written");
        }
        let error = RocksLogStore::open(folder.path(), options()).err().expect("refused");
        assert!(matches!(&error, StoreError::Damaged(told) if told.contains(WAYS_OUT)), "{error}");
        let error = RocksLogStore::open_read_only(folder.path(), options()).err().expect("refused");
        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    }
    fs::remove_file(&closed).expect("it was there");
    let store = RocksLogStore::open_to_reset(folder.path(), options()).expect("takes what there is");
    drop(store);
    RocksLogStore::open(folder.path(), options()).expect("nothing is missed any more");
}

#[test]
fn an_older_directory_is_brought_up_to_date_and_a_look_leaves_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    fill(&store, 1..20);
    drop(store);
    // As the version before has left it.
    fs::rename(folder.path().join("redo"), folder.path().join("log")).expect("renamed");
    fs::remove_file(folder.path().join("WATERMARK")).expect("it was there");
    fs::write(folder.path().join("FORMAT"), "1\n").expect("written");
    let store = RocksLogStore::open_read_only(folder.path(), options()).expect("readable");
    assert_eq!((rows(&store), store.watermark().expect("readable")), (19, None));
    store.put_watermark(mark(19), true).expect("nothing happens");
    store.meta_put("word", b"nor here").expect("nothing happens");
    assert_eq!(store.meta_get("word").expect("readable"), None);
    drop(store);
    assert!(folder.path().join("log").exists() && !folder.path().join("WATERMARK").exists());
    // Once more, as if the first start had been cut short after the folder got its name.
    for _ in 0..2 {
        let store = RocksLogStore::open(folder.path(), options()).expect("brought up to date");
        assert_eq!(rows(&store), 19);
        assert_eq!(store.watermark().expect("readable"), Some(Watermark::default()));
        drop(store);
        assert!(folder.path().join("redo").exists() && !folder.path().join("log").exists());
        assert_eq!(fs::read_to_string(folder.path().join("FORMAT")).expect("readable"), this_format());
        fs::write(folder.path().join("FORMAT"), "1\n").expect("written");
        fs::remove_file(folder.path().join("WATERMARK")).expect("it was there");
    }
}

/// The mark of this version.
fn this_format() -> String {
    format!("{}\n", crate::FORMAT)
}

#[test]
fn a_directory_with_a_watermark_keeps_it_when_it_is_brought_up_to_date() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let format = || fs::read_to_string(folder.path().join("FORMAT")).expect("readable");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    fill(&store, 1..20);
    store.put_watermark(mark(15), true).expect("noted");
    drop(store);
    fs::write(folder.path().join("FORMAT"), "2\n").expect("written");
    let store = RocksLogStore::open_read_only(folder.path(), options()).expect("readable");
    assert_eq!((rows(&store), store.watermark().expect("readable")), (19, Some(mark(15))));
    drop(store);
    assert_eq!(format(), "2\n", "a look leaves it");
    let store = RocksLogStore::open(folder.path(), options()).expect("brought up to date");
    assert_eq!((rows(&store), store.watermark().expect("readable")), (19, Some(mark(15))));
    let further = mark(19);
    store.put_watermark(further, false).expect("noted");
    drop(store);
    assert_eq!(format(), this_format());
    let store = RocksLogStore::open(folder.path(), options()).expect("opens again");
    assert_eq!(store.watermark().expect("readable"), Some(further), "the file that is there goes on");
    drop(store);
    // A watermark that has gone is missed all the same.
    fs::write(folder.path().join("FORMAT"), "2\n").expect("written");
    fs::remove_file(folder.path().join("WATERMARK")).expect("it was there");
    let error = RocksLogStore::open(folder.path(), options()).err().expect("refused");
    assert!(error.to_string().contains("WATERMARK is missing"), "{error}");
    assert_eq!(format(), "2\n");
    drop(RocksLogStore::open_to_reset(folder.path(), options()).expect("made anew"));
    assert_eq!(format(), this_format());
}

#[test]
fn a_watermark_that_is_gone_is_missed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    store.put_watermark(mark(0), true).expect("noted");
    drop(store);
    fs::remove_file(folder.path().join("WATERMARK")).expect("it was there");
    let error = RocksLogStore::open(folder.path(), options()).err().expect("refused");
    assert!(error.to_string().contains("WATERMARK is missing"), "{error}");
    drop(RocksLogStore::open_to_reset(folder.path(), options()).expect("made anew"));
    RocksLogStore::open(folder.path(), options()).expect("opens");
}

#[test]
fn a_copy_knows_how_far_its_log_goes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(&folder.path().join("data"), options()).expect("a new directory");
    fill(&store, 1..20);
    store.put_watermark(mark(7), false).expect("noted");
    let copy = folder.path().join("copy");
    store.copy_to(&copy).expect("copied");
    let store = RocksLogStore::open(&copy, options()).expect("opens");
    let known = store.watermark().expect("readable").expect("it has one");
    assert_eq!((known.batch, known.epoch, rows(&store)), (BatchNumber(19), Epoch(7), 19));
}

#[test]
fn nobody_else_reads_a_data_directory() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let mode = || fs::metadata(&data).expect("it is there").permissions().mode() & 0o777;
    drop(RocksLogStore::open(&data, options()).expect("a new directory"));
    assert_eq!(mode(), 0o700);
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).expect("ours");
    drop(RocksLogStore::open_read_only(&data, options()).expect("a look changes nothing"));
    assert_eq!(mode(), 0o755);
    drop(RocksLogStore::open(&data, options()).expect("as an earlier version left it"));
    assert_eq!(mode(), 0o700);
    // What is no data directory is left alone.
    let stranger = folder.path().join("letters");
    fs::create_dir(&stranger).expect("made");
    fs::set_permissions(&stranger, fs::Permissions::from_mode(0o755)).expect("ours");
    fs::write(stranger.join("letter.txt"), "dear").expect("written");
    fs::set_permissions(stranger.join("letter.txt"), fs::Permissions::from_mode(0o644)).expect("ours");
    assert!(RocksLogStore::open(&stranger, options()).is_err());
    let of = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((of(&stranger), of(&stranger.join("letter.txt"))), (0o755, 0o644));
}

/// A batch longer than one value can be is one batch all the same: read, replaced, cut.
#[test]
fn a_long_batch_is_kept_in_pieces() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = RocksOptions { log_value_bytes_max: 1_000, ..options() };
    let store = RocksLogStore::open(folder.path(), options).expect("a new directory");
    fill(&store, 1..4);
    store.append(BatchNumber(4), b"short", true).expect("there is space");
    let read = |store: &RocksLogStore| {
        let mut lengths = Vec::new();
        let mut visit = |number: BatchNumber, bytes: &[u8]| {
            lengths.push((number.0, batch::check(bytes).is_some()));
            ControlFlow::Continue(())
        };
        store.read_log(BatchNumber(2), &mut visit).expect("readable");
        lengths
    };
    assert_eq!(read(&store), [(2, true), (3, true), (4, false)]);
    assert_eq!(store.last_batch().expect("readable"), Some(BatchNumber(4)));
    store.truncate_tail(BatchNumber(3)).expect("cut");
    drop(store);
    let store = RocksLogStore::open(folder.path(), options).expect("opens again");
    assert_eq!(read(&store), [(2, true)]);
    assert_eq!(store.last_batch().expect("readable"), Some(BatchNumber(2)));
    fill(&store, 3..5);
    assert_eq!(rows(&store), 4);
}

#[test]
fn links_to_nothing_are_refused_by_who_reads_as_by_who_writes() {
    let begins = ["LOCK", "LOG", "OPTIONS-"];
    for (database, begins) in
        ["redo", "checkpoint"].into_iter().flat_map(|database| begins.map(|begins| (database, begins)))
    {
        let folder = tempfile::tempdir().expect("a temporary folder");
        drop(RocksLogStore::open(folder.path(), options()).expect("a new directory"));
        let found = fs::read_dir(folder.path().join(database)).expect("a folder");
        let names =
            found.map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"));
        let name = names.filter(|name| name.starts_with(begins)).min().expect("there is one");
        let path = folder.path().join(database).join(name);
        fs::remove_file(&path).expect("it was there");
        std::os::unix::fs::symlink("nothing/here", &path).expect("linked");
        for read_only in [true, false] {
            let opened = match read_only {
                true => RocksLogStore::open_read_only(folder.path(), options()),
                false => RocksLogStore::open(folder.path(), options()),
            };
            let error = opened.err().expect("refused");
            assert!(matches!(error, StoreError::Damaged(_)), "{}: {error}", path.display());
        }
    }
}

#[test]
fn pipes_and_devices_are_no_files() {
    for name in ["FORMAT", "WATERMARK", "archipel.lock", "redo/CURRENT", "checkpoint/CURRENT", "redo/LOCK"] {
        for device in [false, true] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            drop(RocksLogStore::open(folder.path(), options()).expect("a new directory"));
            let path = folder.path().join(name);
            fs::remove_file(&path).expect("it was there");
            if device {
                std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
            } else {
                let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
                assert!(made.success());
            }
            for read_only in [true, false] {
                let opened = match read_only {
                    true => RocksLogStore::open_read_only(folder.path(), options()),
                    false => RocksLogStore::open(folder.path(), options()),
                };
                let error = opened.err().expect("refused");
                assert!(matches!(error, StoreError::Damaged(_)), "{name}: {error}");
            }
        }
    }
}
