//! Bit strings: `bit(n)` and `bit varying(n)` (varbit.c).
//!
//! Bits lie in bytes from the highest one on; those of the last byte that are none of the string are zero.
//! So strings of one length are equal if their bytes are, and the order of any two is that of their bytes,
//! and then the shorter one first: the order of the bits, in which a beginning comes before what it begins.
//!
//! - reading and writing: [`BitString::parse`], [`BitString::write`]
//! - lengths: [`BitString::fitted`] is the coercion to a type's modifier
//! - integers: [`BitString::of_integer`], [`BitString::unsigned`]
//! - parts: [`BitString::part`], [`BitString::joined`], [`BitString::position`], shifts

use std::fmt::Write;
use std::sync::Arc;

use crate::error::{Result, SqlError, SqlState};
use crate::interrupt;
use crate::memory::check_value;
use crate::types::{Oid, Type};

/// Bits of the longest bit string (VARBITMAXLEN).
pub const BITS_MAX: usize = 2_147_483_640;

/// The longest length that a type may say (MaxAttrSize bytes).
pub const TYPE_BITS_MAX: i32 = 83_886_080;

/// A string of bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BitString {
    // The derived order is the one of the type: bytes first, then the length.
    bytes: Arc<[u8]>,
    /// In bits.
    length: u32,
}

/// Bytes that so many bits take.
pub const fn bytes_of(bits: usize) -> usize {
    bits.div_ceil(8)
}

/// Clears what is behind the last bit.
fn without_padding(bytes: &mut [u8], bits: usize) {
    if let (Some(last), used @ 1..) = (bytes.last_mut(), bits % 8) {
        *last &= 0xff << (8 - used);
    }
}

impl BitString {
    /// The first `length` bits of some bytes, with zeros behind them where there are fewer. Longer than
    /// [`BITS_MAX`] none is: what is beyond is left out.
    pub fn new(mut bytes: Vec<u8>, length: usize) -> BitString {
        let length = length.min(BITS_MAX);
        bytes.resize(bytes_of(length), 0);
        without_padding(&mut bytes, length);
        BitString { bytes: bytes.into(), length: length as u32 }
    }

    /// Bits.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether there is no bit.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bits, the first one highest in the first byte, with zeros behind the last.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bits that are one.
    pub fn ones(&self) -> u64 {
        self.bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }

    /// Reads a text as a value of `bit` or `varbit`: binary digits, behind a `b` perhaps, or hexadecimal ones
    /// behind an `x` (bit_in, varbit_in). A modifier of the type is a length to be had, or not to be exceeded.
    ///
    /// Errors: 22P02 for other digits, 22026 and 22001 for other lengths, 54000 for too many digits.
    pub fn parse(text: &str, ty: Type) -> Result<BitString> {
        let (digits, hexadecimal) = match text.as_bytes().first() {
            Some(b'b' | b'B') => (&text[1..], false),
            Some(b'x' | b'X') => (&text[1..], true),
            _ => (text, false),
        };
        let length = if hexadecimal { digits.len().saturating_mul(4) } else { digits.len() };
        if length > BITS_MAX {
            return Err(too_long());
        }
        check_length(length, ty)?;
        check_value(bytes_of(length))?;
        let mut bytes = vec![0_u8; bytes_of(length)];
        let (radix, per_byte) = if hexadecimal { (16, 2) } else { (2, 8) };
        for (at, symbol) in digits.chars().enumerate() {
            interrupt::step()?;
            let digit = symbol.to_digit(radix).ok_or_else(|| no_digit(symbol, hexadecimal))? as u8;
            // All before it were of one byte.
            let place = per_byte - 1 - at % per_byte;
            bytes[at / per_byte] |= digit << (place * 8 / per_byte);
        }
        Ok(BitString { bytes: bytes.into(), length: length as u32 })
    }

    /// Writes zeros and ones.
    pub fn write(&self, out: &mut dyn Write) -> std::fmt::Result {
        let mut left = self.len();
        for byte in self.bytes.iter() {
            interrupt::steps(8).map_err(|_| std::fmt::Error)?;
            let digits: [u8; 8] = std::array::from_fn(|at| b'0' + (byte >> (7 - at) & 1));
            let shown = &digits[..left.min(8)];
            out.write_str(std::str::from_utf8(shown).map_err(|_| std::fmt::Error)?)?;
            left -= shown.len();
        }
        Ok(())
    }

