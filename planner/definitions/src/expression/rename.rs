//! Another name for a field of a composite type, or of a table's rows: texts that the catalog keeps say fields
//! by their names, while what else has a name has its id there ([`archipel_sql::catalog::stored_name`]). A text
//! that cannot be made to mean what it meant is refused.

use std::collections::BTreeMap;
use std::ops::Range;

use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{Catalog, Object, Routine, RoutineRef, TableKind, View};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::parser::{LexemeKind, lexemes};
use archipel_sql::types::Oid;

use super::literal::{StoredStatements, shape, shape_of};
use super::stored_expression::{may_say, texts_of, texts_of_domain, texts_of_routine};
use crate::bind::Clause;
use crate::bind::stored_expression::{About, DEFINITION_PATH, bind_text};
use crate::bound::BoundStatement;
use crate::data_type::domain_form;
use crate::relation::view_query;
use crate::work::{Work, change};

/// How many places that may say a field are tried one by one.
const CHOSEN_MAX: usize = 6;

/// A field's old name and its new one.
#[derive(Debug)]
pub(crate) struct FieldRenaming<'n> {
    pub from: &'n str,
    pub to: &'n str,
    /// The field is a table's column, which texts say otherwise, too: they stay where nobody can tell.
    pub of_table: bool,
}

/// After a routine got another name: puts that before the arguments that its body says behind the old one.
pub(crate) fn follow_routine_name(before: &Routine, after: &mut Routine, work: &Work<'_>) -> Result<()> {
    let Some(of) = &before.traits.stored else { return Ok(()) };
    let stored =
        StoredStatements { references: &of.references, routine: Some(before), search_path: &of.search_path };
    let parts = lexemes(&of.text)?;
    let symbol = |at: usize| parts.get(at).map(|part| &of.text[part.range.clone()]);
    let (mut anew, mut copied) = (String::with_capacity(of.text.len() + 16), 0);
    for (at, part) in parts.iter().enumerate() {
        let begins = at.checked_sub(1).and_then(symbol) != Some(".") && symbol(at + 1) == Some(".");
        if begins && matches!(&part.kind, LexemeKind::Word { value, .. } if *value == before.name) {
            anew.push_str(&of.text[copied..part.range.start]);
            anew.push_str(&quote_identifier(&after.name));
            copied = part.range.end;
        }
    }
    anew.push_str(&of.text[copied..]);
    let renamed = StoredStatements { routine: Some(&*after), ..stored };
    let meant = shape_of(&of.text, stored, &work.catalog, work);
    let follows = meant.is_some() && shape_of(&anew, renamed, &work.catalog, work) == meant;
    if let Some(body) = after.traits.stored.as_mut().filter(|_| follows) {
        body.text = anew;
    }
    Ok(())
}

/// What a text means in a catalog.
fn meaning(catalog: &Catalog, text: &str, about: &About, clause: Clause) -> Option<String> {
    bind_text(catalog, DEFINITION_PATH, text, about, clause).ok().map(|bound| format!("{bound:?}"))
}

