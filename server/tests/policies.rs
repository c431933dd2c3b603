//! Plans over tables with row security: made for one role and one setting, and used for no other, whatever keeps
//! them: a statement by name, by text or by shape, a routine, a text that a routine runs, a trigger.

mod common;

use common::Server;

use tokio_postgres::{Client, SimpleQueryMessage};

/// The rows that a text answers, a line each; the SQLSTATE of its error.
async fn rows(client: &Client, text: &str) -> Result<Vec<String>, String> {
    match client.simple_query(text).await {
        Ok(messages) => Ok(messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
                _ => None,
            })
            .collect()),
        Err(error) => Err(error.code().map_or_else(String::new, |code| code.code().to_owned())),
    }
}

async fn tenants(client: &Client) {
    let text = "CREATE ROLE first; CREATE ROLE second; CREATE ROLE free BYPASSRLS;
        CREATE TABLE note (id int PRIMARY KEY, owner text, body text);
        INSERT INTO note VALUES (1, 'first', 'one'), (2, 'second', 'two'), (3, 'second', 'three');
        GRANT ALL ON note TO first, second, free;
        ALTER TABLE note ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON note USING (owner = current_user);
        CREATE FUNCTION seen() RETURNS bigint LANGUAGE plpgsql AS
            $$ BEGIN RETURN (SELECT count(*) FROM note); END $$;
        CREATE FUNCTION seen_by_text() RETURNS bigint LANGUAGE plpgsql AS
            $$ DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM note' INTO n; RETURN n; END $$;
        CREATE FUNCTION seen_by_sql() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM note';
        CREATE FUNCTION seen_below(int) RETURNS bigint LANGUAGE plpgsql AS
            $$ BEGIN IF $1 > 0 THEN RETURN seen_below($1 - 1); END IF; RETURN seen(); END $$;
        CREATE TABLE counted (n bigint); GRANT ALL ON counted TO first, second, free;
        CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN NEW.n := (SELECT count(*) FROM note); RETURN NEW; END $$;
        CREATE TRIGGER counts BEFORE INSERT ON counted FOR EACH ROW EXECUTE FUNCTION counts()";
    client.batch_execute(text).await.expect("tenants");
}

const ASKED: [&str; 6] = [
    "SELECT count(*) FROM note",
    "SELECT seen()",
    "SELECT seen_by_text()",
    "SELECT seen_by_sql()",
    "SELECT seen_below(2)",
    "INSERT INTO counted VALUES (0) RETURNING n",
];

#[tokio::test]
async fn every_role_sees_its_rows_by_whatever_plan() {
    let server = Server::start(&[]);
    let client = server.client().await;
    tenants(&client).await;
    let named = client.prepare("SELECT count(*) FROM note WHERE id > $1").await.unwrap();
    for round in 0..3 {
        for (role, seen) in [("first", 1_i64), ("second", 2), ("free", 3), ("none", 3)] {
            client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
            for text in ASKED {
                assert_eq!(rows(&client, text).await, Ok(vec![seen.to_string()]), "{round} {role} {text}");
            }
            // Texts that differ in literals alone.
            for id in [1, 2, 3] {
                let found = rows(&client, &format!("SELECT body FROM note WHERE id = {id}")).await.unwrap();
                let owns = seen == 3 || (role == "first") == (id == 1);
                assert_eq!(found.len(), usize::from(owns), "{round} {role} {id}");
            }
            let counted: i64 = client.query_one(&named, &[&0]).await.unwrap().get(0);
            assert_eq!(counted, seen, "{round} {role}");
        }
    }
}

#[tokio::test]
async fn sessions_of_several_roles_share_no_rows() {
    let server = Server::start(&[]);
    let admin = server.client().await;
    tenants(&admin).await;
    let sessions = [(server.client().await, "first", 1), (server.client().await, "second", 2)];
    for (client, role, _) in &sessions {
        client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    }
    for round in 0..4 {
        for (client, role, seen) in &sessions {
            for text in ASKED {
                assert_eq!(rows(client, text).await, Ok(vec![seen.to_string()]), "{round} {role} {text}");
            }
        }
    }
    // A policy more, and nobody goes on as before.
    admin.batch_execute("CREATE POLICY all_of_it ON note FOR SELECT TO first USING (true)").await.unwrap();
    for (client, role, seen) in &sessions {
        let seen = if *role == "first" { 3 } else { *seen };
        for text in ASKED {
            assert_eq!(rows(client, text).await, Ok(vec![seen.to_string()]), "{role} {text}");
        }
    }
    admin.batch_execute("ALTER TABLE note DISABLE ROW LEVEL SECURITY").await.unwrap();
    for (client, role, _) in &sessions {
        for text in ASKED {
            assert_eq!(rows(client, text).await, Ok(vec!["3".to_owned()]), "{role} {text}");
        }
    }
}

#[tokio::test]
async fn a_plan_for_filtered_rows_is_none_where_filtering_is_off() {
    let server = Server::start(&[]);
    let client = server.client().await;
    tenants(&client).await;
    client.batch_execute("SET ROLE first").await.unwrap();
    let refused = || Err("42501".to_owned());
    for _ in 0..2 {
        for text in ASKED {
            assert_eq!(rows(&client, text).await, Ok(vec!["1".to_owned()]), "{text}");
        }
        client.batch_execute("SET row_security = off").await.unwrap();
        for text in ASKED {
            assert_eq!(rows(&client, text).await, refused(), "{text}");
        }
        client.batch_execute("SET row_security = on").await.unwrap();
    }
    // Whoever is let past policies is let past the setting.
    client.batch_execute("SET ROLE free; SET row_security = off").await.unwrap();
    for text in ASKED {
        assert_eq!(rows(&client, text).await, Ok(vec!["3".to_owned()]), "{text}");
    }
}

