//! CREATE and DROP TRIGGER.

use sqlparser::tokenizer::Token;

use crate::ast::TriggerEvent;
use crate::ast::{ConstraintTiming, CreateTrigger, DropTrigger, FiresWhen, RenameTrigger, Statement};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    /// After CREATE [OR REPLACE], at [CONSTRAINT] TRIGGER.
    pub(super) fn create_trigger(&mut self, or_replace: bool) -> Result<Statement> {
        let constraint = self.take("constraint");
        self.skip(1);
        let name = self.identifier()?;
        let fires = match self.word_at(0).as_str() {
            "before" if !constraint => FiresWhen::Before,
            "after" => FiresWhen::After,
            _ if !constraint && self.at_words(&["instead", "of"]) => FiresWhen::InsteadOf,
            _ => return Err(self.unexpected()),
        };
        self.skip(if fires == FiresWhen::InsteadOf { 2 } else { 1 });
        let (events, columns) = self.trigger_events()?;
        self.expect("on")?;
        let table = self.name()?;
        let constraint = if constraint { Some(self.trigger_timing()?) } else { None };
        if constraint.is_some() && self.at("referencing") {
            return Err(self.unexpected());
        }
        let [old_table, new_table] = self.transition_tables()?;
        let row = self.trigger_level()?;
        if constraint.is_some() && !row {
            return Err(self.unexpected());
        }
        let condition = if self.take("when") {
            self.expect_token(&Token::LParen)?;
            let condition = self.expression()?;
            self.expect_token(&Token::RParen)?;
            Some(condition)
        } else {
            None
        };
        self.expect("execute")?;
        if !self.take("function") {
            self.expect("procedure")?;
        }
        let function = self.routine_name()?;
        self.expect_token(&Token::LParen)?;
        let arguments =
            if *self.peek() == Token::RParen { Vec::new() } else { self.list(Self::trigger_argument)? };
        self.expect_token(&Token::RParen)?;
        Ok(Statement::CreateTrigger(Box::new(CreateTrigger {
            or_replace,
            name,
            fires,
            events,
            columns,
            table,
            row,
            old_table,
            new_table,
            constraint,
            condition,
            function,
            arguments,
        })))
    }

    /// `INSERT OR UPDATE [OF column, …] OR …`: the events, and the columns.
    fn trigger_events(&mut self) -> Result<(Vec<TriggerEvent>, Vec<String>)> {
        let mut events = Vec::new();
        let mut columns = Vec::new();
        loop {
            let event = match self.word_at(0).as_str() {
                "insert" => TriggerEvent::Insert,
                "delete" => TriggerEvent::Delete,
                "update" => TriggerEvent::Update,
                "truncate" => TriggerEvent::Truncate,
                _ => return Err(self.unexpected()),
            };
            if events.contains(&event) {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "duplicate trigger events specified")
                    .at(Some(self.position())));
            }
            self.skip(1);
            events.push(event);
            if event == TriggerEvent::Update && self.take("of") {
                columns = self.list(Self::identifier)?;
            }
            if !self.take("or") {
                break;
            }
        }
        Ok((events, columns))
    }

    /// `[REFERENCING OLD TABLE AS name NEW TABLE AS name]`: the old one's name and the new one's.
    fn transition_tables(&mut self) -> Result<[Option<String>; 2]> {
        let (mut old_table, mut new_table) = (None, None);
        if self.take("referencing") {
            while self.at("old") || self.at("new") {
                let old = self.take("old");
                if !old {
                    self.skip(1);
                }
                if !self.take("table") {
                    let message = "ROW variable naming in the REFERENCING clause is not supported";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                        .with_hint("Use OLD TABLE or NEW TABLE for naming transition tables."));
                }
                self.take("as");
                let name = self.identifier()?;
                let place = if old { &mut old_table } else { &mut new_table };
                if place.replace(name).is_some() {
                    let which = if old { "OLD" } else { "NEW" };
                    return Err(SqlError::new(
                        SqlState::INVALID_OBJECT_DEFINITION,
                        format!("{which} TABLE cannot be specified multiple times"),
                    ));
                }
            }
        }
        Ok([old_table, new_table])
    }

    /// `[NOT] DEFERRABLE`, `INITIALLY IMMEDIATE | DEFERRED`.
    fn trigger_timing(&mut self) -> Result<ConstraintTiming> {
        if self.at("from") {
            return Err(SqlError::unsupported("CREATE CONSTRAINT TRIGGER … FROM"));
        }
        let mut timing = ConstraintTiming::default();
        let mut refused = false;
        loop {
            let position = self.position();
            if self.take_words(&["not", "deferrable"]) {
                refused = true;
            } else if self.take("deferrable") {
                timing.deferrable = true;
            } else if self.take_words(&["initially", "deferred"]) {
                timing = ConstraintTiming { deferrable: true, initially_deferred: true };
                if refused {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
                    )
                    .at(Some(position)));
                }
            } else if !self.take_words(&["initially", "immediate"]) {
                break;
            }
        }
        Ok(timing)
    }

    /// FOR [EACH] ROW | STATEMENT; a statement's without it.
    fn trigger_level(&mut self) -> Result<bool> {
        if !self.take("for") {
            return Ok(false);
        }
        self.take("each");
        if self.take("row") {
            return Ok(true);
        }
        self.expect("statement")?;
        Ok(false)
    }

    /// A string, a number or a word: all of them text.
    fn trigger_argument(&mut self) -> Result<String> {
        match self.peek() {
            Token::Number(text, _) => {
                let text = text.clone();
                self.skip(1);
                Ok(text)
            }
            Token::Word(_) => self.label(),
            _ => self.string(),
        }
    }

    /// After ALTER, at TRIGGER.
    pub(super) fn alter_trigger(&mut self) -> Result<Statement> {
        self.skip(1);
        let name = self.identifier()?;
        self.expect("on")?;
        let table = self.name()?;
        if !self.take_words(&["rename", "to"]) {
            return Ok(self.refuse("ALTER TRIGGER … DEPENDS ON EXTENSION"));
        }
        let new_name = self.identifier()?;
        Ok(Statement::RenameTrigger(RenameTrigger { name, table, new_name }))
    }

    /// After DROP, at TRIGGER.
    pub(super) fn drop_trigger(&mut self) -> Result<Statement> {
        self.skip(1);
        let if_exists = self.take_if_exists();
        let name = self.identifier()?;
        self.expect("on")?;
        let table = self.name()?;
        self.take_behavior();
        Ok(Statement::DropTrigger(DropTrigger { name, table, if_exists }))
    }
}

