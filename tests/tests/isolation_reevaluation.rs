//! READ COMMITTED statements that wait for a row: what they do when the one in their way commits is
//! what PostgreSQL does. The row is judged again in its newest version, and all else is as the
//! statement saw it when it began.

use std::time::Duration;

use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, connect};
use tokio_postgres::{Client, SimpleQueryMessage};

/// Tables that every case begins with.
const TABLES: &str = "
    DROP TABLE IF EXISTS item, price, audit CASCADE;
    CREATE TABLE item (id integer PRIMARY KEY, grp integer, value integer);
    CREATE INDEX item_grp ON item (grp);
    CREATE TABLE price (id integer PRIMARY KEY, amount integer);
    CREATE TABLE audit (note text);
    INSERT INTO item VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 2, 40);
    INSERT INTO price VALUES (1, 100), (2, 200)";

/// What the tables hold in the end.
const LEFT: &str = "SELECT 'item', id::text, grp::text, value::text FROM item
    UNION ALL SELECT 'price', id::text, amount::text, '' FROM price
    UNION ALL SELECT 'audit', note, '', '' FROM audit ORDER BY 1, 2, 3, 4";

/// What the statement has not locked.
const FREE: &str = "SELECT id FROM item ORDER BY id FOR UPDATE SKIP LOCKED";

