//! Circles of files within a crate: files that use one another, directly or through others, so that none
//! of them can be read by itself.
//!
//! Who uses whom is read from the sources as text: `use` lines, and paths within the code. Methods count
//! for nothing, and neither does a re-export: what is reached through it counts as a use of the file that
//! defines it. `tests/circles` holds the size of the largest circle of each crate, which may only fall, as
//! [`figures`](super::figures) do; `ARCHIPEL_TEST_RECORD=1` writes down what has fallen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use crate::figures::{CRATES, holds_tests};
use crate::{is_for_tests, read, root, shipped, sources};

/// Files that may use one another, and why: the crate, its files, the reason.
const EXCEPTIONS: [(&str, &[&str], &str); 5] = [
    ("sql/types", &["datum.rs", "record.rs"], "a value may be a record, which holds values"),
    (
        "sql/types",
        &["io/mod.rs", "io/array.rs", "io/record.rs"],
        "the text of an array or a record is made of the texts of any values",
    ),
    (
        "sql/types",
        &["function/registry.rs", "function/tables.rs", "function/variadic.rs"],
        "calls with VARIADIC look up the function that they are calls of",
    ),
    (
        "sql/syntax",
        &["ast/ddl.rs", "ast/statement.rs", "ast/utility.rs"],
        "EXPLAIN, PREPARE and CREATE SCHEMA hold statements",
    ),
    (
        "planner/binder",
        &["bound.rs", "bound/aggregate.rs", "bound/domain.rs", "bound/inheritance.rs"],
        "expressions hold queries, which hold expressions",
    ),
];

/// A word of a source, `::`, or one other character.
fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let length = match bytes[at] {
            b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            b'"' => string_length(rest),
            b'\'' => quoted_length(rest),
            byte if is_word(byte) => {
                let length = bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
                let word = &rest[..length];
                let raw = rest[length..].trim_start_matches('#');
                if matches!(word, "r" | "br") && raw.starts_with('"') {
                    let hashes = rest.len() - length - raw.len();
                    let end = format!("\"{}", "#".repeat(hashes));
                    let start = length + hashes + 1;
                    rest[start..].find(&end).map_or(rest.len(), |found| start + found + end.len())
                } else {
                    found.push(word);
                    length
                }
            }
            b':' if rest.starts_with("::") => {
                found.push("::");
                2
            }
            byte if byte.is_ascii_whitespace() => 1,
            _ => {
                found.push(&rest[..1]);
                1
            }
        };
        at += length;
    }
    found
}

/// The length of a string literal that a text begins with.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character, or of the quote of a lifetime.
fn quoted_length(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 3)
        }
        Some(_) => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// What a `use` brings in: the path, and the name it has here; `*` for all that a module has.
