//! Reading dates and times: ISO, the orders DateStyle allows, month names, special words.
//!
//! The text is cut into fields (dates, clocks, numbers, words, offsets) as PostgreSQL's
//! ParseDateTime does, and the fields are then assigned to year, month, day, clock and zone.

use jiff::tz::TimeZone;

use super::zone;
use super::{
    DAYS, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, MONTHS, check_date,
    check_timestamp, days_from_civil, days_in_month,
};
use crate::error::{Result, SqlError, SqlState};
use crate::style::{DateOrder, Style};

/// What went wrong, before the type's name is known.
enum Trouble {
    Syntax,
    Range,
    Zone(String),
    Displacement,
}

impl Trouble {
    fn error(self, text: &str, type_name: &str) -> SqlError {
        match self {
            Trouble::Syntax => SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            Trouble::Range => SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            ),
            Trouble::Zone(name) => SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("time zone \"{name}\" not recognized"),
            ),
            Trouble::Displacement => SqlError::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                format!("time zone displacement out of range: \"{text}\""),
            ),
        }
    }
}

/// A word that stands for a whole value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    Infinity,
    NegativeInfinity,
    Epoch,
    Now,
    Today,
    Tomorrow,
    Yesterday,
}

enum Zone {
    Offset(i64),
    Named(TimeZone),
}

#[derive(Default)]
struct Fields {
    special: Option<Special>,
    /// Days since 2000.
    date: Option<i64>,
    clock: Option<i64>,
    zone: Option<Zone>,
}

