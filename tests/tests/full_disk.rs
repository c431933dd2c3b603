//! A full disk under the real server, over the wire: writes are refused with 53100, reads go
//! on, writes go on when space returns, and nothing acknowledged is lost, kill -9 included.
//!
//! The disk is a small tmpfs in a mount namespace of the test's own, so nothing outside sees it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use archipel_tests::server::connect;
use archipel_tests::{archipel_binary, port};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// How long to wait for what must come, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A mount namespace with a small disk, held open by a process that sleeps.
struct SmallDisk {
    holder: Child,
    place: tempfile::TempDir,
}

impl SmallDisk {
    fn new(megabytes: u32) -> SmallDisk {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let script = format!(
            "mount -t tmpfs -o size={megabytes}m tmpfs \"$0\" && touch \"$0/here\" && exec sleep 7200"
        );
        let holder = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", &script])
            .arg(place.path())
            .stdin(Stdio::null())
            .spawn()
            .expect("util-linux is there");
        let mut disk = SmallDisk { holder, place };
        let begin = Instant::now();
        while !disk.inside("here").exists() {
            let status = disk.holder.try_wait().expect("a child can be asked for its status");
            assert!(status.is_none(), "no namespace with a tmpfs of its own can be made here: {status:?}");
            assert!(begin.elapsed() < PATIENCE, "a user may mount a tmpfs for itself");
            std::thread::sleep(Duration::from_millis(20));
        }
        disk
    }

    /// A file of the disk, as seen from here.
    fn inside(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.place.path().strip_prefix("/").expect("temporary paths are absolute")).join(name)
    }

    /// A command that runs inside.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--user", "--mount", "--preserve-credentials", "--target"])
            .arg(self.holder.id().to_string())
            .arg(program)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

struct Served {
    child: Child,
    port: u16,
    /// Outside of the small disk: the log, and the socket that tells whose port it is.
    beside: tempfile::TempDir,
}

