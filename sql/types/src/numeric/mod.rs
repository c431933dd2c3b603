//! Exact decimal numbers to PostgreSQL's limits: 131072 digits before the decimal point, 16383
//! after it, NaN and both infinities.
//!
//! A value is `mantissa · 10^-scale`, where `scale` is PostgreSQL's display scale: `1.50` keeps
//! its zero. Almost every number an application stores fits an `i64` mantissa, which lives
//! inline (16 bytes with its scale) and whose arithmetic never allocates; the rest is a shared
//! big integer. A mantissa that fits the small form is always in it, so each (value, scale)
//! has one representation.
//!
//! Equality, order and hash are by value, as PostgreSQL's: `1.0 = 1.00`, and NaN equals itself
//! and follows everything else.

mod arithmetic;
mod encoding;
mod text;
mod transcendental;

use std::cmp::Ordering;
use std::sync::Arc;

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

use crate::error::{Result, SqlError, SqlState};
use crate::interrupt;

/// Most decimal digits before the point (PostgreSQL's NUMERIC_WEIGHT_MAX in digits).
const INTEGER_DIGITS_MAX: u64 = 131_072;
/// Largest display scale.
pub const SCALE_MAX: u16 = 16_383;

/// An exact decimal.
#[derive(Clone)]
pub struct Numeric(Repr);

#[derive(Clone)]
enum Repr {
    Small { mantissa: i64, scale: u16 },
    Big(Arc<Big>),
    NaN,
    Infinity,
    NegativeInfinity,
}

#[derive(Clone)]
struct Big {
    mantissa: BigInt,
    scale: u16,
}

const _: () = assert!(size_of::<Numeric>() <= 16, "numerics are copied through registers");

