//! Floating-point numbers as PostgreSQL writes them: the shortest digits that read back
//! exactly, in scientific form outside 1e-4 … 1e15 (1e6 for single precision).

use std::fmt::{Result as FmtResult, Write};

use super::invalid_syntax;
use crate::error::{Result, SqlError, SqlState};

fn out_of_range(text: &str, type_name: &str) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("\"{text}\" is out of range for type {type_name}"),
    )
}

/// What Rust's reader takes and C's does not, and the reverse, is settled here.
fn special(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "infinity" | "+infinity" | "inf" | "+inf" => Some(f64::INFINITY),
        "-infinity" | "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn is_plain_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'))
        && text.bytes().any(|b| b.is_ascii_digit())
}

/// Whether the digits of a number hold anything but zeros.
fn is_nonzero(text: &str) -> bool {
    text.bytes().take_while(|b| !matches!(b, b'e' | b'E')).any(|b| (b'1'..=b'9').contains(&b))
}

/// Reads a double.
pub fn parse_f64(text: &str) -> Result<f64> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    if let Some(value) = special(trimmed) {
        return Ok(value);
    }
    if !is_plain_number(trimmed) {
        return Err(invalid_syntax("double precision", text));
    }
    let value: f64 = trimmed.parse().map_err(|_| invalid_syntax("double precision", text))?;
    if value.is_infinite() || (value == 0.0 && is_nonzero(trimmed)) {
        return Err(out_of_range(trimmed, "double precision"));
    }
    Ok(value)
}

/// Reads a single.
pub fn parse_f32(text: &str) -> Result<f32> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    if let Some(value) = special(trimmed) {
        return Ok(value as f32);
    }
    if !is_plain_number(trimmed) {
        return Err(invalid_syntax("real", text));
    }
    let value: f32 = trimmed.parse().map_err(|_| invalid_syntax("real", text))?;
    if value.is_infinite() || (value == 0.0 && is_nonzero(trimmed)) {
        return Err(out_of_range(trimmed, "real"));
    }
    Ok(value)
}

/// Writes the digits of `d.ddde±x` (Rust's shortest form) in PostgreSQL's layout.
fn layout(shortest: &str, scientific_from: i32, out: &mut dyn Write) -> FmtResult {
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    out.write_str(sign)?;
    if !(-4..scientific_from).contains(&exponent) {
        let mark = if exponent < 0 { '-' } else { '+' };
        return write!(out, "{mantissa}e{mark}{:02}", exponent.abs());
    }
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if exponent < 0 {
        out.write_str("0.")?;
        for _ in 1..-exponent {
            out.write_str("0")?;
        }
        out.write_str(first)?;
        return out.write_str(rest);
    }
    out.write_str(first)?;
    let whole = exponent as usize;
    if rest.len() <= whole {
        out.write_str(rest)?;
        for _ in rest.len()..whole {
            out.write_str("0")?;
        }
        return Ok(());
    }
    out.write_str(&rest[..whole])?;
    out.write_str(".")?;
    out.write_str(&rest[whole..])
}

fn write_special(x: f64, out: &mut dyn Write) -> FmtResult {
    out.write_str(if x.is_nan() {
        "NaN"
    } else if x > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    })
}

/// Writes a double.
pub fn write_f64(x: f64, out: &mut dyn Write) -> FmtResult {
    if !x.is_finite() {
        return write_special(x, out);
    }
    layout(&shortest_f64(x), 15, out)
}

