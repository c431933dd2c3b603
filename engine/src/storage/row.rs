//! Rows: one byte buffer each, without a header for transactions.
//!
//! ```text
//! [format 1][null bitmap ⌈n/8⌉][fixed columns][end offset of each Bytes column][bytes …]
//! ```
//!
//! Offsets are 16 bits wide while the bytes fit, else 32 (format bit 0): most rows of OLTP
//! tables are a few hundred bytes with a dozen short texts. Every column is found in O(1) from
//! the layout; a fixed column is overwritten in place; a `Bytes` column of equal length too.
//! A row beyond [`ROW_BYTES_MAX`] is never stored, so that no offset wraps.
//! Integers are little-endian, as the machines we run on.

use std::ops::Range;

use smallvec::SmallVec;

use crate::cell::{Cell, ColumnKind};

/// The stored form of one row.
pub type Row = Box<[u8]>;

const WIDE: u8 = 1;

/// No row that is stored has more bytes: what PostgreSQL allocates at most for one value. Lengths of
/// rows have 32 bits in many places.
pub const ROW_BYTES_MAX: usize = (1 << 30) - 1;

/// Bytes a row and its key cost beyond their own, about.
const ENTRY_OVERHEAD_BYTES: i64 = 32;

/// What an entry counts against `max_memory`.
pub(crate) fn entry_bytes(key: &[u8], value: &[u8]) -> i64 {
    (key.len() + value.len()) as i64 + ENTRY_OVERHEAD_BYTES
}

/// Where each column of a table lies inside its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLayout {
    columns: Vec<ColumnKind>,
    places: Vec<ColumnPlace>,
    variable_count: usize,
    bitmap_at: usize,
    /// Start of the end offsets, which is the end of the fixed area.
    offsets_at: usize,
}

/// Where one column lies inside the rows of a layout: all it takes to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPlace {
    kind: ColumnKind,
    null_mask: u8,
    null_at: u32,
    /// Of a fixed column, its bytes; of a `Bytes` column, its number among them.
    at: u32,
    offsets_at: u32,
    variable_count: u32,
}

impl ColumnPlace {
    /// The column's cell in an encoded row.
    #[inline]
    pub fn get<'r>(&self, row: &'r [u8]) -> Cell<'r> {
        if row[self.null_at as usize] & self.null_mask != 0 {
            return Cell::Null;
        }
        if self.kind == ColumnKind::Bytes {
            let (from, to) = self.bytes(row);
            return Cell::Bytes(&row[from..to]);
        }
        read_fixed(&row[self.at as usize..], self.kind)
    }

    /// The little-endian bytes of a fixed column that is `N` wide, which the caller knows; `None` is
    /// NULL.
    #[inline]
    pub fn fixed<const N: usize>(&self, row: &[u8]) -> Option<[u8; N]> {
        debug_assert_eq!(width(self.kind), N, "a column of kind {:?}", self.kind);
        if row[self.null_at as usize] & self.null_mask != 0 {
            return None;
        }
        Some(take(&row[self.at as usize..]))
    }

    /// The bytes of a `Bytes` column, which the caller knows it is; `None` is NULL.
    #[inline]
    pub fn variable<'r>(&self, row: &'r [u8]) -> Option<&'r [u8]> {
        debug_assert_eq!(self.kind, ColumnKind::Bytes);
        if row[self.null_at as usize] & self.null_mask != 0 {
            return None;
        }
        let (from, to) = self.bytes(row);
        Some(&row[from..to])
    }

    /// Where the bytes of a `Bytes` column start and end.
    #[inline]
    fn bytes(&self, row: &[u8]) -> (usize, usize) {
        let (nth, offsets_at) = (self.at as usize, self.offsets_at as usize);
        if row[0] & WIDE != 0 {
            return self.wide_bytes(row);
        }
        let heap_at = offsets_at + 2 * self.variable_count as usize;
        let at = offsets_at + 2 * nth;
        if nth == 0 {
            let to = u16::from_le_bytes([row[at], row[at + 1]]);
            return (heap_at, heap_at + usize::from(to));
        }
        let ends = &row[at - 2..at + 2];
        let from = u16::from_le_bytes([ends[0], ends[1]]);
        let to = u16::from_le_bytes([ends[2], ends[3]]);
        (heap_at + usize::from(from), heap_at + usize::from(to))
    }

    #[cold]
    fn wide_bytes(&self, row: &[u8]) -> (usize, usize) {
        let (nth, offsets_at) = (self.at as usize, self.offsets_at as usize);
        let heap_at = offsets_at + 4 * self.variable_count as usize;
        let end = |nth: usize| u32::from_le_bytes(take(&row[offsets_at + 4 * nth..])) as usize;
        let from = if nth == 0 { 0 } else { end(nth - 1) };
        (heap_at + from, heap_at + end(nth))
    }
}

