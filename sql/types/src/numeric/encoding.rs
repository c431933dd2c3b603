//! Numerics as bytes: the wire's binary format, a compact form for rows, and a form whose byte
//! order is numeric order, for keys.

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, Zero};

use super::{Numeric, Repr, SCALE_MAX, pow10};
use crate::error::{Result, SqlError, SqlState};
use crate::interrupt;
use crate::io::{too_long, too_short};

fn invalid() -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, "invalid external \"numeric\" value")
}

impl Numeric {
    /// numeric_send: base-10000 digits.
    pub fn write_binary(&self, out: &mut Vec<u8>) {
        let header = |out: &mut Vec<u8>, count: i16, weight: i16, sign: u16, scale: u16| {
            out.extend_from_slice(&count.to_be_bytes());
            out.extend_from_slice(&weight.to_be_bytes());
            out.extend_from_slice(&sign.to_be_bytes());
            out.extend_from_slice(&scale.to_be_bytes());
        };
        let Some((mantissa, scale)) = self.parts() else {
            // PostgreSQL reads a scale out of the bits that tell an infinity from NaN, and sends it.
            let (sign, scale) = match self.0 {
                Repr::Infinity => (0xD000, 0x20),
                Repr::NegativeInfinity => (0xF000, 0x20),
                _ => (0xC000, 0),
            };
            return header(out, 0, 0, sign, scale);
        };
        // Pad the fraction to whole groups of four digits.
        let pad = (4 - scale % 4) % 4;
        let digits = (mantissa.abs() * pow10(u32::from(pad))).magnitude().to_radix_be(10);
        let fraction_groups = i32::from((scale + pad) / 4);
        let mut groups: Vec<i16> = Vec::with_capacity(digits.len() / 4 + 1);
        let first = (digits.len() % 4 + 3) % 4 + 1;
        let (head, tail) = digits.split_at(first.min(digits.len()));
        let value = |chunk: &[u8]| chunk.iter().fold(0i16, |acc, d| acc * 10 + i16::from(*d));
        groups.push(value(head));
        groups.extend(tail.chunks(4).map(value));
        let mut weight = groups.len() as i32 - fraction_groups - 1;
        let leading = groups.iter().take_while(|g| **g == 0).count();
        weight -= leading as i32;
        groups.drain(..leading);
        while groups.last() == Some(&0) {
            groups.pop();
        }
        if groups.is_empty() {
            weight = 0;
        }
        let sign = if mantissa.is_negative() { 0x4000 } else { 0 };
        header(out, groups.len() as i16, weight as i16, sign, scale);
        for group in groups {
            out.extend_from_slice(&group.to_be_bytes());
        }
    }

    /// numeric_recv.
    pub fn read_binary(bytes: &[u8]) -> Result<Numeric> {
        let word = |index: usize| -> Result<u16> {
            let pair = bytes.get(index * 2..index * 2 + 2).ok_or_else(too_short)?;
            Ok(u16::from_be_bytes([pair[0], pair[1]]))
        };
        let wrong = |what: &str| {
            let message = format!("invalid {what} in external \"numeric\" value");
            SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, message)
        };
        let (count, weight, sign) = (word(0)? as usize, word(1)? as i16, word(2)?);
        let special = match sign {
            0xC000 => Some(Numeric::NAN),
            0xD000 => Some(Numeric::INFINITY),
            0xF000 => Some(Numeric::NEGATIVE_INFINITY),
            0 | 0x4000 => None,
            _ => return Err(wrong("sign")),
        };
        let scale = word(3)?;
        if scale > SCALE_MAX {
            return Err(wrong("scale"));
        }
        let mut mantissa = BigInt::zero();
        for index in 0..count {
            // What is there already is multiplied each time.
            interrupt::steps(1 + index / 8)?;
            let group = word(4 + index)?;
            if group >= 10_000 {
                return Err(wrong("digit"));
            }
            mantissa = mantissa * 10_000 + group;
        }
        if bytes.len() > 8 + count * 2 {
            return Err(too_long());
        }
        if let Some(special) = special {
            return Ok(special);
        }
        // The last group stands for 10000^(weight - count + 1).
        let exponent = (i64::from(weight) - count as i64 + 1) * 4 + i64::from(scale);
        let mut value = if exponent >= 0 {
            mantissa * pow10(exponent as u32)
        } else {
            // Digits beyond the scale are dropped, as numeric_recv does.
            mantissa / pow10((-exponent) as u32)
        };
        if sign == 0x4000 {
            value = -value;
        }
        Numeric::checked_big(value, u32::from(scale))
    }

    /// A compact reversible form, display scale included.
    pub fn write_row(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::NaN => out.push(1),
            Repr::NegativeInfinity => out.push(2),
            Repr::Infinity => out.push(3),
            Repr::Small { mantissa, scale } if *scale < 128 => {
                // Short scales share the tag byte; leading sign bytes are left out.
                out.push(0x80 | *scale as u8);
                push_signed(out, *mantissa);
            }
            Repr::Small { mantissa, scale } => {
                out.push(4);
                out.extend_from_slice(&scale.to_le_bytes());
                push_signed(out, *mantissa);
            }
            Repr::Big(big) => {
                out.push(5);
                out.extend_from_slice(&big.scale.to_le_bytes());
                out.extend_from_slice(&big.mantissa.to_signed_bytes_le());
            }
        }
    }

    /// Reads what [`Numeric::write_row`] wrote.
    pub fn read_row(bytes: &[u8]) -> Result<Numeric> {
        let (&tag, rest) = bytes.split_first().ok_or_else(invalid)?;
        Ok(match tag {
            1 => Numeric::NAN,
            2 => Numeric::NEGATIVE_INFINITY,
            3 => Numeric::INFINITY,
            short @ 0x80.. => Numeric::from_scaled(read_signed(rest)?, u16::from(short & 0x7f)),
            4 | 5 => {
                let (scale, rest) = rest.split_first_chunk::<2>().ok_or_else(invalid)?;
                let scale = u16::from_le_bytes(*scale);
                if tag == 4 {
                    Numeric::from_scaled(read_signed(rest)?, scale)
                } else {
                    Numeric::from_big(BigInt::from_signed_bytes_le(rest), scale)
                }
            }
            _ => return Err(invalid()),
        })
    }

    /// Bytes that compare as the values do; equal values (`1.0`, `1.00`) have equal bytes.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        let Some((mantissa, _)) = self.parts() else {
            out.push(match self.0 {
                Repr::NegativeInfinity => 1,
                Repr::Infinity => 5,
                _ => 6,
            });
            return;
        };
        let Some(exponent) = self.exponent() else { return out.push(3) };
        let negative = mantissa.sign() == Sign::Minus;
        out.push(if negative { 2 } else { 4 });
        let start = out.len();
        out.extend_from_slice(&((exponent + (1 << 24)) as u32).to_be_bytes());
        let digits = mantissa.magnitude().to_radix_be(10);
        let significant = digits.len() - digits.iter().rev().take_while(|d| **d == 0).count();
        for pair in digits[..significant].chunks(2) {
            out.push(pair[0] * 10 + pair.get(1).copied().unwrap_or(0) + 1);
        }
        out.push(0);
        if negative {
            for byte in &mut out[start..] {
                *byte = !*byte;
            }
        }
    }
}

