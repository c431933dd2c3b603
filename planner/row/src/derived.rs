//! Key bytes of the types whose stored bytes do not sort as their values do: any numeric, intervals,
//! arrays, rows, jsonb and `bpchar` without a length.
//!
//! The engine keeps a row's values as [`super::Codec`] stores them and asks here, whenever such a value
//! stands in a key, for bytes that compare as the type's btree operators do, and are equal for equal
//! values: `1.0` and `1.00`, a month and thirty days, `{"a": 1}` and `{"a": 1.0}`. No part of a
//! value's bytes begins those of another one, so that parts may follow one another.

use archipel_engine::schema::KeyForm;
use archipel_engine::storage::key::set_derived_keys;
use archipel_sql::compare::interval_value;
use archipel_sql::datum::{Array, Datum};
use archipel_sql::json::{Kind, Node};
use archipel_sql::numeric::Numeric;
use archipel_sql::type_kind::Held;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};
use archipel_sql::typmod::without_blanks;

use super::{Codec, encode_bits, encode_inet, encode_numeric, read_generic};
use crate::text::text_of;

/// The stored numeric without its display scale.
const NUMERIC: u8 = 1;
/// Values that say of which kind they are: intervals, arrays and rows.
const GENERIC: u8 = 2;
const JSONB: u8 = 3;
/// Stored texts without the blanks at their ends.
const BLANKS: u8 = 4;

/// How values of a type stand in keys.
pub fn key_form(ty: Type) -> KeyForm {
    let form = match Codec::of(ty) {
        Codec::Numeric => NUMERIC,
        Codec::Jsonb => JSONB,
        Codec::Blanks => BLANKS,
        Codec::Generic | Codec::PaddedArray(_)
            if ty.oid == Oid::INTERVAL
                || ty.oid.held() == Some(Held::Fields)
                || element_of(ty.oid).is_some_and(is_sorted) =>
        {
            GENERIC
        }
        _ => return KeyForm::Stored,
    };
    // An engine that was opened without such keys may get one now.
    install_key_forms();
    KeyForm::Derived(form)
}

/// Whether values of the type may stand in keys.
pub fn in_keys(ty: Type) -> bool {
    Codec::of(ty).ordered() || key_form(ty) != KeyForm::Stored
}

/// Whether an array of such elements has an order.
fn is_sorted(element: Oid) -> bool {
    !matches!(element, Oid::JSON | Oid::JSONPATH | Oid::UNKNOWN | Oid::CSTRING | Oid::REFCURSOR)
        && in_keys(Type::of(element))
}

/// Tells the engine how to make keys. Whoever opens one that may hold such keys does so first.
pub fn install_key_forms() {
    set_derived_keys(derive);
}

fn derive(form: u8, stored: &[u8], key: &mut Vec<u8>) {
    match form {
        NUMERIC => key.extend_from_slice(stored.split_last_chunk::<2>().map_or(stored, |(body, _)| body)),
        GENERIC => {
            let value = read_generic(stored, &mut 0);
            debug_assert!(value.is_some(), "a stored value is whole");
            append_value(&value.unwrap_or(Datum::Null), key);
        }
        JSONB => append_jsonb_text(&text_of(stored), key),
        // As what is stored without them: columns that were keys before the blanks were kept have no other.
        BLANKS => {
            let length = stored.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
            key.extend_from_slice(&stored[..length]);
        }
        _ => unreachable!("forms of keys are made here"),
    }
}

/// Appends a value that is not NULL, or an element of an array.
fn append_value(value: &Datum, key: &mut Vec<u8>) {
    match value {
        Datum::Null => {}
        Datum::Bool(v) => key.push(u8::from(*v)),
        Datum::Int2(v) => key.extend_from_slice(&(*v as u16 ^ (1 << 15)).to_be_bytes()),
        Datum::Int4(v) | Datum::Date(v) => key.extend_from_slice(&(*v as u32 ^ (1 << 31)).to_be_bytes()),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            append_integer(*v, key)
        }
        Datum::TimeTz(v) => append_integer(v.packed(), key),
        Datum::Float4(v) => append_float(f64::from(*v), key),
        Datum::Float8(v) => append_float(*v, key),
        Datum::Numeric(v) => append_numeric(v, key),
        Datum::Text(v) => append_bytes(v.as_bytes(), key),
        Datum::Bpchar(v) => append_bytes(without_blanks(v).as_bytes(), key),
        Datum::Bytea(v) => append_bytes(v, key),
        Datum::Bits(v) => encode_bits(v, key),
        Datum::Jsonb(v) => append_jsonb_text(v, key),
        Datum::Uuid(v) => key.extend_from_slice(v.as_slice()),
        Datum::Inet(v) => encode_inet(v, key),
        Datum::MacAddress(v) => key.extend_from_slice(&v.0),
        Datum::MacAddress8(v) => key.extend_from_slice(&v.0),
        Datum::Oid(v) => key.extend_from_slice(&v.0.to_be_bytes()),
        Datum::Interval(v) => {
            key.extend_from_slice(&(interval_value(v) as u128 ^ (1 << 127)).to_be_bytes());
        }
        Datum::Array(v) => append_array(v, key),
        Datum::Record(fields) => append_fields(fields, key),
    }
}

