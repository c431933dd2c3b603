//! Whole queries: WITH, set operations, VALUES, and the ORDER BY, LIMIT and locks around them.

use archipel_sql::ast::RowLockClause;
use archipel_sql::catalog::OF_DOMAIN;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::CastContext;
use archipel_sql::parser::limit_count;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast;
use sqlparser::ast::{
    Expr, LimitClause, LockClause, OrderBy, OrderByExpr, OrderByKind, Query, SetExpr, SetOperator,
    SetQuantifier,
};

use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::expression::coerce;
use crate::bind::from::lock::lock_refused;
use crate::bind::level::{Level, LevelKind, Relation};
use crate::bind::name::ident_name;
use crate::bind::scope::check_targets;
use crate::bind::span::{item_span, unnest};
use crate::bound::*;

/// What stands around a query's body.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options<'s> {
    pub order_by: &'s [OrderByExpr],
    pub limit: Option<&'s Expr>,
    pub offset: Option<&'s Expr>,
    pub with_ties: bool,
    pub locks: &'s [LockClause],
}

impl Options<'_> {
    fn limits(&self) -> bool {
        self.limit.is_some() || self.offset.is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order_by.is_empty() && !self.limits() && self.locks.is_empty()
    }
}

pub(crate) fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// Reads the parts of a query around its body.
pub(crate) fn options(query: &Query) -> Result<Options<'_>> {
    let Query {
        with: _,
        body: _,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    if for_clause.is_some() || settings.is_some() || format_clause.is_some() || !pipe_operators.is_empty() {
        return Err(SqlError::unsupported("a clause of another dialect after a query"));
    }
    let mut options = Options { locks, ..Options::default() };
    if let Some(OrderBy { kind, interpolate }) = order_by {
        match kind {
            OrderByKind::Expressions(keys) if interpolate.is_none() => options.order_by = keys,
            _ => return Err(SqlError::unsupported("this form of ORDER BY")),
        }
    }
    match limit_clause {
        None => {}
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
            if !limit_by.is_empty() {
                return Err(SqlError::unsupported("LIMIT BY"));
            }
            if let Some((count, with_ties)) = limit.as_ref().map(limit_count) {
                if with_ties && options.order_by.is_empty() {
                    return Err(syntax("WITH TIES cannot be specified without ORDER BY clause"));
                }
                if with_ties
                    && let Expr::Value(value) = unnest(count)
                    && value.value == ast::Value::Null
                {
                    let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
                    return Err(SqlError::new(SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, message));
                }
                options.limit = Some(count);
                options.with_ties = with_ties;
            }
            options.offset = offset.as_ref().map(|offset| &offset.value);
        }
        Some(LimitClause::OffsetCommaLimit { .. }) => {
            return Err(syntax("LIMIT #,# syntax is not supported")
                .with_hint("Use separate LIMIT and OFFSET clauses."));
        }
    }
    // The parser makes a LIMIT of what PostgreSQL has of it.
    if fetch.is_some() {
        return Err(SqlError::unsupported("this form of FETCH FIRST"));
    }
    Ok(options)
}

impl Binder<'_, '_> {
    /// The outermost query: its body may also change data.
    pub(crate) fn statement_query(&mut self, query: &Query) -> Result<BoundStatement> {
        let statement = match query.body.as_ref() {
            SetExpr::Insert(statement)
            | SetExpr::Update(statement)
            | SetExpr::Delete(statement)
            | SetExpr::Merge(statement) => statement,
            _ => return self.top_query(query).map(BoundStatement::Query),
        };
        if !options(query)?.is_empty() {
            return Err(syntax("ORDER BY, LIMIT and locks belong to a SELECT"));
        }
        if matches!(query.body.as_ref(), SetExpr::Merge(_))
            && query.with.as_ref().is_some_and(|with| with.recursive)
        {
            return Err(syntax("WITH RECURSIVE is not supported for MERGE statement"));
        }
        let ctes = self.with_clause(query.with.as_ref(), true)?;
        let statement = self.data_change(statement)?;
        Ok(if ctes.is_empty() {
            statement
        } else {
            BoundStatement::With { ctes, statement: Box::new(statement) }
        })
    }

