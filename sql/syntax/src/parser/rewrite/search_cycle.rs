//! SEARCH and CYCLE after a recursive query, which sqlparser does not read. They reach its grammar
//! as a name after the query (`WITH q AS (…) FROM name`), where no identifier could be.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::placeholder;
use crate::parser::lexer::lexeme::is_word;
use crate::parser::lexer::position::Positions;

/// What such a name begins with: no identifier holds this character.
pub(in crate::parser) const CLAUSES: &str = "\u{1}recursion";

/// Puts a name into the place of SEARCH and CYCLE clauses.
pub(in crate::parser) fn rewrite_recursion(
    tokens: Vec<TokenWithSpan>,
    positions: &Positions<'_>,
) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| is_word(Some(token), "search") || is_word(Some(token), "cycle")) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let end = match at.checked_sub(1).map(|before| &tokens[before].token) {
            Some(Token::RParen) => clauses_end(&tokens, at),
            _ => None,
        };
        let Some(end) = end else {
            out.push(token.clone());
            at += 1;
            continue;
        };
        let mut span = token.span;
        let start = positions.byte(span.start);
        let text = positions.text().get(start..positions.byte(tokens[end - 1].span.end)).unwrap_or_default();
        let value = placeholder::name_of(CLAUSES, text, span.start, positions);
        span.end = tokens[end - 1].span.end;
        let word = |value: &str, quote_style, keyword| {
            Token::Word(Word { value: value.to_owned(), quote_style, keyword })
        };
        out.push(TokenWithSpan { token: word("FROM", None, Keyword::FROM), span });
        out.push(TokenWithSpan { token: word(&value, Some('"'), Keyword::NoKeyword), span });
        at = end;
    }
    out
}

/// Where the clauses end that begin here, if some do.
fn clauses_end(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let word = |at: usize, text: &str| is_word(tokens.get(at), text);
    let mut at = start;
    if word(at, "search") {
        if !(word(at + 1, "depth") || word(at + 1, "breadth"))
            || !word(at + 2, "first")
            || !word(at + 3, "by")
        {
            return None;
        }
        at = columns_end(tokens, at + 4)? + 2;
    }
    if word(at, "cycle") {
        // The values of the mark are constants.
        at = (columns_end(tokens, at + 1)?..tokens.len()).find(|at| word(*at, "using"))? + 2;
    }
    (at > start && at <= tokens.len()).then_some(at)
}

/// Where SET stands after a list of columns.
fn columns_end(tokens: &[TokenWithSpan], mut at: usize) -> Option<usize> {
    loop {
        match (&tokens.get(at)?.token, &tokens.get(at + 1)?.token) {
            (Token::Word(_), Token::Comma) => at += 2,
            (Token::Word(_), _) if is_word(tokens.get(at + 1), "set") => return Some(at + 1),
            _ => return None,
        }
    }
}
