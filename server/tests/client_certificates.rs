//! Who comes in by a certificate, as psql (libpq and OpenSSL) shows it: names, maps, revocation; and keys of the
//! server that need a passphrase.

mod common;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::certificates::{Authority, names};
use common::{Server, refused_start};

/// How long what must come may take, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// An authority with a server's certificate, and those of clients.
fn authority() -> Authority {
    let authority = Authority::new("a root");
    authority.issue("server", "/CN=localhost", 1);
    authority.issue("ann", "/C=DE/O=Acme, Inc./CN=ann", 2);
    // Its common name looks like the rest of the other one's.
    authority.issue("forged", "/C=DE/CN=ann,O=Acme\\\\, Inc.", 3);
    authority.issue("eve", "/CN=eve", 4);
    authority
}

fn settings(authority: &Authority) -> Vec<String> {
    [authority.settings("server"), vec![names("ssl_ca_file", &authority.root())]].concat()
}

fn start(settings: &[String]) -> Server {
    Server::start(&settings.iter().map(String::as_str).collect::<Vec<_>>())
}

fn psql(target: &str, query: &str) -> Result<String, String> {
    let mut command = Command::new("psql");
    command.args(["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", target, "-c", query]);
    let done = command.env("PGPASSWORD", "pencil").stdin(Stdio::null()).output().expect("psql is installed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

/// By the superuser on the Unix socket.
fn administer(server: &Server, query: &str) -> String {
    let target = format!(
        "host={} port={} user=archipel dbname=archipel",
        server.directory.path().display(),
        server.port
    );
    psql(&target, query).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// Somebody who shows this certificate, if any, and these words in its connection string.
fn come(server: &Server, authority: &Authority, user: &str, certificate: &str) -> Result<String, String> {
    let mut words =
        format!("host=127.0.0.1 port={} user={user} dbname=archipel sslmode=require", server.port);
    match certificate {
        // libpq would look for one in the home directory.
        "" => words.push_str(" sslcert=/nonexistent"),
        name => {
            let file = |ending: &str| authority.path(&format!("{name}.{ending}"));
            words.push_str(&format!(" {} {}", names("sslcert", &file("crt")), names("sslkey", &file("key"))));
        }
    }
    psql(&words, "SELECT session_user")
}

/// Writes both files, and has them read.
fn rules(server: &Server, hba: &str, ident: &str) {
    let data = server.directory.path().join("data");
    std::fs::write(data.join("pg_hba.conf"), format!("local all all trust\n{hba}")).expect("it is ours");
    std::fs::write(data.join("pg_ident.conf"), ident).expect("it is ours");
    administer(server, "SELECT pg_reload_conf()");
}

#[test]
fn certificates_let_in_whom_their_names_may() {
    let authority = authority();
    let server = start(&settings(&authority));
    for role in ["ann", "bob", "dora", "anyone", "fuller"] {
        administer(&server, &format!("CREATE ROLE {role} LOGIN PASSWORD 'pencil'"));
    }
    rules(
        &server,
        "hostnossl all all all reject\n\
         hostssl all ann all cert\n\
         hostssl all bob all cert map=m\n\
         hostssl all dora all cert clientname=DN map=d\n\
         hostssl all anyone all scram-sha-256 clientcert=verify-ca\n\
         hostssl all fuller all scram-sha-256 clientcert=verify-full\n",
        "m ann bob\nd \"CN=ann,O=Acme\\, Inc.,C=DE\" dora\n",
    );
    let failed = |user: &str| format!("certificate authentication failed for user \"{user}\"");
    for (user, certificate, expected) in [
        ("ann", "ann", Ok("ann")),
        ("bob", "ann", Ok("bob")),
        ("dora", "ann", Ok("dora")),
        ("anyone", "eve", Ok("anyone")),
        ("ann", "eve", Err(failed("ann"))),
        ("bob", "eve", Err(failed("bob"))),
        ("dora", "forged", Err(failed("dora"))),
        ("dora", "eve", Err(failed("dora"))),
        // The password is right.
        ("fuller", "eve", Err("password authentication failed for user \"fuller\"".to_owned())),
        ("ann", "", Err("connection requires a valid client certificate".to_owned())),
        ("anyone", "", Err("connection requires a valid client certificate".to_owned())),
    ] {
        let came = come(&server, &authority, user, certificate);
        match expected {
            Ok(user) => assert_eq!(came.as_deref(), Ok(user), "{certificate}"),
            Err(part) => {
                let told = came.expect_err(&format!("{user} comes in by \"{certificate}\""));
                assert!(told.contains(&part), "{user} {certificate}: {told}");
            }
        }
    }
    let plain = format!("host=127.0.0.1 port={} user=ann dbname=archipel sslmode=disable", server.port);
    assert!(psql(&plain, "SELECT 1").is_err_and(|told| told.contains("pg_hba.conf rejects connection")));
}

#[test]
fn lists_of_a_directory_keep_out_whom_they_name() {
    let authority = authority();
    authority.revoke("eve");
    let directory = authority.path("lists");
    std::fs::create_dir(&directory).expect("a directory can be made");
    let with_lists = [settings(&authority), vec![names("ssl_crl_dir", &directory)]].concat();
    let (code, said) = refused_start(&with_lists);
    assert!(code == Some(2) && said.contains("revocation list directory"), "{said}");
    let hash = authority.openssl(&["crl", "-hash", "-noout", "-in", "revoked.pem"]);
    std::fs::copy(authority.path("revoked.pem"), directory.join(format!("{hash}.r0")))
        .expect("it can be copied");
    let server = start(&with_lists);
    administer(&server, "CREATE ROLE ann LOGIN; CREATE ROLE eve LOGIN");
    rules(&server, "hostssl all all all cert\n", "");
    assert_eq!(come(&server, &authority, "ann", "ann").as_deref(), Ok("ann"));
    assert!(come(&server, &authority, "eve", "eve").is_err());
}

#[test]
fn a_key_opens_with_its_passphrase() {
    let authority = authority();
    let lock = |key: &str, to: &str| {
        let words =
            ["pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", key, "-out", to, "-passout", "pass:sesame"];
        authority.openssl(&words);
        authority.permit(to, 0o600);
    };
    lock("server.key", "locked.key");
    let mut base = settings(&authority);
    base.push(names("ssl_key_file", &authority.path("locked.key")));
    let with = |command: &str, further: &str| {
        let mut all = base.clone();
        all.push(format!("ssl_passphrase_command={command}"));
        all.extend((!further.is_empty()).then(|| further.to_owned()));
        all
    };
    for (command, part) in [
        ("", "requires a passphrase"),
        ("echo wrong", "bad decrypt"),
        ("echo sesame; exit 1", "ssl_passphrase_command failed"),
    ] {
        let (code, said) = refused_start(&with(command, ""));
        assert!(code == Some(2) && said.contains(part), "{command}: {said}");
        assert!(!said.contains("sesame"), "{said}");
    }
    // Who is asked at a reload only if it is said: else the old one stays.
    authority.issue("next", "/CN=localhost", 5);
    for (reloads, expected) in [("off", "01"), ("on", "05")] {
        authority.openssl(&["x509", "-in", "server.crt", "-out", "used.crt"]);
        lock("server.key", "locked.key");
        let mut all = with("echo sesame", &format!("ssl_passphrase_command_supports_reload={reloads}"));
        all.push(names("ssl_cert_file", &authority.path("used.crt")));
        let server = start(&all);
        assert_eq!(serial(&authority, &server), "01");
        authority.openssl(&["x509", "-in", "next.crt", "-out", "used.crt"]);
        lock("next.key", "locked.key");
        administer(&server, "SELECT pg_reload_conf()");
        assert_eq!(serial(&authority, &server), expected, "{reloads}");
    }
}

/// The number of the certificate that a server shows.
fn serial(authority: &Authority, server: &Server) -> String {
    let address = format!("127.0.0.1:{}", server.port);
    let shown = authority.openssl(&["s_client", "-starttls", "postgres", "-connect", &address]);
    authority.write("shown.crt", &shown);
    let serial = authority.openssl(&["x509", "-in", "shown.crt", "-noout", "-serial"]);
    serial.trim_start_matches("serial=").to_owned()
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Whatever the verdict was, it goes.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_log_says_what_is_wrong_with_a_certificate_of_version_1() {
    let authority = authority();
    authority.issue_old("old", "/CN=old", 6);
    let mut server = start(&settings(&authority));
    // Once it has answered it is told to stop, and not killed on its way up.
    assert_eq!(administer(&server, "SELECT 1"), "1");
    assert_eq!(server.stop(), Some(0));
    let path = server.directory.path().join("log");
    let mut command = server.command(server.port);
    for setting in settings(&authority) {
        command.args(["--set", &setting]);
    }
    let log = std::fs::File::create(&path).expect("a log can be made");
    let _process = Process(command.stderr(Stdio::from(log)).spawn().expect("the binary runs"));
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "nobody says so: {:?}", std::fs::read_to_string(&path));
        // It may not listen yet.
        let refused = come(&server, &authority, "old", "old").is_err();
        let said = std::fs::read_to_string(&path).expect("it is there");
        if refused && said.contains("the client's certificate must be of X.509 version 3") {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
