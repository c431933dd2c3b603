//! Reading dates and times: ISO, the orders DateStyle allows, month names, special words.
//!
//! The text is cut into fields ([`lexical`](super::lexical)), and the fields are then assigned to
//! year, month, day, clock and zone by what they look like and what is known before them, as
//! PostgreSQL's DecodeDateTime and DecodeTimeOnly do.

use jiff::tz::TimeZone;

use super::calendar_fields::{Moment as Parsed, Parts, fraction, number};
use super::error::Trouble;
use super::lexical::{Field, Kind, Meaning, Special, Unit, fields, meaning};
use super::zone::{self, Abbreviation};
use super::{MICROS_PER_DAY, MICROS_PER_SECOND, TimeTz, check_date, days_from_civil};
use crate::error::{Result, SqlError, SqlState};
use crate::style::Style;

type Outcome<T> = std::result::Result<T, Trouble>;

enum Zone {
    Offset(i64),
    Named(TimeZone),
    /// An abbreviation whose meaning changed with time.
    Moving(&'static str, TimeZone),
}

impl Zone {
    /// Seconds east of Greenwich when its clock shows a time.
    fn offset_of_local(&self, local: i64) -> i64 {
        match self {
            Zone::Offset(seconds) => *seconds,
            Zone::Named(zone) => zone::offset_of_local(zone, local),
            Zone::Moving(abbreviation, zone) => zone::offset_of_abbreviation(abbreviation, zone, local),
        }
    }
}

/// What the fields of a text say.
struct Found {
    special: Option<Special>,
    moment: Parsed,
    known: Parts,
    zone: Option<Zone>,
}

/// An offset as DecodeTimezone reads it, in seconds to the east.
fn offset(text: &str) -> Outcome<i64> {
    if !text.starts_with(['+', '-']) {
        return Err(Trouble::Syntax);
    }
    let part = |text| number(text).map_err(|_| Trouble::Displacement);
    let (mut hours, mut rest) = part(&text[1..])?;
    let (mut minutes, mut seconds) = (0, 0);
    if let Some(more) = rest.strip_prefix(':') {
        (minutes, rest) = part(more)?;
        if let Some(more) = rest.strip_prefix(':') {
            (seconds, rest) = part(more)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        (hours, minutes) = (hours / 100, hours % 100);
    }
    if !(0..=15).contains(&hours) || !(0..60).contains(&minutes) || !(0..60).contains(&seconds) {
        return Err(Trouble::Displacement);
    }
    if !rest.is_empty() {
        return Err(Trouble::Syntax);
    }
    let total = (hours * 60 + minutes) * 60 + seconds;
    Ok(if text.starts_with('-') { -total } else { total })
}

/// The offset of a zone that is given as one, in seconds to the east; `None` if it is given
/// otherwise (parse_sane_timezone).
pub fn parse_numeric_zone(text: &str) -> Result<Option<i64>> {
    let invalid = |message| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(invalid(format!("invalid input syntax for type numeric time zone: \"{text}\""))
            .with_hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    match offset(text) {
        Ok(seconds) => Ok(Some(seconds)),
        Err(Trouble::Displacement) => Err(invalid(format!("numeric time zone \"{text}\" out of range"))),
        Err(_) => Ok(None),
    }
}

/// Reads fields one after the other.
struct Reader<'s> {
    style: &'s Style,
    now: i64,
    /// A time of day is wanted: DecodeTimeOnly.
    time_only: bool,
    found: Found,
    /// What the field before says of this one.
    label: Option<Unit>,
    text_month: bool,
}

impl Reader<'_> {
    fn today(&self) -> i64 {
        zone::to_local(&self.style.time_zone, self.now).div_euclid(MICROS_PER_DAY)
    }

    fn named_zone(&mut self, name: &str) -> Outcome<Parts> {
        let zone = zone::full_name(name).ok_or_else(|| Trouble::Zone(name.to_owned()))?;
        self.found.zone = Some(Zone::Named(zone));
        Ok(Parts::ZONE)
    }

    fn offset(&mut self, text: &str) -> Outcome<Parts> {
        self.found.zone = Some(Zone::Offset(offset(text)?));
        Ok(Parts::ZONE)
    }

    /// The parts that count as known where only a time is wanted.
    fn known(&self) -> Parts {
        if self.time_only { self.found.known.with(Parts::DATE) } else { self.found.known }
    }

    /// `hhmmss-zz`.
    fn run_with_offset(&mut self, text: &str) -> Outcome<Parts> {
        if self.found.known.has(Parts::TIME) {
            return Err(Trouble::Syntax);
        }
        let at = text.find('-').ok_or(Trouble::Syntax)?;
        self.offset(&text[at..])?;
        let known = self.known();
        Ok(self.found.moment.read_run(&text[..at], known)?.with(Parts::ZONE))
    }

    fn date(&mut self, text: &str, place: usize, list: &[Field]) -> Outcome<Parts> {
        let order = self.style.date_order;
        let digits = text.starts_with(|c: char| c.is_ascii_digit());
        if self.time_only {
            let last = list.len() - 1;
            let taken = place == 0
                && list.len() >= 2
                && (list[last].kind == Kind::Date || list[1].kind == Kind::Time);
            return match (taken, digits) {
                (true, _) => self.found.moment.read_date(text, self.found.known, order),
                (false, true) => self.run_with_offset(text),
                (false, false) => self.named_zone(text),
            };
        }
        if self.label == Some(Unit::Julian) {
            // A Julian day with an offset.
            let (days, rest) = number(text)?;
            self.label = None;
            self.julian(days)?;
            return Ok(self.offset(rest)?.with(Parts::DATE).with(Parts::TIME));
        }
        if self.label.is_some() || self.found.known.has(Parts::MONTH.with(Parts::DAY)) {
            if digits || self.label.is_some() {
                if self.label.take().is_some_and(|label| label != Unit::Time) {
                    return Err(Trouble::Syntax);
                }
                return self.run_with_offset(text);
            }
            return self.named_zone(text);
        }
        self.found.moment.read_date(text, self.found.known, order)
    }

    fn julian(&mut self, days: i64) -> Outcome<Parts> {
        if days < 0 {
            return Err(Trouble::Range);
        }
        self.found.moment.set_day(days - 2_451_545);
        self.found.moment.julian = true;
        Ok(Parts::DATE)
    }

    /// A number behind its label: `y2001m02d04`, `J2451187`, `T040506`.
    fn labelled(&mut self, label: Unit, text: &str) -> Outcome<Parts> {
        self.label = None;
        let (value, rest) = number(text)?;
        let decimals = matches!(label, Unit::Julian | Unit::Time | Unit::Second);
        if !(rest.is_empty() || rest.starts_with('.') && decimals) {
            return Err(Trouble::Syntax);
        }
        let known = self.found.known;
        let moment = &mut self.found.moment;
        Ok(match label {
            Unit::Year => {
                moment.year = value;
                Parts::YEAR
            }
            Unit::Month if known.has(Parts::MONTH.with(Parts::HOUR)) => {
                moment.minute = value;
                Parts::MINUTE
            }
            Unit::Month => {
                moment.month = value;
                Parts::MONTH
            }
            Unit::Day => {
                moment.day = value;
                Parts::DAY
            }
            Unit::Hour => {
                moment.hour = value;
                Parts::HOUR
            }
            Unit::Minute => {
                moment.minute = value;
                Parts::MINUTE
            }
            Unit::Second => {
                moment.second = value;
                if !rest.is_empty() {
                    moment.micros = fraction(rest)?;
                }
                Parts::SECOND
            }
            Unit::Julian => {
                let mut parts = self.julian(value)?;
                if !rest.is_empty() {
                    let share: f64 = format!("0{rest}0").parse().map_err(|_| Trouble::Syntax)?;
                    self.found.moment.set_clock((share * MICROS_PER_DAY as f64) as i64);
                    parts = parts.with(Parts::TIME);
                }
                parts
            }
            Unit::Time => match moment.read_run(text, known.with(Parts::DATE))? {
                Parts::TIME => Parts::TIME,
                _ => return Err(Trouble::Syntax),
            },
            Unit::Other => return Err(Trouble::Syntax),
        })
    }

    fn number(&mut self, text: &str, place: usize, list: &[Field]) -> Outcome<Parts> {
        if let Some(label) = self.label {
            return self.labelled(label, text);
        }
        let order = self.style.date_order;
        let known = self.known();
        let point = text.find('.');
        if self.time_only {
            let dated = place == 0 && list.len() >= 2 && list[list.len() - 1].kind == Kind::Date;
            return match point {
                Some(_) if dated => self.found.moment.read_date(text, self.found.known, order),
                Some(point) if point <= 2 => Err(Trouble::Syntax),
                None if text.len() <= 4 => self.found.moment.read_number(text, false, known, order),
                _ => self.found.moment.read_run(text, known),
            };
        }
        let run = match point {
            Some(_) if !known.meets(Parts::DATE) => {
                return self.found.moment.read_date(text, known, order);
            }
            Some(point) => point > 2,
            // Six digits and more are a date or a time, unless something of both is there.
            None => text.len() >= 6 && !(known.meets(Parts::DATE) && known.meets(Parts::TIME)),
        };
        if run {
            self.found.moment.read_run(text, known)
        } else {
            self.found.moment.read_number(text, self.text_month, known, order)
        }
    }

    /// A word; `None` if it says nothing.
    fn word(&mut self, word: &str) -> Outcome<Option<Parts>> {
        // Abbreviations of zones come before everything else.
        match zone::abbreviation(word) {
            Some(Abbreviation::Fixed(seconds)) => {
                self.found.zone = Some(Zone::Offset(i64::from(seconds)));
                return Ok(Some(Parts::ZONE));
            }
            Some(Abbreviation::Moving(name, zone)) => {
                self.found.zone = Some(Zone::Moving(name, zone));
                return Ok(Some(Parts::ZONE));
            }
            None => {}
        }
        let Some(meaning) = meaning(word) else {
            let zone = zone::full_name(word).ok_or(Trouble::Syntax)?;
            self.found.zone = Some(Zone::Named(zone));
            return Ok(Some(Parts::ZONE));
        };
        let today = self.today();
        let known = self.found.known;
        let moment = &mut self.found.moment;
        let whole = Parts::DATE.with(Parts::TIME).with(Parts::ZONE);
        Ok(Some(match meaning {
            Meaning::Ignored => return Ok(None),
            Meaning::Special(Special::Midnight) => {
                moment.set_clock(0);
                self.found.zone = Some(Zone::Offset(0));
                Parts::TIME.with(Parts::ZONE)
            }
            Meaning::Special(Special::Now) if self.time_only => {
                let local = zone::to_local(&self.style.time_zone, self.now);
                moment.set_clock(local.rem_euclid(MICROS_PER_DAY));
                Parts::TIME
            }
            Meaning::Special(_) if self.time_only => return Err(Trouble::Syntax),
            Meaning::Special(special @ (Special::Today | Special::Tomorrow | Special::Yesterday)) => {
                let days = match special {
                    Special::Tomorrow => today + 1,
                    Special::Yesterday => today - 1,
                    _ => today,
                };
                moment.set_day(days);
                Parts::DATE
            }
            Meaning::Special(Special::Now) => {
                self.found.special = Some(Special::Now);
                whole
            }
            Meaning::Special(special) => {
                self.found.special = Some(special);
                Parts::WHOLE
            }
            Meaning::Month(_) if self.time_only => return Err(Trouble::Syntax),
            Meaning::Month(month) => {
                // In `1999 08 Jan` the number taken for a month was the day.
                let swap = known.has(Parts::MONTH)
                    && !self.text_month
                    && !known.has(Parts::DAY)
                    && (1..=31).contains(&moment.month);
                if swap {
                    moment.day = moment.month;
                }
                moment.month = month;
                self.text_month = true;
                if swap { Parts::DAY } else { Parts::MONTH }
            }
            Meaning::Daylight => {
                match &mut self.found.zone {
                    Some(Zone::Offset(seconds)) => *seconds += 3600,
                    _ => return Err(Trouble::Syntax),
                }
                Parts::DAYLIGHT
            }
            Meaning::DayOfWeek if self.time_only => return Err(Trouble::Syntax),
            Meaning::DayOfWeek => Parts::DAY_OF_WEEK,
            Meaning::Afternoon(afternoon) => {
                moment.afternoon = Some(afternoon);
                Parts::MERIDIEM
            }
            Meaning::BeforeChrist(before) => {
                moment.before_christ = before;
                Parts::ERA
            }
            Meaning::Unit(_) | Meaning::IsoTime if self.label.is_some() => return Err(Trouble::Syntax),
            Meaning::Unit(unit) => {
                self.label = Some(unit);
                Parts::NONE
            }
            Meaning::IsoTime => {
                if !self.time_only && !known.has(Parts::DATE) {
                    return Err(Trouble::Syntax);
                }
                self.label = Some(Unit::Time);
                Parts::NONE
            }
        }))
    }

    fn read(&mut self, list: &[Field]) -> Outcome<()> {
        for (place, field) in list.iter().enumerate() {
            let text = field.text.as_str();
            let parts = match field.kind {
                Kind::Date if self.found.known.has(Parts::WHOLE) => return Err(Trouble::Syntax),
                Kind::Date => self.date(text, place, list)?,
                Kind::Time => {
                    if self.label.take().is_some_and(|label| label != Unit::Time) {
                        return Err(Trouble::Syntax);
                    }
                    let parts = self.found.moment.read_time(text)?;
                    if !self.time_only {
                        self.found.moment.check_clock()?;
                    }
                    parts
                }
                Kind::Offset => self.offset(text)?,
                Kind::Number => self.number(text, place, list)?,
                Kind::Word => match self.word(text)? {
                    Some(parts) => parts,
                    None => continue,
                },
            };
            if self.found.known.meets(parts) {
                return Err(Trouble::Syntax);
            }
            self.found.known = self.found.known.with(parts);
        }
        let open = self.label.is_some() && !self.found.known.has(Parts::WHOLE);
        if open { Err(Trouble::Syntax) } else { Ok(()) }
    }
}

fn scan(text: &str, style: &Style, now: i64, time_only: bool) -> Outcome<Found> {
    let list = fields(text)?;
    let found = Found { special: None, moment: Parsed::default(), known: Parts::NONE, zone: None };
    let mut reader = Reader { style, now, time_only, found, label: None, text_month: false };
    reader.read(&list)?;
    let mut found = reader.found;
    if found.special.is_some() {
        return Ok(found);
    }
    found.moment.validate(found.known)?;
    found.moment.apply_meridiem()?;
    if time_only {
        found.moment.check_clock()?;
        if !found.known.has(Parts::TIME) {
            return Err(Trouble::Syntax);
        }
        // Whose offset depends on the day needs one.
        if let Some(Zone::Named(zone)) = &found.zone
            && !found.known.has(Parts::DATE)
            && zone::only_offset(zone).is_none()
        {
            return Err(Trouble::Syntax);
        }
    } else if !found.known.has(Parts::DATE) {
        return Err(Trouble::Syntax);
    }
    Ok(found)
}

/// Reads a date. `now` is the transaction's start.
pub fn parse_date(text: &str, style: &Style, now: i64) -> Result<i32> {
    let found = scan(text, style, now, false).map_err(|trouble| trouble.error(text, "date"))?;
    match found.special {
        Some(Special::Infinity) => return Ok(i32::MAX),
        Some(Special::NegativeInfinity) => return Ok(i32::MIN),
        Some(Special::Epoch) => return check_date(days_from_civil(1970, 1, 1)),
        Some(_) => {
            return check_date(zone::to_local(&style.time_zone, now).div_euclid(MICROS_PER_DAY));
        }
        None => {}
    }
    check_date(found.moment.days()).map_err(|_| {
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\""))
    })
}

