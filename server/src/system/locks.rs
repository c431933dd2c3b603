//! `pg_locks`: tables, advisory locks, and transactions that others wait for.
//!
//! Locked rows are not listed, as in PostgreSQL: whoever waits for a row waits for the
//! transaction that locks it, and every transaction that has written or locked rows holds its
//! own number. A statement that writes a table reads it first, here: the table is listed in both
//! modes.

use archipel_engine::id::TxnId;
use archipel_engine::{LockTag, ObjectMode, WaitOn};
use archipel_sql::datum::Datum;
use archipel_sql::types::Oid;

use super::activity::xid;
use super::cells::text;
use super::relations::Relations;
use crate::session::host::Host;
use crate::sessions::SessionEntry;

/// Where advisory locks of one number, and of two, are told apart.
const ONE_NUMBER: i16 = 1;
const TWO_NUMBERS: i16 = 2;

/// The rows, in the order of the view's columns.
pub(super) fn rows(host: &Host) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    let sessions = host.server.sessions.list();
    let relations = Relations::seen_by(host);
    let session_of = |number: i32| sessions.iter().find(|session| session.engine.number() == number);
    for view in host.server.engine.object_locks() {
        let Some(session) = session_of(view.client) else { continue };
        let wait = if view.granted { None } else { session.engine.wait() };
        let since = wait.map_or(Datum::Null, |wait| Datum::TimestampTz(wait.since));
        let locked = object(&relations, session, view.lock.tag);
        rows.push(row(locked, session, view.lock.mode, view.granted, since));
    }
    for session in &sessions {
        let client = &session.engine;
        for (tag, mode) in client.weak_locks() {
            rows.push(row(object(&relations, session, tag), session, mode, true, Datum::Null));
        }
        if let Some((id, true)) = client.transaction() {
            let own = Object { transaction: Some(id), ..Object::of("transactionid") };
            rows.push(row(own, session, ObjectMode::Exclusive, true, Datum::Null));
        }
        let Some(wait) = client.wait() else { continue };
        let since = Datum::TimestampTz(wait.since);
        match wait.on {
            WaitOn::Row(_) => {
                let other =
                    Object { transaction: wait.blockers.first().copied(), ..Object::of("transactionid") };
                rows.push(row(other, session, ObjectMode::Share, false, since));
            }
            // A session that takes part in a queue is listed with the lock; one that only looks
            // on, a statement of its own, is not.
            WaitOn::Object(lock) if !client.is_queued() => {
                let locked = object(&relations, session, lock.tag);
                rows.push(row(locked, session, lock.mode, false, since));
            }
            WaitOn::Object(_) => {}
        }
    }
    rows
}

/// What is locked, in the view's columns.
struct Object {
    kind: &'static str,
    database: Option<Oid>,
    relation: Option<Oid>,
    transaction: Option<TxnId>,
    numbers: Option<(u32, u32, i16)>,
}

impl Object {
    fn of(kind: &'static str) -> Object {
        Object { kind, database: None, relation: None, transaction: None, numbers: None }
    }
}

/// What a session has locked; what no catalog knows yet is of its own database.
fn object(relations: &Relations, session: &SessionEntry, tag: LockTag) -> Object {
    match tag {
        LockTag::Table(_) | LockTag::Sequence(_) => {
            let known = relations.locked(tag);
            let database = known.map_or(session.database_oid, |(database, _)| database.oid);
            let relation = known.map(|(_, relation)| relation);
            Object { database: Some(database), relation, ..Object::of("relation") }
        }
        LockTag::Advisory { database, first, second, two } => {
            let kind = if two { TWO_NUMBERS } else { ONE_NUMBER };
            let numbers = Some((first, second, kind));
            Object { database: Some(Oid(database)), numbers, ..Object::of("advisory") }
        }
    }
}

fn row(object: Object, session: &SessionEntry, mode: ObjectMode, granted: bool, since: Datum) -> Vec<Datum> {
    let number = |number: Option<u32>| number.map_or(Datum::Null, |number| Datum::Oid(Oid(number)));
    let (client, pid) = (&session.engine, session.process_id);
    let owner = client.transaction().map_or(client.owner(), |(id, _)| id);
    vec![
        text(object.kind),
        object.database.map_or(Datum::Null, Datum::Oid),
        object.relation.map_or(Datum::Null, Datum::Oid),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        object.transaction.map_or(Datum::Null, xid),
        number(object.numbers.map(|numbers| numbers.0)),
        number(object.numbers.map(|numbers| numbers.1)),
        object.numbers.map_or(Datum::Null, |numbers| Datum::Int2(numbers.2)),
        text(format!("{pid}/{owner}")),
        Datum::Int4(pid),
        text(mode.name()),
        Datum::Bool(granted),
        Datum::Bool(object.kind == "relation" && granted && mode.is_weak()),
        since,
    ]
}
