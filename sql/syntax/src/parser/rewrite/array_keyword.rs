//! The standard's names of array types, `int ARRAY` and `int ARRAY[3]`, in casts and in the columns
//! that a function's rows are said to have. sqlparser reads them in part or not at all: they reach its
//! grammar as `int[]` and `int[3]`. Elsewhere the word begins a constructor.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parser::lexer::keywords::is_reserved;
use crate::parser::lexer::lexeme::{is_word, keyword};

/// Words that go on with the name of a type.
const GOING_ON: [&str; 13] = [
    "precision",
    "varying",
    "with",
    "without",
    "time",
    "zone",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "to",
];

/// ARRAY behind the name of a type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ArrayWord {
    place: usize,
    /// Whether `[n]` follows.
    bounded: bool,
}

impl ArrayWord {
    /// The place behind it and its bound.
    fn end(self) -> usize {
        self.place + if self.bounded { 4 } else { 1 }
    }
}

/// Rewrites ARRAY where it makes an array of the type before it.
pub(in crate::parser) fn rewrite_array_words(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| keyword(Some(token)) == Some(Keyword::ARRAY)) {
        return tokens;
    }
    let found = array_words(&tokens);
    let mut rewritten = Vec::with_capacity(tokens.len() + found.len());
    let mut found = found.into_iter().peekable();
    for (place, token) in tokens.into_iter().enumerate() {
        match found.next_if(|word| word.place == place) {
            None => rewritten.push(token),
            // The brackets are there.
            Some(word) if word.bounded => {}
            Some(_) => {
                let span = token.span;
                rewritten.push(TokenWithSpan { token: Token::LBracket, span });
                rewritten.push(TokenWithSpan { token: Token::RBracket, span });
            }
        }
    }
    rewritten
}

/// Each such word, in the order of their places.
fn array_words(tokens: &[TokenWithSpan]) -> Vec<ArrayWord> {
    let mut found = Vec::new();
    // Of each open parenthesis, whether it is that of CAST.
    let mut casts: Vec<bool> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let word = match &token.token {
            Token::DoubleColon => array_behind(tokens, at + 1),
            Token::LParen => {
                casts.push(at > 0 && keyword(tokens.get(at - 1)) == Some(Keyword::CAST));
                array_of_column(tokens, at + 1)
            }
            Token::RParen => {
                casts.pop();
                None
            }
            Token::Comma => array_of_column(tokens, at + 1),
            Token::Word(_) if casts.last() == Some(&true) && is_word(Some(token), "as") => {
                array_behind(tokens, at + 1)
            }
            _ => None,
        };
        found.extend(word);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Words after which an expression begins.
const BEFORE_EXPRESSIONS: [&str; 18] = [
    "select",
    "distinct",
    "where",
    "having",
    "and",
    "or",
    "not",
    "case",
    "when",
    "then",
    "else",
    "returning",
    "limit",
    "offset",
    "between",
    "like",
    "ilike",
    "by",
];

/// Whether the word ARRAY at this place begins an expression as a constructor does and makes none:
/// neither a bracket nor a parenthesis follows. It names no column, for which sqlparser would take it.
pub(in crate::parser) fn constructs_nothing(tokens: &[TokenWithSpan], at: usize) -> bool {
    let follows = tokens.get(at + 1).map(|token| &token.token);
    if !is_word(tokens.get(at), "array") || matches!(follows, Some(Token::LBracket | Token::LParen)) {
        return false;
    }
    let Some(before) = at.checked_sub(1).and_then(|before| tokens.get(before)) else { return false };
    match &before.token {
        Token::Word(_) => BEFORE_EXPRESSIONS.iter().any(|word| is_word(Some(before), word)),
        Token::Eq
        | Token::Neq
        | Token::Lt
        | Token::Gt
        | Token::LtEq
        | Token::GtEq
        | Token::Plus
        | Token::Minus
        | Token::Div
        | Token::StringConcat => true,
        // There are lists of columns and of their types, too, but before any of these words.
        Token::LParen | Token::Comma => tokens[..at]
            .iter()
            .rev()
            .take_while(|token| token.token != Token::SemiColon)
            .any(|token| ["select", "values", "set"].iter().any(|word| is_word(Some(token), word))),
        _ => false,
    }
}

/// Whether a word may be a name without quotes, or has them.
fn is_name(token: Option<&TokenWithSpan>) -> bool {
    match token.map(|token| &token.token) {
        Some(Token::Word(word)) => word.quote_style.is_some() || !is_reserved(&word.value.to_lowercase()),
        _ => false,
    }
}

/// The ARRAY behind the type whose name begins at a place.
fn array_behind(tokens: &[TokenWithSpan], start: usize) -> Option<ArrayWord> {
    if !is_name(tokens.get(start)) {
        return None;
    }
    let mut at = start + 1;
    while tokens.get(at)?.token == Token::Period {
        at += 2;
    }
    loop {
        let token = tokens.get(at)?;
        match &token.token {
            Token::LParen => at = behind_modifiers(tokens, at)?,
            Token::Word(word) if word.quote_style.is_none() => {
                if word.keyword == Keyword::ARRAY {
                    return array_word(tokens, at);
                }
                if !GOING_ON.iter().any(|going_on| word.value.eq_ignore_ascii_case(going_on)) {
                    return None;
                }
                at += 1;
            }
            _ => return None,
        }
    }
}

/// The place behind `(1, 2)`.
fn behind_modifiers(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        match &tokens.get(at)?.token {
            Token::Number(..) | Token::Comma | Token::Minus => at += 1,
            Token::RParen => return Some(at + 1),
            _ => return None,
        }
    }
}

