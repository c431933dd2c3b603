//! Relations made from queries or from other tables: CREATE TABLE AS, SELECT INTO, LIKE, CREATE
//! VIEW.

use sqlparser::tokenizer::Token;

use crate::ast::{CheckOption, OnCommit, Persistence};
use crate::ast::{CreateTableAs, CreateView, QualifiedName, RowSource, Statement, TableLike};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::quote_identifier;

use crate::parser::cursor::Cursor;
use crate::parser::lexer::lexeme::is_word;

impl Cursor<'_> {
    /// Whether what follows a table's name is `[(names)] [USING …] [WITH …] AS`.
    pub(super) fn is_table_as(&self) -> bool {
        if self.at("as") || self.at_words(&["on", "commit"]) {
            return true;
        }
        if *self.peek() != Token::LParen {
            return self.at("using") || self.at("with") || self.at("tablespace");
        }
        let mut ahead = 1;
        loop {
            match (self.peek_at(ahead), self.peek_at(ahead + 1)) {
                (Token::Word(_), Token::Comma) => ahead += 2,
                (Token::Word(_), Token::RParen) => {
                    return matches!(
                        self.word_at(ahead + 2).as_str(),
                        "as" | "with" | "on" | "using" | "tablespace"
                    );
                }
                _ => return false,
            }
        }
    }

    /// After CREATE TABLE name, at what [`Cursor::is_table_as`] saw.
    pub(super) fn create_table_as(
        &mut self,
        name: QualifiedName,
        persistence: Persistence,
        if_not_exists: bool,
    ) -> Result<Statement> {
        let columns = if *self.peek() == Token::LParen { self.columns()? } else { Vec::new() };
        let access_method = self.access_method()?;
        let options = if self.take("with") { self.storage_options()? } else { Vec::new() };
        let on_commit = self.on_commit()?;
        let tablespace = self.tablespace()?;
        self.expect("as")?;
        let source = if self.at("execute") {
            RowSource::Execute(self.execution()?)
        } else {
            let (start, before) = (self.byte(), self.characters_before());
            self.query()?;
            RowSource::Query { text: self.since(start).to_string(), before }
        };
        let with_data = if self.take("with") {
            let with_data = !self.take("no");
            self.expect("data")?;
            with_data
        } else {
            true
        };
        Ok(Statement::CreateTableAs(Box::new(CreateTableAs {
            name,
            persistence,
            on_commit,
            if_not_exists,
            columns,
            source,
            with_data,
            select_into: false,
            access_method,
            options,
            tablespace,
        })))
    }

    /// `ON COMMIT { PRESERVE ROWS | DELETE ROWS | DROP }`.
    pub(super) fn on_commit(&mut self) -> Result<OnCommit> {
        if !self.take_words(&["on", "commit"]) {
            return Ok(OnCommit::PreserveRows);
        }
        if self.take("drop") {
            return Ok(OnCommit::Drop);
        }
        let delete = self.take("delete");
        if !delete {
            self.expect("preserve")?;
        }
        self.expect("rows")?;
        Ok(if delete { OnCommit::DeleteRows } else { OnCommit::PreserveRows })
    }

    /// Where a query says INTO, which makes a table of it; `None` for any other.
    pub(in crate::parser) fn find_into(&self) -> Option<usize> {
        let mut depth = 0_u32;
        let start = self.index();
        // Looked at by index: to count from where the parser stands is to go all the way for each.
        for place in start.. {
            let token = self.parser.token_at(place);
            let is = |word: &str| is_word(Some(token), word);
            match &token.token {
                Token::EOF | Token::SemiColon => return None,
                Token::LParen => depth += 1,
                // What is around the query ends it.
                Token::RParen if depth == 0 => return None,
                Token::RParen => depth -= 1,
                _ if depth > 0 => {}
                // INSERT INTO, MERGE INTO after WITH.
                _ if ["insert", "merge", "from", "union"].into_iter().any(is) => return None,
                _ if is("into") => return Some(place - start),
                _ => {}
            }
        }
        None
    }

    /// At INTO: goes to the table's name.
    fn target_persistence(&mut self) -> Persistence {
        self.skip(1);
        while matches!(self.word_at(0).as_str(), "local" | "global") {
            self.skip(1);
        }
        let persistence = if self.take("temporary") || self.take("temp") {
            Persistence::Temporary
        } else if self.take("unlogged") {
            Persistence::Unlogged
        } else {
            Persistence::Permanent
        };
        self.take("table");
        persistence
    }

    /// 42601 for a query that says INTO where no table is made.
    pub(super) fn refuse_into(&mut self) -> Result<()> {
        let Some(into) = self.find_into() else { return Ok(()) };
        self.skip(into);
        self.target_persistence();
        Err(SqlError::new(SqlState::SYNTAX_ERROR, "SELECT ... INTO is not allowed here")
            .at(Some(self.position())))
    }

    /// SELECT … INTO [TEMPORARY | UNLOGGED] [TABLE] name …; `into` tokens before INTO.
    pub(in crate::parser) fn select_into(&mut self, into: usize) -> Result<Statement> {
        let (start, before) = (self.byte(), self.characters_before());
        self.skip(into);
        let target = self.byte();
        let persistence = self.target_persistence();
        let name = self.name()?;
        let rest = self.byte();
        self.skip_statement();
        let after = if rest < self.end_byte() { self.since(rest) } else { "" };
        // Blanks for the target keep the places of what follows it.
        let blank = |c: char| if c == '\n' { c } else { ' ' };
        let mut text = self.text(start..target).to_owned();
        text.extend(self.text(target..rest).chars().map(blank));
        text.push_str(after);
        let text = text.trim_end().to_owned();
        crate::parser::parse_query(&text).map_err(|error| error.moved(before))?;
        Ok(Statement::CreateTableAs(Box::new(CreateTableAs {
            name,
            persistence,
            on_commit: OnCommit::PreserveRows,
            if_not_exists: false,
            columns: Vec::new(),
            source: RowSource::Query { text, before },
            with_data: true,
            select_into: true,
            access_method: None,
            options: Vec::new(),
            tablespace: None,
        })))
    }

    /// At LIKE in a table's list of columns, after `place` of them.
    pub(super) fn table_like(&mut self, place: usize) -> Result<TableLike> {
        self.expect("like")?;
        let mut like = TableLike { place, source: Some(self.name()?), ..TableLike::default() };
        loop {
            let including = self.at("including");
            if !including && !self.at("excluding") {
                return Ok(like);
            }
            self.skip(1);
            match self.label()?.as_str() {
                "all" => {
                    like.defaults = including;
                    like.constraints = including;
                    like.identity = including;
                    like.generated = including;
                    like.indexes = including;
                    like.comments = including;
                    like.storage = including;
                    like.compression = including;
                }
                "defaults" => like.defaults = including,
                "constraints" => like.constraints = including,
                "identity" => like.identity = including,
                "generated" => like.generated = including,
                "indexes" => like.indexes = including,
                "comments" => like.comments = including,
                "storage" => like.storage = including,
                "compression" => like.compression = including,
                // There are none of several columns, so there is nothing to copy.
                "statistics" => {}
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// At VIEW.
    pub(super) fn create_view(&mut self, or_replace: bool, temporary: bool) -> Result<Statement> {
        self.expect("view")?;
        let name = self.name()?;
        let columns = if *self.peek() == Token::LParen { self.columns()? } else { Vec::new() };
        let mut check_option = None;
        let options = if self.take("with") { self.storage_options()? } else { Vec::new() };
        self.expect("as")?;
        let (start, before) = (self.byte(), self.characters_before());
        self.query()?;
        let query = self.since(start).to_string();
        if self.take("with") {
            let local = !self.take("cascaded") && self.take("local");
            self.expect("check")?;
            self.expect("option")?;
            check_option = Some(if local { CheckOption::Local } else { CheckOption::Cascaded });
        }
        Ok(Statement::CreateView(Box::new(CreateView {
            name,
            or_replace,
            temporary,
            columns,
            query,
            before,
            options,
            check_option,
        })))
    }

    /// At RECURSIVE: the view is over a recursive query of its own name.
    pub(super) fn create_recursive_view(&mut self, or_replace: bool, temporary: bool) -> Result<Statement> {
        self.expect("recursive")?;
        let mut statement = self.create_view(or_replace, temporary)?;
        if let Statement::CreateView(view) = &mut statement {
            if view.check_option.is_some() {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "WITH CHECK OPTION not supported on recursive views",
                ));
            }
            if view.columns.is_empty() {
                return Err(self.unexpected());
            }
            let columns: Vec<String> = view.columns.iter().map(|name| quote_identifier(name)).collect();
            let (name, columns) = (quote_identifier(&view.name.name), columns.join(", "));
            let head = format!("WITH RECURSIVE {name} ({columns}) AS (");
            view.before -= head.chars().count() as i64;
            view.query = format!("{head}{}) SELECT {columns} FROM {name}", view.query);
        }
        Ok(statement)
    }
}
