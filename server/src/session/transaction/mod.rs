//! Transactions as the client sees them.
//!
//! Outside a block every statement is a one-shot of its own. Inside BEGIN … COMMIT, and inside
//! the implicit transaction of a text with several statements or of a pipeline without Sync
//! between, statements run under an interactive transaction of the engine, begun with the first
//! statement that needs it. A failed statement has undone itself; the block then only takes
//! ROLLBACK, COMMIT (which rolls back) or ROLLBACK TO a savepoint.
//!
//! - [`modes`]        isolation, READ ONLY
//! - [`constraints`], [`deferred`] deferred constraints
//! - [`notification`] LISTEN, NOTIFY
//! - [`state`]        where a session is between BEGIN and COMMIT; [`pending`] what it says at COMMIT

mod constraints;
mod deferred;
mod modes;
mod notification;
mod pending;
mod state;

use archipel_engine::id::Epoch;
use archipel_engine::txn::Interactive;
use archipel_sql::ast::{TransactionModes, TransactionStatement};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::Session;
use super::definition::staged::Staged;
use crate::statement::Prepared;
use crate::wire::output::Severity;
use pending::Pending;
pub use state::Transaction;
use state::{Kind, Savepoint};

/// GIDSIZE: the bytes of a prepared transaction's identifier, and one more.
const GLOBAL_IDENTIFIER_BYTES: usize = 200;

fn no_transaction() -> SqlError {
    SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress")
}

fn chain_outside(what: &str) -> SqlError {
    SqlError::new(
        SqlState::NO_ACTIVE_SQL_TRANSACTION,
        format!("{what} AND CHAIN can only be used in transaction blocks"),
    )
}

impl Session {
    /// Refuses everything but the ways out of a failed transaction block.
    pub(crate) fn allowed_now(&self, prepared: &Prepared) -> Result<()> {
        if self.transaction.failed && !prepared.leaves_failed_transaction() {
            return Err(SqlError::new(
                SqlState::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        Ok(())
    }

    /// A transaction of the engine, as the session's settings say.
    pub(super) fn begin_interactive(&self) -> Interactive {
        // What is set inside a savepoint may be taken back.
        let read_only = self.is_read_only() && self.transaction.savepoints.is_empty();
        let begun = self.server.engine.begin_for(&self.entry().engine, self.isolation(), read_only);
        if let Some(staged) = &self.transaction.staged {
            begun.own(staged.own_trees().iter().copied());
        }
        begun
    }

    /// Begins the engine's transaction anew, with other modes: nothing was done in it.
    pub(super) async fn begin_again(&mut self) {
        if let Some(open) = self.transaction.interactive.take() {
            self.server.engine.rollback(&open).await;
            self.transaction.interactive = Some(self.begin_interactive());
        }
    }

    /// Notes that a statement has seen the database.
    pub(super) fn note_query(&mut self) {
        self.transaction.queried = true;
    }

    /// Whether a definition, or a setting of the transaction, is part of one: a block, or the implicit
    /// one of a script or pipeline, which it may begin.
    pub(super) fn joins_transaction(&mut self, alone: bool) -> bool {
        if !alone {
            self.transaction.begin_implicit(self.message_start);
        }
        self.transaction.is_open()
    }

    /// The engine's transaction for a statement that is not alone; begins one if need be.
    pub(super) fn enter_transaction(&mut self, alone: bool) {
        if self.transaction.kind == Kind::None {
            if alone {
                return;
            }
            self.transaction.begin_implicit(self.message_start);
        }
        if self.transaction.interactive.is_none() {
            self.transaction.interactive = Some(self.begin_interactive());
        }
    }

    pub(super) async fn transaction_statement(
        &mut self,
        statement: &TransactionStatement,
    ) -> Result<&'static str> {
        match statement {
            TransactionStatement::Begin { modes, start } => {
                self.begin(modes)?;
                Ok(if *start { "START TRANSACTION" } else { "BEGIN" })
            }
            TransactionStatement::Commit { chain } => self.commit_block(*chain).await,
            TransactionStatement::Rollback { chain } => {
                if !self.transaction.is_block() && !*chain {
                    self.notice(Severity::Warning, &no_transaction());
                }
                let again = (*chain && self.transaction.is_block()).then(|| self.current_modes());
                if *chain && again.is_none() {
                    return Err(chain_outside("ROLLBACK"));
                }
                self.rollback_transaction().await;
                if let Some(modes) = again {
                    self.begin(&modes)?;
                }
                Ok("ROLLBACK")
            }
            TransactionStatement::Savepoint(name) => {
                self.block_only("SAVEPOINT")?;
                self.set_savepoint(name);
                Ok("SAVEPOINT")
            }
            TransactionStatement::Release(name) => {
                self.block_only("RELEASE SAVEPOINT")?;
                let index = self.savepoint(name)?;
                let read_only = self.transaction.savepoints[index].read_only;
                self.transaction.release(index);
                // What a subtransaction says of itself ends with it.
                if self.is_read_only() && !read_only {
                    self.change_settings(|all| all.set("transaction_read_only", Some("off"), true))?;
                }
                Ok("RELEASE")
            }
            TransactionStatement::RollbackTo(name) => {
                self.block_only("ROLLBACK TO SAVEPOINT")?;
                let index = self.savepoint(name)?;
                self.rollback_to(index).await?;
                Ok("ROLLBACK")
            }
            TransactionStatement::Prepare(identifier) => self.prepare_transaction(identifier).await,
            TransactionStatement::FinishPrepared { identifier, .. } => Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("prepared transaction with identifier \"{identifier}\" does not exist"),
            )),
        }
    }

