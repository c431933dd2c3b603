//! Which bytes make a character of a character set (chapter 24.3; each set's own verifier in PostgreSQL).

use super::name::Encoding;

/// How bytes of a character set are cut into characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One byte each.
    Single,
    Utf8,
    /// EUC_JP and EUC_JIS_2004: half-width kana behind 0x8e, three bytes behind 0x8f.
    EucJapanese,
    EucChinese,
    EucKorean,
    /// EUC_TW: four bytes behind 0x8e.
    EucTaiwanese,
    Mule,
    /// SJIS and SHIFT_JIS_2004.
    ShiftJis,
    /// BIG5, GBK and UHC: any byte may come second.
    Double,
    Gb18030,
    Johab,
}

fn is_high(byte: u8) -> bool {
    byte >= 0x80
}

fn is_euc(byte: u8) -> bool {
    (0xa1..=0xfe).contains(&byte)
}

/// What PostgreSQL takes for invalid in every character set but UTF8, to mark text by it that is not valid.
const NEVER_VALID: &[u8] = &[0x8d, b' '];

const SS2: u8 = 0x8e;
const SS3: u8 = 0x8f;

impl Form {
    pub(super) fn of(encoding: Encoding) -> Form {
        match encoding.name() {
            "UTF8" => Form::Utf8,
            "EUC_JP" | "EUC_JIS_2004" => Form::EucJapanese,
            "EUC_CN" => Form::EucChinese,
            "EUC_KR" => Form::EucKorean,
            "EUC_TW" => Form::EucTaiwanese,
            "MULE_INTERNAL" => Form::Mule,
            "SJIS" | "SHIFT_JIS_2004" => Form::ShiftJis,
            "BIG5" | "GBK" | "UHC" => Form::Double,
            "GB18030" => Form::Gb18030,
            "JOHAB" => Form::Johab,
            _ => Form::Single,
        }
    }

    /// How many bytes the character at the front of `bytes` has, as its first ones say (pg_encoding_mblen);
    /// `None` if more are needed to know. `bytes` is not empty.
    pub(super) fn length(self, bytes: &[u8]) -> Option<usize> {
        let first = bytes[0];
        if !is_high(first) {
            return Some(1);
        }
        Some(match self {
            Form::Single => 1,
            Form::Utf8 => match first {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            },
            Form::EucJapanese | Form::EucKorean | Form::Johab if first == SS3 => 3,
            Form::EucJapanese | Form::EucKorean | Form::Johab => 2,
            Form::EucChinese => match first {
                SS2 | SS3 => 3,
                _ => 2,
            },
            Form::EucTaiwanese => match first {
                SS2 => 4,
                SS3 => 3,
                _ => 2,
            },
            Form::Mule => match first {
                0x81..=0x8d => 2,
                0x90..=0x9b => 3,
                0x9c | 0x9d => 4,
                _ => 1,
            },
            Form::ShiftJis if (0xa1..=0xdf).contains(&first) => 1,
            Form::ShiftJis | Form::Double => 2,
            Form::Gb18030 => match bytes.get(1)? {
                b'0'..=b'9' => 4,
                _ => 2,
            },
        })
    }

    /// The length of the character at the front of `bytes`; `None` if there is none.
    pub(super) fn character(self, bytes: &[u8]) -> Option<usize> {
        let length = self.length(bytes)?;
        let character = bytes.get(..length)?;
        let (first, rest) = character.split_first()?;
        let is_one = match self {
            _ if *first == 0 => false,
            _ if !is_high(*first) => true,
            Form::Single => true,
            Form::Utf8 => std::str::from_utf8(character).is_ok(),
            Form::EucJapanese => match *first {
                SS2 => (0xa1..=0xdf).contains(&rest[0]),
                SS3 => rest.iter().all(|byte| is_euc(*byte)),
                first => is_euc(first) && is_euc(rest[0]),
            },
            Form::EucChinese | Form::EucKorean => length == 2 && is_euc(*first) && is_euc(rest[0]),
            Form::EucTaiwanese => match *first {
                SS2 => (0xa1..=0xa7).contains(&rest[0]) && is_euc(rest[1]) && is_euc(rest[2]),
                SS3 => false,
                _ => is_euc(rest[0]),
            },
            Form::Mule => rest.iter().all(|byte| is_high(*byte)),
            Form::ShiftJis => {
                length == 1
                    || matches!(first, 0x81..=0x9f | 0xe0..=0xfc)
                        && matches!(rest[0], 0x40..=0x7e | 0x80..=0xfc)
            }
            Form::Double => rest[0] != 0 && character != NEVER_VALID,
            Form::Gb18030 => {
                (0x81..=0xfe).contains(first)
                    && match rest {
                        [second] => matches!(second, 0x40..=0x7e | 0x80..=0xfe),
                        [_, third, fourth] => (0x81..=0xfe).contains(third) && fourth.is_ascii_digit(),
                        _ => false,
                    }
            }
            Form::Johab => rest.iter().all(|byte| is_euc(*byte)),
        };
        is_one.then_some(length)
    }
}

impl Encoding {
    /// Whether text is converted to it and from it.
    pub fn is_converted(self) -> bool {
        !self.is_servers() && Form::of(self) != Form::Mule
    }
}
