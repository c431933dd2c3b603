//! Rows on their way into the engine: values to cells, cells to a row and its key.

use archipel_engine::Inserted;
use archipel_engine::cell::Cell;
use archipel_engine::schema::KeyColumn;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::storage::{ColumnPlace, KeyBuf};
use archipel_sql::catalog::TableRef;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use smallvec::SmallVec;

use crate::native::run::access::path::Meta;
use crate::native::run::constraint::duplicate_key::duplicate_key;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::row::Codec;

/// A cell that needed bytes of its own.
enum Made {
    Int8(i64),
    Bytes(Vec<u8>),
}

/// Cells of some values, made without allocating unless a value has no cell of its own.
pub(crate) struct Cells {
    made: SmallVec<[(usize, Made); 2]>,
}

impl Cells {
    /// Prepares what the values at these positions need.
    pub fn prepare<'d>(values: impl Iterator<Item = (Codec, &'d Datum)>) -> Result<Cells> {
        let mut made = SmallVec::new();
        for (position, (codec, value)) in values.enumerate() {
            if codec.encode_plain(value).is_none() {
                let mut space = Vec::new();
                let cell = match codec.encode(value, &mut space)? {
                    Cell::Int8(number) => Made::Int8(number),
                    _ => Made::Bytes(space),
                };
                made.push((position, cell));
            }
        }
        Ok(Cells { made })
    }

    /// The cell of a value at its position.
    #[inline]
    pub fn cell<'d>(&'d self, position: usize, codec: Codec, value: &'d Datum) -> Cell<'d> {
        if let Some(cell) = codec.encode_plain(value) {
            return cell;
        }
        match self.made.iter().find(|(at, _)| *at == position) {
            Some((_, Made::Int8(number))) => Cell::Int8(*number),
            Some((_, Made::Bytes(bytes))) => Cell::Bytes(bytes),
            None => Cell::Null,
        }
    }
}

/// A table as rows are written to it.
pub(crate) struct Target {
    pub table: TableRef,
    pub meta: Meta,
    /// Of the visible columns, then of what rows store for indexes alone: places in a row are
    /// counted so, but for the engine, to whom the hidden row number comes in between.
    pub codecs: Vec<Codec>,
    pub visible: usize,
    pub hidden: bool,
    /// The columns as the engine keeps them, in its order.
    stored: Vec<Stored>,
    /// Those of the storage key.
    key: Vec<(KeyColumn, Stored)>,
    /// The marks of those that must not be NULL.
    required: Vec<u8>,
}

/// A column as the engine keeps it.
#[derive(Clone, Copy)]
struct Stored {
    at: ColumnPlace,
    codec: Codec,
    /// The place whose value it has; `None` for the hidden row number.
    place: Option<usize>,
}

impl Target {
    pub fn new(table: &TableRef, meta: Meta) -> Target {
        let (visible, hidden) = (table.columns.len(), crate::row::has_hidden_id(table));
        let codecs: Vec<Codec> = table
            .columns
            .iter()
            .map(|column| column.ty)
            .chain(table.index_expressions().map(|(_, part)| part.ty))
            .enumerate()
            .map(|(place, ty)| {
                let stored = place + usize::from(hidden && place >= visible);
                Codec::of(ty).written(&meta.def, stored as u16)
            })
            .collect();
        let places = meta.layout.places().iter().enumerate();
        let stored: Vec<Stored> = places
            .map(|(stored, at)| {
                let place = match hidden && stored >= visible {
                    false => Some(stored),
                    true => (stored > visible).then(|| stored - 1),
                };
                let codec = place.and_then(|place| codecs.get(place)).copied().unwrap_or(Codec::Int8);
                Stored { at: *at, codec, place }
            })
            .collect();
        let key = meta.def.key.iter().map(|column| (*column, stored[usize::from(column.column)])).collect();
        let columns = table.columns.iter().enumerate().filter(|(_, column)| column.not_null);
        let required = meta.layout.null_marks(columns.map(|(place, _)| place));
        Target { table: table.clone(), codecs, visible, hidden, stored, key, required, meta }
    }

    /// Where the engine keeps a place.
    #[inline]
    pub fn stored_at(&self, place: usize) -> usize {
        place + usize::from(self.hidden && place >= self.visible)
    }

