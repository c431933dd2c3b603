//! Who wants to know what a built-in function is asks the registry (`ScalarFunction::intrinsic`,
//! `AggregateFunction::aggregate`): a name has several overloads, and a function several names.
//!
//! What is told here is the text `function.name` (or the number `function.oid.0`) where it is compared. A
//! name that is handed to somebody who compares it is not seen.

use crate::{is_for_tests, read, shipped, sources};

/// Code without comments, with one space where it has several or a new line.
fn in_one_line(code: &str) -> String {
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// Whether what stands before and behind a name compares it with something.
fn is_compared(before: &str, behind: &str) -> bool {
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '&' | '*');
    let before = before.trim_end_matches(is_path);
    let asks = ["match ", "match (", "matches!(", "matches!( ", "matches!((", "contains(", "== ", "!= "];
    let answers = [" ==", " !=", ".starts_with(", ".ends_with(", ".strip_prefix(", ".strip_suffix("];
    asks.iter().any(|word| before.ends_with(word))
        || answers.iter().any(|word| behind.starts_with(word))
        || behind.starts_with(".contains(")
}

/// Where some code compares names of functions, by what stands there.
fn comparisons(code: &str) -> Vec<String> {
    let code = in_one_line(code);
    let mut found = Vec::new();
    for (at, word) in code.match_indices("function.name").chain(code.match_indices("function.oid.0")) {
        let (before, behind) = (&code[..at], &code[at + word.len()..]);
        // A function as it is written has a name of several parts, and some have a method for it.
        let is_other = behind.starts_with(['(', '_']) || behind.starts_with(".0");
        if !is_other && (word.ends_with(".0") || is_compared(before, behind)) {
            let behind: String = behind.chars().take(40).collect();
            found.push(format!("{word}{behind}"));
        }
    }
    found
}

#[test]
fn functions_are_not_known_by_name() {
    let mut found = Vec::new();
    for folder in ["planner", "procedures", "server"] {
        for path in sources(folder) {
            let is_product = path.components().any(|part| part.as_os_str() == "src");
            if !is_product || is_for_tests(&path) {
                continue;
            }
            let told = comparisons(shipped(&read(&path)));
            found.extend(told.into_iter().map(|told| format!("{}: {told}", path.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comparisons_of_names_are_seen() {
    for code in [
        "if function.name == \"int4pl\" {",
        "match function.function.name {",
        "matches!(\n    function.name,\n    \"a\" | \"b\"\n)",
        "!BESIDE.contains(&function.function.name)",
        "function.name.starts_with(\"json\")",
        "match function.oid.0 {",
    ] {
        assert_eq!(comparisons(code).len(), 1, "{code}");
    }
    for code in [
        "format!(\"{}({args})\", function.name)",
        "match function.name.0.last() {",
        "// function.name == \"int4pl\"",
        "let called = function.name();",
    ] {
        assert_eq!(comparisons(code).len(), 0, "{code}");
    }
}
