//! Arithmetic on dates, timestamps and intervals, field extraction and truncation.
//!
//! An interval has three independent parts (months, days, microseconds): adding one moves by
//! months first (clamping the day), then by days, then by time, as PostgreSQL does; for
//! timestamps with time zone, months and days move the local clock, so a day across a DST change
//! has 23 or 25 hours.

use jiff::tz::TimeZone;

use super::zone;
use super::{
    EPOCH_MICROS, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, TimeTz,
    check_timestamp, civil_from_days, day_of_week, days_from_civil, days_in_month, in_range, is_infinite,
    iso_week, timestamp_out_of_range,
};
use crate::datum::Interval;
use crate::error::{Result, SqlError, SqlState};
use crate::numeric::Numeric;

pub fn interval_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// A local timestamp moved by months (clamped to the month's last day) and days.
fn move_calendar(local: i64, months: i32, days: i32) -> Result<i64> {
    let mut day = local.div_euclid(MICROS_PER_DAY);
    let clock = local.rem_euclid(MICROS_PER_DAY);
    if months != 0 {
        let civil = civil_from_days(day);
        let total = civil.year * 12 + i64::from(civil.month) - 1 + i64::from(months);
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
        day = days_from_civil(year, month, civil.day.min(days_in_month(year, month)));
    }
    check_timestamp(day + i64::from(days), clock)
}

/// `timestamp + interval`.
pub fn add_to_timestamp(at: i64, interval: Interval) -> Result<i64> {
    if is_infinite(at) {
        return Ok(at);
    }
    let moved = if interval.months != 0 || interval.days != 0 {
        move_calendar(at, interval.months, interval.days)?
    } else {
        at
    };
    moved.checked_add(interval.microseconds).filter(|t| in_range(*t)).ok_or_else(timestamp_out_of_range)
}

/// `timestamptz + interval`, months and days by the clock of `zone`.
pub fn add_to_timestamptz(at: i64, interval: Interval, zone: &TimeZone) -> Result<i64> {
    if is_infinite(at) {
        return Ok(at);
    }
    let mut moved = at;
    if interval.months != 0 {
        moved = zone::to_instant(zone, move_calendar(zone::to_local(zone, moved), interval.months, 0)?);
    }
    if interval.days != 0 {
        moved = zone::to_instant(zone, move_calendar(zone::to_local(zone, moved), 0, interval.days)?);
    }
    moved.checked_add(interval.microseconds).filter(|t| in_range(*t)).ok_or_else(timestamp_out_of_range)
}

/// `a - b` as days and time. Spans of more than 292,471 years wrap around, as in PostgreSQL 15.
pub fn subtract_timestamps(a: i64, b: i64) -> Result<Interval> {
    if is_infinite(a) || is_infinite(b) {
        return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "cannot subtract infinite timestamps"));
    }
    let span = a.wrapping_sub(b);
    justify_hours(Interval { months: 0, days: 0, microseconds: span })
}

/// Negates all three parts.
pub fn negate(i: Interval) -> Result<Interval> {
    Ok(Interval {
        months: i.months.checked_neg().ok_or_else(interval_out_of_range)?,
        days: i.days.checked_neg().ok_or_else(interval_out_of_range)?,
        microseconds: i.microseconds.checked_neg().ok_or_else(interval_out_of_range)?,
    })
}

pub fn add_intervals(a: Interval, b: Interval) -> Result<Interval> {
    Ok(Interval {
        months: a.months.checked_add(b.months).ok_or_else(interval_out_of_range)?,
        days: a.days.checked_add(b.days).ok_or_else(interval_out_of_range)?,
        microseconds: a.microseconds.checked_add(b.microseconds).ok_or_else(interval_out_of_range)?,
    })
}

