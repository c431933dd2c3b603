//! The test suites that come with the drivers, of pinned versions, on PostgreSQL 15 and on Archipel:
//! `tests/drivers/suite NAME` runs one and prints a line for each of its tests.
//!
//! What PostgreSQL passes and Archipel does not stands in `tests/drivers/NAME/suite.status`, a line
//! `test | reason` each. One that is not listed fails the test, and so does one that is listed and
//! passes: the file may only become shorter. `ARCHIPEL_TEST_RECORD=1` writes it anew, keeps the
//! reasons it knows and puts `? ` with the suite's message for those that a reader has to find.
//!
//! A reason begins with `step 10: ` where a type or an extension is missing that belongs to that step;
//! these are counted apart, by reason. It begins with `at times: ` where the test passes in some
//! runs: then either is right.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use archipel_tests::postgres::Postgres;
use archipel_tests::server::Server;

/// How long a suite may run on one server.
const LIMIT_S: &str = "1800";
/// How `tests/drivers/suite` exits where the registries do not hold the suite: EX_UNAVAILABLE of sysexits.h.
const UNAVAILABLE: i32 = 69;
/// What must pass of what PostgreSQL passes and step 10 does not owe.
const SHARE_MIN_PERCENT: f64 = 95.0;
/// How a reason begins that waits for types and extensions.
const LATER: &str = "step 10: ";
/// How a reason begins of a test that passes in some runs.
const AT_TIMES: &str = "at times: ";
/// Types that belong to that step, each with the reason it is counted under.
const LATER_TYPES: [(&str, &[&str]); 7] = [
    ("geometric types", &["box", "circle", "line", "lseg", "path", "polygon"]),
    (
        "range types",
        &[
            "int4range",
            "int8range",
            "numrange",
            "daterange",
            "tsrange",
            "tstzrange",
            "int4multirange",
            "int8multirange",
            "nummultirange",
            "datemultirange",
            "tsmultirange",
            "tstzmultirange",
        ],
    ),
    ("money", &["money"]),
    ("text search", &["tsvector", "tsquery"]),
    ("extension hstore", &["hstore"]),
    ("extension ltree", &["ltree", "lquery", "ltxtquery"]),
    ("extension citext", &["citext"]),
];
/// What the tests of a suite wait for is measured in seconds: one suite runs at a time.
static TURN: Mutex<()> = Mutex::new(());

/// What became of a suite's tests.
#[derive(Default)]
struct Outcome {
    passed: BTreeSet<String>,
    /// With what the suite said.
    failed: BTreeMap<String, String>,
    skipped: BTreeSet<String>,
}

impl Outcome {
    /// Reads the lines that `tests/drivers/suite` prints.
    fn read(lines: &str) -> Outcome {
        let mut outcome = Outcome::default();
        for line in lines.lines() {
            let (verdict, test) = line.split_once(' ').unwrap_or((line, ""));
            let (test, message) = test.split_once(" | ").unwrap_or((test, ""));
            match verdict {
                "ok" => drop(outcome.passed.insert(test.to_owned())),
                "skip" => drop(outcome.skipped.insert(test.to_owned())),
                "fail" => drop(outcome.failed.insert(test.to_owned(), message.to_owned())),
                _ => panic!("no line of a suite: {line}"),
            }
        }
        // Tests of one name, in a loop or in two files: all of them have to pass.
        outcome.passed.retain(|test| !outcome.failed.contains_key(test));
        outcome
    }

    /// Whether there is such a test, whatever became of it.
    fn has(&self, test: &str) -> bool {
        self.passed.contains(test) || self.failed.contains_key(test) || self.skipped.contains(test)
    }

    /// What was said of a test that did not pass.
    fn message(&self, test: &str) -> &str {
        match self.failed.get(test) {
            Some(message) => message,
            None if self.skipped.contains(test) => "skipped",
            None => "not run",
        }
    }
}

/// Runs a suite against a server; its tests' outcome, or `None` where the registries do not hold the suite.
fn run(suite: &str, server: &str, url: &str) -> Option<Outcome> {
    let log =
        std::env::temp_dir().join(format!("archipel-suite-{suite}-{server}-{}.log", std::process::id()));
    let output = Command::new("timeout")
        .args(["-k", "5", LIMIT_S])
        .arg(archipel_tests::file("drivers/suite"))
        .args([suite.as_ref(), log.as_os_str()])
        .env("DATABASE_URL", url)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("timeout of coreutils is installed");
    let said = std::fs::read(&log).unwrap_or_default();
    // It is only of use where a test fails, which shows its end.
    let _ = std::fs::remove_file(&log);
    if output.status.code() == Some(UNAVAILABLE) {
        return None;
    }
    let said = String::from_utf8_lossy(&said);
    let last: Vec<&str> = said.lines().rev().take(40).collect();
    let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
    assert!(output.status.success(), "{suite} on {server}: {}\n{last}", output.status);
    let outcome = Outcome::read(&String::from_utf8_lossy(&output.stdout));
    assert!(!outcome.passed.is_empty(), "{suite} on {server}: no test passes\n{last}");
    println!(
        "{suite} on {server}: {} passed, {} failed, {} skipped",
        outcome.passed.len(),
        outcome.failed.len(),
        outcome.skipped.len()
    );
    Some(outcome)
}

/// The reasons of a status file by test.
fn reasons(suite: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(archipel_tests::file(&format!("drivers/{suite}/suite.status")))
        .unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (test, reason) = line.split_once(" | ").unwrap_or((line, ""));
            (test.to_owned(), reason.to_owned())
        })
        .collect()
}

