//! Text of other character sets to UTF8 and back, with PostgreSQL's errors: 22021 for bytes that are no
//! character, 22P05 for a character that the other side does not have.

use std::borrow::Cow;

use super::conversion::Conversion;
use super::name::Encoding;
use super::pair;
use super::report::{invalid, no_conversion, untranslatable, utf8};
use super::verify::Form;
use crate::error::{Result, SqlError};

/// The codes of GB18030 for all planes of Unicode but the first are one row of numbers.
const GB18030_PLANES: u32 = 0x1_0000;

/// How far bytes could be read.
pub struct Decoded {
    /// So many bytes are read.
    pub read: usize,
    /// What is wrong with those behind them; without an error they are the beginning of a character.
    pub error: Option<SqlError>,
}

impl Encoding {
    /// Bytes of this character set as text.
    ///
    /// Errors: 22021, 22P05.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>> {
        if self.is_servers() {
            return utf8(bytes).map(Cow::Borrowed);
        }
        if bytes.is_ascii() && !bytes.contains(&0) {
            return utf8(bytes).map(Cow::Borrowed);
        }
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 2);
        let decoded = self.decode_into(bytes, &mut text);
        match decoded.error {
            Some(error) => Err(error),
            None if decoded.read < bytes.len() => Err(invalid(self, &bytes[decoded.read..])),
            None => Ok(Cow::Owned(text)),
        }
    }

    /// Appends as much of `bytes` to `text` as can be read: to the first byte that is wrong, or to a character
    /// that is not all there.
    pub fn decode_into(self, bytes: &[u8], text: &mut String) -> Decoded {
        let Some(conversion) = Conversion::of(self) else {
            return Decoded { read: 0, error: Some(no_conversion(self, Encoding::UTF8)) };
        };
        let form = Form::of(self);
        let mut read = 0;
        while let Some(rest) = bytes.get(read..).filter(|rest| !rest.is_empty()) {
            let plain = rest.iter().position(|byte| !(1..=0x7f).contains(byte)).unwrap_or(rest.len());
            if let Ok(plain) = std::str::from_utf8(&rest[..plain])
                && !plain.is_empty()
            {
                text.push_str(plain);
                read += plain.len();
                continue;
            }
            let Some(length) = form.character(rest) else {
                // Whether what lacks its end could be a character is seen when it has one.
                let is_cut = form.length(rest).is_none_or(|length| length > rest.len());
                return Decoded { read, error: (!is_cut).then(|| invalid(self, rest)) };
            };
            let code = rest[..length].iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
            if let Some(character) = conversion.read(code).or_else(|| self.beyond_tables(code)) {
                text.push(character);
            } else if let Some(pair) = conversion.read_pair(code) {
                text.extend(pair);
            } else {
                return Decoded { read, error: Some(untranslatable(self, Encoding::UTF8, &rest[..length])) };
            }
            read += length;
        }
        Decoded { read, error: None }
    }

    /// Appends text in this character set.
    ///
    /// Errors: 22P05, and nothing is appended.
    pub fn encode(self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        if self.is_servers() || text.is_ascii() {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let start = out.len();
        let Some(conversion) = Conversion::of(self) else { return Err(no_conversion(Encoding::UTF8, self)) };
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if character.is_ascii() {
                out.push(character as u8);
                continue;
            }
            let paired = characters.peek().and_then(|next| conversion.written_pair(character, *next));
            if paired.is_some() {
                characters.next();
            }
            let code = paired
                .or_else(|| conversion.written(character))
                .or_else(|| self.code_beyond_tables(character));
            let Some(code) = code else {
                out.truncate(start);
                let mut bytes = [0; 4];
                return Err(untranslatable(
                    Encoding::UTF8,
                    self,
                    character.encode_utf8(&mut bytes).as_bytes(),
                ));
            };
            let bytes = code.to_be_bytes();
            let unused = code.leading_zeros() as usize / 8;
            out.extend_from_slice(&bytes[unused..]);
        }
        Ok(())
    }

    /// Puts the text that `out` ends with, from `start` on, into this character set.
    ///
    /// Errors: 22P05, and it stays as it was.
    pub fn encode_end(self, out: &mut Vec<u8>, start: usize) -> Result<()> {
        let Some(end) = out.get(start..) else { return Ok(()) };
        if self.is_servers() || end.is_ascii() {
            return Ok(());
        }
        let text = utf8(end)?.to_owned();
        out.truncate(start);
        let encoded = self.encode(&text, out);
        if encoded.is_err() {
            out.extend_from_slice(text.as_bytes());
        }
        encoded
    }

    fn beyond_tables(self, code: u32) -> Option<char> {
        let [first, second, third, fourth] = code.to_be_bytes();
        if self != Encoding::GB18030 || first < 0x90 {
            return None;
        }
        let row = (u32::from(first) - 0x90) * 10 + u32::from(second.checked_sub(0x30)?);
        let row = row * 126 + u32::from(third.checked_sub(0x81)?);
        char::from_u32(GB18030_PLANES + row * 10 + u32::from(fourth.checked_sub(0x30)?))
    }

    fn code_beyond_tables(self, character: char) -> Option<u32> {
        let place = u32::from(character).checked_sub(GB18030_PLANES)?;
        if self != Encoding::GB18030 {
            return None;
        }
        let (row, fourth) = (place / 10, place % 10);
        let (row, third) = (row / 126, row % 126);
        let (first, second) = (row / 10, row % 10);
        Some((0x90 + first) << 24 | (0x30 + second) << 16 | (0x81 + third) << 8 | (0x30 + fourth))
    }

    /// How many characters `bytes` are.
    ///
    /// Errors: 22021 (pg_verify_mbstr).
    pub fn characters(self, bytes: &[u8]) -> Result<usize> {
        if self == Encoding::UTF8 {
            return utf8(bytes).map(|text| text.chars().count());
        }
        let form = Form::of(self);
        let (mut at, mut count) = (0, 0);
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += form.character(rest).ok_or_else(|| invalid(self, rest))?;
            count += 1;
        }
        Ok(count)
    }
}

