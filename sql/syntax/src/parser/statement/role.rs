//! Roles, GRANT and REVOKE, ALTER DEFAULT PRIVILEGES, REASSIGN and DROP OWNED.

use sqlparser::tokenizer::Token;

use crate::ast::{
    AlterDefaultPrivileges, AlterRole, CreateRole, DropRole, Grant, GrantObjects, GrantRole,
    GrantedPrivilege, LargeObjectStatement, OwnedObjects, RoleAction, RoleName, RoleOption, RoleWord,
    SettingChange, Statement,
};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

/// 42939.
fn reserved_name(message: String, position: u32) -> SqlError {
    SqlError::new(SqlState::RESERVED_NAME, message).at(Some(position))
}

fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

impl Cursor<'_> {
    /// RoleSpec: a name, or a word for the role that is in force.
    pub(in crate::parser) fn role(&mut self) -> Result<RoleName> {
        let position = self.position();
        let quoted = matches!(self.peek(), Token::Word(word) if word.quote_style.is_some());
        match self.word_at(0).as_str() {
            "current_user" | "current_role" => {
                self.skip(1);
                return Ok(RoleName::Current);
            }
            "session_user" => {
                self.skip(1);
                return Ok(RoleName::Session);
            }
            _ => {}
        }
        let name = if quoted { self.label()? } else { self.identifier()? };
        match name.as_str() {
            "public" => Ok(RoleName::Public),
            "none" => Err(reserved_name("role name \"none\" is reserved".to_owned(), position)),
            _ => Ok(RoleName::Name(name)),
        }
    }

    /// RoleId: a name and nothing else.
    pub(super) fn role_name(&mut self) -> Result<String> {
        let position = self.position();
        let word = self.word_at(0).to_uppercase();
        match self.role()? {
            RoleName::Name(name) => Ok(name),
            RoleName::Public => Err(reserved_name("role name \"public\" is reserved".to_owned(), position)),
            RoleName::Current | RoleName::Session => {
                Err(reserved_name(format!("{word} cannot be used as a role name here"), position))
            }
        }
    }

    /// ROLE, USER or GROUP; USER MAPPING is something else.
    pub(super) fn role_word(&mut self) -> Option<RoleWord> {
        let word = match self.word_at(0).as_str() {
            "role" => RoleWord::Role,
            "user" if self.word_at(1) != "mapping" => RoleWord::User,
            "group" => RoleWord::Group,
            _ => return None,
        };
        self.skip(1);
        Some(word)
    }

    pub(super) fn create_role(&mut self, word: RoleWord) -> Result<Statement> {
        let name = RoleName::Name(self.role_name()?);
        self.take("with");
        let mut options = Vec::new();
        while !self.at_end() {
            if let Some(option) = self.role_option(true)? {
                options.push(option);
            }
        }
        Ok(Statement::CreateRole(CreateRole { word, name, options }))
    }

    /// One option; `None` for one without a meaning.
    fn role_option(&mut self, create: bool) -> Result<Option<RoleOption>> {
        use RoleOption::*;
        let position = self.position();
        let word = self.word_at(0);
        let flag: Option<RoleOption> = match word.as_str() {
            "superuser" => Some(Superuser(true)),
            "nosuperuser" => Some(Superuser(false)),
            "createdb" => Some(CreateDatabase(true)),
            "nocreatedb" => Some(CreateDatabase(false)),
            "createrole" => Some(CreateRole(true)),
            "nocreaterole" => Some(CreateRole(false)),
            "inherit" => Some(Inherit(true)),
            "noinherit" => Some(Inherit(false)),
            "login" => Some(Login(true)),
            "nologin" => Some(Login(false)),
            "replication" => Some(Replication(true)),
            "noreplication" => Some(Replication(false)),
            "bypassrls" => Some(BypassRowSecurity(true)),
            "nobypassrls" => Some(BypassRowSecurity(false)),
            _ => None,
        };
        if let Some(flag) = flag {
            self.skip(1);
            return Ok(Some(flag));
        }
        if word == "unencrypted" {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "UNENCRYPTED PASSWORD is no longer supported",
            )
            .with_hint("Remove UNENCRYPTED to store the password in encrypted form instead.")
            .at(Some(position)));
        }
        if word == "password" || (word == "encrypted" && self.word_at(1) == "password") {
            self.skip(if word == "password" { 1 } else { 2 });
            let password = if word == "password" && self.take("null") { None } else { Some(self.string()?) };
            return Ok(Some(Password(password)));
        }
        if self.take_words(&["connection", "limit"]) {
            return self.integer().map(ConnectionLimit).map(Some);
        }
        if self.take_words(&["valid", "until"]) {
            return self.string().map(ValidUntil).map(Some);
        }
        if !create {
            return Err(self.unrecognized_option());
        }
        if self.take("sysid") {
            self.integer()?;
            return Ok(None);
        }
        if self.take("admin") {
            return self.list(Self::role).map(Admins).map(Some);
        }
        if self.take("role") || self.take("user") {
            return self.list(Self::role).map(Members).map(Some);
        }
        if self.take_words(&["in", "role"]) || self.take_words(&["in", "group"]) {
            return self.list(Self::role).map(InRole).map(Some);
        }
        Err(self.unrecognized_option())
    }

    fn unrecognized_option(&self) -> SqlError {
        match self.peek() {
            Token::Word(word)
                if word.quote_style.is_none()
                    && !crate::parser::lexer::keywords::is_reserved(&word.value.to_lowercase()) =>
            {
                let message = format!("unrecognized role option \"{}\"", word.value.to_lowercase());
                syntax(&message).at(Some(self.position()))
            }
            _ => self.unexpected(),
        }
    }

    pub(super) fn alter_role(&mut self, word: RoleWord) -> Result<Statement> {
        if word != RoleWord::Group && self.take("all") {
            return self.alter_role_setting(None);
        }
        let role = self.role()?;
        if self.take_words(&["rename", "to"]) {
            let action = RoleAction::RenameTo(self.role_name()?);
            return Ok(Statement::AlterRole(AlterRole { role, action }));
        }
        if word == RoleWord::Group {
            let add = self.take("add");
            if !add {
                self.expect("drop")?;
            }
            self.expect("user")?;
            let action = RoleAction::Members { add, members: self.list(Self::role)? };
            return Ok(Statement::AlterRole(AlterRole { role, action }));
        }
        if self.at("in") {
            return self.alter_role_setting(Some(role));
        }
        let action = if self.at("set") || self.at("reset") {
            match self.setting_change()? {
                SettingChange::Set(set) => RoleAction::Set(set),
                SettingChange::Reset(name) => RoleAction::Reset(name),
                SettingChange::ResetAll => RoleAction::ResetAll,
            }
        } else {
            self.take("with");
            let mut options = Vec::new();
            while !self.at_end() {
                options.extend(self.role_option(false)?);
            }
            RoleAction::Options(options)
        };
        Ok(Statement::AlterRole(AlterRole { role, action }))
    }

    pub(super) fn drop_role(&mut self) -> Result<Statement> {
        let if_exists = self.take_if_exists();
        Ok(Statement::DropRole(DropRole { roles: self.list(Self::role)?, if_exists }))
    }

    /// REASSIGN OWNED and, after DROP, OWNED.
    pub(in crate::parser) fn owned(&mut self, reassign: bool) -> Result<Statement> {
        self.expect("owned")?;
        self.expect("by")?;
        let roles = self.list(Self::role)?;
        let to = if reassign {
            self.expect("to")?;
            Some(self.role()?)
        } else {
            None
        };
        let cascade = !reassign && self.take_behavior();
        Ok(Statement::OwnedObjects(OwnedObjects { roles, to, cascade }))
    }

    pub(in crate::parser) fn grant(&mut self) -> Result<Statement> {
        let revoke = self.at("revoke");
        self.skip(1);
        let what = if revoke { "REVOKE" } else { "GRANT" };
        if revoke && self.take_words(&["admin", "option", "for"]) {
            let roles = self.list(Self::label)?;
            return self.grant_role(true, roles, true);
        }
        let mut grant_option = revoke && self.take_words(&["grant", "option", "for"]);
        let privileges = self.privileges()?;
        if !self.take("on") {
            // Without ON it is a role that is granted.
            if matches!(self.word_at(0).as_str(), "to" | "from") && !grant_option {
                let name = |privilege: GrantedPrivilege| {
                    privilege.name.filter(|_| privilege.columns.is_empty()).ok_or_else(|| self.unexpected())
                };
                let roles = privileges.into_iter().map(name).collect::<Result<_>>()?;
                return self.grant_role(revoke, roles, false);
            }
            return Err(self.unexpected());
        }
        let Some(objects) = self.grant_objects()? else {
            return Ok(self.refuse(format!("{what} on this kind of object")));
        };
        let grantees = self.grantees(revoke)?;
        grant_option |= !revoke && self.take_words(&["with", "grant", "option"]);
        let granted_by = self.granted_by()?;
        let cascade = revoke && self.take_behavior();
        let grant = Grant { revoke, privileges, objects, grantees, grant_option, granted_by, cascade };
        Ok(match &grant.objects {
            GrantObjects::LargeObjects(objects) => {
                Statement::LargeObject(LargeObjectStatement::Access(objects.clone(), Box::new(grant)))
            }
            _ => Statement::Grant(grant),
        })
    }

    fn privileges(&mut self) -> Result<Vec<GrantedPrivilege>> {
        let columns = |cursor: &mut Self| {
            if *cursor.peek() == Token::LParen { cursor.columns() } else { Ok(Vec::new()) }
        };
        if self.take("all") {
            self.take("privileges");
            return Ok(vec![GrantedPrivilege { name: None, columns: columns(self)? }]);
        }
        self.list(|cursor| {
            let alters_system = cursor.take_words(&["alter", "system"]);
            let name = if alters_system { "alter system".to_owned() } else { cursor.label()? };
            Ok(GrantedPrivilege { name: Some(name), columns: columns(cursor)? })
        })
    }

    fn grantees(&mut self, revoke: bool) -> Result<Vec<RoleName>> {
        self.expect(if revoke { "from" } else { "to" })?;
        self.list(|cursor| {
            cursor.take("group");
            cursor.role()
        })
    }

    fn granted_by(&mut self) -> Result<Option<RoleName>> {
        if self.take_words(&["granted", "by"]) { self.role().map(Some) } else { Ok(None) }
    }

    fn grant_role(&mut self, revoke: bool, roles: Vec<String>, admin: bool) -> Result<Statement> {
        self.expect(if revoke { "from" } else { "to" })?;
        let members = self.list(Self::role)?;
        let admin = admin || (!revoke && self.take_words(&["with", "admin", "option"]));
        let granted_by = self.granted_by()?;
        let cascade = revoke && self.take_behavior();
        Ok(Statement::GrantRole(GrantRole { revoke, roles, members, admin, granted_by, cascade }))
    }

    /// A configuration parameter, with the dots in its name.
    fn parameter(&mut self) -> Result<String> {
        let mut name = self.identifier()?;
        while self.take_token(&Token::Period) {
            name = format!("{name}.{}", self.identifier()?);
        }
        Ok(name)
    }

    /// What a privilege is granted on; `None` for kinds of object that do not exist here.
    fn grant_objects(&mut self) -> Result<Option<GrantObjects>> {
        if self.take("all") {
            let word = self.word_at(0);
            if !matches!(word.as_str(), "tables" | "sequences" | "functions" | "procedures" | "routines") {
                return Err(self.unexpected());
            }
            self.skip(1);
            self.expect("in")?;
            self.expect("schema")?;
            return Ok(Some(GrantObjects::AllInSchema(word, self.list(Self::identifier)?)));
        }
        let word = self.word_at(0);
        // Tables may bear these names.
        if !matches!(self.peek_at(1), Token::Word(_)) || matches!(self.word_at(1).as_str(), "to" | "from") {
            return self.list(Self::name).map(GrantObjects::Tables).map(Some);
        }
        let objects = match word.as_str() {
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
            "language" => {
                self.skip(1);
                GrantObjects::Languages(self.list(Self::identifier)?)
            }
            "parameter" => {
                self.skip(1);
                GrantObjects::Parameters(self.list(Self::parameter)?)
            }
            "type" => {
                self.skip(1);
                GrantObjects::Types(self.list(Self::name)?)
            }
            "domain" => {
                self.skip(1);
                GrantObjects::Domains(self.list(Self::name)?)
            }
            "function" | "procedure" | "routine" => {
                let word = self.routine_word().ok_or_else(|| self.unexpected())?;
                GrantObjects::Routines(word, self.list(Self::routine_signature)?)
            }
            "large" if self.take_large_object() => GrantObjects::LargeObjects(self.list(Self::large_object)?),
            "foreign" | "large" | "tablespace" => return Ok(None),
            _ => {
                self.take("table");
                GrantObjects::Tables(self.list(Self::name)?)
            }
        };
        Ok(Some(objects))
    }

    pub(super) fn alter_default_privileges(&mut self) -> Result<Statement> {
        let (mut roles, mut schemas) = (Vec::new(), Vec::new());
        loop {
            let position = self.position();
            let (roles_said, schemas_said) = (!roles.is_empty(), !schemas.is_empty());
            let is_twice = if self.take_words(&["for", "role"]) || self.take_words(&["for", "user"]) {
                roles = self.list(Self::role)?;
                roles_said
            } else if self.take_words(&["in", "schema"]) {
                schemas = self.list(Self::identifier)?;
                schemas_said
            } else {
                break;
            };
            if is_twice {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
                return Err(error.at(Some(position)));
            }
        }
        let revoke = match self.word_at(0).as_str() {
            "grant" => false,
            "revoke" => true,
            _ => return Err(self.unexpected()),
        };
        self.skip(1);
        let mut grant_option = revoke && self.take_words(&["grant", "option", "for"]);
        let privileges = self.privileges()?;
        self.expect("on")?;
        let objects = self.word_at(0);
        if !matches!(
            objects.as_str(),
            "tables" | "sequences" | "functions" | "routines" | "types" | "schemas"
        ) {
            return Err(self.unexpected());
        }
        self.skip(1);
        let grantees = self.grantees(revoke)?;
        grant_option |= !revoke && self.take_words(&["with", "grant", "option"]);
        let cascade = revoke && self.take_behavior();
        Ok(Statement::AlterDefaultPrivileges(AlterDefaultPrivileges {
            roles,
            schemas,
            revoke,
            privileges,
            objects,
            grantees,
            grant_option,
            cascade,
        }))
    }
}
