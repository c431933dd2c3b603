//! Names in the texts that the catalog keeps: defaults, conditions, the queries of views, SQL bodies.
//!
//! Like PostgreSQL's trees (pg_node_tree) they hold what a name means, not how it is found: in the place of a
//! routine or of a user's type stands a quoted name that no statement can write, with the object's id in it:
//! `"\u{1}routine 16400 f"(a)`, `a::"\u{1}type 16393 mood"`. So a renaming, another schema or another search
//! path changes none of them. Behind the id stands the name that was written, which goes on naming columns
//! that have no other name. Relations that queries read have the number of a reference
//! ([`super::view::reference`]); what a literal names, an enum's label or an object, is its id: `'\u{1}16395'`.

use std::collections::BTreeSet;

use crate::catalog::names::{quote_identifier, quote_qualified};
use crate::catalog::{Catalog, RoutineRef};
use crate::error::Result;
use crate::parser::{Lexeme, LexemeKind, MARK, lexemes};
use crate::type_table::element_of;
use crate::types::Oid;

const ROUTINE: &str = "\u{1}routine ";
const TYPE: &str = "\u{1}type ";
const SEQUENCE: &str = "\u{1}sequence ";

/// What texts that call a routine contain, and no others.
pub fn routine_mark(routine: Oid) -> String {
    format!("{ROUTINE}{} ", routine.0)
}

/// What texts that name a type contain, and no others.
pub fn type_mark(ty: Oid) -> String {
    format!("{TYPE}{} ", ty.0)
}

/// What stands in a text for a routine that was written with this name.
pub fn stored_routine(routine: Oid, written: &str) -> String {
    quote_identifier(&format!("{}{written}", routine_mark(routine)))
}

/// What stands in a text for a user's type, or the type of a relation's rows, that was written with this name.
pub fn stored_type(ty: Oid, written: &str) -> String {
    quote_identifier(&format!("{}{written}", type_mark(ty)))
}

/// What stands in FROM for a sequence that was written with this name.
pub fn stored_sequence(sequence: Oid, written: &str) -> String {
    quote_identifier(&format!("{SEQUENCE}{} {written}", sequence.0))
}

/// What stands in a literal for what it names: a label of an enum, a relation, a routine, a type.
pub fn stored_literal(named: Oid) -> String {
    format!("{MARK}{}", named.0)
}

/// The routine that a name stands for by its id.
pub fn routine_id(name: &str) -> Option<Oid> {
    id_after(name, ROUTINE)
}

/// The type that a name stands for by its id.
pub fn type_id(name: &str) -> Option<Oid> {
    id_after(name, TYPE)
}

/// The sequence that a name stands for by its id.
pub fn sequence_id(name: &str) -> Option<Oid> {
    id_after(name, SEQUENCE)
}

/// What a literal's text stands for by its id.
pub fn literal_id(text: &str) -> Option<Oid> {
    text.strip_prefix(MARK)?.parse().ok().map(Oid)
}

/// Whether a text has ids in the place of names.
pub fn has_ids(text: &str) -> bool {
    text.contains(MARK)
}

/// The name that was written where one with an id stands now; other names are themselves.
pub fn written_name(name: &str) -> &str {
    let rest = [ROUTINE, TYPE, SEQUENCE].iter().find_map(|kind| name.strip_prefix(kind));
    rest.and_then(|rest| rest.split_once(' ')).map_or(name, |(_, written)| written)
}

/// The routines that a stored text calls, each once, by their ids.
pub fn routines_named(text: &str, catalog: &Catalog) -> Vec<RoutineRef> {
    if !text.contains(MARK) {
        return Vec::new();
    }
    let parts = lexemes(text).unwrap_or_default();
    let oids: BTreeSet<Oid> = parts
        .iter()
        .filter_map(|part| match &part.kind {
            LexemeKind::Word { value, .. } => routine_id(value),
            _ => None,
        })
        .collect();
    oids.into_iter().filter_map(|oid| catalog.routine_by_oid(oid)).collect()
}

