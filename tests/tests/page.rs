//! The live page, in a real browser.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use archipel_tests::browser::Page;
use archipel_tests::cores::{mine, taskset};
use archipel_tests::server::Server;
use serde_json::json;

fn number(page: &mut Page, expression: &str) -> f64 {
    page.evaluate(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
}

#[test]
fn the_live_page_draws_every_partition_and_the_load() {
    // Partitions are counted: they stay as they are.
    let server = Server::start_with_page(&["archipel.adaptive=off"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let client = runtime.block_on(async {
        let client = server.connect().await;
        client
            .batch_execute("CREATE TABLE visits (page integer PRIMARY KEY, count bigint NOT NULL)")
            .await
            .expect("a table can be created");
        client
            .batch_execute("INSERT INTO visits SELECT n, 0 FROM generate_series(1, 1000) n")
            .await
            .expect("rows");
        client
    });
    let (partitions, executors) = runtime.block_on(async {
        let count = async |query: &str| -> i64 { client.query_one(query, &[]).await.expect(query).get(0) };
        (
            count("SELECT count(*) FROM archipel.partitions").await,
            count("SELECT count(*) FROM archipel.executors").await,
        )
    });
    let load = runtime.spawn(async move {
        let update =
            client.prepare("UPDATE visits SET count = count + 1 WHERE page = $1").await.expect("prepared");
        for page in (1..=1000i32).cycle() {
            client.execute(&update, &[&page]).await.expect("an update runs");
        }
    });

    let mut page = Page::open(&server.page_url(), 1200, 900);
    // Two polls make the first rate; the last one is what the page shows. The load may stand still
    // for a second on a busy machine.
    page.wait_for("history.length >= 3 && history.at(-1) > 10");
    assert_eq!(page.evaluate("document.querySelectorAll('.executor').length"), json!(executors));
    assert_eq!(page.evaluate("document.querySelectorAll('.partitions i').length"), json!(partitions));
    // Busy partitions are bright, idle ones dim.
    let squares = "[...document.querySelectorAll('.partitions i')].map(e => +e.style.opacity)";
    page.wait_for(&format!("Math.max(...{squares}) > 0.99 && Math.min(...{squares}) < 0.5"));
    assert_eq!(
        page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        json!(true),
        "nothing overflows"
    );

    load.abort();
    // The rate follows the load down: what is left is the page's own history.
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(100)).await });
    page.wait_for("history.at(-1) === 0");
    drop(server);
    page.wait_for("document.getElementById('state').textContent === 'server does not answer'");
}

/// A thousand partitions stay readable: every one is drawn, nothing overflows, and the squares of
/// an executor fit a screen; what was done to them is marked, each second's changes once.
#[test]
fn a_thousand_partitions_are_readable_and_their_changes_marked() {
    let server = Server::start_with_page(&[
        "archipel.topology=synthetic:pack:2 core:4 pu:1",
        // What is asked for below is all that happens.
        "archipel.adaptive=off",
    ]);
    // Before the changes: it shows those of the last two minutes.
    let mut page = Page::open(&server.page_url(), 1200, 900);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let client = server.connect().await;
        client
            .batch_execute("CREATE TABLE wide (id integer PRIMARY KEY); INSERT INTO wide SELECT generate_series(1, 1000)")
            .await
            .expect("a table with rows");
        let split = "SELECT archipel.split_partition('wide', n::text) FROM generate_series(2, 1000) n";
        client.batch_execute(split).await.expect("it splits");
    });
    // A few of them have most of the load.
    let load = runtime.spawn({
        let client = runtime.block_on(server.connect());
        async move {
            let read = client.prepare("SELECT id FROM wide WHERE id = $1").await.expect("prepared");
            for turn in 0..i32::MAX {
                let id =
                    if turn % 2 == 0 { 1 + turn % 40 } else { 1 + turn.wrapping_mul(37).rem_euclid(1000) };
                client.query(&read, &[&id]).await.expect("a read runs");
            }
        }
    });
    page.wait_for("document.querySelectorAll('.partitions i').length >= 1000");
    page.wait_for("history.length >= 4 && history.at(-1) > 10");
    page.show("thousand-partitions");
    load.abort();
    assert_eq!(page.evaluate("document.querySelectorAll('.executor').length"), json!(8));
    assert_eq!(
        page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        json!(true),
        "nothing overflows"
    );
    let tallest =
        number(&mut page, "Math.max(...[...document.querySelectorAll('.island')].map(e => e.offsetHeight))");
    assert!(tallest < 450.0, "an island is {tallest} pixels high");
    let smallest = number(
        &mut page,
        "Math.min(...[...document.querySelectorAll('.partitions i')].map(e => e.offsetWidth))",
    );
    assert!(smallest >= 6.0, "a square of {smallest} pixels can be pointed at");
    let marked =
        number(&mut page, "marks.filter(m => m.action === 'split').reduce((n, m) => n + m.count, 0)");
    assert!(marked >= 900.0, "{marked} splits are marked");
    let drawn = number(&mut page, "marks.length");
    assert!(drawn <= 120.0, "{drawn} marks are no line any more");
    assert_eq!(page.evaluate("document.querySelectorAll('#busiest tr').length"), json!(6));
    let told = page.evaluate("document.querySelector('#changes tr').textContent");
    assert!(told.as_str().is_some_and(|told| told.contains("split")), "{told}");
}

