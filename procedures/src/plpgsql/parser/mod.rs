//! The parser: recursive descent over PostgreSQL 15's grammar (src/pl/plpgsql/src/pl_gram.y),
//! with its decisions and its messages.
//!
//! - this file: tokens, errors, scopes, blocks
//! - [`declare`]   declarations and types
//! - [`statement`] statements; [`loops`] FOR and FOREACH; [`cursor`] cursors
//! - [`fragment`]  SQL cut out of the body, INTO clauses, targets
//! - [`raise`]     RAISE, ASSERT, GET DIAGNOSTICS

mod cursor;
mod declare;
mod fragment;
mod loops;
mod raise;
mod statement;
#[cfg(test)]
mod tests;

use archipel_sql::catalog::{ArgMode, FIRST_OID, Routine, RoutineKind};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser as sql;
use archipel_sql::types::Type;

use super::ast::*;
use super::conditions;
use super::lexer::{self, Token, TokenKind};

/// What the grammar must know of the routine around the body.
#[derive(Clone, Debug)]
pub struct Signature {
    pub name: String,
    /// Name, mode and type of every argument, TABLE columns included.
    pub args: Vec<(Option<String>, ArgMode, Type)>,
    pub procedure: bool,
    pub result: Type,
    pub returns_set: bool,
    /// DO: no arguments, no result.
    pub anonymous: bool,
}

impl Signature {
    /// The signature of a catalog object.
    pub fn of(routine: &Routine) -> Signature {
        Signature {
            name: routine.name.clone(),
            // Arguments and results carry no type modifiers.
            args: routine.args.iter().map(|a| (a.name.clone(), a.mode, Type::of(a.declared().oid))).collect(),
            procedure: routine.kind == RoutineKind::Procedure,
            result: Type::of(routine.result.oid),
            returns_set: routine.returns_set,
            anonymous: false,
        }
    }

    /// Whether results leave through OUT, INOUT or TABLE columns.
    pub fn has_out(&self) -> bool {
        self.args.iter().any(|(_, mode, _)| matches!(mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table))
    }
}

/// Words that are never names of variables.
const RESERVED: &[&str] = &[
    "all", "begin", "by", "case", "declare", "else", "end", "execute", "for", "foreach", "from", "if", "in",
    "into", "loop", "not", "null", "or", "strict", "then", "to", "using", "when", "while",
];

/// Statements may nest this deep: bounded stack use, here and in whatever walks the tree later.
const NESTING_MAX: u32 = 150;

