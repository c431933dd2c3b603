//! Expressions: the dispatch over syntax, names, operators, casts.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::CastContext;
use archipel_sql::type_table::{TypeNames, array_of, element_of, is_vector};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast;
use sqlparser::ast::{AccessExpr, BinaryOperator, Expr, Ident, UnaryOperator};

use super::coerce::cannot_cast;
use super::coordinate::{coordinate, name_byte};
use super::domain::common_domain;
use super::json_subscript::json_element;
use crate::bind::binder::Binder;
use crate::bind::name::object_name_parts;
use crate::bind::scope::TARGETS_MAX;
use crate::bind::span;
use crate::bind::span::{chained, empty_array, unnest};
use crate::bound::{BoundExpr, ExprKind, Subscript};

/// A chain of operators may be this long before the tree is too deep to walk: about as long as
/// PostgreSQL's stack lets it be.
const CHAIN_MAX: usize = 4000;

/// Arrays have no more dimensions (MAXDIM).
const SUBSCRIPTS_MAX: usize = 6;

/// Array constructors one inside the other: what has elements has six dimensions at most, which is
/// found when it is made; nothing useful is written with ten times as many.
const ARRAY_LEVELS_MAX: u32 = 64;

impl Binder<'_, '_> {
    /// Binds an expression.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Result<BoundExpr> {
        self.nested(|binder| binder.expr_inner(expr))
    }

    fn expr_inner(&mut self, expr: &Expr) -> Result<BoundExpr> {
        match expr {
            Expr::Identifier(ident) => self.column_reference(std::slice::from_ref(ident)),
            Expr::CompoundIdentifier(parts) => self.column_reference(parts),
            Expr::CompoundFieldAccess { root, access_chain } => {
                let position = self.start(root);
                self.field_access(root, access_chain).map_err(|error| error.at(position))
            }
            Expr::Value(value) => {
                self.remember_literal(value);
                let result = self.value(&value.value);
                let bound = result.map_err(|error| error.at(self.position(value.span)))?;
                self.remember_parameter(&bound, value.span);
                Ok(bound)
            }
            Expr::Nested(inner) => self.expr(inner),
            Expr::BinaryOp { .. } => self.operator_chain(expr),
            Expr::UnaryOp { op, expr: operand } => self.unary(*op, operand),
            Expr::Cast { kind, expr: operand, data_type, array, format } => {
                if *array
                    || format.is_some()
                    || !matches!(kind, ast::CastKind::Cast | ast::CastKind::DoubleColon)
                {
                    return Err(SqlError::unsupported(format_args!("the cast {expr}")));
                }
                self.cast(operand, data_type, *kind == ast::CastKind::DoubleColon)
            }
            Expr::TypedString(typed) => {
                if typed.uses_odbc_syntax {
                    return Err(SqlError::unsupported("an ODBC literal"));
                }
                self.need_schema_of_type(&typed.data_type);
                let (target, domain) = self.declared_type_of_literal(&typed.data_type)?;
                let position = self.position(typed.value.span);
                self.remember_literal(&typed.value);
                let value = self.value(&typed.value.value)?;
                let value = self
                    .coerce_or_fail(value, target, CastContext::Explicit)
                    .map_err(|error| error.at(position))?;
                self.coerce_domain(value, domain)
            }
            Expr::Interval(interval) => {
                let position = self.start(&interval.value);
                self.interval(interval).map_err(|error| error.at(position))
            }
            Expr::Function(function) => self.function(function),
            Expr::IsNull(operand) => self.null_test(operand, false),
            Expr::IsNotNull(operand) => self.null_test(operand, true),
            Expr::IsTrue(operand) => self.boolean_test(operand, Some(true), false),
            Expr::IsNotTrue(operand) => self.boolean_test(operand, Some(true), true),
            Expr::IsFalse(operand) => self.boolean_test(operand, Some(false), false),
            Expr::IsNotFalse(operand) => self.boolean_test(operand, Some(false), true),
            Expr::IsUnknown(operand) => self.boolean_test(operand, None, false),
            Expr::IsNotUnknown(operand) => self.boolean_test(operand, None, true),
            Expr::IsDistinctFrom(left, right) => self.distinct_from(left, right, false),
            Expr::IsNotDistinctFrom(left, right) => self.distinct_from(left, right, true),
            Expr::Between { expr, negated, low, high } => self.between(expr, low, high, *negated),
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Expr::InSubquery { expr, subquery, negated } => self.in_subquery(expr, subquery, *negated),
            Expr::AnyOp { left, compare_op, right, is_some: _ } => {
                self.quantified(left, compare_op, right, false)
            }
            Expr::AllOp { left, compare_op, right } => self.quantified(left, compare_op, right, true),
            Expr::Exists { subquery, negated } => self.exists(subquery, *negated),
            Expr::Subquery(query) => self.scalar_subquery(query),
            Expr::Case { operand, conditions, else_result, case_token: _, end_token: _ } => self
                .within_conditional("CASE", |binder| {
                    binder.case(operand.as_deref(), conditions, else_result.as_deref())
                }),
            Expr::Array(array) => {
                let position = self.start(expr);
                self.array(&array.elem, None).map_err(|error| error.at(position))
            }
            Expr::Tuple(items) => {
                let items = items.iter().map(|item| self.expr(item)).collect::<Result<Vec<_>>>()?;
                self.row(items)
            }
            Expr::Like { negated, any, expr, pattern, escape_char } => {
                let operator = if *negated { "!~~" } else { "~~" };
                self.like(operator, *any, expr, pattern, escape_char.as_ref())
            }
            Expr::ILike { negated, any, expr, pattern, escape_char } => {
                let operator = if *negated { "!~~*" } else { "~~*" };
                self.like(operator, *any, expr, pattern, escape_char.as_ref())
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                self.similar_to(expr, pattern, escape_char.as_ref(), *negated)
            }
            Expr::Extract { field, syntax, expr } => self.extract(field, syntax, expr),
            Expr::Ceil { expr, field } => self.ceil_floor("ceil", expr, field),
            Expr::Floor { expr, field } => self.ceil_floor("floor", expr, field),
            Expr::Position { expr, r#in } => self.special_function("position", &[r#in, expr]),
            Expr::Substring { expr, substring_from, substring_for, special: _, shorthand } => {
                self.substring(expr, substring_from.as_deref(), substring_for.as_deref(), *shorthand)
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
                self.trim(*trim_where, trim_what.as_deref(), expr, trim_characters.as_deref())
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut args: Vec<&Expr> = vec![expr, overlay_what, overlay_from];
                args.extend(overlay_for.as_deref());
                self.special_function("overlay", &args)
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                self.special_function("timezone", &[time_zone, timestamp])
            }
            Expr::Collate { expr, collation } => {
                let result = self.collate(expr, collation);
                result.map_err(|error| error.at(self.position_after(expr, "COLLATE")))
            }
            // Within an expression a whole row is a value; lists take its columns.
            Expr::QualifiedWildcard(name, _) => {
                let parts: Vec<sqlparser::ast::Ident> =
                    name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
                self.starred_value(&parts).map(|found| found.expr)
            }
            Expr::Wildcard(_) => {
                Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"*\"")
                    .at(self.start(expr)))
            }
            Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => {
                Err(SqlError::new(SqlState::SYNTAX_ERROR, "grouping sets are allowed in GROUP BY only"))
            }
            Expr::IsNormalized { expr, form, negated } => {
                let form = form.as_ref().map_or_else(|| "NFC".to_owned(), ToString::to_string);
                self.is_normalized(expr, &form, *negated)
            }
            Expr::JsonAccess { .. }
            | Expr::InUnnest { .. }
            | Expr::RLike { .. }
            | Expr::Convert { .. }
            | Expr::Prefixed { .. }
            | Expr::Struct { .. }
            | Expr::Named { .. }
            | Expr::Dictionary(_)
            | Expr::Map(_)
            | Expr::MatchAgainst { .. }
            | Expr::OuterJoin(_)
            | Expr::Prior(_)
            | Expr::Lambda(_)
            | Expr::MemberOf(_) => {
                Err(SqlError::unsupported(format_args!("the expression {expr}")).at(self.start(expr)))
            }
        }
    }

    /// `ROW(…)`, `(a, b)`. Literals and parameters stay what they are until it is known what the row
    /// becomes.
    pub(crate) fn row(&mut self, items: Vec<BoundExpr>) -> Result<BoundExpr> {
        if items.len() > TARGETS_MAX {
            let message = format!("ROW expressions can have at most {TARGETS_MAX} entries");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        let items = items
            .into_iter()
            .map(|item| match item.kind {
                ExprKind::Const(_) => Ok(item),
                _ if self.is_open_parameter(&item) => {
                    self.stays_open = true;
                    Ok(item)
                }
                _ => self.resolve_unknown(item),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(BoundExpr::new(ExprKind::Row(items, None), Type::RECORD))
    }

    /// `a.b.c[1].d`: the longest dotted prefix is a name, the rest subscripts and fields.
    fn field_access(&mut self, root: &Expr, chain: &[AccessExpr]) -> Result<BoundExpr> {
        let mut chain = chain;
        let mut value = match root {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let mut parts: Vec<Ident> = match root {
                    Expr::Identifier(ident) => vec![ident.clone()],
                    Expr::CompoundIdentifier(parts) => parts.clone(),
                    _ => Vec::new(),
                };
                while let [AccessExpr::Dot(Expr::Identifier(ident)), rest @ ..] = chain {
                    parts.push(ident.clone());
                    chain = rest;
                }
                self.column_reference(&parts)?
            }
            other => self.expr(other)?,
        };
        let mut subscripts = Vec::new();
        let mut steps = Vec::new();
        for access in chain {
            match access {
                AccessExpr::Subscript(subscript) if value.ty.oid == Oid::JSONB => {
                    steps.push(self.json_subscript(subscript)?);
                }
                AccessExpr::Subscript(subscript) => subscripts.push(self.subscript(subscript)?),
                AccessExpr::Dot(Expr::Identifier(field)) => {
                    value = json_element(value, std::mem::take(&mut steps))?;
                    value = self.apply_subscripts(value, std::mem::take(&mut subscripts))?;
                    // PostgreSQL knows where the record begins, and of its field no place.
                    let begin = span::first_span(root);
                    let known = self.position(begin).is_some();
                    value = self.field(value, field, if known { begin } else { field.span })?;
                }
                AccessExpr::Dot(other) => {
                    return Err(
                        SqlError::unsupported(format_args!("field access {other}")).at(self.start(other))
                    );
                }
            }
        }
        let value = json_element(value, steps)?;
        self.apply_subscripts(value, subscripts)
    }

    pub(crate) fn subscript(&mut self, subscript: &ast::Subscript) -> Result<Subscript> {
        Ok(match subscript {
            ast::Subscript::Index { index } => Subscript::Index(self.subscript_value(index)?),
            ast::Subscript::Slice { lower_bound, upper_bound, stride } => {
                if stride.is_some() {
                    return Err(SqlError::unsupported("an array slice with a stride"));
                }
                Subscript::Slice {
                    lower: lower_bound.as_ref().map(|bound| self.subscript_value(bound)).transpose()?,
                    upper: upper_bound.as_ref().map(|bound| self.subscript_value(bound)).transpose()?,
                }
            }
        })
    }

    fn subscript_value(&mut self, expr: &Expr) -> Result<BoundExpr> {
        let position = self.start(expr);
        let bound = self.expr(expr)?;
        self.coerce(bound, Type::INT4, CastContext::Assignment)?.ok_or_else(|| {
            SqlError::new(SqlState::DATATYPE_MISMATCH, "array subscript must have type integer").at(position)
        })
    }

    fn apply_subscripts(&mut self, array: BoundExpr, subscripts: Vec<Subscript>) -> Result<BoundExpr> {
        if subscripts.is_empty() {
            return Ok(array);
        }
        match array.ty.oid {
            Oid::POINT => return coordinate(array, subscripts),
            Oid::NAME => return name_byte(array, subscripts),
            _ => {}
        }
        let Some(element) = element_of(array.ty.oid) else {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    self.type_name(array.ty.oid)
                ),
            ));
        };
        if subscripts.len() > SUBSCRIPTS_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "number of array dimensions ({}) exceeds the maximum allowed ({SUBSCRIPTS_MAX})",
                    subscripts.len()
                ),
            )
            .placeless());
        }
        let slices = subscripts.iter().any(|subscript| matches!(subscript, Subscript::Slice { .. }));
        let ty = match slices {
            // Slices of int2vector and oidvector are arrays proper (transformContainerType).
            true if is_vector(array.ty.oid) => array_of(element).map_or(array.ty, Type::of),
            true => array.ty,
            false => Type { oid: element, typmod: array.ty.typmod },
        };
        let of_element = self.element_of_domain(array.domain);
        let domain = if slices { self.array_of_domain(of_element) } else { of_element };
        let kind = ExprKind::Subscript { array: Box::new(array), subscripts };
        Ok(BoundExpr::new(kind, ty).of_domain(domain))
    }

    /// A left-leaning chain of binary operators, walked without recursion.
    fn operator_chain(&mut self, expr: &Expr) -> Result<BoundExpr> {
        if let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr {
            return self.logical_chain(expr, op);
        }
        let mut links: Vec<(&Expr, &BinaryOperator, &Expr)> = Vec::new();
        let mut first = expr;
        while let Expr::BinaryOp { left, op, right } = first
            && !matches!(op, BinaryOperator::And | BinaryOperator::Or)
        {
            links.push((left, op, right));
            first = left;
        }
        if links.len() > CHAIN_MAX {
            return Err(archipel_sql::stack::too_deep());
        }
        // The first link sees both syntax trees: row values and subqueries compare specially.
        let mut value = self.expr(first)?;
        for (left, op, right) in links.into_iter().rev() {
            let result = self.binary(value, op, right);
            value = result.map_err(|error| error.at(self.operator_position(left, op)))?;
        }
        Ok(value)
    }

    /// AND and OR over as many operands as there are: long lists are common in generated SQL.
    fn logical_chain(&mut self, expr: &Expr, op: &BinaryOperator) -> Result<BoundExpr> {
        let all = *op == BinaryOperator::And;
        let name = if all { "AND" } else { "OR" };
        let operands = chained(expr, op);
        let mut list = Vec::with_capacity(operands.len());
        for operand in operands {
            let bound = self.expr(operand)?;
            let bound = self.boolean(bound, name).map_err(|error| error.at(self.start(operand)))?;
            match bound.kind {
                // What the first operand stands for may be such a list itself.
                ExprKind::And(own) if all && list.is_empty() => list = own,
                ExprKind::Or(own) if !all && list.is_empty() => list = own,
                kind => list.push(BoundExpr::new(kind, Type::BOOL)),
            }
        }
        let kind = if all { ExprKind::And(list) } else { ExprKind::Or(list) };
        Ok(BoundExpr::new(kind, Type::BOOL))
    }

    fn binary(&mut self, left: BoundExpr, op: &BinaryOperator, right: &Expr) -> Result<BoundExpr> {
        let name = operator_name(op)?;
        if super::row_value::is_row(&left) {
            if !matches!(op, BinaryOperator::Overlaps) {
                return self.row_comparison(left, &name, right);
            }
            if let ExprKind::Row(items, _) = left.kind {
                return self.overlaps(items, right);
            }
            return Err(SqlError::internal("a row that is none"));
        }
        let right = self.expr(right)?;
        self.binary_operator(&name, left, right)
    }

    /// PostgreSQL points at the operator; the tree only knows the operands, so the text after
    /// the left one tells.
    pub(crate) fn operator_position(&self, left: &Expr, op: &BinaryOperator) -> Option<u32> {
        self.position_after(left, &op.to_string())
    }

    /// The position of a word or symbol that follows an expression.
    pub(crate) fn position_after(&self, left: &Expr, word: &str) -> Option<u32> {
        let (from, end) = self.place(span::last_span(left).end)?;
        let rest: String = self.env.text.get(from..)?.chars().take(200).collect();
        let at = rest.to_uppercase().find(&word.to_uppercase())?;
        let before = rest.get(..at)?;
        end.checked_add(u32::try_from(before.chars().count()).ok()?)
    }

    fn remember_literal(&mut self, value: &ast::ValueWithSpan) {
        let text = match &value.value {
            ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => text,
            ast::Value::DollarQuotedString(quoted) => &quoted.value,
            // As they are read.
            ast::Value::SingleQuotedByteStringLiteral(digits) => &format!("b{digits}"),
            ast::Value::HexStringLiteral(digits) => &format!("x{digits}"),
            _ => return,
        };
        if !self.env.text.is_empty() {
            self.literals.push((text.clone(), value.span));
        }
    }

    fn unary(&mut self, op: UnaryOperator, operand: &Expr) -> Result<BoundExpr> {
        let position = self.start(operand);
        match op {
            UnaryOperator::Not => {
                let bound = self.expr(operand)?;
                let bound = self.boolean(bound, "NOT").map_err(|error| error.at(position))?;
                Ok(BoundExpr::new(ExprKind::Not(Box::new(bound)), Type::BOOL))
            }
            // The sign belongs to a number: -2147483648 is an int4.
            UnaryOperator::Minus if matches!(operand, Expr::Value(value) if matches!(value.value, ast::Value::Number(_, false))) =>
            {
                let Expr::Value(value) = operand else {
                    return Err(SqlError::internal("a number that is none"));
                };
                self.number(&format!("-{}", value.value)).map_err(|error| error.at(position))
            }
            _ => {
                let bound = self.expr(operand)?;
                self.prefix_operator(&op.to_string(), bound).map_err(|error| {
                    error.at(position.map(|position| position.saturating_sub(op.to_string().len() as u32)))
                })
            }
        }
    }

    fn cast(&mut self, operand: &Expr, data_type: &ast::DataType, colons: bool) -> Result<BoundExpr> {
        self.need_schema_of_type(data_type);
        let declared = self.declared_type(data_type);
        let (target, domain) = declared.map_err(|error| error.at(self.cast_position(operand, colons)))?;
        // An array constructor takes the element type from the cast around it.
        if let (Some(element), Expr::Array(array)) = (element_of(target.oid), unnest(operand)) {
            let array = self.array(&array.elem, Some(Type { oid: element, typmod: target.typmod }))?;
            if is_vector(target.oid) {
                // The constructor makes one at once: no cast leads to it.
                return Ok(BoundExpr::new(ExprKind::Relabel(Box::new(array)), Type::of(target.oid)));
            }
            let cast = self.coerce_or_fail(array, target, CastContext::Explicit);
            let cast = cast.map_err(|error| error.at(self.cast_position(operand, colons)))?;
            return self.coerce_domain(cast, domain);
        }
        let bound = self.expr(operand)?;
        let from = bound.declared();
        let cast = match self.coerce(bound, target, CastContext::Explicit) {
            Ok(Some(cast)) => cast,
            Ok(None) => return Err(cannot_cast(from, target, self).at(self.cast_position(operand, colons))),
            Err(error) => return Err(error.at(self.cast_position(operand, colons))),
        };
        // Without a modifier it takes away the one that the value had (coerce_type_typmod).
        let cast = match target.typmod < 0 && cast.ty.oid == target.oid && cast.ty.typmod >= 0 {
            true => BoundExpr::new(ExprKind::Relabel(Box::new(cast)), Type::of(target.oid)),
            false => cast,
        };
        self.coerce_domain(cast, domain)
    }

    /// Where an error about a cast points.
    fn cast_position(&self, operand: &Expr, colons: bool) -> Option<u32> {
        if colons { self.position_after(operand, "::") } else { self.start(operand) }
    }

    /// `ARRAY[…]`; with `element`, as if cast to an array of it.
    pub(crate) fn array(&mut self, items: &[Expr], element: Option<Type>) -> Result<BoundExpr> {
        self.array_within(items, element, 1)
    }

    /// As [`Binder::array`], the `level`-th of constructors one inside the other.
    fn array_within(&mut self, items: &[Expr], element: Option<Type>, level: u32) -> Result<BoundExpr> {
        if level > ARRAY_LEVELS_MAX {
            let message = "number of array dimensions (7) exceeds the maximum allowed (6)";
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let mut bound = Vec::with_capacity(items.len());
        for item in items {
            bound.push(match unnest(item) {
                Expr::Array(inner) => self.array_within(&inner.elem, element, level + 1)?,
                _ => self.expr(item)?,
            });
        }
        let nested = bound
            .iter()
            .any(|item| element_of(item.ty.oid).is_some() && matches!(item.kind, ExprKind::Array { .. }));
        let domain = self.array_of_domain(common_domain(&bound));
        let (items, common) = match element {
            Some(element) if !nested => {
                let items = bound
                    .into_iter()
                    .map(|item| {
                        let from = item.ty;
                        self.coerce(item, element, CastContext::Explicit)?
                            .ok_or_else(|| cannot_cast(from, element, self))
                    })
                    .collect::<Result<Vec<_>>>()?;
                (items, element)
            }
            _ if bound.is_empty() => {
                return Err(SqlError::new(
                    SqlState::INDETERMINATE_DATATYPE,
                    "cannot determine type of empty array",
                )
                .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
                .at(empty_array(self.env.text)));
            }
            _ => {
                let written: Vec<&Expr> = items.iter().collect();
                self.unify(bound, &written, "ARRAY")?
            }
        };
        // ARRAY of arrays is one array of more dimensions.
        if let Some(inner) = element_of(common.oid).filter(|_| !is_vector(common.oid)) {
            return Ok(BoundExpr::new(ExprKind::Array { element: inner, items }, common).of_domain(domain));
        }
        let Some(array) = array_of(common.oid) else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("could not find array type for data type {}", self.type_name(common.oid)),
            ));
        };
        let ty = Type { oid: array, typmod: common.typmod };
        Ok(BoundExpr::new(ExprKind::Array { element: common.oid, items }, ty).of_domain(domain))
    }

    fn null_test(&mut self, operand: &Expr, negated: bool) -> Result<BoundExpr> {
        let operand = self.expr(operand)?;
        self.null_test_of(operand, negated)
    }

    fn boolean_test(&mut self, operand: &Expr, value: Option<bool>, negated: bool) -> Result<BoundExpr> {
        let what = match value {
            Some(true) => "IS TRUE",
            Some(false) => "IS FALSE",
            None => "IS UNKNOWN",
        };
        let position = self.start(operand);
        let bound = self.expr(operand)?;
        let expr = Box::new(self.boolean(bound, what).map_err(|error| error.at(position))?);
        let kind = match (value, negated) {
            (Some(value), negated) => ExprKind::IsBool { expr, value, negated },
            (None, false) => ExprKind::IsNull(expr),
            (None, true) => ExprKind::IsNotNull(expr),
        };
        Ok(BoundExpr::new(kind, Type::BOOL))
    }

    /// Binds the parts of a form that may not evaluate all of them.
    pub(crate) fn within_conditional<T>(
        &mut self,
        form: &'static str,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let outer = self.levels.last_mut().and_then(|level| level.conditional.replace(form));
        let bound = bind(self);
        if let Some(level) = self.levels.last_mut() {
            level.conditional = outer;
        }
        bound
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Result<BoundExpr> {
        let operand = match operand {
            Some(operand) => {
                let bound = self.expr(operand)?;
                let bound = self.resolve_unknown(bound)?;
                Some(if conditions.len() > 1 { super::case_operand::mark(bound) } else { bound })
            }
            None => None,
        };
        let mut tests = Vec::with_capacity(conditions.len());
        // PostgreSQL looks at ELSE first when it settles the type.
        let mut results = Vec::with_capacity(conditions.len() + 1);
        let mut written: Vec<&Expr> = conditions.iter().map(|arm| &arm.result).collect();
        for ast::CaseWhen { condition, result } in conditions {
            let position = self.start(condition);
            let test = self.expr(condition)?;
            let test = match &operand {
                Some(operand) => {
                    self.compare_values(operand.clone(), "=", test).map_err(|error| error.at(position))?
                }
                None => self.boolean(test, "CASE/WHEN").map_err(|error| error.at(position))?,
            };
            tests.push(test);
            results.push(self.expr(result)?);
        }
        // An ELSE that is not written is never the one that is wrong.
        if let Some(first) = otherwise.or(written.first().copied()) {
            written.insert(0, first);
        }
        let otherwise = match otherwise {
            Some(otherwise) => self.expr(otherwise)?,
            None => BoundExpr::constant(Datum::Null, Type::UNKNOWN),
        };
        results.insert(0, otherwise);
        let domain = common_domain(&results);
        let (mut results, ty) = self.unify(results, &written, "CASE")?;
        let otherwise = results.remove(0);
        let arms = tests.into_iter().zip(results).collect();
        let kind = ExprKind::Case { arms, otherwise: Some(Box::new(otherwise)) };
        Ok(BoundExpr::new(kind, ty).of_domain(domain))
    }

    /// Text compares by its bytes: the C collation is the only one.
    fn collate(&mut self, expr: &Expr, collation: &ast::ObjectName) -> Result<BoundExpr> {
        let parts = object_name_parts(collation)?;
        let bound = self.expr(expr)?;
        let bound = self.resolve_unknown(bound)?;
        if !matches!(bound.ty.oid, Oid::TEXT | Oid::VARCHAR | Oid::BPCHAR | Oid::NAME) {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("collations are not supported by type {}", self.type_name(bound.ty.oid)),
            ));
        }
        let name = match &parts[..] {
            [name] => name,
            [schema, name] if schema == "pg_catalog" => name,
            _ => return Err(undefined_collation(&parts.join("."))),
        };
        match name.as_str() {
            "C" | "POSIX" | "default" | "ucs_basic" => Ok(bound),
            other => Err(undefined_collation(other)),
        }
    }
}

fn undefined_collation(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("collation \"{name}\" for encoding \"UTF8\" does not exist"),
    )
}

/// The operator's name for lookup; `OPERATOR(pg_catalog.~)` is `~`.
pub(crate) fn operator_name(op: &BinaryOperator) -> Result<String> {
    match op {
        BinaryOperator::PGCustomBinaryOperator(parts) => match &parts[..] {
            [name] => Ok(name.clone()),
            [schema, name] if schema.eq_ignore_ascii_case("pg_catalog") => Ok(name.clone()),
            _ => Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("operator does not exist: {}", parts.join(".")),
            )),
        },
        BinaryOperator::Xor
        | BinaryOperator::DuckIntegerDivide
        | BinaryOperator::MyIntegerDivide
        | BinaryOperator::Match
        | BinaryOperator::Regexp
        | BinaryOperator::Assignment => {
            Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{op}\"")))
        }
        other => Ok(other.to_string()),
    }
}
