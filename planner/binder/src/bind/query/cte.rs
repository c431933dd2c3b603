//! WITH: the queries a query names, recursive and data-modifying ones included.

use std::ops::ControlFlow;

use archipel_sql::catalog::OF_DOMAIN;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::RecursionClauses;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use sqlparser::ast;
use sqlparser::ast::{Query, SetExpr, SetOperator, Visit, Visitor};

use super::search_cycle::{clauses_of, place_of};
use super::set_operation::{Options, options, set_quantifier, syntax};
use crate::bind::binder::Binder;
use crate::bind::level::VisibleCte;
use crate::bind::name::{ident_name, schema_and_name};
use crate::bind::span::item_span;
use crate::bound::*;

/// Whether a query names a relation, however deep.
fn refers_to(query: &Query, name: &str) -> bool {
    query.visit(&mut NameSearch { name, hidden: 0 }).is_break()
}

/// Looks for a name where no query inside has it for one of its own.
struct NameSearch<'n> {
    name: &'n str,
    /// How many queries around have it.
    hidden: u32,
}

impl NameSearch<'_> {
    /// Where a query's WITH has the name.
    fn place_in(&self, query: &Query) -> Option<usize> {
        let ctes = &query.with.as_ref()?.cte_tables;
        ctes.iter().position(|cte| ident_name(&cte.alias.name) == self.name)
    }
}

impl Visitor for NameSearch<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let Some(place) = self.place_in(query) else { return ControlFlow::Continue(()) };
        // Without RECURSIVE those up to the one of that name do not mean it.
        let before = query.with.iter().filter(|with| !with.recursive);
        let mut before = before.flat_map(|with| &with.cte_tables[..=place]);
        if self.hidden == 0 && before.any(|cte| refers_to(&cte.query, self.name)) {
            return ControlFlow::Break(());
        }
        self.hidden += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if self.place_in(query).is_some() {
            self.hidden -= 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ast::ObjectName) -> ControlFlow<()> {
        match schema_and_name(relation) {
            Ok((None, name)) if name == self.name && self.hidden == 0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Looks for the names of relations that a query does not have for its own.
#[derive(Default)]
struct FreeNames {
    found: FxHashSet<String>,
    /// How many queries around have a name, where they do.
    hidden: FxHashMap<String, u32>,
    /// The WITH clauses around, outermost first.
    around: Vec<OwnNames>,
}

/// The names of a WITH clause.
struct OwnNames {
    /// The query that it belongs to, by its address.
    of: *const Query,
    names: Vec<String>,
    /// The queries that are called so.
    queries: Vec<*const Query>,
    /// How many of them are in sight: without RECURSIVE those that have been looked at.
    seen: usize,
}

impl FreeNames {
    fn of(query: &Query) -> FxHashSet<String> {
        let mut names = FreeNames::default();
        let _ = query.visit(&mut names);
        names.found
    }

    fn hide(&mut self, name: &str) {
        match self.hidden.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                self.hidden.insert(name.to_owned(), 1);
            }
        }
    }
}

impl Visitor for FreeNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let Some(with) = &query.with else { return ControlFlow::Continue(()) };
        let names: Vec<String> = with.cte_tables.iter().map(|cte| ident_name(&cte.alias.name)).collect();
        let queries = with.cte_tables.iter().map(|cte| std::ptr::from_ref::<Query>(&cte.query)).collect();
        let seen = if with.recursive { names.len() } else { 0 };
        names[..seen].iter().for_each(|name| self.hide(name));
        self.around.push(OwnNames { of: query, names, queries, seen });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(own) = self.around.pop_if(|own| std::ptr::eq(own.of, query)) {
            for name in &own.names[..own.seen] {
                if let Some(count) = self.hidden.get_mut(name) {
                    *count -= 1;
                }
            }
        }
        let next = self.around.last_mut().and_then(|own| {
            let is_next = own.queries.get(own.seen).is_some_and(|next| std::ptr::eq(*next, query));
            is_next.then(|| {
                own.seen += 1;
                own.names[own.seen - 1].clone()
            })
        });
        if let Some(name) = next {
            self.hide(&name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ast::ObjectName) -> ControlFlow<()> {
        if let Ok((None, name)) = schema_and_name(relation)
            && self.hidden.get(&name).is_none_or(|count| *count == 0)
        {
            self.found.insert(name);
        }
        ControlFlow::Continue(())
    }
}

