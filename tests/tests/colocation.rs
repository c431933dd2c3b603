//! Tables find together by what deployed routines do: TPC-C without a call of a distribution
//! function, rows that were there before, choices made by hand, crashes, and open transactions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use archipel_tests::server::{Server, ask, connect, workload};
use tokio_postgres::Client;

/// How long to wait for what must come, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks until the answer is as it should be; what is done beside the clients takes a moment.
async fn becomes(client: &Client, query: &str, wanted: &[&[&str]]) {
    let begin = Instant::now();
    loop {
        let answer = ask(client, query).await;
        if answer == wanted {
            return;
        }
        if begin.elapsed() > PATIENCE {
            let advice =
                "SELECT kind, routine, argument, tables, groups, applied, reason FROM archipel.design_advice";
            panic!("{query}: {answer:?}\nadvice: {:#?}", ask(client, advice).await);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What is not as the routines want it yet.
const WAITING: &str = "SELECT count(*) FROM archipel.design_advice WHERE NOT applied";

/// The tables that live in one group with this one.
async fn beside(client: &Client, table: &str) -> String {
    let query = format!(
        "SELECT DISTINCT tables FROM archipel.partitions WHERE ', ' || tables || ', ' LIKE '%, {table}, %'"
    );
    let answer = ask(client, &query).await;
    assert_eq!(answer.len(), 1, "{table} is in one group: {answer:?}");
    let mut tables: Vec<&str> = answer[0][0].split(", ").collect();
    tables.sort_unstable();
    tables.join(" ")
}

async fn explained(client: &Client, call: &str) -> Vec<String> {
    ask(client, &format!("EXPLAIN {call}")).await.into_iter().flatten().collect()
}

const NEW_ORDER: &str = "CALL new_order(1, 1, 1, '{1,2}', '{1,1}', '{1,1}')";
const PAYMENT: &str = "CALL payment(1, 1, 1, 1, 1, NULL, 1.00)";

/// Everything of one warehouse lives together and the price list is everywhere, without anybody
/// saying so; calls touch one partition but for other warehouses, and know it beforehand.
async fn is_colocated(client: &Client) {
    becomes(client, WAITING, &[&["0"]]).await;
    assert_eq!(
        beside(client, "warehouse").await,
        "customer customer_by_name district history new_order order_line orders orders_by_customer stock warehouse"
            .split(' ')
            .filter(|name| !name.contains("_by_"))
            .collect::<Vec<_>>()
            .join(" ")
    );
    for (call, routing) in [
        (NEW_ORDER, "  Routing: p_w_id, each of p_supply_w_ids[1:array_length(p_item_ids, 1)]"),
        (PAYMENT, "  Routing: p_w_id, p_c_w_id"),
    ] {
        let lines = explained(client, call).await;
        assert_eq!(lines[1], routing, "{lines:#?}");
        assert!(!lines.iter().any(|line| line.contains("found while it runs")), "{lines:#?}");
        assert_eq!(
            lines.last().map(String::as_str),
            Some("  Partitions with these arguments: 1"),
            "{lines:#?}"
        );
    }
    let classes = "SELECT name, class, routing FROM archipel.routines
                   WHERE name IN ('delivery', 'order_status', 'stock_level') ORDER BY name";
    let single = |name: &str| [name, "single-partition", "p_w_id"].map(str::to_owned).to_vec();
    assert_eq!(ask(client, classes).await, ["delivery", "order_status", "stock_level"].map(single));
}

/// Calls of each routine that shares are computed from, and runs to come to them.
const CALLS_MIN: f64 = 200.0;
const RUNS_MAX: usize = 10;

/// Runs TPC-C and answers each routine's calls, mispredictions and calls of several partitions.
async fn run_tpcc(client: &Client, url: &str, seconds: &str) -> Vec<(String, f64, f64, f64)> {
    let counts = "SELECT name, calls, mispredicted, multi_partition FROM archipel.routines
                  WHERE calls > 0 ORDER BY name";
    let number = |text: &String| text.parse::<f64>().expect("a number");
    let mut runs = 0;
    loop {
        workload(&["run", "tpcc", "--scale", "4", "--url", url, "--duration", seconds, "--quiet"], false);
        runs += 1;
        let counts: Vec<_> = ask(client, counts)
            .await
            .iter()
            .map(|row| (row[0].clone(), number(&row[1]), number(&row[2]), number(&row[3])))
            .collect();
        // A slow machine runs longer: shares of a few calls say little.
        if runs == RUNS_MAX || counts.len() == 5 && counts.iter().all(|(_, calls, ..)| *calls >= CALLS_MIN) {
            workload(&["check", "tpcc", "--url", url], false);
            return counts;
        }
    }
}

#[tokio::test]
async fn tpcc_needs_no_distribution_call() {
    let mut server = Server::start(&["archipel.executors=2"]);
    let url = server.url();
    workload(&["load", "tpcc", "--scale", "4", "--url", &url, "--no-distribution"], false);
    let client = connect(&url).await;
    is_colocated(&client).await;
    let counts = run_tpcc(&client, &url, "4").await;
    assert_eq!(counts.len(), 5, "{counts:?}");
    for (name, calls, mispredicted, several) in &counts {
        assert!(mispredicted / calls <= 0.01, "{name}: {mispredicted} of {calls} were not foreseen");
        // One order in ten and one payment in seven concern another warehouse.
        let remote = match name.as_str() {
            "new_order" => 0.2,
            "payment" => 0.25,
            _ => 0.0,
        };
        assert!(several / calls <= remote, "{name}: {several} of {calls} touched several partitions");
    }
    // Decisions are logged like data.
    let decisions = "SELECT count(*) FROM archipel.repartitions WHERE action = 'regroup'";
    assert_ne!(ask(&client, decisions).await, [["0"]]);
    drop(client);
    server.kill();
    server.restart();
    workload(&["check", "tpcc", "--url", &server.url()], false);
    let client = connect(&server.url()).await;
    is_colocated(&client).await;
    assert_eq!(ask(&client, decisions).await, [["0"]], "nothing was left to do");
}

#[tokio::test]
async fn rows_loaded_before_the_routines_come_along() {
    let server = Server::start(&["archipel.executors=2"]);
    let url = server.url();
    workload(&["load", "tpcc", "--scale", "1", "--url", &url, "--no-distribution"], false);
    let client = connect(&url).await;
    is_colocated(&client).await;
    // As if they had just been loaded, each table by itself.
    ask(&client, "ALTER SYSTEM SET archipel.colocate = off").await;
    ask(&client, "SELECT pg_reload_conf()").await;
    for table in "warehouse district customer history orders new_order order_line stock item".split(' ') {
        ask(&client, &format!("SELECT undistribute_table('{table}')")).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(beside(&client, "warehouse").await, "warehouse", "nothing happens where it is off");
    let told = "SELECT count(*) FROM archipel.design_advice WHERE NOT applied AND reason LIKE '%archipel.colocate is off'";
    assert_ne!(ask(&client, told).await, [["0"]]);
    ask(&client, "ALTER SYSTEM SET archipel.colocate = on").await;
    ask(&client, "SELECT pg_reload_conf()").await;
    is_colocated(&client).await;
    workload(&["check", "tpcc", "--url", &url], false);
    run_tpcc(&client, &url, "2").await;
}

const PAIR: &str = "
    CREATE TABLE owners (o_id integer PRIMARY KEY, o_cars integer NOT NULL);
    CREATE TABLE cars (c_owner integer, c_id integer, PRIMARY KEY (c_owner, c_id));
    CREATE TABLE trips (t_owner integer NOT NULL, t_km integer NOT NULL);
    CREATE TABLE makes (m_id integer PRIMARY KEY, m_name text NOT NULL);";

const BUY: &str = "
    CREATE OR REPLACE PROCEDURE buy(owner integer, car integer, make integer) LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM 1 FROM makes WHERE m_id = make;
        UPDATE owners SET o_cars = o_cars + 1 WHERE o_id = owner;
        INSERT INTO cars VALUES (owner, car);
        INSERT INTO trips VALUES (owner, 0);
    END $$;";

#[tokio::test]
async fn what_was_asked_for_stays_and_the_advice_says_so() {
    let server = Server::start(&[]);
    let client = connect(&server.url()).await;
    ask(&client, PAIR).await;
    ask(&client, "SELECT create_distributed_table('cars', 'c_owner', colocate_with => 'none')").await;
    ask(&client, BUY).await;
    let advice =
        "SELECT kind, argument, tables, applied, reason FROM archipel.design_advice ORDER BY kind, tables";
    becomes(
        &client,
        advice,
        &[
            &[
                "co-locate",
                "owner",
                "{owners(o_id),cars(c_owner),trips(t_owner)}",
                "f",
                "reached through the same argument; not done: cars was distributed by hand",
            ],
            &[
                "co-locate",
                "owner",
                "{owners(o_id),trips(t_owner)}",
                "t",
                "reached through the same argument",
            ],
            &["reference", "make", "{makes}", "t", "read by a value of its own, and written by no routine"],
        ],
    )
    .await;
    let statements = "SELECT statements FROM archipel.design_advice WHERE NOT applied";
    assert_eq!(
        ask(&client, statements).await,
        [["SELECT create_distributed_table('owners', 'o_id');\n\
           SELECT create_distributed_table('cars', 'c_owner', colocate_with => 'owners');"]]
    );
    assert_eq!(beside(&client, "cars").await, "cars");
    assert_eq!(beside(&client, "owners").await, "owners trips");

    // Asked otherwise, it is otherwise; and left to the evidence again.
    ask(&client, "SELECT undistribute_table('cars')").await;
    becomes(&client, WAITING, &[&["0"]]).await;
    assert_eq!(beside(&client, "owners").await, "cars owners trips");

    // A routine that writes the reference table ends that; a dropped routine ends nothing.
    ask(
        &client,
        "CREATE PROCEDURE name(make integer, called text) LANGUAGE sql AS
         'UPDATE makes SET m_name = called WHERE m_id = make'",
    )
    .await;
    let makes = "SELECT count(*) FROM archipel.partitions WHERE tables = 'makes'";
    becomes(&client, makes, &[&["1"]]).await;
    ask(&client, "DROP PROCEDURE buy").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(beside(&client, "owners").await, "cars owners trips");
    // Nobody asked for the column, so nobody has to keep it.
    ask(&client, "ALTER TABLE trips ALTER COLUMN t_owner DROP NOT NULL").await;
    ask(&client, "INSERT INTO trips VALUES (NULL, 1)").await;
    assert_eq!(beside(&client, "trips").await, "trips");
}

#[tokio::test]
async fn a_small_table_read_by_a_constant_is_a_reference_table_too() {
    let server = Server::start(&[]);
    let client = connect(&server.url()).await;
    ask(
        &client,
        "CREATE TABLE account (id integer PRIMARY KEY, v integer NOT NULL);
         CREATE TABLE rates (id integer PRIMARY KEY, rate integer NOT NULL);
         INSERT INTO rates VALUES (1, 5);
         CREATE FUNCTION charge(account integer) RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE r integer;
         BEGIN
             SELECT rate INTO r FROM rates WHERE id = 1;
             UPDATE account SET v = v - r WHERE id = charge.account;
             RETURN r;
         END $$",
    )
    .await;
    becomes(
        &client,
        "SELECT kind, tables, applied FROM archipel.design_advice",
        &[&["reference", "{rates}", "t"]],
    )
    .await;
}

#[tokio::test]
async fn columns_that_are_stored_otherwise_do_not_meet() {
    let server = Server::start(&[]);
    let client = connect(&server.url()).await;
    ask(
        &client,
        "CREATE TABLE small (s_id integer PRIMARY KEY, v integer);
         CREATE TABLE large (l_id bigint PRIMARY KEY, v integer);
         CREATE TABLE other (o_no integer, o_id integer, v integer, PRIMARY KEY (o_no, o_id));
         CREATE PROCEDURE f(id integer) LANGUAGE sql AS
         'UPDATE small SET v = 1 WHERE s_id = id; UPDATE large SET v = 1 WHERE l_id = id;
          UPDATE other SET v = 1 WHERE o_id = id'",
    )
    .await;
    let advice = "SELECT tables, applied, reason FROM archipel.design_advice";
    becomes(
        &client,
        advice,
        &[&["{small(s_id),large(l_id)}", "f",
            "reached through the same argument; not done: their columns are of different types, or may be NULL"]],
    )
    .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(beside(&client, "small").await, "small");
}

/// Shops and what lies on their shelves, the shelves by goods first: whoever orders says which shop,
/// and finds the goods in a loop.
const SHELVES: &str = "
    CREATE TABLE shops (s_id integer PRIMARY KEY, s_orders integer NOT NULL);
    CREATE TABLE counters (c_shop integer, c_id integer, c_next integer NOT NULL, PRIMARY KEY (c_shop, c_id));
    CREATE TABLE shelves (h_goods integer, h_shop integer, h_count integer NOT NULL,
                          PRIMARY KEY (h_goods, h_shop));
    INSERT INTO shops SELECT g, 0 FROM generate_series(1, 4) g;
    INSERT INTO counters SELECT g, 1, 0 FROM generate_series(1, 4) g;
    INSERT INTO shelves SELECT g, s, 1000 FROM generate_series(1, 50) g, generate_series(1, 4) s;";

/// Another shop than one's own now and then, one row after another.
const ORDER_IN_A_LOOP: &str = "
    CREATE PROCEDURE order_goods(shop integer, shops_max integer, lines integer) LANGUAGE plpgsql AS $$
    DECLARE goods integer; supplier integer;
    BEGIN
        UPDATE shops SET s_orders = s_orders + 1 WHERE s_id = shop;
        UPDATE counters SET c_next = c_next + 1 WHERE c_shop = shop AND c_id = 1;
        FOR line IN 1 .. lines LOOP
            goods := 1 + trunc(random() * 50);
            supplier := shop;
            IF random() < 0.01 THEN
                WHILE supplier = shop AND shops_max > 1 LOOP
                    supplier := 1 + trunc(random() * shops_max);
                END LOOP;
            END IF;
            UPDATE shelves SET h_count = h_count - 1 WHERE h_goods = goods AND h_shop = supplier;
        END LOOP;
    END $$;";

/// The same with arrays that the routine fills.
const ORDER_BY_ARRAYS: &str = "
    CREATE PROCEDURE order_goods(shop integer, shops_max integer, lines integer) LANGUAGE plpgsql AS $$
    DECLARE goods integer[]; suppliers integer[];
    BEGIN
        UPDATE shops SET s_orders = s_orders + 1 WHERE s_id = shop;
        UPDATE counters SET c_next = c_next + 1 WHERE c_shop = shop AND c_id = 1;
        FOR line IN 1 .. lines LOOP
            goods[line] := line;
            IF random() > 0.01 THEN
                suppliers[line] := shop;
            ELSE
                suppliers[line] := 1 + trunc(random() * shops_max);
            END IF;
        END LOOP;
        UPDATE shelves SET h_count = h_count - 1
          FROM unnest(goods, suppliers) AS wanted (goods, supplier)
         WHERE h_goods = wanted.goods AND h_shop = wanted.supplier AND h_shop = ANY (suppliers);
    END $$;";

#[tokio::test]
async fn a_key_that_begins_with_the_wrong_column_is_distributed_by_another() {
    for order in [ORDER_IN_A_LOOP, ORDER_BY_ARRAYS] {
        let server = Server::start(&["archipel.executors=2"]);
        let client = connect(&server.url()).await;
        ask(&client, "ALTER SYSTEM SET archipel.colocate = off").await;
        ask(&client, "SELECT pg_reload_conf()").await;
        ask(&client, SHELVES).await;
        ask(&client, order).await;
        // It is proposed before it is done.
        let proposed = "SELECT tables, applied, statements LIKE
                            '%create_distributed_table(''shelves'', ''h_shop'', colocate_with => ''shops'')%'
                        FROM archipel.design_advice WHERE argument = 'shop'";
        let tables = "{shops(s_id),counters(c_shop),shelves(h_shop)}";
        becomes(&client, proposed, &[&[tables, "f", "t"]]).await;
        assert_eq!(beside(&client, "shelves").await, "shelves");
        ask(&client, "CALL order_goods(1, 4, 5)").await;

        ask(&client, "ALTER SYSTEM SET archipel.colocate = on").await;
        ask(&client, "SELECT pg_reload_conf()").await;
        becomes(&client, WAITING, &[&["0"]]).await;
        assert_eq!(beside(&client, "shops").await, "counters shelves shops");
        for _ in 0..20 {
            ask(&client, "CALL order_goods(2, 4, 5)").await;
        }
        let totals = "SELECT count(*), sum(h_count) FROM shelves";
        assert_eq!(ask(&client, totals).await, [["200", (200_000 - 21 * 5).to_string().as_str()]]);
        assert_eq!(ask(&client, "SELECT count(*) FROM shelves WHERE h_goods = 7").await, [["4"]]);
        let told = "SELECT tables, applied FROM archipel.design_advice WHERE argument = 'shop'";
        assert_eq!(ask(&client, told).await, [[tables, "t"]], "and stays so");
    }
}

#[tokio::test]
async fn a_column_asked_for_by_hand_is_kept_and_a_better_one_told() {
    let server = Server::start(&[]);
    let client = connect(&server.url()).await;
    ask(&client, SHELVES).await;
    ask(&client, "SELECT create_distributed_table('shelves', 'h_goods')").await;
    ask(&client, ORDER_IN_A_LOOP).await;
    let told = "SELECT tables, reason FROM archipel.design_advice WHERE NOT applied";
    becomes(
        &client,
        told,
        &[&[
            "{shops(s_id),counters(c_shop),shelves(h_shop)}",
            "reached through the same argument; not done: shelves was distributed by hand",
        ]],
    )
    .await;
    assert_eq!(beside(&client, "shelves").await, "shelves");
    assert_eq!(beside(&client, "shops").await, "counters shops");
}

/// More rows than are rewritten at once, beside who writes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_table_changes_its_column_beside_its_writers() {
    let server = Server::start(&[]);
    let url = server.url();
    let client = connect(&url).await;
    ask(&client, SHELVES).await;
    ask(
        &client,
        "INSERT INTO shelves SELECT g, s, 1000 FROM generate_series(51, 5000) g, generate_series(1, 4) s",
    )
    .await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (url, stop) = (url.clone(), stop.clone());
        async move {
            let client = connect(&url).await;
            let mut written = 0;
            while !stop.load(Ordering::Relaxed) {
                let goods = written % 5000 + 1;
                let update = format!(
                    "UPDATE shelves SET h_count = h_count - 1 WHERE h_goods = {goods} AND h_shop = 3"
                );
                ask(&client, &update).await;
                written += 1;
            }
            written
        }
    });
    ask(&client, ORDER_IN_A_LOOP).await;
    becomes(&client, WAITING, &[&["0"]]).await;
    assert_eq!(beside(&client, "shops").await, "counters shelves shops");
    stop.store(true, Ordering::Relaxed);
    let written: i64 = writer.await.expect("nothing was refused");
    let totals = "SELECT count(*), sum(h_count) FROM shelves";
    assert_eq!(ask(&client, totals).await, [["20000".to_owned(), (20_000_000 - written).to_string()]]);
}

/// An open transaction that has used the tables is not in anybody's way, and nobody in its; a
/// block with definitions of its own commits.
#[tokio::test]
async fn open_transactions_go_on_undisturbed() {
    let server = Server::start(&[]);
    let (client, other) = (connect(&server.url()).await, connect(&server.url()).await);
    ask(&client, PAIR).await;
    ask(&client, "INSERT INTO owners VALUES (1, 0), (2, 0); INSERT INTO makes VALUES (1, 'a')").await;
    ask(&other, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert_eq!(ask(&other, "SELECT o_cars FROM owners WHERE o_id = 1").await, [["0"]]);
    ask(&other, "UPDATE owners SET o_cars = 10 WHERE o_id = 2").await;
    ask(&client, BUY).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    ask(&client, "CALL buy(1, 1, 1)").await;
    assert_eq!(ask(&other, "SELECT o_cars FROM owners WHERE o_id = 1").await, [["0"]], "its own past");
    ask(&other, "CREATE TABLE made_in_between (i integer)").await;
    ask(&other, "COMMIT").await;
    becomes(&client, WAITING, &[&["0"]]).await;
    ask(&client, "CALL buy(2, 1, 1)").await;
    assert_eq!(
        ask(
            &client,
            "SELECT o_id, o_cars, (SELECT count(*) FROM cars WHERE c_owner = o_id) FROM owners ORDER BY 1"
        )
        .await,
        [["1", "1", "1"], ["2", "11", "1"]]
    );
    assert_eq!(beside(&client, "owners").await, "cars owners trips");
}

/// Kills the server while tables are on their way, under load, and finds every acknowledged row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_on_the_way_loses_nothing() {
    let mut server = Server::start(&["archipel.checkpoint_bytes=1MB"]);
    let client = connect(&server.url()).await;
    ask(&client, PAIR).await;
    ask(&client, "INSERT INTO owners SELECT g, 0 FROM generate_series(1, 2000) g").await;
    drop(client);
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    for round in 0..8 {
        let url = server.url();
        let client = connect(&url).await;
        // Apart again, but for the first round.
        for table in ["cars", "owners", "trips", "makes"] {
            ask(&client, &format!("SELECT undistribute_table('{table}')")).await;
        }
        let inserting: Vec<_> = (0..2)
            .map(|writer| {
                let (url, acknowledged) = (url.clone(), acknowledged.clone());
                tokio::spawn(async move {
                    let client = connect(&url).await;
                    for number in 0.. {
                        let (owner, car) = (number % 2000 + 1, round * 1_000_000 + writer * 100_000 + number);
                        let insert = format!("INSERT INTO cars VALUES ({owner}, {car})");
                        if client.simple_query(&insert).await.is_err() {
                            return;
                        }
                        acknowledged.lock().expect("no thread panicked").push((owner, car));
                        let trip = format!("INSERT INTO trips VALUES ({owner}, {car})");
                        if client.simple_query(&trip).await.is_err() {
                            return;
                        }
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(150)).await;
        let begin = Instant::now();
        let enough = 15 * (round as usize + 1);
        while acknowledged.lock().expect("no thread panicked").len() < enough {
            assert!(begin.elapsed() < PATIENCE, "hardly any rows");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        ask(&client, BUY).await;
        tokio::time::sleep(Duration::from_millis(20 + 8 * round as u64)).await;
        server.kill();
        for writer in inserting {
            writer.await.expect("a writer ends");
        }
        server.restart();
        let client = connect(&server.url()).await;
        let found: std::collections::BTreeSet<(i32, i32)> = ask(&client, "SELECT c_owner, c_id FROM cars")
            .await
            .into_iter()
            .map(|row| (row[0].parse().expect("a number"), row[1].parse().expect("a number")))
            .collect();
        let acknowledged = acknowledged.lock().expect("no thread panicked").clone();
        let lost = acknowledged.iter().filter(|row| !found.contains(row)).count();
        assert_eq!(lost, 0, "round {round}: of {} rows", acknowledged.len());
        let trips =
            ask(&client, "SELECT count(*) FROM trips").await[0][0].parse::<usize>().expect("a number");
        assert!(
            trips + 2 * (round as usize + 1) >= acknowledged.len(),
            "{trips} trips, {} cars",
            found.len()
        );
        becomes(&client, WAITING, &[&["0"]]).await;
        assert_eq!(beside(&client, "owners").await, "cars owners trips");
        assert_eq!(ask(&client, "SELECT count(*) FROM owners").await, [["2000"]]);
    }
    assert!(acknowledged.lock().expect("no thread panicked").len() > 100, "hardly any rows");
}

/// Tables come together and go apart again and again while many call what reaches them, by
/// procedure and by statement: nobody gets an error, and nothing is done by halves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_tables_change_groups() {
    let server = Server::start(&["archipel.executors=2"]);
    let url = server.url();
    let client = connect(&url).await;
    ask(&client, PAIR).await;
    ask(&client, "INSERT INTO owners SELECT g, 0 FROM generate_series(1, 100) g").await;
    ask(&client, "INSERT INTO makes VALUES (1, 'a')").await;
    ask(&client, BUY).await;
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let (url, stop) = (url.clone(), stop.clone());
            tokio::spawn(async move {
                let client = connect(&url).await;
                let buy = client.prepare("CALL buy($1, $2, 1)").await.expect("it is there");
                let insert = client.prepare("INSERT INTO cars VALUES ($1, $2)").await.expect("it is there");
                let mut calls: i32 = 0;
                while !stop.load(Ordering::Relaxed) {
                    let (owner, car) = (calls % 100 + 1, caller * 10_000_000 + calls * 2);
                    let done = client.execute(&buy, &[&owner, &car]).await;
                    done.unwrap_or_else(|error| panic!("call {calls}: {error:?}"));
                    let done = client.execute(&insert, &[&owner, &(car + 1)]).await;
                    done.unwrap_or_else(|error| panic!("statement {calls}: {error:?}"));
                    calls += 1;
                }
                i64::from(calls)
            })
        })
        .collect();
    for _ in 0..12 {
        becomes(&client, WAITING, &[&["0"]]).await;
        for table in ["cars", "owners", "makes"] {
            ask(&client, &format!("SELECT undistribute_table('{table}')")).await;
        }
    }
    becomes(&client, WAITING, &[&["0"]]).await;
    stop.store(true, Ordering::Relaxed);
    let mut calls = 0;
    for caller in callers {
        calls += caller.await.expect("no call failed");
    }
    let totals =
        "SELECT (SELECT sum(o_cars) FROM owners), (SELECT count(*) FROM cars), (SELECT count(*) FROM trips)";
    assert_eq!(ask(&client, totals).await, [[calls, 2 * calls, calls].map(|number| number.to_string())]);
}

/// A table with more rows than can be rewritten at once is copied while others write it; killed
/// in the middle, it is what it was, and is copied again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_table_is_copied_beside_its_writers() {
    let mut server = Server::start(&[]);
    let client = connect(&server.url()).await;
    ask(&client, PAIR).await;
    ask(&client, "INSERT INTO owners SELECT g, 0 FROM generate_series(1, 100) g").await;
    ask(&client, "INSERT INTO trips SELECT g % 100 + 1, 1 FROM generate_series(1, 60000) g").await;
    ask(&client, BUY).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.kill();
    server.restart();
    let url = server.url();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let (url, stop) = (url.clone(), stop.clone());
            tokio::spawn(async move {
                let client = connect(&url).await;
                let mut written = 0;
                while !stop.load(Ordering::Relaxed) {
                    let owner = written % 100 + 1;
                    ask(&client, &format!("INSERT INTO trips VALUES ({owner}, 2)")).await;
                    written += 1;
                    if written % 10 == writer {
                        ask(
                            &client,
                            &format!("UPDATE trips SET t_km = 3 WHERE t_owner = {owner} AND t_km = 2"),
                        )
                        .await;
                    }
                }
                written
            })
        })
        .collect();
    let client = connect(&url).await;
    becomes(&client, WAITING, &[&["0"]]).await;
    assert_eq!(beside(&client, "owners").await, "cars owners trips");
    stop.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += writer.await.expect("nothing was refused");
    }
    let totals = "SELECT count(*) FILTER (WHERE t_km = 1), count(*) FILTER (WHERE t_km > 1) FROM trips";
    assert_eq!(ask(&client, totals).await, [["60000".to_owned(), written.to_string()]]);
    ask(&client, "CALL buy(1, 1, 1)").await;
    drop(client);
    server.kill();
    server.restart();
    let client = connect(&server.url()).await;
    assert_eq!(ask(&client, totals).await, [["60000".to_owned(), written.to_string()]]);
}
