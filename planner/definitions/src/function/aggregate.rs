//! CREATE AGGREGATE (DefineAggregate, AggregateCreate): what its attributes say, which functions it is
//! made of, and whether they fit each other.

use std::sync::Arc;

use archipel_sql::ast::{
    ArgumentDefinition, Attribute, AttributeValue, CreateAggregate, QualifiedName, TypeName,
};
use archipel_sql::catalog::{
    Aggregate, AggregateWay, ArgMode, Language, MovingWay, Object, ObjectClass, Privileges, Routine,
    RoutineArg, RoutineKind, RoutineTraits,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_kind::TypeKind;
use archipel_sql::type_table::{BuiltIn, TypeNames};
use archipel_sql::types::{Oid, Type};
use archipel_sql::{function, io};

use super::routine;
use crate::bind::BindEnv;
use crate::bind::coerce::is_polymorphic;
use crate::bind::support_function::{SupportFunction, is_binary_coercible, support_function};
use crate::work::Work;

/// The attributes as written, each the last of its name.
#[derive(Default)]
struct Attributes {
    plain: WayAttributes,
    moving: WayAttributes,
    inverse: Option<QualifiedName>,
    combine: Option<QualifiedName>,
    serialize: Option<QualifiedName>,
    deserialize: Option<QualifiedName>,
    sort_operator: Option<QualifiedName>,
    base: Option<TypeName>,
    hypothetical: bool,
    parallel: Option<String>,
}

#[derive(Default)]
struct WayAttributes {
    transition: Option<QualifiedName>,
    finish: Option<QualifiedName>,
    finish_extra: bool,
    finish_modify: Option<char>,
    state: Option<TypeName>,
    state_space: Option<i32>,
    initial: Option<String>,
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_FUNCTION_DEFINITION, message)
}

fn mismatch(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

fn needs(attribute: &Attribute, what: &str) -> SqlError {
    syntax(format!("{} requires {what}", attribute.name))
}

/// defGetTypeName.
fn type_of(attribute: &Attribute) -> Result<TypeName> {
    match &attribute.value {
        AttributeValue::Name(name) => Ok(name.clone()),
        AttributeValue::Text(text) => Ok(TypeName::bare(text)),
        AttributeValue::Nothing => Err(needs(attribute, "a parameter")),
        _ => Err(syntax(format!("argument of {} must be a type name", attribute.name))),
    }
}

/// defGetQualifiedName.
fn name_of(attribute: &Attribute) -> Result<QualifiedName> {
    match &attribute.value {
        AttributeValue::Name(name) if name.dimensions == 0 && !name.setof => Ok(name.name.clone()),
        AttributeValue::Operator(name) => Ok(name.clone()),
        AttributeValue::Text(text) => Ok(QualifiedName::bare(text)),
        AttributeValue::Nothing => Err(needs(attribute, "a parameter")),
        _ => Err(syntax(format!("argument of {} must be a name", attribute.name))),
    }
}

/// defGetString.
fn text_of(attribute: &Attribute) -> Result<String> {
    match &attribute.value {
        AttributeValue::Name(name) => Ok(name.to_string()),
        AttributeValue::Operator(name) => Ok(name.to_string()),
        AttributeValue::Text(text) | AttributeValue::Number(text) => Ok(text.clone()),
        AttributeValue::Nothing => Err(needs(attribute, "a parameter")),
    }
}

/// defGetBoolean.
fn boolean_of(attribute: &Attribute) -> Result<bool> {
    let text = match &attribute.value {
        AttributeValue::Nothing => return Ok(true),
        _ => text_of(attribute)?.to_lowercase(),
    };
    match text.as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(needs(attribute, "a Boolean value")),
    }
}

/// defGetInt32.
fn integer_of(attribute: &Attribute) -> Result<i32> {
    match &attribute.value {
        AttributeValue::Number(text) => text.parse().map_err(|_| needs(attribute, "an integer value")),
        _ => Err(needs(attribute, "an integer value")),
    }
}

