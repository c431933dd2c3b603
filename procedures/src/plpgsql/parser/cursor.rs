//! Cursors: OPEN, FETCH, MOVE, and the arguments of bound ones.

use super::*;

impl Parser<'_> {
    /// `(expr, …)` for a bound cursor, checked in number.
    pub(super) fn cursor_args(&mut self, cursor: VariableId) -> Result<Vec<Fragment>> {
        let variable = &self.variables[cursor as usize];
        let name = variable.name.clone();
        let declared: Vec<VariableId> = variable.cursor.as_ref().map_or_else(Vec::new, |c| c.args.clone());
        let wanted = declared.len();
        let mut args: Vec<Option<Fragment>> = vec![None; wanted];
        if self.is_symbol('(') {
            if wanted == 0 {
                return Err(self.error_here(format!("cursor \"{name}\" has no arguments")));
            }
            self.at += 1;
            for next in 0.. {
                // `name := value`, and no arrow.
                if self.token().word().is_some() && self.ahead(1).kind == TokenKind::Operator("=>".to_owned())
                {
                    let arrow = self.ahead(1).start;
                    let message = "syntax error at or near \"=>\"";
                    return Err(self.error_at(SqlState::SYNTAX_ERROR, message, arrow));
                }
                let start = self.token().start;
                let given = self.token().word().filter(|_| self.ahead(1).kind == TokenKind::ColonEquals);
                let place = match given.map(str::to_string) {
                    None => next,
                    Some(given) => {
                        let named = |id: &VariableId| self.variables[*id as usize].name == given;
                        let Some(place) = declared.iter().position(named) else {
                            return Err(self
                                .error_here(format!("cursor \"{name}\" has no argument named \"{given}\"")));
                        };
                        self.at += 2;
                        place
                    }
                };
                let Some(slot) = args.get(place) else {
                    // It is the comma before that shows it.
                    let comma = self.tokens[self.at.saturating_sub(1)].start;
                    let message = format!("too many arguments for cursor \"{name}\"");
                    return Err(self.error_at(SqlState::SYNTAX_ERROR, message, comma));
                };
                if slot.is_some() {
                    let given = self.variables[declared[place] as usize].name.clone();
                    let message = format!(
                        "value for parameter \"{given}\" of cursor \"{name}\" specified more than once"
                    );
                    return Err(self.error_at(SqlState::SYNTAX_ERROR, message, start));
                }
                args[place] =
                    Some(self.sql_until(&|t| t.is_symbol(',') || t.is_symbol(')'), ",\" or \")", true)?);
                if !self.accept_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        } else if wanted > 0 {
            return Err(self.error_here(format!("cursor \"{name}\" has arguments")));
        }
        let given: Vec<Fragment> = args.into_iter().flatten().collect();
        if given.len() < wanted {
            let end = self.tokens[self.at.saturating_sub(1)].start;
            let message = format!("not enough arguments for cursor \"{name}\"");
            return Err(self.error_at(SqlState::SYNTAX_ERROR, message, end));
        }
        Ok(given)
    }

    /// The variable of a cursor, which may be a constant: its value is a name.
    pub(super) fn cursor_variable(&mut self) -> Result<VariableId> {
        let start = self.token().start;
        let target = self.named_target()?;
        let is_cursor = match &self.variables[target.variable as usize].ty {
            TypeSpec::Known(ty) => *ty == Type::REFCURSOR,
            TypeSpec::Named(fragment) => fragment.text.eq_ignore_ascii_case("refcursor"),
            _ => false,
        };
        if !is_cursor || !target.path.is_empty() {
            return Err(self.error_at(
                SqlState::DATATYPE_MISMATCH,
                format!("variable \"{}\" must be of type cursor or refcursor", target.text),
                start,
            ));
        }
        Ok(target.variable)
    }

    pub(super) fn open_statement(&mut self) -> Result<StatementKind> {
        let cursor = self.cursor_variable()?;
        if self.variables[cursor as usize].cursor.is_some() {
            let args = self.cursor_args(cursor)?;
            self.expect_symbol(';')?;
            return Ok(StatementKind::Open { cursor, scroll: None, args, query: None, dynamic: None });
        }
        let scroll = if self.accept_word("no") {
            self.expect_word("scroll")?;
            Some(false)
        } else {
            self.accept_word("scroll").then_some(true)
        };
        if !self.accept_word("for") {
            return Err(self.near("syntax error, expected \"FOR\""));
        }
        if self.accept_word("execute") {
            let (dynamic, _) = self.dynamic(false)?;
            return Ok(StatementKind::Open {
                cursor,
                scroll,
                args: Vec::new(),
                query: None,
                dynamic: Some(dynamic),
            });
        }
        let query = self.statement_until_semicolon()?;
        Ok(StatementKind::Open { cursor, scroll, args: Vec::new(), query: Some(query), dynamic: None })
    }

    pub(super) fn fetch_statement(&mut self) -> Result<StatementKind> {
        let start = self.token().start;
        let fetches = self.advance().is_word("fetch");
        let direction = self.fetch_direction()?;
        let cursor = self.cursor_variable()?;
        let into = if fetches {
            self.expect_word("into")?;
            Some(self.target_list()?)
        } else {
            None
        };
        if fetches && matches!(direction, Direction::All { .. } | Direction::Count { .. }) {
            return Err(self.error_at(
                SqlState::FEATURE_NOT_SUPPORTED,
                "FETCH statement cannot return multiple rows",
                start,
            ));
        }
        self.expect_symbol(';')?;
        Ok(StatementKind::Fetch { cursor, direction, into })
    }

    fn fetch_direction(&mut self) -> Result<Direction> {
        let word = self.token().word().unwrap_or_default().to_string();
        // A cursor may be called like a direction; then FROM, IN or the end follows.
        let names_cursor = self.find_variable(&[word.as_str()]).is_some()
            && (self.ahead(1).is_symbol(';') || self.ahead(1).is_word("into"));
        let direction = if names_cursor {
            return Ok(Direction::Next);
        } else {
            match word.as_str() {
                "next" => Direction::Next,
                "prior" => Direction::Prior,
                "first" => Direction::First,
                "last" => Direction::Last,
                "all" => Direction::All { forward: true },
                "absolute" | "relative" => {
                    self.at += 1;
                    let count =
                        self.expression_before(&|t| t.is_word("from") || t.is_word("in"), "FROM or IN")?;
                    self.at += 1;
                    return Ok(if word == "absolute" {
                        Direction::Absolute(count)
                    } else {
                        Direction::Relative(count)
                    });
                }
                "forward" | "backward" => {
                    self.at += 1;
                    let forward = word == "forward";
                    if self.accept_word("all") {
                        self.skip_from();
                        return Ok(Direction::All { forward });
                    }
                    if self.skip_from() || self.ahead(1).is_symbol(';') || self.ahead(1).is_word("into") {
                        return Ok(if forward { Direction::Next } else { Direction::Prior });
                    }
                    let count =
                        self.expression_before(&|t| t.is_word("from") || t.is_word("in"), "FROM or IN")?;
                    self.at += 1;
                    return Ok(Direction::Count { forward, count });
                }
                // A name is the cursor's; anything else counts rows.
                _ => {
                    if self.skip_from() || !word.is_empty() {
                        return Ok(Direction::Next);
                    }
                    let count =
                        self.expression_before(&|t| t.is_word("from") || t.is_word("in"), "FROM or IN")?;
                    self.at += 1;
                    return Ok(Direction::Count { forward: true, count });
                }
            }
        };
        self.at += 1;
        self.skip_from();
        Ok(direction)
    }

    fn skip_from(&mut self) -> bool {
        self.accept_word("from") || self.accept_word("in")
    }
}
