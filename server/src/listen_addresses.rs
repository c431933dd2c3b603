//! The TCP addresses that the server listens on: those of `listen_addresses`, all at one port, as PostgreSQL
//! has it (section 20.3.1). `*` are all addresses, `0.0.0.0` all of IPv4 and `::` all of IPv6; a name is
//! every address that it leads to; none at all leaves the Unix sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use socket2::Socket;

use crate::listen::{ListenError, tcp};

/// So many are listened on, as in PostgreSQL (MAXLISTEN).
const ADDRESSES_MAX: usize = 64;

/// Addresses or names as they are written, and their port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddresses {
    hosts: Vec<String>,
    /// 0: any that is free.
    pub port: u16,
}

impl Default for ListenAddresses {
    fn default() -> ListenAddresses {
        ListenAddresses { hosts: vec![Ipv4Addr::LOCALHOST.to_string()], port: 5432 }
    }
}

impl ListenAddresses {
    /// Reads `--listen`: `ADDRESS:PORT`, or several with commas between, all with one port. IPv6 addresses are
    /// in brackets. Says what is wrong with it.
    pub fn parse(text: &str) -> Result<ListenAddresses, String> {
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        for part in text.split(',').map(str::trim) {
            let (host, port) =
                part.rsplit_once(':').ok_or_else(|| format!("\"{part}\" is not ADDRESS:PORT"))?;
            let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            if bracketed.is_none() && host.contains(':') {
                return Err(format!("\"{part}\" is not ADDRESS:PORT (IPv6 addresses are in brackets)"));
            }
            let port: u16 = port.parse().map_err(|_| format!("\"{part}\" is not ADDRESS:PORT"))?;
            hosts.push(checked(bracketed.unwrap_or(host))?);
            ports.push(port);
        }
        let port = ports.first().copied().unwrap_or_default();
        if ports.iter().any(|other| *other != port) {
            return Err(format!("\"{text}\" has more than one port"));
        }
        ListenAddresses { hosts, port }.bounded()
    }

    /// Takes the addresses of `listen_addresses`. Says what is wrong with them.
    pub fn set_hosts(&mut self, text: &str) -> Result<(), String> {
        let parts = text.split(',').map(|part| part.trim().trim_matches('"'));
        let hosts = match text.trim() {
            "" => Vec::new(),
            _ => parts.map(checked).collect::<Result<_, _>>()?,
        };
        *self = ListenAddresses { hosts, port: self.port }.bounded()?;
        Ok(())
    }

    /// The same at this port.
    pub fn with_port(self, port: u16) -> ListenAddresses {
        ListenAddresses { port, ..self }
    }

    fn bounded(self) -> Result<ListenAddresses, String> {
        if self.hosts.len() > ADDRESSES_MAX {
            return Err(format!("there are more than {ADDRESSES_MAX} addresses"));
        }
        Ok(self)
    }

    /// As `listen_addresses` shows them.
    pub fn shown(&self) -> String {
        self.hosts.join(",")
    }

    /// The listening sockets and their addresses. Of several addresses one that cannot be had is told to the
    /// log as long as there is another one, as in PostgreSQL.
    pub fn open(&self) -> Result<Vec<(Socket, SocketAddr)>, ListenError> {
        let mut opened: Vec<(Socket, SocketAddr)> = Vec::new();
        let mut failed = None;
        for host in &self.hosts {
            if let Err(error) = self.open_host(host, &mut opened) {
                tracing::warn!("{error}");
                failed.get_or_insert(error);
            }
        }
        match failed {
            Some(error) if opened.is_empty() => Err(error),
            _ => Ok(opened),
        }
    }

    /// Opens what a host leads to; an error if none of that can be had.
    fn open_host(&self, host: &str, opened: &mut Vec<(Socket, SocketAddr)>) -> Result<(), ListenError> {
        let (mut failed, mut listens) = (None, false);
        for ip in resolved(host)? {
            // All of them at the port that was found for the first.
            let port = opened.first().map_or(self.port, |(_, first)| first.port());
            let address = SocketAddr::new(ip, port);
            if opened.iter().any(|(_, other)| *other == address) {
                listens = true;
                continue;
            }
            match tcp(address) {
                Ok(socket) => {
                    let bound = socket.local_addr().ok().and_then(|bound| bound.as_socket());
                    opened.push((socket, bound.unwrap_or(address)));
                    listens = true;
                }
                Err(error) => {
                    tracing::debug!("{error}");
                    failed.get_or_insert(error);
                }
            }
        }
        match failed {
            Some(error) if !listens => Err(error),
            _ => Ok(()),
        }
    }
}

