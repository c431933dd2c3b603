//! WITH, and the queries that it names.

use sqlparser::ast::{CteAsMaterialized, With};

use super::query::{CLAUSE, Page, WithClause};
use super::*;
use crate::bind::query::search_cycle::{clauses_of, place_of};

impl Deparser<'_, '_> {
    /// Runs `work` with the queries of a WITH in sight; it is told how many others there are.
    pub(super) fn among_ctes<T>(
        &mut self,
        with: Option<&With>,
        work: impl FnOnce(&mut Self, usize) -> Option<T>,
    ) -> Option<T> {
        let before = self.binder.ctes.len();
        self.binder.with_clause(with, false).ok()?;
        let result = work(self, before);
        self.binder.ctes.truncate(before);
        result
    }

    /// The clause itself (get_with_clause).
    pub(super) fn with_clause(&mut self, clause: Option<WithClause<'_>>, page: &mut Page) -> Option<()> {
        let Some(WithClause { with, before }) = clause else { return Some(()) };
        // What is said of the query's own columns.
        let literals = self.literals.take();
        let visible = std::mem::replace(&mut self.columns_visible, true);
        page.indent += CLAUSE;
        page.push(" ");
        let mut word = if with.recursive { "WITH RECURSIVE " } else { "WITH " };
        for (place, cte) in with.cte_tables.iter().enumerate() {
            if place_of(&clauses_of(cte).ok()?).is_some() {
                return None;
            }
            page.push(word);
            word = ", ";
            page.push(&self.identifier(&ident_name(&cte.alias.name)));
            if !cte.alias.columns.is_empty() {
                let columns = cte.alias.columns.iter();
                let names: Vec<String> =
                    columns.map(|column| self.identifier(&ident_name(&column.name))).collect();
                page.push(&format!("({})", names.join(", ")));
            }
            page.push(match cte.materialized {
                None => " AS (",
                Some(CteAsMaterialized::Materialized) => " AS MATERIALIZED (",
                Some(CteAsMaterialized::NotMaterialized) => " AS NOT MATERIALIZED (",
            });
            page.line("", 0, 0, 0);
            // Without RECURSIVE it sees those before it.
            let later = match with.recursive {
                true => Vec::new(),
                false => self.binder.ctes.split_off(before + place),
            };
            let shown = self.query(&cte.query, None, page);
            self.binder.ctes.extend(later);
            shown?;
            page.line(")", 0, 0, 0);
        }
        page.indent -= CLAUSE;
        page.line("", 0, 0, 0);
        (self.literals, self.columns_visible) = (literals, visible);
        Some(())
    }
}
