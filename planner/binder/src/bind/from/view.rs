//! Views in FROM: a view's query, bound where its name stands.
//!
//! Of a security barrier the conditions come before those of whoever reads it, which could tell of rows that
//! it does not show by what they fail with, or say. Where others might be asked first, none goes into it.

use archipel_sql::ast::RowLockClause;
use archipel_sql::catalog::{REFERENCE_SCHEMA, TableRef, View, ViewReference};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;
use sqlparser::ast::TableAlias;

use super::Source;
use super::barrier::{behind_barrier, is_asked_first};
use crate::bind::binder::{BindEnv, Binder};
use crate::bind::level::{Relation, ScopeColumn};
use crate::bound::*;

impl Binder<'_, '_> {
    /// A view's rows, under the names it gives its columns.
    pub(crate) fn view(&mut self, table: &TableRef, alias: Option<&TableAlias>) -> Result<Source> {
        let mut relation = self.table_relation(table, alias, Some(&table.schema))?;
        // Whole rows of a view are made of its columns, as those of a subquery.
        relation.table = Some(table.clone());
        // A lock on a view reaches the tables in it.
        let locks: Vec<RowLockClause> = self
            .locks
            .iter()
            .filter(|lock| lock.of.is_none() || lock.of.as_deref() == relation.name.as_deref())
            .map(|lock| RowLockClause { of: None, ..lock.clone() })
            .collect();
        let BoundQuery { rel, .. } = self.nested(|binder| binder.view_query(table, locks))?;
        let is_barrier = table.view.as_ref().is_some_and(View::is_barrier);
        let rel = if is_barrier && !is_asked_first(&rel) { behind_barrier(rel) } else { rel };
        Ok((rel, vec![relation]))
    }

    pub(crate) fn view_query(&mut self, table: &TableRef, locks: Vec<RowLockClause>) -> Result<BoundQuery> {
        let Some(view) = &table.view else { return Err(SqlError::internal("a view without a query")) };
        let query = archipel_sql::parser::parse_query(&view.query)?;
        let mut env = BindEnv::new(self.env.catalog, &view.search_path, self.env.context);
        env.shown_to = Some(self.env.display_path());
        env.references = &view.references;
        env.params_fixed = true;
        env.is_settled = true;
        env.late_literals = self.env.late_literals;
        env.acting = self.acting_in(table.oid, view);
        env.reader = self.env.reader;
        env.policies_around = self.env.policies_around.clone();
        env.is_target = std::mem::take(&mut self.env.is_target);
        let mut binder = Binder::new(&mut env);
        binder.nesting = self.nesting;
        binder.cte_count = self.cte_count;
        binder.row_numbers = self.row_numbers;
        let bound = binder.query_with_locks(&query, locks);
        (self.cte_count, self.row_numbers) = (binder.cte_count, binder.row_numbers);
        let bound = bound?;
        self.env.session_dependent |= env.session_dependent;
        let needed = std::mem::take(&mut env.required);
        self.env.need_of(needed);
        Ok(bound)
    }

    /// In whose name a view reads what it reads; `None`: of whoever runs the statement, also where
    /// another view stands around it.
    pub(crate) fn acting_in(&self, view: Oid, stored: &View) -> Option<Oid> {
        (!stored.is_of_invoker()).then(|| self.env.catalog.owner(view))
    }

    /// The relation a view's stored query means by a number.
    pub(crate) fn view_reference(&self, schema: Option<&str>, name: &str) -> Option<&ViewReference> {
        if schema != Some(REFERENCE_SCHEMA) {
            return None;
        }
        self.env.references.get(name.parse::<usize>().ok()?)
    }

    /// The names a relation of a view's query offers: those of the day the view was made.
    pub(crate) fn referenced_relation(&self, table: &TableRef, reference: &ViewReference) -> Relation {
        let columns = reference
            .columns
            .iter()
            .zip(&table.columns)
            .enumerate()
            .map(|(i, (name, column))| ScopeColumn {
                name: name.clone(),
                expr: BoundExpr::column(i, column.ty),
                source: Some((table.oid, i as u16 + 1)),
                hidden: false,
            })
            .collect();
        let mut relation = Relation::new(Some(reference.name.clone()), columns);
        relation.table = Some(table.clone());
        relation.schema = Some(table.schema.clone());
        relation
    }
}
