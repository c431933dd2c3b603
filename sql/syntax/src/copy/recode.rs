//! Data of a COPY FROM in another encoding than the server's, in pieces that may cut its characters.

use crate::encoding::Encoding;
use crate::error::{Result, SqlError};
use crate::memory;

/// How many times as many bytes text takes as in its own encoding, at most.
const TEXT_TIMES: usize = 3;

/// Makes text of the pieces, up to the first byte that is wrong.
pub(super) struct Recoder {
    encoding: Encoding,
    /// The beginning of a character.
    unread: Vec<u8>,
    /// What is wrong with what comes behind the text so far.
    error: Option<SqlError>,
}

impl Recoder {
    /// Of data in this encoding; `None` if it is text as it is.
    pub(super) fn of(encoding: Encoding) -> Option<Recoder> {
        (!encoding.is_servers()).then(|| Recoder { encoding, unread: Vec::new(), error: None })
    }

    /// As much of what has come as can be read.
    ///
    /// Errors: 53200. What is wrong with the data is kept ([`Recoder::take_error`]), and nothing is read behind it.
    pub(super) fn push(&mut self, piece: &[u8], context: &'static str) -> Result<String> {
        let mut text = String::new();
        if self.error.is_some() {
            return Ok(text);
        }
        memory::require(piece.len().saturating_mul(TEXT_TIMES), context)?;
        self.unread.extend_from_slice(piece);
        let decoded = self.encoding.decode_into(&self.unread, &mut text);
        self.unread.drain(..decoded.read);
        self.error = decoded.error;
        Ok(text)
    }

    /// No more pieces will come: a character that has begun has no end.
    pub(super) fn finish(&mut self) {
        if self.error.is_none() {
            self.error = self.encoding.decode(&self.unread).err();
        }
    }

    /// Whether something is wrong with the data.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// What is wrong with the data, to be told when the lines before it are done.
    pub(super) fn take_error(&mut self) -> Option<SqlError> {
        self.error.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_cut_anywhere_and_what_is_wrong_waits() {
        assert!(Recoder::of(Encoding::UTF8).is_none());
        let mut recoder = Recoder::of(Encoding::named("sjis").unwrap()).unwrap();
        let mut read = |piece: &[u8]| recoder.push(piece, "test").unwrap();
        assert_eq!([read(b"a\x95"), read(b"\x5c"), read(b"b\x81")], ["a", "表", "b"]);
        assert_eq!([read(b"\x20c"), read(b"d")], ["", ""]);
        let error = recoder.take_error().unwrap();
        assert_eq!(error.message(), "invalid byte sequence for encoding \"SJIS\": 0x81 0x20");
        let mut cut = Recoder::of(Encoding::named("sjis").unwrap()).unwrap();
        cut.push(b"a\x95", "test").unwrap();
        assert!(!cut.has_failed());
        cut.finish();
        assert_eq!(cut.take_error().unwrap().message(), "invalid byte sequence for encoding \"SJIS\": 0x95");
    }
}
