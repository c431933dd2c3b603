//! CREATE INDEX and sequences.

use sqlparser::tokenizer::Token;

use crate::ast::Persistence;
use crate::ast::{
    CreateIndex, CreateSequence, IndexElement, IndexKey, QualifiedName, SequenceOption, Statement,
};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    /// After CREATE, at [UNIQUE] INDEX.
    pub(super) fn create_index(&mut self) -> Result<Statement> {
        let unique = self.take("unique");
        self.expect("index")?;
        let concurrently = self.take("concurrently");
        let if_not_exists = self.take_if_not_exists();
        let name = if self.at("on") { None } else { Some(self.identifier()?) };
        self.expect("on")?;
        let only = self.take("only");
        let table = self.name()?;
        self.take_token(&Token::Mul);
        let method = if self.take("using") { Some(self.identifier()?) } else { None };
        let elements = self.parenthesized(Self::index_element)?;
        let include = self.include()?;
        let nulls_not_distinct = self.nulls_not_distinct()?;
        let options = if self.take("with") { self.storage_options()? } else { Vec::new() };
        let tablespace = self.tablespace()?;
        let predicate = if self.take("where") { Some(self.expression()?) } else { None };
        Ok(Statement::CreateIndex(Box::new(CreateIndex {
            unique,
            concurrently,
            if_not_exists,
            name,
            table,
            only,
            method,
            elements,
            include,
            nulls_not_distinct,
            options,
            tablespace,
            predicate,
        })))
    }

    pub(in crate::parser) fn index_element(&mut self) -> Result<IndexElement> {
        let position = self.position();
        let key = if *self.peek() == Token::LParen {
            IndexKey::Expression(self.parenthesized_expression()?)
        } else if *self.peek_at(1) == Token::LParen
            // A function of a schema.
            || (*self.peek_at(1) == Token::Period && *self.peek_at(3) == Token::LParen)
        {
            IndexKey::Expression(self.expression()?)
        } else {
            IndexKey::Column(self.identifier()?)
        };
        let collation = if self.take("collate") { Some(self.name()?) } else { None };
        let plain = matches!(self.word_at(0).as_str(), "" | "asc" | "desc" | "nulls");
        let operator_class =
            if plain && !matches!(self.peek(), Token::Word(word) if word.quote_style.is_some()) {
                None
            } else {
                Some(self.name()?)
            };
        if let Some(class) = operator_class.as_ref().filter(|_| *self.peek() == Token::LParen) {
            self.storage_options()?;
            let message = format!("operator class {} has no options", class.name);
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let descending = self.take("desc");
        if !descending {
            self.take("asc");
        }
        let nulls_first = if self.take_words(&["nulls", "first"]) {
            Some(true)
        } else if self.take_words(&["nulls", "last"]) {
            Some(false)
        } else {
            None
        };
        Ok(IndexElement { key, position, collation, operator_class, descending, nulls_first })
    }

    /// After CREATE SEQUENCE.
    pub(super) fn create_sequence(&mut self, persistence: Persistence) -> Result<Statement> {
        let if_not_exists = self.take_if_not_exists();
        let name = self.name()?;
        let options = self.sequence_options()?;
        Ok(Statement::CreateSequence(CreateSequence { name, persistence, if_not_exists, options }))
    }

    pub(super) fn sequence_options(&mut self) -> Result<Vec<SequenceOption>> {
        let mut options = Vec::new();
        loop {
            let option = match self.word_at(0).as_str() {
                "as" => {
                    self.skip(1);
                    SequenceOption::As(self.type_name()?)
                }
                "increment" => {
                    self.skip(1);
                    self.take("by");
                    SequenceOption::Increment(self.integer()?)
                }
                "minvalue" => {
                    self.skip(1);
                    SequenceOption::MinValue(Some(self.integer()?))
                }
                "maxvalue" => {
                    self.skip(1);
                    SequenceOption::MaxValue(Some(self.integer()?))
                }
                "no" => {
                    self.skip(1);
                    match self.label()?.as_str() {
                        "minvalue" => SequenceOption::MinValue(None),
                        "maxvalue" => SequenceOption::MaxValue(None),
                        "cycle" => SequenceOption::Cycle(false),
                        _ => return Err(self.unexpected()),
                    }
                }
                "start" => {
                    self.skip(1);
                    self.take("with");
                    SequenceOption::Start(self.integer()?)
                }
                "restart" => {
                    self.skip(1);
                    let given = self.take("with") || matches!(self.peek(), Token::Number(..) | Token::Minus);
                    SequenceOption::Restart(if given { Some(self.integer()?) } else { None })
                }
                "sequence" if self.word_at(1) == "name" => {
                    let position = self.position();
                    self.skip(2);
                    SequenceOption::Name(QualifiedName { position, ..self.name()? })
                }
                "cache" => {
                    self.skip(1);
                    SequenceOption::Cache(self.integer()?)
                }
                "cycle" => {
                    self.skip(1);
                    SequenceOption::Cycle(true)
                }
                "owned" => {
                    self.skip(1);
                    self.expect("by")?;
                    SequenceOption::OwnedBy(self.owner_column()?)
                }
                _ => return Ok(options),
            };
            options.push(option);
        }
    }

    fn owner_column(&mut self) -> Result<Option<(QualifiedName, String)>> {
        if self.take("none") {
            return Ok(None);
        }
        if *self.peek_at(1) != Token::Period {
            self.name()?;
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option")
                .with_hint("Specify OWNED BY table.column or OWNED BY NONE.")
                .placeless());
        }
        self.column_name().map(Some)
    }

    /// `[schema.]table.column`.
    pub(super) fn column_name(&mut self) -> Result<(QualifiedName, String)> {
        let here = self.unexpected();
        let full = self.name()?;
        let table = full.schema.ok_or(here)?;
        let name =
            QualifiedName { catalog: None, schema: full.catalog, name: table, position: full.position };
        Ok((name, full.name))
    }
}
