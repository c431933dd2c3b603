//! Texts that are shown as they were written, to somebody whose search path is another: the names of
//! functions, types, sequences and tables in them get their schemas where that path does not lead to
//! what was meant. A dump, which is read under an empty path, depends on it.
//!
//! This looks at words and what stands beside them and binds nothing: it serves what could not be shown
//! from its meaning.

use sqlparser::ast::Expr;

use crate::catalog::names::{parse_name_text, quote_qualified};
use crate::catalog::{Catalog, RoutineRef};
use crate::function::{lookup_aggregates, lookup_functions, lookup_set_functions};
use crate::parser::{Lexeme, LexemeKind, is_reserved, lexemes, parse_expression};
use crate::system::KeptExpression;
use crate::types::Oid;

/// A kept expression as it was written, for another search path; `None` where nothing has to change.
pub fn kept_as_written(
    expression: &KeptExpression<'_>,
    catalog: &Catalog,
    from: &[String],
    to: &[String],
) -> Option<String> {
    let text = qualified(expression.text, catalog, from, to)?;
    let is_call = matches!(parse_expression(&text), Ok(Expr::Function(_)));
    Some(if is_call { text } else { format!("({text})") })
}

/// The text that was written under one search path as another needs it; `None` where that is the same.
pub fn qualified(text: &str, catalog: &Catalog, from: &[String], to: &[String]) -> Option<String> {
    if catalog.is_same_path(from, to) {
        return None;
    }
    let parts = lexemes(text).ok()?;
    let scan = Scan { text, parts: &parts, catalog, from, to };
    let mut result = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    // Of the open parentheses, which are those of CAST.
    let mut casts: Vec<bool> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let written = match &part.kind {
            LexemeKind::Word { value, .. } => scan.word(at, value, casts.last() == Some(&true)),
            LexemeKind::String(value) => scan.literal(at, value),
            LexemeKind::Symbol => {
                match scan.symbol(at) {
                    "(" => casts.push(scan.before(at).eq_ignore_ascii_case("cast")),
                    ")" => {
                        casts.pop();
                    }
                    _ => {}
                }
                None
            }
            _ => None,
        };
        if let Some(written) = written {
            result.push_str(&text[copied..part.range.start]);
            result.push_str(&written);
            copied = part.range.end;
        }
    }
    (copied > 0).then(|| {
        result.push_str(&text[copied..]);
        result
    })
}

/// The functions of users that a text calls, by their names. Of several with one name, those that take or
/// answer rows of tables are left out: such a table may be what the text belongs to.
pub(in crate::system) fn functions_called(text: &str, catalog: &Catalog, path: &[String]) -> Vec<RoutineRef> {
    let mut found = Vec::new();
    if !text.contains('(') || catalog.routines_all().next().is_none() {
        return found;
    }
    let Ok(parts) = lexemes(text) else { return found };
    let symbol = |at: usize| parts.get(at).map_or("", |part| &text[part.range.clone()]);
    for (at, part) in parts.iter().enumerate() {
        let LexemeKind::Word { value, .. } = &part.kind else { continue };
        if symbol(at + 1) != "(" {
            continue;
        }
        let qualified = at >= 2 && symbol(at - 1) == ".";
        let schema = match parts.get(at.wrapping_sub(2)).map(|part| &part.kind) {
            Some(LexemeKind::Word { value, .. }) if qualified => Some(value.as_str()),
            _ => None,
        };
        let meant = catalog.routines(schema, value, path);
        let of_rows = |routine: &RoutineRef| {
            let mut types = routine.args.iter().map(|arg| arg.ty.oid).chain([routine.result.oid]);
            types.any(|ty| catalog.table_of_row_type(ty).is_some())
        };
        let only = meant.len() == 1;
        found.extend(meant.into_iter().filter(|routine| only || !of_rows(routine)));
    }
    found.sort_by_key(|routine| routine.oid);
    found.dedup_by_key(|routine| routine.oid);
    found
}

struct Scan<'t> {
    text: &'t str,
    parts: &'t [Lexeme],
    catalog: &'t Catalog,
    from: &'t [String],
    to: &'t [String],
}

