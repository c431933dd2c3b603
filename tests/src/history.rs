//! Histories of transactions, and the checker that judges them: porcupine
//! (`tests/isolation/checker`), which nobody here wrote.

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
