//! Parts of large transactions in the log's database.

use super::*;

fn append(store: &RocksLogStore, id: u64, parts: std::ops::Range<u32>, length: usize) {
    for part in parts {
        store.append_part(TxnId(id), part, &vec![part as u8; length]).expect("there is space");
    }
}

fn read(store: &RocksLogStore, id: u64, from: u32) -> Vec<(u32, usize)> {
    let mut found = Vec::new();
    let mut visit = |part: u32, value: &[u8]| {
        assert!(value.iter().all(|byte| *byte == part as u8));
        found.push((part, value.len()));
        ControlFlow::Continue(())
    };
    store.read_parts(TxnId(id), from, &mut visit).expect("readable");
    found
}

fn ids(store: &RocksLogStore) -> Vec<u64> {
    store.part_ids().expect("readable").into_iter().map(|id| id.0).collect()
}

#[test]
fn parts_survive_a_reopening_and_go_by_transaction() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    append(&store, 1, 0..3, 100);
    append(&store, 256, 0..300, 10);
    append(&store, 2, 0..1, 50);
    append(&store, 1, 3..4, 60);
    // Again, as after a full disk.
    append(&store, 1, 1..2, 70);
    fill(&store, 1..2);
    drop(store);
    let store = RocksLogStore::open_read_only(folder.path(), options()).expect("readable");
    store.drop_parts(&[TxnId(1)]).expect("nothing happens");
    assert_eq!(read(&store, 1, 0), [(0, 100), (1, 70), (2, 100), (3, 60)]);
    drop(store);
    let store = RocksLogStore::open(folder.path(), options()).expect("opens again");
    assert_eq!(ids(&store), [1, 2, 256]);
    assert_eq!(read(&store, 1, 2), [(2, 100), (3, 60)]);
    assert_eq!(read(&store, 256, 298), [(298, 10), (299, 10)]);
    assert!(read(&store, 3, 0).is_empty());
    store.drop_parts(&[TxnId(1)]).expect("dropped");
    store.drop_parts(&[TxnId(7)]).expect("there is none");
    assert_eq!((ids(&store), read(&store, 1, 0)), (vec![2, 256], vec![]));
    store.sync().expect("synced");
    drop(store);
    let store = RocksLogStore::open(folder.path(), options()).expect("opens again");
    assert_eq!((ids(&store), rows(&store)), (vec![2, 256], 1), "a recovery drops what no commit names");
    assert!(ids(&store).is_empty());
}

/// As long as a row can be, beside the key of another transaction that begins as one of its pieces does.
#[test]
fn a_long_part_is_kept_in_pieces() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = RocksOptions { log_value_bytes_max: 1_000, ..options() };
    let store = RocksLogStore::open(folder.path(), options).expect("a new directory");
    append(&store, 1, 0..1, 10);
    append(&store, 1, 1..3, 2_500);
    append(&store, 1, 3..4, 1_000);
    append(&store, 2, 0..1, 1_001);
    assert_eq!(read(&store, 1, 0), [(0, 10), (1, 2_500), (2, 2_500), (3, 1_000)]);
    assert_eq!(read(&store, 1, 2), [(2, 2_500), (3, 1_000)]);
    assert_eq!(ids(&store), [1, 2]);
    store.drop_parts(&[TxnId(1)]).expect("dropped");
    assert_eq!((ids(&store), read(&store, 2, 0)), (vec![2], vec![(0, 1_001)]));
}

