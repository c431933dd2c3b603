//! ON CONFLICT (…) WHERE …: the keys of a unique index, which sqlparser reads only as plain
//! columns. Anything else reaches its grammar as the name of a constraint that holds the text.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::parser::lexer::lexeme::is_word;
use crate::parser::lexer::position::Positions;

/// What such a name begins with: no identifier holds this character.
pub const INFERENCE: &str = "\u{1}inference";

/// Puts names into the place of inferences that are more than columns.
pub(in crate::parser) fn rewrite_inference(
    tokens: Vec<TokenWithSpan>,
    positions: &Positions<'_>,
) -> Vec<TokenWithSpan> {
    let opens = |at: usize| {
        is_word(tokens.get(at), "on")
            && is_word(tokens.get(at + 1), "conflict")
            && tokens.get(at + 2).is_some_and(|token| token.token == Token::LParen)
    };
    let Some(first) = (0..tokens.len()).find(|at| opens(*at)) else { return tokens };
    let mut out = tokens[..first].to_vec();
    let mut at = first;
    while at < tokens.len() {
        let end = if opens(at) { inference_end(&tokens, at + 2) } else { None };
        let Some(end) = end else {
            out.push(tokens[at].clone());
            at += 1;
            continue;
        };
        let span = tokens[at + 2].span;
        let range = positions.byte(span.start)..positions.byte(tokens[end - 1].span.end);
        let text = format!("{INFERENCE}{}", positions.text().get(range).unwrap_or_default());
        out.extend(tokens[at..at + 2].iter().cloned());
        let name = Token::Word(Word { value: text, quote_style: Some('"'), keyword: Keyword::NoKeyword });
        for token in [Token::make_keyword("ON"), Token::make_keyword("CONSTRAINT"), name] {
            out.push(TokenWithSpan { token, span });
        }
        at = end;
    }
    out
}

/// The token after an inference that begins at `open`; `None` where sqlparser reads it itself.
fn inference_end(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut plain = true;
    let mut at = open;
    loop {
        match &tokens.get(at)?.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Word(_) | Token::Comma => {}
            _ => plain = false,
        }
        plain &= depth <= 1;
        at += 1;
        if depth == 0 {
            break;
        }
    }
    // Two words in a row are an operator class or a collation.
    plain &= !tokens[open..at]
        .windows(2)
        .any(|pair| matches!((&pair[0].token, &pair[1].token), (Token::Word(_), Token::Word(_))));
    if is_word(tokens.get(at), "where") {
        plain = false;
        let mut depth = 0usize;
        loop {
            match &tokens.get(at)?.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.checked_sub(1)?,
                Token::SemiColon => return None,
                Token::Word(_) if depth == 0 && is_word(tokens.get(at), "do") => break,
                _ => {}
            }
            at += 1;
        }
    }
    (!plain).then_some(at)
}
