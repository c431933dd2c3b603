//! The B+tree against `BTreeMap<Vec<u8>, Vec<u8>>`, at 1 M and 10 M rows.
//!
//! `cargo bench -p archipel-engine --bench tree`. Keys are those of a TPC-C order line, encoded
//! (warehouse, district, order, number); rows have 64 bytes. Each figure is one operation, or
//! one scan of 100 rows, one cut, one join; the rows in between (`after_cut`) show that a cut
//! leaves nothing to be done later.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::{Bound, ControlFlow};
use std::sync::OnceLock;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::schema::KeyColumn;
use archipel_engine::storage::key::{KeyBuf, encode_cell};
use archipel_engine::storage::{Row, Tree};
use divan::Bencher;
use divan::counter::ItemsCount;

const SIZES: [u64; 2] = [1_000_000, 10_000_000];
/// Point operations per sample: enough to leave the caches.
const BATCH: u64 = 1_000;

fn main() {
    divan::main();
}

/// The n-th order line: ten districts, ten lines an order.
fn key(n: u64) -> KeyBuf {
    let column = |descending| KeyColumn {
        column: 0,
        descending,
        nulls_first: false,
        nullable: false,
        form: Default::default(),
    };
    let mut out = KeyBuf::new();
    let (line, order) = (n % 10, n / 10);
    for value in [1, (order % 10) as i32, (order / 10) as i32, line as i32] {
        encode_cell(&mut out, Cell::Int4(value), &column(false), ColumnKind::Int4);
    }
    out
}

fn row(n: u64) -> Row {
    let mut row = vec![0u8; 64];
    row[..8].copy_from_slice(&n.to_le_bytes());
    row.into_boxed_slice()
}

/// A fixed order that jumps about: a full cycle of `size` when `size` is no multiple of 7.
fn shuffled(n: u64, size: u64) -> u64 {
    (n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 11) % size
}

fn fill_tree(size: u64) -> Tree {
    let mut tree = Tree::new();
    for n in 0..size {
        tree.insert(&key(n), row(n), 1);
    }
    tree
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn fill_map(size: u64) -> Map {
    (0..size).map(|n| (key(n).to_vec(), row(n).into_vec())).collect()
}

fn tree(size: u64) -> &'static Tree {
    static TREES: [OnceLock<Tree>; 2] = [OnceLock::new(), OnceLock::new()];
    TREES[usize::from(size != SIZES[0])].get_or_init(|| fill_tree(size))
}

fn map(size: u64) -> &'static Map {
    static MAPS: [OnceLock<Map>; 2] = [OnceLock::new(), OnceLock::new()];
    MAPS[usize::from(size != SIZES[0])].get_or_init(|| fill_map(size))
}

/// Keys of one sample, made before the clock starts.
fn probes(sample: u64, size: u64) -> Vec<KeyBuf> {
    (0..BATCH).map(|n| key(shuffled(sample * BATCH + n, size))).collect()
}

fn samples(bencher: Bencher<'_, '_>, size: u64, mut run: impl FnMut(&[KeyBuf])) {
    let mut sample = 0;
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| {
            sample += 1;
            probes(sample, size)
        })
        .bench_local_values(|keys| run(&keys));
}

#[divan::bench(args = SIZES, sample_count = 200)]
fn point_read_tree(bencher: Bencher<'_, '_>, size: u64) {
    let tree = tree(size);
    samples(bencher, size, |keys| {
        for key in keys {
            black_box(tree.get(key));
        }
    });
}

#[divan::bench(args = SIZES, sample_count = 200)]
fn point_read_btreemap(bencher: Bencher<'_, '_>, size: u64) {
    let map = map(size);
    samples(bencher, size, |keys| {
        for key in keys {
            black_box(map.get(&key[..]));
        }
    });
}

