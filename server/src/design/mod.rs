//! Distribution by evidence: what deployed routines show of where tables belong, put into effect
//! while everybody works.
//!
//! After each change of the catalog, once a moment has passed without another, the routines are
//! read anew ([`archipel_procedures::advice`]), and tables that they use together go into one
//! group: one definition, committed and logged like any other, that moves trees and no rows. It
//! waits for nobody and makes nobody wait: while somebody uses one of the tables in a transaction
//! that is open, or has definitions in one, it is tried again later. `archipel.design_advice`
//! shows what was found and done, `archipel.repartitions` when; `archipel.colocate` turns it off.
//!
//! - `copied`   tables too large to be rewritten at once
//! - `known`    what was read off routines, kept while it holds
//! - [`counts`] calls of routines, as they went
//! - [`view`]   `archipel.design_advice`
//! - `recent_uses` what indexes were used for of late; `index_placement` where they should be instead
//! - `designer` what was read so far, and what is to be done about it; `relocation` how a table is moved
//! - `open_blocks` transaction blocks that define, which the server keeps out of the way of

mod cache;
pub mod counts;
mod designer;
pub(crate) mod index_placement;
mod open_blocks;
pub(crate) mod recent_uses;
mod rekey;
mod relocation;
pub mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use archipel_engine::id::GroupId;
use archipel_engine::{DdlOp, Start, SubmitOptions};
use archipel_planner::ddl::{DistributionCall, EvidentPlace};
use archipel_procedures::Environment;
use archipel_procedures::advice::{self, Design, Sizes};
use archipel_procedures::evidence::Evidence;
use archipel_sql::catalog::{Catalog, Distribution, SUPERUSER, Table};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;
use relocation::{changes_keys, is_on, lock_out, planned};

use self::cache::Known;
use crate::database::Database;
use crate::run::definition::DefinitionRun;
use crate::server::Server;
use crate::settings::session::default_search_path;
pub use designer::Designer;
pub use open_blocks::{OpenBlock, OpenBlocks};

/// A deployment is over when nothing was defined for so long.
const QUIET: Duration = Duration::from_millis(25);
/// But it is looked at after this long in any case.
const QUIET_MAX: Duration = Duration::from_millis(500);
/// A table whose rows change their keys has them rewritten while everybody waits; one with more
/// rows than this is copied beside its writers.
const REWRITTEN_ROWS_MAX: u64 = 1 << 12;
/// How long a definition waits for what follows from it.
const SETTLE_MAX: Duration = Duration::from_millis(100);
/// What is moved may bring more with it, but not for ever.
const LOOKS_MAX: usize = 3;
/// When to try again after somebody was in the way; doubled each time.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Groups as their partitions counted them last: this is also asked inside a statement, which can
/// claim nothing for it.
struct Counted {
    /// Rows and index entries, and partitions.
    groups: BTreeMap<GroupId, (u64, usize)>,
    /// How many trees they are of.
    trees: BTreeMap<GroupId, u64>,
    /// Calls of routines.
    calls: BTreeMap<Oid, u64>,
}

impl Counted {
    fn of(server: &Server, database: &Database) -> Counted {
        let mut groups: BTreeMap<GroupId, (u64, usize)> = BTreeMap::new();
        for partition in server.engine.partitions() {
            let (rows, partitions) = groups.entry(partition.group).or_default();
            *rows += partition.rows;
            *partitions += 1;
        }
        let mut trees = BTreeMap::new();
        for table in server.engine.tables() {
            let indexes = table.indexes.iter().map(|index| index.group());
            for group in indexes.chain([table.group()]) {
                *trees.entry(group).or_default() += 1;
            }
        }
        Counted { groups, trees, calls: database.calls.calls() }
    }
}

impl Sizes for Counted {
    fn rows(&self, table: &Table) -> u64 {
        let (Distribution::Column { group, .. } | Distribution::HiddenId { group }) = table.distribution
        else {
            return 0;
        };
        let rows = self.groups.get(&GroupId(group)).map_or(0, |(rows, _)| *rows);
        rows / self.trees.get(&GroupId(group)).copied().unwrap_or(1).max(1)
    }

