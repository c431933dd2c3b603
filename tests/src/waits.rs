//! Whether a session waits for another one: asked of the server, since on a busy machine a
//! statement that has not answered yet may not have come to its wait yet.

use std::time::Duration;

use tokio_postgres::{Client, SimpleQueryMessage};

/// The process that `pg_stat_activity` and `pg_blocking_pids` know a session by.
pub async fn process_of(client: &Client) -> String {
    first(client, "SELECT pg_backend_pid()").await
}

/// Ends when the session of `process` waits for another; `watch` is a session of its own.
pub async fn until_blocked(watch: &Client, process: &str) {
    let blocked = format!("SELECT cardinality(pg_blocking_pids({process})) > 0");
    while first(watch, &blocked).await != "t" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn first(client: &Client, query: &str) -> String {
    let messages = client.simple_query(query).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let value = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    value.unwrap_or_else(|| panic!("{query}: no answer"))
}
