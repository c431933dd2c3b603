//! Integer arithmetic: overflow is 22003, division by zero 22012.

use num_integer::Integer;

use super::Eval;
use super::args::*;
use crate::datum::Datum;

/// The four operations of one pair of widths, at the wider one.
macro_rules! arithmetic {
    ($($pl:literal $mi:literal $mul:literal $div:literal = $a:ident, $b:ident, $wide:ty, $variant:ident, $name:literal;)*) => {
        &[$(
            ($pl, |_, v| Ok(Datum::$variant(<$wide>::from($a(v, 0)?).checked_add(<$wide>::from($b(v, 1)?)).ok_or_else(|| out_of_range($name))?))),
            ($mi, |_, v| Ok(Datum::$variant(<$wide>::from($a(v, 0)?).checked_sub(<$wide>::from($b(v, 1)?)).ok_or_else(|| out_of_range($name))?))),
            ($mul, |_, v| Ok(Datum::$variant(<$wide>::from($a(v, 0)?).checked_mul(<$wide>::from($b(v, 1)?)).ok_or_else(|| out_of_range($name))?))),
            ($div, |_, v| {
                let divisor = <$wide>::from($b(v, 1)?);
                if divisor == 0 {
                    return Err(division_by_zero());
                }
                Ok(Datum::$variant(<$wide>::from($a(v, 0)?).checked_div(divisor).ok_or_else(|| out_of_range($name))?))
            }),
        )*]
    };
}

pub(super) const ARITHMETIC: &[(&str, Eval)] = arithmetic! {
    "int4pl" "int4mi" "int4mul" "int4div" = int4, int4, i32, Int4, "integer";
    "int8pl" "int8mi" "int8mul" "int8div" = int8, int8, i64, Int8, "bigint";
    "int2pl" "int2mi" "int2mul" "int2div" = int2, int2, i16, Int2, "smallint";
    "int24pl" "int24mi" "int24mul" "int24div" = int2, int4, i32, Int4, "integer";
    "int42pl" "int42mi" "int42mul" "int42div" = int4, int2, i32, Int4, "integer";
    "int28pl" "int28mi" "int28mul" "int28div" = int2, int8, i64, Int8, "bigint";
    "int82pl" "int82mi" "int82mul" "int82div" = int8, int2, i64, Int8, "bigint";
    "int48pl" "int48mi" "int48mul" "int48div" = int4, int8, i64, Int8, "bigint";
    "int84pl" "int84mi" "int84mul" "int84div" = int8, int4, i64, Int8, "bigint";
};

/// What each single width has: remainder, signs, bits.
macro_rules! one_width {
    ($($modulo:literal $um:literal $up:literal $abs:literal $and:literal $or:literal $xor:literal $not:literal $shl:literal $shr:literal
        = $read:ident, $ty:ty, $variant:ident, $name:literal;)*) => {
        &[$(
            ($modulo, |_, v| {
                let divisor = $read(v, 1)?;
                if divisor == 0 {
                    return Err(division_by_zero());
                }
                // The smallest value over -1 has remainder 0, not an overflow.
                Ok(Datum::$variant($read(v, 0)?.checked_rem(divisor).unwrap_or(0)))
            }),
            ($um, |_, v| Ok(Datum::$variant($read(v, 0)?.checked_neg().ok_or_else(|| out_of_range($name))?))),
            ($up, |_, v| Ok(Datum::$variant($read(v, 0)?))),
            ($abs, |_, v| Ok(Datum::$variant($read(v, 0)?.checked_abs().ok_or_else(|| out_of_range($name))?))),
            ($and, |_, v| Ok(Datum::$variant($read(v, 0)? & $read(v, 1)?))),
            ($or, |_, v| Ok(Datum::$variant($read(v, 0)? | $read(v, 1)?))),
            ($xor, |_, v| Ok(Datum::$variant($read(v, 0)? ^ $read(v, 1)?))),
            ($not, |_, v| Ok(Datum::$variant(!$read(v, 0)?))),
            // Shifts wrap at the width, as the machine does beneath PostgreSQL.
            ($shl, |_, v| Ok(Datum::$variant($read(v, 0)?.wrapping_shl(int4(v, 1)? as u32)))),
            ($shr, |_, v| Ok(Datum::$variant($read(v, 0)?.wrapping_shr(int4(v, 1)? as u32)))),
        )*]
    };
}

pub(super) const ONE_WIDTH: &[(&str, Eval)] = one_width! {
    "int2mod" "int2um" "int2up" "int2abs" "int2and" "int2or" "int2xor" "int2not" "int2shl" "int2shr" = int2, i16, Int2, "smallint";
    "int4mod" "int4um" "int4up" "int4abs" "int4and" "int4or" "int4xor" "int4not" "int4shl" "int4shr" = int4, i32, Int4, "integer";
    "int8mod" "int8um" "int8up" "int8abs" "int8and" "int8or" "int8xor" "int8not" "int8shl" "int8shr" = int8, i64, Int8, "bigint";
};

pub(super) const OTHERS: &[(&str, Eval)] = &[
    // C promotes smallint to int before it shifts; later entries take the place of earlier ones.
    ("int2shl", |_, v| Ok(Datum::Int2(i32::from(int2(v, 0)?).wrapping_shl(int4(v, 1)? as u32) as i16))),
    ("int2shr", |_, v| Ok(Datum::Int2(i32::from(int2(v, 0)?).wrapping_shr(int4(v, 1)? as u32) as i16))),
    ("int4inc", |_, v| Ok(Datum::Int4(int4(v, 0)?.checked_add(1).ok_or_else(|| out_of_range("integer"))?))),
    ("int8inc", |_, v| Ok(Datum::Int8(int8(v, 0)?.checked_add(1).ok_or_else(|| out_of_range("bigint"))?))),
    ("int8dec", |_, v| Ok(Datum::Int8(int8(v, 0)?.checked_sub(1).ok_or_else(|| out_of_range("bigint"))?))),
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
