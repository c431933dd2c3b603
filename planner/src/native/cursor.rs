//! Open cursors of a transaction: those of DECLARE and of routines, and portals of the protocol
//! whose rows are fetched bit by bit.
//!
//! A cursor's query runs when the cursor is opened and its rows are kept: it shows the database
//! as it was then, as PostgreSQL's insensitive cursors do. Rows are shared, so that a run that
//! is undone and starts again gets the cursors as they were for the price of their names.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use archipel_sql::ast::FetchDirection;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::bound::OutputColumn;

/// The rows of a cursor, flat.
#[derive(Clone, Debug, Default)]
pub struct CursorRows {
    pub values: Vec<Datum>,
    /// Columns of a row, those behind the visible ones included.
    pub width: usize,
    pub count: usize,
}

impl CursorRows {
    /// A row, counted from zero.
    pub fn row(&self, at: usize) -> &[Datum] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    /// The same, to take values out of it.
    pub fn row_mut(&mut self, at: usize) -> &mut [Datum] {
        &mut self.values[at * self.width..(at + 1) * self.width]
    }
}

/// The primary key of a table's row, which stands in each row of a cursor behind the visible columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorKey {
    pub table: Oid,
    pub values: Range<usize>,
}

/// An open cursor.
#[derive(Clone, Debug)]
pub struct OpenCursor {
    pub columns: Arc<[OutputColumn]>,
    pub rows: Arc<CursorRows>,
    /// What CURRENT OF finds rows by.
    pub keys: Arc<[CursorKey]>,
    /// Its statement, for `pg_cursors`.
    pub text: Arc<str>,
    /// When it was opened, in microseconds since 2000-01-01 UTC.
    pub at: i64,
    /// Whether its rows are locked: FOR UPDATE and the like.
    pub locks: bool,
    /// Whether it moves backwards.
    pub backward: bool,
    /// WITH HOLD: it outlives its transaction.
    pub hold: bool,
    /// BINARY: FETCH of the simple protocol answers its values so.
    pub binary: bool,
    /// The command that an Execute of the protocol tells at its end.
    pub tag: &'static str,
    /// What became of the query behind its last row: whoever moves there finds it.
    pub failure: Option<Arc<SqlError>>,
    /// Whether somebody has found it.
    pub spent: bool,
    /// Zero is before the first row, the number of rows and one is behind the last.
    position: usize,
    /// Counts up over the session.
    number: u64,
}

impl OpenCursor {
    pub fn new(columns: Arc<[OutputColumn]>, rows: CursorRows, backward: bool) -> OpenCursor {
        OpenCursor {
            columns,
            rows: Arc::new(rows),
            keys: Arc::default(),
            text: Arc::default(),
            at: 0,
            locks: false,
            backward,
            hold: false,
            binary: false,
            tag: "SELECT",
            failure: None,
            spent: false,
            position: 0,
            number: 0,
        }
    }

    /// Moves, and answers the places (from zero) of the rows passed, in the order passed.
    pub fn advance(&mut self, direction: FetchDirection) -> Result<Vec<usize>> {
        let (count, end) = (self.rows.count as i64, self.rows.count as i64 + 1);
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
        let from_end = matches!(direction, FetchDirection::Absolute(place) if place < 0);
        if let Some(failure) = &self.failure
            && (from_end || first.max(last) > count)
        {
            let failure = SqlError::clone(failure);
            self.spent = true;
            return Err(failure);
        }
        self.position = last.clamp(0, end) as usize;
        let place = |row: i64| (row - 1) as usize;
        Ok(if first <= last {
            (first.max(1)..=last.min(count)).map(place).collect()
        } else {
            (last.max(1)..=first.min(count)).rev().map(place).collect()
        })
    }

