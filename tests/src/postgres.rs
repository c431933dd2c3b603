//! A PostgreSQL 15 cluster of the test's own: the oracle.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::port;
use crate::secured::{self, Certificates};

/// Where Debian's package puts the server's programs.
const BIN: &str = "/usr/lib/postgresql/15/bin";

/// A running cluster in a temporary directory; stopped and removed on drop.
pub struct Postgres {
    directory: tempfile::TempDir,
    port: u16,
}

impl Postgres {
    /// A new cluster: UTF8, C locale, trust on loopback.
    pub fn start() -> Postgres {
        Postgres::begin(tempfile::tempdir().expect("a temporary directory can be made"), "")
    }

    /// One that takes nobody over TCP without TLS and the password.
    pub fn start_secured(certificates: &Certificates) -> Postgres {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        // Of its own: nobody else may own the key.
        for name in ["server.crt", "server.key", "pg_hba.conf"] {
            let copy = directory.path().join(name);
            std::fs::copy(certificates.path(name), copy).expect("a file can be copied");
        }
        let settings = Certificates::settings(directory.path());
        let options: String = settings.iter().map(|setting| format!(" -c {setting}")).collect();
        let postgres = Postgres::begin(directory, &options);
        let password = format!("ALTER ROLE archipel PASSWORD '{}'", secured::PASSWORD);
        run(postgres.client("psql").args(["-X", "-q", "-d", "archipel", "-c", &password]));
        postgres
    }

    /// One that lets people in by these rules, in pg_hba.conf's syntax.
    pub fn start_with_rules(rules: &str) -> Postgres {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let path = directory.path().join("pg_hba.conf");
        std::fs::write(&path, rules).expect("a file can be written");
        let option = format!(" -c hba_file={}", path.display());
        Postgres::begin(directory, &option)
    }

    fn begin(directory: tempfile::TempDir, more: &str) -> Postgres {
        if root() {
            run(Command::new("chown").args(["-R", "postgres"]).arg(directory.path()));
        }
        let data = directory.path().join("data");
        run(program("initdb")
            .args(["-A", "trust", "-U", "archipel", "--locale=C", "-E", "UTF8", "--no-sync", "-D"])
            .arg(&data));
        for _ in 0..5 {
            let port = port::free();
            // The time zone is the machine's otherwise.
            let options = format!(
                "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c fsync=off \
                 -c timezone=UTC{more}",
                directory.path().display()
            );
            let started = program("pg_ctl")
                .args(["start", "-w", "-t", "300", "-o", &options, "-l"])
                .arg(directory.path().join("log"))
                .arg("-D")
                .arg(&data)
                .stdout(Stdio::null())
                .status()
                .expect("pg_ctl can be run");
            if started.success() {
                let postgres = Postgres { directory, port };
                run(postgres.client("createdb").arg("archipel"));
                return postgres;
            }
        }
        let log = std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
        panic!("PostgreSQL did not start in five tries:\n{log}");
    }

    /// A program of the package that connects over the socket.
    fn client(&self, name: &str) -> Command {
        let mut command = Command::new(PathBuf::from(BIN).join(name));
        command.arg("-h").arg(self.directory.path()).args(["-U", "archipel", "-p", &self.port.to_string()]);
        command
    }

    pub fn url(&self) -> String {
        format!("postgresql://archipel@127.0.0.1:{}/archipel", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = program("pg_ctl")
            .args(["stop", "-m", "immediate", "-D"])
            .arg(self.directory.path().join("data"))
            .stdout(Stdio::null())
            .status();
    }
}

/// Where PostgreSQL's own tests lie; downloads them unless that is done.
pub fn tests() -> PathBuf {
    let script = crate::file("postgresql/prepare");
    let output = Command::new(&script).stderr(Stdio::inherit()).output().expect("the script can be run");
    assert!(output.status.success(), "{}: {}", script.display(), output.status);
    PathBuf::from(String::from_utf8(output.stdout).expect("a path is printed").trim())
}

fn root() -> bool {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// A program of the package; as user `postgres` when we are root, whom it refuses to serve.
fn program(name: &str) -> Command {
    let path = PathBuf::from(BIN).join(name);
    assert!(path.exists(), "{} is missing: install postgresql-15 (tests/run does)", path.display());
    if root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(path);
        command.current_dir("/");
        command
    } else {
        Command::new(path)
    }
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("the program can be run");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
