//! Functions and procedures: their declarations. Bodies are compiled by the caller.

use std::sync::Arc;

use archipel_sql::ast::{
    ArgumentDefinition, CreateRoutine, QualifiedName, Returns, RoutineBody, RoutineClauses, RoutineSetting,
    RoutineSignature, RoutineWord, Set, SetValue,
};
use archipel_sql::catalog::dependency::routine_signature;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{
    ArgMode, Catalog, Language, Object, ObjectClass, Privileges, Routine, RoutineArg, RoutineKind,
    RoutineRef, StoredBody, TypesAlong,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function;
use archipel_sql::function::SessionHost;
use archipel_sql::type_table::{BuiltIn, TypeNames, type_info};
use archipel_sql::types::{Oid, Type};

use crate::bind::coerce::is_polymorphic;
use crate::expression::check;
use crate::relation::view;
use crate::work::Work;

/// PostgreSQL's FUNC_MAX_ARGS.
const MAX_ARGUMENTS: usize = 100;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_FUNCTION_DEFINITION, message)
}

pub(crate) fn create_routine(create: &CreateRoutine, work: &mut Work<'_>) -> Result<()> {
    let schema = work.any_target(&create.name)?;
    let kind = match create.kind {
        RoutineWord::Procedure => RoutineKind::Procedure,
        _ => RoutineKind::Function,
    };
    let language = language(create)?;
    work.require(language.object(), ObjectClass::Language, Privileges::USAGE)?;
    if create.window {
        return Err(SqlError::unsupported("a WINDOW function"));
    }
    let args = arguments(&create.args, kind, work)?;
    if matches!(create.returns, Some(Returns::Table))
        && args.iter().any(|arg| matches!(arg.mode, ArgMode::Out | ArgMode::InOut))
    {
        let message = "OUT and INOUT arguments aren't allowed in TABLE functions";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let (result, result_domain, returns_set) = result_type(create, kind, &args, work)?;
    check_polymorphic(&args, result)?;
    check_pseudo_types(language, &args, result)?;
    tell_copied_types(create, &args, result, work);
    let source = match &create.body {
        RoutineBody::Text { text, .. } => text.clone(),
        RoutineBody::Return(text) | RoutineBody::Atomic(text) if language == Language::Sql => text.clone(),
        RoutineBody::Return(_) | RoutineBody::Atomic(_) => {
            return Err(invalid("inline SQL function body only valid for language SQL"));
        }
        RoutineBody::Library(..) => {
            let language = create.language.as_deref().unwrap_or("sql");
            return Err(invalid(format!("only one AS item needed for language \"{language}\"")));
        }
    };
    let mut routine = Routine {
        oid: Oid(0),
        schema,
        name: create.name.name.clone(),
        kind,
        language,
        args,
        result,
        result_domain,
        returns_set,
        strict: false,
        volatility: 'v',
        source,
        distribution_arg: None,
        traits: Default::default(),
        aggregate: None,
        version: 1,
    };
    if let RoutineBody::Return(text) | RoutineBody::Atomic(text) = &create.body {
        let returns = matches!(create.body, RoutineBody::Return(_));
        let stored = StoredBody { returns, ..view::stored_body(text, &routine, work)? };
        routine.traits.stored = Some(Box::new(stored));
    }
    check_leakproof(&create.clauses, work)?;
    routine.traits.extension.clone_from(&work.extension);
    apply_clauses(&mut routine, &create.clauses, work.env.context.session)?;
    let routine: RoutineRef = Arc::new(numbered(routine, create.or_replace, work)?);
    work.plan.routines.push(routine.clone());
    work.put(Object::Routine(routine));
    Ok(())
}

/// Says what types `table.column%TYPE` means: the routine keeps these, whatever becomes of the column.
fn tell_copied_types(create: &CreateRoutine, args: &[RoutineArg], result: Type, work: &mut Work<'_>) {
    let given = create.args.iter().zip(args).map(|(definition, arg)| (&definition.ty, arg.ty));
    let result = match &create.returns {
        Some(Returns::Type(name)) => Some((name, result)),
        _ => None,
    };
    for (name, ty) in given.chain(result).filter(|(name, _)| name.percent_type) {
        work.notice(format!("type reference {name} converted to {}", work.type_name(ty.oid)));
    }
}

/// A new routine with its number: that of the one it replaces, if it may.
pub(super) fn numbered(mut routine: Routine, or_replace: bool, work: &mut Work<'_>) -> Result<Routine> {
    let inputs = routine.input_types();
    match work.catalog.routine_in(&routine.schema, &routine.name, &inputs) {
        None => routine.oid = work.oids(1),
        Some(_) if !or_replace => {
            return Err(SqlError::new(
                SqlState::DUPLICATE_FUNCTION,
                format!("function \"{}\" already exists with same argument types", routine.name),
            ));
        }
        Some(old) => {
            work.require_owner(old.oid)?;
            check_replaceable(&old, &routine, work)?;
            routine.oid = old.oid;
            routine.version = old.version + 1;
            routine.distribution_arg = old.distribution_arg;
            routine.traits.distribution_table = old.traits.distribution_table;
        }
    }
    Ok(routine)
}

/// That a function tells nothing of its arguments is for superusers to say.
pub(crate) fn check_leakproof(clauses: &RoutineClauses, work: &Work<'_>) -> Result<()> {
    if clauses.leakproof != Some(true) || work.env.system || work.authority().is_superuser() {
        return Ok(());
    }
    let message = "only superuser can define a leakproof function";
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}

/// What clauses of CREATE and ALTER say.
pub(crate) fn apply_clauses(
    routine: &mut Routine,
    clauses: &RoutineClauses,
    session: &dyn SessionHost,
) -> Result<()> {
    if routine.kind == RoutineKind::Procedure && clauses.of_functions_only() {
        return Err(invalid("invalid attribute in procedure definition").at(clauses.of_functions_at));
    }
    if clauses.rows.is_some() && !routine.returns_set {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "ROWS is not applicable when function does not return a set",
        ));
    }
    routine.volatility = clauses.volatility.unwrap_or(routine.volatility);
    routine.strict = clauses.strict.unwrap_or(routine.strict);
    let traits = &mut routine.traits;
    traits.security_definer = clauses.security_definer.unwrap_or(traits.security_definer);
    traits.leakproof = clauses.leakproof.unwrap_or(traits.leakproof);
    traits.parallel = clauses.parallel.unwrap_or(traits.parallel);
    traits.cost = clauses.cost.or(traits.cost);
    traits.rows = clauses.rows.or(traits.rows);
    for setting in &clauses.settings {
        let (name, value) = match setting {
            RoutineSetting::ResetAll => {
                traits.settings.clear();
                continue;
            }
            RoutineSetting::Reset(name) => (name, None),
            RoutineSetting::Set(set) => (&set.name, setting_text(set, session)?),
        };
        put_setting(&mut traits.settings, name, value, session);
    }
    Ok(())
}

