//! The inner side of a join by key, looked up for many outer rows together.
//!
//! A row under a key lies several dependent loads away. A scan that takes its rows in batches knows
//! the keys of the next of them beforehand, goes down the other table's tree with all of them side by
//! side, and keeps what the inner side reads of the rows it finds ([`LookedUp`]). The inner scan takes
//! it from there: it encodes no key and goes down no tree.

use std::sync::Arc;

use archipel_engine::AHEAD_MAX;
use archipel_engine::storage::KeyBuf;
use archipel_sql::datum::Datum;
use smallvec::SmallVec;

use super::batch::{LookedUp, ScanColumn};
use super::key_span::append_value;
use super::path::{KeyPart, Meta, Path, Tree};
use super::scan::Scan;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::Source;
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// A table that a join reads by its key, once a row of the scan on its left.
pub(crate) struct Lookup {
    meta: Meta,
    path: Arc<Path>,
    /// What the scan on the right reads of a row.
    columns: Pruned<ScanColumn>,
    /// Where in the frame the rows wait for it; `None` where it needs more than their columns, and
    /// they are only asked for.
    pub place: Option<usize>,
}

const _: () = assert!(AHEAD_MAX <= u32::BITS as usize);

impl Lookup {
    /// The table on the right of a join, if a key made of plain values names its row. `place` is
    /// called where its rows may wait for it.
    pub fn of(right: &mut Scan, place: impl FnOnce() -> usize) -> Option<Lookup> {
        let plain = |part: &KeyPart| match part {
            KeyPart::One(Source::Operand(operand)) => !matches!(operand, Operand::Element(_)),
            _ => false,
        };
        let by_key = right.path.unique && matches!(right.path.tree, Tree::Storage);
        if !by_key || !right.path.equals.iter().all(plain) {
            return None;
        }
        let keyless =
            right.lock.is_none() && right.key.is_none() && right.key_slot.is_none() && !right.reevaluated;
        right.looked_up = keyless.then(place);
        Some(Lookup {
            meta: right.meta.clone(),
            path: right.path.clone(),
            columns: right.columns.clone(),
            place: right.looked_up,
        })
    }

    /// The key for an outer row of these columns; false: no row can have it.
    #[inline]
    fn key(
        &self,
        ctx: &ExecContext<'_, '_>,
        (columns, row): (&[ScanColumn], &[Datum]),
        key: &mut KeyBuf,
    ) -> bool {
        self.path.equals.iter().zip(&self.path.columns).all(|(part, (column, codec))| {
            let KeyPart::One(Source::Operand(operand)) = part else { return false };
            let own = match operand {
                Operand::Slot(slot) => columns.iter().zip(row).find(|(column, _)| column.slot == *slot),
                _ => None,
            };
            let value = match own {
                Some((_, value)) => value,
                None => operand.get(ctx),
            };
            append_value(key, value, column, *codec)
        })
    }

    /// Looks up what belongs to outer rows of these columns, [`AHEAD_MAX`] of them at most.
    pub fn run<'r>(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        columns: &[ScanColumn],
        rows: impl Iterator<Item = &'r [Datum]>,
    ) -> ExecResult<()> {
        let mut keys: SmallVec<[KeyBuf; AHEAD_MAX]> = SmallVec::new();
        let mut places: SmallVec<[usize; AHEAD_MAX]> = SmallVec::new();
        let mut without = 0;
        for (at, row) in rows.enumerate() {
            let last = keys.len();
            keys.push(KeyBuf::new());
            if self.key(ctx, (columns, row), &mut keys[last]) {
                places.push(at);
            } else {
                keys.truncate(last);
                without |= 1 << at;
            }
        }
        let Some(place) = self.place else {
            ctx.txn.fetch_ahead(&self.meta, &keys);
            return Ok(());
        };
        let columns = self.columns.get();
        let ExecContext { txn, frame, .. } = ctx;
        let looked = &mut frame.looked_up[place];
        looked.known = without;
        if looked.values.len() < AHEAD_MAX * columns.len() {
            looked.values.resize(AHEAD_MAX * columns.len(), Datum::Null);
        }
        let LookedUp { values, known, present, .. } = looked;
        txn.get_each(&self.meta, &keys, &mut |number, row| {
            let at = places[number];
            *known |= 1 << at;
            let Some(row) = row else { return };
            *present |= 1 << at;
            for (column, value) in columns.iter().zip(&mut values[at * columns.len()..]) {
                value.set(column.codec.read(&column.place, row));
            }
        })?;
        Ok(())
    }
}
