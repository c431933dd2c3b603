//! What ends a run: an error, or a stop of the engine.

use archipel_engine::Stop;
use archipel_sql::error::{SqlError, SqlState};

/// The SQL error a stop that reached the caller means.
pub fn stop_error(stop: Stop) -> SqlError {
    match stop {
        Stop::OutOfMemory => SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail("The data would exceed max_memory.")
            .with_hint("Rows, and what transactions and statements take on their way, share max_memory."),
        Stop::NoThread => SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail("A thread for the statement could not be started."),
        Stop::TransactionTooLarge => SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail(
                "One transaction can change up to 4 GB of rows, and log up to 4 GB or half of the free disk space.",
            )
            .with_hint("Divide the changes among several transactions."),
        Stop::RowTooLarge => SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "row is too big")
            .with_detail("The maximum size is 1073741823 bytes."),
        Stop::KeyTooLarge => {
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "index row size exceeds maximum 8388608")
                .with_hint("Consider a function index of an MD5 hash of the value.")
        }
        Stop::Cancelled => SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request"),
        Stop::ConcurrentUpdate => SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent update",
        ),
        Stop::ConcurrentDelete => SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent delete",
        ),
        Stop::MovedAway => SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            "tuple to be locked was already moved to another partition due to concurrent update",
        ),
        Stop::NotSerializable => SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            "could not serialize access due to read/write dependencies among transactions",
        )
        .with_detail("Reason code: Canceled on identification as a pivot, during commit attempt.")
        .with_hint("The transaction might succeed if retried."),
        Stop::Deadlock => SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected"),
        Stop::LockNotAvailable => {
            SqlError::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
        }
        Stop::TransactionEnded => SqlError::new(
            SqlState::IN_FAILED_SQL_TRANSACTION,
            "current transaction is aborted, commands ignored until end of transaction block",
        ),
        Stop::OneShotOnly => SqlError::new(
            SqlState::ACTIVE_SQL_TRANSACTION,
            "this operation cannot run inside a transaction block",
        ),
        Stop::DiskFull => {
            SqlError::new(SqlState::DISK_FULL, "could not write to the log: no space left on device")
        }
        Stop::SnapshotTooOld => SqlError::new(SqlState::SNAPSHOT_TOO_OLD, "snapshot too old")
            .with_hint("Old row versions exceeded archipel.max_version_memory."),
        Stop::LogFailed => SqlError::new(SqlState::IO_ERROR, "could not write to the log"),
        Stop::Panicked => SqlError::internal("the statement failed unexpectedly and was undone"),
        Stop::Restart | Stop::Reevaluate | Stop::Wait | Stop::Interactive | Stop::Recompile | Stop::Abort => {
            SqlError::internal(format!("a program ended with {stop:?}"))
        }
    }
}

/// Why a statement did not finish.
#[derive(Debug)]
pub enum ExecError {
    /// Control flow of the engine: undo and run again, wait, give up. No EXCEPTION block sees it.
    Stop(Stop),
    /// An SQL condition.
    Sql(SqlError),
}

impl From<SqlError> for ExecError {
    fn from(error: SqlError) -> Self {
        // What has kept its thread for too long is no condition: it begins anew apart.
        if error.is_over_budget() { ExecError::Stop(Stop::Interactive) } else { ExecError::Sql(error) }
    }
}

impl From<Stop> for ExecError {
    fn from(stop: Stop) -> Self {
        match stop {
            // Conditions of the transaction rather than control flow: a handler may see them.
            Stop::ConcurrentUpdate
            | Stop::ConcurrentDelete
            | Stop::MovedAway
            | Stop::NotSerializable
            | Stop::OutOfMemory
            | Stop::TransactionTooLarge
            | Stop::RowTooLarge
            | Stop::KeyTooLarge => ExecError::Sql(stop_error(stop)),
            stop => ExecError::Stop(stop),
        }
    }
}

/// The result of running something.
pub type ExecResult<T> = Result<T, ExecError>;
