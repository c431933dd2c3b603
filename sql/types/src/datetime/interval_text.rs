//! Intervals as text: PostgreSQL's own style, and ISO 8601 and verbose spellings on input.

use std::borrow::Cow;
use std::fmt::Write;

use super::format::fraction;
use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::datum::Interval;
use crate::error::{Result, SqlError, SqlState};
use crate::style::IntervalStyle;

fn invalid(text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATETIME_FORMAT,
        format!("invalid input syntax for type interval: \"{text}\""),
    )
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new(SqlState::INTERVAL_FIELD_OVERFLOW, format!("interval field value out of range: \"{text}\""))
}

/// Sums of the parts while reading; wide, so that overflow shows at the end.
#[derive(Default)]
struct Parts {
    /// Whole ones.
    years: i128,
    months: i128,
    days: i128,
    micros: i128,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Months(i64),
    Days(i64),
    Micros(i64),
}

fn unit(word: &str) -> Option<Unit> {
    let lower = word.to_ascii_lowercase();
    Some(match lower.as_str() {
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Months(12),
        "mon" | "mons" | "month" | "months" => Unit::Months(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "d" | "day" | "days" => Unit::Days(1),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Micros(MICROS_PER_HOUR),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Micros(MICROS_PER_MINUTE),
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Micros(MICROS_PER_SECOND),
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" | "millisecon" => {
            Unit::Micros(1000)
        }
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" | "microsecon" => {
            Unit::Micros(1)
        }
        "millenniums" | "milleniums" => Unit::Months(12_000),
        "decade" | "decades" | "dec" | "decs" => Unit::Months(120),
        "century" | "centuries" | "c" | "cent" => Unit::Months(1200),
        "millennium" | "millennia" | "mil" | "mils" => Unit::Months(12_000),
        _ => return None,
    })
}

impl Parts {
    /// Adds `whole.fraction` units; fractions of a month spill into days of 30 a month, those
    /// of a day into time.
    fn add(&mut self, whole: i128, fraction: f64, unit: Unit) {
        match unit {
            Unit::Months(n) => {
                if n > 1 {
                    self.years += whole * i128::from(n / 12);
                    self.months += (fraction * n as f64).round_ties_even() as i128;
                } else {
                    self.months += whole;
                    self.add_days(fraction * 30.0);
                }
            }
            Unit::Days(n) => {
                self.days += whole * i128::from(n);
                self.add_days(fraction * n as f64);
            }
            Unit::Micros(n) => {
                self.micros += whole * i128::from(n) + (fraction * n as f64).round_ties_even() as i128;
            }
        }
    }

    fn add_days(&mut self, days: f64) {
        let whole = days.trunc();
        self.days += whole as i128;
        self.micros += ((days - whole) * MICROS_PER_DAY as f64).round_ties_even() as i128;
    }

    fn finish(self, text: &str) -> Result<Interval> {
        let narrow = |error| move |_| error;
        if i32::try_from(self.years).is_err() || i32::try_from(self.months).is_err() {
            return Err(out_of_range(text));
        }
        // The fields may be good, and what they amount to not.
        let months = i32::try_from(self.years * 12 + self.months);
        Ok(Interval {
            months: months.map_err(|_| super::arithmetic::interval_out_of_range())?,
            days: i32::try_from(self.days).map_err(narrow(out_of_range(text)))?,
            microseconds: i64::try_from(self.micros).map_err(narrow(out_of_range(text)))?,
        })
    }
}