#[derive(Debug)]
enum Token<'a> {
    /// Digits (and perhaps letters) with separators.
    Date(&'a str),
    Clock(&'a str),
    Number(&'a str),
    Word(&'a str),
    Offset(&'a str),
}

fn tokens(text: &str) -> std::result::Result<Vec<Token<'_>>, Trouble> {
    let bytes = text.as_bytes();
    let mut list = Vec::with_capacity(4);
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let run = |from: usize, accept: &dyn Fn(u8) -> bool| {
            bytes[from..].iter().take_while(|b| accept(**b)).count() + from
        };
        match bytes[at] {
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b'\x0b' | b'\x0c' => at += 1,
            digit if digit.is_ascii_digit() => {
                at = run(at, &|b| b.is_ascii_digit());
                match bytes.get(at) {
                    Some(b':') => {
                        at = run(at, &|b| b.is_ascii_digit() || b == b':' || b == b'.');
                        list.push(Token::Clock(&text[start..at]));
                    }
                    Some(&separator @ (b'-' | b'/')) => {
                        at = date_end(bytes, at, separator);
                        list.push(Token::Date(&text[start..at]));
                    }
                    Some(b'.') => {
                        let end = run(at + 1, &|b| b.is_ascii_digit());
                        if bytes.get(end) == Some(&b'.') {
                            at = date_end(bytes, at, b'.');
                            list.push(Token::Date(&text[start..at]));
                        } else {
                            at = end;
                            list.push(Token::Number(&text[start..at]));
                        }
                    }
                    _ => list.push(Token::Number(&text[start..at])),
                }
            }
            letter if letter.is_ascii_alphabetic() => {
                at = run(at, &|b| b.is_ascii_alphabetic());
                if matches!(bytes.get(at), Some(b'/' | b'_')) {
                    at = run(at, &|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+'));
                } else if bytes.get(at) == Some(&b'-')
                    && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
                    && month(&text[start..at]).is_some()
                {
                    // Jan-08-1999
                    at = date_end(bytes, at, b'-');
                    list.push(Token::Date(&text[start..at]));
                    continue;
                }
                // A name with an offset at once after it is POSIX's: `GMT-4`, `PST+03:00`.
                if at - start >= 3
                    && matches!(bytes.get(at), Some(b'+' | b'-'))
                    && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
                    && month(&text[start..at]).is_none()
                {
                    at = run(at + 1, &|b| b.is_ascii_digit() || b == b':');
                }
                list.push(Token::Word(&text[start..at]));
                if bytes.get(at) == Some(&b'.') {
                    at += 1;
                }
            }
            b'+' | b'-' => {
                at += 1;
                if bytes.get(at).is_some_and(u8::is_ascii_digit) {
                    at = run(at, &|b| b.is_ascii_digit() || b == b':');
                    list.push(Token::Offset(&text[start..at]));
                } else if bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
                    at = run(at, &|b| b.is_ascii_alphabetic());
                    list.push(Token::Word(&text[start..at]));
                } else {
                    return Err(Trouble::Syntax);
                }
            }
            _ => return Err(Trouble::Syntax),
        }
    }
    Ok(list)
}

/// End of a date of up to three parts whose first separator stands at `at`.
fn date_end(bytes: &[u8], mut at: usize, separator: u8) -> usize {
    for _ in 0..2 {
        if bytes.get(at) != Some(&separator) || !bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric) {
            break;
        }
        at += 1;
        // A part is digits or a month's name; `08T04` ends before the T.
        let letters = bytes[at].is_ascii_alphabetic();
        while bytes
            .get(at)
            .is_some_and(|b| if letters { b.is_ascii_alphabetic() } else { b.is_ascii_digit() })
        {
            at += 1;
        }
    }
    at
}

fn month(word: &str) -> Option<u32> {
    let matches = |name: &str| {
        word.eq_ignore_ascii_case(name)
            || word.eq_ignore_ascii_case(&name[..3])
            || (name == "September" && word.eq_ignore_ascii_case("sept"))
    };
    MONTHS.iter().position(|name| matches(name)).map(|i| i as u32 + 1)
}

fn is_day_name(word: &str) -> bool {
    word.len() >= 3
        && DAYS.iter().any(|name| name.len() >= word.len() && name[..word.len()].eq_ignore_ascii_case(word))
}

/// Year, month and day while they are being found.
#[derive(Default)]
struct Day {
    year: Option<(i64, usize)>,
    month: Option<u32>,
    day: Option<u32>,
    bc: bool,
    /// A day count that replaces the three (Julian day, day of year).
    whole: Option<i64>,
}

fn int<T: std::str::FromStr>(digits: &str) -> std::result::Result<T, Trouble> {
    digits.parse().map_err(|_| Trouble::Range)
}

impl Day {
    fn seen(&self) -> bool {
        self.year.is_some() || self.day.is_some() || self.whole.is_some()
    }

    fn set_year(&mut self, digits: &str) -> std::result::Result<(), Trouble> {
        self.year = Some((int(digits)?, digits.len()));
        Ok(())
    }

    fn separated(&mut self, text: &str, order: DateOrder) -> std::result::Result<(), Trouble> {
        let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
        if let Some(named) = parts.iter().position(|p| p.bytes().all(|b| b.is_ascii_alphabetic())) {
            self.month = Some(month(parts[named]).ok_or(Trouble::Syntax)?);
            let rest: Vec<&str> =
                parts.iter().enumerate().filter(|(i, _)| *i != named).map(|(_, p)| *p).collect();
            let [first, second] = rest[..] else { return Err(Trouble::Syntax) };
            let year_first = first.len() > 2 || (order == DateOrder::Ymd && second.len() <= 2);
            let (year, day) = if year_first { (first, second) } else { (second, first) };
            self.set_year(year)?;
            self.day = Some(int(day)?);
            return Ok(());
        }
        match parts[..] {
            [year, day_of_year] if day_of_year.len() == 3 => {
                let year: i64 = int(year)?;
                let ordinal: i64 = int(day_of_year)?;
                if ordinal < 1 || ordinal > 365 + i64::from(super::is_leap(year)) {
                    return Err(Trouble::Range);
                }
                self.whole = Some(days_from_civil(year, 1, 1) + ordinal - 1);
            }
            [a, b, c] => {
                let (year, month, day) = if a.len() > 2 || order == DateOrder::Ymd {
                    (a, b, c)
                } else if order == DateOrder::Dmy {
                    (c, b, a)
                } else {
                    (c, a, b)
                };
                self.set_year(year)?;
                self.month = Some(int(month)?);
                self.day = Some(int(day)?);
            }
            _ => return Err(Trouble::Syntax),
        }
        Ok(())
    }

    fn resolve(&self) -> std::result::Result<Option<i64>, Trouble> {
        if let Some(days) = self.whole {
            return Ok(Some(days));
        }
        let (Some((mut year, digits)), Some(month), Some(day)) = (self.year, self.month, self.day) else {
            return if self.year.is_none() && self.month.is_none() && self.day.is_none() {
                Ok(None)
            } else {
                Err(Trouble::Syntax)
            };
        };
        if self.bc {
            if year == 0 {
                return Err(Trouble::Range);
            }
            year = 1 - year;
        } else if digits <= 2 {
            year += if year < 70 { 2000 } else { 1900 };
        } else if year == 0 {
            return Err(Trouble::Range);
        }
        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) || year > 6_000_000 {
            return Err(Trouble::Range);
        }
        Ok(Some(days_from_civil(year, month, day)))
    }
}

