//! The workloads end to end: load, run, check; and the same files on PostgreSQL 15.

use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, workload};

fn end_to_end(url: &str, name: &str, arguments: &[&str]) {
    workload(&["load", name, "--url", url], false);
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let json = directory.path().join("figures.json");
    let path = json.to_str().expect("temporary paths are UTF-8");
    let run = |seconds: &str| -> serde_json::Value {
        let run = ["run", name, "--url", url, "--duration", seconds, "--json", path, "--quiet"];
        workload(&[&run[..], arguments].concat(), false);
        let figures = std::fs::read_to_string(&json).expect("the figures were written");
        serde_json::from_str(&figures).expect("the figures are JSON")
    };
    let mut figures = run("3");
    // A slow machine may not have come to the rarest transaction yet.
    let committed = |call: &serde_json::Value| call["count"].as_u64().is_some_and(|count| count > 0);
    let transactions = |figures: &serde_json::Value| figures["transactions"].as_object().cloned();
    if !transactions(&figures).is_some_and(|calls| calls.values().all(committed)) {
        figures = run("30");
    }
    workload(&["check", name, "--url", url], false);
    assert!(figures["throughput"].as_f64().is_some_and(|throughput| throughput > 0.0), "{figures:#}");
    assert_eq!(figures["errors"].as_u64(), Some(0), "{figures:#}");
    for (name, call) in figures["transactions"].as_object().expect("figures per transaction") {
        assert!(committed(call), "{name} never committed: {figures:#}");
    }
}

#[test]
fn tpcc_runs_and_stays_consistent() {
    end_to_end(&Server::start(&[]).url(), "tpcc", &[]);
}

#[test]
fn tatp_runs_and_stays_consistent() {
    end_to_end(&Server::start(&[]).url(), "tatp", &["--pipeline", "8"]);
}

#[test]
fn smallbank_loses_no_money() {
    end_to_end(&Server::start(&[]).url(), "smallbank", &["--pipeline", "4"]);
}

#[test]
fn voter_counts_what_may_count() {
    end_to_end(&Server::start(&[]).url(), "voter", &["--pipeline", "4"]);
}

#[test]
fn ycsb_runs_and_keeps_its_records() {
    end_to_end(&Server::start(&[]).url(), "ycsb", &[]);
}

#[test]
fn no_seat_is_given_twice() {
    end_to_end(&Server::start(&[]).url(), "reservation", &["--pipeline", "4"]);
}

#[test]
fn the_same_files_and_driver_serve_postgresql() {
    let postgres = Postgres::start();
    end_to_end(&postgres.url(), "tpcc", &[]);
    end_to_end(&postgres.url(), "tatp", &["--pipeline", "8"]);
    for name in ["smallbank", "voter", "ycsb", "reservation"] {
        end_to_end(&postgres.url(), name, &[]);
    }
}
