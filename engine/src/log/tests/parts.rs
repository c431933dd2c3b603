//! Transactions with parts: written, recovered, cut by a checkpoint, dropped.

use super::*;

/// A store of some batches, each of an epoch and a transaction of its number that puts three rows: one in each of
/// two parts, and one in the batch.
pub(in crate::log) fn store_with_parts(batches: u64) -> MemoryStore {
    let store = MemoryStore::new();
    let recovered = recover(&store, 1, &|_| {}).expect("recovers");
    let log = Log::new(LogLimits::default(), &recovered);
    let mut writer = LogWriter::new(Arc::clone(&log), Arc::new(store.clone()), &recovered, Box::new(|_| {}));
    let buffer = log.new_buffer();
    for number in 1..=batches {
        let row = |at: u8| {
            let mut records = Vec::new();
            redo::put(&mut records, TABLES[0], &[number as u8, at], b"row");
            records
        };
        let mut framer = Framer::new(TxnId(number));
        (0..2).for_each(|at| buffer.append_part(framer.frame(&row(at))));
        buffer.append_with_parts(Epoch(number), number, &framer.parts(), &row(2));
        writer.step(Epoch(number)).expect("written");
    }
    store
}

fn start(store: &MemoryStore) -> Server {
    Server::start(store.clone(), recover(store, 2, &|_| {}).expect("recovers"))
}

fn ids(store: &MemoryStore) -> Vec<u64> {
    store.part_ids().expect("readable").into_iter().map(|id| id.0).collect()
}

/// The same keys in the log before, in the parts, in the rest of the transaction, and behind.
#[test]
fn records_of_parts_come_in_the_order_of_their_transactions() {
    let store = MemoryStore::new();
    let mut server = start(&store);
    server.commit(
        0,
        0,
        0,
        &[Write::Put(0, vec![1; 9]), Write::Put(1, vec![1; 9]), Write::Put(2, vec![1; 9])],
    );
    server.group().expect("no faults");
    let long = [
        Write::Patch(0, 1, 2),
        Write::Delete(1),
        Write::Put(1, vec![3; 9]),
        Write::Patch(1, 2, 4),
        Write::Put(3, vec![5; 9]),
        Write::Patch(0, 2, 6),
        Write::Meta(1, 200),
        Write::Delete(2),
        Write::Patch(3, 3, 7),
    ];
    server.part_bytes = 20;
    server.transaction = TxnId(7);
    server.commit(0, 0, 0, &long);
    server.part_bytes = usize::MAX;
    server.commit(0, 0, 0, &[Write::Patch(1, 5, 8), Write::Put(2, vec![9; 9]), Write::Meta(1, 201)]);
    server.group().expect("no faults");
    server.commit(0, 0, 0, &[Write::Patch(0, 3, 9)]);
    server.group().expect("no faults");
    let expected = server.state();
    let crashed = store.crash(Survivors::Synced);
    for threads in [1, 3] {
        let recovered = recover(&crashed, threads, &|_| {}).expect("recovers");
        assert_eq!(rows_of(&recovered), expected);
        assert_eq!((recovered.transaction_max, recovered.log_records), (TxnId(8), 16));
        assert_eq!(recovered.cost.log_bytes, server.log.counters().bytes_since_checkpoint);
    }
    assert_eq!(ids(&crashed), [8]);
    server.checkpoint();
    assert_eq!((store.batches(), ids(&store)), (vec![], vec![]), "the parts went with the log");
    assert_eq!(server.log.counters().bytes_since_checkpoint, 0);
    let recovered = recover(&store.crash(Survivors::Synced), 1, &|_| {}).expect("recovers");
    assert_eq!((rows_of(&recovered), recovered.transaction_max), (expected, TxnId(8)));
}

/// Wherever it is cut short: the parts alone are nobody's, and with its batch it is whole.
#[test]
fn a_crash_leaves_all_of_a_transaction_with_parts_or_nothing() {
    let store = MemoryStore::new();
    let mut server = start(&store);
    server.commit(0, 0, 0, &[Write::Put(0, vec![1; 9])]);
    server.group().expect("no faults");
    let before = server.state();
    let writes = (0..7).map(|key| Write::Put(key, vec![2; 9])).collect::<Vec<_>>();
    (server.part_bytes, server.transaction) = (20, TxnId(4));
    server.commit(0, 0, 0, &writes);
    store.set_faults(Faults { sync_fails: true, ..Faults::default() });
    assert!(server.group().is_err());
    let after = server.state();
    assert_eq!(store.unsynced_writes(), 4);
    for count in 0..=4 {
        for survivors in [Survivors::First(count), Survivors::Torn(count, 100)] {
            let store = store.crash(survivors);
            let whole = count == 4;
            let recovered = recover(&store, 1, &|_| {}).expect("recovers");
            assert_eq!(&rows_of(&recovered), if whole { &after } else { &before }, "{survivors:?}");
            assert_eq!(ids(&store), if whole { vec![5] } else { vec![] }, "{survivors:?}");
            let parts = count > 0 || matches!(survivors, Survivors::Torn(..));
            assert_eq!(recovered.transaction_max, TxnId(if parts { 5 } else { 0 }), "{survivors:?}");
        }
    }
}

