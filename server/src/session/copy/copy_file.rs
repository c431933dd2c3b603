//! COPY … FROM a file of the server: the same rows as from a client, read on the threads that
//! may wait for a disk.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use archipel_sql::catalog::role::READ_SERVER_FILES;
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::session::Session;

/// How long a read of a pipe waits before it asks whether the statement is to stop.
const LOOKED_FOR_CANCEL_MS: libc::c_int = 50;

/// How much is read at a time.
const CHUNK_BYTES: usize = 1 << 20;

impl Session {
    /// Files of the server are for those who may read them.
    pub(super) fn require_file_reader(&mut self) -> Result<()> {
        if self.host().rights().acts_as(READ_SERVER_FILES) {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            "must be superuser or have privileges of the pg_read_server_files role to COPY from a file",
        )
        .with_hint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."))
    }

    /// Feeds the COPY that has begun with a file's bytes, and ends it.
    pub(super) async fn copy_from_file(&mut self, path: &str) -> Result<()> {
        let mut copied = self.copy_bytes(path).await;
        if let Err(error) = copied {
            copied = Err(self.copy_failed(error).await);
        }
        let copy = self.copy_in.take();
        copied?;
        if let Some(copy) = copy {
            self.output.command_complete_count("COPY", copy.total);
        }
        Ok(())
    }

    async fn copy_bytes(&mut self, path: &str) -> Result<()> {
        let name = path.to_owned();
        let mut file = self.apart(move || open(&name)).await?;
        loop {
            let entry = self.entry().clone();
            let (rest, chunk) = self
                .apart(move || {
                    while !file.is_ready()? {
                        if entry.is_cancelled() {
                            return Err(entry.cancel_error());
                        }
                    }
                    let mut chunk = vec![0; CHUNK_BYTES];
                    let read = file.file.read(&mut chunk);
                    read.map(|bytes| {
                        chunk.truncate(bytes);
                        (file, chunk)
                    })
                    .map_err(unreadable)
                })
                .await?;
            file = rest;
            if chunk.is_empty() {
                return self.copy_done().await;
            }
            self.copy_data(&chunk).await?;
        }
    }

    /// Runs what may wait for a disk where nobody waits with it.
    async fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let mut done = self.server.waiting.begin(work)?;
        let done = tokio::select! {
            biased;
            done = &mut done => done,
            // The statement is cancelled then, which the work is told.
            () = self.client_lost() => done.await,
        };
        done.unwrap_or_else(|_| Err(SqlError::internal("reading a file failed by a bug in the server")))
    }
}

fn unreadable(error: std::io::Error) -> SqlError {
    SqlError::new(SqlState::IO_ERROR, format!("could not read from COPY file: {error}"))
}

/// A file that is being read.
struct Source {
    file: File,
    /// Whether others write while it is read, and whoever reads waits for them.
    pipe: bool,
}

impl Source {
    /// Whether something can be read, or nothing will come any more; a pipe is given a moment.
    fn is_ready(&self) -> Result<bool> {
        if !self.pipe {
            return Ok(true);
        }
        let mut polled = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, which is open, and its place in memory for the length of the call.
        let ready = unsafe { libc::poll(&raw mut polled, 1, LOOKED_FOR_CANCEL_MS) };
        match ready {
            0 => Ok(false),
            1.. => Ok(true),
            _ => match std::io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => Ok(false),
                error => Err(unreadable(error)),
            },
        }
    }
}

/// PostgreSQL's errors for a file that is not to be had (BeginCopyFrom). A pipe is there before its
/// writer is.
fn open(path: &str) -> Result<Source> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(|error| {
        let (state, reason) = match error.kind() {
            ErrorKind::NotFound => (SqlState::UNDEFINED_FILE, "No such file or directory".to_owned()),
            ErrorKind::PermissionDenied => (SqlState::INSUFFICIENT_PRIVILEGE, "Permission denied".to_owned()),
            _ => (SqlState::IO_ERROR, error.to_string()),
        };
        SqlError::new(state, format!("could not open file \"{path}\" for reading: {reason}")).with_hint(
            "COPY FROM instructs the PostgreSQL server process to read a file. You may want a client-side facility such as psql's \\copy.",
        )
    })?;
    let kind = file.metadata().map_err(unreadable)?.file_type();
    if kind.is_dir() {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{path}\" is a directory")));
    }
    Ok(Source { file, pipe: !kind.is_file() })
}
