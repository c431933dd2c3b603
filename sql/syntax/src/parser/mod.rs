//! From text to [`crate::ast`].
//!
//! A script is cut into tokens once ([`lexer`]); a cursor over them ([`cursor`]) reads the word
//! a statement starts with and calls its production. Queries, expressions and data changes are
//! sqlparser's; everything else is read here:
//!
//! - [`lexer`]       tokens, keywords, positions, Unicode escapes, identifiers that are too long
//! - [`rewrite`]     what sqlparser's grammar lacks, in a form that it has
//! - [`dialect`]     expressions sqlparser reads only in part; [`type_names`] types
//! - [`statement`]   productions of statements
//! - [`production`]  a whole text by one production
//! - [`shape`]       statements without their literals
//!
//! Invariant: a statement PostgreSQL 15 accepts is accepted or becomes
//! [`Statement::Unsupported`] with its name; it is never called a syntax error knowingly. No
//! text, however deep or broken, panics or exhausts the stack.

mod cursor;
mod dialect;
mod lexer;
mod production;
mod rewrite;
pub mod shape;
mod statement;
mod type_names;

use sqlparser::ast as sp;
use sqlparser::tokenizer::Token;

use crate::ast::{Expression, Statement, StatementText};
use crate::error::{Result, SqlError, SqlState};

use cursor::Cursor;
pub use cursor::too_many_dots;
pub use lexer::backslash::{Keeps, StandardText, StringSyntax, standard_strings, unescape};
pub use lexer::keywords::{is_keyword_needing_quotes, is_reserved, quote_identifier, quote_qualified};
pub use lexer::lexeme::{Lexeme, LexemeKind, MARK, MAX_IDENTIFIER_BYTES};
pub use lexer::position::{Positions, position};
pub use lexer::scan::{lexemes, missing_parameter};
pub use lexer::truncation::truncate_identifier;
pub use lexer::truncation::{truncation_notice, truncation_notices};
use production::{parse_plain, whole};
pub use rewrite::conflict_target::INFERENCE;
pub use rewrite::empty_target_list::is_no_column;
pub use rewrite::expand_star::{EVERY_FIELD, starred};
pub use rewrite::fetch_first::limit_count;
pub use rewrite::few_words::{MERGE_DEFAULTS, MERGE_NOTHING, Overriding};
pub use rewrite::nested_join::using_alias;
pub use rewrite::only::ONLY;
pub use rewrite::placeholder_parser::{
    CycleClause, RecursionClauses, SearchClause, assigned_element, parse_inference, recursion_clauses,
};
pub use rewrite::rows_from::ROWS_FROM;
pub use rewrite::window_frame::{FrameExclusion, frame_exclusion};
pub use statement::partition::unbounded;
pub use type_names::{data_type_name, parse_type_name};

/// EXPLAIN, PREPARE and COPY nest statements so deep at most.
const MAX_STATEMENT_NESTING: u32 = 20;

/// Parses a script: statements separated by semicolons; empty ones vanish.
pub fn parse(text: &str) -> Result<Vec<StatementText>> {
    refuse_marked_names(text)?;
    parse_stored(text)
}

/// The same for what the catalog keeps, where relations may have numbers for names.
pub fn parse_stored(text: &str) -> Result<Vec<StatementText>> {
    if let Some(masked) = rewrite::current_of::mask(text) {
        return rewrite::current_of::parse(&masked);
    }
    parse_plain(text)
}

fn refuse_marked_names(text: &str) -> Result<()> {
    if !text.contains(MARK) {
        return Ok(());
    }
    let is_marked =
        |lexeme: &Lexeme| matches!(&lexeme.kind, LexemeKind::Word { value, .. } if value.contains(MARK));
    match lexemes(text)?.iter().any(is_marked) {
        true => Err(SqlError::unsupported("the character U+0001 in a name")),
        false => Ok(()),
    }
}

/// Parses exactly one statement; a semicolon may end it.
pub fn parse_statement(text: &str) -> Result<Statement> {
    only_statement(text, parse(text)?)
}

/// The same for what is made of texts that the catalog keeps.
pub fn parse_stored_statement(text: &str) -> Result<Statement> {
    only_statement(text, parse_stored(text)?)
}

fn only_statement(text: &str, mut statements: Vec<StatementText>) -> Result<Statement> {
    match (statements.pop(), statements.is_empty()) {
        (Some(only), true) => Ok(only.statement),
        (None, _) => {
            Err(lexer::position::syntax_error("", Positions::new(text).character_of_byte(text.len())))
        }
        (Some(second), false) => {
            let positions = Positions::new(text);
            let near = text[second.range.clone()].split_whitespace().next().unwrap_or("");
            Err(lexer::position::syntax_error(near, positions.character_of_byte(second.range.start)))
        }
    }
}

