//! Digests, keyed digests, random bytes and UUIDs: what pgcrypto's and uuid-ossp's functions are made of.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::Eval;
use super::args::*;
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::secret::random_bytes;

/// Microseconds between the beginnings of the calendar of UUIDs, 15 October 1582, and of ours, 2000.
const SINCE_1582_US: i64 = 13_165_977_600_000_000;

/// SHA-1 (FIPS 180-4): UUIDs of version 5 and old signatures still ask for it.
fn sha1(data: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = data.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(data.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.iter().enumerate() {
            let (mixed, constant) = match at {
                0..20 => ((b & c) | (!b & d), 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e);
            let next = next.wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (word, add) in state.iter_mut().zip([a, b, c, d, e]) {
            *word = word.wrapping_add(add);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// An algorithm, and the length of the blocks it takes.
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

    fn block(self) -> usize {
        match self {
            Algorithm::Sha384 | Algorithm::Sha512 => 128,
            _ => 64,
        }
    }

    fn digest(self, data: &[u8]) -> Vec<u8> {
        match self {
            Algorithm::Md5 => md5::compute(data).to_vec(),
            Algorithm::Sha1 => sha1(data).to_vec(),
            Algorithm::Sha224 => Sha224::digest(data).to_vec(),
            Algorithm::Sha256 => Sha256::digest(data).to_vec(),
            Algorithm::Sha384 => Sha384::digest(data).to_vec(),
            Algorithm::Sha512 => Sha512::digest(data).to_vec(),
        }
    }

    /// HMAC (RFC 2104).
    fn keyed(self, data: &[u8], key: &[u8]) -> Vec<u8> {
        let mut block = if key.len() > self.block() { self.digest(key) } else { key.to_vec() };
        block.resize(self.block(), 0);
        let padded = |pad: u8, rest: &[u8]| {
            let mut message: Vec<u8> = block.iter().map(|byte| byte ^ pad).collect();
            message.extend_from_slice(rest);
            self.digest(&message)
        };
        padded(0x5c, &padded(0x36, data))
    }
}

/// Bytes as a UUID of a version of RFC 4122's.
fn uuid(mut bytes: [u8; 16], version: u8) -> Datum {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Datum::Uuid(Box::new(bytes))
}

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("archipel_digest", |_, v| {
        let algorithm = Algorithm::named(text(v, 1)?)?;
        Ok(Datum::Bytea(algorithm.digest(bytea(v, 0)?).into()))
    }),
    ("archipel_hmac", |_, v| {
        let algorithm = Algorithm::named(text(v, 2)?)?;
        Ok(Datum::Bytea(algorithm.keyed(bytea(v, 0)?, bytea(v, 1)?).into()))
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
            3 => (Algorithm::Md5.digest(&data), 3),
            _ => (Algorithm::Sha1.digest(&data), 5),
        };
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Ok(uuid(bytes, version))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The examples of FIPS 180-4 and RFC 2202.
    #[test]
    fn digests_are_those_of_the_standards() {
        assert_eq!(hex(&sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(&sha1(b"")), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(
            hex(&sha1(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        );
        assert_eq!(
            hex(&Algorithm::Md5.keyed(b"what do ya want for nothing?", b"Jefe")),
            "750c783e6ab0b503eaa86e310a5db738"
        );
        assert_eq!(
            hex(&Algorithm::Sha1.keyed(b"what do ya want for nothing?", b"Jefe")),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"
        );
    }
}
