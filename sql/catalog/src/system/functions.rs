//! Catalog functions, by the name of the C function behind them in PostgreSQL (pg_proc.prosrc),
//! as [`crate::function::SessionHost::call`] is asked for them.

use super::definition::{
    argument_default, bare_type_text, constraint_definition, function_arguments, function_definition,
    function_result, identity_arguments, index_column, index_definition, type_text, type_visibility,
};
use super::object_address;
use super::reg_types::*;
use super::relation::index_view::indexes;
use super::relation::policies;
use super::relation::relation_name::relation_name;
use super::relation::relations::{DEFAULT_COLLATION, given_comments, kind_of, view_definition};
use super::relation::triggers::trigger_definition;
use super::relation::{index_property, inheritance};
use super::shape::array;
use super::{Changeable, KeptExpression, SystemSource};
use crate::catalog::routine::extension::EXTENSIONS;
use crate::catalog::routine::language_object::language_numbered;
use crate::catalog::stored_name::literal_id;
use crate::catalog::{Relation, Table, TableKind, TriggerEvent};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{Oid, Type};

/// The collations there are: default, C and POSIX.
const COLLATIONS: [Oid; 3] = [DEFAULT_COLLATION, Oid(950), Oid(951)];

fn text(value: impl AsRef<str>) -> Datum {
    Datum::text(value.as_ref())
}

pub(super) fn optional(value: Option<String>) -> Datum {
    value.map_or(Datum::Null, text)
}

fn oid_at(args: &[Datum], index: usize) -> Oid {
    match args.get(index) {
        Some(Datum::Oid(oid)) => *oid,
        Some(Datum::Int4(n)) => Oid(*n as u32),
        _ => Oid(0),
    }
}

fn text_at(args: &[Datum], index: usize) -> &str {
    match args.get(index) {
        Some(Datum::Text(text)) => text,
        _ => "",
    }
}

fn integer_at(args: &[Datum], index: usize) -> i32 {
    match args.get(index) {
        Some(Datum::Int4(n)) => *n,
        Some(Datum::Int2(n)) => i32::from(*n),
        _ => 0,
    }
}

/// `to_regclass` and relatives answer NULL where the reg* type's input raises "not found".
fn lenient(found: Result<Oid>) -> Result<Datum> {
    const ABSENT: &[SqlState] = &[
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::UNDEFINED_OBJECT,
        SqlState::AMBIGUOUS_FUNCTION,
        SqlState::INVALID_SCHEMA_NAME,
    ];
    match found {
        Ok(oid) => Ok(Datum::Oid(oid)),
        Err(error) if ABSENT.contains(&error.state()) => Ok(Datum::Null),
        Err(error) => Err(error),
    }
}

/// The name of what is in no schema.
fn single_name(text: &str) -> Result<String> {
    let name = crate::catalog::names::parse_name_text(text)?;
    match name.schema {
        None => Ok(name.name),
        Some(_) => Err(SqlError::new(SqlState::INVALID_NAME, "invalid name syntax")),
    }
}

fn namespace_oid(source: &dyn SystemSource, name: &str) -> Result<Oid> {
    let plain = single_name(name)?;
    source
        .catalog()
        .schema(&plain)
        .map(|schema| schema.oid)
        .ok_or_else(|| crate::catalog::names::undefined_schema(&plain))
}

fn role_oid(source: &dyn SystemSource, name: &str) -> Result<Oid> {
    let plain = single_name(name)?;
    source
        .catalog()
        .role(&plain)
        .map(|role| role.oid)
        .ok_or_else(|| SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{plain}\" does not exist")))
}

fn role_name(source: &dyn SystemSource, oid: Oid) -> String {
    source.catalog().role_by_oid(oid).map_or_else(|| format!("unknown (OID={oid})"), |role| role.name.clone())
}

