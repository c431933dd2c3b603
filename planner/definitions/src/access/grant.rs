//! GRANT and REVOKE on objects.

use archipel_sql::ast::{
    Grant, GrantObjects, GrantedPrivilege, QualifiedName, RoleName, RoutineSignature, RoutineWord,
};
use archipel_sql::catalog::access::role_dependency::class_of_built_in;
use archipel_sql::catalog::access::{AclChange, AclItem, EVERYBODY};
use archipel_sql::catalog::names::{undefined_column, undefined_schema};
use archipel_sql::catalog::routine::language_object::language_named;
use archipel_sql::catalog::{
    Access, DefaultAccess, Object, ObjectClass, ObjectKind, ParameterAccess, Privileges, Relation,
    RoutineKind, SUPERUSER,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{TypeInfo, type_by_name};
use archipel_sql::types::Oid;

use crate::function::routine;
use crate::work::Work;

/// invalid_grant_operation.
pub(super) const INVALID_GRANT: SqlState = SqlState(*b"0LP01");
/// A warning: fewer rights were granted than named.
const NOT_GRANTED: SqlState = SqlState(*b"01007");
const NOT_REVOKED: SqlState = SqlState(*b"01006");

/// An object of a GRANT.
struct Target {
    object: Oid,
    class: ObjectClass,
    /// How the object is called in warnings.
    name: String,
}

/// The rights a list names, all of which must exist for the class of object.
pub(super) fn whole(list: &[GrantedPrivilege], class: ObjectClass, word: &str) -> Result<Privileges> {
    let mut all = Privileges::NONE;
    for privilege in list {
        if !privilege.columns.is_empty() {
            let message = "column privileges are only valid for relations";
            return Err(SqlError::new(INVALID_GRANT, message));
        }
        all |= named(privilege.name.as_deref(), class.all(), class.all(), word)?;
    }
    Ok(all)
}

/// A right by its name; `all` stands for ALL PRIVILEGES.
fn named(name: Option<&str>, valid: Privileges, all: Privileges, word: &str) -> Result<Privileges> {
    let Some(name) = name else { return Ok(all) };
    let found = Privileges::parse(name).ok_or_else(|| {
        SqlError::new(SqlState::SYNTAX_ERROR, format!("unrecognized privilege type \"{name}\""))
    })?;
    if valid.contains(found) {
        return Ok(found);
    }
    let message = format!("invalid privilege type {} for {word}", name.to_uppercase());
    Err(SqlError::new(INVALID_GRANT, message))
}

/// The oids of grantees; PUBLIC cannot pass anything on.
pub(super) fn grantees(names: &[RoleName], with_option: bool, work: &Work<'_>) -> Result<Vec<Oid>> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        found.push(match name {
            RoleName::Public if with_option => {
                let message = "grant options can only be granted to roles";
                return Err(SqlError::new(INVALID_GRANT, message));
            }
            RoleName::Public => EVERYBODY,
            name => work.role(name)?,
        });
    }
    Ok(found)
}

