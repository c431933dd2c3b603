//! Time zones: names, abbreviations and offsets; wall clock to instant and back.

use std::sync::OnceLock;

use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use rustc_hash::FxHashMap;

use super::{EPOCH_MICROS, MICROS_PER_DAY, MICROS_PER_SECOND, civil_from_micros};
use crate::error::{Result, SqlError, SqlState};

/// What an abbreviation stands for.
pub enum Abbreviation {
    /// Seconds east of Greenwich.
    Fixed(i32),
    /// What a zone meant by it, which changed with time: its name in capitals, and the zone.
    Moving(&'static str, TimeZone),
}

/// The abbreviations of PostgreSQL's Default set: in lower case, with seconds or a zone's name.
fn abbreviations() -> &'static FxHashMap<&'static str, &'static str> {
    static TABLE: OnceLock<FxHashMap<&'static str, &'static str>> = OnceLock::new();
    TABLE.get_or_init(|| {
        include_str!("../../../data/timezone.tsv").lines().filter_map(|line| line.split_once('\t')).collect()
    })
}

/// The abbreviation of this name.
pub fn abbreviation(name: &str) -> Option<Abbreviation> {
    let (name, meaning) = abbreviations().get_key_value(name.to_ascii_lowercase().as_str())?;
    match meaning.parse() {
        Ok(seconds) => Some(Abbreviation::Fixed(seconds)),
        Err(_) => TimeZone::get(meaning).ok().map(|zone| Abbreviation::Moving(name, zone)),
    }
}

/// Seconds east of Greenwich that an abbreviation stood for when the clock of its zone showed
/// `local` (DetermineTimeZoneAbbrevOffset).
pub fn offset_of_abbreviation(abbreviation: &str, zone: &TimeZone, local: i64) -> i64 {
    let usual = offset_of_local(zone, local);
    offset_of_abbreviation_at(abbreviation, zone, local - usual * MICROS_PER_SECOND).unwrap_or(usual)
}

/// The same at an instant: its meaning then, else the last one before, else the first one after.
pub fn offset_of_abbreviation_at(abbreviation: &str, zone: &TimeZone, instant: i64) -> Option<i64> {
    let at = timestamp(instant)?;
    let now = zone.to_offset_info(at);
    if now.abbreviation().eq_ignore_ascii_case(abbreviation) {
        return Some(i64::from(now.offset().seconds()));
    }
    let earlier = zone.preceding(at).find(|one| one.abbreviation().eq_ignore_ascii_case(abbreviation));
    let found = match earlier {
        Some(found) => found.offset(),
        None => {
            let mut later = zone.following(at).take(1000);
            later.find(|one| one.abbreviation().eq_ignore_ascii_case(abbreviation))?.offset()
        }
    };
    Some(i64::from(found.seconds()))
}

/// A zone as `AT TIME ZONE` reads it: an abbreviation, a name of the tz database, or POSIX's
/// spelling, in which offsets count to the west (`+03`, `XYZ+3`).
pub fn by_name(name: &str) -> Option<TimeZone> {
    match abbreviation(name.trim()) {
        Some(Abbreviation::Fixed(seconds)) => fixed(seconds),
        Some(Abbreviation::Moving(_, zone)) => Some(zone),
        None => full_name(name),
    }
}

/// A zone as the TimeZone setting reads it: a name of the tz database, hours to the east
/// (`+3`, `-4.5`), or POSIX's spelling.
pub fn for_setting(name: &str) -> Option<TimeZone> {
    let trimmed = name.trim();
    if let Ok(hours) = trimmed.parse::<f64>() {
        return if hours.abs() <= 15.0 { fixed((hours * 3600.0) as i32) } else { None };
    }
    full_name(name)
}

