//! Passwords as PostgreSQL keeps them: verifiers of SCRAM-SHA-256 (RFC 5802, RFC 7677).

use sha2::{Digest, Sha256};

/// PostgreSQL's number of rounds.
const ROUNDS: u32 = 4096;
const BLOCK: usize = 64;

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// HMAC-SHA-256 (RFC 2104).
pub fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut block = [0_u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&sha256(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new();
    inner.update(block.map(|byte| byte ^ 0x36));
    for part in parts {
        inner.update(part);
    }
    let inner: [u8; 32] = inner.finalize().into();
    let mut outer = Sha256::new();
    outer.update(block.map(|byte| byte ^ 0x5c));
    outer.update(inner);
    outer.finalize().into()
}

/// Hi() of RFC 5802: PBKDF2 with one block.
fn salted(password: &str, salt: &[u8], rounds: u32) -> [u8; 32] {
    let mut last = hmac(password.as_bytes(), &[salt, &1_u32.to_be_bytes()]);
    let mut result = last;
    for _ in 1..rounds {
        last = hmac(password.as_bytes(), &[&last]);
        for (sum, byte) in result.iter_mut().zip(last) {
            *sum ^= byte;
        }
    }
    result
}

/// Base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0_u8; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            if place <= chunk.len() {
                text.push(char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
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

/// What is kept of a password (pg_authid.rolpassword).
pub fn verifier(password: &str, salt: [u8; 16]) -> String {
    if is_verifier(password) {
        return password.to_owned();
    }
    let salted = salted(password, &salt, ROUNDS);
    let stored = sha256(&hmac(&salted, &[b"Client Key"]));
    let server = hmac(&salted, &[b"Server Key"]);
    format!("SCRAM-SHA-256${ROUNDS}:{}${}:{}", base64(&salt), base64(&stored), base64(&server))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3: its proof and signature follow from the verifier.
    #[test]
    fn the_verifier_fits_the_exchange_of_the_standard() {
        let salt =
            [0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa, 0x81];
        assert_eq!(base64(&salt), "W22ZaJ0SNY7soEsUEjb6gQ==");
        let messages = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let server = hmac(&salted("pencil", &salt, ROUNDS), &[b"Server Key"]);
        let signature = hmac(&server, &[messages.as_bytes()]);
        assert_eq!(base64(&signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert!(verifier("pencil", salt).ends_with(&base64(&server)));
    }

    #[test]
    fn verifiers_are_kept_as_they_are() {
        let kept = verifier("secret", [7; 16]);
        assert_eq!(verifier(&kept, [8; 16]), kept);
        assert_ne!(verifier("secret", [8; 16]), kept);
    }
}