/// Puts a setting into a list (GUCArrayAdd), where it stays in its place, or takes it out of it.
pub(crate) fn put_setting(
    settings: &mut Vec<(String, String)>,
    name: &str,
    value: Option<String>,
    session: &dyn SessionHost,
) {
    let name = session.setting_name(name);
    let known = settings.iter().position(|(known, _)| known.eq_ignore_ascii_case(&name));
    match (known, value) {
        (Some(place), Some(value)) => settings[place].1 = value,
        (Some(place), None) => drop(settings.remove(place)),
        (None, Some(value)) => settings.push((name, value)),
        (None, None) => {}
    }
}

/// The value of a SET clause as pg_proc keeps it; `None` for DEFAULT.
pub(crate) fn setting_text(set: &Set, session: &dyn SessionHost) -> Result<Option<String>> {
    Ok(match &set.value {
        SetValue::Default => None,
        SetValue::Current => match session.setting(&set.name) {
            Some(value) => Some(value),
            None => {
                let message = format!("unrecognized configuration parameter \"{}\"", set.name);
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            }
        },
        SetValue::List(items) if set.name.eq_ignore_ascii_case("search_path") => {
            let items: Vec<String> = items.iter().map(|item| quote_identifier(item)).collect();
            Some(items.join(", "))
        }
        SetValue::List(items) if items.len() > 1 && !set.name.eq_ignore_ascii_case("datestyle") => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("SET {} takes only one argument", set.name),
            ));
        }
        SetValue::List(items) => Some(items.join(", ")),
    })
}

