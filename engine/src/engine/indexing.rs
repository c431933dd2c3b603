//! Tables as recovery needs them: rows checked, index entries made, memory counted.
//!
//! Tables differ in length by orders of magnitude, so what threads share out is slices of them: each slice's
//! index entries come out sorted, and an index is the merge of its table's slices. That is shared out, too,
//! by ranges of the index's keys, whose trees are joined at the end.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::open::OpenError;
use crate::log::StoreError;
use crate::parallel::in_parallel;
use crate::storage::row::entry_bytes;
use crate::storage::tree::Builder;
use crate::storage::{KeyBuf, Row, Tree};
use crate::table::TableMeta;

/// A table whose rows may be relied on, and its index trees, whole.
pub(super) struct BuiltTable {
    pub table: Arc<TableMeta>,
    pub rows: Tree,
    /// In the order of the table's indexes.
    pub indexes: Vec<Tree>,
    /// Accounted bytes of rows and entries.
    pub memory: i64,
}

/// A table's definition and its recovered rows.
type Work = (Arc<TableMeta>, Tree);

/// Index entries: the entry's key and the storage key of its row.
type Entries = Vec<(KeyBuf, Row)>;

/// Rows of a slice: enough work for a thread to take, and few slices to merge.
const SLICE_ROWS: u64 = 1 << 17;

impl BuiltTable {
    /// Builds tables on up to `threads` threads; in their order.
    pub fn all(work: Vec<Work>, threads: usize) -> Result<Vec<BuiltTable>, OpenError> {
        BuiltTable::all_in_slices(work, threads, SLICE_ROWS)
    }

    fn all_in_slices(work: Vec<Work>, threads: usize, slice_rows: u64) -> Result<Vec<BuiltTable>, OpenError> {
        let mut slices = Vec::new();
        for (number, (_, rows)) in work.iter().enumerate() {
            slices.extend((0..rows.len()).step_by(slice_rows as usize).map(|from| (number, from)));
        }
        let read = in_parallel(slices, threads, |(number, from)| {
            let (table, rows) = &work[number];
            (number, Slice::read(table, rows, from, slice_rows))
        });
        let mut memory = vec![0; work.len()];
        let mut runs: Vec<Vec<Vec<Entries>>> =
            work.iter().map(|(table, _)| table.indexes.iter().map(|_| Vec::new()).collect()).collect();
        for (number, slice) in read {
            let slice = slice?;
            memory[number] += slice.memory;
            for (runs, entries) in runs[number].iter_mut().zip(slice.entries) {
                runs.push(entries);
            }
        }
        let mut indexes = Vec::new();
        for (number, runs) in runs.into_iter().enumerate() {
            indexes.extend(runs.into_iter().enumerate().map(|(index, runs)| ((number, index), runs)));
        }
        let mut trees = in_parallel(divided(indexes, threads, slice_rows as usize), threads, |range| {
            let (number, index) = range.of;
            (range.of, range.at, build_range(&work[number].0, index, range.runs))
        });
        trees.sort_by_key(|(of, at, _)| (*of, *at));
        let mut built: Vec<BuiltTable> = work
            .into_iter()
            .zip(memory)
            .map(|((table, rows), memory)| BuiltTable { table, rows, indexes: Vec::new(), memory })
            .collect();
        for ((number, index), _, tree) in trees {
            let indexes = &mut built[number].indexes;
            match indexes.get_mut(index) {
                // The ranges of an index follow one another.
                Some(before) => before.append(tree?),
                None => indexes.push(tree?),
            }
        }
        Ok(built)
    }
}

/// The number of a table, and of an index among the table's.
type IndexNumber = (usize, usize);

/// The entries of a range of an index, from each of its sorted runs.
struct Range {
    of: IndexNumber,
    /// Among the ranges of the index.
    at: usize,
    runs: Vec<Entries>,
}

