//! The wire, byte by byte: what is malformed is answered and survived.

mod common;

use common::{Raw, Server, field, framed, kinds, state, told};
use std::io::Write;

#[test]
fn malformed_messages_are_08p01_and_the_session_goes_on() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.pipeline(&[common::parse("SELECT 1")]);
    // Truncated Parse, Bind, Execute and Describe: each skipped to Sync.
    for (kind, body) in
        [(b'P', &b"name"[..]), (b'B', b"\0\0\0"), (b'E', b"\0\0"), (b'D', b"X\0"), (b'B', b"\0\0\0\x05")]
    {
        raw.send(kind, body);
        raw.send(b'S', b"");
        let messages = raw.until(b'Z');
        assert_eq!(state(&messages).as_deref(), Some("08P01"), "{}", kind as char);
        assert_eq!(kinds(&messages), "EZ");
    }
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
    // A query without its terminator, and one with invalid UTF-8.
    raw.send(b'Q', b"SELECT 1");
    assert_eq!(state(&raw.until(b'Z')).as_deref(), Some("08P01"));
    raw.send(b'Q', b"SELECT '\xff'\0");
    assert_eq!(state(&raw.until(b'Z')).as_deref(), Some("22021"));
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
}

#[test]
fn what_cannot_be_framed_ends_the_connection_and_nothing_else() {
    let server = Server::start(&[]);
    for bytes in
        [&[b'z', 0, 0, 0, 4][..], &[b'Q', 0, 0, 0, 1], &[b'Q', 0x7f, 255, 255, 255], &[b'S', 0, 1, 0, 0]]
    {
        let mut raw = server.raw();
        raw.stream.write_all(bytes).unwrap();
        let (kind, body) = raw.receive().expect("an error");
        assert_eq!(kind, b'E');
        assert!(String::from_utf8_lossy(&body).contains("FATAL"));
        assert!(raw.receive().is_none(), "the connection should be closed");
    }
    for body in [&b"\0\x03\0\0user\0archipel"[..], b"\0\x02\0\0user\0a\0\0", b""] {
        let mut raw = server.unopened();
        raw.send_untyped(body);
        assert_eq!(raw.receive().expect("an error").0, b'E');
    }
    assert_eq!(kinds(&server.raw().query("SELECT 1")), "TDCZ");
}

#[test]
fn unknown_roles_and_databases_are_refused() {
    let server = Server::start(&[]);
    for (parameters, code) in [
        (&b"user\0nobody\0database\0archipel\0\0"[..], "28000"),
        (b"user\0archipel\0database\0nothing\0\0", "3D000"),
        (b"database\0archipel\0\0", "28000"),
        // Who it is comes first, and what is said last counts.
        (b"user\0nobody\0database\0nothing\0\0", "28000"),
        (b"user\0nobody\0\0", "28000"),
        (b"user\0archipel\0user\0nobody\0\0", "28000"),
        (b"user\0archipel\0replication\0maybe\0\0", "22023"),
        (b"user\0archipel\0replication\0true\0\0", "0A000"),
    ] {
        let mut raw = server.unopened();
        raw.send_untyped(&[&[0, 3, 0, 0], parameters].concat());
        assert_eq!(state(&raw.until(b'E')).as_deref(), Some(code));
    }
    let mut raw = server.unopened();
    let long = [&[0, 3, 0, 0][..], b"user\0", &[b'a'; 100], b"\0\0"].concat();
    raw.send_untyped(&long);
    let (_, body) = raw.until(b'E').pop().expect("an error");
    let told = format!("role \"{}\" does not exist", "a".repeat(63));
    assert!(String::from_utf8_lossy(&body).contains(&told), "{:?}", String::from_utf8_lossy(&body));
}

#[test]
fn encryption_requests_are_declined_and_the_client_may_go_on() {
    use std::io::Read;
    let server = Server::start(&[]);
    let mut raw = server.unopened();
    for code in [80_877_103u32, 80_877_104] {
        raw.send_untyped(&code.to_be_bytes());
        let mut answer = [0];
        raw.stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"N");
    }
    raw.send_untyped(b"\0\x03\0\0user\0archipel\0database\0archipel\0\0");
    assert_eq!(raw.until(b'Z')[0].0, b'R');
}

