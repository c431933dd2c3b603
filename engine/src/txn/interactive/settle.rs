//! Images of writers that have ended become rows, or nothing: *settled before they are looked at*.
//!
//! A transaction of many changes commits, or is rolled back, at one moment, and its images are put in place, or
//! taken out, afterwards in [`slices`](super::slices). Until then whoever comes to a key does it there:
//!
//! | who meets an image of | running | committed in E | aborted |
//! |---|---|---|---|
//! | reads a key; checks "changed since S" of a row it will write | passes beneath | settles it first | passes beneath |
//! | scans | passes beneath | settles the next ones of its range, scans so far, goes on | passes beneath |
//! | writes or locks, checks a unique key | waits | settles it first | takes it out first |
//! | validates reads of S | is no change | is one if E > S ([`Root::changed_since`]) | is none |
//! | splits, merges, moves, makes memory again | it goes along | it goes along | it goes along |
//! | a checkpoint's slice | writes the row beneath | settles all from its key on first, in pieces | as running |
//!
//! So no reader lays committed images over rows, and each is settled once, whoever comes. Definitions do not meet
//! any: the table locks of a transaction stay until it is settled.
//!
//! *Settling a key*: the image goes into the tree with a fresh stamp, which says an epoch no older than E; what was
//! beneath becomes an old version superseded by E if a snapshot below E is registered. Nothing is logged, for the
//! commit has been, and no undo takes it back: it is no part of the run that happens to do it.
//!
//! A checkpoint's slice that looked past images would tag a row with the number of the commit, and recovery would
//! take it for newer than that.
//!
//! [`Root::changed_since`]: crate::partition::Root::changed_since

use std::ops::Bound;

use crate::id::{Epoch, GroupId, TreeId};
use crate::partition::{Ended, PartitionRef};
use crate::program::Stop;
use crate::storage::row::entry_bytes;
use crate::storage::versions::Replaced;
use crate::storage::{KeyBuf, Row};
use crate::txn::{Direction, KeyRange, Place, Txn};

/// A scan settles what there is among as many images as a slice has, but for this part, before it goes on.
const SETTLED_AHEAD: usize = 4;
/// Having settled so many, a one-shot looks whether it has outlived its budget.
const SETTLED_WITHOUT_A_LOOK: u64 = 2_048;

/// What a run has put in place of transactions that have committed.
#[derive(Default)]
pub(in crate::txn) struct Settled {
    /// How many images.
    images: u64,
    /// No snapshot sees what there was before the commits of this epoch.
    unseen_before: Option<Epoch>,
}

/// How far a checkpoint has settled a root, if nobody has committed images there since.
pub(crate) struct SettledTo {
    decided: u64,
    /// `None`: all of it.
    key: Option<KeyBuf>,
}

