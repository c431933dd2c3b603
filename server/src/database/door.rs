//! The door of a database: who comes in passes it, and who needs the database for himself shuts it.
//!
//! ```text
//!   connect    named ─► door held open ─► still of that name? ─► counted among its sessions ─► let go
//!   DROP       door shut ─► others told to go ─► nobody left ─► latch ─► commit ─► taken out ─► let go
//! ```
//!
//! The sessions of the register are not enough: one that has found the database and is not registered yet
//! would come in after whoever has looked. Whoever waits at the door looks again whether the database is
//! there; behind the door nobody waits for a session to come in.
//!
//! Order: the door first, then the latches of definitions; a session that ends needs its database's latch, so
//! nobody waits for sessions to end while he holds it.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// See the module's head.
#[derive(Default)]
pub struct Door(Arc<RwLock<()>>);

/// Keeps a door from being shut.
pub struct Entering {
    _held: OwnedRwLockReadGuard<()>,
}

/// Keeps a door shut.
pub struct Shut {
    held: OwnedRwLockWriteGuard<()>,
}

impl Shut {
    /// Whether it is this door that is shut.
    pub fn is_of(&self, door: &Door) -> bool {
        Arc::ptr_eq(OwnedRwLockWriteGuard::rwlock(&self.held), &door.0)
    }
}

impl Door {
    /// Waits until it is open.
    pub async fn enter(&self) -> Entering {
        Entering { _held: self.0.clone().read_owned().await }
    }

    /// Waits until nobody is on the threshold, and nobody else has shut it.
    pub async fn shut(&self) -> Shut {
        Shut { held: self.0.clone().write_owned().await }
    }
}