    fn partitions(&self, group: u32) -> usize {
        self.groups.get(&GroupId(group)).map_or(0, |(_, partitions)| *partitions)
    }

    fn calls(&self, routine: Oid) -> u64 {
        self.calls.get(&routine).copied().unwrap_or(0)
    }
}

/// What the routines of a catalog show, and what follows. Routines that do not compile show
/// nothing.
pub(crate) fn design_of(
    server: &Server,
    database: &Database,
    environment: &Environment,
) -> (Vec<Evidence>, Design) {
    let mut known = Known::default();
    known.read(&database.routines, environment);
    let evidence = known.evidence();
    let design = advice::design(&environment.catalog, &evidence, &Counted::of(server, database));
    (evidence, design)
}

/// Looks at the catalog as it is now, if it is not what was looked at last; whether to look
/// again, because somebody was in the way, or there may be more to do.
async fn look(server: &Arc<Server>, database: &Database) -> bool {
    let mut known = database.designer.known.lock().await;
    if !is_on(server) {
        // It may be turned on again.
        known.open = true;
        return false;
    }
    let catalog = database.catalog.current().catalog.clone();
    if known.is_current(&catalog) && !known.open {
        return false;
    }
    let again = step(server, database, &catalog, &mut known).await;
    known.open = again;
    again
}

/// After a deployment: waits until tables are where its routines want them, or until that takes
/// longer than anybody should wait for it.
pub async fn settle(server: &Arc<Server>, database: &Arc<Database>) {
    if database.catalog.current().catalog.routines_all().next().is_none() {
        return;
    }
    let (own, its) = (server.clone(), database.clone());
    // Reading routines compiles them: not on an executor's thread.
    let looked = server.analytical_threads.spawn(async move {
        let mut looks = 0;
        while looks < LOOKS_MAX && look(&own, &its).await {
            looks += 1;
        }
    });
    // Where somebody is in the way, `follow` has more patience than a client.
    let _ = tokio::time::timeout(SETTLE_MAX, looked).await;
}

/// Follows the evidence in a database until it is dropped, or the server ends.
pub async fn follow(server: Arc<Server>, database: Arc<Database>) {
    let mut retry = RETRY_MIN;
    while !database.has_ended() {
        if look(&server, &database).await {
            // A change of the catalog does not end the wait: whoever is in the way still is.
            tokio::time::sleep(retry).await;
            retry = (retry * 2).min(RETRY_MAX);
            continue;
        }
        let copies = std::mem::take(&mut *database.designer.copies.lock());
        if !copies.is_empty() {
            let mut done = true;
            for (table, place) in copies {
                let copied = rekey::copy(&server, &database, table, place).await.unwrap_or_else(|error| {
                    tracing::warn!("a table could not be co-located: {}", error.message());
                    false
                });
                if !copied {
                    database.designer.note_failure(table, &database.catalog.current().catalog);
                }
                done &= copied;
            }
            if !done {
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(RETRY_MAX);
                database.designer.known.lock().await.open = true;
            }
        } else {
            retry = RETRY_MIN;
            changed(&server, &database).await;
            let _ = tokio::time::timeout(QUIET_MAX, quiet(&database)).await;
        }
    }
}

/// Waits for another catalog, and halves meanwhile what is counted of indexes when it is time.
async fn changed(server: &Server, database: &Database) {
    loop {
        index_placement::recent_uses(server, database);
        let rest = database.recent_uses.rest(crate::clock::now());
        let changed = tokio::time::timeout(rest, database.catalog.changed()).await;
        if changed.is_ok() || database.has_ended() {
            return;
        }
    }
}

/// Waits until nothing has been defined for a moment.
async fn quiet(database: &Database) {
    while tokio::time::timeout(QUIET, database.catalog.changed()).await.is_ok() {}
}

