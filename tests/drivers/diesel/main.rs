//! Diesel as an application uses it: over libpq, with r2d2's pool, its migrations and its command line.

mod failures;
mod schema;
mod values;

use std::io::BufRead;
use std::process::Command;
use std::thread;
use std::time::Duration;

use bigdecimal::BigDecimal;
use checks::{Outcome, equal, failure, url};
use diesel::connection::{DefaultLoadingMode, SimpleConnection};
use diesel::dsl::{count_star, exists, select, sum};
use diesel::pg::{CopyFormat, CopyHeader, PgRowByRowLoadingMode};
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, Pool};
use diesel::sql_types::{BigInt, Integer, Numeric, Text};
use diesel::upsert::excluded;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use failures::{refused, usable};
use schema::{Mood, account, item, owner};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");

pub fn connect() -> Outcome<PgConnection> {
    Ok(PgConnection::establish(&url())?)
}

/// A row of one number.
#[derive(QueryableByName)]
pub struct Number {
    #[diesel(sql_type = BigInt)]
    pub number: i64,
}

/// The number that a query answers, which is to call it so.
pub fn number(connection: &mut PgConnection, text: &str) -> Outcome<i64> {
    Ok(diesel::sql_query(text).get_result::<Number>(connection)?.number)
}

/// A row of one text.
#[derive(QueryableByName)]
pub struct Label {
    #[diesel(sql_type = Text)]
    pub label: String,
}

/// The text that a query answers, which is to call it label.
pub fn label(connection: &mut PgConnection, text: &str) -> Outcome<String> {
    Ok(diesel::sql_query(text).get_result::<Label>(connection)?.label)
}

/// What diesel's migrations fail with is no error of the standard library's kind.
fn migrated<T>(outcome: Result<T, Box<dyn std::error::Error + Send + Sync>>) -> Outcome<T> {
    Ok(outcome.map_err(|error| std::io::Error::other(error.to_string()))?)
}

fn migrates() -> Outcome {
    let connection = &mut connect()?;
    connection.batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")?;
    equal(migrated(connection.run_pending_migrations(MIGRATIONS))?.len(), 3);
    equal(migrated(connection.has_pending_migration(MIGRATIONS))?, false);
    let tables = "SELECT count(*) AS number FROM information_schema.tables WHERE table_schema = 'public'";
    equal(number(connection, tables)?, 4);
    equal(migrated(connection.revert_all_migrations(MIGRATIONS))?.len(), 3);
    equal(number(connection, tables)?, 1);
    equal(migrated(connection.run_pending_migrations(MIGRATIONS))?.len(), 3);
    migrated(connection.revert_last_migration(MIGRATIONS).map(|_| ()))?;
    equal(migrated(connection.applied_migrations())?.len(), 2);
    migrated(connection.run_next_migration(MIGRATIONS).map(|_| ()))?;
    Ok(())
}

/// What the command line prints for these tables is what the program was written with.
fn introspects() -> Outcome {
    let tool = std::env::var("DIESEL")?;
    let diesel = |arguments: &[&str]| -> Outcome<String> {
        let output = Command::new(&tool).args(arguments).env("DATABASE_URL", url()).output()?;
        equal(
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()),
            (true, String::new()),
        );
        Ok(String::from_utf8(output.stdout)?)
    };
    let printed = diesel(&["print-schema"])?;
    for part in [
        "pub struct Mood;",
        "account (id) {",
        "owner_id -> Int8,",
        "key -> Uuid,",
        "balance -> Numeric,",
        "mood -> Mood,",
        "tags -> Array<Nullable<Text>>,",
        "detail -> Nullable<Jsonb>,",
        "opened -> Timestamptz,",
        "label -> Nullable<Text>,",
        "diesel::joinable!(account -> owner (owner_id));",
    ] {
        equal((part, printed.contains(part)), (part, true));
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let listed = diesel(&["migration", "list", "--migration-dir", folder])?;
    equal(listed.matches("[X]").count(), 3);
    Ok(())
}

