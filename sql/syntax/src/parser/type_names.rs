//! Type names: the grammar's own words for types, qualified names, modifiers, arrays, %TYPE.

use sqlparser::tokenizer::Token;

use crate::ast::TypeName;
use crate::error::Result;

use super::cursor::Cursor;
use super::production::whole;

impl Cursor<'_> {
    /// `[SETOF] type [(modifiers)] [ARRAY | []…]`, or `name%TYPE`.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let setof = self.take("setof");
        let position = self.position();
        let mut ty = self.simple_type()?;
        ty.setof = setof;
        ty.name.position = position;
        if self.take("array") {
            ty.dimensions = 1;
            if self.take_token(&Token::LBracket) {
                self.integer()?;
                self.expect_token(&Token::RBracket)?;
            }
            return Ok(ty);
        }
        while self.take_token(&Token::LBracket) {
            // A bound is accepted and means nothing, as in PostgreSQL.
            if *self.peek() != Token::RBracket {
                self.integer()?;
            }
            self.expect_token(&Token::RBracket)?;
            ty.dimensions += 1;
        }
        Ok(ty)
    }

    fn simple_type(&mut self) -> Result<TypeName> {
        let qualified = *self.peek_at(1) == Token::Period;
        let word = if qualified { String::new() } else { self.word_at(0) };
        let plain = |cursor: &mut Self, name: &str| {
            cursor.skip(1);
            Ok(TypeName::system(name))
        };
        match word.as_str() {
            "int" | "integer" => plain(self, "int4"),
            "smallint" => plain(self, "int2"),
            "bigint" => plain(self, "int8"),
            "real" => plain(self, "float4"),
            "boolean" => plain(self, "bool"),
            "double" if self.at_words(&["double", "precision"]) => {
                self.skip(2);
                Ok(TypeName::system("float8"))
            }
            "float" => self.float_type(),
            "decimal" | "dec" | "numeric" => {
                self.skip(1);
                self.with_modifiers("numeric")
            }
            "character" | "char" | "nchar" => self.character_type(),
            "national" => {
                self.skip(1);
                self.character_type()
            }
            "varchar" => {
                self.skip(1);
                self.with_modifiers("varchar")
            }
            "bit" => {
                self.skip(1);
                self.bit_type()
            }
            "timestamp" => self.time_type("timestamp", "timestamptz"),
            "time" => self.time_type("time", "timetz"),
            "interval" => self.interval_type(),
            _ => self.generic_type(),
        }
    }

    fn modifiers(&mut self) -> Result<Vec<i32>> {
        if *self.peek() != Token::LParen {
            return Ok(Vec::new());
        }
        self.parenthesized(|cursor| {
            let here = cursor.unexpected();
            cursor.integer().and_then(|value| i32::try_from(value).map_err(|_| here))
        })
    }

    fn with_modifiers(&mut self, name: &str) -> Result<TypeName> {
        let modifiers = self.modifiers()?;
        Ok(TypeName { modifiers, ..TypeName::system(name) })
    }

    fn float_type(&mut self) -> Result<TypeName> {
        self.skip(1);
        let precision = self.modifiers()?;
        let invalid = |message: &str| {
            crate::error::SqlError::new(crate::error::SqlState::INVALID_PARAMETER_VALUE, message.to_string())
        };
        match precision[..] {
            [] => Ok(TypeName::system("float8")),
            [..=0] => Err(invalid("precision for type float must be at least 1 bit")),
            [1..=24] => Ok(TypeName::system("float4")),
            [25..=53] => Ok(TypeName::system("float8")),
            [_] => Err(invalid("precision for type float must be less than 54 bits")),
            _ => Err(self.unexpected()),
        }
    }

    /// CHARACTER [VARYING] and CHAR, whose missing length is 1 unless varying. A quoted "char" is
    /// another type and does not come here.
    fn character_type(&mut self) -> Result<TypeName> {
        self.skip(1);
        if self.take("varying") {
            return self.with_modifiers("varchar");
        }
        let mut ty = self.with_modifiers("bpchar")?;
        if ty.modifiers.is_empty() {
            ty.modifiers.push(1);
        }
        Ok(ty)
    }

    /// BIT [VARYING], whose missing length is 1 unless varying.
    fn bit_type(&mut self) -> Result<TypeName> {
        if self.take("varying") {
            return self.with_modifiers("varbit");
        }
        let mut ty = self.with_modifiers("bit")?;
        if ty.modifiers.is_empty() {
            ty.modifiers.push(1);
        }
        Ok(ty)
    }

    fn time_type(&mut self, without: &str, with: &str) -> Result<TypeName> {
        self.skip(1);
        let modifiers = self.modifiers()?;
        let zoned = if self.take_words(&["with", "time", "zone"]) {
            true
        } else {
            self.take_words(&["without", "time", "zone"]);
            false
        };
        Ok(TypeName { modifiers, ..TypeName::system(if zoned { with } else { without }) })
    }

    /// INTERVAL [fields] [(precision)]; fields become PostgreSQL's mask (timestamp.h).
    fn interval_type(&mut self) -> Result<TypeName> {
        const FIELDS: [(&str, u32); 6] =
            [("year", 2), ("month", 1), ("day", 3), ("hour", 10), ("minute", 11), ("second", 12)];
        self.skip(1);
        let mut ty = self.with_modifiers("interval")?;
        let place = |word: &str| FIELDS.iter().position(|&(name, _)| name == word);
        let Some(from) = place(&self.word_at(0)) else {
            return Ok(ty);
        };
        self.skip(1);
        let mut to = from;
        if self.at("to") {
            match place(&self.word_at(1)) {
                Some(end) if end > from => to = end,
                _ => return Err(self.unexpected()),
            }
            self.skip(2);
        }
        ty.interval_fields = Some(FIELDS[from..=to].iter().fold(0, |mask, &(_, bit)| mask | (1 << bit)));
        if FIELDS[to].0 == "second" {
            ty.modifiers = self.modifiers()?;
        }
        Ok(ty)
    }

    /// A named type: built in or not, qualified or not, or `table.column%TYPE`.
    fn generic_type(&mut self) -> Result<TypeName> {
        // Some type names are reserved words elsewhere; as a first word PostgreSQL takes any
        // word that may name a function.
        let name = match self.peek() {
            Token::Word(word) if word.quote_style.is_none() && *self.peek_at(1) != Token::Period => {
                let lower = word.value.to_lowercase();
                if super::is_reserved(&lower) {
                    return Err(self.unexpected());
                }
                self.name()?
            }
            _ => self.name()?,
        };
        let mut ty = TypeName { name, ..TypeName::bare("") };
        if *self.peek() == Token::Mod && self.word_at(1) == "type" {
            self.skip(2);
            ty.percent_type = true;
            return Ok(ty);
        }
        ty.modifiers = self.modifiers()?;
        Ok(ty)
    }
}

/// Parses exactly one type name, as in a column definition or a DECLARE.
pub fn parse_type_name(text: &str) -> Result<TypeName> {
    whole(text, Cursor::type_name)
}

/// A type named by a sqlparser tree (casts, column definitions of functions in FROM).
pub fn data_type_name(ty: &sqlparser::ast::DataType) -> Result<TypeName> {
    crate::parser::parse_type_name(&ty.to_string())
}
