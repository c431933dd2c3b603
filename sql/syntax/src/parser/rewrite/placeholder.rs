//! Parts of a statement that sqlparser's grammar lacks: they reach it as names that hold their text and
//! place, and are read later, apart.

use sqlparser::tokenizer::Location;

use crate::parser::lexer::position::Positions;

/// The name for a part that begins at `start`; `mark` says what it is.
pub(super) fn name_of(mark: &str, text: &str, start: Location, positions: &Positions<'_>) -> String {
    let before = positions.character(start).unwrap_or(1) - 1;
    format!("{mark}{} {} {before} {text}", start.line, start.column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::rewrite::placeholder_parser::read;

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
