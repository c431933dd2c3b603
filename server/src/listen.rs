//! Where clients come in: TCP addresses, and Unix sockets as PostgreSQL has them.
//!
//! A Unix socket is the file `.s.PGSQL.PORT` in a directory of `unix_socket_directories`, beside a
//! lock file with the server's process number. Who may come in through it the file's rights say
//! (`unix_socket_permissions`, `unix_socket_group`): nobody is asked for a password there unless `pg_hba.conf` says
//! so, and they leave out everybody but the server's own user and group, where PostgreSQL's let everybody
//! ask. A socket whose owner is gone is replaced; one whose owner lives is left alone, a PostgreSQL server's
//! too, which writes and honours the same lock files. Both files go when the server stops.

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
    #[error("cannot listen on \"{name}\": {reason}")]
    Unresolved { name: String, reason: String },
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
        // One socket for each family, as in PostgreSQL: all addresses are two sockets.
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    };
    open().map_err(failed)
}

/// Who may connect to a Unix socket.
#[derive(Clone, Copy, Debug)]
pub struct SocketAccess {
    /// The rights of its file.
    pub mode: u32,
    /// The group that it is given to; `None`: the server's own.
    pub group: Option<u32>,
}

impl SocketAccess {
    /// From the settings `unix_socket_permissions` (octal) and `unix_socket_group` (a name or a
    /// number); says what is wrong with them.
    pub fn of_settings(permissions: &str, group: &str) -> Result<SocketAccess, String> {
        let mode = u32::from_str_radix(permissions, 8)
            .ok()
            .filter(|mode| *mode <= 0o777)
            .ok_or_else(|| format!("unix_socket_permissions is not a file mode: \"{permissions}\""))?;
        let group = match group {
            "" => None,
            name => Some(group_number(name).ok_or_else(|| format!("group \"{name}\" does not exist"))?),
        };
        Ok(SocketAccess { mode, group })
    }
}

/// The number of a group of this machine.
fn group_number(name: &str) -> Option<u32> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let named = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    });
    named.or_else(|| name.parse().ok())
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
pub fn unix(
    directory: &Path,
    port: u16,
    data_directory: &Path,
    access: SocketAccess,
) -> Result<(Socket, SocketFile), ListenError> {
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
        // Nobody can connect before it listens.
        if let Some(group) = access.group {
            std::os::unix::fs::chown(&path, None, Some(group))?;
        }
        fs::set_permissions(&path, Permissions::from_mode(access.mode))?;
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

    const OWN: SocketAccess = SocketAccess { mode: 0o770, group: None };

    #[test]
    fn settings_say_who_may_connect() {
        let access = SocketAccess::of_settings("0770", "").unwrap();
        assert_eq!((access.mode, access.group), (0o770, None));
        assert_eq!(SocketAccess::of_settings("700", "root").unwrap().group, Some(0));
        assert_eq!(SocketAccess::of_settings("700", "1234").unwrap().group, Some(1234));
        for (permissions, group) in [("rwx", ""), ("1777", ""), ("0770", "no such group")] {
            assert!(SocketAccess::of_settings(permissions, group).is_err(), "{permissions} {group}");
        }
    }

    #[test]
    fn a_socket_in_use_is_refused_and_one_left_behind_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let data = Path::new("/data");
        let lock = folder.path().join(".s.PGSQL.5999.lock");
        // A living process: the one that started this test is excused, the first process is not.
        fs::write(&lock, "1\n/elsewhere\n").unwrap();
        let refused = unix(folder.path(), 5999, data, OWN).unwrap_err();
        assert!(matches!(refused, ListenError::SocketInUse { owner: Some(1), .. }), "{refused}");
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        fs::write(&lock, format!("{}\n/elsewhere\n", gone.id())).unwrap();
        fs::write(folder.path().join(".s.PGSQL.5999"), "").unwrap();
        let (_socket, file) = unix(folder.path(), 5999, data, OWN).unwrap();
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o7777, 0o770);
        std::os::unix::net::UnixStream::connect(file.path()).unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_path_that_is_too_long_and_a_missing_directory_are_errors() {
        let long = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        assert!(matches!(unix(&long, 1, Path::new(""), OWN), Err(ListenError::Socket { .. })));
        let missing = Path::new("/nonexistent/directory");
        assert!(matches!(unix(missing, 1, Path::new(""), OWN), Err(ListenError::Socket { .. })));
    }
}
