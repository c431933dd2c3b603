//! Transactions as the client sees them.
//!
//! Outside a block every statement is a one-shot of its own. Inside BEGIN … COMMIT, and inside
//! the implicit transaction of a text with several statements or of a pipeline without Sync
//! between, statements run under an interactive transaction of the engine, begun with the first
//! statement that needs it. A failed statement has undone itself; the block then only takes
//! ROLLBACK, COMMIT (which rolls back) or ROLLBACK TO a savepoint.

use archipel_engine::txn::{Interactive, InteractiveSavepoint};
use archipel_sql::ast::{IsolationLevel, TransactionModes, TransactionStatement};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::Session;
use super::staging::Staged;
use crate::sessions::TransactionActivity;
use crate::statement::Prepared;
use crate::wire::output::{Severity, Status};

/// Where a session is between BEGIN and COMMIT.
#[derive(Default)]
pub struct Transaction {
    kind: Kind,
    /// The engine's transaction, once a statement needed one.
    interactive: Option<Interactive>,
    savepoints: Vec<Savepoint>,
    /// Definitions that wait for COMMIT.
    staged: Option<Staged>,
    failed: bool,
    start: i64,
    read_only: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    None,
    Implicit,
    Block,
}

struct Savepoint {
    name: String,
    /// `None`: the engine's transaction had not begun; going back undoes all of it.
    engine: Option<InteractiveSavepoint>,
    settings: usize,
    staged: usize,
}

impl Transaction {
    pub(super) fn status(&self) -> Status {
        match (self.kind, self.failed) {
            (Kind::Block, true) => Status::Failed,
            (Kind::Block, false) => Status::InTransaction,
            _ => Status::Idle,
        }
    }

    /// Whether a transaction outlives the current statement.
    pub(super) fn is_open(&self) -> bool {
        self.kind != Kind::None
    }

    /// Whether the client said BEGIN.
    pub(super) fn is_block(&self) -> bool {
        self.kind == Kind::Block
    }

