//! `pg_lsn` as text: places in a log. A value is the unsigned number of a byte, kept as a signed one with
//! the same order.

use std::fmt::Write;

use crate::error::Result;

const OFFSET: u64 = 1 << 63;

/// The value of a place.
pub fn lsn_value(place: u64) -> i64 {
    (place ^ OFFSET) as i64
}

/// The place that a value is.
pub fn lsn_place(value: i64) -> u64 {
    value as u64 ^ OFFSET
}

/// Reads `16/B374D848`: two hexadecimal numbers of up to eight digits.
pub fn parse_lsn(text: &str) -> Result<i64> {
    let half = |text: &str| {
        let digits = (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
    };
    let halves = text.split_once('/').and_then(|(high, low)| half(high).zip(half(low)));
    halves
        .map(|(high, low)| lsn_value(high << 32 | low))
        .ok_or_else(|| crate::io::invalid_syntax("pg_lsn", text))
}

/// Shows a value.
pub fn show_lsn(value: i64, out: &mut dyn Write) -> std::fmt::Result {
    let place = lsn_place(value);
    write!(out, "{:X}/{:X}", place >> 32, place & 0xFFFF_FFFF)
}
