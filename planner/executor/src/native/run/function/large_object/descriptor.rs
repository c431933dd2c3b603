//! Objects that are open, and the calls about them.

use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;

use super::content;
use super::rights;
use super::table::{Tables, as_it_is};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::state::large_object::Descriptor;

/// How objects are opened (libpq-fs.h).
const INV_WRITE: i32 = 0x2_0000;
const INV_READ: i32 = 0x4_0000;

/// What an offset is counted from (stdio.h).
const SEEK_SET: i32 = 0;
const SEEK_CUR: i32 = 1;
const SEEK_END: i32 = 2;

/// `lo_open`. Who writes reads, too.
pub(super) fn open(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    mode: i32,
) -> ExecResult<i32> {
    let writes = mode & INV_WRITE != 0;
    if !writes && mode & INV_READ == 0 {
        let message = format!("invalid flags for opening a large object: {mode}");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).into());
    }
    rights::require(tables, ctx, object, writes)?;
    let (open, number) = ctx.effects_mut().cursors.large_objects_mut();
    Ok(open.open(object, writes, number)?)
}

pub(super) fn close(ctx: &mut ExecContext<'_, '_>, descriptor: i32) -> ExecResult<()> {
    Ok(ctx.effects_mut().cursors.large_objects_mut().0.close(descriptor)?)
}

fn get(ctx: &mut ExecContext<'_, '_>, descriptor: i32) -> ExecResult<Descriptor> {
    Ok(ctx.effects_mut().cursors.large_objects().get(descriptor)?)
}

fn move_to(ctx: &mut ExecContext<'_, '_>, descriptor: i32, offset: i64) {
    ctx.effects_mut().cursors.large_objects_mut().0.move_to(descriptor, offset);
}

/// 55000 for a descriptor that was opened for reading alone.
fn require_writing(open: &Descriptor, descriptor: i32) -> Result<(), SqlError> {
    if open.writes {
        return Ok(());
    }
    let message = format!("large object descriptor {descriptor} was not opened for writing");
    Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
}

/// Reads of an open object: as it is if it was opened for writing; else as it was then, or as the statement sees it
/// where that is the same.
fn seen<T>(
    ctx: &mut ExecContext<'_, '_>,
    open: &Descriptor,
    body: impl FnOnce(&mut ExecContext<'_, '_>) -> ExecResult<T>,
) -> ExecResult<T> {
    if open.writes {
        return as_it_is(ctx, body);
    }
    let Some(epoch) = open.epoch() else { return body(ctx) };
    let before = ctx.txn.read_at(Some(epoch));
    let result = body(ctx);
    ctx.txn.read_at(before);
    result
}

/// `loread`: up to so many bytes from where it stands.
pub(super) fn read(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    descriptor: i32,
    length: i32,
) -> ExecResult<Vec<u8>> {
    let open = get(ctx, descriptor)?;
    let length = i64::from(length.max(0));
    let bytes = seen(ctx, &open, |ctx| content::read(tables, ctx, open.object, open.offset, length))?;
    move_to(ctx, descriptor, open.offset + bytes.len() as i64);
    Ok(bytes)
}

/// `lowrite`: how many bytes were written where it stands.
pub(super) fn write(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    descriptor: i32,
    bytes: &[u8],
) -> ExecResult<i32> {
    let open = get(ctx, descriptor)?;
    require_writing(&open, descriptor)?;
    as_it_is(ctx, |ctx| content::write(tables, ctx, open.object, open.offset, bytes))?;
    move_to(ctx, descriptor, open.offset + bytes.len() as i64);
    // A value is no longer than that.
    Ok(bytes.len() as i32)
}

/// `lo_lseek`: where it stands afterwards.
pub(super) fn seek(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    descriptor: i32,
    by: i64,
    whence: i32,
) -> ExecResult<i64> {
    let open = get(ctx, descriptor)?;
    let from = match whence {
        SEEK_SET => 0,
        SEEK_CUR => open.offset,
        SEEK_END => seen(ctx, &open, |ctx| content::size(tables, ctx, open.object))?,
        _ => {
            let message = format!("invalid whence setting: {whence}");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).into());
        }
    };
    let to = content::target(from.checked_add(by), i128::from(from) + i128::from(by))?;
    move_to(ctx, descriptor, to);
    Ok(to)
}

/// An offset as the function answers it; one of 32 bits, by its name in the error, if it fits.
pub(super) fn told(offset: i64, descriptor: i32, short: Option<&str>) -> ExecResult<Datum> {
    match (short, i32::try_from(offset)) {
        (None, _) => Ok(Datum::Int8(offset)),
        (Some(_), Ok(offset)) => Ok(Datum::Int4(offset)),
        (Some(name), Err(_)) => {
            let message = format!("{name} result out of range for large-object descriptor {descriptor}");
            Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message).into())
        }
    }
}

pub(super) fn truncate(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    descriptor: i32,
    length: i64,
) -> ExecResult<()> {
    let open = get(ctx, descriptor)?;
    require_writing(&open, descriptor)?;
    as_it_is(ctx, |ctx| content::truncate(tables, ctx, open.object, length))
}
