//! Which function a name and its arguments mean (func_get_detail): candidates, how arguments fill
//! their parameters by place, name, default and VARIADIC, and the conversion of what was chosen.

use std::sync::Arc;

use archipel_sql::catalog::names::undefined_schema;
use archipel_sql::catalog::stored_name::written_name;
use archipel_sql::catalog::{ArgMode, RoutineKind, RoutineRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function;
use archipel_sql::function::{
    AggregateFunction, CastContext, Intrinsic, ResolvedFunction, ScalarFunction, SetFunction,
};
use archipel_sql::type_table::{TypeNames, array_of, element_of, type_by_name};
use archipel_sql::types::{Oid, Type};
use sqlparser::tokenizer::Span;

use super::argument::Argument;
use super::argument_mode::is_input;
use super::resolve::{Choice, choose, type_list};
use super::window::ranking_functions;
use crate::bind::binder::Binder;
use crate::bind::expression::coerce::is_polymorphic;
use crate::bind::expression::domain::common_domain;
use crate::bind::expression::polymorphic::resolve_polymorphic;
use crate::bind::expression::row_value::{self, as_record};
use crate::bind::meaning::Named;
use crate::bound::*;

impl Argument {
    pub(crate) fn positional(value: BoundExpr) -> Argument {
        Argument { name: None, value, variadic: false, position: None }
    }
}

/// Drops parameters of type void: with one of those the JDBC driver passes what a function answers
/// (ParseFuncOrColumn).
pub(crate) fn drop_void_parameters(args: &mut Vec<Argument>) {
    let is_void = |arg: &Argument| {
        arg.name.is_none() && arg.value.ty.oid == Oid::VOID && matches!(arg.value.kind, ExprKind::Param(_))
    };
    args.retain(|arg| !is_void(arg));
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
        function: Accumulator,
        args: Vec<BoundExpr>,
        result: Type,
    },
    Ranking {
        function: Ranking,
        args: Vec<BoundExpr>,
        result: Type,
    },
    /// `int4(x)`: a cast in a call's clothes.
    Cast(BoundExpr),
}

/// What a name may mean.
#[derive(Clone)]
pub(crate) enum Callee {
    Scalar(&'static ScalarFunction),
    Routine(RoutineRef),
    Set(&'static SetFunction),
    Aggregate(&'static AggregateFunction),
    Ranking(&'static super::window::RankingFunction),
}

impl Callee {
    /// The schema of a deployed routine.
    fn schema(&self) -> Option<String> {
        match self {
            Callee::Routine(routine) => Some(routine.schema.clone()),
            _ => None,
        }
    }
}

/// A parameter of a candidate.
pub(crate) struct Parameter {
    name: Option<String>,
    pub ty: Oid,
    default: bool,
}

/// How a candidate's parameters are filled.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Argument(usize),
    Default,
    /// The rest of the arguments, as the elements of a VARIADIC array.
    Rest(Vec<usize>),
    /// The rest of the arguments, one by one (VARIADIC "any").
    Spread(Vec<usize>),
}

pub(crate) struct Candidate {
    pub callee: Callee,
    pub slots: Vec<Slot>,
    /// Declared types, in the order of the actual arguments.
    pub types: Vec<Oid>,
    pub variadic: bool,
    pub defaults: usize,
}

/// A routine with polymorphic parameters, as it is for these actual types: it is compiled for
/// each combination.
fn instance(
    routine: RoutineRef,
    declared: &[Oid],
    actual: &[Type],
    result: Type,
    names: &dyn TypeNames,
) -> Result<RoutineRef> {
    if !routine.args.iter().any(|arg| is_polymorphic(arg.ty.oid)) {
        return Ok(routine);
    }
    let mut concrete = (*routine).clone();
    for arg in &mut concrete.args {
        arg.ty = Type::of(resolve_polymorphic(declared, actual, arg.ty.oid, names)?.1);
    }
    concrete.result = result;
    Ok(Arc::new(concrete))
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
    pub(crate) fn parameters(&self, procedure_call: bool) -> (Vec<Parameter>, bool) {
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
            Callee::Set(function) => {
                let mut parameters = plain(function.args, function.arg_names);
                let first = parameters.len().saturating_sub(function.defaults.len());
                parameters.iter_mut().skip(first).for_each(|parameter| parameter.default = true);
                (parameters, false)
            }
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

    pub(crate) fn result(&self) -> Oid {
        match self {
            Callee::Scalar(function) => function.result,
            Callee::Routine(routine) => routine.result.oid,
            Callee::Set(_) => Oid::RECORD,
            Callee::Aggregate(function) => function.result,
            Callee::Ranking(function) => function.result,
        }
    }
}

fn qualified(schema: Option<&str>, name: &str) -> String {
    schema.map_or_else(|| written_name(name).to_owned(), |schema| format!("{schema}.{name}"))
}

/// Arguments with names follow those without, each name once, and a VARIADIC one is the last.
fn check_written_order(args: &[Argument]) -> Result<()> {
    let names: Vec<Option<&str>> = args.iter().map(|arg| arg.name.as_deref()).collect();
    if let Some(first) = names.iter().position(Option::is_some)
        && let Some(after) = names[first..].iter().position(Option::is_none)
    {
        let message = "positional argument cannot follow named argument";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(args[first + after].position));
    }
    let twice = |at: &usize| names[*at].is_some() && names[..*at].contains(&names[*at]);
    if let Some(again) = (0..names.len()).find(twice) {
        let message = format!("argument name \"{}\" used more than once", names[again].unwrap_or_default());
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(args[again].position));
    }
    let array_given = args.iter().any(|arg| arg.variadic);
    if array_given && !args.last().is_some_and(|arg| arg.variadic) {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "VARIADIC argument must be the last"));
    }
    Ok(())
}

