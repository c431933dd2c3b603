//! Functions whose arguments may be set apart by words: `substring(a FROM 1)`, `position(a IN b)`.
//!
//! sqlparser tries that spelling first and, whatever fails within it, the plain call after it. Such calls
//! within each other are read twice at each level, so that a mistake in the innermost of thirty takes
//! minutes. Which of the two spellings it is shows in the words between the parentheses, before anything
//! is read ([`tell_calls_apart`]): each is read once.

use sqlparser::ast::Expr;
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Words that no column or function can be called without quotes (PostgreSQL 15, appendix C): what begins
/// with one of them and fails is no name.
pub(in crate::parser) fn is_no_name(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::ARRAY | Keyword::CASE | Keyword::CAST | Keyword::NOT)
}

/// The words that set the arguments of a function apart; `None` for functions that have none such.
fn separators(function: Keyword) -> Option<&'static [Keyword]> {
    match function {
        Keyword::SUBSTRING => Some(&[Keyword::FROM, Keyword::FOR]),
        Keyword::OVERLAY => Some(&[Keyword::PLACING]),
        Keyword::POSITION => Some(&[Keyword::IN]),
        Keyword::SUBSTR | Keyword::CEIL | Keyword::FLOOR | Keyword::CONVERT => Some(&[]),
        _ => None,
    }
}

fn plain_keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Takes its keyword from the name of each such function that is called with commas, so that it is a
/// function as others are: those that keep theirs have words between their own parentheses, and not just in
/// some within them. All in one pass.
pub(in crate::parser) fn tell_calls_apart(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    // What is open, with the place of the function's name where no word has been met yet.
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut before: Option<usize> = None;
    let mut with_commas: Vec<usize> = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        let function_at = |at: usize| plain_keyword(&tokens[at].token).and_then(separators);
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => open.push(before.filter(|at| function_at(*at).is_some())),
            Token::LBracket => open.push(None),
            Token::RParen | Token::RBracket => with_commas.extend(open.pop().flatten()),
            other => {
                if let (Some(keyword), Some(Some(at))) = (plain_keyword(other), open.last().copied())
                    && function_at(at).is_some_and(|words| words.contains(&keyword))
                {
                    open.pop();
                    open.push(None);
                }
            }
        }
        before = Some(place);
    }
    for place in with_commas.into_iter().chain(open.into_iter().flatten()) {
        if let Token::Word(word) = &mut tokens[place].token {
            word.keyword = Keyword::NoKeyword;
        }
    }
    tokens
}

/// A call of one of these functions whose arguments words set apart, if one comes.
pub(in crate::parser) fn call(
    parser: &mut Parser,
    dialect: &dyn Dialect,
) -> Option<Result<Expr, ParserError>> {
    let keyword = plain_keyword(&parser.peek_token_ref().token)?;
    if separators(keyword).is_none() || parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    match keyword {
        Keyword::SUBSTRING => Some(parser.parse_substring()),
        Keyword::OVERLAY => {
            parser.advance_token();
            Some(parser.parse_overlay_expr())
        }
        Keyword::POSITION => Some(position(parser, dialect)),
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

#[cfg(test)]
mod tests {
    use crate::parser::parse_expression;

    #[test]
    fn words_count_between_a_function_s_own_parentheses_alone() {
        for (written, read) in [
            ("substring(a FROM 2 FOR 3)", "SUBSTRING(a FROM 2 FOR 3)"),
            ("substring(substring(a FROM 2), 1)", "substring(SUBSTRING(a FROM 2), 1)"),
            ("substring(substring(a, 1) FOR 2)", "SUBSTRING(substring(a, 1) FOR 2)"),
            ("position('x' IN position(a, b))", "POSITION('x' IN position(a, b))"),
            ("position((a IN (1)), b)", "position((a IN (1)), b)"),
            ("ceil(floor(a))", "ceil(floor(a))"),
        ] {
            let parsed = parse_expression(written).expect("an expression");
            assert_eq!(parsed.to_string(), read, "{written}");
        }
    }
}
