//! MERGE … USING a join: sqlparser reads one item there only, so the join gets parentheses.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parser::lexer::lexeme::is_word;

/// Puts the sources of MERGE that are joins into parentheses.
pub(in crate::parser) fn rewrite_merge_sources(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let merges = (0..tokens.len())
        .filter(|at| is_word(tokens.get(*at), "merge") && is_word(tokens.get(at + 1), "into"));
    let around: Vec<(usize, usize)> = merges.filter_map(|at| joined_source(&tokens, at)).collect();
    if around.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * around.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let like = |kind: Token| TokenWithSpan { token: kind, span: token.span };
        if around.binary_search_by_key(&at, |(_, end)| *end).is_ok() {
            out.push(like(Token::RParen));
        }
        if around.binary_search_by_key(&at, |(start, _)| *start).is_ok() {
            out.push(like(Token::LParen));
        }
        out.push(token);
    }
    out
}

/// Where the source of the MERGE at a place begins and what follows it, if it is a join: the last ON
/// before WHEN is the MERGE's own.
fn joined_source(tokens: &[TokenWithSpan], merge: usize) -> Option<(usize, usize)> {
    let (mut depth, mut cases) = (0_usize, 0_usize);
    let (mut start, mut own_on, mut joins) = (None, None, false);
    for (at, token) in tokens.iter().enumerate().skip(merge + 2) {
        let word = |word: &str| is_word(Some(token), word);
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return None,
            Token::RParen => depth -= 1,
            Token::SemiColon if depth == 0 => return None,
            _ if depth > 0 => {}
            // Another one, before the first has ended.
            _ if word("merge") && is_word(tokens.get(at + 1), "into") => return None,
            _ if start.is_none() => start = word("using").then_some(at + 1),
            _ if word("join") => joins = true,
            _ if word("on") => own_on = Some(at),
            _ if word("case") => cases += 1,
            _ if word("end") => cases = cases.saturating_sub(1),
            _ if word("when") && cases == 0 => break,
            _ => {}
        }
    }
    if joins { start.zip(own_on) } else { None }
}
