//! Names in scope: what a FROM clause offers, and how a column reference finds its column.
//!
//! Scopes are a stack of [`Level`](super::level::Level)s. The innermost stands for the row of the operator being
//! bound (depth 0), the next for the row one nesting out, and so on. A query's FROM row is one
//! level; so is the left side of a join while a lateral right side is bound.

use archipel_sql::error::{Result, SqlError, SqlState};
use sqlparser::tokenizer::Span;

use super::binder::Binder;
use super::level::{FoundColumn, LevelKind, Reference, Relation};
use super::visit::raise_depth;
use crate::bound::ExprKind;

/// Columns of a row that is not there yet: calls found inside expressions, which operators
/// between the FROM row and the SELECT list will compute. Real rows stay below the first of these.
pub const AGGREGATE_BASE: u16 = 0x8000;
pub const GROUPING_BASE: u16 = 0x9000;
pub const WINDOW_BASE: u16 = 0xA000;
pub const SET_BASE: u16 = 0xB000;
pub const COLUMNS_MAX: usize = 0x7FFF;

/// Entries of a target list or a row (PostgreSQL's MaxTupleAttributeNumber).
pub const TARGETS_MAX: usize = 1664;

/// Refuses a target list that is too long.
pub(crate) fn check_targets(count: usize) -> Result<()> {
    match count <= TARGETS_MAX {
        true => Ok(()),
        false => Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("target lists can have at most {TARGETS_MAX} entries"),
        )),
    }
}

/// The column that stands for the `number`th call of a query level; those of a kind have the numbers
/// from `base` up to another kind's.
pub(crate) fn placeholder(base: u16, end: u16, number: usize) -> Result<u16> {
    match u16::try_from(number) {
        Ok(number) if number < end - base => Ok(base + number),
        _ => Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("a query cannot have more than {} aggregate or window calls of a kind", end - base),
        )),
    }
}

fn ambiguous(name: &str) -> SqlError {
    SqlError::new(SqlState::AMBIGUOUS_COLUMN, format!("column reference \"{name}\" is ambiguous"))
}

impl Binder<'_, '_> {
    /// Finds a bare column name, innermost level first (colNameToVar).
    pub(crate) fn find_column(&mut self, name: &str, span: Span) -> Result<Option<FoundColumn>> {
        for depth in 0..self.levels.len() {
            let place = self.levels.len() - 1 - depth;
            if self.levels[place].hidden {
                continue;
            }
            let mut found: Option<(usize, Option<usize>)> = None;
            for (r, relation) in self.levels[place].relations.iter().enumerate() {
                if !relation.unqualified {
                    continue;
                }
                let columns = relation.columns.iter().enumerate();
                let mut own =
                    columns.filter(|(_, column)| column.name == name).map(|(c, _)| Some(c)).peekable();
                let system = (own.peek().is_none() && relation.has_system_column(name)).then_some(None);
                for column in own.chain(system) {
                    if found.is_some() {
                        return Err(ambiguous(name).at(self.position(span)));
                    }
                    found = Some((r, column));
                }
            }
            let Some((relation, column)) = found else { continue };
            self.require_reachable(place, relation, span)?;
            match column {
                Some(column) => return Ok(Some(self.reference(place, relation, column, span))),
                None => {
                    if let Some(found) = self.system_column((place, relation), name, span)? {
                        return Ok(Some(found));
                    }
                }
            }
        }
        match self.refused_system_column(name, span) {
            Some(refused) => Err(refused),
            None => Ok(None),
        }
    }

    /// The relation a qualifier names: level and place (refnameNamespaceItem).
    pub(crate) fn find_relation(
        &self,
        schema: Option<&str>,
        name: &str,
        span: Span,
    ) -> Result<Option<(usize, usize)>> {
        for place in (0..self.levels.len()).rev().filter(|&place| !self.levels[place].hidden) {
            let mut found = None;
            for (r, relation) in self.levels[place].relations.iter().enumerate() {
                let matches = relation.qualified
                    && relation.name.as_deref() == Some(name)
                    && (schema.is_none() || relation.schema.as_deref() == schema);
                if matches {
                    if found.is_some() {
                        return Err(SqlError::new(
                            SqlState::AMBIGUOUS_ALIAS,
                            format!("table reference \"{name}\" is ambiguous"),
                        )
                        .at(self.position(span)));
                    }
                    found = Some((place, r));
                }
            }
            if let Some((place, relation)) = found {
                self.require_reachable(place, relation, span)?;
                let start = self.levels[place].from_start.unwrap_or(place);
                let beside = &self.levels[start..place];
                let seen = beside.iter().filter(|level| !level.hidden && level.refusal.is_none());
                let is_it = |other: &Relation| {
                    other.qualified
                        && other.name.as_deref() == Some(name)
                        && (schema.is_none() || other.schema.as_deref() == schema)
                };
                if seen.flat_map(|level| &level.relations).any(is_it) {
                    return Err(SqlError::new(
                        SqlState::AMBIGUOUS_ALIAS,
                        format!("table reference \"{name}\" is ambiguous"),
                    )
                    .at(self.position(span)));
                }
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn require_reachable(&self, place: usize, relation: usize, span: Span) -> Result<()> {
        match self.levels[place].refusal {
            Some(refusal) => {
                Err(self.refused_reference(&self.levels[place].relations[relation], refusal, span))
            }
            None => Ok(()),
        }
    }

    /// Finds `relation.column`; `None` if the relation has no such column.
    pub(crate) fn find_in_relation(
        &mut self,
        (place, relation): (usize, usize),
        name: &str,
        span: Span,
    ) -> Result<Option<FoundColumn>> {
        let mut places = self.levels[place].relations[relation]
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.name == name)
            .map(|(c, _)| c);
        let Some(column) = places.next() else {
            return self.system_column((place, relation), name, span);
        };
        if places.next().is_some() {
            return Err(ambiguous(name).at(self.position(span)));
        }
        Ok(Some(self.reference(place, relation, column, span)))
    }

    /// Refers to a column of a level from here.
    pub(crate) fn reference(
        &mut self,
        place: usize,
        relation: usize,
        column: usize,
        span: Span,
    ) -> FoundColumn {
        let depth = self.levels.len() - 1 - place;
        // Levels between are passed through: a lateral level keeps its nesting only if used.
        let level = &mut self.levels[place];
        level.used = true;
        let relation = &level.relations[relation];
        let number = column as u16 + 1;
        let column = &relation.columns[column];
        let read = column.source.or(relation.named.map(|table| (table, number)));
        let mut expr = column.expr.clone();
        let source = column.source;
        if level.in_aggregate == 0 && level.kind == LevelKind::Query {
            let of_relation = || match &relation.name {
                Some(table) => format!("{table}.{}", column.name),
                None => column.name.clone(),
            };
            // One of a join is told by the relation that it comes from.
            let of_join = relation.joined || relation.name.is_none();
            let mut origins = level.relations.iter().filter(|_| of_join);
            let origin = origins.find_map(|origin| origin.name_of(&column.expr));
            let qualified = origin.unwrap_or_else(of_relation);
            super::visit::visit_expr(&expr, 0, &mut |part, _| {
                if let ExprKind::Column { index, .. } = part.kind {
                    level.references.push(Reference {
                        index,
                        name: qualified.clone(),
                        span,
                        nested: depth > 0,
                    });
                }
                true
            });
        }
        raise_depth(&mut expr, depth as u16);
        if let Some((table, column)) = read {
            self.reads_column(table, column);
        }
        expr.domain = self.env.catalog.domain_of(source).or(expr.domain);
        FoundColumn { expr, source }
    }
}
