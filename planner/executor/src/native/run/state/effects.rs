//! What a run leaves beside rows and notices: numbers of sequences, notifications, cursors, checks
//! that wait. Most calls leave nothing, so a context makes the place for it when it is first needed.

use std::collections::VecDeque;

use archipel_sql::types::Oid;

use super::cursors::Cursors;
use crate::native::run::constraint::deferral::DeferredCheck;
use crate::native::run::function::notify::Notifications;
use crate::native::run::function::sequence::Drawn;

/// See the module's head.
#[derive(Default)]
pub struct Effects {
    /// What `nextval` gave in this statement or routine, in order; the session keeps the last
    /// of each for `currval`.
    pub sequences: Vec<Drawn>,
    /// What it has given to attempts at this run that were abandoned: nobody else gets these, so it
    /// gives them again, and a run that begins anew leaves no gap.
    pub numbers_left: VecDeque<Drawn>,
    /// The sequences that `setval` has set: what they gave before is not given again.
    pub sequences_set: Vec<Oid>,
    /// What sessions that listen are told, once this is committed.
    pub notifications: Notifications,
    /// The session's cursors: routines open, move and close them.
    pub cursors: Cursors,
    /// What COMMIT has to check, or the last run of the statement.
    pub deferred: Vec<DeferredCheck>,
}

/// How far effects have come that a subtransaction takes back.
#[derive(Clone, Copy, Default)]
pub struct EffectsMark {
    pub(crate) notifications: usize,
    pub(crate) cursors: u64,
    pub(crate) deferred: usize,
}
