//! Open cursors of a transaction: those of DECLARE and of routines, and portals of the protocol
//! whose rows are fetched bit by bit.
//!
//! A cursor shows the database as it was when it was opened, as PostgreSQL's insensitive cursors do.
//! Its query runs to its end then and its rows are kept; or it goes on beside the session, and its rows
//! come when somebody moves to them ([`MoreRows`]). Of these a cursor keeps a window: what comes behind
//! it is asked for, what was before it comes again from the beginning. One that moves back keeps all that
//! has come of a query which might answer other rows, or in another order, the next time.
//!
//! ```text
//!   row    1 … base │ base + 1 …  rows.count │ …          whoever waits for them: the session
//!          passed   │ the window: `rows`     │ `source`   ◄── poll_more
//! ```
//!
//! A run waits for nobody, so a routine that moves to rows which are not in the window is undone, and
//! runs again when the session has brought all of them. Rows are shared: a run that is undone and
//! starts again gets the cursors as they were for the price of their names.

use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

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

/// Rows of a query that goes on beside the session.
pub trait MoreRows: std::fmt::Debug + Send + Sync {
    /// The next rows; `None` after the last one. Nothing comes behind an error.
    fn poll_more(&self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<Vec<Datum>>>>>;

    /// Whether the query answers the same rows in the same order each time.
    fn repeats(&self) -> bool;

    /// The same rows, from the first one on, if it repeats them.
    fn again(&self) -> Arc<dyn MoreRows>;

    /// What whoever has made it knows it by.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

/// Which rows a cursor must have before it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Whether some that it has let go are among them.
    pub passed: bool,
    /// How many from the first one on; `None`: all.
    pub rows: Option<usize>,
}

/// Rows that are kept of a cursor which may move back to them, unless these take more than so many bytes.
const WINDOW_ROWS: usize = 16 << 10;
const WINDOW_BYTES: usize = 16 << 20;

/// About what values take.
fn bytes_of(values: &[Datum]) -> usize {
    let beside = |value: &Datum| match value {
        Datum::Text(text) | Datum::Bpchar(text) | Datum::Jsonb(text) => text.len(),
        Datum::Bytea(bytes) => bytes.len(),
        Datum::Bits(bits) => bits.bytes().len(),
        Datum::Array(array) => size_of_val(&array.values[..]),
        _ => 0,
    };
    size_of_val(values) + values.iter().map(beside).sum::<usize>()
}

/// The primary key of a table's row, which stands in each row of a cursor behind the visible columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorKey {
    pub table: Oid,
    pub values: Range<usize>,
}

/// Where rows of a cursor come from that it does not have.
#[derive(Clone, Debug)]
enum Source {
    /// It has all that come.
    None,
    /// From there: the last row has not come yet.
    GoesOn(Arc<dyn MoreRows>),
    /// The last row has come; those that it has let go come from there.
    Ended(Arc<dyn MoreRows>),
}

/// An open cursor.
#[derive(Clone, Debug)]
pub struct OpenCursor {
    pub columns: Arc<[OutputColumn]>,
    rows: Arc<CursorRows>,
    /// How many rows there were before them, which have been let go.
    base: usize,
    /// About what they take, where others may come.
    bytes: usize,
    source: Source,
    /// Whether somebody has moved to rows that were not there.
    pub(super) wanted: bool,
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
    /// Whether somebody has found it, or has moved it where it does not go: it is moved no more.
    pub spent: bool,
    /// Zero is before the first row, the number of rows and one is behind the last.
    position: usize,
    /// Counts up over the session.
    pub(super) number: u64,
}