impl FieldRenaming<'_> {
    /// After the renaming: puts the new name into every text that means the field. `before` is the catalog
    /// with the old name.
    pub fn follow(&self, before: &Catalog, work: &mut Work<'_>) -> Result<()> {
        if self.from == self.to {
            return Ok(());
        }
        let after = work.catalog.clone();
        let tables = before.tables().filter(|table| table.kind != TableKind::System);
        let tables: BTreeMap<Oid, _> = tables.map(|table| (table.oid, table.clone())).collect();
        for (oid, old) in tables {
            let Some(table) = after.table_by_oid(oid) else { continue };
            if !old.kept_texts().any(|text| self.may_say_of_row(text)) {
                continue;
            }
            let (mut was, mut now) = ((*old).clone(), (*table).clone());
            let mut changed = false;
            let texts = texts_of(&mut was, &old).into_iter().zip(texts_of(&mut now, &table));
            for ((_, seen, clause), (text, about, _)) in texts {
                changed |= self.settle(text, (before, &seen), (&after, &about), clause)?;
            }
            for view in now.stored_queries_mut() {
                let means = |catalog: &Catalog, query: &str| {
                    let view = View { query: query.to_owned(), ..view.clone() };
                    let bound = view_query::bound(&view, catalog, work).ok()?;
                    Some(shape(BoundStatement::Query(bound)))
                };
                let mut query = view.query.clone();
                if self.may_say_of_row(&query)
                    && self.rewrite(&mut query, means(before, &view.query), &|query| means(&after, query))?
                {
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
        self.follow_types(before, &after, work)?;
        self.follow_routines(before, &after, work)
    }

    fn follow_types(&self, before: &Catalog, after: &Catalog, work: &mut Work<'_>) -> Result<()> {
        let domains = after.user_types().filter(|ty| ty.domain.is_some());
        let types: BTreeMap<Oid, _> = domains.map(|ty| (ty.oid, ty.clone())).collect();
        for ty in types.into_values() {
            let mut now = (*ty).clone();
            let Some(domain) = &mut now.domain else { continue };
            let mut changed = false;
            for (text, about, clause) in texts_of_domain(domain) {
                changed |= self.settle(text, (before, &about), (after, &about), clause)?;
            }
            if changed {
                work.put(Object::Type(now.into()));
                domain_form::compile_anew(&ty, work);
            }
        }
        Ok(())
    }

    fn follow_routines(&self, before: &Catalog, after: &Catalog, work: &mut Work<'_>) -> Result<()> {
        let could = |routine: &&RoutineRef| {
            let mut defaults = routine.args.iter().filter_map(|arg| arg.default.as_ref());
            defaults.any(|text| self.may_say_of_row(text))
                || routine.traits.stored.as_ref().is_some_and(|body| self.may_say(&body.text))
        };
        let routines: BTreeMap<Oid, _> =
            after.routines_all().filter(could).map(|found| (found.oid, found.clone())).collect();
        for routine in routines.into_values() {
            let mut now = (*routine).clone();
            let mut changed = false;
            for (text, about, clause) in texts_of_routine(&mut now) {
                changed |= self.settle(text, (before, &about), (after, &about), clause)?;
            }
            if let (Some(body), Some(of)) = (&mut now.traits.stored, &routine.traits.stored) {
                let stored = StoredStatements {
                    references: &of.references,
                    routine: Some(&*routine),
                    search_path: &of.search_path,
                };
                let mut text = of.text.clone();
                let means = |catalog: &Catalog, text: &str| shape_of(text, stored, catalog, work);
                if self.may_say(&text)
                    && self.rewrite(&mut text, means(before, &of.text), &|text| means(after, text))?
                {
                    body.text = text;
                    changed = true;
                }
            }
            if changed {
                now.version += 1;
                work.put(Object::Routine(now.into()));
            }
        }
        Ok(())
    }

    /// Rewrites a text that would not mean any more what it meant.
    fn settle(
        &self,
        text: &mut String,
        (before, seen): (&Catalog, &About),
        (after, about): (&Catalog, &About),
        clause: Clause,
    ) -> Result<bool> {
        if !self.may_say_of_row(text) {
            return Ok(false);
        }
        let meant = meaning(before, text, seen, clause);
        self.rewrite(text, meant, &|text| meaning(after, text, about, clause))
    }

    fn rewrite(
        &self,
        text: &mut String,
        meant: Option<String>,
        means: &dyn Fn(&str) -> Option<String>,
    ) -> Result<bool> {
        if meant.is_none() || means(text) == meant {
            return Ok(false);
        }
        let places = self.places(text)?;
        // It does not say the name: what has changed is the type.
        if places.is_empty() {
            return Ok(false);
        }
        // A column or another type's field may have the same name.
        let all = u32::MAX >> (u32::BITS - places.len().min(CHOSEN_MAX) as u32);
        let mut anew = (1..=all).rev().map(|chosen| self.rewritten(text, &places, chosen));
        let Some(anew) = anew.find(|anew| means(anew) == meant) else {
            if self.of_table {
                return Ok(false);
            }
            return Err(SqlError::unsupported("giving a field another name that a definition uses"));
        };
        *text = anew;
        Ok(true)
    }

    /// Whether a text could say the old name, or the new one and mean something else with it.
    fn may_say(&self, text: &str) -> bool {
        may_say(text, &[self.from.to_lowercase(), self.to.to_lowercase()])
    }

    /// As [`Self::may_say`], where no argument bears a name: what is before a field is in parentheses.
    fn may_say_of_row(&self, text: &str) -> bool {
        (!self.of_table || text.contains(").")) && self.may_say(text)
    }

    /// Where a text says the old name as that of a field, or may.
    fn places(&self, text: &str) -> Result<Vec<Range<usize>>> {
        let parts = lexemes(text)?;
        let says = |at: &usize| {
            let behind_dot = at.checked_sub(1).is_some_and(|dot| &text[parts[dot].range.clone()] == ".");
            behind_dot && matches!(&parts[*at].kind, LexemeKind::Word { value, .. } if value == self.from)
        };
        Ok((0..parts.len()).filter(says).map(|at| parts[at].range.clone()).collect())
    }

    /// The text with the new name in the chosen places; beyond the first few in all.
    fn rewritten(&self, text: &str, places: &[Range<usize>], chosen: u32) -> String {
        let (mut result, mut copied) = (String::with_capacity(text.len() + 16), 0);
        for (number, range) in places.iter().enumerate() {
            if number >= CHOSEN_MAX || chosen & (1 << number) != 0 {
                result.push_str(&text[copied..range.start]);
                result.push_str(&quote_identifier(self.to));
                copied = range.end;
            }
        }
        result.push_str(&text[copied..]);
        result
    }
}
