//! Objects as SQL text: pg_get_indexdef, pg_get_constraintdef, pg_get_functiondef and relatives.
//!
//! - [`expressions`]          defaults and conditions as the relations show them
//! - [`names_defined`]        what names in a definition mean, whoever uses it

pub(super) mod expressions;
pub(super) mod names_defined;

use super::relation::index_view::IndexView;
use super::{KeptExpression, Subject, SystemSource};
use crate::catalog::{
    ArgMode, Catalog, Check, Language, QuotedTypes, Routine, RoutineArg, RoutineKind, Table, TypesAlong,
};
use crate::datum::Datum;
use crate::style::Quoting;
use crate::type_table::{TypeNames, type_info};
use crate::types::{Oid, Type};
use sqlparser::ast::Expr;

/// A type as text that means the same wherever it is read: users' types with their schemas.
pub fn type_as_written(catalog: &Catalog, ty: Type) -> String {
    type_along(catalog, &[], Quoting::WhereNeeded, ty)
}

/// A type as text, row types and their arrays included: with its schema, unless its name alone leads
/// to it along the search path (format_type).
pub fn type_along(catalog: &Catalog, search_path: &[String], quoting: Quoting, ty: Type) -> String {
    QuotedTypes { along: TypesAlong { catalog, search_path }, quoting }.format_type(ty)
}

/// pg_type_is_visible: NULL for an oid that is no type.
pub(super) fn type_visibility(source: &dyn SystemSource, oid: Oid) -> Datum {
    if type_info(oid).is_some() {
        return Datum::Bool(true);
    }
    let names = TypesAlong { catalog: source.catalog(), search_path: source.search_path() };
    names.is_visible(oid).map_or(Datum::Null, Datum::Bool)
}

/// [`type_along`] the path of whoever asks, in such quotes as he wants.
pub(super) fn type_text(source: &dyn SystemSource, ty: Type) -> String {
    type_along(source.catalog(), source.search_path(), source.quoting(), ty)
}

/// As [`type_along`], where no modifier is asked for (format_type_be): it spells `character` out, which
/// with a modifier of none is `bpchar`.
pub fn bare_type_along(catalog: &Catalog, search_path: &[String], ty: Oid) -> String {
    TypesAlong { catalog, search_path }.type_name(ty)
}

/// [`bare_type_along`] the path of whoever asks, in such quotes as he wants.
pub(super) fn bare_type_text(source: &dyn SystemSource, ty: Oid) -> String {
    // What no statement has and functions of the system alone take or answer.
    match ty {
        Oid(2280) => return "language_handler".to_owned(),
        Oid(2281) => return "internal".to_owned(),
        _ => {}
    }
    let along = TypesAlong { catalog: source.catalog(), search_path: source.search_path() };
    QuotedTypes { along, quoting: source.quoting() }.type_name(ty)
}

fn column_names(quoting: Quoting, table: &Table, columns: &[u16]) -> String {
    columns
        .iter()
        .filter_map(|c| table.columns.get(usize::from(*c)))
        .map(|c| quoting.name(&c.name))
        .collect::<Vec<_>>()
        .join(", ")
}

/// One index column with its order, where that is not the default.
pub(super) fn index_column(
    source: &dyn SystemSource,
    index: &IndexView<'_>,
    position: usize,
    pretty: bool,
) -> String {
    let Some(column) = index.all_columns().get(position).copied() else { return String::new() };
    if let Some(expression) = index.expression(position) {
        let shown = source.shown(&KeptExpression::over(index.table, &expression.text, pretty));
        return key_expression(shown, &expression.text, pretty);
    }
    index.table.columns.get(usize::from(column)).map_or(String::new(), |c| source.quoting().name(&c.name))
}

/// An expression as a part of an index's key: as it is shown, or else as it was written.
pub fn key_expression(shown: Option<String>, written: &str, pretty: bool) -> String {
    if let Some(text) = shown {
        let is_call = crate::parser::parse_expression(&text).is_ok_and(|expr| is_call(&expr));
        return if is_call { text } else { format!("({text})") };
    }
    // A call needs no parentheses of its own, an operator gets some beside those around it.
    match crate::parser::parse_expression(written) {
        Ok(Expr::Function(_)) => written.to_owned(),
        Ok(Expr::BinaryOp { .. } | Expr::UnaryOp { .. }) if !pretty => format!("(({written}))"),
        _ => format!("({written})"),
    }
}

