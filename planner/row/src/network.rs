//! Hosts and networks as bytes in their order, none of which begin others.
//!
//! ```text
//! family   2 or 3, of IPv4 or IPv6
//! network  4 or 16 bytes, zeros behind its bits
//! bits     1 byte
//! address  4 or 16 bytes, unless all bits are the network's
//! ```
//!
//! Where the bits that two networks share differ, so do the networks; where they do not, the longer network is
//! as the shorter one or greater, and then the bits decide.

use std::net::{IpAddr, Ipv4Addr};

use archipel_sql::network::Inet;

/// Appends an address in the form in which it is stored and stands in keys.
pub fn encode_inet(inet: &Inet, out: &mut Vec<u8>) {
    out.push(inet.family());
    inet.network().write_address(out);
    out.push(inet.bits());
    if inet.bits() < inet.width() {
        inet.write_address(out);
    }
}

/// Reads what [`encode_inet`] wrote; bytes that it did not write are read as some address.
pub fn decode_inet(stored: &[u8]) -> Inet {
    read(stored).unwrap_or(Inet::host(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
}

fn read(stored: &[u8]) -> Option<Inet> {
    let (family, rest) = stored.split_first()?;
    let length = usize::from(Inet::width_of_family(*family)? / 8);
    let (network, rest) = rest.split_at_checked(length)?;
    let (bits, address) = rest.split_first()?;
    Inet::of_wire(*family, *bits, if address.is_empty() { network } else { address })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored(inet: &Inet) -> Vec<u8> {
        let mut out = Vec::new();
        encode_inet(inet, &mut out);
        out
    }

    fn inet(text: &str) -> Inet {
        Inet::parse(text, false).unwrap()
    }

    /// Addresses that have bits in common.
    fn some_inet() -> impl Strategy<Value = Inet> {
        let alike = prop_oneof![Just(0_u8), Just(1), Just(128), any::<u8>()];
        let v4 = (proptest::array::uniform4(alike.clone()), 0_u8..=32)
            .prop_map(|(bytes, bits)| Inet::new(IpAddr::from(bytes), bits).unwrap());
        let v6 = (proptest::array::uniform16(alike), 0_u8..=128)
            .prop_map(|(bytes, bits)| Inet::new(IpAddr::from(bytes), bits).unwrap());
        prop_oneof![v4, v6]
    }

    #[test]
    fn hosts_are_short() {
        assert_eq!(stored(&inet("10.0.0.1")), [2, 10, 0, 0, 1, 32]);
        assert_eq!(stored(&inet("10.0.0.1/8")), [2, 10, 0, 0, 0, 8, 10, 0, 0, 1]);
        assert_eq!(stored(&inet("::1")).len(), 18);
    }

    proptest! {
        #[test]
        fn addresses_read_back(a in some_inet()) {
            prop_assert_eq!(decode_inet(&stored(&a)), a);
        }

        #[test]
        fn bytes_keep_the_order(a in some_inet(), b in some_inet()) {
            let (left, right) = (stored(&a), stored(&b));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert!(left == right || !left.starts_with(&right), "no key begins another");
        }

        #[test]
        fn foreign_bytes_are_some_address(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            decode_inet(&bytes);
        }
    }
}
