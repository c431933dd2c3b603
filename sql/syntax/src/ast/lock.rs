//! Row locking clauses. sqlparser reads FOR UPDATE and FOR SHARE of one table; PostgreSQL has
//! four strengths and lists of tables. The parser rewrites every clause into one or more that
//! sqlparser accepts, `FOR UPDATE OF "<strength>"[.table]`, and [`row_lock`] reads them back: no
//! clause, and no part of one, is ever lost on the way.

use sqlparser::ast::{LockClause, NonBlock, ObjectNamePart};

use crate::error::{Result, SqlError};

/// Row lock strengths, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowLockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl RowLockStrength {
    /// As written after FOR.
    pub fn as_str(self) -> &'static str {
        match self {
            RowLockStrength::KeyShare => "KEY SHARE",
            RowLockStrength::Share => "SHARE",
            RowLockStrength::NoKeyUpdate => "NO KEY UPDATE",
            RowLockStrength::Update => "UPDATE",
        }
    }

    /// The marker identifier of the rewritten clause. A name with a NUL cannot come from a
    /// client's text.
    pub(crate) fn marker(self) -> &'static str {
        match self {
            RowLockStrength::KeyShare => "\0key share",
            RowLockStrength::Share => "\0share",
            RowLockStrength::NoKeyUpdate => "\0no key update",
            RowLockStrength::Update => "\0update",
        }
    }

    fn from_marker(marker: &str) -> Option<Self> {
        [
            RowLockStrength::KeyShare,
            RowLockStrength::Share,
            RowLockStrength::NoKeyUpdate,
            RowLockStrength::Update,
        ]
        .into_iter()
        .find(|strength| strength.marker() == marker)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLockWait {
    Block,
    NoWait,
    SkipLocked,
}

/// One locking clause for one table, or for all of the query's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLockClause {
    pub strength: RowLockStrength,
    pub wait: RowLockWait,
    /// OF table: the name or alias as the FROM clause has it.
    pub of: Option<String>,
}

/// Reads a locking clause of a parsed query.
pub fn row_lock(clause: &LockClause) -> Result<RowLockClause> {
    let wait = match clause.nonblock {
        None => RowLockWait::Block,
        Some(NonBlock::Nowait) => RowLockWait::NoWait,
        Some(NonBlock::SkipLocked) => RowLockWait::SkipLocked,
    };
    let names: Vec<String> = clause
        .of
        .iter()
        .flat_map(|name| &name.0)
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) if ident.quote_style.is_none() => {
                Ok(ident.value.to_lowercase())
            }
            ObjectNamePart::Identifier(ident) => Ok(ident.value.clone()),
            ObjectNamePart::Function(_) => Err(SqlError::unsupported("a function in a locking clause")),
        })
        .collect::<Result<_>>()?;
    let strength = names
        .first()
        .and_then(|marker| RowLockStrength::from_marker(marker))
        .ok_or_else(|| SqlError::internal("a locking clause that did not pass through the parser"))?;
    if names.len() > 2 {
        return Err(SqlError::new(
            crate::error::SqlState::SYNTAX_ERROR,
            format!("FOR {} must specify unqualified relation names", strength.as_str()),
        ));
    }
    Ok(RowLockClause { strength, wait, of: names.get(1).cloned() })
}
