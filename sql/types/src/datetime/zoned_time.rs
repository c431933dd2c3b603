//! `time with time zone`: a time of day and how far west of Greenwich its clock stands.
//!
//! A value is one integer, the time at Greenwich above the displacement, in PostgreSQL's order
//! (timetz_cmp): by that time, and where it is the same the more westward is the larger. So what
//! stores, hashes and compares integers does so with these values too. The type holds displacements
//! of any zone, and up to twelve days for AT TIME ZONE with an interval.

use jiff::tz::TimeZone;

use super::zone::{self, Abbreviation};
use super::{MICROS_PER_DAY, MICROS_PER_SECOND, is_infinite};
use crate::error::{Result, SqlError, SqlState};
use crate::style::Style;

/// The lower bits of a value hold its displacement above [`WEST_LEAST`].
const WEST_BITS: u32 = 21;
const WEST_LEAST: i32 = -(1 << (WEST_BITS - 1));

/// A time of day with its displacement from Greenwich.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeTz(i64);

/// 22009.
pub fn displacement_out_of_range() -> SqlError {
    SqlError::new(SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE, "time zone displacement out of range")
}

impl TimeTz {
    /// The value of microseconds since midnight by a clock so many seconds to the west; 22009 for one
    /// that the type cannot hold.
    pub fn new(microseconds: i64, west: i32) -> Result<TimeTz> {
        debug_assert!((0..=MICROS_PER_DAY).contains(&microseconds), "a time of day");
        if !(WEST_LEAST..-WEST_LEAST).contains(&west) {
            return Err(displacement_out_of_range());
        }
        let greenwich = microseconds + i64::from(west) * MICROS_PER_SECOND;
        Ok(TimeTz((greenwich << WEST_BITS) | i64::from(west - WEST_LEAST)))
    }

    /// The time of day that a clock so many seconds to the east shows at `local`, microseconds since
    /// any midnight.
    pub fn by_clock(local: i64, east: i64) -> Result<TimeTz> {
        let west = i32::try_from(-east).map_err(|_| displacement_out_of_range())?;
        TimeTz::new(local.rem_euclid(MICROS_PER_DAY), west)
    }

    /// The value as an integer of the same order.
    #[inline]
    pub const fn packed(self) -> i64 {
        self.0
    }

    /// What [`TimeTz::packed`] answered.
    #[inline]
    pub const fn from_packed(packed: i64) -> TimeTz {
        TimeTz(packed)
    }

    /// Seconds west of Greenwich.
    pub const fn west(self) -> i32 {
        (self.0 & ((1 << WEST_BITS) - 1)) as i32 + WEST_LEAST
    }

    /// Seconds east of Greenwich.
    pub const fn east(self) -> i64 {
        -(self.west() as i64)
    }

    /// Microseconds since midnight at Greenwich; of another day, less than none or more than it has.
    pub const fn greenwich(self) -> i64 {
        self.0 >> WEST_BITS
    }

    /// Microseconds since midnight by its own clock.
    pub const fn microseconds(self) -> i64 {
        self.greenwich() - self.west() as i64 * MICROS_PER_SECOND
    }

    /// The clock moved on, around midnight.
    pub fn plus(self, microseconds: i64) -> Result<TimeTz> {
        TimeTz::by_clock(self.microseconds() + microseconds % MICROS_PER_DAY, self.east())
    }

    /// The same time by a clock so many seconds to the east.
    pub fn at_offset(self, east: i64) -> Result<TimeTz> {
        TimeTz::by_clock(self.greenwich() + east * MICROS_PER_SECOND, east)
    }

    /// The same time by the clock that a zone has now.
    pub fn at_zone(self, name: &str, now: i64) -> Result<TimeTz> {
        let east = match zone::abbreviation(name) {
            Some(Abbreviation::Moving(abbreviation, zone)) => {
                zone::offset_of_abbreviation_at(abbreviation, &zone, now)
                    .unwrap_or_else(|| zone::offset_at(&zone, now))
            }
            _ => zone::offset_at(&zone::lookup(name)?, now),
        };
        self.at_offset(east)
    }

    /// What the clock of the session's zone shows at an instant; `None` at ±infinity.
    pub fn of_instant(instant: i64, zone: &TimeZone) -> Result<Option<TimeTz>> {
        if is_infinite(instant) {
            return Ok(None);
        }
        let east = zone::offset_at(zone, instant);
        TimeTz::by_clock(instant + east * MICROS_PER_SECOND, east).map(Some)
    }

    /// A time of day as the session's zone has it today.
    pub fn of_today(microseconds: i64, style: &Style, now: i64) -> Result<TimeTz> {
        let today = zone::to_local(&style.time_zone, now);
        let local = today - today.rem_euclid(MICROS_PER_DAY) + microseconds;
        let east = zone::offset_of_local(&style.time_zone, local);
        let west = i32::try_from(-east).map_err(|_| displacement_out_of_range())?;
        TimeTz::new(microseconds, west)
    }

    /// The instant of this time of a day.
    pub fn on(self, midnight: i64) -> Result<i64> {
        if is_infinite(midnight) {
            return Ok(midnight);
        }
        midnight.checked_add(self.greenwich()).filter(|at| super::in_range(*at)).ok_or_else(|| {
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600 * MICROS_PER_SECOND;

    #[test]
    fn keeps_clock_and_displacement() {
        for west in [0, 1, -1, 57_599, -57_599, WEST_LEAST, -WEST_LEAST - 1] {
            for clock in [0, 1, 12 * HOUR, MICROS_PER_DAY] {
                let time = TimeTz::new(clock, west).unwrap();
                assert_eq!((time.microseconds(), time.west()), (clock, west));
                assert_eq!(TimeTz::from_packed(time.packed()), time);
            }
        }
        assert!(TimeTz::new(0, -WEST_LEAST).is_err());
        assert!(TimeTz::new(0, WEST_LEAST - 1).is_err());
    }

    #[test]
    fn sorts_by_the_time_at_greenwich_and_then_to_the_west() {
        let of = |hour: i64, east: i32| TimeTz::new(hour * HOUR, -east * 3600).unwrap();
        let sorted = [of(1, 5), of(0, 0), of(10, 2), of(8, 0), of(7, -1), of(24, 0), of(23, -8)];
        assert!(sorted.is_sorted());
        assert!(sorted.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn goes_around_midnight() {
        let late = TimeTz::new(23 * HOUR, -3600).unwrap();
        assert_eq!(late.plus(2 * HOUR), TimeTz::new(HOUR, -3600));
        assert_eq!(late.plus(-(24 + 23) * HOUR), TimeTz::new(0, -3600));
        assert_eq!(late.at_offset(3 * 3600), TimeTz::new(HOUR, -3 * 3600));
        assert_eq!(TimeTz::new(MICROS_PER_DAY, 0).and_then(|midnight| midnight.plus(0)), TimeTz::new(0, 0));
    }
}
