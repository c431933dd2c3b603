use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// How a transaction holds a row, and the image that it has made of it, if any: what became of the committed
/// row, and the row.
type Held = (LockMode, Option<(Departure, Option<u8>)>);

/// Locks and images by key and transaction.
#[derive(Default)]
struct Model {
    held: BTreeMap<u8, BTreeMap<TxnId, Held>>,
}

impl Model {
    fn held(&self, key: u8, who: TxnId) -> Option<Held> {
        self.held.get(&key)?.get(&who).copied()
    }

    fn set(&mut self, key: u8, who: TxnId, held: Option<Held>) {
        let holders = self.held.entry(key).or_default();
        match held {
            Some(held) => holders.insert(who, held),
            None => holders.remove(&who),
        };
        if holders.is_empty() {
            self.held.remove(&key);
        }
    }

    fn is_free(&self, key: u8, who: TxnId, mode: LockMode) -> bool {
        self.held.get(&key).is_none_or(|holders| {
            holders.iter().all(|(other, (held, _))| *other == who || !held.conflicts(mode))
        })
    }
}

/// How a change is taken back.
enum Undo {
    Locked,
    Strengthened(LockMode),
    FirstImage,
    Image(StoredImage),
}

/// A transaction, and what it has changed: the key, how it held that before, and how that comes back.
struct Transaction {
    writer: Arc<Writer>,
    changes: Vec<(u8, Option<Held>, Undo)>,
}

#[derive(Clone, Debug)]
enum Step {
    Lock(usize, u8, u8),
    Write(usize, u8, bool, Option<u8>, u8),
    TakeBack(usize, usize),
    End(usize),
    CutAndJoin(u8),
}

fn steps() -> impl Strategy<Value = Step> {
    let (who, key, mode) = (0usize..3, 0u8..24, 0u8..4);
    prop_oneof![
        3 => (who.clone(), key.clone(), mode).prop_map(|(who, key, mode)| Step::Lock(who, key, mode)),
        6 => (who.clone(), key.clone(), any::<bool>(), any::<Option<u8>>(), 0u8..4)
            .prop_map(|(who, key, whole, row, left)| Step::Write(who, key, whole, row, left)),
        2 => (who.clone(), 1usize..5).prop_map(|(who, changes)| Step::TakeBack(who, changes)),
        1 => who.prop_map(Step::End),
        1 => key.prop_map(Step::CutAndJoin),
    ]
}

const DEPARTURES: [Departure; 4] =
    [Departure::None, Departure::Deleted, Departure::Moved, Departure::MovedAway];

fn check(root: &Root, model: &Model, keys: std::ops::Range<u8>, transactions: &[Transaction]) {
    for key in keys.clone() {
        let mut holders: Vec<(TxnId, LockMode)> = root.holders(&[key]).into_iter().collect();
        holders.sort_unstable();
        let known = model.held.get(&key).into_iter().flatten();
        let known: Vec<(TxnId, LockMode)> = known.map(|(who, (mode, _))| (*who, *mode)).collect();
        assert_eq!(holders, known, "holders of {key}");
    }
    for who in transactions.iter().map(|transaction| transaction.writer.id) {
        let mut images = Vec::new();
        for key in keys.clone() {
            let held = model.held(key, who);
            assert_eq!(root.lock_of(&[key], who), held.map(|(mode, _)| mode));
            let image =
                root.image_of(&[key], who).map(|image| (image.departure, image.row.map(|row| row[0])));
            let known = held.and_then(|(_, image)| image);
            assert_eq!(image, known, "image of {key} by {who}");
            images.extend(known.map(|(_, row)| (key, row)));
        }
        let all = root.images_of(who, Bound::Unbounded, Bound::Unbounded).into_iter().flatten();
        let all: Vec<(u8, Option<u8>)> =
            all.map(|(key, image)| (key[0], image.row.map(|row| row[0]))).collect();
        assert_eq!(all, images);
    }
    let first = model.held.range(keys).next().map(|(key, _)| *key);
    assert_eq!(root.first_locked().map(|key| key[0]), first);
    assert_eq!(root.has_row_locks(), first.is_some());
    if root.images.is_empty() {
        assert!(root.writers.is_empty(), "nobody is listed where no image is");
    }
    assert!(root.locks.values().all(|lock| !lock.holders.is_empty()), "nobody waits here");
}