#[test]
fn pipelined_messages_are_one_transaction_up_to_sync() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (id int PRIMARY KEY)");
    let step = |text: &str| {
        let mut bytes = framed(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat());
        bytes.extend(framed(b'B', b"\0\0\0\0\0\0\0\0"));
        bytes.extend(framed(b'E', b"\0\0\0\0\0"));
        bytes
    };
    let mut pipeline = step("INSERT INTO t VALUES (1)");
    pipeline.extend(step("INSERT INTO t VALUES (1)"));
    pipeline.extend(step("INSERT INTO t VALUES (2)"));
    pipeline.extend(framed(b'S', b""));
    raw.stream.write_all(&pipeline).unwrap();
    let messages = raw.until(b'Z');
    assert_eq!(kinds(&messages), "12C12EZ");
    assert_eq!(state(&messages).as_deref(), Some("23505"));
    let count = raw.query("SELECT count(*) FROM t");
    assert!(
        count.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"0")),
        "the first insert stayed"
    );
}

#[test]
fn portals_answer_in_portions() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let text = "SELECT g FROM generate_series(1, 5) AS g";
    let mut bytes = framed(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat());
    bytes.extend(framed(b'B', b"\0\0\0\0\0\0\0\0"));
    for _ in 0..3 {
        bytes.extend(framed(b'E', b"\0\0\0\0\x02"));
    }
    bytes.extend(framed(b'S', b""));
    raw.stream.write_all(&bytes).unwrap();
    assert_eq!(kinds(&raw.until(b'Z')), "12DDsDDsDCZ");
}

#[test]
fn a_portal_that_has_failed_is_not_run_again() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("BEGIN");
    let text = "SELECT 1 / (g - 1) FROM generate_series(1, 5) AS g";
    let bind = framed(b'B', b"p\0\0\0\0\0\0\0\0");
    let run = framed(b'E', b"p\0\0\0\0\x02");
    let told = raw.pipeline(&[[common::parse(text), bind, run.clone()].concat()]);
    assert_eq!((kinds(&told).as_str(), state(&told).as_deref()), ("12EZ", Some("22012")));
    let told = raw.pipeline(&[run]);
    assert_eq!((kinds(&told).as_str(), state(&told).as_deref()), ("EZ", Some("25P02")));
    assert_eq!(kinds(&raw.query("ROLLBACK")), "CZ");
}