fn language(create: &CreateRoutine) -> Result<Language> {
    match create.language.as_deref() {
        Some("plpgsql") => Ok(Language::PlPgSql),
        Some("sql") => Ok(Language::Sql),
        Some(known @ ("c" | "internal")) => Err(SqlError::unsupported(format_args!("LANGUAGE {known}"))),
        Some(other) => {
            let error =
                SqlError::new(SqlState::UNDEFINED_OBJECT, format!("language \"{other}\" does not exist"));
            Err(if matches!(other, "plperl" | "plperlu" | "plpython3u" | "pltcl" | "pltclu") {
                error.with_hint("Use CREATE EXTENSION to load the language into the database.")
            } else {
                error
            })
        }
        None => Err(invalid("no language specified")),
    }
}

pub(super) fn arguments(
    definitions: &[ArgumentDefinition],
    kind: RoutineKind,
    work: &Work<'_>,
) -> Result<Vec<RoutineArg>> {
    let mut args: Vec<RoutineArg> = Vec::with_capacity(definitions.len());
    let mut variadic_seen = false;
    let mut default_seen = false;
    for definition in definitions {
        if definition.ty.setof {
            return Err(invalid(format!("{}s cannot accept set arguments", kind.as_str())));
        }
        work.require_lookup(&definition.ty)?;
        let declared = work.catalog.resolve_declared(&definition.ty, work.search_path());
        let (ty, domain) = declared.map_err(|error| {
            if error.state() == SqlState::UNDEFINED_OBJECT && !definition.ty.percent_type {
                SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type {} does not exist", definition.ty))
                    .placeless()
            } else {
                error
            }
        })?;
        work.require_type(ty, domain)?;
        // Only a base type is part of a routine's declaration: its modifier is not.
        let ty = Type::of(ty.oid);
        let input = matches!(definition.mode, ArgMode::In | ArgMode::InOut | ArgMode::Variadic);
        let procedure = kind == RoutineKind::Procedure;
        if procedure && variadic_seen {
            return Err(invalid("VARIADIC parameter must be the last parameter"));
        }
        if procedure && definition.mode == ArgMode::Out && default_seen {
            return Err(invalid("procedure OUT parameters cannot appear after one with a default value"));
        }
        if input && variadic_seen {
            return Err(invalid("VARIADIC parameter must be the last input parameter"));
        }
        if definition.mode == ArgMode::Variadic {
            variadic_seen = true;
            let array = archipel_sql::type_table::element_of(ty.oid).is_some()
                || matches!(ty.oid, Oid::ANYARRAY | Oid::ANYCOMPATIBLEARRAY | Oid::ANY);
            if !array {
                return Err(invalid("VARIADIC parameter must be an array"));
            }
        }
        if let Some(name) = &definition.name {
            // An input may share its name with an output; the language says what it means.
            let sides = |mode: ArgMode| match mode {
                ArgMode::In | ArgMode::Variadic => (true, false),
                ArgMode::Out | ArgMode::Table => (false, true),
                ArgMode::InOut => (true, true),
            };
            let (input, output) = sides(definition.mode);
            let clash = args.iter().any(|other| {
                let (other_input, other_output) = sides(other.mode);
                other.name.as_ref() == Some(name) && ((input && other_input) || (output && other_output))
            });
            if clash {
                return Err(invalid(format!("parameter name \"{name}\" used more than once")));
            }
        }
        match &definition.default {
            Some(_) if !input => return Err(invalid("only input parameters can have default values")),
            Some(default) => {
                default_seen = true;
                check::check_argument_default(default)?;
                check::check_argument_default_written(default, ty, work)?;
            }
            None if default_seen && input => {
                return Err(invalid(
                    "input parameters after one with a default value must also have defaults",
                ));
            }
            None => {}
        }
        args.push(RoutineArg {
            name: definition.name.clone(),
            mode: definition.mode,
            ty,
            default: definition.default.as_ref().map(|default| default.text.clone()),
            domain,
        });
    }
    if args.len() > MAX_ARGUMENTS {
        return Err(SqlError::new(
            SqlState::TOO_MANY_ARGUMENTS,
            format!("functions cannot have more than {MAX_ARGUMENTS} arguments"),
        ));
    }
    Ok(args)
}

