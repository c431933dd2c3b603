//! What one short statement computes, plans or says at length keeps nobody else from the executor that it
//! began on, whatever it is; and nothing of the statement sees that it has begun anew elsewhere.

mod common;

use std::io::ErrorKind;
use std::time::Duration;

use common::{Raw, Server, framed, kinds, parse, state};

/// How long to wait for what must come, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often the others are answered while the statement goes on.
const ANSWERS: usize = 5;

/// The first column of the first row.
fn value(messages: &[(u8, Vec<u8>)]) -> Option<String> {
    let (_, body) = messages.iter().find(|(kind, _)| *kind == b'D')?;
    Some(String::from_utf8_lossy(body.get(6..)?).into_owned())
}

fn pid(raw: &mut Raw) -> String {
    value(&raw.query("SELECT pg_backend_pid()")).expect("it has a number")
}

/// Whether the session runs something now.
fn is_active(other: &mut Raw, pid: &str) -> bool {
    let active = format!("SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND state = 'active'");
    value(&other.query(&active)).is_some()
}

/// Waits until the session runs something, or has answered.
fn begins(other: &mut Raw, busy: &Raw, pid: &str) {
    for _ in 0..6_000 {
        if is_active(other, pid) || has_answered(busy) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the session never begins");
}

/// Whether something has come that nobody has read.
fn has_answered(raw: &Raw) -> bool {
    let within = |limit| raw.stream.set_read_timeout(Some(limit)).expect("a timeout can be set");
    within(Duration::from_millis(1));
    let seen = raw.stream.peek(&mut [0]);
    within(PATIENCE);
    match seen {
        Ok(count) => count > 0,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
            false
        }
    }
}

fn server(settings: &[&str]) -> Server {
    let server = Server::start(&[&["archipel.executors=1"][..], settings].concat());
    let made = server.raw().query(
        "CREATE TABLE few (k int PRIMARY KEY, v text); INSERT INTO few VALUES (1, 'x'); \
         CREATE TABLE others (k int PRIMARY KEY, n int); INSERT INTO others VALUES (1, 0); \
         CREATE TABLE told (k int)",
    );
    assert_eq!(state(&made), None);
    server
}

/// The sum of an expression with so many numbers in the place of `#`.
fn sum(of: &str, terms: usize) -> String {
    (0..terms).map(|number| of.replace('#', &number.to_string())).collect::<Vec<_>>().join(" + ")
}

/// While a statement runs that takes seconds, others are answered and can begin; then it is cancelled.
fn assert_keeps_nobody(server: &Server, text: &str) {
    assert_session_keeps_nobody(server, server.raw(), text);
}

/// As [`assert_keeps_nobody`], of a session that has begun.
fn assert_session_keeps_nobody(server: &Server, mut busy: Raw, text: &str) {
    let mut other = server.raw();
    let pid = pid(&mut busy);
    busy.send(b'Q', &[text.as_bytes(), b"\0"].concat());
    begins(&mut other, &busy, &pid);
    for _ in 0..ANSWERS {
        assert_eq!(kinds(&other.query("SELECT v FROM few WHERE k = 1")), "TDCZ");
        assert_eq!(kinds(&other.query("UPDATE others SET n = n + 1 WHERE k = 1")), "CZ");
        assert_eq!(kinds(&server.raw().query("SELECT 1")), "TDCZ");
    }
    assert!(!has_answered(&busy), "it was answered first: {text}");
    other.query(&format!("SELECT pg_cancel_backend({pid})"));
    assert_eq!(state(&busy.until(b'Z')).as_deref(), Some("57014"), "{text}");
}

#[test]
fn what_computes_long_keeps_nobody() {
    let server = server(&[]);
    for (term, terms) in [
        ("length(md5(repeat(v, 100000000 + #)))", 40),
        ("length(to_char(now(), repeat(v || 'FMDay ', 3000000 + #)))", 20),
        ("array_length(string_to_array(repeat(v || ',', 3000000 + #), ','), 1)", 40),
        ("length(regexp_replace(repeat(v || 'abcdefgh ', 2000000 + #), '(a.c)+?d', 'x', 'g'))", 20),
        ("length(replace(repeat(v, 20000000 + #), 'x', 'ab'))", 60),
    ] {
        let computed = sum(term, terms);
        assert_keeps_nobody(&server, &format!("SELECT {computed} FROM few WHERE k = 1"));
        // Among other statements of a transaction, and where something was written before.
        assert_keeps_nobody(
            &server,
            &format!("BEGIN; INSERT INTO told VALUES (1); SELECT {computed} FROM few WHERE k = 1"),
        );
    }
    assert_eq!(value(&server.raw().query("SELECT count(*) FROM told")).as_deref(), Some("0"));
}

