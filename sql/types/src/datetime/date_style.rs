//! Dates and times as text, in the style that DateStyle asks for (chapter 8.5.2).

use std::fmt::{Result, Write};

use jiff::tz::TimeZone;

use super::format::{clock, format_date, format_timestamp, format_timestamptz};
use super::offset::{format_offset, padded};
use super::{Civil, MICROS_PER_DAY, MICROS_PER_SECOND, civil_from_days, civil_from_micros, zone};
use crate::style::{DateFormat, DateOrder, Style};

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Where a zone of a style without plain offsets takes its text from.
struct Zoned<'z> {
    zone: &'z TimeZone,
    instant: i64,
    offset: i64,
}

/// A `date`.
pub fn show_date(days: i32, style: &Style, out: &mut dyn Write) -> Result {
    if style.date_format == DateFormat::Iso || days == i32::MAX || days == i32::MIN {
        return format_date(days, out);
    }
    let date = civil_from_days(i64::from(days));
    day(date, style, out)?;
    era(date, out)
}

/// A `timestamp`.
pub fn show_timestamp(micros: i64, style: &Style, out: &mut dyn Write) -> Result {
    if style.date_format == DateFormat::Iso || super::is_infinite(micros) {
        return format_timestamp(micros, out);
    }
    moment(micros, None, style, out)
}

/// A `timestamptz`, in the session's zone.
pub fn show_timestamptz(micros: i64, style: &Style, out: &mut dyn Write) -> Result {
    if style.date_format == DateFormat::Iso || super::is_infinite(micros) {
        return format_timestamptz(micros, &style.time_zone, out);
    }
    let offset = zone::offset_at(&style.time_zone, micros);
    let zoned = Zoned { zone: &style.time_zone, instant: micros, offset };
    moment(micros.saturating_add(offset * MICROS_PER_SECOND), Some(&zoned), style, out)
}

fn moment(wall: i64, zoned: Option<&Zoned<'_>>, style: &Style, out: &mut dyn Write) -> Result {
    let date = civil_from_micros(wall).date;
    let time = wall.rem_euclid(MICROS_PER_DAY);
    if style.date_format == DateFormat::Postgres {
        // 2000-01-01, day 0, was a Saturday.
        let weekday = (wall.div_euclid(MICROS_PER_DAY) + 6).rem_euclid(7) as usize;
        let month = MONTHS[usize::from(date.month as u8 - 1)];
        out.write_str(WEEKDAYS[weekday])?;
        out.write_str(" ")?;
        if style.date_order == DateOrder::Dmy {
            padded(out, i64::from(date.day), 2)?;
            out.write_str(" ")?;
            out.write_str(month)?;
        } else {
            out.write_str(month)?;
            out.write_str(" ")?;
            padded(out, i64::from(date.day), 2)?;
        }
        out.write_str(" ")?;
        clock(out, time)?;
        out.write_str(" ")?;
        year(date, out)?;
    } else {
        day(date, style, out)?;
        out.write_str(" ")?;
        clock(out, time)?;
    }
    if let Some(zoned) = zoned {
        out.write_str(" ")?;
        abbreviation(zoned, out)?;
    }
    era(date, out)
}

fn day(date: Civil, style: &Style, out: &mut dyn Write) -> Result {
    let separator = match style.date_format {
        DateFormat::Iso | DateFormat::Postgres => "-",
        DateFormat::Sql => "/",
        DateFormat::German => ".",
    };
    let day_first = style.date_order == DateOrder::Dmy || style.date_format == DateFormat::German;
    let (first, second) = if day_first { (date.day, date.month) } else { (date.month, date.day) };
    padded(out, i64::from(first), 2)?;
    out.write_str(separator)?;
    padded(out, i64::from(second), 2)?;
    out.write_str(separator)?;
    year(date, out)
}

/// Year 0 is 1 BC.
fn year(date: Civil, out: &mut dyn Write) -> Result {
    padded(out, if date.year > 0 { date.year } else { 1 - date.year }, 4)
}

fn era(date: Civil, out: &mut dyn Write) -> Result {
    if date.year <= 0 { out.write_str(" BC") } else { Ok(()) }
}

/// `PST`, or the offset where the zone has no name for its time.
fn abbreviation(zoned: &Zoned<'_>, out: &mut dyn Write) -> Result {
    match zone::said_at(zoned.zone, zoned.instant) {
        Some(said) => out.write_str(&said.abbreviation),
        None => format_offset(zoned.offset, out),
    }
}