struct Import {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

/// A file as a module.
#[derive(Default)]
struct Module {
    file: String,
    path: Vec<String>,
    /// What is defined in it.
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths in its code, those of one name among them.
    named: BTreeSet<Vec<String>>,
}

/// Reads the tree behind `use`, which begins at `at`; answers where it ends.
fn use_tree(
    tokens: &[&str],
    mut at: usize,
    prefix: &[String],
    is_public: bool,
    found: &mut Vec<Import>,
) -> usize {
    let mut path = prefix.to_vec();
    while let Some(&token) = tokens.get(at) {
        match token {
            "::" => at += 1,
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = use_tree(tokens, at, &path, is_public, found);
                    if tokens.get(at) == Some(&",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "*" => {
                found.push(Import { path, name: "*".to_owned(), is_public });
                return at + 1;
            }
            "," | "}" | ";" => break,
            "as" => {
                let name = tokens.get(at + 1).copied().unwrap_or("_").to_owned();
                found.push(Import { path, name, is_public });
                return at + 2;
            }
            "self" if !path.is_empty() && !matches!(tokens.get(at + 1), Some(&"::")) => at += 1,
            word => {
                path.push(word.to_owned());
                at += 1;
            }
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    found.push(Import { path, name, is_public });
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Takes down what a source defines, imports and names.
fn look_at(text: &str, module: &mut Module) {
    const KINDS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
    let tokens = tokens(text);
    let (mut at, mut depth) = (0, 0_usize);
    while at < tokens.len() {
        let token = tokens[at];
        let before = at.checked_sub(1).map_or(";", |before| tokens[before]);
        match token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            "use" if matches!(before, ";" | "{" | "}" | "pub" | ")" | "]") => {
                let is_public = before == "pub" || before == ")";
                at = use_tree(&tokens, at + 1, &[], is_public, &mut module.imports);
                continue;
            }
            _ if is_name(token) && before != "." && before != "::" => {
                let is_macro = before == "!" && at >= 2 && tokens[at - 2] == "macro_rules";
                if depth == 0 && (is_macro || KINDS.contains(&before)) {
                    module.items.insert(token.to_owned());
                }
                // Who may see something uses nothing: `pub(in …)`.
                let is_scope = before == "in" && at >= 2 && tokens[at - 2] == "(";
                let mut path = vec![token.to_owned()];
                while tokens.get(at + 1) == Some(&"::")
                    && tokens.get(at + 2).is_some_and(|next| is_name(next))
                {
                    path.push(tokens[at + 2].to_owned());
                    at += 2;
                }
                if !is_scope {
                    module.named.insert(path);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The modules of a crate, by their paths.
type Modules = BTreeMap<Vec<String>, Module>;

fn modules(folder: &str) -> Modules {
    let folder = root().join(folder).join("src");
    let mut found = Modules::new();
    for path in sources(&folder.to_string_lossy()) {
        let inside = path.strip_prefix(&folder).unwrap_or(&path);
        if holds_tests(inside) || is_for_tests(&path) {
            continue;
        }
        let mut place: Vec<String> =
            inside.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if place.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
            place.pop();
        }
        let file = inside.to_string_lossy().into_owned();
        let mut module = Module { file, path: place.clone(), ..Module::default() };
        look_at(shipped(&read(&path)), &mut module);
        // A crate with a library and a program is known by its library.
        found.entry(place).or_insert(module);
    }
    found
}

/// The file that defines what a path names that stands in a module; `None` for other crates' items and for
/// modules themselves.
fn defining<'m>(modules: &'m Modules, from: &'m Module, path: &[String], depth: usize) -> Option<&'m Module> {
    // Re-exports may lead in circles, too.
    if depth > 8 {
        return None;
    }
    let mut current = from;
    let mut at = 0;
    match path.first()?.as_str() {
        "crate" => (current, at) = (modules.get(&[] as &[String])?, 1),
        "self" => at = 1,
        "super" => {
            while path.get(at).is_some_and(|part| part == "super") {
                let (_, above) = current.path.split_last()?;
                current = modules.get(above)?;
                at += 1;
            }
        }
        _ => {}
    }
    while let Some(name) = path.get(at) {
        let mut below = current.path.clone();
        below.push(name.clone());
        if let Some(child) = modules.get(&below) {
            // A function may have the name of its module.
            if at + 1 == path.len() && current.items.contains(name) {
                return Some(current);
            }
            current = child;
            at += 1;
            continue;
        }
        if current.items.contains(name) {
            return Some(current);
        }
        let rest = &path[at + 1..];
        let import = current.imports.iter().find(|import| import.name == *name);
        if let Some(import) = import {
            if import.path.first() == Some(name) && import.path.len() == 1 {
                return None;
            }
            let whole: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            return defining(modules, current, &whole, depth + 1);
        }
        let mut all = current.imports.iter().filter(|import| import.name == "*");
        return all.find_map(|import| {
            let whole: Vec<String> = import.path.iter().chain(&path[at..]).cloned().collect();
            defining(modules, current, &whole, depth + 1)
        });
    }
    None
}

/// Which files each file uses, by their names.
fn uses(modules: &Modules) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for module in modules.values() {
        let own = |import: &&Import| !import.is_public && import.name != "*";
        let imported = module.imports.iter().filter(own).map(|import| &import.path);
        let used = imported.chain(&module.named).filter_map(|path| defining(modules, module, path, 0));
        let others = used.map(|used| used.file.as_str()).filter(|file| *file != module.file);
        found.entry(&module.file).or_default().extend(others);
    }
    found
}

/// Everything that is reached from a file.
fn reached<'f>(uses: &BTreeMap<&'f str, BTreeSet<&'f str>>, from: &'f str) -> BTreeSet<&'f str> {
    let mut found = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for used in uses.get(file).into_iter().flatten() {
            if found.insert(*used) {
                next.push(used);
            }
        }
    }
    found
}

/// The files of the largest circle.
fn largest<'f>(uses: &BTreeMap<&'f str, BTreeSet<&'f str>>) -> Vec<&'f str> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|&file| (file, reached(uses, file))).collect();
    let circle = |file: &&'f str| -> Vec<&'f str> {
        let both = |other: &&&'f str| reached[*file].contains(**other) && reached[**other].contains(*file);
        uses.keys().filter(both).copied().collect()
    };
    uses.keys().map(circle).max_by_key(Vec::len).unwrap_or_default()
}

/// Takes out the uses among the files of an exception; answers whether there was a circle of them.
fn except<'f>(uses: &mut BTreeMap<&'f str, BTreeSet<&'f str>>, files: &[&str]) -> bool {
    let among: BTreeMap<&str, BTreeSet<&str>> = uses
        .iter()
        .filter(|(file, _)| files.contains(*file))
        .map(|(file, used)| (*file, used.iter().copied().filter(|used| files.contains(used)).collect()))
        .collect();
    let is_circle = largest(&among).len() == files.len();
    for (file, used) in uses.iter_mut() {
        if files.contains(file) {
            used.retain(|used| !files.contains(used));
        }
    }
    is_circle
}

