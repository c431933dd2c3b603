//! The rows of large objects: one for each of them, and their pages.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use archipel_engine::storage::KeyBuf;
use archipel_engine::txn::{Direction, KeyRange, LockMode, LockWait};
use archipel_engine::{Inserted, Stop};
use archipel_sql::catalog::LargeObject;
use archipel_sql::catalog::large_object::{read_acl, stored_acl};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::native::run::access::key_span::append_value;
use crate::native::run::change::write::Target;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// The two tables, as statements reach them that were compiled for them.
pub(crate) struct Tables {
    pub objects: Target,
    pub pages: Target,
}

/// A page: its number, and what it holds.
pub(super) type Page = (i32, Arc<[u8]>);

/// 42704.
pub(super) fn undefined(object: Oid) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("large object {object} does not exist"))
}

/// Has `body` read what is there now, the statement's own writes included, whatever its snapshot shows: what is
/// opened for writing shows itself so, and what is changed is changed as it is.
pub(super) fn as_it_is<T>(
    ctx: &mut ExecContext<'_, '_>,
    body: impl FnOnce(&mut ExecContext<'_, '_>) -> ExecResult<T>,
) -> ExecResult<T> {
    ctx.outside_view(|ctx| {
        let before = ctx.txn.read_newest_from_now(true);
        let result = body(ctx);
        ctx.txn.read_newest_from_now(before);
        result
    })
}

/// A key of a table, or the beginning of one.
fn key_of(target: &Target, values: &[Datum]) -> KeyBuf {
    let mut key = KeyBuf::new();
    for (column, value) in target.meta.def.key.iter().zip(values) {
        let codec = target.codecs[usize::from(column.column)].in_key(column);
        append_value(&mut key, value, column, codec);
    }
    key
}

/// What became of a write to a row that somebody else has made, changed or dropped meanwhile.
fn written(inserted: Inserted, object: Oid) -> ExecResult<()> {
    match inserted {
        Inserted::Ok => Ok(()),
        Inserted::Missing => Err(undefined(object).into()),
        // A snapshot does not show it.
        Inserted::DuplicateKey(_) => Err(Stop::ConcurrentUpdate.into()),
    }
}

fn optional(text: Option<&str>) -> Datum {
    text.map_or(Datum::Null, Datum::text)
}

/// The values of an object's row.
fn row_of(object: Oid, row: &LargeObject) -> [Datum; 4] {
    let acl = row.acl.as_deref().map(stored_acl);
    [Datum::Oid(object), Datum::Oid(row.owner), optional(acl.as_deref()), optional(row.comment.as_deref())]
}

impl Tables {
    fn read_object(&self, row: &[u8]) -> (Oid, LargeObject) {
        let mut values = self.objects.decode(row).into_iter();
        let mut oid = || match values.next() {
            Some(Datum::Oid(oid)) => oid,
            _ => Oid(0),
        };
        let (object, owner) = (oid(), oid());
        let mut text = || match values.next() {
            Some(Datum::Text(text)) => Some(text.to_string()),
            _ => None,
        };
        let (acl, comment) = (text(), text());
        (object, LargeObject { owner, acl: acl.as_deref().map(read_acl), comment })
    }

    /// The row of an object, if there is such an object.
    pub(super) fn object(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        object: Oid,
    ) -> ExecResult<Option<LargeObject>> {
        let key = key_of(&self.objects, &[Datum::Oid(object)]);
        let row = ctx.txn.get(&self.objects.meta, &key)?;
        Ok(row.map(|row| self.read_object(row).1))
    }

