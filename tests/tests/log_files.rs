//! Accidents to the files of the log: one that is missing, cut, emptied or another one's. A start
//! and `archipel check` say the same of each: either every row is there, or they refuse with exit
//! code 5 and say what can be done.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use archipel_tests::port;
use archipel_tests::server::{Server, ask};

const DAMAGED: i32 = 5;
/// Longer than what comes after the last note of how far the log has come.
const NOTED_AFTER: Duration = Duration::from_millis(2_500);
const PATIENCE: Duration = Duration::from_secs(300);

fn run<T>(body: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime can be made").block_on(body)
}

/// A server with rows in a checkpoint, and more in several files of the log.
fn filled() -> Server {
    let server = Server::start(&[]);
    run(async {
        let client = server.connect().await;
        let make = "CREATE TABLE t (id int PRIMARY KEY, note text);
                    INSERT INTO t SELECT g, 'checkpoint' FROM generate_series(1, 100) AS g";
        client.batch_execute(make).await.expect("the table is filled");
        client.batch_execute("CHECKPOINT").await.expect("taken");
        // Beyond one write buffer, so that a second file begins; then batches of a few bytes.
        for low in (1_000..21_000).step_by(1_000) {
            let insert = format!(
                "INSERT INTO t SELECT g, repeat('redo', 250) FROM generate_series({low}, {low} + 999) AS g"
            );
            client.batch_execute(&insert).await.expect("rows go in");
        }
        for id in 30_000..30_050 {
            client.batch_execute(&format!("INSERT INTO t VALUES ({id}, 'late')")).await.expect("it goes in");
        }
    });
    server
}

const ROWS: &str = "20150";

/// The files that RocksDB logs in, oldest first.
fn files(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("redo")).expect("the log is there");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("known").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("copied");
        }
    }
}

/// Where the records of a log file begin (RocksDB, `db/log_format.h`).
fn records(bytes: &[u8]) -> Vec<usize> {
    const BLOCK: usize = 32 << 10;
    let mut found = Vec::new();
    for (number, block) in bytes.chunks(BLOCK).enumerate() {
        let mut at = 0;
        while let Some(header) = block.get(at..at + 11) {
            let (length, kind) = (usize::from(u16::from_le_bytes([header[4], header[5]])), header[6]);
            if kind == 0 && length == 0 {
                break;
            }
            if matches!(kind, 1 | 2 | 5 | 6) {
                found.push(number * BLOCK + at);
            }
            at += length + if matches!(kind, 5..=8 | 11 | 131) { 11 } else { 7 };
        }
    }
    found
}

fn check(data: &Path) -> (Option<i32>, String) {
    let output =
        Server::archipel(&["check", "--data-dir", data.to_str().expect("temporary paths are UTF-8")]);
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), told)
}

/// Starts on a directory: how many rows there are, or the exit code and what was said.
fn start(server: &mut Server, data: &Path) -> Result<String, (Option<i32>, String)> {
    server.move_to(data);
    let port = port::free();
    let mut child = server.command(port).spawn().expect("the binary can be run");
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be asked for its status") {
            return Err((status.code(), server.log()));
        }
        if server.log().contains("listening on") {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "it neither starts nor refuses:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    let url = format!("postgresql://archipel@127.0.0.1:{port}/archipel");
    let rows = run(async {
        let client = archipel_tests::server::connect(&url).await;
        ask(&client, "SELECT count(*) FROM t").await[0][0].clone()
    });
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");
    Ok(rows)
}

/// Both say the same of a copy of `data` to which `accident` happened; whether they refused.
fn agree(server: &mut Server, data: &Path, what: &str, accident: impl FnOnce(&Path)) -> bool {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let damaged = place.path().join("data");
    copy(data, &damaged);
    accident(&damaged);
    let (code, checked) = check(&damaged);
    match start(server, &damaged) {
        Ok(rows) => {
            assert_eq!(code, Some(0), "{what}: it starts, and check says:\n{checked}");
            assert_eq!(rows, ROWS, "{what}: it starts without its rows");
            false
        }
        Err((status, told)) => {
            assert_eq!(status, Some(DAMAGED), "{what}:\n{told}");
            assert_eq!(code, Some(DAMAGED), "{what}: it refuses ({told}), and check says:\n{checked}");
            true
        }
    }
}

