//! The addresses of `pg_hba.conf`: which clients a line is about.

use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::host_name::HostName;

/// The addresses that a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressMatch {
    All,
    /// Those of this machine.
    SameHost,
    /// Those of the networks that this machine is in.
    SameNet,
    Network {
        address: IpAddr,
        mask: IpAddr,
    },
    /// Those of a host, or of all whose names end so.
    Host(String),
}

impl AddressMatch {
    /// Whether a client of this address is meant. An IPv4 client of a socket for both is an IPv4 client.
    /// `name` is the client's, which name servers may be asked for.
    pub fn matches(&self, client: IpAddr, name: &HostName) -> bool {
        let client = client.to_canonical();
        match self {
            AddressMatch::All => true,
            AddressMatch::Host(pattern) => name.is(pattern, client),
            AddressMatch::Network { address, mask } => is_in(client, *address, *mask),
            AddressMatch::SameHost => {
                interfaces().iter().any(|(address, _)| is_in(client, *address, ones(*address)))
            }
            AddressMatch::SameNet => {
                interfaces().iter().any(|(address, mask)| is_in(client, *address, *mask))
            }
        }
    }

    /// Whether it can be about clients of other machines.
    pub fn reaches_beyond_loopback(&self) -> bool {
        let AddressMatch::Network { address, mask } = self else { return true };
        let loopback = match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(255, 0, 0, 0)),
            IpAddr::V6(_) => ones(*address),
        };
        // Every address that is meant is a loopback address where the mask leaves none of its bits open.
        !address.is_loopback() || bits(*mask) & bits(loopback) != bits(loopback)
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn is_in(client: IpAddr, address: IpAddr, mask: IpAddr) -> bool {
    client.is_ipv4() == address.is_ipv4() && (bits(client) ^ bits(address)) & bits(mask) == 0
}

fn ones(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::BROADCAST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)),
    }
}

/// The mask of so many bits, as long as an address is; `None` if it has not so many. The number is read as
/// strtol reads it.
pub fn prefix_mask(address: IpAddr, prefix: &str) -> Option<IpAddr> {
    let prefix: u32 = prefix.trim_ascii_start().parse().ok()?;
    match address {
        IpAddr::V4(_) => {
            let open = 32_u32.checked_sub(prefix)?;
            Some(IpAddr::V4(Ipv4Addr::from_bits(u32::MAX.checked_shl(open).unwrap_or(0))))
        }
        IpAddr::V6(_) => {
            let open = 128_u32.checked_sub(prefix)?;
            Some(IpAddr::V6(Ipv6Addr::from_bits(u128::MAX.checked_shl(open).unwrap_or(0))))
        }
    }
}

/// An address as the C library reads it where it asks no name server: `127.1` is one, too, and `fe80::1%eth0`.
pub fn numeric(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let text = CString::new(text).ok()?;
    // SAFETY: all-zero bytes are a value of this plain C structure, which asks for nothing.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_flags = libc::AI_NUMERICHOST;
    let mut found: *mut libc::addrinfo = std::ptr::null_mut();
    let name = text.as_ptr();
    // SAFETY: the text ends with a zero and outlives the call, no service is asked for, the hints are whole, and
    // what is written is one pointer: a list's head if the call succeeds, which is given back below.
    let failed = unsafe { libc::getaddrinfo(name, std::ptr::null(), &raw const hints, &raw mut found) };
    if failed != 0 {
        return None;
    }
    // SAFETY: getaddrinfo has succeeded: the head is null or an element that is aligned and initialized, and
    // stays so, unchanged, until the list is given back.
    let first = unsafe { found.as_ref() };
    // SAFETY: getaddrinfo sets the address to null or to one that is as long as its family has it, and aligned
    // for it, in memory of the list.
    let address = first.and_then(|first| unsafe { ip(first.ai_addr) });
    // SAFETY: the list is getaddrinfo's and is given back once; the address was copied, and nobody keeps a
    // reference into the list.
    unsafe { libc::freeaddrinfo(found) };
    address
}

/// The addresses of this machine's interfaces, with their masks.
fn interfaces() -> Vec<(IpAddr, IpAddr)> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: what is written is one pointer, whose place outlives the call: a list's head if the call succeeds,
    // which is given back below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        tracing::warn!("error enumerating network interfaces: {}", std::io::Error::last_os_error());
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: getifaddrs has succeeded: each element is aligned, initialized and unchanged until the list is given
    // back, and the last one leads to null.
    while let Some(interface) = unsafe { next.as_ref() } {
        // SAFETY: it is null (an interface may have no address), or leads to one that is as long as its family
        // has it, in memory of the list.
        let address = unsafe { ip(interface.ifa_addr) };
        // SAFETY: the same; the C library gives a mask the family of its address.
        let mask = unsafe { ip(interface.ifa_netmask) };
        if let (Some(address), Some(mask)) = (address, mask) {
            found.push((address, mask));
        }
        next = interface.ifa_next;
    }
    // SAFETY: the list is getifaddrs's and is given back once; addresses were copied, and nobody keeps a
    // reference into the list.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// The address of a socket address, if it is one of IP.