#[test]
fn a_cancel_request_stops_a_running_statement() {
    let server = Server::start(&[]);
    let mut raw = server.unopened();
    raw.send_untyped(b"\0\x03\0\0user\0archipel\0database\0archipel\0\0");
    let greeting = raw.until(b'Z');
    let key = greeting.iter().find(|(kind, _)| *kind == b'K').expect("a key").1.clone();
    raw.send(b'Q', b"DO $$ BEGIN LOOP END LOOP; END $$\0");
    // A request that comes before the statement cancels nothing.
    let mut other = server.raw();
    let running = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()";
    while !kinds(&other.query(running)).contains('D') {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut canceller = server.unopened();
    canceller.send_untyped(&[&80_877_102u32.to_be_bytes(), &key[..]].concat());
    assert_eq!(state(&raw.until(b'Z')).as_deref(), Some("57014"));
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
}

/// Parse of a query with parameters of these types, and Bind of one value in binary form.
fn binds(raw: &mut common::Raw, query: &str, oid: u32, value: &[u8]) -> (Option<String>, Option<String>) {
    let mut parse = [b"\0", query.as_bytes(), b"\0\0\x01"].concat();
    parse.extend(oid.to_be_bytes());
    let mut bind = b"\0\0\0\x01\0\x01\0\x01".to_vec();
    bind.extend((value.len() as u32).to_be_bytes());
    bind.extend(value);
    bind.extend(b"\0\0");
    raw.send(b'P', &parse);
    raw.send(b'B', &bind);
    raw.send(b'E', b"\0\0\0\0\0");
    raw.send(b'S', b"");
    let messages = raw.until(b'Z');
    (state(&messages), common::field(&messages, b'M'))
}

#[test]
fn binary_values_of_wrong_lengths_are_refused_in_postgresqls_words() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let short = "insufficient data left in message";
    let long = "incorrect binary data format in bind parameter 1";
    // An array's head: one dimension, no NULL, of int4, so many elements from 1 on.
    let array = |count: u8, rest: &[u8]| {
        [&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, count, 0, 0, 0, 1][..], rest].concat()
    };
    let cases: [(&str, u32, Vec<u8>, &str, &str); 25] = [
        ("int4", 23, vec![], "08P01", short),
        ("int4", 23, vec![0; 3], "08P01", short),
        ("int4", 23, vec![0; 5], "22P03", long),
        ("int8", 20, vec![0; 4], "08P01", short),
        ("bool", 16, vec![], "08P01", "no data left in message"),
        ("bool", 16, vec![0; 2], "22P03", long),
        ("uuid", 2950, vec![0; 17], "22P03", long),
        ("jsonb", 3802, vec![], "08P01", short),
        ("numeric", 1700, vec![0, 1, 0, 0, 0, 0, 0, 0], "08P01", short),
        (
            "numeric",
            1700,
            vec![0, 0, 0, 0, 1, 0, 0, 0],
            "22P03",
            "invalid sign in external \"numeric\" value",
        ),
        ("int4[]", 1007, array(1, &[0, 0, 0, 4, 0, 0]), "22P03", short),
        (
            "int4[]",
            1007,
            vec![0; 12],
            "42804",
            "binary data has array element type 0 (-) instead of expected 23 (integer)",
        ),
        // What a value is is told before what follows it.
        ("numeric", 1700, vec![255; 7], "22P03", "invalid sign in external \"numeric\" value"),
        ("date", 1082, vec![0xaf, 0xcc, 0x5b, 0x1a, 0xef], "22008", "date out of range"),
        ("time", 1083, vec![255; 9], "22008", "time out of range"),
        ("timetz", 1266, vec![255; 8], "22008", "time out of range"),
        ("varbit", 1562, vec![255; 4], "22P03", "invalid length in external bit string"),
        ("bit", 1560, vec![0, 0, 0, 9, 255], "08P01", short),
        ("inet", 869, vec![2], "08P01", "no data left in message"),
        ("inet", 869, vec![4], "22P03", "invalid address family in external \"inet\" value"),
        ("cidr", 650, vec![2, 8, 1, 4, 10, 0, 0, 1], "22P03", "invalid external \"cidr\" value"),
        ("macaddr", 829, vec![1; 5], "08P01", "no data left in message"),
        ("macaddr8", 774, vec![1; 9], "22P03", long),
        ("txid_snapshot", 2970, vec![], "08P01", short),
        (
            "int4[]",
            1007,
            array(1, &[0, 0, 0, 5, 0, 0, 0, 0, 0]),
            "22P03",
            "improper binary format in array element 1",
        ),
    ];
    for (ty, oid, value, code, message) in cases {
        let told = binds(&mut raw, &format!("SELECT $1::{ty} IS NULL"), oid, &value);
        assert_eq!(told, (Some(code.to_owned()), Some(message.to_owned())), "{ty} {value:?}");
    }
    // The last subscript has to be a number, too.
    let edge = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 127, 255, 255, 255, 0, 0, 0, 4, 0, 0, 0, 1];
    let told = binds(&mut raw, "SELECT array_upper($1::int4[], 1)", 1007, &edge);
    assert_eq!(told.1.as_deref(), Some("array lower bound is too large: 2147483647"));
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
}

#[test]
fn formats_of_no_rows_are_left_alone() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.send(b'P', b"\0SET work_mem = '4MB'\0\0\0");
    raw.send(b'B', b"\0\0\0\0\0\0\0\x02\0\x01\0\x01");
    raw.send(b'E', b"\0\0\0\0\0");
    raw.send(b'S', b"");
    assert_eq!(kinds(&raw.until(b'Z')), "12CZ");
}

