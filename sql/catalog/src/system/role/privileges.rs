//! Functions about rights: has_table_privilege and its kin, pg_has_role, acldefault, aclexplode.

use super::roles::{self, ACLITEM};
use crate::catalog::access::EVERYBODY;
use crate::catalog::access::acl::AclText;
use crate::catalog::access::authority::undefined_role;
use crate::catalog::names::{undefined_column, undefined_schema};
use crate::catalog::{AclItem, Authority, ObjectClass, Privileges, Relation};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::system::SystemSource;
use crate::system::reg_types::{procedure_oid, relation_argument};
use crate::system::shape::text;
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
    if let Some(kind) = name.strip_prefix("has_").and_then(|rest| rest.split_once("_privilege")) {
        return Some(has_privilege(kind.0, args, source));
    }
    match name {
        "acldefault_sql" => Some(default_list(args, source)),
        "aclexplode" => Some(exploded(args, source)),
        _ => None,
    }
}

/// The role a function asks about.
fn role_argument(source: &dyn SystemSource, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Oid(oid) => Ok(*oid),
        Datum::Text(name) if *name == "public" => Ok(EVERYBODY),
        Datum::Text(name) => {
            source.catalog().role(name).map(|role| role.oid).ok_or_else(|| undefined_role(name))
        }
        _ => Ok(source.roles().current),
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
            Some(name) => (name.trim_end(), true),
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

fn has_privilege(kind: &str, args: &[Datum], source: &dyn SystemSource) -> Result<Datum> {
    let of_column = kind == "column";
    let with_role = args.len() > if of_column { 3 } else { 2 };
    let role = if with_role { role_argument(source, &args[0])? } else { source.roles().current };
    let object = &args[usize::from(with_role)];
    let wanted = &args[args.len() - 1];
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let rights = Authority { catalog: source.catalog(), role };
    let (object, class) = match kind {
        "table" | "sequence" | "column" | "any_column" => {
            let Some(relation) = relation_argument(source, object)? else { return Ok(Datum::Null) };
            let class = match &relation {
                Relation::Sequence(_) => ObjectClass::Sequence,
                _ if kind == "sequence" => {
                    let message = format!("\"{}\" is not a sequence", relation.name());
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
                _ => ObjectClass::Relation,
            };
            if of_column {
                return has_column(&relation, &args[usize::from(with_role) + 1], wanted, &rights);
            }
            (relation.oid(), class)
        }
        "schema" => (schema_argument(source, object)?, ObjectClass::Schema),
        "function" => (routine_argument(source, object)?, ObjectClass::Routine),
        "database" => (database_argument(source, object)?, ObjectClass::Database),
        "type" => (type_argument(source, object)?, ObjectClass::Type),
        "language" => (Oid(1), ObjectClass::Language),
        _ => {
            let superuser = rights.is_superuser();
            asked(wanted, Privileges::CREATE)?;
            return Ok(Datum::Bool(superuser));
        }
    };
    let valid = match kind {
        "table" => ObjectClass::Relation.all(),
        "any_column" => Privileges::OF_COLUMNS,
        _ => class.all(),
    };
    let asked = asked(wanted, valid)?;
    if object.0 == 0 {
        return Ok(Datum::Null);
    }
    // What is built in is everybody's.
    let built_in = matches!(class, ObjectClass::Routine | ObjectClass::Type | ObjectClass::Language)
        && rights.catalog.class_of(object).is_none()
        && rights.catalog.access(object).is_none();
    let (held, options) = if built_in {
        (class.all(), if rights.is_superuser() { class.all() } else { Privileges::NONE })
    } else {
        (rights.privileges(object, class), rights.grant_options(object, class))
    };
    let mut has = |(privilege, option): &(Privileges, bool)| {
        let whole = if *option { options } else { held };
        if whole.contains(*privilege) {
            return true;
        }
        let columns = rights.catalog.access(object).map(|access| access.columns.clone()).unwrap_or_default();
        kind == "any_column"
            && columns.iter().any(|(column, _)| {
                let of_column = if *option {
                    rights.column_options(object, *column)
                } else {
                    rights.column_privileges(object, *column)
                };
                of_column.contains(*privilege)
            })
    };
    Ok(Datum::Bool(asked.iter().any(&mut has)))
}

fn has_column(relation: &Relation, column: &Datum, wanted: &Datum, rights: &Authority<'_>) -> Result<Datum> {
    let asked = asked(wanted, Privileges::OF_COLUMNS)?;
    let Relation::Table(table) = relation else { return Ok(Datum::Null) };
    let number = match column {
        Datum::Text(name) => table.column_index(name).ok_or_else(|| undefined_column(name, &table.name))? + 1,
        Datum::Int2(number) => match u16::try_from(*number) {
            Ok(number) if (1..=table.columns.len()).contains(&usize::from(number)) => number,
            _ => return Ok(Datum::Null),
        },
        _ => return Ok(Datum::Null),
    };
    let held =
        rights.privileges(table.oid, ObjectClass::Relation) | rights.column_privileges(table.oid, number);
    let options =
        rights.grant_options(table.oid, ObjectClass::Relation) | rights.column_options(table.oid, number);
    let has = |(privilege, option): &(Privileges, bool)| {
        if *option { options.contains(*privilege) } else { held.contains(*privilege) }
    };
    Ok(Datum::Bool(asked.iter().any(has)))
}

fn schema_argument(source: &dyn SystemSource, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Text(name) => {
            source.catalog().schema(name).map(|schema| schema.oid).ok_or_else(|| undefined_schema(name))
        }
        Datum::Oid(oid) => Ok(source.catalog().schema_by_oid(*oid).map_or(Oid(0), |schema| schema.oid)),
        _ => Ok(Oid(0)),
    }
}

fn routine_argument(source: &dyn SystemSource, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Text(name) => procedure_oid(source, name),
        Datum::Oid(oid) if crate::system::reg_types::function_name(source, *oid).is_some() => Ok(*oid),
        _ => Ok(Oid(0)),
    }
}

