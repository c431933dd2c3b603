//! Clients of a server's databases: what a text answers them, and waiting until it answers something.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

use super::{PATIENCE, Server};

/// This role's session in this database.
pub async fn connect(server: &Server, database: &str, user: &str) -> Result<Client, Error> {
    let config = format!("host=127.0.0.1 port={} user={user} dbname={database}", server.port);
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A superuser's session in this database.
pub async fn client(server: &Server, database: &str) -> Client {
    connect(server, database, "archipel").await.expect("the database takes sessions")
}

/// What a text answers: rows by semicolons and columns by slashes; or the code and the message of its error.
pub async fn answer(client: &Client, text: &str) -> String {
    let messages = match client.simple_query(text).await {
        Ok(messages) => messages,
        Err(error) => return told(&error),
    };
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).unwrap_or("NULL")).collect::<Vec<_>>().join("/"))
        }
        _ => None,
    });
    rows.collect::<Vec<_>>().join(";")
}

/// The code and the message of an error.
pub fn told(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => format!("no answer: {error}"),
    }
}

/// Runs statements that must succeed, each on its own.
pub async fn run(client: &Client, texts: &[&str]) {
    for text in texts {
        assert_eq!(answer(client, text).await, "", "{text}");
    }
}

/// Asks until it is so.
pub async fn until(client: &Client, text: &str, wanted: &str) {
    let begun = Instant::now();
    loop {
        let now = answer(client, text).await;
        if now == wanted {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{text} answers {now}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
