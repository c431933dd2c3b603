//! Views: their stored queries, and what they show of them.

use crate::error::Result;
use crate::parser::{Lexeme, LexemeKind, lexemes};
use crate::types::Oid;

use rustc_hash::FxHashSet;

use super::view_reference::ViewReference;
use crate::catalog::names::{quote_identifier, quote_qualified};
use crate::catalog::stored_name::with_names;
use crate::catalog::{Catalog, REFERENCE_SCHEMA, TableRef, View};

/// What stands in a view's query for its `n`-th relation.
pub fn reference(n: usize) -> String {
    format!("\"{REFERENCE_SCHEMA}\".\"{n}\"")
}

impl View {
    /// Whether what it reads is read with the rights of whoever asks, not its owner's.
    pub fn is_of_invoker(&self) -> bool {
        self.is_set("security_invoker")
    }

    /// Whether the conditions of whoever reads it are to learn nothing of rows that it does not show.
    pub fn is_barrier(&self) -> bool {
        self.is_set("security_barrier")
    }

    fn is_set(&self, option: &str) -> bool {
        let said = self.options.iter().find(|(name, _)| name == option);
        said.is_some_and(|(_, value)| crate::io::parse_bool(value) == Some(true))
    }

    /// Whether the view reads this relation itself.
    pub fn reads(&self, relation: Oid) -> bool {
        self.references.iter().any(|reference| reference.relation == relation)
    }

    /// The view when a column of a relation has gone, which it must not have used.
    #[must_use]
    pub fn without_column(&self, relation: Oid, place: usize) -> View {
        let mut view = self.clone();
        ViewReference::lose_column(&mut view.references, relation, place);
        view
    }

    /// The view as it would be if nobody could name a column of a relation.
    #[must_use]
    pub fn hiding_column(&self, relation: Oid, place: usize) -> View {
        let mut view = self.clone();
        ViewReference::hide_column(&mut view.references, relation, place);
        view
    }

    /// The query with the relations under the names they have now.
    pub fn query_text(&self, catalog: &Catalog, search_path: &[String]) -> Result<String> {
        query_text(&self.query, &self.references, catalog, search_path)
    }
}

/// A stored query with the relations under the names they have now, as this search path finds them.
pub fn query_text(
    query: &str,
    references: &[ViewReference],
    catalog: &Catalog,
    search_path: &[String],
) -> Result<String> {
    let lexemes = lexemes(query)?;
    let mut text = String::with_capacity(query.len());
    let mut copied = 0;
    for (place, lexeme) in lexemes.iter().enumerate() {
        let LexemeKind::Word { value, .. } = &lexeme.kind else { continue };
        if value != REFERENCE_SCHEMA {
            continue;
        }
        let Some((number, end)) = lexemes.get(place + 2).and_then(|next| match &next.kind {
            LexemeKind::Word { value, .. } => Some((value.parse::<usize>().ok()?, next.range.end)),
            _ => None,
        }) else {
            continue;
        };
        let Some(reference) = references.get(number) else { continue };
        text.push_str(&query[copied..lexeme.range.start]);
        copied = end;
        let Some(table) = catalog.table_by_oid(reference.relation) else {
            text.push_str(&quote_identifier(&reference.name));
            continue;
        };
        let visible =
            catalog.table(None, &table.name, search_path).is_some_and(|found| found.oid == table.oid);
        text.push_str(&if visible {
            quote_identifier(&table.name)
        } else {
            quote_qualified(&table.schema, &table.name)
        });
        let renamed = reference.columns.iter().zip(&table.columns).any(|(old, new)| *old != new.name);
        let is_target = is_changed(&lexemes, place);
        // Words that may be names, but none of what they follow.
        let goes_on = |word: &str| is_target && matches!(word, "set" | "values" | "overriding");
        let aliased = lexemes.get(place + 3).is_some_and(|next| match &next.kind {
            LexemeKind::Word { value, quoted, .. } => {
                value == "as" || *quoted || !crate::parser::is_reserved(value) && !goes_on(value)
            }
            _ => false,
        });
        if !aliased && (renamed || table.name != reference.name) {
            text.push_str(if is_target { " AS " } else { " " });
            text.push_str(&quote_identifier(&reference.name));
            if renamed && !is_target {
                let names: Vec<String> =
                    reference.columns.iter().map(|name| quote_identifier(name)).collect();
                text.push_str(&format!("({})", names.join(", ")));
            }
        }
    }
    text.push_str(&query[copied..]);
    with_names(&text, catalog, search_path)
}

/// Whether a relation whose name begins at a place is what a statement changes.
fn is_changed(lexemes: &[Lexeme], place: usize) -> bool {
    let mut words = lexemes[..place].iter().rev().map(|lexeme| match &lexeme.kind {
        LexemeKind::Word { value, quoted: false, .. } => value.as_str(),
        _ => "",
    });
    let mut next = || words.next().unwrap_or_default();
    match next() {
        "only" => match next() {
            "from" => next() == "delete",
            word => word == "update",
        },
        "from" => next() == "delete",
        word => matches!(word, "into" | "update"),
    }
}

impl Catalog {
    /// The views that read a relation, and those that read them: each behind all that it reads, and
    /// otherwise behind those made before it (findDependentObjects).
    pub fn views_over(&self, relation: Oid) -> Vec<TableRef> {
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        self.follow_views(relation, &mut found, &mut seen);
        found.reverse();
        found
    }

    /// Adds the views over a relation, newest first, each behind those over it.
    fn follow_views(&self, relation: Oid, found: &mut Vec<TableRef>, seen: &mut FxHashSet<Oid>) {
        let reads = |view: &&TableRef| view.view.as_ref().is_some_and(|view| view.reads(relation));
        let mut views: Vec<&TableRef> = self.tables_saying(&[relation]).filter(reads).collect();
        views.reverse();
        for view in views {
            if seen.insert(view.oid) {
                self.follow_views(view.oid, found, seen);
                found.push(view.clone());
            }
        }
    }
}
