//! kill -9 in the middle of TPC-C, start again, and look for every acknowledged order and all
//! twelve consistency conditions; on the real store, and on one that discards what was not
//! synced, because a killed process leaves its page cache behind and so proves no sync.

use std::time::Duration;

use archipel_tests::server::{Server, spawn_workload, workload};

fn rounds() -> usize {
    if archipel_tests::long() { 20 } else { 3 }
}

fn acknowledged_orders_survive(settings: &[&str]) {
    let mut server = Server::start(settings);
    workload(&["load", "tpcc", "--url", &server.url()], false);
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    for round in 0..rounds() {
        let acknowledged = directory.path().join(format!("acknowledged-{round}"));
        let path = acknowledged.to_str().expect("temporary paths are UTF-8").to_owned();
        let url = server.url();
        let arguments =
            ["run", "tpcc", "--url", &url, "--duration", "60", "--quiet", "--acknowledged", &path];
        let log = directory.path().join("driver");
        let mut driver = spawn_workload(&arguments, &log);
        // Long enough for orders in every round, and never at the same moment of the epoch.
        std::thread::sleep(Duration::from_millis(1500 + 37 * round as u64));
        server.kill();
        let status = driver.wait().expect("the driver ends when its connections are lost");
        let told = std::fs::read_to_string(&log).unwrap_or_default();
        assert_eq!(status.code(), Some(3), "the driver should report lost connections:\n{told}");
        let orders =
            std::fs::read_to_string(&acknowledged).expect("the driver wrote its file").lines().count();
        assert!(orders > 0, "round {round} acknowledged nothing:\n{told}");
        server.restart();
        workload(&["check", "tpcc", "--url", &server.url(), "--acknowledged", &path], false);
    }
}

#[test]
fn every_acknowledged_order_survives_kill_9() {
    acknowledged_orders_survive(&[]);
}

#[test]
fn every_acknowledged_order_survives_kill_9_on_a_store_that_discards_unsynced_bytes() {
    acknowledged_orders_survive(&["archipel.log_store=discard-unsynced"]);
}
