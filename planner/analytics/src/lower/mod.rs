//! From the bound tree to DataFusion's logical plan.
//!
//! Every operator's columns get names of their own (`x1`, `x2`, …), so that joins never see a
//! name twice; positions are translated through [`Lowered::columns`]. An expression becomes a
//! native one where carriers mean exactly what PostgreSQL means ([`native_operator`]), and a
//! function of the columns it reads everywhere else.
//!
//! - [`lowering`]   the state of lowering one query; [`condition`] conditions, taken apart
//! - [`operator`]   functions that DataFusion has an operator for; [`set_functions`] sets of constants
//! - [`statement_constant`] what stays the same for all rows of one execution, computed once

pub(super) mod condition;
pub(super) mod lowering;
pub(super) mod operator;
mod set_functions;
pub(super) mod statement_constant;

use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_engine::{Engine, Snapshot};
use archipel_planner::bind::visit::visit_expr_mut;
use archipel_planner::bound::*;
use archipel_planner::native::hash::ValueSet;
use archipel_planner::native::members_left;
use archipel_planner::partition::Family;
use archipel_planner::row::Codec;
use archipel_sql::aggregate::FIRST;
use archipel_sql::catalog::TableKind;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::{Aggregate, AggregateFunction};
use archipel_sql::stack;
use archipel_sql::types::{Oid, Type};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{Column, JoinType};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::functions_aggregate::expr_fn;
use datafusion::logical_expr::{
    AggregateUDF, Expr, LogicalPlanBuilder, Operator, ScalarUDF, binary_expr, cast, lit,
};

use crate::aggregate::keys::{has_key_form, key_form};
use crate::aggregate::scaled::Formula;
use crate::aggregate::{Call, RowAggregate, is_sorted, keeps_order};
use crate::error::AnalyticsError;
use crate::evaluate::{Context, evaluate, is_volatile, refusal};
use crate::function::RowFunction;
use crate::scan::carrier::{Writer, comparable, data_type, scalar};
use crate::scan::{SnapshotTable, column_name};
use condition::paired;
pub use lowering::{Lowered, Lowerer};
use lowering::{Lowering, columns_of, planned, unsupported};
use operator::native_operator;
use set_functions::spread;
use statement_constant::{of_dates, settled};

/// From how many values on a set is faster than comparing with one after the other.
const HASHED_LEN_MIN: usize = 8;

