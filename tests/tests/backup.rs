//! `archipel backup` of a server under load, `archipel restore`, and a server on the result.

use std::path::Path;
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