/// A zone of the tz database or in POSIX's spelling.
pub fn full_name(name: &str) -> Option<TimeZone> {
    let name = name.trim();
    if name.eq_ignore_ascii_case("utc")
        || name.eq_ignore_ascii_case("gmt")
        || name.eq_ignore_ascii_case("zulu")
    {
        return Some(TimeZone::UTC);
    }
    let unsigned = name.starts_with(|c: char| c.is_ascii_digit());
    let signed = if unsigned { parse_offset(&format!("+{name}")) } else { parse_offset(name) };
    if let Some(offset) = signed {
        return fixed(-offset);
    }
    if let Ok(zone) = TimeZone::get(name) {
        return Some(zone);
    }
    // `<+03>-03` is how SHOW spells a plain offset; the name may hold what is in no name of POSIX.
    if let Some(west) = name.strip_prefix('<').and_then(|rest| parse_offset(rest.split_once('>')?.1)) {
        return fixed(-west);
    }
    // POSIX: a name of letters, then hours to the west.
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    if (letters >= 3 || name.starts_with('<'))
        && let Ok(zone) = TimeZone::posix(name)
    {
        return Some(zone);
    }
    // Without rules of its own, daylight saving is where and when it is in the United States.
    if letters >= 3
        && name.ends_with(|c: char| c.is_ascii_alphabetic())
        && let Ok(zone) = TimeZone::posix(&format!("{name},M3.2.0,M11.1.0"))
    {
        return Some(zone);
    }
    let west = if letters >= 3 {
        parse_offset(&name[letters..]).or_else(|| parse_offset(&format!("+{}", &name[letters..])))
    } else {
        None
    };
    west.and_then(|seconds| fixed(-seconds)).or_else(|| loosely_posix(name))
}

/// POSIX's spelling with names of any length and sign, as PostgreSQL takes them (tzparse in localtime.c):
/// `A-3`, `AB3CD`, `<A>3`.
fn loosely_posix(name: &str) -> Option<TimeZone> {
    let (first, rest) = name_of_posix(name)?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, '+' | '-' | ':')));
    let (offset, rest) = rest.split_at(end.unwrap_or(rest.len()));
    if offset.is_empty() {
        return None;
    }
    if rest.is_empty() {
        return TimeZone::posix(&format!("<{first}>{offset}")).ok();
    }
    let (second, rest) = name_of_posix(rest)?;
    // As above, where there are no rules.
    let rules = if rest.contains(',') { "" } else { ",M3.2.0,M11.1.0" };
    TimeZone::posix(&format!("<{first}>{offset}<{second}>{rest}{rules}")).ok()
}

/// The name that POSIX's spelling begins with, and what is behind it. The library wants three signs at
/// least, of letters and digits: dashes fill it up.
fn name_of_posix(text: &str) -> Option<(String, &str)> {
    let (name, rest) = match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?,
        None => {
            let end = text.find(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ','));
            text.split_at(end.unwrap_or(text.len()))
        }
    };
    if name.is_empty() && !text.starts_with('<') {
        return None;
    }
    let mut fitting: String = name.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
    while fitting.len() < 3 {
        fitting.push(FILLING);
    }
    Some((fitting, rest))
}

/// What fills short names of zones, which none ends with.
const FILLING: char = '-';

/// What a zone says at an instant.
pub struct ZoneTime {
    pub abbreviation: String,
    /// Seconds east of Greenwich.
    pub offset: i64,
    pub is_daylight_saving: bool,
}

/// See [`ZoneTime`]; `None` beyond what the tz database reaches.
pub fn said_at(zone: &TimeZone, instant: i64) -> Option<ZoneTime> {
    let info = zone.to_offset_info(timestamp(instant)?);
    Some(ZoneTime {
        abbreviation: info.abbreviation().trim_end_matches(FILLING).to_owned(),
        offset: i64::from(info.offset().seconds()),
        is_daylight_saving: info.dst().is_dst(),
    })
}

/// The names of the tz database.
pub fn names() -> Vec<String> {
    jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect()
}

/// The abbreviations that [`abbreviation`] knows, in lower case and no order.
pub fn abbreviation_names() -> impl Iterator<Item = &'static str> {
    abbreviations().keys().copied()
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
    if !digits.is_ascii() {
        return None;
    }
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

/// The calendar repeats itself, weekdays included, after so many years.
const CYCLE_YEARS: i64 = 400;
const CYCLE_MICROS: i64 = 146_097 * MICROS_PER_DAY;

/// An instant for the tz database, which ends with the year 9999: later ones fall into a year of
/// the same calendar and the same rules.
pub(super) fn timestamp(instant: i64) -> Option<jiff::Timestamp> {
    let mut unix = instant.saturating_add(EPOCH_MICROS);
    let beyond = unix - jiff::Timestamp::MAX.as_microsecond() + MICROS_PER_DAY;
    if beyond > 0 {
        unix -= (beyond / CYCLE_MICROS + 1) * CYCLE_MICROS;
    }
    jiff::Timestamp::from_microsecond(unix).ok()
}

