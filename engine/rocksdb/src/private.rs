//! Files and folders that nobody but their owner may read, as PostgreSQL's.
//!
//! What is made here is made so whatever the process's mask is; what RocksDB makes follows the
//! mask, which the binary sets, and lies in a folder that nobody else may enter.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use archipel_engine::log::StoreError;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Rights of a data directory that PostgreSQL refuses: it may be read by its group at most.
const TOO_MUCH: u32 = 0o027;

/// Makes a folder, and those above it, that only its owner may enter; one that is there stays as
/// it is.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Makes or empties a file that only its owner may read.
pub fn private_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)?;
    // One that was there kept its own rights.
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Takes from others what rights they have to a folder and all in it. What belongs to somebody else
/// stays as it is, and is told.
pub fn make_private(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let made = if kind.is_dir() {
            make_private(&entry.path())
        } else if kind.is_file() {
            fs::set_permissions(entry.path(), Permissions::from_mode(FILE_MODE))
        } else {
            Ok(())
        };
        if let Err(error) = made {
            tracing::warn!(%error, "the permissions of {} stay as they are", entry.path().display());
        }
    }
    Ok(())
}

/// Sees to it that others can neither read nor change a data directory. Those of earlier versions
/// were open to all: they are mended if that can be done, and refused otherwise.
pub(crate) fn require_private(directory: &Path) -> Result<(), StoreError> {
    let metadata = fs::metadata(directory).map_err(|error| {
        StoreError::Permissions(format!(
            "could not read permissions of directory \"{}\": {error}",
            directory.display()
        ))
    })?;
    let mode = metadata.mode() & 0o777;
    if mode & TOO_MUCH == 0 {
        return Ok(());
    }
    // SAFETY: geteuid only answers a number, and cannot fail.
    let user = unsafe { libc::geteuid() };
    if metadata.uid() == user || user == 0 {
        match make_private(directory) {
            Ok(()) => {
                tracing::warn!(
                    "data directory \"{}\" had permissions {mode:04o}: it has 0700 now, and its files 0600",
                    directory.display()
                );
                return Ok(());
            }
            Err(error) => tracing::warn!(%error, "{} cannot be made private", directory.display()),
        }
    }
    Err(StoreError::Permissions(format!(
        "data directory \"{}\" has invalid permissions {mode:04o}: they should be u=rwx (0700) or \
         u=rwx,g=rx (0750), and the server be started by the user that owns it",
        directory.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").mode() & 0o777
    }

    #[test]
    fn what_is_open_to_others_is_closed_with_all_in_it() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let data = place.path().join("data");
        fs::create_dir_all(data.join("inner")).expect("made");
        fs::write(data.join("inner/file"), "text").expect("written");
        for path in [&data, &data.join("inner")] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).expect("ours");
        }
        fs::set_permissions(data.join("inner/file"), Permissions::from_mode(0o644)).expect("ours");
        require_private(&data).expect("ours to mend");
        assert_eq!((mode(&data), mode(&data.join("inner"))), (0o700, 0o700));
        assert_eq!(mode(&data.join("inner/file")), 0o600);
    }

    #[test]
    fn a_group_that_may_read_stays() {
        let place = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(place.path(), Permissions::from_mode(0o750)).expect("ours");
        require_private(place.path()).expect("allowed");
        assert_eq!(mode(place.path()), 0o750);
    }

    #[test]
    fn new_files_and_folders_are_their_owners_alone() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let (folder, file) = (place.path().join("a/b"), place.path().join("file"));
        private_folder(&folder).expect("made");
        private_folder(&folder).expect("there already");
        assert_eq!((mode(&folder), mode(&place.path().join("a"))), (0o700, 0o700));
        fs::write(&file, "older").expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("ours");
        private_file(&file).expect("emptied");
        assert_eq!((mode(&file), fs::read(&file).expect("readable").len()), (0o600, 0));
    }
}