/// The callees that arguments fit by number and name.
struct Candidates {
    /// One of each signature.
    list: Vec<Candidate>,
    signatures: Vec<Vec<Oid>>,
    /// The signatures that several of one schema have.
    equal: Vec<usize>,
}

fn candidates(callees: &[Callee], args: &[Argument], procedure_call: bool) -> Candidates {
    let names: Vec<Option<&str>> = args.iter().map(|arg| arg.name.as_deref()).collect();
    let array_given = args.iter().any(|arg| arg.variadic);
    let mut list: Vec<Candidate> = callees
        .iter()
        .filter_map(|callee| {
            let (parameters, variadic) = callee.parameters(procedure_call);
            // With VARIADIC the last parameter takes the array as it is.
            if array_given && !variadic {
                return None;
            }
            let named = names.iter().any(Option::is_some);
            // An array is only gathered from arguments without names.
            if named && variadic && !array_given {
                return None;
            }
            let (slots, types, variadic, defaults) = fit(&parameters, variadic && !array_given, &names)?;
            if named && array_given && defaults > 0 {
                return None;
            }
            Some(Candidate { callee: callee.clone(), slots, types, variadic, defaults })
        })
        .collect();
    // Of equal signatures, the one that needs no VARIADIC array and fewest defaults counts.
    list.sort_by_key(|candidate| (candidate.variadic, candidate.defaults));
    let mut signatures: Vec<Vec<Oid>> = Vec::new();
    let mut origins: Vec<(Option<String>, bool)> = Vec::new();
    let mut equal: Vec<usize> = Vec::new();
    list.retain(|candidate| {
        let origin = (candidate.callee.schema(), candidate.variadic);
        match signatures.iter().position(|known| *known == candidate.types) {
            None => {
                signatures.push(candidate.types.clone());
                origins.push(origin);
                true
            }
            // Only defaults can make two of one schema equal.
            Some(known) => {
                if origin.0.is_some() && origins[known] == origin {
                    equal.push(known);
                }
                false
            }
        }
    });
    Candidates { list, signatures, equal }
}