fn append_integer(value: i64, key: &mut Vec<u8>) {
    key.extend_from_slice(&(value as u64 ^ (1 << 63)).to_be_bytes());
}

/// NaN is equal to itself and greatest, -0 is 0.
fn append_float(value: f64, key: &mut Vec<u8>) {
    let bits = if value.is_nan() { u64::MAX >> 1 } else { (value + 0.0).to_bits() };
    let ordered = if bits >> 63 == 0 { bits | (1 << 63) } else { !bits };
    key.extend_from_slice(&ordered.to_be_bytes());
}

fn append_numeric(value: &Numeric, key: &mut Vec<u8>) {
    encode_numeric(value, key);
    // Without the display scale.
    key.truncate(key.len() - 2);
}

/// Bytes of any length: a prefix comes first.
fn append_bytes(bytes: &[u8], key: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            0 | 1 => key.extend_from_slice(&[1, byte + 1]),
            byte => key.push(*byte),
        }
    }
    key.push(0);
}

/// Elements in turn: fewer come first, and NULL comes behind every value.
fn append_elements(values: &[Datum], key: &mut Vec<u8>) {
    const END: u8 = 0;
    const VALUE: u8 = 1;
    const NULL: u8 = 2;
    for value in values {
        key.push(if value.is_null() { NULL } else { VALUE });
        append_value(value, key);
    }
    key.push(END);
}

/// Fields in turn. Those that a row lacks are NULL: its type may have got them later.
fn append_fields(fields: &[Datum], key: &mut Vec<u8>) {
    const VALUE: u8 = 1;
    const NULL: u8 = 2;
    /// NULL to the end: behind a NULL that a value follows.
    const END: u8 = 3;
    let count = fields.iter().rposition(|field| !field.is_null()).map_or(0, |last| last + 1);
    for field in &fields[..count] {
        key.push(if field.is_null() { NULL } else { VALUE });
        append_value(field, key);
    }
    key.push(END);
}

/// The elements, then what else tells arrays apart (array_cmp).
fn append_array(array: &Array, key: &mut Vec<u8>) {
    append_elements(&array.values, key);
    key.push(array.dimensions.len() as u8);
    for dimension in &array.dimensions {
        key.extend_from_slice(&(dimension.length as u32).to_be_bytes());
    }
    for dimension in &array.dimensions {
        key.extend_from_slice(&(dimension.lower_bound as u32 ^ (1 << 31)).to_be_bytes());
    }
}

/// As [`archipel_sql::json::order::compare`] sorts.
fn append_jsonb_text(text: &str, key: &mut Vec<u8>) {
    match Node::parse(text) {
        // An empty array at the top comes first of all.
        Ok(Node { kind: Kind::Array(items), .. }) if items.is_empty() => key.push(0),
        Ok(node) => append_jsonb(&node, key),
        Err(_) => {
            debug_assert!(false, "jsonb is kept as a canonical text");
            append_bytes(text.as_bytes(), key);
        }
    }
}