/// Parses a body. Positions in errors count characters of `source` from one.
pub fn parse(source: &str, signature: &Signature) -> Result<Body> {
    let tokens = lexer::scan(source)?;
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        signature,
        variables: Vec::new(),
        names: Names::default(),
        head: 0,
        conflict: None,
        print_strict: None,
        depth: 0,
        shadowed: Vec::new(),
    };
    parser.function()
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    at: usize,
    signature: &'s Signature,
    variables: Vec<Variable>,
    names: Names,
    head: NamesId,
    conflict: Option<Conflict>,
    print_strict: Option<bool>,
    /// How deep statements are nested here.
    depth: u32,
    shadowed: Vec<SqlError>,
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        // The last token is End and is never passed.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn ahead(&self, count: usize) -> &Token {
        &self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    fn advance(&mut self) -> Token {
        let token = self.token().clone();
        self.at += 1;
        token
    }

    fn is_word(&self, word: &str) -> bool {
        self.token().is_word(word)
    }

    fn is_symbol(&self, symbol: char) -> bool {
        self.token().is_symbol(symbol)
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn accept_symbol(&mut self, symbol: char) -> bool {
        let found = self.is_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.accept_word(word) { Ok(()) } else { Err(self.syntax_error()) }
    }

    fn expect_symbol(&mut self, symbol: char) -> Result<()> {
        if self.accept_symbol(symbol) { Ok(()) } else { Err(self.syntax_error()) }
    }

    /// `message at or near "token"`, as PostgreSQL's scanner words it.
    fn near(&self, message: &str) -> SqlError {
        let token = self.token();
        let text = match token.kind {
            TokenKind::End => format!("{message} at end of input"),
            _ => format!("{message} at or near \"{}\"", &self.source[token.start..token.end]),
        };
        self.error_at(SqlState::SYNTAX_ERROR, text, token.start)
    }

    fn syntax_error(&self) -> SqlError {
        self.near("syntax error")
    }

    fn error_at(&self, state: SqlState, message: impl ToString, offset: usize) -> SqlError {
        SqlError::new(state, message.to_string()).at(Some(lexer::position(self.source, offset)))
    }

    /// An error that PostgreSQL reports by line, without a position.
    fn error_near(&self, state: SqlState, message: impl ToString, line: u32) -> SqlError {
        let mut error = SqlError::new(state, message.to_string());
        let name = if self.signature.anonymous { "inline_code_block" } else { &self.signature.name };
        error.fields_mut().context =
            Some(format!("compilation of PL/pgSQL function \"{name}\" near line {line}"));
        error
    }

    /// A syntax-class error at the current token.
    fn error_here(&self, message: impl ToString) -> SqlError {
        self.error_at(SqlState::SYNTAX_ERROR, message, self.token().start)
    }

    /// Adds a variable and its name to the current scope.
    fn add_variable(&mut self, variable: Variable) -> VariableId {
        let id = self.variables.len() as VariableId;
        let name = variable.name.clone();
        self.variables.push(variable);
        self.name_variable(name, id);
        id
    }

    fn name_variable(&mut self, name: String, id: VariableId) {
        self.head = self.names.push(Some(self.head), Name::Variable { name, id });
    }

    /// Whether the innermost block already declares the name.
    fn declared_here(&self, name: &str) -> bool {
        self.names
            .walk(self.head)
            .take_while(|entry| matches!(entry, Name::Variable { .. }))
            .any(|entry| matches!(entry, Name::Variable { name: known, .. } if known == name))
    }

    /// Opens a scope and answers the head to return to.
    fn open_scope(&mut self, label: Option<String>, is_loop: bool) -> NamesId {
        let before = self.head;
        self.head = self.names.push(Some(before), Name::Label { label, is_loop });
        before
    }

    /// Whether a variable may have fields, as far as its declaration tells.
    fn may_be_record(&self, id: VariableId) -> bool {
        match self.variables[id as usize].ty {
            // What a domain is over is not told by its number.
            TypeSpec::Known(Type { oid, .. }) => {
                oid.has_fields() || oid.0 >= FIRST_OID && oid.innermost_kind().is_none()
            }
            TypeSpec::Named(_) | TypeSpec::Record | TypeSpec::RowOf(_) => true,
            TypeSpec::OfVariable(other) => self.may_be_record(other),
            TypeSpec::OfColumn(..) => true,
        }
    }

    fn find_variable(&self, parts: &[&str]) -> Option<(VariableId, usize)> {
        self.names.find(self.head, parts, &|id| self.may_be_record(id))
    }

    fn internal_variable(&mut self, name: &str, line: u32, ty: Type, constant: bool) -> VariableId {
        self.add_variable(Variable {
            name: name.to_string(),
            line,
            ty: TypeSpec::Known(ty),
            constant,
            not_null: false,
            default: None,
            cursor: None,
            collate: None,
        })
    }

    fn function(&mut self) -> Result<Body> {
        let label = if self.signature.anonymous { None } else { Some(self.signature.name.clone()) };
        self.head = self.names.push(None, Name::Label { label, is_loop: false });
        let mut parameters = Vec::new();
        let args = self.signature.args.clone();
        for (index, (name, _, ty)) in args.iter().cloned().enumerate() {
            let number = format!("${}", index + 1);
            let id = self.internal_variable(&number, 0, ty, false);
            parameters.push(id);
            if let Some(name) = name.filter(|n| !n.is_empty()) {
                // An input and an output of one name are two in SQL alone.
                if args[..index].iter().any(|(other, ..)| other.as_ref() == Some(&name)) {
                    let message = format!("parameter name \"{name}\" used more than once");
                    return Err(self.error_near(SqlState::INVALID_FUNCTION_DEFINITION, message, 1));
                }
                self.variables[id as usize].name = name.clone();
                self.name_variable(name, id);
            }
        }
        // The result of a polymorphic function (chapter 43.3.1).
        let has_result = !self.signature.procedure && !self.signature.anonymous && !self.signature.has_out();
        if has_result && self.tokens.iter().any(|token| token.kind == TokenKind::Parameter(0)) {
            self.internal_variable("$0", 0, self.signature.result, false);
        }
        let found = self.internal_variable("found", 0, Type::BOOL, false);
        self.options()?;
        let block = self.labelled_block()?;
        self.accept_symbol(';');
        if self.token().kind != TokenKind::End {
            return Err(self.syntax_error());
        }
        Ok(Body {
            block,
            variables: std::mem::take(&mut self.variables),
            names: std::mem::take(&mut self.names),
            parameters,
            found,
            print_strict: self.print_strict,
            conflict: self.conflict,
            shadowed: std::mem::take(&mut self.shadowed),
        })
    }

    /// `#option dump`, `#print_strict_params on`, `#variable_conflict use_column`.
    fn options(&mut self) -> Result<()> {
        while self.accept_symbol('#') {
            let option = self.advance();
            let value = self.token().word().unwrap_or_default().to_string();
            match (option.word(), value.as_str()) {
                (Some("option"), "dump") => {}
                (Some("print_strict_params"), "on" | "off") => self.print_strict = Some(value == "on"),
                (Some("variable_conflict"), "error") => self.conflict = Some(Conflict::Error),
                (Some("variable_conflict"), "use_variable") => self.conflict = Some(Conflict::UseVariable),
                (Some("variable_conflict"), "use_column") => self.conflict = Some(Conflict::UseColumn),
                (Some("print_strict_params"), value) => {
                    let message = format!("unrecognized print_strict_params option {value}");
                    return Err(self.error_near(SqlState::INTERNAL_ERROR, message, 1));
                }
                (Some("option" | "variable_conflict"), _) => return Err(self.syntax_error()),
                _ => {
                    self.at -= 1;
                    return Err(self.syntax_error());
                }
            }
            self.at += 1;
        }
        Ok(())
    }

    /// `<<label>>`, if there is one.
    fn label(&mut self) -> Result<Option<String>> {
        if self.token().kind != TokenKind::LabelOpen {
            return Ok(None);
        }
        self.at += 1;
        let label = self.identifier()?;
        if self.token().kind != TokenKind::LabelClose {
            return Err(self.syntax_error());
        }
        self.at += 1;
        Ok(Some(label))
    }

    /// Any name, reserved words excluded.
    fn identifier(&mut self) -> Result<String> {
        match &self.token().kind {
            TokenKind::Word { text, quoted } if *quoted || !RESERVED.contains(&text.as_str()) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.syntax_error()),
        }
    }

    fn labelled_block(&mut self) -> Result<Block> {
        let label = self.label()?;
        self.block(label)
    }

    /// `[DECLARE …] BEGIN … [EXCEPTION …] END [label]`, the label already read.
    fn block(&mut self, label: Option<String>) -> Result<Block> {
        let before = self.open_scope(label.clone(), false);
        let mut declared = Vec::new();
        if self.accept_word("declare") {
            self.declarations(&mut declared)?;
        }
        let line = self.token().line;
        self.expect_word("begin")?;
        let body = self.statements()?;
        let exceptions = if self.is_word("exception") { Some(self.exceptions()?) } else { None };
        self.expect_word("end")?;
        self.end_label(label.as_deref(), "block")?;
        self.head = before;
        Ok(Block { line, label, declared, body, exceptions })
    }

    /// The optional label after END or END LOOP.
    fn end_label(&mut self, label: Option<&str>, what: &str) -> Result<()> {
        if self.is_symbol(';') || self.token().kind == TokenKind::End {
            return Ok(());
        }
        let start = self.token().start;
        let end = self.identifier()?;
        match label {
            None => Err(self.error_at(
                SqlState::SYNTAX_ERROR,
                format!("end label \"{end}\" specified for unlabeled {what}"),
                start,
            )),
            Some(label) if label != end => Err(self.error_at(
                SqlState::SYNTAX_ERROR,
                format!("end label \"{end}\" differs from block's label \"{label}\""),
                start,
            )),
            Some(_) => Ok(()),
        }
    }

    /// `EXCEPTION WHEN … THEN …`, up to END.
    fn exceptions(&mut self) -> Result<Exceptions> {
        let line = self.token().line;
        self.expect_word("exception")?;
        let sqlstate = self.internal_variable("sqlstate", line, Type::TEXT, true);
        let sqlerrm = self.internal_variable("sqlerrm", line, Type::TEXT, true);
        let mut handlers = Vec::new();
        if !self.is_word("when") {
            return Err(self.syntax_error());
        }
        while self.is_word("when") {
            let line = self.token().line;
            self.at += 1;
            let mut conditions = Vec::new();
            loop {
                self.condition(&mut conditions)?;
                if !self.accept_word("or") {
                    break;
                }
            }
            self.expect_word("then")?;
            let body = self.statements()?;
            handlers.push(Handler { line, conditions, body });
        }
        Ok(Exceptions { sqlstate, sqlerrm, handlers })
    }

    fn condition(&mut self, conditions: &mut Vec<Condition>) -> Result<()> {
        let line = self.token().line;
        if self.is_word("sqlstate") {
            self.at += 1;
            let code = self.sqlstate_literal()?;
            conditions.push(Condition::Code(code));
            return Ok(());
        }
        let name = self.identifier()?;
        if name == "others" {
            conditions.push(Condition::Others);
            return Ok(());
        }
        let codes = conditions::codes_of(&name);
        if codes.is_empty() {
            return Err(self.error_near(
                SqlState::UNDEFINED_OBJECT,
                format!("unrecognized exception condition \"{name}\""),
                line,
            ));
        }
        conditions.extend(codes.into_iter().map(Condition::Code));
        Ok(())
    }

    /// The string after SQLSTATE.
    fn sqlstate_literal(&mut self) -> Result<SqlState> {
        let TokenKind::Text(code) = &self.token().kind else {
            return Err(self.syntax_error());
        };
        let valid = code.len() == 5 && code.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
        match code.as_bytes().first_chunk::<5>() {
            Some(bytes) if valid => {
                let state = SqlState(*bytes);
                self.at += 1;
                Ok(state)
            }
            _ => Err(self.near("invalid SQLSTATE code")),
        }
    }
}
