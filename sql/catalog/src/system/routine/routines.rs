//! pg_proc and pg_aggregate: built-in routines and those of the database.

use super::builtin;
use super::function_name;
use super::type_functions;
use crate::catalog::routine::language_object::{C, INTERNAL, PLPGSQL, PLPGSQL_FUNCTIONS, SQL};
use crate::catalog::{
    Aggregate, AggregateWay, ArgMode, Language, PG_CATALOG, Routine, RoutineKind, SUPERUSER,
};
use crate::datum::Datum;
use crate::function::{self, Volatility};
use crate::system::SystemSource;
use crate::system::definition::argument_defaults;
use crate::system::functions::optional;
use crate::system::relation::index_view::schema_oid;
use crate::system::role::roles::{acl_of, owner};
use crate::system::shape::{Sheet, array, text, vector};
use crate::types::Oid;

// One argument per column of pg_proc that differs between built-in functions.
#[allow(clippy::too_many_arguments)]
fn builtin(
    (source, sheet): (&dyn SystemSource, &mut Sheet<'_>),
    oid: Oid,
    name: &str,
    args: &[Oid],
    result: Oid,
    kind: &str,
    strict: bool,
    set: bool,
    volatility: &str,
    arg_names: &[&str],
) {
    if !sheet.wants("oid", &Datum::Oid(oid)) || !sheet.wants("proname", &text(name)) {
        return;
    }
    let body = match kind {
        "a" => "aggregate_dummy",
        "w" => function_name::window(oid).map_or(name, |window| window.source),
        _ => name,
    };
    let arg_names = if arg_names.is_empty() {
        Datum::Null
    } else {
        array(Oid::TEXT, arg_names.iter().map(text).collect())
    };
    // PostgreSQL has PL/pgSQL in a library.
    let in_library = PLPGSQL_FUNCTIONS.contains(&oid);
    sheet.add(&[
        ("oid", Datum::Oid(oid)),
        ("proname", text(name)),
        ("pronamespace", Datum::Oid(PG_CATALOG)),
        ("proowner", Datum::Oid(SUPERUSER)),
        ("proacl", if source.catalog().access(oid).is_some() { acl_of(source, oid) } else { Datum::Null }),
        ("prolang", Datum::Oid(if in_library { C } else { INTERNAL })),
        ("probin", if in_library { text(builtin::PLPGSQL_LIBRARY) } else { Datum::Null }),
        ("procost", Datum::Float4(1.0)),
        ("prorows", Datum::Float4(if set { 1000.0 } else { 0.0 })),
        ("prokind", text(kind)),
        ("proisstrict", Datum::Bool(strict)),
        ("proretset", Datum::Bool(set)),
        ("provolatile", text(volatility)),
        ("proparallel", text(if in_library { "u" } else { "s" })),
        ("pronargs", Datum::Int2(args.len() as i16)),
        ("prorettype", Datum::Oid(result)),
        ("proargtypes", vector(Oid::OID, args.iter().map(|a| Datum::Oid(*a)).collect())),
        ("proargnames", arg_names),
        ("prosrc", text(body)),
    ]);
}

/// pg_proc.
pub(in crate::system) fn procedures(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for f in function::all_functions() {
        let volatility = match f.volatility {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        };
        builtin(
            (source, &mut *sheet),
            f.oid,
            f.name,
            f.args,
            f.result,
            "f",
            f.strict,
            false,
            volatility,
            f.arg_names,
        );
    }
    for f in function::all_set_functions() {
        let result = if f.columns.len() == 1 { f.columns[0].1 } else { Oid::RECORD };
        builtin((source, &mut *sheet), f.oid, f.name, f.args, result, "f", f.strict, true, "i", f.arg_names);
    }
    for f in function::all_aggregates() {
        builtin((source, &mut *sheet), f.oid, f.name, f.args, f.result, "a", false, false, "i", &[]);
    }
    for f in function::all_windows() {
        let sheet = &mut *sheet;
        builtin((source, sheet), f.oid, f.name, f.args, f.result, "w", f.strict, false, "i", &[]);
    }
    for f in type_functions::all() {
        builtin(
            (source, &mut *sheet),
            f.oid,
            f.name,
            &f.args,
            f.result,
            "f",
            f.strict,
            false,
            f.volatility,
            &[],
        );
    }
    for routine in sheet.routines(source) {
        deployed(source, sheet, routine);
    }
}

fn deployed(source: &dyn SystemSource, sheet: &mut Sheet<'_>, routine: &Routine) {
    let inputs: Vec<Datum> = routine.input_args().map(|arg| Datum::Oid(arg.declared().oid)).collect();
    let plain = routine.args.iter().all(|arg| arg.mode == ArgMode::In);
    let mode = |mode: ArgMode| match mode {
        ArgMode::In => "i",
        ArgMode::Out => "o",
        ArgMode::InOut => "b",
        ArgMode::Variadic => "v",
        ArgMode::Table => "t",
    };
    let per_argument = |element: Oid, f: &dyn Fn(&crate::catalog::RoutineArg) -> Datum| {
        if plain { Datum::Null } else { array(element, routine.args.iter().map(f).collect()) }
    };
    let names = if routine.args.iter().any(|arg| arg.name.is_some()) {
        array(Oid::TEXT, routine.args.iter().map(|arg| text(arg.name.as_deref().unwrap_or(""))).collect())
    } else {
        Datum::Null
    };
    let config = match &routine.traits.settings[..] {
        [] => Datum::Null,
        settings => {
            let items = settings.iter().map(|(name, value)| text(format!("{name}={value}"))).collect();
            array(Oid::TEXT, items)
        }
    };
    let body = source.shown_body(routine);
    let variadic = routine
        .args
        .iter()
        .find(|arg| arg.mode == ArgMode::Variadic)
        .and_then(|arg| crate::type_table::element_of(arg.ty.oid))
        .unwrap_or(Oid(0));
    sheet.add(&[
        ("oid", Datum::Oid(routine.oid)),
        ("proname", text(&routine.name)),
        ("pronamespace", schema_oid(source, &routine.schema)),
        ("proowner", owner(source, routine.oid)),
        ("proacl", acl_of(source, routine.oid)),
        (
            "prolang",
            Datum::Oid(match (routine.kind, routine.language) {
                (RoutineKind::Aggregate, _) => INTERNAL,
                (_, Language::PlPgSql) => PLPGSQL,
                (_, Language::Sql) => SQL,
            }),
        ),
        ("procost", Datum::Float4(routine.traits.cost.unwrap_or(default_cost(routine.kind)) as f32)),
        (
            "prorows",
            Datum::Float4(if routine.returns_set {
                routine.traits.rows.unwrap_or(1000.0) as f32
            } else {
                0.0
            }),
        ),
        ("prosecdef", Datum::Bool(routine.traits.security_definer)),
        ("proleakproof", Datum::Bool(routine.traits.leakproof)),
        ("proconfig", config),
        ("provariadic", Datum::Oid(variadic)),
        ("prokind", text(routine.kind.letter())),
        ("proisstrict", Datum::Bool(routine.strict)),
        ("proretset", Datum::Bool(routine.returns_set)),
        ("provolatile", text(routine.volatility.encode_utf8(&mut [0; 4]))),
        ("proparallel", text(routine.traits.parallel.encode_utf8(&mut [0; 4]))),
        ("pronargs", Datum::Int2(inputs.len() as i16)),
        (
            "pronargdefaults",
            Datum::Int2(routine.args.iter().filter(|arg| arg.default.is_some()).count() as i16),
        ),
        ("prorettype", Datum::Oid(routine.declared_result().oid)),
        ("proargtypes", vector(Oid::OID, inputs)),
        ("proallargtypes", per_argument(Oid::OID, &|arg| Datum::Oid(arg.declared().oid))),
        ("proargmodes", per_argument(Oid::CHAR, &|arg| text(mode(arg.mode)))),
        ("proargnames", names),
        ("proargdefaults", optional(argument_defaults(source, routine))),
        ("prosrc", text(if body.is_some() { "" } else { &routine.source })),
        ("prosqlbody", optional(body)),
    ]);
}

/// pg_proc.procost where a declaration says none.
fn default_cost(kind: RoutineKind) -> f64 {
    if kind == RoutineKind::Aggregate { 1.0 } else { 100.0 }
}

/// pg_aggregate.
pub(in crate::system) fn aggregates(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for f in function::all_aggregates() {
        let (kind, direct) = builtin::aggregate_kind(f.name);
        sheet.add(&[
            ("aggfnoid", Datum::Oid(f.oid)),
            ("aggkind", text(kind)),
            ("aggnumdirectargs", Datum::Int2(direct)),
        ]);
    }
    for routine in sheet.routines(source) {
        if let Some(aggregate) = &routine.aggregate {
            defined_aggregate(routine.oid, aggregate, sheet);
        }
    }
}

fn defined_aggregate(oid: Oid, aggregate: &Aggregate, sheet: &mut Sheet<'_>) {
    let function = |oid: Option<Oid>| Datum::Oid(oid.unwrap_or(Oid(0)));
    let initial = |way: &AggregateWay| way.initial.as_ref().map_or(Datum::Null, text);
    let modify = |way: &AggregateWay| text(way.finish_modify.encode_utf8(&mut [0; 4]));
    let plain = &aggregate.plain;
    let moving = aggregate.moving.as_ref();
    let way = moving.map(|moving| &moving.way);
    sheet.add(&[
        ("aggfnoid", Datum::Oid(oid)),
        ("aggkind", text("n")),
        ("aggnumdirectargs", Datum::Int2(0)),
        ("aggtransfn", Datum::Oid(plain.transition)),
        ("aggfinalfn", function(plain.finish)),
        ("aggcombinefn", function(aggregate.combine)),
        ("aggserialfn", function(None)),
        ("aggdeserialfn", function(None)),
        ("aggmtransfn", function(way.map(|way| way.transition))),
        ("aggminvtransfn", function(moving.map(|moving| moving.inverse))),
        ("aggmfinalfn", function(way.and_then(|way| way.finish))),
        ("aggfinalextra", Datum::Bool(plain.finish_extra)),
        ("aggmfinalextra", Datum::Bool(way.is_some_and(|way| way.finish_extra))),
        ("aggfinalmodify", modify(plain)),
        ("aggmfinalmodify", way.map_or_else(|| text("r"), modify)),
        ("aggsortop", function(aggregate.sort_operator)),
        ("aggtranstype", Datum::Oid(plain.state.oid)),
        ("aggtransspace", Datum::Int4(plain.state_space)),
        ("aggmtranstype", Datum::Oid(way.map_or(Oid(0), |way| way.state.oid))),
        ("aggmtransspace", Datum::Int4(way.map_or(0, |way| way.state_space))),
        ("agginitval", initial(plain)),
        ("aggminitval", way.map_or(Datum::Null, initial)),
    ]);
}