fn take_back(root: &mut Root, model: &mut Model, transaction: &mut Transaction) {
    let Some((key, before, undo)) = transaction.changes.pop() else { return };
    let who = transaction.writer.id;
    match undo {
        Undo::Locked => drop(root.let_go(&[key], who)),
        Undo::Strengthened(mode) => root.set_lock(&[key], who, mode),
        Undo::FirstImage => root.take_image_back(&[key], who),
        Undo::Image(image) => root.put_image_back(&[key], image),
    }
    model.set(key, who, before);
}

fn lock(root: &mut Root, model: &mut Model, transaction: &mut Transaction, key: u8, mode: LockMode) {
    let who = transaction.writer.id;
    if !model.is_free(key, who, mode) {
        return;
    }
    let known = model.held(key, who);
    let (before, is_enough) = root.hold(&[key], who, mode);
    assert_eq!(
        (before, is_enough),
        (known.map(|(mode, _)| mode), known.is_some_and(|known| known.0 >= mode))
    );
    if !is_enough {
        let undo = before.map_or(Undo::Locked, Undo::Strengthened);
        transaction.changes.push((key, known, undo));
        model.set(key, who, Some((mode, known.and_then(|(_, image)| image))));
    }
}

fn write(
    root: &mut Root,
    model: &mut Model,
    transaction: &mut Transaction,
    key: u8,
    (mode, departure, row): (LockMode, Departure, Option<u8>),
) {
    let who = transaction.writer.id;
    if !model.is_free(key, who, mode) {
        return;
    }
    let known = model.held(key, who);
    let bytes = row.map(|row| [row]);
    let row_bytes = bytes.as_ref().map(|row| &row[..]);
    let written = root.write_image(&[key], &transaction.writer, mode, row_bytes, departure);
    let mode = known.map_or(mode, |(before, _)| before.max(mode));
    assert_eq!((written.mode_before, written.mode), (known.map(|(mode, _)| mode), mode));
    let image = known.and_then(|(_, image)| image);
    let departure = image.map_or(departure, |(before, _)| before.max(departure));
    let undo = match (known, written.image_before) {
        (None, before) => {
            assert!(before.is_none());
            Undo::Locked
        }
        (Some((before, _)), replaced) => {
            if before != mode {
                transaction.changes.push((key, known, Undo::Strengthened(before)));
            }
            replaced.map_or(Undo::FirstImage, Undo::Image)
        }
    };
    // What an image replaces comes back under the lock of now.
    let before = known.map(|(_, image)| (mode, image));
    transaction.changes.push((key, before, undo));
    model.set(key, who, Some((mode, Some((departure, row)))));
}

proptest! {
    #[test]
    fn each_transaction_locks_a_row_once_and_gets_back_what_it_had(
        steps in proptest::collection::vec(steps(), 0..120),
    ) {
        let mut root = Root::new(TreeId(9), 1);
        let mut model = Model::default();
        let mut next = 0;
        let mut begin = || {
            next += 1;
            Transaction { writer: Arc::new(Writer::new(TxnId(next))), changes: Vec::new() }
        };
        let mut transactions = [begin(), begin(), begin()];
        for step in steps {
            match step {
                Step::Lock(who, key, mode) => {
                    lock(&mut root, &mut model, &mut transactions[who], key, LockMode::of_bits(mode));
                }
                Step::Write(who, key, whole, row, departure) => {
                    let mode = if whole { LockMode::Update } else { LockMode::NoKeyUpdate };
                    let image = (mode, DEPARTURES[usize::from(departure)], row);
                    write(&mut root, &mut model, &mut transactions[who], key, image);
                }
                Step::TakeBack(who, changes) => {
                    for _ in 0..changes {
                        take_back(&mut root, &mut model, &mut transactions[who]);
                        check(&root, &model, 0..24, &transactions);
                    }
                }
                Step::End(who) => {
                    let ended = std::mem::replace(&mut transactions[who], begin());
                    for key in 0..24 {
                        let let_go = root.let_go(&[key], ended.writer.id);
                        let held = model.held(key, ended.writer.id);
                        prop_assert_eq!(let_go.as_ref().map(|(mode, _)| *mode), held.map(|(mode, _)| mode));
                        model.set(key, ended.writer.id, None);
                        if let Some((_, let_go)) = let_go {
                            let is_kept = matches!(let_go, LetGo::Kept(_));
                            prop_assert_eq!(is_kept, model.held.contains_key(&key));
                        }
                    }
                    root.unlist(ended.writer.id);
                    ended.writer.abort();
                }
                Step::CutAndJoin(key) => {
                    let right = root.split_off(&[key]);
                    check(&root, &model, 0..key, &transactions);
                    check(&right, &model, key..24, &transactions);
                    root.append(right);
                }
            }
            check(&root, &model, 0..24, &transactions);
            prop_assert!(root.writers.len() <= transactions.len(), "who has ended is pruned");
        }
    }
}

