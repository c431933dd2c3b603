//! `FETCH FIRST … ROWS`: sqlparser reads it behind OFFSET alone and with nothing but a number. It
//! reaches the grammar as LIMIT, which may stand on either side of OFFSET, and WITH TIES as a
//! collation of its count that no other expression has.

use sqlparser::ast::Expr;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::parser::lexer::lexeme::is_word;

/// The collation that stands for WITH TIES.
const TIES: &str = "\u{1}with ties";

/// The count of a LIMIT, and whether rows equal to the last one count as it does.
pub fn limit_count(limit: &Expr) -> (&Expr, bool) {
    match limit {
        Expr::Collate { expr, collation } => {
            let is_ties =
                collation.0.first().and_then(|part| part.as_ident()).is_some_and(|name| name.value == TIES);
            if is_ties { (expr, true) } else { (limit, false) }
        }
        _ => (limit, false),
    }
}

/// Rewrites FETCH clauses.
pub(in crate::parser) fn rewrite_fetch(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.windows(2).any(|pair| begins(pair, 0)) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 4);
    let mut at = 0;
    while at < tokens.len() {
        let Some(clause) = clause_at(&tokens, at) else {
            out.push(tokens[at].clone());
            at += 1;
            continue;
        };
        let span = tokens[at].span;
        let end = tokens[clause.end - 1].span;
        let made = |token: Token, span| TokenWithSpan { token, span };
        out.push(made(Token::make_keyword("LIMIT"), span));
        if clause.count.is_empty() {
            out.push(made(Token::Number("1".to_owned(), false), end));
        } else {
            let count = &tokens[clause.count.clone()];
            out.push(made(Token::LParen, count[0].span));
            out.extend(count.iter().cloned());
            // A statement that ends here ends where its own words do.
            out.push(made(Token::RParen, end));
        }
        if clause.ties {
            let name = Word {
                value: TIES.to_owned(),
                quote_style: Some('"'),
                keyword: sqlparser::keywords::Keyword::NoKeyword,
            };
            out.push(made(Token::make_keyword("COLLATE"), end));
            out.push(made(Token::Word(name), end));
        }
        at = clause.end;
    }
    out
}

fn begins(tokens: &[TokenWithSpan], at: usize) -> bool {
    is_word(tokens.get(at), "fetch")
        && (is_word(tokens.get(at + 1), "first") || is_word(tokens.get(at + 1), "next"))
}

struct Fetch {
    /// What says how many rows; empty: one.
    count: std::ops::Range<usize>,
    ties: bool,
    /// Behind the clause.
    end: usize,
}

/// The clause that begins at a place; none where FETCH moves a cursor.
fn clause_at(tokens: &[TokenWithSpan], at: usize) -> Option<Fetch> {
    if !begins(tokens, at) {
        return None;
    }
    let is_rows = |at: usize| is_word(tokens.get(at), "row") || is_word(tokens.get(at), "rows");
    let start = at + 2;
    let rows = if is_rows(start) { start } else { count_end(tokens, start)? };
    if !is_rows(rows) {
        return None;
    }
    let (ties, end) = if is_word(tokens.get(rows + 1), "only") {
        (false, rows + 2)
    } else if is_word(tokens.get(rows + 1), "with") && is_word(tokens.get(rows + 2), "ties") {
        (true, rows + 3)
    } else {
        return None;
    };
    Some(Fetch { count: start..rows, ties, end })
}

/// Behind an expression without operators of its own: a literal, a parameter, a name or a call, or
/// what stands in parentheses.
fn count_end(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let opens = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::LParen);
    let signed = matches!(tokens.get(start)?.token, Token::Plus | Token::Minus);
    let mut at = start + usize::from(signed);
    if !opens(at) {
        tokens.get(at)?;
        at += 1;
        while tokens.get(at).is_some_and(|token| token.token == Token::Period) {
            at += 2;
        }
        if !opens(at) {
            return Some(at);
        }
    }
    let mut depth = 0_usize;
    loop {
        match tokens.get(at)?.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return Some(at + 1),
            Token::RParen => depth -= 1,
            Token::EOF => return None,
            _ => {}
        }
        at += 1;
    }
}