#[derive(Insertable)]
#[diesel(table_name = account)]
struct NewAccount<'a> {
    owner_id: i64,
    balance: BigDecimal,
    mood: Mood,
    tags: Vec<&'a str>,
    detail: Option<serde_json::Value>,
}

#[derive(Queryable, Selectable, Identifiable, Debug, AsChangeset)]
#[diesel(table_name = account)]
struct Account {
    id: i32,
    balance: BigDecimal,
    mood: Mood,
    tags: Vec<String>,
    detail: Option<serde_json::Value>,
    opened: chrono::DateTime<chrono::Utc>,
}

fn work() -> Outcome {
    let connection = &mut connect()?;
    let ann: i64 = diesel::insert_into(owner::table)
        .values(owner::name.eq("ann"))
        .returning(owner::id)
        .get_result(connection)?;
    let new = NewAccount {
        owner_id: ann,
        balance: "10.50".parse()?,
        mood: Mood::Happy,
        tags: vec!["x"],
        detail: Some(serde_json::json!({"k": 1})),
    };
    let mut made: Account = diesel::insert_into(account::table)
        .values(&new)
        .returning(Account::as_returning())
        .get_result(connection)?;
    equal(
        (made.balance.to_string(), made.mood, &made.tags[..]),
        ("10.50".to_owned(), Mood::Happy, &["x".to_owned()][..]),
    );
    equal((&made.detail, (chrono::Utc::now() - made.opened).num_minutes()), (&new.detail, 0));
    made.mood = Mood::Sad;
    let saved: Account =
        diesel::update(&made).set(&made).returning(Account::as_returning()).get_result(connection)?;
    equal(saved.mood, Mood::Sad);
    diesel::update(account::table)
        .set(account::balance.eq(account::balance * BigDecimal::from(2)))
        .execute(connection)?;
    let joined: Vec<(String, BigDecimal)> = owner::table
        .inner_join(account::table)
        .filter(account::tags.contains(vec!["x"]).and(account::detail.is_not_null()))
        .filter(account::id.eq_any([made.id, -1]))
        .order((owner::name.asc(), account::id.desc()))
        .select((owner::name, account::balance))
        .load(connection)?;
    equal(joined, vec![("ann".to_owned(), "21.00".parse()?)]);
    let totals: Vec<(i64, Option<BigDecimal>, i64)> = account::table
        .group_by(account::owner_id)
        .select((account::owner_id, sum(account::balance), count_star()))
        .load(connection)?;
    equal(totals, vec![(ann, Some("21.00".parse()?), 1)]);
    equal(
        select(exists(owner::table.filter(owner::name.ilike("AN%")))).get_result::<bool>(connection)?,
        true,
    );
    equal(account::table.find(-1).select(account::id).first::<i32>(connection).optional()?, None);
    equal(diesel::delete(account::table).execute(connection)?, 1);
    equal(diesel::delete(owner::table.find(ann)).execute(connection)?, 1);
    Ok(())
}

fn transactions() -> Outcome {
    let connection = &mut connect()?;
    connection.transaction(|outer| {
        diesel::insert_into(item::table).values(item::id.eq(1)).execute(outer)?;
        let inner = outer.transaction(|inner| {
            diesel::insert_into(item::table).values(item::id.eq(2)).execute(inner)?;
            diesel::insert_into(item::table).values(item::id.eq(1)).execute(inner)
        });
        refused(inner, "duplicate key value violates unique constraint \"item_pkey\"");
        diesel::insert_into(item::table).values(item::id.eq(3)).execute(outer)
    })?;
    equal(item::table.select(item::id).order(item::id).load::<i32>(connection)?, vec![1, 3]);
    let level = "SELECT current_setting('transaction_isolation') AS label";
    let within = connection.build_transaction().serializable().read_only().deferrable().run(|within| {
        equal(diesel::sql_query(level).get_result::<Label>(within)?.label, "serializable");
        diesel::delete(item::table).execute(within)
    });
    refused(within, "cannot execute DELETE in a read-only transaction");
    let within = connection.build_transaction().repeatable_read().run(|within| {
        equal(diesel::sql_query(level).get_result::<Label>(within)?.label, "repeatable read");
        diesel::delete(item::table).execute(within)?;
        QueryResult::<()>::Err(diesel::result::Error::RollbackTransaction)
    });
    equal(failure(within), diesel::result::Error::RollbackTransaction);
    connection.test_transaction::<_, diesel::result::Error, _>(|within| {
        diesel::delete(item::table).execute(within)
    });
    equal(diesel::delete(item::table).execute(connection)?, 2);
    Ok(())
}

