//! What is said of names that nothing in sight answers to: the columns that may have been meant, and
//! tables that are there but out of reach (errorMissingColumn, errorMissingRTE).

use archipel_sql::error::{SqlError, SqlState};
use sqlparser::tokenizer::Span;

use super::binder::Binder;
use super::level::{Refusal, Relation};

/// Names further apart than this are not taken for one another (MAX_FUZZY_DISTANCE).
const DISTANCE_MAX: usize = 3;

/// A relation's name and a column of it.
type Place<'l> = (&'l str, &'l str);

/// The columns nearest to a name, of those seen so far (FuzzyAttrMatchState).
struct Nearest<'l> {
    distance: usize,
    first: Option<Place<'l>>,
    second: Option<Place<'l>>,
}

impl<'l> Nearest<'l> {
    fn offer(&mut self, place: Place<'l>, penalty: usize, name: &str) {
        if penalty > self.distance {
            return;
        }
        let distance = edit_distance(place.1, name);
        // A name of which more than half is different is no mistake.
        if distance > name.len() / 2 {
            return;
        }
        let distance = distance + penalty;
        if distance < self.distance {
            *self = Nearest { distance, first: Some(place), second: None };
        } else if distance == self.distance {
            match (self.first, self.second) {
                // Three that are equally near help nobody.
                (_, Some(_)) => {
                    *self = Nearest { distance: distance.saturating_sub(1), first: None, second: None };
                }
                (Some(_), None) => self.second = Some(place),
                (None, None) if self.distance <= DISTANCE_MAX => self.first = Some(place),
                (None, None) => {}
            }
        }
    }
}

impl Binder<'_, '_> {
    /// 42703 for a name that is no column, with those that may have been meant.
    pub(super) fn undefined_column(&self, names: &[String], span: Span) -> SqlError {
        let (relation, column) = match names {
            [.., relation, column] => (Some(relation.as_str()), column.as_str()),
            [column] => (None, column.as_str()),
            [] => (None, ""),
        };
        let message = match relation {
            Some(relation) => format!("column {relation}.{column} does not exist"),
            None => format!("column \"{column}\" does not exist"),
        };
        let error = SqlError::new(SqlState::UNDEFINED_COLUMN, message).at(self.position(span));
        match self.column_hint(relation, column) {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    /// The columns that may have been meant by a name (searchRangeTableForCol).
    fn column_hint(&self, qualifier: Option<&str>, name: &str) -> Option<String> {
        let mut nearest = Nearest { distance: DISTANCE_MAX + 1, first: None, second: None };
        // What a join offers is its tables'.
        let relations = self.levels.iter().rev().flat_map(|level| &level.relations);
        for relation in relations.filter(|relation| !relation.joined) {
            let Some(relation_name) = relation.name.as_deref() else { continue };
            let penalty = qualifier.map_or(0, |qualifier| edit_distance(qualifier, relation_name));
            let columns = relation.columns.iter().filter(|column| !column.hidden);
            let mut exact = false;
            for column in columns {
                exact |= column.name == name;
                nearest.offer((relation_name, column.name.as_str()), penalty, name);
            }
            if exact && penalty == 0 {
                return Some(format!(
                    "There is a column named \"{name}\" in table \"{relation_name}\", but it cannot be referenced from this part of the query."
                ));
            }
        }
        let (relation, column) = nearest.first?;
        let meant = format!("Perhaps you meant to reference the column \"{relation}.{column}\"");
        Some(match nearest.second {
            Some((relation, column)) => format!("{meant} or the column \"{relation}.{column}\"."),
            None => format!("{meant}."),
        })
    }

    /// 42P01 for a qualifier that is no FROM entry.
    pub(crate) fn missing_relation(&self, name: &str, position: Option<u32>) -> SqlError {
        let unseen = self.levels.iter().any(|level| {
            let mut named = level.relations.iter().filter(|relation| relation.name.as_deref() == Some(name));
            named.any(|relation| level.hidden || !relation.qualified)
        });
        let invalid = || {
            SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("invalid reference to FROM-clause entry for table \"{name}\""),
            )
            .at(position)
        };
        if unseen || self.out_of_reach.as_deref() == Some(name) {
            return invalid().with_hint(unreachable_entry(name));
        }
        let renamed = |relation: &&Relation| {
            relation.table.as_ref().is_some_and(|table| table.name == name)
                && relation.name.as_deref().is_some_and(|alias| alias != name)
        };
        let alias = self
            .levels
            .iter()
            .rev()
            .find_map(|level| level.relations.iter().find(renamed))
            .and_then(|relation| relation.name.as_deref());
        if let Some(alias) = alias {
            let hint = format!("Perhaps you meant to reference the table alias \"{alias}\".");
            return invalid().with_hint(hint);
        }
        SqlError::new(SqlState::UNDEFINED_TABLE, format!("missing FROM-clause entry for table \"{name}\""))
            .at(position)
    }

    /// 42P10 for a relation that an entry of FROM sees and must not refer to (check_lateral_ref_ok).
    pub(super) fn refused_reference(&self, relation: &Relation, refusal: Refusal, span: Span) -> SqlError {
        let name = relation.name.as_deref().unwrap_or("unnamed_join");
        let error = SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("invalid reference to FROM-clause entry for table \"{name}\""),
        )
        .at(self.position(span));
        match refusal {
            Refusal::Changed => error.with_hint(unreachable_entry(name)),
            Refusal::Combining => {
                error.with_detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
            }
        }
    }
}

fn unreachable_entry(name: &str) -> String {
    format!(
        "There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."
    )
}

/// How many characters to put in, take out or replace make one name the other (Levenshtein).
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, from) in one.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}
