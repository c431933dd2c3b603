//! The data directory: who may use it, and in which format it is.
//!
//! | format | |
//! |---|---|
//! | 1 | the log in a folder `log`, beside nothing that says how far it goes |
//! | 2 | the log in `redo`, and a `WATERMARK` |
//! | 3 | rows may hold values of `bpchar` with their blanks, and keys over such columns without them |
//! | 4 | the system catalog's rows lie in a tree for those of several databases |
//! | 5 | the log is of transactions, behind the batches of records that it had before |
//! | 6 | the log's database has a family of parts of large transactions |
//!
//! A start brings format 1 to 2: the folder gets its new name, the watermark is made, and then the
//! mark is written; a start that is cut short in between goes on from there. (`*.log` in a folder
//! `log` is what jobs delete that clean up. The folder's name is ours to choose; the files are
//! RocksDB's, which calls them `NNNNNN.log` wherever they lie.)
//!
//! Formats 2 to 5 are brought to 6 by the mark alone, which is written before anything else is, the family of parts
//! included: no version before opens a database that has families it does not know. Every row
//! and key of 2 means the same in 3, and whoever reads the catalog sees by the trees where its rows are, and
//! puts them where they belong. A version that knows no other tree than that of before would take all tables
//! for unknown, and one that knows no transactions the batches of them for a torn end. What batches mean the
//! engine says by a mark of its own, in the log's database, which goes up once it has read all that is there.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use archipel_engine::log::{StoreError, Watermark};

use crate::private::{private_file, private_folder, require_private};
use crate::watermark::{WATERMARK, WatermarkFile};

/// The on-disk format that this version writes; it reads all below.
pub const FORMAT: u32 = 6;
/// The first one with a watermark, and with the log in [`REDO`].
const FORMAT_WITH_WATERMARK: u32 = 2;

const FORMAT_FILE: &str = "FORMAT";
const LOCK_FILE: &str = "archipel.lock";
/// The mark while it is being written.
const FORMAT_ASIDE: &str = "archipel.format";
/// The two databases.
pub(crate) const REDO: &str = "redo";
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// Table files that are being written for the second.
pub(crate) const SORTED: &str = "sorted";
/// What whoever runs a server may put into its directory before the first start: who comes in, and by
/// which certificates.
const OPERATORS_FILES: &[&str] =
    &["pg_hba.conf", "pg_ident.conf", "server.crt", "server.key", "root.crt", "root.crl"];
/// Where format 1 has the log.
const REDO_OF_FORMAT_1: &str = "log";

/// A locked directory; the lock goes with the value, or with the process.
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// Its databases are still to be made: only then may they be missing.
    pub(crate) is_new: bool,
    /// What it is marked with; of a new one what it will be.
    format: u32,
    _locks: Locks,
}

/// What keeps other servers away: a file that names who has it, and the folder, since files of locks
/// are what jobs that tidy up delete.
struct Locks {
    _file: File,
    _folder: Option<File>,
}

/// What a format mark says; `path` is for the error alone.
pub fn parse_format(text: &str, path: &Path) -> Result<u32, StoreError> {
    let number = text.strip_suffix('\n').unwrap_or(text);
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse::<u32>() {
        Ok(0) => Err(StoreError::Damaged(format!(
            "{} holds format 0, which no version has written",
            path.display()
        ))),
        Ok(found) if digits && found > FORMAT => Err(StoreError::NewerFormat { found, supported: FORMAT }),
        Ok(found) if digits => Ok(found),
        _ => Err(StoreError::Damaged(format!("{} holds no format version", path.display()))),
    }
}

pub(crate) fn failed(what: &str, path: &Path, error: &std::io::Error) -> StoreError {
    let message = format!("{what} {}: {error}", path.display());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            StoreError::Full(message)
        }
        _ => StoreError::Failed(message),
    }
}

impl Directory {
    /// Creates or opens a data directory that will be written.
    pub(crate) fn open(path: &Path) -> Result<Directory, StoreError> {
        private_folder(path).map_err(|error| failed("could not create", path, &error))?;
        let directory = Directory::locked(path)?;
        // Not before it is known to be a data directory: all in it will be made private.
        require_private(path)?;
        Ok(directory)
    }

    fn locked(path: &Path) -> Result<Directory, StoreError> {
        let locks = lock(path)?;
        let mut directory = Directory { path: path.to_owned(), is_new: false, format: FORMAT, _locks: locks };
        directory.check_format()?;
        Ok(directory)
    }

