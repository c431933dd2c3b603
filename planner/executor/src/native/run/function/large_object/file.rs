//! `lo_import` and `lo_export`: files of the server, which the session reads and writes.
//!
//! Whoever waits for a disk does so on a thread of its own, never on an executor's.

use archipel_engine::Stop;
use archipel_sql::catalog::large_object::OBJECT_BYTES_MAX;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;

use super::object::create;
use super::table::{Tables, as_it_is};
use super::{content, rights};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// What the session calls the contents of a file, and the writing of one.
const READ_FILE: &str = "be_lo_import";
const WRITE_FILE: &str = "be_lo_export";

/// As long as nobody grants them, these functions are the superuser's alone; and they go where they may wait.
fn prepare(ctx: &mut ExecContext<'_, '_>, function: &str) -> ExecResult<()> {
    if !rights::authority(ctx)?.is_superuser() {
        let message = format!("permission denied for function {function}");
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message).into());
    }
    match (ctx.txn.is_apart(), ctx.is_budgeted()) {
        (true, _) => Ok(()),
        (false, true) => Err(Stop::Interactive.into()),
        // What loads rows or computes columns holds partitions, and cannot go elsewhere.
        (false, false) => {
            Err(SqlError::unsupported(format_args!("{function} in COPY or in a definition")).into())
        }
    }
}

/// An object of this number, or a new one, that holds what a file does.
pub(super) fn import(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    name: &str,
    object: Oid,
) -> ExecResult<Oid> {
    prepare(ctx, "lo_import")?;
    let Datum::Bytea(bytes) = ctx.functions.session.call(READ_FILE, &[Datum::text(name)])? else {
        return Err(SqlError::internal("a file without contents").into());
    };
    let object = create(tables, ctx, object)?;
    as_it_is(ctx, |ctx| content::write(tables, ctx, object, 0, &bytes))?;
    Ok(object)
}

/// Writes what an object holds to a file.
pub(super) fn export(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    name: &str,
) -> ExecResult<()> {
    prepare(ctx, "lo_export")?;
    rights::require(tables, ctx, object, false)?;
    let bytes = content::read(tables, ctx, object, 0, OBJECT_BYTES_MAX)?;
    ctx.functions.session.call(WRITE_FILE, &[Datum::text(name), Datum::Bytea(bytes.into())])?;
    Ok(())
}