fn type_argument(source: &dyn SystemSource, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Text(name) => crate::system::reg_types::type_oid(source, name),
        Datum::Oid(oid) => Ok(*oid),
        _ => Ok(Oid(0)),
    }
}

fn database_argument(source: &dyn SystemSource, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Text(name) => match source.catalog().database_named(name) {
            Some(database) => Ok(database.oid),
            None => {
                let message = format!("database \"{name}\" does not exist");
                Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message))
            }
        },
        Datum::Oid(oid) if source.catalog().name_of_database(*oid).is_some() => Ok(*oid),
        _ => Ok(Oid(0)),
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

/// acldefault(kind, owner).
fn default_list(args: &[Datum], source: &dyn SystemSource) -> Result<Datum> {
    let [Datum::Text(kind), Datum::Oid(owner)] = args else { return Ok(Datum::Null) };
    let letter = kind.chars().next().unwrap_or('\0');
    match ObjectClass::of_letter(letter) {
        Some(class) => Ok(roles::acl(source, &class.default_acl(*owner))),
        // Kinds of object that do not exist here have rights of their own.
        None => {
            let of_owner = match letter {
                'S' | 'F' => "U",
                't' => "C",
                'p' => "sA",
                _ => return Ok(roles::acl(source, &[])),
            };
            let nothing = AclItem::new(*owner, *owner, Privileges::NONE);
            let item = AclText { item: &nothing, catalog: source.catalog() }.to_string();
            let item = item.replacen("=/", &format!("={of_owner}/"), 1);
            Ok(crate::function::array_of_values(ACLITEM, vec![text(item)]))
        }
    }
}

/// aclexplode: each right of each item; the rows as an array of records.
fn exploded(args: &[Datum], source: &dyn SystemSource) -> Result<Datum> {
    let Some(Datum::Array(items)) = args.first() else { return Ok(Datum::Null) };
    let mut rows = Vec::new();
    for item in &items.values {
        let Datum::Text(item) = item else { continue };
        let wrong = || {
            let message = format!("invalid input syntax for type aclitem: \"{item}\"");
            SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
        };
        let (grantee, rest) = split_name(item).ok_or_else(wrong)?;
        let rest = rest.strip_prefix('=').ok_or_else(wrong)?;
        let (letters, grantor) = rest.split_once('/').ok_or_else(wrong)?;
        let (grantor, _) = split_name(grantor).ok_or_else(wrong)?;
        let oid = |name: &str| match source.catalog().role(name) {
            Some(role) => role.oid,
            None => name.parse().map_or(EVERYBODY, Oid),
        };
        let mut letters = letters.chars().peekable();
        while let Some(letter) = letters.next() {
            let option = letters.next_if_eq(&'*').is_some();
            let known = Privileges::NAMES.iter().find(|(_, known, _)| *known == letter);
            let (_, _, name) = known.ok_or_else(wrong)?;
            rows.push(Datum::Record(
                [Datum::Oid(oid(&grantor)), Datum::Oid(oid(&grantee)), text(name), Datum::Bool(option)]
                    .into(),
            ));
        }
    }
    Ok(crate::function::array_of_values(ACLITEM, rows))
}

/// A name, quoted or not, and what follows.
fn split_name(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(['=', '/']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, rest)),
        }
    }
}
