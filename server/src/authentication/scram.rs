//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), with PostgreSQL's errors (auth-scram.c).
//!
//! ```text
//! client                                          server
//!   n,,n=,r=NONCE                        ──────▶
//!                                        ◀──────    r=NONCE+MORE,s=SALT,i=ROUNDS
//!   c=biws,r=NONCE+MORE,p=PROOF          ──────▶
//!                                        ◀──────    v=SIGNATURE
//! ```
//!
//! The exchange with a role that has no such verifier is the same to the end, and fails there. Who the client
//! is the startup packet has said; the name in the exchange is not looked at, as in PostgreSQL. pgwire's
//! exchange takes the server's certificate for channel binding, where here its hash is known alone, and
//! has errors of its own.

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::password::ScramVerifier;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The mechanism with channel binding.
pub const PLUS: &str = "SCRAM-SHA-256-PLUS";
/// The mechanism without.
pub const PLAIN: &str = "SCRAM-SHA-256";

/// What the client says before the hash of the server's certificate.
const BINDING_HEADER: &[u8] = b"p=tls-server-end-point,,";

/// What one exchange is about.
pub struct Scram<'e> {
    pub verifier: ScramVerifier,
    /// The hash of the server's certificate, if the connection can be bound to it.
    pub end_point: Option<&'e [u8]>,
    /// Whether the client has chosen to be bound to it.
    pub bound: bool,
}

/// What the server has asked, and what both have said.
pub struct Challenge {
    /// To be sent.
    pub server_first: String,
    client_first_bare: Vec<u8>,
    nonce: Vec<u8>,
    /// `n`, `y` or `p`, as the client began.
    flag: u8,
}

fn violation(message: &str) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

fn malformed(detail: impl Into<String>) -> SqlError {
    violation("malformed SCRAM message").with_detail(detail)
}

/// A byte of a client as an error shows it.
fn shown(byte: Option<u8>) -> String {
    match byte.unwrap_or(0) {
        byte @ 0x21..=0x7e => format!("'{}'", char::from(byte)),
        byte => format!("0x{byte:02x}"),
    }
}

/// The attributes of a message, one after the other.
struct Attributes<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Attributes<'m> {
    fn peek(&self) -> Option<u8> {
        self.message.get(self.at).copied()
    }

    fn value(&mut self, name: u8) -> Result<&'m [u8]> {
        let name = char::from(name);
        if self.message.get(self.at + 1) != Some(&b'=') {
            return Err(malformed(format!("Expected character \"=\" for attribute \"{name}\".")));
        }
        let rest = &self.message[self.at + 2..];
        let length = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
        self.at = (self.at + 2 + length + 1).min(self.message.len());
        Ok(&rest[..length])
    }

    /// The value of the next attribute, which is to be this one.
    fn expect(&mut self, name: u8) -> Result<&'m [u8]> {
        if self.peek() != Some(name) {
            let (expected, found) = (char::from(name), shown(self.peek()));
            return Err(malformed(format!("Expected attribute \"{expected}\" but found \"{found}\".")));
        }
        self.value(name)
    }

    /// The next attribute, whichever it is.
    fn any(&mut self) -> Result<(u8, &'m [u8])> {
        match self.peek() {
            None => Err(malformed("Attribute expected, but found end of string.")),
            Some(name) if name.is_ascii_alphabetic() => Ok((name, self.value(name)?)),
            other => {
                let found = shown(other);
                Err(malformed(format!("Attribute expected, but found invalid character \"{found}\".")))
            }
        }
    }

    fn comma(&mut self) -> Result<()> {
        if self.peek() != Some(b',') {
            let found = shown(self.peek());
            return Err(malformed(format!("Comma expected, but found character \"{found}\".")));
        }
        self.at += 1;
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.message.len()
    }
}

fn check_text(message: &[u8]) -> Result<()> {
    if message.is_empty() {
        return Err(malformed("The message is empty."));
    }
    if message.contains(&0) {
        return Err(malformed("Message length does not match input length."));
    }
    Ok(())
}

