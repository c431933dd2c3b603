//! The ranges of one group, in key order, in pieces that versions of the routing table share.
//!
//! A split or merge makes a new version of its group's ranges; of many ranges it copies the piece that
//! it falls into, and the list of the pieces, so that a group that grows to a hundred thousand partitions
//! does not copy all of them with each. A group of few ranges is one piece, and looking there costs
//! what a plain list costs.

use std::ops::Index;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Route;

/// A piece that grows beyond so many ranges becomes two.
const PIECE_MAX: usize = 256;

/// See the module. No piece is empty; each begins behind the end of the one before it.
#[derive(Clone, Default)]
pub struct Routes {
    pieces: SmallVec<[Arc<[Route]>; 1]>,
    len: usize,
}

/// The ranges in key order.
pub type RoutesIter<'a> = std::iter::FlatMap<
    std::slice::Iter<'a, Arc<[Route]>>,
    std::slice::Iter<'a, Route>,
    fn(&'a Arc<[Route]>) -> std::slice::Iter<'a, Route>,
>;

impl Routes {
    /// Ranges in key order.
    pub(crate) fn new(routes: Vec<Route>) -> Self {
        let len = routes.len();
        Self { pieces: routes.chunks(PIECE_MAX).map(Arc::from).collect(), len }
    }

    /// How many ranges.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none: such a group is not there.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ranges in key order.
    pub fn iter(&self) -> RoutesIter<'_> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// The range at a place, counted from the first.
    pub fn get(&self, mut at: usize) -> Option<&Route> {
        for piece in &self.pieces {
            match at.checked_sub(piece.len()) {
                None => return piece.get(at),
                Some(behind) => at = behind,
            }
        }
        None
    }

    /// How many of the first ranges are so; all that are stand before all that are not.
    pub fn partition_point(&self, is_so: impl Fn(&Route) -> bool) -> usize {
        match self.pieces.partition_point(|piece| is_so(&piece[0])).checked_sub(1) {
            None => 0,
            Some(at) => self.before(at) + self.pieces[at].partition_point(is_so),
        }
    }

    /// The place of the range that begins with a key.
    pub fn position(&self, low: &[u8]) -> Option<usize> {
        let at = self.partition_point(|route| route.low[..] < *low);
        self.get(at).is_some_and(|route| route.low[..] == *low).then_some(at)
    }

    /// The range that begins with a key.
    pub fn beginning(&self, low: &[u8]) -> Option<&Route> {
        self.covering(low).filter(|route| route.low[..] == *low)
    }

    /// The range that covers a key: the last one that begins at or below it. `None` if there is none at
    /// all, for the first begins at the least key.
    #[inline]
    pub(crate) fn covering(&self, key: &[u8]) -> Option<&Route> {
        let piece = match &self.pieces[..] {
            [] => return None,
            [only] => only,
            pieces => &pieces[piece_of(pieces, key)],
        };
        if piece.len() == 1 {
            return Some(&piece[0]);
        }
        Some(&piece[within(piece, key)])
    }

    /// The last range that begins below a key; of all, without one.
    pub(crate) fn below(&self, high: Option<&[u8]>) -> Option<&Route> {
        let Some(high) = high else { return self.pieces.last()?.last() };
        let is_below = |route: &Route| route.low[..] < *high;
        let piece = &self.pieces[self.pieces.partition_point(|piece| is_below(&piece[0])).checked_sub(1)?];
        Some(&piece[piece.partition_point(is_below) - 1])
    }

    /// The ranges from the one that covers a key.
    pub(crate) fn from(&self, key: &[u8]) -> impl Iterator<Item = &Route> {
        let at = piece_of(&self.pieces, key);
        let skipped = self.pieces.get(at).map_or(0, |piece| within(piece, key));
        self.pieces.iter().skip(at).flat_map(|piece| piece.iter()).skip(skipped)
    }

    /// How many ranges are in the pieces before one.
    fn before(&self, piece: usize) -> usize {
        self.pieces[..piece].iter().map(|piece| piece.len()).sum()
    }

    /// Adds a range whose first key is in the middle of another's.
    pub(crate) fn insert(&mut self, route: Route) {
        let at = piece_of(&self.pieces, &route.low);
        let mut piece = self.pieces.get(at).map_or_else(Vec::new, |piece| piece.to_vec());
        let place = piece.partition_point(|before| before.low < route.low);
        piece.insert(place, route);
        self.len += 1;
        if piece.len() > PIECE_MAX {
            let upper = piece.split_off(piece.len() / 2);
            self.pieces.insert(at + 1, upper.into());
        }
        match self.pieces.get_mut(at) {
            Some(place) => *place = piece.into(),
            None => self.pieces.push(piece.into()),
        }
    }

    /// Takes the range away that begins with a key, which then belongs to the one before it.
    pub(crate) fn remove(&mut self, low: &[u8]) {
        let at = piece_of(&self.pieces, low);
        let Some(piece) = self.pieces.get(at) else { return };
        let left: Vec<Route> = piece.iter().filter(|route| route.low[..] != *low).cloned().collect();
        self.len -= piece.len() - left.len();
        if left.is_empty() {
            self.pieces.remove(at);
        } else if left.len() < piece.len() {
            self.pieces[at] = left.into();
        }
    }
}

/// The piece that a key falls into: the last that begins at or below it, or the first.
fn piece_of(pieces: &[Arc<[Route]>], key: &[u8]) -> usize {
    pieces.partition_point(|piece| piece[0].low[..] <= *key).saturating_sub(1)
}

/// The same among the ranges of a piece.
fn within(piece: &[Route], key: &[u8]) -> usize {
    piece.partition_point(|route| route.low[..] <= *key).saturating_sub(1)
}

impl Index<usize> for Routes {
    type Output = Route;

    fn index(&self, at: usize) -> &Route {
        self.get(at).expect("a range of the group")
    }
}

impl<'a> IntoIterator for &'a Routes {
    type Item = &'a Route;
    type IntoIter = RoutesIter<'a>;

    fn into_iter(self) -> RoutesIter<'a> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    use super::*;
    use crate::id::{ExecutorId, GroupId, PartitionId};
    use crate::partition::{Partition, PartitionData, PartitionRef};
    use crate::random::RandomStream;
    use crate::storage::KeyBuf;

    fn key(number: u16) -> KeyBuf {
        // The least key is the empty one.
        if number == 0 { KeyBuf::new() } else { KeyBuf::from_slice(&number.to_be_bytes()) }
    }

    fn partition(id: u32) -> PartitionRef {
        let data = PartitionData::new(KeyBuf::new(), None);
        Partition::leak(PartitionId(id), GroupId(7), ExecutorId(0), data, false)
    }

    /// All that can be asked, beside a map of the same ranges.
    fn compare(routes: &Routes, model: &BTreeMap<KeyBuf, PartitionId>, asked: &KeyBuf) {
        assert_eq!(routes.len(), model.len());
        let listed = routes.iter().map(|route| (route.low.clone(), route.partition()));
        assert!(listed.eq(model.iter().map(|(low, id)| (low.clone(), *id))));
        let below = model.range(..=asked.clone()).count();
        assert_eq!(routes.partition_point(|route| route.low <= *asked), below);
        let last = model.range(..=asked.clone()).next_back();
        assert_eq!(routes.covering(asked).map(Route::partition), last.map(|it| *it.1));
        assert_eq!(routes.get(below).map(Route::partition), model.iter().nth(below).map(|it| *it.1));
        let from = routes.from(asked).map(Route::partition);
        assert!(from.eq(model.values().skip(below - 1).copied()));
        let place = model.keys().position(|low| low == asked);
        assert_eq!(routes.position(asked), place);
        assert_eq!(routes.beginning(asked).map(Route::partition), model.get(asked).copied());
        let last_below = model.range(..asked.clone()).next_back().map(|it| *it.1);
        assert_eq!(routes.below(Some(asked)).map(Route::partition), last_below);
        assert_eq!(routes.below(None).map(Route::partition), model.values().next_back().copied());
    }

    #[test]
    fn ranges_are_found_where_they_are_whatever_the_pieces() {
        let mut random = RandomStream::new(12);
        let mut routes = Routes::new(vec![Route { low: key(0), partition: partition(0) }]);
        let mut model = BTreeMap::from([(key(0), PartitionId(0))]);
        for id in 1..3_000 {
            let before = routes.clone();
            let were = model.clone();
            let low = key(1 + random.below(2_000) as u16);
            // It grows first, then shrinks.
            if random.below(10) < if id < 1_800 { 8 } else { 2 } {
                if let Entry::Vacant(place) = model.entry(low.clone()) {
                    routes.insert(Route { low, partition: partition(id) });
                    place.insert(PartitionId(id));
                }
            } else {
                routes.remove(&low);
                model.remove(&low);
            }
            let asked = key(random.below(2_002) as u16);
            compare(&routes, &model, &asked);
            compare(&before, &were, &asked);
        }
        assert!(model.len() > 1);
    }

    #[test]
    fn a_change_copies_one_piece() {
        let all = (0..10_000).map(|number| Route { low: key(number), partition: partition(number.into()) });
        let before = Routes::new(all.collect());
        let mut after = before.clone();
        after.insert(Route { low: KeyBuf::from_slice(&[7, 7, 7]), partition: partition(10_000) });
        let shared =
            after.pieces.iter().filter(|piece| before.pieces.iter().any(|it| Arc::ptr_eq(it, piece)));
        assert_eq!(shared.count(), before.pieces.len() - 1);
        assert!(after.pieces.iter().all(|piece| piece.len() <= PIECE_MAX));
    }
}