/// Half of the keys get all of the load: before, meanwhile and after the monitor did something about
/// it the page shows what each executor has.
#[test]
fn a_skew_is_seen_and_what_is_done_about_it() {
    let server = Server::start_with_page(&["archipel.executors=2", "archipel.adaptive_samples_min=15"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let client = runtime.block_on(server.connect());
    let ask = |query: &str| runtime.block_on(client.batch_execute(query)).expect(query);
    ask("ALTER SYSTEM SET archipel.adaptive = off");
    ask("SELECT pg_reload_conf()");
    ask("CREATE TABLE ledger (id integer PRIMARY KEY, amount integer NOT NULL)");
    ask("INSERT INTO ledger SELECT g, g FROM generate_series(0, 999) g");
    for key in [250, 500, 750] {
        ask(&format!("SELECT archipel.split_partition('ledger', '{key}')"));
    }
    ask("SELECT archipel.move_partition(partition, CASE WHEN coalesce(low, '0')::integer < 500 THEN 0 ELSE 1 END)
         FROM archipel.partitions WHERE tables = 'ledger'");
    let keys = Arc::new(AtomicI32::new(1000));
    let loads: Vec<_> = (0..3)
        .map(|number| {
            let (client, keys) = (runtime.block_on(server.connect()), keys.clone());
            runtime.spawn(async move {
                let read = client.prepare("SELECT amount FROM ledger WHERE id = $1").await.expect("prepared");
                for turn in 0..i32::MAX {
                    let id = turn.wrapping_mul(37 + number).rem_euclid(keys.load(Ordering::Relaxed));
                    client.query_one(&read, &[&id]).await.expect("a read runs");
                }
            })
        })
        .collect();

    let mut page = Page::open(&server.page_url(), 1200, 900);
    // What each executor has in a second, as it is written there.
    let rates = "[...document.querySelectorAll('.executor h4 span')].map(e => { \
                 const [n, unit] = e.textContent.replaceAll(',', '').split(' '); \
                 return parseFloat(n) * (unit === 'k' ? 1e3 : unit === 'M' ? 1e6 : 1); })";
    let of_each = |least: f64, most: f64| {
        format!(
            "(rates => rates.length === 2 && Math.max(...rates) > 100 && \
             Math.min(...rates) >= {least} * Math.max(...rates) && \
             Math.min(...rates) <= {most} * Math.max(...rates))({rates})"
        )
    };
    page.wait_for(&format!("history.length >= 4 && {}", of_each(0.5, 1.0)));
    page.show("skew-before");
    keys.store(500, Ordering::Relaxed);
    page.wait_for(&of_each(0.0, 0.1));
    page.show("skew-meanwhile");
    let acted = "marks.some(mark => mark.reason !== 'asked for')";
    assert_eq!(page.evaluate(acted), json!(false), "it only tells");
    ask("ALTER SYSTEM RESET archipel.adaptive");
    ask("SELECT pg_reload_conf()");
    page.wait_for(&format!("{acted} && {}", of_each(0.3, 1.0)));
    page.show("skew-after");
    loads.iter().for_each(tokio::task::JoinHandle::abort);
}

#[test]
fn a_lost_core_shows_as_a_retired_executor() {
    let cores = mine();
    if cores.len() < 2 {
        archipel_tests::skipped("with one core there is none to take away");
        return;
    }
    let server = Server::start_with_page(&[]);
    let mut page = Page::open(&server.page_url(), 1200, 900);
    page.wait_for("document.querySelectorAll('.executor').length >= 2");
    assert_eq!(page.evaluate("document.querySelectorAll('.executor.retired').length"), json!(0));
    taskset(server.process_id(), &cores.iter().take(1).copied().collect());
    page.wait_for("document.querySelectorAll('.executor:not(.retired)').length === 1");
    page.show("lost-core");
    taskset(server.process_id(), &cores);
    page.wait_for("document.querySelectorAll('.executor.retired').length === 0");
}
