//! Who comes in: `pg_hba.conf` and passwords, with real clients and byte by byte.

mod common;

use std::io::{Read, Write};
use std::net::{IpAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{Raw, Server, field, framed, state};
use tokio_postgres::{Client, Error, NoTls};

/// How long to wait for what must come, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server, and the superuser's session on its Unix socket, which is always trusted.
struct House {
    server: Server,
    admin: Client,
}

/// How somebody comes in.
struct Visit<'v> {
    host: &'v str,
    user: &'v str,
    password: &'v str,
}

async fn connect(server: &Server, visit: &Visit<'_>) -> Result<Client, Error> {
    let Visit { host, user, password } = visit;
    let config =
        format!("host={host} port={} user={user} dbname=archipel password='{password}'", server.port);
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl House {
    async fn open(settings: &[&str]) -> House {
        House::of(Server::start(settings)).await
    }

    async fn of(server: Server) -> House {
        let directory = server.directory.path().display().to_string();
        let visit = Visit { host: &directory, user: "archipel", password: "none" };
        let admin = connect(&server, &visit).await.expect("a Unix socket is trusted");
        House { server, admin }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.server.directory.path().join("data").join(name)
    }

    /// Writes lines below the one for the superuser, and has them read before anything else happens.
    async fn rules(&self, lines: &str) {
        let text = format!("local all archipel trust\n{lines}\n");
        std::fs::write(self.file("pg_hba.conf"), text).expect("the data directory is ours");
        self.sql("SELECT pg_reload_conf()").await;
    }

    async fn sql(&self, text: &str) {
        self.admin.batch_execute(text).await.unwrap_or_else(|error| panic!("{error:?} for {text}"));
    }

    /// `ok`, or how somebody who comes over loopback is refused.
    async fn enter(&self, user: &str, password: &str) -> String {
        told(connect(&self.server, &Visit { host: "127.0.0.1", user, password }).await)
    }
}

fn told(entered: Result<Client, Error>) -> String {
    match entered {
        Ok(_) => "ok".to_owned(),
        Err(error) => match error.as_db_error() {
            Some(error) => format!("{} {}", error.code().code(), error.message()),
            None => format!("{error:?}"),
        },
    }
}

const ROLES: &str = "
    CREATE ROLE scram LOGIN PASSWORD 'pencil';
    SET password_encryption = md5;
    CREATE ROLE old LOGIN PASSWORD 'pencil';
    RESET password_encryption;
    CREATE ROLE late LOGIN PASSWORD 'pencil' VALID UNTIL '2001-01-01';
    CREATE ROLE timely LOGIN PASSWORD 'pencil' VALID UNTIL 'infinity';
    CREATE ROLE bare LOGIN;
    CREATE ROLE walled PASSWORD 'pencil'";

#[tokio::test]
async fn each_method_lets_in_whom_it_shall() {
    let house = House::open(&[]).await;
    house.sql(ROLES).await;
    let failed = |user: &str| format!("28P01 password authentication failed for user \"{user}\"");
    for method in ["scram-sha-256", "md5", "password"] {
        house.rules(&format!("host all all 127.0.0.0/8 {method}")).await;
        assert_eq!(house.enter("scram", "pencil").await, "ok", "{method}");
        assert_eq!(house.enter("timely", "pencil").await, "ok", "{method}");
        // An MD5 hash is of no use to SCRAM.
        let old = if method == "scram-sha-256" { failed("old") } else { "ok".to_owned() };
        assert_eq!(house.enter("old", "pencil").await, old, "{method}");
        for (user, password) in
            [("scram", "Pencil"), ("old", "x"), ("late", "pencil"), ("bare", "x"), ("nobody", "pencil")]
        {
            assert_eq!(house.enter(user, password).await, failed(user), "{method} {user}");
        }
        // What a role may do is asked once it is known.
        let walled = "28000 role \"walled\" is not permitted to log in";
        assert_eq!(house.enter("walled", "pencil").await, walled, "{method}");
        assert_eq!(house.enter("walled", "x").await, failed("walled"), "{method}");
    }
    house.rules("host all all 127.0.0.0/8 trust").await;
    assert_eq!(house.enter("bare", "x").await, "ok");
    assert_eq!(house.enter("nobody", "x").await, "28000 role \"nobody\" does not exist");
}

#[tokio::test]
async fn the_first_line_that_fits_decides() {
    let house = House::open(&[]).await;
    house.sql(ROLES).await;
    house.sql("CREATE ROLE staff; GRANT staff TO scram").await;
    let lines = "host archipel bare 127.0.0.1/32 reject\n\
                 hostssl all all all trust\n\
                 host all +staff samehost scram-sha-256\n\
                 host sameuser,postgres all all trust";
    house.rules(lines).await;
    assert_eq!(
        house.enter("bare", "x").await,
        "28000 pg_hba.conf rejects connection for host \"127.0.0.1\", user \"bare\", database \"archipel\", \
         no encryption"
    );
    assert_eq!(house.enter("scram", "pencil").await, "ok");
    for user in ["old", "nobody"] {
        assert_eq!(
            house.enter(user, "pencil").await,
            format!(
                "28000 no pg_hba.conf entry for host \"127.0.0.1\", user \"{user}\", database \"archipel\", \
                 no encryption"
            )
        );
    }
    let directory = house.server.directory.path().display().to_string();
    let local = Visit { host: &directory, user: "bare", password: "x" };
    assert_eq!(
        told(connect(&house.server, &local).await),
        "28000 no pg_hba.conf entry for host \"[local]\", user \"bare\", database \"archipel\", no encryption"
    );
}

#[tokio::test]
async fn wrong_lines_stop_a_start_and_leave_a_reload_as_it_was() {
    let mut house = House::open(&[]).await;
    house.rules("host all all 127.0.0.1/32 trust").await;
    house.rules("host all all 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/33 trust").await;
    assert_eq!(house.enter("archipel", "x").await, "ok", "the old rules hold");
    let rows = house
        .admin
        .query("SELECT line_number, type, database, error FROM pg_hba_file_rules ORDER BY 1", &[])
        .await
        .unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0].get::<_, Vec<&str>>(2), ["all"]);
    assert_eq!((rows[1].get::<_, &str>(1), rows[1].get::<_, Option<&str>>(3)), ("host", None));
    assert_eq!(rows[2].get::<_, Option<&str>>(1), None);
    assert_eq!(rows[2].get::<_, &str>(3), "invalid CIDR mask in address \"127.0.0.1/33\"");
    house.sql("CREATE ROLE other; SET ROLE other").await;
    for view in ["pg_hba_file_rules", "pg_ident_file_mappings"] {
        let error = house.admin.query(&format!("SELECT * FROM {view}"), &[]).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{view}");
    }
    house.server.stop();
    let output = house.server.command(0).output().expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("line 3 of configuration file") && text.contains("pg_hba.conf"), "{text}");
    std::fs::remove_file(house.file("pg_hba.conf")).unwrap();
    std::fs::write(house.file("pg_ident.conf"), "m root\n").unwrap();
    let output = house.server.command(0).output().expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("line 1 of") && text.contains("missing entry at end of line"), "{text}");
    let named = house.server.command(0).args(["--set", "hba_file=/nonexistent"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&named.stderr);
    assert!(named.status.code() == Some(2) && text.contains("could not open configuration file"), "{text}");
}