/// Reads a time of day; a zone in the text is ignored.
pub fn parse_time(text: &str, style: &Style, now: i64) -> Result<i64> {
    let found = scan(text, style, now, true).map_err(|trouble| trouble.error(text, "time"))?;
    Ok(found.moment.clock())
}

/// Reads a time of day with time zone; without a zone in the text, the session's holds, on the day
/// in the text or else today.
pub fn parse_timetz(text: &str, style: &Style, now: i64) -> Result<TimeTz> {
    let trouble = |trouble: Trouble| trouble.error(text, "time with time zone");
    let found = scan(text, style, now, true).map_err(trouble)?;
    let day = match found.known {
        known if known.has(Parts::DATE) => found.moment.days(),
        known
            if known.meets(Parts::DATE) && !matches!(found.zone, Some(Zone::Offset(_) | Zone::Named(_))) =>
        {
            return Err(trouble(Trouble::Syntax));
        }
        _ => zone::to_local(&style.time_zone, now).div_euclid(MICROS_PER_DAY),
    };
    let clock = found.moment.clock();
    // Beyond timestamps the rules of the last years hold.
    let local = day.saturating_mul(MICROS_PER_DAY).saturating_add(clock);
    let east = match &found.zone {
        Some(zone) => zone.offset_of_local(local),
        None => zone::offset_of_local(&style.time_zone, local),
    };
    let west = i32::try_from(-east).map_err(|_| trouble(Trouble::Displacement))?;
    TimeTz::new(clock, west)
}

