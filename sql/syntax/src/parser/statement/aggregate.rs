//! CREATE AGGREGATE, and how other statements name aggregates.

use sqlparser::tokenizer::Token;

use crate::ast::{
    ArgumentDefinition, Attribute, AttributeValue, CreateAggregate, DropRoutine, QualifiedName,
    RoutineSignature, RoutineWord, Statement, TypeName,
};
use crate::error::Result;

use crate::parser::cursor::Cursor;
use crate::parser::lexer::keywords::is_reserved;

impl Cursor<'_> {
    /// After CREATE [OR REPLACE], at AGGREGATE.
    pub(super) fn create_aggregate(&mut self, or_replace: bool) -> Result<Statement> {
        self.expect("aggregate")?;
        let name = self.routine_name()?;
        let old_form = matches!(self.peek_at(1), Token::Word(_)) && *self.peek_at(2) == Token::Eq;
        let (args, ordered) = if old_form {
            (None, false)
        } else {
            let (args, ordered) = self.aggregate_arguments()?;
            (Some(args), ordered)
        };
        let attributes = self.parenthesized(Self::defined_attribute)?;
        Ok(Statement::CreateAggregate(Box::new(CreateAggregate {
            or_replace,
            name,
            args,
            ordered,
            attributes,
        })))
    }

    /// `name(*)`, `name(types)`, `name(types ORDER BY types)`; and whether ORDER BY is there.
    pub(super) fn aggregate_signature(&mut self) -> Result<RoutineSignature> {
        let name = self.routine_name()?;
        let (args, _) = self.aggregate_arguments()?;
        Ok(RoutineSignature { name, args: Some(args) })
    }

    pub(super) fn drop_aggregate(&mut self) -> Result<Statement> {
        self.expect("aggregate")?;
        let if_exists = self.take_if_exists();
        let routines = self.list(Self::aggregate_signature)?;
        let kind = RoutineWord::Aggregate;
        Ok(Statement::DropRoutine(DropRoutine { kind, if_exists, routines, cascade: self.take_behavior() }))
    }

    fn aggregate_arguments(&mut self) -> Result<(Vec<ArgumentDefinition>, bool)> {
        self.expect_token(&Token::LParen)?;
        if self.take_token(&Token::Mul) {
            self.expect_token(&Token::RParen)?;
            return Ok((Vec::new(), false));
        }
        let mut args = Vec::new();
        if !self.at_words(&["order", "by"]) {
            args = self.list(Self::argument_definition)?;
        }
        let ordered = self.take_words(&["order", "by"]);
        if ordered {
            args.extend(self.list(Self::argument_definition)?);
        }
        self.expect_token(&Token::RParen)?;
        Ok((args, ordered))
    }

    /// `name [= value]` of a definition.
    pub(super) fn defined_attribute(&mut self) -> Result<Attribute> {
        let position = self.position();
        let name = self.label()?;
        let value =
            if self.take_token(&Token::Eq) { self.attribute_value()? } else { AttributeValue::Nothing };
        Ok(Attribute { name, value, position })
    }

    fn attribute_value(&mut self) -> Result<AttributeValue> {
        match self.peek() {
            Token::Word(word) if word.quote_style.is_none() => {
                let word = word.value.to_lowercase();
                if self.at("operator") && *self.peek_at(1) == Token::LParen {
                    self.skip(2);
                    let mut name = QualifiedName::bare("");
                    if matches!(self.peek(), Token::Word(_)) {
                        name.schema = Some(self.identifier()?);
                        self.expect_token(&Token::Period)?;
                    }
                    name.name = self.operator_symbol()?;
                    self.expect_token(&Token::RParen)?;
                    return Ok(AttributeValue::Operator(name));
                }
                if is_reserved(&word) {
                    self.skip(1);
                    return Ok(AttributeValue::Name(TypeName::bare(&word)));
                }
                self.named_value()
            }
            Token::Word(_) => self.named_value(),
            Token::Number(..) => self.attribute_number().map(AttributeValue::Number),
            Token::Minus | Token::Plus if matches!(self.peek_at(1), Token::Number(..)) => {
                self.attribute_number().map(AttributeValue::Number)
            }
            _ => match self.string() {
                Ok(text) => Ok(AttributeValue::Text(text)),
                Err(_) => {
                    let symbol = self.operator_symbol()?;
                    Ok(AttributeValue::Operator(QualifiedName::bare(symbol)))
                }
            },
        }
    }

    /// A name or a type. What stands in parentheses behind a name says nothing.
    fn named_value(&mut self) -> Result<AttributeValue> {
        let length = if *self.peek_at(1) == Token::Period { 3 } else { 1 };
        if *self.peek_at(length) != Token::LParen {
            return self.type_name().map(AttributeValue::Name);
        }
        let mut ty = TypeName::bare("");
        ty.name = self.routine_name()?;
        let mut depth = 0_u32;
        loop {
            match self.peek() {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::EOF => return Err(self.unexpected()),
                _ => {}
            }
            self.skip(1);
            if depth == 0 {
                return Ok(AttributeValue::Name(ty));
            }
        }
    }

    fn attribute_number(&mut self) -> Result<String> {
        let start = self.byte();
        if matches!(self.peek(), Token::Minus | Token::Plus) {
            self.skip(1);
        }
        self.number()?;
        Ok(self.since(start).to_owned())
    }

    /// The characters of an operator, up to what cannot be part of one.
    pub(super) fn operator_symbol(&mut self) -> Result<String> {
        let start = self.byte();
        let mut symbol = String::new();
        while !self.at_end() {
            let before = self.byte();
            let token = self.peek();
            if matches!(token, Token::Word(_) | Token::LParen | Token::RParen | Token::Comma | Token::Period)
            {
                break;
            }
            // Its tokens stand next to each other.
            if !symbol.is_empty() && start + symbol.len() != before {
                break;
            }
            self.skip(1);
            symbol = self.since(start).trim_end().to_owned();
        }
        let of_operator = |c: char| "+-*/<>=~!@#%^&|`?".contains(c);
        if symbol.is_empty() || !symbol.chars().all(of_operator) {
            return Err(self.unexpected());
        }
        Ok(symbol)
    }
}