    /// The rows of so many objects at most behind one, in the order of their numbers.
    pub(super) fn objects_after(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        after: Option<Oid>,
        most: usize,
    ) -> ExecResult<Vec<(Oid, LargeObject)>> {
        let low = after.map(|object| key_of(&self.objects, &[Datum::Oid(object)]));
        let low = low.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = Vec::new();
        let range = KeyRange { low, high: Bound::Unbounded };
        ctx.txn.scan(&self.objects.meta, range, Direction::Ascending, &mut |_, row| {
            found.push(self.read_object(row));
            if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }

    /// Locks the row of an object in this mode; 42704 if there is none.
    pub(super) fn lock(&self, ctx: &mut ExecContext<'_, '_>, object: Oid, mode: LockMode) -> ExecResult<()> {
        let key = key_of(&self.objects, &[Datum::Oid(object)]);
        match ctx.txn.lock_row(&self.objects.meta, &key, mode, LockWait::Wait)? {
            true => Ok(()),
            false => Err(undefined(object).into()),
        }
    }

    /// Makes an object; 23505 if there is one of this number.
    pub(super) fn add(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        object: Oid,
        made: &LargeObject,
    ) -> ExecResult<()> {
        let values = row_of(object, made);
        let (mut row, mut key) = (Vec::new(), KeyBuf::new());
        self.objects.encode(|place| &values[place], None, &mut row, &mut key)?;
        let inserted = ctx.txn.insert(&self.objects.meta, &key, &row)?;
        self.objects.accept(inserted, ctx, &values)?;
        Ok(())
    }

    /// Changes the row of an object.
    pub(super) fn change(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        object: Oid,
        to: &LargeObject,
    ) -> ExecResult<()> {
        let values = row_of(object, to);
        let mut spaces = [Vec::new(), Vec::new(), Vec::new()];
        let mut changes = Vec::with_capacity(spaces.len());
        for (place, space) in (1_u16..).zip(&mut spaces) {
            let at = usize::from(place);
            changes.push((place, self.objects.codecs[at].encode(&values[at], space)?));
        }
        let key = key_of(&self.objects, &values[..1]);
        written(ctx.txn.update(&self.objects.meta, &key, &changes)?, object)
    }

    /// Drops the row of an object; whether it was there.
    pub(super) fn remove(&self, ctx: &mut ExecContext<'_, '_>, object: Oid) -> ExecResult<bool> {
        let key = key_of(&self.objects, &[Datum::Oid(object)]);
        Ok(ctx.txn.delete(&self.objects.meta, &key)?)
    }

    fn read_page(&self, row: &[u8]) -> Page {
        let value = |place: usize| {
            let at = &self.pages.meta.layout.places()[place];
            self.pages.codecs[place].read(at, row)
        };
        match (value(1), value(2)) {
            (Datum::Int4(number), Datum::Bytea(bytes)) => (number, bytes),
            _ => (0, Arc::from([])),
        }
    }

    fn page_key(&self, object: Oid, number: i32) -> KeyBuf {
        key_of(&self.pages, &[Datum::Oid(object), Datum::Int4(number)])
    }

    /// What a page holds, if it is there.
    pub(super) fn page(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        object: Oid,
        number: i32,
    ) -> ExecResult<Option<Arc<[u8]>>> {
        let key = self.page_key(object, number);
        let row = ctx.txn.get(&self.pages.meta, &key)?;
        Ok(row.map(|row| self.read_page(row).1))
    }

    /// The pages from a number on, so many at most.
    pub(super) fn pages_from(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        object: Oid,
        from: i32,
        most: usize,
    ) -> ExecResult<Vec<Page>> {
        self.some_pages(ctx, object, from, most, Direction::Ascending)
    }

    /// The last page of an object.
    pub(super) fn last_page(&self, ctx: &mut ExecContext<'_, '_>, object: Oid) -> ExecResult<Option<Page>> {
        Ok(self.some_pages(ctx, object, 0, 1, Direction::Descending)?.pop())
    }

    fn some_pages(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        object: Oid,
        from: i32,
        most: usize,
        direction: Direction,
    ) -> ExecResult<Vec<Page>> {
        let (low, high) = (self.page_key(object, from), self.page_key(object, i32::MAX));
        let range = KeyRange { low: Bound::Included(&low), high: Bound::Included(&high) };
        let mut found = Vec::new();
        ctx.txn.scan(&self.pages.meta, range, direction, &mut |_, row| {
            found.push(self.read_page(row));
            if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }

    /// Writes a page that is there, or makes it.
    pub(super) fn put_page(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        object: Oid,
        number: i32,
        bytes: &[u8],
        is_there: bool,
    ) -> ExecResult<()> {
        let values = [Datum::Oid(object), Datum::Int4(number), Datum::Bytea(Arc::from(bytes))];
        let (mut row, mut key) = (Vec::new(), KeyBuf::new());
        let done = if is_there {
            let cell = self.pages.codecs[2].encode(&values[2], &mut row)?;
            ctx.txn.update(&self.pages.meta, &self.page_key(object, number), &[(2, cell)])?
        } else {
            self.pages.encode(|place| &values[place], None, &mut row, &mut key)?;
            ctx.txn.insert(&self.pages.meta, &key, &row)?
        };
        written(done, object)
    }

    pub(super) fn remove_page(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        object: Oid,
        number: i32,
    ) -> ExecResult<bool> {
        let key = self.page_key(object, number);
        Ok(ctx.txn.delete(&self.pages.meta, &key)?)
    }
}