/// Which bytes of a row a change may have made others: ranges in their order, none beside another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched(SmallVec<[Range<usize>; 4]>);

impl Touched {
    /// Ranges closer than this are one.
    const GAP_MIN: usize = 4;

    /// All bytes of a row.
    pub fn all(len: usize) -> Touched {
        let mut touched = Touched::default();
        touched.add(0..len);
        touched
    }

    /// Adds some bytes.
    #[inline]
    pub fn add(&mut self, bytes: Range<usize>) {
        if bytes.is_empty() {
            return;
        }
        // Mostly they are beside the last ones, and behind them.
        if let Some(last) = self.0.last_mut()
            && last.start <= bytes.start
            && bytes.start < last.end + Self::GAP_MIN
        {
            last.end = last.end.max(bytes.end);
            return;
        }
        self.insert(bytes);
    }

    fn insert(&mut self, mut bytes: Range<usize>) {
        let mut at = 0;
        while let Some(range) = self.0.get(at) {
            if range.end + Self::GAP_MIN <= bytes.start {
                at += 1;
            } else if bytes.end + Self::GAP_MIN <= range.start {
                break;
            } else {
                bytes = bytes.start.min(range.start)..bytes.end.max(range.end);
                self.0.remove(at);
            }
        }
        self.0.insert(at, bytes);
    }

    /// The ranges.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.0
    }

    /// From the first of them to the last.
    pub fn hull(&self) -> Range<usize> {
        match (self.0.first(), self.0.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }
}

fn width(kind: ColumnKind) -> usize {
    match kind {
        ColumnKind::Bool => 1,
        ColumnKind::Int2 => 2,
        ColumnKind::Int4 | ColumnKind::Float4 => 4,
        ColumnKind::Int8 | ColumnKind::Float8 => 8,
        ColumnKind::Fixed16 => 16,
        ColumnKind::Bytes => 0,
    }
}

impl RowLayout {
    /// The layout of rows with these columns.
    pub fn new(columns: &[ColumnKind]) -> Self {
        let bitmap_at = 1;
        let fixed_at = bitmap_at + columns.len().div_ceil(8);
        let mut at = fixed_at;
        let mut variable_count = 0;
        let mut places: Vec<ColumnPlace> = columns
            .iter()
            .enumerate()
            .map(|(column, &kind)| {
                let place = ColumnPlace {
                    kind,
                    null_mask: 1 << (column % 8),
                    null_at: (bitmap_at + column / 8) as u32,
                    at: if kind == ColumnKind::Bytes { variable_count as u32 } else { at as u32 },
                    offsets_at: 0,
                    variable_count: 0,
                };
                variable_count += usize::from(kind == ColumnKind::Bytes);
                at += width(kind);
                place
            })
            .collect();
        for place in &mut places {
            place.offsets_at = at as u32;
            place.variable_count = variable_count as u32;
        }
        RowLayout { columns: columns.to_vec(), places, variable_count, bitmap_at, offsets_at: at }
    }

    /// The physical kinds, in row order.
    pub fn columns(&self) -> &[ColumnKind] {
        &self.columns
    }

