//! Transactions: BEGIN to ROLLBACK, savepoints and their modes.

use sqlparser::tokenizer::Token;

use crate::ast::{IsolationLevel, SetTransaction, Statement, TransactionModes, TransactionStatement};
use crate::error::Result;

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    pub(in crate::parser) fn transaction(&mut self) -> Result<Statement> {
        let word = self.word_at(0);
        self.skip(1);
        let statement = match word.as_str() {
            "begin" => {
                self.take_work();
                TransactionStatement::Begin { modes: self.transaction_modes()?, start: false }
            }
            "start" => {
                self.expect("transaction")?;
                TransactionStatement::Begin { modes: self.transaction_modes()?, start: true }
            }
            "commit" | "rollback" if self.take("prepared") => {
                TransactionStatement::FinishPrepared { identifier: self.string()?, commit: word == "commit" }
            }
            "commit" | "end" => {
                self.take_work();
                TransactionStatement::Commit { chain: self.take_chain()? }
            }
            "savepoint" => TransactionStatement::Savepoint(self.identifier()?),
            "release" => {
                self.take("savepoint");
                TransactionStatement::Release(self.identifier()?)
            }
            _ => {
                self.take_work();
                if word == "rollback" && self.take("to") {
                    self.take("savepoint");
                    TransactionStatement::RollbackTo(self.identifier()?)
                } else {
                    TransactionStatement::Rollback { chain: self.take_chain()? }
                }
            }
        };
        Ok(Statement::Transaction(statement))
    }

    fn take_work(&mut self) {
        if !self.take("work") {
            self.take("transaction");
        }
    }

    /// AND [NO] CHAIN.
    fn take_chain(&mut self) -> Result<bool> {
        if !self.take("and") {
            return Ok(false);
        }
        let chain = !self.take("no");
        self.expect("chain")?;
        Ok(chain)
    }

    /// Modes, separated by commas or by nothing.
    pub(super) fn transaction_modes(&mut self) -> Result<TransactionModes> {
        let mut modes = TransactionModes::default();
        while !self.at_end() {
            if self.take_words(&["isolation", "level"]) {
                modes.isolation = Some(self.isolation_level()?);
            } else if self.take_words(&["read", "only"]) {
                modes.read_only = Some(true);
            } else if self.take_words(&["read", "write"]) {
                modes.read_only = Some(false);
            } else if self.take("deferrable") {
                modes.deferrable = Some(true);
            } else if self.take_words(&["not", "deferrable"]) {
                modes.deferrable = Some(false);
            } else {
                return Err(self.unexpected());
            }
            if self.take_token(&Token::Comma) && self.at_end() {
                return Err(self.unexpected());
            }
        }
        Ok(modes)
    }

    fn isolation_level(&mut self) -> Result<IsolationLevel> {
        if self.take("serializable") {
            Ok(IsolationLevel::Serializable)
        } else if self.take_words(&["repeatable", "read"]) {
            Ok(IsolationLevel::RepeatableRead)
        } else if self.take_words(&["read", "committed"]) {
            Ok(IsolationLevel::ReadCommitted)
        } else if self.take_words(&["read", "uncommitted"]) {
            Ok(IsolationLevel::ReadUncommitted)
        } else {
            Err(self.unexpected())
        }
    }

    /// After SET [SESSION CHARACTERISTICS AS] TRANSACTION.
    pub(super) fn set_transaction(&mut self, session: bool) -> Result<Statement> {
        if !session && self.take("snapshot") {
            let snapshot = Some(self.string()?);
            return Ok(Statement::SetTransaction(SetTransaction {
                session,
                modes: TransactionModes::default(),
                snapshot,
            }));
        }
        if self.at_end() {
            return Err(self.unexpected());
        }
        Ok(Statement::SetTransaction(SetTransaction {
            session,
            modes: self.transaction_modes()?,
            snapshot: None,
        }))
    }
}
