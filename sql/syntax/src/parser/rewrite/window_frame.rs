//! What sqlparser does not read of a window's frame: EXCLUDE, and bounds that begin with a string.
//!
//! EXCLUDE reaches its grammar in the name of the window that the definition copies, where no
//! identifier could be. A string where a bound begins it takes for a whole interval, whatever is counted:
//! it goes into parentheses.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::parser::lexer::lexeme::is_word;

/// What such a name begins with: no identifier holds this character.
const EXCLUSION: &str = "\u{1}exclude ";

/// Which rows a frame leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameExclusion {
    #[default]
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

const WORDS: [(&[&str], &str, FrameExclusion); 4] = [
    (&["no", "others"], "none", FrameExclusion::NoOthers),
    (&["current", "row"], "row", FrameExclusion::CurrentRow),
    (&["group"], "group", FrameExclusion::Group),
    (&["ties"], "ties", FrameExclusion::Ties),
];

/// What a definition's window name says: the exclusion, and the name that was written.
pub fn frame_exclusion(name: &str) -> (FrameExclusion, Option<&str>) {
    let Some((word, written)) = name.strip_prefix(EXCLUSION).and_then(|rest| rest.split_once(' ')) else {
        return (FrameExclusion::NoOthers, Some(name));
    };
    let exclusion = WORDS.iter().find(|(_, known, _)| *known == word).map(|(.., exclusion)| *exclusion);
    (exclusion.unwrap_or_default(), (!written.is_empty()).then_some(written))
}

/// Quotes `unbounded` where it names a function or a table: sqlparser takes the word for the bound.
fn quote_names(tokens: &mut [TokenWithSpan]) {
    for at in 1..tokens.len() {
        let before = tokens.get(at - 1);
        let names = is_word(tokens.get(at), "unbounded")
            && matches!(tokens.get(at + 1).map(|token| &token.token), Some(Token::LParen | Token::Period))
            && ["range", "rows", "groups", "between", "and"].iter().any(|word| is_word(before, word));
        if names {
            tokens[at].token = Token::Word(Word {
                value: "unbounded".to_owned(),
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            });
        }
    }
}

/// Puts strings that begin a bound, or are one, into parentheses.
pub(in crate::parser) fn rewrite_bounds(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    quote_names(&mut tokens);
    let begins = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        matches!(tokens[at].token, Token::SingleQuotedString(_))
            && (tokens.get(at + 1).is_some_and(|token| token.token == Token::DoubleColon)
                || ["preceding", "following"].iter().any(|word| is_word(tokens.get(at + 1), word)))
            && ["range", "rows", "groups", "between", "and"].iter().any(|word| is_word(before, word))
            && ends_as_bound(&tokens[at + 1..])
    };
    let strings: Vec<usize> = (0..tokens.len()).filter(|at| begins(*at)).collect();
    if strings.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * strings.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        if strings.binary_search(&at).is_err() {
            out.push(token);
            continue;
        }
        out.push(TokenWithSpan { token: Token::LParen, span });
        out.push(token);
        out.push(TokenWithSpan { token: Token::RParen, span });
    }
    out
}

/// Whether PRECEDING or FOLLOWING comes next outside of parentheses, before anything else that could
/// end an expression there.
fn ends_as_bound(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0;
    for token in tokens {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let is_one_of = |words: [&str; 2]| words.iter().any(|word| is_word(Some(token), word));
        if depth < 0 || depth == 0 && (token.token == Token::Comma || is_one_of(["and", "between"])) {
            return false;
        }
        if depth == 0 && is_one_of(["preceding", "following"]) {
            return true;
        }
    }
    false
}

/// Moves EXCLUDE clauses into names.
pub(in crate::parser) fn rewrite_exclusions(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let ends_bound = |at: usize| {
        ["row", "preceding", "following"].iter().any(|word| at > 0 && is_word(tokens.get(at - 1), word))
    };
    if !(0..tokens.len()).any(|at| is_word(tokens.get(at), "exclude") && ends_bound(at)) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 2);
    // Where in `out` the parentheses around stand.
    let mut open = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let clause = WORDS.iter().find(|(words, ..)| {
            is_word(Some(token), "exclude")
                && ends_bound(at)
                && words.iter().enumerate().all(|(n, word)| is_word(tokens.get(at + 1 + n), word))
                && tokens.get(at + 1 + words.len()).is_some_and(|token| token.token == Token::RParen)
        });
        if let (Some((words, word, _)), Some(&opened)) = (clause, open.last()) {
            name_window(&mut out, opened, word);
            at += 1 + words.len();
            continue;
        }
        match token.token {
            Token::LParen => open.push(out.len()),
            Token::RParen => drop(open.pop()),
            _ => {}
        }
        out.push(token.clone());
        at += 1;
    }
    out
}

/// Puts the exclusion into the name of the window that begins behind a parenthesis.
fn name_window(out: &mut Vec<TokenWithSpan>, opened: usize, word: &str) {
    let begins = ["partition", "order", "rows", "range", "groups"];
    let unnamed = begins.iter().any(|word| is_word(out.get(opened + 1), word));
    let (named, written, span) = match out.get(opened + 1) {
        Some(TokenWithSpan { token: Token::Word(name), span }) if !unnamed => {
            let folded = match name.quote_style {
                Some(_) => name.value.clone(),
                None => name.value.to_lowercase(),
            };
            (true, folded, *span)
        }
        _ => (false, String::new(), out[opened].span),
    };
    let value = format!("{EXCLUSION}{word} {written}");
    let token = Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword });
    let token = TokenWithSpan { token, span };
    if named { out[opened + 1] = token } else { out.insert(opened + 1, token) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_left_out() {
        assert_eq!(frame_exclusion("w"), (FrameExclusion::NoOthers, Some("w")));
        assert_eq!(frame_exclusion("\u{1}exclude ties "), (FrameExclusion::Ties, None));
        assert_eq!(frame_exclusion("\u{1}exclude row my w"), (FrameExclusion::CurrentRow, Some("my w")));
    }
}