/// What looks like a call of a function (looks_like_function).
fn is_call(expr: &Expr) -> bool {
    if let Expr::Nested(inner) = expr {
        // It is always shown in parentheses of its own.
        return matches!(**inner, Expr::AtTimeZone { .. });
    }
    matches!(
        expr,
        Expr::Function(_)
            | Expr::Extract { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. }
            | Expr::Trim { .. }
            | Expr::Substring { .. }
            | Expr::Position { .. }
            | Expr::Overlay { .. }
    )
}

/// COLLATE of a part of a key, where it is not that of what the part is over.
fn collation(source: &dyn SystemSource, index: &IndexView<'_>, place: usize) -> String {
    let name = match index.collations.get(place).copied().flatten() {
        None => return String::new(),
        Some(Oid(950)) => "C",
        Some(Oid(951)) => "POSIX",
        Some(_) => "default",
    };
    format!(" COLLATE {}", source.quoting().name(name))
}

/// `CREATE INDEX … ON … USING btree (…)`.
pub(super) fn index_definition(source: &dyn SystemSource, index: &IndexView<'_>, pretty: bool) -> String {
    let columns: Vec<String> = index
        .columns
        .iter()
        .enumerate()
        .map(|(i, (_, descending, nulls_first))| {
            let order = match (descending, nulls_first) {
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
                (false, true) => " NULLS FIRST",
                (false, false) => "",
            };
            let class = index.classes.get(i).and_then(Option::as_ref);
            let class = class.map_or_else(String::new, |class| format!(" {}", source.quoting().name(class)));
            index_column(source, index, i, pretty) + &collation(source, index, i) + &class + order
        })
        .collect();
    let mut tail = String::new();
    if !index.include.is_empty() {
        tail.push_str(&format!(" INCLUDE ({})", column_names(source.quoting(), index.table, index.include)));
    }
    if index.nulls_equal {
        tail.push_str(" NULLS NOT DISTINCT");
    }
    if !index.options.is_empty() {
        let value = |value: &str| match crate::catalog::names::quote_identifier(value) == value {
            true => value.to_owned(),
            false => crate::function::quote_literal(value),
        };
        let options: Vec<String> = index
            .options
            .iter()
            .map(|(name, of)| format!("{}={}", source.quoting().name(name), value(of)))
            .collect();
        tail.push_str(&format!(" WITH ({})", options.join(", ")));
    }
    if let Some(predicate) = index.predicate {
        tail.push_str(&match source.shown(&KeptExpression::over(index.table, predicate, pretty)) {
            Some(text) => format!(" WHERE {text}"),
            None if pretty => format!(" WHERE {predicate}"),
            None => format!(" WHERE ({predicate})"),
        });
    }
    let qualified = source.quoting().qualified(&index.table.schema, &index.table.name);
    // What the path leads to needs no schema to be read.
    let shown = super::relation::relation_name::relation_name(source, index.table.oid)
        .unwrap_or_else(|| qualified.clone());
    format!(
        "CREATE {}INDEX {} ON {}{} USING {} ({}){tail}",
        if index.unique { "UNIQUE " } else { "" },
        source.quoting().name(index.name),
        // Its partitions' indexes are made by statements of their own.
        if index.table.is_partitioned() { "ONLY " } else { "" },
        if pretty { shown } else { qualified },
        source.quoting().name(index.method),
        columns.join(", ")
    )
}

fn include_text(quoting: Quoting, table: &Table, columns: &[u16]) -> String {
    match columns {
        [] => String::new(),
        columns => format!(" INCLUDE ({})", column_names(quoting, table, columns)),
    }
}

/// Pretty-printed, the condition does without the parentheses of its own.
fn check_definition(check: &Check, shown: Option<String>, pretty: bool) -> String {
    let valid = if check.not_valid { " NOT VALID" } else { "" };
    let inherit = if check.no_inherit { " NO INHERIT" } else { "" };
    let condition = &check.condition;
    if let Some(shown) = shown {
        format!("CHECK ({shown}){inherit}{valid}")
    } else if pretty {
        format!("CHECK ({condition}){inherit}{valid}")
    } else {
        format!("CHECK (({condition})){inherit}{valid}")
    }
}