#[test]
fn what_is_computed_when_it_is_planned_keeps_nobody() {
    let server = server(&[]);
    let constant = sum("length(md5(repeat('x', 100000000 + #)))", 40);
    for text in ["SELECT #", "EXPLAIN SELECT #", "DO $$ BEGIN PERFORM #; END $$", "PREPARE p AS SELECT #"] {
        let text = text.replace('#', &constant);
        if text.starts_with("PREPARE") {
            // It is planned at the first EXECUTE, at the latest.
            assert_keeps_nobody(&server, &format!("{text}; EXECUTE p"));
        } else {
            assert_keeps_nobody(&server, &text);
        }
    }
}

#[test]
fn a_cursor_whose_rows_are_computed_one_by_one_keeps_nobody() {
    let server = server(&[]);
    let mut busy = server.raw();
    let declared = busy.query("BEGIN; DECLARE c CURSOR FOR SELECT random() FROM generate_series(1, 1000000)");
    assert_eq!(state(&declared), None);
    assert_session_keeps_nobody(&server, busy, "MOVE ALL IN c");
}

#[test]
fn a_short_text_over_views_over_views_keeps_nobody() {
    let server = server(&[]);
    let mut raw = server.raw();
    assert_eq!(state(&raw.query("CREATE VIEW v0 AS SELECT k FROM few")), None);
    for level in 1..=12 {
        let below = level - 1;
        let view = format!("CREATE VIEW v{level} AS SELECT a.k FROM v{below} a JOIN v{below} b USING (k)");
        assert_eq!(state(&raw.query(&view)), None);
    }
    assert_keeps_nobody(&server, "SELECT count(*) FROM v12");
    assert_keeps_nobody(&server, "EXPLAIN SELECT count(*) FROM v12");
}

#[test]
fn a_loop_that_only_computes_keeps_nobody() {
    let server = server(&[]);
    for body in [
        "LOOP s := md5(repeat('x', 1000000)); END LOOP",
        "LOOP BEGIN s := md5(repeat('x', 1000000)); EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP",
        "FOR i IN 1 .. 1000 LOOP s := md5(repeat('x', 50000000 + i)); END LOOP",
    ] {
        assert_keeps_nobody(&server, &format!("DO $$ DECLARE s text; BEGIN {body}; END $$"));
    }
}

#[test]
fn rows_that_are_copied_keep_nobody() {
    let server = server(&[]);
    let (mut busy, mut other) = (server.raw(), server.raw());
    let made = busy.query("CREATE TABLE checked (v text CHECK (length(md5(repeat(v, 5000000))) = 32))");
    assert_eq!(state(&made), None);
    let pid = pid(&mut busy);
    busy.send(b'Q', b"COPY checked FROM STDIN\0");
    busy.until(b'G');
    busy.send(b'd', "x\n".repeat(5_000).as_bytes());
    busy.send(b'c', b"");
    for _ in 0..ANSWERS {
        // What it has claimed is its own until it ends.
        assert_eq!(kinds(&other.query("SELECT 1")), "TDCZ");
        assert_eq!(kinds(&server.raw().query("SELECT 1")), "TDCZ");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!has_answered(&busy), "it was answered first");
    other.query(&format!("SELECT pg_cancel_backend({pid})"));
    assert_eq!(state(&busy.until(b'Z')).as_deref(), Some("57014"));
}