/// Reads an interval. `fields` is the field restriction of its type (`interval hour`), which
/// tells what a bare number means; zero is none: seconds. In the style of the SQL standard a minus in
/// front is that of all fields, unless another one has a sign, too.
pub fn parse_interval(text: &str, fields: i32, style: IntervalStyle) -> Result<Interval> {
    let closed = close_signs(text.trim());
    let trimmed = closed.as_ref();
    if trimmed.is_empty() {
        return Err(invalid(text));
    }
    if let Some(iso) = trimmed.strip_prefix('P') {
        return parse_iso(iso, text);
    }
    let all_negative = style == IntervalStyle::SqlStandard && has_one_sign(trimmed);
    let mut parts = Parts::default();
    let mut pending: Option<(i128, f64, bool)> = None;
    let mut seen: Vec<Unit> = Vec::new();
    let mut clock_seen = false;
    let mut ago = false;
    let mut any = false;
    let mut rest = trimmed.strip_prefix('@').unwrap_or(trimmed).trim_start();
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('@') {
            rest = tail.trim_start();
            continue;
        }
        let first = rest.as_bytes()[0];
        let (token, tail) = next_token(rest).ok_or_else(|| invalid(text))?;
        rest = tail;
        if first.is_ascii_alphabetic() {
            if token.eq_ignore_ascii_case("ago") {
                ago = true;
                continue;
            }
            let (whole, fraction, _) = pending.take().ok_or_else(|| invalid(text))?;
            let unit = unit(token).ok_or_else(|| invalid(text))?;
            // A field may be given once.
            if seen.contains(&unit) || (clock_seen && matches!(unit, Unit::Micros(_))) {
                return Err(invalid(text));
            }
            if matches!(unit, Unit::Micros(MICROS_PER_SECOND)) && fraction != 0.0 {
                seen.extend([Unit::Micros(1000), Unit::Micros(1)]);
            }
            seen.push(unit);
            parts.add(whole, fraction, unit);
            any = true;
            continue;
        }
        if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
            return Err(invalid(text));
        }
        // A number before another bare number counts days: '1 04:05:06'.
        if let Some((whole, fraction, _)) = pending.take() {
            // `1 2` of an `interval day to hour` is days and hours.
            if !token.contains(':') && fields != 0x408 {
                // PostgreSQL reads from the end: what is wrong with the later number is told first.
                if let Some((years, months)) = token.trim_start_matches(['+', '-']).split_once('-') {
                    years_and_months(years, months, text)?;
                }
                return Err(invalid(text));
            }
            parts.add(whole, fraction, Unit::Days(1));
        }
        any = true;
        let negative = all_negative || token.starts_with('-');
        let body = token.trim_start_matches(['+', '-']);
        if body.contains(':') {
            if clock_seen {
                return Err(invalid(text));
            }
            clock_seen = true;
            let micros = parse_clock(body, fields, text)?;
            parts.micros += if negative { -micros } else { micros };
        } else if let Some((years, months)) = body.split_once('-') {
            let (years, months) = years_and_months(years, months, text)?;
            let sign = if negative { -1 } else { 1 };
            parts.years += sign * years;
            parts.months += sign * months;
        } else {
            pending = Some(number(body, negative).ok_or_else(|| invalid(text))?);
        }
    }
    if let Some((whole, fraction, _)) = pending {
        parts.add(whole, fraction, bare_unit(fields));
    }
    if !any {
        return Err(invalid(text));
    }
    if ago {
        let Parts { years, months, days, micros } = parts;
        parts = Parts { years: -years, months: -months, days: -days, micros: -micros };
    }
    parts.finish(text)
}

/// The word, number or time that a text begins with, and what follows; `None`: it begins with none.
fn next_token(rest: &str) -> Option<(&str, &str)> {
    let bytes = rest.as_bytes();
    if !bytes.first()?.is_ascii() {
        return None;
    }
    let length = if bytes[0].is_ascii_alphabetic() {
        bytes.iter().take_while(|b| b.is_ascii_alphabetic()).count()
    } else {
        1 + bytes[1..].iter().take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b':' | b'-')).count()
    };
    let (token, tail) = rest.split_at(length);
    // A colon behind a decimal number begins no time: it stands between two fields.
    let (token, tail) = match token.split_once(':') {
        Some((before, _)) if before.contains('.') && bytes[0].is_ascii_digit() => {
            (before, &rest[before.len() + 1..])
        }
        _ => (token, tail),
    };
    Some((token, tail.trim_start_matches([' ', '\t', '\n', ','])))
}