impl Binder<'_, '_> {
    /// Finds the function a call means and converts its arguments (func_get_detail).
    pub(crate) fn resolve_function(
        &mut self,
        schema: Option<&str>,
        name: &str,
        args: Vec<Argument>,
        procedure_call: bool,
        span: Span,
    ) -> Result<Resolved> {
        let callees = self.callees(schema, name);
        self.need_schema(schema);
        check_written_order(&args)?;
        let Candidates { list: mut candidates, signatures, equal } =
            candidates(&callees, &args, procedure_call);
        let actual: Vec<Oid> = args.iter().map(|arg| arg.value.ty.oid).collect();
        if !signatures.contains(&actual)
            && let Some(named) = self.cast_from_text((schema, name), &args, procedure_call)?
        {
            return Ok(named);
        }
        let chosen = match choose(&actual, &signatures) {
            Choice::One(i) if equal.contains(&i) => Choice::Ambiguous,
            chosen => chosen,
        };
        match chosen {
            Choice::One(i) => {
                let candidate = candidates.swap_remove(i);
                let signature = self.call_signature(schema, name, &args);
                self.check_kind(&candidate.callee, procedure_call, &signature)?;
                if let Callee::Routine(routine) = &candidate.callee {
                    self.note_meaning(span, Named::Routine(routine.oid));
                }
                self.complete(candidate, args)
            }
            Choice::Ambiguous => {
                let what = if procedure_call { "procedure" } else { "function" };
                Err(SqlError::new(
                    SqlState::AMBIGUOUS_FUNCTION,
                    format!("{what} {} is not unique", self.call_signature(schema, name, &args)),
                )
                .with_hint(format!(
                    "Could not choose a best candidate {what}. You might need to add explicit type casts."
                )))
            }
            Choice::None => self.without_candidate((schema, name), &callees, args, procedure_call, span),
        }
    }

    /// A call as messages show it.
    fn call_signature(&self, schema: Option<&str>, name: &str, args: &[Argument]) -> String {
        let types: Vec<Type> = args.iter().map(|arg| arg.value.declared()).collect();
        format!("{}({})", qualified(schema, name), type_list(&types, &self.env.type_names()))
    }

    /// What a call means that fits no candidate: a field of a row, or a cast.
    fn without_candidate(
        &mut self,
        (schema, name): (Option<&str>, &str),
        callees: &[Callee],
        args: Vec<Argument>,
        procedure_call: bool,
        span: Span,
    ) -> Result<Resolved> {
        if let Some(schema) = schema.filter(|schema| *schema != "pg_temp")
            && callees.is_empty()
            && !self.env.catalog.schema_exists(schema)
        {
            return Err(undefined_schema(schema));
        }
        // A field of a row may be written as a function of it.
        if let [Argument { name: None, value, variadic: false, .. }] = &args[..]
            && !procedure_call
            && schema.is_none()
            && let Some(fields) = self.record_fields(value)
            && let Some(place) = fields.iter().position(|(field, _)| field == name)
        {
            let field = row_value::record_field(value.clone(), place, fields[place].1);
            return Ok(Resolved::Cast(field));
        }
        if let Some(cast) = self.cast_named((schema, name), &args, procedure_call)? {
            return Ok(cast);
        }
        if !procedure_call && let Some(cast) = self.type_call((schema, name), &args, span)? {
            return Ok(Resolved::Cast(cast));
        }
        if callees.is_empty() && function::known_but_missing(name) && !procedure_call {
            return Err(SqlError::unsupported(format_args!(
                "function {}",
                self.call_signature(schema, name, &args)
            )));
        }
        Err(self.no_such_function(schema, name, &args, procedure_call))
    }

