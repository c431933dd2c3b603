//! Which HASH partition a row is for: PostgreSQL's extended hash functions, bit for bit, so that rows
//! lie where they would lie there (hashfn.c, satisfies_hash_partition).

use crate::compare::interval_value;
use crate::datum::Datum;
use crate::error::{Result, SqlError};
use crate::type_table::element_of;
use crate::types::Oid;

/// PostgreSQL's HASH_PARTITION_SEED, which support functions of operator classes are given.
pub const SEED: u64 = 0x7A5B_2236_7996_DCFD;

/// The three words of Bob Jenkins' lookup3.
struct Words {
    a: u32,
    b: u32,
    c: u32,
}

impl Words {
    fn new(len: u32, seed: u64) -> Words {
        let start = 0x9e37_79b9_u32.wrapping_add(len).wrapping_add(3_923_095);
        let mut words = Words { a: start, b: start, c: start };
        if seed != 0 {
            words.a = words.a.wrapping_add((seed >> 32) as u32);
            words.b = words.b.wrapping_add(seed as u32);
            words.mix();
        }
        words
    }

    fn mix(&mut self) {
        let Words { a, b, c } = self;
        *a = a.wrapping_sub(*c) ^ c.rotate_left(4);
        *c = c.wrapping_add(*b);
        *b = b.wrapping_sub(*a) ^ a.rotate_left(6);
        *a = a.wrapping_add(*c);
        *c = c.wrapping_sub(*b) ^ b.rotate_left(8);
        *b = b.wrapping_add(*a);
        *a = a.wrapping_sub(*c) ^ c.rotate_left(16);
        *c = c.wrapping_add(*b);
        *b = b.wrapping_sub(*a) ^ a.rotate_left(19);
        *a = a.wrapping_add(*c);
        *c = c.wrapping_sub(*b) ^ b.rotate_left(4);
        *b = b.wrapping_add(*a);
    }

    fn finish(mut self) -> u64 {
        let Words { a, b, c } = &mut self;
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(14));
        *a = (*a ^ *c).wrapping_sub(c.rotate_left(11));
        *b = (*b ^ *a).wrapping_sub(a.rotate_left(25));
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(16));
        *a = (*a ^ *c).wrapping_sub(c.rotate_left(4));
        *b = (*b ^ *a).wrapping_sub(a.rotate_left(14));
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(24));
        (u64::from(self.b) << 32) | u64::from(self.c)
    }
}

/// hash_bytes_uint32_extended.
fn hash_u32(value: u32, seed: u64) -> u64 {
    let mut words = Words::new(4, seed);
    words.a = words.a.wrapping_add(value);
    words.finish()
}

/// hash_bytes_extended.
fn hash_bytes(bytes: &[u8], seed: u64) -> u64 {
    let mut words = Words::new(bytes.len() as u32, seed);
    let mut blocks = bytes.chunks_exact(12);
    let word = |bytes: &[u8], at: usize| {
        (0..4).fold(0u32, |word, byte| {
            word | u32::from(bytes.get(at + byte).copied().unwrap_or(0)) << (8 * byte)
        })
    };
    for block in blocks.by_ref() {
        words.a = words.a.wrapping_add(word(block, 0));
        words.b = words.b.wrapping_add(word(block, 4));
        words.c = words.c.wrapping_add(word(block, 8));
        words.mix();
    }
    let rest = blocks.remainder();
    words.a = words.a.wrapping_add(word(rest, 0));
    words.b = words.b.wrapping_add(word(rest, 4));
    // The lowest byte of the last word is the length's.
    words.c = words.c.wrapping_add(word(rest, 8) << 8);
    words.finish()
}

/// hashint8extended, which hashes what fits into fewer bytes as those.
fn hash_int8(value: i64, seed: u64) -> u64 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    hash_u32(low ^ if value >= 0 { high } else { !high }, seed)
}

/// hashfloat8extended.
fn hash_float(value: f64, seed: u64) -> u64 {
    if value == 0.0 {
        return seed;
    }
    let value = if value.is_nan() { f64::NAN } else { value };
    hash_bytes(&value.to_ne_bytes(), seed)
}

