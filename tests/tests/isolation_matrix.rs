//! The anomalies of the literature at every isolation level, the same scripts
//! (`tests/isolation/anomalies`) against PostgreSQL 15 and Archipel: each happens on PostgreSQL
//! exactly where its script says, and on Archipel nowhere else.

use std::collections::BTreeMap;
use std::time::Duration;

use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, connect};
use archipel_tests::waits::{process_of, until_blocked};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

const LEVELS: [&str; 4] = ["read uncommitted", "read committed", "repeatable read", "serializable"];

/// A step that has not answered after this is asked whether it waits for another session.
const WAITS_AFTER: Duration = Duration::from_millis(250);
/// A step that has not answered after this, and waits for nobody, hangs.
const HANGS: Duration = Duration::from_secs(120);

struct Step {
    session: usize,
    waits: bool,
    label: Option<String>,
    sql: String,
}

/// One file: see the folder's README.
#[derive(Default)]
struct Script {
    possible_at: Vec<String>,
    setup: Vec<String>,
    steps: Vec<Step>,
    /// Any of these, each all of its conditions.
    anomalies: Vec<Vec<(String, String)>>,
}

fn read(text: &str) -> Script {
    let mut script = Script::default();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (head, rest) = line.split_once(':').expect("a line is a head, a colon and the rest");
        let rest = rest.trim();
        let list = |text: &str| -> Vec<String> {
            text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
        };
        match head {
            "possible at" => script.possible_at = list(rest),
            "setup" => script.setup.push(rest.to_owned()),
            "anomaly" => script.anomalies.push(conditions(rest)),
            step => {
                let (label, step) = match step.split_once(" = ") {
                    Some((label, step)) => (Some(label.to_owned()), step),
                    None => (None, step),
                };
                let (session, waits) = match step.strip_suffix(" waits") {
                    Some(session) => (session, true),
                    None => (step, false),
                };
                let session = session.strip_prefix('s').and_then(|number| number.parse().ok());
                script.steps.push(Step {
                    session: session.expect("a session is s and a number"),
                    waits,
                    label,
                    sql: rest.to_owned(),
                });
            }
        }
    }
    script
}

/// `a = 1,2;3, b = ok`: a comma begins a condition only where a name and an equals sign follow.
fn conditions(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for part in text.split(", ") {
        let (name, value) = part.split_once('=').expect("a condition is a name, an equals sign, a value");
        found.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    found
}

/// What one statement answered, as scripts write it.
async fn answer(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Err(error) => match error.code() {
            Some(state) => format!("error {}", state.code()),
            None => format!("error {error}"),
        },
        Ok(messages) => {
            let mut rows = Vec::new();
            let mut answers_rows = false;
            for message in &messages {
                match message {
                    SimpleQueryMessage::Row(row) => {
                        let cells = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
                        rows.push(cells.collect::<Vec<_>>().join(","));
                    }
                    SimpleQueryMessage::RowDescription(_) => answers_rows = true,
                    _ => {}
                }
            }
            if answers_rows { rows.join(";") } else { "ok".to_owned() }
        }
    }
}

/// A session and the statement it is still waiting with.
struct Session {
    client: std::sync::Arc<Client>,
    process: String,
    running: Option<(Option<String>, JoinHandle<String>)>,
    failed: bool,
}

impl Session {
    async fn finish(&mut self, answers: &mut BTreeMap<String, String>) {
        let Some((label, running)) = self.running.take() else { return };
        let answer =
            tokio::time::timeout(HANGS, running).await.expect("a step that waits goes on when it may");
        self.note(label, answer.expect("no step panics"), answers);
    }

    fn note(&mut self, label: Option<String>, answer: String, answers: &mut BTreeMap<String, String>) {
        self.failed |= answer.starts_with("error");
        if let Some(label) = label {
            answers.insert(label, answer);
        }
    }
}

