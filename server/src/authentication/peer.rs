//! Who is at the other end of a Unix socket, as the operating system says.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::wire::socket::Socket;

/// Bytes of an entry in the list of users, at most.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// The number of the user that connected (getpeereid).
pub fn user_id(socket: &Socket) -> io::Result<u32> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes into the structure that
    // is as long.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(credentials.uid)
}

/// The name of a user of this machine; says why there is none. It may ask other machines.
pub fn user_name(id: u32) -> Result<String, String> {
    let failed = |reason: String| format!("could not look up local user ID {id}: {reason}");
    let mut room = vec![0_u8; 1024];
    loop {
        // SAFETY: zeros are a valid entry: its pointers are null.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found: *mut libc::passwd = std::ptr::null_mut();
        // SAFETY: all pointers are to what lives here, and the texts go into the room, whose length is told.
        let error = unsafe {
            libc::getpwuid_r(id, &raw mut entry, room.as_mut_ptr().cast(), room.len(), &raw mut found)
        };
        match error {
            libc::ERANGE if room.len() < ENTRY_BYTES_MAX => room.resize(room.len() * 4, 0),
            0 if found.is_null() => return Err(format!("local user with ID {id} does not exist")),
            0 => {
                // SAFETY: the entry was found, so that its name is a text in the room.
                let name = unsafe { CStr::from_ptr(entry.pw_name) };
                return name.to_str().map(str::to_owned).map_err(|error| failed(error.to_string()));
            }
            error => return Err(failed(io::Error::from_raw_os_error(error).to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names() {
        assert_eq!(user_name(0).as_deref(), Ok("root"));
        assert_eq!(user_name(3_999_999_999).unwrap_err(), "local user with ID 3999999999 does not exist");
    }

    #[tokio::test]
    async fn the_other_end_of_a_socket_is_known() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = Socket::new(ours.into()).unwrap();
        // SAFETY: geteuid has no preconditions and touches no memory.
        assert_eq!(user_id(&socket).unwrap(), unsafe { libc::geteuid() });
    }
}
