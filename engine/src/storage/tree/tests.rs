//! The tree against `BTreeMap`, after any sequence of changes, cuts and joins.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use proptest::prelude::*;

use super::node::{Inner, Node};
use super::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

impl<P: Pointer> Tree<P> {
    /// Checks what must hold of the structure.
    fn check(&self) {
        let count = self.root.as_ref().map_or(0, |root| check_node(root, self.height, None, None, true));
        assert_eq!(count, self.len, "len");
    }
}

fn check_node<P: Pointer>(
    node: &Node<P>,
    height: u32,
    low: Option<&[u8]>,
    high: Option<&[u8]>,
    root: bool,
) -> u64 {
    match node {
        Node::Leaf(leaf) => {
            assert_eq!(height, 0, "all leaves at one depth");
            assert!(root || leaf.len() > 0, "no empty leaf below a root");
            let keys: Vec<&[u8]> = (0..leaf.len()).map(|index| leaf.slots.key(index)).collect();
            check_keys(&keys, low, high);
            leaf.len() as u64
        }
        Node::Inner(inner) => {
            let inner: &Inner<P> = inner;
            assert!(inner.len() >= 2, "inner nodes have at least two children");
            let keys: Vec<&[u8]> = (0..inner.len() - 1).map(|index| inner.separators.key(index)).collect();
            check_keys(&keys, low, high);
            for index in 0..inner.len() {
                let low = if index == 0 { low } else { Some(keys[index - 1]) };
                let high = if index + 1 == inner.len() { high } else { Some(keys[index]) };
                let count = check_node(inner.child(index), height - 1, low, high, false);
                assert_eq!(count, inner.counts[index], "counts");
            }
            inner.total()
        }
    }
}

fn check_keys(keys: &[&[u8]], low: Option<&[u8]>, high: Option<&[u8]>) {
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "sorted");
    assert!(keys.iter().all(|&key| low.is_none_or(|low| low <= key)), "above the separator");
    assert!(keys.iter().all(|&key| high.is_none_or(|high| key < high)), "below the separator");
}

fn row(bytes: &[u8]) -> Row {
    bytes.into()
}

fn compare<P: Pointer>(tree: &Tree<P>, model: &Model, probes: &[Vec<u8>]) {
    tree.check();
    assert_eq!(tree.len(), model.len() as u64);
    let mut seen = Vec::new();
    tree.scan(Bound::Unbounded, Bound::Unbounded, |key, row| {
        seen.push((key.to_vec(), row.to_vec()));
        ControlFlow::Continue(())
    });
    assert!(seen.iter().map(|(k, v)| (k, v)).eq(model.iter()), "scan");
    assert!(tree.cursor(Bound::Unbounded).map(|(k, _)| k).eq(model.keys().map(Vec::as_slice)), "cursor");
    for (index, key) in probes.iter().enumerate() {
        assert_eq!(tree.get(key).map(|row| row.to_vec()), model.get(key).cloned(), "get {key:?}");
        assert_eq!(tree.rank(key), model.range(..key.clone()).count() as u64, "rank");
        assert_eq!(
            tree.seek(Bound::Included(key)).map(|(k, _)| k),
            model.range(key.clone()..).next().map(|(k, _)| k.as_slice())
        );
        assert_eq!(
            tree.seek_back(Bound::Excluded(key)).map(|(k, _)| k),
            model.range(..key.clone()).next_back().map(|(k, _)| k.as_slice())
        );
        let other = &probes[(index * 7 + 3) % probes.len()];
        if key > other {
            continue;
        }
        let range = (Bound::Excluded(key.clone()), Bound::Included(other.clone()));
        let expected: Vec<&Vec<u8>> =
            if key == other { vec![] } else { model.range(range).map(|(k, _)| k).collect() };
        let mut forward = Vec::new();
        tree.scan(Bound::Excluded(key), Bound::Included(other), |key, _| {
            forward.push(key.to_vec());
            ControlFlow::Continue(())
        });
        assert!(forward.iter().eq(expected.iter().copied()), "range");
        let mut backward = Vec::new();
        tree.scan_back(Bound::Excluded(key), Bound::Included(other), |key, _| {
            backward.push(key.to_vec());
            ControlFlow::Continue(())
        });
        backward.reverse();
        assert_eq!(forward, backward, "range, backwards");
        let range = || tree.range(Bound::Excluded(key), Bound::Included(other)).map(|(k, _)| k);
        assert!(range().eq(forward.iter().map(Vec::as_slice)), "range, by cursor");
        assert!(range().rev().eq(forward.iter().rev().map(Vec::as_slice)), "range, by cursor from its end");
        let mut both = range();
        let ends = (both.next(), both.next_back());
        let last = (forward.len() > 1).then(|| forward.last()).flatten();
        assert_eq!(
            ends,
            (forward.first().map(Vec::as_slice), last.map(Vec::as_slice)),
            "range, from both ends"
        );
        assert_eq!(both.count(), forward.len().saturating_sub(2));
    }
    assert!(
        tree.range(Bound::Unbounded, Bound::Unbounded)
            .rev()
            .map(|(k, _)| k)
            .eq(model.keys().rev().map(Vec::as_slice))
    );
    for n in [0, model.len() / 2, model.len().saturating_sub(1), model.len()] {
        assert_eq!(tree.nth(n as u64).map(|(k, _)| k), model.keys().nth(n).map(Vec::as_slice), "nth");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, u8),
    InsertRun(Vec<u8>, u16),
    InsertRunDown(Vec<u8>, u16),
    Update(Vec<u8>, Vec<u8>),
    /// Fetch these ahead, and ask for some of them: from one of them on, or every other one.
    Fetch(Vec<Vec<u8>>, usize),
    Remove(Vec<u8>),
    RemoveRange(Vec<u8>, Vec<u8>),
    /// Cut here, and join again later or at once.
    Cut(Vec<u8>),
    Join(usize),
}

