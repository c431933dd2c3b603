//! What was asked to stop stops, wherever it is: in one call of a function, while it is read and
//! planned, while a COPY waits for its client, while it waits for a lock. No limit here is tight: work
//! that did not stop would take hours.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Raw, Server, framed, kinds, state};

/// How long what must come may take, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn server() -> (Server, Raw) {
    let server = Server::start(&[]);
    let raw = server.raw();
    (server, raw)
}

/// The text of the first value of an answer.
fn value(messages: &[(u8, Vec<u8>)]) -> String {
    let (_, row) = messages.iter().find(|(kind, _)| *kind == b'D').expect("a row");
    let length = i32::from_be_bytes([row[2], row[3], row[4], row[5]]);
    String::from_utf8_lossy(&row[6..6 + length as usize]).into_owned()
}

fn message(messages: &[(u8, Vec<u8>)]) -> String {
    let (_, body) = messages.iter().find(|(kind, _)| *kind == b'E').expect("an error");
    let mut fields = body.split(|byte| *byte == 0);
    let text = fields.find_map(|field| field.strip_prefix(b"M")).expect("a message");
    String::from_utf8_lossy(text).into_owned()
}

const TIMED_OUT: &str = "canceling statement due to statement timeout";
const CANCELLED: &str = "canceling statement due to user request";

/// Runs a statement under a `statement_timeout` that ends it, and sees that the session goes on.
fn times_out(raw: &mut Raw, timeout: &str, text: &str) {
    assert_eq!(kinds(&raw.query(&format!("SET statement_timeout = '{timeout}'"))), "CZ");
    let answer = raw.query(text);
    let shown = &text[..text.len().min(80)];
    assert_eq!(state(&answer).as_deref(), Some("57014"), "{shown}");
    assert_eq!(message(&answer), TIMED_OUT, "{shown}");
    without_timeout(raw);
    assert_eq!(value(&raw.query("SELECT 1 + 1")), "2", "{shown}");
}

/// Ends the transaction and the timeout, which may be too short for that on a busy machine.
fn without_timeout(raw: &mut Raw) {
    let begun = Instant::now();
    while ["ROLLBACK", "SET statement_timeout = 0"].iter().any(|text| state(&raw.query(text)).is_some()) {
        assert!(begun.elapsed() < PATIENCE, "the timeout cannot be taken back");
    }
}

/// One call each that takes hours.
const LONG_CALLS: [&str; 7] = [
    "repeat('a', 1000000) LIKE '%' || repeat('a', 500000) || 'b%'",
    "btrim(repeat('a', 9000000), repeat('b', 9000000) || 'a')",
    "translate(repeat('a', 3000000), repeat('b', 3000000), '')",
    "regexp_count(repeat('a', 3000000), 'a.*b|a')",
    "regexp_replace(repeat('a', 3000000), 'a.*b|a', 'x', 'g')",
    "array_fill(1, ARRAY[1000000]) && array_fill(2, ARRAY[1000000])",
    "('[' || repeat('[1],', 200000) || '[2]]')::jsonb @> ('[' || repeat('[2],', 200000) || '[2]]')::jsonb",
];

