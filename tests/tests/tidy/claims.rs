//! `tests/security_claims`: each claim has a test, and the test is there.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{read, root};

const TABLE: &str = "tests/security_claims";

/// Fewer would mean that the table is no longer read as it is written.
const CLAIMS_MIN: usize = 100;

/// The lines that say something.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Whether a Rust file has a test of this name, which somebody runs.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let (function, of_task) = (format!("fn {name}("), format!("async fn {name}("));
    lines.iter().enumerate().any(|(at, line)| {
        let is_it = line.starts_with(&function) || line.starts_with(&of_task);
        let mut attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        is_it
            && attributes.clone().any(|line| *line == "#[test]" || line.starts_with("#[tokio::test"))
            && !attributes.any(|line| line.starts_with("#[ignore"))
    })
}

/// How many lines of a file begin with these words, marks of comments aside.
fn beginnings(text: &str, words: &str) -> usize {
    let bare = |line: &str| line.trim_start_matches(['#', '-', ' ']).starts_with(words);
    text.lines().filter(|line| bare(line)).count()
}

/// What is wrong with what a claim names, if something is.
fn fault(test: &str) -> Option<String> {
    let source = |path: &str| {
        let file = root().join(path);
        file.is_file().then(|| read(&file))
    };
    let missing = |path: &str| format!("there is no {path}");
    if let Some((path, function)) = test.split_once("::") {
        let is_rust = Path::new(path).extension().is_some_and(|extension| extension == "rs");
        return match source(path).filter(|_| is_rust) {
            None => Some(missing(path)),
            Some(source) => (!has_test(&source, function)).then(|| format!("{path} has no test {function}")),
        };
    }
    let Some((path, words)) = test.split_once(": ") else {
        return Some(format!("{test} is neither path::function nor path: words"));
    };
    match source(path).map(|text| beginnings(&text, words)) {
        None => Some(missing(path)),
        Some(1) => None,
        Some(count) => Some(format!("{count} lines of {path} begin with: {words}")),
    }
}

#[test]
fn every_claim_has_a_test_that_is_there() {
    let text = read(&root().join(TABLE));
    let (mut wrong, mut claims, mut subjects) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    // Whether the subject above has a claim.
    let mut empty = None;
    for line in lines(&text) {
        if let Some(subject) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            wrong.extend(empty.replace(subject).map(|before| format!("nothing is claimed of: {before}")));
            if !subjects.insert(subject) {
                wrong.push(format!("there twice: [{subject}]"));
            }
            continue;
        }
        empty = None;
        let Some((claim, test)) = line.split_once(" | ") else {
            wrong.push(format!("no claim and its test: {line}"));
            continue;
        };
        if !claim.ends_with('.') {
            wrong.push(format!("no sentence: {claim}"));
        }
        if !claims.insert(claim) {
            wrong.push(format!("there twice: {claim}"));
        }
        wrong.extend(fault(test.trim()).map(|fault| format!("{claim} {fault}")));
    }
    wrong.extend(empty.map(|subject| format!("nothing is claimed of: {subject}")));
    assert!(wrong.is_empty(), "{TABLE}:\n{}", wrong.join("\n"));
    assert!(claims.len() >= CLAIMS_MIN, "{TABLE} has {} claims", claims.len());
}

#[test]
fn tests_are_told_from_what_only_looks_like_one() {
    let source = "#[test]\nfn one() {\n}\nfn helper() {}\n#[test]\n#[ignore = \"slow\"]\nfn later() {\n\
                  #[tokio::test(flavor = \"multi_thread\")]\n    async fn other() {";
    assert!(has_test(source, "one") && has_test(source, "other"));
    assert!(!has_test(source, "helper") && !has_test(source, "later") && !has_test(source, "on"));
    assert_eq!(beginnings("# Who may.\n-- Who may\nselect who\nWhoever\n", "Who may"), 2);
}
