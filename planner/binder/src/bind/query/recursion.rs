//! Where a recursive query may name itself: PostgreSQL's rules (SELECT, "WITH clause"), by which
//! each round reads the rows of the round before exactly once.

use std::ops::ControlFlow;

use archipel_sql::error::{Result, SqlError, SqlState};
use sqlparser::ast::{
    JoinOperator, ObjectName, Query, Select, SetExpr, SetOperator, SetQuantifier, TableFactor,
    TableWithJoins, Visit, Visitor, With,
};
use sqlparser::tokenizer::Span;

use crate::bind::binder::Binder;
use crate::bind::level::Level;
use crate::bind::name::{ident_name, schema_and_name};

/// What a part of a recursive query stands in.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    RecursiveTerm,
    NonRecursiveTerm,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

impl Within {
    /// Why there may be no recursive reference.
    fn words(self) -> &'static str {
        match self {
            Within::RecursiveTerm => "its recursive term",
            Within::NonRecursiveTerm => "its non-recursive term",
            Within::Subquery => "a subquery",
            Within::OuterJoin => "an outer join",
            Within::Intersect => "INTERSECT",
            Within::Except => "EXCEPT",
        }
    }
}

/// The references of one query to itself.
struct References<'n, 'b, 'c, 'd> {
    binder: &'b Binder<'c, 'd>,
    name: &'n str,
    count: usize,
}

impl Binder<'_, '_> {
    /// 42P19 for an aggregate of a query that reads its own recursive query in FROM: `own`.
    pub(super) fn check_aggregates(&self, own: bool, level: &Level) -> Result<()> {
        if !own || level.aggregates.is_empty() {
            return Ok(());
        }
        let message = "aggregate functions are not allowed in a recursive query's recursive term";
        Err(SqlError::new(SqlState::INVALID_RECURSION, message).at(level
            .aggregate_positions
            .first()
            .copied()
            .flatten()))
    }

    /// Errors: 42P19 where the terms of the recursive query `name` refer to it as they may not.
    pub(super) fn check_recursion(
        &self,
        name: &str,
        with: Option<&With>,
        first: &SetExpr,
        second: &SetExpr,
    ) -> Result<()> {
        let mut references = References { binder: self, name, count: 0 };
        for cte in with.iter().flat_map(|with| &with.cte_tables) {
            references.query(&cte.query, Within::Subquery)?;
        }
        references.body(first, Within::NonRecursiveTerm)?;
        references.body(second, Within::RecursiveTerm)
    }
}