impl Served {
    async fn start(disk: &SmallDisk) -> Served {
        for _ in 0..5 {
            let mut served = Served::spawn(disk);
            let begin = Instant::now();
            let socket = served.beside.path().join(format!(".s.PGSQL.{}", served.port));
            while !socket.exists()
                || tokio_postgres::connect(&served.url(), tokio_postgres::NoTls).await.is_err()
            {
                if let Some(status) = served.child.try_wait().expect("a child can be asked for its status") {
                    // Another process may have taken the port first.
                    assert!(
                        served.log().contains("in use"),
                        "the server ended with {status}:\n{}",
                        served.log()
                    );
                    break;
                }
                assert!(begin.elapsed() < PATIENCE, "the server does not answer:\n{}", served.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            if served.child.try_wait().expect("a child can be asked for its status").is_none() {
                return served;
            }
        }
        panic!("no free port in five tries");
    }

    fn spawn(disk: &SmallDisk) -> Served {
        let port = port::free();
        let beside = tempfile::tempdir().expect("a temporary directory can be made");
        let log = std::fs::File::create(beside.path().join("log")).expect("the log file can be made");
        let child = disk
            .command(&archipel_binary())
            .args(["serve", "--http", "off", "--listen", &format!("127.0.0.1:{port}"), "--set"])
            .arg(format!("unix_socket_directories={}", beside.path().display()))
            .arg("--data-dir")
            .arg(disk.place.path().join("data"))
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("the binary can be run");
        Served { child, port, beside }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.beside.path().join("log")).unwrap_or_default()
    }

    fn url(&self) -> String {
        format!("postgresql://archipel@127.0.0.1:{}/archipel", self.port)
    }

    fn kill(&mut self) {
        // nsenter has become the server itself: there is no process between.
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a killed child ends");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("a test failed; its server's log:\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Inserts until an error; the rows acknowledged and the error's code.
async fn insert_until_refused(client: &Client, next: &mut i32) -> SqlState {
    let begin = Instant::now();
    loop {
        match client.execute("INSERT INTO t VALUES ($1, repeat('x', 100000))", &[&*next]).await {
            Ok(_) => *next += 1,
            Err(error) => {
                return error.code().cloned().unwrap_or_else(|| panic!("the connection was lost: {error}"));
            }
        }
        assert!(begin.elapsed() < PATIENCE, "the disk never fills up");
    }
}

async fn count(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM t", &[]).await.expect("reads go on").get(0)
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_loses_nothing() {
    let disk = SmallDisk::new(320);
    let ballast = disk.inside("ballast");
    std::fs::write(&ballast, vec![0; 100 << 20]).expect("there is room for it");
    let mut server = Served::start(&disk).await;
    let client = connect(&server.url()).await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, note text)").await.expect("created");
    let mut next = 0;
    assert_eq!(insert_until_refused(&client, &mut next).await, SqlState::DISK_FULL);
    assert!(next > 20, "{next} rows fitted");
    // What was refused left nothing.
    let seen = count(&client).await;
    assert_eq!(seen, i64::from(next));
    let refused = client.execute("UPDATE t SET note = 'y' WHERE id = 1", &[]).await.expect_err("still full");
    assert_eq!(refused.code(), Some(&SqlState::DISK_FULL), "{refused}");

    std::fs::remove_file(&ballast).expect("it can be removed");
    let begin = Instant::now();
    let mut after = 1_000_000;
    while client.execute("INSERT INTO t VALUES ($1, 'after')", &[&after]).await.is_err() {
        assert!(begin.elapsed() < PATIENCE, "writes do not go on with {next} rows there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for _ in 0..50 {
        after += 1;
        client.execute("INSERT INTO t VALUES ($1, 'after')", &[&after]).await.expect("there is space");
    }
    drop(client);
    server.kill();

    let server = Served::start(&disk).await;
    let client = connect(&server.url()).await;
    let before = client.query_one("SELECT count(*) FROM t WHERE id < $1", &[&next]).await.expect("answered");
    assert_eq!(before.get::<_, i64>(0), i64::from(next), "acknowledged before the disk was full");
    let later = client.query_one("SELECT count(*) FROM t WHERE note = 'after'", &[]).await.expect("answered");
    assert_eq!(later.get::<_, i64>(0), 51, "acknowledged after space returned");
}

/// Commits that go to the log in parts: what does not fit is refused before anything of it is written, and what is
/// refused on its way leaves nothing.
#[tokio::test]
async fn a_full_disk_refuses_large_commits_and_their_parts_take_no_room() {
    let disk = SmallDisk::new(500);
    let mut server = Served::start(&disk).await;
    let client = connect(&server.url()).await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, note text)").await.expect("created");
    let insert = "INSERT INTO t SELECT g, repeat('x', 100000) FROM generate_series($1::int, $2::int) AS g";
    // It would fit, and be more than half of what is free.
    let refused = client.execute(insert, &[&1, &2_600]).await.expect_err("it is too large");
    assert_eq!(refused.code(), Some(&SqlState::OUT_OF_MEMORY), "{refused}");
    let ballast = disk.inside("ballast");
    std::fs::write(&ballast, vec![0; 290 << 20]).expect("there is room for it");
    // The log's thread looks five times a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let refused = client.execute(insert, &[&1, &1_500]).await.expect_err("it does not fit");
    assert_eq!(refused.code(), Some(&SqlState::DISK_FULL), "{refused}");
    assert_eq!(count(&client).await, 0);
    // Five parts each.
    let begin = Instant::now();
    let mut next = 1;
    let code = loop {
        match client.execute(insert, &[&next, &(next + 49)]).await {
            Ok(_) => next += 50,
            Err(error) => break error.code().cloned().expect("the connection stays"),
        }
        assert!(begin.elapsed() < PATIENCE, "the disk never fills up");
    };
    assert_eq!(code, SqlState::DISK_FULL);
    assert!(next > 200, "{next} rows fitted");
    assert_eq!(count(&client).await, i64::from(next - 1), "what was refused left nothing");
    std::fs::remove_file(&ballast).expect("it can be removed");
    let begin = Instant::now();
    while client.execute(insert, &[&next, &(next + 49)]).await.is_err() {
        assert!(begin.elapsed() < PATIENCE, "writes do not go on with {next} rows there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    next += 50;
    drop(client);
    server.kill();

    let server = Served::start(&disk).await;
    let client = connect(&server.url()).await;
    assert_eq!(count(&client).await, i64::from(next - 1), "all that was acknowledged");
}

/// A server whose files may not be longer than so many units of the shell, of 512 bytes at least.
fn serve_with_short_files(place: &Path, port: u16, units: u32) -> Child {
    let log = std::fs::File::create(place.join("log")).expect("the log file can be made");
    Command::new("sh")
        .args(["-c", &format!("ulimit -f {units}; exec \"$0\" \"$@\"")])
        .arg(archipel_binary())
        .args(["serve", "--http", "off", "--listen", &format!("127.0.0.1:{port}"), "--set"])
        .arg(format!("unix_socket_directories={}", place.display()))
        .arg("--data-dir")
        .arg(place.join("data"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file can be shared"))
        .stderr(log)
        .spawn()
        .expect("a shell can be run")
}

async fn connect_when_ready(url: &str) -> Client {
    let begin = Instant::now();
    while tokio_postgres::connect(url, tokio_postgres::NoTls).await.is_err() {
        assert!(begin.elapsed() < PATIENCE, "the server does not answer");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    connect(url).await
}

/// `ulimit -f` and quotas: PostgreSQL goes on, and so does this.
#[tokio::test]
async fn a_file_that_may_not_grow_ends_no_server_and_loses_nothing() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let port = port::free();
    let url = format!("postgresql://archipel@127.0.0.1:{port}/archipel");
    let mut child = serve_with_short_files(place.path(), port, 20_000);
    let client = connect_when_ready(&url).await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, note text)").await.expect("created");
    let mut taken = Vec::new();
    for id in 0..200 {
        match client.execute("INSERT INTO t VALUES ($1, repeat('x', 100000))", &[&id]).await {
            Ok(_) => taken.push(id),
            Err(error) => assert_eq!(error.code(), Some(&SqlState::DISK_FULL), "{error}"),
        }
    }
    assert!(child.try_wait().expect("a child can be asked for its status").is_none(), "it goes on");
    assert_eq!(count(&client).await, taken.len() as i64);
    drop(client);
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");

    let mut child = serve_with_short_files(place.path(), port, 4_000_000);
    let client = connect_when_ready(&url).await;
    let missing = "SELECT count(*) FROM unnest($1::int[]) AS i WHERE NOT EXISTS (SELECT FROM t WHERE id = i)";
    let missing = client.query_one(missing, &[&taken]).await.expect("answered").get::<_, i64>(0);
    assert_eq!(missing, 0, "acknowledged");
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");
}
