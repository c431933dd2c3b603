//! Messages of clients that speak another encoding than the server.

use archipel_sql::encoding::Encoding;
use archipel_sql::error::SqlError;
use archipel_sql::memory;

use super::frame::Frame;

/// How many times its bytes in another encoding a text takes in UTF8, at most.
const TEXT_TIMES: usize = 3;

/// The strings at the front of a message: how many bytes come before them, and how many they are.
fn strings_of(kind: u8) -> (usize, usize) {
    match kind {
        b'Q' | b'E' | b'f' => (0, 1),
        b'P' | b'B' => (0, 2),
        b'D' | b'C' => (1, 1),
        _ => (0, 0),
    }
}

impl Frame<'_> {
    /// The body with its strings in UTF8; `None` if it has none or they are ASCII. Values of parameters stay as
    /// they are: what they are is their types'.
    ///
    /// Errors: 22021, 22P05.
    pub fn recoded(&self, encoding: Encoding) -> Result<Option<Vec<u8>>, SqlError> {
        let (skipped, strings) = strings_of(self.kind);
        let mut end = skipped.min(self.body.len());
        for _ in 0..strings {
            // What is wrong with the form of a message is found by who reads it.
            let Some(length) = self.body[end..].iter().position(|byte| *byte == 0) else { break };
            end += length + 1;
        }
        let (texts, rest) = self.body.split_at(end);
        if texts.is_ascii() {
            return Ok(None);
        }
        memory::require(TEXT_TIMES * texts.len() + rest.len(), "MessageContext")?;
        let (head, texts) = texts.split_at(skipped);
        let mut body = head.to_vec();
        for text in texts.split_inclusive(|byte| *byte == 0) {
            body.extend_from_slice(encoding.decode(text.strip_suffix(&[0]).unwrap_or(text))?.as_bytes());
            body.push(0);
        }
        body.extend_from_slice(rest);
        Ok(Some(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    #[test]
    fn the_strings_of_a_message_are_put_into_utf8_and_nothing_else() {
        let latin1 = Encoding::named("latin1").unwrap();
        let mut bind = b"p\xe9\0s\0".to_vec();
        bind.extend([0, 0, 0, 1, 0, 0, 0, 1, 0xe9, 0, 0]);
        let body = Frame { kind: b'B', body: &bind }.recoded(latin1).unwrap().unwrap();
        let Message::Bind(bind) = (Frame { kind: b'B', body: &body }).message().unwrap() else {
            panic!("not a Bind")
        };
        assert_eq!((bind.portal, bind.statement), ("p\u{e9}", "s"));
        assert_eq!(bind.parameters().collect::<Vec<_>>(), [(Some(&[0xe9][..]), false)]);
        for (kind, body) in [(b'Q', &b"SELECT 1\0"[..]), (b'Q', b"\xe9"), (b'd', b"\xe9"), (b'D', b"")] {
            assert!(Frame { kind, body }.recoded(latin1).unwrap().is_none());
        }
        let describe = Frame { kind: b'D', body: b"S\xe9\0" }.recoded(latin1).unwrap();
        assert_eq!(describe.as_deref(), Some("S\u{e9}\0".as_bytes()));
        let sjis = Encoding::named("sjis").unwrap();
        let error = Frame { kind: b'Q', body: b"SELECT '\x81'\0" }.recoded(sjis).unwrap_err();
        assert_eq!(error.message(), "invalid byte sequence for encoding \"SJIS\": 0x81 0x27");
    }
}