/// The numbers of `years-months`.
fn years_and_months(years: &str, months: &str, text: &str) -> Result<(i128, i128)> {
    let part = |part: &str| match part {
        "" => Ok(0),
        part if part.bytes().all(|byte| byte.is_ascii_digit()) => {
            part.parse::<i128>().map_err(|_| out_of_range(text))
        }
        part if part.starts_with('-') => Err(out_of_range(text)),
        _ => Err(invalid(text)),
    };
    let (years, months) = (part(years)?, part(months)?);
    if months > 11 { Err(out_of_range(text)) } else { Ok((years, months)) }
}

/// The text without the blanks that may stand behind a sign.
fn close_signs(text: &str) -> Cow<'_, str> {
    let sign = |c: char| matches!(c, '+' | '-');
    if !text.as_bytes().windows(2).any(|pair| sign(pair[0].into()) && pair[1].is_ascii_whitespace()) {
        return Cow::Borrowed(text);
    }
    let mut closed = String::with_capacity(text.len());
    for c in text.chars() {
        if !(c.is_ascii_whitespace() && closed.ends_with(sign)) {
            closed.push(c);
        }
    }
    Cow::Owned(closed)
}

/// Whether a minus begins the text and is the only sign of a field.
fn has_one_sign(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('-') else { return false };
    // Within a field, a minus stands between years and months.
    let begins_field = |at: usize| !rest[..at].ends_with(|c: char| c.is_ascii_digit());
    !rest.char_indices().any(|(at, c)| c == '+' || c == '-' && begins_field(at))
}

/// Whether IntervalStyle decides what a text means: a minus in front of several fields.
pub fn interval_depends_on_style(text: &str) -> bool {
    let closed = close_signs(text.trim());
    let another = |pair: &[u8]| pair[0].is_ascii_whitespace() && pair[1].is_ascii_digit();
    has_one_sign(&closed) && closed.as_bytes().windows(2).any(another)
}

/// What a number without a unit counts, by the type's field restriction.
fn bare_unit(fields: i32) -> Unit {
    match fields {
        0x4 => Unit::Months(12),
        0x2 | 0x6 => Unit::Months(1),
        0x8 => Unit::Days(1),
        0x400 | 0x408 => Unit::Micros(MICROS_PER_HOUR),
        0x800 | 0xc00 | 0xc08 => Unit::Micros(MICROS_PER_MINUTE),
        _ => Unit::Micros(MICROS_PER_SECOND),
    }
}

fn number(body: &str, negative: bool) -> Option<(i128, f64, bool)> {
    let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = if fraction.is_empty() { 0.0 } else { share(fraction)? };
    Some(if negative { (-whole, -fraction, true) } else { (whole, fraction, false) })
}

/// What digits behind a point amount to.
fn share(digits: &str) -> Option<f64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("0.{digits}").parse().ok()).flatten()
}

/// `hh:mm`, `hh:mm:ss.ffffff`, or `mm:ss` where the type says minute to second (DecodeTime): parts may
/// be empty, and a minute may have 60 seconds.
fn parse_clock(body: &str, fields: i32, text: &str) -> Result<i128> {
    let parts: Vec<&str> = body.split(':').collect();
    let whole = |part: &str| -> Result<i128> {
        if !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid(text));
        }
        if part.is_empty() { Ok(0) } else { part.parse().map_err(|_| out_of_range(text)) }
    };
    let seconds = |part: &str| -> Result<(i128, i128)> {
        let (before, decimals) = part.split_once('.').unwrap_or((part, ""));
        let decimals =
            if decimals.is_empty() { 0.0 } else { share(decimals).ok_or_else(|| invalid(text))? };
        Ok((whole(before)?, (decimals * 1e6).round_ties_even() as i128))
    };
    let (hours, minutes, (seconds, micros)) = match parts[..] {
        [hours, minutes, third] => (whole(hours)?, whole(minutes)?, seconds(third)?),
        [first, second] if second.contains('.') || fields == 0x1800 => (0, whole(first)?, seconds(second)?),
        [hours, minutes] => (whole(hours)?, whole(minutes)?, (0, 0)),
        _ => return Err(invalid(text)),
    };
    if hours > MAX_HOURS || minutes > 59 || seconds > 60 {
        return Err(out_of_range(text));
    }
    Ok(hours * i128::from(MICROS_PER_HOUR)
        + minutes * i128::from(MICROS_PER_MINUTE)
        + seconds * i128::from(MICROS_PER_SECOND)
        + micros)
}

