//! Who does what, and who waits for whom: `pg_stat_activity`, `pg_blocking_pids`.
//!
//! Invariant: all of it is put together when asked. A session writes its own entry at the
//! beginning and the end of a statement, and the engine writes a wait only when there is one.

use archipel_engine::id::TxnId;
use archipel_engine::{LockTag, Wait, WaitOn};
use archipel_sql::catalog::role::READ_ALL_STATS;
use archipel_sql::datum::Datum;
use archipel_sql::function::SessionHost as _;
use archipel_sql::parser::truncate_identifier;
use archipel_sql::types::Oid;

use super::cells::{address, count, optional, text};
use crate::database::Database;
use crate::session::host::Host;
use crate::sessions::SessionEntry;

/// What `pg_stat_activity` shows of a session to everybody: the database, the process, who it is,
/// the application and the numbers of its transaction.
const OF_EVERYBODY: [std::ops::Range<usize>; 2] = [0..7, 17..19];
const APPLICATION_NAME: usize = 6;
const QUERY: usize = 20;

/// PostgreSQL's name of what is waited for, in `pg_stat_activity.wait_event` and
/// `pg_locks.locktype`.
pub(super) fn wait_event(on: &WaitOn) -> &'static str {
    match on {
        WaitOn::Row(_) => "transactionid",
        WaitOn::Object(lock) => match lock.tag {
            LockTag::Table(_) | LockTag::Sequence(_) => "relation",
            LockTag::Advisory { .. } => "advisory",
        },
    }
}

/// A transaction's number as the type `xid` shows it.
pub(super) fn xid(id: TxnId) -> Datum {
    // The low half, as PostgreSQL's own 32 bits of a 64-bit number.
    Datum::Oid(Oid(id.0 as u32))
}

/// The rows of `pg_stat_activity`.
pub(super) fn rows(host: &Host) -> Vec<Vec<Datum>> {
    let rights = host.rights();
    let sees_all = rights.acts_as(READ_ALL_STATS);
    let sessions = host.server.sessions.list();
    let row = |session: &std::sync::Arc<SessionEntry>| {
        let role = host.catalog.catalog.role_by_oid(session.role);
        let mut row = row(session, role.map(|role| role.name.clone()));
        // What its statement has set takes hold for others when that has succeeded.
        if session.process_id == host.entry.process_id
            && let Some(name) = host.setting("application_name")
        {
            row[APPLICATION_NAME] = text(&name);
        }
        if !sees_all && !rights.acts_as(session.role) {
            for (place, cell) in row.iter_mut().enumerate() {
                if !OF_EVERYBODY.iter().any(|range| range.contains(&place)) {
                    *cell = if place == QUERY { text("<insufficient privilege>") } else { Datum::Null };
                }
            }
        }
        row
    };
    sessions.iter().map(row).collect()
}

fn row(session: &SessionEntry, role_name: Option<String>) -> Vec<Datum> {
    let activity = session.activity.view();
    let transaction = session.engine.transaction();
    let state = match activity.transaction {
        _ if activity.active => "active",
        Some(transaction) if transaction.failed => "idle in transaction (aborted)",
        Some(_) => "idle in transaction",
        None => "idle",
    };
    let begun = |time: i64| if time == 0 { Datum::Null } else { Datum::TimestampTz(time) };
    let started = match activity.transaction {
        Some(transaction) => Datum::TimestampTz(transaction.start),
        // A statement on its own is a transaction of its own.
        None if activity.active => begun(activity.query_start),
        None => Datum::Null,
    };
    let waits = activity.active.then(|| session.engine.wait()).flatten();
    let (wait_type, wait_event) = match &waits {
        Some(wait) => (Some("Lock"), Some(wait_event(&wait.on))),
        None if activity.active => (None, None),
        None => (Some("Client"), Some("ClientRead")),
    };
    let written = transaction.filter(|(_, wrote)| *wrote).map(|(id, _)| id);
    vec![
        Datum::Oid(session.database_oid),
        text(&session.database),
        Datum::Int4(session.process_id),
        Datum::Null,
        Datum::Oid(session.role),
        optional(role_name),
        text(&activity.application_name),
        address(session.client.map(|client| client.ip())),
        Datum::Null,
        session.client.map_or(Datum::Int4(-1), |client| Datum::Int4(i32::from(client.port()))),
        Datum::TimestampTz(session.backend_start),
        started,
        begun(activity.query_start),
        begun(activity.state_change),
        optional(wait_type),
        optional(wait_event),
        text(state),
        written.map_or(Datum::Null, xid),
        transaction.map_or(Datum::Null, |(id, _)| xid(id)),
        Datum::Null,
        text(&activity.query),
        text("client backend"),
    ]
}

