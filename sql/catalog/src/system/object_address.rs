//! What an object is, by the number of its catalog and its own: `pg_identify_object`, `pg_describe_object`
//! (PostgreSQL's objectaddress.c).

use super::SystemSource;
use super::definition::bare_type_text;
use super::reg_types::procedure_name;
use super::relation::index_view::default_oid;
use super::relation::relation_name::relation_name;
use super::relation::relations::kind_of;
use super::shape::text;
use crate::catalog::{Relation, Table};
use crate::datum::Datum;
use crate::error::{Result, SqlError};
use crate::function;
use crate::type_table::{BuiltIn, TypeNames, element_of, has_words, type_info};
use crate::types::Oid;

/// What is told of an object.
#[derive(Default)]
struct Identity {
    kind: String,
    schema: Option<String>,
    name: Option<String>,
    identity: Option<String>,
    /// As a message calls it.
    described: Option<String>,
}

impl Identity {
    /// One that is not there.
    fn missing(kind: &str) -> Identity {
        Identity { kind: kind.to_owned(), ..Identity::default() }
    }
}

/// `pg_identify_object(class, object, part)`.
pub(super) fn identify(source: &dyn SystemSource, class: Oid, object: Oid, part: i32) -> Result<Datum> {
    let found = identity(source, class, object, part)?;
    let value = |value: Option<String>| value.map_or(Datum::Null, |value| text(&value));
    let fields = [text(&found.kind), value(found.schema), value(found.name), value(found.identity)];
    Ok(Datum::Record(fields.to_vec().into()))
}

/// `pg_describe_object(class, object, part)`.
pub(super) fn describe(source: &dyn SystemSource, class: Oid, object: Oid, part: i32) -> Result<Datum> {
    if class.0 == 0 && object.0 == 0 {
        return Ok(Datum::Null);
    }
    let described = identity(source, class, object, part)?.described;
    Ok(described.map_or(Datum::Null, |described| text(&described)))
}

fn identity(source: &dyn SystemSource, class: Oid, object: Oid, part: i32) -> Result<Identity> {
    let catalog = source.catalog();
    Ok(match class.0 {
        1259 => relation(source, object, part),
        1255 => routine(source, object),
        1247 => data_type(source, object),
        2606 => constraint(source, object),
        2604 => default_value(source, object),
        2615 => named(source, catalog.schema_by_oid(object).map(|schema| schema.name.clone()), "schema"),
        1260 => named(source, catalog.role_by_oid(object).map(|role| role.name.clone()), "role"),
        1262 => named(source, catalog.name_of_database(object).map(str::to_owned), "database"),
        // Whether there is such an object no catalog knows.
        2613 => large_object(object),
        2620 => match catalog.trigger_by_oid(object) {
            None => Identity::missing("trigger"),
            Some((table, place)) => {
                let name = &table.triggers[place].name;
                Identity { kind: "trigger".to_owned(), ..on_table(source, &table, "trigger", name) }
            }
        },
        3256 => match catalog.policy_by_oid(object) {
            None => Identity::missing("policy"),
            Some((table, place)) => {
                let name = &table.row_security.policies[place].name;
                Identity { kind: "policy".to_owned(), ..on_table(source, &table, "policy", name) }
            }
        },
        826 => default_access(source, object),
        6243 => {
            let known = catalog.parameters().numbered(object);
            named(source, known.map(|known| known.name.clone()), "parameter")
        }
        other => return Err(SqlError::internal(format!("unrecognized object class: {other}"))),
    })
}

/// What new objects begin with.
fn default_access(source: &dyn SystemSource, object: Oid) -> Identity {
    let catalog = source.catalog();
    let Some(entry) = catalog.default_access_all().find(|entry| entry.oid == object) else {
        return Identity::missing("default acl");
    };
    let role = catalog.role_by_oid(entry.role).map_or_else(String::new, |role| role.name.clone());
    let schema =
        entry.schema.and_then(|schema| catalog.schema_by_oid(schema)).map(|schema| schema.name.clone());
    let quote = |name: &str| source.quoting().name(name);
    let place = schema.as_deref().map_or_else(String::new, |schema| format!(" in schema {}", quote(schema)));
    let identity = format!("for role {}{place} on {}", quote(&role), entry.words().0);
    Identity {
        kind: "default acl".to_owned(),
        schema: None,
        name: None,
        identity: Some(identity),
        described: Some(entry.describe(&role, schema.as_deref())),
    }
}