/// `hh:mm[:ss[.ffffff]]` in microseconds.
fn clock(text: &str) -> std::result::Result<i64, Trouble> {
    let mut parts = text.split(':');
    let hour: i64 = int(parts.next().unwrap_or(""))?;
    let minute: i64 = match parts.next() {
        Some("") | None => return Err(Trouble::Syntax),
        Some(minute) => int(minute)?,
    };
    let (second, micros) = match parts.next() {
        None => (0, 0),
        Some(seconds) => {
            let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
            (int::<i64>(whole)?, fraction_micros(fraction)?)
        }
    };
    if parts.next().is_some() {
        return Err(Trouble::Syntax);
    }
    if minute > 59 || second > 60 || hour > 24 || (hour == 24 && (minute > 0 || second > 0 || micros > 0)) {
        return Err(Trouble::Range);
    }
    let total = hour * MICROS_PER_HOUR + minute * MICROS_PER_MINUTE + second * MICROS_PER_SECOND + micros;
    // Second 60 carries over, but not past midnight, and takes no fraction.
    if total > MICROS_PER_DAY || (second == 60 && micros > 0) { Err(Trouble::Range) } else { Ok(total) }
}

fn fraction_micros(digits: &str) -> std::result::Result<i64, Trouble> {
    if digits.is_empty() {
        return Ok(0);
    }
    let value: f64 = format!("0.{digits}").parse().map_err(|_| Trouble::Syntax)?;
    Ok((value * 1e6).round_ties_even() as i64)
}

/// `hhmmss`, `hhmm` or `hhmmss.ffffff` without separators.
fn packed_clock(digits: &str) -> std::result::Result<i64, Trouble> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let spaced = match whole.len() {
        6 => format!("{}:{}:{}", &whole[..2], &whole[2..4], &whole[4..]),
        4 => format!("{}:{}:00", &whole[..2], &whole[2..]),
        2 => format!("{whole}:00:00"),
        _ => return Err(Trouble::Syntax),
    };
    Ok(clock(&spaced)? + fraction_micros(fraction)?)
}

