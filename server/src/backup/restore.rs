//! `archipel restore`: a backup becomes a data directory, checked on the way.

use std::path::{Path, PathBuf};

use archipel_engine::log::StoreError;
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
    // A damaged archive, or one that no server of this version could use, is told before anything is
    // written.
    let mut checker = Unpacker::new(None);
    feed_file(&args.from, &mut checker)?;
    let format = checker.format();
    checker.finish()?;
    require_format(format.as_deref())?;
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

/// Takes only what a server of this version can be started on; it brings an older format up to date.
fn require_format(mark: Option<&[u8]>) -> Result<(), BackupError> {
    let Some(mark) = mark else {
        return Err(BackupError::Damaged(
            "it has no FORMAT file: it is no backup of a data directory".into(),
        ));
    };
    let text = String::from_utf8_lossy(mark);
    match archipel_rocksdb::parse_format(&text, Path::new("FORMAT")) {
        Ok(_) => Ok(()),
        Err(StoreError::Damaged(told)) => Err(BackupError::Damaged(told)),
        Err(error) => Err(BackupError::NewerFormat(error.to_string())),
    }
}

/// Makes a directory that nobody else may read, or accepts an empty one and makes it so.
pub(super) fn empty_directory(path: &Path) -> Result<(), BackupError> {
    archipel_rocksdb::private_folder(path).map_err(io("could not create", path))?;
    let mut entries = std::fs::read_dir(path).map_err(io("could not read", path))?;
    match entries.next() {
        None => archipel_rocksdb::make_private(path).map_err(io("could not change permissions of", path)),
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

#[cfg(test)]
mod tests {
    use super::super::archive::{MANIFEST, Manifest, end, header, padding};
    use super::*;

    /// A whole archive of these files.
    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut manifest = Manifest::default();
        for (name, body) in files {
            manifest.add(name, body.len() as u64, crc32c::crc32c(body));
        }
        let seal = manifest.seal();
        for (name, body) in files.iter().copied().chain([(MANIFEST, seal.as_bytes())]) {
            bytes.extend_from_slice(&header(name, body.len() as u64));
            bytes.extend_from_slice(body);
            bytes.resize(bytes.len() + padding(body.len() as u64), 0);
        }
        bytes.extend_from_slice(&end());
        bytes
    }

    #[test]
    fn only_formats_that_this_version_knows_are_restored() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let args = RestoreArgs { from: place.path().join("backup.tar"), data_dir: place.path().join("data") };
        let restore = |files: &[(&str, &[u8])]| {
            std::fs::write(&args.from, archive(files)).expect("written");
            run(&args)
        };
        for mark in ["99\n", "4294967295\n"] {
            let newer = restore(&[("FORMAT", mark.as_bytes()), ("redo/CURRENT", &b"x"[..])]);
            assert!(matches!(newer, Err(BackupError::NewerFormat(_))), "{newer:?}");
        }
        for mark in ["", "0\n", "x", "99999999999\n", "1 or 2"] {
            let garbled = restore(&[("FORMAT", mark.as_bytes()), ("redo/CURRENT", &b"x"[..])]);
            assert!(matches!(garbled, Err(BackupError::Damaged(_))), "{mark:?}: {garbled:?}");
        }
        let unmarked = restore(&[("redo/CURRENT", &b"x"[..])]);
        assert!(matches!(unmarked, Err(BackupError::Damaged(_))), "{unmarked:?}");
        assert!(!args.data_dir.exists(), "nothing was made");
        let _ = restore(&[("FORMAT", &b"1\n"[..]), ("log/CURRENT", b"x")]).expect("an older one is restored");
        let kept = std::fs::read_to_string(args.data_dir.join("FORMAT")).expect("readable");
        assert_eq!(kept, "1\n", "the next start brings it up to date");
    }

    #[test]
    fn nobody_else_reads_what_was_restored() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().expect("a temporary folder");
        let args = RestoreArgs { from: place.path().join("backup.tar"), data_dir: place.path().join("data") };
        std::fs::write(&args.from, archive(&[("FORMAT", &b"2\n"[..]), ("redo/CURRENT", b"x")]))
            .expect("written");
        std::fs::create_dir(&args.data_dir).expect("made");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&args.data_dir, open).expect("ours");
        run(&args).expect("restored");
        let mode = |name: &str| {
            let metadata = std::fs::metadata(args.data_dir.join(name)).expect("it is there");
            metadata.permissions().mode() & 0o777
        };
        assert_eq!((mode(""), mode("redo"), mode("redo/CURRENT")), (0o700, 0o700, 0o600));
    }
}
