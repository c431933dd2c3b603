//! FOR over integers, queries, EXECUTE and cursors; FOREACH.

use super::*;

impl Parser<'_> {
    /// The targets of a FOR loop: variables, or one name nobody declared.
    fn for_targets(&mut self) -> Result<Option<Vec<Target>>> {
        let parts = [self.token().word().unwrap_or_default()];
        let qualified = self.ahead(1).is_symbol('.');
        if !qualified && self.find_variable(&parts).is_none() {
            if self.ahead(1).is_symbol(',') {
                return Err(self.error_here(format!("\"{}\" is not a known variable", parts[0])));
            }
            self.identifier()?;
            return Ok(None);
        }
        let mut targets = vec![self.named_target()?];
        while self.accept_symbol(',') {
            targets.push(self.named_target()?);
        }
        Ok(Some(targets))
    }

    pub(super) fn for_statement(&mut self, label: Option<String>) -> Result<StatementKind> {
        let name_token = self.token().clone();
        let targets = self.for_targets()?;
        self.expect_word("in")?;
        // Loops over integers and cursors have a variable of their own.
        let need_targets = |targets: Option<Vec<Target>>, parser: &Self| {
            let targets = targets.ok_or_else(|| {
                parser.error_at(
                    SqlState::SYNTAX_ERROR,
                    "loop variable of loop over rows must be a record variable or list of scalar variables",
                    name_token.start,
                )
            })?;
            targets.iter().try_for_each(|target| parser.require_changeable(target))?;
            Result::Ok(targets)
        };
        if self.accept_word("execute") {
            let targets = need_targets(targets, self)?;
            let text =
                self.expression_before(&|t| t.is_word("loop") || t.is_word("using"), "LOOP or USING")?;
            let mut using = Vec::new();
            if self.accept_word("using") {
                loop {
                    using.push(
                        self.expression_before(&|t| t.is_symbol(',') || t.is_word("loop"), ", or LOOP")?,
                    );
                    if !self.accept_symbol(',') {
                        break;
                    }
                }
            }
            self.expect_word("loop")?;
            let body = self.loop_body(label.as_deref())?;
            return Ok(StatementKind::ForDynamic { label, targets, query: Dynamic { text, using }, body });
        }
        if let Some(cursor) = self.cursor_here() {
            return self.for_cursor(label, name_token, cursor);
        }
        let reverse_at = self.token().start;
        let reverse = self.accept_word("reverse");
        let first = self.sql_until(&|t| t.kind == TokenKind::DotDot || t.is_word("loop"), "LOOP", true)?;
        if self.token().kind == TokenKind::DotDot {
            self.check_expression(&first)?;
            self.at += 1;
            let upper = self.expression_before(&|t| t.is_word("loop") || t.is_word("by"), "LOOP")?;
            let step = if self.accept_word("by") {
                Some(self.expression_before(&|t| t.is_word("loop"), "LOOP")?)
            } else {
                None
            };
            self.expect_word("loop")?;
            let several = targets.as_ref().is_some_and(|t| t.len() > 1);
            let Some(name) = name_token.word().filter(|_| !several) else {
                return Err(self.error_at(
                    SqlState::SYNTAX_ERROR,
                    "integer FOR loop must have only one target variable",
                    name_token.start,
                ));
            };
            // A new variable, whatever the name meant outside; one that is called as a field is found by none.
            let field = targets.as_ref().and_then(|t| t.first()).filter(|target| !target.path.is_empty());
            let field = field.map(|target| target.text.clone());
            let name = field.as_deref().unwrap_or(name);
            let variable = self.internal_variable(name, name_token.line, Type::INT4, false);
            let body = self.loop_body(label.as_deref())?;
            return Ok(StatementKind::ForInteger {
                label,
                variable,
                lower: first,
                upper,
                step,
                reverse,
                body,
            });
        }
        if reverse {
            return Err(self.error_at(
                SqlState::SYNTAX_ERROR,
                "cannot specify REVERSE in query FOR loop",
                reverse_at,
            ));
        }
        self.check_statement(&first)?;
        let targets = need_targets(targets, self)?;
        self.expect_word("loop")?;
        let body = self.loop_body(label.as_deref())?;
        Ok(StatementKind::ForQuery { label, targets, query: first, body })
    }

    /// A bound or unbound cursor variable followed by `(` or LOOP.
    fn cursor_here(&self) -> Option<VariableId> {
        let word = self.token().word()?;
        let (id, _) = self.find_variable(&[word])?;
        let is_cursor = match &self.variables[id as usize].ty {
            TypeSpec::Known(ty) => *ty == Type::REFCURSOR,
            TypeSpec::Named(fragment) => fragment.text.eq_ignore_ascii_case("refcursor"),
            _ => false,
        };
        let follows = self.ahead(1).is_symbol('(') || self.ahead(1).is_word("loop");
        (is_cursor && follows).then_some(id)
    }

    fn for_cursor(
        &mut self,
        label: Option<String>,
        name: Token,
        cursor: VariableId,
    ) -> Result<StatementKind> {
        if self.variables[cursor as usize].cursor.is_none() {
            return Err(self.error_here("cursor FOR loop must use a bound cursor variable"));
        }
        self.at += 1;
        let args = self.cursor_args(cursor)?;
        self.expect_word("loop")?;
        let record = self.internal_variable(name.word().unwrap_or_default(), name.line, Type::RECORD, false);
        let body = self.loop_body(label.as_deref())?;
        Ok(StatementKind::ForCursor { label, record, cursor, args, body })
    }

    pub(super) fn foreach_statement(&mut self, label: Option<String>) -> Result<StatementKind> {
        let start = self.token().start;
        let Some(targets) = self.for_targets()? else {
            return Err(self.error_at(
                SqlState::SYNTAX_ERROR,
                "loop variable of FOREACH must be a known variable or list of variables",
                start,
            ));
        };
        targets.iter().try_for_each(|target| self.require_changeable(target))?;
        let slice = if self.accept_word("slice") {
            let TokenKind::Number(number) = &self.token().kind else {
                return Err(self.syntax_error());
            };
            let slice = number.parse().map_err(|_| self.syntax_error())?;
            self.at += 1;
            slice
        } else {
            0
        };
        self.expect_word("in")?;
        self.expect_word("array")?;
        let array = self.expression_until_word("loop")?;
        let body = self.loop_body(label.as_deref())?;
        Ok(StatementKind::ForEach { label, targets, slice, array, body })
    }
}
