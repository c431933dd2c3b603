//! Addresses of devices, of six bytes and of eight (mac.c, mac8.c).

use std::fmt::{Display, Formatter};

use crate::error::{Result, SqlError, SqlState};
use crate::io::invalid_syntax;

/// A value of `macaddr`; the order is that of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

/// A value of `macaddr8`; the order is that of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress8(pub [u8; 8]);

/// What an address of six bytes has in the middle as one of eight.
const MIDDLE: [u8; 2] = [0xff, 0xfe];

/// Bytes between colons.
fn write_bytes(bytes: &[u8], f: &mut Formatter<'_>) -> std::fmt::Result {
    for (place, byte) in bytes.iter().enumerate() {
        if place > 0 {
            f.write_str(":")?;
        }
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}

impl Display for MacAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write_bytes(&self.0, f)
    }
}

impl Display for MacAddress8 {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write_bytes(&self.0, f)
    }
}

/// The forms of `macaddr`, in the order in which they are tried: the most characters of a number, and what
/// stands behind each number but the last.
const FORMS: [(usize, [Option<u8>; 5]); 7] = {
    const COLON: Option<u8> = Some(b':');
    const DASH: Option<u8> = Some(b'-');
    const DOT: Option<u8> = Some(b'.');
    [
        (usize::MAX, [COLON; 5]),
        (usize::MAX, [DASH; 5]),
        (2, [None, None, COLON, None, None]),
        (2, [None, None, DASH, None, None]),
        (2, [None, DOT, None, DOT, None]),
        (2, [None, DASH, None, DASH, None]),
        (2, [None; 5]),
    ]
};

/// As the C library's isspace has it.
fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == 0x0b
}

fn without_spaces(text: &[u8]) -> &[u8] {
    let count = text.iter().take_while(|byte| is_space(byte)).count();
    &text[count..]
}