/// The reason of a failure whose message says that a type of [`LATER_TYPES`] is not there; otherwise what a
/// reader has to replace.
fn first_reason(message: &str) -> String {
    // Some suites print messages as literals of their language.
    let plain = message.replace('\\', "");
    let named = |name: &str| {
        ["", "[]"].iter().any(|array| plain.contains(&format!("type \"{name}{array}\" does not exist")))
    };
    let later = LATER_TYPES.iter().find(|(_, names)| names.iter().any(|name| named(name)));
    later.map_or_else(|| format!("? {message}"), |(reason, _)| format!("{LATER}{reason}"))
}

/// How many pass of what PostgreSQL passes, and what the others wait for.
struct Figures {
    text: String,
    /// Of what step 10 does not owe.
    share_percent: f64,
}

impl Figures {
    /// `missing` are the reasons of the tests that PostgreSQL passes and Archipel does not.
    fn new(passed_there: usize, missing: &BTreeMap<&str, &str>) -> Figures {
        let passed = passed_there - missing.len();
        let mut later: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in missing.values().filter_map(|reason| reason.strip_prefix(LATER)) {
            *later.entry(reason).or_default() += 1;
        }
        let owed_later: usize = later.values().sum();
        let percent = |of: usize| 100.0 * passed as f64 / of.max(1) as f64;
        let mut text = format!(
            "PostgreSQL 15 passes {passed_there}, Archipel {passed} of these ({:.1} %)",
            percent(passed_there)
        );
        if owed_later > 0 {
            let reasons: Vec<String> =
                later.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "; {:.1} % without the {owed_later} that wait for step 10: {}",
                percent(passed_there - owed_later),
                reasons.join(", ")
            );
        }
        Figures { text, share_percent: percent(passed_there - owed_later) }
    }
}

/// Runs a suite on both servers and compares with its status file, or writes that.
fn agrees_with_its_status(suite: &str) {
    if !archipel_tests::long() {
        archipel_tests::skipped("belongs to tests/run --long");
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(there) = run(suite, "PostgreSQL", &Postgres::start().url()) else {
        archipel_tests::skipped("the registries do not hold the suite");
        return;
    };
    let mut server = Server::start(&[]);
    let here = run(suite, "Archipel", &server.url()).expect("the suite was there a moment ago");
    assert!(server.alive(), "{suite}: the server ended\n{}", server.log());
    let listed = reasons(suite);
    let unknown: BTreeMap<&str, String> = there
        .passed
        .difference(&here.passed)
        .filter(|test| !listed.contains_key(*test))
        .map(|test| (test.as_str(), first_reason(here.message(test))))
        .collect();
    let mut missing: BTreeMap<&str, &str> =
        unknown.iter().map(|(test, reason)| (*test, reason.as_str())).collect();
    let known = listed.iter().filter(|(test, reason)| {
        there.passed.contains(*test) && !here.passed.contains(*test) || reason.starts_with(AT_TIMES)
    });
    missing.extend(known.map(|(test, reason)| (test.as_str(), reason.as_str())));
    let at_times = missing.values().filter(|reason| reason.starts_with(AT_TIMES)).count();
    let figures = Figures::new(there.passed.len().max(missing.len()), &missing);
    println!("{suite}: {}", figures.text);

    if std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1") {
        let mut text = format!("# {}.\n# See tests/tests/driver_suites.rs.\n", figures.text);
        for (test, reason) in &missing {
            let _ = writeln!(text, "{test} | {reason}");
        }
        let path = archipel_tests::file(&format!("drivers/{suite}/suite.status"));
        std::fs::write(path, text).expect("the status file can be written");
        return;
    }
    let mut wrong = String::new();
    for (test, reason) in &unknown {
        let _ = writeln!(wrong, "{test} fails, which is not listed: {}", reason.trim_start_matches("? "));
    }
    for (test, reason) in &listed {
        if reason.trim().is_empty() || reason.starts_with("? ") {
            let _ = writeln!(wrong, "{test} is listed without a reason");
        } else if here.passed.contains(test) && !reason.starts_with(AT_TIMES) {
            let _ = writeln!(wrong, "{test} passes: take it off");
        } else if !here.has(test) && !there.has(test) {
            let _ = writeln!(wrong, "{test} is listed, and no test is called so");
        }
    }
    assert!(wrong.is_empty(), "tests/drivers/{suite}/suite.status says otherwise:\n{wrong}");
    assert!(
        figures.share_percent >= SHARE_MIN_PERCENT,
        "{suite}: {} ({at_times} of these pass at times)",
        figures.text
    );
}

#[test]
fn pgx() {
    agrees_with_its_status("pgx");
}

#[test]
fn activerecord() {
    agrees_with_its_status("activerecord");
}

#[test]
fn sequel() {
    agrees_with_its_status("sequel");
}

#[test]
fn lib_pq() {
    agrees_with_its_status("pq");
}

#[test]
fn tokio_postgres() {
    agrees_with_its_status("tokio-postgres");
}

#[test]
fn sqlx() {
    agrees_with_its_status("sqlx");
}

#[test]
fn sysbench() {
    agrees_with_its_status("sysbench");
}

#[test]
fn pgbench() {
    agrees_with_its_status("pgbench");
}

#[test]
fn psycopg2() {
    agrees_with_its_status("psycopg2");
}

#[test]
fn asyncpg() {
    agrees_with_its_status("asyncpg");
}

#[test]
fn sqlalchemy() {
    agrees_with_its_status("sqlalchemy");
}

#[test]
fn django() {
    agrees_with_its_status("django");
}
