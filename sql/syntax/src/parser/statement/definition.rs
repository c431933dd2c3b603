//! CREATE and ALTER by what follows, schemas, DROP, TRUNCATE, COMMENT.

use sqlparser::tokenizer::Token;

use crate::ast::Persistence;
use crate::ast::{
    AlteredObject, Comment, CommentObject, CreateSchema, Drop, ObjectWord, Rename, RenameAction,
    RenamedObject, RoutineWord, Statement, Truncate,
};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;
use crate::parser::lexer::lexeme::is_word;

/// Objects PostgreSQL creates, alters and drops and Archipel does not have, longest first where
/// one begins another.
const FOREIGN_OBJECTS: &[&[&str]] = &[
    &["access", "method"],
    &["cast"],
    &["collation"],
    &["conversion"],
    &["event", "trigger"],
    &["foreign", "data", "wrapper"],
    &["foreign", "table"],
    &["language"],
    &["large", "object"],
    &["materialized", "view"],
    &["operator", "family"],
    &["operator"],
    &["publication"],
    &["rule"],
    &["server"],
    &["statistics"],
    &["subscription"],
    &["tablespace"],
    &["text", "search", "configuration"],
    &["text", "search", "dictionary"],
    &["text", "search", "parser"],
    &["text", "search", "template"],
    &["transform"],
    &["trigger"],
    &["user", "mapping"],
];

