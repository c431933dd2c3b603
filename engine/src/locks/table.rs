//! The lock table: who holds what, who waits for it, and in which order.
//!
//! A request that finds a conflict joins the lock's queue and its program is parked. When
//! something is released, the requests that nothing stands in the way of any more are woken;
//! they stay in the queue, keeping their place, until their program has run again and taken
//! the lock, or has ended otherwise. A later request that conflicts with an earlier one waits
//! behind it, so nobody starves; only who already holds something that the earlier one waits
//! for goes first, as in PostgreSQL.
//!
//! Of whom a request waits for, the graph of waits is told what a search for cycles needs, and no more: the
//! nearest request ahead of it that waits for all that it waits for stands for the rest.
//!
//! ```text
//!   held by A     queue: B  C  D  E, all of one exclusive mode
//!   in E's way:   A, B, C, D            (what pg_blocking_pids tells)
//!   in the graph: E → D → C → B → A     (not ten edges but four)
//! ```
//!
//! So a lock that a thousand wait for costs each of them the same, and a release changes nothing for whom
//! another one still stands before.
//!
//! One-shots that find a table locked hold nothing and reserve nothing: they stand by, and look
//! again at every change.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{LockTag, ObjectMode};
use crate::client::Client;
use crate::id::TxnId;
use crate::txn::{RowWaiter, WaitGraph, push_waiter};

/// Latches, so that unrelated locks do not meet.
const SHARDS: usize = 32;

/// The locks under one latch.
type Shard = CachePadded<Mutex<FxHashMap<LockTag, Lock>>>;

/// See the module's head.
pub(crate) struct LockTable {
    shards: Box<[Shard]>,
    /// Holders and requests of modes that are in the way of one-shots, over all tables, and
    /// those about to become one. Readers of reference tables, who claim nothing, look at it.
    strong: AtomicUsize,
}

#[derive(Default)]
struct Lock {
    holders: Vec<Holder>,
    queue: Vec<Request>,
    bystanders: Vec<Arc<RowWaiter>>,
}

struct Holder {
    /// The transaction, or the client for what outlives one.
    owner: TxnId,
    client: Arc<Client>,
    mode: ObjectMode,
    count: u32,
}

struct Request {
    owner: TxnId,
    client: Arc<Client>,
    mode: ObjectMode,
    waiter: Arc<RowWaiter>,
}

/// Who asks.
pub(crate) struct Asker<'a> {
    /// Under what the lock will be held.
    pub owner: TxnId,
    /// Under what the wait is published for the deadlock search. Whoever holds nothing has a node, too: others
    /// wait for its place in the queue.
    pub node: Option<TxnId>,
    pub client: &'a Arc<Client>,
    /// The engine's monotonic clock.
    pub now_nanos: u64,
    pub waits: &'a WaitGraph,
}

/// What a request came to.
pub(crate) enum Asked {
    Granted,
    /// Somebody is in the way, and the caller did not want to wait.
    Refused,
    /// Somebody waits for what the client holds here, and holds what the client wants.
    Deadlock,
    /// In the queue: park the program here.
    Wait(Arc<RowWaiter>),
}

/// One lock or request, for `pg_locks`.
#[derive(Clone, Debug)]
pub struct LockView {
    pub lock: ObjectLock,
    /// The client's number.
    pub client: i32,
    pub owner: TxnId,
    pub granted: bool,
}

/// What is, or shall be, locked and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLock {
    pub tag: LockTag,
    pub mode: ObjectMode,
}

impl Lock {
    fn is_free(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty() && self.bystanders.is_empty()
    }

    /// The holders in the way of `mode`.
    fn hard<'l>(&'l self, client: &'l Arc<Client>, mode: ObjectMode) -> impl Iterator<Item = TxnId> + 'l {
        self.holders
            .iter()
            .filter(move |holder| !Arc::ptr_eq(&holder.client, client) && holder.mode.conflicts(mode))
            .map(|holder| holder.owner)
    }