impl OpenCursor {
    pub fn new(columns: Arc<[OutputColumn]>, rows: CursorRows, backward: bool) -> OpenCursor {
        OpenCursor {
            columns,
            rows: Arc::new(rows),
            base: 0,
            bytes: 0,
            source: Source::None,
            wanted: false,
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

    /// The rows it has are the first ones; more of them come from there.
    pub fn with_more(mut self, source: Arc<dyn MoreRows>) -> OpenCursor {
        self.source = Source::GoesOn(source);
        self.bytes = bytes_of(&self.rows.values);
        self
    }

    /// How many of its rows are known by now.
    pub fn known(&self) -> usize {
        self.base + self.rows.count
    }

    /// What further rows come from, while there may be some.
    pub fn source(&self) -> Option<&Arc<dyn MoreRows>> {
        match &self.source {
            Source::GoesOn(source) => Some(source),
            Source::None | Source::Ended(_) => None,
        }
    }

    /// Whether it has all of its rows.
    pub fn is_complete(&self) -> bool {
        !self.goes_on() && self.base == 0
    }

    /// Whether it has let go of rows that somebody may move back to.
    pub fn has_passed(&self) -> bool {
        self.backward && self.base > 0
    }

    /// Whether somebody has moved to rows that were not there.
    pub fn is_wanting(&self) -> bool {
        self.wanted
    }

    /// Whether further rows may come.
    pub fn goes_on(&self) -> bool {
        matches!(self.source, Source::GoesOn(_))
    }

    /// How many rows it has before it, to move on to.
    pub fn ahead(&self) -> usize {
        self.known().saturating_sub(self.position)
    }

    /// Takes rows that have come.
    pub fn add_rows(&mut self, rows: Vec<Vec<Datum>>) {
        self.bytes += rows.iter().map(|row| bytes_of(row)).sum::<usize>();
        let kept = Arc::make_mut(&mut self.rows);
        kept.count += rows.len();
        kept.values.extend(rows.into_iter().flatten());
    }

    /// Its last row has come, or what the query has failed with behind it.
    pub fn end(&mut self, failure: Option<SqlError>) {
        self.failure = failure.map(Arc::new);
        self.source = match std::mem::replace(&mut self.source, Source::None) {
            Source::GoesOn(source) | Source::Ended(source) if self.has_passed() => Source::Ended(source),
            // Nothing will be asked for again.
            _ => Source::None,
        };
    }

    /// Somebody has stopped waiting for rows, or some are lost: it cannot be moved any more.
    pub fn give_up(&mut self, reason: &SqlError) {
        self.source = Source::None;
        self.failure = Some(Arc::new(reason.clone()));
        self.spent = true;
    }

    /// What its query has failed with before the first row, unless that is to be told later.
    pub fn begins_well(&self, later: impl FnOnce(&SqlError) -> bool) -> Result<()> {
        match &self.failure {
            Some(failure) if self.known() == 0 && !later(failure) => Err(SqlError::clone(failure)),
            _ => Ok(()),
        }
    }

    /// Lets go of rows that it has passed, where they can come again: all, if it does not move back.
    pub fn forget_passed(&mut self) {
        let (Source::GoesOn(source) | Source::Ended(source)) = &self.source else { return };
        let passed = self.position.saturating_sub(1).min(self.known()).saturating_sub(self.base);
        // Not again for each row: those that stay are moved.
        let is_large = passed > WINDOW_ROWS || self.bytes > WINDOW_BYTES;
        let due = passed * 2 >= self.rows.count && (!self.backward || (is_large && source.repeats()));
        if passed == 0 || !due {
            return;
        }
        let kept = Arc::make_mut(&mut self.rows);
        let gone = passed * kept.width;
        self.bytes = self.bytes.saturating_sub(bytes_of(&kept.values[..gone]));
        kept.values.drain(..gone);
        kept.count -= passed;
        self.base += passed;
    }

    /// Rows that it has let go are to come again: it has none now.
    pub fn begin_again(&mut self) {
        if let Source::GoesOn(source) | Source::Ended(source) = &self.source {
            let rows = CursorRows { width: self.rows.width, ..CursorRows::default() };
            (self.source, self.rows) = (Source::GoesOn(source.again()), Arc::new(rows));
            (self.base, self.bytes, self.failure) = (0, 0, None);
        }
    }

    /// What it needs to move so.
    pub fn needs(&self, direction: FetchDirection) -> Needs {
        let (first, last) = self.target(direction);
        if self.goes_back(direction) && !self.backward {
            // It will be refused.
            return Needs { passed: false, rows: Some(0) };
        }
        let from_end = matches!(direction, FetchDirection::Absolute(place) if place < 0);
        let rows = (!from_end).then(|| usize::try_from(first.max(last)).unwrap_or(0));
        // A row that it stands on has stayed.
        let is_before = (first.min(last).max(1) as usize) <= self.base || from_end;
        let passed = self.has_passed() && is_before;
        Needs { passed, rows }
    }

    /// A row, by its place.
    pub fn row(&self, place: usize) -> &[Datum] {
        self.rows.row(place - self.base)
    }

    /// All of its rows, of a cursor that is complete.
    pub fn all_rows(&self) -> &Arc<CursorRows> {
        &self.rows
    }

    /// The places, from one, that a movement begins and ends at, as far as is known.
    fn target(&self, direction: FetchDirection) -> (i64, i64) {
        let (here, end) = (self.position as i64, self.known() as i64 + 1);
        match direction {
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
        }
    }

    /// Whether a movement goes back as PostgreSQL makes it (DoPortalRunFetch): to a row counted from the
    /// end by way of the end, and to the very row that it stands on by a step back.
    fn goes_back(&self, direction: FetchDirection) -> bool {
        let (first, last) = self.target(direction);
        let here = self.position as i64;
        let by_place = |place: i64| place < 0 || (place == here && place > 0);
        let from_behind = matches!(direction, FetchDirection::Absolute(place) if by_place(place));
        from_behind || first < here || last < here
    }

    /// Moves, and answers the places (from zero) of the rows passed, in the order passed.
    pub fn advance(&mut self, direction: FetchDirection) -> Result<Vec<usize>> {
        let (count, end) = (self.known() as i64, self.known() as i64 + 1);
        let (first, last) = self.target(direction);
        if self.goes_back(direction) && !self.backward {
            self.spent = true;
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cursor can only scan forward",
            )
            .with_hint("Declare it with SCROLL option to enable backward scan."));
        }
        if let Some(failure) = self.failure.as_ref().filter(|_| self.spent) {
            return Err(SqlError::clone(failure));
        }
        let from_end = matches!(direction, FetchDirection::Absolute(place) if place < 0);
        let needs = self.needs(direction);
        if needs.passed || (self.goes_on() && needs.rows.is_none_or(|rows| rows > self.known())) {
            self.wanted = true;
            return Err(SqlError::internal("rows of a cursor were moved to that nobody had brought"));
        }
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
        let at = self.position.checked_sub(1).filter(|at| *at < self.known())?;
        Some(self.row(at))
    }
}

