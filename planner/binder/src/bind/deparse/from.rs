//! FROM clauses: tables with the names that they and their columns have now, and joins.

use archipel_sql::catalog::Column;
use archipel_sql::parser::using_alias;
use sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins,
};

use super::name::CurrentName;
use super::query::{ITEM, Page};
use super::*;
use crate::bind::name::{own_rows, schema_and_name};

impl Deparser<'_, '_> {
    /// Runs `work` with the relations of a FROM clause in sight.
    pub(super) fn over<T>(
        &mut self,
        from: &[TableWithJoins],
        work: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let (_, relations) = self.binder.bind_from_clause(from).ok()?;
        let names = self.current_names(from);
        self.current.push(names);
        self.binder.levels.push(Level::new(LevelKind::Query, relations));
        let result = work(self);
        self.binder.levels.pop();
        self.current.pop();
        result
    }

    /// What the tables of a FROM clause are called now.
    fn current_names(&self, from: &[TableWithJoins]) -> Vec<CurrentName> {
        let joined = from.iter().flat_map(|item| item.joins.iter().map(|join| &join.relation));
        let using: Vec<String> = from.iter().flat_map(|item| &item.joins).flat_map(used_names).collect();
        let mut names: Vec<CurrentName> = Vec::new();
        for factor in from.iter().map(|item| &item.relation).chain(joined) {
            let TableFactor::Table { name, alias, .. } = factor else { continue };
            let Ok((schema, name)) = schema_and_name(&own_rows(name).0) else { continue };
            let Some(reference) = self.binder.view_reference(schema.as_deref(), &name) else { continue };
            let Some(table) = self.catalog.table_by_oid(reference.relation) else { continue };
            let bound =
                alias.as_ref().map_or_else(|| reference.name.clone(), |alias| ident_name(&alias.name));
            // Two of one name: the later one keeps the name it had.
            let is_taken = names.iter().any(|known| known.shown == table.name);
            let shown = if alias.is_some() || is_taken { bound.clone() } else { table.name.clone() };
            let mut table = alias.as_ref().is_none_or(|alias| alias.columns.is_empty()).then_some(table);
            // USING joins by the names that columns had.
            let is_joined = |(old, new): (&String, &Column)| *old != new.name && using.contains(old);
            let listed = table
                .take_if(|table| reference.columns.iter().zip(&table.columns).any(is_joined))
                .map(|_| reference.columns.clone());
            names.push(CurrentName { bound, shown, table, listed });
        }
        names
    }

    /// What a column and its relation are called.
    pub(super) fn named_now(&self, bound: &BoundExpr) -> Option<(String, String)> {
        let ExprKind::Column { index, depth: 0 } = bound.kind else { return None };
        let relations = self.binder.levels.last()?.relations.iter().filter(|relation| relation.qualified);
        for relation in relations {
            let is_it = |column: &crate::bind::level::ScopeColumn| matches!(column.expr.kind, ExprKind::Column { index: own, depth: 0 } if own == index);
            let Some(place) = relation.columns.iter().position(is_it) else { continue };
            let name = relation.name.as_ref()?;
            let now = self.current.last().and_then(|names| names.iter().find(|known| known.bound == *name));
            let column = now.and_then(|now| now.table.as_ref()?.columns.get(place));
            let column = column.map_or(&relation.columns[place].name, |column| &column.name);
            return Some((now.map_or(name, |now| &now.shown).clone(), column.clone()));
        }
        None
    }

    /// The same as text.
    pub(super) fn qualified(&self, bound: &BoundExpr) -> Option<String> {
        let (relation, column) = self.named_now(bound)?;
        Some(format!("{}.{}", self.identifier(&relation), self.identifier(&column)))
    }

    pub(super) fn joined_item(&mut self, item: &TableWithJoins, page: &mut Page) -> Option<()> {
        if !self.pretty {
            page.push(&"(".repeat(item.joins.len()));
        }
        self.factor(&item.relation, page)?;
        for join in &item.joins {
            self.join(join, page)?;
            if !self.pretty {
                page.push(")");
            }
        }
        Some(())
    }

