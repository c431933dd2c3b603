//! Functions whose arguments may be set apart by words: `substring(a FROM 1)`, `position(a IN b)`.
//!
//! sqlparser tries that spelling first and, whatever fails within it, the plain call after it. Such calls
//! within each other are read twice at each level, so that a mistake in the innermost of thirty takes
//! minutes. Which of the two spellings it is shows in the words between the parentheses, before anything
//! is read: each is read once.

use sqlparser::ast::{Expr, Ident, ObjectName};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Words that no column or function can be called without quotes (PostgreSQL 15, appendix C): what begins
/// with one of them and fails is no name.
pub(super) fn is_no_name(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::ARRAY | Keyword::CASE | Keyword::CAST)
}

/// A call of one of these functions, if one comes.
pub(super) fn call(parser: &mut Parser, dialect: &dyn Dialect) -> Option<Result<Expr, ParserError>> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return None };
    if word.quote_style.is_some() || parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    let word = word.clone();
    let holds = |keywords: &[Keyword]| words_within(parser, keywords);
    match word.keyword {
        Keyword::SUBSTRING if holds(&[Keyword::FROM, Keyword::FOR]) => Some(parser.parse_substring()),
        Keyword::OVERLAY if holds(&[Keyword::PLACING]) => {
            parser.advance_token();
            Some(parser.parse_overlay_expr())
        }
        Keyword::POSITION if holds(&[Keyword::IN]) => Some(position(parser, dialect)),
        Keyword::SUBSTRING
        | Keyword::SUBSTR
        | Keyword::OVERLAY
        | Keyword::POSITION
        | Keyword::CEIL
        | Keyword::FLOOR
        | Keyword::CONVERT => {
            let span = parser.peek_token_ref().span;
            parser.advance_token();
            let name = Ident { value: word.value, quote_style: None, span };
            Some(parser.parse_function(ObjectName::from(vec![name])))
        }
        _ => None,
    }
}

/// `position(a IN b)`.
fn position(parser: &mut Parser, dialect: &dyn Dialect) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_subexpr(dialect.prec_value(Precedence::Between))?);
    parser.expect_keyword_is(Keyword::IN)?;
    let within = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Position { expr, r#in: within })
}

/// Whether one of these words stands between the parentheses that come, and in none within them.
fn words_within(parser: &Parser, keywords: &[Keyword]) -> bool {
    let next = parser.peek_token_ref();
    let mut place = parser.get_current_index();
    while !std::ptr::eq(parser.token_at(place), next) {
        if parser.token_at(place).token == Token::EOF {
            return false;
        }
        place += 1;
    }
    let mut depth = 0_usize;
    loop {
        place += 1;
        match &parser.token_at(place).token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if depth <= 1 => return false,
            Token::RParen | Token::RBracket => depth -= 1,
            Token::Word(word)
                if depth == 1 && word.quote_style.is_none() && keywords.contains(&word.keyword) =>
            {
                return true;
            }
            Token::EOF => return false,
            _ => {}
        }
    }
}