/// Keys of several shapes: short, sharing long prefixes, longer than fits a node.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let tail = prop_oneof![
        4 => proptest::collection::vec(0u8..4, 0..5),
        4 => any::<u16>().prop_map(|n| (n % 2000).to_be_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
    ];
    (0usize..4, tail).prop_map(|(prefix, tail)| {
        let mut key =
            [&b""[..], b"\0\0\0\x07", b"warehouse-district-", b"a-prefix-that-is-longer-than-any-node-keeps"]
                [prefix]
                .to_vec();
        key.extend(tail);
        key
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
        4 => (key(), 1u16..400).prop_map(|(key, n)| Step::InsertRun(key, n)),
        2 => (key(), 1u16..400).prop_map(|(key, n)| Step::InsertRunDown(key, n)),
        5 => (key(), proptest::collection::vec(any::<u8>(), 0..30)).prop_map(|(key, value)| Step::Update(key, value)),
        5 => (proptest::collection::vec(key(), 0..AHEAD_MAX), 0usize..4).prop_map(|(keys, n)| Step::Fetch(keys, n)),
        10 => key().prop_map(Step::Remove),
        2 => (key(), key()).prop_map(|(a, b)| Step::RemoveRange(a, b)),
        4 => key().prop_map(Step::Cut),
        4 => any::<usize>().prop_map(Step::Join),
    ]
}