#[test]
fn what_is_no_row_is_told_by_its_kind_while_a_copy_takes_rows() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    assert_eq!(kinds(&raw.query("CREATE TABLE t (a int)")), "CZ");
    raw.send(b'Q', b"COPY t FROM STDIN\0");
    raw.until(b'G');
    // The client changes its mind: it is told which line would have come next.
    raw.send(b'd', b"1\n2\n");
    raw.send(b'f', b"no more\0");
    let told = raw.until(b'Z');
    assert_eq!(common::field(&told, b'M').as_deref(), Some("COPY from stdin failed: no more"));
    assert_eq!(common::field(&told, b'W').as_deref(), Some("COPY t, line 3"));
    raw.send(b'Q', b"COPY t FROM STDIN\0");
    raw.until(b'G');
    raw.send(b'Q', b"SELECT 1\0");
    let told = raw.until(b'E');
    let message = common::field(&told, b'M');
    assert_eq!(message.as_deref(), Some("unexpected message type 0x51 during COPY from stdin"));
    assert_eq!(common::field(&told, b'W').as_deref(), Some("COPY t, line 1"));
    // Nobody knows what follows.
    let told = raw.until(b'E');
    assert_eq!(common::field(&told, b'S').as_deref(), Some("FATAL"));
    let message = common::field(&told, b'M');
    assert_eq!(message.as_deref(), Some("terminating connection because protocol synchronization was lost"));
    assert!(raw.receive().is_none());
}

/// PostgreSQL looks at foreign keys and fires AFTER triggers when all lines have been read.
#[test]
fn what_comes_behind_all_lines_of_a_copy_is_about_none_of_them() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let made = raw.query(
        "CREATE TABLE parent (a int PRIMARY KEY); INSERT INTO parent VALUES (1); \
         CREATE TABLE child (a int PRIMARY KEY, p int REFERENCES parent); \
         CREATE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE NOTICE 'row %', new.a; IF new.a = 3 THEN RAISE 'three'; END IF; RETURN new; END $$; \
         CREATE TRIGGER a AFTER INSERT ON child FOR EACH ROW EXECUTE FUNCTION says()",
    );
    assert_eq!(common::state(&made), None);
    let mut copied = |lines: &[u8]| {
        raw.send(b'Q', b"COPY child FROM STDIN\0");
        raw.until(b'G');
        raw.send(b'd', lines);
        raw.send(b'c', b"");
        let told = raw.until(b'Z');
        let error = &told[told.iter().position(|(kind, _)| *kind == b'E').expect("it fails")..];
        (kinds(&told), common::state(error).unwrap_or_default(), common::field(error, b'W'))
    };
    let line = |text: &str| Some(text.to_owned());
    // A line that is none was found before: no row has been fired for.
    assert_eq!(
        copied(b"1\t1\n3\t1\nx\t1\n"),
        ("EZ".into(), "22P02".into(), line("COPY child, line 3, column a: \"x\""))
    );
    assert_eq!(copied(b"1\t7\n2\t1\n"), ("EZ".into(), "23503".into(), None));
    assert_eq!(copied(b"1\t1\n1\t1\n"), ("EZ".into(), "23505".into(), line("COPY child, line 2")));
    let fired = line("PL/pgSQL function says() line 1 at RAISE");
    assert_eq!(copied(b"1\t1\n3\t1\n"), ("NNEZ".into(), "P0001".into(), fired));
}

#[test]
fn settings_that_triggers_make_during_a_copy_stay() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let made = raw.query(
        "CREATE TABLE t (a int); CREATE FUNCTION sets() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM set_config('app.seen', new.a::text, new.a = 3); RETURN new; END $$; \
         CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION sets()",
    );
    assert_eq!(common::state(&made), None);
    let mut seen_behind = |lines: &[u8]| {
        raw.send(b'Q', b"COPY t FROM STDIN\0");
        raw.until(b'G');
        raw.send(b'd', lines);
        raw.send(b'c', b"");
        raw.until(b'Z');
        common::told(&raw.query("SELECT current_setting('app.seen')")).swap_remove(0)
    };
    assert_eq!(seen_behind(b"1\n2\n"), "2");
    assert_eq!(seen_behind(b"1\n3\n"), "1", "3 was for the transaction alone");
    assert_eq!(seen_behind(b"5\nx\n"), "1", "nothing of a COPY that fails stays");
}