/// What a transaction that was given up has written is free at once, and nothing was written twice for it.
#[test]
fn the_files_of_dropped_parts_go() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    let bytes = || -> usize {
        let opened = store.opened().expect("open");
        let files = opened.log().0.live_files().expect("listed");
        files.iter().filter(|file| file.column_family_name == PARTS).map(|file| file.size).sum()
    };
    let flush = || {
        let opened = store.opened().expect("open");
        let (db, family) = opened.parts().expect("it has one");
        db.flush_cf(family).expect("flushed");
    };
    append(&store, 1, 0..2, 1 << 20);
    flush();
    for round in 0..6 {
        append(&store, 2, round * 4..(round + 1) * 4, 1 << 20);
        flush();
    }
    append(&store, 3, 0..2, 1 << 20);
    flush();
    let began = std::time::Instant::now();
    store.drop_parts(&[TxnId(2)]).expect("dropped");
    while bytes() > 8 << 20 && began.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        store.drop_parts(&[TxnId(2)]).expect("dropped");
    }
    assert!(bytes() <= 8 << 20, "{} bytes are left", bytes());
    assert_eq!(ids(&store), [1, 3]);
    assert_eq!((read(&store, 1, 0).len(), read(&store, 3, 0).len()), (2, 2));
}

/// The files of many that are shorter than a file go as well, and none that has a part of another.
#[test]
fn the_files_of_many_short_transactions_go() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    let bytes = || -> usize {
        let opened = store.opened().expect("open");
        let files = opened.log().0.live_files().expect("listed");
        files.iter().filter(|file| file.column_family_name == PARTS).map(|file| file.size).sum()
    };
    for id in 1..=40 {
        append(&store, id, 0..1, 1 << 20);
        if id % 5 == 0 {
            let opened = store.opened().expect("open");
            let (db, family) = opened.parts().expect("it has one");
            db.flush_cf(family).expect("flushed");
        }
    }
    let dropped: Vec<TxnId> = (1..=40).filter(|id| *id != 17).map(TxnId).collect();
    let began = std::time::Instant::now();
    store.drop_parts(&dropped).expect("dropped");
    // Those in the first level are not moved to the second one yet.
    while bytes() > 16 << 20 && began.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        store.drop_parts(&dropped).expect("dropped");
    }
    assert!(bytes() <= 16 << 20, "{} bytes are left", bytes());
    assert_eq!((ids(&store), read(&store, 17, 0).len()), (vec![17], 1));
}

#[test]
fn a_copy_has_the_parts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(&folder.path().join("data"), options()).expect("a new directory");
    append(&store, 5, 0..3, 1 << 20);
    let copy = folder.path().join("copy");
    store.copy_to(&copy).expect("copied");
    store.drop_parts(&[TxnId(5)]).expect("dropped");
    let copy = RocksLogStore::open(&copy, options()).expect("opens");
    assert_eq!(read(&copy, 5, 0).len(), 3);
}

#[test]
fn an_older_directory_gets_its_family_of_parts_and_a_look_leaves_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksLogStore::open(folder.path(), options()).expect("a new directory");
    fill(&store, 1..5);
    // As the version before has left it.
    let mut life = store.life.write();
    life.databases.as_mut().expect("open").log.drop_cf(PARTS).expect("dropped");
    drop(life);
    drop(store);
    let format = || fs::read_to_string(folder.path().join("FORMAT")).expect("readable");
    fs::write(folder.path().join("FORMAT"), "5\n").expect("written");
    let families = || DB::list_cf(&Options::default(), folder.path().join("redo")).expect("listed");
    let store = RocksLogStore::open_read_only(folder.path(), options()).expect("readable");
    assert_eq!((ids(&store), read(&store, 1, 0), rows(&store)), (vec![], vec![], 4));
    drop(store);
    assert_eq!((format().as_str(), families().contains(&PARTS.to_owned())), ("5\n", false));
    // Once more, as if the first start had been cut short behind the mark.
    for _ in 0..2 {
        let store = RocksLogStore::open(folder.path(), options()).expect("brought up to date");
        assert_eq!((format(), rows(&store)), (this_format(), 4));
        append(&store, 1, 0..2, 10);
        drop(store);
        assert!(families().contains(&PARTS.to_owned()));
        let store = RocksLogStore::open(folder.path(), options()).expect("opens again");
        assert_eq!(read(&store, 1, 0).len(), 2);
        let mut life = store.life.write();
        life.databases.as_mut().expect("open").log.drop_cf(PARTS).expect("dropped");
    }
}
