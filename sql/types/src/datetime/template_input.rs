//! `to_date` and `to_timestamp`: what a template reads from a text (formatting.c's DCH_from_char and
//! do_to_timestamp).
//!
//! Outside of FX, spaces before and after fields do not count, a separator of the template takes one
//! separator of the text or nothing, and other characters of the template take any character, unless
//! more was skipped than the template has. A field that a number cannot follow takes all digits
//! there are; one that runs into the next takes as many as it is long.

use super::template::{Piece, full_year, pieces};
use super::{
    MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, MONTHS, civil_from_days, days_from_civil,
    days_in_month,
};
use crate::error::{Result, SqlError, SqlState};

/// What a template read: days since 2000-01-01, microseconds of that day, the offset (seconds to the
/// east) if one was written, and how many decimals of a second FF1 to FF6 asked for.
pub struct Parsed {
    pub days: i64,
    pub clock: i64,
    pub offset: Option<i64>,
    pub precision: Option<i32>,
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("date/time field value out of range: \"{text}\""),
    )
}

/// Which calendar a field belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Convention {
    Gregorian,
    IsoWeek,
}

fn convention(name: &str) -> Option<Convention> {
    match name {
        "IDDD" | "ID" | "IW" | "IYYY" | "IYY" | "IY" | "I" => Some(Convention::IsoWeek),
        "DDD" | "DD" | "D" | "MM" | "RM" | "rm" | "WW" | "W" | "Y,YYY" | "YYYY" | "YYY" | "YY" | "Y" => {
            Some(Convention::Gregorian)
        }
        _ if is_month(name) => Some(Convention::Gregorian),
        _ => None,
    }
}

fn is_month(name: &str) -> bool {
    name.eq_ignore_ascii_case("month") || name.eq_ignore_ascii_case("mon")
}

fn is_separator(c: char) -> bool {
    c.is_ascii_punctuation()
}

/// Whether a pattern reads digits.
fn reads_digits(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let words = ["AD", "BC", "AM", "PM", "DAY", "DY", "MONTH", "MON", "RM", "OF", "TZ", "TZH", "FX"];
    !words.contains(&upper.replace('.', "").as_str()) && !upper.starts_with("FF")
}

/// Values of fields; zero is one that was not given.
#[derive(Default)]
struct Fields {
    convention: Option<Convention>,
    hour: i64,
    twelve_hours: bool,
    afternoon: i64,
    minute: i64,
    second: i64,
    day_seconds: i64,
    weekday: i64,
    day: i64,
    day_of_year: i64,
    month: i64,
    millis: i64,
    micros: i64,
    year: i64,
    year_digits: u32,
    before_christ: i64,
    week: i64,
    week_of_month: i64,
    century: i64,
    julian: i64,
    precision: Option<i32>,
    zone_sign: i64,
    zone_hours: i64,
    zone_minutes: i64,
}

/// Sets a field once (from_char_set_int).
fn set(field: &mut i64, value: i64, name: &str) -> Result<()> {
    if *field != 0 && *field != value {
        return Err(invalid(format!("conflicting values for \"{name}\" field in formatting string"))
            .with_detail("This value contradicts a previous setting for the same field type."));
    }
    *field = value;
    Ok(())
}

/// Where reading has come to.
struct Reader<'t> {
    rest: &'t str,
    /// What stood before.
    before: Option<char>,
}

impl Reader<'_> {
    fn skip(&mut self) {
        let mut characters = self.rest.chars();
        self.before = characters.next();
        self.rest = characters.as_str();
    }

    fn skip_spaces(&mut self) -> i64 {
        let mut skipped = 0;
        while self.rest.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.skip();
            skipped += 1;
        }
        skipped
    }

    /// A number, and how much of the text it took (from_char_parse_int_len).
    fn number(&mut self, name: &str, length: usize, open: bool) -> Result<(i64, usize)> {
        let start = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let shown: String = start.chars().take(length).collect();
        let given = shown.chars().count();
        let body = if open { start } else { shown.as_str() };
        let sign = usize::from(body.starts_with(['+', '-']));
        let digits = body[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let used = if digits == 0 { 0 } else { sign + digits };
        let fixed_width_hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
        if !open {
            if given < length {
                return Err(invalid(format!("source string too short for \"{name}\" formatting field"))
                    .with_detail(format!("Field requires {length} characters, but only {given} remain."))
                    .with_hint(fixed_width_hint));
            }
            if used > 0 && used < length {
                return Err(invalid(format!("invalid value \"{shown}\" for \"{name}\""))
                    .with_detail(format!(
                        "Field requires {length} characters, but only {used} could be parsed."
                    ))
                    .with_hint(fixed_width_hint));
            }
        }
        if used == 0 {
            return Err(invalid(format!("invalid value \"{shown}\" for \"{name}\""))
                .with_detail("Value must be an integer."));
        }
        let value = start[..used].parse::<i32>().map_err(|_| {
            SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("value for \"{name}\" in source string is out of range"),
            )
            .with_detail("Value must be in the range -2147483648 to 2147483647.")
        })?;
        let taken = self.rest.len() - start.len() + used;
        self.before = start[..used].chars().last();
        self.rest = &start[used..];
        Ok((value.into(), taken))
    }

    /// The place of the word that stands here among some (from_char_seq_search).
    fn word(&mut self, name: &str, words: &[&str]) -> Result<usize> {
        let fits = |word: &&str| self.rest.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word));
        let Some(place) = words.iter().position(&fits) else {
            let shown = self.rest.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or("");
            return Err(invalid(format!("invalid value \"{shown}\" for \"{name}\""))
                .with_detail("The given value did not match any of the allowed values for this field."));
        };
        self.rest = &self.rest[words[place].len()..];
        Ok(place)
    }
}

