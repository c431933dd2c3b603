//! `to_char`: the template patterns of the manual's chapter 9.8. What reads by them is
//! [`super::template_input`].

use super::zone;
use super::{
    DAYS, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, MONTHS, civil_from_days,
    day_of_week, days_from_civil, is_infinite, iso_week,
};
use crate::datum::Interval;
use crate::error::{Result, SqlError, SqlState};
use crate::interrupt;
use crate::style::Style;

/// Patterns, longest first where one begins another.
const PATTERNS: &[&str] = &[
    "Y,YYY", "YYYY", "IYYY", "YYY", "IYY", "YY", "IY", "Y", "I", "MONTH", "Month", "month", "MON", "Mon",
    "mon", "MM", "MI", "MS", "DAY", "Day", "day", "DDD", "DD", "DY", "Dy", "dy", "D", "IDDD", "ID", "IW",
    "WW", "W", "HH24", "HH12", "HH", "SSSSS", "SSSS", "SS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
    "A.M.", "a.m.", "P.M.", "p.m.", "AM", "am", "PM", "pm", "B.C.", "b.c.", "A.D.", "a.d.", "BC", "bc", "AD",
    "ad", "CC", "J", "Q", "RM", "rm", "TZH", "TZM", "TZ", "tz", "OF", "of", "tzh", "tzm",
];

/// What changes the pattern that follows.
const PREFIXES: [&str; 4] = ["FM", "fm", "TM", "tm"];

#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Pattern {
        name: &'static str,
        fill: bool,
        ordinal: Option<bool>,
    },
    Literal {
        character: char,
        quoted: bool,
    },
    /// FX: from here on an input has the template's width.
    Exact,
}

/// What a piece of a template counts as: it is looked for among all patterns ([`interrupt::steps`]).
const STEPS_PER_PIECE: usize = 256;

/// The same of a character between quotes.
const STEPS_PER_CHARACTER: usize = 8;

/// Cuts a template into patterns and literal characters.
pub(super) fn pieces(template: &str) -> Result<Vec<Piece>> {
    let mut list = Vec::new();
    let mut rest = template;
    'next: while let Some(c) = rest.chars().next() {
        interrupt::steps(STEPS_PER_PIECE)?;
        if c == '"' {
            rest = &rest[1..];
            while let Some(inner) = rest.chars().next() {
                interrupt::steps(STEPS_PER_CHARACTER)?;
                rest = &rest[inner.len_utf8()..];
                if inner == '"' {
                    break;
                }
                if inner == '\\'
                    && let Some(escaped) = rest.chars().next()
                {
                    rest = &rest[escaped.len_utf8()..];
                    list.push(Piece::Literal { character: escaped, quoted: true });
                } else {
                    list.push(Piece::Literal { character: inner, quoted: true });
                }
            }
            continue;
        }
        if c == '\\' && rest[1..].starts_with('"') {
            list.push(Piece::Literal { character: '"', quoted: false });
            rest = &rest[2..];
            continue;
        }
        if let Some(after) = rest.strip_prefix("FX").or_else(|| rest.strip_prefix("fx")) {
            list.push(Piece::Exact);
            rest = after;
            continue;
        }
        if let Some((name, fill, mut body)) = pattern_at(rest) {
            let ordinal = if let Some(after) = body.strip_prefix("TH") {
                body = after;
                Some(true)
            } else if let Some(after) = body.strip_prefix("th") {
                body = after;
                Some(false)
            } else {
                None
            };
            rest = body.strip_prefix("SP").unwrap_or(body);
            list.push(Piece::Pattern { name, fill, ordinal });
            continue 'next;
        }
        // A prefix without a pattern says nothing, and what follows it stands for itself.
        let mut c = c;
        if let Some(after) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
            rest = after;
            match after.chars().next() {
                Some(next) if next != '"' && !after.starts_with("\\\"") => c = next,
                _ => continue 'next,
            }
        }
        list.push(Piece::Literal { character: c, quoted: false });
        rest = &rest[c.len_utf8()..];
    }
    Ok(list)
}

/// The pattern a template begins with, whether it fills, and what follows.
pub(super) fn pattern_at(template: &str) -> Option<(&'static str, bool, &str)> {
    let mut body = template;
    let mut fill = true;
    loop {
        if let Some(after) = body.strip_prefix("FM").or_else(|| body.strip_prefix("fm")) {
            fill = false;
            body = after;
        } else if let Some(after) =
            body.strip_prefix("FX").or_else(|| body.strip_prefix("TM")).or_else(|| body.strip_prefix("tm"))
        {
            body = after;
        } else {
            break;
        }
    }
    // Case matters only for names and meridiem; numbers match either.
    let upper: String = body.chars().take(6).collect::<String>().to_ascii_uppercase();
    let name = best_match(body)
        .or_else(|| longest(&upper, |name| name == name.to_ascii_uppercase() && !has_cased_output(name)))?;
    Some((name, fill, &body[name.len()..]))
}

