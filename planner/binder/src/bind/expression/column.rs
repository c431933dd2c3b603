//! Dotted names in expressions: columns, variables, whole rows (transformColumnRef).

use std::borrow::Cow;

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{Expr, Ident};
use sqlparser::tokenizer::Span;

use super::row_value::record_field;
use crate::bind::binder::{Binder, VariableConflict, VariableScope};
use crate::bind::level::{FoundColumn, Relation};
use crate::bind::name::ident_name;
use crate::bind::span;
use crate::bound::{BoundExpr, ExprKind};

impl Binder<'_, '_> {
    /// A dotted name: column, variable, whole row (transformColumnRef).
    pub(crate) fn column_reference(&mut self, parts: &[Ident]) -> Result<BoundExpr> {
        self.named_value(parts).map(|found| found.expr)
    }

    /// As [`Self::column_reference`], with the table column behind it.
    pub(crate) fn named_value(&mut self, parts: &[Ident]) -> Result<FoundColumn> {
        let span = parts.first().map_or_else(Span::empty, |ident| ident.span);
        let names: Vec<String> = parts.iter().map(ident_name).collect();
        // Words of the grammar that look like names.
        if let ([ident], [name]) = (parts, &names[..])
            && ident.quote_style.is_none()
            && matches!(name.as_str(), "current_schema" | "current_catalog")
        {
            return Ok(FoundColumn { expr: self.value_function(&names, None)?, source: None });
        }
        let variable = match self.env.variables {
            Some(variables) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let value = variables.resolve(&names).or_else(|| self.field_of_row(variables, &names));
                value.map(|expr| (expr, variables.conflict()))
            }
            None => None,
        };
        if let Some((expr, VariableConflict::Variable)) = variable {
            return Ok(FoundColumn { expr, source: None });
        }
        let last = parts.last().map_or(span, |ident| ident.span);
        let column = match (self.find_name(&names, span, last), &variable) {
            (Ok(column), _) => column,
            // An unknown column may still be a variable.
            (Err(error), Some(_))
                if error.state() == SqlState::UNDEFINED_COLUMN
                    || error.state() == SqlState::UNDEFINED_TABLE =>
            {
                None
            }
            (Err(error), _) => return Err(error),
        };
        match (column, variable) {
            (Some(_), Some((_, VariableConflict::Error))) => Err(SqlError::new(
                SqlState::AMBIGUOUS_COLUMN,
                format!("column reference \"{}\" is ambiguous", names.join(".")),
            )
            .with_detail("It could refer to either a PL/pgSQL variable or a table column.")
            .at(self.position(span))),
            (Some(column), _) => Ok(column),
            (None, Some((expr, _))) => Ok(FoundColumn { expr, source: None }),
            (None, None) => Err(self.undefined_column(&names, span)),
        }
    }

    /// `argument.field` of a row.
    fn field_of_row(&self, variables: &dyn VariableScope, names: &[&str]) -> Option<BoundExpr> {
        let (field, row) = names.split_last()?;
        let row = variables.row(row)?;
        let fields = self.record_fields(&row)?;
        let place = fields.iter().position(|(name, _)| name == field)?;
        Some(record_field(row, place, fields[place].1))
    }

    /// `relation.*` within an expression: the relation's whole row, though a column has its name.
    pub(crate) fn starred_value(&mut self, parts: &[Ident]) -> Result<FoundColumn> {
        let span = parts.first().map_or_else(Span::empty, |ident| ident.span);
        let names: Vec<String> = parts.iter().map(ident_name).collect();
        let (schema, relation) = match &names[..] {
            [relation] => (None, relation),
            [schema, relation] | [_, schema, relation] => (Some(schema.as_str()), relation),
            _ => return self.named_value(parts),
        };
        let is_variable = self.env.variables.is_some_and(|variables| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            variables.resolve(&names).is_some()
        });
        if !is_variable && let Some(place) = self.find_relation(schema, relation, span)? {
            return self.whole_row(place, span);
        }
        self.named_value(parts)
    }

    /// The items of a row of VALUES, `record.*` and `relation.*` replaced by their fields and columns.
    pub(crate) fn without_stars<'x>(&self, items: &'x [Expr]) -> Result<Cow<'x, [Expr]>> {
        if !items.iter().any(|item| matches!(item, Expr::QualifiedWildcard(..))) {
            return Ok(Cow::Borrowed(items));
        }
        let mut expanded = Vec::new();
        for item in items {
            let Expr::QualifiedWildcard(name, _) = item else {
                expanded.push(item.clone());
                continue;
            };
            let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
            let names: Vec<String> = parts.iter().map(ident_name).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let fields = match self.relation_columns(&names, item)? {
                Some(columns) => Some(columns),
                None => self
                    .variable_fields(&names)?
                    .map(|fields| fields.into_iter().map(|(field, _)| field).collect()),
            };
            let Some(fields) = fields else {
                let relation = names.last().copied().unwrap_or_default();
                return Err(self.missing_relation(relation, self.start(item)));
            };
            expanded.extend(fields.into_iter().map(|field| {
                let mut parts = parts.clone();
                parts.push(Ident::with_quote('"', field));
                Expr::CompoundIdentifier(parts)
            }));
        }
        Ok(Cow::Owned(expanded))
    }

    /// The names of the columns of a relation that is in sight.
    fn relation_columns(&self, names: &[&str], item: &Expr) -> Result<Option<Vec<String>>> {
        let (schema, relation) = match names {
            [relation] => (None, *relation),
            [schema, relation] | [_, schema, relation] => (Some(*schema), *relation),
            _ => return Ok(None),
        };
        let Some((place, relation)) = self.find_relation(schema, relation, span::first_span(item))? else {
            return Ok(None);
        };
        let columns = self.levels[place].relations[relation].columns.iter();
        Ok(Some(columns.filter(|column| !column.hidden).map(|column| column.name.clone()).collect()))
    }

    /// Looks a name up among the columns; `None` for a bare name that is nowhere.
    /// `span` is that of its first part, `last` of the last one.
    fn find_name(&mut self, names: &[String], span: Span, last: Span) -> Result<Option<FoundColumn>> {
        let position = self.position(span);
        match names {
            [name] => {
                if let Some(found) = self.find_column(name, span)? {
                    return Ok(Some(found));
                }
                // A relation's name alone is its whole row.
                match self.find_relation(None, name, span)? {
                    Some(place) => self.whole_row(place, span).map(Some),
                    None => Ok(None),
                }
            }
            [relation, name] => {
                let Some(place) = self.find_relation(None, relation, span)? else {
                    return Err(self.missing_relation(relation, position));
                };
                match self.find_in_relation(place, name, span)? {
                    Some(found) => Ok(Some(found)),
                    None if !self.names_function(name) => Err(self.undefined_column(names, span)),
                    None => {
                        let row = self.whole_row(place, span)?.expr;
                        match self.function_as_field(row, name, last)? {
                            Some(expr) => Ok(Some(FoundColumn { expr, source: None })),
                            None => Err(self.undefined_column(names, span)),
                        }
                    }
                }
            }
            [schema, relation, name] | [_, schema, relation, name] => {
                let Some(place) = self.find_relation(Some(schema), relation, span)? else {
                    return Err(self.missing_relation(relation, position));
                };
                match self.find_in_relation(place, name, span)? {
                    Some(found) => Ok(Some(found)),
                    None => Err(self.undefined_column(names, span)),
                }
            }
            _ => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("improper qualified name (too many dotted names): {}", names.join(".")),
            )
            .at(position)),
        }
    }

    /// A relation's row as one composite value; a scalar function's is its one column.
    fn whole_row(&mut self, (place, relation): (usize, usize), span: Span) -> Result<FoundColumn> {
        let width = self.levels[place].relations[relation].columns.len();
        if self.levels[place].relations[relation].scalar_function && width > 0 {
            return Ok(self.reference(place, relation, 0, span));
        }
        let columns = &self.levels[place].relations[relation].columns;
        let shown: Vec<usize> = (0..width).filter(|column| !columns[*column].hidden).collect();
        let items: Vec<BoundExpr> =
            shown.iter().map(|column| self.reference(place, relation, *column, span).expr).collect();
        let named = &self.levels[place].relations[relation];
        let oid = named.table.as_ref().map(|table| table.row_type()).or(named.row_type);
        let oid = oid.unwrap_or(Oid::RECORD);
        let absent = self.absent_row(&self.levels[place].relations[relation], &shown, &items);
        let columns = &self.levels[place].relations[relation].columns;
        let names = shown.iter().map(|column| columns[*column].name.clone()).collect();
        let mut expr = BoundExpr::new(ExprKind::Row(items, Some(names)), Type::of(oid));
        if let Some(absent) = absent {
            let arms = vec![(absent, BoundExpr::constant(Datum::Null, expr.ty))];
            let kind = ExprKind::Case { arms, otherwise: Some(Box::new(expr)) };
            expr = BoundExpr::new(kind, Type::of(oid));
        }
        Ok(FoundColumn { expr, source: None })
    }

    /// Whether an outer join has put NULLs in the place of a row: then a column is NULL that never is,
    /// or, where there is none, all of them are.
    fn absent_row(&self, relation: &Relation, shown: &[usize], items: &[BoundExpr]) -> Option<BoundExpr> {
        if !relation.nullable || items.is_empty() {
            return None;
        }
        let is_null = |item: &BoundExpr| BoundExpr::new(ExprKind::IsNull(Box::new(item.clone())), Type::BOOL);
        let never_null = |column: &usize| {
            let (table, number) = relation.columns[*column].source?;
            let table = self.env.catalog.table_by_oid(table)?;
            table.columns.get(usize::from(number).checked_sub(1)?).filter(|column| column.not_null)?;
            Some(())
        };
        let sure = relation.table.as_ref().and_then(|_| shown.iter().position(|at| never_null(at).is_some()));
        Some(match sure {
            Some(place) => is_null(&items[place]),
            None => BoundExpr::new(ExprKind::And(items.iter().map(is_null).collect()), Type::BOOL),
        })
    }
}
