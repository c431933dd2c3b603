//! Passwords as PostgreSQL keeps them: verifiers of SCRAM-SHA-256 (RFC 5802, RFC 7677), and the MD5
//! hashes of old; and whether somebody who connects knows them.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha2::{Digest, Sha256};

use crate::error::{Result, SqlError};

/// PostgreSQL's number of rounds.
const ROUNDS: i32 = 4096;

/// More rounds than this, a fraction of a second, nobody is made to wait for: such a verifier fits no
/// password that is sent as it is. (In an exchange of SCRAM the client does the rounds.)
const ROUNDS_COMPUTED_MAX: i32 = 250_000;

/// As PostgreSQL reads base64: bits behind the last byte need not be zeros.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// An HMAC-SHA-256 keyed with some bytes, to be given a message.
fn keyed(key: &[u8]) -> Result<Hmac<Sha256>> {
    Hmac::new_from_slice(key).map_err(|_| SqlError::internal("a key of HMAC has any length"))
}

fn hmac(key: &[u8], message: &[u8]) -> Result<[u8; 32]> {
    let mut mac = keyed(key)?;
    mac.update(message);
    Ok(mac.finalize().into_bytes().into())
}

/// Hi() of RFC 5802, that is PBKDF2 with one block. Fewer rounds than one are one, as in PostgreSQL.
fn salted(password: &[u8], salt: &[u8], rounds: i32) -> Result<[u8; 32]> {
    let mac = keyed(password)?;
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

/// The same after SASLprep (RFC 4013). Passwords that it refuses, or leaves nothing of, are taken as they are, as
/// PostgreSQL does: a soft hyphen is no empty password.
fn prepared_and_salted(password: &[u8], salt: &[u8], rounds: i32) -> Result<[u8; 32]> {
    let text = std::str::from_utf8(password).ok();
    let prepared = text.and_then(|text| stringprep::saslprep(text).ok());
    match prepared.filter(|prepared| !prepared.is_empty()) {
        Some(prepared) => salted(prepared.as_bytes(), salt, rounds),
        None => salted(password, salt, rounds),
    }
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn md5_hex(parts: &[&[u8]]) -> String {
    let mut digest = Md5::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is kept of a password (pg_authid.rolpassword).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verifier {
    Scram(ScramVerifier),
    Md5(Md5Verifier),
}

/// `SCRAM-SHA-256$ROUNDS:SALT$STORED_KEY:SERVER_KEY`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScramVerifier {
    /// As many as are written there: none, or fewer, where no client will take them.
    pub rounds: i32,
    pub salt: Vec<u8>,
    stored_key: [u8; 32],
    server_key: [u8; 32],
}

/// `md5` and 32 digits: the hash of the password and the role's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Md5Verifier(String);

impl Verifier {
    /// Reads a verifier; `None`: it is a password (get_password_type).
    pub fn parse(text: &str) -> Option<Verifier> {
        let digits = |hash: &&str| {
            hash.len() == 32 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        match text.strip_prefix("md5").filter(digits) {
            Some(hash) => Some(Verifier::Md5(Md5Verifier(hash.to_owned()))),
            None => ScramVerifier::parse(text).map(Verifier::Scram),
        }
    }

    /// Whether it is an MD5 hash, which only the method md5 can check.
    pub fn is_md5(&self) -> bool {
        matches!(self, Verifier::Md5(_))
    }

    /// Whether this is the password of a role. It takes milliseconds, and at most a fraction of a second.
    pub fn matches(&self, password: &[u8], role: &str) -> Result<bool> {
        match self {
            Verifier::Scram(scram) => scram.matches(password),
            Verifier::Md5(Md5Verifier(hash)) => {
                Ok(is_same(md5_hex(&[password, role.as_bytes()]).as_bytes(), hash.as_bytes()))
            }
        }
    }
}

impl Md5Verifier {
    /// Whether a client has answered a salt as one does who knows the password.
    pub fn accepts(&self, response: &[u8], salt: [u8; 4]) -> bool {
        is_same(response, format!("md5{}", md5_hex(&[self.0.as_bytes(), &salt])).as_bytes())
    }
}

impl ScramVerifier {
    fn new(password: &[u8], salt: &[u8], rounds: i32) -> Result<ScramVerifier> {
        let salted = prepared_and_salted(password, salt, rounds)?;
        Ok(ScramVerifier {
            rounds,
            salt: salt.to_vec(),
            stored_key: Sha256::digest(hmac(&salted, b"Client Key")?).into(),
            server_key: hmac(&salted, b"Server Key")?,
        })
    }

    /// As PostgreSQL reads it (parse_scram_secret), whose strtok passes over what parts words, and whose strtol
    /// takes any number: what it keeps as a verifier is none of ours to hash as a password.
    fn parse(text: &str) -> Option<ScramVerifier> {
        let mut rest = text;
        let mut word = |end: char| {
            let (word, after) = rest.trim_start_matches(end).split_once(end)?;
            rest = after;
            Some(word)
        };
        let (scheme, rounds, salt, stored) = (word('$')?, word(':')?, word('$')?, word(':')?);
        let key = |text: &str| <[u8; 32]>::try_from(LENIENT.decode(text).ok()?).ok();
        if scheme != "SCRAM-SHA-256" {
            return None;
        }
        let rounds: i64 = rounds.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']).parse().ok()?;
        Some(ScramVerifier {
            // Cut to the length of an int, as there.
            rounds: rounds as i32,
            salt: LENIENT.decode(salt).ok()?,
            stored_key: key(stored)?,
            server_key: key(rest)?,
        })
    }

    /// One that no password fits, for a name that nobody has or that has none: who asks twice gets the same
    /// salt, and nobody who does not know the server's `secret` can tell it from another.
    pub fn mock(name: &str, secret: &[u8]) -> ScramVerifier {
        let digest: [u8; 32] = Sha256::new().chain_update(name).chain_update(secret).finalize().into();
        ScramVerifier {
            rounds: ROUNDS,
            salt: digest[..16].to_vec(),
            stored_key: [0; 32],
            server_key: [0; 32],
        }
    }

    fn matches(&self, password: &[u8]) -> Result<bool> {
        if self.rounds > ROUNDS_COMPUTED_MAX {
            return Ok(false);
        }
        let salted = prepared_and_salted(password, &self.salt, self.rounds)?;
        Ok(is_same(&hmac(&salted, b"Server Key")?, &self.server_key))
    }

    /// Whether a client that has said these messages, and proves them so, knows the password.
    pub fn accepts(&self, messages: &[u8], proof: &[u8; 32]) -> Result<bool> {
        let mut key = hmac(&self.stored_key, messages)?;
        key.iter_mut().zip(proof).for_each(|(byte, proof)| *byte ^= proof);
        Ok(is_same(&Sha256::digest(key), &self.stored_key))
    }

    /// What proves to the client that the server knows the verifier.
    pub fn signature(&self, messages: &[u8]) -> Result<[u8; 32]> {
        hmac(&self.server_key, messages)
    }
}

/// How a password is to be kept (`password_encryption`).
#[derive(Clone, Copy, Debug)]
pub enum Encryption {
    ScramSha256 { salt: [u8; 16] },
    Md5,
}

/// What is kept of a password of a role. Verifiers are kept as they are: dumps carry them.
pub fn verifier(password: &str, role: &str, encryption: Encryption) -> Result<String> {
    if Verifier::parse(password).is_some() {
        return Ok(password.to_owned());
    }
    match encryption {
        Encryption::Md5 => Ok(format!("md5{}", md5_hex(&[password.as_bytes(), role.as_bytes()]))),
        Encryption::ScramSha256 { salt } => {
            let made = ScramVerifier::new(password.as_bytes(), &salt, ROUNDS)?;
            let [salt, stored, server] =
                [&made.salt[..], &made.stored_key, &made.server_key].map(|bytes| STANDARD.encode(bytes));
            Ok(format!("SCRAM-SHA-256${ROUNDS}:{salt}${stored}:{server}"))
        }
    }
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
        let made = ScramVerifier::new(b"pencil", &salt, ROUNDS).expect("any key will do");
        let signature = made.signature(messages.as_bytes()).expect("any key will do");
        assert_eq!(STANDARD.encode(signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let proof = STANDARD.decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=").expect("base64");
        let mut proof: [u8; 32] = proof.try_into().expect("32 bytes");
        assert!(made.accepts(messages.as_bytes(), &proof).expect("any key will do"));
        assert!(!made.accepts(b"other messages", &proof).expect("any key will do"));
        proof[31] ^= 1;
        assert!(!made.accepts(messages.as_bytes(), &proof).expect("any key will do"));
        let kept = verifier("pencil", "user", Encryption::ScramSha256 { salt }).expect("made");
        assert_eq!(Verifier::parse(&kept), Some(Verifier::Scram(made)));
    }

    fn scram(password: &str, salt: u8) -> String {
        verifier(password, "ann", Encryption::ScramSha256 { salt: [salt; 16] }).expect("made")
    }

    fn fits(kept: &str, password: &str) -> bool {
        let verifier = Verifier::parse(kept).expect("a verifier");
        verifier.matches(password.as_bytes(), "ann").expect("any key will do")
    }

    #[test]
    fn verifiers_are_kept_as_they_are() {
        let kept = scram("secret", 7);
        assert_eq!(scram(&kept, 8), kept);
        assert_ne!(scram("secret", 8), kept);
        let md5 = verifier("secret", "ann", Encryption::Md5).expect("made");
        assert_eq!(scram(&md5, 8), md5);
    }

    /// As PostgreSQL 15 keeps it: `md5` and md5('secretann').
    #[test]
    fn hashes_of_old_are_those_of_postgresql() {
        let md5 = verifier("secret", "ann", Encryption::Md5).expect("made");
        assert_eq!(md5, "md59d792a3a8853c2411afb9163d088c036");
        assert!(fits(&md5, "secret") && !fits(&md5, "other"));
        let Some(Verifier::Md5(kept)) = Verifier::parse(&md5) else { panic!("{md5}") };
        let response = format!("md5{}", md5_hex(&[kept.0.as_bytes(), &[1, 2, 3, 4]]));
        assert!(kept.accepts(response.as_bytes(), [1, 2, 3, 4]));
        assert!(!kept.accepts(response.as_bytes(), [1, 2, 3, 5]) && !kept.accepts(b"", [1, 2, 3, 4]));
    }

    #[test]
    fn only_whole_verifiers_are_verifiers() {
        for password in [
            "md5",
            "md59dd4e461268c8034f5c8564e155c67a60",
            "md5D577ADC54E95F42F15DE2E7C134669B7",
            "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA",
            "SCRAM-SHA-256$0:AAAA$x:y",
            "SCRAM-SHA-256$",
            "",
        ] {
            assert_eq!(Verifier::parse(password), None, "{password}");
        }
    }

    /// Which of these PostgreSQL 15 keeps as they are, with the rounds that it asks for.
    #[test]
    fn what_parses_as_a_verifier_is_kept_as_one() {
        const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";
        const KEYS: &str =
            "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        let rounds_of = |text: &str| match Verifier::parse(text) {
            Some(Verifier::Scram(verifier)) => Some(verifier.rounds),
            _ => None,
        };
        for (rounds, expected) in [
            ("4096", Some(4096)),
            ("007", Some(7)),
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("+5", Some(5)),
            (" 5", Some(5)),
            ("2147483648", Some(i32::MIN)),
            ("4294967296", Some(0)),
            ("9223372036854775807", Some(-1)),
            ("99999999999999999999", None),
            ("5 ", None),
            ("0x10", None),
            ("", None),
        ] {
            let text = format!("SCRAM-SHA-256${rounds}:{SALT}${KEYS}");
            assert_eq!(rounds_of(&text), expected, "{text}");
        }
        for (text, is_kept) in [
            (format!("$SCRAM-SHA-256$4096:{SALT}${KEYS}"), true),
            (format!("SCRAM-SHA-256$4096:{SALT}$:{KEYS}"), true),
            (format!("SCRAM-SHA-256$4096:AAAA${KEYS}"), true),
            (format!("SCRAM-SHA-256$4096:AB==${KEYS}"), true),
            (format!("SCRAM-SHA-256$4096:AA${KEYS}"), false),
            (format!("SCRAM-SHA-256$4096:A A A A${KEYS}"), false),
            (format!("SCRAM-SHA-256$4096:=AAA${KEYS}"), false),
            (format!("SCRAM-SHA-256$4096:${KEYS}"), false),
            (format!("SCRAM-SHA-256$4096::{SALT}${KEYS}"), false),
            (format!("SCRAM-SHA-256$$4096:{SALT}${KEYS}"), false),
            (format!("SCRAM-SHA-256$4096:{SALT}$${KEYS}"), false),
            (format!("SCRAM-SHA-256$4096:{SALT}${KEYS}:"), false),
            (format!("SCRAM-SHA-256$4096:{SALT}${KEYS} "), false),
            (format!("scram-sha-256$4096:{SALT}${KEYS}"), false),
        ] {
            assert_eq!(rounds_of(&text).is_some(), is_kept, "{text}");
        }
    }

    #[test]
    fn nobody_is_made_to_wait_for_rounds_without_end() {
        for rounds in [i32::MAX, i32::MIN, -1, 0] {
            let made = ScramVerifier { rounds, ..ScramVerifier::mock("ann", b"nonce") };
            assert!(!made.matches(b"secret").expect("any key will do"));
        }
    }

    #[test]
    fn a_password_fits_its_verifier_and_no_mock() {
        let kept = scram("secret", 7);
        assert!(fits(&kept, "secret") && !fits(&kept, "Secret") && !fits(&kept, ""));
        let mock = ScramVerifier::mock("ann", b"nonce");
        assert_eq!(mock, ScramVerifier::mock("ann", b"nonce"));
        assert_ne!(mock.salt, ScramVerifier::mock("bob", b"nonce").salt);
        assert_ne!(mock.salt, ScramVerifier::mock("ann", b"other").salt);
        assert!(!mock.matches(b"secret").expect("any key will do"));
    }

    /// RFC 4013, section 3: a soft hyphen is mapped to nothing, and ª to a.
    #[test]
    fn passwords_are_prepared() {
        assert_eq!(scram("I\u{ad}X", 7), scram("IX", 7));
        assert_eq!(scram("\u{aa}", 7), scram("a", 7));
        assert_ne!(scram("\u{7}", 7), scram("", 7));
        assert_ne!(scram("\u{ad}", 7), scram("", 7));
    }
}
