//! CREATE, ALTER and DROP POLICY, and ALTER TABLE … ROW LEVEL SECURITY.

use sqlparser::tokenizer::Token;

use crate::ast::{
    AlterPolicy, AlterTableAction, CreatePolicy, DropPolicy, Expression, PolicyCommand, RenamePolicy,
    Statement,
};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    /// After CREATE, at POLICY.
    pub(super) fn create_policy(&mut self) -> Result<Statement> {
        self.skip(1);
        let name = self.identifier()?;
        self.expect("on")?;
        let table = self.name()?;
        let permissive = self.policy_mode()?;
        let command = self.policy_command()?;
        let roles = if self.take("to") { self.list(Self::role)? } else { Vec::new() };
        let (using, check) = self.policy_conditions()?;
        Ok(Statement::CreatePolicy(Box::new(CreatePolicy {
            name,
            table,
            permissive,
            command,
            roles,
            using,
            check,
        })))
    }

    /// `[AS PERMISSIVE | RESTRICTIVE]`.
    fn policy_mode(&mut self) -> Result<bool> {
        if !self.take("as") {
            return Ok(true);
        }
        let position = self.position();
        match self.identifier()?.as_str() {
            "permissive" => Ok(true),
            "restrictive" => Ok(false),
            other => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("unrecognized row security option \"{other}\""),
            )
            .with_hint("Only PERMISSIVE or RESTRICTIVE policies are supported currently.")
            .at(Some(position))),
        }
    }

    /// `[FOR ALL | SELECT | …]`.
    fn policy_command(&mut self) -> Result<PolicyCommand> {
        if !self.take("for") {
            return Ok(PolicyCommand::All);
        }
        let command = match self.word_at(0).as_str() {
            "all" => PolicyCommand::All,
            "select" => PolicyCommand::Select,
            "insert" => PolicyCommand::Insert,
            "update" => PolicyCommand::Update,
            "delete" => PolicyCommand::Delete,
            _ => return Err(self.unexpected()),
        };
        self.skip(1);
        Ok(command)
    }

    /// `[USING (…)] [WITH CHECK (…)]`.
    fn policy_conditions(&mut self) -> Result<(Option<Expression>, Option<Expression>)> {
        let using = if self.take("using") { Some(self.policy_condition()?) } else { None };
        let check = if self.take_words(&["with", "check"]) { Some(self.policy_condition()?) } else { None };
        Ok((using, check))
    }

    fn policy_condition(&mut self) -> Result<Expression> {
        self.expect_token(&Token::LParen)?;
        let condition = self.expression()?;
        self.expect_token(&Token::RParen)?;
        Ok(condition)
    }

    /// After ALTER, at POLICY.
    pub(super) fn alter_policy(&mut self) -> Result<Statement> {
        self.skip(1);
        let if_exists = self.take_if_exists();
        let name = self.identifier()?;
        self.expect("on")?;
        let table = self.name()?;
        if self.take_words(&["rename", "to"]) {
            let new_name = self.identifier()?;
            return Ok(Statement::RenamePolicy(RenamePolicy { name, table, new_name }));
        }
        if if_exists {
            return Err(self.unexpected());
        }
        let roles = if self.take("to") { Some(self.list(Self::role)?) } else { None };
        let (using, check) = self.policy_conditions()?;
        Ok(Statement::AlterPolicy(Box::new(AlterPolicy { name, table, roles, using, check })))
    }

    /// After DROP, at POLICY.
    pub(super) fn drop_policy(&mut self) -> Result<Statement> {
        self.skip(1);
        let if_exists = self.take_if_exists();
        let name = self.identifier()?;
        self.expect("on")?;
        let table = self.name()?;
        self.take_behavior();
        Ok(Statement::DropPolicy(DropPolicy { name, table, if_exists }))
    }

    /// Whether `[ENABLE | DISABLE | FORCE | NO FORCE] ROW LEVEL SECURITY` follows.
    pub(super) fn at_row_security(&self) -> bool {
        let ahead = if self.at("no") { 2 } else { 1 };
        let words = ["row", "level", "security"];
        let follows = (0..).zip(words).all(|(place, word)| self.word_at(ahead + place) == word);
        follows && (ahead == 1 || self.word_at(1) == "force")
    }

    pub(super) fn row_security_switch(&mut self) -> AlterTableAction {
        let action = match self.word_at(0).as_str() {
            "enable" => AlterTableAction::RowSecurity(true),
            "disable" => AlterTableAction::RowSecurity(false),
            "force" => AlterTableAction::ForceRowSecurity(true),
            _ => AlterTableAction::ForceRowSecurity(false),
        };
        self.skip(if self.at("no") { 5 } else { 4 });
        action
    }
}

#[cfg(test)]
mod tests {
    use crate::ast::{PolicyCommand, RoleName, Statement};
    use crate::parser::parse_statement;

    #[test]
    fn every_clause_has_its_place() {
        let text =
            "create policy p on s.t as restrictive for update to public, a using (x = 1) with check (y)";
        let Ok(Statement::CreatePolicy(policy)) = parse_statement(text) else { panic!("a policy") };
        assert!(!policy.permissive && policy.command == PolicyCommand::Update);
        assert_eq!(policy.roles, [RoleName::Public, RoleName::Name("a".to_owned())]);
        assert_eq!(policy.using.map(|using| using.text).as_deref(), Some("x = 1"));
        assert_eq!(policy.check.map(|check| check.text).as_deref(), Some("y"));
        for text in [
            "create policy p on t as ugly using (true)",
            "create policy p on t for truncate using (true)",
            "create policy p on t using true",
            "alter policy if exists p on t using (true)",
            "drop policy p",
        ] {
            assert!(parse_statement(text).is_err(), "{text}");
        }
    }
}
