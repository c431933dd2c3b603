//! Clients that speak other character sets than UTF8, in bytes as PostgreSQL 15 takes and sends them.

mod common;

use std::time::Duration;

use common::{Raw, Server, field, framed, kinds, state};

type Messages = Vec<(u8, Vec<u8>)>;

/// A client that has said in its startup packet what it speaks.
fn speaking(server: &Server, encoding: &str) -> (Raw, Messages) {
    let mut raw = server.unopened();
    raw.greet(&[("user", "archipel"), ("database", "archipel"), ("client_encoding", encoding)]);
    let greeting = raw.until(b'Z');
    (raw, greeting)
}

fn query(raw: &mut Raw, text: &[u8]) -> Messages {
    raw.send(b'Q', &[text, b"\0"].concat());
    raw.until(b'Z')
}

/// The bodies of the messages of a kind.
fn bodies(messages: &Messages, kind: u8) -> Vec<&[u8]> {
    messages.iter().filter(|(of, _)| *of == kind).map(|(_, body)| &body[..]).collect()
}

/// Rows, their columns behind each other with a bar between.
fn rows(messages: &Messages) -> Vec<Vec<u8>> {
    let row = |body: &&[u8]| {
        let (mut rest, mut values) = (&body[2..], Vec::new());
        while let Some((length, tail)) = rest.split_first_chunk::<4>() {
            let (value, tail) = tail.split_at(i32::from_be_bytes(*length).max(0) as usize);
            values.push(value);
            rest = tail;
        }
        values.join(&b'|')
    };
    bodies(messages, b'D').iter().map(row).collect()
}

/// The bytes of the first error's field of this code.
fn field_bytes(messages: &Messages, kind: u8, code: u8) -> Option<Vec<u8>> {
    let body = *bodies(messages, kind).first()?;
    body.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(&[code])).map(<[u8]>::to_vec)
}

