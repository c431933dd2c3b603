//! Calls: which function a name and its arguments mean, and what becomes of it. A scalar
//! function stays where it is; aggregates, window functions and set-returning functions are
//! handed to the query level they belong to, which leaves a placeholder column behind.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{Aggregate, CastContext, Intrinsic};
use archipel_sql::ordered_set::HYPOTHETICAL;
use archipel_sql::parser::starred;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArgumentClause, FunctionArguments, ObjectName, OrderByExpr,
};
use sqlparser::tokenizer::Span;

use super::argument::Argument;
use super::call_syntax::normal_form;
use super::gather::GatheredCall;
use super::overload::{Resolved, drop_void_parameters};
use crate::bind::binder::Binder;
use crate::bind::expression::domain::{populated_domain, reads_rows};
use crate::bind::expression::record::unregistered;
use crate::bind::expression::row_value::is_variable_row;
use crate::bind::name::{ident_name, object_name_parts, object_name_span};
use crate::bound::*;

/// Whether a call is over `*`.
fn is_star(list: &[FunctionArg]) -> bool {
    matches!(list, [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)])
}

/// Whether an aggregate is called as its kind is: over `*` if it has no parameters, WITHIN GROUP if it is
/// over an ordered set. Its arguments are these, written and bound.
fn check_aggregate_form(
    name: &str,
    function: &Accumulator,
    (list, args): (&[FunctionArg], &[BoundExpr]),
    call: &GatheredCall<'_>,
) -> Result<()> {
    let star = is_star(list);
    if star && !args.is_empty()
        || (!star && list.is_empty() && call.within_group.is_empty() && args.is_empty())
    {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("{name}(*) must be used to call a parameterless aggregate function"),
        ));
    }
    let ordered_set = matches!(function.builtin(), Some(Aggregate::OrderedSet | Aggregate::Hypothetical));
    let message = match (ordered_set, call.within_group.is_empty()) {
        (true, true) => format!("WITHIN GROUP is required for ordered-set aggregate {name}"),
        (false, false) => {
            format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP")
        }
        _ => return Ok(()),
    };
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
}

/// Refuses what only calls of aggregates and window functions have.
fn check_plain_form(name: &str, list: &[FunctionArg], call: &GatheredCall<'_>) -> Result<()> {
    let message = if call.over.is_some() {
        format!("OVER specified, but {name} is not a window function nor an aggregate function")
    } else {
        let what = if is_star(list) {
            format!("{name}(*)")
        } else if call.distinct {
            "DISTINCT".to_owned()
        } else if !call.within_group.is_empty() {
            "WITHIN GROUP".to_owned()
        } else if !call.order_by.is_empty() {
            "ORDER BY".to_owned()
        } else if call.filter.is_some() {
            "FILTER".to_owned()
        } else {
            return Ok(());
        };
        format!("{what} specified, but {name} is not an aggregate function")
    };
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
}

