//! Transaction ids as SQL sees them: `pg_current_xact_id`, `pg_current_snapshot`, `pg_xact_status`.
//!
//! The engine orders transactions by epochs and needs no ids. Applications do: queues read what
//! was committed since they looked last, and retries ask what became of a transaction. So a
//! transaction gets an id when it first asks for one, and those that never ask pay nothing.
//!
//! As in PostgreSQL the upper half of an id is an epoch of ids. Here each start of the server
//! begins one, so that ids ascend over restarts. The number of the start is logged in an epoch of
//! the engine before every later commit: whoever keeps an id keeps that, too.
//!
//! Invariant: an id is under way until all sessions see what its transaction committed. So what a
//! snapshot says is over can be read by a statement that begins after it was taken.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::Snapshot;
use parking_lot::Mutex;

use crate::server::row_places::{PlacesInUse, RowPlaces};

/// PostgreSQL's first ids are no transactions': invalid, bootstrap, frozen.
const FIRST_NORMAL: i64 = 3;

/// How many ids of transactions that were rolled back are kept.
const ABORTED_MAX: usize = 1 << 16;

/// The ids of a server.
pub struct TransactionIds {
    state: Mutex<State>,
}

struct State {
    next: i64,
    /// From here on it is known what became of transactions.
    known_from: i64,
    /// One past the last that is over.
    completed: i64,
    under_way: BTreeSet<i64>,
    aborted: BTreeSet<i64>,
}

impl TransactionIds {
    /// Ids of the start with this number.
    pub fn of_start(number: u64) -> Arc<TransactionIds> {
        let first = ((number << 32) as i64) + FIRST_NORMAL;
        Arc::new(TransactionIds {
            state: Mutex::new(State {
                next: first,
                known_from: first,
                completed: first,
                under_way: BTreeSet::new(),
                aborted: BTreeSet::new(),
            }),
        })
    }

    fn assign(&self) -> i64 {
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        state.under_way.insert(id);
        id
    }

    /// The next id, of something that is over.
    pub fn assign_completed(&self) -> i64 {
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        state.completed = state.completed.max(id + 1);
        id
    }

    /// How many ids were given out since one, of which the lower half is known (age(xid)).
    pub fn age(&self, id: u32) -> i32 {
        // Those that are no transactions' are older than all.
        if i64::from(id) < FIRST_NORMAL {
            return i32::MAX;
        }
        (self.state.lock().next as u32).wrapping_sub(id) as i32
    }

    fn end(&self, id: i64, committed: bool) {
        let mut state = self.state.lock();
        state.under_way.remove(&id);
        state.completed = state.completed.max(id + 1);
        if !committed {
            state.aborted.insert(id);
            if state.aborted.len() > ABORTED_MAX
                && let Some(oldest) = state.aborted.pop_first()
            {
                state.known_from = oldest + 1;
            }
        }
    }

    /// Which transactions are over, as the one with the id `own` has it in snapshots: it is not listed.
    fn snapshot(&self, own: Option<i64>) -> Snapshot {
        let state = self.state.lock();
        let xmax = state.completed;
        let xmin = state.under_way.first().map_or(xmax, |oldest| (*oldest).min(xmax));
        let under_way = state.under_way.range(..xmax).copied().filter(|id| Some(*id) != own).collect();
        Snapshot { xmin, xmax, under_way }
    }

    /// What became of a transaction; `None` if that was too long ago.
    pub fn status(&self, id: i64) -> Result<Option<&'static str>> {
        let state = self.state.lock();
        if id >= state.next {
            let message = format!("transaction ID {id} is in the future");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        Ok(match id {
            // Bootstrap and frozen.
            1 | 2 => Some("committed"),
            id if state.under_way.contains(&id) => Some("in progress"),
            id if id < state.known_from => None,
            id if state.aborted.contains(&id) => Some("aborted"),
            _ => Some("committed"),
        })
    }
}

/// What a session's transaction has of all this.
#[derive(Default)]
pub struct OwnTransaction {
    /// Whether there is anything: all that a transaction without an id looks at.
    used: AtomicBool,
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    id: Option<(Arc<TransactionIds>, i64)>,
    /// The snapshot of a transaction that has one for all of its statements.
    snapshot: Option<Snapshot>,
    /// What it has given to others to see.
    exported: Vec<Arc<archipel_engine::Snapshot>>,
    /// Keeps the places of rows that it has asked for.
    places: Option<PlacesInUse>,
}

