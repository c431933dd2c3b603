//! The places of rows whose keys are no small integers: numbers that are drawn when a key is first asked for its
//! place (`ctid`), and found again in both directions. What a place is, and why, is told where it is computed
//! (`sql/types`, `function/system_info/row_place.rs`).
//!
//! **Whose it is.** A key is one of a constraint of a database, so that a number never leads into another table, nor
//! to a row of the same one under another key. It is compared by a digest under a salt that nobody outside knows.
//!
//! **How long.** What a transaction has asked for stays until it ends: its statements find the rows again. It keeps
//! nothing that others ask for meanwhile. Behind that, entries are kept as long as all of them take less than
//! [`KEPT_BYTES`]; the oldest go first. No number is drawn twice, not by a later start of the server either (its
//! number is in them), so that one which was forgotten finds no row rather than another. A statement that would need
//! more than [`BYTES_MAX`] at once is refused.
//!
//! **What it costs others.** Nothing: who asks for no place never comes here. Those who do share the shards, each
//! behind a latch that is held for a look-up.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{FunctionContext, drawn_number, drawn_place};
use archipel_sql::io;
use archipel_sql::types::Oid;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// So much is kept for transactions that come later.
const KEPT_BYTES: usize = 32 << 20;

/// So much may be kept for those under way.
const BYTES_MAX: usize = 1 << 30;

/// What an entry takes beside its key's text.
const ENTRY_BYTES: usize = 256;

/// Bits of a number that say in which shard it is.
const SHARD_BITS: u32 = 6;

/// Bits of a number below those of the server's start.
const START_SHIFT: u32 = 32;

/// After so many starts their numbers come again.
const STARTS: u64 = (1 << 14) - 1;

/// Of so many who have asked, those that are over are taken out before others are noted.
const ASKERS_MAX: usize = 8;

/// How many entries are looked at for one that may go, whenever one comes.
const LOOKS: usize = 4;

/// A key by its digest.
type KeyDigest = (u64, u64);

/// A key that has a number.
struct Entry {
    digest: KeyDigest,
    database: Oid,
    constraint: Oid,
    key: Box<[Datum]>,
    bytes: usize,
    /// Who has asked for it; some of them may be over.
    askers: Vec<u64>,
}

/// Some of the entries.
#[derive(Default)]
struct Shard {
    numbers: FxHashMap<KeyDigest, u64>,
    entries: FxHashMap<u64, Entry>,
    /// Their numbers, the oldest first.
    order: VecDeque<u64>,
    drawn: u64,
}

/// The numbers of a server.
pub struct RowPlaces {
    salts: [RandomState; 2],
    /// What this start's numbers are counted from.
    base: u64,
    shards: Vec<Mutex<Shard>>,
    bytes: AtomicUsize,
    /// How many transactions have asked.
    transactions: AtomicU64,
    /// Those under way, by when they first asked.
    under_way: Mutex<BTreeSet<u64>>,
    kept_bytes: usize,
    bytes_max: usize,
}

/// Which key is meant.
#[derive(Clone, Copy)]
pub struct KeyOf {
    pub database: Oid,
    pub constraint: Oid,
}

/// Keeps what a transaction asks for until it is over.
pub struct PlacesInUse {
    places: Arc<RowPlaces>,
    since: u64,
}

impl PlacesInUse {
    /// Who asks.
    pub fn asker(&self) -> u64 {
        self.since
    }
}

impl Drop for PlacesInUse {
    fn drop(&mut self) {
        self.places.under_way.lock().remove(&self.since);
    }
}

impl RowPlaces {
    /// The numbers of the start with this number.
    pub fn of_start(start: u64) -> Arc<RowPlaces> {
        RowPlaces::bounded(start, KEPT_BYTES, BYTES_MAX)
    }

    fn bounded(start: u64, kept_bytes: usize, bytes_max: usize) -> Arc<RowPlaces> {
        Arc::new(RowPlaces {
            salts: Default::default(),
            base: (start % STARTS) << START_SHIFT,
            shards: (0..1 << SHARD_BITS).map(|_| Mutex::default()).collect(),
            bytes: AtomicUsize::new(0),
            transactions: AtomicU64::new(0),
            under_way: Mutex::default(),
            kept_bytes,
            bytes_max,
        })
    }

