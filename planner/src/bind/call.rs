//! Calls: which function a name and its arguments mean, and what becomes of it. A scalar
//! function stays where it is; aggregates, window functions and set-returning functions are
//! handed to the query level they belong to, which leaves a placeholder column behind.

use archipel_sql::catalog::{ArgMode, Routine, RoutineKind, RoutineRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{
    self, AggregateFunction, CastContext, ResolvedFunction, ScalarFunction, SetFunction,
};
use archipel_sql::type_table::{array_of, element_of, format_type, type_by_name};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArgumentClause, FunctionArguments, ObjectName, OrderByExpr,
};
use sqlparser::tokenizer::Span;

use super::coerce::{is_polymorphic, resolve_polymorphic};
use super::name::{ident_name, object_name_parts, object_name_span};
use super::resolve::{Choice, choose, type_list};
use super::scope::{AGGREGATE_BASE, GROUPING_BASE, LevelKind, SET_BASE, WINDOW_BASE};
use super::visit::{lower_depth, nearest_depth, visit_expr};
use super::window::ranking_functions;
use super::{Binder, Clause};
use crate::bound::*;

/// An argument of a call.
pub(crate) struct Argument {
    pub name: Option<String>,
    pub value: BoundExpr,
    /// VARIADIC: the array itself, not its elements.
    pub variadic: bool,
}

impl Argument {
    pub(crate) fn positional(value: BoundExpr) -> Argument {
        Argument { name: None, value, variadic: false }
    }
}

/// A function chosen, its arguments converted and completed.
pub(crate) enum Resolved {
    Scalar {
        function: ResolvedFunction,
        args: Vec<BoundExpr>,
    },
    Routine {
        routine: RoutineRef,
        args: Vec<BoundExpr>,
        result: Type,
    },
    Set {
        function: &'static SetFunction,
        args: Vec<BoundExpr>,
        columns: Vec<Type>,
    },
    Aggregate {
        function: &'static AggregateFunction,
        args: Vec<BoundExpr>,
        result: Type,
    },
    Ranking {
        name: &'static str,
        args: Vec<BoundExpr>,
        result: Type,
    },
    /// `int4(x)`: a cast in a call's clothes.
    Cast(BoundExpr),
}

