//! SQL inside a body: where it ends, what was taken out of it, what is assigned from it.

use super::*;
use crate::plpgsql::{current_of, whole_row};

impl Parser<'_> {
    /// The text from token `first` up to, not including, token `end`.
    pub(super) fn fragment(&self, first: usize, end: usize) -> Fragment {
        let start = self.tokens[first].start;
        let stop = self.tokens[end - 1].end;
        Fragment {
            text: self.source[start..stop].to_string(),
            start,
            line: self.tokens[first].line,
            names: self.head,
        }
    }

    /// Reads SQL up to one of `stops` outside parentheses; the stop itself is not consumed.
    /// `expected` names the stop in the message when the statement ends first.
    pub(super) fn sql_until(
        &mut self,
        stops: &dyn Fn(&Token) -> bool,
        expected: &str,
        expression: bool,
    ) -> Result<Fragment> {
        let first = self.at;
        let mut depth = 0u32;
        loop {
            let token = self.token();
            if depth == 0 && stops(token) {
                break;
            }
            match token.kind {
                TokenKind::End | TokenKind::Symbol(';') if depth > 0 => {
                    return Err(self.near("mismatched parentheses"));
                }
                TokenKind::End => return Err(self.syntax_error()),
                TokenKind::Symbol(';') => {
                    let what = if expression { "expression" } else { "statement" };
                    return Err(self.error_here(format!("missing \"{expected}\" at end of SQL {what}")));
                }
                TokenKind::Symbol('(' | '[') => depth += 1,
                TokenKind::Symbol(')' | ']') => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => return Err(self.near("mismatched parentheses")),
                },
                _ => {}
            }
            self.at += 1;
        }
        if first == self.at {
            return Err(self.near(if expression { "missing expression" } else { "missing SQL statement" }));
        }
        Ok(self.fragment(first, self.at))
    }

    /// Reads SQL as [`Self::sql_until`] does, and parses it as an expression.
    pub(super) fn expression_before(
        &mut self,
        stops: &dyn Fn(&Token) -> bool,
        expected: &str,
    ) -> Result<Fragment> {
        let fragment = self.sql_until(stops, expected, true)?;
        self.check_expression(&fragment)?;
        Ok(fragment)
    }

    /// Whether the text is an expression by SQL's grammar (PostgreSQL looks at CREATE, too).
    pub(super) fn check_expression(&self, fragment: &Fragment) -> Result<()> {
        let Err(error) = sql::parse_expression(&fragment.text) else {
            return Ok(());
        };
        // PL/pgSQL's expressions are SELECT lists: `count(*) FROM t` is one.
        const SELECT: &str = "SELECT ";
        match sql::parse_query(&format!("{SELECT}{}", fragment.text)) {
            Ok(_) => Ok(()),
            Err(mut second) => {
                let at = second.fields().position.map(|p| p.saturating_sub(SELECT.len() as u32).max(1));
                second.fields_mut().position = at;
                let further = at > error.fields().position;
                Err(self.moved(if further { second } else { error }, fragment))
            }
        }
    }

    /// Whether the text is a statement by SQL's grammar.
    pub(super) fn check_statement(&self, fragment: &Fragment) -> Result<()> {
        let text = current_of::split(&fragment.text).map_or_else(|| fragment.text.clone(), |(text, _)| text);
        let known = |name: &str| self.find_variable(&[name]).map(|_| vec![name.to_string()]);
        let text = whole_row::expand(&text, &known).unwrap_or(text);
        sql::parse_statement(&text).map(drop).map_err(|error| self.moved(error, fragment))
    }

    /// An error with its position counted in the body.
    fn moved(&self, mut error: SqlError, fragment: &Fragment) -> SqlError {
        let inside = error.fields().position.unwrap_or(1);
        let start = lexer::position(self.source, fragment.start);
        error.fields_mut().position = Some(start + inside - 1);
        error
    }

    /// An expression and the keyword after it.
    pub(super) fn expression_until_word(&mut self, word: &str) -> Result<Fragment> {
        let expected = word.to_ascii_uppercase();
        let fragment = self.expression_before(&|t| t.is_word(word), &expected)?;
        self.at += 1;
        Ok(fragment)
    }

    /// An expression and the symbol after it.
    pub(super) fn expression_until(&mut self, symbol: char) -> Result<Fragment> {
        let fragment = self.expression_before(&|t| t.is_symbol(symbol), &symbol.to_string())?;
        self.at += 1;
        Ok(fragment)
    }

    pub(super) fn expression_until_semicolon(&mut self) -> Result<Fragment> {
        self.expression_until(';')
    }

    /// A query or statement and its semicolon.
    pub(super) fn statement_until_semicolon(&mut self) -> Result<Fragment> {
        let fragment = self.sql_until(&|t| t.is_symbol(';'), ";", false)?;
        self.check_statement(&fragment)?;
        self.at += 1;
        Ok(fragment)
    }

    /// What PERFORM runs: a SELECT without its first word.
    pub(super) fn performed(&mut self) -> Result<Fragment> {
        if self.is_symbol(';') {
            let nothing = self.fragment(self.at, self.at + 1);
            self.at += 1;
            return Ok(Fragment { text: "NULL".to_owned(), ..nothing });
        }
        if self.is_word("select") {
            return Err(self.syntax_error());
        }
        let fragment = self.sql_until(&|t| t.is_symbol(';'), ";", false)?;
        self.check_expression(&fragment)?;
        self.at += 1;
        Ok(fragment)
    }

    /// A variable with fields and subscripts, for assignment.
    pub(super) fn target(&mut self) -> Result<Target> {
        let target = self.named_target()?;
        self.require_changeable(&target)?;
        Ok(target)
    }

    /// Refuses constants.
    pub(super) fn require_changeable(&self, target: &Target) -> Result<()> {
        let variable = &self.variables[target.variable as usize];
        if !variable.constant {
            return Ok(());
        }
        Err(self.error_at(SqlState(*b"22005"), variable.declared_constant(), target.start))
    }

    /// As [`Parser::target`], for whoever may not assign.
    pub(super) fn named_target(&mut self) -> Result<Target> {
        let (first, start) = (self.at, self.token().start);
        let variable = self.target_variable()?;
        let mut path = Vec::new();
        loop {
            if self.accept_symbol('.') {
                match self.token().word() {
                    Some(word) => path.push(Step::Field(word.to_string())),
                    None => return Err(self.syntax_error()),
                }
                self.at += 1;
            } else if self.accept_symbol('[') {
                path.push(self.subscript()?);
            } else {
                break;
            }
        }
        let text = self.fragment(first, self.at).text;
        Ok(Target { variable, path, text, start })
    }

    /// A target of INTO: no part of an array is one.
    fn whole_target(&mut self) -> Result<Target> {
        let target = self.target()?;
        let Some(part) = target.path.iter().find(|step| !matches!(step, Step::Field(_))) else {
            return Ok(target);
        };
        let within = match part {
            Step::Index(index) | Step::Slice(Some(index), _) | Step::Slice(None, Some(index)) => index.start,
            _ => self.token().start,
        };
        let open = self.source[..within].rfind('[').unwrap_or(within);
        Err(self.error_at(SqlState::SYNTAX_ERROR, "syntax error at or near \"[\"", open))
    }

    /// The longest name that is a variable.
    fn target_variable(&mut self) -> Result<VariableId> {
        let start = self.token().start;
        if let TokenKind::Parameter(number) = self.token().kind {
            let name = format!("${number}");
            let Some((id, _)) = self.find_variable(&[&name]) else {
                return Err(self.error_here(format!("\"{name}\" is not a known variable")));
            };
            self.at += 1;
            return Ok(id);
        }
        let first = self.at;
        let reserved = self.identifier().map_err(|_| self.syntax_error());
        let first_name = reserved?;
        let mut parts = vec![first_name];
        let mut at = self.at;
        while parts.len() < 3 && self.tokens[at.min(self.tokens.len() - 1)].is_symbol('.') {
            let Some(word) = self.tokens.get(at + 1).and_then(Token::word) else { break };
            parts.push(word.to_string());
            at += 2;
        }
        let names: Vec<&str> = parts.iter().map(String::as_str).collect();
        match self.find_variable(&names) {
            Some((id, used)) => {
                self.at = first + 2 * used - 1;
                Ok(id)
            }
            None => Err(self.error_at(
                SqlState::SYNTAX_ERROR,
                format!("\"{}\" is not a known variable", parts.join(".")),
                start,
            )),
        }
    }

    fn subscript(&mut self) -> Result<Step> {
        let bound = |t: &Token| t.is_symbol(':') || t.is_symbol(']');
        let lower = if bound(self.token()) { None } else { Some(self.expression_before(&bound, "]")?) };
        if self.accept_symbol(']') {
            return match lower {
                Some(index) => Ok(Step::Index(index)),
                None => Err(self.syntax_error()),
            };
        }
        self.at += 1;
        let upper = if self.is_symbol(']') { None } else { Some(self.expression_before(&bound, "]")?) };
        self.expect_symbol(']')?;
        Ok(Step::Slice(lower, upper))
    }

    /// `[STRICT] target [, target …]`, after INTO.
    pub(super) fn target_list(&mut self) -> Result<Into> {
        let strict = self.accept_word("strict");
        let mut targets = vec![self.whole_target()?];
        if self.is_symbol(',') && self.is_record(&targets[0]) {
            return Err(self.error_here("record variable cannot be part of multiple-item INTO list"));
        }
        while self.accept_symbol(',') {
            let start = self.token().start;
            let target = self.whole_target()?;
            if self.is_record(&target) {
                let message = format!("\"{}\" is not a scalar variable", target.text);
                return Err(self.error_at(SqlState::SYNTAX_ERROR, message, start));
            }
            targets.push(target);
        }
        Ok(Into { strict, targets })
    }

    /// Whether a target is a record for sure.
    fn is_record(&self, target: &Target) -> bool {
        let ty = &self.variables[target.variable as usize].ty;
        target.path.is_empty() && matches!(ty, TypeSpec::Record | TypeSpec::RowOf(_))
    }

    /// A SQL statement up to its semicolon, its INTO clause taken out.
    pub(super) fn sql_statement(&mut self) -> Result<(Fragment, Option<Into>)> {
        let first = self.at;
        let mut into: Option<(Into, usize, usize)> = None;
        let mut last = self.at;
        loop {
            let previous = if self.at == first { None } else { Some(&self.tokens[self.at - 1]) };
            let token = self.token();
            if token.is_symbol(';') {
                break;
            }
            if token.kind == TokenKind::End {
                return Err(self.near("unexpected end of function definition"));
            }
            let inserts = previous.is_some_and(|t| t.is_word("insert") || t.is_word("merge"));
            if token.is_word("into") && !inserts {
                if into.is_some() {
                    return Err(self.near("INTO specified more than once"));
                }
                let start = token.start;
                self.at += 1;
                let clause = self.target_list()?;
                // Up to what follows it.
                into = Some((clause, start, self.token().start));
                continue;
            }
            last = self.at;
            self.at += 1;
        }
        let mut fragment = self.fragment(first, last + 1);
        self.at += 1;
        let into = into.map(|(clause, start, end)| {
            let end = end.min(fragment.start + fragment.text.len());
            if start < end {
                let (from, to) = (start - fragment.start, end - fragment.start);
                // Character by character, so that positions keep counting the same; PostgreSQL blanks
                // line breaks, too.
                let blanks = " ".repeat(fragment.text[from..to].chars().count());
                fragment.text.replace_range(from..to, &blanks);
            }
            clause
        });
        self.check_statement(&fragment)?;
        Ok((fragment, into))
    }
}
