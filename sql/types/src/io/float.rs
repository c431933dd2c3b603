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

/// The digits of a double.
fn shortest_f64(x: f64) -> String {
    let bits = x.abs().to_bits();
    let stored = bits & ((1 << (f64::MANTISSA_DIGITS - 1)) - 1);
    let biased = (bits >> (f64::MANTISSA_DIGITS - 1)) as i32;
    let binary = Binary::new(stored, biased, (f64::MANTISSA_DIGITS, f64::MAX_EXP));
    let rounded = |digits: usize| Some(format!("{x:.digits$e}")).filter(|text| text.parse() == Ok(x));
    settled(format!("{x:e}"), &binary, F64_DIGITS_MAX, rounded)
}

/// So many digits tell every double from its neighbours, behind the first.
const F64_DIGITS_MAX: usize = 16;
/// So many digits tell every single from its neighbours, behind the first.
const F32_DIGITS_MAX: usize = 8;

/// Writes a single.
pub fn write_f32(x: f32, out: &mut dyn Write) -> FmtResult {
    if !x.is_finite() {
        return write_special(f64::from(x), out);
    }
    layout(&shortest_f32(x), 6, out)
}

/// The digits of a single.
fn shortest_f32(x: f32) -> String {
    let bits = x.abs().to_bits();
    let stored = u64::from(bits & ((1 << (f32::MANTISSA_DIGITS - 1)) - 1));
    let biased = (bits >> (f32::MANTISSA_DIGITS - 1)) as i32;
    let binary = Binary::new(stored, biased, (f32::MANTISSA_DIGITS, f32::MAX_EXP));
    let rounded = |digits: usize| Some(format!("{x:.digits$e}")).filter(|text| text.parse() == Ok(x));
    settled(format!("{x:e}"), &binary, F32_DIGITS_MAX, rounded)
}

/// A number as `mantissa * 2^exponent`.
struct Binary {
    mantissa: u64,
    exponent: i32,
    /// The number below is half as near as the one above.
    least_of_its_exponent: bool,
}

impl Binary {
    /// Of what IEEE 754 stores of a number: its mantissa without the first digit, and its exponent; of a form of so
    /// many digits, and exponents up to a greatest.
    fn new(stored: u64, biased: i32, (digits, exponent_max): (u32, i32)) -> Binary {
        let first = 1u64 << (digits - 1);
        // What exponents are stored with, and the digits behind the point.
        let bias = exponent_max - 2 + digits as i32;
        Binary {
            mantissa: if biased > 0 { first | stored } else { stored },
            exponent: biased.max(1) - bias,
            least_of_its_exponent: biased > 1 && stored == 0,
        }
    }

    /// How many digits are behind its binary point, and behind the decimal one if all were written.
    fn exact_decimals(&self) -> i32 {
        (-self.exponent - self.mantissa.trailing_zeros() as i32).max(0)
    }

    /// Whether `digits * 10^exponent` lies halfway to one of its neighbours.
    fn is_halfway(&self, digits: u64, exponent: i32) -> bool {
        let above = (2 * self.mantissa + 1, self.exponent - 1);
        let below = match self.least_of_its_exponent {
            true => (4 * self.mantissa - 1, self.exponent - 2),
            false => ((2 * self.mantissa).saturating_sub(1), self.exponent - 1),
        };
        [above, below].into_iter().any(|(half, power)| {
            // Both sides without their factors of ten's five: such a power of it has more digits than either.
            let Some(five) = 5u128.checked_pow(exponent.unsigned_abs()).filter(|five| *five < 1 << 64) else {
                return false;
            };
            let (mut decimal, mut half) = (u128::from(digits), u128::from(half));
            *(if exponent < 0 { &mut half } else { &mut decimal }) *= five;
            let (of_decimal, of_half) = (decimal.trailing_zeros(), half.trailing_zeros());
            decimal != 0
                && decimal >> of_decimal == half >> of_half
                && exponent + of_decimal as i32 == power + of_half as i32
        })
    }
}

/// From the fewest digits that Rust's reader takes for a number, and a way to round it to some behind the first
/// that reads back as it: the fewest that only this number is nearest to, as PostgreSQL writes it. Rust also
/// takes those of a number halfway to the next one, which whoever reads them rounds to even. Where two are as
/// near, as 0.2 and 0.3 are to a quarter that needs no more digits, the even one is meant.
fn settled(
    shortest: String,
    binary: &Binary,
    digits_max: usize,
    rounded: impl Fn(usize) -> Option<String>,
) -> String {
    let read = |text: &str| {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let behind = digits.len().saturating_sub(1);
        let exponent = exponent.parse().unwrap_or(0) - behind as i32;
        (digits.parse().unwrap_or(0), behind, exponent)
    };
    let (digits, behind, exponent) = read(&shortest);
    if binary.is_halfway(digits, exponent) {
        let inside = |text: &String| {
            let (digits, _, exponent) = read(text);
            !binary.is_halfway(digits, exponent)
        };
        return (behind + 1..=digits_max).filter_map(rounded).find(inside).unwrap_or(shortest);
    }
    let tie = exponent <= 0 && binary.exact_decimals() == 1 - exponent;
    let even = if tie { rounded(behind) } else { None };
    even.unwrap_or(shortest)
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
        check(1e23, "9.999999999999999e+22");
        check(9.5e22, "9.5e+22");
        check(2.0f64.powi(-24), "5.960464477539063e-08");
        check(5e-324, "5e-324");
        check(2.2250738585072014e-308, "2.2250738585072014e-308");
        check(f64::MAX, "1.7976931348623157e+308");
        check(123_456_789_012_345_680.0, "1.2345678901234568e+17");
        let mut out = String::new();
        write_f32(1_234_567.0, &mut out).unwrap();
        assert_eq!(out, "1.234567e+06");
        let singles = [
            (-2_249_999_872.0, "-2.2499999e+09"),
            (33_555_512.0, "3.3555512e+07"),
            (0.1, "0.1"),
            (385.0 / 256.0, "1.5039062"),
            (0.0, "0"),
            (1e-45, "1e-45"),
            (f32::MAX, "3.4028235e+38"),
        ];
        for (x, text) in singles {
            let mut out = String::new();
            write_f32(x, &mut out).unwrap();
            assert_eq!(out, text);
        }
    }
}