fn scan(text: &str, style: &Style) -> std::result::Result<Fields, Trouble> {
    let mut fields = Fields::default();
    let mut day = Day::default();
    let mut afternoon: Option<bool> = None;
    let mut julian = false;
    let mut named_month = false;
    let mut time_marker = false;
    let list = tokens(text)?;
    // Three numbers between blanks are a date in the session's order: `08 01 1999`.
    let joined = match list[..] {
        [Token::Number(a), Token::Number(b), Token::Number(c), ..]
            if b.len() <= 2 && !a.contains('.') && !c.contains('.') =>
        {
            Some(format!("{a}-{b}-{c}"))
        }
        _ => None,
    };
    if let Some(date) = &joined {
        day.separated(date, style.date_order)?;
    }
    for token in list.into_iter().skip(if joined.is_some() { 3 } else { 0 }) {
        match token {
            Token::Date(_) if day.seen() => return Err(Trouble::Syntax),
            Token::Date(date) => day.separated(date, style.date_order)?,
            Token::Clock(text) if fields.clock.is_none() => {
                fields.clock = Some(clock(text)?);
                time_marker = false;
            }
            Token::Clock(_) => return Err(Trouble::Syntax),
            Token::Number(digits) if julian => {
                let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
                day.whole = Some(int::<i64>(whole)? - 2_451_545);
                if !fraction.is_empty() {
                    let part: f64 = format!("0.{fraction}").parse().map_err(|_| Trouble::Syntax)?;
                    fields.clock = Some((part * MICROS_PER_DAY as f64).round() as i64);
                }
                julian = false;
            }
            Token::Number(digits)
                if time_marker || (day.year.is_some() && day.day.is_some() && fields.clock.is_none()) =>
            {
                fields.clock = Some(packed_clock(digits)?);
                time_marker = false;
            }
            Token::Number(digits) if digits.len() == 8 && digits.as_bytes()[4] == b'.' && !day.seen() => {
                // `1999.008`: year and day of the year.
                day.separated(digits, style.date_order)?;
            }
            Token::Number(digits) if digits.contains('.') => return Err(Trouble::Syntax),
            Token::Number(digits)
                if !day.seen() && day.month.is_none() && (digits.len() == 8 || digits.len() == 6) =>
            {
                let split = digits.len() - 4;
                day.set_year(&digits[..split])?;
                day.month = Some(int(&digits[split..split + 2])?);
                day.day = Some(int(&digits[split + 2..])?);
            }
            Token::Number(digits) if digits.len() > 2 => {
                if day.year.is_some() {
                    return Err(Trouble::Syntax);
                }
                day.set_year(digits)?;
            }
            Token::Number(digits) => {
                if day.month.is_some() && day.day.is_none() {
                    day.day = Some(int(digits)?);
                } else if day.month.is_some() && day.year.is_none() {
                    day.set_year(digits)?;
                } else if day.year.is_some() && day.month.is_none() {
                    day.month = Some(int(digits)?);
                } else if day.day.is_none() {
                    day.day = Some(int(digits)?);
                } else {
                    return Err(Trouble::Syntax);
                }
            }
            Token::Offset(offset) => {
                // After a date alone a minus is no zone: it is left to fail as PostgreSQL fails.
                if fields.zone.is_some() || (fields.clock.is_none() && !day.seen()) {
                    return Err(Trouble::Syntax);
                }
                let seconds = zone::parse_offset(offset).ok_or(Trouble::Displacement)?;
                fields.zone = Some(Zone::Offset(i64::from(seconds)));
            }
            Token::Word(word) => {
                let lower = word.to_ascii_lowercase();
                match lower.as_str() {
                    "t" if day.seen() => time_marker = true,
                    "j" | "jd" | "julian" => julian = true,
                    "bc" => day.bc = true,
                    "ad" | "at" | "on" => {}
                    "am" => afternoon = Some(false),
                    "pm" => afternoon = Some(true),
                    "allballs" => {
                        fields.clock = Some(0);
                        fields.zone = Some(Zone::Offset(0));
                    }
                    "infinity" | "+infinity" => fields.special = Some(Special::Infinity),
                    "-infinity" => fields.special = Some(Special::NegativeInfinity),
                    "epoch" => fields.special = Some(Special::Epoch),
                    "now" => fields.special = Some(Special::Now),
                    "today" => fields.special = Some(Special::Today),
                    "tomorrow" => fields.special = Some(Special::Tomorrow),
                    "yesterday" => fields.special = Some(Special::Yesterday),
                    _ => {
                        if let Some(month) = month(word) {
                            // In `1999 08 Jan` the number taken for a month was the day.
                            if day.month.is_some() {
                                if day.day.is_some() || named_month {
                                    return Err(Trouble::Syntax);
                                }
                                day.day = day.month;
                            }
                            named_month = true;
                            day.month = Some(month);
                        } else if is_day_name(word) {
                            // Days of the week are noise.
                        } else if let Some(offset) = zone::abbreviation(word) {
                            fields.zone = Some(Zone::Offset(i64::from(offset)));
                        } else if word.len() > 2 && fields.zone.is_none() {
                            let name = word.contains('/') || fields.clock.is_some() || day.seen();
                            let zone = if name { zone::by_name(word) } else { None };
                            match zone {
                                Some(zone) => fields.zone = Some(Zone::Named(zone)),
                                None if word.contains('/') => return Err(Trouble::Zone(lower)),
                                None => return Err(Trouble::Syntax),
                            }
                        } else {
                            return Err(Trouble::Syntax);
                        }
                    }
                }
            }
        }
    }
    if julian || time_marker {
        return Err(Trouble::Syntax);
    }
    if let (Some(pm), Some(clock)) = (afternoon, &mut fields.clock) {
        let hour = *clock / MICROS_PER_HOUR;
        if hour > 12 {
            return Err(Trouble::Range);
        }
        if pm && hour < 12 {
            *clock += 12 * MICROS_PER_HOUR;
        } else if !pm && hour == 12 {
            *clock -= 12 * MICROS_PER_HOUR;
        }
    }
    fields.date = day.resolve()?;
    Ok(fields)
}

