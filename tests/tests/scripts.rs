//! Scripts as applications bring them along (tables, routines, triggers, calls), each run by psql
//! against PostgreSQL 15 and a new Archipel: what it prints must be the same, errors included.
//!
//! `tests/scripts/status` says of each whether it agrees. One that differs is something to mend; a
//! script that agrees or differs against its word fails the test. In `tests/run --long`; with
//! `ARCHIPEL_TEST_RECORD=1` the file is written anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use archipel_tests::postgres::Postgres;
use archipel_tests::server::Server;

/// What is shown of a difference.
const LINES_SHOWN: usize = 12;

fn psql(arguments: &[&str], folder: &Path) -> String {
    let output = Command::new("bash")
        .args(["-c", "exec psql -X -q \"$@\" 2>&1", "psql"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("psql can be run");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("the scripts are there");
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        paths
    };
    let folders = entries(folder).into_iter().filter(|path| path.is_dir());
    folders.flat_map(|folder| entries(&folder)).collect()
}

/// The first lines in which two outputs differ.
fn difference(expected: &str, got: &str) -> String {
    let (expected, got): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), got.lines().collect());
    let same = expected.iter().zip(&got).take_while(|(expected, got)| expected == got).count();
    let mut told = format!("from line {} on\n", same + 1);
    for (name, lines) in [("PostgreSQL", &expected), ("Archipel", &got)] {
        for line in lines.iter().skip(same).take(LINES_SHOWN) {
            let _ = writeln!(told, "{name}: {line}");
        }
    }
    told
}

#[test]
fn scripts_print_what_they_print_on_postgresql() {
    if !archipel_tests::long() {
        return archipel_tests::skipped("dozens of scripts, each on a new server");
    }
    let folder = archipel_tests::file("scripts");
    let postgres = Postgres::start();
    let maintenance = format!("postgresql://archipel@127.0.0.1:{}/postgres", postgres.port());
    let recording = std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1");
    let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
    let said: BTreeMap<&str, &str> = status.lines().filter_map(|line| line.split_once(' ')).collect();
    let (mut found, mut wrong) = (String::new(), Vec::new());
    for path in scripts(&folder) {
        let name = path.strip_prefix(&folder).expect("below it").with_extension("");
        let name = name.to_str().expect("a plain name");
        let (within, file) = (path.parent().expect("a folder"), path.file_name().expect("a name"));
        let run = |url: &str| psql(&["-a", "-f", file.to_str().expect("a plain name"), url], within);
        for definition in ["DROP DATABASE archipel WITH (FORCE)", "CREATE DATABASE archipel"] {
            assert_eq!(psql(&["-c", definition, &maintenance], within), "");
        }
        let expected = run(&postgres.url());
        let server = Server::start(&["archipel.executors=2"]);
        let got = run(&server.url());
        let is = if expected == got { "agrees" } else { "differs" };
        let _ = writeln!(found, "{name} {is}");
        match said.get(name) {
            Some(said) if *said == is => {}
            Some(&"differs") => wrong.push(format!("{name} agrees now: say so in its status")),
            Some(_) => wrong.push(format!("{name} differs {}", difference(&expected, &got))),
            None => wrong.push(format!("{name} {is}: say so in its status")),
        }
    }
    if recording {
        return std::fs::write(folder.join("status"), found).expect("the status can be written");
    }
    assert_eq!(said.len(), found.lines().count(), "the status names scripts that are not there");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
