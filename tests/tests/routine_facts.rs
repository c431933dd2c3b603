//! What the server tells of routines that were called: `archipel.routines`,
//! `pg_stat_user_functions` as `track_functions` asks, the log of slow calls. And the hints that
//! say where calls go whose statements do not.

use archipel_tests::server::{Server, ask, connect};
use tokio_postgres::Client;

async fn refused(client: &Client, query: &str) -> String {
    let error = client.simple_query(query).await.expect_err("refused");
    let error = error.as_db_error().expect("the server says why");
    format!("{} {}", error.code().code(), error.message())
}

const ROUTINES: &str = "
    CREATE TABLE account (id int PRIMARY KEY, balance numeric NOT NULL);
    INSERT INTO account SELECT g, 100 FROM generate_series(1, 100) g;
    CREATE FUNCTION few(n int) RETURNS SETOF account LANGUAGE plpgsql AS $$
    BEGIN RETURN QUERY SELECT * FROM account WHERE id <= n ORDER BY id; END $$;
    CREATE FUNCTION one(n int) RETURNS numeric LANGUAGE sql STABLE AS $$ SELECT max(balance) FROM account WHERE id = n $$;
    CREATE PROCEDURE pay(n int, amount numeric) LANGUAGE plpgsql AS $$
    BEGIN UPDATE account SET balance = balance + amount WHERE id = n; END $$;
    CREATE PROCEDURE pay_twice(n int, amount numeric) LANGUAGE plpgsql AS $$
    BEGIN CALL pay(n, amount); COMMIT; CALL pay(n, amount); END $$;
    CREATE FUNCTION slow(n int) RETURNS int LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_sleep(0.02);
      IF n > 0 THEN RETURN slow(n - 1); END IF;
      RETURN 0;
    END $$;
    CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'always'; END $$;
    CREATE FUNCTION guarded() RETURNS int LANGUAGE plpgsql AS $$
    BEGIN RETURN fails(); EXCEPTION WHEN OTHERS THEN RETURN slow(0); END $$;
    CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
    CREATE TRIGGER stamp BEFORE UPDATE ON account FOR EACH ROW WHEN (NEW.balance > 0) EXECUTE FUNCTION stamp()";

#[tokio::test]
async fn calls_are_counted_with_their_rows_and_time() {
    let server = Server::start(&["archipel.executors=2"]);
    let client = connect(&server.url()).await;
    client.batch_execute(ROUTINES).await.expect("deployed");
    for call in [
        "CALL pay(1, 5)",
        "CALL pay(2, 5)",
        "CALL pay_twice(1, 5)",
        "SELECT * FROM few(7)",
        "SELECT id FROM few(3) ORDER BY balance LIMIT 2",
        "SELECT few(1)",
        "SELECT one(4)",
        "SELECT slow(0)",
        // Of these, the query is more than a call.
        "SELECT one(id) FROM account WHERE id < 3",
        "SELECT one(1), one(2)",
    ] {
        ask(&client, call).await;
    }
    // The same by a prepared statement.
    let prepared = client.prepare("SELECT * FROM few($1)").await.expect("prepared");
    assert_eq!(client.query(&prepared, &[&4_i32]).await.expect("runs").len(), 4);
    refused(&client, "SELECT fails()").await;
    let facts = "SELECT name, calls, rows, total_time > 0, mispredicted FROM archipel.routines
                 WHERE calls > 0 ORDER BY name";
    assert_eq!(
        ask(&client, facts).await,
        [
            ["few", "4", "14", "t", "0"],
            ["one", "1", "1", "t", "0"],
            ["pay", "2", "0", "t", "0"],
            ["pay_twice", "1", "0", "t", "0"],
            ["slow", "1", "1", "t", "0"],
        ]
    );
    let time = "SELECT total_time >= 20 FROM archipel.routines WHERE name = 'slow'";
    assert_eq!(ask(&client, time).await, [["t"]]);
}

#[tokio::test]
async fn functions_are_tracked_as_far_as_was_asked() {
    let server = Server::start(&["archipel.executors=2"]);
    let client = connect(&server.url()).await;
    client.batch_execute(ROUTINES).await.expect("deployed");
    let calls = "SELECT funcname, calls FROM pg_stat_user_functions ORDER BY funcname";
    ask(&client, "CALL pay(1, 5)").await;
    assert!(ask(&client, calls).await.is_empty(), "nobody has asked");
    ask(&client, "SET track_functions = pl").await;
    for call in [
        "CALL pay_twice(1, 5)",
        "SELECT one(id) FROM account WHERE id < 3",
        "SELECT guarded()",
        "SELECT slow(2)",
        "DO $$ BEGIN PERFORM count(*) FROM few(4); END $$",
        "UPDATE account SET balance = balance + 1 WHERE id IN (1, 2)",
    ] {
        ask(&client, call).await;
    }
    refused(&client, "SELECT fails()").await;
    // Nested calls count, and what was done for triggers; what has failed does not.
    assert_eq!(
        ask(&client, calls).await,
        [["few", "1"], ["guarded", "1"], ["pay", "2"], ["pay_twice", "1"], ["slow", "4"], ["stamp", "4"]]
    );
    // Of a recursion the outermost call's time counts; who calls does nothing itself.
    let times = "SELECT total_time BETWEEN 80 AND 79 + self_time,
                        (SELECT self_time < total_time / 2 FROM pg_stat_user_functions WHERE funcname = 'guarded')
                 FROM pg_stat_user_functions WHERE funcname = 'slow'";
    assert_eq!(ask(&client, times).await, [["t", "t"]]);

    ask(&client, "SET track_functions = 'all'").await;
    ask(&client, "SELECT one(3)").await;
    ask(&client, "RESET track_functions").await;
    ask(&client, "SELECT slow(0)").await;
    let some =
        "SELECT funcname, calls FROM pg_stat_user_functions WHERE funcname IN ('one', 'slow') ORDER BY 1";
    assert_eq!(ask(&client, some).await, [["one", "1"], ["slow", "4"]]);
    ask(&client, "DROP FUNCTION guarded, slow").await;
    assert_eq!(ask(&client, some).await, [["one", "1"]]);

    ask(&client, "CREATE ROLE guest; SET ROLE guest").await;
    assert_eq!(
        refused(&client, "SET track_functions = 'all'").await,
        "42501 permission denied to set parameter \"track_functions\""
    );
}