/// The declared result: what RETURNS says, or what the output parameters amount to.
fn result_type(
    create: &CreateRoutine,
    kind: RoutineKind,
    args: &[RoutineArg],
    work: &Work<'_>,
) -> Result<(Type, Option<Oid>, bool)> {
    let outputs: Vec<&RoutineArg> = args
        .iter()
        .filter(|arg| matches!(arg.mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table))
        .collect();
    if kind == RoutineKind::Procedure {
        return Ok((if outputs.is_empty() { Type::VOID } else { Type::RECORD }, None, false));
    }
    let (implied, implied_domain) = match outputs[..] {
        [] => (None, None),
        [only] => (Some(only.ty), only.domain),
        _ => (Some(Type::RECORD), None),
    };
    match &create.returns {
        Some(Returns::Table) => Ok((implied.unwrap_or(Type::RECORD), implied_domain, true)),
        None => implied
            .map(|ty| (ty, implied_domain, false))
            .ok_or_else(|| invalid("function result type must be specified")),
        Some(Returns::Type(name)) => {
            work.require_lookup(name)?;
            let declared = work.catalog.resolve_declared(name, work.search_path());
            let (ty, domain) = declared.map_err(|error| match error.state() {
                SqlState::UNDEFINED_OBJECT if !name.percent_type => error.placeless(),
                _ => error,
            })?;
            work.require_type(ty, domain)?;
            let ty = Type::of(ty.oid);
            if let Some(implied) = implied
                && implied != ty
            {
                let wanted = work.type_name(implied.oid);
                return Err(invalid(format!(
                    "function result type must be {wanted} because of OUT parameters"
                )));
            }
            if ty.oid == Oid::TRIGGER {
                check_trigger_function(create, args, name.setof)?;
            }
            Ok((ty, domain, name.setof))
        }
    }
}

/// What is answered has a type that calls can tell from what they give.
fn check_polymorphic(args: &[RoutineArg], result: Type) -> Result<()> {
    let families: [(&[Oid], &str); 2] = [
        (
            &[Oid::ANYELEMENT, Oid::ANYARRAY, Oid::ANYNONARRAY, Oid::ANYENUM],
            "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
        ),
        (
            &[Oid::ANYCOMPATIBLE, Oid::ANYCOMPATIBLEARRAY],
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange",
        ),
    ];
    let is_output = |arg: &&RoutineArg| matches!(arg.mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table);
    for (family, names) in families {
        let is_input =
            |arg: &RoutineArg| matches!(arg.mode, ArgMode::In | ArgMode::InOut | ArgMode::Variadic);
        if args.iter().any(|arg| is_input(arg) && family.contains(&arg.ty.oid)) {
            continue;
        }
        let outputs = args.iter().filter(is_output).map(|arg| arg.ty);
        if let Some(unknown) = outputs.chain([result]).find(|ty| family.contains(&ty.oid)) {
            let name = BuiltIn.type_name(unknown.oid);
            return Err(invalid("cannot determine result data type").with_detail(format!(
                "A result of type {name} requires at least one input of type {names}."
            )));
        }
    }
    Ok(())
}

/// Pseudo-types are nothing for functions to take or to answer, but those that stand for others, and rows
/// of no named type: those functions of the language sql may answer alone.
fn check_pseudo_types(language: Language, args: &[RoutineArg], result: Type) -> Result<()> {
    let is_sql = language == Language::Sql;
    let is_pseudo = |ty: Oid| {
        type_info(ty).is_some_and(|info| info.kind == b'p') && (ty == Oid::ANY || !is_polymorphic(ty))
    };
    let refused = |what: &str, ty: Oid| {
        let name = BuiltIn.type_name(ty);
        match is_sql {
            true => invalid(format!("SQL functions cannot {what} type {name}")),
            false => {
                let message = format!("PL/pgSQL functions cannot {what} type {name}");
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            }
        }
    };
    if is_pseudo(result.oid) && ![Oid::RECORD, Oid::VOID, Oid::TRIGGER].contains(&result.oid) {
        return Err(refused("return", result.oid));
    }
    let is_input = |arg: &&RoutineArg| matches!(arg.mode, ArgMode::In | ArgMode::InOut | ArgMode::Variadic);
    let mut taken = args.iter().filter(is_input).map(|arg| arg.ty.oid);
    match taken.find(|ty| is_pseudo(*ty) && (is_sql || *ty != Oid::RECORD)) {
        Some(ty) if is_sql => Err(refused("have arguments of", ty)),
        Some(ty) => Err(refused("accept", ty)),
        None => Ok(()),
    }
}

/// A function that triggers call: it finds its arguments in variables of their own.
fn check_trigger_function(create: &CreateRoutine, args: &[RoutineArg], set: bool) -> Result<()> {
    if create.language.as_deref() == Some("sql") {
        return Err(invalid("SQL functions cannot return type trigger"));
    }
    if set {
        return Err(SqlError::unsupported("a function that returns SETOF trigger"));
    }
    if !args.is_empty() {
        let mut error = invalid("trigger functions cannot have declared arguments")
            .with_hint("The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.");
        error.fields_mut().context =
            Some(format!("compilation of PL/pgSQL function \"{}\" near line 1", create.name.name));
        return Err(error);
    }
    Ok(())
}

