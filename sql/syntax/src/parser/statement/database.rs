//! CREATE, ALTER and DROP DATABASE, and the settings of databases and of roles in them.

use archipel_types::keyword::{self, Category};
use sqlparser::tokenizer::Token;

use crate::ast::{
    AlterDatabase, AlterRoleSetting, CreateDatabase, DatabaseAction, DatabaseOption, DropDatabase,
    OptionValue, RoleName, SettingChange, Statement,
};
use crate::error::Result;

use crate::parser::cursor::Cursor;

/// Words of the grammar that name options all the same (createdb_opt_name).
const OPTION_WORDS: [&str; 5] = ["encoding", "location", "owner", "tablespace", "template"];

impl Cursor<'_> {
    /// After CREATE, at DATABASE.
    pub(super) fn create_database(&mut self) -> Result<Statement> {
        self.skip(1);
        let name = self.identifier()?;
        self.take("with");
        let options = self.database_options()?;
        Ok(Statement::CreateDatabase(CreateDatabase { name, options }))
    }

    /// After ALTER, at DATABASE.
    pub(super) fn alter_database(&mut self) -> Result<Statement> {
        self.skip(1);
        let name = self.identifier()?;
        let names_tablespace = self.at_words(&["set", "tablespace"])
            && matches!(self.peek_at(2), Token::Word(_))
            && !matches!(self.word_at(2).as_str(), "to" | "from");
        let action = if self.take("rename") {
            self.expect("to")?;
            DatabaseAction::RenameTo(self.identifier()?)
        } else if self.take_words(&["owner", "to"]) {
            DatabaseAction::OwnerTo(self.role()?)
        } else if self.take("refresh") {
            self.expect("collation")?;
            self.expect("version")?;
            DatabaseAction::RefreshCollationVersion
        } else if names_tablespace {
            self.skip(2);
            DatabaseAction::SetTablespace(self.identifier()?)
        } else if self.at("set") || self.at("reset") {
            DatabaseAction::Setting(self.setting_change()?)
        } else {
            self.take("with");
            DatabaseAction::Options(self.database_options()?)
        };
        Ok(Statement::AlterDatabase(AlterDatabase { name, action }))
    }

    /// After DROP, at DATABASE.
    pub(super) fn drop_database(&mut self) -> Result<Statement> {
        self.skip(1);
        let if_exists = self.take_if_exists();
        let name = self.identifier()?;
        let force = self.take("with") || *self.peek() == Token::LParen;
        if force {
            self.parenthesized(|cursor| cursor.expect("force"))?;
        }
        Ok(Statement::DropDatabase(DropDatabase { name, if_exists, force }))
    }

    /// After ALTER ROLE and the role, which is `None` for ALL: `[IN DATABASE name]` and what changes.
    pub(super) fn alter_role_setting(&mut self, role: Option<RoleName>) -> Result<Statement> {
        let database = if self.take("in") {
            self.expect("database")?;
            Some(self.identifier()?)
        } else {
            None
        };
        let change = self.setting_change()?;
        Ok(Statement::AlterRoleSetting(AlterRoleSetting { role, database, change }))
    }

    /// SET of a setting, RESET of one or of all (SetResetClause).
    pub(super) fn setting_change(&mut self) -> Result<SettingChange> {
        if self.take("set") {
            return self.set_clause(false).map(SettingChange::Set);
        }
        self.expect("reset")?;
        if self.take("all") {
            Ok(SettingChange::ResetAll)
        } else {
            self.setting_or_phrase().map(SettingChange::Reset)
        }
    }

    fn database_options(&mut self) -> Result<Vec<DatabaseOption>> {
        let mut options = Vec::new();
        while !self.at_end() {
            let position = self.position();
            let name = self.database_option_name()?;
            self.take_token(&Token::Eq);
            options.push(DatabaseOption { name, value: self.option_value()?, position });
        }
        Ok(options)
    }

    /// A word that the grammar does not know, or one of [`OPTION_WORDS`].
    fn database_option_name(&mut self) -> Result<String> {
        if self.take("connection") {
            self.expect("limit")?;
            return Ok("connection_limit".to_owned());
        }
        let word = self.word_at(0);
        if keyword::keyword(&word).is_some() && !OPTION_WORDS.contains(&word.as_str()) {
            return Err(self.unexpected());
        }
        self.label()
    }

    /// DEFAULT, a number, a string, or a word that is not reserved but for TRUE, FALSE and ON.
    fn option_value(&mut self) -> Result<OptionValue> {
        if matches!(self.peek(), Token::Number(..) | Token::Minus | Token::Plus) {
            let number = self.signed_number()?;
            return Ok(number.parse().map_or(OptionValue::Number(number), OptionValue::Integer));
        }
        if self.take("default") {
            return Ok(OptionValue::Default);
        }
        if !matches!(self.peek(), Token::Word(_)) {
            return self.string().map(OptionValue::Text);
        }
        let word = self.word_at(0);
        let is_reserved = keyword::keyword(&word).is_some_and(|known| known.category == Category::Reserved);
        if is_reserved && !matches!(word.as_str(), "true" | "false" | "on") {
            return Err(self.unexpected());
        }
        self.label().map(OptionValue::Text)
    }
}