#[test]
fn what_fails_in_a_copied_row_says_which_row_that_was() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let made = raw.query(
        "CREATE FUNCTION inverse(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 10 / n; END $$; \
         CREATE FUNCTION invert() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN new.v := inverse(new.v); RETURN new; END $$; \
         CREATE TABLE called (v int CHECK (inverse(v) > 0)); \
         CREATE TABLE fired (v int); \
         CREATE TRIGGER a BEFORE INSERT ON fired FOR EACH ROW EXECUTE FUNCTION invert(); \
         CREATE TABLE computed (v int, w int GENERATED ALWAYS AS (10 / v) STORED); \
         CREATE TABLE indexed (v int); CREATE INDEX ON indexed ((10 / v))",
    );
    assert_eq!(common::state(&made), None);
    let inverse = "PL/pgSQL function inverse(integer) line 1 at RETURN\n";
    let fired = format!("{inverse}PL/pgSQL function invert() line 1 at assignment\n");
    for (table, called, shown) in [
        ("called", inverse, ": \"0\""),
        ("fired", fired.as_str(), ": \"0\""),
        ("computed", "", ": \"0\""),
        ("indexed", "", ""),
    ] {
        raw.send(b'Q', format!("COPY {table} (v) FROM STDIN\0").as_bytes());
        raw.until(b'G');
        raw.send(b'd', b"1\n0\n");
        raw.send(b'c', b"");
        let told = raw.until(b'Z');
        assert_eq!(common::state(&told).as_deref(), Some("22012"), "{table}");
        let context = format!("{called}COPY {table}, line 2{shown}");
        assert_eq!(common::field(&told, b'W').as_deref(), Some(&*context), "{table}");
    }
}

#[test]
fn functions_are_called_by_their_numbers() {
    /// A function call: formats of arguments, arguments, format of the result.
    fn call(function: u32, formats: &[u16], arguments: &[Option<&[u8]>], result: u16) -> Vec<u8> {
        let mut body = function.to_be_bytes().to_vec();
        body.extend((formats.len() as u16).to_be_bytes());
        formats.iter().for_each(|format| body.extend(format.to_be_bytes()));
        body.extend((arguments.len() as u16).to_be_bytes());
        for argument in arguments {
            body.extend(argument.map_or(-1, |bytes| bytes.len() as i32).to_be_bytes());
            body.extend(argument.unwrap_or_default());
        }
        body.extend(result.to_be_bytes());
        body
    }
    /// int4pl(int4, int4) and count("any").
    const PLUS: u32 = 177;
    const COUNT: u32 = 2147;
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let mut answer = |body: &[u8]| {
        raw.send(b'F', body);
        raw.until(b'Z')
    };
    let two: [Option<&[u8]>; 2] = [Some(b"1"), Some(b"2")];
    let told = answer(&call(PLUS, &[], &two, 0));
    assert_eq!(kinds(&told), "VZ");
    assert_eq!(told[0].1, b"\0\0\0\x013");
    let binary: [Option<&[u8]>; 2] = [Some(&[0, 0, 0, 1]), Some(b"\0\0\0\x02")];
    let told = answer(&call(PLUS, &[1], &binary, 1));
    assert_eq!(told[0].1, [0, 0, 0, 4, 0, 0, 0, 3]);
    let told = answer(&call(PLUS, &[0, 1], &[Some(b"1"), None], 1));
    assert_eq!(told[0].1, [255; 4]);
    let refused: [(Vec<u8>, &str, &str); 7] = [
        (
            call(PLUS, &[], &two[..1], 0),
            "08P01",
            "function call message contains 1 arguments but function requires 2",
        ),
        (call(999_999, &[], &[], 0), "42883", "function with OID 999999 does not exist"),
        (call(COUNT, &[], &two[..1], 0), "0A000", "cannot call function \"count\" via fastpath interface"),
        (
            call(PLUS, &[], &[Some(b"x"), Some(b"1")], 0),
            "22P02",
            "invalid input syntax for type integer: \"x\"",
        ),
        (call(PLUS, &[2], &two, 0), "22023", "unsupported format code: 2"),
        (
            call(PLUS, &[0, 0, 0], &two, 0),
            "08P01",
            "function call message contains 3 argument formats but 2 arguments",
        ),
        (call(PLUS, &[], &[Some(b"2147483647"), Some(b"1")], 0), "22003", "integer out of range"),
    ];
    for (body, code, message) in refused {
        let told = answer(&body);
        assert_eq!(kinds(&told), "EZ", "{message}");
        assert_eq!(common::field(&told, b'C').as_deref(), Some(code), "{message}");
        assert_eq!(common::field(&told, b'M').as_deref(), Some(message));
    }
    // Inside of a block, and inside of one that has failed.
    assert_eq!(kinds(&raw.query("BEGIN")), "CZ");
    raw.send(b'F', &call(PLUS, &[], &two, 0));
    assert_eq!(kinds(&raw.until(b'Z')), "VZ");
    raw.query("SELECT nothing");
    raw.send(b'F', &call(PLUS, &[], &two, 0));
    let told = raw.until(b'Z');
    assert_eq!(common::field(&told, b'C').as_deref(), Some("25P02"));
    assert_eq!(kinds(&raw.query("ROLLBACK")), "CZ");
    raw.send(b'F', &call(PLUS, &[], &two, 0));
    assert_eq!(kinds(&raw.until(b'Z')), "VZ");
}

