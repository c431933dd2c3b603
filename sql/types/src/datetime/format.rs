//! Dates and times as text, in ISO style.

use std::fmt::{Result, Write};

use jiff::tz::TimeZone;

use super::offset::{format_offset, padded};
use super::zone;
use super::{
    Civil, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, civil_from_days, civil_from_micros,
};

fn civil_day(out: &mut dyn Write, date: Civil) -> Result {
    // Year 0 is 1 BC.
    padded(out, if date.year > 0 { date.year } else { 1 - date.year }, 4)?;
    out.write_str("-")?;
    padded(out, i64::from(date.month), 2)?;
    out.write_str("-")?;
    padded(out, i64::from(date.day), 2)
}

fn era(out: &mut dyn Write, date: Civil) -> Result {
    if date.year <= 0 { out.write_str(" BC") } else { Ok(()) }
}

/// `.123456` without trailing zeros; nothing for zero.
pub(super) fn fraction(out: &mut dyn Write, micros: i64) -> Result {
    if micros == 0 {
        return Ok(());
    }
    let (mut micros, mut width) = (micros, 6);
    while micros % 10 == 0 {
        micros /= 10;
        width -= 1;
    }
    out.write_str(".")?;
    padded(out, micros, width)
}

pub(super) fn clock(out: &mut dyn Write, micros_of_day: i64) -> Result {
    padded(out, micros_of_day / MICROS_PER_HOUR, 2)?;
    out.write_str(":")?;
    padded(out, micros_of_day / MICROS_PER_MINUTE % 60, 2)?;
    out.write_str(":")?;
    padded(out, micros_of_day / MICROS_PER_SECOND % 60, 2)?;
    fraction(out, micros_of_day % MICROS_PER_SECOND)
}

fn infinity(out: &mut dyn Write, positive: bool) -> Result {
    out.write_str(if positive { "infinity" } else { "-infinity" })
}

/// `2000-01-31`.
pub fn format_date(days: i32, out: &mut dyn Write) -> Result {
    if days == i32::MAX || days == i32::MIN {
        return infinity(out, days > 0);
    }
    let date = civil_from_days(i64::from(days));
    civil_day(out, date)?;
    era(out, date)
}

/// `04:05:06.789`.
pub fn format_time(micros: i64, out: &mut dyn Write) -> Result {
    clock(out, micros)
}

/// `04:05:06.789+02`.
pub fn format_timetz(time: super::TimeTz, out: &mut dyn Write) -> Result {
    clock(out, time.microseconds())?;
    format_offset(time.east(), out)
}

fn wall_clock(micros: i64, out: &mut dyn Write) -> std::result::Result<Civil, std::fmt::Error> {
    let civil = civil_from_micros(micros);
    civil_day(out, civil.date)?;
    out.write_str(" ")?;
    clock(out, micros.rem_euclid(super::MICROS_PER_DAY))?;
    Ok(civil.date)
}

/// `2000-01-31 04:05:06`.
pub fn format_timestamp(micros: i64, out: &mut dyn Write) -> Result {
    if super::is_infinite(micros) {
        return infinity(out, micros > 0);
    }
    let date = wall_clock(micros, out)?;
    era(out, date)
}

/// `2000-01-31 04:05:06+01`, in the zone given.
pub fn format_timestamptz(micros: i64, zone: &TimeZone, out: &mut dyn Write) -> Result {
    if super::is_infinite(micros) {
        return infinity(out, micros > 0);
    }
    let offset = zone::offset_at(zone, micros);
    let date = wall_clock(micros.saturating_add(offset * MICROS_PER_SECOND), out)?;
    format_offset(offset, out)?;
    era(out, date)
}
