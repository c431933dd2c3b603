//! SELECT … FOR UPDATE and its weaker forms: which tables' rows a query locks, and where
//! PostgreSQL does not allow it.

use archipel_sql::ast::{RowLockClause, RowLockStrength, RowLockWait, row_lock};
use archipel_sql::error::{Result, SqlError, SqlState};
use sqlparser::ast::LockClause;

use crate::bind::binder::Binder;
use crate::bind::level::{Level, Relation};
use crate::bind::query::target_list::Parts;
use crate::bound::*;

impl Binder<'_, '_> {
    /// The row locks of a query, with those its surroundings ask for.
    pub(crate) fn row_locks(
        &self,
        clauses: &[LockClause],
        inherited: Vec<RowLockClause>,
    ) -> Result<Vec<RowLockClause>> {
        let mut locks = inherited;
        for clause in clauses {
            locks.push(row_lock(clause)?);
        }
        Ok(locks)
    }

    /// The strongest lock this query asks for on a table; the strictest way of waiting.
    pub(super) fn lock_of(&self, name: Option<&str>) -> Option<RowLock> {
        let mut result: Option<RowLock> = None;
        for lock in &self.locks {
            if lock.of.is_some() && lock.of.as_deref() != name {
                continue;
            }
            let strength = match lock.strength {
                RowLockStrength::KeyShare => LockStrength::KeyShare,
                RowLockStrength::Share => LockStrength::Share,
                RowLockStrength::NoKeyUpdate => LockStrength::NoKeyUpdate,
                RowLockStrength::Update => LockStrength::Update,
            };
            let wait = match lock.wait {
                RowLockWait::Block => LockWait::Block,
                RowLockWait::NoWait => LockWait::NoWait,
                RowLockWait::SkipLocked => LockWait::SkipLocked,
            };
            result = Some(match result {
                None => RowLock { strength, wait, under_limit: false },
                Some(known) => RowLock {
                    strength: known.strength.max(strength),
                    wait: match (known.wait, wait) {
                        (LockWait::NoWait, _) | (_, LockWait::NoWait) => LockWait::NoWait,
                        (LockWait::SkipLocked, _) | (_, LockWait::SkipLocked) => LockWait::SkipLocked,
                        _ => LockWait::Block,
                    },
                    under_limit: false,
                },
            });
        }
        result
    }

    /// The names after OF must be those of FROM, and of what has rows of its own.
    pub(crate) fn require_locked_names(&self, clauses: &[LockClause], relations: &[Relation]) -> Result<()> {
        for clause in clauses {
            let lock = row_lock(clause)?;
            let Some(of) = &lock.of else { continue };
            let strength = lock.strength.as_str();
            let mut named = relations.iter().filter(|relation| relation.qualified);
            let (state, message) = match named.find(|relation| relation.name.as_ref() == Some(of)) {
                None => (
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{of}\" in FOR {strength} clause not found in FROM clause"),
                ),
                Some(relation) if relation.joined => {
                    (SqlState::FEATURE_NOT_SUPPORTED, format!("FOR {strength} cannot be applied to a join"))
                }
                Some(_) => continue,
            };
            let written = clause.of.as_ref().and_then(|name| name.0.last()).and_then(|part| part.as_ident());
            let position = written.and_then(|ident| self.position(ident.span));
            return Err(SqlError::new(state, message).at(position));
        }
        Ok(())
    }
}

/// The refusal of a lock where there are no rows of tables, one to one.
pub(crate) fn lock_refused(locks: &[LockClause], why: &str) -> SqlError {
    let strength = locks.first().and_then(|lock| row_lock(lock).ok()).map(|lock| lock.strength);
    let strength = strength.map_or("UPDATE", |strength| strength.as_str());
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("FOR {strength} {why}"))
}

/// Whether the rows of a query can be locked.
pub(crate) fn require_lockable(lock: &RowLockClause, rel: &Rel, parts: &Parts, level: &Level) -> Result<()> {
    refuse_lock(lock, parts, level)?;
    if !locks_nullable(rel, false) {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("FOR {} cannot be applied to the nullable side of an outer join", lock.strength.as_str()),
    ))
}

pub(crate) fn skips_locked(lock: &sqlparser::ast::LockClause) -> bool {
    row_lock(lock).is_ok_and(|lock| lock.wait == RowLockWait::SkipLocked)
}

/// Whether a table of this query whose rows are to be locked may have none to lock.
fn locks_nullable(rel: &Rel, nullable: bool) -> bool {
    match rel {
        Rel::Scan { lock, .. } | Rel::Family { lock, .. } => nullable && lock.is_some(),
        Rel::Filter { input, .. } | Rel::Project { input, .. } => locks_nullable(input, nullable),
        Rel::Join { kind, left, right, .. } => {
            locks_nullable(left, nullable || matches!(kind, JoinKind::Right | JoinKind::Full))
                || locks_nullable(right, nullable || matches!(kind, JoinKind::Left | JoinKind::Full))
        }
        _ => false,
    }
}

/// Row locks need rows of tables, one to one (CheckSelectLocking).
fn refuse_lock(lock: &RowLockClause, parts: &Parts, level: &Level) -> Result<()> {
    let what = if parts.distinct || parts.distinct_on.is_some() {
        "DISTINCT clause"
    } else if parts.grouping.is_some() {
        "GROUP BY clause"
    } else if parts.having.is_some() {
        "HAVING clause"
    } else if !level.aggregates.is_empty() {
        "aggregate functions"
    } else if !level.windows.is_empty() {
        "window functions"
    } else if !level.sets.is_empty() {
        "set-returning functions in the target list"
    } else {
        return Ok(());
    };
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("FOR {} is not allowed with {what}", lock.strength.as_str()),
    ))
}
