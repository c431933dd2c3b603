use archipel_sql::bit_string::BitString;
use archipel_sql::datum::{Array, Dimension};
use archipel_sql::record::{Record, RecordDescriptor};

use super::*;

#[test]
fn numeric_bytes_keep_order_and_value() {
    let mut previous: Option<Vec<u8>> = None;
    for text in [
        "-Infinity",
        "-12345678901234567890.5",
        "-100",
        "-99.99",
        "-1",
        "-0.5",
        "-0.05",
        "-0.0001",
        "0",
        "0.0001",
        "0.05",
        "0.5",
        "0.55",
        "1",
        "1.01",
        "9",
        "10",
        "99.99",
        "100",
        "12345678901234567890.5",
        "Infinity",
        "NaN",
    ] {
        let number: Numeric = text.parse().unwrap();
        let mut bytes = Vec::new();
        encode_numeric(&number, &mut bytes);
        assert_eq!(decode_numeric(&bytes).to_string(), text);
        if let Some(previous) = previous {
            assert!(previous < bytes, "{text} sorts after its predecessor");
        }
        previous = Some(bytes);
    }
}

#[test]
fn generic_form_reads_back() {
    let array = Datum::Array(Arc::new(Array {
        element: Oid::TEXT,
        dimensions: vec![Dimension { length: 2, lower_bound: 1 }],
        values: vec![Datum::text("a"), Datum::Null],
    }));
    let record = Datum::Record(vec![array, Datum::Int4(7), Datum::Bool(true)].into());
    let mut bytes = Vec::new();
    write_generic(&record, &mut bytes);
    assert_eq!(read_generic(&bytes, &mut 0), Some(record));
    assert_eq!(read_generic(&bytes[..bytes.len() - 1], &mut 0), None);
}

#[test]
fn bit_strings_are_stored_in_order() {
    let codec = Codec::of(Type { oid: Oid::BIT, typmod: 9 });
    assert!(codec.ordered() && codec == Codec::of(Type::VARBIT));
    let bits = Datum::Bits(BitString::parse("x0F8", Type::VARBIT).unwrap());
    let mut space = Vec::new();
    let cell = codec.encode(&bits, &mut space).unwrap();
    assert_eq!(codec.decode(cell), bits);
    let row = Datum::Record(vec![bits, Datum::Int4(7)].into());
    let mut bytes = Vec::new();
    write_generic(&row, &mut bytes);
    assert_eq!(read_generic(&bytes, &mut 0), Some(row));
}

#[test]
fn addresses_of_devices_are_stored_in_order() {
    let codec = Codec::of(Type::MACADDR8);
    let stored = [0, 1, u64::MAX >> 1, 1 << 63, u64::MAX].map(|number| {
        let address = Datum::MacAddress8(MacAddress8::of_number(number));
        let Some(Cell::Int8(stored)) = codec.encode_plain(&address) else { panic!("{address:?} is plain") };
        assert_eq!(codec.decode(Cell::Int8(stored)), address);
        stored
    });
    assert!(stored.is_sorted());
    let row = Datum::Record(vec![Datum::MacAddress(MacAddress([8, 0, 43, 1, 2, 3])), Datum::Int4(7)].into());
    let mut bytes = Vec::new();
    write_generic(&row, &mut bytes);
    assert_eq!(read_generic(&bytes, &mut 0), Some(row));
}

#[test]
fn generic_form_keeps_what_rows_say() {
    let named = RecordDescriptor::of([("one", Type::INT4), ("other", Type { oid: Oid::BPCHAR, typmod: 9 })]);
    for descriptor in [named, Arc::new(RecordDescriptor::Named(Oid::row_type_of(Oid(20_000))))] {
        let record = Record::new([Datum::Int4(1), Datum::text("x")], Some(descriptor.clone()));
        let mut bytes = Vec::new();
        write_generic(&Datum::Record(record), &mut bytes);
        match read_generic(&bytes, &mut 0) {
            Some(Datum::Record(read)) => assert_eq!(read.descriptor(), Some(&descriptor)),
            other => panic!("a record, not {other:?}"),
        }
        assert_eq!(read_generic(&bytes[..bytes.len() - 1], &mut 0), None);
    }
}

#[test]
fn scaled_numerics_round_trip() {
    let codec = Codec::of(Type { oid: Oid::NUMERIC, typmod: (12 << 16 | 2) + 4 });
    assert_eq!(codec, Codec::Scaled(2));
    let number = Datum::Numeric("12.50".parse().unwrap());
    assert_eq!(codec.encode(&number, &mut Vec::new()).unwrap(), Cell::Int8(1250));
    assert_eq!(codec.decode(Cell::Int8(1250)), number);
}

#[test]
fn padded_texts_get_their_blanks_back() {
    let codec = Codec::of(Type { oid: Oid::BPCHAR, typmod: 8 });
    assert_eq!(codec, Codec::Padded(4));
    let value = Datum::bpchar("ä   ");
    assert_eq!(codec.encode_plain(&value), Some(Cell::Bytes("ä".as_bytes())));
    assert_eq!(codec.decode(Cell::Bytes("ä".as_bytes())), value);
    let unmeasured = Codec::of(Type::BPCHAR);
    assert_eq!(unmeasured.encode_plain(&Datum::bpchar("a ")), Some(Cell::Bytes(b"a ")));
    assert_eq!(unmeasured.decode(Cell::Bytes(b"a ")), Datum::bpchar("a "));
}

/// As older versions stored them.
#[test]
fn elements_without_blanks_get_them_back() {
    let array = |values| {
        let dimensions = vec![Dimension { length: 2, lower_bound: 1 }];
        Datum::Array(Arc::new(Array { element: Oid::BPCHAR, dimensions, values }))
    };
    let mut stored = Vec::new();
    write_generic(&array(vec![Datum::text("a"), Datum::Null]), &mut stored);
    let codec = Codec::of(Type { oid: Oid::BPCHAR_ARRAY, typmod: 7 });
    assert_eq!(codec.decode(Cell::Bytes(&stored)), array(vec![Datum::bpchar("a  "), Datum::Null]));
}

/// Keys that were made of stored values without blanks go on without them.
#[test]
fn older_keys_hold_no_blanks() {
    let mut column = KeyColumn {
        column: 0,
        descending: false,
        nulls_first: false,
        nullable: false,
        form: KeyForm::Stored,
    };
    let older = Codec::Blanks.in_key(&column);
    assert_eq!(older.encode_plain(&Datum::bpchar("a ")), Some(Cell::Bytes(b"a")));
    column.form = key_form(Type::BPCHAR);
    assert_eq!(Codec::Blanks.in_key(&column), Codec::Blanks);
}