/// What OR REPLACE may not change.
fn check_replaceable(old: &Routine, new: &Routine, names: &dyn TypeNames) -> Result<()> {
    if old.kind != new.kind {
        let is = match old.kind {
            RoutineKind::Function => "a function",
            RoutineKind::Procedure => "a procedure",
            RoutineKind::Aggregate => "an aggregate function",
        };
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "cannot change routine kind")
            .with_detail(format!("\"{}\" is {is}.", old.name)));
    }
    let word = old.kind.as_str().to_uppercase();
    let hint = format!("Use DROP {word} {} first.", routine_signature(old, names));
    if old.result != new.result || old.returns_set != new.returns_set {
        let message = match old.kind {
            RoutineKind::Function | RoutineKind::Aggregate => {
                "cannot change return type of existing function"
            }
            RoutineKind::Procedure => "cannot change whether a procedure has output parameters",
        };
        return Err(invalid(message).with_hint(hint));
    }
    let outputs = |routine: &Routine| -> Vec<(Option<String>, Oid)> {
        routine.output_args().map(|arg| (arg.name.clone(), arg.ty.oid)).collect()
    };
    if old.result.oid == Oid::RECORD && outputs(old) != outputs(new) {
        return Err(invalid("cannot change return type of existing function")
            .with_detail("Row type defined by OUT parameters is different.")
            .with_hint(hint));
    }
    for (was, is) in old.input_args().zip(new.input_args()) {
        if let Some(name) = &was.name
            && is.name.as_ref() != Some(name)
        {
            return Err(invalid(format!("cannot change name of input parameter \"{name}\"")).with_hint(hint));
        }
        if was.default.is_some() && is.default.is_none() {
            return Err(invalid("cannot remove parameter defaults from existing function").with_hint(hint));
        }
    }
    Ok(())
}

/// `name(type, type)` of a signature, for errors.
fn shown(catalog: &Catalog, signature: &RoutineSignature, search_path: &[String]) -> String {
    let names = TypesAlong { catalog, search_path };
    let types: Vec<String> = inputs_of(signature)
        .map(|arg| match catalog.resolve_type(&arg.ty, search_path) {
            Ok(ty) => names.type_name(ty.oid),
            Err(_) => arg.ty.to_string(),
        })
        .collect();
    format!("{}({})", signature.name, types.join(", "))
}

pub(super) fn inputs_of(signature: &RoutineSignature) -> impl Iterator<Item = &ArgumentDefinition> {
    signature.args.iter().flatten().filter(|arg| !matches!(arg.mode, ArgMode::Out | ArgMode::Table))
}

/// The types of all arguments of a routine, OUT ones too.
fn passed_or_answered(routine: &RoutineRef) -> Vec<Oid> {
    routine.args.iter().filter(|arg| !matches!(arg.mode, ArgMode::Table)).map(|arg| arg.ty.oid).collect()
}