/// A large object, which has only its number.
fn large_object(object: Oid) -> Identity {
    Identity {
        kind: "large object".to_owned(),
        schema: None,
        name: None,
        identity: Some(object.to_string()),
        described: Some(format!("large object {object}")),
    }
}

/// An object in no schema.
fn named(source: &dyn SystemSource, name: Option<String>, kind: &str) -> Identity {
    let Some(name) = name else { return Identity::missing(kind) };
    let quoted = source.quoting().name(&name);
    Identity {
        kind: kind.to_owned(),
        schema: None,
        name: Some(quoted.clone()),
        identity: Some(quoted),
        described: Some(format!("{kind} {name}")),
    }
}

/// What a relation is called, in the words of its kind.
fn kind_word(letter: u8) -> &'static str {
    match letter {
        b'v' => "view",
        b'c' => "composite type",
        b'i' => "index",
        b'S' => "sequence",
        _ => "table",
    }
}

fn relation(source: &dyn SystemSource, object: Oid, part: i32) -> Identity {
    let catalog = source.catalog();
    let composite = || catalog.table_of_row_type(Oid::row_type_of(object));
    let found = catalog.relation_by_oid(object);
    let table = match &found {
        Some(Relation::Table(table)) => Some(table.clone()),
        Some(_) => None,
        None => composite(),
    };
    let (kind, schema, name) = match (&found, &table) {
        (_, Some(table)) => (kind_word(kind_of(table)), table.schema.clone(), table.name.clone()),
        (Some(Relation::Sequence(sequence)), _) => {
            ("sequence", sequence.schema.clone(), sequence.name.clone())
        }
        (Some(index), _) => ("index", index.schema().to_owned(), index.name().to_owned()),
        (None, None) => return Identity::missing("relation"),
    };
    let identity = source.quoting().qualified(&schema, &name);
    let described = relation_name(source, object).map(|name| format!("{kind} {name}"));
    let whole = Identity {
        kind: kind.to_owned(),
        schema: Some(source.quoting().name(&schema)),
        name: Some(source.quoting().name(&name)),
        identity: Some(identity.clone()),
        described: described.clone(),
    };
    if part == 0 {
        return whole;
    }
    let place = usize::try_from(part - 1).ok();
    let column = table.as_ref().zip(place).and_then(|(table, place)| table.columns.get(place));
    let kind = format!("{kind} column");
    match column {
        None => Identity::missing(&kind),
        Some(column) => Identity {
            kind,
            identity: Some(format!("{identity}.{}", source.quoting().name(&column.name))),
            described: described.map(|table| format!("column {} of {table}", column.name)),
            ..whole
        },
    }
}

/// A type with its schema, but for those that the grammar has words for.
fn qualified_type(source: &dyn SystemSource, ty: Oid) -> String {
    if let Some(element) = element_of(ty) {
        return format!("{}[]", qualified_type(source, element));
    }
    let Some(info) = type_info(ty) else {
        return match schema_and_type(source, ty) {
            Some((schema, name, false)) => source.quoting().qualified(&schema, &name),
            Some((schema, name, true)) => format!("{}[]", source.quoting().qualified(&schema, &name)),
            None => "???".to_owned(),
        };
    };
    if has_words(ty) { BuiltIn.type_name(ty) } else { source.quoting().qualified("pg_catalog", info.name) }
}

/// Schema and name of a type that somebody made, and whether it is the array of that.
fn schema_and_type(source: &dyn SystemSource, ty: Oid) -> Option<(String, String, bool)> {
    let catalog = source.catalog();
    if let Some(known) = catalog.user_type_of(ty) {
        return Some((known.schema.clone(), known.name.clone(), known.oid != ty));
    }
    let array = ty.element_kind().is_some();
    let row = if array { Oid(ty.0 - 1) } else { ty };
    let table = catalog.table_of_row_type(row)?;
    Some((table.schema.clone(), table.name.clone(), array))
}

fn data_type(source: &dyn SystemSource, ty: Oid) -> Identity {
    let (schema, name) = match (type_info(ty), schema_and_type(source, ty)) {
        (Some(info), _) => ("pg_catalog".to_owned(), info.name.to_owned()),
        (None, Some((schema, name, is_array))) => (schema, if is_array { format!("_{name}") } else { name }),
        (None, None) => return Identity::missing("type"),
    };
    Identity {
        kind: "type".to_owned(),
        schema: Some(source.quoting().name(&schema)),
        name: Some(source.quoting().name(&name)),
        identity: Some(qualified_type(source, ty)),
        described: Some(format!("type {}", bare_type_text(source, ty))),
    }
}

