//! `archipel restore`: a backup becomes a data directory, checked on the way.

use std::path::{Path, PathBuf};

use clap::Args;

use super::archive::{Unpacker, feed_file};
use super::{BackupError, io};

/// Make a data directory from a backup.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The archive that `archipel backup --to FILE.tar` has made.
    #[arg(long, value_name = "FILE.tar")]
    from: PathBuf,
    /// The new data directory; it must be empty or not exist.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

/// Runs `archipel restore`; what to tell the person.
pub fn run(args: &RestoreArgs) -> Result<String, BackupError> {
    // A damaged archive is told before anything is written.
    let mut checker = Unpacker::new(None);
    feed_file(&args.from, &mut checker)?;
    checker.finish()?;
    empty_directory(&args.data_dir)?;
    let mut unpacker = Unpacker::new(Some(args.data_dir.clone()));
    let unpacked = feed_file(&args.from, &mut unpacker).and_then(|()| unpacker.finish());
    match unpacked {
        Ok(unpacked) => Ok(format!(
            "restored {} files, {:.1} MB, to {}",
            unpacked.files,
            unpacked.bytes as f64 / 1e6,
            args.data_dir.display()
        )),
        Err(error) => {
            clear(&args.data_dir);
            Err(error)
        }
    }
}

/// Makes a directory, or accepts an empty one.
pub(super) fn empty_directory(path: &Path) -> Result<(), BackupError> {
    std::fs::create_dir_all(path).map_err(io("could not create", path))?;
    let mut entries = std::fs::read_dir(path).map_err(io("could not read", path))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(BackupError::NotEmpty(path.to_owned())),
    }
}

/// Empties a directory that was empty before.
pub(super) fn clear(path: &Path) {
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let gone = match entry.path() {
            path if path.is_dir() => std::fs::remove_dir_all(path),
            path => std::fs::remove_file(path),
        };
        if let Err(error) = gone {
            eprintln!("archipel: {} could not be removed: {error}", entry.path().display());
        }
    }
}
