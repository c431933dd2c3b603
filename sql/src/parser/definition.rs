//! CREATE and ALTER by what follows, schemas, DROP, TRUNCATE, COMMENT, GRANT and REVOKE.

use sqlparser::tokenizer::Token;

use crate::ast::{
    AlteredObject, Comment, CommentObject, CreateSchema, Drop, Grant, GrantObjects, ObjectWord, Rename,
    RenameAction, RenamedObject, RoutineSignature, RoutineWord, Statement, Truncate,
};
use crate::catalog::Persistence;
use crate::error::Result;

use super::cursor::Cursor;

/// Objects PostgreSQL creates, alters and drops and Archipel does not have, longest first where
/// one begins another.
const FOREIGN_OBJECTS: &[&[&str]] = &[
    &["access", "method"],
    &["aggregate"],
    &["cast"],
    &["collation"],
    &["conversion"],
    &["database"],
    &["default", "privileges"],
    &["event", "trigger"],
    &["extension"],
    &["foreign", "data", "wrapper"],
    &["foreign", "table"],
    &["group"],
    &["language"],
    &["large", "object"],
    &["materialized", "view"],
    &["operator", "class"],
    &["operator", "family"],
    &["operator"],
    &["owned"],
    &["policy"],
    &["publication"],
    &["recursive", "view"],
    &["role"],
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
    &["user"],
];

