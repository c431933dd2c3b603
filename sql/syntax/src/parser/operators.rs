//! Where operators begin and end: as PostgreSQL's scanner has it (chapter 4.1.3), which sqlparser's
//! tokeniser does not follow in all. It ends a token behind every star, and takes a sign for a part of the
//! operator before it.

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use super::tokens::Positions;

/// Characters that let an operator of theirs end in a sign.
const SPECIAL: [char; 10] = ['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'];

/// `*=` and its kin as one token, and the sign in `a>-1` as one of its own. Tokens come with blanks and
/// comments.
pub(super) fn cut_operators(tokens: Vec<TokenWithSpan>, positions: &Positions<'_>) -> Vec<TokenWithSpan> {
    let joins = |pair: &[TokenWithSpan]| pair[0].token == Token::Mul && compares(&pair[1].token);
    if !tokens.windows(2).any(joins) && tokens.iter().all(|token| signs(&token.token) == 0) {
        return tokens;
    }
    let mut cut: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    for token in tokens.into_iter().flat_map(without_signs) {
        match cut.last_mut() {
            Some(star) if star.token == Token::Mul && compares(&token.token) => {
                let written = positions.byte(star.span.start)..positions.byte(token.span.end);
                star.token = Token::CustomBinaryOperator(positions.text()[written].to_owned());
                star.span.end = token.span.end;
            }
            _ => cut.push(token),
        }
    }
    cut
}

/// Whether an operator begins with a star and goes on like this.
fn compares(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
}

/// How many signs at the end of a token are none of its operator's.
fn signs(token: &Token) -> usize {
    let Token::CustomBinaryOperator(name) = token else { return 0 };
    // Where a comment begins, what follows is no sign.
    if name.contains(SPECIAL) || name.contains("--") {
        return 0;
    }
    let signs = name.len() - name.trim_end_matches(['+', '-']).len();
    signs.min(name.len() - 1)
}

/// An operator, and the signs behind it.
fn without_signs(token: TokenWithSpan) -> Vec<TokenWithSpan> {
    let count = signs(&token.token);
    let Token::CustomBinaryOperator(name) = &token.token else { return vec![token] };
    if count == 0 {
        return vec![token];
    }
    let start = token.span.start;
    let at = |offset: usize| Location { line: start.line, column: start.column + offset as u64 };
    let part = |token: Token, from: usize, to: usize| TokenWithSpan {
        token,
        span: Span { start: at(from), end: at(to) },
    };
    let (operator, signs) = name.split_at(name.len() - count);
    let mut parts = vec![part(operator_token(operator), 0, operator.len())];
    parts.extend(signs.bytes().enumerate().map(|(place, sign)| {
        let token = if sign == b'-' { Token::Minus } else { Token::Plus };
        let from = operator.len() + place;
        part(token, from, from + 1)
    }));
    parts
}

/// The token of an operator, as sqlparser has it where no sign follows.
fn operator_token(operator: &str) -> Token {
    match operator {
        "+" => Token::Plus,
        "-" => Token::Minus,
        "<" => Token::Lt,
        ">" => Token::Gt,
        "<=" => Token::LtEq,
        ">=" => Token::GtEq,
        "<>" => Token::Neq,
        "<<" => Token::ShiftLeft,
        ">>" => Token::ShiftRight,
        "->" => Token::Arrow,
        "->>" => Token::LongArrow,
        other => Token::CustomBinaryOperator(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::tokens::tokenize;

    fn tokens(text: &str) -> Vec<String> {
        let tokens = tokenize(&Positions::new(text)).expect("tokens");
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn a_star_begins_an_operator() {
        assert_eq!(tokens("a *= b"), ["a", "*=", "b"]);
        assert_eq!(tokens("a*<>b"), ["a", "*<>", "b"]);
        assert_eq!(tokens("a*>=-1"), ["a", "*>=", "-", "1"]);
        assert_eq!(tokens("a * <b"), ["a", "*", "<", "b"]);
        assert_eq!(tokens("2*-1"), ["2", "*", "-", "1"]);
    }

    #[test]
    fn a_sign_ends_an_operator() {
        assert_eq!(tokens("a>-1"), ["a", ">", "-", "1"]);
        assert_eq!(tokens("a<>-1"), ["a", "<>", "-", "1"]);
        assert_eq!(tokens("a->-1"), ["a", "->", "-", "1"]);
        assert_eq!(tokens("1-+-1"), ["1", "-", "+", "-", "1"]);
        assert_eq!(tokens("5%-3"), ["5", "%-", "3"]);
    }
}
