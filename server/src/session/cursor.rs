//! DECLARE, FETCH, MOVE and CLOSE: a query whose rows are asked for bit by bit.
//!
//! The query runs when the cursor is declared, and its rows are kept: the cursor shows the
//! database as it was then, as PostgreSQL's insensitive cursors do.

use std::sync::Arc;

use archipel_planner::bound::OutputColumn;
use archipel_sql::ast::{DeclareCursor, Fetch, FetchDirection};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};

use super::Session;
use super::analytic::Analytic;
use crate::encode::{Formats, RowEncoder, RowsTo};
use crate::statement::Body;

/// An open cursor.
pub(super) struct Cursor {
    pub columns: Arc<[OutputColumn]>,
    rows: Vec<Vec<Datum>>,
    /// Zero is before the first row, `rows.len() + 1` behind the last.
    position: usize,
    /// Counts up over the session.
    pub number: u64,
    backward: bool,
    /// WITH HOLD: it outlives its transaction.
    pub hold: bool,
}

impl Cursor {
    /// Moves, and answers the places (from zero) of the rows passed, in the order passed.
    fn advance(&mut self, direction: FetchDirection) -> Result<Vec<usize>> {
        let (count, end) = (self.rows.len() as i64, self.rows.len() as i64 + 1);
        let here = self.position as i64;
        let (first, last) = match direction {
            FetchDirection::Forward(0) | FetchDirection::Backward(0) | FetchDirection::Relative(0) => {
                (here, here)
            }
            FetchDirection::Forward(rows) if rows > 0 => (here + 1, here.saturating_add(rows)),
            FetchDirection::Forward(rows) => (here - 1, here.saturating_add(rows)),
            FetchDirection::Backward(rows) if rows > 0 => (here - 1, here.saturating_sub(rows)),
            FetchDirection::Backward(rows) => (here + 1, here.saturating_sub(rows)),
            FetchDirection::Absolute(place) if place >= 0 => (place, place),
            FetchDirection::Absolute(place) => (end.saturating_add(place), end.saturating_add(place)),
            FetchDirection::Relative(rows) => (here.saturating_add(rows), here.saturating_add(rows)),
        };
        if (first < here || last < here) && !self.backward {
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cursor can only scan forward",
            )
            .with_hint("Declare it with SCROLL option to enable backward scan."));
        }
        self.position = last.clamp(0, end) as usize;
        let place = |row: i64| (row - 1) as usize;
        Ok(if first <= last {
            (first.max(1)..=last.min(count)).map(place).collect()
        } else {
            (last.max(1)..=first.min(count)).rev().map(place).collect()
        })
    }
}

fn missing(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

impl Session {
    pub(super) async fn declare_cursor(&mut self, declare: &DeclareCursor, alone: bool) -> Result<()> {
        if !declare.hold && !self.transaction.is_open() && alone {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        if self.cursors.contains_key(&declare.name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{}\" already exists", declare.name),
            ));
        }
        let text: Arc<str> = declare.text.as_str().into();
        let statements = archipel_sql::parser::parse(&text)?;
        let prepared = self.prepare_parsed(&text, statements, &[])?;
        let (Body::Rows(plan), Some(columns)) = (&prepared.body, &prepared.columns) else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "DECLARE CURSOR needs a query"));
        };
        let analytic = match self.is_analytic(plan) {
            true => self.run_analytic(plan, Vec::new(), &RowsTo::Kept, false).await?,
            false => Analytic::Native(Vec::new()),
        };
        let rows = match analytic {
            Analytic::Ran(_, rows) => rows,
            Analytic::Native(params) => {
                self.enter_transaction(alone);
                let run = self.statement_run(plan.clone(), params, RowsTo::Kept);
                self.run_to_end(&prepared, run).await?.1
            }
        };
        let cursor = Cursor {
            columns: columns.clone(),
            rows,
            position: 0,
            number: self.cursors_declared + 1,
            backward: declare.scroll != Some(false),
            hold: declare.hold,
        };
        self.cursors_declared += 1;
        self.cursors.insert(declare.name.clone(), cursor);
        Ok(())
    }

    /// The columns FETCH answers.
    pub(super) fn cursor_columns(&self, fetch: &Fetch) -> Result<Option<Vec<OutputColumn>>> {
        let cursor = self.cursors.get(&fetch.cursor).ok_or_else(|| missing(&fetch.cursor))?;
        Ok((!fetch.move_only).then(|| cursor.columns.to_vec()))
    }

    /// Moves a cursor and, for FETCH, appends the rows passed; answers how many.
    pub(super) fn fetch(&mut self, fetch: &Fetch, formats: &Formats) -> Result<u64> {
        let cursor = self.cursors.get_mut(&fetch.cursor).ok_or_else(|| missing(&fetch.cursor))?;
        let places = cursor.advance(fetch.direction)?;
        let count = places.len() as u64;
        if !fetch.move_only {
            let encoder = RowEncoder { columns: cursor.columns.clone(), formats: formats.clone() };
            let rows: Vec<Vec<Datum>> = places.into_iter().map(|place| cursor.rows[place].clone()).collect();
            self.send_rows(&encoder, &rows);
        }
        Ok(count)
    }

    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.cursors.clear(),
            Some(name) => {
                self.cursors.remove(name).ok_or_else(|| missing(name))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_move_as_postgres_moves_them() {
        let mut cursor = Cursor {
            columns: Arc::from([]),
            rows: (0..5).map(|row| vec![Datum::Int4(row)]).collect(),
            position: 0,
            number: 1,
            backward: true,
            hold: false,
        };
        let mut moved = |direction| cursor.advance(direction).unwrap();
        assert_eq!(moved(FetchDirection::Forward(2)), [0, 1]);
        assert_eq!(moved(FetchDirection::Forward(0)), [1]);
        assert_eq!(moved(FetchDirection::Forward(i64::MAX)), [2, 3, 4]);
        assert_eq!(moved(FetchDirection::Forward(1)), [] as [usize; 0]);
        assert_eq!(moved(FetchDirection::Backward(2)), [4, 3]);
        assert_eq!(moved(FetchDirection::Absolute(-1)), [4]);
        assert_eq!(moved(FetchDirection::Absolute(1)), [0]);
        assert_eq!(moved(FetchDirection::Relative(2)), [2]);
        assert_eq!(moved(FetchDirection::Backward(i64::MAX)), [1, 0]);
        cursor.backward = false;
        cursor.position = 3;
        assert!(cursor.advance(FetchDirection::Backward(1)).is_err());
    }
}