///
/// # Safety
/// `address` is null, or leads to a socket address as long as its family has it, initialized, and unchanged
/// while this runs. It need not be aligned.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: it is not null, so that by the contract a family is there, whatever it is; a copy of it needs no
    // alignment.
    let family = unsafe { (&raw const (*address).sa_family).read_unaligned() };
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: by the contract it is as long as this family has it; a copy of it needs no alignment.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::V4(Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr))))
        }
        libc::AF_INET6 => {
            // SAFETY: by the contract it is as long as this family has it; a copy of it needs no alignment.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> AddressMatch {
        let (address, prefix) = text.split_once('/').unwrap();
        let address = address.parse().unwrap();
        AddressMatch::Network { address, mask: prefix_mask(address, prefix).unwrap() }
    }

    fn is_met(of: &AddressMatch, client: &str) -> bool {
        of.matches(client.parse().unwrap(), &HostName::default())
    }

    #[test]
    fn networks_hold_their_addresses() {
        let net = network("10.1.2.3/8");
        assert!(is_met(&net, "10.200.0.1") && is_met(&net, "::ffff:10.9.9.9"));
        assert!(!is_met(&net, "11.0.0.1") && !is_met(&net, "::a01:203"));
        assert!(is_met(&network("0.0.0.0/0"), "192.0.2.1") && !is_met(&network("0.0.0.0/0"), "2001:db8::1"));
        assert!(is_met(&network("2001:db8::/32"), "2001:db8:1::1") && is_met(&network("::/0"), "::1"));
        assert!(!is_met(&network("192.0.2.1/32"), "192.0.2.2"));
        assert!(is_met(&AddressMatch::SameHost, "127.0.0.1") && is_met(&AddressMatch::SameNet, "127.9.9.9"));
        assert!(
            !is_met(&AddressMatch::SameHost, "127.9.9.9") && !is_met(&AddressMatch::SameNet, "240.0.0.1")
        );
    }

    #[test]
    fn prefixes_are_as_long_as_addresses() {
        let mask = |address: &str, prefix| {
            prefix_mask(address.parse().unwrap(), prefix).map(|mask| mask.to_string())
        };
        assert_eq!(mask("1.2.3.4", "20").as_deref(), Some("255.255.240.0"));
        assert_eq!(mask("1.2.3.4", "0").as_deref(), Some("0.0.0.0"));
        assert_eq!(mask("::1", "128").as_deref(), Some("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
        assert_eq!(mask("::1", "64").as_deref(), Some("ffff:ffff:ffff:ffff::"));
        for (address, prefix) in
            [("1.2.3.4", "33"), ("::1", "129"), ("::1", ""), ("::1", "-1"), ("::1", "8x")]
        {
            assert_eq!(mask(address, prefix), None, "{address}/{prefix}");
        }
    }

    /// As PostgreSQL 15 reads them.
    #[test]
    fn addresses_are_read_as_the_c_library_reads_them() {
        let read = |text: &str| numeric(text).map(|address| address.to_string());
        for text in ["127.0.0.1", "127.1", "0177.0.0.1", "0x7f.0.0.1", "2130706433"] {
            assert_eq!(read(text).as_deref(), Some("127.0.0.1"), "{text}");
        }
        assert_eq!(read("fe80::1%1").as_deref(), Some("fe80::1"));
        for text in ["localhost", "1.2.3.4.5", "[::1]", "1.2.3.256", "a\0"] {
            assert_eq!(read(text), None, "{text}");
        }
        let v4 = "1.2.3.4".parse().unwrap();
        for prefix in ["8", "+8", " 8", "08"] {
            assert_eq!(prefix_mask(v4, prefix), Some("255.0.0.0".parse().unwrap()), "{prefix}");
        }
    }

    #[test]
    fn loopback_is_known() {
        for loopback in ["127.0.0.1/32", "127.0.0.0/8", "127.1.0.0/16", "::1/128"] {
            assert!(!network(loopback).reaches_beyond_loopback(), "{loopback}");
        }
        for beyond in ["127.0.0.0/7", "0.0.0.0/0", "10.0.0.0/8", "::1/127", "::/0"] {
            assert!(network(beyond).reaches_beyond_loopback(), "{beyond}");
        }
        assert!(AddressMatch::All.reaches_beyond_loopback());
    }
}