/// Whole and fractional parts spill downwards: months into days of 30, days into time
/// (interval_mul and interval_div).
fn scale_interval(months: f64, days: f64, micros: f64) -> Result<Interval> {
    let check = |x: f64| {
        if x.is_nan() || x.abs() > 2_147_483_647.0 { Err(interval_out_of_range()) } else { Ok(x as i32) }
    };
    let (whole_months, whole_days) = (check(months)?, check(days)?);
    // Fractions are rounded to microseconds' precision in units of days, as TSROUND does.
    let round = |x: f64| (x * 1e6).round_ties_even() / 1e6;
    let month_rest = round((months - f64::from(whole_months)) * 30.0);
    let mut seconds_rest = round((days - f64::from(whole_days) + month_rest - month_rest.trunc()) * 86_400.0);
    let mut extra_days = month_rest.trunc();
    if seconds_rest.abs() >= 86_400.0 {
        extra_days += (seconds_rest / 86_400.0).trunc();
        seconds_rest %= 86_400.0;
    }
    let total = (micros + seconds_rest * 1e6).round_ties_even();
    if total.is_nan() || total.abs() >= 9.223_372_036_854_775e18 {
        return Err(interval_out_of_range());
    }
    Ok(Interval {
        months: whole_months,
        days: check(f64::from(whole_days) + extra_days)?,
        microseconds: total as i64,
    })
}

pub fn multiply(i: Interval, factor: f64) -> Result<Interval> {
    scale_interval(f64::from(i.months) * factor, f64::from(i.days) * factor, i.microseconds as f64 * factor)
}

pub fn divide(i: Interval, divisor: f64) -> Result<Interval> {
    if divisor == 0.0 {
        return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    scale_interval(
        f64::from(i.months) / divisor,
        f64::from(i.days) / divisor,
        i.microseconds as f64 / divisor,
    )
}

/// Parts of an interval, wide enough that moving between them cannot overflow on the way.
#[derive(Clone, Copy)]
struct WideParts {
    months: i64,
    days: i64,
    micros: i64,
}

impl WideParts {
    fn of(i: Interval) -> WideParts {
        WideParts { months: i.months.into(), days: i.days.into(), micros: i.microseconds }
    }

    fn narrow(self) -> Result<Interval> {
        Ok(Interval {
            months: i32::try_from(self.months).map_err(|_| interval_out_of_range())?,
            days: i32::try_from(self.days).map_err(|_| interval_out_of_range())?,
            microseconds: self.micros,
        })
    }

    fn hours_to_days(&mut self) {
        self.days += self.micros / MICROS_PER_DAY;
        self.micros %= MICROS_PER_DAY;
        self.align_time();
    }

    /// Brings days and time to one sign.
    fn align_time(&mut self) {
        if self.days > 0 && self.micros < 0 {
            self.micros += MICROS_PER_DAY;
            self.days -= 1;
        } else if self.days < 0 && self.micros > 0 {
            self.micros -= MICROS_PER_DAY;
            self.days += 1;
        }
    }

    fn days_to_months(&mut self) {
        self.months += self.days / 30;
        self.days %= 30;
    }

    /// Brings months and days to one sign; `borrow` looks at the time too where days are 0.
    fn align_days(&mut self, borrow: bool) {
        let micros = if borrow { self.micros } else { 0 };
        if self.months > 0 && (self.days < 0 || self.days == 0 && micros < 0) {
            self.days += 30;
            self.months -= 1;
        } else if self.months < 0 && (self.days > 0 || self.days == 0 && micros > 0) {
            self.days -= 30;
            self.months += 1;
        }
    }
}

/// 24 hours become a day; signs are brought together.
pub fn justify_hours(i: Interval) -> Result<Interval> {
    let mut parts = WideParts::of(i);
    parts.hours_to_days();
    parts.narrow()
}

/// 30 days become a month.
pub fn justify_days(i: Interval) -> Result<Interval> {
    let mut parts = WideParts::of(i);
    parts.days_to_months();
    parts.align_days(false);
    parts.narrow()
}

/// Both, with one sign throughout.
pub fn justify(i: Interval) -> Result<Interval> {
    let mut parts = WideParts::of(i);
    parts.days += parts.micros / MICROS_PER_DAY;
    parts.micros %= MICROS_PER_DAY;
    parts.days_to_months();
    parts.align_days(true);
    parts.align_time();
    parts.narrow()
}

/// `age(a, b)`: years, months and days as people count them.
pub fn age(a: i64, b: i64) -> Result<Interval> {
    age_on_clocks((a, 0), (b, 0))
}

/// `age(a, b)` of two moments, each with the seconds east of Greenwich of the clock it is read from.
///
/// Infinity counts as the last moment there is, as in PostgreSQL 15; its opposite is no moment.
pub fn age_on_clocks(a: (i64, i64), b: (i64, i64)) -> Result<Interval> {
    let read = |(moment, offset): (i64, i64)| {
        let rest = moment.rem_euclid(MICROS_PER_DAY) + offset * MICROS_PER_SECOND;
        let days = moment.div_euclid(MICROS_PER_DAY) + rest.div_euclid(MICROS_PER_DAY);
        (civil_from_days(days), rest.rem_euclid(MICROS_PER_DAY))
    };
    if a.0 == i64::MIN || b.0 == i64::MIN {
        return Err(timestamp_out_of_range());
    }
    let negative = a.0 < b.0;
    let ((late, late_micros), (early, early_micros)) = match negative {
        true => (read(b), read(a)),
        false => (read(a), read(b)),
    };
    let mut micros = late_micros - early_micros;
    let mut days = i64::from(late.day) - i64::from(early.day);
    let mut months = (late.year - early.year) * 12 + i64::from(late.month) - i64::from(early.month);
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        // Borrow the length of the month the count starts in.
        days += i64::from(days_in_month(early.year, early.month));
        months -= 1;
    }
    let result = Interval { months: months as i32, days: days as i32, microseconds: micros };
    if negative { negate(result) } else { Ok(result) }
}