impl Scan<'_> {
    fn symbol(&self, at: usize) -> &str {
        self.parts.get(at).map_or("", |part| &self.text[part.range.clone()])
    }

    fn before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |before| self.symbol(before))
    }

    /// A word, if it is the name of a type or of a function that is called.
    fn word(&self, at: usize, name: &str, in_cast: bool) -> Option<String> {
        let before = self.before(at);
        if before == "." || self.symbol(at + 1) == "." {
            return None;
        }
        if before == "::" || in_cast && before.eq_ignore_ascii_case("as") {
            return self.type_name(name).or_else(|| self.relation_name(name));
        }
        match self.parts.get(at + 1).map(|next| &next.kind) {
            Some(LexemeKind::String(_)) => self.type_name(name),
            Some(_) if self.symbol(at + 1) == "(" && self.may_be_called(at) => self.function_name(name),
            _ => None,
        }
    }

    /// Whether a name before a parenthesis is that of a function, and not an alias with its columns.
    fn may_be_called(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1).and_then(|before| self.parts.get(before)) else { return true };
        match &before.kind {
            LexemeKind::Word { value, quoted: false } => {
                is_reserved(value) && !matches!(value.as_str(), "as" | "with")
                    || matches!(value.as_str(), "by" | "between" | "filter" | "values" | "escape")
            }
            LexemeKind::Word { .. } | LexemeKind::Number | LexemeKind::String(_) | LexemeKind::Parameter => {
                false
            }
            LexemeKind::Symbol => !matches!(self.before(at), ")" | "]"),
        }
    }

    fn function_name(&self, name: &str) -> Option<String> {
        // One of PostgreSQL's own may be meant.
        let built_in = !lookup_functions(name).is_empty()
            || !lookup_aggregates(name).is_empty()
            || !lookup_set_functions(name).is_empty();
        if built_in {
            return None;
        }
        let meant = self.catalog.routines(None, name, self.from);
        let found: Vec<Oid> =
            self.catalog.routines(None, name, self.to).iter().map(|routine| routine.oid).collect();
        let hidden = meant.iter().find(|routine| !found.contains(&routine.oid))?;
        Some(quote_qualified(&hidden.schema, &hidden.name))
    }

    fn type_name(&self, name: &str) -> Option<String> {
        let meant = self.catalog.user_type(None, name, self.from)?;
        let found = self.catalog.user_type(None, name, self.to);
        let hidden = found.is_none_or(|found| found.oid != meant.oid);
        hidden.then(|| quote_qualified(&meant.schema, &meant.name))
    }

    fn relation_name(&self, name: &str) -> Option<String> {
        let (meant, schema) = self.relation(name, self.from)?;
        let hidden = self.relation(name, self.to).is_none_or(|(found, _)| found != meant);
        hidden.then(|| quote_qualified(&schema, name))
    }

    /// The table or sequence that a path leads to, with its schema.
    fn relation(&self, name: &str, path: &[String]) -> Option<(Oid, String)> {
        if let Some(table) = self.catalog.table(None, name, path) {
            return Some((table.oid, table.schema.clone()));
        }
        let sequence = self.catalog.sequence(None, name, path)?;
        Some((sequence.oid, sequence.schema.clone()))
    }

    /// A string, if it is read as the name of something.
    fn literal(&self, at: usize, value: &str) -> Option<String> {
        let cast = if self.symbol(at + 1) == "::" {
            self.symbol(at + 2).to_ascii_lowercase()
        } else {
            String::new()
        };
        let called = self.before(at) == "("
            && at.checked_sub(2).is_some_and(|name| {
                ["nextval", "currval", "setval"].iter().any(|of| self.symbol(name).eq_ignore_ascii_case(of))
            });
        let (name, rest) = value.split_at(value.find('(').unwrap_or(value.len()));
        let plain = parse_name_text(name).ok().filter(|name| name.schema.is_none())?.name;
        let written = match cast.as_str() {
            "regtype" => self.type_name(&plain),
            "regproc" | "regprocedure" => self.function_name(&plain),
            "regclass" => self.relation_name(&plain),
            "" if called => self.relation_name(&plain),
            _ => None,
        }?;
        Some(format!("'{}'", format!("{written}{rest}").replace('\'', "''")))
    }
}