fn modify_of(attribute: &Attribute) -> Result<char> {
    match text_of(attribute)?.as_str() {
        "read_only" => Ok('r'),
        "shareable" => Ok('s'),
        "read_write" => Ok('w'),
        _ => Err(syntax(format!(
            "parameter \"{}\" must be READ_ONLY, SHAREABLE, or READ_WRITE",
            attribute.name
        ))),
    }
}

impl Attributes {
    fn read(list: &[Attribute], work: &mut Work<'_>) -> Result<Attributes> {
        let mut found = Attributes::default();
        for attribute in list {
            let (plain, moving) = (&mut found.plain, &mut found.moving);
            match attribute.name.as_str() {
                "sfunc" | "sfunc1" => plain.transition = Some(name_of(attribute)?),
                "finalfunc" => plain.finish = Some(name_of(attribute)?),
                "combinefunc" => found.combine = Some(name_of(attribute)?),
                "serialfunc" => found.serialize = Some(name_of(attribute)?),
                "deserialfunc" => found.deserialize = Some(name_of(attribute)?),
                "msfunc" => moving.transition = Some(name_of(attribute)?),
                "minvfunc" => found.inverse = Some(name_of(attribute)?),
                "mfinalfunc" => moving.finish = Some(name_of(attribute)?),
                "finalfunc_extra" => plain.finish_extra = boolean_of(attribute)?,
                "mfinalfunc_extra" => moving.finish_extra = boolean_of(attribute)?,
                "finalfunc_modify" => plain.finish_modify = Some(modify_of(attribute)?),
                "mfinalfunc_modify" => moving.finish_modify = Some(modify_of(attribute)?),
                "sortop" => found.sort_operator = Some(name_of(attribute)?),
                "basetype" => found.base = Some(type_of(attribute)?),
                "hypothetical" => found.hypothetical = boolean_of(attribute)?,
                "stype" | "stype1" => plain.state = Some(type_of(attribute)?),
                "sspace" => plain.state_space = Some(integer_of(attribute)?),
                "mstype" => moving.state = Some(type_of(attribute)?),
                "msspace" => moving.state_space = Some(integer_of(attribute)?),
                "initcond" | "initcond1" => plain.initial = Some(text_of(attribute)?),
                "minitcond" => moving.initial = Some(text_of(attribute)?),
                "parallel" => found.parallel = Some(text_of(attribute)?),
                other => {
                    let message = format!("aggregate attribute \"{other}\" not recognized");
                    work.notice_as(SqlState::WARNING, message);
                }
            }
        }
        found.check()?;
        Ok(found)
    }

