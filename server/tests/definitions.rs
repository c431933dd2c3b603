//! Definitions that run beside other work: what they wait for, and who waits for them meanwhile.

mod common;

use common::{Raw, Server, kinds, state, told, wait_for_waiters};

/// Tables `a` and `b`, and functions that read `b`.
fn started() -> (Server, Raw) {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    for definition in [
        "CREATE TABLE a (x int)",
        "INSERT INTO a VALUES (1)",
        "CREATE TABLE b (id int PRIMARY KEY)",
        "INSERT INTO b VALUES (1)",
        "CREATE FUNCTION is_there(int) RETURNS bool LANGUAGE sql AS 'SELECT EXISTS (SELECT FROM b WHERE id = $1)'",
        "CREATE FUNCTION greatest_there() RETURNS int LANGUAGE sql AS 'SELECT max(id) FROM b'",
    ] {
        assert_eq!(kinds(&raw.query(definition)), "CZ", "{definition}");
    }
    (server, raw)
}

fn begin(raw: &mut Raw, text: &str) {
    raw.send(b'Q', &[text.as_bytes(), b"\0"].concat());
}

const READS_ANOTHER_TABLE: [&str; 3] = [
    "ALTER TABLE a ADD CHECK (is_there(x))",
    "ALTER TABLE a ADD COLUMN y int DEFAULT greatest_there()",
    "ALTER TABLE a ALTER x TYPE int USING greatest_there()",
];

#[test]
fn who_has_locked_what_a_definition_reads_can_define_and_commit() {
    let (server, mut raw) = started();
    let (mut holder, mut other) = (server.raw(), server.raw());
    for definition in READS_ANOTHER_TABLE {
        for text in ["BEGIN", "LOCK TABLE b", "CREATE TABLE within (i int)"] {
            assert_eq!(kinds(&holder.query(text)), "CZ", "{text}");
        }
        begin(&mut raw, definition);
        wait_for_waiters(&mut other, 1);
        assert_eq!(kinds(&other.query("CREATE TABLE beside (i int)")), "CZ", "{definition}");
        assert_eq!(kinds(&holder.query("COMMIT")), "CZ", "{definition}");
        assert_eq!(kinds(&raw.until(b'Z')), "CZ", "{definition}");
        assert_eq!(kinds(&other.query("DROP TABLE within, beside")), "CZ");
    }
}

#[test]
fn a_definition_in_a_cycle_of_waits_is_found() {
    let (server, mut raw) = started();
    let (mut holder, mut other) = (server.raw(), server.raw());
    holder.query("BEGIN");
    holder.query("LOCK TABLE b");
    begin(&mut raw, READS_ANOTHER_TABLE[0]);
    wait_for_waiters(&mut other, 1);
    let asked = state(&holder.query("SELECT * FROM a"));
    holder.query("ROLLBACK");
    let defined = state(&raw.until(b'Z'));
    let found = [asked, defined].into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(found, ["40P01"]);
}

const LOCKS_A_ROW: [&str; 4] = [
    "ALTER TABLE a ADD CHECK (looked_at(x) < 77)",
    "ALTER TABLE a ADD COLUMN y int DEFAULT looked_at(3)",
    "ALTER TABLE a ALTER x TYPE int USING counted(x)",
    "ALTER TABLE a ALTER x TYPE int USING looked_at(x)",
];

/// What takes a row of `b`, or the advisory lock 7.
fn define_what_locks(raw: &mut Raw) {
    for definition in [
        "CREATE TABLE counts (id int PRIMARY KEY, n int)",
        "INSERT INTO counts VALUES (1, 1)",
        "CREATE FUNCTION counted(i int) RETURNS int LANGUAGE plpgsql AS \
         'BEGIN UPDATE counts SET n = n + 1 WHERE id = 1; RETURN i; END'",
        "CREATE FUNCTION looked_at(i int) RETURNS int LANGUAGE plpgsql AS \
         'BEGIN PERFORM FROM counts WHERE id = 1 FOR UPDATE; RETURN i; \
            EXCEPTION WHEN lock_not_available THEN RETURN 77; END'",
        "CREATE FUNCTION alone(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN i; END'",
    ] {
        assert_eq!(kinds(&raw.query(definition)), "CZ", "{definition}");
    }
}

