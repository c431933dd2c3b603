//! The wire's binary form of network addresses (network.c, mac.c, mac8.c).

use super::message::{end_of_value, next_byte};
use crate::error::{Result, SqlError, SqlState};
use crate::network::{Inet, MacAddress, MacAddress8};

#[cold]
fn invalid(what: &str, cidr: bool) -> SqlError {
    let type_name = if cidr { "cidr" } else { "inet" };
    let message = format!("invalid {what} in external \"{type_name}\" value");
    SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, message)
}

/// Some bytes of a value, and the rest (08P01 where there are too few).
fn bytes_of<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8])> {
    let (mut read, mut rest) = ([0; N], bytes);
    for byte in &mut read {
        (*byte, rest) = next_byte(rest)?;
    }
    Ok((read, rest))
}

/// Family, bits, whether it is a `cidr`, which counts for nothing, length and address.
pub(super) fn inet_recv(bytes: &[u8], cidr: bool) -> Result<Inet> {
    let (family, rest) = next_byte(bytes)?;
    let width = Inet::width_of_family(family).ok_or_else(|| invalid("address family", cidr))?;
    let (bits, rest) = next_byte(rest)?;
    if bits > width {
        return Err(invalid("bits", cidr));
    }
    let (_, rest) = next_byte(rest)?;
    let (length, rest) = next_byte(rest)?;
    if length != width / 8 {
        return Err(invalid("length", cidr));
    }
    let (address, rest) = match width {
        32 => bytes_of::<4>(rest).map(|(address, rest)| (address.to_vec(), rest))?,
        _ => bytes_of::<16>(rest).map(|(address, rest)| (address.to_vec(), rest))?,
    };
    let inet = Inet::of_wire(family, bits, &address).ok_or_else(|| invalid("length", cidr))?;
    if cidr && !inet.is_network() {
        return Err(SqlError::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "invalid external \"cidr\" value",
        )
        .with_detail("Value has bits set to right of mask."));
    }
    end_of_value(rest)?;
    Ok(inet)
}

/// Writes what [`inet_recv`] reads.
pub(super) fn inet_send(inet: &Inet, cidr: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(&[inet.family(), inet.bits(), u8::from(cidr), inet.width() / 8]);
    inet.write_address(out);
}

pub(super) fn mac_recv(bytes: &[u8]) -> Result<MacAddress> {
    let (address, rest) = bytes_of(bytes)?;
    end_of_value(rest)?;
    Ok(MacAddress(address))
}

/// Six bytes are the address that they are of eight.
pub(super) fn mac8_recv(bytes: &[u8]) -> Result<MacAddress8> {
    if let Ok(six) = bytes.try_into() {
        return Ok(MacAddress(six).widened());
    }
    let (address, rest) = bytes_of(bytes)?;
    end_of_value(rest)?;
    Ok(MacAddress8(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_come_with_their_family_and_length() {
        let mut sent = Vec::new();
        let network = Inet::parse("10.1.0.0/16", true).unwrap();
        inet_send(&network, true, &mut sent);
        assert_eq!(sent, [2, 16, 1, 4, 10, 1, 0, 0]);
        assert_eq!(inet_recv(&sent, true).unwrap(), network);
        let host = Inet::parse("::1", false).unwrap();
        sent.clear();
        inet_send(&host, false, &mut sent);
        assert_eq!(sent[..5], [3, 128, 0, 16, 0]);
        assert_eq!(inet_recv(&sent, false).unwrap(), host);
    }

    #[test]
    fn other_bytes_are_refused() {
        let refused = |bytes: &[u8], cidr| inet_recv(bytes, cidr).unwrap_err().message().to_owned();
        assert_eq!(refused(&[], false), "no data left in message");
        assert_eq!(refused(&[4], false), "invalid address family in external \"inet\" value");
        assert_eq!(refused(&[2, 33], true), "invalid bits in external \"cidr\" value");
        assert_eq!(refused(&[2, 8, 0, 16], false), "invalid length in external \"inet\" value");
        assert_eq!(refused(&[2, 8, 0, 4, 10], false), "no data left in message");
        assert_eq!(refused(&[2, 8, 0, 4, 10, 0, 0, 1], true), "invalid external \"cidr\" value");
        assert_eq!(refused(&[2, 8, 0, 4, 10, 0, 0, 1, 0], false), "incorrect binary data format");
        assert!(mac_recv(&[1; 5]).is_err() && mac_recv(&[1; 7]).is_err() && mac8_recv(&[1; 7]).is_err());
        assert_eq!(mac8_recv(&[1; 6]).unwrap().to_string(), "01:01:01:ff:fe:01:01:01");
    }
}