    /// Makes the innermost savepoint; a routine's has an empty name, which nobody can say.
    pub(super) fn set_savepoint(&mut self, name: &str) {
        let engine = self.transaction.interactive.as_ref().map(Interactive::savepoint);
        let settings = self.settings.mark();
        let staged = self.transaction.staged.as_ref().map_or(0, Staged::len);
        self.transaction.savepoints.push(Savepoint {
            name: name.to_owned(),
            engine,
            settings,
            staged,
            cursors: self.cursors.mark(),
            constraints: self.transaction.constraints.clone(),
            deferred: self.transaction.deferred.mark(),
            pending: self.transaction.pending().map(Pending::mark).unwrap_or_default(),
            read_only: self.is_read_only(),
            frozen: false,
        });
    }

    fn block_only(&self, what: &str) -> Result<()> {
        if self.transaction.is_block() {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            format!("{what} can only be used in transaction blocks"),
        ))
    }

    fn savepoint(&self, name: &str) -> Result<usize> {
        self.transaction.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_SAVEPOINT_SPECIFICATION,
                format!("savepoint \"{name}\" does not exist"),
            )
        })
    }

    pub(super) async fn rollback_to(&mut self, index: usize) -> Result<()> {
        self.transaction.savepoints.truncate(index + 1);
        // The savepoint itself stays, and what was done inside of it is undone.
        self.transaction.emptied.retain(|(inside, _)| *inside <= index);
        let savepoint = &self.transaction.savepoints[index];
        let (engine, settings, count) = (savepoint.engine, savepoint.settings, savepoint.staged);
        let cursors = savepoint.cursors;
        let (constraints, deferred) = (savepoint.constraints.clone(), savepoint.deferred);
        let pending = savepoint.pending;
        if savepoint.frozen {
            return Err(SqlError::unsupported(
                "going back to a savepoint before tables made in the same transaction were redefined",
            )
            .with_hint("Roll the whole transaction back."));
        }
        self.cursors.rollback_to(cursors);
        self.portals.retain(|_, portal| portal.number <= cursors);
        if let Some(open) = self.transaction.interactive.take() {
            // It stays open, with its snapshot and its id.
            let savepoint = engine.unwrap_or_else(|| open.beginning());
            let done = self.server.engine.rollback_to(&open, savepoint).await;
            self.transaction.interactive = Some(open);
            if let Err(stop) = done.outcome.result {
                return Err(self.stop_error(stop));
            }
        }
        self.take_back_definitions(count).await?;
        self.transaction.constraints = constraints;
        self.transaction.deferred.back_to(deferred);
        if let Some(all) = &mut self.transaction.pending {
            all.back_to(pending);
        }
        self.change_settings(|all| {
            all.rollback_to(settings);
            Ok(())
        })?;
        self.transaction.failed = false;
        Ok(())
    }

    pub(super) fn begin(&mut self, modes: &TransactionModes) -> Result<()> {
        if self.transaction.is_block() {
            let warning =
                SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress");
            self.notice(Severity::Warning, &warning);
        } else {
            if self.transaction.kind == Kind::None {
                self.transaction.start = crate::clock::now();
                self.transaction.queried = false;
            }
            self.transaction.kind = Kind::Block;
        }
        self.set_transaction_modes(modes)
    }

    /// From now on no savepoint made so far can be gone back to.
    pub(super) fn freeze_savepoints(&mut self) {
        self.transaction.savepoints.iter_mut().for_each(|savepoint| savepoint.frozen = true);
    }

    async fn commit_block(&mut self, chain: bool) -> Result<&'static str> {
        if !self.transaction.is_block() {
            if chain {
                return Err(chain_outside("COMMIT"));
            }
            self.notice(Severity::Warning, &no_transaction());
            self.commit_transaction().await?;
            return Ok("COMMIT");
        }
        let modes = self.current_modes();
        let tag = if self.transaction.failed {
            self.rollback_transaction().await;
            "ROLLBACK"
        } else {
            self.commit_transaction().await?;
            "COMMIT"
        };
        if chain {
            self.begin(&modes)?;
        }
        Ok(tag)
    }

    /// PREPARE TRANSACTION, as PostgreSQL does it while max_prepared_transactions is 0: the transaction ends as
    /// one does whose COMMIT fails.
    async fn prepare_transaction(&mut self, identifier: &str) -> Result<&'static str> {
        if !self.transaction.is_block() {
            self.notice(Severity::Warning, &no_transaction());
        }
        if self.transaction.failed || !self.transaction.is_open() {
            self.rollback_transaction().await;
            return Ok("ROLLBACK");
        }
        let checked = self.check_deferred(None).await;
        self.rollback_transaction().await;
        checked?;
        if identifier.len() >= GLOBAL_IDENTIFIER_BYTES {
            let message = format!("transaction identifier \"{identifier}\" is too long");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "prepared transactions are disabled")
            .with_hint("Set max_prepared_transactions to a nonzero value."))
    }

    /// Commits whatever is open; an error means that it was rolled back.
    pub(super) async fn commit_transaction(&mut self) -> Result<()> {
        let mut checked = self.check_deferred(None).await;
        if checked.is_ok() && !self.cursors.is_empty() {
            checked = Box::pin(self.hold_cursors()).await;
        }
        if checked.is_ok() {
            checked = self.end_temporary().await;
        }
        let ticket = match checked.and_then(|()| self.draw_own_ticket()) {
            Ok(ticket) => ticket,
            Err(error) => {
                self.rollback_transaction().await;
                return Err(error);
            }
        };
        let mut transaction = std::mem::take(&mut self.transaction);
        let mut epoch = Epoch(0);
        if let Some(staged) = transaction.staged.take().filter(|staged| staged.len() > 0) {
            self.host = None;
            let committed = Box::pin(self.commit_staged(staged, transaction.interactive)).await;
            match committed {
                Ok(committed) => epoch = committed,
                Err(error) => {
                    self.roll_settings_back();
                    return Err(error);
                }
            }
            crate::design::settle(&self.server, &self.database).await;
            self.host = None;
        } else if let Some(open) = transaction.interactive {
            let outcome = self.server.engine.commit(&open).await.outcome;
            match outcome.result {
                Ok(()) => {
                    epoch = outcome.depends_on;
                    self.depend_on(epoch);
                }
                Err(stop) => {
                    self.server.engine.rollback(&open).await;
                    self.roll_settings_back();
                    return Err(self.stop_error(stop));
                }
            }
        }
        self.memory.transaction.end(true);
        self.portals.clear();
        self.cursors.end_transaction();
        if let Some(pending) = transaction.pending {
            self.settle_pending(*pending, ticket, epoch);
        }
        self.change_settings(|all| {
            all.commit();
            Ok(())
        })
    }

    /// Ends the implicit transaction of a script or pipeline.
    pub(super) async fn commit_implicit(&mut self) -> Result<()> {
        match self.transaction.kind {
            Kind::Implicit => self.commit_transaction().await,
            Kind::None => {
                self.transaction.queried = false;
                self.memory.transaction.end(true);
                self.settings.commit();
                self.commit_pending()?;
                self.end_temporary().await
            }
            Kind::Block => Ok(()),
        }
    }

    pub(super) async fn rollback_transaction(&mut self) {
        let transaction = std::mem::take(&mut self.transaction);
        if let Some(open) = transaction.interactive {
            self.server.engine.rollback(&open).await;
        }
        if let Some(staged) = transaction.staged {
            self.host = None;
            self.drop_made(staged).await;
        }
        self.roll_settings_back();
    }

    /// What the session itself had begun with a transaction that is undone.
    fn roll_settings_back(&mut self) {
        self.portals.clear();
        self.cursors.abort_transaction();
        self.memory.transaction.end(false);
        // Going back to values that were in force cannot fail.
        let _ = self.change_settings(|all| {
            all.rollback();
            Ok(())
        });
    }

    /// The client left: nothing it had begun stays.
    pub(super) async fn abandon_transaction(&mut self) {
        if self.transaction.is_open() {
            self.rollback_transaction().await;
        }
    }

    /// Answers an error. A block becomes failed; an implicit transaction is rolled back.
    pub(super) async fn fail(&mut self, error: &SqlError) {
        self.count(|counters| &counters.errors, 1);
        if let Some(host) = &self.host {
            host.forget_asked();
        }
        match self.transaction.kind {
            Kind::Block => {
                self.transaction.failed = true;
                if self.transaction.savepoints.is_empty()
                    && let Some(open) = self.transaction.interactive.take()
                {
                    // Nothing can bring its work back: others need not wait for ROLLBACK.
                    self.server.engine.rollback(&open).await;
                }
            }
            Kind::Implicit => self.rollback_transaction().await,
            Kind::None => {
                self.transaction.take_pending();
                self.roll_settings_back();
            }
        }
        // The end of the session is told in its stead.
        if !self.entry().is_terminated() {
            self.output.error(error);
        }
    }
}
