//! What was acknowledged survives, and one directory has one server.

mod common;

use common::Server;

const TRANSFER: &str = "
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL CHECK (balance >= 0));
INSERT INTO account SELECT g, 1000 FROM generate_series(1, 10) AS g;
CREATE TABLE done (id int PRIMARY KEY);
CREATE PROCEDURE transfer(entry int, source int, target int, amount int) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO done VALUES (entry);
  UPDATE account SET balance = balance - amount WHERE id = source;
  UPDATE account SET balance = balance + amount WHERE id = target;
END $$;";

async fn transfers_survive(settings: &[&str]) {
    let mut server = Server::start(settings);
    server.client().await.batch_execute(TRANSFER).await.unwrap();
    let mut acknowledged: Vec<i32> = Vec::new();
    for round in 0..3i32 {
        let client = server.client().await;
        for step in 0..200 {
            let entry = round * 1000 + step;
            let (source, target) = (1 + step % 10, 1 + (step + 3) % 10);
            client.execute("CALL transfer($1, $2, $3, 1)", &[&entry, &source, &target]).await.unwrap();
            acknowledged.push(entry);
        }
        server.kill();
        server.launch(settings);
    }
    let client = server.client().await;
    let total = client.query_one("SELECT sum(balance)::int8 FROM account", &[]).await.unwrap();
    assert_eq!(total.get::<_, i64>(0), 10_000);
    let rows = client.query("SELECT id FROM done", &[]).await.unwrap();
    let done: std::collections::HashSet<i32> = rows.iter().map(|row| row.get(0)).collect();
    let lost: Vec<&i32> = acknowledged.iter().filter(|entry| !done.contains(entry)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}

#[tokio::test]
async fn acknowledged_transfers_survive_kill_9() {
    transfers_survive(&[]).await;
}

#[tokio::test]
async fn acknowledged_transfers_survive_the_loss_of_unsynced_bytes() {
    transfers_survive(&["archipel.log_store=discard-unsynced"]).await;
}

#[tokio::test]
async fn a_soft_stop_keeps_everything_and_ends_with_zero() {
    let mut server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("SET synchronous_commit = off; CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    client.batch_execute("INSERT INTO t SELECT g FROM generate_series(1, 1000) AS g").await.unwrap();
    assert_eq!(server.stop(), Some(0));
    server.launch(&[]);
    let row = server.client().await.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1000);
}

#[test]
fn a_second_server_on_a_directory_or_address_is_refused() {
    let server = Server::start(&[]);
    let output = server.command(0).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("in use by another server"));
    let other = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_archipel"))
        .args(["serve", "--http", "off", "--listen", &format!("127.0.0.1:{}", server.port), "--data-dir"])
        .arg(other.path())
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}