    /// The requests before a place that are in the way of `mode`, nearest first.
    fn ahead<'l>(
        &'l self,
        place: usize,
        client: &'l Arc<Client>,
        mode: ObjectMode,
    ) -> impl Iterator<Item = &'l Request> + 'l {
        let ahead = self.queue[..place].iter().rev();
        ahead.filter(move |request| !Arc::ptr_eq(&request.client, client) && request.mode.conflicts(mode))
    }

    /// Whether somebody is in the way of a request at `place`.
    fn is_blocked(&self, place: usize, client: &Arc<Client>, mode: ObjectMode) -> bool {
        self.ahead(place, client, mode).next().is_some() || self.hard(client, mode).next().is_some()
    }

    /// Who is in the way of a request at `place`, for the deadlock search, which begins with the
    /// last: the requests before it, nearest first, then the holders. Behind one that waits for all
    /// that this one waits for, nobody needs to be told: see the module's head.
    fn blockers(&self, place: usize, client: &Arc<Client>, mode: ObjectMode) -> Vec<TxnId> {
        let mut blockers = Vec::new();
        for request in self.ahead(place, client, mode) {
            let Some(node) = request.waiter.who else { continue };
            blockers.push(node);
            if request.mode.covers(mode) {
                // But for what its client holds, which that does not wait for.
                let own = self.holders.iter().filter(|holder| Arc::ptr_eq(&holder.client, &request.client));
                let own = own.filter(|holder| holder.mode.conflicts(mode) && holder.owner != node);
                blockers.extend(own.map(|holder| holder.owner));
                return blockers;
            }
        }
        blockers.extend(self.hard(client, mode));
        blockers
    }

    /// Everybody who is in the way of a request, nearest first, then the holders.
    fn all_blockers(&self, place: usize) -> Vec<TxnId> {
        let Request { client, mode, .. } = &self.queue[place];
        let ahead = self.ahead(place, client, *mode);
        let ahead = ahead.map(|request| request.waiter.who.unwrap_or(request.owner));
        ahead.chain(self.hard(client, *mode)).collect()
    }

    /// Whether the request before one stands for all that is in its way, so that nothing else changes that.
    fn is_covered(&self, place: usize) -> bool {
        let Some(before) = place.checked_sub(1).map(|before| &self.queue[before]) else { return false };
        let request = &self.queue[place];
        !Arc::ptr_eq(&before.client, &request.client)
            && before.mode.conflicts(request.mode)
            && before.mode.covers(request.mode)
            && (before.waiter.who.is_some() || request.waiter.who.is_none())
    }

    /// The modes that a client holds.
    fn modes_of(&self, client: &Arc<Client>) -> Vec<ObjectMode> {
        let mine = self.holders.iter().filter(|holder| Arc::ptr_eq(&holder.client, client));
        mine.map(|holder| holder.mode).collect()
    }

    /// Where a new request belongs: before the first that waits for what its client holds.
    fn place(&self, client: &Arc<Client>) -> usize {
        let mine = self.modes_of(client);
        if mine.is_empty() {
            return self.queue.len();
        }
        self.queue
            .iter()
            .position(|request| mine.iter().any(|mode| mode.conflicts(request.mode)))
            .unwrap_or(self.queue.len())
    }

    /// Whether somebody waits for what the client holds and holds what it wants: no time will
    /// tell them apart.
    fn is_mutual(&self, client: &Arc<Client>, mode: ObjectMode) -> bool {
        let mine = self.modes_of(client);
        !mine.is_empty()
            && self.queue.iter().any(|request| {
                !Arc::ptr_eq(&request.client, client)
                    && mine.iter().any(|held| held.conflicts(request.mode))
                    && self.modes_of(&request.client).iter().any(|held| held.conflicts(mode))
            })
    }

    fn hold(&mut self, owner: TxnId, client: &Arc<Client>, mode: ObjectMode) {
        let held = self.holders.iter_mut().find(|holder| holder.owner == owner && holder.mode == mode);
        match held {
            Some(holder) => holder.count += 1,
            None => self.holders.push(Holder { owner, client: client.clone(), mode, count: 1 }),
        }
    }

    /// After something was released or withdrawn: wakes whom nothing stops any more, and tells
    /// the others who is in their way now. `moved`: the places that have others before them than they had.
    fn changed(&mut self, moved: Range<usize>, waits: &WaitGraph, woken: &mut Vec<Arc<RowWaiter>>) {
        woken.append(&mut self.bystanders);
        for (place, request) in self.queue.iter().enumerate() {
            if !moved.contains(&place) && self.is_covered(place) {
                continue;
            }
            if !self.is_blocked(place, &request.client, request.mode) {
                request.waiter.now_behind(Vec::new(), waits);
                woken.push(request.waiter.clone());
                continue;
            }
            self.tell(place, waits);
        }
    }

    /// Says who is in the way now of the request at a place, before which others are than were, and of those
    /// behind it, but for whom the one before still stands for all.
    fn tell_from(&self, first: usize, waits: &WaitGraph) {
        for place in first..self.queue.len() {
            if place == first || !self.is_covered(place) {
                self.tell(place, waits);
            }
        }
    }

    /// Says who is in the way of a request now.
    fn tell(&self, place: usize, waits: &WaitGraph) {
        let Some(request) = self.queue.get(place) else { return };
        request.waiter.now_behind(self.blockers(place, &request.client, request.mode), waits);
    }
}