/// pg_get_indexdef(index, column, pretty): the statement, or one column.
fn index_def(source: &dyn SystemSource, oid: Oid, column: i32, pretty: bool) -> Datum {
    let table = match source.catalog().relation_by_oid(oid) {
        Some(Relation::Index(table, _) | Relation::PrimaryKey(table) | Relation::Nominal(table, _)) => table,
        _ => return Datum::Null,
    };
    let Some(index) = indexes(&table).find(|index| index.oid == oid) else { return Datum::Null };
    if column > 0 {
        text(index_column(source, &index, column as usize - 1, pretty))
    } else {
        text(index_definition(source, &index, pretty))
    }
}

/// Whether PostgreSQL keeps a relation in a file: views and partitioned tables have none.
fn has_file(relation: &Relation) -> bool {
    match relation {
        Relation::Table(table) => kind_of(table) == b'r',
        _ => true,
    }
}

fn serial_sequence(source: &dyn SystemSource, args: &[Datum]) -> Result<Datum> {
    let relation = named_relation(source, text_at(args, 0))?;
    let Relation::Table(table) = &relation else { return Ok(Datum::Null) };
    let column = text_at(args, 1);
    let index = table
        .column_index(column)
        .ok_or_else(|| crate::catalog::names::undefined_column(column, &table.name))?;
    let mut owned = source.catalog().sequences_owned_by(table.oid);
    let owned = owned.find(|s| s.owned_by == Some((table.oid, index)));
    Ok(optional(owned.map(|s| source.quoting().qualified(&s.schema, &s.name))))
}

fn schema_list(source: &dyn SystemSource, implicit: bool) -> Datum {
    let schemas = source.catalog().current_schemas(source.search_path(), implicit);
    array(Oid::NAME, schemas.into_iter().map(text).collect())
}

fn comment(source: &dyn SystemSource, object: Oid, column: i32) -> Datum {
    let Ok(column) = u16::try_from(column) else { return Datum::Null };
    let kept = source.catalog().comment(object, column);
    let built_in = || {
        // Most objects are neither: extensions need not be looked for.
        let is_extension = EXTENSIONS.iter().any(|known| known.oid == object);
        if column != 0 || !is_extension && language_numbered(object).is_none() {
            return None;
        }
        let mut given = given_comments(source).into_iter();
        given.find(|(_, commented, _)| *commented == object).map(|(.., text)| text.to_owned())
    };
    optional(kept.or_else(built_in))
}

fn shared_comment(source: &dyn SystemSource, object: Oid) -> Datum {
    let comments = source.catalog().shared_comments(object);
    comments.and_then(|comments| comments.text(0).map(text)).unwrap_or(Datum::Null)
}

/// What can be done to the rows of a relation, a bit for each of PostgreSQL's kinds of commands.
fn events_of(source: &dyn SystemSource, table: &Table, with_triggers: bool) -> i32 {
    let view = match table.kind {
        TableKind::Table => Changeable { insert: true, update: true, delete: true, columns: Vec::new() },
        TableKind::View => source.changeable(table),
        _ => Changeable::default(),
    };
    let instead = |event| with_triggers && table.has_instead_of(event);
    let events = [
        (4, view.update, TriggerEvent::Update),
        (8, view.insert, TriggerEvent::Insert),
        (16, view.delete, TriggerEvent::Delete),
    ];
    events.iter().filter(|(_, can, event)| *can || instead(*event)).map(|(bit, ..)| bit).sum()
}

