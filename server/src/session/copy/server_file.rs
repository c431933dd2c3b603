//! Files and programs of the server: who may name them in COPY, how what fails over them is told, and the
//! threads that wait for them instead of an executor's.

use std::io::{Error, ErrorKind};
use std::os::fd::RawFd;
use std::path::PathBuf;

use archipel_sql::ast::CopyDirection;
use archipel_sql::catalog::role::{EXECUTE_SERVER_PROGRAM, READ_SERVER_FILES, WRITE_SERVER_FILES};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::stop::{Abandon, StopCheck};
use crate::session::Session;

/// How long a wait for a pipe lasts before it is asked whether the statement is to stop.
const LOOKED_FOR_STOP_MS: libc::c_int = 50;

/// Where the bytes of a COPY come from or go to, on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    File(String),
    /// What the shell runs.
    Program(String),
}

impl Place {
    /// The server's end of a COPY, if it is not the client's.
    pub(super) fn of(direction: &CopyDirection) -> Option<Place> {
        match direction {
            CopyDirection::FromStdin | CopyDirection::ToStdout => None,
            CopyDirection::FromFile(path) | CopyDirection::ToFile(path) => Some(Place::File(path.clone())),
            CopyDirection::FromProgram(command) | CopyDirection::ToProgram(command) => {
                Some(Place::Program(command.clone()))
            }
        }
    }
}

impl Session {
    /// Files and programs of the server are for those who may use them.
    pub(super) fn require_server_access(&mut self, direction: &CopyDirection) -> Result<()> {
        let (role, message) = match direction {
            CopyDirection::FromStdin | CopyDirection::ToStdout => return Ok(()),
            CopyDirection::FromFile(_) => (
                READ_SERVER_FILES,
                "must be superuser or have privileges of the pg_read_server_files role to COPY from a file",
            ),
            CopyDirection::ToFile(_) => (
                WRITE_SERVER_FILES,
                "must be superuser or have privileges of the pg_write_server_files role to COPY to a file",
            ),
            CopyDirection::FromProgram(_) | CopyDirection::ToProgram(_) => (
                EXECUTE_SERVER_PROGRAM,
                "must be superuser or have privileges of the pg_execute_server_program role to COPY to or from an external program",
            ),
        };
        if self.host().rights().acts_as(role) {
            return Ok(());
        }
        Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message).with_hint(
            "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
        ))
    }

    /// What a thread asks that works for the statement at hand, and what gives it up.
    pub(super) fn stop_check(&self) -> (StopCheck, Abandon) {
        StopCheck::new(self.entry().clone())
    }

    /// The path that a name of a file means: one that is relative begins at the data directory.
    pub(super) fn server_path(&self, name: &str) -> PathBuf {
        // No name is that of no file, and not the directory's.
        if name.is_empty() { PathBuf::new() } else { self.server.config.data_directory.join(name) }
    }

    /// Runs what may wait for a disk where nobody waits with it.
    pub(super) async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let done = self.server.waiting.begin(work)?;
        self.outwaited(done).await.unwrap_or_else(|_| Err(failed_by_bug()))
    }

    /// Waits for work that looks itself whether it is to stop. Where the client is lost it is told so.
    pub(super) async fn outwaited<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = work.as_mut() => return done,
            () = self.client_lost() => {}
        }
        work.await
    }
}

pub(super) fn failed_by_bug() -> SqlError {
    SqlError::internal("work on a file failed by a bug in the server")
}

/// What failed with a file, with PostgreSQL's code for the reason (errcode_for_file_access).
pub(in crate::session) fn file_error(error: &Error, what: &str) -> SqlError {
    let state = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::EROFS) => SqlState::INSUFFICIENT_PRIVILEGE,
        Some(libc::ENOENT) => SqlState::UNDEFINED_FILE,
        Some(libc::EEXIST) => SqlState(*b"58P02"),
        Some(libc::ENOTDIR | libc::EISDIR | libc::ENOTEMPTY) => SqlState::WRONG_OBJECT_TYPE,
        Some(libc::ENOSPC) => SqlState::DISK_FULL,
        Some(libc::ENFILE | libc::EMFILE) => SqlState::INSUFFICIENT_RESOURCES,
        Some(libc::EIO) => SqlState::IO_ERROR,
        _ => SqlState::INTERNAL_ERROR,
    };
    // What the C library says of it, without the number that Rust adds.
    let text = error.to_string();
    let reason = text.rfind(" (os error ").map_or(&text[..], |end| &text[..end]);
    SqlError::new(state, format!("{what}: {reason}"))
}

/// Whether a file is not there or not to be had, for which there is a hint.
pub(super) fn is_out_of_reach(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied)
}

/// Waits a moment for a pipe to be ready for these events; whether it is.
pub(super) fn is_ready(descriptor: RawFd, events: libc::c_short) -> std::io::Result<bool> {
    let mut polled = libc::pollfd { fd: descriptor, events, revents: 0 };
    // SAFETY: one descriptor, which is open, and its place in memory for the length of the call.
    let ready = unsafe { libc::poll(&raw mut polled, 1, LOOKED_FOR_STOP_MS) };
    match ready {
        0 => Ok(false),
        1.. => Ok(true),
        _ => match Error::last_os_error() {
            error if error.kind() == ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}