/// A field of a date or time (`extract`, `date_part`, `date_trunc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Isoyear,
    Dow,
    Isodow,
    Doy,
    Julian,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

/// The field a name stands for.
pub fn field(name: &str) -> Option<Field> {
    use Field::*;
    Some(match name.trim().to_ascii_lowercase().as_str() {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Microseconds,
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Milliseconds,
        "second" | "seconds" | "s" | "sec" | "secs" => Second,
        "minute" | "minutes" | "m" | "min" | "mins" => Minute,
        "hour" | "hours" | "h" | "hr" | "hrs" => Hour,
        "day" | "days" | "d" => Day,
        "week" | "weeks" | "w" => Week,
        "month" | "months" | "mon" | "mons" => Month,
        "quarter" | "qtr" => Quarter,
        "year" | "years" | "y" | "yr" | "yrs" => Year,
        "decade" | "decades" | "dec" | "decs" => Decade,
        "century" | "centuries" | "c" | "cent" => Century,
        "millennium" | "millennia" | "mil" | "mils" => Millennium,
        "isoyear" => Isoyear,
        "dow" => Dow,
        "isodow" => Isodow,
        "doy" => Doy,
        "julian" | "j" | "jd" => Julian,
        "epoch" => Epoch,
        "timezone" => Timezone,
        "timezone_h" | "timezone_hour" => TimezoneHour,
        "timezone_m" | "timezone_minute" => TimezoneMinute,
        _ => return None,
    })
}

pub fn unrecognized(name: &str, type_name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unit \"{}\" not recognized for type {type_name}", name.to_ascii_lowercase()),
    )
}

pub fn unsupported(name: &str, type_name: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("unit \"{}\" not supported for type {type_name}", name.to_ascii_lowercase()),
    )
}

/// Century or millennium of a year, with no year zero.
fn grouped(year: i64, size: i64) -> i64 {
    if year > 0 { (year + size - 1) / size } else { -((size - 1 - (year - 1)) / size) }
}

fn decimal(micros: i128, scale: u16) -> Numeric {
    Numeric::from_scaled_i128(micros, scale)
}

/// A field of a clock reading, in microseconds of the day (or of an interval's time part).
fn time_field(field: Field, micros: i64) -> Option<Numeric> {
    let seconds = micros % MICROS_PER_MINUTE;
    Some(match field {
        Field::Microseconds => Numeric::from(seconds),
        Field::Milliseconds => decimal(i128::from(seconds), 3),
        Field::Second => decimal(i128::from(seconds), 6),
        Field::Minute => Numeric::from(micros / MICROS_PER_MINUTE % 60),
        Field::Hour => Numeric::from(micros / MICROS_PER_HOUR),
        _ => return None,
    })
}

/// A field of a displacement, given in seconds to the east.
fn zone_field(field: Field, offset: i64) -> Option<Numeric> {
    Some(Numeric::from(match field {
        Field::Timezone => offset,
        Field::TimezoneHour => offset / 3600,
        Field::TimezoneMinute => offset / 60 % 60,
        _ => return None,
    }))
}

