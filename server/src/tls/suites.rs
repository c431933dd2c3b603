//! Cipher suites and curves by the names that OpenSSL, and so PostgreSQL, gives them.

use rustls::CipherSuite;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::ring::kx_group::{SECP256R1, SECP384R1, X25519};

use super::error::TlsError;

/// A suite, its name, and the bits of its key.
type Named = (CipherSuite, &'static str, i32);

/// Every suite there is.
const SUITES: [Named; 9] = [
    (CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384", 256),
    (CipherSuite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256", 128),
    (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256", 256),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384", 256),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256", 128),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305", 256),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384", 256),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256", 128),
    (CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305", 256),
];

/// Words of `ssl_ciphers` that every suite of TLS 1.2 here fulfils.
const ALL: [&str; 3] = ["HIGH", "DEFAULT", "ALL"];

/// Words that take away, or put behind, what is not here in the first place.
const WITHOUT_EFFECT: [&str; 14] = [
    "MEDIUM", "+3DES", "!aNULL", "!eNULL", "!NULL", "!MD5", "!RC4", "!DES", "!3DES", "!LOW", "!EXPORT",
    "!EXP", "!SSLv2", "!PSK",
];

/// A suite's name and the bits of its key.
pub(super) fn name(suite: CipherSuite) -> (String, i32) {
    match SUITES.iter().find(|(known, ..)| *known == suite) {
        Some((_, name, bits)) => ((*name).to_owned(), *bits),
        None => (format!("{suite:?}"), 0),
    }
}

/// The suites of TLS 1.2 that `ssl_ciphers` allows, in its order.
pub(super) fn allowed(list: &str) -> Result<Vec<CipherSuite>, TlsError> {
    let mut allowed = Vec::new();
    for word in list.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        if ALL.contains(&word) {
            allowed.extend(tls12().map(|(suite, ..)| *suite));
        } else if let Some((suite, ..)) = tls12().find(|(_, name, _)| *name == word) {
            allowed.push(*suite);
        } else if !WITHOUT_EFFECT.contains(&word) {
            let names: Vec<&str> = tls12().map(|(_, name, _)| *name).collect();
            return Err(TlsError(format!(
                "could not set the cipher list (ssl_ciphers): \"{word}\" is not supported; supported are HIGH, {}",
                names.join(", ")
            )));
        }
    }
    if allowed.is_empty() {
        return Err(TlsError("could not set the cipher list (no valid ciphers available)".to_owned()));
    }
    Ok(allowed)
}

fn tls12() -> impl Iterator<Item = &'static Named> {
    SUITES.iter().filter(|(_, name, _)| name.starts_with("ECDHE-"))
}

/// The curves that `ssl_ecdh_curve` lists, in its order.
pub(super) fn curves(list: &str) -> Result<Vec<&'static dyn SupportedKxGroup>, TlsError> {
    let mut curves: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    for word in list.split(':').map(str::trim).filter(|word| !word.is_empty()) {
        curves.push(match word.to_ascii_lowercase().as_str() {
            "x25519" => X25519,
            "prime256v1" | "secp256r1" | "p-256" => SECP256R1,
            "secp384r1" | "p-384" => SECP384R1,
            _ => {
                return Err(TlsError(format!(
                    "ECDH: unrecognized curve name \"{word}\" (ssl_ecdh_curve): supported are X25519, prime256v1, secp384r1"
                )));
            }
        });
    }
    if curves.is_empty() {
        return Err(TlsError("ECDH: ssl_ecdh_curve names no curve".to_owned()));
    }
    Ok(curves)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_of_the_library_has_its_name() {
        let provider = rustls::crypto::ring::default_provider();
        assert_eq!(provider.cipher_suites.len(), SUITES.len());
        for suite in provider.cipher_suites {
            assert!(SUITES.iter().any(|(known, ..)| *known == suite.suite()), "{suite:?}");
        }
    }

    #[test]
    fn lists_of_ciphers_are_honoured_or_refused() {
        assert_eq!(allowed("HIGH:MEDIUM:+3DES:!aNULL").unwrap().len(), 6);
        let one = allowed("ECDHE-RSA-AES128-GCM-SHA256").unwrap();
        assert_eq!(one, [CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]);
        for list in ["", "RC4-MD5", "HIGH:!AES", "!aNULL"] {
            assert!(allowed(list).is_err(), "{list}");
        }
    }

    #[test]
    fn lists_of_curves_are_honoured_or_refused() {
        assert_eq!(curves("prime256v1").unwrap().len(), 1);
        assert_eq!(curves("X25519:prime256v1:secp384r1").unwrap().len(), 3);
        assert!(curves("brainpoolP256r1").is_err() && curves("").is_err());
    }
}
