//! One table's or index's part of a partition: its rows and, beside them, row locks, uncommitted images, and
//! old versions for snapshots. All of it is keyed by key, so that it splits with the rows.
//!
//! ```text
//!   locks     who locks a row without an image of it, and who waits for it   to the end of the transaction
//!   images    what writers have made of rows; each locks its row             to the end of its writer
//!   tree      committed rows
//!   versions  what they were, for registered snapshots                       as long as one needs it
//! ```
//!
//! Images and versions are trees like that of the rows, so a partition splits and merges in O(height) however
//! large the transactions are that are under way in it. Only locks without an image lie in a map.
//!
//! A root lists the writers of its images: those without one in it find out at once, and pass beneath the
//! others' without a look. A split copies the list, a merge unites the two; the end of a transaction prunes
//! those of the roots where it has written, and a copy elsewhere is pruned when the next writer comes.
//!
//! Images of a writer that has ended are there while its [end goes in slices](crate::txn::Commit), and only
//! then. Of one that has committed they *are* the rows, which whoever looks puts in place first ([`ended`]).
//!
//! Invariant: nobody reaches the tree but through here. [`Root::row`] and [`Root::rows`] say in their names
//! that what they show is committed and lies beneath all images, [`Root::changed_since`] asks the rows
//! together with their past.
//! Invariant: a transaction locks a row once, by its image or, where it has none, in the map; and nobody but
//! the writer of an image holds a mode that excludes other writers.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::id::{Epoch, TreeId, TxnId};
use crate::storage::key::excludes_all;
use crate::storage::tree::{Lookup, fetch_rows_noted};
use crate::storage::versions::{Departure, Replaced, TreeVersions};
use crate::storage::{Finger, Image, Images, KeyBuf, Row, StoredImage, Tree};
use crate::txn::{LockMode, RowWaiter, Writer};

/// What whoever comes to a root must look at; mostly nothing, which one byte says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks(u8);

impl Marks {
    /// Somebody locks the table, or did, in a mode that one-shots must look at.
    const TABLE_LOCKED: u8 = 1;
    /// There are entries in the map of locks.
    const ROWS_LOCKED: u8 = 2;
    const IMAGES: u8 = 4;
    /// Among the images there may be some of writers that have committed.
    const UNSETTLED: u8 = 8;

    #[inline]
    fn has(self, any: u8) -> bool {
        self.0 & any != 0
    }

    fn set(&mut self, mark: u8, to: bool) {
        self.0 = if to { self.0 | mark } else { self.0 & !mark };
    }
}

/// Who locks a row, and how.
pub(crate) type Holders = SmallVec<[(TxnId, LockMode); 2]>;

/// See the module.
pub(crate) struct Root {
    /// `None`: the position is free.
    pub id: Option<TreeId>,
    /// The layout version of the table; programs compiled for another one must recompile.
    pub version: u32,
    marks: Marks,
    tree: Tree,
    /// Leaves stamped up to here are in the last checkpoint.
    pub checkpointed: u64,
    /// Where the tree was last entered.
    finger: Finger,
    locks: BTreeMap<Box<[u8]>, RowLock>,
    images: Images,
    /// Whose images they are, and of some more; each by its id, which every read of a transaction looks for.
    writers: SmallVec<[(TxnId, Arc<Writer>); 1]>,
    /// How often writers have committed that had images here.
    decided: u64,
    /// Before-images for registered snapshots.
    pub versions: TreeVersions,
    /// The epoch of the definition that made this root: an older snapshot finds nothing of its
    /// past here.
    pub since: Epoch,
}

/// Who locks a row without having an image of it, and who waits for it: never nobody.
#[derive(Default)]
struct RowLock {
    holders: Holders,
    waiters: Vec<Arc<RowWaiter>>,
}

/// How a transaction held a row that has written an image of it now.
pub(crate) struct Written {
    pub mode_before: Option<LockMode>,
    /// How it holds it now.
    pub mode: LockMode,
    /// Its image of before.
    pub image_before: Option<StoredImage>,
}

/// What became of a row that a transaction has let go of.
pub(crate) enum LetGo {
    /// Others lock it; who waits looks whether that is in the way.
    Kept(Vec<Arc<RowWaiter>>),
    /// Nobody does.
    Free(Vec<Arc<RowWaiter>>),
}

