//! GRANT, ALTER and COMMENT where they are about large objects.

use sqlparser::tokenizer::Token;

use crate::ast::{LargeObjectStatement, Statement};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    /// LARGE OBJECT, which is skipped; whether it is there.
    pub(super) fn take_large_object(&mut self) -> bool {
        self.take_words(&["large", "object"])
    }

    /// The number of a large object; one with a sign counts from the other end, as in PostgreSQL.
    pub(super) fn large_object(&mut self) -> Result<u32> {
        let position = self.position();
        let written = self.peek().to_string();
        if !matches!(self.peek(), Token::Number(..) | Token::Minus | Token::Plus) {
            return Err(self.unexpected());
        }
        let number = self.integer()?;
        let number = u32::try_from(number).ok().or_else(|| i32::try_from(number).ok().map(|low| low as u32));
        number.ok_or_else(|| {
            let message = format!("value \"{written}\" is out of range for type oid");
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message).at(Some(position))
        })
    }

    /// ALTER LARGE OBJECT, which only gives it to somebody else.
    pub(super) fn alter_large_object(&mut self) -> Result<Statement> {
        let object = self.large_object()?;
        self.expect("owner")?;
        self.expect("to")?;
        Ok(Statement::LargeObject(LargeObjectStatement::OwnerTo { object, owner: self.role()? }))
    }

    /// COMMENT ON LARGE OBJECT.
    pub(super) fn comment_on_large_object(&mut self) -> Result<Statement> {
        let object = self.large_object()?;
        self.expect("is")?;
        let text = if self.take("null") { None } else { Some(self.string()?) };
        Ok(Statement::LargeObject(LargeObjectStatement::Comment { object, text }))
    }
}