    /// The string with the length that a type says: `bit(n)` has just that, `bit varying(n)` no more. An
    /// explicit cast cuts it off at the right, or adds zeros there.
    ///
    /// Errors, of what is no explicit cast: 22026 for another length, 22001 for a longer string.
    pub fn fitted(self, ty: Type, explicit: bool) -> Result<BitString> {
        let wanted = match usize::try_from(ty.typmod) {
            Ok(wanted @ 1..=BITS_MAX) => wanted,
            _ => return Ok(self),
        };
        if wanted == self.len() || (ty.oid == Oid::VARBIT && wanted > self.len()) {
            return Ok(self);
        }
        if !explicit {
            check_length(self.len(), ty)?;
        }
        check_value(bytes_of(wanted))?;
        let kept = bytes_of(wanted.min(self.len()));
        let mut bytes = Vec::with_capacity(bytes_of(wanted));
        bytes.extend_from_slice(&self.bytes[..kept]);
        Ok(BitString::new(bytes, wanted))
    }

    /// The last `length` bits of an integer; more than it has are all as its sign is (bitfromint8).
    pub fn of_integer(value: i64, length: usize) -> Result<BitString> {
        let count = bytes_of(length);
        check_value(count)?;
        let mut bytes = vec![if value < 0 { 0xff } else { 0 }; count];
        let wide = (i128::from(value) << (count * 8 - length)).to_be_bytes();
        let taken = count.min(wide.len());
        bytes[count - taken..].copy_from_slice(&wide[wide.len() - taken..]);
        Ok(BitString::new(bytes, length))
    }

    /// The number that the bits are, without a sign; `None` for more than 64 of them.
    pub fn unsigned(&self) -> Option<u64> {
        if self.len() > 64 {
            return None;
        }
        let value = self.bytes.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        // With no bit there is nothing to shift.
        Some(value >> (self.bytes.len() * 8 - self.len()))
    }

    /// The bit at a place from 0 on; `None` behind the last.
    pub fn bit(&self, at: usize) -> Option<bool> {
        (at < self.len()).then(|| self.bytes[at / 8] >> (7 - at % 8) & 1 == 1)
    }

    /// The string with another bit at a place that it has.
    pub fn with_bit(&self, at: usize, bit: bool) -> BitString {
        let mut bytes = self.bytes.to_vec();
        let mask = 0x80 >> (at % 8);
        if let Some(byte) = bytes.get_mut(at / 8) {
            *byte = if bit { *byte | mask } else { *byte & !mask };
        }
        BitString::new(bytes, self.len())
    }

    /// What `combine` makes of the bytes of two strings of one length; `None` for others.
    pub fn combined(&self, other: &BitString, combine: fn(u8, u8) -> u8) -> Result<Option<BitString>> {
        if self.length != other.length {
            return Ok(None);
        }
        check_value(self.bytes.len())?;
        interrupt::steps(self.bytes.len())?;
        let bytes = self.bytes.iter().zip(other.bytes.iter()).map(|(a, b)| combine(*a, *b)).collect();
        Ok(Some(BitString::new(bytes, self.len())))
    }

    /// Every bit the other way.
    pub fn inverted(&self) -> Result<BitString> {
        check_value(self.bytes.len())?;
        interrupt::steps(self.bytes.len())?;
        Ok(BitString::new(self.bytes.iter().map(|byte| !byte).collect(), self.len()))
    }

    /// The bits moved to the left by a number of places, or to the right by a negative one; the length stays,
    /// and zeros come in.
    pub fn shifted(&self, places: i64) -> Result<BitString> {
        let distance = usize::try_from(places.unsigned_abs()).unwrap_or(usize::MAX).min(self.len());
        let rest = self.len() - distance;
        if places >= 0 {
            let kept = self.part(distance, rest)?;
            return Ok(BitString::new(kept.bytes.to_vec(), self.len()));
        }
        check_value(self.bytes.len())?;
        let mut bytes = vec![0; bytes_of(distance)];
        append_bits(&mut bytes, distance, &self.part(0, rest)?)?;
        Ok(BitString::new(bytes, self.len()))
    }

    /// `count` bits from a place on, both within the string.
    pub fn part(&self, from: usize, count: usize) -> Result<BitString> {
        check_value(bytes_of(count))?;
        interrupt::steps(bytes_of(count))?;
        let bytes = (0..bytes_of(count)).map(|at| self.byte_from(from + 8 * at)).collect();
        Ok(BitString::new(bytes, count))
    }

    /// Eight bits from a place on, zeros behind the last.
    fn byte_from(&self, bit: usize) -> u8 {
        let byte = |at: usize| u16::from(self.bytes.get(at).copied().unwrap_or(0));
        let both = byte(bit / 8) << 8 | byte(bit / 8 + 1);
        (both >> (8 - bit % 8)) as u8
    }

