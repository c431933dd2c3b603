//! Data directories that are no good: the server and `archipel check` refuse them with an exit
//! code and a message that say which way, and change nothing.

use std::path::{Path, PathBuf};
use std::process::Output;

use archipel_tests::port;
use archipel_tests::server::Server;

const IN_USE: i32 = 4;
const DAMAGED: i32 = 5;
const NEWER: i32 = 6;

/// A stopped server whose rows are partly in the checkpoint and partly in the log alone.
fn filled() -> Server {
    let mut server = Server::start(&[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let client = server.connect().await;
        let fill = "CREATE TABLE t (id int PRIMARY KEY, kind int, note text);
                    CREATE INDEX t_kind ON t (kind);
                    INSERT INTO t SELECT g, g % 7, repeat('checkpoint ', 40) FROM generate_series(1, 5000) AS g;
                    CHECKPOINT";
        client.batch_execute(fill).await.expect("the table is filled");
        for batch in 1..=50 {
            let low = 10_000 + batch * 100;
            let insert = format!(
                "INSERT INTO t SELECT g, g % 7, repeat('log ', 100) FROM generate_series({low}, {low} + 59) AS g"
            );
            client.batch_execute(&insert).await.expect("rows go in");
        }
    });
    server.kill();
    server
}

fn serve(server: &Server) -> Output {
    let mut command = server.command(port::free());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.output().expect("the binary can be run")
}

fn check(directory: &Path) -> Output {
    Server::archipel(&["check", "--data-dir", directory.to_str().expect("temporary paths are UTF-8")])
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Both refuse, with this exit code and words.
fn refused(server: &Server, code: i32, words: &str) {
    for output in [serve(server), check(&server.data_directory())] {
        let told = told(&output);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(words), "\"{words}\" is not in:\n{told}");
    }
}

/// The largest file of a database with this ending.
fn largest(directory: &Path, ending: &str) -> PathBuf {
    std::fs::read_dir(directory)
        .expect("the database is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == ending))
        .max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()))
        .expect("it has such a file")
}

/// Flips one bit where `needle` is found for the `nth` time, or at `nth` bytes.
fn flip(path: &Path, find: impl Fn(&[u8]) -> usize) {
    let mut bytes = std::fs::read(path).expect("readable");
    let at = find(&bytes);
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).expect("writable");
}

#[test]
fn a_good_directory_passes_and_the_report_names_its_tables() {
    let server = filled();
    let output = check(&server.data_directory());
    let told = told(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    for line in ["table public.t: 8000 rows", "index t_kind: 8000 entries", "the data directory is good"] {
        assert!(told.contains(line), "\"{line}\" is not in:\n{told}");
    }
}

#[test]
fn a_flipped_bit_in_the_log_is_refused() {
    let server = filled();
    let log = largest(&server.data_directory().join("redo"), "log");
    // In the first batch of rows after the checkpoint: whole batches follow.
    flip(&log, |bytes| {
        let rows: Vec<usize> = bytes
            .windows(16)
            .enumerate()
            .filter(|(_, w)| *w == b"log log log log ")
            .map(|(at, _)| at)
            .collect();
        rows[rows.len() / 4]
    });
    refused(&server, DAMAGED, "the data directory is damaged");
}

#[test]
fn a_flipped_bit_in_the_checkpoint_is_refused() {
    let server = filled();
    flip(&largest(&server.data_directory().join("checkpoint"), "sst"), |bytes| bytes.len() / 4);
    let output = serve(&server);
    assert_eq!(output.status.code(), Some(DAMAGED), "{}", told(&output));
    let output = check(&server.data_directory());
    assert_eq!(output.status.code(), Some(DAMAGED), "{}", told(&output));
    assert!(told(&output).contains("checkpoint"), "{}", told(&output));
}

/// A transaction of 40 MB, whose parts are in files of their own by the time the server is killed.
#[test]
fn a_flipped_bit_in_a_part_is_refused_by_name_and_a_reset_ends_the_log_before_it() {
    let mut server = filled();
    server.restart();
    let redo = server.data_directory().join("redo");
    let part = |bytes: &[u8]| {
        let words = b"part part part part ";
        bytes.windows(words.len()).position(|window| window == words)
    };
    let tables = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&redo).expect("the log is there");
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let tables = paths.filter(|path| path.extension().is_some_and(|ending| ending == "sst"));
        tables.filter(|path| std::fs::read(path).is_ok_and(|bytes| part(&bytes).is_some())).collect()
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let client = server.connect().await;
        let long =
            "INSERT INTO t SELECT g, 0, repeat('part ', 200) FROM generate_series(100001, 140000) AS g";
        client.batch_execute(long).await.expect("it is written");
        client.batch_execute("INSERT INTO t VALUES (200000, 0, 'behind it')").await.expect("written");
        let begin = std::time::Instant::now();
        while tables().is_empty() {
            assert!(begin.elapsed().as_secs() < 300, "its parts are not moved to files of their own");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    server.kill();
    let output = check(&server.data_directory());
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("parts of large transactions"), "{}", told(&output));
    let table = tables().pop().expect("looked at above");
    flip(&table, |bytes| part(bytes).expect("looked at above"));
    for output in [serve(&server), check(&server.data_directory())] {
        let told = told(&output);
        assert_eq!(output.status.code(), Some(DAMAGED), "{told}");
        assert!(told.contains(" of a transaction cannot be read: "), "{told}");
        assert!(told.contains("archipel reset-log"), "{told}");
    }
    let data = server.data_directory();
    let reset = ["reset-log", "--data-dir", data.to_str().expect("temporary paths are UTF-8")];
    let output = Server::archipel(&reset);
    assert!(output.status.success() && told(&output).contains("are lost"), "{}", told(&output));
    server.restart();
    let counted = runtime.block_on(async {
        let client = server.connect().await;
        client.batch_execute("INSERT INTO t VALUES (300000, 0, 'goes on')").await.expect("written");
        client.query_one("SELECT count(*), max(id) FROM t", &[]).await.expect("answered")
    });
    assert_eq!((counted.get::<_, i64>(0), counted.get::<_, i32>(1)), (8_001, 300_000));
}