impl OwnTransaction {
    /// The transaction's id, if it has one.
    pub fn id(&self) -> Option<i64> {
        self.own.lock().id.as_ref().map(|(_, id)| *id)
    }

    /// The transaction's id; it gets one if need be.
    pub fn assigned(&self, ids: &Arc<TransactionIds>) -> i64 {
        let mut own = self.own.lock();
        self.used.store(true, Ordering::Relaxed);
        own.id.get_or_insert_with(|| (ids.clone(), ids.assign())).1
    }

    /// The snapshot of a statement, or of the transaction if it keeps one.
    pub fn snapshot(&self, ids: &Arc<TransactionIds>, kept: bool) -> Snapshot {
        let mut own = self.own.lock();
        let id = own.id.as_ref().map(|(_, id)| *id);
        if !kept {
            return ids.snapshot(id);
        }
        self.used.store(true, Ordering::Relaxed);
        own.snapshot.get_or_insert_with(|| ids.snapshot(id)).clone()
    }

    /// Keeps a snapshot that others may take over until the transaction is over.
    pub fn keep_exported(&self, snapshot: Arc<archipel_engine::Snapshot>) {
        let mut own = self.own.lock();
        self.used.store(true, Ordering::Relaxed);
        own.exported.push(snapshot);
    }

    /// Keeps the places of rows that it asks for from now on until it is over; as whom it asks for them.
    pub fn keep_places(&self, places: &Arc<RowPlaces>) -> u64 {
        let mut own = self.own.lock();
        self.used.store(true, Ordering::Relaxed);
        own.places.get_or_insert_with(|| places.in_use()).asker()
    }

    /// The transaction is over.
    pub fn end(&self, committed: bool) {
        if !self.used.load(Ordering::Relaxed) {
            return;
        }
        self.used.store(false, Ordering::Relaxed);
        let own = std::mem::take(&mut *self.own.lock());
        if let Some((ids, id)) = own.id {
            ids.end(id, committed);
        }
    }
}

impl Drop for OwnTransaction {
    /// A session that ends in the middle of a transaction.
    fn drop(&mut self) {
        self.end(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_over_starts() {
        let first = TransactionIds::of_start(0);
        let second = TransactionIds::of_start(1);
        let last = (0..1000).map(|_| first.assign()).fold(0, i64::max);
        assert!(last < second.assign());
    }

    #[test]
    fn a_snapshot_lists_who_is_under_way_before_the_last_that_is_over() {
        let ids = TransactionIds::of_start(0);
        let sessions: [OwnTransaction; 4] = Default::default();
        let assigned: Vec<i64> = sessions.iter().map(|session| session.assigned(&ids)).collect();
        sessions[2].end(true);
        let seen = sessions[0].snapshot(&ids, false);
        // Its own it does not list; the last is beyond.
        assert_eq!(seen.to_string(), format!("{}:{}:{}", assigned[0], assigned[3], assigned[1]));
        assert!(seen.sees(assigned[2]) && !seen.sees(assigned[1]) && !seen.sees(assigned[3]));
    }

    #[test]
    fn a_kept_snapshot_stays() {
        let ids = TransactionIds::of_start(0);
        let (reader, writer) = (OwnTransaction::default(), OwnTransaction::default());
        let before = reader.snapshot(&ids, true);
        let id = writer.assigned(&ids);
        writer.end(true);
        assert_eq!(reader.snapshot(&ids, true), before);
        assert!(reader.snapshot(&ids, false).sees(id));
        reader.end(true);
        assert!(reader.snapshot(&ids, true).sees(id));
    }

    #[test]
    fn what_became_of_transactions_is_known() {
        let ids = TransactionIds::of_start(7);
        let [done, undone, open]: [OwnTransaction; 3] = Default::default();
        let (a, b, c) = (done.assigned(&ids), undone.assigned(&ids), open.assigned(&ids));
        done.end(true);
        drop(undone);
        let status = |id| ids.status(id).ok().flatten();
        assert_eq!([a, b, c].map(status), [Some("committed"), Some("aborted"), Some("in progress")]);
        assert_eq!(status(a - 1), None);
        assert!(ids.status(c + 1).is_err());
    }
}