/// [`Root::since`] of a root whose definition has not committed yet.
pub(crate) const NOT_COMMITTED: Epoch = Epoch(u64::MAX);

impl Root {
    /// That of a position that is free.
    pub fn empty() -> Self {
        Self {
            id: None,
            version: 0,
            marks: Marks::default(),
            tree: Tree::new(),
            checkpointed: 0,
            finger: Finger::default(),
            locks: BTreeMap::new(),
            images: Images::default(),
            writers: SmallVec::new(),
            decided: 0,
            versions: TreeVersions::default(),
            since: Epoch(0),
        }
    }

    /// The root of a tree that was always there: recovery.
    pub fn new(id: TreeId, version: u32) -> Self {
        Self { id: Some(id), version, ..Self::empty() }
    }

    /// The root of a tree that a definition makes.
    pub fn defined(id: TreeId, version: u32) -> Self {
        Self { since: NOT_COMMITTED, ..Self::new(id, version) }
    }

    /// The same root with other rows.
    pub fn with_rows(self, tree: Tree) -> Self {
        Self { tree, finger: Finger::default(), ..self }
    }

    /// Takes all rows out.
    pub fn take_rows(&mut self) -> Tree {
        self.finger = Finger::default();
        std::mem::take(&mut self.tree)
    }

    /// Whether somebody locks the table, or did, in a mode that one-shots must look at.
    #[inline]
    pub fn is_table_locked(&self) -> bool {
        self.marks.has(Marks::TABLE_LOCKED)
    }

    /// Says whether one-shots must look at who locks the table.
    pub fn set_table_locked(&mut self, locked: bool) {
        self.marks.set(Marks::TABLE_LOCKED, locked);
    }

    /// Whether anybody locks a row.
    #[inline]
    pub fn has_row_locks(&self) -> bool {
        self.marks.has(Marks::ROWS_LOCKED | Marks::IMAGES)
    }

