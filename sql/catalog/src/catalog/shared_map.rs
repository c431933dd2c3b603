//! An ordered map whose copies share what they have in common: to change one is to copy the few
//! entries around the change, and the list of where the others are.
//!
//! A version of the catalog is made from the one before it for every definition, a statement has the cursors
//! of its session as they were when it began; it costs about the same however many there are.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

/// How many entries lie together at most.
const CHUNK_MAX: usize = 64;

type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// See the module's head.
#[derive(Clone, Debug)]
pub struct SharedMap<K, V> {
    /// In the order of their keys; none is empty.
    chunks: Arc<Vec<Chunk<K, V>>>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        SharedMap { chunks: Arc::default() }
    }
}

impl<K, V> SharedMap<K, V> {
    /// Where an entry is or would be: its chunk, and its place in that. `order` tells how a key compares
    /// with the one that is looked for.
    fn place(&self, order: impl Fn(&K) -> Ordering) -> (usize, Result<usize, usize>) {
        let behind = self.chunks.partition_point(|chunk| order(&chunk[0].0) != Ordering::Greater);
        match behind.checked_sub(1) {
            None => (0, Err(0)),
            Some(chunk) => (chunk, self.chunks[chunk].binary_search_by(|(key, _)| order(key))),
        }
    }

    /// As [`SharedMap::get`], by how keys compare with the one that is looked for.
    pub fn get_by(&self, order: impl Fn(&K) -> Ordering) -> Option<&V> {
        match self.place(order) {
            (chunk, Ok(at)) => Some(&self.chunks[chunk][at].1),
            (_, Err(_)) => None,
        }
    }