    fn check(&self) -> Result<()> {
        if self.plain.state.is_none() {
            return Err(invalid("aggregate stype must be specified"));
        }
        if self.plain.transition.is_none() {
            return Err(invalid("aggregate sfunc must be specified"));
        }
        let moving = &self.moving;
        if moving.state.is_some() {
            if moving.transition.is_none() {
                return Err(invalid("aggregate msfunc must be specified when mstype is specified"));
            }
            if self.inverse.is_none() {
                return Err(invalid("aggregate minvfunc must be specified when mstype is specified"));
            }
            return Ok(());
        }
        let given = [
            ("msfunc", moving.transition.is_some()),
            ("minvfunc", self.inverse.is_some()),
            ("mfinalfunc", moving.finish.is_some()),
            ("msspace", moving.state_space.is_some_and(|space| space != 0)),
            ("minitcond", moving.initial.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(invalid(format!("aggregate {name} must not be specified without mstype"))),
            None => Ok(()),
        }
    }
}

pub(crate) fn create_aggregate(create: &CreateAggregate, work: &mut Work<'_>) -> Result<()> {
    let schema = work.any_target(&create.name)?;
    let attributes = Attributes::read(&create.attributes, work)?;
    if create.ordered || attributes.hypothetical {
        return Err(SqlError::unsupported("an ordered-set aggregate that somebody defines"));
    }
    let args = arguments(create, &attributes, work)?;
    let parallel = parallel(&attributes)?;
    if attributes.serialize.is_some() != attributes.deserialize.is_some() {
        return Err(invalid("must specify both or neither of serialization and deserialization functions"));
    }
    let state = state_type(&attributes.plain, work)?;
    if attributes.serialize.is_some() {
        return Err(invalid(
            "serialization functions may be specified only when the aggregate transition data type is internal",
        ));
    }
    let inputs: Vec<Oid> = args.iter().map(|arg| arg.ty.oid).collect();
    let made = Made { args: &inputs, of_any: args.iter().any(is_variadic_any) };
    let (plain, result, _) = made.way(&attributes.plain, state, work)?;
    let moving = moving_way(&attributes, &made, result, work)?;
    let combine = match &attributes.combine {
        Some(name) => Some(made.combine(name, plain.state.oid, work)?),
        None => None,
    };
    let sort_operator = match &attributes.sort_operator {
        Some(name) => Some(sort_operator(name, &inputs, work)?),
        None => None,
    };
    let routine = Routine {
        oid: Oid(0),
        schema,
        name: create.name.name.clone(),
        kind: RoutineKind::Aggregate,
        language: Language::Sql,
        args,
        result: Type::of(result),
        result_domain: None,
        returns_set: false,
        strict: false,
        volatility: 'i',
        source: "aggregate_dummy".to_owned(),
        distribution_arg: None,
        traits: RoutineTraits { parallel, ..Default::default() },
        aggregate: Some(Box::new(Aggregate { plain, combine, moving, sort_operator })),
        version: 1,
    };
    let routine = routine::numbered(routine, create.or_replace, work)?;
    work.put(Object::Routine(Arc::new(routine)));
    Ok(())
}

/// PARALLEL as pg_proc has it.
fn parallel(attributes: &Attributes) -> Result<char> {
    match attributes.parallel.as_deref() {
        None | Some("unsafe") => Ok('u'),
        Some("safe") => Ok('s'),
        Some("restricted") => Ok('r'),
        Some(_) => Err(syntax("parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE")),
    }
}

/// How frames that move are aggregated, where that is said: to the type that all rows at once give.
fn moving_way(
    attributes: &Attributes,
    made: &Made<'_>,
    result: Oid,
    work: &mut Work<'_>,
) -> Result<Option<MovingWay>> {
    let (Some(_), Some(inverse)) = (&attributes.moving.state, &attributes.inverse) else { return Ok(None) };
    let state = state_type(&attributes.moving, work)?;
    let (way, answer, strict) = made.way(&attributes.moving, state, work)?;
    let inverse = made.inverse(inverse, &way, strict, work)?;
    if answer != result {
        return Err(mismatch(format!(
            "moving-aggregate implementation returns type {}, but plain implementation returns type {}",
            work.type_name(answer),
            work.type_name(result)
        )));
    }
    Ok(Some(MovingWay { way, inverse }))
}

fn is_variadic_any(arg: &RoutineArg) -> bool {
    arg.mode == ArgMode::Variadic && arg.ty.oid == Oid::ANY
}

/// The arguments, which the old form tells among the attributes.
fn arguments(create: &CreateAggregate, attributes: &Attributes, work: &Work<'_>) -> Result<Vec<RoutineArg>> {
    let definitions = match (&create.args, &attributes.base) {
        (Some(args), None) => args.clone(),
        (Some(_), Some(_)) => {
            return Err(invalid("basetype is redundant with aggregate input type specification"));
        }
        (None, None) => return Err(invalid("aggregate input type must be specified")),
        (None, Some(base)) if base.to_string().eq_ignore_ascii_case("any") => Vec::new(),
        (None, Some(base)) => {
            vec![ArgumentDefinition {
                name: None,
                mode: ArgMode::In,
                mode_written: false,
                ty: base.clone(),
                default: None,
            }]
        }
    };
    for definition in &definitions {
        if matches!(definition.mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table) {
            return Err(invalid("aggregates cannot have output arguments"));
        }
        if definition.default.is_some() {
            return Err(invalid("aggregates cannot have default arguments"));
        }
    }
    routine::arguments(&definitions, RoutineKind::Aggregate, work)
}

/// The type of states.
fn state_type(way: &WayAttributes, work: &Work<'_>) -> Result<Type> {
    let name = way.state.as_ref().ok_or_else(|| invalid("aggregate stype must be specified"))?;
    if name.name.name == "internal" && name.name.schema.as_deref().is_none_or(|schema| schema == "pg_catalog")
    {
        if !work.env.system && !work.authority().is_superuser() {
            return Err(invalid("aggregate transition data type cannot be internal"));
        }
        return Err(SqlError::unsupported("an aggregate over states of type internal"));
    }
    let (ty, domain) = work.catalog.resolve_declared(name, work.search_path())?;
    if domain.is_some() {
        return Err(SqlError::unsupported("an aggregate over states of a domain"));
    }
    let pseudo = matches!(
        ty.oid,
        Oid::RECORD | Oid::RECORD_ARRAY | Oid::CSTRING | Oid::ANY | Oid::VOID | Oid::TRIGGER | Oid::UNKNOWN
    );
    if pseudo {
        return Err(invalid(format!(
            "aggregate transition data type cannot be {}",
            BuiltIn.type_name(ty.oid)
        )));
    }
    Ok(Type::of(ty.oid))
}

/// What an aggregate is made for.
struct Made<'a> {
    args: &'a [Oid],
    /// The last argument repeats, with any types.
    of_any: bool,
}

