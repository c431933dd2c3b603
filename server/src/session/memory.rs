//! What functions keep for a session from one statement to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_planner::native::cursors::CursorAttributes;
use archipel_sql::catalog::shared_map::SharedMap;
use archipel_sql::function::CachedNumbers;
use archipel_sql::types::Type;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::random::Numbers;
use crate::notifications::Channels;
use crate::transaction_ids::OwnTransaction;

/// What functions keep for a session from one statement to the next.
#[derive(Default)]
pub struct Memory {
    /// `currval`, by sequence.
    pub sequence_values: Mutex<FxHashMap<u32, i64>>,
    /// Numbers drawn ahead, by sequence (CACHE).
    pub cached_numbers: Mutex<FxHashMap<u32, CachedNumbers>>,
    /// `lastval`: the sequence used last.
    pub last_sequence: Mutex<Option<u32>>,
    /// The id of the transaction under way, and its snapshot.
    pub transaction: OwnTransaction,
    /// What the session listens to, in the order it began to.
    pub listening: Arc<Mutex<Channels>>,
    /// The statements that it has prepared under names, for `pg_prepared_statements`.
    pub prepared: Mutex<BTreeMap<String, PreparedByName>>,
    /// What literals of routines were read as, by their numbers: as long as PostgreSQL keeps plans.
    pub literals: Mutex<FxHashMap<i64, Arc<str>>>,
    /// What `random()` draws.
    pub random: Numbers,
    /// The cursors that were open when the statement under way began, for `pg_cursors`.
    pub cursors: Mutex<CursorsShown>,
}

/// What `pg_cursors` shows.
#[derive(Default)]
pub struct CursorsShown {
    /// Cursors by name.
    pub open: SharedMap<Arc<str>, Arc<CursorAttributes>>,
    /// Portals that are bound, and have no rows yet.
    pub bound: Vec<(String, CursorAttributes)>,
}

/// What `pg_prepared_statements` shows of a statement.
pub struct PreparedByName {
    /// As the client wrote it: for PREPARE, with that word.
    pub text: Arc<str>,
    /// Microseconds since 2000-01-01 UTC.
    pub at: i64,
    pub types: Arc<[Type]>,
    /// Made by PREPARE, not by a message of the protocol.
    pub from_sql: bool,
}