    /// Appends the encoded row to `out`. `cells` has one cell per column, each `Null` or of the
    /// column's kind. One with more than [`ROW_BYTES_MAX`] bytes is not whole, and still longer than
    /// that.
    ///
    /// # Panics
    /// On a cell of another kind or a wrong number of cells: a bug above the engine.
    pub fn encode(&self, cells: &[Cell<'_>], out: &mut Vec<u8>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell per column");
        let _ = self.encode_each(out, |column| cells.get(column).copied());
    }

    /// As [`RowLayout::encode`], asking for the cells; false, with an unusable `out`, if one is
    /// not to be had. May ask twice.
    #[inline]
    pub fn encode_each<'c>(&self, out: &mut Vec<u8>, cell: impl Fn(usize) -> Option<Cell<'c>>) -> bool {
        let start = out.len();
        let mut writer = self.writer(out);
        for (column, place) in self.places.iter().enumerate() {
            let Some(cell) = cell(column) else { return false };
            writer.cell(place, cell);
        }
        if writer.is_whole() {
            return true;
        }
        out.truncate(start);
        self.encode_wide(out, &cell).is_some()
    }

    /// Begins a row at the end of `out`. Its columns follow, all of them and in row order.
    #[inline]
    pub fn writer<'o>(&self, out: &'o mut Vec<u8>) -> RowWriter<'o> {
        let start = out.len();
        let heap_at = start + self.offsets_at + 2 * self.variable_count;
        out.resize(heap_at, 0);
        RowWriter { out, start, heap_at }
    }

    /// Encodes a row of more bytes than narrow offsets reach. Of one beyond [`ROW_BYTES_MAX`] the rest
    /// is left out: whoever stores rows refuses it by its length, and its offsets are good until then.
    #[cold]
    fn encode_wide<'c>(&self, out: &mut Vec<u8>, cell: &impl Fn(usize) -> Option<Cell<'c>>) -> Option<()> {
        let start = out.len();
        let heap_at = self.offsets_at + 4 * self.variable_count;
        out.resize(start + heap_at, 0);
        out[start] = WIDE;
        for (column, place) in self.places.iter().enumerate() {
            let cell = cell(column)?;
            if matches!(cell, Cell::Null) {
                out[start + place.null_at as usize] |= place.null_mask;
            }
            if place.kind != ColumnKind::Bytes {
                write_fixed(&mut out[start + place.at as usize..], cell, place.kind);
                continue;
            }
            match cell {
                Cell::Bytes(bytes) => {
                    let enough = (start + ROW_BYTES_MAX + 1).saturating_sub(out.len());
                    out.extend_from_slice(&bytes[..bytes.len().min(enough)]);
                }
                Cell::Null => {}
                other => panic!("column {column} is Bytes, the cell is {other:?}"),
            }
            let end = (out.len() - start - heap_at) as u32;
            let slot = start + self.offsets_at + 4 * place.at as usize;
            out[slot..slot + 4].copy_from_slice(&end.to_le_bytes());
        }
        Some(())
    }

    /// Encodes into a new row.
    pub fn encode_row(&self, cells: &[Cell<'_>]) -> Row {
        let mut out = Vec::new();
        self.encode(cells, &mut out);
        out.into_boxed_slice()
    }

    /// One column of an encoded row.
    #[inline]
    pub fn get<'r>(&self, row: &'r [u8], column: usize) -> Cell<'r> {
        self.places[column].get(row)
    }

    /// Where the columns lie, in row order.
    pub fn places(&self) -> &[ColumnPlace] {
        &self.places
    }

    /// Whether a column of an encoded row is NULL.
    #[inline]
    pub fn is_null(&self, row: &[u8], column: usize) -> bool {
        row[self.bitmap_at + column / 8] & (1 << (column % 8)) != 0
    }

    /// The marks of some columns, for [`RowLayout::any_null`].
    pub fn null_marks(&self, columns: impl Iterator<Item = usize>) -> Vec<u8> {
        let mut marks = vec![0; self.columns.len().div_ceil(8)];
        columns.for_each(|column| marks[column / 8] |= 1 << (column % 8));
        marks
    }

    /// Whether one of the columns with these marks is NULL in an encoded row.
    #[inline]
    pub fn any_null(&self, row: &[u8], marks: &[u8]) -> bool {
        row[self.bitmap_at..].iter().zip(marks).any(|(nulls, mark)| nulls & mark != 0)
    }

    /// All columns of an encoded row, appended to `out`.
    pub fn decode<'r>(&self, row: &'r [u8], out: &mut Vec<Cell<'r>>) {
        out.extend((0..self.columns.len()).map(|column| self.get(row, column)));
    }

    /// Overwrites some columns. Fixed-width columns and `Bytes` of unchanged length are written
    /// in place; any other change rebuilds the row. Answers which bytes may be others now.
    pub fn apply(&self, row: &mut Row, changes: &[(u16, Cell<'_>)]) -> Touched {
        let mut rebuild = false;
        let mut touched = Touched::default();
        for &(column, cell) in changes {
            let column = usize::from(column);
            let place = &self.places[column];
            if place.kind != ColumnKind::Bytes {
                self.set_null(row, column, matches!(cell, Cell::Null), &mut touched);
                let at = place.at as usize;
                touched.add(at..at + write_fixed(&mut row[at..], cell, place.kind));
                continue;
            }
            let (from, to) = place.bytes(row);
            match cell {
                Cell::Null if from == to => self.set_null(row, column, true, &mut touched),
                Cell::Bytes(bytes) if bytes.len() == to - from => {
                    row[from..to].copy_from_slice(bytes);
                    touched.add(from..to);
                    self.set_null(row, column, false, &mut touched);
                }
                Cell::Null | Cell::Bytes(_) => rebuild = true,
                other => panic!("column {column} is Bytes, the cell is {other:?}"),
            }
        }
        if rebuild {
            let rebuilt = {
                let mut cells = Vec::with_capacity(self.columns.len());
                self.decode(row, &mut cells);
                for &(column, cell) in changes {
                    cells[usize::from(column)] = cell;
                }
                self.encode_row(&cells)
            };
            *row = rebuilt;
            return Touched::all(row.len());
        }
        touched
    }

    /// Whether `row` can have been written by [`Self::encode`] with this layout: every offset
    /// stays inside and grows. Recovery checks rows it reads before anything relies on them.
    pub fn is_valid(&self, row: &[u8]) -> bool {
        if row.is_empty() || row[0] & !WIDE != 0 {
            return false;
        }
        let heap_at = self.heap_at(row);
        if row.len() < heap_at {
            return false;
        }
        let mut previous = 0;
        for nth in 0..self.variable_count {
            let end = self.end_offset(row, nth);
            if end < previous {
                return false;
            }
            previous = end;
        }
        heap_at + previous == row.len()
    }

    #[inline]
    fn set_null(&self, row: &mut [u8], column: usize, null: bool, touched: &mut Touched) {
        let at = self.bitmap_at + column / 8;
        let mask = 1 << (column % 8);
        if (row[at] & mask != 0) != null {
            row[at] ^= mask;
            touched.add(at..at + 1);
        }
    }

    fn heap_at(&self, row: &[u8]) -> usize {
        self.offsets_at + if row[0] & WIDE != 0 { 4 } else { 2 } * self.variable_count
    }

    fn end_offset(&self, row: &[u8], nth: usize) -> usize {
        if row[0] & WIDE == 0 {
            let at = self.offsets_at + 2 * nth;
            usize::from(u16::from_le_bytes([row[at], row[at + 1]]))
        } else {
            let at = self.offsets_at + 4 * nth;
            u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]) as usize
        }
    }
}