fn prepared() -> Outcome {
    let connection = &mut connect()?;
    let labels = |connection: &mut PgConnection, id: i32| {
        item::table.filter(item::id.eq(id)).select(item::label).load::<Option<String>>(connection)
    };
    diesel::insert_into(item::table).values((item::id.eq(1), item::label.eq("a"))).execute(connection)?;
    for _ in 0..3 {
        equal(labels(connection, 1)?, vec![Some("a".to_owned())]);
    }
    let kept =
        "SELECT count(*) AS number FROM pg_prepared_statements WHERE statement LIKE 'SELECT \"item\"%'";
    equal(number(connection, kept)?, 1);
    let other = &mut connect()?;
    other.batch_execute("ALTER TABLE item ADD COLUMN more int")?;
    equal(labels(connection, 1)?.len(), 1);
    other.batch_execute("ALTER TABLE item ALTER COLUMN label TYPE varchar(9)")?;
    refused(labels(connection, 1), "cached plan must not change result type");
    other.batch_execute("ALTER TABLE item ALTER COLUMN label TYPE text, DROP COLUMN more")?;
    equal(labels(connection, 1)?, vec![Some("a".to_owned())]);
    equal(diesel::delete(item::table).execute(connection)?, 1);
    Ok(())
}

fn batches() -> Outcome {
    let connection = &mut connect()?;
    let rows: Vec<_> =
        (0..1000).map(|n| (item::id.eq(n), item::label.eq((n % 2 == 0).then(|| format!("l{n}"))))).collect();
    equal(diesel::insert_into(item::table).values(&rows).execute(connection)?, 1000);
    let upserted = diesel::insert_into(item::table)
        .values(&rows[..10])
        .on_conflict(item::id)
        .do_update()
        .set(item::label.eq(excluded(item::label)))
        .execute(connection)?;
    equal(upserted, 10);
    equal(diesel::insert_into(item::table).values(&rows).on_conflict_do_nothing().execute(connection)?, 0);
    refused(connection.batch_execute("DELETE FROM item; SELECT 1 / 0; SELECT 2"), "division by zero");
    equal(item::table.filter(item::label.is_null()).count().get_result::<i64>(connection)?, 500);
    connection.batch_execute("DELETE FROM item WHERE id < 2; DELETE FROM item WHERE id < 5")?;
    equal(diesel::delete(item::table).execute(connection)?, 995);
    Ok(())
}

#[derive(Queryable, Selectable, Debug, PartialEq)]
#[diesel(table_name = item)]
struct Item {
    id: i32,
    label: Option<String>,
}

