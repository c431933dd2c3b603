//! Bits noted by key, mostly few keys, at times very many.
//!
//! A transaction notes the tables that it uses with each of its statements: so a few of them are looked
//! through, and many found by a map.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// So many keys are looked through.
const LOOKED_THROUGH: usize = 8;

/// See the module. In the order in which they were noted, as long as none is taken out.
pub(crate) struct Noted<K> {
    all: SmallVec<[(K, u8); 4]>,
    /// Where each of them is; empty while they are few.
    places: FxHashMap<K, usize>,
}

impl<K> Default for Noted<K> {
    fn default() -> Self {
        Self { all: SmallVec::new(), places: FxHashMap::default() }
    }
}

impl<K: Copy + Eq + Hash> Noted<K> {
    fn place(&self, key: K) -> Option<usize> {
        match self.places.is_empty() {
            true => self.all.iter().position(|(noted, _)| *noted == key),
            false => self.places.get(&key).copied(),
        }
    }

    /// Adds a bit to what is noted of a key.
    pub fn note(&mut self, key: K, bit: u8) {
        if let Some(at) = self.place(key) {
            self.all[at].1 |= bit;
            return;
        }
        self.all.push((key, bit));
        if !self.places.is_empty() {
            self.places.insert(key, self.all.len() - 1);
        } else if self.all.len() > LOOKED_THROUGH {
            self.places = self.all.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        }
    }

    /// What is noted of a key.
    pub fn bits(&self, key: K) -> u8 {
        self.place(key).map_or(0, |at| self.all[at].1)
    }

    /// Takes a key out, with what is noted of it.
    pub fn take(&mut self, key: K) -> Option<u8> {
        let at = self.place(key)?;
        let (_, bits) = self.all.swap_remove(at);
        if !self.places.is_empty() {
            self.places.remove(&key);
            // The last one has come in its place.
            if let Some((moved, _)) = self.all.get(at) {
                self.places.insert(*moved, at);
            }
        }
        Some(bits)
    }

    /// All of it.
    pub fn to_vec(&self) -> Vec<(K, u8)> {
        self.all.to_vec()
    }

    /// Forgets all of it.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn few_and_many_are_noted_alike() {
        let mut random = RandomStream::new(6);
        let mut noted = Noted::default();
        let mut model: BTreeMap<u32, u8> = BTreeMap::new();
        for step in 0..4_000 {
            let key = random.below(30) as u32;
            // It fills, and empties.
            if random.below(10) < if step / 500 % 2 == 0 { 8 } else { 2 } {
                let bit = 1 << random.below(3);
                noted.note(key, bit);
                *model.entry(key).or_default() |= bit;
            } else {
                assert_eq!(noted.take(key), model.remove(&key));
            }
            assert_eq!(noted.bits(key), model.get(&key).copied().unwrap_or(0));
            let mut all = noted.to_vec();
            all.sort_unstable();
            assert!(all.into_iter().eq(model.iter().map(|(key, bits)| (*key, *bits))));
        }
        noted.clear();
        assert!(noted.to_vec().is_empty());
    }
}