/// What a name may mean.
#[derive(Clone)]
enum Callee {
    Scalar(&'static ScalarFunction),
    Routine(RoutineRef),
    Set(&'static SetFunction),
    Aggregate(&'static AggregateFunction),
    Ranking(&'static super::window::RankingFunction),
}

/// A parameter of a candidate.
struct Parameter {
    name: Option<String>,
    ty: Oid,
    default: bool,
}

/// How a candidate's parameters are filled.
#[derive(Clone, Debug)]
enum Slot {
    Argument(usize),
    Default,
    /// The rest of the arguments, as the elements of a VARIADIC array.
    Rest(Vec<usize>),
    /// The rest of the arguments, one by one (VARIADIC "any").
    Spread(Vec<usize>),
}

struct Candidate {
    callee: Callee,
    slots: Vec<Slot>,
    /// Declared types, in the order of the actual arguments.
    types: Vec<Oid>,
    variadic: bool,
    defaults: usize,
}

/// OUT, INOUT and TABLE columns of a routine, as names and types.
pub fn output_arguments(routine: &Routine) -> Vec<(String, Type)> {
    routine
        .args
        .iter()
        .filter(|arg| matches!(arg.mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table))
        .enumerate()
        .map(|(i, arg)| (arg.name.clone().unwrap_or_else(|| format!("column{}", i + 1)), arg.ty))
        .collect()
}

/// Matches actual arguments to parameters; `None` if they cannot fit by number or name.
fn fit(
    parameters: &[Parameter],
    variadic: bool,
    names: &[Option<&str>],
) -> Option<(Vec<Slot>, Vec<Oid>, bool, usize)> {
    let positional = names.iter().take_while(|name| name.is_none()).count();
    let mut types = vec![Oid::UNKNOWN; names.len()];
    let mut slots: Vec<Option<Slot>> = parameters.iter().map(|_| None).collect();
    let mut expanded = false;
    let fixed = if variadic { parameters.len().checked_sub(1)? } else { parameters.len() };
    if positional > fixed {
        if !variadic {
            return None;
        }
        let rest: Vec<usize> = (fixed..positional).collect();
        let last = parameters[fixed].ty;
        let spread = last == Oid::ANY;
        let element = match last {
            Oid::ANY => Oid::ANY,
            Oid::ANYARRAY => Oid::ANYELEMENT,
            Oid::ANYCOMPATIBLEARRAY => Oid::ANYCOMPATIBLE,
            array => element_of(array)?,
        };
        for &argument in &rest {
            types[argument] = element;
        }
        slots[fixed] = Some(if spread { Slot::Spread(rest) } else { Slot::Rest(rest) });
        expanded = true;
    }
    for (i, parameter) in parameters.iter().enumerate().take(positional.min(fixed)) {
        slots[i] = Some(Slot::Argument(i));
        types[i] = parameter.ty;
    }
    for (argument, name) in names.iter().enumerate().skip(positional) {
        let place = parameters
            .iter()
            .position(|parameter| parameter.name.is_some() && parameter.name.as_deref() == *name)?;
        if slots[place].is_some() {
            return None;
        }
        slots[place] = Some(Slot::Argument(argument));
        types[argument] = parameters[place].ty;
    }
    let mut defaults = 0;
    let slots = slots
        .into_iter()
        .zip(parameters)
        .map(|(slot, parameter)| match slot {
            Some(slot) => Some(slot),
            None if parameter.default => {
                defaults += 1;
                Some(Slot::Default)
            }
            None => None,
        })
        .collect::<Option<Vec<_>>>()?;
    Some((slots, types, expanded, defaults))
}

impl Callee {
    fn parameters(&self, procedure_call: bool) -> (Vec<Parameter>, bool) {
        let plain = |types: &[Oid], names: &[&str]| {
            types
                .iter()
                .enumerate()
                .map(|(i, &ty)| Parameter {
                    name: names.get(i).filter(|name| !name.is_empty()).map(|name| (*name).to_owned()),
                    ty,
                    default: false,
                })
                .collect::<Vec<_>>()
        };
        match self {
            Callee::Scalar(function) => {
                let mut parameters = plain(function.args, function.arg_names);
                let first = parameters.len().saturating_sub(function.defaults.len());
                for parameter in parameters.iter_mut().skip(first) {
                    parameter.default = true;
                }
                (parameters, function.variadic)
            }
            Callee::Set(function) => (plain(function.args, function.arg_names), false),
            Callee::Aggregate(function) => (plain(function.args, &[]), false),
            Callee::Ranking(function) => (plain(function.args, &[]), false),
            Callee::Routine(routine) => {
                let inputs = routine.args.iter().filter(|arg| is_input(arg.mode, procedure_call));
                let parameters: Vec<Parameter> = inputs
                    .map(|arg| Parameter {
                        name: arg.name.clone(),
                        ty: arg.ty.oid,
                        default: arg.default.is_some(),
                    })
                    .collect();
                (parameters, routine.args.iter().any(|arg| arg.mode == ArgMode::Variadic))
            }
        }
    }

    fn result(&self) -> Oid {
        match self {
            Callee::Scalar(function) => function.result,
            Callee::Routine(routine) => routine.result.oid,
            Callee::Set(_) => Oid::RECORD,
            Callee::Aggregate(function) => function.result,
            Callee::Ranking(function) => function.result,
        }
    }
}

/// CALL names OUT parameters, too; their values are not used.
fn is_input(mode: ArgMode, procedure_call: bool) -> bool {
    match mode {
        ArgMode::In | ArgMode::InOut | ArgMode::Variadic => true,
        ArgMode::Out => procedure_call,
        ArgMode::Table => false,
    }
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
                        return self.conditional_form(form, &args);
                    }
                }
                "row" => {
                    let mut items = Vec::new();
                    for arg in &list.args {
                        items.extend(self.argument_values(arg)?);
                    }
                    return self.row(items);
                }
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
        let star = matches!(list, [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
        // The references made by an aggregate's arguments do not have to be grouped.
        let references: Vec<usize> = self.levels.iter().map(|level| level.references.len()).collect();
        let mut args = if star { Vec::new() } else { self.call_arguments(list)? };
        // Ordered-set aggregates take their sort column as a last argument.
        let mut within_order = Vec::new();
        for key in call.within_group {
            let key = self.aggregate_sort_key(key)?;
            args.push(Argument::positional(key.expr.clone()));
            within_order.push(key);
        }
        let (schema, name) = function_name(parts).map_err(|error| error.at(position))?;
        let resolved =
            self.resolve_function(schema, name, args, false).map_err(|error| error.at(position))?;
        let gathers = call.distinct
            || !call.order_by.is_empty()
            || call.filter.is_some()
            || !call.within_group.is_empty();
        match resolved {
            Resolved::Aggregate { function, args, result } => {
                if star && !args.is_empty()
                    || (!star && list.is_empty() && call.within_group.is_empty() && function.args.is_empty())
                {
                    return Err(SqlError::new(
                        SqlState::WRONG_OBJECT_TYPE,
                        format!("{name}(*) must be used to call a parameterless aggregate function"),
                    )
                    .at(position));
                }
                if call.over.is_some() {
                    return self.window_call(WindowFunction::Aggregate(function), args, result, &call, span);
                }
                let call = self.aggregate_call(function, args, result, call, within_order)?;
                self.gather_aggregate(call, references, span)
            }
            Resolved::Ranking { name: ranking, args, result } => {
                if call.over.is_none() {
                    return Err(SqlError::new(
                        SqlState::WRONG_OBJECT_TYPE,
                        format!("window function {name} requires an OVER clause"),
                    )
                    .at(position));
                }
                if call.distinct {
                    return Err(SqlError::unsupported("DISTINCT for a window function").at(position));
                }
                self.window_call(WindowFunction::Ranking(ranking), args, result, &call, span)
            }
            other => {
                if call.over.is_some() {
                    return Err(SqlError::new(
                        SqlState::WRONG_OBJECT_TYPE,
                        format!(
                            "OVER specified, but {name} is not a window function nor an aggregate function"
                        ),
                    )
                    .at(position));
                }
                if gathers || star {
                    let what = if star {
                        format!("{name}(*) specified, but {name} is not an aggregate function")
                    } else if call.distinct {
                        format!("DISTINCT specified, but {name} is not an aggregate function")
                    } else if !call.within_group.is_empty() {
                        format!("WITHIN GROUP specified, but {name} is not an aggregate function")
                    } else if !call.order_by.is_empty() {
                        format!("ORDER BY specified, but {name} is not an aggregate function")
                    } else {
                        format!("FILTER specified, but {name} is not an aggregate function")
                    };
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, what).at(position));
                }
                self.scalar_result(other, position)
            }
        }
    }

    /// A call without any clause, by parts.
    fn plain_call(&mut self, parts: &[String], args: Vec<Argument>, span: Span) -> Result<BoundExpr> {
        let position = self.position(span);
        let references: Vec<usize> = self.levels.iter().map(|level| level.references.len()).collect();
        let (schema, name) = function_name(parts).map_err(|error| error.at(position))?;
        match self.resolve_function(schema, name, args, false).map_err(|error| error.at(position))? {
            Resolved::Aggregate { function, args, result } => {
                let call = AggregateCall {
                    function,
                    args,
                    distinct: false,
                    filter: None,
                    order_by: Vec::new(),
                    result,
                };
                self.gather_aggregate(call, references, span)
            }
            Resolved::Ranking { .. } => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("window function {name} requires an OVER clause"),
            )
            .at(position)),
            other => self.scalar_result(other, position),
        }
    }

    fn scalar_result(&mut self, resolved: Resolved, position: Option<u32>) -> Result<BoundExpr> {
        match resolved {
            // The type of an expression is known here and nowhere later.
            Resolved::Scalar { function, args }
                if function.function.name == "pg_typeof" && args.len() == 1 =>
            {
                Ok(BoundExpr::constant(Datum::Oid(args[0].ty.oid), Type::REGTYPE))
            }
            Resolved::Scalar { function, args } => {
                let ty = function.result;
                Ok(BoundExpr::new(ExprKind::Call { function, args }, ty))
            }
            Resolved::Cast(expr) => Ok(expr),
            Resolved::Routine { routine, args, result } => {
                if routine.returns_set {
                    let call = SetCall::Routine { routine, args };
                    return self.gather_set(call, result).map_err(|error| error.at(position));
                }
                Ok(BoundExpr::new(ExprKind::Routine { routine, args }, result))
            }
            Resolved::Set { function, args, columns } => {
                let ty = match columns[..] {
                    [only] => only,
                    _ => Type::RECORD,
                };
                self.gather_set(SetCall::Builtin { function, args }, ty).map_err(|error| error.at(position))
            }
            Resolved::Aggregate { .. } | Resolved::Ranking { .. } => {
                Err(SqlError::internal("a gathered call taken for a scalar"))
            }
        }
    }

    /// A catalog function by name, for syntax that means it.
    pub(crate) fn builtin_call(&mut self, name: &str, args: Vec<BoundExpr>) -> Result<BoundExpr> {
        let args = args.into_iter().map(Argument::positional).collect();
        let resolved = self.resolve_function(Some("pg_catalog"), name, args, false)?;
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
            FunctionArg::Unnamed(_) => {
                Ok(self.argument_values(arg)?.into_iter().map(Argument::positional).collect())
            }
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), operator } => {
                if !matches!(operator, FunctionArgOperator::RightArrow | FunctionArgOperator::Assignment) {
                    return Err(SqlError::unsupported(format_args!("the argument {arg}")));
                }
                let (name, value) = (ident_name(name), self.expr(expr)?);
                let variadic = name == archipel_sql::ast::VARIADIC_ARGUMENT;
                Ok(vec![Argument { name: (!variadic).then_some(name), value, variadic }])
            }
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(expr),
                operator: FunctionArgOperator::RightArrow | FunctionArgOperator::Assignment,
            } => {
                Ok(vec![Argument { name: Some(ident_name(name)), value: self.expr(expr)?, variadic: false }])
            }
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                Err(SqlError::unsupported(format_args!("the argument {arg}")))
            }
        }
    }

    /// An unnamed argument's values: `t.*` is the whole row.
    fn argument_values(&mut self, arg: &FunctionArg) -> Result<Vec<BoundExpr>> {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(vec![self.expr(expr)?]),
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                let parts: Vec<sqlparser::ast::Ident> =
                    name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
                Ok(vec![self.named_value(&parts)?.expr])
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

    /// Finds the function a call means and converts its arguments (func_get_detail).
    pub(crate) fn resolve_function(
        &mut self,
        schema: Option<&str>,
        name: &str,
        args: Vec<Argument>,
        procedure_call: bool,
    ) -> Result<Resolved> {
        let callees = self.callees(schema, name);
        let names: Vec<Option<&str>> = args.iter().map(|arg| arg.name.as_deref()).collect();
        if let Some(first) = names.iter().position(Option::is_some)
            && names[first..].iter().any(Option::is_none)
        {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "positional argument cannot follow named argument",
            ));
        }
        let array_given = args.iter().any(|arg| arg.variadic);
        if array_given {
            if !args.last().is_some_and(|arg| arg.variadic) {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "VARIADIC argument must be the last"));
            }
            if callees
                .iter()
                .any(|callee| callee.parameters(false).0.last().is_some_and(|p| p.ty == Oid::ANY))
            {
                return Err(SqlError::unsupported(format_args!("VARIADIC in a call of {name}")));
            }
        }
        let mut candidates: Vec<Candidate> = callees
            .iter()
            .filter_map(|callee| {
                let (parameters, variadic) = callee.parameters(procedure_call);
                // With VARIADIC the last parameter takes the array as it is.
                if array_given && !variadic {
                    return None;
                }
                let (slots, types, variadic, defaults) = fit(&parameters, variadic && !array_given, &names)?;
                Some(Candidate { callee: callee.clone(), slots, types, variadic, defaults })
            })
            .collect();
        // Of equal signatures, the one that needs no VARIADIC array and fewest defaults counts.
        candidates.sort_by_key(|candidate| (candidate.variadic, candidate.defaults));
        let mut signatures: Vec<Vec<Oid>> = Vec::new();
        candidates.retain(|candidate| {
            let new = !signatures.contains(&candidate.types);
            if new {
                signatures.push(candidate.types.clone());
            }
            new
        });
        let actual: Vec<Oid> = args.iter().map(|arg| arg.value.ty.oid).collect();
        let types: Vec<Type> = args.iter().map(|arg| arg.value.ty).collect();
        let signature = || format!("{}({})", qualified(schema, name), type_list(&types));
        match choose(&actual, &signatures) {
            Choice::One(i) => {
                let candidate = candidates.swap_remove(i);
                self.check_kind(&candidate.callee, procedure_call, &signature())?;
                self.complete(candidate, args)
            }
            Choice::Ambiguous => {
                let what = if procedure_call { "procedure" } else { "function" };
                Err(SqlError::new(
                    SqlState::AMBIGUOUS_FUNCTION,
                    format!("{what} {} is not unique", signature()),
                )
                .with_hint(format!(
                    "Could not choose a best candidate {what}. You might need to add explicit type casts."
                )))
            }
            Choice::None => {
                if let [arg] = &args[..]
                    && arg.name.is_none()
                    && !procedure_call
                    && schema.is_none_or(|schema| schema == "pg_catalog")
                    && let Some(info) = type_by_name(name)
                    && (arg.value.ty.oid == Oid::UNKNOWN
                        || function::cast(arg.value.ty.oid, info.oid).is_some()
                        || info.category == b'S')
                {
                    let value = args
                        .into_iter()
                        .next()
                        .map(|arg| arg.value)
                        .ok_or_else(|| SqlError::internal("no argument"))?;
                    return self
                        .coerce_or_fail(value, Type::of(info.oid), CastContext::Explicit)
                        .map(Resolved::Cast);
                }
                if callees.is_empty() && function::known_but_missing(name) && !procedure_call {
                    return Err(SqlError::unsupported(format_args!("function {}", signature())));
                }
                let (what, hint) = match (procedure_call, names.iter().any(Option::is_some)) {
                    (true, _) => (
                        "procedure",
                        "No procedure matches the given name and argument types. You might need to add explicit type casts.",
                    ),
                    (false, _) => (
                        "function",
                        "No function matches the given name and argument types. You might need to add explicit type casts.",
                    ),
                };
                let signature = match names.iter().any(Option::is_some) {
                    true => {
                        let list = args
                            .iter()
                            .map(|arg| match &arg.name {
                                Some(name) => {
                                    format!("{name} => {}", format_type(Type::of(arg.value.ty.oid)))
                                }
                                None => format_type(Type::of(arg.value.ty.oid)),
                            })
                            .collect::<Vec<_>>();
                        format!("{}({})", qualified(schema, name), list.join(", "))
                    }
                    false => signature(),
                };
                Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("{what} {signature} does not exist"))
                    .with_hint(hint))
            }
        }
    }

    fn callees(&self, schema: Option<&str>, name: &str) -> Vec<Callee> {
        let mut callees = Vec::new();
        if schema.is_none_or(|schema| matches!(schema, "pg_catalog" | "information_schema" | "archipel")) {
            callees.extend(function::lookup_functions(name).iter().copied().map(Callee::Scalar));
            callees.extend(function::lookup_set_functions(name).iter().copied().map(Callee::Set));
            callees.extend(function::lookup_aggregates(name).iter().copied().map(Callee::Aggregate));
            callees.extend(ranking_functions(name).map(Callee::Ranking));
        }
        callees.extend(
            self.env.catalog.routines(schema, name, self.env.search_path).into_iter().map(Callee::Routine),
        );
        callees
    }

    fn check_kind(&self, callee: &Callee, procedure_call: bool, signature: &str) -> Result<()> {
        let procedure = matches!(callee, Callee::Routine(routine) if routine.kind == RoutineKind::Procedure);
        match (procedure, procedure_call) {
            (true, false) => {
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("{signature} is a procedure"))
                    .with_hint("To call a procedure, use CALL."))
            }
            (false, true) => {
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("{signature} is not a procedure"))
                    .with_hint("To call a function, use SELECT."))
            }
            _ => Ok(()),
        }
    }

    /// Converts the arguments of the chosen candidate and fills in what is left out.
    fn complete(&mut self, candidate: Candidate, args: Vec<Argument>) -> Result<Resolved> {
        let actual: Vec<Type> = args.iter().map(|arg| arg.value.ty).collect();
        let (types, result) = resolve_polymorphic(&candidate.types, &actual, candidate.callee.result())?;
        let mut values: Vec<Option<BoundExpr>> = Vec::with_capacity(args.len());
        for (arg, &ty) in args.into_iter().zip(&types) {
            let value = if ty == Oid::ANY || is_polymorphic(ty) {
                self.resolve_unknown(arg.value)?
            } else {
                self.coerce_or_fail(arg.value, Type::of(ty), CastContext::Implicit)?
            };
            values.push(Some(value));
        }
        let mut take = |argument: usize| {
            values[argument].take().ok_or_else(|| SqlError::internal("an argument used twice"))
        };
        let mut filled = Vec::with_capacity(candidate.slots.len());
        for (place, slot) in candidate.slots.into_iter().enumerate() {
            match slot {
                Slot::Argument(argument) => filled.push(take(argument)?),
                Slot::Spread(rest) => {
                    for argument in rest {
                        filled.push(take(argument)?);
                    }
                }
                Slot::Rest(rest) => {
                    let items = rest.into_iter().map(&mut take).collect::<Result<Vec<_>>>()?;
                    let element = items.first().map_or(Oid::TEXT, |item| item.ty.oid);
                    let array = array_of(element)
                        .ok_or_else(|| SqlError::internal("a variadic argument without array type"))?;
                    filled.push(BoundExpr::new(ExprKind::Array { element, items }, Type::of(array)));
                }
                Slot::Default => filled.push(self.default_argument(&candidate.callee, place)?),
            }
        }
        Ok(match candidate.callee {
            Callee::Scalar(function) => Resolved::Scalar {
                function: ResolvedFunction { function, result: Type::of(result) },
                args: filled,
            },
            Callee::Routine(routine) => {
                let result = Type { oid: result, typmod: routine.result.typmod };
                Resolved::Routine { routine, args: filled, result }
            }
            Callee::Set(function) => {
                let columns = function
                    .columns
                    .iter()
                    .map(|(_, ty)| {
                        resolve_polymorphic(&candidate.types, &actual, *ty).map(|(_, ty)| Type::of(ty))
                    })
                    .collect::<Result<Vec<_>>>()?;
                Resolved::Set { function, args: filled, columns }
            }
            Callee::Aggregate(function) => {
                Resolved::Aggregate { function, args: filled, result: Type::of(result) }
            }
            Callee::Ranking(function) => {
                Resolved::Ranking { name: function.name, args: filled, result: Type::of(result) }
            }
        })
    }

    fn default_argument(&mut self, callee: &Callee, place: usize) -> Result<BoundExpr> {
        let missing = || SqlError::internal("a default that is not there");
        match callee {
            Callee::Scalar(function) => {
                let first = function.args.len() - function.defaults.len();
                let value = function.defaults.get(place.wrapping_sub(first)).ok_or_else(missing)?;
                Ok(BoundExpr::constant(value.clone(), Type::of(function.args[place])))
            }
            Callee::Routine(routine) => {
                let inputs: Vec<_> = routine
                    .args
                    .iter()
                    .filter(|arg| is_input(arg.mode, routine.kind == RoutineKind::Procedure))
                    .collect();
                let arg = inputs.get(place).ok_or_else(missing)?;
                let text = arg.default.as_deref().ok_or_else(missing)?;
                let value = self.catalog_expression(text, Vec::new(), Clause::Default)?;
                let name = arg.name.clone().unwrap_or_default();
                self.assign(value, arg.ty, &name)
            }
            Callee::Set(_) | Callee::Aggregate(_) | Callee::Ranking(_) => Err(missing()),
        }
    }

    fn aggregate_call(
        &mut self,
        function: &'static AggregateFunction,
        args: Vec<BoundExpr>,
        result: Type,
        call: GatheredCall<'_>,
        within_order: Vec<SortKey>,
    ) -> Result<AggregateCall> {
        let mut order_by = within_order;
        for key in call.order_by {
            let mut key = self.aggregate_sort_key(key)?;
            // Sorting by an argument sorts by the argument as the aggregate takes it.
            if let Some(arg) = args.iter().find(|arg| matches!(&arg.kind, ExprKind::Relabel(inner) if super::visit::same_expr(inner, &key.expr))) {
                key.expr = arg.clone();
            }
            order_by.push(key);
        }
        if call.distinct {
            if args.is_empty() {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "DISTINCT is not allowed without arguments",
                ));
            }
            for key in &order_by {
                if !args.iter().any(|arg| super::visit::same_expr(arg, &key.expr)) {
                    return Err(SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                    ));
                }
            }
        }
        let filter = match call.filter {
            Some(filter) => Some(self.filter(filter)?),
            None => None,
        };
        Ok(AggregateCall { function, args, distinct: call.distinct, filter, order_by, result })
    }

    pub(crate) fn filter(&mut self, filter: &Expr) -> Result<BoundExpr> {
        let position = self.start(filter);
        let bound = self.clause_expr(filter, Clause::Filter)?;
        self.boolean(bound, "FILTER").map_err(|error| error.at(position))
    }

    /// A sort key inside a call: expressions only, no output names or ordinals.
    pub(crate) fn aggregate_sort_key(&mut self, key: &OrderByExpr) -> Result<SortKey> {
        let OrderByExpr { expr, options, with_fill } = key;
        if with_fill.is_some() {
            return Err(SqlError::unsupported("WITH FILL"));
        }
        let bound = self.expr(expr)?;
        let bound = self.resolve_unknown(bound)?;
        let descending = options.asc == Some(false);
        Ok(SortKey { expr: bound, descending, nulls_first: options.nulls_first.unwrap_or(descending) })
    }

    /// Hands an aggregate to the query level its arguments belong to (check_agglevels_and_constraints).
    fn gather_aggregate(
        &mut self,
        mut call: AggregateCall,
        references: Vec<usize>,
        span: Span,
    ) -> Result<BoundExpr> {
        let position = self.position(span);
        let parts = || call.args.iter().chain(&call.filter).chain(call.order_by.iter().map(|key| &key.expr));
        let depth = parts().filter_map(nearest_depth).min().unwrap_or(0);
        for part in parts() {
            let mut found: Option<&str> = None;
            visit_expr(part, 0, &mut |expr, nesting| {
                if let ExprKind::Column { depth: at, index } = expr.kind
                    && at == nesting + depth
                {
                    found = match index {
                        SET_BASE.. => {
                            Some("aggregate function calls cannot contain set-returning function calls")
                        }
                        WINDOW_BASE.. => {
                            Some("aggregate function calls cannot contain window function calls")
                        }
                        GROUPING_BASE.. => found,
                        AGGREGATE_BASE.. => Some("aggregate function calls cannot be nested"),
                        _ => found,
                    };
                }
                true
            });
            if let Some(message) = found {
                let state = if message.contains("set-returning") {
                    SqlState::FEATURE_NOT_SUPPORTED
                } else {
                    SqlState::GROUPING_ERROR
                };
                return Err(SqlError::new(state, message).at(position));
            }
        }
        let place = (self.levels.len() - 1)
            .checked_sub(usize::from(depth))
            .ok_or_else(|| SqlError::internal("an aggregate outside of every query"))?;
        let level = &self.levels[place];
        if level.kind == LevelKind::Lateral {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                "aggregate functions are not allowed in FROM clause of their own query level",
            )
            .at(position));
        }
        if !level.clause.allows_aggregates() || level.kind != LevelKind::Query {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                format!("aggregate functions are not allowed in {}", level.clause.describe()),
            )
            .at(position));
        }
        for part in call
            .args
            .iter_mut()
            .chain(&mut call.filter)
            .chain(call.order_by.iter_mut().map(|key| &mut key.expr))
        {
            lower_depth(part, depth);
        }
        let level = &mut self.levels[place];
        if let Some(&known) = references.get(place) {
            level.references.truncate(known);
        }
        let ty = call.result;
        let text = format!("{call:?}");
        let known = level.aggregates.iter().position(|other| format!("{other:?}") == text);
        let number = known.unwrap_or_else(|| {
            level.aggregates.push(call);
            level.aggregates.len() - 1
        });
        let index = AGGREGATE_BASE + number as u16;
        Ok(BoundExpr::new(ExprKind::Column { depth, index }, ty))
    }

    /// Hands a set-returning call of a SELECT list to the level's ProjectSet.
    fn gather_set(&mut self, call: SetCall, ty: Type) -> Result<BoundExpr> {
        let level = self.level()?;
        if !level.clause.allows_sets() || level.kind != LevelKind::Query {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("set-returning functions are not allowed in {}", level.clause.describe()),
            ));
        }
        let args = match &call {
            SetCall::Builtin { args, .. } | SetCall::Routine { args, .. } => &args[..],
            SetCall::Scalar(expr) => std::slice::from_ref(&**expr),
        };
        for arg in args {
            let mut nested = false;
            visit_expr(arg, 0, &mut |expr, nesting| {
                nested |= matches!(expr.kind, ExprKind::Column { depth, index } if depth == nesting && index >= SET_BASE);
                true
            });
            if nested {
                return Err(SqlError::unsupported("a set-returning function inside another's arguments"));
            }
        }
        level.sets.push((call, ty));
        let index = SET_BASE + (level.sets.len() - 1) as u16;
        Ok(BoundExpr::new(ExprKind::Column { depth: 0, index }, ty))
    }

    /// `GROUPING(a, b)`: the level's Aggregate answers it.
    fn grouping_call(&mut self, args: &[&Expr]) -> Result<BoundExpr> {
        if args.len() > 31 {
            return Err(SqlError::new(
                SqlState::TOO_MANY_ARGUMENTS,
                "GROUPING must have fewer than 32 arguments",
            ));
        }
        let references = self.level()?.references.len();
        let args = args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        let level = self.level()?;
        if !level.clause.allows_aggregates() || level.kind != LevelKind::Query {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                format!("grouping operations are not allowed in {}", level.clause.describe()),
            ));
        }
        level.references.truncate(references);
        level.groupings.push(args);
        let index = GROUPING_BASE + (level.groupings.len() - 1) as u16;
        Ok(BoundExpr::new(ExprKind::Column { depth: 0, index }, Type::INT4))
    }

    /// A constant argument list for a default that PostgreSQL writes as NULL.
    pub(crate) fn null(ty: Type) -> BoundExpr {
        BoundExpr::constant(Datum::Null, ty)
    }
}

/// The clauses of a call that only aggregates and window functions understand.
pub(crate) struct GatheredCall<'s> {
    pub distinct: bool,
    pub order_by: &'s [OrderByExpr],
    pub filter: Option<&'s Expr>,
    pub within_group: &'s [OrderByExpr],
    pub over: Option<&'s sqlparser::ast::WindowType>,
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

fn qualified(schema: Option<&str>, name: &str) -> String {
    match schema {
        Some(schema) => format!("{schema}.{name}"),
        None => name.to_owned(),
    }
}
