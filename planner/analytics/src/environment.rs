//! What runs queries, and what one execution needs to know of its surroundings.

use std::sync::{Arc, Mutex};

use archipel_engine::{Engine, Snapshot, TableMeta};
use archipel_sql::datum::Datum;
use archipel_sql::function::SessionHost;
use datafusion::execution::SessionState;

/// Tables that a query has read.
pub type TablesRead = Arc<Mutex<Vec<Arc<TableMeta>>>>;

/// What one execution needs to know of its surroundings.
#[derive(Clone)]
pub struct Environment {
    pub engine: Engine,
    pub snapshot: Arc<Snapshot>,
    pub session: Arc<dyn SessionHost + Send + Sync>,
    /// Transaction start, microseconds since 2000-01-01 UTC.
    pub now: i64,
    pub params: Vec<Datum>,
    /// Set if the snapshot is to serve the query again: the tables that it has read of it, subqueries
    /// included.
    pub tables_read: Option<TablesRead>,
}

/// The analytical executor. One for the process; cheap to clone.
#[derive(Clone)]
pub struct Analytics {
    pub(super) state: SessionState,
}