/// The date of a special word, and whether it is relative to the present.
fn special_day(special: Special, local_now: i64) -> i64 {
    let today = local_now.div_euclid(MICROS_PER_DAY);
    match special {
        Special::Tomorrow => today + 1,
        Special::Yesterday => today - 1,
        Special::Epoch => days_from_civil(1970, 1, 1),
        _ => today,
    }
}

/// Reads a date. `now` is the transaction's start.
pub fn parse_date(text: &str, style: &Style, now: i64) -> Result<i32> {
    let fail = |trouble: Trouble| trouble.error(text, "date");
    let fields = scan(text, style).map_err(fail)?;
    match fields.special {
        Some(Special::Infinity) => return Ok(i32::MAX),
        Some(Special::NegativeInfinity) => return Ok(i32::MIN),
        Some(special) => return check_date(special_day(special, zone::to_local(&style.time_zone, now))),
        None => {}
    }
    let days = fields.date.ok_or_else(|| fail(Trouble::Syntax))?;
    check_date(days).map_err(|_| {
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\""))
    })
}

/// Reads a time of day.
pub fn parse_time(text: &str, style: &Style, now: i64) -> Result<i64> {
    let fail = |trouble: Trouble| trouble.error(text, "time");
    let fields = match scan(text, style) {
        Ok(fields) => fields,
        // `040506` alone is a time here.
        Err(trouble) => match packed_clock(text.trim()) {
            Ok(clock) => return Ok(clock),
            Err(_) => return Err(fail(trouble)),
        },
    };
    if fields.special == Some(Special::Now) {
        return Ok(zone::to_local(&style.time_zone, now).rem_euclid(MICROS_PER_DAY));
    }
    match fields.clock {
        Some(clock) => Ok(clock),
        None => packed_clock(text.trim()).map_err(|_| fail(Trouble::Syntax)),
    }
}

/// Local wall-clock microseconds and the zone, if one was written.
enum Moment {
    Infinite(i64),
    Local(i64, Option<Zone>),
    Instant(i64),
}

