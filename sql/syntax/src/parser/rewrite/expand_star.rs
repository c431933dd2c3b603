//! `(value).*`: sqlparser knows a star behind the names of relations only. Behind anything else it
//! reaches the grammar as a field of a name that no field has.

use sqlparser::ast::{AccessExpr, Expr};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::parser::lexer::lexeme::is_word;

/// What all fields of a row are called instead of a field.
pub const EVERY_FIELD: &str = "\u{1}*";

/// Takes away the star of a whole row that an operator follows (`t.* IS NULL`, `t.*::text`): it is the
/// value of `t` then, and sqlparser expects none of a star in a list.
fn without_operand_stars(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let follows = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(
            Token::DoubleColon | Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq,
        ) => true,
        Some(Token::CustomBinaryOperator(name)) => name.starts_with('*'),
        _ => is_word(tokens.get(at), "is"),
    };
    let is_operand = |at: usize| {
        tokens[at].token == Token::Period
            && tokens.get(at + 1).is_some_and(|token| token.token == Token::Mul)
            && at > 0
            && matches!(tokens[at - 1].token, Token::Word(_))
            && follows(at + 2)
    };
    let stars: Vec<usize> = (0..tokens.len()).filter(|at| is_operand(*at)).collect();
    if stars.is_empty() {
        return tokens;
    }
    let is_star = |at: usize| stars.binary_search(&at).is_ok();
    let is_left = |at: &usize| !is_star(*at) && at.checked_sub(1).is_none_or(|before| !is_star(before));
    tokens.iter().enumerate().filter(|(at, _)| is_left(at)).map(|(_, token)| token.clone()).collect()
}

/// Renames the stars behind values.
pub(in crate::parser) fn rewrite_stars(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut tokens = without_operand_stars(tokens);
    for at in 2..tokens.len() {
        if tokens[at].token == Token::Mul
            && tokens[at - 1].token == Token::Period
            && is_value(&tokens[..at - 1])
        {
            tokens[at].token = Token::Word(Word {
                value: EVERY_FIELD.to_owned(),
                quote_style: Some('"'),
                keyword: sqlparser::keywords::Keyword::NoKeyword,
            });
        }
    }
    tokens
}

/// Whether the tokens end in a value, or in fields of one.
fn is_value(mut before: &[TokenWithSpan]) -> bool {
    while let [rest @ .., period, field] = before
        && period.token == Token::Period
        && matches!(field.token, Token::Word(_))
    {
        before = rest;
    }
    let last = before.last().map(|token| &token.token);
    matches!(last, Some(Token::RParen | Token::RBracket | Token::Placeholder(_)))
}

/// The row all of whose fields are meant, if it is `(row).*`.
pub fn starred(expr: &Expr) -> Option<Expr> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return None };
    let [rest @ .., AccessExpr::Dot(Expr::Identifier(last))] = &access_chain[..] else { return None };
    if last.value != EVERY_FIELD {
        return None;
    }
    Some(match rest {
        [] => (**root).clone(),
        rest => Expr::CompoundFieldAccess { root: root.clone(), access_chain: rest.to_vec() },
    })
}
