//! Reads: points and ranges, through a transaction's own uncommitted images.

use std::iter::Peekable;
use std::ops::{Bound, ControlFlow};

use smallvec::SmallVec;

use super::statement_view::{Before, Past};
use super::{Direction, KeyRange, Place, Txn};
use crate::id::{Epoch, TxnId};
use crate::index_uses::{Counter, IndexUse, IndexUses};
use crate::locks::ObjectMode;
use crate::partition::{PartitionRef, Root};
use crate::program::Stop;
use crate::schema::IndexDef;
use crate::storage::Tree;
use crate::storage::key::{KeyBuf, excludes_all, reaches};
use crate::storage::tree::Pointer;
use crate::table::TableMeta;

/// What a scan calls with every key and value.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

/// What a scan calls with every key that it finds and passes over: its reader sees no row there.
pub(super) type Pass<'p> = dyn FnMut(&[u8]) -> ControlFlow<()> + 'p;

/// For whoever goes on as far as it takes.
pub(super) fn pass(_key: &[u8]) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

impl Txn<'_> {
    /// The row under a storage key.
    #[inline]
    pub fn get(&mut self, table: &TableMeta, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        self.read(Place::of(table), key)
    }

    /// Visits the rows of a range of storage keys in order, over all its partitions.
    pub fn scan(
        &mut self,
        table: &TableMeta,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Stop> {
        self.scan_place(Place::of(table), range, direction, visit)
    }

    /// Visits the entries of a range of index keys in order: the entry's key, and the storage
    /// key of its row.
    pub fn scan_index(
        &mut self,
        table: &TableMeta,
        index: &IndexDef,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Stop> {
        let Some(index) = table.index(index.id) else { return Err(Stop::Recompile) };
        self.scan_place(Place::of_index(table, index), range, direction, visit)
    }

    /// Counts what was looked for in a table by an index of it.
    pub fn count_use(&self, uses: &IndexUses, used: IndexUse) {
        uses.add(self.counter(), used);
    }

    /// Who counts what this transaction does.
    #[inline]
    pub(super) fn counter(&self) -> Counter {
        let executor = self.worker.executor.map(|own| usize::from(own.0));
        Counter { executor, executors: self.shared.seats().len() }
    }

    /// How many partitions a table has; 1 of a reference table.
    pub fn partitions_of_table(&self, table: &TableMeta) -> usize {
        self.worker.routing.routes(table.group).len().max(1)
    }

    #[inline]
    pub(super) fn read(&mut self, place: Place, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        if self.reads_beneath {
            return self.read_before(place, key);
        }
        self.read_now(place, key)
    }

    /// A row as it was before the routines of the statement wrote.
    #[cold]
    fn read_before(&mut self, place: Place, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let before = self.replaced(place).and_then(|replaced| replaced.get(key));
        match before.map(|before| matches!(before, Before::Committed)) {
            None => self.read_now(place, key),
            Some(true) => {
                self.note_read(place, key);
                self.read_as_of(place, key, self.reads_at(place), false)
            }
            Some(false) => {
                self.note_read(place, key);
                match self.replaced(place).and_then(|replaced| replaced.get(key)) {
                    Some(Before::Was(row)) => Ok(row.as_deref()),
                    _ => Ok(None),
                }
            }
        }
    }

    #[inline]
    fn read_now(&mut self, place: Place, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        if self.interactive.is_some() {
            self.note_read(place, key);
            return self.read_as_of(place, key, self.reads_at(place), true);
        }
        if place.is_reference() {
            self.admit_reference(place)?;
            return self.reference_get(place, key);
        }
        let partition = self.partition_for(place.group, key)?;
        self.worker.scratch.footprint.note_read(place.group, key);
        let root = self.root(partition, place)?;
        self.admit(root, place, ObjectMode::AccessShare)?;
        let root = if root.has_unsettled() { self.settled_root(partition, place, key)? } else { root };
        let found = root.row_near(key);
        // SAFETY: held by this transaction; `found` is only read meanwhile.
        let epoch = unsafe { partition.data_mut() }.epoch_of(found.stamp);
        self.depend(epoch);
        Ok(found.row.map(|row| &**row))
    }

    /// A row as a statement of an interactive transaction sees it: its own image (`own`), else the
    /// row as of `snapshot`, else the committed one.
    pub(super) fn read_as_of(
        &mut self,
        place: Place,
        key: &[u8],
        snapshot: Option<Epoch>,
        own: bool,
    ) -> Result<Option<&[u8]>, Stop> {
        if self.pages.is_some() && !place.is_reference() {
            return self.page_row(place, key, snapshot, own);
        }
        if place.is_reference() {
            self.admit_reference(place)?;
            if own
                && self.sees_overlay(place)
                && let Some(image) = self.own_reference_image(place, key)?
            {
                return Ok(image);
            }
            return match snapshot {
                None => self.reference_get(place, key),
                Some(snapshot) => self.past_reference_get(place, key, snapshot),
            };
        }
        let partition = self.partition_for(place.group, key)?;
        self.worker.scratch.footprint.note_read(place.group, key);
        self.row_in(partition, place, key, (snapshot, own))
    }

    /// A row of a held partition, as [`Txn::read_as_of`] tells it. It is to be used before the partition is
    /// given back or changed.
    pub(super) fn row_in(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        (snapshot, own): (Option<Epoch>, bool),
    ) -> Result<Option<&'static [u8]>, Stop> {
        let root = self.root(partition, place)?;
        self.admit(root, place, ObjectMode::AccessShare)?;
        let root = if root.has_unsettled() { self.settled_root(partition, place, key)? } else { root };
        if let Some(me) = self.transaction_id().filter(|_| own)
            && let Some(image) = own_image(root, key, me)
        {
            return Ok(image);
        }
        let found = root.row(key);
        // SAFETY: held by this transaction; `root` and `found` are only read meanwhile.
        let epoch = unsafe { partition.data_mut() }.epoch_of(found.stamp);
        let Some(snapshot) = snapshot else {
            self.depend(epoch);
            return Ok(found.row.map(|row| &**row));
        };
        if root.since > snapshot {
            return Err(self.past_is_gone());
        }
        self.depend(epoch.min(snapshot));
        Ok(root.versions.at(key, snapshot, found.row))
    }

    /// A root in which the row under a key is what is committed.
    #[cold]
    pub(super) fn settled_root(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
    ) -> Result<&'static mut Root, Stop> {
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::UnsettledSkipped) {
            return self.root(partition, place);
        }
        self.settle_key(partition, place, key);
        self.root(partition, place)
    }

    /// Whether reads of a reference table must look at this transaction's uncommitted images.
    fn sees_overlay(&self, _place: Place) -> bool {
        self.interactive.as_ref().is_some_and(|interactive| interactive.wrote_references())
    }

    fn own_reference_image(
        &mut self,
        place: Place,
        key: &[u8],
    ) -> Result<Option<Option<&'static [u8]>>, Stop> {
        let Some(me) = self.transaction_id() else { return Ok(None) };
        let partition = self.partition_for(place.group, key)?;
        let root = self.root(partition, place)?;
        Ok(own_image(root, key, me))
    }

    pub(super) fn scan_place(
        &mut self,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Stop> {
        if excludes_all(range.low, range.high) {
            return Ok(());
        }
        if self.worker.scratch.footprint.notes_scans() {
            self.worker.scratch.footprint.note_scan(place.group, range.start(), range.end());
        }
        if self.notes_reads(place) {
            return self.scan_noted(place, range, direction, visit);
        }
        self.scan_plain(place, range, direction, visit)
    }

    /// Scans, and remembers the range up to where the visitor had enough.
    fn scan_noted(
        &mut self,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Stop> {
        let mut end: Option<Box<[u8]>> = None;
        let scanned = self.scan_plain(place, range, direction, &mut |key, row| {
            let flow = visit(key, row);
            if flow.is_break() {
                end = Some(Box::from(key));
            }
            flow
        });
        let read = match (&end, direction) {
            (None, _) => range,
            (Some(end), Direction::Ascending) => KeyRange { low: range.low, high: Bound::Included(end) },
            (Some(end), Direction::Descending) => KeyRange { low: Bound::Included(end), high: range.high },
        };
        self.note_read_range(place, read);
        scanned
    }

    fn scan_plain(
        &mut self,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Stop> {
        if place.is_reference() {
            self.admit_reference(place)?;
            return self.scan_reference(place, range, direction, visit);
        }
        if self.pages.is_some() {
            return self.scan_pages(place, range, direction, visit);
        }
        match direction {
            Direction::Ascending => self.scan_up(place, range, visit),
            Direction::Descending => self.scan_down(place, range, visit),
        }
    }

    fn scan_reference(
        &mut self,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Stop> {
        let me = self.transaction_id();
        let root = if self.sees_overlay(place) {
            let partition = self.partition_for(place.group, &[])?;
            Some(&*self.root(partition, place)?)
        } else {
            None
        };
        let replaced = self.kept_replaced(place);
        let past = replaced.as_ref().map(|replaced| Past { replaced, low: &[], high: None });
        let own = patches(root, range, direction, me, None, past);
        let scanned = match self.reads_at(place) {
            Some(snapshot) => self.reference_at(place, snapshot).map(|table| {
                let _ = merged_scan(&table.tree, range, direction, own, visit, &mut pass);
                table.epoch
            }),
            None => self.reference_tree(place).map(|tree| {
                let _ = merged_scan(tree, range, direction, own, visit, &mut pass);
                Epoch(0)
            }),
        };
        self.depend(scanned?);
        Ok(())
    }

    fn scan_up(&mut self, place: Place, range: KeyRange<'_>, visit: &mut Visit<'_>) -> Result<(), Stop> {
        let mut at = KeyBuf::from_slice(range.start());
        loop {
            let partition = match self.partition_for(place.group, &at) {
                Ok(partition) => partition,
                Err(stop) => return Err(self.miss_range(place, &at, range, stop)),
            };
            let flow = self.scan_pieces(partition, place, range, Direction::Ascending, visit)?;
            // SAFETY: held by this transaction; read for the length of the match.
            match &unsafe { partition.data_mut() }.high {
                Some(high) if flow.is_continue() && reaches(range.high, high) => at = high.clone(),
                _ => return Ok(()),
            }
        }
    }

    fn scan_down(&mut self, place: Place, range: KeyRange<'_>, visit: &mut Visit<'_>) -> Result<(), Stop> {
        // Keys below `at` are left; an included upper bound belongs to the partition that
        // covers it, which differs from the one below it only at a boundary.
        let mut at = range.end();
        loop {
            let partition = match self.partition_below(place.group, at.as_deref()) {
                Ok(partition) => partition,
                Err(stop) => return Err(self.miss_range(place, range.start(), range, stop)),
            };
            let flow = self.scan_pieces(partition, place, range, Direction::Descending, visit)?;
            // SAFETY: held by this transaction; read until the end of the iteration.
            let low = &unsafe { partition.data_mut() }.low;
            let more = match range.low {
                Bound::Included(bound) => *bound < low[..],
                Bound::Excluded(bound) => *bound < low[..],
                Bound::Unbounded => true,
            };
            if flow.is_break() || low.is_empty() || !more {
                return Ok(());
            }
            at = Some(low.clone());
        }
    }

    /// A scan that missed one partition will miss the others of its range too, from `low` on.
    pub(super) fn miss_range(&mut self, place: Place, low: &[u8], range: KeyRange<'_>, stop: Stop) -> Stop {
        if stop == Stop::Restart {
            self.worker.scratch.missing.add_range(place.group, low, range.end().as_deref());
        }
        stop
    }

    /// Scans a range in a partition; in pieces where others' images are to be settled before.
    fn scan_pieces(
        &mut self,
        partition: PartitionRef,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Stop> {
        let mut upto = self.settle_ahead(partition, place, range, direction)?;
        let mut done: Option<KeyBuf> = None;
        loop {
            let left = done.as_deref().map_or(range, |done| range.divided(done, direction).1);
            let piece = upto.as_deref().map_or(left, |upto| left.divided(upto, direction).0);
            let flow = self.scan_partition(partition, place, piece, direction, visit, &mut pass)?;
            let Some(key) = upto.take().filter(|_| flow.is_continue()) else { return Ok(flow) };
            let left = range.divided(&key, direction).1;
            upto = self.settle_ahead(partition, place, left, direction)?;
            done = Some(key);
        }
    }

    /// Scans a range in a partition in which nothing is to be settled.
    pub(super) fn scan_partition(
        &mut self,
        partition: PartitionRef,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
        pass: &mut Pass<'_>,
    ) -> Result<ControlFlow<()>, Stop> {
        let root = self.root(partition, place)?;
        self.admit(root, place, ObjectMode::AccessShare)?;
        let (me, snapshot) = (self.transaction_id(), self.reads_at(place));
        if snapshot.is_some_and(|snapshot| root.since > snapshot) {
            return Err(self.past_is_gone());
        }
        let replaced = self.kept_replaced(place);
        let own = if me.is_some() || replaced.is_some() {
            // SAFETY: held by this transaction; read until the end of the scan.
            let data = unsafe { partition.data_mut() };
            let (low, high) = (&data.low[..], data.high.as_deref());
            let past = replaced.as_ref().map(|replaced| Past { replaced, low, high });
            patches(Some(root), range, direction, me, snapshot, past)
        } else {
            None
        };
        let (flow, stamp) = merged_scan(root.rows(), range, direction, own, visit, pass);
        // SAFETY: held by this transaction; the reference ends with the statement.
        let epoch = unsafe { partition.data_mut() }.epoch_of(stamp);
        self.depend(snapshot.map_or(epoch, |snapshot| epoch.min(snapshot)));
        Ok(flow)
    }
}

/// The uncommitted image of a row, if `me` wrote one.
pub(super) fn own_image(root: &Root, key: &[u8], me: TxnId) -> Option<Option<&'static [u8]>> {
    let image = root.image_of(key, me)?;
    // SAFETY: the image lives in a partition this transaction holds, which is never freed;
    // the caller ties the reference to its borrow of the transaction, and every change of an
    // image goes through that transaction mutably.
    Some(image.row.map(|row| unsafe { &*std::ptr::from_ref(row) }))
}

/// A key whose row is not what the tree says, with that row; `None`: there is none.
pub(super) type Patch<'r> = (&'r [u8], Option<&'r [u8]>);

/// Patches in the order of a scan.
pub(super) type Patches<'r> = Box<dyn Iterator<Item = Patch<'r>> + 'r>;

/// What a transaction sees otherwise than the tree in a range: rows as of its snapshot, above those
/// its own images, and above everything rows as they were before the routines of the statement
/// wrote: those and the bounds of the partition.
pub(super) fn patches<'r>(
    root: Option<&'r Root>,
    range: KeyRange<'r>,
    direction: Direction,
    me: Option<TxnId>,
    snapshot: Option<Epoch>,
    past: Option<Past<'r>>,
) -> Option<Patches<'r>> {
    if excludes_all(range.low, range.high) {
        // Nothing to patch; and an ordered map refuses bounds that are the wrong way round.
        return None;
    }
    let mut layers: SmallVec<[Patches<'r>; 4]> = SmallVec::new();
    let up = direction == Direction::Ascending;
    if let Some(past) = past {
        layers.push(directed(past.rows(range), up));
    }
    if let Some(root) = root {
        if let Some(own) = me.and_then(|me| root.images_of(me, range.low, range.high)) {
            let own = own.map(|(key, image)| (key, image.row));
            let is_beneath = move |key: &[u8]| past.is_none_or(|past| !past.replaced.contains_key(key));
            layers.push(directed(own.filter(move |(key, _)| is_beneath(key)), up));
        }
        if let Some(snapshot) = snapshot.filter(|_| !root.versions.is_empty()) {
            let old = root.versions.old_rows(range.low, range.high, snapshot);
            layers.push(directed(old, up));
            let new = root.versions.new_rows(root.rows(), range.low, range.high, snapshot);
            layers.push(directed(new.map(|key| (key, None)), up));
        }
    }
    // The first one counts.
    layers.into_iter().reduce(|own, old| Box::new(Above { own: own.peekable(), old: old.peekable(), up }))
}

fn directed<'r>(patches: impl DoubleEndedIterator<Item = Patch<'r>> + 'r, up: bool) -> Patches<'r> {
    if up { Box::new(patches) } else { Box::new(patches.rev()) }
}

/// Two lists of patches in one order; where both have a key, `own` counts.
struct Above<A: Iterator, B: Iterator> {
    own: Peekable<A>,
    old: Peekable<B>,
    up: bool,
}

impl<'r, A, B> Iterator for Above<A, B>
where
    A: Iterator<Item = Patch<'r>>,
    B: Iterator<Item = Patch<'r>>,
{
    type Item = Patch<'r>;

    fn next(&mut self) -> Option<Patch<'r>> {
        let (Some((own, _)), Some((old, _))) = (self.own.peek(), self.old.peek()) else {
            return self.own.next().or_else(|| self.old.next());
        };
        let order = if self.up { own.cmp(old) } else { old.cmp(own) };
        if order.is_eq() {
            self.old.next();
        }
        if order.is_le() { self.own.next() } else { self.old.next() }
    }
}

/// Walks a tree, with patches taking the place of what the tree says.
pub(super) fn merged_scan<P: Pointer>(
    tree: &Tree<P>,
    range: KeyRange<'_>,
    direction: Direction,
    patches: Option<Patches<'_>>,
    visit: &mut Visit<'_>,
    pass: &mut Pass<'_>,
) -> (ControlFlow<()>, u64) {
    let mut flow = ControlFlow::Continue(());
    let up = direction == Direction::Ascending;
    let Some(patches) = patches else {
        let step = |key: &[u8], row: &crate::storage::Row| {
            flow = visit(key, row);
            flow
        };
        let stamp = if up {
            tree.scan(range.low, range.high, step)
        } else {
            tree.scan_back(range.low, range.high, step)
        };
        return (flow, stamp);
    };
    let mut left = patches.peekable();
    let step = |key: &[u8], row: &crate::storage::Row| {
        let before = |patch: &Patch<'_>| if up { *patch.0 < *key } else { *patch.0 > *key };
        while let Some((patched, image)) = left.next_if(before) {
            flow = match image {
                Some(image) => visit(patched, image),
                None => pass(patched),
            };
            if flow.is_break() {
                return flow;
            }
        }
        match left.next_if(|patch| *patch.0 == *key) {
            Some((_, None)) => flow = pass(key),
            Some((_, Some(image))) => flow = visit(key, image),
            None => flow = visit(key, row),
        }
        flow
    };
    let stamp =
        if up { tree.scan(range.low, range.high, step) } else { tree.scan_back(range.low, range.high, step) };
    while flow.is_continue()
        && let Some((patched, image)) = left.next()
    {
        flow = match image {
            Some(image) => visit(patched, image),
            None => pass(patched),
        };
    }
    (flow, stamp)
}
