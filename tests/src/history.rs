//! Histories of transactions, and the checker that judges them: porcupine
//! (`tests/isolation/checker`), which nobody here wrote.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// One thing a transaction did.
#[derive(Clone, Debug)]
pub enum Did {
    /// It saw this value of a key.
    Read(usize, String),
    Wrote(usize, String),
    Appended(usize, String),
}

/// One transaction, or one half of one: what it did at a single moment between two others.
#[derive(Clone, Debug)]
pub struct Operation {
    pub client: usize,
    pub call: u64,
    /// `None`: nobody was told whether it happened.
    pub returned: Option<u64>,
    pub did: Vec<Did>,
}

/// What all clients of a test did.
pub struct History {
    begun: Instant,
    operations: Mutex<Vec<Operation>>,
}

impl Default for History {
    fn default() -> History {
        History { begun: Instant::now(), operations: Mutex::default() }
    }
}

impl History {
    /// Nanoseconds since the history began.
    pub fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    pub fn add(&self, operation: Operation) {
        self.operations.lock().expect("no client panicked").push(operation);
    }

    pub fn len(&self) -> usize {
        self.operations.lock().expect("no client panicked").len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nobody was told whether some operations happened; what all keys became tells. A list shows
    /// an append and what it was made to; a value that nobody saw need not have been written.
    pub fn resolve(&self, last: &[String]) {
        let mut operations = self.operations.lock().expect("no client panicked");
        let seen: HashSet<(usize, String)> = operations
            .iter()
            .flat_map(|operation| &operation.did)
            .filter_map(|did| match did {
                Did::Read(key, value) => Some((*key, value.clone())),
                _ => None,
            })
            .chain(last.iter().cloned().enumerate())
            .collect();
        operations.retain_mut(|operation| {
            if operation.returned.is_some() {
                return true;
            }
            match operation.did.first().cloned() {
                Some(Did::Appended(key, item)) => {
                    let items: Vec<&str> = last[key].split(',').collect();
                    let Some(place) = items.iter().position(|other| *other == item) else { return false };
                    operation.did.insert(0, Did::Read(key, items[..place].join(",")));
                    true
                }
                Some(Did::Wrote(key, value)) => seen.contains(&(key, value)),
                _ => false,
            }
        });
    }

    /// Whether some order of the operations explains all that was read; `Err` tells what the
    /// checker says.
    pub fn check(&self) -> Result<String, String> {
        let mut text = String::new();
        for operation in self.operations.lock().expect("no client panicked").iter() {
            let did: Vec<String> = operation
                .did
                .iter()
                .map(|did| match did {
                    Did::Read(key, value) => format!("[\"r\",{key},\"{value}\"]"),
                    Did::Wrote(key, value) => format!("[\"w\",{key},\"{value}\"]"),
                    Did::Appended(key, value) => format!("[\"a\",{key},\"{value}\"]"),
                })
                .collect();
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{{\"client\":{},\"call\":{},\"return\":{},\"do\":[{}]}}",
                operation.client,
                operation.call,
                operation.returned.unwrap_or(i64::MAX as u64),
                did.join(",")
            );
        }
        let mut checker = Command::new(checker())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the checker can be run");
        checker.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads its history");
        let output = checker.wait_with_output().expect("the checker ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(said) } else { Err(said) }
    }
}

/// The checker, built by its script unless that is done.
fn checker() -> PathBuf {
    let output = Command::new(crate::file("isolation/checker/prepare"))
        .stderr(Stdio::inherit())
        .output()
        .expect("the script can be run");
    assert!(output.status.success(), "tests/isolation/checker/prepare: {}", output.status);
    PathBuf::from(String::from_utf8(output.stdout).expect("a path is printed").trim())
}