#[cfg(test)]
mod tests {
    use crate::ast::TriggerEvent;
    use crate::ast::{AlterTableAction, FiresWhen, Statement, TriggerFiring, WhichTriggers};
    use crate::parser::{parse, parse_statement};

    fn parsed(text: &str) -> Statement {
        match parse_statement(text) {
            Ok(statement) => statement,
            Err(error) => panic!("{text}: {error:?}"),
        }
    }

    #[test]
    fn every_clause_has_its_place() {
        let Statement::CreateTrigger(trigger) = parsed(
            "create or replace trigger \"T\" before update of a, b or insert on s.t for each row \
             when (new.a is distinct from old.a) execute procedure f('x', 7, word)",
        ) else {
            panic!("a trigger");
        };
        assert!(trigger.or_replace && trigger.fires == FiresWhen::Before && trigger.row);
        assert_eq!(trigger.name, "T");
        assert_eq!(trigger.events, [TriggerEvent::Update, TriggerEvent::Insert]);
        assert_eq!(trigger.columns, ["a", "b"]);
        assert_eq!(trigger.table.to_string(), "s.t");
        assert_eq!(trigger.condition.unwrap().text, "new.a is distinct from old.a");
        assert_eq!(trigger.arguments, ["x", "7", "word"]);
        let plain = parsed("create trigger t after delete on u execute function f()");
        assert!(
            matches!(plain, Statement::CreateTrigger(t) if !t.row && t.fires == FiresWhen::After && t.condition.is_none())
        );
        let dropped = parsed("drop trigger if exists t on u cascade");
        assert!(matches!(dropped, Statement::DropTrigger(drop) if drop.if_exists && drop.name == "t"));
        let view =
            parsed("create trigger t instead of insert or update on v for each row execute function f()");
        assert!(
            matches!(view, Statement::CreateTrigger(t) if t.fires == FiresWhen::InsteadOf && t.events.len() == 2)
        );
        let tables = parsed(
            "create trigger t after update on u referencing old table o new table as n execute function f()",
        );
        assert!(matches!(&tables, Statement::CreateTrigger(t)
            if t.old_table.as_deref() == Some("o") && t.new_table.as_deref() == Some("n") && !t.row));
        let constraint = parsed(
            "create constraint trigger t after insert on u initially deferred for each row execute function f()",
        );
        assert!(matches!(constraint, Statement::CreateTrigger(t)
            if t.constraint.is_some_and(|timing| timing.deferrable && timing.initially_deferred)));
        for text in [
            "create trigger t before on u execute function f()",
            "create trigger t before insert or insert on u execute function f()",
            "create trigger t before insert on u for each table execute function f()",
            "create trigger t before insert on u execute f()",
            "create constraint trigger t before insert on u for each row execute function f()",
            "create constraint trigger t after insert on u execute function f()",
            "create constraint trigger t after insert on u not deferrable initially deferred for each row execute function f()",
            "drop trigger t",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let actions = |text| match parsed(text) {
            Statement::AlterTable(alter) => alter.actions.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            actions("alter table t disable trigger all, enable trigger x"),
            [
                AlterTableAction::SetTrigger { which: WhichTriggers::All, firing: TriggerFiring::Never },
                AlterTableAction::SetTrigger {
                    which: WhichTriggers::Named("x".to_string()),
                    firing: TriggerFiring::Origin
                },
            ]
        );
    }
}