const POW10: [i64; 19] = {
    let mut table = [1i64; 19];
    let mut i = 1;
    while i < 19 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// 10^n, if it fits.
fn pow10_i128(n: u32) -> Option<i128> {
    if n <= 38 { Some(10i128.pow(n)) } else { None }
}

/// 10^n.
fn pow10(n: u32) -> BigInt {
    num_traits::pow(BigInt::from(10), n as usize)
}

/// Before work on a number of so many bits that takes the square of its length: many of them after one
/// another take long, and nobody else looks between two.
#[inline]
fn steps_for(bits: u64) -> Result<()> {
    let words = bits / 64;
    interrupt::steps((words + words * words / 16) as usize)
}

fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// Decimal digits of |m|; zero has none.
fn digits_i128(m: u128) -> u32 {
    m.checked_ilog10().map_or(0, |n| n + 1)
}

/// Decimal digits of |m|; zero has none.
fn digits_big(m: &BigInt) -> u64 {
    if m.is_zero() {
        return 0;
    }
    // An estimate from the bit length, low by at most one.
    let bits = m.bits();
    let estimate = ((bits - 1) as f64 * std::f64::consts::LOG10_2) as u64;
    let mut digits = estimate.max(1);
    let magnitude = m.abs();
    let mut limit = pow10(digits as u32);
    while magnitude >= limit {
        limit *= 10;
        digits += 1;
    }
    digits
}

impl Numeric {
    pub const ZERO: Numeric = Numeric(Repr::Small { mantissa: 0, scale: 0 });
    pub const ONE: Numeric = Numeric(Repr::Small { mantissa: 1, scale: 0 });
    pub const NAN: Numeric = Numeric(Repr::NaN);
    pub const INFINITY: Numeric = Numeric(Repr::Infinity);
    pub const NEGATIVE_INFINITY: Numeric = Numeric(Repr::NegativeInfinity);

    /// `mantissa · 10^-scale`; scales beyond [`SCALE_MAX`] are the caller's error.
    #[inline]
    pub const fn from_scaled(mantissa: i64, scale: u16) -> Numeric {
        Numeric(Repr::Small { mantissa, scale })
    }

    /// `mantissa · 10^-scale` of any size.
    #[inline]
    pub fn from_scaled_i128(mantissa: i128, scale: u16) -> Numeric {
        match i64::try_from(mantissa) {
            Ok(mantissa) => Numeric::from_scaled(mantissa, scale),
            Err(_) => Numeric(Repr::Big(Arc::new(Big { mantissa: BigInt::from(mantissa), scale }))),
        }
    }

    fn from_big(mantissa: BigInt, scale: u16) -> Numeric {
        match mantissa.to_i64() {
            Some(mantissa) => Numeric::from_scaled(mantissa, scale),
            None => Numeric(Repr::Big(Arc::new(Big { mantissa, scale }))),
        }
    }

    /// As [`Numeric::from_big`], refusing what PostgreSQL's format cannot hold.
    fn checked_big(mantissa: BigInt, scale: u32) -> Result<Numeric> {
        steps_for(mantissa.bits())?;
        let Ok(short) = u16::try_from(scale) else { return Err(overflow()) };
        // bits / 3.4 over-estimates the digits: most values skip the exact count.
        if short > SCALE_MAX
            || (mantissa.bits() * 10 / 33 > INTEGER_DIGITS_MAX + u64::from(scale)
                && digits_big(&mantissa) > INTEGER_DIGITS_MAX + u64::from(scale))
        {
            return Err(overflow());
        }
        Ok(Numeric::from_big(mantissa, short))
    }

    /// The value as `mantissa · 10^-scale` with an inline mantissa, if it is small.
    #[inline]
    pub fn as_small(&self) -> Option<(i64, u16)> {
        match self.0 {
            Repr::Small { mantissa, scale } => Some((mantissa, scale)),
            _ => None,
        }
    }

    /// About how many digits it has; none where there are few.
    pub(crate) fn digits_about(&self) -> usize {
        match &self.0 {
            Repr::Big(big) => (big.mantissa.bits() / 4) as usize,
            _ => 0,
        }
    }

    /// The mantissa at exactly this scale, if the value has no digits beyond it and fits:
    /// how a `numeric(p,s)` column of up to 18 digits is stored.
    #[inline]
    pub fn to_scaled(&self, scale: u16) -> Option<i64> {
        let (mantissa, own) = self.as_small()?;
        if own == scale {
            return Some(mantissa);
        }
        if own < scale {
            return mantissa.checked_mul(*POW10.get(usize::from(scale - own))?);
        }
        let divisor = *POW10.get(usize::from(own - scale))?;
        (mantissa % divisor == 0).then_some(mantissa / divisor)
    }

    /// Digits after the decimal point, as displayed. Zero for NaN and infinities.
    pub fn scale(&self) -> u16 {
        match &self.0 {
            Repr::Small { scale, .. } => *scale,
            Repr::Big(big) => big.scale,
            _ => 0,
        }
    }

    #[inline]
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }

    pub fn is_infinite(&self) -> bool {
        matches!(self.0, Repr::Infinity | Repr::NegativeInfinity)
    }

    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small { .. } | Repr::Big(_))
    }

    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Small { mantissa: 0, .. })
    }

    /// -1, 0 or 1; NaN counts as positive (it sorts last).
    pub fn signum(&self) -> i32 {
        match &self.0 {
            Repr::Small { mantissa, .. } => mantissa.signum() as i32,
            Repr::Big(big) => match big.mantissa.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
            Repr::NaN | Repr::Infinity => 1,
            Repr::NegativeInfinity => -1,
        }
    }

    /// Mantissa and scale of a finite value.
    fn parts(&self) -> Option<(BigInt, u16)> {
        match &self.0 {
            Repr::Small { mantissa, scale } => Some((BigInt::from(*mantissa), *scale)),
            Repr::Big(big) => Some((big.mantissa.clone(), big.scale)),
            _ => None,
        }
    }

    /// Where the value stands among the special ones: -∞, finite, ∞, NaN.
    fn class(&self) -> i8 {
        match self.0 {
            Repr::NegativeInfinity => 0,
            Repr::Small { .. } | Repr::Big(_) => 1,
            Repr::Infinity => 2,
            Repr::NaN => 3,
        }
    }

    /// The exponent of the first nonzero decimal digit (3 for 1234, -2 for 0.05); `None` for
    /// zero and special values.
    fn exponent(&self) -> Option<i64> {
        let (digits, scale) = match &self.0 {
            Repr::Small { mantissa, scale } => {
                (u64::from(digits_i128(u128::from(mantissa.unsigned_abs()))), *scale)
            }
            Repr::Big(big) => (digits_big(&big.mantissa), big.scale),
            _ => return None,
        };
        (digits > 0).then(|| digits as i64 - i64::from(scale) - 1)
    }

    /// The exponent of the first nonzero decimal digit; `None` for zero and special values.
    pub fn leading_exponent(&self) -> Option<i64> {
        self.exponent()
    }

    /// `self · 10^by`, exactly, at whatever scale that takes.
    pub fn shift_point(&self, by: i64) -> Numeric {
        let Some((mantissa, scale)) = self.parts() else { return self.clone() };
        let scale = i64::from(scale) - by;
        if scale >= 0 {
            // The caller rounds: a scale beyond the format's is only on the way there.
            let excess = (scale - i64::from(SCALE_MAX)).max(0) as u32;
            return Numeric::from_big(mantissa / pow10(excess), scale.min(i64::from(SCALE_MAX)) as u16);
        }
        Numeric::from_big(mantissa * pow10((-scale) as u32), 0)
    }

    /// The value rounded half away from zero to an integer, if that fits.
    fn to_integer(&self) -> Option<i64> {
        self.round(0).ok()?.as_small().map(|(mantissa, _)| mantissa)
    }

    /// The nearest `i64`, halves away from zero; 22003 outside the range, 0A000 for NaN.
    pub fn to_i64(&self) -> Result<i64> {
        if let Some((mantissa, 0)) = self.as_small() {
            return Ok(mantissa);
        }
        self.check_integer_source("bigint")?;
        self.to_integer().ok_or_else(|| out_of_range("bigint"))
    }

    /// The nearest `i32`.
    pub fn to_i32(&self) -> Result<i32> {
        self.check_integer_source("integer")?;
        self.to_integer().and_then(|n| n.to_i32()).ok_or_else(|| out_of_range("integer"))
    }

    /// The nearest `i16`.
    pub fn to_i16(&self) -> Result<i16> {
        self.check_integer_source("smallint")?;
        self.to_integer().and_then(|n| n.to_i16()).ok_or_else(|| out_of_range("smallint"))
    }

    fn check_integer_source(&self, target: &str) -> Result<()> {
        let what = match self.0 {
            Repr::NaN => "NaN",
            Repr::Infinity | Repr::NegativeInfinity => "infinity",
            _ => return Ok(()),
        };
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to {target}")))
    }

    /// The nearest double, ±infinity beyond its range.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            Repr::NaN => f64::NAN,
            Repr::Infinity => f64::INFINITY,
            Repr::NegativeInfinity => f64::NEG_INFINITY,
            // Both operands are exact doubles, so the quotient is correctly rounded.
            Repr::Small { mantissa, scale } if mantissa.unsigned_abs() < 1 << 53 && *scale <= 15 => {
                *mantissa as f64 / POW10[usize::from(*scale)] as f64
            }
            _ => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// The decimal PostgreSQL makes of a double: 15 significant digits.
    pub fn from_f64(value: f64) -> Numeric {
        Numeric::from_float(value, 14)
    }

    /// The decimal PostgreSQL makes of a single: 6 significant digits.
    pub fn from_f32(value: f32) -> Numeric {
        Numeric::from_float(f64::from(value), 5)
    }

    fn from_float(value: f64, decimals: usize) -> Numeric {
        if value.is_nan() {
            return Numeric::NAN;
        }
        if value.is_infinite() {
            return if value > 0.0 { Numeric::INFINITY } else { Numeric::NEGATIVE_INFINITY };
        }
        let text = format!("{value:.decimals$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        // As printf's %g: no trailing zeros.
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        format!("{mantissa}e{exponent}").parse().unwrap_or(Numeric::NAN)
    }

    /// Coerces to `numeric(precision, scale)` (22003 if it does not fit).
    pub fn with_typmod(&self, typmod: i32) -> Result<Numeric> {
        if typmod < 4 {
            return Ok(self.clone());
        }
        let (precision, scale) = crate::type_table::numeric_typmod(typmod);
        // Money on its way into its column: already at the column's scale, and short enough.
        if let Repr::Small { mantissa, scale: own } = self.0
            && let Some(up) = usize::try_from(scale).ok().and_then(|s| s.checked_sub(usize::from(own)))
            && let (Some(factor), Some(limit)) = (POW10.get(up), POW10.get(precision as usize))
            && let Some(scaled) = mantissa.checked_mul(*factor)
            && scaled.unsigned_abs() < limit.unsigned_abs()
        {
            return Ok(Numeric::from_scaled(scaled, scale as u16));
        }
        let field_overflow = |detail: String| {
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").with_detail(detail)
        };
        if !self.is_finite() {
            return if self.is_nan() {
                Ok(self.clone())
            } else {
                Err(field_overflow(format!(
                    "A field with precision {precision}, scale {scale} cannot hold an infinite value."
                )))
            };
        }
        let rounded = self.round(scale)?;
        let digits = rounded.exponent().map_or(i64::MIN, |e| e + 1);
        let limit = i64::from(precision - scale);
        if digits > limit {
            let bound = if limit == 0 { "1".to_owned() } else { format!("10^{limit}") };
            return Err(field_overflow(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
            )));
        }
        Ok(rounded)
    }

    /// The same value without trailing zeros after the point (`trim_scale`).
    pub fn trim_scale(&self) -> Numeric {
        match self.min_scale() {
            Some(scale) if scale < self.scale() => {
                self.round(i32::from(scale)).unwrap_or_else(|_| self.clone())
            }
            _ => self.clone(),
        }
    }

    /// The smallest scale that holds the value exactly (`min_scale`).
    pub fn min_scale(&self) -> Option<u16> {
        match &self.0 {
            Repr::Small { mantissa: 0, .. } => Some(0),
            Repr::Small { mantissa, scale } => {
                let (mut mantissa, mut scale) = (*mantissa, *scale);
                while scale > 0 && mantissa % 10 == 0 {
                    mantissa /= 10;
                    scale -= 1;
                }
                Some(scale)
            }
            Repr::Big(big) => {
                let text = big.mantissa.to_string();
                let zeros = text.bytes().rev().take_while(|b| *b == b'0').count();
                Some(big.scale.saturating_sub(zeros.min(usize::from(SCALE_MAX)) as u16))
            }
            _ => None,
        }
    }
}