pub(crate) fn grant(grant: &Grant, work: &mut Work<'_>) -> Result<()> {
    if let Some(by) = &grant.granted_by
        && work.role(by)? != work.env.roles.current
    {
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "grantor must be current user"));
    }
    let grantees = grantees(&grant.grantees, grant.grant_option && !grant.revoke, work)?;
    let (class, word) = match &grant.objects {
        GrantObjects::Tables(_) => (ObjectClass::Relation, "relation"),
        GrantObjects::Sequences(_) => (ObjectClass::Sequence, "sequence"),
        GrantObjects::Schemas(_) => (ObjectClass::Schema, "schema"),
        GrantObjects::Databases(_) => (ObjectClass::Database, "database"),
        GrantObjects::Types(_) => (ObjectClass::Type, "type"),
        GrantObjects::Domains(_) => (ObjectClass::Type, "domain"),
        GrantObjects::Routines(word, _) => (ObjectClass::Routine, word.as_str()),
        GrantObjects::AllInSchema(word, _) => match word.as_str() {
            "tables" => (ObjectClass::Relation, "relation"),
            "sequences" => (ObjectClass::Sequence, "sequence"),
            "procedures" => (ObjectClass::Routine, "procedure"),
            "routines" => (ObjectClass::Routine, "routine"),
            _ => (ObjectClass::Routine, "function"),
        },
        GrantObjects::Languages(_) => (ObjectClass::Language, "language"),
        GrantObjects::Parameters(_) => (ObjectClass::Parameter, "parameter"),
        GrantObjects::LargeObjects(_) => return Err(SqlError::internal("a large object is in no catalog")),
    };
    let may_be_sequence = matches!(grant.objects, GrantObjects::Tables(_));
    let (of_columns, of_whole): (Vec<_>, Vec<_>) =
        grant.privileges.iter().partition(|privilege| !privilege.columns.is_empty());
    if !of_columns.is_empty() && class != ObjectClass::Relation {
        let message = "column privileges are only valid for relations";
        return Err(SqlError::new(INVALID_GRANT, message));
    }
    let mut privileges = Privileges::NONE;
    let mut everything = false;
    for privilege in &of_whole {
        everything |= privilege.name.is_none();
        let valid = if may_be_sequence { class.all() | ObjectClass::Sequence.all() } else { class.all() };
        privileges |= named(privilege.name.as_deref(), valid, class.all(), word)?;
    }
    if let (GrantObjects::Parameters(names), false) = (&grant.objects, grant.revoke) {
        note_parameters(names, work);
    }
    for target in targets(&grant.objects, class, work)? {
        let mut access = work.catalog.access_by_class(target.object, target.class);
        if !privileges.is_empty() {
            let wanted = match (everything, target.class) {
                (true, class) => class.all(),
                (false, ObjectClass::Sequence) if may_be_sequence => {
                    sequence_rights(privileges, &target, work)
                }
                (false, class) if may_be_sequence && !class.all().contains(privileges) => {
                    let (_, _, name) =
                        (privileges & !class.all()).each().next().unwrap_or(Privileges::NAMES[0]);
                    let message = format!("invalid privilege type {name} for table");
                    return Err(SqlError::new(INVALID_GRANT, message));
                }
                (false, _) => privileges,
            };
            change_object(&mut access, &target, wanted, everything, &grantees, Way::of(grant), work)?;
        }
        for privilege in &of_columns {
            let wanted =
                named(privilege.name.as_deref(), Privileges::OF_COLUMNS, Privileges::OF_COLUMNS, "column")?;
            let all = privilege.name.is_none();
            for column in &privilege.columns {
                let table = work.catalog.table_by_oid(target.object);
                let place = table.as_ref().and_then(|table| table.column_index(column));
                let place = place.ok_or_else(|| undefined_column(column, &target.name))? + 1;
                let named = (wanted, all, column.as_str());
                change_column(&mut access, &target, place, named, &grantees, Way::of(grant), work)?;
            }
        }
        work.put_access(access);
    }
    Ok(())
}

/// What GRANT ON LANGUAGE names.
fn language_target(name: &str) -> Result<Target> {
    let Some(language) = language_named(name) else {
        let message = format!("language \"{name}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
    };
    if !language.trusted {
        let message = format!("language \"{name}\" is not trusted");
        let why = "GRANT and REVOKE are not allowed on untrusted languages, because only superusers can use \
                   untrusted languages.";
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).with_detail(why));
    }
    Ok(Target::new(language.oid, ObjectClass::Language, name))
}

/// A table's rights for what turns out to be a sequence.
fn sequence_rights(privileges: Privileges, target: &Target, work: &mut Work<'_>) -> Privileges {
    let valid = ObjectClass::Sequence.all();
    if !valid.contains(privileges) {
        let message =
            format!("sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges", target.name);
        work.plan.notices.push(SqlError::new(SqlState::WARNING, message));
    }
    privileges & valid
}

/// A built-in type by the name that it has in pg_type.
fn built_in_type(name: &QualifiedName) -> Option<&'static TypeInfo> {
    let is_there = name.schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
    type_by_name(&name.name).filter(|info| is_there && info.name == name.name)
}

/// What becomes of rights.
#[derive(Clone, Copy)]
struct Way {
    revoke: bool,
    /// WITH GRANT OPTION; of REVOKE: only that.
    grant_option: bool,
    cascade: bool,
}

impl Way {
    fn of(grant: &Grant) -> Way {
        Way { revoke: grant.revoke, grant_option: grant.grant_option, cascade: grant.cascade }
    }
}

impl Target {
    fn new(object: Oid, class: ObjectClass, name: &str) -> Target {
        Target { object, class, name: name.to_owned() }
    }
}