/// The word at a place with its bound; none where more of the kind follows, which nothing has.
fn array_word(tokens: &[TokenWithSpan], place: usize) -> Option<ArrayWord> {
    let at = |ahead: usize| tokens.get(place + ahead).map(|token| &token.token);
    let bounded = at(1) == Some(&Token::LBracket);
    if bounded && !(matches!(at(2), Some(Token::Number(..))) && at(3) == Some(&Token::RBracket)) {
        return None;
    }
    let word = ArrayWord { place, bounded };
    let behind = tokens.get(word.end());
    let goes_on = behind.is_some_and(|token| token.token == Token::LBracket) || is_word(behind, "array");
    (!goes_on).then_some(word)
}

/// The ARRAY of a column definition, `name type ARRAY`, that begins at a place.
fn array_of_column(tokens: &[TokenWithSpan], start: usize) -> Option<ArrayWord> {
    // PARTITION BY has a constructor behind it.
    if !is_name(tokens.get(start)) || is_word(tokens.get(start + 1), "by") {
        return None;
    }
    let word = array_behind(tokens, start + 1)?;
    let behind = tokens.get(word.end()).map(|token| &token.token);
    matches!(behind, Some(Token::Comma | Token::RParen)).then_some(word)
}

#[cfg(test)]
mod tests {
    use crate::parser::{parse_expression, parse_query};

    #[test]
    fn the_word_is_read_as_brackets() {
        for (written, read) in [
            ("cast(a as int array)", "CAST(a AS INT[])"),
            ("cast(a as varchar(3) array[4])", "CAST(a AS VARCHAR(3)[4])"),
            ("cast(cast(a as int array) as text array)", "CAST(CAST(a AS INT[]) AS TEXT[])"),
            ("a::s.t array", "a::s.t[]"),
            ("a::timestamp(3) with time zone array = b", "a::TIMESTAMP(3) WITH TIME ZONE[] = b"),
            ("a::int array::text", "a::INT[]::TEXT"),
            ("f(a::int, array[1])", "f(a::INT, ARRAY[1])"),
            ("a::int[] = array[1]", "a::INT[] = ARRAY[1]"),
        ] {
            let parsed = parse_expression(written).expect("an expression");
            assert_eq!(parsed.to_string(), read, "{written}");
        }
        for wrong in ["cast(a as int[] array)", "cast(a as int array array)", "a::int array[1][2]"] {
            assert!(parse_expression(wrong).is_err(), "{wrong}");
        }
        let query =
            "SELECT * FROM f() AS t(a int array, b numeric(3, 1) array[2]) ORDER BY array[1], array[2]";
        let parsed = parse_query(query).expect("a query").to_string();
        let read = "SELECT * FROM f() AS t (a INT[], b NUMERIC(3,1)[2]) ORDER BY ARRAY[1], ARRAY[2]";
        assert_eq!(parsed, read);
        let query = "SELECT rank() OVER (PARTITION BY array[1], array[2])";
        assert_eq!(parse_query(query).expect("a query").to_string(), query.replace("array", "ARRAY"));
    }
}