impl Made<'_> {
    fn function(&self, name: &QualifiedName, inputs: &[Oid], work: &Work<'_>) -> Result<SupportFunction> {
        let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
        let any = self.of_any && inputs.last() == Some(&Oid::ANY);
        let found = support_function(name, inputs, any, &mut env)?;
        if work.catalog.routine_by_oid(found.oid).is_some() {
            work.require(found.oid, ObjectClass::Routine, Privileges::EXECUTE)?;
        }
        Ok(found)
    }

    fn with_state(&self, state: Type) -> Vec<Oid> {
        std::iter::once(state.oid).chain(self.args.iter().copied()).collect()
    }

    /// A transition function and what belongs to it; what it answers at the end, and whether it is
    /// strict.
    fn way(
        &self,
        written: &WayAttributes,
        state: Type,
        work: &Work<'_>,
    ) -> Result<(AggregateWay, Oid, bool)> {
        if let Some(detail) = undetermined(state.oid, self.args) {
            return Err(invalid("cannot determine transition data type").with_detail(detail));
        }
        if let Some(text) = &written.initial
            && !is_polymorphic(state.oid)
        {
            check_initial(text, state, work)?;
        }
        let name = written.transition.as_ref().ok_or_else(|| invalid("aggregate sfunc must be specified"))?;
        let transition = self.function(name, &self.with_state(state), work)?;
        if transition.result != state.oid {
            return Err(mismatch(format!(
                "return type of transition function {name} is not {}",
                work.type_name(state.oid)
            )));
        }
        let first_is_state = || self.args.first().is_some_and(|first| is_binary_coercible(*first, state.oid));
        if transition.strict && written.initial.is_none() && !first_is_state() {
            return Err(invalid(
                "must not omit initial value when transition function is strict and transition type is not compatible with input type",
            ));
        }
        let (finish, result) = match &written.finish {
            None => (None, state.oid),
            Some(name) => {
                let inputs = if written.finish_extra { self.with_state(state) } else { vec![state.oid] };
                let found = self.function(name, &inputs, work)?;
                if written.finish_extra && found.strict {
                    return Err(invalid("final function with extra arguments must not be declared STRICT"));
                }
                (Some(found.oid), found.result)
            }
        };
        if let Some(detail) = undetermined(result, self.args) {
            return Err(mismatch("cannot determine result data type").with_detail(detail));
        }
        let way = AggregateWay {
            transition: transition.oid,
            finish,
            finish_extra: written.finish_extra,
            finish_modify: written.finish_modify.unwrap_or('r'),
            state,
            state_space: written.state_space.unwrap_or(0),
            initial: written.initial.clone(),
        };
        Ok((way, result, transition.strict))
    }

    fn inverse(
        &self,
        name: &QualifiedName,
        way: &AggregateWay,
        strict: bool,
        work: &Work<'_>,
    ) -> Result<Oid> {
        let inverse = self.function(name, &self.with_state(way.state), work)?;
        if inverse.result != way.state.oid {
            return Err(mismatch(format!(
                "return type of inverse transition function {name} is not {}",
                work.type_name(way.state.oid)
            )));
        }
        if inverse.strict != strict {
            return Err(invalid(
                "strictness of aggregate's forward and inverse transition functions must match",
            ));
        }
        Ok(inverse.oid)
    }

    fn combine(&self, name: &QualifiedName, state: Oid, work: &Work<'_>) -> Result<Oid> {
        let combine = self.function(name, &[state, state], work)?;
        if combine.result != state {
            return Err(mismatch(format!(
                "return type of combine function {name} is not {}",
                work.type_name(state)
            )));
        }
        Ok(combine.oid)
    }
}