/// Divides the sorted runs of indexes into ranges of keys with about so many entries each, or more, the longest
/// first: then none is left to run alone at the end. Every index has a range.
fn divided(indexes: Vec<(IndexNumber, Vec<Entries>)>, threads: usize, entries: usize) -> Vec<Range> {
    let mut cuts: BTreeMap<IndexNumber, Vec<KeyBuf>> = BTreeMap::new();
    let mut runs = Vec::new();
    let mut ranges: BTreeMap<(IndexNumber, usize), Vec<Entries>> = BTreeMap::new();
    for (of, of_index) in indexes {
        cuts.insert(of, cuts_between(&of_index, threads, entries));
        ranges.insert((of, 0), Vec::new());
        runs.extend(of_index.into_iter().map(|run| (of, run)));
    }
    let cut = in_parallel(runs, threads, |(of, mut run)| {
        let cut = |key: &KeyBuf| {
            let at = run.partition_point(|(entry, _)| entry < key);
            run.split_off(at)
        };
        let mut parts: Vec<Entries> = cuts[&of].iter().rev().map(cut).collect();
        // It keeps room for all that was cut off, which the parts have now.
        run.shrink_to_fit();
        parts.push(run);
        parts.reverse();
        (of, parts)
    });
    for (of, parts) in cut {
        for (at, part) in parts.into_iter().enumerate() {
            ranges.entry((of, at)).or_default().push(part);
        }
    }
    let mut ranges: Vec<Range> = ranges.into_iter().map(|((of, at), runs)| Range { of, at, runs }).collect();
    ranges.sort_by_key(|range| std::cmp::Reverse(range.runs.iter().map(Vec::len).sum::<usize>()));
    ranges
}

/// Of each range so many entries are looked at, to find where the next one begins.
const SAMPLES_OF_RANGE: usize = 32;
/// And of each run at least so many: its first entry alone tells nothing of where the others lie.
const SAMPLES_OF_RUN: usize = 8;
/// An index has no more ranges than these for each thread: every run is cut for each of them.
const RANGES_OF_THREAD: usize = 8;

/// Keys that divide sorted runs into ranges of at least about so many entries.
fn cuts_between(runs: &[Entries], threads: usize, entries: usize) -> Vec<KeyBuf> {
    let all: usize = runs.iter().map(Vec::len).sum();
    let ranges = all.div_ceil(entries.max(1)).min(threads.max(1) * RANGES_OF_THREAD).max(1);
    let every = (all / ranges / SAMPLES_OF_RANGE).max(1);
    let samples = runs.iter().flat_map(|run| {
        let step = every.min(run.len() / SAMPLES_OF_RUN).max(1);
        run.iter().skip(step / 2).step_by(step)
    });
    let mut samples: Vec<&KeyBuf> = samples.map(|(key, _)| key).collect();
    samples.sort_unstable();
    let mut cuts: Vec<KeyBuf> = (1..ranges)
        .filter_map(|range| samples.get(range * samples.len() / ranges))
        .map(|key| (*key).clone())
        .collect();
    cuts.dedup();
    cuts
}

/// What a slice of a table's rows gives.
struct Slice {
    memory: i64,
    /// Of each index, sorted.
    entries: Vec<Entries>,
}

impl Slice {
    /// Reads up to `count` rows from the `from`-th on.
    fn read(table: &TableMeta, rows: &Tree, from: u64, count: u64) -> Result<Slice, OpenError> {
        let room = rows.len().saturating_sub(from).min(count) as usize;
        let mut entries: Vec<Entries> = table.indexes.iter().map(|_| Vec::with_capacity(room)).collect();
        let mut memory = 0;
        let low = rows.nth(from).map_or(Bound::Unbounded, |(key, _)| Bound::Included(key));
        for (key, row) in rows.cursor(low).take(room) {
            // Nothing may rely on a row before this.
            if !table.layout.is_valid(row) {
                let message = format!("a row of table {} does not fit its columns", table.def.name);
                return Err(StoreError::Damaged(message).into());
            }
            memory += entry_bytes(key, row);
            for (index, entries) in table.indexes.iter().zip(&mut entries) {
                let mut entry = KeyBuf::new();
                table.index_key(index, row, key, &mut entry);
                memory += entry_bytes(&entry, key);
                entries.push((entry, Row::from(key)));
            }
        }
        entries.iter_mut().for_each(|entries| entries.sort_unstable());
        Ok(Slice { memory, entries })
    }
}

