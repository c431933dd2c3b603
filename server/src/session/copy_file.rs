//! COPY … FROM a file of the server: the same rows as from a client, read on the threads that
//! may wait for a disk.

use std::fs::File;
use std::io::{ErrorKind, Read};

use archipel_sql::catalog::role::READ_SERVER_FILES;
use archipel_sql::error::{Result, SqlError, SqlState};

use super::Session;

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
        let copied = self.copy_bytes(path).await;
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
            let (rest, chunk) = self
                .apart(move || {
                    let mut chunk = vec![0; CHUNK_BYTES];
                    let read = file.read(&mut chunk);
                    read.map(|bytes| {
                        chunk.truncate(bytes);
                        (file, chunk)
                    })
                    .map_err(|error| {
                        SqlError::new(SqlState::IO_ERROR, format!("could not read from COPY file: {error}"))
                    })
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
        let done = self.server.front.spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(SqlError::internal(format!("reading a file: {error}"))))
    }
}

/// PostgreSQL's errors for a file that is not to be had (BeginCopyFrom).
fn open(path: &str) -> Result<File> {
    let file = File::open(path).map_err(|error| {
        let (state, reason) = match error.kind() {
            ErrorKind::NotFound => (SqlState::UNDEFINED_FILE, "No such file or directory".to_owned()),
            ErrorKind::PermissionDenied => (SqlState::INSUFFICIENT_PRIVILEGE, "Permission denied".to_owned()),
            _ => (SqlState::IO_ERROR, error.to_string()),
        };
        SqlError::new(state, format!("could not open file \"{path}\" for reading: {reason}")).with_hint(
            "COPY FROM instructs the PostgreSQL server process to read a file. You may want a client-side facility such as psql's \\copy.",
        )
    })?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{path}\" is a directory")));
    }
    Ok(file)
}
