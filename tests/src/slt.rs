//! Runs a sqllogictest file against a server, over the simple protocol: the text compared is the
//! server's own.

use std::path::Path;

use async_trait::async_trait;
use sqllogictest::{DBOutput, DefaultColumnType};
use tokio_postgres::{Client, SimpleQueryMessage};

/// An error that shows the server's message and knows its SQLSTATE.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SltError {
    message: String,
    state: Option<String>,
}

impl From<tokio_postgres::Error> for SltError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) => SltError {
                message: format!("({}) {}", db.code().code(), db.message()),
                state: Some(db.code().code().to_owned()),
            },
            None => SltError { message: error.to_string(), state: None },
        }
    }
}

struct Session {
    client: Client,
    engine: &'static str,
}

#[async_trait]
impl sqllogictest::AsyncDB for Session {
    type Error = SltError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Self::ColumnType>, Self::Error> {
        let mut rows = Vec::new();
        let mut width = None;
        let mut affected = 0;
        for message in self.client.simple_query(sql).await? {
            match message {
                SimpleQueryMessage::RowDescription(columns) => width = Some(columns.len()),
                SimpleQueryMessage::Row(row) => rows.push(
                    (0..row.len())
                        .map(|column| match row.get(column) {
                            None => "NULL".to_owned(),
                            Some("") => "(empty)".to_owned(),
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
    let mut runner = sqllogictest::Runner::new(|| async move {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        Ok(Session { client, engine: engine.name() })
    });
    runner.run_file_async(path).await.map_err(|error| error.display(false).to_string())
}

/// Rewrites a file's expected results from what the server answers: only ever done against
/// PostgreSQL (`tests/run --record`), so that expectations are its own.
pub async fn record_file(url: &str, path: &Path) -> Result<(), String> {
    let mut runner = sqllogictest::Runner::new(|| async move {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        Ok(Session { client, engine: Engine::PostgreSql.name() })
    });
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