/// More hours than any interval has.
const MAX_HOURS: i128 = i64::MAX as i128 / MICROS_PER_HOUR as i128 + 1;

/// ISO 8601 durations after their P: with designators (`1Y2M3DT4H5M6S`, `3W`), or in the alternative
/// form (`0002-10-15T10:30:20`, `00021015T103020`), whose trailing fields may be missing
/// (DecodeISO8601Interval).
fn parse_iso(body: &str, text: &str) -> Result<Interval> {
    let mut parts = Parts::default();
    let (mut in_time, mut has_field) = (false, false);
    let mut rest = body;
    if rest.is_empty() {
        return Err(invalid(text));
    }
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('T') {
            (in_time, has_field, rest) = (true, false, tail);
            continue;
        }
        let width = rest.trim_start_matches('-').bytes().take_while(u8::is_ascii_digit).count();
        let (whole, fraction, tail) = iso_number(rest, text)?;
        let unit = match (tail.as_bytes().first(), in_time) {
            (Some(b'Y'), false) => Unit::Months(12),
            (Some(b'M'), false) => Unit::Months(1),
            (Some(b'W'), false) => Unit::Days(7),
            (Some(b'D'), false) => Unit::Days(1),
            (Some(b'H'), true) => Unit::Micros(MICROS_PER_HOUR),
            (Some(b'M'), true) => Unit::Micros(MICROS_PER_MINUTE),
            (Some(b'S'), true) => Unit::Micros(MICROS_PER_SECOND),
            // Digits without separators.
            (None | Some(b'T'), false) if width == 8 && !has_field => {
                parts.add(whole / 10_000, 0.0, Unit::Months(12));
                parts.add(whole / 100 % 100, 0.0, Unit::Months(1));
                parts.add(whole % 100, fraction, Unit::Days(1));
                rest = tail;
                continue;
            }
            (None, true) if width == 6 && !has_field => {
                parts.add(whole / 10_000, 0.0, Unit::Micros(MICROS_PER_HOUR));
                parts.add(whole / 100 % 100, 0.0, Unit::Micros(MICROS_PER_MINUTE));
                parts.add(whole % 100, 0.0, Unit::Micros(MICROS_PER_SECOND));
                // PostgreSQL counts the fraction in microseconds.
                parts.add(0, fraction, Unit::Micros(1));
                rest = tail;
                continue;
            }
            (None | Some(b'T' | b'-'), false) if !has_field => {
                rest = iso_fields(rest, text, '-', DATE_UNITS, &mut parts)?;
                if !rest.is_empty() && !rest.starts_with('T') {
                    return Err(invalid(text));
                }
                continue;
            }
            (None | Some(b':'), true) if !has_field => {
                rest = iso_fields(rest, text, ':', TIME_UNITS, &mut parts)?;
                if !rest.is_empty() {
                    return Err(invalid(text));
                }
                continue;
            }
            _ => return Err(invalid(text)),
        };
        parts.add(whole, fraction, unit);
        rest = &tail[1..];
        has_field = true;
    }
    parts.finish(text)
}

const DATE_UNITS: [Unit; 3] = [Unit::Months(12), Unit::Months(1), Unit::Days(1)];
const TIME_UNITS: [Unit; 3] =
    [Unit::Micros(MICROS_PER_HOUR), Unit::Micros(MICROS_PER_MINUTE), Unit::Micros(MICROS_PER_SECOND)];