fn parse_moment(text: &str, style: &Style, now: i64, type_name: &str) -> Result<Moment> {
    let fail = |trouble: Trouble| trouble.error(text, type_name);
    let fields = scan(text, style).map_err(fail)?;
    let out_of_range =
        |_| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("timestamp out of range: \"{text}\""));
    match fields.special {
        Some(Special::Infinity) => return Ok(Moment::Infinite(i64::MAX)),
        Some(Special::NegativeInfinity) => return Ok(Moment::Infinite(i64::MIN)),
        Some(Special::Now) => return Ok(Moment::Instant(now)),
        Some(Special::Epoch) => return Ok(Moment::Instant(-super::EPOCH_MICROS)),
        Some(special) => {
            let day = special_day(special, zone::to_local(&style.time_zone, now));
            let local = check_timestamp(day, fields.clock.unwrap_or(0)).map_err(out_of_range)?;
            return Ok(Moment::Local(local, fields.zone));
        }
        None => {}
    }
    let days = fields.date.ok_or_else(|| fail(Trouble::Syntax))?;
    let local = check_timestamp(days, fields.clock.unwrap_or(0)).map_err(out_of_range)?;
    Ok(Moment::Local(local, fields.zone))
}

/// Reads a timestamp without time zone; a zone in the text is ignored, as PostgreSQL does.
pub fn parse_timestamp(text: &str, style: &Style, now: i64) -> Result<i64> {
    Ok(match parse_moment(text, style, now, "timestamp")? {
        Moment::Infinite(value) | Moment::Local(value, _) => value,
        Moment::Instant(instant) if instant == -super::EPOCH_MICROS => instant,
        Moment::Instant(instant) => zone::to_local(&style.time_zone, instant),
    })
}

/// Reads a timestamp with time zone; without a zone in the text, the session's holds.
pub fn parse_timestamptz(text: &str, style: &Style, now: i64) -> Result<i64> {
    let instant = match parse_moment(text, style, now, "timestamp with time zone")? {
        Moment::Infinite(value) | Moment::Instant(value) => return Ok(value),
        Moment::Local(local, None) => zone::to_instant(&style.time_zone, local),
        Moment::Local(local, Some(Zone::Offset(seconds))) => local - seconds * MICROS_PER_SECOND,
        Moment::Local(local, Some(Zone::Named(zone))) => zone::to_instant(&zone, local),
    };
    if super::in_range(instant) {
        Ok(instant)
    } else {
        Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("timestamp out of range: \"{text}\"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(text: &str) -> std::result::Result<String, SqlState> {
        parse_timestamp(text, Style::standard(), 0).map_err(|e| e.state()).map(|t| {
            let mut out = String::new();
            super::super::format_timestamp(t, &mut out).unwrap();
            out
        })
    }

    #[test]
    fn reads_the_manual_s_examples() {
        for text in [
            "1999-01-08 04:05:06",
            "1999-01-08T04:05:06",
            "19990108T040506",
            "January 8, 1999 04:05:06",
            "1/8/1999 04:05:06",
            "8-Jan-1999 04:05:06",
            "Jan-08-1999 04:05:06 AM",
            "Fri Jan 8 04:05:06 1999",
            "1999-01-08 04:05:06 PST",
        ] {
            assert_eq!(timestamp(text).as_deref(), Ok("1999-01-08 04:05:06"), "{text}");
        }
        assert_eq!(timestamp("2024-02-30"), Err(SqlState::DATETIME_FIELD_OVERFLOW));
        assert_eq!(timestamp("rubbish"), Err(SqlState::INVALID_DATETIME_FORMAT));
        assert_eq!(timestamp("0044-03-15 BC").as_deref(), Ok("0044-03-15 00:00:00 BC"));
        assert_eq!(timestamp("1999-01-08 04:05:06.789 pm").as_deref(), Ok("1999-01-08 16:05:06.789"));
    }
}
