//! ROWS FROM, and `unnest` of several arrays: functions in FROM whose rows stand side by side, NULL
//! where one has no more of them.

use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Type;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, TableAlias};

use super::Source;
use crate::bind::binder::Binder;
use crate::bind::function::window::row_number;
use crate::bind::level::{Relation, ScopeColumn};
use crate::bind::name::ident_name;
use crate::bound::*;

const UNNEST: &str = "unnest";
const ORDINALITY: &str = "ordinality";

/// Whether a call may have several arrays (transformRangeFunction): by its own name alone.
fn is_unnest(name: &ObjectName) -> bool {
    matches!(&name.0[..], [part] if part.as_ident().is_some_and(|ident| ident_name(ident) == UNNEST))
}

impl Binder<'_, '_> {
    pub(crate) fn bind_rows_from(
        &mut self,
        functions: &[FunctionArg],
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        let unsupported = || SqlError::unsupported("ROWS FROM with anything but calls");
        let mut calls = Vec::with_capacity(functions.len());
        for function in functions {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(call))) = function else {
                return Err(unsupported());
            };
            let plain = call.over.is_none() && call.filter.is_none() && call.within_group.is_empty();
            match &call.args {
                FunctionArguments::List(list) if plain && list.clauses.is_empty() => {
                    let args = &list.args[..];
                    if is_unnest(&call.name) && args.len() > 1 {
                        // Of several arrays, one call for each.
                        calls.extend(args.chunks(1).map(|array| (&call.name, array)));
                    } else {
                        calls.push((&call.name, args));
                    }
                }
                _ => return Err(unsupported()),
            }
        }
        self.side_by_side(&calls, ordinality, alias)
    }

    /// `unnest(…)` of one array, or of several side by side.
    pub(crate) fn bind_unnest(
        &mut self,
        arrays: &[Expr],
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        let name = ObjectName::from(Ident::new(UNNEST));
        let argument = |array: &Expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(array.clone()));
        let args: Vec<FunctionArg> = arrays.iter().map(argument).collect();
        let calls: Vec<_> = args.chunks(1).map(|args| (&name, args)).collect();
        self.side_by_side(&calls, ordinality, alias)
    }

    /// A call after LATERAL, which may be `unnest` of several arrays.
    pub(crate) fn bind_named_call(
        &mut self,
        name: &ObjectName,
        args: &[FunctionArg],
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        if is_unnest(name) && args.len() > 1 {
            let calls: Vec<_> = args.chunks(1).map(|array| (name, array)).collect();
            return self.side_by_side(&calls, ordinality, alias);
        }
        self.bind_from_function(name, args, ordinality, alias)
    }

    fn side_by_side(
        &mut self,
        calls: &[(&ObjectName, &[FunctionArg])],
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        if let [(name, args)] = calls {
            return self.bind_from_function(name, args, ordinality, alias);
        }
        let first = calls.first().and_then(|(name, _)| name.0.last()?.as_ident()).map(ident_name);
        let mut bound = Vec::with_capacity(calls.len());
        for (name, args) in calls {
            let (rows, relations) = self.bind_from_function(name, args, true, None)?;
            let columns = relations.into_iter().flat_map(|relation| relation.columns).collect();
            bound.push(Numbered { rows, columns });
        }
        let (rows, named) = match bound.iter().all(Numbered::is_one_set) {
            true => in_step(bound, ordinality),
            false => self.joined(bound, ordinality)?,
        };
        let exprs = named.iter().map(|(_, expr)| expr.clone()).collect();
        let column = |(place, (name, expr)): (usize, (String, BoundExpr))| ScopeColumn {
            name,
            expr: BoundExpr::column(place, expr.ty).of_domain(expr.domain),
            source: None,
            hidden: false,
        };
        let mut relation = Relation::new(None, named.into_iter().enumerate().map(column).collect());
        self.apply_alias(&mut relation, alias, first.as_deref())?;
        Ok((Rel::Project { input: Box::new(rows), exprs }, vec![relation]))
    }

    /// Functions of any rows, joined by the numbers of these.
    fn joined(&mut self, functions: Vec<Numbered>, ordinality: bool) -> Result<(Rel, Columns)> {
        let nothing = || SqlError::internal("functions without columns");
        // The rows so far, their columns, and the number of each row.
        let mut rows: Option<(Rel, Vec<ScopeColumn>, BoundExpr)> = None;
        for Numbered { rows: right, mut columns } in functions {
            let number = columns.pop().ok_or_else(nothing)?.expr;
            let Some((left, mut known, known_number)) = rows.take() else {
                rows = Some((right, columns, number));
                continue;
            };
            let width = left.width();
            let moved = |expr: BoundExpr| match expr.kind {
                ExprKind::Column { index, .. } => {
                    BoundExpr::column(width + usize::from(index), expr.ty).of_domain(expr.domain)
                }
                kind => BoundExpr::new(kind, expr.ty),
            };
            let number = moved(number);
            let on = self.binary_operator("=", known_number.clone(), number.clone())?;
            known
                .extend(columns.into_iter().map(|column| ScopeColumn { expr: moved(column.expr), ..column }));
            let joined = Rel::Join {
                kind: JoinKind::Full,
                left: Box::new(left),
                right: Box::new(right),
                on: Some(on),
                lateral: false,
            };
            let number = BoundExpr::new(ExprKind::Coalesce(vec![known_number, number]), Type::INT8);
            rows = Some((joined, known, number));
        }
        let (joined, columns, number) = rows.ok_or_else(nothing)?;
        let key = SortKey { expr: number.clone(), descending: false, nulls_first: false };
        let sorted = Rel::Sort { input: Box::new(joined), keys: vec![key] };
        let mut named: Columns = columns.into_iter().map(|column| (column.name, column.expr)).collect();
        named.extend(ordinality.then(|| (ORDINALITY.to_owned(), number)));
        Ok((sorted, named))
    }
}

/// Columns by name, over rows.
type Columns = Vec<(String, BoundExpr)>;

/// A function's rows, numbered: its columns, then the number.
struct Numbered {
    rows: Rel,
    columns: Vec<ScopeColumn>,
}

impl Numbered {
    /// Whether it answers a set of single values, and runs nothing else for it.
    fn is_one_set(&self) -> bool {
        let Rel::Function { call, types, .. } = &self.rows else { return false };
        matches!(call, SetCall::Builtin { .. }) && types.len() == 1 && !call.answers_composites()
    }
}

/// Functions that [`Numbered::is_one_set`], expanded in step.
fn in_step(functions: Vec<Numbered>, ordinality: bool) -> (Rel, Columns) {
    let mut items = Vec::with_capacity(functions.len());
    let mut named = Columns::new();
    for Numbered { rows, columns } in functions {
        let (Rel::Function { call, types, .. }, Some(column)) = (rows, columns.into_iter().next()) else {
            continue;
        };
        let ty = types[0];
        named.push((column.name, BoundExpr::column(items.len(), ty).of_domain(column.expr.domain)));
        items.push(SetItem::Set { call, ty });
    }
    let mut rows = Rel::ProjectSet { input: Box::new(Rel::Unit), items };
    if ordinality {
        named.push((ORDINALITY.to_owned(), BoundExpr::column(named.len(), Type::INT8)));
        rows = Rel::Window { input: Box::new(rows), calls: vec![row_number()] };
    }
    (rows, named)
}
