//! Clients on Unix sockets.

mod common;

use common::Server;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Client, Connection, NoTls, Socket};

/// The server listens on its sockets one after the other, and has been seen on the first.
async fn connect(url: &str) -> (Client, Connection<Socket, NoTlsStream>) {
    let begun = std::time::Instant::now();
    loop {
        match tokio_postgres::connect(url, NoTls).await {
            Ok(connected) => return connected,
            Err(error) => assert!(begun.elapsed().as_secs() < 120, "{error:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_client_on_the_unix_socket_is_served_and_the_files_go_with_the_server() {
    let mut server = Server::start(&[]);
    let folder = server.directory.path().to_owned();
    let url = format!("postgresql://archipel@/archipel?host={}&port={}", folder.display(), server.port);
    let (client, connection) = connect(&url).await;
    let served = tokio::spawn(connection);
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").await.unwrap();
    // More than a socket holds, both ways.
    let long = "x".repeat(3_000_000);
    client.execute("INSERT INTO t VALUES (1, $1)", &[&long]).await.unwrap();
    let row = client.query_one("SELECT v FROM t WHERE id = 1", &[]).await.unwrap();
    assert!(row.get::<_, &str>(0) == long);
    let row = client
        .query_one(
            "SELECT client_addr::text, client_port, current_setting('unix_socket_directories')
             FROM pg_stat_activity WHERE pid = pg_backend_pid()",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, Option<&str>>(0), None);
    assert_eq!(row.get::<_, i32>(1), -1);
    assert_eq!(row.get::<_, &str>(2), folder.to_str().unwrap());
    // Cancelling goes through the socket, too.
    let cancel = client.cancel_token();
    let slow = tokio::spawn(async move { client.batch_execute("DO $$ BEGIN LOOP END LOOP; END $$").await });
    let ended = async {
        while !slow.is_finished() {
            cancel.cancel_query(NoTls).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        slow.await.unwrap()
    };
    let error = tokio::time::timeout(std::time::Duration::from_secs(120), ended).await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some(&tokio_postgres::error::SqlState::QUERY_CANCELED));
    served.await.unwrap().unwrap();
    let socket = folder.join(format!(".s.PGSQL.{}", server.port));
    assert!(socket.exists() && socket.with_extension(format!("{}.lock", server.port)).exists());
    assert_eq!(server.stop(), Some(0));
    let left = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["data"]);
}

#[tokio::test]
async fn a_socket_left_behind_by_a_killed_server_is_replaced() {
    let mut server = Server::start(&[]);
    server.kill();
    server.launch(&[]);
    let url = format!(
        "host={} port={} user=archipel dbname=archipel",
        server.directory.path().display(),
        server.port
    );
    let (client, connection) = connect(&url).await;
    tokio::spawn(connection);
    client.batch_execute("SELECT 1").await.unwrap();
}

#[test]
fn directories_that_take_no_socket_stop_the_server_before_it_begins() {
    let server = Server::start(&[]);
    let missing = server.directory.path().join("missing");
    let output = server
        .command(0)
        .arg("--set")
        .arg(format!("unix_socket_directories={}", missing.display()))
        .output()
        .expect("the binary runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("cannot listen on the Unix socket") && told.contains("No such file"), "{told}");
}

#[tokio::test]
async fn signals_that_postgresql_lives_through_end_no_server() {
    let mut server = Server::start(&[]);
    for signal in ["USR1", "USR2", "ALRM", "TTIN", "TTOU", "HUP", "PIPE"] {
        server.signal(signal);
        let row = server.client().await.query_one("SELECT 1", &[]).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), 1, "{signal}");
    }
    assert_eq!(server.stop(), Some(0));
}