impl Default for LockTable {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| CachePadded::default()).collect(), strong: AtomicUsize::new(0) }
    }
}

impl LockTable {
    fn shard(&self, tag: LockTag) -> &Mutex<FxHashMap<LockTag, Lock>> {
        use std::hash::BuildHasher;
        let hash = rustc_hash::FxBuildHasher.hash_one(tag);
        // The high bits: the maps themselves use the low ones.
        &self.shards[(hash >> 48) as usize % SHARDS]
    }

    /// Takes a lock, or a place in its queue.
    pub fn ask(&self, tag: LockTag, mode: ObjectMode, asker: &Asker<'_>, wait: bool) -> Asked {
        let mut shard = self.shard(tag).lock();
        let lock = shard.entry(tag).or_default();
        let before = lock.queue.iter().position(|request| Arc::ptr_eq(&request.client, asker.client));
        let place = before.unwrap_or_else(|| lock.place(asker.client));
        if !lock.is_blocked(place, asker.client, mode) {
            if let Some(at) = before {
                lock.queue.remove(at);
                asker.client.leave_queue(tag);
                self.no_longer(tag, mode);
            }
            lock.hold(asker.owner, asker.client, mode);
            if before.is_some() {
                // Who waited for its place waits for what it holds, which may be a session's and no transaction's.
                lock.tell_from(place, asker.waits);
            }
            self.henceforth(tag, mode);
            return Asked::Granted;
        }
        if !wait {
            if lock.is_free() {
                shard.remove(&tag);
            }
            return Asked::Refused;
        }
        if lock.is_mutual(asker.client, mode) {
            if let Some(at) = before {
                lock.queue.remove(at);
                asker.client.leave_queue(tag);
                self.no_longer(tag, mode);
            }
            return Asked::Deadlock;
        }
        let object = ObjectLock { tag, mode };
        let blockers = lock.blockers(place, asker.client, mode);
        let waiter = RowWaiter::for_object(asker.node, object, asker.now_nanos, blockers);
        let request =
            Request { owner: asker.owner, client: asker.client.clone(), mode, waiter: waiter.clone() };
        match before {
            Some(at) => lock.queue[at] = request,
            None => {
                lock.queue.insert(place, request);
                lock.tell_from(place + 1, asker.waits);
                self.henceforth(tag, mode);
            }
        }
        asker.client.queue_at(tag);
        Asked::Wait(waiter)
    }

    /// Whether anything is, or may be about to be, in the way of one-shots at some table.
    pub fn is_strong(&self) -> bool {
        self.strong.load(Ordering::SeqCst) != 0
    }

    /// A strong mode is about to be asked for; to be taken back when that is done.
    pub fn announce(&self) {
        self.strong.fetch_add(1, Ordering::SeqCst);
    }

    pub fn announced(&self) {
        self.strong.fetch_sub(1, Ordering::SeqCst);
    }

