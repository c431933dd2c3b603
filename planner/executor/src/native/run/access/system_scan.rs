//! Scans of system relations, whose rows the server makes when somebody asks for them.
//!
//! Where conditions say which objects are meant before a row is made ([`SoughtBy`]), rows of these are made
//! alone: a question about one table costs the same however many there are. Else making them costs as much
//! for one row as for all.
//!
//! Where a scan runs once for each of other rows (in a correlated subquery, on the right side of a join), rows
//! are kept by what the conditions say is equal. As long as few values were asked for, and these lead to objects,
//! each new one is asked for by itself; then all rows are made, and the later runs look there.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::catalog::TableRef;
use archipel_sql::datum::Datum;
use archipel_sql::function::exact_pattern;
use archipel_sql::system::Sought;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::node::{MoreRows, Out, hash_key};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::hash::{HashKey, HashTable, widen};
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::{ExecError, ExecResult};
use crate::native::run::state::frame::Cache;

/// So many values are asked for one by one before all rows are made: each costs little, but more than a look at
/// those that are kept.
const ASKED_MAX: usize = 64;

/// How a condition says what a column is equal to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoughtHow {
    /// It is that.
    Equal,
    /// It is one of the elements of an array.
    Any,
    /// It is what a LIKE pattern matches, if that is one text.
    Like,
    /// It is what a regular expression matches, if that is one text.
    Regex,
}

/// A condition that says which rows are wanted before they are made. The filter says so, too.
pub(crate) struct SoughtBy {
    pub column: usize,
    pub how: SoughtHow,
    /// What it is equal to one of.
    pub values: Vec<Source>,
    /// Whether they are read off other rows, and so may be others in the next run.
    pub varies: bool,
}

