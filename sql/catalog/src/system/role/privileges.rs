//! Functions about rights: has_table_privilege and its kin, pg_has_role.

use crate::catalog::access::EVERYBODY;
use crate::catalog::access::authority::undefined_role;
use crate::catalog::names::{undefined_column, undefined_schema};
use crate::catalog::routine::language_object::LANGUAGES;
use crate::catalog::{Authority, ObjectClass, Privileges, Relation, SUPERUSER, SYSTEM_COLUMNS};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::system::SystemSource;
use crate::system::reg_types::{procedure_oid, relation_argument};
use crate::type_table::{element_of, type_info};
use crate::types::Oid;

/// Answers the function if it is one of this file's.
pub(in crate::system) fn call(
    name: &str,
    args: &[Datum],
    source: &dyn SystemSource,
) -> Option<Result<Datum>> {
    if name.starts_with("pg_has_role_") {
        return Some(has_role(args, source));
    }
    let (kind, _) = name.strip_prefix("has_")?.split_once("_privilege")?;
    // They are strict.
    match args.iter().any(Datum::is_null) {
        true => Some(Ok(Datum::Null)),
        false => Some(has_privilege(kind, args, source)),
    }
}

/// A role by its number or its name, which is not PUBLIC's.
fn role_argument(source: &dyn SystemSource, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Oid(oid) => Ok(*oid),
        Datum::Text(name) => {
            source.catalog().role(name).map(|role| role.oid).ok_or_else(|| undefined_role(name))
        }
        _ => Ok(source.roles().current),
    }
}

/// The role a function asks about: PUBLIC, too (get_role_oid_or_public).
fn grantee_argument(source: &dyn SystemSource, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Text(name) if *name == "public" => Ok(EVERYBODY),
        other => role_argument(source, other),
    }
}

/// The rights a text names, each with whether its grant option is meant: one of them will do.
fn asked(value: &Datum, valid: Privileges) -> Result<Vec<(Privileges, bool)>> {
    let Datum::Text(list) = value else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for part in list.split(',') {
        let word = part.trim();
        let upper = word.to_ascii_uppercase();
        let (name, option) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(name) => (name, true),
            None => (upper.as_str(), false),
        };
        // A right that was, once.
        if name == "RULE" && valid.contains(Privileges::SELECT | Privileges::TRIGGER) {
            continue;
        }
        let privilege = Privileges::parse(name).filter(|privilege| valid.contains(*privilege));
        let privilege = privilege.ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized privilege type: \"{word}\""),
            )
        })?;
        found.push((privilege, option));
    }
    Ok(found)
}

/// What a function asks about.
enum Asked {
    /// NULL: there is no such object.
    Nothing,
    Object(Oid, ObjectClass),
    /// An index, which is its table's owner's (the number is the table's).
    Index(Oid),
    /// What is there from the beginning, for everybody.
    BuiltIn(ObjectClass),
    /// The superuser's alone.
    OfSuperuser,
}

fn has_privilege(kind: &str, args: &[Datum], source: &dyn SystemSource) -> Result<Datum> {
    let of_column = kind == "column";
    let with_role = args.len() > if of_column { 3 } else { 2 };
    let role = if with_role { grantee_argument(source, &args[0])? } else { source.roles().current };
    let (object, wanted) = (&args[usize::from(with_role)], &args[args.len() - 1]);
    let rights = Authority { catalog: source.catalog(), role };
    if of_column {
        return has_column(object, &args[usize::from(with_role) + 1], wanted, source, &rights);
    }
    let valid = match kind {
        "table" => ObjectClass::Relation.all(),
        "any_column" => Privileges::OF_COLUMNS,
        "sequence" => ObjectClass::Sequence.all(),
        "schema" => ObjectClass::Schema.all(),
        "function" => ObjectClass::Routine.all(),
        "database" => ObjectClass::Database.all(),
        "parameter" => ObjectClass::Parameter.all(),
        "tablespace" => Privileges::CREATE,
        // Types, languages, foreign servers and wrappers.
        _ => Privileges::USAGE,
    };
    let of_name = matches!(object, Datum::Text(_));
    // Whoever asks by number is told of a wrong right before there is no such object.
    let early = if of_name { None } else { Some(asked(wanted, valid)?) };
    let found = object_argument(kind, object, source)?;
    let asked = match early {
        Some(asked) => asked,
        None => asked(wanted, valid)?,
    };
    let (held, options) = match found {
        Asked::Nothing => return Ok(Datum::Null),
        Asked::Object(object, class) => {
            (rights.privileges(object, class), rights.grant_options(object, class))
        }
        Asked::Index(table) if rights.owns(table) => (Privileges(u16::MAX), Privileges(u16::MAX)),
        Asked::OfSuperuser if rights.acts_as(SUPERUSER) => (Privileges(u16::MAX), Privileges(u16::MAX)),
        Asked::Index(_) | Asked::OfSuperuser => (Privileges::NONE, Privileges::NONE),
        Asked::BuiltIn(_) if rights.is_superuser() => (Privileges(u16::MAX), Privileges(u16::MAX)),
        Asked::BuiltIn(class) => (class.all(), Privileges::NONE),
    };
    let mut has = |(privilege, option): &(Privileges, bool)| {
        let whole = if *option { options } else { held };
        let Asked::Object(object, _) = found else { return whole.contains(*privilege) };
        whole.contains(*privilege)
            || kind == "any_column" && has_some_column(object, *privilege, *option, &rights)
    };
    Ok(Datum::Bool(asked.iter().any(&mut has)))
}

