//! CREATE and ALTER TABLE.

use sqlparser::tokenizer::Token;

use crate::ast::{
    AlterSequence, AlterTable, AlterTableAction, AlteredObject, ColumnConstraint, ColumnConstraintKind,
    ColumnDefinition, CreateTable, Deferrable, References, ReferentialAction, Statement, TableConstraint,
    TableConstraintKind, TriggerFiring, WhichTriggers, WrittenReplicaIdentity,
};
use crate::ast::{OnCommit, Persistence};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

/// Storage parameters: name and value.
type Options = Vec<(String, Option<String>)>;

impl Cursor<'_> {
    /// After CREATE TABLE.
    pub(super) fn create_table(&mut self, persistence: Persistence) -> Result<Statement> {
        let if_not_exists = self.take_if_not_exists();
        let name = self.name()?;
        if self.at("of") {
            return Ok(self.refuse("CREATE TABLE … OF type"));
        }
        if self.is_table_as() {
            return self.create_table_as(name, persistence, if_not_exists);
        }
        let (mut columns, mut likes, mut constraints) = (Vec::new(), Vec::new(), Vec::new());
        let partition_of = self.partition_of(&mut constraints)?;
        if partition_of.is_none() {
            self.expect_token(&Token::LParen)?;
        }
        if partition_of.is_none() && !self.take_token(&Token::RParen) {
            loop {
                if self.at("like") {
                    likes.push(self.table_like(columns.len())?);
                } else {
                    match self.table_constraint()? {
                        Some(constraint) => constraints.push(constraint),
                        None => columns.push(self.column_definition()?),
                    }
                }
                if !self.take_token(&Token::Comma) {
                    break;
                }
            }
            self.expect_token(&Token::RParen)?;
        }
        let (mut options, mut on_commit) = (Vec::new(), OnCommit::PreserveRows);
        let (mut inherits, mut partition_by) = (Vec::new(), None);
        let (mut access_method, mut tablespace) = (None, None);
        // TABLESPACE stands last.
        while !self.at_end() && !self.at_schema_element() && tablespace.is_none() {
            match self.word_at(0).as_str() {
                "inherits" if partition_of.is_none() && access_method.is_none() => {
                    self.skip(1);
                    inherits = self.parenthesized(Self::name)?;
                }
                "partition" if partition_by.is_none() => partition_by = Some(self.partition_by()?),
                "tablespace" => tablespace = self.tablespace()?,
                "using" if access_method.is_none() && options.is_empty() => {
                    access_method = self.access_method()?
                }
                "on" if self.at_words(&["on", "commit"]) => on_commit = self.on_commit()?,
                "without" if self.at_words(&["without", "oids"]) => self.skip(2),
                "with" => {
                    self.skip(1);
                    options = self.storage_options()?;
                }
                _ => return Err(self.unexpected()),
            }
        }
        Ok(Statement::CreateTable(Box::new(CreateTable {
            name,
            persistence,
            on_commit,
            if_not_exists,
            columns,
            likes,
            constraints,
            inherits,
            partition_of,
            partition_by,
            access_method,
            options,
            tablespace,
        })))
    }

    /// `[USING name]` of a table.
    pub(super) fn access_method(&mut self) -> Result<Option<String>> {
        if self.take("using") { self.identifier().map(Some) } else { Ok(None) }
    }

    /// `[TABLESPACE name]`.
    pub(super) fn tablespace(&mut self) -> Result<Option<String>> {
        if self.take("tablespace") { self.identifier().map(Some) } else { Ok(None) }
    }

    /// `(name [= value], …)`.
    pub(super) fn storage_options(&mut self) -> Result<Options> {
        self.parenthesized(|cursor| {
            let mut name = cursor.label()?;
            if cursor.take_token(&Token::Period) {
                name = format!("{name}.{}", cursor.label()?);
            }
            let value = if cursor.take_token(&Token::Eq) {
                let start = cursor.byte();
                cursor.take_token(&Token::Minus);
                cursor.skip(1);
                Some(cursor.since(start).trim_matches('\'').to_string())
            } else {
                None
            };
            Ok((name, value))
        })
    }

    pub(super) fn column_definition(&mut self) -> Result<ColumnDefinition> {
        let position = self.position();
        let name = self.identifier()?;
        let ty = self.type_name()?;
        let compression = if self.take("compression") { Some(self.compression()?) } else { None };
        let mut column =
            ColumnDefinition { name, position, ty, collation: None, compression, constraints: Vec::new() };
        loop {
            let position = self.position();
            if self.take("collate") {
                // Errors tell of the clause.
                let mut collation = self.name()?;
                collation.position = position;
                column.collation = Some(collation);
            } else if let Some(constraint) = self.column_constraint()? {
                column.constraints.push(constraint);
            } else {
                return Ok(column);
            }
        }
    }

    pub(super) fn column_constraint(&mut self) -> Result<Option<ColumnConstraint>> {
        let position = self.position();
        let name = if self.take("constraint") { Some(self.identifier()?) } else { None };
        let mut no_inherit = false;
        let (mut options, mut tablespace) = (Options::new(), None);
        let kind = match self.word_at(0).as_str() {
            // NOT DEFERRABLE belongs to the constraint before.
            "not" if !matches!(self.word_at(1).as_str(), "deferrable" | "valid") => {
                self.skip(1);
                self.expect("null")?;
                ColumnConstraintKind::NotNull
            }
            "null" => {
                self.skip(1);
                ColumnConstraintKind::Null
            }
            "default" => {
                self.skip(1);
                ColumnConstraintKind::Default(self.default_expression()?)
            }
            "primary" => {
                self.skip(1);
                self.expect("key")?;
                (options, tablespace) = self.index_parameters()?;
                ColumnConstraintKind::PrimaryKey
            }
            "unique" => {
                self.skip(1);
                let nulls_not_distinct = self.nulls_not_distinct()?;
                (options, tablespace) = self.index_parameters()?;
                ColumnConstraintKind::Unique { nulls_not_distinct }
            }
            "check" => {
                self.skip(1);
                let condition = self.parenthesized_expression()?;
                no_inherit = self.take_words(&["no", "inherit"]);
                ColumnConstraintKind::Check(condition)
            }
            "references" => ColumnConstraintKind::References(self.references()?),
            "generated" => self.generated()?,
            _ if name.is_some() => return Err(self.unexpected()),
            _ => return Ok(None),
        };
        let deferrable = self.deferrable()?;
        Ok(Some(ColumnConstraint { name, position, kind, deferrable, no_inherit, options, tablespace }))
    }

    pub(super) fn generated(&mut self) -> Result<ColumnConstraintKind> {
        self.skip(1);
        let when = self.position();
        let always = if self.take("always") {
            true
        } else {
            self.expect("by")?;
            self.expect("default")?;
            false
        };
        self.expect("as")?;
        if self.take("identity") {
            let mut options = Vec::new();
            if self.take_token(&Token::LParen) {
                options = self.sequence_options()?;
                self.expect_token(&Token::RParen)?;
            }
            return Ok(ColumnConstraintKind::Identity { always, options });
        }
        let expression = self.parenthesized_expression()?;
        self.expect("stored")?;
        if !always {
            let message = "for a generated column, GENERATED ALWAYS must be specified";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(when)));
        }
        Ok(ColumnConstraintKind::Generated(expression))
    }

    /// `(expression)`, without the parentheses.
    pub(super) fn parenthesized_expression(&mut self) -> Result<crate::ast::Expression> {
        self.expect_token(&Token::LParen)?;
        let expression = self.expression()?;
        self.expect_token(&Token::RParen)?;
        Ok(expression)
    }

    pub(super) fn nulls_not_distinct(&mut self) -> Result<bool> {
        if self.take_words(&["nulls", "not", "distinct"]) {
            return Ok(true);
        }
        self.take_words(&["nulls", "distinct"]);
        Ok(false)
    }

    /// WITH (…) and USING INDEX TABLESPACE after a key.
    fn index_parameters(&mut self) -> Result<(Options, Option<String>)> {
        let mut options = Options::new();
        if self.at("with") && *self.peek_at(1) == Token::LParen {
            self.skip(1);
            options = self.storage_options()?;
        }
        let named = self.take_words(&["using", "index", "tablespace"]);
        Ok((options, if named { Some(self.identifier()?) } else { None }))
    }

    pub(super) fn include(&mut self) -> Result<Vec<String>> {
        if self.take("include") { self.columns() } else { Ok(Vec::new()) }
    }

    fn references(&mut self) -> Result<References> {
        self.expect("references")?;
        let mut references = References {
            table: self.name()?,
            columns: if *self.peek() == Token::LParen { self.columns()? } else { Vec::new() },
            match_full: false,
            on_delete: ReferentialAction::NoAction,
            on_update: ReferentialAction::NoAction,
            on_delete_columns: Vec::new(),
        };
        loop {
            if self.take("match") {
                match self.label()?.as_str() {
                    "full" => references.match_full = true,
                    "simple" => {}
                    _ => return Err(SqlError::unsupported("MATCH PARTIAL")),
                }
            } else if self.take_words(&["on", "delete"]) {
                references.on_delete = self.referential_action()?;
                let set = [ReferentialAction::SetNull, ReferentialAction::SetDefault];
                if set.contains(&references.on_delete) && *self.peek() == Token::LParen {
                    references.on_delete_columns = self.columns()?;
                }
            } else if self.at_words(&["on", "update"]) {
                let position = self.position();
                self.skip(2);
                references.on_update = self.referential_action()?;
                let what = match references.on_update {
                    ReferentialAction::SetNull => "SET NULL",
                    ReferentialAction::SetDefault => "SET DEFAULT",
                    _ => continue,
                };
                if *self.peek() == Token::LParen {
                    let message =
                        format!("a column list with {what} is only supported for ON DELETE actions");
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(Some(position)));
                }
            } else {
                return Ok(references);
            }
        }
    }

    fn referential_action(&mut self) -> Result<ReferentialAction> {
        if self.take_words(&["no", "action"]) {
            Ok(ReferentialAction::NoAction)
        } else if self.take("restrict") {
            Ok(ReferentialAction::Restrict)
        } else if self.take("cascade") {
            Ok(ReferentialAction::Cascade)
        } else if self.take_words(&["set", "null"]) {
            Ok(ReferentialAction::SetNull)
        } else if self.take_words(&["set", "default"]) {
            Ok(ReferentialAction::SetDefault)
        } else {
            Err(self.unexpected())
        }
    }

    /// The columns SET NULL or SET DEFAULT is limited to.
    fn deferrable(&mut self) -> Result<Deferrable> {
        let mut deferrable = Deferrable::default();
        loop {
            if self.take("deferrable") {
                deferrable.deferrable = true;
            } else if self.take_words(&["not", "deferrable"]) {
                deferrable.deferrable = false;
            } else if self.take_words(&["initially", "deferred"]) {
                deferrable = Deferrable { deferrable: true, initially_deferred: true };
            } else if self.take_words(&["initially", "immediate"]) {
                deferrable.initially_deferred = false;
            } else {
                return Ok(deferrable);
            }
        }
    }

    /// A table constraint, if one begins here.
    pub(super) fn table_constraint(&mut self) -> Result<Option<TableConstraint>> {
        let position = self.position();
        let name = if self.take("constraint") { Some(self.identifier()?) } else { None };
        let kind = match self.word_at(0).as_str() {
            "primary" => {
                self.skip(1);
                self.expect("key")?;
                if self.take_words(&["using", "index"]) {
                    TableConstraintKind::UsingIndex { primary: true, index: self.identifier()? }
                } else {
                    TableConstraintKind::PrimaryKey { columns: self.columns()?, include: self.include()? }
                }
            }
            "unique" => {
                self.skip(1);
                if self.take_words(&["using", "index"]) {
                    TableConstraintKind::UsingIndex { primary: false, index: self.identifier()? }
                } else {
                    let nulls_not_distinct = self.nulls_not_distinct()?;
                    TableConstraintKind::Unique {
                        columns: self.columns()?,
                        include: self.include()?,
                        nulls_not_distinct,
                    }
                }
            }
            "check" => {
                self.skip(1);
                TableConstraintKind::Check(self.parenthesized_expression()?)
            }
            "foreign" => {
                self.skip(1);
                self.expect("key")?;
                TableConstraintKind::ForeignKey { columns: self.columns()?, references: self.references()? }
            }
            "exclude" => {
                self.skip(1);
                self.skip_exclusion();
                TableConstraintKind::Exclude
            }
            _ if name.is_some() => return Err(self.unexpected()),
            _ => return Ok(None),
        };
        let (options, tablespace) = match kind {
            TableConstraintKind::PrimaryKey { .. }
            | TableConstraintKind::Unique { .. }
            | TableConstraintKind::Exclude => self.index_parameters()?,
            _ => (Options::new(), None),
        };
        let (deferrable, not_valid, no_inherit) = self.constraint_attributes()?;
        Ok(Some(TableConstraint {
            name,
            position,
            kind,
            deferrable,
            not_valid,
            no_inherit,
            options,
            tablespace,
        }))
    }

    /// DEFERRABLE and the like, NOT VALID, NO INHERIT, in any order.
    fn constraint_attributes(&mut self) -> Result<(Deferrable, bool, bool)> {
        let (mut not_valid, mut no_inherit) = (false, false);
        let mut deferrable = self.deferrable()?;
        loop {
            if self.take_words(&["not", "valid"]) {
                not_valid = true;
            } else if self.take_words(&["no", "inherit"]) {
                no_inherit = true;
            } else {
                return Ok((deferrable, not_valid, no_inherit));
            }
            let again = self.deferrable()?;
            if again.deferrable {
                deferrable = again;
            }
        }
    }

    /// EXCLUDE … ( … ): up to the end of this element of the list.
    fn skip_exclusion(&mut self) {
        let mut depth = 0_u32;
        loop {
            match self.peek() {
                Token::EOF | Token::SemiColon => return,
                Token::Comma | Token::RParen if depth == 0 => return,
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            self.skip(1);
        }
    }

    /// After ALTER TABLE | INDEX | SEQUENCE.
    pub(super) fn alter_table(&mut self, object: AlteredObject) -> Result<Statement> {
        let if_exists = self.take_if_exists();
        if self.at("all") {
            return Ok(self.refuse("ALTER … ALL IN TABLESPACE"));
        }
        let only = self.take("only");
        let name = self.name()?;
        self.take_token(&Token::Mul);
        if object == AlteredObject::Sequence && !self.at("rename") && !self.at("owner") && !self.at("set") {
            let options = self.sequence_options()?;
            return Ok(Statement::AlterSequence(AlterSequence { name, if_exists, options }));
        }
        let actions = self.list(Self::alter_action)?;
        Ok(Statement::AlterTable(Box::new(AlterTable { object, name, if_exists, only, actions })))
    }

    fn alter_action(&mut self) -> Result<AlterTableAction> {
        let action = match self.word_at(0).as_str() {
            "add" => {
                self.skip(1);
                if let Some(constraint) = self.table_constraint()? {
                    return Ok(AlterTableAction::AddConstraint(constraint));
                }
                self.take("column");
                let if_not_exists = self.take_if_not_exists();
                AlterTableAction::AddColumn { column: self.column_definition()?, if_not_exists }
            }
            "drop" => {
                self.skip(1);
                self.drop_part()?
            }
            "alter" => {
                self.skip(1);
                self.alter_column()?
            }
            "rename" => {
                self.skip(1);
                self.rename_part()?
            }
            "owner" => {
                self.skip(1);
                self.expect("to")?;
                AlterTableAction::OwnerTo(self.role()?)
            }
            "set" if self.word_at(1) == "schema" => {
                self.skip(2);
                AlterTableAction::SetSchema(self.identifier()?)
            }
            "set" if self.word_at(1) == "tablespace" => {
                self.skip(2);
                AlterTableAction::SetTablespace(self.identifier()?)
            }
            "set" if self.at_words(&["set", "access", "method"]) => {
                self.skip(3);
                AlterTableAction::SetAccessMethod(self.identifier()?)
            }
            "set" | "reset" if *self.peek_at(1) == Token::LParen => {
                let resets = self.at("reset");
                self.skip(1);
                let options = self.storage_options()?;
                if resets {
                    AlterTableAction::ResetOptions(options)
                } else {
                    AlterTableAction::SetOptions(options)
                }
            }
            "validate" if self.word_at(1) == "constraint" => {
                self.skip(2);
                AlterTableAction::ValidateConstraint(self.identifier()?)
            }
            "enable" | "disable" if self.word_at(1) == "trigger" => self.trigger_switch()?,
            "enable"
                if matches!(self.word_at(1).as_str(), "always" | "replica")
                    && self.word_at(2) == "trigger" =>
            {
                let always = self.word_at(1) == "always";
                self.skip(3);
                let firing = if always { TriggerFiring::Always } else { TriggerFiring::Replica };
                AlterTableAction::SetTrigger { which: WhichTriggers::Named(self.identifier()?), firing }
            }
            "enable" | "disable" | "force" | "no" if self.at_row_security() => self.row_security_switch(),
            "set" if matches!(self.word_at(1).as_str(), "logged" | "unlogged") => {
                let unlogged = self.word_at(1) == "unlogged";
                self.skip(2);
                AlterTableAction::SetPersistence(if unlogged {
                    Persistence::Unlogged
                } else {
                    Persistence::Permanent
                })
            }
            "replica" => {
                self.skip(1);
                self.expect("identity")?;
                AlterTableAction::ReplicaIdentity(self.replica_identity()?)
            }
            "attach" if self.word_at(1) == "partition" => {
                self.skip(2);
                self.attach_partition()?
            }
            "detach" if self.word_at(1) == "partition" => {
                self.skip(2);
                self.detach_partition()?
            }
            "inherit" => {
                self.skip(1);
                AlterTableAction::Inherit(self.name()?)
            }
            "no" if self.word_at(1) == "inherit" => {
                self.skip(2);
                AlterTableAction::NoInherit(self.name()?)
            }
            "set" | "reset" | "enable" | "disable" | "cluster" | "validate" | "no" | "of" | "not"
            | "force" | "depends" => AlterTableAction::Unsupported(self.action_words()),
            _ => return Err(self.unexpected()),
        };
        Ok(action)
    }

    fn drop_part(&mut self) -> Result<AlterTableAction> {
        let constraint = self.take("constraint");
        if !constraint {
            self.take("column");
        }
        let if_exists = self.take_if_exists();
        let name = self.identifier()?;
        let cascade = self.take_behavior();
        Ok(match constraint {
            true => AlterTableAction::DropConstraint { name, if_exists, cascade },
            false => AlterTableAction::DropColumn { column: name, if_exists, cascade },
        })
    }

    /// ENABLE | DISABLE TRIGGER.
    fn trigger_switch(&mut self) -> Result<AlterTableAction> {
        let firing = if self.at("enable") { TriggerFiring::Origin } else { TriggerFiring::Never };
        self.skip(2);
        let word = self.word_at(0);
        let name = self.label()?;
        let which = match word.as_str() {
            "all" => WhichTriggers::All,
            "user" => WhichTriggers::User,
            _ => WhichTriggers::Named(name),
        };
        Ok(AlterTableAction::SetTrigger { which, firing })
    }

    fn replica_identity(&mut self) -> Result<WrittenReplicaIdentity> {
        if self.take_words(&["using", "index"]) {
            return Ok(WrittenReplicaIdentity::Index(self.identifier()?));
        }
        for (word, identity) in [
            ("default", WrittenReplicaIdentity::Default),
            ("nothing", WrittenReplicaIdentity::Nothing),
            ("full", WrittenReplicaIdentity::Full),
        ] {
            if self.take(word) {
                return Ok(identity);
            }
        }
        Err(self.unexpected())
    }

    /// The words of an action that is not supported, in upper case up to the first name.
    pub(super) fn action_words(&mut self) -> String {
        let words: Vec<String> =
            (0..3).map(|n| self.word_at(n).to_uppercase()).take_while(|w| !w.is_empty()).collect();
        self.skip_action();
        format!("ALTER TABLE … {}", words.join(" "))
    }

    /// Up to the comma before the next action.
    pub(super) fn skip_action(&mut self) {
        let mut depth = 0_u32;
        while !self.at_end() {
            match self.peek() {
                Token::Comma if depth == 0 => return,
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.skip(1);
        }
    }

    fn rename_part(&mut self) -> Result<AlterTableAction> {
        if self.take("to") {
            return Ok(AlterTableAction::RenameTo(self.identifier()?));
        }
        if self.take("constraint") {
            let from = self.identifier()?;
            self.expect("to")?;
            return Ok(AlterTableAction::RenameConstraint { from, to: self.identifier()? });
        }
        self.take("column");
        let from = self.identifier()?;
        self.expect("to")?;
        Ok(AlterTableAction::RenameColumn { from, to: self.identifier()? })
    }
}
