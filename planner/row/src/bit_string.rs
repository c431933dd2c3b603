//! Bit strings as bytes in their order: no string's bytes come behind those of a greater one, and none are
//! the beginning of another's.
//!
//! Seven bits stand in a byte, and the lowest one says whether more follow; behind the last such byte stands
//! how many bits it holds:
//!
//! ```text
//! 1111111 10     1111111|1  1000000|0  2
//! 101            1010000|0  3
//! (empty)        0000000|0  0
//! ```
//!
//! Where the bits of two strings differ, so do the bytes, the same way. Where one string begins the other, it
//! ends in a byte whose bits are the other's or less, either with the lower flag or, at the same place, with
//! fewer bits.

use archipel_sql::bit_string::BitString;

const PER_BYTE: usize = 7;

/// Appends a bit string in the form in which it is stored and stands in keys.
pub fn encode_bits(bits: &BitString, out: &mut Vec<u8>) {
    let groups = bits.len().div_ceil(PER_BYTE).max(1);
    out.reserve(groups + 1);
    let bytes = bits.bytes();
    let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or(0));
    for group in 0..groups {
        let from = group * PER_BYTE;
        let both = byte(from / 8) << 8 | byte(from / 8 + 1);
        let seven = (both << (from % 8) >> 8) as u8 & 0xfe;
        out.push(seven | u8::from(group + 1 < groups));
    }
    out.push((bits.len() - (groups - 1) * PER_BYTE) as u8);
}

/// Reads what [`encode_bits`] wrote; bytes that it did not write are read as some string.
pub fn decode_bits(stored: &[u8]) -> BitString {
    let Some((last, groups)) = stored.split_last() else { return BitString::new(Vec::new(), 0) };
    let length = groups.len().saturating_sub(1) * PER_BYTE + usize::from(*last).min(PER_BYTE);
    let mut bytes = Vec::with_capacity(groups.len());
    let (mut held, mut count) = (0_u16, 0);
    for group in groups {
        held = held << PER_BYTE | u16::from(group >> 1);
        count += PER_BYTE;
        if count >= 8 {
            count -= 8;
            bytes.push((held >> count) as u8);
        }
    }
    bytes.push((held << (8 - count)) as u8);
    BitString::new(bytes, length)
}

#[cfg(test)]
mod tests {
    use archipel_sql::types::Type;
    use proptest::prelude::*;

    use super::*;

    fn bits(text: &str) -> BitString {
        BitString::parse(text, Type::VARBIT).unwrap()
    }

    fn stored(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        encode_bits(&bits(text), &mut out);
        out
    }

    #[test]
    fn seven_bits_stand_in_a_byte() {
        assert_eq!(stored("111111110"), [0xff, 0b1000_0000, 2]);
        assert_eq!(stored("101"), [0b1010_0000, 3]);
        assert_eq!(stored("1111111"), [0xfe, 7]);
        assert_eq!(stored(""), [0, 0]);
    }

    proptest! {
        #[test]
        fn bits_read_back(text in "[01]{0,80}") {
            prop_assert_eq!(decode_bits(&stored(&text)), bits(&text));
        }

        #[test]
        fn bytes_keep_the_order(a in "[01]{0,30}", b in "[01]{0,30}") {
            prop_assert_eq!(stored(&a).cmp(&stored(&b)), bits(&a).cmp(&bits(&b)));
        }

        #[test]
        fn a_beginning_keeps_the_order(a in "[01]{0,30}", more in "[01]{0,20}") {
            let b = format!("{a}{more}");
            let (short, long) = (stored(&a), stored(&b));
            prop_assert_eq!(short.cmp(&long), bits(&a).cmp(&bits(&b)));
            prop_assert!(short == long || !long.starts_with(&short), "no key begins another");
        }

        #[test]
        fn foreign_bytes_are_some_string(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            decode_bits(&bytes);
        }
    }
}
