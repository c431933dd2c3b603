//! CREATE, ALTER and DROP ROLE, and who belongs to whom (user.c).

use archipel_sql::ast::{
    AlterRole, CreateRole, DropRole, GrantRole, RoleAction, RoleName, RoleOption, RoleWord, SettingChange,
};
use archipel_sql::catalog::authority::undefined_role;
use archipel_sql::catalog::role::DATABASE_OWNER;
use archipel_sql::catalog::{Database, FIRST_OID, Membership, Object, ObjectKind, Role};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::password::{self, Encryption, Verifier};
use archipel_sql::types::Oid;

use super::dependence::{in_other_databases, role_in_use};
use super::setting_list::change_list;
use super::{grant, owner};
use crate::work::Work;

fn denied(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

fn reserved(name: &str, detail: &str) -> SqlError {
    SqlError::new(SqlState::RESERVED_NAME, format!("role name \"{name}\" is reserved")).with_detail(detail)
}

/// A name for a new role.
fn check_name(name: &str, work: &Work<'_>) -> Result<()> {
    if name.starts_with("pg_") {
        return Err(reserved(name, "Role names starting with \"pg_\" are reserved."));
    }
    if work.catalog.role(name).is_some() {
        let message = format!("role \"{name}\" already exists");
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    Ok(())
}

/// Refuses options that are said twice.
fn check_options(options: &[RoleOption]) -> Result<()> {
    for (place, option) in options.iter().enumerate() {
        let kind = std::mem::discriminant(option);
        if options[..place].iter().any(|earlier| std::mem::discriminant(earlier) == kind) {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options"));
        }
    }
    Ok(())
}

/// Whether a password, or what is given as its verifier, is the empty one.
fn is_empty(password: &str, role: &str) -> Result<bool> {
    match Verifier::parse(password) {
        Some(verifier) => verifier.matches(b"", role),
        None => Ok(password.is_empty()),
    }
}

/// How `password_encryption` asks passwords to be kept.
fn encryption(work: &Work<'_>) -> Result<Encryption> {
    match work.env.context.session.setting("password_encryption").as_deref() {
        Some("md5") => Ok(Encryption::Md5),
        _ => Ok(Encryption::ScramSha256 { salt: archipel_sql::strong_random::random_bytes()? }),
    }
}

/// What options say of the role itself.
fn apply(role: &mut Role, options: &[RoleOption], work: &mut Work<'_>) -> Result<()> {
    for option in options {
        match option {
            RoleOption::Superuser(on) => role.superuser = *on,
            RoleOption::CreateDatabase(on) => role.create_database = *on,
            RoleOption::CreateRole(on) => role.create_role = *on,
            RoleOption::Inherit(on) => role.inherit = *on,
            RoleOption::Login(on) => role.login = *on,
            RoleOption::Replication(on) => role.replication = *on,
            RoleOption::BypassRowSecurity(on) => role.bypass_row_security = *on,
            RoleOption::ConnectionLimit(limit) => {
                role.connection_limit =
                    i32::try_from(*limit).ok().filter(|limit| *limit >= -1).ok_or_else(|| {
                        let message = format!("invalid connection limit: {limit}");
                        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                    })?;
            }
            RoleOption::Password(password) => {
                role.password = match password.as_deref() {
                    None => None,
                    Some(password) if is_empty(password, &role.name)? => {
                        work.notice("empty string is not a valid password, clearing password");
                        None
                    }
                    Some(new) => Some(password::verifier(new, &role.name, encryption(work)?)?),
                };
            }
            RoleOption::ValidUntil(text) => {
                let context = work.env.context;
                let until =
                    archipel_sql::datetime::parse_timestamptz(text, context.session.style(), context.now)?;
                role.valid_until = Some(until);
            }
            RoleOption::InRole(_) | RoleOption::Members(_) | RoleOption::Admins(_) => {}
        }
    }
    Ok(())
}

pub(crate) fn create_role(create: &CreateRole, work: &mut Work<'_>) -> Result<()> {
    check_options(&create.options)?;
    let RoleName::Name(name) = &create.name else {
        return Err(SqlError::internal("CREATE ROLE without a name"));
    };
    let authority = work.authority();
    if !authority.is_superuser() {
        let asks = |option: &RoleOption| create.options.contains(option);
        for (option, kind) in [
            (RoleOption::Superuser(true), "superusers"),
            (RoleOption::Replication(true), "replication users"),
            (RoleOption::BypassRowSecurity(true), "bypassrls users"),
        ] {
            if asks(&option) {
                return Err(denied(format!("must be superuser to create {kind}")));
            }
        }
        if !authority.creates_roles() {
            return Err(denied("permission denied to create role"));
        }
    }
    check_name(name, work)?;
    let mut role = Role::new(work.oids(1), name);
    role.login = create.word == RoleWord::User;
    apply(&mut role, &create.options, work)?;
    let oid = role.oid;
    work.put(Object::Role(role));
    for option in &create.options {
        match option {
            RoleOption::InRole(roles) => {
                for of in roles {
                    let of = work.role(of)?;
                    add_member(of, oid, false, work.env.roles.current, work)?;
                }
            }
            RoleOption::Members(members) | RoleOption::Admins(members) => {
                for member in members {
                    let member = work.role(member)?;
                    add_member(
                        oid,
                        member,
                        matches!(option, RoleOption::Admins(_)),
                        work.env.roles.current,
                        work,
                    )?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Roles of the system stay as they are (check_rolespec_name).
pub(crate) fn require_alterable(role: &Role) -> Result<()> {
    if role.name.starts_with("pg_") {
        return Err(reserved(&role.name, "Cannot alter reserved roles."));
    }
    Ok(())
}

/// 42501 unless the role in force may change what sessions of `role` begin with.
pub(crate) fn require_setter(role: &Role, work: &Work<'_>) -> Result<()> {
    if role.superuser && !work.authority().is_superuser() {
        return Err(denied("must be superuser to alter superusers"));
    }
    if !work.authority().creates_roles() && role.oid != work.env.roles.current {
        return Err(denied("permission denied"));
    }
    Ok(())
}

pub(crate) fn alter_role(alter: &AlterRole, work: &mut Work<'_>) -> Result<()> {
    let oid = work.role(&alter.role)?;
    let mut role = work.role_object(oid)?;
    if !matches!(alter.action, RoleAction::RenameTo(_)) {
        require_alterable(&role)?;
    }
    let own = oid == work.env.roles.current;
    let (superuser, creates) = (work.authority().is_superuser(), work.authority().creates_roles());
    match &alter.action {
        RoleAction::Options(options) => {
            check_options(options)?;
            let says = |wanted: fn(&RoleOption) -> bool| options.iter().any(wanted);
            if !superuser {
                if role.superuser || says(|option| matches!(option, RoleOption::Superuser(_))) {
                    let message = "must be superuser to alter superuser roles or change superuser attribute";
                    return Err(denied(message));
                }
                if role.replication || says(|option| matches!(option, RoleOption::Replication(_))) {
                    let message =
                        "must be superuser to alter replication roles or change replication attribute";
                    return Err(denied(message));
                }
                if says(|option| matches!(option, RoleOption::BypassRowSecurity(_))) {
                    return Err(denied("must be superuser to change bypassrls attribute"));
                }
                // Everybody may change a password of his own.
                let only_password = matches!(&options[..], [RoleOption::Password(_)]);
                let allowed = creates || own && only_password;
                if !allowed {
                    return Err(denied("permission denied"));
                }
            }
            apply(&mut role, options, work)?;
        }
        RoleAction::RenameTo(name) => {
            if role.name.starts_with("pg_") {
                return Err(reserved(&role.name, "Role names starting with \"pg_\" are reserved."));
            }
            let who = if oid == work.env.roles.session {
                "session"
            } else if own {
                "current"
            } else {
                ""
            };
            if !who.is_empty() {
                let message = format!("{who} user cannot be renamed");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            check_name(name, work)?;
            if role.superuser && !superuser {
                return Err(denied("must be superuser to rename superusers"));
            }
            if !creates {
                return Err(denied("permission denied to rename role"));
            }
            role.name.clone_from(name);
            // The name is part of what was hashed.
            if role.password.as_deref().and_then(Verifier::parse).is_some_and(|kept| kept.is_md5()) {
                role.password = None;
                work.notice("MD5 password cleared because of role rename");
            }
        }
        RoleAction::Set(_) | RoleAction::Reset(_) | RoleAction::ResetAll => {
            require_setter(&role, work)?;
            let change = match &alter.action {
                RoleAction::Set(set) => SettingChange::Set(set.clone()),
                RoleAction::Reset(name) => SettingChange::Reset(name.clone()),
                _ => SettingChange::ResetAll,
            };
            change_list(&mut role.settings, &change, work)?;
        }
        RoleAction::Members { add, members } => {
            for member in members {
                let member = work.role(member)?;
                if *add {
                    add_member(oid, member, false, work.env.roles.current, work)?;
                } else {
                    remove_member(oid, member, false, work)?;
                }
            }
            return Ok(());
        }
    }
    work.put(Object::Role(role));
    Ok(())
}

pub(crate) fn drop_role(drop: &DropRole, work: &mut Work<'_>) -> Result<()> {
    if !work.authority().creates_roles() {
        return Err(denied("permission denied to drop role"));
    }
    for name in &drop.roles {
        let RoleName::Name(name) = name else {
            let message = "cannot use special role specifier in DROP ROLE";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        };
        let Some(role) = work.catalog.role(name) else {
            if drop.if_exists {
                work.notice(format!("role \"{name}\" does not exist, skipping"));
                continue;
            }
            return Err(undefined_role(name));
        };
        let used =
            |who: &str| SqlError::new(SqlState::OBJECT_IN_USE, format!("{who} user cannot be dropped"));
        if role.oid == work.env.roles.current {
            return Err(used("current"));
        }
        if role.oid == work.env.roles.session {
            return Err(used("session"));
        }
        if role.superuser && !work.authority().is_superuser() {
            return Err(denied("must be superuser to drop superusers"));
        }
        if role.oid.0 < FIRST_OID {
            let message = format!("cannot drop role {name} because it is required by the database system");
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
        }
        let mut lines = owner::in_the_way(role.oid, work);
        lines.extend(in_other_databases(role.oid, work.env.others));
        if !lines.is_empty() {
            return Err(role_in_use(name, &lines));
        }
        forget_settings(role.oid, work);
        let members: Vec<Oid> = work.catalog.members_of(role.oid).map(|member| member.oid).collect();
        for member in members {
            let mut object = work.role_object(member)?;
            object.member_of.retain(|membership| membership.role != role.oid);
            work.put(Object::Role(object));
        }
        work.drop(ObjectKind::Role, role.oid);
    }
    Ok(())
}

/// What sessions of a role begin with in one database or another goes with it.
fn forget_settings(role: Oid, work: &mut Work<'_>) {
    let databases: Vec<Database> = work.catalog.databases().map(|database| (**database).clone()).collect();
    for mut database in databases {
        let before = database.settings.len();
        database.settings.retain(|settings| settings.role != Some(role));
        if database.settings.len() < before {
            work.put(Object::Database(database));
        }
    }
}

/// GRANT and REVOKE of roles.
pub(crate) fn grant_role(grant: &GrantRole, work: &mut Work<'_>) -> Result<()> {
    let grantor = match &grant.granted_by {
        Some(by) => work.role(by)?,
        None => work.env.roles.current,
    };
    if grantor != work.env.roles.current && !work.authority().is_superuser() {
        return Err(denied("must be superuser to set grantor"));
    }
    let members = grant.members.iter().map(|member| work.role(member)).collect::<Result<Vec<Oid>>>()?;
    for name in &grant.roles {
        let role = work.catalog.role(name).ok_or_else(|| undefined_role(name))?.oid;
        for &member in &members {
            if grant.revoke {
                remove_member(role, member, grant.admin, work)?;
            } else {
                add_member(role, member, grant.admin, grantor, work)?;
            }
        }
    }
    Ok(())
}

/// Only superusers change who belongs to superusers; elsewhere CREATEROLE or ADMIN OPTION do.
fn check_membership(role: &Role, work: &Work<'_>) -> Result<()> {
    let authority = work.authority();
    if role.superuser {
        let refused = || denied("must be superuser to alter superusers");
        return if authority.is_superuser() { Ok(()) } else { Err(refused()) };
    }
    let administers = work.catalog.roles_of(authority.role, false).into_iter().any(|of| {
        work.catalog
            .role_by_oid(of)
            .is_some_and(|of| of.membership(role.oid).is_some_and(|membership| membership.admin))
    });
    if authority.creates_roles() || administers {
        return Ok(());
    }
    Err(denied(format!("must have admin option on role \"{}\"", role.name)))
}

fn add_member(of: Oid, member: Oid, admin: bool, grantor: Oid, work: &mut Work<'_>) -> Result<()> {
    let role = work.role_object(of)?;
    check_membership(&role, work)?;
    let mut object = work.role_object(member)?;
    if of == DATABASE_OWNER {
        return Err(SqlError::internal(format!("role \"{}\" cannot have explicit members", role.name)));
    }
    if member == DATABASE_OWNER {
        return Err(SqlError::internal(format!("role \"{}\" cannot be a member of any role", object.name)));
    }
    if work.catalog.roles_of(of, false).contains(&member) {
        let message = format!("role \"{}\" is a member of role \"{}\"", role.name, object.name);
        return Err(SqlError::new(grant::INVALID_GRANT, message));
    }
    match object.member_of.iter_mut().find(|membership| membership.role == of) {
        Some(known) if !admin || known.admin => {
            let message = format!("role \"{}\" is already a member of role \"{}\"", object.name, role.name);
            work.notice(message);
            return Ok(());
        }
        Some(known) => (known.admin, known.grantor) = (true, grantor),
        None => object.member_of.push(Membership { role: of, grantor, admin }),
    }
    work.put(Object::Role(object));
    Ok(())
}

fn remove_member(of: Oid, member: Oid, only_admin: bool, work: &mut Work<'_>) -> Result<()> {
    let role = work.role_object(of)?;
    check_membership(&role, work)?;
    let mut object = work.role_object(member)?;
    let Some(known) = object.member_of.iter_mut().find(|membership| membership.role == of) else {
        let message = format!("role \"{}\" is not a member of role \"{}\"", object.name, role.name);
        work.notice_as(SqlState::WARNING, message);
        return Ok(());
    };
    known.admin = false;
    if !only_admin {
        object.member_of.retain(|membership| membership.role != of);
    }
    work.put(Object::Role(object));
    Ok(())
}
