//! The programs that end an interactive transaction, or take it back to a savepoint.
//!
//! One of them at a time: whoever comes to its first run takes the transaction's [`End`]. The others are those of a
//! client that has vanished meanwhile, which leave it to whoever has it: should that not come to the end, it rolls the
//! transaction back.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::slices::Slices;
use super::{Interactive, InteractiveSavepoint, InteractiveState};
use crate::engine::{Shared, Start, SubmitOptions, submit_on};
use crate::partition::{ClaimSet, RoutingTable};
use crate::program::{Program, Stop};
use crate::txn::{Place, Txn};

/// Nobody ends the transaction.
pub(super) const NOBODYS: u8 = 0;
/// Somebody does.
const TAKEN: u8 = 1;
/// Somebody does, and its client has gone.
const ABANDONED: u8 = 2;

/// A savepoint is gone back to by so many changes at a time.
const TAKEN_BACK_MAX: usize = 256;

/// Whoever has it ends the transaction, or takes it back to a savepoint, and nobody else.
struct End {
    state: Arc<InteractiveState>,
    shared: Weak<Shared>,
}

impl End {
    /// `None`: somebody has it, and knows now that it is to be rolled back if it does not come to its end.
    fn take(state: &Arc<InteractiveState>, txn: &Txn<'_>) -> Option<End> {
        let change = |from, to| state.end.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        while let Err(found) = change(NOBODYS, TAKEN) {
            if found == ABANDONED || change(TAKEN, ABANDONED).is_ok() {
                return None;
            }
        }
        Some(End { state: state.clone(), shared: Arc::downgrade(txn.shared()) })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let is_abandoned = self.state.end.swap(NOBODYS, Ordering::AcqRel) == ABANDONED;
        if let Some(shared) = self.shared.upgrade().filter(|_| is_abandoned && !self.state.is_ended()) {
            let rollback = Rollback::of(self.state.clone(), &shared);
            let options = rollback.options();
            drop(submit_on(&shared, rollback, options));
        }
    }
}

/// How an interactive transaction ends: of few changes at once, of many [in slices](super::slices).
struct Ending {
    state: Arc<InteractiveState>,
    commits: bool,
    slices: Option<Slices>,
    end: Option<End>,
}

/// Puts all images of an interactive transaction in place, in one commit.
pub struct Commit(Ending);

/// Drops all images and locks of an interactive transaction.
pub struct Rollback(Ending);

/// Takes an interactive transaction back to a savepoint, some changes at a time; it stays open.
pub struct RollbackTo {
    state: Arc<InteractiveState>,
    savepoint: InteractiveSavepoint,
    end: Option<End>,
    began: bool,
}

impl Ending {
    fn alone(state: Arc<InteractiveState>, shared: &Shared, commits: bool) -> Self {
        let slices = Slices::of(&state, shared, commits);
        Self { state, commits, slices, end: None }
    }

    /// How it is run: what takes long in one piece, and the first look at many changes, keeps no executor.
    fn options(&self) -> SubmitOptions<'static> {
        let long = self.slices.is_some() || self.state.ends_apart(0);
        SubmitOptions { start: Start::apart_if(long), ..SubmitOptions::default() }
    }

    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        if let Some(slices) = &self.slices {
            return slices.predict(&self.state, routing, claims);
        }
        self.state.claim_all(0, routing, claims);
        if self.commits && self.state.has_notes() {
            self.state.reads.lock().claim_all(claims);
        }
    }

    fn goes_on(&self) -> bool {
        self.slices.as_ref().is_some_and(Slices::goes_on)
    }

    fn is_final(&self) -> bool {
        self.slices.as_ref().is_some_and(|slices| slices.is_final(&self.state))
    }

    fn ended(&mut self) {
        if let Some(slices) = &mut self.slices {
            slices.ended();
        }
        self.end = None;
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        if self.state.is_ended() {
            return Err(Stop::TransactionEnded);
        }
        if self.end.is_none() {
            self.end = End::take(&self.state, txn);
        }
        if self.end.is_none() {
            self.slices = None;
            // Whoever has it comes to an end: nothing is left to roll back then.
            return if self.commits { Err(Stop::TransactionEnded) } else { Ok(()) };
        }
        if let Some(slices) = &mut self.slices {
            return slices.run(&self.state, txn);
        }
        let finished = txn.finish_interactive(&self.state, self.commits);
        if finished.is_err() {
            // It may have to wait, and its client may go meanwhile.
            self.end = None;
        }
        finished
    }
}