/// The tree of a range of an index.
fn build_range(table: &TableMeta, index: usize, runs: Vec<Entries>) -> Result<Tree, OpenError> {
    let mut entries: Entries = runs.into_iter().flatten().collect();
    // Finds the sorted runs and merges them.
    entries.sort();
    let mut tree = Builder::new();
    for (entry, key) in entries {
        if tree.push(&entry, key, 0).is_err() {
            let (table, index) = (table.def.name.clone(), table.indexes[index].def.name.clone());
            return Err(OpenError::Index { table, index });
        }
    }
    Ok(tree.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cell, ColumnKind};
    use crate::id::{GroupId, TreeId};
    use crate::schema::{IndexDef, IndexPlacement, KeyColumn, Placement, TableDef};
    use crate::table::Schema;

    fn part(column: u16) -> KeyColumn {
        KeyColumn { column, descending: false, nulls_first: false, nullable: false, form: Default::default() }
    }

    fn index(id: u32, column: u16, unique: bool) -> IndexDef {
        let placement = IndexPlacement::Global { group: GroupId(id) };
        IndexDef {
            id: TreeId(id),
            name: format!("index {id}"),
            key: vec![part(column)],
            unique,
            nulls_equal: false,
            placement,
        }
    }

    fn table(id: u32, indexes: Vec<IndexDef>) -> Arc<TableMeta> {
        let def = TableDef {
            id: TreeId(id),
            name: format!("table {id}"),
            columns: vec![ColumnKind::Int4, ColumnKind::Int4, ColumnKind::Int4],
            key: vec![part(0)],
            placement: Placement::Distributed { group: GroupId(id) },
            indexes,
        };
        Schema::default().put_table(def, 1)
    }

    /// Rows `(n, -n, n / 7)`.
    fn rows(table: &TableMeta, count: i32) -> Tree {
        let mut rows = Tree::new();
        for n in 0..count {
            let row = table.layout.encode_row(&[Cell::Int4(n), Cell::Int4(-n), Cell::Int4(n / 7)]);
            let mut key = KeyBuf::new();
            table.storage_key(&row, &mut key);
            rows.insert(&key, row, 1);
        }
        rows
    }

    #[test]
    fn slices_make_the_indexes_of_whole_tables() {
        let tables = [
            (table(1, vec![index(2, 1, true), index(3, 2, false)]), 100),
            (table(4, vec![]), 30),
            (table(5, vec![index(6, 1, true)]), 0),
            (table(7, vec![index(8, 2, false)]), 10),
        ];
        for slice_rows in [1, 7, 50, 1_000] {
            let work = tables.iter().map(|(table, count)| (table.clone(), rows(table, *count))).collect();
            let built = BuiltTable::all_in_slices(work, 3, slice_rows).expect("good rows");
            assert_eq!(built.len(), tables.len());
            for (built, (table, count)) in built.iter().zip(&tables) {
                assert_eq!(built.table.def.id, table.def.id);
                assert_eq!(built.indexes.len(), table.indexes.len());
                let mut memory = 0;
                for (key, row) in built.rows.cursor(Bound::Unbounded) {
                    memory += entry_bytes(key, row);
                    for (meta, tree) in table.indexes.iter().zip(&built.indexes) {
                        let mut entry = KeyBuf::new();
                        table.index_key(meta, row, key, &mut entry);
                        memory += entry_bytes(&entry, key);
                        assert_eq!(tree.get(&entry).map(|row| &row[..]), Some(key));
                    }
                }
                assert_eq!(built.memory, memory);
                assert!(built.indexes.iter().all(|index| index.len() == *count as u64));
            }
        }
    }

    #[test]
    fn ranges_are_alike_in_size_where_runs_are_many_and_short() {
        let key = |number: u32| KeyBuf::from_slice(&number.to_be_bytes());
        let run = |run: u32| -> Entries {
            (0..40).map(|at| (key(at * 1_000 + run), Row::from(b"".as_slice()))).collect()
        };
        let runs: Vec<Entries> = (0..1_000).map(run).collect();
        let ranges = divided(vec![((0, 0), runs)], 1, 40);
        let size = |range: &Range| range.runs.iter().map(Vec::len).sum::<usize>();
        let sizes: Vec<usize> = ranges.iter().map(size).collect();
        assert!(sizes.len() == 8 && sizes.iter().all(|size| (2_500..=10_000).contains(size)), "{sizes:?}");
    }

    #[test]
    fn two_rows_under_one_unique_entry_are_told_by_name() {
        let table = table(1, vec![index(2, 1, true), index(3, 2, true)]);
        let rows = rows(&table, 20);
        let error = BuiltTable::all_in_slices(vec![(table, rows)], 2, 7).err().expect("refused");
        assert_eq!(error.to_string(), "table table 1 breaks its unique index index 3 after recovery");
    }

    #[test]
    fn a_row_that_does_not_fit_its_table_is_refused() {
        let table = table(1, vec![]);
        let mut rows = rows(&table, 20);
        rows.insert(b"\xff", b"no row".as_slice().into(), 1);
        let error = BuiltTable::all(vec![(table, rows)], 2).err().expect("refused");
        assert!(error.to_string().contains("a row of table table 1 does not fit its columns"), "{error}");
    }
}