#[tokio::test]
async fn details_tell_nothing_of_rows_that_policies_may_hide() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let text = "CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1);
        CREATE ROLE holder; GRANT ALL ON SCHEMA public TO holder; ALTER TABLE parent OWNER TO holder;
        SET ROLE holder;
        CREATE TABLE secret (id int PRIMARY KEY, v int);
        INSERT INTO secret VALUES (1, 7), (2, 7);
        ALTER TABLE secret ENABLE ROW LEVEL SECURITY; CREATE POLICY every ON secret USING (true)";
    client.batch_execute(text).await.expect("a table");
    let unique = "CREATE UNIQUE INDEX by_v ON secret (v)";
    let foreign = "ALTER TABLE secret ADD FOREIGN KEY (v) REFERENCES parent";
    assert_eq!(detail(&client, unique).await, "Key (v)=(7) is duplicated.");
    assert_eq!(detail(&client, foreign).await, "Key (v)=(7) is not present in table \"parent\".");
    client.batch_execute("ALTER TABLE secret FORCE ROW LEVEL SECURITY").await.unwrap();
    assert_eq!(detail(&client, unique).await, "Duplicate keys exist.");
    assert_eq!(detail(&client, foreign).await, "Key is not present in table \"parent\".");
    // An index is built in its table's owner's name.
    client.batch_execute("RESET ROLE").await.unwrap();
    assert_eq!(detail(&client, unique).await, "Duplicate keys exist.");
}

/// The DETAIL of a text's error.
async fn detail(client: &Client, text: &str) -> String {
    let error = client.simple_query(text).await.expect_err(text);
    error.as_db_error().and_then(|error| error.detail()).unwrap_or_default().to_owned()
}

/// What a COPY TO STDOUT sends, or the SQLSTATE of its error.
async fn copied(client: &Client, text: &str) -> Result<String, String> {
    use futures::TryStreamExt;

    let refused =
        |error: tokio_postgres::Error| error.code().map_or_else(String::new, |code| code.code().to_owned());
    let stream = client.copy_out(text).await.map_err(refused)?;
    let parts: Vec<_> = stream.try_collect().await.map_err(refused)?;
    Ok(parts.iter().map(|part| String::from_utf8_lossy(part)).collect())
}

#[tokio::test]
async fn a_copy_has_the_rows_that_policies_show() {
    let server = Server::start(&[]);
    let client = server.client().await;
    tenants(&client).await;
    let texts = [
        "COPY note (id) TO STDOUT",
        "COPY (SELECT id FROM note ORDER BY id) TO STDOUT",
        "COPY (UPDATE note SET body = body RETURNING id) TO STDOUT",
    ];
    for (role, rows) in [("first", "1\n"), ("second", "2\n3\n"), ("free", "1\n2\n3\n")] {
        client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
        for text in texts {
            assert_eq!(copied(&client, text).await.as_deref(), Ok(rows), "{role} {text}");
        }
    }
    client.batch_execute("SET ROLE second; SET row_security = off").await.unwrap();
    for text in texts {
        assert_eq!(copied(&client, text).await, Err("42501".to_owned()), "{text}");
    }
    client.batch_execute("RESET row_security").await.unwrap();
    // Rows that come are asked about by nobody: whoever is under policies cannot load any.
    assert_eq!(rows(&client, "COPY note FROM STDIN").await, Err("0A000".to_owned()));
}

#[tokio::test]
async fn a_copy_of_a_partitioned_table_under_policies_is_of_none_of_its_partitions() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let text = "CREATE ROLE first; CREATE TABLE parts (id int) PARTITION BY RANGE (id);
        CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10); INSERT INTO parts VALUES (1);
        GRANT ALL ON parts TO first; ALTER TABLE parts ENABLE ROW LEVEL SECURITY;
        CREATE POLICY every ON parts USING (true); SET ROLE first";
    client.batch_execute(text).await.expect("partitions");
    assert_eq!(copied(&client, "COPY parts TO STDOUT").await.as_deref(), Ok(""));
}

#[tokio::test]
async fn rows_of_whoever_asks_are_found_by_an_index() {
    let server = Server::start(&[]);
    let client = server.client().await;
    let text = "CREATE ROLE first; CREATE TABLE note (owner text, id int, PRIMARY KEY (owner, id));
        INSERT INTO note SELECT 'other' || n, n FROM generate_series(1, 1000) n;
        INSERT INTO note VALUES ('first', 1); GRANT ALL ON note TO first;
        ALTER TABLE note ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON note USING (owner = current_user); SET ROLE first";
    client.batch_execute(text).await.expect("notes");
    let plan = rows(&client, "EXPLAIN SELECT id FROM note").await.expect("a plan").join("\n");
    assert!(plan.contains("Index Cond: (owner = current_user())"), "{plan}");
    assert!(plan.contains("single-partition"), "{plan}");
    assert_eq!(rows(&client, "SELECT id FROM note").await, Ok(vec!["1".to_owned()]));
    assert_eq!(rows(&client, "SELECT id FROM note WHERE id = 1").await, Ok(vec!["1".to_owned()]));
    assert_eq!(rows(&client, "SELECT id FROM note WHERE owner > 'a'::name").await, Ok(vec!["1".to_owned()]));
}
