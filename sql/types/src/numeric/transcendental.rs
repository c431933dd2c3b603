//! Roots, exponentials, logarithms and powers, in fixed-point big integers, with PostgreSQL's
//! result scales. Working precision exceeds the result's by guard digits, then rounds once.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use super::arithmetic::{RESULT_SCALE_MAX, SIGNIFICANT_DIGITS_MIN, div_round};
use super::{Numeric, division_by_zero, overflow, pow10};
use crate::error::{Result, SqlError, SqlState};
use crate::interrupt;

/// As long as numeric.c writes them: the scales of results hang on what they round to.
#[allow(clippy::approx_constant)]
const LOG10_E: f64 = 0.434294481903252;
#[allow(clippy::approx_constant)]
const LN_10: f64 = 2.302585092994046;

/// exp_var's own limits, either way.
const EXPONENT_MAX: f64 = 6000.0;

fn argument(state: SqlState, message: &str) -> SqlError {
    SqlError::new(state, message)
}

impl Numeric {
    fn result_scale(&self, decimal_weight: i64) -> i64 {
        (SIGNIFICANT_DIGITS_MIN - decimal_weight).max(i64::from(self.scale())).clamp(0, RESULT_SCALE_MAX)
    }

    /// Square root (2201F below zero).
    pub fn sqrt(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.signum() < 0 {
            return Err(argument(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "cannot take square root of a negative number",
            ));
        }
        let weight = self.exponent().map_or(0, |e| e.div_euclid(4));
        // numeric_sqrt's guess of the root's decimal weight.
        let root_weight = if weight >= 0 { (weight + 1) * 2 - 1 } else { 1 - (1 - weight * 4) / 2 };
        self.sqrt_at(self.result_scale(root_weight) as u32)
    }

    /// The square root of a number that is not negative, at a given scale.
    pub(crate) fn sqrt_at(&self, target: u32) -> Result<Numeric> {
        let Some((mantissa, scale)) = self.parts() else { return Ok(self.clone()) };
        let up = 2 * (target + 1) as i64 - i64::from(scale);
        let scaled = if up >= 0 { mantissa * pow10(up as u32) } else { mantissa / pow10((-up) as u32) };
        Numeric::checked_big(div_round(&scaled.sqrt(), &BigInt::from(10)), target)
    }

    /// `e^self`.
    pub fn exp(&self) -> Result<Numeric> {
        if !self.is_finite() {
            return Ok(if self.signum() < 0 { Numeric::ZERO } else { self.clone() });
        }
        let value = self.to_f64();
        let weight = (value * LOG10_E).clamp(-2000.0, 2000.0) as i64;
        self.exp_within(self.result_scale(weight) as u32)
    }

    /// `e^self` at a given scale, within exp_var's limits.
    fn exp_within(&self, scale: u32) -> Result<Numeric> {
        let value = self.to_f64();
        if value.abs() < EXPONENT_MAX {
            return self.exp_at(scale);
        }
        if value > 0.0 { Err(overflow()) } else { Ok(Numeric::from_scaled(0, scale as u16)) }
    }

    /// `e^self` at a given scale.
    fn exp_at(&self, scale: u32) -> Result<Numeric> {
        let weight = (self.to_f64() * LOG10_E).max(0.0) as u32;
        let precision = scale + weight + 12;
        let x = self.fixed(precision);
        let value = exp_fixed(&x, precision)?;
        Numeric::checked_big(div_round(&value, &pow10(precision - scale)), scale)
    }

    /// The value as an integer multiple of 10^-precision.
    fn fixed(&self, precision: u32) -> BigInt {
        let Some((mantissa, scale)) = self.parts() else { return BigInt::zero() };
        let scale = u32::from(scale);
        if precision >= scale {
            mantissa * pow10(precision - scale)
        } else {
            div_round(&mantissa, &pow10(scale - precision))
        }
    }

    /// numeric.c's estimate_ln_dweight: it looks at eight digits at most.
    fn ln_weight(&self) -> i64 {
        let value = self.to_f64();
        if (0.9..=1.1).contains(&value) {
            return self.sub(&Numeric::ONE).ok().and_then(|x| x.exponent()).unwrap_or_default();
        }
        let (Some(exponent), Some((mantissa, scale))) = (self.exponent(), self.parts()) else { return 0 };
        // PostgreSQL's digits are groups of four.
        let weight = (exponent.div_euclid(4) - 1) * 4;
        let shift = -weight - i64::from(scale);
        let digits = if shift >= 0 {
            mantissa.abs() * pow10(shift as u32)
        } else {
            mantissa.abs() / pow10((-shift) as u32)
        };
        let digits = digits.to_f64().unwrap_or(1.0);
        (digits.ln() + weight as f64 * LN_10).abs().log10() as i64
    }

