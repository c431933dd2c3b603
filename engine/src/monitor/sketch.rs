//! A small sketch of the keys that come most often (Metwally's *space saving*): a fixed number of
//! counters, a newcomer inherits the least one. A key with more than one in [`KEYS`] of all
//! samples is always in it, and its count errs by at most [`HotKey::error`].

use std::hash::Hasher;

use crate::storage::KeyBuf;

/// Counters of a sketch.
pub const KEYS: usize = 8;

/// A key and how often it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotKey {
    pub key: KeyBuf,
    /// At most this often.
    pub count: u32,
    /// By how much `count` may be too high.
    pub error: u32,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct HotKeys {
    keys: Vec<HotKey>,
    /// Of the keys: most keys that come are none of them.
    hashes: [u64; KEYS],
    samples: u32,
}

impl HotKeys {
    /// Counts one occurrence of a key.
    pub fn add(&mut self, key: &[u8]) {
        self.samples = self.samples.saturating_add(1);
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(key);
        let hash = hasher.finish();
        let mut same = self.keys.iter_mut().zip(&self.hashes).filter(|(_, known)| **known == hash);
        if let Some((known, _)) = same.find(|(known, _)| known.key[..] == *key) {
            known.count = known.count.saturating_add(1);
            return;
        }
        if self.keys.len() < KEYS {
            self.hashes[self.keys.len()] = hash;
            self.keys.push(HotKey { key: KeyBuf::from_slice(key), count: 1, error: 0 });
            return;
        }
        let least = self.keys.iter_mut().zip(&mut self.hashes).min_by_key(|(known, _)| known.count);
        if let Some((least, known)) = least {
            *known = hash;
            least.error = least.count;
            least.count = least.count.saturating_add(1);
            least.key.clear();
            least.key.extend_from_slice(key);
        }
    }

    /// The key that came most often for certain, and its least possible share of all samples.
    pub fn hottest(&self) -> Option<(&KeyBuf, f64)> {
        let certain = |known: &HotKey| known.count - known.error;
        let hottest = self.keys.iter().max_by_key(|known| certain(known))?;
        Some((&hottest.key, f64::from(certain(hottest)) / f64::from(self.samples.max(1))))
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.samples = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn a_hot_key_is_found_among_many() {
        let mut random = RandomStream::new(1);
        let mut sketch = HotKeys::default();
        for _ in 0..5_000 {
            let key = if random.below(3) == 0 { 77 } else { random.below(10_000) };
            sketch.add(&key.to_be_bytes());
        }
        let (key, share) = sketch.hottest().expect("keys came");
        assert_eq!(key[..], 77_u64.to_be_bytes());
        assert!((0.25..=0.40).contains(&share), "{share}");
    }

    #[test]
    fn evenly_spread_keys_are_not_hot() {
        let mut random = RandomStream::new(2);
        let mut sketch = HotKeys::default();
        assert_eq!(sketch.hottest(), None);
        for _ in 0..5_000 {
            sketch.add(&random.below(1_000).to_be_bytes());
        }
        let (_, share) = sketch.hottest().expect("keys came");
        assert!(share < 0.02, "{share}");
    }
}
