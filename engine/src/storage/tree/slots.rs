//! The sorted keys of one node, arranged for search.
//!
//! All keys of a node share a prefix (composite keys of one warehouse and district do), so the
//! prefix is cut off and the next eight bytes of each key stand beside each other as big-endian
//! integers, the *heads*. A search compares the prefix once, then counts the heads below the
//! one it looks for, and looks at whole keys only where heads are equal. Keys up to 22 bytes
//! lie in the node itself: no pointer is followed to compare them.
//!
//! Counting heads beats bisecting them: it has no branch to mispredict. The last head of each
//! cache line is counted first, which fetches all lines together instead of one after the other
//! and says which line to look into. The heads beyond the last key are the greatest integer, so
//! the count needs no length.

use std::cmp::Ordering;

/// Keys in a leaf, and children of an inner node less one. A leaf of 31 takes 1,536 bytes, a
/// size that allocators serve without waste.
pub(super) const CAPACITY: usize = 31;

/// Heads are compared two at a time or more: an even number of them.
const HEADS: usize = CAPACITY + 1;
const NO_HEAD: i64 = i64::MAX;
/// Heads that are counted together.
const LINE: usize = 8;
const _: () = assert!(HEADS.is_multiple_of(LINE));

const PREFIX_MAX: usize = 21;
const INLINE_MAX: usize = 22;

/// One key, in the node if short.
#[derive(Clone)]
pub(super) enum Key {
    Inline { len: u8, bytes: [u8; INLINE_MAX] },
    Boxed(Box<[u8]>),
}

impl Key {
    pub(super) const EMPTY: Key = Key::Inline { len: 0, bytes: [0; INLINE_MAX] };

    pub(super) fn new(key: &[u8]) -> Key {
        if key.len() <= INLINE_MAX {
            let mut bytes = [0; INLINE_MAX];
            bytes[..key.len()].copy_from_slice(key);
            Key::Inline { len: key.len() as u8, bytes }
        } else {
            Key::Boxed(key.into())
        }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Key::Inline { len, bytes } => &bytes[..usize::from(*len).min(INLINE_MAX)],
            Key::Boxed(bytes) => bytes,
        }
    }

    /// Bytes on the heap beyond the node.
    pub(super) fn heap_bytes(key: &[u8]) -> usize {
        if key.len() <= INLINE_MAX { 0 } else { key.len() }
    }
}

/// Up to [`CAPACITY`] sorted, distinct keys.
///
/// In this order in memory: a search reads the first lines of a node and one key.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Slots {
    len: u16,
    prefix_len: u8,
    prefix: [u8; PREFIX_MAX],
    heads: [i64; HEADS],
    keys: [Key; CAPACITY],
}

/// Eight bytes of `key` from `at`, zero-padded, as an integer that compares like the bytes.
/// Signed, because that is what vector instructions compare.
#[inline]
fn head_at(key: &[u8], at: usize) -> i64 {
    let rest = key.get(at..).unwrap_or(&[]);
    let head = if let Some(eight) = rest.first_chunk::<8>() {
        u64::from_be_bytes(*eight)
    } else if let (Some(eight), false) = (key.last_chunk::<8>(), rest.is_empty()) {
        // The last eight bytes, without those that come before `at`.
        u64::from_be_bytes(*eight) << (8 * (8 - rest.len()))
    } else {
        short_head(rest)
    };
    (head ^ (1 << 63)) as i64
}