/// An object that is not of the kind the statement names.
fn wrong_kind(name: &str, what: &str) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not {what}"))
}

/// The objects that a statement names, one by one or as all of a schema.
fn targets(objects: &GrantObjects, class: ObjectClass, work: &Work<'_>) -> Result<Vec<Target>> {
    match objects {
        GrantObjects::Tables(names) => names.iter().map(|name| table_target(name, class, work)).collect(),
        GrantObjects::Sequences(names) => {
            names.iter().map(|name| sequence_target(name, class, work)).collect()
        }
        GrantObjects::Schemas(names) => names.iter().map(|name| schema_target(name, class, work)).collect(),
        GrantObjects::Databases(names) => {
            names.iter().map(|name| database_target(name, class, work)).collect()
        }
        GrantObjects::LargeObjects(_) => Ok(Vec::new()),
        GrantObjects::Languages(names) => names.iter().map(|name| language_target(name)).collect(),
        GrantObjects::Parameters(names) => Ok(parameter_targets(names, work)),
        GrantObjects::Types(names) => names.iter().map(|name| type_target(name, class, work)).collect(),
        GrantObjects::Domains(names) => names.iter().map(|name| domain_target(name, class, work)).collect(),
        GrantObjects::Routines(word, signatures) => {
            signatures.iter().map(|signature| routine_target(signature, *word, class, work)).collect()
        }
        GrantObjects::AllInSchema(word, names) => {
            let mut found = Vec::new();
            for name in names {
                found.extend(all_in_schema(name, word, class, work)?);
            }
            Ok(found)
        }
    }
}

/// Parameters that rights are to be on are known from then on. Whether there are such is the session's to say.
fn note_parameters(names: &[String], work: &mut Work<'_>) {
    let mut parameters = work.catalog.parameters().clone();
    for name in names.iter().map(|name| name.to_ascii_lowercase()) {
        if parameters.named(&name).is_none() {
            let acl = ObjectClass::Parameter.default_acl(SUPERUSER);
            parameters.access.push(ParameterAccess { oid: work.oids(1), name, acl });
        }
    }
    work.put_parameters(parameters);
}

/// What GRANT ON PARAMETER names; REVOKE passes over those on which nobody has a right.
fn parameter_targets(names: &[String], work: &Work<'_>) -> Vec<Target> {
    let parameters = work.catalog.parameters();
    let known = names.iter().filter_map(|name| parameters.named(name));
    known.map(|known| Target::new(known.oid, ObjectClass::Parameter, &known.name)).collect()
}

/// What GRANT ON SEQUENCE names.
fn sequence_target(name: &QualifiedName, class: ObjectClass, work: &Work<'_>) -> Result<Target> {
    match work.catalog.require_relation(name, work.search_path())? {
        Relation::Sequence(sequence) => Ok(Target::new(sequence.oid, class, &sequence.name)),
        other => Err(wrong_kind(other.name(), "a sequence")),
    }
}

/// What GRANT ON SCHEMA names.
fn schema_target(name: &str, class: ObjectClass, work: &Work<'_>) -> Result<Target> {
    let schema = work.catalog.schema(name).ok_or_else(|| undefined_schema(name))?;
    Ok(Target::new(schema.oid, class, name))
}

/// What GRANT ON DATABASE names.
fn database_target(name: &str, class: ObjectClass, work: &Work<'_>) -> Result<Target> {
    Ok(Target::new(work.database(name)?, class, name))
}

/// What GRANT ON FUNCTION and its kin name: a routine of users or one that is built in.
fn routine_target(
    signature: &RoutineSignature,
    word: RoutineWord,
    class: ObjectClass,
    work: &Work<'_>,
) -> Result<Target> {
    match routine::find(&work.catalog, signature, word, work.search_path()) {
        Ok(routine) => Ok(Target::new(routine.oid, class, &routine.name)),
        Err(error) => {
            let built_in = routine::find_built_in(&work.catalog, signature, word, work.search_path());
            let (oid, name) = built_in.ok_or(error)?;
            Ok(Target::new(oid, class, name))
        }
    }
}

