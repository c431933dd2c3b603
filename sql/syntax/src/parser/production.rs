//! A whole text by one production of the grammar.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::ast::StatementText;
use crate::error::Result;

pub(super) fn parse_plain(text: &str) -> Result<Vec<StatementText>> {
    let mut cursor = Cursor::new(text)?;
    let mut statements = Vec::new();
    loop {
        while cursor.take_token(&Token::SemiColon) {}
        if *cursor.peek() == Token::EOF {
            return Ok(statements);
        }
        let start = cursor.index();
        statements.push(cursor.statement_text()?);
        if !cursor.at_end() {
            return Err(cursor.unexpected_in(start));
        }
    }
}

pub(super) fn whole<'t, T>(
    text: &'t str,
    production: impl FnOnce(&mut Cursor<'t>) -> Result<T>,
) -> Result<T> {
    let mut cursor = Cursor::new(text)?;
    let value = production(&mut cursor)?;
    if *cursor.peek() == Token::EOF { Ok(value) } else { Err(cursor.unexpected_in(0)) }
}
