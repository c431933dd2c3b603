//! `WHERE CURRENT OF cursor`, which SQL's grammar here does not know: taken out of the text of a
//! statement before that is parsed.

use super::lexer::{self, Token};

/// The statement with `TRUE` in the condition's place, every other character where it was, and
/// the name of the cursor; `None` if there is no such condition.
pub(crate) fn split(text: &str) -> Option<(String, String)> {
    // Most statements say neither word.
    let says_of = |window: &[u8]| window.eq_ignore_ascii_case(b"current");
    if !text.as_bytes().windows("current".len()).any(says_of) {
        return None;
    }
    let tokens = lexer::scan(text).ok()?;
    let is = |token: &Token, word: &str| token.is_word(word);
    let at = tokens.windows(4).position(|w| {
        is(&w[0], "where") && is(&w[1], "current") && is(&w[2], "of") && w[3].word().is_some()
    })?;
    let name = tokens[at + 3].word()?.to_string();
    let (start, end) = (tokens[at + 1].start, tokens[at + 3].end);
    let blanks: String = text[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
    let mut rest = text.to_string();
    rest.replace_range(start..end, &blanks);
    // "current" is longer than "true".
    rest.replace_range(start..start + "true".len(), "true");
    Some((rest, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_is_taken_out() {
        let (text, cursor) = split("update t set a = 1 where current of C returning a").unwrap();
        assert_eq!(text, "update t set a = 1 where true         returning a");
        assert_eq!(cursor, "c");
        assert_eq!(split("select current_date where x"), None);
    }
}
