//! All sessions of the server: for `pg_stat_activity`, for cancel requests, for the connection
//! limit. The table is touched when a session begins or ends; a session updates only its own
//! entry while it works.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::time::Duration;

use archipel_engine::Client;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::SessionHost;
use archipel_sql::strong_random::random_bytes;
use archipel_sql::types::Oid;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, watch};

use crate::wire::tls::TlsFacts;

/// Why a running statement shall stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CancelReason {
    None = 0,
    User = 1,
    StatementTimeout = 2,
    Shutdown = 3,
    LockTimeout = 4,
    ClientGone = 5,
}

/// What a CancelRequest has to know of a session: nobody who has seen other sessions' secrets can
/// foretell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// As long as protocol 3.0 allows.
    Short([u8; 4]),
    /// Since protocol 3.2.
    Long([u8; 32]),
}

impl Secret {
    /// A new one, as long as this minor version of the protocol allows.
    pub fn draw(minor_version: u16) -> Result<Secret, SqlError> {
        if minor_version >= LONG_SECRETS_SINCE {
            random_bytes().map(Secret::Long)
        } else {
            random_bytes().map(Secret::Short)
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Secret::Short(bytes) => bytes,
            Secret::Long(bytes) => bytes,
        }
    }

    /// Whether this is it: compared in a time that does not tell how much of it was right.
    fn is(&self, told: &[u8]) -> bool {
        let own = self.bytes();
        own.len() == told.len() && own.iter().zip(told).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

/// The minor version of the protocol whose cancel keys may be longer than four bytes.
const LONG_SECRETS_SINCE: u16 = 2;

/// What a session is doing, written by itself at the beginning and the end of each statement:
/// with plain stores, and under a lock only where a text changes. Whoever looks meanwhile may see
/// the one statement's text with the next one's time.
#[derive(Debug, Default)]
pub struct Activity {
    texts: Mutex<Texts>,
    active: AtomicBool,
    query_start: AtomicI64,
    state_change: AtomicI64,
    /// 0 outside of a block.
    transaction_start: AtomicI64,
    transaction_failed: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct Texts {
    query: Arc<str>,
    application_name: Arc<str>,
}

/// An [`Activity`] as `pg_stat_activity` shows it. Times are microseconds since 2000-01-01 UTC.
#[derive(Clone, Debug)]
pub struct ActivityView {
    pub query: Arc<str>,
    pub active: bool,
    pub transaction: Option<TransactionActivity>,
    pub query_start: i64,
    pub state_change: i64,
    pub application_name: Arc<str>,
}

impl Activity {
    fn new(now: i64) -> Activity {
        Activity { state_change: AtomicI64::new(now), ..Activity::default() }
    }

    /// A statement begins.
    pub fn begin(&self, now: i64) {
        self.query_start.store(now, Ordering::Relaxed);
        self.state_change.store(now, Ordering::Relaxed);
        self.active.store(true, Ordering::Relaxed);
    }

    /// The session waits for its client; `took` is how long the statement ran, if that is known.
    pub fn end(&self, took: Option<Duration>, transaction: Option<TransactionActivity>) {
        if self.active.load(Ordering::Relaxed) {
            self.active.store(false, Ordering::Relaxed);
            let now = match took {
                Some(took) => self.query_start.load(Ordering::Relaxed) + took.as_micros() as i64,
                None => crate::clock::now(),
            };
            self.state_change.store(now, Ordering::Relaxed);
        }
        self.transaction_start.store(transaction.map_or(0, |open| open.start), Ordering::Relaxed);
        self.transaction_failed.store(transaction.is_some_and(|open| open.failed), Ordering::Relaxed);
    }

    pub fn set_query(&self, query: &Arc<str>) {
        self.texts.lock().query = query.clone();
    }

    pub fn set_application_name(&self, name: &str) {
        self.texts.lock().application_name = name.into();
    }

    pub fn view(&self) -> ActivityView {
        let Texts { query, application_name } = self.texts.lock().clone();
        let start = self.transaction_start.load(Ordering::Relaxed);
        let failed = self.transaction_failed.load(Ordering::Relaxed);
        ActivityView {
            query,
            active: self.active.load(Ordering::Relaxed),
            transaction: (start != 0).then_some(TransactionActivity { start, failed }),
            query_start: self.query_start.load(Ordering::Relaxed),
            state_change: self.state_change.load(Ordering::Relaxed),
            application_name,
        }
    }
}

/// The transaction block a session is in.
#[derive(Clone, Copy, Debug)]
pub struct TransactionActivity {
    pub start: i64,
    pub failed: bool,
}

/// One session, as others see it.
pub struct SessionEntry {
    pub process_id: i32,
    secret: Secret,
    /// As it was called when it connected.
    pub user: String,
    /// Whose rights are asked about: a name may be another's by now.
    pub role: Oid,
    pub database_oid: Oid,
    pub database: String,
    pub client: Option<std::net::SocketAddr>,
    /// Where the client has come to; `None`: through a Unix socket.
    pub server_address: Option<std::net::IpAddr>,
    /// What is known of its connection's encryption; `None`: it has none.
    pub tls: Option<Arc<TlsFacts>>,
    executor: AtomicU16,
    /// The executor it shall go to; [`NOWHERE`]: it stays.
    destination: AtomicU32,
    pub backend_start: i64,
    pub activity: Activity,
    /// The session as the engine knows it. Its cancel flag is set to stop the running
    /// statement, and cleared when the next one begins.
    pub engine: Arc<Client>,
    reason: AtomicU8,
    running: AtomicBool,
    asked: Notify,
    /// The session shall end: `pg_terminate_backend`.
    terminated: AtomicBool,
    /// It has nothing to do with its database any more: its last replies are on their way.
    left: AtomicBool,
}

const NOWHERE: u32 = u32::MAX;

impl SessionEntry {
    /// The executor that serves it.
    pub fn executor(&self) -> u16 {
        self.executor.load(Ordering::Relaxed)
    }

    /// The executor it is asked to go to.
    pub fn destination(&self) -> Option<u16> {
        u16::try_from(self.destination.load(Ordering::Relaxed)).ok()
    }

    /// Where it is, or will be.
    fn goes_to(&self) -> u16 {
        self.destination().unwrap_or_else(|| self.executor())
    }

    /// It does not go anywhere.
    pub fn stay(&self) {
        self.destination.store(NOWHERE, Ordering::Relaxed);
    }

    /// It has left for its destination.
    pub fn arrive_at_destination(&self) {
        if let Ok(executor) = u16::try_from(self.destination.swap(NOWHERE, Ordering::Relaxed)) {
            self.executor.store(executor, Ordering::Relaxed);
        }
    }

    /// A statement begins: a cancel request that came before it was meant for another one.
    pub fn begin_statement(&self) {
        self.forget_cancellation();
        self.running.store(true, Ordering::Release);
    }

    /// Nobody has asked the statement to stop.
    pub fn forget_cancellation(&self) {
        if self.engine.is_cancelled() {
            self.engine.set_cancelled(false);
            self.reason.store(CancelReason::None as u8, Ordering::Relaxed);
        }
    }

    /// Resolves when a statement that was asked to stop goes on: a handler has taken the error.
    pub async fn cancellation_forgotten(&self) {
        while self.is_cancelled() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn end_statement(&self) {
        self.running.store(false, Ordering::Release);
    }

    /// Asks the running statement to stop; nothing happens between statements.
    pub fn cancel(&self, reason: CancelReason) {
        if self.running.load(Ordering::Acquire) {
            self.reason.store(reason as u8, Ordering::Relaxed);
            self.engine.set_cancelled(true);
            self.asked.notify_one();
        }
    }

    /// Resolves when the running statement is asked to stop.
    pub async fn cancel_asked(&self) {
        while !self.is_cancelled() {
            self.asked.notified().await;
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.engine.is_cancelled()
    }

    /// Whether somebody wants the session to end.
    pub fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Acquire)
    }

    /// It is done with its database, which may go.
    pub fn leave_database(&self) {
        self.left.store(true, Ordering::Release);
    }

    fn is_in(&self, database: Oid) -> bool {
        self.database_oid == database && !self.left.load(Ordering::Acquire)
    }

    /// Whether it was its time that asked the statement to stop.
    pub fn has_timed_out(&self) -> bool {
        self.is_cancelled() && self.reason.load(Ordering::Relaxed) == CancelReason::StatementTimeout as u8
    }

    /// The error of a statement that was asked to stop.
    pub fn cancel_error(&self) -> SqlError {
        let reason = self.reason.load(Ordering::Relaxed);
        let (state, message) = if reason == CancelReason::StatementTimeout as u8 {
            (SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
        } else if reason == CancelReason::Shutdown as u8 {
            (SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        } else if reason == CancelReason::ClientGone as u8 {
            (SqlState(*b"08006"), "connection to client lost")
        } else if reason == CancelReason::LockTimeout as u8 {
            (SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
        } else {
            (SqlState::QUERY_CANCELED, "canceling statement due to user request")
        };
        SqlError::new(state, message)
    }
}

/// The session as work that was asked to stop sees it, before there is a host of it: the binder's and
/// the parser's.
impl SessionHost for SessionEntry {
    fn interrupted(&self) -> bool {
        self.is_cancelled()
    }

    fn interruption(&self) -> Option<SqlError> {
        self.is_cancelled().then(|| self.cancel_error())
    }
}

/// The table. See the module's head.
pub struct Sessions {
    entries: Mutex<FxHashMap<i32, Arc<SessionEntry>>>,
    next: AtomicI32,
    count: AtomicUsize,
    limit: usize,
    /// Places of those that only superusers get.
    reserved: usize,
    dropped_databases: AtomicU64,
    /// Changes when sessions shall end or go elsewhere; executors look which of theirs.
    requests: watch::Sender<()>,
}

/// A place in the table, given back when dropped.
pub struct Registered {
    sessions: Arc<Sessions>,
    pub entry: Arc<SessionEntry>,
}

/// What a new session brings.
pub struct NewSession<'e> {
    pub user: String,
    pub role: Oid,
    pub superuser: bool,
    /// How many sessions the role may have; negative: any number.
    pub role_limit: i32,
    pub database_oid: Oid,
    pub database: String,
    /// How many the database may have.
    pub database_limit: i32,
    pub client: Option<std::net::SocketAddr>,
    /// Where the client has come to; `None`: through a Unix socket.
    pub server_address: Option<std::net::IpAddr>,
    pub tls: Option<Arc<TlsFacts>>,
    pub executor: u16,
    pub now: i64,
    pub secret: Secret,
    /// Makes the engine's client for a process id.
    pub engine: &'e dyn Fn(i32) -> Arc<Client>,
}

impl Sessions {
    /// A table of so many places, some of them reserved for superusers.
    pub fn new(limit: usize, reserved: usize) -> Arc<Sessions> {
        Arc::new(Sessions {
            entries: Mutex::default(),
            next: AtomicI32::new(1),
            count: AtomicUsize::new(0),
            limit,
            reserved,
            dropped_databases: AtomicU64::new(0),
            requests: watch::channel(()).0,
        })
    }

    /// Registers a session, or answers PostgreSQL's error when there are too many: of all, of its role, in
    /// its database. Nobody else is counted meanwhile.
    pub fn register(self: &Arc<Self>, new: NewSession<'_>) -> Result<Registered, SqlError> {
        let mut entries = self.entries.lock();
        if entries.len() >= self.limit {
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already"));
        }
        let of_role = |entry: &SessionEntry| entry.role == new.role;
        if is_full(&new, new.role_limit, &entries, of_role) {
            let message = format!("too many connections for role \"{}\"", new.user);
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message));
        }
        if !new.superuser && entries.len() + self.reserved >= self.limit {
            let message = "remaining connection slots are reserved for non-replication superuser connections";
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message));
        }
        let in_database = |entry: &SessionEntry| entry.is_in(new.database_oid);
        if is_full(&new, new.database_limit, &entries, in_database) {
            let message = format!("too many connections for database \"{}\"", new.database);
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message));
        }
        let process_id = loop {
            let candidate = self.next.fetch_add(1, Ordering::Relaxed) & 0x7fff_ffff;
            if candidate != 0 && !entries.contains_key(&candidate) {
                break candidate;
            }
        };
        let entry = Arc::new(SessionEntry {
            process_id,
            secret: new.secret,
            user: new.user,
            role: new.role,
            database_oid: new.database_oid,
            database: new.database,
            client: new.client,
            server_address: new.server_address,
            tls: new.tls,
            executor: AtomicU16::new(new.executor),
            destination: AtomicU32::new(NOWHERE),
            backend_start: new.now,
            activity: Activity::new(new.now),
            engine: (new.engine)(process_id),
            reason: AtomicU8::new(0),
            running: AtomicBool::new(false),
            asked: Notify::new(),
            terminated: AtomicBool::new(false),
            left: AtomicBool::new(false),
        });
        entries.insert(process_id, entry.clone());
        self.count.store(entries.len(), Ordering::Relaxed);
        Ok(Registered { sessions: self.clone(), entry })
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The sessions in a database, but for one that asks.
    pub fn others_in(&self, database: Oid, asks: i32) -> Vec<Arc<SessionEntry>> {
        let entries = self.entries.lock();
        let others = entries.values().filter(|entry| entry.process_id != asks && entry.is_in(database));
        others.cloned().collect()
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// A CancelRequest: a wrong secret is ignored, as the protocol asks.
    pub fn cancel(&self, process_id: i32, secret: &[u8]) {
        if let Some(entry) = self.entries.lock().get(&process_id)
            && entry.secret.is(secret)
        {
            entry.cancel(CancelReason::User);
        }
    }

    /// Who connected to a session, whatever the role is called by now; `None`: there is no such session.
    pub fn role_of(&self, process_id: i32) -> Option<Oid> {
        self.entries.lock().get(&process_id).map(|entry| entry.role)
    }

    /// `pg_cancel_backend`.
    pub fn cancel_backend(&self, process_id: i32) -> bool {
        match self.entries.lock().get(&process_id) {
            Some(entry) => {
                entry.cancel(CancelReason::User);
                true
            }
            None => false,
        }
    }

    /// `pg_terminate_backend`: the session's statement is cancelled, and its client told to go.
    pub fn terminate_backend(&self, process_id: i32) -> bool {
        let Some(entry) = self.entries.lock().get(&process_id).cloned() else { return false };
        entry.terminated.store(true, Ordering::Release);
        entry.cancel(CancelReason::Shutdown);
        self.requests.send_replace(());
        true
    }

    /// Spreads the sessions over the `active` executors: those of others all go, and of the rest
    /// as few as it takes.
    pub fn spread(&self, active: &[u16]) {
        let sessions = self.list();
        let places: Vec<u16> = sessions.iter().map(|session| session.goes_to()).collect();
        for (at, to) in spread(&places, active) {
            let session = &sessions[at];
            let to = if session.executor() == to { NOWHERE } else { u32::from(to) };
            session.destination.store(to, Ordering::Relaxed);
        }
        self.requests.send_replace(());
    }

    /// How many databases have been dropped since the start.
    pub fn dropped_databases(&self) -> u64 {
        self.dropped_databases.load(Ordering::Acquire)
    }

    /// A database is gone: executors look what they keep of it.
    pub fn note_dropped_database(&self) {
        self.dropped_databases.fetch_add(1, Ordering::Release);
        self.requests.send_replace(());
    }

    /// Changes when sessions shall end or go elsewhere, or a database is gone.
    pub fn requests(&self) -> watch::Receiver<()> {
        self.requests.subscribe()
    }

    /// All sessions, by process id.
    pub fn list(&self) -> Vec<Arc<SessionEntry>> {
        let mut entries: Vec<_> = self.entries.lock().values().cloned().collect();
        entries.sort_by_key(|entry| entry.process_id);
        entries
    }
}

/// Whether there is no place left among those that count for a limit, which is no superuser's.
fn is_full(
    new: &NewSession<'_>,
    limit: i32,
    entries: &FxHashMap<i32, Arc<SessionEntry>>,
    counts: impl Fn(&SessionEntry) -> bool,
) -> bool {
    let Ok(limit) = usize::try_from(limit) else { return false };
    !new.superuser && entries.values().filter(|entry| counts(entry)).count() >= limit
}

/// Which sessions, by position, go to which of the `active` executors, so that none serves two
/// more than another.
fn spread(places: &[u16], active: &[u16]) -> Vec<(usize, u16)> {
    let mut at: BTreeMap<u16, Vec<usize>> = active.iter().map(|executor| (*executor, Vec::new())).collect();
    if at.is_empty() {
        return Vec::new();
    }
    let mut homeless = Vec::new();
    for (session, executor) in places.iter().enumerate() {
        match at.get_mut(executor) {
            Some(there) => there.push(session),
            None => homeless.push(session),
        }
    }
    let mut goes: BTreeMap<usize, u16> = BTreeMap::new();
    loop {
        let count = |(executor, there): (&u16, &Vec<usize>)| (there.len(), *executor);
        let (least, to) = at.iter().map(count).min().unwrap_or_default();
        let (most, from) = at.iter().map(count).max().unwrap_or_default();
        let next = match homeless.pop() {
            Some(session) => Some(session),
            None if most > least + 1 => at.get_mut(&from).and_then(Vec::pop),
            None => None,
        };
        let Some(session) = next else { return goes.into_iter().collect() };
        goes.insert(session, to);
        at.entry(to).or_default().push(session);
    }
}

impl Registered {
    /// Process id and secret, for BackendKeyData.
    pub fn key(&self) -> (i32, &[u8]) {
        (self.entry.process_id, self.entry.secret.bytes())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut entries = self.sessions.entries.lock();
        entries.remove(&self.entry.process_id);
        self.sessions.count.store(entries.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> NewSession<'static> {
        NewSession {
            user: "archipel".into(),
            role: Oid(10),
            superuser: true,
            role_limit: -1,
            database_oid: Oid(5),
            database: "archipel".into(),
            database_limit: -1,
            client: None,
            server_address: None,
            tls: None,
            executor: 0,
            now: 0,
            secret: Secret::Short([0, 0, 0, 42]),
            engine: &Client::detached,
        }
    }

    #[test]
    fn the_limit_is_53300_and_places_come_back() {
        let sessions = Sessions::new(1, 0);
        let first = sessions.register(new()).unwrap();
        let refused = sessions.register(new()).err().unwrap();
        assert_eq!(refused.state(), SqlState::TOO_MANY_CONNECTIONS);
        drop(first);
        assert!(sessions.register(new()).is_ok());
    }

    #[test]
    fn the_last_places_are_for_superusers() {
        let sessions = Sessions::new(3, 2);
        let plain = || sessions.register(NewSession { superuser: false, ..new() });
        let _first = plain().unwrap();
        let refused = plain().err().unwrap();
        assert_eq!(refused.state(), SqlState::TOO_MANY_CONNECTIONS);
        let _others = [sessions.register(new()).unwrap(), sessions.register(new()).unwrap()];
        assert_eq!(sessions.register(new()).err().unwrap().message(), "sorry, too many clients already");
    }

    #[test]
    fn only_the_right_secret_cancels_and_only_a_running_statement() {
        let sessions = Sessions::new(2, 0);
        let session = sessions.register(new()).unwrap();
        sessions.cancel(session.entry.process_id, &[0, 0, 0, 42]);
        assert!(!session.entry.is_cancelled());
        session.entry.begin_statement();
        sessions.cancel(session.entry.process_id, &[0, 0, 0, 41]);
        sessions.cancel(session.entry.process_id, &[0, 0, 0]);
        assert!(!session.entry.is_cancelled());
        sessions.cancel(session.entry.process_id, &[0, 0, 0, 42]);
        assert!(session.entry.is_cancelled());
        session.entry.begin_statement();
        assert!(!session.entry.is_cancelled());
    }

    fn after(places: &[u16], active: &[u16]) -> Vec<u16> {
        let mut places = places.to_vec();
        let goes = spread(&places, active);
        goes.into_iter().for_each(|(session, to)| places[session] = to);
        places
    }

    #[test]
    fn sessions_spread_over_the_executors_that_have_a_core() {
        assert_eq!(after(&[0, 1, 0, 1], &[0]), [0, 0, 0, 0]);
        assert_eq!(after(&[0, 0, 0, 0], &[0, 1]), [0, 0, 1, 1]);
        assert_eq!(after(&[0, 0, 0, 1], &[0, 1, 2]), [0, 0, 2, 1]);
        assert_eq!(after(&[0, 1, 1], &[0, 1]), [0, 1, 1], "nobody goes without need");
        assert_eq!(after(&[3, 3, 3], &[0, 1]).iter().filter(|executor| **executor == 0).count(), 2);
        assert_eq!(after(&[], &[0]), [0; 0]);
    }

    #[test]
    fn a_session_is_asked_to_go_and_arrives() {
        let sessions = Sessions::new(4, 0);
        let session = sessions.register(new()).unwrap();
        sessions.spread(&[1]);
        assert_eq!((session.entry.executor(), session.entry.destination()), (0, Some(1)));
        // Its core is back before it has left.
        sessions.spread(&[0]);
        assert_eq!(session.entry.destination(), None);
        sessions.spread(&[1]);
        session.entry.arrive_at_destination();
        assert_eq!((session.entry.executor(), session.entry.destination()), (1, None));
    }
}