/// What somebody changes and keeps open, and the statement that comes upon it.
struct Case {
    name: &'static str,
    before: &'static str,
    blocker: &'static str,
    waits: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "an updated row that still matches is updated from its new value",
        before: "",
        blocker: "UPDATE item SET value = value + 1 WHERE id = 1",
        waits: "UPDATE item SET value = value * 2 WHERE id = 1 RETURNING *",
    },
    Case {
        name: "one that does not match any more is left, and one that matches only now is not met",
        before: "",
        blocker: "UPDATE item SET grp = 3 WHERE id = 1; UPDATE item SET grp = 1 WHERE id = 3;
                  INSERT INTO item VALUES (5, 1, 50)",
        waits: "UPDATE item SET value = -value WHERE grp = 1 RETURNING id, grp, value",
    },
    Case {
        name: "a condition on no index is judged again, too",
        before: "",
        blocker: "UPDATE item SET value = 5 WHERE id = 1; UPDATE item SET value = 15 WHERE id = 3",
        waits: "UPDATE item SET grp = 9 WHERE value BETWEEN 10 AND 25",
    },
    Case {
        name: "several rows that changed",
        before: "",
        blocker: "UPDATE item SET value = value + 1",
        waits: "UPDATE item SET value = value * 10 WHERE value % 2 = 1 OR id > 2",
    },
    Case {
        name: "a deleted row is passed over",
        before: "",
        blocker: "DELETE FROM item WHERE id = 1",
        waits: "UPDATE item SET value = 0 WHERE grp = 1 RETURNING id",
    },
    Case {
        name: "DELETE judges again",
        before: "",
        blocker: "UPDATE item SET value = 99 WHERE id = 2",
        waits: "DELETE FROM item WHERE grp = 1 AND value < 50 RETURNING *",
    },
    Case {
        name: "a row of a joined table stays what it was",
        before: "",
        blocker: "UPDATE price SET amount = 1; UPDATE item SET value = 11 WHERE id = 1",
        waits: "UPDATE item SET value = item.value + amount FROM price WHERE price.id = item.grp
                RETURNING item.id, item.value, price.amount",
    },
    Case {
        name: "a query in SET sees what the statement saw",
        before: "",
        blocker: "UPDATE price SET amount = 1; UPDATE item SET value = 11 WHERE id = 1",
        waits: "UPDATE item SET value = value + (SELECT sum(amount) FROM price) WHERE id = 1 RETURNING *",
    },
    Case {
        name: "a query in WHERE sees what the statement saw",
        before: "",
        blocker: "DELETE FROM price WHERE id = 1; UPDATE item SET value = 11 WHERE id = 1",
        waits: "DELETE FROM item WHERE EXISTS (SELECT FROM price WHERE price.id = item.grp) AND id < 3",
    },
    Case {
        name: "SELECT FOR UPDATE answers the newest version",
        before: "",
        blocker: "UPDATE item SET value = 11 WHERE id = 1; UPDATE item SET grp = 5 WHERE id = 2;
                  INSERT INTO item VALUES (0, 1, 0)",
        waits: "SELECT * FROM item WHERE grp = 1 ORDER BY id FOR UPDATE",
    },
    Case {
        name: "LIMIT counts rows that still match",
        before: "",
        blocker: "UPDATE item SET grp = 5 WHERE id = 1",
        waits: "SELECT id, value FROM item WHERE grp = 1 ORDER BY id LIMIT 1 FOR UPDATE",
    },
    Case {
        name: "LIMIT locks no row behind the one it answers",
        before: "",
        blocker: "UPDATE item SET value = 11 WHERE id = 1",
        waits: "SELECT id, value FROM item WHERE grp = 1 ORDER BY id LIMIT 1 FOR UPDATE",
    },
    Case {
        name: "a row that got another key, with another one under its old key",
        before: "",
        blocker: "UPDATE item SET id = 9 WHERE id = 1; INSERT INTO item VALUES (1, 1, 99)",
        waits: "UPDATE item SET value = value + 1 WHERE value < 15 RETURNING id, value",
    },
    Case {
        name: "a row that got another key, and a savepoint gone back to",
        before: "",
        blocker: "UPDATE item SET id = 9 WHERE id = 1; SAVEPOINT s; INSERT INTO item VALUES (1, 1, 99);
                  ROLLBACK TO s",
        waits: "UPDATE item SET value = value + 1 WHERE value < 15 RETURNING id, value",
    },
    Case {
        name: "a row that was deleted, with another one under its key",
        before: "",
        blocker: "DELETE FROM item WHERE id = 1; INSERT INTO item VALUES (1, 1, 11)",
        waits: "DELETE FROM item WHERE value < 25 RETURNING id, value",
    },
    Case {
        name: "a row that was deleted in a savepoint gone back to, and changed",
        before: "",
        blocker: "SAVEPOINT s; DELETE FROM item WHERE id = 1; INSERT INTO item VALUES (1, 1, 11);
                  ROLLBACK TO s; UPDATE item SET value = 12 WHERE id = 1",
        waits: "DELETE FROM item WHERE value < 25 RETURNING id, value",
    },
    Case {
        name: "only the locked table of a join is seen anew",
        before: "",
        blocker: "UPDATE item SET value = 11 WHERE id = 1; UPDATE price SET amount = 7 WHERE id = 1",
        waits: "SELECT item.id, value, amount FROM item JOIN price ON price.id = grp
                ORDER BY item.id FOR UPDATE OF item",
    },
    Case {
        name: "FOR SHARE answers the newest version",
        before: "",
        blocker: "UPDATE item SET value = 11 WHERE id = 1",
        waits: "SELECT * FROM item WHERE id = 1 FOR SHARE",
    },
    Case {
        name: "ON CONFLICT takes the row as it is, and the rest as it was",
        before: "",
        blocker: "UPDATE item SET value = 11 WHERE id = 1; UPDATE price SET amount = 1",
        waits: "INSERT INTO item SELECT 1, id, amount FROM price WHERE id = 2
                ON CONFLICT (id) DO UPDATE SET value = item.value + excluded.value WHERE item.value = 11
                RETURNING *",
    },
    Case {
        name: "an insertion that waits for a key inserts what it read before",
        before: "",
        blocker: "INSERT INTO item VALUES (101, 0, 0); UPDATE price SET amount = 1",
        waits: "INSERT INTO item SELECT 100 + id, id, amount FROM price ON CONFLICT DO NOTHING",
    },
    Case {
        name: "a key that is taken while the statement waits is taken",
        before: "",
        blocker: "INSERT INTO item VALUES (9, 0, 0)",
        waits: "INSERT INTO item SELECT 9, 1, 1 WHERE NOT EXISTS (SELECT FROM item WHERE id = 9)",
    },
    Case {
        name: "MERGE judges a matched row again",
        before: "",
        blocker: "UPDATE item SET value = 300 WHERE id = 1; UPDATE price SET amount = 1",
        waits: "MERGE INTO item USING price ON item.id = price.id
                WHEN MATCHED AND item.value > 200 THEN UPDATE SET grp = 77, value = item.value + amount
                WHEN MATCHED THEN UPDATE SET value = amount",
    },
    Case {
        name: "MERGE inserts where the matched row is gone",
        before: "",
        blocker: "DELETE FROM item WHERE id = 1",
        waits: "MERGE INTO item USING price ON item.id = price.id
                WHEN MATCHED THEN UPDATE SET value = amount
                WHEN NOT MATCHED THEN INSERT VALUES (price.id, 0, amount)",
    },
    Case {
        name: "MERGE does not see a row that was inserted meanwhile",
        before: "",
        blocker: "INSERT INTO item VALUES (7, 7, 7)",
        waits: "MERGE INTO item USING (VALUES (7)) AS s (id) ON item.id = s.id
                WHEN MATCHED THEN UPDATE SET value = 1 WHEN NOT MATCHED THEN INSERT VALUES (7, 8, 8)",
    },
    Case {
        name: "a row that has another key now is found there",
        before: "",
        blocker: "UPDATE item SET id = 100 WHERE id = 1",
        waits: "UPDATE item SET value = 0 WHERE grp = 1 RETURNING id",
    },
    Case {
        name: "and is left if the key was what it was asked for by",
        before: "",
        blocker: "UPDATE item SET id = 100 WHERE id = 1",
        waits: "DELETE FROM item WHERE id = 1 RETURNING *",
    },
    Case {
        name: "a statement that gives its row another key",
        before: "",
        blocker: "UPDATE item SET value = 11 WHERE id = 1",
        waits: "UPDATE item SET id = id + value WHERE id = 1 RETURNING *",
    },
    Case {
        name: "triggers see what is committed when they fire, and fire once",
        before: "CREATE OR REPLACE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                   INSERT INTO audit SELECT format('%s>%s %s', old.value, new.value, sum(amount)) FROM price;
                   RETURN new; END $$;
                 CREATE TRIGGER note BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION note()",
        blocker: "UPDATE price SET amount = 1; UPDATE item SET value = 11 WHERE id = 1",
        waits: "UPDATE item SET value = value + 1 WHERE grp = 1",
    },
    Case {
        name: "a volatile function sees what is committed, a stable one what the statement saw",
        before: "CREATE OR REPLACE FUNCTION now_v() RETURNS bigint LANGUAGE plpgsql VOLATILE AS
                   $$ BEGIN RETURN (SELECT sum(amount) FROM price); END $$;
                 CREATE OR REPLACE FUNCTION now_s() RETURNS bigint LANGUAGE plpgsql STABLE AS
                   $$ BEGIN RETURN (SELECT sum(amount) FROM price); END $$",
        blocker: "UPDATE price SET amount = 1; UPDATE item SET value = 11 WHERE id = 1",
        waits: "UPDATE item SET value = now_v()::integer, grp = now_s()::integer WHERE id = 1 RETURNING *",
    },
    Case {
        name: "the parts of WITH see one state",
        before: "",
        blocker: "UPDATE item SET value = 11 WHERE id = 1; UPDATE price SET amount = 1 WHERE id = 2",
        waits: "WITH changed AS (UPDATE item SET value = value + 1 WHERE id = 1 RETURNING value)
                SELECT (SELECT value FROM changed), (SELECT value FROM item WHERE id = 1),
                       (SELECT amount FROM price WHERE id = 2)",
    },
    Case {
        name: "a foreign key is judged by what is committed",
        before: "ALTER TABLE item ADD FOREIGN KEY (grp) REFERENCES price",
        blocker: "INSERT INTO price VALUES (3, 300); UPDATE item SET value = 11 WHERE id = 1",
        waits: "UPDATE item SET grp = 3 WHERE id = 1",
    },
    Case {
        name: "a child of a parent that was deleted",
        before: "DROP TABLE IF EXISTS child; CREATE TABLE child (p integer REFERENCES price)",
        blocker: "DELETE FROM price WHERE id = 1",
        waits: "INSERT INTO child VALUES (1)",
    },
    Case {
        name: "a child of a parent that was deleted from a partition",
        before: PARTS,
        blocker: "DELETE FROM part WHERE id = 1",
        waits: "INSERT INTO of_part VALUES (1)",
    },
    Case {
        name: "a child of a parent that went to another partition",
        before: PARTS,
        blocker: "UPDATE part SET id = 11 WHERE id = 2",
        waits: "INSERT INTO of_low VALUES (2)",
    },
    Case {
        name: "an update of a row that went to another partition",
        before: PARTS,
        blocker: "UPDATE part SET id = 11 WHERE id = 2",
        waits: "UPDATE part SET value = 0 WHERE id = 2",
    },
    Case {
        name: "a deletion of a row that went to another partition",
        before: PARTS,
        blocker: "UPDATE part SET id = 11 WHERE id = 2",
        waits: "DELETE FROM part WHERE value > 0 AND id > 1",
    },
    Case {
        name: "a lock of a row that went to another partition",
        before: PARTS,
        blocker: "UPDATE part SET value = 1 WHERE id = 2; UPDATE part SET id = 11 WHERE id = 2",
        waits: "SELECT * FROM part WHERE id > 1 FOR UPDATE",
    },
    Case {
        name: "a row that moves within its partition is not elsewhere",
        before: PARTS,
        blocker: "UPDATE part SET id = 3 WHERE id = 2",
        waits: "UPDATE part SET value = 0 WHERE value = 20 RETURNING id",
    },
];