/// A block holds what `held` takes, and defines something; a definition waits for it, and nobody for the
/// definition.
fn others_define_beside(server: &Server, raw: &mut Raw, held: &str, definition: &str) {
    let (mut holder, mut other) = (server.raw(), server.raw());
    for text in ["BEGIN", held, "CREATE TABLE within (i int)"] {
        assert!(state(&holder.query(text)).is_none(), "{text}");
    }
    begin(raw, definition);
    wait_for_a_wait(&mut other);
    assert_eq!(kinds(&other.query("CREATE TABLE beside (i int)")), "CZ", "{definition}");
    assert_eq!(kinds(&holder.query("COMMIT")), "CZ", "{definition}");
    assert_eq!(kinds(&raw.until(b'Z')), "CZ", "{definition}");
    assert_eq!(kinds(&other.query("DROP TABLE within, beside")), "CZ");
}

/// Waits until a session waits for a lock of any kind.
fn wait_for_a_wait(other: &mut Raw) {
    wait_for_a_row(other, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
}

/// Waits until a query has a row.
fn wait_for_a_row(other: &mut Raw, query: &str) {
    for _ in 0..6000 {
        if kinds(&other.query(query)).contains('D') {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("nobody waits: {query}");
}

fn pid(raw: &mut Raw) -> String {
    told(&raw.query("SELECT pg_backend_pid()")).swap_remove(0)
}

#[test]
fn who_has_locked_rows_and_numbers_that_a_definition_locks_can_define_and_commit() {
    let (server, mut raw) = started();
    define_what_locks(&mut raw);
    for definition in LOCKS_A_ROW {
        others_define_beside(&server, &mut raw, "UPDATE counts SET n = 0", definition);
    }
    let seen = raw.query("SELECT x FROM a WHERE x = 1");
    assert!(kinds(&seen).contains('D'), "a lock that is not there yet is no error");
    for definition in ["ALTER TABLE a ALTER x TYPE int USING alone(x)", "CREATE INDEX ON a (alone(x))"] {
        others_define_beside(&server, &mut raw, "SELECT pg_advisory_xact_lock(7)", definition);
    }
}

#[test]
fn a_definition_in_a_cycle_of_waits_for_a_row_or_a_number_is_found() {
    let (server, mut raw) = started();
    define_what_locks(&mut raw);
    let ways = [
        ("UPDATE counts SET n = 0", LOCKS_A_ROW[2]),
        ("SELECT pg_advisory_xact_lock(7)", "ALTER TABLE a ALTER x TYPE int USING alone(x)"),
    ];
    for (held, definition) in ways {
        let (mut holder, mut other) = (server.raw(), server.raw());
        holder.query("BEGIN");
        holder.query(held);
        begin(&mut raw, definition);
        wait_for_a_wait(&mut other);
        let asked = state(&holder.query("SELECT * FROM a"));
        holder.query("ROLLBACK");
        let defined = state(&raw.until(b'Z'));
        let found = [asked, defined].into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(found, ["40P01"], "{definition}");
    }
}

#[test]
fn a_definition_of_a_block_in_a_cycle_of_waits_is_found() {
    let (server, mut raw) = started();
    define_what_locks(&mut raw);
    let ways = [
        ("UPDATE counts SET n = 0", "ALTER TABLE a ADD COLUMN y int DEFAULT looked_at(3)"),
        ("SELECT pg_advisory_xact_lock(7)", "ALTER TABLE a ALTER x TYPE int USING alone(x)"),
    ];
    for (held, definition) in ways {
        let (mut holder, mut other) = (server.raw(), server.raw());
        holder.query("BEGIN");
        holder.query(held);
        raw.query("BEGIN");
        begin(&mut raw, definition);
        wait_for_a_wait(&mut other);
        let asked = state(&holder.query("SELECT * FROM a"));
        holder.query("ROLLBACK");
        let defined = state(&raw.until(b'Z'));
        raw.query("ROLLBACK");
        let found = [asked, defined].into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(found, ["40P01"], "{definition}");
    }
}

/// An update that comes late to each of its rows keeps those that it has got past, though no block has them.
#[test]
fn a_definition_and_who_has_waited_often_let_each_other_through() {
    let server = Server::start(&["deadlock_timeout=100ms"]);
    let (mut raw, mut other) = (server.raw(), server.raw());
    let rows = "INSERT INTO t SELECT i, 0 FROM generate_series(1, 4) i";
    for text in ["CREATE TABLE t (id int PRIMARY KEY, n int)", rows] {
        assert_eq!(kinds(&raw.query(text)), "CZ", "{text}");
    }
    for definition in ["CREATE INDEX ON t (n)", "ALTER TABLE t ADD COLUMN w int"] {
        let mut holders: Vec<Raw> = (0..4).map(|_| server.raw()).collect();
        for (id, holder) in (1..).zip(&mut holders) {
            let lock = format!("BEGIN; SELECT FROM t WHERE id = {id} FOR UPDATE");
            assert_eq!(state(&holder.query(&lock)), None, "{lock}");
        }
        let mut writer = server.raw();
        let waits = pid(&mut writer);
        begin(&mut writer, "UPDATE t SET n = n + 1 WHERE id <= 4");
        for (id, holder) in (1..).zip(&mut holders) {
            let blocks = pid(holder);
            wait_for_a_row(&mut other, &format!("SELECT 1 WHERE {blocks} = ANY (pg_blocking_pids({waits}))"));
            if id == 4 {
                begin(&mut raw, definition);
                let both =
                    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' HAVING count(*) >= 2";
                wait_for_a_row(&mut other, both);
            }
            assert_eq!(kinds(&holder.query("ROLLBACK")), "CZ");
        }
        assert_eq!(kinds(&writer.until(b'Z')), "CZ", "{definition}");
        assert_eq!(kinds(&raw.until(b'Z')), "CZ", "{definition}");
    }
    assert_eq!(told(&raw.query("SELECT sum(n) FROM t"))[0], "8");
}

#[test]
fn what_a_table_makes_beside_it_is_told_who_wants_to_hear_it() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    let mut heard = |text: &str| -> Vec<String> {
        let fields = |body: &[u8]| {
            let body = String::from_utf8_lossy(body).into_owned();
            let field = |letter: char| {
                body.split('\0').find_map(|field| field.strip_prefix(letter)).unwrap_or("").to_owned()
            };
            format!("{} {}", field('S'), field('M'))
        };
        raw.query(text).iter().filter(|(kind, _)| *kind == b'N').map(|(_, body)| fields(body)).collect()
    };
    let table = "CREATE TABLE t (id int UNIQUE, b serial, PRIMARY KEY (b))";
    assert_eq!(heard(table), Vec::<String>::new());
    heard("DROP TABLE t");
    heard("SET client_min_messages = debug1");
    assert_eq!(
        heard(table),
        [
            "DEBUG CREATE TABLE will create implicit sequence \"t_b_seq\" for serial column \"t.b\"",
            "DEBUG CREATE TABLE / PRIMARY KEY will create implicit index \"t_pkey\" for table \"t\"",
            "DEBUG CREATE TABLE / UNIQUE will create implicit index \"t_id_key\" for table \"t\"",
        ]
    );
    assert_eq!(
        heard("ALTER TABLE t ADD COLUMN x serial, ADD CONSTRAINT u UNIQUE (x)"),
        [
            "DEBUG ALTER TABLE will create implicit sequence \"t_x_seq\" for serial column \"t.x\"",
            "DEBUG ALTER TABLE / ADD UNIQUE will create implicit index \"u\" for table \"t\"",
        ]
    );
}
