//! Time zones: names, abbreviations and offsets; wall clock to instant and back.

use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::{EPOCH_MICROS, MICROS_PER_SECOND, civil_from_micros};
use crate::error::{Result, SqlError, SqlState};

/// Abbreviations PostgreSQL's Default set knows, in seconds east of Greenwich.
const ABBREVIATIONS: &[(&str, i32)] = &[
    ("utc", 0),
    ("gmt", 0),
    ("z", 0),
    ("zulu", 0),
    ("ut", 0),
    ("uct", 0),
    ("wet", 0),
    ("est", -18_000),
    ("edt", -14_400),
    ("cst", -21_600),
    ("cdt", -18_000),
    ("mst", -25_200),
    ("mdt", -21_600),
    ("pst", -28_800),
    ("pdt", -25_200),
    ("akst", -32_400),
    ("akdt", -28_800),
    ("hst", -36_000),
    ("cet", 3_600),
    ("cest", 7_200),
    ("mez", 3_600),
    ("mesz", 7_200),
    ("bst", 3_600),
    ("eet", 7_200),
    ("eest", 10_800),
    ("west", 3_600),
    ("msk", 10_800),
    ("jst", 32_400),
    ("kst", 32_400),
    ("aest", 36_000),
    ("aedt", 39_600),
    ("awst", 28_800),
    ("acst", 34_200),
    ("nzst", 43_200),
    ("nzdt", 46_800),
    ("nst", -12_600),
    ("ast", -14_400),
    ("adt", -10_800),
];

/// The fixed offset an abbreviation stands for.
pub fn abbreviation(name: &str) -> Option<i32> {
    ABBREVIATIONS
        .iter()
        .find(|(abbreviation, _)| name.eq_ignore_ascii_case(abbreviation))
        .map(|(_, offset)| *offset)
}

/// A zone as `AT TIME ZONE` reads it: an abbreviation, a name of the tz database, or POSIX's
/// spelling, in which offsets count to the west (`+03`, `XYZ+3`).
pub fn by_name(name: &str) -> Option<TimeZone> {
    abbreviation(name.trim()).and_then(fixed).or_else(|| full_name(name))
}

/// A zone as the TimeZone setting reads it: a name of the tz database, hours to the east
/// (`+3`, `-4.5`), or POSIX's spelling.
pub fn for_setting(name: &str) -> Option<TimeZone> {
    let trimmed = name.trim();
    if let Ok(hours) = trimmed.parse::<f64>() {
        return if hours.abs() <= 15.0 { fixed((hours * 3600.0) as i32) } else { None };
    }
    full_name(name).or_else(|| abbreviation(trimmed).and_then(fixed))
}

fn full_name(name: &str) -> Option<TimeZone> {
    let name = name.trim();
    if name.eq_ignore_ascii_case("utc")
        || name.eq_ignore_ascii_case("gmt")
        || name.eq_ignore_ascii_case("zulu")
    {
        return Some(TimeZone::UTC);
    }
    if let Some(offset) = parse_offset(name) {
        return fixed(-offset);
    }
    if let Ok(zone) = TimeZone::get(name) {
        return Some(zone);
    }
    // POSIX: a name of letters, then hours to the west.
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    // `<+03>-03` is how SHOW spells a plain offset.
    if (letters >= 3 || name.starts_with('<'))
        && let Ok(zone) = TimeZone::posix(name)
    {
        return Some(zone);
    }
    let west = if letters >= 3 {
        parse_offset(&name[letters..]).or_else(|| parse_offset(&format!("+{}", &name[letters..])))
    } else {
        None
    };
    west.and_then(|seconds| fixed(-seconds))
}

fn fixed(seconds: i32) -> Option<TimeZone> {
    Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}

/// As [`by_name`], or PostgreSQL's error.
pub fn lookup(name: &str) -> Result<TimeZone> {
    by_name(name).ok_or_else(|| {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized"))
    })
}