#[test]
fn tables_of_queries_tell_their_parameters() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let text = "CREATE TABLE made AS SELECT $1::int AS a, $2 || 'x' AS b";
    let told = raw.pipeline(&[[common::parse(text), common::framed(b'D', b"S\0")].concat()]);
    assert_eq!(kinds(&told), "1tnZ");
    assert_eq!(told[1].1, [0_u8, 2, 0, 0, 0, 23, 0, 0, 0, 25]);
    let bind = common::framed(b'B', b"\0\0\0\0\0\x02\0\0\0\x017\0\0\0\x01q\0\0");
    let run = common::framed(b'E', b"\0\0\0\0\0");
    assert_eq!(kinds(&raw.pipeline(&[[common::parse(text), bind, run].concat()])), "12CZ");
    let told = raw.query("SELECT a, b FROM made");
    assert!(told.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"qx")));
}

#[test]
fn settings_are_told_before_the_next_query_is_asked_for() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    assert_eq!(kinds(&raw.query("SET application_name TO 'a'")), "CSZ");
    assert_eq!(kinds(&raw.query("SET application_name TO 'b'; SET application_name TO 'c'")), "CCSZ");
    // What has been told is not told again.
    assert_eq!(kinds(&raw.query("SET application_name TO 'd'; SET application_name TO 'c'")), "CCZ");
    assert_eq!(kinds(&raw.query("BEGIN; SET LOCAL application_name TO 'e'")), "CCSZ");
    assert_eq!(kinds(&raw.query("ROLLBACK")), "CSZ");
}