fn has_cased_output(name: &str) -> bool {
    matches!(name, "MONTH" | "MON" | "DAY" | "DY" | "RM" | "TZ")
        || name.starts_with(['A', 'P', 'B']) && name != "B"
}

fn best_match(body: &str) -> Option<&'static str> {
    longest(body, |_| true)
}

fn longest(body: &str, accept: impl Fn(&str) -> bool) -> Option<&'static str> {
    PATTERNS.iter().filter(|p| body.starts_with(**p) && accept(p)).max_by_key(|p| p.len()).copied()
}

fn ordinal_suffix(n: i64) -> &'static str {
    let n = n.abs();
    match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// What is shown: a moment with a calendar, or an interval's parts.
struct Shown {
    year: i64,
    month: i64,
    day: i64,
    /// Days since 2000, for what follows from the calendar.
    date: Option<i64>,
    hour: i64,
    clock: i64,
    zone: Option<(i64, String)>,
}

fn render(shown: &Shown, template: &str) -> Result<String> {
    let mut out = String::new();
    for piece in pieces(template)? {
        interrupt::steps(STEPS_PER_PIECE)?;
        let Piece::Pattern { name, fill, ordinal } = piece else {
            if let Piece::Literal { character: c, .. } = piece {
                out.push(c);
            }
            continue;
        };
        let mut number: Option<(i64, usize)> = None;
        let mut named = |text: &str, width: usize, case: &str| {
            let text = if case.chars().all(|c| c.is_ascii_uppercase()) {
                text.to_ascii_uppercase()
            } else if case.chars().next().is_some_and(|c| c.is_ascii_lowercase()) {
                text.to_ascii_lowercase()
            } else {
                text.to_owned()
            };
            if fill { out.push_str(&format!("{text:<width$}")) } else { out.push_str(&text) }
        };
        let seconds = shown.clock / MICROS_PER_SECOND % 60;
        let micros = shown.clock % MICROS_PER_SECOND;
        let calendar = || shown.date.ok_or_else(invalid_for_interval);
        let month_index = (shown.month.max(1) as usize - 1) % 12;
        match name {
            "YYYY" => number = Some((shown_year(shown), 4)),
            "YYY" => number = Some((shown_year(shown) % 1000, 3)),
            "YY" => number = Some((shown_year(shown) % 100, 2)),
            "Y" => number = Some((shown_year(shown) % 10, 1)),
            "Y,YYY" => {
                let year = shown_year(shown);
                out.push_str(&format!("{},{:03}", year / 1000, year % 1000));
                push_ordinal(&mut out, year, ordinal);
            }
            "IYYY" => number = Some((iso_year(shown), 4)),
            "IYY" => number = Some((iso_year(shown) % 1000, 3)),
            "IY" => number = Some((iso_year(shown) % 100, 2)),
            "I" => number = Some((iso_year(shown) % 10, 1)),
            "MONTH" | "Month" | "month" => {
                calendar()?;
                named(MONTHS[month_index], 9, name);
            }
            "MON" | "Mon" | "mon" => {
                calendar()?;
                named(&MONTHS[month_index][..3], 3, name);
            }
            "MM" => number = Some((shown.month, 2)),
            "DAY" | "Day" | "day" => named(DAYS[day_of_week(calendar()?) as usize], 9, name),
            "DY" | "Dy" | "dy" => named(&DAYS[day_of_week(calendar()?) as usize][..3], 3, name),
            "DDD" => number = Some((day_of_year(shown), 3)),
            "IDDD" => number = Some((iso_day_of_year(shown), 3)),
            "DD" => number = Some((shown.day, 2)),
            "D" => number = Some((day_of_week(calendar()?) + 1, 1)),
            "ID" => number = Some(((day_of_week(calendar()?) + 6) % 7 + 1, 1)),
            "W" => number = Some(((shown.day - 1) / 7 + 1, 1)),
            "WW" => number = Some(((day_of_year(shown) - 1) / 7 + 1, 2)),
            "IW" => number = Some((iso_week_of(shown), 2)),
            "CC" => {
                let year = shown.year;
                let century = match shown.date {
                    None => year / 100,
                    Some(_) if year > 0 => (year + 99) / 100,
                    Some(_) => year / 100 - 1,
                };
                number = Some((century, 2));
            }
            "J" => number = Some((julian_day(shown), 1)),
            // An interval may be of no month.
            "Q" if shown.month == 0 => {}
            "Q" => number = Some(((shown.month - 1) / 3 + 1, 1)),
            // An interval may be of no month, or of a negative number of them.
            "RM" | "rm" if shown.month == 0 && shown.year == 0 => {}
            "RM" | "rm" => {
                let roman = ROMAN[roman_month(shown)];
                let roman = if name == "rm" { roman.to_ascii_lowercase() } else { roman.to_owned() };
                out.push_str(&if fill { format!("{roman:<4}") } else { roman });
            }
            "HH24" => number = Some((shown.hour, 2)),
            "HH" | "HH12" => number = Some((if shown.hour % 12 == 0 { 12 } else { shown.hour % 12 }, 2)),
            "MI" => number = Some((shown.clock / MICROS_PER_MINUTE % 60, 2)),
            "SS" => number = Some((seconds, 2)),
            "MS" => number = Some((micros / 1000, 3)),
            "US" => number = Some((micros, 6)),
            "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let digits = usize::from(name.as_bytes()[2] - b'0');
                number = Some((micros / 10i64.pow(6 - digits as u32), digits));
            }
            "SSSS" | "SSSSS" => {
                number = Some((shown.hour * 3600 + shown.clock % MICROS_PER_HOUR / MICROS_PER_SECOND, 1))
            }
            "AM" | "PM" | "am" | "pm" | "A.M." | "P.M." | "a.m." | "p.m." => {
                let text = if shown.hour % 24 >= 12 { "PM" } else { "AM" };
                let text = if name.contains('.') {
                    format!("{}.{}.", &text[..1], &text[1..])
                } else {
                    text.to_owned()
                };
                out.push_str(&if name.starts_with(['a', 'p']) { text.to_ascii_lowercase() } else { text });
            }
            "BC" | "AD" | "bc" | "ad" | "B.C." | "A.D." | "b.c." | "a.d." => {
                calendar()?;
                let text = if shown.year <= 0 { "BC" } else { "AD" };
                let text = if name.contains('.') {
                    format!("{}.{}.", &text[..1], &text[1..])
                } else {
                    text.to_owned()
                };
                out.push_str(&if name.starts_with(['a', 'b']) { text.to_ascii_lowercase() } else { text });
            }
            "TZ" | "tz" | "OF" | "of" | "TZH" | "TZM" | "tzh" | "tzm" => {
                calendar()?;
                // Without a zone the clock is that of Greenwich, which then has no name.
                let (offset, abbreviation) =
                    shown.zone.as_ref().map_or((0, ""), |(offset, name)| (*offset, name.as_str()));
                let (sign, magnitude) = (if offset < 0 { '-' } else { '+' }, offset.abs());
                match name {
                    "TZ" => out.push_str(abbreviation),
                    "tz" => out.push_str(&abbreviation.to_ascii_lowercase()),
                    "TZH" | "tzh" => out.push_str(&format!("{sign}{:02}", magnitude / 3600)),
                    "TZM" | "tzm" => out.push_str(&format!("{:02}", magnitude / 60 % 60)),
                    _ => {
                        let width = if fill { 2 } else { 0 };
                        out.push_str(&format!("{sign}{:0width$}", magnitude / 3600));
                        if magnitude / 60 % 60 != 0 {
                            out.push_str(&format!(":{:02}", magnitude / 60 % 60));
                        }
                    }
                }
            }
            _ => {}
        }
        if let Some((value, width)) = number {
            let is_fraction = matches!(name, "MS" | "US") || name.starts_with("FF");
            // PostgreSQL gives the sign a place of its own, but not in these; years of weeks have it where
            // the year has.
            let widens = match name {
                "DD" | "DDD" | "WW" | "IW" | "IDDD" => false,
                "IYYY" | "IYY" | "IY" | "I" => shown.date.is_none() && shown.year < 0 && name != "I",
                _ => value < 0 && !is_fraction,
            };
            let width = if widens { width + 1 } else { width };
            // Fractions of a second are filled in any case.
            out.push_str(&if fill || is_fraction { format!("{value:0width$}") } else { value.to_string() });
            push_ordinal(&mut out, value, ordinal);
        }
    }
    Ok(out)
}

