//! Addresses of hosts and networks (network.c).

use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::{Result, SqlError, SqlState};

/// PostgreSQL's numbers of the families, on the wire and in hashes.
const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 3;

/// A value of `inet` or `cidr`: an address, and how many bits of it are the network's. Those of `cidr` have no
/// other bits set; whether a value is of the one or the other type the plan knows, as of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inet {
    address: IpAddr,
    bits: u8,
}

impl Ord for Inet {
    /// Families first, then networks, a wider one before what it contains, then hosts (network_cmp_internal).
    fn cmp(&self, other: &Inet) -> Ordering {
        // Of two networks the bits of both decide, then the lengths, and so do zeros in place of the hosts.
        let order = |inet: &Inet| (inet.address.is_ipv6(), inet.masked(), inet.bits, inet.number());
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for Inet {
    fn partial_cmp(&self, other: &Inet) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cold]
fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

#[cold]
fn different_sizes(verb: &str) -> SqlError {
    let message = format!("cannot {verb} inet values of different sizes");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Bits of an address of this one's family.
fn width_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl Inet {
    /// An address of which so many bits are the network's; `None` where it does not have as many.
    pub fn new(address: IpAddr, bits: u8) -> Option<Inet> {
        (bits <= width_of(address)).then_some(Inet { address, bits })
    }

    /// The address of one host.
    pub fn host(address: IpAddr) -> Inet {
        Inet { address, bits: width_of(address) }
    }

    /// The address, with the host's bits.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits of the network.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Bits of an address of this family: 32 or 128.
    pub fn width(&self) -> u8 {
        width_of(self.address)
    }

    /// The family's number on the wire.
    pub fn family(&self) -> u8 {
        if self.address.is_ipv4() { FAMILY_V4 } else { FAMILY_V6 }
    }

    /// The address of a family's number and its bytes, 4 or 16; `None` for others.
    pub fn of_wire(family: u8, bits: u8, bytes: &[u8]) -> Option<Inet> {
        let address = match family {
            FAMILY_V4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
            FAMILY_V6 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
            _ => return None,
        };
        Inet::new(address, bits)
    }

    /// Bits of the addresses of a family by its number on the wire.
    pub fn width_of_family(family: u8) -> Option<u8> {
        match family {
            FAMILY_V4 => Some(32),
            FAMILY_V6 => Some(128),
            _ => None,
        }
    }

    /// Appends the address, 4 bytes or 16.
    pub fn write_address(&self, out: &mut Vec<u8>) {
        match self.address {
            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
        }
    }

    /// Family, bits and address: what PostgreSQL stores behind the length, and hashes.
    pub fn stored(&self) -> Vec<u8> {
        let mut bytes = vec![self.family(), self.bits];
        self.write_address(&mut bytes);
        bytes
    }

    fn number(&self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        }
    }

    /// An address of this family.
    fn with_number(&self, number: u128, bits: u8) -> Inet {
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(number as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
        };
        Inet { address, bits }
    }

    /// All bits of an address of this family.
    fn every_bit(&self) -> u128 {
        u128::MAX >> (128 - self.width())
    }

    /// The bits that are a network's of so many.
    fn mask(&self, bits: u8) -> u128 {
        let hosts = u32::from(self.width() - bits.min(self.width()));
        self.every_bit() & u128::MAX.checked_shl(hosts).unwrap_or(0)
    }

    /// The address with zeros in place of the host.
    fn masked(&self) -> u128 {
        self.number() & self.mask(self.bits)
    }

    /// Whether no bit behind the network's is set, as in every value of `cidr`.
    pub fn is_network(&self) -> bool {
        self.number() == self.masked()
    }

    /// The network that the address is in.
    pub fn network(&self) -> Inet {
        self.with_number(self.masked(), self.bits)
    }

    /// The last address of the network, with its length.
    pub fn broadcast(&self) -> Inet {
        self.with_number(self.number() | !self.mask(self.bits) & self.every_bit(), self.bits)
    }

    /// The mask of the network, as an address.
    pub fn netmask(&self) -> Inet {
        self.with_number(self.mask(self.bits), self.width())
    }

    /// The mask of the hosts, as an address.
    pub fn hostmask(&self) -> Inet {
        self.with_number(!self.mask(self.bits) & self.every_bit(), self.width())
    }

    /// The address with another length of its network; -1 is the longest.
    ///
    /// Errors: 22023 for a length that the family does not have.
    pub fn with_mask_length(&self, bits: i32) -> Result<Inet> {
        let wanted = if bits == -1 { Some(self.width()) } else { u8::try_from(bits).ok() };
        wanted.and_then(|bits| Inet::new(self.address, bits)).ok_or_else(|| {
            let message = format!("invalid mask length: {bits}");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        })
    }

    /// Whether both are of IPv4, or both of IPv6.
    pub fn is_same_family(&self, other: &Inet) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4()
    }

    /// Whether the first bits of two addresses of one family are the same.
    fn shares(&self, other: &Inet, bits: u8) -> bool {
        self.is_same_family(other) && (self.number() ^ other.number()) & self.mask(bits) == 0
    }

    /// Whether this network contains another, or is it.
    pub fn contains_or_equals(&self, other: &Inet) -> bool {
        self.bits <= other.bits && self.shares(other, self.bits)
    }

    /// Whether this network contains another that is not as wide.
    pub fn contains(&self, other: &Inet) -> bool {
        self.bits < other.bits && self.shares(other, self.bits)
    }

    /// Whether one of two networks contains the other.
    pub fn overlaps(&self, other: &Inet) -> bool {
        self.shares(other, self.bits.min(other.bits))
    }

    /// The smallest network that both are in (22023 for other families).
    pub fn merged(&self, other: &Inet) -> Result<Inet> {
        if !self.is_same_family(other) {
            let message = "cannot merge addresses from different families";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let shorter = self.bits.min(other.bits);
        let differing = (self.number() ^ other.number()) & self.mask(shorter);
        // Zeros before the first bit of the address are none of it.
        let alike = differing.leading_zeros() as u8 - (128 - self.width());
        Ok(Inet { address: self.address, bits: shorter.min(alike) }.network())
    }

    /// Every bit the other way.
    pub fn inverted(&self) -> Inet {
        self.with_number(!self.number() & self.every_bit(), self.bits)
    }

    /// The bits that both have; the longer network (22023 for other families).
    pub fn and(&self, other: &Inet) -> Result<Inet> {
        self.combined(other, "AND", |a, b| a & b)
    }

    /// The bits that either has; the longer network (22023 for other families).
    pub fn or(&self, other: &Inet) -> Result<Inet> {
        self.combined(other, "OR", |a, b| a | b)
    }

    fn combined(&self, other: &Inet, verb: &str, combine: fn(u128, u128) -> u128) -> Result<Inet> {
        match self.is_same_family(other) {
            true => Ok(self.with_number(combine(self.number(), other.number()), self.bits.max(other.bits))),
            false => Err(different_sizes(verb)),
        }
    }

    /// The address so many behind this one (22003 where there is none).
    pub fn plus(&self, distance: i64) -> Result<Inet> {
        let sum = self.number().checked_add_signed(i128::from(distance));
        let sum = sum.filter(|sum| *sum <= self.every_bit()).ok_or_else(out_of_range)?;
        Ok(self.with_number(sum, self.bits))
    }

    /// How far this address is behind another.
    ///
    /// Errors: 22023 for other families, 22003 for what no `bigint` holds.
    pub fn distance(&self, other: &Inet) -> Result<i64> {
        if !self.is_same_family(other) {
            return Err(different_sizes("subtract"));
        }
        // What is as far as half the addresses counts as before it, as there.
        i64::try_from(self.number().wrapping_sub(other.number()) as i128).map_err(|_| out_of_range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inet(text: &str) -> Inet {
        Inet::parse(text, false).unwrap()
    }

    #[test]
    fn networks_come_before_what_they_contain() {
        let sorted = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.1.2.3/8",
            "10.0.0.0/16",
            "10.0.0.0",
            "10.1.0.0/16",
            "11.0.0.0/8",
            "::/0",
            "::1",
            "8000::/1",
        ];
        for pair in sorted.windows(2) {
            assert!(inet(pair[0]) < inet(pair[1]), "{} < {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn parts_of_a_network() {
        let address = inet("10.1.2.3/12");
        assert_eq!(address.network(), inet("10.0.0.0/12"));
        assert_eq!(address.broadcast(), inet("10.15.255.255/12"));
        assert_eq!(address.netmask(), inet("255.240.0.0"));
        assert_eq!(address.hostmask(), inet("0.15.255.255"));
        assert_eq!(inet("::5/0").netmask(), inet("::"));
        assert_eq!(inet("::5/0").network(), inet("::/0"));
        assert_eq!(inet("1.2.3.4").hostmask(), inet("0.0.0.0"));
        assert_eq!(inet("::/0").broadcast(), inet("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/0"));
    }

    #[test]
    fn networks_merge_to_what_contains_both() {
        let merged = |a: &str, b: &str| inet(a).merged(&inet(b)).unwrap();
        assert_eq!(merged("192.168.1.5/24", "192.168.2.5/24"), inet("192.168.0.0/22"));
        assert_eq!(merged("1.2.3.4", "1.2.3.4"), inet("1.2.3.4"));
        assert_eq!(merged("::", "8000::"), inet("::/0"));
        assert_eq!(merged("::/0", "::1"), inet("::/0"));
        assert!(inet("1.2.3.4").merged(&inet("::")).is_err());
    }

    #[test]
    fn addresses_are_counted() {
        assert_eq!(inet("127.0.0.1").plus(256).unwrap(), inet("127.0.1.1"));
        assert_eq!(inet("::1").plus(-1).unwrap(), inet("::"));
        assert_eq!(inet("255.255.255.255").plus(1).unwrap_err().message(), "result is out of range");
        assert!(inet("::").plus(-1).is_err());
        assert_eq!(inet("10.0.0.1").distance(&inet("10.0.1.0")).unwrap(), -255);
        assert!(inet("2::").distance(&inet("1::")).is_err());
    }
}
