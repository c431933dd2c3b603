//! Comparisons beyond a single operator: rows, lists, ANY and ALL, BETWEEN, DISTINCT FROM, and
//! the subqueries in expressions.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CastContext, ResolvedFunction};
use archipel_sql::type_table::{TypeNames, array_of, element_of, is_vector};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{BinaryOperator, Expr, Query};

use super::expr::operator_name;
use super::record::is_whole_row;
use super::row_value::{is_row, record_field};
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::span::{query_span, unnest};
use crate::bind::visit::{is_correlated, is_volatile, visit_expr, visit_expr_mut};
use crate::bound::*;

/// Whether the operator orders or equates values of every type, rows included.
pub(crate) fn is_comparison(name: &str) -> bool {
    matches!(name, "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=")
}

/// What an operator of a btree operator family asks of the fields of two rows.
enum RowTest {
    /// All of them must pass it.
    All,
    /// One of them has to.
    Any,
    /// The first that are not equal must be in order.
    Order { strict: &'static str, equal: &'static str },
}

/// The test that rows of several fields are put to by an operator; `None` for those of no btree operator
/// family.
fn row_test(name: &str) -> Option<RowTest> {
    let order = |strict, equal| RowTest::Order { strict, equal };
    Some(match name {
        "=" | "*=" => RowTest::All,
        "<>" | "!=" | "*<>" => RowTest::Any,
        "<" | "<=" => order("<", "="),
        ">" | ">=" => order(">", "="),
        "*<" | "*<=" => order("*<", "*="),
        "*>" | "*>=" => order("*>", "*="),
        "~<~" | "~<=~" => order("~<~", "="),
        "~>~" | "~>=~" => order("~>~", "="),
        _ => return None,
    })
}

fn no_interpretation(name: &str) -> SqlError {
    let message = format!("could not determine interpretation of row comparison operator {name}");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .with_hint("Row comparison operators must be associated with btree operator families.")
}

/// Whether it reads a column of the row at hand.
pub(crate) fn reads_row(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit_expr(expr, 0, &mut |part, nesting| {
        found |= matches!(part.kind, ExprKind::Column { depth, .. } if depth == nesting);
        !found
    });
    found
}

pub(crate) fn all_of(mut list: Vec<BoundExpr>) -> BoundExpr {
    match list.len() {
        1 => list.swap_remove(0),
        _ => BoundExpr::new(ExprKind::And(list), Type::BOOL),
    }
}

pub(crate) fn any_of(mut list: Vec<BoundExpr>) -> BoundExpr {
    match list.len() {
        1 => list.swap_remove(0),
        _ => BoundExpr::new(ExprKind::Or(list), Type::BOOL),
    }
}

fn negate(expr: BoundExpr) -> BoundExpr {
    BoundExpr::new(ExprKind::Not(Box::new(expr)), Type::BOOL)
}

impl Binder<'_, '_> {
    /// Two bound values, rows included.
    pub(crate) fn compare_values(
        &mut self,
        left: BoundExpr,
        name: &str,
        right: BoundExpr,
    ) -> Result<BoundExpr> {
        if !(is_row(&left) && is_row(&right) && is_comparison(name)) {
            return self.binary_operator(name, left, right);
        }
        let (ExprKind::Row(left, _), ExprKind::Row(right, _)) = (left.kind, right.kind) else {
            return Err(SqlError::internal("a row that is none"));
        };
        self.compare_rows(left, name, right)
    }

