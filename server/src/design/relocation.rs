//! Putting a table elsewhere: whether it may be done, the plan, the lock, what it does to keys.

use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_engine::{Client, Interactive, Isolation, LockTables, LockWait, ObjectMode, SubmitOptions};
use archipel_planner::ddl::{Copies, DdlEnv, DdlPlan, DistributionCall, EvidentPlace, plan_distribution};
use archipel_sql::catalog::{Catalog, Distribution, Table};
use archipel_sql::error::Result;
use archipel_sql::function::FunctionContext;

use crate::database::Database;
use crate::server::Server;

/// Whether the server may follow the evidence.
pub(crate) fn is_on(server: &Server) -> bool {
    server.live.show("archipel.colocate").as_deref() != Some("off")
}

/// Plans a distribution call, with copies of some tables in the place of those.
pub(super) fn planned(
    database: &Database,
    catalog: &Catalog,
    call: &DistributionCall,
    copies: &[TreeId],
) -> Result<DdlPlan> {
    let context = FunctionContext::detached();
    let environment = DdlEnv {
        catalog,
        search_path: &[],
        context: &context,
        system: false,
        temporary_schema: "pg_temp_0",
        copies: &Copies::of_tables(copies),
        numbers: database.catalog.numbers(),
        roles: Default::default(),
        others: &[],
    };
    plan_distribution(call, &environment)
}

/// Keeps everybody away from tables until the answer is dropped; `None` if somebody uses one of
/// them in a transaction that is open: who does goes on undisturbed.
pub(super) async fn lock_out(
    server: &Server,
    client: &Arc<Client>,
    tables: Vec<TreeId>,
) -> Option<Interactive> {
    let guard = server.engine.begin_for(client, Isolation::ReadCommitted, false);
    let lock = LockTables::new(tables, ObjectMode::AccessExclusive, LockWait::NoWait);
    let options =
        SubmitOptions { transaction: Some(&guard), client: Some(client), ..SubmitOptions::default() };
    let locked = server.engine.submit(lock, options).await.outcome.result;
    locked.is_ok().then_some(guard)
}

/// Whether a table's rows are stored under other keys in another place: in slices, beside its
/// writers, if there are many.
pub(super) fn changes_keys(table: &Table, place: EvidentPlace) -> bool {
    match (table.distribution, place) {
        (Distribution::HiddenId { .. }, _) => true,
        (
            Distribution::Column { column, .. },
            EvidentPlace::Group { column: to, .. } | EvidentPlace::Column(to),
        ) => column != to,
        _ => false,
    }
}