#[test]
fn what_a_definition_computes_of_few_rows_keeps_nobody() {
    let server = server(&[]);
    let (mut busy, mut other) = (server.raw(), server.raw());
    let pid = pid(&mut busy);
    let computed = sum("length(md5(repeat(v, 100000000 + #)))", 40);
    for definition in [
        format!("ALTER TABLE few ADD CHECK (k < {computed})"),
        format!("ALTER TABLE few ALTER k TYPE bigint USING {computed}"),
        format!("CREATE INDEX ON few (({computed}))"),
    ] {
        busy.send(b'Q', &[definition.as_bytes(), b"\0"].concat());
        begins(&mut other, &busy, &pid);
        for _ in 0..ANSWERS {
            assert_eq!(kinds(&other.query("SELECT 1")), "TDCZ");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(!has_answered(&busy), "it was answered first: {definition}");
        other.query(&format!("SELECT pg_cancel_backend({pid})"));
        assert_eq!(state(&busy.until(b'Z')).as_deref(), Some("57014"), "{definition}");
    }
}

#[test]
fn rows_that_are_copied_anew_are_given_the_same_numbers() {
    let server = server(&["archipel.one_shot_budget=1"]);
    let mut raw = server.raw();
    let made = raw.query(
        "CREATE TABLE numbered (id serial, v text CHECK (length(md5(repeat(v, 1000000))) = 32), n serial)",
    );
    assert_eq!(state(&made), None);
    raw.send(b'Q', b"COPY numbered (v) FROM STDIN\0");
    raw.until(b'G');
    raw.send(b'd', "x\n".repeat(100).as_bytes());
    raw.send(b'c', b"");
    assert_eq!(kinds(&raw.until(b'Z')), "CZ");
    let given =
        "SELECT concat_ws(' ', count(*), min(id), max(id), bool_and(id = n), lastval()) FROM numbered";
    assert_eq!(value(&raw.query(given)).as_deref(), Some("100 1 100 t 100"));
}

#[test]
fn what_is_said_at_length_waits_for_its_reader() {
    let server = server(&[]);
    let (mut busy, mut other) = (server.raw(), server.raw());
    let pid = pid(&mut busy);
    let text = "DO $$ BEGIN FOR i IN 1 .. 20000 LOOP RAISE NOTICE '%', repeat('x', 5000); END LOOP; END $$";
    busy.send(b'Q', &[text.as_bytes(), b"\0"].concat());
    for _ in 0..6_000 {
        if has_answered(&busy) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // It says no more than its client reads, and others have their turns.
    for _ in 0..ANSWERS {
        assert_eq!(kinds(&other.query("SELECT v FROM few WHERE k = 1")), "TDCZ");
        assert!(is_active(&mut other, &pid));
    }
    let answer = kinds(&busy.until(b'Z'));
    assert_eq!(answer.matches('N').count(), 20_000);
    assert!(answer.ends_with("NCZ"), "{}", &answer[answer.len() - 5..]);
}

#[test]
fn no_handler_sees_that_a_statement_has_begun_anew() {
    // What these compute is over it.
    let server = server(&["archipel.one_shot_budget=1"]);
    let mut raw = server.raw();
    let long = "length(md5(repeat('x', n)))";
    for (round, call) in [
        format!("m := {long}"),
        "EXECUTE 'SELECT length(md5(repeat(''x'', $1)))' INTO m USING n".to_owned(),
        format!("SELECT {long} INTO m FROM few WHERE k = 1"),
        format!("FOR m IN SELECT {long} FROM few LOOP END LOOP"),
    ]
    .iter()
    .enumerate()
    {
        let block = format!(
            "DO $$ DECLARE n int := 20000000; m int; BEGIN \
             INSERT INTO told VALUES ({round}); \
             BEGIN {call}; INSERT INTO told VALUES ({round}); \
             EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'seen: %', SQLSTATE; END; \
             END $$"
        );
        assert_eq!(kinds(&raw.query(&block)), "CZ", "{call}");
        let told = raw.query(&format!("SELECT count(*) FROM told WHERE k = {round}"));
        assert_eq!(value(&told).as_deref(), Some("2"), "{call}");
    }
}

#[test]
fn checks_at_the_end_of_a_statement_that_has_begun_anew_say_what_they_say() {
    let server = server(&["archipel.one_shot_budget=1"]);
    let mut raw = server.raw();
    let made = raw.query(
        "INSERT INTO few VALUES (-1, ''); CREATE FUNCTION said() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         PERFORM md5(repeat('x', 20000000)); RAISE NOTICE '% %', tg_when, new.k; \
         IF tg_when = 'AFTER' AND new.k < 0 THEN RAISE 'refused'; END IF; RETURN new; END $$; \
         CREATE TABLE checked (k int REFERENCES few DEFERRABLE INITIALLY DEFERRED); \
         CREATE TRIGGER before BEFORE INSERT ON checked FOR EACH ROW EXECUTE FUNCTION said(); \
         CREATE CONSTRAINT TRIGGER later AFTER INSERT ON checked DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION said()",
    );
    assert_eq!(state(&made), None);
    for (text, expected) in [
        ("INSERT INTO checked VALUES (1)", "NNCZ"),
        ("INSERT INTO checked VALUES (1) RETURNING k", "NTDNCZ"),
        ("INSERT INTO checked VALUES (-1) RETURNING k", "NNEZ"),
        ("DO $$ BEGIN INSERT INTO checked VALUES (1); COMMIT; RAISE NOTICE 'done'; END $$", "NNNCZ"),
    ] {
        assert_eq!(kinds(&raw.query(text)), expected, "{text}");
    }
}

#[test]
fn a_value_that_takes_long_to_read_is_the_same_value() {
    let server = server(&["archipel.one_shot_budget=1"]);
    let mut raw = server.raw();
    let document = format!("[{}1]", "1,".repeat(2_000_000));
    let mut bind = b"\0\0\0\0\0\x01".to_vec();
    bind.extend_from_slice(&(document.len() as u32).to_be_bytes());
    bind.extend_from_slice(document.as_bytes());
    bind.extend_from_slice(b"\0\0");
    let execute = framed(b'E', b"\0\0\0\0\0");
    let messages = [parse("SELECT jsonb_array_length($1)"), framed(b'B', &bind), execute.clone()];
    let answer = raw.pipeline(&messages);
    assert_eq!(kinds(&answer), "12DCZ");
    assert_eq!(value(&answer).as_deref(), Some("2000001"));
    // What is no document is told as ever.
    let bind = [&bind[..10], b"!", &bind[11..]].concat();
    let answer = raw.pipeline(&[parse("SELECT jsonb_array_length($1)"), framed(b'B', &bind), execute]);
    assert_eq!(state(&answer).as_deref(), Some("22P02"));
}

#[test]
fn functions_that_ask_whether_something_fails_are_not_told() {
    let server = server(&["archipel.one_shot_budget=1"]);
    let mut raw = server.raw();
    let answer = raw.query(
        "CREATE FUNCTION tried(n int) RETURNS int LANGUAGE plpgsql AS $$ \
         BEGIN RETURN length(md5(repeat('x', n))); EXCEPTION WHEN OTHERS THEN RETURN -1; END $$; \
         SELECT tried(20000000)",
    );
    assert_eq!(value(&answer).as_deref(), Some("32"));
    let document = "('[' || repeat('1,', 2000000) || '1]')::jsonb";
    let answer = raw.query(&format!("SELECT jsonb_path_exists({document}, '$[*] ? (@ == 2)', '{{}}', true)"));
    assert_eq!(value(&answer).as_deref(), Some("f"));
}

#[test]
fn what_others_see_is_done_once() {
    let server = server(&["archipel.one_shot_budget=1"]);
    let (mut raw, mut other) = (server.raw(), server.raw());
    let pid = pid(&mut other);
    // The cancel finds the other one asleep, and nothing that it does afterwards.
    for call in ["pg_cancel_backend", "pg_terminate_backend"] {
        other.send(b'Q', b"SELECT pg_sleep(600)\0");
        begins(&mut raw, &other, &pid);
        let text = format!(
            "DO $$ BEGIN PERFORM {call}({pid}); PERFORM pg_sleep(0.1); INSERT INTO told VALUES (0); \
             FOR i IN 1 .. 20 LOOP PERFORM md5(repeat('x', 1000000)); END LOOP; END $$"
        );
        raw.send(b'Q', &[text.as_bytes(), b"\0"].concat());
        let told = other.until(b'E');
        let expected = if call == "pg_cancel_backend" { "57014" } else { "57P01" };
        assert_eq!(state(&told).as_deref(), Some(expected));
        if call == "pg_cancel_backend" {
            other.until(b'Z');
            assert_eq!(kinds(&other.query("SELECT pg_sleep(0.3)")), "TDCZ");
        }
        assert_eq!(kinds(&raw.until(b'Z')), "CZ");
    }
}
