//! The recorded suites of routines, without a server: expectations are PostgreSQL 15's.

mod common;

use common::Database;

/// One record of an `.slt` file.
struct Record {
    line: usize,
    head: String,
    sql: String,
    expected: Vec<String>,
}

fn records(text: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, head)) = lines.next() {
        if !(head.starts_with("statement") || head.starts_with("query")) {
            continue;
        }
        let mut sql = Vec::new();
        let mut expected = Vec::new();
        let mut in_results = false;
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
            match line {
                "----" => in_results = true,
                line if in_results => expected.push(line.to_string()),
                line => sql.push(line),
            }
        }
        records.push(Record { line: number + 1, head: head.to_string(), sql: sql.join("\n"), expected });
    }
    records
}

#[test]
fn routines_answer_as_recorded() {
    agrees(include_str!("../../tests/slt/routines.slt"));
}

#[test]
fn texts_and_arrays_in_loops_answer_as_recorded() {
    agrees(include_str!("../../tests/slt/routines_loops_values.slt"));
}

#[track_caller]
fn agrees(text: &str) {
    let mut db = Database::new();
    let mut failures = Vec::new();
    for record in records(text) {
        let result = db.run(&record.sql);
        let wanted_error = record.head.strip_prefix("statement error ");
        let (got, expected) = match (result, wanted_error) {
            (Ok(answer), None) if record.head.starts_with("query") => {
                let mut rows: Vec<String> = answer.rows.iter().map(|row| row.join(" ")).collect();
                let mut expected = record.expected.clone();
                if record.head.contains("rowsort") {
                    rows.sort();
                    expected.sort();
                }
                (rows.join("\n"), expected.join("\n"))
            }
            (Ok(_), None) => continue,
            (Ok(_), Some(error)) => ("success".to_string(), error.replace('\\', "")),
            (Err(error), wanted) => {
                let got = format!("({}) {}", error.state().as_str(), error.message());
                (got, wanted.map_or("success".to_string(), |wanted| wanted.replace('\\', "")))
            }
        };
        if got != expected {
            failures.push(format!("line {}: {}\n   got {got}\n  want {expected}", record.line, record.sql));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
