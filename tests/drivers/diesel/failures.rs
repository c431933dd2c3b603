//! What the server refuses, what is broken off, and who is let in.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use checks::{Outcome, equal, failure, url};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error};
use diesel::sql_types::Integer;

use crate::schema::{item, owner};
use crate::{connect, label, number};

/// What a server's error says, and what kind diesel takes its SQLSTATE for.
pub struct Refusal {
    pub kind: DatabaseErrorKind,
    pub said: Box<dyn DatabaseErrorInformation + Send + Sync>,
}

/// Fails unless the server refused with this message: diesel keeps SQLSTATEs to itself.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(outcome: QueryResult<T>, message: &str) -> Refusal {
    match failure(outcome) {
        Error::DatabaseError(kind, said) => {
            equal(said.message(), message);
            Refusal { kind, said }
        }
        error => panic!("{error} where PostgreSQL says {message}"),
    }
}

/// A failure to write what is copied.
pub fn unwritten(error: std::io::Error) -> Error {
    Error::SerializationError(Box::new(error))
}

pub fn usable(connection: &mut PgConnection) -> Outcome {
    equal(diesel::select(42.into_sql::<Integer>()).get_result::<i32>(connection)?, 42);
    Ok(())
}

pub fn mistakes() -> Outcome {
    let connection = &mut connect()?;
    let said =
        refused(diesel::sql_query("SELEC 1").execute(connection), "syntax error at or near \"SELEC\"").said;
    equal(said.statement_position(), Some(1));
    refused(connection.batch_execute("SELEC 1"), "syntax error at or near \"SELEC\"");
    refused(
        diesel::sql_query("SELECT * FROM nowhere").execute(connection),
        "relation \"nowhere\" does not exist",
    );
    let lable = diesel::sql_query("SELECT lable FROM item").execute(connection);
    let said = refused(lable, "column \"lable\" does not exist").said;
    equal(said.hint(), Some("Perhaps you meant to reference the column \"item.label\"."));
    let division = diesel::sql_query("SELECT 1 / $1").bind::<Integer, _>(0).execute(connection);
    refused(division, "division by zero");
    usable(connection)
}

pub fn violations() -> Outcome {
    let connection = &mut connect()?;
    diesel::insert_into(owner::table).values(owner::name.eq("cid")).execute(connection)?;
    let again = diesel::insert_into(owner::table).values(owner::name.eq("cid")).execute(connection);
    let Refusal { kind, said } =
        refused(again, "duplicate key value violates unique constraint \"owner_name_once\"");
    equal((said.table_name(), said.constraint_name()), (Some("owner"), Some("owner_name_once")));
    equal(said.details(), Some("Key (name)=(cid) already exists."));
    equal(matches!(kind, DatabaseErrorKind::UniqueViolation), true);
    let orphan = diesel::sql_query("INSERT INTO account (owner_id) VALUES (-1)").execute(connection);
    let text =
        "insert or update on table \"account\" violates foreign key constraint \"account_owner_id_fkey\"";
    equal(matches!(refused(orphan, text).kind, DatabaseErrorKind::ForeignKeyViolation), true);
    let nothing = diesel::sql_query("INSERT INTO owner (name) VALUES (NULL)").execute(connection);
    let text = "null value in column \"name\" of relation \"owner\" violates not-null constraint";
    let Refusal { kind, said } = refused(nothing, text);
    equal((matches!(kind, DatabaseErrorKind::NotNullViolation), said.column_name()), (true, Some("name")));
    let large = diesel::sql_query("SELECT $1::small").bind::<Integer, _>(10).execute(connection);
    let said = refused(large, "value for domain small violates check constraint \"small_check\"");
    equal(matches!(said.kind, DatabaseErrorKind::CheckViolation), true);
    diesel::delete(owner::table).execute(connection)?;
    Ok(())
}