fn play<P: Pointer>(steps: Vec<Step>, mut after: impl FnMut(&Tree<P>, &Model)) {
    // Neighbouring trees and their models, ascending; `bounds[i]` is where tree i + 1 starts.
    let mut parts: Vec<(Tree<P>, Model)> = vec![(Tree::new(), Model::new())];
    let mut bounds: Vec<Vec<u8>> = Vec::new();
    let mut probes: Vec<Vec<u8>> = vec![vec![]];
    // One for all trees: a finger is a guess, and may have been pointed at another tree.
    let mut finger = Finger::default();
    let stamp = 1;
    for step in steps {
        for (tree, _) in &parts {
            tree.check();
        }
        let at = |bounds: &[Vec<u8>], key: &Vec<u8>| bounds.partition_point(|bound| bound <= key);
        match step {
            Step::Insert(key, value) => {
                probes.push(key.clone());
                let (tree, model) = &mut parts[at(&bounds, &key)];
                let old = tree.insert(&key, row(&[value]), stamp).map(|row| row.to_vec());
                assert_eq!(old, model.insert(key, vec![value]));
            }
            Step::InsertRun(prefix, count) | Step::InsertRunDown(prefix, count) if count == 0 => drop(prefix),
            Step::InsertRun(prefix, count) => {
                for n in 0..count {
                    let key = [&prefix[..], &n.to_be_bytes()].concat();
                    let (tree, model) = &mut parts[at(&bounds, &key)];
                    let fresh = tree.insert_new_with(&key, row(b"run"), stamp, &mut finger).is_ok();
                    assert_eq!(fresh, !model.contains_key(&key));
                    model.entry(key).or_insert_with(|| b"run".to_vec());
                }
            }
            Step::InsertRunDown(prefix, count) => {
                for n in (0..count).rev() {
                    let key = [&prefix[..], &n.to_be_bytes()].concat();
                    let (tree, model) = &mut parts[at(&bounds, &key)];
                    tree.insert(&key, row(b"down"), stamp);
                    model.insert(key, b"down".to_vec());
                }
            }
            Step::Update(key, value) => {
                let (tree, model) = &mut parts[at(&bounds, &key)];
                let change = |row: &mut Row| *row = value.clone().into();
                let found = match value.len() % 3 {
                    0 => tree.update(&key, stamp, change).is_some(),
                    1 => tree.update_with(&key, stamp, &mut finger, change).is_some(),
                    _ => {
                        let seen = tree.lookup_with(&key, &mut finger).row.map(|row| row.to_vec());
                        assert_eq!(seen.as_ref(), model.get(&key));
                        tree.update_with(&key, stamp, &mut finger, change).is_some()
                    }
                };
                assert_eq!(found, model.contains_key(&key));
                if found {
                    model.insert(key, value);
                }
            }
            Step::Fetch(keys, n) => {
                let part = |key: &Vec<u8>| &parts[at(&bounds, key)];
                for (place, (tree, model)) in parts.iter().enumerate() {
                    let own: Vec<(usize, &[u8])> = keys
                        .iter()
                        .enumerate()
                        .filter(|(_, key)| at(&bounds, key) == place)
                        .map(|(number, key)| (number, &key[..]))
                        .collect();
                    let mut seen = Vec::new();
                    tree.lookup_each(&own, &mut |number, row| seen.push((number, row.map(<[u8]>::to_vec))));
                    let expected: Vec<_> =
                        own.iter().map(|(number, key)| (*number, model.get(*key).cloned())).collect();
                    assert_eq!(seen, expected, "looked up together");
                }
                fetch_rows_noted(keys.iter().map(|key| (&part(key).0, &key[..])), &mut finger.ahead);
                // Those that are left over lead later lookups astray.
                for (place, key) in keys.iter().enumerate().skip(n).step_by(1 + n % 2) {
                    let (tree, model) = part(key);
                    let seen = match place % 3 {
                        0 => tree.get_by(key, finger.ahead.take()),
                        _ => tree.lookup_with(key, &mut finger).row,
                    };
                    assert_eq!(seen.map(|row| row.to_vec()), model.get(key).cloned(), "fetched {key:?}");
                }
            }
            Step::Remove(key) => {
                let (tree, model) = &mut parts[at(&bounds, &key)];
                assert_eq!(tree.remove(&key, stamp).map(|row| row.to_vec()), model.remove(&key));
            }
            Step::RemoveRange(a, b) => {
                let (low, high) = if a < b { (a, b) } else { (b, a) };
                for (tree, model) in &mut parts {
                    let keys: Vec<Vec<u8>> =
                        model.range(low.clone()..high.clone()).map(|(k, _)| k.clone()).collect();
                    for key in keys {
                        assert!(tree.remove(&key, stamp).is_some());
                        model.remove(&key);
                    }
                }
            }
            Step::Cut(key) => {
                let index = at(&bounds, &key);
                let (tree, model) = &mut parts[index];
                let right = (tree.split_off(&key), model.split_off(&key));
                parts.insert(index + 1, right);
                bounds.insert(index, key);
            }
            Step::Join(n) => {
                if !bounds.is_empty() {
                    let index = n % bounds.len();
                    bounds.remove(index);
                    let (right, mut right_model) = parts.remove(index + 1);
                    let (tree, model) = &mut parts[index];
                    tree.append(right);
                    model.append(&mut right_model);
                }
            }
        }
    }
    for (tree, model) in &parts {
        compare(tree, model, &probes);
        after(tree, model);
    }
    let mut joined = Tree::<P>::new();
    let mut joined_model = Model::new();
    for (tree, mut model) in parts {
        joined.append(tree);
        joined_model.append(&mut model);
    }
    compare(&joined, &joined_model, &probes);
    let keys: Vec<Vec<u8>> = joined_model.keys().cloned().collect();
    for key in keys {
        assert!(joined.remove(&key, stamp).is_some());
    }
    joined.check();
    assert_eq!(joined.len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_a_map(steps in proptest::collection::vec(step(), 1..120)) {
        play::<Exclusive>(steps, |_, _| {});
    }

    #[test]
    fn behaves_as_a_map_with_shared_nodes(steps in proptest::collection::vec(step(), 1..60)) {
        play::<Shared>(steps, |_, _| {});
    }

    #[test]
    fn a_tree_built_in_order_is_as_good_as_any(
        entries in proptest::collection::btree_map(key(), any::<u8>(), 0..300),
        runs in proptest::collection::vec((key(), 1u16..700), 0..4),
        steps in proptest::collection::vec((key(), any::<bool>()), 0..100),
        cut in key(),
    ) {
        let mut model: Model = entries.into_iter().map(|(key, value)| (key, vec![value])).collect();
        for (prefix, count) in runs {
            model.extend((0..count).map(|n| ([&prefix[..], &n.to_be_bytes()].concat(), b"run".to_vec())));
        }
        let mut builder = Builder::<Exclusive>::new();
        let mut last: Option<&[u8]> = None;
        for (key, value) in &model {
            prop_assert!(builder.push(key, row(value), 1).is_ok());
            // A key that does not ascend is refused, and leaves no trace.
            prop_assert!(builder.push(key, row(b"again"), 9).is_err());
            if let Some(last) = last {
                prop_assert!(builder.push(last, row(b"again"), 9).is_err());
            }
            last = Some(key);
        }
        let mut tree = builder.finish();
        let probes: Vec<Vec<u8>> = steps.iter().map(|(key, _)| key.clone()).chain([cut.clone()]).collect();
        compare(&tree, &model, &probes);
        for (key, insert) in steps {
            if insert {
                tree.insert(&key, row(b"new"), 2);
                model.insert(key, b"new".to_vec());
            } else {
                prop_assert_eq!(tree.remove(&key, 2).is_some(), model.remove(&key).is_some());
            }
        }
        compare(&tree, &model, &probes);
        let right = tree.split_off(&cut);
        compare(&right, &model.split_off(&cut), &probes);
        compare(&tree, &model, &probes);
    }

    #[test]
    fn published_versions_never_change(
        before in proptest::collection::vec((key(), any::<u8>()), 1..300),
        then in proptest::collection::vec((key(), any::<bool>()), 1..300),
    ) {
        let mut tree = Tree::<Shared>::new();
        let mut model = Model::new();
        for (key, value) in before {
            tree.insert(&key, row(&[value]), 1);
            model.insert(key, vec![value]);
        }
        let version = tree.clone();
        for (key, insert) in then {
            if insert {
                tree.insert(&key, row(b"new"), 2);
            } else {
                tree.remove(&key, 2);
            }
        }
        compare(&version, &model, &[vec![]]);
        tree.check();
    }
}

fn number(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

#[test]
fn leaf_stamps_bound_the_newest_write_of_any_key_through_changes_cuts_and_joins() {
    let mut tree: Tree = Tree::new();
    let mut newest = BTreeMap::new();
    for n in 0..5_000u64 {
        let key = number(n * 7919 % 5_000);
        tree.insert(&key, row(b"x"), n);
        newest.insert(key, n);
    }
    for n in 0..4_500u64 {
        let key = number(n * 31 % 5_000);
        if tree.remove(&key, 10_000 + n).is_some() {
            newest.insert(key, 10_000 + n);
        }
    }
    for bound in [1_000u64, 2_500, 2_501, 4_999, 0] {
        let right = tree.split_off(&number(bound));
        for (key, &stamp) in &newest {
            let half = if key < &number(bound) { &tree } else { &right };
            assert!(half.lookup(key).stamp >= stamp);
        }
        tree.append(right);
    }
    for (key, &stamp) in &newest {
        assert!(tree.lookup(key).stamp >= stamp);
        assert!(tree.newest_stamp(Bound::Included(key), Bound::Included(key)) >= stamp);
    }
}

#[test]
fn flags_stay_with_their_keys() {
    let mut tree: Tree = Tree::new();
    for n in (0..3_000u64).step_by(2) {
        tree.insert(&number(n), row(b"x"), 1);
        if n % 3 == 0 {
            assert!(tree.set_flag(&number(n), true));
        }
    }
    for n in (1..3_000u64).step_by(2) {
        tree.insert(&number(n), row(b"x"), 1);
    }
    for n in (0..3_000u64).step_by(5) {
        tree.remove(&number(n), 1);
    }
    let right = tree.split_off(&number(1_234));
    tree.append(right);
    for n in 0..3_000u64 {
        let lookup = tree.lookup(&number(n));
        assert_eq!(lookup.row.is_some(), n % 5 != 0);
        assert_eq!(lookup.flagged, n % 2 == 0 && n % 3 == 0 && n % 5 != 0, "{n}");
    }
}

#[test]
fn a_built_tree_is_full_and_counts_the_memory_an_inserted_one_does() {
    for count in [0, 1, 31, 32, 993, 31 * 32 * 33, 70_000] {
        let mut inserted: Tree = Tree::new();
        let mut builder = Builder::<Exclusive>::new();
        for n in 0..count {
            inserted.insert(&number(n), row(b"x"), n);
            builder.push(&number(n), row(b"x"), n).expect("ascending");
        }
        let built = builder.finish();
        built.check();
        assert_eq!((built.len(), built.payload_bytes()), (inserted.len(), inserted.payload_bytes()));
        assert!(built.bytes() <= inserted.bytes() + 8_192, "{} for {}", built.bytes(), inserted.bytes());
        assert!(built.height() <= inserted.height());
        let newest = built.newest_stamp(Bound::Unbounded, Bound::Unbounded);
        assert_eq!(newest, count.saturating_sub(1));
        // Each leaf by itself (two may be levelled at the end): the others do not count as written.
        assert!(built.lookup(&number(0)).stamp <= slots::CAPACITY as u64);
    }
}

#[test]
fn ascending_keys_fill_their_leaves() {
    let mut tree: Tree = Tree::new();
    for n in 0..100_000u64 {
        tree.insert(&number(n), row(b"x"), 1);
    }
    let mut leaves = 0;
    tree.scan_leaves(Bound::Unbounded, Bound::Unbounded, |_| {
        leaves += 1;
        ControlFlow::Continue(())
    });
    assert!(leaves <= 100_000 / slots::CAPACITY + 2, "{leaves} leaves");
}

#[test]
fn cuts_stay_shallow_after_many() {
    let mut tree: Tree = Tree::new();
    for n in 0..50_000u64 {
        tree.insert(&number(n * 7919 % 50_000), row(b"x"), 1);
    }
    let height = tree.height();
    for n in 0..2_000u64 {
        let right = tree.split_off(&number(n * 104_729 % 50_000));
        tree.append(right);
    }
    tree.check();
    assert!(tree.height() <= height + 1, "{} after {height}", tree.height());
}

#[test]
fn memory_counted_in_is_counted_out() {
    let mut tree: Tree = Tree::new();
    let key = |n: u64| [&number(n)[..], &[b'k'; 40][..usize::from(n.is_multiple_of(2)) * 40]].concat();
    for n in 0..2_000u64 {
        tree.insert(&key(n * 7 % 2_000), vec![0; n as usize % 50].into(), 1);
    }
    let full = tree.bytes();
    assert!(full > 2_000 * 25 + 1_000 * 40);
    for n in 0..1_900u64 {
        tree.update(&key(n), 1, |row| *row = vec![1; 10].into());
        tree.remove(&key(n), 1);
    }
    assert!(tree.bytes() < full / 8, "{} of {full}", tree.bytes());
    for n in 1_900..2_000u64 {
        tree.remove(&key(n), 1);
    }
    assert_eq!(tree.payload_bytes, 0);
    assert_eq!(tree.node_bytes, size_of::<node::Leaf>() as u64);
}

#[test]
fn keys_that_ascend_within_others_fill_their_leaves() {
    let mut tree: Tree = Tree::new();
    let mut finger = Finger::default();
    let key = |group: u8, number: u32| [&[group][..], &number.to_be_bytes()].concat();
    for round in 0..200 {
        for group in 0..10 {
            for number in 0..10 {
                let put = tree.insert_new_with(&key(group, 10 * round + number), row(b"r"), 1, &mut finger);
                assert!(put.is_ok());
            }
        }
    }
    tree.check();
    let full = tree.len().div_ceil(CAPACITY as u64);
    let leaves = tree.node_bytes / size_of::<super::node::Leaf>() as u64;
    assert!(leaves < full * 5 / 4, "{leaves} leaves of {CAPACITY} for {} entries", tree.len());
}