/// A field of a local timestamp. `offset` is the zone's, if there is one.
pub fn extract_timestamp(
    name: &str,
    local: i64,
    offset: Option<i64>,
    type_name: &str,
) -> Result<Option<Numeric>> {
    let field = field(name).ok_or_else(|| unrecognized(name, type_name))?;
    if is_infinite(local) {
        // Fields that grow with time are infinite; those that cycle are NULL.
        let grows = matches!(
            field,
            Field::Year
                | Field::Decade
                | Field::Century
                | Field::Millennium
                | Field::Julian
                | Field::Isoyear
                | Field::Epoch
        );
        return Ok(grows.then_some(if local > 0 { Numeric::INFINITY } else { Numeric::NEGATIVE_INFINITY }));
    }
    let day = local.div_euclid(MICROS_PER_DAY);
    let clock = local.rem_euclid(MICROS_PER_DAY);
    let civil = civil_from_days(day);
    // There is no year zero: 1 BC is -1.
    let shown_year = |year: i64| if year > 0 { year } else { year - 1 };
    if let Some(value) = time_field(field, clock) {
        return Ok(Some(value));
    }
    Ok(Some(match field {
        Field::Day => Numeric::from(i64::from(civil.day)),
        Field::Month => Numeric::from(i64::from(civil.month)),
        Field::Quarter => Numeric::from(i64::from((civil.month - 1) / 3 + 1)),
        Field::Week => Numeric::from(iso_week(day).1),
        Field::Year => Numeric::from(shown_year(civil.year)),
        Field::Isoyear => Numeric::from(shown_year(iso_week(day).0)),
        Field::Decade => Numeric::from(civil.year.div_euclid(10)),
        Field::Century => Numeric::from(grouped(civil.year, 100)),
        Field::Millennium => Numeric::from(grouped(civil.year, 1000)),
        Field::Dow => Numeric::from(day_of_week(day)),
        Field::Isodow => Numeric::from((day_of_week(day) + 6) % 7 + 1),
        Field::Doy => Numeric::from(day - days_from_civil(civil.year, 1, 1) + 1),
        Field::Julian => {
            let fraction = Numeric::from(clock).div(&Numeric::from(MICROS_PER_DAY))?;
            Numeric::from(day + 2_451_545).add(&fraction)?
        }
        Field::Epoch => {
            let instant =
                i128::from(local) + i128::from(EPOCH_MICROS) - i128::from(offset.unwrap_or(0)) * 1_000_000;
            decimal(instant, 6)
        }
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => {
            let value = offset.and_then(|offset| zone_field(field, offset));
            value.ok_or_else(|| unsupported(name, type_name))?
        }
        _ => return Err(unsupported(name, type_name)),
    }))
}

/// A field of a date: only those of the calendar.
pub fn extract_date(name: &str, days: i32) -> Result<Option<Numeric>> {
    let type_name = "date";
    let which = field(name).ok_or_else(|| unrecognized(name, type_name))?;
    if matches!(
        which,
        Field::Microseconds
            | Field::Milliseconds
            | Field::Second
            | Field::Minute
            | Field::Hour
            | Field::Timezone
            | Field::TimezoneHour
            | Field::TimezoneMinute
    ) {
        return Err(unsupported(name, type_name));
    }
    let local = match days {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        days if which == Field::Julian => return Ok(Some(Numeric::from(i64::from(days) + 2_451_545))),
        days if which == Field::Epoch => {
            return Ok(Some(Numeric::from((i64::from(days) + super::EPOCH_DAYS) * 86_400)));
        }
        days => match i64::from(days).checked_mul(MICROS_PER_DAY) {
            Some(local) => local,
            // Beyond timestamps, dates still have a calendar.
            None => return Err(timestamp_out_of_range()),
        },
    };
    extract_timestamp(name, local, None, type_name)
}

/// A field of a time of day.
pub fn extract_time(name: &str, micros: i64) -> Result<Numeric> {
    let type_name = "time without time zone";
    let which = field(name).ok_or_else(|| unrecognized(name, type_name))?;
    if which == Field::Epoch {
        return Ok(decimal(i128::from(micros), 6));
    }
    time_field(which, micros).ok_or_else(|| unsupported(name, type_name))
}

/// A field of a time of day with time zone.
pub fn extract_timetz(name: &str, time: TimeTz) -> Result<Numeric> {
    let type_name = "time with time zone";
    let which = field(name).ok_or_else(|| unrecognized(name, type_name))?;
    if let Some(value) = zone_field(which, time.east()) {
        return Ok(value);
    }
    if which == Field::Epoch {
        return Ok(decimal(i128::from(time.greenwich()), 6));
    }
    time_field(which, time.microseconds()).ok_or_else(|| unsupported(name, type_name))
}

