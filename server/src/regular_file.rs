//! Files that settings name: regular ones, and no longer than they may be. A pipe would hold up whoever
//! reads it, and a device may have no end.

use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The bytes of a file that has at most so many.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    // To open a pipe would wait for somebody who writes to it.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let facts = file.metadata()?;
    if facts.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !facts.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    // Whatever its length is said to be, it may grow.
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_bounded_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read(folder.path(), 5).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(read(&folder.path().join("none"), 5).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(read(Path::new("/dev/zero"), 5).unwrap_err().to_string(), "not a regular file");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // At once, though nobody writes to it.
        assert_eq!(read(&pipe, 5).unwrap_err().to_string(), "not a regular file");
    }
}
