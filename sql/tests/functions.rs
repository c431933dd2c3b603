//! Functions and operators answer what PostgreSQL 15 answered for the same arguments.
//!
//! `functions.tsv` is recorded by `record_functions.py`; a row whose function does not exist
//! here is passed over. `known_differences.txt` lists the rows that differ on purpose, each
//! under a line that says why; a row there that agrees again fails, so the list only shrinks.

use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{FunctionContext, ScalarFunction, SessionHost, Style, function_by_oid};
use archipel_sql::io::{text_in, to_text};
use archipel_sql::type_table::{array_of, element_of};
use archipel_sql::types::{Oid, Type};

struct Berlin(Style);

impl SessionHost for Berlin {
    fn style(&self) -> &Style {
        &self.0
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}

/// The concrete type of a polymorphic result, from the declared and the actual arguments.
fn result_type(function: &ScalarFunction, args: &[Oid]) -> Oid {
    let element = function.args.iter().zip(args).find_map(|(declared, actual)| match *declared {
        Oid::ANYARRAY | Oid::ANYCOMPATIBLEARRAY => element_of(*actual),
        Oid::ANYELEMENT | Oid::ANYCOMPATIBLE => Some(*actual),
        _ => None,
    });
    match function.result {
        Oid::ANYARRAY | Oid::ANYCOMPATIBLEARRAY => element.and_then(array_of).unwrap_or(function.result),
        Oid::ANYELEMENT | Oid::ANYCOMPATIBLE => element.unwrap_or(function.result),
        concrete => concrete,
    }
}

fn evaluate(function: &ScalarFunction, args: &[&str], ctx: &FunctionContext<'_>) -> Result<String> {
    let values: Vec<Datum> = args
        .iter()
        .zip(function.args)
        .map(|(text, ty)| text_in(&unescape(text), Type::of(*ty), ctx))
        .collect::<Result<_>>()?;
    let result = (function.eval)(ctx, &values)?;
    Ok(match result {
        Datum::Null => "\\N".to_owned(),
        // The answers were recorded by casts to text: that of boolean spells the word out, that of bpchar takes
        // the blanks off, and that of inet tells every length.
        Datum::Bool(b) => b.to_string(),
        Datum::Bpchar(text) => text.trim_end_matches(' ').to_owned(),
        network @ Datum::Inet(_) => to_text(&network, Type::CIDR, ctx),
        other => to_text(&other, Type::of(result_type(function, function.args)), ctx),
    })
}

#[test]
fn functions_answer_as_postgresql() {
    let zone = archipel_sql::datetime::zone::lookup("Europe/Berlin").expect("the tz database is installed");
    let host = Berlin(Style { time_zone: zone, ..Style::default() });
    let ctx = FunctionContext { now: 0, session: &host };
    let known: std::collections::HashSet<&str> = include_str!("known_differences.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .collect();
    let (mut checked, mut failures) = (0, Vec::new());
    for line in include_str!("functions.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (Some(oid), Some(expected)) = (fields.first().and_then(|f| f.parse().ok()), fields.last()) else {
            continue;
        };
        let Some(function) = function_by_oid(Oid(oid)) else { continue };
        let attempt = || evaluate(function, &fields[2..fields.len() - 1], &ctx);
        let answer = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt)) {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => format!("!{}", error.state().as_str()),
            Err(_) => "a panic".to_owned(),
        };
        checked += 1;
        let expected = if expected.starts_with("\\N") { (*expected).to_owned() } else { unescape(expected) };
        let agrees = answer == expected;
        if agrees == known.contains(line) {
            failures.push(format!("{}\n    here: {answer}", line));
        }
    }
    assert!(checked > 3000, "only {checked} rows were checked");
    if !failures.is_empty() {
        println!("{}", failures.join("\n"));
        panic!("{} of {checked} rows differ", failures.len());
    }
}
