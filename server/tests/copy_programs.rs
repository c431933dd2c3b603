//! COPY from and to programs and files of the server: they end with the statement, however that ends, and hold
//! up nobody.

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Server, kinds};

/// How often it is looked whether something has come about, which must not take long.
const LOOKS: usize = 3_000;

fn comes_about(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what} does not come about");
}

/// The process id that a program has written down.
fn written_id(path: &Path) -> u32 {
    let read = || std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    let mut id = None;
    comes_about("a program", || {
        id = read();
        id.is_some()
    });
    id.expect("it has come about")
}

/// Whether a process runs. One that has ended may stay until somebody asks how.
fn runs(process: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// A program that waits for a child of its own, both of which write their ids down.
fn hanging(directory: &Path) -> (String, PathBuf, PathBuf) {
    let (outer, inner) = (directory.join("outer"), directory.join("inner"));
    let (first, second) = (outer.display(), inner.display());
    let command = format!("echo $$ > {first}; (sh -c ''echo $$ > {second}; exec sleep 1000''); true");
    (command, outer, inner)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_hangs_is_cancelled_with_all_that_it_started() {
    let server = Server::start(&[]);
    let (client, other) = (server.client().await, server.client().await);
    client
        .batch_execute("CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 200000)")
        .await
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    for direction in ["t FROM", "t TO"] {
        let (command, outer, inner) = hanging(directory.path());
        let text = format!("COPY {direction} PROGRAM '{command}'");
        let cancel = client.cancel_token();
        let copied = async { client.batch_execute(&text).await.expect_err("it was cancelled") };
        let cancelled = async {
            let ids = tokio::task::spawn_blocking({
                let (outer, inner) = (outer.clone(), inner.clone());
                move || (written_id(&outer), written_id(&inner))
            });
            let ids = ids.await.unwrap();
            // Others are served meanwhile.
            other.batch_execute("SELECT count(*) FROM t").await.unwrap();
            cancel.cancel_query(tokio_postgres::NoTls).await.unwrap();
            ids
        };
        let (error, (shell, sleep)) = tokio::join!(copied, cancelled);
        assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{direction}");
        comes_about("the end of the programs", || !runs(shell) && !runs(sleep));
        std::fs::remove_file(outer).unwrap();
        std::fs::remove_file(inner).unwrap();
        client.batch_execute("SELECT 1").await.unwrap();
    }
}

#[test]
fn a_program_ends_with_a_session_that_has_gone() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a int)");
    let directory = tempfile::tempdir().unwrap();
    let (command, outer, inner) = hanging(directory.path());
    raw.send(b'Q', format!("COPY t FROM PROGRAM '{command}'\0").as_bytes());
    let (shell, sleep) = (written_id(&outer), written_id(&inner));
    drop(raw);
    comes_about("the end of the programs", || !runs(shell) && !runs(sleep));
}

/// An endless program ends where the data does, and where they are wrong.
#[test]
fn a_program_is_read_no_further_than_is_needed() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a int)");
    let taken = raw.query("COPY t FROM PROGRAM 'printf \"1\\n\\\\.\\n\"; yes'");
    assert_eq!(kinds(&taken), "CZ");
    let refused = raw.query("COPY t FROM PROGRAM 'yes'");
    assert_eq!(common::state(&refused).as_deref(), Some("22P02"));
    assert_eq!(common::field(&refused, b'W').as_deref(), Some("COPY t, line 1, column a: \"y\""));
}

#[test]
fn how_a_program_ended_is_told() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a int)");
    for (command, detail) in [
        ("exit 3", "child process exited with exit code 3"),
        ("kill -9 $$", "child process was terminated by signal 9: Killed"),
        ("/nonexistent/program", "command not found"),
        ("/etc/passwd", "command not executable"),
    ] {
        for direction in ["FROM", "TO"] {
            let answer = raw.query(&format!("COPY t {direction} PROGRAM '{command}'"));
            assert_eq!(common::state(&answer).as_deref(), Some("38000"), "{command}");
            assert_eq!(common::field(&answer, b'M'), Some(format!("program \"{command}\" failed")));
            assert_eq!(common::field(&answer, b'D').as_deref(), Some(detail));
        }
    }
}

/// Rows that leave in portions, of a query that reads a table whole and of one that does not.
#[test]
fn large_results_go_to_files_as_they_come() {
    let server = Server::start(&["max_memory=256MB"]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (id int PRIMARY KEY, v int)");
    raw.query("INSERT INTO t SELECT g, 1 FROM generate_series(1, 5000) g");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    for (query, rows) in [
        (
            "SELECT t.id, repeat('x', 10000) FROM t, generate_series(1, 6) n WHERE t.id BETWEEN 1 AND 5000",
            30_000_u64,
        ),
        ("SELECT t.id, repeat('x', 700) FROM t, generate_series(1, 80) n", 400_000),
    ] {
        let answer = raw.query(&format!("COPY ({query}) TO '{}'", path.display()));
        assert_eq!(common::told(&answer), [format!("COPY {rows}")]);
        let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        assert_eq!(std::io::BufRead::lines(file).count() as u64, rows);
    }
    raw.query("CREATE TABLE back (id int, v text)");
    raw.query(&format!("COPY (SELECT id, v::text FROM t ORDER BY id) TO '{}' BINARY", path.display()));
    let answer = raw.query(&format!("COPY back FROM '{}' BINARY", path.display()));
    assert_eq!(common::told(&answer), ["COPY 5000"]);
}

/// Lines without an end are refused before they have taken all the memory there is.
#[test]
fn a_line_without_an_end_leaves_the_server_as_it_was() {
    let server = Server::start(&["max_memory=256MB"]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a text)");
    for (source, state) in [
        ("'/dev/zero'", "22021"),
        ("PROGRAM 'tr ''\\0'' x < /dev/zero'", "53200"),
        (
            "PROGRAM 'printf ''PGCOPY\\n\\377\\r\\n\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\1\\77\\0\\0\\0''; cat /dev/zero' BINARY",
            "53200",
        ),
    ] {
        let answer = raw.query(&format!("COPY t FROM {source}"));
        assert_eq!(common::state(&answer).as_deref(), Some(state), "{source}");
    }
    let answer = raw.query("COPY t FROM ''");
    assert_eq!(common::state(&answer).as_deref(), Some("58P01"));
    assert_eq!(common::told(&raw.query("SELECT FROM t")), ["SELECT 0"]);
}