    fn henceforth(&self, tag: LockTag, mode: ObjectMode) {
        if mode.is_strong() && !matches!(tag, LockTag::Advisory { .. }) {
            self.announce();
        }
    }

    fn no_longer(&self, tag: LockTag, mode: ObjectMode) {
        if mode.is_strong() && !matches!(tag, LockTag::Advisory { .. }) {
            self.announced();
        }
    }

    /// If `waiter` is behind `blocker` in some queue, and not because of what that holds, lets it
    /// go ahead.
    pub fn overtake(
        &self,
        waits: &WaitGraph,
        waiter: TxnId,
        blocker: TxnId,
        woken: &mut Vec<Arc<RowWaiter>>,
    ) -> Option<Moved> {
        for shard in &self.shards {
            for (&tag, lock) in shard.lock().iter_mut() {
                let place = |who| lock.queue.iter().position(|request| request.waiter.who == Some(who));
                let (Some(behind), Some(ahead)) = (place(waiter), place(blocker)) else { continue };
                let request = &lock.queue[behind];
                if ahead > behind || lock.hard(&request.client, request.mode).any(|holder| holder == blocker)
                {
                    continue;
                }
                let request = lock.queue.remove(behind);
                lock.queue.insert(ahead, request);
                lock.changed(0..lock.queue.len(), waits, woken);
                return Some(Moved { tag, waiter, behind });
            }
        }
        None
    }

    /// Takes an overtaking back.
    pub fn put_back(&self, waits: &WaitGraph, moved: Moved, woken: &mut Vec<Arc<RowWaiter>>) {
        let mut shard = self.shard(moved.tag).lock();
        let Some(lock) = shard.get_mut(&moved.tag) else { return };
        let found = lock.queue.iter().position(|request| request.waiter.who == Some(moved.waiter));
        if let Some(at) = found {
            let request = lock.queue.remove(at);
            let behind = moved.behind.min(lock.queue.len());
            lock.queue.insert(behind, request);
            lock.changed(0..lock.queue.len(), waits, woken);
        }
    }

    /// What a one-shot finds at a table: nobody, or whom it must let pass. `None` also when the
    /// table's mark has no reason any more; the second part tells.
    pub fn look(
        &self,
        tag: LockTag,
        mode: ObjectMode,
        client: Option<&Arc<Client>>,
        node: Option<TxnId>,
        now_nanos: u64,
    ) -> Looked {
        let mut shard = self.shard(tag).lock();
        let Some(lock) = shard.get_mut(&tag) else { return Looked::Unlocked };
        let is_mine = |other: &Arc<Client>| client.is_some_and(|client| Arc::ptr_eq(client, other));
        let strong = lock.holders.iter().any(|holder| holder.mode.is_strong())
            || lock.queue.iter().any(|request| request.mode.is_strong());
        if !strong {
            return Looked::Unlocked;
        }
        // Who waits for what the client holds here is behind it, as in [`LockTable::ask`]: a definition
        // reads the table that it has locked.
        let place = client.map_or(lock.queue.len(), |client| lock.place(client));
        let holders = lock.holders.iter().map(|holder| (&holder.client, holder.mode, holder.owner));
        let ahead = lock.queue[..place].iter();
        let requests = ahead.map(|request| (&request.client, request.mode, request.owner));
        let blockers: Vec<TxnId> = holders
            .chain(requests)
            .filter(|(client, held, _)| !is_mine(client) && held.conflicts(mode))
            .map(|(_, _, owner)| owner)
            .collect();
        if blockers.is_empty() {
            return Looked::Passes;
        }
        let object = ObjectLock { tag, mode };
        let waiter = RowWaiter::for_object(node, object, now_nanos, blockers.clone());
        push_waiter(&mut lock.bystanders, waiter.clone());
        Looked::Wait(waiter, blockers)
    }

    /// Puts a lock that was granted elsewhere, and conflicts with none here, into the table.
    pub fn put(&self, tag: LockTag, mode: ObjectMode, owner: TxnId, client: &Arc<Client>) {
        self.shard(tag).lock().entry(tag).or_default().hold(owner, client, mode);
        self.henceforth(tag, mode);
    }