/// The sessions of whose connections the role in force is told something.
fn seen(host: &Host) -> Vec<std::sync::Arc<SessionEntry>> {
    let rights = host.rights();
    let mut sessions = host.server.sessions.list();
    if !rights.acts_as(READ_ALL_STATS) {
        sessions.retain(|session| rights.acts_as(session.role));
    }
    sessions
}

/// The rows of `pg_stat_gssapi`: nobody comes that way.
pub(super) fn gssapi(host: &Host) -> Vec<Vec<Datum>> {
    let row = |session: &std::sync::Arc<SessionEntry>| {
        vec![Datum::Int4(session.process_id), Datum::Bool(false), Datum::Null, Datum::Bool(false)]
    };
    seen(host).iter().map(row).collect()
}

/// The rows of `pg_stat_ssl`.
pub(super) fn ssl(host: &Host) -> Vec<Vec<Datum>> {
    seen(host).iter().map(|session| ssl_row(session)).collect()
}

fn ssl_row(session: &SessionEntry) -> Vec<Datum> {
    let Some(tls) = &session.tls else {
        let mut row = vec![Datum::Int4(session.process_id), Datum::Bool(false)];
        row.resize(8, Datum::Null);
        return row;
    };
    let client = tls.client.as_ref();
    // As long as PostgreSQL shows them.
    let name = |name: &str| {
        let mut name = name.to_owned();
        truncate_identifier(&mut name);
        text(name)
    };
    let serial = client.and_then(|client| client.serial.parse().ok());
    vec![
        Datum::Int4(session.process_id),
        Datum::Bool(true),
        text(tls.protocol),
        text(&tls.cipher),
        Datum::Int4(tls.bits),
        client.map_or(Datum::Null, |client| name(&client.subject)),
        serial.map_or(Datum::Null, Datum::Numeric),
        client.map_or(Datum::Null, |client| name(&client.issuer)),
    ]
}

/// What of `pg_stat_database` says how often standbys had to cancel statements, which there are none of.
const CONFLICTS: usize = 12;

/// The rows of `pg_stat_database`, with NULL for what is not counted. The first is of what is no database's.
pub(super) fn databases(host: &Host) -> Vec<Vec<Datum>> {
    let sessions = host.server.sessions.list();
    let row = |database: &std::sync::Arc<Database>| {
        let there = sessions.iter().filter(|session| session.database_oid == database.oid).count();
        let mut row = vec![Datum::Oid(database.oid), text(database.name()), count(there)];
        row.resize(28, Datum::Null);
        row[CONFLICTS] = Datum::Int8(0);
        row
    };
    let mut shared = vec![Datum::Oid(Oid(0)), Datum::Null, Datum::Int4(0)];
    shared.resize(28, Datum::Null);
    shared[CONFLICTS] = Datum::Int8(0);
    std::iter::once(shared).chain(host.server.databases.all().iter().map(row)).collect()
}

/// The rows of `pg_stat_database_conflicts`: no statement is cancelled by what a primary server does.
pub(super) fn conflicts(host: &Host) -> Vec<Vec<Datum>> {
    let row = |database: &std::sync::Arc<Database>| {
        let mut row = vec![Datum::Oid(database.oid), text(database.name())];
        row.resize(7, Datum::Int8(0));
        row
    };
    host.server.databases.all().iter().map(row).collect()
}

/// `pg_blocking_pids`: the sessions in whose way the given one is stuck.
pub fn blocking(host: &Host, process_id: i32) -> Vec<i32> {
    let sessions = host.server.sessions.list();
    let waiting = sessions.iter().find(|session| session.process_id == process_id);
    let Some(Wait { blockers, .. }) = waiting.and_then(|session| session.engine.wait()) else {
        return Vec::new();
    };
    sessions
        .iter()
        .filter(|session| session.process_id != process_id)
        .filter(|session| blockers.iter().any(|id| session.engine.holds_as(*id)))
        .map(|session| session.process_id)
        .collect()
}