    pub(crate) fn data_change(&mut self, statement: &ast::Statement) -> Result<BoundStatement> {
        match statement {
            ast::Statement::Insert(insert) => self.insert(insert).map(BoundStatement::Insert),
            ast::Statement::Update(update) => self.update(update).map(BoundStatement::Update),
            ast::Statement::Delete(delete) => self.delete(delete).map(BoundStatement::Delete),
            ast::Statement::Merge(merge) => self.merge(merge).map(BoundStatement::Merge),
            _ => Err(SqlError::internal("a data change of an unknown kind")),
        }
    }

    fn top_query(&mut self, query: &Query) -> Result<BoundQuery> {
        let visible = self.ctes.len();
        let ctes = self.with_clause(query.with.as_ref(), true)?;
        let bound = self.body(&query.body, options(query)?, true, Vec::new())?;
        self.ctes.truncate(visible);
        Ok(with_ctes(ctes, bound))
    }

    /// A query anywhere below the top. Output columns of unknown type become text unless the
    /// caller gives them a type.
    pub(crate) fn query(&mut self, query: &Query, resolve_unknowns: bool) -> Result<BoundQuery> {
        // Locks of the query around do not reach into expressions.
        let outer = std::mem::take(&mut self.locks);
        let result = self.inner_query(query, resolve_unknowns, Vec::new());
        self.locks = outer;
        result
    }

    /// A subquery in FROM, whose tables take these locks.
    pub(crate) fn query_with_locks(
        &mut self,
        query: &Query,
        locks: Vec<RowLockClause>,
    ) -> Result<BoundQuery> {
        let outer = std::mem::take(&mut self.locks);
        let result = self.nested(|binder| binder.inner_query(query, true, locks));
        self.locks = outer;
        result
    }

    fn inner_query(
        &mut self,
        query: &Query,
        resolve_unknowns: bool,
        locks: Vec<RowLockClause>,
    ) -> Result<BoundQuery> {
        let visible = self.ctes.len();
        let ctes = self.with_clause(query.with.as_ref(), false)?;
        let bound = self.body(&query.body, options(query)?, resolve_unknowns, locks)?;
        self.ctes.truncate(visible);
        Ok(with_ctes(ctes, bound))
    }

