//! Date and time functions and operators.

use super::args::*;
use super::convert::instant;
use super::number::series::{Rows, whole};
use super::{Eval, FunctionContext, SetPage};
use crate::compare::compare;
use crate::datetime::arithmetic as calendar;
use crate::datetime::{
    self, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, check_date, days_from_civil, days_in_month,
    zone,
};
use crate::datum::{Datum, Interval};
use crate::error::{Result, SqlError, SqlState};
use crate::io::general_text;
use crate::numeric::Numeric;
use crate::types::{Oid, Type};

const TIMESTAMP: &str = "timestamp without time zone";
const TIMESTAMPTZ: &str = "timestamp with time zone";

fn clock(ctx: &FunctionContext<'_>) -> i64 {
    ctx.session.clock().unwrap_or(ctx.now)
}

fn date_plus_days(days: i32, more: i64) -> Result<Datum> {
    if days == i32::MAX || days == i32::MIN {
        return Ok(Datum::Date(days));
    }
    check_date(i64::from(days) + more).map(Datum::Date)
}

fn optional(value: Option<Numeric>) -> Datum {
    value.map_or(Datum::Null, Datum::Numeric)
}

/// date_part answers in double precision what extract answers exactly.
fn double(value: Option<Numeric>) -> Datum {
    value.map_or(Datum::Null, |n| Datum::Float8(n.to_f64()))
}

fn timestamptz_field(ctx: &FunctionContext<'_>, v: &[Datum]) -> Result<Option<Numeric>> {
    let at = timestamptz(v, 1)?;
    let zone = &ctx.style().time_zone;
    let offset = zone::offset_at(zone, at);
    calendar::extract_timestamp(text(v, 0)?, zone::to_local(zone, at), Some(offset), TIMESTAMPTZ)
}

fn truncate_in(name: &str, at: i64, zone: &jiff::tz::TimeZone) -> Result<Datum> {
    if datetime::is_infinite(at) && calendar::field(name).is_none() {
        // timestamptz_trunc_zone answers infinity before it reads the unit.
        return Ok(Datum::TimestampTz(at));
    }
    let local = calendar::truncate_timestamp(name, zone::to_local(zone, at), TIMESTAMPTZ)?;
    Ok(Datum::TimestampTz(zone::to_instant(zone, local)))
}

fn field_out_of_range(kind: &str, shown: String) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("{kind} field value out of range: {shown}"))
}

fn make_date(year: i32, month: i32, day: i32) -> Result<i64> {
    let wrong = || field_out_of_range("date", format!("{year}-{month:02}-{day:02}"));
    // Negative years are BC; there is no year zero.
    let astronomical = if year < 0 { i64::from(year) + 1 } else { i64::from(year) };
    if year == 0
        || !(1..=12).contains(&month)
        || day < 1
        || day as u32 > days_in_month(astronomical, month as u32)
    {
        return Err(wrong());
    }
    let days = days_from_civil(astronomical, month as u32, day as u32);
    check_date(days).map_err(|_| {
        SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date out of range: {year}-{month:02}-{day:02}"),
        )
    })?;
    Ok(days)
}

fn make_time(hour: i32, minute: i32, second: f64) -> Result<i64> {
    let micros = (second * 1e6).round_ties_even();
    let total = i64::from(hour) * MICROS_PER_HOUR + i64::from(minute) * MICROS_PER_MINUTE + micros as i64;
    if !(0..=24).contains(&hour)
        || !(0..60).contains(&minute)
        || second.is_nan()
        || !(0.0..=60.0).contains(&second)
        || total > MICROS_PER_DAY
    {
        return Err(field_out_of_range("time", format!("{hour}:{minute:02}:{second:02}")));
    }
    Ok(total)
}

fn make_timestamp(v: &[Datum]) -> Result<i64> {
    let days = make_date(int4(v, 0)?, int4(v, 1)?, int4(v, 2)?)?;
    datetime::check_timestamp(days, make_time(int4(v, 3)?, int4(v, 4)?, float8(v, 5)?)?)
}