#[test]
fn what_may_not_be_part_of_a_transaction_says_whether_that_is_a_pipeline() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    assert_eq!(kinds(&raw.query("CREATE TABLE t (a int)")), "CZ");
    let run = |text: &str| {
        let bind = common::framed(b'B', b"\0\0\0\0\0\0\0\0");
        [common::parse(text), bind, common::framed(b'E', b"\0\0\0\0\0")].concat()
    };
    let told = raw.pipeline(&[run("INSERT INTO t VALUES (1)"), run("VACUUM t")]);
    assert_eq!(kinds(&told), "12C12EZ");
    assert_eq!(common::field(&told, b'C').as_deref(), Some("25001"));
    let message = common::field(&told, b'M');
    assert_eq!(message.as_deref(), Some("VACUUM cannot be executed within a pipeline"));
    // The pipeline was one transaction.
    let told = raw.query("SELECT count(*) FROM t");
    assert!(told.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"0")));
    // Also behind what only reads, and behind another of its kind; not behind the end of a block.
    for first in ["SELECT 1", "SHOW server_version", "VACUUM t", "CREATE TABLE IF NOT EXISTS t (a int)"] {
        let told = raw.pipeline(&[run(first), run("VACUUM t")]);
        let message = common::field(&told, b'M').unwrap_or_default();
        assert!(
            message.contains("within a pipeline") || message.contains("already exists"),
            "{first}: {message}"
        );
        assert_eq!(told.iter().filter(|(kind, _)| *kind == b'E').count(), 1, "{first}");
    }
    assert_eq!(kinds(&raw.pipeline(&[run("VACUUM t"), run("SELECT 1")])), "12C12DCZ");
    assert_eq!(kinds(&raw.pipeline(&[run("BEGIN"), run("COMMIT"), run("VACUUM t")])), "12C12C12CZ");
    assert_eq!(kinds(&raw.pipeline(&[run(""), run("VACUUM t")])), "12I12CZ");
    // A database comes or goes in a commit of its own.
    let gone = "DROP DATABASE IF EXISTS nosuch";
    assert_eq!(kinds(&raw.pipeline(&[run(gone), run(gone), run("VACUUM t")])), "12NC12NC12CZ");
    let told = raw.pipeline(&[run("SELECT 1"), run(gone)]);
    let message = common::field(&told, b'M');
    assert_eq!(message.as_deref(), Some("DROP DATABASE cannot be executed within a pipeline"));
    raw.query("BEGIN");
    let told = raw.pipeline(&[run("VACUUM t")]);
    let message = common::field(&told, b'M');
    assert_eq!(message.as_deref(), Some("VACUUM cannot run inside a transaction block"));
    assert_eq!(kinds(&raw.query("ROLLBACK")), "CZ");
    let told = raw.query("INSERT INTO t VALUES (1); VACUUM t");
    let message = common::field(&told, b'M');
    assert_eq!(message.as_deref(), Some("VACUUM cannot run inside a transaction block"));
}

/// PostgreSQL asks for the rows before it finds that there is no place for them, and scripts have them behind
/// the statement.
#[test]
fn a_copy_that_takes_no_rows_asks_for_them_first() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a int)");
    raw.query("CREATE VIEW v AS SELECT 1 AS a");
    for (text, code) in [("COPY t FROM STDIN (FREEZE)", "55000"), ("COPY v FROM STDIN", "42809")] {
        let told = raw.query(text);
        assert_eq!(kinds(&told), "GEZ", "{text}");
        assert_eq!(state(&told).as_deref(), Some(code), "{text}");
        // What the client sends then is passed over.
        raw.send(b'd', b"1\n");
        raw.send(b'c', b"");
        assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ", "{text}");
    }
    // In the extended protocol as well, up to Sync.
    let run = |text: &str| {
        [common::parse(text), framed(b'B', b"\0\0\0\0\0\0\0\0"), framed(b'E', b"\0\0\0\0\0")].concat()
    };
    let told = raw.pipeline(&[run("COPY t FROM STDIN (FREEZE)"), run("SELECT 1")]);
    assert_eq!(kinds(&told), "12GEZ");
}

/// Rows that WHERE or a trigger keeps back are not told of.
#[test]
fn a_copy_counts_the_rows_that_it_writes() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a int, b text DEFAULT 'd')");
    raw.query(
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN IF NEW.a = 3 THEN RETURN NULL; END IF; RETURN NEW; END'",
    );
    raw.query("CREATE TRIGGER keep BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION keep()");
    for (text, rows) in [("COPY t (a) FROM STDIN", 3), ("COPY t (a) FROM STDIN WHERE a > 1 AND b = 'd'", 2)] {
        raw.send(b'Q', &[text.as_bytes(), b"\0"].concat());
        assert_eq!(raw.receive().map(|(kind, _)| kind), Some(b'G'), "{text}");
        raw.send(b'd', b"1\n2\n3\n4\n");
        raw.send(b'c', b"");
        assert_eq!(common::told(&raw.until(b'Z')), [format!("COPY {rows}")], "{text}");
    }
}