impl Cursor<'_> {
    pub(in crate::parser) fn create(&mut self) -> Result<Statement> {
        self.skip(1);
        let or_replace = self.take_words(&["or", "replace"]);
        match self.word_at(0).as_str() {
            "function" | "procedure" => return self.create_routine(or_replace),
            "aggregate" => return self.create_aggregate(or_replace),
            "operator" if !or_replace && self.at_words(&["operator", "class"]) => {
                return self.create_operator_class();
            }
            "operator" if !or_replace && self.at_words(&["operator", "family"]) => {
                return self.create_operator_family();
            }
            "trigger" => return self.create_trigger(or_replace),
            "policy" if !or_replace => return self.create_policy(),
            "extension" if !or_replace => return self.create_extension(),
            "database" if !or_replace => return self.create_database(),
            "constraint" if self.at_words(&["constraint", "trigger"]) => {
                return self.create_trigger(or_replace);
            }
            "trusted" | "procedural" => return Ok(self.refuse("CREATE LANGUAGE")),
            "temporary" | "temp" | "local" | "global" => return self.create_temporary(or_replace),
            "view" => return self.create_view(or_replace, false),
            "recursive" => return self.create_recursive_view(or_replace, false),
            "type" if !or_replace => return self.create_type(),
            "domain" if !or_replace => return self.create_domain(),
            _ if or_replace => {}
            "default" => return Ok(self.refuse("CREATE CONVERSION")),
            "table" => {
                self.skip(1);
                return self.create_table(Persistence::Permanent);
            }
            "unique" | "index" => return self.create_index(),
            "sequence" => {
                self.skip(1);
                return self.create_sequence(Persistence::Permanent);
            }
            "schema" => {
                self.skip(1);
                return self.create_schema();
            }
            "unlogged" if self.at_words(&["unlogged", "table"]) => {
                self.skip(2);
                return self.create_table(Persistence::Unlogged);
            }
            "unlogged" if self.at_words(&["unlogged", "sequence"]) => {
                self.skip(2);
                return self.create_sequence(Persistence::Unlogged);
            }
            _ => {}
        }
        match self.role_word() {
            Some(word) if !or_replace => self.create_role(word),
            Some(_) => Err(self.unexpected()),
            None => self.foreign_object("CREATE"),
        }
    }

    fn create_temporary(&mut self, or_replace: bool) -> Result<Statement> {
        while matches!(self.word_at(0).as_str(), "temporary" | "temp" | "local" | "global") {
            self.skip(1);
        }
        match self.word_at(0).as_str() {
            "view" => self.create_view(or_replace, true),
            "table" if !or_replace => {
                self.skip(1);
                self.create_table(Persistence::Temporary)
            }
            "recursive" => self.create_recursive_view(or_replace, true),
            "sequence" if !or_replace => {
                self.skip(1);
                self.create_sequence(Persistence::Temporary)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// CREATE, ALTER or DROP of an object of [`FOREIGN_OBJECTS`].
    fn foreign_object(&mut self, verb: &str) -> Result<Statement> {
        match FOREIGN_OBJECTS.iter().find(|words| self.at_words(words)) {
            Some(words) => {
                let words = words.join(" ").to_uppercase();
                Ok(self.refuse(format!("{verb} {words}")))
            }
            None => Err(self.unexpected()),
        }
    }

    fn create_schema(&mut self) -> Result<Statement> {
        let if_not_exists = self.take_if_not_exists();
        let name = if self.at("authorization") { None } else { Some(self.identifier()?) };
        let authorization = if self.take("authorization") { Some(self.role()?) } else { None };
        if if_not_exists && self.at_schema_element() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "CREATE SCHEMA IF NOT EXISTS cannot include schema elements",
            )
            .at(Some(self.position())));
        }
        let mut elements = Vec::new();
        while !self.at_end() {
            elements.push(self.schema_element()?);
        }
        Ok(Statement::CreateSchema(CreateSchema { name, if_not_exists, authorization, elements }))
    }

    /// Whether the next word begins a definition within CREATE SCHEMA: nothing else may end with it,
    /// as both words are reserved.
    pub(super) fn at_schema_element(&self) -> bool {
        self.at("create") || self.at("grant")
    }

    /// A definition within CREATE SCHEMA, which ends where the next begins.
    fn schema_element(&mut self) -> Result<Statement> {
        if self.at("grant") {
            return self.grant();
        }
        let replaces = self.at_words(&["create", "or", "replace"]);
        let ahead = if replaces { 3 } else { 1 };
        let known = match self.word_at(ahead).as_str() {
            "view" | "recursive" | "trigger" | "temporary" | "temp" | "local" | "global" => true,
            "table" | "unlogged" | "index" | "unique" | "sequence" | "constraint" => !replaces,
            _ => false,
        };
        if !self.at("create") || !known {
            self.skip(if self.at("create") { ahead } else { 0 });
            return Err(self.unexpected());
        }
        let start = self.index();
        match self.create()? {
            Statement::CreateTableAs(_) => Err(self.no_schema_element(start)),
            element => Ok(element),
        }
    }

    /// The error over the CREATE TABLE AS that began at `start`: behind the table's name it does not go on
    /// as CREATE TABLE does, or behind the first column's.
    fn no_schema_element(&self, start: usize) -> SqlError {
        let token = |at: usize| self.parser.token_at(at);
        let ends_name = |at: &usize| {
            let next = token(*at);
            next.token == Token::LParen || ["as", "with", "on"].iter().any(|word| is_word(Some(next), word))
        };
        let behind = (start..self.index()).find(ends_name).unwrap_or(start);
        self.error_at(token(if token(behind).token == Token::LParen { behind + 2 } else { behind }))
    }

    pub(in crate::parser) fn alter(&mut self) -> Result<Statement> {
        self.skip(1);
        match self.word_at(0).as_str() {
            "table" => {
                self.skip(1);
                self.alter_table(AlteredObject::Table)
            }
            "index" => {
                self.skip(1);
                self.alter_table(AlteredObject::Index)
            }
            "sequence" => {
                self.skip(1);
                self.alter_table(AlteredObject::Sequence)
            }
            "view" => {
                self.skip(1);
                self.alter_table(AlteredObject::View)
            }
            "type" => self.alter_type(),
            "domain" => self.alter_domain(),
            "trigger" => self.alter_trigger(),
            "policy" => self.alter_policy(),
            "extension" => self.alter_extension(),
            "database" => self.alter_database(),
            "system" => {
                self.skip(1);
                self.alter_system()
            }
            "large" if self.take_large_object() => self.alter_large_object(),
            "schema" => {
                self.skip(1);
                let schema = self.identifier()?;
                self.rename(RenamedObject::Schema(schema), "ALTER SCHEMA")
            }
            "function" | "procedure" | "routine" => {
                let word = self.routine_word().ok_or_else(|| self.unexpected())?;
                let signature = self.routine_signature()?;
                let what = format!("ALTER {}", word.as_str().to_uppercase());
                self.rename(RenamedObject::Routine(word, signature), &what)
            }
            "operator" if self.at_words(&["operator", "class"]) => self.alter_operator_class(),
            "operator" if self.at_words(&["operator", "family"]) => self.alter_operator_family(),
            "aggregate" => {
                self.skip(1);
                let signature = self.aggregate_signature()?;
                self.rename(RenamedObject::Routine(RoutineWord::Aggregate, signature), "ALTER AGGREGATE")
            }
            "default" if self.at_words(&["default", "privileges"]) => {
                self.skip(2);
                self.alter_default_privileges()
            }
            _ => match self.role_word() {
                Some(word) => self.alter_role(word),
                None => self.foreign_object("ALTER"),
            },
        }
    }

    fn rename(&mut self, object: RenamedObject, what: &str) -> Result<Statement> {
        let action = if self.take_words(&["rename", "to"]) {
            RenameAction::RenameTo(self.identifier()?)
        } else if self.take_words(&["set", "schema"]) {
            RenameAction::SetSchema(self.identifier()?)
        } else if self.take_words(&["owner", "to"]) {
            RenameAction::OwnerTo(self.role()?)
        } else if self.at_end() || !matches!(self.peek(), Token::Word(_)) {
            return Err(self.unexpected());
        } else if matches!(&object, RenamedObject::Routine(word, _) if *word != RoutineWord::Aggregate)
            && !self.at("depends")
            && !self.at("no")
        {
            RenameAction::Clauses(Box::new(self.altered_clauses()?))
        } else {
            return Ok(self.refuse(what));
        };
        Ok(Statement::Rename(Rename { object, action }))
    }

    pub(in crate::parser) fn drop_statement(&mut self) -> Result<Statement> {
        self.skip(1);
        if let Some(word) = self.routine_word() {
            return self.drop_routine(word);
        }
        let kind = match self.word_at(0).as_str() {
            "table" => ObjectWord::Table,
            "index" => ObjectWord::Index,
            "sequence" => ObjectWord::Sequence,
            "view" => ObjectWord::View,
            "type" => ObjectWord::Type,
            "domain" => ObjectWord::Domain,
            "schema" => ObjectWord::Schema,
            "aggregate" => return self.drop_aggregate(),
            "operator" if matches!(self.word_at(1).as_str(), "class" | "family") => {
                return self.drop_operator_class();
            }
            "trigger" => return self.drop_trigger(),
            "policy" => return self.drop_policy(),
            "extension" => return self.drop_extension(),
            "database" => return self.drop_database(),
            "owned" => return self.owned(false),
            _ => {
                return match self.role_word() {
                    Some(_) => self.drop_role(),
                    None => self.foreign_object("DROP"),
                };
            }
        };
        self.skip(1);
        let concurrently = kind == ObjectWord::Index && self.take("concurrently");
        let if_exists = self.take_if_exists();
        let names = self.list(Self::name)?;
        Ok(Statement::Drop(Drop { kind, names, if_exists, cascade: self.take_behavior(), concurrently }))
    }

    pub(in crate::parser) fn truncate(&mut self) -> Result<Statement> {
        self.skip(1);
        self.take("table");
        let tables = self.list(|cursor| {
            let only = cursor.take("only");
            let name = cursor.name()?;
            cursor.take_token(&Token::Mul);
            Ok((name, only))
        })?;
        let (tables, only) = tables.into_iter().unzip();
        let restart_identity = self.take_words(&["restart", "identity"]);
        if !restart_identity {
            self.take_words(&["continue", "identity"]);
        }
        Ok(Statement::Truncate(Truncate { tables, only, restart_identity, cascade: self.take_behavior() }))
    }

    pub(in crate::parser) fn comment(&mut self) -> Result<Statement> {
        self.skip(1);
        self.expect("on")?;
        let object = match self.word_at(0).as_str() {
            "table" => {
                self.skip(1);
                CommentObject::Table(self.name()?)
            }
            "index" => {
                self.skip(1);
                CommentObject::Index(self.name()?)
            }
            "sequence" => {
                self.skip(1);
                CommentObject::Sequence(self.name()?)
            }
            "view" => {
                self.skip(1);
                CommentObject::View(self.name()?)
            }
            "type" | "domain" => {
                self.skip(1);
                CommentObject::Type(self.name()?)
            }
            "column" => {
                self.skip(1);
                let (table, column) = self.column_name()?;
                CommentObject::Column(table, column)
            }
            "constraint" => {
                self.skip(1);
                let name = self.identifier()?;
                self.expect("on")?;
                if self.take("domain") {
                    CommentObject::DomainConstraint { name, domain: self.name()? }
                } else {
                    CommentObject::Constraint { name, table: self.name()? }
                }
            }
            "trigger" => {
                self.skip(1);
                let name = self.identifier()?;
                self.expect("on")?;
                CommentObject::Trigger { name, table: self.name()? }
            }
            "policy" => {
                self.skip(1);
                let name = self.identifier()?;
                self.expect("on")?;
                CommentObject::Policy { name, table: self.name()? }
            }
            "schema" => {
                self.skip(1);
                CommentObject::Schema(self.identifier()?)
            }
            "database" => {
                self.skip(1);
                CommentObject::Database(self.identifier()?)
            }
            "extension" => {
                self.skip(1);
                CommentObject::Extension(self.identifier()?)
            }
            "function" | "procedure" | "routine" => {
                let word = self.routine_word().ok_or_else(|| self.unexpected())?;
                CommentObject::Routine(word, self.routine_signature()?)
            }
            "aggregate" => {
                self.skip(1);
                CommentObject::Routine(RoutineWord::Aggregate, self.aggregate_signature()?)
            }
            "role" => {
                self.skip(1);
                CommentObject::Role(self.role_name()?)
            }
            "large" if self.take_large_object() => return self.comment_on_large_object(),
            "operator" if self.at_words(&["operator", "class"]) => {
                return Ok(self.refuse("COMMENT ON OPERATOR CLASS"));
            }
            _ => return self.foreign_object("COMMENT ON"),
        };
        self.expect("is")?;
        let text = if self.take("null") { None } else { Some(self.string()?) };
        Ok(Statement::Comment(Comment { object, text }))
    }

    fn alter_system(&mut self) -> Result<Statement> {
        use crate::ast::{AlterSystem, Reset};
        if self.take("set") {
            return Ok(Statement::AlterSystem(AlterSystem::Set(self.set_clause(false)?)));
        }
        self.expect("reset")?;
        let reset = if self.take("all") { Reset::All } else { Reset::Name(self.setting_name()?) };
        Ok(Statement::AlterSystem(AlterSystem::Reset(reset)))
    }
}