    /// One string behind another; 54000 where they are too long together.
    pub fn joined(&self, next: &BitString) -> Result<BitString> {
        let length = self.len() + next.len();
        if length > BITS_MAX {
            return Err(too_long());
        }
        check_value(bytes_of(length))?;
        let mut bytes = Vec::with_capacity(bytes_of(length) + 1);
        bytes.extend_from_slice(&self.bytes);
        append_bits(&mut bytes, self.len(), next)?;
        Ok(BitString::new(bytes, length))
    }

    /// Where a string begins in this one first, from 0 on. An empty one begins every string but an empty one
    /// (bitposition).
    pub fn position(&self, sought: &BitString) -> Result<Option<usize>> {
        if self.is_empty() || sought.len() > self.len() {
            return Ok(None);
        }
        let whole = sought.len() / 8;
        let mask = !(0xff_u8 >> (sought.len() % 8));
        for from in 0..=self.len() - sought.len() {
            interrupt::step()?;
            let alike =
                (0..whole).take_while(|at| self.byte_from(from + 8 * at) == sought.bytes[*at]).count();
            interrupt::steps(alike)?;
            let ends = |last: u8| (self.byte_from(from + 8 * whole) ^ last) & mask == 0;
            if alike == whole && sought.bytes.get(whole).is_none_or(|last| ends(*last)) {
                return Ok(Some(from));
            }
        }
        Ok(None)
    }
}

/// Appends bits behind the first `length` ones of bytes that hold no others.
fn append_bits(bytes: &mut Vec<u8>, length: usize, next: &BitString) -> Result<()> {
    interrupt::steps(next.bytes.len())?;
    let used = length % 8;
    if used == 0 {
        bytes.extend_from_slice(&next.bytes);
        return Ok(());
    }
    for byte in next.bytes.iter() {
        if let Some(last) = bytes.last_mut() {
            *last |= byte >> used;
        }
        bytes.push(byte << (8 - used));
    }
    Ok(())
}

/// That a string of so many bits is one of a type, whose length it is not changed to (22026, 22001).
pub fn check_length(bits: usize, ty: Type) -> Result<()> {
    let Ok(length @ 1..) = usize::try_from(ty.typmod) else { return Ok(()) };
    if ty.oid == Oid::VARBIT {
        return match bits > length {
            true => Err(SqlError::new(
                SqlState::STRING_DATA_RIGHT_TRUNCATION,
                format!("bit string too long for type bit varying({length})"),
            )),
            false => Ok(()),
        };
    }
    match bits == length {
        true => Ok(()),
        false => Err(SqlError::new(
            SqlState::STRING_DATA_LENGTH_MISMATCH,
            format!("bit string length {bits} does not match type bit({length})"),
        )),
    }
}

/// No bit string is longer than [`BITS_MAX`].
#[cold]
fn too_long() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("bit string length exceeds the maximum allowed ({BITS_MAX})"),
    )
}