/// Whether a right is held on one column of a relation.
fn has_some_column(object: Oid, privilege: Privileges, option: bool, rights: &Authority<'_>) -> bool {
    let columns = rights.catalog.access(object).map(|access| access.columns.clone()).unwrap_or_default();
    columns.iter().any(|(column, _)| {
        let held = match option {
            true => rights.column_options(object, *column),
            false => rights.column_privileges(object, *column),
        };
        held.contains(privilege)
    })
}

/// The object that a function names.
fn object_argument(kind: &str, value: &Datum, source: &dyn SystemSource) -> Result<Asked> {
    let found = |oid: Option<Oid>, class| oid.map_or(Asked::Nothing, |oid| Asked::Object(oid, class));
    let catalog = source.catalog();
    Ok(match kind {
        "table" | "sequence" | "any_column" => match relation_argument(source, value)? {
            None => Asked::Nothing,
            Some(Relation::Sequence(sequence)) => Asked::Object(sequence.oid, ObjectClass::Sequence),
            Some(relation) if kind == "sequence" => {
                let message = format!("\"{}\" is not a sequence", relation.name());
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            Some(Relation::Table(table)) => Asked::Object(table.oid, ObjectClass::Relation),
            Some(Relation::Index(table, _) | Relation::PrimaryKey(table) | Relation::Nominal(table, _)) => {
                Asked::Index(table.oid)
            }
        },
        "schema" => found(schema_argument(source, value)?, ObjectClass::Schema),
        "database" => found(database_argument(source, value)?, ObjectClass::Database),
        "function" => match routine_argument(source, value)? {
            // What is built in is everybody's, as long as nobody says otherwise.
            Some(oid) if catalog.class_of(oid).is_none() && catalog.access(oid).is_none() => {
                Asked::BuiltIn(ObjectClass::Routine)
            }
            oid => found(oid, ObjectClass::Routine),
        },
        "type" => type_argument(source, value)?,
        "parameter" => match value {
            Datum::Text(name) => match catalog.parameters().named(name) {
                Some(known) => Asked::Object(known.oid, ObjectClass::Parameter),
                // Whether there is such a one or not.
                None => Asked::OfSuperuser,
            },
            _ => Asked::Nothing,
        },
        "language" => {
            let known = LANGUAGES.map(|language| (language.name, language.oid));
            let oid = fixed_argument("language", value, &known)?.map(|(_, oid)| oid);
            found(oid, ObjectClass::Language)
        }
        "tablespace" => match fixed_argument("tablespace", value, &TABLESPACES)? {
            Some(_) => Asked::OfSuperuser,
            None => Asked::Nothing,
        },
        "server" => fixed_argument("server", value, &[]).map(|_| Asked::Nothing)?,
        _ => fixed_argument("foreign-data wrapper", value, &[]).map(|_| Asked::Nothing)?,
    })
}

const TABLESPACES: [(&str, Oid); 2] = [("pg_default", Oid(1663)), ("pg_global", Oid(1664))];

/// One of those that nobody can make more of: 42704 for another name, `None` for another number.
fn fixed_argument<'n>(kind: &str, value: &Datum, known: &[(&'n str, Oid)]) -> Result<Option<(&'n str, Oid)>> {
    match value {
        Datum::Text(name) => match known.iter().find(|(known, _)| *name == *known) {
            Some(found) => Ok(Some(*found)),
            None => {
                let message = format!("{kind} \"{name}\" does not exist");
                Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
            }
        },
        Datum::Oid(oid) => Ok(known.iter().find(|(_, known)| known == oid).copied()),
        _ => Ok(None),
    }
}

fn has_column(
    relation: &Datum,
    column: &Datum,
    wanted: &Datum,
    source: &dyn SystemSource,
    rights: &Authority<'_>,
) -> Result<Datum> {
    let Some(relation) = relation_argument(source, relation)? else {
        return asked(wanted, Privileges::OF_COLUMNS).map(|_| Datum::Null);
    };
    let (Relation::Table(table), number) = (&relation, column_argument(&relation, column)?) else {
        return asked(wanted, Privileges::OF_COLUMNS).map(|_| Datum::Null);
    };
    let asked = asked(wanted, Privileges::OF_COLUMNS)?;
    let whole = (
        rights.privileges(table.oid, ObjectClass::Relation),
        rights.grant_options(table.oid, ObjectClass::Relation),
    );
    let (held, options) = match number {
        None => return Ok(Datum::Null),
        // The columns of the system are held with the table.
        Some(0) => whole,
        Some(number) => {
            let held = whole.0 | rights.column_privileges(table.oid, number);
            (held, whole.1 | rights.column_options(table.oid, number))
        }
    };
    let has = |(privilege, option): &(Privileges, bool)| {
        if *option { options.contains(*privilege) } else { held.contains(*privilege) }
    };
    Ok(Datum::Bool(asked.iter().any(has)))
}