    /// Keeps what is asked for from now on until the answer is dropped.
    pub fn in_use(self: &Arc<Self>) -> PlacesInUse {
        let mut under_way = self.under_way.lock();
        let since = self.transactions.fetch_add(1, Ordering::Relaxed) + 1;
        under_way.insert(since);
        PlacesInUse { places: self.clone(), since }
    }

    /// The place of the row with a key, of which no column is NULL; 53200 where too many are in use.
    pub fn place(&self, asker: u64, of: KeyOf, key: &[Datum]) -> Result<Datum> {
        let (digest, text_bytes) = self.digest(of, key)?;
        let shard_number = digest.0 as usize % self.shards.len();
        let mut shard = self.shards[shard_number].lock();
        if let Some(number) = shard.numbers.get(&digest).copied()
            && let Some(entry) = shard.entries.get_mut(&number)
        {
            self.note(entry, asker);
            return Ok(self.shown(number));
        }
        let bytes = ENTRY_BYTES + text_bytes + std::mem::size_of_val(key);
        if self.bytes.load(Ordering::Relaxed) + bytes > self.kept_bytes {
            self.make_room(&mut shard);
        }
        if self.bytes.load(Ordering::Relaxed) + bytes > self.bytes_max
            || archipel_engine::heap::work_exceeds(bytes)
        {
            return Err(too_many());
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let number = shard.drawn << SHARD_BITS | shard_number as u64;
        shard.drawn += 1;
        shard.numbers.insert(digest, number);
        let (database, constraint) = (of.database, of.constraint);
        let askers = vec![asker];
        let entry = Entry { digest, database, constraint, key: key.into(), bytes, askers };
        shard.entries.insert(number, entry);
        shard.order.push_back(number);
        Ok(self.shown(number))
    }

    /// A column of the key of the row at a place; NULL if no row is known there.
    pub fn key_column(&self, asker: u64, of: KeyOf, place: i64, column: usize) -> Datum {
        let number = drawn_number(place).and_then(|number| number.checked_sub(self.base));
        let Some(number) = number else { return Datum::Null };
        let shard = number & ((1 << SHARD_BITS) - 1);
        let Some(shard) = self.shards.get(shard as usize) else { return Datum::Null };
        let mut shard = shard.lock();
        let Some(entry) = shard.entries.get_mut(&number) else { return Datum::Null };
        if entry.database != of.database || entry.constraint != of.constraint {
            return Datum::Null;
        }
        self.note(entry, asker);
        entry.key.get(column).cloned().unwrap_or(Datum::Null)
    }

    fn shown(&self, number: u64) -> Datum {
        drawn_place(self.base + number)
    }

    fn note(&self, entry: &mut Entry, asker: u64) {
        if entry.askers.contains(&asker) {
            return;
        }
        if entry.askers.len() >= ASKERS_MAX {
            let under_way = self.under_way.lock();
            entry.askers.retain(|other| under_way.contains(other));
        }
        entry.askers.push(asker);
    }

    /// Lets go of entries that nobody under way has asked for.
    fn make_room(&self, shard: &mut Shard) {
        let under_way = self.under_way.lock();
        for _ in 0..LOOKS {
            let Some(number) = shard.order.pop_front() else { return };
            match shard.entries.get(&number) {
                Some(entry) if entry.askers.iter().any(|asker| under_way.contains(asker)) => {
                    shard.order.push_back(number);
                }
                Some(entry) => {
                    self.bytes.fetch_sub(entry.bytes, Ordering::Relaxed);
                    let digest = entry.digest;
                    shard.numbers.remove(&digest);
                    shard.entries.remove(&number);
                }
                None => {}
            }
        }
    }

    /// A key's digest, and how long its text is.
    fn digest(&self, of: KeyOf, key: &[Datum]) -> Result<(KeyDigest, usize)> {
        let context = FunctionContext::detached();
        let mut text = String::new();
        for value in key {
            let before = text.len();
            io::text_out(value, io::natural_type(value), &context, &mut text).map_err(|_| too_many())?;
            // Behind each text its length: no two keys are written alike.
            let length = text.len() - before;
            write!(text, "\u{0}{length}\u{0}").map_err(|_| too_many())?;
        }
        let whole = (of.database.0, of.constraint.0, text.as_str());
        let [one, other] = &self.salts;
        Ok(((one.hash_one(whole), other.hash_one(whole)), text.len()))
    }
}

fn too_many() -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .with_detail("The ctid of too many rows is in use.")
        .with_hint("Tell rows apart by their primary key.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: KeyOf = KeyOf { database: Oid(1), constraint: Oid(2) };

    /// Nobody under way.
    const OVER: u64 = 0;

    fn place(places: &RowPlaces, of: KeyOf, key: &str) -> i64 {
        place_for(places, OVER, of, key)
    }

    fn place_for(places: &RowPlaces, asker: u64, of: KeyOf, key: &str) -> i64 {
        match places.place(asker, of, &[Datum::text(key)]) {
            Ok(Datum::Int8(place)) => place,
            other => panic!("no place: {other:?}"),
        }
    }

    #[test]
    fn a_place_leads_back_to_its_key_and_to_no_other() {
        let places = RowPlaces::of_start(3);
        let (a, b) = (place(&places, KEY, "a"), place(&places, KEY, "b"));
        assert_ne!(a, b);
        assert_eq!(place(&places, KEY, "a"), a);
        assert_eq!(places.key_column(OVER, KEY, a, 0), Datum::text("a"));
        assert_eq!(places.key_column(OVER, KEY, a, 1), Datum::Null);
        let other = KeyOf { constraint: Oid(3), ..KEY };
        assert_eq!(places.key_column(OVER, other, a, 0), Datum::Null);
        assert_ne!(place(&places, other, "a"), a);
        // What belongs together is told from what does not.
        let pair =
            |one: &str, two: &str| places.place(OVER, KEY, &[Datum::text(one), Datum::text(two)]).unwrap();
        assert_ne!(pair("a", "bc"), pair("ab", "c"));
    }

    #[test]
    fn places_of_another_start_are_unknown() {
        let before = RowPlaces::of_start(3);
        let old = place(&before, KEY, "a");
        let after = RowPlaces::of_start(4);
        place(&after, KEY, "a");
        assert_eq!(after.key_column(OVER, KEY, old, 0), Datum::Null);
        let new = place(&after, KEY, "a");
        assert_eq!(before.key_column(OVER, KEY, new, 0), Datum::Null);
    }

    #[test]
    fn what_is_in_use_stays_and_what_is_not_goes() {
        let places = RowPlaces::bounded(0, 0, BYTES_MAX);
        let kept = places.in_use();
        let first = place_for(&places, kept.asker(), KEY, "first");
        for i in 0..1000 {
            place(&places, KEY, &i.to_string());
        }
        assert_eq!(places.key_column(OVER, KEY, first, 0), Datum::text("first"));
        drop(kept);
        for i in 1000..20_000 {
            place(&places, KEY, &i.to_string());
        }
        assert_eq!(places.key_column(OVER, KEY, first, 0), Datum::Null);
        let known: usize = places.shards.iter().map(|shard| shard.lock().entries.len()).sum();
        assert!(known < 1000, "{known} are known");
        // It comes back as another.
        assert_ne!(place(&places, KEY, "first"), first);
    }

    #[test]
    fn who_is_idle_keeps_nothing_that_others_have_asked_for() {
        let places = RowPlaces::bounded(0, 0, 1_000 * ENTRY_BYTES);
        let idle = places.in_use();
        let first = place_for(&places, idle.asker(), KEY, "first");
        for i in 0..20_000 {
            let other = places.in_use();
            place_for(&places, other.asker(), KEY, &i.to_string());
            // However often it is asked for.
            place_for(&places, other.asker(), KEY, "first");
        }
        assert_eq!(places.key_column(OVER, KEY, first, 0), Datum::text("first"));
        let asked: usize = places
            .shards
            .iter()
            .flat_map(|shard| {
                shard.lock().entries.values().map(|entry| entry.askers.len()).collect::<Vec<_>>()
            })
            .max()
            .unwrap();
        assert!(asked <= ASKERS_MAX + 1, "{asked}");
    }

    #[test]
    fn more_than_there_may_be_are_refused() {
        let places = RowPlaces::bounded(0, 0, 100 * ENTRY_BYTES);
        let kept = places.in_use();
        let refused = (0..1000)
            .find_map(|i: i32| places.place(kept.asker(), KEY, &[Datum::text(&i.to_string())]).err());
        assert_eq!(refused.map(|error| error.state()), Some(SqlState::OUT_OF_MEMORY));
    }
}
