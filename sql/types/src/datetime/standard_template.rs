//! Templates of the SQL standard (parse_datetime with STD_MODE): separators must match to the letter,
//! nothing may be missing or left over, and the patterns decide the type of the value.

use super::template::{full_year, pattern_at};
use super::{
    MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, MONTHS, check_date, check_timestamp,
    days_from_civil, days_in_month,
};
use crate::error::{Result, SqlError, SqlState};

/// A value of a date and time type. Offsets are seconds east of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Days since 2000-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// The same, at an offset.
    TimeTz(i64, i32),
    /// Microseconds since 2000-01-01, local.
    Timestamp(i64),
    /// Microseconds since 2000-01-01 UTC, and the offset it was written with.
    TimestampTz(i64, i32),
}

enum Piece {
    Pattern {
        name: &'static str,
        fill: bool,
    },
    /// A character that the input must have, too.
    Separator(char),
    /// The same within quotes.
    Character(char),
}

/// A template, cut into its pieces.
pub struct Template(Vec<Piece>);

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

impl Template {
    /// Reads a template.
    pub fn new(text: &str) -> Result<Template> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some((name, fill, after)) = pattern_at(rest) {
                pieces.push(Piece::Pattern { name, fill });
                rest = after;
                continue;
            }
            rest = &rest[first.len_utf8()..];
            if first == '"' {
                while let Some(inner) = rest.chars().next() {
                    rest = &rest[inner.len_utf8()..];
                    match inner {
                        '"' => break,
                        '\\' => {
                            if let Some(escaped) = rest.chars().next() {
                                rest = &rest[escaped.len_utf8()..];
                                pieces.push(Piece::Character(escaped));
                            }
                        }
                        other => pieces.push(Piece::Character(other)),
                    }
                }
                continue;
            }
            if !"-./,':; ".contains(first) {
                return Err(invalid(format!("invalid datetime format separator: \"{first}\"")));
            }
            pieces.push(Piece::Separator(first));
        }
        Ok(Template(pieces))
    }

    /// Whether digits after the pattern at `place` would belong to something else.
    fn digits_follow(&self, place: usize) -> bool {
        match self.0.get(place + 1) {
            Some(Piece::Pattern { name, .. }) => {
                !matches!(
                    *name,
                    "TZH" | "tzh" | "TZ" | "tz" | "MONTH" | "Month" | "month" | "MON" | "Mon" | "mon"
                ) && !name.contains(['A', 'a', 'P', 'p', 'B', 'b'])
            }
            Some(Piece::Separator(next) | Piece::Character(next)) => next.is_ascii_digit(),
            None => false,
        }
    }

    /// Reads a value.
    pub fn read(&self, text: &str) -> Result<Moment> {
        let mut fields = Fields::default();
        let mut rest = text;
        for (place, piece) in self.0.iter().enumerate() {
            let Some(next) = rest.chars().next() else {
                return Err(invalid("input string is too short for datetime format"));
            };
            match piece {
                Piece::Separator(wanted) | Piece::Character(wanted) if next == *wanted => {
                    rest = &rest[next.len_utf8()..];
                }
                Piece::Separator(wanted) => {
                    return Err(invalid(format!("unmatched format separator \"{wanted}\"")));
                }
                Piece::Character(wanted) => {
                    return Err(invalid(format!("unmatched format character \"{wanted}\"")));
                }
                Piece::Pattern { name, fill } => {
                    let number = Number { name, exact: *fill && self.digits_follow(place) };
                    rest = fields.read(&number, rest)?;
                }
            }
        }
        if !rest.trim_start().is_empty() {
            return Err(invalid("trailing characters remain in input string after datetime format"));
        }
        fields.moment(text, self)
    }

    fn has(&self, group: fn(&str) -> bool) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Pattern { name, .. } if group(name)))
    }
}

fn is_of_zone(name: &str) -> bool {
    matches!(name, "TZ" | "tz" | "OF" | "of" | "TZH" | "TZM" | "tzh" | "tzm")
}

fn is_of_time(name: &str) -> bool {
    matches!(name, "HH" | "HH12" | "HH24" | "MI" | "SS" | "SSSS" | "SSSSS" | "MS" | "US")
        || name.starts_with("FF")
        || is_half_of_day(name)
}

fn is_half_of_day(name: &str) -> bool {
    name.len() > 1
        && name.to_ascii_uppercase().replace('.', "").ends_with('M')
        && name != "MM"
        && name != "RM"
        && name != "rm"
        && !name.starts_with('T')
        && !name.starts_with('t')
}

fn is_of_date(name: &str) -> bool {
    !is_of_time(name) && !is_of_zone(name)
}

/// A pattern that reads a number: all digits, or as many as it is long.
struct Number {
    name: &'static str,
    exact: bool,
}