/// Every file of the log missing, emptied, cut and put in place of another one.
fn every_accident(server: &mut Server) {
    let data = server.data_directory();
    let all = files(&data);
    assert!(all.len() > 1, "the log has one file only: {all:?}");
    let name = |path: &Path| PathBuf::from("redo").join(path.file_name().expect("a file has a name"));
    let newest = all.iter().rev().find(|path| !records(&fs::read(path).expect("readable")).is_empty());
    let newest = name(newest.expect("some batches are in no table file"));
    assert!(!agree(server, &data, "nothing", |_| {}));
    for path in &all {
        let (name, whole) = (name(path), fs::read(path).expect("readable"));
        let what = |how: &str| format!("{} {how}", name.display());
        let refused = agree(server, &data, &what("missing"), |data| {
            fs::remove_file(data.join(&name)).expect("it was there");
        });
        assert!(refused || name != newest, "the newest file is missed by nobody");
        let refused = agree(server, &data, &what("emptied"), |data| {
            fs::write(data.join(&name), "").expect("written");
        });
        assert!(refused || name != newest, "what was in the newest file is missed by nobody");
        let begins = records(&whole);
        // The last record may be a word about the store instead of a batch: then nothing is lost.
        for place in [begins.len() / 2, begins.len().saturating_sub(1)] {
            let Some(at) = begins.get(place) else { continue };
            for (how, to) in [("cut before", *at), ("cut in", at + 9)] {
                agree(server, &data, &what(&format!("{how} record {place} of {}", begins.len())), |data| {
                    fs::write(data.join(&name), &whole[..to]).expect("written");
                });
            }
        }
    }
    if name(&all[0]) == newest {
        return;
    }
    let swapped = agree(server, &data, "two files in each other's place", |data| {
        let (first, last) = (data.join(name(&all[0])), data.join(&newest));
        let aside = data.join("aside");
        fs::rename(&first, &aside).expect("renamed");
        fs::rename(&last, &first).expect("renamed");
        fs::rename(&aside, &last).expect("renamed");
    });
    assert!(swapped, "nobody misses what is in another file's place");
}

#[test]
fn after_a_stop_in_order_nothing_of_the_log_may_be_missing() {
    let mut server = filled();
    assert!(server.stop().success(), "{}", server.log());
    every_accident(&mut server);
}

#[test]
fn after_a_kill_nothing_may_be_missing_that_was_there_a_while_before() {
    let mut server = filled();
    std::thread::sleep(NOTED_AFTER);
    server.kill();
    every_accident(&mut server);
}

/// What is given up is lost; what is acknowledged from then on is not, though the checkpoint has
/// rows that were newer than what is left of the log.
#[test]
fn changes_after_a_reset_of_the_log_survive_the_next_kill() {
    let mut server = Server::start(&[]);
    run(async {
        let client = server.connect().await;
        let make = "CREATE TABLE t (id int PRIMARY KEY, n int);
                    INSERT INTO t SELECT g, 0 FROM generate_series(1, 50) AS g";
        client.batch_execute(make).await.expect("the table is filled");
        for _ in 0..50 {
            client.batch_execute("UPDATE t SET n = n + 1").await.expect("changed");
        }
        client.batch_execute("CHECKPOINT").await.expect("taken");
        client.batch_execute("UPDATE t SET n = -1 WHERE id > 40").await.expect("changed");
    });
    std::thread::sleep(NOTED_AFTER);
    server.kill();
    let data = server.data_directory();
    for path in files(&data) {
        fs::remove_file(path).expect("it was there");
    }
    let (code, told) = check(&data);
    assert_eq!(code, Some(DAMAGED), "{told}");
    assert!(told.contains("archipel reset-log"), "{told}");
    let reset = ["reset-log", "--data-dir", data.to_str().expect("temporary paths are UTF-8")];
    let output = Server::archipel(&reset);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && told.contains("are lost"), "{output:?}");
    assert_eq!(check(&data).0, Some(0), "{}", check(&data).1);
    server.restart();
    run(async {
        let client = server.connect().await;
        let rows = ask(&client, "SELECT count(*), min(n), max(n) FROM t").await;
        assert_eq!(rows, [["50", "50", "50"]], "what the checkpoint had");
        let change = "UPDATE t SET n = 777 WHERE id <= 3; DELETE FROM t WHERE id = 5; UPDATE t SET n = 778 WHERE id = 1";
        client.batch_execute(change).await.expect("changed");
    });
    server.kill();
    server.restart();
    run(async {
        let client = server.connect().await;
        let rows = ask(&client, "SELECT n FROM t WHERE id <= 6 ORDER BY id").await;
        assert_eq!(rows, [["778"], ["777"], ["777"], ["50"], ["50"]]);
    });
    server.stop();
    let again = Server::archipel(&reset);
    assert!(String::from_utf8_lossy(&again.stdout).contains("the log is whole"), "{again:?}");
    assert_eq!(check(&data).0, Some(0));
}