async fn step(server: &Arc<Server>, database: &Database, catalog: &Catalog, known: &mut Known) -> bool {
    let environment = Environment::new(
        catalog.clone(),
        Arc::new(server.engine.clone()),
        default_search_path(&server.live.values()),
        SUPERUSER,
    );
    known.read(&database.routines, &environment);
    if !known.open {
        return false;
    }
    let evidence = known.evidence();
    let sizes = Counted::of(server, database);
    let design = advice::design(catalog, &evidence, &sizes);
    let is_large = |oid: Oid, place: EvidentPlace| {
        let table = catalog.table_by_oid(oid);
        table.is_some_and(|table| changes_keys(&table, place) && sizes.rows(&table) > REWRITTEN_ROWS_MAX)
    };
    let (copies, moves): (Vec<_>, Vec<_>) =
        design.moves.into_iter().partition(|(oid, place)| is_large(*oid, *place));
    if moves.is_empty() {
        let wanted = copies.into_iter().filter(|(oid, _)| !database.designer.gave_up(*oid));
        *database.designer.copies.lock() = wanted.collect();
        return false;
    }
    match apply(server, database, catalog, moves).await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!("tables could not be co-located: {}", error.message());
            false
        }
    }
}

/// Puts tables where the evidence says, in one commit; `false` if somebody is in the way.
async fn apply(
    server: &Server,
    database: &Database,
    seen: &Catalog,
    moves: Vec<(Oid, EvidentPlace)>,
) -> Result<bool> {
    let _no_blocks = database.open_blocks.latch.lock().await;
    if database.open_blocks.count.load(Ordering::SeqCst) > 0 {
        return Ok(false);
    }
    let Ok(_one_at_a_time) = database.definitions.try_lock() else { return Ok(false) };
    if database.has_ended() {
        return Ok(false);
    }
    let catalog = database.catalog.current().catalog.clone();
    if !catalog.same_as(seen) || (rewrites(&catalog, &moves) && !server.engine.snapshots().is_empty()) {
        return Ok(false);
    }
    let told: Vec<String> =
        moves.iter().filter_map(|(oid, _)| Some(catalog.table_by_oid(*oid)?.name.clone())).collect();
    let plan = planned(database, &catalog, &DistributionCall::Evidence(moves), &[])?;
    let tables = plan.operations.iter().filter_map(|operation| match operation {
        DdlOp::AlterTable { def, .. } => Some(def.id),
        _ => None,
    });
    let client = server.engine.client(0);
    let Some(_locks) = lock_out(server, &client, tables.collect()).await else { return Ok(false) };
    let after = catalog.apply(&plan.changes);
    let run = DefinitionRun::of_operations(database.oid, plan.operations, plan.changes);
    let start = Start::apart_if(run.goes_far(&server.engine));
    let options = SubmitOptions { client: Some(&client), start, ..SubmitOptions::default() };
    let began = std::time::Instant::now();
    let done = server.engine.submit(run, options).await;
    if let Err(stop) = done.outcome.result {
        let error = done.program.error;
        return Err(error.unwrap_or_else(|| SqlError::internal(format!("the engine stopped it: {stop:?}"))));
    }
    database.catalog.publish(after, &done.program.changes);
    tracing::info!(
        "moved by the evidence of deployed routines, in {:.1} ms: {}",
        began.elapsed().as_secs_f64() * 1e3,
        told.join(", ")
    );
    Ok(true)
}

/// Whether some table's rows are made anew: snapshots from before would miss them.
fn rewrites(catalog: &Catalog, moves: &[(Oid, EvidentPlace)]) -> bool {
    moves.iter().any(|(oid, place)| {
        let keyed = |table: &Table| matches!(table.distribution, Distribution::Column { .. });
        let group = matches!(place, EvidentPlace::Group { .. });
        let table = catalog.table_by_oid(*oid);
        table.is_some_and(|table| changes_keys(&table, *place) || !(keyed(&table) && group))
    })
}