/// Up to seven bytes, zero-padded, as an integer that compares like them: loads that overlap, where
/// a copy of so few bytes would be a call.
#[inline]
fn short_head(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let missing = 8 * (8 - len as u32 % 8);
        return u64::from(u32::from_be_bytes(*first)) << 32 | u64::from(u32::from_be_bytes(*last)) << missing;
    }
    match (bytes.first(), bytes.get(len / 2), bytes.last()) {
        (Some(first), Some(middle), Some(last)) => {
            let at = |byte: &u8, place: usize| u64::from(*byte) << (56 - 8 * place);
            at(first, 0) | at(middle, len / 2) | at(last, len - 1)
        }
        _ => 0,
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Slots {
    /// Bytes at its beginning that every search reads.
    pub(super) const SEARCHED_BYTES: usize = std::mem::offset_of!(Slots, keys);

    pub(super) fn new() -> Slots {
        Slots {
            len: 0,
            prefix_len: 0,
            prefix: [0; PREFIX_MAX],
            heads: [NO_HEAD; HEADS],
            keys: [const { Key::EMPTY }; CAPACITY],
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub(super) fn key(&self, index: usize) -> &[u8] {
        debug_assert!(index < self.len());
        self.keys[index].as_slice()
    }

    /// The number of keys below `key`, and whether the next one equals it.
    #[inline]
    pub(super) fn search(&self, key: &[u8]) -> (usize, bool) {
        self.find(key)
    }

    #[inline(always)]
    fn find(&self, key: &[u8]) -> (usize, bool) {
        let len = self.len();
        let prefix_len = usize::from(self.prefix_len);
        if prefix_len > 0 && !self.has_prefix(key) {
            return match key.cmp(&self.prefix[..prefix_len]) {
                Ordering::Greater => (len, false),
                _ => (0, false),
            };
        }
        let head = head_at(key, prefix_len);
        let index = self.heads_below(head);
        if index >= len || self.heads[index] != head {
            return (index, false);
        }
        let there = self.keys[index].as_slice();
        if there.len() == key.len() && key.len() <= prefix_len + 8 {
            // Prefix and head are the whole key.
            return (index, true);
        }
        match there.cmp(key) {
            Ordering::Equal => (index, true),
            Ordering::Greater => (index, false),
            Ordering::Less => self.search_ties(index + 1, head, key),
        }
    }

    /// Where `key` is if it is here, as far as the heads tell, and what lies there: the line of a key is
    /// another one than those that a search reads first.
    #[inline]
    pub(super) fn guess(&self, key: &[u8]) -> (usize, &Key) {
        let head = head_at(key, usize::from(self.prefix_len));
        let index = self.heads_below(head).min(CAPACITY - 1);
        (index, &self.keys[index])
    }

    /// Whether a key begins with the common prefix (not empty): compared as words, without a
    /// call, where both have eight bytes to load.
    #[inline]
    fn has_prefix(&self, key: &[u8]) -> bool {
        let len = usize::from(self.prefix_len).min(PREFIX_MAX);
        let word = |bytes: &[u8], at: usize| {
            bytes.get(at..).and_then(<[u8]>::first_chunk::<8>).map(|eight| u64::from_le_bytes(*eight))
        };
        if key.len() < len {
            return false;
        }
        match (word(key, 0), word(&self.prefix, 0)) {
            (Some(a), Some(b)) if len <= 8 => (a ^ b) << (64 - 8 * len) == 0,
            (Some(a), Some(b)) if len <= 16 => a == b && word(key, len - 8) == word(&self.prefix, len - 8),
            _ => key[..len] == self.prefix[..len],
        }
    }

    /// Whether the key at `index` is `key`.
    #[inline]
    pub(super) fn is_at(&self, index: usize, key: &[u8]) -> bool {
        index < self.len() && self.keys[index].as_slice() == key
    }

    /// Whether `key` belongs right behind the key at `index`.
    #[inline]
    pub(super) fn is_next(&self, index: usize, key: &[u8]) -> bool {
        let len = self.len();
        index < len && self.key(index) < key && (index + 1 == len || key < self.key(index + 1))
    }

    /// Whether `key` has the keys' common prefix and lies at or above the first of them, and at
    /// or below the last or at least below `fence`.
    #[inline]
    pub(super) fn surround(&self, key: &[u8], fence: Option<&[u8]>) -> bool {
        let Some(last) = self.len().checked_sub(1) else { return false };
        let prefix_len = usize::from(self.prefix_len);
        if prefix_len > 0 && !self.has_prefix(key) {
            return false;
        }
        let head = head_at(key, prefix_len);
        let from = head > self.heads[0] || (head == self.heads[0] && key >= self.key(0));
        from && (head < self.heads[last] || key <= self.key(last) || fence.is_none_or(|fence| key < fence))
    }

    /// The number of keys at or below `key`.
    #[inline]
    pub(super) fn upper(&self, key: &[u8]) -> usize {
        let (index, found) = self.search(key);
        index + usize::from(found)
    }

    /// The same without a call, for loops over many keys.
    #[inline(always)]
    pub(super) fn upper_at_once(&self, key: &[u8]) -> usize {
        let (index, found) = self.find(key);
        index + usize::from(found)
    }

    #[inline]
    fn heads_below(&self, head: i64) -> usize {
        let (lines, []) = self.heads.as_chunks::<LINE>() else { unreachable!("HEADS is whole lines") };
        let full: usize = lines.iter().map(|line| usize::from(line[LINE - 1] < head)).sum();
        // The last line ends in a head above every key, so it is never full.
        let Some(line) = lines.get(full) else { return HEADS };
        // The last of the line is not below. Halving the others without a branch takes a third of the
        // instructions of counting them.
        let four = usize::from(line[3] < head) * 4;
        let two = four + usize::from(line[four + 1] < head) * 2;
        full * LINE + two + usize::from(line[two] < head)
    }

    #[cold]
    fn search_ties(&self, from: usize, head: i64, key: &[u8]) -> (usize, bool) {
        let len = self.len();
        let ties = self.heads[from..len].partition_point(|&other| other <= head);
        match self.keys[from..from + ties].binary_search_by(|other| other.as_slice().cmp(key)) {
            Ok(index) => (from + index, true),
            Err(index) => (from + index, false),
        }
    }

    /// The keys that have memory of their own.
    pub(super) fn boxed(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().filter_map(|key| match key {
            Key::Boxed(bytes) => Some(&bytes[..]),
            Key::Inline { .. } => None,
        })
    }

    /// Inserts at its sorted place `index`; there must be room.
    pub(super) fn insert(&mut self, index: usize, key: Key) {
        let len = self.len();
        assert!(len < CAPACITY && index <= len);
        let bytes = key.as_slice();
        let prefix_len = usize::from(self.prefix_len);
        let shared = match prefix_len == 0 || self.has_prefix(bytes) {
            true => prefix_len,
            false => common_prefix(&self.prefix[..prefix_len], bytes),
        };
        let head = head_at(bytes, shared);
        insert_first(&mut self.keys[index..=len], key);
        self.len += 1;
        if len == 0 || shared < prefix_len {
            self.arrange();
        } else {
            self.heads.copy_within(index..len, index + 1);
            self.heads[index] = head;
        }
    }

    /// Adds a key above all others. Nothing is found before [`Self::arrange`].
    pub(super) fn push(&mut self, key: Key) {
        let len = self.len();
        assert!(len < CAPACITY);
        self.keys[len] = key;
        self.len += 1;
    }

    /// Takes out the key at `index`.
    pub(super) fn remove(&mut self, index: usize) -> Key {
        let len = self.len();
        assert!(index < len);
        self.keys[index..len].rotate_left(1);
        self.heads.copy_within(index + 1..len, index);
        self.heads[len - 1] = NO_HEAD;
        self.len -= 1;
        std::mem::replace(&mut self.keys[len - 1], Key::EMPTY)
    }

    /// Keeps the first `at` keys and returns the others.
    pub(super) fn split_at(&mut self, at: usize) -> Slots {
        let mut right = Slots::new();
        let len = self.len();
        for (to, from) in (at..len).enumerate() {
            right.keys[to] = std::mem::replace(&mut self.keys[from], Key::EMPTY);
        }
        right.len = (len - at) as u16;
        self.len = at as u16;
        self.arrange();
        right.arrange();
        right
    }

    /// Adds keys that are all greater; they must fit.
    pub(super) fn append(&mut self, right: &mut Slots) {
        let (len, more) = (self.len(), right.len());
        assert!(len + more <= CAPACITY);
        for index in 0..more {
            self.keys[len + index] = std::mem::replace(&mut right.keys[index], Key::EMPTY);
        }
        self.len += right.len;
        right.len = 0;
        self.arrange();
    }

    /// Finds the common prefix and computes every head.
    pub(super) fn arrange(&mut self) {
        let len = self.len();
        self.heads[len..].fill(NO_HEAD);
        let Some(last) = len.checked_sub(1) else {
            self.prefix_len = 0;
            return;
        };
        let shared = if last == 0 {
            // A single key guesses that its neighbours will differ in the last byte only;
            // each insert that proves it wrong shortens the prefix.
            self.key(0).len().saturating_sub(1)
        } else {
            common_prefix(self.keys[0].as_slice(), self.keys[last].as_slice())
        };
        let shared = shared.min(PREFIX_MAX);
        self.prefix[..shared].copy_from_slice(&self.keys[0].as_slice()[..shared]);
        self.prefix_len = shared as u8;
        for index in 0..len {
            self.heads[index] = head_at(self.keys[index].as_slice(), shared);
        }
    }
}

/// Puts an item before the others; the last of them goes.
#[inline]
pub(super) fn insert_first<T>(items: &mut [T], item: T) {
    let Some(others) = items.len().checked_sub(1) else { return };
    let first = items.as_mut_ptr();
    // SAFETY: all items but the last move up by one place, and the first place is filled anew: each
    // item is in one place again, the last one in `last`. Nothing in between can panic.
    let last = unsafe {
        let last = first.add(others).read();
        first.copy_to(first.add(1), others);
        first.write(item);
        last
    };
    drop(last);
}

/// The shortest key `k` with `left < k <= right`: what an inner node needs to tell two
/// neighbours apart.
pub(super) fn separator<'k>(left: &[u8], right: &'k [u8]) -> &'k [u8] {
    let shared = common_prefix(left, right);
    &right[..(shared + 1).min(right.len())]
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    /// Few different bytes, so that keys share prefixes and heads.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![0u8..3, Just(127u8), 128u8..130, Just(255u8)], 0..14)
    }

    proptest! {
        #[test]
        fn a_node_answers_as_a_sorted_list(
            keys in btree_set(key(), 0..=CAPACITY), others in vec(key(), 40),
        ) {
            let mut slots = Slots::new();
            for key in &keys {
                let (index, found) = slots.search(key);
                prop_assert!(!found);
                slots.insert(index, Key::new(key));
            }
            let sorted: Vec<&Vec<u8>> = keys.iter().collect();
            for wanted in keys.iter().chain(&others) {
                let expected = match sorted.binary_search(&wanted) {
                    Ok(index) => (index, true),
                    Err(index) => (index, false),
                };
                prop_assert_eq!(slots.search(wanted), expected, "{:?}", wanted);
                for index in 0..=keys.len() {
                    let next = expected == (index + 1, false) && index < keys.len();
                    prop_assert_eq!(slots.is_next(index, wanted), next, "{:?} behind {}", wanted, index);
                }
            }
        }

        #[test]
        fn an_item_put_first_moves_the_others(items in vec("[a-z]{0,3}", 1..9)) {
            let mut moved = items.clone();
            insert_first(&mut moved, "first".to_owned());
            prop_assert_eq!(&moved[0], "first");
            prop_assert_eq!(&moved[1..], &items[..items.len() - 1]);
        }

        #[test]
        fn heads_are_ordered_as_the_bytes(a in key(), b in key(), at in 0usize..15) {
            let padded = |key: &[u8]| {
                let mut eight: Vec<u8> = key.iter().skip(at).take(8).copied().collect();
                eight.resize(8, 0);
                eight
            };
            prop_assert_eq!(head_at(&a, at).cmp(&head_at(&b, at)), padded(&a).cmp(&padded(&b)));
        }
    }
}
