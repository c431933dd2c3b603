//! `archipel backup`: asks a server for a backup, checks it as it comes, and keeps it as an
//! archive or unpacked.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use futures::StreamExt;
use tokio_postgres::NoTls;

use super::archive::{Unpacked, Unpacker};
use super::{BackupError, io, sync};

/// Take a consistent backup of a running server.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// A connection URL of the server.
    #[arg(long, default_value = "postgresql://archipel@127.0.0.1:5432/archipel")]
    url: String,
    /// Where the backup goes: an archive if the name ends with .tar, else a directory that a
    /// server can be started on.
    #[arg(long, value_name = "FILE.tar|DIR")]
    to: PathBuf,
}

/// Where the backup goes. What is not finished is removed.
enum Target {
    Archive { file: File, aside: PathBuf, path: PathBuf },
    Directory(PathBuf),
}

impl Target {
    fn open(path: &Path) -> Result<Target, BackupError> {
        if path.extension().is_some_and(|extension| extension == "tar") {
            if path.exists() {
                return Err(BackupError::Exists(path.to_owned()));
            }
            let aside = path.with_extension("tar.part");
            let file = archipel_rocksdb::private_file(&aside).map_err(io("could not create", &aside))?;
            return Ok(Target::Archive { file, aside, path: path.to_owned() });
        }
        super::restore::empty_directory(path)?;
        Ok(Target::Directory(path.to_owned()))
    }

    fn unpacker(&self) -> Unpacker {
        Unpacker::new(match self {
            Target::Archive { .. } => None,
            Target::Directory(path) => Some(path.clone()),
        })
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), BackupError> {
        match self {
            Target::Archive { file, aside, .. } => {
                file.write_all(piece).map_err(io("could not write", aside))
            }
            Target::Directory(_) => Ok(()),
        }
    }

    fn keep(self) -> Result<(), BackupError> {
        let Target::Archive { file, aside, path } = self else { return Ok(()) };
        file.sync_all().map_err(io("could not sync", &aside))?;
        std::fs::rename(&aside, &path).map_err(io("could not rename", &aside))?;
        match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => sync(Path::new(".")),
            Some(parent) => sync(parent),
            None => Ok(()),
        }
    }

    /// Takes away what has come so far; the error that led here says more than one of this.
    fn discard(self) {
        match self {
            Target::Archive { aside, .. } => drop(std::fs::remove_file(aside)),
            Target::Directory(path) => super::restore::clear(&path),
        }
    }
}

/// Runs `archipel backup`; what to tell the person.
pub fn run(args: &BackupArgs) -> Result<String, BackupError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io("could not start", Path::new("a runtime")))?;
    let mut target = Target::open(&args.to)?;
    match runtime.block_on(receive(&args.url, &mut target)) {
        Ok(unpacked) => {
            target.keep()?;
            Ok(format!(
                "backup of {} files, {:.1} MB, in {}",
                unpacked.files,
                unpacked.bytes as f64 / 1e6,
                args.to.display()
            ))
        }
        Err(error) => {
            target.discard();
            Err(error)
        }
    }
}

fn told(error: &tokio_postgres::Error) -> BackupError {
    match error.as_db_error() {
        Some(error) => {
            BackupError::Server { state: error.code().code().to_owned(), message: error.message().to_owned() }
        }
        None => BackupError::Lost(error.to_string()),
    }
}

async fn receive(url: &str, target: &mut Target) -> Result<Unpacked, BackupError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .map_err(|error| BackupError::Connect { url: url.to_owned(), reason: error.to_string() })?;
    // It ends with the client; errors surface in the client's own calls.
    tokio::spawn(connection);
    let pieces = client.copy_out("BASE_BACKUP").await.map_err(|error| told(&error))?;
    let mut pieces = std::pin::pin!(pieces);
    let mut unpacker = target.unpacker();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| told(&error))?;
        unpacker.feed(&piece)?;
        target.write(&piece)?;
    }
    unpacker.finish()
}
