//! PostgreSQL's own regression files against Archipel, unedited and in PostgreSQL's order, each
//! with its status in `tests/postgresql/status`:
//!
//! `file 27/30: 4 8-9` says that of 30 statements 27 answer to the letter what PostgreSQL's
//! tests expect, positions of errors included, and that the fourth, eighth and ninth do not.
//! Statements that only show a plan are not counted. `~12` after them is a statement where chance
//! decides, and either will do: it takes about as long as it may, so that a fast machine sees its
//! answer and a slow one its end, or it depends on which numbers of a sequence a statement left out
//! that began anew on a thread of its own.
//!
//! A statement that differs and is not listed fails the test, and so does one that is listed and
//! agrees: then the file must say so. `ARCHIPEL_TEST_RECORD=1` writes it anew;
//! `ARCHIPEL_REGRESSION=file` runs one file, after what it needs, and prints what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use archipel_tests::regression::{Answers, Statement, Suite};
use archipel_tests::server::Server;

/// Files that others build on.
const FOUNDATIONS: [&str; 1] = ["test_setup"];

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Status {
    /// Statements counted.
    counted: usize,
    /// The numbers of those that differ, from one.
    differ: BTreeSet<usize>,
    /// The numbers of those that may agree or differ, by chance.
    chance: BTreeSet<usize>,
}

impl Status {
    fn agreeing(&self) -> usize {
        self.counted - self.differ.union(&self.chance).count()
    }

    /// Those that differ whatever the machine.
    fn surely_differ(&self, before: &Status) -> BTreeSet<usize> {
        self.differ.difference(&before.chance).copied().collect()
    }

    /// Whether a file came out as it did `before`. Another minor release of PostgreSQL may have
    /// other statements in it, with other numbers: then as many must agree, give or take one in
    /// fifty.
    fn is_as(&self, before: &Status) -> bool {
        if self.counted == before.counted {
            return self.surely_differ(before) == before.surely_differ(before);
        }
        let share = |status: &Status| status.agreeing() as f64 / status.counted.max(1) as f64;
        (share(self) - share(before)).abs() <= 0.02
    }

    /// From `27/30: 4 8-9`.
    fn parse(text: &str) -> Option<Status> {
        let (share, differ) = text.split_once(':')?;
        let counted = share.split_once('/')?.1.trim().parse().ok()?;
        let (mut numbers, mut chance) = (BTreeSet::new(), BTreeSet::new());
        for range in differ.split_whitespace() {
            if let Some(number) = range.strip_prefix('~') {
                chance.insert(number.parse().ok()?);
                continue;
            }
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            numbers.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
        }
        Some(Status { counted, differ: numbers, chance })
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}:", self.agreeing(), self.counted)?;
        let mut numbers = self.differ.difference(&self.chance).copied().peekable();
        while let Some(first) = numbers.next() {
            let mut last = first;
            while numbers.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            match last - first {
                0 => write!(f, " {first}")?,
                _ => write!(f, " {first}-{last}")?,
            }
        }
        self.chance.iter().try_for_each(|number| write!(f, " ~{number}"))
    }
}

fn recorded() -> BTreeMap<String, Status> {
    let text = std::fs::read_to_string(archipel_tests::file("postgresql/status")).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (name, status) = line.split_once(' ').expect("a line is a name and a status");
            (name.to_owned(), Status::parse(status).expect("a status reads as this file's head says"))
        })
        .collect()
}

/// Rows come in any order where the statement asks for none.
fn agree(statement: &Statement, found: &str, expected: &str) -> bool {
    fn sorted(text: &str) -> Vec<&str> {
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_unstable();
        lines
    }
    found == expected || !is_ordered(&statement.text) && sorted(found) == sorted(expected)
}

/// Whether a statement orders its rows: what stands in parentheses, of a window or a subquery, does
/// not.
fn is_ordered(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut outside = String::new();
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            other if depth == 0 => outside.extend(other.to_lowercase()),
            _ => {}
        }
    }
    outside.split_whitespace().collect::<Vec<_>>().windows(2).any(|words| words == ["order", "by"])
}

