//! A server process on a directory of its own, and a raw client that speaks bytes.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod certificates;
pub mod clients;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Messages of the server: their kinds and bodies.
pub type Messages = Vec<(u8, Vec<u8>)>;

/// How long to wait for what must come, on however slow a machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A data directory, and the process that serves it.
pub struct Server {
    pub directory: tempfile::TempDir,
    pub port: u16,
    child: Option<Child>,
    /// The process may have so many; `None`: as this one.
    descriptors: Option<u32>,
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

impl Server {
    pub fn start(settings: &[&str]) -> Server {
        Server::of(None, settings)
    }

    /// One that may have so many descriptors.
    pub fn start_with_descriptors(descriptors: u32, settings: &[&str]) -> Server {
        Server::of(Some(descriptors), settings)
    }

    fn of(descriptors: Option<u32>, settings: &[&str]) -> Server {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let mut server = Server { directory, port: free_port(), child: None, descriptors };
        server.launch(settings);
        server
    }

    pub fn command(&self, port: u16) -> Command {
        let binary = env!("CARGO_BIN_EXE_archipel");
        let mut command = match self.descriptors {
            Some(descriptors) => {
                let mut limited = Command::new("prlimit");
                limited.arg(format!("--nofile={descriptors}")).arg(binary);
                limited
            }
            None => Command::new(binary),
        };
        command.args(["serve", "--http", "off", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]);
        command.arg(self.directory.path().join("data"));
        command.arg("--set").arg(format!("unix_socket_directories={}", self.directory.path().display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// On the same port as before, unless somebody has taken it.
    pub fn launch(&mut self, settings: &[&str]) {
        while !self.launched(settings) {
            self.port = free_port();
        }
    }

    /// False if the port was in use.
    fn launched(&mut self, settings: &[&str]) -> bool {
        const ADDRESS_IN_USE: Option<i32> = Some(3);
        let mut command = self.command(self.port);
        for setting in settings {
            command.args(["--set", setting]);
        }
        command.stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary runs");
        let begun = Instant::now();
        // The Unix socket comes after the port, and nobody meets oneself there: two ends of one
        // socket, when a port nobody listens on is taken for the way out.
        let socket = self.directory.path().join(format!(".s.PGSQL.{}", self.port));
        while UnixStream::connect(&socket).is_err() {
            if let Some(status) = child.try_wait().expect("a child can be asked for its status") {
                assert_eq!(status.code(), ADDRESS_IN_USE, "the server does not start");
                return false;
            }
            assert!(begun.elapsed() < PATIENCE, "the server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child = Some(child);
        true
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("a child can be killed");
        child.wait().expect("a killed child ends");
    }

    /// SIGTERM; answers the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("it runs");
        let told = Command::new("kill").arg(child.id().to_string()).status().expect("kill runs");
        assert!(told.success());
        child.wait().expect("a child ends").code()
    }

    /// The number of the process that serves it.
    pub fn process_id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Sends it a signal, by its name without SIG.
    pub fn signal(&self, name: &str) {
        let process = self.process_id().to_string();
        let told = Command::new("kill").args(["-s", name, &process]).status().expect("kill runs");
        assert!(told.success(), "{name}");
    }

    pub async fn client(&self) -> tokio_postgres::Client {
        let config = format!("host=127.0.0.1 port={} user=archipel dbname=archipel", self.port);
        let (client, connection) = tokio_postgres::connect(&config, tokio_postgres::NoTls)
            .await
            .expect("the server takes connections");
        tokio::spawn(connection);
        client
    }

    /// A raw connection, greeted and ready.
    pub fn raw(&self) -> Raw {
        self.raw_in("archipel")
    }

    /// The same in this database.
    pub fn raw_in(&self, database: &str) -> Raw {
        let mut raw = self.unopened();
        raw.greet(&[("user", "archipel"), ("database", database)]);
        let messages = raw.until(b'Z');
        assert_eq!(messages[0].0, b'R');
        raw
    }

    pub fn unopened(&self) -> Raw {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        Raw { stream }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Whatever the verdict was, the process goes.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The exit code of a server that does not start with these settings, and what it says.
pub fn refused_start(settings: &[String]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let mut command = Command::new(env!("CARGO_BIN_EXE_archipel"));
    command.args(["serve", "--http", "off", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(directory.path().join("data")).args(["--set", "unix_socket_directories="]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary runs");
    let begun = Instant::now();
    while child.try_wait().expect("a child can be asked for its status").is_none() {
        if begun.elapsed() > PATIENCE {
            // Or it would outlive the test.
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let done = child.wait_with_output().expect("it has ended");
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

/// A client that sends and sees bytes.
pub struct Raw {
    pub stream: TcpStream,
}

impl Raw {
    /// Sends the startup packet.
    pub fn greet(&mut self, parameters: &[(&str, &str)]) {
        let mut body = vec![0, 3, 0, 0];
        for (name, value) in parameters {
            body.extend_from_slice(&[name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        }
        body.push(0);
        self.send_untyped(&body);
    }

    pub fn send_untyped(&mut self, body: &[u8]) {
        let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
        packet.extend_from_slice(body);
        self.stream.write_all(&packet).expect("the server reads");
    }

    pub fn send(&mut self, kind: u8, body: &[u8]) {
        self.stream.write_all(&framed(kind, body)).expect("the server reads");
    }

    /// The next message, `None` when the server has closed the connection.
    pub fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    /// Messages up to and including one of this kind.
    pub fn until(&mut self, kind: u8) -> Messages {
        let mut messages = Vec::new();
        loop {
            let message = self.receive().expect("the server goes on talking");
            let done = message.0 == kind;
            messages.push(message);
            if done {
                return messages;
            }
        }
    }

    /// Sends framed messages and Sync in one piece; answers the messages up to ReadyForQuery.
    pub fn pipeline(&mut self, messages: &[Vec<u8>]) -> Messages {
        let bytes = [messages.concat(), framed(b'S', b"")].concat();
        self.stream.write_all(&bytes).expect("the server reads");
        self.until(b'Z')
    }

    /// Runs a simple query; answers the messages up to ReadyForQuery.
    pub fn query(&mut self, text: &str) -> Messages {
        let mut body = text.as_bytes().to_vec();
        body.push(0);
        self.send(b'Q', &body);
        self.until(b'Z')
    }
}

pub fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Parse of the unnamed statement.
pub fn parse(text: &str) -> Vec<u8> {
    framed(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat())
}

/// The SQLSTATE of the first ErrorResponse.
pub fn state(messages: &[(u8, Vec<u8>)]) -> Option<String> {
    field(messages, b'C')
}

/// The field of the first ErrorResponse with this code.
pub fn field(messages: &[(u8, Vec<u8>)], code: u8) -> Option<String> {
    let (_, body) = messages.iter().find(|(kind, _)| *kind == b'E')?;
    let fields = body.split(|byte| *byte == 0);
    let found = fields.filter_map(|field| field.strip_prefix(&[code])).next()?;
    Some(String::from_utf8_lossy(found).into_owned())
}

/// The kinds of messages, in order.
pub fn kinds(messages: &[(u8, Vec<u8>)]) -> String {
    messages.iter().map(|(kind, _)| *kind as char).collect()
}

/// The rows and command tags of an answer, and its error; `s` for a portal that is suspended.
pub fn told(messages: &[(u8, Vec<u8>)]) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    messages
        .iter()
        .filter_map(|(kind, body)| match kind {
            b'D' => {
                let count = u16::from_be_bytes([body[0], body[1]]);
                let (mut rest, mut row) = (&body[2..], Vec::new());
                for _ in 0..count {
                    let length = i32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]).max(0) as usize;
                    row.push(text(&rest[4..4 + length]));
                    rest = &rest[4 + length..];
                }
                Some(row.join("|"))
            }
            b'C' => Some(text(&body[..body.len() - 1])),
            b's' => Some("s".to_owned()),
            b'E' => state(&[(*kind, body.clone())]),
            _ => None,
        })
        .collect()
}

/// Waits until so many sessions wait for a lock.
pub fn wait_for_waiters(other: &mut Raw, count: usize) {
    let waiting = format!("SELECT 1 FROM pg_locks WHERE NOT granted HAVING count(DISTINCT pid) >= {count}");
    for _ in 0..6000 {
        if kinds(&other.query(&waiting)).contains('D') {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("nobody waits");
}