/// A hexadecimal number of at most `width` characters and what follows it, as scanf's `%x` reads it: behind
/// spaces, with a sign and `0x` perhaps.
fn number(text: &[u8], width: usize) -> Option<(i32, &[u8])> {
    let text = without_spaces(text);
    let all = &text[..text.len().min(width)];
    let (negative, unsigned) = match all {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (prefixed, digits) = match unsigned {
        [b'0', b'x' | b'X', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if count == 0 && !prefixed {
        return None;
    }
    let value = digits[..count].iter().try_fold(0_u64, |value, digit| {
        value.checked_mul(16)?.checked_add(u64::from((*digit as char).to_digit(16)?))
    });
    // strtoul has a sign, and no value beyond the largest.
    let value = match (value, negative) {
        (None, _) => u64::MAX,
        (Some(value), true) => value.wrapping_neg(),
        (Some(value), false) => value,
    };
    let taken = all.len() - digits.len() + count;
    Some((value as i32, &text[taken..]))
}

/// The six numbers of a form, with nothing but spaces behind them.
fn numbers(text: &[u8], width: usize, between: &[Option<u8>; 5]) -> Option<[i32; 6]> {
    let (mut numbers, mut rest) = ([0; 6], text);
    for (place, value) in numbers.iter_mut().enumerate() {
        let (read, behind) = number(rest, width)?;
        *value = read;
        rest = match between.get(place) {
            Some(Some(separator)) => behind.strip_prefix(std::slice::from_ref(separator))?,
            _ => behind,
        };
    }
    without_spaces(rest).is_empty().then_some(numbers)
}

impl MacAddress {
    /// Reads what `macaddr_in` does: numbers between colons or dashes, or digits in groups.
    ///
    /// Errors: 22P02 for other forms, 22003 for a number that is no byte.
    pub fn parse(text: &str) -> Result<MacAddress> {
        let read = FORMS.iter().find_map(|(width, between)| numbers(text.as_bytes(), *width, between));
        let numbers = read.ok_or_else(|| invalid_syntax("macaddr", text))?;
        let mut bytes = [0; 6];
        for (byte, number) in bytes.iter_mut().zip(numbers) {
            *byte = u8::try_from(number).map_err(|_| {
                let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
            })?;
        }
        Ok(MacAddress(bytes))
    }

    /// The address as a number.
    pub fn number(self) -> u64 {
        self.0.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// The address of a number, whose first two bytes count for nothing.
    pub fn of_number(number: u64) -> MacAddress {
        let [_, _, bytes @ ..] = number.to_be_bytes();
        MacAddress(bytes)
    }

    /// The maker's part, with zeros behind it.
    pub fn truncated(self) -> MacAddress {
        MacAddress([self.0[0], self.0[1], self.0[2], 0, 0, 0])
    }

    /// The address of eight bytes that this one is.
    pub fn widened(self) -> MacAddress8 {
        let ([a, b, c, d, e, f], [left, right]) = (self.0, MIDDLE);
        MacAddress8([a, b, c, left, right, d, e, f])
    }
}

impl MacAddress8 {
    /// Reads what `macaddr8_in` does: six pairs of digits or eight, with one and the same separator or none
    /// behind each.
    ///
    /// Errors: 22P02.
    pub fn parse(text: &str) -> Result<MacAddress8> {
        pairs(text.as_bytes()).ok_or_else(|| invalid_syntax("macaddr8", text))
    }

    /// The address as a number.
    pub fn number(self) -> u64 {
        u64::from_be_bytes(self.0)
    }

    /// The address of a number.
    pub fn of_number(number: u64) -> MacAddress8 {
        MacAddress8(number.to_be_bytes())
    }

    /// The maker's part, with zeros behind it.
    pub fn truncated(self) -> MacAddress8 {
        MacAddress8([self.0[0], self.0[1], self.0[2], 0, 0, 0, 0, 0])
    }

    /// The address with the bit that says it was not the maker's to give, as IPv6 wants it.
    pub fn with_seventh_bit(mut self) -> MacAddress8 {
        self.0[0] |= 0x02;
        self
    }

    /// The address of six bytes that this one is (22003 where there is none).
    pub fn narrowed(self) -> Result<MacAddress> {
        let [a, b, c, middle @ .., d, e, f] = self.0;
        if middle == MIDDLE {
            return Ok(MacAddress([a, b, c, d, e, f]));
        }
        let message = "macaddr8 data out of range to convert to macaddr";
        Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message).with_hint(
            "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example \
             xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
        ))
    }
}

fn pairs(text: &[u8]) -> Option<MacAddress8> {
    let (mut bytes, mut separator, mut rest) = (Vec::new(), None, without_spaces(text));
    let digit = |byte: u8| (byte as char).to_digit(16);
    // A single character at the end is not looked at.
    while let [high, low, behind @ ..] = rest {
        if bytes.len() == 8 {
            return None;
        }
        bytes.push((digit(*high)? << 4 | digit(*low)?) as u8);
        rest = behind;
        if let [found @ (b':' | b'-' | b'.'), behind @ ..] = rest {
            if *separator.get_or_insert(*found) != *found {
                return None;
            }
            rest = behind;
        }
        if matches!(bytes.len(), 6 | 8) && rest.first().is_some_and(is_space) {
            rest = without_spaces(rest);
            if !rest.is_empty() {
                return None;
            }
        }
    }
    match <[u8; 6]>::try_from(&bytes[..]) {
        Ok(six) => Some(MacAddress(six).widened()),
        Err(_) => bytes.try_into().ok().map(MacAddress8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_bytes_are_written_in_many_ways() {
        let forms = [
            "08:00:2b:01:02:03",
            "08-00-2b-01-02-03",
            "08002b:010203",
            "08002b-010203",
            "0800.2b01.0203",
            "0800-2b01-0203",
            "08002b010203",
            " 8:0:2B:1:2:3 ",
            "0x8:+0: 2b:1:2:3",
        ];
        for form in forms {
            assert_eq!(MacAddress::parse(form).unwrap().to_string(), "08:00:2b:01:02:03", "{form}");
        }
        for text in ["", "08:00:2b:01:02", "08:00:2b:01:02:0g", "08-00:2b:01:02:03", "0800:2b01:0203"] {
            assert_eq!(MacAddress::parse(text).unwrap_err().state(), SqlState::INVALID_TEXT_REPRESENTATION);
        }
        for text in ["100:0:0:0:0:0", "-1:0:0:0:0:0"] {
            assert_eq!(MacAddress::parse(text).unwrap_err().state(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        }
    }

    #[test]
    fn eight_bytes_may_lack_the_middle() {
        let shown = |text: &str| MacAddress8::parse(text).map(|address| address.to_string()).ok();
        assert_eq!(shown(" 08002b0102030405 ").as_deref(), Some("08:00:2b:01:02:03:04:05"));
        assert_eq!(shown("08-00-2b-01-02-03-04-05").as_deref(), Some("08:00:2b:01:02:03:04:05"));
        assert_eq!(shown("0800.2b01.0203").as_deref(), Some("08:00:2b:ff:fe:01:02:03"));
        for text in ["", "08:00-2b:01:02:03", "08:00:2b:01:02", "08:00:2b:01:02:03:04", "08002b010203 0405"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_change_their_width() {
        let six = MacAddress::parse("08:00:2b:01:02:03").unwrap();
        assert_eq!(six.widened().narrowed().unwrap(), six);
        assert!(MacAddress8::parse("08:00:2b:01:02:03:04:05").unwrap().narrowed().is_err());
        assert_eq!(MacAddress::of_number(six.number()), six);
    }
}