#[test]
fn a_missing_file_is_refused_and_never_replaced_by_an_empty_database() {
    for name in ["checkpoint/CURRENT", "redo/CURRENT"] {
        let server = filled();
        std::fs::remove_file(server.data_directory().join(name)).expect("it was there");
        refused(&server, DAMAGED, "CURRENT is missing");
    }
    let server = filled();
    let table = largest(&server.data_directory().join("checkpoint"), "sst");
    std::fs::remove_file(&table).expect("it was there");
    refused(&server, DAMAGED, table.file_name().and_then(|name| name.to_str()).expect("a number"));
}

#[test]
fn a_newer_format_is_refused() {
    let server = filled();
    std::fs::write(server.data_directory().join("FORMAT"), "99\n").expect("writable");
    refused(&server, NEWER, "the data directory has format 99");
}

#[test]
fn a_format_that_never_was_is_refused() {
    let server = filled();
    for mark in ["", "0\n", "-1\n", "two\n", "99999999999\n"] {
        std::fs::write(server.data_directory().join("FORMAT"), mark).expect("writable");
        refused(&server, DAMAGED, "FORMAT holds");
    }
}

#[test]
fn a_directory_in_use_is_refused() {
    let mut server = filled();
    server.restart();
    let output = check(&server.data_directory());
    assert_eq!(output.status.code(), Some(IN_USE), "{}", told(&output));
    assert!(told(&output).contains("is in use by another server (process"), "{}", told(&output));
}

/// Jobs that tidy up delete files that look like locks; a second server would write beside the first.
#[test]
fn a_directory_in_use_whose_lock_files_have_gone_is_refused() {
    let mut server = filled();
    server.restart();
    let data = server.data_directory();
    for file in ["archipel.lock", "redo/LOCK", "checkpoint/LOCK"] {
        std::fs::remove_file(data.join(file)).expect("it was there");
    }
    refused(&server, IN_USE, "is in use by another server");
}

#[test]
fn what_is_no_data_directory_is_told_and_left_alone() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let output = check(directory.path());
    assert_eq!(output.status.code(), Some(DAMAGED), "{}", told(&output));
    assert_eq!(std::fs::read_dir(directory.path()).expect("still there").count(), 0, "nothing is made there");
    let output = check(&directory.path().join("nowhere"));
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
}

/// What a start would stumble over is told by a check, too, and both go on when it is put right.
#[test]
fn what_stands_in_the_way_of_a_start_is_refused_by_a_check() {
    let server = filled();
    let directory = server.data_directory();
    for (name, is_folder) in [("sorted", false), ("redo/LOCK", true), ("checkpoint/LOCK", true)] {
        let path = directory.join(name);
        let aside = directory.join("aside");
        std::fs::rename(&path, &aside).expect("a start has made it");
        if is_folder {
            std::fs::create_dir(&path).expect("a folder can be made");
        } else {
            std::fs::write(&path, "").expect("a file can be made");
        }
        refused(&server, DAMAGED, name);
        if is_folder {
            std::fs::remove_dir(&path).expect("it is empty");
        } else {
            std::fs::remove_file(&path).expect("it is there");
        }
        std::fs::rename(&aside, &path).expect("back in its place");
        let output = check(&directory);
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    }
}
