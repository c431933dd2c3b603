//! psql against both servers: what a person types first must look the same.

use std::process::{Command, Stdio};

use archipel_tests::postgres::Postgres;
use archipel_tests::server::Server;

/// Runs a script through psql and answers everything it printed, errors included.
fn psql(url: &str, script: &str) -> String {
    let mut child = Command::new("psql")
        .args(["-X", "-P", "pager=off", "-d", url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql is installed");
    use std::io::Write;
    child.stdin.take().expect("it is piped").write_all(script.as_bytes()).expect("psql reads its script");
    let output = child.wait_with_output().expect("psql ends");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const SCHEMA: &str = "
CREATE TABLE department (id integer PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE account (
    id integer PRIMARY KEY,
    owner varchar(10) NOT NULL,
    balance numeric(12,2) NOT NULL DEFAULT 0,
    department_id integer CHECK (department_id > 0) REFERENCES department (id),
    opened timestamptz DEFAULT now()
);
CREATE INDEX account_owner ON account (owner, balance DESC);
CREATE SEQUENCE counter;
CREATE FUNCTION add(a integer, b integer DEFAULT 1) RETURNS integer LANGUAGE sql AS 'SELECT a + b';
CREATE PROCEDURE touch(p integer) LANGUAGE plpgsql AS $$ BEGIN UPDATE account SET owner = owner WHERE id = p; END $$;
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% by %', TG_OP, TG_NAME;
    NEW.opened := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE OF balance ON account FOR EACH ROW EXECUTE FUNCTION stamp('x', 1);
CREATE TRIGGER changed AFTER UPDATE ON account FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION stamp();
CREATE TRIGGER silent BEFORE DELETE ON account EXECUTE FUNCTION stamp();
ALTER TABLE account DISABLE TRIGGER silent;
";

#[test]
fn a_session_in_psql_looks_as_on_postgresql() {
    let postgres = Postgres::start();
    let server = Server::start(&[]);
    assert_eq!(psql(&server.url(), SCHEMA), psql(&postgres.url(), SCHEMA));
    let scripts = [
        "\\dt\n",
        "\\d account\n",
        "\\d department\n",
        "\\d counter\n",
        "\\di\n",
        "\\ds\n",
        "\\df\n",
        "\\d\n",
        "\\sf add\n",
        "SELECT * FROM account;\nINSERT INTO department VALUES (1, 'x');\nTABLE department;\n",
        "INSERT INTO department VALUES (1, 'y');\n",
        "INSERT INTO account VALUES (1, 'ann', 5);\nUPDATE account SET balance = 6;\nTABLE account;\n",
        "DROP FUNCTION stamp();\n",
        "DELETE FROM account;\n",
        "SELECT nosuch FROM account;\n",
        "SELECT 1 +;\n",
        "\\x\nSELECT 1 AS a, NULL AS b, 'x' AS c;\n",
        "BEGIN;\nINSERT INTO department VALUES (2, 'z');\nROLLBACK;\nSELECT count(*) FROM department;\n",
        "DO $$ BEGIN RAISE NOTICE 'hello %', 1 + 1; END $$;\n",
        "CALL touch(1);\nSELECT add(1);\n",
        "\\copy department FROM STDIN WITH CSV\n5,five\n6,\"si,x\"\n\\.\nSELECT * FROM department ORDER BY id;\n",
        "COPY department TO STDOUT;\n",
    ];
    let mut differences = Vec::new();
    for script in scripts {
        let (expected, got) = (psql(&postgres.url(), script), psql(&server.url(), script));
        if expected != got {
            differences.push(format!("--- {script}PostgreSQL:\n{expected}Archipel:\n{got}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {} differ\n{}",
        differences.len(),
        scripts.len(),
        differences.join("\n")
    );
}

/// Rows that reference later ones, deferred keys, triggers of the statement and of its end.
const COPIES: &str = r"
CREATE TABLE tree (id integer PRIMARY KEY, parent integer REFERENCES tree);
\copy tree FROM STDIN
1	3
2	1
3	\N
\.
SELECT * FROM tree ORDER BY id;
\copy tree FROM STDIN
4	9
\.
CREATE TABLE p (id integer PRIMARY KEY);
CREATE TABLE c (p integer REFERENCES p DEFERRABLE INITIALLY DEFERRED);
BEGIN;
\copy c FROM STDIN
1
2
\.
INSERT INTO p VALUES (1), (2);
COMMIT;
SELECT * FROM c ORDER BY p;
BEGIN;
\copy c FROM STDIN
3
\.
COMMIT;
CREATE TABLE log (id serial, what text);
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log (what) SELECT TG_NAME || ' ' || TG_LEVEL || ' sees ' || count(*) FROM watched;
    RAISE NOTICE '% %', TG_NAME, TG_LEVEL;
    RETURN NULL;
END $$;
CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log (what) SELECT TG_NAME || ' of ' || count(*) || ' up to ' || max(id) FROM fresh;
    RETURN NULL;
END $$;
CREATE TABLE watched (id serial, v text);
CREATE TRIGGER a_before BEFORE INSERT ON watched EXECUTE FUNCTION noted();
CREATE TRIGGER b_row AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION noted();
CREATE TRIGGER c_after AFTER INSERT ON watched EXECUTE FUNCTION noted();
CREATE TRIGGER d_new AFTER INSERT ON watched REFERENCING NEW TABLE AS fresh EXECUTE FUNCTION counted();
\copy watched (v) FROM STDIN
x
y
\.
SELECT what FROM log ORDER BY id;
SELECT currval('watched_id_seq');
\copy watched (v) FROM STDIN
\.
SELECT what FROM log ORDER BY id OFFSET 5;
CREATE TABLE late (v integer);
CREATE CONSTRAINT TRIGGER e_late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION noted();
BEGIN;
\copy late FROM STDIN
1
2
\.
SELECT 'before the end';
COMMIT;
SET CONSTRAINTS ALL DEFERRED;
";

#[test]
fn copy_is_one_statement() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    let (expected, got) = (psql(&postgres.url(), COPIES), psql(&server.url(), COPIES));
    assert_eq!(expected, got, "PostgreSQL:\n{expected}Archipel:\n{got}");
}

/// Tables with partitions and heirs.
const FAMILIES: &str = r"
CREATE TABLE target (id integer PRIMARY KEY);
CREATE TABLE lists (a integer NOT NULL, b text DEFAULT 'x', t integer REFERENCES target, PRIMARY KEY (a), CHECK (a > 0))
    PARTITION BY LIST (a);
CREATE INDEX lists_b ON lists (b);
CREATE TABLE lists_1 PARTITION OF lists FOR VALUES IN (1, 2, 3);
CREATE TABLE lists_default PARTITION OF lists (b DEFAULT 'y') DEFAULT;
CREATE TABLE points_at (a integer REFERENCES lists);
CREATE TABLE ranges (a integer, b integer, d date) PARTITION BY RANGE (a, b);
CREATE TABLE ranges_low PARTITION OF ranges FOR VALUES FROM (MINVALUE, MINVALUE) TO (10, 5);
CREATE TABLE ranges_mid PARTITION OF ranges FOR VALUES FROM (10, 5) TO (10, MAXVALUE) PARTITION BY RANGE (d);
CREATE TABLE ranges_mid_x PARTITION OF ranges_mid FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE ranges_rest PARTITION OF ranges DEFAULT;
CREATE TABLE hashes (a integer, b text) PARTITION BY HASH (a);
CREATE TABLE hashes_1 PARTITION OF hashes FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE person (name text NOT NULL, age integer CHECK (age > 0), CONSTRAINT own CHECK (age < 200) NO INHERIT);
CREATE TABLE worker (wage integer) INHERITS (person);
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER noted BEFORE INSERT ON lists FOR EACH ROW EXECUTE FUNCTION noted();
";

#[test]
fn partitions_and_heirs_look_as_on_postgresql() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    assert_eq!(psql(&server.url(), FAMILIES), psql(&postgres.url(), FAMILIES));
    let mut script = String::from("\\d\n\\dt\n\\di\n\\dP\n");
    let tables = "lists lists_1 lists_default points_at ranges ranges_low ranges_mid ranges_mid_x ranges_rest \
                  hashes person worker target lists_pkey lists_b lists_1_b_idx";
    for table in tables.split_whitespace() {
        script += &format!("\\d {table}\n\\d+ {table}\n");
    }
    let (expected, got) = (psql(&postgres.url(), &script), psql(&server.url(), &script));
    assert_eq!(expected, got, "PostgreSQL:\n{expected}Archipel:\n{got}");
}

#[test]
fn databases_are_listed() {
    let server = Server::start(&[]);
    let list = psql(&server.url(), "\\l\n");
    assert!(list.contains(" archipel ") && list.contains("UTF8"), "{list}");
}
