//! The token that HTTP requests from elsewhere show to be told more than the server's health.

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
        let path = config.data_directory.join(name);
        let shown = path.display();
        let bytes = regular_file::read(&path, FILE_BYTES_MAX)
            .map_err(|error| format!("could not read archipel.http_token_file \"{shown}\": {error}"))?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        if text.len() < CHARACTERS_MIN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the token in archipel.http_token_file \"{shown}\" must have at least {CHARACTERS_MIN} characters, \
                 all of them visible ones of ASCII"
            ));
        }
        Ok(Some(Token(text.to_owned())))
    }

    /// Whether this is it: compared in a time that does not tell how much of it was right.
    pub fn is(&self, shown: &str) -> bool {
        let (own, shown) = (self.0.as_bytes(), shown.as_bytes());
        own.len() == shown.len() && own.iter().zip(shown).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}