/// Up to three fields of ISO 8601's alternative form; what follows them.
fn iso_fields<'t>(
    mut rest: &'t str,
    text: &str,
    separator: char,
    units: [Unit; 3],
    parts: &mut Parts,
) -> Result<&'t str> {
    for (place, unit) in units.into_iter().enumerate() {
        let (whole, fraction, tail) = iso_number(rest, text)?;
        parts.add(whole, fraction, unit);
        match tail.strip_prefix(separator) {
            Some(tail) if place < 2 => rest = tail,
            _ => return Ok(tail),
        }
    }
    Ok(rest)
}

/// A number of an ISO 8601 duration, read as a double as PostgreSQL does (ParseISO8601Number): its
/// whole part, its fraction and what follows. An exponent is none of the standard's, but taken.
fn iso_number<'t>(body: &'t str, text: &str) -> Result<(i128, f64, &'t str)> {
    let bytes = body.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = usize::from(bytes.first() == Some(&b'-'));
    let mut count = digits(end);
    end += count;
    if bytes.get(end) == Some(&b'.') {
        let behind = digits(end + 1);
        count += behind;
        end += 1 + behind;
    }
    if count == 0 {
        return Err(invalid(text));
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let value: f64 = body[..end].parse().map_err(|_| invalid(text))?;
    if !(-1e15..=1e15).contains(&value) {
        return Err(out_of_range(text));
    }
    Ok((value.trunc() as i128, value.fract(), &body[end..]))
}

/// Writes an interval in the session's style.
pub fn format_interval(interval: &Interval, style: IntervalStyle, out: &mut dyn Write) -> std::fmt::Result {
    match style {
        IntervalStyle::Postgres => format_postgres(interval, out),
        IntervalStyle::PostgresVerbose => format_verbose(interval, out),
        IntervalStyle::Iso8601 => format_iso(interval, out),
        IntervalStyle::SqlStandard => format_sql(interval, out),
    }
}

fn clock(micros: i64, out: &mut dyn Write) -> std::fmt::Result {
    let magnitude = micros.unsigned_abs();
    let (hour, minute, second) = (MICROS_PER_HOUR as u64, MICROS_PER_MINUTE as u64, MICROS_PER_SECOND as u64);
    write!(out, "{:02}:{:02}:{:02}", magnitude / hour, magnitude / minute % 60, magnitude / second % 60)?;
    fraction(out, (magnitude % second) as i64)
}

fn format_postgres(interval: &Interval, out: &mut dyn Write) -> std::fmt::Result {
    let (years, months) = (interval.months / 12, interval.months % 12);
    let mut first = true;
    let mut after_negative = false;
    for (value, name) in [(years, "year"), (months, "mon"), (interval.days, "day")] {
        if value == 0 {
            continue;
        }
        if !first {
            out.write_str(" ")?;
        }
        // A positive field after a negative one shows its sign.
        let plus = if after_negative && value > 0 { "+" } else { "" };
        write!(out, "{plus}{value} {name}{}", if value == 1 { "" } else { "s" })?;
        after_negative = value < 0;
        first = false;
    }
    if first || interval.microseconds != 0 {
        if !first {
            out.write_str(" ")?;
        }
        if interval.microseconds < 0 {
            out.write_str("-")?;
        } else if after_negative {
            out.write_str("+")?;
        }
        clock(interval.microseconds, out)?;
    }
    Ok(())
}

fn format_verbose(interval: &Interval, out: &mut dyn Write) -> std::fmt::Result {
    let micros = interval.microseconds;
    let fields = [
        (i64::from(interval.months / 12), "year"),
        (i64::from(interval.months % 12), "mon"),
        (i64::from(interval.days), "day"),
        (micros / MICROS_PER_HOUR, "hour"),
        (micros / MICROS_PER_MINUTE % 60, "min"),
    ];
    out.write_str("@")?;
    // The first nonzero field decides the sign; all are shown relative to it.
    let seconds = micros % MICROS_PER_MINUTE;
    let negative = fields.iter().map(|f| f.0).chain([seconds]).find(|v| *v != 0).is_some_and(|v| v < 0);
    let flip = if negative { -1 } else { 1 };
    let mut any = false;
    for (value, name) in fields {
        if value != 0 {
            let shown = value * flip;
            write!(out, " {shown} {name}{}", if shown == 1 { "" } else { "s" })?;
            any = true;
        }
    }
    if seconds != 0 {
        let shown = seconds * flip;
        write!(out, " {}{}", if shown < 0 { "-" } else { "" }, shown.abs() / MICROS_PER_SECOND)?;
        fraction(out, shown.abs() % MICROS_PER_SECOND)?;
        write!(out, " sec{}", if shown == MICROS_PER_SECOND { "" } else { "s" })?;
        any = true;
    }
    if !any {
        out.write_str(" 0")?;
    }
    if negative { out.write_str(" ago") } else { Ok(()) }
}

fn format_iso(interval: &Interval, out: &mut dyn Write) -> std::fmt::Result {
    if interval.months == 0 && interval.days == 0 && interval.microseconds == 0 {
        return out.write_str("PT0S");
    }
    out.write_str("P")?;
    for (value, letter) in [(interval.months / 12, 'Y'), (interval.months % 12, 'M'), (interval.days, 'D')] {
        if value != 0 {
            write!(out, "{value}{letter}")?;
        }
    }
    let micros = interval.microseconds;
    if micros == 0 {
        return Ok(());
    }
    out.write_str("T")?;
    for (value, letter) in [(micros / MICROS_PER_HOUR, 'H'), (micros / MICROS_PER_MINUTE % 60, 'M')] {
        if value != 0 {
            write!(out, "{value}{letter}")?;
        }
    }
    let seconds = micros % MICROS_PER_MINUTE;
    if seconds != 0 {
        write!(out, "{}{}", if seconds < 0 { "-" } else { "" }, seconds.abs() / MICROS_PER_SECOND)?;
        fraction(out, seconds.abs() % MICROS_PER_SECOND)?;
        out.write_str("S")?;
    }
    Ok(())
}

fn format_sql(interval: &Interval, out: &mut dyn Write) -> std::fmt::Result {
    let (years, months) = (interval.months / 12, interval.months % 12);
    let (has_months, has_days, has_time) =
        (interval.months != 0, interval.days != 0, interval.microseconds != 0);
    let sign = |negative: bool| if negative { "-" } else { "+" };
    if !has_months && !has_days && !has_time {
        return out.write_str("0");
    }
    let mixed = has_months && (has_days || has_time)
        || (interval.days < 0) != (interval.microseconds < 0) && has_days && has_time;
    if mixed {
        write!(out, "{}{}-{} ", sign(interval.months < 0), years.abs(), months.abs())?;
        write!(out, "{}{} ", sign(interval.days < 0), interval.days.unsigned_abs())?;
        out.write_str(sign(interval.microseconds < 0))?;
        return sql_clock(interval.microseconds, out);
    }
    if has_months {
        return write!(out, "{}{}-{}", if interval.months < 0 { "-" } else { "" }, years.abs(), months.abs());
    }
    if interval.days < 0 || interval.microseconds < 0 {
        out.write_str("-")?;
    }
    if has_days {
        write!(out, "{} ", interval.days.unsigned_abs())?;
    }
    sql_clock(interval.microseconds, out)
}

fn sql_clock(micros: i64, out: &mut dyn Write) -> std::fmt::Result {
    let magnitude = micros.unsigned_abs();
    let (hour, minute, second) = (MICROS_PER_HOUR as u64, MICROS_PER_MINUTE as u64, MICROS_PER_SECOND as u64);
    write!(out, "{}:{:02}:{:02}", magnitude / hour, magnitude / minute % 60, magnitude / second % 60)?;
    fraction(out, (magnitude % second) as i64)
}