fn copies() -> Outcome {
    let connection = &mut connect()?;
    let copied = diesel::copy_from(item::table)
        .from_raw_data(item::table, |copy| {
            writeln!(copy, "id,label").map_err(failures::unwritten)?;
            (0..3000).try_for_each(|n| writeln!(copy, "{n},\"label {n}\"")).map_err(failures::unwritten)
        })
        .with_format(CopyFormat::Csv)
        .with_header(CopyHeader::Match)
        .execute(connection)?;
    equal(copied, 3000);
    // In binary.
    let rows: Vec<_> = (3000..4000).map(|n| (item::id.eq(n), item::label.eq("packed"))).collect();
    equal(diesel::copy_from(item::table).from_insertable(&rows).execute(connection)?, 1000);
    let wrong = diesel::copy_from(item::table)
        .from_raw_data(item::table, |copy| writeln!(copy, "x\ty").map_err(failures::unwritten))
        .execute(connection);
    refused(wrong, "invalid input syntax for type integer: \"x\"");
    usable(connection)?;
    let reader = &mut connect()?;
    let out: Vec<Item> = diesel::copy_to(item::table).load::<Item, _>(reader)?.collect::<Result<_, _>>()?;
    equal((out.len(), &out[3999]), (4000, &Item { id: 3999, label: Some("packed".to_owned()) }));
    // Diesel leaves a connection that was copied from in the midst of that.
    let reader = &mut connect()?;
    let text =
        diesel::copy_to(item::table).with_format(CopyFormat::Csv).with_header(true).load_raw(reader)?;
    let lines: Result<Vec<String>, _> = text.lines().collect();
    equal(&lines?[..2], ["id,label", "0,label 0"]);
    equal(diesel::delete(item::table).execute(connection)?, 4000);
    usable(connection)
}

fn cursors() -> Outcome {
    let connection = &mut connect()?;
    let series = "SELECT n::bigint AS number FROM generate_series(1, 1000) AS n";
    let rows = diesel::sql_query(series).load_iter::<Number, PgRowByRowLoadingMode>(connection)?;
    equal(rows.map(|row| row.map(|row| row.number)).sum::<QueryResult<i64>>()?, 500_500);
    let mut rows = diesel::sql_query(series).load_iter::<Number, DefaultLoadingMode>(connection)?;
    equal(rows.next().transpose()?.map(|row| row.number), Some(1));
    drop(rows);
    let numbers = |within: &mut PgConnection, text: &str| {
        diesel::sql_query(text)
            .load_iter::<Number, DefaultLoadingMode>(within)?
            .map(|row| Ok(row?.number))
            .collect()
    };
    connection.transaction(|within| -> QueryResult<()> {
        within.batch_execute(&format!("DECLARE c SCROLL CURSOR FOR {series}"))?;
        let first: QueryResult<Vec<i64>> = numbers(within, "FETCH 3 FROM c");
        equal(first?, vec![1, 2, 3]);
        equal(diesel::sql_query("MOVE 10 IN c").execute(within)?, 10);
        let back: QueryResult<Vec<i64>> = numbers(within, "FETCH BACKWARD 2 FROM c");
        equal(back?, vec![12, 11]);
        within.batch_execute("CLOSE c")
    })?;
    Ok(())
}

fn notifications() -> Outcome {
    let (listener, sender) = (&mut connect()?, &mut connect()?);
    diesel::sql_query("LISTEN news").execute(listener)?;
    equal(listener.notifications_iter().count(), 0);
    diesel::sql_query("SELECT pg_notify('news', $1)").bind::<Text, _>("first").execute(sender)?;
    let pid = number(sender, "SELECT pg_backend_pid()::bigint AS number")?;
    let got = loop {
        if let Some(got) = listener.notifications_iter().next() {
            break got?;
        }
        thread::sleep(Duration::from_millis(10));
    };
    equal((i64::from(got.process_id), got.channel.as_str(), got.payload.as_str()), (pid, "news", "first"));
    // Diesel hears notices, and tells nobody.
    sender.batch_execute("DO $$ BEGIN RAISE NOTICE 'hello'; END $$")?;
    usable(sender)
}

#[diesel::declare_sql_function]
extern "SQL" {
    fn deposit(p_id: Integer, p_amount: Numeric) -> Numeric;
}

#[derive(QueryableByName)]
struct Renamed {
    #[diesel(sql_type = Text)]
    p_name: String,
}

#[derive(QueryableByName)]
struct Split {
    #[diesel(sql_type = Text)]
    p_first: String,
    #[diesel(sql_type = Text)]
    p_rest: String,
}