impl<'a> Lowerer<'a> {
    pub fn new(engine: &'a Engine, snapshot: Arc<Snapshot>, context: Arc<Context>) -> Lowerer<'a> {
        Lowerer { engine, snapshot, context, ctes: BTreeMap::new(), tables: Vec::new(), names: 0 }
    }

    pub(crate) fn name(&mut self) -> String {
        self.names += 1;
        format!("x{}", self.names)
    }

    /// Lowers an operator and its inputs.
    pub fn rel(&mut self, rel: &Rel) -> Lowering<Lowered> {
        stack::check()?;
        match rel {
            Rel::Unit => Ok(Lowered { plan: LogicalPlanBuilder::empty(true), columns: Vec::new() }),
            Rel::Values { rows, types } => {
                let mut values = Vec::with_capacity(rows.len());
                for row in rows {
                    values.push(row.iter().map(|expr| self.constant(expr)).collect::<Lowering<Vec<_>>>()?);
                }
                self.table_of(&values, types)
            }
            Rel::Scan { table, lock, .. } => {
                if lock.is_some() || table.kind != TableKind::Table {
                    return unsupported("a row lock or a system view");
                }
                let Some(meta) = self.engine.table(TreeId(table.tree)) else {
                    return unsupported("a table without rows of its own");
                };
                let types: Vec<Type> = table.columns.iter().map(|column| column.ty).collect();
                // A definition may have come between the plan and this run: it is compiled anew
                // where layouts are checked, by the native executor.
                let kinds = &meta.def.columns;
                if kinds.len() < types.len()
                    || types.iter().zip(kinds).any(|(ty, kind)| Codec::of(*ty).kind() != *kind)
                {
                    return unsupported("a table whose definition has changed");
                }
                self.tables.push(meta.clone());
                let name = self.name();
                let (snapshot, context) = (self.snapshot.clone(), self.context.clone());
                let provider = SnapshotTable::new(&name, meta, snapshot, types.clone(), context);
                let plan = planned(LogicalPlanBuilder::scan(
                    name.as_str(),
                    provider_as_source(Arc::new(provider)),
                    None,
                ))?;
                let columns = types
                    .into_iter()
                    .enumerate()
                    .map(|(i, ty)| (Column::new(Some(name.as_str()), column_name(&name, i)), ty))
                    .collect();
                Ok(Lowered { plan, columns })
            }
            Rel::Family { family, lock, .. } => {
                if lock.is_some() {
                    return unsupported("a row lock");
                }
                self.family(family, |_| true)
            }
            Rel::Function { call: call @ SetCall::Builtin { function, args }, ordinality, types, .. } => {
                let mut types = types.clone();
                let mut rows = self.set(function, args)?;
                if types.len() > 1 || call.answers_composites() {
                    rows = rows.into_iter().map(|row| spread(row, types.len())).collect();
                }
                if *ordinality {
                    types.push(Type::INT8);
                    for (row, number) in rows.iter_mut().zip(1i64..) {
                        row.push(Datum::Int8(number));
                    }
                }
                self.table_of(&rows, &types)
            }
            Rel::Filter { input, predicate } => {
                let input = match &**input {
                    Rel::Family { family, lock: None, .. } => {
                        let functions = self.context.functions();
                        let inputs = self.context.inputs(&functions);
                        let left = members_left(family, predicate, &inputs);
                        self.family(family, |member| left[member])?
                    }
                    input => self.rel(input)?,
                };
                self.filter(input, predicate)
            }
            Rel::Project { input, exprs } => {
                let input = self.rel(input)?;
                self.project(input, exprs)
            }
            Rel::Join { kind, left, right, on, lateral } => {
                if *lateral {
                    return unsupported("a lateral join");
                }
                let left = self.rel(left)?;
                let right = self.rel(right)?;
                let mut columns = left.columns;
                columns.extend(right.columns);
                let kind = match kind {
                    JoinKind::Inner => JoinType::Inner,
                    JoinKind::Left => JoinType::Left,
                    JoinKind::Right => JoinType::Right,
                    JoinKind::Full => JoinType::Full,
                };
                let right = planned(right.plan.build())?;
                let plan = match on {
                    None if kind == JoinType::Inner => planned(left.plan.cross_join(right))?,
                    None => planned(left.plan.join_on(right, kind, [lit(true)]))?,
                    Some(on) => {
                        let tests = self.tests(on, &columns)?;
                        planned(left.plan.join_on(right, kind, tests))?
                    }
                };
                Ok(Lowered { plan, columns })
            }
            Rel::Aggregate { input, group_by, sets, aggregates, groupings } => {
                let plain = matches!(&sets[..], [only] if only.len() == group_by.len());
                if !plain || !groupings.is_empty() {
                    return unsupported("grouping sets");
                }
                if group_by.is_empty() && aggregates.is_empty() {
                    return unsupported("a group of nothing");
                }
                if aggregates.iter().any(keeps_order) && is_sorted(input, &self.ctes) {
                    return unsupported("an aggregate of sorted rows");
                }
                self.aggregate(input, group_by, aggregates)
            }
            Rel::Sort { input, keys } => {
                let input = self.rel(input)?;
                let mut sorts = Vec::with_capacity(keys.len());
                for key in keys {
                    let key_expr = key_form(&key.expr, "sorting by this type")?;
                    let expr = self.expr(&key_expr, &input.columns)?;
                    sorts.push(expr.sort(!key.descending, key.nulls_first));
                }
                Ok(Lowered { plan: planned(input.plan.sort(sorts))?, columns: input.columns })
            }
            Rel::Distinct { input, on: None } => {
                let types = input.types();
                if !types.iter().copied().all(comparable) && types.iter().copied().all(has_key_form) {
                    let rows: Vec<BoundExpr> =
                        types.iter().enumerate().map(|(i, ty)| BoundExpr::column(i, *ty)).collect();
                    return self.aggregate(input, &rows, &[]);
                }
                let input = self.rel(input)?;
                require_comparable(input.columns.iter().map(|(_, ty)| *ty))?;
                Ok(Lowered { plan: planned(input.plan.distinct())?, columns: input.columns })
            }
            // It keeps conditions out, which DataFusion would let through.
            Rel::Limit {
                limit: None,
                offset: Some(BoundExpr { kind: ExprKind::Const(Datum::Int8(0)), .. }),
                ..
            } => unsupported("OFFSET 0"),
            Rel::Limit { input, limit, offset, with_ties: false } => {
                let input = self.rel(input)?;
                let skip = self.count(offset.as_ref(), "OFFSET")?.unwrap_or(0);
                let fetch = self.count(limit.as_ref(), "LIMIT")?;
                Ok(Lowered { plan: planned(input.plan.limit(skip, fetch))?, columns: input.columns })
            }
            Rel::SetOp { op, all, left, right } => self.set_operation(*op, *all, left, right),
            Rel::With { ctes, body } => {
                for cte in ctes {
                    match &cte.body {
                        CteBody::Query(rel) => self.ctes.insert(cte.id, rel.clone()),
                        CteBody::Recursive { .. } => return unsupported("a recursive query"),
                        CteBody::Modify(_) => return unsupported("a change of data"),
                    };
                }
                self.rel(body)
            }
            Rel::CteScan { id, .. } => match self.ctes.get(id).cloned() {
                Some(rel) => self.rel(&rel),
                None => unsupported("a query name from further out"),
            },
            Rel::Function { .. } => unsupported("a routine in FROM"),
            Rel::Explained { .. } => unsupported("EXPLAIN ANALYZE"),
            Rel::ProjectSet { input, items } if matches!(**input, Rel::Unit) => self.sets(items),
            Rel::ProjectSet { .. } => unsupported("a set-returning function in a SELECT list"),
            Rel::Lock { .. } => unsupported("a row lock"),
            Rel::Window { .. } => unsupported("a window function"),
            Rel::Distinct { .. } => unsupported("DISTINCT ON"),
            Rel::Limit { .. } => unsupported("WITH TIES"),
        }
    }

    /// The rows of those of a family's members that are wanted, one after the other.
    fn family(&mut self, family: &Family, wanted: impl Fn(usize) -> bool) -> Lowering<Lowered> {
        let mut all: Option<Lowered> = None;
        for (_, member) in family.members.iter().enumerate().filter(|(place, _)| wanted(*place)) {
            let table = &member.table;
            let scan = self.rel(&Rel::Scan { table: table.clone(), lock: None, alias: None })?;
            let number = BoundExpr::constant(Datum::Oid(table.oid), Type::OID);
            let rows = self.project(scan, &member.places([number]))?;
            all = Some(match all {
                None => rows,
                Some(all) => {
                    let plan = planned(all.plan.union(planned(rows.plan.build())?))?;
                    Lowered { plan, columns: all.columns }
                }
            });
        }
        match all {
            Some(all) => Ok(all),
            None => {
                let types = family.root.columns.iter().map(|column| column.ty);
                let types: Vec<Type> = types.chain(std::iter::once(Type::OID)).collect();
                self.table_of(&[], &types)
            }
        }
    }

    fn project(&mut self, input: Lowered, exprs: &[BoundExpr]) -> Lowering<Lowered> {
        let mut outputs = Vec::with_capacity(exprs.len());
        let mut columns = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let name = self.name();
            let output = match self.expr(expr, &input.columns) {
                // What fails without a look at a row fails when there is one: what PostgreSQL plans with has
                // failed as the statement was compiled.
                Err(AnalyticsError::Sql(_)) if columns_of(expr).is_empty() && refusal(expr).is_none() => {
                    self.row_function(expr, None, &input.columns)?
                }
                output => output?,
            };
            outputs.push(output.alias(name.as_str()));
            columns.push((Column::new_unqualified(name), expr.ty));
        }
        // A plan without columns loses its row count in some operators.
        if outputs.is_empty() {
            let name = self.name();
            outputs.push(lit(true).alias(name.as_str()));
        }
        Ok(Lowered { plan: planned(input.plan.project(outputs))?, columns })
    }

