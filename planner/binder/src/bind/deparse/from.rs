//! FROM clauses: tables with the names that they and their columns have now, and joins.

use archipel_sql::catalog::{Column, SYSTEM_COLUMNS};
use archipel_sql::parser::using_alias;
use sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins,
};

use super::name::CurrentName;
use super::query::{ITEM, Page};
use super::*;
use crate::bind::level::Relation;
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

    /// What the tables of a FROM clause are called now: no two of them, nor of the queries around, alike
    /// (set_rtable_names).
    fn current_names(&self, from: &[TableWithJoins]) -> Vec<CurrentName> {
        let factors = from.iter().flat_map(|item| {
            std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation))
        });
        let using: Vec<String> = from.iter().flat_map(|item| &item.joins).flat_map(used_names).collect();
        let mut names: Vec<CurrentName> = Vec::new();
        for factor in factors {
            let Some(mut name) = self.own_name(factor, &using) else { continue };
            let is_taken = |shown: &str| {
                names.iter().chain(self.current.iter().flatten()).any(|known| known.shown == shown)
            };
            let natural = name.shown.clone();
            let mut number = 0;
            while is_taken(&name.shown) {
                number += 1;
                name.shown = format!("{natural}_{number}");
            }
            names.push(name);
        }
        names
    }

    /// What an item of FROM would be called by itself.
    fn own_name(&self, factor: &TableFactor, using: &[String]) -> Option<CurrentName> {
        let plain =
            |name: String| CurrentName { shown: name.clone(), bound: name, table: None, listed: None };
        let (name, alias) = match factor {
            TableFactor::Table { name, alias, .. } => (name, alias),
            TableFactor::Derived { alias, .. } => return Some(plain(ident_name(&alias.as_ref()?.name))),
            _ => return None,
        };
        let (schema, name) = schema_and_name(&own_rows(name).0).ok()?;
        let alias_name = alias.as_ref().map(|alias| ident_name(&alias.name));
        let Some(reference) = self.binder.view_reference(schema.as_deref(), &name) else {
            return Some(plain(alias_name.unwrap_or(name)));
        };
        let table = self.catalog.table_by_oid(reference.relation)?;
        let bound = alias_name.clone().unwrap_or_else(|| reference.name.clone());
        let shown = alias_name.unwrap_or_else(|| table.name.clone());
        let mut table = alias.as_ref().is_none_or(|alias| alias.columns.is_empty()).then_some(table);
        // USING joins by the names that columns had.
        let is_joined = |(old, new): (&String, &Column)| *old != new.name && using.contains(old);
        let listed = table
            .take_if(|table| reference.columns.iter().zip(&table.columns).any(is_joined))
            .map(|_| reference.columns.clone());
        Some(CurrentName { bound, shown, table, listed })
    }

    /// What the items of FROM are called.
    pub(super) fn names_now(&self) -> Option<Vec<String>> {
        Some(self.current.last()?.iter().map(|known| known.shown.clone()).collect())
    }

    /// What the item of FROM that is bound by a name is called.
    pub(super) fn name_of(&self, bound: &str) -> Option<String> {
        let names = self.current.last()?;
        names.iter().find(|known| known.bound == bound).map(|known| known.shown.clone())
    }

    /// What a column and its relation are called.
    pub(super) fn named_now(&self, bound: &BoundExpr) -> Option<(String, String)> {
        let ExprKind::Column { index, depth } = bound.kind else { return None };
        // Of a query around, where it is one of its columns.
        let level = self.binder.levels.iter().rev().nth(usize::from(depth))?;
        let names = match self.current.len() {
            0 => None,
            _ => Some(self.current.iter().rev().nth(usize::from(depth))?),
        };
        let relations = level.relations.iter().filter(|relation| relation.qualified);
        for relation in relations {
            let is_it = |column: &crate::bind::level::ScopeColumn| matches!(column.expr.kind, ExprKind::Column { index: own, depth: 0 } if own == index);
            let Some(place) = relation.columns.iter().position(is_it) else { continue };
            let name = relation.name.as_ref()?;
            let now = names.and_then(|names| names.iter().find(|known| known.bound == *name));
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

    /// What a relation is called of which a name is a system column, and that.
    pub(super) fn system_column(&self, expr: &Expr) -> Option<(String, String)> {
        let (of, name) = match expr {
            Expr::Identifier(name) => (None, ident_name(name)),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [relation, name] => (Some(ident_name(relation)), ident_name(name)),
                _ => return None,
            },
            _ => return None,
        };
        if !SYSTEM_COLUMNS.contains(&name.as_str()) {
            return None;
        }
        for (depth, level) in self.binder.levels.iter().rev().enumerate() {
            let is_named = |relation: &&Relation| match &of {
                Some(of) => relation.qualified && relation.name.as_ref() == Some(of),
                None => relation.unqualified,
            };
            let has_it = |relation: &&Relation| {
                let mut columns = relation.columns.iter();
                relation.has_system_column(&name)
                    || columns.any(|column| column.hidden && column.name == name)
            };
            let Some(relation) = level.relations.iter().filter(is_named).find(has_it) else { continue };
            let bound = relation.name.as_ref()?;
            let names = self.current.iter().rev().nth(depth);
            let now = names.and_then(|names| names.iter().find(|known| known.bound == *bound));
            return Some((now.map_or(bound, |now| &now.shown).clone(), name));
        }
        None
    }

    /// A column, or what else a name is bound to.
    pub(super) fn column(&self, name: &str, bound: &BoundExpr) -> Option<Piece> {
        match bound.kind {
            ExprKind::Column { .. } if self.clause == Clause::DomainCheck => Some(Piece::simple("VALUE")),
            ExprKind::Column { .. } if self.names_relations => self.qualified(bound).map(Piece::simple),
            // As it is called now.
            ExprKind::Column { .. } if !self.current.is_empty() => {
                let (_, column) = self.named_now(bound)?;
                Some(Piece::simple(self.identifier(&column)))
            }
            ExprKind::Column { .. } => Some(Piece::simple(self.identifier(name))),
            ExprKind::Param(number) => self.argument(number),
            _ => None,
        }
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
                let outer = self.indent;
                let visible = std::mem::replace(&mut self.columns_visible, true);
                let shown = self.query(subquery, None, page);
                self.columns_visible = visible;
                shown?;
                self.indent = outer;
                self.clause = Clause::Select;
                let name = self.name_of(&ident_name(&alias.name))?;
                page.push(&format!(") {}", self.identifier(&name)));
                self.column_aliases(alias, page)
            }
            _ => None,
        }
    }

    fn table(&mut self, name: &ObjectName, alias: Option<&TableAlias>, page: &mut Page) -> Option<()> {
        let (name, only) = own_rows(name);
        let (schema, name) = schema_and_name(&name).ok()?;
        let Some(reference) = self.binder.view_reference(schema.as_deref(), &name).cloned() else {
            let named = schema.is_none() && !only;
            return if named { self.cte(&name, alias, page) } else { None };
        };
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
            let name = self.name_of(&ident_name(&alias.name))?;
            page.push(&format!(" {}", self.identifier(&name)));
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

    /// A query of WITH.
    fn cte(&mut self, name: &str, alias: Option<&TableAlias>, page: &mut Page) -> Option<()> {
        if !self.binder.ctes.iter().any(|cte| cte.name == name) {
            return None;
        }
        let bound = alias.map_or_else(|| name.to_owned(), |alias| ident_name(&alias.name));
        let shown = self.name_of(&bound)?;
        page.push(&self.identifier(name));
        if shown != name {
            page.push(&format!(" {}", self.identifier(&shown)));
        }
        alias.map_or(Some(()), |alias| self.column_aliases(alias, page))
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
