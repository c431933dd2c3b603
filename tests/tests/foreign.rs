//! Routines that nobody here wrote: the scripts of pgTAP, pg_partman, PgQ and periods, unedited,
//! deployed on PostgreSQL 15 and on Archipel, and run there by the cases of `tests/foreign`.
//!
//! `tests/foreign/status` holds what PostgreSQL takes and Archipel refuses, statement by statement
//! with Archipel's reason, and the cases that Archipel answers otherwise. One that is not listed
//! fails the test, and so does one that is listed and has gone. `ARCHIPEL_TEST_RECORD=1` writes
//! PostgreSQL's answers and the file anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::{Command, Stdio};

use archipel_tests::language::Suite;
use archipel_tests::postgres::Postgres;
use archipel_tests::regression::statements;
use archipel_tests::server::{Server, connect};

/// The scripts, as their packages name them.
const PACKAGES: [&str; 4] = ["pgtap", "pg_partman", "pgq", "periods"];
/// How many bodies in PL/pgSQL must deploy, whatever else changes.
const BODIES_MIN: usize = 200;

/// What became of a package's statements.
#[derive(Default)]
struct Deployed {
    /// Routines in PL/pgSQL, and in SQL, that PostgreSQL takes.
    bodies: [usize; 2],
    /// Of these, those that Archipel takes.
    taken: [usize; 2],
    /// Statements that PostgreSQL takes and Archipel does not, with its error.
    refused: Vec<(String, String)>,
}

fn script(package: &str) -> String {
    let prepare = archipel_tests::file("foreign/prepare");
    let output = Command::new(&prepare).stderr(Stdio::inherit()).output().expect("the script can be run");
    assert!(output.status.success(), "{}: {}", prepare.display(), output.status);
    let folder = String::from_utf8(output.stdout).expect("a path is printed");
    let path = std::path::Path::new(folder.trim()).join(format!("{package}.sql"));
    std::fs::read_to_string(path).expect("the package's script is there")
}

/// The language of the routine that a statement makes.
fn language(statement: &str) -> Option<usize> {
    let text = statement.to_lowercase();
    let makes = ["create function", "create or replace function", "create procedure"];
    if !makes.iter().any(|words| text.contains(words)) {
        return None;
    }
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let named = words.windows(2).rev().find(|pair| pair[0] == "language")?;
    match named[1] {
        "plpgsql" => Some(0),
        "sql" => Some(1),
        _ => None,
    }
}

/// A statement's first line of code.
fn head(statement: &str) -> String {
    let mut lines =
        statement.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--"));
    let head = lines.next().unwrap_or_default();
    head.chars().take(90).collect()
}

async fn deploy(package: &str, postgres: &str, archipel: &str) -> Deployed {
    let (postgres, archipel) = (connect(postgres).await, connect(archipel).await);
    let mut deployed = Deployed::default();
    for statement in statements(&script(package)) {
        let text = statement.text;
        if head(&text).is_empty() || postgres.simple_query(&text).await.is_err() {
            continue;
        }
        let answer = archipel.simple_query(&text).await;
        if let Some(language) = language(&text) {
            deployed.bodies[language] += 1;
            deployed.taken[language] += usize::from(answer.is_ok());
        }
        if let Err(error) = answer {
            let reason = match error.as_db_error() {
                Some(error) => format!("{} {}", error.code().code(), error.message()),
                None => error.to_string(),
            };
            deployed.refused.push((head(&text), reason.replace('\n', " ")));
        }
    }
    deployed
}

/// Runs a package's cases; those that Archipel answers otherwise, with the first line that differs.
async fn run(suite: &Suite, postgres: &str, archipel: &str, recording: bool) -> Vec<(String, String)> {
    let mut recorded = Vec::new();
    let mut differing = Vec::new();
    for case in &suite.cases {
        let expected = suite.run_on(postgres, case).await;
        let answered = suite.run_on(archipel, case).await;
        let shown = case.difference(&expected);
        assert!(recording || shown.is_none(), "PostgreSQL differs from {}: {shown:?}", case.title);
        let lines = |answers: &[Vec<String>]| answers.iter().flatten().cloned().collect::<Vec<_>>();
        if expected != answered {
            let (expected, answered) = (lines(&expected), lines(&answered));
            let at = expected.iter().zip(&answered).take_while(|(one, other)| one == other).count();
            let nothing = String::from("(nothing)");
            let line = |lines: &[String]| lines.get(at).unwrap_or(&nothing).trim().to_owned();
            let difference = format!("{} | not {}", line(&answered), line(&expected));
            differing.push((case.title.clone(), difference));
        }
        recorded.push(expected);
    }
    if recording {
        suite.record(&recorded);
    }
    differing
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packages_deploy_as_their_status_says() {
    let postgres = Postgres::start();
    let mut told = String::from("# Routines that others wrote: see tests/tests/foreign.rs.\n");
    let recording = std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1");
    let suites = Suite::all("foreign");
    let mut bodies = 0;
    for package in PACKAGES {
        let server = Server::start(&[]);
        for url in [postgres.url(), server.url()] {
            let client = connect(&url).await;
            client
                .batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
                .await
                .expect("the schema can be emptied");
        }
        let deployed = deploy(package, &postgres.url(), &server.url()).await;
        bodies += deployed.taken[0];
        // Writing to a String cannot fail.
        let _ = writeln!(
            told,
            "\n{package}: {} of {} bodies in PL/pgSQL, {} of {} in SQL",
            deployed.taken[0], deployed.bodies[0], deployed.taken[1], deployed.bodies[1]
        );
        let mut times: BTreeMap<&(String, String), usize> = BTreeMap::new();
        for refusal in &deployed.refused {
            let time = times.entry(refusal).or_default();
            *time += 1;
            let again = if *time > 1 { format!(" ({time})") } else { String::new() };
            let _ = writeln!(told, "  {}{again} | {}", refusal.0, refusal.1);
        }
        for suite in suites.iter().filter(|suite| suite.name == package) {
            let differing = run(suite, &postgres.url(), &server.url(), recording).await;
            let (all, agree) = (suite.cases.len(), suite.cases.len() - differing.len());
            let _ = writeln!(told, "{package} at work: {agree} of {all} cases agree");
            for (title, difference) in differing {
                let _ = writeln!(told, "  case {title} | {difference}");
            }
        }
    }
    let path = archipel_tests::file("foreign/status");
    if recording {
        std::fs::write(&path, &told).expect("the status file can be written");
    }
    let said = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    let (said, told) = (lines(&said), lines(&told));
    let wrong: Vec<&String> = told.symmetric_difference(&said).collect();
    assert!(wrong.is_empty(), "tests/foreign/status says otherwise:\n{wrong:#?}");
    assert!(bodies >= BODIES_MIN, "only {bodies} bodies in PL/pgSQL deploy");
}
