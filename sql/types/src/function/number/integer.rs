//! Integer arithmetic: overflow is 22003, division by zero 22012.
//!
//! It stands here once: the functions, the executor's closures and the machine of loops all compute by
//! [`Arithmetic::apply`].

use num_integer::Integer;

use crate::datum::Datum;
use crate::error::{Result, SqlError};
use crate::function::Eval;
use crate::function::args::*;
use crate::function::intrinsic::{Arithmetic, IntegerWidth, Intrinsic};
use crate::types::Oid;

impl IntegerWidth {
    /// The width of a type's integers; `None` for other types.
    pub fn of(ty: Oid) -> Option<IntegerWidth> {
        match ty {
            Oid::INT2 => Some(IntegerWidth::Two),
            Oid::INT4 => Some(IntegerWidth::Four),
            Oid::INT8 => Some(IntegerWidth::Eight),
            _ => None,
        }
    }

    /// A value, if it has room; 22003 if not.
    #[inline(always)]
    pub fn fit(self, value: i64) -> Result<i64> {
        let fits = match self {
            IntegerWidth::Two => i64::from(value as i16) == value,
            IntegerWidth::Four => i64::from(value as i32) == value,
            IntegerWidth::Eight => true,
        };
        if fits { Ok(value) } else { Err(self.out_of_range()) }
    }

    /// `-value`.
    #[inline(always)]
    pub fn negate(self, value: i64) -> Result<i64> {
        match value.checked_neg() {
            Some(negated) => self.fit(negated),
            None => Err(self.out_of_range()),
        }
    }

    /// A value that has room as one of this width.
    #[inline(always)]
    pub fn datum(self, value: i64) -> Datum {
        match self {
            IntegerWidth::Two => Datum::Int2(value as i16),
            IntegerWidth::Four => Datum::Int4(value as i32),
            IntegerWidth::Eight => Datum::Int8(value),
        }
    }

    #[cold]
    fn out_of_range(self) -> SqlError {
        out_of_range(match self {
            IntegerWidth::Two => "smallint",
            IntegerWidth::Four => "integer",
            IntegerWidth::Eight => "bigint",
        })
    }
}

impl Arithmetic {
    /// The operation over integers that are no wider than its result: 22003 where that has no room, 22012
    /// for a division by zero. Where operation and width are constants, no more than that one is compiled.
    #[inline(always)]
    pub fn apply(self, width: IntegerWidth, left: i64, right: i64) -> Result<i64> {
        if matches!(self, Arithmetic::Divide | Arithmetic::Remainder) && right == 0 {
            return Err(division_by_zero());
        }
        if width == IntegerWidth::Eight {
            let result = match self {
                Arithmetic::Add => left.checked_add(right),
                Arithmetic::Subtract => left.checked_sub(right),
                Arithmetic::Multiply => left.checked_mul(right),
                Arithmetic::Divide => left.checked_div(right),
                // The smallest value over -1 leaves 0.
                Arithmetic::Remainder => Some(left.wrapping_rem(right)),
            };
            return result.ok_or_else(|| width.out_of_range());
        }
        // 64 bits have room for whatever comes of 32.
        width.fit(match self {
            Arithmetic::Add => left.wrapping_add(right),
            Arithmetic::Subtract => left.wrapping_sub(right),
            Arithmetic::Multiply => left.wrapping_mul(right),
            Arithmetic::Divide => left.wrapping_div(right),
            Arithmetic::Remainder => return Ok(left.wrapping_rem(right)),
        })
    }
}

#[inline(always)]
fn two(operation: Arithmetic, width: IntegerWidth, left: i64, right: i64) -> Result<Datum> {
    Ok(width.datum(operation.apply(width, left, right)?))
}

/// The four operations of one pair of widths, at the wider one.
macro_rules! arithmetic {
    ($($pl:literal $mi:literal $mul:literal $div:literal = $a:ident, $b:ident, $width:ident;)*) => {
        pub(in crate::function) const ARITHMETIC: &[(&str, Eval)] = &[$(
            ($pl, |_, v| two(Arithmetic::Add, IntegerWidth::$width, $a(v, 0)?.into(), $b(v, 1)?.into())),
            ($mi, |_, v| two(Arithmetic::Subtract, IntegerWidth::$width, $a(v, 0)?.into(), $b(v, 1)?.into())),
            ($mul, |_, v| two(Arithmetic::Multiply, IntegerWidth::$width, $a(v, 0)?.into(), $b(v, 1)?.into())),
            ($div, |_, v| two(Arithmetic::Divide, IntegerWidth::$width, $a(v, 0)?.into(), $b(v, 1)?.into())),
        )*];
        pub(in crate::function) const ARITHMETIC_INTRINSICS: &[(&str, Intrinsic)] = &[$(
            ($pl, Intrinsic::Integer(Arithmetic::Add, IntegerWidth::$width)),
            ($mi, Intrinsic::Integer(Arithmetic::Subtract, IntegerWidth::$width)),
            ($mul, Intrinsic::Integer(Arithmetic::Multiply, IntegerWidth::$width)),
            ($div, Intrinsic::Integer(Arithmetic::Divide, IntegerWidth::$width)),
        )*];
    };
}