#[cold]
fn no_digit(symbol: char, hexadecimal: bool) -> SqlError {
    let kind = if hexadecimal { "hexadecimal" } else { "binary" };
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("\"{symbol}\" is not a valid {kind} digit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> BitString {
        BitString::parse(text, Type::VARBIT).unwrap()
    }

    fn shown(bits: &BitString) -> String {
        let mut out = String::new();
        bits.write(&mut out).unwrap();
        out
    }

    #[test]
    fn texts_are_binary_or_hexadecimal() {
        assert_eq!(shown(&bits("x1F")), "00011111");
        assert_eq!(shown(&bits("Xa")), "1010");
        assert_eq!(shown(&bits("b101")), "101");
        assert_eq!(shown(&bits("101")), "101");
        assert_eq!(shown(&bits("")), "");
        for (text, message) in [
            ("102", "\"2\" is not a valid binary digit"),
            ("x1é", "\"é\" is not a valid hexadecimal digit"),
            ("0x", "\"x\" is not a valid binary digit"),
        ] {
            let error = BitString::parse(text, Type::VARBIT).unwrap_err();
            assert_eq!((error.state(), error.message()), (SqlState::INVALID_TEXT_REPRESENTATION, message));
        }
    }

    #[test]
    fn lengths_fit_or_are_refused() {
        let of = |oid, typmod| Type { oid, typmod };
        let cast = |text: &str, ty| bits(text).fitted(ty, true).map(|bits| shown(&bits));
        assert_eq!(cast("101", of(Oid::BIT, 5)).unwrap(), "10100");
        assert_eq!(cast("10111", of(Oid::BIT, 3)).unwrap(), "101");
        assert_eq!(cast("101", of(Oid::VARBIT, 5)).unwrap(), "101");
        assert_eq!(cast("101", of(Oid::VARBIT, 2)).unwrap(), "10");
        let error = bits("101").fitted(of(Oid::BIT, 5), false).unwrap_err();
        assert_eq!(error.message(), "bit string length 3 does not match type bit(5)");
        assert_eq!(error.state(), SqlState::STRING_DATA_LENGTH_MISMATCH);
        let error = BitString::parse("101", of(Oid::VARBIT, 2)).unwrap_err();
        assert_eq!(error.message(), "bit string too long for type bit varying(2)");
        assert_eq!(error.state(), SqlState::STRING_DATA_RIGHT_TRUNCATION);
    }

    #[test]
    fn integers_lend_their_last_bits() {
        let of = |value, length| shown(&BitString::of_integer(value, length).unwrap());
        assert_eq!(of(44, 10), "0000101100");
        assert_eq!(of(44, 3), "100");
        assert_eq!(of(-44, 12), "111111010100");
        assert_eq!(of(-1, 70), "1".repeat(70));
        assert_eq!(of(i64::MIN, 66), format!("111{}", "0".repeat(63)));
        assert_eq!(bits("").unsigned(), Some(0));
        assert_eq!(BitString::of_integer(-1, 64).unwrap().unsigned(), Some(u64::MAX));
        assert_eq!(BitString::of_integer(-1, 65).unwrap().unsigned(), None);
    }

    /// Every string of up to nine bits, and some of more bytes, in the order of their texts.
    fn texts() -> Vec<String> {
        let short = (0..=9_usize).flat_map(|length| {
            (0..1_u32 << length).map(move |value| format!("{value:032b}")[32 - length..].to_owned())
        });
        let long = (13..40).map(|length| format!("{:064b}", 0x9e37_79b9_7f4a_7c15_u64)[..length].to_owned());
        let mut texts: Vec<String> = short.chain(long).collect();
        texts.sort();
        texts
    }

    #[test]
    fn texts_read_back_in_the_order_of_their_bits() {
        let texts = texts();
        assert!(texts.iter().all(|text| shown(&bits(text)) == *text));
        for pair in texts.windows(2).filter(|pair| pair[0] != pair[1]) {
            assert!(bits(&pair[0]) < bits(&pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn parts_and_shifts_are_those_of_the_text() {
        for text in texts() {
            let whole = bits(&text);
            for at in 0..=text.len() {
                let (before, behind) = (whole.part(0, at).unwrap(), whole.part(at, text.len() - at).unwrap());
                assert_eq!((&shown(&before)[..], &shown(&behind)[..]), text.split_at(at));
                assert_eq!(before.joined(&behind).unwrap(), whole);
                let zeros = "0".repeat(at);
                let places = at as i64;
                assert_eq!(whole.shifted(places).unwrap(), bits(&format!("{}{zeros}", &text[at..])));
                let kept = &text[..text.len() - at];
                assert_eq!(whole.shifted(-places).unwrap(), bits(&format!("{zeros}{kept}")));
            }
            assert_eq!(whole.shifted(i64::MAX).unwrap(), bits(&"0".repeat(text.len())));
        }
    }

    #[test]
    fn a_position_is_the_texts() {
        let sought: Vec<String> = texts().into_iter().filter(|text| text.len() != 9).collect();
        for text in texts().iter().filter(|text| text.len() > 8) {
            for sought in &sought {
                let found = bits(text).position(&bits(sought)).unwrap();
                assert_eq!(found, text.find(sought.as_str()), "{sought} in {text}");
            }
        }
        assert_eq!(bits("").position(&bits("")).unwrap(), None);
    }

    #[test]
    fn bits_are_read_and_changed_by_their_places() {
        for text in texts() {
            let whole = bits(&text);
            for (at, digit) in text.bytes().enumerate() {
                let bit = digit == b'1';
                assert_eq!(whole.bit(at), Some(bit));
                assert_eq!(whole.with_bit(at, !bit).with_bit(at, bit), whole);
                assert_eq!(whole.with_bit(at, !bit).bit(at), Some(!bit));
            }
            assert_eq!(whole.bit(text.len()), None);
            assert_eq!(whole.ones(), text.bytes().filter(|digit| *digit == b'1').count() as u64);
            assert_eq!(whole.inverted().unwrap().inverted().unwrap(), whole);
        }
    }

    #[test]
    fn an_integer_comes_back() {
        for value in [0, 1, -1, 5, -44, 1_234_567_890_123, i64::MIN, i64::MAX] {
            let whole = format!("{:0128b}", i128::from(value));
            for length in 1..=100 {
                let of_value = BitString::of_integer(value, length).unwrap();
                assert_eq!(shown(&of_value), whole[128 - length..]);
            }
            assert_eq!(BitString::of_integer(value, 64).unwrap().unsigned(), Some(value as u64));
        }
    }
}
