//! The parts of a statement with WITH: which run, in which order, and when they write.
//!
//! A query in WITH that nobody reads does not run; a part that changes data always does. Those that
//! the statement reads, itself or through others, come before it, the others after it, the last one
//! first: PostgreSQL's order, which decides where several parts are about the same row.

use archipel_engine::id::TreeId;
use archipel_sql::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bound::{BoundStatement, Cte as BoundCte, CteBody};
use crate::native::plan::compiler::Compiler;
use crate::native::run::change::fate::Foreseen;
use crate::native::run::constraint::referential_action::with_queue;
use crate::native::run::state::context::{ExecContext, ExecResult};
use crate::native::run::statement::{Answer, Body, Deferred, Emit};
use super::with::Cte;

/// See the module's head.
pub(crate) struct Parts {
    ctes: Vec<Cte>,
    /// Those that run before the statement itself, and those after it.
    before: Vec<usize>,
    after: Vec<usize>,
    modify: bool,
    /// Tables that several parts change.
    contested: Vec<TreeId>,
}

/// The tables whose rows a statement changes.
pub(crate) fn targets_of(statement: &BoundStatement) -> Vec<u32> {
    let (table, family) = match statement {
        BoundStatement::Insert(insert) => (&insert.table, &insert.family),
        BoundStatement::Update(update) => (&update.table, &update.family),
        BoundStatement::Delete(delete) => (&delete.table, &delete.family),
        BoundStatement::Merge(merge) => (&merge.table, &merge.family),
        BoundStatement::With { statement, .. } => return targets_of(statement),
        BoundStatement::Query(_) | BoundStatement::Call(_) => return Vec::new(),
    };
    match family {
        Some(family) => family.members.iter().map(|member| member.table.tree).collect(),
        None => vec![table.tree],
    }
}

impl Compiler<'_> {
    /// Compiles a WITH and the statement it belongs to, which changes the tables `targets`.
    pub fn parts<T>(
        &mut self,
        ctes: &[BoundCte],
        mut targets: Vec<u32>,
        body: impl FnOnce(&mut Self, &mut [Cte]) -> Result<T>,
    ) -> Result<(Parts, T)> {
        let mut around = std::mem::take(&mut self.ctes_read);
        let (mut compiled, mut reads) = (Vec::with_capacity(ctes.len()), Vec::with_capacity(ctes.len()));
        for cte in ctes {
            compiled.push(self.one_cte(cte)?);
            reads.push(std::mem::take(&mut self.ctes_read));
        }
        let body = body(self, &mut compiled)?;
        let read = std::mem::take(&mut self.ctes_read);
        let ids: Vec<u32> = ctes.iter().map(|cte| cte.id).collect();
        let places = ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let mut order = Order { places, reads: &reads, placed: vec![false; ids.len()] };
        let before = order.with_readers(&read, None);
        let mut after = Vec::new();
        for place in (0..ids.len()).rev().filter(|place| compiled[*place].modifies()) {
            if !order.placed[place] {
                after.extend(order.with_readers(&reads[place], Some(place)));
            }
        }
        for cte in ctes {
            if let CteBody::Modify(statement) = &cte.body {
                targets.extend(targets_of(statement));
            }
        }
        targets.sort_unstable();
        let contested: FxHashSet<u32> =
            targets.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        around.extend(read);
        around.extend(reads.into_iter().flatten());
        self.ctes_read = around;
        let modify = compiled.iter().any(Cte::modifies);
        let contested = contested.into_iter().map(TreeId).collect();
        Ok((Parts { ctes: compiled, before, after, modify, contested }, body))
    }
}

/// Puts CTEs in order: each after those it reads, which stand before it.
struct Order<'c> {
    /// Where each stands, by its id.
    places: FxHashMap<u32, usize>,
    reads: &'c [FxHashSet<u32>],
    placed: Vec<bool>,
}

impl Order<'_> {
    /// What a reader of these still needs, and the reader itself.
    fn with_readers(&mut self, read: &FxHashSet<u32>, reader: Option<usize>) -> Vec<usize> {
        let mut needed = vec![false; self.reads.len()];
        for place in read.iter().filter_map(|id| self.places.get(id)) {
            needed[*place] = true;
        }
        for place in (0..needed.len()).rev() {
            if !needed[place] {
                continue;
            }
            for before in self.reads[place].iter().filter_map(|id| self.places.get(id)) {
                needed[*before] |= *before < place;
            }
        }
        let placed = &mut self.placed;
        let mut places: Vec<usize> =
            (0..needed.len()).filter(|place| needed[*place] && !placed[*place]).collect();
        places.extend(reader);
        for place in &places {
            placed[*place] = true;
        }
        places
    }
}

impl Parts {
    /// Runs a query of which these are the parts, then writes what they found.
    pub fn run_query<T>(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        query: impl FnOnce(&mut ExecContext<'_, '_>) -> ExecResult<T>,
    ) -> ExecResult<T> {
        if !self.modify {
            self.prepare(ctx)?;
            return query(ctx);
        }
        with_queue(ctx, |ctx| {
            let mut foreseen = Foreseen::new(&self.contested);
            let mut found = self.find(&self.before, ctx, &mut foreseen)?;
            found.extend(self.find(&self.after, ctx, &mut foreseen)?);
            let answer = query(ctx)?;
            self.write(found, ctx)?;
            Ok(answer)
        })
    }

    /// Runs a statement of which these are the parts: everything is found before anything is
    /// written. Answers as [`Body::run`].
    pub fn run_around(
        &self,
        body: &Body,
        ctx: &mut ExecContext<'_, '_>,
        emit: &mut Emit<'_>,
    ) -> ExecResult<u64> {
        if !self.modify
            || !matches!(body, Body::Insert(..) | Body::Update(..) | Body::Delete(..) | Body::Members(..))
        {
            // Anything else finds for itself, and must not see what the others write.
            return self.run_query(ctx, |ctx| body.run(ctx, emit));
        }
        with_queue(ctx, |ctx| {
            let mut foreseen = Foreseen::new(&self.contested);
            let before = self.find(&self.before, ctx, &mut foreseen)?;
            let own = body.find(ctx, &mut foreseen)?;
            let after = self.find(&self.after, ctx, &mut foreseen)?;
            self.write(before, ctx)?;
            let mut count = 0;
            if let Some((shown, deferred)) = own {
                count = body.write(ctx, deferred)?;
                for row in shown.iter() {
                    let _ = emit(Answer::Lent(row))?;
                }
            }
            self.write(after, ctx)?;
            Ok(count)
        })
    }

    fn prepare(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.before.iter().try_for_each(|place| self.ctes[*place].prepare(ctx))
    }

    fn find(
        &self,
        places: &[usize],
        ctx: &mut ExecContext<'_, '_>,
        foreseen: &mut Foreseen,
    ) -> ExecResult<Vec<(usize, Deferred)>> {
        let mut found = Vec::with_capacity(places.len());
        for &place in places {
            if let Some(deferred) = self.ctes[place].find(ctx, foreseen)? {
                found.push((place, deferred));
            }
        }
        Ok(found)
    }

    fn write(&self, found: Vec<(usize, Deferred)>, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        found.into_iter().try_for_each(|(place, deferred)| self.ctes[place].write(ctx, deferred))
    }
}