arithmetic! {
    "int2pl" "int2mi" "int2mul" "int2div" = int2, int2, Two;
    "int4pl" "int4mi" "int4mul" "int4div" = int4, int4, Four;
    "int8pl" "int8mi" "int8mul" "int8div" = int8, int8, Eight;
    "int24pl" "int24mi" "int24mul" "int24div" = int2, int4, Four;
    "int42pl" "int42mi" "int42mul" "int42div" = int4, int2, Four;
    "int28pl" "int28mi" "int28mul" "int28div" = int2, int8, Eight;
    "int82pl" "int82mi" "int82mul" "int82div" = int8, int2, Eight;
    "int48pl" "int48mi" "int48mul" "int48div" = int4, int8, Eight;
    "int84pl" "int84mi" "int84mul" "int84div" = int8, int4, Eight;
}

/// What each single width has: remainder, signs, bits.
macro_rules! one_width {
    ($($modulo:literal $um:literal $up:literal $abs:literal $and:literal $or:literal $xor:literal $not:literal $shl:literal $shr:literal
        = $read:ident, $variant:ident, $width:ident;)*) => {
        pub(in crate::function) const ONE_WIDTH: &[(&str, Eval)] = &[$(
            ($modulo, |_, v| two(Arithmetic::Remainder, IntegerWidth::$width, $read(v, 0)?.into(), $read(v, 1)?.into())),
            ($um, |_, v| Ok(IntegerWidth::$width.datum(IntegerWidth::$width.negate($read(v, 0)?.into())?))),
            ($up, |_, v| Ok(Datum::$variant($read(v, 0)?))),
            ($abs, |_, v| {
                let value = $read(v, 0)?;
                Ok(Datum::$variant(value.checked_abs().ok_or_else(|| IntegerWidth::$width.out_of_range())?))
            }),
            ($and, |_, v| Ok(Datum::$variant($read(v, 0)? & $read(v, 1)?))),
            ($or, |_, v| Ok(Datum::$variant($read(v, 0)? | $read(v, 1)?))),
            ($xor, |_, v| Ok(Datum::$variant($read(v, 0)? ^ $read(v, 1)?))),
            ($not, |_, v| Ok(Datum::$variant(!$read(v, 0)?))),
            // Shifts wrap at the width, as the machine does beneath PostgreSQL.
            ($shl, |_, v| Ok(Datum::$variant($read(v, 0)?.wrapping_shl(int4(v, 1)? as u32)))),
            ($shr, |_, v| Ok(Datum::$variant($read(v, 0)?.wrapping_shr(int4(v, 1)? as u32)))),
        )*];
        pub(in crate::function) const ONE_WIDTH_INTRINSICS: &[(&str, Intrinsic)] = &[$(
            ($modulo, Intrinsic::Integer(Arithmetic::Remainder, IntegerWidth::$width)),
            ($um, Intrinsic::NegateInteger(IntegerWidth::$width)),
        )*];
    };
}

one_width! {
    "int2mod" "int2um" "int2up" "int2abs" "int2and" "int2or" "int2xor" "int2not" "int2shl" "int2shr" = int2, Int2, Two;
    "int4mod" "int4um" "int4up" "int4abs" "int4and" "int4or" "int4xor" "int4not" "int4shl" "int4shr" = int4, Int4, Four;
    "int8mod" "int8um" "int8up" "int8abs" "int8and" "int8or" "int8xor" "int8not" "int8shl" "int8shr" = int8, Int8, Eight;
}

pub(in crate::function) const OTHERS: &[(&str, Eval)] = &[
    // C promotes smallint to int before it shifts; later entries take the place of earlier ones.
    ("int2shl", |_, v| Ok(Datum::Int2(i32::from(int2(v, 0)?).wrapping_shl(int4(v, 1)? as u32) as i16))),
    ("int2shr", |_, v| Ok(Datum::Int2(i32::from(int2(v, 0)?).wrapping_shr(int4(v, 1)? as u32) as i16))),
    ("int4inc", |_, v| two(Arithmetic::Add, IntegerWidth::Four, int4(v, 0)?.into(), 1)),
    ("int8inc", |_, v| two(Arithmetic::Add, IntegerWidth::Eight, int8(v, 0)?, 1)),
    ("int8dec", |_, v| two(Arithmetic::Subtract, IntegerWidth::Eight, int8(v, 0)?, 1)),
    ("int4gcd", |_, v| {
        let gcd = i64::from(int4(v, 0)?).gcd(&i64::from(int4(v, 1)?));
        Ok(Datum::Int4(i32::try_from(gcd).map_err(|_| out_of_range("integer"))?))
    }),
    ("int8gcd", |_, v| {
        let gcd = i128::from(int8(v, 0)?).gcd(&i128::from(int8(v, 1)?));
        Ok(Datum::Int8(i64::try_from(gcd).map_err(|_| out_of_range("bigint"))?))
    }),
    ("int4lcm", |_, v| {
        let lcm = i64::from(int4(v, 0)?).lcm(&i64::from(int4(v, 1)?));
        Ok(Datum::Int4(i32::try_from(lcm.abs()).map_err(|_| out_of_range("integer"))?))
    }),
    ("int8lcm", |_, v| {
        let lcm = i128::from(int8(v, 0)?).lcm(&i128::from(int8(v, 1)?));
        Ok(Datum::Int8(i64::try_from(lcm.abs()).map_err(|_| out_of_range("bigint"))?))
    }),
    ("to_hex32", |_, v| Ok(text_datum(format!("{:x}", int4(v, 0)?)))),
    ("to_hex64", |_, v| Ok(text_datum(format!("{:x}", int8(v, 0)?)))),
];