    fn check_log(&self) -> Result<()> {
        match self.signum() {
            0 => Err(argument(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of zero")),
            -1 => Err(argument(
                SqlState::INVALID_ARGUMENT_FOR_LOGARITHM,
                "cannot take logarithm of a negative number",
            )),
            _ => Ok(()),
        }
    }

    /// Natural logarithm (2201E at or below zero).
    pub fn ln(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        self.check_log()?;
        if self.is_infinite() {
            return Ok(self.clone());
        }
        let scale = self.result_scale(self.ln_weight()) as u32;
        self.ln_at(scale)
    }

    fn ln_at(&self, scale: u32) -> Result<Numeric> {
        let precision = scale + 14;
        // Bring the argument to [1, 10) so that fixed point keeps its digits.
        let exponent = self.exponent().unwrap_or(0);
        let Some((mantissa, own)) = self.parts() else { return Ok(Numeric::NAN) };
        let shift = i64::from(precision) - i64::from(own) - exponent;
        let x = if shift >= 0 {
            mantissa * pow10(shift as u32)
        } else {
            div_round(&mantissa, &pow10((-shift) as u32))
        };
        let mut value = ln_fixed(&x, precision)?;
        if exponent != 0 {
            value += ln_fixed(&(pow10(precision) * 10), precision)? * exponent;
        }
        Numeric::checked_big(div_round(&value, &pow10(precision - scale)), scale)
    }

    /// Logarithm of `self` to `base`.
    pub fn log(&self, base: &Numeric) -> Result<Numeric> {
        if self.is_nan() || base.is_nan() {
            return Ok(Numeric::NAN);
        }
        base.check_log()?;
        self.check_log()?;
        if self.is_infinite() || base.is_infinite() {
            return Ok(match (base.is_infinite(), self.is_infinite()) {
                (true, true) => Numeric::NAN,
                (true, false) => Numeric::ZERO,
                _ => Numeric::INFINITY,
            });
        }
        let (base_weight, own_weight) = (base.ln_weight(), self.ln_weight());
        let weight = own_weight - base_weight;
        let scale = base.result_scale(weight).max(i64::from(self.scale())).clamp(0, RESULT_SCALE_MAX);
        let ln_base_scale = (scale + weight - base_weight + 8).max(0);
        let ln_own_scale = (scale + weight - own_weight + 8).max(0);
        let ln_base = base.ln_at(ln_base_scale as u32)?;
        if ln_base.is_zero() {
            return Err(division_by_zero());
        }
        self.ln_at(ln_own_scale as u32)?.div_at(&ln_base, scale as u32, true)
    }

    /// `self ^ exponent`.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !exponent.is_finite() {
            return self.power_special(exponent);
        }
        let whole = exponent.trunc(0)?;
        let is_integer = whole == *exponent;
        if self.is_zero() && exponent.signum() < 0 {
            return Err(argument(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "zero raised to a negative power is undefined",
            ));
        }
        if self.signum() < 0 && !is_integer {
            return Err(argument(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        if is_integer && let Ok(n) = exponent.to_i32() {
            let scale = self.result_scale(0).max(SIGNIFICANT_DIGITS_MIN);
            return self.power_int(n, scale as u32);
        }
        if self.is_zero() {
            return Ok(Numeric::from_scaled(0, SIGNIFICANT_DIGITS_MIN as u16));
        }
        let base = self.abs();
        let ln_weight = base.ln_weight();
        // How many digits the result has is estimated by a logarithm of eight.
        let rough = base.ln_times(exponent, 8 - ln_weight)?.to_f64();
        if rough.abs() > EXPONENT_MAX / 3.0 * 3.01 {
            return if rough > 0.0 {
                Err(overflow())
            } else {
                Ok(Numeric::from_scaled(0, RESULT_SCALE_MAX as u16))
            };
        }
        let weight = (rough * LOG10_E) as i64;
        let scale = self.result_scale(weight).max(i64::from(exponent.scale())).clamp(0, RESULT_SCALE_MAX);
        let significant = (scale + weight).max(0);
        let magnitude = base.ln_times(exponent, significant - ln_weight + 8)?.exp_within(scale as u32)?;
        let odd = whole.rem(&Numeric::from(2))? != Numeric::ZERO;
        Ok(if self.signum() < 0 && odd { magnitude.neg() } else { magnitude })
    }

    /// `ln(self) · factor`, where both the logarithm and the product are rounded to a scale, as in
    /// PostgreSQL's power_var: what is lost there may decide the result's last digit.
    fn ln_times(&self, factor: &Numeric, scale: i64) -> Result<Numeric> {
        let scale = scale.max(0);
        self.ln_at(scale as u32)?.mul(factor)?.round(scale as i32)
    }

    fn power_int(&self, n: i32, scale: u32) -> Result<Numeric> {
        if n == 0 {
            return Numeric::ONE.round(scale as i32);
        }
        if self.is_zero() {
            return Ok(Numeric::from_scaled(0, scale as u16));
        }
        let Some((mantissa, own)) = self.parts() else { return Ok(Numeric::NAN) };
        // Decimal magnitude of the result, to refuse what cannot be held before computing it.
        let magnitude = f64::from(n) * self.log10_estimate();
        if magnitude > 131_072.0 {
            return Err(overflow());
        }
        if magnitude + 1.0 < -(RESULT_SCALE_MAX as f64) {
            return Ok(Numeric::from_scaled(0, scale as u16));
        }
        if self.abs() == Numeric::ONE {
            let one = Numeric::ONE.round(scale as i32)?;
            return Ok(if self.signum() < 0 && n % 2 != 0 { one.neg() } else { one });
        }
        let count = n.unsigned_abs();
        let result_digits = (f64::from(scale) + magnitude.max(0.0)) as u64 + 20;
        if u64::from(count) * (mantissa.bits() / 3 + 1) <= 40 * result_digits.max(400) {
            // Exact, then one division or rounding.
            let power = num_traits::pow(mantissa, count as usize);
            let own = u64::from(own) * u64::from(count);
            return if n > 0 {
                rescale_big(power, own, scale)
            } else {
                let numerator = pow10(scale) * pow10(own as u32);
                Numeric::checked_big(div_round(&numerator, &power), scale)
            };
        }
        // Long products go through the exponential, with the digits the result shows.
        let digits = (magnitude.max(0.0) as i64 + i64::from(scale)).max(0);
        let ln_scale = digits - self.abs().ln_weight() + 14 + i64::from(count.ilog10());
        let product = self.abs().ln_at(ln_scale.max(0) as u32)?.mul(&Numeric::from(n))?;
        let result = product.exp_at(scale)?;
        Ok(if self.signum() < 0 && n % 2 != 0 { result.neg() } else { result })
    }

    /// log10 of the magnitude, from its first digits; finite values but zero.
    fn log10_estimate(&self) -> f64 {
        let double = self.abs().to_f64();
        if double.is_normal() {
            return double.log10();
        }
        self.exponent().unwrap_or(0) as f64
    }

    fn power_special(&self, exponent: &Numeric) -> Result<Numeric> {
        // POSIX: 1^NaN and NaN^0 are 1.
        if exponent.is_zero() || *self == Numeric::ONE {
            return Ok(Numeric::ONE);
        }
        if self.is_nan() || exponent.is_nan() {
            return Ok(Numeric::NAN);
        }
        if exponent.is_infinite() {
            let magnitude = self.abs();
            if self.is_zero() && exponent.signum() < 0 {
                return Err(argument(
                    SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                    "zero raised to a negative power is undefined",
                ));
            }
            return Ok(match magnitude.cmp(&Numeric::ONE) {
                std::cmp::Ordering::Equal => Numeric::ONE,
                order if (order == std::cmp::Ordering::Greater) == (exponent.signum() > 0) => {
                    Numeric::INFINITY
                }
                _ => Numeric::ZERO,
            });
        }
        if exponent.signum() < 0 {
            return Ok(Numeric::ZERO);
        }
        let odd = exponent.rem(&Numeric::from(2))?.abs() == Numeric::ONE;
        if self.signum() < 0 && exponent.trunc(0)? != *exponent {
            return Err(argument(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        Ok(if self.signum() < 0 && odd { Numeric::NEGATIVE_INFINITY } else { Numeric::INFINITY })
    }
}

fn rescale_big(mantissa: BigInt, own: u64, scale: u32) -> Result<Numeric> {
    let target = u64::from(scale);
    if own >= target {
        Numeric::checked_big(div_round(&mantissa, &pow10((own - target) as u32)), scale)
    } else {
        Numeric::checked_big(mantissa * pow10((target - own) as u32), scale)
    }
}

/// e^x for fixed-point x: halve until small, Taylor, square back.
fn exp_fixed(x: &BigInt, precision: u32) -> Result<BigInt> {
    let negative = x.is_negative();
    let halvings = {
        let value = x.abs() / pow10(precision);
        (value.bits() as u32) + 8
    };
    let guard = halvings + 10;
    let working = precision + guard;
    let one = pow10(working);
    let reduced = (x.abs() * pow10(guard)) >> halvings;
    let mut term = one.clone();
    let mut sum = one.clone();
    let mut n = 1u32;
    while !term.is_zero() {
        interrupt::check()?;
        term = term * &reduced / &one / n;
        sum += &term;
        n += 1;
    }
    for _ in 0..halvings {
        interrupt::check()?;
        sum = &sum * &sum / &one;
    }
    if negative {
        sum = &one * &one / sum;
    }
    Ok(div_round(&sum, &pow10(guard)))
}

/// ln x for fixed-point x > 0: roots until near one, then 2·artanh((x-1)/(x+1)).
fn ln_fixed(x: &BigInt, precision: u32) -> Result<BigInt> {
    let guard = 12;
    let working = precision + guard;
    let one = pow10(working);
    let mut y = x * pow10(guard);
    let mut doublings = 0u32;
    let (low, high) = (&one * 99 / 100, &one * 101 / 100);
    while (y < low || y > high) && doublings < 40 {
        interrupt::check()?;
        y = (&y * &one).sqrt();
        doublings += 1;
    }
    let z = (&y - &one) * &one / (&y + &one);
    let square = &z * &z / &one;
    let mut power = z.clone();
    let mut sum = BigInt::zero();
    let mut n = 1u32;
    while !power.is_zero() {
        interrupt::check()?;
        sum += &power / n;
        power = power * &square / &one;
        n += 2;
    }
    sum <<= doublings + 1;
    Ok(div_round(&sum, &pow10(guard)))
}