impl Commit {
    /// The commit of a transaction, for a program that commits something else with it, and says when that has
    /// [ended](Program::ended), or has to wait.
    pub fn of(transaction: &Interactive) -> Self {
        Self(Ending { state: transaction.state.clone(), commits: true, slices: None, end: None })
    }

    pub(crate) fn alone(transaction: &Interactive) -> Self {
        Self(Ending::alone(transaction.state.clone(), &transaction.shared, true))
    }

    pub(crate) fn options(&self) -> SubmitOptions<'static> {
        self.0.options()
    }
}

impl Rollback {
    pub(crate) fn of(state: Arc<InteractiveState>, shared: &Shared) -> Self {
        Self(Ending::alone(state, shared, false))
    }

    pub(crate) fn options(&self) -> SubmitOptions<'static> {
        self.0.options()
    }
}

impl RollbackTo {
    pub(crate) fn of(state: Arc<InteractiveState>, savepoint: InteractiveSavepoint) -> Self {
        Self { state, savepoint, end: None, began: false }
    }

    pub(crate) fn options(&self) -> SubmitOptions<'static> {
        let long = self.state.ends_apart(self.savepoint.notes);
        SubmitOptions {
            start: if long { Start::Queued } else { Start::OnTheSpot },
            ..SubmitOptions::default()
        }
    }

    /// The first of the changes that are taken back next.
    fn next(&self) -> usize {
        self.state.notes.lock().len().saturating_sub(TAKEN_BACK_MAX).max(self.savepoint.notes)
    }
}

impl Program for Commit {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        self.0.predict(routing, claims);
    }

    fn goes_on(&self) -> bool {
        self.0.goes_on()
    }

    fn is_final(&self) -> bool {
        self.0.is_final()
    }

    fn ended(&mut self) {
        self.0.ended();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.0.run(txn)
    }
}

impl Program for Rollback {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        self.0.predict(routing, claims);
    }

    fn goes_on(&self) -> bool {
        self.0.goes_on()
    }

    fn is_final(&self) -> bool {
        self.0.is_final()
    }

    fn ended(&mut self) {
        self.0.ended();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.0.run(txn)
    }
}

impl Program for RollbackTo {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        self.state.claim_all(self.next(), routing, claims);
    }

    fn goes_on(&self) -> bool {
        self.state.notes.lock().len() > self.savepoint.notes
    }

    /// Half of it is no savepoint's state.
    fn is_final(&self) -> bool {
        self.began
    }

    fn ended(&mut self) {
        self.end = None;
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        if !self.state.is_active() {
            return Err(Stop::TransactionEnded);
        }
        if self.end.is_none() {
            self.end = End::take(&self.state, txn);
        }
        if self.end.is_none() {
            return Err(Stop::TransactionEnded);
        }
        // Nothing is taken back before every partition is held: the list must not be undone
        // halfway.
        let next = self.next();
        let places: Vec<(Place, Box<[u8]>)> = {
            let notes = self.state.notes.lock();
            notes.iter().skip(next).map(|note| (note.place, note.key.clone())).collect()
        };
        for (place, key) in &places {
            if !txn.is_given_up(place.id) {
                txn.partition_of_note(*place, key)?;
            }
        }
        self.began = true;
        // The next slice has something to claim.
        loop {
            let note = {
                let mut notes = self.state.notes.lock();
                let left = if notes.last().is_some_and(|note| txn.is_given_up(note.place.id)) {
                    self.savepoint.notes
                } else {
                    next
                };
                if notes.len() <= left { None } else { notes.pop() }
            };
            let Some(mut note) = note else { break };
            self.state.weight.subtract(note.weight.into());
            if txn.is_given_up(note.place.id) {
                continue;
            }
            let partition = txn.partition_for(note.place.group, &note.key)?;
            if txn.root(partition, note.place).is_err() {
                note.place = txn.place_now(note.place);
            }
            txn.undo_overlay(partition, self.state.id, note);
        }
        if !self.goes_on() {
            txn.release_objects_since(&self.state, self.savepoint.objects);
        }
        Ok(())
    }
}