    /// Encodes a row and its storage key. `hidden` is the row number of a table without a
    /// primary key.
    pub fn encode<'d>(
        &self,
        value: impl Fn(usize) -> &'d Datum,
        hidden: Option<i64>,
        row: &mut Vec<u8>,
        key: &mut KeyBuf,
    ) -> Result<()> {
        self.encode_unless(value, hidden, row, key, |_| false)?;
        Ok(())
    }

    /// As [`Target::encode`], of a row of which nobody has asked yet whether columns are NULL that must
    /// not be; false, without its key, if one is.
    #[inline]
    pub fn encode_new<'d>(
        &self,
        value: impl Fn(usize) -> &'d Datum,
        hidden: Option<i64>,
        row: &mut Vec<u8>,
        key: &mut KeyBuf,
    ) -> Result<bool> {
        self.encode_unless(value, hidden, row, key, |row| self.meta.layout.any_null(row, &self.required))
    }

    #[inline]
    fn encode_unless<'d>(
        &self,
        value: impl Fn(usize) -> &'d Datum,
        hidden: Option<i64>,
        row: &mut Vec<u8>,
        key: &mut KeyBuf,
        refused: impl Fn(&[u8]) -> bool,
    ) -> Result<bool> {
        row.clear();
        if self.encode_plain(&value, hidden, row) {
            if refused(row) {
                return Ok(false);
            }
            let plain = |stored: &Stored| match stored.place {
                Some(place) => stored.codec.encode_plain(value(place)),
                None => hidden.map(Cell::Int8),
            };
            self.encode_key(&value, plain, key);
            return Ok(true);
        }
        // Some value needs bytes of its own, or there are many bytes.
        let prepared = Cells::prepare(self.codecs.iter().enumerate().map(|(i, codec)| (*codec, value(i))))?;
        let made = |stored: &Stored| match stored.place {
            Some(place) => Some(prepared.cell(place, stored.codec, value(place))),
            None => hidden.map(Cell::Int8),
        };
        row.clear();
        self.meta.layout.encode_each(row, |column| made(&self.stored[column]));
        if refused(row) {
            return Ok(false);
        }
        self.encode_key(&value, made, key);
        Ok(true)
    }

    /// Encodes a row if all its values have cells, and not many bytes.
    #[inline]
    fn encode_plain<'d>(
        &self,
        value: &impl Fn(usize) -> &'d Datum,
        hidden: Option<i64>,
        row: &mut Vec<u8>,
    ) -> bool {
        let mut writer = self.meta.layout.writer(row);
        for Stored { at, codec, place } in &self.stored {
            let written = match (place, hidden) {
                (Some(place), _) => codec.write(value(*place), at, &mut writer),
                (None, Some(number)) => {
                    writer.cell(at, Cell::Int8(number));
                    true
                }
                (None, None) => false,
            };
            if !written {
                return false;
            }
        }
        writer.is_whole()
    }

    /// The storage key of a row of these values, and cells.
    #[inline]
    fn encode_key<'d, 'c>(
        &self,
        value: &impl Fn(usize) -> &'d Datum,
        cell: impl Fn(&Stored) -> Option<Cell<'c>>,
        key: &mut KeyBuf,
    ) {
        key.clear();
        for (column, stored) in &self.key {
            if let Some(place) = stored.place
                && stored.codec.append_integer(value(place), column, key)
            {
                continue;
            }
            let cell = cell(stored).unwrap_or(Cell::Null);
            encode_cell(key, cell, column, self.meta.def.columns[usize::from(column.column)]);
        }
    }

    /// A stored row, but for its hidden number.
    pub fn decode(&self, row: &[u8]) -> Vec<Datum> {
        self.codecs
            .iter()
            .enumerate()
            .map(|(place, codec)| codec.read(&self.meta.layout.places()[self.stored_at(place)], row))
            .collect()
    }

    /// The row under a key, decoded; empty if it is gone.
    pub fn stored(&self, ctx: &mut ExecContext<'_, '_>, key: &[u8]) -> ExecResult<Vec<Datum>> {
        Ok(ctx.txn.get_for_write(&self.meta, key)?.map(|row| self.decode(row)).unwrap_or_default())
    }

    /// Turns the engine's refusal into PostgreSQL's error.
    pub fn accept(&self, inserted: Inserted, ctx: &ExecContext<'_, '_>, row: &[Datum]) -> ExecResult<bool> {
        match inserted {
            Inserted::Ok => Ok(true),
            Inserted::Missing => Ok(false),
            Inserted::DuplicateKey(tree) => Err(duplicate_key(&self.table, tree, row, &ctx.functions).into()),
        }
    }
}