/// Parses exactly one expression.
pub fn parse_expression(text: &str) -> Result<sp::Expr> {
    whole(text, |cursor| cursor.expression().map(|expression| expression.expr))
}

/// Parses exactly one expression, with its text.
pub fn parse_expression_text(text: &str) -> Result<Expression> {
    whole(text, Cursor::expression)
}

/// Parses a list of expressions separated by commas.
pub fn parse_expressions(text: &str) -> Result<Vec<Expression>> {
    whole(text, |cursor| cursor.list(Cursor::expression))
}

/// Parses exactly one query.
pub fn parse_query(text: &str) -> Result<Box<sp::Query>> {
    whole(text, Cursor::query)
}

impl Cursor<'_> {
    /// One statement with the bytes it spans.
    fn statement_text(&mut self) -> Result<StatementText> {
        let start = self.byte();
        let statement = self.statement()?;
        Ok(StatementText { statement, range: start..self.end_byte().max(start) })
    }

    /// A statement inside another one.
    fn nested_statement(&mut self) -> Result<StatementText> {
        self.depth += 1;
        if self.depth > MAX_STATEMENT_NESTING {
            return Err(lexer::position::too_deep());
        }
        let statement = self.statement_text();
        self.depth -= 1;
        statement
    }

    fn statement(&mut self) -> Result<Statement> {
        if *self.peek() == Token::LParen {
            return self.query().map(Statement::Query);
        }
        match self.word_at(0).as_str() {
            "select" | "with" => match self.find_into() {
                Some(into) => self.select_into(into),
                None => self.query().map(Statement::Query),
            },
            "values" | "table" => self.query().map(Statement::Query),
            "insert" | "update" | "delete" | "merge" => self.data_change(),
            "create" => self.create(),
            "alter" => self.alter(),
            "drop" => self.drop_statement(),
            "truncate" => self.truncate(),
            "comment" => self.comment(),
            "grant" | "revoke" => self.grant(),
            "call" => self.call(),
            "do" => self.do_block(),
            "copy" => self.copy(),
            "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release" => {
                self.transaction()
            }
            "set" => self.set(),
            "reset" => self.reset(),
            "show" => self.show(),
            "prepare" => self.prepare(),
            "execute" => self.execution().map(Statement::Execute),
            "deallocate" => self.deallocate(),
            "explain" => self.explain(),
            "declare" => self.declare(),
            "fetch" | "move" => self.fetch(),
            "close" => self.close(),
            "discard" => self.discard(),
            "listen" | "notify" | "unlisten" => self.notification(),
            "lock" => self.lock_table(),
            "vacuum" => self.vacuum(),
            "analyze" | "analyse" => self.analyze(),
            "reindex" => self.reindex(),
            "base_backup" => {
                self.skip(1);
                Ok(Statement::BaseBackup)
            }
            "checkpoint" => {
                self.skip(1);
                Ok(Statement::Checkpoint)
            }
            "cluster" => self.cluster(),
            "load" => Ok(self.refuse("LOAD")),
            "refresh" => Ok(self.refuse("REFRESH MATERIALIZED VIEW")),
            "reassign" => {
                self.skip(1);
                self.owned(true)
            }
            "security" => Ok(self.refuse("SECURITY LABEL")),
            "import" => Ok(self.refuse("IMPORT FOREIGN SCHEMA")),
            _ => Err(self.unexpected()),
        }
    }

    /// A statement PostgreSQL has and Archipel has not.
    fn refuse(&mut self, what: impl Into<String>) -> Statement {
        self.skip_statement();
        Statement::Unsupported { what: what.into() }
    }

    fn data_change(&mut self) -> Result<Statement> {
        let what = self.position();
        match self.delegate(sqlparser::parser::Parser::parse_statement)? {
            sp::Statement::Insert(insert) => Ok(Statement::Insert(Box::new(insert))),
            sp::Statement::Update(update) => Ok(Statement::Update(Box::new(update))),
            sp::Statement::Delete(delete) => Ok(Statement::Delete(Box::new(delete))),
            sp::Statement::Merge(merge) => Ok(Statement::Merge(Box::new(merge))),
            _ => {
                Err(SqlError::new(SqlState::INTERNAL_ERROR, "a data change of an unknown kind")
                    .at(Some(what)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