/// A start that refuses leaves the files as they are, so that what is put back is taken.
#[test]
fn a_file_that_is_put_back_is_taken() {
    let mut server = filled();
    std::thread::sleep(NOTED_AFTER);
    server.kill();
    let data = server.data_directory();
    let newest = files(&data).pop().expect("there are some");
    let aside = data.with_file_name("aside");
    for _ in 0..2 {
        fs::rename(&newest, &aside).expect("renamed");
        let refused = start(&mut server, &data).expect_err("its rows are missing");
        assert!(refused.0 == Some(DAMAGED) && refused.1.contains("put back the file"), "{}", refused.1);
        fs::rename(&aside, &newest).expect("renamed");
    }
    assert_eq!(start(&mut server, &data).as_deref(), Ok(ROWS));
}

#[test]
fn the_file_that_says_how_far_the_log_goes_is_missed_too() {
    let mut server = filled();
    server.stop();
    let data = server.data_directory();
    assert!(agree(&mut server, &data, "no watermark", |data| {
        fs::remove_file(data.join("WATERMARK")).expect("it was there");
    }));
    assert!(agree(&mut server, &data, "an empty watermark", |data| {
        fs::write(data.join("WATERMARK"), "").expect("written");
    }));
    for (what, at) in [("its first half", 20), ("its second half", 532)] {
        let refused = agree(&mut server, &data, what, |data| {
            let mut bytes = fs::read(data.join("WATERMARK")).expect("readable");
            bytes[at] ^= 4;
            fs::write(data.join("WATERMARK"), bytes).expect("written");
        });
        assert!(!refused, "the other half says the same after a stop in order");
    }
}

#[test]
fn a_directory_of_the_version_before_goes_on() {
    let mut server = filled();
    server.stop();
    let data = server.data_directory();
    fs::rename(data.join("redo"), data.join("log")).expect("renamed");
    fs::remove_file(data.join("WATERMARK")).expect("it was there");
    fs::write(data.join("FORMAT"), "1\n").expect("written");
    open_to_all(&data);
    let (code, told) = check(&data);
    assert_eq!(code, Some(0), "{told}");
    assert!(data.join("log").exists(), "a check changes nothing");
    assert_eq!(start(&mut server, &data).as_deref(), Ok(ROWS));
    assert!(data.join("redo").exists() && !data.join("log").exists());
    assert_eq!(fs::read_to_string(data.join("FORMAT")).expect("readable"), "6\n");
    assert!(agree(&mut server, &data, "no log", |data| {
        for path in files(data) {
            fs::remove_file(path).expect("it was there");
        }
        fs::remove_dir_all(data.join("redo")).expect("it was there");
    }));
    require_private(&data);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// As versions before have left their directories.
fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("ours");
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            open_to_all(&path);
        } else {
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("ours");
        }
    }
}