/// Why nobody knows what a polymorphic type would be over these arguments
/// (check_valid_polymorphic_signature).
fn undetermined(ty: Oid, args: &[Oid]) -> Option<String> {
    let of_compatible = |oid: Oid| matches!(oid, Oid::ANYCOMPATIBLE | Oid::ANYCOMPATIBLEARRAY | Oid(5079));
    if !is_polymorphic(ty) || ty == Oid::ANY {
        return None;
    }
    let (told, family) = if of_compatible(ty) {
        let family = "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange";
        (args.iter().any(|arg| of_compatible(*arg)), family)
    } else {
        let of_element = |oid: Oid| is_polymorphic(oid) && oid != Oid::ANY && !of_compatible(oid);
        let family = "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange";
        (args.iter().any(|arg| of_element(*arg)), family)
    };
    let name = BuiltIn.type_name(ty);
    (!told).then(|| format!("A result of type {name} requires at least one input of type {family}."))
}

/// The text of a first state must be one.
fn check_initial(text: &str, state: Type, work: &Work<'_>) -> Result<()> {
    // What needs the catalog to be read is read when it is used.
    match state.oid.kind() {
        Some(TypeKind::Enum) => return work.catalog.enum_value(state.oid, text).map(drop),
        Some(TypeKind::Composite) => return Ok(()),
        None => {}
    }
    if state.oid.element_kind().is_some() || state.oid.names_object() {
        return Ok(());
    }
    io::text_in(text, state, work.env.context).map(drop)
}

/// The operator of a name over two values of the only argument's type.
fn sort_operator(name: &QualifiedName, args: &[Oid], names: &dyn TypeNames) -> Result<Oid> {
    let [arg] = args else {
        return Err(invalid("sort operator can only be specified for single-argument aggregates"));
    };
    let operators = function::lookup_operators(&name.name);
    let fits = |oid: Oid| is_binary_coercible(*arg, oid);
    let exact = operators.iter().find(|operator| operator.left == Some(*arg) && operator.right == *arg);
    let found = exact.or_else(|| {
        operators.iter().find(|operator| operator.left.is_some_and(fits) && fits(operator.right))
    });
    found.map(|operator| operator.oid).ok_or_else(|| {
        let ty = names.type_name(*arg);
        SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {ty} {name} {ty}"))
    })
}