/// What GRANT ON TABLE names: a table, or a sequence.
fn table_target(name: &QualifiedName, class: ObjectClass, work: &Work<'_>) -> Result<Target> {
    match work.catalog.require_relation(name, work.search_path())? {
        Relation::Table(table) => Ok(Target::new(table.oid, class, &table.name)),
        Relation::Sequence(sequence) => Ok(Target::new(sequence.oid, ObjectClass::Sequence, &sequence.name)),
        index => {
            let message = format!("\"{}\" is an index", index.name());
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
    }
}

/// What GRANT ON TYPE names: a type of users or one that is built in.
fn type_target(name: &QualifiedName, class: ObjectClass, work: &Work<'_>) -> Result<Target> {
    if let Some(built_in) = built_in_named(name, work) {
        if built_in.is_array() {
            return Err(SqlError::new(INVALID_GRANT, "cannot set privileges of array types")
                .with_hint("Set the privileges of the element type instead."));
        }
        return Ok(Target::new(built_in.oid, class, built_in.name));
    }
    let ty = work.catalog.require_user_type(name, work.search_path())?;
    Ok(Target::new(ty.oid, class, &ty.name))
}

/// What GRANT ON DOMAIN names.
fn domain_target(name: &QualifiedName, class: ObjectClass, work: &Work<'_>) -> Result<Target> {
    if let Some(built_in) = built_in_named(name, work) {
        return Err(wrong_kind(built_in.name, "a domain"));
    }
    let ty = work.catalog.require_user_type(name, work.search_path())?;
    match &ty.domain {
        Some(_) => Ok(Target::new(ty.oid, class, &ty.name)),
        None => Err(wrong_kind(&ty.name, "a domain")),
    }
}

/// The built-in type of a name that no type of users has.
fn built_in_named(name: &QualifiedName, work: &Work<'_>) -> Option<&'static TypeInfo> {
    let own = work.catalog.user_type(name.schema.as_deref(), &name.name, work.search_path());
    if own.is_none() { built_in_type(name) } else { None }
}

/// What a schema has of a class; of its routines those that the word says.
fn all_in_schema(schema: &str, word: &str, class: ObjectClass, work: &Work<'_>) -> Result<Vec<Target>> {
    let catalog = &work.catalog;
    catalog.schema(schema).ok_or_else(|| undefined_schema(schema))?;
    Ok(match class {
        ObjectClass::Relation => catalog
            .tables()
            .filter(|table| table.schema == schema)
            .map(|table| Target::new(table.oid, class, &table.name))
            .collect(),
        ObjectClass::Sequence => catalog
            .sequences()
            .filter(|sequence| sequence.schema == schema)
            .map(|sequence| Target::new(sequence.oid, class, &sequence.name))
            .collect(),
        _ => {
            let fits = |kind: RoutineKind| match word {
                "functions" => kind != RoutineKind::Procedure,
                "procedures" => kind == RoutineKind::Procedure,
                _ => true,
            };
            catalog
                .routines_all()
                .filter(|routine| routine.schema == schema && fits(routine.kind))
                .map(|routine| Target::new(routine.oid, class, &routine.name))
                .collect()
        }
    })
}

/// Which of the rights may be granted, with PostgreSQL's error or warning for the others
/// (restrict_and_check_grant).
fn restricted(
    (wanted, all): (Privileges, bool),
    available: Privileges,
    any_right: bool,
    way: Way,
    (target, column): (&Target, Option<&str>),
    work: &mut Work<'_>,
) -> Result<Privileges> {
    let (what, called) = work.catalog.kind_and_name_by_class(target.object, target.class);
    if available.is_empty() && !any_right {
        let message = match column {
            None => format!("permission denied for {what} {called}"),
            Some(column) => format!("permission denied for column \"{column}\" of relation \"{called}\""),
        };
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    let allowed = wanted & available;
    let of = column.map_or_else(String::new, |column| format!("column \"{column}\" of relation "));
    let mut warn = |state: SqlState, text: &str| {
        let message = format!("{text} for {of}\"{called}\"");
        work.plan.notices.push(SqlError::new(state, message));
    };
    match (way.revoke, allowed.is_empty()) {
        (false, true) => warn(NOT_GRANTED, "no privileges were granted"),
        (false, false) if !all && allowed != wanted => {
            warn(NOT_GRANTED, "not all privileges were granted");
        }
        (true, true) => warn(NOT_REVOKED, "no privileges could be revoked"),
        (true, false) if !all && allowed != wanted => {
            warn(NOT_REVOKED, "not all privileges could be revoked");
        }
        _ => {}
    }
    Ok(allowed)
}

fn change_object(
    access: &mut Access,
    target: &Target,
    wanted: Privileges,
    all: bool,
    grantees: &[Oid],
    way: Way,
    work: &mut Work<'_>,
) -> Result<()> {
    let owner = access.owner;
    let mut acl = access.acl.clone().unwrap_or_else(|| target.class.default_acl(owner));
    let (grantor, available) = work.authority().grantor(&acl, owner, wanted);
    let held = work.authority().privileges(target.object, target.class);
    let any_right = !(held & target.class.all()).is_empty();
    let allowed = restricted((wanted, all), available, any_right, way, (target, None), work)?;
    apply(&mut acl, owner, grantor, allowed, grantees, way)?;
    access.acl = Some(acl);
    // What is taken of the whole table is taken of its columns, too.
    let of_columns = allowed & Privileges::OF_COLUMNS;
    if way.revoke && !of_columns.is_empty() && target.class == ObjectClass::Relation {
        for (column, mut acl) in access.columns.clone() {
            apply(&mut acl, owner, grantor, of_columns, grantees, way)?;
            access.set_column(column, acl);
        }
    }
    Ok(())
}

fn change_column(
    access: &mut Access,
    target: &Target,
    column: u16,
    (wanted, all, name): (Privileges, bool, &str),
    grantees: &[Oid],
    way: Way,
    work: &mut Work<'_>,
) -> Result<()> {
    let owner = access.owner;
    let mut acl = access.column(column).to_vec();
    let mut both = access.acl.clone().unwrap_or_else(|| target.class.default_acl(owner));
    both.extend(acl.iter().copied());
    let (grantor, available) = work.authority().grantor(&both, owner, wanted);
    let held = work.authority().privileges(target.object, target.class)
        | work.authority().column_privileges(target.object, column);
    let any_right = !(held & Privileges::OF_COLUMNS).is_empty();
    let named = (target, Some(name));
    let allowed = restricted((wanted, all), available, any_right, way, named, work)?;
    apply(&mut acl, owner, grantor, allowed, grantees, way)?;
    access.set_column(column, acl);
    Ok(())
}

fn apply(
    acl: &mut Vec<AclItem>,
    owner: Oid,
    grantor: Oid,
    privileges: Privileges,
    grantees: &[Oid],
    way: Way,
) -> Result<()> {
    if privileges.is_empty() {
        return Ok(());
    }
    for &grantee in grantees {
        let change = AclChange {
            grantee,
            grantor,
            privileges,
            grant_option: way.grant_option,
            revoke: way.revoke,
            cascade: way.cascade,
        };
        change.apply(acl, owner)?;
    }
    Ok(())
}

/// Takes from a role what the role in force may take from it of all that it was given, and what it passed on:
/// REVOKE ALL … CASCADE on every object, of databases, too (RemoveRoleFromObjectACL).
pub(super) fn revoke_everything(role: Oid, work: &mut Work<'_>) -> Result<()> {
    let way = Way { revoke: true, grant_option: false, cascade: true };
    let given = |acl: &Vec<AclItem>| acl.iter().any(|item| item.grantee == role);
    let concerned = work.catalog.access_all();
    let concerned = concerned.filter(|access| access.owner != role && access.lists().any(given));
    let mut concerned: Vec<Oid> = concerned.map(|access| access.object).collect();
    concerned.sort_unstable();
    for object in concerned {
        let class = work.catalog.class_of(object).unwrap_or_else(|| class_of_built_in(object));
        let (_, name) = work.catalog.kind_and_name_by_class(object, class);
        let target = Target::new(object, class, &name);
        let mut access = work.catalog.access_by_class(object, class);
        change_object(&mut access, &target, class.all(), true, &[role], way, work)?;
        work.put_access(access);
    }
    let named = |acl: &[AclItem]| acl.iter().any(|item| item.grantee == role);
    let entries = work.catalog.default_access_all();
    let entries = entries.filter(|entry| entry.role != role && named(&entry.acl));
    let entries: Vec<DefaultAccess> = entries.map(|entry| DefaultAccess::clone(entry)).collect();
    for mut entry in entries {
        AclChange::take_all(&mut entry.acl, role, entry.role)?;
        let plain = if entry.schema.is_none() { entry.class.default_acl(entry.role) } else { Vec::new() };
        match entry.acl == plain {
            true => work.drop(ObjectKind::DefaultAccess, entry.oid),
            false => work.put(Object::DefaultAccess(entry)),
        }
    }
    Ok(())
}