#[tokio::test]
async fn users_of_the_machine_come_in_as_the_map_says() {
    let house = House::open(&[]).await;
    let name = std::process::Command::new("id").arg("-un").output().expect("id runs");
    let name = String::from_utf8_lossy(&name.stdout).trim().to_owned();
    std::fs::write(house.file("pg_ident.conf"), format!("m /^({name})$ archipel\nm {name} other\n")).unwrap();
    house.sql("CREATE ROLE other LOGIN; CREATE ROLE third LOGIN").await;
    house.sql(&format!("CREATE ROLE \"{name}\" LOGIN")).await;
    let text = "host all archipel 127.0.0.1/32 trust\nlocal all archipel,other,third peer map=m\nlocal all all peer\n";
    std::fs::write(house.file("pg_hba.conf"), text).unwrap();
    house.sql("SELECT pg_reload_conf()").await;
    let directory = house.server.directory.path().display().to_string();
    let failed = |user: &str| format!("28000 Peer authentication failed for user \"{user}\"");
    for (user, expected) in [
        ("archipel", "ok".to_owned()),
        ("other", "ok".to_owned()),
        ("third", failed("third")),
        (name.as_str(), "ok".to_owned()),
        ("nobody", failed("nobody")),
    ] {
        let visit = Visit { host: &directory, user, password: "x" };
        assert_eq!(told(connect(&house.server, &visit).await), expected, "{user}");
    }
}

