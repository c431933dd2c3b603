//! Offsets from UTC as text.

use std::fmt::{Result, Write};

/// Writes `n` with at least `width` digits, without the formatting machinery: this is in the
/// path of every result row.
pub(super) fn padded(out: &mut dyn Write, n: i64, width: usize) -> Result {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(n);
    for _ in digits.len()..width {
        out.write_str("0")?;
    }
    out.write_str(digits)
}

/// `+01`, `-03:30`, `+00:19:32`.
pub(super) fn format_offset(offset: i64, out: &mut dyn Write) -> Result {
    out.write_str(if offset < 0 { "-" } else { "+" })?;
    let magnitude = offset.abs();
    padded(out, magnitude / 3600, 2)?;
    if magnitude % 3600 != 0 {
        out.write_str(":")?;
        padded(out, magnitude / 60 % 60, 2)?;
        if magnitude % 60 != 0 {
            out.write_str(":")?;
            padded(out, magnitude % 60, 2)?;
        }
    }
    Ok(())
}