fn require_private(folder: &Path) {
    assert_eq!(mode(folder), 0o700, "{}", folder.display());
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            require_private(&path);
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn nobody_else_reads_the_data_or_a_backup() {
    let mut server = Server::start(&[]);
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let path = |name: &str| place.path().join(name);
    let text = |path: &Path| path.to_str().expect("temporary paths are UTF-8").to_owned();
    run(async {
        let client = server.connect().await;
        let fill = "CREATE TABLE t AS SELECT g FROM generate_series(1, 1000) AS g; CHECKPOINT";
        client.batch_execute(fill).await.expect("filled");
        client.batch_execute("ALTER SYSTEM SET wal_writer_delay = '150ms'").await.expect("set");
    });
    require_private(&server.data_directory());
    let (archive, plain) = (path("backup.tar"), path("plain"));
    fs::create_dir(&plain).expect("made");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).expect("ours");
    for to in [&archive, &plain] {
        let output = Server::archipel(&["backup", "--url", &server.url(), "--to", &text(to)]);
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(mode(&archive), 0o600);
    require_private(&plain);
    let restored = path("restored");
    let output = Server::archipel(&["restore", "--from", &text(&archive), "--data-dir", &text(&restored)]);
    assert!(output.status.success(), "{output:?}");
    require_private(&restored);
    server.kill();
    open_to_all(&server.data_directory());
    server.restart();
    assert!(server.log().contains("it has 0700 now"), "{}", server.log());
    require_private(&server.data_directory());
}

/// The log and the checkpoint lie in folders of their own: one of them may be put back alone.
#[test]
fn an_older_checkpoint_is_missed() {
    let mut server = filled();
    server.stop();
    let data = server.data_directory();
    let older = tempfile::tempdir().expect("a temporary directory can be made");
    copy(&data, &older.path().join("data"));
    server.restart();
    run(async {
        let client = server.connect().await;
        client.batch_execute("UPDATE t SET note = 'newer' WHERE id < 2000").await.expect("changed");
        client.batch_execute("CHECKPOINT").await.expect("taken");
    });
    server.stop();
    for (folder, also) in [("checkpoint", None), ("redo", None), ("checkpoint", Some("WATERMARK"))] {
        let refused = agree(&mut server, &data, &format!("{folder} is older"), |data| {
            fs::remove_dir_all(data.join(folder)).expect("it was there");
            copy(&older.path().join("data").join(folder), &data.join(folder));
            if let Some(file) = also {
                fs::copy(older.path().join("data").join(file), data.join(file)).expect("copied");
            }
        });
        assert!(refused, "{folder}");
    }
    // Each in the other's place.
    assert!(agree(&mut server, &data, "two folders in each other's place", |data| {
        fs::rename(data.join("redo"), data.join("aside")).expect("renamed");
        fs::rename(data.join("checkpoint"), data.join("redo")).expect("renamed");
        fs::rename(data.join("aside"), data.join("checkpoint")).expect("renamed");
    }));
    // Whoever has no other copy goes on with it.
    fs::remove_dir_all(data.join("checkpoint")).expect("it was there");
    copy(&older.path().join("data").join("checkpoint"), &data.join("checkpoint"));
    let (code, told) = check(&data);
    assert!(code == Some(DAMAGED) && told.contains("the checkpoint is an older one"), "{told}");
    let reset = ["reset-log", "--data-dir", data.to_str().expect("temporary paths are UTF-8")];
    let output = Server::archipel(&reset);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(check(&data).0, Some(0), "{}", check(&data).1);
}

/// A directory without its mark is new only if nothing has ever been in it.
#[test]
fn a_used_directory_without_its_format_is_refused() {
    let mut server = filled();
    server.stop();
    let data = server.data_directory();
    let besides: [&[&str]; 5] =
        [&[], &["WATERMARK"], &["redo"], &["checkpoint"], &["checkpoint", "WATERMARK"]];
    for others in besides {
        let refused = agree(&mut server, &data, &format!("no FORMAT, {others:?}"), |data| {
            fs::remove_file(data.join("FORMAT")).expect("it was there");
            for other in others.iter().copied() {
                let path = data.join(other);
                let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                gone.expect("it was there");
            }
        });
        assert!(refused, "{others:?}");
    }
}

/// A folder of another database, or of a copy that has gone another way, numbers its batches alike.
#[test]
fn a_folder_of_another_database_or_copy_is_missed() {
    let (mut server, mut other) = (filled(), filled());
    server.stop();
    other.stop();
    let copied = tempfile::tempdir().expect("a temporary directory can be made");
    let copied = copied.path().join("data");
    copy(&server.data_directory(), &copied);
    for text in ["CHECKPOINT", "UPDATE t SET note = 'this way' WHERE id < 100", "CHECKPOINT"] {
        server.restart();
        run(async { server.connect().await.batch_execute(text).await.expect("done") });
        server.stop();
    }
    let data = server.data_directory();
    for (from, whose) in [(other.data_directory(), "another database's"), (copied, "an older copy's")] {
        for folder in ["checkpoint", "redo"] {
            both_refuse(&mut server, &data, &format!("{whose} {folder}"), |data| {
                fs::remove_dir_all(data.join(folder)).expect("it was there");
                copy(&from.join(folder), &data.join(folder));
            });
        }
    }
}

/// Start and check refuse a directory after an accident.
fn both_refuse(server: &mut Server, data: &Path, what: &str, accident: impl FnOnce(&Path)) {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let damaged = place.path().join("data");
    copy(data, &damaged);
    accident(&damaged);
    let (code, checked) = check(&damaged);
    match start(server, &damaged) {
        Ok(_) => panic!("{what}: it starts; check says {code:?}:\n{checked}"),
        Err((status, told)) => {
            assert_eq!((status, code), (Some(DAMAGED), Some(DAMAGED)), "{what}:\n{told}\n{checked}");
        }
    }
}