impl References<'_, '_, '_, '_> {
    fn body(&mut self, body: &SetExpr, within: Within) -> Result<()> {
        // Only the outermost reason counts.
        let or = |reason| if within == Within::RecursiveTerm { reason } else { within };
        match body {
            SetExpr::Select(select) => self.select(select, within),
            SetExpr::Query(query) => self.query(query, within),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let all = matches!(set_quantifier, SetQuantifier::All);
                let (of_left, of_right) = match op {
                    SetOperator::Intersect if all => (or(Within::Intersect), or(Within::Intersect)),
                    SetOperator::Except | SetOperator::Minus if all => {
                        (or(Within::Except), or(Within::Except))
                    }
                    SetOperator::Except | SetOperator::Minus => (within, or(Within::Except)),
                    _ => (within, within),
                };
                self.body(left, of_left)?;
                self.body(right, of_right)
            }
            SetExpr::Table(table) => match (&table.schema_name, &table.table_name) {
                (None, Some(name)) if name == self.name => self.reference(None, within),
                _ => Ok(()),
            },
            other => self.expressions(other, within),
        }
    }

    fn query(&mut self, query: &Query, within: Within) -> Result<()> {
        if let Some(with) = &query.with {
            if with.cte_tables.iter().any(|cte| ident_name(&cte.alias.name) == self.name) {
                // Another query has the name from here on.
                return Ok(());
            }
            for cte in &with.cte_tables {
                self.query(&cte.query, within)?;
            }
        }
        self.body(&query.body, within)?;
        self.expressions(&query.order_by, within)?;
        self.expressions(&query.limit_clause, within)
    }

    fn select(&mut self, select: &Select, within: Within) -> Result<()> {
        for from in &select.from {
            self.from(from, within)?;
        }
        self.expressions(&select.projection, within)?;
        self.expressions(&select.distinct, within)?;
        self.expressions(&select.selection, within)?;
        self.expressions(&select.group_by, within)?;
        self.expressions(&select.having, within)
    }

    fn from(&mut self, from: &TableWithJoins, within: Within) -> Result<()> {
        let outer = if within == Within::RecursiveTerm { Within::OuterJoin } else { within };
        // What a join to the right of an item does to it.
        let keeps_right = |operator: &JoinOperator| {
            matches!(operator, JoinOperator::Right(_) | JoinOperator::RightOuter(_))
        };
        let keeps_left =
            |operator: &JoinOperator| matches!(operator, JoinOperator::Left(_) | JoinOperator::LeftOuter(_));
        let full = |operator: &JoinOperator| matches!(operator, JoinOperator::FullOuter(_));
        let extended_by = |first: usize| {
            from.joins[first..]
                .iter()
                .any(|join| keeps_right(&join.join_operator) || full(&join.join_operator))
        };
        self.factor(&from.relation, if extended_by(0) { outer } else { within })?;
        for (place, join) in from.joins.iter().enumerate() {
            let optional = keeps_left(&join.join_operator) || full(&join.join_operator);
            self.factor(&join.relation, if optional || extended_by(place + 1) { outer } else { within })?;
            self.expressions(&join.join_operator, within)?;
        }
        Ok(())
    }

    fn factor(&mut self, factor: &TableFactor, within: Within) -> Result<()> {
        match factor {
            TableFactor::Table { name, args: None, .. } => match self.span_of(name) {
                Some(span) => self.reference(Some(span), within),
                None => Ok(()),
            },
            TableFactor::Derived { subquery, .. } => self.query(subquery, within),
            TableFactor::NestedJoin { table_with_joins, .. } => self.from(table_with_joins, within),
            other => self.expressions(other, within),
        }
    }

    /// Parts that hold no reference but in a subquery.
    fn expressions(&mut self, part: &impl Visit, within: Within) -> Result<()> {
        let within = if within == Within::RecursiveTerm { Within::Subquery } else { within };
        match part.visit(&mut FirstReference(self)) {
            ControlFlow::Break(span) => self.reference(Some(span), within),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// Where a relation's name stands if it is this query's.
    fn span_of(&self, relation: &ObjectName) -> Option<Span> {
        match schema_and_name(relation) {
            Ok((None, name)) if name == self.name => Some(
                relation.0.first().and_then(|part| part.as_ident()).map_or(Span::empty(), |ident| ident.span),
            ),
            _ => None,
        }
    }

    fn reference(&mut self, span: Option<Span>, within: Within) -> Result<()> {
        self.count += 1;
        let problem = match within {
            Within::RecursiveTerm if self.count > 1 => "more than once".to_owned(),
            Within::RecursiveTerm => return Ok(()),
            within => format!("within {}", within.words()),
        };
        let message = format!("recursive reference to query \"{}\" must not appear {problem}", self.name);
        Err(SqlError::new(SqlState::INVALID_RECURSION, message)
            .at(span.and_then(|span| self.binder.position(span))))
    }
}

struct FirstReference<'r, 'n, 'b, 'c, 'd>(&'r References<'n, 'b, 'c, 'd>);

impl Visitor for FirstReference<'_, '_, '_, '_, '_> {
    type Break = Span;

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Span> {
        match self.0.span_of(relation) {
            Some(span) => ControlFlow::Break(span),
            None => ControlFlow::Continue(()),
        }
    }
}