/// Partitions, and tables that refer to all of them and to one of them.
const PARTS: &str = "
    DROP TABLE IF EXISTS part, of_part, of_low CASCADE;
    CREATE TABLE part (id integer PRIMARY KEY, value integer) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF part FOR VALUES FROM (0) TO (10);
    CREATE TABLE high PARTITION OF part FOR VALUES FROM (10) TO (20);
    CREATE TABLE of_part (p integer REFERENCES part);
    CREATE TABLE of_low (p integer REFERENCES low);
    INSERT INTO part VALUES (1, 10), (2, 20)";

fn shown(messages: Vec<SimpleQueryMessage>) -> Vec<String> {
    messages
        .into_iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let values = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL").to_owned());
                Some(values.collect::<Vec<_>>().join("|"))
            }
            SimpleQueryMessage::CommandComplete(rows) => Some(format!("{rows} rows")),
            _ => None,
        })
        .collect()
}

async fn answer(client: &Client, sql: &str) -> Vec<String> {
    match client.simple_query(sql).await {
        Ok(messages) => shown(messages),
        Err(error) => {
            let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}"));
            vec![format!("{}: {}", error.code().code(), error.message())]
        }
    }
}

async fn process(client: &Client) -> String {
    answer(client, "SELECT pg_backend_pid()").await.remove(0)
}

