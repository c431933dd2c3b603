//! Cuts the text of a date or time into fields (ParseDateTime).

use super::error::Trouble;

/// What a field is, as far as its characters tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Digits and perhaps letters with separators; also names of zones with such characters.
    Date,
    /// Digits with colons.
    Time,
    Number,
    /// A sign and digits: an offset.
    Offset,
    Word,
}

/// A field, in lower case.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub kind: Kind,
    pub text: String,
}

/// So many fields at most.
const FIELDS_MAX: usize = 25;

/// What a word means in dates and times (datetktbl).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Special(Special),
    Month(i64),
    DayOfWeek,
    Ignored,
    Afternoon(bool),
    BeforeChrist(bool),
    /// `dst`.
    Daylight,
    /// A label of the number that follows.
    Unit(Unit),
    /// `t`, before the time.
    IsoTime,
}

/// A word that stands for a whole value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Infinity,
    NegativeInfinity,
    Epoch,
    Now,
    Today,
    Tomorrow,
    Yesterday,
    Midnight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    Time,
    /// Parts that have a name and cannot be given.
    Other,
}

const MONTHS: [(&str, &str); 12] = [
    ("jan", "january"),
    ("feb", "february"),
    ("mar", "march"),
    ("apr", "april"),
    ("may", "may"),
    ("jun", "june"),
    ("jul", "july"),
    ("aug", "august"),
    ("sep", "september"),
    ("oct", "october"),
    ("nov", "november"),
    ("dec", "december"),
];

const WEEKDAYS: [&str; 18] = [
    "sun",
    "sunday",
    "mon",
    "monday",
    "tue",
    "tues",
    "tuesday",
    "wed",
    "weds",
    "wednesday",
    "thu",
    "thur",
    "thurs",
    "thursday",
    "fri",
    "friday",
    "sat",
    "saturday",
];

/// The meaning of a word in lower case.
pub(super) fn meaning(word: &str) -> Option<Meaning> {
    use Meaning::*;
    Some(match word {
        "infinity" => Special(self::Special::Infinity),
        "-infinity" => Special(self::Special::NegativeInfinity),
        "epoch" => Special(self::Special::Epoch),
        "now" => Special(self::Special::Now),
        "today" => Special(self::Special::Today),
        "tomorrow" => Special(self::Special::Tomorrow),
        "yesterday" => Special(self::Special::Yesterday),
        "allballs" => Special(self::Special::Midnight),
        "at" | "on" => Ignored,
        "am" => Afternoon(false),
        "pm" => Afternoon(true),
        "bc" => BeforeChrist(true),
        "ad" => BeforeChrist(false),
        "dst" => Daylight,
        "y" => Unit(self::Unit::Year),
        "m" => Unit(self::Unit::Month),
        "d" => Unit(self::Unit::Day),
        "h" => Unit(self::Unit::Hour),
        "mm" => Unit(self::Unit::Minute),
        "s" => Unit(self::Unit::Second),
        "j" | "jd" | "julian" => Unit(self::Unit::Julian),
        "dow" | "doy" | "isodow" | "isoyear" => Unit(self::Unit::Other),
        "t" => IsoTime,
        "sept" => Month(9),
        _ => {
            let month = MONTHS.iter().position(|(short, long)| word == *short || word == *long);
            match month {
                Some(place) => Month(place as i64 + 1),
                None if WEEKDAYS.contains(&word) => DayOfWeek,
                None => return None,
            }
        }
    })
}

/// The fields of a text.
pub(super) fn fields(text: &str) -> Result<Vec<Field>, Trouble> {
    let bytes = text.as_bytes();
    let mut found: Vec<Field> = Vec::with_capacity(4);
    let mut at = 0;
    let run = |from: usize, accept: &dyn Fn(u8) -> bool| {
        from + bytes[from..].iter().take_while(|byte| accept(**byte)).count()
    };
    let digits = |from: usize| run(from, &|byte| byte.is_ascii_digit());
    while let Some(&first) = bytes.get(at) {
        if first.is_ascii_whitespace() || first == b'\x0b' {
            at += 1;
            continue;
        }
        if found.len() >= FIELDS_MAX {
            return Err(Trouble::Syntax);
        }
        let start = at;
        let mut text_of = None;
        let kind = if first.is_ascii_digit() {
            at = digits(at);
            match bytes.get(at) {
                Some(b':') => {
                    at = run(at, &|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
                    Kind::Time
                }
                Some(&separator @ (b'-' | b'/' | b'.')) => {
                    at += 1;
                    if bytes.get(at).is_some_and(u8::is_ascii_digit) {
                        at = digits(at);
                        // Three parts with the same separator.
                        if bytes.get(at) == Some(&separator) {
                            at = run(at, &|byte| byte.is_ascii_digit() || byte == separator);
                            Kind::Date
                        } else if separator == b'.' {
                            Kind::Number
                        } else {
                            Kind::Date
                        }
                    } else {
                        at = run(at, &|byte| byte.is_ascii_alphanumeric() || byte == separator);
                        Kind::Date
                    }
                }
                _ => Kind::Number,
            }
        } else if first == b'.' {
            at = digits(at + 1);
            Kind::Number
        } else if first.is_ascii_alphabetic() {
            at = run(at, &|byte| byte.is_ascii_alphabetic());
            let joined = match bytes.get(at) {
                Some(b'-' | b'/' | b'.') => true,
                Some(byte) if *byte == b'+' || byte.is_ascii_digit() => {
                    meaning(&text[start..at].to_ascii_lowercase()).is_none()
                }
                _ => false,
            };
            if joined {
                at = run(at, &|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
                });
                Kind::Date
            } else {
                Kind::Word
            }
        } else if matches!(first, b'+' | b'-') {
            at = run(at + 1, &|byte| byte.is_ascii_whitespace());
            let body = at;
            let kind = match bytes.get(at) {
                Some(byte) if byte.is_ascii_digit() => {
                    at = run(at, &|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-'));
                    Kind::Offset
                }
                Some(byte) if byte.is_ascii_alphabetic() => {
                    at = run(at, &|byte| byte.is_ascii_alphabetic());
                    Kind::Word
                }
                _ => return Err(Trouble::Syntax),
            };
            text_of = Some(format!("{}{}", char::from(first), &text[body..at]));
            kind
        } else if first.is_ascii_punctuation() {
            at += 1;
            continue;
        } else {
            return Err(Trouble::Syntax);
        };
        let text = text_of.unwrap_or_else(|| text[start..at].to_owned()).to_ascii_lowercase();
        found.push(Field { kind, text });
    }
    Ok(found)
}
