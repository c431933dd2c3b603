//! The wall clock.

/// The wall clock: microseconds since 2000-01-01 UTC.
pub fn now() -> i64 {
    const UNIX_TO_2000_US: i64 = 946_684_800_000_000;
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    unix.as_micros() as i64 - UNIX_TO_2000_US
}