/// Runs a script at a level: whether the anomaly happened.
async fn happens(url: &str, script: &Script, level: &str) -> Result<bool, String> {
    let setup = connect(url).await;
    setup.batch_execute("DROP TABLE IF EXISTS test").await.expect("the table can be dropped");
    for sql in &script.setup {
        setup.batch_execute(sql).await.map_err(|error| format!("{sql}: {error}"))?;
    }
    let count = script.steps.iter().map(|step| step.session).max().unwrap_or_default();
    let mut sessions = Vec::new();
    for _ in 0..=count {
        let client = std::sync::Arc::new(connect(url).await);
        let process = process_of(&client).await;
        sessions.push(Session { client, process, running: None, failed: false });
    }
    let mut answers = BTreeMap::new();
    for step in &script.steps {
        let session = &mut sessions[step.session];
        session.finish(&mut answers).await;
        if step.sql == "COMMIT" && session.failed {
            let _ = answer(&session.client, "ROLLBACK").await;
            session.note(step.label.clone(), "rolled back".to_owned(), &mut answers);
            continue;
        }
        let sql = match step.sql.strip_prefix("BEGIN") {
            Some(modes) => format!("BEGIN ISOLATION LEVEL {level}{modes}"),
            None => step.sql.clone(),
        };
        let client = session.client.clone();
        let text = sql.clone();
        let mut running = tokio::spawn(async move { answer(&client, &text).await });
        // On a busy machine it is not there at once, and others would come first.
        let waits = async {
            tokio::time::sleep(WAITS_AFTER).await;
            if step.waits {
                until_blocked(&setup, &session.process).await;
            }
        };
        let answered = tokio::select! {
            answer = &mut running => Some(answer),
            () = waits => None,
            () = tokio::time::sleep(HANGS) => {
                return Err(format!("`{sql}` of session {} neither waits nor answers", step.session));
            }
        };
        match answered {
            Some(answer) => {
                let answer = answer.expect("no step panics");
                // A doomed transaction has nothing to wait for.
                if step.waits && !answer.starts_with("error 40001") && !session.failed {
                    return Err(format!("`{sql}` of session {} does not wait: {answer}", step.session));
                }
                session.note(step.label.clone(), answer, &mut answers);
            }
            None if step.waits => session.running = Some((step.label.clone(), running)),
            // Slow is no verdict: only what the script says waits may.
            None => {
                let answer = tokio::time::timeout(HANGS, running)
                    .await
                    .map_err(|_| format!("`{sql}` of session {} waits", step.session))?
                    .expect("no step panics");
                session.note(step.label.clone(), answer, &mut answers);
            }
        }
    }
    for session in &mut sessions {
        session.finish(&mut answers).await;
    }
    Ok(script
        .anomalies
        .iter()
        .any(|all| all.iter().all(|(name, value)| answers.get(name).is_some_and(|answer| answer == value))))
}

#[tokio::test]
async fn anomalies_happen_only_where_postgresql_allows_them() {
    let postgres = Postgres::start();
    let server = Server::start(&[]);
    let mut paths: Vec<_> = std::fs::read_dir(archipel_tests::file("isolation/anomalies"))
        .expect("the scripts are there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 11, "scripts are missing");
    let mut wrong = Vec::new();
    for path in paths {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("names are UTF-8").to_owned();
        let script = read(&std::fs::read_to_string(&path).expect("scripts are UTF-8"));
        for level in LEVELS {
            let allowed = script.possible_at.iter().any(|possible| possible == level);
            let (oracle, ours) = (postgres.url(), server.url());
            let (oracle, ours) =
                tokio::join!(happens(&oracle, &script, level), happens(&ours, &script, level));
            match oracle {
                Ok(happened) if happened == allowed => {}
                other => wrong.push(format!("{name} at {level}: PostgreSQL {other:?}, the script {allowed}")),
            }
            match ours {
                Ok(happened) if allowed || !happened => {}
                other => wrong.push(format!("{name} at {level}: Archipel {other:?}, PostgreSQL {allowed}")),
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
