//! Statements made up at random, against PostgreSQL 15 and against Archipel.
//!
//! Where the two differ, the statement is shrunk to what still makes them differ. Differences we
//! know and have a reason for are in `tests/differences`: a pattern that the shrunk statement
//! matches, an example, and why. An example that no longer differs fails the test, so that the
//! file only shrinks.

use archipel_tests::differential::shrink::smaller;
use archipel_tests::differential::{Answer, Generator, SCHEMA, Statement, answer};
use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, connect};
use tokio_postgres::Client;

/// How many statements, for CI and for `tests/run --long`.
const STATEMENTS: (usize, usize) = (2_000, 100_000);
/// How many differences are shrunk and shown before the test gives up.
const SHOWN_MAX: usize = 12;

/// At most one statement in so many may be excused for an error of its values that only one of both
/// comes to: an error too many, or one too few, would otherwise hide there.
const EXCUSED_ONE_IN: usize = 50;
const EXCUSED_SHOWN: usize = 20;

struct Known {
    pattern: String,
    example: String,
}

fn known_differences() -> Vec<Known> {
    let text = std::fs::read_to_string(archipel_tests::file("differences")).expect("the file is there");
    let mut known = Vec::new();
    let mut pattern = None;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        match line.split_once(": ") {
            Some(("contains", text)) => pattern = Some(text.to_owned()),
            Some(("example", example)) => {
                let pattern = pattern.take().expect("an example follows its pattern");
                known.push(Known { pattern, example: example.to_owned() });
            }
            _ => panic!("tests/differences: {line}"),
        }
    }
    known
}

struct Pair {
    postgres: Client,
    archipel: Client,
}

impl Pair {
    async fn answers(&self, text: &str, ordered: bool) -> (Answer, Answer) {
        futures::join!(answer(&self.postgres, text, ordered), answer(&self.archipel, text, ordered))
    }

    async fn compare(&self, text: &str, ordered: bool) -> Likeness {
        let (theirs, ours) = self.answers(text, ordered).await;
        let over_tables = text.contains(" FROM ") || !text.starts_with("SELECT");
        likeness(&theirs, &ours, over_tables)
    }

    async fn differ(&self, text: &str, ordered: bool) -> bool {
        self.compare(text, ordered).await == Likeness::Differ
    }

    /// The smallest statement found that still differs.
    async fn shrink(&self, statement: Statement) -> Statement {
        let mut least = statement;
        'again: for _ in 0..200 {
            for candidate in smaller(&least) {
                if self.differ(&candidate.sql(), candidate.is_ordered()).await {
                    least = candidate;
                    continue 'again;
                }
            }
            break;
        }
        least
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Likeness {
    Same,
    /// One answers an error that the other need not come to.
    Excused,
    Differ,
}

/// What two answers have in common. Of several errors of values either may come first, and so may
/// one of a constraint. Over tables it is open whether an error comes at all: PostgreSQL computes
/// constants before it looks for rows, and whoever finds no row, or decides by another condition,
/// computes nothing. Without tables nothing is open.
fn likeness(theirs: &Answer, ours: &Answer, over_tables: bool) -> Likeness {
    let of_values = |answer: &Answer| matches!(answer, Answer::Error(state) if state.starts_with("22"));
    let of_rows = |answer: &Answer| matches!(answer, Answer::Error(state) if state.starts_with("22") || state.starts_with("23"));
    let rows = |answer: &Answer| matches!(answer, Answer::Rows(..));
    match (theirs, ours) {
        _ if theirs == ours => Likeness::Same,
        _ if of_rows(theirs) && of_rows(ours) => Likeness::Excused,
        _ if over_tables && of_values(theirs) && rows(ours) => Likeness::Excused,
        _ if over_tables && rows(theirs) && of_values(ours) => Likeness::Excused,
        _ => Likeness::Differ,
    }
}

#[tokio::test]
async fn statements_made_up_at_random_agree_with_postgresql() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    let pair = Pair { postgres: connect(&postgres.url()).await, archipel: connect(&server.url()).await };
    for client in [&pair.postgres, &pair.archipel] {
        client.batch_execute(SCHEMA).await.expect("the schema is made");
    }
    let known = known_differences();
    let mut failures = Vec::new();
    for known in &known {
        if !pair.differ(&known.example, false).await {
            failures.push(format!("tests/differences: this does not differ any more: {}", known.example));
        }
    }
    let seed = std::env::var("ARCHIPEL_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(15);
    let mut generator = Generator::new(seed);
    let (mut agreeing, mut explained) = (0, 0);
    let mut excused = Vec::new();
    for number in 0..if archipel_tests::long() { STATEMENTS.1 } else { STATEMENTS.0 } {
        let statement = generator.statement();
        match pair.compare(&statement.sql(), statement.is_ordered()).await {
            Likeness::Same => {
                agreeing += 1;
                continue;
            }
            Likeness::Excused => {
                excused.push(statement.sql());
                continue;
            }
            Likeness::Differ => {}
        }
        let least = pair.shrink(statement).await;
        let text = least.sql();
        if known.iter().any(|known| text.contains(&known.pattern)) {
            explained += 1;
            continue;
        }
        let (theirs, ours) = pair.answers(&text, least.is_ordered()).await;
        failures.push(format!(
            "seed {seed}, statement {number}:\n{text}\n  PostgreSQL: {theirs:?}\n  Archipel:   {ours:?}"
        ));
        if failures.len() >= SHOWN_MAX {
            break;
        }
    }
    let of_one = excused.len();
    println!("{agreeing} statements agree, {explained} differ for known reasons, {of_one} in errors only:");
    excused.iter().take(EXCUSED_SHOWN).for_each(|text| println!("  {text}"));
    let compared = agreeing + explained + of_one;
    assert!(
        of_one * EXCUSED_ONE_IN <= compared,
        "{of_one} of {compared} statements are excused for errors that only one of both comes to:\n{}",
        excused.join("\n")
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
