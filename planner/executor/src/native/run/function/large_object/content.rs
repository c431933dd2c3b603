//! What a large object holds (inv_api.c): pages of 2 kB, of which any may be missing or short. What is missing
//! before another page reads as zeros.

use std::sync::Arc;

use archipel_engine::txn::LockMode;
use archipel_sql::catalog::large_object::{OBJECT_BYTES_MAX, PAGE_BYTES};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::memory;
use archipel_sql::types::Oid;

use super::table::Tables;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// Pages that are read at once, between two looks at whether to go on.
const PAGES_AT_ONCE: usize = 128;
const PAGE: i64 = PAGE_BYTES as i64;

/// 22023.
fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The page that holds a byte, and the byte's place in it. Offsets are not negative and within the largest object.
fn place(offset: i64) -> (i32, usize) {
    ((offset / PAGE) as i32, (offset % PAGE) as usize)
}

/// Where a page begins.
fn start(page: i32) -> i64 {
    i64::from(page) * PAGE
}

/// How many bytes an object has.
pub(super) fn size(tables: &Tables, ctx: &mut ExecContext<'_, '_>, object: Oid) -> ExecResult<i64> {
    let last = tables.last_page(ctx, object)?;
    Ok(last.map_or(0, |(number, bytes)| start(number) + bytes.len() as i64))
}

/// An offset that somebody wants to go to (inv_seek).
pub(super) fn target(offset: Option<i64>, asked: i128) -> Result<i64, SqlError> {
    let offset = offset.filter(|offset| (0..=OBJECT_BYTES_MAX).contains(offset));
    offset.ok_or_else(|| invalid(format!("invalid large object seek target: {}", asked as i64)))
}

/// Reads up to `length` bytes from an offset on.
pub(super) fn read(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    offset: i64,
    length: i64,
) -> ExecResult<Vec<u8>> {
    let end = offset.saturating_add(length);
    let mut out: Vec<u8> = Vec::new();
    let mut next = Some(place(offset.min(OBJECT_BYTES_MAX)).0);
    while let Some(from) = next {
        ctx.look()?;
        let pages = tables.pages_from(ctx, object, from, PAGES_AT_ONCE)?;
        for (number, bytes) in &pages {
            let missing = start(*number).min(end) - (offset + out.len() as i64);
            if missing > 0 {
                let grown = out.len() + missing as usize;
                memory::check(grown)?;
                out.resize(grown, 0);
            }
            let at = offset + out.len() as i64;
            if at >= end {
                return Ok(out);
            }
            let rest = bytes.get((at - start(*number)) as usize..).unwrap_or_default();
            let taken = rest.len().min((end - at) as usize);
            memory::extend(&mut out, &rest[..taken], "ExprContext")?;
        }
        let last = pages.last().filter(|_| pages.len() == PAGES_AT_ONCE);
        next = last.and_then(|(number, _)| number.checked_add(1));
    }
    Ok(out)
}

/// Writes bytes from an offset on.
///
/// Errors: 22023 where the object would become too long, 42704 where it is gone.
pub(super) fn write(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    mut offset: i64,
    mut bytes: &[u8],
) -> ExecResult<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    if offset + bytes.len() as i64 > OBJECT_BYTES_MAX {
        return Err(invalid(format!("invalid large object write request size: {}", bytes.len())).into());
    }
    tables.lock(ctx, object, LockMode::KeyShare)?;
    while !bytes.is_empty() {
        ctx.tick()?;
        let (number, at) = place(offset);
        let (now, rest) = bytes.split_at(bytes.len().min(PAGE_BYTES - at));
        let before = tables.page(ctx, object, number)?;
        if now.len() == PAGE_BYTES {
            tables.put_page(ctx, object, number, now, before.is_some())?;
        } else {
            let page = patched(before.as_ref(), at, now);
            tables.put_page(ctx, object, number, &page, before.is_some())?;
        }
        offset += now.len() as i64;
        bytes = rest;
    }
    Ok(())
}

/// A page with bytes put into it.
fn patched(before: Option<&Arc<[u8]>>, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut page = before.map_or_else(Vec::new, |before| before.to_vec());
    let end = at + bytes.len();
    if page.len() < end {
        page.resize(end, 0);
    }
    page[at..end].copy_from_slice(bytes);
    page
}

/// Makes an object so long: shorter, or longer by zeros.
pub(super) fn truncate(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    length: i64,
) -> ExecResult<()> {
    if !(0..=OBJECT_BYTES_MAX).contains(&length) {
        return Err(invalid(format!("invalid large object truncation target: {length}")).into());
    }
    tables.lock(ctx, object, LockMode::KeyShare)?;
    let (number, kept) = place(length);
    let before = tables.page(ctx, object, number)?;
    let mut page = before.as_ref().map_or_else(Vec::new, |before| before.to_vec());
    page.resize(kept, 0);
    tables.put_page(ctx, object, number, &page, before.is_some())?;
    match number.checked_add(1) {
        Some(behind) => remove_from(tables, ctx, object, behind),
        None => Ok(()),
    }
}

/// Drops the pages from a number on.
pub(super) fn remove_from(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    object: Oid,
    from: i32,
) -> ExecResult<()> {
    let mut next = Some(from);
    while let Some(from) = next {
        ctx.look()?;
        let pages = tables.pages_from(ctx, object, from, PAGES_AT_ONCE)?;
        for (number, _) in &pages {
            tables.remove_page(ctx, object, *number)?;
        }
        let last = pages.last().filter(|_| pages.len() == PAGES_AT_ONCE);
        next = last.and_then(|(number, _)| number.checked_add(1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_object_ends_with_the_last_page() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(PAGE - 1), (0, PAGE_BYTES - 1));
        assert_eq!(place(OBJECT_BYTES_MAX - 1), (i32::MAX - 1, PAGE_BYTES - 1));
        assert_eq!(place(OBJECT_BYTES_MAX), (i32::MAX, 0));
        assert_eq!(start(i32::MAX), OBJECT_BYTES_MAX);
    }

    #[test]
    fn targets_lie_within_the_largest_object() {
        assert_eq!(target(Some(OBJECT_BYTES_MAX), 0).unwrap(), OBJECT_BYTES_MAX);
        for wrong in [-1, OBJECT_BYTES_MAX + 1] {
            let refused = target(Some(wrong), i128::from(wrong)).unwrap_err();
            assert_eq!(refused.message(), format!("invalid large object seek target: {wrong}"));
        }
        assert!(target(None, i128::from(i64::MAX) + 1).is_err());
    }

    #[test]
    fn a_page_grows_by_what_is_put_into_it() {
        let page: Arc<[u8]> = Arc::from(*b"abcd");
        assert_eq!(patched(Some(&page), 1, b"XY"), b"aXYd");
        assert_eq!(patched(Some(&page), 6, b"Z"), b"abcd\0\0Z");
        assert_eq!(patched(None, 2, b"Z"), b"\0\0Z");
    }
}
