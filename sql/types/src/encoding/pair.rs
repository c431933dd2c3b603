//! Conversions between two character sets of which none is UTF8, as PostgreSQL has them.
//!
//! Between sets of one byte they are tables that PostgreSQL has made (`pairs.bin`, `record_pairs.py`): theirs
//! differ from what Unicode says. Those between sets of several bytes go by Unicode, character by character;
//! PostgreSQL computes some that no set has assigned, too.

use super::name::Encoding;
use super::report::{no_conversion, untranslatable};
use super::verify::Form;
use crate::error::Result;
use crate::interrupt;

/// As `record_pairs.py` has them.
const CYRILLIC: [&str; 4] = ["KOI8R", "WIN1251", "WIN866", "ISO_8859_5"];
const CENTRAL: [&str; 2] = ["LATIN2", "WIN1250"];

/// Sets whose conversions are computed.
const COMPUTED: [[&str; 2]; 3] = [["EUC_JP", "SJIS"], ["EUC_TW", "BIG5"], ["EUC_JIS_2004", "SHIFT_JIS_2004"]];

static TABLES: &[u8] = include_bytes!("pairs.bin");

/// How many characters beyond ASCII a set of one byte has.
const UPPER: usize = 128;

/// What the upper half of a set is in another.
fn table(from: Encoding, to: Encoding) -> Option<&'static [u8]> {
    let place = |set: &[&str], name: &str| set.iter().position(|known| *known == name);
    let both = |set: &[&str]| Some((place(set, from.name())?, place(set, to.name())?));
    let number = match (both(&CYRILLIC), both(&CENTRAL)) {
        // Each has the others behind it, without itself.
        (Some((from, to)), _) => from * (CYRILLIC.len() - 1) + to - usize::from(to > from),
        (None, Some((from, _))) => CYRILLIC.len() * (CYRILLIC.len() - 1) + from,
        (None, None) => return None,
    };
    TABLES.get(number * UPPER..(number + 1) * UPPER)
}

/// Bytes that are characters of `from` in `to`, which is another set.
///
/// # Errors
/// 42883 where PostgreSQL has no conversion; 22P05.
pub(super) fn convert(bytes: &[u8], from: Encoding, to: Encoding) -> Result<Vec<u8>> {
    if let Some(table) = table(from, to) {
        let other = |&byte: &u8| match usize::from(byte).checked_sub(UPPER).map(|place| table[place]) {
            None => Ok(byte),
            Some(0) => Err(untranslatable(from, to, &[byte])),
            Some(other) => Ok(other),
        };
        return bytes.iter().map(other).collect();
    }
    let names = |pair: &[&str; 2]| pair.contains(&from.name()) && pair.contains(&to.name());
    if !COMPUTED.iter().any(names) {
        return Err(no_conversion(from, to));
    }
    let form = Form::of(from);
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        interrupt::step()?;
        let length = form.character(rest).unwrap_or(1).min(rest.len());
        let (character, behind) = rest.split_at(length);
        let text = from.decode(character);
        let written = text.and_then(|text| to.encode(&text, &mut out));
        written.map_err(|_| untranslatable(from, to, character))?;
        rest = behind;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SqlState;

    fn converted(bytes: &[u8], from: &str, to: &str) -> std::result::Result<Vec<u8>, SqlState> {
        let of = |name: &str| Encoding::named(name).unwrap();
        convert(bytes, of(from), of(to)).map_err(|error| error.state())
    }

    /// What PostgreSQL 15 answers.
    #[test]
    fn sets_without_utf8_are_converted_as_postgresql_does() {
        for (bytes, from, to, other) in [
            (&b"a\xc1"[..], "KOI8R", "WIN1251", &b"a\xe0"[..]),
            (b"\xc1", "KOI8R", "WIN866", b"\xa0"),
            (b"\xe0", "WIN1251", "KOI8R", b"\xc1"),
            (b"\x80", "LATIN2", "WIN1250", b"\x80"),
            (b"\xa4\xa2b", "EUC_JP", "SJIS", b"\x82\xa0b"),
            (b"\x82\xa0", "SJIS", "EUC_JP", b"\xa4\xa2"),
        ] {
            assert_eq!(converted(bytes, from, to), Ok(other.to_vec()), "{from} {to}");
        }
        let untranslatable = Err(SqlState::UNTRANSLATABLE_CHARACTER);
        assert_eq!(converted(b"\x80", "KOI8R", "WIN1251"), untranslatable);
        assert_eq!(converted(b"\x81\x40", "BIG5", "EUC_TW"), untranslatable);
        assert_eq!(converted(b"\xe9", "LATIN1", "WIN1252"), Err(SqlState::UNDEFINED_FUNCTION));
    }

    /// A session that has been cancelled.
    struct Cancelled;

    impl crate::function::SessionHost for Cancelled {
        fn interrupted(&self) -> bool {
            true
        }
    }

    #[test]
    fn long_bytes_are_not_converted_to_their_end() {
        let _watch = interrupt::Watch::of(std::sync::Arc::new(Cancelled));
        let long = b"\xa4\xa2".repeat(1_000_000);
        assert_eq!(converted(&long, "EUC_JP", "SJIS"), Err(SqlState::QUERY_CANCELED));
    }

    #[test]
    fn there_is_a_table_for_each_pair() {
        assert_eq!(TABLES.len(), 14 * UPPER);
    }
}