/// The session of a client that begins so, or how it is refused.
fn begun(server: &Server, user: &str, parameters: &[(&str, &str)]) -> Result<Raw, String> {
    let mut raw = server.unopened();
    raw.greet(&[&[("user", user), ("database", "archipel")][..], parameters].concat());
    loop {
        let message = raw.receive().expect("a greeting or an error");
        match message.0 {
            b'Z' => return Ok(raw),
            b'E' => {
                let messages = [message];
                let part = |code| field(&messages, code).unwrap_or_default();
                return Err(format!("{} {}", part(b'C'), part(b'M')));
            }
            _ => {}
        }
    }
}

/// As PostgreSQL 15 answers.
#[test]
fn sessions_begin_with_what_their_clients_may_ask_for() {
    let server = Server::start(&[]);
    let mut admin = server.raw();
    admin.query("CREATE ROLE plain LOGIN; ALTER ROLE plain SET log_min_duration_statement = 5");
    let internal = "55P02 parameter \"is_superuser\" cannot be changed";
    let denied = |name: &str| format!("42501 permission denied to set parameter \"{name}\"");
    for (user, options, expected) in [
        ("archipel", "-c is_superuser=on", internal),
        ("plain", "-c is_superuser=on", internal),
        ("plain", "-c log_connections=on", &denied("log_connections")),
        ("plain", "-s", &denied("log_statement_stats")),
        (
            "plain",
            "-N 5",
            "55P02 parameter \"max_connections\" cannot be changed without restarting the server",
        ),
        ("plain", "-l", "55P02 parameter \"ssl\" cannot be changed now"),
        ("archipel", "nonsense", "42601 invalid command-line argument for server process: nonsense"),
    ] {
        let refused = begun(&server, user, &[("options", options)]).err();
        assert_eq!(refused.as_deref(), Some(expected), "{user} {options}");
        // The same without a command line.
        if let Some((name, value)) = options.strip_prefix("-c ").and_then(|option| option.split_once('=')) {
            let refused = begun(&server, user, &[(name, value)]).err();
            assert_eq!(refused.as_deref(), Some(expected), "{user} {name}");
        }
    }
    let shown = |raw: &mut Raw, name: &str| told(&raw.query(&format!("SHOW {name}"))).remove(0);
    let mut plain =
        begun(&server, "plain", &[("application_name", "b"), ("options", "-e -c application_name=a")]);
    let plain = plain.as_mut().expect("it may");
    // Options come first, wherever they stand; and what a superuser has said of a role holds.
    assert_eq!(shown(plain, "application_name"), "b");
    assert_eq!(shown(plain, "DateStyle"), "ISO, DMY");
    assert_eq!(shown(plain, "log_min_duration_statement"), "5ms");
    assert_eq!(shown(plain, "is_superuser"), "off");
    admin.query("GRANT SET ON PARAMETER log_disconnections TO plain");
    assert_eq!(begun(&server, "plain", &[("log_disconnections", "on")]).err(), None);
    assert_eq!(begun(&server, "plain", &[("log_connections", "on")]).err(), Some(denied("log_connections")));
    let mut superuser = begun(&server, "archipel", &[("log_disconnections", "on")]);
    assert_eq!(shown(superuser.as_mut().expect("it may"), "log_disconnections"), "on");
}

/// A startup packet full of settings costs its thread no square of them.
#[test]
fn a_packet_full_of_settings_is_taken_at_once() {
    let server = Server::start(&[]);
    let names: Vec<String> = (0..1_200).map(|number| format!("a.s{number}")).collect();
    let parameters: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let mut raw = begun(&server, "archipel", &parameters).expect("they fit into a packet");
    assert_eq!(
        told(&raw.query("SELECT current_setting('a.s0') || 'x', current_setting('a.s1199') || 'y'"))[0],
        "x|y"
    );
}