/// A copy of the list stays where its writer has nothing to end.
#[test]
fn writers_that_ended_elsewhere_are_pruned_when_the_next_one_comes() {
    let mut root = Root::new(TreeId(9), 1);
    let writers: Vec<Arc<Writer>> = (0..3).map(|id| Arc::new(Writer::new(TxnId(id)))).collect();
    let write = |root: &mut Root, key: u8, writer: &Arc<Writer>| {
        root.write_image(&[key], writer, LockMode::Update, None, Departure::Deleted);
    };
    write(&mut root, 1, &writers[0]);
    write(&mut root, 8, &writers[1]);
    let mut right = root.split_off(&[5]);
    assert_eq!((root.writers.len(), right.writers.len()), (2, 2));
    drop(root.let_go(&[1], TxnId(0)));
    root.unlist(TxnId(0));
    writers[0].abort();
    writers[0].end();
    assert!(root.writers.is_empty() && right.writers.len() == 2);
    write(&mut right, 9, &writers[2]);
    let listed: Vec<TxnId> = right.writers.iter().map(|(id, _)| *id).collect();
    assert_eq!(listed, [TxnId(1), TxnId(2)]);
    root.append(right);
    assert!(root.image_of(&[8], TxnId(1)).is_some() && root.image_of(&[9], TxnId(2)).is_some());
    assert!(root.image_of(&[9], TxnId(1)).is_none());
}

#[test]
fn images_of_writers_that_have_ended_are_told_apart() {
    let mut root = Root::new(TreeId(9), 1);
    let [committed, aborted, running] = [0, 1, 2].map(|id| Arc::new(Writer::new(TxnId(id))));
    for key in 0..9 {
        let writer = [&committed, &aborted, &running][usize::from(key) % 3];
        root.write_image(&[key], writer, LockMode::Update, Some(b"row"), Departure::None);
    }
    let any: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
    let keys = |root: &mut Root, range: (Bound<&[u8]>, Bound<&[u8]>), ascending, most| {
        let mut keys = Vec::new();
        let upto = root.unsettled_keys(range, ascending, most, &mut keys);
        (keys.iter().map(|key| key[0]).collect::<Vec<u8>>(), upto.map(|key| key[0]))
    };
    // An aborted one needs no mark: it locks nothing, and readers pass beneath as before.
    assert!(aborted.abort());
    assert!(root.ended_at(&[1]).is_some_and(|ended| ended.committed.is_none()) && !root.has_unsettled());
    assert!(root.holders(&[1]).is_empty() && !root.holders(&[0]).is_empty());
    assert!(committed.decide());
    committed.commit(Epoch(5));
    root.mark_unsettled();
    assert!(root.ended_at(&[0]).is_some_and(|ended| ended.committed == Some(Epoch(5))));
    assert!(root.ended_at(&[2]).is_none() && root.holders(&[0]).is_empty());
    assert_eq!(keys(&mut root, any, true, 100), (vec![0, 3, 6], None));
    // As many images are looked at as is said, whosever they are.
    assert_eq!(keys(&mut root, any, true, 5), (vec![0, 3], Some(4)));
    assert_eq!(keys(&mut root, any, false, 5), (vec![6], Some(4)));
    let behind = (Bound::Excluded(&[3][..]), Bound::Included(&[6][..]));
    assert_eq!(keys(&mut root, behind, true, 100), (vec![6], None));
    for (snapshot, changed) in [(4, true), (5, false)] {
        assert_eq!(root.changed_since(&[3], Epoch(snapshot)), changed);
        assert_eq!(root.range_changed_since(any.0, any.1, Epoch(snapshot)), changed);
    }
    assert!(
        !root.changed_since(&[2], Epoch(0))
            && !root.range_changed_since(behind.0, Bound::Excluded(&[6]), Epoch(0))
    );
    // Both parts of a split know, and forget with the last one.
    let mut right = root.split_off(&[5]);
    assert!(root.has_unsettled() && right.has_unsettled());
    drop(right.let_go(&[6], TxnId(0)));
    assert_eq!(keys(&mut right, any, true, 100), (vec![], None));
    committed.end();
    assert_eq!(keys(&mut right, any, true, 100), (vec![], None));
    assert!(!right.has_unsettled() && root.has_unsettled());
    root.append(right);
    assert_eq!(keys(&mut root, any, true, 100), (vec![], None));
    assert!(!root.has_unsettled());
}