    /// The committed row under a key, beneath all images, and what its leaf knows.
    #[inline]
    pub fn row(&self, key: &[u8]) -> Lookup<'_> {
        self.tree.lookup(key)
    }

    /// The same, near the one that was asked for last.
    #[inline]
    pub fn row_near(&mut self, key: &[u8]) -> Lookup<'_> {
        self.tree.lookup_with(key, &mut self.finger)
    }

    /// The row under a key as a registered snapshot sees it, beneath all images.
    pub fn row_at<'r>(&'r self, key: &[u8], snapshot: Epoch) -> Option<&'r [u8]> {
        self.versions.at(key, snapshot, self.tree.get(key))
    }

    /// The committed rows, beneath all images: for whoever puts those above them himself, or goes by
    /// numbers of rows.
    #[inline]
    pub fn rows(&self) -> &Tree {
        &self.tree
    }

    /// Whether a transaction of an epoch after `snapshot` wrote the row under a key: see
    /// [`TreeVersions::changed_since`].
    pub fn changed_since(&self, key: &[u8], snapshot: Epoch) -> bool {
        self.versions.changed_since(&self.tree, key, snapshot)
            || self.unsettled_at(key).is_some_and(|epoch| epoch > snapshot)
    }

    /// The same of any key between the bounds.
    pub fn range_changed_since(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, snapshot: Epoch) -> bool {
        self.versions.range_changed_since(&self.tree, low, high, snapshot)
            || self.has_unsettled_since(low, high, snapshot)
    }

    /// Keeps what a write that is in place already has replaced: see [`TreeVersions::keep`].
    pub fn keep_version(&mut self, replaced: Replaced<'_>, epoch: Epoch, newest: Epoch) -> u64 {
        // Between the rows of a run may be one that is not in the tree yet.
        let may_run = replaced.may_run && !self.has_unsettled();
        #[cfg(test)]
        let may_run = may_run || crate::planted::is(crate::planted::Bug::RunsOverUnsettled);
        self.versions.keep(&self.tree, Replaced { may_run, ..replaced }, epoch, newest)
    }

    /// Asks the memory for rows that will be asked for next, in this order.
    pub fn fetch_ahead<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) {
        fetch_rows_noted(keys.map(|key| (&self.tree, key)), &mut self.finger.ahead);
    }

    /// Puts a row in place of whatever is there, which comes back.
    #[inline]
    pub fn put(&mut self, key: &[u8], row: Row, stamp: u64) -> Option<Row> {
        self.tree.insert(key, row, stamp)
    }

    /// Puts a row unless one is there; then it comes back.
    #[inline]
    pub fn put_new(&mut self, key: &[u8], row: Row, stamp: u64) -> Result<(), Row> {
        self.tree.insert_new_with(key, row, stamp, &mut self.finger)
    }

    /// Changes a row in place; `None`: there is none.
    #[inline]
    pub fn update<R>(&mut self, key: &[u8], stamp: u64, change: impl FnOnce(&mut Row) -> R) -> Option<R> {
        self.tree.update_with(key, stamp, &mut self.finger, change)
    }

    /// Takes a row out.
    #[inline]
    pub fn remove(&mut self, key: &[u8], stamp: u64) -> Option<Row> {
        self.tree.remove(key, stamp)
    }

    /// Makes the memory of a part again, from a key on: see [`Tree::remake`].
    pub fn remake(
        &mut self,
        part: RootPart,
        from: Option<&[u8]>,
        go_on: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Option<KeyBuf> {
        match part {
            RootPart::Rows => self.tree.remake(from, go_on),
            RootPart::Versions => self.versions.remake(from, go_on),
            RootPart::Images => self.images.remake(from, go_on),
        }
    }

    /// The addresses of everything in its trees.
    pub fn allocations(&self, visit: &mut dyn FnMut(*const u8)) {
        self.tree.allocations(visit);
        self.versions.allocations(visit);
        self.images.allocations(visit);
    }

    /// Cuts off everything at and above `key`.
    pub fn split_off(&mut self, key: &[u8]) -> Self {
        let images = self.images.split_off(key);
        #[cfg(test)]
        let images = match crate::planted::is(crate::planted::Bug::SplitLeavesImages) {
            true => {
                self.images.append(images);
                Images::default()
            }
            false => images,
        };
        let mut upper = Self {
            id: self.id,
            version: self.version,
            marks: self.marks,
            tree: self.tree.split_off(key),
            checkpointed: self.checkpointed,
            finger: Finger::default(),
            locks: self.locks.split_off(key),
            images,
            writers: self.writers.clone(),
            decided: self.decided,
            versions: self.versions.split_off(key),
            since: self.since,
        };
        self.mark_again();
        upper.mark_again();
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::SplitForgetsUnsettled) {
            upper.marks.set(Marks::UNSETTLED, false);
        }
        upper
    }

    /// Takes in the same tree's part of the partition to the right.
    pub fn append(&mut self, mut right: Self) {
        if self.id.is_none() && self.tree.is_empty() {
            *self = right;
            return;
        }
        assert!(right.id == self.id && right.version == self.version, "parts of one tree have one layout");
        self.tree.append(std::mem::take(&mut right.tree));
        self.locks.append(&mut right.locks);
        #[cfg(test)]
        if let Some(first) = right.images.first_key()
            && crate::planted::is(crate::planted::Bug::SplitLeavesImages)
        {
            // They would lie beside those that came since: the process would end before anybody sees the mistake.
            drop(self.images.split_off(first));
        }
        self.images.append(std::mem::take(&mut right.images));
        for (_, writer) in &right.writers {
            self.list(writer);
        }
        self.marks.0 |= right.marks.0 & (Marks::TABLE_LOCKED | Marks::UNSETTLED);
        self.decided += right.decided + 1;
        self.versions.append(right.versions);
        self.mark_again();
        self.since = self.since.max(right.since);
        self.checkpointed = self.checkpointed.min(right.checkpointed);
    }
}

/// A part of a root that has memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootPart {
    Rows,
    Versions,
    Images,
}

impl RootPart {
    /// The one that is made again behind this one.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Rows => Some(Self::Versions),
            Self::Versions => Some(Self::Images),
            Self::Images => None,
        }
    }
}

/// Locks and images of rows.
impl Root {
    /// Locks have come or gone.
    fn mark_again(&mut self) {
        self.marks.set(Marks::ROWS_LOCKED, !self.locks.is_empty());
        self.marks.set(Marks::IMAGES, !self.images.is_empty());
        if self.images.is_empty() {
            self.writers.clear();
        }
        if self.marks.has(Marks::UNSETTLED) {
            self.marks.set(Marks::UNSETTLED, self.lists_committed());
        }
    }