/// 34000.
pub fn missing_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No rows come; whether they would be the same the next time.
    #[derive(Debug)]
    struct Nobody(bool);

    impl MoreRows for Nobody {
        fn poll_more(&self, _context: &mut Context<'_>) -> Poll<Option<Result<Vec<Vec<Datum>>>>> {
            Poll::Ready(None)
        }

        fn again(&self) -> Arc<dyn MoreRows> {
            Arc::new(Nobody(self.0))
        }

        fn repeats(&self) -> bool {
            self.0
        }
    }

    fn ten_rows(from: i32) -> Vec<Vec<Datum>> {
        (from..from + 10).map(|value| vec![Datum::Int4(value)]).collect()
    }

    #[test]
    fn a_cursor_keeps_a_window_of_rows_that_come_when_they_are_asked_for() {
        let rows = CursorRows { values: Vec::new(), width: 1, count: 0 };
        let mut cursor = OpenCursor::new(Arc::from([]), rows, false).with_more(Arc::new(Nobody(true)));
        cursor.add_rows(ten_rows(0));
        assert_eq!(cursor.needs(FetchDirection::Forward(15)), Needs { passed: false, rows: Some(15) });
        assert!(cursor.advance(FetchDirection::Forward(15)).is_err());
        assert!(cursor.wanted);
        cursor.wanted = false;
        assert_eq!(cursor.advance(FetchDirection::Forward(8)).unwrap(), (0..8).collect::<Vec<usize>>());
        cursor.forget_passed();
        assert_eq!((cursor.base, cursor.rows.count, cursor.ahead()), (7, 3, 2));
        assert_eq!(cursor.current(), Some(&[Datum::Int4(7)][..]));
        assert_eq!(cursor.advance(FetchDirection::Forward(0)).unwrap(), [7]);
        cursor.add_rows(ten_rows(10));
        assert_eq!(cursor.advance(FetchDirection::Forward(3)).unwrap(), [8, 9, 10]);
        assert_eq!(cursor.row(10), [Datum::Int4(10)]);
        cursor.end(None);
        assert_eq!(cursor.advance(FetchDirection::Forward(i64::MAX)).unwrap().len(), 9);
        assert_eq!(cursor.advance(FetchDirection::Forward(1)).unwrap(), [] as [usize; 0]);
        assert!(!cursor.wanted);
    }

    #[test]
    fn rows_before_the_window_come_again() {
        let rows = CursorRows { values: Vec::new(), width: 1, count: 0 };
        let mut cursor = OpenCursor::new(Arc::from([]), rows, true).with_more(Arc::new(Nobody(true)));
        for from in 0..3_000 {
            cursor.add_rows(ten_rows(from * 10));
        }
        cursor.advance(FetchDirection::Forward(29_000)).unwrap();
        cursor.forget_passed();
        assert_eq!(cursor.base, 28_999);
        assert_eq!(cursor.needs(FetchDirection::Backward(1)), Needs { passed: true, rows: Some(28_999) });
        cursor.begin_again();
        cursor.add_rows(ten_rows(0));
        assert_eq!(cursor.needs(FetchDirection::Backward(1)), Needs { passed: false, rows: Some(28_999) });
    }

    #[test]
    fn a_window_of_wide_rows_is_narrow() {
        let rows = CursorRows { values: Vec::new(), width: 1, count: 0 };
        let mut cursor = OpenCursor::new(Arc::from([]), rows, true).with_more(Arc::new(Nobody(true)));
        let wide = || vec![Datum::text(&"x".repeat(1 << 20))];
        cursor.add_rows((0..10).map(|_| wide()).collect());
        cursor.advance(FetchDirection::Forward(10)).unwrap();
        cursor.forget_passed();
        assert_eq!(cursor.base, 0);
        cursor.add_rows((0..10).map(|_| wide()).collect());
        cursor.advance(FetchDirection::Forward(10)).unwrap();
        cursor.forget_passed();
        assert_eq!((cursor.base, cursor.rows.count), (19, 1));
        assert!(cursor.bytes < WINDOW_BYTES / 8);
    }

    #[test]
    fn a_cursor_keeps_what_might_come_otherwise_the_next_time() {
        for (backward, base) in [(true, 0), (false, 28_999)] {
            let rows = CursorRows { values: Vec::new(), width: 1, count: 0 };
            let mut cursor =
                OpenCursor::new(Arc::from([]), rows, backward).with_more(Arc::new(Nobody(false)));
            for from in 0..3_000 {
                cursor.add_rows(ten_rows(from * 10));
            }
            cursor.advance(FetchDirection::Forward(29_000)).unwrap();
            cursor.forget_passed();
            assert_eq!((cursor.base, cursor.has_passed()), (base, false));
            cursor.end(None);
            assert_eq!(cursor.advance(FetchDirection::Forward(i64::MAX)).unwrap().len(), 1_000);
            assert!(!cursor.wanted);
        }
    }

    #[test]
    fn what_has_been_given_up_is_not_moved_again() {
        let rows = CursorRows { values: Vec::new(), width: 1, count: 0 };
        let mut cursor = OpenCursor::new(Arc::from([]), rows, true).with_more(Arc::new(Nobody(true)));
        cursor.add_rows(ten_rows(0));
        cursor.give_up(&SqlError::new(SqlState::QUERY_CANCELED, "enough"));
        assert!(cursor.source().is_none());
        let moved = cursor.advance(FetchDirection::Forward(1));
        assert_eq!(moved.map_err(|error| error.state()), Err(SqlState::QUERY_CANCELED));
    }

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
        // By way of the end, and by a step back.
        for place in [-1, 3, 1] {
            assert!(cursor.advance(FetchDirection::Absolute(place)).is_err());
        }
        assert_eq!(cursor.advance(FetchDirection::Absolute(4)).unwrap(), [3]);
    }
}
