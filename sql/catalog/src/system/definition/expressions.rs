//! Kept expressions as the catalog's relations show them.

use super::type_text;
use crate::catalog::{Column, Table};
use crate::datum::Datum;
use crate::parser::{LexemeKind, lexemes};
use crate::system::shape::text;
use crate::system::{KeptExpression, Subject, SystemSource};
use crate::types::Type;

/// A default as PostgreSQL writes it back: string literals with their type.
pub(in crate::system) fn default_text(source: &dyn SystemSource, column: &Column, default: &str) -> String {
    let target = Some(column.ty);
    let kept =
        KeptExpression { text: default, subject: Subject::Nothing, target, pretty: false, is_shown: false };
    if let Some(shown) = source.shown(&kept) {
        return shown;
    }
    let inner = default.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    if inner.is_some_and(|inner| !inner.replace("''", "").contains('\'')) {
        return format!("{default}::{}", type_text(source, Type::of(column.ty.oid)));
    }
    default.to_owned()
}

/// The columns of a table that a condition names, in the order in which it does.
pub(in crate::system) fn columns_named(table: &Table, condition: &str) -> Vec<u16> {
    let lexemes = lexemes(condition).unwrap_or_default();
    let word = |place: usize| match lexemes.get(place).map(|lexeme| &lexeme.kind) {
        Some(LexemeKind::Word { value, .. }) => Some(value.as_str()),
        _ => None,
    };
    let text = |place: usize| lexemes.get(place).map_or("", |lexeme| &condition[lexeme.range.clone()]);
    let mut named = Vec::new();
    for place in 0..lexemes.len() {
        let Some(column) = word(place).and_then(|name| table.column_index(name)) else { continue };
        let before = if place > 0 { text(place - 1) } else { "" };
        let of_table = before != "." || place > 1 && word(place - 2) == Some(&table.name);
        let is_name = !matches!(text(place + 1), "(" | ".") && before != "::" && of_table;
        if is_name && !named.contains(&column) {
            named.push(column);
        }
    }
    named
}

/// The default of a column, of which NULL is none but beside a domain's own.
pub(in crate::system) fn own_default(column: &Column) -> Option<&str> {
    let default = column.default.as_deref()?;
    (column.domain.is_some() || !default.eq_ignore_ascii_case("null")).then_some(default)
}

/// What a column is generated from.
pub(in crate::system) fn generated_text(source: &dyn SystemSource, table: &Table, generated: &str) -> String {
    let shown = source.shown(&KeptExpression::over(table, generated, false));
    shown.unwrap_or_else(|| format!("({generated})"))
}

/// An expression over a table's row.
pub(in crate::system) fn expression_text(source: &dyn SystemSource, table: &Table, written: &str) -> String {
    source.shown(&KeptExpression::over(table, written, false)).unwrap_or_else(|| written.to_owned())
}

/// A condition over a table's row.
pub(in crate::system) fn condition_text(source: &dyn SystemSource, table: &Table, condition: &str) -> Datum {
    text(expression_text(source, table, condition))
}