impl Binder<'_, '_> {
    /// A call in an expression.
    pub(crate) fn function(&mut self, call: &Function) -> Result<BoundExpr> {
        let Function { name, uses_odbc_syntax, parameters, args, filter, null_treatment, over, within_group } =
            call;
        let span = object_name_span(name);
        let position = self.position(span);
        let parts = object_name_parts(name)?;
        if *uses_odbc_syntax || !matches!(parameters, FunctionArguments::None) {
            return Err(SqlError::unsupported(format_args!("the call {call}")).at(position));
        }
        if null_treatment.is_some() {
            return Err(SqlError::unsupported("IGNORE NULLS and RESPECT NULLS").at(position));
        }
        let list = match args {
            FunctionArguments::None => {
                return self.value_function(&parts, None).map_err(|error| error.at(position));
            }
            FunctionArguments::Subquery(query) => {
                if parts[..] == ["array"] && filter.is_none() && over.is_none() {
                    return self.array_subquery(query).map_err(|error| error.at(position));
                }
                // f((SELECT …)) lost its inner parentheses in the syntax tree.
                let value = self.scalar_subquery(query)?;
                return self.plain_call(&parts, vec![Argument::positional(value)], span);
            }
            FunctionArguments::List(list) => list,
        };
        let mut order_by: &[OrderByExpr] = &[];
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::OrderBy(keys) => order_by = keys,
                other => return Err(SqlError::unsupported(format_args!("{other} in a call")).at(position)),
            }
        }
        let distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
        let plain = !distinct
            && list.duplicate_treatment.is_none()
            && order_by.is_empty()
            && filter.is_none()
            && over.is_none()
            && within_group.is_empty();
        if let ([form], true) = (&parts[..], plain && is_unquoted(name)) {
            let exprs = || list.args.iter().map(plain_argument).collect::<Option<Vec<&Expr>>>();
            match form.as_str() {
                "coalesce" | "nullif" | "greatest" | "least" => {
                    if let Some(args) = exprs() {
                        return self.conditional_form(form, &args, position);
                    }
                }
                "row" => {
                    let mut items = Vec::new();
                    for arg in &list.args {
                        items.extend(self.row_items(arg)?);
                    }
                    return self.row(items);
                }
                "normalize" => match exprs().as_deref() {
                    Some([value]) => return self.normalize(value, "NFC", position),
                    Some([value, Expr::Identifier(form)]) => {
                        if let Some(form) = normal_form(form) {
                            return self.normalize(value, form, position);
                        }
                    }
                    _ => {}
                },
                "grouping" => {
                    if let Some(args) = exprs() {
                        return self.grouping_call(&args).map_err(|error| error.at(position));
                    }
                }
                "current_timestamp" | "current_time" | "localtime" | "localtimestamp" => {
                    if let Some([Expr::Value(precision)]) =
                        exprs().map(|list| list.into_iter().cloned().collect::<Vec<_>>()).as_deref()
                    {
                        let precision = precision.value.to_string().parse::<i32>().ok();
                        return self.value_function(&parts, precision).map_err(|error| error.at(position));
                    }
                }
                _ => {}
            }
        }
        let call =
            GatheredCall { distinct, order_by, filter: filter.as_deref(), within_group, over: over.as_ref() };
        self.general_call(&parts, &list.args, call, span)
    }

    /// Arguments that stand for themselves: no wildcard, no name.
    fn general_call(
        &mut self,
        parts: &[String],
        list: &[FunctionArg],
        call: GatheredCall<'_>,
        span: Span,
    ) -> Result<BoundExpr> {
        let position = self.position(span);
        let star = is_star(list);
        // The references made by an aggregate's arguments do not have to be grouped.
        let mut references = self.reference_counts();
        let mut args = if star { Vec::new() } else { self.call_arguments(list)? };
        if call.within_group.is_empty() {
            drop_void_parameters(&mut args);
        }
        let mut direct: Vec<Option<u32>> = Vec::new();
        if !call.within_group.is_empty() {
            self.refuse_within_group(&call, span)?;
            // Those before WITHIN GROUP are not aggregated.
            references = self.reference_counts();
            direct.extend(args.iter().map(|arg| arg.position));
        }
        let (schema, name) = function_name(parts).map_err(|error| error.at(position))?;
        if !call.within_group.is_empty()
            && HYPOTHETICAL.contains(&name)
            && schema.is_none_or(|schema| schema == "pg_catalog")
        {
            return self.hypothetical_call(name, args, call, references, span);
        }
        // Ordered-set aggregates take their sort column as a last argument.
        let mut within_order = Vec::new();
        for key in call.within_group {
            let key = self.aggregate_sort_key(key)?;
            args.push(Argument::positional(key.expr.clone()));
            within_order.push(key);
        }
        let written: Vec<BoundExpr> = match call.order_by {
            [] => Vec::new(),
            _ => args.iter().map(|arg| arg.value.clone()).collect(),
        };
        let resolved =
            self.resolve_function(schema, name, args, false, span).map_err(|error| error.at(position))?;
        match resolved {
            Resolved::Aggregate { function, args, result } => {
                check_aggregate_form(name, &function, (list, &args), &call)
                    .map_err(|error| error.at(position))?;
                let domain = self.aggregated_domain(&function, &args);
                if call.over.is_some() {
                    self.check_window_use(&function).map_err(|error| error.at(position))?;
                    let function = WindowFunction::Aggregate(function);
                    return Ok(self.window_call(function, args, result, &call, span)?.of_domain(domain));
                }
                let call = self.aggregate_call(function, args, &written, result, call, within_order)?;
                Ok(self.gather_aggregate(call, &direct, references, span)?.of_domain(domain))
            }
            Resolved::Ranking { function: ranking, args, result } => {
                if call.over.is_none() {
                    return Err(SqlError::new(
                        SqlState::WRONG_OBJECT_TYPE,
                        format!("window function {name} requires an OVER clause"),
                    )
                    .at(position));
                }
                if call.distinct {
                    return Err(super::window::distinct_over_window().at(position));
                }
                let domain = self.ranked_domain(ranking, &args);
                let call = self.window_call(WindowFunction::Ranking(ranking), args, result, &call, span)?;
                Ok(call.of_domain(domain))
            }
            other => {
                check_plain_form(name, list, &call).map_err(|error| error.at(position))?;
                self.scalar_result(other, position)
            }
        }
    }

    /// How many references to columns each level knows of.
    fn reference_counts(&self) -> Vec<usize> {
        self.levels.iter().map(|level| level.references.len()).collect()
    }

    /// What PostgreSQL's grammar does not take together with WITHIN GROUP.
    fn refuse_within_group(&self, call: &GatheredCall<'_>, span: Span) -> Result<()> {
        let message = match (call.order_by, call.distinct) {
            ([_, ..], _) => "cannot use multiple ORDER BY clauses with WITHIN GROUP",
            ([], true) => "cannot use DISTINCT with WITHIN GROUP",
            ([], false) => return Ok(()),
        };
        let after = call.order_by.last().and_then(|key| self.start(&key.expr)).or(self.position(span));
        let place = after.and_then(|start| {
            let behind: String = self.env.text.chars().skip(start as usize - 1).collect();
            let words = behind.to_ascii_lowercase().find("within")?;
            Some(start + behind[..words].chars().count() as u32)
        });
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(place))
    }

    /// A call without any clause, by parts.
    pub(crate) fn plain_call(
        &mut self,
        parts: &[String],
        args: Vec<Argument>,
        span: Span,
    ) -> Result<BoundExpr> {
        let position = self.position(span);
        let references = self.reference_counts();
        let (schema, name) = function_name(parts).map_err(|error| error.at(position))?;
        match self.resolve_function(schema, name, args, false, span).map_err(|error| error.at(position))? {
            Resolved::Aggregate { function, args, result } => {
                let domain = self.aggregated_domain(&function, &args);
                let call = AggregateCall {
                    function,
                    args,
                    distinct: false,
                    filter: None,
                    order_by: Vec::new(),
                    result,
                };
                Ok(self.gather_aggregate(call, &[], references, span)?.of_domain(domain))
            }
            Resolved::Ranking { .. } => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("window function {name} requires an OVER clause"),
            )
            .at(position)),
            other => self.scalar_result(other, position),
        }
    }

    pub(crate) fn scalar_result(&mut self, resolved: Resolved, position: Option<u32>) -> Result<BoundExpr> {
        match resolved {
            // The type of an expression is known here and nowhere later.
            Resolved::Scalar { function, args }
                if function.is(Intrinsic::TypeOf) && args.len() == 1 && !self.is_open_parameter(&args[0]) =>
            {
                Ok(BoundExpr::constant(Datum::Oid(args[0].declared().oid), Type::REGTYPE))
            }
            Resolved::Scalar { function, args } => {
                let ty = function.result;
                if reads_rows(function.intrinsic()) {
                    let domain = populated_domain(function.intrinsic(), &args);
                    let call = BoundExpr::new(ExprKind::Call { function, args }, ty);
                    return self.guarded_result(call, domain);
                }
                let own = function.function;
                let domain = self.polymorphic_domain(own.args, own.result, &args);
                Ok(BoundExpr::new(ExprKind::Call { function, args }, ty).of_domain(domain))
            }
            Resolved::Cast(expr) => Ok(expr),
            Resolved::Routine { routine, args, result } => {
                let domain = routine.result_domain;
                if routine.returns_set {
                    let call = SetCall::Routine { routine, args };
                    let set = self.gather_set(call, result).map_err(|error| error.at(position))?;
                    return Ok(set.of_domain(domain));
                }
                Ok(BoundExpr::new(ExprKind::Routine { routine, args }, result).of_domain(domain))
            }
            Resolved::Set { function, args, columns } => {
                let ty = match columns[..] {
                    [only] => only,
                    _ => Type::RECORD,
                };
                let populated = populated_domain(function.intrinsic, &args);
                let domain = match function.columns {
                    [(_, declared)] => self.polymorphic_domain(function.args, *declared, &args),
                    _ => None,
                };
                let set = self.gather_set(SetCall::Builtin { function, args }, ty);
                let set = set.map_err(|error| error.at(position))?.of_domain(domain);
                if reads_rows(function.intrinsic) { self.guarded_result(set, populated) } else { Ok(set) }
            }
            Resolved::Aggregate { .. } | Resolved::Ranking { .. } => {
                Err(SqlError::internal("a gathered call taken for a scalar"))
            }
        }
    }

    /// A catalog function by name, for syntax that means it.
    pub(crate) fn builtin_call(&mut self, name: &str, args: Vec<BoundExpr>) -> Result<BoundExpr> {
        let args = args.into_iter().map(Argument::positional).collect();
        let resolved = self.resolve_function(Some("pg_catalog"), name, args, false, Span::empty())?;
        self.scalar_result(resolved, None)
    }

    /// The arguments of a call, bound.
    pub(crate) fn call_arguments(&mut self, list: &[FunctionArg]) -> Result<Vec<Argument>> {
        let mut args = Vec::with_capacity(list.len());
        for arg in list {
            args.extend(self.argument(arg)?);
        }
        Ok(args)
    }

    fn argument(&mut self, arg: &FunctionArg) -> Result<Vec<Argument>> {
        match arg {
            // `name := value` arrives as an operator.
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
                left,
                op: sqlparser::ast::BinaryOperator::Assignment,
                right,
            })) if matches!(**left, Expr::Identifier(_)) => {
                let Expr::Identifier(name) = left.as_ref() else {
                    return Err(SqlError::internal("a name that is none"));
                };
                let (name, value) = (Some(ident_name(name)), self.expr(right)?);
                Ok(vec![Argument { name, value, variadic: false, position: None }])
            }
            FunctionArg::Unnamed(given) => {
                let position = match given {
                    FunctionArgExpr::Expr(expr) => self.start(expr),
                    _ => None,
                };
                let values = self.argument_values(arg)?.into_iter();
                Ok(values.map(|value| Argument { position, ..Argument::positional(value) }).collect())
            }
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), operator } => {
                if !matches!(operator, FunctionArgOperator::RightArrow | FunctionArgOperator::Assignment) {
                    return Err(SqlError::unsupported(format_args!("the argument {arg}")));
                }
                let (name, value) = (ident_name(name), self.expr(expr)?);
                let position = self.start(expr);
                Ok(vec![named_argument(name, value, position)])
            }
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(expr),
                operator: FunctionArgOperator::RightArrow | FunctionArgOperator::Assignment,
            } => {
                let (name, value) = (ident_name(name), self.expr(expr)?);
                let position = self.start(expr);
                Ok(vec![named_argument(name, value, position)])
            }
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                Err(SqlError::unsupported(format_args!("the argument {arg}")))
            }
        }
    }

    /// An item of ROW: a value, or all fields of one.
    fn row_items(&mut self, arg: &FunctionArg) -> Result<Vec<BoundExpr>> {
        let row = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => match starred(expr) {
                Some(row) => self.expr(&row)?,
                None => return self.argument_values(arg),
            },
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)) => {
                match self.argument_values(arg)?.pop() {
                    Some(row) if is_variable_row(&row) => return Err(unregistered().placeless()),
                    Some(row) => row,
                    None => return Ok(Vec::new()),
                }
            }
            _ => return self.argument_values(arg),
        };
        if self.record_fields(&row).is_none() {
            return Ok(vec![row]);
        }
        let fields = self.all_fields(row, Span::empty())?;
        Ok(fields.into_iter().map(|(_, field)| field).collect())
    }

    /// An unnamed argument's values: `t.*` is the whole row.
    fn argument_values(&mut self, arg: &FunctionArg) -> Result<Vec<BoundExpr>> {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(vec![self.expr(expr)?]),
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                let parts: Vec<sqlparser::ast::Ident> =
                    name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
                Ok(vec![self.starred_value(&parts)?.expr])
            }
            other => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("{other} is not allowed as an argument here"),
            )),
        }
    }

    /// CURRENT_DATE and its kin, which PostgreSQL's grammar knows without parentheses.
    pub(crate) fn value_function(&mut self, parts: &[String], precision: Option<i32>) -> Result<BoundExpr> {
        let [name] = parts else {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("{} needs parentheses", parts.join(".")),
            ));
        };
        let typmod = precision.map_or(-1, |precision| precision.clamp(0, 6));
        let (function, target) = match name.as_str() {
            "current_date" => ("now", Some(Type::DATE)),
            "current_timestamp" => ("now", Some(Type { oid: Oid::TIMESTAMPTZ, typmod })),
            "localtimestamp" => ("now", Some(Type { oid: Oid::TIMESTAMP, typmod })),
            "current_time" => ("now", Some(Type { oid: Oid::TIMETZ, typmod })),
            "localtime" => ("now", Some(Type { oid: Oid::TIME, typmod })),
            "current_user" | "current_role" | "user" => ("current_user", None),
            "session_user" => ("session_user", None),
            "current_catalog" => ("current_database", None),
            "current_schema" => ("current_schema", None),
            other => {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{other}\" does not exist"),
                ));
            }
        };
        let value = self.builtin_call(function, Vec::new())?;
        match target {
            Some(target) => self.coerce_or_fail(value, target, CastContext::Explicit),
            None => Ok(value),
        }
    }

    /// A constant argument list for a default that PostgreSQL writes as NULL.
    pub(crate) fn null(ty: Type) -> BoundExpr {
        BoundExpr::constant(Datum::Null, ty)
    }
}

fn plain_argument(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

fn is_unquoted(name: &ObjectName) -> bool {
    name.0.iter().all(|part| part.as_ident().is_some_and(|ident| ident.quote_style.is_none()))
}

fn function_name(parts: &[String]) -> Result<(Option<&str>, &str)> {
    match parts {
        [name] => Ok((None, name)),
        [schema, name] | [_, schema, name] => Ok((Some(schema), name)),
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("improper qualified name (too many dotted names): {}", parts.join(".")),
        )),
    }
}

/// An argument that is written with a name, or with VARIADIC, or with both.
fn named_argument(name: String, value: BoundExpr, position: Option<u32>) -> Argument {
    match name.strip_prefix(archipel_sql::ast::VARIADIC_ARGUMENT) {
        None => Argument { name: Some(name), value, variadic: false, position },
        Some(own) => {
            let name = (!own.is_empty()).then(|| own.to_owned());
            Argument { name, value, variadic: true, position }
        }
    }
}