    /// Opens a data directory that must be there, and leaves it as it is.
    pub(crate) fn open_existing(path: &Path) -> Result<Directory, StoreError> {
        let format = path.join(FORMAT_FILE);
        match fs::metadata(&format) {
            Ok(_) => Directory::locked(path),
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

    /// Where the log lives; in a directory that nobody has brought up to date, where it lay.
    pub(crate) fn log(&self) -> PathBuf {
        let older = self.store(REDO_OF_FORMAT_1);
        if self.format < FORMAT_WITH_WATERMARK && older.exists() { older } else { self.store(REDO) }
    }

    /// Gives the log of an older directory its place.
    pub(crate) fn bring_up_to_date(&self) -> Result<(), StoreError> {
        let (older, now) = (self.log(), self.store(REDO));
        if older == now {
            return Ok(());
        }
        fs::rename(&older, &now).map_err(|error| failed("could not rename", &older, &error))?;
        let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
        synced.map_err(|error| failed("could not sync", &self.path, &error))?;
        tracing::info!("the log of {} lies in {REDO} from now on", self.path.display());
        Ok(())
    }

    /// The watermark that it has; `None` before there was one.
    pub(crate) fn watermark(&self, write: bool) -> Result<Option<WatermarkFile>, StoreError> {
        if self.is_new || self.format < FORMAT_WITH_WATERMARK {
            return Ok(None);
        }
        WatermarkFile::open(&self.path, write).map(Some)
    }

    fn check_format(&mut self) -> Result<(), StoreError> {
        let path = self.path.join(FORMAT_FILE);
        require_file(&path)?;
        match fs::read_to_string(&path) {
            Ok(text) => {
                self.format = parse_format(&text, &path)?;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.refuse_strangers()?;
                self.refuse_used()?;
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
            let databases = [REDO, REDO_OF_FORMAT_1, CHECKPOINT, SORTED];
            let files = [LOCK_FILE, FORMAT_ASIDE, WATERMARK, "lost+found"];
            let known = databases.iter().chain(&files).chain(OPERATORS_FILES);
            if !known.into_iter().any(|known| name == *known) {
                return Err(StoreError::Damaged(format!(
                    "{} is not empty ({}) and has no {FORMAT_FILE} file",
                    self.path.display(),
                    name.to_string_lossy()
                )));
            }
        }
        Ok(())
    }

    /// A directory whose first start was cut short has a watermark that says nothing, or none: one that
    /// says something was served, and its mark has gone. Taken for new it would get new databases
    /// where it lacks them.
    fn refuse_used(&self) -> Result<(), StoreError> {
        let watermark = WatermarkFile::open(&self.path, false).map(|file| file.newest());
        match watermark {
            Ok(watermark) if watermark != Watermark::default() => Err(self.without_mark()),
            _ => Ok(()),
        }
    }

    /// The mark of a directory that has been served is not there.
    pub(crate) fn without_mark(&self) -> StoreError {
        StoreError::Damaged(format!(
            "{} is missing, and the directory has been in use; put back the file, or restore a backup",
            self.path.join(FORMAT_FILE).display()
        ))
    }

    /// Marks a directory that is new or was brought up to date with the format, once its databases
    /// are there, and makes its watermark if it has none, which says nothing more than `first`.
    pub(crate) fn mark(&mut self, first: Watermark) -> Result<Option<WatermarkFile>, StoreError> {
        if !self.is_new && self.format == FORMAT {
            return Ok(None);
        }
        let mut made = None;
        if self.is_new || self.format < FORMAT_WITH_WATERMARK {
            // What a start left that was cut short.
            let there = WatermarkFile::open(&self.path, false).map(|file| file.newest()).unwrap_or_default();
            made = Some(WatermarkFile::create(&self.path, there.raised_to(first))?);
        }
        let path = self.path.join(FORMAT_FILE);
        self.write_format(&path).map_err(|error| failed("could not write", &path, &error))?;
        (self.is_new, self.format) = (false, FORMAT);
        Ok(made)
    }

    /// Written aside and renamed, so that a crash leaves no half of it.
    fn write_format(&self, path: &Path) -> std::io::Result<()> {
        let aside = self.path.join(FORMAT_ASIDE);
        let mut file = private_file(&aside)?;
        writeln!(file, "{FORMAT}")?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        File::open(&self.path)?.sync_all()
    }
}

/// Refuses what stands in the place of a file and is none: who opens a pipe waits for somebody to write to it,
/// and some devices never end.
pub(crate) fn require_file(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(StoreError::Damaged(format!("{} is no file", path.display()))),
        _ => Ok(()),
    }
}

/// The same of all that is in a folder, other folders aside; and links to nothing are refused: some of them
/// would be opened to be written, and some only be asked for their sizes.
pub(crate) fn require_files(folder: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_symlink() && !path.exists() {
            return Err(StoreError::Damaged(format!("{} is a link to nothing", path.display())));
        }
        if !path.is_dir() {
            require_file(&path)?;
        }
    }
    Ok(())
}

fn lock(directory: &Path) -> Result<Locks, StoreError> {
    let path = directory.join(LOCK_FILE);
    require_file(&path)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
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
    let folder = lock_folder(directory)?;
    // The process id is for the message above only; the lock itself is the kernel's.
    let note =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    note.map_err(|error| failed("could not write", &path, &error))?;
    Ok(Locks { _file: file, _folder: folder })
}

/// Locks the folder itself, where the file system can do that.
fn lock_folder(directory: &Path) -> Result<Option<File>, StoreError> {
    let folder = File::open(directory).map_err(|error| failed("could not open", directory, &error))?;
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: directory.to_owned(), owner: None }),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}
