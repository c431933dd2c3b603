//! Where operators begin and end: as PostgreSQL's scanner has it (chapter 4.1.3), which sqlparser's
//! tokeniser does not follow in all. It ends a token behind every star and behind some other characters, and
//! takes a sign for a part of the operator before it.

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use super::position::Positions;

/// Characters that let an operator of theirs end in a sign.
const SPECIAL: [char; 10] = ['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'];

/// Characters of operators that stand together as the operators that they are, and the sign in `a>-1` as one
/// of its own. Tokens come with blanks and comments.
pub(super) fn cut_operators(tokens: Vec<TokenWithSpan>, positions: &Positions<'_>) -> Vec<TokenWithSpan> {
    let adjoins = |pair: &[TokenWithSpan]| adjoin(&pair[0], &pair[1]);
    if !tokens.windows(2).any(adjoins) && tokens.iter().all(|token| signs(&token.token) == 0) {
        return tokens;
    }
    let mut cut: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    let mut run: Vec<TokenWithSpan> = Vec::new();
    for token in tokens {
        if run.last().is_some_and(|last| !adjoin(last, &token)) {
            cut.extend(operators_of(std::mem::take(&mut run), positions));
        }
        if is_operator(&token.token) { run.push(token) } else { cut.push(token) }
    }
    cut.extend(operators_of(run, positions));
    cut
}

/// Whether characters of operators follow each other without a blank.
fn adjoin(first: &TokenWithSpan, second: &TokenWithSpan) -> bool {
    first.span.end == second.span.start && is_operator(&first.token) && is_operator(&second.token)
}

/// The operators that the characters of tokens are which stand together.
fn operators_of(run: Vec<TokenWithSpan>, positions: &Positions<'_>) -> Vec<TokenWithSpan> {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return run };
    let (start, end) = (first.span.start, last.span.end);
    let text = positions.text().get(positions.byte(start)..positions.byte(end)).unwrap_or_default();
    let is_plain = !text.is_empty()
        && !text.contains("--")
        && !text.contains("/*")
        && text.bytes().all(|byte| byte.is_ascii());
    if run.len() == 1 || !is_plain {
        return run.into_iter().flat_map(without_signs).collect();
    }
    let at = |offset: usize| Location { line: start.line, column: start.column + offset as u64 };
    let (mut operators, mut from) = (Vec::with_capacity(run.len()), 0);
    // Behind the first operator there are but signs, each of which is one of its own.
    for to in operator_length(text)..=text.len() {
        let span = Span { start: at(from), end: at(to) };
        let known = run.binary_search_by_key(&span.start, |token| token.span.start).ok();
        let known = known.map(|place| &run[place]).filter(|token| token.span.end == span.end);
        let token = known.map_or_else(|| operator_token(&text[from..to]), |known| known.token.clone());
        operators.push(TokenWithSpan { token, span });
        from = to;
    }
    operators
}

/// How long the operator is that characters begin with: signs end one only with one of [`SPECIAL`] before
/// them.
fn operator_length(text: &str) -> usize {
    let ends_in_sign = |length: usize| length > 1 && text[..length].ends_with(['+', '-']);
    if !ends_in_sign(text.len()) || text[..text.len() - 1].contains(SPECIAL) {
        return text.len();
    }
    let mut length = text.len();
    while ends_in_sign(length) {
        length -= 1;
    }
    length
}

/// Whether a token is made of the characters of operators alone.
fn is_operator(token: &Token) -> bool {
    matches!(
        token,
        Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::Mod
            | Token::StringConcat
            | Token::Ampersand
            | Token::Pipe
            | Token::Caret
            | Token::RArrow
            | Token::Sharp
            | Token::DoubleSharp
            | Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::Overlap
            | Token::ExclamationMark
            | Token::DoubleExclamationMark
            | Token::AtSign
            | Token::CaretAt
            | Token::PGSquareRoot
            | Token::PGCubeRoot
            | Token::Arrow
            | Token::LongArrow
            | Token::HashArrow
            | Token::HashLongArrow
            | Token::HashMinus
            | Token::AtArrow
            | Token::ArrowAt
            | Token::AtQuestion
            | Token::AtAt
            | Token::Question
            | Token::QuestionAnd
            | Token::QuestionPipe
            | Token::CustomBinaryOperator(_)
    )
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
    use crate::parser::lexer::scan::raw_tokens;
    use crate::parser::lexer::tokens::tokenize;

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
        assert_eq!(tokens("2^-3.0"), ["2", "^-", "3.0"]);
        assert_eq!(tokens("2 ^ -3"), ["2", "^", "-", "3"]);
        assert_eq!(tokens("f(a=>-1)"), ["f", "(", "a", "=>", "-", "1", ")"]);
        assert_eq!(tokens("a!=-1"), ["a", "!=-", "1"]);
    }

    #[test]
    fn a_long_run_of_signs_is_cut_in_time_that_grows_with_it() {
        const SIGNS: usize = 1 << 18;
        for (begin, more) in [("1", 2), ("1<", 3)] {
            let text = format!("{begin}{}1", "+".repeat(SIGNS));
            let tokens = raw_tokens(&Positions::new(&text)).expect("tokens");
            assert_eq!(tokens.len(), SIGNS + more);
            assert!(tokens[more - 1..SIGNS + more - 1].iter().all(|token| token.token == Token::Plus));
        }
    }
}