/// The one-based number of a column, 0 for one of the system; `None` if a number is no column's.
fn column_argument(relation: &Relation, column: &Datum) -> Result<Option<u16>> {
    let Relation::Table(table) = relation else { return Ok(None) };
    match column {
        Datum::Text(name) if SYSTEM_COLUMNS.iter().any(|system| *name == *system) => Ok(Some(0)),
        Datum::Text(name) => {
            let place = table.column_index(name).ok_or_else(|| undefined_column(name, &table.name))?;
            Ok(Some(place + 1))
        }
        Datum::Int2(-6..=-1) => Ok(Some(0)),
        Datum::Int2(number) => {
            let number = u16::try_from(*number).ok();
            Ok(number.filter(|number| (1..=table.columns.len()).contains(&usize::from(*number))))
        }
        _ => Ok(None),
    }
}

fn schema_argument(source: &dyn SystemSource, value: &Datum) -> Result<Option<Oid>> {
    match value {
        Datum::Text(name) => {
            let schema = source.catalog().schema(name);
            schema.map(|schema| Some(schema.oid)).ok_or_else(|| undefined_schema(name))
        }
        Datum::Oid(oid) => Ok(source.catalog().schema_by_oid(*oid).map(|schema| schema.oid)),
        _ => Ok(None),
    }
}

fn routine_argument(source: &dyn SystemSource, value: &Datum) -> Result<Option<Oid>> {
    match value {
        Datum::Text(name) => procedure_oid(source, name).map(Some),
        Datum::Oid(oid) => {
            Ok(Some(*oid).filter(|oid| crate::system::reg_types::function_name(source, *oid).is_some()))
        }
        _ => Ok(None),
    }
}

/// A type, whose rights are those of its elements' if it is an array.
fn type_argument(source: &dyn SystemSource, value: &Datum) -> Result<Asked> {
    let oid = match value {
        Datum::Text(name) => crate::system::reg_types::type_oid(source, name)?,
        Datum::Oid(oid) => *oid,
        _ => return Ok(Asked::Nothing),
    };
    let catalog = source.catalog();
    if let Some(known) = catalog.user_type_of(oid) {
        return Ok(Asked::Object(known.oid, ObjectClass::Type));
    }
    let own = element_of(oid).unwrap_or(oid);
    if catalog.access(own).is_some() {
        return Ok(Asked::Object(own, ObjectClass::Type));
    }
    let is_there = type_info(own).is_some() || catalog.table_of_row_type(own).is_some();
    Ok(if is_there { Asked::BuiltIn(ObjectClass::Type) } else { Asked::Nothing })
}

fn database_argument(source: &dyn SystemSource, value: &Datum) -> Result<Option<Oid>> {
    match value {
        Datum::Text(name) => match source.catalog().database_named(name) {
            Some(database) => Ok(Some(database.oid)),
            None => {
                let message = format!("database \"{name}\" does not exist");
                Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message))
            }
        },
        Datum::Oid(oid) => Ok(Some(*oid).filter(|oid| source.catalog().name_of_database(*oid).is_some())),
        _ => Ok(None),
    }
}

/// pg_has_role: USAGE is having the rights, MEMBER is being able to SET ROLE.
fn has_role(args: &[Datum], source: &dyn SystemSource) -> Result<Datum> {
    let (member, role) = match args {
        [member, role, _] => (role_argument(source, member)?, role_argument(source, role)?),
        [role, _] => (source.roles().current, role_argument(source, role)?),
        _ => return Ok(Datum::Null),
    };
    let Some(Datum::Text(list)) = args.last() else { return Ok(Datum::Null) };
    let rights = Authority { catalog: source.catalog(), role: member };
    let administers = || {
        let of = source.catalog().roles_of(member, false);
        let admin = |of: Oid| {
            let of = source.catalog().role_by_oid(of);
            of.is_some_and(|of| of.membership(role).is_some_and(|membership| membership.admin))
        };
        rights.is_superuser() || of.into_iter().any(admin)
    };
    let mut has = false;
    for part in list.split(',') {
        let word = part.trim().to_ascii_uppercase();
        has |= match word.as_str() {
            "USAGE" => rights.acts_as(role),
            "MEMBER" => rights.belongs_to(role),
            "USAGE WITH GRANT OPTION"
            | "USAGE WITH ADMIN OPTION"
            | "MEMBER WITH GRANT OPTION"
            | "MEMBER WITH ADMIN OPTION" => administers(),
            _ => {
                let message = format!("unrecognized privilege type: \"{}\"", part.trim());
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        };
    }
    Ok(Datum::Bool(has))
}