pub fn cancelling() -> Outcome {
    let connection = &mut connect()?;
    let session = number(connection, "SELECT pg_backend_pid()::bigint AS number")?;
    let canceller = thread::spawn(move || -> Outcome<i64> {
        thread::sleep(Duration::from_millis(300));
        number(&mut connect()?, &format!("SELECT pg_cancel_backend({session})::int::bigint AS number"))
    });
    let outcome = diesel::sql_query("SELECT pg_sleep(20)").execute(connection);
    refused(outcome, "canceling statement due to user request");
    equal(canceller.join().expect("it does not panic")?, 1);
    usable(connection)?;
    connection.batch_execute("SET statement_timeout = 200")?;
    let outcome = diesel::sql_query("SELECT pg_sleep(20)").execute(connection);
    refused(outcome, "canceling statement due to statement timeout");
    usable(connection)
}

pub fn locks() -> Outcome {
    let (first, second) = (&mut connect()?, &mut connect()?);
    diesel::insert_into(item::table).values((item::id.eq(5), item::label.eq("five"))).execute(first)?;
    let five = item::table.find(5).select(item::id);
    first.transaction(|within| -> QueryResult<()> {
        diesel::update(item::table.find(5)).set(item::label.eq("six")).execute(within)?;
        second.batch_execute("SET lock_timeout = '200ms'")?;
        let late = diesel::update(item::table.find(5)).set(item::label.eq("seven")).execute(second);
        refused(late, "canceling statement due to lock timeout");
        refused(
            five.for_update().no_wait().load::<i32>(second),
            "could not obtain lock on row in relation \"item\"",
        );
        equal(five.for_no_key_update().skip_locked().load::<i32>(second)?, Vec::<i32>::new());
        Ok(())
    })?;
    let label: Option<String> =
        diesel::delete(item::table.find(5)).returning(item::label).get_result(second)?;
    equal(label.as_deref(), Some("six"));
    Ok(())
}

/// Reads all and then changes one, after the other transaction has read.
fn change(id: i32, read: &mpsc::Sender<()>, other_read: &mpsc::Receiver<()>) -> Outcome<String> {
    let connection = &mut connect()?;
    let outcome = connection.build_transaction().serializable().run(|within| {
        item::table.select(item::label).load::<Option<String>>(within)?;
        // It fails only where the other one has ended already.
        let _ = read.send(());
        let _ = other_read.recv_timeout(Duration::from_secs(10));
        diesel::update(item::table.find(id)).set(item::label.eq("c")).execute(within)
    });
    let said = match outcome {
        Ok(1) => "done".to_owned(),
        Ok(count) => format!("{count} rows"),
        Err(Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _)) => "refused".to_owned(),
        Err(Error::DatabaseError(_, said)) if said.message() == "deadlock detected" => "refused".to_owned(),
        Err(error) => error.to_string(),
    };
    usable(connection)?;
    Ok(said)
}

pub fn serializable() -> Outcome {
    let connection = &mut connect()?;
    let rows = [(item::id.eq(1), item::label.eq("a")), (item::id.eq(2), item::label.eq("b"))];
    diesel::insert_into(item::table).values(&rows).execute(connection)?;
    let ((told, hears), (other_told, other_hears)) = (mpsc::channel(), mpsc::channel());
    let other = thread::spawn(move || change(2, &other_told, &hears));
    let mut outcomes = [change(1, &told, &other_hears)?, other.join().expect("it does not panic")?];
    outcomes.sort();
    equal(outcomes, ["done", "refused"]);
    diesel::delete(item::table).execute(connection)?;
    Ok(())
}

/// Connections to a secured server, and those that it does not take.
pub fn encrypted() -> Outcome {
    let connection = &mut PgConnection::establish(&format!("{}&channel_binding=require", url()))?;
    let version = "SELECT version AS label FROM pg_stat_ssl WHERE ssl AND pid = pg_backend_pid()";
    equal(label(connection, version)?, "TLSv1.3");
    for (word, other, said) in [
        (":secret@", ":wrong@", "password authentication failed for user \"archipel\""),
        ("verify-full", "disable", "no pg_hba.conf entry for host"),
        ("root.crt", "other.crt", "certificate verify failed"),
    ] {
        let error = failure(PgConnection::establish(&url().replace(word, other)).map(|_| ()));
        equal((said, error.to_string().contains(said)), (said, true));
    }
    Ok(())
}