/// hash_numeric_extended, of a number's decimal form: its digits to the base of 10000, without zeros
/// at either end, and the weight of the first one.
fn hash_numeric(text: &str, seed: u64) -> u64 {
    let text = text.trim_start_matches('-');
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return seed;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let lead = (4 - whole.len() % 4) % 4;
    let padded: String =
        std::iter::repeat_n('0', lead).chain(whole.chars()).chain(fraction.chars()).collect();
    let digits: Vec<i16> = padded
        .as_bytes()
        .chunks(4)
        .map(|chunk| {
            (0..4).fold(0, |digit, at| digit * 10 + chunk.get(at).map_or(0, |c| i16::from(c - b'0')))
        })
        .collect();
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let weight = ((whole.len() + lead) / 4) as i64 - 1 - zeros as i64;
    let end = digits.iter().rposition(|digit| *digit != 0).map_or(zeros, |last| last + 1);
    let bytes: Vec<u8> = digits[zeros..end].iter().flat_map(|digit| digit.to_ne_bytes()).collect();
    if bytes.is_empty() {
        return seed.wrapping_sub(1);
    }
    hash_bytes(&bytes, seed) ^ weight as u64
}

/// A value's hash as its type's extended hash function has it, whose lower half is, without a seed,
/// what the plain one answers; `None` for types whose hash is not known here.
pub(crate) fn hash_value(value: &Datum, seed: u64) -> Option<u64> {
    Some(match value {
        Datum::Bool(value) => hash_u32(u32::from(*value), seed),
        Datum::Int2(value) => hash_u32(i32::from(*value) as u32, seed),
        Datum::Int4(value) => hash_u32(*value as u32, seed),
        Datum::Int8(value) => hash_int8(*value, seed),
        Datum::Oid(value) => hash_u32(value.0, seed),
        Datum::Float4(value) => hash_float(f64::from(*value), seed),
        Datum::Float8(value) => hash_float(*value, seed),
        Datum::Text(text) => hash_bytes(text.as_bytes(), seed),
        Datum::Bpchar(text) => hash_bytes(crate::typmod::without_blanks(text).as_bytes(), seed),
        Datum::Bytea(bytes) => hash_bytes(bytes, seed),
        Datum::Uuid(uuid) => hash_bytes(&uuid[..], seed),
        Datum::Inet(inet) => hash_bytes(&inet.stored(), seed),
        Datum::MacAddress(address) => hash_bytes(&address.0, seed),
        Datum::MacAddress8(address) => hash_bytes(&address.0, seed),
        Datum::Date(days) => hash_u32(*days as u32, seed),
        Datum::Time(micros) | Datum::Timestamp(micros) | Datum::TimestampTz(micros) => {
            hash_int8(*micros, seed)
        }
        Datum::TimeTz(at) => hash_int8(at.microseconds(), seed) ^ hash_u32(at.west() as u32, seed),
        Datum::Interval(interval) => hash_int8(interval_value(interval) as i64, seed),
        Datum::Numeric(number) => hash_numeric(&number.to_string(), seed),
        // hash_array_extended: the shape does not count.
        Datum::Array(array) => array.values.iter().try_fold(1_u64, |hash, value| {
            let own = if value.is_null() { 0 } else { hash_value(value, seed)? };
            Some((hash << 5).wrapping_sub(hash).wrapping_add(own))
        })?,
        _ => return None,
    })
}

/// Whether the hash of a type's values is known here.
pub fn is_hashable(ty: Oid) -> bool {
    let known = [
        Oid::BOOL,
        Oid::INT2,
        Oid::INT4,
        Oid::INT8,
        Oid::OID,
        Oid::FLOAT4,
        Oid::FLOAT8,
        Oid::NUMERIC,
        Oid::TEXT,
        Oid::VARCHAR,
        Oid::BPCHAR,
        Oid::NAME,
        Oid::BYTEA,
        Oid::UUID,
        Oid::INET,
        Oid::CIDR,
        Oid::MACADDR,
        Oid::MACADDR8,
        Oid::DATE,
        Oid::TIME,
        Oid::TIMETZ,
        Oid::TIMESTAMP,
        Oid::TIMESTAMPTZ,
        Oid::INTERVAL,
    ];
    known.contains(&ty) || ty.has_labels() || element_of(ty).is_some_and(is_hashable)
}

