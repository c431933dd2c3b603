//! What a server makes of a statement.

use std::error::Error as AnyError;

use bytes::BytesMut;
use futures::TryStreamExt;
use tokio_postgres::types::{Format, FromSql, IsNull, Kind as TypeKind, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use super::kind::Kind;
use super::statement::{Way, Written};

/// The first number of types that are not the same on every server.
const FIRST_OWN_TYPE: u32 = 16_384;

/// A cell as text or in bytes; `None` is NULL.
type Cell = Option<String>;

/// What a server made of a statement: its rows in a canonical order and the count of its tag, with
/// the rows that the changed tables have then, or the SQLSTATE of its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Rows(Vec<Vec<Cell>>, u64),
    Error(String),
}

/// Where a statement is run. Whichever it is, the tables are afterwards what they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Queries on their own, changes in a transaction.
    Usual,
    /// Queries in a serializable transaction, which Archipel runs with its native executor, again and
    /// again until it runs them by their shape; changes on their own.
    Other,
}

/// Runs a statement.
pub async fn answer(client: &Client, statement: &Written, room: Room) -> Answer {
    let begin = match (room, statement.changes()) {
        (Room::Usual, true) => Some("BEGIN"),
        (Room::Other, false) => Some("BEGIN ISOLATION LEVEL SERIALIZABLE"),
        // Nobody could fill again what is not named.
        (Room::Other, true) if statement.changed.is_empty() => Some("BEGIN"),
        (Room::Usual, false) | (Room::Other, true) => None,
    };
    if let Some(begin) = begin {
        client.batch_execute(begin).await.expect("a transaction begins");
    }
    let mut ran = run(client, statement).await;
    if room == Room::Other && !statement.changes() && statement.way == Way::Text {
        // Once a shape has been met twice, its literals are parameters.
        for _ in 0..2 {
            if ran.is_ok() {
                ran = run(client, statement).await;
            }
        }
    }
    let answered = match ran {
        Ok((mut rows, count)) => changed_rows(client, statement).await.map(|changed| {
            if !statement.ordered {
                rows.sort();
            }
            rows.extend(changed);
            Answer::Rows(rows, count)
        }),
        Err(error) => Err(error),
    };
    match begin {
        Some(_) => client.batch_execute("ROLLBACK").await.expect("a transaction is rolled back"),
        None if statement.changes() && matches!(answered, Ok(Answer::Rows(..))) => {
            restore(client, statement).await;
        }
        None => {}
    }
    if statement.way == Way::Prepared {
        // It is not there where it could not be prepared. ALL would take the driver's own ones too.
        let _ = client.batch_execute("DEALLOCATE made").await;
    }
    answered.unwrap_or_else(|error| match error.code() {
        Some(state) => Answer::Error(state.code().to_owned()),
        None => panic!("the connection failed over {statement}: {error}"),
    })
}

async fn run(client: &Client, statement: &Written) -> Result<(Vec<Vec<Cell>>, u64), Error> {
    match statement.way {
        Way::Text => as_text(client, &statement.text).await,
        Way::Prepared => {
            let (prepare, execute) = statement.preparation();
            client.simple_query(&prepare).await?;
            as_text(client, &execute).await
        }
        Way::Binary => in_bytes(client, statement).await,
    }
}

async fn as_text(client: &Client, text: &str) -> Result<(Vec<Vec<Cell>>, u64), Error> {
    let (mut rows, mut count) = (Vec::new(), 0);
    for message in client.simple_query(text).await? {
        match message {
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect());
            }
            SimpleQueryMessage::CommandComplete(affected) => count = affected,
            _ => {}
        }
    }
    Ok((rows, count))
}

async fn in_bytes(client: &Client, statement: &Written) -> Result<(Vec<Vec<Cell>>, u64), Error> {
    let types: Vec<Type> =
        statement.parameters.iter().filter_map(|(kind, _): &(Kind, _)| kind.of_wire()).collect();
    let prepared = client.prepare_typed(&statement.text, &types).await?;
    let values = statement.parameters.iter().map(|(_, value)| InText(*value));
    let stream = client.query_raw(&prepared, values).await?;
    let mut stream = std::pin::pin!(stream);
    let mut rows = Vec::new();
    while let Some(row) = stream.try_next().await? {
        let cells: Result<Vec<Cell>, Error> =
            (0..row.len()).map(|at| row.try_get::<_, Bytes>(at).map(|bytes| bytes.0)).collect();
        rows.push(cells?);
    }
    let count = stream.rows_affected().unwrap_or_default();
    Ok((rows, count))
}

/// The rows of the tables that a statement has changed, each under its table's name.
async fn changed_rows(client: &Client, statement: &Written) -> Result<Vec<Vec<Cell>>, Error> {
    let mut found = Vec::new();
    for table in &statement.changed {
        let (mut rows, _) = as_text(client, &format!("SELECT '{table}', t.* FROM {table} t")).await?;
        rows.sort();
        found.extend(rows);
    }
    Ok(found)
}

async fn restore(client: &Client, statement: &Written) {
    for table in &statement.changed {
        let text = format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table}");
        client.batch_execute(&text).await.expect("a table can be filled again");
    }
}

/// A parameter in its text form, of whatever type.
#[derive(Debug)]
struct InText(Option<&'static str>);

impl ToSql for InText {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn AnyError + Sync + Send>> {
        Ok(match self.0 {
            None => IsNull::Yes,
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                IsNull::No
            }
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// A value's bytes, shown as hexadecimal digits.
struct Bytes(Cell);

impl<'a> FromSql<'a> for Bytes {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Bytes, Box<dyn AnyError + Sync + Send>> {
        // These contain the numbers of types, which are each server's own.
        let own = match ty.kind() {
            TypeKind::Array(element) => element.oid() >= FIRST_OWN_TYPE,
            TypeKind::Composite(_) => true,
            _ => [Type::RECORD, Type::RECORD_ARRAY].contains(ty),
        };
        // The second word of an array says that it may have NULLs: of a part of one with some it does.
        let skipped = if matches!(ty.kind(), TypeKind::Array(_)) { 4..8 } else { 0..0 };
        let compared = raw.iter().enumerate().filter(|(place, _)| !skipped.contains(place));
        let shown = match own {
            true => "not compared".to_owned(),
            false => compared.map(|(_, byte)| format!("{byte:02x}")).collect(),
        };
        Ok(Bytes(Some(shown)))
    }

    fn from_sql_null(_: &Type) -> Result<Bytes, Box<dyn AnyError + Sync + Send>> {
        Ok(Bytes(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
