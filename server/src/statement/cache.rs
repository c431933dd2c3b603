//! Prepared statements of one executor thread, found again by text: bounded, least recently
//! used first out, without any latch, because no other thread sees it.

use std::rc::Rc;
use std::sync::Arc;

use archipel_procedures::plpgsql::ast::Conflict;
use archipel_sql::parser::StringSyntax;
use archipel_sql::types::Oid;
use rustc_hash::FxHashMap;

/// What must be equal for a prepared statement to be used again. The catalog's version is
/// checked on the entry, so that a statement prepared before DDL makes room for its successor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Whose names it is about.
    pub database: Oid,
    pub text: Arc<str>,
    pub declared: Rc<[Oid]>,
    pub search_path: Arc<[String]>,
    /// Whose rights were found out.
    pub role: Oid,
    /// How routines are compiled that it calls.
    pub conflict: Conflict,
    /// How their bodies are read; its own text is as all read it.
    pub strings: StringSyntax,
}

struct Entry<V> {
    value: V,
    used: u64,
}

/// A map that holds at most `capacity` entries.
pub struct Cache<V> {
    entries: FxHashMap<Key, Entry<V>>,
    clock: u64,
    capacity: usize,
}

/// Longer texts are not worth keeping: they are loads, not transactions.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

impl<V: Clone> Cache<V> {
    pub fn new(capacity: usize) -> Cache<V> {
        Cache { entries: FxHashMap::default(), clock: 0, capacity }
    }

    pub fn get(&mut self, key: &Key) -> Option<V> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(entry.value.clone())
    }

    pub fn insert(&mut self, key: Key, value: V) {
        if key.text.len() > TEXT_BYTES_MAX {
            return;
        }
        self.clock += 1;
        if self.entries.len() >= self.capacity && !self.entries.contains_key(&key) {
            self.evict();
        }
        self.entries.insert(key, Entry { value, used: self.clock });
    }

    /// Drops the older half: rare, so that the scan costs little per insertion.
    fn evict(&mut self) {
        let mut used: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        used.sort_unstable();
        let median = used[used.len() / 2];
        self.entries.retain(|_, entry| entry.used >= median);
    }

    /// Drops the entries whose keys are none of these.
    pub fn retain(&mut self, wanted: impl Fn(&Key) -> bool) {
        self.entries.retain(|key, _| wanted(key));
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key {
            database: Oid(5),
            text: text.into(),
            declared: Rc::from([]),
            search_path: Arc::from([]),
            role: Oid(10),
            conflict: Conflict::Error,
            strings: StringSyntax::default(),
        }
    }

    #[test]
    fn a_text_means_something_else_in_another_database() {
        let mut cache = Cache::new(4);
        cache.insert(key("a"), "of one".to_owned());
        let other = Key { database: Oid(6), ..key("a") };
        assert_eq!(cache.get(&other), None);
        cache.insert(other.clone(), "of the other".to_owned());
        assert_eq!(cache.get(&key("a")).as_deref(), Some("of one"));
        assert_eq!(cache.get(&other).as_deref(), Some("of the other"));
    }

    #[test]
    fn routines_that_a_text_calls_are_read_as_the_session_says() {
        let mut cache = Cache::new(4);
        cache.insert(key("a"), "of standard strings".to_owned());
        let strings = StringSyntax { standard: false, ..StringSyntax::default() };
        assert_eq!(cache.get(&Key { strings, ..key("a") }), None);
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let mut cache = Cache::new(4);
        for text in ["a", "b", "c", "d"] {
            cache.insert(key(text), text.to_owned());
        }
        assert_eq!(cache.get(&key("a")).as_deref(), Some("a"));
        cache.insert(key("e"), "e".to_owned());
        assert_eq!(cache.get(&key("a")).as_deref(), Some("a"));
        assert_eq!(cache.get(&key("b")), None);
        assert!(cache.entries.len() <= 4);
    }
}