    fn body(
        &mut self,
        body: &SetExpr,
        options: Options<'_>,
        resolve_unknowns: bool,
        locks: Vec<RowLockClause>,
    ) -> Result<BoundQuery> {
        match body {
            SetExpr::Select(select) => self.select(select, options, resolve_unknowns, locks),
            SetExpr::Query(query) => {
                self.nested(|binder| binder.parenthesized(query, options, resolve_unknowns, locks))
            }
            SetExpr::SetOperation { .. } => {
                if !options.locks.is_empty() || !locks.is_empty() {
                    return Err(lock_refused(options.locks, "is not allowed with UNION/INTERSECT/EXCEPT"));
                }
                let bound = self.set_operation(body)?;
                self.order_output(bound, options, "UNION/INTERSECT/EXCEPT")
            }
            SetExpr::Values(values) => {
                if !options.locks.is_empty() {
                    return Err(lock_refused(options.locks, "cannot be applied to VALUES"));
                }
                let bound = self.values(values)?;
                self.order_output(bound, options, "VALUES")
            }
            SetExpr::Table(table) => {
                let ast::Table { table_name, schema_name } = table.as_ref();
                let name = table_name.as_deref().ok_or_else(|| syntax("TABLE without a name"))?;
                let mut parts: Vec<ast::Ident> =
                    schema_name.iter().map(|schema| ast::Ident::new(schema.clone())).collect();
                parts.push(ast::Ident::new(name));
                self.select_all(ast::ObjectName::from(parts), options, locks)
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "WITH clause containing a data-modifying statement must be at the top level",
                ))
            }
        }
    }

    /// `(query) ORDER BY …`: the outer parts belong to the query inside, if it has none.
    fn parenthesized(
        &mut self,
        query: &Query,
        outer: Options<'_>,
        resolve_unknowns: bool,
        locks: Vec<RowLockClause>,
    ) -> Result<BoundQuery> {
        let inner = options(query)?;
        if !inner.order_by.is_empty() && !outer.order_by.is_empty() {
            return Err(syntax("multiple ORDER BY clauses not allowed"));
        }
        if inner.limits() && outer.limits() {
            return Err(syntax("multiple LIMIT clauses not allowed"));
        }
        let limits = if outer.limits() { outer } else { inner };
        let merged = Options {
            order_by: if outer.order_by.is_empty() { inner.order_by } else { outer.order_by },
            limit: limits.limit,
            offset: limits.offset,
            with_ties: limits.with_ties,
            locks: if outer.locks.is_empty() { inner.locks } else { outer.locks },
        };
        if !inner.locks.is_empty() && !outer.locks.is_empty() {
            return Err(SqlError::unsupported("row locks inside and outside of parentheses"));
        }
        let visible = self.ctes.len();
        let ctes = self.with_clause(query.with.as_ref(), false)?;
        let bound = self.body(&query.body, merged, resolve_unknowns, locks)?;
        self.ctes.truncate(visible);
        Ok(with_ctes(ctes, bound))
    }

    /// UNION, INTERSECT, EXCEPT; a left-leaning chain without recursion.
    fn set_operation(&mut self, body: &SetExpr) -> Result<BoundQuery> {
        let mut links = Vec::new();
        let mut first = body;
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = first {
            links.push((*op, *set_quantifier, right));
            first = left;
        }
        let mut result = self.set_operand(first)?;
        for (op, quantifier, right) in links.into_iter().rev() {
            let (op, name) = match op {
                SetOperator::Union => (SetOp::Union, "UNION"),
                SetOperator::Intersect => (SetOp::Intersect, "INTERSECT"),
                SetOperator::Except => (SetOp::Except, "EXCEPT"),
                SetOperator::Minus => return Err(syntax("syntax error at or near \"MINUS\"")),
            };
            let all = set_quantifier(quantifier)?;
            let bound = self.set_operand(right)?;
            result = self.combine_sets(op, name, all, result, bound, right)?;
        }
        Ok(result)
    }

    pub(crate) fn set_operand(&mut self, body: &SetExpr) -> Result<BoundQuery> {
        let outer = std::mem::take(&mut self.locks);
        let result = self.nested(|binder| binder.body(body, Options::default(), false, Vec::new()));
        self.locks = outer;
        result
    }

    fn combine_sets(
        &mut self,
        op: SetOp,
        name: &str,
        all: bool,
        mut left: BoundQuery,
        mut right: BoundQuery,
        place: &SetExpr,
    ) -> Result<BoundQuery> {
        let position = |binder: &Self, column: usize| match place {
            SetExpr::Select(select) => {
                select.projection.get(column).and_then(|item| binder.position(item_span(item)))
            }
            _ => None,
        };
        if left.columns.len() != right.columns.len() {
            return Err(syntax(&format!("each {name} query must have the same number of columns"))
                .at(position(self, 0)));
        }
        let types = left
            .columns
            .iter()
            .zip(&right.columns)
            .enumerate()
            .map(|(i, (left, right))| {
                self.common_type(&[left.ty, right.ty], name).map_err(|error| error.at(position(self, i)))
            })
            .collect::<Result<Vec<_>>>()?;
        if !all {
            for ty in &types {
                self.require_equality(*ty)?;
            }
        }
        // Of a long chain the left side is itself such an operation: its columns are known.
        if left.columns.iter().zip(&types).any(|(column, ty)| column.ty.oid != ty.oid) {
            left.rel = self.coerce_columns(left.rel, &types, name)?;
        }
        right.rel = self.coerce_columns(right.rel, &types, name)?;
        // Of one domain on both sides, it is of that.
        let domain = |column: &OutputColumn| self.env.catalog.domain_of(column.source);
        let columns = left
            .columns
            .into_iter()
            .zip(&right.columns)
            .zip(types)
            .map(|((column, other), ty)| {
                let common = domain(&column).filter(|domain_of_left| domain(other) == Some(*domain_of_left));
                OutputColumn { name: column.name, ty, source: common.map(|domain| (domain, OF_DOMAIN)) }
            })
            .collect();
        let rel = Rel::SetOp { op, all, left: Box::new(left.rel), right: Box::new(right.rel) };
        Ok(BoundQuery { rel, columns })
    }

    fn values(&mut self, values: &ast::Values) -> Result<BoundQuery> {
        let ast::Values { explicit_row, value_keyword, rows: _ } = values;
        if *explicit_row || *value_keyword {
            return Err(syntax("VALUES takes rows in parentheses"));
        }
        let level = Level::new(LevelKind::Plain, Vec::new());
        let (rows, _) = self.with_level(level, |binder| {
            values
                .rows
                .iter()
                .map(|row| {
                    let row = binder.without_stars(&row.content)?;
                    row.iter().map(|expr| binder.clause_expr(expr, Clause::Values)).collect()
                })
                .collect::<Result<Vec<Vec<_>>>>()
        })?;
        let width = rows.first().map_or(0, Vec::len);
        if let Some(odd) = rows.iter().position(|row| row.len() != width) {
            let place = values.rows[odd].content.first().and_then(|expr| self.start(expr));
            return Err(syntax("VALUES lists must all be the same length").at(place));
        }
        check_targets(width)?;
        let (mut types, mut domains) = (Vec::with_capacity(width), Vec::with_capacity(width));
        for column in 0..width {
            let of_column: Vec<Type> = rows.iter().map(|row| row[column].ty).collect();
            types.push(self.common_type(&of_column, "VALUES")?);
            let first = rows.first().and_then(|row| row[column].domain);
            domains.push(first.filter(|domain| rows.iter().all(|row| row[column].domain == Some(*domain))));
        }
        let rows = rows
            .into_iter()
            .map(|row| {
                row.into_iter()
                    .zip(&types)
                    .map(|(expr, ty)| self.coerce_common(expr, *ty, "VALUES"))
                    .collect()
            })
            .collect::<Result<Vec<Vec<_>>>>()?;
        let columns = types
            .iter()
            .zip(domains)
            .enumerate()
            .map(|(i, (ty, domain))| OutputColumn {
                name: format!("column{}", i + 1),
                ty: *ty,
                source: domain.map(|domain| (domain, OF_DOMAIN)),
            })
            .collect();
        Ok(BoundQuery { rel: Rel::Values { rows, types }, columns })
    }

    /// ORDER BY and LIMIT over output columns alone: of set operations and VALUES.
    fn order_output(&mut self, bound: BoundQuery, options: Options<'_>, what: &str) -> Result<BoundQuery> {
        let BoundQuery { mut rel, columns } = bound;
        let mut keys = Vec::with_capacity(options.order_by.len());
        for key in options.order_by {
            let OrderByExpr { expr, options, with_fill } = key;
            if with_fill.is_some() {
                return Err(SqlError::unsupported("WITH FILL"));
            }
            let position = self.start(expr);
            let index = match self.output_index(expr, &columns, "ORDER BY")? {
                Some(index) => index,
                None => {
                    // Other names than those of the results mean nothing here.
                    if let Expr::Identifier(ident) = unnest(expr) {
                        return Err(self.undefined_column(&[ident_name(ident)], ident.span));
                    }
                    return Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!("invalid {what} ORDER BY clause"),
                    )
                    .with_detail("Only result column names can be used, not expressions or functions.")
                    .with_hint(
                        "Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
                    )
                    .at(position));
                }
            };
            let ty = columns[index].ty;
            self.require_ordering(ty).map_err(|error| error.at(position))?;
            let descending = options.asc == Some(false);
            keys.push(SortKey {
                expr: BoundExpr::column(index, ty),
                descending,
                nulls_first: options.nulls_first.unwrap_or(descending),
            });
        }
        if !keys.is_empty() {
            rel = Rel::Sort { input: Box::new(rel), keys };
        }
        let rel = self.limit(rel, options, Vec::new())?;
        Ok(BoundQuery { rel, columns })
    }

    /// An output column by ordinal or by name; `None` for any other expression.
    pub(crate) fn output_index(
        &self,
        expr: &Expr,
        columns: &[OutputColumn],
        clause: &str,
    ) -> Result<Option<usize>> {
        let position = self.start(expr);
        match unnest(expr) {
            Expr::Identifier(ident) => {
                let name = ident_name(ident);
                let mut found =
                    columns.iter().enumerate().filter(|(_, column)| column.name == name).map(|(i, _)| i);
                let first = found.next();
                if first.is_some() && found.next().is_some() {
                    return Err(SqlError::new(
                        SqlState::AMBIGUOUS_COLUMN,
                        format!("{clause} \"{name}\" is ambiguous"),
                    )
                    .at(position));
                }
                Ok(first)
            }
            other => self.ordinal(other, columns.len(), clause),
        }
    }

    /// A select-list position.
    pub(crate) fn ordinal(&self, expr: &Expr, width: usize, clause: &str) -> Result<Option<usize>> {
        let Expr::Value(value) = expr else {
            // A negative number is a constant like any other, and no column's.
            if let Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr: inner } = expr
                && let Expr::Value(value) = unnest(inner)
                && let ast::Value::Number(digits, false) = &value.value
            {
                let position = self.position(value.span);
                return Err(match digits.parse::<i64>() {
                    Ok(number) => SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        format!("{clause} position -{number} is not in select list"),
                    ),
                    Err(_) => {
                        SqlError::new(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"))
                    }
                }
                .at(position));
            }
            return Ok(None);
        };
        let position = self.position(value.span);
        match &value.value {
            ast::Value::Number(digits, false) => {
                let number: usize = digits.parse().map_err(|_| {
                    SqlError::new(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"))
                        .at(position)
                })?;
                if number == 0 || number > width {
                    return Err(SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        format!("{clause} position {number} is not in select list"),
                    )
                    .at(position));
                }
                Ok(Some(number - 1))
            }
            ast::Value::Placeholder(_) => Ok(None),
            _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"))
                .at(position)),
        }
    }

    /// LIMIT, OFFSET and FETCH over finished rows, which are made of these relations.
    pub(crate) fn limit(&mut self, rel: Rel, options: Options<'_>, relations: Vec<Relation>) -> Result<Rel> {
        if !options.limits() {
            return Ok(rel);
        }
        let offset = self.limit_count(options.offset, Clause::Offset, &relations)?;
        let limit = self.limit_count(options.limit, Clause::Limit, &relations)?;
        if limit.is_none() && offset.is_none() {
            return Ok(rel);
        }
        Ok(Rel::Limit { input: Box::new(rel), limit, offset, with_ties: options.with_ties })
    }

    /// The error of a count that names what it does not see: 42P10 if it is the query's own columns.
    fn about_count(&mut self, error: SqlError, expr: &Expr, clause: Clause, own: &[Relation]) -> SqlError {
        let is_name = matches!(error.state(), SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE);
        if !is_name || own.is_empty() {
            return error;
        }
        let level = Level::new(LevelKind::Plain, own.to_vec());
        match self.with_level(level, |binder| binder.clause_expr(expr, clause)) {
            Ok((_, level)) if level.used => {
                let message = format!("argument of {} must not contain variables", clause.describe());
                SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(error.fields().position)
            }
            _ => error,
        }
    }

    fn limit_count(
        &mut self,
        expr: Option<&Expr>,
        clause: Clause,
        own: &[Relation],
    ) -> Result<Option<BoundExpr>> {
        let Some(expr) = expr else { return Ok(None) };
        let position = self.start(expr);
        let level = Level::new(LevelKind::Plain, Vec::new());
        let bound = self.with_level(level, |binder| binder.clause_expr(expr, clause));
        let (bound, _) = bound.map_err(|error| self.about_count(error, expr, clause, own))?;
        let from = bound.ty;
        let bound = self.coerce(bound, Type::INT8, CastContext::Assignment)?.ok_or_else(|| {
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "argument of {} must be type bigint, not type {}",
                    clause.describe(),
                    self.type_name(from.oid)
                ),
            )
            .at(position)
        })?;
        Ok(match bound.kind {
            ExprKind::Const(Datum::Null) => None,
            _ => Some(bound),
        })
    }

    /// Sorting needs a `<`.
    pub(crate) fn require_ordering(&self, ty: Type) -> Result<()> {
        if self.has_operator("<", ty.oid) {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("could not identify an ordering operator for type {}", self.type_name(ty.oid)),
        )
        .with_hint("Use an explicit ordering operator or modify the query."))
    }

    /// Grouping and DISTINCT need a `=`.
    pub(crate) fn require_equality(&self, ty: Type) -> Result<()> {
        if self.has_operator("=", ty.oid) {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("could not identify an equality operator for type {}", self.type_name(ty.oid)),
        ))
    }

    fn has_operator(&self, name: &str, oid: Oid) -> bool {
        if matches!(oid, Oid::RECORD | Oid::UNKNOWN) || coerce::is_composite(oid) {
            return true;
        }
        match archipel_sql::type_table::element_of(oid) {
            Some(element) => self.has_operator(name, element),
            None => self.operator_of(name, oid, oid).is_ok(),
        }
    }
}

pub(crate) fn set_quantifier(quantifier: SetQuantifier) -> Result<bool> {
    match quantifier {
        SetQuantifier::All => Ok(true),
        SetQuantifier::None | SetQuantifier::Distinct => Ok(false),
        SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
            Err(SqlError::unsupported("a set operation BY NAME"))
        }
    }
}

fn with_ctes(ctes: Vec<Cte>, bound: BoundQuery) -> BoundQuery {
    if ctes.is_empty() {
        return bound;
    }
    BoundQuery { rel: Rel::With { ctes, body: Box::new(bound.rel) }, columns: bound.columns }
}
