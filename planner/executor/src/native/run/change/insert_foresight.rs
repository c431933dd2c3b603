//! INSERT as a part of a statement whose parts all see the rows from before it: what will become
//! of each proposed row, and what RETURNING says of it, is found first and kept; writing then
//! computes nothing again.

use archipel_engine::Inserted;
use archipel_engine::id::TreeId;
use archipel_engine::storage::KeyBuf;
use smallvec::SmallVec;

use super::fate::{Fate, Foreseen};
use super::insert::{Arbiter, Conflict, Insert, RowInsert};
use super::insert_row::second_time;
use crate::native::run::constraint::referential_action::with_queue;
use crate::native::run::expression::source::eval_all;
use crate::native::run::row::answer::{Answer, Emit};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// Rows that are still to be written.
pub(crate) struct Proposal {
    /// The slots that writing them takes.
    rows: RowBuffer,
    /// Under which key each takes the place of a row; `None` for a new one.
    existing: Vec<Option<KeyBuf>>,
    /// Which of the partitions each goes to.
    members: Vec<usize>,
    /// What RETURNING says of them.
    pub returning: RowBuffer,
}

/// What will become of a proposed row.
enum Foresight {
    Insert,
    Update(KeyBuf),
    Skip,
}

/// Keys of a row in its table and in unique indexes.
type UniqueKeys = SmallVec<[(TreeId, KeyBuf); 2]>;

impl Insert {
    /// What will be written and answered. Rows are proposed past the BEFORE triggers.
    pub fn find(&self, ctx: &mut ExecContext<'_, '_>, foreseen: &mut Foreseen) -> ExecResult<Proposal> {
        let rows = self.gather(ctx)?;
        self.begin(ctx)?;
        let mut proposal = Proposal {
            rows: RowBuffer::new(self.kept().len()),
            existing: Vec::new(),
            members: Vec::new(),
            returning: RowBuffer::new(self.returned()),
        };
        let mut row = Vec::new();
        for index in 0..rows.len() {
            ctx.tick()?;
            rows.restore(index, &mut ctx.frame, &self.source_slots);
            let (member, insert) = self.place(ctx)?;
            if !insert.propose(ctx)? {
                continue;
            }
            insert.give_number(ctx);
            let existing = match insert.foresee(ctx, foreseen, &mut row)? {
                Foresight::Skip => continue,
                Foresight::Insert => None,
                Foresight::Update(key) => Some(key),
            };
            insert.tell_locker(ctx, existing.is_some())?;
            proposal.rows.push_slots(&ctx.frame, self.kept());
            proposal.existing.push(existing);
            proposal.members.push(member);
            if let Some(returning) = &insert.returning {
                let shown = eval_all(returning, ctx)?;
                proposal.returning.push(shown);
            }
        }
        Ok(proposal)
    }

    /// Runs a statement that is to see nothing of what it writes.
    pub(crate) fn run_foreseen(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        let proposal = self.find(ctx, &mut Foreseen::new(&[]))?;
        let count = self.write(ctx, &proposal)?;
        if self.returned() > 0 {
            for row in proposal.returning.iter() {
                let _ = emit(Answer::Lent(row))?;
            }
        }
        Ok(count)
    }

    /// Writes what was found; answers how many rows.
    pub fn write(&self, ctx: &mut ExecContext<'_, '_>, proposal: &Proposal) -> ExecResult<u64> {
        if self.waits {
            return with_queue(ctx, |ctx| self.write_proposed(ctx, proposal));
        }
        self.write_proposed(ctx, proposal)
    }

    fn write_proposed(&self, ctx: &mut ExecContext<'_, '_>, proposal: &Proposal) -> ExecResult<u64> {
        let mut row = Vec::new();
        for (index, existing) in proposal.existing.iter().enumerate() {
            proposal.rows.restore(index, &mut ctx.frame, self.kept());
            self.member(proposal.members[index]).write_proposed(ctx, existing.as_ref(), &mut row)?;
        }
        self.end(ctx)?;
        Ok(proposal.existing.len() as u64)
    }
}

impl RowInsert {
    /// Writes the row in the slots, in the place of an existing one if there is one. `row` is working
    /// space.
    fn write_proposed(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        existing: Option<&KeyBuf>,
        row: &mut Vec<u8>,
    ) -> ExecResult<()> {
        let update = self.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
        if let (Some(existing), Some(update)) = (existing, update) {
            ctx.outside_view(|ctx| update.change.apply(ctx, &self.target, existing))?;
            return match &update.triggers {
                Some(triggers) => triggers.queue(ctx, Some(&update.existing), Some(&update.change.row)),
                None => Ok(()),
            };
        }
        let key = self.encode(ctx, row)?;
        let inserted = ctx.txn.insert(&self.target.meta, &key, row)?;
        if inserted != Inserted::Ok {
            self.target.accept(inserted, ctx, &self.values(ctx))?;
        }
        self.inserted(ctx)
    }