fn routines() -> Outcome {
    let connection = &mut connect()?;
    let bob: i64 = diesel::insert_into(owner::table)
        .values(owner::name.eq("bob"))
        .returning(owner::id)
        .get_result(connection)?;
    let id: i32 = diesel::insert_into(account::table)
        .values(account::owner_id.eq(bob))
        .returning(account::id)
        .get_result(connection)?;
    let amount: BigDecimal = "2.5".parse()?;
    equal(select(deposit(id, &amount)).get_result::<BigDecimal>(connection)?.to_string(), "2.50");
    refused(select(deposit(-1, &amount)).get_result::<BigDecimal>(connection), "no account -1");
    let call = diesel::sql_query("CALL rename($1, $2)").bind::<BigInt, _>(bob).bind::<Text, _>("bert");
    equal(call.get_result::<Renamed>(connection)?.p_name, "BERT");
    diesel::delete(account::table).execute(connection)?;
    diesel::delete(owner::table).execute(connection)?;
    connection.transaction(|within| -> QueryResult<()> {
        let call = diesel::sql_query("CALL split($1, NULL, 'c')").bind::<Text, _>("abc");
        let said: Split = call.get_result(within)?;
        equal((said.p_first.as_str(), said.p_rest.as_str()), ("a", "c"));
        let rest: Renamed = diesel::sql_query("FETCH ALL FROM c").get_result::<Rest>(within)?.into();
        equal(rest.p_name, "bc");
        Ok(())
    })?;
    Ok(())
}

#[derive(QueryableByName)]
struct Rest {
    #[diesel(sql_type = Text)]
    substr: String,
}

impl From<Rest> for Renamed {
    fn from(rest: Rest) -> Renamed {
        Renamed { p_name: rest.substr }
    }
}

fn pools() -> Outcome {
    let manager = ConnectionManager::<PgConnection>::new(url());
    let pool = Pool::builder().max_size(4).test_on_check_out(true).build(manager)?;
    let threads: Vec<_> = (0..40)
        .map(|n| {
            let pool = pool.clone();
            thread::spawn(move || -> Outcome<i32> {
                let connection = &mut pool.get()?;
                Ok(select(n.into_sql::<Integer>()).get_result(connection)?)
            })
        })
        .collect();
    for (n, thread) in threads.into_iter().enumerate() {
        let got = thread.join().expect("it does not panic")?;
        equal(usize::try_from(got)?, n);
    }
    equal(pool.state().connections <= 4, true);
    // One whose session was ended is replaced by a new one.
    let killer = &mut connect()?;
    let ended = "SELECT count(pg_terminate_backend(pid)) AS number FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    equal(number(killer, ended)? >= 4, true);
    let connection = &mut pool.get()?;
    usable(connection)
}

fn main() {
    let mut checks: Vec<checks::Check> = vec![
        ("migrates up, down and up again", migrates),
        ("tables, keys and types are read from the catalogs", introspects),
        ("values come back as they went", values::binary),
        ("enums and composites are known", values::own_types),
        ("rows are written, read, changed and deleted", work),
        ("transactions and savepoints nest", transactions),
        ("statements are prepared, and what becomes of them when a table changes", prepared),
        ("many rows and many statements", batches),
        ("copy goes both ways, as text and in binary", copies),
        ("rows come one by one, and SQL cursors are fetched and moved", cursors),
        ("notifications arrive", notifications),
        ("functions and procedures are called", routines),
        ("a syntax error leaves the connection usable", failures::mistakes),
        ("a violation names its constraint", failures::violations),
        ("a running query is cancelled and times out", failures::cancelling),
        ("waiting for a lock times out", failures::locks),
        ("serializable transactions that cannot both be", failures::serializable),
        ("a pool serves many, and replaces sessions that ended", pools),
    ];
    if checks::secured() {
        checks.push(("a connection is encrypted and its user known", failures::encrypted));
    }
    checks::run_all(&checks)
}
