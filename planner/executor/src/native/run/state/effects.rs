//! What a run leaves beside rows and notices: numbers of sequences, notifications, cursors, checks
//! that wait. Most calls leave nothing, so a context makes the place for it when it is first needed.

use archipel_sql::types::Oid;

use crate::native::run::constraint::deferral::DeferredCheck;
use crate::native::run::function::notify::Notifications;
use crate::native::run::function::sequence::Drawn;
use super::context::ExecContext;
use super::cursor::Cursors;

/// See the module's head.
#[derive(Default)]
pub struct Effects {
    /// What `nextval` gave in this statement or routine, in order; the session keeps the last
    /// of each for `currval`.
    pub sequences: Vec<Drawn>,
    /// What it has given to attempts at this run that were abandoned: nobody else gets these, so it
    /// gives them again, and a run that begins anew leaves no gap.
    pub numbers_left: Vec<Drawn>,
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
    notifications: usize,
    cursors: u64,
    deferred: usize,
}

impl ExecContext<'_, '_> {
    /// What the run has left so far; `None` for nothing.
    #[inline]
    pub fn effects(&self) -> Option<&Effects> {
        self.effects.as_deref()
    }

    /// The place for what the run leaves, made here if nothing was left before.
    pub fn effects_mut(&mut self) -> &mut Effects {
        self.effects.get_or_insert_default()
    }

    /// What the run has left, for who keeps it.
    #[inline]
    pub fn take_effects(&mut self) -> Option<Box<Effects>> {
        self.effects.take()
    }

    /// A point to go back to.
    #[inline]
    pub fn mark_effects(&self) -> EffectsMark {
        match self.effects() {
            None => EffectsMark::default(),
            Some(effects) => EffectsMark {
                notifications: effects.notifications.mark(),
                cursors: effects.cursors.mark(),
                deferred: effects.deferred.len(),
            },
        }
    }

    /// Forgets what was told, opened and put off since the mark; numbers of sequences stay used.
    pub fn rollback_effects(&mut self, to: EffectsMark) {
        if let Some(effects) = &mut self.effects {
            effects.notifications.rollback_to(to.notifications);
            effects.cursors.rollback_to(to.cursors);
            effects.deferred.truncate(to.deferred);
        }
    }
}
