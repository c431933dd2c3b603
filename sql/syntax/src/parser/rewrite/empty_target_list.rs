//! `SELECT` without result columns: sqlparser takes FROM alone behind it. Before anything else that may
//! follow, it gets a column of a name that no column has.

use sqlparser::ast::{Expr, SelectItem};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::parser::lexer::lexeme::keyword;

/// What the only column of no columns is called.
const NOTHING: &str = "\u{1}no columns";

/// Whether a result column stands for none.
pub fn is_no_column(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(Expr::Identifier(name)) if name.value == NOTHING)
}

/// Gives every SELECT without columns its column.
pub(in crate::parser) fn rewrite_no_columns(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !(0..tokens.len()).any(|at| is_empty(&tokens, at)) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 4);
    for (at, token) in tokens.iter().enumerate() {
        out.push(token.clone());
        if is_empty(&tokens, at) {
            let name =
                Word { value: NOTHING.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
            out.push(TokenWithSpan { token: Token::Word(name), span: token.span });
        }
    }
    out
}

/// Whether a SELECT that begins a query stands here, and its columns do not follow.
fn is_empty(tokens: &[TokenWithSpan], at: usize) -> bool {
    if keyword(tokens.get(at)) != Some(Keyword::SELECT) {
        return false;
    }
    let begins = match at.checked_sub(1).map(|before| &tokens[before].token) {
        None | Some(Token::SemiColon | Token::LParen | Token::RParen) => true,
        Some(Token::Word(word)) => {
            matches!(
                word.keyword,
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::ALL | Keyword::DISTINCT
            )
        }
        Some(_) => false,
    };
    let ends = match tokens.get(at + 1).map(|token| &token.token) {
        None | Some(Token::SemiColon | Token::RParen | Token::EOF) => true,
        Some(Token::Word(word)) => {
            word.quote_style.is_none()
                && matches!(
                    word.keyword,
                    Keyword::UNION
                        | Keyword::INTERSECT
                        | Keyword::EXCEPT
                        | Keyword::WHERE
                        | Keyword::GROUP
                        | Keyword::HAVING
                        | Keyword::ORDER
                        | Keyword::LIMIT
                        | Keyword::OFFSET
                )
        }
        Some(_) => false,
    };
    begins && ends
}
