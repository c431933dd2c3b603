//! What the pages at the top level name exists: links, headings, files, functions, tests, variables.
//!
//! A link whose text is code and which leads to a Rust file, as `` [`commit`](engine/src/txn/commit.rs) ``,
//! says that the file defines the name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::{all_sources, read, root};

const PAGES: [&str; 4] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"];

/// Words that begin so name files of ours.
const FOLDERS: [&str; 8] =
    ["deploy/", "engine/", "migrations/", "planner/", "procedures/", "server/", "sql/", "tests/"];

/// A link: its text, its file and the heading within that.
struct Link {
    text: String,
    file: String,
    heading: Option<String>,
}

fn page(name: &str) -> String {
    read(&root().join(name))
}

/// A page without its blocks of code.
fn prose(text: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The links of a page to what is in the tree.
fn links(text: &str) -> Vec<Link> {
    let prose = prose(text);
    let mut found = Vec::new();
    for (middle, _) in prose.match_indices("](") {
        let (Some(open), Some(close)) = (prose[..middle].rfind('['), prose[middle..].find(')')) else {
            continue;
        };
        let target = &prose[middle + 2..middle + close];
        if target.starts_with("http:") || target.starts_with("https:") {
            continue;
        }
        let (file, heading) = match target.split_once('#') {
            Some((file, heading)) => (file, Some(heading.to_owned())),
            None => (target, None),
        };
        found.push(Link { text: prose[open + 1..middle].to_owned(), file: file.to_owned(), heading });
    }
    found
}

/// The headings of a page, as links spell them.
fn headings(text: &str) -> BTreeSet<String> {
    let spelled = |heading: &str| -> String {
        let letters = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        letters.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    prose(text)
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| spelled(line.trim_start_matches('#')))
        .collect()
}

fn is_part_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a Rust file defines a name: an item, or a variant of an enum.
fn defines(source: &str, name: &str) -> bool {
    let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules!"];
    let is_item = |line: &str| {
        kinds.iter().any(|kind| {
            let item = format!("{kind} {name}");
            line.match_indices(&item).any(|(at, _)| {
                let (before, behind) = (&line[..at], &line[at + item.len()..]);
                !before.ends_with(is_part_of_a_name) && !behind.starts_with(is_part_of_a_name)
            })
        })
    };
    let is_variant = |line: &str| {
        let behind = line.trim_start().strip_prefix(name);
        behind.is_some_and(|behind| behind.starts_with(['(', ',']) || behind.starts_with(" {"))
            && name.starts_with(char::is_uppercase)
    };
    source.lines().any(|line| is_item(line) || is_variant(line))
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for name in PAGES {
        let text = page(name);
        for link in links(&text) {
            let file = if link.file.is_empty() { name } else { link.file.as_str() };
            if !root().join(file).exists() {
                wrong.push(format!("{name} links to {file}, which is not there"));
            } else if let Some(heading) = &link.heading
                && !headings(&page(file)).contains(heading)
            {
                wrong.push(format!("{name} links to {file}#{heading}, a heading that is not there"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_in_links_are_defined_where_they_lead() {
    let (mut wrong, mut named) = (Vec::new(), 0);
    for name in PAGES {
        for link in links(&page(name)).iter().filter(|link| link.file.ends_with(".rs")) {
            let code = link.text.trim().strip_prefix('`').and_then(|text| text.strip_suffix('`'));
            let Some(code) = code else { continue };
            named += 1;
            let last = code.rsplit("::").next().unwrap_or(code);
            let path = root().join(&link.file);
            if path.exists() && !defines(&read(&path), last) {
                wrong.push(format!("{name} says that {} defines {code}", link.file));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(named > 50, "the walks through the code name functions");
}

#[test]
fn files_named_in_the_pages_exist() {
    let (mut wrong, mut named) = (Vec::new(), 0);
    for name in PAGES {
        let text = page(name);
        let between =
            |c: char| c.is_whitespace() || matches!(c, '`' | '(' | ')' | '[' | ']' | ',' | '#' | '\'');
        for word in text.split(between) {
            let word = word.trim_end_matches(['.', ':', ';']);
            if word.contains('*') || !FOLDERS.iter().any(|folder| word.starts_with(folder)) {
                continue;
            }
            named += 1;
            if !root().join(word).exists() {
                wrong.push(format!("{name} names {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(named > 50, "the pages name the files a reader starts with");
}

#[test]
fn tests_named_in_the_pages_exist() {
    let sources = all_sources();
    let exists = |test: &str| {
        let file = format!("{test}.rs");
        let is_test = |path: &PathBuf| path.parent().is_some_and(|folder| folder.ends_with("tests"));
        sources.iter().any(|path| is_test(path) && path.file_name().is_some_and(|name| *name == *file))
    };
    for name in PAGES {
        let text = page(name);
        for (at, option) in text.match_indices("--test ") {
            let test = text[at + option.len()..].split(|c| !is_part_of_a_name(c)).next().unwrap_or_default();
            assert!(exists(test), "{name} names the test {test}");
        }
    }
}

#[test]
fn variables_named_in_the_pages_are_read() {
    let mine = |path: &Path| path.components().any(|part| part.as_os_str() == "tidy");
    let sources: Vec<String> =
        all_sources().iter().filter(|path| !mine(path)).map(|path| read(path)).collect();
    for name in PAGES {
        let text = page(name);
        for word in text.split(|c| !is_part_of_a_name(c)).filter(|word| word.starts_with("ARCHIPEL_")) {
            // `ARCHIPEL_*` is any of them.
            if word.ends_with('_') {
                continue;
            }
            let quoted = format!("\"{word}\"");
            assert!(sources.iter().any(|source| source.contains(&quoted)), "{name} names {word}");
        }
    }
}

/// A reader has the tree and nothing else.
#[test]
fn nothing_cites_a_page_that_is_not_in_the_tree() {
    let mut wrong = Vec::new();
    let pages = PAGES.iter().map(|name| root().join(name));
    for path in all_sources().into_iter().chain(pages) {
        if path.components().any(|part| part.as_os_str() == "tidy") {
            continue;
        }
        let text = read(&path);
        let between = |c: char| !is_part_of_a_name(c) && !matches!(c, '.' | '/' | '-');
        for word in text.split(between) {
            let word = word.trim_end_matches('.').trim_start_matches('/');
            let beside = path.parent().map(|folder| folder.join(word));
            let is_here = || root().join(word).exists() || beside.is_some_and(|beside| beside.exists());
            if word.len() > 3 && word.ends_with(".md") && !is_here() {
                wrong.push(format!("{} cites {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