/// Local wall-clock microseconds and the zone, if one was written.
enum Moment {
    Infinite(i64),
    Local(i64, Option<Zone>),
    Instant(i64),
}

fn parse_moment(text: &str, style: &Style, now: i64, type_name: &str) -> Result<Moment> {
    let found = scan(text, style, now, false).map_err(|trouble| trouble.error(text, type_name))?;
    match found.special {
        Some(Special::Infinity) => return Ok(Moment::Infinite(i64::MAX)),
        Some(Special::NegativeInfinity) => return Ok(Moment::Infinite(i64::MIN)),
        Some(Special::Epoch) => return Ok(Moment::Instant(-super::EPOCH_MICROS)),
        Some(_) => return Ok(Moment::Instant(now)),
        None => {}
    }
    let midnight = found.moment.days().checked_mul(MICROS_PER_DAY);
    let local = midnight.and_then(|midnight| midnight.checked_add(found.moment.clock()));
    Ok(Moment::Local(local.ok_or_else(|| out_of_range(text))?, found.zone))
}

/// Reads a timestamp without time zone; a zone in the text is ignored, as PostgreSQL does.
pub fn parse_timestamp(text: &str, style: &Style, now: i64) -> Result<i64> {
    Ok(match parse_moment(text, style, now, "timestamp")? {
        Moment::Infinite(value) => value,
        Moment::Local(value, _) if super::in_range(value) => value,
        Moment::Local(..) => return Err(out_of_range(text)),
        Moment::Instant(instant) if instant == -super::EPOCH_MICROS => instant,
        Moment::Instant(instant) => zone::to_local(&style.time_zone, instant),
    })
}

