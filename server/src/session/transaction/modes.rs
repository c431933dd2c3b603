//! Modes of transactions: isolation, READ ONLY, DEFERRABLE.
//!
//! They are settings of the transaction (`transaction_isolation` and its like), which begin as
//! the defaults say and end with it. Isolation is settled once a statement has seen the
//! database, and inside savepoints.

use std::sync::Arc;

use archipel_engine::{Isolation, Snapshot};
use archipel_sql::ast::{IsolationLevel, Statement, TransactionModes};
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::session::Session;

impl Session {
    /// Whether the current transaction, or the one a lone statement is, must not write.
    pub(in crate::session) fn is_read_only(&self) -> bool {
        self.settings.effective().transaction_read_only
    }

    /// Refuses a command that writes in a READ ONLY transaction.
    pub(in crate::session) fn require_writable(&self, command: &str) -> Result<()> {
        if !self.is_read_only() {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {command} in a read-only transaction"),
        ))
    }

    /// 25001 for a command that may not be part of a transaction block, which the caller stands in.
    pub(in crate::session) fn require_outside_of_block(&self, statement: &Statement) -> Result<()> {
        let of_routine = self.transaction.is_of_routine() && !self.transaction.is_inside_savepoint();
        let what = if of_routine {
            "cannot be executed from a function"
        } else {
            "cannot run inside a transaction block"
        };
        self.require_alone(statement, what)
    }

    /// The same for what stands behind others in a pipeline.
    pub(in crate::session) fn require_outside_of_pipeline(&self, statement: &Statement) -> Result<()> {
        self.require_alone(statement, "cannot be executed within a pipeline")
    }

    /// 25006 goes before 25001, but for commands that READ ONLY transactions may run.
    fn require_alone(&self, statement: &Statement, what: &str) -> Result<()> {
        let Some(command) = statement.refused_in_blocks() else { return Ok(()) };
        let writes = !matches!(
            statement,
            Statement::Vacuum(_)
                | Statement::Reindex { .. }
                | Statement::Cluster { .. }
                | Statement::Transaction(_)
        );
        if writes {
            self.require_writable(statement.tag())?;
        }
        Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, format!("{command} {what}")))
    }

    /// How a transaction of this session sees others' work.
    pub(in crate::session) fn isolation(&self) -> Isolation {
        match self.settings.effective().isolation {
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
            IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
            IsolationLevel::Serializable => Isolation::Serializable,
        }
    }

    /// The modes of BEGIN and SET TRANSACTION.
    pub(in crate::session) fn set_transaction_modes(&mut self, modes: &TransactionModes) -> Result<()> {
        let refused = |message: &str| Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        let queried = self.transaction.has_queried();
        let inside = self.transaction.is_inside_savepoint();
        let now = self.current_modes();
        if let Some(isolation) = modes.isolation.filter(|isolation| Some(*isolation) != now.isolation) {
            if queried {
                return refused("SET TRANSACTION ISOLATION LEVEL must be called before any query");
            }
            if inside {
                return refused("SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction");
            }
            self.set_mode("transaction_isolation", isolation.as_str())?;
        }
        if let Some(read_only) = modes.read_only.filter(|read_only| Some(*read_only) != now.read_only) {
            if !read_only && inside {
                return refused("cannot set transaction read-write mode inside a read-only transaction");
            }
            if !read_only && queried {
                return refused("transaction read-write mode must be set before any query");
            }
            self.set_mode("transaction_read_only", if read_only { "on" } else { "off" })?;
        }
        if let Some(deferrable) = modes.deferrable {
            if inside {
                return refused("SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction");
            }
            if queried {
                return refused("SET TRANSACTION [NOT] DEFERRABLE must be called before any query");
            }
            if Some(deferrable) != now.deferrable {
                self.set_mode("transaction_deferrable", if deferrable { "on" } else { "off" })?;
            }
        }
        Ok(())
    }

    /// The snapshot of another transaction, which is still open, that this one may adopt.
    pub(in crate::session) fn exported_snapshot(&self, name: &str) -> Result<Arc<Snapshot>> {
        if self.transaction.has_queried() || self.transaction.is_inside_savepoint() {
            return Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION SNAPSHOT must be called before any query",
            ));
        }
        if self.isolation() == Isolation::ReadCommitted {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ",
            ));
        }
        self.server.exported.import(self.database.oid, name)
    }

    /// SET TRANSACTION SNAPSHOT: sees what another transaction sees, which is still open.
    pub(in crate::session) fn adopt_snapshot(&mut self, name: &str) -> Result<()> {
        let snapshot = self.exported_snapshot(name)?;
        self.enter_transaction(false);
        if !self.transaction.interactive().is_some_and(|open| open.adopt(&snapshot)) {
            return Err(SqlError::internal("the transaction has a snapshot of its own"));
        }
        self.note_query();
        Ok(())
    }

    fn set_mode(&mut self, name: &str, value: &str) -> Result<()> {
        self.change_settings(|all| all.set(name, Some(value), true))
    }

    /// The modes of the current transaction.
    pub(in crate::session) fn current_modes(&self) -> TransactionModes {
        let effective = self.settings.effective();
        TransactionModes {
            isolation: Some(effective.isolation),
            read_only: Some(effective.transaction_read_only),
            deferrable: Some(effective.show("transaction_deferrable").as_deref() == Some("on")),
        }
    }

    /// `SET transaction_isolation` and its like: what SET TRANSACTION does, for a transaction
    /// that goes on after this statement.
    pub(in crate::session) fn set_transaction_setting(&mut self, name: &str, text: &str) -> Result<()> {
        let mut modes = TransactionModes::default();
        match name {
            "transaction_isolation" => modes.isolation = IsolationLevel::parse(text),
            "transaction_read_only" => modes.read_only = archipel_sql::io::parse_bool(text),
            _ => modes.deferrable = archipel_sql::io::parse_bool(text),
        }
        if modes == TransactionModes::default() {
            // Not a value: the setting says so.
            return self.set_mode(name, text);
        }
        if self.transaction.is_open() { self.set_transaction_modes(&modes) } else { Ok(()) }
    }

    /// Before the defaults change inside a transaction: it stays as it is.
    pub(in crate::session) fn pin_transaction_modes(&mut self) -> Result<()> {
        if !self.transaction.is_open() {
            return Ok(());
        }
        for (name, _) in crate::settings::session::TRANSACTION_MODES {
            let value = self.settings.effective().show(name).unwrap_or_default();
            self.set_mode(name, &value)?;
        }
        Ok(())
    }
}
