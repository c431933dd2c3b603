//! What a file system has and takes.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes an unprivileged process may still write where `path` lies; `None` if unknown.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `path` is a terminated string and `stat` has room for the result.
    let result = unsafe { libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) };
    if result != 0 {
        return None;
    }
    // SAFETY: zeroed is a valid statvfs, and the call above has filled it.
    let stat = unsafe { stat.assume_init() };
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Whether files in this folder can be written past the page cache; some file systems in memory
/// and on networks refuse.
pub(crate) fn takes_direct_writes(folder: &Path) -> bool {
    let path = folder.join("direct.tmp");
    let opened = OpenOptions::new().write(true).create(true).custom_flags(libc::O_DIRECT).open(&path).is_ok();
    // A refusal comes after the file has been made.
    let _ = fs::remove_file(&path);
    opened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_direct_writes_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        takes_direct_writes(folder.path());
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
        assert!(!takes_direct_writes(&folder.path().join("missing")));
    }

    #[test]
    fn the_root_has_a_size() {
        assert!(free_bytes(Path::new("/")).is_some());
        assert_eq!(free_bytes(Path::new("/no/such/place")), None);
    }
}