fn make_interval(v: &[Datum]) -> Result<Interval> {
    let wrong = calendar::interval_out_of_range;
    let seconds = (float8(v, 6)? * 1e6).round_ties_even();
    if !seconds.is_finite() {
        return Err(wrong());
    }
    Ok(Interval {
        months: int4(v, 0)?
            .checked_mul(12)
            .and_then(|m| m.checked_add(int4(v, 1).ok()?))
            .ok_or_else(wrong)?,
        days: int4(v, 2)?.checked_mul(7).and_then(|d| d.checked_add(int4(v, 3).ok()?)).ok_or_else(wrong)?,
        microseconds: (i64::from(int4(v, 4)?) * MICROS_PER_HOUR + i64::from(int4(v, 5)?) * MICROS_PER_MINUTE)
            .checked_add(seconds as i64)
            .filter(|_| seconds.abs() < 9.2e18)
            .ok_or_else(wrong)?,
    })
}

/// A zone given as an interval: the seconds of its time part, east.
fn interval_east(ctx: &FunctionContext<'_>, i: Interval) -> Result<i64> {
    if i.months != 0 || i.days != 0 {
        let shown = crate::io::to_text(&interval_datum(i), Type::INTERVAL, ctx);
        return Err(invalid_parameter(format!(
            "interval time zone \"{shown}\" must not include months or days"
        )));
    }
    Ok(i.microseconds / datetime::MICROS_PER_SECOND)
}

/// The zone given as an interval.
fn interval_zone(ctx: &FunctionContext<'_>, i: Interval) -> Result<jiff::tz::TimeZone> {
    let east = i32::try_from(interval_east(ctx, i)?).unwrap_or(i32::MAX);
    jiff::tz::Offset::from_seconds(east)
        .map(jiff::tz::TimeZone::fixed)
        .map_err(|_| invalid_parameter("interval time zone out of range"))
}

fn in_zone(zone: &jiff::tz::TimeZone, value: &Datum) -> Result<Datum> {
    Ok(match value {
        Datum::Timestamp(local) => Datum::TimestampTz(zone::to_instant(zone, *local)),
        Datum::TimestampTz(at) => Datum::Timestamp(zone::to_local(zone, *at)),
        _ => return Err(SqlError::internal("timezone() of a value that is no timestamp")),
    })
}

/// `date_bin`: the start of the stride that holds `at`, counted from `origin`.
fn bin(stride: Interval, at: i64, origin: i64) -> Result<i64> {
    if datetime::is_infinite(at) {
        return Ok(at);
    }
    if datetime::is_infinite(origin) {
        return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "origin out of range"));
    }
    if stride.months != 0 {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let out = calendar::interval_out_of_range;
    let width = i64::from(stride.days)
        .checked_mul(MICROS_PER_DAY)
        .and_then(|d| d.checked_add(stride.microseconds))
        .ok_or_else(out)?;
    if width <= 0 {
        return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "stride must be greater than zero"));
    }
    let offset = at.checked_sub(origin).ok_or_else(out)?;
    let start = offset
        .div_euclid(width)
        .checked_mul(width)
        .and_then(|steps| origin.checked_add(steps))
        .ok_or_else(out)?;
    if datetime::in_range(start) { Ok(start) } else { Err(datetime::timestamp_out_of_range()) }
}

/// An infinite timestamp is answered before the zone is looked at.
fn in_named_zone(v: &[Datum]) -> Result<Datum> {
    match any(v, 1)? {
        Datum::Timestamp(t) if datetime::is_infinite(*t) => Ok(Datum::TimestampTz(*t)),
        Datum::TimestampTz(t) if datetime::is_infinite(*t) => Ok(Datum::Timestamp(*t)),
        value => match zone::abbreviation(text(v, 0)?.trim()) {
            Some(zone::Abbreviation::Moving(name, zone)) => in_moving_zone(name, &zone, value),
            _ => in_zone(&zone::lookup(text(v, 0)?)?, value),
        },
    }
}

/// AT TIME ZONE with an abbreviation whose meaning changed with time.
fn in_moving_zone(name: &str, zone: &jiff::tz::TimeZone, value: &Datum) -> Result<Datum> {
    let seconds = match value {
        Datum::Timestamp(local) => zone::offset_of_abbreviation(name, zone, *local),
        Datum::TimestampTz(at) => {
            zone::offset_of_abbreviation_at(name, zone, *at).unwrap_or_else(|| zone::offset_at(zone, *at))
        }
        _ => return in_zone(zone, value),
    };
    let fixed =
        jiff::tz::Offset::from_seconds(i32::try_from(seconds).unwrap_or(0)).map(jiff::tz::TimeZone::fixed);
    in_zone(fixed.as_ref().unwrap_or(zone), value)
}

