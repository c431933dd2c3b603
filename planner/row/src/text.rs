//! Text values from stored bytes.

use compact_str::CompactString;

/// Text from stored bytes, which only ever came from text.
#[inline]
pub(crate) fn text_of(bytes: &[u8]) -> CompactString {
    if bytes.is_ascii() {
        // Most columns are; checking that is several times cheaper than decoding UTF-8.
        // SAFETY: ASCII is UTF-8.
        return CompactString::new(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => CompactString::new(text),
        Err(_) => CompactString::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        assert_eq!(text_of(b""), "");
        assert_eq!(text_of("a name longer than what lies inline".as_bytes()).len(), 35);
        assert_eq!(text_of("Grüße aus Köln".as_bytes()), "Grüße aus Köln");
        assert_eq!(text_of(&[b'a', 0xFF, b'b']), "a\u{FFFD}b");
        for broken in 0..16 {
            let mut bytes = [b'x'; 16];
            bytes[broken] = 0x80;
            assert!(text_of(&bytes).contains('\u{FFFD}'));
        }
    }
}