/// `TH` (true) or `th` after a number.
fn push_ordinal(out: &mut String, number: i64, upper: Option<bool>) {
    match upper {
        Some(true) => out.push_str(&ordinal_suffix(number).to_ascii_uppercase()),
        Some(false) => out.push_str(ordinal_suffix(number)),
        None => {}
    }
}

/// The number of a day in its year; of an interval, its days in months of thirty.
fn day_of_year(shown: &Shown) -> i64 {
    match shown.date {
        Some(day) => day - days_from_civil(shown.year, 1, 1) + 1,
        None => (shown.year * 12 + shown.month) * 30 + shown.day,
    }
}

/// The place of a month in its year, from zero: whole years of an interval end in December, or in
/// January where they are negative, and negative months are counted back from December.
fn roman_month(shown: &Shown) -> usize {
    let month = match shown.month {
        0 if shown.year < 0 => 1,
        month @ ..0 => month + 13,
        0 => 12,
        month => month,
    };
    (month - 1).rem_euclid(12) as usize
}

/// The year of a day's ISO week, without its sign: PostgreSQL shows it as it shows YYYY.
fn iso_year(shown: &Shown) -> i64 {
    let Some(day) = shown.date else { return iso_week_of_parts(shown).0 };
    let year = iso_week(day).0;
    if year <= 0 { 1 - year } else { year }
}

