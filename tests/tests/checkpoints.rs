//! Checkpoints begin by themselves as the log grows, keep it below its limit, and are told in
//! `archipel.checkpoints` and `archipel.log`.

use std::time::{Duration, Instant};

use archipel_tests::server::Server;

#[tokio::test]
async fn a_growing_log_is_cut_by_checkpoints_that_the_views_tell_of() {
    let server = Server::start(&["archipel.checkpoint_bytes=1MB"]);
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, note text)").await.expect("created");
    let begin = Instant::now();
    let mut low = 0;
    let done = loop {
        let insert = format!(
            "INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series({low}, {low} + 299) AS g"
        );
        client.batch_execute(&insert).await.expect("rows go in");
        low += 300;
        let query = "SELECT rows, bytes, log_bytes_cut, duration_ms, began <= now(), progress
                     FROM archipel.checkpoints WHERE reason = 'log' AND state = 'done' AND log_bytes_cut > 0";
        if let Some(row) = client.query(query, &[]).await.expect("answered").pop() {
            break row;
        }
        assert!(begin.elapsed() < Duration::from_secs(300), "no checkpoint after {low} rows");
    };
    assert!(done.get::<_, i64>("rows") > 0);
    assert!(done.get::<_, i64>("bytes") > 0);
    assert!(done.get::<_, bool>(4), "it began in the past");
    assert_eq!(done.get::<_, f64>("progress"), 1.0);

    client.batch_execute("CHECKPOINT").await.expect("taken");
    let last = client
        .query_one(
            "SELECT reason, state, error FROM archipel.checkpoints ORDER BY checkpoint DESC LIMIT 1",
            &[],
        )
        .await
        .expect("there are some");
    assert_eq!((last.get::<_, &str>(0), last.get::<_, &str>(1)), ("request", "done"));
    assert_eq!(last.get::<_, Option<&str>>(2), None);
    let log = client
        .query_one(
            "SELECT log_bytes < checkpoint_at_bytes, checkpoint_at_bytes <= log_bytes_max, restart_estimate_ms
             FROM archipel.log",
            &[],
        )
        .await
        .expect("answered");
    assert!(log.get::<_, bool>(0), "little log is left after a checkpoint");
    assert!(log.get::<_, bool>(1));
    assert!(log.get::<_, i64>(2) < 15_000, "a small database restarts within the target");
}