/// `+hh`, `-hh:mm`, `+hhmm`, `+hh:mm:ss` in seconds east.
pub fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let part =
        |s: &str| s.parse::<i32>().ok().filter(|_| s.bytes().all(|b| b.is_ascii_digit()) && !s.is_empty());
    let (hours, minutes, seconds) = if digits.contains(':') {
        let mut parts = digits.split(':');
        (part(parts.next()?)?, part(parts.next()?)?, parts.next().map_or(Some(0), part)?)
    } else {
        match digits.len() {
            1 | 2 => (part(digits)?, 0, 0),
            3 => (part(&digits[..1])?, part(&digits[1..])?, 0),
            4 => (part(&digits[..2])?, part(&digits[2..])?, 0),
            6 => (part(&digits[..2])?, part(&digits[2..4])?, part(&digits[4..])?),
            _ => return None,
        }
    };
    (hours <= 15 && minutes < 60 && seconds < 60).then_some(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// Seconds east of Greenwich at an instant (microseconds since 2000 UTC).
pub fn offset_at(zone: &TimeZone, instant: i64) -> i64 {
    let unix = instant.saturating_add(EPOCH_MICROS);
    let clamped = unix.clamp(jiff::Timestamp::MIN.as_microsecond(), jiff::Timestamp::MAX.as_microsecond());
    jiff::Timestamp::from_microsecond(clamped).map_or(0, |at| i64::from(zone.to_offset(at).seconds()))
}

/// The wall clock of a zone at an instant.
pub fn to_local(zone: &TimeZone, instant: i64) -> i64 {
    if super::is_infinite(instant) {
        instant
    } else {
        instant.saturating_add(offset_at(zone, instant) * MICROS_PER_SECOND)
    }
}

/// The instant at which a zone's clock shows `local`. A time that was skipped counts with the
/// offset before the gap, a repeated one with the offset after the change, as in PostgreSQL.
pub fn to_instant(zone: &TimeZone, local: i64) -> i64 {
    if super::is_infinite(local) {
        return local;
    }
    local - offset_of_local(zone, local) * MICROS_PER_SECOND
}

/// Seconds east of Greenwich when a zone's clock shows `local`.
pub fn offset_of_local(zone: &TimeZone, local: i64) -> i64 {
    let civil = civil_from_micros(local);
    let year = civil.date.year.clamp(-9999, 9999) as i16;
    let datetime = jiff::civil::DateTime::new(
        year,
        civil.date.month as i8,
        civil.date.day as i8,
        civil.hour as i8,
        civil.minute as i8,
        civil.second as i8,
        0,
    );
    let Ok(datetime) = datetime else { return offset_at(zone, local) };
    let offset = match zone.to_ambiguous_timestamp(datetime).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } => before,
        AmbiguousOffset::Fold { after, .. } => after,
    };
    i64::from(offset.seconds())
}

/// The zone's abbreviation at an instant (`CET`), as to_char's TZ shows it.
pub fn abbreviation_at(zone: &TimeZone, instant: i64) -> String {
    let unix = instant.saturating_add(EPOCH_MICROS);
    match jiff::Timestamp::from_microsecond(unix) {
        Ok(at) => zone.to_offset_info(at).abbreviation().to_owned(),
        Err(_) => String::new(),
    }
}

/// The canonical name of a TimeZone setting (`utc` is `UTC`, `europe/berlin` is
/// `Europe/Berlin`); `None` if there is no such zone.
pub fn canonical_name(name: &str) -> Option<String> {
    let zone = for_setting(name)?;
    if let Some(iana) = zone.iana_name() {
        // An abbreviation PostgreSQL shows as typed keeps its spelling.
        return Some(if name.eq_ignore_ascii_case("gmt") { "GMT".to_owned() } else { iana.to_owned() });
    }
    let seconds = i64::from(zone.to_fixed_offset().ok()?.seconds());
    // SHOW gives POSIX's spelling of a plain offset: east is negative there.
    let (mut shown, mut west) = (String::new(), String::new());
    let _ = super::format::format_offset(seconds, &mut shown);
    let _ = super::format::format_offset(-seconds, &mut west);
    Some(format!("<{shown}>{west}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_canonical_names() {
        assert_eq!(canonical_name("utc").as_deref(), Some("UTC"));
        assert_eq!(canonical_name("europe/berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(canonical_name("+2").as_deref(), Some("<+02>-02"));
        assert_eq!(for_setting("<+02>-02").map(|zone| offset_at(&zone, 0)), Some(7200));
        assert_eq!(canonical_name("no such zone"), None);
    }
}
