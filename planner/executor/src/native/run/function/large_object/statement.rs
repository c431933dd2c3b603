//! The statements that change whose a large object is, who may do what with it, and what is said of it.

use archipel_engine::txn::LockMode;
use archipel_sql::catalog::access::AclChange;
use archipel_sql::catalog::{Access, AclItem, LargeObject, ObjectClass, Privileges};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::object::remove;
use super::rights::{authority, denied, require_owner};
use super::table::{Tables, as_it_is, undefined};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// Objects that are looked at together, between two looks at whether to go on.
const OBJECTS_AT_ONCE: usize = 256;

/// Warnings: fewer rights were granted, or taken, than named.
const NOT_GRANTED: SqlState = SqlState(*b"01007");
const NOT_REVOKED: SqlState = SqlState(*b"01006");

/// The row of an object as it is, which nobody else changes until the transaction ends.
fn locked(tables: &Tables, ctx: &mut ExecContext<'_, '_>, object: Oid) -> ExecResult<LargeObject> {
    tables.lock(ctx, object, LockMode::NoKeyUpdate)?;
    Ok(tables.object(ctx, object)?.ok_or_else(|| undefined(object))?)
}

/// What PostgreSQL takes for an object's name in messages about GRANT.
fn called(object: Oid) -> String {
    format!("large object {object}")
}

/// What GRANT or REVOKE does with the list of each object.
pub(super) struct Change {
    grantees: Vec<Oid>,
    wanted: Privileges,
    revoke: bool,
    grant_option: bool,
    cascade: bool,
    /// Whether ALL PRIVILEGES were named: then nobody is warned of some that are not granted.
    all: bool,
}

impl Change {
    /// `how`: bits for REVOKE, the grant option, CASCADE and ALL, from the lowest.
    pub fn new(grantees: Vec<Oid>, wanted: i32, how: i32) -> Change {
        Change {
            grantees,
            wanted: Privileges(wanted as u16) & ObjectClass::LargeObject.all(),
            revoke: how & 1 != 0,
            grant_option: how & 2 != 0,
            cascade: how & 4 != 0,
            all: how & 8 != 0,
        }
    }

    /// What is said where fewer rights can be given or taken than are named (restrict_and_check_grant).
    fn warning(&self, object: Oid, allowed: Privileges) -> Option<SqlError> {
        let (state, text) = match (self.revoke, allowed.is_empty()) {
            (false, true) => (NOT_GRANTED, "no privileges were granted"),
            (true, true) => (NOT_REVOKED, "no privileges could be revoked"),
            _ if self.all || allowed == self.wanted => return None,
            (false, false) => (NOT_GRANTED, "not all privileges were granted"),
            (true, false) => (NOT_REVOKED, "not all privileges could be revoked"),
        };
        Some(SqlError::new(state, format!("{text} for \"{}\"", called(object))))
    }

    fn apply(&self, acl: &mut Vec<AclItem>, owner: Oid, grantor: Oid, privileges: Privileges) -> Result<()> {
        if privileges.is_empty() {
            return Ok(());
        }
        self.grantees.iter().try_for_each(|&grantee| {
            let change = AclChange {
                grantee,
                grantor,
                privileges,
                grant_option: self.grant_option,
                revoke: self.revoke,
                cascade: self.cascade,
            };
            change.apply(acl, owner)
        })
    }
}

/// GRANT and REVOKE ON LARGE OBJECT (ExecGrant_Largeobject).
pub(super) fn grant(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    objects: &[Oid],
    change: &Change,
) -> ExecResult<()> {
    as_it_is(ctx, |ctx| {
        // All of them are looked up before any is changed.
        for &object in objects {
            ctx.tick()?;
            tables.object(ctx, object)?.ok_or_else(|| undefined(object))?;
        }
        let changed = if change.wanted.is_empty() { &[][..] } else { objects };
        for &object in changed {
            ctx.tick()?;
            let mut row = locked(tables, ctx, object)?;
            let mut acl = row.acl();
            let authority = authority(ctx)?;
            let (grantor, available) = authority.grantor(&acl, row.owner, change.wanted);
            let held = authority.privileges_by(&acl) & ObjectClass::LargeObject.all();
            if available.is_empty() && held.is_empty() {
                let message = format!("permission denied for large object {}", called(object));
                return Err(denied(message).into());
            }
            let allowed = change.wanted & available;
            if let Some(warning) = change.warning(object, allowed) {
                ctx.notice("WARNING", warning, ctx.depth);
            }
            change.apply(&mut acl, row.owner, grantor, allowed)?;
            row.acl = Some(acl);
            tables.change(ctx, object, &row)?;
        }
        Ok(())
    })
}

/// Makes an object another role's.
fn give(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    mut row: LargeObject,
    to: Oid,
) -> ExecResult<()> {
    let mut access = Access { acl: row.acl.take(), ..Access::of_owner(object, row.owner) };
    access.change_owner(to);
    (row.owner, row.acl) = (to, access.acl);
    tables.change(ctx, object, &row)
}

/// ALTER LARGE OBJECT … OWNER TO (AlterObjectOwner_internal).
pub(super) fn give_to(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    to: Oid,
) -> ExecResult<()> {
    as_it_is(ctx, |ctx| {
        let row = tables.object(ctx, object)?.ok_or_else(|| undefined(object))?;
        if row.owner == to {
            return Ok(());
        }
        require_owner(tables, ctx, object, false)?;
        authority(ctx)?.require_member(to)?;
        let row = locked(tables, ctx, object)?;
        give(tables, ctx, object, row, to)
    })
}

/// COMMENT ON LARGE OBJECT; an empty one is none.
pub(super) fn comment(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    text: Option<&str>,
) -> ExecResult<()> {
    as_it_is(ctx, |ctx| {
        require_owner(tables, ctx, object, false)?;
        let mut row = locked(tables, ctx, object)?;
        row.comment = text.filter(|text| !text.is_empty()).map(str::to_owned);
        tables.change(ctx, object, &row)
    })
}

/// REASSIGN OWNED to an heir, or DROP OWNED where it is 0.
pub(super) fn of_roles(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    roles: &[Oid],
    heir: Oid,
) -> ExecResult<()> {
    let drops = heir == Oid(0);
    let allowed = authority(ctx)?;
    if !roles.iter().all(|role| allowed.acts_as(*role)) || !(drops || allowed.acts_as(heir)) {
        let verb = if drops { "drop" } else { "reassign" };
        return Err(denied(format!("permission denied to {verb} objects")).into());
    }
    as_it_is(ctx, |ctx| {
        let mut after = None;
        loop {
            ctx.look()?;
            let found = tables.objects_after(ctx, after, OBJECTS_AT_ONCE)?;
            let Some((last, _)) = found.last() else { return Ok(()) };
            after = Some(*last);
            for (object, _) in found.iter().filter(|(_, row)| roles.iter().any(|role| row.names(*role))) {
                of_one(tables, ctx, *object, roles, heir)?;
            }
        }
    })
}

fn of_one(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    roles: &[Oid],
    heir: Oid,
) -> ExecResult<()> {
    let mut row = locked(tables, ctx, object)?;
    match (roles.contains(&row.owner), heir == Oid(0)) {
        (true, true) => remove(tables, ctx, object),
        (true, false) => give(tables, ctx, object, row, heir),
        (false, false) => Ok(()),
        (false, true) => {
            let mut acl = row.acl();
            roles.iter().try_for_each(|role| AclChange::take_all(&mut acl, *role, row.owner))?;
            row.acl = Some(acl);
            tables.change(ctx, object, &row)
        }
    }
}
