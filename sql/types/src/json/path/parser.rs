//! From words to the tree of a path (jsonpath_gram.y).

use super::lexer::{Lexeme, Token, error_near, lexemes};
use super::{Flags, Head, JsonPath, LEVEL_LAST, Method, Operator, Path, Predicate, Step};
use crate::error::{Result, SqlError, SqlState};
use crate::stack::too_deep;

/// Paths may nest this deep.
const DEPTH_MAX: u32 = 500;

pub(super) fn parse(text: &str) -> Result<JsonPath> {
    if text.trim().is_empty() {
        return Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type jsonpath: \"{text}\""),
        ));
    }
    let mut parser = Parser { text, lexemes: lexemes(text)?, at: 0, depth: 0, filters: 0, subscripts: 0 };
    let lax = match parser.keyword().as_deref() {
        Some("strict") => {
            parser.at += 1;
            false
        }
        Some("lax") => {
            parser.at += 1;
            true
        }
        _ => true,
    };
    let path = parser.or()?;
    match parser.peek() {
        Token::End => Ok(JsonPath { lax, path }),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'t> {
    text: &'t str,
    lexemes: Vec<Lexeme>,
    at: usize,
    depth: u32,
    /// How many filters, and subscripts, are around.
    filters: u32,
    subscripts: u32,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.lexemes.get(self.at).map_or(&Token::End, |lexeme| &lexeme.token)
    }

    fn at_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.at_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The word ahead in lower case.
    fn keyword(&self) -> Option<String> {
        match self.peek() {
            Token::Word(word) => Some(word.to_ascii_lowercase()),
            _ => None,
        }
    }

    fn take_keyword(&mut self, word: &str) -> bool {
        let found = self.keyword().is_some_and(|found| found == word);
        self.at += usize::from(found);
        found
    }

    fn unexpected(&self) -> SqlError {
        match self.lexemes.get(self.at) {
            Some(lexeme) => error_near("syntax error", self.text, lexeme.start, lexeme.end),
            None => error_near("syntax error", self.text, 0, 0),
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_deep());
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Whether one more of a chain of operators or steps may come. A chain nests as brackets do: it is
    /// run by recursion, and written with a bracket for each operator.
    fn lengthen(&self, chain: &mut u32) -> Result<()> {
        *chain += 1;
        if self.depth + *chain > DEPTH_MAX { Err(too_deep()) } else { Ok(()) }
    }

    fn or(&mut self) -> Result<Path> {
        self.nested(|parser| {
            let mut left = parser.and()?;
            let mut chain = 0;
            while parser.at_symbol("||") {
                parser.lengthen(&mut chain)?;
                parser.need_predicate(&left)?;
                parser.at += 1;
                let right = parser.and()?;
                parser.need_predicate(&right)?;
                left = Predicate::Or(Box::new(left), Box::new(right)).into();
            }
            Ok(left)
        })
    }

    fn and(&mut self) -> Result<Path> {
        let mut left = self.comparison()?;
        let mut chain = 0;
        while self.at_symbol("&&") {
            self.lengthen(&mut chain)?;
            self.need_predicate(&left)?;
            self.at += 1;
            let right = self.comparison()?;
            self.need_predicate(&right)?;
            left = Predicate::And(Box::new(left), Box::new(right)).into();
        }
        Ok(left)
    }

    /// What AND, OR, NOT and filters are over.
    fn need_predicate(&self, path: &Path) -> Result<()> {
        let predicate = matches!(path.head, Head::Predicate(_)) && path.steps.is_empty();
        if predicate { Ok(()) } else { Err(self.unexpected()) }
    }

    fn comparison(&mut self) -> Result<Path> {
        if self.take("!") {
            self.depth += 1;
            let negated = self.delimited()?;
            self.depth -= 1;
            return Ok(Predicate::Not(Box::new(negated)).into());
        }
        let left = self.sum()?;
        let operator = match self.peek() {
            Token::Symbol("==" | "=") => Operator::Equal,
            Token::Symbol("!=") => Operator::NotEqual,
            Token::Symbol("<") => Operator::Less,
            Token::Symbol(">") => Operator::Greater,
            Token::Symbol("<=") => Operator::LessOrEqual,
            Token::Symbol(">=") => Operator::GreaterOrEqual,
            _ => return self.word_predicate(left),
        };
        self.need_value(&left)?;
        self.at += 1;
        let right = self.sum()?;
        self.need_value(&right)?;
        Ok(Predicate::Compare(operator, Box::new(left), Box::new(right)).into())
    }

    /// What is compared and calculated with is no bare predicate.
    fn need_value(&self, path: &Path) -> Result<()> {
        let predicate = matches!(path.head, Head::Predicate(_)) && path.steps.is_empty();
        if predicate { Err(self.unexpected()) } else { Ok(()) }
    }

    fn word_predicate(&mut self, left: Path) -> Result<Path> {
        match self.keyword().as_deref() {
            Some("starts") => {
                self.at += 1;
                if !self.take_keyword("with") {
                    return Err(self.unexpected());
                }
                let initial = match self.peek().clone() {
                    Token::String(text) => Head::String(text),
                    Token::Variable(name) => Head::Variable(name),
                    _ => return Err(self.unexpected()),
                };
                self.at += 1;
                Ok(Predicate::StartsWith(Box::new(left), Box::new(initial.into())).into())
            }
            Some("like_regex") => {
                self.at += 1;
                let Token::String(pattern) = self.peek().clone() else { return Err(self.unexpected()) };
                self.at += 1;
                let mut flags = Flags::default();
                if self.take_keyword("flag") {
                    let Token::String(letters) = self.peek().clone() else { return Err(self.unexpected()) };
                    self.at += 1;
                    flags = read_flags(&letters)?;
                }
                super::run::compiled(&pattern, flags)?;
                Ok(Predicate::LikeRegex { value: Box::new(left), pattern, flags }.into())
            }
            _ => Ok(left),
        }
    }

    /// `(…)` or `exists (…)`: what NOT is before.
    fn delimited(&mut self) -> Result<Path> {
        if self.take_keyword("exists") {
            self.expect("(")?;
            let path = self.or()?;
            self.expect(")")?;
            return Ok(Predicate::Exists(Box::new(path)).into());
        }
        self.expect("(")?;
        let path = self.or()?;
        self.need_predicate(&path)?;
        self.expect(")")?;
        Ok(path)
    }

    fn sum(&mut self) -> Result<Path> {
        let mut left = self.product()?;
        let mut chain = 0;
        loop {
            self.lengthen(&mut chain)?;
            let operator = match self.peek() {
                Token::Symbol("+") => Operator::Add,
                Token::Symbol("-") => Operator::Subtract,
                _ => return Ok(left),
            };
            self.need_value(&left)?;
            self.at += 1;
            let right = self.product()?;
            self.need_value(&right)?;
            left = Head::Arithmetic(operator, Box::new(left), Box::new(right)).into();
        }
    }

    fn product(&mut self) -> Result<Path> {
        let mut left = self.signed()?;
        let mut chain = 0;
        loop {
            self.lengthen(&mut chain)?;
            let operator = match self.peek() {
                Token::Symbol("*") => Operator::Multiply,
                Token::Symbol("/") => Operator::Divide,
                Token::Symbol("%") => Operator::Modulo,
                _ => return Ok(left),
            };
            self.need_value(&left)?;
            self.at += 1;
            let right = self.signed()?;
            self.need_value(&right)?;
            left = Head::Arithmetic(operator, Box::new(left), Box::new(right)).into();
        }
    }

    fn signed(&mut self) -> Result<Path> {
        let operator = match self.peek() {
            Token::Symbol("+") => Operator::Add,
            Token::Symbol("-") => Operator::Subtract,
            _ => return self.accessor(),
        };
        self.at += 1;
        let path = self.nested(Self::signed)?;
        self.need_value(&path)?;
        // The sign of a number is its own.
        Ok(match (&path.head, operator) {
            (Head::Number(_), Operator::Add) if path.steps.is_empty() => path,
            (Head::Number(number), _) if path.steps.is_empty() => Head::Number(number.neg()).into(),
            _ => Head::Sign(operator, Box::new(path)).into(),
        })
    }

    fn accessor(&mut self) -> Result<Path> {
        let mut path = self.primary()?;
        let mut chain = 0;
        loop {
            self.lengthen(&mut chain)?;
            match self.peek() {
                Token::Symbol(".") => {
                    self.at += 1;
                    let step = self.member()?;
                    path.steps.push(step);
                }
                Token::Symbol("[") => {
                    self.at += 1;
                    let step = self.subscript()?;
                    path.steps.push(step);
                }
                Token::Symbol("?") => {
                    self.at += 1;
                    self.expect("(")?;
                    self.filters += 1;
                    let predicate = self.or()?;
                    self.filters -= 1;
                    self.need_predicate(&predicate)?;
                    self.expect(")")?;
                    path.steps.push(Step::Filter(Box::new(predicate)));
                }
                _ => return Ok(path),
            }
        }
    }

    fn primary(&mut self) -> Result<Path> {
        let token = self.peek().clone();
        let head = match token {
            Token::Symbol("$") => Head::Root,
            Token::Symbol("@") => {
                if self.filters == 0 {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "@ is not allowed in root expressions",
                    ));
                }
                Head::Current
            }
            Token::Symbol("(") => {
                self.at += 1;
                let inner = self.or()?;
                self.expect(")")?;
                if matches!(self.keyword().as_deref(), Some("is")) {
                    self.need_predicate(&inner)?;
                    self.at += 1;
                    if !self.take_keyword("unknown") {
                        return Err(self.unexpected());
                    }
                    return Ok(Predicate::IsUnknown(Box::new(inner)).into());
                }
                return Ok(inner);
            }
            Token::String(text) => Head::String(text),
            Token::Variable(name) => Head::Variable(name),
            Token::Integer(digits) | Token::Number(digits) => Head::Number(digits.parse()?),
            Token::Word(word) => match (word.as_str(), word.to_ascii_lowercase().as_str()) {
                ("null", _) => Head::Null,
                ("true", _) => Head::Bool(true),
                ("false", _) => Head::Bool(false),
                (_, "last") => {
                    if self.subscripts == 0 {
                        return Err(SqlError::new(
                            SqlState::SYNTAX_ERROR,
                            "LAST is allowed only in array subscripts",
                        ));
                    }
                    Head::Last
                }
                (_, "exists") => return self.delimited(),
                _ => return Err(self.unexpected()),
            },
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(head.into())
    }

    /// After a period.
    fn member(&mut self) -> Result<Step> {
        let token = self.peek().clone();
        match token {
            Token::Symbol("*") => {
                self.at += 1;
                Ok(Step::AnyKey)
            }
            Token::Symbol("**") => {
                self.at += 1;
                self.levels()
            }
            Token::String(key) => {
                self.at += 1;
                Ok(Step::Key(key))
            }
            Token::Word(word) => {
                self.at += 1;
                if !self.at_symbol("(") {
                    return Ok(Step::Key(word));
                }
                let method = match word.to_ascii_lowercase().as_str() {
                    "type" => Method::Type,
                    "size" => Method::Size,
                    "abs" => Method::Abs,
                    "floor" => Method::Floor,
                    "ceiling" => Method::Ceiling,
                    "double" => Method::Double,
                    "keyvalue" => Method::KeyValue,
                    "datetime" => {
                        self.at += 1;
                        let template = match self.peek().clone() {
                            Token::String(template) => {
                                self.at += 1;
                                Some(template)
                            }
                            _ => None,
                        };
                        self.expect(")")?;
                        return Ok(Step::Datetime(template));
                    }
                    _ => return Err(self.unexpected()),
                };
                self.at += 1;
                self.expect(")")?;
                Ok(Step::Method(method))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn levels(&mut self) -> Result<Step> {
        if !self.take("{") {
            return Ok(Step::Any(0, LEVEL_LAST));
        }
        let first = self.level()?;
        let last = if self.take_keyword("to") { self.level()? } else { first };
        self.expect("}")?;
        Ok(Step::Any(first, last))
    }

    fn level(&mut self) -> Result<u32> {
        if self.take_keyword("last") {
            return Ok(LEVEL_LAST);
        }
        let Token::Integer(digits) = self.peek() else { return Err(self.unexpected()) };
        let level = digits.parse::<i32>().ok().and_then(|level| u32::try_from(level).ok());
        let level = level.ok_or_else(|| {
            SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value \"{digits}\" is out of range for type integer"),
            )
        })?;
        self.at += 1;
        Ok(level)
    }

    /// After an opening bracket.
    fn subscript(&mut self) -> Result<Step> {
        if self.at_symbol("*")
            && matches!(self.lexemes.get(self.at + 1).map(|next| &next.token), Some(Token::Symbol("]")))
        {
            self.at += 2;
            return Ok(Step::AnyElement);
        }
        self.subscripts += 1;
        let mut ranges = Vec::new();
        loop {
            let from = self.nested(Self::sum)?;
            let to = if self.take_keyword("to") { Some(self.nested(Self::sum)?) } else { None };
            ranges.push((from, to));
            if !self.take(",") {
                break;
            }
        }
        self.subscripts -= 1;
        self.expect("]")?;
        Ok(Step::Elements(ranges))
    }
}

fn read_flags(letters: &str) -> Result<Flags> {
    let mut flags = Flags::default();
    for letter in letters.chars() {
        match letter {
            'i' => flags.ignore_case = true,
            's' => flags.dot_matches_newline = true,
            'm' => flags.lines = true,
            'x' => flags.expanded = true,
            'q' => flags.quoted = true,
            other => {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "invalid input syntax for type jsonpath")
                    .with_detail(format!(
                        "Unrecognized flag character \"{other}\" in LIKE_REGEX predicate."
                    )));
            }
        }
    }
    Ok(flags)
}

impl JsonPath {
    /// Parses a path.
    pub fn parse(text: &str) -> Result<JsonPath> {
        parse(text)
    }

    /// The canonical text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if !self.lax {
            out.push_str("strict ");
        }
        self.path.write(true, &mut out);
        out
    }
}