#[divan::bench(args = SIZES, sample_count = 100)]
fn scan_100_tree(bencher: Bencher<'_, '_>, size: u64) {
    let tree = tree(size);
    samples(bencher, size, |keys| {
        for key in keys {
            let mut rest = 100;
            tree.scan(Bound::Included(key), Bound::Unbounded, |key, row| {
                black_box((key, row));
                rest -= 1;
                if rest == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
    });
}

#[divan::bench(args = SIZES, sample_count = 100)]
fn scan_100_btreemap(bencher: Bencher<'_, '_>, size: u64) {
    let map = map(size);
    samples(bencher, size, |keys| {
        for key in keys {
            let range = map.range::<[u8], _>((Bound::Included(&key[..]), Bound::Unbounded));
            for entry in range.take(100) {
                black_box(entry);
            }
        }
    });
}

#[divan::bench(args = [SIZES[0]], sample_count = 3)]
fn fill_ascending_tree(bencher: Bencher<'_, '_>, size: u64) {
    bencher.counter(ItemsCount::new(size)).bench_local(|| fill_tree(size));
}

#[divan::bench(args = [SIZES[0]], sample_count = 3)]
fn fill_ascending_btreemap(bencher: Bencher<'_, '_>, size: u64) {
    let fill = || {
        let mut map = Map::new();
        for n in 0..size {
            map.insert(key(n).to_vec(), row(n).into_vec());
        }
        map
    };
    bencher.counter(ItemsCount::new(size)).bench_local(fill);
}

#[divan::bench(args = [SIZES[0]], sample_count = 3)]
fn insert_random_tree(bencher: Bencher<'_, '_>, size: u64) {
    let fill = || {
        let mut tree: Tree = Tree::new();
        for n in 0..size {
            tree.insert(&key(shuffled(n, size)), row(n), 1);
        }
        tree
    };
    bencher.counter(ItemsCount::new(size)).bench_local(fill);
}

#[divan::bench(args = [SIZES[0]], sample_count = 3)]
fn insert_random_btreemap(bencher: Bencher<'_, '_>, size: u64) {
    let fill = || {
        let mut map = Map::new();
        for n in 0..size {
            map.insert(key(shuffled(n, size)).to_vec(), row(n).into_vec());
        }
        map
    };
    bencher.counter(ItemsCount::new(size)).bench_local(fill);
}

/// Cuts at a place that moves, and joins again outside the clock.
#[divan::bench(args = SIZES, sample_count = 50, sample_size = 1)]
fn cut_tree(bencher: Bencher<'_, '_>, size: u64) {
    let left = std::cell::RefCell::new(fill_tree(size));
    let mut sample = 0;
    bencher
        .with_inputs(|| {
            sample += 1;
            key(shuffled(sample, size))
        })
        .bench_local_values(|key| Joining { right: Some(left.borrow_mut().split_off(&key)), left: &left });
}

/// Joins when divan drops it, which it does outside the clock.
struct Joining<'t> {
    right: Option<Tree>,
    left: &'t std::cell::RefCell<Tree>,
}

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        if let Some(right) = self.right.take() {
            self.left.borrow_mut().append(right);
        }
    }
}

#[divan::bench(args = SIZES, sample_count = 50, sample_size = 1)]
fn join_tree(bencher: Bencher<'_, '_>, size: u64) {
    let left = std::cell::RefCell::new(fill_tree(size));
    let mut sample = 0;
    bencher
        .with_inputs(|| {
            sample += 1;
            left.borrow_mut().split_off(&key(shuffled(sample, size)))
        })
        .bench_local_values(|right| left.borrow_mut().append(right));
}

/// `BTreeMap` cuts in linear time; only the smaller size, a few times.
#[divan::bench(args = [SIZES[0]], sample_count = 3, sample_size = 1)]
fn cut_btreemap(bencher: Bencher<'_, '_>, size: u64) {
    bencher
        .with_inputs(|| fill_map(size))
        .bench_local_values(|mut map| (map.split_off(&key(size / 2)[..]), map));
}

/// A thousand reads right after a cut: each half holds its part of the probes.
#[divan::bench(args = SIZES, sample_count = 50, sample_size = 1)]
fn point_read_after_cut(bencher: Bencher<'_, '_>, size: u64) {
    let left = std::cell::RefCell::new(fill_tree(size));
    let mut sample = 0;
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| {
            sample += 1;
            let at = key(shuffled(sample, size));
            let right = Joining { right: Some(left.borrow_mut().split_off(&at)), left: &left };
            (at, right, probes(sample, size))
        })
        .bench_local_values(|(at, right, keys)| {
            let left = left.borrow();
            for key in &keys {
                let half = if *key < at { &*left } else { right.right.as_ref().expect("not dropped") };
                black_box(half.get(key));
            }
            drop(left);
            right
        });
}