/// Seconds east of Greenwich at an instant (microseconds since 2000 UTC).
pub fn offset_at(zone: &TimeZone, instant: i64) -> i64 {
    timestamp(instant).map_or(0, |at| i64::from(zone.to_offset(at).seconds()))
}

/// The offset of a zone that never had another, in seconds to the east (pg_get_timezone_offset).
pub fn only_offset(zone: &TimeZone) -> Option<i64> {
    let offset = zone.to_fixed_offset().unwrap_or_else(|_| zone.to_offset(jiff::Timestamp::MIN));
    let constant = zone.following(jiff::Timestamp::MIN).all(|change| change.offset() == offset);
    constant.then(|| i64::from(offset.seconds()))
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
    let mut year = civil.date.year;
    if year > 9999 {
        year = 9999 - CYCLE_YEARS + (year - 9999) % CYCLE_YEARS;
    }
    let year = year.max(-9999) as i16;
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
    timestamp(instant).map_or_else(String::new, |at| {
        zone.to_offset_info(at).abbreviation().trim_end_matches(FILLING).to_owned()
    })
}

/// The canonical name of a TimeZone setting (`utc` is `UTC`, `europe/berlin` is
/// `Europe/Berlin`); `None` if there is no such zone.
pub fn canonical_name(name: &str) -> Option<String> {
    let zone = for_setting(name)?;
    if let Some(iana) = zone.iana_name() {
        // An abbreviation PostgreSQL shows as typed keeps its spelling.
        return Some(if name.eq_ignore_ascii_case("gmt") { "GMT".to_owned() } else { iana.to_owned() });
    }
    // Of a plain number of hours; POSIX's spelling is its own.
    if name.trim().parse::<f64>().is_err() {
        return Some(name.trim().to_ascii_uppercase());
    }
    let seconds = i64::from(zone.to_fixed_offset().ok()?.seconds());
    Some(offset_name(seconds))
}

/// A plain offset, in seconds to the east, as SHOW gives it: in POSIX's spelling, where east is
/// negative.
pub fn offset_name(seconds: i64) -> String {
    let (mut shown, mut west) = (String::new(), String::new());
    let _ = crate::datetime::offset::format_offset(seconds, &mut shown);
    let _ = crate::datetime::offset::format_offset(-seconds, &mut west);
    format!("<{shown}>{west}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_canonical_names() {
        assert_eq!(canonical_name("utc").as_deref(), Some("UTC"));
        assert_eq!(canonical_name("europe/berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(canonical_name("+2").as_deref(), Some("<+02>-02"));
        assert_eq!(canonical_name("UTC-2").as_deref(), Some("UTC-2"));
        assert_eq!(canonical_name("CST7CDT,M4.1.0,M10.5.0").as_deref(), Some("CST7CDT,M4.1.0,M10.5.0"));
        assert_eq!(for_setting("<+02>-02").map(|zone| offset_at(&zone, 0)), Some(7200));
        assert_eq!(canonical_name("+2.5").as_deref(), Some("<+02:30>-02:30"));
        assert_eq!(for_setting("<+02:30>-02:30").map(|zone| offset_at(&zone, 0)), Some(9000));
        assert_eq!(canonical_name("no such zone"), None);
    }

    #[test]
    fn names_of_zones_may_be_short() {
        let hours = |name: &str, instant: i64| for_setting(name).map(|zone| offset_at(&zone, instant) / 3600);
        let summer = 200 * MICROS_PER_DAY;
        assert_eq!(hours("BC-08", 0), Some(8));
        assert_eq!(hours("a+3", 0), Some(-3));
        assert_eq!((hours("AB3CD", 0), hours("AB3CD", summer)), (Some(-3), Some(-2)));
        assert_eq!((hours("A3B1,M3.2.0,M11.1.0", 0), hours("<A>3", 0)), (Some(-3), Some(-3)));
        assert_eq!((hours("AB", 0), hours("AB+", 0), hours(",3", 0)), (None, None, None));
        let zone = for_setting("BC-08").unwrap();
        assert_eq!(abbreviation_at(&zone, 0), "BC");
    }
}