    /// Puts a writer into the list.
    fn list(&mut self, writer: &Arc<Writer>) {
        if !self.lists(writer.id) {
            self.writers.retain(|(_, known)| !known.is_over());
            self.writers.push((writer.id, writer.clone()));
        }
    }

    #[inline]
    fn lists(&self, writer: TxnId) -> bool {
        self.writers.iter().any(|(known, _)| *known == writer)
    }

    /// Takes a transaction out of the list that has left no image here.
    pub fn unlist(&mut self, writer: TxnId) {
        self.writers.retain(|(known, _)| *known != writer);
        self.mark_again();
    }

    /// Whoever's image of a row.
    #[inline]
    pub fn image(&self, key: &[u8]) -> Option<Image<'_>> {
        if self.marks.has(Marks::IMAGES) { self.images.get(key) } else { None }
    }

    /// The image of a row that this writer has made.
    #[inline]
    pub fn image_of(&self, key: &[u8], writer: TxnId) -> Option<Image<'_>> {
        let image = if self.lists(writer) { self.images.get(key) } else { None };
        image.filter(|image| image.writer == writer)
    }

    /// The images of a writer between the bounds, from either end; `None`: there are none.
    pub fn images_of(
        &self,
        writer: TxnId,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Option<impl DoubleEndedIterator<Item = (&[u8], Image<'_>)> + use<'_>> {
        if !self.lists(writer) || excludes_all(low, high) {
            return None;
        }
        Some(self.images.range(low, high).filter(move |(_, image)| image.writer == writer))
    }

    /// How a transaction locks a row.
    pub fn lock_of(&self, key: &[u8], who: TxnId) -> Option<LockMode> {
        self.lock_in_map(key, who).or_else(|| self.image_of(key, who).map(|image| image.mode))
    }

    fn lock_in_map(&self, key: &[u8], who: TxnId) -> Option<LockMode> {
        let mut holders = self.locks.get(key)?.holders.iter();
        holders.find(|(holder, _)| *holder == who).map(|(_, mode)| *mode)
    }

    /// The transaction that locks a row by an image of it.
    fn locks_by_image(&self, key: &[u8]) -> Option<(TxnId, LockMode)> {
        let image = self.image(key)?;
        let writer = self.writers.iter().find(|(known, _)| *known == image.writer);
        debug_assert!(writer.is_some(), "the writers of images are listed");
        let ended = writer.is_some_and(|(_, writer)| writer.has_ended());
        (!ended).then_some((image.writer, image.mode))
    }

    /// Who locks a row.
    pub fn holders(&self, key: &[u8]) -> Holders {
        let lock = self.locks.get(key);
        let mut holders = lock.map(|lock| lock.holders.clone()).unwrap_or_default();
        holders.extend(self.locks_by_image(key));
        holders
    }

    /// Who waits for a row.
    pub fn waiters(&self, key: &[u8]) -> &[Arc<RowWaiter>] {
        self.locks.get(key).map_or(&[], |lock| &lock.waiters)
    }

    /// Changes the list of those who wait for a row that somebody locks.
    pub fn change_waiters(&mut self, key: &[u8], change: impl FnOnce(&mut Vec<Arc<RowWaiter>>)) {
        if let Some(lock) = self.locks.get_mut(key) {
            change(&mut lock.waiters);
            if lock.holders.is_empty() && lock.waiters.is_empty() {
                self.locks.remove(key);
                self.mark_again();
            }
            return;
        }
        let mut lock = RowLock::default();
        change(&mut lock.waiters);
        if !lock.waiters.is_empty() {
            self.locks.insert(Box::from(key), lock);
            self.mark_again();
        }
    }

    /// All who wait for a row.
    pub fn all_waiters(&self) -> impl Iterator<Item = &Arc<RowWaiter>> {
        self.locks.values().flat_map(|lock| &lock.waiters)
    }

    /// How many locks there are in a mode.
    pub fn locks_in(&self, mode: LockMode) -> usize {
        let in_map = self.locks.values().flat_map(|lock| &lock.holders);
        let images = self.images.range(Bound::Unbounded, Bound::Unbounded);
        in_map.filter(|(_, held)| *held == mode).count()
            + images.filter(|(_, image)| image.mode == mode).count()
    }

    /// The least key that somebody locks.
    pub fn first_locked(&self) -> Option<&[u8]> {
        let in_map = self.locks.keys().next().map(|key| &key[..]);
        match (in_map, self.images.first_key()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Has a transaction lock a row at least so; answers how it did before, and whether that was enough.
    pub fn hold(&mut self, key: &[u8], who: TxnId, mode: LockMode) -> (Option<LockMode>, bool) {
        let before = self.lock_of(key, who);
        if before.is_some_and(|before| before >= mode) {
            return (before, true);
        }
        self.set_lock(key, who, mode);
        (before, false)
    }

    /// Has a transaction lock a row so, which it may have locked otherwise.
    pub fn set_lock(&mut self, key: &[u8], who: TxnId, mode: LockMode) {
        if self.image_of(key, who).is_some() {
            return self.images.set_mode(key, mode);
        }
        if let Some(lock) = self.locks.get_mut(key) {
            match lock.holders.iter_mut().find(|(holder, _)| *holder == who) {
                Some((_, held)) => *held = mode,
                None => lock.holders.push((who, mode)),
            }
            return;
        }
        let lock = RowLock { holders: SmallVec::from_iter([(who, mode)]), waiters: Vec::new() };
        self.locks.insert(Box::from(key), lock);
        self.mark_again();
    }

    /// Takes a transaction out of those who lock a row without an image.
    fn take_from_map(&mut self, key: &[u8], who: TxnId) {
        let Some(lock) = self.locks.get_mut(key) else { return };
        lock.holders.retain(|(holder, _)| *holder != who);
        if lock.holders.is_empty() && lock.waiters.is_empty() {
            self.locks.remove(key);
        }
    }

    /// Writes an image, which locks the row at least as `mode` says. What it made of the committed row before,
    /// its writer has made of it still.
    pub fn write_image(
        &mut self,
        key: &[u8],
        writer: &Arc<Writer>,
        mode: LockMode,
        row: Option<&[u8]>,
        departure: Departure,
    ) -> Written {
        let before = self.image_of(key, writer.id).map(|image| (image.mode, image.departure));
        let mode_before = match before {
            Some((mode, _)) => Some(mode),
            None => self.lock_in_map(key, writer.id),
        };
        if before.is_none() {
            if mode_before.is_some() {
                self.take_from_map(key, writer.id);
            }
            self.list(writer);
        }
        let mode = mode_before.map_or(mode, |before| before.max(mode));
        let departure = before.map_or(departure, |(_, before)| before.max(departure));
        let image_before = self.images.put(key, Image { writer: writer.id, mode, departure, row });
        debug_assert!(
            image_before.as_ref().is_none_or(|before| before.image().writer == writer.id),
            "nobody else may write it"
        );
        self.mark_again();
        Written { mode_before, mode, image_before }
    }

    /// Takes the image of a row back that locks it: its writer locks it without.
    pub fn take_image_back(&mut self, key: &[u8], writer: TxnId) {
        let Some(mode) = self.image_of(key, writer).map(|image| image.mode) else { return };
        self.images.remove(key);
        self.set_lock(key, writer, mode);
        self.mark_again();
    }

    /// Puts an image of the same writer back that was replaced by another one.
    pub fn put_image_back(&mut self, key: &[u8], image: StoredImage) {
        self.images.put_back(key, image);
    }

    /// Ends a transaction's lock on a row, with its image; `None`: it had none.
    pub fn let_go(&mut self, key: &[u8], who: TxnId) -> Option<(LockMode, LetGo)> {
        let by_image = self.image_of(key, who).map(|image| image.mode);
        let mode = by_image.or_else(|| self.lock_in_map(key, who))?;
        // A key has one image at most.
        let (mut is_kept, mut waiters) = (by_image.is_none() && self.image(key).is_some(), Vec::new());
        if by_image.is_some() {
            self.images.remove(key);
        }
        if let Some(lock) = self.locks.get_mut(key) {
            lock.holders.retain(|(holder, _)| *holder != who);
            waiters = std::mem::take(&mut lock.waiters);
            match lock.holders.is_empty() {
                true => drop(self.locks.remove(key)),
                false => is_kept = true,
            }
        }
        let let_go = if is_kept { LetGo::Kept(waiters) } else { LetGo::Free(waiters) };
        self.mark_again();
        Some((mode, let_go))
    }
}

mod ended;
#[cfg(test)]
mod tests;

pub(crate) use self::ended::Ended;