const ROMAN: [&str; 12] = ["xii", "xi", "x", "ix", "viii", "vii", "vi", "v", "iv", "iii", "ii", "i"];

/// Reads `text` by a template.
pub fn parse(text: &str, template: &str) -> Result<Parsed> {
    let pieces = pieces(template)?;
    let mut fields = Fields::default();
    let mut reader = Reader { rest: text, before: None };
    let mut exact = false;
    // Characters skipped beyond those of the template.
    let mut extra = 0;
    for (place, piece) in pieces.iter().enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        let is_field = matches!(piece, Piece::Pattern { .. });
        if (is_field || place == 0) && !exact {
            extra += reader.skip_spaces();
        }
        match piece {
            Piece::Literal { quoted: false, character }
                if is_separator(*character) || character.is_ascii_whitespace() =>
            {
                if exact {
                    reader.skip();
                    continue;
                }
                extra -= 1;
                if reader.rest.starts_with(|c: char| c.is_ascii_whitespace() || is_separator(c)) {
                    reader.skip();
                    extra += 1;
                }
            }
            Piece::Literal { .. } => {
                if !exact && extra > 0 {
                    extra -= 1;
                } else {
                    reader.skip();
                }
            }
            Piece::Exact => exact = true,
            Piece::Pattern { name, fill, ordinal } => {
                let open = !*fill || ordinal.is_some() || no_digits_follow(pieces.get(place + 1));
                let minus = extra > 0 && reader.before == Some('-');
                fields.read(name, open, ordinal.is_some(), minus, &mut reader)?;
                if !exact {
                    extra = reader.skip_spaces();
                }
            }
        }
    }
    fields.finish(text)
}

/// Whether what follows a field cannot be taken for more of its digits (is_next_separator).
fn no_digits_follow(next: Option<&Piece>) -> bool {
    match next {
        None | Some(Piece::Exact) => true,
        Some(Piece::Pattern { name, .. }) => !reads_digits(name),
        Some(Piece::Literal { character, .. }) => !character.is_ascii_digit(),
    }
}