/// The fewest digits that read back as the number. Where two are as near to it, as 0.2 and 0.3 are to a
/// quarter that needs no more digits, the even one is meant.
fn shortest_f64(x: f64) -> String {
    const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    let shortest = format!("{x:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let kept = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let decimals = kept as i32 - 1 - exponent.parse::<i32>().unwrap_or(0);
    // As many binary digits behind the point as decimal ones, if all were written.
    let bits = x.abs().to_bits();
    let biased = (bits >> MANTISSA_BITS) as i32;
    let whole = bits & ((1 << MANTISSA_BITS) - 1) | u64::from(biased > 0) << MANTISSA_BITS;
    let exact = (1075 - biased.max(1) - whole.trailing_zeros() as i32).max(0);
    if decimals >= 0 && exact != decimals + 1 {
        return shortest;
    }
    let even = format!("{x:.*e}", kept.saturating_sub(1));
    if even.parse() == Ok(x) { even } else { shortest }
}

/// So many digits tell every single from its neighbours, behind the first.
const F32_DIGITS_MAX: usize = 8;

/// Writes a single.
pub fn write_f32(x: f32, out: &mut dyn Write) -> FmtResult {
    if !x.is_finite() {
        return write_special(f64::from(x), out);
    }
    layout(&shortest_f32(x), 6, out)
}

/// The fewest digits that only this number is nearest to. Rust also takes those of a number halfway to
/// the next one, which whoever reads them rounds to even; PostgreSQL does not count on that.
fn shortest_f32(x: f32) -> String {
    let shortest = format!("{x:e}");
    let value = f64::from(x);
    let read = |text: &str| text.parse::<f64>().unwrap_or(value);
    let beside = if read(&shortest) > value { x.next_up() } else { x.next_down() };
    let halfway = (value + f64::from(beside)) / 2.0;
    if read(&shortest) != halfway {
        return shortest;
    }
    let mut longer = (1..=F32_DIGITS_MAX).map(|digits| format!("{x:.digits$e}"));
    longer.find(|text| read(text) != halfway && read(text) as f32 == x).unwrap_or(shortest)
}

/// Writes so many digits, without the zeros at the end (`%.15g`).
fn rounded(x: f64, digits: i32, out: &mut dyn Write) -> FmtResult {
    if !x.is_finite() {
        return write_special(x, out);
    }
    let digits = digits.max(1);
    let text = format!("{x:.*e}", digits as usize - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    layout(&format!("{mantissa}e{exponent}"), digits, out)
}

/// Writes a double with `extra_float_digits` beyond those that every double keeps; above zero, as
/// many as it takes.
pub fn show_f64(x: f64, extra_digits: i32, out: &mut dyn Write) -> FmtResult {
    if extra_digits > 0 { write_f64(x, out) } else { rounded(x, f64::DIGITS as i32 + extra_digits, out) }
}

/// The same for a single.
pub fn show_f32(x: f32, extra_digits: i32, out: &mut dyn Write) -> FmtResult {
    if extra_digits > 0 {
        write_f32(x, out)
    } else {
        rounded(f64::from(x), f32::DIGITS as i32 + extra_digits, out)
    }
}

/// A finite number as printf's %g: six digits, without the zeros at their end.
pub fn general_text(x: f64) -> String {
    let text = format!("{x:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return without_zeros(&format!("{x:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_text_is_printf_s() {
        let cases = [(0.0, "0"), (-1.5, "-1.5"), (123_456.0, "123456"), (1_234_567.0, "1.23457e+06")];
        let more = [(999_999.5, "1e+06"), (0.0001, "0.0001"), (0.000_012_5, "1.25e-05"), (1e300, "1e+300")];
        for (x, text) in cases.into_iter().chain(more) {
            assert_eq!(general_text(x), text);
        }
    }

    #[test]
    fn doubles_look_like_postgresql_s() {
        let check = |x: f64, text: &str| {
            let mut out = String::new();
            write_f64(x, &mut out).unwrap();
            assert_eq!(out, text);
        };
        check(1.0, "1");
        check(-0.0, "-0");
        check(0.1, "0.1");
        check(1e14, "100000000000000");
        check(1e15, "1e+15");
        check(0.0001, "0.0001");
        check(0.00001, "1e-05");
        check(123.456, "123.456");
        check(1.5e300, "1.5e+300");
        check(-1e15 - 0.25, "-1.0000000000000002e+15");
        check(1e14 + 0.125, "100000000000000.12");
        check(1.0 + 1.0 / 131_072.0, "1.0000076293945312");
        check(123_456_789_012_345_680.0, "1.2345678901234568e+17");
        let mut out = String::new();
        write_f32(1_234_567.0, &mut out).unwrap();
        assert_eq!(out, "1.234567e+06");
        for (x, text) in [(-2_249_999_872.0, "-2.2499999e+09"), (33_555_512.0, "3.3555512e+07"), (0.1, "0.1")]
        {
            let mut out = String::new();
            write_f32(x, &mut out).unwrap();
            assert_eq!(out, text);
        }
    }
}
