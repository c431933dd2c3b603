//! Who may do what with a large object.

use archipel_sql::catalog::{Authority, Catalog, LargeObject, Privileges};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::table::{Tables, as_it_is, undefined};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// 42501.
pub(super) fn denied(message: String) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

/// The role in force, with what it may do.
pub(super) fn authority<'a>(ctx: &ExecContext<'a, '_>) -> Result<Authority<'a>> {
    let session = ctx.functions.session;
    let catalog = session.current_catalog().and_then(|catalog| catalog.downcast_ref::<Catalog>());
    match (catalog, session.policy_reader()) {
        (Some(catalog), Some((role, _))) => Ok(Authority { catalog, role }),
        _ => Err(SqlError::unsupported("a large object in this context")),
    }
}

/// The role in force.
pub(super) fn role(ctx: &ExecContext<'_, '_>) -> Result<Oid> {
    Ok(authority(ctx)?.role)
}

/// Whether rights are not asked for, as before there were any.
fn is_compatible(ctx: &ExecContext<'_, '_>) -> bool {
    ctx.functions.session.setting("lo_compat_privileges").is_some_and(|value| value == "on")
}

/// 42704 unless there is such an object, 42501 unless the role may read it and, to open it for writing, write it
/// (inv_open).
pub(super) fn require(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    writes: bool,
) -> ExecResult<()> {
    let row = match writes {
        true => as_it_is(ctx, |ctx| tables.object(ctx, object))?,
        false => tables.object(ctx, object)?,
    };
    let row = row.ok_or_else(|| undefined(object))?;
    if is_compatible(ctx) {
        return Ok(());
    }
    let needed = if writes { Privileges::SELECT | Privileges::UPDATE } else { Privileges::SELECT };
    if authority(ctx)?.privileges_by(&row.acl()).contains(needed) {
        return Ok(());
    }
    Err(denied(format!("permission denied for large object {object}")).into())
}

/// The row of an object that the role in force owns, or whose owner's rights it has. 42704 if there is none; 42501.
pub(super) fn require_owner(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    may_be_compatible: bool,
) -> ExecResult<LargeObject> {
    let row = tables.object(ctx, object)?.ok_or_else(|| undefined(object))?;
    if authority(ctx)?.acts_as(row.owner) || (may_be_compatible && is_compatible(ctx)) {
        return Ok(row);
    }
    Err(denied(format!("must be owner of large object {object}")).into())
}