impl SoughtBy {
    /// The values that the column may have; `None` where that is not to be told. A condition that fails does so
    /// when the filter asks, if it does.
    fn values(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<Vec<Datum>>> {
        let mut values = Vec::with_capacity(self.values.len());
        for source in &self.values {
            let value = match source.eval(ctx) {
                Ok(value) => value,
                Err(ExecError::Sql(_)) => return Ok(None),
                Err(stop) => return Err(stop),
            };
            let one = match (self.how, value) {
                // It equals nothing.
                (_, Datum::Null) => continue,
                (SoughtHow::Equal, value) => Some(value),
                (SoughtHow::Any, Datum::Array(array)) => {
                    values.extend(array.values.iter().cloned());
                    continue;
                }
                (SoughtHow::Like, Datum::Text(pattern)) => {
                    exact_pattern::of_like(&pattern).map(|text| Datum::text(&text))
                }
                (SoughtHow::Regex, Datum::Text(pattern)) => {
                    exact_pattern::of_regex(&pattern).map(|text| Datum::text(&text))
                }
                _ => None,
            };
            let Some(value) = one else { return Ok(None) };
            values.push(value);
        }
        Ok(Some(values))
    }
}

/// A view over the server's own state.
pub(crate) struct SystemScan {
    pub table: TableRef,
    pub sought: Vec<SoughtBy>,
    /// Rows that the transaction knows beside those of the server.
    pub more: Option<MoreRows>,
    /// The columns that are read, with the slots that they go to.
    pub columns: Pruned<(usize, u32)>,
    pub filter: Option<CompiledPredicate>,
    /// How its rows are kept between runs, if they are.
    pub kept: Option<KeptRows>,
}

/// Rows that are kept within a run of the statement, by some of their columns.
pub(crate) struct KeptRows {
    /// Where in the frame.
    pub cache: usize,
    /// The columns, by their places in the relation; none: all rows are alike.
    pub columns: Vec<usize>,
    /// What they have to be equal to. The filter says so, too.
    pub values: Vec<Source>,
    /// The slots of the columns that are read, in the order of [`SystemScan::columns`].
    pub slots: Pruned<u32>,
    /// Whether such values lead to rows without all of them.
    pub leads: bool,
}

impl SystemScan {
    pub(crate) fn run(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        if let Some(kept) = &self.kept {
            return self.run_kept(kept, ctx, out);
        }
        for row in self.rows(ctx)? {
            ctx.tick()?;
            for (column, slot) in self.columns.get() {
                ctx.frame.slots[*slot as usize] = cell(&row, *column);
            }
            if let Some(filter) = &self.filter
                && filter(ctx)? != Some(true)
            {
                continue;
            }
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The rows of a run that keeps none.
    fn rows(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Vec<Vec<Datum>>> {
        let sought = self.sought_where(ctx, |_| true)?;
        self.rows_sought(&sought, ctx)
    }

    /// What some of the conditions say of the rows that are wanted.
    fn sought_where(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        counts: impl Fn(&SoughtBy) -> bool,
    ) -> ExecResult<Sought> {
        let mut sought = Sought::EVERYTHING;
        for by in self.sought.iter().filter(|by| counts(by)) {
            if let Some(values) = by.values(ctx)? {
                sought.add(by.column, values);
            }
        }
        Ok(sought)
    }

    /// The same of those that say so of every run.
    fn sought_always(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Sought> {
        self.sought_where(ctx, |by| !by.varies)
    }

    fn rows_sought(&self, sought: &Sought, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Vec<Vec<Datum>>> {
        let mut rows = ctx.system.rows_sought(&self.table, sought)?;
        if let Some(more) = &self.more {
            rows.extend(more(ctx, sought)?);
        }
        Ok(rows)
    }

    fn run_kept(
        &self,
        kept: &KeptRows,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let asks = kept.leads && !matches!(ctx.frame.caches[kept.cache], Cache::Keyed(_));
        if asks {
            let key = hash_key(&kept.values, ctx)?;
            // NULL equals nothing.
            if key.has_null() {
                return Ok(ControlFlow::Continue(()));
            }
            if let Some(rows) = self.asked_for(kept, key, ctx)? {
                return self.show(kept, &rows, 0..rows.len(), ctx, out);
            }
        }
        let table = self.by_key(kept, ctx)?;
        if table.index.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let key = hash_key(&kept.values, ctx)?;
        let places = if key.has_null() { None } else { table.index.get(&key) };
        let places = places.into_iter().flatten().map(|place| *place as usize);
        self.show(kept, &table.rows, places, ctx, out)
    }

    /// Shows some of the rows that are kept.
    fn show(
        &self,
        kept: &KeptRows,
        rows: &RowBuffer,
        places: impl Iterator<Item = usize>,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        for place in places {
            ctx.tick()?;
            rows.restore(place, &mut ctx.frame, kept.slots.get());
            if let Some(filter) = &self.filter
                && filter(ctx)? != Some(true)
            {
                continue;
            }
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The rows of one key, made for it alone by the first who asks; `None` where it leads to none without the
    /// others, or so many were asked for that all are worth making.
    fn asked_for(
        &self,
        kept: &KeptRows,
        key: HashKey,
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<Option<Arc<RowBuffer>>> {
        if let Cache::Asked(asked) = &ctx.frame.caches[kept.cache] {
            if let Some(rows) = asked.get(&key) {
                return Ok(Some(rows.clone()));
            }
            if asked.len() >= ASKED_MAX {
                return Ok(None);
            }
        }
        let mut sought = self.sought_always(ctx)?;
        for (column, value) in kept.columns.iter().zip(&key.0) {
            sought.add(*column, vec![value.clone()]);
        }
        if !ctx.system.leads(&self.table, &sought) {
            return Ok(None);
        }
        let columns = self.columns.get();
        let mut rows = RowBuffer::new(columns.len());
        for row in self.rows_sought(&sought, ctx)? {
            ctx.tick()?;
            if key_of(kept, &row) == key {
                rows.push(columns.iter().map(|(column, _)| cell(&row, *column)));
            }
        }
        let rows = Arc::new(rows);
        let cache = &mut ctx.frame.caches[kept.cache];
        if !matches!(cache, Cache::Asked(_)) {
            *cache = Cache::Asked(Arc::default());
        }
        if let Cache::Asked(asked) = cache {
            Arc::make_mut(asked).insert(key, rows.clone());
        }
        Ok(Some(rows))
    }

    /// The rows by their keys, made by the first who asks.
    fn by_key(&self, kept: &KeptRows, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Arc<HashTable>> {
        if let Cache::Keyed(table) = &ctx.frame.caches[kept.cache] {
            return Ok(table.clone());
        }
        let columns = self.columns.get();
        let mut table = HashTable { rows: RowBuffer::new(columns.len()), index: FxHashMap::default() };
        let sought = self.sought_always(ctx)?;
        for row in self.rows_sought(&sought, ctx)? {
            ctx.tick()?;
            let key = key_of(kept, &row);
            if key.has_null() {
                continue;
            }
            table.index.entry(key).or_default().push(table.rows.len() as u32);
            table.rows.push(columns.iter().map(|(column, _)| cell(&row, *column)));
        }
        let table = Arc::new(table);
        ctx.frame.caches[kept.cache] = Cache::Keyed(table.clone());
        Ok(table)
    }
}

/// What a row is kept by.
fn key_of(kept: &KeptRows, row: &[Datum]) -> HashKey {
    let values: SmallVec<[Datum; 2]> = kept.columns.iter().map(|column| widen(cell(row, *column))).collect();
    HashKey(values)
}

/// A column of a row; NULL where the server does not tell it.
fn cell(row: &[Datum], column: usize) -> Datum {
    row.get(column).cloned().unwrap_or(Datum::Null)
}