#[test]
fn one_call_of_a_function_is_ended() {
    let (_server, mut raw) = server();
    for call in LONG_CALLS {
        times_out(&mut raw, "300ms", &format!("SELECT {call} IS NULL"));
    }
    // Where rows come from a table, and where a routine calls.
    raw.query("CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t SELECT i, 'a' FROM generate_series(1, 9) i");
    times_out(
        &mut raw,
        "300ms",
        "SELECT count(*) FROM t WHERE repeat(v, 1000000) LIKE '%' || repeat(v, 500000) || 'b%'",
    );
    times_out(&mut raw, "300ms", "UPDATE t SET v = translate(repeat(v, 3000000), repeat('b', 3000000), '')");
    times_out(
        &mut raw,
        "300ms",
        "DO $$ BEGIN PERFORM translate(repeat('a', 3000000), repeat('b', 3000000), ''); EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'caught'; END $$",
    );
    assert_eq!(value(&raw.query("SELECT string_agg(v, '') FROM t")), "aaaaaaaaa");
    // In one search of an expression of more states than any automaton keeps.
    raw.query(
        "CREATE TABLE hex AS SELECT string_agg(md5(i::text), '') AS v FROM generate_series(1, 60000) i",
    );
    let many_states = "repeat(v, 30) ~ '[0-9a-f]*[13579bdf]([0-9a-f]{250}){4}[x-z]'";
    times_out(&mut raw, "300ms", &format!("UPDATE hex SET v = '' WHERE {many_states}"));
    times_out(&mut raw, "300ms", &format!("SELECT count(*) FROM hex WHERE {many_states}"));
    // Where no call is long, and thousands of them come in one batch.
    for short in [
        "sum(repeat('9', 100000 + g % 2)::numeric)",
        "var_pop(repeat('9', 100000 + g % 2)::numeric)",
        "max(upper(repeat('a', 10000000 + g % 2)))",
    ] {
        times_out(&mut raw, "300ms", &format!("SELECT {short} FROM generate_series(1, 10000000) g"));
    }
    // Nor any of those that a row makes of another query's rows.
    raw.query("CREATE TABLE n (k int PRIMARY KEY, v text); INSERT INTO n SELECT i, 'v' || i FROM generate_series(1, 30000) i");
    times_out(&mut raw, "300ms", "SELECT count(*) FROM n WHERE v ~ ANY (SELECT v || 'z' FROM n)");
    // A number that is too long is not read first, which takes the square of its length.
    let refused = raw.query("SELECT repeat('1', 30000000)::numeric");
    assert_eq!(state(&refused).as_deref(), Some("22003"));
}

#[test]
fn loops_of_every_form_are_ended() {
    let (_server, mut raw) = server();
    for body in [
        "LOOP END LOOP",
        "LOOP CONTINUE; END LOOP",
        "WHILE true LOOP CONTINUE; END LOOP",
        "LOOP IF x = 0 THEN CONTINUE; END IF; x := 1; END LOOP",
        "<<a>> LOOP LOOP CONTINUE a; END LOOP; END LOOP",
        "<<a>> LOOP FOR i IN 1..3 LOOP CONTINUE a WHEN i = 1; END LOOP; END LOOP",
        "<<a>> WHILE x = 0 LOOP FOREACH y IN ARRAY ARRAY[1, 2] LOOP CONTINUE a; END LOOP; END LOOP",
        "LOOP BEGIN CONTINUE; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP",
        "LOOP PERFORM 1; CONTINUE; END LOOP",
    ] {
        times_out(&mut raw, "300ms", &format!("DO $$ DECLARE x int := 0; y int; BEGIN {body}; END $$"));
    }
}

#[test]
fn a_handler_takes_the_end_of_a_call() {
    let (_server, mut raw) = server();
    // Its block has begun by then.
    raw.query("SET statement_timeout = '3s'");
    let answer = raw.query(
        "DO $$ DECLARE letter text := 'a'; BEGIN
             PERFORM translate(repeat(letter, 3000000), repeat('b', 3000000), '');
         EXCEPTION WHEN query_canceled THEN RAISE NOTICE 'ended: %', SQLERRM; END $$",
    );
    assert_eq!(kinds(&answer), "NCZ");
    let notice = String::from_utf8_lossy(&answer[0].1).into_owned();
    assert!(notice.contains(&format!("ended: {TIMED_OUT}")), "{notice}");
}

