//! An Archipel process: started on a data directory, killed hard or stopped softly, started again.

use std::fs::File;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::power::Power;
use crate::secured::{self, Certificates};
use crate::{archipel_binary, port};

/// How long a start (recovery included) may take before the test gives up.
const START_LIMIT: Duration = Duration::from_secs(300);
/// What is shown of a server's log where a test fails.
const LOG_LINES_SHOWN: usize = 40;

/// A data directory and the process that serves it, if one does.
pub struct Server {
    directory: tempfile::TempDir,
    /// Another data directory than the one below `directory`.
    elsewhere: Option<PathBuf>,
    settings: Vec<String>,
    /// Of the server's process alone.
    environment: Vec<(String, String)>,
    port: u16,
    page_port: Option<u16>,
    child: Option<Child>,
    /// The cores of the process, if they are not all.
    cpus: Option<std::collections::BTreeSet<usize>>,
}

impl Server {
    /// A fresh data directory, served with `settings` (`name=value`).
    pub fn start(settings: &[&str]) -> Server {
        Server::begin(settings, None, Vec::new())
    }

    /// The same, with the live page.
    pub fn start_with_page(settings: &[&str]) -> Server {
        Server::begin(settings, Some(0), Vec::new())
    }

    /// One that takes nobody over TCP without TLS and the password.
    pub fn start_secured(certificates: &Certificates) -> Server {
        let settings = Certificates::settings(certificates.directory());
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let password = ("ARCHIPEL_PASSWORD".to_owned(), secured::PASSWORD.to_owned());
        Server::begin(&settings, None, vec![password])
    }

    fn begin(settings: &[&str], page_port: Option<u16>, environment: Vec<(String, String)>) -> Server {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut server = Server {
            directory,
            elsewhere: None,
            settings,
            environment,
            port: 0,
            page_port,
            child: None,
            cpus: None,
        };
        server.restart();
        server
    }

    /// Starts the process on the same data directory, with these cores only.
    pub fn restart_on(&mut self, cpus: &std::collections::BTreeSet<usize>) {
        self.cpus = Some(cpus.clone());
        self.restart();
    }

    /// A fresh data directory on a disk that can lose power.
    pub fn start_on_power(settings: &[&str], seed: u64) -> (Server, Power) {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let power = Power::new(&directory.path().join("data"), seed);
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let environment = power.environment();
        let mut server = Server {
            directory,
            elsewhere: None,
            settings,
            environment,
            port: 0,
            page_port: None,
            child: None,
            cpus: None,
        };
        server.restart();
        (server, power)
    }

