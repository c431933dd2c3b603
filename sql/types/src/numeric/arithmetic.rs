//! Addition to remainder, rounding: with PostgreSQL's result scales (numeric.c).

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};

use super::{
    Numeric, POW10, Repr, SCALE_MAX, digits_big, digits_i128, division_by_zero, pow10, pow10_i128, steps_for,
};
use crate::error::Result;
use crate::interrupt;

/// Digits a quotient has at least (NUMERIC_MIN_SIG_DIGITS).
pub(super) const SIGNIFICANT_DIGITS_MIN: i64 = 16;
/// Largest scale arithmetic chooses by itself (NUMERIC_MAX_DISPLAY_SCALE).
pub(super) const RESULT_SCALE_MAX: i64 = 1000;

/// `n / d`, halves away from zero; `d` positive.
fn div_round_i128(n: i128, d: i128) -> i128 {
    let (q, r) = (n / d, n % d);
    if r.unsigned_abs() >= d.unsigned_abs() - r.unsigned_abs() { q + n.signum() } else { q }
}

/// `n / d`, halves away from zero.
pub(super) fn div_round(n: &BigInt, d: &BigInt) -> BigInt {
    let (q, r) = n.div_rem(d);
    if (&r + &r).abs() >= d.abs() {
        if n.is_negative() == d.is_negative() { q + 1 } else { q - 1 }
    } else {
        q
    }
}

/// Numbers of more bits are divided in steps between which the statement can be ended.
const GCD_AT_ONCE_BITS: u64 = 1 << 16;

/// The greatest common divisor, which is not negative.
fn greatest_common_divisor(mut a: BigInt, mut b: BigInt) -> Result<BigInt> {
    // The one of two that is long alone, too: what `gcd` does goes through it bit by bit.
    while a.bits().max(b.bits()) > GCD_AT_ONCE_BITS && !b.is_zero() {
        interrupt::steps(a.bits() as usize / 8)?;
        let rest = &a % &b;
        a = std::mem::replace(&mut b, rest);
    }
    Ok(a.gcd(&b))
}