/// The status of a file by the alternative that agrees best.
fn compare(statements: &[Statement], found: &Answers, expected: &[Answers]) -> (Status, Answers) {
    let counted = statements.iter().filter(|statement| statement.counts()).count();
    let against = |expected: &Answers| -> BTreeSet<usize> {
        let numbered = statements.iter().enumerate();
        let differ = numbered.filter(|(number, statement)| {
            let agree = match (found.get(*number), expected.get(*number)) {
                (Some(found), Some(expected)) => agree(statement, found, expected),
                _ => false,
            };
            statement.counts() && !agree
        });
        differ.map(|(number, _)| number + 1).collect()
    };
    let best =
        expected.iter().map(|expected| (against(expected), expected)).min_by_key(|(differ, _)| differ.len());
    let (differ, expected) = best.expect("every file has an expected output");
    (Status { counted, differ, chance: BTreeSet::new() }, expected.clone())
}

fn show(name: &str, statements: &[Statement], found: &Answers, expected: &Answers, status: &Status) {
    for number in &status.differ {
        let nothing = "(the session had ended)".to_owned();
        println!(
            "---- {name} {number}: {}\n-- PostgreSQL:\n{}-- Archipel:\n{}",
            statements[number - 1].text,
            expected.get(number - 1).unwrap_or(&nothing),
            found.get(number - 1).unwrap_or(&nothing)
        );
    }
}

#[test]
fn regression_files_have_the_status_they_are_said_to_have() {
    let suite = Suite::prepare();
    let recorded = recorded();
    let only = std::env::var("ARCHIPEL_REGRESSION").ok();
    let chosen = |name: &String| match &only {
        Some(only) => only == name || only == "all" || FOUNDATIONS.contains(&name.as_str()),
        None => true,
    };
    let mut server = Server::start(&[]);
    let mut found = BTreeMap::new();
    for name in suite.schedule().into_iter().filter(chosen) {
        let statements = suite.statements(&name);
        let started = std::time::Instant::now();
        let answers = suite.run(&name, &statements, &server);
        let (status, expected) = compare(&statements, &answers, &suite.expected(&name, &statements));
        if only.is_some() {
            show(&name, &statements, &answers, &expected, &status);
            println!("==== {name} {}/{} in {:?}", status.agreeing(), status.counted, started.elapsed());
        }
        let chance = recorded.get(&name).map(|before| before.chance.clone()).unwrap_or_default();
        found.insert(name, Status { chance, ..status });
        if !server.alive() {
            server = Server::start(&[]);
        }
    }
    if std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1") {
        write_status(&found);
        return;
    }
    let mut wrong = String::new();
    for (name, status) in &found {
        if !recorded.get(name).is_some_and(|before| status.is_as(before)) {
            let before = recorded.get(name).map_or("nothing".to_owned(), Status::to_string);
            // Writing to a String cannot fail.
            let _ = writeln!(wrong, "{name} {status}\n  tests/postgresql/status says {before}");
        }
    }
    if only.is_none() {
        for name in recorded.keys().filter(|name| !found.contains_key(*name)) {
            let _ = writeln!(wrong, "{name}: no such file");
        }
    }
    assert!(wrong.is_empty() || only.is_some(), "\n{wrong}");
}

fn write_status(found: &BTreeMap<String, Status>) {
    let (agreeing, counted) =
        found.values().fold((0, 0), |sum, status| (sum.0 + status.agreeing(), sum.1 + status.counted));
    let whole = found.values().filter(|status| status.agreeing() == status.counted).count();
    let mut text = format!(
        "# PostgreSQL's regression files: see tests/tests/regression.rs.\n# {agreeing} of {counted} statements agree, {whole} of {} files whole.\n",
        found.len()
    );
    for (name, status) in found {
        let _ = writeln!(text, "{name} {status}");
    }
    std::fs::write(archipel_tests::file("postgresql/status"), text).expect("the status file can be written");
}
