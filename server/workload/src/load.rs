//! Loading (schema, distribution, routines, COPY streams) and checking.

use std::path::Path;

use bytes::Bytes;
use futures::SinkExt;
use indicatif::{ProgressBar, ProgressStyle};
use tokio_postgres::{Client, NoTls};

use crate::args::{CheckArgs, LoadArgs};
use crate::error::{Result, WorkloadError};
use crate::workload::CopyJob;

/// Bytes handed to the connection at a time.
const CHUNK_BYTES: usize = 256 << 10;

async fn connect(url: &str) -> Result<Client> {
    let failed = |source: tokio_postgres::Error| WorkloadError::Connect {
        url: url.to_owned(),
        source: Box::new(source),
    };
    let config = super::client::configuration(url).map_err(failed)?;
    let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
    // It ends with the client; errors surface in the client's own calls.
    tokio::spawn(connection);
    Ok(client)
}

/// `archipel workload load`.
pub fn load(args: &LoadArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let workload = args.target.name.workload(args.target.scale);
        let client = connect(&args.target.url).await?;
        if args.replace {
            let mut drop = format!("DROP TABLE IF EXISTS {}", workload.tables().join(", "));
            if !workload.views().is_empty() {
                drop = format!("DROP VIEW IF EXISTS {}; {drop}", workload.views().join(", "));
            }
            client.batch_execute(&drop).await.map_err(WorkloadError::sql("dropping the old tables"))?;
        }
        let execute = |what: &'static str, sql: &'static str| {
            let client = &client;
            async move { client.batch_execute(sql).await.map_err(WorkloadError::sql(what)) }
        };
        execute("creating the schema", workload.schema()).await?;
        let version: String = client
            .query_one("SELECT version()", &[])
            .await
            .and_then(|row| row.try_get(0))
            .map_err(WorkloadError::sql("asking for the version"))?;
        if version.contains("Archipel") && !args.no_distribution {
            execute("distributing the tables", workload.distribution()).await?;
        }
        execute("creating the routines", workload.procedures()).await?;

        let groups = workload.copy_jobs();
        let rows = groups.iter().flatten().map(|job| job.rows).sum();
        let progress = ProgressBar::new(rows).with_style(
            ProgressStyle::with_template("loading {wide_bar} {human_pos}/{human_len} rows  {per_sec}  {eta}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let start = std::time::Instant::now();
        for group in groups {
            copy_group(args, group, &progress).await?;
        }
        progress.finish();
        for table in workload.tables() {
            client
                .batch_execute(&format!("ANALYZE {table}"))
                .await
                .map_err(WorkloadError::sql(format!("analyzing {table}")))?;
        }
        println!("loaded {rows} rows in {:.1} s", start.elapsed().as_secs_f64());
        Ok(())
    })
}

/// Runs the group's jobs over the connections, each taking the next job when it is free.
async fn copy_group(args: &LoadArgs, jobs: Vec<CopyJob>, progress: &ProgressBar) -> Result<()> {
    let queue = std::cell::RefCell::new(jobs.into_iter());
    let workers = (0..args.connections).map(|_| async {
        let client = connect(&args.target.url).await?;
        loop {
            let Some(job) = queue.borrow_mut().next() else { return Ok::<(), WorkloadError>(()) };
            copy(&client, job, progress).await?;
        }
    });
    futures::future::try_join_all(workers).await?;
    Ok(())
}

async fn copy(client: &Client, mut job: CopyJob, progress: &ProgressBar) -> Result<()> {
    let sink = client.copy_in(job.sql).await.map_err(WorkloadError::sql(job.sql))?;
    futures::pin_mut!(sink);
    let mut buffer = Vec::with_capacity(CHUNK_BYTES + 4096);
    let mut told = 0;
    for row in 0..job.rows {
        (job.write)(row, &mut buffer);
        if buffer.len() >= CHUNK_BYTES || row + 1 == job.rows {
            let chunk = Bytes::from(std::mem::replace(&mut buffer, Vec::with_capacity(CHUNK_BYTES + 4096)));
            sink.send(chunk).await.map_err(WorkloadError::sql(job.sql))?;
            progress.inc(row + 1 - told);
            told = row + 1;
        }
    }
    sink.finish().await.map_err(WorkloadError::sql(job.sql))?;
    Ok(())
}

/// `archipel workload check`.
pub fn check(args: &CheckArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let workload = args.target.name.workload(args.target.scale);
        let client = connect(&args.target.url).await?;
        let mut failed = 0;
        for condition in workload.conditions() {
            let violations: i64 = client
                .query_one(condition.sql, &[])
                .await
                .and_then(|row| row.try_get(0))
                .map_err(WorkloadError::sql(condition.name))?;
            let verdict = if violations == 0 { "holds" } else { "FAILS" };
            println!("{verdict}  {}  ({violations} violations)", condition.name);
            failed += usize::from(violations != 0);
        }
        if let (Some(path), Some(query)) = (&args.acknowledged, workload.acknowledged_query()) {
            failed += usize::from(!acknowledged(&client, path, query).await?);
        }
        if failed == 0 { Ok(()) } else { Err(WorkloadError::Inconsistent(failed)) }
    })
}

/// Looks up every acknowledged order; true if none is missing.
async fn acknowledged(client: &Client, path: &Path, query: &str) -> Result<bool> {
    let statement = client.prepare(query).await.map_err(WorkloadError::sql("preparing the look-up"))?;
    let text = std::fs::read_to_string(path)?;
    let (mut checked, mut missing) = (0u64, 0u64);
    // A driver killed while writing leaves a torn last line: it has no newline.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let numbers: Vec<i32> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [warehouse, district, order] = numbers[..] else {
            return Err(WorkloadError::Usage(format!("{}: not an order: {line}", path.display())));
        };
        let found: i64 = client
            .query_one(&statement, &[&warehouse, &district, &order])
            .await
            .and_then(|row| row.try_get(0))
            .map_err(WorkloadError::sql("looking up an acknowledged order"))?;
        checked += 1;
        missing += u64::from(found != 1);
    }
    let verdict = if missing == 0 { "holds" } else { "FAILS" };
    println!("{verdict}  every acknowledged order is there  ({checked} looked up, {missing} missing)");
    Ok(missing == 0)
}
