//! Other names for what definitions mean. PostgreSQL keeps numbers of functions, types and sequences
//! where the catalog keeps text; so once one of them has another name or another schema, the texts
//! that mean it say the new one: defaults, conditions, what columns and indexes are computed from,
//! views. A text that cannot be made to mean what it meant is refused.

use std::collections::BTreeMap;

use archipel_sql::catalog::names::{parse_name_text, quote_identifier, quote_qualified};
use archipel_sql::catalog::{Catalog, Object, TableKind, UserType};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::parser::{Lexeme, LexemeKind, lexemes};
use archipel_sql::type_kind::TypeKind;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};

use super::stored_expression::{texts_of, texts_of_domain, texts_of_routine};
use crate::bind::Clause;
use crate::bind::stored_expression::{About, bind_text, definition_path};
use crate::bind::visit::{visit_expr_mut, visit_rel_mut};
use crate::bound::{BoundExpr, BoundQuery, ExprKind};
use crate::data_type::domain_form;
use crate::relation::view_query;
use crate::work::{Work, change};

/// What texts say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A routine, by its calls.
    Call(Oid),
    Type,
    /// A relation, in literals of regclass: what else says its name holds its number.
    Relation(Oid),
    /// A label of an enum: a literal.
    Label,
    /// A field of a composite value.
    Field,
}

/// A new name: schema and name. Labels and fields have no schema.
#[derive(Debug)]
pub(crate) struct Renaming {
    pub said: Said,
    pub from: (String, String),
    pub to: (String, String),
}

/// Two catalogs, and what a text means in each of them.
struct Meanings<'m> {
    before: &'m Catalog,
    after: &'m Catalog,
    /// The session's, for which texts are written anew.
    path: &'m [String],
    /// How a bound tree shows the routine or table, and how from now on.
    shown: Option<(String, String)>,
}

impl Meanings<'_> {
    /// A bound tree's text with the routine or table as it is now.
    fn current(&self, text: String) -> String {
        match &self.shown {
            Some((before, after)) => text.replace(before.as_str(), after),
            None => text,
        }
    }

    fn of_text(
        &self,
        (catalog, path): (&Catalog, &[String]),
        text: &str,
        (about, clause, target): (&About, Clause, Option<Type>),
    ) -> Option<String> {
        let mut bound = bind_text(catalog, path, text, about, clause).ok()?;
        if let ExprKind::Const(Datum::Text(literal)) = &bound.kind
            && bound.ty.oid == Oid::UNKNOWN
            && let Some(target) = target
        {
            // It becomes a relation, or a label, where it goes.
            if target.oid == Oid::REGCLASS {
                let name = parse_name_text(literal).ok()?;
                let relation = catalog.relation(name.schema.as_deref(), &name.name, path)?;
                return Some(format!("{:?}", relation.oid()));
            }
            if target.oid.element_kind() == Some(TypeKind::Enum)
                && let Some(ty) = element_of(target.oid).and_then(|element| catalog.user_type_of(element))
            {
                return with_elements(literal, |label| Some(format!("{:?}", ty.label(label)?.oid)));
            }
            if let Some(ty) = catalog.user_type_of(target.oid).filter(|ty| !ty.labels.is_empty()) {
                return ty.label(literal).map(|label| format!("{:?}", label.oid));
            }
        }
        visit_expr_mut(&mut bound, 0, &mut |part, nesting| unname(part, nesting, catalog));
        // Whether the row is that of the table before or after says nothing.
        Some(self.current(format!("{bound:?}")))
    }
}

/// How a domain is named in its error is not what a text means, nor how the labels in an array's text are.
fn unname(part: &mut BoundExpr, _: u16, catalog: &Catalog) -> bool {
    let ty = part.ty.oid;
    if ty.element_kind() == Some(TypeKind::Enum)
        && let ExprKind::ConvertIo(text) = &mut part.kind
        && let ExprKind::Const(Datum::Text(literal)) = &mut text.kind
        && let Some(labels) = element_of(ty).and_then(|element| catalog.user_type_of(element))
    {
        let numbers = with_elements(literal, |label| Some(format!("{:?}", labels.label(label)?.oid)));
        *literal = numbers.unwrap_or_default().into();
    }
    if let ExprKind::Domain { conditions, .. } = &mut part.kind {
        let conditions = std::sync::Arc::make_mut(conditions);
        conditions.domain.clear();
        conditions.schema.clear();
        conditions.name.clear();
    }
    true
}