    /// Starts the process on the same data directory.
    pub fn restart(&mut self) {
        assert!(self.child.is_none(), "it is running already");
        for _ in 0..5 {
            self.port = port::free();
            self.page_port = self.page_port.map(|_| port::free());
            let mut child = self.command(self.port).spawn().expect("the binary can be run");
            let begin = Instant::now();
            loop {
                if let Some(status) = child.try_wait().expect("a child can be asked for its status") {
                    // Another process may have taken the port first; then it says so.
                    if self.log().contains("in use") && !self.log().contains("data directory") {
                        break;
                    }
                    panic!("the server ended with {status}:\n{}", self.log());
                }
                if self.listens() && self.ready() {
                    self.child = Some(child);
                    return;
                }
                if begin.elapsed() > START_LIMIT {
                    // A failure to kill it changes nothing about the verdict.
                    let _ = child.kill();
                    panic!("the server did not answer within {START_LIMIT:?}:\n{}", self.log());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        panic!("no free port in five tries");
    }

    /// Whether the process has come to its Unix socket: it has its port then, which otherwise
    /// might be another test's server's.
    fn listens(&self) -> bool {
        UnixStream::connect(self.directory.path().join(format!(".s.PGSQL.{}", self.port))).is_ok()
    }

    /// Whether it answers on its TCP port, and a query on its socket, where nobody is asked who
    /// they are.
    fn ready(&self) -> bool {
        let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        drop(stream);
        let mut config = tokio_postgres::Config::new();
        config.host_path(self.directory.path()).port(self.port).user("archipel").dbname("archipel");
        config.connect_timeout(Duration::from_secs(5));
        // On a thread of its own: the caller may be inside a runtime, where none can be started.
        let asked = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime can be made");
            runtime.block_on(async {
                let Ok((client, connection)) = config.connect(tokio_postgres::NoTls).await else {
                    return false;
                };
                tokio::spawn(connection);
                client.simple_query("SELECT 1").await.is_ok()
            })
        });
        asked.join().expect("asking does not panic")
    }

    /// The command that serves this data directory.
    pub fn command(&self, port: u16) -> Command {
        let mut command = match &self.cpus {
            None => Command::new(archipel_binary()),
            Some(cpus) => {
                let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
                let mut taskset = Command::new("taskset");
                taskset.args(["-c", &cpus.join(",")]).arg(archipel_binary());
                taskset
            }
        };
        let page = self.page_port.map_or("off".to_owned(), |port| format!("127.0.0.1:{port}"));
        command
            .args(["serve", "--http", &page, "--listen", &format!("127.0.0.1:{port}"), "--data-dir"])
            .arg(self.data_directory())
            .arg("--set")
            .arg(format!("unix_socket_directories={}", self.directory.path().display()));
        command.envs(self.environment.iter().cloned());
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        let log = File::create(self.log_path()).expect("the log file can be made");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file can be shared")).stderr(log);
        command
    }

    pub fn data_directory(&self) -> PathBuf {
        self.elsewhere.clone().unwrap_or_else(|| self.directory.path().join("data"))
    }

    /// Serves another data directory from the next start on.
    pub fn move_to(&mut self, data_directory: &Path) {
        assert!(self.child.is_none(), "it is running");
        self.elsewhere = Some(data_directory.to_owned());
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// What the latest process printed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The running process.
    pub fn process_id(&self) -> u32 {
        self.child.as_ref().expect("it is running").id()
    }

    /// Bytes of memory that the process holds.
    pub fn memory_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.process_id())).expect("it runs");
        let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
        pages * 4096
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the live page is, for a server started with it.
    pub fn page_url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.page_port.expect("the server was started with its page"))
    }

    pub fn url(&self) -> String {
        format!("postgresql://archipel@127.0.0.1:{}/archipel", self.port)
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    ///
    /// # Panics
    /// With what it printed if it has ended by itself: that is no test of a kill.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it is running");
        if let Some(status) = child.try_wait().expect("a child can be asked for its status") {
            panic!("the server ended with {status} before it was killed:\n{}", self.log());
        }
        child.kill().expect("a child can be killed");
        child.wait().expect("a killed child ends");
    }

    /// SIGHUP: it reads its configuration again.
    pub fn hang_up(&self) {
        signal(self.child.as_ref().expect("it is running"), libc::SIGHUP);
    }

    /// SIGTERM, and its exit status.
    pub fn stop(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it is running");
        signal(&child, libc::SIGTERM);
        let begin = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("a child can be asked for its status") {
                return status;
            }
            if begin.elapsed() > START_LIMIT {
                let _ = child.kill();
                panic!("the server did not stop within {START_LIMIT:?}:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether the process is still there.
    pub fn alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// A connection; must be awaited inside a tokio runtime.
    pub async fn connect(&self) -> tokio_postgres::Client {
        connect(&self.url()).await
    }

    /// Runs `archipel` with these arguments and answers its output.
    pub fn archipel(arguments: &[&str]) -> std::process::Output {
        Command::new(archipel_binary())
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the binary can be run")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // It may be why.
            let status = self.child.as_mut().map(Child::try_wait);
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let shown = lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n");
            eprintln!("a test failed; its server's state is {status:?}, and its log ends so:\n{shown}");
        }
        if let Some(mut child) = self.child.take() {
            // The directory goes next; nothing is left to report a failure to.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: kill(2) takes no pointers; the child is ours and not yet waited for.
    let outcome = unsafe { libc::kill(child.id() as i32, signal) };
    assert_eq!(outcome, 0, "a running child can be signalled");
}

/// A connection whose I/O runs as a task of the current runtime.
pub async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("the server takes connections");
    tokio::spawn(async move {
        // Ends with the client, or with the server: tests see that in their own calls.
        let _ = connection.await;
    });
    client
}

/// The rows of a query as text, NULL being empty; panics with the query if it fails.
pub async fn ask(client: &tokio_postgres::Client, query: &str) -> Vec<Vec<String>> {
    let messages = client.simple_query(query).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    messages
        .into_iter()
        .filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).unwrap_or("").to_owned()).collect())
            }
            _ => None,
        })
        .collect()
}

/// The first value of the first row of a query as text, empty if there is none; panics with the query
/// if it fails.
pub async fn one(client: &tokio_postgres::Client, query: &str) -> String {
    let rows = ask(client, query).await;
    rows.into_iter().flatten().next().unwrap_or_default()
}

/// Runs the workload driver; panics with its output unless it succeeds or `may_fail`.
pub fn workload(arguments: &[&str], may_fail: bool) -> String {
    let output = Command::new(archipel_binary())
        .arg("workload")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary can be run");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        may_fail || output.status.success(),
        "archipel workload {arguments:?}: {}\n{text}",
        output.status
    );
    text
}

/// Starts the workload driver beside the test.
pub fn spawn_workload(arguments: &[&str], log: &Path) -> Child {
    let log = File::create(log).expect("the log file can be made");
    Command::new(archipel_binary())
        .arg("workload")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file can be shared"))
        .stderr(log)
        .spawn()
        .expect("the binary can be run")
}