impl Fields {
    /// Reads what one pattern stands for. `minus`: a minus was skipped before it that the template
    /// does not have.
    fn read(
        &mut self,
        name: &str,
        open: bool,
        ordinal: bool,
        minus: bool,
        reader: &mut Reader<'_>,
    ) -> Result<()> {
        if let Some(convention) = convention(name) {
            if self.convention.is_some_and(|other| other != convention) {
                return Err(invalid("invalid combination of date conventions").with_hint(
                    "Do not mix Gregorian and ISO week date conventions in a formatting template.",
                ));
            }
            self.convention = Some(convention);
        }
        let mut number = |length: usize| reader.number(name, length, open);
        match name {
            "HH" | "HH12" => {
                set(&mut self.hour, number(2)?.0, name)?;
                self.twelve_hours = true;
            }
            "HH24" => set(&mut self.hour, number(2)?.0, name)?,
            "MI" => set(&mut self.minute, number(2)?.0, name)?,
            "SS" => set(&mut self.second, number(2)?.0, name)?,
            "MS" => {
                let (value, digits) = number(3)?;
                set(&mut self.millis, value, name)?;
                self.millis *= 10_i64.pow(3_u32.saturating_sub(digits as u32));
            }
            "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let precision = name.strip_prefix("FF").and_then(|digits| digits.parse().ok());
                self.precision = precision.or(self.precision);
                let (value, digits) = number(precision.map_or(6, |digits| digits as usize))?;
                set(&mut self.micros, value, name)?;
                self.micros *= 10_i64.pow(6_u32.saturating_sub(digits as u32));
            }
            "SSSS" | "SSSSS" => set(&mut self.day_seconds, number(name.len())?.0, name)?,
            "TZ" | "tz" | "OF" | "of" => {
                let message = format!("formatting field \"{name}\" is only supported in to_char");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            "TZH" | "tzh" => {
                self.zone_sign = if minus { -1 } else { 1 };
                if reader.rest.starts_with(['+', '-', ' ']) {
                    self.zone_sign = if reader.rest.starts_with('-') { -1 } else { 1 };
                    reader.skip();
                }
                let hours = reader.number(name, 2, open)?.0;
                set(&mut self.zone_hours, hours, name)?;
            }
            "TZM" | "tzm" => {
                if self.zone_sign == 0 {
                    self.zone_sign = 1;
                }
                set(&mut self.zone_minutes, number(2)?.0, name)?;
            }
            "MM" => set(&mut self.month, number(2)?.0, name)?,
            "DDD" => set(&mut self.day_of_year, number(3)?.0, name)?,
            "IDDD" => set(&mut self.day_of_year, number(3)?.0, name)?,
            "DD" => set(&mut self.day, number(2)?.0, name)?,
            "D" => set(&mut self.weekday, number(1)?.0, name)?,
            "ID" => {
                // Sunday is 1 in the other numbering.
                let day = number(1)?.0 + 1;
                set(&mut self.weekday, if day > 7 { 1 } else { day }, name)?;
            }
            "WW" | "IW" => set(&mut self.week, number(2)?.0, name)?,
            // Which of its days a quarter would mean is not clear.
            "Q" => _ = number(1)?,
            "CC" => set(&mut self.century, number(2)?.0, name)?,
            "W" => set(&mut self.week_of_month, number(1)?.0, name)?,
            "J" => set(&mut self.julian, number(1)?.0, name)?,
            "Y,YYY" => self.year_with_comma(name, reader)?,
            "YYYY" | "IYYY" | "YYY" | "IYY" | "YY" | "IY" | "Y" | "I" => {
                let (value, digits) = number(name.len())?;
                let short = name.len() < 4 && digits < 4;
                set(&mut self.year, if short { full_year(value) } else { value }, name)?;
                self.year_digits = name.len() as u32;
            }
            _ => self.read_word(name, reader)?,
        }
        if ordinal {
            reader.skip();
            reader.skip();
        }
        Ok(())
    }

    fn year_with_comma(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<()> {
        let wrong = || invalid("invalid input string for \"Y,YYY\"");
        let (thousands, rest) = reader.rest.split_once(',').ok_or_else(wrong)?;
        let digits = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
        let thousands: i64 = thousands.trim().parse::<i32>().map_err(|_| wrong())?.into();
        let years: i64 = rest[..digits].parse().map_err(|_| wrong())?;
        set(&mut self.year, thousands * 1000 + years, name)?;
        self.year_digits = 4;
        reader.rest = &rest[digits..];
        Ok(())
    }

    /// Names of months and days, AM and PM, BC and AD.
    fn read_word(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<()> {
        let short = |names: &[&'static str]| -> Vec<&'static str> { names.iter().map(|n| &n[..3]).collect() };
        match name.to_ascii_uppercase().as_str() {
            "MONTH" => set(&mut self.month, reader.word(name, &MONTHS)? as i64 + 1, name)?,
            "MON" => set(&mut self.month, reader.word(name, &short(&MONTHS))? as i64 + 1, name)?,
            "DAY" => set(&mut self.weekday, reader.word(name, &super::DAYS)? as i64 + 1, name)?,
            "DY" => set(&mut self.weekday, reader.word(name, &short(&super::DAYS))? as i64 + 1, name)?,
            "RM" => set(&mut self.month, 12 - reader.word(name, &ROMAN)? as i64, name)?,
            "AM" | "PM" | "A.M." | "P.M." => {
                let words = if name.contains('.') { ["a.m.", "p.m."] } else { ["am", "pm"] };
                set(&mut self.afternoon, reader.word(name, &words)? as i64, name)?;
                self.twelve_hours = true;
            }
            "BC" | "AD" | "B.C." | "A.D." => {
                let words = if name.contains('.') { ["a.d.", "b.c."] } else { ["ad", "bc"] };
                set(&mut self.before_christ, reader.word(name, &words)? as i64, name)?;
            }
            _ => return Err(SqlError::unsupported(format_args!("the field {name} of this template"))),
        }
        Ok(())
    }

    /// The year, BC already as PostgreSQL's calendar counts it; `None` if none was given.
    fn calendar_year(&self) -> Option<i64> {
        let century = if self.before_christ != 0 { -self.century } else { self.century };
        if self.year != 0 && self.century != 0 && self.year_digits <= 2 {
            // The two digits, in that century: the 21st runs from 2001 to 2100.
            let two = self.year % 100;
            return Some(match (two, century >= 0) {
                (0, true) => century * 100,
                (0, false) => century * 100 + 1,
                (two, true) => (century - 1) * 100 + two,
                (two, false) => (century + 1) * 100 - two + 1,
            });
        }
        if self.year != 0 {
            let year = if self.before_christ != 0 { -self.year } else { self.year };
            return Some(if year < 0 { year + 1 } else { year });
        }
        // The first year of the century.
        (self.century != 0).then(|| if century >= 0 { (century - 1) * 100 + 1 } else { century * 100 + 1 })
    }

    fn finish(mut self, text: &str) -> Result<Parsed> {
        let days = self.days(text)?;
        let clock = self.clock(text)?;
        let offset = match self.zone_sign {
            0 => None,
            sign if (0..=15).contains(&self.zone_hours) && (0..60).contains(&self.zone_minutes) => {
                Some(sign * (self.zone_hours * 60 + self.zone_minutes) * 60)
            }
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                    format!("time zone displacement out of range: \"{text}\""),
                ));
            }
        };
        Ok(Parsed { days, clock, offset, precision: self.precision })
    }