impl Number {
    /// The number, and what follows.
    fn read<'t>(&self, text: &'t str, length: usize) -> Result<(i64, &'t str)> {
        let name = self.name;
        let shown: String = text.chars().take(length).collect();
        let start = text.trim_start();
        let sign = usize::from(start.starts_with(['+', '-']));
        let found = start[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let mut used = if found == 0 { 0 } else { text.len() - start.len() + sign + found };
        if self.exact {
            let given = text.chars().count();
            if given < length {
                return Err(invalid(format!("source string too short for \"{name}\" formatting field"))
                    .with_detail(format!("Field requires {length} characters, but only {given} remain."))
                    .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
            }
            if used > 0 && used < length {
                return Err(invalid(format!("invalid value \"{shown}\" for \"{name}\""))
                    .with_detail(format!(
                        "Field requires {length} characters, but only {used} could be parsed."
                    ))
                    .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
            }
            used = used.min(length);
        }
        if used == 0 {
            return Err(invalid(format!("invalid value \"{shown}\" for \"{name}\""))
                .with_detail("Value must be an integer."));
        }
        let value = text[..used].trim_start().parse::<i32>().map_err(|_| {
            SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("value for \"{name}\" in source string is out of range"),
            )
            .with_detail("Value must be in the range -2147483648 to 2147483647.")
        })?;
        Ok((value.into(), &text[used..]))
    }
}

/// What was read.
#[derive(Default)]
struct Fields {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    before_christ: bool,
    hour: i64,
    twelve_hours: bool,
    afternoon: bool,
    minute: i64,
    second: i64,
    microseconds: i64,
    day_seconds: Option<i64>,
    /// The sign, hours and minutes of an offset.
    zone: Option<(i64, i64, i64)>,
}

impl Fields {
    /// Reads what a pattern stands for, and answers what follows.
    fn read<'t>(&mut self, number: &Number, text: &'t str) -> Result<&'t str> {
        let mut rest = text;
        let mut take = |length: usize| -> Result<i64> {
            let (value, after) = number.read(text, length)?;
            rest = after;
            Ok(value)
        };
        match number.name {
            "YYYY" => self.year = take(4)?,
            "YYY" => self.year = full_year(take(3)?),
            "YY" => self.year = full_year(take(2)?),
            "Y" => self.year = full_year(take(1)?),
            "MM" => self.month = take(2)?,
            "DD" => self.day = take(2)?,
            "DDD" => self.day_of_year = take(3)?,
            "HH24" => self.hour = take(2)?,
            "HH" | "HH12" => {
                self.hour = take(2)?;
                self.twelve_hours = true;
            }
            "MI" => self.minute = take(2)?,
            "SS" => self.second = take(2)?,
            "SSSS" | "SSSSS" => self.day_seconds = Some(take(5)?),
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let length = match number.name {
                    "MS" => 3,
                    "US" => 6,
                    other => usize::from(other.as_bytes()[2] - b'0'),
                };
                let value = take(length)?;
                let digits = (text.len() - rest.len()).min(6) as u32;
                self.microseconds = value * 10_i64.pow(6 - digits);
            }
            "TZH" | "tzh" => {
                let sign = if text.starts_with('-') { -1 } else { 1 };
                let signed = text.strip_prefix(['+', '-', ' ']).unwrap_or(text);
                let (hours, after) = number.read(signed, 2)?;
                rest = after;
                self.zone = Some((sign, hours, 0));
            }
            "TZM" | "tzm" => {
                let minutes = take(2)?;
                let (sign, hours, _) = self.zone.unwrap_or((1, 0, 0));
                self.zone = Some((sign, hours, minutes));
            }
            "MONTH" | "Month" | "month" | "MON" | "Mon" | "mon" => {
                let full = number.name.len() > 3;
                let lower = text.to_ascii_lowercase();
                let wanted = |name: &str| {
                    let name = name.to_ascii_lowercase();
                    if full { name } else { name[..3].to_owned() }
                };
                let found = MONTHS.iter().position(|name| lower.starts_with(&wanted(name)));
                let Some(month) = found else {
                    let shown = text.split_whitespace().next().unwrap_or("");
                    return Err(invalid(format!("invalid value \"{shown}\" for \"{}\"", number.name))
                        .with_detail(
                            "The given value did not match any of the allowed values for this field.",
                        ));
                };
                self.month = month as i64 + 1;
                rest = &text[wanted(MONTHS[month]).len()..];
            }
            "BC" | "AD" | "bc" | "ad" | "B.C." | "A.D." | "b.c." | "a.d." => {
                self.before_christ = text.starts_with(['b', 'B']);
                rest = text.get(number.name.len()..).unwrap_or("");
            }
            name if is_half_of_day(name) => {
                self.twelve_hours = true;
                self.afternoon = text.starts_with(['p', 'P']);
                rest = text.get(name.len()..).unwrap_or("");
            }
            "TZ" | "tz" | "OF" | "of" => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("formatting field \"{}\" is only supported in to_char", number.name),
                ));
            }
            other => return Err(SqlError::unsupported(format_args!("the field {other} of this template"))),
        }
        Ok(rest)
    }

    fn moment(mut self, text: &str, template: &Template) -> Result<Moment> {
        let wrong = || {
            SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            )
        };
        if self.twelve_hours {
            if !(1..=12).contains(&self.hour) {
                return Err(invalid(format!("hour \"{}\" is invalid for the 12-hour clock", self.hour))
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            self.hour = self.hour % 12 + if self.afternoon { 12 } else { 0 };
        }
        if let Some(total) = self.day_seconds {
            (self.hour, self.minute, self.second) = (total / 3600, total / 60 % 60, total % 60);
        }
        let in_day = (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
            && (0..MICROS_PER_SECOND).contains(&self.microseconds);
        if !in_day {
            return Err(wrong());
        }
        let clock = self.hour * MICROS_PER_HOUR
            + self.minute * MICROS_PER_MINUTE
            + self.second * MICROS_PER_SECOND
            + self.microseconds;
        let offset = match self.zone {
            Some((_, hours, minutes)) if !(0..=15).contains(&hours) || !(0..60).contains(&minutes) => {
                return Err(SqlError::new(
                    SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                    format!("time zone displacement out of range: \"{text}\""),
                ));
            }
            zone => zone.map(|(sign, hours, minutes)| sign * (hours * 3600 + minutes * 60)),
        };
        let (dated, timed, zoned) =
            (template.has(is_of_date), template.has(is_of_time), template.has(is_of_zone));
        let missing = |ty| invalid(format!("missing time zone in input string for type {ty}"));
        if !dated {
            return match (timed, zoned) {
                (false, _) => Err(invalid("datetime format is not dated and not timed")),
                (true, false) => Ok(Moment::Time(clock)),
                (true, true) => {
                    let offset = offset.ok_or_else(|| missing("timetz"))?;
                    Ok(Moment::TimeTz(clock, offset as i32))
                }
            };
        }
        let days = self.days().ok_or_else(wrong)?;
        match (timed, zoned) {
            (false, false) => check_date(days).map(Moment::Date),
            (false, true) => Err(invalid("datetime format is zoned but not timed")),
            (true, false) => check_timestamp(days, clock).map(Moment::Timestamp),
            (true, true) => {
                let offset = offset.ok_or_else(|| missing("timestamptz"))?;
                let instant = check_timestamp(days, clock - offset * MICROS_PER_SECOND)?;
                Ok(Moment::TimestampTz(instant, offset as i32))
            }
        }
    }

    /// Days since 2000-01-01; `None` for what no calendar has.
    fn days(&self) -> Option<i64> {
        let year = match (self.before_christ, self.year) {
            (true, year) => 1 - year,
            // Without a year and a day, PostgreSQL's calendar begins in 1 BC.
            (false, year) => year,
        };
        let (month, day) = (self.month.max(1), self.day.max(1));
        if self.month < 0 || self.day < 0 || month > 12 || day > i64::from(days_in_month(year, month as u32))
        {
            return None;
        }
        if self.day_of_year > 0 {
            return Some(days_from_civil(year, 1, 1) + self.day_of_year - 1);
        }
        Some(days_from_civil(year, month as u32, day as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, template: &str) -> Result<Moment> {
        Template::new(template)?.read(text)
    }

    #[test]
    fn patterns_decide_the_type() {
        assert_eq!(read("10-03-2017", "dd-mm-yyyy").unwrap(), Moment::Date(6278));
        assert_eq!(read("12:34", "HH24:MI").unwrap(), Moment::Time(45_240_000_000));
        assert_eq!(read("12:34 -05:20", "HH24:MI TZH:TZM").unwrap(), Moment::TimeTz(45_240_000_000, -19_200));
    }

    #[test]
    fn separators_match_to_the_letter() {
        let message = |text, template| read(text, template).unwrap_err().message().to_owned();
        assert_eq!(message("12:34", "aaa"), "invalid datetime format separator: \"a\"");
        assert_eq!(message("12:34", "HH24:MI TZH"), "input string is too short for datetime format");
        assert_eq!(
            message("10-03-2017 12:34", "dd-mm-yyyy"),
            "trailing characters remain in input string after datetime format"
        );
        assert_eq!(message("t", "\"T\""), "unmatched format character \"T\"");
        assert_eq!(message("aa", "HH24"), "invalid value \"aa\" for \"HH24\"");
    }
}
