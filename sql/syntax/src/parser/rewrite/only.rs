//! `ONLY t` and `t *`: whether a table's name means its own rows alone. sqlparser knows neither; the
//! first reaches the grammar as a name that begins with [`ONLY`], the second, which says nothing, not
//! at all.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parser::lexer::keywords::is_reserved;
use crate::parser::lexer::lexeme::{is_word, keyword};

/// What the name of a table begins with of which its own rows alone are meant.
pub const ONLY: &str = "\u{1}only ";

/// What may follow `t *`.
const FOLLOWING: [Keyword; 21] = [
    Keyword::AS,
    Keyword::CROSS,
    Keyword::EXCEPT,
    Keyword::FETCH,
    Keyword::FOR,
    Keyword::FULL,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::INNER,
    Keyword::INTERSECT,
    Keyword::JOIN,
    Keyword::LEFT,
    Keyword::LIMIT,
    Keyword::NATURAL,
    Keyword::OFFSET,
    Keyword::ON,
    Keyword::ORDER,
    Keyword::RIGHT,
    Keyword::SET,
    Keyword::UNION,
    Keyword::WHERE,
];

/// Rewrites what stands around the names of tables.
pub(in crate::parser) fn rewrite_only(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 1;
    while at < tokens.len() {
        if is_word(tokens.get(at), "only") && begins_table(&tokens, at) {
            let opens = tokens.get(at + 1).is_some_and(|token| token.token == Token::LParen);
            let name = at + 1 + usize::from(opens);
            let Some(Token::Word(word)) = tokens.get_mut(name).map(|token| &mut token.token) else {
                at += 1;
                continue;
            };
            // Folded here: the mark is no letter of a plain name.
            if word.quote_style.is_none() {
                word.value = word.value.to_lowercase();
                word.quote_style = Some('"');
            }
            word.value.insert_str(0, ONLY);
            word.keyword = Keyword::NoKeyword;
            if opens
                && let Some(end) = name_end(&tokens, name)
                && is_closed(&tokens, end)
            {
                tokens.remove(end + 1);
                tokens.remove(at + 1);
            }
            tokens.remove(at);
        } else if tokens[at].token == Token::Mul && names_all(&tokens, at) {
            tokens.remove(at);
        }
        at += 1;
    }
    tokens
}

/// Whether a table's name begins at a place.
fn begins_table(tokens: &[TokenWithSpan], at: usize) -> bool {
    match tokens.get(at.wrapping_sub(1)) {
        Some(TokenWithSpan { token: Token::Comma, .. }) => {
            // FROM a, ONLY b.
            matches!(tokens.get(at + 1).map(|token| &token.token), Some(Token::Word(_) | Token::LParen))
                && !matches!(
                    tokens.get(at + 1).and_then(|token| keyword(Some(token))),
                    Some(Keyword::FROM | Keyword::AS | Keyword::WHERE)
                )
        }
        before => {
            matches!(keyword(before), Some(Keyword::UPDATE | Keyword::FROM | Keyword::JOIN | Keyword::USING))
                || (is_word(before, "into") && at >= 2 && is_word(tokens.get(at - 2), "merge"))
        }
    }
}

/// The last token of a dotted name.
fn name_end(tokens: &[TokenWithSpan], mut at: usize) -> Option<usize> {
    while tokens.get(at + 1).is_some_and(|token| token.token == Token::Period) {
        at += 2;
    }
    matches!(tokens.get(at)?.token, Token::Word(_)).then_some(at)
}

fn is_closed(tokens: &[TokenWithSpan], end: usize) -> bool {
    tokens.get(end + 1).is_some_and(|token| token.token == Token::RParen)
}

/// Whether a star stands behind the name of a table in FROM, JOIN, UPDATE or DELETE.
fn names_all(tokens: &[TokenWithSpan], star: usize) -> bool {
    let mut start = star;
    loop {
        match start.checked_sub(1).map(|before| &tokens[before].token) {
            Some(Token::Word(_)) => start -= 1,
            _ => return false,
        }
        match start.checked_sub(1).map(|before| &tokens[before].token) {
            Some(Token::Period) => start -= 1,
            _ => break,
        }
    }
    // What goes on as an expression is none: substring(a FROM b * c).
    let ends = match tokens.get(star + 1).map(|token| &token.token) {
        None | Some(Token::SemiColon | Token::RParen | Token::Comma) => true,
        Some(Token::Word(word)) if word.quote_style.is_none() && FOLLOWING.contains(&word.keyword) => true,
        // An alias without AS.
        Some(Token::Word(word)) => {
            (word.quote_style.is_some() || !is_reserved(&word.value.to_lowercase()))
                && begins_tables(tokens, start.wrapping_sub(1))
        }
        Some(_) => false,
    };
    if !ends {
        return false;
    }
    // A word that begins a clause is no table.
    let first = keyword(tokens.get(start));
    let before = start.checked_sub(1).and_then(|before| keyword(tokens.get(before)));
    !matches!(first, Some(Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL | Keyword::RETURNING))
        && matches!(before, Some(Keyword::UPDATE | Keyword::FROM | Keyword::JOIN))
}

/// Whether the word at a place begins the tables of a query or a change, and is no part of an
/// expression: `substring(a FROM b * c)`, `a IS DISTINCT FROM b * c`.
fn begins_tables(tokens: &[TokenWithSpan], at: usize) -> bool {
    match keyword(tokens.get(at)) {
        Some(Keyword::JOIN | Keyword::UPDATE) => return true,
        Some(Keyword::FROM) => {}
        _ => return false,
    }
    let mut closed = 0_usize;
    for before in (0..at).rev() {
        match &tokens[before].token {
            Token::RParen | Token::RBracket => closed += 1,
            Token::LParen | Token::LBracket if closed == 0 => return false,
            Token::LParen | Token::LBracket => closed -= 1,
            Token::SemiColon => return false,
            Token::Word(_) if closed == 0 => match keyword(tokens.get(before)) {
                Some(Keyword::DISTINCT) if before + 1 == at => return false,
                Some(Keyword::SELECT | Keyword::DELETE) => return true,
                _ => {}
            },
            _ => {}
        }
    }
    false
}