/// Reads a timestamp with time zone; without a zone in the text, the session's holds.
pub fn parse_timestamptz(text: &str, style: &Style, now: i64) -> Result<i64> {
    let instant = match parse_moment(text, style, now, "timestamp with time zone")? {
        Moment::Infinite(value) | Moment::Instant(value) => return Ok(value),
        Moment::Local(local, zone) => {
            let zone = zone.unwrap_or_else(|| Zone::Named(style.time_zone.clone()));
            local.checked_sub(zone.offset_of_local(local) * MICROS_PER_SECOND)
        }
    };
    // What counts is the instant: the clock of a zone may show a time beyond the type's.
    instant.filter(|instant| super::in_range(*instant)).ok_or_else(|| out_of_range(text))
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("timestamp out of range: \"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(text: &str) -> std::result::Result<String, SqlState> {
        parse_timestamp(text, Style::standard(), 0).map_err(|e| e.state()).map(|t| {
            let mut out = String::new();
            super::super::format_timestamp(t, &mut out).unwrap();
            out
        })
    }

    #[test]
    fn reads_the_manual_s_examples() {
        for text in [
            "1999-01-08 04:05:06",
            "1999-01-08T04:05:06",
            "19990108T040506",
            "January 8, 1999 04:05:06",
            "1/8/1999 04:05:06",
            "8-Jan-1999 04:05:06",
            "Jan-08-1999 04:05:06 AM",
            "Fri Jan 8 04:05:06 1999",
            "1999-01-08 04:05:06 PST",
        ] {
            assert_eq!(timestamp(text).as_deref(), Ok("1999-01-08 04:05:06"), "{text}");
        }
        assert_eq!(timestamp("2024-02-30"), Err(SqlState::DATETIME_FIELD_OVERFLOW));
        assert_eq!(timestamp("rubbish"), Err(SqlState::INVALID_DATETIME_FORMAT));
        assert_eq!(timestamp("0044-03-15 BC").as_deref(), Ok("0044-03-15 00:00:00 BC"));
        assert_eq!(timestamp("1999-01-08 04:05:06.789 pm").as_deref(), Ok("1999-01-08 16:05:06.789"));
    }
}