/// Bytes of one character set in another (`convert`).
///
/// Errors: 22021 for bytes that are no characters of `from`, whatever is wrong before them; 22P05; 42883
/// where PostgreSQL has no conversion.
pub fn convert(bytes: &[u8], from: Encoding, to: Encoding) -> Result<Vec<u8>> {
    from.characters(bytes)?;
    if from == to || to == Encoding::SQL_ASCII {
        return Ok(bytes.to_vec());
    }
    if from == Encoding::SQL_ASCII {
        to.characters(bytes)?;
        return Ok(bytes.to_vec());
    }
    let is_of_utf8 = |encoding: Encoding| encoding == Encoding::UTF8 || encoding.is_converted();
    let by_utf8 = from == Encoding::UTF8 || to == Encoding::UTF8;
    if by_utf8 && is_of_utf8(from) && is_of_utf8(to) {
        let mut out = Vec::new();
        to.encode(&from.decode(bytes)?, &mut out)?;
        return Ok(out);
    }
    pair::convert(bytes, from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::name::ENCODINGS;
    use crate::error::SqlState;

    fn of(name: &str) -> Encoding {
        Encoding::named(name).unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let samples = [
            ("LATIN1", "é", &b"\xe9"[..]),
            ("WIN1252", "€", b"\x80"),
            ("KOI8R", "я", b"\xd1"),
            ("EUC_JP", "あ", b"\xa4\xa2"),
            ("SJIS", "表", b"\x95\x5c"),
            ("GB18030", "𠀀", b"\x95\x32\x82\x36"),
            ("GB18030", "\u{80}", b"\x81\x30\x81\x30"),
            ("EUC_JIS_2004", "か\u{309a}", b"\xa4\xf7"),
        ];
        for (name, text, bytes) in samples {
            let mut out = b"x".to_vec();
            of(name).encode(text, &mut out).unwrap();
            assert_eq!(&out[1..], bytes, "{name}");
            assert_eq!(of(name).decode(bytes).unwrap(), text, "{name}");
        }
    }

    #[test]
    fn the_end_of_what_is_there_is_put_into_a_character_set_or_stays() {
        let mut out = "é€é".as_bytes().to_vec();
        let error = of("LATIN1").encode_end(&mut out, 2).unwrap_err();
        assert_eq!(error.state(), SqlState::UNTRANSLATABLE_CHARACTER);
        assert_eq!(out, "é€é".as_bytes());
        of("WIN1252").encode_end(&mut out, 2).unwrap();
        assert_eq!(out, [&[0xc3, 0xa9][..], &[0x80, 0xe9]].concat());
    }

    #[test]
    fn a_character_that_is_cut_waits_for_its_end() {
        let mut text = String::new();
        let decoded = of("SJIS").decode_into(b"a\x95", &mut text);
        assert!(decoded.error.is_none());
        assert_eq!((decoded.read, text.as_str()), (1, "a"));
        let error = of("SJIS").decode(b"a\x95").unwrap_err();
        assert_eq!(error.message(), "invalid byte sequence for encoding \"SJIS\": 0x95");
    }

    #[test]
    fn every_recorded_character_set_can_be_read_and_written() {
        for code in 0..ENCODINGS_COUNT {
            let encoding = Encoding::of_code(code).unwrap();
            let expected = !matches!(encoding.name(), "SQL_ASCII" | "UTF8" | "MULE_INTERNAL");
            assert_eq!(Conversion::of(encoding).is_some(), expected, "{}", encoding.name());
            assert_eq!(encoding.is_converted(), expected, "{}", encoding.name());
        }
    }

    const ENCODINGS_COUNT: i32 = ENCODINGS.len() as i32;
}
