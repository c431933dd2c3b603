//! Settings, prepared statements, EXPLAIN, cursors, notifications, locks and maintenance.

use sqlparser::tokenizer::Token;

use crate::ast::{
    DeclareCursor, DiscardTarget, Execute, Explain, ExplainFormat, ExplainOptions, Fetch, FetchDirection,
    LockTable, Prepare, QualifiedName, Reset, Set, SetConstraints, SetValue, Show, Statement, TableLockMode,
    TransactionStatement, Vacuum,
};
use crate::error::{Result, SqlError, SqlState};
use crate::style::IntervalStyle;

use crate::parser::cursor::Cursor;
use crate::parser::lexer::lexeme::string_value;

/// Names are cut to so many bytes (NAMEDATALEN).
const IDENTIFIER_BYTES_MAX: usize = 63;

impl Cursor<'_> {
    pub(in crate::parser) fn set(&mut self) -> Result<Statement> {
        self.skip(1);
        if self.take("transaction") {
            return self.set_transaction(false);
        }
        if self.take_words(&["session", "characteristics", "as", "transaction"]) {
            return self.set_transaction(true);
        }
        if self.at("constraints") {
            return self.set_constraints();
        }
        let local = self.take("local");
        if !local && self.at("session") && self.word_at(1) != "authorization" {
            self.skip(1);
        }
        if local && self.take("transaction") {
            return self.set_transaction(false);
        }
        self.set_clause(local).map(Statement::Set)
    }

    /// A setting's name: `a` or `a.b`.
    pub(super) fn setting_name(&mut self) -> Result<String> {
        let mut name = self.identifier()?;
        while self.take_token(&Token::Period) {
            name = format!("{name}.{}", self.label()?);
        }
        Ok(name)
    }

    /// After SET [SESSION | LOCAL]: `name TO value` and the spellings of the standard.
    pub(super) fn set_clause(&mut self, local: bool) -> Result<Set> {
        let value = |text: String| SetValue::List(vec![text]);
        if self.take_words(&["time", "zone"]) {
            return Ok(Set { local, name: "timezone".into(), value: self.time_zone()? });
        }
        if self.take_words(&["session", "authorization"]) {
            let value = if self.take("default") { SetValue::Default } else { value(self.word_or_literal()?) };
            return Ok(Set { local, name: "session_authorization".into(), value });
        }
        for (word, name) in
            [("names", "client_encoding"), ("schema", "search_path"), ("role", "role"), ("catalog", "")]
        {
            let plain = !matches!(self.peek_at(1), Token::Eq | Token::Period) && self.word_at(1) != "to";
            if plain && self.take(word) {
                if name.is_empty() {
                    return Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "current database cannot be changed",
                    )
                    .at(Some(self.position())));
                }
                let missing = self.at_end() && name == "client_encoding";
                let value = if missing || self.take("default") {
                    SetValue::Default
                } else if name == "client_encoding" {
                    value(self.string()?)
                } else {
                    value(self.word_or_literal()?)
                };
                return Ok(Set { local, name: name.into(), value });
            }
        }
        let name = self.setting_name()?;
        if self.take_words(&["from", "current"]) {
            return Ok(Set { local, name, value: SetValue::Current });
        }
        if !self.take_token(&Token::Eq) {
            self.expect("to")?;
        }
        if self.take("default") {
            return Ok(Set { local, name, value: SetValue::Default });
        }
        let items = self.list(Self::setting_item)?;
        Ok(Set { local, name, value: SetValue::List(items) })
    }

    fn word_or_literal(&mut self) -> Result<String> {
        if matches!(self.peek(), Token::Word(_)) { self.label() } else { self.string() }
    }

    /// A word, a string or a number.
    fn setting_item(&mut self) -> Result<String> {
        match self.peek() {
            Token::Number(..) | Token::Minus | Token::Plus => self.signed_number(),
            Token::Word(_) => {
                let word = self.label()?;
                // `SET x TO interval '1 day'` and the like take the literal.
                if word == "interval" && string_value(self.peek()).is_some() {
                    return self.string();
                }
                Ok(word)
            }
            _ => self.string(),
        }
    }

    pub(super) fn signed_number(&mut self) -> Result<String> {
        let negative = self.take_token(&Token::Minus);
        if !negative {
            self.take_token(&Token::Plus);
        }
        let Token::Number(digits, _) = self.peek() else {
            return Err(self.unexpected());
        };
        let text = if negative { format!("-{digits}") } else { digits.clone() };
        self.skip(1);
        Ok(text)
    }

    fn time_zone(&mut self) -> Result<SetValue> {
        if self.take("local") || self.take("default") {
            return Ok(SetValue::Default);
        }
        if self.take("interval") {
            let text = self.string()?;
            // PostgreSQL's INTERVAL_MASK of HOUR, and of HOUR TO MINUTE.
            let fields = match self.take("hour") {
                true if self.take_words(&["to", "minute"]) => 0xc00,
                true => 0x400,
                false => 0,
            };
            let interval = crate::datetime::parse_interval(&text, fields, IntervalStyle::Postgres)?;
            if interval.months != 0 || interval.days != 0 {
                let mut shown = String::new();
                let _ = crate::datetime::format_interval(&interval, IntervalStyle::Postgres, &mut shown);
                let message = format!("invalid value for parameter \"TimeZone\": \"INTERVAL '{shown}'\"");
                let what = if interval.months != 0 { "months" } else { "days" };
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                    .with_detail(format!("Cannot specify {what} in time zone interval.")));
            }
            let east = interval.microseconds / crate::datetime::MICROS_PER_SECOND;
            return Ok(SetValue::List(vec![crate::datetime::zone::offset_name(east)]));
        }
        Ok(SetValue::List(vec![self.setting_item()?]))
    }

    fn set_constraints(&mut self) -> Result<Statement> {
        self.skip(1);
        let names = if self.take("all") { None } else { Some(self.list(Self::name)?) };
        let deferred = self.take("deferred");
        if !deferred {
            self.expect("immediate")?;
        }
        Ok(Statement::SetConstraints(SetConstraints { names, deferred }))
    }

    /// RESET and SHOW name settings alike.
    pub(super) fn setting_or_phrase(&mut self) -> Result<String> {
        if self.take_words(&["time", "zone"]) {
            return Ok("timezone".into());
        }
        if self.take_words(&["transaction", "isolation", "level"]) {
            return Ok("transaction_isolation".into());
        }
        if self.take_words(&["session", "authorization"]) {
            return Ok("session_authorization".into());
        }
        self.setting_name()
    }

    pub(in crate::parser) fn reset(&mut self) -> Result<Statement> {
        self.skip(1);
        Ok(Statement::Reset(if self.take("all") {
            Reset::All
        } else {
            Reset::Name(self.setting_or_phrase()?)
        }))
    }

    pub(in crate::parser) fn show(&mut self) -> Result<Statement> {
        self.skip(1);
        Ok(Statement::Show(if self.take("all") { Show::All } else { Show::Name(self.setting_or_phrase()?) }))
    }

    pub(in crate::parser) fn prepare(&mut self) -> Result<Statement> {
        self.skip(1);
        if self.take("transaction") {
            return Ok(Statement::Transaction(TransactionStatement::Prepare(self.string()?)));
        }
        let name = self.identifier()?;
        let types =
            if *self.peek() == Token::LParen { self.parenthesized(Self::type_name)? } else { Vec::new() };
        self.expect("as")?;
        if !matches!(
            self.word_at(0).as_str(),
            "select" | "with" | "values" | "table" | "insert" | "update" | "delete" | "merge"
        ) && *self.peek() != Token::LParen
        {
            return Err(self.unexpected());
        }
        let statement = Box::new(self.nested_statement()?);
        Ok(Statement::Prepare(Prepare { name, types, statement }))
    }

    /// At EXECUTE.
    pub(in crate::parser) fn execution(&mut self) -> Result<Execute> {
        self.skip(1);
        let name = self.identifier()?;
        let args =
            if *self.peek() == Token::LParen { self.parenthesized(Self::expression)? } else { Vec::new() };
        Ok(Execute { name, args })
    }

    pub(in crate::parser) fn deallocate(&mut self) -> Result<Statement> {
        self.skip(1);
        self.take("prepare");
        Ok(Statement::Deallocate(if self.take("all") { None } else { Some(self.identifier()?) }))
    }

    pub(in crate::parser) fn explain(&mut self) -> Result<Statement> {
        self.skip(1);
        let mut options = ExplainOptions::default();
        // A parenthesis may open options or a query.
        let names_option = match self.peek_at(1) {
            Token::Word(word) if word.quote_style.is_some() => true,
            _ => !matches!(self.word_at(1).as_str(), "" | "select" | "with" | "values" | "table"),
        };
        if *self.peek() == Token::LParen && names_option {
            self.parenthesized(|cursor| cursor.explain_option(&mut options))?;
            for (name, option) in [("WAL", options.wal), ("TIMING", options.timing)] {
                if option == Some(true) && !options.analyze {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("EXPLAIN option {name} requires ANALYZE"),
                    ));
                }
            }
        } else {
            options.analyze = self.take("analyze") || self.take("analyse");
            options.verbose = self.take("verbose");
        }
        let explainable = matches!(
            self.word_at(0).as_str(),
            "select"
                | "with"
                | "values"
                | "table"
                | "insert"
                | "update"
                | "delete"
                | "merge"
                | "call"
                | "execute"
                | "declare"
                | "create"
        );
        if !explainable && *self.peek() != Token::LParen {
            return Err(self.unexpected());
        }
        let makes_table = matches!(
            self.word_at(1).as_str(),
            "table" | "temporary" | "temp" | "local" | "global" | "unlogged" | "materialized"
        );
        if self.at("create") && !makes_table {
            self.skip(1);
            return Err(self.unexpected());
        }
        let statement = Box::new(self.nested_statement()?);
        Ok(Statement::Explain(Explain { options, statement }))
    }

    fn explain_option(&mut self, options: &mut ExplainOptions) -> Result<()> {
        let position = self.position();
        let name = self.label()?;
        match name.as_str() {
            "analyze" | "analyse" => options.analyze = self.option_boolean(&name)?,
            "verbose" => options.verbose = self.option_boolean(&name)?,
            "costs" => options.costs = Some(self.option_boolean(&name)?),
            "buffers" => options.buffers = Some(self.option_boolean(&name)?),
            "timing" => options.timing = Some(self.option_boolean(&name)?),
            "summary" => options.summary = Some(self.option_boolean(&name)?),
            "settings" => options.settings = Some(self.option_boolean(&name)?),
            "wal" => options.wal = Some(self.option_boolean(&name)?),
            "format" => {
                if matches!(self.peek(), Token::Comma | Token::RParen) {
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, "format requires a parameter"));
                }
                let format = self.setting_item()?;
                options.format = match format.as_str() {
                    "text" => ExplainFormat::Text,
                    "json" => ExplainFormat::Json,
                    "xml" => ExplainFormat::Xml,
                    "yaml" => ExplainFormat::Yaml,
                    "dot" => ExplainFormat::Dot,
                    _ => {
                        return Err(SqlError::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            format!("unrecognized value for EXPLAIN option \"format\": \"{format}\""),
                        )
                        .at(Some(position)));
                    }
                };
            }
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("unrecognized EXPLAIN option \"{name}\""),
                )
                .at(Some(position)));
            }
        }
        Ok(())
    }

    pub(in crate::parser) fn declare(&mut self) -> Result<Statement> {
        self.skip(1);
        let name = self.identifier()?;
        let (mut binary, mut insensitive, mut scroll) = (false, false, None);
        loop {
            if self.take("binary") {
                binary = true;
            } else if self.take("insensitive") {
                insensitive = true;
            } else if self.take("asensitive") {
                insensitive = false;
            } else if self.take("scroll") {
                scroll = Some(true);
            } else if self.take_words(&["no", "scroll"]) {
                scroll = Some(false);
            } else {
                break;
            }
        }
        self.expect("cursor")?;
        let hold = self.take_words(&["with", "hold"]);
        if !hold {
            self.take_words(&["without", "hold"]);
        }
        self.expect("for")?;
        self.refuse_into()?;
        let (start, before) = (self.byte(), self.characters_before());
        let query = self.query()?;
        let text = self.since(start).to_string();
        Ok(Statement::DeclareCursor(DeclareCursor {
            name,
            binary,
            insensitive,
            scroll,
            hold,
            query,
            text,
            before,
        }))
    }

    pub(in crate::parser) fn fetch(&mut self) -> Result<Statement> {
        let move_only = self.at("move");
        self.skip(1);
        let direction = self.fetch_direction()?;
        if !self.take("from") {
            self.take("in");
        }
        Ok(Statement::Fetch(Fetch { move_only, direction, cursor: self.identifier()? }))
    }

    fn fetch_direction(&mut self) -> Result<FetchDirection> {
        let count = |cursor: &mut Self| -> Result<i64> {
            if cursor.take("all") {
                Ok(i64::MAX)
            } else if matches!(cursor.peek(), Token::Number(..) | Token::Minus | Token::Plus) {
                cursor.integer()
            } else {
                Ok(1)
            }
        };
        // A cursor may be named `next`: a direction is followed by FROM, IN or the name.
        let direction_word = !matches!(self.peek_at(1), Token::EOF | Token::SemiColon);
        let direction = match self.word_at(0).as_str() {
            "next" if direction_word => {
                self.skip(1);
                FetchDirection::Forward(1)
            }
            "prior" if direction_word => {
                self.skip(1);
                FetchDirection::Backward(1)
            }
            "first" if direction_word => {
                self.skip(1);
                FetchDirection::Absolute(1)
            }
            "last" if direction_word => {
                self.skip(1);
                FetchDirection::Absolute(-1)
            }
            "absolute" if direction_word => {
                self.skip(1);
                FetchDirection::Absolute(self.integer()?)
            }
            "relative" if direction_word => {
                self.skip(1);
                FetchDirection::Relative(self.integer()?)
            }
            "forward" if direction_word => {
                self.skip(1);
                FetchDirection::Forward(count(self)?)
            }
            "backward" if direction_word => {
                self.skip(1);
                FetchDirection::Backward(count(self)?)
            }
            _ => match count(self)? {
                negative if negative < 0 => FetchDirection::Backward(negative.saturating_neg()),
                rows => FetchDirection::Forward(rows),
            },
        };
        Ok(match direction {
            FetchDirection::Forward(rows) if rows < 0 => FetchDirection::Backward(rows.saturating_neg()),
            FetchDirection::Backward(rows) if rows < 0 => FetchDirection::Forward(rows.saturating_neg()),
            direction => direction,
        })
    }

    pub(in crate::parser) fn close(&mut self) -> Result<Statement> {
        self.skip(1);
        Ok(Statement::CloseCursor(if self.take("all") { None } else { Some(self.identifier()?) }))
    }

    pub(in crate::parser) fn discard(&mut self) -> Result<Statement> {
        self.skip(1);
        let target = match self.word_at(0).as_str() {
            "all" => DiscardTarget::All,
            "plans" => DiscardTarget::Plans,
            "sequences" => DiscardTarget::Sequences,
            "temp" | "temporary" => DiscardTarget::Temporary,
            _ => return Err(self.unexpected()),
        };
        self.skip(1);
        Ok(Statement::Discard(target))
    }

    pub(in crate::parser) fn notification(&mut self) -> Result<Statement> {
        let word = self.word_at(0);
        self.skip(1);
        if word == "unlisten" && self.take_token(&Token::Mul) {
            return Ok(Statement::Unlisten(None));
        }
        let mut channel = self.identifier()?;
        channel.truncate(channel.floor_char_boundary(IDENTIFIER_BYTES_MAX));
        Ok(match word.as_str() {
            "listen" => Statement::Listen(channel),
            "unlisten" => Statement::Unlisten(Some(channel)),
            _ => {
                let payload = if self.take_token(&Token::Comma) { Some(self.string()?) } else { None };
                Statement::Notify { channel, payload }
            }
        })
    }

    pub(in crate::parser) fn lock_table(&mut self) -> Result<Statement> {
        self.skip(1);
        self.take("table");
        let tables = self.list(|cursor| {
            cursor.take("only");
            let name = cursor.name()?;
            cursor.take_token(&Token::Mul);
            Ok(name)
        })?;
        let mut mode = TableLockMode::AccessExclusive;
        if self.take("in") {
            const MODES: [(&[&str], TableLockMode); 8] = [
                (&["access", "share"], TableLockMode::AccessShare),
                (&["access", "exclusive"], TableLockMode::AccessExclusive),
                (&["row", "share"], TableLockMode::RowShare),
                (&["row", "exclusive"], TableLockMode::RowExclusive),
                (&["share", "update", "exclusive"], TableLockMode::ShareUpdateExclusive),
                (&["share", "row", "exclusive"], TableLockMode::ShareRowExclusive),
                (&["share"], TableLockMode::Share),
                (&["exclusive"], TableLockMode::Exclusive),
            ];
            let found = MODES.iter().find(|(words, _)| self.at_words(words));
            let &(words, named) = found.ok_or_else(|| self.unexpected())?;
            self.skip(words.len());
            mode = named;
            self.expect("mode")?;
        }
        Ok(Statement::Lock(LockTable { tables, mode, nowait: self.take("nowait") }))
    }

    pub(in crate::parser) fn vacuum(&mut self) -> Result<Statement> {
        self.skip(1);
        let (mut analyzes, mut full, mut workers) = (false, false, 0);
        let (mut skips_no_page, mut takes_toast) = (false, true);
        let has_options = self.maintenance_options("VACUUM", |cursor, name, position| {
            match name {
                "analyze" | "analyse" => analyzes = cursor.option_boolean("analyze")?,
                "full" => full = cursor.option_boolean(name)?,
                "parallel" => workers = cursor.vacuum_workers(position)?,
                "disable_page_skipping" => skips_no_page = cursor.option_boolean(name)?,
                "process_toast" => takes_toast = cursor.option_boolean(name)?,
                "index_cleanup" if cursor.take("auto") => {}
                "verbose" | "skip_locked" | "freeze" | "index_cleanup" | "truncate" => {
                    cursor.option_boolean(name)?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if has_options {
            self.refuse_words(&["full", "freeze", "verbose", "analyze", "analyse"])?;
        } else {
            full = self.take("full");
            self.take("freeze");
            self.take("verbose");
            analyzes = self.take("analyze") || self.take("analyse");
        }
        let refused = match full {
            true if workers > 0 => Some("VACUUM FULL cannot be performed in parallel"),
            true if skips_no_page => Some("VACUUM option DISABLE_PAGE_SKIPPING cannot be used with FULL"),
            true if !takes_toast => Some("PROCESS_TOAST required with VACUUM FULL"),
            _ => None,
        };
        if let Some(message) = refused {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(Statement::Vacuum(Vacuum { analyzes, tables: self.maintained_tables()? }))
    }

    /// How many workers the option PARALLEL asks for, whose name stands at `position`.
    fn vacuum_workers(&mut self, position: u32) -> Result<i32> {
        let refused = |message: &str| SqlError::new(SqlState::SYNTAX_ERROR, message);
        if matches!(self.peek(), Token::Comma | Token::RParen) {
            let error = refused("parallel option requires a value between 0 and 1024");
            return Err(error.at(Some(position)));
        }
        let is_text = string_value(self.peek()).is_some();
        let written = self.setting_item()?;
        let workers = written.parse::<i32>().ok().filter(|_| !is_text);
        let workers = workers.ok_or_else(|| refused("parallel requires an integer value"))?;
        if !(0..=1024).contains(&workers) {
            let error = refused("parallel workers for vacuum must be between 0 and 1024");
            return Err(error.at(Some(position)));
        }
        Ok(workers)
    }

    pub(in crate::parser) fn analyze(&mut self) -> Result<Statement> {
        self.skip(1);
        let has_options = self.maintenance_options("ANALYZE", |cursor, name, _| {
            let is_known = matches!(name, "verbose" | "skip_locked");
            if is_known {
                cursor.option_boolean(name)?;
            }
            Ok(is_known)
        })?;
        if has_options {
            self.refuse_words(&["verbose"])?;
        } else {
            self.take("verbose");
        }
        Ok(Statement::Analyze(Vacuum { analyzes: true, tables: self.maintained_tables()? }))
    }

    /// What only a statement without options in parentheses has for options.
    fn refuse_words(&self, words: &[&str]) -> Result<()> {
        if words.contains(&self.word_at(0).as_str()) { Err(self.unexpected()) } else { Ok(()) }
    }

    /// The options of a maintenance command in parentheses; whether there are any. `read` takes the value of
    /// the one with this name, which stands at this position, and answers whether the command has such a one.
    fn maintenance_options(
        &mut self,
        command: &str,
        mut read: impl FnMut(&mut Self, &str, u32) -> Result<bool>,
    ) -> Result<bool> {
        if *self.peek() != Token::LParen {
            return Ok(false);
        }
        self.parenthesized(|cursor| {
            let position = cursor.position();
            let name = cursor.label()?;
            if read(cursor, &name, position)? {
                return Ok(());
            }
            let message = format!("unrecognized {command} option \"{name}\"");
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(position)))
        })?;
        Ok(true)
    }

    fn maintained_tables(&mut self) -> Result<Vec<(QualifiedName, Vec<String>)>> {
        if self.at_end() {
            return Ok(Vec::new());
        }
        self.list(|cursor| {
            let name = cursor.name()?;
            let columns = if *cursor.peek() == Token::LParen { cursor.columns()? } else { Vec::new() };
            Ok((name, columns))
        })
    }

    pub(in crate::parser) fn reindex(&mut self) -> Result<Statement> {
        self.skip(1);
        let mut concurrently = false;
        self.maintenance_options("REINDEX", |cursor, name, _| {
            match name {
                "concurrently" => concurrently = cursor.option_boolean(name)?,
                "verbose" => {
                    cursor.option_boolean(name)?;
                }
                "tablespace" => drop(cursor.word_or_literal()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let what = self.word_at(0);
        if !matches!(what.as_str(), "index" | "table" | "schema" | "database" | "system") {
            return Err(self.unexpected());
        }
        self.skip(1);
        concurrently |= self.take("concurrently");
        let name = if self.at_end() { None } else { Some(self.name()?) };
        Ok(Statement::Reindex { what, name, concurrently })
    }

    pub(in crate::parser) fn cluster(&mut self) -> Result<Statement> {
        self.skip(1);
        let has_options = self.maintenance_options("CLUSTER", |cursor, name, _| {
            let is_known = name == "verbose";
            if is_known {
                cursor.option_boolean(name)?;
            }
            Ok(is_known)
        })?;
        if has_options {
            self.refuse_words(&["verbose"])?;
            // They are for a table that is named.
            if self.at_end() {
                return Err(self.unexpected());
            }
        } else {
            self.take("verbose");
        }
        if self.at_end() {
            return Ok(Statement::Cluster { table: None, index: None });
        }
        let name = self.name()?;
        if self.take("using") {
            let index = self.label()?;
            return Ok(Statement::Cluster { table: Some(name), index: Some(index) });
        }
        if self.take("on") {
            // The old order: CLUSTER index ON table.
            let table = self.name()?;
            return Ok(Statement::Cluster { table: Some(table), index: Some(name.name) });
        }
        Ok(Statement::Cluster { table: Some(name), index: None })
    }
}