/// A field of an interval.
pub fn extract_interval(name: &str, i: Interval) -> Result<Numeric> {
    let which = field(name).ok_or_else(|| unrecognized(name, "interval"))?;
    if let Some(value) = time_field(which, i.microseconds) {
        return Ok(value);
    }
    let (years, months) = (i64::from(i.months / 12), i64::from(i.months % 12));
    Ok(match which {
        Field::Day => Numeric::from(i64::from(i.days)),
        Field::Month => Numeric::from(months),
        Field::Quarter => Numeric::from(months / 3 + 1),
        Field::Year => Numeric::from(years),
        Field::Decade => Numeric::from(years / 10),
        Field::Century => Numeric::from(years / 100),
        Field::Millennium => Numeric::from(years / 1000),
        Field::Epoch => {
            // A year counts 365.25 days, a month 30.
            let quarter_days = 1461 * i128::from(years) + 120 * i128::from(months) + 4 * i128::from(i.days);
            decimal(quarter_days * 21_600 * 1_000_000 + i128::from(i.microseconds), 6)
        }
        _ => return Err(unsupported(name, "interval")),
    })
}

/// Fields that can be extracted and are no unit of length: date_trunc does not know them.
fn reads_only(field: Field) -> bool {
    matches!(field, Field::Dow | Field::Isodow | Field::Doy | Field::Isoyear | Field::Julian | Field::Epoch)
}

/// `date_trunc` of a local timestamp.
pub fn truncate_timestamp(name: &str, local: i64, type_name: &str) -> Result<i64> {
    let which = field(name).ok_or_else(|| unrecognized(name, type_name))?;
    if is_infinite(local) {
        return Ok(local);
    }
    let down = |unit: i64| local - local.rem_euclid(unit);
    let day = local.div_euclid(MICROS_PER_DAY);
    let civil = civil_from_days(day);
    let month_start = |year: i64, month: u32| check_timestamp(days_from_civil(year, month, 1), 0);
    match which {
        Field::Microseconds => Ok(local),
        Field::Milliseconds => Ok(down(1000)),
        Field::Second => Ok(down(MICROS_PER_SECOND)),
        Field::Minute => Ok(down(MICROS_PER_MINUTE)),
        Field::Hour => Ok(down(MICROS_PER_HOUR)),
        Field::Day => Ok(down(MICROS_PER_DAY)),
        Field::Week => check_timestamp(day - (day_of_week(day) + 6) % 7, 0),
        Field::Month => month_start(civil.year, civil.month),
        Field::Quarter => month_start(civil.year, (civil.month - 1) / 3 * 3 + 1),
        Field::Year => month_start(civil.year, 1),
        Field::Decade => month_start(civil.year.div_euclid(10) * 10, 1),
        // The first century began in year 1.
        Field::Century => month_start((civil.year - 1).div_euclid(100) * 100 + 1, 1),
        Field::Millennium => month_start((civil.year - 1).div_euclid(1000) * 1000 + 1, 1),
        other if reads_only(other) => Err(unrecognized(name, type_name)),
        _ => Err(unsupported(name, type_name)),
    }
}

/// `date_trunc` of an interval.
pub fn truncate_interval(name: &str, i: Interval) -> Result<Interval> {
    let which = field(name).ok_or_else(|| unrecognized(name, "interval"))?;
    let down = |unit: i64| i.microseconds - i.microseconds % unit;
    let months = |unit: i32| Interval { months: i.months - i.months % unit, days: 0, microseconds: 0 };
    Ok(match which {
        Field::Microseconds => i,
        Field::Milliseconds => Interval { microseconds: down(1000), ..i },
        Field::Second => Interval { microseconds: down(MICROS_PER_SECOND), ..i },
        Field::Minute => Interval { microseconds: down(MICROS_PER_MINUTE), ..i },
        Field::Hour => Interval { microseconds: down(MICROS_PER_HOUR), ..i },
        Field::Day => Interval { microseconds: 0, ..i },
        Field::Month => months(1),
        Field::Quarter => months(3),
        Field::Year => months(12),
        Field::Decade => months(120),
        Field::Century => months(1200),
        Field::Millennium => months(12_000),
        other if reads_only(other) => return Err(unrecognized(name, "interval")),
        _ => {
            let error = unsupported(name, "interval");
            return Err(if which == Field::Week {
                error.with_detail("Months usually have fractional weeks.")
            } else {
                error
            });
        }
    })
}