    /// `(a, b) op right`, where the right side is a row or a subquery of as many columns.
    pub(crate) fn row_comparison(&mut self, left: BoundExpr, name: &str, right: &Expr) -> Result<BoundExpr> {
        let left_type = left.ty;
        // To other operators the row of a variable is a value.
        let any_row = is_comparison(name);
        if !any_row && is_whole_row(&left) {
            let right = self.expr(right)?;
            return self.binary_operator(name, left, right);
        }
        let ExprKind::Row(items, names) = left.kind else {
            return Err(SqlError::internal("a row comparison without a row"));
        };
        let right = match unnest(right) {
            Expr::Subquery(query) => {
                let (rel, columns) = self.subquery(query)?;
                if columns.len() != items.len() {
                    let few = if columns.len() < items.len() { "few" } else { "many" };
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("subquery has too {few} columns"),
                    ));
                }
                let record = self.record_subquery(rel);
                columns
                    .iter()
                    .enumerate()
                    .map(|(i, column)| record_field(record.clone(), i, column.ty))
                    .collect()
            }
            other => {
                let right = self.expr(other)?;
                let is_row = is_row(&right) && (any_row || !is_whole_row(&right));
                match right.kind {
                    ExprKind::Row(items, _) if is_row => items,
                    // Records compare as wholes, by record_eq and the like.
                    kind => {
                        let left = BoundExpr::new(ExprKind::Row(items, names), left_type);
                        return self.binary_operator(name, left, BoundExpr::new(kind, right.ty));
                    }
                }
            }
        };
        self.compare_rows(items, name, right)
    }

    /// Rows compare field by field; the orderings decide at the first field that differs.
    pub(crate) fn compare_rows(
        &mut self,
        left: Vec<BoundExpr>,
        name: &str,
        right: Vec<BoundExpr>,
    ) -> Result<BoundExpr> {
        if left.len() != right.len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "unequal number of entries in row expressions",
            ));
        }
        if left.is_empty() {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length"));
        }
        let pairs = left.into_iter().zip(right);
        match row_test(name) {
            Some(RowTest::All) => {
                let tests = pairs
                    .map(|(left, right)| self.compare_values(left, name, right))
                    .collect::<Result<Vec<_>>>()?;
                Ok(all_of(tests))
            }
            Some(RowTest::Any) => {
                let tests = pairs
                    .map(|(left, right)| self.compare_values(left, name, right))
                    .collect::<Result<Vec<_>>>()?;
                Ok(any_of(tests))
            }
            Some(RowTest::Order { strict, equal }) => {
                // a < c OR (a = c AND (b < d OR …)): NULLs answer as PostgreSQL's row comparison.
                let mut pairs: Vec<(BoundExpr, BoundExpr)> = pairs.collect();
                let Some((left, right)) = pairs.pop() else {
                    return Err(SqlError::internal("a row comparison without fields"));
                };
                let mut test = self.compare_values(left, name, right)?;
                for (left, right) in pairs.into_iter().rev() {
                    let equal = self.compare_values(left.clone(), equal, right.clone())?;
                    let before = self.compare_values(left, strict, right)?;
                    test = any_of(vec![before, all_of(vec![equal, test])]);
                }
                Ok(test)
            }
            None => {
                let tests = pairs
                    .map(|(left, right)| self.tested_by(name, left, right))
                    .collect::<Result<Vec<_>>>()?;
                // Of one field each, rows are what their fields are.
                <[BoundExpr; 1]>::try_from(tests).map(|[test]| test).map_err(|_| no_interpretation(name))
            }
        }
    }

    /// Two fields of rows by any operator, which has to be a test.
    fn tested_by(&mut self, name: &str, left: BoundExpr, right: BoundExpr) -> Result<BoundExpr> {
        let test = self.binary_operator(name, left, right)?;
        if test.ty.oid == Oid::BOOL {
            return Ok(test);
        }
        let given = self.type_name(test.ty.oid);
        let message = format!("row comparison operator must yield type boolean, not type {given}");
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
    }

    pub(crate) fn between(
        &mut self,
        expr: &Expr,
        low: &Expr,
        high: &Expr,
        negated: bool,
    ) -> Result<BoundExpr> {
        let position = self.start(expr);
        let value = self.expr(expr)?;
        let low = self.expr(low)?;
        let high = self.expr(high)?;
        let (first, second) = if negated { ("<", ">") } else { (">=", "<=") };
        let low = self.compare_values(value.clone(), first, low).map_err(|error| error.at(position))?;
        // PostgreSQL reads it once more here: what the first comparison made of it is known.
        let value = self.with_known_parameters(value);
        let high = self.compare_values(value, second, high).map_err(|error| error.at(position))?;
        Ok(if negated { any_of(vec![low, high]) } else { all_of(vec![low, high]) })
    }

    pub(crate) fn distinct_from(&mut self, left: &Expr, right: &Expr, negated: bool) -> Result<BoundExpr> {
        let bound = self.expr(left)?;
        let right = self.expr(right)?;
        let test = self.distinct_values(bound, right);
        let test = test.map_err(|error| error.at(self.position_after(left, "IS")))?;
        Ok(match (test, negated) {
            (BoundExpr { kind: ExprKind::IsDistinctFrom { left, right, equality, .. }, ty, .. }, true) => {
                BoundExpr::new(ExprKind::IsDistinctFrom { left, right, equality, negated: true }, ty)
            }
            (test, true) => negate(test),
            (test, false) => test,
        })
    }

    fn distinct_values(&mut self, left: BoundExpr, right: BoundExpr) -> Result<BoundExpr> {
        let rows = is_row(&left) && is_row(&right);
        let (left, right) = match (left.kind, right.kind) {
            (ExprKind::Row(left, _), ExprKind::Row(right, _)) if rows => {
                if left.len() != right.len() {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "unequal number of entries in row expressions",
                    ));
                }
                let pairs = left.into_iter().zip(right);
                let tests = pairs
                    .map(|(left, right)| self.distinct_values(left, right))
                    .collect::<Result<Vec<_>>>()?;
                return Ok(any_of(tests));
            }
            (left_kind, right_kind) => {
                (BoundExpr::new(left_kind, left.ty), BoundExpr::new(right_kind, right.ty))
            }
        };
        let (operator, args, result) = self.find_binary("=", left, right)?;
        let [left, right] = pair(args)?;
        let equality = ResolvedFunction { function: operator.function, result };
        Ok(BoundExpr::new(
            ExprKind::IsDistinctFrom {
                left: Box::new(left),
                right: Box::new(right),
                equality,
                negated: false,
            },
            Type::BOOL,
        ))
    }

    pub(crate) fn in_list(&mut self, expr: &Expr, list: &[Expr], negated: bool) -> Result<BoundExpr> {
        let left = self.expr(expr)?;
        let items = list.iter().map(|item| self.expr(item)).collect::<Result<Vec<_>>>()?;
        let test = self.in_values(left, items, negated);
        test.map_err(|error| error.at(self.position_after(expr, if negated { "NOT" } else { "IN" })))
    }

    /// PostgreSQL makes an array of what reads no column of the row, where there are several; what
    /// reads one is compared by itself, and not computed once the answer is known.
    fn in_values(&mut self, left: BoundExpr, items: Vec<BoundExpr>, negated: bool) -> Result<BoundExpr> {
        let rows = is_row(&left) || items.iter().any(is_row);
        // Columns of one type compare alike in both ways, and an array of them is looked up.
        let alike =
            |item: &BoundExpr| matches!(item.kind, ExprKind::Column { .. }) && item.ty.oid == left.ty.oid;
        let (listed, single): (Vec<BoundExpr>, Vec<BoundExpr>) =
            match items.iter().all(|item| alike(item) || (!reads_row(item) && item.ty.oid == left.ty.oid)) {
                true => (items.clone(), Vec::new()),
                false => items.iter().cloned().partition(|item| !reads_row(item)),
            };
        let mut types = vec![left.ty];
        types.extend(listed.iter().map(|item| item.ty));
        let several = listed.len() > 1 && !rows;
        let common = if several { self.common_type(&types, "IN").ok() } else { None };
        let (array, compared) = match common.filter(|common| array_of(common.oid).is_some()) {
            Some(common) => (Some(self.in_array(left.clone(), listed, common, negated)?), single),
            None => (None, items),
        };
        let name = if negated { "<>" } else { "=" };
        let mut tests: Vec<BoundExpr> = array.into_iter().collect();
        for item in compared {
            // Here two rows are compared field by field even if both are cast to a type; the row of a
            // relation is no such row, but a value.
            let written = !is_whole_row(&left) && !is_whole_row(&item);
            tests.push(match (&left.kind, item.kind) {
                (ExprKind::Row(fields, _), ExprKind::Row(other, _)) if written => {
                    self.compare_rows(fields.clone(), name, other)?
                }
                (_, kind) => {
                    let item = BoundExpr { kind, ..item };
                    self.compare_values(left.clone(), name, item)?
                }
            });
        }
        Ok(if negated { all_of(tests) } else { any_of(tests) })
    }

    /// One `=` for all: between the left side's type and the items' common type.
    fn in_array(
        &mut self,
        left: BoundExpr,
        items: Vec<BoundExpr>,
        common: Type,
        negated: bool,
    ) -> Result<BoundExpr> {
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            list.push(self.coerce_common(item, common, "IN")?);
        }
        let probe = list[0].clone();
        let (operator, args, result) = self.find_binary("=", left, probe)?;
        let [left, first] = pair(args)?;
        let target = first.ty;
        let list = list
            .into_iter()
            .map(|item| self.coerce_or_fail(item, Type::of(target.oid), CastContext::Implicit))
            .collect::<Result<Vec<_>>>()?;
        let equality = ResolvedFunction { function: operator.function, result };
        Ok(BoundExpr::new(ExprKind::InList { left: Box::new(left), list, equality, negated }, Type::BOOL))
    }

    /// `left op ANY (right)`, `left op ALL (right)`: over a subquery or an array.
    pub(crate) fn quantified(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        all: bool,
    ) -> Result<BoundExpr> {
        let name = operator_name(op)?;
        if let Expr::Subquery(query) = unnest(right) {
            let test = self.quantified_subquery(left, &name, query, all);
            return test.map_err(|error| error.at(self.operator_position(left, op)));
        }
        let bound = self.expr(left)?;
        let right = self.expr(right)?;
        let test = self.quantified_array(bound, &name, right, all);
        test.map_err(|error| error.at(self.operator_position(left, op)))
    }

    fn quantified_array(
        &mut self,
        left: BoundExpr,
        name: &str,
        right: BoundExpr,
        all: bool,
    ) -> Result<BoundExpr> {
        // The operator is chosen between the left side and the array's element type; an unknown
        // array is one of the left side's type.
        let element = match right.ty.oid {
            Oid::UNKNOWN => Oid::UNKNOWN,
            oid => element_of(oid).ok_or_else(|| {
                SqlError::new(SqlState::WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires array on right side")
            })?,
        };
        let probe = BoundExpr::column(0, Type { oid: element, typmod: right.ty.typmod });
        let probe =
            if element == Oid::UNKNOWN { BoundExpr::constant(Datum::Null, Type::UNKNOWN) } else { probe };
        let (operator, args, result) = self.find_binary(name, left, probe)?;
        if result.oid != Oid::BOOL {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                "op ANY/ALL (array) requires operator to yield boolean",
            ));
        }
        let [left, probe] = pair(args)?;
        let target = array_of(probe.ty.oid).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("could not find array type for data type {}", self.type_name(probe.ty.oid)),
            )
        })?;
        let array = self.coerce_or_fail(right, Type::of(target), CastContext::Implicit)?;
        let operator = ResolvedFunction { function: operator.function, result };
        Ok(BoundExpr::new(
            ExprKind::ArrayOp { left: Box::new(left), array: Box::new(array), operator, all },
            Type::BOOL,
        ))
    }

    pub(crate) fn in_subquery(&mut self, expr: &Expr, query: &Query, negated: bool) -> Result<BoundExpr> {
        let test = self.quantified_subquery(expr, "=", query, false);
        let test =
            test.map_err(|error| error.at(self.position_after(expr, if negated { "NOT" } else { "IN" })))?;
        Ok(if negated { negate(test) } else { test })
    }

    fn quantified_subquery(
        &mut self,
        left: &Expr,
        name: &str,
        query: &Query,
        all: bool,
    ) -> Result<BoundExpr> {
        let left = self.expr(left)?;
        let of_fields = is_row(&left) && (is_comparison(name) || !is_whole_row(&left));
        let left = match left.kind {
            ExprKind::Row(items, _) if of_fields => items,
            kind => vec![BoundExpr::new(kind, left.ty)],
        };
        let (mut rel, columns) = self.subquery(query)?;
        if columns.len() != left.len() {
            let few = if columns.len() < left.len() { "few" } else { "many" };
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("subquery has too {few} columns")));
        }
        // Rows differ if any field does: `<>` is the negation of `=` with the other quantifier.
        let (name, all, negated) = match name {
            "<>" | "!=" if left.len() > 1 => ("=", !all, true),
            _ => (name, all, false),
        };
        if left.len() > 1 && name != "=" {
            return self.quantified_order(left, name, rel, &columns, all);
        }
        let mut converted = Vec::with_capacity(left.len());
        let mut operators = Vec::with_capacity(left.len());
        let mut outputs = Vec::with_capacity(left.len());
        let mut changed = false;
        for (i, (left, column)) in left.into_iter().zip(&columns).enumerate() {
            let (operator, args, result) = self.find_binary(name, left, BoundExpr::column(i, column.ty))?;
            if result.oid != Oid::BOOL {
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "row comparison operator must yield type boolean, not type {}",
                        self.type_name(result.oid)
                    ),
                ));
            }
            let [left, output] = pair(args)?;
            changed |= !matches!(output.kind, ExprKind::Column { .. });
            converted.push(left);
            outputs.push(output);
            operators.push(ResolvedFunction { function: operator.function, result });
        }
        if changed {
            rel = Rel::Project { input: Box::new(rel), exprs: outputs };
        }
        let kind = if all {
            SubqueryKind::All { left: converted, operators }
        } else {
            SubqueryKind::Any { left: converted, operators }
        };
        let test = self.subquery_expr(kind, rel, Type::BOOL);
        Ok(if negated { negate(test) } else { test })
    }

    /// `(a, b) < ANY (subquery)`: each row is compared where it is read, and the answers are looked
    /// through.
    fn quantified_order(
        &mut self,
        left: Vec<BoundExpr>,
        name: &str,
        rel: Rel,
        columns: &[OutputColumn],
        all: bool,
    ) -> Result<BoundExpr> {
        if row_test(name).is_none() {
            for (place, (left, column)) in left.into_iter().zip(columns).enumerate() {
                self.find_binary(name, left, BoundExpr::column(place, column.ty))?;
            }
            return Err(no_interpretation(name));
        }
        let further_out = |mut expr: BoundExpr| {
            visit_expr_mut(&mut expr, 0, &mut |part, nesting| {
                if let ExprKind::Column { depth, .. } = &mut part.kind
                    && *depth >= nesting
                {
                    *depth += 1;
                }
                true
            });
            expr
        };
        let left = left.into_iter().map(further_out).collect();
        let row = columns.iter().enumerate().map(|(place, column)| BoundExpr::column(place, column.ty));
        let test = self.compare_rows(left, name, row.collect())?;
        let rel = Rel::Project { input: Box::new(rel), exprs: vec![test] };
        let left = vec![BoundExpr::constant(Datum::Bool(true), Type::BOOL)];
        let operators = vec![self.operator_of("=", Oid::BOOL, Oid::BOOL)?];
        let kind = match all {
            true => SubqueryKind::All { left, operators },
            false => SubqueryKind::Any { left, operators },
        };
        Ok(self.subquery_expr(kind, rel, Type::BOOL))
    }

    /// A subquery's rows, bound one nesting in, with no unknown columns.
    pub(crate) fn subquery(&mut self, query: &Query) -> Result<(Rel, Vec<OutputColumn>)> {
        let bound = self.nested(|binder| binder.query(query, true))?;
        Ok((bound.rel, bound.columns))
    }

    pub(crate) fn subquery_expr(&self, kind: SubqueryKind, rel: Rel, ty: Type) -> BoundExpr {
        let correlated = is_correlated(&rel);
        BoundExpr::new(ExprKind::Subquery(Box::new(Subquery { kind, rel, correlated })), ty)
    }

    /// A subquery's only row as one record.
    pub(crate) fn record_subquery(&self, rel: Rel) -> BoundExpr {
        let items = rel.types().into_iter().enumerate().map(|(i, ty)| BoundExpr::column(i, ty)).collect();
        let row = BoundExpr::new(ExprKind::Row(items, None), Type::RECORD);
        let rel = Rel::Project { input: Box::new(rel), exprs: vec![row] };
        self.subquery_expr(SubqueryKind::Scalar, rel, Type::RECORD)
    }

    pub(crate) fn scalar_subquery(&mut self, query: &Query) -> Result<BoundExpr> {
        if self.levels.last().is_some_and(|level| level.clause == Clause::CallArgument) {
            let opens = self.position(query_span(query)).map(|position| position.saturating_sub(1));
            let message = "cannot use subquery in CALL argument";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(opens));
        }
        let (rel, columns) = self.subquery(query)?;
        let [column] = &columns[..] else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "subquery must return only one column")
                .at(self.position(query_span(query)).map(|position| position.saturating_sub(1))));
        };
        let (ty, domain) = (column.ty, self.env.catalog.domain_of(column.source));
        Ok(self.subquery_expr(SubqueryKind::Scalar, rel, ty).of_domain(domain))
    }

    pub(crate) fn exists(&mut self, query: &Query, negated: bool) -> Result<BoundExpr> {
        let (rel, _) = self.subquery(query)?;
        let exists = self.subquery_expr(SubqueryKind::Exists, without_list(rel), Type::BOOL);
        Ok(if negated { negate(exists) } else { exists })
    }

    /// `ARRAY(SELECT …)`.
    pub(crate) fn array_subquery(&mut self, query: &Query) -> Result<BoundExpr> {
        let (rel, columns) = self.subquery(query)?;
        let [column] = &columns[..] else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "subquery must return only one column"));
        };
        let element = column.ty;
        let domain = self.array_of_domain(self.env.catalog.domain_of(column.source));
        let typmod = element.typmod;
        // An array column gives an array of one more dimension.
        let (element, array) = match element_of(element.oid).filter(|_| !is_vector(element.oid)) {
            Some(inner) => (inner, element.oid),
            None => {
                let array = array_of(element.oid).ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!("could not find array type for data type {}", self.type_name(element.oid)),
                    )
                })?;
                (element.oid, array)
            }
        };
        let array = self.subquery_expr(SubqueryKind::Array { element }, rel, Type { oid: array, typmod });
        Ok(array.of_domain(domain))
    }
}

