//! Statements.

use archipel_sql::stack;

use super::*;

/// Words that end a list of statements.
const ENDS: &[&str] = &["end", "exception", "else", "elsif", "elseif", "when"];

impl Parser<'_> {
    pub(super) fn statements(&mut self) -> Result<Vec<Statement>> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            let start = self.token().start;
            return Err(stack::too_deep().at(Some(lexer::position(self.source, start))));
        }
        let statements = self.statement_list();
        self.depth -= 1;
        statements
    }

    fn statement_list(&mut self) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        loop {
            let ends = matches!(&self.token().kind, TokenKind::Word { text, quoted: false } if ENDS.contains(&text.as_str()));
            if self.token().kind == TokenKind::End || (ends && !self.assignment_follows()) {
                return Ok(statements);
            }
            statements.push(self.statement()?);
        }
    }

    /// Whether a name and then `:=`, `=` or `[` stand here.
    fn assignment_follows(&self) -> bool {
        let mut at = self.at;
        match &self.tokens[at].kind {
            TokenKind::Parameter(_) => {}
            TokenKind::Word { text, quoted } if *quoted || !RESERVED.contains(&text.as_str()) => {
                while self.tokens.get(at + 1).is_some_and(|t| t.is_symbol('.'))
                    && self.tokens.get(at + 2).is_some_and(|t| t.word().is_some())
                {
                    at += 2;
                }
            }
            _ => return false,
        }
        self.tokens
            .get(at + 1)
            .is_some_and(|t| t.kind == TokenKind::ColonEquals || t.is_symbol('=') || t.is_symbol('['))
    }

    fn statement(&mut self) -> Result<Statement> {
        let line = self.token().line;
        if self.token().kind == TokenKind::LabelOpen {
            let label = self.label()?;
            return self.labelled(label);
        }
        if self.assignment_follows() {
            return self.assignment();
        }
        let word = match &self.token().kind {
            TokenKind::Word { text, quoted: false } => text.clone(),
            TokenKind::Word { .. } => String::new(),
            _ => return Err(self.syntax_error()),
        };
        let kind = match word.as_str() {
            "declare" | "begin" | "loop" | "while" | "for" | "foreach" => return self.labelled(None),
            "if" => self.if_statement()?,
            "case" => self.case_statement()?,
            "exit" | "continue" => self.leave_statement()?,
            "return" => self.return_statement()?,
            "raise" => {
                self.at += 1;
                StatementKind::Raise(self.raise_statement()?)
            }
            "assert" => {
                self.at += 1;
                self.assert_statement()?
            }
            "get" => {
                self.at += 1;
                self.get_diagnostics()?
            }
            "perform" => {
                self.at += 1;
                StatementKind::Perform { query: self.performed()? }
            }
            "execute" => {
                self.at += 1;
                self.execute_statement()?
            }
            "null" => {
                self.at += 1;
                self.expect_symbol(';')?;
                StatementKind::Null
            }
            "open" => {
                self.at += 1;
                self.open_statement()?
            }
            "fetch" | "move" => self.fetch_statement()?,
            "close" => {
                self.at += 1;
                let cursor = self.cursor_variable()?;
                self.expect_symbol(';')?;
                StatementKind::Close { cursor }
            }
            "commit" | "rollback" => {
                self.at += 1;
                let mut chain = false;
                if self.accept_word("and") {
                    chain = !self.accept_word("no");
                    self.expect_word("chain")?;
                }
                self.expect_symbol(';')?;
                StatementKind::EndTransaction { commit: word == "commit", chain }
            }
            reserved if RESERVED.contains(&reserved) => return Err(self.syntax_error()),
            _ => {
                let (text, into) = self.sql_statement()?;
                StatementKind::Sql { text, into }
            }
        };
        Ok(Statement { line, kind })
    }

    fn assignment(&mut self) -> Result<Statement> {
        let line = self.token().line;
        let target = self.target()?;
        if self.token().kind == TokenKind::ColonEquals || self.is_symbol('=') {
            self.at += 1;
        } else {
            return Err(self.syntax_error());
        }
        // What is assigned is looked at when that is done.
        let value = match self.token().clone() {
            end if end.is_symbol(';') => {
                self.at += 1;
                Fragment { text: String::new(), start: end.start, line: end.line, names: self.head }
            }
            _ => self.expression_until_semicolon()?,
        };
        Ok(Statement { line, kind: StatementKind::Assign { target, value } })
    }

    /// A block or a loop, its label already read.
    fn labelled(&mut self, label: Option<String>) -> Result<Statement> {
        let line = self.token().line;
        let kind = if self.is_word("declare") || self.is_word("begin") {
            let block = self.block(label)?;
            self.expect_symbol(';')?;
            return Ok(Statement { line: block.line, kind: StatementKind::Block(block) });
        } else if self.accept_word("loop") {
            let before = self.open_scope(label.clone(), true);
            let body = self.loop_body(label.as_deref())?;
            self.head = before;
            StatementKind::Loop { label, body }
        } else if self.accept_word("while") {
            let before = self.open_scope(label.clone(), true);
            let condition = self.expression_until_word("loop")?;
            let body = self.loop_body(label.as_deref())?;
            self.head = before;
            StatementKind::While { label, condition, body }
        } else if self.accept_word("for") {
            let before = self.open_scope(label.clone(), true);
            let kind = self.for_statement(label)?;
            self.head = before;
            kind
        } else if self.accept_word("foreach") {
            let before = self.open_scope(label.clone(), true);
            let kind = self.foreach_statement(label)?;
            self.head = before;
            kind
        } else {
            return Err(self.syntax_error());
        };
        Ok(Statement { line, kind })
    }

    /// Statements, END LOOP, the optional label and the semicolon.
    pub(super) fn loop_body(&mut self, label: Option<&str>) -> Result<Vec<Statement>> {
        let body = self.statements()?;
        self.expect_word("end")?;
        self.expect_word("loop")?;
        self.end_label(label, "block")?;
        self.expect_symbol(';')?;
        Ok(body)
    }

    fn if_statement(&mut self) -> Result<StatementKind> {
        self.at += 1;
        let mut arms = Vec::new();
        loop {
            let condition = self.expression_until_word("then")?;
            arms.push((condition, self.statements()?));
            if !(self.accept_word("elsif") || self.accept_word("elseif")) {
                break;
            }
        }
        let otherwise = if self.accept_word("else") { self.statements()? } else { Vec::new() };
        self.expect_word("end")?;
        self.expect_word("if")?;
        self.expect_symbol(';')?;
        Ok(StatementKind::If { arms, otherwise })
    }

    fn case_statement(&mut self) -> Result<StatementKind> {
        self.at += 1;
        let operand = if self.is_word("when") {
            None
        } else {
            Some(self.expression_before(&|t| t.is_word("when"), "WHEN")?)
        };
        let mut arms = Vec::new();
        if !self.is_word("when") {
            return Err(self.syntax_error());
        }
        while self.accept_word("when") {
            let mut tests = Vec::new();
            if operand.is_some() {
                loop {
                    tests.push(self.expression_before(&|t| t.is_symbol(',') || t.is_word("then"), "THEN")?);
                    if !self.accept_symbol(',') {
                        break;
                    }
                }
                self.expect_word("then")?;
            } else {
                tests.push(self.expression_until_word("then")?);
            }
            arms.push((tests, self.statements()?));
        }
        let otherwise = if self.accept_word("else") { Some(self.statements()?) } else { None };
        self.expect_word("end")?;
        self.expect_word("case")?;
        self.expect_symbol(';')?;
        Ok(StatementKind::Case { operand, arms, otherwise })
    }

    fn leave_statement(&mut self) -> Result<StatementKind> {
        let start = self.token().start;
        let exit = self.advance().is_word("exit");
        let label_at = self.token().start;
        let label = if self.is_symbol(';') || self.is_word("when") { None } else { Some(self.identifier()?) };
        let when = if self.accept_word("when") {
            Some(self.expression_until_semicolon()?)
        } else {
            self.expect_symbol(';')?;
            None
        };
        match &label {
            Some(label) => {
                let found = self.names.walk(self.head).find_map(|name| match name {
                    Name::Label { label: Some(known), is_loop } if known == label => Some(*is_loop),
                    _ => None,
                });
                match found {
                    None => {
                        return Err(self.error_at(
                            SqlState::SYNTAX_ERROR,
                            format!(
                                "there is no label \"{label}\" attached to any block or loop enclosing this statement"
                            ),
                            label_at,
                        ));
                    }
                    Some(false) if !exit => {
                        return Err(self.error_at(
                            SqlState::SYNTAX_ERROR,
                            format!("block label \"{label}\" cannot be used in CONTINUE"),
                            label_at,
                        ));
                    }
                    Some(_) => {}
                }
            }
            None => {
                let in_loop =
                    self.names.walk(self.head).any(|name| matches!(name, Name::Label { is_loop: true, .. }));
                if !in_loop {
                    let message = if exit {
                        "EXIT cannot be used outside a loop, unless it has a label"
                    } else {
                        "CONTINUE cannot be used outside a loop"
                    };
                    return Err(self.error_at(SqlState::SYNTAX_ERROR, message, start));
                }
            }
        }
        Ok(StatementKind::Leave { exit, label, when })
    }

    fn return_statement(&mut self) -> Result<StatementKind> {
        self.at += 1;
        let start = self.tokens[self.at - 1].start;
        let mismatch = |parser: &Self, message: &str| {
            parser.error_at(SqlState::DATATYPE_MISMATCH, message, parser.token().start)
        };
        let not_a_set =
            |parser: &Self, message: &str| parser.error_at(SqlState::DATATYPE_MISMATCH, message, start);
        if self.is_word("next") {
            if !self.signature.returns_set {
                return Err(not_a_set(self, "cannot use RETURN NEXT in a non-SETOF function"));
            }
            self.at += 1;
            if self.signature.has_out() {
                if !self.accept_symbol(';') {
                    return Err(mismatch(
                        self,
                        "RETURN NEXT cannot have a parameter in function with OUT parameters",
                    ));
                }
                return Ok(StatementKind::ReturnNext { value: None });
            }
            return Ok(StatementKind::ReturnNext { value: Some(self.expression_until_semicolon()?) });
        }
        if self.is_word("query") {
            if !self.signature.returns_set {
                return Err(not_a_set(self, "cannot use RETURN QUERY in a non-SETOF function"));
            }
            self.at += 1;
            if self.accept_word("execute") {
                let (query, into) = self.dynamic(false)?;
                debug_assert!(into.is_none());
                return Ok(StatementKind::ReturnQueryDynamic { query });
            }
            return Ok(StatementKind::ReturnQuery { query: self.statement_until_semicolon()? });
        }
        let refused = if self.signature.returns_set {
            Some("RETURN cannot have a parameter in function returning set")
        } else if self.signature.result == Type::VOID || self.signature.anonymous {
            if self.signature.procedure && !self.signature.anonymous {
                Some("RETURN cannot have a parameter in a procedure")
            } else {
                Some("RETURN cannot have a parameter in function returning void")
            }
        } else if self.signature.has_out() {
            Some("RETURN cannot have a parameter in function with OUT parameters")
        } else if self.signature.procedure {
            Some("RETURN cannot have a parameter in a procedure")
        } else {
            None
        };
        match refused {
            Some(message) => {
                if !self.accept_symbol(';') {
                    let error = mismatch(self, message);
                    return Err(if self.signature.returns_set {
                        error.with_hint("Use RETURN NEXT or RETURN QUERY.")
                    } else if self.signature.procedure && !self.signature.anonymous {
                        self.error_here(message)
                    } else {
                        error
                    });
                }
                Ok(StatementKind::Return { value: None })
            }
            None => Ok(StatementKind::Return { value: Some(self.expression_until_semicolon()?) }),
        }
    }

    /// What follows EXECUTE: text, then INTO and USING in either order, then the semicolon.
    pub(super) fn dynamic(&mut self, allow_into: bool) -> Result<(Dynamic, Option<Into>)> {
        let text = self.expression_before(
            &|t| t.is_symbol(';') || t.is_word("into") || t.is_word("using"),
            "INTO or USING or ;",
        )?;
        let mut using = Vec::new();
        let mut into = None;
        loop {
            if self.is_word("into") && into.is_none() && allow_into {
                self.at += 1;
                into = Some(self.target_list()?);
            } else if self.is_word("using") && using.is_empty() {
                self.at += 1;
                loop {
                    using.push(self.expression_before(
                        &|t| t.is_symbol(',') || t.is_symbol(';') || t.is_word("into"),
                        ", or ; or INTO",
                    )?);
                    if !self.accept_symbol(',') {
                        break;
                    }
                }
            } else {
                self.expect_symbol(';')?;
                return Ok((Dynamic { text, using }, into));
            }
        }
    }

    fn execute_statement(&mut self) -> Result<StatementKind> {
        let (query, into) = self.dynamic(true)?;
        Ok(StatementKind::Dynamic { query, into })
    }
}