/// A constraint's definition: `PRIMARY KEY (id)`, `CHECK ((x > 0))`, `FOREIGN KEY …`.
pub(super) fn constraint_definition(source: &dyn SystemSource, oid: Oid, pretty: bool) -> Option<String> {
    let (catalog, search_path) = (source.catalog(), source.search_path());
    if let Some(domain) = catalog.type_of_part(oid).and_then(|ty| ty.domain.as_ref())
        && let Some(check) = domain.checks.iter().find(|check| check.oid == oid)
    {
        let kept = KeptExpression {
            text: &check.condition,
            subject: Subject::Value(domain.base),
            target: None,
            pretty,
            is_shown: false,
        };
        return Some(check_definition(check, source.shown(&kept), pretty));
    }
    let table = catalog.table_of_part(oid)?;
    if let Some(key) = table.primary_key.as_ref().filter(|key| key.constraint_oid() == oid) {
        return Some(format!(
            "PRIMARY KEY ({}){}",
            column_names(source.quoting(), table, &key.columns),
            include_text(source.quoting(), table, &key.include)
        ));
    }
    if let Some(index) = table.indexes.iter().find(|index| index.constraint_oid() == Some(oid)) {
        let columns: Vec<u16> = index.columns.iter().map(|c| c.column).collect();
        return Some(format!(
            "UNIQUE {}({}){}",
            if index.nulls_equal { "NULLS NOT DISTINCT " } else { "" },
            column_names(source.quoting(), table, &columns),
            include_text(source.quoting(), table, &index.include)
        ));
    }
    if let Some(check) = table.checks.iter().find(|check| check.oid == oid) {
        let kept = KeptExpression::over(table, &check.condition, pretty);
        return Some(check_definition(check, source.shown(&kept), pretty));
    }
    if let Some(key) = table.foreign_keys.iter().find(|key| key.oid == oid) {
        let target = catalog.table_by_oid(key.references)?;
        let visible =
            catalog.table(None, &target.name, search_path).is_some_and(|found| found.oid == target.oid);
        let name = if visible {
            source.quoting().name(&target.name)
        } else {
            source.quoting().qualified(&target.schema, &target.name)
        };
        let mut text = format!(
            "FOREIGN KEY ({}) REFERENCES {name}({})",
            column_names(source.quoting(), table, &key.columns),
            column_names(source.quoting(), &target, &key.referenced_columns)
        );
        if key.match_full {
            text.push_str(" MATCH FULL");
        }
        for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
            if action != crate::ast::ReferentialAction::NoAction {
                text.push_str(&format!(" ON {event} {}", action.as_str()));
            }
        }
        if !key.on_delete_columns.is_empty() {
            text.push_str(&format!(" ({})", column_names(source.quoting(), table, &key.on_delete_columns)));
        }
        text.push_str(deferral(key.deferrable, key.initially_deferred));
        if key.not_valid {
            text.push_str(" NOT VALID");
        }
        return Some(text);
    }
    let timing = table.triggers.iter().find(|trigger| trigger.oid == oid)?.constraint?;
    Some(format!("TRIGGER{}", deferral(timing.deferrable, timing.initially_deferred)))
}

fn deferral(deferrable: bool, initially_deferred: bool) -> &'static str {
    match (deferrable, initially_deferred) {
        (true, true) => " DEFERRABLE INITIALLY DEFERRED",
        (true, false) => " DEFERRABLE",
        (false, _) => "",
    }
}

/// The argument's mode and name before its type.
fn argument(source: &dyn SystemSource, routine: &Routine, arg: &RoutineArg, with_default: bool) -> String {
    let mode = match (arg.mode, routine.kind) {
        // Procedures spell IN out, functions leave it away.
        (ArgMode::In, RoutineKind::Procedure) => "IN ",
        (ArgMode::In, RoutineKind::Function | RoutineKind::Aggregate) | (ArgMode::Table, _) => "",
        (ArgMode::Out, _) => "OUT ",
        (ArgMode::InOut, _) => "INOUT ",
        (ArgMode::Variadic, _) => "VARIADIC ",
    };
    let name = arg.name.as_ref().map_or(String::new(), |name| source.quoting().name(name) + " ");
    let default = match argument_default(source, arg) {
        Some(default) if with_default => format!(" DEFAULT {default}"),
        _ => String::new(),
    };
    format!("{mode}{name}{}{default}", bare_type_text(source, arg.declared().oid))
}

/// The default of an argument.
pub(super) fn argument_default(source: &dyn SystemSource, arg: &RoutineArg) -> Option<String> {
    let text = arg.default.as_deref()?;
    let target = Some(arg.ty);
    let kept = KeptExpression { text, subject: Subject::Nothing, target, pretty: false, is_shown: false };
    Some(source.shown(&kept).unwrap_or_else(|| text.to_owned()))
}

/// pg_proc.proargdefaults as pg_get_expr shows it: all of them.
pub(super) fn argument_defaults(source: &dyn SystemSource, routine: &Routine) -> Option<String> {
    let defaults: Vec<String> = routine.args.iter().filter_map(|arg| argument_default(source, arg)).collect();
    (!defaults.is_empty()).then(|| defaults.join(", "))
}