/// An array's literal with some elements replaced: those for which there is another text. `None` for what
/// is no such literal.
fn with_elements(literal: &str, other: impl Fn(&str) -> Option<String>) -> Option<String> {
    if !literal.trim_start().starts_with('{') {
        return None;
    }
    let mut written = String::with_capacity(literal.len());
    let (mut element, mut is_quoted) = (String::new(), false);
    let mut characters = literal.chars();
    // Where the element that is being read begins in what is written.
    let mut begins = 0;
    while let Some(character) = characters.next() {
        match character {
            '{' | '}' | ',' if !is_quoted => {
                let name = element.trim();
                if let Some(other) = (!name.is_empty()).then(|| other(name)).flatten() {
                    written.truncate(begins);
                    written.push_str(&quoted_element(&other));
                }
                written.push(character);
                element.clear();
                begins = written.len();
                continue;
            }
            '"' => is_quoted = !is_quoted,
            '\\' => {
                written.push(character);
                let next = characters.next()?;
                element.push(next);
                written.push(next);
                continue;
            }
            _ => element.push(character),
        }
        written.push(character);
    }
    Some(written)
}

/// A label as an element of an array's literal.
fn quoted_element(label: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_';
    match !label.is_empty() && label.chars().all(is_plain) && !label.eq_ignore_ascii_case("null") {
        true => label.to_owned(),
        false => format!("\"{}\"", label.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

fn shown_query(mut query: BoundQuery, catalog: &Catalog) -> String {
    visit_rel_mut(&mut query.rel, 0, &mut |part, nesting| unname(part, nesting, catalog));
    format!("{query:?}")
}

impl Renaming {
    /// The new name of a type, or the one it had.
    pub fn of_type(before: &UserType, after: &UserType) -> Renaming {
        let name = |ty: &UserType| (ty.schema.clone(), ty.name.clone());
        Renaming { said: Said::Type, from: name(before), to: name(after) }
    }

    /// After the renaming: puts the new name into every text that means the object. `before` is the
    /// catalog with the old name.
    pub fn follow(&self, before: &Catalog, work: &mut Work<'_>) -> Result<()> {
        if self.from == self.to {
            return Ok(());
        }
        let after = work.catalog.clone();
        let shown = match self.said {
            Said::Call(oid) => before
                .routine_by_oid(oid)
                .zip(after.routine_by_oid(oid))
                .map(|(before, after)| (format!("{before:?}"), format!("{after:?}"))),
            Said::Relation(oid) => before
                .table_by_oid(oid)
                .zip(after.table_by_oid(oid))
                .map(|(before, after)| (format!("{before:?}"), format!("{after:?}"))),
            _ => None,
        };
        let path = work.search_path().to_vec();
        let meanings = Meanings { before, after: &after, path: &path, shown };
        let tables: BTreeMap<Oid, _> = before
            .tables()
            .filter(|table| table.kind != TableKind::System)
            .map(|table| (table.oid, table.clone()))
            .collect();
        for (oid, old) in tables {
            let Some(table) = after.table_by_oid(oid) else { continue };
            let (mut was, mut now) = ((*old).clone(), (*table).clone());
            let mut changed = false;
            let texts = texts_of(&mut was, &old).into_iter().zip(texts_of(&mut now, &table));
            // Columns come first, each with its default before what it is generated from.
            let targets = table
                .columns
                .iter()
                .flat_map(|column| column.default.iter().chain(&column.generated).map(|_| Some(column.ty)));
            let targets = targets.chain(std::iter::repeat(None));
            for (((text, seen, clause), (written, about, _)), target) in texts.zip(targets) {
                let schemas = (old.schema.as_str(), table.schema.as_str());
                let of = (clause, target, schemas);
                changed |= self.settle((text, &seen), (written, &about), of, &meanings)?;
            }
            if let Some(view) = &mut now.view {
                let meaning = |catalog: &Catalog, query: &str| {
                    let view = archipel_sql::catalog::View { query: query.to_owned(), ..view.clone() };
                    let bound = view_query::bound(&view, catalog, work).ok()?;
                    Some(meanings.current(shown_query(bound, catalog)))
                };
                let means = |query: &str, _| meaning(&after, query);
                let mut query = view.query.clone();
                if self.may_say(&query) && self.rewrite(&mut query, meaning(before, &view.query), &means)? {
                    view.query = query;
                    changed = true;
                }
            }
            if changed && now.kind == TableKind::Table {
                change::finish(now, work);
            } else if changed {
                work.put_table(now);
            }
        }
        self.follow_types(&meanings, work)?;
        self.follow_routines(&meanings, work)
    }

    fn follow_types(&self, meanings: &Meanings<'_>, work: &mut Work<'_>) -> Result<()> {
        let types: BTreeMap<Oid, _> = meanings.before.user_types().map(|ty| (ty.oid, ty.clone())).collect();
        for (oid, old) in types {
            let Some(ty) = meanings.after.user_type_by_oid(oid) else { continue };
            let (mut was, mut now) = ((*old).clone(), (*ty).clone());
            let (Some(old_domain), Some(domain)) = (&mut was.domain, &mut now.domain) else { continue };
            let mut changed = false;
            let base = domain.base;
            let texts = texts_of_domain(old_domain).into_iter().zip(texts_of_domain(domain));
            for ((text, seen, clause), (written, about, _)) in texts {
                let schemas = (old.schema.as_str(), ty.schema.as_str());
                let target = (clause == Clause::Default).then_some(base);
                let of = (clause, target, schemas);
                changed |= self.settle((text, &seen), (written, &about), of, meanings)?;
            }
            if changed {
                work.put(Object::Type(now.into()));
                domain_form::compile_anew(&ty, work);
            }
        }
        Ok(())
    }

    fn follow_routines(&self, meanings: &Meanings<'_>, work: &mut Work<'_>) -> Result<()> {
        let routines: BTreeMap<Oid, _> =
            meanings.before.routines_all().map(|routine| (routine.oid, routine.clone())).collect();
        for (oid, old) in routines {
            let Some(routine) = meanings.after.routine_by_oid(oid) else { continue };
            let (mut was, mut now) = ((*old).clone(), (*routine).clone());
            let mut changed = false;
            let texts = texts_of_routine(&mut was).into_iter().zip(texts_of_routine(&mut now));
            let targets = routine.args.iter().filter(|arg| arg.default.is_some()).map(|arg| Some(arg.ty));
            for (((text, seen, clause), (written, about, _)), target) in texts.zip(targets) {
                let schemas = (old.schema.as_str(), routine.schema.as_str());
                let of = (clause, target, schemas);
                changed |= self.settle((text, &seen), (written, &about), of, meanings)?;
            }
            if changed {
                now.version += 1;
                work.put(Object::Routine(now.into()));
            }
        }
        Ok(())
    }

    /// Rewrites a text, as it is written now, that would not mean any more what it meant.
    fn settle(
        &self,
        (text, seen): (&str, &About),
        (written, about): (&mut String, &About),
        (clause, target, (old, schema)): (Clause, Option<Type>, (&str, &str)),
        meanings: &Meanings<'_>,
    ) -> Result<bool> {
        if !self.may_say(text) {
            return Ok(false);
        }
        let (old, path) = (definition_path(old), definition_path(schema));
        let meant = meanings.of_text((meanings.before, &old), text, (seen, clause, target));
        let means = |text: &str, anew: bool| {
            let about = (about, clause, target);
            let there = meanings.of_text((meanings.after, &path), text, about)?;
            // New texts are read as the session writes them.
            let here = || meanings.of_text((meanings.after, meanings.path), text, about);
            (!anew || here().as_ref() == Some(&there)).then_some(there)
        };
        self.rewrite(written, meant, &means)
    }

    fn rewrite(
        &self,
        text: &mut String,
        meant: Option<String>,
        means: &dyn Fn(&str, bool) -> Option<String>,
    ) -> Result<bool> {
        if meant.is_none() || means(text, false) == meant {
            return Ok(false);
        }
        // What says no name that could be rewritten holds the relation's number.
        if matches!(self.said, Said::Relation(_)) && self.rewritten(text, true)? == *text {
            return Ok(false);
        }
        for qualified in [false, true] {
            let anew = self.rewritten(text, qualified)?;
            if means(&anew, true) == meant {
                *text = anew;
                return Ok(true);
            }
        }
        Err(SqlError::unsupported(format_args!("giving what the definition {text} names another name")))
    }

    /// Whether a text could say the old name, or the new one and mean something else with it.
    fn may_say(&self, text: &str) -> bool {
        let folded = |text: &str| match self.said {
            // As it is in a literal, and in an array in one.
            Said::Label => text.to_lowercase().replace("''", "'").replace('\\', ""),
            _ => text.to_lowercase(),
        };
        let text = folded(text);
        [&self.from.1, &self.to.1].into_iter().any(|name| text.contains(&folded(name)))
    }

    /// The text with the new name for the old.
    fn rewritten(&self, text: &str, qualified: bool) -> Result<String> {
        let parts = lexemes(text)?;
        let symbol = |at: usize| parts.get(at).map(|part| &text[part.range.clone()]);
        let new_name = |with_schema: bool| match qualified || with_schema {
            true if !self.to.0.is_empty() => quote_qualified(&self.to.0, &self.to.1),
            _ => quote_identifier(&self.to.1),
        };
        let (mut result, mut copied) = (String::with_capacity(text.len() + 16), 0);
        for (at, Lexeme { kind, range }) in parts.iter().enumerate() {
            let before = at.checked_sub(1).and_then(symbol);
            let (start, written) = match kind {
                LexemeKind::Word { value, .. } if *value == self.from.1 => {
                    let schema = at.checked_sub(2).map(|at| &parts[at]).filter(|part| {
                        before == Some(".")
                            && matches!(&part.kind, LexemeKind::Word { value, .. } if *value == self.from.0)
                    });
                    let next = parts.get(at + 1);
                    let is_typed = || {
                        let word = match schema {
                            Some(_) => at.checked_sub(3).and_then(symbol),
                            None => before,
                        };
                        word == Some("::")
                            || word.is_some_and(|word| word.eq_ignore_ascii_case("as"))
                            || next.is_some_and(|next| matches!(next.kind, LexemeKind::String(_)))
                    };
                    let elsewhere = before == Some(".") && schema.is_none();
                    let says = match self.said {
                        Said::Call(_) => !elsewhere && symbol(at + 1) == Some("("),
                        Said::Type => !elsewhere && is_typed(),
                        Said::Field => before == Some("."),
                        Said::Relation(_) | Said::Label => false,
                    };
                    if !says {
                        continue;
                    }
                    let start = schema.map_or(range.start, |schema| schema.range.start);
                    (start, new_name(schema.is_some()))
                }
                LexemeKind::String(value) => {
                    let new = match self.said {
                        Said::Label if *value == self.from.1 => self.to.1.clone(),
                        Said::Label => {
                            let other = |label: &str| (label == self.from.1).then(|| self.to.1.clone());
                            match with_elements(value, other) {
                                Some(array) if array != *value => array,
                                _ => continue,
                            }
                        }
                        Said::Relation(_) | Said::Type => match parse_name_text(value) {
                            Ok(name) if name.name == self.from.1 => match &name.schema {
                                Some(schema) if *schema != self.from.0 => continue,
                                schema => new_name(schema.is_some()),
                            },
                            _ => continue,
                        },
                        _ => continue,
                    };
                    (range.start, format!("'{}'", new.replace('\'', "''")))
                }
                _ => continue,
            };
            result.push_str(&text[copied..start]);
            result.push_str(&written);
            copied = range.end;
        }
        result.push_str(&text[copied..]);
        Ok(result)
    }
}