impl Cursor<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        self.skip(1);
        let or_replace = self.take_words(&["or", "replace"]);
        match self.word_at(0).as_str() {
            "function" | "procedure" => return self.create_routine(or_replace),
            "trigger" => return self.create_trigger(or_replace),
            "constraint" if self.at_words(&["constraint", "trigger"]) => {
                return self.create_trigger(or_replace);
            }
            "trusted" | "procedural" => return Ok(self.refuse("CREATE LANGUAGE")),
            "temporary" | "temp" | "local" | "global" => {
                while matches!(self.word_at(0).as_str(), "temporary" | "temp" | "local" | "global") {
                    self.skip(1);
                }
                return match self.word_at(0).as_str() {
                    "view" => self.create_view(or_replace, true),
                    "table" if !or_replace => {
                        self.skip(1);
                        self.create_table(Persistence::Temporary)
                    }
                    "sequence" | "recursive" if !or_replace => {
                        let what = self.word_at(0).to_uppercase();
                        Ok(self.refuse(format!("CREATE TEMPORARY {what}")))
                    }
                    _ => Err(self.unexpected()),
                };
            }
            "view" => return self.create_view(or_replace, false),
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
                return self.create_sequence();
            }
            "schema" => {
                self.skip(1);
                return self.create_schema();
            }
            "unlogged" if self.at_words(&["unlogged", "table"]) => {
                self.skip(2);
                return self.create_table(Persistence::Unlogged);
            }
            _ => {}
        }
        self.foreign_object("CREATE")
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
        let authorization = if self.take("authorization") { Some(self.label()?) } else { None };
        if !self.at_end() {
            if matches!(self.word_at(0).as_str(), "create" | "grant") {
                return Ok(self.refuse("CREATE SCHEMA with schema elements"));
            }
            return Err(self.unexpected());
        }
        Ok(Statement::CreateSchema(CreateSchema { name, if_not_exists, authorization }))
    }

    pub(super) fn alter(&mut self) -> Result<Statement> {
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
            "system" => {
                self.skip(1);
                self.alter_system()
            }
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
            _ => self.foreign_object("ALTER"),
        }
    }

    fn rename(&mut self, object: RenamedObject, what: &str) -> Result<Statement> {
        let action = if self.take_words(&["rename", "to"]) {
            RenameAction::RenameTo(self.identifier()?)
        } else if self.take_words(&["set", "schema"]) {
            RenameAction::SetSchema(self.identifier()?)
        } else if self.take_words(&["owner", "to"]) {
            RenameAction::OwnerTo(self.label()?)
        } else if self.at_end() || !matches!(self.peek(), Token::Word(_)) {
            return Err(self.unexpected());
        } else if matches!(object, RenamedObject::Routine(..)) && !self.at("depends") && !self.at("no") {
            RenameAction::Clauses(Box::new(self.altered_clauses()?))
        } else {
            return Ok(self.refuse(what));
        };
        Ok(Statement::Rename(Rename { object, action }))
    }

    pub(super) fn drop_statement(&mut self) -> Result<Statement> {
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
            "trigger" => return self.drop_trigger(),
            _ => return self.foreign_object("DROP"),
        };
        self.skip(1);
        let concurrently = kind == ObjectWord::Index && self.take("concurrently");
        let if_exists = self.take_if_exists();
        let names = self.list(Self::name)?;
        Ok(Statement::Drop(Drop { kind, names, if_exists, cascade: self.take_behavior(), concurrently }))
    }

    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.skip(1);
        self.take("table");
        let tables = self.list(|cursor| {
            cursor.take("only");
            let name = cursor.name()?;
            cursor.take_token(&Token::Mul);
            Ok(name)
        })?;
        let restart_identity = self.take_words(&["restart", "identity"]);
        if !restart_identity {
            self.take_words(&["continue", "identity"]);
        }
        Ok(Statement::Truncate(Truncate { tables, restart_identity, cascade: self.take_behavior() }))
    }

    pub(super) fn comment(&mut self) -> Result<Statement> {
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
                if self.at("domain") {
                    return Ok(self.refuse("COMMENT ON DOMAIN CONSTRAINT"));
                }
                CommentObject::Constraint { name, table: self.name()? }
            }
            "schema" => {
                self.skip(1);
                CommentObject::Schema(self.identifier()?)
            }
            "database" => {
                self.skip(1);
                CommentObject::Database(self.identifier()?)
            }
            "function" | "procedure" | "routine" => {
                let word = self.routine_word().ok_or_else(|| self.unexpected())?;
                CommentObject::Routine(word, self.routine_signature()?)
            }
            _ => return self.foreign_object("COMMENT ON"),
        };
        self.expect("is")?;
        let text = if self.take("null") { None } else { Some(self.string()?) };
        Ok(Statement::Comment(Comment { object, text }))
    }

    pub(super) fn grant(&mut self) -> Result<Statement> {
        let revoke = self.at("revoke");
        self.skip(1);
        let what = if revoke { "REVOKE" } else { "GRANT" };
        if revoke && self.at_words(&["admin", "option", "for"]) {
            return Ok(self.refuse("REVOKE of a role"));
        }
        let mut grant_option = revoke && self.take_words(&["grant", "option", "for"]);
        let mut privileges = Vec::new();
        if self.take("all") {
            self.take("privileges");
            if *self.peek() == Token::LParen {
                return Ok(self.refuse(format!("{what} on columns")));
            }
        } else {
            privileges = self.list(Self::label)?;
            if *self.peek() == Token::LParen {
                return Ok(self.refuse(format!("{what} on columns")));
            }
        }
        if !self.take("on") {
            // Without ON it is a role that is granted.
            if matches!(self.word_at(0).as_str(), "to" | "from") {
                return Ok(self.refuse(format!("{what} of a role")));
            }
            return Err(self.unexpected());
        }
        let Some(objects) = self.grant_objects()? else {
            return Ok(self.refuse(format!("{what} on this kind of object")));
        };
        self.expect(if revoke { "from" } else { "to" })?;
        let grantees = self.list(|cursor| {
            cursor.take("group");
            cursor.label()
        })?;
        grant_option |= self.take_words(&["with", "grant", "option"]);
        if self.take_words(&["granted", "by"]) {
            self.label()?;
        }
        Ok(Statement::Grant(Grant {
            revoke,
            privileges,
            objects,
            grantees,
            grant_option,
            cascade: self.take_behavior(),
        }))
    }

    /// What a privilege is granted on; `None` for kinds of object that do not exist here.
    fn grant_objects(&mut self) -> Result<Option<GrantObjects>> {
        if self.take("all") {
            let word = self.label()?;
            self.expect("in")?;
            self.expect("schema")?;
            return Ok(Some(GrantObjects::AllInSchema(word, self.list(Self::identifier)?)));
        }
        let objects = match self.word_at(0).as_str() {
            "sequence" => {
                self.skip(1);
                GrantObjects::Sequences(self.list(Self::name)?)
            }
            "schema" => {
                self.skip(1);
                GrantObjects::Schemas(self.list(Self::identifier)?)
            }
            "database" => {
                self.skip(1);
                GrantObjects::Databases(self.list(Self::identifier)?)
            }
            "function" | "procedure" | "routine" => {
                let word: RoutineWord = self.routine_word().ok_or_else(|| self.unexpected())?;
                let routines: Vec<RoutineSignature> = self.list(Self::routine_signature)?;
                GrantObjects::Routines(word, routines)
            }
            "domain" | "foreign" | "language" | "large" | "parameter" | "tablespace" | "type"
                if matches!(self.peek_at(1), Token::Word(_)) =>
            {
                return Ok(None);
            }
            _ => {
                self.take("table");
                GrantObjects::Tables(self.list(Self::name)?)
            }
        };
        Ok(Some(objects))
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
