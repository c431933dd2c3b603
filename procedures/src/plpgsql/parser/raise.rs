//! RAISE, ASSERT and GET DIAGNOSTICS.

use super::*;

impl Parser<'_> {
    pub(super) fn raise_statement(&mut self) -> Result<Raise> {
        let mut raise = Raise {
            level: Level::Exception,
            condition: None,
            format: None,
            params: Vec::new(),
            options: Vec::new(),
            again: false,
        };
        if self.accept_symbol(';') {
            raise.again = true;
            return Ok(raise);
        }
        let level = match self.token().word() {
            Some("exception") => Some(Level::Exception),
            Some("warning") => Some(Level::Warning),
            Some("notice") => Some(Level::Notice),
            Some("info") => Some(Level::Info),
            Some("log") => Some(Level::Log),
            Some("debug") => Some(Level::Debug),
            _ => None,
        };
        if let Some(level) = level {
            raise.level = level;
            self.at += 1;
        }
        match self.token().kind.clone() {
            TokenKind::Text(format) => self.raise_format(&mut raise, &format)?,
            _ if self.is_word("using") => {}
            _ if self.is_word("sqlstate") => {
                self.at += 1;
                let code = self.sqlstate_literal()?;
                raise.condition = Some((code.as_str().to_string(), code));
            }
            TokenKind::Word { text, .. } if self.find_variable(&[text.as_str()]).is_some() => {
                return Err(self.syntax_error());
            }
            TokenKind::Word { .. } => {
                let line = self.token().line;
                let name = self.identifier()?;
                let Some(code) = conditions::codes_of(&name).first().copied() else {
                    return Err(self.error_near(
                        SqlState::UNDEFINED_OBJECT,
                        format!("unrecognized exception condition \"{name}\""),
                        line,
                    ));
                };
                raise.condition = Some((name, code));
            }
            _ => return Err(self.syntax_error()),
        }
        if self.accept_word("using") {
            self.raise_options(&mut raise)?;
        } else {
            self.expect_symbol(';')?;
        }
        Ok(raise)
    }

    /// `'format' [, expression …]`; the number of `%` must agree.
    fn raise_format(&mut self, raise: &mut Raise, format: &str) -> Result<()> {
        let line = self.token().line;
        self.at += 1;
        if !(self.is_symbol(',') || self.is_symbol(';') || self.is_word("using")) {
            return Err(self.syntax_error());
        }
        while self.accept_symbol(',') {
            let stops = |t: &Token| t.is_symbol(',') || t.is_symbol(';') || t.is_word("using");
            raise.params.push(self.expression_before(&stops, ", or ; or USING")?);
        }
        let mut parts = vec![String::new()];
        let mut characters = format.chars().peekable();
        while let Some(character) = characters.next() {
            if character != '%' {
                parts.last_mut().expect("never empty").push(character);
            } else if characters.peek() == Some(&'%') {
                characters.next();
                parts.last_mut().expect("never empty").push('%');
            } else {
                parts.push(String::new());
            }
        }
        let wanted = parts.len() - 1;
        if raise.params.len() > wanted {
            return Err(self.error_near(
                SqlState::SYNTAX_ERROR,
                "too many parameters specified for RAISE",
                line,
            ));
        }
        if raise.params.len() < wanted {
            return Err(self.error_near(
                SqlState::SYNTAX_ERROR,
                "too few parameters specified for RAISE",
                line,
            ));
        }
        raise.format = Some(parts);
        Ok(())
    }

    /// `option = expression [, …];`
    fn raise_options(&mut self, raise: &mut Raise) -> Result<()> {
        loop {
            let option = match self.token().word() {
                Some("errcode") => RaiseOption::Errcode,
                Some("message") => RaiseOption::Message,
                Some("detail") => RaiseOption::Detail,
                Some("hint") => RaiseOption::Hint,
                Some("column") => RaiseOption::Column,
                Some("constraint") => RaiseOption::Constraint,
                Some("datatype") => RaiseOption::Datatype,
                Some("table") => RaiseOption::Table,
                Some("schema") => RaiseOption::Schema,
                _ => return Err(self.near("unrecognized RAISE statement option")),
            };
            self.at += 1;
            if self.token().kind == TokenKind::ColonEquals || self.is_symbol('=') {
                self.at += 1;
            } else {
                return Err(self.near("syntax error, expected \"=\""));
            }
            let stops = |t: &Token| t.is_symbol(',') || t.is_symbol(';');
            let value = self.expression_before(&stops, ", or ;")?;
            raise.options.push((option, value));
            if self.accept_symbol(';') {
                return Ok(());
            }
            self.at += 1;
        }
    }

    pub(super) fn assert_statement(&mut self) -> Result<StatementKind> {
        let condition = self.expression_before(&|t| t.is_symbol(',') || t.is_symbol(';'), ", or ;")?;
        let message = if self.accept_symbol(',') {
            Some(self.expression_until_semicolon()?)
        } else {
            self.expect_symbol(';')?;
            None
        };
        Ok(StatementKind::Assert { condition, message })
    }

    /// After GET: `[CURRENT | STACKED] DIAGNOSTICS target = item [, …];`
    pub(super) fn get_diagnostics(&mut self) -> Result<StatementKind> {
        let start = self.tokens[self.at - 1].start;
        let stacked = if self.accept_word("stacked") {
            true
        } else {
            self.accept_word("current");
            false
        };
        self.expect_word("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let target = self.target()?;
            if self.token().kind == TokenKind::ColonEquals || self.is_symbol('=') {
                self.at += 1;
            } else {
                return Err(self.syntax_error());
            }
            let (item, name) = match self.token().word() {
                Some("row_count") => (Diagnostic::RowCount, "ROW_COUNT"),
                Some("pg_context") => (Diagnostic::Context, "PG_CONTEXT"),
                Some("pg_exception_context") => (Diagnostic::ErrorContext, "PG_EXCEPTION_CONTEXT"),
                Some("pg_exception_detail") => (Diagnostic::ErrorDetail, "PG_EXCEPTION_DETAIL"),
                Some("pg_exception_hint") => (Diagnostic::ErrorHint, "PG_EXCEPTION_HINT"),
                Some("returned_sqlstate") => (Diagnostic::ReturnedSqlstate, "RETURNED_SQLSTATE"),
                Some("column_name") => (Diagnostic::ColumnName, "COLUMN_NAME"),
                Some("constraint_name") => (Diagnostic::ConstraintName, "CONSTRAINT_NAME"),
                Some("pg_datatype_name") => (Diagnostic::DatatypeName, "PG_DATATYPE_NAME"),
                Some("message_text") => (Diagnostic::MessageText, "MESSAGE_TEXT"),
                Some("table_name") => (Diagnostic::TableName, "TABLE_NAME"),
                Some("schema_name") => (Diagnostic::SchemaName, "SCHEMA_NAME"),
                _ => return Err(self.near("unrecognized GET DIAGNOSTICS item")),
            };
            let current_only = item == Diagnostic::RowCount;
            let either = item == Diagnostic::Context;
            if !either && current_only == stacked {
                let kind = if stacked { "STACKED" } else { "CURRENT" };
                return Err(self.error_at(
                    SqlState::SYNTAX_ERROR,
                    format!("diagnostics item {name} is not allowed in GET {kind} DIAGNOSTICS"),
                    start,
                ));
            }
            self.at += 1;
            items.push((target, item));
            if !self.accept_symbol(',') {
                break;
            }
        }
        self.expect_symbol(';')?;
        Ok(StatementKind::GetDiagnostics { stacked, items })
    }
}