/// A host as it may be written.
fn checked(host: &str) -> Result<String, String> {
    let is_name = |host: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        !host.is_empty() && host.bytes().all(is_part)
    };
    if host == "*" || host.parse::<IpAddr>().is_ok() || is_name(host) {
        return Ok(host.to_owned());
    }
    Err(format!("\"{host}\" is neither an address nor a name of one"))
}

/// The addresses of a host. Name servers may be asked.
fn resolved(host: &str) -> Result<Vec<IpAddr>, ListenError> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    Ok(match host {
        "*" => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
        "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        name => {
            let unresolved = |reason: String| ListenError::Unresolved { name: name.to_owned(), reason };
            let found = (name, 0).to_socket_addrs().map_err(|error| unresolved(error.to_string()))?;
            found.take(ADDRESSES_MAX).map(|address| address.ip()).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_one_by_one_or_in_lists() {
        for (text, hosts, port) in [
            ("127.0.0.1:5432", "127.0.0.1", 5432),
            ("[::1]:6000", "::1", 6000),
            ("*:1", "*", 1),
            ("localhost:0, 10.0.0.1:0,[fd00::1]:0", "localhost,10.0.0.1,fd00::1", 0),
        ] {
            let read = ListenAddresses::parse(text).unwrap();
            assert_eq!((read.shown().as_str(), read.port), (hosts, port), "{text}");
        }
        for text in ["", "127.0.0.1", "::1:5432", "a b:1", "127.0.0.1:65536", "a:1,", "a:1,b:2", "[a:1"] {
            assert!(ListenAddresses::parse(text).is_err(), "{text}");
        }
        let many = vec!["127.0.0.1:1"; ADDRESSES_MAX + 1].join(",");
        assert!(ListenAddresses::parse(&many).is_err());
    }

    #[test]
    fn a_setting_changes_the_addresses_and_leaves_the_port() {
        let mut addresses = ListenAddresses::parse("127.0.0.1:6000").unwrap();
        addresses.set_hosts(" localhost , \"::\"").unwrap();
        assert_eq!((addresses.shown().as_str(), addresses.port), ("localhost,::", 6000));
        addresses.set_hosts("").unwrap();
        assert_eq!(addresses.open().unwrap().len(), 0);
        for wrong in ["a,", ",", "a b", "127.0.0.1:5432", "[::1]"] {
            assert!(addresses.set_hosts(wrong).is_err(), "{wrong}");
        }
        assert_eq!(addresses.shown(), "", "what is wrong changes nothing");
    }

    #[test]
    fn all_are_opened_at_one_port() {
        let mut addresses = ListenAddresses::default().with_port(0);
        addresses.set_hosts("127.0.0.1,127.0.0.2,127.0.0.1").unwrap();
        let opened = addresses.open().unwrap();
        let [(_, first), (_, second)] = &opened[..] else { panic!("{opened:?}") };
        assert_eq!(
            (first.ip().to_string(), second.ip().to_string()),
            ("127.0.0.1".into(), "127.0.0.2".into())
        );
        assert!(first.port() != 0 && first.port() == second.port());
        // One that is taken is an error where it is alone, and else none.
        let taken = ListenAddresses::default().with_port(first.port());
        assert!(matches!(taken.open(), Err(ListenError::AddressInUse { .. })));
        let mut beside = taken.clone();
        beside.set_hosts("127.0.0.1,127.0.0.3").unwrap();
        assert_eq!(beside.open().unwrap().len(), 1);
        let mut nowhere = taken;
        nowhere.set_hosts("no-such-name.invalid").unwrap();
        assert!(matches!(nowhere.open(), Err(ListenError::Unresolved { .. })));
    }
}