/// What becomes of a store's parts.
type Damage = fn(&MemoryStore);

#[test]
fn a_start_is_refused_where_a_part_is_missing_or_damaged_and_leaves_all_as_it_is() {
    let cases: [(Damage, &str); 3] = [
        (|store| store.lose_part(TxnId(2), 0), "part 0 of a transaction is missing"),
        (|store| store.damage_part(TxnId(2), 1, 9), "part 1 of a transaction is damaged"),
        (|store| store.lose_part(TxnId(2), 1), "part 1 of a transaction is missing"),
    ];
    for (damage, told) in cases {
        let store = store_with_parts(3);
        store.append_part(TxnId(9), 0, b"nobody's").expect("written");
        damage(&store);
        let error = recover(&store, 2, &|_| {}).err().expect("refused");
        assert!(matches!(&error, StoreError::Damaged(what) if what.contains(told)), "{error}");
        assert!(error.to_string().contains("transaction 2 of epoch 2 has 2 parts"), "{error}");
        assert!(ids(&store).contains(&9), "nothing goes before all is known to be good");
    }
}

#[test]
fn parts_of_a_transaction_that_does_not_commit_go_written_or_not() {
    let store = MemoryStore::new();
    let mut server = start(&store);
    let buffer = Arc::clone(&server.buffers[0].0);
    let part = |id: u64, times: usize| {
        let mut framer = Framer::new(TxnId(id));
        (0..times).for_each(|_| buffer.append_part(framer.frame(b"records")));
    };
    part(1, 2);
    server.group().expect("no faults");
    assert_eq!((ids(&store), server.log.durable()), (vec![1], Epoch(1)));
    buffer.drop_parts(TxnId(1));
    part(2, 2);
    buffer.drop_parts(TxnId(2));
    part(3, 1);
    server.group().expect("no faults");
    assert_eq!((ids(&store), buffer.pending_bytes()), (vec![3], 0));

    // On a full disk they wait, are refused to others, and go when it is said so.
    part(4, 3);
    store.set_faults(Faults { full: true, ..Faults::default() });
    assert!(matches!(server.group(), Err(StoreError::Full(_))));
    assert!(buffer.pending_bytes() > 0);
    assert_eq!(server.log.admits(&buffer), Err(LogRefusal::DiskFull));
    assert_eq!(server.log.admits_parts(1 << 20), Err(LogRefusal::DiskFull));
    buffer.drop_parts(TxnId(4));
    buffer.drop_parts(TxnId(3));
    server.group().expect("nothing is left to write");
    assert_eq!((ids(&store), buffer.pending_bytes()), (vec![], 0));
    assert_eq!(server.log.admits(&buffer), Ok(()), "nothing needs room");
}

/// They may have taken the room that the others wait for.
#[test]
fn parts_of_a_transaction_that_does_not_commit_go_before_a_batch_that_has_no_room() {
    let store = MemoryStore::new();
    let mut server = start(&store);
    let buffer = Arc::clone(&server.buffers[0].0);
    buffer.append_part(Framer::new(TxnId(1)).frame(b"records"));
    server.group().expect("no faults");
    server.commit(0, 0, 0, &[Write::Put(0, vec![1; 9])]);
    store.set_faults(Faults { full: true, ..Faults::default() });
    assert!(matches!(server.group(), Err(StoreError::Full(_))), "its batch is kept");
    buffer.drop_parts(TxnId(1));
    assert!(matches!(server.group(), Err(StoreError::Full(_))));
    assert!(ids(&store).is_empty());
    store.set_faults(Faults::default());
    server.group().expect("there is room");
    assert_eq!(store.batches().len(), 1);
}

/// Until the mark is written they are needed, and when they could not go they go with the next checkpoint.
#[test]
fn a_checkpoint_that_could_not_drop_parts_does_it_later() {
    let store = store_with_parts(2);
    let mut server = start(&store);
    assert!(server.log.counters().bytes_since_checkpoint > 0);
    server.act(&Action::CheckpointBegin);
    server.slices();
    store.set_faults(Faults { sync_fails: true, ..Faults::default() });
    assert!(server.checkpointer.finish().is_err());
    assert_eq!(ids(&store), [1, 2]);
    let recovered = recover(&store.crash(Survivors::All), 1, &|_| {}).expect("recovers");
    assert_eq!(recovered.trees[&TABLES[0]].len(), 6);
    store.set_faults(Faults::default());
    server.checkpoint();
    assert_eq!((ids(&store), server.log.counters().bytes_since_checkpoint), (vec![], 0));
}