fn recorded(path: &Path) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            line.split_once(' ').and_then(|(name, size)| Some((name.to_owned(), size.parse().ok()?)))
        })
        .collect()
}

#[test]
fn circles_of_files_only_get_smaller() {
    let record = root().join("tests/circles");
    let recorded = recorded(&record);
    let recording = std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1");
    let mut text = "# Files of the largest circle of files that use one another, by crate; 0: there is none. None may\n\
                    # rise; ARCHIPEL_TEST_RECORD=1 writes down what has fallen. See tests/tests/tidy/circles.rs.\n"
        .to_owned();
    let mut wrong = String::new();
    for name in CRATES {
        let modules = modules(name);
        let mut uses = uses(&modules);
        for (_, files, why) in EXCEPTIONS.iter().filter(|(of, ..)| *of == name) {
            if !except(&mut uses, files) {
                // Writing to a String cannot fail.
                let _ = writeln!(wrong, "{name}: {files:?} are no circle any more: no exception ({why})");
            }
        }
        let circle = largest(&uses);
        let size = circle.len();
        let _ = match recorded.get(name).copied() {
            Some(before) if size > before => {
                let files = circle.join("\n  ");
                writeln!(wrong, "{name}: a circle of {size} files, tests/circles says {before}:\n  {files}")
            }
            Some(before) if size == before || recording => Ok(()),
            None if recording => Ok(()),
            _ => writeln!(
                wrong,
                "{name}: a circle of {size} files now: update the record (ARCHIPEL_TEST_RECORD=1)"
            ),
        };
        let _ = writeln!(text, "{name} {size}");
    }
    assert!(wrong.is_empty(), "{wrong}");
    if recording {
        std::fs::write(&record, text).expect("the record can be written");
    }
}

#[test]
fn paths_are_found_in_sources() {
    let mut module = Module::default();
    look_at(
        "use super::{a::B, c::*, d as e};\npub use f::G;\nfn h<'t>(x: &'t str) { i::j('\"', \"k::l\"); } // m::n",
        &mut module,
    );
    let imports: Vec<(String, &str, bool)> = module
        .imports
        .iter()
        .map(|import| (import.path.join("::"), import.name.as_str(), import.is_public))
        .collect();
    let expected = [
        ("super::a::B", "B", false),
        ("super::c", "*", false),
        ("super::d", "e", false),
        ("f::G", "G", true),
    ];
    let expected = expected.map(|(path, name, is_public)| (path.to_owned(), name, is_public));
    assert_eq!(imports, expected);
    assert!(module.items.contains("h") && module.items.len() == 1);
    assert!(module.named.contains(&vec!["i".to_owned(), "j".to_owned()]));
    assert!(!module.named.iter().any(|path| path[0] == "k" || path[0] == "m"));
}
