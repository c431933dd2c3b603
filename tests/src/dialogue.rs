//! Dialogues: what several sessions say to a server in turn, and what it answers.
//!
//! A dialogue is a text file. Unindented lines are read from top to bottom; the indented lines
//! below them are what the server answered.
//!
//! ```text
//! # a comment
//! setup: SQL          before the sessions begin
//! s1: SQL             a step of session 1; its answer must come before the next step
//! s1 waits: SQL       a step that must not be answered yet
//! s1 cancel           a cancel request for what session 1 waits for
//! s1 resumes          the answer of what session 1 waited for
//! ```
//!
//! Rows are shown with commas between their columns, then the errors and warnings.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_postgres::{AsyncMessage, CancelToken, Client, NoTls, SimpleQueryMessage};

use crate::waits::{process_of, until_blocked};

/// A step that has no answer after this long is asked whether it waits for another session.
const WAITS: Duration = Duration::from_millis(150);
/// A step that has none after this long, and waits for nobody, hangs.
const HANGS: Duration = Duration::from_secs(120);

struct Session {
    client: Arc<Client>,
    process: String,
    cancel: CancelToken,
    warnings: Arc<Mutex<Vec<String>>>,
    waiting: Option<tokio::task::JoinHandle<Vec<String>>>,
}

impl Session {
    async fn open(url: &str) -> Session {
        let (client, mut connection) =
            tokio_postgres::connect(url, NoTls).await.expect("the server takes connections");
        let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = warnings.clone();
        tokio::spawn(async move {
            while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                if let Ok(AsyncMessage::Notice(notice)) = message {
                    heard.lock().unwrap_or_else(PoisonError::into_inner).push(format!(
                        "{}:  {} {}",
                        notice.severity(),
                        notice.code().code(),
                        notice.message()
                    ));
                }
            }
        });
        let process = process_of(&client).await;
        Session { cancel: client.cancel_token(), client: Arc::new(client), process, warnings, waiting: None }
    }

    /// Sends a step; the task answers with the lines of its answer.
    fn say(&self, sql: &str) -> tokio::task::JoinHandle<Vec<String>> {
        let (client, warnings, sql) = (self.client.clone(), self.warnings.clone(), sql.to_owned());
        tokio::spawn(async move {
            let mut lines = Vec::new();
            match client.simple_query(&sql).await {
                Ok(messages) => {
                    for message in messages {
                        if let SimpleQueryMessage::Row(row) = message {
                            let cells: Vec<&str> =
                                (0..row.len()).map(|column| row.get(column).unwrap_or("NULL")).collect();
                            lines.push(cells.join(", "));
                        }
                    }
                }
                Err(error) => match error.as_db_error() {
                    Some(db) => {
                        lines.push(format!("ERROR:  {} {}", db.code().code(), db.message()));
                        lines.extend(db.detail().map(|detail| format!("DETAIL:  {}", numberless(detail))));
                    }
                    None => lines.push(format!("LOST:  {error}")),
                },
            }
            lines.append(&mut warnings.lock().unwrap_or_else(PoisonError::into_inner));
            lines
        })
    }
}

/// Replaces numbers that differ from run to run: processes, transactions.
fn numberless(text: &str) -> String {
    let mut shown = String::new();
    for word in text.replace('\n', " ").split(' ') {
        if !shown.is_empty() {
            shown.push(' ');
        }
        let digits = word.trim_end_matches([',', ';', '.', ':']);
        match digits.parse::<u64>() {
            Ok(_) => shown.push_str(&word.replace(digits, "N")),
            Err(_) => shown.push_str(word),
        }
    }
    shown
}

/// Holds a dialogue with the server at `url`; the script with the answers it gave.
pub async fn hold(url: &str, script: &str) -> String {
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    let setup = Session::open(url).await;
    let mut held = String::new();
    for line in script.lines().filter(|line| !line.starts_with(' ')) {
        held.push_str(line);
        held.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let answers = match line.split_once(": ") {
            Some(("setup", sql)) => answer(setup.say(sql), line).await,
            Some((who, sql)) => {
                let (who, waits) = match who.strip_suffix(" waits") {
                    Some(who) => (who, true),
                    None => (who, false),
                };
                if !sessions.contains_key(who) {
                    sessions.insert(who.to_owned(), Session::open(url).await);
                }
                let session = sessions.get_mut(who).expect("put there just now");
                assert!(session.waiting.is_none(), "{line}: the session waits");
                let mut said = session.say(sql);
                if waits {
                    let waits = async {
                        tokio::time::sleep(WAITS).await;
                        until_blocked(&setup.client, &session.process).await;
                    };
                    tokio::select! {
                        answers = &mut said => {
                            let mut answers = answers.expect("a step's task ends");
                            answers.insert(0, "DID NOT WAIT".to_owned());
                            answers
                        }
                        () = waits => {
                            session.waiting = Some(said);
                            Vec::new()
                        }
                        () = tokio::time::sleep(HANGS) => vec![format!("NO ANSWER AND NO WAIT: {line}")],
                    }
                } else {
                    answer(said, line).await
                }
            }
            None => {
                let (who, what) = line.split_once(' ').unwrap_or((line, ""));
                let session = sessions.get_mut(who).unwrap_or_else(|| panic!("no such session: {line}"));
                match what {
                    "cancel" => {
                        session.cancel.cancel_query(NoTls).await.expect("a cancel request can be sent");
                        Vec::new()
                    }
                    "resumes" => match session.waiting.take() {
                        Some(waiting) => answer(waiting, line).await,
                        None => vec!["DID NOT WAIT".to_owned()],
                    },
                    _ => panic!("not understood: {line}"),
                }
            }
        };
        for answer in answers {
            held.push_str("    ");
            held.push_str(&answer);
            held.push('\n');
        }
    }
    held
}

async fn answer(said: tokio::task::JoinHandle<Vec<String>>, line: &str) -> Vec<String> {
    match tokio::time::timeout(HANGS, said).await {
        Ok(answers) => answers.expect("a step's task ends"),
        Err(_) => vec![format!("NO ANSWER: {line}")],
    }
}