    fn clock(&mut self, text: &str) -> Result<i64> {
        let pick = |given: i64, of_day: i64| if given != 0 { given } else { of_day };
        let mut hour = pick(self.hour, self.day_seconds / 3600);
        let minute = pick(self.minute, self.day_seconds / 60 % 60);
        let second = pick(self.second, self.day_seconds % 60);
        if self.twelve_hours {
            if !(1..=12).contains(&hour) {
                return Err(invalid(format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            hour = hour % 12 + 12 * self.afternoon;
        }
        let micros = self.millis * 1000 + self.micros;
        let in_day = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..MICROS_PER_SECOND).contains(&micros);
        if !in_day {
            return Err(out_of_range(text));
        }
        Ok(hour * MICROS_PER_HOUR + minute * MICROS_PER_MINUTE + second * MICROS_PER_SECOND + micros)
    }

    /// Days since 2000-01-01.
    fn days(&mut self, text: &str) -> Result<i64> {
        let given = self.calendar_year();
        let (mut year, mut month, mut day) = (given.unwrap_or(0), 1, 1);
        // Only a day of a known year is checked against the length of its month.
        let mut whole = given.is_some();
        let place = |days: i64| {
            let civil = civil_from_days(days);
            (civil.year, i64::from(civil.month), i64::from(civil.day))
        };
        if self.julian != 0 {
            (year, month, day) = place(self.julian - 2_451_545);
            whole = true;
        }
        let iso = self.convention == Some(Convention::IsoWeek);
        if self.week != 0 && iso {
            let monday = monday_of_first_week(year) + (self.week - 1) * 7;
            let weekday = match self.weekday {
                0 => 0,
                // Sunday ends the week.
                1 => 6,
                weekday => weekday - 2,
            };
            (year, month, day) = place(monday + weekday);
        } else if self.week != 0 {
            self.day_of_year = (self.week - 1) * 7 + 1;
        }
        if self.week_of_month != 0 {
            self.day = (self.week_of_month - 1) * 7 + 1;
        }
        if self.day != 0 {
            day = self.day;
        }
        if self.month != 0 {
            month = self.month;
        }
        if self.day_of_year != 0 && (month <= 1 || day <= 1) {
            if year == 0 && self.before_christ == 0 {
                return Err(invalid("cannot calculate day of year without year information"));
            }
            if iso {
                (year, month, day) = place(monday_of_first_week(year) + self.day_of_year - 1);
            } else {
                (month, day) = self.of_day_of_year(year, month, day);
            }
        }
        let last = match (1..=12).contains(&month) {
            true if whole => i64::from(days_in_month(year, month as u32)),
            true => 31,
            false => 0,
        };
        if !(1..=last).contains(&day) {
            return Err(out_of_range(text));
        }
        Ok(days_from_civil(year, month as u32, 1) + day - 1)
    }

    /// Month and day where the other one of them was given beside the day of the year.
    fn of_day_of_year(&self, year: i64, month: i64, day: i64) -> (i64, i64) {
        let mut left = self.day_of_year;
        let mut found = 1;
        while found <= 12 && left > i64::from(days_in_month(year, found as u32)) {
            left -= i64::from(days_in_month(year, found as u32));
            found += 1;
        }
        (if month <= 1 { found } else { month }, if day <= 1 { left } else { day })
    }
}

/// The Monday that begins the first ISO week of a year, in days since 2000-01-01.
fn monday_of_first_week(year: i64) -> i64 {
    // The fourth of January is in it.
    let fourth = days_from_civil(year, 1, 4);
    fourth - (super::day_of_week(fourth) + 6) % 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_begin_on_mondays() {
        for year in [1998, 2000, 2004, 2005, 2009, 2020] {
            assert_eq!(super::super::iso_week(monday_of_first_week(year)), (year, 1));
        }
    }
}
