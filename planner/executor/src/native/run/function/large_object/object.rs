//! Objects that are made and dropped.

use archipel_engine::txn::LockMode;
use archipel_sql::catalog::LargeObject;
use archipel_sql::types::Oid;

use super::content;
use super::rights;
use super::table::{Tables, as_it_is, undefined};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::row::integer;

/// What the session calls a number that no object has, for one that is to be made.
const NEW_OID: &str = "archipel_new_oid";

/// Makes an empty object of this number, or of a new one.
pub(super) fn create(tables: &Tables, ctx: &mut ExecContext<'_, '_>, asked: Oid) -> ExecResult<Oid> {
    let owner = rights::role(ctx)?;
    let mut object = asked;
    while object == Oid(0) {
        ctx.tick()?;
        let drawn = ctx.functions.session.call(NEW_OID, &[])?;
        let drawn = integer(&drawn).map_or(Oid(0), |oid| Oid(oid as u32));
        let is_free = as_it_is(ctx, |ctx| tables.object(ctx, drawn))?.is_none();
        object = if is_free { drawn } else { Oid(0) };
    }
    tables.add(ctx, object, &LargeObject::of_owner(owner))?;
    Ok(object)
}

/// Drops an object, its pages, and what is open of it.
pub(super) fn unlink(tables: &Tables, ctx: &mut ExecContext<'_, '_>, object: Oid) -> ExecResult<()> {
    as_it_is(ctx, |ctx| {
        rights::require_owner(tables, ctx, object, true)?;
        remove(tables, ctx, object)
    })
}

/// The same, whoever asks.
pub(super) fn remove(tables: &Tables, ctx: &mut ExecContext<'_, '_>, object: Oid) -> ExecResult<()> {
    if !ctx.effects_mut().cursors.large_objects().is_empty() {
        ctx.effects_mut().cursors.large_objects_mut().0.close_all_of(object);
    }
    tables.lock(ctx, object, LockMode::Update)?;
    if !tables.remove(ctx, object)? {
        return Err(undefined(object).into());
    }
    content::remove_from(tables, ctx, object, 0)
}
