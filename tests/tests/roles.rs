//! Applications that connect as roles of their own: who may connect, what they may do, and that
//! both survive a kill -9.

use archipel_tests::server::{Server, ask, connect};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

const SCHEMA: &str = "
CREATE ROLE team;
CREATE ROLE app LOGIN CONNECTION LIMIT 2 PASSWORD 'secret' IN ROLE team;
CREATE ROLE nobody;
ALTER ROLE app SET search_path = shop;
CREATE SCHEMA shop AUTHORIZATION team;
CREATE TABLE shop.article (id int PRIMARY KEY, price int);
CREATE TABLE shop.wages (id int PRIMARY KEY, amount int);
INSERT INTO shop.article VALUES (1, 10), (2, 20);
INSERT INTO shop.wages VALUES (1, 1000);
GRANT SELECT, UPDATE (price) ON shop.article TO app;
CREATE FUNCTION shop.wages_in_total() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN RETURN (SELECT sum(amount) FROM shop.wages); END $$;
CREATE FUNCTION shop.wages_or(what text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF what = 'wages' THEN RETURN (SELECT sum(amount) FROM shop.wages); END IF;
  RETURN (SELECT sum(price) FROM shop.article);
END $$;
ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT SELECT ON TABLES TO app;";

fn url(server: &Server, user: &str) -> String {
    format!("postgresql://{user}@127.0.0.1:{}/archipel", server.port())
}

async fn refused(server: &Server, user: &str) -> (SqlState, String) {
    match tokio_postgres::connect(&url(server, user), NoTls).await {
        Ok(_) => panic!("{user} was let in"),
        Err(error) => {
            let error = error.as_db_error().expect("the server answers").clone();
            (error.code().clone(), error.message().to_owned())
        }
    }
}

/// The error of a prepared statement: as drivers send it.
async fn denied(client: &Client, text: &str) -> String {
    let error = client.query(text, &[]).await.expect_err("it is not allowed");
    let error = error.as_db_error().expect("the server answers");
    assert_eq!(error.code(), &SqlState::INSUFFICIENT_PRIVILEGE, "{text}: {}", error.message());
    error.message().to_owned()
}

async fn number(client: &Client, text: &str) -> i64 {
    client.query_one(text, &[]).await.expect("it is allowed").get(0)
}

/// What the application may do and what it may not.
async fn check(server: &Server) {
    let app = connect(&url(server, "app")).await;
    // The path is the role's own setting.
    assert_eq!(number(&app, "SELECT count(*) FROM article").await, 2);
    assert_eq!(app.execute("UPDATE article SET price = 10 WHERE id = 1", &[]).await.expect("allowed"), 1);
    assert_eq!(denied(&app, "DELETE FROM article").await, "permission denied for table article");
    assert_eq!(
        denied(&app, "UPDATE article SET id = 3 WHERE id = 1").await,
        "permission denied for table article"
    );
    assert_eq!(denied(&app, "SELECT * FROM wages").await, "permission denied for table wages");
    assert_eq!(number(&app, "SELECT wages_in_total()").await, 1000);
    // A body is allowed as far as it is run.
    assert_eq!(number(&app, "SELECT wages_or('prices')").await, 30);
    assert_eq!(denied(&app, "SELECT wages_or('wages')").await, "permission denied for table wages");
    assert_eq!(
        denied(&app, "ALTER TABLE article ADD COLUMN more int").await,
        "must be owner of table article"
    );
    assert_eq!(
        denied(&app, "SELECT rolpassword FROM pg_authid").await,
        "permission denied for table pg_authid"
    );
    let who = app.query_one("SELECT current_user::text, session_user::text", &[]).await.expect("allowed");
    assert_eq!((who.get::<_, &str>(0), who.get::<_, &str>(1)), ("app", "app"));
    // The team owns the schema, and the application belongs to the team.
    app.batch_execute("SET ROLE team; CREATE TABLE made (id int PRIMARY KEY); DROP TABLE made; RESET ROLE")
        .await
        .expect("the team may");
}

#[tokio::test]
async fn an_application_works_as_its_own_role_and_kill_9_changes_nothing() {
    let mut server = Server::start(&[]);
    let superuser = server.connect().await;
    superuser.batch_execute(SCHEMA).await.expect("the schema can be made");
    check(&server).await;
    server.kill();
    server.restart();
    check(&server).await;
    let superuser = server.connect().await;
    // What is granted while others are connected holds at once, for what they have prepared, too.
    let app = connect(&url(&server, "app")).await;
    let prepared = app.prepare("SELECT amount FROM wages").await.expect("it can be prepared");
    assert!(app.query(&prepared, &[]).await.is_err());
    superuser.batch_execute("GRANT SELECT ON shop.wages TO app").await.expect("granted");
    assert_eq!(app.query(&prepared, &[]).await.expect("allowed now").len(), 1);
    superuser.batch_execute("REVOKE SELECT ON shop.wages FROM app").await.expect("revoked");
    assert!(app.query(&prepared, &[]).await.is_err());
    // Default privileges survived, too.
    superuser.batch_execute("CREATE TABLE shop.later (id int PRIMARY KEY)").await.expect("made");
    assert_eq!(number(&app, "SELECT count(*) FROM later").await, 0);
}

#[tokio::test]
async fn only_roles_that_may_log_in_do_and_only_so_often() {
    let server = Server::start(&[]);
    server.connect().await.batch_execute(SCHEMA).await.expect("the schema can be made");
    let invalid = SqlState::INVALID_AUTHORIZATION_SPECIFICATION;
    assert_eq!(
        refused(&server, "missing").await,
        (invalid.clone(), "role \"missing\" does not exist".to_owned())
    );
    assert_eq!(
        refused(&server, "nobody").await,
        (invalid, "role \"nobody\" is not permitted to log in".to_owned())
    );
    let (_first, _second) = (connect(&url(&server, "app")).await, connect(&url(&server, "app")).await);
    assert_eq!(
        refused(&server, "app").await,
        (SqlState::TOO_MANY_CONNECTIONS, "too many connections for role \"app\"".to_owned())
    );
    server
        .connect()
        .await
        .batch_execute("REVOKE CONNECT ON DATABASE archipel FROM PUBLIC")
        .await
        .expect("revoked");
    assert_eq!(refused(&server, "nobody").await.0, SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
    server.connect().await.batch_execute("ALTER ROLE nobody LOGIN").await.expect("altered");
    assert_eq!(
        refused(&server, "nobody").await,
        (SqlState::INSUFFICIENT_PRIVILEGE, "permission denied for database \"archipel\"".to_owned())
    );
}

async fn column(client: &Client, query: &str) -> Vec<String> {
    ask(client, query).await.into_iter().flatten().collect()
}

#[tokio::test]
async fn views_of_the_running_server_show_what_rights_allow() {
    let server = Server::start(&[]);
    let admin = connect(&server.url()).await;
    admin.batch_execute(SCHEMA).await.expect("it is allowed");
    let hide = "REVOKE EXECUTE ON FUNCTION shop.wages_in_total() FROM PUBLIC";
    admin.batch_execute(hide).await.expect("it is allowed");
    let app = connect(&url(&server, "app")).await;

    let partitions =
        "SELECT DISTINCT tables FROM archipel.partitions WHERE tables IN ('article', 'wages') ORDER BY 1";
    let routines = "SELECT name FROM archipel.routines ORDER BY 1";
    let actions = "SELECT DISTINCT coalesce(table_name, '-') FROM archipel.flow_graphs WHERE routine LIKE '%wages_or(%' ORDER BY 1";
    let secret = "SELECT name FROM pg_settings WHERE name = 'data_directory'";
    assert_eq!(column(&admin, partitions).await, ["article", "wages"]);
    assert_eq!(column(&admin, routines).await, ["wages_in_total", "wages_or"]);
    assert_eq!(column(&admin, actions).await, ["shop.article", "shop.wages"]);
    assert_eq!(column(&admin, secret).await, ["data_directory"]);

    assert_eq!(column(&app, partitions).await, ["article"]);
    assert_eq!(column(&app, routines).await, ["wages_or"]);
    assert_eq!(column(&app, actions).await, ["-", "shop.article"]);
    assert_eq!(column(&app, secret).await, [""; 0]);
    let examine =
        "must be superuser or have privileges of pg_read_all_settings to examine \"data_directory\"";
    assert_eq!(denied(&app, "SELECT current_setting('data_directory')").await, examine);
    assert_eq!(denied(&app, "SHOW data_directory").await, examine);

    admin.batch_execute("GRANT pg_monitor TO app").await.expect("it is allowed");
    assert_eq!(column(&app, partitions).await, ["article", "wages"]);
    assert_eq!(column(&app, actions).await, ["shop.article", "shop.wages"]);
    assert_eq!(column(&app, secret).await, ["data_directory"]);
}
