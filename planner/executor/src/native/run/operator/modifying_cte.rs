//! The parts of a statement with WITH at run time: in which order they run, and when they write.

use archipel_engine::id::TreeId;

use super::with::Cte;
use crate::native::run::change::fate::Foreseen;
use crate::native::run::constraint::referential_action::with_queue;
use crate::native::run::row::answer::{Answer, Emit};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::statement::{Body, Deferred};

/// See the module's head.
pub(crate) struct Parts {
    pub(crate) ctes: Vec<Cte>,
    /// Those that run before the statement itself, and those after it.
    pub(crate) before: Vec<usize>,
    pub(crate) after: Vec<usize>,
    pub(crate) modify: bool,
    /// Tables that several parts change.
    pub(crate) contested: Vec<TreeId>,
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
