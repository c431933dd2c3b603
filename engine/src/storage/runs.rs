//! Runs of new rows: before-images that say "it was absent", for many neighbours at once.
//!
//! Most new rows come behind others that are new: the lines of an order, the orders of a
//! district, whatever counts upwards. A *run* says of all rows between two keys that they were
//! absent before one epoch:
//!
//! ```text
//! tree:     … 4 5 | 6 7 8 9 | 20 …       snapshot S = 10
//! run:              [6 … 9] since 12     S sees none of them; a snapshot of 12 or later does
//! ```
//!
//! It grows by a row that comes directly behind its last one, as long as no snapshot was
//! registered since it began: for those that are there its rows are all equally new.
//!
//! Invariant: a row of the tree under a key in a run is one that was absent before the run's
//! epoch, unless an image of its own says otherwise. So an image is asked for first, and a run
//! grows only over keys between which no row lies, nor lay: the rows of a transaction that also
//! removes some do not go into runs ([`super::versions::Replaced::may_run`]).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use super::key::{KeyBuf, reaches};
use super::tree::Tree;
use crate::id::Epoch;

type KeyBound<'k> = Bound<&'k [u8]>;

/// What a run takes, in bytes, about.
const RUN_BYTES: u64 = 160;

/// The runs of one tree, by their first keys; they do not overlap.
#[derive(Default)]
pub(super) struct Runs {
    runs: BTreeMap<Box<[u8]>, Run>,
    /// The halves of one that was cut count once.
    bytes: u64,
}

struct Run {
    /// Included where rows may come behind it.
    end: Bound<KeyBuf>,
    since: Epoch,
}

impl Run {
    fn end(&self) -> KeyBound<'_> {
        self.end.as_ref().map(|key| &key[..])
    }

    fn reaches(&self, key: &[u8]) -> bool {
        reaches(self.end(), key)
    }
}

impl Runs {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Memory held, in bytes; what a cut divides adds up to the whole.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Before which epoch the row under `key` was absent, if it is in a run.
    pub fn since(&self, key: &[u8]) -> Option<Epoch> {
        let (_, run) = self.runs.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        run.reaches(key).then_some(run.since)
    }

    /// Takes in the row under `key`, in no run yet, that a transaction of `epoch` has put into
    /// `tree`; `newest` is the newest snapshot.
    pub fn add(&mut self, tree: &Tree, key: &[u8], epoch: Epoch, newest: Epoch) {
        let before = self.runs.range_mut::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).next_back();
        if let Some((_, run)) = before
            && run.since > newest
            && let Bound::Included(last) = &mut run.end
            && tree.seek_back(Bound::Excluded(key)).is_some_and(|(before, _)| *before == last[..])
        {
            last.clear();
            last.extend_from_slice(key);
            return;
        }
        self.runs.insert(key.into(), Run { end: Bound::Included(KeyBuf::from_slice(key)), since: epoch });
        self.bytes += RUN_BYTES;
    }

    /// The runs between the bounds, which are not the wrong way round, whose rows `snapshot` does
    /// not see: their first and last keys, ascending.
    pub fn unseen(
        &self,
        low: KeyBound<'_>,
        high: KeyBound<'_>,
        snapshot: Epoch,
    ) -> impl DoubleEndedIterator<Item = (&[u8], KeyBound<'_>)> + use<'_> {
        // One that begins before the bounds may reach into them.
        let from = match low {
            Bound::Included(key) | Bound::Excluded(key) => {
                let before = self.runs.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
                before.map(|(first, _)| &first[..]).next_back().map_or(low, Bound::Included)
            }
            Bound::Unbounded => low,
        };
        let runs = self.runs.range::<[u8], _>((from, high));
        let unseen = runs.filter(move |(_, run)| run.since > snapshot);
        unseen.map(|(first, run)| (&first[..], run.end()))
    }

    /// The keys of rows of `tree` between the bounds that `snapshot` does not see, as far as runs
    /// tell, ascending.
    pub fn unseen_rows<'t>(
        &'t self,
        tree: &'t Tree,
        low: KeyBound<'t>,
        high: KeyBound<'t>,
        snapshot: Epoch,
    ) -> impl DoubleEndedIterator<Item = &'t [u8]> + use<'t> {
        let rows = move |(first, end)| tree.range(higher(low, first), lower(high, end)).map(|(key, _)| key);
        self.unseen(low, high, snapshot).flat_map(rows)
    }

    /// Drops the runs that every snapshot from `oldest` on sees (with `None`: all of them),
    /// looking at `limit` of them from `from` on; where to go on.
    pub fn collect(&mut self, oldest: Option<Epoch>, from: Option<&[u8]>, limit: usize) -> Option<Box<[u8]>> {
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let mut runs = self.runs.range::<[u8], _>((from, Bound::Unbounded));
        let seen = |run: &Run| oldest.is_none_or(|oldest| run.since <= oldest);
        let dropped: Vec<Box<[u8]>> =
            runs.by_ref().take(limit).filter(|(_, run)| seen(run)).map(|(first, _)| first.clone()).collect();
        let next = runs.next().map(|(first, _)| first.clone());
        for first in dropped {
            self.runs.remove(&first);
            self.bytes = self.bytes.saturating_sub(RUN_BYTES);
        }
        if self.runs.is_empty() {
            self.bytes = 0;
        }
        next
    }

    /// Cuts off everything from `key` on.
    pub fn split_off(&mut self, key: &[u8]) -> Runs {
        let mut right = Runs { runs: self.runs.split_off(key), bytes: 0 };
        right.bytes = (right.runs.len() as u64 * RUN_BYTES).min(self.bytes);
        self.bytes -= right.bytes;
        if let Some(mut last) = self.runs.last_entry()
            && last.get().reaches(key)
        {
            let end = std::mem::replace(&mut last.get_mut().end, Bound::Excluded(KeyBuf::from_slice(key)));
            let since = last.get().since;
            right.runs.entry(key.into()).or_insert(Run { end, since });
        }
        right
    }

    /// Takes in the runs of a tree to the right.
    pub fn append(&mut self, mut right: Runs) {
        self.runs.append(&mut right.runs);
        self.bytes += right.bytes;
    }
}

/// The tighter of two bounds from below.
fn higher<'k>(low: KeyBound<'k>, first: &'k [u8]) -> KeyBound<'k> {
    match low {
        Bound::Included(key) | Bound::Excluded(key) if key >= first => low,
        _ => Bound::Included(first),
    }
}

/// The tighter of two bounds from above.
fn lower<'k>(high: KeyBound<'k>, end: KeyBound<'k>) -> KeyBound<'k> {
    let key_of = |bound: KeyBound<'k>| match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    };
    match (key_of(high), key_of(end)) {
        (None, _) => end,
        (_, None) => high,
        (Some(high_key), Some(end_key)) => match high_key.cmp(end_key) {
            Ordering::Less => high,
            Ordering::Equal if matches!(high, Bound::Excluded(_)) => high,
            _ => end,
        },
    }
}
