//! House rules as ordinary tests: what a reviewer would otherwise say again and again.
//!
//! - this file       files, words, walls between crates
//! - [`claims`]      each claim of `tests/security_claims` has a test that is there
//! - [`circles`]     files that use one another in a circle, which may only get fewer
//! - [`dependencies`] what Cargo.toml names is used
//! - [`figures`]     what may only fall: public items without a docstring, long functions
//! - [`names`]       nobody knows a built-in function by its name
//! - [`pages`]       what the pages at the top level name exists

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/claims.rs"]
mod claims;
#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/figures.rs"]
mod figures;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/pages.rs"]
mod pages;

/// Lines a file may have before it holds more than one idea.
const FILE_LINES_MAX: usize = 700;

/// Sources a folder of product code may have before it gets folders of its own.
const FOLDER_FILES_MAX: usize = 25;

fn root() -> PathBuf {
    archipel_tests::file("..")
}

fn sources(folder: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                if !path.ends_with("target") {
                    walk(&path, found);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    assert!(!found.is_empty(), "{folder} has no sources");
    found
}

fn all_sources() -> Vec<PathBuf> {
    ["engine", "sql", "planner", "procedures", "migrations", "server", "tests"]
        .into_iter()
        .flat_map(sources)
        .collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("sources are UTF-8")
}

/// The part of a file that ships: what stands above its test module.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

/// Whether a file is compiled for tests only: tests, models and the simulation beside the code.
fn is_for_tests(path: &Path) -> bool {
    path.ends_with("tests.rs")
        || path.components().any(|part| matches!(part.as_os_str().to_str(), Some("simulation" | "models")))
}

#[test]
fn files_hold_one_idea() {
    let long: Vec<String> = all_sources()
        .iter()
        .map(|path| (read(path).lines().count(), path))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, path)| format!("{} has {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn folders_hold_one_topic() {
    let mut files: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for path in all_sources() {
        let inside = path.strip_prefix(root()).unwrap_or(&path);
        let is_product = inside.components().any(|part| part.as_os_str() == "src");
        if let Some(folder) = path.parent().filter(|_| is_product) {
            *files.entry(folder.to_owned()).or_default() += 1;
        }
    }
    let full: Vec<String> = files
        .iter()
        .filter(|(_, files)| **files > FOLDER_FILES_MAX)
        .map(|(folder, files)| format!("{} has {files} files", folder.display()))
        .collect();
    assert!(full.is_empty(), "{}", full.join("\n"));
}

#[test]
fn nothing_ships_unfinished() {
    let words = ["todo!(", "unimplemented!(", "dbg!("];
    let found: Vec<String> = all_sources()
        .iter()
        .filter(|path| !path.ends_with("tidy.rs"))
        .flat_map(|path| {
            let text = read(path);
            words
                .iter()
                .filter(|word| text.contains(**word))
                .map(|word| format!("{}: {word}", path.display()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_unsafe_says_why_it_is_safe() {
    let mut found = Vec::new();
    for path in all_sources() {
        if path.ends_with("tidy.rs") {
            continue;
        }
        let text = read(&path);
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let opens =
                code.contains("unsafe {") || code.starts_with("unsafe impl") || code.contains("unsafe fn");
            if !opens || code.starts_with("//") {
                continue;
            }
            // The argument stands in the comment just above (or in the docstring of an unsafe fn).
            let above = lines[number.saturating_sub(8)..=number].iter();
            if !above.into_iter().any(|line| line.contains("SAFETY") || line.contains("# Safety")) {
                found.push(format!("{}:{}: {code}", path.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The deep core runs under the simulator: it reads no clock, draws no random number and starts
/// no thread but through the traits made for that.
#[test]
fn the_engine_is_deterministic() {
    let banned = [
        ("Instant::now", "clock.rs"),
        ("SystemTime::now", "clock.rs"),
        ("thread::spawn", "spawn.rs"),
        ("thread::Builder", "spawn.rs"),
        ("tokio::", ""),
        ("rand::", "random.rs"),
    ];
    let mut found = Vec::new();
    for path in sources("engine/src") {
        let text = read(&path);
        for (word, home) in banned {
            if shipped(&text).lines().any(|line| line.contains(word) && !line.trim_start().starts_with("//"))
                && (home.is_empty() || !path.ends_with(home))
                && !is_for_tests(&path)
            {
                found.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn crates_know_only_what_lies_below_them() {
    let rules = [
        ("engine/src", &["archipel_sql", "archipel_planner", "archipel_procedures", "sqlparser"][..]),
        ("sql/src", &["archipel_engine", "archipel_planner", "archipel_procedures"]),
        (
            "sql/types/src",
            &["archipel_syntax::", "archipel_catalog::", "archipel_sql::", "archipel_engine::"],
        ),
        ("sql/syntax/src", &["archipel_catalog", "archipel_sql", "archipel_engine"]),
        ("sql/catalog/src", &["archipel_sql", "archipel_engine"]),
        ("planner/src", &["archipel_procedures", "datafusion::"]),
        ("planner/row/src", &["archipel_binder", "archipel_planner"]),
        (
            "planner/binder/src",
            &["archipel_engine", "archipel_executor", "archipel_definitions", "archipel_planner"],
        ),
        ("planner/executor/src", &["archipel_definitions", "archipel_planner", "datafusion::"]),
        // The running half knows no compiler.
        ("planner/executor/src/native/run", &["native::plan", "CompileEnv"]),
        ("planner/definitions/src", &["archipel_executor", "archipel_planner"]),
        ("server/wire/src", &["archipel_engine", "archipel_planner", "archipel_procedures"]),
        ("server/workload/src", &["archipel_planner", "archipel_procedures", "archipel_sql"]),
        ("procedures", &["datafusion::", "tokio::"]),
    ];
    // Tests in files of their own may know more.
    let is_shipped =
        |path: &PathBuf| !path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
    for (folder, banned) in rules {
        for path in sources(folder).into_iter().filter(is_shipped) {
            let text = read(&path);
            for word in banned {
                let used = shipped(&text)
                    .lines()
                    .any(|line| line.contains(word) && !line.trim_start().starts_with("//"));
                assert!(!used, "{} uses {word}", path.display());
            }
        }
    }
}

#[test]
fn the_top_level_is_the_plan() {
    let output = std::process::Command::new("git")
        .args(["ls-tree", "--name-only", "HEAD"])
        .current_dir(root())
        .output()
        .expect("git is there");
    let planned = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Cargo.toml",
        "Cargo.lock",
        "LICENSE",
        "README.md",
        "rustfmt.toml",
        "deploy",
        "engine",
        "migrations",
        "planner",
        "procedures",
        "server",
        "sql",
        "tests",
    ];
    for name in String::from_utf8_lossy(&output.stdout).lines() {
        assert!(name.starts_with('.') || planned.contains(&name), "{name} is not part of the plan");
    }
}
