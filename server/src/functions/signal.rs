//! `pg_cancel_backend` and `pg_terminate_backend` (section 9.27.2 of PostgreSQL's manual).

use std::time::{Duration, Instant};

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::SessionHost;
use archipel_sql::interrupt;

use super::wait::waiting;
use crate::session::host::Host;

/// How often it is looked whether a session has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Of a process: whether there is one, whose statement is cancelled.
pub(super) fn cancel(host: &Host, args: &[Datum]) -> Result<Datum> {
    let [Datum::Int4(process)] = args else { return Ok(Datum::Null) };
    check(host, *process, "cancel")?;
    interrupt::once()?;
    let found = host.server.sessions.cancel_backend(*process);
    if !found {
        warn(host, no_process(*process));
    }
    Ok(Datum::Bool(found))
}

/// Of a process and the milliseconds that it may take to end, 0 for whoever does not wait for that: whether
/// there is one, and has ended.
pub(super) fn terminate(host: &Host, args: &[Datum]) -> Result<Datum> {
    let (process, patience_ms) = match args {
        [Datum::Int4(process)] => (*process, 0),
        [Datum::Int4(process), Datum::Int8(patience_ms)] => (*process, *patience_ms),
        _ => return Ok(Datum::Null),
    };
    let Ok(patience) = u64::try_from(patience_ms).map(Duration::from_millis) else {
        let message = "\"timeout\" must not be negative";
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    };
    check(host, process, "terminate")?;
    interrupt::once()?;
    if !host.server.sessions.terminate_backend(process) {
        warn(host, no_process(process));
        return Ok(Datum::Bool(false));
    }
    if patience.is_zero() || waiting(|| has_ended(host, process, patience))? {
        return Ok(Datum::Bool(true));
    }
    let unit = if patience_ms == 1 { "millisecond" } else { "milliseconds" };
    warn(host, format!("backend with PID {process} did not terminate within {patience_ms} {unit}"));
    Ok(Datum::Bool(false))
}

/// Waits for the end of a session, on a thread that may wait.
fn has_ended(host: &Host, process: i32, patience: Duration) -> Result<bool> {
    // A patience that the clock cannot add is as good as for ever.
    let end = Instant::now().checked_add(patience);
    while host.server.sessions.role_of(process).is_some() {
        if host.interrupted() {
            return Err(host.entry.cancel_error());
        }
        let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(false);
        }
        std::thread::sleep(left.min(LOOK));
    }
    Ok(true)
}

fn no_process(process: i32) -> String {
    format!("PID {process} is not a PostgreSQL backend process")
}

fn warn(host: &Host, message: String) {
    host.asked.note(|asked| asked.warn(SqlError::new(SqlState::WARNING, message)));
}

/// Whose sessions somebody may cancel and end (pg_signal_backend).
fn check(host: &Host, process: i32, verb: &str) -> Result<()> {
    let Some(role) = host.server.sessions.role_of(process) else { return Ok(()) };
    let is_superusers = host.catalog.catalog.role_by_oid(role).is_some_and(|role| role.superuser);
    let rights = host.rights();
    let denied = |message: String| Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    let what = if verb == "cancel" { "query" } else { "process" };
    if is_superusers && !rights.is_superuser() {
        return denied(format!("must be a superuser to {verb} superuser {what}"));
    }
    if !rights.acts_as(role) && !rights.acts_as(archipel_sql::catalog::role::SIGNAL_BACKEND) {
        return denied(format!(
            "must be a member of the role whose {what} is being {verb}{} or member of pg_signal_backend",
            if verb == "cancel" { "ed" } else { "d" }
        ));
    }
    Ok(())
}
