//! Runs a sqllogictest file against a server, over the simple protocol: the text compared is the
//! server's own.
//!
//! A file whose first line is `# compares: contexts` has its errors compared with their context and
//! with the query inside a routine they are about, and what a statement said on the way (notices)
//! stands before its rows.

use std::future::poll_fn;
use std::path::Path;

use async_trait::async_trait;
use sqllogictest::{DBOutput, DefaultColumnType, Record};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::error::{DbError, ErrorPosition};
use tokio_postgres::{AsyncMessage, Client, SimpleQueryMessage};

/// An error that shows the server's message and knows its SQLSTATE.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SltError {
    message: String,
    state: Option<String>,
}

impl SltError {
    fn new(error: &tokio_postgres::Error, with_context: bool) -> Self {
        match error.as_db_error() {
            Some(db) => {
                let context = if with_context { context_of(db) } else { String::new() };
                SltError {
                    message: format!("({}) {}{context}", db.code().code(), db.message()),
                    state: Some(db.code().code().to_owned()),
                }
            }
            None => SltError { message: error.to_string(), state: None },
        }
    }
}

/// The query inside a routine that an error is about, and the lines of its context.
fn context_of(error: &DbError) -> String {
    let mut text = String::new();
    if let Some(ErrorPosition::Internal { position, query }) = error.position() {
        text += &format!(" | character {position} of {query}");
    }
    for line in error.where_().into_iter().flat_map(str::lines) {
        text += " | ";
        text += line.trim_end();
    }
    text
}

/// The statements of a file that both servers run and that must agree, as they are written.
pub fn statements(path: &Path) -> Vec<String> {
    let records = sqllogictest::parse_file::<DefaultColumnType>(path).expect("a suite can be parsed");
    let of_both = records.into_iter().filter_map(|record| match record {
        Record::Statement { conditions, sql, .. } | Record::Query { conditions, sql, .. } => {
            conditions.is_empty().then_some(sql)
        }
        _ => None,
    });
    of_both.collect()
}

struct Session {
    client: Client,
    engine: &'static str,
    /// What the server says beside its answers, in files that compare that.
    notices: Option<UnboundedReceiver<DbError>>,
}

impl Session {
    async fn connect(engine: Engine, url: &str, with_context: bool) -> Result<Session, SltError> {
        let failed = |error| SltError::new(&error, false);
        let (client, mut connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.map_err(failed)?;
        let (send, notices) = unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notice(notice) = message {
                    // Nobody listens in files that do not compare notices.
                    let _ = send.send(notice);
                }
            }
        });
        Ok(Session { client, engine: engine.name(), notices: with_context.then_some(notices) })
    }

    /// What was said since it was asked last, a row each.
    fn said(&mut self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        while let Some(notice) = self.notices.as_mut().and_then(|notices| notices.try_recv().ok()) {
            let row = format!("{}: {}{}", notice.severity(), notice.message(), context_of(&notice));
            rows.push(vec![row.replace('\n', "\\n")]);
        }
        rows
    }
}

/// Whether a file compares contexts and notices: what its head says it compares.
fn with_context(path: &Path) -> Result<bool, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    match text.lines().next().and_then(|line| line.strip_prefix("# compares:")).map(str::trim) {
        None => Ok(false),
        Some("contexts") => Ok(true),
        Some(other) => Err(format!("{}: nothing known compares \"{other}\"", path.display())),
    }
}

#[async_trait]
impl sqllogictest::AsyncDB for Session {
    type Error = SltError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Self::ColumnType>, Self::Error> {
        let mut width = None;
        let mut affected = 0;
        let answer = self.client.simple_query(sql).await;
        let mut rows = self.said();
        if !rows.is_empty() {
            width = Some(1);
        }
        for message in answer.map_err(|error| SltError::new(&error, self.notices.is_some()))? {
            match message {
                SimpleQueryMessage::RowDescription(columns) => width = Some(columns.len()),
                SimpleQueryMessage::Row(row) => rows.push(
                    (0..row.len())
                        .map(|column| match row.get(column) {
                            None => "NULL".to_owned(),
                            Some("") => "(empty)".to_owned(),
                            Some(text) if self.notices.is_some() => text.replace('\n', "\\n"),
                            Some(text) => text.to_owned(),
                        })
                        .collect(),
                ),
                SimpleQueryMessage::CommandComplete(count) => affected = count,
                _ => {}
            }
        }
        Ok(match width {
            Some(width) => DBOutput::Rows { types: vec![DefaultColumnType::Text; width], rows },
            None => DBOutput::StatementComplete(affected),
        })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        self.engine
    }

    fn error_sql_state(error: &Self::Error) -> Option<String> {
        error.state.clone()
    }
}

/// Which server a file runs against; `skipif`/`onlyif` in files name these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    PostgreSql,
    Archipel,
}

impl Engine {
    fn name(self) -> &'static str {
        match self {
            Engine::PostgreSql => "postgresql",
            Engine::Archipel => "archipel",
        }
    }
}

/// Runs one file; the error names the record that differs.
pub async fn run_file(engine: Engine, url: &str, path: &Path) -> Result<(), String> {
    let with_context = with_context(path)?;
    let mut runner = sqllogictest::Runner::new(|| Session::connect(engine, url, with_context));
    runner.run_file_async(path).await.map_err(|error| error.display(false).to_string())
}

/// Rewrites a file's expected results from what the server answers: only ever done against
/// PostgreSQL (`tests/run --record`), so that expectations are its own.
pub async fn record_file(url: &str, path: &Path) -> Result<(), String> {
    let with_context = with_context(path)?;
    let mut runner = sqllogictest::Runner::new(|| Session::connect(Engine::PostgreSql, url, with_context));
    runner
        .update_test_file(
            path,
            " ",
            sqllogictest::default_validator,
            sqllogictest::default_normalizer,
            sqllogictest::default_column_validator,
        )
        .await
        .map_err(|error| error.to_string())
}
