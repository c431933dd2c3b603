//! Passwords as PostgreSQL keeps them: verifiers of SCRAM-SHA-256 (RFC 5802, RFC 7677).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::error::{Result, SqlError};

/// PostgreSQL's number of rounds.
const ROUNDS: u32 = 4096;

/// An HMAC-SHA-256 keyed with some bytes, to be given a message.
fn keyed(key: &[u8]) -> Result<Hmac<Sha256>> {
    Hmac::new_from_slice(key).map_err(|_| SqlError::internal("a key of HMAC has any length"))
}

fn hmac(key: &[u8], message: &[u8]) -> Result<[u8; 32]> {
    let mut mac = keyed(key)?;
    mac.update(message);
    Ok(mac.finalize().into_bytes().into())
}

/// Hi() of RFC 5802, that is PBKDF2 with one block.
fn salted(password: &str, salt: &[u8], rounds: u32) -> Result<[u8; 32]> {
    let mac = keyed(password.as_bytes())?;
    let next = |message: &[&[u8]]| -> [u8; 32] {
        let mut mac = mac.clone();
        message.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    };
    let mut last = next(&[salt, &1_u32.to_be_bytes()]);
    let mut result = last;
    for _ in 1..rounds {
        last = next(&[&last]);
        for (sum, byte) in result.iter_mut().zip(last) {
            *sum ^= byte;
        }
    }
    Ok(result)
}

/// Whether a text is a verifier already, as dumps carry them.
fn is_verifier(text: &str) -> bool {
    let md5 = text
        .strip_prefix("md5")
        .is_some_and(|hash| hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let mut parts = text.split('$');
    let scram = parts.next() == Some("SCRAM-SHA-256")
        && parts
            .next()
            .and_then(|rounds| rounds.split_once(':'))
            .is_some_and(|(n, _)| n.parse::<u32>().is_ok())
        && parts.next().is_some_and(|keys| keys.contains(':'))
        && parts.next().is_none();
    md5 || scram
}

/// What is kept of a password (pg_authid.rolpassword). Passwords are prepared by SASLprep (RFC 4013),
/// and taken as they are where it refuses them, as PostgreSQL does.
pub fn verifier(password: &str, salt: [u8; 16]) -> Result<String> {
    if is_verifier(password) {
        return Ok(password.to_owned());
    }
    let prepared = stringprep::saslprep(password);
    let salted = salted(prepared.as_deref().unwrap_or(password), &salt, ROUNDS)?;
    let stored = STANDARD.encode(Sha256::digest(hmac(&salted, b"Client Key")?));
    let server = STANDARD.encode(hmac(&salted, b"Server Key")?);
    Ok(format!("SCRAM-SHA-256${ROUNDS}:{}${stored}:{server}", STANDARD.encode(salt)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3: its proof and signature follow from the verifier.
    #[test]
    fn the_verifier_fits_the_exchange_of_the_standard() {
        let salt =
            [0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa, 0x81];
        assert_eq!(STANDARD.encode(salt), "W22ZaJ0SNY7soEsUEjb6gQ==");
        let messages = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let salted = salted("pencil", &salt, ROUNDS).expect("any key will do");
        let server = hmac(&salted, b"Server Key").expect("any key will do");
        let signature = hmac(&server, messages.as_bytes()).expect("any key will do");
        assert_eq!(STANDARD.encode(signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert!(verifier("pencil", salt).expect("made").ends_with(&STANDARD.encode(server)));
    }

    #[test]
    fn verifiers_are_kept_as_they_are() {
        let made = |password: &str, salt| verifier(password, salt).expect("made");
        let kept = made("secret", [7; 16]);
        assert_eq!(made(&kept, [8; 16]), kept);
        assert_ne!(made("secret", [8; 16]), kept);
    }

    /// RFC 4013, section 3: a soft hyphen is mapped to nothing, and ª to a.
    #[test]
    fn passwords_are_prepared() {
        let made = |password: &str| verifier(password, [7; 16]).expect("made");
        assert_eq!(made("I\u{ad}X"), made("IX"));
        assert_eq!(made("\u{aa}"), made("a"));
        assert_ne!(made("\u{7}"), made(""));
    }
}