fn iso_week_of(shown: &Shown) -> i64 {
    match shown.date {
        Some(day) => iso_week(day).1,
        None => iso_week_of_parts(shown).1,
    }
}

/// The number of a day in the year of its ISO week.
fn iso_day_of_year(shown: &Shown) -> i64 {
    match shown.date {
        Some(day) => (iso_week(day).1 - 1) * 7 + (day_of_week(day) + 6) % 7 + 1,
        None => julian_day(shown) - first_monday(iso_week_of_parts(shown).0) + 1,
    }
}

fn julian_day(shown: &Shown) -> i64 {
    match shown.date {
        Some(day) => day + 2_451_545,
        None => julian(shown.year, shown.month, shown.day),
    }
}

/// The Julian day of an interval's parts, as if they were those of a date (date2j).
fn julian(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year + 4800, month + 1) } else { (year + 4799, month + 13) };
    let century = year / 100;
    year * 365 - 32167 + year / 4 - century + century / 4 + 7834 * month / 256 + day
}

/// The Julian day on which the first ISO week of a year begins.
fn first_monday(year: i64) -> i64 {
    let fourth = julian(year, 1, 4);
    fourth - fourth.rem_euclid(7)
}

/// The year and the number of the ISO week of an interval's parts (date2isoyear, date2isoweek).
fn iso_week_of_parts(shown: &Shown) -> (i64, i64) {
    let day = julian_day(shown);
    let mut year = shown.year;
    if day < first_monday(year) {
        year -= 1;
    }
    let week = (day - first_monday(year)) / 7 + 1;
    if week >= 52 && day >= first_monday(year + 1) {
        return (year + 1, (day - first_monday(year + 1)) / 7 + 1);
    }
    (year, week)
}

fn shown_year(shown: &Shown) -> i64 {
    if shown.year <= 0 && shown.date.is_some() { 1 - shown.year } else { shown.year }
}

fn invalid_for_interval() -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, "invalid format specification for an interval value")
        .with_hint("Intervals are not tied to specific calendar dates.")
}

/// `to_char` of a local timestamp; `instant` is given where there is a zone. Infinite values
/// and empty templates are NULL.
pub fn format_timestamp(
    local: i64,
    template: &str,
    instant: Option<i64>,
    style: &Style,
) -> Result<Option<String>> {
    if is_infinite(local) || template.is_empty() {
        return Ok(None);
    }
    let date = local.div_euclid(MICROS_PER_DAY);
    let clock = local.rem_euclid(MICROS_PER_DAY);
    let civil = civil_from_days(date);
    let zone = instant
        .map(|at| (zone::offset_at(&style.time_zone, at), zone::abbreviation_at(&style.time_zone, at)));
    render(
        &Shown {
            year: civil.year,
            month: i64::from(civil.month),
            day: i64::from(civil.day),
            date: Some(date),
            hour: clock / MICROS_PER_HOUR,
            clock,
            zone,
        },
        template,
    )
    .map(Some)
}

/// `to_char` of an interval.
pub fn format_interval(i: Interval, template: &str, _style: &Style) -> Result<String> {
    render(
        &Shown {
            year: i64::from(i.months / 12),
            month: i64::from(i.months % 12),
            day: i64::from(i.days),
            date: None,
            hour: i.microseconds / MICROS_PER_HOUR,
            clock: i.microseconds,
            zone: None,
        },
        template,
    )
}

/// The year closest to 2020 that ends in these digits (adjust_partial_year_to_2020).
pub(super) fn full_year(short: i64) -> i64 {
    match short {
        0..70 => short + 2000,
        70..100 => short + 1900,
        100..520 => short + 2000,
        520..1000 => short + 1000,
        _ => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_render() {
        let at = super::super::parse_timestamp("2024-03-05 14:07:09.5", Style::standard(), 0).unwrap();
        let check = |template: &str, expected: &str| {
            assert_eq!(
                format_timestamp(at, template, None, Style::standard()).unwrap().as_deref(),
                Some(expected),
                "{template}"
            );
        };
        check("YYYY-MM-DD HH24:MI:SS.MS", "2024-03-05 14:07:09.500");
        check("FMDay, DDth FMMonth YYYY", "Tuesday, 05th March 2024");
        check("HH12:MI AM", "02:07 PM");
        check("Q \"quarter of\" YY", "1 quarter of 24");
    }
}