/// The sequences that a stored text names, each once.
pub fn sequences_named(text: &str, catalog: &Catalog) -> Vec<Oid> {
    if !text.contains(MARK) {
        return Vec::new();
    }
    let parts = lexemes(text).unwrap_or_default();
    let named = parts.iter().filter_map(|part| match &part.kind {
        LexemeKind::String(value) => literal_id(value),
        LexemeKind::Word { value, .. } => sequence_id(value),
        _ => None,
    });
    let oids: BTreeSet<Oid> = named.filter(|oid| catalog.sequence_by_oid(*oid).is_some()).collect();
    oids.into_iter().collect()
}

fn id_after(name: &str, kind: &str) -> Option<Oid> {
    let (id, _) = name.strip_prefix(kind)?.split_once(' ')?;
    id.parse().ok().map(Oid)
}

/// A stored text with the names that its objects have now, as this search path finds them: for what is shown
/// as it was written.
pub fn with_names(text: &str, catalog: &Catalog, search_path: &[String]) -> Result<String> {
    if !text.contains(MARK) {
        return Ok(text.to_owned());
    }
    let mut named = String::with_capacity(text.len());
    let mut copied = 0;
    for Lexeme { kind, range } in lexemes(text)? {
        let name = match &kind {
            LexemeKind::Word { value, .. } => name_now(value, catalog, search_path),
            LexemeKind::String(value) => literal_now(value, catalog, search_path),
            _ => None,
        };
        if let Some(name) = name {
            named.push_str(&text[copied..range.start]);
            named.push_str(&name);
            copied = range.end;
        }
    }
    named.push_str(&text[copied..]);
    Ok(named)
}

/// A stored text in which other ids stand for what literals name; `None` where that changes nothing.
pub fn with_literals(text: &str, other: &dyn Fn(Oid) -> Option<Oid>) -> Option<String> {
    let parts = if text.contains(MARK) { lexemes(text).ok()? } else { return None };
    let mut result = String::with_capacity(text.len());
    let mut copied = 0;
    for part in parts.into_iter().filter(|part| matches!(part.kind, LexemeKind::String(_))) {
        let mut at = part.range.start;
        while let Some(mark) = text[at..part.range.end].find(MARK) {
            let begin = at + mark + MARK.len_utf8();
            let digits = text[begin..].find(|c: char| !c.is_ascii_digit());
            at = digits.map_or(text.len(), |digits| begin + digits);
            if let Some(oid) = text[begin..at].parse().ok().and_then(|oid| other(Oid(oid))) {
                result.push_str(&text[copied..begin]);
                result.push_str(&oid.0.to_string());
                copied = at;
            }
        }
    }
    (copied > 0).then(|| result + &text[copied..])
}

/// A stored text with the names that were written in it: for messages where no catalog is at hand.
pub fn with_written_names(text: &str) -> String {
    let parts = if text.contains(MARK) { lexemes(text).unwrap_or_default() } else { Vec::new() };
    let mut named = String::with_capacity(text.len());
    let mut copied = 0;
    for Lexeme { kind, range } in parts {
        if let LexemeKind::Word { value, .. } = &kind
            && written_name(value).len() < value.len()
        {
            named.push_str(&text[copied..range.start]);
            named.push_str(&quote_identifier(written_name(value)));
            copied = range.end;
        }
    }
    named.push_str(&text[copied..]);
    named
}

fn name_now(name: &str, catalog: &Catalog, search_path: &[String]) -> Option<String> {
    let now = match (routine_id(name), sequence_id(name)) {
        (Some(routine), _) => routine_now(routine, catalog, search_path),
        (None, Some(sequence)) => object_now(sequence, catalog, search_path),
        (None, None) => type_now(type_id(name)?, catalog, search_path),
    };
    Some(now.unwrap_or_else(|| quote_identifier(written_name(name))))
}

fn routine_now(oid: Oid, catalog: &Catalog, search_path: &[String]) -> Option<String> {
    let routine = catalog.routine_by_oid(oid)?;
    let visible = catalog.routines(None, &routine.name, search_path);
    Some(match visible.iter().any(|found| found.oid == oid) {
        true => quote_identifier(&routine.name),
        false => quote_qualified(&routine.schema, &routine.name),
    })
}