    /// The entries whose keys are alike to what is looked for, in their order: `order` tells how a key compares
    /// with it, and goes along with the order of keys.
    pub fn all_by<'m>(
        &'m self,
        order: impl Fn(&K) -> Ordering + Copy + 'm,
    ) -> impl Iterator<Item = (&'m K, &'m V)> {
        let last = |chunk: &Chunk<K, V>| chunk.last().map_or(Ordering::Less, |(key, _)| order(key));
        let from = self.chunks.partition_point(|chunk| last(chunk) == Ordering::Less);
        let entries = self.chunks[from..].iter().flat_map(|chunk| chunk.iter());
        let entries = entries.skip_while(move |(key, _)| order(key) == Ordering::Less);
        entries.take_while(move |(key, _)| order(key) == Ordering::Equal).map(|(key, value)| (key, value))
    }

    /// Whether it has no entry.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|(key, value)| (key, value))
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|(_, value)| value)
    }

    /// The values that another map had and this one has, for each key that they do not share; some of
    /// these may be alike.
    pub fn changes<'m>(&'m self, before: &'m Self) -> Vec<(Option<&'m V>, Option<&'m V>)>
    where
        K: Ord,
    {
        self.pairs(before).into_values().collect()
    }

    /// The keys of which another map had something else, or nothing, or which it alone had; `same` tells
    /// whether two values are alike.
    pub fn changed_keys<'m>(
        &'m self,
        before: &'m Self,
        same: impl Fn(&V, &V) -> bool,
    ) -> impl Iterator<Item = &'m K>
    where
        K: Ord,
    {
        let pairs = self.pairs(before).into_iter();
        let changed = pairs.filter(move |(_, pair)| match pair {
            (Some(before), Some(after)) => !same(before, after),
            _ => true,
        });
        changed.map(|(key, _)| key)
    }

    fn pairs<'m>(&'m self, before: &'m Self) -> BTreeMap<&'m K, (Option<&'m V>, Option<&'m V>)>
    where
        K: Ord,
    {
        if Arc::ptr_eq(&self.chunks, &before.chunks) {
            return BTreeMap::new();
        }
        let own: FxHashSet<*const Vec<(K, V)>> = self.chunks.iter().map(Arc::as_ptr).collect();
        let shared: FxHashSet<*const Vec<(K, V)>> =
            before.chunks.iter().map(Arc::as_ptr).filter(|chunk| own.contains(chunk)).collect();
        let apart = |map: &'m Self| {
            let chunks = map.chunks.iter().filter(|chunk| !shared.contains(&Arc::as_ptr(chunk)));
            chunks.flat_map(|chunk| chunk.iter()).collect::<Vec<&'m (K, V)>>()
        };
        let mut pairs: BTreeMap<&K, (Option<&V>, Option<&V>)> = BTreeMap::new();
        for (key, value) in apart(before) {
            pairs.insert(key, (Some(value), None));
        }
        for (key, value) in apart(self) {
            pairs.entry(key).or_default().1 = Some(value);
        }
        pairs
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.get_by(|known| known.cmp(key))
    }

    /// As [`SharedMap::get_by`], to change the value in this map alone.
    pub fn get_mut_by(&mut self, order: impl Fn(&K) -> Ordering) -> Option<&mut V> {
        let (chunk, place) = self.place(order);
        let at = place.ok()?;
        Some(&mut Arc::make_mut(&mut Arc::make_mut(&mut self.chunks)[chunk])[at].1)
    }

    /// Puts a value in the place of the one of that key, or where it belongs.
    pub fn insert(&mut self, key: K, value: V) {
        let (chunk, place) = self.place(|known| known.cmp(&key));
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.is_empty() {
            chunks.push(Arc::new(vec![(key, value)]));
            return;
        }
        // Keys mostly come in their order.
        if place == Err(CHUNK_MAX) {
            chunks.insert(chunk + 1, Arc::new(vec![(key, value)]));
            return;
        }
        let entries = Arc::make_mut(&mut chunks[chunk]);
        match place {
            Ok(at) => entries[at].1 = value,
            Err(at) => entries.insert(at, (key, value)),
        }
        if entries.len() > CHUNK_MAX {
            let rest = entries.split_off(CHUNK_MAX / 2);
            chunks.insert(chunk + 1, Arc::new(rest));
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (chunk, place) = self.place(|known| known.cmp(key));
        let at = place.ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let entries = Arc::make_mut(&mut chunks[chunk]);
        let (_, value) = entries.remove(at);
        if entries.is_empty() {
            chunks.remove(chunk);
            return Some(value);
        }
        let joins = |first: usize| {
            let pair = chunks.get(first..first + 2);
            pair.is_some_and(|pair| pair[0].len() + pair[1].len() <= CHUNK_MAX / 2)
        };
        let pair = [Some(chunk), chunk.checked_sub(1)].into_iter().flatten().find(|first| joins(*first));
        if let Some(first) = pair {
            let second = chunks.remove(first + 1);
            Arc::make_mut(&mut chunks[first]).extend(second.iter().cloned());
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(map: &SharedMap<u32, u32>) -> Vec<u32> {
        map.values().copied().collect()
    }

    #[test]
    fn entries_are_found_whatever_came_and_went() {
        let mut map = SharedMap::default();
        let mut model = BTreeMap::new();
        for step in 0..4_000_u32 {
            let key = step.wrapping_mul(2_654_435_761) % 1_000;
            if step.is_multiple_of(3) {
                assert_eq!(map.remove(&key), model.remove(&key));
            } else {
                map.insert(key, step);
                model.insert(key, step);
            }
            assert_eq!(map.get(&key), model.get(&key));
        }
        assert_eq!(all(&map), model.values().copied().collect::<Vec<_>>());
        assert!((0..1_000).all(|key| map.get(&key) == model.get(&key)));
    }

    #[test]
    fn alike_entries_are_found_together() {
        let mut map = SharedMap::default();
        (0..1_000_u32).filter(|key| key / 100 != 4).for_each(|key| map.insert(key, key));
        let hundred = |of: u32| map.all_by(move |key| (key / 100).cmp(&of)).map(|(key, _)| *key);
        for of in [0, 3, 5, 9] {
            assert!(hundred(of).eq(of * 100..(of + 1) * 100), "{of}");
        }
        assert_eq!((hundred(4).count(), hundred(10).count()), (0, 0));
    }

    #[test]
    fn a_copy_is_not_changed_with_the_other() {
        let mut map = SharedMap::default();
        (0..500).for_each(|key| map.insert(key, key));
        let before = map.clone();
        map.insert(250, 0);
        map.remove(&251);
        map.insert(500, 500);
        assert_eq!(before.get(&250), Some(&250));
        assert_eq!(all(&before).len(), 500);
        let different = |(before, after): &(Option<&u32>, Option<&u32>)| before != after;
        let changes: Vec<_> = map.changes(&before).into_iter().filter(different).collect();
        assert_eq!(changes, [(Some(&250), Some(&0)), (Some(&251), None), (None, Some(&500))]);
        assert!(map.changes(&map.clone()).is_empty());
        *map.get_mut_by(|key| key.cmp(&250)).expect("it is there") = 250;
        assert_eq!(map.get(&250), Some(&250));
        assert!(map.get_mut_by(|key| key.cmp(&251)).is_none());
        *map.get_mut_by(|key| key.cmp(&250)).expect("it is there") = 0;
        let keys: Vec<_> = map.changed_keys(&before, |before, after| before == after).copied().collect();
        assert_eq!(keys, [250, 251, 500]);
    }

    #[test]
    fn what_is_emptied_takes_no_room() {
        let mut map = SharedMap::default();
        (0..1_000_u32).for_each(|key| map.insert(key, key));
        for key in (0..1_000_u32).filter(|key| !key.is_multiple_of(50)) {
            map.remove(&key);
        }
        assert!(map.chunks.len() <= 3, "{}", map.chunks.len());
        for key in 0..1_000_u32 {
            map.remove(&key);
        }
        assert!(map.chunks.is_empty());
    }
}
