//! `archipel backup` of a server under load, `archipel restore`, and a server on the result.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use archipel_tests::server::{Server, spawn_workload, workload};

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}

fn archipel(arguments: &[&str], code: i32) -> String {
    let output = Server::archipel(arguments);
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "archipel {arguments:?}:\n{told}");
    told
}

#[test]
fn a_backup_under_load_holds_what_was_acknowledged_before_it_and_is_consistent() {
    let mut server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = |name: &str| directory.path().join(name);
    workload(&["load", "tpcc", "--url", &server.url()], false);
    // Acknowledged before the backup: they must be in it.
    let acknowledged = path("acknowledged");
    let run = ["run", "tpcc", "--url", &server.url(), "--duration", "2", "--quiet", "--acknowledged"];
    workload(&[&run[..], &[text(&acknowledged)]].concat(), false);

    let url = server.url();
    let mut driver =
        spawn_workload(&["run", "tpcc", "--url", &url, "--duration", "600", "--quiet"], &path("log"));
    std::thread::sleep(Duration::from_millis(700));
    let (archive, plain) = (path("backup.tar"), path("plain"));
    archipel(&["backup", "--url", &url, "--to", text(&archive)], 0);
    archipel(&["backup", "--url", &url, "--to", text(&plain)], 0);
    let again = archipel(&["backup", "--url", &url, "--to", text(&archive)], 1);
    assert!(again.contains("exists already"), "{again}");
    assert!(driver.try_wait().expect("a child can be asked").is_none(), "the load goes on beside a backup");
    server.kill();
    // It has lost its connections: no verdict on the backup.
    let _ = driver.wait();

    let restored = path("restored");
    archipel(&["restore", "--from", text(&archive), "--data-dir", text(&restored)], 0);
    let refused = archipel(&["restore", "--from", text(&archive), "--data-dir", text(&restored)], 1);
    assert!(refused.contains("is not empty"), "{refused}");
    for copy in [&restored, &plain] {
        let told = archipel(&["check", "--data-dir", text(copy)], 0);
        assert!(told.contains("table public.warehouse: 1 rows"), "{told}");
        server.move_to(copy);
        server.restart();
        let url = server.url();
        workload(&["check", "tpcc", "--url", &url, "--acknowledged", text(&acknowledged)], false);
        server.kill();
    }
}

/// Commits of some megabytes go to the log in parts, and some do while a backup is between its checkpoint and its
/// copy of the log.
#[test]
fn a_backup_beside_large_commits_has_each_of_them_whole_or_not_at_all() {
    const ROWS: i64 = 3_000;
    let mut server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let fill = format!(
        "CREATE TABLE t (id int PRIMARY KEY, round int, note text);
         INSERT INTO t SELECT g, 0, repeat('x', 1000) FROM generate_series(1, {ROWS}) AS g"
    );
    let acknowledged = Arc::new(AtomicI32::new(0));
    let client = runtime.block_on(server.connect());
    runtime.block_on(client.batch_execute(&fill)).expect("the table is filled");
    let writer = runtime.spawn({
        let acknowledged = acknowledged.clone();
        async move {
            for round in 1.. {
                // Rows that go and come, so that a later one of them has no trace of an earlier one.
                let change = format!(
                    "BEGIN; DELETE FROM t WHERE id % 3 = 0;
                     UPDATE t SET round = {round}, note = repeat('{}', 1000 + {round} % 7);
                     INSERT INTO t SELECT g, {round}, repeat('y', 1000) FROM generate_series(3, {ROWS}, 3) AS g;
                     COMMIT",
                    round % 10
                );
                if client.batch_execute(&change).await.is_err() {
                    return;
                }
                acknowledged.store(round, Ordering::SeqCst);
            }
        }
    });
    let mut copies = Vec::new();
    for at in 0..4 {
        std::thread::sleep(Duration::from_millis(400));
        let path = directory.path().join(format!("copy-{at}"));
        let before = acknowledged.load(Ordering::SeqCst);
        archipel(&["backup", "--url", &server.url(), "--to", text(&path)], 0);
        copies.push((path, before));
    }
    server.kill();
    runtime.block_on(writer).expect("it ends with its connection");
    assert!(acknowledged.load(Ordering::SeqCst) > 4, "the load goes on beside backups");
    for (copy, before) in copies {
        archipel(&["check", "--data-dir", text(&copy)], 0);
        server.move_to(&copy);
        server.restart();
        let row = runtime.block_on(async {
            let client = server.connect().await;
            let all = "SELECT count(*), min(round), max(round) FROM t";
            client.query_one(all, &[]).await.expect("answered")
        });
        let (rows, least, greatest): (i64, i32, i32) = (row.get(0), row.get(1), row.get(2));
        assert_eq!((rows, least), (ROWS, greatest));
        assert!(least >= before, "round {before} was acknowledged, and the backup has {least}");
        server.kill();
    }
}

#[test]
fn a_damaged_archive_is_refused_before_anything_is_written() {
    let server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let (archive, target) = (directory.path().join("backup.tar"), directory.path().join("data"));
    archipel(&["backup", "--url", &server.url(), "--to", text(&archive)], 0);
    let whole = std::fs::read(&archive).expect("readable");
    let mut flipped = whole.clone();
    // In the first file's bytes: the header takes a block.
    flipped[512] ^= 1;
    for bad in [&flipped[..], &whole[..whole.len() / 2]] {
        std::fs::write(&archive, bad).expect("writable");
        let told = archipel(&["restore", "--from", text(&archive), "--data-dir", text(&target)], 5);
        assert!(told.contains("the backup is damaged"), "{told}");
        assert!(!target.exists(), "nothing was made");
    }
}
