//! Host names in `pg_hba.conf`: a client has the name that its address has, if that name has its address.
//!
//! Name servers are asked, at most once each way for one client, and may take their time: on a thread that
//! may wait.

use std::ffi::CStr;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::OnceLock;

/// Bytes of a name, with the zero behind it (NI_MAXHOST).
const NAME_BYTES_MAX: usize = 1025;

/// What name servers say of one client.
#[derive(Default)]
pub struct HostName {
    name: OnceLock<Option<String>>,
    /// Whether the name leads back to the address.
    confirmed: OnceLock<bool>,
}

impl HostName {
    /// Whether the client at this address has this name, or one that ends so if it begins with a dot
    /// (check_hostname).
    pub fn is(&self, pattern: &str, client: IpAddr) -> bool {
        let Some(name) = self.name.get_or_init(|| name_of(client)) else { return false };
        fits(pattern, name) && *self.confirmed.get_or_init(|| has_address(name, client))
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    let same = |name: &[u8]| name.eq_ignore_ascii_case(pattern.as_bytes());
    match name.len().checked_sub(pattern.len()) {
        Some(before) if pattern.starts_with('.') => same(&name.as_bytes()[before..]),
        _ => same(name.as_bytes()),
    }
}

fn has_address(name: &str, client: IpAddr) -> bool {
    (name, 0).to_socket_addrs().is_ok_and(|mut found| found.any(|address| address.ip() == client))
}

/// The name of an address; none without one.
fn name_of(client: IpAddr) -> Option<String> {
    let address = socket2::SockAddr::from(SocketAddr::new(client, 0));
    let mut name = [0 as libc::c_char; NAME_BYTES_MAX];
    // SAFETY: the address is as long as is told, the name goes into the room whose length is told, and no
    // service is asked for.
    let failed = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            name.as_mut_ptr(),
            NAME_BYTES_MAX as libc::socklen_t,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if failed != 0 {
        return None;
    }
    // SAFETY: getnameinfo ends the name with a zero, within the room.
    unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_whole_or_by_their_ends() {
        assert!(fits("db.example.com", "DB.example.com") && !fits("example.com", "db.example.com"));
        assert!(fits(".example.com", "db.Example.com") && fits(".example.com", ".example.com"));
        assert!(!fits(".example.com", "example.com") && !fits(".example.com", "x.example.org"));
    }

    /// The machine itself knows this one, without a name server.
    #[test]
    fn loopback_has_its_own_name_alone() {
        let client = "127.0.0.1".parse().unwrap();
        assert!(!HostName::default().is("db.example.com", client));
        let name = name_of(client);
        assert!(name.is_none_or(|name| HostName::default().is(&name, client) == has_address(&name, client)));
    }
}