impl Txn<'_> {
    /// Puts the image of a writer that has committed in place, or takes that of an aborted one out, if there is
    /// one under this key.
    #[cold]
    pub(in crate::txn) fn settle_key(&mut self, partition: PartitionRef, place: Place, key: &[u8]) {
        let Some(root) = self.root_whatever(partition, place) else { return };
        let Some(Ended { image, committed }) = root.ended_at(key) else { return };
        if Some(image.writer) == self.transaction_id() {
            // A statement that was on its way when its transaction ended: it is refused, and takes it back.
            return;
        }
        let (writer, departure) = (image.writer, image.departure);
        #[cfg(test)]
        crate::simulation::happened(match (committed, self.finishing == Some(writer)) {
            (Some(_), true) => "settled in a slice",
            (Some(_), false) => "settled by who came",
            (None, true) => "swept in a slice",
            (None, false) => "swept for a writer",
        });
        if let Some(epoch) = committed {
            let row = image.row.map(Row::from);
            // SAFETY: held by this transaction; the reference ends with the statement.
            let stamp = unsafe { partition.data_mut() }.next_sequence();
            let size = |row: &[u8]| entry_bytes(key, row);
            let mut grown = row.as_deref().map_or(0, size);
            let is_there = row.is_some();
            let old = match row {
                Some(row) => root.put(key, row, stamp),
                None => root.remove(key, stamp),
            };
            grown -= old.as_deref().map_or(0, size);
            // SAFETY: as above.
            unsafe { partition.data_mut() }.bytes += grown;
            self.worker.memory.add(grown, &self.shared.memory);
            if is_there || old.is_some() {
                let replaced = Replaced { key, row: old.as_deref(), departure, may_run: false };
                self.keep_settled(partition, place, replaced, epoch);
            }
            self.settled.images += 1;
        }
        self.drop_lock(partition, place, key, writer);
    }

    /// Keeps what a settled row has replaced, for snapshots from before the commit.
    fn keep_settled(&mut self, partition: PartitionRef, place: Place, replaced: Replaced<'_>, epoch: Epoch) {
        let snapshots = &self.shared.snapshots;
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::SettleForgetsPast) {
            return;
        }
        // Whoever registers after the commit sees it, so what nobody needed once nobody will.
        if self.settled.unseen_before == Some(epoch) || !snapshots.any() {
            return;
        }
        if snapshots.oldest().is_none_or(|oldest| oldest >= epoch) {
            self.settled.unseen_before = Some(epoch);
            return;
        }
        let is_wanted = match self.is_table(place.id) {
            true => snapshots.wanted().has(place.id),
            // Snapshots of transactions look through indexes, too.
            false => snapshots.any_transaction(),
        };
        let Some(root) = self.root_whatever(partition, place).filter(|_| is_wanted) else { return };
        #[cfg(test)]
        crate::simulation::happened("old row of a settled one kept");
        let first = root.versions.is_empty();
        let kept = root.keep_version(replaced, epoch, snapshots.newest());
        if first {
            snapshots.note_versions(partition);
        }
        self.worker.report_versions(self.shared, kept as i64);
    }

    /// Before a range of a held partition is scanned: settles the next images in it. Answers the key up to which
    /// the scan may go, if that is not the whole range.
    #[inline]
    pub(in crate::txn) fn settle_ahead(
        &mut self,
        partition: PartitionRef,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Option<KeyBuf>, Stop> {
        if !self.root(partition, place)?.has_unsettled() {
            return Ok(None);
        }
        self.settle_next(partition, place, range, direction)
    }

    #[cold]
    fn settle_next(
        &mut self,
        partition: PartitionRef,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Option<KeyBuf>, Stop> {
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::UnsettledSkipped) {
            return Ok(None);
        }
        let one_shot = self.interactive.is_none() && !self.is_maintenance();
        if one_shot && self.settled.images > SETTLED_WITHOUT_A_LOOK && self.budget_exceeded() {
            return Err(Stop::Interactive);
        }
        let mut keys = Vec::new();
        let root = self.root(partition, place)?;
        let ascending = direction == Direction::Ascending;
        let images_max = self.shared.config.slice_changes_max.div_ceil(SETTLED_AHEAD);
        let upto = root.unsettled_keys((range.low, range.high), ascending, images_max, &mut keys);
        for key in &keys {
            self.settle_key(partition, place, key);
        }
        Ok(upto)
    }

    /// Settles all images of a range of a held partition.
    pub(in crate::txn) fn settle_range(
        &mut self,
        partition: PartitionRef,
        place: Place,
        range: KeyRange<'_>,
    ) -> Result<(), Stop> {
        let mut from = None;
        loop {
            let low = from.as_deref().map_or(range.low, Bound::Excluded);
            let left = KeyRange { low, high: range.high };
            match self.settle_ahead(partition, place, left, Direction::Ascending)? {
                Some(upto) => from = Some(upto),
                None => return Ok(()),
            }
        }
    }

    /// Settles the next images of a table from a key on, in the partition that covers another one; whether none
    /// is left there. It is for a checkpoint, whose slice takes as long, and tells the next one how far it came.
    pub(crate) fn settle_table(
        &mut self,
        (group, low): (GroupId, &[u8]),
        tree: TreeId,
        from: Option<&[u8]>,
        come: &mut Option<SettledTo>,
    ) -> Result<bool, Stop> {
        let partition = self.partition_for(group, low)?;
        // SAFETY: held by this transaction; the reference ends with the statement.
        let roots = unsafe { partition.data_mut() }.roots.iter();
        let found = roots.enumerate().find(|(_, root)| root.id == Some(tree) && root.has_unsettled());
        let Some((at, root)) = found else { return Ok(true) };
        // Whoever has committed since may have images before that.
        let decided = root.decided();
        let known = come.take().filter(|come| come.decided == decided);
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::SliceBeneath) {
            return Ok(true);
        }
        let place = Place { group, root: at as u32, id: tree, version: root.version };
        let low = match &known {
            Some(SettledTo { key: None, .. }) => {
                *come = known;
                return Ok(true);
            }
            Some(SettledTo { key: Some(key), .. }) => Bound::Excluded(&key[..]),
            None => from.map_or(Bound::Unbounded, Bound::Included),
        };
        let range = KeyRange { low, high: Bound::Unbounded };
        let upto = self.settle_next(partition, place, range, Direction::Ascending)?;
        #[cfg(test)]
        crate::simulation::happened("settled by a checkpoint");
        self.look = true;
        let through = upto.is_none();
        *come = Some(SettledTo { decided, key: upto });
        Ok(through)
    }
}

impl<'k> KeyRange<'k> {
    /// What of the range a scan that has come to a key has before it, with that key, and behind it.
    pub(in crate::txn) fn divided(self, key: &'k [u8], direction: Direction) -> (Self, Self) {
        match direction {
            Direction::Ascending => (
                Self { low: self.low, high: Bound::Included(key) },
                Self { low: Bound::Excluded(key), high: self.high },
            ),
            Direction::Descending => (
                Self { low: Bound::Included(key), high: self.high },
                Self { low: self.low, high: Bound::Excluded(key) },
            ),
        }
    }
}
