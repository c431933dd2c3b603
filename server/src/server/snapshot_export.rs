//! Snapshots that transactions give to others: `pg_export_snapshot`, SET TRANSACTION SNAPSHOT.
//!
//! A snapshot is kept by the transaction that exported it, and by those that took it over: its name
//! leads to it until the first of them is over.

use std::sync::{Arc, Weak};

use archipel_engine::Snapshot;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The exported snapshots of a server, by name.
#[derive(Default)]
pub struct ExportedSnapshots(Mutex<Names>);

#[derive(Default)]
struct Names {
    count: u32,
    /// With the databases that they were taken in.
    known: FxHashMap<String, (Oid, Weak<Snapshot>)>,
}

impl ExportedSnapshots {
    /// Gives a snapshot a name; it holds as long as what is returned beside it is kept.
    pub fn export(&self, database: Oid, snapshot: Snapshot) -> (String, Arc<Snapshot>) {
        let mut names = self.0.lock();
        names.known.retain(|_, (_, snapshot)| snapshot.strong_count() > 0);
        names.count = names.count.wrapping_add(1);
        // As PostgreSQL's look: a place among the sessions, a transaction there, a number in it.
        let name = format!("{:08X}-{:08X}-1", snapshot.epoch().0 as u32, names.count);
        let snapshot = Arc::new(snapshot);
        names.known.insert(name.clone(), (database, Arc::downgrade(&snapshot)));
        (name, snapshot)
    }

    /// The snapshot of a name for a session of a database, if its transaction is still open.
    pub fn import(&self, database: Oid, name: &str) -> Result<Arc<Snapshot>> {
        let found = self.0.lock().known.get(name).and_then(|(of, snapshot)| Some((*of, snapshot.upgrade()?)));
        match found {
            Some((of, snapshot)) if of == database => Ok(snapshot),
            Some(_) => {
                let message = "cannot import a snapshot from a different database";
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
            None => {
                let message = format!("invalid snapshot identifier: \"{name}\"");
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archipel_engine::log::MemoryStore;
    use archipel_engine::{Engine, EngineConfig};

    #[test]
    fn a_snapshot_is_of_one_database_and_of_an_open_transaction() {
        let config =
            EngineConfig { background: false, pin_threads: false, ..EngineConfig::with_executors(1) };
        let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("an empty store opens");
        let exported = ExportedSnapshots::default();
        let (name, kept) = exported.export(Oid(5), engine.snapshot_for(1));
        let import =
            |database| exported.import(Oid(database), &name).map(drop).map_err(|error| error.state());
        assert_eq!(import(5), Ok(()));
        assert_eq!(import(6), Err(SqlState::FEATURE_NOT_SUPPORTED));
        drop(kept);
        assert_eq!(import(6), Err(SqlState::INVALID_PARAMETER_VALUE));
    }
}