impl Scram<'_> {
    /// Takes the client's first message, and answers the server's. `nonce` is the server's part.
    pub fn challenge(&self, message: &[u8], nonce: &str) -> Result<Challenge> {
        check_text(message)?;
        let mut attributes = Attributes { message, at: 0 };
        let flag = self.binding_flag(&mut attributes)?;
        match attributes.peek() {
            Some(b'a') => {
                let message = "client uses authorization identity, but it is not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            Some(b',') => attributes.at += 1,
            other => {
                let found = shown(other);
                return Err(malformed(format!("Unexpected attribute \"{found}\" in client-first-message.")));
            }
        }
        let client_first_bare = message[attributes.at..].to_vec();
        if attributes.peek() == Some(b'm') {
            let message = "client requires an unsupported SCRAM extension";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        attributes.expect(b'n')?;
        let client_nonce = attributes.expect(b'r')?;
        if !client_nonce.iter().all(|byte| (0x21..=0x7e).contains(byte)) {
            return Err(violation("non-printable characters in SCRAM nonce"));
        }
        while !attributes.is_at_end() {
            attributes.any()?;
        }
        let nonce = [client_nonce, nonce.as_bytes()].concat();
        let salt = STANDARD.encode(&self.verifier.salt);
        let server_first =
            format!("r={},s={salt},i={}", String::from_utf8_lossy(&nonce), self.verifier.rounds);
        Ok(Challenge { server_first, client_first_bare, nonce, flag })
    }

    /// How the client wants to be bound to the encryption, if at all.
    fn binding_flag(&self, attributes: &mut Attributes<'_>) -> Result<u8> {
        match attributes.peek() {
            Some(b'n' | b'y') if self.bound => Err(malformed(
                "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel \
                 binding data.",
            )),
            Some(b'y') if self.end_point.is_some() => Err(SqlError::new(
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                "SCRAM channel binding negotiation error",
            )
            .with_detail(
                "The client supports SCRAM channel binding but thinks the server does not.  However, this \
                 server does support channel binding.",
            )),
            Some(flag @ (b'n' | b'y')) => {
                attributes.at += 1;
                attributes.comma()?;
                Ok(flag)
            }
            Some(b'p') if !self.bound => Err(malformed(
                "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes \
                 channel binding data.",
            )),
            Some(b'p') => {
                let kind = attributes.expect(b'p')?;
                if kind != b"tls-server-end-point" {
                    let printable = |byte: &u8| match byte {
                        0x21..=0x7e => char::from(*byte),
                        _ => '?',
                    };
                    let kind: String = kind.iter().take(30).map(printable).collect();
                    return Err(violation(&format!("unsupported SCRAM channel-binding type \"{kind}\"")));
                }
                Ok(b'p')
            }
            other => {
                let found = shown(other);
                Err(malformed(format!("Unexpected channel-binding flag \"{found}\".")))
            }
        }
    }

    /// Takes the client's last message; answers the server's, `None` if the client does not know the password.
    pub fn finish(&self, challenge: &Challenge, message: &[u8]) -> Result<Option<String>> {
        check_text(message)?;
        let mut attributes = Attributes { message, at: 0 };
        self.check_binding(challenge.flag, attributes.expect(b'c')?)?;
        let nonce = attributes.expect(b'r')?;
        let (without_proof, proof) = loop {
            let before = attributes.at;
            if let (b'p', proof) = attributes.any()? {
                // Without the comma in front.
                break (&message[..before.saturating_sub(1)], proof);
            }
        };
        let proof = STANDARD.decode(proof).ok().and_then(|proof| <[u8; 32]>::try_from(proof).ok());
        let proof = proof.ok_or_else(|| malformed("Malformed proof in client-final-message."))?;
        if !attributes.is_at_end() {
            return Err(malformed("Garbage found at the end of client-final-message."));
        }
        if nonce != challenge.nonce {
            return Err(violation("invalid SCRAM response").with_detail("Nonce does not match."));
        }
        let said =
            [&challenge.client_first_bare[..], challenge.server_first.as_bytes(), without_proof].join(&b',');
        if !self.verifier.accepts(&said, &proof)? {
            return Ok(None);
        }
        Ok(Some(format!("v={}", STANDARD.encode(self.verifier.signature(&said)?))))
    }

    fn check_binding(&self, flag: u8, binding: &[u8]) -> Result<()> {
        if self.bound {
            let expected = [BINDING_HEADER, self.end_point.unwrap_or_default()].concat();
            if binding == STANDARD.encode(expected).as_bytes() {
                return Ok(());
            }
            let message = "SCRAM channel binding check failed";
            return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message));
        }
        // "n,," and "y,,".
        match (flag, binding) {
            (b'n', b"biws") | (b'y', b"eSws") => Ok(()),
            _ => Err(violation("unexpected SCRAM channel-binding attribute in client-final-message")),
        }
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::password::Verifier;

    use super::*;

    /// RFC 7677, section 3, whose salt and rounds these are.
    const VERIFIER: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

    fn scram(end_point: Option<&[u8]>, bound: bool) -> Scram<'_> {
        let Some(Verifier::Scram(verifier)) = Verifier::parse(VERIFIER) else { panic!("a verifier") };
        Scram { verifier, end_point, bound }
    }

    fn told(result: Result<impl Sized>) -> String {
        let error = result.err().expect("an error");
        let detail = error.fields().detail.as_deref().unwrap_or_default();
        format!("{} {}: {detail}", error.state().as_str(), error.message())
    }

    #[test]
    fn the_exchange_of_the_standard_is_taken() {
        let scram = scram(None, false);
        let challenge = scram.challenge(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", SERVER_NONCE).unwrap();
        assert_eq!(
            challenge.server_first,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let signature = scram.finish(&challenge, last.as_bytes()).unwrap();
        assert_eq!(signature.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        let wrong = last.replace("p=dHz", "p=dHy");
        assert_eq!(scram.finish(&challenge, wrong.as_bytes()).unwrap(), None);
        for (from, to, expected) in [
            ("c=biws", "c=eSws", "unexpected SCRAM channel-binding attribute"),
            ("c=biws", "x=biws", "Expected attribute \"c\" but found \"'x'\"."),
            ("r=rOpr", "r=sOpr", "Nonce does not match."),
            (",p=dHzb", ",p=", "Malformed proof in client-final-message."),
            (",p=dHzb", ",1=dHzb", "Attribute expected, but found invalid character \"'1'\"."),
            (",p=dHzb", ",x=dHzb", "Attribute expected, but found end of string."),
            ("ndVQ=", "ndVQ=,x=y", "Garbage found at the end of client-final-message."),
        ] {
            let told = told(scram.finish(&challenge, last.replace(from, to).as_bytes()));
            assert!(told.contains(expected) && told.starts_with("08P01"), "{told}");
        }
    }

    #[test]
    fn malformed_first_messages_are_told_as_postgresql_does() {
        let plain = scram(None, false);
        for (message, expected) in [
            (&b""[..], "08P01 malformed SCRAM message: The message is empty."),
            (b"n,,\0", "Message length does not match input length."),
            (b"x,,n=,r=a", "Unexpected channel-binding flag \"'x'\"."),
            (b"n", "Comma expected, but found character \"0x00\"."),
            (b"n,a=x,n=,r=a", "0A000 client uses authorization identity, but it is not supported"),
            (b"n,x,", "Unexpected attribute \"'x'\" in client-first-message."),
            (b"n,,m=x,n=,r=a", "0A000 client requires an unsupported SCRAM extension"),
            (b"n,,r=a", "Expected attribute \"n\" but found \"'r'\"."),
            (b"n,,n,r=a", "Expected character \"=\" for attribute \"n\"."),
            (b"n,,n=", "Expected attribute \"r\" but found \"0x00\"."),
            (b"n,,n=,r=a\xff", "08P01 non-printable characters in SCRAM nonce"),
            (b"n,,n=,r=a,\x01", "Attribute expected, but found invalid character \"0x01\"."),
            (b"p=tls-server-end-point,,n=,r=a", "without channel binding, but the SCRAM message includes"),
        ] {
            let told = told(plain.challenge(message, "b"));
            assert!(told.contains(expected), "{told} for {message:?}");
        }
    }

    #[test]
    fn a_client_is_bound_to_the_certificate_it_has_seen() {
        let bound = scram(Some(b"hash"), true);
        let challenge = bound.challenge(b"p=tls-server-end-point,,n=,r=a", "b").unwrap();
        let last = |hash: &[u8]| {
            let binding = STANDARD.encode([BINDING_HEADER, hash].concat());
            format!("c={binding},r=ab,p={}", STANDARD.encode([0; 32])).into_bytes()
        };
        assert_eq!(bound.finish(&challenge, &last(b"hash")).unwrap(), None, "bound, with a wrong password");
        assert!(told(bound.finish(&challenge, &last(b"other"))).contains("channel binding check failed"));
        assert!(told(bound.challenge(b"n,,n=,r=a", "b")).contains("does not include channel binding data"));
        let unbound = scram(Some(b"hash"), false);
        assert!(told(unbound.challenge(b"y,,n=,r=a", "b")).starts_with("28000 SCRAM channel binding neg"));
        assert!(unbound.challenge(b"n,,n=,r=a", "b").is_ok());
        assert!(scram(None, false).challenge(b"y,,n=,r=a", "b").is_ok());
        let other = bound.challenge(b"p=tls-unique,,n=,r=a", "b");
        assert!(told(other).contains("unsupported SCRAM channel-binding type \"tls-unique\""));
    }
}