/// The first name that is there twice: its place when it comes again. PostgreSQL looks for another of each
/// name in turn.
fn repeated(names: &[String]) -> Option<usize> {
    let mut first: FxHashMap<&str, usize> = FxHashMap::default();
    let mut found: Option<(usize, usize)> = None;
    for (place, name) in names.iter().enumerate() {
        match first.get(name.as_str()) {
            Some(&before) if found.is_none_or(|(known, _)| before < known) => found = Some((before, place)),
            Some(_) => {}
            None => {
                first.insert(name, place);
            }
        }
    }
    found.map(|(_, place)| place)
}

impl Binder<'_, '_> {
    /// Binds the CTEs of a WITH clause and brings them into sight.
    pub(crate) fn with_clause(&mut self, with: Option<&ast::With>, top: bool) -> Result<Vec<Cte>> {
        let Some(ast::With { with_token: _, recursive, cte_tables }) = with else {
            return Ok(Vec::new());
        };
        let mut bound = Vec::with_capacity(cte_tables.len());
        let own: Vec<String> = cte_tables.iter().map(|cte| ident_name(&cte.alias.name)).collect();
        if let Some(again) = repeated(&own) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_ALIAS,
                format!("WITH query name \"{}\" specified more than once", own[again]),
            )
            .at(self.position(cte_tables[again].alias.name.span)));
        }
        let future = self.future_ctes.len();
        if !*recursive {
            // The last ones first: each goes when its turn has come.
            self.future_ctes.extend(own.iter().rev().cloned());
        }
        for i in self.definition_order(cte_tables, &own, *recursive)? {
            let cte = &cte_tables[i];
            let ast::Cte { alias, query, from: _, materialized: _, closing_paren_token: _ } = cte;
            if alias.at.is_some() {
                return Err(SqlError::unsupported("AT in a WITH query's name"));
            }
            let clauses = clauses_of(cte)?;
            let name = own[i].clone();
            if matches!(query.body.as_ref(), SetExpr::Merge(_)) {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "MERGE not supported in WITH query",
                )
                .at(self.position(alias.name.span)));
            }
            let names: Vec<String> = alias.columns.iter().map(|column| ident_name(&column.name)).collect();
            let id = self.cte_count;
            self.cte_count += 1;
            let (body, mut columns, returns) = if *recursive && refers_to(query, &name) {
                self.recursive_cte(id, (&alias.name, &names), query, &clauses, &mut bound)?
            } else if let Some(position) = place_of(&clauses) {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "WITH query is not recursive").at(position));
            } else {
                let place = self.position(alias.name.span);
                self.plain_cte(query, top, place)?
            };
            if !*recursive {
                self.future_ctes.truncate(future + cte_tables.len() - 1 - i);
            }
            if names.len() > columns.len() {
                return Err(SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!(
                        "WITH query \"{name}\" has {} columns available but {} columns specified",
                        columns.len(),
                        names.len()
                    ),
                )
                .at(self.position(alias.name.span)));
            }
            for (column, name) in columns.iter_mut().zip(names) {
                column.name = name;
            }
            let shown = columns.len();
            let records = match &body {
                CteBody::Query(rel) => self.records_in(rel),
                _ => Vec::new(),
            };
            let name_seen = name.clone();
            self.ctes.push(VisibleCte {
                name: name_seen,
                id,
                columns,
                shown,
                returns,
                itself: false,
                records,
            });
            bound.push(Cte { id, name, body });
        }
        Ok(bound)
    }

    /// The order in which queries are defined: with RECURSIVE they may refer to later ones.
    fn definition_order(&self, ctes: &[ast::Cte], names: &[String], recursive: bool) -> Result<Vec<usize>> {
        let mut order: Vec<usize> = (0..ctes.len()).collect();
        if !recursive {
            return Ok(order);
        }
        let places: FxHashMap<&str, usize> =
            names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        // How many others each one waits for, and who waits for it.
        let mut needs = vec![0_usize; ctes.len()];
        let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); ctes.len()];
        for (one, cte) in ctes.iter().enumerate() {
            for name in FreeNames::of(&cte.query) {
                if let Some(&other) = places.get(name.as_str())
                    && other != one
                {
                    needs[one] += 1;
                    needed_by[other].push(one);
                }
            }
        }
        for place in 0..order.len() {
            let Some(next) = (place..order.len()).find(|at| needs[order[*at]] == 0) else {
                let name = &ctes[order[place]].alias.name;
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "mutual recursion between WITH items is not implemented",
                )
                .at(self.position(name.span)));
            };
            order.swap(place, next);
            for one in &needed_by[order[place]] {
                needs[*one] -= 1;
            }
        }
        Ok(order)
    }

    fn plain_cte(
        &mut self,
        query: &Query,
        top: bool,
        place: Option<u32>,
    ) -> Result<(CteBody, Vec<OutputColumn>, bool)> {
        if let SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) =
            query.body.as_ref()
        {
            if !top {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "WITH clause containing a data-modifying statement must be at the top level",
                )
                .at(place));
            }
            let visible = self.ctes.len();
            let ctes = self.with_clause(query.with.as_ref(), true)?;
            let statement = self.data_change(statement)?;
            self.ctes.truncate(visible);
            let returns = statement.returning().is_some();
            let columns = statement.columns().to_vec();
            let statement = if ctes.is_empty() {
                statement
            } else {
                BoundStatement::With { ctes, statement: Box::new(statement) }
            };
            return Ok((CteBody::Modify(Box::new(statement)), columns, returns));
        }
        let bound = self.nested(|binder| binder.query(query, true))?;
        Ok((CteBody::Query(bound.rel), bound.columns, true))
    }

    /// `initial UNION [ALL] recursive`: the recursive term sees the CTE's working table. The queries
    /// of a WITH around both terms join those `bound` so far.
    fn recursive_cte(
        &mut self,
        id: u32,
        (name, names): (&ast::Ident, &[String]),
        query: &Query,
        clauses: &RecursionClauses,
        bound: &mut Vec<Cte>,
    ) -> Result<(CteBody, Vec<OutputColumn>, bool)> {
        let place = self.position(name.span);
        let name = ident_name(name);
        let name = name.as_str();
        if matches!(query.body.as_ref(), SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_)) {
            let message = format!("recursive query \"{name}\" must not contain data-modifying statements");
            return Err(SqlError::new(SqlState::INVALID_RECURSION, message).at(place));
        }
        let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier: quantifier, left, right } =
            query.body.as_ref()
        else {
            let message = format!(
                "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
            );
            return Err(SqlError::new(SqlState::INVALID_RECURSION, message).at(place));
        };
        self.check_recursion(name, query.with.as_ref(), left, right)?;
        self.refuse_decoration(&options(query)?)?;
        // None of its own WITH refers to the recursive query, so each is as good as one before it.
        let visible = self.ctes.len();
        bound.extend(self.with_clause(query.with.as_ref(), false)?);
        let all = set_quantifier(*quantifier)?;
        let traversal = self.traversal(name, names, (left.as_ref(), right.as_ref()), clauses)?;
        let (left, right, names) = match &traversal {
            Some(traversal) => (&traversal.first, &traversal.recursive, &traversal.names[..]),
            None => (left.as_ref(), right.as_ref(), names),
        };
        let initial = self.set_operand(left)?;
        let BoundQuery { rel: initial, columns } = initial;
        // Unknown columns of the first term are text, as for any subquery.
        let types: Vec<Type> = columns
            .iter()
            .map(|column| if column.ty.oid == Oid::UNKNOWN { Type::TEXT } else { column.ty })
            .collect();
        let initial = self.coerce_columns(initial, &types, "UNION")?;
        let columns = self.first_term_columns(columns, &types, names);
        let shown = traversal.as_ref().map_or(columns.len(), |traversal| traversal.own);
        let columns_seen = columns.clone();
        self.ctes.push(VisibleCte {
            name: name.to_owned(),
            id,
            columns: columns_seen,
            shown,
            returns: true,
            itself: true,
            records: Vec::new(),
        });
        let recursive = self.set_operand(right);
        self.ctes.truncate(visible);
        let recursive = recursive?;
        if recursive.columns.len() != columns.len() {
            return Err(syntax("each UNION query must have the same number of columns"));
        }
        // Rewritten terms have no place in the statement.
        let written = traversal.is_none().then_some(left);
        self.check_overall_types(name, written, &columns, &recursive.columns)?;
        let recursive = self.coerce_columns(recursive.rel, &types, "UNION")?;
        Ok((CteBody::Recursive { initial, recursive, all }, columns, true))
    }

    /// What PostgreSQL does not take around the terms of a recursive query.
    fn refuse_decoration(&self, options: &Options<'_>) -> Result<()> {
        let decoration = [
            ("ORDER BY", options.order_by.first().map(|key| self.start(&key.expr))),
            ("OFFSET", options.offset.map(|offset| self.start(offset))),
            ("LIMIT", options.limit.map(|limit| self.start(limit))),
            ("FOR UPDATE/SHARE", options.locks.first().map(|_| None)),
        ];
        for (what, place) in decoration {
            if let Some(place) = place {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("{what} in a recursive query is not implemented"),
                )
                .at(place));
            }
        }
        Ok(())
    }

    /// The columns of a recursive query, which its first term has of these types.
    fn first_term_columns(
        &self,
        columns: Vec<OutputColumn>,
        types: &[Type],
        names: &[String],
    ) -> Vec<OutputColumn> {
        let mut columns: Vec<OutputColumn> = columns
            .into_iter()
            .zip(types)
            .map(|(column, ty)| {
                let domain = self.env.catalog.domain_of(column.source);
                let source = domain.map(|domain| (domain, OF_DOMAIN));
                OutputColumn { name: column.name, ty: *ty, source }
            })
            .collect();
        for (column, name) in columns.iter_mut().zip(names) {
            column.name.clone_from(name);
        }
        columns
    }

    /// The recursive term has the columns' types, and changes none of them. The first term tells where
    /// they are written, if it is.
    fn check_overall_types(
        &self,
        name: &str,
        first: Option<&SetExpr>,
        columns: &[OutputColumn],
        others: &[OutputColumn],
    ) -> Result<()> {
        for (i, (own, other)) in columns.iter().zip(others).enumerate() {
            let overall = self.common_type(&[own.ty, other.ty], "UNION")?;
            // PostgreSQL refuses any other modifier; where a term has none, it may just not be known here.
            let (modifier, other) = (own.ty.typmod, other.ty.typmod);
            let modified = modifier >= 0 && other >= 0 && modifier != other;
            if overall.oid != own.ty.oid || modified {
                let place = first.and_then(|first| self.column_place(first, i));
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                        i + 1,
                        self.format_type(own.ty),
                        self.format_type(overall)
                    ),
                )
                .with_hint("Cast the output of the non-recursive term to the correct type.")
                .at(place));
            }
        }
        Ok(())
    }

    /// Where the first SELECT of a query says what its column is; nowhere behind a star.
    fn column_place(&self, mut body: &SetExpr, column: usize) -> Option<u32> {
        loop {
            body = match body {
                SetExpr::SetOperation { left, .. } => left.as_ref(),
                SetExpr::Query(query) => query.body.as_ref(),
                SetExpr::Select(select) => {
                    let star = |item: &ast::SelectItem| {
                        matches!(item, ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..))
                    };
                    let items = select.projection.get(..=column)?;
                    let item = items.last().filter(|_| !items.iter().any(star))?;
                    return self.position(item_span(item));
                }
                _ => return None,
            };
        }
    }
}
