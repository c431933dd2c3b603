//! Elements and slices of array columns as targets of an assignment (`SET a[1] = …`,
//! `INSERT INTO t (a[1:2])`), which sqlparser reads only as names. They reach its grammar as a name
//! that holds their text.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::placeholder;
use crate::parser::lexer::lexeme::is_word;
use crate::parser::lexer::position::Positions;

/// What such a name begins with: no identifier holds this character.
pub(super) const ELEMENT: &str = "\u{1}element";

/// Puts names into the place of targets with subscripts.
pub(in crate::parser) fn rewrite_elements(
    tokens: Vec<TokenWithSpan>,
    positions: &Positions<'_>,
) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| token.token == Token::LBracket) {
        return tokens;
    }
    let targets = targets(&tokens);
    if targets.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    for (start, end) in targets {
        out.extend(tokens[at..start].iter().cloned());
        let mut span = tokens[start].span;
        let from = positions.byte(span.start);
        let text = positions.text().get(from..positions.byte(tokens[end - 1].span.end)).unwrap_or_default();
        let value = placeholder::name_of(ELEMENT, text, span.start, positions);
        span.end = tokens[end - 1].span.end;
        let token = Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword });
        out.push(TokenWithSpan { token, span });
        at = end;
    }
    out.extend(tokens[at..].iter().cloned());
    out
}

/// Where targets with subscripts begin and end, in their order.
fn targets(tokens: &[TokenWithSpan]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut updates = false;
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens.get(at);
        if token.is_some_and(|token| token.token == Token::SemiColon) {
            updates = false;
        } else if is_word(token, "update") {
            updates = true;
        } else if updates && is_word(token, "set") {
            at = assignments(tokens, at + 1, &mut found);
            continue;
        } else if is_word(token, "insert") && is_word(tokens.get(at + 1), "into") {
            at = columns(tokens, at + 2, &mut found);
            continue;
        }
        at += 1;
    }
    found
}

/// The end of a target with subscripts that begins here.
fn target_end(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    if !matches!(tokens.get(start)?.token, Token::Word(_)) {
        return None;
    }
    let mut at = start + 1;
    let mut subscripts = false;
    loop {
        match tokens.get(at)?.token {
            Token::LBracket => subscripts = true,
            // A field, of a composite value.
            Token::Period if matches!(tokens.get(at + 1)?.token, Token::Word(_)) => {
                at += 2;
                continue;
            }
            _ => break,
        }
        let mut depth = 0;
        loop {
            match tokens.get(at)?.token {
                Token::LBracket => depth += 1,
                Token::RBracket => depth -= 1,
                Token::SemiColon => return None,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
    }
    subscripts.then_some(at)
}

/// The assignments after SET; answers where they end at the latest.
fn assignments(tokens: &[TokenWithSpan], start: usize, found: &mut Vec<(usize, usize)>) -> usize {
    let mut at = start;
    loop {
        // A list of targets, or one.
        if tokens.get(at).is_some_and(|token| token.token == Token::LParen) {
            at = listed(tokens, at, found);
        } else if let Some(end) = target_end(tokens, at)
            && tokens.get(end).is_some_and(|token| token.token == Token::Eq)
        {
            found.push((at, end));
            at = end;
        }
        let mut depth = 0_usize;
        loop {
            let Some(token) = tokens.get(at) else { return at };
            match token.token {
                Token::SemiColon => return at,
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket if depth == 0 => return at,
                Token::RParen | Token::RBracket => depth -= 1,
                Token::Comma if depth == 0 => break,
                // A subquery may update, too, but not inside an assignment.
                Token::Word(_)
                    if depth == 0
                        && ["where", "from", "returning", "when"]
                            .iter()
                            .any(|word| is_word(Some(token), word)) =>
                {
                    return at;
                }
                _ => {}
            }
            at += 1;
        }
        at += 1;
    }
}

/// The columns of an INSERT; answers where they end.
fn columns(tokens: &[TokenWithSpan], start: usize, found: &mut Vec<(usize, usize)>) -> usize {
    let mut at = start;
    while matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(_) | Token::Period)) {
        if ["values", "select", "default", "with", "overriding"]
            .iter()
            .any(|word| is_word(tokens.get(at), word))
        {
            return at;
        }
        at += 1;
    }
    let opens = tokens.get(at).is_some_and(|token| token.token == Token::LParen);
    let first = tokens.get(at + 1);
    let query = ["select", "values", "with", "table"].iter().any(|word| is_word(first, word));
    if opens && !query { listed(tokens, at, found) } else { at }
}

/// Targets in parentheses; answers where those end.
fn listed(tokens: &[TokenWithSpan], open: usize, found: &mut Vec<(usize, usize)>) -> usize {
    let mut at = open + 1;
    let mut inside = Vec::new();
    loop {
        match target_end(tokens, at) {
            Some(end) => {
                inside.push((at, end));
                at = end;
            }
            // A column, or a field of one.
            None => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.token == Token::Period) {
                    at += 2;
                }
            }
        }
        match tokens.get(at).map(|token| &token.token) {
            Some(Token::Comma) => at += 1,
            Some(Token::RParen) => break,
            // No list of targets.
            _ => return at.min(tokens.len()),
        }
    }
    found.append(&mut inside);
    at + 1
}