fn push_signed(out: &mut Vec<u8>, value: i64) {
    let bytes = value.to_le_bytes();
    let mut length = 8;
    // A dropped byte must be what sign extension of the one before it gives.
    while length > 1 && bytes[length - 1] == if bytes[length - 2] & 0x80 != 0 { 0xff } else { 0 } {
        length -= 1;
    }
    out.extend_from_slice(&bytes[..length]);
}

fn read_signed(bytes: &[u8]) -> Result<i64> {
    let last = *bytes.last().ok_or_else(invalid)?;
    if bytes.len() > 8 {
        return Err(invalid());
    }
    let mut wide = [if last & 0x80 != 0 { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Ok(i64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: &[&str] = &[
        "-Infinity",
        "-123456789012345678901234567890.123",
        "-1000",
        "-999.99",
        "-128",
        "-1.5",
        "-1",
        "-0.001",
        "0",
        "0.00",
        "0.00001",
        "0.5",
        "1",
        "1.0",
        "1.00001",
        "9",
        "10",
        "127",
        "128",
        "255.5",
        "10000",
        "100000000",
        "9223372036854775807",
        "9223372036854775808",
        "1e300",
        "Infinity",
        "NaN",
    ];

    #[test]
    fn every_form_reads_back() {
        for text in VALUES {
            let value: Numeric = text.parse().unwrap();
            let (mut wire, mut row) = (Vec::new(), Vec::new());
            value.write_binary(&mut wire);
            value.write_row(&mut row);
            assert_eq!(Numeric::read_binary(&wire).unwrap().to_string(), value.to_string());
            assert_eq!(Numeric::read_row(&row).unwrap().to_string(), value.to_string());
        }
    }

    #[test]
    fn keys_sort_as_values() {
        let values: Vec<Numeric> = VALUES.iter().map(|t| t.parse().unwrap()).collect();
        let key = |n: &Numeric| {
            let mut out = Vec::new();
            n.write_key(&mut out);
            out
        };
        for a in &values {
            for b in &values {
                assert_eq!(key(a).cmp(&key(b)), a.cmp(b), "{a} {b}");
            }
        }
    }

    #[test]
    fn what_lies_behind_a_special_value_is_read_as_behind_others() {
        let special = |count: u16, digits: &[u8]| {
            let header = [count.to_be_bytes(), [0, 0], 0xC000_u16.to_be_bytes(), [0, 0]];
            let wire: Vec<u8> = header.as_flattened().iter().chain(digits).copied().collect();
            Numeric::read_binary(&wire).map(|value| value.to_string())
        };
        assert_eq!(special(0, &[]).unwrap(), "NaN");
        assert_eq!(special(1, &[0, 1]).unwrap(), "NaN");
        assert!(special(0, &[0]).is_err());
        assert!(special(1, &[]).is_err());
    }
}