/// The version of a collation's or a database's locale, which the C locale has not: NULL. 42704 where there is
/// no such object.
fn collation_version(source: &dyn SystemSource, kind: &str, object: Oid) -> Result<Datum> {
    let is_there = match kind {
        "database" => source.catalog().name_of_database(object).is_some(),
        _ => COLLATIONS.contains(&object),
    };
    if is_there {
        return Ok(Datum::Null);
    }
    let message = format!("{kind} with OID {object} does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}

/// Calls a catalog function; `None` if the name is none of them.
pub fn call(name: &str, args: &[Datum], source: &dyn SystemSource) -> Option<Result<Datum>> {
    let of_roles = super::role::privileges::call(name, args, source);
    if let Some(answer) = of_roles.or_else(|| super::role::acl_functions::call(name, args, source)) {
        return Some(answer);
    }
    // What the catalog keeps has ids in the place of names.
    if name.starts_with("reg")
        && name.ends_with("in")
        && let Some(named) = literal_id(text_at(args, 0))
    {
        return Some(Ok(Datum::Oid(named)));
    }
    let catalog = source.catalog();
    let first = oid_at(args, 0);
    let routine = || catalog.routine_by_oid(first);
    Some(Ok(match name {
        "regclassin" => return Some(relation_oid(source, text_at(args, 0)).map(Datum::Oid)),
        "to_regclass" => return Some(lenient(relation_oid(source, text_at(args, 0)))),
        "regclassout" => optional(relation_name(source, first)),
        "regprocin" => return Some(function_oid(source, text_at(args, 0)).map(Datum::Oid)),
        "to_regproc" => return Some(lenient(function_oid(source, text_at(args, 0)))),
        "regprocout" => optional(lone_function_name(source, first)),
        "regprocedurein" => return Some(procedure_oid(source, text_at(args, 0)).map(Datum::Oid)),
        "to_regprocedure" => return Some(lenient(procedure_oid(source, text_at(args, 0)))),
        "regprocedureout" => optional(procedure_name(source, first)),
        "regtypein" => return Some(type_oid(source, text_at(args, 0)).map(Datum::Oid)),
        "to_regtype" => return Some(lenient(type_oid(source, text_at(args, 0)))),
        "regtypeout" => text(bare_type_text(source, first)),
        "format_type" => text(type_text(
            source,
            Type {
                oid: first,
                typmod: if args.len() > 1 && !args[1].is_null() { integer_at(args, 1) } else { -1 },
            },
        )),
        "regoperin" => return Some(operator_oid(text_at(args, 0)).map(Datum::Oid)),
        "to_regoper" => return Some(lenient(operator_oid(text_at(args, 0)))),
        "regoperout" => optional(operator_name(first)),
        "regoperatorin" => {
            return Some(operator_signature_oid(source, text_at(args, 0)).map(Datum::Oid));
        }
        "to_regoperator" => return Some(lenient(operator_signature_oid(source, text_at(args, 0)))),
        "regoperatorout" => optional(operator_signature(source, first)),
        "regnamespacein" => return Some(namespace_oid(source, text_at(args, 0)).map(Datum::Oid)),
        "to_regnamespace" => return Some(lenient(namespace_oid(source, text_at(args, 0)))),
        "regnamespaceout" => {
            optional(catalog.schema_by_oid(first).map(|schema| source.quoting().name(&schema.name)))
        }
        "regrolein" => return Some(role_oid(source, text_at(args, 0)).map(Datum::Oid)),
        "to_regrole" => return Some(lenient(role_oid(source, text_at(args, 0)))),
        "regroleout" => optional(catalog.role_by_oid(first).map(|role| source.quoting().name(&role.name))),
        "pg_relation_is_updatable" => {
            let table = catalog.table_by_oid(first);
            Datum::Int4(
                table.map_or(0, |table| events_of(source, &table, args.get(1) == Some(&Datum::Bool(true)))),
            )
        }
        "pg_column_is_updatable" => {
            let place = integer_at(args, 1) - 1;
            let table = catalog.table_by_oid(first).filter(|_| place >= 0);
            Datum::Bool(table.is_some_and(|table| match table.kind {
                TableKind::View => source.changeable(&table).is_updatable(place as usize),
                kind => kind == TableKind::Table && (place as usize) < table.columns.len(),
            }))
        }
        "pg_get_userbyid" => text(role_name(source, first)),
        "pg_collation_actual_version" => return Some(collation_version(source, "collation", first)),
        "pg_database_collation_actual_version" => return Some(collation_version(source, "database", first)),
        "pg_table_is_visible" => relation_is_visible(source, first),
        "pg_type_is_visible" => type_visibility(source, first),
        "pg_function_is_visible" => function_is_visible(source, first),
        "pg_operator_is_visible" => Datum::Bool(crate::function::operator_by_oid(first).is_some()),
        // What the catalog stores as an expression is its text already.
        "pg_get_expr" => args.first().cloned().unwrap_or(Datum::Null),
        "pg_get_expr_ext" => match (args.first(), args.get(2)) {
            (Some(Datum::Text(kept)), Some(Datum::Bool(true))) => {
                match catalog.table_by_oid(oid_at(args, 1)) {
                    Some(table) => {
                        let kept_text = KeptExpression::over(&table, kept, true);
                        let shown = source.shown(&KeptExpression { is_shown: true, ..kept_text });
                        text(shown.as_deref().unwrap_or(kept))
                    }
                    None => text(kept),
                }
            }
            (kept, _) => kept.cloned().unwrap_or(Datum::Null),
        },
        "pg_get_indexdef" => index_def(source, first, 0, false),
        "pg_get_indexdef_ext" => {
            let pretty = matches!(args.get(2), Some(Datum::Bool(true)));
            index_def(source, first, integer_at(args, 1), pretty)
        }
        "pg_get_constraintdef" | "pg_get_constraintdef_ext" => {
            let pretty = matches!(args.get(1), Some(Datum::Bool(true)));
            optional(constraint_definition(source, first, pretty))
        }
        "pg_get_functiondef" if routine().is_some_and(|routine| routine.aggregate.is_some()) => {
            let name = routine().map_or_else(String::new, |routine| routine.name.clone());
            let message = format!("\"{name}\" is an aggregate function");
            return Some(Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)));
        }
        "pg_get_functiondef" => match routine() {
            Some(routine) => text(function_definition(source, &routine)),
            None => return Some(super::routine::builtin::definition(source, first).map(optional)),
        },
        "pg_get_function_arguments" => match routine() {
            Some(routine) => text(function_arguments(source, &routine)),
            None => optional(super::routine::builtin::arguments(source, first)),
        },
        "pg_get_function_identity_arguments" => match routine() {
            Some(routine) => text(identity_arguments(source, &routine)),
            None => optional(super::routine::builtin::arguments(source, first)),
        },
        "pg_get_function_result" => match routine() {
            Some(routine) => optional(function_result(source, &routine)),
            None => optional(super::routine::builtin::result(source, first)),
        },
        "pg_get_function_arg_default" => optional(routine().and_then(|routine| {
            let index = usize::try_from(integer_at(args, 1)).ok()?.checked_sub(1)?;
            argument_default(source, routine.args.get(index)?)
        })),
        "enum_in" => return Some(catalog.enum_value(first, text_at(args, 1)).map(Datum::Oid)),
        "enum_out" => optional(catalog.enum_label(first).map(|label| label.to_string())),
        "enum_first" | "enum_last" | "enum_range" => match catalog.user_type_of(first) {
            None => Datum::Null,
            Some(known) if name == "enum_range" => {
                array(known.oid, known.labels.iter().map(|label| Datum::Oid(label.oid)).collect())
            }
            Some(known) => {
                let label = if name == "enum_first" { known.labels.first() } else { known.labels.last() };
                label.map_or(Datum::Null, |label| Datum::Oid(label.oid))
            }
        },
        "pg_get_serial_sequence" => return Some(serial_sequence(source, args)),
        "sql_1348" | "sql_1215" => comment(source, first, 0),
        "sql_1993" => shared_comment(source, first),
        "sql_1216" => comment(source, first, integer_at(args, 1)),
        "current_schemas" => schema_list(source, matches!(args.first(), Some(Datum::Bool(true)))),
        "current_schema" => {
            catalog.current_schemas(source.search_path(), false).first().map_or(Datum::Null, text)
        }
        "current_database" => text(source.database()),
        "current_user" => text(role_name(source, source.roles().current)),
        "session_user" => text(role_name(source, source.roles().session)),
        "pg_get_viewdef" | "pg_get_viewdef_ext" | "pg_get_viewdef_wrap" => {
            // Who says how wide lines may be wants them pretty.
            let pretty = name == "pg_get_viewdef_wrap" || matches!(args.get(1), Some(Datum::Bool(true)));
            match catalog.table_by_oid(first) {
                Some(table) => view_definition(source, &table, pretty),
                None => Datum::Null,
            }
        }
        "pg_get_viewdef_name" | "pg_get_viewdef_name_ext" => match named_relation(source, text_at(args, 0)) {
            Ok(Relation::Table(table)) => {
                view_definition(source, &table, matches!(args.get(1), Some(Datum::Bool(true))))
            }
            Ok(_) => Datum::Null,
            Err(error) => return Some(Err(error)),
        },
        "pg_get_triggerdef" => optional(trigger_definition(source, first, false)),
        "pg_get_triggerdef_ext" => {
            let pretty = matches!(args.get(1), Some(Datum::Bool(true)));
            optional(trigger_definition(source, first, pretty))
        }
        "pg_get_function_sqlbody" => optional(routine().and_then(|routine| source.shown_body(&routine))),
        "pg_available_extensions" => array(Oid::RECORD, super::reference::available_extensions()),
        "pg_available_extension_versions" => array(Oid::RECORD, super::reference::extension_versions()),
        // No rules and statistics exist.
        "pg_get_ruledef"
        | "pg_get_ruledef_ext"
        | "pg_get_statisticsobjdef"
        | "pg_get_statisticsobjdef_columns"
        | "pg_get_replica_identity_index" => Datum::Null,
        "pg_describe_object" => {
            return Some(object_address::describe(source, first, oid_at(args, 1), integer_at(args, 2)));
        }
        "pg_identify_object" => {
            return Some(object_address::identify(source, first, oid_at(args, 1), integer_at(args, 2)));
        }
        "pg_indexam_has_property" => index_property::of_method(first, text_at(args, 1)),
        "pg_index_has_property" => index_property::of_index(source, first, text_at(args, 1)),
        "pg_index_column_has_property" => {
            index_property::of_column(source, first, integer_at(args, 1), text_at(args, 2))
        }
        "pg_relation_filepath" => match catalog.relation_by_oid(first) {
            Some(relation) if has_file(&relation) => {
                text(format!("base/{}/{}", catalog.database_oid(), relation.oid().0))
            }
            _ => Datum::Null,
        },
        "pg_get_partkeydef" => inheritance::key_definition(source, first),
        "pg_get_partition_constraintdef" => inheritance::constraint_of(source, first),
        "pg_partition_root" => inheritance::root(catalog, first),
        "pg_partition_ancestors" => inheritance::ancestors(catalog, first),
        "pg_partition_tree" => inheritance::tree(catalog, first),
        "pg_relation_is_publishable" => Datum::Bool(false),
        "row_security_active" => policies::is_active(source, first),
        "row_security_active_name" => match named_relation(source, text_at(args, 0)) {
            Ok(relation) => policies::is_active(source, relation.oid()),
            Err(error) => return Some(Err(error)),
        },
        "pg_relation_filenode" => match catalog.relation_by_oid(first) {
            Some(relation) if has_file(&relation) => Datum::Oid(relation.oid()),
            _ => Datum::Null,
        },
        "pg_trigger_depth" => Datum::Int4(0),
        "pg_sequence_last_value" => source.sequence_last_value(first).map_or(Datum::Null, Datum::Int8),
        // No function that statements find: definitions ask.
        "archipel_sequence_position" => source.sequence_position(first).map_or(Datum::Null, Datum::Int8),
        "pg_sequence_parameters" => match catalog.sequence_by_oid(first) {
            Some(s) => Datum::Record(
                [
                    Datum::Int8(s.start),
                    Datum::Int8(s.min_value),
                    Datum::Int8(s.max_value),
                    Datum::Int8(s.increment),
                    Datum::Bool(s.cycle),
                    Datum::Int8(s.cache),
                    Datum::Oid(s.ty.oid),
                ]
                .into(),
            ),
            None => Datum::Null,
        },
        _ => return None,
    }))
}
