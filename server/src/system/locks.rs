//! `pg_locks`: tables, advisory locks, and transactions that others wait for.
//!
//! Locked rows are not listed, as in PostgreSQL: whoever waits for a row waits for the
//! transaction that locks it, and every transaction that has written or locked rows holds its
//! own number. A statement that writes a table reads it first, here: the table is listed in both
//! modes.

use archipel_engine::id::{TreeId, TxnId};
use archipel_engine::{Client, LockTag, ObjectMode, WaitOn};
use archipel_sql::datum::Datum;
use archipel_sql::types::Oid;

use super::activity::{DATABASE, xid};
use super::cells::text;
use crate::session::host::Host;

/// Where advisory locks of one number, and of two, are told apart.
const ONE_NUMBER: i16 = 1;
const TWO_NUMBERS: i16 = 2;

/// The rows, in the order of the view's columns.
pub(super) fn rows(host: &Host) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    let sessions = host.server.sessions.list();
    let clients: Vec<(&Client, i32)> =
        sessions.iter().map(|session| (&*session.engine, session.process_id)).collect();
    let waits_since = |number: i32| {
        let client = clients.iter().find(|(client, _)| client.number() == number);
        client
            .and_then(|(client, _)| client.wait())
            .map_or(Datum::Null, |wait| Datum::TimestampTz(wait.since))
    };
    for view in host.server.engine.object_locks() {
        let Some((client, pid)) = clients.iter().find(|(client, _)| client.number() == view.client) else {
            continue;
        };
        let since = if view.granted { Datum::Null } else { waits_since(view.client) };
        rows.push(row(object(host, view.lock.tag), client, *pid, view.lock.mode, view.granted, since));
    }
    for (client, pid) in &clients {
        for (tag, mode) in client.weak_locks() {
            rows.push(row(object(host, tag), client, *pid, mode, true, Datum::Null));
        }
        if let Some((id, true)) = client.transaction() {
            let own = Object { transaction: Some(id), ..Object::of("transactionid") };
            rows.push(row(own, client, *pid, ObjectMode::Exclusive, true, Datum::Null));
        }
        let Some(wait) = client.wait() else { continue };
        let since = Datum::TimestampTz(wait.since);
        match wait.on {
            WaitOn::Row(_) => {
                let other =
                    Object { transaction: wait.blockers.first().copied(), ..Object::of("transactionid") };
                rows.push(row(other, client, *pid, ObjectMode::Share, false, since));
            }
            // A session that takes part in a queue is listed with the lock; one that only looks
            // on, a statement of its own, is not.
            WaitOn::Object(lock) if !client.is_queued() => {
                rows.push(row(object(host, lock.tag), client, *pid, lock.mode, false, since));
            }
            WaitOn::Object(_) => {}
        }
    }
    rows
}

/// What is locked, in the view's columns.
struct Object {
    kind: &'static str,
    relation: Option<Oid>,
    transaction: Option<TxnId>,
    numbers: Option<(u32, u32, i16)>,
}

impl Object {
    fn of(kind: &'static str) -> Object {
        Object { kind, relation: None, transaction: None, numbers: None }
    }
}

fn object(host: &Host, tag: LockTag) -> Object {
    match tag {
        LockTag::Table(tree) => Object { relation: relation(host, tree), ..Object::of("relation") },
        LockTag::Sequence(id) => {
            let sequence = host.catalog.catalog.sequence_by_file(id.0);
            Object { relation: sequence.map(|sequence| sequence.oid), ..Object::of("relation") }
        }
        LockTag::Advisory(first, second, two) => {
            let kind = if two { TWO_NUMBERS } else { ONE_NUMBER };
            Object { numbers: Some((first, second, kind)), ..Object::of("advisory") }
        }
    }
}

fn relation(host: &Host, tree: TreeId) -> Option<Oid> {
    host.catalog.catalog.table_by_tree(tree.0).map(|table| table.oid)
}

fn row(
    object: Object,
    client: &Client,
    pid: i32,
    mode: ObjectMode,
    granted: bool,
    since: Datum,
) -> Vec<Datum> {
    let number = |number: Option<u32>| number.map_or(Datum::Null, |number| Datum::Oid(Oid(number)));
    let owner = client.transaction().map_or(client.owner(), |(id, _)| id);
    vec![
        text(object.kind),
        if object.transaction.is_some() { Datum::Null } else { Datum::Oid(DATABASE) },
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
