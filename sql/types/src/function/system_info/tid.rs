//! `tid`: the place of a row, a block and an offset in it. A value is both in one number, in their
//! order: 32 bits of the block before 16 of the offset.

use std::fmt::Write;

use crate::error::Result;

const OFFSET_BITS: u32 = 16;

/// The value of a place.
pub fn tid_value(block: u32, offset: u16) -> i64 {
    i64::from(block) << OFFSET_BITS | i64::from(offset)
}

/// The block and the offset that a value is.
pub fn tid_place(value: i64) -> (u32, u16) {
    ((value >> OFFSET_BITS) as u32, value as u16)
}

/// Reads `(42,7)`.
pub fn parse_tid(text: &str) -> Result<i64> {
    let number = |text: &str| {
        let text = text.trim_start();
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<i64>().ok()).flatten()
    };
    let inner = text.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let place = inner.and_then(|(inner, _)| {
        let (block, offset) = inner.split_once(',')?;
        // A negative block is what it is in 32 bits, as strtoul has it.
        let block = number(block)?;
        let block = u32::try_from(block).or_else(|_| i32::try_from(block).map(|block| block as u32)).ok()?;
        Some(tid_value(block, u16::try_from(number(offset)?).ok()?))
    });
    place.ok_or_else(|| crate::io::invalid_syntax("tid", text))
}

/// Shows a value.
pub fn show_tid(value: i64, out: &mut dyn Write) -> std::fmt::Result {
    let (block, offset) = tid_place(value);
    write!(out, "({block},{offset})")
}
