//! Free space of a file system.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_a_size() {
        assert!(free_bytes(Path::new("/")).is_some());
        assert_eq!(free_bytes(Path::new("/no/such/place")), None);
    }
}