/// The routine a signature of DROP, ALTER or COMMENT names.
pub(crate) fn find(
    catalog: &Catalog,
    signature: &RoutineSignature,
    word: RoutineWord,
    search_path: &[String],
) -> Result<RoutineRef> {
    let name = &signature.name;
    if let Some(schema) = &name.schema
        && schema != "pg_temp"
        && !catalog.schema_exists(schema)
    {
        return Err(archipel_sql::catalog::names::undefined_schema(schema));
    }
    let names = TypesAlong { catalog, search_path };
    let overloads = catalog.routines(name.schema.as_deref(), &name.name, search_path);
    let fits = |routine: &RoutineRef| match word {
        // Aggregates are functions, too.
        RoutineWord::Function => routine.kind != RoutineKind::Procedure,
        RoutineWord::Aggregate => routine.kind == RoutineKind::Aggregate,
        RoutineWord::Procedure => routine.kind == RoutineKind::Procedure,
        RoutineWord::Routine => true,
    };
    let Some(args) = &signature.args else {
        let fitting: Vec<&RoutineRef> = overloads.iter().filter(|routine| fits(routine)).collect();
        return match (&fitting[..], &overloads[..]) {
            ([only], _) => Ok((*only).clone()),
            ([], _) if built_in_overloads(name, word).len() > 1 => Err(ambiguous_name(name, word)),
            ([], _) => Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("could not find {} named \"{name}\"", with_article(or_function(word))),
            )
            .placeless()),
            _ => Err(ambiguous_name(name, word)),
        };
    };
    let mut inputs = Vec::new();
    for arg in args.iter().filter(|arg| !matches!(arg.mode, ArgMode::Out | ArgMode::Table)) {
        inputs.push(catalog.resolve_type(&arg.ty, search_path)?.oid);
    }
    let mut found = overloads.iter().find(|routine| routine.input_types() == inputs);
    // Without modes, the list may be of all the arguments of a procedure.
    if matches!(word, RoutineWord::Procedure | RoutineWord::Routine)
        && args.iter().all(|arg| !arg.mode_written)
        && let Some(whole) = overloads.iter().find(|routine| passed_or_answered(routine) == inputs)
    {
        if found.is_some_and(|routine| routine.oid != whole.oid) {
            let message = format!("{} name \"{name}\" is not unique", word.as_str());
            return Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message));
        }
        found = Some(whole);
    }
    match found {
        Some(routine) if fits(routine) => Ok(routine.clone()),
        Some(other) => Err(wrong_kind(other, word, &names)),
        None if word == RoutineWord::Aggregate && inputs.is_empty() => {
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("aggregate {name}(*) does not exist")))
        }
        None => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!(
                "{} {} does not exist",
                or_function(word).as_str(),
                shown(catalog, signature, search_path)
            ),
        )),
    }
}

/// 42725.
fn ambiguous_name(name: &QualifiedName, word: RoutineWord) -> SqlError {
    let word = word.as_str();
    SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("{word} name \"{name}\" is not unique"))
        .with_hint(format!("Specify the argument list to select the {word} unambiguously."))
}

/// The built-in functions and aggregates of a name, with their arguments.
fn built_in_overloads(name: &QualifiedName, word: RoutineWord) -> Vec<(Oid, &'static str, &'static [Oid])> {
    let mut known: Vec<(Oid, &'static str, &'static [Oid])> = Vec::new();
    if word == RoutineWord::Procedure || name.schema.as_deref().is_some_and(|schema| schema != "pg_catalog") {
        return known;
    }
    if word != RoutineWord::Aggregate {
        known.extend(function::lookup_functions(&name.name).iter().map(|f| (f.oid, f.name, f.args)));
        known.extend(function::lookup_set_functions(&name.name).iter().map(|f| (f.oid, f.name, f.args)));
    }
    known.extend(function::lookup_aggregates(&name.name).iter().map(|f| (f.oid, f.name, f.args)));
    known
}

/// The built-in function or aggregate of a signature: its number and name.
pub(crate) fn find_built_in(
    catalog: &Catalog,
    signature: &RoutineSignature,
    word: RoutineWord,
    search_path: &[String],
) -> Option<(Oid, &'static str)> {
    let known = built_in_overloads(&signature.name, word);
    let Some(args) = &signature.args else {
        return match known[..] {
            [(oid, name, _)] => Some((oid, name)),
            _ => None,
        };
    };
    let inputs = args.iter().filter(|arg| !matches!(arg.mode, ArgMode::Out | ArgMode::Table));
    let inputs = inputs.map(|arg| catalog.resolve_type(&arg.ty, search_path).map(|ty| ty.oid));
    let inputs = inputs.collect::<Result<Vec<Oid>>>().ok()?;
    known.into_iter().find(|(_, _, args)| *args == inputs).map(|(oid, name, _)| (oid, name))
}

fn wrong_kind(routine: &RoutineRef, word: RoutineWord, names: &dyn TypeNames) -> SqlError {
    let signature = routine_signature(routine, names);
    let message = match word {
        RoutineWord::Aggregate => format!("function {} is not an aggregate", signature.replace(',', ", ")),
        _ => format!("{signature} is not {}", with_article(word)),
    };
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
}

/// A routine that is not there is a function in messages.
fn or_function(word: RoutineWord) -> RoutineWord {
    if word == RoutineWord::Routine { RoutineWord::Function } else { word }
}

fn with_article(word: RoutineWord) -> String {
    let article = if word == RoutineWord::Aggregate { "an" } else { "a" };
    format!("{article} {}", word.as_str())
}

/// The error of what is for functions with a body.
pub(crate) fn is_aggregate(routine: &Routine) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is an aggregate function", routine.name))
}
