//! `archipel backup` and `archipel restore`.
//!
//! A backup is a physical copy of log and checkpoint as of one moment, taken while the server
//! works, and sent over an ordinary connection as the answer to `BASE_BACKUP` (the word of
//! PostgreSQL's replication protocol): a tar archive in COPY data, whose last file is a
//! manifest with the checksum of every other. The backup holds every commit acknowledged
//! before it was asked for.
//!
//! - [`archive`] tar and manifest, written and read piece by piece
//! - [`stream`]  the server's side: the copy on disk, read in chunks
//! - [`take`]    `archipel backup`: asks, checks and keeps
//! - [`restore`] `archipel restore`: checks, and makes a data directory

pub mod archive;
pub mod restore;
pub mod stream;
pub mod take;

use std::path::PathBuf;

/// Why a backup could not be taken or restored, told to a person.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("connection to {url} failed: {reason}")]
    Connect { url: String, reason: String },
    #[error("server answered {state}: {message}")]
    Server { state: String, message: String },
    #[error("connection lost: {0}")]
    Lost(String),
    #[error("{what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    #[error("the data directory {} is not empty", .0.display())]
    NotEmpty(PathBuf),
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    #[error("the backup cannot be restored by this version: {0}")]
    NewerFormat(String),
}

/// The error of one file.
fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io { what, path, source }
}

/// Syncs a file or directory, so that what was reported as kept is kept.
fn sync(path: &std::path::Path) -> Result<(), BackupError> {
    std::fs::File::open(path).and_then(|file| file.sync_all()).map_err(io("could not sync", path))
}