/// A value behind its length.
fn value(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

#[test]
fn queries_rows_names_and_errors_are_in_the_clients_character_set() {
    let server = Server::start(&[]);
    let (mut raw, greeting) = speaking(&server, "latin-1");
    let statuses = bodies(&greeting, b'S');
    assert!(statuses.contains(&&b"client_encoding\0LATIN1\0"[..]));
    let answer = query(&mut raw, b"SELECT '\xe9' AS \"\xe8\", ascii('\xe9')");
    assert_eq!(&bodies(&answer, b'T')[0][..4], b"\0\x02\xe8\0");
    assert_eq!(rows(&answer), [b"\xe9|233"]);
    let answer = query(&mut raw, b"SELECT \"\xe9x\"");
    assert_eq!(field_bytes(&answer, b'E', b'M').unwrap(), b"column \"\xe9x\" does not exist");
    let answer = query(&mut raw, b"DO $$ BEGIN RAISE NOTICE '\xe9' USING HINT = '\xe8'; END $$");
    assert_eq!(field_bytes(&answer, b'N', b'M').unwrap(), b"\xe9");
    assert_eq!(field_bytes(&answer, b'N', b'H').unwrap(), b"\xe8");
    // A change counts from the next statement of the same text on.
    let answer = query(&mut raw, b"SET client_encoding = 'sjis'; SELECT chr(34920) AS a, U&'\\8868\\\\'");
    assert_eq!(rows(&answer), [b"\x95\x5c|\x95\x5c\x5c"]);
    assert!(bodies(&answer, b'S').contains(&&b"client_encoding\0SJIS\0"[..]));
    let answer = query(&mut raw, b"SELECT '\x95\x5c' AS \"\x95\x5c\"");
    assert_eq!(&bodies(&answer, b'T')[0][2..5], b"\x95\x5c\0");
    assert_eq!(rows(&answer), [b"\x95\x5c"]);
    assert_eq!(
        rows(&query(&mut raw, b"BEGIN; SET LOCAL client_encoding = utf8; SELECT chr(233)")),
        ["é".as_bytes()]
    );
    query(&mut raw, b"ROLLBACK");
    assert_eq!(state(&query(&mut raw, b"SELECT chr(233)")).as_deref(), Some("22P05"));
}

#[test]
fn what_the_client_cannot_read_or_has_not_written_ends_its_statement_alone() {
    let server = Server::start(&[]);
    let (mut raw, _) = speaking(&server, "EUC_JP");
    let message = |answer: &Messages| field(answer, b'M').unwrap();
    let answer = query(&mut raw, b"SELECT '\xa1'");
    assert_eq!(message(&answer), "invalid byte sequence for encoding \"EUC_JP\": 0xa1 0x27");
    let answer = query(&mut raw, b"SELECT chr(233); SELECT chr(8364); SELECT 1");
    assert_eq!(rows(&answer), [b"\x8f\xab\xb1"]);
    assert_eq!(
        message(&answer),
        "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"EUC_JP\""
    );
    assert_eq!(kinds(&query(&mut raw, b"SELECT 1 AS U&\"\\20ac\"")), "EZ");
    assert_eq!(rows(&query(&mut raw, b"SELECT '\xa4\xa2'")), [b"\xa4\xa2"]);
    query(&mut raw, b"SET client_encoding = 'win1252'");
    for format in [0, 1] {
        let bind = [&b"\0\0\0\x01\0"[..], &[format], b"\0\x01", &value(b"a\x81"), b"\0\0"].concat();
        let answer = raw.pipeline(&[common::parse("SELECT $1::text"), framed(b'B', &bind)]);
        assert_eq!(
            message(&answer),
            "character with byte sequence 0x81 in encoding \"WIN1252\" has no equivalent in encoding \"UTF8\""
        );
        assert_eq!(field(&answer, b'W').as_deref(), Some("unnamed portal parameter $1"));
    }
    // Rows that were written are not, if they cannot be told.
    query(&mut raw, b"CREATE TABLE t (a text)");
    assert_eq!(
        state(&query(&mut raw, b"INSERT INTO t VALUES (chr(1103)) RETURNING a")).as_deref(),
        Some("22P05")
    );
    assert_eq!(rows(&query(&mut raw, b"SELECT count(*) FROM t")), [b"0"]);
}

#[test]
fn names_of_statements_and_values_in_either_format_are_in_the_clients_character_set() {
    let server = Server::start(&[]);
    let (mut raw, _) = speaking(&server, "LATIN1");
    let parse = b"s\xe9\0SELECT $1::text || '\xe8', $2::text, $3::text[], $4::jsonb\0\0\0";
    let array =
        [&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 1, 0, 0, 0, 1][..], &value(b"\xe7")].concat();
    let formats = [0, 4, 0, 0, 0, 1, 0, 1, 0, 1];
    let bind = [
        &b"p\xe9\0s\xe9\0"[..],
        &formats,
        &[0, 4],
        &value(b"\xe9"),
        &value(b"\xea"),
        &value(&array),
        &value(b"\x01{\"\xe9\":1}"),
        &formats,
    ];
    let answer = raw.pipeline(&[
        framed(b'P', parse),
        framed(b'B', &bind.concat()),
        framed(b'E', b"p\xe9\0\0\0\0\0"),
        framed(b'C', b"Ss\xe9\0"),
        framed(b'D', b"Ss\xe9\0"),
    ]);
    let expected = [&b"\xe9\xe8|\xea|"[..], &array, b"|\x01{\"\xe9\": 1}"].concat();
    assert_eq!(rows(&answer), [expected]);
    assert_eq!(kinds(&answer), "12DC3EZ");
    let missing = field_bytes(&answer, b'E', b'M').unwrap();
    assert_eq!(missing, b"prepared statement \"s\xe9\" does not exist");
    // Rows that wait in a portal.
    let answer = raw.pipeline(&[
        common::parse("SELECT chr(232 + n) FROM generate_series(1, 3) n"),
        framed(b'B', b"\0\0\0\0\0\0\0\0"),
        framed(b'E', b"\0\0\0\0\x02"),
        framed(b'E', b"\0\0\0\0\x02"),
    ]);
    assert_eq!(rows(&answer), [b"\xe9", b"\xea", b"\xeb"]);
    // reverse(text), by its number.
    for format in [0, 1] {
        let call = [&3062_u32.to_be_bytes()[..], &[0, 1, 0, format, 0, 1], &value(b"a\xe9"), &[0, format]];
        raw.send(b'F', &call.concat());
        assert_eq!(bodies(&raw.until(b'Z'), b'V'), [&value(b"\xe9a")[..]]);
    }
}

#[test]
fn notifications_are_told_in_the_listeners_character_set() {
    let server = Server::start(&[]);
    let (mut raw, _) = speaking(&server, "LATIN1");
    query(&mut raw, b"LISTEN \"\xe9\"");
    let answer = query(&mut raw, b"NOTIFY \"\xe9\", '\xe8'");
    assert_eq!(&bodies(&answer, b'A')[0][4..], b"\xe9\0\xe8\0");
    // Between statements there is nothing else that an error could end.
    raw.send(b'Q', b"SELECT pg_notify(chr(233), chr(8364))\0");
    let mut told = Messages::new();
    while let Some(message) = raw.receive() {
        told.push(message);
    }
    assert_eq!((field(&told, b'S').as_deref(), state(&told).as_deref()), (Some("FATAL"), Some("22P05")));
}

