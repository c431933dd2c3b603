//! Parts of a statement that sqlparser's grammar lacks: they reach it as names that hold their text and
//! place, and are read later, apart.

use sqlparser::tokenizer::Location;

use super::cursor::Cursor;
use super::tokens::Positions;
use crate::error::Result;

/// The name for a part that begins at `start`; `mark` says what it is.
pub(super) fn name_of(mark: &str, text: &str, start: Location, positions: &Positions<'_>) -> String {
    let before = positions.character(start).unwrap_or(1) - 1;
    format!("{mark}{} {} {before} {text}", start.line, start.column)
}

/// How far the positions in a part are from those in its statement, where lines and columns are alike.
#[derive(Clone, Copy)]
pub(super) struct Shift(i64);

impl Shift {
    /// Where in the statement a position of the part is.
    pub fn of(self, position: u32) -> u32 {
        u32::try_from(i64::from(position) + self.0).unwrap_or(position)
    }
}

/// Reads the part that a name holds, behind its mark. Lines and columns count as in the statement, and
/// so do the places of errors; positions that the production keeps are to be shifted.
pub(super) fn read<T>(held: &str, production: impl FnOnce(&mut Cursor<'_>, Shift) -> Result<T>) -> Result<T> {
    let mut parts = held.splitn(4, ' ');
    let mut number = || parts.next().and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
    let (line, column, before) = (number().saturating_sub(1), number().saturating_sub(1), number());
    let text = parts.next().unwrap_or_default();
    let shift = Shift(before as i64 - (line + column) as i64);
    let placed = "\n".repeat(line) + &" ".repeat(column) + text;
    super::whole(&placed, |cursor| production(cursor, shift)).map_err(|mut error| {
        if let Some(position) = &mut error.fields_mut().position {
            *position = shift.of(*position);
        }
        error
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_in_the_statement() {
        let statement = "UPDATE é -- ü\n\n  SET a[1 2";
        let positions = Positions::new(statement);
        let start = Location { line: 3, column: 7 };
        let name = name_of("!", "a[1 2", start, &positions);
        assert_eq!(name, "!3 7 21 a[1 2");
        let kept = read(&name[1..], |cursor, shift| {
            let position = shift.of(cursor.position());
            cursor.skip(4);
            Ok(position)
        });
        assert_eq!(kept.unwrap(), 22);
        let error = read(&name[1..], |cursor, _| cursor.expression().map(drop)).unwrap_err();
        assert_eq!(error.fields().position, Some(statement.chars().count() as u32));
    }
}