/// A raw connection that has said who it is.
fn greeted(server: &Server, user: &str) -> Raw {
    let mut raw = server.unopened();
    let body = format!("\0\x03\0\0user\0{user}\0database\0archipel\0\0");
    raw.send_untyped(body.as_bytes());
    raw
}

const FIRST: &[u8] = b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc";

/// Goes through SCRAM without the password: the salt, the rounds and the SQLSTATE.
fn fail_by_scram(server: &Server, user: &str) -> (String, String, String) {
    let mut raw = greeted(server, user);
    assert_eq!(raw.receive(), Some((b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0".to_vec())));
    raw.send(b'p', FIRST);
    let (kind, body) = raw.receive().expect("a challenge");
    assert_eq!((kind, &body[..4]), (b'R', &b"\0\0\0\x0b"[..]));
    let challenge = String::from_utf8_lossy(&body[4..]).into_owned();
    let parts: Vec<&str> = challenge.split(',').collect();
    assert!(parts[0].starts_with("r=abc") && parts[0].len() == 5 + 24, "{challenge}");
    raw.send(b'p', format!("c=biws,{},p={}=", parts[0], "A".repeat(43)).as_bytes());
    let last = raw.receive().expect("an error");
    assert!(raw.receive().is_none());
    (parts[1].to_owned(), parts[2].to_owned(), state(&[last]).unwrap_or_default())
}

#[tokio::test]
async fn a_role_that_there_is_not_fails_like_any_other() {
    let mut house = House::open(&[]).await;
    house.sql(ROLES).await;
    house.rules("host all all all scram-sha-256").await;
    let known = fail_by_scram(&house.server, "scram");
    assert_eq!(known, fail_by_scram(&house.server, "scram"));
    let mut salts = vec![known.0];
    for user in ["nobody", "somebody", "bare", "old", "late"] {
        let (salt, rounds, state) = fail_by_scram(&house.server, user);
        assert_eq!((rounds.as_str(), state.as_str()), ("i=4096", "28P01"), "{user}");
        assert!(!salts.contains(&salt), "{user}");
        assert_eq!(salt.len(), salts[0].len(), "{user}");
        salts.push(salt);
    }
    // Nor does a restart give it away.
    house.server.stop();
    house.server.launch(&[]);
    assert_eq!(fail_by_scram(&house.server, "nobody").0, salts[1]);
}

/// Guesses come one after the other, and neither their time nor that of a role that there is not tells anything.
#[tokio::test]
async fn a_login_that_fails_waits_for_its_answer() {
    const WAITS: Duration = Duration::from_millis(300);
    let house = House::open(&[]).await;
    house.sql(ROLES).await;
    for method in ["scram-sha-256", "md5", "password"] {
        house.rules(&format!("host all all all {method}")).await;
        for user in ["scram", "old", "bare", "late", "walled", "nobody"] {
            let begun = Instant::now();
            let told = house.enter(user, "guessed").await;
            assert!(told.starts_with("28P01"), "{method} {user}: {told}");
            assert!(begun.elapsed() >= WAITS, "{method} {user}: {:?}", begun.elapsed());
        }
    }
}

#[tokio::test]
async fn garbage_in_any_state_is_08p01_and_the_end() {
    let house = House::open(&[]).await;
    house.sql(ROLES).await;
    let refused = |raw: &mut Raw, what: &str| {
        let message = raw.receive().unwrap_or_else(|| panic!("no error: {what}"));
        let messages = [message];
        assert_eq!(state(&messages).as_deref(), Some("08P01"), "{what}");
        assert_eq!(field(&messages, b'S').as_deref(), Some("FATAL"), "{what}");
        // Closed, whether or not it had been sent more than was read.
        assert!(raw.receive().is_none(), "{what}");
    };
    let unframed: [&[u8]; 6] = [
        b"Q\0\0\0\x0dSELECT 1\0",
        b"X\0\0\0\x04",
        b"p\0\0\0\0",
        b"p\0\0\0\x03",
        b"p\x7f\xff\xff\xff",
        b"p\xff\xff\xff\xff",
    ];
    for method in ["password", "md5", "scram-sha-256"] {
        house.rules(&format!("host all all all {method}")).await;
        for user in ["scram", "old", "nobody"] {
            for bytes in unframed {
                let mut raw = greeted(&house.server, user);
                assert_eq!(raw.receive().expect("a request").0, b'R');
                raw.stream.write_all(bytes).unwrap();
                refused(&mut raw, &format!("{method} {user} {bytes:?}"));
            }
        }
    }
    for body in [
        &b""[..],
        b"SCRAM-SHA-256",
        b"SCRAM-SHA-256\0\0",
        b"SCRAM-SHA-256\0\0\0\0\x0c",
        b"SCRAM-SHA-256\0\0\0\0\0",
        b"SCRAM-SHA-256\0\0\0\0\x01n,,n=,r=abc",
        b"SCRAM-SHA-256\0\x80\0\0\0n,,n=,r=abc",
        b"SCRAM-SHA-256\0\0\0\0\x0bp,,n=,r=abc",
        b"SCRAM-SHA-256-PLUS\0\0\0\0\x0bn,,n=,r=abc",
        b"SCRAM-SHA-1\0\0\0\0\x0bn,,n=,r=abc",
        &[b'x'; 1024],
    ] {
        let mut raw = greeted(&house.server, "scram");
        assert_eq!(raw.receive().expect("a request").0, b'R');
        raw.send(b'p', body);
        refused(&mut raw, &format!("{body:?}"));
    }
    let finals: [&[u8]; 5] = [b"", b"c=biws", b"c=biws,r=abc,p=AAAA", b"\0", &[b'='; 1000]];
    for bytes in unframed.into_iter().map(<[u8]>::to_vec).chain(finals.map(|body| framed(b'p', body))) {
        let mut raw = greeted(&house.server, "scram");
        assert_eq!(raw.receive().expect("a request").0, b'R');
        raw.send(b'p', FIRST);
        assert_eq!(raw.receive().expect("a challenge").0, b'R');
        raw.stream.write_all(&bytes).unwrap();
        refused(&mut raw, &format!("{bytes:?}"));
    }
    assert_eq!(house.enter("scram", "pencil").await, "ok");
}

#[tokio::test]
async fn clients_that_do_not_say_who_they_are_take_no_place_and_go() {
    let settings = ["max_connections=3", "superuser_reserved_connections=0", "authentication_timeout=2"];
    let house = House::open(&settings).await;
    house.sql(ROLES).await;
    house.rules("host all all all scram-sha-256").await;
    let mut idle: Vec<Raw> = (0..40)
        .map(|number| match number % 2 {
            0 => house.server.unopened(),
            _ => greeted(&house.server, "scram"),
        })
        .collect();
    assert_eq!(house.enter("scram", "pencil").await, "ok");
    for raw in &mut idle {
        let mut rest = Vec::new();
        raw.stream.read_to_end(&mut rest).expect("it is closed in time");
    }
    assert_eq!(house.enter("scram", "pencil").await, "ok");
}

#[tokio::test]
async fn who_keeps_others_waiting_is_told_and_goes() {
    // A quarter of them are for who comes by TCP and is not known yet.
    let server = Server::start_with_descriptors(200, &["authentication_timeout=600"]);
    let house = House::of(server).await;
    house.sql(ROLES).await;
    house.rules("host all all all scram-sha-256").await;
    let mut silent: Vec<Raw> = (0..60)
        .map(|number| match number % 2 {
            0 => house.server.unopened(),
            _ => greeted(&house.server, "scram"),
        })
        .collect();
    assert_eq!(house.enter("scram", "pencil").await, "ok");
    // Ten of them had to wait for places, and so had the one that came in.
    for (number, raw) in silent.iter_mut().take(11).enumerate() {
        if number % 2 == 1 {
            assert_eq!(raw.receive().expect("a request").0, b'R');
        }
        let messages = [raw.receive().unwrap_or_else(|| panic!("{number} is told nothing"))];
        assert_eq!(state(&messages).as_deref(), Some("53300"));
        assert_eq!(field(&messages, b'S').as_deref(), Some("FATAL"));
        assert!(raw.receive().is_none());
    }
}

/// An address of this machine that is not loopback, if it has one: nothing is sent.
fn own_address() -> Option<IpAddr> {
    let routed = || {
        let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect("192.0.2.1:9").ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    // Without a route there may be an address still.
    let listed = || {
        let output = std::process::Command::new("hostname").arg("-I").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().filter_map(|address| address.parse().ok()).find(IpAddr::is_ipv4)
    };
    routed().filter(|address| !address.is_loopback()).or_else(listed)
}

/// Says that something could not be looked at here, where the test harness does not swallow it.
fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED: {what}");
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

/// A server whose data directory is complete.
async fn started() -> Server {
    House::open(&[]).await.server
}

const EVERYWHERE: [&str; 2] = ["--set", "listen_addresses=0.0.0.0"];

/// The same server again, for all machines, with the password that the environment gives.
fn launch_everywhere(server: &Server, password: &str) -> Process {
    let log = std::fs::File::create(server.directory.path().join("log")).expect("a log can be made");
    let mut command = server.command(server.port);
    command.args(EVERYWHERE).env("ARCHIPEL_PASSWORD", password).stderr(Stdio::from(log));
    let process = Process(command.spawn().expect("the binary runs"));
    let begun = Instant::now();
    let socket = server.directory.path().join(format!(".s.PGSQL.{}", server.port));
    // A socket that was left behind takes nobody.
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the server does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
    process
}

#[tokio::test]
async fn other_machines_come_in_once_a_superuser_has_a_password() {
    let mut server = started().await;
    assert_eq!(server.stop(), Some(0));
    let refused = server.command(server.port).args(EVERYWHERE).output().expect("the binary runs");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("refusing to listen on 0.0.0.0") && text.contains("ARCHIPEL_PASSWORD"), "{text}");
    let mut both = server.command(server.port);
    both.env("ARCHIPEL_PASSWORD", "a").env("ARCHIPEL_PASSWORD_FILE", "/dev/null");
    let both = both.output().expect("the binary runs");
    assert_eq!(both.status.code(), Some(2), "{}", String::from_utf8_lossy(&both.stderr));
    let process = launch_everywhere(&server, "first secret");
    let house = House::of(server).await;
    if let Some(address) = own_address() {
        let host = address.to_string();
        for (password, expected) in
            [("first secret", "ok"), ("other", "28P01 password authentication failed for user \"archipel\"")]
        {
            let visit = Visit { host: &host, user: "archipel", password };
            assert_eq!(told(connect(&house.server, &visit).await), expected);
        }
    } else {
        skipped("the password of other machines: this one has no address but loopback");
    }
    assert_eq!(house.enter("archipel", "any").await, "ok", "loopback is trusted");
    house.sql("CREATE TABLE seen (lines int)").await;
    house.sql("COPY seen FROM PROGRAM 'env | grep -c ARCHIPEL_PASSWORD || true'").await;
    let seen = house.admin.query_one("SELECT lines FROM seen", &[]).await.unwrap();
    assert_eq!(seen.get::<_, i32>(0), 0, "programs of the server see the password");
    let log = std::fs::read_to_string(house.server.directory.path().join("log")).unwrap();
    assert!(log.contains("has got its first password") && !log.contains("secret"), "{log}");
    let kept = house.admin.query_one("SELECT rolpassword FROM pg_authid WHERE rolname = 'archipel'", &[]);
    let kept: String = kept.await.unwrap().get(0);
    drop(process);
    // A later start leaves it as it is.
    let _process = launch_everywhere(&house.server, "second secret");
    let house = House::of(house.server).await;
    let now = house.admin.query_one("SELECT rolpassword FROM pg_authid WHERE rolname = 'archipel'", &[]);
    assert_eq!(now.await.unwrap().get::<_, String>(0), kept);
}

#[tokio::test]
async fn a_file_that_speaks_of_other_machines_is_enough_to_listen() {
    let mut server = started().await;
    server.stop();
    let file = server.directory.path().join("data/pg_hba.conf");
    std::fs::write(&file, "local all all trust\nhost all all 127.0.0.1/32 trust\n").unwrap();
    let refused = server.command(server.port).args(EVERYWHERE).output().expect("the binary runs");
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    std::fs::write(&file, "local all all trust\nhost all all 192.0.2.0/24 trust\n").unwrap();
    server.launch(&["listen_addresses=0.0.0.0"]);
}

/// Every address is looked at, wherever in the list it stands.
#[tokio::test]
async fn one_of_several_addresses_beyond_loopback_is_enough_to_be_refused() {
    let mut server = started().await;
    server.stop();
    let beyond = own_address().map(|own| format!("127.0.0.1,{own}"));
    if beyond.is_none() {
        skipped("an address beyond loopback behind one of loopback: this machine has none");
    }
    for list in ["*".to_owned(), "0.0.0.0,127.0.0.1".to_owned()].into_iter().chain(beyond) {
        let mut command = server.command(server.port);
        let refused = command.args(["--set", &format!("listen_addresses={list}")]).output().expect("it runs");
        let text = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{list}: {text}");
        assert!(text.contains("refusing to listen on"), "{list}: {text}");
    }
    server.launch(&["listen_addresses=127.0.0.2,localhost"]);
    let house = House::of(server).await;
    for host in ["127.0.0.1", "127.0.0.2"] {
        let visit = Visit { host, user: "archipel", password: "x" };
        assert_eq!(told(connect(&house.server, &visit).await), "ok", "{host}");
    }
    let row = house.admin.query_one("SHOW listen_addresses", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "127.0.0.2,localhost");
    let port = house.admin.query_one("SELECT inet_server_port()", &[]).await.unwrap();
    assert_eq!(port.get::<_, Option<i32>>(0), None, "a Unix socket has none");
}

/// Without any address there are the Unix sockets still.
#[tokio::test]
async fn no_address_leaves_the_unix_sockets() {
    let mut server = started().await;
    server.stop();
    server.launch(&["listen_addresses="]);
    let house = House::of(server).await;
    assert!(house.enter("archipel", "x").await.contains("refused"));
    let mut nowhere = house.server.command(0);
    let none = ["--set", "listen_addresses=", "--set", "unix_socket_directories="];
    let refused = nowhere.args(none).output().expect("the binary runs");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && text.contains("no socket created for listening"), "{text}");
}

#[tokio::test]
async fn the_reason_is_for_the_log_alone() {
    let mut server = started().await;
    server.stop();
    let file = server.directory.path().join("data/pg_hba.conf");
    std::fs::write(&file, "local all all trust\nhost all all all password\n").unwrap();
    let process = launch_everywhere(&server, "pencil");
    let house = House::of(server).await;
    for (user, password) in [("archipel", "not the secret"), ("no\nbody", "not the secret")] {
        let expected = format!("28P01 password authentication failed for user \"{user}\"");
        assert_eq!(house.enter(&format!("'{user}'"), password).await, expected);
    }
    drop(process);
    let log = std::fs::read_to_string(house.server.directory.path().join("log")).unwrap();
    assert!(log.contains("Password does not match for user"), "{log}");
    assert!(
        log.contains("does not exist") && log.contains("no\\nbody") && !log.contains("no\nbody"),
        "{log}"
    );
    assert!(!log.contains("not the secret") && !log.contains("pencil"), "{log}");
}

#[tokio::test]
async fn md5_hashes_go_with_a_renamed_role_and_empty_passwords_are_none() {
    let house = House::open(&[]).await;
    house.sql(ROLES).await;
    let kept = async |name: &str| {
        let query = "SELECT rolpassword FROM pg_authid WHERE rolname = $1";
        let row = house.admin.query_one(query, &[&name]).await.unwrap();
        row.get::<_, Option<String>>(0)
    };
    assert_eq!(kept("old").await.as_deref(), Some("md5b15721e6326bc6e9a7c72a38963ec03d"));
    house.sql("ALTER ROLE old RENAME TO older; ALTER ROLE scram RENAME TO renamed").await;
    assert_eq!(kept("older").await, None);
    assert!(kept("renamed").await.unwrap().starts_with("SCRAM-SHA-256$4096:"));
    house.sql("ALTER ROLE older PASSWORD 'x'; ALTER ROLE older PASSWORD ''").await;
    assert_eq!(kept("older").await, None);
    house.sql("ALTER ROLE older PASSWORD 'md56a3a6f6e33217afa6373df9d6b2e8a00'").await;
    assert_eq!(kept("older").await, None, "the hash of an empty password");
    house.rules("host all all all scram-sha-256").await;
    assert_eq!(house.enter("renamed", "pencil").await, "ok");
}

#[tokio::test]
async fn psql_comes_in_with_a_password() {
    let house = House::open(&[]).await;
    house.sql(ROLES).await;
    house.rules("host all all all scram-sha-256").await;
    let psql = |password: &str, arguments: &[&str]| {
        let url = format!("postgresql://scram@127.0.0.1:{}/archipel", house.server.port);
        let mut command = std::process::Command::new("psql");
        command.args(["-XAtq", &url]).args(arguments).env("PGPASSWORD", password).stdin(Stdio::null());
        command.output()
    };
    let output = psql("pencil", &["-c", "SELECT session_user"]).expect("psql is installed");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "scram");
    let refused = psql("wrong", &["-c", "SELECT 1"]).expect("psql is installed");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("FATAL:  password authentication failed for user \"scram\""), "{text}");
}