    /// The error for a call that means nothing.
    fn no_such_function(
        &self,
        schema: Option<&str>,
        name: &str,
        args: &[Argument],
        procedure_call: bool,
    ) -> SqlError {
        let what = if procedure_call { "procedure" } else { "function" };
        let signature = match args.iter().any(|arg| arg.name.is_some()) {
            true => {
                let shown = |arg: &Argument| match &arg.name {
                    Some(name) => format!("{name} => {}", self.type_name(arg.value.declared().oid)),
                    None => self.type_name(arg.value.declared().oid),
                };
                let list: Vec<String> = args.iter().map(shown).collect();
                format!("{}({})", qualified(schema, name), list.join(", "))
            }
            false => self.call_signature(schema, name, args),
        };
        let hint = format!(
            "No {what} matches the given name and argument types. You might need to add explicit type casts."
        );
        SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("{what} {signature} does not exist"))
            .with_hint(hint)
    }

    /// A function of a row that is written as a field of it; `None` if there is no such function.
    pub(crate) fn function_as_field(
        &mut self,
        row: BoundExpr,
        name: &str,
        span: Span,
    ) -> Result<Option<BoundExpr>> {
        if !self.names_function(name) {
            return Ok(None);
        }
        match self.plain_call(&[name.to_owned()], vec![Argument::positional(row)], span) {
            Ok(call) => Ok(Some(call)),
            Err(error) if error.state() == SqlState::UNDEFINED_FUNCTION => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a name may be that of a function of one row. What has the name of a type would be a
    /// cast, which is not written as a field.
    pub(crate) fn names_function(&self, name: &str) -> bool {
        type_by_name(name).is_none() && !self.callees(None, name).is_empty()
    }

    pub(crate) fn callees(&self, schema: Option<&str>, name: &str) -> Vec<Callee> {
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
    pub(crate) fn complete(&mut self, candidate: Candidate, args: Vec<Argument>) -> Result<Resolved> {
        let mut actual: Vec<Type> = args.iter().map(|arg| arg.value.ty).collect();
        let (mut declared, given) = (candidate.types.clone(), actual.len());
        // What stands for arguments that are left out has a say in what the call is for.
        let defaults = self.polymorphic_defaults(&candidate)?;
        if !defaults.is_empty() {
            declared.truncate(given);
            declared.extend(defaults.iter().map(|default| default.declared));
            actual.extend(defaults.iter().map(|default| default.value.ty));
        }
        let array_given = args.last().is_some_and(|arg| arg.variadic);
        let array_position = args.last().and_then(|arg| arg.position);
        let (types, result) = resolve_polymorphic(&declared, &actual, candidate.callee.result(), self)?;
        let mut values: Vec<Option<BoundExpr>> = Vec::with_capacity(args.len());
        // Those that know of a row's type what the row itself says.
        let (unaware, shows) = match &candidate.callee {
            Callee::Routine(_) => (Oid::RECORD, true),
            Callee::Scalar(function) => (Oid::ANY, function.variadic && !function.is(Intrinsic::JsonOfAll)),
            _ => (Oid::ANY, false),
        };
        // What has no type is told to have none.
        let told = matches!(&candidate.callee, Callee::Scalar(function) if function.is(Intrinsic::TypeOf));
        for (arg, &ty) in args.into_iter().zip(&types) {
            let value = if ty == Oid::ANY && self.is_open_parameter(&arg.value) {
                self.stays_open = true;
                arg.value
            } else if ty == Oid::ANY && (told || matches!(arg.value.kind, ExprKind::Field { .. })) {
                arg.value
            } else if ty == Oid::ANY || is_polymorphic(ty) {
                self.resolve_unknown(arg.value)?
            } else {
                self.coerce_or_fail(arg.value, Type::of(ty), CastContext::Implicit)?
            };
            values.push(Some(if shows && ty == unaware { as_record(value) } else { value }));
        }
        // The elements of the array are the arguments.
        let of_array = array_given && candidate.types.last() == Some(&Oid::ANY);
        let array = values.last().and_then(Option::as_ref).filter(|_| of_array);
        let array_type = array.map(|array| array.ty.oid);
        if array_type.is_some_and(|ty| element_of(ty).is_none()) {
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, "VARIADIC argument must be an array")
                .at(array_position));
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
                    let domain = self.array_of_domain(common_domain(&items));
                    let array = BoundExpr::new(ExprKind::Array { element, items }, Type::of(array));
                    filled.push(array.of_domain(domain));
                }
                Slot::Default => filled.push(match defaults.iter().position(|own| own.place == place) {
                    Some(at) => {
                        let ty = types.get(given + at).copied().unwrap_or(defaults[at].declared);
                        let value = defaults[at].value.clone();
                        self.coerce_or_fail(value, Type::of(ty), CastContext::Implicit)?
                    }
                    None => self.default_argument(&candidate.callee, place)?,
                }),
            }
        }
        if let (Callee::Scalar(function), Some(ty)) = (&candidate.callee, array_type) {
            return self.over_elements(function, filled, Type::of(ty), Type::of(result));
        }
        let filled = match &candidate.callee {
            Callee::Scalar(function) if function.is(Intrinsic::HashPartition) => {
                self.hash_arguments(filled)?
            }
            Callee::Scalar(ScalarFunction { name, intrinsic, .. })
            | Callee::Set(SetFunction { name, intrinsic, .. }) => {
                let rows = candidate.types == [Oid::RECORD; 2];
                let filled = if rows { self.compared_rows(filled) } else { filled };
                let filled = self.image_arguments(*intrinsic, filled);
                self.json_arguments(name, *intrinsic, filled)?
            }
            Callee::Aggregate(function) => self.gathered_arguments(function.aggregate, filled)?,
            Callee::Routine(routine) => {
                let procedure = routine.kind == RoutineKind::Procedure;
                let domains = routine.args.iter().filter(|arg| is_input(arg.mode, procedure));
                let domains: Vec<Option<Oid>> = domains
                    .map(|arg| arg.domain.filter(|_| arg.mode != ArgMode::Out))
                    .chain(std::iter::repeat(None))
                    .take(filled.len())
                    .collect();
                let values = filled.into_iter().zip(domains);
                let coerced = |(value, domain): (BoundExpr, Option<Oid>)| match domain {
                    Some(_) => self.coerce_domain(value, domain),
                    None => Ok(value),
                };
                values.map(coerced).collect::<Result<_>>()?
            }
            Callee::Ranking(_) => filled,
        };
        // What is built in is everybody's, unless somebody has said otherwise.
        let built_in = match &candidate.callee {
            Callee::Scalar(ScalarFunction { oid, .. })
            | Callee::Set(SetFunction { oid, .. })
            | Callee::Aggregate(AggregateFunction { oid, .. }) => Some(*oid),
            Callee::Routine(_) | Callee::Ranking(_) => None,
        };
        if let Some(oid) = built_in.filter(|oid| self.env.catalog.access(*oid).is_some()) {
            self.need_routine(oid);
        }
        Ok(match candidate.callee {
            Callee::Scalar(function) => {
                let args = super::resolve::shown_by_name(function, filled);
                Resolved::Scalar { args, function: ResolvedFunction { function, result: Type::of(result) } }
            }
            Callee::Routine(routine) if routine.kind == RoutineKind::Aggregate => {
                self.need_routine(routine.oid);
                let missing = || SqlError::internal("an aggregate that is made of nothing");
                let aggregate = routine.aggregate.as_deref().ok_or_else(missing)?;
                let defined = self.defined_aggregate(&routine, aggregate, &filled)?;
                let function = Accumulator::Defined(Box::new(defined));
                Resolved::Aggregate { function, args: filled, result: Type::of(result) }
            }
            Callee::Routine(routine) => {
                self.need_routine(routine.oid);
                let result = Type { oid: result, typmod: routine.result.typmod };
                let made = instance(routine.clone(), &declared, &actual, result, self)?;
                let routine = self.for_domains(&routine, made, &filled);
                Resolved::Routine { routine, args: filled, result }
            }
            Callee::Set(function) => {
                let columns = function
                    .columns
                    .iter()
                    .map(|(_, ty)| {
                        resolve_polymorphic(&candidate.types, &actual, *ty, self).map(|(_, ty)| Type::of(ty))
                    })
                    .collect::<Result<Vec<_>>>()?;
                Resolved::Set { function, args: filled, columns }
            }
            Callee::Aggregate(function) => {
                let function = Accumulator::Builtin(function);
                Resolved::Aggregate { function, args: filled, result: Type::of(result) }
            }
            Callee::Ranking(ranking) => {
                Resolved::Ranking { function: ranking.function, args: filled, result: Type::of(result) }
            }
        })
    }

    /// A call over VARIADIC "any" whose last argument is an array of this type.
    fn over_elements(
        &self,
        function: &'static ScalarFunction,
        mut args: Vec<BoundExpr>,
        array: Type,
        result: Type,
    ) -> Result<Resolved> {
        if function.is(Intrinsic::JsonOfAll) {
            let shape = archipel_sql::json::shape::of_type(array);
            args.push(BoundExpr::constant(Datum::text(&shape), Type::TEXT));
        }
        let of_array = format!("{}{}", function::OF_ARRAY, function.name);
        let found = function::lookup_functions(&of_array).first();
        let function = found
            .ok_or_else(|| SqlError::unsupported(format_args!("VARIADIC in a call of {}", function.name)))?;
        Ok(Resolved::Scalar { function: ResolvedFunction { function, result }, args })
    }
}
