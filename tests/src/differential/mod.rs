//! Statements made up at random, for two servers to disagree about.
//!
//! - [`expression`] typed expressions over a scope of columns
//! - [`statement`]  queries and data changes with RETURNING, in parts that can be taken away
//! - [`shrink`]     the least of a statement that still makes them differ
//!
//! A statement is a tree of typed expressions between pieces of text, so that shrinking knows
//! what may stand where. The same seed makes the same statements.

pub mod expression;
pub mod shrink;
pub mod statement;

use tokio_postgres::{Client, SimpleQueryMessage};

pub use statement::{Generator, Statement};

/// The tables the statements are about, with their rows.
pub const SCHEMA: &str = "
CREATE TABLE part (id int PRIMARY KEY, name text, size smallint, price numeric(10,2), made date, ok boolean);
CREATE TABLE sale (id int PRIMARY KEY, part int REFERENCES part, n bigint NOT NULL, at timestamp, rate float8, note varchar(10));
CREATE INDEX ON sale (part);
CREATE INDEX ON part (name);
INSERT INTO part SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE 'p' || i % 5 END, CASE WHEN i % 4 = 0 THEN NULL ELSE i - 6 END, CASE WHEN i % 6 = 0 THEN NULL ELSE i * 1.25 - 7 END, date '2024-02-27' + i, CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN true ELSE false END FROM generate_series(1, 14) i;
INSERT INTO sale SELECT i, CASE WHEN i % 5 = 0 THEN NULL ELSE i % 14 + 1 END, i * 3 - 20, CASE WHEN i % 4 = 1 THEN NULL ELSE timestamp '2024-03-01 10:00' + i * interval '7 hours' END, CASE WHEN i % 6 = 2 THEN NULL ELSE (i - 9) / 4.0 END, CASE WHEN i % 3 = 0 THEN NULL ELSE repeat('ab', i % 4) END FROM generate_series(1, 24) i;
";

/// What a server made of a statement: its rows in a canonical order and the count of its tag, or
/// the SQLSTATE of its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Rows(Vec<Vec<Option<String>>>, u64),
    Error(String),
}

/// Runs a statement; what it changes is rolled back. The order of rows counts where the
/// statement says it is total.
pub async fn answer(client: &Client, text: &str, ordered: bool) -> Answer {
    let changes = !text.starts_with("SELECT");
    if changes {
        client.batch_execute("BEGIN").await.expect("a transaction begins");
    }
    let result = client.simple_query(text).await;
    if changes {
        client.batch_execute("ROLLBACK").await.expect("a transaction is rolled back");
    }
    match result {
        Err(error) => match error.code() {
            Some(state) => Answer::Error(state.code().to_owned()),
            None => panic!("the connection failed over {text}: {error}"),
        },
        Ok(messages) => {
            let (mut rows, mut count) = (Vec::new(), 0);
            for message in messages {
                match message {
                    SimpleQueryMessage::Row(row) => {
                        rows.push((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect::<Vec<_>>())
                    }
                    SimpleQueryMessage::CommandComplete(affected) => count = affected,
                    _ => {}
                }
            }
            if !ordered {
                rows.sort();
            }
            Answer::Rows(rows, count)
        }
    }
}
