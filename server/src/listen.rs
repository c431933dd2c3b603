//! Where clients come in: TCP addresses, and Unix sockets as PostgreSQL has them.
//!
//! A Unix socket is the file `.s.PGSQL.PORT` in a directory of `unix_socket_directories`, open
//! to everybody (mode 0777, PostgreSQL's default), beside a lock file with the server's process
//! number. A socket whose owner is gone is replaced; one whose owner lives is left alone, a
//! PostgreSQL server's too, which writes and honours the same lock files. Both files go when the
//! server stops.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Connections the kernel may hold for us.
const BACKLOG: i32 = 1024;

/// Attempts to replace lock files that other servers keep leaving behind.
const LOCK_ATTEMPTS_MAX: u32 = 10;

/// Why clients cannot come in.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen on {address}: the address is in use")]
    AddressInUse { address: SocketAddr },
    #[error("cannot listen on {address}: {source}")]
    Address { address: SocketAddr, source: io::Error },
    #[error("cannot listen on the Unix socket \"{}\": it is in use by another server{}", path.display(), owner.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    SocketInUse { path: PathBuf, owner: Option<i32> },
    #[error("cannot listen on the Unix socket \"{}\": {source}", path.display())]
    Socket { path: PathBuf, source: io::Error },
}

/// A listening TCP socket.
pub fn tcp(address: SocketAddr) -> Result<Socket, ListenError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::AddressInUse { address },
        _ => ListenError::Address { address, source },
    };
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart need not wait for connections of the last run to fade.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    };
    open().map_err(failed)
}

/// The files of a Unix socket; removed when dropped.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    lock: PathBuf,
}

impl SocketFile {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The lock goes last: who holds it may replace the socket.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.lock);
    }
}

/// A listening Unix socket for `port` in `directory`, and its files.
pub fn unix(directory: &Path, port: u16, data_directory: &Path) -> Result<(Socket, SocketFile), ListenError> {
    let path = directory.join(format!(".s.PGSQL.{port}"));
    let failed = |source: io::Error| ListenError::Socket { path: path.clone(), source };
    let address = SockAddr::unix(&path).map_err(failed)?;
    let lock = directory.join(format!(".s.PGSQL.{port}.lock"));
    // As PostgreSQL's: its lines are read by PostgreSQL's tools and servers.
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let content = format!(
        "{}\n{}\n{}\n{port}\n{}\n",
        std::process::id(),
        data_directory.display(),
        started.as_secs(),
        directory.display()
    );
    take_lock(&lock, &content).map_err(|error| match error {
        Taken::By(owner) => ListenError::SocketInUse { path: path.clone(), owner },
        Taken::Failed(source) => failed(source),
    })?;
    let file = SocketFile { path: path.clone(), lock };
    let open = || {
        // The lock is ours, so nobody serves this socket any more.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address)?;
        fs::set_permissions(&path, Permissions::from_mode(0o777))?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    };
    open().map(|socket| (socket, file)).map_err(failed)
}

enum Taken {
    By(Option<i32>),
    Failed(io::Error),
}

fn take_lock(lock: &Path, content: &str) -> Result<(), Taken> {
    for _ in 0..LOCK_ATTEMPTS_MAX {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(lock) {
            Ok(mut file) => {
                return file.write_all(content.as_bytes()).map_err(|error| {
                    let _ = fs::remove_file(lock);
                    Taken::Failed(error)
                });
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(Taken::Failed(error)),
            Err(_) => {}
        }
        let text = match fs::read_to_string(lock) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(Taken::By(None)),
            Err(error) => return Err(Taken::Failed(error)),
        };
        // PostgreSQL writes a minus before the number of a standalone backend.
        let owner = text.lines().next().and_then(|line| line.trim().parse::<i32>().ok()).map(i32::abs);
        match owner {
            Some(owner) if lives(owner) => return Err(Taken::By(Some(owner))),
            Some(_) => {}
            // Somebody may be about to write it.
            None => return Err(Taken::By(None)),
        }
        match fs::remove_file(lock) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Taken::Failed(error)),
            _ => {}
        }
    }
    Err(Taken::By(None))
}

/// Whether another process of this number runs. Numbers start over with a container, so our own
/// and our parent's in a file somebody left behind mean nothing.
fn lives(process: i32) -> bool {
    // SAFETY: getppid has no preconditions; kill with signal 0 sends nothing and only tells
    // whether the process exists.
    let (parent, missing) = unsafe { (libc::getppid(), libc::kill(process, 0) != 0) };
    if process == std::process::id() as i32 || process == parent {
        return false;
    }
    !missing || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_in_use_is_refused_and_one_left_behind_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let data = Path::new("/data");
        let lock = folder.path().join(".s.PGSQL.5999.lock");
        // A living process: the one that started this test is excused, the first process is not.
        fs::write(&lock, "1\n/elsewhere\n").unwrap();
        let refused = unix(folder.path(), 5999, data).unwrap_err();
        assert!(matches!(refused, ListenError::SocketInUse { owner: Some(1), .. }), "{refused}");
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        fs::write(&lock, format!("{}\n/elsewhere\n", gone.id())).unwrap();
        fs::write(folder.path().join(".s.PGSQL.5999"), "").unwrap();
        let (_socket, file) = unix(folder.path(), 5999, data).unwrap();
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o7777, 0o777);
        std::os::unix::net::UnixStream::connect(file.path()).unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_path_that_is_too_long_and_a_missing_directory_are_errors() {
        let long = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        assert!(matches!(unix(&long, 1, Path::new("")), Err(ListenError::Socket { .. })));
        let missing = Path::new("/nonexistent/directory");
        assert!(matches!(unix(missing, 1, Path::new("")), Err(ListenError::Socket { .. })));
    }
}