impl Numeric {
    /// `self + other`, at the larger scale.
    #[inline]
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let (&Repr::Small { mantissa: a, scale: sa }, &Repr::Small { mantissa: b, scale: sb }) =
            (&self.0, &other.0)
        {
            if sa == sb
                && let Some(sum) = a.checked_add(b)
            {
                return Ok(Numeric::from_scaled(sum, sa));
            }
            if sa.abs_diff(sb) <= 18 {
                let scale = sa.max(sb);
                let sum = i128::from(a) * i128::from(POW10[usize::from(scale - sa)])
                    + i128::from(b) * i128::from(POW10[usize::from(scale - sb)]);
                return Ok(Numeric::from_scaled_i128(sum, scale));
            }
        }
        self.add_slow(other)
    }

    #[cold]
    fn add_slow(&self, other: &Numeric) -> Result<Numeric> {
        let (Some((a, sa)), Some((b, sb))) = (self.parts(), other.parts()) else {
            return Ok(match (&self.0, &other.0) {
                (Repr::NaN, _) | (_, Repr::NaN) => Numeric::NAN,
                (Repr::Infinity, Repr::NegativeInfinity) | (Repr::NegativeInfinity, Repr::Infinity) => {
                    Numeric::NAN
                }
                (Repr::Infinity | Repr::NegativeInfinity, _) => self.clone(),
                _ => other.clone(),
            });
        };
        let scale = sa.max(sb);
        let sum = a * pow10(u32::from(scale - sa)) + b * pow10(u32::from(scale - sb));
        Numeric::checked_big(sum, u32::from(scale))
    }

    /// `self - other`, at the larger scale.
    #[inline]
    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        if let (&Repr::Small { mantissa: a, scale: sa }, &Repr::Small { mantissa: b, scale: sb }) =
            (&self.0, &other.0)
            && sa == sb
            && let Some(difference) = a.checked_sub(b)
        {
            return Ok(Numeric::from_scaled(difference, sa));
        }
        self.add(&other.neg())
    }

    /// `-self`.
    pub fn neg(&self) -> Numeric {
        match &self.0 {
            Repr::Small { mantissa, scale } => Numeric::from_scaled_i128(-i128::from(*mantissa), *scale),
            Repr::Big(big) => Numeric::from_big(-&big.mantissa, big.scale),
            Repr::NaN => Numeric::NAN,
            Repr::Infinity => Numeric::NEGATIVE_INFINITY,
            Repr::NegativeInfinity => Numeric::INFINITY,
        }
    }

    /// `|self|`.
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 { self.neg() } else { self.clone() }
    }

    /// `self * other`; scales add up.
    #[inline]
    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (&Repr::Small { mantissa: a, scale: sa }, &Repr::Small { mantissa: b, scale: sb }) =
            (&self.0, &other.0)
        {
            let scale = u32::from(sa) + u32::from(sb);
            if scale <= u32::from(SCALE_MAX) {
                let scale = scale as u16;
                return Ok(match a.checked_mul(b) {
                    Some(product) => Numeric::from_scaled(product, scale),
                    None => Numeric::from_scaled_i128(i128::from(a) * i128::from(b), scale),
                });
            }
        }
        self.mul_slow(other)
    }

    #[cold]
    fn mul_slow(&self, other: &Numeric) -> Result<Numeric> {
        let (Some((a, sa)), Some((b, sb))) = (self.parts(), other.parts()) else {
            if self.is_nan() || other.is_nan() || self.is_zero() || other.is_zero() {
                return Ok(Numeric::NAN);
            }
            return Ok(if self.signum() == other.signum() {
                Numeric::INFINITY
            } else {
                Numeric::NEGATIVE_INFINITY
            });
        };
        let scale = u32::from(sa) + u32::from(sb);
        let product = a * b;
        if scale > u32::from(SCALE_MAX) {
            let excess = pow10(scale - u32::from(SCALE_MAX));
            return Numeric::checked_big(div_round(&product, &excess), u32::from(SCALE_MAX));
        }
        Numeric::checked_big(product, scale)
    }

    /// Weight and value of the first base-10000 digit, on which PostgreSQL's choice of a
    /// quotient's scale rests.
    fn leading_digit(&self) -> (i64, i64) {
        let Some(exponent) = self.exponent() else { return (0, 0) };
        let weight = exponent.div_euclid(4);
        let wanted = exponent.rem_euclid(4) + 1;
        let leading = match &self.0 {
            Repr::Small { mantissa, .. } => {
                let magnitude = mantissa.unsigned_abs();
                let have = i64::from(digits_i128(u128::from(magnitude)));
                if have > wanted {
                    (magnitude / POW10[(have - wanted) as usize] as u64) as i64
                } else {
                    magnitude as i64 * POW10[(wanted - have) as usize]
                }
            }
            Repr::Big(big) => {
                let text = big.mantissa.magnitude().to_string();
                text[..wanted as usize].parse().unwrap_or(1)
            }
            _ => 0,
        };
        (weight, leading)
    }

    /// `self + other` without the limits of values, for sums on their way: what comes of them is
    /// divided before anybody sees it.
    pub(crate) fn add_unlimited(&self, other: &Numeric) -> Result<Numeric> {
        let is_short = self.as_small().is_some() && other.as_small().is_some();
        if is_short && self.scale().abs_diff(other.scale()) <= 18 {
            return self.add(other);
        }
        let (Some((a, sa)), Some((b, sb))) = (self.parts(), other.parts()) else {
            return self.add(other);
        };
        steps_for(a.bits().max(b.bits()))?;
        let scale = sa.max(sb);
        let sum = a * pow10(u32::from(scale - sa)) + b * pow10(u32::from(scale - sb));
        Ok(Numeric::from_big(sum, scale))
    }

    /// `self * other` with all its digits, as [`Numeric::add_unlimited`].
    pub(crate) fn mul_unlimited(&self, other: &Numeric) -> Result<Numeric> {
        let (Some((a, sa)), Some((b, sb))) = (self.parts(), other.parts()) else {
            return self.mul(other);
        };
        steps_for(a.bits().max(b.bits()))?;
        match sa.checked_add(sb) {
            Some(scale) => Ok(Numeric::from_big(a * b, scale)),
            None => self.mul(other),
        }
    }

    /// The scale of `self / other` (select_div_scale).
    pub(super) fn quotient_scale(&self, other: &Numeric) -> u16 {
        let ((weight_a, first_a), (weight_b, first_b)) = (self.leading_digit(), other.leading_digit());
        let mut weight = weight_a - weight_b;
        if first_a <= first_b {
            weight -= 1;
        }
        (SIGNIFICANT_DIGITS_MIN - weight * 4)
            .max(i64::from(self.scale()))
            .max(i64::from(other.scale()))
            .clamp(0, RESULT_SCALE_MAX) as u16
    }

    /// `self / other` (22012 on zero).
    pub fn div(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.div_special(other)? {
            return Ok(special);
        }
        let scale = self.quotient_scale(other);
        self.div_at(other, u32::from(scale), true)
    }

    /// Integer quotient towards zero (`div(a, b)`).
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.div_special(other)? {
            return Ok(special);
        }
        self.div_at(other, 0, false)
    }

    /// Answers of division where an operand is not finite; 22012 for a zero divisor.
    fn div_special(&self, other: &Numeric) -> Result<Option<Numeric>> {
        if self.is_nan() || other.is_nan() {
            return Ok(Some(Numeric::NAN));
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        Ok(match (self.is_infinite(), other.is_infinite()) {
            (true, true) => Some(Numeric::NAN),
            (true, false) => Some(if self.signum() == other.signum() {
                Numeric::INFINITY
            } else {
                Numeric::NEGATIVE_INFINITY
            }),
            (false, true) => Some(Numeric::ZERO),
            (false, false) => None,
        })
    }

    /// The quotient of finite values at a given scale, rounded or cut.
    pub(super) fn div_at(&self, other: &Numeric, scale: u32, round: bool) -> Result<Numeric> {
        let up = i64::from(scale) + i64::from(other.scale()) - i64::from(self.scale());
        if let (&Repr::Small { mantissa: a, .. }, &Repr::Small { mantissa: b, .. }) = (&self.0, &other.0) {
            let a = i128::from(a) * i128::from(b.signum());
            let b = i128::from(b).abs();
            let (numerator, denominator) = if up >= 0 {
                (pow10_i128(up as u32).and_then(|p| a.checked_mul(p)), Some(b))
            } else {
                (Some(a), u32::try_from(-up).ok().and_then(pow10_i128).and_then(|p| b.checked_mul(p)))
            };
            if let (Some(numerator), Some(denominator)) = (numerator, denominator) {
                let quotient =
                    if round { div_round_i128(numerator, denominator) } else { numerator / denominator };
                return Ok(Numeric::from_scaled_i128(quotient, scale as u16));
            }
        }
        let (Some((mut a, _)), Some((mut b, _))) = (self.parts(), other.parts()) else {
            return Ok(Numeric::NAN);
        };
        if up >= 0 {
            a *= pow10(up as u32);
        } else {
            b *= pow10((-up) as u32);
        }
        Numeric::checked_big(if round { div_round(&a, &b) } else { a / b }, scale)
    }

    /// `self % other`, with the sign of `self`.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        if self.is_infinite() {
            return Ok(Numeric::NAN);
        }
        if other.is_infinite() {
            return Ok(self.clone());
        }
        let scale = self.scale().max(other.scale());
        if let (&Repr::Small { mantissa: a, scale: sa }, &Repr::Small { mantissa: b, scale: sb }) =
            (&self.0, &other.0)
            && sa.abs_diff(sb) <= 18
        {
            let a = i128::from(a) * i128::from(POW10[usize::from(scale - sa)]);
            let b = i128::from(b) * i128::from(POW10[usize::from(scale - sb)]);
            return Ok(Numeric::from_scaled_i128(a % b, scale));
        }
        let (Some((a, sa)), Some((b, sb))) = (self.parts(), other.parts()) else { return Ok(Numeric::NAN) };
        let remainder = (a * pow10(u32::from(scale - sa))) % (b * pow10(u32::from(scale - sb)));
        Numeric::checked_big(remainder, u32::from(scale))
    }

    /// Rounded to `scale` digits after the point, halves away from zero; the result is shown
    /// with max(scale, 0) digits. Negative scales round before the point.
    pub fn round(&self, scale: i32) -> Result<Numeric> {
        self.rescale(scale, true)
    }

    /// As [`Numeric::round`], towards zero.
    pub fn trunc(&self, scale: i32) -> Result<Numeric> {
        self.rescale(scale, false)
    }

    fn rescale(&self, scale: i32, round: bool) -> Result<Numeric> {
        let scale = scale.clamp(-(super::INTEGER_DIGITS_MAX as i32) - 2, i32::from(SCALE_MAX));
        let own = i32::from(self.scale());
        match &self.0 {
            Repr::Small { mantissa, .. } => {
                if scale >= own {
                    let up = (scale - own) as u32;
                    if up <= 19 {
                        return Ok(Numeric::from_scaled_i128(
                            i128::from(*mantissa) * 10i128.pow(up),
                            scale as u16,
                        ));
                    }
                    return Numeric::checked_big(BigInt::from(*mantissa) * pow10(up), scale as u32);
                }
                let down = (own - scale) as u32;
                if down > 20 {
                    return Ok(Numeric::from_scaled(0, scale.max(0) as u16));
                }
                let divisor = 10i128.pow(down);
                let quotient = if round {
                    div_round_i128(i128::from(*mantissa), divisor)
                } else {
                    i128::from(*mantissa) / divisor
                };
                Ok(if scale >= 0 {
                    Numeric::from_scaled_i128(quotient, scale as u16)
                } else {
                    Numeric::from_scaled_i128(quotient * 10i128.pow((-scale) as u32), 0)
                })
            }
            Repr::Big(big) => {
                if scale >= own {
                    return Numeric::checked_big(&big.mantissa * pow10((scale - own) as u32), scale as u32);
                }
                let down = (own - scale) as u32;
                if u64::from(down) > digits_big(&big.mantissa) + 1 {
                    return Ok(Numeric::from_scaled(0, scale.max(0) as u16));
                }
                let divisor = pow10(down);
                let quotient =
                    if round { div_round(&big.mantissa, &divisor) } else { &big.mantissa / divisor };
                if scale >= 0 {
                    Numeric::checked_big(quotient, scale as u32)
                } else {
                    Numeric::checked_big(quotient * pow10((-scale) as u32), 0)
                }
            }
            _ => Ok(self.clone()),
        }
    }

    /// The smallest integer not below.
    pub fn ceil(&self) -> Result<Numeric> {
        let cut = self.trunc(0)?;
        if self.is_finite() && cut < *self { cut.add(&Numeric::ONE) } else { Ok(cut) }
    }

    /// The largest integer not above.
    pub fn floor(&self) -> Result<Numeric> {
        let cut = self.trunc(0)?;
        if self.is_finite() && cut > *self { cut.sub(&Numeric::ONE) } else { Ok(cut) }
    }

    /// Greatest common divisor, at the larger scale.
    pub fn gcd(&self, other: &Numeric) -> Result<Numeric> {
        let (Some((a, sa)), Some((b, sb))) = (self.parts(), other.parts()) else { return Ok(Numeric::NAN) };
        let scale = sa.max(sb);
        let (a, b) = (a * pow10(u32::from(scale - sa)), b * pow10(u32::from(scale - sb)));
        Numeric::checked_big(greatest_common_divisor(a, b)?, u32::from(scale))
    }

    /// Least common multiple, at the larger scale.
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        let (Some((a, sa)), Some((b, sb))) = (self.parts(), other.parts()) else { return Ok(Numeric::NAN) };
        let scale = sa.max(sb);
        let (a, b) = (a * pow10(u32::from(scale - sa)), b * pow10(u32::from(scale - sb)));
        if a.is_zero() || b.is_zero() {
            return Ok(Numeric::from_scaled(0, scale));
        }
        let divisor = greatest_common_divisor(a.clone(), b.clone())?;
        Numeric::checked_big((a / divisor * b).abs(), u32::from(scale))
    }

    /// `n!`, up to 32177 (beyond it the format overflows).
    pub fn factorial(n: i64) -> Result<Numeric> {
        if n < 0 {
            return Err(crate::error::SqlError::new(
                crate::error::SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "factorial of a negative number is undefined",
            ));
        }
        if n > 32_177 {
            return Err(super::overflow());
        }
        let mut product = BigInt::from(1);
        for factor in 2..=n {
            interrupt::steps(product.bits() as usize / 64 + 1)?;
            product *= factor;
        }
        Numeric::checked_big(product, 0)
    }
}