/// What a statement answered that had to wait, and what was left in the tables.
async fn run(url: &str, case: &Case) -> Vec<String> {
    let (one, two, watch) = (connect(url).await, connect(url).await, connect(url).await);
    one.batch_execute(TABLES).await.expect("tables can be made");
    one.batch_execute(case.before).await.unwrap_or_else(|error| panic!("{}: {error:?}", case.name));
    let waiter = process(&two).await;
    one.batch_execute(&format!("BEGIN; {}", case.blocker)).await.expect("nobody is in the way");
    two.batch_execute("BEGIN").await.expect("a block begins");
    let blocked = format!("SELECT cardinality(pg_blocking_pids({waiter})) > 0");
    let commit = async {
        let mut looks = 0;
        while answer(&watch, &blocked).await[0] != "t" {
            looks += 1;
            assert!(looks < 2_000, "{}: it did not wait", case.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        one.batch_execute("COMMIT").await.expect("the blocker commits");
    };
    let (mut answers, ()) = tokio::join!(answer(&two, case.waits), commit);
    // In which order rows come is nobody's promise.
    answers.sort();
    if case.waits.contains("FOR UPDATE") {
        answers.extend(answer(&watch, FREE).await);
    }
    answers.extend(answer(&two, "COMMIT").await);
    answers.extend(answer(&watch, LEFT).await);
    answers
}

#[tokio::test]
async fn a_statement_that_waited_goes_on_as_on_postgresql() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    for case in CASES {
        let expected = run(&postgres.url(), case).await;
        assert_eq!(run(&server.url(), case).await, expected, "{}", case.name);
    }
}
