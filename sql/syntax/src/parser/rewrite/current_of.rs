//! WHERE CURRENT OF, which sqlparser's grammar lacks: the condition is taken out of the text, and the
//! statement that it stood in is told from others.

use std::ops::Range;

use crate::ast::{Positioned, Statement, StatementText};
use crate::error::{Result, SqlError};
use crate::parser::production::parse_plain;
use crate::parser::{Lexeme, LexemeKind, lexemes};

/// A text without its conditions `CURRENT OF cursor`.
pub(in crate::parser) struct Masked {
    /// TRUE and blanks stand in their places.
    text: String,
    conditions: Vec<(Range<usize>, String)>,
}

/// Takes the conditions out of a text; `None` if there are none, or the text cannot be read.
pub(in crate::parser) fn mask(text: &str) -> Option<Masked> {
    let says = |window: &[u8]| window.eq_ignore_ascii_case(b"current");
    // Most texts do not say it.
    if !text.as_bytes().windows("current".len()).any(says) {
        return None;
    }
    let lexemes = lexemes(text).ok()?;
    let mut conditions = Vec::new();
    for window in lexemes.windows(4) {
        let [before, current, of, cursor] = window else { continue };
        if is(before, "where")
            && is(current, "current")
            && is(of, "of")
            && let LexemeKind::Word { value, .. } = &cursor.kind
        {
            conditions.push((current.range.start..cursor.range.end, value.clone()));
        }
    }
    if conditions.is_empty() {
        return None;
    }
    let mut masked = text.to_owned();
    for (range, _) in &conditions {
        let blanks: String =
            text[range.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
        masked.replace_range(range.clone(), &blanks);
        // "current" is longer.
        masked.replace_range(range.start..range.start + "true".len(), "true");
    }
    Some(Masked { text: masked, conditions })
}

fn is(lexeme: &Lexeme, word: &str) -> bool {
    matches!(&lexeme.kind, LexemeKind::Word { value, quoted: false } if value == word)
}

/// Parses what is left. A statement that has lost its condition would change every row: one that
/// cannot be told from others is refused, unless its own text is read again.
pub(in crate::parser) fn parse(masked: &Masked) -> Result<Vec<StatementText>> {
    let mut statements = parse_plain(&masked.text)?;
    let mut found = 0;
    for parsed in &mut statements {
        let range = parsed.range.clone();
        // What was blanked may reach beyond the statement's last token.
        let inside = |(condition, _): &&(Range<usize>, String)| range.contains(&condition.start);
        found += masked.conditions.iter().filter(inside).count();
        let mut conditions = masked.conditions.iter().filter(inside);
        let Some((condition, cursor)) = conditions.next() else { continue };
        match &parsed.statement {
            Statement::Prepare(_) | Statement::Explain(_) => {}
            Statement::Update(_) | Statement::Delete(_) if conditions.next().is_none() => {
                let positioned = Positioned {
                    statement: parsed.statement.clone(),
                    text: masked.text[range.start..range.end.max(condition.end)].to_owned(),
                    condition: condition.start - range.start..condition.end - range.start,
                    cursor: cursor.clone(),
                };
                parsed.statement = Statement::Positioned(Box::new(positioned));
            }
            _ => return Err(SqlError::unsupported("WHERE CURRENT OF here")),
        }
    }
    if found < masked.conditions.len() {
        return Err(SqlError::unsupported("WHERE CURRENT OF here"));
    }
    Ok(statements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;

    #[test]
    fn a_change_of_the_row_of_a_cursor_is_told_from_others() {
        let text = "select 1; update t set a = 1\nwhere current\nof C returning a";
        let parsed = parse(text).unwrap();
        let Statement::Positioned(positioned) = &parsed[1].statement else { panic!("{parsed:?}") };
        assert_eq!(positioned.cursor, "c");
        assert_eq!(positioned.text, "update t set a = 1\nwhere true   \n     returning a");
        assert_eq!(&positioned.text[positioned.condition.clone()], "true   \n    ");
        assert_eq!(positioned.statement.tag(), "UPDATE");
        assert!(parse("with x as (delete from t where current of c) select 1").is_err());
        let quoted = parse("delete from t where current of \"C c\"").unwrap();
        assert!(matches!(&quoted[0].statement, Statement::Positioned(p) if p.cursor == "C c"));
        assert!(matches!(parse("select 'where current of c'").unwrap()[0].statement, Statement::Query(_)));
    }
}
