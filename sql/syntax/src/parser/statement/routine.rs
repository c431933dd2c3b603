//! Routines: CREATE and DROP FUNCTION and PROCEDURE, CALL, DO.

use sqlparser::tokenizer::Token;

use crate::ast::ArgMode;
use crate::ast::{
    ArgumentDefinition, Call, CallArgument, CreateRoutine, Do, DropRoutine, Returns, RoutineBody,
    RoutineClauses, RoutineSetting, RoutineSignature, RoutineWord, Statement,
};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

/// A clause that may stand once, and where this one stands.
struct Once {
    position: u32,
}

impl Once {
    fn fill<T>(&self, slot: &mut Option<T>, value: T) -> Result<()> {
        match slot.replace(value) {
            None => Ok(()),
            Some(_) => {
                let message = "conflicting or redundant options";
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(self.position)))
            }
        }
    }
}

impl Cursor<'_> {
    /// After CREATE [OR REPLACE], at FUNCTION or PROCEDURE.
    pub(super) fn create_routine(&mut self, or_replace: bool) -> Result<Statement> {
        let kind = if self.take("procedure") {
            RoutineWord::Procedure
        } else {
            self.expect("function")?;
            RoutineWord::Function
        };
        let mut routine = CreateRoutine {
            kind,
            or_replace,
            name: self.routine_name()?,
            args: self.argument_definitions()?,
            returns: None,
            language: None,
            body: RoutineBody::Atomic(String::new()),
            before: 0,
            window: false,
            clauses: RoutineClauses::default(),
        };
        if kind == RoutineWord::Function && self.take("returns") {
            routine.returns = Some(self.returns(&mut routine.args)?);
        }
        let mut body = None;
        while !self.at_end() {
            self.routine_clause(&mut routine, &mut body)?;
        }
        match body {
            Some(body) => {
                if routine.language.is_none() {
                    match body {
                        RoutineBody::Return(_) | RoutineBody::Atomic(_) => {
                            routine.language = Some("sql".to_string())
                        }
                        _ => {
                            return Err(SqlError::new(
                                SqlState::INVALID_FUNCTION_DEFINITION,
                                "no language specified",
                            ));
                        }
                    }
                }
                routine.body = body;
            }
            None => {
                return Err(SqlError::new(
                    SqlState::INVALID_FUNCTION_DEFINITION,
                    "no function body specified",
                ));
            }
        }
        Ok(Statement::CreateRoutine(Box::new(routine)))
    }

    fn returns(&mut self, args: &mut Vec<ArgumentDefinition>) -> Result<Returns> {
        if !self.at("table") {
            return self.type_name().map(Returns::Type);
        }
        self.skip(1);
        let columns = self.parenthesized(|cursor| {
            let name = Some(cursor.label()?);
            let ty = cursor.type_name()?;
            Ok(ArgumentDefinition { name, mode: ArgMode::Table, mode_written: false, ty, default: None })
        })?;
        args.extend(columns);
        Ok(Returns::Table)
    }

    fn routine_clause(&mut self, routine: &mut CreateRoutine, body: &mut Option<RoutineBody>) -> Result<()> {
        let position = self.position();
        let conflict =
            || SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options").at(Some(position));
        match self.word_at(0).as_str() {
            "language" => {
                self.skip(1);
                if routine.language.is_some() {
                    return Err(conflict());
                }
                let language =
                    if matches!(self.peek(), Token::Word(_)) { self.label()? } else { self.string()? };
                routine.language = Some(language.to_lowercase());
            }
            "as" => {
                self.skip(1);
                if body.is_some() {
                    return Err(duplicate_body());
                }
                *body = Some(self.quoted_body()?);
            }
            "return" => {
                self.skip(1);
                let start = self.byte();
                routine.before = self.characters_before() - "SELECT ".len() as i64;
                self.expression()?;
                if body.is_some() {
                    return Err(duplicate_body());
                }
                *body = Some(RoutineBody::Return(format!("SELECT {}", self.since(start))));
            }
            "begin" if self.at_words(&["begin", "atomic"]) => {
                if body.is_some() {
                    return Err(duplicate_body());
                }
                self.skip(2);
                routine.before = self.characters_before();
                *body = Some(self.atomic_body()?);
            }
            "window" => {
                self.skip(1);
                routine.window = true;
            }
            "transform" => return Err(SqlError::unsupported("TRANSFORM")),
            _ => return self.common_clause(&mut routine.clauses),
        }
        Ok(())
    }

    /// A clause that CREATE and ALTER have in common.
    fn common_clause(&mut self, clauses: &mut RoutineClauses) -> Result<()> {
        let position = self.position();
        if clauses.of_functions_at.is_none() {
            let word = self.word_at(0);
            let of_all = matches!(word.as_str(), "external" | "security" | "set" | "reset");
            clauses.of_functions_at = (!of_all).then_some(position);
        }
        let once = Once { position };
        match self.word_at(0).as_str() {
            word @ ("immutable" | "stable" | "volatile") => {
                once.fill(&mut clauses.volatility, word.chars().next().unwrap_or('v'))?;
                self.skip(1);
            }
            "strict" => {
                self.skip(1);
                once.fill(&mut clauses.strict, true)?;
            }
            "returns" if self.take_words(&["returns", "null", "on", "null", "input"]) => {
                once.fill(&mut clauses.strict, true)?;
            }
            // What it is not, shows in its second word.
            "returns" => {
                self.skip(1);
                return Err(self.unexpected());
            }
            "called" if self.take_words(&["called", "on", "null", "input"]) => {
                once.fill(&mut clauses.strict, false)?;
            }
            "leakproof" => {
                self.skip(1);
                once.fill(&mut clauses.leakproof, true)?;
            }
            "not" if self.take_words(&["not", "leakproof"]) => once.fill(&mut clauses.leakproof, false)?,
            "external" | "security" => {
                self.take("external");
                self.expect("security")?;
                let definer = self.take("definer");
                if !definer {
                    self.expect("invoker")?;
                }
                once.fill(&mut clauses.security_definer, definer)?;
            }
            "cost" => {
                self.skip(1);
                let cost = self.number()?;
                if cost <= 0.0 {
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "COST must be positive"));
                }
                once.fill(&mut clauses.cost, cost)?;
            }
            "rows" => {
                self.skip(1);
                let rows = self.number()?;
                if rows <= 0.0 {
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "ROWS must be positive"));
                }
                once.fill(&mut clauses.rows, rows)?;
            }
            "parallel" => {
                self.skip(1);
                let parallel = match self.label()?.as_str() {
                    "safe" => 's',
                    "restricted" => 'r',
                    "unsafe" => 'u',
                    _ => {
                        return Err(SqlError::new(
                            SqlState::SYNTAX_ERROR,
                            "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE",
                        ));
                    }
                };
                once.fill(&mut clauses.parallel, parallel)?;
            }
            "support" => {
                self.skip(1);
                self.name()?;
            }
            "set" => {
                self.skip(1);
                let set = self.set_clause(false)?;
                clauses.settings.push(RoutineSetting::Set(set));
            }
            "reset" => {
                self.skip(1);
                let setting = if self.take("all") {
                    RoutineSetting::ResetAll
                } else {
                    RoutineSetting::Reset(self.setting_name()?)
                };
                clauses.settings.push(setting);
            }
            _ => return Err(self.unexpected()),
        }
        Ok(())
    }

    /// What follows the signature in ALTER FUNCTION, but for RENAME, OWNER and SET SCHEMA.
    pub(super) fn altered_clauses(&mut self) -> Result<RoutineClauses> {
        let mut clauses = RoutineClauses::default();
        loop {
            self.common_clause(&mut clauses)?;
            self.take("restrict");
            if self.at_end() {
                return Ok(clauses);
            }
        }
    }

    pub(in crate::parser) fn number(&mut self) -> Result<f64> {
        let Token::Number(text, _) = self.peek() else {
            return Err(self.unexpected());
        };
        let value = text.parse().map_err(|_| self.unexpected())?;
        self.skip(1);
        Ok(value)
    }

    /// A quoted body, with its place if it stands in the script as it is.
    fn quoted_body(&mut self) -> Result<RoutineBody> {
        let (text, offset) = self.body_text()?;
        if self.take_token(&Token::Comma) {
            return Ok(RoutineBody::Library(text, self.string()?));
        }
        Ok(RoutineBody::Text { text, offset })
    }

    fn body_text(&mut self) -> Result<(String, Option<usize>)> {
        let start = self.byte();
        let text = self.string()?;
        let source = self.text(start..self.end_byte());
        let offset = match source.strip_prefix('$') {
            Some(rest) => rest.find('$').map(|tag| start + tag + 2),
            // Where nothing in it is written otherwise than it is.
            None => {
                let inside = source.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                (inside == Some(&*text)).then_some(start + 1)
            }
        };
        Ok((text, offset))
    }

    /// After BEGIN ATOMIC: … END, its inner semicolons included. CASE has an END of its own.
    fn atomic_body(&mut self) -> Result<RoutineBody> {
        let start = self.byte();
        let mut cases = 0_u32;
        loop {
            match self.word_at(0).as_str() {
                "case" => cases += 1,
                "end" if cases == 0 => break,
                "end" => cases -= 1,
                _ if *self.peek() == Token::EOF => return Err(self.unexpected()),
                _ => {}
            }
            self.skip(1);
        }
        let text = self.since(start).to_string();
        self.skip(1);
        Ok(RoutineBody::Atomic(text))
    }

    /// `([[mode] [name]] type [{DEFAULT | =} expression], …)`
    fn argument_definitions(&mut self) -> Result<Vec<ArgumentDefinition>> {
        self.expect_token(&Token::LParen)?;
        if self.take_token(&Token::RParen) {
            return Ok(Vec::new());
        }
        let args = self.list(Self::argument_definition)?;
        self.expect_token(&Token::RParen)?;
        Ok(args)
    }

    pub(super) fn argument_definition(&mut self) -> Result<ArgumentDefinition> {
        let mut mode = self.argument_mode();
        let name = if self.argument_is_named() { Some(self.label()?) } else { None };
        if mode.is_none() {
            // The mode may follow the name.
            mode = self.argument_mode();
        }
        let ty = self.type_name()?;
        let default =
            if self.take("default") || self.take_token(&Token::Eq) { Some(self.expression()?) } else { None };
        let mode_written = mode.is_some();
        Ok(ArgumentDefinition { name, mode: mode.unwrap_or(ArgMode::In), mode_written, ty, default })
    }

    fn argument_mode(&mut self) -> Option<ArgMode> {
        let mode = match self.word_at(0).as_str() {
            "in" if self.at_words(&["in", "out"]) => {
                self.skip(2);
                return Some(ArgMode::InOut);
            }
            "in" => ArgMode::In,
            "out" => ArgMode::Out,
            "inout" => ArgMode::InOut,
            "variadic" => ArgMode::Variadic,
            _ => return None,
        };
        // A parameter may be called `out` or `inout`: then a type follows, and then the end.
        self.skip(1);
        Some(mode)
    }

    /// Whether the next word names the argument: another word that begins a type follows.
    fn argument_is_named(&self) -> bool {
        let Token::Word(first) = self.peek() else {
            return false;
        };
        let Token::Word(second) = self.peek_at(1) else {
            return false;
        };
        if second.quote_style.is_some() {
            return true;
        }
        let (first_word, second_word) = (first.value.to_lowercase(), second.value.to_lowercase());
        if first.quote_style.is_none() {
            // Types of several words.
            match (first_word.as_str(), second_word.as_str()) {
                ("double", "precision") | ("character" | "char" | "nchar" | "bit", "varying") => {
                    return false;
                }
                ("national", "character" | "char") => return false,
                ("timestamp" | "time", "with" | "without") => return false,
                ("interval", "year" | "month" | "day" | "hour" | "minute" | "second") => return false,
                ("setof", _) => return false,
                _ => {}
            }
        }
        !matches!(second_word.as_str(), "default" | "array" | "order")
    }

    /// `name` or `name(argument types)`.
    pub(super) fn routine_signature(&mut self) -> Result<RoutineSignature> {
        let name = self.routine_name()?;
        let args = if *self.peek() == Token::LParen { Some(self.argument_definitions()?) } else { None };
        Ok(RoutineSignature { name, args })
    }

    /// FUNCTION, PROCEDURE or ROUTINE.
    pub(super) fn routine_word(&mut self) -> Option<RoutineWord> {
        let word = match self.word_at(0).as_str() {
            "function" => RoutineWord::Function,
            "procedure" => RoutineWord::Procedure,
            "routine" => RoutineWord::Routine,
            _ => return None,
        };
        self.skip(1);
        Some(word)
    }

    /// After DROP FUNCTION | PROCEDURE | ROUTINE.
    pub(super) fn drop_routine(&mut self, kind: RoutineWord) -> Result<Statement> {
        let if_exists = self.take_if_exists();
        let routines = self.list(Self::routine_signature)?;
        Ok(Statement::DropRoutine(DropRoutine { kind, if_exists, routines, cascade: self.take_behavior() }))
    }

    pub(in crate::parser) fn call(&mut self) -> Result<Statement> {
        self.skip(1);
        let name = self.name()?;
        self.expect_token(&Token::LParen)?;
        let args = if *self.peek() == Token::RParen { Vec::new() } else { self.list(Self::call_argument)? };
        self.expect_token(&Token::RParen)?;
        Ok(Statement::Call(Call { name, args }))
    }

    fn call_argument(&mut self) -> Result<CallArgument> {
        let named = matches!(self.peek(), Token::Word(_))
            && matches!(self.peek_at(1), Token::RArrow | Token::Assignment);
        let name = if named {
            let name = self.label()?;
            self.skip(1);
            Some(name)
        } else {
            None
        };
        let variadic = self.take("variadic");
        Ok(CallArgument { name, value: self.expression()?, variadic })
    }

    pub(in crate::parser) fn do_block(&mut self) -> Result<Statement> {
        self.skip(1);
        let (mut language, mut body) = (None, None);
        while !self.at_end() {
            if self.take("language") {
                let word = if matches!(self.peek(), Token::Word(_)) { self.label()? } else { self.string()? };
                language = Some(word.to_lowercase());
            } else {
                body = Some(self.body_text()?);
            }
        }
        let (body, offset) =
            body.ok_or_else(|| SqlError::new(SqlState::SYNTAX_ERROR, "no inline code specified"))?;
        Ok(Statement::Do(Do { language: language.unwrap_or_else(|| "plpgsql".to_string()), body, offset }))
    }
}

fn duplicate_body() -> SqlError {
    SqlError::new(SqlState::INVALID_FUNCTION_DEFINITION, "duplicate function body specified")
}