#[test]
fn copy_is_in_the_clients_character_set_or_in_its_own() {
    let server = Server::start(&[]);
    let (mut raw, _) = speaking(&server, "LATIN1");
    query(&mut raw, b"CREATE TABLE t (a text, b int)");
    let mut copy = |text: &[u8], pieces: &[&[u8]], end: (u8, &[u8])| {
        raw.send(b'Q', &[text, b"\0"].concat());
        raw.until(b'G');
        pieces.iter().for_each(|piece| raw.send(b'd', piece));
        raw.send(end.0, end.1);
        raw.until(b'Z')
    };
    let done = (b'c', &b""[..]);
    let failed = copy(b"COPY t FROM STDIN", &[b"\xe9\t1\n"], (b'f', b"stop \xe9\0"));
    assert_eq!(field_bytes(&failed, b'E', b'M').unwrap(), b"COPY from stdin failed: stop \xe9");
    assert_eq!(kinds(&copy(b"COPY t FROM STDIN", &[b"\xe9\t1\n\xe8", b"\t2\n"], done)), "CZ");
    // Characters may be cut, and their second bytes be backslashes.
    let pieces = [&b"\x95"[..], b"\x5c\t3\n\x83", b"\x5c\\\\\t4\n"];
    assert_eq!(kinds(&copy(b"COPY t FROM STDIN (ENCODING 'sjis')", &pieces, done)), "CZ");
    let cut = copy(b"COPY t FROM STDIN (ENCODING 'sjis')", &[b"x\t5\ny\x95"], done);
    assert_eq!(field(&cut, b'M').unwrap(), "invalid byte sequence for encoding \"SJIS\": 0x95");
    assert_eq!(field(&cut, b'W').unwrap(), "COPY t, line 2");
    let answer = query(&mut raw, b"SELECT ascii(a), length(a), b FROM t ORDER BY b");
    assert_eq!(rows(&answer), [&b"233|1|1"[..], b"232|1|2", b"34920|1|3", b"12477|2|4"]);
    let answer = query(&mut raw, b"COPY (SELECT * FROM t WHERE b < 3 ORDER BY b) TO STDOUT");
    assert_eq!(bodies(&answer, b'd'), [b"\xe9\t1\n", b"\xe8\t2\n"]);
    let answer =
        query(&mut raw, b"COPY (SELECT a FROM t WHERE b = 1) TO STDOUT (FORMAT binary, ENCODING 'sjis')");
    assert!(bodies(&answer, b'd')[0].ends_with(b"\0\x01\0\0\0\x01\xe9"));
    let answer =
        query(&mut raw, b"COPY (SELECT a FROM t WHERE b > 2 ORDER BY b) TO STDOUT (ENCODING 'sjis')");
    assert_eq!(bodies(&answer, b'd'), [&b"\x95\x5c\n"[..], b"\x83\x5c\\\\\n"]);
    let answer = query(&mut raw, b"COPY (SELECT a FROM t WHERE b > 2) TO STDOUT");
    assert_eq!(state(&answer).as_deref(), Some("22P05"));
}

#[test]
fn a_null_that_may_not_be_is_told_when_its_row_has_come() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a text, b int NOT NULL)");
    raw.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    raw.send(b'Q', b"COPY t FROM STDIN\0");
    raw.until(b'G');
    // Its data has no end yet.
    raw.send(b'd', b"x\t1\ny\t\\N\nz\t2\n");
    let told = raw.until(b'Z');
    assert_eq!(state(&told).as_deref(), Some("23502"));
    assert_eq!(field(&told, b'D').as_deref(), Some("Failing row contains (y, null)."));
    assert_eq!(field(&told, b'W').as_deref(), Some("COPY t, line 2: \"y\t\\N\""));
    assert_eq!(rows(&raw.query("SELECT count(*) FROM t")), [b"0"]);
    // A trigger may give the value; then it is no fault.
    raw.query(
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.b := 7; RETURN NEW; END $$; \
         CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    );
    raw.send(b'Q', b"COPY t FROM STDIN\0");
    raw.until(b'G');
    raw.send(b'd', b"x\t\\N\n");
    raw.send(b'c', b"");
    assert_eq!(kinds(&raw.until(b'Z')), "CZ");
}