#[tokio::test]
async fn slow_calls_are_logged_with_their_plans() {
    let server = Server::start(&["archipel.executors=2", "auto_explain.log_min_duration=10ms"]);
    let client = connect(&server.url()).await;
    client.batch_execute(ROUTINES).await.expect("deployed");
    ask(
        &client,
        "CREATE PROCEDURE waits(n int) LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.02); CALL pay(n, 1); END $$",
    )
    .await;
    ask(&client, "CALL pay(7, 5)").await;
    ask(&client, "CALL waits(8)").await;
    ask(&client, "SET auto_explain.log_min_duration = -1").await;
    ask(&client, "CALL waits(9)").await;
    ask(&client, "SET log_min_duration_statement = 10").await;
    ask(&client, "CALL waits(10)").await;
    let log = server.log();
    let logged: Vec<&str> = log.lines().filter(|line| line.contains("duration: ")).collect();
    let [plan, statement] = &logged[..] else { panic!("two lines expected in:\n{log}") };
    assert!(plan.contains(" ms  plan:"), "{plan}");
    for line in ["Query Text: CALL waits(8)", "Call waits(integer)  (single-partition)", "  Routing: n"] {
        assert!(log.lines().any(|logged| logged == line), "{line} is missing in:\n{log}");
    }
    assert!(statement.contains(" ms  statement: CALL waits(10)"), "{statement}");
}

#[tokio::test]
async fn hints_route_calls_whose_statements_do_not() {
    let server = Server::start(&["archipel.executors=2"]);
    let client = connect(&server.url()).await;
    client.batch_execute(ROUTINES).await.expect("deployed");
    for key in [25, 50, 75] {
        ask(&client, &format!("SELECT archipel.split_partition('account', '{key}')")).await;
    }
    let create = |name: &str, set: &str, key: &str| {
        format!(
            "CREATE PROCEDURE {name}(n int, amount numeric) LANGUAGE plpgsql {set} AS $$ BEGIN
               EXECUTE 'UPDATE account SET balance = balance + $2 WHERE id = $1' USING {key}, amount;
             END $$"
        )
    };
    const HINT: &str = "SET archipel.route = 'account(n)'";
    ask(&client, &create("unhinted", "", "n")).await;
    ask(&client, &create("hinted", HINT, "n")).await;
    ask(&client, &create("declared", "", "n")).await;
    ask(&client, "SELECT create_distributed_function('declared', '$1', colocate_with => 'account')").await;
    // What is wrong costs a claim in vain, and no more. (50 and 51 are in one partition.)
    ask(&client, &create("misled", HINT, "101 - n")).await;
    for n in 1..=40 {
        for name in ["unhinted", "hinted", "declared", "misled"] {
            ask(&client, &format!("CALL {name}({}, 1)", 2 * n)).await;
        }
    }
    let facts =
        "SELECT name, class, routing, partitions FROM archipel.routines WHERE calls = 40 ORDER BY name";
    assert_eq!(
        ask(&client, facts).await,
        [
            ["declared", "single-partition", "n", "40"],
            ["hinted", "single-partition", "n", "40"],
            ["misled", "single-partition", "n", "79"],
            ["unhinted", "multi-partition", "", "40"],
        ]
    );
    assert_eq!(ask(&client, "SELECT sum(balance) FROM account").await, [["10160"]]);
    // It is a part of the definition, and nothing that a call runs with: it may commit.
    let commits = create("commits", HINT, "n").replace("END $$", "COMMIT; END $$");
    ask(&client, &commits).await;
    ask(&client, "CALL commits(1, 1)").await;
    assert_eq!(
        ask(&client, "SELECT proconfig FROM pg_proc WHERE proname = 'hinted'").await,
        [["{archipel.route=account(n)}"]]
    );
    ask(&client, "ALTER PROCEDURE hinted RESET archipel.route").await;
    assert_eq!(ask(&client, "SELECT routing FROM archipel.routines WHERE name = 'hinted'").await, [[""]]);
    // A hint that has lost its table says nothing, and keeps nobody from calling.
    ask(&client, "CREATE TABLE elsewhere (id int PRIMARY KEY)").await;
    ask(&client, "ALTER PROCEDURE hinted SET archipel.route = 'elsewhere(n)'").await;
    ask(&client, "DROP TABLE elsewhere").await;
    ask(&client, "CALL hinted(3, 1)").await;
    for (set, error) in [
        ("'m'", "22023 invalid value for parameter \"archipel.route\": \"m\""),
        ("'$3'", "22023 invalid value for parameter \"archipel.route\": \"$3\""),
        ("'pg_class(n)'", "22023 invalid value for parameter \"archipel.route\": \"pg_class(n)\""),
        ("'nowhere(n)'", "42P01 relation \"nowhere\" does not exist"),
    ] {
        assert_eq!(
            refused(&client, &format!("ALTER PROCEDURE hinted SET archipel.route = {set}")).await,
            error
        );
    }
}
