//! Dates and times: the proleptic Gregorian calendar, time zones, text forms and arithmetic.
//!
//! Values count from 2000-01-01, as PostgreSQL stores them: days for `date`, microseconds for
//! the rest; the extremes of the integer are ±infinity.

pub mod arithmetic;
mod calendar_fields;
mod date_style;
mod error;
mod format;
mod interval_text;
mod lexical;
mod offset;
mod parse;
pub mod standard_template;
pub mod template;
pub mod template_input;
pub mod zone;
mod zoned_time;

pub use date_style::{show_date, show_timestamp, show_timestamptz};
pub use format::{format_date, format_time, format_timestamp, format_timestamptz, format_timetz};
pub use interval_text::{format_interval, interval_depends_on_style, parse_interval};
pub use parse::{
    parse_date, parse_numeric_zone, parse_time, parse_timestamp, parse_timestamptz, parse_timetz,
};
pub use zone::canonical_name as time_zone_name;
pub use zoned_time::{TimeTz, displacement_out_of_range};

use crate::error::{Result, SqlError, SqlState};

pub const MICROS_PER_SECOND: i64 = 1_000_000;
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
pub const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;
/// Days from 1970-01-01 to 2000-01-01.
pub const EPOCH_DAYS: i64 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub const EPOCH_MICROS: i64 = EPOCH_DAYS * MICROS_PER_DAY;
/// 4714-11-24 BC, the first day PostgreSQL knows (Julian day 0).
pub const DATE_MIN: i32 = -2_451_545;
/// 5874897-12-31.
pub const DATE_MAX: i32 = 2_145_031_948;
/// Start of 4714-11-24 BC.
pub const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// First instant after 294276-12-31.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// A day of the calendar. Year 0 is 1 BC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    pub year: i64,
    pub month: u32,
    pub day: u32,
}

/// A day and a time of that day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilTime {
    pub date: Civil,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub microsecond: i64,
}

/// Days since 2000-01-01 of a calendar day (Hinnant's days_from_civil).
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let month = i64::from(month);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 - EPOCH_DAYS
}

/// The calendar day so many days after 2000-01-01.
pub fn civil_from_days(days: i64) -> Civil {
    let z = days + EPOCH_DAYS + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * mp + 2) / 5 + 1) as u32;
    let month = (if mp < 10 { mp + 3 } else { mp - 9 }) as u32;
    Civil { year: year_of_era + era * 400 + i64::from(month <= 2), month, day }
}

/// Splits microseconds since 2000-01-01 into calendar and clock.
pub fn civil_from_micros(micros: i64) -> CivilTime {
    let days = micros.div_euclid(MICROS_PER_DAY);
    let rest = micros.rem_euclid(MICROS_PER_DAY);
    CivilTime {
        date: civil_from_days(days),
        hour: rest / MICROS_PER_HOUR,
        minute: rest / MICROS_PER_MINUTE % 60,
        second: rest / MICROS_PER_SECOND % 60,
        microsecond: rest % MICROS_PER_SECOND,
    }
}

pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// 0 is Sunday.
pub fn day_of_week(days: i64) -> i64 {
    (days + 6).rem_euclid(7)
}

/// ISO 8601 year and week of a day.
pub fn iso_week(days: i64) -> (i64, i64) {
    // The week belongs to the year of its Thursday.
    let monday_based = (day_of_week(days) + 6) % 7;
    let thursday = days - monday_based + 3;
    let year = civil_from_days(thursday).year;
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// A `date` from its day count, refusing what the type cannot hold.
pub fn check_date(days: i64) -> Result<i32> {
    match i32::try_from(days) {
        Ok(days) if (DATE_MIN..=DATE_MAX).contains(&days) => Ok(days),
        _ => Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range")),
    }
}

/// A timestamp from days and microseconds of the day, refusing what the type cannot hold.
pub fn check_timestamp(days: i64, micros: i64) -> Result<i64> {
    days.checked_mul(MICROS_PER_DAY)
        .and_then(|d| d.checked_add(micros))
        .filter(|t| in_range(*t))
        .ok_or_else(timestamp_out_of_range)
}

/// Whether a finite timestamp is one the type can hold.
pub fn in_range(timestamp: i64) -> bool {
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&timestamp)
}

pub fn timestamp_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

/// Whether a timestamp is ±infinity.
pub fn is_infinite(timestamp: i64) -> bool {
    timestamp == i64::MAX || timestamp == i64::MIN
}

/// English month names.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// English day names, from Sunday.
pub const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Midnight of a date.
pub fn date_to_timestamp(days: i32) -> Result<i64> {
    match days {
        i32::MAX => Ok(i64::MAX),
        i32::MIN => Ok(i64::MIN),
        days => check_timestamp(i64::from(days), 0)
            .map_err(|_| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_round_trips() {
        for days in [-2_451_545, -730_500, -1, 0, 59, 60, 366, 8_766, 2_145_031_948] {
            let civil = civil_from_days(days);
            assert_eq!(days_from_civil(civil.year, civil.month, civil.day), days);
        }
        assert_eq!(civil_from_days(0), Civil { year: 2000, month: 1, day: 1 });
        assert_eq!(day_of_week(0), 6);
        assert_eq!(iso_week(days_from_civil(2021, 1, 3)), (2020, 53));
    }
}
