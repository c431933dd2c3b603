//! DECLARE: variables, aliases, cursors, and the types they name.

use super::*;

impl Parser<'_> {
    pub(super) fn declarations(&mut self, declared: &mut Vec<VariableId>) -> Result<()> {
        loop {
            if self.is_word("begin") {
                return Ok(());
            }
            if self.accept_word("declare") {
                continue;
            }
            if self.token().kind == TokenKind::LabelOpen {
                return Err(self.error_here("block label must be placed before DECLARE, not after"));
            }
            self.declaration(declared)?;
        }
    }

    fn declaration(&mut self, declared: &mut Vec<VariableId>) -> Result<()> {
        let line = self.token().line;
        let start = self.at;
        let name = self.identifier()?;
        if self.declared_here(&name) {
            self.at = start;
            return Err(self.near("duplicate declaration"));
        }
        if self.find_variable(&[&name]).is_some() {
            let message = format!("variable \"{name}\" shadows a previously defined variable");
            let at = self.tokens[start].start;
            self.shadowed.push(self.error_at(SqlState(*b"42712"), message, at));
        }
        if self.is_word("alias") && self.ahead(1).is_word("for") {
            self.at += 2;
            return self.alias(name);
        }
        if self.cursor_follows() {
            return self.cursor(name, line, declared);
        }
        let constant = self.accept_word("constant");
        let ty = self.data_type()?;
        let collate_at = self.token().start;
        let collate = match self.accept_word("collate") {
            true => {
                self.qualified_name()?;
                Some(collate_at)
            }
            false => None,
        };
        let not_null_at = self.token().start;
        let not_null = if self.accept_word("not") {
            self.expect_word("null")?;
            true
        } else {
            false
        };
        let default = self.default_value()?;
        if not_null && default.is_none() {
            return Err(self.error_at(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                format!("variable \"{name}\" must have a default value, since it's declared NOT NULL"),
                not_null_at,
            ));
        }
        let variable = Variable { name, line, ty, constant, not_null, default, cursor: None, collate };
        let id = self.add_variable(variable);
        declared.push(id);
        Ok(())
    }

    fn default_value(&mut self) -> Result<Option<Fragment>> {
        if self.accept_symbol(';') {
            return Ok(None);
        }
        let assigned = self.accept_symbol('=') || self.accept_word("default") || {
            let found = self.token().kind == TokenKind::ColonEquals;
            self.at += usize::from(found);
            found
        };
        if !assigned {
            return Err(self.syntax_error());
        }
        self.expression_until_semicolon().map(Some)
    }

    fn alias(&mut self, name: String) -> Result<()> {
        let start = self.token().start;
        let parts = match self.token().kind.clone() {
            TokenKind::Parameter(number) => {
                self.at += 1;
                vec![format!("${number}")]
            }
            _ => self.qualified_name()?,
        };
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match self.find_variable(&parts) {
            Some((id, used)) if used == parts.len() => self.name_variable(name, id),
            _ => {
                return Err(self.error_at(
                    SqlState::UNDEFINED_OBJECT,
                    format!("variable \"{}\" does not exist", parts.join(".")),
                    start,
                ));
            }
        }
        self.expect_symbol(';')
    }

    fn cursor_follows(&self) -> bool {
        self.is_word("cursor")
            || (self.is_word("scroll") && self.ahead(1).is_word("cursor"))
            || (self.is_word("no") && self.ahead(1).is_word("scroll") && self.ahead(2).is_word("cursor"))
    }

    fn cursor(&mut self, name: String, line: u32, declared: &mut Vec<VariableId>) -> Result<()> {
        let scroll = match (self.is_word("no"), self.is_word("scroll")) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        };
        while !self.accept_word("cursor") {
            self.at += 1;
        }
        // The arguments are variables of a scope of their own, that the query sees.
        let before = self.open_scope(Some(name.clone()), false);
        let mut args = Vec::new();
        if self.accept_symbol('(') {
            loop {
                let line = self.token().line;
                let name = self.identifier()?;
                let ty = self.data_type()?;
                args.push(self.add_variable(Variable {
                    name,
                    line,
                    ty,
                    constant: false,
                    not_null: false,
                    default: None,
                    cursor: None,
                    collate: None,
                }));
                if !self.accept_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        }
        if !self.accept_word("is") {
            self.expect_word("for")?;
        }
        let query = self.statement_until_semicolon()?;
        self.head = before;
        let id = self.add_variable(Variable {
            name,
            line,
            ty: TypeSpec::Known(Type::REFCURSOR),
            constant: false,
            not_null: false,
            default: None,
            cursor: Some(Cursor { args, scroll, query }),
            collate: None,
        });
        declared.push(id);
        Ok(())
    }

    /// `name`, `schema.name`, …
    pub(super) fn qualified_name(&mut self) -> Result<Vec<String>> {
        let mut parts = vec![self.identifier()?];
        while self.is_symbol('.') {
            self.at += 1;
            match self.token().word() {
                Some(word) => parts.push(word.to_string()),
                None => return Err(self.syntax_error()),
            }
            self.at += 1;
        }
        Ok(parts)
    }

    /// A type, up to what may follow it in a declaration or a cursor's argument list.
    pub(super) fn data_type(&mut self) -> Result<TypeSpec> {
        if let Some(spec) = self.copied_type()? {
            return Ok(spec);
        }
        if self.is_word("record")
            && !(self.ahead(1).is_symbol('.') || self.ahead(1).is_symbol('[') || self.ahead(1).is_symbol('%'))
        {
            self.at += 1;
            return Ok(TypeSpec::Record);
        }
        let first = self.at;
        self.skip_type()?;
        if first == self.at {
            return Err(self.near("missing data type declaration"));
        }
        Ok(TypeSpec::Named(self.fragment(first, self.at)))
    }

    /// Goes to what ends a type.
    fn skip_type(&mut self) -> Result<()> {
        let mut depth = 0;
        loop {
            let token = self.token();
            match &token.kind {
                TokenKind::End if depth > 0 => return Err(self.near("mismatched parentheses")),
                TokenKind::End => return Err(self.near("incomplete data type declaration")),
                TokenKind::Symbol(';' | '=') | TokenKind::ColonEquals => break,
                TokenKind::Symbol(',' | ')') if depth == 0 => break,
                TokenKind::Symbol('(') => depth += 1,
                TokenKind::Symbol(')') => depth -= 1,
                TokenKind::Word { text, quoted: false }
                    if matches!(text.as_str(), "collate" | "not" | "default") =>
                {
                    break;
                }
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// `x%TYPE` and `t%ROWTYPE`.
    fn copied_type(&mut self) -> Result<Option<TypeSpec>> {
        let start = self.at;
        // `$0`: the result of a polymorphic function.
        if self.token().kind == TokenKind::Parameter(0)
            && self.ahead(1).is_symbol('%')
            && self.ahead(2).is_word("type")
        {
            self.at += 3;
            return Ok(Some(TypeSpec::Known(self.signature.result)));
        }
        let mut end = start;
        while self.tokens[end.min(self.tokens.len() - 1)].word().is_some()
            && self.tokens.get(end + 1).is_some_and(|t| t.is_symbol('.'))
        {
            end += 2;
        }
        let percent = self.tokens.get(end + 1).is_some_and(|t| t.is_symbol('%'));
        let Some(kind) = self.tokens.get(end + 2).filter(|_| percent) else {
            return Ok(None);
        };
        let row = kind.is_word("rowtype");
        if !row && !kind.is_word("type") {
            return Ok(None);
        }
        let parts: Vec<String> =
            (start..=end).step_by(2).filter_map(|at| self.tokens[at].word().map(str::to_string)).collect();
        if parts.is_empty() {
            return Err(self.syntax_error());
        }
        let spec = if row {
            TypeSpec::RowOf(parts)
        } else {
            let names: Vec<&str> = parts.iter().map(String::as_str).collect();
            match self.find_variable(&names) {
                Some((id, used)) if used == names.len() => TypeSpec::OfVariable(id),
                _ if names.len() == 1 => {
                    return Err(self.error_at(
                        SqlState::UNDEFINED_OBJECT,
                        format!("variable \"{}\" does not exist", names[0]),
                        self.token().start,
                    ));
                }
                _ => {
                    self.skip_type()?;
                    let written = self.fragment(start, self.at);
                    TypeSpec::OfColumn(parts, written)
                }
            }
        };
        self.at = end + 3;
        Ok(Some(spec))
    }
}
