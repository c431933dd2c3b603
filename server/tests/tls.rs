//! Encrypted connections, with real handshakes: by psql, which is libpq and OpenSSL, and by rustls as a
//! client where bytes matter.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::certificates::{Authority, names};
use common::{Messages, Raw, Server, field, framed, kinds, refused_start, state, told};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// How long what must come may take, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// An authority that has signed a server's certificate.
fn authority() -> Authority {
    let authority = Authority::new("a root");
    authority.issue("server", "/CN=localhost", 4711);
    authority
}

/// A server with it, and further settings.
fn server(authority: &Authority, further: &[String]) -> Server {
    let settings = [authority.settings("server"), further.to_vec()].concat();
    Server::start(&settings.iter().map(String::as_str).collect::<Vec<_>>())
}

/// psql's answer to a query over TCP, with these words in its connection string.
fn psql(server: &Server, words: &str, query: &str) -> Output {
    let target = format!("host=127.0.0.1 port={} user=archipel dbname=archipel {words}", server.port);
    let mut command = Command::new("psql");
    command.args(["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", &target, "-c", query]);
    command.stdin(Stdio::null()).output().expect("psql is installed")
}

/// What a query answers.
fn answer(server: &Server, words: &str, query: &str) -> String {
    let done = psql(server, words, query);
    assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

/// Why psql gets no connection.
fn refusal(server: &Server, words: &str) -> String {
    let done = psql(server, words, "SELECT 1");
    assert!(!done.status.success(), "{words}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

const OWN: &str = "SELECT ssl, version, cipher, bits, client_dn, client_serial, issuer_dn FROM pg_stat_ssl
                   WHERE pid = pg_backend_pid()";

#[test]
fn psql_is_encrypted_if_it_asks_for_it_and_sees_whom_it_talks_to() {
    let authority = authority();
    let server = server(&authority, &[]);
    let root = names("sslrootcert", &authority.root());
    let encrypted = answer(&server, "sslmode=require", OWN);
    assert!(encrypted.starts_with("t|TLSv1.3|TLS_") && encrypted.ends_with("|||"), "{encrypted}");
    assert_eq!(answer(&server, &format!("sslmode=verify-full {root}"), "SHOW ssl"), "on");
    assert_eq!(answer(&server, "sslmode=disable", OWN), "f||||||");
    let other = Authority::new("another root");
    let mistrusting = format!("sslmode=verify-ca {}", names("sslrootcert", &other.root()));
    assert!(refusal(&server, &mistrusting).contains("certificate verify failed"));
    assert_eq!(answer(&server, "sslmode=require", "SHOW ssl_library"), "rustls");
}

#[test]
fn versions_of_the_protocol_are_those_that_are_allowed() {
    let authority = authority();
    let both = server(&authority, &[]);
    let old = "sslmode=require ssl_max_protocol_version=TLSv1.2";
    assert!(answer(&both, old, OWN).starts_with("t|TLSv1.2|ECDHE-ECDSA-AES256-GCM-SHA384|256"));
    let cipher = ["ssl_max_protocol_version=TLSv1.2", "ssl_ciphers=ECDHE-ECDSA-AES128-GCM-SHA256"];
    let older = server(&authority, &cipher.map(str::to_owned));
    assert_eq!(answer(&older, "sslmode=require", OWN), "t|TLSv1.2|ECDHE-ECDSA-AES128-GCM-SHA256|128|||");
    let newer = server(&authority, &["ssl_min_protocol_version=TLSv1.3".to_owned()]);
    assert!(answer(&newer, "sslmode=require", OWN).starts_with("t|TLSv1.3|"));
    assert!(refusal(&newer, old).contains("alert protocol version"));
}

/// A password that is proved to one server is of no use to whoever has another certificate: libpq binds it to the
/// one it has seen, and insists on that if it is told to.
#[test]
fn a_password_is_bound_to_the_certificate_in_force() {
    let authority = authority();
    authority.issue("next", "/CN=localhost", 4712);
    let server = server(&authority, &[]);
    let rules = |method: &str| {
        let file = server.directory.path().join("data/pg_hba.conf");
        let text = format!("host all archipel all trust\nhost all all all {method}\n");
        std::fs::write(file, text).expect("it is ours");
        assert_eq!(answer(&server, "", "SELECT pg_reload_conf()"), "t");
    };
    answer(&server, "", "CREATE ROLE ann LOGIN PASSWORD 'pencil'");
    rules("scram-sha-256");
    let come = |words: &str| {
        psql(
            &server,
            &format!("user=ann password=pencil channel_binding=require {words}"),
            "SELECT session_user",
        )
    };
    let told = |done: &Output| String::from_utf8_lossy(&done.stderr).into_owned();
    let bound = come("sslmode=require");
    assert_eq!(String::from_utf8_lossy(&bound.stdout).trim(), "ann", "{}", told(&bound));
    // The certificate of the handshake counts, and not the first one.
    for ending in ["crt", "key"] {
        let [from, to] = ["next", "server"].map(|name| authority.path(&format!("{name}.{ending}")));
        std::fs::copy(from, to).expect("a file can be copied");
    }
    rules("scram-sha-256");
    let bound = come("sslmode=require");
    assert_eq!(String::from_utf8_lossy(&bound.stdout).trim(), "ann", "{}", told(&bound));
    let plain = come("sslmode=disable");
    assert!(!plain.status.success() && told(&plain).contains("channel binding"), "{}", told(&plain));
    // Nor does a server that asks for less get the password.
    for method in ["password", "trust"] {
        rules(method);
        let less = come("sslmode=require");
        assert!(
            !less.status.success() && told(&less).contains("channel binding"),
            "{method}: {}",
            told(&less)
        );
    }
}

#[test]
fn certificates_of_clients_are_seen_if_they_are_trusted() {
    let authority = authority();
    authority.issue("ann", "/C=DE/O=Acme, Inc./CN=ann", 815);
    authority.issue("eve", "/CN=eve", 816);
    let revoked = names("ssl_crl_file", &authority.revoke("eve"));
    let server = server(&authority, &[names("ssl_ca_file", &authority.root()), revoked]);
    let with = |authority: &Authority, name: &str| {
        let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
        let files = [names("sslcert", &authority.path(&certificate)), names("sslkey", &authority.path(&key))];
        format!("sslmode=require {}", files.join(" "))
    };
    let seen = answer(&server, &with(&authority, "ann"), OWN);
    assert!(seen.ends_with("|/C=DE/O=Acme\\, Inc./CN=ann|815|/CN=a root"), "{seen}");
    // It need not have one.
    assert!(answer(&server, "sslmode=require", OWN).ends_with("|||"));
    let stranger = Authority::new("a root");
    stranger.issue("ann", "/CN=ann", 815);
    for refused in [with(&authority, "eve"), with(&stranger, "ann")] {
        assert!(!refusal(&server, &refused).is_empty(), "{refused}");
    }
    assert!(answer(&server, &with(&authority, "ann"), OWN).contains("CN=ann"));
}

#[test]
fn megabytes_go_both_ways() {
    let authority = authority();
    let server = server(&authority, &[]);
    let (from, to) = (authority.path("from"), authority.path("to"));
    let rows: String = (0..60_000).map(|row| format!("{row}\t{}\n", "x".repeat(row % 200))).collect();
    std::fs::write(&from, &rows).expect("a file can be written");
    answer(&server, "sslmode=require", "CREATE TABLE copied (id int PRIMARY KEY, filler text)");
    for version in ["TLSv1.2", "TLSv1.3"] {
        let words = format!("sslmode=require ssl_max_protocol_version={version}");
        answer(&server, &words, "TRUNCATE copied");
        answer(&server, &words, &format!("\\copy copied FROM '{}'", from.display()));
        answer(&server, &words, &format!("\\copy (SELECT * FROM copied ORDER BY id) TO '{}'", to.display()));
        assert!(std::fs::read_to_string(&to).expect("it was written") == rows, "{version}");
    }
}

/// How a client of rustls's greets.
fn client_config(authority: &Authority, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(authority.root()).expect("openssl has written it");
    roots.add(root).expect("it is a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let mut config = builder
        .with_safe_default_protocol_versions()
        .expect("there are suites for them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

/// An encrypted connection, spoken to in bytes.
struct Encrypted(StreamOwned<ClientConnection, TcpStream>);

impl Encrypted {
    /// One that has asked for it.
    fn requested(server: &Server, authority: &Authority) -> Encrypted {
        let mut raw = server.unopened();
        raw.stream.write_all(&SSL_REQUEST).expect("the server reads");
        let mut answer = [0];
        raw.stream.read_exact(&mut answer).expect("the server answers");
        assert_eq!(answer, *b"S");
        Encrypted::begin(raw.stream, client_config(authority, &[]))
    }

    /// One that begins with TLS.
    fn direct(server: &Server, authority: &Authority, protocols: &[&[u8]]) -> Encrypted {
        Encrypted::begin(server.unopened().stream, client_config(authority, protocols))
    }

    fn begin(stream: TcpStream, config: Arc<ClientConfig>) -> Encrypted {
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(config, name).expect("a good configuration");
        Encrypted(StreamOwned::new(connection, stream))
    }

    fn send_untyped(&mut self, body: &[u8]) {
        let packet = [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat();
        self.0.write_all(&packet).expect("the server reads");
    }

    /// Greets it, and is ready.
    fn open(&mut self) -> Messages {
        self.send_untyped(b"\0\x03\0\0user\0archipel\0database\0archipel\0\0");
        self.until(b'Z')
    }

    fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    fn until(&mut self, kind: u8) -> Messages {
        let mut messages = Vec::new();
        while messages.last().is_none_or(|(last, _)| *last != kind) {
            messages.push(self.receive().expect("the server goes on talking"));
        }
        messages
    }

    fn ask(&mut self, text: &str) {
        let body = [text.as_bytes(), b"\0"].concat();
        self.0.write_all(&framed(b'Q', &body)).expect("the server reads");
    }

    fn query(&mut self, text: &str) -> Messages {
        self.ask(text);
        self.until(b'Z')
    }

    /// The server's certificate.
    fn certificate(&self) -> Vec<u8> {
        let certificates = self.0.conn.peer_certificates().expect("the handshake is over");
        certificates[0].to_vec()
    }
}

/// Whether another session has begun a statement with this in its text.
fn is_running(raw: &mut Raw, part: &str) -> bool {
    let query =
        format!("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%{part}%' AND pid <> pg_backend_pid()");
    kinds(&raw.query(&query)).contains('D')
}

#[test]
fn a_statement_is_cancelled_through_an_encrypted_connection() {
    let authority = authority();
    let server = server(&authority, &[]);
    let mut works = Encrypted::requested(&server, &authority);
    let greeting = works.open();
    let (_, key) = greeting.iter().find(|(kind, _)| *kind == b'K').expect("the key of cancel requests");
    works.ask("SELECT pg_sleep(100000)");
    let begun = Instant::now();
    let mut other = server.raw();
    while !is_running(&mut other, "pg_sleep(1") {
        assert!(begun.elapsed() < PATIENCE, "the statement does not begin");
    }
    let mut cancels = Encrypted::requested(&server, &authority);
    cancels.send_untyped(&[&[0x04, 0xd2, 0x16, 0x2e][..], key].concat());
    assert!(cancels.receive().is_none(), "it is closed without an answer");
    assert_eq!(state(&works.until(b'Z')).as_deref(), Some("57014"));
    assert_eq!(told(&works.query("SELECT 1 + 1")), ["2", "SELECT 1"]);
}

#[test]
fn clients_may_begin_with_tls_if_they_say_what_for() {
    let authority = authority();
    let server = server(&authority, &[]);
    let mut named = Encrypted::direct(&server, &authority, &[b"postgresql"]);
    assert!(kinds(&named.open()).ends_with('Z'));
    assert_eq!(
        told(&named.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")),
        ["t", "SELECT 1"]
    );
    let mut unnamed = Encrypted::direct(&server, &authority, &[]);
    let refused = [unnamed.receive().expect("it is told why")];
    assert_eq!(state(&refused).as_deref(), Some("08P01"));
    let mut other = Encrypted::direct(&server, &authority, &[b"http/1.1"]);
    assert!(other.0.write_all(b"GET").and_then(|()| other.0.flush()).is_err() || other.receive().is_none());
}

#[test]
fn a_second_request_inside_is_an_error() {
    let authority = authority();
    let server = server(&authority, &[]);
    for (code, version) in [([0x04, 0xd2, 0x16, 0x2f], "1234.5679"), ([0x04, 0xd2, 0x16, 0x30], "1234.5680")]
    {
        let mut encrypted = Encrypted::requested(&server, &authority);
        encrypted.send_untyped(&code);
        let refused = [encrypted.receive().expect("it is told why")];
        assert_eq!(state(&refused).as_deref(), Some("0A000"));
        let message = format!("unsupported frontend protocol {version}: server supports 3.0 to 3.2");
        assert_eq!(field(&refused, b'M'), Some(message));
        // The end is said, and no cut.
        assert_eq!(encrypted.0.read(&mut [0; 10]).expect("an end of its own"), 0);
    }
    // A request, and behind it what somebody between may have put there.
    let mut raw = server.unopened();
    raw.stream.write_all(&[&SSL_REQUEST[..], b"\0\0\0\x08more"].concat()).expect("the server reads");
    let refused = [raw.receive().expect("it is told why")];
    assert_eq!(field(&refused, b'M').as_deref(), Some("received unencrypted data after SSL request"));
}

#[test]
fn handshakes_that_stall_and_garbage_keep_nobody_waiting() {
    let authority = authority();
    let server = server(&authority, &[]);
    let mut stalled = Vec::new();
    for count in 0..200_usize {
        let mut raw = server.unopened();
        raw.stream.write_all(&SSL_REQUEST).expect("the server reads");
        let mut answer = [0];
        raw.stream.read_exact(&mut answer).expect("the server answers");
        // The beginning of a record that does not come.
        let record = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        raw.stream.write_all(&record[..count % record.len()]).expect("the server reads");
        stalled.push(raw);
    }
    let garbage: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[22, 3, 1, 0xff, 0xff],
        &[22, 3, 1, 0, 4, 1, 0, 0, 0],
        &[23, 3, 3, 0, 1, 0],
        &[0; 500],
    ];
    for bytes in garbage {
        let mut raw = server.unopened();
        raw.stream.write_all(&SSL_REQUEST).expect("the server reads");
        let mut answer = [0];
        raw.stream.read_exact(&mut answer).expect("the server answers");
        raw.stream.write_all(bytes).expect("the server reads");
        // An alert, perhaps, and the end.
        let _ = raw.stream.read_to_end(&mut Vec::new());
    }
    let mut good = Encrypted::requested(&server, &authority);
    assert!(kinds(&good.open()).ends_with('Z'));
    assert_eq!(told(&good.query("SELECT 1")), ["1", "SELECT 1"]);
    drop(stalled);
}

#[test]
fn a_client_that_reads_late_gets_everything_in_order() {
    let authority = authority();
    let server = server(&authority, &[]);
    let mut late = Encrypted::requested(&server, &authority);
    late.open();
    late.ask("SELECT repeat('x', 1000) || n FROM generate_series(1, 20000) n");
    let begun = Instant::now();
    // Until the server is stuck with what the socket does not take.
    let mut other = server.raw();
    while !is_running(&mut other, "generate_series(1, 2") {
        assert!(begun.elapsed() < PATIENCE, "the statement does not begin");
    }
    let rows = told(&late.until(b'Z'));
    assert_eq!(rows.len(), 20_001);
    for (row, number) in rows.iter().zip(1..=20_000) {
        assert!(row.len() > 1000 && row[1000..] == number.to_string(), "{number}");
    }
}

#[test]
fn a_reload_takes_up_new_files_and_keeps_the_old_ones_if_they_are_wrong() {
    let authority = authority();
    authority.issue("next", "/CN=localhost", 4712);
    let server = server(&authority, &[]);
    let mut old = Encrypted::requested(&server, &authority);
    old.open();
    let first = old.certificate();
    let copy = |from: &str, to: &str| {
        std::fs::copy(authority.path(from), authority.path(to)).expect("a file can be copied");
    };
    copy("next.crt", "server.crt");
    // The new certificate with the old key: everything stays.
    assert_eq!(told(&old.query("SELECT pg_reload_conf()")), ["t", "SELECT 1"]);
    let mut between = Encrypted::requested(&server, &authority);
    between.open();
    assert!(between.certificate() == first);
    copy("next.key", "server.key");
    server.signal("HUP");
    let begun = Instant::now();
    loop {
        let mut new = Encrypted::requested(&server, &authority);
        new.open();
        if new.certificate() != first {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "the new certificate is not taken up");
    }
    assert_eq!(told(&old.query("SELECT 1")), ["1", "SELECT 1"]);
}

#[test]
fn what_cannot_be_served_with_stops_the_start() {
    let authority = authority();
    authority.issue_expired("expired", "/CN=localhost", 4713);
    authority.issue("open", "/CN=localhost", 4714);
    authority.permit("open.key", 0o644);
    authority.issue("broken", "/CN=localhost", 4715);
    authority
        .write("broken.crt", "# ours\n-----BEGIN CERTIFICATE-----\nno base64!\n-----END CERTIFICATE-----\n");
    let with = |name: &str, further: &str| {
        let mut settings = authority.settings(name);
        settings.extend((!further.is_empty()).then(|| further.to_owned()));
        settings
    };
    let other_key = names("ssl_key_file", &authority.path("expired.key"));
    let no_root = names("ssl_ca_file", &authority.path("none"));
    let wrong_list = names("ssl_crl_file", &authority.root());
    for (settings, part) in [
        (with("none", ""), "could not load server certificate file"),
        (with("expired", ""), "certificate has expired"),
        (with("open", ""), "has group or world access"),
        (with("broken", ""), "broken.crt\": line 2: bad base64 decode"),
        (with("server", &other_key), "expired.key\": key values mismatch"),
        (with("server", &no_root), "could not load root certificate file"),
        (with("server", &wrong_list), "could not load SSL certificate revocation list file"),
        (with("server", "ssl_ciphers=RC4"), "could not set the cipher list"),
        (with("server", "ssl_ecdh_curve=nonsense"), "unrecognized curve name"),
        (with("server", "ssl_min_protocol_version=TLSv1"), "invalid value for parameter"),
        (vec!["ssl=on".to_owned()], "server.crt\""),
    ] {
        let (code, said) = refused_start(&settings);
        assert_eq!(code, Some(2), "{settings:?}: {said}");
        assert!(said.contains(part), "{settings:?}: {said}");
    }
    let range = ["ssl_min_protocol_version=TLSv1.3", "ssl_max_protocol_version=TLSv1.2"].map(str::to_owned);
    let (code, said) = refused_start(&range);
    assert!(code == Some(2) && said.contains("could not set SSL protocol version range"), "{said}");
}

/// The first two cores that this test may use.
fn two_cores() -> [String; 2] {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("it is listed");
    let mut cores = list.trim().split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<usize>().expect("a core's number");
        number(first)..=number(last)
    });
    let two = [cores.next(), cores.next()];
    two.map(|core| core.expect("this test takes a core away: it needs two").to_string())
}

/// Gives a server these cores.
fn give(server: &Server, cores: &[String]) {
    let words = ["-c".to_owned(), "-p".to_owned(), cores.join(","), server.process_id().to_string()];
    let given = Command::new("taskset").args(words).output().expect("taskset is installed");
    assert!(given.status.success(), "{}", String::from_utf8_lossy(&given.stderr));
}

/// Waits until a query answers a number.
fn becomes(raw: &mut Raw, query: &str, number: &str) {
    let begun = Instant::now();
    while told(&raw.query(query)).first().is_none_or(|found| found != number) {
        assert!(begun.elapsed() < PATIENCE, "{query}: not {number}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_encrypted_session_goes_to_another_executor_and_back() {
    let cores = two_cores();
    let authority = authority();
    let server = server(&authority, &[]);
    give(&server, &cores);
    let mut watch = server.raw();
    let active = "SELECT count(*) FROM archipel.executors WHERE state = 'active'";
    becomes(&mut watch, active, "2");
    let mut sessions: Vec<Encrypted> = (0..6)
        .map(|number| {
            let mut session = Encrypted::requested(&server, &authority);
            session.open();
            session.query(&format!("SET application_name = 'session {number}'"));
            session
        })
        .collect();
    let mut all_answer = || {
        for (number, session) in sessions.iter_mut().enumerate() {
            let rows = session.query("SELECT current_setting('application_name'), repeat('x', 100000)");
            assert_eq!(told(&rows)[0], format!("session {number}|{}", "x".repeat(100_000)));
        }
    };
    give(&server, &cores[..1]);
    becomes(&mut watch, active, "1");
    becomes(
        &mut watch,
        "SELECT count(*) FROM archipel.executors WHERE state <> 'active' AND sessions > 0",
        "0",
    );
    all_answer();
    give(&server, &cores);
    becomes(&mut watch, active, "2");
    becomes(
        &mut watch,
        "SELECT count(*) FROM archipel.executors WHERE state = 'active' AND sessions < 3",
        "0",
    );
    all_answer();
}

/// What a process has in memory, in bytes.
fn resident_bytes(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id())).expect("it runs");
    let shown = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is listed");
    let kilobytes: usize = shown.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes * 1024
}

#[test]
fn an_idle_connection_takes_little_memory() {
    const CONNECTIONS: usize = 400;
    const BYTES_MAX: usize = 60_000;
    let authority = authority();
    let server = server(&authority, &[]);
    let connect = |count: usize| -> Vec<Encrypted> {
        let connections = (0..count).map(|_| {
            let mut connection = Encrypted::requested(&server, &authority);
            connection.open();
            connection
        });
        connections.collect()
    };
    // What is there once for all of them.
    let _first = connect(CONNECTIONS / 4);
    let before = resident_bytes(&server);
    let _idle = connect(CONNECTIONS);
    let taken = resident_bytes(&server).saturating_sub(before) / CONNECTIONS;
    assert!(taken < BYTES_MAX, "{taken} bytes each");
}

#[test]
fn http_is_encrypted_if_asked() {
    let authority = authority();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = free.local_addr().expect("a bound socket has an address");
    drop(free);
    let server = server(&authority, &[format!("http={address}"), "archipel.http_tls=on".to_owned()]);
    // It listens there a moment after it has begun to listen elsewhere.
    server.raw();
    let connect = || {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream
    };
    for (path, part) in [("/healthz", "ok\n"), ("/metrics", "archipel_up 1")] {
        let mut client = Encrypted::begin(connect(), client_config(&authority, &[b"http/1.1"]));
        client.0.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).expect("the server reads");
        let mut answer = String::new();
        client.0.read_to_string(&mut answer).expect("an answer, and an end of its own");
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains(part), "{path}: {answer}");
    }
    let mut plain = connect();
    plain.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").expect("the server reads");
    let mut answer = Vec::new();
    // An alert, perhaps.
    let _ = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP"), "{answer:?}");
}

#[test]
fn without_tls_clients_are_told_to_go_on_in_plain_text() {
    let server = Server::start(&[]);
    assert_eq!(answer(&server, "sslmode=prefer", OWN), "f||||||");
    assert!(refusal(&server, "sslmode=require").contains("server does not support SSL"));
}