    /// A condition-free count: LIMIT and OFFSET.
    fn count(&mut self, expr: Option<&BoundExpr>, what: &str) -> Lowering<Option<usize>> {
        let Some(expr) = expr else { return Ok(None) };
        match self.constant(expr)? {
            Datum::Null => Ok(None),
            Datum::Int8(count) => match usize::try_from(count) {
                Ok(count) => Ok(Some(count)),
                Err(_) => {
                    let state = match what {
                        "LIMIT" => SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE,
                        _ => SqlState::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE,
                    };
                    Err(SqlError::new(state, format!("{what} must not be negative")).into())
                }
            },
            _ => unsupported("a count that is no bigint"),
        }
    }

    /// The value of an expression that reads no row.
    pub(crate) fn constant(&self, expr: &BoundExpr) -> Lowering<Datum> {
        if let Some(what) = refusal(expr) {
            return unsupported(what);
        }
        if !columns_of(expr).is_empty() {
            return unsupported("a row where a constant is wanted");
        }
        Ok(evaluate(expr, &[], &self.context)?)
    }

    /// Rows at hand as a table.
    pub(crate) fn table_of(&mut self, rows: &[Vec<Datum>], types: &[Type]) -> Lowering<Lowered> {
        let name = self.name();
        let fields: Vec<Field> = types
            .iter()
            .enumerate()
            .map(|(i, ty)| Field::new(column_name(&name, i), data_type(*ty), true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let mut arrays = Vec::with_capacity(types.len());
        for (column, ty) in types.iter().enumerate() {
            let mut writer = Writer::new(*ty, rows.len());
            for row in rows {
                writer.push(row.get(column).unwrap_or(&Datum::Null))?;
            }
            arrays.push(writer.finish());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
            .map_err(|error| SqlError::internal(error.to_string()))?;
        let table = planned(MemTable::try_new(schema, vec![vec![batch]]))?;
        let plan =
            planned(LogicalPlanBuilder::scan(name.as_str(), provider_as_source(Arc::new(table)), None))?;
        let columns = types
            .iter()
            .enumerate()
            .map(|(i, ty)| (Column::new(Some(name.as_str()), column_name(&name, i)), *ty))
            .collect();
        Ok(Lowered { plan, columns })
    }

    fn set_operation(&mut self, op: SetOp, all: bool, left: &Rel, right: &Rel) -> Lowering<Lowered> {
        if op != SetOp::Union {
            return unsupported("INTERSECT and EXCEPT");
        }
        let left = self.rel(left)?;
        let right = self.rel(right)?;
        // The union's columns are named by its left side: give those plain names first.
        let types: Vec<Type> = left.columns.iter().map(|(_, ty)| *ty).collect();
        let right_types: Vec<Type> = right.columns.iter().map(|(_, ty)| *ty).collect();
        if types.iter().zip(&right_types).any(|(left, right)| Codec::of(*left) != Codec::of(*right)) {
            return unsupported("a union of columns carried differently");
        }
        let plain = |types: &[Type]| -> Vec<BoundExpr> {
            types.iter().enumerate().map(|(i, ty)| BoundExpr::column(i, *ty)).collect()
        };
        let left = self.project(left, &plain(&types))?;
        let right = self.project(right, &plain(&right_types))?;
        let mut plan = planned(left.plan.union(planned(right.plan.build())?))?;
        if !all {
            require_comparable(types.iter().copied())?;
            plan = planned(plan.distinct())?;
        }
        Ok(Lowered { plan, columns: left.columns })
    }

    fn aggregate(
        &mut self,
        input: &Rel,
        group_by: &[BoundExpr],
        calls: &[AggregateCall],
    ) -> Lowering<Lowered> {
        if group_by.iter().any(|expr| !comparable(expr.ty) && is_volatile(expr)) {
            return unsupported("grouping by what its key may not be made of");
        }
        let keys = group_by.iter().map(|expr| key_form(expr, "grouping by this type"));
        // First a projection that computes what is grouped by and aggregated.
        let mut exprs = keys.collect::<Lowering<Vec<BoundExpr>>>()?;
        let calls: Vec<(&AggregateCall, &'static AggregateFunction)> = calls
            .iter()
            .map(|call| match &call.function {
                Accumulator::Builtin(function) if std::ptr::eq(*function, &FIRST) => {
                    unsupported("the first row of a group, which threads may read in another order")
                }
                Accumulator::Builtin(function) => Ok((call, *function)),
                Accumulator::Defined(_) => unsupported("an aggregate that somebody defined"),
            })
            .collect::<Lowering<_>>()?;
        let input = self.rel(input)?;
        let mut places = Vec::with_capacity(calls.len());
        let mut formulas: Vec<Option<Formula>> = Vec::with_capacity(calls.len());
        for (call, _) in &calls {
            let from = exprs.len();
            let formula = self.formula(call, &input.columns);
            match &formula {
                Some(formula) => exprs.extend(formula.args.iter().cloned()),
                None => exprs.extend(inputs_of(call)),
            }
            places.push(from..exprs.len());
            formulas.push(formula);
        }
        let shown: Vec<usize> = (0..group_by.len()).filter(|at| !comparable(group_by[*at].ty)).collect();
        exprs.extend(shown.iter().map(|at| group_by[*at].clone()));
        let input = self.project(input, &exprs)?;
        let groups: Vec<Expr> =
            input.columns[..group_by.len()].iter().map(|(column, _)| Expr::Column(column.clone())).collect();
        let mut columns: Vec<(Column, Type)> = input.columns[..group_by.len()].to_vec();
        let mut outputs = Vec::with_capacity(calls.len());
        for ((&(call, function), place), formula) in calls.iter().zip(places).zip(formulas) {
            let columns_read = input.columns[place].iter();
            let args: Vec<Expr> = columns_read.map(|(column, _)| Expr::Column(column.clone())).collect();
            let name = self.name();
            let output = match formula {
                Some(formula) => {
                    let call = Call::of_formula(function, formula, call.result);
                    AggregateUDF::from(RowAggregate::new(self.name(), call, self.context.clone())).call(args)
                }
                None => self.aggregate_call(call, function, args),
            };
            outputs.push(output.alias(name.as_str()));
            columns.push((Column::new_unqualified(name), call.result));
        }
        // Of what a key stands for, the first one is shown.
        for (at, (value, ty)) in shown.iter().zip(&input.columns[exprs.len() - shown.len()..]) {
            let name = self.name();
            let first = RowAggregate::new(self.name(), Call::first_of(*ty), self.context.clone());
            let value = Expr::Column(value.clone());
            outputs.push(AggregateUDF::from(first).call(vec![value]).alias(name.as_str()));
            columns[*at] = (Column::new_unqualified(name), *ty);
        }
        Ok(Lowered { plan: planned(input.plan.aggregate(groups, outputs))?, columns })
    }

    /// What a plain sum or average is of, if that can be computed in integers.
    fn formula(&self, call: &AggregateCall, columns: &[(Column, Type)]) -> Option<Formula> {
        let Accumulator::Builtin(function) = &call.function else { return None };
        let plain = !call.distinct && call.order_by.is_empty() && call.filter.is_none();
        match (function.aggregate, &call.args[..]) {
            (Aggregate::Sum | Aggregate::Average, [arg]) if plain && arg.ty.oid == Oid::NUMERIC => {
                Formula::of(&settled(arg, &self.context), columns)
            }
            _ => None,
        }
    }

    /// DataFusion's own aggregate where it is the same function, else ours.
    fn aggregate_call(
        &mut self,
        call: &AggregateCall,
        function: &'static AggregateFunction,
        mut args: Vec<Expr>,
    ) -> Expr {
        let plain = !call.distinct && call.order_by.is_empty() && call.filter.is_none();
        if plain {
            let integer = call.args.first().is_some_and(|arg| matches!(arg.ty.oid, Oid::INT2 | Oid::INT4));
            match (function.aggregate, &call.args[..]) {
                (Aggregate::Count, []) => return expr_fn::count(lit(1i64)),
                (Aggregate::Count, [_]) => return expr_fn::count(args.swap_remove(0)),
                (Aggregate::Least, [arg]) if comparable(arg.ty) && arg.ty == call.result => {
                    return expr_fn::min(args.swap_remove(0));
                }
                (Aggregate::Greatest, [arg]) if comparable(arg.ty) && arg.ty == call.result => {
                    return expr_fn::max(args.swap_remove(0));
                }
                // A table of int4 values never overflows the bigint its sum is.
                (Aggregate::Sum, [_]) if integer => {
                    return expr_fn::sum(cast(args.swap_remove(0), DataType::Int64));
                }
                _ => {}
            }
        }
        let call = Call {
            function,
            args: call.args.iter().map(|arg| arg.ty).collect(),
            distinct: call.distinct,
            order_by: call
                .order_by
                .iter()
                .map(|key| (key.expr.ty, key.descending, key.nulls_first))
                .collect(),
            filter: call.filter.is_some(),
            result: call.result,
            formula: None,
        };
        // DataFusion does not tell an accumulator without arguments how many rows there are.
        let call = if args.is_empty() {
            args.push(lit(1i32));
            Call { order_by: vec![(Type::INT4, false, false)], ..call }
        } else {
            call
        };
        let function = RowAggregate::new(self.name(), call, self.context.clone());
        AggregateUDF::from(function).call(args)
    }

    /// Lowers an expression over the columns of an operator.
    pub fn expr(&mut self, expr: &BoundExpr, columns: &[(Column, Type)]) -> Lowering<Expr> {
        let expr = &settled(expr, &self.context);
        if let Some(native) = self.native(expr, columns)? {
            return Ok(native);
        }
        if let Some(what) = refusal(expr) {
            return unsupported(what);
        }
        let used = columns_of(expr);
        if used.is_empty() && !is_volatile(expr) {
            let value = evaluate(expr, &[], &self.context)?;
            return Ok(Expr::Literal(scalar(&value, expr.ty)?, None));
        }
        self.row_function(expr, None, columns)
    }

    /// An expression as a function of the columns it reads; or whether its value is among some.
    pub(crate) fn row_function(
        &mut self,
        expr: &BoundExpr,
        within: Option<ValueSet>,
        columns: &[(Column, Type)],
    ) -> Lowering<Expr> {
        let used = columns_of(expr);
        let mut args = Vec::with_capacity(used.len());
        let mut types = Vec::with_capacity(used.len());
        for &index in &used {
            let (column, ty) = columns
                .get(usize::from(index))
                .ok_or_else(|| SqlError::internal("a column beyond its row"))?;
            args.push(Expr::Column(column.clone()));
            types.push(*ty);
        }
        let mut own = expr.clone();
        visit_expr_mut(&mut own, 0, &mut |part, nesting| {
            if let ExprKind::Column { depth, index } = &mut part.kind
                && *depth == nesting
                && let Some(place) = used.iter().position(|known| known == index)
            {
                *index = place as u16;
            }
            true
        });
        let function = RowFunction::new(self.name(), own, within, types, self.context.clone());
        Ok(ScalarUDF::from(function).call(args))
    }

    /// The native form of an expression that has one.
    pub(crate) fn native(&mut self, expr: &BoundExpr, columns: &[(Column, Type)]) -> Lowering<Option<Expr>> {
        stack::check()?;
        Ok(match &expr.kind {
            ExprKind::Column { depth: 0, index } => {
                let (column, ty) = columns
                    .get(usize::from(*index))
                    .ok_or_else(|| SqlError::internal("a column beyond its row"))?;
                // The same value under another modifier may be carried differently.
                (Codec::of(*ty) == Codec::of(expr.ty)).then(|| Expr::Column(column.clone()))
            }
            ExprKind::Const(value) => Some(Expr::Literal(scalar(value, expr.ty)?, None)),
            ExprKind::Param(_) => {
                let value = evaluate(expr, &[], &self.context)?;
                Some(Expr::Literal(scalar(&value, expr.ty)?, None))
            }
            ExprKind::Relabel(inner)
                if Codec::of(inner.ty) == Codec::of(expr.ty)
                    && !archipel_sql::cast::relabels(inner.ty.oid, expr.ty.oid) =>
            {
                self.native(inner, columns)?
            }
            ExprKind::IsNull(inner) => self.native(inner, columns)?.map(Expr::is_null),
            ExprKind::IsNotNull(inner) => self.native(inner, columns)?.map(Expr::is_not_null),
            ExprKind::Not(inner) => self.native(inner, columns)?.map(|inner| !inner),
            ExprKind::And(list) => self.native_all(list, columns)?.and_then(|list| paired(list, Expr::and)),
            ExprKind::Or(list) => self.native_all(list, columns)?.and_then(|list| paired(list, Expr::or)),
            ExprKind::InList { left, list, equality, negated }
                if native_operator(equality) == Some(Operator::Eq) =>
            {
                let Some(left_native) = self.comparand(left, list.first(), columns)? else { return Ok(None) };
                let mut items = Vec::with_capacity(list.len());
                for item in list {
                    let Some(item) = self.comparand(item, Some(left), columns)? else { return Ok(None) };
                    items.push(item);
                }
                Some(left_native.in_list(items, *negated))
            }
            ExprKind::ArrayOp { left, array, operator, all: false }
                if native_operator(operator) == Some(Operator::Eq)
                    && refusal(left).is_none()
                    && !columns_of(left).is_empty() =>
            {
                match &array.kind {
                    ExprKind::Const(Datum::Array(array)) if array.values.len() >= HASHED_LEN_MIN => {
                        let values = array.values.iter().cloned().collect();
                        Some(self.row_function(left, Some(values), columns)?)
                    }
                    _ => None,
                }
            }
            ExprKind::Call { function, args } => match (native_operator(function), &args[..]) {
                (Some(operator), [left, right]) => {
                    let left_native = self.comparand(left, Some(right), columns)?;
                    let right_native = self.comparand(right, Some(left), columns)?;
                    let (Some(left_native), Some(right_native)) = (left_native, right_native) else {
                        return self.equal_by_key(function, [left, right], columns);
                    };
                    // In the condition of an outer join, DataFusion loses rows where a literal comes first.
                    Some(match operator.swap() {
                        Some(swapped) if columns_of(left).is_empty() => {
                            binary_expr(right_native, swapped, left_native)
                        }
                        _ => binary_expr(left_native, operator, right_native),
                    })
                }
                _ => match of_dates(function, args) {
                    Some((place, operator, day)) => {
                        let date = self.native(&args[place], columns)?;
                        date.map(|date| binary_expr(date, operator, lit(day)))
                    }
                    None => None,
                },
            },
            _ => None,
        })
    }

    fn native_all(&mut self, list: &[BoundExpr], columns: &[(Column, Type)]) -> Lowering<Option<Vec<Expr>>> {
        let mut natives = Vec::with_capacity(list.len());
        for item in list {
            match self.native(item, columns)? {
                Some(native) => natives.push(native),
                None => return Ok(None),
            }
        }
        Ok(Some(natives))
    }
}

/// What a call reads: its arguments, its sort keys, its filter.
fn inputs_of(call: &AggregateCall) -> Vec<BoundExpr> {
    // What FILTER leaves out may not be computed at all: `sum(1/x) FILTER (WHERE x > 0)`.
    let args = call.args.iter().map(|arg| match (&call.filter, &arg.kind) {
        (None, _) | (_, ExprKind::Column { .. } | ExprKind::Const(_)) => arg.clone(),
        (Some(filter), _) => {
            let arms = vec![(filter.clone(), arg.clone())];
            BoundExpr::new(ExprKind::Case { arms, otherwise: None }, arg.ty)
        }
    });
    let keys = call.order_by.iter().map(|key| key.expr.clone());
    args.chain(keys).chain(call.filter.iter().cloned()).collect()
}

fn require_comparable(types: impl IntoIterator<Item = Type>) -> Lowering<()> {
    if types.into_iter().all(comparable) { Ok(()) } else { unsupported("grouping by this type") }
}
