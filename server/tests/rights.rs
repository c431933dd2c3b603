//! What roles are told of others' sessions and of rows that they may not see, and what of the server they may
//! change, in sessions of their own.

mod common;

use common::clients::{answer, client, connect, run, told, until};
use common::{Server, framed, kinds, state};
use tokio_postgres::Client;

/// Two roles that may log in, one that watches, and one that ends what others do.
async fn people(admin: &Client) {
    run(
        admin,
        &[
            "CREATE ROLE ann LOGIN",
            "CREATE ROLE bob LOGIN",
            "CREATE ROLE watches LOGIN IN ROLE pg_read_all_stats",
            "CREATE ROLE signals LOGIN IN ROLE pg_signal_backend",
        ],
    )
    .await;
}

async fn session(server: &Server, user: &str) -> Client {
    connect(server, "archipel", user).await.expect("loopback is trusted")
}

/// The SQLSTATE of a text's error; `ok` if it has none.
async fn outcome(client: &Client, text: &str) -> String {
    match client.simple_query(text).await {
        Ok(_) => "ok".to_owned(),
        Err(error) => told(&error).split(' ').next().unwrap_or_default().to_owned(),
    }
}

#[tokio::test]
async fn what_a_session_does_is_told_to_its_own_role_and_to_who_reads_all_statistics() {
    let server = Server::start(&[]);
    let admin = client(&server, "archipel").await;
    people(&admin).await;
    let ann = session(&server, "ann").await;
    run(&ann, &["BEGIN"]).await;
    assert_eq!(answer(&ann, "SELECT 'a secret' <> ''").await, "t");
    let shown = "SELECT query, state, client_addr, client_port, backend_start, xact_start, query_start, \
                 wait_event FROM pg_stat_activity WHERE usename = 'ann'";
    let hidden = "<insufficient privilege>/NULL/NULL/NULL/NULL/NULL/NULL/NULL";
    let bob = session(&server, "bob").await;
    assert_eq!(answer(&bob, shown).await, hidden);
    assert_eq!(
        answer(
            &bob,
            "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE usename = 'ann'"
        )
        .await,
        "0"
    );
    // That there is somebody is told.
    assert_eq!(answer(&bob, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'ann'").await, "1");
    for other in [&session(&server, "watches").await, &session(&server, "ann").await, &admin] {
        let seen = answer(
            other,
            "SELECT query, state FROM pg_stat_activity WHERE usename = 'ann' AND state LIKE 'idle in%'",
        )
        .await;
        assert_eq!(seen, "SELECT 'a secret' <> ''/idle in transaction");
    }
    run(&admin, &["GRANT ann TO bob"]).await;
    assert!(answer(&bob, shown).await.starts_with("SELECT 'a secret'"));
}

#[tokio::test]
async fn a_session_is_ended_by_its_own_role_and_by_who_signals_and_a_superusers_by_superusers() {
    let server = Server::start(&[]);
    let admin = client(&server, "archipel").await;
    people(&admin).await;
    let pid = async |client: &Client| answer(client, "SELECT pg_backend_pid()").await;
    let (ann, bob) = (session(&server, "ann").await, session(&server, "bob").await);
    let (second, signals) = (session(&server, "ann").await, session(&server, "signals").await);
    let (of_ann, of_admin) = (pid(&ann).await, pid(&admin).await);
    for call in ["pg_cancel_backend", "pg_terminate_backend"] {
        assert_eq!(outcome(&bob, &format!("SELECT {call}({of_ann})")).await, "42501", "{call}");
        for other in [&bob, &ann, &signals] {
            assert_eq!(outcome(other, &format!("SELECT {call}({of_admin})")).await, "42501", "{call}");
        }
    }
    assert_eq!(answer(&ann, "SELECT 1").await, "1", "nobody has ended it");
    assert_eq!(answer(&admin, "SELECT 1").await, "1", "nobody has ended it");
    assert_eq!(answer(&signals, &format!("SELECT pg_cancel_backend({of_ann})")).await, "t");
    assert_eq!(answer(&second, &format!("SELECT pg_terminate_backend({of_ann})")).await, "t");
    until(&admin, &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {of_ann}"), "0").await;
    let of_second = pid(&second).await;
    assert_eq!(answer(&signals, &format!("SELECT pg_terminate_backend({of_second})")).await, "t");
    until(&admin, &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {of_second}"), "0").await;
}

/// Rights are those of the role that connected: its name may be another's by now.
#[tokio::test]
async fn a_session_stays_its_roles_whatever_that_is_called() {
    let server = Server::start(&[]);
    let admin = client(&server, "archipel").await;
    people(&admin).await;
    let first = session(&server, "ann").await;
    let pid = answer(&first, "SELECT pg_backend_pid()").await;
    run(&admin, &["ALTER ROLE ann RENAME TO renamed", "CREATE ROLE ann LOGIN SUPERUSER"]).await;
    assert_eq!(answer(&first, "SELECT current_user, session_user").await, "renamed/renamed");
    for text in ["SET SESSION AUTHORIZATION bob", "SELECT set_config('session_authorization', 'bob', false)"]
    {
        assert_eq!(outcome(&first, text).await, "42501", "{text}");
    }
    run(&admin, &["ALTER ROLE ann NOSUPERUSER"]).await;
    let later = session(&server, "ann").await;
    let shown = format!("SELECT usename, query FROM pg_stat_activity WHERE pid = {pid}");
    assert_eq!(answer(&later, &shown).await, "renamed/<insufficient privilege>");
    for call in ["pg_cancel_backend", "pg_terminate_backend"] {
        assert_eq!(outcome(&later, &format!("SELECT {call}({pid})")).await, "42501", "{call}");
    }
    assert_eq!(answer(&first, "SELECT 1").await, "1", "nobody has ended it");
}

/// Boundaries are keys of rows.
#[tokio::test]
async fn boundaries_of_partitions_are_told_who_sees_all_rows() {
    let server = Server::start(&["archipel.adaptive=off"]);
    let admin = client(&server, "archipel").await;
    people(&admin).await;
    run(
        &admin,
        &[
            "CREATE TABLE note (id int PRIMARY KEY, owner text)",
            "INSERT INTO note SELECT n, 'bob' FROM generate_series(1, 100) n",
            "GRANT SELECT ON note TO ann",
            "GRANT INSERT ON note TO bob",
        ],
    )
    .await;
    assert_eq!(outcome(&admin, "SELECT archipel.split_partition('note', '77')").await, "ok");
    let (ann, bob) = (session(&server, "ann").await, session(&server, "bob").await);
    let bounds = [
        "SELECT count(*), max(low) FROM archipel.partitions WHERE tables = 'note'",
        "SELECT count(*) > 0, max(r.low) FROM archipel.routing r JOIN archipel.partitions p USING (partition) \
         WHERE p.tables = 'note'",
        "SELECT count(*) > 0, max(key) FROM archipel.repartitions WHERE tables = 'note'",
    ];
    let all = async |client: &Client| {
        let mut told = Vec::new();
        for query in bounds {
            told.push(answer(client, query).await);
        }
        told.join(" ")
    };
    assert_eq!(all(&admin).await, "2/77 t/77 t/77");
    assert_eq!(all(&ann).await, "2/77 t/77 t/77");
    assert_eq!(all(&bob).await, "2/NULL t/NULL t/NULL", "it reads no rows");
    run(
        &admin,
        &[
            "ALTER TABLE note ENABLE ROW LEVEL SECURITY",
            "CREATE POLICY own ON note USING (owner = current_user)",
        ],
    )
    .await;
    assert_eq!(answer(&ann, "SELECT count(*) FROM note").await, "0");
    assert_eq!(all(&ann).await, "2/NULL t/NULL t/NULL", "the keys of hidden rows");
    assert_eq!(all(&admin).await, "2/77 t/77 t/77");
    run(&ann, &["SET row_security = off"]).await;
    assert_eq!(all(&ann).await, "2/NULL t/NULL t/NULL");
}

/// What is in a session's temporary schema comes before everything else that is called so: nobody else puts
/// anything there, goes along it, or drops it.
#[tokio::test]
async fn a_session_has_its_temporary_schema_to_itself() {
    let server = Server::start(&[]);
    let admin = client(&server, "archipel").await;
    people(&admin).await;
    run(
        &admin,
        &[
            "GRANT ALL ON SCHEMA public TO ann",
            "CREATE TEMPORARY TABLE own (x int)",
            "INSERT INTO own VALUES (7)",
            "GRANT ALL ON own TO ann",
        ],
    )
    .await;
    let schema =
        answer(&admin, "SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'own'").await;
    assert!(schema.starts_with("pg_temp_"), "{schema}");
    let ann = session(&server, "ann").await;
    for text in [
        "CREATE TABLE #.evil (a int)",
        "CREATE TABLE #.evil AS SELECT 1 AS a",
        "SELECT 1 AS a INTO #.evil",
        "CREATE VIEW #.evil AS SELECT 1 AS a",
        "CREATE SEQUENCE #.evil",
        "CREATE TYPE #.evil AS (a int)",
        "CREATE DOMAIN #.evil AS int",
        "CREATE FUNCTION #.evil() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "DROP TABLE #.own",
        "DROP SCHEMA # CASCADE",
    ] {
        let text = text.replace('#', &schema);
        assert_eq!(outcome(&ann, &text).await, "42501", "{text}");
    }
    run(&ann, &[&format!("SET search_path = {schema}, public")]).await;
    assert!(!answer(&ann, "SELECT current_schemas(true)").await.contains("pg_temp"));
    assert_eq!(outcome(&ann, "SELECT x FROM own").await, "42P01");
    run(&ann, &["CREATE TEMPORARY TABLE hers (y int)"]).await;
    let hers = answer(&ann, "SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'hers'").await;
    assert_ne!(hers, schema);
    run(
        &ann,
        &[
            &format!(
                "CREATE FUNCTION public.looks() RETURNS int LANGUAGE plpgsql SET search_path = {schema} AS \
                 $$ BEGIN RETURN (SELECT x FROM own); END $$"
            ),
            "DISCARD TEMP",
        ],
    )
    .await;
    assert_eq!(outcome(&ann, "SELECT public.looks()").await, "42P01");
    drop(ann);
    until(&admin, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'ann'", "0").await;
    assert_eq!(answer(&admin, "SELECT x FROM own").await, "7");
}

/// Whatever was granted: PostgreSQL asks USAGE of another session's temporary schema, which nobody is granted.
#[tokio::test]
async fn what_is_in_another_sessions_temporary_schema_is_out_of_reach() {
    let server = Server::start(&[]);
    let admin = client(&server, "archipel").await;
    people(&admin).await;
    run(
        &admin,
        &[
            "GRANT ALL ON SCHEMA public TO ann",
            "CREATE TEMPORARY TABLE own (x int)",
            "CREATE TEMPORARY SEQUENCE numbers",
            "GRANT ALL ON own, numbers TO PUBLIC",
            "CREATE FUNCTION pg_temp.f(int) RETURNS int LANGUAGE sql AS 'SELECT 42'",
            "CREATE PROCEDURE pg_temp.p() LANGUAGE sql AS 'SELECT 1'",
            "CREATE AGGREGATE pg_temp.total(int) (sfunc = int4pl, stype = int, initcond = '0')",
            "CREATE FUNCTION pg_temp.fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'",
            "CREATE TYPE pg_temp.mood AS ENUM ('good')",
            "CREATE DOMAIN pg_temp.number AS int",
        ],
    )
    .await;
    let schema =
        answer(&admin, "SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'own'").await;
    let ann = session(&server, "ann").await;
    run(&ann, &["CREATE TEMPORARY TABLE hers (x int)"]).await;
    for text in [
        "SELECT #.f(1)",
        "SELECT #.missing(1)",
        "SELECT * FROM #.f(1)",
        "SELECT #.total(x) FROM hers",
        "CALL #.p()",
        "DO $$ BEGIN PERFORM #.f(1); END $$",
        "DO $$ DECLARE m #.mood; BEGIN END $$",
        "SELECT 'good'::#.mood",
        "SELECT 1::#.number",
        "PREPARE refused (#.mood) AS SELECT 1",
        "SELECT nextval('#.numbers')",
        "SELECT * FROM #.numbers",
        "SELECT '#.own'::regclass",
        "SELECT '#.f'::regproc",
        "SELECT '#.f(int)'::regprocedure",
        "SELECT '#.mood'::regtype",
        "SELECT to_regclass('#.own')",
        "SELECT has_function_privilege('#.f(int)', 'execute')",
        "SELECT has_table_privilege('#.own', 'select')",
        "SELECT * FROM #.own",
        "INSERT INTO #.own VALUES (1)",
        "COPY #.own TO STDOUT",
        "CREATE TABLE evil (m #.mood)",
        "CREATE TABLE evil (x int DEFAULT #.f(1))",
        "CREATE VIEW evil AS SELECT #.f(1)",
        "CREATE TRIGGER evil BEFORE INSERT ON hers FOR EACH ROW EXECUTE FUNCTION #.fires()",
        "ALTER FUNCTION #.f(int) STABLE",
        "DROP FUNCTION #.f(int)",
        "DROP TABLE IF EXISTS #.missing",
    ] {
        let text = text.replace('#', &schema);
        assert_eq!(outcome(&ann, &text).await, "42501", "{text}");
    }
    // One's own is within reach by its full name.
    let hers = answer(&ann, "SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'hers'").await;
    run(&ann, &["CREATE FUNCTION pg_temp.g() RETURNS int LANGUAGE sql AS 'SELECT 7'"]).await;
    assert_eq!(answer(&ann, &format!("SELECT {hers}.g()")).await, "7");
    assert_eq!(answer(&ann, &format!("SELECT count(*) FROM {hers}.hers")).await, "0");
    assert_eq!(answer(&ann, &format!("SELECT '{hers}.hers'::regclass::text")).await, "hers");
}

#[tokio::test]
async fn the_server_is_its_superusers() {
    let server = Server::start(&[]);
    let admin = client(&server, "archipel").await;
    people(&admin).await;
    run(&admin, &["CREATE TABLE t (id int PRIMARY KEY)", "GRANT ALL ON t TO ann"]).await;
    let ann = session(&server, "ann").await;
    for text in [
        "BASE_BACKUP",
        "CHECKPOINT",
        "ALTER SYSTEM SET work_mem = '5MB'",
        "ALTER SYSTEM RESET ALL",
        "SELECT pg_reload_conf()",
        "SELECT archipel.split_partition('t', '5')",
        "SELECT archipel.pin_partition(1)",
        "SELECT create_distributed_table('t', 'id')",
        "SELECT undistribute_table('t')",
        "SELECT * FROM pg_hba_file_rules",
        "SELECT rolpassword FROM pg_authid",
        "SHOW hba_file",
        "SELECT lo_import('/etc/passwd')",
        "COPY t FROM '/etc/passwd'",
        "COPY t TO PROGRAM 'true'",
        "CREATE DATABASE d",
        "DROP DATABASE postgres",
        "CREATE ROLE r",
        "SET SESSION AUTHORIZATION archipel",
        "SET ROLE archipel",
        "SET ROLE bob",
        "ALTER ROLE ann SUPERUSER",
        "ALTER ROLE archipel PASSWORD 'x'",
        "GRANT archipel TO ann",
        "SET session_replication_role = replica",
        "UPDATE pg_class SET reltuples = 1",
        "ALTER TABLE t DISABLE ROW LEVEL SECURITY",
    ] {
        assert_eq!(outcome(&ann, text).await, "42501", "{text}");
    }
    assert_eq!(answer(&ann, "SELECT current_user, session_user").await, "ann/ann");
    // What somebody else's function does, it does in the caller's name.
    run(&ann, &["SET search_path = pg_temp"]).await;
    let asks =
        "CREATE FUNCTION asks() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN pg_reload_conf(); END $$";
    run(&ann, &[asks]).await;
    assert_eq!(outcome(&ann, "SELECT pg_temp.asks()").await, "42501");
}

/// A call of a function by its number.
fn function_call(number: u32) -> Vec<u8> {
    framed(b'F', &[&number.to_be_bytes()[..], b"\0\0\0\0\0\0"].concat())
}

#[test]
fn who_calls_a_function_by_its_number_needs_the_right_to_call_it() {
    let server = Server::start(&[]);
    let mut admin = server.raw();
    for text in [
        "CREATE ROLE ann LOGIN",
        "CREATE FUNCTION hidden() RETURNS int LANGUAGE sql AS 'SELECT 7'",
        "CREATE FUNCTION shown() RETURNS int LANGUAGE sql AS 'SELECT 8'",
        "REVOKE EXECUTE ON FUNCTION hidden() FROM PUBLIC",
    ] {
        assert_eq!(state(&admin.query(text)), None, "{text}");
    }
    let mut number = |name: &str| -> u32 {
        let found = common::told(&admin.query(&format!("SELECT '{name}'::regproc::oid")));
        found[0].parse().expect("a number")
    };
    let (hidden, shown) = (number("hidden"), number("shown"));
    let mut ann = server.unopened();
    ann.greet(&[("user", "ann"), ("database", "archipel")]);
    ann.until(b'Z');
    std::io::Write::write_all(&mut ann.stream, &function_call(hidden)).expect("the server reads");
    assert_eq!(state(&ann.until(b'Z')).as_deref(), Some("42501"));
    std::io::Write::write_all(&mut ann.stream, &function_call(shown)).expect("the server reads");
    assert_eq!(kinds(&ann.until(b'Z')), "VZ");
}