fn type_now(oid: Oid, catalog: &Catalog, search_path: &[String]) -> Option<String> {
    let (schema, name) = match catalog.user_type_by_oid(oid) {
        Some(ty) => (ty.schema.clone(), ty.name.clone()),
        None => catalog.table_of_row_type(oid).map(|table| (table.schema.clone(), table.name.clone()))?,
    };
    let found = catalog.user_type(None, &name, search_path).map(|ty| ty.oid);
    let found = found.or_else(|| catalog.table(None, &name, search_path).map(|table| table.row_type()));
    Some(if found == Some(oid) { quote_identifier(&name) } else { quote_qualified(&schema, &name) })
}

/// A literal with what it names, alone or in an array, as that is called now.
fn literal_now(literal: &str, catalog: &Catalog, search_path: &[String]) -> Option<String> {
    if !literal.contains(MARK) {
        return None;
    }
    let mut named = String::with_capacity(literal.len());
    let mut rest = literal;
    while let Some(at) = rest.find(MARK) {
        named.push_str(&rest[..at]);
        let behind = &rest[at + MARK.len_utf8()..];
        let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        let oid = Oid(behind[..end].parse().ok()?);
        // What has gone leaves its number.
        let label = object_now(oid, catalog, search_path).unwrap_or_else(|| oid.to_string());
        match rest.len() == literal.len() && at == 0 && end == behind.len() {
            true => named.push_str(&label),
            // In an array or a row, or in a row in an array.
            false => {
                let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
                let element = format!("\"{}\"", escaped(&label));
                named.push_str(&if is_in_quotes(&named) { escaped(&element) } else { element });
            }
        }
        rest = &behind[end..];
    }
    named.push_str(rest);
    Some(format!("'{}'", named.replace('\'', "''")))
}

/// Whether the text of an array or a row ends within the quotes of an element.
fn is_in_quotes(text: &str) -> bool {
    let (mut is_quoted, mut characters) = (false, text.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
    }
    is_quoted
}

/// What a label or an object is called now.
fn object_now(oid: Oid, catalog: &Catalog, search_path: &[String]) -> Option<String> {
    if let Some(label) = catalog.enum_label(oid) {
        return Some(label.to_string());
    }
    if let Some(relation) = catalog.relation_by_oid(oid) {
        return Some(match catalog.is_visible(&relation, search_path) {
            true => quote_identifier(relation.name()),
            false => quote_qualified(relation.schema(), relation.name()),
        });
    }
    if let Some(schema) = catalog.schema_by_oid(oid) {
        return Some(quote_identifier(&schema.name));
    }
    let ty = || match element_of(oid) {
        Some(element) => Some(format!("{}[]", type_now(element, catalog, search_path)?)),
        None => type_now(oid, catalog, search_path),
    };
    routine_now(oid, catalog, search_path).or_else(ty)
}

#[cfg(test)]
mod tests {
    use super::{literal_id, routine_id, stored_literal, stored_routine, stored_type, type_id, written_name};
    use crate::types::Oid;

    fn unquoted(name: &str) -> String {
        name.trim_matches('"').replace("\"\"", "\"")
    }

    #[test]
    fn ids_and_names_are_found_again() {
        let routine = unquoted(&stored_routine(Oid(16400), "my \"f\" 2"));
        assert_eq!((routine_id(&routine), type_id(&routine)), (Some(Oid(16400)), None));
        assert_eq!(written_name(&routine), "my \"f\" 2");
        let ty = unquoted(&stored_type(Oid(7), "mood"));
        assert_eq!((type_id(&ty), written_name(&ty)), (Some(Oid(7)), "mood"));
        assert_eq!(literal_id(&stored_literal(Oid(9))), Some(Oid(9)));
        assert_eq!((literal_id("9"), routine_id("f"), written_name("f")), (None, None, "f"));
    }
}