/// pg_get_function_arguments: all but the columns of RETURNS TABLE, with defaults.
pub(super) fn function_arguments(source: &dyn SystemSource, routine: &Routine) -> String {
    arguments(source, routine, true, |arg| arg.mode != ArgMode::Table)
}

/// pg_get_function_identity_arguments: what DROP FUNCTION needs.
pub(super) fn identity_arguments(source: &dyn SystemSource, routine: &Routine) -> String {
    arguments(source, routine, false, |arg| arg.mode != ArgMode::Table)
}

fn arguments(
    source: &dyn SystemSource,
    routine: &Routine,
    with_defaults: bool,
    accept: impl Fn(&RoutineArg) -> bool,
) -> String {
    routine
        .args
        .iter()
        .filter(|arg| accept(arg))
        .map(|arg| argument(source, routine, arg, with_defaults))
        .collect::<Vec<_>>()
        .join(", ")
}

/// pg_get_function_result: `SETOF integer`, `TABLE(a integer, b text)`; `None` for procedures.
pub(super) fn function_result(source: &dyn SystemSource, routine: &Routine) -> Option<String> {
    if routine.kind == RoutineKind::Procedure {
        return None;
    }
    if routine.args.iter().any(|arg| arg.mode == ArgMode::Table) {
        let columns: Vec<String> = routine
            .args
            .iter()
            .filter(|arg| arg.mode == ArgMode::Table)
            .map(|arg| argument(source, routine, arg, false))
            .collect();
        return Some(format!("TABLE({})", columns.join(", ")));
    }
    let result = bare_type_text(source, routine.declared_result().oid);
    Some(if routine.returns_set { format!("SETOF {result}") } else { result })
}

/// pg_get_functiondef: a statement that makes the routine again.
pub(super) fn function_definition(source: &dyn SystemSource, routine: &Routine) -> String {
    let kind = if routine.kind == RoutineKind::Procedure { "PROCEDURE" } else { "FUNCTION" };
    let mut out = format!(
        "CREATE OR REPLACE {kind} {}({})\n",
        source.quoting().qualified(&routine.schema, &routine.name),
        function_arguments(source, routine)
    );
    if let Some(result) = function_result(source, routine) {
        out.push_str(&format!(" RETURNS {result}\n"));
    }
    out.push_str(&format!(
        " LANGUAGE {}\n",
        match routine.language {
            Language::PlPgSql => source.quoting().name("plpgsql"),
            Language::Sql => source.quoting().name("sql"),
        }
    ));
    let mut traits = Vec::new();
    match routine.volatility {
        'i' => traits.push("IMMUTABLE"),
        's' => traits.push("STABLE"),
        _ => {}
    }
    match routine.traits.parallel {
        's' => traits.push("PARALLEL SAFE"),
        'r' => traits.push("PARALLEL RESTRICTED"),
        _ => {}
    }
    if routine.strict {
        traits.push("STRICT");
    }
    if routine.traits.security_definer {
        traits.push("SECURITY DEFINER");
    }
    if routine.traits.leakproof {
        traits.push("LEAKPROOF");
    }
    let cost = routine.traits.cost.filter(|cost| *cost != 100.0).map(|cost| format!("COST {cost}"));
    let rows = routine.traits.rows.filter(|rows| *rows != 1000.0).map(|rows| format!("ROWS {rows}"));
    traits.extend(cost.as_deref());
    traits.extend(rows.as_deref());
    if !traits.is_empty() {
        out.push_str(&format!(" {}\n", traits.join(" ")));
    }
    for (name, value) in &routine.traits.settings {
        let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let value = match name.as_str() {
            // A list of names, each a constant of its own.
            "search_path" => {
                value.split(", ").map(|item| literal(item.trim_matches('"'))).collect::<Vec<_>>().join(", ")
            }
            _ => literal(value),
        };
        out.push_str(&format!(" SET {} TO {value}\n", source.quoting().name(name)));
    }
    if let Some(body) = source.shown_body(routine) {
        out.push_str(&body);
        out.push('\n');
        return out;
    }
    // A dollar quote that the body does not contain.
    let mut tag = kind.to_ascii_lowercase();
    while routine.source.contains(&format!("${tag}$")) {
        tag.push('x');
    }
    out.push_str(&format!("AS ${tag}${}${tag}$\n", routine.source));
    out
}

/// The name of a type for a routine's signature.
pub(super) fn signature(source: &dyn SystemSource, routine: &Routine) -> String {
    let types: Vec<String> =
        routine.input_args().map(|arg| bare_type_text(source, arg.declared().oid)).collect();
    types.join(",")
}