fn routine(source: &dyn SystemSource, object: Oid) -> Identity {
    let built_in =
        super::routine::builtin::args(object).zip(super::routine::function_name::built_in_name(object));
    let (kind, schema, name, args) = match source.catalog().routine_by_oid(object) {
        Some(routine) => {
            let args: Vec<Oid> = routine.input_args().map(|arg| arg.declared().oid).collect();
            (routine.kind.as_str(), routine.schema.clone(), routine.name.clone(), args)
        }
        None => match built_in {
            Some((args, name)) => {
                let is_aggregate =
                    function::lookup_aggregates(name).iter().any(|aggregate| aggregate.oid == object);
                let kind = if is_aggregate { "aggregate" } else { "function" };
                (kind, "pg_catalog".to_owned(), name.to_owned(), args.to_vec())
            }
            None => return Identity::missing("routine"),
        },
    };
    let types: Vec<String> = args.iter().map(|ty| qualified_type(source, *ty)).collect();
    Identity {
        kind: kind.to_owned(),
        schema: Some(source.quoting().name(&schema)),
        name: None,
        identity: Some(format!("{}({})", source.quoting().qualified(&schema, &name), types.join(","))),
        // Whatever is called is a function here.
        described: procedure_name(source, object).map(|shown| format!("function {shown}")),
    }
}

/// A part of a table with a name of its own there.
fn on_table(source: &dyn SystemSource, table: &Table, kind: &str, name: &str) -> Identity {
    let relation = source.quoting().qualified(&table.schema, &table.name);
    let of_kind = kind_word(kind_of(table));
    Identity {
        identity: Some(format!("{} on {relation}", source.quoting().name(name))),
        described: relation_name(source, table.oid)
            .map(|shown| format!("{kind} {name} on {of_kind} {shown}")),
        ..Identity::default()
    }
}

fn constraint(source: &dyn SystemSource, object: Oid) -> Identity {
    if let Some(table) = source.catalog().table_of_part(object) {
        let keys = table.primary_key.iter().map(|key| (key.constraint_oid(), &key.name));
        let indexes = table.indexes.iter().filter_map(|index| Some((index.constraint_oid()?, &index.name)));
        let checks = table.checks.iter().map(|check| (check.oid, &check.name));
        let foreign = table.foreign_keys.iter().map(|key| (key.oid, &key.name));
        let mut all = keys.chain(indexes).chain(checks).chain(foreign);
        if let Some((_, name)) = all.find(|(oid, _)| *oid == object) {
            return Identity {
                kind: "table constraint".to_owned(),
                schema: Some(source.quoting().name(&table.schema)),
                ..on_table(source, table, "constraint", name)
            };
        }
    }
    if let Some(ty) = source.catalog().type_of_part(object) {
        let mut checks = ty.domain.iter().flat_map(|domain| &domain.checks);
        if let Some(check) = checks.find(|check| check.oid == object) {
            let domain = source.quoting().qualified(&ty.schema, &ty.name);
            return Identity {
                kind: "domain constraint".to_owned(),
                schema: Some(source.quoting().name(&ty.schema)),
                name: None,
                identity: Some(format!("{} on {domain}", source.quoting().name(&check.name))),
                described: Some(format!("constraint {}", check.name)),
            };
        }
    }
    Identity::missing("constraint")
}

fn default_value(source: &dyn SystemSource, object: Oid) -> Identity {
    for table in source.catalog().tables() {
        let is_it = |place: &usize| default_oid(table.oid, place + 1) == object;
        let Some(place) = (0..table.columns.len()).find(is_it) else { continue };
        let column = &table.columns[place];
        let relation = source.quoting().qualified(&table.schema, &table.name);
        let of_kind = kind_word(kind_of(table));
        return Identity {
            kind: "default value".to_owned(),
            identity: Some(format!("for {relation}.{}", source.quoting().name(&column.name))),
            described: relation_name(source, table.oid)
                .map(|shown| format!("default value for column {} of {of_kind} {shown}", column.name)),
            ..Identity::default()
        };
    }
    Identity::missing("default value")
}
