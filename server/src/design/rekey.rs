//! A table without a key gets one to be distributed by, or a key begins with another of its columns:
//! its rows are stored otherwise. A large one is copied in slices beside its writers, and the copy
//! takes its place once nobody uses the table in a transaction that is open. Until then nobody knows
//! the copy; a server that goes down meanwhile drops it at its next start, like any table whose
//! transaction did not commit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use archipel_engine::id::TreeId;
use archipel_engine::txn::{BeginCopy, CopySlice};
use archipel_engine::{ColumnSource, DdlOp, Start, Stop, SubmitOptions};
use archipel_planner::ddl::{DdlPlan, DistributionCall, EvidentPlace};
use archipel_sql::catalog::{CatalogChange, TableRef};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;

use super::relocation::{changes_keys, is_on, lock_out, planned};
use crate::database::Database;
use crate::run::definition::DefinitionRun;
use crate::server::Server;

/// Rows of a slice: some hundred microseconds in which the partitions they go to are held.
const SLICE_ROWS: usize = 128;
/// Between two slices the partitions are everybody else's.
const SLICE_REST: Duration = Duration::from_millis(1);
/// How long the copy waits for a moment in which nobody uses the table.
const END_TRIES: u32 = 200;
const END_REST: Duration = Duration::from_millis(50);

/// A copy under way.
struct Copy {
    table: TableRef,
    from: TreeId,
    to: TreeId,
    columns: Vec<ColumnSource>,
    changes: Vec<CatalogChange>,
    /// What is stamped above this is not in the slices, or perhaps not as it is now.
    since: u64,
}

/// How an attempt to end a copy went.
enum End {
    Done,
    /// Somebody uses the table.
    Busy,
    /// The copy is of no use: the table was defined anew, or rows were deleted.
    Outdated,
}

/// Copies a table and puts the copy in its place; `false` if that is to be tried again.
pub async fn copy(server: &Arc<Server>, database: &Database, oid: Oid, place: EvidentPlace) -> Result<bool> {
    let catalog = database.catalog.current().catalog.clone();
    let Some(table) = catalog.table_by_oid(oid) else { return Ok(true) };
    if !changes_keys(&table, place) {
        return Ok(true);
    }
    let call = DistributionCall::Evidence(vec![(oid, place)]);
    let DdlPlan { operations, changes, .. } = planned(database, &catalog, &call, &[TreeId(table.tree)])?;
    let Some(DdlOp::CopyTable { from, def, columns, .. }) = operations.into_iter().next() else {
        return Ok(true);
    };
    let to = def.id;
    let began = server.engine.submit(BeginCopy { from, def, since: 0 }, SubmitOptions::default()).await;
    began.outcome.result.map_err(stopped)?;
    let copy = Copy { table, from, to, columns, changes, since: began.program.since };
    let done = copy.run(server, database).await;
    if !matches!(done, Ok(true)) {
        let operations = vec![DdlOp::DropTable(to)];
        let run = DefinitionRun::of_operations(database.oid, operations, Vec::new());
        let start = Start::apart_if(run.goes_far(&server.engine));
        let options = SubmitOptions { start, ..SubmitOptions::default() };
        let _ = server.engine.submit(run, options).await;
    }
    done
}

fn stopped(stop: Stop) -> SqlError {
    SqlError::internal(format!("the engine stopped a copy: {stop:?}"))
}

impl Copy {
    async fn run(&self, server: &Arc<Server>, database: &Database) -> Result<bool> {
        let mut after = None;
        let group = |tree: TreeId| server.engine.table(tree).map(|table| table.group());
        loop {
            if server.closing.load(Ordering::Acquire) || !is_on(server) || database.has_ended() {
                return Ok(false);
            }
            let slice = CopySlice {
                from: self.from,
                to: self.to,
                groups: group(self.from).zip(group(self.to)),
                columns: self.columns.clone(),
                after,
                rows_max: SLICE_ROWS,
                last: None,
            };
            let copied = server.engine.submit(slice, SubmitOptions::default()).await;
            match copied.outcome.result {
                Ok(()) => {}
                Err(Stop::Recompile) => return Ok(false),
                Err(stop) => return Err(stopped(stop)),
            }
            match copied.program.last {
                Some(last) => after = Some(last),
                None => break,
            }
            tokio::time::sleep(SLICE_REST).await;
        }
        for _ in 0..END_TRIES {
            match self.end(server, database).await? {
                End::Done => return Ok(true),
                End::Busy => tokio::time::sleep(END_REST).await,
                End::Outdated => break,
            }
        }
        Ok(false)
    }

    /// Puts the copy in the table's place.
    async fn end(&self, server: &Arc<Server>, database: &Database) -> Result<End> {
        let _no_blocks = database.open_blocks.latch.lock().await;
        if database.open_blocks.count.load(Ordering::SeqCst) > 0 {
            return Ok(End::Busy);
        }
        let Ok(_one_at_a_time) = database.definitions.try_lock() else { return Ok(End::Busy) };
        if database.has_ended() {
            return Ok(End::Outdated);
        }
        let catalog = database.catalog.current().catalog.clone();
        if catalog.table_by_oid(self.table.oid).is_none_or(|now| now.version != self.table.version) {
            return Ok(End::Outdated);
        }
        // The copy has no past for a snapshot from before.
        if !server.engine.snapshots().is_empty() {
            return Ok(End::Busy);
        }
        let client = server.engine.client(0);
        let Some(_locks) = lock_out(server, &client, vec![self.from]).await else { return Ok(End::Busy) };
        let (from, to) = (self.from, self.to);
        let operations = vec![
            DdlOp::CatchUp { from, to, columns: self.columns.clone(), since: self.since },
            DdlOp::DropTable(from),
        ];
        let changes = self.changes.clone();
        let after = catalog.apply(&changes);
        let run = DefinitionRun::of_operations(database.oid, operations, changes);
        let start = Start::apart_if(run.goes_far(&server.engine));
        let options = SubmitOptions { client: Some(&client), start, ..SubmitOptions::default() };
        let began = Instant::now();
        let done = server.engine.submit(run, options).await;
        if done.outcome.result.is_err() {
            return Ok(End::Outdated);
        }
        database.catalog.publish(after, &done.program.changes);
        tracing::info!(
            "moved by the evidence of deployed routines, copied and then put in place in {:.1} ms: {}",
            began.elapsed().as_secs_f64() * 1e3,
            self.table.name
        );
        Ok(End::Done)
    }
}
