//! The data directory: who may use it, and in which format it is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use archipel_engine::log::StoreError;
use archipel_engine::log::store::FORMAT;

const FORMAT_FILE: &str = "FORMAT";
const LOCK_FILE: &str = "archipel.lock";
/// The two databases.
pub(crate) const LOG: &str = "log";
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// Table files that are being written for the second.
pub(crate) const SORTED: &str = "sorted";

/// A locked directory; the lock goes with the value, or with the process.
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// Its databases are still to be made: only then may they be missing.
    pub(crate) is_new: bool,
    _lock: File,
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> StoreError {
    let message = format!("{what} {}: {error}", path.display());
    if error.kind() == ErrorKind::StorageFull {
        StoreError::Full(message)
    } else {
        StoreError::Failed(message)
    }
}

impl Directory {
    /// Creates or opens a data directory.
    pub(crate) fn open(path: &Path) -> Result<Directory, StoreError> {
        fs::create_dir_all(path).map_err(|error| failed("could not create", path, &error))?;
        let lock = lock(path)?;
        let mut directory = Directory { path: path.to_owned(), is_new: false, _lock: lock };
        directory.check_format()?;
        Ok(directory)
    }

    /// Opens a data directory that must be there.
    pub(crate) fn open_existing(path: &Path) -> Result<Directory, StoreError> {
        let format = path.join(FORMAT_FILE);
        match fs::metadata(&format) {
            Ok(_) => Directory::open(path),
            Err(error) if error.kind() == ErrorKind::NotFound && path.is_dir() => Err(StoreError::Damaged(
                format!("{} has no {FORMAT_FILE} file: it is no data directory", path.display()),
            )),
            Err(error) => Err(failed("could not read", path, &error)),
        }
    }

    /// Ends the use of a directory that nobody serves: the lock's file goes too.
    pub(crate) fn unlock(self) -> Result<(), StoreError> {
        let path = self.path.join(LOCK_FILE);
        fs::remove_file(&path).map_err(|error| failed("could not remove", &path, &error))
    }

    /// Where a database lives.
    pub(crate) fn store(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn check_format(&mut self) -> Result<(), StoreError> {
        let path = self.path.join(FORMAT_FILE);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let found = text.trim().parse().map_err(|_| {
                    StoreError::Damaged(format!("{} holds no format version", path.display()))
                })?;
                if found > FORMAT {
                    return Err(StoreError::NewerFormat { found, supported: FORMAT });
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.refuse_strangers()?;
                self.is_new = true;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(StoreError::Damaged(format!("{} holds no format version", path.display())))
            }
            Err(error) => Err(failed("could not read", &path, &error)),
        }
    }

    /// A directory without a format mark must be new: anything else in it is not ours.
    fn refuse_strangers(&self) -> Result<(), StoreError> {
        let entries =
            fs::read_dir(&self.path).map_err(|error| failed("could not read", &self.path, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed("could not read", &self.path, &error))?;
            let name = entry.file_name();
            // Databases without the mark: the first start was cut short.
            if ![LOCK_FILE, LOG, CHECKPOINT, SORTED, "lost+found"].iter().any(|known| name == *known) {
                return Err(StoreError::Damaged(format!(
                    "{} is not empty ({}) and has no {FORMAT_FILE} file",
                    self.path.display(),
                    name.to_string_lossy()
                )));
            }
        }
        Ok(())
    }

    /// Marks a new directory with the format, once its databases are there.
    pub(crate) fn mark(&mut self) -> Result<(), StoreError> {
        if self.is_new {
            let path = self.path.join(FORMAT_FILE);
            self.write_format(&path).map_err(|error| failed("could not write", &path, &error))?;
            self.is_new = false;
        }
        Ok(())
    }

    /// Written aside and renamed, so that a crash leaves no half of it.
    fn write_format(&self, path: &Path) -> std::io::Result<()> {
        let aside = self.path.join(LOCK_FILE).with_extension("format");
        let mut file = File::create(&aside)?;
        writeln!(file, "{FORMAT}")?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        File::open(&self.path)?.sync_all()
    }
}

fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join(LOCK_FILE);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| failed("could not open", &path, &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let owner = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(StoreError::InUse { path: directory.to_owned(), owner });
        }
        Err(TryLockError::Error(error)) => return Err(failed("could not lock", &path, &error)),
    }
    // The process id is for the message above only; the lock itself is the kernel's.
    let note =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    note.map_err(|error| failed("could not write", &path, &error))?;
    Ok(file)
}
