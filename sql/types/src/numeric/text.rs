//! Numerics as text.

use std::fmt;
use std::str::FromStr;

use num_bigint::BigInt;

use super::{INTEGER_DIGITS_MAX, Numeric, Repr, overflow, pow10, steps_for};
use crate::error::{SqlError, SqlState};

fn invalid(text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type numeric: \"{text}\""),
    )
}

impl FromStr for Numeric {
    type Err = SqlError;

    /// Reads what numeric_in reads: surrounding blanks, a sign, digits with a point, an
    /// exponent, `NaN` and `[+-]Infinity` in any case.
    fn from_str(text: &str) -> Result<Numeric, SqlError> {
        let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
        let (negative, rest) = match trimmed.as_bytes().first() {
            Some(b'-') => (true, &trimmed[1..]),
            Some(b'+') => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        let bytes = rest.as_bytes();
        if !bytes.first().is_some_and(|b| b.is_ascii_digit() || *b == b'.') {
            return special(rest, negative, rest.len() != trimmed.len()).ok_or_else(|| invalid(text));
        }
        // Mantissa digits accumulate in a u64 while they fit; most numbers end there.
        let mut mantissa: u64 = 0;
        let mut wide: Option<String> = None;
        let mut fraction: i64 = 0;
        let mut digits = 0usize;
        let mut seen_point = false;
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                digit @ b'0'..=b'9' => {
                    digits += 1;
                    fraction += i64::from(seen_point);
                    match &mut wide {
                        Some(text) => text.push(char::from(digit)),
                        None if mantissa < 900_000_000_000_000_000 => {
                            mantissa = mantissa * 10 + u64::from(digit - b'0')
                        }
                        None => wide = Some(format!("{mantissa}{}", char::from(digit))),
                    }
                }
                b'.' if !seen_point => seen_point = true,
                _ => break,
            }
            at += 1;
        }
        if digits == 0 {
            return Err(invalid(text));
        }
        let mut exponent: i64 = 0;
        if at < bytes.len() && matches!(bytes[at], b'e' | b'E') {
            let digits = &rest[at + 1..];
            let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
            if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
                return Err(invalid(text));
            }
            exponent = digits.parse().map_err(|_| invalid(text))?;
            if exponent.abs() >= i64::from(i32::MAX / 2) {
                return Err(invalid(text));
            }
            at = bytes.len();
        }
        if at != bytes.len() {
            return Err(invalid(text));
        }
        let scale = fraction - exponent;
        if scale > i64::from(super::SCALE_MAX) {
            return Err(overflow());
        }
        if let (None, Ok(scale)) = (&wide, u16::try_from(scale)) {
            let signed = mantissa as i64;
            return Ok(Numeric::from_scaled(if negative { -signed } else { signed }, scale));
        }
        let mut value: BigInt = match wide {
            Some(digits) => {
                // Before it is read, which takes the square of its length.
                if digits.len() as i64 - scale > INTEGER_DIGITS_MAX as i64 {
                    return Err(overflow());
                }
                steps_for(digits.len() as u64 * 10 / 3)?;
                digits.parse().map_err(|_| invalid(text))?
            }
            None => BigInt::from(mantissa),
        };
        if negative {
            value = -value;
        }
        if scale < 0 {
            if value == BigInt::ZERO {
                return Ok(Numeric::ZERO);
            }
            if -scale > INTEGER_DIGITS_MAX as i64 {
                return Err(overflow());
            }
            return Numeric::checked_big(value * pow10((-scale) as u32), 0);
        }
        Numeric::checked_big(value, scale as u32)
    }
}

/// NaN and the infinities; a signed NaN is none.
fn special(text: &str, negative: bool, signed: bool) -> Option<Numeric> {
    if text.eq_ignore_ascii_case("nan") && !signed {
        return Some(Numeric::NAN);
    }
    (text.eq_ignore_ascii_case("infinity") || text.eq_ignore_ascii_case("inf")).then_some(if negative {
        Numeric::NEGATIVE_INFINITY
    } else {
        Numeric::INFINITY
    })
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small { mantissa, scale } => {
                let mut buffer = itoa::Buffer::new();
                write_digits(f, *mantissa < 0, buffer.format(mantissa.unsigned_abs()), usize::from(*scale))
            }
            Repr::Big(big) => {
                let digits = big.mantissa.magnitude().to_string();
                write_digits(
                    f,
                    big.mantissa.sign() == num_bigint::Sign::Minus,
                    &digits,
                    usize::from(big.scale),
                )
            }
            Repr::NaN => f.write_str("NaN"),
            Repr::Infinity => f.write_str("Infinity"),
            Repr::NegativeInfinity => f.write_str("-Infinity"),
        }
    }
}

fn write_digits(f: &mut fmt::Formatter<'_>, negative: bool, digits: &str, scale: usize) -> fmt::Result {
    if negative {
        f.write_str("-")?;
    }
    if scale == 0 {
        return f.write_str(digits);
    }
    if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        f.write_str(whole)?;
        f.write_str(".")?;
        return f.write_str(fraction);
    }
    f.write_str("0.")?;
    for _ in digits.len()..scale {
        f.write_str("0")?;
    }
    f.write_str(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let check = |input: &str, output: &str| {
            assert_eq!(input.parse::<Numeric>().map(|n| n.to_string()).as_deref(), Ok(output), "{input}");
        };
        check("0", "0");
        check("-0.00", "0.00");
        check("1.50", "1.50");
        check(" 12e3 ", "12000");
        check("1.5e-3", "0.0015");
        check(".5", "0.5");
        check("5.", "5");
        check("123456789012345678901234567890.5", "123456789012345678901234567890.5");
        check("-9223372036854775808", "-9223372036854775808");
        check("99999999999999999999", "99999999999999999999");
        check("nan", "NaN");
        check("-inf", "-Infinity");
        for bad in ["", "1.2.3", "1e", "abc", "1 2", "-", ".", "-nan"] {
            assert_eq!(
                bad.parse::<Numeric>().map_err(|e| e.state()),
                Err(SqlState::INVALID_TEXT_REPRESENTATION),
                "{bad}"
            );
        }
        assert_eq!(
            "1e131073".parse::<Numeric>().map_err(|e| e.state()),
            Err(SqlState::NUMERIC_VALUE_OUT_OF_RANGE)
        );
    }
}
