//! Definitions that run beside other work: what they wait for, and who waits for them meanwhile.

mod common;

use common::{Raw, Server, kinds, state, wait_for_waiters};

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