fn append_jsonb(node: &Node<'_>, key: &mut Vec<u8>) {
    match &node.kind {
        Kind::Null => key.push(1),
        Kind::String(text) => {
            key.push(2);
            append_bytes(text.as_bytes(), key);
        }
        Kind::Number => {
            key.push(3);
            append_numeric(&node.text.parse().unwrap_or(Numeric::NAN), key);
        }
        Kind::Bool(value) => key.extend_from_slice(&[4, u8::from(*value)]),
        Kind::Array(items) => {
            key.push(5);
            key.extend_from_slice(&(items.len() as u32).to_be_bytes());
            items.iter().for_each(|item| append_jsonb(item, key));
        }
        Kind::Object(fields) => {
            key.push(6);
            key.extend_from_slice(&(fields.len() as u32).to_be_bytes());
            for (name, value) in fields {
                append_bytes(name.as_bytes(), key);
                append_jsonb(value, key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archipel_sql::bit_string::BitString;
    use archipel_sql::compare::compare;
    use archipel_sql::datum::{Dimension, Interval};
    use archipel_sql::network::Inet;
    use proptest::prelude::*;

    use super::*;

    /// The bytes that a value of a type has in keys.
    fn key(value: &Datum, ty: Type) -> Vec<u8> {
        let KeyForm::Derived(form) = key_form(ty) else { panic!("{ty:?} stands in keys as it is stored") };
        let (mut space, mut key) = (Vec::new(), Vec::new());
        let cell = Codec::of(ty).encode(value, &mut space).unwrap();
        let archipel_engine::cell::Cell::Bytes(stored) = cell else { panic!("{cell:?}") };
        derive(form, stored, &mut key);
        key
    }

    fn check(a: &Datum, b: &Datum, ty: Type) {
        assert_eq!(key(a, ty).cmp(&key(b, ty)), compare(a, b), "{a:?} {b:?}");
    }

    fn numeric() -> impl Strategy<Value = Numeric> {
        let special = prop_oneof![Just("NaN"), Just("Infinity"), Just("-Infinity"), Just("0"), Just("0.00")];
        let digits = ("-?[0-9]{1,25}(\\.[0-9]{1,12})?", 0..4usize)
            .prop_map(|(text, zeros)| if text.contains('.') { text + &"0".repeat(zeros) } else { text });
        let small = "-?[0-2](\\.[0-1]{1,3})?".prop_map(|text: String| text);
        prop_oneof![special.prop_map(str::to_owned), digits, small].prop_map(|text| text.parse().unwrap())
    }

    fn interval() -> impl Strategy<Value = Interval> {
        let wide = (any::<i32>(), any::<i32>(), any::<i64>());
        let narrow = (-2..3i32, -60..61i32, (-2..3i64).prop_map(|days| days * 86_400_000_000));
        prop_oneof![wide, narrow].prop_map(|(months, days, microseconds)| Interval {
            months,
            days,
            microseconds,
        })
    }

    fn array(element: Oid, value: impl Strategy<Value = Datum> + 'static) -> impl Strategy<Value = Datum> {
        let element_or_null = prop_oneof![4 => value, 1 => Just(Datum::Null)];
        (proptest::collection::vec(element_or_null, 0..4), -1..2i32, any::<bool>()).prop_map(
            move |(values, lower_bound, nested)| {
                let whole = Dimension { length: values.len(), lower_bound };
                let dimensions = match (values.len(), nested) {
                    (0, _) => Vec::new(),
                    (_, true) => vec![Dimension { length: 1, lower_bound: 1 }, whole],
                    (_, false) => vec![whole],
                };
                Datum::Array(Arc::new(Array { element, dimensions, values }))
            },
        )
    }

    fn row() -> impl Strategy<Value = Datum> {
        let field = prop_oneof![1 => Just(Datum::Null), 2 => (-1..2i32).prop_map(Datum::Int4)];
        proptest::collection::vec(field, 0..4).prop_map(|fields| Datum::Record(fields.into()))
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("false".to_owned()),
            "-?[0-2](\\.[0-9]{1,2})?".prop_map(|text: String| text),
            "[a-c]{0,3}".prop_map(|text: String| format!("\"{text}\"")),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let fields = proptest::collection::vec(("[a-b]{1,2}", inner.clone()), 0..3);
            prop_oneof![
                proptest::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
                fields.prop_map(|fields| {
                    let fields: Vec<String> =
                        fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
                    format!("{{{}}}", fields.join(", "))
                }),
            ]
        })
    }

    fn bits(text: String) -> Datum {
        Datum::Bits(BitString::parse(&text, Type::VARBIT).unwrap())
    }

    fn network((byte, bits): (u8, u8)) -> Datum {
        Datum::Inet(Inet::new([byte; 4].into(), bits).unwrap())
    }

    fn jsonb(text: &str) -> Datum {
        Datum::jsonb(&archipel_sql::io::jsonb_text(text).unwrap())
    }

    proptest! {
        #[test]
        fn numerics_keep_their_order(a in numeric(), b in numeric()) {
            check(&Datum::Numeric(a), &Datum::Numeric(b), Type::NUMERIC);
        }

        #[test]
        fn intervals_keep_their_order(a in interval(), b in interval()) {
            check(&Datum::Interval(Arc::new(a)), &Datum::Interval(Arc::new(b)), Type::INTERVAL);
        }

        #[test]
        fn arrays_of_integers_keep_their_order(
            a in array(Oid::INT4, (-2..3i32).prop_map(Datum::Int4)),
            b in array(Oid::INT4, (-2..3i32).prop_map(Datum::Int4)),
        ) {
            check(&a, &b, Type::INT4_ARRAY);
        }

        #[test]
        fn arrays_of_texts_keep_their_order(
            a in array(Oid::TEXT, "[\u{1}\u{2}a]{0,3}".prop_map(|text: String| Datum::text(&text))),
            b in array(Oid::TEXT, "[\u{1}\u{2}a]{0,3}".prop_map(|text: String| Datum::text(&text))),
        ) {
            check(&a, &b, Type::TEXT_ARRAY);
        }

        #[test]
        fn arrays_of_bit_strings_keep_their_order(
            a in array(Oid::VARBIT, "[01]{0,9}".prop_map(bits)),
            b in array(Oid::VARBIT, "[01]{0,9}".prop_map(bits)),
        ) {
            check(&a, &b, Type::of(Oid(1563)));
        }

        #[test]
        fn arrays_of_networks_keep_their_order(
            a in array(Oid::INET, (0..3u8, 0..=32u8).prop_map(network)),
            b in array(Oid::INET, (0..3u8, 0..=32u8).prop_map(network)),
        ) {
            check(&a, &b, Type::INET_ARRAY);
        }

        #[test]
        fn padded_texts_keep_their_order(a in "[\u{1}\u{2} a]{0,3}", b in "[\u{1}\u{2} a]{0,3}") {
            check(&Datum::bpchar(&a), &Datum::bpchar(&b), Type::BPCHAR);
        }

        #[test]
        fn arrays_of_padded_texts_keep_their_order(
            a in array(Oid::BPCHAR, "[\u{1} a]{0,3}".prop_map(|text: String| Datum::bpchar(&text))),
            b in array(Oid::BPCHAR, "[\u{1} a]{0,3}".prop_map(|text: String| Datum::bpchar(&text))),
        ) {
            check(&a, &b, Type::BPCHAR_ARRAY);
        }

        #[test]
        fn arrays_of_numerics_keep_their_order(
            a in array(Oid::NUMERIC, numeric().prop_map(Datum::Numeric)),
            b in array(Oid::NUMERIC, numeric().prop_map(Datum::Numeric)),
        ) {
            check(&a, &b, Type::NUMERIC_ARRAY);
        }

        #[test]
        fn arrays_of_floats_keep_their_order(
            a in array(Oid::FLOAT8, prop_oneof![any::<f64>(), Just(f64::NAN), Just(-0.0), Just(0.0)].prop_map(Datum::Float8)),
            b in array(Oid::FLOAT8, prop_oneof![any::<f64>(), Just(f64::NAN), Just(-0.0), Just(0.0)].prop_map(Datum::Float8)),
        ) {
            check(&a, &b, Type::FLOAT8_ARRAY);
        }

        #[test]
        fn rows_keep_their_order(a in row(), b in row()) {
            check(&a, &b, Type::of(Oid::row_type_of(Oid(20_000))));
        }

        #[test]
        fn jsonb_keeps_its_order(a in json(), b in json()) {
            check(&jsonb(&a), &jsonb(&b), Type::JSONB);
        }
    }

    #[test]
    fn equal_values_have_equal_keys() {
        let number = |text: &str| Datum::Numeric(text.parse().unwrap());
        assert_eq!(key(&number("1.0"), Type::NUMERIC), key(&number("1.000"), Type::NUMERIC));
        let span = |months, days, microseconds| {
            key(&Datum::Interval(Arc::new(Interval { months, days, microseconds })), Type::INTERVAL)
        };
        assert_eq!(span(1, 0, 0), span(0, 30, 0));
        assert_eq!(key(&Datum::bpchar("a  "), Type::BPCHAR), key(&Datum::bpchar("a"), Type::BPCHAR));
        assert_eq!(span(0, 1, 0), span(0, 0, 86_400_000_000));
        assert_eq!(key(&jsonb("{\"a\": 1}"), Type::JSONB), key(&jsonb("{\"a\": 1.00}"), Type::JSONB));
        let row =
            |fields: Vec<Datum>| key(&Datum::Record(fields.into()), Type::of(Oid::row_type_of(Oid(20_000))));
        assert_eq!(row(vec![Datum::Int4(1)]), row(vec![Datum::Int4(1), Datum::Null]));
    }
}
