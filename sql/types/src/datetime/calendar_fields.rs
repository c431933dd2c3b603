//! Year, month, day and clock while they are being found among a text's fields (DecodeDate,
//! DecodeNumber, DecodeNumberField, DecodeTime, ValidateDate).

use super::error::Trouble;
use super::lexical::{Meaning, meaning};
use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use super::{civil_from_days, days_from_civil, days_in_month};
use crate::style::DateOrder;

/// Which parts are known, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts(u16);

impl Parts {
    pub const NONE: Parts = Parts(0);
    pub const YEAR: Parts = Parts(1);
    pub const MONTH: Parts = Parts(2);
    pub const DAY: Parts = Parts(4);
    pub const DATE: Parts = Parts(7);
    pub const HOUR: Parts = Parts(8);
    pub const MINUTE: Parts = Parts(16);
    pub const SECOND: Parts = Parts(32);
    pub const TIME: Parts = Parts(56);
    pub const ZONE: Parts = Parts(64);
    pub const DAY_OF_YEAR: Parts = Parts(128);
    pub const DAYLIGHT: Parts = Parts(256);
    pub const MERIDIEM: Parts = Parts(512);
    pub const ERA: Parts = Parts(1024);
    pub const DAY_OF_WEEK: Parts = Parts(2048);
    /// A word that stands for a whole value, whatever else is said.
    pub const WHOLE: Parts = Parts(4096);

    pub fn with(self, other: Parts) -> Parts {
        Parts(self.0 | other.0)
    }

    pub fn meets(self, other: Parts) -> bool {
        self.0 & other.0 != 0
    }

    pub fn has(self, other: Parts) -> bool {
        self.0 & other.0 == other.0
    }

    fn among(self, other: Parts) -> Parts {
        Parts(self.0 & other.0)
    }
}

type Outcome<T> = Result<T, Trouble>;

/// The parts found so far; which of them count, the caller's [`Parts`] say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub day_of_year: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub micros: i64,
    pub julian: bool,
    pub two_digits: bool,
    pub before_christ: bool,
    pub afternoon: Option<bool>,
}

/// The number a text begins with, and the rest (strtoint).
pub(super) fn number(text: &str) -> Outcome<(i64, &str)> {
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Ok((0, text));
    }
    let end = sign + digits;
    let value = text[..end].parse::<i32>().map_err(|_| Trouble::Range)?;
    Ok((i64::from(value), &text[end..]))
}

/// `.123` in microseconds.
pub(super) fn fraction(text: &str) -> Outcome<i64> {
    let digits = text.strip_prefix('.').ok_or(Trouble::Syntax)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Trouble::Syntax);
    }
    let value: f64 = format!("0.{digits}0").parse().map_err(|_| Trouble::Syntax)?;
    Ok((value * 1e6).round_ties_even() as i64)
}

impl Moment {
    pub fn set_day(&mut self, days: i64) {
        let civil = civil_from_days(days);
        (self.year, self.month, self.day) = (civil.year, i64::from(civil.month), i64::from(civil.day));
    }

    pub fn set_clock(&mut self, micros: i64) {
        self.hour = micros / MICROS_PER_HOUR;
        self.minute = micros / MICROS_PER_MINUTE % 60;
        self.second = micros / MICROS_PER_SECOND % 60;
        self.micros = micros % MICROS_PER_SECOND;
    }

    pub fn clock(&self) -> i64 {
        self.hour * MICROS_PER_HOUR
            + self.minute * MICROS_PER_MINUTE
            + self.second * MICROS_PER_SECOND
            + self.micros
    }

    pub fn days(&self) -> i64 {
        days_from_civil(self.year, self.month as u32, self.day as u32)
    }

