//! Numerics against arithmetic on big integers: values small and large, so that the inline form,
//! the shared form and the passage between them are all met.

use archipel_sql::numeric::Numeric;
use num_bigint::BigInt;
use proptest::prelude::*;

/// Digits and a scale, as text: the model's value is `digits · 10^-scale`.
fn values() -> impl Strategy<Value = (BigInt, u32)> {
    let digits = prop_oneof![
        4 => any::<i32>().prop_map(BigInt::from),
        2 => any::<i64>().prop_map(BigInt::from),
        2 => any::<i128>().prop_map(BigInt::from),
        1 => "-?[1-9][0-9]{60,120}".prop_map(|text| text.parse().expect("digits")),
        1 => Just(BigInt::from(0)),
    ];
    (digits, prop_oneof![4 => 0u32..6, 1 => 0u32..60])
}

fn pow10(n: u32) -> BigInt {
    num_traits::pow(BigInt::from(10), n as usize)
}

fn numeric((digits, scale): &(BigInt, u32)) -> Numeric {
    format!("{digits}e-{scale}").parse().expect("a number")
}

/// The model's value at a scale not below its own.
fn at(value: &(BigInt, u32), scale: u32) -> BigInt {
    &value.0 * pow10(scale - value.1)
}

/// What a numeric holds: digits and scale, read from its text.
fn held(value: &Numeric) -> (BigInt, u32) {
    let text = value.to_string();
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len() as u32);
    (text.replace('.', "").parse().expect("digits"), scale)
}

proptest! {
    #[test]
    fn text_reads_back(a in values()) {
        let value = numeric(&a);
        prop_assert_eq!(held(&value), a);
        let again: Numeric = value.to_string().parse().expect("its own text");
        prop_assert_eq!(again.to_string(), value.to_string());
    }

    #[test]
    fn sums_and_differences_are_exact(a in values(), b in values()) {
        let scale = a.1.max(b.1);
        let (x, y) = (numeric(&a), numeric(&b));
        prop_assert_eq!(held(&x.add(&y).expect("in range")), (at(&a, scale) + at(&b, scale), scale));
        prop_assert_eq!(held(&x.sub(&y).expect("in range")), (at(&a, scale) - at(&b, scale), scale));
    }

    #[test]
    fn products_are_exact(a in values(), b in values()) {
        let product = numeric(&a).mul(&numeric(&b)).expect("in range");
        prop_assert_eq!(held(&product), (&a.0 * &b.0, a.1 + b.1));
    }

    #[test]
    fn quotients_are_nearest(a in values(), b in values()) {
        prop_assume!(b.0 != BigInt::from(0));
        let (quotient, scale) = held(&numeric(&a).div(&numeric(&b)).expect("no zero"));
        // |a/b - q| <= half a unit in the last place, cleared of fractions.
        let exact = &a.0 * pow10(b.1 + scale);
        let shown = &quotient * &b.0 * pow10(a.1);
        let error: BigInt = (exact - shown) * 2;
        let unit = &b.0 * pow10(a.1);
        prop_assert!(error.magnitude() <= unit.magnitude());
    }

    #[test]
    fn quotient_and_remainder_make_the_dividend(a in values(), b in values()) {
        prop_assume!(b.0 != BigInt::from(0));
        let (x, y) = (numeric(&a), numeric(&b));
        let whole = x.div_trunc(&y).expect("no zero");
        let back = whole.mul(&y).expect("in range").add(&x.rem(&y).expect("no zero")).expect("in range");
        prop_assert_eq!(back, x);
    }

    #[test]
    fn order_and_equality_are_by_value(a in values(), b in values()) {
        let scale = a.1.max(b.1);
        prop_assert_eq!(numeric(&a).cmp(&numeric(&b)), at(&a, scale).cmp(&at(&b, scale)));
        let padded = (at(&a, a.1 + 3), a.1 + 3);
        prop_assert_eq!(numeric(&a), numeric(&padded));
        let key = |n: &Numeric| { let mut out = Vec::new(); n.write_key(&mut out); out };
        prop_assert_eq!(key(&numeric(&a)), key(&numeric(&padded)));
        prop_assert_eq!(key(&numeric(&a)).cmp(&key(&numeric(&b))), at(&a, scale).cmp(&at(&b, scale)));
    }

    #[test]
    fn forms_on_the_wire_and_in_rows_read_back(a in values()) {
        let value = numeric(&a);
        let (mut wire, mut row) = (Vec::new(), Vec::new());
        value.write_binary(&mut wire);
        value.write_row(&mut row);
        prop_assert_eq!(Numeric::read_binary(&wire).expect("its own bytes").to_string(), value.to_string());
        prop_assert_eq!(Numeric::read_row(&row).expect("its own bytes").to_string(), value.to_string());
    }

    #[test]
    fn modifiers_round_and_bound(a in values(), precision in 1i32..25, scale in -3i32..12) {
        let typmod = archipel_sql::type_table::make_numeric_typmod(precision, scale);
        let value = numeric(&a);
        let rounded = value.round(scale).expect("in range");
        let limit: Numeric = format!("1e{}", precision - scale).parse().expect("a power of ten");
        match value.with_typmod(typmod) {
            Ok(fitted) => {
                prop_assert!(rounded.abs() < limit);
                prop_assert_eq!(fitted.to_string(), rounded.to_string());
            }
            Err(_) => prop_assert!(rounded.abs() >= limit),
        }
    }
}
