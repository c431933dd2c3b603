//! Snapshots that transactions give to others: `pg_export_snapshot`, SET TRANSACTION SNAPSHOT.
//!
//! A snapshot is kept by the transaction that exported it, and by those that took it over: its name
//! leads to it until the first of them is over.

use std::sync::{Arc, Weak};

use archipel_engine::Snapshot;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The exported snapshots of a server, by name.
#[derive(Default)]
pub struct ExportedSnapshots(Mutex<Names>);

#[derive(Default)]
struct Names {
    count: u32,
    known: FxHashMap<String, Weak<Snapshot>>,
}

impl ExportedSnapshots {
    /// Gives a snapshot a name; it holds as long as what is returned beside it is kept.
    pub fn export(&self, snapshot: Snapshot) -> (String, Arc<Snapshot>) {
        let mut names = self.0.lock();
        names.known.retain(|_, snapshot| snapshot.strong_count() > 0);
        names.count = names.count.wrapping_add(1);
        // As PostgreSQL's look: a place among the sessions, a transaction there, a number in it.
        let name = format!("{:08X}-{:08X}-1", snapshot.epoch().0 as u32, names.count);
        let snapshot = Arc::new(snapshot);
        names.known.insert(name.clone(), Arc::downgrade(&snapshot));
        (name, snapshot)
    }

    /// The snapshot of a name, if its transaction is still open.
    pub fn find(&self, name: &str) -> Option<Arc<Snapshot>> {
        self.0.lock().known.get(name)?.upgrade()
    }
}
