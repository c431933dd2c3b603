//! PostgreSQL's isolation specs against Archipel, each with its status in
//! `tests/isolation/status`:
//!
//! - `pass`          prints what PostgreSQL's own tests expect, to the letter
//! - `serializable`  answers elsewhere than PostgreSQL that access could not be serialized, and
//!   every permutation is what some serial order of the committed transactions answers
//! - `differs: why`  anything else
//! - `sometimes: why` passes or differs, as chance has it: said by hand, and either will do
//!
//! A spec that is worse than its status fails the test, and so does one that is better: then
//! the file must say so. `ARCHIPEL_TEST_RECORD=1` writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

use archipel_tests::isolation::{Ran, Tester, is_serializable};
use archipel_tests::server::{Server, connect};

/// Servers side by side: most of a spec's time is waiting.
const SERVERS: usize = 6;
/// On a busy machine a step may look as if it waited: a surprise is looked at so many times.
const LOOKS: usize = 4;
const HANGS: &str = "hangs";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Status {
    Pass,
    Serializable,
    Differs(String),
    Sometimes(String),
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Status::Pass => f.write_str("pass"),
            Status::Serializable => f.write_str("serializable"),
            Status::Differs(why) => write!(f, "differs: {why}"),
            Status::Sometimes(why) => write!(f, "sometimes: {why}"),
        }
    }
}

impl Status {
    /// Whether a run of a spec came out as this said: reasons to differ are for the reader.
    fn is_as_good_as(&self, other: &Status) -> bool {
        match (self, other) {
            (Status::Differs(_), Status::Differs(_)) => true,
            (Status::Sometimes(_), Status::Pass | Status::Differs(_)) => true,
            _ => self == other,
        }
    }
}

fn recorded() -> BTreeMap<String, Status> {
    let text = std::fs::read_to_string(archipel_tests::file("isolation/status")).unwrap_or_default();
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (name, status) = line.split_once(' ').expect("a line is a name and a status");
            let status = match status.trim() {
                "pass" => Status::Pass,
                "serializable" => Status::Serializable,
                other => match other.strip_prefix("sometimes: ") {
                    Some(why) => Status::Sometimes(why.to_owned()),
                    None => Status::Differs(
                        other.strip_prefix("differs: ").expect("a status is one of four").to_owned(),
                    ),
                },
            };
            (name.to_owned(), status)
        })
        .collect()
}

/// The first line that PostgreSQL does not print at that place: the reason to record.
fn first_difference(printed: &str, expected: &str) -> String {
    let mut expected = expected.lines();
    for line in printed.lines() {
        match expected.next() {
            Some(wanted) if wanted == line => {}
            Some(wanted) => return format!("prints `{}` for `{}`", line.trim(), wanted.trim()),
            None => return format!("prints `{}` at the end", line.trim()),
        }
    }
    match expected.next() {
        Some(wanted) => format!("ends before `{}`", wanted.trim()),
        None => "no difference".to_owned(),
    }
}

/// Runs one spec on a server whose database is as good as empty. The answer's second part says
/// whether the server can be used again.
fn run(tester: &Tester, name: &str, url: &str, is_known_to_hang: bool) -> (Status, bool) {
    let spec = tester.spec(name);
    let printed = match tester.run(name, &spec, url, is_known_to_hang) {
        Ran::Printed(printed) => printed,
        Ran::Hung => return (Status::Differs(HANGS.to_owned()), false),
    };
    let expected = tester.expected(name);
    if expected.contains(&printed) {
        return (Status::Pass, true);
    }
    if spec.to_lowercase().contains("isolation level serializable") {
        let serially = |text: &str| match tester.run(name, text, url, false) {
            Ran::Printed(printed) => Some(printed),
            Ran::Hung => None,
        };
        let begins = expected.iter().any(|expected| same_permutations(expected, &printed));
        if begins && is_serializable(&spec, &printed, serially).is_ok() {
            return (Status::Serializable, true);
        }
    }
    let why = expected.iter().map(|expected| first_difference(&printed, expected)).next().unwrap_or_default();
    let lasting = printed.lines().last().is_some_and(|line| !line.contains("timed out"));
    (Status::Differs(why), lasting)
}

/// Whether two outputs are about the same permutations, all of them.
fn same_permutations(one: &str, other: &str) -> bool {
    let starts = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("starting permutation")).map(str::to_owned).collect()
    };
    starts(one) == starts(other)
}

async fn clean(url: &str) -> bool {
    let client = connect(url).await;
    // As PostgreSQL's new databases have it: roles that a spec makes may look into it.
    let script = "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC";
    client.batch_execute(script).await.is_ok()
}

#[test]
fn isolation_specs_have_the_status_they_are_said_to_have() {
    let tester = Tester::prepare();
    let recorded = recorded();
    let only = std::env::var("ARCHIPEL_ISOLATION_SPEC").ok();
    let names: Vec<String> =
        tester.specs().into_iter().filter(|name| only.as_ref().is_none_or(|only| only == name)).collect();
    let left = Mutex::new(names.iter());
    let found = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..SERVERS.min(names.len()) {
            scope.spawn(|| {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                let mut server = Server::start(&[]);
                loop {
                    let Some(name) = left.lock().expect("no thread panicked").next() else { break };
                    let hangs = recorded.get(name) == Some(&Status::Differs(HANGS.to_owned()));
                    for _ in 0..LOOKS {
                        let (status, lasting) = run(&tester, name, &server.url(), hangs);
                        let expected = recorded.get(name).is_some_and(|before| before.is_as_good_as(&status));
                        found.lock().expect("no thread panicked").insert(name.clone(), status);
                        if !lasting || !runtime.block_on(clean(&server.url())) {
                            server = Server::start(&[]);
                        }
                        if expected {
                            break;
                        }
                    }
                }
            });
        }
    });
    let found = found.into_inner().expect("no thread panicked");
    if std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1") {
        let kept = recorded.into_iter().filter(|(_, status)| matches!(status, Status::Sometimes(_)));
        write_status(&found.into_iter().chain(kept).collect());
        return;
    }
    let mut wrong = String::new();
    for (name, status) in &found {
        if !recorded.get(name).is_some_and(|before| before.is_as_good_as(status)) {
            let before = recorded.get(name).map_or("nothing".to_owned(), Status::to_string);
            // Writing to a String cannot fail.
            let _ = writeln!(wrong, "{name}: {status}; tests/isolation/status says {before}");
        }
    }
    if only.is_none() {
        for name in recorded.keys().filter(|name| !found.contains_key(*name)) {
            let _ = writeln!(wrong, "{name}: no such spec");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn write_status(found: &BTreeMap<String, Status>) {
    let mut text = String::from(
        "# What PostgreSQL's isolation tester says of each of its specs: see tests/tests/isolation.rs.\n",
    );
    for (name, status) in found {
        let _ = writeln!(text, "{name} {status}");
    }
    std::fs::write(archipel_tests::file("isolation/status"), text).expect("the status file can be written");
}