/// `to_timestamp(seconds)`. PostgreSQL counts from its own epoch before it multiplies and rounds.
fn float8_timestamptz(seconds: f64) -> Result<Datum> {
    let out_of_range = |message: String| Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message));
    if seconds.is_nan() {
        return out_of_range("timestamp cannot be NaN".to_owned());
    }
    if seconds.is_infinite() {
        return Ok(Datum::TimestampTz(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
    }
    let epoch = (datetime::EPOCH_MICROS / datetime::MICROS_PER_SECOND) as f64;
    let micros = ((seconds - epoch) * 1e6).round_ties_even();
    // What is beyond all numbers saturates.
    match micros as i64 {
        micros if datetime::in_range(micros) => Ok(Datum::TimestampTz(micros)),
        _ => out_of_range(format!("timestamp out of range: \"{}\"", general_text(seconds))),
    }
}

/// Whether two periods overlap (SQL's OVERLAPS): each is a start and an end, in either order,
/// and includes its start but not its end unless they coincide.
fn overlaps(v: &[Datum]) -> Result<Datum> {
    let order = |a: &Datum, b: &Datum| -> (Datum, Datum) {
        if a.is_null() || (!b.is_null() && compare(a, b).is_gt()) {
            (b.clone(), a.clone())
        } else {
            (a.clone(), b.clone())
        }
    };
    let [a, b, c, d] = v else { return Err(SqlError::internal("overlaps takes four arguments")) };
    let ((s1, e1), (s2, e2)) = (order(a, b), order(c, d));
    if s1.is_null() || s2.is_null() {
        return Ok(Datum::Null);
    }
    let sequence = compare(&s1, &s2);
    let (first_end, second_start, second_end) = if sequence.is_gt() { (e2, s1, e1) } else { (e1, s2, e2) };
    let overlap = sequence.is_eq() || compare(&second_start, &first_end).is_lt();
    // An end that is not known leaves open what it decides.
    let open = first_end.is_null() || second_end.is_null() && (sequence.is_eq() || !overlap);
    Ok(if open { Datum::Null } else { Datum::Bool(overlap) })
}

/// The same where a period may be a start and its length.
fn overlaps_with_lengths(ctx: &FunctionContext<'_>, v: &[Datum]) -> Result<Datum> {
    let mut ends = v.to_vec();
    for pair in ends.chunks_exact_mut(2) {
        let Datum::Interval(length) = &pair[1] else { continue };
        pair[1] = match pair[0] {
            Datum::Time(at) => {
                Datum::Time((at + length.microseconds % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY))
            }
            Datum::Timestamp(at) => Datum::Timestamp(calendar::add_to_timestamp(at, **length)?),
            Datum::TimestampTz(at) => {
                Datum::TimestampTz(calendar::add_to_timestamptz(at, **length, &ctx.style().time_zone)?)
            }
            _ => Datum::Null,
        };
    }
    overlaps(&ends)
}

/// Sleeps until an instant (pg_sleep_for, pg_sleep_until).
fn sleep_until(ctx: &FunctionContext<'_>, instant: i64) -> Result<Datum> {
    let seconds = match instant {
        i64::MAX => f64::INFINITY,
        i64::MIN => 0.0,
        instant => instant.saturating_sub(clock(ctx)) as f64 / 1e6,
    };
    ctx.session.call("pg_sleep", &[Datum::Float8(seconds)])
}

fn generate(
    from: i64,
    to: i64,
    step: Interval,
    add: impl Fn(i64, Interval) -> Result<i64>,
    most: usize,
    wrap: fn(i64) -> Datum,
) -> Result<Rows> {
    let direction = crate::compare::interval_value(&step).signum();
    if direction == 0 {
        return Err(invalid_parameter("step size cannot equal zero"));
    }
    let mut rows = Vec::new();
    let mut at = from;
    while rows.len() < most && ((direction > 0 && at <= to) || (direction < 0 && at >= to)) {
        crate::interrupt::steps(super::number::series::STEPS_PER_ROW)?;
        rows.push(vec![wrap(at)]);
        // The value behind the last that somebody wants may be out of range.
        if rows.len() < most {
            at = add(at, step)?;
        }
    }
    Ok(rows)
}

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("now", |c, _| Ok(Datum::TimestampTz(c.now))),
    ("statement_timestamp", |c, _| Ok(Datum::TimestampTz(c.now))),
    ("clock_timestamp", |c, _| Ok(Datum::TimestampTz(clock(c)))),
    ("timeofday", |c, _| {
        let mut out = String::new();
        let _ = datetime::format_timestamptz(clock(c), &c.style().time_zone, &mut out);
        Ok(text_datum(out))
    }),
    ("current_date", |c, _| {
        Ok(Datum::Date(zone::to_local(&c.style().time_zone, c.now).div_euclid(MICROS_PER_DAY) as i32))
    }),
    ("localtimestamp", |c, _| Ok(Datum::Timestamp(zone::to_local(&c.style().time_zone, c.now)))),
    ("localtime", |c, _| {
        Ok(Datum::Time(zone::to_local(&c.style().time_zone, c.now).rem_euclid(MICROS_PER_DAY)))
    }),
    ("date_pli", |_, v| date_plus_days(date(v, 0)?, i64::from(int4(v, 1)?))),
    ("date_mii", |_, v| date_plus_days(date(v, 0)?, -i64::from(int4(v, 1)?))),
    ("sql_2550", |_, v| date_plus_days(date(v, 1)?, i64::from(int4(v, 0)?))),
    ("date_mi", |_, v| {
        let (a, b) = (date(v, 0)?, date(v, 1)?);
        if [a, b].iter().any(|d| *d == i32::MAX || *d == i32::MIN) {
            return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "cannot subtract infinite dates"));
        }
        Ok(Datum::Int4(a - b))
    }),
    ("date_pl_interval", |_, v| {
        Ok(Datum::Timestamp(calendar::add_to_timestamp(
            datetime::date_to_timestamp(date(v, 0)?)?,
            interval(v, 1)?,
        )?))
    }),
    ("sql_2546", |_, v| {
        Ok(Datum::Timestamp(calendar::add_to_timestamp(
            datetime::date_to_timestamp(date(v, 1)?)?,
            interval(v, 0)?,
        )?))
    }),
    ("date_mi_interval", |_, v| {
        Ok(Datum::Timestamp(calendar::add_to_timestamp(
            datetime::date_to_timestamp(date(v, 0)?)?,
            calendar::negate(interval(v, 1)?)?,
        )?))
    }),
    ("sql_1296", |_, v| {
        let start = datetime::date_to_timestamp(date(v, 1)?)?;
        Ok(Datum::Timestamp(if datetime::is_infinite(start) { start } else { start + time(v, 0)? }))
    }),
    ("sql_1298", |_, v| Ok(Datum::TimestampTz(timetz(v, 0)?.on(datetime::date_to_timestamp(date(v, 1)?)?)?))),
    ("timestamp_pl_interval", |_, v| {
        Ok(Datum::Timestamp(calendar::add_to_timestamp(timestamp(v, 0)?, interval(v, 1)?)?))
    }),
    ("timestamp_mi_interval", |_, v| {
        Ok(Datum::Timestamp(calendar::add_to_timestamp(
            timestamp(v, 0)?,
            calendar::negate(interval(v, 1)?)?,
        )?))
    }),
    ("sql_2548", |_, v| Ok(Datum::Timestamp(calendar::add_to_timestamp(timestamp(v, 1)?, interval(v, 0)?)?))),
    ("timestamptz_pl_interval", |c, v| {
        Ok(Datum::TimestampTz(calendar::add_to_timestamptz(
            timestamptz(v, 0)?,
            interval(v, 1)?,
            &c.style().time_zone,
        )?))
    }),
    ("timestamptz_mi_interval", |c, v| {
        let back = calendar::negate(interval(v, 1)?)?;
        Ok(Datum::TimestampTz(calendar::add_to_timestamptz(timestamptz(v, 0)?, back, &c.style().time_zone)?))
    }),
    ("sql_2549", |c, v| {
        Ok(Datum::TimestampTz(calendar::add_to_timestamptz(
            timestamptz(v, 1)?,
            interval(v, 0)?,
            &c.style().time_zone,
        )?))
    }),
    // One function for timestamps with and without time zone.
    ("timestamp_mi", |_, v| match (any(v, 0)?, any(v, 1)?) {
        (Datum::TimestampTz(a), Datum::TimestampTz(b)) | (Datum::Timestamp(a), Datum::Timestamp(b)) => {
            Ok(interval_datum(calendar::subtract_timestamps(*a, *b)?))
        }
        _ => Err(SqlError::internal("timestamp_mi of values that are no timestamps")),
    }),
    ("timestamp_age", |_, v| Ok(interval_datum(calendar::age(timestamp(v, 0)?, timestamp(v, 1)?)?))),
    ("timestamptz_age", |c, v| {
        let on_clock = |at| (at, zone::offset_at(&c.style().time_zone, at));
        let (a, b) = (on_clock(timestamptz(v, 0)?), on_clock(timestamptz(v, 1)?));
        Ok(interval_datum(calendar::age_on_clocks(a, b)?))
    }),
    ("sql_2059", |c, v| {
        let today = zone::to_local(&c.style().time_zone, c.now);
        Ok(interval_datum(calendar::age(today - today.rem_euclid(MICROS_PER_DAY), timestamp(v, 0)?)?))
    }),
    ("sql_1386", |c, v| {
        let zone = &c.style().time_zone;
        let on_clock = |at| (at, zone::offset_at(zone, at));
        let today = zone::to_local(zone, c.now);
        let midnight = zone::to_instant(zone, today - today.rem_euclid(MICROS_PER_DAY));
        Ok(interval_datum(calendar::age_on_clocks(on_clock(midnight), on_clock(timestamptz(v, 0)?))?))
    }),
    ("time_pl_interval", |_, v| {
        Ok(Datum::Time(
            (time(v, 0)? + interval(v, 1)?.microseconds % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY),
        ))
    }),
    ("sql_1848", |_, v| {
        Ok(Datum::Time(
            (time(v, 1)? + interval(v, 0)?.microseconds % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY),
        ))
    }),
    ("time_mi_interval", |_, v| {
        Ok(Datum::Time(
            (time(v, 0)? - interval(v, 1)?.microseconds % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY),
        ))
    }),
    ("timetz_pl_interval", |_, v| Ok(Datum::TimeTz(timetz(v, 0)?.plus(interval(v, 1)?.microseconds)?))),
    ("sql_2547", |_, v| Ok(Datum::TimeTz(timetz(v, 1)?.plus(interval(v, 0)?.microseconds)?))),
    ("timetz_mi_interval", |_, v| {
        let back = -(interval(v, 1)?.microseconds % MICROS_PER_DAY);
        Ok(Datum::TimeTz(timetz(v, 0)?.plus(back)?))
    }),
    ("time_mi_time", |_, v| {
        Ok(interval_datum(Interval { months: 0, days: 0, microseconds: time(v, 0)? - time(v, 1)? }))
    }),
    ("interval_pl", |_, v| Ok(interval_datum(calendar::add_intervals(interval(v, 0)?, interval(v, 1)?)?))),
    ("interval_mi", |_, v| {
        Ok(interval_datum(calendar::add_intervals(interval(v, 0)?, calendar::negate(interval(v, 1)?)?)?))
    }),
    ("interval_um", |_, v| Ok(interval_datum(calendar::negate(interval(v, 0)?)?))),
    ("interval_mul", |_, v| Ok(interval_datum(calendar::multiply(interval(v, 0)?, float8(v, 1)?)?))),
    ("mul_d_interval", |_, v| Ok(interval_datum(calendar::multiply(interval(v, 1)?, float8(v, 0)?)?))),
    ("interval_div", |_, v| Ok(interval_datum(calendar::divide(interval(v, 0)?, float8(v, 1)?)?))),
    ("interval_justify_hours", |_, v| Ok(interval_datum(calendar::justify_hours(interval(v, 0)?)?))),
    ("interval_justify_days", |_, v| Ok(interval_datum(calendar::justify_days(interval(v, 0)?)?))),
    ("interval_justify_interval", |_, v| Ok(interval_datum(calendar::justify(interval(v, 0)?)?))),
    ("extract_date", |_, v| Ok(optional(calendar::extract_date(text(v, 0)?, date(v, 1)?)?))),
    ("extract_time", |_, v| Ok(Datum::Numeric(calendar::extract_time(text(v, 0)?, time(v, 1)?)?))),
    ("extract_timetz", |_, v| Ok(Datum::Numeric(calendar::extract_timetz(text(v, 0)?, timetz(v, 1)?)?))),
    ("extract_timestamp", |_, v| {
        Ok(optional(calendar::extract_timestamp(text(v, 0)?, timestamp(v, 1)?, None, TIMESTAMP)?))
    }),
    ("extract_timestamptz", |c, v| Ok(optional(timestamptz_field(c, v)?))),
    ("extract_interval", |_, v| {
        Ok(Datum::Numeric(calendar::extract_interval(text(v, 0)?, interval(v, 1)?)?))
    }),
    ("sql_1384", |_, v| {
        Ok(double(calendar::extract_timestamp(
            text(v, 0)?,
            datetime::date_to_timestamp(date(v, 1)?)?,
            None,
            TIMESTAMP,
        )?))
    }),
    ("time_part", |_, v| Ok(double(Some(calendar::extract_time(text(v, 0)?, time(v, 1)?)?)))),
    ("timetz_part", |_, v| Ok(double(Some(calendar::extract_timetz(text(v, 0)?, timetz(v, 1)?)?)))),
    ("timestamp_part", |_, v| {
        Ok(double(calendar::extract_timestamp(text(v, 0)?, timestamp(v, 1)?, None, TIMESTAMP)?))
    }),
    ("timestamptz_part", |c, v| Ok(double(timestamptz_field(c, v)?))),
    ("interval_part", |_, v| Ok(double(Some(calendar::extract_interval(text(v, 0)?, interval(v, 1)?)?)))),
    ("timestamp_trunc", |_, v| {
        Ok(Datum::Timestamp(calendar::truncate_timestamp(text(v, 0)?, timestamp(v, 1)?, TIMESTAMP)?))
    }),
    ("timestamptz_trunc", |c, v| truncate_in(text(v, 0)?, timestamptz(v, 1)?, &c.style().time_zone)),
    ("timestamptz_trunc_zone", |_, v| {
        truncate_in(text(v, 0)?, timestamptz(v, 1)?, &zone::lookup(text(v, 2)?)?)
    }),
    ("interval_trunc", |_, v| Ok(interval_datum(calendar::truncate_interval(text(v, 0)?, interval(v, 1)?)?))),
    ("timestamp_bin", |_, v| Ok(Datum::Timestamp(bin(interval(v, 0)?, timestamp(v, 1)?, timestamp(v, 2)?)?))),
    ("timestamptz_bin", |_, v| {
        Ok(Datum::TimestampTz(bin(interval(v, 0)?, timestamptz(v, 1)?, timestamptz(v, 2)?)?))
    }),
    ("date_finite", |_, v| Ok(Datum::Bool(!matches!(date(v, 0)?, i32::MAX | i32::MIN)))),
    ("timestamp_finite", |_, v| match any(v, 0)? {
        Datum::Timestamp(t) | Datum::TimestampTz(t) => Ok(Datum::Bool(!datetime::is_infinite(*t))),
        _ => Err(SqlError::internal("isfinite of a value that is no timestamp")),
    }),
    ("interval_finite", |_, _| Ok(Datum::Bool(true))),
    ("make_date", |_, v| Ok(Datum::Date(make_date(int4(v, 0)?, int4(v, 1)?, int4(v, 2)?)? as i32))),
    ("make_time", |_, v| Ok(Datum::Time(make_time(int4(v, 0)?, int4(v, 1)?, float8(v, 2)?)?))),
    ("make_timestamp", |_, v| Ok(Datum::Timestamp(make_timestamp(v)?))),
    ("make_timestamptz", |c, v| Ok(Datum::TimestampTz(instant(c, make_timestamp(v)?)?))),
    ("make_timestamptz_at_timezone", |_, v| {
        let local = make_timestamp(v)?;
        let name = text(v, 6)?;
        // Here an offset counts to the east, unlike in AT TIME ZONE.
        if let Some(seconds) = datetime::parse_numeric_zone(name)? {
            return Ok(Datum::TimestampTz(local - seconds * datetime::MICROS_PER_SECOND));
        }
        if let Some(zone::Abbreviation::Moving(name, zone)) = zone::abbreviation(name) {
            return in_moving_zone(name, &zone, &Datum::Timestamp(local));
        }
        Ok(Datum::TimestampTz(zone::to_instant(&zone::lookup(name)?, local)))
    }),
    ("make_interval", |_, v| Ok(interval_datum(make_interval(v)?))),
    ("timestamp_zone", |_, v| in_named_zone(v)),
    ("timestamptz_zone", |_, v| in_named_zone(v)),
    ("timestamp_izone", |c, v| in_zone(&interval_zone(c, interval(v, 0)?)?, any(v, 1)?)),
    ("timestamptz_izone", |c, v| in_zone(&interval_zone(c, interval(v, 0)?)?, any(v, 1)?)),
    ("timetz_zone", |c, v| Ok(Datum::TimeTz(timetz(v, 1)?.at_zone(text(v, 0)?, c.now)?))),
    ("timetz_izone", |c, v| Ok(Datum::TimeTz(timetz(v, 1)?.at_offset(interval_east(c, interval(v, 0)?)?)?))),
    ("float8_timestamptz", |_, v| float8_timestamptz(float8(v, 0)?)),
    ("overlaps_timestamp", |_, v| overlaps(v)),
    ("overlaps_time", |_, v| overlaps(v)),
    ("overlaps_timetz", |_, v| overlaps(v)),
    ("sql_1305", overlaps_with_lengths),
    ("sql_1306", overlaps_with_lengths),
    ("sql_1307", overlaps_with_lengths),
    ("sql_1309", overlaps_with_lengths),
    ("sql_1310", overlaps_with_lengths),
    ("sql_1311", overlaps_with_lengths),
    ("sql_2042", overlaps_with_lengths),
    ("sql_2043", overlaps_with_lengths),
    ("sql_2044", overlaps_with_lengths),
    ("sql_3935", |c, v| {
        sleep_until(c, calendar::add_to_timestamptz(clock(c), interval(v, 0)?, &c.style().time_zone)?)
    }),
    ("sql_3936", |c, v| sleep_until(c, timestamptz(v, 0)?)),
    ("timestamp_to_char", |c, v| {
        let text = datetime::template::format_timestamp(timestamp(v, 0)?, text(v, 1)?, None, c.style())?;
        Ok(text.map_or(Datum::Null, text_datum))
    }),
    ("timestamptz_to_char", |c, v| {
        let at = timestamptz(v, 0)?;
        let local = zone::to_local(&c.style().time_zone, at);
        let text = datetime::template::format_timestamp(local, text(v, 1)?, Some(at), c.style())?;
        Ok(text.map_or(Datum::Null, text_datum))
    }),
    ("interval_to_char", |c, v| {
        let text = datetime::template::format_interval(interval(v, 0)?, text(v, 1)?, c.style())?;
        Ok(text_datum(text))
    }),
    ("to_date", |_, v| {
        let at = datetime::template_input::parse(text(v, 0)?, text(v, 1)?)?;
        let date = check_date(at.days).map_err(|_| {
            let message = format!("date out of range: \"{}\"", text(v, 0).unwrap_or_default());
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
        })?;
        Ok(Datum::Date(date))
    }),
    ("to_timestamp", |c, v| {
        let at = datetime::template_input::parse(text(v, 0)?, text(v, 1)?)?;
        let local = datetime::check_timestamp(at.days, at.clock)?;
        let found = match at.offset {
            Some(seconds) => local - seconds * datetime::MICROS_PER_SECOND,
            None => instant(c, local)?,
        };
        let typmod = at.precision.unwrap_or(-1);
        crate::typmod::coerce_typmod(Datum::TimestampTz(found), Type { oid: Oid::TIMESTAMPTZ, typmod }, true)
    }),
];

pub(super) const SETS: &[(&str, super::SetEval)] = &[
    ("generate_series_timestamp", |c, v| whole(TIMESTAMPS, c, v)),
    ("generate_series_timestamptz", |c, v| whole(TIMESTAMPTZS, c, v)),
];

const TIMESTAMPS: SetPage = |_, v, most| {
    let (from, to, step) = (timestamp(v, 0)?, timestamp(v, 1)?, interval(v, 2)?);
    generate(from, to, step, calendar::add_to_timestamp, most, Datum::Timestamp)
};

const TIMESTAMPTZS: SetPage = |c, v, most| {
    let zone = &c.style().time_zone;
    let add = |at, step| calendar::add_to_timestamptz(at, step, zone);
    generate(timestamptz(v, 0)?, timestamptz(v, 1)?, interval(v, 2)?, add, most, Datum::TimestampTz)
};

/// As [`super::number::series::PAGES`].
pub(super) const PAGES: &[(&str, SetPage)] =
    &[("generate_series_timestamp", TIMESTAMPS), ("generate_series_timestamptz", TIMESTAMPTZS)];