    fn join(&mut self, join: &Join, page: &mut Page) -> Option<()> {
        let (word, constraint) = word_and_constraint(join)?;
        page.clause(word, ITEM);
        if matches!(join.relation, TableFactor::NestedJoin { .. }) {
            return None;
        }
        self.factor(&join.relation, page)?;
        match constraint {
            JoinConstraint::None => {}
            JoinConstraint::Natural => return None,
            JoinConstraint::On(condition) => {
                let text = self.condition(condition, Clause::JoinOn)?;
                page.push(&if self.pretty { format!(" ON {text}") } else { format!(" ON ({text})") });
            }
            JoinConstraint::Using(columns) => {
                let names = columns.iter().map(|column| {
                    let (_, name) = schema_and_name(column).ok()?;
                    using_alias(&name).is_none().then(|| self.identifier(&name))
                });
                page.push(&format!(" USING ({})", names.collect::<Option<Vec<_>>>()?.join(", ")));
            }
        }
        Some(())
    }

    fn factor(&mut self, factor: &TableFactor, page: &mut Page) -> Option<()> {
        match factor {
            TableFactor::Table { name, alias, args: None, sample: None, with_ordinality: false, .. } => {
                self.table(name, alias.as_ref(), page)
            }
            TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None } => {
                page.push("(");
                // Its own names come first, so that those around it are in nobody's way.
                let outer = self.indent;
                self.query(subquery, None, page)?;
                self.indent = outer;
                self.clause = Clause::Select;
                page.push(&format!(") {}", self.identifier(&ident_name(&alias.name))));
                self.column_aliases(alias, page)
            }
            _ => None,
        }
    }

    fn table(&mut self, name: &ObjectName, alias: Option<&TableAlias>, page: &mut Page) -> Option<()> {
        let (name, only) = own_rows(name);
        let (schema, name) = schema_and_name(&name).ok()?;
        let reference = self.binder.view_reference(schema.as_deref(), &name)?.clone();
        let table = self.catalog.table_by_oid(reference.relation)?;
        let visible = self.catalog.table(None, &table.name, self.search_path);
        if only {
            page.push("ONLY ");
        }
        page.push(&match visible.is_some_and(|found| found.oid == table.oid) {
            true => self.identifier(&table.name),
            false => self.quoting().qualified(&table.schema, &table.name),
        });
        if let Some(alias) = alias {
            page.push(&format!(" {}", self.identifier(&ident_name(&alias.name))));
            if !alias.columns.is_empty() {
                return self.column_aliases(alias, page);
            }
        } else {
            let names = self.current.last()?;
            let now = names.iter().find(|known| known.bound == reference.name)?;
            if now.shown != table.name || now.listed.is_some() {
                page.push(&format!(" {}", self.identifier(&now.shown)));
            }
        }
        let names = self.current.last()?;
        let bound = alias.map_or_else(|| reference.name.clone(), |alias| ident_name(&alias.name));
        let now = names.iter().find(|known| known.bound == bound);
        if let Some(listed) = now.and_then(|now| now.listed.as_ref()) {
            let names: Vec<_> = listed.iter().map(|name| self.identifier(name)).collect();
            page.push(&format!("({})", names.join(", ")));
        }
        Some(())
    }

    /// The names of all columns of a relation whose alias names some.
    fn column_aliases(&mut self, alias: &TableAlias, page: &mut Page) -> Option<()> {
        if alias.columns.is_empty() {
            return Some(());
        }
        let name = ident_name(&alias.name);
        let relations = &self.binder.levels.last()?.relations;
        let mut named = relations.iter().filter(|relation| relation.qualified);
        let relation = named.find(|relation| relation.name.as_ref() == Some(&name))?;
        let names: Vec<_> = relation.columns.iter().map(|column| self.identifier(&column.name)).collect();
        page.push(&format!("({})", names.join(", ")));
        Some(())
    }
}

/// How a join is written, and what its rows have to meet.
fn word_and_constraint(join: &Join) -> Option<(&'static str, &JoinConstraint)> {
    Some(match &join.join_operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (" JOIN ", constraint),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (" LEFT JOIN ", constraint),
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (" RIGHT JOIN ", constraint)
        }
        JoinOperator::FullOuter(constraint) => (" FULL JOIN ", constraint),
        JoinOperator::CrossJoin(constraint) => (" CROSS JOIN ", constraint),
        _ => return None,
    })
}

/// The columns that a join is by.
fn used_names(join: &Join) -> Vec<String> {
    match word_and_constraint(join) {
        Some((_, JoinConstraint::Using(columns))) => {
            columns.iter().filter_map(|column| Some(schema_and_name(column).ok()?.1)).collect()
        }
        _ => Vec::new(),
    }
}