fn take<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes[..N].try_into().expect("the slice has N bytes by construction")
}

#[inline]
fn read_fixed(at: &[u8], kind: ColumnKind) -> Cell<'static> {
    match kind {
        ColumnKind::Bool => Cell::Bool(at[0] != 0),
        ColumnKind::Int2 => Cell::Int2(i16::from_le_bytes(take(at))),
        ColumnKind::Int4 => Cell::Int4(i32::from_le_bytes(take(at))),
        ColumnKind::Int8 => Cell::Int8(i64::from_le_bytes(take(at))),
        ColumnKind::Float4 => Cell::Float4(f32::from_le_bytes(take(at))),
        ColumnKind::Float8 => Cell::Float8(f64::from_le_bytes(take(at))),
        ColumnKind::Fixed16 => Cell::Fixed16(take(at)),
        ColumnKind::Bytes => unreachable!("Bytes columns are never placed in the fixed area"),
    }
}

/// Writes a fixed column; answers how many bytes it has.
#[inline]
fn write_fixed(at: &mut [u8], cell: Cell<'_>, kind: ColumnKind) -> usize {
    fn put<const N: usize>(at: &mut [u8], bytes: [u8; N]) -> usize {
        at[..N].copy_from_slice(&bytes);
        N
    }
    match (cell, kind) {
        (Cell::Int4(value), ColumnKind::Int4) => put(at, value.to_le_bytes()),
        (Cell::Int8(value), ColumnKind::Int8) => put(at, value.to_le_bytes()),
        (Cell::Null, _) => {
            at[..width(kind)].fill(0);
            width(kind)
        }
        (Cell::Bool(value), ColumnKind::Bool) => put(at, [u8::from(value)]),
        (Cell::Int2(value), ColumnKind::Int2) => put(at, value.to_le_bytes()),
        (Cell::Float4(value), ColumnKind::Float4) => put(at, value.to_le_bytes()),
        (Cell::Float8(value), ColumnKind::Float8) => put(at, value.to_le_bytes()),
        (Cell::Fixed16(value), ColumnKind::Fixed16) => put(at, value),
        (cell, kind) => panic!("cell {cell:?} does not fit a column of kind {kind:?}"),
    }
}

