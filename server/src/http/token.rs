//! The token that HTTP requests from elsewhere show to be told more than the server's health.

use std::path::Path;

use crate::config::Config;
use crate::regular_file;

/// Fewer characters can be guessed.
const CHARACTERS_MIN: usize = 16;

/// Bytes of its file.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// See the module's head.
pub struct Token(String);

impl Token {
    /// That of the file that a configuration names, relative to the data directory; `None`: it names none.
    /// Reads the file.
    pub fn read(config: &Config) -> Result<Option<Token>, String> {
        let name = config.text("archipel.http_token_file");
        if name.is_empty() {
            return Ok(None);
        }
        Token::of(&config.data_directory.join(name)).map(Some)
    }

    /// That of a file.
    fn of(path: &Path) -> Result<Token, String> {
        let shown = path.display();
        let bytes = regular_file::read(path, FILE_BYTES_MAX)
            .map_err(|error| format!("could not read archipel.http_token_file \"{shown}\": {error}"))?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        if text.len() < CHARACTERS_MIN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the token in archipel.http_token_file \"{shown}\" must have at least {CHARACTERS_MIN} characters, \
                 all of them visible ones of ASCII"
            ));
        }
        Ok(Token(text.to_owned()))
    }

    /// Whether this is it: compared in a time that does not tell how much of it was right.
    pub fn is(&self, shown: &str) -> bool {
        let (own, shown) = (self.0.as_bytes(), shown.as_bytes());
        own.len() == shown.len() && own.iter().zip(shown).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_it() {
        let token = Token("a-long-and-secret-token".to_owned());
        assert!(token.is("a-long-and-secret-token"));
        for wrong in
            ["", "a", "a-long-and-secret-toke", "a-long-and-secret-token2", "A-long-and-secret-token"]
        {
            assert!(!token.is(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_token_that_can_be_guessed_or_cannot_be_sent_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Token::of(&path).map(|token| token.0)
        };
        assert_eq!(read("  sixteen-letters!\n").as_deref(), Ok("sixteen-letters!"));
        for wrong in ["", "\n", "fifteen-letters", "sixteen letters!!", "sixteen-l\u{e9}tters!"] {
            let told = read(wrong).unwrap_err();
            assert!(told.contains("at least 16 characters"), "{told}");
            // The log and whoever starts the server are told of the file, and not what is in it.
            assert!(wrong.trim().is_empty() || !told.contains(wrong), "{told}");
        }
        assert!(Token::of(folder.path()).is_err());
        assert!(Token::of(&folder.path().join("none")).err().unwrap().contains("could not read"));
    }
}
