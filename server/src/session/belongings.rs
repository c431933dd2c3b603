//! What a session takes along to another executor ([`super::migration`]).

use std::sync::Arc;

use archipel_planner::native::cursors::Cursors;
use rustc_hash::FxHashMap;

use super::host;
use crate::database::Database;
use crate::notifications::Listener;
use crate::sessions::Registered;
use crate::settings::SessionSettings;
use crate::statement::Prepared;
use crate::wire::frame::Input;
use crate::wire::socket::Transport;

/// A session between two threads.
pub struct MovingSession {
    pub(super) transport: Transport,
    pub(super) input: Input,
    pub(super) belongings: Box<Belongings>,
}

/// What it takes along, but for its connection.
pub(super) struct Belongings {
    pub(super) registered: Registered,
    pub(super) database: Arc<Database>,
    pub(super) settings: SessionSettings,
    pub(super) statements: FxHashMap<String, Arc<Prepared>>,
    pub(super) unnamed_statement: Option<Arc<Prepared>>,
    pub(super) cursors: Cursors,
    pub(super) memory: Arc<host::Memory>,
    pub(super) listener: Option<Listener>,
}

impl MovingSession {
    /// Its connection; the session ends.
    pub fn into_transport(self) -> Transport {
        self.transport
    }

    /// The executor it goes to.
    pub fn destination(&self) -> u16 {
        self.belongings.registered.entry.executor()
    }
}
