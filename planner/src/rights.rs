//! Rights, asked for once for each role and version of the catalog and not with every run.

use std::sync::atomic::{AtomicU64, Ordering};

use archipel_sql::catalog::Requirement;
use archipel_sql::error::Result;
use archipel_sql::function::SessionHost;

/// What a part of a compiled routine needs, and who was last found to have it.
#[derive(Debug)]
pub struct Rights {
    needed: Box<[Requirement]>,
    /// The [`SessionHost::authority`] that has it all; 0: nobody asked yet.
    held_by: AtomicU64,
}

impl Rights {
    /// `None` where nothing is needed.
    pub fn of(needed: Vec<Requirement>) -> Option<Rights> {
        (!needed.is_empty()).then(|| Rights { needed: needed.into(), held_by: AtomicU64::new(0) })
    }

    /// 42501 unless the session has them.
    pub fn check(&self, session: &dyn SessionHost) -> Result<()> {
        let authority = session.authority();
        // Of two sessions that store here at once either may win: both were found to have them.
        if authority == 0 || self.held_by.load(Ordering::Relaxed) == authority {
            return Ok(());
        }
        session.require(&self.needed)?;
        self.held_by.store(authority, Ordering::Relaxed);
        Ok(())
    }
}