/// hash_combine64.
fn combine(a: u64, b: u64) -> u64 {
    a ^ b.wrapping_add(0x49a0_f4dd_15e5_a8e3).wrapping_add(a << 54).wrapping_add(a >> 7)
}

/// The hash of a partition key; NULLs do not count. 0A000 for types whose hash is not known here. A
/// hash that a function of an operator class has answered comes in a record: rows are no keys.
pub fn partition_hash<'d>(key: impl IntoIterator<Item = &'d Datum>) -> Result<u64> {
    let mut hash = 0;
    for value in key.into_iter().filter(|value| !value.is_null()) {
        let value = match value {
            Datum::Record(hash) => match hash.first() {
                Some(Datum::Int8(hash)) => *hash as u64,
                _ => return Err(SqlError::internal("a function of an operator class returned NULL")),
            },
            value => hash_value(value, SEED)
                .ok_or_else(|| SqlError::unsupported("a hash partition key of this type"))?,
        };
        hash = combine(hash, value);
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes_to(value: Datum, hash: i64) {
        assert_eq!(hash_value(&value, SEED), Some(hash as u64), "{value:?}");
    }

    /// As PostgreSQL 15's functions answer with the seed of partitions.
    #[test]
    fn hashes_like_postgresql() {
        hashes_to(Datum::Int4(0), -4403592609991167795);
        hashes_to(Datum::Int4(-7), -7298374200968567817);
        hashes_to(Datum::Int2(-7), -7298374200968567817);
        hashes_to(Datum::Int4(123456789), -922921598128084246);
        hashes_to(Datum::Int8(-7), -7298374200968567817);
        hashes_to(Datum::Int8(123456789012345), 1245190300417211467);
        hashes_to(Datum::Int8(-123456789012345), 1319997625056975514);
        hashes_to(Datum::Text("".into()), -5700645584453517373);
        hashes_to(Datum::Text("a".into()), -6705225459120232837);
        hashes_to(Datum::bpchar("a  "), -6705225459120232837);
        hashes_to(Datum::Text("hello world!".into()), -1886269529411655687);
        hashes_to(Datum::Text("a longer text than twelve".into()), -7785834388530430271);
        hashes_to(Datum::Text("ünï".into()), -2114390743872756100);
        hashes_to(Datum::Bool(true), 5968994663651403477);
        hashes_to(Datum::Float8(0.0), 8816678312871386365);
        hashes_to(Datum::Float8(1.5), -2826383321045882978);
        hashes_to(Datum::Float8(f64::NAN), -6475869854796787835);
        let interval = crate::datum::Interval { months: 1, days: 2, microseconds: 0 };
        hashes_to(Datum::Interval(interval.into()), -1807441896948487867);
        let inet = |text: &str| Datum::Inet(crate::network::Inet::parse(text, false).unwrap());
        hashes_to(inet("10.0.0.1/8"), -3798725246030467143);
        hashes_to(inet("2001:db8::1"), -8118293289677678482);
        let device = crate::network::MacAddress([8, 0, 0x2b, 1, 2, 3]);
        hashes_to(Datum::MacAddress(device), 1768134697032482061);
        let device = crate::network::MacAddress8([8, 0, 0x2b, 1, 2, 3, 4, 5]);
        hashes_to(Datum::MacAddress8(device), 7999712495155386569);
        let noon = crate::datetime::TimeTz::new(43_200_000_000, -7200).unwrap();
        hashes_to(Datum::TimeTz(noon), 303720168613422178);
        for (text, hash) in [
            ("1.50", 1234047083305210387),
            ("0", 8816678312871386364),
            ("100", -3879215986038224534),
            ("-12345.6789", 6445526082213146339),
        ] {
            hashes_to(Datum::Numeric(text.parse().unwrap()), hash);
        }
    }

    #[test]
    fn keys_of_several_parts_combine() {
        let key = [Datum::Int4(5), Datum::Text("xyz".into())];
        assert_eq!(partition_hash(&key).unwrap() % 1000, 449);
        assert_eq!(partition_hash(&[Datum::Null]).unwrap(), 0);
    }
}