/// A row being written ([`RowLayout::writer`]), its offsets narrow.
pub struct RowWriter<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    /// Where the bytes of its `Bytes` columns start.
    heap_at: usize,
}

impl RowWriter<'_> {
    /// The next column is NULL.
    #[inline]
    pub fn null(&mut self, place: &ColumnPlace) {
        self.out[self.start + place.null_at as usize] |= place.null_mask;
        if place.kind == ColumnKind::Bytes {
            self.end(place);
        }
    }

    /// The next column is of `kind`, a fixed one, with these little-endian bytes.
    ///
    /// # Panics
    /// If it is of another kind: a bug above the engine.
    #[inline]
    pub fn fixed<const N: usize>(&mut self, place: &ColumnPlace, kind: ColumnKind, bytes: [u8; N]) {
        assert!(place.kind == kind, "a column of kind {:?} is given a value of kind {kind:?}", place.kind);
        let at = self.start + place.at as usize;
        self.out[at..at + N].copy_from_slice(&bytes);
    }

    /// The next column is a `Bytes` column with these.
    ///
    /// # Panics
    /// If it is of another kind: a bug above the engine.
    #[inline]
    pub fn bytes(&mut self, place: &ColumnPlace, bytes: &[u8]) {
        assert!(place.kind == ColumnKind::Bytes, "a column of kind {:?} is given bytes", place.kind);
        self.out.extend_from_slice(bytes);
        self.end(place);
    }

    /// The next column.
    ///
    /// # Panics
    /// On a cell of another kind: a bug above the engine.
    #[inline]
    pub fn cell(&mut self, place: &ColumnPlace, cell: Cell<'_>) {
        match cell {
            Cell::Null => self.null(place),
            Cell::Bytes(bytes) => self.bytes(place, bytes),
            cell => {
                write_fixed(&mut self.out[self.start + place.at as usize..], cell, place.kind);
            }
        }
    }

    /// Notes where a `Bytes` column ends.
    #[inline]
    fn end(&mut self, place: &ColumnPlace) {
        // Wraps if the bytes do not fit; the row is not whole then.
        let end = (self.out.len() - self.heap_at) as u16;
        let at = self.start + (place.offsets_at + 2 * place.at) as usize;
        self.out[at..at + 2].copy_from_slice(&end.to_le_bytes());
    }

    /// Whether narrow offsets reach all its bytes; else the row has to be encoded anew.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.out.len() - self.heap_at <= usize::from(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> RowLayout {
        RowLayout::new(&[
            ColumnKind::Int4,
            ColumnKind::Bytes,
            ColumnKind::Float8,
            ColumnKind::Bytes,
            ColumnKind::Bool,
            ColumnKind::Fixed16,
            ColumnKind::Int2,
            ColumnKind::Int8,
            ColumnKind::Float4,
        ])
    }

    fn cells<'a>(first: &'a [u8], second: Option<&'a [u8]>) -> Vec<Cell<'a>> {
        vec![
            Cell::Int4(-7),
            Cell::Bytes(first),
            Cell::Float8(1.5),
            second.map_or(Cell::Null, Cell::Bytes),
            Cell::Bool(true),
            Cell::Fixed16([9; 16]),
            Cell::Int2(-2),
            Cell::Int8(i64::MIN),
            Cell::Null,
        ]
    }

    #[test]
    fn columns_come_back_as_encoded() {
        let layout = layout();
        let long = vec![b'x'; 70_000];
        for (first, second) in [(&b"abc"[..], Some(&b""[..])), (b"", None), (&long, Some(b"tail"))] {
            let cells = cells(first, second);
            let row = layout.encode_row(&cells);
            assert!(layout.is_valid(&row));
            let mut decoded = Vec::new();
            layout.decode(&row, &mut decoded);
            assert_eq!(decoded, cells);
        }
    }

    #[test]
    fn apply_equals_encoding_afresh() {
        let layout = layout();
        let mut row = layout.encode_row(&cells(b"abc", Some(b"de")));
        layout.apply(&mut row, &[(0, Cell::Int4(8)), (1, Cell::Bytes(b"xyz"))]);
        let mut expected = cells(b"xyz", Some(b"de"));
        expected[0] = Cell::Int4(8);
        assert_eq!(row, layout.encode_row(&expected));
        layout.apply(&mut row, &[(3, Cell::Null), (8, Cell::Float4(2.0)), (1, Cell::Bytes(b"longer"))]);
        expected[3] = Cell::Null;
        expected[8] = Cell::Float4(2.0);
        expected[1] = Cell::Bytes(b"longer");
        assert_eq!(row, layout.encode_row(&expected));
        layout.apply(&mut row, &[(0, Cell::Null), (3, Cell::Bytes(b""))]);
        expected[0] = Cell::Null;
        expected[3] = Cell::Bytes(b"");
        assert_eq!(row, layout.encode_row(&expected));
    }

    #[test]
    fn apply_tells_which_bytes_it_touched() {
        let layout = layout();
        let first = layout.encode_row(&cells(b"abc", Some(b"de")));
        let changes: [&[(u16, Cell<'_>)]; 6] = [
            &[(0, Cell::Int4(8))],
            &[(4, Cell::Bool(false)), (7, Cell::Int8(5)), (6, Cell::Int2(1))],
            &[(1, Cell::Bytes(b"xyz"))],
            &[(8, Cell::Float4(2.0)), (0, Cell::Null)],
            &[(3, Cell::Null)],
            &[],
        ];
        for changes in changes {
            let mut row = first.clone();
            let touched = layout.apply(&mut row, changes);
            if row.len() != first.len() {
                assert_eq!(touched, Touched::all(row.len()), "{changes:?}");
                continue;
            }
            for at in 0..row.len() {
                let noted = touched.ranges().iter().any(|range| range.contains(&at));
                assert!(noted || row[at] == first[at], "byte {at} of {changes:?}");
            }
        }
        let mut row = first.clone();
        assert_eq!(layout.apply(&mut row, &[(0, Cell::Int4(8))]).hull().len(), 4);
    }

    #[test]
    fn touched_bytes_are_ranges_apart_from_each_other() {
        let mut touched = Touched::default();
        for bytes in [40..44, 0..1, 20..28, 30..31, 5..5, 2..3] {
            touched.add(bytes);
        }
        assert_eq!(touched.ranges(), [0..3, 20..31, 40..44]);
        touched.add(2..41);
        assert_eq!((touched.ranges().len(), touched.hull()), (1, 0..44));
    }

    #[test]
    fn damaged_rows_are_noticed() {
        let layout = layout();
        let row = layout.encode_row(&cells(b"abc", Some(b"de")));
        assert!(!layout.is_valid(&row[..row.len() - 1]));
        assert!(!layout.is_valid(&[]));
        let mut bad = row.clone();
        bad[0] = 0x80;
        assert!(!layout.is_valid(&bad));
    }
}