    pub(super) fn is_failed(&self) -> bool {
        self.failed
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The engine's transaction, if one has begun.
    pub(super) fn interactive(&self) -> Option<&Interactive> {
        self.interactive.as_ref()
    }

    pub(super) fn activity(&self) -> Option<TransactionActivity> {
        (self.kind == Kind::Block).then_some(TransactionActivity { start: self.start, failed: self.failed })
    }

    pub(super) fn staged(&self) -> Option<&Staged> {
        self.staged.as_ref()
    }

    pub(super) fn staged_mut(&mut self) -> Option<&mut Staged> {
        self.staged.as_mut()
    }

    pub(super) fn set_staged(&mut self, staged: Staged) {
        self.staged = Some(staged);
    }

    /// When the transaction began, for `now()`; `None` outside of one.
    pub(super) fn start(&self) -> Option<i64> {
        (self.kind != Kind::None).then_some(self.start)
    }
}

fn no_transaction() -> SqlError {
    SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress")
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

    /// The engine's transaction for a statement that is not alone; begins one if need be.
    pub(super) fn enter_transaction(&mut self, alone: bool) {
        if self.transaction.kind == Kind::None {
            if alone {
                return;
            }
            self.transaction.kind = Kind::Implicit;
            self.transaction.start = crate::server::now();
        }
        if self.transaction.interactive.is_none() {
            let begun = self.server.engine.begin_for(&self.entry().engine);
            self.transaction.interactive = Some(begun);
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
                if !self.transaction.is_block() {
                    self.notice(Severity::Warning, &no_transaction());
                }
                let again = *chain && self.transaction.is_block();
                self.rollback_transaction().await;
                if again {
                    self.begin(&TransactionModes::default())?;
                }
                Ok("ROLLBACK")
            }
            TransactionStatement::Savepoint(name) => {
                self.block_only("SAVEPOINT")?;
                let engine = self.transaction.interactive.as_ref().map(Interactive::savepoint);
                let settings = self.settings.mark();
                let staged = self.transaction.staged.as_ref().map_or(0, Staged::len);
                self.transaction.savepoints.push(Savepoint { name: name.clone(), engine, settings, staged });
                Ok("SAVEPOINT")
            }
            TransactionStatement::Release(name) => {
                self.block_only("RELEASE SAVEPOINT")?;
                let index = self.savepoint(name)?;
                self.transaction.savepoints.truncate(index);
                Ok("RELEASE")
            }
            TransactionStatement::RollbackTo(name) => {
                self.block_only("ROLLBACK TO SAVEPOINT")?;
                let index = self.savepoint(name)?;
                self.rollback_to(index).await?;
                Ok("ROLLBACK")
            }
        }
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

    async fn rollback_to(&mut self, index: usize) -> Result<()> {
        self.transaction.savepoints.truncate(index + 1);
        let savepoint = &self.transaction.savepoints[index];
        let (engine, settings, count) = (savepoint.engine, savepoint.settings, savepoint.staged);
        if let Some(staged) = &mut self.transaction.staged {
            staged.truncate(count);
        }
        match (engine, self.transaction.interactive.take()) {
            (Some(savepoint), Some(open)) => {
                let done = self.server.engine.rollback_to(&open, savepoint).await;
                self.transaction.interactive = Some(open);
                if let Err(stop) = done.outcome.result {
                    return Err(self.stop_error(stop));
                }
            }
            (None, Some(open)) => {
                self.server.engine.rollback(&open).await;
            }
            (_, None) => {}
        }
        self.change_settings(|all| {
            all.rollback_to(settings);
            Ok(())
        })?;
        self.transaction.failed = false;
        Ok(())
    }

    fn begin(&mut self, modes: &TransactionModes) -> Result<()> {
        if self.transaction.is_block() {
            let warning =
                SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress");
            self.notice(Severity::Warning, &warning);
        } else {
            if self.transaction.kind == Kind::None {
                self.transaction.start = crate::server::now();
            }
            self.transaction.kind = Kind::Block;
            let default = self.settings.effective().show("default_transaction_read_only");
            self.transaction.read_only = default.as_deref() == Some("on");
        }
        self.set_transaction_modes(modes)
    }

    /// The modes of BEGIN and SET TRANSACTION.
    pub(super) fn set_transaction_modes(&mut self, modes: &TransactionModes) -> Result<()> {
        if let Some(isolation) = modes.isolation {
            self.require_isolation(isolation)?;
            self.change_settings(|all| all.set("transaction_isolation", Some(isolation.as_str()), true))?;
        }
        if let Some(read_only) = modes.read_only {
            self.transaction.read_only = read_only;
            let text = if read_only { "on" } else { "off" };
            self.change_settings(|all| all.set("transaction_read_only", Some(text), true))?;
        }
        if let Some(deferrable) = modes.deferrable {
            let text = if deferrable { "on" } else { "off" };
            self.change_settings(|all| all.set("transaction_deferrable", Some(text), true))?;
        }
        Ok(())
    }

    /// READ COMMITTED is what blocks run at; READ UNCOMMITTED is the same, as in PostgreSQL.
    /// A stricter level is refused, never weakened in silence.
    pub(super) fn require_isolation(&self, isolation: IsolationLevel) -> Result<()> {
        match isolation {
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Ok(()),
            stricter => Err(SqlError::unsupported(format_args!(
                "isolation level {} in a transaction block",
                stricter.as_str().to_uppercase()
            ))
            .with_hint("A statement or routine call outside a transaction block is strictly serializable.")),
        }
    }

    async fn commit_block(&mut self, chain: bool) -> Result<&'static str> {
        if !self.transaction.is_block() {
            self.notice(Severity::Warning, &no_transaction());
            self.commit_transaction().await?;
            return Ok("COMMIT");
        }
        let tag = if self.transaction.failed {
            self.rollback_transaction().await;
            "ROLLBACK"
        } else {
            self.commit_transaction().await?;
            "COMMIT"
        };
        if chain {
            self.begin(&TransactionModes::default())?;
        }
        Ok(tag)
    }

    /// Commits whatever is open; an error means that it was rolled back.
    pub(super) async fn commit_transaction(&mut self) -> Result<()> {
        let transaction = std::mem::take(&mut self.transaction);
        if let Some(open) = transaction.interactive {
            let outcome = self.server.engine.commit(&open).await.outcome;
            match outcome.result {
                Ok(()) => self.depend_on(outcome.depends_on),
                Err(stop) => {
                    self.server.engine.rollback(&open).await;
                    self.roll_settings_back();
                    return Err(self.stop_error(stop));
                }
            }
        }
        if let Some(staged) = transaction.staged
            && let Err(error) = Box::pin(self.commit_staged(staged)).await
        {
            self.roll_settings_back();
            return Err(error);
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
                self.settings.commit();
                Ok(())
            }
            Kind::Block => Ok(()),
        }
    }

    pub(super) async fn rollback_transaction(&mut self) {
        let transaction = std::mem::take(&mut self.transaction);
        if let Some(open) = transaction.interactive {
            self.server.engine.rollback(&open).await;
        }
        self.roll_settings_back();
    }

    fn roll_settings_back(&mut self) {
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
        if let Some(counters) = self.server.counters.get(usize::from(self.executor.number)) {
            counters.errors.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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
            Kind::None => self.roll_settings_back(),
        }
        // The end of the session is told in its stead.
        if !self.entry().is_terminated() {
            self.output.error(error);
        }
    }
}