    /// Refuses what is no time of a day (time_overflows); 24:00:00 is one.
    pub fn check_clock(&self) -> Outcome<()> {
        let fits = (0..=24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && (0..=MICROS_PER_SECOND).contains(&self.micros)
            && self.clock() <= MICROS_PER_DAY;
        if fits { Ok(()) } else { Err(Trouble::Range) }
    }

    /// Applies AM and PM.
    pub fn apply_meridiem(&mut self) -> Outcome<()> {
        let Some(afternoon) = self.afternoon else { return Ok(()) };
        if self.hour > 12 {
            return Err(Trouble::Range);
        }
        match (afternoon, self.hour == 12) {
            (false, true) => self.hour = 0,
            (true, false) => self.hour += 12,
            _ => {}
        }
        Ok(())
    }

    /// `hh:mm[:ss[.ffffff]]` (DecodeTime).
    pub fn read_time(&mut self, text: &str) -> Outcome<Parts> {
        let (hour, rest) = number(text)?;
        let rest = rest.strip_prefix(':').ok_or(Trouble::Syntax)?;
        let (minute, rest) = number(rest)?;
        (self.hour, self.minute, self.second, self.micros) = (hour, minute, 0, 0);
        if rest.starts_with('.') {
            // Minutes and seconds.
            (self.hour, self.minute, self.second) = (0, hour, minute);
            self.micros = fraction(rest)?;
        } else if let Some(rest) = rest.strip_prefix(':') {
            let (second, rest) = number(rest)?;
            self.second = second;
            if !rest.is_empty() {
                self.micros = fraction(rest)?;
            }
        } else if !rest.is_empty() {
            return Err(Trouble::Syntax);
        }
        if self.hour < 0 || !(0..=59).contains(&self.minute) || !(0..=60).contains(&self.second) {
            return Err(Trouble::Range);
        }
        Ok(Parts::TIME)
    }

    /// A date of several parts with separators (DecodeDate).
    pub fn read_date(&mut self, text: &str, known: Parts, order: DateOrder) -> Outcome<Parts> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let Some(first) = rest.bytes().next() else { return Err(Trouble::Syntax) };
            let digits = first.is_ascii_digit();
            let ends = |c: char| if digits { !c.is_ascii_digit() } else { !c.is_ascii_alphabetic() };
            let end = rest.find(ends).unwrap_or(rest.len());
            pieces.push(&rest[..end]);
            rest = rest.get(end + 1..).unwrap_or("");
        }
        let (mut known, mut found) = (known, Parts::NONE);
        let mut text_month = false;
        // A name is unambiguous: it comes first.
        for piece in pieces.iter().filter(|piece| piece.starts_with(|c: char| c.is_ascii_alphabetic())) {
            match meaning(piece) {
                Some(Meaning::Ignored) => continue,
                Some(Meaning::Month(month)) => (self.month, text_month) = (month, true),
                _ => return Err(Trouble::Syntax),
            }
            if known.meets(Parts::MONTH) {
                return Err(Trouble::Syntax);
            }
            (known, found) = (known.with(Parts::MONTH), found.with(Parts::MONTH));
        }
        for piece in pieces.iter().filter(|piece| piece.starts_with(|c: char| c.is_ascii_digit())) {
            let part = self.read_number(piece, text_month, known, order)?;
            if known.meets(part) {
                return Err(Trouble::Syntax);
            }
            (known, found) = (known.with(part), found.with(part));
        }
        let complete = known.among(Parts::DATE) == Parts::DATE
            && !known.meets(Parts::TIME.with(Parts::MERIDIEM).with(Parts::ERA).with(Parts::DAY_OF_WEEK));
        if complete { Ok(found) } else { Err(Trouble::Syntax) }
    }

    /// A plain number, by what is known already (DecodeNumber).
    pub fn read_number(
        &mut self,
        text: &str,
        text_month: bool,
        known: Parts,
        order: DateOrder,
    ) -> Outcome<Parts> {
        let (value, rest) = number(text)?;
        if rest.len() == text.len() {
            return Err(Trouble::Syntax);
        }
        if rest.starts_with('.') {
            // More than two digits before the point: a date or a time run together.
            if text.len() - rest.len() > 2 {
                return self.read_run(text, known.with(Parts::DATE));
            }
            self.micros = fraction(rest)?;
        } else if !rest.is_empty() {
            return Err(Trouble::Syntax);
        }
        let length = text.len();
        let date = known.among(Parts::DATE);
        if length == 3 && date == Parts::YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(Parts::DAY_OF_YEAR.with(Parts::MONTH).with(Parts::DAY));
        }
        let year_first = length >= 3 || order == DateOrder::Ymd;
        let (month, day, month_and_day, year_and_month) =
            (Parts::MONTH, Parts::DAY, Parts::MONTH.with(Parts::DAY), Parts::YEAR.with(Parts::MONTH));
        let part = match date {
            Parts::NONE if year_first => Parts::YEAR,
            Parts::NONE if order == DateOrder::Dmy => Parts::DAY,
            Parts::NONE => Parts::MONTH,
            Parts::YEAR => Parts::MONTH,
            found if found == month && text_month && year_first => Parts::YEAR,
            found if found == month => Parts::DAY,
            found if found == year_and_month => {
                if text_month && length >= 3 && self.two_digits {
                    // The first number was the day.
                    self.day = self.year;
                    self.year = value;
                    self.two_digits = false;
                    return Ok(Parts::DAY);
                }
                Parts::DAY
            }
            found if found == day => Parts::MONTH,
            found if found == month_and_day => Parts::YEAR,
            Parts::DATE => return self.read_run(text, known),
            _ => return Err(Trouble::Syntax),
        };
        match part {
            Parts::YEAR => {
                self.year = value;
                self.two_digits = length <= 2;
            }
            Parts::MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(part)
    }

    /// A date or a time without separators (DecodeNumberField).
    pub fn read_run(&mut self, text: &str, known: Parts) -> Outcome<Parts> {
        let mut digits = text;
        if let Some((whole, decimals)) = text.split_once('.') {
            let decimals: String = decimals.chars().take_while(char::is_ascii_digit).collect();
            self.micros = fraction(&format!(".{decimals}"))?;
            digits = whole;
        } else if !known.has(Parts::DATE) && digits.len() >= 6 {
            let split = digits.len() - 4;
            let part = |range: std::ops::Range<usize>| -> Outcome<i64> {
                digits
                    .get(range)
                    .and_then(|part| part.parse::<i32>().ok())
                    .map(i64::from)
                    .ok_or(Trouble::Range)
            };
            self.year = part(0..split)?;
            self.month = part(split..split + 2)?;
            self.day = part(split + 2..digits.len())?;
            self.two_digits |= split == 2;
            return Ok(Parts::DATE);
        }
        if !known.has(Parts::TIME) && matches!(digits.len(), 4 | 6) {
            let part = |from: usize| -> Outcome<i64> {
                digits.get(from..from + 2).and_then(|part| part.parse().ok()).ok_or(Trouble::Syntax)
            };
            self.hour = part(0)?;
            self.minute = part(2)?;
            self.second = if digits.len() == 6 { part(4)? } else { 0 };
            return Ok(Parts::TIME);
        }
        Err(Trouble::Syntax)
    }

    /// The last word on year, month and day (ValidateDate).
    pub fn validate(&mut self, known: Parts) -> Outcome<()> {
        if known.has(Parts::YEAR) && !self.julian {
            if self.before_christ {
                // There is no year zero: 1 BC is.
                if self.year <= 0 {
                    return Err(Trouble::Range);
                }
                self.year = 1 - self.year;
            } else if self.two_digits {
                match self.year {
                    0..70 => self.year += 2000,
                    70..100 => self.year += 1900,
                    year if year < 0 => return Err(Trouble::Range),
                    _ => {}
                }
            } else if self.year <= 0 {
                return Err(Trouble::Range);
            }
        }
        if known.has(Parts::DAY_OF_YEAR) {
            self.set_day(days_from_civil(self.year, 1, 1) + self.day_of_year - 1);
        }
        if known.has(Parts::MONTH) && !(1..=12).contains(&self.month)
            || known.has(Parts::DAY) && !(1..=31).contains(&self.day)
        {
            return Err(Trouble::MonthOrDay);
        }
        if known.has(Parts::DATE) && self.day > i64::from(days_in_month(self.year, self.month as u32)) {
            return Err(Trouble::Range);
        }
        Ok(())
    }
}