fn out_of_range(target: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{target} out of range"))
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Self {
        Numeric::from_scaled(value, 0)
    }
}

impl From<i32> for Numeric {
    fn from(value: i32) -> Self {
        Numeric::from_scaled(i64::from(value), 0)
    }
}

impl From<i128> for Numeric {
    fn from(value: i128) -> Self {
        Numeric::from_scaled_i128(value, 0)
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (&Repr::Small { mantissa: a, scale: sa }, &Repr::Small { mantissa: b, scale: sb }) =
            (&self.0, &other.0)
        {
            if sa == sb {
                return a.cmp(&b);
            }
            let (up_a, up_b) = (u32::from(sb.saturating_sub(sa)), u32::from(sa.saturating_sub(sb)));
            // A mantissa has at most 19 digits: 19 more still fit.
            if up_a.max(up_b) <= 19 {
                return (i128::from(a) * 10i128.pow(up_a)).cmp(&(i128::from(b) * 10i128.pow(up_b)));
            }
        }
        let (ca, cb) = (self.class(), other.class());
        if ca != cb || ca != 1 {
            return ca.cmp(&cb);
        }
        let by_sign = self.signum().cmp(&other.signum());
        if by_sign != Ordering::Equal || self.signum() == 0 {
            return by_sign;
        }
        let by_exponent = self.exponent().cmp(&other.exponent());
        if by_exponent != Ordering::Equal {
            return if self.signum() > 0 { by_exponent } else { by_exponent.reverse() };
        }
        let ((a, sa), (b, sb)) = match (self.parts(), other.parts()) {
            (Some(a), Some(b)) => (a, b),
            _ => return Ordering::Equal,
        };
        let scale = sa.max(sb);
        (a * pow10(u32::from(scale - sa))).cmp(&(b * pow10(u32::from(scale - sb))))
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl std::hash::Hash for Numeric {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match &self.trim_scale().0 {
            // An integer hashes as one, so that cross-type hash joins work.
            Repr::Small { mantissa, scale: 0 } => mantissa.hash(state),
            Repr::Small { mantissa, scale } => (*mantissa, *scale).hash(state),
            Repr::Big(big) => (&big.mantissa, big.scale).hash(state),
            other => (std::mem::discriminant(other), 0x6e75u16).hash(state),
        }
    }
}

impl std::fmt::Debug for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