    /// The key of the row of a table that it stands on, for WHERE CURRENT OF; `name` is the cursor's.
    pub fn key_of(&self, name: &str, table: Oid, table_name: &str) -> Result<Vec<Datum>> {
        let state = |message: String| Err(SqlError::new(SqlState::INVALID_CURSOR_STATE, message));
        let mut keys = self.keys.iter().filter(|key| key.table == table);
        let key = match (keys.next(), keys.next()) {
            (Some(key), None) => key,
            (Some(_), Some(_)) => {
                return state(format!(
                    "cursor \"{name}\" has multiple FOR UPDATE/SHARE references to table \"{table_name}\""
                ));
            }
            (None, _) if self.locks => {
                return state(format!(
                    "cursor \"{name}\" does not have a FOR UPDATE/SHARE reference to table \"{table_name}\""
                ));
            }
            (None, _) => {
                return state(format!(
                    "cursor \"{name}\" is not a simply updatable scan of table \"{table_name}\""
                ));
            }
        };
        match self.current().and_then(|row| row.get(key.values.clone())) {
            Some(key) => Ok(key.to_vec()),
            None => state(format!("cursor \"{name}\" is not positioned on a row")),
        }
    }

    /// The row it stands on.
    pub fn current(&self) -> Option<&[Datum]> {
        let at = self.position.checked_sub(1).filter(|at| *at < self.rows.count)?;
        Some(self.rows.row(at))
    }
}

/// The open cursors of a session, by name.
#[derive(Clone, Debug, Default)]
pub struct Cursors {
    open: BTreeMap<String, OpenCursor>,
    /// How many were opened so far.
    opened: u64,
    unnamed: u64,
    /// How many of them before the transaction at hand.
    opened_before: u64,
    /// Whether anything was opened, moved or closed.
    changed: bool,
}

/// 34000.
pub fn missing_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

impl Cursors {
    /// Whether none was ever opened.
    pub fn is_unused(&self) -> bool {
        self.opened == 0
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Names and cursors, in the names' order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OpenCursor)> {
        self.open.iter().map(|(name, cursor)| (name.as_str(), cursor))
    }

    pub fn has(&self, name: &str) -> bool {
        self.open.contains_key(name)
    }

    pub fn get(&self, name: &str) -> Result<&OpenCursor> {
        self.open.get(name).ok_or_else(|| missing_cursor(name))
    }

    pub fn get_mut(&mut self, name: &str) -> Result<&mut OpenCursor> {
        self.changed = true;
        self.open.get_mut(name).ok_or_else(|| missing_cursor(name))
    }

    /// A name for a cursor that was given none.
    pub fn invent_name(&mut self) -> String {
        loop {
            self.unnamed += 1;
            let name = format!("<unnamed portal {}>", self.unnamed);
            if !self.has(&name) {
                return name;
            }
        }
    }

    pub fn open(&mut self, name: String, mut cursor: OpenCursor) {
        self.changed = true;
        self.opened += 1;
        cursor.number = self.opened;
        self.open.insert(name, cursor);
    }

    pub fn close(&mut self, name: &str) -> Result<()> {
        self.changed = true;
        self.open.remove(name).map(drop).ok_or_else(|| missing_cursor(name))
    }

    pub fn clear(&mut self) {
        self.changed |= !self.open.is_empty();
        self.open.clear();
    }

    /// The number of a portal that has no rows yet, for [`Cursors::rollback_to`].
    pub fn number(&mut self) -> u64 {
        self.opened += 1;
        self.opened
    }

    /// The end of a transaction: only those WITH HOLD stay.
    pub fn end_transaction(&mut self) {
        if !self.open.is_empty() {
            self.changed = true;
            self.open.retain(|_, cursor| cursor.hold);
        }
        self.opened_before = self.opened;
    }

    /// A transaction is undone: those stay that one before it has left.
    pub fn abort_transaction(&mut self) {
        let before = self.opened_before;
        if !self.open.is_empty() {
            self.changed = true;
            self.open.retain(|_, cursor| cursor.hold && cursor.number <= before);
        }
        self.opened_before = self.opened;
    }

    /// A point to go back to.
    pub fn mark(&self) -> u64 {
        self.opened
    }

    /// Closes what was opened since the mark.
    pub fn rollback_to(&mut self, mark: u64) {
        if self.opened > mark {
            self.changed = true;
            self.open.retain(|_, cursor| cursor.number <= mark);
        }
    }

    /// The cursors, if anything has happened to them.
    pub fn take_changed(&mut self) -> Option<Cursors> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        Some(std::mem::take(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_move_as_postgres_moves_them() {
        let values = (0..5).map(Datum::Int4).collect();
        let rows = CursorRows { values, width: 1, count: 5 };
        let mut cursor = OpenCursor::new(Arc::from([]), rows, true);
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
