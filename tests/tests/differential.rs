//! Statements made up at random, against PostgreSQL 15 and against Archipel.
//!
//! Where the two differ, the statement is shrunk to what still makes them differ. Differences we
//! know and have a reason for are in `tests/differences`: a pattern that the shrunk statement
//! matches, an example, and why. An example that no longer differs fails the test, so that the
//! file only shrinks.

use archipel_tests::differential::shrink::smaller;
use archipel_tests::differential::{Answer, Generator, Room, SCHEMA, Statement, Written, answer};
use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, connect};
use tokio_postgres::Client;

/// How many statements, for CI and for `tests/run --long`, unless `ARCHIPEL_TEST_STATEMENTS` says
/// otherwise. They come from the seed `ARCHIPEL_TEST_SEED`, or else from [`SEED`].
const STATEMENTS: (usize, usize) = (2_000, 100_000);
const SEED: u64 = 15;
/// How many differences are shrunk and shown before the test gives up.
const SHOWN_MAX: usize = 40;
/// How long a statement may take.
const STATEMENT_TIMEOUT: &str = "SET statement_timeout = '60s'";

/// At most one statement in so many may be excused for an error of its values that only one of both
/// comes to: an error too many, or one too few, would otherwise hide there.
const EXCUSED_ONE_IN: usize = 25;
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
    /// Another session with Archipel, where the same statements run in another way.
    other: Client,
}

/// What PostgreSQL answers, and what Archipel does in both ways.
struct Answers {
    theirs: Answer,
    ours: [Answer; 2],
}

impl Pair {
    async fn answers(&self, statement: &Written) -> Answers {
        let (theirs, first) = futures::join!(
            answer(&self.postgres, statement, Room::Usual),
            answer(&self.archipel, statement, Room::Usual)
        );
        // What changes on its own would be in the way of the others.
        let second = answer(&self.other, statement, Room::Other).await;
        Answers { theirs, ours: [first, second] }
    }

    async fn compare(&self, statement: &Written) -> Likeness {
        let answers = self.answers(statement).await;
        let of = |ours: &Answer| likeness(&answers.theirs, ours, statement);
        of(&answers.ours[0]).max(of(&answers.ours[1]))
    }

    async fn differ(&self, statement: &Written) -> bool {
        self.compare(statement).await == Likeness::Differ
    }

    /// The smallest statement found that still differs.
    async fn shrink(&self, statement: Statement) -> Statement {
        let mut least = statement;
        'again: for _ in 0..200 {
            for candidate in smaller(&least) {
                if self.differ(&candidate.written()).await {
                    least = candidate;
                    continue 'again;
                }
            }
            break;
        }
        least
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    Same,
    /// One answers an error that the other need not come to.
    Excused,
    Differ,
}

/// What two answers have in common. Of several errors of values either may come first, and so may
/// one of a constraint. Over tables it is open whether an error comes at all: PostgreSQL computes
/// constants before it looks for rows, and whoever finds no row, or decides by another condition,
/// computes nothing. Without tables it is open only whether PostgreSQL computes a constant that
/// nothing asks for in the end, and what stands beside a NULL that decides all.
fn likeness(theirs: &Answer, ours: &Answer, statement: &Written) -> Likeness {
    let over_tables = statement.text.contains(" FROM ") || statement.changes();
    let decides = ["CASE ", "coalesce(", " AND ", " OR "].iter().any(|word| statement.text.contains(word));
    let skips =
        statement.text.contains("NULL") || statement.parameters.iter().any(|(_, value)| value.is_none());
    let begins = |answer: &Answer, classes: &[&str]| match answer {
        Answer::Error(state) => classes.iter().any(|class| state.starts_with(class)),
        Answer::Rows(..) => false,
    };
    // Domains have their own condition, and only they have one here.
    let of_values = |answer: &Answer| begins(answer, &["22", "23514"]);
    // PostgreSQL says of some values that it does not support them, of an infinite number that has to
    // become an int for instance.
    let theirs_of_values = of_values(theirs) || begins(theirs, &["0A000"]);
    // A subquery or a conflict with more than one row is found on the way, too.
    let of_rows = |answer: &Answer| of_values(answer) || begins(answer, &["21", "23"]);
    let rows = |answer: &Answer| matches!(answer, Answer::Rows(..));
    match (theirs, ours) {
        _ if theirs == ours => Likeness::Same,
        _ if (theirs_of_values || of_rows(theirs)) && of_rows(ours) => Likeness::Excused,
        _ if (over_tables || decides) && theirs_of_values && rows(ours) => Likeness::Excused,
        _ if (over_tables || skips) && rows(theirs) && of_values(ours) => Likeness::Excused,
        _ => Likeness::Differ,
    }
}

#[tokio::test]
async fn statements_made_up_at_random_agree_with_postgresql() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    let pair = Pair {
        postgres: connect(&postgres.url()).await,
        archipel: connect(&server.url()).await,
        other: connect(&server.url()).await,
    };
    for client in [&pair.postgres, &pair.archipel] {
        client.batch_execute(SCHEMA).await.expect("the schema is made");
    }
    for client in [&pair.postgres, &pair.archipel, &pair.other] {
        client.batch_execute(STATEMENT_TIMEOUT).await.expect("a setting is set");
    }
    let known = known_differences();
    let mut failures = Vec::new();
    for known in &known {
        if !pair.differ(&Written::plain(&known.example)).await {
            failures.push(format!("tests/differences: this does not differ any more: {}", known.example));
        }
    }
    let from_outside = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let seed = from_outside("ARCHIPEL_TEST_SEED").unwrap_or(SEED);
    let usual = if archipel_tests::long() { STATEMENTS.1 } else { STATEMENTS.0 };
    let count = from_outside("ARCHIPEL_TEST_STATEMENTS").map_or(usual, |count| count as usize);
    let mut generator = Generator::new(seed);
    let (mut agreeing, mut explained) = (0, 0);
    let mut excused = Vec::new();
    for number in 0..count {
        let statement = generator.statement();
        match pair.compare(&statement.written()).await {
            Likeness::Same => {
                agreeing += 1;
                continue;
            }
            Likeness::Excused => {
                excused.push(statement.written().to_string());
                continue;
            }
            Likeness::Differ => {}
        }
        let least = pair.shrink(statement).await.written();
        let text = least.to_string();
        if known.iter().any(|known| text.contains(&known.pattern)) {
            explained += 1;
            continue;
        }
        let Answers { theirs, ours: [first, second] } = pair.answers(&least).await;
        let second = if first == second { String::new() } else { format!("\n  otherwise:  {second:?}") };
        failures.push(format!(
            "seed {seed}, statement {number}:\n{text}\n  PostgreSQL: {theirs:?}\n  Archipel:   {first:?}{second}"
        ));
        if failures.len() >= SHOWN_MAX {
            break;
        }
    }
    let of_one = excused.len();
    println!("{agreeing} statements agree, {explained} differ for known reasons, {of_one} in errors only:");
    excused.iter().take(EXCUSED_SHOWN).for_each(|text| println!("  {text}"));
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let compared = agreeing + explained + of_one;
    assert!(
        of_one * EXCUSED_ONE_IN <= compared,
        "{of_one} of {compared} statements are excused for errors that only one of both comes to:\n{}",
        excused.join("\n")
    );
}