    /// What will become of the proposed row, where RETURNING then finds it. `row` is working space.
    fn foresee(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        foreseen: &mut Foreseen,
        row: &mut Vec<u8>,
    ) -> ExecResult<Foresight> {
        let table = self.target.meta.def.id;
        let Some(conflict) = &self.conflict else {
            if foreseen.is_contested(table) {
                let keys = self.unique_keys(ctx, row)?;
                foreseen.propose(keys);
            }
            return Ok(Foresight::Insert);
        };
        let keys = self.unique_keys(ctx, row)?;
        let decides = |tree: TreeId| match &conflict.arbiter {
            Arbiter::Any => true,
            Arbiter::Primary => tree == table,
            Arbiter::Index(index) => tree == index.id,
        };
        let mut deciding = keys.iter().filter(|(tree, _)| decides(*tree));
        let existing = if deciding.any(|key| foreseen.is_proposed(key)) {
            // Somebody of this statement will have written it.
            None
        } else {
            match self.opponent(conflict, ctx, row, &keys, foreseen)? {
                Some(existing) => Some(existing),
                None => {
                    foreseen.propose(keys);
                    if let Some(shown) = &self.shown {
                        self.show(ctx, &self.slots, shown);
                    }
                    return Ok(Foresight::Insert);
                }
            }
        };
        let Some(update) = &conflict.update else { return Ok(Foresight::Skip) };
        let Some(existing) = existing else { return Err(second_time().into()) };
        if foreseen.fate(table, &existing).is_some() {
            return Err(second_time().into());
        }
        if !self.compute_update(update, ctx, &existing)? {
            return Ok(Foresight::Skip);
        }
        foreseen.meet(table, &existing, Fate::Changed);
        if let Some(shown) = &self.shown {
            self.show(ctx, &update.change.row, shown);
        }
        Ok(Foresight::Update(existing))
    }

    /// The storage key of a row that stands in the proposed one's way and stays.
    fn opponent(
        &self,
        conflict: &Conflict,
        ctx: &mut ExecContext<'_, '_>,
        row: &[u8],
        keys: &UniqueKeys,
        foreseen: &Foreseen,
    ) -> ExecResult<Option<KeyBuf>> {
        let meta = &self.target.meta;
        let stays = |key: &KeyBuf| foreseen.fate(meta.def.id, key) != Some(Fate::Gone);
        // Who holds a key is judged by what is committed, whatever the transaction's snapshot.
        let before = ctx.txn.read_newest_from_now(true);
        let look = |ctx: &mut ExecContext<'_, '_>| -> ExecResult<Option<KeyBuf>> {
            let primary = matches!(conflict.arbiter, Arbiter::Any | Arbiter::Primary);
            if let Some((_, key)) = keys.iter().find(|(tree, _)| primary && *tree == meta.def.id)
                && ctx.txn.get(meta, key)?.is_some()
                && stays(key)
            {
                return Ok(Some(key.clone()));
            }
            let (all, one) = match &conflict.arbiter {
                Arbiter::Any => (&meta.def.indexes[..], None),
                Arbiter::Primary => (&[][..], None),
                Arbiter::Index(index) => (&[][..], Some(index)),
            };
            for index in all.iter().filter(|index| index.unique).chain(one) {
                if let Some(holder) = self.holder(index, ctx, row)?.filter(&stays) {
                    return Ok(Some(holder));
                }
            }
            Ok(None)
        };
        let found = look(ctx);
        ctx.txn.read_newest_from_now(before);
        let found = found?;
        if let Some(existing) = &found {
            ctx.txn.require_unchanged(meta, existing)?;
        }
        Ok(found)
    }

    /// The keys of the proposed row, encoded into `row`.
    fn unique_keys(&self, ctx: &ExecContext<'_, '_>, row: &mut Vec<u8>) -> ExecResult<UniqueKeys> {
        let mut key = KeyBuf::new();
        // Nobody has a hidden number of the future.
        let hidden = self.target.hidden.then_some(i64::MAX);
        let frame = &ctx.frame;
        self.target.encode(|place| &frame.slots[self.slot(place)], hidden, row, &mut key)?;
        let mut keys = UniqueKeys::new();
        if !self.target.hidden {
            keys.push((self.target.meta.def.id, key));
        }
        for index in self.target.meta.def.indexes.iter().filter(|index| index.unique) {
            if let Some(entry) = self.entry(index, row) {
                keys.push((index.id, entry));
            }
        }
        Ok(keys)
    }
}