/// The two operands of a resolved binary operator.
pub(crate) fn pair(args: Vec<BoundExpr>) -> Result<[BoundExpr; 2]> {
    <[BoundExpr; 2]>::try_from(args).map_err(|_| SqlError::internal("a binary operator without two operands"))
}

/// What EXISTS asks: nothing of the SELECT list is evaluated, unless what is below it depends on that; nor is
/// anything sorted, or looked at for repetitions or a LIMIT that lets a row pass (simplify_EXISTS_query in
/// subselect.c).
fn without_list(mut rel: Rel) -> Rel {
    for _ in 0..operators_above_rows(&rel).unwrap_or(0) {
        rel = match rel {
            Rel::Project { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Limit { input, .. } => *input,
            rel => rel,
        };
    }
    rel
}

/// How many operators of a SELECT make no difference to whether it has rows: its list and all above it.
fn operators_above_rows(mut rel: &Rel) -> Option<usize> {
    let mut above = 0;
    // Of a subquery in FROM all columns are computed that have effects.
    let mut may_be_in_from = false;
    loop {
        above += 1;
        rel = match rel {
            Rel::Project { input, exprs } if are_rows(input) => {
                let computed = may_be_in_from && exprs.iter().any(is_volatile);
                return (!computed).then_some(above);
            }
            // Its columns beside those to sort by.
            Rel::Project { input, exprs }
                if above == 1
                    && exprs.iter().all(|expr| matches!(expr.kind, ExprKind::Column { depth: 0, .. })) =>
            {
                may_be_in_from = true;
                input
            }
            Rel::Sort { input, .. } | Rel::Distinct { input, .. } => input,
            Rel::Limit { input, limit, offset: None, with_ties: false }
                if limit.as_ref().is_none_or(lets_a_row_pass) =>
            {
                input
            }
            _ => return None,
        };
    }
}

/// Whether an operator stands below a SELECT list that it does not depend on.
fn are_rows(rel: &Rel) -> bool {
    matches!(
        rel,
        Rel::Unit
            | Rel::Values { .. }
            | Rel::Scan { .. }
            | Rel::Family { .. }
            | Rel::Function { .. }
            | Rel::Filter { .. }
            | Rel::Join { .. }
            | Rel::CteScan { .. }
    )
}

/// Whether a LIMIT is written as a number other than 0.
fn lets_a_row_pass(limit: &BoundExpr) -> bool {
    matches!(limit.kind, ExprKind::Const(Datum::Int8(rows)) if rows > 0)
}
