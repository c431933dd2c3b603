//! Reads: points and ranges, through a transaction's own uncommitted images.

use std::ops::{Bound, ControlFlow};

use super::{Direction, KeyRange, Place, Txn};
use crate::id::TxnId;
use crate::partition::{PartitionRef, Root};
use crate::program::Stop;
use crate::schema::IndexDef;
use crate::storage::tree::Pointer;
use crate::storage::{KeyBuf, Tree};
use crate::table::TableMeta;

/// What a scan calls with every key and value.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

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

    pub(super) fn read(&mut self, place: Place, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        if place.is_reference() {
            if self.sees_overlay(place)
                && let Some(image) = self.own_reference_image(place, key)?
            {
                return Ok(image);
            }
            return self.reference_get(place, key);
        }
        let partition = self.partition_for(place.group, key)?;
        let root = self.root(partition, place)?;
        if let Some(me) = self.transaction_id()
            && !root.overlay.is_empty()
            && let Some(image) = own_image(root, key, me)
        {
            return Ok(image.as_deref());
        }
        let found = root.tree.lookup(key);
        // SAFETY: held by this transaction; `root` and `found` are only read meanwhile.
        let epoch = unsafe { partition.data_mut() }.epoch_of(found.stamp);
        self.depend(epoch);
        Ok(found.row.map(|row| &**row))
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
        Ok(own_image(root, key, me).map(|image| image.as_deref()))
    }

    pub(super) fn scan_place(
        &mut self,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Stop> {
        if is_empty(range) {
            return Ok(());
        }
        if place.is_reference() {
            let own = if self.sees_overlay(place) {
                let me = self.transaction_id();
                let partition = self.partition_for(place.group, &[])?;
                let root = self.root(partition, place)?;
                own_images(root, range, me)
            } else {
                Vec::new()
            };
            let tree = self.reference_tree(place)?;
            let _ = merged_scan(tree, range, direction, &own, visit);
            return Ok(());
        }
        match direction {
            Direction::Ascending => self.scan_up(place, range, visit),
            Direction::Descending => self.scan_down(place, range, visit),
        }
    }

    fn scan_up(&mut self, place: Place, range: KeyRange<'_>, visit: &mut Visit<'_>) -> Result<(), Stop> {
        let mut at: KeyBuf = match range.low {
            Bound::Included(low) | Bound::Excluded(low) => KeyBuf::from_slice(low),
            Bound::Unbounded => KeyBuf::new(),
        };
        loop {
            let partition = match self.partition_for(place.group, &at) {
                Ok(partition) => partition,
                Err(stop) => return Err(self.miss_range(place, &at, range.high, stop)),
            };
            let flow = self.scan_partition(partition, place, range, Direction::Ascending, visit)?;
            // SAFETY: held by this transaction; read for the length of the match.
            match &unsafe { partition.data_mut() }.high {
                Some(high) if flow.is_continue() && below(high, range.high) => at = high.clone(),
                _ => return Ok(()),
            }
        }
    }

    fn scan_down(&mut self, place: Place, range: KeyRange<'_>, visit: &mut Visit<'_>) -> Result<(), Stop> {
        // Keys below `at` are left; an included upper bound belongs to the partition that
        // covers it, which differs from the one below it only at a boundary.
        let mut at: Option<KeyBuf> = match range.high {
            Bound::Excluded(high) => Some(KeyBuf::from_slice(high)),
            Bound::Included(high) => {
                let mut next = KeyBuf::from_slice(high);
                next.push(0);
                Some(next)
            }
            Bound::Unbounded => None,
        };
        loop {
            let partition = match self.partition_below(place.group, at.as_deref()) {
                Ok(partition) => partition,
                Err(stop) => {
                    let low = match range.low {
                        Bound::Included(low) | Bound::Excluded(low) => KeyBuf::from_slice(low),
                        Bound::Unbounded => KeyBuf::new(),
                    };
                    return Err(self.miss_range(place, &low, range.high, stop));
                }
            };
            let flow = self.scan_partition(partition, place, range, Direction::Descending, visit)?;
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

    /// A scan that missed one partition will miss the others of its range too.
    pub(super) fn miss_range(&mut self, place: Place, low: &[u8], high: Bound<&[u8]>, stop: Stop) -> Stop {
        if stop == Stop::Restart {
            let high = match high {
                Bound::Excluded(high) => Some(KeyBuf::from_slice(high)),
                Bound::Included(high) => {
                    let mut next = KeyBuf::from_slice(high);
                    next.push(0);
                    Some(next)
                }
                Bound::Unbounded => None,
            };
            self.worker.scratch.missing.add_range(place.group, low, high.as_deref());
        }
        stop
    }

    fn scan_partition(
        &mut self,
        partition: PartitionRef,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Stop> {
        let root = self.root(partition, place)?;
        let me = self.transaction_id();
        let own =
            if me.is_some() && !root.overlay.is_empty() { own_images(root, range, me) } else { Vec::new() };
        let (flow, stamp) = merged_scan(&root.tree, range, direction, &own, visit);
        // SAFETY: held by this transaction; the reference ends with the statement.
        let epoch = unsafe { partition.data_mut() }.epoch_of(stamp);
        self.depend(epoch);
        Ok(flow)
    }
}

/// The uncommitted image of a row, if `me` wrote one.
fn own_image(root: &Root, key: &[u8], me: TxnId) -> Option<&'static Option<crate::storage::Row>> {
    let lock = root.overlay.get(key)?;
    let image = lock.image.as_ref()?;
    let mine = lock.holders.iter().any(|&(holder, _)| holder == me);
    // SAFETY: the image lives in a partition this transaction holds, which is never freed;
    // the caller ties the reference to its borrow of the transaction, and every change of the
    // overlay goes through that transaction mutably.
    mine.then(|| unsafe { &*std::ptr::from_ref(image) })
}

pub(super) type OwnImage = (Box<[u8]>, Option<Box<[u8]>>);

pub(super) fn own_images(root: &Root, range: KeyRange<'_>, me: Option<TxnId>) -> Vec<OwnImage> {
    let Some(me) = me else { return Vec::new() };
    root.overlay
        .range::<[u8], _>((range.low, range.high))
        .filter(|(_, lock)| lock.holders.iter().any(|&(holder, _)| holder == me))
        .filter_map(|(key, lock)| lock.image.as_ref().map(|image| (key.clone(), image.clone())))
        .collect()
}

/// Walks a tree, with `own` images taking the place of what the tree says.
pub(super) fn merged_scan<P: Pointer>(
    tree: &Tree<P>,
    range: KeyRange<'_>,
    direction: Direction,
    own: &[OwnImage],
    visit: &mut Visit<'_>,
) -> (ControlFlow<()>, u64) {
    let mut flow = ControlFlow::Continue(());
    let up = direction == Direction::Ascending;
    let mut left = own;
    let next = |left: &[OwnImage]| if up { left.first().cloned() } else { left.last().cloned() };
    let step = |key: &[u8], row: &crate::storage::Row| {
        while !left.is_empty() {
            let Some((own_key, image)) = next(left) else { break };
            let order = if up { own_key[..].cmp(key) } else { key.cmp(&own_key[..]) };
            if order.is_gt() {
                break;
            }
            left = if up { &left[1..] } else { &left[..left.len() - 1] };
            if let Some(image) = image {
                flow = visit(&own_key, &image);
                if flow.is_break() {
                    return flow;
                }
            }
            if order.is_eq() {
                return flow;
            }
        }
        flow = visit(key, row);
        flow
    };
    let stamp =
        if up { tree.scan(range.low, range.high, step) } else { tree.scan_back(range.low, range.high, step) };
    while flow.is_continue() && !left.is_empty() {
        let Some((own_key, image)) = next(left) else { break };
        left = if up { &left[1..] } else { &left[..left.len() - 1] };
        if let Some(image) = image {
            flow = visit(&own_key, &image);
        }
    }
    (flow, stamp)
}

/// Whether keys at `boundary` may still be inside the upper bound.
pub(super) fn below(boundary: &[u8], high: Bound<&[u8]>) -> bool {
    match high {
        Bound::Included(high) => *boundary <= *high,
        Bound::Excluded(high) => *boundary < *high,
        Bound::Unbounded => true,
    }
}

/// Whether the bounds exclude every key (`BTreeMap` panics on some of them).
fn is_empty(range: KeyRange<'_>) -> bool {
    match (range.low, range.high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high)) => low >= high,
        (Bound::Excluded(low), Bound::Included(high)) => low >= high,
    }
}
