//! The suites of `tests/language` against PostgreSQL 15 and against Archipel: results, notices and
//! errors with all their fields.
//!
//! What Archipel answers otherwise is in `tests/language.differences`, each case with its reason. A case
//! that differs and is not listed fails the test, and so does one that is listed and agrees.
//!
//! `ARCHIPEL_TEST_RECORD=1` writes PostgreSQL's answers into the suites;
//! `ARCHIPEL_LANGUAGE=43.06_loops` (or `all`) shows what differs there.

use std::collections::BTreeMap;
use std::fmt::Write;

use archipel_tests::language::{Case, Suite, distinct};
use archipel_tests::postgres::Postgres;
use archipel_tests::server::Server;

/// How many cases the suites promise, whatever else changes.
const CASES_MIN: usize = 1000;

/// The reasons by suite and title.
type Differences = BTreeMap<(String, String), String>;

/// A line is `suite: title: reason`.
fn differences() -> Differences {
    let text = std::fs::read_to_string(archipel_tests::file("language.differences")).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let parts: Vec<&str> = line.splitn(3, " | ").collect();
            let [suite, title, reason] = parts[..] else { panic!("a difference without a reason: {line}") };
            assert!(!reason.trim().is_empty(), "a difference without a reason: {line}");
            ((suite.to_owned(), title.to_owned()), reason.to_owned())
        })
        .collect()
}

#[test]
fn there_are_a_thousand_distinct_cases() {
    let suites = Suite::all("language");
    let mut told = String::new();
    let mut total = 0;
    for suite in &suites {
        let mut titles: Vec<&str> = suite.cases.iter().map(|case| case.title.as_str()).collect();
        titles.sort_unstable();
        let twice = titles.windows(2).find(|pair| pair[0] == pair[1]);
        assert!(twice.is_none(), "{}: two cases are called {:?}", suite.name, twice);
        let _ = writeln!(told, "{}: {} cases", suite.name, distinct(&suite.cases));
    }
    let all: Vec<Case> = suites.into_iter().flat_map(|suite| suite.cases).collect();
    total += distinct(&all);
    let _ = writeln!(told, "all sections: {total} distinct cases");
    let said = std::fs::read_to_string(archipel_tests::file("language/sections")).unwrap_or_default();
    assert_eq!(said, told, "tests/language/sections says otherwise");
    assert!(total >= CASES_MIN, "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routines_answer_as_on_postgresql() {
    let postgres = Postgres::start();
    let recording = std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1");
    let only = std::env::var("ARCHIPEL_LANGUAGE").ok();
    let mut suites = Suite::all("language");
    suites.retain(|suite| only.as_ref().is_none_or(|only| only == "all" || *only == suite.name));
    if recording {
        for suite in &suites {
            let mut answers = Vec::new();
            for case in &suite.cases {
                answers.push(suite.run(&postgres.url(), case).await);
            }
            suite.record(&answers);
        }
        return;
    }
    let mut listed = differences();
    let mut wrong = String::new();
    let mut server = Server::start(&[]);
    for suite in &suites {
        let mut agreeing = 0;
        for case in &suite.cases {
            if only.is_none()
                && let Some(shown) = case.difference(&suite.run(&postgres.url(), case).await)
            {
                let _ = writeln!(wrong, "PostgreSQL differs from {}, {}:\n{shown}", suite.name, case.title);
            }
            let reason = listed.remove(&(suite.name.clone(), case.title.clone()));
            let found = case.difference(&suite.run(&server.url(), case).await);
            agreeing += usize::from(found.is_none());
            if !server.alive() {
                let _ = writeln!(wrong, "The server ended in {}, {}", suite.name, case.title);
                server = Server::start(&[]);
            }
            match (found, reason) {
                (Some(shown), None) => {
                    let _ = writeln!(wrong, "Archipel differs from {}, {}:\n{shown}", suite.name, case.title);
                }
                (Some(shown), Some(reason)) if only.is_some() => {
                    println!("listed: {}, {}: {reason}\n{shown}", suite.name, case.title);
                }
                (None, Some(_)) => {
                    let _ = writeln!(
                        wrong,
                        "{}, {}: agrees now; take it off tests/language.differences",
                        suite.name, case.title
                    );
                }
                _ => {}
            }
        }
        println!("{}: {agreeing} of {} agree", suite.name, suite.cases.len());
    }
    if only.is_none() {
        for (suite, title) in listed.keys() {
            let _ =
                writeln!(wrong, "{suite}, {title}: tests/language.differences lists no case of that name");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