    /// Gives one lock back; whether it was held.
    pub fn release(
        &self,
        waits: &WaitGraph,
        tag: LockTag,
        mode: ObjectMode,
        owner: TxnId,
        woken: &mut Vec<Arc<RowWaiter>>,
    ) -> bool {
        let mut shard = self.shard(tag).lock();
        let Some(lock) = shard.get_mut(&tag) else { return false };
        let found = lock.holders.iter().position(|holder| holder.owner == owner && holder.mode == mode);
        let Some(at) = found else { return false };
        lock.holders[at].count -= 1;
        self.no_longer(tag, mode);
        if lock.holders[at].count == 0 {
            lock.holders.remove(at);
            lock.changed(0..0, waits, woken);
            if lock.is_free() {
                shard.remove(&tag);
            }
        }
        true
    }

    /// How often `owner` holds a lock.
    pub fn held(&self, tag: LockTag, mode: ObjectMode, owner: TxnId) -> u32 {
        let shard = self.shard(tag).lock();
        shard.get(&tag).map_or(0, |lock| {
            lock.holders
                .iter()
                .filter(|holder| holder.owner == owner && holder.mode == mode)
                .map(|holder| holder.count)
                .sum()
        })
    }

    /// Takes a client's request out of the queue.
    pub fn withdraw(
        &self,
        waits: &WaitGraph,
        tag: LockTag,
        client: &Arc<Client>,
        woken: &mut Vec<Arc<RowWaiter>>,
    ) {
        let mut shard = self.shard(tag).lock();
        let Some(lock) = shard.get_mut(&tag) else { return };
        let found = lock.queue.iter().position(|request| Arc::ptr_eq(&request.client, client));
        if let Some(at) = found {
            let request = lock.queue.remove(at);
            self.no_longer(tag, request.mode);
            lock.changed(at..at + 1, waits, woken);
        }
        if lock.is_free() {
            shard.remove(&tag);
        }
    }

    /// Everybody who is in the way of a client's request, if it has one in the queue: requests before it,
    /// nearest first, then holders.
    pub fn in_the_way(&self, tag: LockTag, client: &Client) -> Option<Vec<TxnId>> {
        let shard = self.shard(tag).lock();
        let lock = shard.get(&tag)?;
        let place = lock.queue.iter().position(|request| std::ptr::eq(&*request.client, client))?;
        Some(lock.all_blockers(place))
    }

    /// The same of a request that waits under this id in some queue.
    pub fn in_the_way_of(&self, waiter: TxnId) -> Option<Vec<TxnId>> {
        self.shards.iter().find_map(|shard| {
            shard.lock().values().find_map(|lock| {
                let is_meant = |request: &Request| request.waiter.who == Some(waiter);
                lock.queue.iter().position(is_meant).map(|place| lock.all_blockers(place))
            })
        })
    }

    /// All locks and requests.
    pub fn list(&self) -> Vec<LockView> {
        let mut views = Vec::new();
        for shard in &self.shards {
            for (tag, lock) in shard.lock().iter() {
                let view = |client: &Arc<Client>, mode, owner, granted| LockView {
                    lock: ObjectLock { tag: *tag, mode },
                    client: client.number(),
                    owner,
                    granted,
                };
                views.extend(lock.holders.iter().map(|held| view(&held.client, held.mode, held.owner, true)));
                views.extend(
                    lock.queue.iter().map(|asked| view(&asked.client, asked.mode, asked.owner, false)),
                );
            }
        }
        views.sort_by_key(|view| (view.lock.tag, view.client, view.lock.mode));
        views
    }
}

/// Who went ahead in a queue, and from where.
pub(crate) struct Moved {
    tag: LockTag,
    waiter: TxnId,
    behind: usize,
}

/// What a one-shot found at a table whose mark is set.
pub(crate) enum Looked {
    /// The mark has no reason any more.
    Unlocked,
    /// Locked in a mode that lets it pass.
    Passes,
    Wait(Arc<RowWaiter>, Vec<TxnId>),
}
