//! Dates and times in paths: the method `.datetime()`, and how its values compare.

use std::cmp::Ordering;
use std::fmt::Write;

use jiff::tz::TimeZone;

use crate::datetime::standard_template::{Moment, Template};
use crate::datetime::zone::{offset_at, to_instant};
use crate::datetime::{MICROS_PER_DAY, MICROS_PER_SECOND, format_date, format_time, format_timestamp};
use crate::error::{Result, SqlError, SqlState};

/// What `.datetime()` without a template understands, in the order it tries.
const FORMATS: [&str; 19] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

thread_local! {
    static TEMPLATES: Vec<Template> = FORMATS.iter().filter_map(|format| Template::new(format).ok()).collect();
}

/// The session's clock, for comparisons of values with and without an offset.
#[derive(Clone, Debug)]
pub struct Clock {
    pub zone: TimeZone,
    /// The transaction's time.
    pub now: i64,
}

/// Reads a value in one of the usual formats.
pub(super) fn recognize(text: &str) -> Result<Moment> {
    let found = TEMPLATES.with(|templates| templates.iter().find_map(|template| template.read(text).ok()));
    found.ok_or_else(|| {
        SqlError::new(SqlState(*b"22031"), format!("datetime format is not recognized: \"{text}\""))
            .with_hint("Use a datetime template argument to specify the input data format.")
    })
}

pub(super) fn type_name(moment: &Moment) -> &'static str {
    match moment {
        Moment::Date(_) => "date",
        Moment::Time(_) => "time without time zone",
        Moment::TimeTz(..) => "time with time zone",
        Moment::Timestamp(_) => "timestamp without time zone",
        Moment::TimestampTz(..) => "timestamp with time zone",
    }
}

/// The text in ISO 8601.
pub(super) fn text_of(moment: &Moment) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match *moment {
        Moment::Date(days) => format_date(days, &mut text),
        Moment::Time(micros) => format_time(micros, &mut text),
        Moment::TimeTz(micros, offset) => {
            format_time(micros, &mut text).and_then(|()| offset_out(offset, &mut text))
        }
        Moment::Timestamp(micros) => format_timestamp(micros, &mut text),
        Moment::TimestampTz(instant, offset) => {
            let local = instant.saturating_add(i64::from(offset) * MICROS_PER_SECOND);
            format_timestamp(local, &mut text).and_then(|()| offset_out(offset, &mut text))
        }
    };
    match moment {
        Moment::Timestamp(_) | Moment::TimestampTz(..) => text.replacen(' ', "T", 1),
        _ => text,
    }
}

fn offset_out(offset: i32, out: &mut String) -> std::fmt::Result {
    let magnitude = offset.abs();
    let sign = if offset < 0 { '-' } else { '+' };
    write!(out, "{sign}{:02}:{:02}", magnitude / 3600, magnitude / 60 % 60)
}

/// How two values compare; `None` for a date beside a time of day. Values with an offset compare
/// with those without one where the session's time zone may be used.
pub(super) fn compare(left: &Moment, right: &Moment, clock: Option<&Clock>) -> Result<Option<Ordering>> {
    use Moment::{Date, Time, TimeTz, TimestampTz};
    let of_day = |moment: &Moment| matches!(moment, Time(_) | TimeTz(..));
    if of_day(left) != of_day(right) {
        return Ok(None);
    }
    let zoned = |moment: &Moment| matches!(moment, TimeTz(..) | TimestampTz(..));
    let mixed = zoned(left) != zoned(right);
    let clock = match (mixed, clock) {
        (true, None) => {
            let plain = if zoned(left) { right } else { left };
            return Err(zone_needed(plain));
        }
        (_, clock) => clock,
    };
    Ok(Some(match (*left, *right) {
        (Time(left), Time(right)) => left.cmp(&right),
        (Time(_) | TimeTz(..), _) => of_day_key(left, clock).cmp(&of_day_key(right, clock)),
        (Date(left), Date(right)) => left.cmp(&right),
        _ => instant(left, mixed, clock).cmp(&instant(right, mixed, clock)),
    }))
}

/// Times of day with an offset sort by the moment, then by the offset, the most westward last.
fn of_day_key(moment: &Moment, clock: Option<&Clock>) -> (i64, i64) {
    let (micros, offset) = match *moment {
        Moment::TimeTz(micros, offset) => (micros, i64::from(offset)),
        Moment::Time(micros) => (micros, clock.map_or(0, |clock| offset_at(&clock.zone, clock.now))),
        _ => (0, 0),
    };
    (micros - offset * MICROS_PER_SECOND, -offset)
}

/// Microseconds since 2000: wide, since a date may lie beyond all timestamps.
fn instant(moment: &Moment, mixed: bool, clock: Option<&Clock>) -> i128 {
    let local = |micros: i64| match clock.filter(|_| mixed) {
        Some(clock) => i128::from(to_instant(&clock.zone, micros)),
        None => i128::from(micros),
    };
    match *moment {
        Moment::Date(days) => {
            let micros = i128::from(days) * i128::from(MICROS_PER_DAY);
            i64::try_from(micros).map_or(micros, local)
        }
        Moment::Timestamp(micros) => local(micros),
        Moment::TimestampTz(instant, _) => instant.into(),
        Moment::Time(_) | Moment::TimeTz(..) => 0,
    }
}

fn zone_needed(plain: &Moment) -> SqlError {
    let (from, to) = match plain {
        Moment::Date(_) => ("date", "timestamptz"),
        Moment::Time(_) => ("time", "timetz"),
        _ => ("timestamp", "timestamptz"),
    };
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("cannot convert value from {from} to {to} without time zone usage"),
    )
    .with_hint("Use *_tz() function for time zone support.")
}
