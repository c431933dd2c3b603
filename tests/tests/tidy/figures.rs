//! Figures that may only fall, by crate: public items without a docstring, and functions that are too
//! long to be read at once.
//!
//! `tests/figures` holds them. A greater one fails, and so does a smaller one, so that what was gained is
//! written down: `ARCHIPEL_TEST_RECORD=1` does that. One that rises for a reason, as when code moves from
//! crate to crate, is written by hand.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::{is_for_tests, read, root, shipped, sources};

/// The lines of a function that is still read at once.
const FUNCTION_LINES_MAX: usize = 70;

pub(super) const CRATES: [&str; 18] = [
    "engine",
    "engine/rocksdb",
    "sql",
    "sql/types",
    "sql/syntax",
    "sql/catalog",
    "planner",
    "planner/row",
    "planner/binder",
    "planner/executor",
    "planner/definitions",
    "planner/analytics",
    "procedures",
    "migrations",
    "server",
    "server/wire",
    "server/workload",
    "tests",
];

/// Places in a crate's sources, as `file:line: what`.
#[derive(Default)]
struct Found {
    undocumented: Vec<String>,
    long: Vec<String>,
}

/// A line without the visibility and the words before `fn` and the like; and the last of those words.
fn declaration(line: &str) -> (&str, &str) {
    let mut rest = line.trim_start();
    if let Some((_, behind)) = rest.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")) {
        rest = behind;
    } else if let Some(behind) = rest.strip_prefix("pub ") {
        rest = behind;
    }
    let mut word = "";
    while let Some((first, behind)) = rest.split_once(' ')
        && ["const", "unsafe", "async"].contains(&first)
    {
        (word, rest) = (first, behind);
    }
    (rest, word)
}

/// Whether a line declares an item that other crates see, if its module is seen.
fn is_public_item(line: &str) -> bool {
    if !line.trim_start().starts_with("pub ") {
        return false;
    }
    let (rest, word) = declaration(line);
    let kinds = ["fn ", "struct ", "enum ", "trait ", "type ", "static "];
    word == "const" || kinds.iter().any(|kind| rest.starts_with(kind))
}

/// Whether a docstring stands above a line, attributes between them aside.
fn has_docstring(lines: &[&str], at: usize) -> bool {
    let above = lines[..at].iter().rev().map(|line| line.trim());
    let mut above = above.skip_while(|line| line.starts_with("#[") || line.ends_with(")]"));
    above.next().is_some_and(|line| line.starts_with("///"))
}

/// The name of the function that begins in a line, and goes on below it.
fn function_beginning(line: &str) -> Option<&str> {
    let (rest, _) = declaration(line);
    let name = rest.strip_prefix("fn ")?;
    if line.trim_end().ends_with([';', '}']) {
        return None;
    }
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The lines of a function from the one it begins in: up to the brace that stands where it does.
fn function_lines(lines: &[&str], at: usize) -> usize {
    let line = lines[at];
    let indent = &line[..line.len() - line.trim_start().len()];
    let ends = |line: &&str| match line.strip_prefix(indent) {
        Some(rest) => rest.trim_end() == "}" || rest.starts_with(')') && rest.trim_end().ends_with(';'),
        None => false,
    };
    lines[at..].iter().position(ends).map_or(lines.len() - at, |end| end + 1)
}

fn look_at(path: &Path, found: &mut Found) {
    let text = read(path);
    let lines: Vec<&str> = shipped(&text).lines().collect();
    let place = |at: usize| {
        let path = path.strip_prefix(root()).unwrap_or(path);
        format!("{}:{}", path.display(), at + 1)
    };
    for (at, line) in lines.iter().enumerate() {
        if is_public_item(line) && !has_docstring(&lines, at) {
            found.undocumented.push(format!("{}: {}", place(at), line.trim()));
        }
        if let Some(name) = function_beginning(line) {
            let count = function_lines(&lines, at);
            if count > FUNCTION_LINES_MAX {
                found.long.push(format!("{}: {name} has {count} lines", place(at)));
            }
        }
    }
}

/// Whether a file is one of tests, or in a folder of them, by its path in its crate.
pub(super) fn holds_tests(inside: &Path) -> bool {
    inside.components().any(|part| part.as_os_str() == "tests")
        || inside.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
}

fn look_at_crate(folder: &str) -> Found {
    let folder = format!("{folder}/src");
    let mut found = Found::default();
    for path in sources(&folder) {
        let inside = path.strip_prefix(root().join(&folder)).unwrap_or(&path);
        if !holds_tests(inside) && !is_for_tests(&path) {
            look_at(&path, &mut found);
        }
    }
    found
}

/// What is recorded: undocumented items and long functions, by crate.
fn recorded(text: &str) -> BTreeMap<String, [usize; 2]> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let figures = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        Some((name, [words.next()?.parse::<usize>().ok()?, words.next()?.parse::<usize>().ok()?]))
    });
    figures.collect()
}

#[test]
fn what_may_only_fall_falls() {
    let file = root().join("tests/figures");
    let recorded = recorded(&std::fs::read_to_string(&file).unwrap_or_default());
    let recording = std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1");
    let mut text = "# Public items without a docstring and functions of more than 70 lines, by crate. Neither may\n\
                    # rise; ARCHIPEL_TEST_RECORD=1 writes down what has fallen. See tests/tests/tidy/figures.rs.\n"
        .to_owned();
    let mut wrong = String::new();
    for name in CRATES {
        let found = look_at_crate(name);
        let kinds =
            [("public items without a docstring", &found.undocumented), ("long functions", &found.long)];
        let before = recorded.get(name).copied();
        for (at, (what, places)) in kinds.into_iter().enumerate() {
            let count = places.len();
            // Writing to a String cannot fail.
            let _ = match before.map(|before| before[at]) {
                Some(before) if count > before => {
                    writeln!(
                        wrong,
                        "{name}: {count} {what}, tests/figures says {before}:\n  {}",
                        places.join("\n  ")
                    )
                }
                Some(before) if count == before || recording => Ok(()),
                None if recording => Ok(()),
                _ => {
                    writeln!(wrong, "{name}: {count} {what} now: update the record (ARCHIPEL_TEST_RECORD=1)")
                }
            };
        }
        let _ = writeln!(text, "{name} {} {}", found.undocumented.len(), found.long.len());
    }
    assert!(wrong.is_empty(), "{wrong}");
    if recording {
        std::fs::write(&file, text).expect("the record can be written");
    }
}
