//! kill -9 while databases are made, copied with their rows and dropped: each is whole or gone afterwards,
//! nobody else's tables are lost, and `archipel check` finds nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use archipel_tests::server::{Server, ask, connect, one};
use tokio_postgres::Client;

const ROWS: i64 = 3_000;

/// Databases that were acknowledged, by the number in their names.
#[derive(Default)]
struct Acknowledged {
    made: Vec<usize>,
    next: usize,
}

fn rounds() -> usize {
    if archipel_tests::long() { 60 } else { 5 }
}

/// Makes databases, empty ones and copies, and drops every other one, until the server is gone.
async fn make(client: Client, acknowledged: Arc<Mutex<Acknowledged>>) {
    let lock = || acknowledged.lock().expect("no test thread panicked");
    loop {
        let number = {
            let mut acknowledged = lock();
            acknowledged.next += 1;
            acknowledged.next
        };
        let template = if number.is_multiple_of(2) { "TEMPLATE template" } else { "" };
        let made = client.batch_execute(&format!("CREATE DATABASE d{number} {template}")).await;
        match made {
            Ok(()) => lock().made.push(number),
            Err(error) if error.as_db_error().is_none() => return,
            Err(error) => panic!("{error}"),
        }
        let Some(oldest) = lock().made.first().copied().filter(|oldest| number > oldest + 2) else {
            continue;
        };
        // From here on nobody knows what becomes of it.
        lock().made.retain(|known| *known != oldest);
        match client.batch_execute(&format!("DROP DATABASE d{oldest}")).await {
            Ok(()) => {}
            Err(error) if error.as_db_error().is_none() => return,
            Err(error) => panic!("{error}"),
        }
    }
}

fn url_of(server: &Server, database: &str) -> String {
    let url = server.url();
    let (server, _) = url.rsplit_once('/').expect("a database comes last");
    format!("{server}/{database}")
}

/// What is there is whole, and what was acknowledged is there.
async fn verify(server: &Server, acknowledged: &Acknowledged) {
    let first = connect(&server.url()).await;
    assert_eq!(one(&first, "SELECT count(*) FROM own").await, ROWS.to_string());
    let names = ask(&first, "SELECT datname FROM pg_database WHERE datname ~ '^d[0-9]+$'").await;
    let names: Vec<String> = names.into_iter().flatten().collect();
    for number in &acknowledged.made {
        assert!(names.contains(&format!("d{number}")), "d{number} was acknowledged: {names:?}");
    }
    for name in names {
        let number: usize = name[1..].parse().expect("names have numbers");
        let client = connect(&url_of(server, &name)).await;
        let found = one(&client, "SELECT count(*) FROM pg_class WHERE relname = 't'").await;
        if number.is_multiple_of(2) {
            let counted = "SELECT count(*) || ' ' || sum(a) || ' ' || count(DISTINCT b) FROM t";
            assert_eq!(
                one(&client, counted).await,
                format!("{ROWS} {} {ROWS}", ROWS * (ROWS + 1) / 2),
                "{name}"
            );
            // A crash may take numbers that nobody has drawn.
            let next: i64 = one(&client, "SELECT nextval('t_id_seq')").await.parse().expect("a number");
            assert!((ROWS + 1..ROWS + 100).contains(&next), "{name}: {next}");
        } else {
            assert_eq!(found, "0", "{name}");
        }
        drop(client);
        first.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.expect("nobody minds");
    }
}

#[test]
fn databases_are_whole_or_gone_after_kill_9() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let mut server = Server::start(&[]);
    runtime.block_on(async {
        let first = connect(&server.url()).await;
        let own = format!("CREATE TABLE own AS SELECT g AS a FROM generate_series(1, {ROWS}) g");
        for text in [own.as_str(), "CREATE DATABASE template"] {
            first.batch_execute(text).await.expect("it is made");
        }
        let template = connect(&url_of(&server, "template")).await;
        for text in [
            "CREATE TABLE t (id serial PRIMARY KEY, a int NOT NULL, b text UNIQUE)",
            &format!("INSERT INTO t (a, b) SELECT g, 'b' || g FROM generate_series(1, {ROWS}) g"),
        ] {
            template.batch_execute(text).await.expect("it is made");
        }
    });
    for round in 0..rounds() {
        let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
        let url = server.url();
        let making = runtime.spawn(make(runtime.block_on(connect(&url)), Arc::clone(&acknowledged)));
        // Never at the same moment of a database.
        std::thread::sleep(Duration::from_millis(300 + 37 * (round % 50) as u64));
        server.kill();
        runtime.block_on(making).expect("nothing was refused");
        let data = server.data_directory();
        let data = data.to_str().expect("temporary paths are UTF-8");
        let output = Server::archipel(&["check", "--data-dir", data]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        server.restart();
        let acknowledged = acknowledged.lock().expect("no test thread panicked");
        runtime.block_on(verify(&server, &acknowledged));
    }
}
