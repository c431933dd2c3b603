//! Digests, keyed digests, random bytes and UUIDs: what pgcrypto's and uuid-ossp's functions are made of.

use hmac::{EagerHash, Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::binary_string::digest_of;
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::interrupt;
use crate::strong_random::random_bytes;

/// Microseconds between the beginnings of the calendar of UUIDs, 15 October 1582, and of ours, 2000.
const SINCE_1582_US: i64 = 13_165_977_600_000_000;

/// A digest by its name.
#[derive(Clone, Copy)]
enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    fn named(name: &str) -> Result<Algorithm> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "md5" => Algorithm::Md5,
            "sha1" => Algorithm::Sha1,
            "sha224" => Algorithm::Sha224,
            "sha256" => Algorithm::Sha256,
            "sha384" => Algorithm::Sha384,
            "sha512" => Algorithm::Sha512,
            _ => return Err(invalid_parameter(format!("Cannot use \"{name}\": No such hash algorithm"))),
        })
    }

    /// The digest of some bytes, or with a key their HMAC (RFC 2104).
    fn digest(self, key: Option<&[u8]>, data: &[u8]) -> Result<Vec<u8>> {
        match self {
            Algorithm::Md5 => digest::<Md5>(key, data),
            Algorithm::Sha1 => digest::<Sha1>(key, data),
            Algorithm::Sha224 => digest::<Sha224>(key, data),
            Algorithm::Sha256 => digest::<Sha256>(key, data),
            Algorithm::Sha384 => digest::<Sha384>(key, data),
            Algorithm::Sha512 => digest::<Sha512>(key, data),
        }
    }
}

fn digest<D: EagerHash>(key: Option<&[u8]>, data: &[u8]) -> Result<Vec<u8>>
where
    Hmac<D>: KeyInit + Mac,
{
    let Some(key) = key else { return Ok(digest_of::<D>(data)?.to_vec()) };
    let mut mac = <Hmac<D> as KeyInit>::new_from_slice(key)
        .map_err(|_| SqlError::internal("a key of HMAC has any length"))?;
    interrupt::in_pieces(data, |piece| mac.update(piece))?;
    Ok(mac.finalize().into_bytes().to_vec())
}

/// Bytes as a UUID of a version of RFC 4122's.
fn uuid(mut bytes: [u8; 16], version: u8) -> Datum {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Datum::Uuid(Box::new(bytes))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("archipel_digest", |_, v| {
        let algorithm = Algorithm::named(text(v, 1)?)?;
        Ok(Datum::Bytea(algorithm.digest(None, bytea(v, 0)?)?.into()))
    }),
    ("archipel_hmac", |_, v| {
        let algorithm = Algorithm::named(text(v, 2)?)?;
        Ok(Datum::Bytea(algorithm.digest(Some(bytea(v, 1)?), bytea(v, 0)?)?.into()))
    }),
    ("archipel_random_bytes", |_, v| {
        let length = usize::try_from(int4(v, 0)?).ok().filter(|length| (1..=1024).contains(length));
        let Some(length) = length else {
            return Err(SqlError::new(SqlState(*b"39000"), "Length not in range"));
        };
        Ok(Datum::Bytea(random_bytes::<1024>()?[..length].into()))
    }),
    ("archipel_uuid_of_time", |c, _| {
        let now = c.session.clock().unwrap_or(c.now);
        // Ten for each microsecond; the last digit is as good as any.
        let [sequence_high, sequence_low, node @ .., digit] = random_bytes::<9>()?;
        let ticks = (now.wrapping_add(SINCE_1582_US) as u64).wrapping_mul(10) + u64::from(digit % 10);
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&(ticks as u32).to_be_bytes());
        bytes[4..6].copy_from_slice(&((ticks >> 32) as u16).to_be_bytes());
        bytes[6..8].copy_from_slice(&((ticks >> 48) as u16).to_be_bytes());
        (bytes[8], bytes[9]) = (sequence_high, sequence_low);
        bytes[10..].copy_from_slice(&node);
        // No network card has such an address (RFC 4122, chapter 4.5).
        bytes[10] |= 1;
        Ok(uuid(bytes, 1))
    }),
    ("archipel_uuid_of_name", |_, v| {
        let Datum::Uuid(namespace) = any(v, 1)? else {
            return Err(SqlError::internal("a namespace is a UUID"));
        };
        let mut data = namespace.to_vec();
        data.extend_from_slice(text(v, 2)?.as_bytes());
        let (digest, version) = match int4(v, 0)? {
            3 => (Algorithm::Md5.digest(None, &data)?, 3),
            _ => (Algorithm::Sha1.digest(None, &data)?, 5),
        };
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Ok(uuid(bytes, version))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(algorithm: Algorithm, key: Option<&[u8]>, data: &[u8]) -> String {
        let bytes = algorithm.digest(key, data).expect("nobody interrupts");
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Examples of FIPS 180-4 and RFC 2202: names lead to the algorithms they name.
    #[test]
    fn digests_are_those_of_the_standards() {
        assert_eq!(hex(Algorithm::Sha1, None, b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let (data, key) = (b"what do ya want for nothing?", b"Jefe".as_slice());
        assert_eq!(hex(Algorithm::Md5, Some(key), data), "750c783e6ab0b503eaa86e310a5db738");
        assert_eq!(hex(Algorithm::Sha1, Some(key), data), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    }
}