#[test]
fn a_cancel_request_ends_a_call() {
    let server = Server::start(&[]);
    let mut raw = server.unopened();
    let mut body = vec![0, 3, 0, 0];
    body.extend_from_slice(b"user\0archipel\0database\0archipel\0\0");
    raw.send_untyped(&body);
    let greeting = raw.until(b'Z');
    let key = greeting.iter().find(|(kind, _)| *kind == b'K').expect("a key").1.clone();
    raw.send(b'Q', format!("SELECT {} IS NULL\0", LONG_CALLS[2]).as_bytes());
    // A request that comes before the statement begins ends nothing, so there are several.
    let (ended, begun) = (AtomicBool::new(false), Instant::now());
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) && begun.elapsed() < 2 * PATIENCE {
                let mut canceller = server.unopened();
                canceller.send_untyped(&[&80_877_102_u32.to_be_bytes(), &key[..]].concat());
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let answer = raw.until(b'Z');
        ended.store(true, Ordering::Relaxed);
        answer
    });
    assert_eq!((state(&answer).as_deref(), message(&answer).as_str()), (Some("57014"), CANCELLED));
}

#[test]
fn no_handler_takes_the_end_of_a_session() {
    let (server, mut raw) = server();
    let mut other = server.raw();
    let pid = value(&raw.query("SELECT pg_backend_pid()"));
    raw.send(
        b'Q',
        b"DO $$ DECLARE letter text := 'a'; BEGIN
             LOOP
                 PERFORM translate(repeat(letter, 3000), repeat('b', 3000), '');
             END LOOP;
         EXCEPTION WHEN OTHERS OR query_canceled THEN PERFORM pg_sleep(1000);
         END $$\0",
    );
    wait_for(
        &mut other,
        &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active'"),
        "1",
    );
    assert_eq!(value(&other.query(&format!("SELECT pg_terminate_backend({pid})"))), "t");
    wait_for(&mut other, &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"), "0");
    while raw.receive().is_some() {}
}

#[test]
fn who_ends_a_session_may_wait_for_that_and_is_warned_if_there_is_none() {
    let (server, mut other) = server();
    let mut raw = server.raw();
    let pid = value(&raw.query("SELECT pg_backend_pid()"));
    assert_eq!(value(&other.query(&format!("SELECT pg_terminate_backend({pid}, 120000)"))), "t");
    let left = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
    assert_eq!(value(&other.query(&left)), "0");
    for call in ["pg_terminate_backend(-1)", "pg_terminate_backend(-1, 10)", "pg_cancel_backend(-1)"] {
        let answer = other.query(&format!("SELECT {call}"));
        assert_eq!(value(&answer), "f", "{call}");
        let told = answer.iter().any(|(kind, body)| {
            let text = String::from_utf8_lossy(body);
            *kind == b'N' && text.contains("PID -1 is not a PostgreSQL backend process")
        });
        assert!(told, "{call} warns of nothing");
    }
    let failed = other.query("SELECT pg_cancel_backend(-1), 1 / (n - 1) FROM generate_series(1, 1) AS n");
    assert_eq!(state(&failed).as_deref(), Some("22012"));
    let warned = failed.iter().position(|(kind, _)| *kind == b'N').expect("a warning");
    assert!(failed[warned..].iter().any(|(kind, _)| *kind == b'E'), "the warning comes first");
    let refused = other.query("SELECT pg_terminate_backend(-1, -1)");
    assert_eq!(state(&refused).as_deref(), Some("22003"));
    assert_eq!(message(&refused), "\"timeout\" must not be negative");
}

/// Asks until the answer is this.
fn wait_for(raw: &mut Raw, question: &str, answer: &str) {
    let begun = Instant::now();
    while value(&raw.query(question)) != answer {
        assert!(begun.elapsed() < PATIENCE, "{question} is not {answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Statements whose reading and planning takes much longer than a few milliseconds.
fn long_texts() -> [String; 3] {
    let numbers = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    [
        format!("SELECT 1 WHERE 1 IN ({})", numbers(200_000).join(", ")),
        format!("SELECT count(*) FROM (VALUES ({})) AS v (a)", numbers(100_000).join("), (")),
        format!("SELECT ARRAY[{}]", numbers(200_000).join(", ")),
    ]
}

#[test]
fn reading_and_planning_are_ended() {
    let (_server, mut raw) = server();
    for text in long_texts() {
        times_out(&mut raw, "10ms", &text);
    }
}

/// The messages of one statement of the extended protocol.
fn extended(text: &str) -> Vec<u8> {
    let parse = framed(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat());
    let bind = framed(b'B', b"\0\0\0\0\0\0\0\0");
    let execute = framed(b'E', b"\0\0\0\0\0");
    [parse, bind, execute].concat()
}

fn send(raw: &mut Raw, bytes: &[u8]) {
    std::io::Write::write_all(&mut raw.stream, bytes).expect("the server reads");
}

#[test]
fn parse_and_execute_are_ended_and_what_follows_is_not() {
    let (_server, mut raw) = server();
    let sync = framed(b'S', b"");
    raw.query("SET statement_timeout = '10ms'");
    for text in long_texts() {
        send(&mut raw, &[extended(&text), sync.clone()].concat());
        let answer = raw.until(b'Z');
        assert_eq!(state(&answer).as_deref(), Some("57014"));
        assert_eq!(kinds(&answer), "EZ");
    }
    without_timeout(&mut raw);
    raw.query("SET statement_timeout = '3s'");
    for _ in 0..3 {
        send(&mut raw, &[extended("SELECT pg_sleep(1000)"), sync.clone()].concat());
        assert_eq!(state(&raw.until(b'Z')).as_deref(), Some("57014"));
        send(&mut raw, &[extended("SELECT 1 + 1"), sync.clone()].concat());
        assert_eq!(kinds(&raw.until(b'Z')), "12DCZ");
    }
}

#[test]
fn a_copy_that_waits_for_its_client_is_ended() {
    let (server, mut raw) = server();
    let mut other = server.raw();
    raw.query("CREATE TABLE t (k int PRIMARY KEY)");
    let pid = value(&raw.query("SELECT pg_backend_pid()"));
    let begin = |raw: &mut Raw, timeout: &str| {
        raw.query(&format!("SET statement_timeout = {timeout}"));
        raw.send(b'Q', b"COPY t FROM STDIN\0");
        raw.until(b'G');
        raw.send(b'd', b"1\n2\n");
    };
    let late = |raw: &mut Raw| {
        raw.send(b'd', b"3\n");
        raw.send(b'c', b"");
        assert_eq!(value(&raw.query("SELECT count(*) FROM t")), "0");
    };
    begin(&mut raw, "'3s'");
    let answer = raw.until(b'Z');
    assert_eq!((kinds(&answer).as_str(), message(&answer).as_str()), ("EZ", TIMED_OUT));
    late(&mut raw);

    begin(&mut raw, "0");
    wait_for(
        &mut other,
        &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active'"),
        "1",
    );
    other.query(&format!("SELECT pg_cancel_backend({pid})"));
    let answer = raw.until(b'Z');
    assert_eq!((kinds(&answer).as_str(), message(&answer).as_str()), ("EZ", CANCELLED));
    late(&mut raw);

    // In the extended protocol what comes until Sync is passed over.
    raw.query("SET statement_timeout = '3s'");
    send(&mut raw, &extended("COPY t FROM STDIN"));
    raw.until(b'G');
    raw.send(b'd', b"1\n2\n");
    assert_eq!(message(&raw.until(b'E')), TIMED_OUT);
    raw.send(b'd', b"3\n");
    raw.send(b'c', b"");
    raw.send(b'S', b"");
    assert_eq!(kinds(&raw.until(b'Z')), "Z");
    late(&mut raw);

    // One that is not asked to stop goes on however long it takes to come.
    begin(&mut raw, "0");
    std::thread::sleep(Duration::from_millis(500));
    raw.send(b'c', b"");
    assert_eq!(kinds(&raw.until(b'Z')), "CZ");
    assert_eq!(value(&raw.query("SELECT count(*) FROM t")), "2");
}

#[test]
fn a_copy_ends_with_its_client_and_with_its_session() {
    let (server, mut other) = server();
    other.query("CREATE TABLE t (k int PRIMARY KEY)");
    for terminate in [false, true] {
        let mut raw = server.raw();
        let pid = value(&raw.query("SELECT pg_backend_pid()"));
        raw.send(b'Q', b"COPY t FROM STDIN\0");
        raw.until(b'G');
        raw.send(b'd', b"1\n");
        if terminate {
            other.query(&format!("SELECT pg_terminate_backend({pid})"));
            while raw.receive().is_some() {}
        }
        drop(raw);
        wait_for(&mut other, &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"), "0");
    }
    assert_eq!(value(&other.query("SELECT count(*) FROM t")), "0");
}

#[test]
fn an_answer_that_nobody_reads_is_ended() {
    let (server, mut other) = server();
    let copy =
        "COPY (SELECT a, b FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b) TO STDOUT\0";
    for terminate in [false, true] {
        let mut raw = server.raw();
        let pid = value(&raw.query("SELECT pg_backend_pid()"));
        raw.send(b'Q', copy.as_bytes());
        wait_for(
            &mut other,
            &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active'"),
            "1",
        );
        // Until it has sent what nobody reads.
        std::thread::sleep(Duration::from_secs(1));
        if terminate {
            other.query(&format!("SELECT pg_terminate_backend({pid})"));
            wait_for(&mut other, &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"), "0");
        } else {
            other.query(&format!("SELECT pg_cancel_backend({pid})"));
            assert_eq!(state(&raw.until(b'Z')).as_deref(), Some("57014"));
        }
    }
}

#[test]
fn whatever_waits_is_ended() {
    let (server, mut raw) = server();
    let mut other = server.raw();
    other.query("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)");
    other.query("BEGIN; SELECT pg_advisory_lock(1); UPDATE t SET v = 2; LOCK TABLE t");
    let waiting = [
        "SELECT pg_sleep(1000)",
        "SELECT pg_advisory_lock(1)",
        "BEGIN; SELECT pg_advisory_xact_lock(1)",
        "SELECT * FROM t",
        "UPDATE t SET v = 3",
        "BEGIN; LOCK TABLE t",
        "SELECT * FROM t FOR UPDATE",
        "CREATE INDEX ON t (v)",
        "ALTER TABLE t ADD COLUMN w int",
        "TRUNCATE t",
        "DROP TABLE t",
        "DO $$ BEGIN LOOP NULL; END LOOP; END $$",
        "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
    ];
    for text in waiting {
        times_out(&mut raw, "300ms", text);
    }
    other.query("COMMIT");
    assert_eq!(value(&raw.query("SELECT v FROM t")), "2");
}

#[test]
fn the_time_of_a_statement_runs_between_its_messages() {
    let (_server, mut raw) = server();
    raw.query("SET statement_timeout = '200ms'");
    raw.send(b'P', b"kept\0SELECT $1::int4\0\0\0");
    // Nothing more is sent: the error comes by itself.
    let answer = raw.until(b'E');
    assert_eq!((kinds(&answer).as_str(), message(&answer).as_str()), ("1E", TIMED_OUT));
    raw.send(b'D', b"Skept\0");
    raw.send(b'S', b"");
    assert_eq!(kinds(&raw.until(b'Z')), "Z");
    // After Sync nothing runs whose time there could be.
    std::thread::sleep(Duration::from_millis(600));
    without_timeout(&mut raw);
    let kept = raw.query("SELECT count(*) FROM pg_prepared_statements WHERE name = 'kept'");
    assert_eq!(value(&kept), "1");
}

/// A token takes a hundred bytes: a message that is allowed is more of them than there is memory.
#[test]
fn a_text_of_more_tokens_than_there_is_memory_for_is_refused() {
    let server = Server::start(&["max_memory=512MB"]);
    let mut raw = server.raw();
    for text in [format!("SELECT {}1", "1,".repeat(8_000_000)), format!("SELECT {}", "(".repeat(16_000_000))]
    {
        assert_eq!(state(&raw.query(&text)).as_deref(), Some("53200"));
        assert_eq!(value(&raw.query("SELECT 1 + 1")), "2");
    }
    let short = format!("SELECT length('{}')", "a".repeat(16_000_000));
    assert_eq!(value(&raw.query(&short)), "16000000");
}
